//! Canonicalization of `imap.generic`: what is known of the values of runtime variables, and of
//! conditions.
//!
//! * A constant value replaces its variable.
//! * The bounds of a variable shrink to what upstream proves of a value that `affine` operations
//!   compute or that a loop counts, such as the size of a tile that may be cut at the end.
//! * A guard that the bounds of the variables prove is dropped. Where one never holds, the constant
//!   replaces the argument or the runtime variable. `imap.inside` becomes a constant likewise.

use super::{
    Access, Generic, Indexed, Inside, Runtime, View, build_fill,
    extents::{constant_index, is_index},
    renumbering, substitute_in_conditions,
};
use crate::{
    ffi,
    mlir::{self, Builder, Op, Val},
};
use melior::ir::ValueLike;
use tc_ir::{
    Context, Interval,
    expr::{Expr, Var},
    map::{Constraint, IndexingMap, Variable},
    simplify::Simplifier,
};

/// Whether upstream can bound a value by looking at few operations.
fn has_bounds(value: Val) -> bool {
    match mlir::defining_op(value) {
        Some(op) => mlir::name(op).starts_with("affine."),
        None => {
            let is_loop = |op: Op| ["scf.for", "scf.forall"].contains(&mlir::name(op));
            mlir::argument_parent(value).is_some_and(is_loop)
        }
    }
}

/// The variable with bounds that a value is known to have.
fn bounded<'c>(ir: &Context, variable: &Variable, value: Val<'c>) -> Option<Variable> {
    let old = variable.constant_interval(ir).filter(|_| has_bounds(value))?;
    let (lower, upper) = ffi::constant_bounds(value);
    let interval = old.intersect(Interval::new(lower, upper));
    if interval == old || interval.is_empty() {
        return None;
    }
    let mut variable = variable.clone();
    variable.set_interval(ir, interval);
    Some(variable)
}

/// Replaces variables by expressions, and writes bounds and subscripts in normal form.
fn substitute(ir: &Context, view: &mut View, replacement: &dyn Fn(Var) -> Option<Expr>) {
    view.substitute(ir, replacement);
    let IndexingMap { dims, ranges, runtimes, .. } = &mut view.domain;
    let variables = dims.iter_mut().chain(ranges).chain(runtimes);
    for bound in variables.flat_map(|it| it.lower.iter_mut().chain(&mut it.upper)) {
        *bound = ir.canonicalize(*bound);
    }
    for subscript in view.accesses_mut().flat_map(|it| &mut it.subscripts) {
        *subscript = ir.canonicalize(*subscript);
    }
}

/// The result of checking a conjunction of conditions against the bounds of the variables.
enum Outcome {
    /// These are left, if any.
    Open(Vec<Constraint>),
    /// One of them never holds.
    Never,
}

/// Simplifies conditions, given the bounds of variables. A constraint of a domain says nothing about
/// them: an epilogue runs where it does not hold.
fn decide(ir: &Context, bounds: &IndexingMap, conditions: &[Constraint]) -> Outcome {
    let mut simplifier = Simplifier::for_map(ir, bounds);
    let mut open: Vec<Constraint> = Vec::new();
    for Constraint { expr, interval } in conditions {
        let expr = simplifier.simplify(ir.canonicalize(*expr));
        let values = simplifier.interval_of(expr);
        if !values.is_empty() && values.intersect(*interval).is_empty() {
            return Outcome::Never;
        }
        if interval.covers(values) {
            continue;
        }
        let new = reduced(ir, Constraint { expr, interval: *interval });
        match open.iter_mut().find(|it| it.expr == new.expr) {
            Some(known) => {
                known.interval = known.interval.intersect(new.interval);
                if known.interval.is_empty() && !values.is_empty() {
                    return Outcome::Never;
                }
            }
            None => open.push(new),
        }
    }
    Outcome::Open(open)
}

