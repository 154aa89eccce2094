//! `parallelize-copies`: large copies between buffers become operations of `imap`, of which each thread does a part.
//!
//! One thread that copies what others have written waits for each line, and the others wait for it.
//!
//! Before, with `parallel-threshold=65536`:
//!
//! ```mlir
//! memref.copy %a, %b : memref<64x64xf32> to memref<64x64xf32>
//! ```
//!
//! After:
//!
//! ```mlir
//! imap.generic (d0, d1) domain: d0 in [0, 63], d1 in [0, 63] ins(%a[d0, d1] : memref<64x64xf32>)
//!     outs(%b[d0, d1] : memref<64x64xf32>) {
//! ^bb0(%x: f32):
//!   imap.yield %x : f32
//! }
//! ```
//!
//! Copies of dynamic sizes, and those inside of parallel loops, stay.

use crate::{
    analysis::cost::{LOAD, WORD_BYTES, element_bytes},
    loops::is_in_parallel,
};
use melior::ir::{ValueLike, operation::OperationLike};
use tc_dialects::{
    imap::View,
    mlir::{self, Builder, Op},
    pass::{Failure, PassInfo, PassOption, PassRun},
};
use tc_ir::Context;

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "parallelize-copies",
    summary: "Turn large copies of buffers into operations that threads share",
    anchor: "func.func",
    options: &[PassOption {
        name: "parallel-threshold",
        description: "Operations on registers below which a copy stays in one thread",
        default: "4194304",
    }],
    dependent_dialects: &["imap"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let threshold = pass.number("parallel-threshold")?;
    let mut copies = Vec::new();
    mlir::walk(pass.op, &mut |op| {
        if mlir::is(op, "memref.copy") && !is_in_parallel(op) {
            copies.push(op);
        }
    });
    for copy in copies {
        pass.enter(copy);
        let source = mlir::operand(copy, 0);
        let extents = mlir::shape(source.r#type()).into_iter();
        let Some(extents) = extents.collect::<Option<Vec<i64>>>() else { continue };
        // A load and a store per element.
        let first = (2 * LOAD * element_bytes(source)) as i64;
        let bytes = extents.iter().fold(first, |all, extent| all.saturating_mul(*extent));
        if threshold.saturating_mul(WORD_BYTES as i64) <= bytes {
            share(copy, &extents);
        }
    }
    Ok(())
}

fn share(copy: Op, extents: &[i64]) {
    let ir = Context::new();
    let operands = [0, 1].map(|number| mlir::operand(copy, number));
    let builder = Builder::before(copy).located(copy.location());
    View::of_whole_copy(&ir, extents, operands).build_copy(&ir, &builder);
    mlir::erase(copy);
}
