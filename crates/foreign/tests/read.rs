//! Traces written by other programs: data/fio-3.33* by fio, data/blkparse-1.2.txt by blkparse (of
//! events whose numbers are in the test), data/msr.csv in the format of the MSR Cambridge traces.

use std::io::Cursor;
use std::path::Path;

use uflip_core::{Bytes, ErrorKind, Io, Mode};
use uflip_foreign::{Fit, RecordedTrace, fit, read, read_fio_log, read_fio_log_from, read_from};

fn data(name: &str) -> RecordedTrace {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name), None).unwrap()
}

fn parse(text: &str) -> Result<RecordedTrace, String> {
    let read = read_from(&mut Cursor::new(text.as_bytes()), "trace", None);
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
        (512, 1024, false, 2_332_057_100),
        (second + 2_436_440_064, 4096, true, 2_332_061_600),
    ];
    assert_eq!(rows(&recorded), expected);
}

#[test]
fn errors_name_the_line() {
    for (text, line, got) in [
        ("", "trace", "nothing"),
        ("hello\n", "trace:1", "hello"),
        ("fio version 4 iolog\na read 0 1\n", "trace:1", "version 4"),
        ("fio version 2 iolog\na read 0\n", "trace:2", "a read 0"),
        ("fio version 2 iolog\na read -1 5\n", "trace:2", "-1"),
        ("fio version 2 iolog\na eat 1 5\n", "trace:2", "eat"),
        ("fio version 2 iolog\na wait 100\n", "trace:2", "a wait 100"),
        ("fio version 2 iolog\na wait 99999999999999999 0\n", "trace:2", "a wait 9999"),
        ("fio version 2 iolog\na read 1 99999999999999999999\n", "trace:2", "9999"),
        ("fio version 3 iolog\nx a read 1 5\n", "trace:2", "x a read"),
        ("fio version 2 iolog\n", "trace", "no read, write or trim"),
        ("1,h,0,Read,0,512,1\n1,h,0,Eat,0,512,1\n", "trace:2", "Eat"),
        ("1,h,0,Read,0,512,1\n1,h,0,Read,0,512\n", "trace:2", "512"),
        ("8,0 0 1 0.000000000 697 Q W 2 + x [cp]\n", "trace:1", "+ x"),
    ] {
        let message = parse(text).unwrap_err();
        assert!(message.contains(line) && message.contains(got), "{text}: {message}");
    }
    let long = format!("fio version 2 iolog\n{}\n", "a".repeat(5000));
    assert!(parse(&long).unwrap_err().contains("longer line"));
    let error = read_from(&mut Cursor::new(b"x"), "trace", Some("fiio")).unwrap_err();
    assert!(error.to_string().contains("fio, blkparse, msr"), "{error}");
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
    let ours = RecordedTrace::from_ios(modes.into_iter().map(io).zip(0..)).unwrap();
    let message = fit(&ours, (1 << 20, 512), Fit::Wrap, None).unwrap_err().to_string();
    assert!(message.contains("2 of 4 I/Os, the first of them append"), "{message}");
    assert!(message.contains("--suite zones") && !message.contains("a part of it"), "{message}");
}

#[test]
fn fio_latency_log_matches_fio_s_statistics() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let log = read_fio_log(&folder.join("fio-3.33_lat.1.log")).unwrap();
    let rows: Vec<Vec<u64>> = include_str!("data/fio-3.33_lat.1.log")
        .lines()
        .map(|line| line.split(", ").map(|field| field.parse().unwrap()).collect())
        .collect();
    assert_eq!(log.list.len(), rows.len());
    assert!(log.has_offsets);
    // One after another: as fio measured, in order, within a millisecond of its clock.
    assert_eq!(log.depth, 1);
    let ios = log.list.ios().zip(&log.submit_ns).zip(&log.response_time_ns);
    for (row, ((io, submit), response_time)) in rows.iter().zip(ios) {
        assert_eq!((io.offset.0, io.size.0, *response_time), (row[4], row[3], row[1]));
        assert_eq!(u64::from(io.mode == Mode::Write), row[2]);
        assert!(
            (submit + response_time).abs_diff(row[0] * 1_000_000) <= 1_000_000 + rows[0][1],
            "{row:?}"
        );
    }
    let queue = read_fio_log(&folder.join("fio-3.33-queue_lat.1.log")).unwrap();
    assert!(!queue.has_offsets);
    assert_eq!(queue.list.len(), 50);
    assert!(queue.submit_ns.is_sorted());
    for wrong in [
        "",
        "x",
        "1, 2, 3, 4\n",
        "1, 2, 0, 4, 0, 0, 0, 0\n",
        "1, 2, 0, 4\n2, 2, 0, 4, 0\n",
        "1, 0, 0, 4096\n",
        "1, 2, 0, 0\n",
        "1, 2\n",
    ] {
        let read = read_fio_log_from(&mut Cursor::new(wrong.as_bytes()), "log");
        assert_eq!(read.unwrap_err().kind(), ErrorKind::Results, "{wrong}");
    }
}

/// In 3.17 the fifth field is the offset; 3.42 appends issue times.
#[test]
fn other_fio_log_versions_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for (name, fields) in [("fio-3.17_lat.1.log", 5), ("fio-3.42_clat.1.log", 7)] {
        let log = read_fio_log(&folder.join(name)).unwrap();
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let expected = text.lines().map(|line| {
            let all: Vec<&str> = line.split(", ").collect();
            assert_eq!(all.len(), fields, "{name}");
            (all[4].parse().unwrap(), all[1].parse().unwrap())
        });
        let offsets = log.list.ios().map(|io| io.offset.0);
        let read: Vec<(u64, u64)> = offsets.zip(log.response_time_ns.iter().copied()).collect();
        assert!(log.has_offsets && read.len() > 5, "{name}");
        assert_eq!(read, expected.collect::<Vec<_>>(), "{name}");
    }
}

/// As `flush_samples` of fio writes them, from 3.17 over 3.28 (log_prio) to 3.42.
#[test]
fn fio_log_fields_are_inferred_from_all_lines() {
    let offsets = |lines: &[&str]| {
        let text: String =
            (1..).zip(lines).map(|(at, line)| format!("{at}, 900, 0, 4096{line}\n")).collect();
        let read = read_fio_log_from(&mut Cursor::new(text.as_bytes()), "log");
        let log = read.map_err(|error| error.to_string())?;
        let offsets: Vec<u64> = log.list.ios().map(|io| io.offset.0).collect();
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
        ([", 0, 0", ", 8192"], "log:2"),
        ([", 0, x", ", 8192, 0"], "log:1"),
        ([", -1, 0", ", 8192, 0"], "log:1"),
    ] {
        let message = offsets(&lines).unwrap_err();
        assert!(message.contains(got), "{lines:?}: {message}");
    }
}
