//! Sequential commands, compared with times computed in the order of submission.
//!
//! With one command outstanding nothing overtakes: every thread, channel and LUN has one clock that
//! gives the end of its last work, and later work starts there. Of earlier commands only programs
//! of acknowledged writes still run. So these clocks need no events, and the device must agree to
//! the nanosecond, cause by cause.
//!
//! One exception: reads of several pages of a vector may overtake each other, so a vector reads one
//! page here.

use proptest::prelude::*;
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, mix, uniform};
use uflip_core::{Breakdown, Device, FlashGeometry, FlashIo, FlashOp, Nanos, Ppa};
use uflip_sim::{FlashBreakdown, OpenChannelDevice, OpenChannelProfile};

use super::DFC;

/// The state of a channel: when its thread and its bus are free, and the LUN of its last write.
#[derive(Clone, Copy, Default)]
struct ChannelClock {
    thread: u64,
    bus: u64,
    wrote: Option<u8>,
}

struct CardClocks {
    profile: OpenChannelProfile,
    submission: u64,
    channels: Vec<ChannelClock>,
    /// The operations of each LUN in order, each with its end.
    luns: Vec<Vec<(u64, FlashOp)>>,
    erases: std::collections::BTreeMap<(u8, u8, u32), u64>,
    rng: Xoshiro256PlusPlus,
    retries: u64,
}

/// Time by cause.
type TimeByCause = std::collections::BTreeMap<&'static str, u64>;

impl CardClocks {
    fn new(profile: OpenChannelProfile, geometry: &FlashGeometry) -> CardClocks {
        CardClocks {
            submission: 0,
            channels: vec![ChannelClock::default(); geometry.channels as usize],
            luns: vec![vec![(0, FlashOp::Read)]; geometry.luns() as usize],
            erases: Default::default(),
            rng: Xoshiro256PlusPlus::seed_from_u64(profile.state.seed),
            retries: 0,
            profile,
        }
    }

    /// Return when a command for `at` that arrives `now` ends, and its time by cause.
    fn serve(&mut self, op: FlashOp, at: Ppa, now: u64) -> (u64, TimeByCause) {
        let mut parts = TimeByCause::new();
        let OpenChannelProfile { controller, media, geometry, reliability, .. } = &self.profile;
        let transfer = transfer_ns(&self.profile);
        let channel = &mut self.channels[usize::from(at.channel)];
        let lun =
            usize::from(at.channel) * geometry.luns_per_channel as usize + usize::from(at.lun);
        self.submission = self.submission.max(now) + controller.queue_thread_ns;
        parts.insert("submission_ns", self.submission - now);
        channel.thread = channel.thread.max(self.submission) + controller.submission_thread_ns;
        parts.insert("dispatch_ns", channel.thread - self.submission);
        let ready = channel.thread;
        let operations = &mut self.luns[lun];
        let &(free, last) = operations.last().expect("a LUN has an initial state");
        let end = match op {
            FlashOp::Write => {
                let held = ready.max(channel.bus);
                charge_wait(&mut parts, operations, held);
                parts.insert("channel_wait_ns", held - ready);
                let turned = channel.wrote.is_some_and(|last| last != at.lun);
                let switch = if turned { controller.lun_switch_ns } else { 0 };
                parts.insert("lun_switch_ns", switch);
                channel.wrote = Some(at.lun);
                channel.bus = held.max(free) + switch + transfer;
                parts.insert("transfer_ns", transfer);
                let program = program_ns(&self.profile, at.page);
                operations.push((channel.bus + program, op));
                let waits = if controller.write_back { 0 } else { program };
                parts.insert("cell_program_ns", waits);
                channel.bus + waits
            }
            FlashOp::Read => {
                let again =
                    |rng: &mut Xoshiro256PlusPlus| uniform(rng, 1000) < media.retry_permille;
                charge_wait(&mut parts, operations, ready);
                let disturbed = free > ready && last == FlashOp::Write;
                let mut retries = 0;
                while disturbed && retries < media.retries_max && again(&mut self.rng) {
                    retries += 1;
                }
                self.retries += retries;
                parts.insert("cell_read_ns", media.read_ns);
                let data = free.max(ready) + media.read_ns;
                let sent = data.max(channel.bus);
                parts.insert("channel_wait_ns", sent - data);
                parts.insert("transfer_ns", transfer);
                parts.insert("retry_ns", retries * (media.read_ns + transfer));
                channel.bus = sent + transfer + retries * (media.read_ns + transfer);
                operations.push((channel.bus, op));
                channel.bus
            }
            FlashOp::Erase => {
                let key = (at.channel, at.lun, at.block);
                let erases = self.erases.entry(key).or_insert(u64::from(self.profile.state.erases));
                let steps = erases.checked_div(u64::from(reliability.erase_step_cycles));
                let takes = media.erase_ns + steps.unwrap_or(0) * reliability.erase_step_ns;
                *erases += 1;
                charge_wait(&mut parts, operations, ready);
                parts.insert("cell_erase_ns", takes);
                operations.push((ready.max(free) + takes, op));
                ready.max(free) + takes
            }
        };
        let back = controller.media_completion_thread_ns + controller.host_completion_thread_ns;
        parts.insert("completion_ns", back);
        (end + back, parts)
    }
}

/// Return how long a page is on the channel [ns].
fn transfer_ns(profile: &OpenChannelProfile) -> u64 {
    let geometry = &profile.geometry;
    let page = u64::from(geometry.planes * geometry.sectors_per_page);
    page * u64::from(geometry.sector_bytes) * 1_000_000_000 / profile.controller.channel_bytes_per_s
}

