//! What the binaries of this package share.

pub mod conformance;
