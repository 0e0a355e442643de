//! Files that are read although they are unusual, or refused by their name and with advice.

use std::io::Cursor;

use uflip_foreign::{ReadOptions, RecordedTrace, read, read_all, read_from, read_series_from};

fn parse(text: &str, columns: Option<&str>) -> Result<RecordedTrace, String> {
    let options = ReadOptions { columns: columns.map(str::to_owned), ..ReadOptions::default() };
    let read = read_from(&mut Cursor::new(text.as_bytes()), "trace", &options);
    read.map_err(|error| error.to_string())
}

/// The columns of Alibaba's traces by their place, and by names that contradict it.
#[test]
fn named_columns_are_not_those_of_another_format() {
    let rows: String =
        (0..20).map(|io| format!("{io},R,{},4096,{}\n", 4096 * io, 100 + io)).collect();
    for head in ["", "device_id,opcode,offset,length,timestamp\n", "Volume,Type,LBA,Size,Time\n"] {
        let trace = parse(&format!("{head}{rows}"), None).unwrap();
        assert_eq!((trace.format, trace.ios.len()), ("alibaba", 20), "{head}");
    }
    for head in ["time,op,lbn,size,latency\n", "device,op,size,offset,time\n"] {
        let message = parse(&format!("{head}{rows}"), None).unwrap_err();
        assert!(message.contains(head.trim()), "{message}");
        let columns = Some("time_ms=1,op=2,offset=3,size=4,response_us=5");
        assert_eq!(parse(&format!("{head}{rows}"), columns).unwrap().ios[3].response_ns, 103_000);
    }
}

/// A record of blktrace: time [ns], sector, bytes, action, device, data.
fn block_record(
    at: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    device: u32,
    data: &[u8],
) -> Vec<u8> {
    let mut record = [0x6561_7407u32, 0].map(u32::to_le_bytes).concat();
    record.extend([at, sector].map(u64::to_le_bytes).concat());
    record.extend([bytes, action | 1 << 17, 1, device, 0].map(u32::to_le_bytes).concat());
    record.extend([0, data.len() as u16].map(u16::to_le_bytes).concat());
    record.extend(data);
    record
}

const QUEUED: u32 = 1;
const REQUEUED: u32 = 6;
const ISSUED: u32 = 7;
const COMPLETED: u32 = 8;
const REMAPPED: u32 = 15;
const SDA: u32 = 8 << 20;
const DM: u32 = 253 << 20;

fn of_bytes(bytes: &[u8]) -> RecordedTrace {
    read_from(&mut Cursor::new(bytes), "sda.blktrace.0", &ReadOptions::default()).expect("a trace")
}

/// Ten writes to dm on a partition of sda, with the events of both devices.
#[test]
fn io_of_a_mapped_device_counts_once() {
    let remapped = |device: u32, sector: u64| {
        [&device.to_be_bytes()[..], &SDA.to_be_bytes(), &sector.to_be_bytes()].concat()
    };
    let (mut binary, mut text) = (Vec::new(), String::new());
    for io in 0..10u64 {
        let (at, above, inside, below) = (io * 1_000_000, 8 * io, 8 * io + 500, 8 * io + 2548);
        for record in [
            block_record(at, above, 4096, QUEUED, DM, &[]),
            block_record(at + 1, inside, 4096, REMAPPED, SDA, &remapped(DM, above)),
            block_record(at + 2, below, 4096, REMAPPED, SDA, &remapped(SDA + 2, inside)),
            block_record(at + 3, below, 4096, QUEUED, SDA, &[]),
            block_record(at + 5000, below, 4096, ISSUED, SDA, &[]),
            block_record(at + 90_000, below, 4096, COMPLETED, SDA, &[]),
            block_record(at + 91_000, above, 4096, COMPLETED, DM, &[]),
        ] {
            binary.extend(record);
        }
        for (after, device, event) in [
            (0, "253,0", format!("Q W {above} + 8 [fio]")),
            (1, "8,0", format!("A W {inside} + 8 <- (253,0) {above}")),
            (2, "8,0", format!("A W {below} + 8 <- (8,2) {inside}")),
            (3, "8,0", format!("Q W {below} + 8 [fio]")),
            (90_000, "8,0", format!("C W {below} + 8 [0]")),
            (91_000, "253,0", format!("C W {above} + 8 [0]")),
        ] {
            let seconds = format!("0.{:09}", at + after);
            text.push_str(&format!("{device} 0 1 {seconds} 7 {event}\n"));
        }
    }
    for trace in [of_bytes(&binary), parse(&text, None).unwrap()] {
        assert_eq!((trace.ios.len(), trace.left_out["remapped copy"]), (10, 10));
        assert!(trace.ios.iter().all(|io| io.response_ns == 91_000), "that of the upper device");
        assert_eq!(trace.sources, ["253,0"]);
    }
    // Without the events of the upper device, the lower one has the I/Os.
    let lower: String = text
        .lines()
        .filter(|line| line.starts_with("8,0"))
        .map(|line| format!("{line}\n"))
        .collect();
    let trace = parse(&lower, None).unwrap();
    assert_eq!((trace.ios.len(), trace.sources), (10, vec!["8,0".to_owned()]));
}

