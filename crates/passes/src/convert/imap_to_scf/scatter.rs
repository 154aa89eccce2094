//! Loops of `imap.scatter`.
//!
//! The updates of one element are done in lexicographic order of the dimension variables. Two values of
//! a *free* variable update different elements: it is a plain subscript of each destination, or the
//! operation promises `unique`. The loops of the others are in the written order.
//!
//! Loops over free variables can be parallel. If they are inside of others, the outermost of them moves
//! to the front; if it is the innermost loop, in strips.
//!
//! Each condition is tested in the outermost loop in which it is known, so that rows have one test
//! and one load of their index, or tightens the loop over the last variable that it needs.

use super::nest::STRIP;
use crate::convert::loop_nest::{
    Choices,
    emit::Nest,
    outer::{Loop, if_enough_work, parallel_loops},
    scatter::{Updates, store, update, updates},
    schedule,
};
use tc_dialects::{
    imap::Scatter,
    mlir::{self, Builder},
    report::Report,
};
use tc_ir::{Var, expr::ceil_div};

/// The most strips of a loop that threads share.
const NUM_STRIPS: i64 = 16;

/// Replaces an `imap.scatter` on buffers by loops.
pub(super) fn convert<'c>(scatter: Scatter<'c>, choices: Choices) -> Result<(), Report<'c>> {
    let op = scatter.op();
    let Updates { nest, dims, free } = updates(scatter, choices)?;
    let dims = schedule::of_scatter(&nest, &dims, &free).map_err(Report::error)?;
    let builder = Builder::before(op);
    let scope = nest.outer_scope(&builder);
    let conditions: Vec<_> = (0..nest.domain.constraints.len()).collect();
    let (outer, inner) = in_threads(&nest, &dims, &free);
    let can = !outer.is_empty();
    if_enough_work(&nest, &builder, &scope, can, &mut |builder, scope, in_parallel| {
        if in_parallel {
            let count = outer.len();
            parallel_loops(&nest, builder, scope, &outer, count, &[], &mut |builder, scope| {
                update(&nest, builder, scope, &inner, &conditions, &store);
            });
        } else {
            update(&nest, builder, scope, &dims, &conditions, &store);
        }
    });
    mlir::erase(op);
    Ok(())
}

/// The loops that can be parallel, and the variables of those inside, for loops in this order.
fn in_threads(nest: &Nest, dims: &[Var], free: &[Var]) -> (Vec<Loop>, Vec<Var>) {
    let can = |var: &&Var| free.contains(var) && nest.bound_needs(**var).is_empty();
    let front = dims.iter().take_while(can).count().min(2);
    if 0 < front {
        // The innermost loop is left to vectors.
        let front = front.min(dims.len().max(2) - 1);
        let outer = dims[..front].iter().copied().map(Loop::over).collect();
        return (outer, dims[front..].to_vec());
    }
    let Some(first) = dims.iter().find(can) else { return (Vec::new(), dims.to_vec()) };
    if dims.last() != Some(first) {
        let inner = dims.iter().copied().filter(|var| var != first).collect();
        return (vec![Loop::over(*first)], inner);
    }
    let length = match nest.extent(*first) {
        Some(extent) => {
            let widths = nest.outputs.iter().map(|it| 8 * i64::from(mlir::byte_width(it.element)));
            let lanes = nest.choices.vector_bits / widths.min().unwrap_or(8).max(8);
            let lanes = lanes.max(1);
            ceil_div(extent, NUM_STRIPS * lanes) * lanes
        }
        None => STRIP,
    };
    (vec![Loop::strips(*first, length)], dims.to_vec())
}
