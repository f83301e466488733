//! Who sweeps what nobody needs: an epoch comes in, and from then on no other one removes anything. Whoever removes something
//! holds the number until it is durable, so that the next sweeper waits for it.

use flare_provider::{ErrorKind, ProviderError};

use crate::connect::Session;
use crate::documents::row::{number, signed};
use crate::error::Work;

/// From now on this one.
pub(crate) async fn begin(session: &Session, operation: &'static str, sweeper: u64) -> Work<()> {
    let begin =
        session.prepare("UPDATE numbers SET value = $1 WHERE name = 'sweeper' AND value <= $1").await?;
    match session.client.execute(&begin, &[&signed(sweeper)]).await? {
        0 => refuse_others(session, operation, sweeper).await,
        _ => Ok(()),
    }
}

/// Whether someone else sweeps by now; within the transaction that removes something, and before it does.
pub(crate) async fn refuse_others(session: &Session, operation: &'static str, sweeper: u64) -> Work<()> {
    let hold = session.prepare("SELECT value FROM numbers WHERE name = 'sweeper' FOR SHARE").await?;
    let present = number(&session.client.query_one(&hold, &[]).await?, 0)?;
    if present == sweeper {
        return Ok(());
    }
    let detail = format!("epoch {sweeper} sweeps no more: {present} does");
    Err(ProviderError::new(ErrorKind::Fenced, operation, detail).into())
}
