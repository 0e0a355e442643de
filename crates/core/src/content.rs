//! The content of writes: its compressibility, its duplicates, and a stamp in every sector.
//!
//! ```text
//! byte   0    8       16   24         32    40         48             512
//!       [ 0 │ magic │ LBA │ sequence │ run │ checksum │ random │ zeros ]
//! ```
//!
//! The first word is free for the mark of the medium. A sector is a pure function of the run, its
//! address and the sequence number of its write, so that data that was read back can be compared
//! with what was written, and a wrong sector shows which write it belongs to.
//!
//! **Source**: fio: `buffer_compress_percentage`, `dedupe_percentage`, `verify`.
//! **Faithful**: the percentage of a sector that compression removes (fio repeats the pattern in
//! chunks of 512 bytes as well); the percentage of blocks that are duplicates; header and checksum.
//! **Simplified**: a block of duplicates is 4 KiB, or the rest of an I/O. Duplicates repeat one of
//! a fixed set of blocks (fio's `dedupe_mode=working_set`), not the previous block.
//! **Ambiguous**: fio's manual says "compresses to the specified percentage"; its code, and this
//! one, remove that percentage. The header does not compress, so at most 90 % of a sector do.

use crate::random::{self, SeedableRng, Xoshiro256PlusPlus};
use crate::{Error, Result};

/// The size of a stamped sector [bytes].
pub const CONTENT_SECTOR: usize = 512;
/// The size of a block that is a duplicate as a whole [bytes].
const DUPLICATE_BLOCK: u64 = 4096;
/// The number of different blocks that duplicates repeat.
const DUPLICATE_BLOCKS: u64 = 32;
/// The run of all duplicates: they are the same on every device.
const DUPLICATE_RUN: u64 = 0x6475_706c_6963_6174;
const MAGIC: u64 = u64::from_le_bytes(*b"uFLIPsec");
const HEADER: usize = 48;
/// The bits of a sequence number below the number of its process.
const COUNT_BITS: u32 = 48;

/// How compressible writes are, and how many of them are duplicates.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
pub struct ContentShares {
    /// The percentage of the data that compression removes.
    pub compress_percent: u8,
    /// The percentage of blocks that equal an earlier one.
    pub duplicate_percent: u8,
}

/// The content of all writes of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Content {
    /// Its shares.
    pub shares: ContentShares,
    /// A number that no other run has: data of an earlier run is not mistaken for new data.
    pub run: u64,
}

/// The stamp of a sector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// The address, in sectors of 512 bytes.
    pub lba: u64,
    /// The number of the write.
    pub sequence: u64,
    /// The run.
    pub run: u64,
}

/// One write of a run: the source of the content of its sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StampedWrite {
    /// The first byte.
    pub offset: u64,
    /// Its number: see [`sequence`].
    pub sequence: u64,
}

/// The content of the next writes of one handle to a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContentWriter {
    content: Content,
    process: u64,
    count: u64,
}

impl ContentWriter {
    /// Begin the writes of `process`.
    #[must_use]
    pub fn new(content: Content, process: u64) -> ContentWriter {
        ContentWriter { content, process, count: 0 }
    }

    /// Return the content of the run.
    #[must_use]
    pub fn content(&self) -> Content {
        self.content
    }

    /// Fill `sectors` with the next write, which begins at byte `offset`.
    pub fn fill_next(&mut self, offset: u64, sectors: &mut [u8]) {
        let write = StampedWrite { offset, sequence: sequence(self.process, self.count) };
        self.count += 1;
        self.content.fill(write, offset, sectors);
    }
}

/// Return the number of write `count` of `process`.
#[must_use]
pub fn sequence(process: u64, count: u64) -> u64 {
    process << COUNT_BITS | count
}

impl Stamp {
    /// Return the stamp as one number: a hash.
    #[must_use]
    pub fn number(self) -> u64 {
        random::mix(self.run ^ random::mix(self.lba ^ random::mix(self.sequence)))
    }

    /// Return the stamp in the header of `sector`; `None` if the header or the data is damaged or
    /// of another origin.
    #[must_use]
    pub fn read_from(sector: &[u8]) -> Option<Stamp> {
        let word = |at: usize| {
            u64::from_le_bytes(sector[at..at + 8].try_into().expect("the slice has 8 bytes"))
        };
        let stamp = Stamp { lba: word(16), sequence: word(24), run: word(32) };
        (word(8) == MAGIC && word(40) == checksum(sector)).then_some(stamp)
    }
}

/// Return the checksum of header and data.
fn checksum(sector: &[u8]) -> u64 {
    random::hash_words(random::hash_words(0, &sector[8..40]), &sector[HEADER..])
}

