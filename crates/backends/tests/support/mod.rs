//! Random TC programs, the check of one program, and what makes a failing one smaller.

pub mod check;
pub mod generator;
pub mod guard;
pub mod random;
pub mod scheduled;
pub mod schedules;
pub mod shrink;
