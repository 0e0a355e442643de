//! What the books of a device are kept in: sets, arrays that are large, orders, places that are free again, and numbers
//! that divide.

pub(crate) mod bits;
pub(crate) mod divisor;
pub mod huge;
pub(crate) mod lru;
pub(crate) mod slab;
