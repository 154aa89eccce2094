//! The updates of a scatter.
//!
//! Two values of a *free* variable update different elements: it is a plain subscript of each destination,
//! or the operation promises `unique`.
//!
//! Each condition is tested in the outermost loop in which it is known, so that rows have one test
//! and one load of their index, or tightens the loop over the last variable that it needs.

use super::{
    Choices,
    emit::{Nest, Scope},
    guards,
    loops::row_loop,
};
use tc_dialects::{imap::Scatter, mlir::Builder, report::Report};
use tc_ir::{Interval, Var};

/// A scatter taken apart, with the guard of its destinations among the constraints of the domain.
pub(in crate::convert) struct Updates<'c> {
    pub nest: Nest<'c>,
    /// The variables with several values, in the written order.
    pub dims: Vec<Var>,
    /// Those of them that are free.
    pub free: Vec<Var>,
}

/// Takes a scatter on buffers apart.
pub(in crate::convert) fn updates<'c>(
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
pub(in crate::convert) fn unordered<'c>() -> Report<'c> {
    Report::error("has variables whose bounds depend on each other or on later ones")
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

/// Updates the elements of one point.
type Store<'a, 'c> = dyn Fn(&Nest<'c>, &Builder<'c>, &mut Scope<'c>) + 'a;

/// The loops over these dimension variables, in which these constraints are still to be tested.
pub(in crate::convert) fn update<'c>(
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
pub(in crate::convert) fn store<'c>(nest: &Nest<'c>, builder: &Builder<'c>, scope: &mut Scope<'c>) {
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
