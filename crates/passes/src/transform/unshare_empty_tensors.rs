//! `unshare-empty-tensors`: every use of a `tensor.empty` gets one of its own, and every use of a
//! `bufferization.to_buffer` too.
//!
//! Common subexpression elimination makes one of all empty tensors of a type. One-shot
//! bufferization gives that one a single buffer, and the analysis of LLVM 22 does not see
//! that a value which was computed there in a branch is lost when another branch writes
//! there. With an empty tensor per use, right before it, there is nothing to lose, and each
//! chain of destinations can be given the buffer of a result.
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
//! A `bufferization.to_buffer` is a read of its tensor where it stands. Merged with an earlier one,
//! it would let the tensor be overwritten before the buffer is read.
//!
//! Uses by `tensor.dim` only ask for extents and keep the first one.

use tc_dialects::{
    mlir::{self, Builder, ValueMap},
    pass::{Failure, PassInfo, PassRun},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "unshare-empty-tensors",
    summary: "Give every use of tensor.empty and bufferization.to_buffer one of its own",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["tensor"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let mut empties = Vec::new();
    mlir::walk(pass.op, &mut |op| {
        if mlir::is(op, "tensor.empty") || mlir::is(op, "bufferization.to_buffer") {
            empties.push(op);
        }
    });
    for empty in empties {
        for (user, number) in mlir::uses(mlir::result(empty, 0)) {
            if !mlir::is(user, "tensor.dim") {
                let copy = Builder::before(user).copy(empty, &mut ValueMap::default());
                mlir::set_operand(user, number, mlir::result(copy, 0));
            }
        }
    }
    Ok(())
}
