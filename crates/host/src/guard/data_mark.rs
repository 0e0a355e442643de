//! The mark of a file that holds the data of a served device: an extended attribute that `uflip serve`
//! writes, so that it uses its own files again and nobody else's.
//!
//! It names the file (inode, generation, time of birth), its length, and when it was last written. A copy
//! of the file, or one that somebody wrote to after the server had closed it, is not taken for ours. A
//! server that was killed leaves the mark of an open file; its last writes are then newer than the mark.
//!
//! Such a file is never expendable: a benchmark (`file:PATH`) that would overwrite it is refused.

use std::ffi::CStr;
use std::fs::{File, Metadata};

use super::mark::{
    self, identity, modified_text, parse, read_text, seen, wait_for_the_next_tick, write_text,
};

const NAME: &CStr = c"user.uflip.served";
const VERSION: &str = "1";

/// What the mark of a file says about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Served {
    /// It has no mark.
    Unmarked,
    /// It holds what clients wrote, and nothing else.
    Ours,
    /// It did; why it is not trusted any more.
    Void(&'static str),
}

/// What `file` is to a server.
pub(crate) fn served(file: &File) -> Served {
    let Some(text) = read_text(file, NAME) else { return Served::Unmarked };
    let (Some((VERSION, stored)), Ok(metadata)) = (parse(&text), file.metadata()) else {
        return Served::Void("its mark cannot be read");
    };
    let differs = |key: &str, now: &str| stored.get(key) != Some(&now);
    if identity(file, &metadata).iter().any(|(key, now)| differs(key, now)) {
        return Served::Void("it is a copy of a file that uflip served");
    }
    let was_closed = stored.get("open") != Some(&"1");
    let is_changed = differs("modified", &modified_text(seen(&metadata)));
    if differs("size", &metadata.len().to_string()) || (was_closed && is_changed) {
        return Served::Void("it was changed since uflip served it");
    }
    Served::Ours
}

/// The mark of a file while it is served; closed when this is dropped.
#[derive(Debug)]
pub(crate) struct DataMark {
    file: File,
}

impl DataMark {
    /// Mark `file` as one that is served, durably: it is still ours after a loss of power. It is not
    /// expendable from now on.
    ///
    /// # Errors
    /// The system gives no second descriptor, or cannot write.
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
        // A later write of somebody else then has a later time.
        wait_for_the_next_tick(&self.file);
        self.write(false);
    }
}

fn text(file: &File, metadata: &Metadata, open: bool) -> String {
    let mut text = VERSION.to_owned();
    for (key, value) in identity(file, metadata) {
        text += &format!(" {key}={value}");
    }
    let modified = modified_text(seen(metadata));
    text + &format!(" size={} modified={modified} open={}", metadata.len(), u8::from(open))
}
