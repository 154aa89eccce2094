//! Folds of one value per point, such as a reduction along a dimension of extent 1: no folds, which fuse like any
//! other operation in map form.

use super::narrow::{copy_body, has};
use melior::ir::operation::OperationLike;
use tc_dialects::{
    imap::{CombinerKind, Generic, Indexed, Start, View, build_yield},
    mlir::{self, Builder, Val, ValueMap},
};
use tc_ir::{Context, expr::Var};

/// The operation in map form; `None` if it folds several values, or possibly none.
pub(super) fn unfold<'c>(ir: &Context, generic: Generic<'c>) -> Option<Generic<'c>> {
    let mut view = View::of(ir, generic);
    if view.accumulators.is_empty()
        || view.combiner.is_some()
        || !view.domain.constraints.is_empty()
        || view.accumulators.iter().any(|it| it.destination().is_some())
    {
        return None;
    }
    let points = view.domain.ranges.iter();
    let points = points.map(|range| range.constant_interval(ir)?.as_point());
    let points: Vec<i64> = points.collect::<Option<_>>()?;
    let is_test = |op| mlir::is(op, "imap.inside") || mlir::is(op, "imap.index");
    let blocks = [Some(generic.body()), generic.epilogue()];
    if blocks.into_iter().flatten().any(|block| has(block, &is_test)) {
        return None;
    }
    view.substitute(ir, &|var| match var {
        Var::Range(number) => points.get(number as usize).map(|value| ir.constant(*value)),
        _ => None,
    });
    view.domain.ranges.clear();
    let accumulators = std::mem::take(&mut view.accumulators);
    view.ordered = false;
    let builder = Builder::before(generic.op()).located(generic.op().location());
    let map = view.build(ir, &builder, false);
    let inside = Builder::at_end(builder.context, map.body(), builder.location);
    let arguments = mlir::arguments(map.body());
    let copy = |block, arguments: Vec<Val<'c>>| {
        let mut values: ValueMap = mlir::arguments(block).into_iter().zip(arguments).collect();
        copy_body(&inside, block, &mut values)
    };
    let folded = copy(generic.body(), arguments.clone());
    let combined = accumulators.iter().zip(folded).map(|(accumulator, value)| {
        let start = match accumulator.start {
            Start::Constant(start) => inside.constant(accumulator.ty, start),
            // A sum that starts from 0.0 is never -0.0, and a NaN loses against infinity.
            _ => match accumulator.kind {
                CombinerKind::MinF | CombinerKind::MaxF => accumulator.build_identity(&inside),
                CombinerKind::Add if accumulator.rounds() => accumulator.build_identity(&inside),
                _ => return value,
            },
        };
        accumulator.kind.build(&inside, start, value)
    });
    let combined: Vec<_> = combined.collect();
    let stored = match generic.epilogue() {
        Some(epilogue) => copy(epilogue, [combined, arguments].concat()),
        None => combined,
    };
    build_yield(&inside, &stored);
    Some(map)
}
