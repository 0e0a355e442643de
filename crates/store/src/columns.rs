//! The columns of a trace by name: those that are stored and those that follow from the pattern.

use std::borrow::Cow;

use uflip_core::{Error, Mode, Result};
use uflip_engine::Trace;

/// The values of a column, borrowed where the trace holds them as they are.
#[derive(Clone, PartialEq, Debug)]
pub enum ColumnData<'a> {
    /// Small flags.
    U8(Vec<u8>),
    /// Process numbers.
    U16(Vec<u16>),
    /// Sizes.
    U32(Vec<u32>),
    /// Times and offsets.
    U64(Cow<'a, [u64]>),
}

impl ColumnData<'_> {
    /// The same values, borrowed from nobody.
    #[must_use]
    pub fn into_owned(self) -> ColumnData<'static> {
        match self {
            ColumnData::U8(values) => ColumnData::U8(values),
            ColumnData::U16(values) => ColumnData::U16(values),
            ColumnData::U32(values) => ColumnData::U32(values),
            ColumnData::U64(values) => ColumnData::U64(Cow::Owned(values.into_owned())),
        }
    }
}

const FIXED: [&str; 8] = [
    "stream",
    "submit_ns",
    "response_time_ns",
    "offset_bytes",
    "io_size_bytes",
    "mode",
    "component",
    "ignored",
];

/// The names that [`column`] knows for this trace.
pub fn column_names(trace: &Trace) -> impl Iterator<Item = &str> {
    FIXED.into_iter().chain(trace.causes.iter().map(String::as_str))
}

/// A column of `trace`, as long as the trace.
///
/// # Errors
/// An unknown name; the error lists the known ones.
pub fn column<'a>(trace: &'a Trace, name: &str) -> Result<ColumnData<'a>> {
    Ok(match name {
        "stream" => ColumnData::U16(trace.stream_of_each().collect()),
        "submit_ns" => ColumnData::U64(Cow::Borrowed(&trace.submit_ns)),
        "response_time_ns" => ColumnData::U64(Cow::Borrowed(&trace.response_time_ns)),
        "offset_bytes" => ColumnData::U64(trace.ios().map(|io| io.offset.0).collect()),
        "io_size_bytes" => ColumnData::U32(trace.ios().map(|io| io.size.0 as u32).collect()),
        "mode" => ColumnData::U8(trace.ios().map(|io| u8::from(io.mode == Mode::Write)).collect()),
        "component" => ColumnData::U8(trace.component_of_each().collect()),
        "ignored" => ColumnData::U8(trace.ignored_of_each().map(u8::from).collect()),
        _ => {
            let cause = trace.causes.iter().position(|cause| cause == name);
            let Some(cause) = cause else {
                let known: Vec<&str> = column_names(trace).collect();
                return Err(Error::unknown("column of a trace", name, &known));
            };
            ColumnData::U64(Cow::Borrowed(&trace.cause_ns[cause]))
        }
    })
}
