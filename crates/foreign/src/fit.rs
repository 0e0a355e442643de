//! The adaptation of a recorded trace to another device: within its capacity, in whole sectors, at
//! its pace.
//!
//! ```text
//!  recorded   0 ─────────●───────────────────────▶ end          ● an I/O
//!  refuse     an error where end > capacity
//!  wrap       0 ──────●──────▶ capacity                          offset mod capacity
//!  scale      0 ────●────────▶ capacity                          offset × capacity / end
//! ```
//!
//! Before that, `Placement` may scale and move all offsets, as for a partition that lies elsewhere.
//! An I/O that does not cover whole sectors is widened. A trim longer than the largest I/O, such as
//! that of mkfs, is split at the same instant. Nothing else changes, and all changes are counted.

use uflip_core::{Bytes, Error, Io, Mode, Result, SpooledVec, format_bytes};
use uflip_engine::{IO_SIZE_MAX, IoList};

use crate::recorded::{RecordedIo, RecordedTrace};

/// The treatment of I/Os beyond the capacity of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// An error.
    Refuse,
    /// Offsets wrap around: adjacent I/Os stay adjacent.
    Wrap,
    /// All offsets are scaled in proportion.
    Scale,
}

impl Fit {
    /// The names of all variants.
    pub const NAMES: &'static [&'static str] = &["refuse", "wrap", "scale"];

    /// Return the variant with this name.
    ///
    /// # Errors
    /// An unknown name; the error lists the known ones.
    pub fn by_name(name: &str) -> Result<Fit> {
        match name {
            "refuse" => Ok(Fit::Refuse),
            "wrap" => Ok(Fit::Wrap),
            "scale" => Ok(Fit::Scale),
            _ => Err(Error::unknown("way to fit a trace", name, Fit::NAMES).at("--fit")),
        }
    }
}

/// The addresses of a replay: offset × scale + offset, then the rule for those beyond the capacity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The treatment of I/Os beyond the capacity of the device.
    pub rule: Fit,
    /// The factor of all offsets, in millionths.
    pub scale_ppm: u64,
    /// The bytes added to all offsets.
    pub offset: i64,
}

impl From<Fit> for Placement {
    fn from(rule: Fit) -> Placement {
        Placement { rule, scale_ppm: PPM, offset: 0 }
    }
}

impl Placement {
    /// Return an I/O at its new offset; `None` if that is negative or too large.
    fn place(self, io: &RecordedIo) -> Option<RecordedIo> {
        let scaled = u128::from(io.offset) * u128::from(self.scale_ppm) / u128::from(PPM);
        let offset = u64::try_from(scaled).ok()?.checked_add_signed(self.offset)?;
        offset.checked_add(io.size)?;
        let mut placed = *io;
        placed.offset = offset;
        Some(placed)
    }

    /// Return the end of the highest I/O at its new offset [bytes].
    fn end(self, recorded: &RecordedTrace) -> Result<u64> {
        let mut end = 0;
        for (number, io) in recorded.ios.iter().enumerate() {
            let placed = self.place(io).ok_or_else(|| {
                Error::usage("An offset of the trace would be below 0, or too large")
                    .at("--address-offset, --address-scale")
                    .got(format!("I/O {number} at byte {}", io.offset))
                    .action("give another offset")
            })?;
            end = end.max(placed.offset + placed.size);
        }
        Ok(end)
    }
}

const PPM: u64 = 1_000_000;

/// A list of I/Os, and the changes made for it.
#[derive(Debug)]
pub struct Fitted {
    /// I/Os that the device supports.
    pub list: IoList,
    /// The number of I/Os widened to whole sectors.
    pub widened: u64,
    /// The number of I/Os moved.
    pub moved: u64,
    /// The number of trims split.
    pub split: u64,
    /// The number of I/Os that were sorted by their time.
    pub sorted: u64,
}

