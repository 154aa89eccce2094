//! Which of the legal rewrites make a program faster: numbers of operations and of accesses, judged by a
//! [`CostModel`].

use super::{
    candidate::{Candidate, FUNCTION_WORK, body_size, body_work},
    legality::{Composition, Form, Merge, Rejection, check_reads, compose, maximum_below, merge},
};
use crate::target::{CostModel, Recomputation};
use melior::ir::{ValueLike, operation::OperationLike};
use std::collections::BTreeSet;
use tc_dialects::{
    imap::{Access, AnyIndexed, Generic, Indexed, Runtime, extents::shifted_dim},
    mlir::{self, Op, Val},
};
use tc_ir::{
    Context,
    expr::{Expr, Var},
    map::IndexingMap,
};

/// Decides whether a producer is to be computed where a consumer reads it. With `duplicates`, several consumers may
/// compute it: a consumer has its final form only once nothing else can be fused.
pub(super) fn plan<'c, 'i>(
    ir: &'i Context,
    consumer: AnyIndexed<'c>,
    producer: Generic<'c>,
    (model, duplicates): (&dyn CostModel, bool),
) -> Result<Composition<'c, 'i>, Rejection> {
    let (consumer, producer) = (Candidate::new(ir, consumer), Candidate::new(ir, producer));
    let reads = consumer.reads_of(producer.generic);
    check_reads(&consumer, &producer, &reads)?;
    if !is_copied(ir, &producer)
        && let Err(rejection) = check_uses(consumer.generic, producer.generic)
        && !(duplicates && is_recomputed_by_all(ir, &producer, model))
    {
        return Err(rejection);
    }
    let composition = compose(ir, consumer, producer, reads)?;
    worth_it(composition, model)
}

