//! Digests of files and texts, which show whether a stored run is unchanged.
//!
//! BLAKE3, written as 64 hexadecimal digits. It hashes at several GB/s on one core, so every file
//! can be checked before it is read.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use uflip_core::{Error, ErrorKind, Result};

use crate::safe_read;

/// Bytes read at a time: large enough for the widest vectors, small enough for the cache.
const PIECE: usize = 1 << 18;

/// The length of a file and its digest.
pub type Digest = (u64, String);

/// Return the digest of `bytes`.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Return the length of a regular file [bytes] and its digest.
///
/// # Errors
/// [`ErrorKind::Results`]: the file is missing, not regular, or unreadable.
pub fn digest_file(path: &Path) -> Result<Digest> {
    read(path).map_err(|message| {
        Error::new(ErrorKind::Results, "The file cannot be read")
            .at(path.display().to_string())
            .got(message)
            .action("restore it from a copy, or move it away")
    })
}

fn read(path: &Path) -> std::result::Result<Digest, String> {
    let (mut file, _) = safe_read::regular(path)?;
    digest_of(&mut file).map_err(|error| error.to_string())
}

/// Return the length and digest of the rest of an open file.
pub(crate) fn digest_of(file: &mut File) -> std::io::Result<Digest> {
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok((hasher.count(), hasher.finalize().to_hex().to_string())),
            length => hasher.update(&piece[..length]),
        };
    }
}

/// Return [`digest_file`] of several files, computed on all CPUs.
#[must_use]
pub fn digest_files(paths: &[impl AsRef<Path> + Sync]) -> Vec<Result<Digest>> {
    map_on_all_cpus(paths, |path| digest_file(path.as_ref()))
}

/// Apply `work` to each of `items` on all CPUs; return the results in order.
pub(crate) fn map_on_all_cpus<I: Sync, O: Send>(
    items: &[I],
    work: impl Fn(&I) -> O + Sync,
) -> Vec<O> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let work_share = || {
        let mut results = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return results };
            results.push((index, work(item)));
        }
    };
    let mut results: Vec<(usize, O)> = std::thread::scope(|scope| {
        // If no further thread can be started, the existing ones do all the work.
        let spawned = || std::thread::Builder::new().spawn_scoped(scope, work_share).ok();
        let others: Vec<_> = (1..processors.min(items.len())).map_while(|_| spawned()).collect();
        let mut results = work_share();
        for other in others {
            results.extend(other.join().expect("the thread does not panic"));
        }
        results
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the official BLAKE3 test vectors: the empty input, and the bytes 0, 1, 2.
    #[test]
    fn digests_match_published_test_vectors() {
        let empty = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        let three = "e1be4d7a8ab5560aa4199eea339849ba8e293d55ca0a81006726d184519e647f";
        assert_eq!(digest(&[]), empty);
        assert_eq!(digest(&[0, 1, 2]), three);
    }

    #[test]
    fn file_digest_equals_digest_of_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<_> = [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE]
            .into_iter()
            .map(|length| {
                let path = folder.path().join(length.to_string());
                std::fs::write(&path, bytes(length)).unwrap();
                path
            })
            .collect();
        for (path, digest_result) in paths.iter().zip(digest_files(&paths)) {
            let content = std::fs::read(path).unwrap();
            assert_eq!(digest_result.unwrap(), (content.len() as u64, digest(&content)));
        }
    }

    #[test]
    fn digest_of_a_missing_file_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let error = digest_file(folder.path()).unwrap_err();
        assert!(error.to_string().contains("a folder instead of a file"), "{error}");
        let missing = folder.path().join("missing");
        assert!(digest_file(&missing).unwrap_err().to_string().contains("missing"));
        assert!(digest_file(Path::new("/dev/zero")).is_err());
    }

    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|index| (index * 31 % 251) as u8).collect()
    }
}
