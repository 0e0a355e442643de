//! A vector of any length in bounded memory: beyond 64 MiB its values are in a temporary file without
//! a name, which is mapped.
//!
//! The kernel writes its pages out and drops them when memory is short. Beside that, one thread drops
//! all mapped pages of the process when they exceed [`MAX_RESIDENT_BYTES`]: they stay in the page cache
//! or the file. If no file can be made, or the disk is full, the values stay in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{File, read_to_string};
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longer vectors are in a file [bytes].
const MEMORY_BYTES: usize = if cfg!(test) { 1 << 12 } else { 64 << 20 };
/// A file grows by its own length, but not by more [bytes].
const MAX_GROWTH_BYTES: usize = 1 << 30;
/// More mapped pages are dropped [bytes].
const MAX_RESIDENT_BYTES: u64 = 256 << 20;
/// A pass over a file maps some 2 GB/s, so that the limit is exceeded by tens of MB.
const CHECK_EVERY: Duration = Duration::from_millis(20);

/// A growing array of plain values.
pub struct SpooledVec<T: Copy> {
    storage: Storage<T>,
}

enum Storage<T: Copy> {
    Memory(Vec<T>),
    File(MappedFile<T>),
}

/// The values in a file, of which `length` are initialised.
struct MappedFile<T> {
    start: NonNull<T>,
    length: usize,
    bytes: usize,
    file: File,
}

// SAFETY: the mapping belongs to this value alone, and moves with it.
unsafe impl<T: Send> Send for MappedFile<T> {}
// SAFETY: shared access only reads.
unsafe impl<T: Sync> Sync for MappedFile<T> {}

/// All mappings of the process, and whether a thread drops their pages.
struct Mappings {
    /// The address and length of each.
    all: Vec<(usize, usize)>,
    has_thread: bool,
}

static MAPPINGS: Mutex<Mappings> = Mutex::new(Mappings { all: Vec::new(), has_thread: false });

fn mappings() -> MutexGuard<'static, Mappings> {
    MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mappings {
    fn remove(&mut self, address: usize) {
        self.all.retain(|(each, _)| *each != address);
    }
}

/// Return the folder for large temporary files: TMPDIR, or /var/tmp, because /tmp is often in memory.
#[must_use]
pub fn spool_folder() -> PathBuf {
    let shared = PathBuf::from("/var/tmp");
    if std::env::var_os("TMPDIR").is_none() && shared.is_dir() {
        return shared;
    }
    std::env::temp_dir()
}

impl<T: Copy> MappedFile<T> {
    fn new(values: &[T]) -> io::Result<MappedFile<T>> {
        let file = tempfile::tempfile_in(spool_folder())?;
        let mut mapped = MappedFile { start: NonNull::dangling(), length: 0, bytes: 0, file };
        mapped.map(2 * size_of_val(values))?;
        values.iter().for_each(|value| mapped.push(*value));
        Ok(mapped)
    }

    /// Extend the file to `bytes`, and map all of it.
    fn map(&mut self, bytes: usize) -> io::Result<()> {
        // Blocks are allocated here: a store to a mapped hole would kill the process on a full disk.
        // SAFETY: the descriptor is open.
        let failed = unsafe {
            let (from, more) = (self.bytes as i64, (bytes - self.bytes) as i64);
            libc::posix_fallocate(self.file.as_raw_fd(), from, more)
        };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        let mut mappings = mappings();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let old = self.start.as_ptr().cast::<libc::c_void>();
        // SAFETY: a new mapping of an open file, or ours of `self.bytes`, to which no reference exists.
        let start = unsafe {
            if self.bytes == 0 {
                let descriptor = self.file.as_raw_fd();
                libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, descriptor, 0)
            } else {
                libc::mremap(old, self.bytes, bytes, libc::MREMAP_MAYMOVE)
            }
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        mappings.remove(old as usize);
        mappings.all.push((start as usize, bytes));
        if !mappings.has_thread {
            let thread = std::thread::Builder::new().name("spool".to_owned());
            mappings.has_thread = thread.spawn(drop_pages).is_ok();
        }
        self.start = NonNull::new(start.cast()).expect("a mapping is not at address 0");
        self.bytes = bytes;
        Ok(())
    }

