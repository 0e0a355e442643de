//! Data structures of the device tables: bit sets, large arrays, LRU orders, slabs, and fast
//! divisors.

pub(crate) mod bits;
pub(crate) mod divisor;
pub mod huge;
pub(crate) mod lru;
pub(crate) mod slab;
