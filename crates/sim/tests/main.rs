//! The simulator from outside, as one program: what it instantiates of the simulator's generic code is compiled once.
//! `cargo test -p uflip-sim --test outside swarm::` runs what is in one file or folder.

mod cache_wait;
mod device;
mod durability;
mod fingerprint;
mod open_channel;
mod schema;
mod snapshot;
mod swarm;
