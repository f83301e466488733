//! Taking everything over from another engine: rows come in, and go out by COPY within one transaction.

use bytes::{BufMut, BytesMut};
use flare_provider::transfer::{Cell, Rows};
use flare_provider::{ErrorKind, ProviderError, Result};
use futures_util::SinkExt as _;
use std::pin::Pin;
use tokio::runtime::Runtime;
use tokio_postgres::CopyInSink;

use crate::connect::Session;
use crate::error::{Work, WorkError};
use crate::migrations;

const OPERATION: &str = "postgresql.import";

/// So many bytes are sent at a time.
const CHUNK: usize = 256 << 10;

pub(super) fn import(
    runtime: &Runtime,
    session: &Session,
    schema: &str,
    source: impl FnOnce(&mut dyn Rows) -> Result<()>,
) -> Result<u64> {
    let told = |error: WorkError| error.told(OPERATION);
    runtime.block_on(migrations::apply(&session.client, schema)).map_err(told)?;
    runtime.block_on(begin(session, schema)).map_err(told)?;
    let mut copying =
        Copying { runtime, session, copy: None, numbers: false, chunk: BytesMut::new(), rows: 0 };
    let copied = source(&mut copying).and_then(|()| copying.end().map_err(told));
    let rows = copying.rows;
    // What is not ended is given up: nothing else is answered before.
    drop(copying);
    let end = if copied.is_ok() { "COMMIT" } else { "ROLLBACK" };
    runtime.block_on(session.client.batch_execute(end)).map_err(|error| told(error.into()))?;
    copied.map(|()| rows)
}

/// Begins the transaction, and sees to it that nobody's data are mixed with it.
async fn begin(session: &Session, schema: &str) -> Work<()> {
    session.client.batch_execute("BEGIN").await?;
    migrations::lock(&session.client).await?;
    let used = "SELECT EXISTS (SELECT 1 FROM entities) OR EXISTS (SELECT 1 FROM lanes)
                OR (SELECT value FROM numbers WHERE name = 'catalog') > 0";
    if session.client.query_one(used, &[]).await?.try_get(0)? {
        session.client.batch_execute("ROLLBACK").await?;
        let detail =
            format!("the schema {schema} is in use: copy into an empty one (provider.postgresql.schema)");
        return Err(ProviderError::new(ErrorKind::Unsupported, OPERATION, detail).into());
    }
    Ok(())
}

struct Copying<'i> {
    runtime: &'i Runtime,
    session: &'i Session,
    copy: Option<Pin<Box<CopyInSink<bytes::Bytes>>>>,
    /// The numbers are there already, and are set.
    numbers: bool,
    chunk: BytesMut,
    rows: u64,
}

impl Copying<'_> {
    fn send(&mut self) -> Work<()> {
        let chunk = self.chunk.split().freeze();
        if let Some(copy) = &mut self.copy
            && !chunk.is_empty()
        {
            self.runtime.block_on(copy.send(chunk))?;
        }
        Ok(())
    }

    /// Ends the table under way.
    fn end(&mut self) -> Work<()> {
        self.send()?;
        if let Some(mut copy) = self.copy.take() {
            self.runtime.block_on(async { copy.as_mut().finish().await })?;
        }
        Ok(())
    }
}

impl Rows for Copying<'_> {
    fn table(&mut self, name: &'static str, columns: &'static str) -> Result<()> {
        let told = |error: WorkError| error.told(OPERATION);
        self.end().map_err(told)?;
        self.numbers = name == "numbers";
        if !self.numbers {
            let sql = format!("COPY {name} ({columns}) FROM STDIN");
            let copy = self.runtime.block_on(self.session.client.copy_in(&sql));
            self.copy = Some(Box::pin(copy.map_err(|error| told(error.into()))?));
        }
        Ok(())
    }

    fn row(&mut self, cells: &[Cell]) -> Result<()> {
        let told = |error: WorkError| error.told(OPERATION);
        self.rows += 1;
        if self.numbers {
            let [Cell::Text(name), Cell::Number(value)] = cells else {
                return Err(ProviderError::new(
                    ErrorKind::Internal,
                    OPERATION,
                    "a number has a name and a value",
                ));
            };
            let set = "UPDATE numbers SET value = $2 WHERE name = $1";
            let set = self.runtime.block_on(self.session.client.execute(set, &[name, value]));
            return set.map(drop).map_err(|error| told(error.into()));
        }
        for (index, cell) in cells.iter().enumerate() {
            if index > 0 {
                self.chunk.put_u8(b'\t');
            }
            write(&mut self.chunk, cell);
        }
        self.chunk.put_u8(b'\n');
        if self.chunk.len() >= CHUNK {
            self.send().map_err(told)?;
        }
        Ok(())
    }
}

/// A cell as COPY takes it.
fn write(chunk: &mut BytesMut, cell: &Cell) {
    match cell {
        Cell::Null => chunk.put_slice(b"\\N"),
        Cell::Number(number) => chunk.put_slice(number.to_string().as_bytes()),
        Cell::Text(text) => {
            for byte in text.bytes() {
                match byte {
                    b'\\' => chunk.put_slice(b"\\\\"),
                    b'\t' => chunk.put_slice(b"\\t"),
                    b'\n' => chunk.put_slice(b"\\n"),
                    b'\r' => chunk.put_slice(b"\\r"),
                    byte => chunk.put_u8(byte),
                }
            }
        }
        Cell::Bytes(bytes) => {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            chunk.put_slice(b"\\\\x");
            for byte in bytes {
                chunk.put_u8(DIGITS[usize::from(byte >> 4)]);
                chunk.put_u8(DIGITS[usize::from(byte & 15)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_written_as_copy_takes_them() {
        let written = |cell| {
            let mut chunk = BytesMut::new();
            write(&mut chunk, &cell);
            String::from_utf8(chunk.to_vec()).expect("text")
        };
        assert_eq!(written(Cell::Null), "\\N");
        assert_eq!(written(Cell::Number(-7)), "-7");
        assert_eq!(written(Cell::Text("a\\N\tb\nc\rß".to_owned())), "a\\\\N\\tb\\nc\\rß");
        assert_eq!(written(Cell::Bytes(vec![0, 255, 16])), "\\\\x00ff10");
    }
}