#[test]
fn requeued_io_counts_once_from_its_first_issue() {
    let events = [(0, ISSUED), (10, REQUEUED), (20, ISSUED), (1020, COMPLETED)];
    let records = events.map(|(at, action)| block_record(at, 8, 4096, action, SDA, &[]));
    let trace = of_bytes(&records.concat());
    assert_eq!(trace.ios.iter().map(|io| io.response_ns).collect::<Vec<_>>(), [1020]);
}

/// blktrace that is killed leaves parts of records in the file of each CPU.
#[test]
fn records_that_are_cut_off_or_impossible_are_counted() {
    let queued = |io: u64| block_record(io * 1000, 8 * io, 4096, QUEUED, SDA, &[]);
    let file = |from: u64| (from..from + 10).flat_map(queued).collect::<Vec<u8>>();
    let folder = tempfile::tempdir().unwrap();
    for cut in [1, 4, 20, 47] {
        let paths = ["sda.blktrace.0", "sda.blktrace.1"].map(|name| folder.path().join(name));
        std::fs::write(&paths[0], &file(0)[..480 - cut]).unwrap();
        std::fs::write(&paths[1], file(20)).unwrap();
        let trace = read_all(&[&paths[0], &paths[1]], &ReadOptions::default()).unwrap();
        assert_eq!((trace.format, trace.ios.len()), ("blktrace", 19), "cut {cut}");
        assert_eq!(trace.left_out["incomplete record"], 1, "cut {cut}");
        let notes = read(&paths[1], &ReadOptions::default()).unwrap().assumptions.notes;
        assert!(notes.iter().any(|note| note.contains("sda.blktrace.0 and others")), "{notes:?}");
    }
    let remap = block_record(1, 8, 4096, REMAPPED, SDA, &[0; 40]);
    for lost in [1, 30] {
        let end = of_bytes(&[&file(0), &remap[..88 - lost]].concat());
        assert_eq!((end.ios.len(), end.left_out["incomplete record"]), (10, 1), "data, {lost}");
    }
    let beyond = block_record(1, 1 << 63, 4096, QUEUED, SDA, &[]);
    let trace = of_bytes(&[file(0), beyond].concat());
    assert_eq!((trace.ios.len(), trace.odd.count), (10, 1));
}

/// A point or comma between thousands is no decimal sign; and such numbers, the largest, are not lost.
#[test]
fn separators_of_thousands_are_refused() {
    let series = |text: &str| {
        read_series_from(&mut Cursor::new(text.as_bytes()), "t.csv", Some("lat_us"), None)
    };
    for text in [
        "lat_us,op\n\"1,234\",R\n567,R\n890,R\n",
        "lat_us\n1,234\n567\n890\n",
        "lat_us\n1,234\n5,678\n",
        "lat_us;op\n1.234;R\n567;R\n",
        "lat_us;op\n1.234,5;R\n567,5;R\n890,0;R\n",
        "lat_us;op\n1'234;R\n567;R\n890;R\n",
        "lat_us;op\n1\u{202f}234;R\n567;R\n890;R\n",
        "lat_us\n1,234,567\n890\n891\n",
    ] {
        let message = series(text).unwrap_err().to_string();
        assert!(message.contains("separators of thousands"), "{text}: {message}");
    }
    for (text, first) in [
        ("lat_us;op\n1,234;R\n5,678;R\n", 1234.0),
        ("lat_us\n1.234\n5.678\n", 1234.0),
        ("lat_us\n1.234\n567\n0.5\n", 1234.0),
        ("lat_us\n1.234\n5678\n", 1234.0),
    ] {
        assert_eq!(series(text).unwrap().values[0], first, "{text}");
    }
    let columns = Some("response_us=1,op=2");
    let message = parse("1.234;R\n567;R\n", columns).unwrap_err();
    assert!(message.contains("separators of thousands"), "{message}");
    // A part of a sector is no place.
    let columns = Some("offset_sectors=1,size=2,op=3");
    let recorded = parse("8;512;R\n1,234;512;R\n16;512;R\n", columns).unwrap();
    assert_eq!((recorded.ios.len(), recorded.odd.count), (2, 1));
}

