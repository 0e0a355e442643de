//! The transport of commands to a drive: admin commands and single I/O commands by ioctl, queued I/O
//! commands by io_uring passthrough (`IORING_OP_URING_CMD`).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use uflip_core::Nanos;

use super::command::Command;
use super::status::format_status;
use crate::queued_device;

/// `_IO('N', 0x40)`: returns the number of the namespace.
const NVME_IOCTL_ID: u32 = 0x4E40;
/// `_IOWR('N', 0x41, struct nvme_passthru_cmd)`, and 0x43 for I/O commands.
const NVME_IOCTL_ADMIN_CMD: u32 = 0xC048_4E41;
const NVME_IOCTL_IO_CMD: u32 = 0xC048_4E43;
/// `_IOWR('N', 0x80, struct nvme_uring_cmd)`.
pub(crate) const NVME_URING_CMD_IO: u32 = 0xC048_4E80;

/// The failure of a command outside of a queue.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// The kernel did not send it.
    Os(io::Error),
    /// The drive returned this status.
    Status(u32),
}

impl From<CommandError> for io::Error {
    fn from(error: CommandError) -> io::Error {
        match error {
            CommandError::Os(error) => error,
            CommandError::Status(status) => io::Error::other(format_status(status)),
        }
    }
}

/// Execute an admin command that reads `bytes`, and return them.
pub(crate) fn read(
    drive: &dyn Transport,
    command: Command,
    bytes: usize,
) -> Result<Vec<u8>, CommandError> {
    let mut data = vec![0; bytes];
    drive.admin(command, &mut data)?;
    Ok(data)
}

/// Sends commands to a drive.
pub(crate) trait Transport: Send + Sync {
    /// Execute an admin command that reads into `data`.
    fn admin(&self, command: Command, data: &mut [u8]) -> Result<(), CommandError>;

    /// Execute an I/O command that reads into `data`.
    fn io(&self, command: Command, data: &mut [u8]) -> Result<(), CommandError>;

    /// Open a queue of `depth` I/O commands.
    fn queue(&self, depth: u32, polled: bool) -> io::Result<Box<dyn CommandQueue>>;
}

/// A queue of I/O commands. Each has a tag, which returns with its completion.
pub(crate) trait CommandQueue: Send {
    /// Queue a command whose memory is valid until it completes.
    fn push(&mut self, tag: u32, command: &Command) -> io::Result<()>;

    /// Submit the queued commands, and wait for `completions`.
    fn enter(&mut self, completions: usize) -> io::Result<()>;

    /// Submit the queued commands, and wait for a completion, at most for `timeout`.
    fn enter_until(&mut self, timeout: Nanos) -> io::Result<()>;

    /// Return whether completions wait in the kernel until it is entered.
    fn holds_completions(&mut self) -> bool;

    /// Append tag and result of all present completions to `found`: 0, a status, or a negative
    /// error number.
    fn drain(&mut self, found: &mut Vec<(u32, i32)>);
}

/// The kernel, through an open character or block device of a namespace.
pub(crate) struct KernelTransport {
    file: Arc<File>,
}

impl KernelTransport {
    pub(crate) fn new(file: File) -> KernelTransport {
        KernelTransport { file: Arc::new(file) }
    }

    /// Return the number of the namespace behind the file.
    pub(crate) fn namespace_id(&self) -> io::Result<u32> {
        // SAFETY: an open descriptor; the call has no argument.
        let number = unsafe { libc::ioctl(self.file.as_raw_fd(), NVME_IOCTL_ID as _) };
        u32::try_from(number).map_err(|_| io::Error::last_os_error())
    }

    fn call(
        &self,
        request: u32,
        mut command: Command,
        data: &mut [u8],
    ) -> Result<(), CommandError> {
        (command.addr, command.data_len) = (data.as_mut_ptr() as u64, data.len() as u32);
        // SAFETY: an open descriptor, a command in the kernel's layout, and a buffer of `data_len`
        // bytes at `addr`, which outlives the call.
        let status = unsafe { libc::ioctl(self.file.as_raw_fd(), request as _, &raw mut command) };
        match status {
            0 => Ok(()),
            status if status < 0 => Err(CommandError::Os(io::Error::last_os_error())),
            status => Err(CommandError::Status(status as u32)),
        }
    }
}

impl Transport for KernelTransport {
    fn admin(&self, command: Command, data: &mut [u8]) -> Result<(), CommandError> {
        self.call(NVME_IOCTL_ADMIN_CMD, command, data)
    }

    fn io(&self, command: Command, data: &mut [u8]) -> Result<(), CommandError> {
        self.call(NVME_IOCTL_IO_CMD, command, data)
    }

    fn queue(&self, depth: u32, polled: bool) -> io::Result<Box<dyn CommandQueue>> {
        let mut builder = CommandRing::builder();
        if polled {
            builder.setup_iopoll();
        } else {
            builder.setup_coop_taskrun().setup_taskrun_flag();
        }
        let ring = builder.build(depth)?;
        ring.submitter().register_files(&[self.file.as_raw_fd()])?;
        Ok(Box::new(Passthrough { ring }))
    }
}

/// Submission entries of 128 bytes hold a whole command; completion entries of 32 bytes its result.
type CommandRing = IoUring<squeue::Entry128, cqueue::Entry32>;

struct Passthrough {
    ring: CommandRing,
}

// SAFETY: the ring is used by one thread at a time; its memory maps and descriptor belong to the
// process.
unsafe impl Send for Passthrough {}

impl CommandQueue for Passthrough {
    fn push(&mut self, tag: u32, command: &Command) -> io::Result<()> {
        let entry = opcode::UringCmd80::new(types::Fixed(0), NVME_URING_CMD_IO);
        let entry = entry.cmd(command.entry()).build().user_data(u64::from(tag));
        // SAFETY: the caller keeps the memory valid; the descriptor is registered.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.enter(0)?;
        }
        Ok(())
    }

    fn enter(&mut self, completions: usize) -> io::Result<()> {
        queued_device::enter(&self.ring, completions)
    }

    fn enter_until(&mut self, timeout: Nanos) -> io::Result<()> {
        queued_device::enter_until(&self.ring, timeout)
    }

    fn holds_completions(&mut self) -> bool {
        self.ring.submission().taskrun()
    }

    fn drain(&mut self, found: &mut Vec<(u32, i32)>) {
        let completions = self.ring.completion();
        found.extend(completions.map(|entry| (entry.user_data() as u32, entry.result())));
    }
}

impl Drop for Passthrough {
    /// The kernel frees a ring asynchronously and holds its files until then.
    fn drop(&mut self) {
        let _ = self.ring.submitter().unregister_files();
    }
}
