//! Flash: geometry, operations and their rules, counters, and wear.
//!
//! ```text
//! geometry     numbers of planes, blocks and pages
//! plan         the operations that a merging FTL requests, as a value
//! media        the operations of FTLs: it counts them ─▶ nand      checks and applies
//!                                                   └──▶ wear_out  errors and failures by random laws
//! reliability  bit errors by erases, age and page
//! replacement  the replacement of failed blocks, and page tables of blocks that are programmed in order
//! levelling    wear levelling by swapping blocks
//! contents     the content of every page and block, also after a power loss
//! fast_path    the specialization for minimal devices
//! ```

pub(crate) mod contents;
pub(crate) mod fast_path;
pub(crate) mod geometry;
pub(crate) mod levelling;
pub(crate) mod media;
pub(crate) mod nand;
pub(crate) mod plan;
pub(crate) mod reliability;
pub(crate) mod replacement;
pub(crate) mod wear_out;
