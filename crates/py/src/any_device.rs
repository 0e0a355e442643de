//! One enum for the devices of all crates; each run is still compiled for its own device type.

use std::path::PathBuf;

use uflip_core::{
    Bytes, Counters, Device, DeviceInfo, DeviceKind, Durability, Error, ErrorKind, Io, Nanos,
    Result, ZoneReport,
};
use uflip_engine::{Causes, Control, Resolved, SeriesPart};
use uflip_host::{
    Completions, DeviceWatch, DirectDevice, NullDevice, NvmeDevice, QueuedDevice, TargetStatus,
};
use uflip_serve::NbdDevice;
use uflip_sim::{Outage, SimDevice};
use uflip_store::{Inside, Spool, StoredTrace};

use crate::background::Watchable;
use crate::inside::{InsideRecorder, RecordingDevice};

pub(crate) enum AnyDevice {
    Null(NullDevice),
    Direct(DirectDevice),
    Nvme(Box<NvmeDevice>),
    Nbd(NbdDevice),
    Sim(Box<SimDevice>),
}

/// The interval at which waiting on a real device checks for cancellation.
const IDLE_STEP: Nanos = Nanos(50_000_000);

fn run<D: Device<Request = Io> + Send>(
    device: &mut D,
    pattern: Resolved,
    control: &Control,
    spool: Option<PathBuf>,
) -> Result<StoredTrace> {
    let allow_zero_time = device.info().kind == DeviceKind::Null;
    // A run on a real device does no unnecessary work.
    if spool.is_none() && !device.info().simulated {
        let trace = uflip_engine::run(device, pattern, control)?;
        return StoredTrace::from(trace).checked(allow_zero_time);
    }
    let mut spool = Spool::new(spool, Causes::for_run::<D>(&pattern).names());
    let outcome = uflip_engine::run_into(device, pattern, control, &mut spool)?;
    spool.finish(outcome)?.checked(allow_zero_time)
}

/// Create the error of a zone operation on a device without zones.
pub(crate) fn no_zones(url: &str) -> Error {
    Error::usage("The device has no zones")
        .at(url)
        .allowed("a simulated device with zones (sim:zns), a zoned disk or NVMe namespace")
        .action("see `uflip info DEVICE`")
}

fn no_state(url: &str) -> Error {
    Error::usage("A device state cannot be enforced on a device with zones")
        .at(url)
        .action("omit the device state: each run of a plan begins with its own zones")
}

fn interrupted() -> Error {
    Error::new(ErrorKind::Interrupted, "The run was interrupted")
}

macro_rules! each {
    ($any:expr, $device:ident => $call:expr) => {
        match $any {
            AnyDevice::Null($device) => $call,
            AnyDevice::Direct($device) => $call,
            AnyDevice::Nvme($device) => {
                let $device = &mut **$device;
                $call
            }
            AnyDevice::Nbd($device) => $call,
            AnyDevice::Sim($device) => {
                let $device = &mut **$device;
                $call
            }
        }
    };
}

impl Watchable for AnyDevice {
    fn watch(&self) -> Option<DeviceWatch> {
        self.direct().map(DirectDevice::watch)
    }
}

impl AnyDevice {
    /// Return the opened file or block device; that of an NVMe namespace is only claimed.
    fn direct(&self) -> Option<&DirectDevice> {
        match self {
            AnyDevice::Direct(device) => Some(device),
            AnyDevice::Nvme(device) => Some(device.direct()),
            AnyDevice::Null(_) | AnyDevice::Nbd(_) | AnyDevice::Sim(_) => None,
        }
    }

    fn direct_mut(&mut self) -> Option<&mut DirectDevice> {
        match self {
            AnyDevice::Direct(device) => Some(device),
            AnyDevice::Nvme(device) => Some(device.direct_mut()),
            AnyDevice::Null(_) | AnyDevice::Nbd(_) | AnyDevice::Sim(_) => None,
        }
    }

    pub(crate) fn info(&mut self) -> DeviceInfo {
        each!(self, device => device.info().clone())
    }

    pub(crate) fn counters(&mut self) -> Option<Counters> {
        each!(self, device => device.counters())
    }

    /// Let time pass; on a real clock, check for cancellation at intervals.
    pub(crate) fn idle(&mut self, pause: Nanos, control: &Control) -> Result<()> {
        each!(self, device => {
            let step = if device.info().simulated { pause } else { IDLE_STEP };
            let until = Nanos(device.now().0.saturating_add(pause.0));
            while device.now() < until && !control.is_cancelled() {
                let next = Nanos(device.now().0.saturating_add(step.0));
                device.wait_until(next.min(until));
            }
        });
        if control.is_cancelled() { Err(interrupted()) } else { Ok(()) }
    }

