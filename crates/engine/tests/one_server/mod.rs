//! A device whose completions can be computed by hand: one server, in virtual time, that takes a
//! constant time per I/O and serves requests in the order of arrival; and a run on it.

use serde_json::Value;
use uflip_core::{
    Bytes, Completion, Counters, Device, DeviceInfo, DeviceKind, Error, Io, Mode, Nanos, Result,
    Ticket,
};
use uflip_engine::{Control, PatternSpec, Trace, run};

pub const READ_NS: u64 = 100;
pub const WRITE_NS: u64 = 700;

pub struct OneServer {
    pub info: DeviceInfo,
    pub now: u64,
    pub free_at: u64,
    pub queue: std::collections::VecDeque<Completion<()>>,
    pub submitted: u64,
    pub fail_after: u64,
}

pub fn info(url: &str) -> DeviceInfo {
    DeviceInfo {
        url: url.into(),
        kind: DeviceKind::Sim,
        simulated: true,
        model: String::new(),
        serial: String::new(),
        firmware: String::new(),
        capacity_bytes: Bytes(1 << 30),
        sector_bytes: Bytes(512),
        clock: "virtual",
        io: "virtual".into(),
        data: "none",
        details: serde_json::Map::new(),
    }
}

impl OneServer {
    pub fn new() -> OneServer {
        let info = info("one-server");
        let queue = std::collections::VecDeque::new();
        OneServer { info, now: 17, free_at: 0, queue, submitted: 0, fail_after: u64::MAX }
    }
}

impl Device for OneServer {
    type Request = Io;
    type Status = ();
    type Breakdown = ();

    fn info(&self) -> &DeviceInfo {
        &self.info
    }
    fn now(&self) -> Nanos {
        Nanos(self.now)
    }
    fn wait_until(&mut self, t: Nanos) {
        self.now = self.now.max(t.0);
    }
    fn submit(&mut self, io: &Io) -> Result<Ticket> {
        if self.submitted == self.fail_after {
            return Err(Error::device("out of order"));
        }
        let ticket = Ticket(self.submitted);
        self.submitted += 1;
        let service = if io.mode == Mode::Read { READ_NS } else { WRITE_NS };
        self.free_at = self.free_at.max(self.now) + service;
        let completed = Nanos(self.free_at);
        let submitted = Nanos(self.now);
        self.queue.push_back(Completion {
            ticket,
            submitted,
            completed,
            breakdown: (),
            status: (),
        });
        Ok(ticket)
    }
    fn next_completion(&mut self, _: Nanos) -> Option<Nanos> {
        self.queue.front().map(|completion| completion.completed)
    }
    fn complete(&mut self) -> Result<Completion<()>> {
        let completion = self.queue.pop_front().expect("an I/O is outstanding");
        self.now = self.now.max(completion.completed.0);
        Ok(completion)
    }
    fn counters(&self) -> Option<Counters> {
        None
    }
    fn split(&self, _: usize) -> Result<Option<Vec<OneServer>>> {
        Ok(None)
    }
}

pub fn trace_of(spec: Value) -> Trace {
    trace_on(&mut OneServer::new(), spec)
}

pub fn trace_on(device: &mut (impl Device<Request = Io> + Send), spec: Value) -> Trace {
    let pattern = PatternSpec::parse(&spec.to_string()).unwrap();
    let pattern = pattern.resolve(Bytes(1 << 30), Bytes(512)).unwrap();
    let control = Control::new(pattern.streams.len());
    run(device, pattern, &control).unwrap()
}
