//! Verdicts on known claims, and against enumeration.

use proptest::prelude::*;

use super::*;
use crate::polynomial::tests::{Tree, any_expr};

/// Sizes `N`, `M` of at least 1, and `i` in `[0, N - 1]`, `j` in `[-1, min(M, 3)]`.
struct Setting {
    context: Context,
}

impl Setting {
    fn new() -> Self {
        Self { context: Context::new() }
    }

    fn vars(&self) -> [Expr; 4] {
        let context = &self.context;
        [context.runtime(0), context.runtime(1), context.dim(0), context.dim(1)]
    }

    fn c(&self, value: i64) -> Expr {
        self.context.constant(value)
    }

    fn prover(&self) -> Prover<'_> {
        let [n, m, _, _] = self.vars();
        let mut prover = Prover::new(&self.context);
        prover.bound(Var::Runtime(0), Some(self.c(1)), None);
        prover.bound(Var::Runtime(1), Some(self.c(1)), Some(self.c(i64::from(i32::MAX))));
        prover.bound(Var::Dim(0), Some(self.c(0)), Some(self.context.sub(n, self.c(1))));
        prover.bound(Var::Dim(1), Some(self.c(-1)), Some(self.context.min(m, self.c(3))));
        prover
    }

    /// All points at sizes up to 4.
    fn points() -> impl Iterator<Item = [i64; 4]> {
        let sizes = (1..5).flat_map(|n| (1..5).map(move |m| (n, m)));
        sizes
            .flat_map(|(n, m)| (0..n).flat_map(move |i| (-1..=m.min(3)).map(move |j| [n, m, i, j])))
    }
}

fn value_at(point: [i64; 4]) -> impl Fn(Var) -> Option<i64> {
    move |var| match var {
        Var::Runtime(number) => point.get(number as usize).copied(),
        Var::Dim(number) => point.get(number as usize + 2).copied(),
        Var::Range(_) => None,
    }
}

#[test]
fn proves_linear_and_division_claims() {
    let setting = Setting::new();
    let context = &setting.context;
    let [n, m, i, j] = setting.vars();
    let prover = setting.prover();
    let c = |value| setting.c(value);
    let last = context.sub(n, c(1));
    let proved = |a, b| assert_eq!(prover.at_most(a, b), Verdict::Proved);
    proved(c(0), i);
    proved(i, last);
    proved(j, m);
    proved(j, c(3));
    proved(context.floor_div(i, c(2)), context.floor_div(last, c(2)));
    proved(context.mul(context.floor_div(i, c(3)), c(3)), i);
    proved(context.modulo(i, n), last);
    proved(context.modulo(context.add(i, j), c(5)), c(4));
    proved(context.floor_div(i, n), c(0));
    proved(context.max(context.min(context.dim(7), last), c(0)), last);
    proved(context.sub(last, i), last);
    proved(context.min(n, m), context.max(n, m));
    // floor(i / 2) + ceil(i / 2) == i
    let halves = context.add(context.floor_div(i, c(2)), context.ceil_div(i, c(2)));
    assert_eq!(prover.equal(halves, i), Verdict::Proved);
    // i mod 4 == i - 4 * (i / 4)
    let remainder = context.sub(i, context.mul(context.floor_div(i, c(4)), c(4)));
    assert_eq!(prover.equal(context.modulo(i, c(4)), remainder), Verdict::Proved);
}

#[test]
fn proves_products() {
    let setting = Setting::new();
    let context = &setting.context;
    let [n, m, i, _] = setting.vars();
    let mut prover = setting.prover();
    let c = |value| setting.c(value);
    prover.bound(Var::Range(0), Some(c(0)), Some(context.sub(m, c(1))));
    let k = context.range(0);
    assert_eq!(prover.at_most(c(1), context.mul(n, m)), Verdict::Proved);
    assert_eq!(prover.at_most(n, context.mul(n, m)), Verdict::Proved);
    // i * M + k < N * M
    let flat = context.add(context.mul(i, m), k);
    assert_eq!(prover.at_most(flat, context.sub(context.mul(n, m), c(1))), Verdict::Proved);
    assert_eq!(prover.at_most(c(0), flat), Verdict::Proved);
    // (i * M + k) / M < N
    assert_eq!(prover.at_most(context.floor_div(flat, m), context.sub(n, c(1))), Verdict::Proved);
    let cube = context.mul(context.mul(n, m), context.add(context.range(1), c(1)));
    prover.bound(Var::Range(1), Some(c(0)), None);
    assert_eq!(prover.at_most(c(1), cube), Verdict::Proved);
}

