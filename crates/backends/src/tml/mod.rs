//! TML: its evaluation rules as an interpreter.
//!
//! [`value`] has the domains of values with their arithmetic, and [`interp`] the rules; [`compare`] compares results
//! of compiled programs with the rules.

pub mod compare;
pub mod interp;
pub mod value;
