//! Traces of other tools for Python, and the lists of I/Os made of them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use uflip_core::{Bytes, Error, ErrorKind, Mode, Result, SECTOR_BYTES_MIN};
use uflip_engine::{Columns, IoList, PatternSpec};
use uflip_foreign::{FioLog, Fit, Fitted, RecordedTrace};

use crate::error::raise;
use crate::trace::PyTrace;

/// The magic number of a Parquet file.
const PARQUET: &[u8] = b"PAR1";
/// The name of uflip's own format.
const UFLIP_FORMAT: &str = "uflip";

/// A recorded trace.
#[pyclass(frozen)]
pub struct Recording {
    recorded: RecordedTrace,
}

/// A list of I/Os that a device supports.
#[pyclass(frozen)]
pub struct Ios {
    pub(crate) list: Arc<IoList>,
    widened: u64,
    split: u64,
    moved: u64,
}

#[pymethods]
impl Recording {
    fn __len__(&self) -> usize {
        self.recorded.ios.len()
    }

    fn summary_json(&self) -> String {
        let recorded = &self.recorded;
        let bytes = |mode| -> u64 {
            let ios = recorded.ios.iter().filter(|io| io.mode == mode);
            ios.fold(0, |sum, io| sum.saturating_add(io.size))
        };
        serde_json::json!({
            "format": recorded.format,
            "ios": recorded.ios.len(),
            "reads": recorded.ios.iter().filter(|io| io.mode == Mode::Read).count(),
            "bytes_read": bytes(Mode::Read),
            "bytes_written": bytes(Mode::Write),
            "bytes_trimmed": bytes(Mode::Trim),
            "end": recorded.end(),
            "span_ns": recorded.has_times.then(|| recorded.span()),
            "left_out": recorded.left_out,
            "sources": recorded.sources,
        })
        .to_string()
    }

    fn without_trims(&self) -> Recording {
        Recording { recorded: self.recorded.without_trims() }
    }

    fn fit(
        &self,
        py: Python<'_>,
        capacity_bytes: u64,
        sector_bytes: u64,
        how: &str,
        speed_ppm: Option<u64>,
    ) -> PyResult<Ios> {
        let fitted = py.detach(|| {
            let how = Fit::by_name(how)?;
            uflip_foreign::fit(&self.recorded, (capacity_bytes, sector_bytes), how, speed_ppm)
        });
        let Fitted { list, widened, moved, split } = fitted.map_err(|error| raise(&error))?;
        Ok(Ios { list: Arc::new(list), widened, moved, split })
    }
}

#[pymethods]
impl Ios {
    fn __len__(&self) -> usize {
        self.list.len()
    }

    /// Return the pattern that names the list, as JSON.
    fn spec_json(&self, queue_depth: u64) -> String {
        serde_json::json!({
            "kind": "replay", "list": self.list.summary(), "queue_depth": queue_depth,
        })
        .to_string()
    }

    #[getter]
    fn widened(&self) -> u64 {
        self.widened
    }

    #[getter]
    fn split(&self) -> u64 {
        self.split
    }

    #[getter]
    fn moved(&self) -> u64 {
        self.moved
    }
}

/// Read a trace of any supported format.
#[pyfunction]
#[pyo3(signature = (path, kind=None))]
pub fn read_recording(py: Python<'_>, path: PathBuf, kind: Option<String>) -> PyResult<Recording> {
    let recorded = py.detach(|| read_any(&path, kind.as_deref()));
    recorded.map(|recorded| Recording { recorded }).map_err(|error| raise(&error))
}

fn read_any(path: &Path, format: Option<&str>) -> Result<RecordedTrace> {
    match format {
        Some(UFLIP_FORMAT) => read_uflip_trace(path),
        None if begins_as_parquet(path) => read_uflip_trace(path),
        Some(name) if !uflip_foreign::formats().contains(&name) => {
            let names: Vec<&str> = recording_formats();
            Err(Error::unknown("format of a trace", name, &names).at("--format"))
        }
        _ => uflip_foreign::read(path, format),
    }
}

fn begins_as_parquet(path: &Path) -> bool {
    let mut begin = [0; 4];
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    is_file
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut begin).is_ok())
        && begin == *PARQUET
}

fn read_uflip_trace(path: &Path) -> Result<RecordedTrace> {
    let (trace, _) = uflip_store::read_trace(path, None)?;
    let times = uflip_store::column(&trace, "submit_ns", 0, trace.len())?;
    let uflip_store::ColumnData::U64(times) = times else { unreachable!("times are of 64 bits") };
    let ios = trace.pattern().issued().zip(times.iter().copied());
    RecordedTrace::from_ios(ios).map_err(|message| {
        Error::new(ErrorKind::Results, "The trace cannot be replayed")
            .at(path.display().to_string())
            .got(message)
            .action("replay another run")
    })
}

/// Read a response time log of fio as the trace of a run, with its properties (JSON).
#[pyfunction]
pub fn read_fio_log(py: Python<'_>, path: PathBuf) -> PyResult<(PyTrace, String)> {
    let read = py.detach(|| uflip_foreign::read_fio_log(&path).and_then(into_trace));
    let (trace, about) = read.map_err(|error| raise(&error))?;
    let (trace, metadata) = (Arc::new(trace.into()), String::new());
    Ok((PyTrace { trace, metadata, counters: None, inside: None }, about))
}

fn into_trace(log: FioLog) -> Result<(uflip_engine::Trace, String)> {
    let about = serde_json::json!({
        "has_offsets": log.has_offsets, "trims": log.trims, "end": log.list.summary().end,
    });
    let spec = serde_json::json!({
        "kind": "replay", "list": log.list.summary(), "queue_depth": log.depth,
    });
    let spec = PatternSpec::parse(&spec.to_string())?;
    let pattern = spec.resolve(Bytes(u64::MAX >> 1), Bytes(SECTOR_BYTES_MIN))?;
    let pattern = pattern.with_list(&Arc::new(log.list))?;
    let (submit_ns, response_time_ns) = (log.submit_ns, log.response_time_ns);
    let columns = Columns { submit_ns, response_time_ns, cause_ns: Vec::new() };
    let trace = uflip_engine::Trace { pattern, columns, causes: Vec::new(), stop_record: None };
    Ok((trace, about.to_string()))
}

/// Return the names of the supported formats.
#[pyfunction]
#[must_use]
pub fn recording_formats() -> Vec<&'static str> {
    [uflip_foreign::formats(), vec![UFLIP_FORMAT]].concat()
}
