//! Energy that a simulated device has used, by cause.

/// A cause of used energy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // explained in docs/explanation/energy.md
pub enum EnergyCause {
    CellRead,
    CellProgram,
    ReadToModify,
    Relocation,
    Merge,
    Erase,
    Metadata,
    Mapping,
    Retry,
    Scrub,
    Transfer,
    Controller,
    Memory,
    Idle,
}

/// Energy since the creation of a device, by cause [nJ].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Energy([u64; Energy::NAMES.len()]);

impl Energy {
    /// The names of the causes as counters, in the order of [`EnergyCause`].
    pub const NAMES: [&'static str; 14] = [
        "energy_cell_read_nj",
        "energy_cell_program_nj",
        "energy_read_to_modify_nj",
        "energy_relocation_nj",
        "energy_merge_nj",
        "energy_erase_nj",
        "energy_metadata_nj",
        "energy_mapping_nj",
        "energy_retry_nj",
        "energy_scrub_nj",
        "energy_transfer_nj",
        "energy_controller_nj",
        "energy_memory_nj",
        "energy_idle_nj",
    ];

    /// Add `nanojoules` to a cause; more than a counter holds (580 years of 1 kW) stays the maximum.
    pub fn add(&mut self, cause: EnergyCause, nanojoules: u128) {
        let used = &mut self.0[cause as usize];
        *used = used.saturating_add(u64::try_from(nanojoules).unwrap_or(u64::MAX));
    }

    /// Return the energy of a cause [nJ].
    #[must_use]
    pub fn nanojoules(&self, cause: EnergyCause) -> u64 {
        self.0[cause as usize]
    }

    /// Return all names and values [nJ].
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Energy::NAMES.into_iter().zip(self.0)
    }

    /// Return the energy used since `before`.
    #[must_use]
    pub fn since(&self, before: &Energy) -> Energy {
        let mut used = *self;
        used.0.iter_mut().zip(before.0).for_each(|(now, before)| *now -= before);
        used
    }
}
