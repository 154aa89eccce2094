//! Tiles: the blocks share the iterations of independent loops, and the threads of a block the points of each
//! operation in them.
//!
//! ```text
//! for the tiles of the block
//!   first operation, as if its block were the grid
//!   barrier
//!   second operation
//!   barrier
//! ```
//!
//! Memory that is allocated in a tile is shared memory of the block.

use super::{Grid, convert as convert_generic};
use crate::{
    convert::{
        index_emitter::IndexMath,
        loop_nest::{Choices, converted},
    },
    loops,
};
use melior::ir::{ValueLike, operation::OperationLike};
use std::rc::Rc;
use tc_dialects::{
    imap::Generic,
    mlir::{self, Builder, Op, ValueMap},
    pass::Failure,
    report::Report,
};

/// The outermost independent loops around an operation of a kernel.
pub(super) fn loops_around(op: Op) -> Option<Op> {
    let parent = mlir::parent(op)?;
    loops_around(parent).or_else(|| mlir::is(parent, "scf.parallel").then_some(parent))
}

/// Emits the code of the operations in independent loops, and erases the loops.
pub(super) fn convert<'c>(tiles: Op<'c>, grid: &Grid<'c>, choices: Choices) -> Result<(), Failure> {
    let builder = Builder::before(tiles);
    let others = converted(grid.kernel).len() - converted(tiles).len();
    if others != 0 || tiles.result_count() != 0 {
        let why = "is not all that its kernel does; give the loops a kernel of their own";
        return Err(fail(tiles, why));
    }
    let block = Grid {
        block: builder.index(0),
        num_blocks: builder.index(1),
        busy: 1,
        is_tile: true,
        exchanged: Rc::clone(&grid.exchanged),
        ..*grid
    };
    let operands = mlir::operands(tiles);
    let rank = operands.len() / 3;
    let index = builder.index_type();
    let mut total = builder.index(1);
    let counts: Vec<_> = (0..rank)
        .map(|number| {
            let [lower, upper, step] = [0, 1, 2].map(|part| operands[part * rank + number]);
            let count = builder.trip_count(lower, upper, step);
            total = builder.value("arith.muli", &[total, count], index);
            count
        })
        .collect();
    let body = mlir::body(tiles, 0).expect("loops have a body");
    let mut copies = Vec::new();
    loops::build_for(
        &builder,
        (grid.block, total, grid.num_blocks),
        &[],
        &mut |inside, tile, _| {
            let mut map = ValueMap::default();
            let mut left = tile;
            for number in (0..rank).rev() {
                let mut place = left;
                if 0 < number {
                    place = inside.value("arith.remui", &[left, counts[number]], index);
                    left = inside.value("arith.divui", &[left, counts[number]], index);
                }
                let step = operands[2 * rank + number];
                let offset = inside.value("arith.muli", &[place, step], index);
                let value = inside.add_index(offset, operands[number]);
                map.insert(mlir::arguments(body)[number], value);
            }
            let ops = mlir::ops(body);
            let (_, ops) = ops.split_last().expect("a terminator");
            copies.extend(ops.iter().map(|op| inside.copy(*op, &mut map)));
            Vec::new()
        },
    );
    mlir::erase(tiles);
    for copy in copies {
        let mut allocations = Vec::new();
        mlir::walk(copy, &mut |op| {
            if mlir::is(op, "memref.alloc") {
                allocations.push(op);
            }
        });
        let ops = converted(copy);
        for allocation in allocations {
            share(allocation, grid)?;
        }
        for op in ops {
            let Some(generic) = Generic::cast(op) else {
                let why = "cannot be computed in tiles; give it a kernel of its own";
                return Err(fail(op, why));
            };
            let builder = Builder::before(op);
            convert_generic(generic, &builder, &block, choices).map_err(|report| {
                report.emit_on(op);
                Failure
            })?;
            builder.op("gpu.barrier", &[], &[]);
            mlir::erase(generic.op());
        }
    }
    Ok(())
}

/// Gives an allocation in a tile shared memory of the block.
fn share<'c>(allocation: Op<'c>, grid: &Grid<'c>) -> Result<(), Failure> {
    let builder = Builder::before(allocation);
    let ty = mlir::result(allocation, 0).r#type();
    let Some(shape) = mlir::shape(ty).into_iter().collect::<Option<Vec<_>>>() else {
        let why = "needs memory of an unknown size in a tile, and shared memory has a static size";
        return Err(fail(allocation, why));
    };
    let shared = grid.shared_of_shape(&builder, mlir::element_type(ty), &shape);
    let memory = builder.value("memref.memory_space_cast", &[shared], ty);
    mlir::replace(allocation, &[memory]);
    Ok(())
}

fn fail(op: Op, why: &str) -> Failure {
    Report::op_error(op, why).emit();
    Failure
}
