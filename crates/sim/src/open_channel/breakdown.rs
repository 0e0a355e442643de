//! What the response time of one command was spent on, along the path of its last page.

use uflip_core::Breakdown;

/// One part per cause [ns]; they sum to the response time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FlashBreakdown {
    parts: [u64; FlashBreakdown::COUNT],
}

/// The causes, in the order of [`FlashBreakdown::CAUSES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// The submission path that all channels share, and waiting for it.
    Submission,
    /// The channel's own thread, and waiting for it.
    Dispatch,
    /// Another command has the channel.
    ChannelWait,
    /// The LUN is programming, erasing, reading for a command before this one.
    ProgramWait,
    EraseWait,
    ReadWait,
    /// The channel turns from one LUN to another.
    LunSwitch,
    /// Cells of this command's page are read.
    CellRead,
    /// This page's data on the channel and through the ECC.
    Transfer,
    /// Reading again what was disturbed by programs beside it.
    Retry,
    /// Cells of this command's page are programmed, or its block erased, before the answer.
    CellProgram,
    CellErase,
    /// The completion finds its way back to the host.
    Completion,
}

impl FlashBreakdown {
    const COUNT: usize = 13;

    #[inline]
    pub(crate) fn add(&mut self, cause: Cause, ns: u64) {
        self.parts[cause as usize] += ns;
    }
}

impl Breakdown for FlashBreakdown {
    const CAUSES: &'static [&'static str] = &[
        "submission_ns",
        "dispatch_ns",
        "channel_wait_ns",
        "program_wait_ns",
        "erase_wait_ns",
        "read_wait_ns",
        "lun_switch_ns",
        "cell_read_ns",
        "transfer_ns",
        "retry_ns",
        "cell_program_ns",
        "cell_erase_ns",
        "completion_ns",
    ];

    #[inline]
    fn parts(&self) -> &[u64] {
        &self.parts
    }
}
