//! Verification: the data that a pattern has written, read back and compared.
//!
//! ```text
//! writes in order     a──────  b──    c────     a, b, c: offset and sequence number
//! units                │ a │ b │ b c │ c │      the writes whose data a unit may hold
//! ```
//!
//! **Source**: fio's `verify`; FOX's comparison of data that was read back (uFLIP-OC 2017, §4.3).
//! **Faithful**: every sector that the pattern wrote is read and compared as a whole.
//! **Simplified**: reads happen after the run, and reads of the pattern itself are not compared.
//! **Ours**: the order of overlapping writes in flight is unknown, so that any of them may be the
//! last one: those of different processes, and the last `queue_depth` writes of a process.
//! **Ambiguous**: the content of a trimmed sector; it is not compared.

use uflip_core::content::{CONTENT_SECTOR, Content, Stamp, StampedWrite, sequence};
use uflip_core::{Bytes, DeviceInfo, Error, ErrorKind, Io, Mode, Result};

use crate::drive::Control;
use crate::pattern::Pattern;
use crate::spec::Resolved;

/// The number of wrong places that an error lists.
const LISTED_PLACES: usize = 4;

/// A device whose data can be read.
pub trait ReadBack {
    /// Return its properties.
    fn info(&self) -> &DeviceInfo;

    /// Return the data of `io`, a read.
    ///
    /// # Errors
    /// Any error of the device.
    fn read_back(&mut self, io: &Io) -> Result<&[u8]>;

    /// Add the mark of the medium to generated `sectors`.
    fn mark(&self, _sectors: &mut [u8]) {}
}

/// The writes of a pattern, by the units that they cover.
#[derive(Debug)]
pub struct WrittenUnits {
    unit_bytes: u64,
    writes: Vec<StampedWrite>,
    /// (unit, write), sorted; of each process, those that may hold the data of the unit.
    entries: Vec<(u64, u32)>,
}

impl WrittenUnits {
    /// Return the units that `pattern` leaves with its data.
    ///
    /// # Errors
    /// A pattern without a fixed length, or without writes; a pattern that appends to zones.
    pub fn of_pattern(pattern: &Resolved) -> Result<WrittenUnits> {
        check_verifiable(pattern)?;
        let unit_bytes = pattern
            .issued()
            .filter(|io| matches!(io.mode, Mode::Write | Mode::Trim))
            .fold(0, |unit, io| gcd(unit, gcd(io.offset.0, io.size.0)));
        let (mut writes, mut entries) = (Vec::new(), Vec::new());
        for (process, stream) in (0..).zip(&pattern.streams) {
            let mut ios = Pattern::new(stream);
            let mut of_process = Vec::new();
            let mut count = 0;
            for order in 0..stream.total_ios {
                let io = ios.next_io().io;
                let write = match io.mode {
                    Mode::Write => {
                        let number = sequence(process, count);
                        count += 1;
                        writes.push(StampedWrite { offset: io.offset.0, sequence: number });
                        Some(writes.len() as u32 - 1)
                    }
                    Mode::Trim => None,
                    _ => continue,
                };
                let units = io.offset.0 / unit_bytes..(io.offset.0 + io.size.0) / unit_bytes;
                of_process.extend(units.map(|unit| (unit, order, write)));
            }
            of_process.sort_unstable();
            for of_unit in of_process.chunk_by(|one, next| one.0 == next.0) {
                let last = of_unit.iter().rev().take(stream.queue_depth as usize);
                let kept = last.map_while(|(unit, _, write)| Some((*unit, (*write)?)));
                entries.extend(kept);
            }
        }
        entries.sort_unstable();
        Ok(WrittenUnits { unit_bytes, writes, entries })
    }

    /// Return the first byte of each unit, with the writes whose data it may hold.
    pub fn units(&self) -> impl Iterator<Item = (u64, &[(u64, u32)])> {
        let by_unit = self.entries.chunk_by(|one, next| one.0 == next.0);
        by_unit.map(|entries| (entries[0].0 * self.unit_bytes, entries))
    }

    /// Return the size of a unit.
    #[must_use]
    pub fn unit_bytes(&self) -> u64 {
        self.unit_bytes
    }

    /// Read all units of `device` and compare them with `content`; return the number of sectors.
    ///
    /// # Errors
    /// A sector differs; any error of the device.
    pub fn verify(
        &self,
        device: &mut impl ReadBack,
        content: &Content,
        control: &Control,
    ) -> Result<u64> {
        let mut differences = Differences::new(device.info().url.clone());
        let size = self.unit_bytes as usize;
        let mut expected = vec![0; size];
        for (at, writes) in self.units() {
            if control.is_cancelled() {
                return Err(Error::new(ErrorKind::Interrupted, "The verification was interrupted"));
            }
            let read =
                Io { offset: Bytes(at), size: Bytes(size as u64), mode: Mode::Read, stream: 0 };
            let data = device.read_back(&read)?[..size].to_vec();
            let mut matches = vec![false; size / CONTENT_SECTOR];
            let mut newest = None;
            for (_, write) in writes {
                let write = self.writes[*write as usize];
                content.fill(write, at, &mut expected);
                device.mark(&mut expected);
                let pairs =
                    data.chunks_exact(CONTENT_SECTOR).zip(expected.chunks_exact(CONTENT_SECTOR));
                for (found, (one, other)) in matches.iter_mut().zip(pairs) {
                    *found |= one == other;
                }
                newest = Some(write);
            }
            let newest = newest.expect("a unit has a write");
            for (number, sector) in data.chunks_exact(CONTENT_SECTOR).enumerate() {
                differences.compared += 1;
                if !matches[number] {
                    let at = at + (number * CONTENT_SECTOR) as u64;
                    differences.add(at, content.stamp(newest, at), found_stamp(sector, content));
                }
            }
        }
        differences.into_result()
    }
}

