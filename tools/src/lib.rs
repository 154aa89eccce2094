//! The shared library of the tools.

pub mod axon;
pub mod command_line;
pub mod conformance;
pub mod cost;
pub mod hlo;
pub mod imap;
pub mod profile;
pub mod tml;
