//! A trace as Python sees it.

use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use uflip_core::Counters;
use uflip_store::{ColumnData, Inside, StoredTrace};

use crate::columns::Column;
use crate::conversion::{raise, raise_to_user};
use crate::inside;

/// Every I/O of one run.
#[pyclass(name = "Trace", frozen, module = "uflip")]
pub struct PyTrace {
    pub(crate) trace: Arc<StoredTrace>,
    pub(crate) metadata: String,
    pub(crate) counters: Option<Counters>,
    /// The record of the inside of the device, if there is one.
    pub(crate) inside: Option<Inside>,
    /// The number of sectors that were compared, if the run was verified.
    pub(crate) verified: Option<u64>,
}

impl PyTrace {
    /// Create the trace of a new run, without what only some runs have.
    pub(crate) fn new(trace: StoredTrace, counters: Option<Counters>) -> PyTrace {
        let (trace, metadata) = (Arc::new(trace), String::new());
        PyTrace { trace, metadata, counters, inside: None, verified: None }
    }
}

#[pymethods]
impl PyTrace {
    fn __len__(&self) -> usize {
        self.trace.len()
    }

    /// The number of sectors that a verified run compared; None without verification.
    #[getter]
    fn verified_sectors(&self) -> Option<u64> {
        self.verified
    }

    // Statistics and the plot need numpy and the figures of the report: they are in `uflip.trace`.

    /// The mean response time without the start-up [ns].
    #[getter]
    fn mean<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("uflip.trace")?.call_method1("mean", (slf,))
    }

    /// Return observed percentiles of the response time without the start-up.
    ///
    /// Parameters
    /// ----------
    /// percent : sequence of float
    ///     The percentiles (n,), each between 0 and 100.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray
    ///     For each the smallest response time that this share of the I/Os does not exceed (n,) [ns];
    ///     NaN if fewer than ten I/Os lie on its thinner side.
    ///
    /// Raises
    /// ------
    /// UsageError
    ///     For a number that is not between 0 and 100.
    fn percentiles<'py>(
        slf: &Bound<'py, Self>,
        percent: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("uflip.trace")?.call_method1("percentiles", (slf, percent))
    }

    /// Plot every I/O in the order of submission with matplotlib, as the report does.
    ///
    /// Parameters
    /// ----------
    /// ax : matplotlib.axes.Axes, optional
    ///     Axes to draw on; by default of a new figure.
    ///
    /// Returns
    /// -------
    /// matplotlib.axes.Axes
    ///     The axes drawn on: response times [ms] on a logarithmic scale with their running average,
    ///     the start-up marked.
    ///
    /// Raises
    /// ------
    /// UnavailableError
    ///     If matplotlib is not installed.
    #[pyo3(signature = (ax=None))]
    fn plot<'py>(
        slf: &Bound<'py, Self>,
        ax: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("uflip.trace")?.call_method1("plot", (slf, ax))
    }

    /// The number of I/Os, their pattern, and the bytes read and written.
    fn __repr__(&self) -> String {
        let pattern = self.trace.pattern();
        let word = |name: &str| pattern.canonical[name].as_str().unwrap_or_default();
        let what = match word("kind") {
            "basic" => format!("{} {}", word("location"), word("mode")),
            kind => kind.to_owned(),
        };
        let (read, written) = (pattern.totals.bytes_read, pattern.totals.bytes_written);
        let ios = self.trace.len();
        format!("<Trace of {ios} I/Os, {what}: {read} bytes read, {written} written>")
    }

    /// The resolved pattern specification, as JSON.
    #[getter]
    fn spec_json(&self) -> String {
        self.trace.pattern().canonical.to_string()
    }

    /// The metadata passed to `write_parquet`; empty for the trace of a new run.
    #[getter]
    fn metadata_json(&self) -> &str {
        &self.metadata
    }

    /// Names for `column`, in order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        uflip_store::column_names(&self.trace).map(str::to_owned).collect()
    }

    /// Names of the columns with the causes of the response time [ns].
    #[getter]
    fn causes(&self) -> Vec<String> {
        self.trace.causes().to_vec()
    }

    /// Return some I/Os of a column; of a long trace, which is in a file, only they are read.
    ///
    /// Parameters
    /// ----------
    /// name : str
    ///     One of `columns`.
    /// start, stop : int, optional
    ///     Numbers of I/Os; all of them by default.
    ///
    /// Returns
    /// -------
    /// Column
    ///     Its values (n,), which numpy views without a copy.
    #[pyo3(signature = (name, start=0, stop=None))]
    fn column(
        &self,
        py: Python<'_>,
        name: &str,
        start: i64,
        stop: Option<i64>,
    ) -> PyResult<Column> {
        // An invalid number counts as beyond the last I/O, and is refused as such.
        let number = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        let stop = stop.map_or(self.trace.len(), number);
        let start = number(start);
        py.detach(|| Column::new(&self.trace, name, start, stop)).map_err(raise_to_user)
    }

    /// Bytes read by the host, including the start-up.
    #[getter]
    fn bytes_read(&self) -> u64 {
        self.trace.pattern().totals.bytes_read
    }

    /// Bytes written by the host, including the start-up.
    #[getter]
    fn bytes_written(&self) -> u64 {
        self.trace.pattern().totals.bytes_written
    }

    /// Bytes deallocated by the host, including the start-up.
    #[getter]
    fn bytes_trimmed(&self) -> u64 {
        self.trace.pattern().totals.bytes_trimmed
    }

    /// Every column as record batches; other schemas are not supported.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        crate::columns::arrow_stream(py, &self.trace)
    }

    /// Return the device's counters of the run, as JSON; None without counters, or for a loaded trace.
    fn counters_json(&self) -> Option<String> {
        self.counters.as_ref().map(Counters::to_json)
    }

    /// The stopping record of a run with a stop rule, as JSON; None for a run of fixed length.
    #[getter]
    fn ended_json(&self) -> Option<String> {
        self.trace.stop_record().map(ToString::to_string)
    }

    /// Return the time from the first submission to the last completion [ns].
    fn elapsed_ns(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.trace.elapsed_ns()).map_err(raise_to_user)
    }

    /// Write submissions, response times and causes to a new file, and sync it.
    ///
    /// Parameters
    /// ----------
    /// path : str
    ///     A name that does not exist.
    /// metadata_json : str
    ///     The metadata to store with it.
    fn write_parquet(&self, py: Python<'_>, path: &str, metadata_json: &str) -> PyResult<()> {
        py.detach(|| uflip_store::write_trace(&self.trace, Path::new(path), metadata_json))
            .map_err(raise_to_user)
    }

    /// Return whether the inside of the device was recorded.
    #[getter]
    fn has_inside(&self) -> bool {
        self.inside.is_some()
    }

    /// Write the record of the inside of the device to a new Parquet file, and sync it.
    ///
    /// Parameters
    /// ----------
    /// path : str
    ///     A name that does not exist.
    /// about_json : str
    ///     The metadata to store with it.
    fn write_inside(&self, py: Python<'_>, path: &str, about_json: &str) -> PyResult<()> {
        inside::write(self.inside.as_ref(), py, path, about_json)
    }

    /// Append a line for each I/O to a table of text.
    ///
    /// Parameters
    /// ----------
    /// path : str
    ///     A file.
    /// prefix : str or None
    ///     The unchanged beginning of every line.
    /// columns : list of str
    ///     The columns after the number of the I/O; 0 for names that this trace does not have.
    fn append_csv(
        &self,
        py: Python<'_>,
        path: &str,
        prefix: Option<&str>,
        columns: Vec<String>,
    ) -> PyResult<()> {
        py.detach(|| uflip_store::append_csv(&self.trace, Path::new(path), prefix, &columns))
            .map_err(raise_to_user)
    }

    /// Write columns to a new Parquet file for other programs, and sync it: modes are words.
    ///
    /// Parameters
    /// ----------
    /// path : str
    ///     A name that does not exist.
    /// constants_json : str
    ///     Columns with one text for all rows: [["run", "0001-baseline-SR"], ...].
    /// columns : list of str
    ///     The other columns; 0 for names that this trace does not have.
    fn write_table(
        &self,
        py: Python<'_>,
        path: &str,
        constants_json: &str,
        columns: Vec<String>,
    ) -> PyResult<()> {
        let path = Path::new(path);
        py.detach(|| uflip_store::write_table(&self.trace, path, constants_json, &columns))
            .map_err(raise_to_user)
    }
}

