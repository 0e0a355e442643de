//! Devices for Python. Work that takes time is a [`BackgroundJob`], whose handle Python waits for.

use std::path::PathBuf;

use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use uflip_core::{Bytes, DeviceInfo, Error, Io, Mode, Nanos, Result};
use uflip_engine::{Control, Live, PatternSpec, Resolved, SeriesPart};
use uflip_host::{
    BlockOptions, Completions, Data, DirectDevice, FileOptions, Growth, NullDevice, SectorStamp,
};
use uflip_serve::NbdDevice;
use uflip_sim::Snapshot as _;

use crate::any_device::AnyDevice;
use crate::background::{BackgroundJob, DeviceSlot, Handle, interruptible};
use crate::conversion::{json, raise};
use crate::inspect::{counted_state, read_durability};
use crate::ios::Ios;
use crate::trace::PyTrace;
use crate::verification::Verification;

/// The slot of any device.
pub(crate) type AnySlot = DeviceSlot<AnyDevice>;

/// A device on which runs can be started, one at a time.
#[pyclass(name = "Device", frozen)]
pub struct PyDevice {
    slot: AnySlot,
    info: DeviceInfo,
}

impl PyDevice {
    pub(crate) fn new(mut device: AnyDevice) -> PyDevice {
        let info = device.info();
        PyDevice { slot: DeviceSlot::new(device, &info.url), info }
    }

    /// Return the slot of the device.
    pub(crate) fn slot(&self) -> &AnySlot {
        &self.slot
    }

    /// Return the properties of the device.
    pub(crate) fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Use the device now, without the interpreter lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        operate: impl FnOnce(&mut AnyDevice) -> Result<T> + Send,
    ) -> PyResult<T> {
        py.detach(|| self.slot.with(operate)).map_err(raise)
    }

    /// Take the device, for work on another thread.
    fn take(&self) -> PyResult<AnyDevice> {
        self.slot.take().map_err(raise)
    }

    /// Take a simulated device, for an operation (`verb`) that needs one.
    fn take_simulated(&self, verb: &str) -> PyResult<AnyDevice> {
        let simulated = self.slot.with(|device| device.simulated(verb).map(|_| ()));
        simulated.and_then(|()| self.slot.take()).map_err(raise)
    }

    /// Do `work`, of `total` I/Os, on the device, which is away until then. `work` may be cancelled.
    fn start_job<T: Send + 'static>(
        &self,
        device: AnyDevice,
        total: u64,
        work: impl FnOnce(&mut AnyDevice, &Control) -> Result<T> + Send + 'static,
    ) -> BackgroundJob<T> {
        BackgroundJob::start(device, self.slot.clone(), Control::new(1), total, work)
    }

    /// Refuse a range that is not whole sectors of the device.
    fn check_range(&self, offset_bytes: u64, size_bytes: u64) -> Result<()> {
        let DeviceInfo { capacity_bytes, sector_bytes, .. } = &self.info;
        let end = offset_bytes.checked_add(size_bytes);
        let inside = end.is_some_and(|end| end <= capacity_bytes.0);
        let whole =
            [offset_bytes, size_bytes].iter().all(|bytes| bytes.is_multiple_of(sector_bytes.0));
        if inside && whole {
            return Ok(());
        }
        Err(Error::usage("This is not a sector range of the device")
            .at(&self.info.url)
            .got(format!("{size_bytes} bytes at {offset_bytes}"))
            .allowed(format!("multiples of {sector_bytes}, up to byte {}", capacity_bytes.0))
            .action("name whole sectors that the device has"))
    }

    /// Resolve the pattern `spec_json` against this device.
    fn resolve(&self, spec_json: &str) -> Result<Resolved> {
        let spec = PatternSpec::parse(spec_json)?;
        spec.resolve(self.info.capacity_bytes, self.info.sector_bytes)
    }
}

fn open_device(
    py: Python<'_>,
    open: impl FnOnce() -> Result<AnyDevice> + Send + 'static,
) -> PyResult<PyDevice> {
    interruptible(py, |_| open()).map(PyDevice::new)
}

#[pymethods]
impl PyDevice {
    #[staticmethod]
    fn sim(
        name: String,
        profile_toml: &str,
        source: &str,
        overrides_json: &str,
    ) -> PyResult<Handle> {
        let profile =
            uflip_sim::Profile::parse(profile_toml, source, overrides_json).map_err(raise)?;
        let bytes = uflip_sim::SimDevice::state_bytes(&profile);
        Ok(create_device(bytes, move |control| {
            let is_stopped = |size: Bytes| {
                control.advance(size.0);
                control.is_cancelled()
            };
            let device = uflip_sim::SimDevice::make(&name, profile, is_stopped)?;
            Ok(AnyDevice::Sim(Box::new(device)))
        }))
    }

