//! Traces written by other programs: data/fio-3.33* by fio, data/blkparse-1.2.txt by blkparse (of
//! events whose numbers are in the test), data/msr.csv in the format of the MSR Cambridge traces.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use uflip_core::{Bytes, ErrorKind, Io, Mode};
use uflip_foreign::{
    Fit, Placement, ReadOptions, RecordedTrace, fit, read, read_all, read_from, read_rates_from,
    read_series_from,
};

fn data(name: &str) -> RecordedTrace {
    read(&path(name), &ReadOptions::default()).unwrap()
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn parse_as(text: &str, name: &str, options: &ReadOptions) -> Result<RecordedTrace, String> {
    let read = read_from(&mut Cursor::new(text.as_bytes()), name, options);
    read.map_err(|error| error.to_string())
}

fn with_unit(unit: &str) -> ReadOptions {
    ReadOptions { unit: Some(unit.to_owned()), ..ReadOptions::default() }
}

fn with_columns(columns: &str) -> ReadOptions {
    ReadOptions { columns: Some(columns.to_owned()), ..ReadOptions::default() }
}

fn in_format(format: &str) -> ReadOptions {
    ReadOptions { format: Some(format.to_owned()), ..ReadOptions::default() }
}

fn parse(text: &str) -> Result<RecordedTrace, String> {
    let read = read_from(&mut Cursor::new(text.as_bytes()), "trace", &ReadOptions::default());
    read.map_err(|error| {
        assert_eq!(error.kind(), ErrorKind::Results);
        error.to_string()
    })
}

/// Return (offset, size, whether it writes, time) of every I/O.
fn rows(recorded: &RecordedTrace) -> Vec<(u64, u64, bool, u64)> {
    let row = |io: &uflip_foreign::RecordedIo| (io.offset, io.size, io.mode == Mode::Write, io.at);
    recorded.ios.iter().map(row).collect()
}

#[test]
fn fio_iolog_matches_fio_s_own_log() {
    let recorded = data("fio-3.33.iolog");
    assert_eq!((recorded.format, recorded.has_times), ("fio", true));
    // Parse the lines of the file simply: `TIME /tmp/target read|write OFFSET LENGTH`.
    let text = include_str!("data/fio-3.33.iolog");
    let lines = text.lines().filter(|line| line.contains(" read ") || line.contains(" write "));
    let mut expected: Vec<(u64, u64, bool, u64)> = lines
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words[at].parse::<u64>().unwrap();
            (number(3), number(4), words[2] == "write", number(0) * 1000)
        })
        .collect();
    let first = expected[0].3;
    expected.iter_mut().for_each(|row| row.3 -= first);
    assert_eq!(expected.len(), 60);
    assert_eq!(rows(&recorded), expected);
}

/// Waits last until the given ms after the start, contrary to fio's documentation: `fio
/// --read_iolog=fio-waits.iolog --ioengine=psync --write_lat_log=fio-3.33-waits --log_offset=1`
/// wrote the times of its I/Os.
#[test]
fn iolog_version_2_waits_match_fio() {
    let recorded = data("fio-waits.iolog");
    let at = |rows: Vec<(u64, u64)>| -> Vec<(u64, u64)> {
        rows.iter().map(|(offset, at)| (*offset, at - rows[0].1)).collect()
    };
    let ours = at(recorded.ios.iter().map(|io| (io.offset, io.at)).collect());
    let logged = include_str!("data/fio-3.33-waits_lat.1.log").lines().map(|line| {
        let fields: Vec<u64> = line.split(", ").map(|field| field.parse().unwrap()).collect();
        (fields[4], fields[0] * 1_000_000)
    });
    let fio = at(logged.collect());
    assert_eq!(ours.len(), fio.len());
    for (ours, fio) in ours.iter().zip(&fio) {
        assert_eq!(ours.0, fio.0);
        assert!(ours.1.abs_diff(fio.1) <= 4_000_000, "{ours:?} {fio:?}");
    }
    // A wait that has passed has no effect.
    let ms: Vec<u64> = ours.iter().map(|(_, at)| at / 1_000_000).collect();
    assert_eq!(ms, [0, 600, 600, 600, 1100]);
}

#[test]
fn iolog_version_2_has_waits_and_version_3_times() {
    let text = "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda read 0 4096\n\
                /dev/sda wait 100 0\n/dev/sda write 8192 512\n/dev/sda wait 150 0\n\
                /dev/sda sync 0 0\n/dev/sda trim 0 4096\n/dev/sda read 0 512\n/dev/sda close\n";
    let recorded = parse(text).unwrap();
    let expected =
        [(0, 4096, false, 0), (8192, 512, true, 100_000_000), (0, 512, false, 150_000_000)];
    let trim = recorded.ios[2];
    assert_eq!(trim.mode, Mode::Trim);
    assert_eq!((trim.offset, trim.size, trim.at), (0, 4096, 150_000_000));
    assert_eq!(recorded.left_out.iter().collect::<Vec<_>>(), [(&"sync", &1)]);
    let without = recorded.without_trims();
    assert_eq!(rows(&without), expected);
    assert_eq!(without.left_out.iter().collect::<Vec<_>>(), [(&"sync", &1), (&"trim", &1)]);
    assert!(!parse("fio version 2 iolog\na read 0 1\n").unwrap().has_times);
    // As fio, which ignores it.
    let timed = parse("fio version 3 iolog\n0 a read 0 1\n5 a wait 9 0\n7 a read 0 1\n").unwrap();
    assert_eq!(timed.ios[1].at, 7000);
    assert_eq!(timed.left_out.iter().collect::<Vec<_>>(), [(&"wait", &1)]);
}

