//! The record of the inside of a simulated device during a run: a few hundred samples for any
//! length of run, the state of each block before and after, and the operations of the dies, in
//! bounded memory (`crates/sim/src/timeline/log.rs`).
//!
//! ```text
//! I/O      k        2k       3k       …        at the limit every other sample is dropped, and k doubles
//! sample   free blocks, pages programmed, pages moved, blocks erased
//! ```
//!
//! The engine drives the wrapper like the device itself. Sampling does not affect the device, and
//! takes no time on its clock.

use std::path::Path;

use pyo3::prelude::*;
use uflip_core::{
    Completion, ContentShares, Counters, Device, DeviceInfo, FlashIo, FlashOp, Io, Mode, Nanos,
    Result, Ticket,
};
use uflip_sim::{OpenChannelDevice, Operation, Operations, SimDevice, Wait};
use uflip_store::Inside;

use crate::conversion::raise_to_user;

/// The largest number of samples; a long run has at least half as many.
const SAMPLES: usize = 512;

/// A simulated device of any interface, with its blocks ordered by die.
pub(crate) trait InspectableDevice: Device {
    /// Begin to record the operations of its dies.
    fn begin(&mut self);
    /// Note a completed request with its submission and completion.
    fn record_completion(&mut self, begin: u64, end: u64);
    /// Return the recorded operations.
    fn end(&mut self) -> Operations;
    /// Return the bytes that `request` writes.
    fn written_bytes(&self, request: &Self::Request) -> u64;
    /// Return the erase count of each block.
    fn erases(&self) -> Vec<u32>;
    /// Return the number of erased blocks of each die.
    fn erased_blocks(&self) -> Vec<u32>;
    /// Return the valid pages of each full block.
    fn valid_pages(&self) -> Option<Vec<Option<u16>>>;
    /// Return the channels, the dies, the pages per block, and the bytes per page.
    fn shape(&self) -> [u32; 4];
    /// Return the channel of each die, and its clock index.
    fn channels_and_clocks(&self) -> [Vec<u32>; 2];
}

/// Implement the methods that both kinds of devices have in the same form.
macro_rules! shared_methods {
    () => {
        fn begin(&mut self) {
            self.record_operations();
        }

        fn record_completion(&mut self, begin: u64, end: u64) {
            self.note_completion(begin, end);
        }

        fn end(&mut self) -> Operations {
            self.recorded_operations()
        }

        fn erases(&self) -> Vec<u32> {
            Self::erases(self)
        }

        fn erased_blocks(&self) -> Vec<u32> {
            Self::erased_blocks(self)
        }

        fn shape(&self) -> [u32; 4] {
            Self::shape(self)
        }
    };
}

impl InspectableDevice for SimDevice {
    shared_methods!();

    fn written_bytes(&self, request: &Io) -> u64 {
        if request.mode == Mode::Write { request.size.0 } else { 0 }
    }

    fn valid_pages(&self) -> Option<Vec<Option<u16>>> {
        SimDevice::valid_pages(self)
    }

    fn channels_and_clocks(&self) -> [Vec<u32>; 2] {
        [self.channels().0, self.clocks()]
    }
}

impl InspectableDevice for OpenChannelDevice {
    shared_methods!();

    fn written_bytes(&self, request: &FlashIo) -> u64 {
        let sectors = if request.op() == FlashOp::Write { request.ppas().len() } else { 0 };
        sectors as u64 * u64::from(self.geometry().sector_bytes)
    }

    fn valid_pages(&self) -> Option<Vec<Option<u16>>> {
        None // Only the host knows which data is valid.
    }

    fn channels_and_clocks(&self) -> [Vec<u32>; 2] {
        let channels = self.channels();
        let clocks = (0..channels.len() as u32).collect();
        [channels, clocks]
    }
}

/// A sample of the device.
#[derive(Clone, Copy)]
struct Sample {
    ios: u64,
    at: u64,
    written_bytes: u64,
    counters: Counters,
    erased: u64,
    least_erased: u64,
}

