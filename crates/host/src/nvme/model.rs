//! A drive in memory that interprets the commands of a queue by the offsets of the specification,
//! for tests without a kernel. It shares no code with the encoding.
//!
//! The commands of one entry into the kernel are executed in reverse order: a drive may do so, and a
//! queue that relies on the order of its commands fails.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use uflip_core::Nanos;

use super::command::Command;
use super::transport::{CommandError, CommandQueue, Transport};

pub(crate) const BLOCK: usize = 4096;
pub(crate) const MDTS_EXPONENT: u8 = 5; // 128 KiB
pub(crate) const ZASL_EXPONENT: u8 = 3; // 32 KiB

const SUCCESS: u32 = 0;
const INVALID_OPCODE: u32 = 0x001;
const INVALID_FIELD: u32 = 0x002;
const FDP_DISABLED: u32 = 0x029;
const OUT_OF_RANGE: u32 = 0x080;
const BOUNDARY: u32 = 0x1B8;
const FULL: u32 = 0x1B9;
const INVALID_WRITE: u32 = 0x1BC;
const TOO_MANY_ACTIVE: u32 = 0x1BD;
const TOO_MANY_OPEN: u32 = 0x1BE;
const INVALID_TRANSITION: u32 = 0x1BF;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Empty = 1,
    Implicit = 2,
    Explicit = 3,
    Closed = 4,
    Full = 14,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ModelZone {
    pub(crate) state: State,
    pub(crate) pointer: u64,
}

/// What the drive supports.
#[derive(Clone, Debug)]
pub(crate) struct Format {
    pub(crate) blocks: u64,
    /// Size and capacity of a zone [blocks], open and active limit.
    pub(crate) zones: Option<(u64, u64, u32, u32)>,
    pub(crate) handles: Vec<u16>,
    pub(crate) metadata: u16,
    pub(crate) command_set: u8,
}

/// The state of the drive.
pub(crate) struct Model {
    pub(crate) format: Format,
    pub(crate) data: Vec<u8>,
    pub(crate) zones: Vec<ModelZone>,
    /// Blocks written by placement identifier; `None` without one.
    pub(crate) placed: BTreeMap<Option<u16>, u64>,
    /// Opcode, first block and double words 12 and 13 of each executed I/O command.
    pub(crate) log: Vec<(u8, u64, u32, u32)>,
    pub(crate) deallocated: Vec<(u64, u64)>,
    /// The status of all following commands, as after a reset of the controller.
    pub(crate) fails_with: Option<i32>,
}

#[derive(Clone)]
pub(crate) struct ModelDrive(pub(crate) Arc<Mutex<Model>>);

impl ModelDrive {
    pub(crate) fn new(format: Format) -> ModelDrive {
        let count = format.zones.map_or(0, |(size, ..)| format.blocks / size);
        let size = format.zones.map_or(0, |(size, ..)| size);
        let zone = |number| ModelZone { state: State::Empty, pointer: number * size };
        ModelDrive(Arc::new(Mutex::new(Model {
            data: vec![0; format.blocks as usize * BLOCK],
            zones: (0..count).map(zone).collect(),
            placed: BTreeMap::new(),
            log: vec![],
            deallocated: vec![],
            fails_with: None,
            format,
        })))
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

impl Model {
    fn identify(&self, cns: u32, set: u32, data: &mut [u8]) -> u32 {
        match (cns, set) {
            (0, _) => {
                put(data, 0, &self.format.blocks.to_le_bytes());
                data[26] = 1; // the second format
                put(data, 128, &(9u32 << 16).to_le_bytes());
                let exponent = BLOCK.trailing_zeros();
                put(data, 132, &(exponent << 16 | u32::from(self.format.metadata)).to_le_bytes());
            }
            (1, _) => {
                data[77] = MDTS_EXPONENT;
                let places = u32::from(!self.format.handles.is_empty());
                put(data, 96, &(places << 19).to_le_bytes());
                put(data, 520, &4u16.to_le_bytes());
            }
            // An EUI-64 of eight bytes comes before the command set.
            (3, _) => {
                put(data, 0, &[1, 8, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9]);
                put(data, 12, &[4, 1, 0, 0, self.format.command_set]);
            }
            (5, 2) if self.format.zones.is_some() => {
                let (size, _, open, active) = self.format.zones.unwrap();
                put(data, 4, &active.wrapping_sub(1).to_le_bytes());
                put(data, 8, &open.wrapping_sub(1).to_le_bytes());
                put(data, 2816 + 16, &size.to_le_bytes());
            }
            (6, 2) if self.format.zones.is_some() => data[0] = ZASL_EXPONENT,
            _ => return INVALID_FIELD,
        }
        SUCCESS
    }

    fn execute(&mut self, entry: &[u8]) -> u32 {
        let (opcode, start) =
            (entry[0], u64::from(word(entry, 40)) | u64::from(word(entry, 44)) << 32);
        let (cdw12, cdw13) = (word(entry, 48), word(entry, 52));
        let (address, length) = (long(entry, 24), word(entry, 36) as usize);
        if word(entry, 4) != 1 {
            return 0x00B;
        }
        self.log.push((opcode, start, cdw12, cdw13));
        match opcode {
            0x00 => SUCCESS,
            0x01 | 0x02 | 0x7D => {
                let blocks = u64::from(cdw12 & 0xFFFF) + 1;
                assert_eq!(length, blocks as usize * BLOCK, "NLB and the length of the data agree");
                // SAFETY: the queue keeps its memory valid until the command completes.
                let memory = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, length) };
                self.transfer(opcode, start, blocks, memory, cdw12, cdw13)
            }
            0x09 => {
                assert_eq!((word(entry, 40), word(entry, 44), length), (0, 4, 16));
                // SAFETY: as above.
                let range = unsafe { std::slice::from_raw_parts(address as *const u8, 16) };
                let (blocks, first) = (u64::from(word(range, 4)), long(range, 8));
                if first + blocks > self.format.blocks {
                    return OUT_OF_RANGE;
                }
                self.deallocated.push((first, blocks));
                self.data[first as usize * BLOCK..(first + blocks) as usize * BLOCK].fill(0);
                SUCCESS
            }
            0x12 if self.format.handles.is_empty() => FDP_DISABLED,
            0x79 => self.manage(start, cdw13 & 0xFF),
            _ => INVALID_OPCODE,
        }
    }

