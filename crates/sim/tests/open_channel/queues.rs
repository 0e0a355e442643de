//! Many outstanding commands, compared with a plain simulation: every LUN and channel has a queue,
//! an event grants it to the first, and nothing is computed ahead.
//!
//! ```text
//! LUN      FIFO; a read keeps it until its data is sent, a write until it is programmed
//! channel  FIFO: a write requests it on arrival, a read when it has its data. A write keeps it until its LUN
//!          is ready and the page is there; reads of that LUN pass meanwhile
//! ```

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use proptest::prelude::*;
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Device, FlashIo, FlashOp, Nanos, Ppa};
use uflip_sim::{OpenChannelDevice, OpenChannelProfile};

use super::one_at_a_time::program_ns;
use super::{DFC, page};

/// A page or a block of a command.
struct PageJob {
    op: FlashOp,
    at: Ppa,
    end: u64,
    /// It was read while its LUN had an earlier program.
    disturbed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum JobEvent {
    Arrives(usize),
    HasData(usize),
    IsSent(usize),
    IsOver(usize),
}

#[derive(Default)]
struct LunQueue {
    queue: VecDeque<usize>,
    busy: bool,
}

#[derive(Default)]
struct ChannelQueue {
    queue: VecDeque<usize>,
    held_by: Option<usize>,
    sending: bool,
    wrote: Option<u8>,
    thread: u64,
    last_request: Option<u64>,
}

struct CardQueues {
    profile: OpenChannelProfile,
    now: u64,
    events: BinaryHeap<Reverse<(u64, usize, JobEvent)>>,
    order: usize,
    jobs: Vec<PageJob>,
    luns: Vec<LunQueue>,
    channels: Vec<ChannelQueue>,
    /// When each submission path is free, the path of the current command first.
    submission: Vec<u64>,
    /// Two pages requested a channel at the same time: their order is ambiguous.
    has_tie: bool,
}

impl CardQueues {
    fn new(profile: OpenChannelProfile) -> CardQueues {
        let (channels, luns) = (profile.geometry.channels, profile.geometry.luns_per_channel);
        CardQueues {
            now: 0,
            events: BinaryHeap::new(),
            order: 0,
            jobs: Vec::new(),
            luns: (0..channels * luns).map(|_| LunQueue::default()).collect(),
            channels: (0..channels).map(|_| ChannelQueue::default()).collect(),
            submission: vec![0; profile.controller.queue_threads.unwrap_or(1) as usize],
            has_tie: false,
            profile,
        }
    }

    fn lun(&self, job: usize) -> usize {
        let at = self.jobs[job].at;
        usize::from(at.channel) * self.profile.geometry.luns_per_channel as usize
            + usize::from(at.lun)
    }

