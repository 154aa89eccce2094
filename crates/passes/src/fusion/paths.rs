//! Paths between the operations of a block, along results and operands, also those inside of regions.

use melior::ir::operation::OperationLike;
use std::collections::HashMap;
use tc_dialects::mlir::{self, Blk, Op};

/// The block of an operation.
fn block_of<'c>(op: Op<'c>) -> Option<Blk<'c>> {
    op.block().map(mlir::block_ref)
}

/// Whether an operation in front of `second` needs a result of `first`. Both are in one block.
pub(super) fn is_used_between<'c>(first: Op<'c>, second: Op<'c>) -> bool {
    let Some(block) = block_of(first) else { return false };
    let users = mlir::results(first).into_iter().flat_map(mlir::uses);
    let mut users = users.filter_map(|(user, _)| mlir::ancestor_in(user, block));
    users.any(|user| user != second && mlir::is_before(user, second))
}

/// The operations between two of a block that the second one needs, in their order. `None` if one of them needs the
/// first one.
pub(super) fn needed_between<'c>(first: Op<'c>, second: Op<'c>) -> Option<Vec<Op<'c>>> {
    let block = block_of(first)?;
    let (mut needed, mut pending) = (HashMap::new(), vec![second]);
    while let Some(op) = pending.pop() {
        let mut needs_first = false;
        mlir::walk(op, &mut |inner| {
            for producer in mlir::operands(inner).into_iter().filter_map(mlir::defining_op) {
                needs_first |= producer == first;
                if block_of(producer) == Some(block)
                    && mlir::is_before(first, producer)
                    && needed.insert(mlir::op_key(producer), producer).is_none()
                {
                    pending.push(producer);
                }
            }
        });
        if needs_first && op != second {
            return None;
        }
    }
    let mut needed: Vec<_> = needed.into_values().collect();
    needed.sort_unstable_by(|a, b| mlir::is_before(*b, *a).cmp(&mlir::is_before(*a, *b)));
    Some(needed)
}
