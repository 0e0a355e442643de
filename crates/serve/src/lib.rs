//! A simulated device as a real block device, in real time: an NBD server.
//!
//! ```text
//! client ⇄ socket ⇄ session ──requests──▶ device on the wall clock ─▶ time of the reply
//!          (listener,(bytes in, out) └─data──▶ data file ─▶ content of the reply
//!           connection)
//! ```
//!
//! The crate also contains a client: an export of any server as a device ([`client`]).
//!
//! The protocol is a state machine over bytes ([`session`]) without socket, device or clock, so
//! that any input of a peer stays there. The device ([`paced_device`]) is independent of the protocol. One
//! loop ([`server`]) connects them.

#![forbid(unsafe_code)]

mod client;
mod connection;
mod export_data;
mod listener;
mod paced_device;
mod request_recorder;
mod served_device;
mod server;
mod session;
mod statistics;
mod wire;

pub use client::NbdDevice;
pub use export_data::ExportData;
pub use listener::Listener;
pub use paced_device::{CompletedIo, FlashState, Model, PacedDevice, Slowdown, Wake};
pub use request_recorder::RequestRecorder;
pub use server::{Endpoints, ExportedDevice, ServeOutcome, serve};
pub use session::{LONGEST_OPTION, NbdCommand, Request, Session, SessionEvent};
pub use wire::{Export, LONGEST_DATA};
