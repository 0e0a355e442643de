//! A simulated open-channel SSD: NAND, channels and a controller without a translation layer.
//!
//! ```text
//! FlashIo → pages → NAND checks and applies → threads, and timeline charges time → Completion with a status an address
//!           (commands)     (flash)               (threads)  (timeline)              (outstanding)
//! ```
//!
//! **Source**: uFLIP-OC (2017) §4–5 (DragonFire Card with the OX controller), and the public
//! sources of OX for details missing in the paper: one NAND command per page, the order of its
//! threads, and that a command to a busy LUN holds its channel.
//! **Faithful**: low and high pages of MLC; write-back, acknowledged when the data is in the card;
//! reads dominated by the transfer through the ECC; reads that wait for programs and are retried;
//! one submission path for all channels; a channel that its LUNs use in turn.
//! **Simplified**: planes of a LUN work together; no data is kept; the threads of OX are times, not
//! schedules; a low page can be read before the high page of its cells is written.
//! **Ambiguous**: the cause of the time between two LUNs of a channel. The paper says "overhead on
//! the DFC and OX controller"; here it is [`profile::ControllerPart::lun_switch_ns`], fitted.

mod commands;
mod device;
mod failures;
mod inspect;
mod outstanding;
mod profile;
mod threads;
mod wear;

pub use device::{BlockState, OpenChannelDevice};
pub use profile::OpenChannelProfile;