#[test]
fn comments_before_a_table_are_no_head() {
    let text = "# tool 1.0\n#\nsep=,\nlat_us,op\n12,R\n15,W\n";
    let read = read_series_from(&mut Cursor::new(text.as_bytes()), "t", Some("lat_us"), None);
    assert_eq!(*read.unwrap().values, [12_000.0, 15_000.0]);
    let text = "Attaching 4 probes...\nTracing block I/O. Hit Ctrl-C to end.\n\
                TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n0.1 a 1 sda R 8 512 1.0\n";
    let recorded = parse(text, None).unwrap();
    assert_eq!((recorded.format, recorded.odd.count), ("biosnoop", 0));
}

#[test]
fn utf_16_is_read_and_other_packings_are_named() {
    let folder = std::env::temp_dir().join(format!("uflip-known-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let read_bytes = |bytes: &[u8]| {
        let path = folder.join("trace");
        std::fs::write(&path, bytes).unwrap();
        read(&path, &ReadOptions::default()).map_err(|error| error.to_string())
    };
    let lines = "1,h😀,0,Read,0,512,1\r\n2,h😀,0,Write,512,512,1\r\n".repeat(3000);
    let text = format!("\u{feff}{lines}");
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for bytes in [&little, &big] {
        let recorded = read_bytes(bytes).unwrap();
        assert_eq!((recorded.ios.len(), &recorded.sources[..]), (6000, &["h😀.0".to_owned()][..]));
    }
    let mut tar = vec![0; 512];
    tar[257..262].copy_from_slice(b"ustar");
    for (bytes, got) in [
        (&b"1,h,0,Read,0,512,1\n".map(|letter| [letter, 0]).concat()[..], "UTF-16 without"),
        (b"BZh91AY&SY\xff\x00", "bzip2 -dc"),
        (b"\xfd7zXZ\x00", "xz -dc"),
        (b"PK\x03\x04\x00", "unzip"),
        (&tar, "tar -xf"),
        (b"\n\n", "no data"),
        (&zstd::encode_all(&b"1,h,0,Read,0,512,1\n"[..], 3).unwrap()[..20], "readable part"),
        (b"\x07\x00\xff\x00\x00", "not text"),
    ] {
        let message = read_bytes(bytes).unwrap_err();
        assert!(message.contains(got), "{got}: {message}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn outputs_without_ios_are_refused_by_name() {
    for (text, got, action) in [
        ("rd: (groupid=0, jobs=1): err= 0: pid=1\n", "report of fio", "--output-format=json"),
        ("{\n  \"fio version\" : \"fio-3.1\",\n", "JSON results of fio", "uflip show"),
        ("1+0 records in\n1+0 records out\n", "dd", "one rate"),
        (" Timing cached reads: 9 MB in 1.9 seconds = 9.3 MB/sec\n", "hdparm", "rates"),
        ("4 KiB <<< . (ext4): request=1 time=84.1 us\n", "ioping", "grep -o"),
        ("\tIozone: Performance Test\n", "iozone", "rates"),
        ("sysbench 1.0.20\nLatency (ms):\n", "sysbench", "percentiles"),
        ("Device r/s rkB/s %util\nsda 1 2 3\n", "iostat", "-o JSON"),
        ("Smart Log for NVME\ndata_units_written : 5\n", "SMART log", "-o json"),
        ("{\n \"ata_smart_attributes\": {\n", "ATA drive", "NVMe"),
        ("usecs : count distribution\n 64 -> 127 : 1 |**|\nx : count\n", "biolatency", "biosnoop"),
        ("@usecs:\n[32, 64)  2 |@@  |\n", "histogram of bpftrace", "biosnoop"),
        ("Command Line: diskspd -b4K\n", "diskspd", "-Rxml"),
        ("Input parameters:\n\n\ttimespan:   1\n\t-------\n", "report of diskspd", "-Rxml"),
        (
            "\u{feff}a: (g=0): rw=read, bs=(R) 4096B, ioengine=sync\nfio-3.33\n",
            "report of fio",
            "json",
        ),
        ("fio: pid=9, err=84/file:io_u.c:2141, func=done, error=x\n", "messages of fio", "again"),
        ("md5: verify failed at file a offset 0, length 4096\n", "messages of fio", "wrong data"),
        ("<Results>\n<TimeSpan>\n", "XML results of diskspd", "uflip show"),
        ("<html>\nVdbench flatfile\n", "HTML", "formats.md"),
        ("tod Xfersize Reqrate\n", "vdbench", "rates"),
        ("[{\"x\": 1}]\n", "JSON of another program", "formats.md"),
    ] {
        let error = parse(text, None).unwrap_err();
        assert!(error.contains(got) && error.contains(action), "{text}: {error}");
        // Nor is it a column of numbers.
        let input = &mut Cursor::new(text.as_bytes());
        let error = read_series_from(input, "t", None, Some("us")).unwrap_err().to_string();
        assert!(error.contains(got), "{text}: {error}");
    }
}
