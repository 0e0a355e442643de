//! Bare loops as references: minimal code for the single purpose.

use std::fs::File;
use std::os::fd::AsRawFd;

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_host::now;

/// The submission and response times [ns] of a bare loop.
pub(crate) struct IoTimes {
    pub(crate) submit: Vec<u64>,
    pub(crate) response: Vec<u64>,
}

impl IoTimes {
    fn new(ios: usize) -> IoTimes {
        IoTimes { submit: vec![u64::MAX; ios], response: vec![u64::MAX; ios] }
    }
}

/// Run two clock readings, a random offset and two stores per I/O, and nothing else.
pub(crate) fn clock_pairs(ios: usize) -> IoTimes {
    let mut times = IoTimes::new(ios);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    for i in 0..ios {
        std::hint::black_box(uniform(&mut rng, 1 << 20));
        let start = now();
        let end = now();
        times.submit[i] = start.0;
        times.response[i] = (end - start).0;
    }
    times
}

/// Read 4 KiB blocks of `file` at random.
pub(crate) fn reads(file: &File, slots: u64, ios: usize) -> IoTimes {
    let mut times = IoTimes::new(ios);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut buffer = vec![1u8; 4096];
    for i in 0..ios {
        let offset = uniform(&mut rng, slots) * 4096;
        let start = now();
        // SAFETY: the buffer is 4096 bytes long and not shared.
        let size = unsafe {
            libc::pread(file.as_raw_fd(), buffer.as_mut_ptr().cast(), 4096, offset as libc::off_t)
        };
        let end = now();
        assert_eq!(size, 4096, "a whole read");
        times.submit[i] = start.0;
        times.response[i] = (end - start).0;
    }
    times
}
