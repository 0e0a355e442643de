//! Submission times as they are stored: relative to the completion of the previous I/O.
//!
//! ```text
//! submit_ns          0        110        205       gap_ns   0, 10, -5, …
//! completed          └─ 100    └─ 210     └─ …     for the first I/O of a row group: its submit_ns
//! ```
//!
//! At queue depth 1 the next I/O follows at once, or after a pause that is mostly constant. A gap
//! then takes a few bits, whereas a submission time takes as many as the response time before it.
//! Row groups are independent, so that each can be read alone. Damaged numbers wrap around and fail
//! the plausibility check.

/// Return the gaps of a row group.
pub(crate) fn gaps(submit_ns: &[u64], response_time_ns: &[u64]) -> Vec<u64> {
    let mut completed = 0;
    let times = submit_ns.iter().zip(response_time_ns);
    let gap = |(submit, time): (&u64, &u64)| {
        let gap = submit.wrapping_sub(completed);
        completed = submit.wrapping_add(*time);
        gap
    };
    times.map(gap).collect()
}

/// Turn the gaps of a row group back into submission times.
pub(crate) fn undo(gaps: &mut [u64], response_time_ns: &[u64]) {
    let mut completed = 0u64;
    for (gap, time) in gaps.iter_mut().zip(response_time_ns) {
        *gap = completed.wrapping_add(*gap);
        completed = gap.wrapping_add(*time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gap_is_from_completion_to_next_submission() {
        let (submit, time) = ([7, 110, 205, u64::MAX], [93, 100, 1, 5]);
        let mut stored = gaps(&submit, &time);
        assert_eq!(stored[..3], [7, 10, 5u64.wrapping_neg()]);
        undo(&mut stored, &time);
        assert_eq!(stored, submit);
    }
}