/// Add the wait for a LUN from `since` on to `parts`, each part by the operation that occupies the LUN.
fn charge_wait(parts: &mut TimeByCause, operations: &[(u64, FlashOp)], mut since: u64) {
    for (until, op) in operations {
        let cause = match op {
            FlashOp::Read => "read_wait_ns",
            FlashOp::Write => "program_wait_ns",
            FlashOp::Erase => "erase_wait_ns",
        };
        *parts.entry(cause).or_default() += until.saturating_sub(since);
        since = since.max(*until);
    }
}

/// Return how long programming a page takes [ns]: low pages, some of which are quick, and high ones, spread.
pub(super) fn program_ns(profile: &OpenChannelProfile, page: u32) -> u64 {
    let media = &profile.media;
    let lot = mix(u64::from(page));
    let quick = u64::from(media.quick_low_pages);
    if page.is_multiple_of(2) && quick > 0 && (lot >> 32).is_multiple_of(quick) {
        return media.program_quick_ns;
    }
    let middle = if page.is_multiple_of(2) { media.program_low_ns } else { media.program_high_ns };
    let most = middle * media.program_spread_permille / 1000;
    middle - most + ((u128::from(lot) * u128::from(2 * most + 1)) >> 64) as u64
}

/// Return a random write or erase, in order within a block, or a read of written pages.
fn command(
    op: FlashOp,
    device: &OpenChannelDevice,
    rng: &mut Xoshiro256PlusPlus,
) -> Option<Vec<Ppa>> {
    let geometry = *device.geometry();
    let mut any = |count: u32| uniform(rng, u64::from(count)) as u32;
    let most = geometry.vector_max / geometry.write_sectors();
    // Reads of a vector overtake each other: a channel is FIFO.
    let count = if op == FlashOp::Read { 1 } else { 1 + any(most) };
    let mut pages: Vec<Ppa> = Vec::new();
    for _ in 0..count {
        let at = Ppa {
            channel: any(geometry.channels) as u8,
            lun: any(geometry.luns_per_channel) as u8,
            block: any(geometry.blocks_per_plane),
            ..Ppa::default()
        };
        let same = |ppa: &&Ppa| Ppa { page: 0, ..**ppa } == at;
        let written = device.block_state(at).unwrap().pages_written;
        let page = match op {
            FlashOp::Write => written + pages.iter().filter(same).count() as u32,
            FlashOp::Read if written > 0 => any(written),
            FlashOp::Read => geometry.pages_per_block,
            FlashOp::Erase => 0,
        };
        if page < geometry.pages_per_block {
            pages.push(Ppa { page, ..at });
        }
    }
    (!pages.is_empty()).then_some(pages)
}

fn check_serial(overrides: &str, seed: u64) -> Result<(), TestCaseError> {
    let profile = OpenChannelProfile::parse(DFC, "dfc.toml", overrides).unwrap();
    let mut device = OpenChannelDevice::new("dfc", &profile).unwrap();
    let geometry = *device.geometry();
    let mut clocks = CardClocks::new(profile, &geometry);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    for number in 0..200 {
        let op = [FlashOp::Write, FlashOp::Write, FlashOp::Read, FlashOp::Erase]
            [uniform(&mut rng, 4) as usize];
        let Some(pages) = command(op, &device, &mut rng) else { continue };
        let mut io = FlashIo::empty(op);
        for page in &pages {
            match op {
                FlashOp::Erase => io.push(*page),
                _ => io.push_page(&geometry, *page),
            }
        }
        let now = device.now().0;
        device.submit(&io).unwrap();
        let ends = pages.iter().map(|page| clocks.serve(op, *page, now));
        let (end, parts) = ends.max_by_key(|(end, _)| *end).expect("at least one page");
        let completion = device.complete().unwrap();
        prop_assert_eq!(completion.status.failed(), 0);
        prop_assert_eq!(completion.completed.0, end, "command {}: {:?} {:?}", number, op, pages);
        let got = FlashBreakdown::CAUSES.iter().zip(completion.breakdown.parts());
        for (cause, ns) in got {
            let expected = parts.get(cause).copied().unwrap_or(0);
            prop_assert_eq!(*ns, expected, "{} of command {}: {:?}", cause, number, op);
        }
        if uniform(&mut rng, 3) == 0 {
            device.wait_until(Nanos(end + uniform(&mut rng, 4_000_000)));
        }
    }
    prop_assert_eq!(device.counters().unwrap().read_retries, clocks.retries);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn single_commands_match_clock_model(
        channels in 1u32..4, luns in 1u32..4, planes in 1u32..3, sectors in 1u32..5,
        rate in 1_000_000u64..1_000_000_000, write_back: bool, switch in 0u64..400_000,
        thread in 0u64..50_000, dispatch in 0u64..50_000, quick in 0u32..4, spread in 0u64..300,
        retry in 0u64..1000, erases in 0u32..30, seed: u64,
    ) {
        let overrides = format!(
            r#"{{"channels": {channels}, "luns_per_channel": {luns}, "planes": {planes},
                "sectors_per_page": {sectors}, "blocks_per_plane": 3, "pages_per_block": 8,
                "channel_bytes_per_s": {rate}, "write_back": {write_back},
                "lun_switch_ns": {switch}, "queue_thread_ns": {thread},
                "submission_thread_ns": {dispatch}, "quick_low_pages": {quick},
                "program_spread_permille": {spread}, "retry_permille": {retry},
                "erases": {erases}, "erase_step_cycles": 3, "erase_steps_max": 1000,
                "rber_fresh": 1e-12, "rber_rated": 1e-12, "seed": {}}}"#,
            seed >> 1,
        );
        check_serial(&overrides, seed)?;
    }
}

#[test]
fn card_profile_matches_clock_model() {
    check_serial("{}", 7).unwrap();
}