/// The recorder of a device during a run.
pub(crate) struct InsideRecorder {
    every: u64,
    ios: u64,
    written_bytes: u64,
    began: u64,
    before: Counters,
    samples: Vec<Sample>,
    erases_before: Vec<u32>,
}

impl InsideRecorder {
    /// Create the recorder of a run that begins now.
    pub(crate) fn new(device: &mut impl InspectableDevice) -> InsideRecorder {
        device.begin();
        let mut recorder = InsideRecorder {
            every: 1,
            ios: 0,
            written_bytes: 0,
            began: device.now().0,
            before: device.counters().unwrap_or_default(),
            samples: Vec::with_capacity(SAMPLES),
            erases_before: device.erases(),
        };
        recorder.sample(device);
        recorder
    }

    fn completed(&mut self, device: &impl InspectableDevice) {
        self.ios += 1;
        if !self.ios.is_multiple_of(self.every) {
            return;
        }
        if self.samples.len() == SAMPLES {
            self.every *= 2;
            let every = self.every;
            self.samples.retain(|sample| sample.ios.is_multiple_of(every));
            if !self.ios.is_multiple_of(every) {
                return;
            }
        }
        self.sample(device);
    }

    fn sample(&mut self, device: &impl InspectableDevice) {
        let erased = device.erased_blocks();
        self.samples.push(Sample {
            ios: self.ios,
            at: device.now().0 - self.began,
            written_bytes: self.written_bytes,
            counters: device.counters().unwrap_or_default().since(&self.before),
            erased: erased.iter().map(|blocks| u64::from(*blocks)).sum(),
            least_erased: u64::from(erased.iter().min().copied().unwrap_or(0)),
        });
    }

    /// Return the record after the run.
    pub(crate) fn finish(mut self, device: &mut impl InspectableDevice) -> Inside {
        let operations = device.end();
        if self.samples.last().is_none_or(|sample| sample.ios != self.ios) {
            self.sample(device);
        }
        let sample_column = |name: &str, value: fn(&Sample) -> u64| -> (String, Vec<u64>) {
            (format!("sample_{name}"), self.samples.iter().map(value).collect())
        };
        let mut columns: Inside = vec![
            ("shape".to_owned(), wide(&device.shape())),
            sample_column("ios", |sample| sample.ios),
            sample_column("at_ns", |sample| sample.at),
            sample_column("written_bytes", |sample| sample.written_bytes),
            sample_column("pages_programmed", |sample| sample.counters.pages_programmed),
            sample_column("pages_relocated", |sample| sample.counters.pages_relocated),
            sample_column("blocks_erased", |sample| sample.counters.blocks_erased),
            sample_column("erased_blocks", |sample| sample.erased),
            sample_column("least_erased_blocks", |sample| sample.least_erased),
            ("block_erases_before".to_owned(), wide(&self.erases_before)),
            ("block_erases".to_owned(), wide(&device.erases())),
        ];
        if let Some(valid) = device.valid_pages() {
            // Plus one, so that 0 marks blocks that are not full.
            let plus_one = |pages: &Option<u16>| pages.map_or(0, |pages| u64::from(pages) + 1);
            columns.push(("block_valid_and_one".to_owned(), valid.iter().map(plus_one).collect()));
        }
        let [channels, clocks] = device.channels_and_clocks();
        columns.push(("die_channel".to_owned(), wide(&channels)));
        columns.push(("die_clock".to_owned(), wide(&clocks)));
        columns.extend(columns_of(&operations, self.began));
        columns
    }
}

