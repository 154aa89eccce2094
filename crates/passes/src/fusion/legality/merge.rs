//! Two operations with the same points become one operation with the results of both. A shared operand is read once.
//! Values of the first operation stay in registers for the second operation.

use super::{Rejection, memory};
use crate::fusion::{
    apply::{Frame, in_place_of_runtimes},
    candidate::Candidate,
    paths,
};
use std::collections::{BTreeSet, HashSet};
use tc_dialects::{
    imap::{Access, Indexed},
    mlir::{self, Op, Val},
};
use tc_ir::{
    Context,
    expr::{Expr, Var},
    map::Constraint,
};

/// Two operations that may become one.
pub(in crate::fusion) struct Merge<'c, 'i> {
    pub(in crate::fusion) ir: &'i Context,
    /// The earlier one.
    pub(in crate::fusion) first: Candidate<'c>,
    pub(in crate::fusion) second: Candidate<'c>,
    /// The second one's dimension variables over those of the first one.
    pub(in crate::fusion) dims: Vec<Expr>,
    /// The results of the first one that others read, too.
    pub(in crate::fusion) kept: Vec<usize>,
    /// What has to be moved in front of the first one, so that the new operation can stand there; `None` if it stands at the
    /// place of the second one.
    pub(in crate::fusion) hoisted: Option<Vec<Op<'c>>>,
}

/// How operations go together.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Form {
    Maps,
    Folds,
    /// The second one becomes a part of the epilogue of the first one.
    Epilogue,
}

/// Whether two operations of a block can become one.
pub(in crate::fusion) fn merge<'c, 'i>(
    ir: &'i Context,
    first: Candidate<'c>,
    second: Candidate<'c>,
) -> Result<Merge<'c, 'i>, Rejection> {
    let form = match (first.is_reduction(), second.is_reduction()) {
        (false, false) => Form::Maps,
        (true, true) => Form::Folds,
        (true, false) => Form::Epilogue,
        (false, true) => return Err(Rejection::StoredInFold),
    };
    check_operation(&first)?;
    check_operation(&second)?;
    let combines = |it: &Candidate| it.view.combiner.is_some();
    if form == Form::Folds && (combines(&first) || combines(&second)) {
        return Err(Rejection::Combiner);
    }
    let results = mlir::results(first.generic.op());
    let result_of = |value: Val<'c>| results.iter().position(|result| *result == value);
    let is_result = |value: Val<'c>| result_of(value).is_some();
    if second.view.inits().into_iter().any(is_result) {
        return Err(Rejection::Destination);
    }
    if second.view.runtime_values().into_iter().any(is_result) {
        return Err(Rejection::Runtimes);
    }
    let mut captures = false;
    for block in second.generic.blocks() {
        for op in mlir::ops(block) {
            mlir::walk(op, &mut |inner| {
                captures |= mlir::operands(inner).into_iter().any(is_result)
            });
        }
    }
    if captures {
        return Err(Rejection::Extracted);
    }
    let dims = rename(ir, &first, &second).ok_or(Rejection::Domains)?;
    let base = first.view.runtimes.len();
    let mut frame = Frame::of(ir, &first);
    let (_, runtimes) = frame.add_runtimes(&second.view, base, &dims);
    let renamed = |var| match var {
        Var::Dim(number) => dims.get(number as usize).copied(),
        _ => in_place_of_runtimes(&runtimes)(var),
    };
    check_domains(ir, &first, &second, form, &renamed)?;
    for (number, access) in second.view.inputs.iter().enumerate() {
        let Some(result) = result_of(access.value) else { continue };
        let written = &first.view.outputs[result].subscripts;
        let subscripts = access.subscripts.iter().map(|it| ir.substitute(*it, &renamed));
        if !access.guard.is_empty()
            || !subscripts.zip(written).all(|(read, written)| ir.canonicalize(read) == *written)
        {
            return Err(Rejection::OtherElements);
        }
        let is_folded = || !mlir::uses(mlir::arguments(second.generic.body())[number]).is_empty();
        if form == Form::Folds && is_folded() {
            return Err(Rejection::TwoFolds);
        }
    }
    let (first_op, second_op) = (first.generic.op(), second.generic.op());
    let others = |result: &Val<'c>| mlir::uses(*result).iter().any(|(user, _)| *user != second_op);
    let kept = (0..results.len()).filter(|number| others(&results[*number])).collect();
    let hoisted = match paths::is_used_between(first_op, second_op) {
        false => None,
        true => Some(hoisted(first_op, second_op)?),
    };
    Ok(Merge { ir, first, second, dims, kept, hoisted })
}

