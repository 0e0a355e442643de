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
    /// The file existed: restore its length, and unless it was `was_ours`, remove the mark.
    Truncate { file: File, length: u64, mark: Arc<OwnershipMark>, was_ours: bool },
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
            Rollback::Truncate { file, length, mark, was_ours } => {
                // An error is already being reported; a second one would hide it.
                let _ = file.set_len(*length);
                if !was_ours {
                    mark.remove_mark();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_file(path: &std::path::Path) -> File {
        File::options().read(true).write(true).open(path).expect("open the file")
    }

    fn truncating_growth(file: File, length: u64, from: u64, to: u64) -> Growth {
        let mark = Arc::new(OwnershipMark::for_reading(&file));
        Growth::new(from, to, Rollback::Truncate { file, length, mark, was_ours: true })
    }

    #[test]
    fn growth_writes_cover_exactly_the_new_part() {
        for (from, to) in [(0, 0), (0, 512), (512, 3 << 20), (1 << 20, (5 << 20) + 1024)] {
            let growth = truncating_growth(
                tempfile::tempfile().expect("create a temporary file"),
                0,
                from,
                to,
            );
            let writes: Vec<Io> = growth.writes().collect();
            assert_eq!(writes.len() as u64, growth.ios());
            let mut expected = from;
            for io in writes {
                assert_eq!((io.offset.0, io.mode), (expected, Mode::Write));
                expected += io.size.0;
            }
            assert_eq!(expected, to);
        }
    }

    #[test]
    fn rollback_restores_the_file() {
        let folder = tempfile::tempdir().expect("create a temporary folder");
        let path = folder.path().join("f");
        std::fs::write(&path, [7; 2000]).expect("write the file");
        let removal = |path| Rollback::Remove {
            file: open_file(path),
            folder: Folder::containing(path).expect("open the folder"),
        };
        let growth = truncating_growth(open_file(&path), 1000, 512, 4096);
        let renamed = folder.path().join("g");
        std::fs::rename(&path, &renamed).expect("rename the file");
        std::fs::write(&path, b"another file").expect("write the file");
        growth.roll_back();
        assert_eq!(
            std::fs::read(&renamed).expect("read the file"),
            [7; 1000],
            "the renamed file is truncated"
        );
        assert_eq!(std::fs::read(&path).expect("read the file"), b"another file");
        Growth::new(0, 4096, removal(&path)).roll_back();
        assert!(!path.exists());
    }

    #[test]
    fn rollback_keeps_a_replacement_file() {
        let folder = tempfile::tempdir().expect("create a temporary folder");
        let path = folder.path().join("f");
        std::fs::write(&path, b"ours").expect("write the file");
        let rollback = Rollback::Remove {
            file: open_file(&path),
            folder: Folder::containing(&path).expect("open the folder"),
        };
        let precious = folder.path().join("precious");
        std::fs::write(&precious, b"precious").expect("write the file");
        std::fs::rename(&precious, &path).expect("replace the file");
        Growth::new(0, 4096, rollback).roll_back();
        assert_eq!(std::fs::read(&path).expect("read the file"), b"precious");
        let names = std::fs::read_dir(folder.path()).expect("list the folder").count();
        assert_eq!(names, 1, "no other file remains");
    }
}
