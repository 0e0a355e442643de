//! *Where* the next page goes: write page allocators.

mod round_robin;

use uflip_core::{Error, Result};

use crate::blocks::Blocks;
use crate::geometry::{DieIdx, Geometry};

/// Chooses the die that takes the next page. Sees the books, knows no time.
pub(crate) trait Allocator: Send + std::fmt::Debug {
    /// The die that is next, whether or not it has a page.
    fn next(&self) -> DieIdx;
    /// Choose a die that has a page, and go on from there; `None` where no die has one.
    fn choose(&mut self, blocks: &Blocks) -> Option<DieIdx>;
    /// A copy with the same state, for a copy of the device.
    fn boxed_clone(&self) -> Box<dyn Allocator>;
}

impl Clone for Box<dyn Allocator> {
    fn clone(&self) -> Self {
        self.boxed_clone()
    }
}

type Make = fn(Geometry) -> Box<dyn Allocator>;

/// Every allocator by name.
const REGISTRY: [(&str, Make); 1] = [("round_robin", |geometry| {
    Box::new(round_robin::RoundRobin::new(geometry))
})];

/// The names of all allocators.
pub const ALLOCATORS: [&str; REGISTRY.len()] = {
    let mut names = [""; REGISTRY.len()];
    let mut index = 0;
    while index < REGISTRY.len() {
        names[index] = REGISTRY[index].0;
        index += 1;
    }
    names
};

pub(crate) fn by_name(name: &str, geometry: Geometry) -> Result<Box<dyn Allocator>> {
    let known = REGISTRY.iter().find(|(known, _)| *known == name);
    let (_, make) = known.ok_or_else(|| Error::unknown("allocator", name, &ALLOCATORS))?;
    Ok(make(geometry))
}
