//! A trace through the Arrow C stream interface, which pandas, polars, DuckDB and pyarrow accept
//! directly.
//!
//! Columns in memory are shared, and keep the trace alive; those of a long trace are read from its
//! file batch by batch, so that a query over it needs the memory of one.

use std::borrow::Cow;
use std::ffi::CStr;
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
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use uflip_engine::PatternWalk;
use uflip_store::{ColumnData, MODES, StoredTrace, column_names, window};

const NAME: &CStr = c"arrow_array_stream";
/// The rows of a batch, as many as in a row group.
const ROWS: usize = 1 << 16;

/// Return a capsule with every I/O of `trace`.
pub(crate) fn stream<'py>(
    py: Python<'py>,
    trace: &Arc<StoredTrace>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let batches = Batches::new(Arc::clone(trace));
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), NAME)
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
        let (from, to) = (self.next, self.trace.len().min(self.next + ROWS));
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
            let words = Arc::new(StringArray::from(MODES.to_vec()));
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
