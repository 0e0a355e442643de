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
pub type SyncResult = (usize, bool);

/// The sync thread; it ends when this is dropped.
#[derive(Debug)]
pub struct Syncer {
    requests: Sender<SyncRequest>,
    answers: Receiver<SyncResult>,
    /// An event descriptor that is readable when there are answers.
    event: Arc<OwnedFd>,
}

impl Syncer {
    /// Start the thread for `files`; `None` needs no sync.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(files: Vec<Option<File>>) -> Result<Syncer> {
        let failed =
            |error: std::io::Error| Error::os("The sync thread cannot start", "serve", &error);
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let event = Arc::new(event.map_err(|error| failed(error.into()))?);
        let (requests, receiver) = channel();
        let (answer, answers) = channel();
        let thread_event = Arc::clone(&event);
        std::thread::Builder::new()
            .name("uflip-sync".into())
            .spawn(move || sync_thread(&files, &receiver, &answer, &thread_event))
            .map_err(failed)?;
        Ok(Syncer { requests, answers, event })
    }

    /// Request a sync of file `index` for `request`.
    pub fn request(&self, index: usize, request: usize) {
        // The thread lives as long as `self`.
        let _ = self.requests.send((index, request));
    }

    /// Return the next answer.
    pub fn answer(&self) -> Option<SyncResult> {
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
    receiver: &Receiver<SyncRequest>,
    answer: &Sender<SyncResult>,
    event: &OwnedFd,
) {
    let mut poisoned = vec![false; files.len()];
    while let Ok(first) = receiver.recv() {
        // One sync serves all requests made before it begins.
        let requests: Vec<SyncRequest> =
            std::iter::once(first).chain(receiver.try_iter()).collect();
        for (index, file) in files.iter().enumerate() {
            let mut waiting = requests.iter().filter(|(file, _)| *file == index).peekable();
            if waiting.peek().is_none() {
                continue;
            }
            let synced = file.as_ref().is_none_or(|file| file.sync_data().is_ok());
            poisoned[index] |= !synced;
            for (_, request) in waiting {
                let _ = answer.send((*request, !poisoned[index]));
            }
        }
        let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
    }
}