    #[staticmethod]
    fn restore(path: PathBuf) -> Handle {
        create_device(Bytes(1), move |_| {
            let device = uflip_sim::Snapshot::restore(&path)?;
            Ok(AnyDevice::Sim(Box::new(device)))
        })
    }

    fn save(&self, path: PathBuf) -> PyResult<Handle> {
        let job = self.start_job(self.take_simulated("saved")?, 1, move |device, control| {
            device.simulated("saved")?.save_unless(&path, &|| control.is_cancelled())
        });
        Ok(job.handle(|py, ()| Ok(py.None())))
    }

    #[staticmethod]
    #[pyo3(signature = (path, *, writable, buffered, data, size_bytes, destroy))]
    fn file(
        py: Python<'_>,
        path: String,
        writable: bool,
        buffered: bool,
        data: String,
        size_bytes: Option<u64>,
        destroy: Option<String>,
    ) -> PyResult<Handle> {
        let opened = interruptible(py, move |stop| {
            let data = Data::by_name(&data)?;
            let (size, destroy) = (size_bytes.map(Bytes), destroy.as_deref());
            let options = FileOptions { writable, buffered, data, size, destroy };
            uflip_host::open_file(&path, options, stop)
        });
        opened.map(grow_file)
    }

    #[staticmethod]
    #[pyo3(signature = (path, *, writable, buffered, data, destroy, brand))]
    fn block(
        py: Python<'_>,
        path: String,
        writable: bool,
        buffered: bool,
        data: String,
        destroy: Option<String>,
        brand: Option<String>,
    ) -> PyResult<PyDevice> {
        open_device(py, move || {
            let data = Data::by_name(&data)?;
            let (destroy, brand) =
                (destroy.as_deref(), brand.as_deref().and_then(SectorStamp::parse));
            let options = BlockOptions { writable, buffered, data, destroy, stamp: brand };
            uflip_host::open_block(&path, options).map(AnyDevice::Direct)
        })
    }

    #[staticmethod]
    #[pyo3(signature = (path, *, writable, data, destroy, brand))]
    fn nvme(
        py: Python<'_>,
        path: String,
        writable: bool,
        data: String,
        destroy: Option<String>,
        brand: Option<String>,
    ) -> PyResult<PyDevice> {
        open_device(py, move || {
            let data = Data::by_name(&data)?;
            let (destroy, stamp) =
                (destroy.as_deref(), brand.as_deref().and_then(SectorStamp::parse));
            let options = BlockOptions { writable, buffered: false, data, destroy, stamp };
            uflip_host::open_nvme(&path, options).map(|device| AnyDevice::Nvme(Box::new(device)))
        })
    }

    #[staticmethod]
    #[pyo3(signature = (address, *, writable, durability = "cached", io_timeout_ns = 0))]
    fn nbd(
        py: Python<'_>,
        address: String,
        writable: bool,
        durability: &str,
        io_timeout_ns: u64,
    ) -> PyResult<PyDevice> {
        let durability = read_durability(durability)?;
        open_device(py, move || {
            let mut device = NbdDevice::open(&address, writable)?;
            device.set_timeout(Nanos(io_timeout_ns));
            // Refused before anything is written, including the state.
            device.set_durability(durability)?;
            Ok(AnyDevice::Nbd(device))
        })
    }

    #[staticmethod]
    fn null(capacity_bytes: u64) -> PyDevice {
        PyDevice::new(AnyDevice::Null(NullDevice::new(Bytes(capacity_bytes))))
    }

    fn choose_completion(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        let completions = Completions::by_name(name).map_err(raise)?;
        self.with(py, |device| device.set_completions(completions))
    }

    fn info_json(&self) -> String {
        json(&self.info)
    }

    fn counters_json(&self) -> PyResult<Option<String>> {
        let counters = self.slot.with(|device| Ok(device.counters())).map_err(raise)?;
        Ok(counters.map(|counters| counters.to_json()))
    }

    fn standing_json(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.with(py, |device| Ok(device.target_status())).map(|status| status.map(json))
    }

    fn idle(&self, pause_ns: u64) -> PyResult<Handle> {
        let job = self.start_job(self.take()?, 1, move |device, control| {
            device.idle(Nanos(pause_ns), control)
        });
        Ok(job.handle(|py, ()| Ok(py.None())))
    }

