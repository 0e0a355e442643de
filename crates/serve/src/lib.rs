//! A simulated device as a real block device, in real time: an NBD server.
//!
//! ```text
//! client ⇄ socket ⇄ session ──requests──▶ device on the wall clock ─▶ when to answer
//!          (listen,  (bytes in, out) └─data──▶ where it is kept ─▶ what to answer
//!           connection)
//! ```
//!
//! The other end is here as well: an export of any server as a device ([`client`]).
//!
//! The protocol is a state machine over bytes ([`session`]), which touches no socket, no device and no
//! clock: what a peer can send ends in it. The device ([`paced`]) knows no protocol. One loop
//! ([`server`]) brings them together.

#![forbid(unsafe_code)]

mod client;
mod connection;
mod data;
mod export;
mod listen;
mod paced;
mod record;
mod server;
mod session;
mod statistics;
mod sync;
mod wire;

pub use client::NbdDevice;
pub use data::Data;
pub use export::{Export, LONGEST_DATA};
pub use listen::Listener;
pub use paced::{FlashNow, Model, Over, Paced, Slowdown, Wake};
pub use record::Recorder;
pub use server::{Device, Ended, Ways, serve};
pub use session::{Command, LONGEST_OPTION, Request, Session, Step};
