//! The part of a file that is not there yet: what must be written before reads of it reach the
//! device, and the way back for whoever gives up halfway.

use std::fs::OpenOptions;
use std::path::PathBuf;

use uflip_core::{Bytes, Io, Mode};

/// Long enough to be fast, short enough that Ctrl-C is answered at once on any device.
const WRITE_BYTES: u64 = 1 << 20;

/// What a file that [`crate::open_file`] made or found too short has to be given: real blocks, by
/// writing `[from, to)` once, sequentially. Reads of holes would never reach the device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Growth {
    path: PathBuf,
    /// How long the file was; `None` where there was none.
    before: Option<u64>,
    from: u64,
    to: u64,
}

impl Growth {
    pub(crate) fn new(path: &str, before: Option<u64>, from: u64, to: u64) -> Growth {
        Growth { path: path.into(), before, from, to }
    }

    /// How many writes it takes.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.to.saturating_sub(self.from).div_ceil(WRITE_BYTES)
    }

    /// The writes, in order.
    pub fn writes(&self) -> impl Iterator<Item = Io> + use<> {
        let (from, to) = (self.from, self.to);
        (0..self.ios()).map(move |number| {
            let offset = from + number * WRITE_BYTES;
            let size = Bytes((to - offset).min(WRITE_BYTES));
            Io { offset: Bytes(offset), size, mode: Mode::Write }
        })
    }

    /// Leave the file as it was found: as long as before, or not there.
    pub fn take_back(&self) {
        // There is an error to be told already; a second one would hide it.
        let _ = match self.before {
            None => std::fs::remove_file(&self.path),
            Some(length) => OpenOptions::new()
                .write(true)
                .open(&self.path)
                .and_then(|file| file.set_len(length)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writes_cover_the_new_part_once_and_nothing_else() {
        for (from, to) in [(0, 0), (0, 512), (512, 3 << 20), (1 << 20, (5 << 20) + 1024)] {
            let growth = Growth::new("unused", None, from, to);
            let writes: Vec<Io> = growth.writes().collect();
            assert_eq!(writes.len() as u64, growth.ios());
            let mut at = from;
            for io in writes {
                assert_eq!((io.offset.0, io.mode), (at, Mode::Write));
                at += io.size.0;
            }
            assert_eq!(at, to);
        }
    }

    #[test]
    fn what_was_there_is_there_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        let name = path.to_str().expect("text");
        std::fs::write(&path, [7; 2000]).expect("written");
        Growth::new(name, Some(1000), 512, 4096).take_back();
        assert_eq!(std::fs::read(&path).expect("there"), [7; 1000]);
        Growth::new(name, None, 0, 4096).take_back();
        assert!(!path.exists());
    }
}
