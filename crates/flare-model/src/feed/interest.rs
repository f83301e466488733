//! What a client is interested in: asked by the rules at the moment of deciding, answered by whoever has the
//! document.

use super::Action;

/// The interest of one client in one document, as it is now.
pub trait Interest {
    /// Whether the client is to have the document, which is live. `None`: it cannot be told, and the client is
    /// left as it is.
    fn includes(&mut self) -> Option<bool>;

    /// Whether the client is to be told what was decided. `None` as above.
    fn tells(&mut self, action: Action) -> Option<bool>;
}

/// The interest of a client without filters.
#[derive(Clone, Copy, Debug)]
pub struct Everything;

impl Interest for Everything {
    #[inline]
    fn includes(&mut self) -> Option<bool> {
        Some(true)
    }

    #[inline]
    fn tells(&mut self, _: Action) -> Option<bool> {
        Some(true)
    }
}
