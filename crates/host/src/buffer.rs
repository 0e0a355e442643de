//! What is written and where it is read to: page-aligned memory with known content.
//!
//! A compressing or deduplicating device answers differently to zeros, to the same block again, and
//! to data it cannot squeeze; so the content is a recorded parameter. `random` is incompressible,
//! and successive writes begin at different places of a larger pool, so that no two neighbours are
//! alike, without the cost of filling a buffer before every I/O (which moved a compressing target
//! by a factor of two in fio). Every sector of it carries the [`Brand`] of the medium. What is read
//! goes to a place of its own: it never becomes what is written.

use uflip_core::random::{self, SeedableRng, Xoshiro256PlusPlus};
use uflip_core::{Error, Result};

use crate::brand::Brand;

const PAGE: usize = 4096;
/// The pool is this much longer than the longest I/O: 256 different beginnings.
const POOL_SLACK: usize = 256 * PAGE;
/// Any seed does; it is fixed so that what was written can be told afterwards.
const CONTENT_SEED: u64 = 0x75_66_6c_69_70;

/// What is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Data {
    /// Incompressible.
    Random,
    /// All zeros.
    Zeros,
}

impl Data {
    /// The names of all contents.
    pub const NAMES: &'static [&'static str] = &["random", "zeros"];

    /// By name.
    ///
    /// # Errors
    /// An unknown name; the error lists the known ones.
    pub fn by_name(name: &str) -> Result<Data> {
        match name {
            "random" => Ok(Data::Random),
            "zeros" => Ok(Data::Zeros),
            _ => Err(Error::unknown("data content", name, Data::NAMES)),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Data::Random => "random",
            Data::Zeros => "zeros",
        }
    }
}

/// Page-aligned memory: the write pool, and behind it the read buffer.
pub(crate) struct Pool {
    memory: *mut u8,
    layout: std::alloc::Layout,
    longest: usize,
    /// How many places there are to read to.
    sinks: usize,
    turn: usize,
}

// SAFETY: the pool owns its memory and hands out pointers only through `&mut self`.
unsafe impl Send for Pool {}

impl Pool {
    /// A pool for I/Os of up to `longest` bytes, with so many places to read to.
    pub(crate) fn new(longest: usize, sinks: usize, data: Data, brand: Brand) -> Pool {
        let longest = longest.next_multiple_of(PAGE);
        let length = longest + POOL_SLACK + longest * sinks;
        let layout = std::alloc::Layout::from_size_align(length, PAGE).expect("a sane length");
        // SAFETY: the layout has a non-zero size.
        let memory = unsafe { std::alloc::alloc_zeroed(layout) };
        assert!(!memory.is_null(), "out of memory for an I/O buffer of {length} bytes");
        // SAFETY: `memory` points to `length` initialised bytes that nobody else knows of.
        let bytes = unsafe { std::slice::from_raw_parts_mut(memory, length) };
        match data {
            Data::Random => {
                random::fill(&mut Xoshiro256PlusPlus::seed_from_u64(CONTENT_SEED), bytes);
                brand.stamp(bytes);
            }
            // Touched, so that no page fault falls into the first I/O.
            Data::Zeros => bytes.iter_mut().step_by(PAGE).for_each(|byte| {
                // SAFETY: a plain reference to a valid byte.
                unsafe { std::ptr::write_volatile(byte, 0) };
            }),
        }
        Pool { memory, layout, longest, sinks, turn: 0 }
    }

    /// How long an I/O may be.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Where the next write's data begins.
    #[inline]
    pub(crate) fn next_data(&mut self) -> *const u8 {
        self.turn = (self.turn + PAGE) % POOL_SLACK;
        // SAFETY: `turn` < POOL_SLACK, and the write pool is POOL_SLACK longer than any I/O.
        unsafe { self.memory.add(self.turn) }
    }

    /// Where a read goes. What was read is never looked at.
    #[inline]
    pub(crate) fn sink(&mut self) -> *mut u8 {
        self.sink_of(0)
    }

    /// Where a read goes of those that are under way together; some share where there are more of them.
    #[inline]
    pub(crate) fn sink_of(&mut self, place: usize) -> *mut u8 {
        let behind = place % self.sinks * self.longest;
        // SAFETY: as many read buffers of `longest` bytes stand behind the write pool.
        unsafe { self.memory.add(self.longest + POOL_SLACK + behind) }
    }

    /// All of its memory, for the kernel.
    pub(crate) fn all(&self) -> libc::iovec {
        libc::iovec { iov_base: self.memory.cast(), iov_len: self.layout.size() }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this very layout.
        unsafe { std::alloc::dealloc(self.memory, self.layout) };
    }
}
