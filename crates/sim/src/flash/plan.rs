//! Plans: the flash operations that an FTL requests, as a value.
//!
//! ```text
//! read the map │ barrier │ copy  copy  copy │ barrier │ erase  erase │ barrier │ program
//!                          └ in parallel  ┘            └ in parallel  ┘
//! ```
//!
//! A merging FTL writes its decisions into a plan; it sees no clock and touches no cell. The flash executes
//! the plan ([`Flash::execute`](super::media::Flash::execute)), and the timeline charges its time.
//! Commands take effect in the order of the plan. Those between two barriers begin together: their dies
//! decide which run in parallel.

use crate::collections::bits;
pub(crate) use crate::flash::counted::{Counted, Merge};
use crate::flash::geometry::{BlockIdx, PageAddress};
pub(crate) use crate::flash::moves::Move;
use crate::flash::moves::{PageRow, PlanSpan, RowIdx};

/// A command of a merging FTL. The tag is as wide as the fields: after a tag of one byte everything would be
/// copied together with the padding, at odd addresses, and would wait for preceding stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[repr(u32)]
pub(crate) enum Cmd {
    /// Read a page for the host.
    Read(PageAddress),
    /// Program `to` with data of the host; the rest of the page comes from `merge_from` if given. It begins when
    /// all earlier commands of the firmware have ended, and later ones begin after it.
    Program {
        to: PageAddress,
        #[serde(rename = "rest")]
        merge_from: Option<PageAddress>,
    },
    /// Move a page.
    Copy {
        from: PageAddress,
        to: PageAddress,
    },
    /// Move several pages of a block to the same offsets of another. `from` and `to` are the first pages of
    /// the blocks.
    CopySet {
        from: PageAddress,
        to: PageAddress,
        set: PlanSpan,
    },
    /// Move pages of a unit to their offsets in another, in order, each like [`Cmd::Copy`].
    CopyRow(RowIdx),
    /// Move pages one after the other, reading ahead.
    CopyStream(PlanSpan),
    /// Erase a block; a worn one takes `extra_ns` longer than a new one.
    Erase {
        block: BlockIdx,
        extra_ns: u64,
    },
    /// Program a page of the firmware's map.
    ProgramMap(PageAddress),
    /// Read a mapping page.
    LoadMap(PageAddress),
    /// Program mapping pages one after the other, reading ahead their unchanged entries.
    StoreMap(PlanSpan),
    /// A read that must be retried, or a program that must be repeated elsewhere. FTLs never request them;
    /// executed plans on flash that wears out may contain them.
    FailedRead(PageAddress),
    FailedProgram(PageAddress),
    /// Program the list of defects of the plane of this page; only if the content of the flash is tracked.
    List(PageAddress),
    /// Takes no time.
    Count(Counted),
    /// Later commands begin when all earlier ones have ended.
    Barrier,
    /// Like a barrier, and also waits for all programs requested before, if the content of the flash is
    /// tracked.
    Settle,
}

impl Cmd {
    /// Return whether it serves the host, and not the firmware.
    #[inline]
    pub(crate) fn is_of_host(&self) -> bool {
        matches!(self, Cmd::Read(_) | Cmd::Program { .. })
    }
}

/// Commands in order. Cleared and refilled, so that a write allocates no memory.
#[derive(Clone, Default, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Plan")]
pub(crate) struct FlashPlan {
    commands: Vec<Cmd>,
    /// The pages of sets, 64 a word.
    words: Vec<u64>,
    /// The moves of streams.
    moves: Vec<Move>,
    rows: Vec<PageRow>,
    /// If the content of the flash is tracked: a record of every programmed page and every erased block, in
    /// order.
    records: Vec<u32>,
    /// The blocks that the FTL named, if they can be replaced by others and the content of the flash is
    /// tracked.
    #[serde(rename = "asked")]
    pub(super) requested: Vec<BlockIdx>,
    /// Number of commands that take time; and the number of commands after which the firmware requests no
    /// more.
    timed: u32,
    merges_until: u32,
}