    /// Return an independent simulated device in the same state.
    fn clone(&self) -> PyResult<Handle> {
        let job = self.start_job(self.take_simulated("cloned")?, 1, |device, _| {
            device.simulated("cloned").map(|sim| AnyDevice::Sim(Box::new(sim.clone())))
        });
        Ok(job.handle(|py, device| PyDevice::new(device).into_py_any(py)))
    }

    fn apply(&self, spec_json: &str) -> PyResult<Handle> {
        let pattern = self.resolve(spec_json).map_err(raise)?;
        let device = self.take_simulated("used in functional mode")?;
        let total = pattern.totals.total_ios;
        let job =
            self.start_job(device, total, move |device, control| device.apply(&pattern, control));
        Ok(job.handle(|py, counters| counters.to_json().into_py_any(py)))
    }

    /// Drive a simulated device with a pattern until its power is cut, and let it recover.
    #[pyo3(signature = (after_ns, spec_json = None, durability = "cached", at_once = 1))]
    fn cut_power(
        &self,
        after_ns: u64,
        spec_json: Option<&str>,
        durability: &str,
        at_once: u32,
    ) -> PyResult<Handle> {
        let durability = read_durability(durability)?;
        let pattern = spec_json.map(|spec| self.resolve(spec)).transpose().map_err(raise)?;
        let device = self.take_simulated("cut off from its power")?;
        let total = pattern.as_ref().map_or(0, |pattern| pattern.totals.total_ios);
        let job = self.start_job(device, total, move |device, control| {
            device.survive(pattern.as_ref(), durability, at_once, Nanos(after_ns), control)
        });
        Ok(job.handle(|py, outage| json(outage).into_py_any(py)))
    }

    fn trim(&self, py: Python<'_>, offset_bytes: u64, size_bytes: u64) -> PyResult<()> {
        self.check_range(offset_bytes, size_bytes).map_err(raise)?;
        if size_bytes == 0 {
            return Ok(());
        }
        let (offset, size) = (Bytes(offset_bytes), Bytes(size_bytes));
        self.with(py, |device| device.mark_writes(true, |device| device.trim(offset, size)))
    }

    /// Return all zones; `None` for a device without zones.
    fn zones_json(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.with(py, |device| device.zones()).map(|zones| zones.map(json))
    }

    /// Execute one write, append, reset, finish, open or close now; return its response time [ns].
    fn zone_command(
        &self,
        py: Python<'_>,
        command: &str,
        offset_bytes: u64,
        size_bytes: u64,
    ) -> PyResult<u64> {
        let mode = Mode::ALL.into_iter().find(|mode| mode.name() == command);
        let unknown = || raise(Error::unknown("command", command, &Mode::NAMES));
        let mode = mode.ok_or_else(unknown)?;
        self.check_range(offset_bytes, size_bytes).map_err(raise)?;
        let io = Io { offset: Bytes(offset_bytes), size: Bytes(size_bytes), mode, stream: 0 };
        self.with(py, |device| device.mark_writes(true, |device| device.execute_now(&io)))
            .map(|time| time.0)
    }

    /// Set the zones that a pattern uses to the required states.
    fn prepare_zones(&self, spec_json: &str) -> PyResult<Handle> {
        let pattern = self.resolve(spec_json).map_err(raise)?;
        let job = self.start_job(self.take()?, 1, move |device, control| {
            device.mark_writes(true, |device| device.prepare_zones(&pattern, control))
        });
        Ok(job.handle(|py, ()| Ok(py.None())))
    }