/// The operation that computes the exponentials of a sum, if the rows are so long that maximum and sum should be folded
/// together: the sum, or a producer that stores the exponentials.
pub(super) fn long_exponentials<'c>(
    ir: &Context,
    sum: Generic<'c>,
    model: &dyn CostModel,
) -> Option<Generic<'c>> {
    let producers =
        sum.inputs().into_iter().filter_map(mlir::defining_op).filter_map(Generic::cast);
    let stored = producers.into_iter().find(|it| {
        it.op().block() == sum.op().block()
            && it.accumulators().is_empty()
            && maximum_below((*it).into()).is_some()
    });
    let maximum = maximum_below(stored.unwrap_or(sum).into())?;
    let view = Candidate::new(ir, maximum).view;
    let mut extents = view.domain.ranges.iter().map(|it| it.constant_interval(ir)?.num_members());
    let values = extents.try_fold(1, |values: u64, extent| Some(values.saturating_mul(extent?)));
    let is_row = |access: &&Access<'c>| {
        ir.vars_of_all(&access.subscripts).iter().any(|var| matches!(var, Var::Range(_)))
    };
    let rows = view.inputs.iter().filter(is_row).map(|it| it.value.r#type());
    let rows = rows.chain(stored.map(|it| mlir::result(it.op(), 0).r#type()));
    let widths = rows.map(|ty| u64::from(mlir::byte_width(mlir::element_type(ty)))).sum();
    let is_long = model.rescales(values.map(|values| values.saturating_mul(widths)));
    is_long.then(|| stored.unwrap_or(sum))
}

/// Decides whether a producer can be computed again where a consumer reads it. A factor of a product is read too often for
/// that, unless nothing is computed.
pub(super) fn plan_copy<'c, 'i>(
    ir: &'i Context,
    consumer: AnyIndexed<'c>,
    producer: AnyIndexed<'c>,
    model: &dyn CostModel,
) -> Result<Composition<'c, 'i>, Rejection> {
    let (consumer, producer) = (Candidate::new(ir, consumer), Candidate::new(ir, producer));
    let reads = consumer.reads_of(producer.generic);
    check_reads(&consumer, &producer, &reads)?;
    if body_work(producer.generic.body()) != 0 && reads_again(ir, &consumer, &reads) {
        return Err(Rejection::Product);
    }
    let composition = compose(ir, consumer, producer, reads)?;
    worth_it(composition, model)
}

/// The composition, if it is worth it, and no operation has a schedule: other reasons say more.
fn worth_it<'c, 'i>(
    composition: Composition<'c, 'i>,
    model: &dyn CostModel,
) -> Result<Composition<'c, 'i>, Rejection> {
    check_size(&composition, model)?;
    composition.consumer.check_schedule()?;
    composition.producer.check_schedule()?;
    Ok(composition)
}

/// Whether some of the inputs of an operation are factors of a product.
fn reads_again(ir: &Context, it: &Candidate, inputs: &[usize]) -> bool {
    inputs.iter().any(|input| it.view.reads_again(ir, &it.view.inputs[*input]))
}

/// Decides whether two operations of a block are to become one that has the results of both.
pub(super) fn plan_merge<'c, 'i>(
    ir: &'i Context,
    (first, second): (Generic<'c>, Generic<'c>),
    model: &dyn CostModel,
) -> Result<Merge<'c, 'i>, Rejection> {
    let (first, second) = (Candidate::new(ir, first), Candidate::new(ir, second));
    let merge = merge(ir, first, second)?;
    let (first, second) = (&merge.first, &merge.second);
    let mut own = streams(ir, first, &|_| None);
    let dim = |var| match var {
        Var::Dim(number) => merge.dims.get(number as usize).copied(),
        _ => None,
    };
    let results = mlir::results(first.generic.op());
    own.extend(
        results
            .into_iter()
            .zip(&first.view.outputs)
            .map(|(it, access)| Stream { value: it, subscripts: access.subscripts.clone() }),
    );
    let others = streams(ir, second, &dim);
    let is_shared = others.iter().any(|stream| own.contains(stream));
    if !is_shared {
        return Err(Rejection::NothingShared);
    }
    // The register block of a product has one accumulator and stores one result.
    if [first, second].iter().any(|it| it.is_reduction() && !it.view.reads_once(ir)) {
        return Err(Rejection::Product);
    }
    own.extend(others.into_iter().filter(|stream| !own.contains(stream)).collect::<Vec<_>>());
    let results = mlir::results(second.generic.op());
    own.extend(results.into_iter().zip(&second.view.outputs).map(|(value, access)| Stream {
        value,
        subscripts: ir.substitute_all(&access.subscripts, &dim),
    }));
    if model.max_streams() < own.len() {
        return Err(Rejection::Streams(own.len(), model.max_streams()));
    }
    let rows: BTreeSet<_> = own.iter().map(|stream| contiguous(ir, &stream.subscripts)).collect();
    if !first.is_reduction() && rows.len() != 1 {
        return Err(Rejection::Contiguity);
    }
    let size = body_size(first.generic.op()) + body_size(second.generic.op());
    if model.max_body() < size {
        return Err(Rejection::LargeBody(size, model.max_body()));
    }
    match second.view.looping_dims(ir).is_empty() || escape_together(&merge) {
        true => Ok(merge),
        false => Err(Rejection::SeveralEscape),
    }
}

/// A tensor that is accessed at each point, and where.
#[derive(PartialEq)]
struct Stream<'c> {
    value: Val<'c>,
    subscripts: Vec<Expr>,
}

/// The inputs that an operation reads along all its variables, with its variables renamed.
fn streams<'c>(
    ir: &Context,
    it: &Candidate<'c>,
    renamed: &dyn Fn(Var) -> Option<Expr>,
) -> Vec<Stream<'c>> {
    let dims = it.view.looping_dims(ir);
    let ranges = (0..it.view.domain.ranges.len() as u32).map(Var::Range);
    let is_large = |access: &&Access<'c>| {
        let used = ir.vars_of_all(&access.subscripts);
        dims.iter().copied().chain(ranges.clone()).all(|var| used.contains(&var))
    };
    let stream = |access: &Access<'c>| Stream {
        value: access.value,
        subscripts: ir.substitute_all(&access.subscripts, renamed),
    };
    it.view.inputs.iter().filter(is_large).map(stream).collect()
}

/// The last subscript with variables.
fn last(ir: &Context, subscripts: &[Expr]) -> Option<Expr> {
    subscripts.iter().rev().copied().find(|subscript| !ir.vars(*subscript).is_empty())
}

/// The variables along which an access is contiguous. Of a subscript such as `8 * i + j`, that is `j`.
fn contiguous(ir: &Context, subscripts: &[Expr]) -> Option<BTreeSet<Var>> {
    let last = last(ir, subscripts)?;
    let vars = ir.vars(last);
    let one: BTreeSet<Var> =
        vars.iter().copied().filter(|var| ir.coefficient(last, *var) == Some(1)).collect();
    Some(if one.is_empty() { vars } else { one })
}

/// Whether either no operation with maps reads the results, or the same ones read all of them. A tile group stores at most
/// one result of an operation that is read after the group.
fn escape_together(merge: &Merge) -> bool {
    let (first, second) = (merge.first.generic.op(), merge.second.generic.op());
    let readers = |op, result| -> BTreeSet<usize> {
        let uses = mlir::uses(mlir::result(op, result)).into_iter();
        let users = uses.map(|(user, _)| user).filter(|user| *user != second);
        users.filter(|user| AnyIndexed::cast(*user).is_some()).map(mlir::op_key).collect()
    };
    let mut all = merge.kept.iter().map(|number| readers(first, *number)).collect::<Vec<_>>();
    all.extend((0..merge.second.view.outputs.len()).map(|number| readers(second, number)));
    all.dedup();
    all.len() == 1
}

