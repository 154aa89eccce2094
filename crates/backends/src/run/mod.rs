//! Timing of calls, and comparison with files of expected results.

mod bench;
mod expected;

pub use bench::{Bench, sample};
pub use expected::check_expected;
