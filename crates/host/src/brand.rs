//! A brand: what uflip leaves in every sector that it writes, to know its own data again.
//!
//! A sector of random data begins with eight bytes that are the brand, combined by exclusive-or with a
//! digest of the random bytes behind them. So the sector stays incompressible, no two sectors begin
//! alike, whoever knows the digest finds the same number in all of them, and a sector in which a single
//! byte was changed is none of ours any more. It is asked for in two cases: is a file that a kill left behind still nothing but our own data, and is the medium
//! behind a name the one that a benchmark began on.
//!
//! A number is taken for a brand only if its upper 16 bits follow from the others, and if sectors
//! of different content agree on it; foreign data do so once in 2⁸⁰.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{SystemTime, UNIX_EPOCH};

use uflip_core::{SECTOR_BYTES_MIN, random};

const SECTOR: usize = SECTOR_BYTES_MIN as usize;
/// What one look reads.
const LOOK_BYTES: usize = 4096;
/// Looks at equal distances, beside those at 0 and the powers of two: a state that was begun is seen
/// as well as one that is complete.
const EVEN_LOOKS: u64 = 32;
/// The part of a brand that is random; the rest follows from it.
const LOW_BITS: u64 = (1 << 48) - 1;

/// A number that names the data of one medium.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Brand(u64);

impl Brand {
    /// One that nobody had before.
    #[must_use]
    pub fn fresh() -> Brand {
        let mut bytes = [0u8; 8];
        // A system call that needs no descriptor: a process may have none left.
        // SAFETY: the buffer has the stated size.
        let given = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        if given == bytes.len() as isize {
            return Brand::signed(u64::from_le_bytes(bytes));
        }
        // Linux before 3.17 has no such call. A brand is no secret: it only has to differ from others.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Brand::signed(random::mix(since.as_nanos() as u64 ^ u64::from(std::process::id()) << 40))
    }

    /// The brand of which `low` are the lower 48 bits.
    pub(crate) fn signed(low: u64) -> Brand {
        let low = (low & LOW_BITS).max(1);
        Brand(low | random::mix(low) << 48)
    }

    /// The brand that `word` is, if it is one.
    fn of(word: u64) -> Option<Brand> {
        (word & LOW_BITS != 0 && Brand::signed(word) == Brand(word)).then_some(Brand(word))
    }

    /// As it is written down: 16 hexadecimal digits.
    #[must_use]
    pub fn text(self) -> String {
        format!("{:016x}", self.0)
    }

