//! The shared library of the tools.

pub mod axon;
pub mod command_line;
pub mod conformance;
pub mod cost;
pub mod profile;