/// Read a trace that `write_parquet` wrote.
#[pyfunction]
#[pyo3(signature = (path, expected=None))]
pub fn read_trace(
    py: Python<'_>,
    path: &str,
    expected: Option<(u64, String)>,
) -> PyResult<PyTrace> {
    let (trace, metadata) =
        py.detach(|| uflip_store::read_trace(Path::new(path), expected.as_ref())).map_err(raise)?;
    Ok(PyTrace { metadata, ..PyTrace::new(trace, None) })
}

/// Return the columns and metadata of a file of `write_inside`.
#[pyfunction]
#[pyo3(signature = (path, expected=None))]
pub fn read_inside(
    py: Python<'_>,
    path: &str,
    expected: Option<(u64, String)>,
) -> PyResult<(Vec<(String, Column)>, String)> {
    let (columns, about) = py
        .detach(|| uflip_store::read_inside(Path::new(path), expected.as_ref()))
        .map_err(raise)?;
    let columns = columns
        .into_iter()
        .map(|(name, values)| (name, Column::owned(ColumnData::U64(values.into()))));
    Ok((columns.collect(), about))
}

/// Return the metadata of a trace in a file.
#[pyfunction]
pub fn read_metadata(py: Python<'_>, path: &str) -> Option<String> {
    py.detach(|| uflip_store::read_metadata(Path::new(path)))
}

/// Return the specification stored in a run file; None without one.
#[pyfunction]
pub fn read_specification(py: Python<'_>, path: &str) -> Option<String> {
    py.detach(|| uflip_store::read_specification(Path::new(path)))
}

/// Return for each file the reason why it is not a plausible trace; None for a plausible one.
#[pyfunction]
pub fn check_traces(py: Python<'_>, paths: Vec<String>) -> Vec<Option<String>> {
    let checked = py.detach(|| uflip_store::check_traces(&paths));
    checked.into_iter().map(|result| result.err().map(|error| error.parts().2.to_owned())).collect()
}

/// Return the digest of bytes.
#[pyfunction]
pub fn digest(content: &[u8]) -> String {
    uflip_store::digest(content)
}

/// Return length, digest and problem of each file; the problem is empty for a readable file.
#[pyfunction]
pub fn digest_files(py: Python<'_>, paths: Vec<String>) -> Vec<(u64, String, String)> {
    let digests = py.detach(|| uflip_store::digest_files(&paths));
    let parts = |digest: uflip_core::Result<(u64, String)>| match digest {
        Ok((bytes, digest)) => (bytes, digest, String::new()),
        Err(error) => (0, String::new(), error.parts().2.to_owned()),
    };
    digests.into_iter().map(parts).collect()
}