    /// Apply the I/Os of `pattern` in the untimed mode of a simulated device; return its counters.
    pub(crate) fn apply(&mut self, pattern: &Resolved, control: &Control) -> Result<Counters> {
        pattern.check_complete()?;
        let sim = self.simulated("used in functional mode")?;
        pattern.check_streams(sim.info())?;
        sim.set_content(pattern.content())?;
        let before = sim.counters().unwrap_or_default();
        let ios = pattern.issued().take_while(|_| !control.is_cancelled());
        sim.apply(ios.inspect(|_| control.count_io(0)))?;
        let counters = sim.counters().unwrap_or_default().since(&before);
        if control.is_cancelled() { Err(interrupted()) } else { Ok(counters) }
    }

    /// Drive a simulated device with `pattern`, `at_once` I/Os at a time, until its power is cut,
    /// and let it recover.
    pub(crate) fn survive(
        &mut self,
        pattern: Option<&Resolved>,
        durability: Durability,
        at_once: u32,
        after: Nanos,
        control: &Control,
    ) -> Result<Outage> {
        let sim = self.simulated("cut off from its power")?;
        sim.set_durability(durability);
        let at = Nanos(sim.now().0.saturating_add(after.0));
        let ios = pattern.into_iter().flat_map(Resolved::issued);
        let ios = ios.take_while(|_| !control.is_cancelled());
        let outage = sim.survive(ios.inspect(|_| control.count_io(0)), at_once, at)?;
        if control.is_cancelled() { Err(interrupted()) } else { Ok(outage) }
    }

    /// Return the simulated device, for an operation (`verb`) that needs one.
    pub(crate) fn simulated(&mut self, verb: &str) -> Result<&mut SimDevice> {
        if let AnyDevice::Sim(device) = self {
            return Ok(device);
        }
        let url = self.info().url;
        Err(Error::usage(format!("Only a simulated device can be {verb}"))
            .at(url)
            .allowed("sim:NAME")
            .action("name a simulated device; `uflip devices` lists them"))
    }

    /// Deallocate a range of whole pages or sectors.
    pub(crate) fn trim(&mut self, offset: Bytes, size: Bytes) -> Result<()> {
        match self {
            AnyDevice::Null(_) => Ok(()),
            AnyDevice::Direct(device) => device.trim(offset, size),
            AnyDevice::Nvme(device) => device.trim(offset, size),
            AnyDevice::Nbd(device) => device.trim(offset, size),
            AnyDevice::Sim(device) if device.has_zones() => {
                Err(Error::usage("A device with zones is not deallocated in part")
                    .at(&device.info().url)
                    .action("reset a zone: `uflip zones DEVICE --reset N`"))
            }
            AnyDevice::Sim(device) => {
                device.trim(offset, size);
                Ok(())
            }
        }
    }

    /// Return the zones of a zoned device.
    pub(crate) fn zones(&self) -> Result<Option<ZoneReport>> {
        match self {
            AnyDevice::Null(device) => device.zones(),
            AnyDevice::Direct(device) => device.zones(),
            AnyDevice::Nvme(device) => device.zones(),
            AnyDevice::Nbd(device) => device.zones(),
            AnyDevice::Sim(device) => device.zones(),
        }
    }

    /// Execute one I/O now; return its response time.
    pub(crate) fn execute_now(&mut self, io: &Io) -> Result<Nanos> {
        each!(self, device => {
            device.submit(io)?;
            let completion = device.complete()?;
            Ok(completion.completed - completion.submitted)
        })
    }

    /// Set the zones that `pattern` uses to the required states: written ones are empty, those only
    /// read are filled, and no other is active. Their data is lost.
    pub(crate) fn prepare_zones(&mut self, pattern: &Resolved, control: &Control) -> Result<()> {
        let report = self.zones()?.ok_or_else(|| no_zones(&self.info().url))?;
        if !matches!(self, AnyDevice::Sim(_)) {
            self.set_durability(Durability::Cached)?;
        }
        for step in uflip_engine::zones::preparation(pattern, &report) {
            if control.is_cancelled() {
                return Err(interrupted());
            }
            match self {
                // Untimed: preparation is not measured.
                AnyDevice::Sim(device) => device.apply(step.ios())?,
                AnyDevice::Direct(device) => uflip_engine::enforce(device, step.ios(), control)?,
                AnyDevice::Nvme(device) => {
                    uflip_engine::enforce(&mut **device, step.ios(), control)?;
                }
                _ => unreachable!("a device with zones is simulated, a block device or NVMe"),
            }
        }
        self.sync()
    }

    /// Make all written data of a real device durable.
    fn sync(&mut self) -> Result<()> {
        match self {
            AnyDevice::Direct(device) => device.sync(),
            AnyDevice::Nvme(device) => device.sync(),
            AnyDevice::Nbd(device) => device.sync(),
            AnyDevice::Null(_) | AnyDevice::Sim(_) => Ok(()),
        }
    }

    /// Return the status of a real target; `None` for a device in this process.
    pub(crate) fn target_status(&mut self) -> Option<TargetStatus> {
        self.direct_mut().map(DirectDevice::status)
    }

