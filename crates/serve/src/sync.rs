//! The sync thread: makes data files durable on a separate thread, because a disk takes milliseconds
//! and other clients must not wait for it.
//!
//! After a failed sync the file counts as lost: the kernel may have dropped the data that it could not
//! write, so that a later sync would succeed without effect.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{EventfdFlags, eventfd};
use uflip_core::{Error, Result};

/// A sync request: the index of the file, and the waiting request.
type SyncRequest = (usize, usize);

/// The waiting request, and whether the file is durable now.
pub type Synced = (usize, bool);

/// The sync thread; it ends when this is dropped.
#[derive(Debug)]
pub struct Syncer {
    requests: Sender<SyncRequest>,
    answers: Receiver<Synced>,
    /// An event descriptor that is readable when there are answers.
    event: Arc<OwnedFd>,
}

impl Syncer {
    /// Start the thread for `files`; `None` needs no sync.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(files: Vec<Option<File>>) -> Result<Syncer> {
        let none = |error: std::io::Error| Error::os("No thread can be started", "serve", &error);
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let event = Arc::new(event.map_err(|error| none(error.into()))?);
        let (requests, wanted) = channel();
        let (answer, answers) = channel();
        let rings = Arc::clone(&event);
        std::thread::Builder::new()
            .name("uflip-sync".into())
            .spawn(move || sync_thread(&files, &wanted, &answer, &rings))
            .map_err(none)?;
        Ok(Syncer { requests, answers, event })
    }

    /// Request a sync of file `place` for request `who`.
    pub fn request(&self, place: usize, who: usize) {
        // The thread lives as long as `self`.
        let _ = self.requests.send((place, who));
    }

    /// Return the next answer.
    pub fn answer(&self) -> Option<Synced> {
        self.answers.try_recv().ok()
    }

    /// Return the event descriptor.
    pub fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Clear the event descriptor.
    pub fn clear_event(&self) {
        let _ = rustix::io::read(&*self.event, &mut [0; 8]);
    }
}

fn sync_thread(
    files: &[Option<File>],
    wanted: &Receiver<SyncRequest>,
    answer: &Sender<Synced>,
    event: &OwnedFd,
) {
    let mut poisoned = vec![false; files.len()];
    while let Ok(first) = wanted.recv() {
        // One sync serves all requests made before it begins.
        let requests: Vec<SyncRequest> = std::iter::once(first).chain(wanted.try_iter()).collect();
        for (place, file) in files.iter().enumerate() {
            let mut waiting = requests.iter().filter(|(file, _)| *file == place).peekable();
            if waiting.peek().is_none() {
                continue;
            }
            let synced = file.as_ref().is_none_or(|file| file.sync_data().is_ok());
            poisoned[place] |= !synced;
            for (_, who) in waiting {
                let _ = answer.send((*who, !poisoned[place]));
            }
        }
        let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
    }
}
