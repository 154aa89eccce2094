//! Analyses: they read the IR and change nothing.

pub mod index_exprs;