#[test]
fn blkparse_uses_queue_events() {
    let recorded = data("blkparse-1.2.txt");
    let expected = [
        (223_490 * 512, 4096, true, 0),
        (8 * 512, 512, false, 154_229),
        (1000 * 512, 131_072, false, 123_701_718),
        (2000 * 512, 65_536, true, 123_701_728),
        (3000 * 512, 8192, true, 123_701_758),
        (16 * 512, 4096, false, 2_123_701_758),
    ];
    assert_eq!(rows(&recorded.without_trims()), expected);
    assert_eq!(recorded.left_out.iter().collect::<Vec<_>>(), [(&"flush", &1)]);
    let discards: Vec<_> = recorded.ios.iter().filter(|io| io.mode == Mode::Trim).collect();
    let (discard, more) = discards.split_first().unwrap();
    assert_eq!((discard.offset, discard.size, more.len()), (4096 * 512, 2048 * 512, 0));
    // A trace with issue events only.
    let is_issued = |line: &&str| line.split_whitespace().nth(5) == Some("D");
    let text = include_str!("data/blkparse-1.2.txt");
    let issued: Vec<&str> = text.lines().filter(is_issued).collect();
    let issued = parse(&issued.join("\n")).unwrap();
    assert_eq!(rows(&issued)[..1], [(223_490 * 512, 4096, true, 0)]);
    assert_eq!(rows(&issued)[1].3, 154_929 - 3_229);
}

#[test]
fn disks_of_a_trace_are_placed_side_by_side() {
    let recorded = data("msr.csv");
    assert_eq!(recorded.sources, ["usr.0", "usr.1"]);
    let second = (7_014_609_920u64 + 24_576).next_multiple_of(1 << 20);
    let expected = [
        (7_014_609_920, 24_576, false, 0),
        (1_317_441_536, 8192, true, 1_332_052_600),
        (second + 2_436_440_064, 4096, true, 2_332_061_600),
        (512, 1024, false, 2_332_057_100),
    ];
    // In the order of the file, whose times go back.
    assert_eq!((rows(&recorded), recorded.steps_back), (expected.to_vec(), 1));
}

#[test]
fn unreadable_files_are_named_with_their_fault() {
    for (text, location, got) in [
        ("", "trace", "no data"),
        ("hello\n", "trace:1", "hello"),
        ("fio version 4 iolog\na read 0 1\n", "trace:1", "version 4"),
        ("fio version 2 iolog\na read 0\n", "trace:2", "a read 0"),
        ("fio version 2 iolog\na read -1 5\n", "trace:2", "-1"),
        ("fio version 2 iolog\na eat 1 5\n", "trace:2", "eat"),
        ("fio version 2 iolog\na wait 100\n", "trace:2", "a wait 100"),
        ("fio version 2 iolog\na wait 99999999999999999 0\n", "trace:2", "a wait 9999"),
        ("fio version 3 iolog\nx a read 1 5\n", "trace:2", "x a read"),
        ("fio version 2 iolog\n", "trace", "no read, write or trim"),
        ("8,0 0 1 0.000000000 697 Q W 2 + x [cp]\n", "trace:1", "+ x"),
    ] {
        let message = parse(text).unwrap_err();
        assert!(message.contains(location) && message.contains(got), "{text}: {message}");
    }
    let long = format!("fio version 2 iolog\n{}\n", "a".repeat(70_000));
    assert!(parse(&long).unwrap_err().contains("longer line"));
    let error = parse_as("x", "trace", &in_format("fiio")).unwrap_err();
    assert!(error.contains("fio, fio-log, blkparse") && error.contains("msr"), "{error}");
}

#[test]
fn odd_lines_are_left_out_and_counted() {
    let text = "1,h,0,Read,0,512,1\n2,h,0,Eat,0,512,1\n3,h,0,Write,512,512,1\n4,h,0,Read,0,512\n\
                5,h,0,Read,0,512,1\n";
    let recorded = parse(text).unwrap();
    let expected = [(0, 512, false, 0), (512, 512, true, 200), (0, 512, false, 400)];
    assert_eq!(rows(&recorded), expected);
    assert_eq!(recorded.odd.count, 2);
    assert_eq!(recorded.odd.first, Some((2, "2,h,0,Eat,0,512,1".to_owned())));
    // Bytes that are no UTF-8, such as the name of a process, and a mark of the byte order.
    let bytes = b"\xef\xbb\xbf8,0 0 1 0.000000001 6 Q W 2 + 1 [\xff]\r\n";
    let read = read_from(&mut Cursor::new(bytes), "trace", &ReadOptions::default()).unwrap();
    assert_eq!((read.ios.len(), read.odd.count), (1, 0));
}

