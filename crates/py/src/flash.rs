//! Open-channel devices for Python: jobs as JSON, logs as columns.

use std::path::{Path, PathBuf};

use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use uflip_core::{AddressStatus, Device as _, Error, FlashGeometry, FlashIo, FlashOp, Ppa, Result};
use uflip_engine::Control;
use uflip_engine::flash::{FlashJob, FlashOutcome, FlashSpec, JobKind, prepare_flash, run_flash};
use uflip_sim::{OpenChannelDevice, OpenChannelProfile, Snapshot};
use uflip_store::Inside;

use crate::background::{BackgroundJob, DeviceSlot, Handle, Watchable};
use crate::columns::Column;
use crate::conversion::{json, raise};
use crate::inside::{self, InsideRecorder, RecordingDevice};

/// Simulated: nothing can hang.
impl Watchable for OpenChannelDevice {
    fn watch(&self) -> Option<uflip_host::DeviceWatch> {
        None
    }
}

/// An open-channel device on which jobs can be started, one at a time.
#[pyclass(frozen)]
pub struct FlashDevice {
    slot: DeviceSlot<OpenChannelDevice>,
    geometry: uflip_core::FlashGeometry,
}

impl FlashDevice {
    fn new(device: OpenChannelDevice) -> FlashDevice {
        let (url, geometry) = (device.info().url.clone(), *device.geometry());
        FlashDevice { slot: DeviceSlot::new(device, &url), geometry }
    }

    fn with<T>(&self, operate: impl FnOnce(&mut OpenChannelDevice) -> Result<T>) -> PyResult<T> {
        self.slot.with(operate).map_err(raise)
    }

    fn job(&self, job_json: &str) -> PyResult<FlashJob> {
        FlashSpec::parse(job_json).and_then(|spec| spec.resolve(self.geometry)).map_err(raise)
    }
}

/// Channel, LUN, block, plane, page, sector.
type Address = (i64, i64, i64, i64, i64, i64);

/// Convert an address; `None` if a number does not fit its field, which no device has.
fn ppa(address: Address) -> Option<Ppa> {
    let (channel, lun, block, plane, page, sector) = address;
    Some(Ppa {
        channel: channel.try_into().ok()?,
        lun: lun.try_into().ok()?,
        block: block.try_into().ok()?,
        plane: plane.try_into().ok()?,
        page: page.try_into().ok()?,
        sector: sector.try_into().ok()?,
    })
}

/// An address outside every device.
const OUTSIDE: Ppa = Ppa { channel: 0, lun: 0, block: u32::MAX, plane: 0, page: 0, sector: 0 };

#[pymethods]
impl FlashDevice {
    #[staticmethod]
    fn sim(
        name: String,
        profile_toml: &str,
        source: &str,
        overrides_json: &str,
    ) -> PyResult<Handle> {
        let profile =
            OpenChannelProfile::parse(profile_toml, source, overrides_json).map_err(raise)?;
        let create = move |_: &Control| OpenChannelDevice::new(&name, &profile);
        let job = BackgroundJob::make(Control::new(1), 1, None, create);
        Ok(job.handle(|py, device| FlashDevice::new(device).into_py_any(py)))
    }

    #[staticmethod]
    fn restore(path: PathBuf) -> Handle {
        let create = move |_: &Control| OpenChannelDevice::restore(&path);
        let job = BackgroundJob::make(Control::new(1), 1, None, create);
        job.handle(|py, device| FlashDevice::new(device).into_py_any(py))
    }

    fn save(&self, path: PathBuf) -> PyResult<Handle> {
        let device = self.slot.take().map_err(raise)?;
        let save = move |device: &mut OpenChannelDevice, control: &Control| {
            device.save_unless(&path, &|| control.is_cancelled())
        };
        let job = BackgroundJob::start(device, self.slot.clone(), Control::new(1), 1, save);
        Ok(job.handle(|py, ()| Ok(py.None())))
    }

    fn counters_json(&self) -> PyResult<String> {
        let counters = self.with(|device| Ok(device.counters()))?;
        Ok(json(counters))
    }

