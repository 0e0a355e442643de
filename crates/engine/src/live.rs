//! Rows of a run while it lasts: the I/Os that ended in each second of the device's clock.
//!
//! ```text
//!  completions ──▶ │ 0 s ……… 1 s │ 1 s ……… 2 s │ …      a row is complete at the first completion after it
//! ```
//!
//! **Faithful**: numbers, bytes and rates are exact.
//! **Simplified**: percentiles are those of bins, and too large by at most one part in 128. The I/Os in
//! flight follow from Little's law: the sum of the response times in a row divided by its length.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Parts of an octave of response times.
const PARTS: u64 = 128;
const BINS: usize = (PARTS as usize) * 58;
const SHARES: [f64; 3] = [0.5, 0.99, 0.999];
/// A run with longer gaps omits rows without I/Os, instead of filling the memory.
const MAX_ROWS: usize = 1 << 16;

/// The I/Os that ended in one interval.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LiveRow {
    /// Its begin, from that of the run [ns].
    pub start_ns: u64,
    /// Its length [ns]; shorter at the end of a run.
    pub length_ns: u64,
    /// The number of I/Os.
    pub ios: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// The sum of the response times [ns].
    pub response_ns: u64,
    /// p50, p99 and p99.9 [ns]; 0 without I/Os.
    pub percentiles_ns: [u64; 3],
    /// Flash pages programmed, if the device counts them.
    pub pages_programmed: Option<u64>,
}

/// The rows of one run, collected by its processes.
#[derive(Debug)]
pub struct Live {
    interval_ns: u64,
    state: Mutex<LiveState>,
}

#[derive(Debug)]
struct LiveState {
    row: LiveRow,
    bins: Vec<u32>,
    /// The completion of the last I/O.
    last_ns: u64,
    /// The counter of programmed pages at the begin of the row.
    programmed: Option<u64>,
    complete: Vec<LiveRow>,
}

/// A completed I/O; times are from the begin of the run.
pub(crate) struct LiveIo {
    pub(crate) arrived_ns: u64,
    pub(crate) completed_ns: u64,
    pub(crate) bytes: u64,
    pub(crate) is_write: bool,
}

