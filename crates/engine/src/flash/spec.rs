//! The specification of a job over physical addresses, with its validation and defaults.

use serde::Deserialize;
use uflip_core::{Error, FlashGeometry, FlashOp, Ppa, Result};

use crate::flash::requests::{FlashRequests, FlashTotals, PageSequence, Script};

/// The orders in which threads visit their pages.
pub const ITERATIONS: [&str; 3] = ["sequential", "round_robin", "isolated"];

/// The names of the job kinds.
pub const JOB_KINDS: [&str; 2] = ["pages", "wear"];

/// The kind of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobKind {
    /// Reads and writes of pages.
    Pages,
    /// Cycles of an erase, writes and reads of one block, until an erase fails.
    Wear,
}

/// The specification that a user writes. Every key has a default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)] // explained in docs/reference/open-channel.md
pub struct FlashSpec {
    pub kind: Option<String>,
    pub first_channel: Option<u64>,
    pub channels: Option<u64>,
    pub first_lun: Option<u64>,
    pub luns: Option<u64>,
    pub first_block: Option<u64>,
    pub blocks: Option<u64>,
    pub first_page: Option<u64>,
    pub pages: Option<u64>,
    /// `W` and `R`, repeated.
    pub mix: Option<String>,
    pub threads: Option<u64>,
    /// Pages (of all planes) per command.
    pub vector: Option<u64>,
    pub sleep: Option<u64>,
    pub iteration: Option<String>,
    /// The number of repetitions; for a wear job, of cycles.
    pub repeat: Option<u64>,
}

/// A validated job with all defaults filled in.
#[derive(Clone, PartialEq, Debug)]
pub struct FlashJob {
    /// The complete job as JSON, stored with a result.
    pub canonical: serde_json::Value,
    kind: JobKind,
    geometry: FlashGeometry,
    /// The pages of each thread, and whether it reads or writes them.
    threads: Vec<(PageSequence, Vec<FlashOp>)>,
    vector: u32,
    sleep_ns: u64,
    repeat: u64,
}

impl FlashSpec {
    /// Parse a specification.
    ///
    /// # Errors
    /// Invalid JSON, an unknown key, a number out of range.
    pub fn parse(json: &str) -> Result<FlashSpec> {
        serde_json::from_str(json).map_err(|error| {
            Error::usage("The job is not valid")
                .at("job")
                .with_serde_message(&error.to_string())
                .action("see `uflip oc pattern --help` for the parameters of a job")
        })
    }

    /// Validate the job against `geometry` and fill in the defaults.
    ///
    /// # Errors
    /// A range outside the geometry, a vector that is too long, other letters in the mix, or more
    /// threads than units.
    pub fn resolve(&self, geometry: FlashGeometry) -> Result<FlashJob> {
        let kind = self.kind()?;
        let default_pages =
            if kind == JobKind::Wear { u64::from(geometry.pages_per_block) } else { 1 };
        let channels =
            range("channel", self.first_channel, self.channels.unwrap_or(1), geometry.channels)?;
        let luns = range("lun", self.first_lun, self.luns.unwrap_or(1), geometry.luns_per_channel)?;
        let blocks =
            range("block", self.first_block, self.blocks.unwrap_or(1), geometry.blocks_per_plane)?;
        let pages = self.pages.unwrap_or(default_pages);
        let pages = range("page", self.first_page, pages, geometry.pages_per_block)?;
        let mix = self.mix(kind)?;
        let iteration = self.iteration()?;
        // Channels vary fastest, as FOX distributes them.
        let units: Vec<(u8, u8)> = (luns.0..luns.0 + luns.1)
            .flat_map(|lun| {
                (channels.0..channels.0 + channels.1).map(move |c| (c as u8, lun as u8))
            })
            .collect();
        let whole = PageSequence {
            units,
            first_block: blocks.0,
            blocks: blocks.1,
            first_page: pages.0,
            pages: pages.1,
            round_robin: iteration != "sequential",
        };
        if kind == JobKind::Wear {
            check_one_block(&whole)?;
        }
        let threads = self.threads.unwrap_or(1);
        let threads = split(&whole, threads, &mix, iteration)?;
        let vector = self.vector(&geometry)?;
        check_vector(&threads, vector)?;
        let repeat = at_least_one("repeat", self.repeat.unwrap_or(1))?;
        let sleep_ns = self.sleep.unwrap_or(0);
        check_length(&threads, vector, repeat, sleep_ns)?;
        let mut job = FlashJob {
            canonical: serde_json::Value::Null,
            kind,
            geometry,
            threads,
            vector,
            sleep_ns,
            repeat,
        };
        let letters = mix.iter().map(|op| if *op == FlashOp::Write { 'W' } else { 'R' });
        job.canonical = serde_json::json!({
            "kind": JOB_KINDS[kind as usize],
            "first_channel": channels.0, "channels": channels.1,
            "first_lun": luns.0, "luns": luns.1,
            "first_block": blocks.0, "blocks": blocks.1,
            "first_page": pages.0, "pages": pages.1,
            "mix": letters.collect::<String>(),
            "threads": job.threads.len(),
            "vector": vector,
            "sleep": sleep_ns,
            "iteration": iteration,
            "repeat": repeat,
        });
        Ok(job)
    }

