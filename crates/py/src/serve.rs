//! Serving devices as block devices: the listening sockets, and the work of the server.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use uflip_core::{Bytes, Error, Result};
use uflip_engine::Control;
use uflip_host::DataOptions;
use uflip_serve::{Endpoints, Export, ExportData, Model, PacedDevice, RequestRecorder, Slowdown};

use crate::any_device::AnyDevice;
use crate::background::{BackgroundJob, Handle};
use crate::conversion::raise;
use crate::device::{AnySlot, PyDevice};

/// A listening socket, until it is passed to `serve` or released.
#[pyclass(name = "Listener", frozen)]
pub struct PyListener {
    listener: Mutex<Option<uflip_serve::Listener>>,
    address: String,
    is_unix: bool,
}

impl PyListener {
    fn new(listener: Result<uflip_serve::Listener>) -> PyResult<PyListener> {
        let listener = listener.map_err(raise)?;
        let (address, is_unix) = (listener.address().to_owned(), listener.is_unix());
        Ok(PyListener { listener: Mutex::new(Some(listener)), address, is_unix })
    }

    /// Take the socket; works once.
    fn take_socket(&self) -> Option<uflip_serve::Listener> {
        self.listener.lock().expect("the lock is not poisoned").take()
    }
}

#[pymethods]
impl PyListener {
    #[staticmethod]
    fn unix(path: PathBuf) -> PyResult<PyListener> {
        PyListener::new(uflip_serve::Listener::unix(&path))
    }

    #[staticmethod]
    fn tcp(address: &str) -> PyResult<PyListener> {
        let parsed: std::result::Result<SocketAddr, _> = address.parse();
        let parsed = parsed.map_err(|error| {
            Error::usage("This is not an address to listen at")
                .got(format!("'{address}' ({error})"))
                .allowed("IP:PORT, as in 127.0.0.1:10809, [::1]:0")
                .action("write the address as a number")
        });
        PyListener::new(parsed.and_then(uflip_serve::Listener::tcp))
    }

    #[getter]
    fn address(&self) -> &str {
        &self.address
    }

    #[getter]
    fn is_unix(&self) -> bool {
        self.is_unix
    }
}

/// A device with its name, data file (`None`: in memory), read-only flag and `--destroy` text.
type ExportArguments<'py> = (PyRef<'py, PyDevice>, String, Option<PathBuf>, bool, Option<String>);

/// Raise the error that `serve` would for a data file, without opening it for writing.
#[pyfunction]
pub fn check_data_file(
    py: Python<'_>,
    path: PathBuf,
    size_bytes: u64,
    read_only: bool,
    destroy: Option<&str>,
) -> PyResult<()> {
    let options = DataOptions { size: Bytes(size_bytes), read_only, destroy };
    py.detach(|| uflip_host::check_data_file(&path, options)).map_err(raise)
}

/// Serve devices, given as (device, name, data file or None, read-only, `--destroy` text), until
/// the work is cancelled. Return the statistics as JSON, and the error of the recording. The
/// devices are back afterwards.
#[pyfunction]
#[pyo3(signature = (listeners, exports, slowdown_permille, statistics = None, record = None))]
pub fn serve(
    listeners: Vec<PyRef<'_, PyListener>>,
    exports: Vec<ExportArguments<'_>>,
    slowdown_permille: u64,
    statistics: Option<PyRef<'_, PyListener>>,
    record: Option<PathBuf>,
) -> PyResult<Handle> {
    let prepared = exports.iter().map(|(device, name, data, read_only, destroy)| {
        prepare_export(device, name, data.as_deref(), *read_only, destroy.as_deref())
    });
    let devices = prepared.collect::<Result<Vec<_>>>().map_err(raise)?;
    let names = exports.iter().map(|(_, name, ..)| name.clone()).collect();
    let recorder = record.map(|path| RequestRecorder::start(&path, names)).transpose();
    let endpoints = Endpoints {
        clients: listeners.iter().filter_map(|listener| listener.take_socket()).collect(),
        statistics: statistics.and_then(|listener| listener.take_socket()),
        recorder: recorder.map_err(raise)?,
    };
    let slowdown = Slowdown(slowdown_permille);
    let work = move |control: &Control| run_server(endpoints, devices, slowdown, control);
    Ok(BackgroundJob::make(Control::new(1), 1, None, work).handle(|py, (document, recorded)| {
        let recording_error = recorded.err().map(|error| raise(error).into_value(py));
        (document, recording_error).into_py_any(py)
    }))
}

type PreparedExport = (AnySlot, Export, ExportData);

fn prepare_export(
    device: &PyDevice,
    name: &str,
    data: Option<&Path>,
    read_only: bool,
    destroy: Option<&str>,
) -> Result<PreparedExport> {
    let info = device.info();
    if info.details.contains_key("zones") {
        return Err(Error::usage(
            "A device with zones cannot be served: NBD does not support zones",
        )
        .at(&info.url)
        .allowed("a simulated device without zones")
        .action("serve another one"));
    }
    let export = Export::for_device(name, device.info(), read_only);
    let data = match data {
        None => ExportData::in_memory(export.size),
        Some(path) => {
            ExportData::in_file(path, DataOptions { size: export.size, read_only, destroy })
        }
    };
    Ok((device.slot().clone(), export, data?))
}

fn run_server(
    endpoints: Endpoints,
    prepared: Vec<PreparedExport>,
    slowdown: Slowdown,
    control: &Control,
) -> Result<(String, Result<()>)> {
    let mut slots = Vec::new();
    let mut devices = Vec::new();
    for (slot, export, data) in prepared {
        let paced = PacedDevice::new(model(slot.take()?)?, slowdown);
        devices.push(uflip_serve::ExportedDevice { export, data, paced });
        slots.push(slot);
    }
    let outcome = uflip_serve::serve(endpoints, devices, || control.is_cancelled())?;
    for (slot, model) in slots.iter().zip(outcome.devices) {
        if let Model::Sim(device) = model {
            slot.put_back(AnyDevice::Sim(device));
        }
    }
    Ok((outcome.document.to_string(), outcome.recorded))
}

fn model(mut device: AnyDevice) -> Result<Model> {
    let info = device.info();
    match device {
        AnyDevice::Sim(device) => Ok(Model::Sim(device)),
        AnyDevice::Null(_) => Ok(Model::Instant(info)),
        AnyDevice::Direct(_) | AnyDevice::Nvme(_) | AnyDevice::Nbd(_) => {
            Err(Error::usage("Only simulated and null devices can be served")
                .at(info.url)
                .allowed("sim:NAME, null")
                .action("serve a simulated device"))
        }
    }
}
