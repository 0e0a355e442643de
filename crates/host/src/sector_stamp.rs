//! The stamp in every sector that uflip writes, which identifies its own data.
//!
//! A sector of random data begins with eight bytes: the stamp, XORed with a digest of the random
//! bytes behind it. The sector stays incompressible, no two sectors begin alike, and decoding
//! yields the same number for all of them. A sector with a single changed byte no longer decodes to
//! the stamp. Stamps answer two questions: does a file left behind by a killed process contain only
//! our data, and is the medium behind a name the one that a benchmark began on.
//!
//! A number counts as a stamp only if its upper 16 bits follow from the others, and if sectors of
//! different content agree on it. Foreign data pass by chance once in 2⁸⁰.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{SystemTime, UNIX_EPOCH};

use uflip_core::{SECTOR_BYTES_MIN, random};

const SECTOR: usize = SECTOR_BYTES_MIN as usize;
/// The size of one sample.
const SAMPLE_BYTES: usize = 4096;
/// Samples at equal distances, besides those at 0 and the powers of two, so that an incomplete
/// device state is detected as well as a complete one.
const EVEN_SAMPLES: u64 = 32;
/// The random part of a stamp; the rest follows from it.
const LOW_BITS: u64 = (1 << 48) - 1;

/// A number that identifies the data of one medium.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SectorStamp(u64);

