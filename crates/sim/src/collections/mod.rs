//! What the books of a device are kept in: sets, arrays that are large, orders.

pub(crate) mod bits;
pub mod huge;
pub(crate) mod lru;
