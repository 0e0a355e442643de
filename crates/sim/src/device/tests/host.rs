//! A host that records acknowledged writes: a naive model of every page.
//!
//! It counts the writes of each page. After a power loss the version of a page must be one of
//! these, and not older than the last one that was acknowledged as durable.

use std::collections::BTreeMap;

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Bytes, Device, Durability, Io, Mode, Nanos, Ticket};

use crate::SimDevice;

/// The recorded state of a page.
#[derive(Clone, Copy, Default, Debug)]
struct PageHistory {
    /// The numbers of its last write, its last acknowledged write, and its last durable write.
    written: u64,
    acknowledged: u64,
    durable: u64,
    /// The last write before its trim.
    trimmed: u64,
    /// An outstanding I/O writes it.
    busy: bool,
}

/// An outstanding I/O.
#[derive(Clone, Debug)]
struct OutstandingIo {
    pages: Vec<u32>,
    fua: bool,
    /// If it ends with a flush: the acknowledged version of each page at its submission.
    flushes: Option<Vec<u64>>,
}

/// The host, and its acknowledged writes.
#[derive(Clone, Debug)]
pub(super) struct TestHost {
    rng: Xoshiro256PlusPlus,
    pages: Vec<PageHistory>,
    outstanding: BTreeMap<Ticket, OutstandingIo>,
    depth: u64,
    /// The device has no volatile memory: every completed write is durable.
    nothing_volatile: bool,
    sector: u64,
    page_bytes: u64,
    streams: u64,
    /// The device has refused an I/O since power-up, because it is worn out: the host stops.
    refused: bool,
    /// The last write, and how many of twelve writes go there again.
    last: Option<Io>,
    rewrite_odds: u64,
}

impl TestHost {
    pub(super) fn new(device: &SimDevice, seed: u64, depth: u64) -> TestHost {
        let profile = device.profile();
        let part = profile.power_loss.expect("the profile has a power_loss table");
        let buffered = profile.streams.as_ref().is_some_and(|part| part.rewrite_buffer);
        let cached = profile.cache.write_cache_bytes > 0;
        let volatile = cached || buffered || device.flash.geometry.units() > 1;
        let shape = *device.flash.geometry.shape();
        let pages = (0..shape.logical_pages).map(|page| {
            let version = device.version_of(page).expect("flash contents are recorded");
            PageHistory {
                written: version,
                acknowledged: version,
                durable: version,
                ..PageHistory::default()
            }
        });
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        TestHost {
            rewrite_odds: [1, 3, 9][uniform(&mut rng, 3) as usize],
            rng,
            pages: pages.collect(),
            outstanding: BTreeMap::new(),
            depth,
            nothing_volatile: part.power_loss_protection || !volatile,
            sector: device.sector_bytes,
            page_bytes: u64::from(shape.page_bytes),
            streams: device.info.write_streams(),
            refused: false,
            last: None,
        }
    }

    fn below(&mut self, end: u64) -> u64 {
        uniform(&mut self.rng, end)
    }

    fn touched(&self, io: &Io) -> std::ops::RangeInclusive<u32> {
        let last = (io.offset.0 + io.size.0 - 1) / self.page_bytes;
        (io.offset.0 / self.page_bytes) as u32..=last as u32
    }

    pub(super) fn any_io(&mut self) -> Io {
        self.io(Mode::Read)
    }

    /// Return a random I/O, mostly in a small part of the device, so that blocks are collected;
    /// half of them whole pages.
    fn io(&mut self, mode: Mode) -> Io {
        let unit = if self.below(2) == 0 { self.page_bytes } else { self.sector };
        let sectors = self.pages.len() as u64 * self.page_bytes / unit;
        let largest = 3 * self.page_bytes / unit;
        let size = 1 + self.below(sectors.min(largest));
        let part = if self.below(3) > 0 { (sectors / 4).max(size) } else { sectors };
        let offset = self.below(part - size + 1);
        let stream = if mode == Mode::Write { self.below(self.streams) as u8 } else { 0 };
        let (offset, size) = (Bytes(offset * unit), Bytes(size * unit));
        Io { offset, size, mode, stream }
    }

