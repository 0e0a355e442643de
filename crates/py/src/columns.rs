//! Columns of numbers that Python reads in place: one by one through the buffer protocol, and a whole
//! trace through the Arrow C stream interface, which pandas, polars, DuckDB and pyarrow accept directly.
//!
//! Columns in memory are shared, and keep the trace alive. Those of a long trace are read from its file
//! batch by batch: a query over it needs the memory of one, a whole column is in a mapped file.

use std::borrow::Cow;
use std::ffi::{CStr, c_int, c_void};
use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::builder::BooleanBuilder;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Int8Type, UInt64Type};
use arrow_array::{
    ArrayRef, DictionaryArray, Int8Array, PrimitiveArray, RecordBatch, RecordBatchReader,
    StringArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3::{Bound, ffi};
use uflip_core::{Mode, SpooledVec};
use uflip_engine::PatternWalk;
use uflip_store::{ColumnData, HOST_GAP, StoredTrace, column_names, window};

/// A longer column of a trace in a file is gathered in pieces of this number of I/Os, so that it can
/// move to a mapped file ([`SpooledVec`]).
const PIECE_IOS: usize = 1 << 19;

/// A read-only column; keeps its data alive.
#[pyclass(frozen)]
pub struct Column {
    values: Values,
}

enum Values {
    /// A part of a column of the trace itself, not copied.
    Shared(Arc<StoredTrace>, String, usize, usize),
    U64(SpooledVec<u64>),
    U32(SpooledVec<u32>),
    U16(SpooledVec<u16>),
    U8(SpooledVec<u8>),
    Floats(SpooledVec<f64>),
}

impl From<ColumnData<'_>> for Values {
    fn from(data: ColumnData<'_>) -> Values {
        match data {
            ColumnData::U64(values) => Values::U64(values.into_owned().into()),
            ColumnData::U32(values) => Values::U32(values.into()),
            ColumnData::U16(values) => Values::U16(values.into()),
            ColumnData::U8(values) => Values::U8(values.into()),
        }
    }
}

impl Values {
    fn extend(&mut self, more: Values) {
        match (self, more) {
            (Values::U64(all), Values::U64(more)) => all.extend(more.iter().copied()),
            (Values::U32(all), Values::U32(more)) => all.extend(more.iter().copied()),
            (Values::U16(all), Values::U16(more)) => all.extend(more.iter().copied()),
            (Values::U8(all), Values::U8(more)) => all.extend(more.iter().copied()),
            _ => unreachable!("a column has one type"),
        }
    }
}

impl Column {
    pub(crate) fn new(
        trace: &Arc<StoredTrace>,
        name: &str,
        from: usize,
        to: usize,
    ) -> uflip_core::Result<Column> {
        if from > to || to > trace.len() || to - from <= PIECE_IOS || name == HOST_GAP {
            return Column::from_piece(trace, name, from, to);
        }
        let mut column = Column::from_piece(trace, name, from, from + PIECE_IOS)?;
        if matches!(column.values, Values::Shared(..)) {
            return Column::from_piece(trace, name, from, to);
        }
        for start in (from + PIECE_IOS..to).step_by(PIECE_IOS) {
            let more = Column::from_piece(trace, name, start, to.min(start + PIECE_IOS))?;
            column.values.extend(more.values);
        }
        Ok(column)
    }

    fn from_piece(
        trace: &Arc<StoredTrace>,
        name: &str,
        from: usize,
        to: usize,
    ) -> uflip_core::Result<Column> {
        let values = match uflip_store::column(trace, name, from, to)? {
            ColumnData::U64(Cow::Borrowed(_)) => {
                Values::Shared(Arc::clone(trace), name.to_owned(), from, to)
            }
            computed => computed.into(),
        };
        Ok(Column { values })
    }

    /// Create a column with its own copy of the values.
    pub(crate) fn owned(values: ColumnData<'_>) -> Column {
        Column { values: values.into() }
    }

