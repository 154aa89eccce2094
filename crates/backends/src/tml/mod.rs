//! TML: its evaluation rules as an interpreter, and compiled programs.
//!
//! [`value`] has the domains of values with their arithmetic, [`interp`] the rules, [`executable`]
//! compiled code with padding and without, [`flops`] what it calculates; [`compare`] holds the one to the
//! other.

pub mod compare;
pub mod executable;
pub mod flops;
pub mod interp;
pub mod value;