/// The operations between two of a block that have to move in front of the first one, if the second one moves there.
pub(super) fn hoisted<'c>(first: Op<'c>, second: Op<'c>) -> Result<Vec<Op<'c>>, Rejection> {
    let between = paths::needed_between(first, second).ok_or(Rejection::Path)?;
    match between.iter().any(|op| memory::has_effects(*op)) {
        true => Err(Rejection::MemoryChanges),
        false => Ok(between),
    }
}

/// Whether an operation works on tensors without access to memory, and its accumulators start anew.
fn check_operation(it: &Candidate) -> Result<(), Rejection> {
    it.check_schedule()?;
    if mlir::results(it.generic.op()).len() != it.view.outputs.len() {
        return Err(Rejection::Buffers);
    }
    if memory::has_effects(it.generic.op()) {
        return Err(Rejection::Writes);
    }
    if it.view.accumulators.iter().any(|it| it.destination().is_some()) {
        return Err(Rejection::FoldsIntoTensor);
    }
    Ok(())
}

/// Whether the operations have the same points. `renamed` gives variables of the second one over those of the first one.
fn check_domains(
    ir: &Context,
    first: &Candidate,
    second: &Candidate,
    form: Form,
    renamed: &dyn Fn(Var) -> Option<Expr>,
) -> Result<(), Rejection> {
    let (first, second) = (&first.view, &second.view);
    let moved = |expr: Expr| ir.canonicalize(ir.substitute(expr, renamed));
    let moved_constraints = |constraints: &[Constraint]| -> HashSet<Constraint> {
        constraints.iter().map(|it| Constraint { expr: moved(it.expr), ..*it }).collect()
    };
    let is_same = |var: Var, other: Var| {
        let (Some(a), Some(b)) = (first.domain.variable(other), second.domain.variable(var)) else {
            return false;
        };
        (a.lower, a.upper) == (b.lower.map(moved), b.upper.map(moved))
    };
    let of_dim = |dim: u32| renamed(Var::Dim(dim)).and_then(|expr| ir.as_var(expr));
    let dims = (0..second.domain.dims.len() as u32)
        .all(|dim| of_dim(dim).is_some_and(|other| is_same(Var::Dim(dim), other)));
    let num_ranges = second.domain.ranges.len();
    let ranges = form == Form::Epilogue
        || first.domain.ranges.len() == num_ranges
            && (0..num_ranges as u32).all(|it| is_same(Var::Range(it), Var::Range(it)));
    let constraints = match form {
        Form::Epilogue => {
            first.domain.constraints.is_empty() && second.domain.constraints.is_empty()
        }
        _ => {
            let own: HashSet<Constraint> = first.domain.constraints.iter().copied().collect();
            own == moved_constraints(&second.domain.constraints)
        }
    };
    let is_ordered = form == Form::Epilogue || first.ordered == second.ordered;
    match dims && ranges && constraints && is_ordered {
        true => Ok(()),
        false => Err(Rejection::Domains),
    }
}

/// The dimension variables of the second operation as variables of the first one: those that read the same elements of an
/// operand, or the elements that the first one writes. Others have the same number. `None` if the numbers of variables
/// differ, or two would be the same.
fn rename(ir: &Context, first: &Candidate, second: &Candidate) -> Option<Vec<Expr>> {
    let num_dims = first.view.domain.dims.len();
    if num_dims != second.view.domain.dims.len() {
        return None;
    }
    let results = mlir::results(first.generic.op());
    let written = results.into_iter().zip(&first.view.outputs);
    let read = first.view.inputs.iter().map(|access| (access.value, access));
    let known: Vec<(Val, &Access)> = written.chain(read).collect();
    let mut found: Vec<Option<u32>> = vec![None; num_dims];
    for access in &second.view.inputs {
        let Some((_, other)) = known.iter().find(|(value, _)| *value == access.value) else {
            continue;
        };
        for (own, other) in access.subscripts.iter().zip(&other.subscripts) {
            if let (Some(Var::Dim(own)), Some(Var::Dim(other))) =
                (ir.as_var(*own), ir.as_var(*other))
            {
                found[own as usize].get_or_insert(other);
            }
        }
    }
    let named: BTreeSet<u32> = found.iter().flatten().copied().collect();
    for (number, slot) in (0..).zip(&mut found) {
        if slot.is_none() && !named.contains(&number) {
            *slot = Some(number);
        }
    }
    let dims: Vec<u32> = found.into_iter().collect::<Option<_>>()?;
    let distinct: BTreeSet<u32> = dims.iter().copied().collect();
    (distinct.len() == num_dims).then(|| dims.into_iter().map(|dim| ir.dim(dim)).collect())
}
