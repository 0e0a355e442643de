//! Flash translation layers: they decide where every page lives and own the map.

mod page_map;
#[cfg(test)]
mod tests;

pub(crate) use page_map::{Collection, Item, PageMap, PageMapOptions};

/// The names of all FTLs.
pub const FTLS: [&str; 1] = ["page_map"];
