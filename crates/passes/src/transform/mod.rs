//! Passes that rewrite within a dialect.

pub mod fuse;
pub mod infer_ranges;