    fn plan(&mut self, at: u64, happens: JobEvent) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, happens)));
    }

    /// Submit a page at `now`.
    fn submit(&mut self, op: FlashOp, at: Ppa, now: u64) {
        let controller = &self.profile.controller;
        self.submission[0] = self.submission[0].max(now) + controller.queue_thread_ns;
        let channel = &mut self.channels[usize::from(at.channel)];
        channel.thread = channel.thread.max(self.submission[0]) + controller.submission_thread_ns;
        let ready = channel.thread;
        self.jobs.push(PageJob { op, at, end: 0, disturbed: false });
        self.plan(ready, JobEvent::Arrives(self.jobs.len() - 1));
    }

    fn run(&mut self) {
        while let Some(Reverse((at, _, happens))) = self.events.pop() {
            self.now = at;
            match happens {
                JobEvent::Arrives(job) => self.data_arrived(job),
                JobEvent::HasData(job) => {
                    self.queue_at_channel(job);
                    self.release_channel(job);
                }
                JobEvent::IsSent(job) => self.is_sent(job),
                JobEvent::IsOver(job) => self.page_sent(job),
            }
        }
    }

    fn data_arrived(&mut self, job: usize) {
        let lun = self.lun(job);
        let before = self.luns[lun].queue.back().map(|before| self.jobs[*before].op);
        self.jobs[job].disturbed = before == Some(FlashOp::Write);
        self.luns[lun].queue.push_back(job);
        if self.jobs[job].op == FlashOp::Write {
            self.queue_at_channel(job);
        }
        self.release_lun(job);
        self.release_channel(job);
    }

    fn queue_at_channel(&mut self, job: usize) {
        let channel = &mut self.channels[usize::from(self.jobs[job].at.channel)];
        channel.queue.push_back(job);
        self.has_tie |= channel.last_request.replace(self.now) == Some(self.now);
    }

    /// Grant the LUN of `job` to the first waiting job, if that needs nothing else.
    fn release_lun(&mut self, job: usize) {
        let lun = self.lun(job);
        let Some(&first) = self.luns[lun].queue.front() else { return };
        let media = &self.profile.media;
        let next_event = match self.jobs[first].op {
            _ if self.luns[lun].busy => return,
            FlashOp::Write => return,
            FlashOp::Read => (self.now + media.read_ns, JobEvent::HasData(first)),
            FlashOp::Erase => (self.now + media.erase_ns, JobEvent::IsOver(first)),
        };
        self.luns[lun].busy = true;
        self.plan(next_event.0, next_event.1);
    }

    fn release_channel(&mut self, job: usize) {
        let number = usize::from(self.jobs[job].at.channel);
        let channel = &mut self.channels[number];
        if channel.sending {
            return;
        }
        let next = match channel.held_by {
            Some(write) => write,
            None => match channel.queue.pop_front() {
                None => return,
                Some(next) => next,
            },
        };
        if self.jobs[next].op == FlashOp::Read {
            return self.send(next);
        }
        self.channels[number].held_by = Some(next);
        let lun = &self.luns[self.lun(next)];
        let first = *lun.queue.front().expect("the queue has the write");
        if first == next && !lun.busy {
            return self.send(next);
        }
        let channel = &mut self.channels[number];
        if let Some(position) = channel.queue.iter().position(|waits| *waits == first) {
            channel.queue.remove(position);
            self.send(first);
        }
    }

    fn send(&mut self, job: usize) {
        let lun = self.lun(job);
        let OpenChannelProfile { geometry, controller, media, .. } = &self.profile;
        let PageJob { op, at, disturbed, .. } = self.jobs[job];
        let bytes = u64::from(geometry.planes * geometry.sectors_per_page * geometry.sector_bytes);
        let once = bytes * 1_000_000_000 / controller.channel_bytes_per_s;
        let channel = &mut self.channels[usize::from(at.channel)];
        channel.sending = true;
        let more = match op {
            FlashOp::Write if channel.wrote.is_some_and(|last| last != at.lun) => {
                controller.lun_switch_ns
            }
            // A retry is certain, or never occurs.
            FlashOp::Read if disturbed && media.retry_permille > 0 => {
                media.retries_max * (media.read_ns + once)
            }
            _ => 0,
        };
        if op == FlashOp::Write {
            channel.wrote = Some(at.lun);
            self.luns[lun].busy = true;
        }
        self.plan(self.now + once + more, JobEvent::IsSent(job));
    }

    fn is_sent(&mut self, job: usize) {
        let PageJob { op, at, .. } = self.jobs[job];
        self.channels[usize::from(at.channel)].sending = false;
        if op == FlashOp::Read {
            return self.page_sent(job);
        }
        self.channels[usize::from(at.channel)].held_by = None;
        self.jobs[job].end = self.now;
        self.plan(self.now + program_ns(&self.profile, at.page), JobEvent::IsOver(job));
        self.release_channel(job);
    }

    fn page_sent(&mut self, job: usize) {
        let lun = self.lun(job);
        if self.jobs[job].op != FlashOp::Write || !self.profile.controller.write_back {
            self.jobs[job].end = self.now;
        }
        self.luns[lun].queue.pop_front();
        self.luns[lun].busy = false;
        self.release_lun(job);
        self.release_channel(job);
    }
}