    fn is_full(&self) -> bool {
        (self.length + 1) * size_of::<T>() > self.bytes
    }

    fn push(&mut self, value: T) {
        assert!(!self.is_full());
        // SAFETY: there is space for one value more.
        unsafe { self.start.add(self.length).write(value) };
        self.length += 1;
    }
}

impl<T> Drop for MappedFile<T> {
    fn drop(&mut self) {
        let mut mappings = mappings();
        mappings.remove(self.start.as_ptr() as usize);
        if self.bytes > 0 {
            // SAFETY: our mapping, to which no reference exists any more.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
        }
    }
}

/// Drop the mapped pages when they are too many, until there is no mapping.
fn drop_pages() {
    loop {
        std::thread::sleep(CHECK_EVERY);
        let mut mappings = mappings();
        if mappings.all.is_empty() {
            mappings.has_thread = false;
            return;
        }
        if resident_bytes().is_none_or(|bytes| bytes < MAX_RESIDENT_BYTES) {
            continue;
        }
        for (address, bytes) in &mappings.all {
            // SAFETY: a shared mapping of a file, which keeps its content; it cannot be unmapped now.
            unsafe { libc::madvise(*address as *mut libc::c_void, *bytes, libc::MADV_DONTNEED) };
        }
    }
}

/// Return the resident pages of mapped files [bytes].
fn resident_bytes() -> Option<u64> {
    let text = read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(2)?.parse().ok()?;
    // SAFETY: reads a constant of the system.
    Some(pages * unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64)
}

impl<T: Copy> SpooledVec<T> {
    /// Append a value.
    pub fn push(&mut self, value: T) {
        match &mut self.storage {
            Storage::File(mapped) if !mapped.is_full() => mapped.push(value),
            Storage::Memory(values) if values.len() < values.capacity() => values.push(value),
            _ => self.push_grown(value),
        }
    }

    #[cold]
    fn push_grown(&mut self, value: T) {
        let bytes = size_of_val::<[T]>(self);
        let grown = match &mut self.storage {
            Storage::File(mapped) => mapped.map(bytes + bytes.min(MAX_GROWTH_BYTES)),
            Storage::Memory(values) if bytes >= MEMORY_BYTES => {
                MappedFile::new(values).map(|mapped| self.storage = Storage::File(mapped))
            }
            Storage::Memory(_) => Ok(()),
        };
        match (&mut self.storage, grown) {
            (Storage::File(mapped), Ok(())) => mapped.push(value),
            (Storage::Memory(values), _) => values.push(value),
            (Storage::File(mapped), Err(_)) => {
                let mut values = mapped.to_vec();
                values.push(value);
                self.storage = Storage::Memory(values);
            }
        }
    }

    /// Keep the values for which `keep` is true.
    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        let mut kept = 0;
        for index in 0..self.len() {
            let value = self[index];
            if keep(&value) {
                self[kept] = value;
                kept += 1;
            }
        }
        match &mut self.storage {
            Storage::Memory(values) => values.truncate(kept),
            Storage::File(mapped) => mapped.length = kept,
        }
    }

    /// Sort by a key; equal values keep their order. Parts that fit in memory are sorted, then merged.
    pub fn sort_in_parts<K: Ord>(&mut self, key: impl Fn(&T) -> K) {
        if self.is_sorted_by_key(&key) {
            return;
        }
        let part = (MEMORY_BYTES / size_of::<T>()).max(1);
        self.chunks_mut(part).for_each(|values| values.sort_by_key(&key));
        if self.len() <= part {
            return;
        }
        let mut nexts: Vec<usize> = (0..self.len()).step_by(part).collect();
        let mut least: BinaryHeap<Reverse<(K, usize)>> =
            nexts.iter().enumerate().map(|(each, at)| Reverse((key(&self[*at]), each))).collect();
        let mut sorted = SpooledVec::default();
        while let Some(Reverse((_, each))) = least.pop() {
            sorted.push(self[nexts[each]]);
            nexts[each] += 1;
            if nexts[each] < self.len().min((each + 1) * part) {
                least.push(Reverse((key(&self[nexts[each]]), each)));
            }
        }
        *self = sorted;
    }
}