impl SectorStamp {
    /// Generate a new, unique stamp.
    #[must_use]
    pub fn generate() -> SectorStamp {
        let mut bytes = [0u8; 8];
        // A system call that needs no descriptor: the process may have reached its limit.
        // SAFETY: the buffer has the stated size.
        let filled = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        if filled == bytes.len() as isize {
            return SectorStamp::from_low_bits(u64::from_le_bytes(bytes));
        }
        // Linux before 3.17 does not have the call. A stamp is not a secret: it only has to be
        // unique.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        SectorStamp::from_low_bits(random::mix(
            since.as_nanos() as u64 ^ u64::from(std::process::id()) << 40,
        ))
    }

    /// Return the stamp with the lower 48 bits `low`.
    pub(crate) fn from_low_bits(low: u64) -> SectorStamp {
        let low = (low & LOW_BITS).max(1);
        SectorStamp(low | random::mix(low) << 48)
    }

    /// Return `word` as a stamp, if it is a valid one.
    fn from_word(word: u64) -> Option<SectorStamp> {
        (word & LOW_BITS != 0 && SectorStamp::from_low_bits(word) == SectorStamp(word))
            .then_some(SectorStamp(word))
    }

    /// Return the text form: 16 hexadecimal digits.
    #[must_use]
    pub fn text(self) -> String {
        format!("{:016x}", self.0)
    }

    /// Parse the text form.
    #[must_use]
    pub fn parse(text: &str) -> Option<SectorStamp> {
        (text.len() == 16)
            .then(|| u64::from_str_radix(text, 16).ok())
            .flatten()
            .and_then(SectorStamp::from_word)
    }

    /// Stamp every sector of `bytes`, which are random.
    pub(crate) fn apply(self, bytes: &mut [u8]) {
        for sector in bytes.chunks_exact_mut(SECTOR) {
            let word = self.0 ^ digest(sector);
            sector[..8].copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Return whether the medium holds only zeros and data with this stamp. `None` if `stop`
    /// returned true before the end.
    pub(crate) fn covers(self, medium: &File, stop: &dyn Fn() -> bool) -> Option<bool> {
        let mut block = vec![0; 1 << 20];
        let mut offset = 0;
        loop {
            if stop() {
                return None;
            }
            let length = match medium.read_at(&mut block, offset) {
                Ok(0) => return Some(true),
                Ok(length) => length,
                Err(_) => return Some(false),
            };
            // A last piece shorter than a sector can only be zeros.
            let is_ours = |sector: &[u8]| {
                sector.iter().all(|byte| *byte == 0)
                    || (sector.len() == SECTOR && decode(sector) == Some(self))
            };
            let whole = if length > SECTOR { length / SECTOR * SECTOR } else { length };
            if !block[..whole].chunks(SECTOR).all(is_ours) {
                return Some(false);
            }
            offset += whole as u64;
        }
    }

    /// Return the stamp of the data on `medium`, of `size` bytes, from about 70 samples.
    #[must_use]
    pub fn find_on(medium: &File, size: u64) -> Option<SectorStamp> {
        let size = size / SAMPLE_BYTES as u64;
        let even =
            (1..=EVEN_SAMPLES).map(|sample| (size / (EVEN_SAMPLES + 1)).saturating_mul(sample));
        let doubling = (0..u64::BITS).map(|bit| 1 << bit);
        let mut samples: Vec<u64> = std::iter::once(0)
            .chain(doubling)
            .chain(even)
            .filter(|sample| *sample < size)
            .collect();
        samples.sort_unstable();
        samples.dedup();
        let mut stamps: BTreeMap<SectorStamp, Vec<u64>> = BTreeMap::new();
        let mut block = [0; SAMPLE_BYTES];
        for sample in samples {
            if medium.read_exact_at(&mut block, sample * SAMPLE_BYTES as u64).is_err() {
                continue;
            }
            for sector in block.chunks_exact(SECTOR) {
                if let Some(stamp) = decode(sector) {
                    let contents = stamps.entry(stamp).or_default();
                    if !contents.contains(&word_at(sector, 8)) {
                        contents.push(word_at(sector, 8));
                    }
                }
            }
        }
        let common = stamps.into_iter().max_by_key(|(_, contents)| contents.len());
        common.filter(|(_, contents)| contents.len() >= 2).map(|(stamp, _)| stamp)
    }
}

fn word_at(sector: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(sector[at..at + 8].try_into().expect("8 bytes"))
}

/// Return a digest of everything after the first eight bytes of a sector.
fn digest(sector: &[u8]) -> u64 {
    let words = sector[8..].chunks_exact(8);
    words.fold(0, |digest, word| {
        random::mix(digest ^ u64::from_le_bytes(word.try_into().expect("8 bytes")))
    })
}

fn decode(sector: &[u8]) -> Option<SectorStamp> {
    SectorStamp::from_word(word_at(sector, 0) ^ digest(sector))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, fill};

    fn noise(bytes: usize, seed: u64) -> Vec<u8> {
        let mut noise = vec![0; bytes];
        fill(&mut Xoshiro256PlusPlus::seed_from_u64(seed), &mut noise);
        noise
    }

    fn medium(content: &[u8]) -> File {
        let mut file = tempfile::tempfile().expect("create a temporary file");
        file.write_all(content).expect("write the file");
        file
    }

    fn covers_all(stamp: SectorStamp, content: &[u8]) -> bool {
        stamp.covers(&medium(content), &|| false).expect("not cancelled")
    }

    #[test]
    fn stamp_is_found_only_at_its_sector() {
        let stamp = SectorStamp::generate();
        assert_eq!(SectorStamp::parse(&stamp.text()), Some(stamp));
        let mut content = noise(1 << 20, 1);
        assert_eq!(SectorStamp::find_on(&medium(&content), 1 << 20), None);
        stamp.apply(&mut content);
        assert_eq!(SectorStamp::find_on(&medium(&content), 1 << 20), Some(stamp));
        // An incomplete state: the first 16 KiB of a medium of zeros.
        content[16 << 10..].fill(0);
        assert_eq!(SectorStamp::find_on(&medium(&content), 1 << 20), Some(stamp));
    }

    #[test]
    fn repetitive_content_has_no_stamp() {
        let sector = noise(SECTOR, 2);
        for content in [vec![0; 1 << 16], vec![0xff; 1 << 16], sector.repeat(128)] {
            assert_eq!(SectorStamp::find_on(&medium(&content), 1 << 16), None);
        }
        // Even if the repeated sector has a valid stamp: one sector is not enough.
        let mut one = noise(SECTOR, 3);
        SectorStamp::generate().apply(&mut one);
        assert_eq!(SectorStamp::find_on(&medium(&one.repeat(128)), 1 << 16), None);
    }

    #[test]
    fn single_foreign_byte_is_detected() {
        let stamp = SectorStamp::generate();
        let mut content = noise(3 << 20, 4);
        stamp.apply(&mut content);
        assert!(covers_all(stamp, &content));
        content[1 << 20..2 << 20].fill(0);
        assert!(covers_all(stamp, &content));
        assert!(!covers_all(SectorStamp::generate(), &content));
        for at in [0, 9, 100, 511, (1 << 20) + 700, (2 << 20) + 300, (3 << 20) - 1] {
            let mut foreign = content.clone();
            foreign[at] ^= 1;
            assert!(!covers_all(stamp, &foreign), "byte {at}");
        }
        content.extend_from_slice(&[0; 100]);
        assert!(covers_all(stamp, &content), "a tail of zeros");
        content.push(1);
        assert!(!covers_all(stamp, &content), "a tail of other data");
    }

    #[test]
    fn stamped_data_stay_incompressible() {
        let mut content = noise(1 << 20, 5);
        SectorStamp::generate().apply(&mut content);
        // The first eight bytes of all sectors differ, and bytes are as frequent as in noise.
        let mut beginnings: Vec<u64> = content.chunks(SECTOR).map(|s| word_at(s, 0)).collect();
        beginnings.sort_unstable();
        beginnings.dedup();
        assert_eq!(beginnings.len(), content.len() / SECTOR);
        let mut counts = [0f64; 256];
        content.iter().for_each(|byte| counts[usize::from(*byte)] += 1.0);
        let expected = content.len() as f64 / 256.0;
        let chi: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
        // Chi-square with 255 degrees of freedom: 330.5 is exceeded once in a thousand.
        assert!(chi < 330.5, "chi-square {chi}");
    }
}