/// Return pages that may be read or written, or blocks that may be erased.
fn pages(op: FlashOp, device: &OpenChannelDevice, rng: &mut Xoshiro256PlusPlus) -> Vec<Ppa> {
    let geometry = *device.geometry();
    let mut any = |count: u32| uniform(rng, u64::from(count)) as u32;
    let mut pages: Vec<Ppa> = Vec::new();
    for _ in 0..=any(4) {
        let block = Ppa {
            channel: any(geometry.channels) as u8,
            lun: any(geometry.luns_per_channel) as u8,
            block: any(geometry.blocks_per_plane),
            ..Ppa::default()
        };
        let written = device.block_state(block).unwrap().pages_written;
        let page = match op {
            FlashOp::Erase => Some(0),
            FlashOp::Read => (written > 0).then(|| any(written)),
            FlashOp::Write => (written < geometry.pages_per_block).then_some(written),
        };
        // Each page and block occurs once: another test covers repeated addresses.
        let other = |ppa: &Ppa| Ppa { page: 0, ..*ppa } != block;
        if let Some(page) = page.filter(|_| pages.iter().all(other)) {
            pages.push(Ppa { page, ..block });
        }
    }
    pages
}

fn check_concurrent(overrides: &str, seed: u64, pause: u64) -> Result<(), TestCaseError> {
    let profile = OpenChannelProfile::parse(DFC, "dfc.toml", overrides).unwrap();
    let controller = &profile.controller;
    let back = controller.media_completion_thread_ns + controller.host_completion_thread_ns;
    let mut device = OpenChannelDevice::new("dfc", &profile).unwrap();
    let mut queues = CardQueues::new(profile.clone());
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut commands, mut got) = (Vec::new(), std::collections::BTreeMap::new());
    for _ in 0..120 {
        let next = Nanos(device.now().0 + uniform(&mut rng, pause));
        while device.next_completion(next).is_some() {
            let completion = device.complete().unwrap();
            got.insert(completion.ticket, completion.completed.0);
        }
        device.wait_until(next);
        let op = [FlashOp::Write, FlashOp::Write, FlashOp::Read, FlashOp::Read, FlashOp::Erase]
            [uniform(&mut rng, 5) as usize];
        let mut io = FlashIo::empty(op);
        let first = queues.jobs.len();
        queues.submission.sort_unstable();
        for at in pages(op, &device, &mut rng) {
            match op {
                FlashOp::Erase => io.push(at),
                _ => page(&device, at).iter().for_each(|sector| io.push(*sector)),
            }
            queues.submit(op, at, device.now().0);
        }
        if queues.jobs.len() > first {
            commands.push((device.submit(&io).unwrap(), first..queues.jobs.len()));
        }
    }
    while device.next_completion(Nanos(u64::MAX)).is_some() {
        let completion = device.complete().unwrap();
        got.insert(completion.ticket, completion.completed.0);
    }
    queues.run();
    // Ties have no expected order.
    prop_assume!(!queues.has_tie);
    for (ticket, jobs) in commands {
        let end =
            queues.jobs[jobs.clone()].iter().map(|job| job.end).max().expect("at least one page");
        let (op, at) = (queues.jobs[jobs.start].op, queues.jobs[jobs.start].at);
        prop_assert_eq!(got[&ticket], end + back, "{:?}: {:?} {}", ticket, op, at);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn concurrent_commands_match_queue_model(
        channels in 1u32..4, luns in 1u32..5, rate in 20_000_000u64..200_000_000, write_back: bool,
        switch in 0u64..400_000, thread in 1_000u64..50_000, threads in 1u32..4, dispatch in 1_000u64..50_000,
        read in 50_000u64..250_000, again: bool, seed: u64, pause in 10_000u64..3_000_000,
    ) {
        let overrides = format!(
            r#"{{"channels": {channels}, "luns_per_channel": {luns}, "blocks_per_plane": 6,
                "pages_per_block": 32, "channel_bytes_per_s": {rate}, "write_back": {write_back},
                "lun_switch_ns": {switch}, "queue_thread_ns": {thread}, "queue_threads": {threads},
                "submission_thread_ns": {dispatch}, "read_ns": {read},
                "retry_permille": {}, "erase_step_cycles": 0, "vector_max": 64,
                "rber_fresh": 1e-12, "rber_rated": 1e-12, "seed": {}}}"#,
            if again { 1000 } else { 0 },
            seed >> 1,
        );
        check_concurrent(&overrides, seed, pause)?;
    }
}
