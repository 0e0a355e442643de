//! The energy of flash operations and of the rest of a device.
//!
//! The meter counts operations by cause while the device works, and multiplies when the energy is
//! read. So all sums are exact integers, and a device without energy keys has no meter.
//!
//! ```text
//! cells       operations × energy of a read, program or erase
//! transfer    bytes on the channels × energy of a byte
//! controller  host commands × energy of a command
//! memory      power × time
//! idle        power × time
//! ```
//!
//! **Source**: Bjørling, Bonnet, Bouganim, Jónsson, uFLIP: Understanding the Energy Consumption of
//! Flash Devices (2010), for energy as a second metric; Grupp et al., Characterizing Flash Memory
//! (MICRO 2009), for energy per flash operation.
//! **Faithful**: background work uses energy even if no I/O waits for it.
//! **Simplified**: all pages of a block use the same energy. An operation counts when its die has
//! it, not at its end. Preconditioning uses none. A move that stays inside a die (copy-back) uses
//! the energy of a read and a program in proportion to its cell time.
//! **Ambiguous**: nothing.

use uflip_core::{Energy, EnergyCause};

use super::cells::CellTimes;
use super::op::{OpKind, OpSummary, Purpose};
use crate::keys::parameters;
use crate::timeline::breakdown::Cause;

parameters! {
    /// The table `[energy]`.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct EnergyPart {
        // A joule: far more than any page or block.
        #[serde(default)]
        read_nj: u64 = "0 to 1000000000; 0 without the key" in "nJ",
            "energy of reading a flash page from the cells of a die";
        #[serde(default)]
        program_nj: u64 = "0 to 1000000000; 0 without the key" in "nJ",
            "energy of programming a flash page: the mean of the pages that share cells";
        #[serde(default)]
        erase_nj: u64 = "0 to 1000000000; 0 without the key" in "nJ",
            "energy of erasing a block";
        #[serde(default)]
        transfer_pj_per_byte: u64 = "0 to 1000000000; 0 without the key" in "pJ per byte",
            "energy of a byte on a channel, spare area included";
        #[serde(default)]
        command_nj: u64 = "0 to 1000000000; 0 without the key" in "nJ",
            "energy of the controller for a command of the host";
        #[serde(default)]
        memory_mw: u64 = "0 to 1000000; 0 without the key" in "mW",
            "power of the controller's memory (DRAM), at all times";
        #[serde(default)]
        idle_mw: u64 = "0 to 1000000; 0 without the key" in "mW",
            "power of everything else while the device does nothing; all other energy adds to it";
    }
}

/// Causes of cell operations.
const CAUSES: [EnergyCause; 10] = [
    EnergyCause::CellRead,
    EnergyCause::CellProgram,
    EnergyCause::ReadToModify,
    EnergyCause::Relocation,
    EnergyCause::Merge,
    EnergyCause::Erase,
    EnergyCause::Metadata,
    EnergyCause::Mapping,
    EnergyCause::Retry,
    EnergyCause::Scrub,
];

/// Cell operations of one cause.
#[derive(Clone, Copy, Default, Debug, serde::Serialize, serde::Deserialize)]
struct CellOps {
    reads: u64,
    programs: u64,
    erases: u64,
    /// Cell time of moves that stay inside a die [ns].
    inside_ns: u64,
}

/// Counts of everything that uses energy, and its energy.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct EnergyMeter {
    part: EnergyPart,
    cells: [CellOps; CAUSES.len()],
    /// Channel transfers, and how many of them make a flash page of `page_bytes`.
    transfers: u64,
    transfers_per_page: u64,
    page_bytes: u64,
    /// Cell time of a read and a program [ns].
    move_ns: u64,
}

impl EnergyMeter {
    /// Create a meter for flash pages of `page_bytes`, each of `transfers_per_page` transfers.
    pub(crate) fn new(
        part: EnergyPart,
        page_bytes: u64,
        transfers_per_page: u64,
        times: &CellTimes,
    ) -> EnergyMeter {
        EnergyMeter {
            part,
            cells: Default::default(),
            transfers: 0,
            transfers_per_page: transfers_per_page.max(1),
            page_bytes,
            move_ns: times.mean_move_ns(),
        }
    }

    /// Count an operation; the rest of a suspended operation was counted with it.
    pub(super) fn count(&mut self, op: &OpSummary) {
        if op.is_remainder {
            return;
        }
        let cause = match (op.charge_as, op.purpose, op.kind) {
            (Some(Cause::Retry), ..) => EnergyCause::Retry,
            (_, Purpose::HostRead, _) => EnergyCause::CellRead,
            (_, Purpose::HostWrite, OpKind::Read) => EnergyCause::ReadToModify,
            (_, Purpose::HostWrite, _) => EnergyCause::CellProgram,
            (_, Purpose::Relocation, _) => EnergyCause::Relocation,
            (_, Purpose::Merge, _) => EnergyCause::Merge,
            (_, Purpose::Erase, _) => EnergyCause::Erase,
            (_, Purpose::Metadata, _) => EnergyCause::Metadata,
            (_, Purpose::Mapping, _) => EnergyCause::Mapping,
            (_, Purpose::Retry, _) => EnergyCause::Retry,
            (_, Purpose::Scrub, _) => EnergyCause::Scrub,
        };
        let ops = &mut self.cells[cause as usize];
        match op.kind {
            OpKind::Read => ops.reads += 1,
            OpKind::Program => ops.programs += 1,
            OpKind::Inside if op.purpose == Purpose::Erase => ops.erases += 1,
            OpKind::Inside => ops.inside_ns += op.cell_ns,
        }
        if op.kind != OpKind::Inside {
            self.transfers += u64::from(op.transfers);
        }
    }

    /// Return the energy of everything so far, of `commands` from the host, and of `elapsed_ns`.
    pub(crate) fn energy(&self, commands: u64, elapsed_ns: u64) -> Energy {
        let wide = u128::from;
        let EnergyPart { read_nj, program_nj, erase_nj, .. } = self.part;
        let mut energy = Energy::default();
        for (cause, ops) in CAUSES.into_iter().zip(&self.cells) {
            let moved = wide(ops.inside_ns) * (wide(read_nj) + wide(program_nj));
            let cells = wide(ops.reads) * wide(read_nj)
                + wide(ops.programs) * wide(program_nj)
                + wide(ops.erases) * wide(erase_nj)
                + moved / wide(self.move_ns.max(1));
            energy.add(cause, cells);
        }
        let bytes = wide(self.transfers) * wide(self.page_bytes) / wide(self.transfers_per_page);
        energy.add(EnergyCause::Transfer, bytes * wide(self.part.transfer_pj_per_byte) / 1000);
        energy.add(EnergyCause::Controller, wide(commands) * wide(self.part.command_nj));
        // A milliwatt for a nanosecond is a picojoule.
        energy.add(EnergyCause::Memory, wide(elapsed_ns) * wide(self.part.memory_mw) / 1000);
        energy.add(EnergyCause::Idle, wide(elapsed_ns) * wide(self.part.idle_mw) / 1000);
        energy
    }
}
