//! A fold of the results of another fold, such as a sum of sums, is one fold.

use super::{Rejection, epilogue::check_read_once};
use crate::fusion::{apply::bounds, candidate::Candidate};
use tc_dialects::{
    imap::{CombinerKind, Indexed, Start},
    mlir,
};
use tc_ir::{
    Context,
    expr::{Expr, Var},
};

/// Whether the consumer folds each result of the producer once, as it is, and in the same way. Its ranges are followed by
/// those of the producer then.
pub(super) fn check_folds(
    ir: &Context,
    consumer: &Candidate,
    producer: &Candidate,
    reads: &[usize],
    dims: &[Vec<Expr>],
) -> Result<(), Rejection> {
    let (outer, inner) = (&consumer.view.accumulators, &producer.view.accumulators);
    let ([outer], [inner], [read]) = (&outer[..], &inner[..], reads) else {
        return Err(Rejection::TwoFolds);
    };
    let body = consumer.generic.body();
    let argument = mlir::arguments(body)[*read];
    let folds_read = mlir::ops(body).len() == 1
        && mlir::operands(mlir::terminator(body)) == [argument]
        && consumer
            .generic
            .epilogue()
            .is_none_or(|epilogue| mlir::uses(mlir::arguments(epilogue)[1 + read]).is_empty());
    let is_same = (outer.kind, outer.ty) == (inner.kind, inner.ty);
    if !is_same
        || !folds_read
        || outer.kind == CombinerKind::Custom
        || producer.generic.epilogue().is_some()
    {
        return Err(Rejection::TwoFolds);
    }
    if inner.start != Start::Identity {
        return Err(Rejection::FoldsIntoTensor);
    }
    if consumer.generic.keeps_order() || producer.generic.keeps_order() {
        return Err(Rejection::Ordered);
    }
    // A bound that an element of a tensor gives has to be known in front of all loops over ranges.
    let bounds = producer.view.domain.ranges.iter().flat_map(bounds);
    let from_tensor = |var: &Var| match var {
        Var::Runtime(number) => producer.varies(ir, &[ir.runtime(*number)]),
        _ => false,
    };
    if ir.vars_of_all(&bounds.collect::<Vec<_>>()).iter().any(from_tensor) {
        return Err(Rejection::BoundFromTensor);
    }
    let ranges = (0..consumer.view.domain.ranges.len() as u32).map(Var::Range);
    let is_loop = |var: &Var| {
        let interval = consumer.view.domain.variable(*var).and_then(|it| it.constant_interval(ir));
        interval.is_none_or(|interval| interval.as_point().is_none())
    };
    let mut vars = consumer.view.looping_dims(ir);
    vars.extend(ranges.filter(is_loop));
    check_read_once(ir, &dims[0], &vars)
}