    fn transfer(
        &mut self,
        opcode: u8,
        start: u64,
        blocks: u64,
        memory: &mut [u8],
        cdw12: u32,
        cdw13: u32,
    ) -> u32 {
        if start + blocks > self.format.blocks {
            return OUT_OF_RANGE;
        }
        if memory.len() > (4096 << MDTS_EXPONENT) {
            return INVALID_FIELD;
        }
        if opcode == 0x02 {
            let at = start as usize * BLOCK;
            memory.copy_from_slice(&self.data[at..at + memory.len()]);
            return SUCCESS;
        }
        let mut at = start;
        if let Some((size, capacity, ..)) = self.format.zones {
            let number = (start / size) as usize;
            let ModelZone { state, pointer } = self.zones[number];
            if opcode == 0x7D
                && (!start.is_multiple_of(size) || memory.len() > (4096 << ZASL_EXPONENT))
            {
                return INVALID_FIELD;
            }
            at = if opcode == 0x7D { pointer } else { start };
            if state == State::Full {
                return FULL;
            }
            if at != pointer {
                return INVALID_WRITE;
            }
            if at + blocks > number as u64 * size + capacity {
                return BOUNDARY;
            }
            if let refused @ 1.. = self.open(number, State::Implicit) {
                return refused;
            }
            let zone = &mut self.zones[number];
            zone.pointer += blocks;
            if zone.pointer == number as u64 * size + capacity {
                zone.state = State::Full;
            }
        } else if opcode == 0x7D {
            return INVALID_OPCODE;
        }
        let placement = (cdw12 >> 20 & 0xF == 2).then_some((cdw13 >> 16) as u16);
        if placement.is_some_and(|handle| !self.format.handles.contains(&handle)) {
            return INVALID_FIELD;
        }
        *self.placed.entry(placement).or_default() += blocks;
        self.data[at as usize * BLOCK..][..memory.len()].copy_from_slice(memory);
        SUCCESS
    }

    /// Open a zone, and close an implicitly open one if there are too many.
    fn open(&mut self, number: usize, to: State) -> u32 {
        let (_, _, max_open, max_active) = self.format.zones.unwrap();
        let is_open = |zone: &ModelZone| matches!(zone.state, State::Implicit | State::Explicit);
        let state = self.zones[number].state;
        if matches!(state, State::Implicit | State::Explicit) {
            if to == State::Explicit {
                self.zones[number].state = to;
            }
            return SUCCESS;
        }
        let open = self.zones.iter().filter(|zone| is_open(zone)).count() as u32;
        let closed = self.zones.iter().filter(|zone| zone.state == State::Closed).count() as u32;
        if state == State::Empty && open + closed >= max_active {
            return TOO_MANY_ACTIVE;
        }
        if open >= max_open {
            let implicit = self.zones.iter().position(|zone| zone.state == State::Implicit);
            let Some(victim) = implicit else { return TOO_MANY_OPEN };
            self.zones[victim].state = State::Closed;
        }
        self.zones[number].state = to;
        SUCCESS
    }

