//! The languages: one [`Program`](crate::Program) each.

pub mod axon;
pub mod hlo;
pub mod imap;
pub mod tc;
pub mod tml;