#[test]
fn larger_trace_is_refused_wrapped_or_scaled() {
    let text =
        "fio version 3 iolog\n0 a read 0 4096\n10 a write 5000 4096\n20 a read 1044480 4096\n";
    let recorded = parse(text).unwrap();
    let rows = |how, capacity, speed| {
        let fitted =
            fit(&recorded, (capacity, 512), how, speed).map_err(|error| error.to_string())?;
        let ios: Vec<(u64, u64)> = fitted.list.ios().map(|io| (io.offset.0, io.size.0)).collect();
        Ok::<_, String>((ios, fitted.list.instants().to_vec(), fitted.widened, fitted.moved))
    };
    // Unchanged: 5000 is not a whole sector, so the I/O is widened.
    let (ios, instants, widened, moved) = rows(Fit::Refuse, 1 << 20, None).unwrap();
    assert_eq!(ios, [(0, 4096), (4608, 4608), (1_044_480, 4096)]);
    assert_eq!((instants, widened, moved), (vec![], 1, 0));
    assert!(rows(Fit::Refuse, 1 << 19, None).unwrap_err().contains("--fit wrap"));
    let (ios, instants, _, moved) = rows(Fit::Wrap, 1 << 19, Some(2_000_000)).unwrap();
    assert_eq!(ios, [(0, 4096), (4608, 4608), ((1 << 19) - 4096, 4096)]);
    assert_eq!((instants, moved), (vec![0, 5000, 10_000], 1));
    let end = 1_044_480 + 4096;
    let (ios, _, _, moved) = rows(Fit::Scale, 1 << 19, None).unwrap();
    let scaled = |offset: u64| offset * (1 << 19) / end / 512 * 512;
    assert_eq!(
        ios,
        [(0, 4096), (scaled(5000), 4096), (scaled(1_044_480).min((1 << 19) - 4096), 4096)]
    );
    assert_eq!(moved, 2);
    assert!(rows(Fit::Wrap, 2048, None).unwrap_err().contains("longer than the device"));
}

/// Such as that of mkfs: longer than the largest I/O.
#[test]
fn long_trim_is_split_at_its_instant() {
    let text = "8,0 0 1 0.000000000 697 Q DS 8 + 786433 [mkfs]\n\
                8,0 0 2 0.000001000 697 Q W 0 + 8 [mkfs]\n";
    let fitted = fit(&parse(text).unwrap(), (1 << 30, 512), Fit::Refuse, Some(1_000_000)).unwrap();
    let ios: Vec<(u64, u64)> = fitted.list.ios().map(|io| (io.offset.0, io.size.0)).collect();
    let part = 128 << 20;
    let parts = (0..3).map(|number| (4096 + number * part, part));
    assert_eq!(ios, parts.chain([(4096 + 3 * part, 512), (0, 4096)]).collect::<Vec<_>>());
    assert_eq!(fitted.list.instants(), [0, 0, 0, 0, 1000]);
    assert_eq!((fitted.split, fitted.widened, fitted.moved), (1, 0, 0));
}

#[test]
fn zone_operations_are_refused_without_suggesting_a_part() {
    let io = |mode| Io { offset: Bytes(0), size: Bytes(4096), mode, stream: 0 };
    let modes = [Mode::Write, Mode::Append, Mode::Reset, Mode::Read];
    let ours =
        RecordedTrace::from_ios(modes.into_iter().map(io).zip(0..).map(|(io, at)| (io, at, 1)))
            .unwrap();
    let message = fit(&ours, (1 << 20, 512), Fit::Wrap, None).unwrap_err().to_string();
    assert!(message.contains("2 of 4 I/Os, the first of them append"), "{message}");
    assert!(message.contains("--suite zones") && !message.contains("a part of it"), "{message}");
}

#[test]
fn fio_latency_log_matches_fio_s_statistics() {
    let recorded = data("fio-3.33_lat.1.log");
    assert!(recorded.has_offsets);
    let log = recorded.measured().unwrap();
    let rows: Vec<Vec<u64>> = include_str!("data/fio-3.33_lat.1.log")
        .lines()
        .map(|line| line.split(", ").map(|field| field.parse().unwrap()).collect())
        .collect();
    assert_eq!(log.list.len(), rows.len());
    // One after another: as fio measured, in order, within a millisecond of its clock.
    assert_eq!(log.depth, 1);
    let ios = log.list.ios().zip(log.submit_ns.iter()).zip(log.response_time_ns.iter());
    for (row, ((io, submit), response_time)) in rows.iter().zip(ios) {
        assert_eq!((io.offset.0, io.size.0, *response_time), (row[4], row[3], row[1]));
        assert_eq!(u64::from(io.mode == Mode::Write), row[2]);
        assert!(
            (submit + response_time).abs_diff(row[0] * 1_000_000) <= 1_000_000 + rows[0][1],
            "{row:?}"
        );
    }
    let queue = data("fio-3.33-queue_lat.1.log");
    assert!(!queue.has_offsets);
    let queue = queue.measured().unwrap();
    assert_eq!(queue.list.len(), 50);
    assert!(queue.submit_ns.is_sorted());
    for wrong in [
        "",
        "x",
        "1, 2, 3, 4\n",
        "1, 2, 0, 4, 0, 0, 0, 0\n",
        "1, 2, 0, 4\n2, 2, 0, 4, 0\n3, 2, 0, 4, 0\n",
        "1, 2\n",
    ] {
        let read = parse_as(wrong, "job_lat.1.log", &with_unit("ns"));
        assert!(read.is_err(), "{wrong}");
    }
}

