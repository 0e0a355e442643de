//! Blocks and what becomes of them: which are free, which of their pages count, who is filled next and who
//! is emptied next. Blocks one by one (`blocks`), a row of them over all planes (`stripes`), or groups (`units`).

pub(crate) mod alloc;
pub(crate) mod blocks;
pub(crate) mod free;
pub(crate) mod stripes;
#[cfg(test)]
mod tests;
pub(crate) mod units;
mod units_restore;
pub(crate) mod victim;
