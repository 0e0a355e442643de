//! All external tests of the simulator as one program, so that its generic code is instantiated
//! once. `cargo test -p uflip-sim --test outside swarm::` runs the tests of one file or folder.

mod cache_wait;
mod device;
mod durability;
mod fingerprint;
mod open_channel;
mod schema;
mod snapshot;
mod swarm;
