//! `unshare-empty-tensors`: give each use of `tensor.empty`, of a slice of one, and of `bufferization.to_buffer` its own
//! operation.
//!
//! Common subexpression elimination merges all empty tensors of one type. One-shot bufferization assigns
//! the merged tensor a single buffer. The analysis of LLVM 22 then misses that a value computed there in
//! one branch is lost if another branch writes to the buffer. With one empty tensor per use, directly
//! before it, no value can be lost, and each chain of destinations can use the buffer of a result.
//!
//! Before:
//!
//! ```mlir
//! %e = tensor.empty() : tensor<4xf32>
//! %a = imap.generic .. outs(%e : tensor<4xf32>) ..
//! %b = imap.generic .. outs(%e : tensor<4xf32>) ..
//! ```
//!
//! After:
//!
//! ```mlir
//! %e = tensor.empty() : tensor<4xf32>
//! %a = imap.generic .. outs(%e : tensor<4xf32>) ..
//! %f = tensor.empty() : tensor<4xf32>
//! %b = imap.generic .. outs(%f : tensor<4xf32>) ..
//! ```
//!
//! A `bufferization.to_buffer` reads its tensor at its position. Merged with an earlier one, it would
//! allow the tensor to be overwritten before the buffer is read.
//!
//! Uses by `tensor.dim` only query extents and keep the first operation.

use tc_dialects::{
    mlir::{self, Builder, Op, ValueMap},
    pass::{Failure, PassInfo, PassRun},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "unshare-empty-tensors",
    summary: "Give each use of tensor.empty, its slices and bufferization.to_buffer its own operation",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["tensor"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let (mut slices, mut others) = (Vec::new(), Vec::new());
    mlir::walk(pass.op, &mut |op| match mlir::name(op) {
        "tensor.extract_slice" if is_of_empty(op) => slices.push(op),
        "tensor.empty" | "bufferization.to_buffer" => others.push(op),
        _ => {}
    });
    // Each copy of a slice is a use of the empty tensor.
    slices.into_iter().chain(others).for_each(unshare);
    Ok(())
}

fn is_of_empty(slice: Op) -> bool {
    mlir::is_empty_tensor(mlir::operand(slice, 0))
}

fn unshare(op: Op) {
    for (user, number) in mlir::uses(mlir::result(op, 0)) {
        if !mlir::is(user, "tensor.dim") {
            let copy = Builder::before(user).copy(op, &mut ValueMap::default());
            mlir::set_operand(user, number, mlir::result(copy, 0));
        }
    }
}