    fn clone(&self) -> PyResult<Handle> {
        let copy = |device: &mut OpenChannelDevice, _: &Control| Ok(device.clone());
        let device = self.slot.take().map_err(raise)?;
        let job = BackgroundJob::start(device, self.slot.clone(), Control::new(1), 1, copy);
        Ok(job.handle(|py, device| FlashDevice::new(device).into_py_any(py)))
    }

    fn resolve(&self, job_json: &str) -> PyResult<String> {
        let job = self.job(job_json)?;
        let mut canonical = job.canonical.clone();
        canonical["totals"] = serde_json::to_value(job.totals()).expect("serializable");
        Ok(canonical.to_string())
    }

    /// Return the erase count, the pages written, and whether the block is retired.
    fn block_state(&self, channel: i64, lun: i64, block: i64) -> PyResult<(u32, u32, bool)> {
        self.with(|device| {
            let geometry = device.geometry();
            let fields = [
                ("channel", channel, geometry.channels),
                ("lun", lun, geometry.luns_per_channel),
                ("block", block, geometry.blocks_per_plane),
            ];
            let outside =
                fields.into_iter().find(|(_, got, count)| !(0..i64::from(*count)).contains(got));
            if let Some((field, got, count)) = outside {
                return Err(FlashGeometry::out_of_range(field, got, count));
            }
            let address = ppa((channel, lun, block, 0, 0, 0)).unwrap_or(OUTSIDE);
            let state = device.block_state(address)?;
            Ok((state.erases, state.pages_written, state.retired))
        })
    }

    /// Execute one command now; return its response time [ns], and the status name of every
    /// address.
    fn command(&self, op: &str, addresses: Vec<Address>) -> PyResult<(u64, Vec<&'static str>)> {
        self.with(|device| {
            let op = match op {
                "read" => FlashOp::Read,
                "write" => FlashOp::Write,
                "erase" => FlashOp::Erase,
                _ => return Err(Error::unknown("operation", op, &["read", "write", "erase"])),
            };
            let ppas = addresses.iter().map(|address| ppa(*address).unwrap_or(OUTSIDE));
            let ppas: Vec<Ppa> = ppas.collect();
            let io = FlashIo::new(op, &ppas)?;
            device.submit(&io)?;
            let completion = device.complete()?;
            let statuses = (0..ppas.len()).map(|index| completion.status.address(index).name());
            Ok((completion.completed.0 - completion.submitted.0, statuses.collect()))
        })
    }

    /// Start a job; with `prepare`, erase its blocks and write the pages that it only reads first.
    /// With `inside`, the inside of the device is recorded, except for wear jobs.
    /// With `verify`, reads compare their data with what was written.
    #[pyo3(signature = (job_json, prepare, inside = false, verify = false))]
    fn start(&self, job_json: &str, prepare: bool, inside: bool, verify: bool) -> PyResult<Handle> {
        let job = self.job(job_json)?;
        let device = self.slot.take().map_err(raise)?;
        let control = Control::new(job.threads() as usize);
        let total = job.totals().total_ios;
        let work = move |device: &mut OpenChannelDevice, control: &Control| {
            if verify {
                device.compare_data();
            }
            if prepare {
                prepare_flash(device, &job, control)?;
            }
            if !inside || job.kind() == JobKind::Wear {
                return Ok((run_flash(device, job, control)?, None));
            }
            let mut recorder = InsideRecorder::new(device);
            let mut recorded = RecordingDevice { device: &mut *device, recorder: &mut recorder };
            let outcome = run_flash(&mut recorded, job, control)?;
            Ok((outcome, Some(recorder.finish(device))))
        };
        let job = BackgroundJob::start(device, self.slot.clone(), control, total, work);
        let convert = |(outcome, inside)| PyFlashTrace { outcome, metadata: String::new(), inside };
        Ok(job.handle(move |py, ended| convert(ended).into_py_any(py)))
    }
}

