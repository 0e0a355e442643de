//! A map from the columns of a text to the properties of an I/O, as `--columns` gives it.
//!
//! ```text
//! time_us=5,offset=3,size=4,op=2              columns by number, from 1, or by the name in the head
//! end_s=TIME(s),response_ms=LAT(ms),…         a time can be the beginning (time) or the end (end)
//! op=4,read=0,write=1,source=2+3              words for reads and writes; several columns name a disk
//! ```
//!
//! The named table formats in `tables.rs` are such maps, so that there is one reader for all tables.

use uflip_core::Mode;

use crate::fields::{DigitGroups, Separator, scaled, split, unit_name, unit_ns};
use crate::lines::{LineError, LineReader};
use crate::recorded::{FoundIo, RecordedTrace};

const KEYS: &str = "time_UNIT or end_UNIT, response_UNIT (ns, us, ms, s), offset, size (or \
                    offset_sectors, size_sectors, _kib, _mib), op, source, read, write, trim";
const SECTOR: u64 = 512;
/// The unit of Windows file times [ns].
const FILETIME_NS: u64 = 100;
/// The zero of file times, so that they fit nanoseconds: about the year 2000, in ticks since 1601.
const FILETIME_ZERO: u64 = 125_911_584_000_000_000;

/// A column by its number or its name in the head.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Number(usize),
    Text(String),
}

/// A map as it was given, before the head of the file is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct ColumnMap {
    time: Option<(Name, u64)>,
    /// Whether the time is the end of an I/O.
    ends: bool,
    response: Option<(Name, u64)>,
    offset: Option<(Name, u64)>,
    size: Option<(Name, u64)>,
    op: Option<Name>,
    source: Vec<Name>,
    /// Words that mean a read, a write and a trim, where they are not the usual ones.
    words: Vec<(String, Mode)>,
}

impl ColumnMap {
    /// Parse the text of `--columns`; the error is the invalid part.
    pub(crate) fn parse(text: &str) -> Result<ColumnMap, LineError> {
        let mut map = ColumnMap::default();
        for entry in text.split(',').map(str::trim) {
            let invalid = || LineError::of_file(format!("--columns {entry}"), KEYS);
            let (key, value) = entry.split_once('=').ok_or_else(invalid)?;
            map.set(key, value).ok_or_else(invalid)?;
        }
        let has_ios = map.offset.is_some() && map.size.is_some() && map.op.is_some();
        if has_ios || map.response.is_some() {
            return Ok(map);
        }
        Err(LineError::of_file(
            format!("--columns {text}"),
            "offset, size and op for a replay, or response_UNIT for an analysis",
        ))
    }

    fn set(&mut self, key: &str, value: &str) -> Option<()> {
        if value.is_empty() {
            return None;
        }
        let (property, unit) = key.split_once('_').unwrap_or((key, ""));
        let name = |value: &str| match value.parse::<usize>() {
            Ok(0) => None,
            Ok(number) => Some(Name::Number(number - 1)),
            Err(_) => Some(Name::Text(value.to_owned())),
        };
        let time_unit = || if unit == "100ns" { Some(FILETIME_NS) } else { unit_ns(unit) };
        let byte_unit = || match unit {
            "" | "bytes" => Some(1),
            "sectors" => Some(SECTOR),
            "kib" => Some(1 << 10),
            "mib" => Some(1 << 20),
            _ => None,
        };
        match property {
            "time" | "end" => {
                self.time = Some((name(value)?, time_unit()?));
                self.ends = property == "end";
            }
            "response" => self.response = Some((name(value)?, time_unit()?)),
            "offset" => self.offset = Some((name(value)?, byte_unit()?)),
            "size" => self.size = Some((name(value)?, byte_unit()?)),
            "op" => self.op = Some(name(value)?),
            "source" => self.source = value.split('+').map(name).collect::<Option<_>>()?,
            "read" | "write" | "trim" => {
                let mode = match property {
                    "read" => Mode::Read,
                    "write" => Mode::Write,
                    _ => Mode::Trim,
                };
                self.words.extend(value.split('|').map(|word| (word.to_lowercase(), mode)));
            }
            _ => return None,
        }
        Some(())
    }

    fn names(&self) -> impl Iterator<Item = &Name> {
        let timed = [&self.time, &self.response, &self.offset, &self.size];
        let timed = timed.into_iter().flatten().map(|(name, _)| name);
        timed.chain(&self.op).chain(&self.source)
    }

    /// Return whether a column is named, so that the first line must be a head.
    pub(crate) fn needs_head(&self) -> bool {
        self.names().any(|name| matches!(name, Name::Text(_)))
    }

