//! Plans: what an FTL wants of the flash, as a value.
//!
//! ```text
//! read the map │ barrier │ copy  copy  copy │ barrier │ erase  erase │ barrier │ program
//!                          └ side by side ┘            └ side by side ┘
//! ```
//!
//! An FTL that merges decides, and writes down what it has decided; it sees no clock and touches no cell.
//! Whoever has the plan does it ([`Flash::carry_out`](super::media::Flash::carry_out)), and whoever keeps
//! the time charges it. Commands take effect in the order of the plan. Those between two barriers begin
//! together: their dies decide what runs at the same time and what after another.

use crate::collections::bits;
pub(crate) use crate::flash::counted::{Counted, Merge};
use crate::flash::geometry::{BlockIdx, Place};
pub(crate) use crate::flash::moves::Move;
use crate::flash::moves::{Row, RowIdx, Span};

/// What a merging FTL asks for. With a tag as wide as what follows: behind one of a byte everything is
/// moved together with the gap, at odd addresses, and waits for what was stored just before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[repr(u32)]
pub(crate) enum Cmd {
    /// Read a page for the host.
    Read(Place),
    /// Program `to` with data of the host; the rest of the page comes from `rest` where given. Begins when
    /// everything of the firmware before it has ended; what follows of that begins behind it.
    Program {
        to: Place,
        rest: Option<Place>,
    },
    /// Move a page.
    Copy {
        from: Place,
        to: Place,
    },
    /// Move several pages of a block to the same places of another. `from` and `to` are the first pages of
    /// the blocks.
    CopySet {
        from: Place,
        to: Place,
        set: Span,
    },
    /// Move pages of a unit to their places in another, in order, as [`Cmd::Copy`] does each.
    CopyRow(RowIdx),
    /// Move pages one after the other, reading ahead.
    CopyStream(Span),
    /// Erase a block, which takes so much longer than a new one.
    Erase {
        block: BlockIdx,
        extra_ns: u64,
    },
    /// The firmware stores its map in a page.
    ProgramMap(Place),
    /// Read a page of the map.
    LoadMap(Place),
    /// Program pages of the map one after the other, reading ahead what has not changed of them.
    StoreMap(Span),
    /// Read a page that has to be read again, or program one that has to be programmed elsewhere. What an
    /// FTL asks for has none; what is done on flash that wears out may.
    FailedRead(Place),
    FailedProgram(Place),
    /// Program the list of the plane of this page, of what is not to be used; it is kept what is on flash.
    List(Place),
    /// Takes no time.
    Count(Counted),
    /// What follows begins when everything before has ended.
    Barrier,
    /// And when all programs have that were asked for before, where it is kept what is on flash.
    Settle,
}

impl Cmd {
    /// Whether it serves the host, and not the firmware.
    #[inline]
    pub(crate) fn is_of_host(&self) -> bool {
        matches!(self, Cmd::Read(_) | Cmd::Program { .. })
    }
}

/// Commands in order. Kept and filled again, so that nothing is allocated for a write.
#[derive(Clone, Default, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Plan {
    commands: Vec<Cmd>,
    /// Which pages sets have, 64 a word.
    words: Vec<u64>,
    /// What streams move.
    moves: Vec<Move>,
    rows: Vec<Row>,
    /// Where it is kept what is on flash: a record of every page that is programmed and every block that is
    /// erased, in order.
    records: Vec<u32>,
    /// The blocks that its FTL asked for, where others stand in for them and that is kept.
    pub(super) asked: Vec<BlockIdx>,
    /// So many commands take time; and no command of a merge, or on the map, comes after so many.
    timed: u32,
    merges_until: u32,
}

