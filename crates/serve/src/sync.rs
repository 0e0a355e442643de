//! Makes data files durable on a thread of its own, because a disk takes milliseconds and other clients
//! do not wait for it.
//!
//! Once a file could not be synced nothing is promised of it any more: the kernel may have dropped what
//! it could not write, so that asking again would succeed and mean nothing.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{EventfdFlags, eventfd};
use uflip_core::{Error, Result};

/// A file to be synced, by its place, and who waits for that.
type Wish = (usize, usize);

/// Whoever waits, and whether the file is durable now.
pub type Synced = (usize, bool);

/// The thread that syncs; it ends when this is dropped.
#[derive(Debug)]
pub struct Syncer {
    wishes: Sender<Wish>,
    answers: Receiver<Synced>,
    /// Readable when there are answers.
    bell: Arc<OwnedFd>,
}

impl Syncer {
    /// A thread for `files`, of which some need no sync.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(files: Vec<Option<File>>) -> Result<Syncer> {
        let none = |error: std::io::Error| Error::os("No thread can be started", "serve", &error);
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let bell = Arc::new(bell.map_err(|error| none(error.into()))?);
        let (wishes, wanted) = channel();
        let (answer, answers) = channel();
        let rings = Arc::clone(&bell);
        std::thread::Builder::new()
            .name("uflip-sync".into())
            .spawn(move || work(&files, &wanted, &answer, &rings))
            .map_err(none)?;
        Ok(Syncer { wishes, answers, bell })
    }

    /// Sync the file at `place` for `who`.
    pub fn wish(&self, place: usize, who: usize) {
        // The thread lives as long as this does.
        let _ = self.wishes.send((place, who));
    }

    /// The next answer.
    pub fn answer(&self) -> Option<Synced> {
        self.answers.try_recv().ok()
    }

    /// What is readable when there are answers.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Let the bell be silent until it rings again.
    pub fn hush(&self) {
        let _ = rustix::io::read(&*self.bell, &mut [0; 8]);
    }
}

fn work(files: &[Option<File>], wanted: &Receiver<Wish>, answer: &Sender<Synced>, bell: &OwnedFd) {
    let mut poisoned = vec![false; files.len()];
    while let Ok(first) = wanted.recv() {
        // Whoever asked before a sync begins is served by it.
        let wishes: Vec<Wish> = std::iter::once(first).chain(wanted.try_iter()).collect();
        for (place, file) in files.iter().enumerate() {
            let mut waiting = wishes.iter().filter(|(wish, _)| *wish == place).peekable();
            if waiting.peek().is_none() {
                continue;
            }
            let synced = file.as_ref().is_none_or(|file| file.sync_data().is_ok());
            poisoned[place] |= !synced;
            for (_, who) in waiting {
                let _ = answer.send((*who, !poisoned[place]));
            }
        }
        let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
    }
}
