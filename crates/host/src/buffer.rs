//! I/O buffers: page-aligned memory with defined content.
//!
//! A compressing or deduplicating device responds differently to zeros, repeated blocks and
//! incompressible data, so the content is a recorded parameter. `random` is incompressible, and
//! successive writes begin at different offsets of a larger pool, so that no two adjacent blocks
//! are alike. This avoids filling a buffer before every I/O (which changed the results of a
//! compressing target by a factor of two in fio). Every sector carries the [`SectorStamp`] of the
//! medium. Reads go to separate buffers: read data is never written. If a pattern determines the
//! content ([`uflip_core::content`]), each write is generated in a read buffer, before its time is
//! taken.

use uflip_core::content::ContentWriter;
use uflip_core::random::{self, SeedableRng, Xoshiro256PlusPlus};
use uflip_core::{Error, Result};

use crate::guard::ownership::SectorStamp;

const PAGE: usize = 4096;
/// The pool exceeds the largest I/O by this much: 256 different offsets.
const POOL_SLACK: usize = 256 * PAGE;
/// Fixed, so that written data can be identified afterwards.
const CONTENT_SEED: u64 = 0x75_66_6c_69_70;

/// The content of writes.
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

    /// Return the content with this name.
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

    /// Return the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Data::Random => "random",
            Data::Zeros => "zeros",
        }
    }
}

/// Page-aligned memory: the write pool, followed by the read buffers.
pub struct Pool {
    memory: *mut u8,
    layout: std::alloc::Layout,
    /// The largest I/O [bytes].
    pub(crate) max_io_bytes: usize,
    /// The number of read buffers.
    pub(crate) sinks: usize,
    write_offset: usize,
    stamp: SectorStamp,
}

// SAFETY: the pool owns its memory and hands out pointers only through `&mut self`.
unsafe impl Send for Pool {}

impl Pool {
    /// Create a pool for I/Os of up to `max_io_bytes` bytes, with `sinks` read buffers.
    pub(crate) fn new(max_io_bytes: usize, sinks: usize, data: Data, stamp: SectorStamp) -> Pool {
        let max_io_bytes = max_io_bytes.next_multiple_of(PAGE);
        let length = max_io_bytes + POOL_SLACK + max_io_bytes * sinks;
        let layout = std::alloc::Layout::from_size_align(length, PAGE)
            .expect("the buffer fits into the address space");
        // SAFETY: the layout has a non-zero size.
        let memory = unsafe { std::alloc::alloc_zeroed(layout) };
        assert!(!memory.is_null(), "out of memory for an I/O buffer of {length} bytes");
        // SAFETY: `memory` points to `length` initialised bytes, not shared yet.
        let bytes = unsafe { std::slice::from_raw_parts_mut(memory, length) };
        match data {
            Data::Random => {
                random::fill(&mut Xoshiro256PlusPlus::seed_from_u64(CONTENT_SEED), bytes);
                stamp.apply(bytes);
            }
            // Touched, so that no page fault falls into the first I/O.
            Data::Zeros => bytes.iter_mut().step_by(PAGE).for_each(|byte| {
                // SAFETY: a plain reference to a valid byte.
                unsafe { std::ptr::write_volatile(byte, 0) };
            }),
        }
        Pool { memory, layout, max_io_bytes, sinks, write_offset: 0, stamp }
    }

    /// Return the data of the next write.
    #[inline]
    pub(crate) fn next_data(&mut self) -> *const u8 {
        self.write_offset = (self.write_offset + PAGE) % POOL_SLACK;
        // SAFETY: `write_offset` < POOL_SLACK, and the write pool exceeds any I/O by POOL_SLACK.
        unsafe { self.memory.add(self.write_offset) }
    }

    /// Generate the next write of `writer` in the buffer of queue entry `entry`.
    pub(crate) fn generate(
        &mut self,
        entry: usize,
        writer: &mut ContentWriter,
        offset: u64,
        size: usize,
    ) -> *const u8 {
        let sink = self.sink_for(entry);
        // SAFETY: a read buffer has `max_io_bytes` bytes, at least `size`, and is not in use.
        let sectors = unsafe { std::slice::from_raw_parts_mut(sink, size) };
        writer.fill_next(offset, sectors);
        self.stamp.apply(sectors);
        sink
    }

    /// Return the first `size` bytes of the read buffer.
    pub(crate) fn data(&mut self, size: usize) -> &[u8] {
        // SAFETY: the read buffer has `max_io_bytes` bytes, at least `size`.
        unsafe { std::slice::from_raw_parts(self.sink(), size) }
    }

    /// Return the read buffer.
    #[inline]
    pub(crate) fn sink(&mut self) -> *mut u8 {
        self.sink_for(0)
    }

    /// Return the read buffer of queue entry `entry`; entries share buffers if there are more of
    /// them.
    #[inline]
    pub(crate) fn sink_for(&mut self, entry: usize) -> *mut u8 {
        let offset = entry % self.sinks * self.max_io_bytes;
        // SAFETY: `sinks` read buffers of `max_io_bytes` bytes follow the write pool.
        unsafe { self.memory.add(self.max_io_bytes + POOL_SLACK + offset) }
    }

    /// Return the whole memory, for registration with the kernel.
    pub(crate) fn whole(&self) -> libc::iovec {
        libc::iovec { iov_base: self.memory.cast(), iov_len: self.layout.size() }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this very layout.
        unsafe { std::alloc::dealloc(self.memory, self.layout) };
    }
}