/// Whether each reader of a broadcast or of a slice computes the elements. A factor of a product is read often, and then
/// should not be computed each time.
fn is_copied(ir: &Context, producer: &Candidate) -> bool {
    let is_factor = |(user, _): &(Op, usize)| {
        Generic::cast(*user).is_some_and(|it| {
            let reader = Candidate::new(ir, it);
            reads_again(ir, &reader, &reader.reads_of(producer.generic))
        })
    };
    let is_plain = body_work(producer.generic.body()) == 0;
    let result = mlir::result(producer.generic.op(), 0);
    let uses = mlir::uses(result);
    // A slice that is stored anyway can be stored by what computes its tensor.
    let is_input = |(user, _): &(Op, usize)| {
        AnyIndexed::cast(*user).is_some_and(|it| {
            let others = [it.runtimes(), it.inits()].concat();
            user.block() == producer.generic.op().block() && !others.contains(&result)
        })
    };
    is_slice(ir, producer) && uses.iter().all(is_input)
        || producer.is_broadcast(ir) && (is_plain || !uses.iter().any(is_factor))
}

/// Whether an operation copies rows of a tensor, or parts of them, from known places.
fn is_slice(ir: &Context, it: &Candidate) -> bool {
    let [input] = &it.view.inputs[..] else { return false };
    let last = |access: &Access| last(ir, &access.subscripts);
    let row = last(it.output()).and_then(|subscript| shifted_dim(ir, subscript));
    let is_along =
        |(dim, _)| last(input).and_then(|it| ir.coefficient(it, Var::Dim(dim))) == Some(1);
    !it.is_reduction()
        && it.copies(None)
        && it.view.runtimes.is_empty()
        && input.guard.is_empty()
        && row.is_some_and(is_along)
}

/// Whether the fused operation does not repeat work, and is small enough for LLVM.
fn check_size(it: &Composition, model: &dyn CostModel) -> Result<(), Rejection> {
    let (ir, consumer, producer) = (it.ir, &it.consumer, &it.producer);
    match it.form {
        Form::Producer => {
            check_recompute(ir, consumer, producer, &it.reads, model)?;
            let work = body_work(producer.generic.body());
            // As slow as a function that has no vectors.
            if consumer.is_scatter() && FUNCTION_WORK <= work {
                return Err(Rejection::ScalarUpdates(work));
            }
        }
        Form::Epilogue => {
            let results = mlir::results(producer.generic.op());
            let read = streams(ir, consumer, &|_| None).into_iter();
            let added = read.filter(|stream| !results.contains(&stream.value)).count();
            let all = producer.view.inputs.len() + added;
            if model.max_streams() < all {
                return Err(Rejection::Streams(all, model.max_streams()));
            }
            check_neighbours(it)?;
        }
        // Each factor of a product is read for many results, from a register block.
        Form::Fold if !producer.view.reads_once(ir) => return Err(Rejection::Product),
        Form::Fold if producer.generic.rounds() && !model.reassociates() => {
            return Err(Rejection::Ordered);
        }
        Form::Fold => {}
    }
    let size = body_size(consumer.generic.op()) + it.reads.len() * body_size(producer.generic.op());
    if model.max_body() < size {
        return Err(Rejection::LargeBody(size, model.max_body()));
    }
    let elements = producer.view.runtimes.iter().filter_map(Runtime::access);
    let read = producer.view.inputs.iter().chain(elements).flat_map(Access::exprs);
    for (result, dims) in read.flat_map(|result| it.dims.iter().map(move |dims| (result, dims))) {
        let dim = |var| match var {
            Var::Dim(number) => dims.get(number as usize).copied(),
            _ => None,
        };
        let cost = ir.cost(ir.substitute(result, &dim));
        if model.max_map() < cost {
            return Err(Rejection::LargeMap(cost, model.max_map()));
        }
    }
    Ok(())
}