#[test]
fn refutes_and_does_not_know() {
    let setting = Setting::new();
    let context = &setting.context;
    let [n, m, i, j] = setting.vars();
    let prover = setting.prover();
    assert_eq!(prover.at_most(n, i), Verdict::Refuted);
    assert_eq!(prover.at_most(setting.c(4), j), Verdict::Refuted);
    assert_eq!(prover.at_most(n, setting.c(0)), Verdict::Refuted);
    assert_eq!(prover.at_most(n, m), Verdict::Unknown);
    assert_eq!(prover.at_most(setting.c(3), i), Verdict::Unknown);
    assert_eq!(prover.equal(n, i), Verdict::Refuted);
    assert_eq!(prover.equal(n, m), Verdict::Unknown);
    assert_eq!(prover.nonnegative(context.sub(j, setting.c(5))), Verdict::Refuted);
}

#[test]
fn assumptions_count() {
    let setting = Setting::new();
    let context = &setting.context;
    let [n, m, i, _] = setting.vars();
    let mut prover = setting.prover();
    let before = prover.fork();
    // N <= min(M, 7) - 1
    prover.assume_at_most(n, context.sub(context.min(m, setting.c(7)), setting.c(1)));
    assert_eq!(prover.at_most(context.add(i, setting.c(2)), m), Verdict::Proved);
    assert_eq!(prover.at_most(n, setting.c(6)), Verdict::Proved);
    assert_eq!(before.at_most(n, setting.c(6)), Verdict::Unknown);
}

#[test]
fn answers_on_large_expressions() {
    let context = Context::new();
    let mut prover = Prover::new(&context);
    let mut sum = context.constant(0);
    for number in 0..200 {
        let var = context.dim(number);
        prover.bound(Var::Dim(number), Some(context.constant(0)), Some(context.runtime(number)));
        sum = context
            .add(sum, context.min(context.floor_div(var, context.constant(2)), context.runtime(0)));
    }
    assert_ne!(prover.nonnegative(sum), Verdict::Refuted);
    let huge = context.mul(context.dim(0), context.constant(i64::MIN));
    assert_eq!(prover.at_most(huge, context.constant(i64::MAX)), Verdict::Unknown);
}

fn agrees(tree: &Tree) -> std::result::Result<Verdict, TestCaseError> {
    let setting = Setting::new();
    let expr = tree.build(&setting.context, &setting.vars());
    let verdict = setting.prover().nonnegative(expr);
    for point in Setting::points() {
        // A point at which the expression has no value says nothing.
        if let Ok(value) = setting.context.eval(expr, &value_at(point)) {
            match verdict {
                Verdict::Proved => prop_assert!(0 <= value, "{value} at {point:?}"),
                Verdict::Refuted => prop_assert!(value < 0, "{value} at {point:?}"),
                Verdict::Unknown => {}
            }
        }
    }
    Ok(verdict)
}

proptest! {
    #[test]
    fn verdicts_agree_with_enumeration(tree in any_expr(4)) {
        agrees(&tree)?;
    }

    /// Shifting an expression by its least value makes claims that are true, and barely.
    #[test]
    fn verdicts_agree_at_the_edge(tree in any_expr(4), slack in -1i64..2) {
        let setting = Setting::new();
        let expr = tree.build(&setting.context, &setting.vars());
        let values = Setting::points().filter_map(|point| setting.context.eval(expr, &value_at(point)).ok());
        if let Some(least) = values.min() {
            agrees(&Tree::Binary(0, tree.into(), Tree::Constant(slack - least).into()))?;
        }
    }
}
