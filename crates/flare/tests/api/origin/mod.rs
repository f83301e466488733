//! What origins say: documents and resources, one by one and in bulk, and what is refused.

pub mod as_written;
pub mod bulk;
pub mod cut_requests;
pub mod documents;
pub mod errors_and_pages;
pub mod limits;
pub mod resources;
pub mod tombstones;
