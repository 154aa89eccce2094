//! Passes between dialects.

pub mod tc_to_imap;
