//! Which version of Flare this is. The commit it was built from is known to the program alone: it changes with every
//! commit, and this crate should not be built anew for that.

use schemars::JsonSchema;
use serde::Serialize;

/// `<major>.<minor>.<patch>`.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// All of it for machines. The API's `GET /` and `/status` answer with the same fields.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// `<major>.<minor>.<patch>`.
    pub version: &'static str,
    /// The git commit.
    pub sha: &'static str,
    /// The time of the source.
    pub build_time: &'static str,
}
