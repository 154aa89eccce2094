//! Counts the floating-point operations of `imap` operations.

use melior::ir::Module;
use tc_dialects::{
    imap::{CombinerKind, Generic},
    mlir::{self, Blk, Val},
};
use tc_ir::{Context, Var, map::Variable};

/// The floating-point operations of a module of `imap` operations with constant bounds: those of bodies
/// and epilogues, and one for each value that is combined.
pub fn flops(module: &Module) -> f64 {
    flops_with(module, &|_| None)
}

/// [`flops`] of a module whose bounds depend on runtime variables; `value` gives those that are known. A
/// variable whose bounds are unknown counts as one point.
pub fn flops_with(module: &Module, value: &dyn Fn(Val) -> Option<i64>) -> f64 {
    let ir = Context::new();
    let mut total = 0.0;
    mlir::walk(mlir::op_ref(module.as_operation()), &mut |op| {
        let Some(generic) = Generic::cast(op) else { return };
        let domain = generic.domain(&ir);
        let runtimes: Vec<_> = generic.runtimes().into_iter().map(value).collect();
        let known = |var| match var {
            Var::Runtime(number) => runtimes.get(number as usize).copied().flatten(),
            _ => None,
        };
        let points = |variables: &[Variable]| -> f64 {
            let extent = |it: &Variable| {
                let lower = ir.eval(it.lower?, &known).ok()?;
                let upper = ir.eval(it.upper?, &known).ok()?;
                Some((upper as f64 - lower as f64 + 1.0).max(0.0))
            };
            variables.iter().map(|it| extent(it).unwrap_or(1.0)).product()
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
