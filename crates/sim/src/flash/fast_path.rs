//! What a device is made of, as far as somebody would have to ask with every page.
//!
//! Most devices have planes, channels and a page map, and nothing else: no flash that wears out, no write cache, no
//! rings, buses or priorities, no map on flash, nobody who records what happens. That is known before the first
//! I/O. What every page passes is compiled twice, and the code for a [`Minimal`] device does not ask for what it
//! does not have. Everything else goes the way of the [`Full`], which a plain device may go as well: both do
//! the same.

/// One or the other.
pub(crate) trait FastPath {
    /// There is nothing that a device need not have.
    const MINIMAL: bool;
}

/// See [`FastPath::MINIMAL`].
pub(crate) struct Minimal;

/// Whatever there is.
pub(crate) struct Full;

impl FastPath for Minimal {
    const MINIMAL: bool = true;
}

impl FastPath for Full {
    const MINIMAL: bool = false;
}
