//! Slabs: lists whose unused entries are reused.

use std::hint::cold_path;

/// Store `item` in an unused entry or at the end; return its index.
#[inline(always)]
pub(crate) fn put<I>(items: &mut Vec<I>, unused: &mut Vec<u32>, item: I) -> u32 {
    if let Some(index) = unused.pop() {
        items[index as usize] = item;
        return index;
    }
    // Rare: there are as many  as there ever were items at once.
    cold_path();
    items.push(item);
    items.len() as u32 - 1
}
