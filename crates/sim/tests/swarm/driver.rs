//! The host's load: sequential and concurrent I/Os, each with its checks.

use std::hash::{DefaultHasher, Hash as _};

use uflip_core::random::{Xoshiro256PlusPlus, uniform};
use uflip_core::{Breakdown as _, Bytes, Device, Error, Io, Mode, Nanos};
use uflip_sim::SimDevice;

use super::live::{check_worn_out, pages_of, work};

/// A host with its load.
pub struct HostDriver<'a> {
    pub rng: &'a mut Xoshiro256PlusPlus,
    pub sector: u64,
    pub sectors: u64,
    /// Write streams that the device separates.
    streams: u64,
    /// The next sequential sector.
    pub next: u64,
    pub outstanding: u32,
    pub last_end: Nanos,
    /// Number of flash pages, and the flash work at the last check.
    pub pages: u64,
    pub work: u64,
    pub hash: DefaultHasher,
    pub worn_out: bool,
}

impl HostDriver<'_> {
    pub fn new<'a>(device: &SimDevice, rng: &'a mut Xoshiro256PlusPlus) -> HostDriver<'a> {
        let info = device.info();
        HostDriver {
            rng,
            sector: info.sector_bytes.0,
            sectors: info.capacity_bytes.0 / info.sector_bytes.0,
            streams: info.write_streams(),
            next: 0,
            outstanding: 0,
            last_end: Nanos(0),
            pages: pages_of(device),
            work: work(device),
            hash: DefaultHasher::new(),
            worn_out: false,
        }
    }

    pub fn io(&mut self, in_order: bool) -> Io {
        let largest = [1, 8, 8, 64][uniform(self.rng, 4) as usize];
        let size = 1 + uniform(self.rng, self.sectors.min(largest));
        let anywhere = uniform(self.rng, self.sectors - size + 1);
        let offset =
            if in_order && self.next + size <= self.sectors { self.next } else { anywhere };
        self.next = if in_order { offset + size } else { 0 };
        let mode = if uniform(self.rng, 3) == 0 { Mode::Read } else { Mode::Write };
        let stream = match (mode, self.streams) {
            (Mode::Write, streams) if streams > 1 => uniform(self.rng, streams) as u8,
            _ => 0,
        };
        Io { offset: Bytes(offset * self.sector), size: Bytes(size * self.sector), mode, stream }
    }

    /// Check that the flash work per I/O is at most a few device sizes.
    pub fn check_work(&mut self, device: &SimDevice, ios: u64) {
        let before = std::mem::replace(&mut self.work, work(device));
        let max_work = ios * 64 * (16 * self.pages + 1_000);
        assert!(
            self.work - before <= max_work,
            "{} flash operations for {ios} I/Os",
            self.work - before
        );
    }

    pub fn submit(&mut self, device: &mut SimDevice, in_order: bool) {
        let io = self.io(in_order);
        match device.submit(&io) {
            Ok(_) => self.outstanding += 1,
            Err(error) => self.failed(&error),
        }
        self.check_work(device, 1 + u64::from(self.outstanding));
    }

    pub fn flush(&mut self, device: &mut SimDevice) {
        device.submit_flush();
        self.outstanding += 1;
        self.check_work(device, 1 + u64::from(self.outstanding));
    }

    pub fn failed(&mut self, error: &Error) {
        check_worn_out(error).hash(&mut self.hash);
        self.worn_out = true;
    }

    pub fn wait(&mut self, device: &mut SimDevice) {
        let until = device.now() + Nanos(uniform(self.rng, 20_000_000));
        device.wait_until(until);
        assert_eq!(device.now(), until);
        self.work = work(device);
    }

    pub fn trim(&mut self, device: &mut SimDevice) {
        let io = self.io(false);
        device.trim(io.offset, io.size);
    }

    /// Submit a trim as an I/O, among others in flight.
    pub fn submit_trim(&mut self, device: &mut SimDevice) {
        let io = Io { mode: Mode::Trim, stream: 0, ..self.io(false) };
        device.prefetch(&io);
        device.submit(&io).expect("a trim is accepted");
        self.outstanding += 1;
        self.check_work(device, 1 + u64::from(self.outstanding));
    }

    pub fn burst(&mut self, device: &mut SimDevice, count: u64, trims: bool) {
        let mut ios: Vec<Io> = (0..count).map(|_| self.io(false)).collect();
        if trims {
            ios.iter_mut().step_by(5).for_each(|io| (io.mode, io.stream) = (Mode::Trim, 0));
        }
        if let Err(error) = device.apply(ios.into_iter()) {
            self.failed(&error);
        }
        self.check_work(device, count);
    }

    pub fn complete(&mut self, device: &mut SimDevice) {
        let due = device.next_completion(Nanos(u64::MAX)).expect("an I/O is outstanding");
        self.outstanding -= 1;
        let done = match device.complete() {
            Ok(done) => done,
            Err(error) => return self.failed(&error),
        };
        assert_eq!(done.completed, due, "a completion comes at its announced time");
        assert!(done.completed >= self.last_end, "completions come in the order of their time");
        assert!(done.completed >= done.submitted, "an I/O ends after it has begun");
        self.last_end = done.completed;
        let parts: u64 = done.breakdown.parts().iter().sum();
        assert_eq!(
            parts,
            (done.completed - done.submitted).0,
            "the parts sum to the response time"
        );
        (done.submitted.0, done.completed.0, done.breakdown.parts()).hash(&mut self.hash);
        self.check_work(device, 1 + u64::from(self.outstanding));
    }
}