/// In 3.17 the fifth field is the offset; 3.42 appends issue times.
#[test]
fn other_fio_log_versions_are_read() {
    for (name, fields) in [("fio-3.17_lat.1.log", 5), ("fio-3.42_clat.1.log", 7)] {
        let recorded = data(name);
        let text = std::fs::read_to_string(path(name)).unwrap();
        let expected = text.lines().map(|line| {
            let all: Vec<&str> = line.split(", ").collect();
            assert_eq!(all.len(), fields, "{name}");
            (all[4].parse().unwrap(), all[1].parse().unwrap())
        });
        let ios = recorded.ios.iter();
        let read: Vec<(u64, u64)> = ios.map(|io| (io.offset, io.response_ns)).collect();
        assert!(recorded.has_offsets && read.len() > 5, "{name}");
        assert_eq!(read, expected.collect::<Vec<_>>(), "{name}");
    }
}

/// As `flush_samples` of fio writes them, from 3.17 over 3.28 (log_prio) to 3.42.
#[test]
fn fio_log_fields_are_inferred_from_all_lines() {
    let offsets = |lines: &[&str]| {
        let text: String =
            (1..).zip(lines).map(|(at, line)| format!("{at}, 900, 0, 4096{line}\n")).collect();
        let log = parse_as(&text, "job_lat.1.log", &with_unit("ns"))?;
        let offsets: Vec<u64> = log.ios.iter().map(|io| io.offset).collect();
        Ok::<_, String>((log.has_offsets, offsets))
    };
    let known = |offsets: &[u64]| Ok((true, offsets.to_vec()));
    let unknown = Ok((false, vec![0, 0]));
    for (lines, expected) in [
        (["", ""], unknown.clone()),
        // An offset whose first value is 0, as later versions write a priority.
        ([", 0", ", 8192"], known(&[0, 8192])),
        ([", 0", ", 1"], unknown.clone()),
        ([", 0x0000", ", 0x2004"], unknown),
        ([", 0, 0", ", 8192, 1"], known(&[0, 8192])),
        ([", 0, 0", ", 0, 0"], known(&[0, 0])),
        ([", 0, 0x2000", ", 8192, 0x2000"], known(&[0, 8192])),
        ([", 0, 1, 186500", ", 8192, 0, 1186500"], known(&[0, 8192])),
        ([", 4096, 0x2000, 0", ", 8192, 0x2000, 0"], known(&[4096, 8192])),
    ] {
        assert_eq!(offsets(&lines), expected, "{lines:?}");
    }
    for (lines, got) in [
        ([", 0x2000", ", 8192"], "5 fields in every line, field 5: decimal and hexadecimal"),
        ([", 4096, 186500", ", 8192, 1186500"], "field 5: decimal numbers, field 6: decimal"),
        ([", 0, 186500", ", 1, 1186500"], "field 5: 0 or 1, field 6: decimal numbers"),
        ([", 0x2000, 186500", ", 0x2000, 1186500"], "field 5: hexadecimal"),
        ([", 0x2000, 0x2000", ", 0x2000, 0x2000"], "field 6: hexadecimal"),
        ([", 0x2000, 0, 5", ", 0x2000, 0, 6"], "7 fields"),
    ] {
        let message = offsets(&lines).unwrap_err();
        assert!(message.contains(got), "{lines:?}: {message}");
    }
}

/// The quantity is in the name of the file: KiB/s and counts have the form of response times.
#[test]
fn other_logs_of_fio_are_no_response_times() {
    let log = "0, 51922, 0, 4096, 794472448, 0\n0, 36536, 0, 4096, 140718080, 0\n";
    for (name, got) in [
        ("job_bw.1.log", "KiB/s"),
        ("job_iops.1.log", "numbers of I/Os"),
        ("job_clat_hist.1.log", "histograms"),
        ("job.log", "does not contain lat"),
    ] {
        let message = parse_as(log, name, &ReadOptions::default()).unwrap_err();
        assert!(message.contains(got), "{name}: {message}");
    }
    assert!(parse_as(log, "job_bw.1.log", &with_unit("ns")).is_err());
    assert!(parse_as(log, "job.log", &with_unit("ns")).is_ok());
    let bins = ", 0".repeat(100);
    let histogram = format!("1000, 1, 4096{bins}\n2000, 1, 4096{bins}\n");
    let message = parse_as(&histogram, "lat.log", &ReadOptions::default()).unwrap_err();
    assert!(message.contains("histograms"), "{message}");
    let averages = "500, 4258006, 0, 0, 0, 0\n1000, 307794, 0, 0, 0, 0\n";
    let read = parse_as(averages, "job_lat.1.log.gz", &ReadOptions::default()).unwrap();
    assert_eq!(read.averaged_ns, Some(500_000_000));
    let both = "15, 17198, 26389, 1, 0, 0\n17, 16353, 16353, 0, 0, 0\n";
    let read = parse_as(both, "job_lat.1.log", &ReadOptions::default()).unwrap();
    assert_eq!(read.averaged_ns, Some(2_000_000));
}

