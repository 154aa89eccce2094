//! The language TML: tensor expressions without indices.

pub mod syntax;
