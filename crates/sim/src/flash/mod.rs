//! Flash: geometry, operations and their rules, counters, and wear.
//!
//! ```text
//! plan            the operations that a merging FTL requests, as a value
//! plan_blocks     the blocks that a plan uses
//! page_addresses  the addresses of the pages of a merge unit
//! moves           pages that move, page by page or in rows
//! media           the operations of FTLs; its array counts ─▶ nand      checks and applies
//!                                                         └──▶ wear_out  errors and failures by random laws
//! reliability     bit errors by erases, age and page
//! replacement     the replacement of failed blocks
//! levelling       wear levelling by swapping blocks
//! notes           notes of the operations executed on replaced blocks
//! in_order        the page tables of blocks that are programmed in order
//! contents        the content of every page and block, also after a power loss
//! counted         events that plans count, as merges
//! geometry        numbers of planes, blocks and pages
//! fast_path       the specialization for minimal devices
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
