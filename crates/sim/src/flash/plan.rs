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

use std::ops::Range;

use super::geometry::{BlockIdx, PageAddress, PageAddresses};
use crate::collections::bits;

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
    /// Move pages one after the other, reading ahead. A page without a source is the parity of those before it.
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
    /// Program the parity of pages that lie on other dies. It begins together with the host's page before it,
    /// and nothing waits for it.
    Parity(PageAddress),
}

impl Cmd {
    /// Return whether it serves the host, and not the firmware.
    #[inline]
    pub(crate) fn is_of_host(&self) -> bool {
        matches!(self, Cmd::Read(_) | Cmd::Program { .. } | Cmd::Parity(_))
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

    /// Program the parity of preceding pages at `to`.
    pub(crate) fn parity(&mut self, to: PageAddress) {
        self.set_host_command(Cmd::Parity(to));
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

    /// [`FlashPlan::copy`] several pages as one stream; those without a source hold parity.
    pub(crate) fn copy_stream(&mut self, pages: &[Move]) {
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

    // The blocks that a plan concerns: two plans without a common block may be executed in parallel.

    /// Record the blocks of the plan `requested`, which this plan executes with replaced blocks.
    pub(crate) fn record_requested(&mut self, requested: &FlashPlan) {
        requested.blocks(|block| self.requested.push(block));
    }

    /// Call `each` for all blocks that the plan reads, programs or erases; also with the FTL's block numbers,
    /// if the content of the flash is tracked by those.
    pub(crate) fn blocks(&self, mut each: impl FnMut(BlockIdx)) {
        self.requested.iter().for_each(|block| each(*block));
        for command in self.commands() {
            match *command {
                Cmd::Read(at)
                | Cmd::Parity(at)
                | Cmd::LoadMap(at)
                | Cmd::ProgramMap(at)
                | Cmd::FailedRead(at)
                | Cmd::FailedProgram(at) => each(at.block),
                Cmd::Program { to, merge_from } => {
                    each(to.block);
                    merge_from.into_iter().for_each(|merge_from| each(merge_from.block));
                }
                Cmd::Copy { from, to } | Cmd::CopySet { from, to, .. } => {
                    each(from.block);
                    each(to.block);
                }
                Cmd::CopyRow(row) => {
                    for (from, to) in self.row(row).moves() {
                        each(from.block);
                        each(to.block);
                    }
                }
                Cmd::CopyStream(pages) | Cmd::StoreMap(pages) => {
                    for moved in self.moves(pages) {
                        each(moved.to.block);
                        moved.from.into_iter().for_each(|from| each(from.block));
                    }
                }
                Cmd::Erase { block, .. } => each(block),
                Cmd::Count(_) | Cmd::Barrier | Cmd::List(_) | Cmd::Settle => {}
            }
        }
    }
}

// Page moves that plans store beside their commands.

/// A range of the data that a plan stores beside its commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Span")]
pub(crate) struct PlanSpan {
    first: u32,
    length: u32,
}

/// The index of a row in a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct RowIdx(pub(super) u32);

/// A page to program, and the page that it is copied from; `None`: from memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Move {
    pub(crate) from: Option<PageAddress>,
    pub(crate) to: PageAddress,
}

impl PlanSpan {
    pub(super) fn new(first: usize, end: usize) -> PlanSpan {
        PlanSpan { first: first as u32, length: (end - first) as u32 }
    }

    /// Return the range as indices.
    #[inline]
    pub(super) fn range(self) -> Range<usize> {
        let first = self.first as usize;
        first..first + self.length as usize
    }
}

/// At most 64 pages that move from their offset in one unit to their offset in another: the lowest bit of
/// `pages` stands for the first offset of both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Row")]
pub(crate) struct PageRow {
    pub(crate) from: PageAddresses,
    pub(crate) to: PageAddresses,
    pub(crate) pages: u64,
}

/// Consecutive pages of a row within one block, from `first` on, that move to the same offsets of another
/// block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RowPiece {
    pub(crate) from: BlockIdx,
    pub(crate) to: BlockIdx,
    pub(crate) first: u32,
    pub(crate) pages: u32,
}

impl PageRow {
    /// Return the source and the target of each page, in order.
    #[inline]
    pub(crate) fn moves(&self) -> impl Iterator<Item = (PageAddress, PageAddress)> + use<> {
        let PageRow { from, to, pages } = *self;
        let length = 64 - pages.leading_zeros() as usize;
        let pairs = (0..length).zip(from.zip(to));
        pairs.filter(move |(at, _)| pages >> at & 1 == 1).map(|(_, pairs)| pairs)
    }

