//! The mark of a data file of a served device: an extended attribute that `uflip serve` writes, by
//! which it recognises its own files.
//!
//! It identifies the file (inode, generation, birth time), its length, and its last modification. A
//! copy of the file, or one modified after the server closed it, does not match. A killed server
//! leaves the mark of an open file, whose last writes are newer than the mark.
//!
//! Such a file is never expendable: a benchmark (`file:PATH`) that would overwrite it is refused.

use std::ffi::CStr;
use std::fs::{File, Metadata};

use super::mark::{
    self, VERSION, file_version, identity, modified_text, parse, read_text, wait_for_next_tick,
    write_text,
};

const NAME: &CStr = c"user.uflip.served";

/// The status of a data file, according to its mark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum DataMarkStatus {
    /// It has no mark.
    Unmarked,
    /// It holds only what clients wrote.
    Ours,
    /// It was a data file; the reason why it no longer counts as one.
    Void(String),
}

/// Return the status of `file` for a server.
pub(crate) fn status(file: &File) -> DataMarkStatus {
    let Some(text) = read_text(file, NAME) else { return DataMarkStatus::Unmarked };
    let void = |reason: &str| DataMarkStatus::Void(reason.to_owned());
    let stored = match parse(&text) {
        Ok(stored) => stored,
        Err(reason) => return DataMarkStatus::Void(reason),
    };
    let Ok(metadata) = file.metadata() else { return void(mark::UNREADABLE) };
    let differs = |key: &str, present: &str| stored.get(key) != Some(&present);
    if identity(file, &metadata).iter().any(|(key, present)| differs(key, present)) {
        return void("it is a copy of a file that uflip served");
    }
    let was_closed = stored.get("open") != Some(&"1");
    let is_changed = differs("modified", &modified_text(file_version(&metadata)));
    if differs("size", &metadata.len().to_string()) || (was_closed && is_changed) {
        return void("it was changed since uflip served it");
    }
    DataMarkStatus::Ours
}

/// The mark of a file while it is served; closed on drop.
#[derive(Debug)]
pub(crate) struct DataMark {
    file: File,
}

impl DataMark {
    /// Mark `file` as served, durably, so that it is recognised after a power loss. It is no longer
    /// expendable.
    ///
    /// # Errors
    /// If the descriptor cannot be duplicated, or the system cannot write.
    pub(crate) fn open(file: &File) -> std::io::Result<DataMark> {
        let mark = DataMark { file: file.try_clone()? };
        mark::remove(file);
        mark.write(true);
        file.sync_all()?;
        Ok(mark)
    }

    fn write(&self, open: bool) {
        let Ok(metadata) = self.file.metadata() else { return };
        write_text(&self.file, NAME, &text(&self.file, &metadata, open));
    }
}

impl Drop for DataMark {
    fn drop(&mut self) {
        // A later write by another process then has a later time.
        wait_for_next_tick(&self.file);
        self.write(false);
    }
}

fn text(file: &File, metadata: &Metadata, open: bool) -> String {
    let mut text = VERSION.to_owned();
    for (key, value) in identity(file, metadata) {
        text += &format!(" {key}={value}");
    }
    let modified = modified_text(file_version(metadata));
    text + &format!(" size={} modified={modified} open={}", metadata.len(), u8::from(open))
}