    /// Start a run of a pattern; a replay needs its list of I/Os. With `inside`, the inside of a
    /// simulated device is recorded. With `in_pieces` no memory is reserved for whole columns.
    #[pyo3(signature = (spec_json, durability = "cached", spool = None, ios = None, inside = false, in_pieces = false, verify = false, live_ns = None))]
    #[allow(clippy::too_many_arguments)] // keywords of Python
    fn start(
        &self,
        spec_json: &str,
        durability: &str,
        spool: Option<PathBuf>,
        ios: Option<&Ios>,
        inside: bool,
        in_pieces: bool,
        verify: bool,
        live_ns: Option<u64>,
    ) -> PyResult<Handle> {
        let durability = read_durability(durability)?;
        let mut pattern = self.resolve(spec_json).map_err(raise)?;
        if let Some(ios) = ios {
            pattern = pattern.with_list(&ios.list).map_err(raise)?;
        }
        pattern.verified = verify;
        let mut device = self.take()?;
        let live = live_ns.map(|interval| {
            Live::new(interval, device.counters().map(|counters| counters.pages_programmed))
        });
        let control = Control::new(pattern.streams.len()).in_pieces(in_pieces).with_live(live);
        let total = pattern.totals.total_ios;
        let work = move |device: &mut AnyDevice, control: &Control| -> Result<_> {
            device.set_durability(durability)?;
            let verification = verify.then(|| Verification::begin(device, &pattern)).transpose()?;
            let before = device.counters();
            let outcome = device.mark_writes(pattern.writes(), |device| {
                if inside {
                    let outcome = device.run_inside(pattern, control, spool);
                    return outcome.map(|(trace, inside)| (trace, Some(inside)));
                }
                device.run(pattern, control, spool).map(|trace| (trace, None))
            });
            let (trace, inside) = outcome?;
            let after = device.counters();
            if let Some(live) = control.live() {
                live.end(after.map(|counters| counters.pages_programmed));
            }
            let counters = before.zip(after).map(|(before, after)| after.since(&before));
            let verified = verification
                .map(|verification| verification.compare(device, control))
                .transpose()?;
            Ok((trace, counters, inside, verified))
        };
        let job = BackgroundJob::start(device, self.slot.clone(), control, total, work);
        Ok(job.handle(|py, (trace, counters, inside, verified)| {
            PyTrace { inside, verified, ..PyTrace::new(trace, counters) }.into_py_any(py)
        }))
    }

    /// Start several patterns back to back. The result is for each its start, from the start of the
    /// first [ns], and its trace.
    #[pyo3(signature = (specs_json, durability = "cached"))]
    fn start_series(&self, specs_json: Vec<String>, durability: &str) -> PyResult<Handle> {
        let durability = read_durability(durability)?;
        let patterns = specs_json
            .iter()
            .map(|spec| self.resolve(spec))
            .collect::<Result<Vec<_>>>()
            .map_err(raise)?;
        let processes = patterns.iter().map(|pattern| pattern.streams.len()).max().unwrap_or(1);
        let total = patterns.iter().map(|pattern| pattern.totals.total_ios).sum();
        let work = move |device: &mut AnyDevice, control: &Control| -> Result<_> {
            device.set_durability(durability)?;
            let writes = patterns.iter().any(Resolved::writes);
            device.mark_writes(writes, |device| device.run_series(patterns, control))
        };
        let control = Control::new(processes);
        let job = BackgroundJob::start(self.take()?, self.slot.clone(), control, total, work);
        Ok(job.handle(|py, parts| {
            let traces = parts.into_iter().map(|SeriesPart { trace, began, counters }| {
                (began.0, PyTrace::new(trace.into(), counters))
            });
            traces.collect::<Vec<_>>().into_py_any(py)
        }))
    }

    fn enforce(&self, py: Python<'_>, state_json: &str, skip_ios: u64) -> PyResult<Handle> {
        let (capacity, sector) = (self.info.capacity_bytes, self.info.sector_bytes);
        let (state, totals) = counted_state(py, state_json, capacity, sector)?;
        let total = totals.total_ios.saturating_sub(skip_ios);
        let writes = state.writes().skip(usize::try_from(skip_ios).unwrap_or(usize::MAX));
        let job = self.start_job(self.take()?, total, move |device, control| {
            device.mark_writes(true, |device| device.enforce(writes, control))
        });
        Ok(job.handle(|py, ()| Ok(py.None())))
    }
}

/// Create a device of `bytes` on another thread.
fn create_device(
    bytes: Bytes,
    create: impl FnOnce(&Control) -> Result<AnyDevice> + Send + 'static,
) -> Handle {
    let job = BackgroundJob::make(Control::new(1), bytes.0, None, create);
    job.handle(|py, device| PyDevice::new(device).into_py_any(py))
}

/// Write the missing part of a file; on failure the file is restored.
fn grow_file((device, growth): (DirectDevice, Option<Growth>)) -> Handle {
    let (total, watch) = (growth.as_ref().map_or(0, Growth::ios), device.watch());
    let work = move |control: &Control| -> Result<AnyDevice> {
        let mut device = AnyDevice::Direct(device);
        if let Some(growth) = growth {
            device.mark_writes(true, |device| {
                device.enforce(growth.writes(), control).inspect_err(|_| growth.roll_back())
            })?;
            device.update_allocated_size();
        }
        Ok(device)
    };
    let job = BackgroundJob::make(Control::new(1), total, Some(watch), work);
    job.handle(|py, device| PyDevice::new(device).into_py_any(py))
}
