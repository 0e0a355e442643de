//! One program for all targets: `UFLIP_FUZZ_TARGET` selects the function of `uflip_fuzz::TARGETS`.
//!
//! A program per target would be built and linked six times, and each new target would need a file.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use uflip_fuzz::Target;

static TARGET: OnceLock<Target> = OnceLock::new();

fn target() -> Target {
    let name = std::env::var("UFLIP_FUZZ_TARGET").unwrap_or_default();
    let found = uflip_fuzz::TARGETS.iter().find(|(known, _)| *known == name);
    let known: Vec<&str> = uflip_fuzz::TARGETS.iter().map(|(known, _)| *known).collect();
    found.unwrap_or_else(|| panic!("UFLIP_FUZZ_TARGET is one of {known:?}, not '{name}'")).1
}

fuzz_target!(|data: &[u8]| {
    TARGET.get_or_init(target)(data);
});
