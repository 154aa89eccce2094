//! What the lowerings of operations with maps on buffers have in common: values of variables, the order of
//! loops, guards, accesses, and copies of bodies.

pub(in crate::convert) mod emit;
pub(in crate::convert) mod guards;
pub(in crate::convert) mod loops;
pub(in crate::convert) mod order;
pub(in crate::convert) mod outer;
pub(in crate::convert) mod partial_sums;
pub(in crate::convert) mod scan;
pub(in crate::convert) mod scatter;
pub(in crate::convert) mod schedule;
pub(in crate::convert) mod sort;
pub(in crate::convert) mod tiling;
pub(in crate::convert) mod vectors;
pub(in crate::convert) mod work;

use crate::loops::is_in_parallel;
use tc_dialects::{
    imap::{Generic, Scan, Scatter, Sort},
    mlir::{self, Op},
    pass::{Failure, PassOption, PassRun},
    report::Report,
};

/// The operations that become loops, or the code of GPU threads.
const CONVERTED: [&str; 4] = [Generic::NAME, Scan::NAME, Scatter::NAME, Sort::NAME];

/// The operations inside of another one that become loops or code.
pub(in crate::convert) fn converted(op: Op) -> Vec<Op> {
    let mut ops = Vec::new();
    mlir::walk(op, &mut |op| ops.extend(CONVERTED.contains(&mlir::name(op)).then_some(op)));
    ops
}

/// Does something with each of the operations, and reports all errors.
pub(in crate::convert) fn for_each<'c>(
    run: &PassRun<'c>,
    ops: Vec<Op<'c>>,
    apply: impl Fn(Op<'c>) -> Result<(), Report<'c>>,
) -> Result<(), Failure> {
    let mut result = Ok(());
    for op in ops {
        run.enter(op);
        if let Err(report) = apply(op) {
            report.emit_on(op);
            result = Err(Failure);
        }
    }
    result
}

/// How many dimension and range variables an operation may have.
pub const MAX_VARIABLES: usize = 64;

/// What the user chose.
#[derive(Copy, Clone, Debug)]
pub(in crate::convert) struct Choices {
    /// Make outermost loops parallel.
    pub parallel: bool,
    /// Operations on registers below which loops stay in one thread.
    pub parallel_threshold: u64,
    /// Keep floating-point operations as they are.
    pub strict_fp: bool,
    /// Bits of a vector register; 0 for no vectors.
    pub vector_bits: i64,
    /// Number of vector registers.
    pub vector_registers: i64,
    /// Bytes of the cache for panels of inputs; 0 for no prefetches.
    pub cache_bytes: u64,
}

impl Choices {
    /// Reads the choices from the options of a pass. A number that the pass does not have as an option is 0.
    ///
    /// # Errors
    /// An option expects a number, which is reported.
    pub fn of(run: &PassRun) -> Result<Self, Failure> {
        let number = |name| match run.options.has(name) {
            true => run.number_in(name, 0.., "a number"),
            false => Ok(0),
        };
        Ok(Self {
            parallel: run.options.flag("parallel"),
            parallel_threshold: number("parallel-threshold")?.unsigned_abs(),
            strict_fp: run.options.flag("strict-fp"),
            vector_bits: number("vector-bits")?,
            vector_registers: number("vector-registers")?,
            cache_bytes: number("cache-bytes")?.unsigned_abs(),
        })
    }

    /// Those for an operation: one level of loops is for threads.
    pub fn inside(self, op: Op) -> Self {
        let parallel = self.parallel && !is_in_parallel(op);
        Self { parallel, ..self }
    }
}

/// The options of [`Choices`] that several passes have.
pub(in crate::convert) const PARALLEL: PassOption = PassOption {
    name: "parallel",
    description: "Make the outermost loops over dimension variables scf.parallel",
    default: "false",
};
pub(in crate::convert) const PARALLEL_THRESHOLD: PassOption = PassOption {
    name: "parallel-threshold",
    description: "Operations on registers below which loops stay in one thread",
    default: "4194304",
};
pub(in crate::convert) const STRICT_FP: PassOption = PassOption {
    name: "strict-fp",
    description: "Neither reassociate nor contract floating-point operations",
    default: "false",
};
pub(in crate::convert) const VECTOR_BITS: PassOption = PassOption {
    name: "vector-bits",
    description: "Width of the vector registers of the target; 0 to emit no vectors",
    default: "512",
};