/// fio 2 logs µs. Serial I/Os of `took` µs are logged in both units; their sum shows which it is.
#[test]
fn unit_of_a_log_follows_from_its_times_or_is_asked_for() {
    let log = |took_us: u64, unit: u64, idle_us: u64, from_ms: u64| -> String {
        let line = |number: u64| {
            let ms = from_ms + (number + 1) * (took_us + idle_us) / 1000;
            format!("{ms}, {}, 0, 4096\n", took_us * unit + number % 3)
        };
        (0..400).map(line).collect()
    };
    let unit = |text: &str| {
        let read = parse_as(text, "job_clat.1.log", &ReadOptions::default())?;
        Ok::<_, String>(read.assumptions.unit)
    };
    assert_eq!(unit(&log(90, 1, 10, 0)).unwrap(), "us");
    assert_eq!(unit(&log(90, 1000, 10, 0)).unwrap(), "ns");
    assert_eq!(unit(&log(8000, 1, 10, 0)).unwrap(), "us");
    assert_eq!(unit(&log(8000, 1000, 10, 0)).unwrap(), "ns");
    // Idle for most of the time, and cut from its beginning: both are possible.
    let message = unit(&log(8000, 1, 30_000, 50_000)).unwrap_err();
    assert!(message.contains("--unit us"), "{message}");
}

/// An epoch changes nothing but the zero of the times.
#[test]
fn absolute_times_give_the_same_measurement() {
    let log = |epoch: u64| {
        // Eight at a time, 2 ms each: completions every 250 µs.
        let line = |number: u64| {
            let ms = epoch + 2 + number / 4;
            format!("{ms}, {}, 0, 4096, {}, 0\n", 2_000_000 - number % 7, number * 4096)
        };
        let text: String = (0..2000).map(line).collect();
        parse_as(&text, "job_lat.1.log", &ReadOptions::default()).unwrap().measured().unwrap()
    };
    let (zero, epoch) = (log(0), log(1_700_000_000_000));
    assert_eq!(zero.submit_ns, epoch.submit_ns);
    assert_eq!((zero.depth, epoch.depth), (8, 8));
    let end = epoch.submit_ns.last().unwrap() + 2_000_000;
    assert!(end.abs_diff(502_000_000) < 4_000_000, "{end}");
}

#[test]
fn zero_times_are_clock_ticks() {
    let text = "0, 900, 0, 4096, 0, 0\n1, 0, 0, 4096, 4096, 0\n2, 800, 0, 4096, 8192, 0\n";
    let read = parse_as(text, "job_slat.1.log", &ReadOptions::default()).unwrap();
    assert_eq!(read.zero_times, 1);
    let times: Vec<u64> = read.ios.iter().map(|io| io.response_ns).collect();
    assert_eq!(times, [900, 1, 800]);
}

/// fio reads fields with sscanf: any blanks, and a time below the one before is no wait.
#[test]
fn iologs_are_read_as_fio_reads_them() {
    let aligned = "fio version 2 iolog\nmy disk add\nmy disk  read  0     4096\n\
                   my disk\tread\t40960\t4096\n";
    let recorded = parse(aligned).unwrap();
    assert_eq!(rows(&recorded), [(0, 4096, false, 0), (40_960, 4096, false, 0)]);
    assert_eq!(recorded.sources, ["my disk"]);
    let back = "fio version 3 iolog\n0 d write 0 1\n1000000 d read 4096 1\n20 d read 8192 1\n\
                1000020 d write 12288 1\n";
    let recorded = parse(back).unwrap();
    let expected =
        [(0, 1, true, 0), (4096, 1, false, 10), (8192, 1, false, 10), (12_288, 1, true, 20)];
    let seconds = rows(&recorded).into_iter().map(|(a, b, c, at)| (a, b, c, at / 100_000_000));
    assert_eq!(seconds.collect::<Vec<_>>(), expected);
    assert_eq!(recorded.steps_back, 1);
}

/// A closed loop keeps the order of the file, an open one that of the times.
#[test]
fn order_is_that_of_the_file_without_a_speed() {
    let text = "30,h,0,Read,0,512,1\n10,h,0,Read,512,512,1\n20,h,0,Read,1024,512,1\n";
    let recorded = parse(text).unwrap();
    let offsets = |speed| {
        let fitted = fit(&recorded, (1 << 20, 512), Fit::Refuse, speed).unwrap();
        (fitted.list.ios().map(|io| io.offset.0).collect::<Vec<_>>(), fitted.sorted)
    };
    assert_eq!(offsets(None), (vec![0, 512, 1024], 0));
    assert_eq!(offsets(Some(1_000_000)), (vec![512, 1024, 0], 3));
    assert_eq!(recorded.steps_back, 1);
}