impl Plan {
    /// Plan something else.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.commands.clear();
        self.words.clear();
        self.moves.clear();
        self.rows.clear();
        self.records.clear();
        self.asked.clear();
        (self.timed, self.merges_until) = (0, 0);
    }

    /// The block that is erased first.
    pub(crate) fn erases(&self) -> Option<BlockIdx> {
        self.commands.iter().find_map(|command| match command {
            Cmd::Erase { block, .. } => Some(*block),
            _ => None,
        })
    }

    /// The command of the host, where nothing else takes time.
    #[inline]
    pub(crate) fn only(&self) -> Option<Cmd> {
        if self.timed != 1 || self.merges_until > 0 {
            return None;
        }
        self.commands.iter().copied().find(Cmd::is_of_host)
    }

    /// Whether nothing takes time.
    pub(crate) fn is_timeless(&self) -> bool {
        self.timed == 0
    }

    /// No merge begins after so many commands, nor anything else that the firmware does itself.
    #[inline]
    pub(crate) fn merges_until(&self) -> usize {
        self.merges_until as usize
    }

    /// Something of a merge, or on the map.
    #[inline]
    fn merge(&mut self, command: Cmd) {
        self.commands.push(command);
        self.timed += 1;
        self.merges_until = self.commands.len() as u32;
    }

    /// Something of the host.
    #[inline]
    fn host(&mut self, command: Cmd) {
        self.commands.push(command);
        self.timed += 1;
    }

    /// A record of every page that is programmed and every block that is erased, in order, where it is kept
    /// what is on flash.
    #[inline]
    pub(crate) fn records(&self) -> &[u32] {
        &self.records
    }

    /// See [`Plan::records`].
    pub(crate) fn keep_records(&mut self, records: Vec<u32>) {
        self.records = records;
    }

    /// What is to be done, in order.
    #[inline]
    pub(crate) fn commands(&self) -> &[Cmd] {
        &self.commands
    }

    /// The pages of a set, 64 a word.
    #[inline]
    pub(crate) fn words(&self, set: Span) -> &[u64] {
        &self.words[set.range()]
    }

    /// What a stream moves.
    #[inline]
    pub(crate) fn moves(&self, stream: Span) -> &[Move] {
        &self.moves[stream.range()]
    }

    #[inline]
    pub(crate) fn row(&self, row: RowIdx) -> &Row {
        &self.rows[row.0 as usize]
    }

    /// How many merges it has.
    pub(crate) fn merges(&self) -> u64 {
        let merges = |command: &&Cmd| matches!(command, Cmd::Count(Counted::Merge(_)));
        self.commands.iter().filter(merges).count() as u64
    }

    /// Read `from` for the host.
    #[inline]
    pub(crate) fn read(&mut self, from: Place) {
        self.host(Cmd::Read(from));
    }

    /// Program `to` with host data; the rest of the page comes from `rest` where given.
    #[inline]
    pub(crate) fn program(&mut self, to: Place, rest: Option<Place>) {
        self.host(Cmd::Program { to, rest });
    }

    /// Move the page `from` to `to`.
    #[inline]
    pub(crate) fn copy(&mut self, from: Place, to: Place) {
        self.merge(Cmd::Copy { from, to });
    }

    /// [`Plan::copy`] of several pages of a block to the same places of another: those that `set` has, of
    /// which `first` and the `pages` that follow stand for the pages of the block. `from` and `to` are the
    /// first pages of the blocks.
    #[inline]
    pub(crate) fn copy_set(
        &mut self,
        from: Place,
        to: Place,
        set: &[u64],
        first: usize,
        pages: usize,
    ) {
        let begin = self.words.len();
        let word = |at: usize| bits::word(set, first + at, (pages - at).min(64));
        self.words.extend((0..pages).step_by(64).map(word));
        let set = Span::new(begin, self.words.len());
        self.merge(Cmd::CopySet { from, to, set });
    }

    /// [`Plan::copy`] of each page of `row`, in order.
    #[inline]
    pub(crate) fn copy_row(&mut self, row: Row) {
        self.rows.push(row);
        self.merge(Cmd::CopyRow(RowIdx(self.rows.len() as u32 - 1)));
    }

    /// [`Plan::copy`] of several pages, each from the first place to the second, as one stream.
    pub(crate) fn copy_stream(&mut self, pages: &[(Place, Place)]) {
        let moves = pages.iter().map(|(from, to)| Move { from: Some(*from), to: *to });
        let stream = self.keep(moves);
        self.merge(Cmd::CopyStream(stream));
    }

    /// The same of pages that are written down as plans do.
    pub(crate) fn copy_stream_of(&mut self, pages: &[Move]) {
        let stream = self.keep(pages.iter().copied());
        self.merge(Cmd::CopyStream(stream));
    }

    fn keep(&mut self, moves: impl Iterator<Item = Move>) -> Span {
        let begin = self.moves.len();
        self.moves.extend(moves);
        Span::new(begin, self.moves.len())
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

    /// Read `from` in vain.
    pub(crate) fn read_in_vain(&mut self, from: Place) {
        self.merge(Cmd::FailedRead(from));
    }

    /// Program `to` in vain.
    pub(crate) fn program_in_vain(&mut self, to: Place) {
        self.merge(Cmd::FailedProgram(to));
    }

    /// Program the list of what is not to be used, of the plane of `at`.
    pub(crate) fn list(&mut self, at: Place) {
        self.merge(Cmd::List(at));
    }

    /// What can be counted as it is.
    pub(crate) fn count(&mut self, counted: Counted) {
        self.commands.push(Cmd::Count(counted));
    }

    /// The firmware stores its map on `to`.
    pub(crate) fn program_map(&mut self, to: Place) {
        self.merge(Cmd::ProgramMap(to));
    }

    /// Read a page of the map.
    pub(crate) fn load_map(&mut self, from: Place) {
        self.merge(Cmd::LoadMap(from));
    }

    /// Program pages of the map; entries that have not changed come from a second place where given.
    pub(crate) fn store_map(&mut self, pages: &[(Place, Option<Place>)]) {
        let stream = self.keep(pages.iter().map(|(to, from)| Move { from: *from, to: *to }));
        self.merge(Cmd::StoreMap(stream));
    }

    /// The same of pages that are written down as plans do.
    pub(crate) fn store_map_of(&mut self, pages: &[Move]) {
        let stream = self.keep(pages.iter().copied());
        self.merge(Cmd::StoreMap(stream));
    }

    /// A log block was chosen to be reclaimed.
    #[inline]
    pub(crate) fn begin_reclaim(&mut self) {
        self.count(Counted::Reclaim);
    }

    /// A merge of this kind is done.
    #[inline]
    pub(crate) fn count_merge(&mut self, merge: Merge) {
        self.count(Counted::Merge(merge));
    }

    /// The part of the map in memory was asked for an entry.
    #[inline]
    pub(crate) fn count_map_lookup(&mut self, hit: bool) {
        self.count(Counted::MapLookup(hit));
    }

    /// What follows begins when all that was asked for so far has ended.
    #[inline]
    pub(crate) fn barrier(&mut self) {
        self.commands.push(Cmd::Barrier);
    }

    /// The same, and programs of other plans.
    pub(crate) fn settle(&mut self) {
        self.commands.push(Cmd::Settle);
    }
}
