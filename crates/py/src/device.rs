//! Devices for Python, and functions that need no device.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use serde_json::Value;
use uflip_core::{Bytes, DeviceInfo, DeviceKind, Durability, Error, Io, Mode, Nanos, Result};
use uflip_engine::{Control, PatternSpec, Resolved, ResolvedState, StateSpec, StateTotals};
use uflip_host::{BlockOptions, Completions, Data, FileOptions, NullDevice, SectorStamp};
use uflip_serve::NbdDevice;

use crate::any_device::AnyDevice;
use crate::error::raise;
use crate::ios::Ios;
use crate::job::{BackgroundJob, Handle};
use crate::slot::DeviceSlot;
use crate::work;

/// The interval at which a wait for a device handles signals.
const SLICE_S: f64 = 0.05;
/// The time limit for stopping such a wait: a thread blocked in the kernel cannot respond.
const STOP_TIMEOUT_S: f64 = 1.0;

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

    /// Take the device, for work on another thread.
    fn take(&self) -> PyResult<AnyDevice> {
        self.slot.take().map_err(|error| raise(&error))
    }

    /// Take a simulated device, for an operation (`verb`) that needs one.
    fn take_simulated(&self, verb: &str) -> PyResult<AnyDevice> {
        let simulated = self.slot.with(|device| device.simulated(verb).map(|_| ()));
        simulated.and_then(|()| self.slot.take()).map_err(|error| raise(&error))
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

/// Do work that may block on a device and checks for its end at intervals. It runs on a separate
/// thread, so that signals are handled meanwhile; a thread blocked in the kernel is left alone.
fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&dyn Fn() -> bool) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let job =
        BackgroundJob::make(Control::new(1), 1, None, |control| work(&|| control.is_cancelled()));
    while !job.wait(py, SLICE_S) {
        if let Err(signal) = py.check_signals() {
            job.cancel();
            job.wait(py, STOP_TIMEOUT_S);
            return Err(signal);
        }
    }
    job.take(py)
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
        let profile = uflip_sim::Profile::parse(profile_toml, source, overrides_json);
        let profile = profile.map_err(|error| raise(&error))?;
        let bytes = uflip_sim::SimDevice::state_bytes(&profile);
        Ok(work::make(bytes, move |control| {
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
        work::make(Bytes(1), move |_| {
            let device = uflip_sim::Snapshot::restore(&path)?;
            Ok(AnyDevice::Sim(Box::new(device)))
        })
    }

    fn save(&self, path: PathBuf) -> PyResult<Handle> {
        Ok(work::save(self.take_simulated("saved")?, self.slot.clone(), path))
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
        opened.map(work::grow)
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
        let completions = Completions::by_name(name).map_err(|error| raise(&error))?;
        let choose = |device: &mut AnyDevice| device.set_completions(completions);
        py.detach(|| self.slot.with(choose)).map_err(|error| raise(&error))
    }

    fn info_json(&self) -> String {
        serde_json::to_string(&self.info).expect("serializable")
    }

    fn counters_json(&self) -> PyResult<Option<String>> {
        let counters = self.slot.with(|device| Ok(device.counters()));
        let counters = counters.map_err(|error| raise(&error))?;
        Ok(counters.map(|counters| serde_json::to_string(&counters).expect("serializable")))
    }

    fn standing_json(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let status = py.detach(|| self.slot.with(|device| Ok(device.target_status())));
        let status = status.map_err(|error| raise(&error))?;
        Ok(status.map(|status| serde_json::to_string(&status).expect("serializable")))
    }

    fn idle(&self, pause_ns: u64) -> PyResult<Handle> {
        Ok(work::idle(self.take()?, self.slot.clone(), Nanos(pause_ns)))
    }

    /// Return an independent simulated device in the same state.
    fn clone(&self) -> PyResult<Handle> {
        Ok(work::copy(self.take_simulated("cloned")?, self.slot.clone()))
    }

    fn apply(&self, spec_json: &str) -> PyResult<Handle> {
        let pattern = self.resolve(spec_json).map_err(|error| raise(&error))?;
        let device = self.take_simulated("used in functional mode")?;
        Ok(work::apply(device, self.slot.clone(), pattern))
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
        let pattern = spec_json.map(|spec| self.resolve(spec)).transpose();
        let pattern = pattern.map_err(|error| raise(&error))?;
        let device = self.take_simulated("cut off from its power")?;
        Ok(work::survive(device, self.slot.clone(), pattern, durability, at_once, Nanos(after_ns)))
    }

    fn trim(&self, py: Python<'_>, offset_bytes: u64, size_bytes: u64) -> PyResult<()> {
        self.check_range(offset_bytes, size_bytes).map_err(|error| raise(&error))?;
        if size_bytes == 0 {
            return Ok(());
        }
        let (offset, size) = (Bytes(offset_bytes), Bytes(size_bytes));
        py.detach(|| {
            self.slot.with(|device| device.mark_writes(true, |device| device.trim(offset, size)))
        })
        .map_err(|error| raise(&error))
    }

    /// Return all zones; `None` for a device without zones.
    fn zones_json(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let zones = py.detach(|| self.slot.with(|device| device.zones()));
        let zones = zones.map_err(|error| raise(&error))?;
        Ok(zones.map(|zones| serde_json::to_string(&zones).expect("serializable")))
    }

    /// Execute one write, append, reset, finish, open or close now; return its response time [ns].
    fn zone_command(
        &self,
        py: Python<'_>,
        command: &str,
        offset_bytes: u64,
        size_bytes: u64,
    ) -> PyResult<u64> {
        let response_time = py.detach(|| {
            let names: Vec<_> = Mode::ALL.iter().map(|mode| mode.name()).collect();
            let mode = Mode::ALL.into_iter().find(|mode| mode.name() == command);
            let mode = mode.ok_or_else(|| Error::unknown("command", command, &names))?;
            self.check_range(offset_bytes, size_bytes)?;
            let (offset, size) = (Bytes(offset_bytes), Bytes(size_bytes));
            let io = Io { offset, size, mode, stream: 0 };
            self.slot.with(|device| device.mark_writes(true, |device| device.execute_now(&io)))
        });
        response_time.map(|time| time.0).map_err(|error| raise(&error))
    }

    /// Set the zones that a pattern uses to the required states.
    fn prepare_zones(&self, spec_json: &str) -> PyResult<Handle> {
        let pattern = self.resolve(spec_json).map_err(|error| raise(&error))?;
        Ok(work::prepare_zones(self.take()?, self.slot.clone(), pattern))
    }

    /// Start a run of a pattern; a replay needs its list of I/Os. With `inside`, the inside of a
    /// simulated device is recorded. With `in_pieces` no memory is reserved for whole columns.
    #[pyo3(signature = (spec_json, durability = "cached", spool = None, ios = None, inside = false, in_pieces = false))]
    fn start(
        &self,
        spec_json: &str,
        durability: &str,
        spool: Option<PathBuf>,
        ios: Option<&Ios>,
        inside: bool,
        in_pieces: bool,
    ) -> PyResult<Handle> {
        let durability = read_durability(durability)?;
        let mut pattern = self.resolve(spec_json).map_err(|error| raise(&error))?;
        if let Some(ios) = ios {
            pattern = pattern.with_list(&ios.list).map_err(|error| raise(&error))?;
        }
        Ok(work::run(
            self.take()?,
            self.slot.clone(),
            pattern,
            durability,
            spool,
            inside,
            in_pieces,
        ))
    }

    /// Start several patterns back to back.
    #[pyo3(signature = (specs_json, durability = "cached"))]
    fn start_series(&self, specs_json: Vec<String>, durability: &str) -> PyResult<Handle> {
        let durability = read_durability(durability)?;
        let patterns = specs_json.iter().map(|spec| self.resolve(spec)).collect::<Result<Vec<_>>>();
        let patterns = patterns.map_err(|error| raise(&error))?;
        Ok(work::run_series(self.take()?, self.slot.clone(), patterns, durability))
    }

    fn enforce(&self, py: Python<'_>, state_json: &str, skip_ios: u64) -> PyResult<Handle> {
        let (capacity, sector) = (self.info.capacity_bytes, self.info.sector_bytes);
        let (state, totals) = counted_state(py, state_json, capacity, sector)?;
        let ios = skip_ios..totals.total_ios.max(skip_ios);
        Ok(work::enforce(self.take()?, self.slot.clone(), state, ios))
    }
}

fn read_durability(text: &str) -> PyResult<Durability> {
    text.parse().map_err(|error| raise(&error))
}

/// Check that `text` names a durability.
#[pyfunction]
pub fn check_durability(text: &str) -> PyResult<()> {
    read_durability(text).map(|_| ())
}

/// Return the registered names by kind, for help, documentation and their tests.
#[pyfunction]
pub fn registry_json() -> String {
    serde_json::json!({
        "ftl": uflip_sim::FTLS,
        "gc": uflip_sim::VICTIM_POLICIES,
        "allocator": uflip_sim::ALLOCATORS,
        "data": Data::NAMES,
    })
    .to_string()
}

#[pyfunction]
pub fn inspect_file(py: Python<'_>, path: String, buffered: bool) -> PyResult<String> {
    let info = interruptible(py, move |_| uflip_host::inspect_file(&path, buffered))?;
    Ok(serde_json::to_string(&info).expect("serializable"))
}

#[pyfunction]
pub fn inspect_sim(
    name: &str,
    profile_toml: &str,
    source: &str,
    overrides_json: &str,
) -> PyResult<String> {
    let profile = uflip_sim::Profile::parse(profile_toml, source, overrides_json)
        .map_err(|error| raise(&error))?;
    let info = uflip_sim::SimDevice::inspect(name, &profile);
    Ok(serde_json::to_string(&info).expect("serializable"))
}

#[pyfunction]
#[pyo3(signature = (path, interface=None))]
pub fn inspect_snapshot(path: &str, interface: Option<&str>) -> PyResult<String> {
    let info = uflip_sim::inspect_snapshot(Path::new(path), interface);
    let info = info.map_err(|error| raise(&error))?;
    Ok(serde_json::to_string(&info).expect("serializable"))
}

#[pyfunction]
pub fn inspect_block(py: Python<'_>, path: String) -> PyResult<String> {
    let info = interruptible(py, move |_| uflip_host::inspect_block(&path))?;
    Ok(serde_json::to_string(&info).expect("serializable"))
}

#[pyfunction]
pub fn check_block(py: Python<'_>, path: String, destroy: Option<String>) -> PyResult<()> {
    interruptible(py, move |_| uflip_host::check_block(&path, destroy.as_deref()))
}

#[pyfunction]
pub fn check_file(py: Python<'_>, path: String, destroy: Option<String>) -> PyResult<()> {
    interruptible(py, move |stop| uflip_host::check_file(&path, destroy.as_deref(), stop))
}

#[pyfunction]
pub fn check_polled(py: Python<'_>, path: String, buffered: bool) -> PyResult<()> {
    interruptible(py, move |_| uflip_host::check_polled(&path, buffered))
}

#[pyfunction]
pub fn report_block(py: Python<'_>, path: String) -> PyResult<String> {
    let report = interruptible(py, move |_| uflip_host::report_block(&path))?;
    Ok(report_json(&report))
}

/// Return the properties of each block device, and its report (JSON).
#[pyfunction]
pub fn known_blocks(py: Python<'_>, paths: Vec<String>) -> PyResult<Vec<(String, String)>> {
    let reports = interruptible(py, move |_| Ok(uflip_host::report_blocks(&paths)))?.into_iter();
    let documents = reports.map(|(info, report)| {
        (serde_json::to_string(&info).expect("serializable"), report_json(&report))
    });
    Ok(documents.collect())
}

fn report_json(report: &uflip_host::BlockReport) -> String {
    let holds: Vec<_> = report.signatures.iter().map(|signature| &signature.name).collect();
    serde_json::json!({
        "in_use": uflip_host::format_uses(&report.uses),
        "holds": holds,
        "token": report.token,
    })
    .to_string()
}

#[pyfunction]
pub fn wear(py: Python<'_>, path: &str) -> String {
    let document = match py.detach(|| uflip_host::read_wear(path)) {
        Ok(wear) => serde_json::json!({
            "percentage_used": wear.percentage_used,
            "bytes_written": wear.bytes_written,
            "available_spare_percent": wear.available_spare,
            "temperature_celsius": wear.temperature_celsius,
        }),
        Err(reason) => serde_json::json!({ "unknown": reason }),
    };
    document.to_string()
}

#[pyfunction]
pub fn resolve_pattern(
    spec_json: &str,
    capacity_bytes: u64,
    sector_bytes: u64,
    kind: &str,
) -> PyResult<String> {
    let kind: DeviceKind = serde_json::from_value(kind.into()).expect("a known kind of device");
    let resolved = PatternSpec::parse(spec_json)
        .and_then(|spec| spec.resolve(Bytes(capacity_bytes), Bytes(sector_bytes)))
        .and_then(|resolved| resolved.check_on(kind).map(|()| resolved))
        .map_err(|error| raise(&error))?;
    let mut canonical = resolved.canonical;
    canonical["totals"] = serde_json::to_value(resolved.totals).unwrap_or(Value::Null);
    Ok(canonical.to_string())
}

/// Resolve a state and count its writes, which takes seconds for a large device.
fn counted_state(
    py: Python<'_>,
    json: &str,
    capacity: Bytes,
    sector: Bytes,
) -> PyResult<(ResolvedState, StateTotals)> {
    let spec = StateSpec::parse(json).map_err(|error| raise(&error))?;
    interruptible(py, move |stop| {
        let state = spec.resolve(capacity, sector)?;
        Ok((state, state.totals(stop)?))
    })
}

#[pyfunction]
pub fn resolve_state(
    py: Python<'_>,
    state_json: &str,
    capacity_bytes: u64,
    sector_bytes: u64,
) -> PyResult<String> {
    let (capacity, sector) = (Bytes(capacity_bytes), Bytes(sector_bytes));
    let (resolved, totals) = counted_state(py, state_json, capacity, sector)?;
    let mut canonical = serde_json::to_value(resolved).expect("serializable");
    canonical["totals"] = serde_json::to_value(totals).expect("serializable");
    Ok(canonical.to_string())
}

#[pyfunction]
pub fn clock_ns(py: Python<'_>) -> f64 {
    py.detach(uflip_host::clock_cost_ns)
}