    pub(crate) fn of_floats(values: SpooledVec<f64>) -> Column {
        Column { values: Values::Floats(values) }
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
            Values::U64(v) => (v.as_ptr().cast(), v.len(), 8, c"Q"),
            Values::U32(v) => (v.as_ptr().cast(), v.len(), 4, c"I"),
            Values::U16(v) => (v.as_ptr().cast(), v.len(), 2, c"H"),
            Values::U8(v) => (v.as_ptr().cast(), v.len(), 1, c"B"),
            Values::Floats(v) => (v.as_ptr().cast(), v.len(), 8, c"d"),
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

const STREAM_NAME: &CStr = c"arrow_array_stream";
/// The rows of a batch, as many as in a row group.
const BATCH_ROWS: usize = 1 << 16;

/// Return a capsule with every I/O of `trace`.
pub(crate) fn arrow_stream<'py>(
    py: Python<'py>,
    trace: &Arc<StoredTrace>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let batches = Batches::new(Arc::clone(trace));
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), STREAM_NAME)
}

struct Batches {
    trace: Arc<StoredTrace>,
    schema: SchemaRef,
    walk: PatternWalk,
    next: usize,
}

impl Batches {
    fn new(trace: Arc<StoredTrace>) -> Batches {
        let field = |name: &str, kind| Field::new(name, kind, false);
        let mut fields = vec![field("index", DataType::UInt64)];
        fields.extend(column_names(&trace).map(|name| field(name, kind(name))));
        let schema = Arc::new(Schema::new(fields));
        let walk = PatternWalk::new(trace.pattern());
        Batches { trace, schema, walk, next: 0 }
    }

    fn batch(&mut self, from: usize, to: usize) -> Result<RecordBatch, ArrowError> {
        let columns = window(&self.trace, &mut self.walk, from, to);
        let columns = columns.map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
        let index: ArrayRef = Arc::new(UInt64Array::from_iter_values(from as u64..to as u64));
        let names = column_names(&self.trace);
        let arrays =
            columns.into_iter().zip(names).map(|(data, name)| array(&self.trace, data, name));
        let arrays = std::iter::once(index).chain(arrays).collect();
        RecordBatch::try_new(Arc::clone(&self.schema), arrays)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (from, to) = (self.next, self.trace.len().min(self.next + BATCH_ROWS));
        self.next = to;
        (from < to).then(|| self.batch(from, to))
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

fn kind(name: &str) -> DataType {
    match name {
        "stream" => DataType::UInt16,
        "io_size_bytes" => DataType::UInt32,
        "mode" => DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)),
        "component" => DataType::UInt8,
        "ignored" => DataType::Boolean,
        _ => DataType::UInt64,
    }
}

fn array(trace: &Arc<StoredTrace>, data: ColumnData<'_>, name: &str) -> ArrayRef {
    match data {
        ColumnData::U64(Cow::Borrowed(values)) => {
            let owner = Arc::new(AssertUnwindSafe(Arc::clone(trace)));
            let start = NonNull::from(values).cast::<u8>();
            // SAFETY: the values belong to the trace, which does not change and lives as long as
            // `owner`.
            let buffer =
                unsafe { Buffer::from_custom_allocation(start, size_of_val(values), owner) };
            let lent = ScalarBuffer::new(buffer, 0, values.len());
            Arc::new(PrimitiveArray::<UInt64Type>::new(lent, None))
        }
        ColumnData::U64(Cow::Owned(values)) => Arc::new(UInt64Array::from(values)),
        ColumnData::U32(values) => Arc::new(UInt32Array::from(values)),
        ColumnData::U16(values) => Arc::new(UInt16Array::from(values)),
        ColumnData::U8(values) if name == "mode" => {
            let keys = Int8Array::from_iter_values(values.into_iter().map(|mode| mode as i8));
            let words = Arc::new(StringArray::from(Mode::NAMES.to_vec()));
            Arc::new(DictionaryArray::<Int8Type>::new(keys, words))
        }
        ColumnData::U8(values) if name == "ignored" => {
            let mut flags = BooleanBuilder::with_capacity(values.len());
            values.into_iter().for_each(|flag| flags.append_value(flag == 1));
            Arc::new(flags.finish())
        }
        ColumnData::U8(values) => Arc::new(UInt8Array::from(values)),
    }
}