impl FlashPlan {
    /// Clear the plan.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.commands.clear();
        self.words.clear();
        self.moves.clear();
        self.rows.clear();
        self.records.clear();
        self.requested.clear();
        (self.timed, self.merges_until) = (0, 0);
    }

    /// Return the block that is erased first.
    pub(crate) fn erases(&self) -> Option<BlockIdx> {
        self.commands.iter().find_map(|command| match command {
            Cmd::Erase { block, .. } => Some(*block),
            _ => None,
        })
    }

    /// Return the command of the host, if no other command takes time.
    #[inline]
    pub(crate) fn only(&self) -> Option<Cmd> {
        if self.timed != 1 || self.merges_until > 0 {
            return None;
        }
        self.commands.iter().copied().find(Cmd::is_of_host)
    }

    /// Return whether no command takes time.
    pub(crate) fn takes_no_time(&self) -> bool {
        self.timed == 0
    }

    /// Return the number of commands after which the firmware requests no merge or other work.
    #[inline]
    pub(crate) fn merges_until(&self) -> usize {
        self.merges_until as usize
    }

    /// Add a command of a merge, or on the map.
    #[inline]
    fn merge(&mut self, command: Cmd) {
        self.commands.push(command);
        self.timed += 1;
        self.merges_until = self.commands.len() as u32;
    }

    /// Add a command of the host.
    #[inline]
    fn set_host_command(&mut self, command: Cmd) {
        self.commands.push(command);
        self.timed += 1;
    }

    /// Return a record of every programmed page and every erased block, in order, if the content of the flash
    /// is tracked.
    #[inline]
    pub(crate) fn records(&self) -> &[u32] {
        &self.records
    }

    /// See [`FlashPlan::records`].
    pub(crate) fn set_records(&mut self, records: Vec<u32>) {
        self.records = records;
    }

    /// Return the commands, in order.
    #[inline]
    pub(crate) fn commands(&self) -> &[Cmd] {
        &self.commands
    }

    /// Return the pages of a set, 64 a word.
    #[inline]
    pub(crate) fn words(&self, set: PlanSpan) -> &[u64] {
        &self.words[set.range()]
    }

    /// Return the moves of a stream.
    #[inline]
    pub(crate) fn moves(&self, stream: PlanSpan) -> &[Move] {
        &self.moves[stream.range()]
    }

    #[inline]
    pub(crate) fn row(&self, row: RowIdx) -> &PageRow {
        &self.rows[row.0 as usize]
    }

    /// Return the number of merges.
    pub(crate) fn merges(&self) -> u64 {
        let merges = |command: &&Cmd| matches!(command, Cmd::Count(Counted::Merge(_)));
        self.commands.iter().filter(merges).count() as u64
    }

    /// Read `from` for the host.
    #[inline]
    pub(crate) fn read(&mut self, from: PageAddress) {
        self.set_host_command(Cmd::Read(from));
    }

    /// Program `to` with host data; the rest of the page comes from `merge_from` if given.
    #[inline]
    pub(crate) fn program(&mut self, to: PageAddress, merge_from: Option<PageAddress>) {
        self.set_host_command(Cmd::Program { to, merge_from });
    }

    /// Move the page `from` to `to`.
    #[inline]
    pub(crate) fn copy(&mut self, from: PageAddress, to: PageAddress) {
        self.merge(Cmd::Copy { from, to });
    }

    /// [`FlashPlan::copy`] several pages of a block to the same offsets of another. Bits `first..first + pages` of
    /// `set` select the pages of the block. `from` and `to` are the first pages of the blocks.
    #[inline]
    pub(crate) fn copy_set(
        &mut self,
        from: PageAddress,
        to: PageAddress,
        set: &[u64],
        first: usize,
        pages: usize,
    ) {
        let begin = self.words.len();
        let word = |at: usize| bits::word(set, first + at, (pages - at).min(64));
        self.words.extend((0..pages).step_by(64).map(word));
        let set = PlanSpan::new(begin, self.words.len());
        self.merge(Cmd::CopySet { from, to, set });
    }

    /// [`FlashPlan::copy`] each page of `row`, in order.
    #[inline]
    pub(crate) fn copy_row(&mut self, row: PageRow) {
        self.rows.push(row);
        self.merge(Cmd::CopyRow(RowIdx(self.rows.len() as u32 - 1)));
    }

    /// [`FlashPlan::copy`] several pages, each from its first address to its second, as one stream.
    pub(crate) fn copy_stream(&mut self, pages: &[(PageAddress, PageAddress)]) {
        let moves = pages.iter().map(|(from, to)| Move { from: Some(*from), to: *to });
        let stream = self.store_moves(moves);
        self.merge(Cmd::CopyStream(stream));
    }

    /// Like [`FlashPlan::copy_stream`], with pages in the form of a plan.
    pub(crate) fn copy_stream_of(&mut self, pages: &[Move]) {
        let stream = self.store_moves(pages.iter().copied());
        self.merge(Cmd::CopyStream(stream));
    }

    fn store_moves(&mut self, moves: impl Iterator<Item = Move>) -> PlanSpan {
        let begin = self.moves.len();
        self.moves.extend(moves);
        PlanSpan::new(begin, self.moves.len())
    }

    /// Erase `block`.
    #[inline]
    pub(crate) fn erase(&mut self, block: BlockIdx) {
        self.erase_worn(block, 0);
    }

    /// Erase `block`, which takes `extra_ns` longer than a new one.
    #[inline]
    pub(crate) fn erase_worn(&mut self, block: BlockIdx, extra_ns: u64) {
        self.merge(Cmd::Erase { block, extra_ns });
    }

    /// Record a read of `from` that must be retried.
    pub(crate) fn add_failed_read(&mut self, from: PageAddress) {
        self.merge(Cmd::FailedRead(from));
    }

    /// Record a failed program of `to`.
    pub(crate) fn add_failed_program(&mut self, to: PageAddress) {
        self.merge(Cmd::FailedProgram(to));
    }

    /// Program the list of defects of the plane of `at`.
    pub(crate) fn list(&mut self, at: PageAddress) {
        self.merge(Cmd::List(at));
    }

    /// Count an event.
    pub(crate) fn count(&mut self, counted: Counted) {
        self.commands.push(Cmd::Count(counted));
    }

    /// Program a page of the firmware's map at `to`.
    pub(crate) fn program_map(&mut self, to: PageAddress) {
        self.merge(Cmd::ProgramMap(to));
    }

    /// Read a mapping page.
    pub(crate) fn load_map(&mut self, from: PageAddress) {
        self.merge(Cmd::LoadMap(from));
    }

    /// Program mapping pages; their unchanged entries come from the second address if given.
    pub(crate) fn store_map(&mut self, pages: &[(PageAddress, Option<PageAddress>)]) {
        let stream = self.store_moves(pages.iter().map(|(to, from)| Move { from: *from, to: *to }));
        self.merge(Cmd::StoreMap(stream));
    }

    /// Like [`FlashPlan::store_map`], with pages in the form of a plan.
    pub(crate) fn store_map_of(&mut self, pages: &[Move]) {
        let stream = self.store_moves(pages.iter().copied());
        self.merge(Cmd::StoreMap(stream));
    }

    /// Count a log block as chosen to be reclaimed.
    #[inline]
    pub(crate) fn begin_reclaim(&mut self) {
        self.count(Counted::Reclaim);
    }

    /// Count a merge of this kind.
    #[inline]
    pub(crate) fn count_merge(&mut self, merge: Merge) {
        self.count(Counted::Merge(merge));
    }

    /// Count a lookup in the cached part of the map.
    #[inline]
    pub(crate) fn count_map_lookup(&mut self, hit: bool) {
        self.count(Counted::MapLookup(hit));
    }

    /// Make later commands wait until all earlier ones have ended.
    #[inline]
    pub(crate) fn barrier(&mut self) {
        self.commands.push(Cmd::Barrier);
    }

    /// Like [`FlashPlan::barrier`], and also wait for programs of other plans.
    pub(crate) fn settle(&mut self) {
        self.commands.push(Cmd::Settle);
    }
}
