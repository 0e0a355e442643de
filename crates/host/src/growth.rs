//! The part of a file that is not there yet: what must be written before reads of it reach the
//! device, and the way back for whoever gives up halfway.

use std::fs::File;
use std::sync::Arc;

use uflip_core::{Bytes, Io, Mode};

use crate::guard::mark::Kept;
use crate::guard::named::Folder;

/// Long enough to be fast, short enough that Ctrl-C is answered at once on any device.
const WRITE_BYTES: u64 = 1 << 20;

/// What a file that [`crate::open_file`] made or found too short has to be given: real blocks, by
/// writing `[from, to)` once, sequentially. Reads of holes would never reach the device.
#[derive(Debug)]
pub struct Growth {
    from: u64,
    to: u64,
    back: Back,
}

/// How a file is left as it was found. All of it is done to the descriptor that was opened, whatever
/// has become of the path.
#[derive(Debug)]
pub(crate) enum Back {
    /// It was not there: its name is removed, if it is still its name.
    Removed { file: File, folder: Folder },
    /// It was so long, and not ours unless `ours`.
    Shortened { file: File, length: u64, kept: Arc<Kept>, ours: bool },
}

impl Growth {
    pub(crate) fn new(from: u64, to: u64, back: Back) -> Growth {
        Growth { from, to, back }
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
            Io { offset: Bytes(offset), size, mode: Mode::Write, stream: 0 }
        })
    }

    /// Leave the file as it was found: as long as before, or not there.
    pub fn take_back(&self) {
        match &self.back {
            Back::Removed { file, folder } => folder.remove(file),
            Back::Shortened { file, length, kept, ours } => {
                // There is an error to be told already; a second one would hide it.
                let _ = file.set_len(*length);
                if !ours {
                    kept.give_back();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(path: &std::path::Path) -> File {
        File::options().read(true).write(true).open(path).expect("opened")
    }

    fn shortened(file: File, length: u64, from: u64, to: u64) -> Growth {
        let kept = Arc::new(Kept::read(&file));
        Growth::new(from, to, Back::Shortened { file, length, kept, ours: true })
    }

    #[test]
    fn the_writes_cover_the_new_part_once_and_nothing_else() {
        for (from, to) in [(0, 0), (0, 512), (512, 3 << 20), (1 << 20, (5 << 20) + 1024)] {
            let growth = shortened(tempfile::tempfile().expect("a file"), 0, from, to);
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
        std::fs::write(&path, [7; 2000]).expect("written");
        let made =
            |path| Back::Removed { file: opened(path), folder: Folder::of(path).expect("it") };
        let growth = shortened(opened(&path), 1000, 512, 4096);
        let elsewhere = folder.path().join("g");
        std::fs::rename(&path, &elsewhere).expect("renamed");
        std::fs::write(&path, b"another file").expect("written");
        growth.take_back();
        assert_eq!(std::fs::read(&elsewhere).expect("there"), [7; 1000], "wherever it is now");
        assert_eq!(std::fs::read(&path).expect("there"), b"another file");
        Growth::new(0, 4096, made(&path)).take_back();
        assert!(!path.exists());
    }

    #[test]
    fn another_file_that_took_the_name_is_not_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        std::fs::write(&path, b"ours").expect("written");
        let back = Back::Removed { file: opened(&path), folder: Folder::of(&path).expect("it") };
        let precious = folder.path().join("precious");
        std::fs::write(&precious, b"precious").expect("written");
        std::fs::rename(&precious, &path).expect("moved over ours");
        Growth::new(0, 4096, back).take_back();
        assert_eq!(std::fs::read(&path).expect("there"), b"precious");
        let names = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(names, 1, "and nothing else is left behind");
    }
}