    /// Resolve the names in the fields of the first line.
    pub(crate) fn resolve(
        &self,
        separator: Separator,
        head: &[&str],
    ) -> Result<ColumnReader, LineError> {
        let index = |name: &Name| match name {
            Name::Number(number) => Ok(*number),
            Name::Text(text) => head
                .iter()
                .position(|field| field == text)
                .or_else(|| head.iter().position(|field| field.eq_ignore_ascii_case(text)))
                .ok_or_else(|| LineError::of_file(format!("column {text}"), &head.join(", "))),
        };
        let unit_index = |column: &Option<(Name, u64)>| {
            column.as_ref().map(|(name, unit)| Ok((index(name)?, *unit))).transpose()
        };
        Ok(ColumnReader {
            separator,
            time: unit_index(&self.time)?,
            ends: self.ends,
            response: unit_index(&self.response)?,
            offset: unit_index(&self.offset)?,
            size: unit_index(&self.size)?,
            op: self.op.as_ref().map(index).transpose()?,
            source: self.source.iter().map(index).collect::<Result<_, _>>()?,
            words: self.words.clone(),
            head: head.iter().map(|name| (*name).to_owned()).collect(),
            blank_column: None,
            constant: None,
        })
    }
}

/// The columns of a file by their indices.
#[derive(Clone, Debug)]
pub(crate) struct ColumnReader {
    pub(crate) separator: Separator,
    time: Option<(usize, u64)>,
    ends: bool,
    response: Option<(usize, u64)>,
    offset: Option<(usize, u64)>,
    size: Option<(usize, u64)>,
    op: Option<usize>,
    source: Vec<usize>,
    words: Vec<(String, Mode)>,
    head: Vec<String>,
    /// The column that may contain blanks, and the number of all columns.
    pub(crate) blank_column: Option<(usize, usize)>,
    /// The column of which all values must be equal, such as the name of a run.
    pub(crate) constant: Option<usize>,
}

/// The content of one line.
pub(crate) enum Row {
    Io { found: FoundIo, has_response: bool },
    Skipped(&'static str),
}

/// The operation that a word means.
enum Operation {
    Io(Mode),
    Skipped(&'static str),
}

impl ColumnReader {
    /// Take another unit of the response times than that of the format [ns].
    pub(crate) fn set_response_unit(&mut self, unit: Option<u64>) {
        if let (Some(response), Some(unit)) = (&mut self.response, unit) {
            response.1 = unit;
        }
    }

