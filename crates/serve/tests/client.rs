//! The client with several outstanding requests, against a server that a test controls. The bytes
//! are those of the NBD protocol (`doc/proto.md` of the reference implementation).

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;

use uflip_core::{Bytes, Device, Io, Mode, Nanos};
use uflip_serve::NbdDevice;

const MEBIBYTE: usize = 1 << 20;
const EXPORT_BYTES: u64 = 16 << 30;
/// `HAS_FLAGS`, `SEND_FLUSH`, `SEND_TRIM`.
const FLAGS: u16 = 1 | 1 << 2 | 1 << 5;

/// A request as the server received it.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    kind: u16,
    handle: u64,
    offset: u64,
    length: u32,
}

struct Server(UnixStream);

impl Server {
    /// Offer one export, as after `NBD_OPT_GO` without a name.
    fn accept(mut self) -> Server {
        self.0.write_all(b"NBDMAGICIHAVEOPT\0\x01").unwrap();
        let mut option = [0; 4 + 16 + 8];
        self.0.read_exact(&mut option).unwrap();
        let mut export = vec![0, 0];
        export.extend(EXPORT_BYTES.to_be_bytes());
        export.extend(FLAGS.to_be_bytes());
        self.option_reply(3, &export);
        self.option_reply(1, &[]);
        self
    }

    fn option_reply(&mut self, kind: u32, data: &[u8]) {
        let mut reply = 0x0003_e889_0455_65a9_u64.to_be_bytes().to_vec();
        reply.extend(7_u32.to_be_bytes());
        reply.extend(kind.to_be_bytes());
        reply.extend((data.len() as u32).to_be_bytes());
        reply.extend(data);
        self.0.write_all(&reply).unwrap();
    }

    fn request(&mut self) -> Request {
        let mut header = [0; 28];
        self.0.read_exact(&mut header).unwrap();
        assert_eq!(header[..4], 0x2560_9513_u32.to_be_bytes());
        let number = |at: usize| u64::from_be_bytes(header[at..at + 8].try_into().unwrap());
        let kind = u16::from_be_bytes([header[6], header[7]]);
        let length = u32::from_be_bytes(header[24..].try_into().unwrap());
        if kind == 1 {
            self.0.read_exact(&mut vec![0; length as usize]).unwrap();
        }
        Request { kind, handle: number(8), offset: number(16), length }
    }

    fn reply(&mut self, handle: u64, error: u32, data: usize) {
        let mut reply = 0x6744_6698_u32.to_be_bytes().to_vec();
        reply.extend(error.to_be_bytes());
        reply.extend(handle.to_be_bytes());
        reply.resize(reply.len() + data, 0);
        self.0.write_all(&reply).unwrap();
    }
}

/// Run a client and a server at the two ends of a connection.
fn connected<T: Send + 'static>(
    serve: impl FnOnce(Server) -> T + Send + 'static,
    client: impl FnOnce(NbdDevice),
) -> T {
    let (one, other) = UnixStream::pair().unwrap();
    let server = thread::spawn(move || serve(Server(other).accept()));
    client(NbdDevice::from_socket(one.into(), "test", true).unwrap());
    server.join().unwrap()
}

fn io(mode: Mode, index: u64, size: usize) -> Io {
    Io { offset: Bytes(index << 20), size: Bytes(size as u64), mode, stream: 0 }
}

const END: Nanos = Nanos(u64::MAX);

#[test]
fn replies_in_any_order_complete_their_requests() {
    connected(
        |mut server| {
            let requests: Vec<_> = (0..4).map(|_| server.request()).collect();
            for at in [2, 0, 3, 1] {
                server.reply(requests[at].handle, 0, requests[at].length as usize);
            }
        },
        |mut device| {
            let submit = |index| device.submit(&io(Mode::Read, index, 4096)).unwrap();
            let tickets: Vec<_> = (0..4).map(submit).collect();
            let mut last = Nanos(0);
            for at in [2, 0, 3, 1] {
                let time = device.next_completion(END).unwrap();
                let done = device.complete().unwrap();
                assert_eq!((done.ticket, done.completed), (tickets[at], time));
                assert!(done.submitted <= done.completed && last <= done.completed);
                last = done.completed;
            }
            assert_eq!(device.next_completion(END), None);
        },
    );
}

#[test]
fn server_that_waits_for_its_replies_to_be_received_gets_all_requests() {
    connected(
        |mut server| {
            // Neither end's socket holds 8 MiB: each reply waits until the client receives it.
            for _ in 0..8 {
                let read = server.request();
                server.reply(read.handle, 0, read.length as usize);
                let write = server.request();
                server.reply(write.handle, 0, 0);
            }
        },
        |mut device| {
            for index in 0..8 {
                device.submit(&io(Mode::Read, index, 8 * MEBIBYTE)).unwrap();
                device.submit(&io(Mode::Write, index, 8 * MEBIBYTE)).unwrap();
            }
            for _ in 0..16 {
                device.complete().unwrap();
            }
        },
    );
}

#[test]
fn failed_request_leaves_the_others() {
    connected(
        |mut server| {
            let [first, second] = [server.request(), server.request()];
            server.reply(second.handle, 5, 0);
            server.reply(first.handle, 0, 4096);
        },
        |mut device| {
            let first = device.submit(&io(Mode::Read, 0, 4096)).unwrap();
            device.submit(&io(Mode::Read, 9, 4096)).unwrap();
            let error = device.complete().unwrap_err().to_string();
            assert!(error.contains(&(9_u64 << 20).to_string()), "{error}");
            assert_eq!(device.complete().unwrap().ticket, first);
        },
    );
}

#[test]
fn broken_connection_is_the_error_of_the_oldest_request() {
    connected(
        |mut server| {
            let first = server.request();
            server.request();
            server.reply(first.handle, 0, 4096);
        },
        |mut device| {
            for index in [3, 5] {
                device.submit(&io(Mode::Read, index, 4096)).unwrap();
            }
            device.complete().unwrap();
            assert!(device.next_completion(END).is_some());
            let error = device.complete().unwrap_err().to_string();
            assert!(error.contains(&(5_u64 << 20).to_string()), "{error}");
            assert_eq!(device.next_completion(END), None, "nothing is outstanding");
        },
    );
}

#[test]
fn trim_of_several_gibibytes_takes_several_commands() {
    let trims = connected(
        |mut server| {
            let mut trims = Vec::new();
            for _ in 0..3 {
                let trim = server.request();
                server.reply(trim.handle, 0, 0);
                trims.push((trim.kind, trim.offset, trim.length));
            }
            trims
        },
        |mut device| device.trim(Bytes(0), Bytes(5 << 29)).unwrap(),
    );
    assert_eq!(trims, [(4, 0, 1 << 30), (4, 1 << 30, 1 << 30), (4, 2 << 30, 1 << 29)]);
}
