//! A watchdog: a hanging test prints nothing, so a second thread prints the line of a case that
//! loops for ever, or whose memory grows without limit, and ends the process. The limit is in
//! processor time, so a busy machine does not count as a hang.

use std::sync::{Arc, Mutex};
use std::time::Duration;

/// No case takes a tenth of this.
const CASE_TIMEOUT: Duration = Duration::from_secs(60);
/// Nor does the whole test need a tenth of this.
const MEMORY_MAX: u64 = 4 << 30;

/// The watchdog.
pub struct Watchdog {
    current: Arc<Mutex<Option<(String, Duration)>>>,
}

impl Watchdog {
    pub fn new() -> Watchdog {
        let current: Arc<Mutex<Option<(String, Duration)>>> = Arc::default();
        let weak = Arc::downgrade(&current);
        std::thread::spawn(move || {
            while let Some(current) = weak.upgrade() {
                if let Some((line, since)) = &*current.lock().expect("the lock is not poisoned") {
                    let problem = match () {
                        () if cpu_time() > *since + CASE_TIMEOUT => "HANGS",
                        () if resident() > MEMORY_MAX => "GROWS",
                        () => "",
                    };
                    if !problem.is_empty() {
                        eprintln!("{problem}: {line}");
                        std::process::exit(101);
                    }
                }
                drop(current);
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        Watchdog { current }
    }

    /// Start the case `line`.
    pub fn begin(&self, line: String) {
        *self.current.lock().expect("the lock is not poisoned") = Some((line, cpu_time()));
    }

    /// End the case.
    pub fn end(&self) {
        *self.current.lock().expect("the lock is not poisoned") = None;
    }
}

/// Return the processor time of this process.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes only to the given structure.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "the processor clock is available");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Return the memory of this process.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    // Without /proc the memory is unknown.
    4096 * pages.unwrap_or(0)
}
