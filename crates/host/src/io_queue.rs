//! What a queued device needs of a queue of the kernel.

use uflip_core::{Error, Io, Mode, Nanos, Result, ZoneReport};

use crate::buffer::Pool;
use crate::direct::DirectDevice;
use crate::inflight::InflightTable;

/// A queue of the kernel, which executes the I/Os of a a queued device.
pub trait IoQueue: Sized + Send {
    /// Whether a flush after every N-th write is possible while nothing else is outstanding.
    const FLUSHES: bool;

    /// Open another queue to the same target, for the handle `direct`.
    ///
    /// # Errors
    /// If the kernel does not provide it.
    fn open_another(&self, direct: &mut DirectDevice, depth: u32) -> Result<Self>;

    /// Use the memory of `pool` from now on; nothing is outstanding.
    fn attach(&mut self, pool: &Pool);

    /// Return whether I/Os of this mode enter the queue; others are blocking calls.
    fn accepts(mode: Mode) -> bool;

    /// Queue `io`, with its data at `memory`.
    ///
    /// # Errors
    /// If the kernel cannot be entered to make space.
    fn push(
        &mut self,
        slot: u32,
        io: &Io,
        memory: *mut u8,
        direct: &DirectDevice,
    ) -> std::io::Result<()>;

    /// Return the number of entries that are not yet submitted to the kernel.
    fn queued(&self) -> usize;

    /// Submit the queued entries, and wait for `completions`.
    ///
    /// # Errors
    /// Any error of the kernel.
    fn enter(&mut self, completions: usize) -> std::io::Result<()>;

    /// Submit the queued entries, and wait for a completion, at most for `timeout`.
    ///
    /// # Errors
    /// Any error of the kernel.
    fn enter_until(&mut self, timeout: Nanos) -> std::io::Result<()>;

    /// Return whether completions wait in the kernel until it is entered.
    fn holds_completions(&mut self) -> bool;

    /// Complete the I/Os of all present completions.
    fn reap(&mut self, table: &mut InflightTable);

    /// Return the error of a failed I/O, from the number that was returned for it.
    fn io_error(&self, direct: &DirectDevice, io: &Io, number: i32) -> Error;

    /// Return the zones of the target.
    ///
    /// # Errors
    /// Any error of the operating system or the drive.
    fn zones(&self, direct: &DirectDevice) -> Result<Option<ZoneReport>>;

    /// Release the target: the kernel frees a queue asynchronously and holds its files until then,
    /// so that the next opener of the device would find it in use.
    fn release(&mut self);
}