/// Whether each dimension variable of the fold has its own variable of the consumer, where neighbouring results differ in
/// it: a block of a product has few vectors along a part of a dimension.
fn check_neighbours(it: &Composition) -> Result<(), Rejection> {
    let outputs = it.consumer.view.outputs.iter();
    let rows = outputs.filter_map(|output| contiguous(it.ir, &output.subscripts));
    let vars: BTreeSet<Var> = rows.flatten().collect();
    let reads =
        |var: &&Var| it.dims[0].iter().filter(|dim| it.ir.vars(**dim).contains(*var)).count();
    match vars.iter().find(|var| 1 < reads(var)) {
        Some(var) => {
            let name = variable_name(&it.consumer.view.domain, *var);
            Err(Rejection::DividesNeighbours(name))
        }
        None => Ok(()),
    }
}

/// All uses of the producer have to be plain reads of operations, and of this one alone
/// unless the producer is computed again elsewhere too.
fn check_uses<'c>(consumer: AnyIndexed<'c>, producer: AnyIndexed<'c>) -> Result<(), Rejection> {
    for (user, _) in mlir::uses(mlir::result(producer.op(), 0)) {
        if user == consumer.op() {
            continue;
        }
        return Err(match AnyIndexed::cast(user) {
            Some(_) => Rejection::SeveralConsumers,
            None if mlir::is(user, "tensor.extract") => Rejection::Extracted,
            None if mlir::is(user, "tensor.dim") => continue,
            None => Rejection::Returned,
        });
    }
    Ok(())
}

/// Whether all consumers of a producer can compute it where they read it, and the cost model prefers that.
fn is_recomputed_by_all<'c>(ir: &Context, producer: &Candidate<'c>, model: &dyn CostModel) -> bool {
    let result = mlir::result(producer.generic.op(), 0);
    let mut consumers: Vec<Op<'c>> = Vec::new();
    for (user, _) in mlir::uses(result) {
        let is_known = mlir::is(user, "tensor.dim") || consumers.contains(&user);
        if !is_known
            && (consumers.len() == model.max_consumers()
                || user.block() != producer.generic.op().block())
        {
            return false;
        }
        if !is_known {
            consumers.push(user);
        }
    }
    if producer.is_reduction() {
        return false;
    }
    let dims = producer.view.looping_dims(ir);
    let is_large = |access: &&Access<'c>| {
        let used = ir.vars_of_all(&access.subscripts);
        dims.iter().all(|dim| used.contains(dim))
    };
    let large: Vec<_> = producer.view.inputs.iter().filter(is_large).collect();
    // A transposition is better done once.
    let rows = contiguous(ir, &producer.output().subscripts);
    if large.iter().any(|access| contiguous(ir, &access.subscripts) != rows) {
        return false;
    }
    let inputs: Vec<Val<'c>> = large.iter().map(|access| access.value).collect();
    let mut change = Recomputation {
        operations: body_work(producer.generic.body()) * (consumers.len() - 1),
        stored: inputs.len() + 1 + consumers.len(),
        recomputed: 0,
    };
    for user in consumers {
        let Some(reader) = AnyIndexed::cast(user) else { return false };
        let operands = reader.inputs();
        change.recomputed += inputs.iter().filter(|input| !operands.contains(input)).count();
        if plan_copy(ir, reader, producer.generic, model).is_err() {
            return false;
        }
    }
    model.recomputes(&change)
}

/// Whether computing the producer where it is read is cheap.
fn check_recompute(
    ir: &Context,
    consumer: &Candidate,
    producer: &Candidate,
    reads: &[usize],
    model: &dyn CostModel,
) -> Result<(), Rejection> {
    let work = body_work(producer.generic.body());
    let domain = &consumer.view.domain;
    let variables: BTreeSet<Var> = domain
        .vars()
        .filter(|(var, variable)| {
            !matches!(var, Var::Runtime(_)) && variable.lower != variable.upper
        })
        .map(|(var, _)| var)
        .collect();
    let mut maps: Vec<&[Expr]> =
        reads.iter().map(|it| consumer.view.inputs[*it].subscripts.as_slice()).collect();
    maps.sort_unstable();
    maps.dedup();
    for map in &maps {
        let used = ir.vars_of_all(map);
        // What one operation makes of an index costs no more than to load it.
        if work > usize::from(producer.view.inputs.is_empty())
            && let Some(missing) = variables.iter().find(|var| !used.contains(var))
        {
            return Err(Rejection::ComputedAgain(variable_name(domain, *missing)));
        }
    }
    let (reads, limit) = (maps.len(), model.max_recompute());
    if 1 < reads && limit < work * reads {
        return Err(Rejection::Recompute { reads, work, limit });
    }
    Ok(())
}

/// The name of a variable in remarks.
pub(super) fn variable_name(domain: &IndexingMap, var: Var) -> String {
    let name = domain.variable(var).and_then(|variable| variable.name.as_deref());
    name.map_or_else(|| tc_ir::text::default_name(var), |name| format!("'{name}'"))
}
