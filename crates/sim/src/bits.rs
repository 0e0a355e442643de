//! Sets of pages, one bit each in words of 64.

/// Take everything from `first` on and before `end` out of the set.
pub(crate) fn clear(set: &mut [u64], first: usize, end: usize) {
    let mut from = first;
    while from < end {
        let to = end.min((from / 64 + 1) * 64);
        let mask = u64::MAX >> (64 - (to - from)) << (from % 64);
        set[from / 64] &= !mask;
        from = to;
    }
}