/// Make a list of the recorded I/Os for a device of `capacity` and `sector` bytes. With `speed_ppm`
/// I/Os arrive at their recorded times, `speed_ppm` / 1,000,000 times as fast, in the order of these
/// times; otherwise each follows the previous one of the file.
///
/// # Errors
/// Zone commands; an offset below 0; an I/O beyond the device or longer than it; times that are required and not
/// recorded.
pub fn fit(
    recorded: &RecordedTrace,
    (capacity, sector): (u64, u64),
    placement: impl Into<Placement>,
    speed_ppm: Option<u64>,
) -> Result<Fitted> {
    let placement: Placement = placement.into();
    let rule = placement.rule;
    check_modes(recorded)?;
    if !recorded.has_offsets {
        return Err(Error::usage("The trace does not contain offsets")
            .at("the trace")
            .got(format!("{} I/Os without offsets", recorded.ios.len()))
            .action("record them: log_offset=1 in a job of fio"));
    }
    let capacity = capacity / sector * sector;
    let end = placement.end(recorded)?;
    if rule == Fit::Refuse && end > capacity {
        return Err(Error::usage("The trace was recorded on a larger device")
            .at("--fit")
            .got(format!("I/Os up to byte {end} ({})", format_bytes(end)))
            .allowed(format!("up to {capacity} ({})", format_bytes(capacity)))
            .action(
                "add --fit wrap (neighbours stay neighbours) or --fit scale (all offsets shrink)",
            ));
    }
    let order = speed_ppm.map_or(Ok(None), |_| order_of_times(recorded))?;
    let sorted = order.iter().flat_map(|order| order.iter().enumerate());
    let sorted = sorted.filter(|(at, index)| at != *index).count() as u64;
    let (mut widened, mut moved, mut split) = (0, 0, 0);
    let mut ios = SpooledVec::default();
    let mut instants = SpooledVec::default();
    for number in 0..recorded.ios.len() {
        let number = order.as_ref().map_or(number, |order| order[number]);
        let recorded = recorded.ios[number];
        // `end` has checked all of them.
        let Some(io) = placement.place(&recorded) else { continue };
        let (offset, size) = fit_extent(&io, rule, capacity, sector, end);
        if size > capacity {
            return Err(Error::usage("An I/O of the trace is longer than the device")
                .at(format!("I/O {number} of the trace"))
                .got(format_bytes(size))
                .allowed(format!("up to {}", format_bytes(capacity)))
                .action("replay the trace on a larger device"));
        }
        widened += u64::from(size != io.size);
        moved += u64::from(offset != io.offset / sector * sector);
        let max_size = if io.mode == Mode::Trim { IO_SIZE_MAX } else { size.max(1) };
        split += u64::from(size > max_size);
        for from in (0..size.max(1)).step_by(max_size as usize) {
            let (offset, size) = (Bytes(offset + from), Bytes(max_size.min(size - from)));
            ios.push(Io { offset, size, mode: io.mode, stream: 0 });
            instants.extend(speed_ppm.map(|speed| instant(&recorded, speed)));
        }
    }
    let list = IoList::new(ios.iter().copied(), instants).map_err(|message| {
        Error::usage("The trace cannot be replayed")
            .at("the trace")
            .got(message)
            .action("replay a part of it")
    })?;
    Ok(Fitted { list, widened, moved, split, sorted })
}

/// Return the numbers of the I/Os in the order of their times; `None` if that of the file is the same.
fn order_of_times(recorded: &RecordedTrace) -> Result<Option<SpooledVec<usize>>> {
    if !recorded.has_times {
        return Err(Error::usage("The trace does not contain times")
            .at("--speed")
            .got("a trace without times")
            .action("omit --speed: each I/O then follows the previous one"));
    }
    if recorded.ios.is_sorted_by_key(|io| io.at) {
        return Ok(None);
    }
    let mut order: SpooledVec<usize> = (0..recorded.ios.len()).collect();
    order.sort_in_parts(|index| recorded.ios[*index].at);
    Ok(Some(order))
}

/// A run of uflip may contain zone commands, whose effect depends on the state of that device.
fn check_modes(recorded: &RecordedTrace) -> Result<()> {
    let zone_commands: Vec<&RecordedIo> =
        recorded.ios.iter().filter(|io| io.mode.requires_zones()).collect();
    let Some(first) = zone_commands.first() else { return Ok(()) };
    Err(Error::usage("Zone commands cannot be replayed")
        .at("the trace")
        .got(format!(
            "{} of {} I/Os, the first of them {}",
            zone_commands.len(),
            recorded.ios.len(),
            first.mode.name()
        ))
        .allowed("reads, writes and trims")
        .action("replay another run, or measure the device itself with `uflip run --suite zones`"))
}

/// Return the offset and size of an I/O on the device, in whole sectors.
fn fit_extent(io: &RecordedIo, rule: Fit, capacity: u64, sector: u64, end: u64) -> (u64, u64) {
    let down = |offset: u64| offset / sector * sector;
    if rule == Fit::Scale {
        let size = io.size.next_multiple_of(sector);
        let offset = u128::from(io.offset) * u128::from(capacity) / u128::from(end.max(1));
        return (down(offset as u64).min(capacity.saturating_sub(size)), size);
    }
    let offset = down(io.offset);
    let size = (io.offset - offset + io.size).next_multiple_of(sector);
    let offset = if rule == Fit::Wrap { offset % capacity } else { offset };
    (offset.min(capacity.saturating_sub(size)), size)
}

fn instant(io: &RecordedIo, speed_ppm: u64) -> u64 {
    let instant = u128::from(io.at) * u128::from(PPM) / u128::from(speed_ppm.max(1));
    u64::try_from(instant).unwrap_or(u64::MAX)
}
