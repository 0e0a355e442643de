//! Statistics of an export: counts, response times, and the lag of the host.

use serde_json::{Value, json};

use crate::session::NbdCommand;

/// The number of buckets per power of two: a resolution of 3 %.
const STEPS: u64 = 32;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// A histogram with a resolution of 3 %.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    max_value: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        let rows = (64 - STEP_BITS + 1) as usize;
        Histogram { counts: vec![0; rows * STEPS as usize], count: 0, sum: 0, max_value: 0 }
    }
}

impl Histogram {
    /// Count `value`.
    pub fn add(&mut self, value: u64) {
        self.counts[bucket_of(value)] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.max_value = self.max_value.max(value);
    }

    /// Return the quantile, up to 3 % too large; `None` without values.
    #[must_use]
    pub fn quantile(&self, permille: u64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = (u128::from(self.count) * u128::from(permille)).div_ceil(1000).max(1);
        let mut cumulated = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            cumulated += u128::from(*count);
            if cumulated >= rank {
                return Some(bucket_end(bucket).min(self.max_value));
            }
        }
        Some(self.max_value)
    }

    /// Return a document; undefined values are null.
    fn document(&self) -> Value {
        json!({
            "count": self.count,
            "mean_ns": self.sum.checked_div(u128::from(self.count)).map(|mean| mean as u64),
            "p50_ns": self.quantile(500),
            "p90_ns": self.quantile(900),
            "p99_ns": self.quantile(990),
            "p999_ns": self.quantile(999),
            "max_ns": (self.count > 0).then_some(self.max_value),
        })
    }
}

fn bucket_of(value: u64) -> usize {
    let row = (64 - STEP_BITS).saturating_sub(value.leading_zeros());
    let step = if row == 0 { value } else { (value >> (row - 1)) - STEPS };
    (u64::from(row) * STEPS + step) as usize
}

fn bucket_end(bucket: usize) -> u64 {
    let (row, step) = (bucket as u64 / STEPS, bucket as u64 % STEPS);
    if row == 0 {
        step
    } else {
        (u128::from(STEPS + step + 1) << (row - 1)).saturating_sub(1) as u64
    }
}

/// The statistics of one export.
#[derive(Clone, Debug, Default)]
pub struct ExportStatistics {
    /// Reads answered.
    pub reads: u64,
    /// Writes answered.
    pub writes: u64,
    /// Flushes answered.
    pub flushes: u64,
    /// Trims answered.
    pub trims: u64,
    /// Ranges set to zero.
    pub zeroes: u64,
    /// Valid requests that failed.
    pub failed: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes set to zero: the device writes them like data.
    pub bytes_zeroed: u64,
    /// The time from the complete arrival of a request to its reply [ns].
    pub response: Histogram,
    /// The device's part of it [ns], on the wall clock.
    pub simulated: Histogram,
    /// The difference: the lag of the host [ns].
    pub lag: Histogram,
    /// Recent response times.
    pub recent: Recent,
}

/// The length of a window [ns]; the last complete one is reported.
const WINDOW_NS: u64 = 1_000_000_000;

/// A histogram of the last complete window.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    /// The index of the present window.
    number: u64,
    present: Histogram,
    last: Histogram,
}

impl Recent {
    /// Count `value` at `now`.
    pub fn add(&mut self, now: u64, value: u64) {
        self.advance(now);
        self.present.add(value);
    }

    fn advance(&mut self, now: u64) {
        let number = now / WINDOW_NS;
        if number > self.number {
            std::mem::swap(&mut self.last, &mut self.present);
            if number > self.number + 1 {
                self.last = Histogram::default();
            }
            (self.number, self.present) = (number, Histogram::default());
        }
    }

    fn document(&mut self, now: u64) -> Value {
        self.advance(now);
        let mut document = self.last.document();
        document["span_ns"] = json!(WINDOW_NS);
        document
    }
}

impl ExportStatistics {
    /// Count an answered request of `length` bytes.
    pub fn count(&mut self, command: NbdCommand, length: u32) {
        let length = u64::from(length);
        match command {
            NbdCommand::Read => {
                (self.reads, self.bytes_read) = (self.reads + 1, self.bytes_read + length)
            }
            NbdCommand::Write => {
                (self.writes, self.bytes_written) = (self.writes + 1, self.bytes_written + length);
            }
            NbdCommand::Flush => self.flushes += 1,
            NbdCommand::Trim => self.trims += 1,
            NbdCommand::WriteZeroes { .. } => {
                (self.zeroes, self.bytes_zeroed) = (self.zeroes + 1, self.bytes_zeroed + length);
            }
        }
    }

    /// Add a response time [ns] at `now`, of which the device took `simulated`.
    pub fn time(&mut self, now: u64, response: u64, simulated: u64) {
        self.recent.add(now, response);
        self.response.add(response);
        self.simulated.add(simulated);
        self.lag.add(response.saturating_sub(simulated));
    }

    /// Return a document at `now`.
    #[must_use]
    pub fn document(&mut self, now: u64) -> Value {
        json!({
            "reads": self.reads,
            "writes": self.writes,
            "flushes": self.flushes,
            "trims": self.trims,
            "write_zeroes": self.zeroes,
            "failed": self.failed,
            "bytes_read": self.bytes_read,
            "bytes_written": self.bytes_written,
            "bytes_zeroed": self.bytes_zeroed,
            "response_time": self.response.document(),
            "simulated": self.simulated.document(),
            "lag": self.lag.document(),
            "recent": self.recent.document(now),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_three_percent() {
        let mut histogram = Histogram::default();
        let mut values: Vec<u64> =
            (0..2000_u64).map(|i| i * i * i * 7919 % 1_000_003 + i).collect();
        values.iter().for_each(|value| histogram.add(*value));
        values.sort_unstable();
        for permille in [1, 10, 500, 900, 990, 999, 1000] {
            let exact = values[(values.len() * permille).div_ceil(1000) - 1];
            let quantile = histogram.quantile(permille as u64).unwrap();
            assert!(
                quantile >= exact && quantile <= exact + exact / 31 + 1,
                "{permille}: {quantile} {exact}"
            );
        }
    }

    #[test]
    fn last_complete_window_is_reported() {
        let mut recent = Recent::default();
        let count = |recent: &mut Recent, now| recent.document(now)["count"].as_u64().unwrap();
        for now in [0, WINDOW_NS - 1, WINDOW_NS, WINDOW_NS + 5, 2 * WINDOW_NS - 1] {
            recent.add(now, 7);
        }
        assert_eq!(count(&mut recent, 2 * WINDOW_NS - 1), 2);
        assert_eq!(count(&mut recent, 2 * WINDOW_NS), 3);
        assert_eq!(count(&mut recent, 3 * WINDOW_NS), 0, "no request arrived since");
        recent.add(3 * WINDOW_NS, 7);
        assert_eq!(count(&mut recent, 5 * WINDOW_NS), 0, "nor here");
    }

    #[test]
    fn buckets_cover_every_value_with_ordered_edges() {
        for value in [0, 1, 31, 32, 33, 63, 64, 1000, u64::MAX / 2, u64::MAX] {
            let bucket = bucket_of(value);
            assert!(bucket_end(bucket) >= value, "{value}");
            assert!(bucket == 0 || bucket_end(bucket - 1) < value, "{value}");
        }
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(500), None, "of none");
        assert!(histogram.document()["max_ns"].is_null());
        histogram.add(u64::MAX);
        assert_eq!(histogram.quantile(1000), Some(u64::MAX));
    }
}
