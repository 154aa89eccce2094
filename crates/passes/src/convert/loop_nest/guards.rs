//! Innermost loops without tests of guards.
//!
//! A condition on outer variables is tested before the loop, and one that is linear in the variable of
//! the loop splits it: into the points before those at which the condition holds, these, and the
//! points after them. What is decided is not tested again: an input is loaded, or is its constant.
//!
//! ```text
//! %x[i - 1, j - 1] where i - 1 in [0, 7] and j - 1 in [0, 9]
//!
//! if 0 <= i - 1 <= 7 { for j in [0, 1) {constant} for j in [1, 11) {load} for j in [11, 12) {constant} }
//! else { for j in [0, 12) {constant} }
//! ```

use super::emit::{Nest, Scope, constrained};
use crate::loops;
use tc_dialects::{
    imap::{Indexed, Inside},
    mlir::{self, Builder, Val},
};
use tc_ir::{Constraint, Var};

/// Iterations below which a loop is not worth a split.
const SHORT: i64 = 16;
/// The most operations of a body that is copied.
const MAX_BODY: usize = 64;

/// Emits a loop over a part of the values of a variable, which carries values.
type EmitLoop<'a, 'c> =
    dyn FnMut(&Builder<'c>, &Scope<'c>, (Val<'c>, Val<'c>), &[Val<'c>]) -> Vec<Val<'c>> + 'a;

/// Conditions that the body tests together, and those of them that are not known to hold.
struct Test {
    all: Vec<Constraint>,
    open: Vec<Constraint>,
}

/// The tests that the body needs in a scope.
fn tests(nest: &Nest, scope: &Scope) -> Vec<Test> {
    let body = nest.generic.body();
    let arguments = mlir::arguments(body).into_iter().zip(&nest.inputs);
    let read = arguments.filter(|(argument, _)| !mlir::uses(*argument).is_empty());
    let guards = read.map(|(_, input)| input.map.constraints.clone());
    let insides = Inside::all_of(&[body]).into_iter().map(|inside| inside.conditions(&nest.ir));
    let mut tests: Vec<Test> = Vec::new();
    for all in guards.chain(insides) {
        let is_open = |it: &&Constraint| !scope.held.contains(it);
        let open: Vec<_> = all.iter().filter(is_open).copied().collect();
        let is_known = open.is_empty() || scope.failed.contains(&all);
        if !is_known && !tests.iter().any(|it| it.all == all) {
            tests.push(Test { all, open });
        }
    }
    tests
}

/// Whether the body of an operation tests something at each point.
pub(in crate::convert) fn has_tests(nest: &Nest) -> bool {
    !tests(nest, &Scope::default()).is_empty()
}

/// Whether a condition holds for an interval of the values of a variable, whose ends do not overflow.
pub(in crate::convert) fn is_linear(nest: &Nest, var: Var, condition: &Constraint) -> bool {
    let read = nest.elements_in(condition.expr);
    let is_bounded = || {
        let values = nest.ir.interval_of(condition.expr, &|var| nest.intervals.of(var));
        values.is_bounded()
    };
    matches!(nest.ir.coefficient(condition.expr, var), Some(1 | -1))
        && !nest.needs(&read).contains(&var)
        && (read.is_empty() || is_bounded())
}

/// A loop over `var` that is split by conditions.
struct Split<'a, 'c> {
    nest: &'a Nest<'c>,
    var: Var,
    bounds: (Val<'c>, Val<'c>),
}

impl<'c> Split<'_, 'c> {
    /// Whether a condition does not depend on the variable.
    fn is_invariant(&self, condition: &Constraint) -> bool {
        !self.nest.needs(&[condition.expr]).contains(&self.var)
    }

    /// The conditions of a kind that are not known to hold, and the tests that have one.
    fn open(
        &self,
        scope: &Scope<'c>,
        is_of_kind: &dyn Fn(&Constraint) -> bool,
    ) -> (Vec<Constraint>, Vec<Vec<Constraint>>) {
        let (mut conditions, mut deciding) = (Vec::new(), Vec::new());
        for Test { all, open } in tests(self.nest, scope) {
            let count = conditions.len();
            conditions.extend(open.into_iter().filter(is_of_kind));
            if count < conditions.len() {
                deciding.push(all);
            }
        }
        (conditions, deciding)
    }

    /// Tests what does not depend on the variable.
    fn by_invariants(
        &self,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        carried: &[Val<'c>],
        emit: &mut EmitLoop<'_, 'c>,
    ) -> Vec<Val<'c>> {
        let mut scope = scope.clone();
        let (invariants, deciding) = self.open(&scope, &|it| self.is_invariant(it));
        let condition = self.nest.condition(builder, &mut scope, &invariants);
        let mut held = scope.clone();
        held.held.extend(&invariants);
        let Some(condition) = condition else {
            return self.by_ends(builder, &held, carried, emit);
        };
        loops::build_branches(builder, condition, &mut |inside, holds| {
            if holds {
                return self.by_ends(inside, &held, carried, emit);
            }
            let [failing] = &deciding[..] else {
                return emit(inside, &scope, self.bounds, carried);
            };
            let mut failed = scope.clone();
            failed.failed.push(failing.clone());
            self.by_ends(inside, &failed, carried, emit)
        })
    }

    /// Splits the loop where conditions begin and cease to hold.
    fn by_ends(
        &self,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        carried: &[Val<'c>],
        emit: &mut EmitLoop<'_, 'c>,
    ) -> Vec<Val<'c>> {
        let mut scope = scope.clone();
        let (conditions, deciding) = self.open(&scope, &|it| is_linear(self.nest, self.var, it));
        if conditions.is_empty() {
            return emit(builder, &scope, self.bounds, carried);
        }
        let index = builder.index_type();
        let (lower, upper) = self.bounds;
        let mut inner = self.bounds;
        for condition in &conditions {
            inner = self.nest.tighten(builder, &mut scope, condition, self.var, inner);
        }
        let first = builder.value("arith.minsi", &[inner.0, upper], index);
        let end = builder.value("arith.maxsi", &[inner.1, first], index);
        let (mut inside, mut outside) = (scope.clone(), scope);
        inside.held.extend(conditions);
        if let [failing] = &deciding[..] {
            outside.failed.push(failing.clone());
        }
        let carried = emit(builder, &outside, (lower, first), carried);
        let carried = emit(builder, &inside, (first, end), &carried);
        emit(builder, &outside, (end, upper), &carried)
    }
}

/// Emits an innermost loop over the values of a variable from the first bound to before the second, in
/// parts if that saves tests.
pub(in crate::convert) fn split_loop<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    (var, bounds): (Var, (Val<'c>, Val<'c>)),
    carried: &[Val<'c>],
    emit: &mut EmitLoop<'_, 'c>,
) -> Vec<Val<'c>> {
    let split = Split { nest, var, bounds };
    let decided: Vec<Constraint> = tests(nest, scope)
        .into_iter()
        .flat_map(|test| test.open)
        .filter(|it| split.is_invariant(it) || is_linear(nest, var, it))
        .collect();
    let is_short = nest.extent(var).is_some_and(|extent| extent < SHORT);
    let is_large = MAX_BODY < mlir::ops(nest.generic.body()).len();
    // An element exists where the body runs, so at some point of the loop, and where constraints hold.
    let reads = nest.must_read(scope, &constrained(&decided));
    if decided.is_empty() || is_short || is_large || reads && !nest.domain.constraints.is_empty() {
        return emit(builder, scope, bounds, carried);
    }
    if !reads {
        return split.by_invariants(builder, scope, carried, emit);
    }
    let has_points = builder.compare_int("slt", bounds.0, bounds.1);
    loops::build_if(
        builder,
        has_points,
        &mut |inside| split.by_invariants(inside, scope, carried, emit),
        &mut |_| carried.to_vec(),
    )
}
