//! The specialization for minimal devices: optional features are excluded at compile time.
//!
//! Most devices have only planes, channels and a page map. They have no flash that wears out, no write cache,
//! no rings, buses or priorities, no map on flash, and no recording. This is known before the first I/O. Code
//! that runs for every page is therefore compiled twice, and the code for a [`Minimal`] device does not check
//! for optional features. All other devices use the code for [`AllFeatures`], which a minimal device may use as
//! well: both give the same result.

/// The kind of device for which code is compiled.
pub(crate) trait FastPath {
    /// The device has no optional feature.
    const MINIMAL: bool;
}

/// A device without optional features; see [`FastPath::MINIMAL`].
pub(crate) struct Minimal;

/// A device with any features.
pub(crate) struct AllFeatures;

impl FastPath for Minimal {
    const MINIMAL: bool = true;
}

impl FastPath for AllFeatures {
    const MINIMAL: bool = false;
}
