//! Named formats of traces that are tables of text, each as a map of columns.
//!
//! **Source**: the README of each set of traces: SNIA IOTTA 387 (MSR Cambridge), 4964 (SYSTOR '17),
//! 391 (FIU), 27917 (Tencent CBS); github.com/alibaba/block-traces; the SPC's *Trace File Format
//! Specification* 1.0.1; traces/README.md of MQSim; `disksim_iotrace.c` of DiskSim 4.0; `biosnoop` of
//! bcc and of libbpf-tools.
//! **Faithful**: offsets, sizes, modes, times, disks, and response times where they are recorded.
//! **Simplified**: disks are placed side by side. Process names and sums of contents are ignored.
//! **Ambiguous**: the ASCII traces of MQSim and DiskSim have the same columns, in ns and in ms: if no
//! time of the beginning has decimals, they are MQSim's. SPC counts an LBA in blocks of the unit, which are 512 bytes in the traces of
//! UMass.

use crate::columns::{ColumnMap, ColumnReader, Row};
use crate::fields::{Separator, split};
use crate::lines::{LineError, LineReader};
use crate::recorded::RecordedTrace;
use crate::sample::Sample;

pub(crate) struct TableFormat {
    pub(crate) name: &'static str,
    separator: Separator,
    /// Names that the head must have; the file has no head if it is empty.
    head: &'static [&'static str],
    /// A head that only some copies have.
    optional_head: &'static str,
    /// The least and the largest number of fields.
    fields: (usize, usize),
    /// The column that may contain blanks.
    blank_column: Option<usize>,
    columns: &'static str,
    /// Whether some time must have decimals, or none may.
    decimal_times: Option<bool>,
    /// A further property of the fields of a line.
    check: fn(&[&str]) -> bool,
    pub(crate) example: &'static str,
}

const PLAIN: TableFormat = TableFormat {
    name: "",
    separator: Separator::Comma,
    head: &[],
    optional_head: "",
    fields: (0, usize::MAX),
    blank_column: None,
    columns: "",
    decimal_times: None,
    check: |_| true,
    example: "",
};

pub(crate) const TABLES: &[TableFormat] = &[
    TableFormat {
        name: "msr",
        optional_head: "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
        fields: (7, 7),
        columns: "time_100ns=1,source=2+3,op=4,offset=5,size=6,response_100ns=7",
        check: |fields| fields[3].len() > 1,
        example: "128166372003061629,usr,0,Read,7014609920,24576,41286",
        ..PLAIN
    },
    TableFormat {
        name: "spc",
        fields: (5, 16),
        columns: "source=1,offset_sectors=2,size=3,op=4,time_s=5",
        check: |fields| fields[3].len() == 1 && is_whole(fields[0]),
        example: "0,20941264,8192,W,0.551706",
        ..PLAIN
    },
    TableFormat {
        name: "alibaba",
        fields: (5, 5),
        columns: "source=1,op=2,offset=3,size=4,time_us=5",
        check: |fields| fields[1].len() == 1 && is_whole(fields[4]),
        example: "419,W,8792731648,16384,1577808144360767",
        ..PLAIN
    },
    TableFormat {
        name: "tencent",
        fields: (5, 5),
        columns: "time_s=1,offset_sectors=2,size_sectors=3,op=4,read=0,write=1,source=5",
        // Seconds since 1970, as no other table has them in the first field.
        check: |fields| fields[0].len() == 10 && fields.iter().all(|field| is_whole(field)),
        example: "1538323200,12910952,128,0,1063",
        ..PLAIN
    },
    TableFormat {
        name: "systor17",
        head: &["Timestamp", "Response", "IOType", "LUN", "Offset", "Size"],
        columns: "time_s=Timestamp,response_s=Response,op=IOType,source=LUN,offset=Offset,\
                  size=Size",
        example: "Timestamp,Response,IOType,LUN,Offset,Size",
        ..PLAIN
    },
    TableFormat {
        name: "fiu",
        separator: Separator::Blanks,
        fields: (9, 12),
        blank_column: Some(2),
        columns: "time_ns=1,offset_sectors=4,size_sectors=5,op=6,source=7+8",
        check: |fields| is_whole(fields[1]) && is_md5(fields[fields.len() - 1]),
        example: "89967195792462 20782 gzip 283193184 8 R 6 0 56f11b711d91a065a2b6458eca924523",
        ..PLAIN
    },
    TableFormat {
        name: "mqsim",
        separator: Separator::Blanks,
        fields: (5, 5),
        columns: "time_ns=1,source=2,offset_sectors=3,size_sectors=4,op=5,read=1,write=0",
        decimal_times: Some(false),
        check: |fields| is_whole(fields[0]),
        example: "4851300 1 524288 16 0",
        ..PLAIN
    },
    TableFormat {
        name: "disksim",
        separator: Separator::Blanks,
        fields: (5, 5),
        // The flags are hexadecimal; bit 0 means a read.
        columns: "time_ms=1,source=2,offset_sectors=3,size_sectors=4,op=5,\
                  read=1|3|5|7|9|b|d|f,write=0|2|4|6|8|a|c|e",
        decimal_times: Some(true),
        example: "4851.300000 1 524288 16 0",
        ..PLAIN
    },
    TableFormat {
        name: "biosnoop",
        separator: Separator::Blanks,
        head: &["TIME(s)", "COMM", "DISK", "T", "SECTOR", "BYTES", "LAT(ms)"],
        blank_column: Some(1),
        columns: "end_s=TIME(s),source=DISK,op=T,offset_sectors=SECTOR,size=BYTES,\
                  response_ms=LAT(ms)",
        example: "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)",
        ..PLAIN
    },
    TableFormat {
        name: "uflip-table",
        head: &["submit_ns", "offset_bytes", "io_size_bytes", "mode"],
        columns: "time_ns=submit_ns,offset=offset_bytes,size=io_size_bytes,op=mode",
        example: "submit_ns,offset_bytes,io_size_bytes,mode",
        ..PLAIN
    },
];

