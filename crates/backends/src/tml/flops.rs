//! How many floating-point operations `imap` operations perform.

use melior::ir::Module;
use tc_dialects::{
    imap::{CombinerKind, Generic},
    mlir::{self, Blk},
};
use tc_ir::{Context, map::Variable};

/// The floating-point operations of a module of `imap` operations with constant bounds: those of bodies
/// and epilogues, and one for each value that is combined.
pub fn flops(module: &Module) -> f64 {
    let ir = Context::new();
    let mut total = 0.0;
    mlir::walk(mlir::op_ref(module.as_operation()), &mut |op| {
        let Some(generic) = Generic::cast(op) else { return };
        let domain = generic.domain(&ir);
        let points = |variables: &[Variable]| -> f64 {
            let extent = |it: &Variable| {
                it.constant_interval(&ir).map_or(1.0, |it| it.hi as f64 - it.lo as f64 + 1.0)
            };
            variables.iter().map(extent).product()
        };
        let combines = generic.combiners().iter().any(|it| it.kind != CombinerKind::Assign);
        let (dims, ranges) = (points(&domain.dims), points(&domain.ranges));
        total += dims * ranges * (operations(generic.body()) + usize::from(combines)) as f64;
        total += dims * generic.epilogue().map_or(0, operations) as f64;
    });
    total
}

fn operations(block: Blk) -> usize {
    let names = ["arith.addf", "arith.subf", "arith.mulf", "arith.divf"];
    mlir::ops(block).into_iter().filter(|op| names.contains(&mlir::name(*op))).count()
}