    fn manage(&mut self, start: u64, action: u32) -> u32 {
        let Some((size, capacity, ..)) = self.format.zones else { return INVALID_OPCODE };
        if !start.is_multiple_of(size) {
            return INVALID_FIELD;
        }
        let number = (start / size) as usize;
        let state = self.zones[number].state;
        match (action, state) {
            (1, State::Implicit | State::Explicit | State::Closed) => {
                self.zones[number].state = State::Closed;
            }
            (2, _) => {
                self.zones[number] = ModelZone { state: State::Full, pointer: start + capacity }
            }
            (3, State::Full) | (1, _) => return INVALID_TRANSITION,
            (3, _) => return self.open(number, State::Explicit),
            (4, _) => self.zones[number] = ModelZone { state: State::Empty, pointer: start },
            _ => return INVALID_FIELD,
        }
        SUCCESS
    }

    /// Fill a report of zones or of placement handles.
    fn receive(&self, entry: &[u8], data: &mut [u8]) -> u32 {
        match (entry[0], self.format.zones) {
            (0x12, _) if !self.format.handles.is_empty() => {
                put(data, 14, &(self.format.handles.len() as u16).to_le_bytes());
                for (at, handle) in self.format.handles.iter().enumerate() {
                    put(data, 16 + 32 * at, &handle.to_le_bytes());
                }
            }
            (0x12, _) => return FDP_DISABLED,
            (0x7A, Some((size, capacity, ..))) => {
                assert_eq!((word(entry, 48) as usize + 1) * 4, data.len());
                let first = u64::from(word(entry, 40)) / size;
                let zones = &self.zones[first as usize..];
                put(data, 0, &(zones.len() as u64).to_le_bytes());
                for (at, zone) in zones.iter().enumerate().take(data.len() / 64 - 1) {
                    let entry = 64 + 64 * at;
                    data[entry] = 2;
                    data[entry + 1] = (zone.state as u8) << 4;
                    put(data, entry + 8, &capacity.to_le_bytes());
                    put(data, entry + 16, &((first + at as u64) * size).to_le_bytes());
                    put(data, entry + 24, &zone.pointer.to_le_bytes());
                }
            }
            _ => return INVALID_OPCODE,
        }
        SUCCESS
    }
}

fn outcome(status: u32) -> Result<(), CommandError> {
    if status == SUCCESS { Ok(()) } else { Err(CommandError::Status(status | 0x4000)) }
}

impl Transport for ModelDrive {
    fn admin(&self, command: Command, data: &mut [u8]) -> Result<(), CommandError> {
        let entry = command.entry();
        assert_eq!(entry[0], 6, "only Identify is an admin command here");
        let model = self.0.lock().unwrap();
        outcome(model.identify(word(&entry, 40) & 0xFF, word(&entry, 44) >> 24, data))
    }

    fn io(&self, command: Command, data: &mut [u8]) -> Result<(), CommandError> {
        let mut model = self.0.lock().unwrap();
        let entry = command.entry();
        if data.is_empty() {
            return outcome(model.execute(&entry));
        }
        outcome(model.receive(&entry, data))
    }

    fn queue(&self, depth: u32, _: bool) -> io::Result<Box<dyn CommandQueue>> {
        assert!(depth > 0);
        Ok(Box::new(ModelQueue { drive: self.clone(), pending: vec![], done: vec![] }))
    }
}

struct ModelQueue {
    drive: ModelDrive,
    pending: Vec<(u32, [u8; 80])>,
    done: Vec<(u32, i32)>,
}

impl CommandQueue for ModelQueue {
    fn push(&mut self, tag: u32, command: &Command) -> io::Result<()> {
        self.pending.push((tag, command.entry()));
        Ok(())
    }

    fn enter(&mut self, completions: usize) -> io::Result<()> {
        let mut model = self.drive.0.lock().unwrap();
        for (tag, entry) in self.pending.drain(..).rev() {
            let result = model.fails_with.unwrap_or_else(|| match model.execute(&entry) {
                SUCCESS => 0,
                status => (status | 0x4000) as i32, // do not retry
            });
            self.done.push((tag, result));
        }
        assert!(self.done.len() >= completions, "the queue waits for a command that it never sent");
        Ok(())
    }

    fn enter_until(&mut self, _: Nanos) -> io::Result<()> {
        self.enter(0)
    }

    fn holds_completions(&mut self) -> bool {
        false
    }

    fn drain(&mut self, found: &mut Vec<(u32, i32)>) {
        found.append(&mut self.done);
    }
}
