//! fio's logs of rates and histograms: `write_bw_log`, `write_iops_log`, `write_hist_log`.
//!
//! ```text
//!  time [ms], value, 0|1|2, block size [bytes] …     bandwidth [KiB/s] or IOPS
//!  time [ms], 0|1|2, block size [bytes], bin, bin, … I/Os of each bin since the row before
//! ```
//!
//! **Source**: fio's documentation, "Log file formats"; `flush_hist_samples` and `plat_idx_to_val` of
//! its `iolog.c` and `stat.c`; the output of fio 3.33.
//! **Faithful**: all values, with the end of each row; bins with their limits.
//! **Simplified**: priorities and offsets are ignored.
//! **Ambiguous**: without `log_avg_msec` fio 3 logs a line for each I/O, whose bandwidth is that of
//! this I/O alone; a block size of 0 marks an average. fio 2 logged averages of 500 ms with a block
//! size. The caller distinguishes them by their distances.

use uflip_core::Mode;

use crate::fio_log::{self, Quantity, fields, log_line};
use crate::lines::{LineError, LineReader, OddLines};
use crate::sample::Sample;

const MAX_ROWS: usize = 1 << 26;
/// The most pairs of a bin and its count in a log.
const MAX_BINS: usize = 1 << 26;
/// The bins of an octave, and all bins of fio 2 (µs) and fio 3 (ns), without coarseness.
const OCTAVE_BINS: u64 = 64;
const BINS_US: u64 = 19 * OCTAVE_BINS;
const BINS_NS: u64 = 29 * OCTAVE_BINS;
/// The largest `log_hist_coarseness`.
const MAX_COARSENESS: u32 = 6;
/// The fields before the bins.
const HEAD_FIELDS: usize = 3;
const US: u64 = 1000;

/// A log of rates or histograms, as columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateLog {
    /// "bw", "iops" or "hist".
    pub quantity: &'static str,
    /// The end of each row [ms], as it was logged.
    pub time_ms: Vec<u64>,
    /// Whether a row reads (0), writes (1) or trims (2).
    pub direction: Vec<u64>,
    /// The bandwidth [KiB/s], the IOPS, or the number of I/Os of a histogram.
    pub value: Vec<u64>,
    /// The block size [bytes]; 0 in averages.
    pub size: Vec<u64>,
    /// Of each bin that is not empty: its row, its number, and its I/Os.
    pub bin_row: Vec<u64>,
    /// The number of the bin.
    pub bin: Vec<u64>,
    /// The I/Os in the bin.
    pub bin_ios: Vec<u64>,
    /// The lower limit of each bin [ns]; the last value is the end of the last bin.
    pub bin_limits_ns: Vec<u64>,
    /// The lines that do not belong to the format.
    pub odd: OddLines,
}

/// Read a log of rates or histograms; `None` if the file is another one.
pub(crate) fn read(
    sample: &Sample,
    lines: &mut LineReader<'_>,
) -> Result<Option<RateLog>, LineError> {
    let is_histogram = sample.lines.iter().any(|line| fio_log::is_histogram(&fields(line)));
    let quantity = match fio_log::quantity_of_name(&sample.name) {
        _ if is_histogram => "hist",
        Quantity::Bandwidth => "bw",
        Quantity::Iops => "iops",
        _ => return Ok(None),
    };
    if fio_log::matches(sample) * 2 < sample.lines.len() || sample.lines.is_empty() {
        return Ok(None);
    }
    let mut log = RateLog { quantity, ..RateLog::default() };
    let mut bins = 0;
    while let Some(line) = lines.next()? {
        if log.time_ms.len() == MAX_ROWS || log.bin.len() >= MAX_BINS {
            return Err(lines.error("one row more", &format!("up to {MAX_ROWS} rows")));
        }
        let fields = fields(line);
        let row = if is_histogram {
            log.histogram_row(&fields, &mut bins)
        } else {
            log_line(&fields).map(|row| (row.time_ms, row.direction, row.value, row.size))
        };
        let Some((time_ms, direction, value, size)) = row else {
            lines.skip_odd_line();
            continue;
        };
        log.time_ms.push(time_ms);
        log.direction.push(direction);
        log.value.push(value);
        log.size.push(size);
    }
    if is_histogram {
        log.bin_limits_ns = bin_limits_ns(bins as u64).ok_or_else(|| {
            LineError::of_file(
                format!("histograms of {bins} bins"),
                "1856 bins (fio 3) or 1216 (fio 2), or these divided by 2, 4, … 64 \
                 (log_hist_coarseness)",
            )
        })?;
    }
    log.odd = lines.odd_lines(log.time_ms.len(), "a row of a log of fio, as the others")?;
    Ok(Some(log))
}

impl RateLog {
    /// Add the bins of a row; return its time, direction, I/Os and block size. `bins` is the number of
    /// bins of all rows, or 0 before the first.
    fn histogram_row(&mut self, fields: &[&str], bins: &mut usize) -> Option<(u64, u64, u64, u64)> {
        let numbers: Vec<u64> =
            fields.iter().map(|field| field.parse().ok()).collect::<Option<_>>()?;
        let (&[time_ms, direction, size], counts) = numbers.split_first_chunk::<HEAD_FIELDS>()?;
        if direction > 2 || (*bins > 0 && counts.len() != *bins) {
            return None;
        }
        let total = counts.iter().try_fold(0u64, |sum, count| sum.checked_add(*count))?;
        *bins = counts.len();
        let row = self.time_ms.len() as u64;
        for (bin, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            self.bin_row.push(row);
            self.bin.push(bin as u64);
            self.bin_ios.push(*count);
        }
        Some((time_ms, direction, total, size))
    }

    /// Return the mode of a direction.
    #[must_use]
    pub fn mode(direction: u64) -> Mode {
        match direction {
            0 => Mode::Read,
            1 => Mode::Write,
            _ => Mode::Trim,
        }
    }
}

/// Return the lower limits of all bins and the end of the last [ns]; `None` if fio has no such number.
fn bin_limits_ns(bins: u64) -> Option<Vec<u64>> {
    let coarseness = |all: u64| (0..=MAX_COARSENESS).find(|shift| all >> shift == bins);
    let (unit, shift) = match (coarseness(BINS_NS), coarseness(BINS_US)) {
        (Some(shift), _) => (1, shift),
        (None, Some(shift)) => (US, shift),
        (None, None) => return None,
    };
    // Bins of the first two octaves are one unit wide, and those of each further one twice as wide.
    let limit = |bin: u64| match bin / OCTAVE_BINS {
        0 | 1 => bin,
        octave => (OCTAVE_BINS + bin % OCTAVE_BINS) << (octave - 1),
    };
    Some((0..=bins).map(|bin| limit(bin << shift) * unit).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_have_the_limits_of_fio() {
        let fine = bin_limits_ns(1856).unwrap();
        // Values that fio's plat_idx_to_val maps to the middle of these bins.
        assert_eq!((fine[0], fine[1], fine[127], fine[128], fine[129]), (0, 1, 127, 128, 130));
        assert_eq!((fine[191], fine[192], fine[193]), (254, 256, 260));
        assert!(fine.is_sorted());
        let coarse = bin_limits_ns(1856 >> 3).unwrap();
        assert!(coarse.iter().zip(fine.iter().step_by(8)).all(|(a, b)| a == b));
        assert_eq!(bin_limits_ns(1216).unwrap()[129], 130_000);
        assert_eq!(bin_limits_ns(1000), None);
    }
}
