//! Block management: free blocks, valid pages, which block is filled next and which is collected next. Blocks
//! are managed one by one (`blocks`), as a row over several planes (`stripes`), or in groups (`units`).

pub(crate) mod alloc;
pub(crate) mod blocks;
pub(crate) mod free;
pub(crate) mod stripes;
pub(crate) mod units;
pub(crate) mod victim;