/// Lines of blkparse that carry no data, as smartd, mkfs and old kernels cause them.
#[test]
fn commands_and_barriers_of_blkparse_are_counted() {
    let text = "Input file sdb.blktrace.0 added\nInput file sdb.blktrace.1 added\n\
                8,16 0 1 0.001000000 410 Q R 8 + 8 [app]\n\
                8,16 0 2 0.001200000 410 Q WBS [partprobe]\n\
                8,16 0 3 0.001300000 410 Q R 512 (85 08 0e 00 d0 00 01 ..) [smartprobe]\n\
                8,16 0 4 0.001400000 410 D R 8 + 8 [app]\n\
                8,16 0 5 0.001900000 0 C R 8 + 8 [0]\n\
                8,16 0 6 0.002000000 0 C WS 0 [0]\n\
                8,16 0 7 0.003000000 410 Q W 16 + 8 [app]\n\
                CPU0 (sdb):\n Reads Queued: 1, 4KiB\n";
    let recorded = parse(text).unwrap();
    assert_eq!(rows(&recorded), [(4096, 4096, false, 0), (8192, 4096, true, 2_000_000)]);
    let left_out: Vec<_> = recorded.left_out.iter().collect();
    assert_eq!(left_out, [(&"command", &1), (&"flush", &1)]);
    let responses: Vec<u64> = recorded.ios.iter().map(|io| io.response_ns).collect();
    assert_eq!((responses, recorded.assumptions.quantity.as_str()), (vec![900_000, 0], "Q2C"));
    let issued = parse_as(text, "trace", &in_format("blkparse-issue")).unwrap();
    assert_eq!(issued.ios.len(), 1);
    assert_eq!(issued.ios[0].response_ns, 500_000);
}

/// The same I/Os in the words of each format.
#[test]
fn table_formats_have_their_units_and_words() {
    let read_ms = |format: &str, text: &str, response: u64| {
        let recorded = parse(text).unwrap_or_else(|error| panic!("{format}: {error}"));
        assert_eq!(recorded.format, format);
        let expected = [(4096, 8192, false, 0), (1 << 20, 4096, true, 2_000_000_000)];
        assert_eq!(rows(&recorded), expected, "{format}");
        assert_eq!(recorded.ios[0].response_ns, response, "{format}");
    };
    read_ms("spc", "0,8,8192,r,1.5\n0,2048,4096,W,3.5,extra\n", 0);
    read_ms(
        "alibaba",
        "419,R,4096,8192,1577808144360767\n419,W,1048576,4096,1577808146360767\n",
        0,
    );
    read_ms("tencent", "1538323200,8,16,0,7\n1538323202,2048,8,1,7\n", 0);
    read_ms(
        "systor17",
        "Timestamp,Response,IOType,LUN,Offset,Size\n1600000000.5,0.000531129,R,0,4096,8192\n\
         1600000002.5,,W,0,1048576,4096\n",
        531_129,
    );
    let md5 = "56f11b711d91a065a2b6458eca924523";
    let fiu =
        format!("8996819579 2 my proc 8 16 R 6 0 {md5}\n10996819579 2 gzip 2048 8 W 6 0 {md5}\n");
    read_ms("fiu", &fiu, 0);
    read_ms("mqsim", "1000 1 8 16 1\n2000001000 1 2048 8 0\n", 0);
    read_ms("disksim", "1.0 1 8 16 1\n2001.0 1 2048 8 0\n", 0);
    read_ms(
        "biosnoop",
        "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n0.001 my app 9 nvme0n1 R 8 8192 1.00\n\
         2.001 sync 9 nvme0n1 WS 2048 4096 1.00\n",
        1_000_000,
    );
    read_ms(
        "uflip-table",
        "index,submit_ns,mode,offset_bytes,io_size_bytes,response_time_ns\n\
         0,5,read,4096,8192,77\n1,2000000005,write,1048576,4096,88\n",
        77,
    );
}

#[test]
fn columns_are_named_by_number_or_head() {
    let expected = [(4096, 8192, false, 0), (1 << 20, 4096, true, 2_000_000)];
    let numbered = "419,R,4096,8192,1000\n419,W,1048576,4096,3000\n";
    let options = with_columns("time_us=5,offset=3,size=4,op=2");
    assert_eq!(rows(&parse_as(numbered, "t", &options).unwrap()), expected);
    // A decimal comma, an end instead of a beginning, own words, and two columns for a disk.
    let named = "when;lba;kb;rw;lat;a;b\n1,5;8;8;0;0,5;x;1\n4,0;2048;4;1;1,0;x;1\n";
    let options = with_columns(
        "end_ms=when,offset_sectors=lba,size_kib=kb,op=rw,read=0,write=1,response_ms=lat,source=a+b",
    );
    let recorded = parse_as(named, "t", &options).unwrap();
    assert_eq!(rows(&recorded), expected);
    assert_eq!(recorded.ios[0].response_ns, 500_000);
    assert_eq!(recorded.sources, ["x.1"]);
    for wrong in ["time=1,offset=2,size=3,op=4", "offset=1", "offset=0,size=1,op=2", "lba=1", ""] {
        let message = parse_as(numbered, "t", &with_columns(wrong)).unwrap_err();
        assert!(message.contains("--columns"), "{message}");
    }
}

