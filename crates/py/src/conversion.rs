//! Errors and documents for Python: an exception with six arguments, and JSON.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::{PyErr, create_exception};
use serde::Serialize;
use uflip_core::Error;

create_exception!(
    _native,
    NativeError,
    PyException,
    "args: (kind, what, where, got, allowed, action)"
);

/// Return the error as an exception, for `map_err`.
pub(crate) fn raise(error: Error) -> PyErr {
    let (problem, location, got, allowed, action) = error.parts();
    let texts = [error.kind().name(), problem, location, got, allowed, action];
    let [kind, problem, location, got, allowed, action] = texts.map(str::to_owned);
    NativeError::new_err((kind, problem, location, got, allowed, action))
}

/// Return the error as the exception class of its kind, for functions that users call directly.
pub(crate) fn raise_to_user(error: Error) -> PyErr {
    let native = raise(error);
    Python::attach(|py| {
        let errors = py.import("uflip.errors");
        let exception = errors.and_then(|all| all.call_method1("from_native", (native.value(py),)));
        exception.map_or_else(|_| native.clone_ref(py), PyErr::from_value)
    })
}

/// Return `document` as JSON.
pub(crate) fn json(document: impl Serialize) -> String {
    serde_json::to_string(&document).expect("serializable")
}
