//! A producer is computed where it is read: its maps are composed with the map of the read.

use super::{
    Composition, Form, Rejection, epilogue::check_epilogue, folds::check_folds,
    memory::check_memory,
};
use crate::fusion::{
    apply::{Frame, in_place_of_runtimes},
    candidate::Candidate,
};
use melior::ir::{ValueLike, operation::OperationLike};
use std::collections::BTreeSet;
use tc_dialects::{
    imap::{Access, Indexed, Scan, extents::shifted_dim, verify::index_variable},
    mlir::{self, Blk, Val},
};
use tc_ir::{
    Context,
    expr::{Expr, Var},
    prove::{Prover, Verdict},
};

/// Whether the producer has one result, the consumer works on tensors, and the result of the producer is one of its inputs only.
pub(in crate::fusion) fn check_reads(
    consumer: &Candidate,
    producer: &Candidate,
    reads: &[usize],
) -> Result<(), Rejection> {
    if Scan::cast(consumer.generic.op()).is_some() {
        return Err(Rejection::Scan);
    }
    if consumer.is_scatter() {
        let inits = consumer.view.inits();
        let is_updated = |access: &Access| inits.contains(&access.value);
        if producer.is_reduction() {
            return Err(Rejection::FoldInScatter);
        }
        if producer.view.accesses().any(is_updated) {
            return Err(Rejection::ReadsUpdated);
        }
    }
    if mlir::results(consumer.generic.op()).len() != consumer.view.outputs.len() {
        return Err(Rejection::Buffers);
    }
    if producer.view.outputs.len() != 1
        || mlir::results(producer.generic.op()).len() != 1
        || (producer.is_reduction() && consumer.view.outputs.len() != 1)
    {
        return Err(Rejection::SeveralResults);
    }
    let is_result = |value: &Val| mlir::defining_op(*value) == Some(producer.generic.op());
    if consumer.view.inits().iter().any(is_result) {
        return Err(Rejection::Destination);
    }
    if reads.is_empty() {
        return Err(Rejection::Runtimes);
    }
    match producer.view.domain.constraints.is_empty() {
        true => Ok(()),
        false => Err(Rejection::ConstrainedProducer),
    }
}

/// Composes the maps of a producer with the reads of a consumer. [`check_reads`] has to accept the pair. Other consumers
/// of the producer are not checked.
pub(in crate::fusion) fn compose<'c, 'i>(
    ir: &'i Context,
    consumer: Candidate<'c>,
    producer: Candidate<'c>,
    reads: Vec<usize>,
) -> Result<Composition<'c, 'i>, Rejection> {
    check_memory(consumer.generic, producer.generic)?;
    check_guards(&consumer, &producer, &reads)?;
    let inverse = invert(ir, &producer)?;
    let base = consumer.view.runtimes.len() as u32;
    let dims: Vec<Vec<Expr>> = reads
        .iter()
        .map(|number| {
            let position = &consumer.view.inputs[*number].subscripts;
            // Runtime variables of the producer are replaced when the operations are joined,
            // and cancel in the common case of equal sizes.
            ir.substitute_all(&inverse, &|var| match var {
                Var::Dim(result) => position.get(result as usize).copied(),
                Var::Runtime(number) => Some(ir.runtime(base + number)),
                Var::Range(_) => None,
            })
        })
        .collect();
    let form = match (producer.is_reduction(), consumer.is_reduction()) {
        (false, _) => Form::Producer,
        (true, false) => Form::Epilogue,
        (true, true) => Form::Fold,
    };
    match form {
        Form::Producer => {}
        Form::Epilogue => check_epilogue(ir, &consumer, &producer, &reads, &dims)?,
        Form::Fold => check_folds(ir, &consumer, &producer, &reads, &dims)?,
    }
    check_index_uses(ir, &consumer, &producer, &dims)?;
    check_written(ir, &consumer, &producer, &reads, &dims)?;
    Ok(Composition { ir, consumer, producer, reads, dims, form })
}

/// Whether guards allow to compute the producer where it is read. Where the guard of that read fails,
/// the producer is computed from constants, and not used.
fn check_guards(
    consumer: &Candidate,
    producer: &Candidate,
    reads: &[usize],
) -> Result<(), Rejection> {
    if producer.generic.has_guards() && consumer.is_reduction() {
        return Err(Rejection::GuardsInFold);
    }
    if reads.iter().all(|read| consumer.view.inputs[*read].guard.is_empty()) {
        return Ok(());
    }
    if producer.is_reduction() {
        return Err(Rejection::GuardedFold);
    }
    if producer.view.runtimes.iter().any(|it| it.access().is_some()) {
        return Err(Rejection::GuardedRuntimes);
    }
    match is_total(producer.generic.body()) {
        true => Ok(()),
        false => Err(Rejection::PartialBody),
    }
}