impl Live {
    /// Create rows of `interval_ns` for a device that has programmed this number of pages.
    #[must_use]
    pub fn new(interval_ns: u64, programmed: Option<u64>) -> Live {
        let state = LiveState {
            row: LiveRow::default(),
            bins: vec![0; BINS],
            last_ns: 0,
            programmed,
            complete: Vec::new(),
        };
        Live { interval_ns: interval_ns.max(1), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Add an I/O; `programmed` returns the counter of programmed pages.
    pub(crate) fn add(&self, io: &LiveIo, programmed: impl FnOnce() -> Option<u64>) {
        let mut state = self.state();
        // An I/O that ends at an edge belongs to the row before it.
        if io.completed_ns > state.row.start_ns + self.interval_ns {
            let programmed = programmed();
            state.end_row(self.interval_ns, programmed);
            let passed = (io.completed_ns - 1) / self.interval_ns * self.interval_ns;
            while state.row.start_ns < passed && state.complete.len() < MAX_ROWS {
                state.end_row(self.interval_ns, programmed);
            }
            state.row.start_ns = passed;
        }
        let response_ns = io.completed_ns.saturating_sub(io.arrived_ns);
        let row = &mut state.row;
        row.ios += 1;
        row.bytes += io.bytes;
        row.bytes_written += if io.is_write { io.bytes } else { 0 };
        row.response_ns += response_ns;
        state.bins[bin_of(response_ns)] += 1;
        state.last_ns = io.completed_ns;
    }

    /// Complete the last row at the end of the run, after this number of programmed pages.
    pub fn end(&self, programmed: Option<u64>) {
        let mut state = self.state();
        if state.row.ios > 0 {
            let length = state.last_ns - state.row.start_ns;
            state.end_row(length.max(1), programmed);
        }
    }

    /// Return the complete rows since the last call.
    #[must_use]
    pub fn take_rows(&self) -> Vec<LiveRow> {
        std::mem::take(&mut self.state().complete)
    }
}

impl LiveState {
    fn end_row(&mut self, length_ns: u64, programmed: Option<u64>) {
        let mut row = std::mem::take(&mut self.row);
        row.length_ns = length_ns;
        row.percentiles_ns = SHARES.map(|share| percentile(&self.bins, row.ios, share));
        let before = std::mem::replace(&mut self.programmed, programmed);
        row.pages_programmed = programmed.zip(before).map(|(now, before)| now - before);
        self.row.start_ns = row.start_ns + length_ns;
        if row.ios > 0 {
            self.bins.fill(0);
        }
        self.complete.push(row);
    }
}

fn bin_of(response_ns: u64) -> usize {
    let octave = u64::from((response_ns / PARTS).checked_ilog2().map_or(0, |log| log + 1));
    let part = if octave == 0 { response_ns } else { (response_ns >> (octave - 1)) - PARTS };
    ((octave * PARTS + part) as usize).min(BINS - 1)
}

/// Return the largest response time of a bin [ns].
fn end_of_bin(bin: usize) -> u64 {
    let (octave, part) = (bin as u64 / PARTS, bin as u64 % PARTS);
    if octave == 0 { part } else { ((PARTS + part + 1) << (octave - 1)) - 1 }
}

/// Return the smallest bin that this share of the I/Os does not exceed.
fn percentile(bins: &[u32], ios: u64, share: f64) -> u64 {
    let rank = ((ios as f64 * share).ceil() as u64).max(1);
    let mut counted = 0;
    let bin = bins.iter().position(|count| {
        counted += u64::from(*count);
        counted >= rank
    });
    bin.map_or(0, end_of_bin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};

    #[test]
    fn bins_contain_their_times_within_one_part_in_128() {
        for response in (0..3000).chain((0..63).map(|shift| (1u64 << shift) + (1 << shift) / 3)) {
            let end = end_of_bin(bin_of(response));
            if response < 1 << 62 {
                assert!(end >= response && end - response <= response / PARTS, "{response}: {end}");
            }
        }
    }

    /// Compares rows with those of all I/Os in a list.
    #[test]
    fn rows_equal_those_of_a_list() {
        const INTERVAL: u64 = 1000;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut now = 0;
        let ios: Vec<LiveIo> = (0..5000)
            .map(|number| {
                now += if number == 2000 { 5 * INTERVAL } else { uniform(&mut rng, 20) };
                let (bytes, is_write) = (512 * (1 + number % 3), number % 4 == 0);
                let arrived_ns = now.saturating_sub(uniform(&mut rng, 900));
                LiveIo { arrived_ns, completed_ns: now, bytes, is_write }
            })
            .collect();
        let live = Live::new(INTERVAL, Some(0));
        let mut rows = Vec::new();
        for (number, io) in ios.iter().enumerate() {
            live.add(io, || Some(10 * number as u64));
            if number % 700 == 0 {
                rows.extend(live.take_rows());
            }
        }
        live.end(Some(10 * ios.len() as u64));
        rows.extend(live.take_rows());
        assert!(rows.iter().any(|row| row.ios == 0));
        for (number, row) in rows.iter().enumerate() {
            let start = number as u64 * INTERVAL;
            assert_eq!(row.start_ns, start);
            let ended = |io: &&LiveIo| {
                io.completed_ns <= start + row.length_ns && (io.completed_ns > start || number == 0)
            };
            let mine: Vec<&LiveIo> = ios.iter().filter(ended).collect();
            let mut times: Vec<u64> =
                mine.iter().map(|io| io.completed_ns - io.arrived_ns).collect();
            times.sort_unstable();
            assert_eq!(row.ios, mine.len() as u64);
            assert_eq!(row.bytes, mine.iter().map(|io| io.bytes).sum::<u64>());
            let written = mine.iter().filter(|io| io.is_write).map(|io| io.bytes);
            assert_eq!(row.bytes_written, written.sum::<u64>());
            assert_eq!(row.response_ns, times.iter().sum::<u64>());
            for (share, found) in SHARES.into_iter().zip(row.percentiles_ns) {
                let rank = (times.len() as f64 * share).ceil() as usize;
                let exact = times.get(rank.max(1) - 1).copied().unwrap_or(0);
                assert!(found >= exact && found - exact <= exact / PARTS, "{found} for {exact}");
            }
        }
        let programmed: u64 = rows.iter().filter_map(|row| row.pages_programmed).sum();
        assert_eq!(programmed, 10 * ios.len() as u64);
        assert_eq!(rows.iter().map(|row| row.ios).sum::<u64>(), ios.len() as u64);
    }
}