#[test]
fn series_have_the_unit_of_their_name() {
    let series = |text: &str, column: Option<&str>, unit: Option<&str>| {
        read_series_from(&mut Cursor::new(text.as_bytes()), "t.csv", column, unit)
            .map_err(|error| error.to_string())
    };
    let read = series("LAT(ms)\n0.25\n\n-\nx\n0\n0.5\n", None, None).unwrap();
    assert_eq!(*read.values, [250_000.0, 1_000_000.0, 500_000.0]);
    assert_eq!((read.empty, read.odd.count, read.zero_times), (1, 1, 1));
    let read = series("n;lat_us;x\n1;0,5;2\n2;1,5;3\n", Some("lat_us"), None).unwrap();
    assert_eq!((&read.values[..], read.has_decimal_comma), (&[500.0, 1500.0][..], true));
    let read = series("took\n12 us\n1.5 ms\n", None, None).unwrap();
    assert_eq!(*read.values, [12_000.0, 1_500_000.0]);
    for (text, unit, got) in [
        ("latency\n1\n2\n", None, "no unit of time"),
        ("1\n2\n", None, "no unit of time"),
        ("MB/s\n1\n2\n", None, "no unit of time"),
        ("a_us,b_us\n1,2\n", None, "no such column"),
        ("lat_us\n0,5\n1.5\n2,5\n", None, "one sign of decimals"),
    ] {
        let message = series(text, None, unit).unwrap_err();
        assert!(message.contains(got), "{text}: {message}");
    }
    let clock: String = (0..40).map(|number| format!("{}\n", 1000 + number * 7)).collect();
    let message = series(&format!("submit_ns\n{clock}"), None, None).unwrap_err();
    assert!(message.contains("only grow"), "{message}");
}

#[test]
fn one_decimal_time_tells_disksim_from_mqsim() {
    let recorded = parse("0 0 8 8 1\n1 0 8 8 1\n2.5 0 16 8 0\n").unwrap();
    assert_eq!((recorded.format, recorded.ios[2].at), ("disksim", 2_500_000));
    let message = parse_as("0.5 0 8 8 1\n", "t", &in_format("mqsim")).map(|read| read.ios[0].at);
    assert!(message.is_err(), "half a nanosecond: {message:?}");
}

/// blkparse prints this file as data/blkparse-of-binary.txt.
#[test]
fn binary_blktrace_matches_blkparse() {
    let (binary, text) = (data("sda.blktrace.0"), data("blkparse-of-binary.txt"));
    assert_eq!((binary.format, text.format), ("blktrace", "blkparse"));
    assert_eq!(rows(&binary), rows(&text));
    let responses =
        |trace: &RecordedTrace| -> Vec<u64> { trace.ios.iter().map(|io| io.response_ns).collect() };
    assert_eq!(responses(&binary), responses(&text));
    assert!(binary.ios.len() > 3 && binary.left_out == text.left_out);
}

#[test]
fn vscsi_records_of_both_versions_are_read() {
    let record = |version: u16, command: u16, sector: u64, bytes: u32, at_us: u64| {
        let ver = (version << 8).to_le_bytes();
        let mut record = Vec::new();
        if version == 2 {
            record.extend([&command.to_le_bytes()[..], &ver].concat());
            record.extend([1u32, bytes, 1].map(u32::to_le_bytes).concat());
        } else {
            record.extend([1u32, bytes, 1].map(u32::to_le_bytes).concat());
            record.extend([&command.to_le_bytes()[..], &ver].concat());
        }
        record.extend([sector, at_us].map(u64::to_le_bytes).concat());
        if version == 2 {
            record.extend(9u64.to_le_bytes());
        }
        record
    };
    for version in [1, 2] {
        let bytes = [
            record(version, 0x28, 8, 4096, 5_000_000),
            record(version, 0x35, 0, 0, 5_000_001),
            record(version, 0x2a, 16, 512, 5_000_100),
        ]
        .concat();
        let read = read_from(&mut Cursor::new(bytes), "t", &ReadOptions::default()).unwrap();
        assert_eq!(read.format, "vscsi");
        assert_eq!(read.assumptions.version, version.to_string());
        assert_eq!(rows(&read), [(4096, 4096, false, 0), (8192, 512, true, 100_000)]);
        assert_eq!(read.left_out.iter().collect::<Vec<_>>(), [(&"flush", &1)]);
    }
}

