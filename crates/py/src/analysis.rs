//! The analysis of a series of response times in a Python array of float64 or uint64.

use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use uflip_core::{Error, SpooledVec};
use uflip_method::{AnalysisOptions, StopRule};

use crate::conversion::{json, raise};

/// A contiguous array of numbers.
#[derive(FromPyObject)]
pub enum Numbers {
    Floats(PyBuffer<f64>),
    /// A column of a trace.
    Whole(PyBuffer<u64>),
}

/// Copy numbers, so that the interpreter lock can be released.
fn copied(py: Python<'_>, numbers: &Numbers) -> PyResult<SpooledVec<f64>> {
    let dimensions = match numbers {
        Numbers::Floats(array) => array.dimensions(),
        Numbers::Whole(array) => array.dimensions(),
    };
    if dimensions != 1 {
        let error = Error::usage("Response times are a one-dimensional array")
            .got(format!("{dimensions} dimensions"))
            .action("give one series at a time");
        return Err(raise(error));
    }
    Ok(match numbers {
        Numbers::Floats(array) => spooled(py, array)?,
        Numbers::Whole(array) => spooled(py, array)?.iter().map(|value| *value as f64).collect(),
    })
}

fn spooled<T: Element + Default>(py: Python<'_>, array: &PyBuffer<T>) -> PyResult<SpooledVec<T>> {
    let mut values: SpooledVec<T> = (0..array.item_count()).map(|_| T::default()).collect();
    array.copy_to_slice(py, &mut values)?;
    Ok(values)
}

#[pyfunction]
#[pyo3(signature = (times_ns, *, confidence, half_width))]
pub fn analyse(
    py: Python<'_>,
    times_ns: Numbers,
    confidence: Option<f64>,
    half_width: Option<f64>,
) -> PyResult<String> {
    let times = copied(py, &times_ns)?;
    let options = options(confidence, half_width);
    py.detach(|| uflip_method::analyse(&times, options)).map(json).map_err(raise)
}

#[pyfunction]
#[pyo3(signature = (times_ns, *, confidence, half_width, min_ios))]
pub fn run_length(
    py: Python<'_>,
    times_ns: Numbers,
    confidence: Option<f64>,
    half_width: Option<f64>,
    min_ios: usize,
) -> PyResult<String> {
    let times = copied(py, &times_ns)?;
    let options = options(confidence, half_width);
    options.check().and_then(|()| uflip_method::check(&times)).map_err(raise)?;
    let verdict = py.detach(|| {
        let mut rule = StopRule::new(options, 1, min_ios);
        let mut from = 0;
        loop {
            let to = rule.next_evaluation().min(times.len());
            times[from..to].iter().for_each(|time| rule.push(0, *time));
            from = to;
            let verdict = rule.evaluate();
            if verdict.stop || to == times.len() {
                return verdict;
            }
        }
    });
    Ok(json(verdict))
}

fn options(confidence: Option<f64>, half_width: Option<f64>) -> AnalysisOptions {
    let default = AnalysisOptions::default();
    AnalysisOptions {
        confidence: confidence.unwrap_or(default.confidence),
        half_width: half_width.unwrap_or(default.half_width),
    }
}

#[pyfunction]
pub fn autocorrelation(py: Python<'_>, series: Numbers, max_lag: usize) -> PyResult<Vec<f64>> {
    let series = copied(py, &series)?;
    Ok(py.detach(|| uflip_method::autocorrelation(&series, max_lag)))
}

#[pyfunction]
pub fn pelt(py: Python<'_>, means: Numbers, penalty: f64) -> PyResult<Vec<usize>> {
    let means = copied(py, &means)?;
    Ok(py.detach(|| uflip_method::pelt(&means, penalty)))
}

#[pyfunction]
pub fn half_width(means: Vec<f64>, confidence: f64) -> f64 {
    uflip_method::half_width(&means, confidence)
}

#[pyfunction]
pub fn student_quantile(p: f64, freedom: f64) -> f64 {
    uflip_method::student_quantile(p, freedom)
}
