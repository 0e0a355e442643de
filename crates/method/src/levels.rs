//! The levels of response times: peaks of their distribution, separated by valleys.
//!
//! **Source**: uFLIP (2009) §4.2: "oscillating between two or more values". Peaks by persistence
//! (Edelsbrunner, Letscher, Zomorodian 2002): the depth of the adjacent valley decides whether a
//! peak counts.
//! **Faithful**: any number of levels, each with its share; also one that only one I/O in hundreds
//! reaches.
//! **Simplified**: bins of a sixteenth of an octave (4 %): closer levels are one.
//! **Ambiguous**: the definition of a level: the valley beside a peak must be less than half as
//! high, and deeper than chance makes it.

/// Bins per factor of two.
const BINS: f64 = 16.0;

/// A valley is lower than the smaller peak by at least this many standard errors of its count.
const STANDARD_ERRORS: f64 = 3.0;

/// A level of response times.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Level {
    /// Mean response time at this level [ns].
    pub mean_ns: f64,
    /// The share of the I/Os.
    pub share: f64,
}

/// Return the levels of response times [ns], lowest first, and the bounds between them.
#[must_use]
pub fn levels(times: &[f64]) -> (Vec<Level>, Vec<f64>) {
    let bounds = bounds(times);
    let (mut sums, mut counts) = (vec![0.0; bounds.len() + 1], vec![0.0; bounds.len() + 1]);
    for x in times {
        let level = bounds.iter().take_while(|bound| *x >= **bound).count();
        sums[level] += x;
        counts[level] += 1.0;
    }
    let level = |(sum, count): (f64, f64)| Level {
        mean_ns: sum / count,
        share: count / times.len() as f64,
    };
    (sums.into_iter().zip(counts).map(level).collect(), bounds)
}

/// Return the response times that separate the levels.
fn bounds(times: &[f64]) -> Vec<f64> {
    let position = |x: f64| x.max(1.0).log2() * BINS;
    let lowest = times.iter().copied().fold(f64::INFINITY, f64::min);
    let first = position(lowest).floor() - 2.0;
    let mut counts: Vec<f64> = Vec::new();
    for x in times {
        let bin = (position(*x).floor() - first) as usize;
        if bin + 3 > counts.len() {
            counts.resize(bin + 3, 0.0);
        }
        counts[bin] += 1.0;
    }
    let smooth: Vec<f64> = (0..counts.len())
        .map(|i| {
            let count = |j: usize| counts.get(j).copied().unwrap_or(0.0);
            let before = if i > 0 { counts[i - 1] } else { 0.0 };
            before + count(i) + count(i + 1)
        })
        .collect();
    let valleys = deep_valleys(&smooth);
    valleys.into_iter().map(|bin| ((bin as f64 + 0.5 + first) / BINS).exp2()).collect()
}

/// Return the lowest bins between significant peaks, in order.
fn deep_valleys(heights: &[f64]) -> Vec<usize> {
    // Peaks and the valleys between them, from left to right. Then the shallowest valley is
    // removed, with the lower of its peaks, until all remaining valleys are deep.
    let mut peaks: Vec<f64> = Vec::new();
    let mut valleys: Vec<(f64, usize)> = Vec::new();
    let mut lowest = (f64::INFINITY, 0, 0);
    let mut rising = true;
    for (index, height) in heights.iter().copied().enumerate() {
        match (rising, peaks.last().copied()) {
            (true, Some(peak)) if height >= peak => {
                *peaks.last_mut().expect("at least one peak") = height
            }
            (true, None) => peaks.push(height),
            (true, Some(_)) => {
                rising = false;
                lowest = (height, index, index);
            }
            (false, _) if height < lowest.0 => lowest = (height, index, index),
            (false, _) if height == lowest.0 => lowest.2 = index,
            (false, _) => {
                valleys.push((lowest.0, usize::midpoint(lowest.1, lowest.2)));
                peaks.push(height);
                rising = true;
            }
        }
    }
    loop {
        let shallow = |i: &usize| {
            let peak = peaks[*i].min(peaks[i + 1]);
            let valley = valleys[*i].0;
            peak - valley < STANDARD_ERRORS * peak.sqrt() || valley > peak / 2.0
        };
        let depth = |i: usize| peaks[i].min(peaks[i + 1]) - valleys[i].0;
        let shallowest =
            (0..valleys.len()).filter(shallow).min_by(|a, b| depth(*a).total_cmp(&depth(*b)));
        let Some(i) = shallowest else { break };
        peaks[i] = peaks[i].max(peaks[i + 1]);
        peaks.remove(i + 1);
        valleys.remove(i);
    }
    valleys.into_iter().map(|(_, bin)| bin).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_separated_with_their_shares() {
        let times: Vec<f64> = (0..3000)
            .map(|i| if i % 100 == 0 { 5e6 } else if i % 3 == 0 { 4e5 } else { 1e5 } + f64::from(i))
            .collect();
        let (levels, bounds) = levels(&times);
        assert_eq!((levels.len(), bounds.len()), (3, 2));
        assert!((levels[2].share - 0.01).abs() < 1e-9);
        assert!((levels[1].share - 0.33).abs() < 0.01);
    }

    #[test]
    fn single_hump_with_outliers_is_one_level() {
        let mut times: Vec<f64> = (0..1000).map(|i| 1e5 + f64::from(i % 100) * 100.0).collect();
        times.extend([3e5, 7e5, 2e6]);
        assert_eq!(levels(&times).0.len(), 1);
    }
}
