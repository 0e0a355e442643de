//! The missing part of a file: the writes that allocate it, and the rollback if they are cancelled.

use std::fs::File;
use std::sync::Arc;

use uflip_core::{Bytes, Io, Mode};

use crate::guard::mark::OwnershipMark;
use crate::guard::target::Folder;

/// Large enough to be fast, small enough that Ctrl-C responds at once on any device.
const WRITE_BYTES: u64 = 1 << 20;

/// The growth of a file that [`crate::open_file`] created or found too short: `[from, to)` is
/// written once, sequentially. Reads of holes would never reach the device.
#[derive(Debug)]
pub struct Growth {
    from: u64,
    to: u64,
    rollback: Rollback,
}

/// The rollback of a growth. It acts on the opened descriptor, whatever has happened to the path.
#[derive(Debug)]
pub(crate) enum Rollback {
    /// The file is new: remove its name, if the name still leads to it.
    Remove { file: File, folder: Folder },
    /// The file existed: restore its length, and unless it was `ours`, remove the mark.
    Truncate { file: File, length: u64, mark: Arc<OwnershipMark>, ours: bool },
}

impl Growth {
    pub(crate) fn new(from: u64, to: u64, rollback: Rollback) -> Growth {
        Growth { from, to, rollback }
    }

    /// Return the number of writes.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.to.saturating_sub(self.from).div_ceil(WRITE_BYTES)
    }

    /// Return the writes, in order.
    pub fn writes(&self) -> impl Iterator<Item = Io> + use<> {
        let (from, to) = (self.from, self.to);
        (0..self.ios()).map(move |number| {
            let offset = from + number * WRITE_BYTES;
            let size = Bytes((to - offset).min(WRITE_BYTES));
            Io { offset: Bytes(offset), size, mode: Mode::Write, stream: 0 }
        })
    }

    /// Restore the original file: its length, or its absence.
    pub fn roll_back(&self) {
        match &self.rollback {
            Rollback::Remove { file, folder } => folder.remove(file),
            Rollback::Truncate { file, length, mark, ours } => {
                // An error is already being reported; a second one would hide it.
                let _ = file.set_len(*length);
                if !ours {
                    mark.remove_mark();
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

    fn truncated(file: File, length: u64, from: u64, to: u64) -> Growth {
        let mark = Arc::new(OwnershipMark::for_reading(&file));
        Growth::new(from, to, Rollback::Truncate { file, length, mark, ours: true })
    }

    #[test]
    fn the_writes_cover_the_new_part_once_and_nothing_else() {
        for (from, to) in [(0, 0), (0, 512), (512, 3 << 20), (1 << 20, (5 << 20) + 1024)] {
            let growth = truncated(tempfile::tempfile().expect("a file"), 0, from, to);
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
        let made = |path| Rollback::Remove {
            file: opened(path),
            folder: Folder::containing(path).expect("it"),
        };
        let growth = truncated(opened(&path), 1000, 512, 4096);
        let elsewhere = folder.path().join("g");
        std::fs::rename(&path, &elsewhere).expect("renamed");
        std::fs::write(&path, b"another file").expect("written");
        growth.roll_back();
        assert_eq!(std::fs::read(&elsewhere).expect("there"), [7; 1000], "wherever it is now");
        assert_eq!(std::fs::read(&path).expect("there"), b"another file");
        Growth::new(0, 4096, made(&path)).roll_back();
        assert!(!path.exists());
    }

    #[test]
    fn another_file_that_took_the_name_is_not_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        std::fs::write(&path, b"ours").expect("written");
        let rollback = Rollback::Remove {
            file: opened(&path),
            folder: Folder::containing(&path).expect("it"),
        };
        let precious = folder.path().join("precious");
        std::fs::write(&precious, b"precious").expect("written");
        std::fs::rename(&precious, &path).expect("moved over ours");
        Growth::new(0, 4096, rollback).roll_back();
        assert_eq!(std::fs::read(&path).expect("there"), b"precious");
        let names = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(names, 1, "and nothing else is left behind");
    }
}