/// Return the operations of the dies as columns: times from the start of the run, earlier ones as
/// 0; consecutive times as differences, which are small and similar.
fn columns_of(operations: &Operations, began: u64) -> Inside {
    let since = |at: u64| at.saturating_sub(began);
    let column = |name: &str, value: &dyn Fn(&Operation) -> u64| -> (String, Vec<u64>) {
        (format!("op_{name}"), operations.operations.iter().map(value).collect())
    };
    let waits = |name: &str, value: &dyn Fn(&Wait) -> u64| -> (String, Vec<u64>) {
        (format!("wait_{name}"), operations.waits.iter().map(value).collect())
    };
    let ends = |end: fn(&(u64, u64)) -> u64| operations.gaps.iter().map(end).map(since).collect();
    vec![
        ("ops_all".to_owned(), vec![operations.all]),
        ("gap_from_ns".to_owned(), ends(|gap| gap.0)),
        ("gap_until_ns".to_owned(), ends(|gap| gap.1)),
        column("asked_ns", &|op| since(op.arrived)),
        column("waited_ns", &|op| since(op.begin) - since(op.arrived)),
        column("held_ns", &|op| since(op.end) - since(op.begin)),
        column("cells_ns", &|op| op.cells),
        column("to_channel_ns", &|op| since(op.sent).saturating_sub(since(op.begin))),
        column("channel_first_ns", &|op| match op.sent_until {
            0 => 0,
            _ => since(op.begin).saturating_sub(since(op.sent)),
        }),
        column("sent_ns", &|op| op.sent_until - op.sent),
        column("die", &|op| op.plane.into()),
        column("io_and_one", &|op| op.io.into()),
        column("job_and_one", &|op| op.job.into()),
        column("block_and_one", &|op| op.block.into()),
        column("kind", &|op| op.kind.into()),
        column("purpose", &|op| op.purpose.into()),
        waits("from_ns", &|wait| since(wait.from)),
        waits("ns", &|wait| since(wait.until) - since(wait.from)),
        waits("io_and_one", &|wait| wait.io.into()),
        waits("die", &|wait| wait.plane.into()),
        waits("page", &|wait| wait.page.into()),
        waits("kind", &|wait| wait.kind.into()),
        ("valid_job".to_owned(), operations.valid.iter().map(|(job, _)| (*job).into()).collect()),
        (
            "valid_pages".to_owned(),
            operations.valid.iter().map(|(_, pages)| (*pages).into()).collect(),
        ),
    ]
}

fn wide(values: &[u32]) -> Vec<u64> {
    values.iter().map(|value| u64::from(*value)).collect()
}

/// Write the record to a new Parquet file, and sync it; an error for `None`.
pub(crate) fn write(
    inside: Option<&Inside>,
    py: Python<'_>,
    path: &str,
    about_json: &str,
) -> PyResult<()> {
    let empty = Inside::new();
    let inside = inside.unwrap_or(&empty);
    py.detach(|| uflip_store::write_inside(inside, Path::new(path), about_json))
        .map_err(raise_to_user)
}

/// A device with a recorder.
pub(crate) struct RecordingDevice<'a, D> {
    pub(crate) device: &'a mut D,
    pub(crate) recorder: &'a mut InsideRecorder,
}

impl<D: InspectableDevice> Device for RecordingDevice<'_, D> {
    type Request = D::Request;
    type Status = D::Status;
    type Breakdown = D::Breakdown;

    fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    fn now(&self) -> Nanos {
        self.device.now()
    }

    fn wait_until(&mut self, t: Nanos) {
        self.device.wait_until(t);
    }

    fn prefetch(&mut self, request: &D::Request) {
        self.device.prefetch(request);
    }

    fn submit(&mut self, request: &D::Request) -> Result<Ticket> {
        self.recorder.written_bytes += self.device.written_bytes(request);
        self.device.submit(request)
    }

    fn next_completion(&mut self, before: Nanos) -> Option<Nanos> {
        self.device.next_completion(before)
    }

    fn complete(&mut self) -> Result<Completion<D::Breakdown, D::Status>> {
        let completion = self.device.complete()?;
        self.device.record_completion(completion.submitted.0, completion.completed.0);
        self.recorder.completed(self.device);
        Ok(completion)
    }

    fn counters(&self) -> Option<Counters> {
        self.device.counters()
    }

    fn set_content(&mut self, content: Option<ContentShares>) -> Result<()> {
        self.device.set_content(content)
    }

    fn split(&self, _: usize) -> Result<Option<Vec<Self>>> {
        // As the devices themselves: one serves all submitters.
        Ok(None)
    }
}