    fn submit(&mut self, device: &mut SimDevice) {
        let mode = if self.below(5) == 0 { Mode::Read } else { Mode::Write };
        let again = self.last.filter(|_| mode == Mode::Write && self.below(12) < self.rewrite_odds);
        let io = again.unwrap_or_else(|| self.io(mode));
        let pages: Vec<u32> = self.touched(&io).collect();
        // No host overwrites a page with a write in flight: the order would be undefined. Such an
        // I/O waits.
        while mode == Mode::Write && pages.iter().any(|page| self.pages[*page as usize].busy) {
            if again.is_none() || self.refused {
                return;
            }
            self.complete(device);
        }
        let (fua, flushes) = match self.below(8) {
            0 => (true, false),
            1 => (false, true),
            _ => (false, false),
        };
        let durability = if fua {
            "fua"
        } else if flushes {
            "flush:1"
        } else {
            "cached"
        };
        device.set_durability(durability.parse::<Durability>().expect("a valid durability"));
        let Ok(ticket) = device.submit(&io) else {
            assert!(super::wears_out(device), "the device has free space");
            self.refused = true;
            return;
        };
        if mode == Mode::Read {
            let io_state = OutstandingIo { pages: Vec::new(), fua: false, flushes: None };
            self.outstanding.insert(ticket, io_state);
            return;
        }
        self.last = Some(io);
        for page in &pages {
            let history = &mut self.pages[*page as usize];
            history.written += 1;
            history.busy = true;
        }
        let flushes = flushes.then(|| self.acknowledged());
        self.outstanding.insert(ticket, OutstandingIo { pages, fua, flushes });
    }

    fn acknowledged(&self) -> Vec<u64> {
        self.pages.iter().map(|page| page.acknowledged).collect()
    }

    fn flush(&mut self, device: &mut SimDevice) {
        let ticket = device.submit_flush();
        let io_state =
            OutstandingIo { pages: Vec::new(), fua: false, flushes: Some(self.acknowledged()) };
        self.outstanding.insert(ticket, io_state);
    }

    fn trim(&mut self, device: &mut SimDevice) {
        let io = self.io(Mode::Write);
        let first = io.offset.0.div_ceil(self.page_bytes) as u32;
        let end = ((io.offset.0 + io.size.0) / self.page_bytes) as u32;
        if (first..end).any(|page| self.pages[page as usize].busy) {
            return;
        }
        device.trim(io.offset, io.size);
        // It holds no data, or any earlier version.
        for page in &mut self.pages[first as usize..end.max(first) as usize] {
            (page.durable, page.trimmed) = (0, page.written);
        }
    }

    /// Complete the first I/O of the device.
    fn complete(&mut self, device: &mut SimDevice) {
        // The failed I/O is not identified: no further completions are expected.
        let Ok(completion) = device.complete() else {
            assert!(super::wears_out(device), "the device has free space");
            self.refused = true;
            return;
        };
        let io_state =
            self.outstanding.remove(&completion.ticket).expect("the ticket is outstanding");
        if let Some(acknowledged) = &io_state.flushes {
            for (page, acknowledged) in self.pages.iter_mut().zip(acknowledged) {
                if *acknowledged > page.trimmed {
                    page.durable = page.durable.max(*acknowledged);
                }
            }
        }
        let durable = io_state.fua || io_state.flushes.is_some() || self.nothing_volatile;
        for page in &io_state.pages {
            let history = &mut self.pages[*page as usize];
            history.busy = false;
            history.acknowledged = history.written;
            if durable {
                history.durable = history.written;
            }
        }
    }

    /// Do `steps` random actions.
    pub(super) fn work(&mut self, device: &mut SimDevice, steps: u64) {
        for _ in 0..steps {
            if self.refused {
                return;
            }
            match self.below(40) {
                0..28 if (self.outstanding.len() as u64) < self.depth => self.submit(device),
                28 => self.trim(device),
                29 if (self.outstanding.len() as u64) < self.depth => self.flush(device),
                30 if self.outstanding.is_empty() => {
                    let until = device.now() + Nanos(self.below(3_000_000));
                    device.wait_until(until);
                }
                _ if !self.outstanding.is_empty() => self.complete(device),
                _ => {}
            }
        }
    }

    /// Continue until an arbitrary time, and cut power.
    pub(super) fn cut(&mut self, device: &mut SimDevice) -> crate::PowerCut {
        let ahead = [0, 1, 1_000, 100_000, 1_000_000, 10_000_000][self.below(6) as usize];
        let mut at = device.now() + Nanos(self.below(ahead + 1));
        while !self.refused
            && let Some(end) = device.next_completion(at)
        {
            // Sometimes exactly at a completion, before or after the host has received it.
            if self.below(16) == 0 {
                at = end;
            }
            if end == at && self.below(2) == 0 {
                break;
            }
            self.complete(device);
        }
        let at_its_end = super::is_read_only(device);
        assert!(!at_its_end || super::wears_out(device), "the device has free space");
        let cut = device.cut_power(at).expect("the profile has a power_loss table");
        self.outstanding.clear();
        self.refused = false;
        cut
    }

    /// Compare the device with the acknowledged writes.
    pub(super) fn check(&mut self, device: &SimDevice) {
        for (page, history) in (0..).zip(&mut self.pages) {
            let version = device.version_of(page).expect("flash contents are recorded");
            assert!(
                (history.durable..=history.written).contains(&version),
                "page {page} has version {version}, and {history:?}"
            );
            *history = PageHistory {
                written: version,
                acknowledged: version,
                durable: version,
                ..PageHistory::default()
            };
        }
    }
}