    /// Return the moves plane by plane; `None` in place of moves that do not form a [`RowPiece`].
    #[inline]
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Option<RowPiece>> + use<> {
        let PageRow { from, to, pages } = *self;
        let planes = from.planes;
        let aligned =
            (from.plane_offset, from.page, planes) == (to.plane_offset, to.page, to.planes);
        // The pages on the plane that has the first of them.
        let every = (0..64).step_by(planes as usize).fold(0, |every: u64, at| every | 1 << at);
        let of_plane = (0..planes.min(64)).map(move |at| (at, pages & (every << at)));
        of_plane.filter(|(_, pages)| *pages != 0).map(move |(at, pages)| {
            let (first, count) = (pages.trailing_zeros(), pages.count_ones());
            // As many consecutive pages as possible.
            let dense = every & u64::MAX >> (63 - (count - 1) * planes);
            let is_dense = pages >> first == dense;
            // Divides only if necessary.
            let before = if first == at { 0 } else { (first - at) / planes };
            let next = from.plane_offset + at >= planes;
            let plane = from.plane_offset + at - if next { planes } else { 0 };
            let page = from.page + before + u32::from(next);
            let ends_inside = page + count <= from.pages_per_block;
            let block = |addresses: &PageAddresses| {
                let plane = addresses.first_plane + plane * addresses.planes_apart;
                BlockIdx(plane * addresses.blocks_per_plane + addresses.block)
            };
            let piece = RowPiece { from: block(&from), to: block(&to), first: page, pages: count };
            (aligned && is_dense && ends_inside).then_some(piece)
        })
    }
}

// Events that plans count.

/// An event that is counted when it is decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Counted {
    /// A log block was chosen to be reclaimed.
    Reclaim,
    /// A merge was done.
    Merge(Merge),
    /// A lookup in the cached part of the map, and whether it was a hit.
    MapLookup(bool),
}

/// The kind of a merge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Merge {
    /// The log block holds every page, each at its own offset: it becomes the data block.
    Switch,
    /// The log block holds the first pages at their own offsets; the others are copied to it.
    Partial,
    /// The newest version of every page is copied to a new block.
    Full,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn addresses(planes: u32, block: u32, page: u32, turn: u32) -> PageAddresses {
        let (planes_apart, first_plane, blocks_per_plane, pages_per_block) = (2, 1, 8, 16);
        let turn = turn % planes;
        PageAddresses {
            first_plane,
            planes_apart,
            planes,
            blocks_per_plane,
            pages_per_block,
            block,
            page,
            plane_offset: turn,
        }
    }

    proptest! {
        /// Moves plane by plane equal moves page by page, in the order of each plane.
        #[test]
        fn row_pieces_match_moves(
            planes in 1u32..9, page in (0u32..16, 0u32..2), turn in (0u32..8, 0u32..2), pages in any::<u64>(),
            holes in any::<bool>(), length in 1u32..64,
        ) {
            let from = addresses(planes, 2, page.0, turn.0);
            let to = addresses(planes, 5, (page.0 + page.1).min(15), turn.0 + turn.1);
            let pages = if holes { pages } else { u64::MAX >> (64 - length) };
            let row = PageRow { from, to, pages };
            prop_assert_eq!(row.moves().count(), pages.count_ones() as usize);
            let pieces: Option<Vec<RowPiece>> = row.pieces().collect();
            let Some(pieces) = pieces else { return Ok(()) };
            for piece in &pieces {
                let of_piece = row.moves().filter(|(from, _)| from.block == piece.from);
                let moves: Vec<(PageAddress, PageAddress)> = of_piece.collect();
                prop_assert_eq!(moves.len(), piece.pages as usize);
                for (page, (from, to)) in (piece.first..).zip(&moves) {
                    prop_assert_eq!(to.block, piece.to);
                    prop_assert_eq!(from.page.0, from.block.0 * 16 + page);
                    prop_assert_eq!(to.page.0, to.block.0 * 16 + page);
                }
            }
            prop_assert_eq!(pieces.iter().map(|piece| piece.pages).sum::<u32>(), pages.count_ones());
        }
    }

    #[test]
    fn whole_cluster_is_split_into_pieces() {
        let row = PageRow { from: addresses(4, 2, 3, 1), to: addresses(4, 5, 3, 1), pages: 0xffff };
        let pieces: Vec<_> = row.pieces().collect();
        assert_eq!(pieces.len(), 4);
        assert!(pieces.iter().all(|piece| piece.is_some_and(|piece| piece.pages == 4)));
        let other = PageRow { to: addresses(4, 5, 4, 1), ..row };
        assert!(other.pieces().all(|piece| piece.is_none()));
    }
}
