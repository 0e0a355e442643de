//! Outputs of other programs that contain no I/Os, and files in other packings: each is refused by
//! name, with the option of the program that writes a file which uflip reads.
//!
//! **Source**: the outputs of the named programs.

use crate::sample::Sample;

const SHOW: &str = "print it: uflip show FILE";

/// The name of an output, the texts that all occur in its beginning, and what to do.
const OUTPUTS: &[(&str, &[&str], &str)] = &[
    (
        "the report of fio for people",
        &["groupid=", "err="],
        "write JSON (fio --output-format=json --output=FILE JOB) and print it: uflip show FILE",
    ),
    (
        "the report of fio for people",
        &["(g=", "rw=", "ioengine="],
        "write JSON (fio --output-format=json --output=FILE JOB) and print it: uflip show FILE",
    ),
    (
        "error messages of fio",
        &["fio: pid=", "err=", "func="],
        "the job ended with an error: mend it and run it again",
    ),
    (
        "error messages of fio",
        &["verify failed at file", "offset", "length"],
        "the drive returned wrong data: see the messages",
    ),
    (
        "JSON results of fio",
        &["\"fio version\""],
        "print them: uflip show FILE; for single I/Os run fio with write_lat_log",
    ),
    ("XML results of diskspd", &["<Results>", "<TimeSpan>"], SHOW),
    (
        "the report of diskspd for people",
        &["Command Line:", "diskspd"],
        "write XML (diskspd -Rxml) and print it: uflip show FILE",
    ),
    (
        "the report of diskspd for people",
        &["Input parameters:", "timespan:"],
        "write XML (diskspd -Rxml) and print it: uflip show FILE",
    ),
    ("JSON of iostat", &["\"sysstat\""], SHOW),
    (
        "the report of iostat for people",
        &["Device", "%util"],
        "write JSON (iostat -x -o JSON 1) and print it: uflip show FILE",
    ),
    (
        "a SMART log of an ATA drive",
        &["\"ata_smart_attributes\""],
        "only SMART logs of NVMe drives are read; the counters of ATA drives differ by vendor",
    ),
    (
        "a SMART log for people",
        &["data_units_written"],
        "write JSON (nvme smart-log DEVICE -o json) and print two of them: uflip show BEFORE AFTER",
    ),
    (
        "a SMART log for people",
        &["smartctl", "START OF"],
        "write JSON (smartctl -j -a DEVICE) and print two of them: uflip show BEFORE AFTER",
    ),
    ("the report of dd", &["records in", "records out"], "it has one rate, and no single I/Os"),
    ("the report of hdparm", &["Timing ", "MB/sec"], "it has rates, and no single I/Os"),
    (
        "the report of ioping",
        &["request=", "time="],
        "cut out its times: grep -o 'time=[0-9.]* [a-z]*' FILE | cut -d= -f2 > times.csv",
    ),
    ("the report of iozone", &["Iozone"], "it has rates, and no single I/Os"),
    ("the report of sysbench", &["sysbench", "atency"], "it has rates and percentiles, no I/Os"),
    ("a summary of vdbench", &["Vdbench", "interval"], "it has rates and means, no single I/Os"),
    ("a flat file of vdbench", &["Xfersize", "Reqrate"], "it has rates and means, no single I/Os"),
    ("a histogram of biolatency", &["distribution", ": count"], "record single I/Os with biosnoop"),
    ("a histogram of bpftrace", &["|@", "["], "record single I/Os with biosnoop"),
];

/// The first bytes of a packed file, and the program that unpacks it.
const PACKED: &[(&[u8], &str)] = &[
    (b"BZh", "bzip2 -dc"),
    (b"\xfd7zXZ", "xz -dc"),
    (b"PK\x03\x04", "unzip -p"),
    (b"\x04\x22\x4d\x18", "lz4 -dc"),
    (b"7z\xbc\xaf", "7z x -so"),
];
/// The place of this word in an archive.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// Return the name of an output that contains no I/Os, and what to do with it.
pub(crate) fn known_output(sample: &Sample) -> Option<(&'static str, &'static str)> {
    let contains = |text: &str| sample.lines.iter().any(|line| line.contains(text));
    let found = OUTPUTS.iter().find(|(_, marks, _)| marks.iter().all(|mark| contains(mark)));
    if let Some((name, _, action)) = found {
        return Some((name, action));
    }
    let first = sample.lines.first()?;
    let of_another = "see docs/reference/formats.md for the programs whose results are read";
    match first.as_bytes()[0] {
        b'{' | b'[' => Some(("JSON of another program", of_another)),
        b'<' => Some(("XML or HTML of another program", of_another)),
        _ => None,
    }
}

/// Return what a file without text is, and what to do with it.
pub(crate) fn describe_binary(bytes: &[u8]) -> (&'static str, String) {
    let is_tar = bytes.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1));
    let packed = PACKED.iter().find(|(magic, _)| bytes.starts_with(magic));
    match packed {
        _ if !bytes.contains(&0) && bytes.is_ascii() => {
            ("no data", "name a file with I/Os".to_owned())
        }
        Some((_, program)) => ("a packed file", format!("unpack it first: {program} FILE > TRACE")),
        None if is_tar => ("an archive", "unpack it first: tar -xf FILE".to_owned()),
        None if is_utf16(bytes) => (
            "text in UTF-16 without a byte order mark",
            "convert it first: iconv -f UTF-16LE -t UTF-8 FILE > TRACE".to_owned(),
        ),
        None => ("bytes that are not text", String::new()),
    }
}

/// Return whether bytes begin with letters of two bytes each.
fn is_utf16(bytes: &[u8]) -> bool {
    let is_letter = |unit: u16| (b'\t'.into()..0x7f).contains(&unit);
    let pairs = || bytes.chunks_exact(2).take(16).map(|pair| [pair[0], pair[1]]);
    pairs().count() == 16
        && (pairs().map(u16::from_le_bytes).all(is_letter)
            || pairs().map(u16::from_be_bytes).all(is_letter))
}
