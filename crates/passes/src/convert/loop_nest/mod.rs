//! What the lowerings of operations with maps on buffers have in common: values of variables, the order of
//! loops, guards, accesses, and copies of bodies.

pub(in crate::convert) mod emit;
pub(in crate::convert) mod guards;
pub(in crate::convert) mod loops;
pub(in crate::convert) mod order;
pub(in crate::convert) mod partial_sums;
pub(in crate::convert) mod scan;
pub(in crate::convert) mod scatter;
pub(in crate::convert) mod sort;
pub(in crate::convert) mod vectors;

use tc_dialects::imap::{Generic, Scan, Scatter, Sort};

/// The operations that become loops, or the code of GPU threads.
pub(in crate::convert) const CONVERTED: [&str; 4] =
    [Generic::NAME, Scan::NAME, Scatter::NAME, Sort::NAME];

/// How many dimension and range variables an operation may have.
pub const MAX_VARIABLES: usize = 64;

/// What the user chose.
#[derive(Copy, Clone, Debug)]
pub(in crate::convert) struct Choices {
    /// Make outermost loops parallel.
    pub parallel: bool,
    /// Operations below which loops stay in one thread.
    pub parallel_threshold: u64,
    /// Keep floating-point operations as they are.
    pub strict_fp: bool,
    /// Bits of a vector register; 0 for no vectors.
    pub vector_bits: i64,
    /// Number of vector registers.
    pub vector_registers: i64,
}
