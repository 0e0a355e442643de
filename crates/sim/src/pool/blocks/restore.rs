//! Recovery of the block accounting after a power loss.

use super::{Blocks, OpenBlock, PageStream, first_usable};
use crate::flash::geometry::{BlockIdx, Ppn};

/// The use of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BlockUse {
    /// Erased and free.
    Free,
    /// Open in this role; its next page is `next`.
    Open { role: u8, next: Ppn },
    /// Full; it was last opened in this role.
    Filled { role: u8 },
    /// Erased, but to be checked for worn pages before it is free.
    Erased,
    /// Retired.
    Bad,
}

impl Blocks {
    /// Reset the accounting to blocks with the given use and erase count. `keys` order the free blocks. The
    /// caller then sets which pages are valid, and then which blocks are closed.
    pub(crate) fn restore(&mut self, uses: &[BlockUse], wear: &[u32], keys: &[u32]) {
        self.free.clear();
        self.supply_changes += 1;
        self.free_in.fill(0);
        (self.free_blocks, self.free_pages) = (0, 0);
        for (block, used) in (0..).map(BlockIdx).zip(uses) {
            let at = block.0 as usize;
            self.wear[at] = wear[at];
            match *used {
                BlockUse::Free => self.restore_free(block, keys[at]),
                BlockUse::Erased | BlockUse::Bad => {}
                BlockUse::Filled { role } => {
                    self.role_of.get_mut(at).into_iter().for_each(|stream_role| *stream_role = role)
                }
                BlockUse::Open { role, next } => self.restore_open(block, role, next),
            }
        }
    }

    fn restore_free(&mut self, block: BlockIdx, key: u32) {
        let plane = self.geometry.plane_of(block).0;
        self.free_in[plane as usize] += 1;
        self.free.put_worn(plane, block.0, key);
        self.free_blocks += 1;
        self.free_pages += self.usable(block);
    }

    fn restore_open(&mut self, block: BlockIdx, role: u8, next: Ppn) {
        let plane = self.geometry.plane_of(block);
        let index = plane.0 as usize * self.streams + usize::from(role);
        let end = self.end_of(block, role).0;
        self.open[index] = OpenBlock { next: next.0, end, block: block.0 };
        self.role_of
            .get_mut(block.0 as usize)
            .into_iter()
            .for_each(|stream_role| *stream_role = role);
        let retired = self.expect_valid_from(next.0, end);
        self.counts[block.0 as usize] += (end - next.0 - retired) as u16;
        self.open_pages[usize::from(role)] += end - next.0 - retired;
    }

    /// Return the first usable page of `block` from `next` on, if it is opened in `role` and such a page
    /// exists.
    pub(crate) fn next_usable_page(&self, block: BlockIdx, role: u8, next: Ppn) -> Option<Ppn> {
        let end = self.end_of(block, role).0;
        let next = match self.retired.is_empty() {
            true => next.0,
            false => first_usable(&self.retired, next.0.min(end), end),
        };
        (next < end).then_some(Ppn(next))
    }

    /// Return the role of `block`, as far as it is recorded, and the number of its fill.
    pub(crate) fn label(&self, block: BlockIdx) -> (u8, u64) {
        let first = self.geometry.plane_of(block).0 as usize * self.streams;
        let open = &self.open[first..first + self.streams];
        let is_open = |open: &OpenBlock| open.block == block.0 && open.next != open.end;
        match open.iter().position(is_open) {
            Some(role) => (role as u8, self.fills + 1),
            None => (self.role_of(block), self.closed_at[block.0 as usize]),
        }
    }

    /// Return the end of the pages that take data in `block`, if it is opened in `role`.
    pub(crate) fn end_of(&self, block: BlockIdx, role: u8) -> Ppn {
        let pages = self.pages_of(usize::from(role)).unwrap_or(self.geometry.data_pages());
        Ppn(self.geometry.first_page(block).0 + pages)
    }

    /// Return the kind of page that an open block in `role` takes.
    pub(crate) fn stream_in(&self, role: u8, has_mapping: bool) -> PageStream {
        if has_mapping && usize::from(role) == self.kind(PageStream::Mapping) {
            PageStream::Mapping
        } else if role < self.hosts {
            PageStream::Host
        } else {
            PageStream::Relocated
        }
    }
}
