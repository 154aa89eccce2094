//! TML: its evaluation rules as an interpreter, over exact numbers or floats.
//!
//! [`value`] has the domains of values with their arithmetic, [`interp`] the rules.

pub mod interp;
pub mod value;
