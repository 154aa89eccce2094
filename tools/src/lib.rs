//! What the binaries of this package share.

pub mod axon;
pub mod command_line;
pub mod conformance;
pub mod hlo;
pub mod imap;
pub mod tml;