impl<T: Copy> Deref for SpooledVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.storage {
            Storage::Memory(values) => values,
            Storage::File(mapped) => mapped,
        }
    }
}

impl<T: Copy> Deref for MappedFile<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: this number of values is initialised, and only `&mut self` changes them.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl<T: Copy> DerefMut for SpooledVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.storage {
            Storage::Memory(values) => values,
            // SAFETY: this number of values is initialised, and `&mut self` is the only access.
            Storage::File(mapped) => unsafe {
                std::slice::from_raw_parts_mut(mapped.start.as_ptr(), mapped.length)
            },
        }
    }
}

impl<T: Copy> Default for SpooledVec<T> {
    fn default() -> SpooledVec<T> {
        SpooledVec { storage: Storage::Memory(Vec::new()) }
    }
}

impl<T: Copy> From<Vec<T>> for SpooledVec<T> {
    fn from(values: Vec<T>) -> SpooledVec<T> {
        SpooledVec { storage: Storage::Memory(values) }
    }
}

impl<T: Copy> Extend<T> for SpooledVec<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

impl<T: Copy> FromIterator<T> for SpooledVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> SpooledVec<T> {
        let mut all = SpooledVec::default();
        all.extend(values);
        all
    }
}

impl<T: Copy> Clone for SpooledVec<T> {
    fn clone(&self) -> SpooledVec<T> {
        self.iter().copied().collect()
    }
}

impl<T: Copy + PartialEq> PartialEq for SpooledVec<T> {
    fn eq(&self, other: &SpooledVec<T>) -> bool {
        **self == **other
    }
}

impl<T: Copy + Eq> Eq for SpooledVec<T> {}

impl<T: Copy + std::fmt::Debug> std::fmt::Debug for SpooledVec<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self[..].fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;

    fn is_in_file<T: Copy>(values: &SpooledVec<T>) -> bool {
        matches!(values.storage, Storage::File(_))
    }

    /// Returns pairs of a key with many equals, and the position.
    fn pairs(count: u64) -> Vec<(u64, u64)> {
        (0..count).map(|number| (random::mix(number) % 100, number)).collect()
    }

    #[test]
    fn long_vectors_are_in_a_file_and_equal_those_in_memory() {
        for count in [0, 1, 255, 256, 257, 100_000] {
            let expected = pairs(count);
            let mut values: SpooledVec<(u64, u64)> = expected.iter().copied().collect();
            assert_eq!(*values, *expected);
            assert_eq!(is_in_file(&values), count > 256);
            assert_eq!(values.clone(), values);
            values.iter_mut().for_each(|value| value.1 += 1);
            values.retain(|value| value.0 % 2 == 0);
            let kept = expected.iter().filter(|value| value.0 % 2 == 0);
            assert!(kept.map(|value| (value.0, value.1 + 1)).eq(values.iter().copied()));
        }
    }

    #[test]
    fn sorting_in_parts_is_stable() {
        for count in [3, 256, 5_000] {
            let mut expected = pairs(count);
            let mut values = SpooledVec::from(expected.clone());
            values.sort_in_parts(|pair| pair.0);
            expected.sort_by_key(|pair| pair.0);
            assert_eq!(*values, *expected);
        }
    }

    #[test]
    fn dropped_pages_keep_their_values() {
        let values: SpooledVec<u64> = (0..1_000_000).collect();
        let Storage::File(mapped) = &values.storage else { panic!("8 MB are in a file") };
        // SAFETY: as in `drop_pages`.
        unsafe { libc::madvise(mapped.start.as_ptr().cast(), mapped.bytes, libc::MADV_DONTNEED) };
        assert!(values.iter().copied().eq(0..1_000_000));
    }
}