    fn kind(&self) -> Result<JobKind> {
        match self.kind.as_deref() {
            None | Some("pages") => Ok(JobKind::Pages),
            Some("wear") => Ok(JobKind::Wear),
            Some(other) => Err(Error::unknown("kind of job", other, &JOB_KINDS)),
        }
    }

    fn iteration(&self) -> Result<&'static str> {
        let got = self.iteration.as_deref().unwrap_or("sequential");
        let iteration = ITERATIONS.into_iter().find(|iteration| *iteration == got);
        iteration.ok_or_else(|| Error::unknown("iteration", got, &ITERATIONS).at("iteration"))
    }

    fn mix(&self, kind: JobKind) -> Result<Vec<FlashOp>> {
        if kind == JobKind::Wear {
            return match &self.mix {
                None => Ok(vec![FlashOp::Write, FlashOp::Read]),
                Some(mix) if mix == "WR" => Ok(vec![FlashOp::Write, FlashOp::Read]),
                Some(mix) => Err(Error::usage("A wear job has no mix")
                    .at("mix")
                    .got(format!("'{mix}'"))
                    .action("omit it: a cycle erases, writes all pages, reads all pages")),
            };
        }
        let mix = self.mix.as_deref().unwrap_or("R");
        if mix.len() > LETTERS_MAX {
            return Err(Error::usage("The mix is too long")
                .got(format!("{} letters", mix.len()))
                .allowed(format!("at most {LETTERS_MAX}"))
                .action("write the shortest sequence that repeats itself"));
        }
        let ops = mix.chars().map(|letter| match letter {
            'W' => Some(FlashOp::Write),
            'R' => Some(FlashOp::Read),
            _ => None,
        });
        match ops.collect::<Option<Vec<_>>>() {
            Some(ops) if ops.contains(&FlashOp::Write) && ops[0] == FlashOp::Read => {
                Err(Error::usage("The mix begins with a read of unwritten pages")
                    .at("mix")
                    .got(format!("'{mix}'"))
                    .allowed("reads alone, or a W first")
                    .action("begin with W: the reads of a mix follow its writes"))
            }
            Some(ops) if !ops.is_empty() && ops.len() <= 1000 => Ok(ops),
            _ => Err(Error::usage("The mix is not a sequence of reads and writes")
                .at("mix")
                .got(format!("'{mix}'"))
                .allowed("letters W and R, like WWWR")
                .action("write one letter per I/O; the sequence is repeated")),
        }
    }

    /// Return the pages per command, so that its addresses fit into one.
    fn vector(&self, geometry: &FlashGeometry) -> Result<u32> {
        let vector = self.vector.unwrap_or(1);
        let max_vector = geometry.vector_max / geometry.write_sectors();
        if vector == 0 || vector > u64::from(max_vector) {
            let addresses = geometry.write_sectors();
            return Err(Error::usage("A command has too many or no pages")
                .at("vector")
                .got(format!(
                    "vector {vector}: {} addresses",
                    vector.saturating_mul(addresses.into())
                ))
                .allowed(format!(
                    "1 to {max_vector} pages of {addresses} addresses, at most {} addresses",
                    geometry.vector_max
                ))
                .action("use a shorter vector and more threads"));
        }
        Ok(vector as u32)
    }
}

