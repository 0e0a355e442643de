//! Files that are read although they are unusual, or refused by their name and with advice.

use std::io::Cursor;

use uflip_foreign::{ReadOptions, RecordedTrace, read, read_from, read_series_from};

fn parse(text: &str, columns: Option<&str>) -> Result<RecordedTrace, String> {
    let options = ReadOptions { columns: columns.map(str::to_owned), ..ReadOptions::default() };
    let read = read_from(&mut Cursor::new(text.as_bytes()), "trace", &options);
    read.map_err(|error| error.to_string())
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