/// A condition without a constant part or a common factor of the terms: `i in [1, 2]` for
/// `i * 2 + 3 in [4, 8]`.
fn reduced(ir: &Context, condition: Constraint) -> Constraint {
    let Some(linear) = ir.linear_terms(condition.expr) else { return condition };
    let factors = linear.terms.iter().map(|(_, factor)| factor.unsigned_abs());
    let Ok(factor) = i64::try_from(factors.fold(0, tc_ir::expr::gcd)) else { return condition };
    if factor == 0 || (factor == 1 && linear.constant == 0) {
        return condition;
    }
    let end = |end: i64, infinity: i64| {
        if end == infinity { Some(end) } else { end.checked_sub(linear.constant) }
    };
    let Interval { lo, hi } = condition.interval;
    let (Some(lo), Some(hi)) = (end(lo, i64::MIN), end(hi, i64::MAX)) else { return condition };
    let lo = match lo {
        i64::MIN => lo,
        _ => lo.div_euclid(factor) + i64::from(lo.rem_euclid(factor) != 0),
    };
    let hi = if hi == i64::MAX { hi } else { hi.div_euclid(factor) };
    let interval = Interval::new(lo, hi);
    let terms = linear.terms.iter();
    let sum = terms.fold(ir.constant(0), |sum, (term, times)| {
        ir.add(sum, ir.mul(*term, ir.constant(times / factor)))
    });
    Constraint { expr: ir.canonicalize(sum), interval }
}

/// Whether conditions changed.
fn differ(ir: &Context, old: &[Constraint], new: &[Constraint]) -> bool {
    let mut old = IndexingMap { constraints: old.to_vec(), ..IndexingMap::default() };
    let mut new = IndexingMap { constraints: new.to_vec(), ..IndexingMap::default() };
    old.sort_constraints(ir);
    new.sort_constraints(ir);
    old != new
}

