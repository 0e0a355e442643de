//! Verification of a run: of real devices by their data, of simulated ones by the versions of their
//! pages.

use std::collections::BTreeMap;

use uflip_core::content::Stamp;
use uflip_core::{Device as _, DeviceInfo, Error, Io, Mode, Result, SECTOR_BYTES_MIN};
use uflip_engine::verify::{Differences, ReadBack, WrittenUnits, describe};
use uflip_engine::{Control, Resolved};
use uflip_host::DirectDevice;
use uflip_serve::NbdDevice;
use uflip_sim::SimDevice;

use crate::any_device::AnyDevice;

/// The state before a run that is to be verified.
pub(crate) enum Verification {
    /// The data of real devices contains everything.
    Data(WrittenUnits),
    /// Of each page of a simulated device that the pattern writes: the expected version.
    Versions(BTreeMap<u32, u64>),
}

struct DirectData<'a>(&'a mut DirectDevice);

struct NbdData<'a>(&'a mut NbdDevice);

impl ReadBack for DirectData<'_> {
    fn info(&self) -> &DeviceInfo {
        self.0.info()
    }

    fn read_back(&mut self, io: &Io) -> Result<&[u8]> {
        self.0.read_back(io)
    }

    fn mark(&self, sectors: &mut [u8]) {
        self.0.mark_sectors(sectors);
    }
}

impl ReadBack for NbdData<'_> {
    fn info(&self) -> &DeviceInfo {
        self.0.info()
    }

    fn read_back(&mut self, io: &Io) -> Result<&[u8]> {
        self.0.read_back(io)
    }
}

impl Verification {
    /// Prepare the verification of a run of `pattern` on `device`.
    pub(crate) fn begin(device: &AnyDevice, pattern: &Resolved) -> Result<Verification> {
        let written = WrittenUnits::of_pattern(pattern)?;
        match device {
            AnyDevice::Null(null) => Err(Error::usage("The null device stores no data to verify")
                .at(&null.info().url)
                .action("name another device")),
            AnyDevice::Nvme(nvme) => {
                Err(Error::usage("A drive behind its own commands cannot be verified")
                    .at(&nvme.info().url)
                    .action("name its block device, such as /dev/nvme0n1"))
            }
            AnyDevice::Sim(sim) => expected_versions(sim, pattern).map(Verification::Versions),
            AnyDevice::Direct(_) | AnyDevice::Nbd(_) => Ok(Verification::Data(written)),
        }
    }

    /// Compare; return the number of sectors of 512 bytes.
    pub(crate) fn compare(self, device: &mut AnyDevice, control: &Control) -> Result<u64> {
        match (self, device) {
            (Verification::Data(written), AnyDevice::Direct(device)) => {
                let content = device.content().expect("a verified run determines the content");
                written.verify(&mut DirectData(device), &content, control)
            }
            (Verification::Data(written), AnyDevice::Nbd(device)) => {
                let content = device.content().expect("a verified run determines the content");
                written.verify(&mut NbdData(device), &content, control)
            }
            (Verification::Versions(expected), AnyDevice::Sim(sim)) => {
                compare_versions(sim, expected)
            }
            _ => unreachable!("the device is the one that was prepared"),
        }
    }
}

/// Return the version of each page after the run: the present one plus the writes of the pattern.
fn expected_versions(sim: &SimDevice, pattern: &Resolved) -> Result<BTreeMap<u32, u64>> {
    let page_bytes = sim.version_bytes();
    let mut expected = BTreeMap::new();
    for io in pattern.issued() {
        let pages = io.offset.0 / page_bytes..(io.offset.0 + io.size.0).div_ceil(page_bytes);
        for page in pages.map(|page| page as u32) {
            match io.mode {
                Mode::Write => {
                    if let Some(version) = expected.get_mut(&page) {
                        *version += 1;
                    } else {
                        expected.insert(page, sim.written_version(page)? + 1);
                    }
                }
                Mode::Trim => {
                    expected.remove(&page);
                }
                _ => {}
            }
        }
    }
    Ok(expected)
}

fn compare_versions(sim: &SimDevice, expected: BTreeMap<u32, u64>) -> Result<u64> {
    let page_bytes = sim.version_bytes();
    let is_wrong = sim.silent_errors();
    let mut differences = Differences::new(sim.info().url.clone());
    for (page, version) in expected {
        differences.count(page_bytes / SECTOR_BYTES_MIN);
        let at = u64::from(page) * page_bytes;
        let stamp = |version| Stamp { lba: at / SECTOR_BYTES_MIN, sequence: version, run: 0 };
        let found = sim.stored_version(page)?;
        if found != version {
            let found = if found == 0 { "no data".into() } else { describe(stamp(found)) };
            differences.add(at, stamp(version), found);
        } else if is_wrong(page, version) {
            differences.add(at, stamp(version), "damaged data".into());
        }
    }
    differences.into_result()
}