/// The log of a job: every command, or every cycle of a wear job.
#[pyclass(name = "FlashTrace", frozen)]
pub struct PyFlashTrace {
    outcome: FlashOutcome,
    metadata: String,
    /// The record of the inside of the device, if there is one.
    inside: Option<Inside>,
}

#[pymethods]
impl PyFlashTrace {
    fn __len__(&self) -> usize {
        match &self.outcome {
            FlashOutcome::Trace(trace) => trace.len(),
            FlashOutcome::Wear(log) => log.len(),
        }
    }

    /// Return the stored metadata; empty for a new log.
    #[getter]
    fn metadata_json(&self) -> &str {
        &self.metadata
    }

    #[getter]
    fn job_json(&self) -> String {
        match &self.outcome {
            FlashOutcome::Trace(trace) => trace.canonical.to_string(),
            FlashOutcome::Wear(log) => log.canonical.to_string(),
        }
    }

    #[getter]
    fn columns(&self) -> Vec<&str> {
        uflip_store::flash_column_names(&self.outcome)
    }

    #[getter]
    fn causes(&self) -> Vec<String> {
        match &self.outcome {
            FlashOutcome::Trace(trace) => trace.causes.clone(),
            FlashOutcome::Wear(_) => Vec::new(),
        }
    }

    /// Return whether a wear job ended with a failed erase.
    #[getter]
    fn erase_failed(&self) -> bool {
        matches!(&self.outcome, FlashOutcome::Wear(log) if log.erase_failed)
    }

    fn column(&self, name: &str) -> PyResult<Column> {
        uflip_store::flash_column(&self.outcome, name).map(Column::owned).map_err(raise)
    }

    fn elapsed_ns(&self) -> u64 {
        match &self.outcome {
            FlashOutcome::Trace(trace) => trace.elapsed_ns(),
            FlashOutcome::Wear(log) => {
                let pages: u64 = log.write_ns.iter().chain(&log.read_ns).sum();
                log.erase_ns.iter().sum::<u64>() + pages * log.commands
            }
        }
    }

    fn write_parquet(&self, py: Python<'_>, path: &str, run_json: &str) -> PyResult<()> {
        py.detach(|| uflip_store::write_flash_table(&self.outcome, Path::new(path), run_json))
            .map_err(raise)
    }

    /// Return whether the inside of the device was recorded.
    #[getter]
    fn has_inside(&self) -> bool {
        self.inside.is_some()
    }

    /// Write the record of the inside of the device to a new Parquet file, and sync it.
    fn write_inside(&self, py: Python<'_>, path: &str, about_json: &str) -> PyResult<()> {
        inside::write(self.inside.as_ref(), py, path, about_json)
    }

    fn write_csv(&self, py: Python<'_>, path: &str, sector_bytes: u64) -> PyResult<()> {
        py.detach(|| uflip_store::write_flash_csv(&self.outcome, Path::new(path), sector_bytes))
            .map_err(raise)
    }

    /// Return the names of the statuses, by their numbers in the column `status`.
    #[classattr]
    fn statuses() -> Vec<&'static str> {
        AddressStatus::NAMES.to_vec()
    }
}

/// Read a log of `write_parquet`.
#[pyfunction]
#[pyo3(signature = (path, expected=None))]
pub fn read_flash_trace(
    py: Python<'_>,
    path: &str,
    expected: Option<(u64, String)>,
) -> PyResult<PyFlashTrace> {
    let (outcome, metadata) = py
        .detach(|| uflip_store::read_flash_table(Path::new(path), expected.as_ref()))
        .map_err(raise)?;
    Ok(PyFlashTrace { outcome, metadata, inside: None })
}

/// Return the properties of an open-channel device without creating it.
#[pyfunction]
pub fn inspect_flash(
    name: &str,
    profile_toml: &str,
    source: &str,
    overrides_json: &str,
) -> PyResult<String> {
    let profile = OpenChannelProfile::parse(profile_toml, source, overrides_json).map_err(raise)?;
    let info = OpenChannelDevice::inspect(name, &profile);
    Ok(json(info))
}
