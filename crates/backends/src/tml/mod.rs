//! TML: its evaluation rules as an interpreter, and compiled programs.
//!
//! [`value`] has the domains of values with their arithmetic, [`interp`] the rules, and [`executable`]
//! compiled code with padding and without; [`compare`] compares the two.

pub mod compare;
pub mod executable;
pub mod interp;
pub mod value;