/// The longest mix; each thread has a copy.
const LETTERS_MAX: usize = 1000;
/// Far more than flash endures, and small enough for products not to overflow.
const COMMANDS_MAX: u64 = 1 << 40;

/// Return the first index and the count of a range of `field`, checked against the device.
fn range(field: &str, first: Option<u64>, count: u64, available: u32) -> Result<(u32, u32)> {
    let first = first.unwrap_or(0);
    let end = first.checked_add(count);
    if count == 0 || end.is_none_or(|end| end > u64::from(available)) {
        return Err(Error::usage(format!("The {field}s of the job lie outside the device"))
            .at(format!("first_{field}, {field}s"))
            .got(format!("{count} from {field} {first} on"))
            .allowed(format!("{field}s 0 to {}", available - 1))
            .action("`uflip info DEVICE` shows the geometry"));
    }
    Ok((first as u32, count as u32))
}

/// Refuse a wear job over more than one block.
fn check_one_block(pages: &PageSequence) -> Result<()> {
    if pages.units.len() == 1 && pages.blocks == 1 {
        return Ok(());
    }
    Err(Error::usage("A wear job sacrifices one block")
        .at("channels, luns, blocks")
        .got(format!("{} blocks", pages.units.len() as u64 * u64::from(pages.blocks)))
        .allowed("channels = 1, luns = 1, blocks = 1")
        .action("name one block; run the job again for another"))
}

/// Refuse a vector that does not divide the pages of every thread.
fn check_vector(threads: &[(PageSequence, Vec<FlashOp>)], vector: u32) -> Result<()> {
    let Some((pages, _)) =
        threads.iter().find(|(pages, _)| !pages.len().is_multiple_of(vector.into()))
    else {
        return Ok(());
    };
    Err(Error::usage("The vector does not divide the pages of a thread")
        .at("vector")
        .got(format!("{} pages in vectors of {vector}", pages.len()))
        .allowed("a divisor of the number of pages")
        .action("change the vector, or the pages, blocks or LUNs to cover"))
}

/// Refuse a job whose commands and pauses overflow their counters.
fn check_length(
    threads: &[(PageSequence, Vec<FlashOp>)],
    vector: u32,
    repeat: u64,
    sleep_ns: u64,
) -> Result<()> {
    let commands_once: u64 = threads.iter().map(|(pages, _)| pages.len() / u64::from(vector)).sum();
    let commands = commands_once.checked_mul(repeat).filter(|commands| *commands <= COMMANDS_MAX);
    let total_sleep = commands.and_then(|commands| commands.checked_mul(sleep_ns));
    if total_sleep.is_some_and(|total_sleep| total_sleep <= i64::MAX as u64) {
        return Ok(());
    }
    Err(Error::usage("The job is too long")
        .at("repeat, sleep")
        .got(format!("{commands_once} commands, {repeat} times, {sleep_ns} ns between two"))
        .allowed(format!("at most {COMMANDS_MAX} commands, and 292 years"))
        .action("repeat it less often, or sleep less"))
}

fn at_least_one(key: &str, value: u64) -> Result<u64> {
    if value > 0 {
        return Ok(value);
    }
    Err(Error::usage(format!("'{key}' of a job is out of range"))
        .at(key)
        .got("0")
        .allowed("1 or more")
        .action(format!("change '{key}'")))
}

