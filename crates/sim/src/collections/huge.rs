//! Large flat arrays: in 2 MiB pages if the kernel supports them, with prefetching.
//!
//! A map of 64 GiB is 64 MiB; with pages of 4 KiB every random entry also misses the translation
//! buffer, which costs as much again as the entry.

/// Create an array of `length` times `value`, in large pages if possible.
#[must_use]
pub fn filled<T: Clone>(length: usize, value: T) -> Vec<T> {
    let mut array = reserved(length);
    array.resize(length, value);
    array
}

/// Reserve memory for `length` values, in large pages if possible.
pub(crate) fn reserved<T>(length: usize) -> Vec<T> {
    let mut array: Vec<T> = Vec::with_capacity(length);
    advise(array.as_mut_ptr().cast(), length * size_of::<T>());
    array
}

/// Serialization of large arrays as raw little-endian bytes, for serde's `with`. Value by value it
/// would take a hundred times as long.
pub(crate) mod flat {
    use serde::de::{Deserializer, Error, Visitor};
    use serde::ser::Serializer;

    pub(crate) fn serialize<S: Serializer>(array: &[u32], to: S) -> Result<S::Ok, S::Error> {
        const { assert!(cfg!(target_endian = "little"), "the form on disk is little-endian") };
        // SAFETY: any initialised memory is bytes; the length is that of the array in bytes.
        let bytes =
            unsafe { std::slice::from_raw_parts(array.as_ptr().cast::<u8>(), size_of_val(array)) };
        to.serialize_bytes(bytes)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u32>, D::Error> {
        struct Flat;
        impl Visitor<'_> for Flat {
            type Value = Vec<u32>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an array of 32-bit numbers as bytes")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u32>, E> {
                let (values, rest) = bytes.as_chunks::<4>();
                if !rest.is_empty() {
                    return Err(E::invalid_length(bytes.len(), &self));
                }
                let mut array = super::reserved(values.len());
                array.extend(values.iter().map(|value| u32::from_le_bytes(*value)));
                Ok(array)
            }
        }
        from.deserialize_bytes(Flat)
    }
}

/// Prefetch `array[index]` into the CPU cache.
#[inline]
pub fn prefetch<T>(array: &[T], index: usize) {
    debug_assert!(index < array.len());
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, and the address is inside the array all the same.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(array.as_ptr().add(index).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (array, index);
}

/// Request large pages; without them only speed is lost.
fn advise(start: *mut u8, bytes: usize) {
    const LARGE: usize = 2 << 20;
    let from = (start as usize).next_multiple_of(LARGE);
    let to = (start as usize + bytes) / LARGE * LARGE;
    if to > from {
        // SAFETY: the range lies inside memory that was just allocated; the advice changes no data.
        unsafe { libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_HUGEPAGE) };
    }
}