/// Whether a body computes something from any values, without access to memory or a division of
/// integers.
fn is_total(block: Blk) -> bool {
    mlir::ops(block).into_iter().all(|op| {
        let name = mlir::name(op);
        let is_division = ["arith.div", "arith.rem", "arith.floordiv", "arith.ceildiv"]
            .iter()
            .any(|division| name.starts_with(division));
        let is_float = mlir::results(op)
            .iter()
            .all(|result| mlir::is_float(mlir::element_type(result.r#type())));
        op.region_count() == 0
            && (!is_division || is_float)
            && ["arith.", "complex.", "math.", "imap."]
                .iter()
                .any(|dialect| name.starts_with(dialect))
    })
}

/// Whether all elements that the consumer reads are written by the producer: others are not to
/// be computed, and inputs may have no elements for them.
fn check_written<'c>(
    ir: &Context,
    consumer: &Candidate<'c>,
    producer: &Candidate<'c>,
    reads: &[usize],
    dims: &[Vec<Expr>],
) -> Result<(), Rejection> {
    if producer.covers_destination(ir) {
        return Ok(());
    }
    for (read, dims) in reads.iter().zip(dims) {
        let mut frame = Frame::of(ir, consumer);
        let (dims, runtimes) =
            frame.add_runtimes(&producer.view, consumer.view.runtimes.len(), dims);
        if consumer.generic.epilogue().is_some() {
            // An epilogue reads at points that the constraints exclude, too.
            frame.domain.constraints.clear();
        }
        frame.domain.constraints.extend(&consumer.view.inputs[*read].guard);
        let prover = Prover::for_domain(ir, &frame.domain);
        let in_frame = |expr| ir.substitute(expr, &in_place_of_runtimes(&runtimes));
        let at_most = |low, high| prover.at_most(low, high) == Verdict::Proved;
        let is_in_domain = dims.iter().zip(&producer.view.domain.dims).all(|(dim, variable)| {
            variable.lower.is_some_and(|lower| at_most(in_frame(lower), *dim))
                && variable.upper.is_some_and(|upper| at_most(*dim, in_frame(upper)))
        });
        let positions = consumer.view.inputs[*read].subscripts.iter();
        let is_at_position = positions.zip(&producer.output().subscripts).all(|(read, written)| {
            shifted_dim(ir, *written).is_some()
                || prover.equal(*read, in_frame(*written)) == Verdict::Proved
        });
        if !is_in_domain || !is_at_position {
            return Err(Rejection::Unwritten);
        }
    }
    Ok(())
}

/// A body that asks for the value of a dimension variable needs it as an expression of
/// values at hand, which elements of runtime tensors are not.
fn check_index_uses(
    ir: &Context,
    consumer: &Candidate,
    producer: &Candidate,
    dims: &[Vec<Expr>],
) -> Result<(), Rejection> {
    let mut asked = BTreeSet::new();
    for block in [Some(producer.generic.body()), producer.generic.epilogue()].into_iter().flatten()
    {
        for top in mlir::ops(block) {
            mlir::walk(top, &mut |op| {
                if mlir::is(op, "imap.index")
                    && let Some(Var::Dim(number)) = index_variable(op)
                {
                    asked.insert(number as usize);
                }
            });
        }
    }
    let runtimes: Vec<_> = consumer.view.runtimes.iter().chain(&producer.view.runtimes).collect();
    let from_tensor = |var: &Var| {
        matches!(var, Var::Runtime(number)
            if runtimes.get(*number as usize).is_some_and(|it| it.access().is_some()))
    };
    for exprs in dims {
        for number in &asked {
            if ir.vars(exprs[*number]).iter().any(from_tensor) {
                return Err(Rejection::IndexFromTensor);
            }
        }
    }
    Ok(())
}

/// The dimension variables of the producer over the position of an element of its result, which
/// `d0, d1, ..` denote here, and its runtime variables.
fn invert(ir: &Context, producer: &Candidate) -> Result<Vec<Expr>, Rejection> {
    let output = producer.output();
    let mut found: Vec<Option<Expr>> = Vec::new();
    for variable in &producer.view.domain.dims {
        let point = variable.constant_interval(ir).and_then(|interval| interval.as_point());
        found.push(point.map(|value| ir.constant(value)));
    }
    for (number, result) in output.subscripts.iter().enumerate() {
        let mut offset = *result;
        if let Some((dim, shift)) = shifted_dim(ir, *result) {
            offset = shift;
            let index = ir.sub(ir.dim(number as u32), offset);
            let slot = found.get_mut(dim as usize);
            if slot.and_then(|slot| slot.replace(index)).is_some() {
                return Err(Rejection::RepeatedVariable);
            }
        }
        if producer.varies(ir, &[offset]) {
            return Err(Rejection::NoPermutation);
        }
    }
    let all: Option<Vec<_>> = found.into_iter().collect();
    all.ok_or(Rejection::UnusedVariable)
}
