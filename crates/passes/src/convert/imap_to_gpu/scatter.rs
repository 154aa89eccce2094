//! Scatters.
//!
//! The updates of one element are atomic, or one thread does them in order:
//!
//! * If no two points update the same element, a thread takes a point.
//! * If each destination is folded on its own, in any order, a thread takes a point and updates atomically: by
//!   an instruction where there is one, otherwise by comparing and exchanging until no other thread came
//!   between. Elements have 16, 32 or 64 bits.
//! * Otherwise threads share the values of the variables that separate elements, and each takes the other
//!   variables in order. So the last of several updates that replace an element wins.

use super::{Grid, Space};
use crate::convert::loop_nest::{
    Choices,
    emit::{Nest, Scope},
    order,
    scatter::{self, Updates},
};
use melior::ir::TypeLike;
use tc_dialects::{
    imap::{Accumulator, CombinerKind, Indexed, Scatter},
    mlir::{self, Builder},
    report::Report,
};

/// Emits the code of an `imap.scatter` on buffers.
pub(super) fn convert<'c>(
    scatter: Scatter<'c>,
    builder: &Builder<'c>,
    grid: &Grid<'c>,
    choices: Choices,
) -> Result<(), Report<'c>> {
    let Updates { nest, dims, free } = scatter::updates(scatter, choices)?;
    let is_atomic = free.len() < dims.len() && is_atomic(&nest);
    let shared = if is_atomic { &dims } else { &free };
    let dims = order::of_scatter(&nest, &dims, shared).ok_or_else(scatter::unordered)?;
    let (threads, inner): (Vec<_>, Vec<_>) = dims.into_iter().partition(|it| shared.contains(it));
    let conditions: Vec<_> = (0..nest.domain.constraints.len()).collect();
    let mut scope = nest.outer_scope(builder);
    let space = Space::new(&nest, builder, &mut scope, &threads);
    let update = if is_atomic { update_atomically } else { scatter::store };
    space.each(builder, &scope, grid.groups(builder, 1), &mut |builder, scope| {
        scatter::update(&nest, builder, scope, &inner, &conditions, &update);
    });
    Ok(())
}

/// Whether each destination is folded on its own, in any order, and its elements can be exchanged.
fn is_atomic(nest: &Nest) -> bool {
    let is_ordered = nest.is_map_form() || nest.choices.strict_fp && nest.rounds();
    let combiner = nest.generic.combiner();
    let is_alone = combiner.is_none_or(|block| {
        nest.accumulators.len() == 1
            && mlir::ops(block).iter().all(|op| mlir::body(*op, 0).is_none())
    });
    !is_ordered && is_alone && nest.accumulators.iter().all(|it| matches!(width(it), 16 | 32 | 64))
}

/// The bits of an accumulator; 0 for an index, whose width depends on where it is.
fn width(accumulator: &Accumulator) -> u32 {
    let ty = accumulator.ty;
    match ty.is_index() {
        true => 0,
        false => mlir::integer_width(ty).unwrap_or_else(|| 8 * mlir::byte_width(ty)),
    }
}

/// The instruction that combines, as the number of an `arith::AtomicRMWKind`.
fn instruction(accumulator: &Accumulator) -> Option<i64> {
    match (accumulator.kind, width(accumulator)) {
        (_, 16) => None,
        (CombinerKind::Add, _) if mlir::is_float(accumulator.ty) => Some(0),
        (CombinerKind::Add, _) => Some(1),
        (CombinerKind::And, _) => Some(2),
        (CombinerKind::MaxS, _) => Some(6),
        (CombinerKind::MaxU, _) => Some(7),
        (CombinerKind::MinS, _) => Some(10),
        (CombinerKind::MinU, _) => Some(11),
        (CombinerKind::Or, _) => Some(14),
        _ => None,
    }
}

/// Updates the elements of one point, each atomically.
fn update_atomically<'c>(nest: &Nest<'c>, builder: &Builder<'c>, scope: &mut Scope<'c>) {
    let values = nest.compute(builder, scope);
    for (number, (accumulator, value)) in nest.accumulators.iter().zip(values).enumerate() {
        let output = &nest.outputs[number];
        let mut place = vec![output.buffer];
        place.extend(nest.exprs(builder, scope, &output.map.results, true));
        if let Some(kind) = instruction(accumulator) {
            let kind = mlir::i64_attr(builder.context, kind);
            let operands = [&[value], &place[..]].concat();
            builder.value_with("memref.atomic_rmw", &operands, accumulator.ty, &[("kind", kind)]);
            continue;
        }
        let (region, block) = mlir::region_with_block(&[accumulator.ty], builder.location);
        let inside = Builder::at_end(builder.context, block, builder.location);
        let held = mlir::arguments(block);
        let new = match nest.generic.combiner() {
            Some(_) => nest.combine(&inside, scope, &held, &[value])[0],
            None => accumulator.kind.build(&inside, held[0], value),
        };
        inside.op("memref.atomic_yield", &[new], &[]);
        builder.op_with("memref.generic_atomic_rmw", &place, &[accumulator.ty], &[], vec![region]);
    }
}