/// What the names of a column contain, by its key in a map of columns.
const COLUMN_NAMES: [(&str, &[&str]); 6] = [
    ("time", &["time", "arrival"]),
    ("source", &["dev", "disk", "vol", "host", "lun", "asu", "id", "major", "minor"]),
    ("op", &["op", "type", "rw", "mode", "flag", "command"]),
    ("offset", &["offset", "lba", "lbn", "sector", "address", "block"]),
    ("size", &["size", "len", "bytes", "count", "sectors"]),
    ("response", &["resp", "lat"]),
];

fn is_whole(field: &str) -> bool {
    !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_md5(field: &str) -> bool {
    field.len() == 32 && field.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl TableFormat {
    /// Return the columns of a file that begins with this line; `None` without the head.
    fn reader(&self, first: &str) -> Option<ColumnReader> {
        let mut head = Vec::new();
        if !self.head.is_empty() {
            split(first, self.separator, &mut head);
            if !self.head.iter().all(|name| head.contains(name)) {
                return None;
            }
        } else if first == self.optional_head {
            split(first, self.separator, &mut head);
        }
        let mut map = ColumnMap::parse(self.columns).ok()?;
        if head.contains(&"response_time_ns") {
            map =
                ColumnMap::parse(&format!("{},response_ns=response_time_ns", self.columns)).ok()?;
        }
        let mut reader = map.resolve(self.separator, &head).ok()?;
        let columns = if head.is_empty() { self.fields.0 } else { head.len() };
        reader.constant = head.iter().position(|name| *name == "run");
        reader.blank_column = self.blank_column.map(|column| (column, columns));
        Some(reader)
    }

    fn has_head(&self, first: &str) -> bool {
        !self.head.is_empty() || first == self.optional_head
    }

    /// Return whether the first line names the columns, and one otherwise than the format has it.
    fn is_contradicted_by(&self, first: &str) -> bool {
        let mut head = Vec::new();
        split(first, self.separator, &mut head);
        let is_name = |field: &&str| field.starts_with(char::is_alphabetic);
        let (least, most) = self.fields;
        if !self.head.is_empty()
            || !(least..=most).contains(&head.len())
            || !head.iter().all(is_name)
        {
            return false;
        }
        let is_another = |names: &[&str], column: usize| {
            let name = head.get(column - 1).map_or_else(String::new, |name| name.to_lowercase());
            !names.iter().any(|part| name.contains(part))
        };
        self.columns.split(',').filter_map(|pair| pair.split_once('=')).any(|(key, columns)| {
            let role = key.split('_').next().unwrap_or(key);
            COLUMN_NAMES.iter().filter(|(known, _)| *known == role).any(|(_, names)| {
                let mut columns = columns.split('+').filter_map(|column| column.parse().ok());
                columns.any(|column| is_another(names, column))
            })
        })
    }

    /// Return the number of lines of the sample that belong to this format.
    pub(crate) fn matches(&self, sample: &Sample) -> usize {
        let Some(first) = sample.lines.first() else { return 0 };
        let Some(reader) = self.reader(first) else { return 0 };
        if self.is_contradicted_by(first) {
            return 0;
        }
        let has_decimals = |line: &String| {
            line.split_ascii_whitespace().next().is_some_and(|time| time.contains('.'))
        };
        if self.decimal_times.is_some_and(|is| is != sample.lines.iter().any(has_decimals)) {
            return 0;
        }
        let from = usize::from(self.has_head(first));
        let mut fields = Vec::new();
        let mut fits = from;
        for line in &sample.lines[from..] {
            split(line, self.separator, &mut fields);
            let is_row = (self.fields.0..=self.fields.1).contains(&fields.len())
                && (!self.head.is_empty() || (self.check)(&fields))
                && matches!(reader.row(&fields), Some(Row::Io { .. }));
            fits += usize::from(is_row);
        }
        fits
    }

    pub(crate) fn read(
        &self,
        sample: &Sample,
        lines: &mut LineReader<'_>,
        unit: Option<u64>,
    ) -> Result<RecordedTrace, LineError> {
        let first = sample.lines.first().map_or("", String::as_str);
        let mut reader =
            self.reader(first).ok_or_else(|| LineError::of_file(first, &self.head.join(", ")))?;
        reader.set_response_unit(unit);
        let mut recorded = reader.read(lines, self.has_head(first), self.example)?;
        if self.name == "mqsim" {
            let note = "times are ns, as MQSim has them; for those of DiskSim in ms give \
                        --format disksim";
            recorded.assumptions.notes.push(note.to_owned());
        }
        if self.name == "tencent" {
            let note = "times are whole seconds: the I/Os of a second arrive at once";
            recorded.assumptions.notes.push(note.to_owned());
        }
        Ok(recorded)
    }
}