    /// Return the field of a column; those behind the column that contains blanks are shifted.
    fn field<'f>(&self, fields: &[&'f str], index: usize) -> Option<&'f str> {
        let shift = match self.blank_column {
            Some((blank, columns)) if index > blank => fields.len().checked_sub(columns)?,
            _ => 0,
        };
        fields.get(index + shift).copied()
    }

    /// Parse the fields of a line, without its disk; `None` if it is odd.
    pub(crate) fn row(&self, fields: &[&str]) -> Option<Row> {
        let field = |index: usize| self.field(fields, index);
        let number = |column: Option<(usize, u64)>| match column {
            Some((index, unit)) => {
                let text = field(index)?;
                // A comma between commas separates thousands or decimals.
                let is_plain = self.separator != Separator::Comma || !text.contains(',');
                is_plain.then(|| scaled(text, unit)).flatten().map(Some)
            }
            None => Some(None),
        };
        // There are no parts of bytes, sectors or nanoseconds: such a column has another unit.
        let has_part = |column: Option<(usize, u64)>, largest: u64| {
            let text = column.filter(|(_, unit)| *unit <= largest).and_then(|(at, _)| field(at));
            let part = text.and_then(|text| text.split_once(['.', ',']));
            part.is_some_and(|(_, digits)| digits.bytes().any(|digit| digit != b'0'))
        };
        if has_part(self.offset, SECTOR) || has_part(self.size, SECTOR) || has_part(self.time, 1) {
            return None;
        }
        let mode = match self.op {
            None => Mode::Read,
            Some(index) => match self.operation(field(index)?)? {
                Operation::Io(mode) => mode,
                Operation::Skipped(name) => return Some(Row::Skipped(name)),
            },
        };
        let (offset, size) = (number(self.offset)?.unwrap_or(0), number(self.size)?);
        let at = match self.time {
            Some((index, FILETIME_NS)) => filetime(field(index)?)?,
            time => number(time)?.unwrap_or(0),
        };
        // An I/O whose end was not recorded has an empty response time.
        let has_response = self.response.is_some_and(|(index, _)| field(index) != Some(""));
        let response_ns = if has_response { number(self.response)? } else { None };
        let (source, ends, size) = (0, self.ends, size.unwrap_or(SECTOR));
        let found = FoundIo { source, mode, offset, size, at, ends, response_ns };
        Some(Row::Io { found, has_response })
    }

    fn operation(&self, word: &str) -> Option<Operation> {
        let lower = word.to_lowercase();
        if !self.words.is_empty() {
            let mode = self.words.iter().find(|(each, _)| *each == lower).map(|(_, mode)| *mode);
            return mode.map(Operation::Io);
        }
        match lower.as_str() {
            "r" | "read" | "rd" => Some(Operation::Io(Mode::Read)),
            "w" | "write" | "wr" => Some(Operation::Io(Mode::Write)),
            "d" | "t" | "trim" | "discard" | "unmap" => Some(Operation::Io(Mode::Trim)),
            "f" | "flush" | "sync" => Some(Operation::Skipped("flush")),
            // Of SYSTOR '17: no response was seen.
            "" => Some(Operation::Skipped("without a type")),
            _ => operation_of_rwbs(word),
        }
    }

    /// Read all lines; the first is a head if `has_head`.
    pub(crate) fn read(
        &self,
        lines: &mut LineReader<'_>,
        has_head: bool,
        allowed: &str,
    ) -> Result<RecordedTrace, LineError> {
        let mut recorded = RecordedTrace::with_offsets(self.time.is_some());
        recorded.has_offsets = self.offset.is_some() && self.size.is_some();
        if has_head {
            lines.next()?;
        }
        recorded.assumptions.columns = self.describe();
        let (mut disk, mut source) = (String::new(), None);
        let (mut constant, mut groups) = (None::<String>, DigitGroups::default());
        while let Some(line) = lines.next()? {
            let line = line.to_owned();
            let mut fields = Vec::with_capacity(self.head.len());
            split(&line, self.separator, &mut fields);
            if let Some(value) = self.constant.and_then(|index| fields.get(index)) {
                let first = constant.get_or_insert_with(|| (*value).to_owned());
                if first != value {
                    return Err(lines.error(&format!("{first} and {value}"), "one run"));
                }
            }
            if let Some(text) = self.response.and_then(|(index, _)| self.field(&fields, index)) {
                groups.add(text);
            }
            match self.row(&fields) {
                None => lines.skip_odd_line(),
                Some(Row::Skipped(name)) => recorded.skip_operation(name),
                Some(Row::Io { found, has_response }) => {
                    let names =
                        self.source.iter().map(|index| self.field(&fields, *index).unwrap_or(""));
                    let name = names.collect::<Vec<_>>().join(".");
                    if source.is_none() || name != disk {
                        source = Some(recorded.source(lines, &name)?);
                        disk = name;
                    }
                    let found = FoundIo { source: source.unwrap_or(0), ..found };
                    let found = recorded.without_zero(found, 1);
                    if self.response.is_some() && !has_response {
                        recorded.skip_operation("response time missing");
                    }
                    recorded.push(lines, found)?;
                }
            }
        }
        groups.check(self.separator)?;
        recorded.odd = lines.odd_lines(recorded.ios.len(), allowed)?;
        Ok(recorded)
    }

    fn describe(&self) -> String {
        let name = |index: usize| {
            self.head.get(index).cloned().unwrap_or_else(|| format!("column {}", index + 1))
        };
        let time = if self.ends { "end" } else { "time" };
        let units = [(time, self.time), ("response", self.response)];
        let mut parts: Vec<(usize, String)> = units
            .into_iter()
            .filter_map(|(property, column)| {
                let (index, unit) = column?;
                Some((index, format!("{property} {} [{}]", name(index), unit_name(unit))))
            })
            .collect();
        for (property, column) in [("offset", self.offset), ("size", self.size)] {
            if let Some((index, unit)) = column {
                let unit = if unit == 1 { "bytes".to_owned() } else { format!("{unit} bytes") };
                parts.push((index, format!("{property} {} [{unit}]", name(index))));
            }
        }
        parts.extend(self.op.map(|index| (index, format!("op {}", name(index)))));
        parts.extend(self.source.iter().map(|index| (*index, format!("disk {}", name(*index)))));
        parts.sort();
        let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
        format!("{}; separated by {}", parts.join(", "), self.separator.name())
    }
}

/// Parse a Windows file time [ns]; other clocks have small numbers.
fn filetime(text: &str) -> Option<u64> {
    let ticks = text.parse::<u64>().ok()?;
    ticks.checked_sub(FILETIME_ZERO).unwrap_or(ticks).checked_mul(FILETIME_NS)
}

impl RecordedTrace {
    /// Count a response time of 0 as one tick of the clock [ns].
    pub(crate) fn without_zero(&mut self, found: FoundIo, tick_ns: u64) -> FoundIo {
        if found.response_ns != Some(0) {
            return found;
        }
        self.zero_times += 1;
        FoundIo { response_ns: Some(tick_ns), ..found }
    }
}

/// Return the operation of blktrace's letters, such as "WS" or "FWFS": R, W or D after F, and flags.
fn operation_of_rwbs(letters: &str) -> Option<Operation> {
    if letters.is_empty() || !letters.bytes().all(|letter| b"RWDNFSAMBEU".contains(&letter)) {
        return None;
    }
    match letters.trim_start_matches('F').chars().next() {
        Some('R') => Some(Operation::Io(Mode::Read)),
        Some('W') => Some(Operation::Io(Mode::Write)),
        Some('D') => Some(Operation::Io(Mode::Trim)),
        _ if letters.starts_with('F') => Some(Operation::Skipped("flush")),
        _ => Some(Operation::Skipped("command")),
    }
}

/// Return the mode of blktrace's letters, or the name of an operation without data.
pub(crate) fn mode_of_rwbs(letters: &str) -> Result<Mode, &'static str> {
    match operation_of_rwbs(letters) {
        Some(Operation::Io(mode)) => Ok(mode),
        Some(Operation::Skipped(name)) => Err(name),
        None => Err("command"),
    }
}
