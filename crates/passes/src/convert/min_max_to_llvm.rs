//! `convert-min-max-to-llvm`: minima and maxima of floats become intrinsics of LLVM.
//!
//! Upstream's `arith-expand`, which is needed for divisions that round down, also writes them
//! out as comparisons and selections that use each operand three times. LLVM 22 takes time
//! that is exponential in the length of a chain of them where its loop vectorizer finds that
//! the chain does not change in a loop. An intrinsic uses each operand once.
//!
//! ```mlir
//! %c = arith.maxnumf %a, %b : f32
//! // becomes
//! %c = llvm.intr.maxnum(%a, %b) : (f32, f32) -> f32
//! ```
//!
//! `arith.minnumf`, `arith.maximumf` and `arith.minimumf` likewise, on scalars and vectors.

use melior::ir::ValueLike;
use tc_dialects::{
    mlir::{self, Builder},
    pass::{Failure, PassInfo, PassRun},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "convert-min-max-to-llvm",
    summary: "Convert minima and maxima of floats to intrinsics of LLVM",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["llvm"],
    run,
};

const INTRINSICS: [(&str, &str); 4] = [
    ("arith.maximumf", "llvm.intr.maximum"),
    ("arith.maxnumf", "llvm.intr.maxnum"),
    ("arith.minimumf", "llvm.intr.minimum"),
    ("arith.minnumf", "llvm.intr.minnum"),
];

fn run(pass: &PassRun) -> Result<(), Failure> {
    let mut found = Vec::new();
    mlir::walk(pass.op, &mut |op| {
        let known = INTRINSICS.iter().find(|(name, _)| mlir::is(op, name));
        found.extend(known.map(|(_, intrinsic)| (op, *intrinsic)));
    });
    for (op, intrinsic) in found {
        let ty = mlir::result(op, 0).r#type();
        let value = Builder::before(op).value(intrinsic, &mlir::operands(op), ty);
        mlir::replace(op, &[value]);
    }
    Ok(())
}
