//! `inline-calls`: build private functions where they are called.
//!
//! A GPU runs the kernels of one function, which launches them.
//!
//! Before:
//!
//! ```mlir
//! func.func private @g(%x: tensor<8xf32>) -> tensor<8xf32> {
//!   .. // %y
//!   return %y : tensor<8xf32>
//! }
//! func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
//!   %z = func.call @g(%x) : (tensor<8xf32>) -> tensor<8xf32>
//!   return %z : tensor<8xf32>
//! }
//! ```
//!
//! After:
//!
//! ```mlir
//! func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
//!   .. // %y
//!   return %y : tensor<8xf32>
//! }
//! ```
//!
//! Option: `max-operations`, how many operations a function may have afterwards.

use crate::analysis::calls::Calls;
use std::collections::HashMap;
use tc_dialects::{
    mlir::{self, Builder, Op, ValueMap},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::Report,
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "inline-calls",
    summary: "Build private functions where they are called",
    anchor: "builtin.module",
    options: &[PassOption {
        name: "max-operations",
        description: "How many operations a function may have afterwards",
        default: "1048576",
    }],
    dependent_dialects: &[],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let fail = |report: Report| {
        report.emit();
        Failure
    };
    let max_operations = pass.number("max-operations")?;
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    let calls = Calls::of(block);
    let order = calls.callees_first().map_err(fail)?;
    let mut by_caller: HashMap<usize, Vec<Op>> = HashMap::new();
    for (call, caller) in &calls.list {
        by_caller.entry(mlir::op_key(*caller)).or_default().push(*call);
    }
    let is_inlined = |function: &Op| mlir::is_private(*function);
    let mut sizes: HashMap<usize, i64> = HashMap::new();
    for function in &order {
        pass.enter(*function);
        let mut size = 0;
        mlir::walk(*function, &mut |_| size += 1);
        for call in by_caller.remove(&mlir::op_key(*function)).unwrap_or_default() {
            let Some(callee) = calls.callee(call).filter(is_inlined) else { continue };
            size += sizes[&mlir::op_key(callee)];
            if max_operations < size {
                let message = format!(
                    "more than {max_operations} operations are needed once calls are built in place"
                );
                return Err(fail(Report::op_error(call, message)));
            }
            inline_call(callee, call);
        }
        sizes.insert(mlir::op_key(*function), size);
    }
    order.into_iter().filter(is_inlined).for_each(mlir::erase);
    Ok(())
}

/// Replaces a call by the operations of the function.
pub(super) fn inline_call<'c>(function: Op<'c>, call: Op<'c>) {
    let Some(block) = mlir::body(function, 0) else { return };
    let mut map = ValueMap::default();
    for (argument, operand) in mlir::arguments(block).into_iter().zip(mlir::operands(call)) {
        map.insert(argument, operand);
    }
    let before = Builder::before(call);
    let end = mlir::terminator(block);
    for op in mlir::ops(block).into_iter().filter(|op| *op != end) {
        before.copy(op, &mut map);
    }
    let results = mlir::operands(end).into_iter();
    let results: Vec<_> = results.map(|value| map.get(value).unwrap_or(value)).collect();
    mlir::replace(call, &results);
}
