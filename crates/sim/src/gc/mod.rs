//! *Whom* to collect: victim policies. *When* to collect is the FTL's and the device's question.

mod cyclic;

use uflip_core::{Error, Result};

use crate::blocks::Blocks;
use crate::geometry::BlockIdx;

/// Chooses the block whose valid pages are moved away next. Sees the books, changes nothing but
/// its own order of blocks, knows no time.
pub(crate) trait VictimPolicy: Send + std::fmt::Debug {
    /// `block` was filled up and may be chosen from now on.
    fn closed(&mut self, block: BlockIdx);
    /// The next victim; it leaves the pool. `None` where no block is closed.
    fn choose(&mut self, blocks: &Blocks) -> Option<BlockIdx>;
    /// A copy with the same state, for a copy of the device.
    fn boxed_clone(&self) -> Box<dyn VictimPolicy>;
}

impl Clone for Box<dyn VictimPolicy> {
    fn clone(&self) -> Self {
        self.boxed_clone()
    }
}

type Make = fn() -> Box<dyn VictimPolicy>;

/// Every policy by name.
const REGISTRY: [(&str, Make); 1] = [("cyclic", || Box::new(cyclic::Cyclic::default()))];

/// The names of all victim policies.
pub const VICTIM_POLICIES: [&str; REGISTRY.len()] = {
    let mut names = [""; REGISTRY.len()];
    let mut index = 0;
    while index < REGISTRY.len() {
        names[index] = REGISTRY[index].0;
        index += 1;
    }
    names
};

pub(crate) fn by_name(name: &str) -> Result<Box<dyn VictimPolicy>> {
    let known = REGISTRY.iter().find(|(known, _)| *known == name);
    let (_, make) = known.ok_or_else(|| Error::unknown("victim policy", name, &VICTIM_POLICIES))?;
    Ok(make())
}
