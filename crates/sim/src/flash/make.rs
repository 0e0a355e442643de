//! What a device is made of, as far as somebody would have to ask with every page.
//!
//! Most devices have planes, channels and a page map, and nothing else: no flash that wears out, no write cache, no
//! rings, buses or priorities, no map on flash, nobody who records what happens. That is known before the first
//! I/O. What every page passes is compiled twice, and the code for a [`Plain`] device does not ask for what it
//! does not have. Everything else goes the way of the [`Equipped`], which a plain device may go as well: both do
//! the same.

/// One or the other.
pub(crate) trait Make {
    /// There is nothing that a device need not have.
    const PLAIN: bool;
}

/// See [`Make::PLAIN`].
pub(crate) struct Plain;

/// Whatever there is.
pub(crate) struct Equipped;

impl Make for Plain {
    const PLAIN: bool = true;
}

impl Make for Equipped {
    const PLAIN: bool = false;
}
