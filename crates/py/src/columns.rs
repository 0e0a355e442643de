//! A column of numbers that Python reads in place through the buffer protocol.

use std::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::{Bound, ffi};
use uflip_store::{ColumnData, StoredTrace};

/// A read-only column; keeps its data alive.
#[pyclass(frozen)]
pub struct Column {
    values: Values,
}

enum Values {
    /// A part of a column of the trace itself, not copied.
    Shared(Arc<StoredTrace>, String, usize, usize),
    /// Values computed for this column.
    Owned(ColumnData<'static>),
}

impl Column {
    pub(crate) fn new(
        trace: &Arc<StoredTrace>,
        name: &str,
        from: usize,
        to: usize,
    ) -> uflip_core::Result<Column> {
        let values = match uflip_store::column(trace, name, from, to)? {
            ColumnData::U64(std::borrow::Cow::Borrowed(_)) => {
                Values::Shared(Arc::clone(trace), name.to_owned(), from, to)
            }
            ColumnData::U64(std::borrow::Cow::Owned(values)) => {
                Values::Owned(ColumnData::U64(values.into()))
            }
            ColumnData::U32(values) => Values::Owned(ColumnData::U32(values)),
            ColumnData::U16(values) => Values::Owned(ColumnData::U16(values)),
            ColumnData::U8(values) => Values::Owned(ColumnData::U8(values)),
        };
        Ok(Column { values })
    }

    /// Create a column with its own copy of the values.
    pub(crate) fn owned(values: ColumnData<'_>) -> Column {
        Column { values: Values::Owned(values.into_owned()) }
    }

    /// Return the address, number, size [bytes] and format of the values.
    fn raw(&self) -> (*const c_void, usize, usize, &'static CStr) {
        match &self.values {
            Values::Shared(trace, name, from, to) => {
                match uflip_store::column(trace, name, *from, *to) {
                    Ok(ColumnData::U64(values)) => (values.as_ptr().cast(), values.len(), 8, c"Q"),
                    _ => unreachable!("only borrowed 64-bit columns are shared"),
                }
            }
            Values::Owned(ColumnData::U64(v)) => (v.as_ptr().cast(), v.len(), 8, c"Q"),
            Values::Owned(ColumnData::U32(v)) => (v.as_ptr().cast(), v.len(), 4, c"I"),
            Values::Owned(ColumnData::U16(v)) => (v.as_ptr().cast(), v.len(), 2, c"H"),
            Values::Owned(ColumnData::U8(v)) => (v.as_ptr().cast(), v.len(), 1, c"B"),
        }
    }
}

#[pymethods]
impl Column {
    fn __len__(&self) -> usize {
        self.raw().1
    }

    // SAFETY: Python calls this with a view to fill; its contents stay valid as long as its
    // reference to `slf`, because the column is frozen.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("no view to fill"));
        }
        if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err("a column is read-only"));
        }
        let (start, length, item, format) = slf.get().raw();
        // Shape and stride must live as long as the view; `__releasebuffer__` frees them.
        let extents = Box::into_raw(Box::new([length as isize, item as isize]));
        let wants = |flag: c_int| flags & flag == flag;
        // SAFETY: `view` was checked for null and is ours to fill; `extents` was just created.
        unsafe {
            (*view).buf = start.cast_mut();
            (*view).len = (length * item) as isize;
            (*view).readonly = 1;
            (*view).itemsize = item as isize;
            (*view).ndim = 1;
            (*view).format = std::ptr::null_mut();
            if wants(ffi::PyBUF_FORMAT) {
                (*view).format = format.as_ptr().cast_mut();
            }
            (*view).shape = std::ptr::null_mut();
            if wants(ffi::PyBUF_ND) {
                (*view).shape = extents.cast();
            }
            (*view).strides = std::ptr::null_mut();
            if wants(ffi::PyBUF_STRIDES) {
                (*view).strides = extents.cast::<isize>().add(1);
            }
            (*view).suboffsets = std::ptr::null_mut();
            (*view).internal = extents.cast();
            (*view).obj = slf.into_any().into_ptr();
        }
        Ok(())
    }

    // SAFETY: called once for every view that `__getbuffer__` filled.
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: `internal` is the box that `__getbuffer__` created for this view.
        drop(unsafe { Box::from_raw((*view).internal.cast::<[isize; 2]>()) });
    }
}
