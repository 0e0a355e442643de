//! A simulated device as a real block device, in real time: an NBD server.
//!
//! ```text
//! client ⇄ socket ⇄ session ──requests──▶ device on the wall clock ─▶ time of the reply
//!          (listen,  (bytes in, out) └─data──▶ data file ─▶ content of the reply
//!           connection)
//! ```
//!
//! The crate also contains a client: an export of any server as a device ([`client`]).
//!
//! The protocol is a state machine over bytes ([`session`]) without socket, device or clock, so
//! that any input of a peer stays there. The device ([`paced`]) is independent of the protocol. One
//! loop ([`server`]) connects them.

#![forbid(unsafe_code)]

mod client;
mod connection;
mod data;
mod listen;
mod paced;
mod record;
mod server;
mod session;
mod statistics;
mod wire;

pub use client::NbdDevice;
pub use data::ExportData;
pub use listen::Listener;
pub use paced::{CompletedIo, FlashState, Model, Paced, Slowdown, Wake};
pub use record::RequestRecorder;
pub use server::{Endpoints, ExportedDevice, ServeOutcome, serve};
pub use session::{LONGEST_OPTION, NbdCommand, Request, Session, SessionEvent};
pub use wire::{Export, LONGEST_DATA};
