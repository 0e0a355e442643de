//! Threads of a run: they start together or not at all; a failure to start one is an error.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::Builder;

use uflip_core::{Error, ErrorKind};

/// An I/O loop needs little stack; the usual 2 MiB would be gigabytes for a thousand processes.
const STACK_BYTES: usize = 512 << 10;

/// Return the builder of a thread of a run.
pub(crate) fn thread() -> Builder {
    Builder::new().stack_size(STACK_BYTES)
}

/// Create the error for a thread that the system refuses.
pub(crate) fn no_thread(error: &io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "A thread of the run cannot be started")
        .at("parallel_degree")
        .got(error.to_string())
        .allowed("a number of threads within the limits of the process and its memory")
        .action("use fewer processes, or raise the limits (ulimit -u, -v, the cgroup)")
}

/// A barrier that can be cancelled: if one thread cannot start, the waiting ones would otherwise
/// block forever.
pub(crate) struct Gate {
    expected: usize,
    state: Mutex<GateState>,
    changed: Condvar,
}

struct GateState {
    arrived: usize,
    opened: Option<bool>,
}

impl Gate {
    pub(crate) fn new(expected: usize) -> Gate {
        let state = Mutex::new(GateState { arrived: 0, opened: None });
        Gate { expected, state, changed: Condvar::new() }
    }

    /// Wait until all threads have arrived; `false` if the gate was shut.
    pub(crate) fn pass(&self) -> bool {
        let mut state = self.state();
        state.arrived += 1;
        if state.arrived == self.expected && state.opened.is_none() {
            state.opened = Some(true);
            self.changed.notify_all();
        }
        let waiting = self.changed.wait_while(state, |state| state.opened.is_none());
        waiting.expect("the lock is not poisoned").opened == Some(true)
    }

    /// Release all waiting threads with `false`.
    pub(crate) fn shut(&self) {
        self.state().opened = Some(false);
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().expect("the lock is not poisoned")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(expected: usize, started: usize) -> Vec<bool> {
        let gate = Gate::new(expected);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..started).map(|_| scope.spawn(|| gate.pass())).collect();
            if started < expected {
                gate.shut();
            }
            threads
                .into_iter()
                .map(|thread| thread.join().expect("the thread does not panic"))
                .collect()
        })
    }

    #[test]
    fn gate_opens_for_all_threads_or_none() {
        assert_eq!(passed(5, 5), [true; 5]);
        assert_eq!(passed(5, 4), [false; 4], "no thread waits for ever");
    }
}
