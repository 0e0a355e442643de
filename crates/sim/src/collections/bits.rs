//! Sets of pages, stored as bits in 64-bit words.

/// Return the words of the range from `first` to `end` (exclusive), each with the mask of its bits.
#[inline]
fn words(first: usize, end: usize) -> impl Iterator<Item = (usize, u64)> {
    let mut from = first;
    std::iter::from_fn(move || {
        let to = (from < end).then(|| end.min((from / 64 + 1) * 64))?;
        let word = (from / 64, u64::MAX >> (64 - (to - from)) << (from % 64));
        from = to;
        Some(word)
    })
}

/// Remove the range from `first` to `end` (exclusive) from the set.
pub(crate) fn clear(set: &mut [u64], first: usize, end: usize) {
    words(first, end).for_each(|(at, mask)| set[at] &= !mask);
}

/// Add the range from `first` to `end` (exclusive) to the set.
pub(crate) fn fill(set: &mut [u64], first: usize, end: usize) {
    words(first, end).for_each(|(at, mask)| set[at] |= mask);
}

/// Remove the range from `first` to `end` (exclusive), and call `visit` for each removed member in
/// order.
#[inline]
pub(crate) fn drain(set: &mut [u64], first: usize, end: usize, mut visit: impl FnMut(usize)) {
    for (at, mask) in words(first, end) {
        let mut removed = set[at] & mask;
        set[at] &= !mask;
        for _ in 0..removed.count_ones() {
            visit(at * 64 + removed.trailing_zeros() as usize);
            removed &= removed - 1;
        }
    }
}

/// Return whether `index` is in the set.
#[inline]
pub(crate) fn has(set: &[u64], index: usize) -> bool {
    set[index / 64] >> (index % 64) & 1 == 1
}

/// Add `index` to the set.
#[inline]
pub(crate) fn insert(set: &mut [u64], index: usize) {
    set[index / 64] |= 1 << (index % 64);
}

/// Remove `index` from the set.
#[inline]
pub(crate) fn remove(set: &mut [u64], index: usize) {
    set[index / 64] &= !(1 << (index % 64));
}

/// Return `length` (1 to 64) bits of the set from `first` on, in the lowest bits.
#[inline]
pub(crate) fn word(set: &[u64], first: usize, length: usize) -> u64 {
    let (index, shift) = (first / 64, first % 64);
    let low = set[index] >> shift;
    let high = if shift == 0 || shift + length <= 64 { 0 } else { set[index + 1] << (64 - shift) };
    (low | high) & (u64::MAX >> (64 - length))
}

/// Add the members in `word`; its lowest bit stands for `first`.
#[inline]
pub(crate) fn insert_word(set: &mut [u64], first: usize, word: u64) {
    let (index, shift) = (first / 64, first % 64);
    set[index] |= word << shift;
    if shift > 0 && word >> (64 - shift) != 0 {
        set[index + 1] |= word >> (64 - shift);
    }
}

/// Return the members from `first` to `end` (exclusive), in order.
pub(crate) fn members(set: &[u64], first: usize, end: usize) -> impl Iterator<Item = usize> + '_ {
    (first..end).step_by(64).flat_map(move |from| {
        let mut word = word(set, from, (end - from).min(64));
        std::iter::from_fn(move || {
            let index = (word != 0).then(|| word.trailing_zeros() as usize)?;
            word &= word - 1;
            Some(from + index)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compare with a set stored as booleans.
        #[test]
        fn word_operations_match_single_bits(
            bits in prop::collection::vec(any::<bool>(), 130..300), first in 0usize..66,
            length in 1usize..=64, more in any::<u64>(), cut in (0usize..130, 0usize..130),
        ) {
            let mut set = vec![0; bits.len().div_ceil(64)];
            (0..bits.len()).filter(|i| bits[*i]).for_each(|i| insert(&mut set, i));
            let expected = (0..length).filter(|i| bits[first + i]).map(|i| 1u64 << i).sum::<u64>();
            prop_assert_eq!(word(&set, first, length), expected);
            let listed: Vec<usize> = (first..bits.len()).filter(|i| bits[*i]).collect();
            prop_assert_eq!(members(&set, first, bits.len()).collect::<Vec<_>>(), listed);
            let mut both = set.clone();
            insert_word(&mut both, first, more);
            for i in 0..64 {
                prop_assert_eq!(has(&both, first + i), bits[first + i] || more >> i & 1 == 1);
            }
            let expected: Vec<usize> = (cut.0..cut.1).filter(|i| has(&both, *i)).collect();
            let (mut drained, mut left) = (Vec::new(), both.clone());
            drain(&mut left, cut.0, cut.1, |i| drained.push(i));
            prop_assert_eq!(drained, expected);
            clear(&mut both, cut.0, cut.1);
            prop_assert_eq!(left, both.clone());
            fill(&mut both, cut.0, cut.1);
            (cut.0..cut.1).for_each(|i| assert!(has(&both, i)));
            clear(&mut both, cut.0, cut.1);
            (cut.0..cut.1).for_each(|i| assert!(!has(&both, i)));
            remove(&mut set, first);
            prop_assert!(!has(&set, first));
        }
    }
}
