//! `copy-shared-destinations`: copy destinations and yielded tensors that are read later.
//!
//! An `imap.generic` that folds into its destination or writes a part of it cannot reuse the buffer of a
//! tensor that is read later. One-shot bufferization would insert a copy. But `eliminate-empty-tensors`
//! runs before it and follows destinations backwards without checking other uses. It may place the
//! tensor in the buffer of a result, where a copy is no longer possible. An explicit copy stops it
//! there. If the operation stores all of the destination without reading it, a new destination stands
//! in for the copy. The same holds for a tensor that a branch of `scf.if` yields and a later operation reads,
//! if it is computed or another branch computes one in its place: another branch may write to the buffer
//! of the result. A tensor that a branch yields twice is read later by the second result. A loop is like an operation that
//! folds into the tensors it carries: it starts from a copy of a tensor that is read later.
//!
//! Before:
//!
//! ```mlir
//! %b = imap.generic .. ins(%x : ..) outs(%a : tensor<4xf32>) ..
//! return %a, %b
//! ```
//!
//! After:
//!
//! ```mlir
//! %c = bufferization.alloc_tensor() copy(%a) : tensor<4xf32>
//! %b = imap.generic .. ins(%x : ..) outs(%c : tensor<4xf32>) ..
//! return %a, %b
//! ```

use melior::ir::{ValueLike, operation::OperationLike};
use std::collections::HashMap;
use tc_dialects::{
    imap::{self, AnyIndexed, Indexed},
    mlir::{self, Builder, Op, Val},
    pass::{Failure, PassInfo, PassRun},
};

/// The operands of `scf.for` before the tensors it carries.
const LOOP_BOUNDS: usize = 3;

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "copy-shared-destinations",
    summary: "Copy destinations and yielded tensors that are read later",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["arith", "bufferization", "tensor"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    // The operands in question by their place, and the place at which each value is used last.
    let (mut found, mut last_uses, mut place) = (Vec::new(), HashMap::new(), 0_usize);
    mlir::walk(pass.op, &mut |op| {
        place += 1;
        let operands = mlir::operands(op);
        let passed_on = mlir::is(op, "scf.yield")
            && mlir::parent(op).is_some_and(|parent| mlir::is(parent, "scf.if"));
        let first = match imap::destinations(op) {
            Some(inits) => operands.len() - inits.len(),
            None if passed_on => 0,
            // The buffer of a result of a loop may be that of the tensor it starts from.
            None if mlir::is(op, "scf.while") => 0,
            None if mlir::is(op, "scf.for") => LOOP_BOUNDS,
            // What canonicalization makes of branches that only pass on.
            None if mlir::is(op, "arith.select") => 1,
            None => operands.len(),
        };
        found.extend((first..operands.len()).map(|number| (place, op, number)));
        for operand in operands {
            last_uses.insert(mlir::value_key(operand), place);
        }
    });
    for (place, op, number) in found {
        pass.enter(op);
        let tensor = mlir::operand(op, number);
        let last = last_uses.get(&mlir::value_key(tensor)).copied().unwrap_or(0);
        let is_used_later = place < last || mlir::operands(op)[number + 1..].contains(&tensor);
        if (is_computed(tensor) || joins_computed(op, number)) && is_used_later {
            let is_read = imap::destinations(op).is_none_or(|inits| {
                let number = number + inits.len() - op.operand_count();
                AnyIndexed::cast(op).is_some_and(|it| it.reads_destination(number))
            });
            let new = if is_read {
                Builder::before(op).copy_tensor(tensor)
            } else {
                Builder::before(op).empty_like(tensor, mlir::element_type(tensor.r#type()))
            };
            mlir::set_operand(op, number, new);
        }
    }
    Ok(())
}

/// Whether a tensor comes from an operation of `imap`, so that it has a destination of its own.
fn is_computed(tensor: Val) -> bool {
    mlir::is_tensor(tensor.r#type())
        && mlir::defining_op(tensor).is_some_and(|op| imap::destinations(op).is_some())
}

/// Whether an operand of `scf.yield` is a tensor in whose place another branch yields one that it computes:
/// the buffer of the result may be that of the computed one.
fn joins_computed(op: Op, number: usize) -> bool {
    let Some(branch) = mlir::parent(op).filter(|parent| mlir::is(*parent, "scf.if")) else {
        return false;
    };
    mlir::is(op, "scf.yield")
        && mlir::is_tensor(mlir::operand(op, number).r#type())
        && (0..branch.region_count()).flat_map(|region| mlir::blocks(branch, region)).any(|block| {
            let yielded = mlir::terminator(block);
            yielded != op && is_computed(mlir::operand(yielded, number))
        })
}
