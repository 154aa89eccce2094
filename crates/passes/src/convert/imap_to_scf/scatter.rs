//! Loops of `imap.scatter`.
//!
//! The updates of one element are done in lexicographic order of the dimension variables. Two values of
//! a *free* variable update different elements: it is a plain subscript of each destination, or the
//! operation promises `unique`. The loops of the others are in the written order, and those of free
//! variables where they touch memory in order (`order.rs`).
//!
//! Loops over free variables can be parallel. If they are inside of others, the outermost of them moves
//! to the front; if it is the innermost loop, in strips.
//!
//! Each condition is tested in the outermost loop in which it is known, so that rows have one test
//! and one load of their index, or tightens the loop over the last variable that it needs.

use super::{
    Choices,
    emit::{Nest, Scope},
    guards,
    nest::{Loop, STRETCH, declare_distinct, if_enough_work, parallel_loops, row_loop},
    order,
};
use tc_dialects::{
    imap::Scatter,
    mlir::{self, Builder},
    report::Report,
};
use tc_ir::{Interval, Var};

/// The most strips of a loop that threads share.
const NUM_STRIPS: i64 = 16;

/// A scatter taken apart, with the guard of its destinations among the constraints of the domain.
pub(super) struct Updates<'c> {
    pub nest: Nest<'c>,
    /// The variables with several values, in the written order.
    pub dims: Vec<Var>,
    /// Those of them that are free.
    pub free: Vec<Var>,
}

/// Takes a scatter on buffers apart.
pub(super) fn updates<'c>(
    scatter: Scatter<'c>,
    choices: Choices,
) -> Result<Updates<'c>, Report<'c>> {
    let mut nest = Nest::new(scatter.into(), choices)?;
    // The destinations have one guard.
    let guards = nest.outputs.iter_mut().map(|it| std::mem::take(&mut it.map.constraints));
    let guard = guards.last();
    nest.domain.constraints.extend(guard.unwrap_or_default());
    let is_loop = |var: &Var| nest.fixed(*var).is_none();
    let dims: Vec<_> = (0..nest.domain.dims.len() as u32).map(Var::Dim).filter(is_loop).collect();
    let is_free = |var: &Var| scatter.promises().unique || separates(&nest, *var);
    let free: Vec<_> = dims.iter().copied().filter(is_free).collect();
    Ok(Updates { nest, dims, free })
}

/// The error where the bounds of variables do not allow the order of the updates.
pub(super) fn unordered<'c>() -> Report<'c> {
    Report::error("has variables whose bounds depend on each other or on later ones")
}

/// Replaces an `imap.scatter` on buffers by loops.
pub(super) fn convert<'c>(scatter: Scatter<'c>, choices: Choices) -> Result<(), Report<'c>> {
    let op = scatter.op();
    let Updates { nest, dims, free } = updates(scatter, choices)?;
    let dims = order::of_scatter(&nest, &dims, &free).ok_or_else(unordered)?;
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
            let mut scope = scope.clone();
            declare_distinct(&nest, builder, &mut scope);
            update(&nest, builder, &scope, &dims, &conditions, &store);
        }
    });
    mlir::erase(op);
    Ok(())
}

/// Whether updates at two values of a dimension variable are always of different elements: in each
/// destination it has a subscript that other varying terms change by less than its factor.
fn separates(nest: &Nest, var: Var) -> bool {
    nest.outputs.iter().all(|output| {
        output.map.results.iter().any(|subscript| {
            let Some(linear) = nest.ir.linear_terms(*subscript) else { return false };
            let (mut factor, mut others) = (0, Interval::point(0));
            for (term, coefficient) in linear.terms {
                if nest.ir.as_var(term) == Some(var) {
                    factor = coefficient;
                } else if !nest.needs(&[term]).is_empty() {
                    let values = nest.ir.interval_of(term, &|var| nest.intervals.of(var));
                    others = others.add(values.mul(Interval::point(coefficient)));
                }
            }
            others.num_members().is_some_and(|count| count <= factor.unsigned_abs())
        })
    })
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
            (extent + NUM_STRIPS * lanes - 1) / (NUM_STRIPS * lanes) * lanes
        }
        None => STRETCH,
    };
    (vec![Loop::stretches(*first, length)], dims.to_vec())
}

/// Updates the elements of one point.
type Store<'a, 'c> = dyn Fn(&Nest<'c>, &Builder<'c>, &mut Scope<'c>) + 'a;

/// The loops over these dimension variables, in which these constraints are still to be tested.
pub(super) fn update<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    dims: &[Var],
    conditions: &[usize],
    store: &Store<'_, 'c>,
) {
    let needs = |number: &usize| nest.needs(&[nest.domain.constraints[*number].expr]);
    let is_known = |number: &usize| dims.iter().all(|var| !needs(number).contains(var));
    let (ready, late): (Vec<usize>, Vec<usize>) = conditions.iter().copied().partition(is_known);
    nest.guarded(builder, scope, &ready, &[], &mut |builder, scope| {
        let Some((var, rest)) = dims.split_first() else {
            store(nest, builder, scope);
            return Vec::new();
        };
        // No element is read for the bounds that is not read inside: there is a point, and no other
        // condition is left.
        let has_points = |var: &Var| nest.extent(*var).is_some_and(|extent| 0 < extent);
        let may_read = late.len() == 1 && dims.iter().all(has_points);
        let tightens = |number: &usize| {
            let condition = &nest.domain.constraints[*number];
            needs(number).is_disjoint(&rest.iter().copied().collect())
                && guards::is_linear(nest, *var, condition)
                && (may_read || !nest.must_read(scope, &[condition.expr]))
        };
        let (tightening, tested): (Vec<usize>, Vec<usize>) =
            late.iter().partition(|it| tightens(it));
        row_loop(nest, builder, scope, *var, &tightening, false, &mut |builder, scope| {
            update(nest, builder, scope, rest, &tested, store);
        });
        Vec::new()
    });
}

/// Updates the elements of one point that no other thread updates.
pub(super) fn store<'c>(nest: &Nest<'c>, builder: &Builder<'c>, scope: &mut Scope<'c>) {
    let stored = match nest.is_map_form() {
        true => nest.compute(builder, scope),
        false => {
            let numbers = 0..nest.accumulators.len();
            let held: Vec<_> = numbers.map(|number| nest.start(builder, scope, number)).collect();
            nest.fold(builder, scope, &held)
        }
    };
    for (number, value) in stored.into_iter().enumerate() {
        nest.store_output(builder, scope, number, value);
    }
}