impl Content {
    /// Return the stamp of the sector at byte `at` of `write`.
    #[must_use]
    pub fn stamp(&self, write: StampedWrite, at: u64) -> Stamp {
        let block = (at - write.offset) / DUPLICATE_BLOCK;
        let draw = random::mix(self.run ^ random::mix(write.sequence) ^ random::mix(!block));
        if draw % 100 < u64::from(self.shares.duplicate_percent) {
            let sector = (at - write.offset) % DUPLICATE_BLOCK / CONTENT_SECTOR as u64;
            let which = random::mix(draw) % DUPLICATE_BLOCKS;
            return Stamp { lba: sector, sequence: which, run: DUPLICATE_RUN };
        }
        let lba = at / CONTENT_SECTOR as u64;
        Stamp { lba, sequence: write.sequence, run: self.run }
    }

    /// Fill `sectors`, which begin at byte `at`, with the content of `write`. The first word of
    /// each sector is 0.
    pub fn fill(&self, write: StampedWrite, at: u64, sectors: &mut [u8]) {
        let compressed = CONTENT_SECTOR * usize::from(self.shares.compress_percent) / 100 / 8 * 8;
        let end = (CONTENT_SECTOR - compressed).max(HEADER);
        for (sector, at) in
            sectors.chunks_exact_mut(CONTENT_SECTOR).zip((at..).step_by(CONTENT_SECTOR))
        {
            let stamp = self.stamp(write, at);
            let mut random = Xoshiro256PlusPlus::seed_from_u64(stamp.number());
            random::fill(&mut random, &mut sector[HEADER..end]);
            sector[end..].fill(0);
            let words = [0, MAGIC, stamp.lba, stamp.sequence, stamp.run];
            for (bytes, word) in sector.chunks_exact_mut(8).zip(words) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            let sum = checksum(sector);
            sector[40..HEADER].copy_from_slice(&sum.to_le_bytes());
        }
    }
}

/// Refuse data other than `random` where the pattern determines the content.
///
/// # Errors
/// If `data` is not `random`.
pub fn check_data_source(url: &str, data: &str) -> Result<()> {
    if data == "random" {
        return Ok(());
    }
    Err(Error::usage("The content of the writes is given twice")
        .at(url)
        .got(format!(
            "--data {data} with a verified pattern, compress_percent or duplicate_percent"
        ))
        .allowed("--data random, the default")
        .action("omit --data"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn content(compress_percent: u8, duplicate_percent: u8) -> Content {
        Content { shares: ContentShares { compress_percent, duplicate_percent }, run: 7 }
    }

    fn sectors(content: &Content, write: StampedWrite, bytes: usize) -> Vec<u8> {
        let mut data = vec![0xff; bytes];
        content.fill(write, write.offset, &mut data);
        data
    }

    #[test]
    fn any_flipped_bit_behind_the_first_word_is_found() {
        let write = StampedWrite { offset: 8192, sequence: sequence(3, 5) };
        let data = sectors(&content(40, 0), write, 4096);
        for (number, sector) in data.chunks_exact(CONTENT_SECTOR).enumerate() {
            let stamp = Stamp { lba: 16 + number as u64, sequence: write.sequence, run: 7 };
            assert_eq!(Stamp::read_from(sector), Some(stamp));
        }
        for bit in 64..CONTENT_SECTOR * 8 {
            let mut damaged = data[..CONTENT_SECTOR].to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Stamp::read_from(&damaged), None, "bit {bit}");
        }
    }

    #[test]
    fn part_of_a_write_has_the_same_content() {
        let write = StampedWrite { offset: 4096, sequence: 9 };
        let content = content(30, 50);
        let whole = sectors(&content, write, 65536);
        let mut part = vec![0; 8192];
        content.fill(write, 4096 + 20480, &mut part);
        assert_eq!(part, whole[20480..28672]);
    }

    /// Of 4,000 blocks a share D is drawn from 32 contents, with a standard deviation of 32 blocks
    /// at most; all others are different.
    #[test]
    fn share_of_duplicates_is_the_given_one() {
        for percent in [0, 25, 50, 100] {
            let content = content(0, percent);
            let blocks = (0..4000).map(|count| {
                let write = StampedWrite { offset: 0, sequence: count };
                sectors(&content, write, 4096)
            });
            let different = blocks.collect::<BTreeSet<_>>().len() as f64;
            let expected = 4000.0 * (1.0 - f64::from(percent) / 100.0);
            assert!((different - expected).abs() < 32.0 + 4.0 * 32.0, "{percent}: {different}");
        }
    }
}
