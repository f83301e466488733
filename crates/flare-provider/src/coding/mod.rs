//! Parts of a feed as bytes, for engines that keep them so: what the model has comes in, short bytes go out, and back.
//! All are stored, so none of these forms may ever change. `rings` is what doorbells say, which nobody keeps.

pub mod bits;
pub mod filtering;
pub mod position;
pub mod rings;
pub mod varint;
