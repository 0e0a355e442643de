//! Flash: where everything lies, what may be done to it, what it counts, and how it wears out.
//!
//! ```text
//! plan      what an FTL that merges asks for, as a value
//! touched   which blocks one is about
//! places    where the pages of a merge unit lie
//! moves     which pages move, page by page or in rows
//! media     what an FTL may ask for; its array counts ─▶ nand        checks and applies
//!                                                   └──▶ wear_out    errors and failures, by laws of reliability
//! replaced  which block stands in for one that has failed
//! levelling which one does, so that all wear alike
//! done      what was done there, note by note
//! in_order  which page of a block holds what, where they are programmed in order
//! contents  what every page and block says of itself, also where power was cut
//! geometry  numbers of planes, blocks and pages
//! make      whether there is anything that a device need not have
//! ```

pub(crate) mod contents;
mod counted;
pub(crate) mod done;
pub(crate) mod fast_path;
pub(crate) mod geometry;
mod in_order;
pub(crate) mod levelling;
pub(crate) mod media;
pub(crate) mod moves;
pub(crate) mod nand;
pub(crate) mod places;
pub(crate) mod plan;
pub(crate) mod reliability;
pub(crate) mod replaced;
mod touched;
pub(crate) mod wear_out;