/// Simplifies the guards of accesses. Returns whether something changed, and the values of the
/// runtime variables that are never read.
fn simplify_guards(
    ir: &Context,
    generic: Generic,
    view: &mut View,
    bounds: &IndexingMap,
) -> (bool, Vec<Option<i64>>) {
    let mut has_changed = false;
    let mut is_never_read = |access: &mut Access| match decide(ir, bounds, &access.guard) {
        _ if access.guard.is_empty() => false,
        Outcome::Open(new) => {
            has_changed |= differ(ir, &access.guard, &new);
            access.guard = new;
            false
        }
        Outcome::Never => true,
    };
    let mut values = vec![None; view.runtimes.len()];
    for (number, runtime) in view.runtimes.iter_mut().enumerate() {
        let Runtime::Element(access) = runtime else { continue };
        if is_never_read(access) {
            let fill = access.fill.and_then(mlir::integer_of).unwrap_or(0);
            let interval = bounds.interval(ir, Var::Runtime(number as u32));
            let element = mlir::element_type(access.value.r#type());
            values[number] = Some(match mlir::integer_width(element) {
                Some(width @ ..64) if 0 <= interval.lo => fill.rem_euclid(1 << width),
                _ => fill,
            });
        }
    }
    let never_read: Vec<_> = view.inputs.iter_mut().map(is_never_read).collect();
    has_changed |= never_read.contains(&true) || values.iter().any(Option::is_some);
    // From the last on, so that numbers stay valid.
    for number in (0..never_read.len()).rev().filter(|number| never_read[*number]) {
        let num_folded = view.accumulators.len();
        let fill = view.inputs.remove(number).fill;
        for (block, first) in generic.blocks().into_iter().zip([0, num_folded]) {
            let argument = mlir::arguments(block)[first + number];
            if !mlir::uses(argument).is_empty() {
                let builder = Builder::before(mlir::ops(block)[0]);
                let fill = build_fill(&builder, fill, argument.r#type());
                mlir::replace_uses(argument, fill);
            }
            mlir::erase_argument(block, first + number);
        }
    }
    (has_changed, values)
}

/// Simplifies what each `imap.inside` tests. Returns whether something changed.
fn simplify_tests(ir: &Context, generic: Generic, bounds: &IndexingMap) -> bool {
    let mut has_changed = false;
    for inside in Inside::all_of(&generic.blocks()) {
        let op = inside.op();
        let result = mlir::result(op, 0);
        if mlir::uses(result).is_empty() {
            continue;
        }
        let old = inside.conditions(ir);
        let builder = Builder::before(op);
        let holds = match decide(ir, bounds, &old) {
            Outcome::Never => false,
            Outcome::Open(new) if new.is_empty() => true,
            Outcome::Open(new) => {
                if differ(ir, &old, &new) {
                    inside.set_conditions(ir, &new);
                    has_changed = true;
                }
                continue;
            }
        };
        // The driver erases the operation, which it may have in its list.
        let constant = mlir::integer(builder.context, result.r#type(), holds.into());
        mlir::replace_uses(result, builder.constant(result.r#type(), constant));
        has_changed = true;
    }
    has_changed
}

/// Canonicalizes an operation in place, and returns whether it changed.
pub fn canonicalize(generic: Generic) -> bool {
    // Most operations need no look at their maps.
    let is_known = |value: &Val| constant_index(*value).is_some() || has_bounds(*value);
    if !generic.runtimes().iter().any(|value| is_index(*value) && is_known(value))
        && !generic.has_guards()
        && Inside::all_of(&generic.blocks()).is_empty()
    {
        return false;
    }
    let ir = Context::new();
    let mut view = View::of(&ir, generic);
    let bounds = IndexingMap { constraints: Vec::new(), ..view.domain.clone() };
    let mut has_changed = simplify_tests(&ir, generic, &bounds);
    let (guards_changed, never_read) = simplify_guards(&ir, generic, &mut view, &bounds);
    has_changed |= guards_changed;
    let values = generic.runtimes().into_iter().zip(never_read);
    let constants: Vec<_> = values.map(|(value, fill)| constant_index(value).or(fill)).collect();
    has_changed |= constants.iter().any(Option::is_some);
    for (variable, runtime) in view.domain.runtimes.iter_mut().zip(&view.runtimes) {
        if let Runtime::Index(value) = runtime
            && let Some(bounded) = bounded(&ir, variable, *value)
        {
            *variable = bounded;
            has_changed = true;
        }
    }
    if !has_changed {
        return false;
    }
    let constant = |var| match var {
        Var::Runtime(number) => constants[number as usize].map(|value| ir.constant(value)),
        _ => None,
    };
    substitute(&ir, &mut view, &constant);
    let blocks = generic.blocks();
    substitute_in_conditions(&ir, &blocks, &constant);
    let conditions = Inside::conditions_in(&ir, &blocks);
    let kept = view.drop_unused_runtimes(&ir, &conditions);
    substitute_in_conditions(&ir, &blocks, &renumbering(&ir, &kept));
    view.set_operands(&ir, generic.op());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of a box of two variables.
    fn points() -> impl Iterator<Item = [i64; 2]> {
        (-3..=4).flat_map(|i| (0..=5).map(move |j| [i, j]))
    }

    #[test]
    fn decided_conditions_hold_at_the_same_points() {
        let ir = Context::new();
        let bounds = IndexingMap {
            dims: [(-3, 4), (0, 5)]
                .map(|(lo, hi)| Variable::bounded(&ir, Interval::new(lo, hi)))
                .to_vec(),
            ..IndexingMap::default()
        };
        let condition = |[a, b, c]: [i64; 3], lo: i64, hi: i64| {
            let sum = ir.wrap(ir.dim(0)) * a + ir.wrap(ir.dim(1)) * b + c;
            Constraint { expr: sum.expr(), interval: Interval::new(lo, hi) }
        };
        let (mut never, mut always, mut fewer) = (0, 0, 0);
        for a in -3..=3 {
            for b in [-4, -2, 0, 1, 6] {
                for c in [-5, 0, 7] {
                    for (lo, hi) in
                        [(-9, -1), (0, 3), (i64::MIN, 2), (-1, i64::MAX), (3, 2), (-99, 99)]
                    {
                        let first = condition([a, b, c], lo, hi);
                        for second in
                            [condition([2 * a, 2 * b, 0], -7, 9), condition([0, 3, 1], 2, 8)]
                        {
                            let old = [first, second];
                            let holds = |all: &[Constraint], [i, j]: [i64; 2]| {
                                let constraints = all.to_vec();
                                let map = IndexingMap { constraints, ..bounds.clone() };
                                map.satisfies_constraints(&ir, &[i, j], &[], &[]) == Ok(true)
                            };
                            match decide(&ir, &bounds, &old) {
                                Outcome::Never => {
                                    assert!(!points().any(|point| holds(&old, point)));
                                    never += 1;
                                }
                                Outcome::Open(new) => {
                                    for point in points() {
                                        assert_eq!(holds(&old, point), holds(&new, point));
                                    }
                                    always += usize::from(new.is_empty());
                                    fewer += usize::from(new.len() == 1);
                                    let Outcome::Open(again) = decide(&ir, &bounds, &new) else {
                                        panic!("conditions that were open");
                                    };
                                    assert!(!differ(&ir, &new, &again));
                                }
                            }
                        }
                    }
                }
            }
        }
        assert!(100 < never && 10 < always && 100 < fewer, "{never}, {always}, {fewer}");
    }
}
