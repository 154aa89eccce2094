//! Passes that rewrite within a dialect.

pub mod infer_ranges;