/// Refuse a pattern whose writes cannot be derived from its specification.
fn check_verifiable(pattern: &Resolved) -> Result<()> {
    let refused = |problem: &str, action: &str| {
        Err(Error::usage(problem).at("--verify").action(action.to_owned()))
    };
    if pattern.stop.is_some() || pattern.is_timed() {
        return refused(
            "A run until convergence, or for a time, cannot be verified: its last writes are unknown",
            "give --io-count instead of --until-converged, --run-time or --ramp-time",
        );
    }
    if pattern.issued().any(|io| io.mode.requires_zones()) {
        return refused(
            "Commands of zones cannot be verified",
            "verify a pattern of reads, writes and trims",
        );
    }
    if !pattern.issued().any(|io| io.mode == Mode::Write) {
        return refused("The pattern writes nothing to verify", "verify a pattern that writes");
    }
    Ok(())
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// Describe what a wrong sector holds.
fn found_stamp(sector: &[u8], content: &Content) -> String {
    if sector.iter().all(|byte| *byte == 0) {
        return "zeros".into();
    }
    match Stamp::read_from(sector) {
        Some(stamp) if stamp.run == content.run => describe(stamp),
        Some(stamp) => format!("{} of an earlier run", describe(stamp)),
        None => "damaged or foreign data".into(),
    }
}

/// Return a stamp as text: its number, and what it is derived from.
#[must_use]
pub fn describe(stamp: Stamp) -> String {
    let Stamp { lba, sequence, .. } = stamp;
    format!("stamp {:016x} (sector {lba}, write {sequence})", stamp.number())
}

/// The sectors that differ.
#[derive(Debug)]
pub struct Differences {
    url: String,
    compared: u64,
    wrong: u64,
    listed: Vec<String>,
}

impl Differences {
    /// Create an empty list for the device `url`.
    #[must_use]
    pub fn new(url: String) -> Differences {
        Differences { url, compared: 0, wrong: 0, listed: Vec::new() }
    }

    /// Count `sectors` compared sectors.
    pub fn count(&mut self, sectors: u64) {
        self.compared += sectors;
    }

    /// Add the sector at byte `at`.
    pub fn add(&mut self, at: u64, expected: Stamp, found: String) {
        self.wrong += 1;
        if self.listed.len() < LISTED_PLACES {
            let expected = describe(expected);
            self.listed.push(format!("byte {at}: expected {expected}, found {found}"));
        }
    }

    /// Return the number of compared sectors.
    ///
    /// # Errors
    /// If any of them differs.
    pub fn into_result(self) -> Result<u64> {
        if self.wrong == 0 {
            return Ok(self.compared);
        }
        let mut places = self.listed.join("; ");
        if self.wrong > self.listed.len() as u64 {
            places += "; …";
        }
        Err(Error::device("Data that was read back differs from what was written")
            .at(self.url)
            .got(format!("{} of {} sectors differ: {places}", self.wrong, self.compared))
            .allowed("the data of the last write in every sector")
            .action("do not trust the device with data: check its log, its cable and its memory"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::spec::PatternSpec;

    fn pattern(json: &str) -> Resolved {
        PatternSpec::parse(json).unwrap().resolve(Bytes(1 << 20), Bytes(512)).unwrap()
    }

    /// The oracle applies the writes to a map of sectors, one after the other.
    #[test]
    fn last_write_of_each_unit_is_that_of_a_sector_map() {
        let json = r#"{"kind": "mix", "first": {"mode": "write", "location": "random", "io_size": 3072,
            "target_size": 98304}, "second": {"mode": "trim", "location": "random", "io_size": 4096,
            "target_size": 98304}, "ratio": 5, "io_count": 20}"#;
        let pattern = pattern(json);
        let (mut sectors, mut count) = (BTreeMap::new(), 0);
        for io in pattern.issued() {
            let touched = io.offset.0 / 512..(io.offset.0 + io.size.0) / 512;
            if io.mode == Mode::Trim {
                sectors.retain(|sector, _| !touched.contains(sector));
                continue;
            }
            sectors.extend(touched.map(|sector| (sector, count)));
            count += 1;
        }
        let written = WrittenUnits::of_pattern(&pattern).unwrap();
        let mut found = BTreeMap::new();
        for (at, writes) in written.units() {
            assert_eq!(writes.len(), 1, "a queue depth of 1 leaves one write");
            let number = written.writes[writes[0].1 as usize].sequence;
            let unit = at / 512..(at + written.unit_bytes()) / 512;
            found.extend(unit.map(|sector| (sector, number)));
        }
        assert_eq!(found, sectors);
    }

    #[test]
    fn patterns_without_known_writes_are_refused() {
        for (json, words) in [
            (r#"{"kind": "basic", "mode": "read", "location": "random"}"#, "writes nothing"),
            (
                r#"{"kind": "basic", "mode": "write", "location": "random",
                    "stop": {"max_ios": 5000, "min_ios": 100}}"#,
                "until convergence",
            ),
        ] {
            let error = WrittenUnits::of_pattern(&pattern(json)).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
