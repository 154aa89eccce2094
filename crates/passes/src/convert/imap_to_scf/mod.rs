//! `convert-imap-to-scf`: operations with maps on buffers become nests of loops, and an `imap.sort`
//! loops that sort its rows (`sort.rs`).
//!
//! `scan.rs` has the loops of an `imap.scan`. Those of an `imap.generic` have one of three shapes,
//! chosen per operation by what the innermost loop would touch (`loop_nest/order.rs`):
//!
//! * *In registers*: loops over the dimension variables, inside them loops over the
//!   range variables that carry the folded values, then the epilogue and one store. For
//!   element-wise operations, and where a range variable is contiguous (dot products).
//! * *In rows*: where a dimension variable is contiguous in more operands than any
//!   range variable is (`C(m, n) +=! A(m, k) * B(k, n)`: `n`), its loop goes innermost.
//!   A stretch of it is initialized, accumulated in memory, and finished.
//! * *In vectors*: as in rows, with several rows and several vectors of each held in
//!   registers over the whole reduction, if the body is made of operations that work on
//!   vectors (`vectors/`).
//!
//! Loops over dimension variables become `scf.parallel` with `parallel=true`, the
//! outermost one or two of them, if there is enough work (`work.rs`).
//! A constraint of the domain tightens the innermost loop over a variable that it mentions, if
//! the points of that loop may be skipped and the variable occurs with the factor 1 or -1.
//! Otherwise it is tested inside. If it does not hold, an `assign` stores nothing. Guards split the
//! innermost loop, or are tested at each element (`loop_nest/guards.rs`).
//!
//! Long floating-point sums are divided into partial sums (`loop_nest/partial_sums.rs`). Allocations for
//! partial sums have the attribute `imap.scratch`.
//!
//! Buffers that stem from different arguments or allocations are declared distinct, so
//! that LLVM vectorizes without asking.
//!
//! Limits: at most `loop_nest::MAX_VARIABLES` variables; all floating-point sums and products
//! may be reassociated and contracted unless `strict-fp=true`.

mod collapse;
mod epilogue;
mod nest;
mod scan;
mod scatter;
mod sort;
mod vectors;
mod work;

use super::loop_nest::{CONVERTED, Choices};
use tc_dialects::{
    imap::{Generic, Scan, Scatter, Sort},
    mlir,
    pass::{Failure, PassInfo, PassOption, PassRun},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "convert-imap-to-scf",
    summary: "Turn operations of imap on buffers into loops",
    anchor: "func.func",
    options: &[
        PassOption {
            name: "parallel",
            description: "Make the outermost loops over dimension variables scf.parallel",
            default: "false",
        },
        PassOption {
            name: "parallel-threshold",
            description: "Operations below which loops stay in one thread",
            default: "262144",
        },
        PassOption {
            name: "strict-fp",
            description: "Neither reassociate nor contract floating-point operations",
            default: "false",
        },
        PassOption {
            name: "vector-bits",
            description: "Width of the vector registers of the target; 0 to emit no vectors",
            default: "512",
        },
        PassOption {
            name: "vector-registers",
            description: "Number of the vector registers of the target",
            default: "32",
        },
    ],
    dependent_dialects: &["arith", "memref", "scf", "vector"],
    run,
};

fn run(run: &PassRun) -> Result<(), Failure> {
    let choices = Choices {
        parallel: run.options.flag("parallel"),
        parallel_threshold: run
            .options
            .number("parallel-threshold")
            .and_then(|number| u64::try_from(number).ok())
            .unwrap_or(0),
        strict_fp: run.options.flag("strict-fp"),
        vector_bits: run.options.number("vector-bits").unwrap_or(0),
        vector_registers: run.options.number("vector-registers").unwrap_or(0),
    };
    let mut ops = Vec::new();
    mlir::walk(run.op, &mut |op| {
        if CONVERTED.contains(&mlir::name(op)) {
            ops.push(op);
        }
    });
    let mut failed = false;
    for op in ops {
        run.enter(op);
        // One level of loops is for threads.
        let parallel = choices.parallel && mlir::ancestor(op, "scf.parallel").is_none();
        let choices = Choices { parallel, ..choices };
        let generic = Generic::cast(op).map(|it| nest::convert(it, choices));
        let scan = || Scan::cast(op).map(|it| scan::convert(it, choices));
        let scatter = || Scatter::cast(op).map(|it| scatter::convert(it, choices));
        let sort = || Sort::cast(op).map(|it| sort::convert(it, choices));
        let converted = generic.or_else(scan).or_else(scatter).or_else(sort).unwrap_or(Ok(()));
        if let Err(report) = converted {
            report.emit_on(op);
            failed = true;
        }
    }
    if failed { Err(Failure) } else { Ok(()) }
}