/// Return the pages of each of `count` threads. With enough units a thread gets its own units;
/// otherwise it gets its own blocks of a shared unit.
fn split(
    whole: &PageSequence,
    count: u64,
    mix: &[FlashOp],
    iteration: &str,
) -> Result<Vec<(PageSequence, Vec<FlashOp>)>> {
    let (units, blocks) = (whole.units.len() as u64, u64::from(whole.blocks));
    let shared = count.div_ceil(units).max(1);
    let even = count.is_multiple_of(units) || units.is_multiple_of(count.max(1));
    if count == 0 || !even || !blocks.is_multiple_of(shared) {
        return Err(Error::usage("The pages of the job cannot be split evenly among its threads")
            .at("threads")
            .got(format!("{count} threads over {units} LUNs of {blocks} blocks"))
            .allowed(
                "a divisor of the number of LUNs, or a multiple that divides the blocks of each",
            )
            .action("change the number of threads, channels, LUNs or blocks"));
    }
    let writers = mix.iter().filter(|op| **op == FlashOp::Write).count() as u64;
    let readers = count - (count * writers).div_ceil(mix.len() as u64);
    let part = |thread: u64| -> PageSequence {
        if count <= units {
            let each = (units / count) as usize;
            let from = thread as usize * each;
            return PageSequence {
                units: whole.units[from..from + each].to_vec(),
                ..whole.clone()
            };
        }
        let each = (blocks / shared) as u32;
        let first_block = whole.first_block + (thread / units) as u32 * each;
        let unit = whole.units[(thread % units) as usize];
        PageSequence { units: vec![unit], first_block, blocks: each, ..whole.clone() }
    };
    let ops = |thread: u64| match iteration {
        "isolated" if thread < readers => vec![FlashOp::Read],
        "isolated" => vec![FlashOp::Write],
        _ => mix.to_vec(),
    };
    Ok((0..count).map(|thread| (part(thread), ops(thread))).collect())
}

impl FlashJob {
    /// Return the kind.
    #[must_use]
    pub fn kind(&self) -> JobKind {
        self.kind
    }

    /// Return the number of threads.
    #[must_use]
    pub fn threads(&self) -> u64 {
        self.threads.len() as u64
    }

    /// Return the write commands per cycle of a wear job; it has as many reads.
    pub(crate) fn commands_per_cycle(&self) -> u64 {
        self.threads[0].0.len() / u64::from(self.vector)
    }

    /// Return the commands of `thread`.
    #[must_use]
    pub fn requests(&self, thread: u64) -> FlashRequests {
        let (pages, ops) = &self.threads[thread as usize];
        let script = match self.kind {
            JobKind::Wear => Script::Wear { cycles: self.repeat },
            JobKind::Pages => Script::Pages { mix: ops.clone(), repeat: self.repeat },
        };
        FlashRequests::new(self.geometry, pages.clone(), script, self.vector, self.sleep_ns)
    }

    /// Return the commands that prepare the job: erase all blocks; write the pages below the
    /// covered ones, if any; and write the pages of threads that only read.
    pub(crate) fn preparations(&self) -> Vec<FlashRequests> {
        let make =
            |pages: PageSequence, script| FlashRequests::new(self.geometry, pages, script, 1, 0);
        let write = || Script::Pages { mix: vec![FlashOp::Write], repeat: 1 };
        let mut all = Vec::new();
        for (pages, ops) in &self.threads {
            if self.kind == JobKind::Wear {
                continue;
            }
            all.push(make(pages.clone(), Script::Erase));
            if pages.first_page > 0 {
                all.push(make(pages.pages_below(), write()));
            }
            if !ops.contains(&FlashOp::Write) {
                all.push(make(pages.clone(), write()));
            }
        }
        all
    }

    /// Return every block that the job touches.
    pub fn blocks(&self) -> impl Iterator<Item = Ppa> + '_ {
        self.threads.iter().flat_map(|(pages, _)| pages.all_blocks())
    }

    /// Return the total work, without its preparation.
    #[must_use]
    pub fn totals(&self) -> FlashTotals {
        let mut totals = FlashTotals::default();
        for thread in 0..self.threads() {
            self.requests(thread).add_to(&mut totals);
        }
        let bytes = self.geometry.write_bytes();
        totals.bytes_read = totals.pages_read * bytes;
        totals.bytes_written = totals.pages_written * bytes;
        totals
    }
}
