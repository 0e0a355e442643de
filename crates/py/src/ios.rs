//! Traces of other tools for Python, and the lists of I/Os made of them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use uflip_core::{Bytes, Error, ErrorKind, Mode, Result, SECTOR_BYTES_MIN, spool_folder};
use uflip_engine::{Columns, IoList, PatternSpec, RunOutcome, Sink};
use uflip_foreign::{Fit, Fitted, MeasuredRun, Placement, ReadOptions, RecordedTrace};

use uflip_store::{Spool, StoredTrace};

use crate::columns::Column;
use crate::conversion::raise;
use crate::trace::PyTrace;

/// The I/Os of a block of a spooled trace.
const BLOCK_IOS: usize = 1 << 16;
/// The magic number of a Parquet file.
const PARQUET: &[u8] = b"PAR1";
/// The name of uflip's own format.
const UFLIP_FORMAT: &str = "uflip";
/// The same as a table.
const UFLIP_TABLE: &str = "uflip-table";

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
    sorted: u64,
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
            "has_offsets": recorded.has_offsets,
            "response_times": recorded.response_times(),
            "version": recorded.assumptions.version,
            "quantity": recorded.assumptions.quantity,
            "unit": recorded.assumptions.unit,
            "columns": recorded.assumptions.columns,
            "notes": recorded.assumptions.notes,
            "odd_lines": recorded.odd.count,
            "first_odd_line": recorded.odd.first,
            "zero_times": recorded.zero_times,
            "steps_back": recorded.steps_back,
            "averaged_ns": recorded.averaged_ns,
        })
        .to_string()
    }

    /// Return the recorded response times in the order of the file: float64 values [ns].
    fn response_times(&self) -> Column {
        let ios = self.recorded.ios.iter().filter(|io| io.response_ns > 0);
        Column::of_floats(ios.map(|io| io.response_ns as f64).collect())
    }

    /// Return the times from the issue to the completion of queued I/Os: float64 values [ns].
    fn device_times(&self) -> Column {
        let times = self.recorded.device_times.iter();
        Column::of_floats(times.map(|time| *time as f64).collect())
    }

    /// Return the recorded measurement as the trace of a run, and its properties (JSON).
    fn measured(&self, py: Python<'_>) -> PyResult<(PyTrace, String)> {
        let run = py.detach(|| {
            let run = self.recorded.measured().map_err(|got| {
                Error::new(ErrorKind::Results, "The file is not a measurement that can be imported")
                    .got(got)
                    .allowed("I/Os with their times and response times")
                    .action("replay it on a device with `uflip replay`")
            })?;
            into_trace(run)
        });
        let (trace, about) = run.map_err(raise)?;
        Ok((PyTrace::new(trace, None), about))
    }

    fn without_trims(&self) -> Recording {
        Recording { recorded: self.recorded.without_trims() }
    }

    #[pyo3(signature = (capacity_bytes, sector_bytes, how, speed_ppm, addresses=(1_000_000, 0)))]
    fn fit(
        &self,
        py: Python<'_>,
        capacity_bytes: u64,
        sector_bytes: u64,
        how: &str,
        speed_ppm: Option<u64>,
        addresses: (u64, i64),
    ) -> PyResult<Ios> {
        let (scale_ppm, offset) = addresses;
        let fitted = py.detach(|| {
            let placement = Placement { rule: Fit::by_name(how)?, scale_ppm, offset };
            uflip_foreign::fit(&self.recorded, (capacity_bytes, sector_bytes), placement, speed_ppm)
        });
        let Fitted { list, widened, moved, split, sorted } = fitted.map_err(raise)?;
        Ok(Ios { list: Arc::new(list), widened, moved, split, sorted })
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

    #[getter]
    fn sorted(&self) -> u64 {
        self.sorted
    }
}

/// Read the files of one trace of any supported format.
#[pyfunction]
#[pyo3(signature = (paths, kind=None, *, columns=None, unit=None, limit=None))]
pub fn read_recording(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    kind: Option<String>,
    columns: Option<String>,
    unit: Option<String>,
    limit: Option<usize>,
) -> PyResult<Recording> {
    let options = ReadOptions { format: kind, columns, unit, limit };
    py.detach(|| read_any(&paths, &options)).map(|recorded| Recording { recorded }).map_err(raise)
}

fn read_any(paths: &[PathBuf], options: &ReadOptions) -> Result<RecordedTrace> {
    let parquet = paths.iter().find(|path| begins_as_parquet(path));
    match (options.format.as_deref(), parquet) {
        (Some(UFLIP_FORMAT) | None, Some(path)) if paths.len() == 1 => read_uflip_trace(path),
        (_, Some(path)) => Err(Error::usage("A run file of uflip is a whole trace")
            .at(path.display().to_string())
            .action("name it alone, without --format")),
        (Some(UFLIP_FORMAT), None) => {
            let format = Some(UFLIP_TABLE.to_owned());
            let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
            uflip_foreign::read_all(&paths, &ReadOptions { format, ..options.clone() })
        }
        _ => {
            let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
            uflip_foreign::read_all(&paths, options)
        }
    }
}

