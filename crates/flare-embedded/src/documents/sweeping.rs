//! Who sweeps what nobody needs: an epoch comes in, and from then on no other one removes anything.

use flare_provider::{ErrorKind, ProviderError};

use crate::desk::Desk;
use crate::error::Work;
use crate::meta;

/// From now on this one.
pub(super) fn begin(desk: &mut Desk<'_>, operation: &'static str, sweeper: u64) -> Work<()> {
    if (sweeper as i64) < meta::get(desk.connection, "sweeper")? {
        return refuse_others(desk, operation, sweeper);
    }
    meta::set(desk.connection, "sweeper", sweeper as i64)
}

/// Whether someone else sweeps by now; before anything is removed.
pub(super) fn refuse_others(desk: &mut Desk<'_>, operation: &'static str, sweeper: u64) -> Work<()> {
    let present = meta::get(desk.connection, "sweeper")? as u64;
    if present == sweeper {
        return Ok(());
    }
    let detail = format!("epoch {sweeper} sweeps no more: {present} does");
    Err(ProviderError::new(ErrorKind::Fenced, operation, detail).into())
}
