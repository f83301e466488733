//! Which version of Flare this is. The commit it was built from is known to the program alone: it changes with every
//! commit, and this crate should not be built anew for that.

/// `<major>.<minor>.<patch>`.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
