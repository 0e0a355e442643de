//! Threads of a run: they begin together or not at all, and one that cannot be had is an error.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::Builder;

use uflip_core::{Error, ErrorKind};

/// A loop over I/Os needs little; the usual 2 MiB would be gigabytes for a thousand processes.
const STACK_BYTES: usize = 512 << 10;

/// What makes a thread of a run.
pub(crate) fn thread() -> Builder {
    Builder::new().stack_size(STACK_BYTES)
}

/// The error of a thread that the system does not give.
pub(crate) fn no_thread(error: &io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "A thread of the run cannot be started")
        .at("parallel_degree")
        .got(error.to_string())
        .allowed("as many threads and as much memory as the limits leave")
        .action("ask for fewer processes, or raise the limits (ulimit -u, -v, the cgroup)")
}

/// Where threads wait for each other. Unlike a `Barrier` it can be given up: where one thread cannot be
/// started, those that wait for it would wait for ever.
pub(crate) struct Gate {
    wanted: usize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    arrived: usize,
    opened: Option<bool>,
}

impl Gate {
    pub(crate) fn new(wanted: usize) -> Gate {
        let state = Mutex::new(State { arrived: 0, opened: None });
        Gate { wanted, state, changed: Condvar::new() }
    }

    /// Wait until everybody is there; `false` where somebody will not come.
    pub(crate) fn pass(&self) -> bool {
        let mut state = self.state();
        state.arrived += 1;
        if state.arrived == self.wanted && state.opened.is_none() {
            state.opened = Some(true);
            self.changed.notify_all();
        }
        let waiting = self.changed.wait_while(state, |state| state.opened.is_none());
        waiting.expect("no panic while held").opened == Some(true)
    }

    /// Nobody passes any more.
    pub(crate) fn shut(&self) {
        self.state().opened = Some(false);
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while held")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(wanted: usize, come: usize) -> Vec<bool> {
        let gate = Gate::new(wanted);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..come).map(|_| scope.spawn(|| gate.pass())).collect();
            if come < wanted {
                gate.shut();
            }
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        })
    }

    #[test]
    fn all_pass_or_nobody_does() {
        assert_eq!(passed(5, 5), [true; 5]);
        assert_eq!(passed(5, 4), [false; 4], "and nobody waits for ever");
    }
}