    /// The brand that was written down as `text`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Brand> {
        (text.len() == 16).then(|| u64::from_str_radix(text, 16).ok()).flatten().and_then(Brand::of)
    }

    /// Put the brand into every sector of `bytes`, which are random.
    pub(crate) fn stamp(self, bytes: &mut [u8]) {
        for sector in bytes.chunks_exact_mut(SECTOR) {
            let word = self.0 ^ digest(sector);
            sector[..8].copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Whether the medium holds nothing but data of this brand and zeros, up to its end. `None`
    /// where `stop` said so before that was known.
    pub(crate) fn is_all_of(self, medium: &File, stop: &dyn Fn() -> bool) -> Option<bool> {
        let mut block = vec![0; 1 << 20];
        let mut at = 0;
        loop {
            if stop() {
                return None;
            }
            let length = match medium.read_at(&mut block, at) {
                Ok(0) => return Some(true),
                Ok(length) => length,
                Err(_) => return Some(false),
            };
            // A last piece that is no whole sector can only be zeros.
            let ours = |sector: &[u8]| {
                sector.iter().all(|byte| *byte == 0)
                    || (sector.len() == SECTOR && brand_of(sector) == Some(self))
            };
            let whole = if length > SECTOR { length / SECTOR * SECTOR } else { length };
            if !block[..whole].chunks(SECTOR).all(ours) {
                return Some(false);
            }
            at += whole as u64;
        }
    }

    /// The brand of the data on `medium`, of `size` bytes, from a look at about 70 places.
    #[must_use]
    pub fn found_on(medium: &File, size: u64) -> Option<Brand> {
        let size = size / LOOK_BYTES as u64;
        let even = (1..=EVEN_LOOKS).map(|look| (size / (EVEN_LOOKS + 1)).saturating_mul(look));
        let doubling = (0..u64::BITS).map(|bit| 1 << bit);
        let mut places: Vec<u64> =
            std::iter::once(0).chain(doubling).chain(even).filter(|at| *at < size).collect();
        places.sort_unstable();
        places.dedup();
        let mut seen: BTreeMap<Brand, Vec<u64>> = BTreeMap::new();
        let mut block = [0; LOOK_BYTES];
        for place in places {
            if medium.read_exact_at(&mut block, place * LOOK_BYTES as u64).is_err() {
                continue;
            }
            for sector in block.chunks_exact(SECTOR) {
                if let Some(brand) = brand_of(sector) {
                    let contents = seen.entry(brand).or_default();
                    if !contents.contains(&word_at(sector, 8)) {
                        contents.push(word_at(sector, 8));
                    }
                }
            }
        }
        let common = seen.into_iter().max_by_key(|(_, contents)| contents.len());
        common.filter(|(_, contents)| contents.len() >= 2).map(|(brand, _)| brand)
    }
}

fn word_at(sector: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(sector[at..at + 8].try_into().expect("eight bytes"))
}

/// Everything behind the first eight bytes of a sector in one number.
fn digest(sector: &[u8]) -> u64 {
    let words = sector[8..].chunks_exact(8);
    words.fold(0, |digest, word| {
        random::mix(digest ^ u64::from_le_bytes(word.try_into().expect("eight bytes")))
    })
}

fn brand_of(sector: &[u8]) -> Option<Brand> {
    Brand::of(word_at(sector, 0) ^ digest(sector))
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
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(content).expect("room");
        file
    }

    fn all(brand: Brand, content: &[u8]) -> bool {
        brand.is_all_of(&medium(content), &|| false).expect("nobody stops it")
    }

    #[test]
    fn a_brand_is_found_where_it_was_stamped_and_nowhere_else() {
        let brand = Brand::fresh();
        assert_eq!(Brand::parse(&brand.text()), Some(brand));
        let mut content = noise(1 << 20, 1);
        assert_eq!(Brand::found_on(&medium(&content), 1 << 20), None);
        brand.stamp(&mut content);
        assert_eq!(Brand::found_on(&medium(&content), 1 << 20), Some(brand));
        // A state that was only begun: the first 16 KiB of a medium of zeros.
        content[16 << 10..].fill(0);
        assert_eq!(Brand::found_on(&medium(&content), 1 << 20), Some(brand));
    }

    #[test]
    fn content_that_repeats_itself_has_no_brand() {
        let sector = noise(SECTOR, 2);
        for content in [vec![0; 1 << 16], vec![0xff; 1 << 16], sector.repeat(128)] {
            assert_eq!(Brand::found_on(&medium(&content), 1 << 16), None);
        }
        // Even if the repeated sector is one of ours: one piece of data is no proof.
        let mut one = noise(SECTOR, 3);
        Brand::fresh().stamp(&mut one);
        assert_eq!(Brand::found_on(&medium(&one.repeat(128)), 1 << 16), None);
    }

    #[test]
    fn one_foreign_byte_anywhere_is_seen() {
        let brand = Brand::fresh();
        let mut content = noise(3 << 20, 4);
        brand.stamp(&mut content);
        assert!(all(brand, &content));
        content[1 << 20..2 << 20].fill(0);
        assert!(all(brand, &content));
        assert!(!all(Brand::fresh(), &content));
        for at in [0, 9, 100, 511, (1 << 20) + 700, (2 << 20) + 300, (3 << 20) - 1] {
            let mut foreign = content.clone();
            foreign[at] ^= 1;
            assert!(!all(brand, &foreign), "byte {at}");
        }
        content.extend_from_slice(&[0; 100]);
        assert!(all(brand, &content), "a tail of zeros");
        content.push(1);
        assert!(!all(brand, &content), "a tail of something");
    }

    #[test]
    fn branded_data_stay_incompressible() {
        let mut content = noise(1 << 20, 5);
        Brand::fresh().stamp(&mut content);
        // No eight bytes that begin a sector are there twice, and bytes are as frequent as in noise.
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
