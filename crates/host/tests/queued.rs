//! The queue on a file: at any depth, every I/O completes once, with its data in the right place.
//! Failures are reported and leave no I/O outstanding. Skipped without io_uring.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use uflip_core::{Bytes, Device, Durability, ErrorKind, Io, Mode, Nanos};
use uflip_host::{Data, DirectDevice, FileOptions, QueuedDevice, now, open_file};

const SIZE: u64 = 1 << 20;
const IO: u64 = 4096;

struct TemporaryTarget {
    _folder: tempfile::TempDir,
    path: PathBuf,
    device: DirectDevice,
}

/// Create and open a file of [`SIZE`], through the page cache because it may be in memory.
fn target() -> TemporaryTarget {
    let folder = tempfile::tempdir().expect("create a temporary folder");
    let path = folder.path().join("target");
    let options = FileOptions {
        writable: true,
        buffered: true,
        data: Data::Random,
        size: Some(Bytes(SIZE)),
        destroy: None,
    };
    let name = path.to_str().expect("the path is UTF-8").to_owned();
    let (mut device, growth) = open_file(&name, options, &|| false).expect("create the file");
    for io in growth.expect("a new file must grow").writes() {
        device.submit(&io).expect("the I/O is accepted");
        device.complete().expect("the I/O succeeds");
    }
    device.update_allocated_size();
    TemporaryTarget { _folder: folder, path, device }
}

fn queue(target: &TemporaryTarget, depth: u64) -> Option<QueuedDevice> {
    match QueuedDevice::new(&target.device, depth, IO) {
        Ok(queue) => Some(queue),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            println!("skipped: {error}");
            None
        }
    }
}

fn io(number: u64, mode: Mode) -> Io {
    Io { offset: Bytes(number * IO % SIZE), size: Bytes(IO), mode, stream: 0 }
}

#[test]
fn every_io_completes_once_in_time_order() {
    let target = target();
    for depth in [1, 2, 32, 1024] {
        let Some(mut queue) = queue(&target, depth) else { return };
        assert!(queue.info().io.starts_with("io_uring"), "{}", queue.info().io);
        let (mut submitted, mut completed) = (Vec::new(), Vec::new());
        let (mut outstanding, mut number, mut last) = (0, 0, Nanos(0));
        while completed.len() < 3000 {
            if outstanding < depth && number < 3000 {
                let mode = if number % 3 == 0 { Mode::Write } else { Mode::Read };
                submitted.push(queue.submit(&io(number * 7, mode)).expect("the I/O is accepted"));
                (outstanding, number) = (outstanding + 1, number + 1);
                continue;
            }
            let due = queue.next_completion(Nanos(u64::MAX)).expect("an I/O is outstanding");
            let completion = queue.complete().expect("the I/O succeeds");
            assert_eq!(completion.completed, due);
            assert!(completion.completed >= last, "in the order of time");
            assert!(completion.completed > completion.submitted);
            (outstanding, last) = (outstanding - 1, completion.completed);
            completed.push(completion.ticket);
        }
        assert_eq!(queue.next_completion(Nanos(u64::MAX)), None);
        completed.sort();
        assert_eq!(completed, submitted);
    }
}

#[test]
fn written_data_is_read_back() {
    let target = target();
    let zeros = vec![0; SIZE as usize];
    write(&target.path, 0, &zeros);
    let Some(mut queue) = queue(&target, 8) else { return };
    queue_all(&mut queue, (0..64).map(|number| io(2 * number, Mode::Write)), 8);
    let content = std::fs::read(&target.path).expect("open the file");
    for (number, part) in content.chunks(IO as usize).take(128).enumerate() {
        let is_written = part.iter().any(|byte| *byte != 0);
        assert_eq!(is_written, number % 2 == 0, "I/O {number}");
    }
}

#[test]
fn wait_ends_at_the_next_due_io() {
    let target = target();
    let Some(mut queue) = queue(&target, 4) else { return };
    for pause in [0, 50_000, 3_000_000] {
        queue.submit(&io(0, Mode::Read)).expect("the I/O is accepted");
        let due = now() + Nanos(pause);
        match queue.next_completion(due) {
            Some(at) => assert!(at <= due),
            None => assert!(now() >= due),
        }
        queue.complete().expect("the I/O succeeds");
    }
}

#[test]
fn failure_is_reported_and_outstanding_ios_are_drained() {
    let mut target = target();
    let Some(mut queued) = queue(&target, 4) else { return };
    OpenOptions::new().write(true).open(&target.path).unwrap().set_len(SIZE / 2).unwrap();
    for number in [0, 1, 200, 2] {
        queued.submit(&io(number, Mode::Read)).expect("the I/O is accepted");
    }
    let mut failed = 0;
    while queued.next_completion(Nanos(u64::MAX)).is_some() {
        if let Err(error) = queued.complete() {
            failed += 1;
            assert_eq!(error.kind(), ErrorKind::Device);
            assert!(error.to_string().contains("at byte 819200"), "{error}");
        }
    }
    assert_eq!(failed, 1);
    // A queue that is dropped with outstanding I/Os waits for them.
    queued.submit(&io(0, Mode::Read)).expect("the I/O is accepted");
    drop(queued);
    target.device.set_durability(Durability::Flush(8.try_into().expect("a positive number")));
    let error = QueuedDevice::new(&target.device, 4, IO).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

fn queue_all(queue: &mut QueuedDevice, ios: impl Iterator<Item = Io>, depth: usize) {
    let mut outstanding = 0;
    for io in ios {
        if outstanding == depth {
            queue.complete().expect("the I/O succeeds");
            outstanding -= 1;
        }
        queue.submit(&io).expect("the I/O is accepted");
        outstanding += 1;
    }
    for _ in 0..outstanding {
        queue.complete().expect("the I/O succeeds");
    }
}

fn write(path: &Path, offset: u64, data: &[u8]) {
    let file = OpenOptions::new().write(true).open(path).expect("open the file");
    file.write_all_at(data, offset).expect("write the file");
}