/// Packed by gzip and zstd, and in two files.
#[test]
fn packed_files_and_files_of_one_trace_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read(path("msr.csv")).unwrap();
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let (first, second) = (lines[..2].concat(), lines[2..].concat());
    let packed = folder.path().join("a.csv.zst");
    std::fs::write(&packed, zstd::encode_all(&first[..], 1).unwrap()).unwrap();
    let gzip = folder.path().join("b.csv.gz");
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut writer, &second).unwrap();
    std::fs::write(&gzip, writer.finish().unwrap()).unwrap();
    let both = uflip_foreign::read_all(&[&packed, &gzip], &ReadOptions::default()).unwrap();
    assert_eq!(rows(&both), rows(&data("msr.csv")));
    let other = path("fio-3.33.iolog");
    let error = uflip_foreign::read_all(&[&packed, &other], &ReadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("one format"), "{error}");
}

#[test]
fn offsets_are_scaled_and_moved_before_the_trace_is_fitted() {
    let text = "0.5 0 0 8 1\n1.5 0 2048 8 0\n";
    let recorded = parse_as(text, "trace", &in_format("disksim")).unwrap();
    let place = |scale_ppm, offset, rule| {
        let fitted = fit(&recorded, (1 << 20, 512), Placement { rule, scale_ppm, offset }, None);
        fitted.map(|fitted| {
            let offsets: Vec<u64> = fitted.list.ios().map(|io| io.offset.0).collect();
            (offsets, fitted.moved)
        })
    };
    // 2048 sectors are 1 MiB: half of it, plus 4 KiB.
    assert_eq!(place(500_000, 4096, Fit::Refuse).unwrap(), (vec![4096, (1 << 19) + 4096], 0));
    assert_eq!(place(1_000_000, 0, Fit::Wrap).unwrap(), (vec![0, 0], 1));
    let below = place(1_000_000, -4096, Fit::Wrap).unwrap_err().to_string();
    assert!(below.contains("I/O 0 at byte 0"), "{below}");
    let beyond = place(1_000_000, 0, Fit::Refuse).unwrap_err().to_string();
    assert!(beyond.contains("larger device"), "{beyond}");
}

#[test]
fn queued_ios_have_the_time_in_the_device_beside_their_response_time() {
    let text = "8,0 0 1 0.000000000 9 Q R 8 + 8 [a]\n8,0 0 2 0.000001000 9 Q R 16 + 8 [a]\n\
                8,0 0 3 0.000005000 9 D R 8 + 16 [a]\n8,0 0 4 0.000105000 9 C R 8 + 16 [0]\n";
    let recorded = parse(text).unwrap();
    let response: Vec<u64> = recorded.ios.iter().map(|io| io.response_ns).collect();
    assert_eq!(response, [105_000, 104_000]);
    assert_eq!(*recorded.device_times, [100_000, 100_000]);
}

#[test]
fn files_of_one_trace_are_merged_by_time() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    // Times of the first file go back: its own order stays.
    let first = write("a", "1,R,0,4096,100\n1,R,4096,4096,300\n1,R,8192,4096,200\n");
    let second = write("b", "1,W,0,4096,250\n1,W,4096,4096,400\n");
    let read = read_all(&[&first, &second], &ReadOptions::default()).unwrap();
    let order: Vec<(u64, u64)> = read.ios.iter().map(|io| (io.at / 1000, io.offset)).collect();
    assert_eq!(order, [(0, 0), (150, 0), (200, 4096), (100, 8192), (300, 4096)]);
    assert_eq!(read.steps_back, 1);
}

#[test]
fn rate_logs_are_columns() {
    let log =
        |name: &str, text: &str| read_rates_from(&mut Cursor::new(text.as_bytes()), name).unwrap();
    let rates = log("a_bw.1.log", "500, 1208, 0, 0, 0\r\n1003, 1168, 1, 0, 0\r\n").unwrap();
    assert_eq!((rates.quantity, &rates.time_ms), ("bw", &vec![500, 1003]));
    assert_eq!((rates.value, rates.direction), (vec![1208, 1168], vec![0, 1]));
    let mut bins = vec!["0"; 1856];
    (bins[130], bins[1855]) = ("7", "2");
    let row = format!("505, 1, 4096, {}\n", bins.join(", "));
    let histogram = log("a_clat_hist.1.log", &row.repeat(3)).unwrap();
    assert_eq!((histogram.quantity, histogram.value), ("hist", vec![9; 3]));
    assert_eq!(histogram.bin[..2], [130, 1855]);
    assert_eq!(histogram.bin_limits_ns[130], 132);
    // The last quantity of a name counts.
    assert!(log("iops-test_clat.1.log", "1, 5000, 0, 4096\n").is_none());
    assert!(log("notes_bw.txt", "a text\n").is_none());
}

#[test]
fn a_trace_can_have_the_volumes_of_tencent() {
    let lines: Vec<String> =
        (0..5584).map(|volume| format!("1538323200,8,16,{},{volume}", volume % 2)).collect();
    let recorded = parse(&lines.join("\n")).unwrap();
    assert_eq!((recorded.format, recorded.sources.len()), ("tencent", 5584));
    // Offsets and sizes are sectors, and the volumes lie side by side.
    let last = recorded.ios.last().unwrap();
    assert_eq!((last.offset, last.size), (5583 * (1 << 20) + 4096, 8192));
    assert!(recorded.assumptions.notes[0].contains("whole seconds"));
}
