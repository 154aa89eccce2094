//! Loops over tiles, whose operations share one kernel: a block computes one tile after the other.

use super::{copy_elements, stored_buffers};
use crate::{
    convert::index_emitter::IndexMath,
    loops::{build_alloc, memref},
};
use melior::ir::{ValueLike, operation::OperationLike};
use tc_dialects::{
    imap::{AnyIndexed, Indexed},
    mlir::{self, Builder, Op, Val},
};

/// Whether an operation is independent loops over tiles.
pub(super) fn is_tiles(op: Op) -> bool {
    mlir::is(op, "scf.parallel") && op.result_count() == 0 && !operations(op).is_empty()
}

/// The operations with maps in an operation, in order.
fn operations<'c>(op: Op<'c>) -> Vec<AnyIndexed<'c>> {
    let mut found = Vec::new();
    mlir::walk(op, &mut |inner| found.extend(AnyIndexed::cast(inner)));
    found
}

/// The number of tiles.
pub(super) fn count<'c>(builder: &Builder<'c>, tiles: Op<'c>) -> Val<'c> {
    let index = builder.index_type();
    let operands = mlir::operands(tiles);
    let rank = operands.len() / 3;
    let along = (0..rank).map(|loop_| {
        let [lower, upper, step] = [0, 1, 2].map(|part| operands[part * rank + loop_]);
        builder.trip_count(lower, upper, step)
    });
    let product = |all, count| builder.value("arith.muli", &[all, count], index);
    along.reduce(product).unwrap_or_else(|| builder.index(1))
}

/// Copies the tiles of operands that several operations of a tile read, so that they are read once from
/// the memory of the device. In a kernel, memory that is allocated in a tile is shared by the threads of the block.
pub(super) fn stage(tiles: Op) {
    let operations = operations(tiles);
    let stored = stored_buffers(tiles);
    let reads = |op: &AnyIndexed, view: Op| {
        op.inputs().iter().any(|it| mlir::value_key(*it) == mlir::value_key(mlir::result(view, 0)))
    };
    let mut views = Vec::new();
    mlir::walk(tiles, &mut |op| {
        if mlir::is(op, "memref.subview") {
            views.push(op);
        }
    });
    for view in views {
        let (source, tile) = (mlir::operand(view, 0), mlir::result(view, 0));
        let shape = mlir::shape(tile.r#type());
        let readers: Vec<_> = operations.iter().filter(|op| reads(op, view)).collect();
        let is_local = mlir::defining_op(source).is_some_and(|it| mlir::is(it, "memref.alloc"));
        let [first, _, ..] = readers[..] else { continue };
        if is_local
            || stored.contains(&mlir::value_key(source))
            || stored.contains(&mlir::value_key(tile))
            || shape.iter().any(Option::is_none)
        {
            continue;
        }
        let builder = Builder::before(first.op()).located(view.location());
        let copy = build_alloc(&builder, memref(&shape, mlir::element_type(tile.r#type())));
        copy_elements(&builder, tile, copy);
        for op in readers {
            let places = mlir::operands(op.op()).into_iter().enumerate();
            let inits = op.inits().len();
            let last = mlir::operands(op.op()).len() - inits;
            let same = places.filter(|(place, value)| {
                *place < last && mlir::value_key(*value) == mlir::value_key(tile)
            });
            same.for_each(|(place, _)| mlir::set_operand(op.op(), place, copy));
        }
    }
}