/// Return the format of a file, or None if it has none of the known ones.
#[pyfunction]
pub fn recognised_format(py: Python<'_>, path: PathBuf) -> PyResult<Option<&'static str>> {
    if begins_as_parquet(&path) {
        return Ok(Some(UFLIP_FORMAT));
    }
    py.detach(|| uflip_foreign::recognised_format(&path)).map_err(raise)
}

/// Read one column of a table as response times: float64 values [ns], and their properties (JSON).
#[pyfunction]
#[pyo3(signature = (path, column=None, unit=None))]
pub fn read_series(
    py: Python<'_>,
    path: PathBuf,
    column: Option<String>,
    unit: Option<String>,
) -> PyResult<(Column, String)> {
    let read = py.detach(|| uflip_foreign::read_series(&path, column.as_deref(), unit.as_deref()));
    let series = read.map_err(raise)?;
    let comma = "numbers have a decimal comma";
    let notes: Vec<&str> = series.has_decimal_comma.then_some(comma).into_iter().collect();
    let about = serde_json::json!({
        "format": "table",
        "head": series.head,
        "columns": format!("{}; separated by {}", series.column, series.separator),
        "unit": series.unit,
        "left_out": { "empty": series.empty },
        "odd_lines": series.odd.count,
        "first_odd_line": series.odd.first,
        "zero_times": series.zero_times,
        "notes": notes,
    });
    Ok((Column::of_floats(series.values), about.to_string()))
}

/// Read a log of rates or histograms of fio: its columns as uint64 values, and its properties (JSON).
/// None if the file is another one.
#[pyfunction]
pub fn read_rates<'py>(
    py: Python<'py>,
    path: PathBuf,
) -> PyResult<Option<(Vec<Bound<'py, PyBytes>>, String)>> {
    let log = py.detach(|| uflip_foreign::read_rates(&path)).map_err(raise)?;
    let Some(log) = log else { return Ok(None) };
    let columns = [
        &log.time_ms,
        &log.direction,
        &log.value,
        &log.size,
        &log.bin_row,
        &log.bin,
        &log.bin_ios,
        &log.bin_limits_ns,
    ];
    let bytes = |column: &Vec<u64>| {
        let bytes: Vec<u8> = column.iter().flat_map(|value| value.to_ne_bytes()).collect();
        PyBytes::new(py, &bytes)
    };
    let about = serde_json::json!({
        "quantity": log.quantity, "odd_lines": log.odd.count, "first_odd_line": log.odd.first,
    });
    Ok(Some((columns.into_iter().map(bytes).collect(), about.to_string())))
}

/// Return the unit of time in the name of a column [ns], or None.
#[pyfunction]
#[must_use]
pub fn unit_of_name(name: &str) -> Option<u64> {
    uflip_foreign::unit_of_name(name)
}

/// Read a column of whole numbers.
#[pyfunction]
pub fn read_numbers(py: Python<'_>, path: PathBuf, column: &str) -> PyResult<Column> {
    let numbers = py.detach(|| uflip_foreign::read_numbers(&path, column)).map_err(raise)?;
    Ok(Column::of_floats(numbers.iter().map(|number| *number as f64).collect()))
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
    let responses = uflip_store::column(&trace, "response_time_ns", 0, trace.len())?;
    let uflip_store::ColumnData::U64(responses) = responses else {
        unreachable!("times are of 64 bits")
    };
    let times = times.iter().copied().zip(responses.iter().copied());
    let ios = trace.pattern().issued().zip(times).map(|(io, (at, response))| (io, at, response));
    RecordedTrace::from_ios(ios).map_err(|message| {
        Error::new(ErrorKind::Results, "The trace cannot be replayed")
            .at(path.display().to_string())
            .got(message)
            .action("replay another run")
    })
}

/// Return a measurement as the trace of a run, whose columns are spooled as in a run.
fn into_trace(run: MeasuredRun) -> Result<(StoredTrace, String)> {
    let about = serde_json::json!({
        "trims": run.trims, "untimed": run.untimed, "end": run.list.summary().end,
    });
    let spec = serde_json::json!({
        "kind": "replay", "list": run.list.summary(), "queue_depth": run.depth,
    });
    let spec = PatternSpec::parse(&spec.to_string())?;
    let pattern = spec.resolve(Bytes(u64::MAX >> 1), Bytes(SECTOR_BYTES_MIN))?;
    let pattern = pattern.with_list(&Arc::new(run.list))?;
    let mut spool = Spool::new(Some(spool_folder()), Vec::new());
    let blocks = run.submit_ns.chunks(BLOCK_IOS).zip(run.response_time_ns.chunks(BLOCK_IOS));
    let mut blocks = blocks.map(|(submit_ns, response_time_ns)| Columns {
        submit_ns: submit_ns.to_vec(),
        response_time_ns: response_time_ns.to_vec(),
        cause_ns: Vec::new(),
    });
    let mut last = blocks.next().into_iter().collect();
    for block in blocks {
        for whole in std::mem::replace(&mut last, vec![block]) {
            spool.take(0, whole)?;
        }
    }
    let outcome = RunOutcome { pattern, causes: Vec::new(), stop_record: None, rest: last };
    Ok((spool.finish(outcome)?, about.to_string()))
}

/// Return the names of the supported formats.
#[pyfunction]
#[must_use]
pub fn recording_formats() -> Vec<&'static str> {
    let foreign = uflip_foreign::formats().into_iter().filter(|name| *name != UFLIP_TABLE);
    foreign.chain([UFLIP_FORMAT]).collect()
}