    /// Update the allocated size of a file.
    pub(crate) fn update_allocated_size(&mut self) {
        if let AnyDevice::Direct(device) = self {
            device.update_allocated_size();
        }
    }

    /// Set the completion mode of queued I/Os.
    pub(crate) fn set_completions(&mut self, completions: Completions) -> Result<bool> {
        match self {
            AnyDevice::Direct(device) => device.set_completions(completions),
            AnyDevice::Nvme(device) => device.set_completions(completions),
            AnyDevice::Null(_) | AnyDevice::Nbd(_) | AnyDevice::Sim(_) => Ok(false),
        }
    }

    /// Do work that writes if `writes`, and mark the written data as ours, whether or not the work
    /// succeeds.
    pub(crate) fn mark_writes<T>(
        &mut self,
        writes: bool,
        work: impl FnOnce(&mut AnyDevice) -> T,
    ) -> T {
        if let Some(device) = self.direct().filter(|_| writes) {
            device.begin_writes();
        }
        let result = work(self);
        if let Some(device) = self.direct().filter(|_| writes) {
            device.end_writes();
        }
        result
    }

    /// Set the durability of writes; no effect on a device without data.
    pub(crate) fn set_durability(&mut self, durability: Durability) -> Result<()> {
        match self {
            AnyDevice::Null(_) => {}
            AnyDevice::Direct(device) => device.set_durability(durability),
            AnyDevice::Nvme(device) => device.direct_mut().set_durability(durability),
            AnyDevice::Nbd(device) => device.set_durability(durability)?,
            AnyDevice::Sim(device) => device.set_durability(durability),
        }
        Ok(())
    }

    /// Execute the `writes` that enforce a state. A simulated device does so in its untimed mode,
    /// which also brings it into the state of its profile; any other executes them one after
    /// another. Single writes need not be durable, but all are in the end.
    pub(crate) fn enforce(
        &mut self,
        writes: impl Iterator<Item = Io>,
        control: &Control,
    ) -> Result<()> {
        // The content of the last run does not apply to a state.
        each!(self, device => device.set_content(None))?;
        if self.zones()?.is_some() {
            return Err(no_state(&self.info().url));
        }
        if let AnyDevice::Sim(device) = self {
            let ios = writes.take_while(|_| !control.is_cancelled());
            device.apply(ios.inspect(|_| control.count_io(0)))?;
            return if control.is_cancelled() { Err(interrupted()) } else { Ok(()) };
        }
        self.set_durability(Durability::Cached)?;
        let written = each!(self, device => uflip_engine::enforce(device, writes, control));
        let durable = self.sync();
        written.and(durable)
    }

    /// Run `pattern`; with `spool` the I/Os of a long run go to a file in that folder.
    pub(crate) fn run(
        &mut self,
        pattern: Resolved,
        control: &Control,
        spool: Option<PathBuf>,
    ) -> Result<StoredTrace> {
        let depth = pattern.queue_depth_max();
        match self {
            // At queue depth 1, plain system calls; above, a kernel queue.
            AnyDevice::Direct(device) if depth > 1 => {
                let mut queued = QueuedDevice::new(device, depth, pattern.io_size_max())?;
                let trace = run(&mut queued, pattern, control, spool)?;
                device.adopt_content(queued.content());
                Ok(trace)
            }
            AnyDevice::Nvme(device) => {
                let mut queued = device.with_depth(depth, pattern.io_size_max())?;
                run(&mut queued, pattern, control, spool)
            }
            _ => each!(self, device => run(device, pattern, control, spool)),
        }
    }

    /// Run on a simulated device, and record its inside.
    pub(crate) fn run_inside(
        &mut self,
        pattern: Resolved,
        control: &Control,
        spool: Option<PathBuf>,
    ) -> Result<(StoredTrace, Inside)> {
        let device = self.simulated("inspected")?;
        let mut recorder = InsideRecorder::new(device);
        let mut recorded = RecordingDevice { device: &mut *device, recorder: &mut recorder };
        let trace = run(&mut recorded, pattern, control, spool)?;
        Ok((trace, recorder.finish(device)))
    }

    pub(crate) fn run_series(
        &mut self,
        patterns: Vec<Resolved>,
        control: &Control,
    ) -> Result<Vec<SeriesPart>> {
        let max_depth = patterns.iter().map(Resolved::queue_depth_max).max().unwrap_or(1);
        let max_size = patterns.iter().map(Resolved::io_size_max).max().unwrap_or(0);
        match self {
            AnyDevice::Direct(device) if max_depth > 1 => {
                let mut queued = QueuedDevice::new(device, max_depth, max_size)?;
                uflip_engine::run_series(&mut queued, patterns, control)
            }
            AnyDevice::Nvme(device) => {
                let mut queued = device.with_depth(max_depth, max_size)?;
                uflip_engine::run_series(&mut queued, patterns, control)
            }
            _ => each!(self, device => uflip_engine::run_series(device, patterns, control)),
        }
    }
}
