//! Lists of things that come and go: what comes takes the place of what went.

use std::hint::cold_path;

/// Put `item` where nothing is any more, or at the end.
#[inline(always)]
pub(crate) fn put<I>(items: &mut Vec<I>, unused: &mut Vec<u32>, item: I) -> u32 {
    if let Some(index) = unused.pop() {
        items[index as usize] = item;
        return index;
    }
    // Seldom: there are as many places as there ever were things at once.
    cold_path();
    items.push(item);
    items.len() as u32 - 1
}
