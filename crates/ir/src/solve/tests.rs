//! Known intervals, and against enumeration.

use proptest::prelude::*;

use super::*;
use crate::polynomial::tests::{Tree, any_expr};
use crate::polynomial::text;

/// Sizes `N`, `M` of at least 1; `v` is solved for; `i` in `[0, N - 1]` and `j` in `[-1, M]` are
/// eliminated.
struct Setting {
    context: Context,
}

const VARIABLE: Var = Var::Range(0);

impl Setting {
    fn new() -> Self {
        Self { context: Context::new() }
    }

    fn vars(&self) -> [Expr; 5] {
        let context = &self.context;
        [
            context.var(VARIABLE),
            context.runtime(0),
            context.runtime(1),
            context.dim(0),
            context.dim(1),
        ]
    }

    fn c(&self, value: i64) -> Expr {
        self.context.constant(value)
    }

    fn interval(&self, var: Var) -> Option<(Option<Expr>, Option<Expr>)> {
        let [_, n, m, _, _] = self.vars();
        match var {
            Var::Dim(0) => Some((Some(self.c(0)), Some(self.context.sub(n, self.c(1))))),
            Var::Dim(1) => Some((Some(self.c(-1)), Some(m))),
            Var::Dim(_) => Some((None, None)),
            _ => None,
        }
    }

    fn prover(&self) -> Prover<'_> {
        let mut prover = Prover::new(&self.context);
        for size in 0..2 {
            prover.bound(Var::Runtime(size), Some(self.c(1)), Some(self.c(i64::from(i32::MAX))));
        }
        for var in [Var::Dim(0), Var::Dim(1)] {
            let (lower, upper) = self.interval(var).unwrap();
            prover.bound(var, lower, upper);
        }
        prover
    }

    fn solve(&self, expr: Expr, lower: Expr, upper: Expr) -> Result<Solution> {
        solve(&self.prover(), expr, Some(lower), Some(upper), VARIABLE, &|var| self.interval(var))
    }

    /// Solves `0 <= expr <= N - 1` and shows `lower:upper`, both closed.
    fn shown(&self, expr: Expr) -> String {
        let [_, n, ..] = self.vars();
        let name = |var| match var {
            Var::Runtime(0) => "N",
            Var::Runtime(_) => "M",
            Var::Dim(0) => "i",
            Var::Dim(1) => "j",
            Var::Dim(_) => "t",
            Var::Range(_) => "v",
        };
        let shown = |bound: Option<Expr>| {
            bound.map_or("-".to_owned(), |bound| {
                text(&self.context, bound, &|var| name(var).to_owned())
            })
        };
        match self.solve(expr, self.c(0), self.context.sub(n, self.c(1))) {
            Ok(Solution { lower, upper, conditions }) => {
                let conditions: Vec<_> =
                    conditions.into_iter().map(|condition| shown(Some(condition))).collect();
                let with = if conditions.is_empty() { "" } else { " if 0 <= " };
                format!("{}:{}{with}{}", shown(lower), shown(upper), conditions.join(", "))
            }
            Err(error) => format!("{error:?}"),
        }
    }
}

#[test]
fn solves_the_documented_examples() {
    let setting = Setting::new();
    let x = &setting.context;
    let [v, n, m, i, _] = setting.vars();
    let c = |value| setting.c(value);
    let twice = x.mul(v, c(2));
    assert_eq!(setting.shown(v), "0:N - 1");
    assert_eq!(setting.shown(x.sub(v, c(2))), "2:N + 1");
    assert_eq!(setting.shown(twice), "0:(N - 1) / 2");
    assert_eq!(setting.shown(x.add(twice, c(1))), "0:(N - 2) / 2");
    assert_eq!(setting.shown(x.sub(c(10), v)), "11 - N:10");
    assert_eq!(setting.shown(x.sub(x.mul(v, c(3)), c(4))), "2:(N + 3) / 3");
    assert_eq!(setting.shown(x.sub(x.sub(n, c(1)), twice)), "0:(N - 1) / 2");
    assert_eq!(setting.shown(x.add(v, i)), "0:0");
    assert_eq!(setting.shown(x.add(v, m)), "-M:N - M - 1");
    assert_eq!(setting.shown(x.mul(v, m)), "0:(N - 1) / M");
    assert_eq!(setting.shown(x.floor_div(v, c(2))), "0:2*N - 1");
    assert_eq!(setting.shown(x.floor_div(v, m)), "0:N*M - 1");
    assert_eq!(setting.shown(x.ceil_div(v, c(2))), "-1:2*N - 2");
    assert_eq!(setting.shown(x.add(v, x.floor_div(v, c(2)))), "0:(2*N - 1) / 3");
}

#[test]
fn solves_clamps_and_choices() {
    let setting = Setting::new();
    let x = &setting.context;
    let [v, n, m, i, j] = setting.vars();
    let c = |value| setting.c(value);
    let last = x.sub(n, c(1));
    assert_eq!(setting.shown(x.max(v, c(0))), "-:N - 1");
    assert_eq!(setting.shown(x.min(v, last)), "0:-");
    assert_eq!(setting.shown(x.max(x.min(v, last), c(0))), "-:-");
    assert_eq!(setting.shown(x.min(x.mul(v, c(2)), x.add(v, c(1)))), "0:max(N - 2, (N - 1) / 2)");
    assert_eq!(setting.shown(x.max(v, m)), "-:N - 1 if 0 <= N - M - 1");
    assert!(setting.shown(x.min(v, m)).starts_with("Undecided"));
    // Data that a clamp tames, and data that none does.
    let clamped = x.min(x.max(x.dim(7), c(0)), c(1));
    assert_eq!(setting.shown(x.add(v, clamped)), "0:N - 2");
    assert_eq!(
        setting.shown(x.add(v, x.dim(7))),
        format!("{:?}", SolveError::Unbounded { var: Var::Dim(7) })
    );
    // A coefficient that changes: both ends of its interval count.
    assert_eq!(setting.shown(x.mul(v, x.add(j, c(2)))), "0:(N - 1) / (M + 2)");
    assert_eq!(setting.shown(x.mul(v, x.add(i, c(1)))), "0:0");
    assert!(setting.shown(x.mul(v, x.dim(7))).starts_with("VaryingCoefficient"));
}

#[test]
fn says_why_not() {
    let setting = Setting::new();
    let x = &setting.context;
    let [v, n, m, i, _] = setting.vars();
    let c = |value| setting.c(value);
    assert_eq!(setting.shown(x.mul(v, v)), "NotLinear");
    assert_eq!(setting.shown(x.modulo(v, c(4))), "NotLinear");
    assert_eq!(setting.shown(x.modulo(v, n)), "-:-");
    assert_eq!(setting.shown(x.floor_div(n, v)), "NotLinear");
    assert!(setting.shown(x.mul(v, x.sub(n, m))).starts_with("UnknownSign"));
    assert!(setting.shown(x.add(v, x.modulo(i, c(3)))).starts_with("NotMonotone"));
    assert_eq!(setting.shown(x.floor_div(v, c(0))), "DivisionByZero");
    // Shared subexpressions are a tree of exponential size.
    let mut shared = v;
    for step in 0..60 {
        shared = x.max(x.add(x.mul(shared, c(2)), i), x.min(shared, x.sub(n, c(step))));
    }
    assert!(setting.solve(shared, c(0), n).is_err());
    assert!(text(x, shared, &|_| "x".to_owned()).len() < 1 << 20);
    let mut deep = v;
    for step in 0..200 {
        deep = x.floor_div(x.add(x.min(deep, x.mul(deep, c(3))), c(step)), c(2));
    }
    assert!(setting.solve(deep, c(0), n).is_err());
}

#[test]
fn extremes_of_boxes() {
    let setting = Setting::new();
    let x = &setting.context;
    let [_, n, m, i, j] = setting.vars();
    let prover = setting.prover();
    let eliminate = |var| setting.interval(var);
    let c = |value| setting.c(value);
    assert_eq!(
        maximum(&prover, x.add(i, j), &eliminate),
        Ok(Extreme::Finite(x.add(x.add(n, m), c(-1))))
    );
    assert_eq!(minimum(&prover, x.sub(i, j), &eliminate), Ok(Extreme::Finite(x.neg(m))));
    let squared = x.add(x.sub(x.mul(n, n), x.mul(n, c(2))), c(1));
    let Ok(Extreme::Finite(found)) = maximum(&prover, x.mul(i, i), &eliminate) else {
        panic!("i * i rises")
    };
    assert_eq!(prover.equal(found, squared), Verdict::Proved);
    assert_eq!(minimum(&prover, x.dim(9), &eliminate), Ok(Extreme::NegativeInfinity));
    assert_eq!(maximum(&prover, x.min(x.dim(9), n), &eliminate), Ok(Extreme::Finite(n)));
}

/// Compares a solution with enumeration at small sizes.
fn agrees(tree: &Tree, lower: i64, upper: &Tree) -> std::result::Result<(), TestCaseError> {
    let setting = Setting::new();
    let vars = setting.vars();
    let expr = tree.build(&setting.context, &vars);
    let upper = upper.build(&setting.context, &vars[1..3]);
    let Ok(solution) = setting.solve(expr, setting.c(lower), upper) else {
        return Ok(());
    };
    let context = &setting.context;
    for (n, m) in (1..5).flat_map(|n| (1..5).map(move |m| (n, m))) {
        let value = |v: i64, i: i64, j: i64| {
            move |var| match var {
                Var::Runtime(number) => Some(if number == 0 { n } else { m }),
                Var::Dim(number) => Some(if number == 0 { i } else { j }),
                Var::Range(_) => Some(v),
            }
        };
        let at_sizes = |bound: Expr| context.eval(bound, &value(0, 0, 0));
        let (Ok(top), Ok(conditions)) = (
            at_sizes(upper),
            solution
                .conditions
                .iter()
                .map(|&c| at_sizes(c))
                .collect::<std::result::Result<Vec<_>, _>>(),
        ) else {
            continue;
        };
        let (Ok(low), Ok(high)) =
            (solution.lower.map(at_sizes).transpose(), solution.upper.map(at_sizes).transpose())
        else {
            continue;
        };
        for v in -25..26 {
            let mut defined = true;
            let holds = (0..n).flat_map(|i| (-1..=m).map(move |j| (i, j))).all(|(i, j)| {
                match context.eval(expr, &value(v, i, j)) {
                    Ok(e) => lower <= e && e <= top,
                    Err(_) => {
                        defined = false;
                        true
                    }
                }
            });
            let solved = conditions.iter().all(|&c| 0 <= c)
                && low.is_none_or(|low| low <= v)
                && high.is_none_or(|high| v <= high);
            prop_assert!(
                !defined || holds == solved,
                "v = {v} at N = {n}, M = {m}: {holds}, {low:?}:{high:?}"
            );
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn solutions_agree_with_enumeration(tree in any_expr(5), lower in -2i64..3, upper in any_expr(2)) {
        agrees(&tree, lower, &upper)?;
    }

    #[test]
    fn solutions_of_strides_agree(a in -4i64..5, tree in any_expr(5), divisor in 1i64..4, c in -5i64..6, size in 0u32..2) {
        // (a*v + c + tree / 4) / divisor
        let term = |op, a: Tree, b: Tree| Tree::Binary(op, a.into(), b.into());
        let scaled = term(2, Tree::Var(0), Tree::Constant(a));
        let rest = term(0, Tree::Constant(c), term(3, tree, Tree::Constant(4)));
        let whole = term(3, term(0, scaled, rest), Tree::Constant(divisor));
        agrees(&whole, 0, &term(1, Tree::Var(size), Tree::Constant(1)))?;
    }

    #[test]
    fn extremes_agree_with_enumeration(tree in any_expr(4)) {
        let setting = Setting::new();
        let vars = setting.vars();
        let expr = tree.build(&setting.context, &vars[1..]);
        let eliminate = |var| setting.interval(var);
        let Ok(Extreme::Finite(least)) = minimum(&setting.prover(), expr, &eliminate) else { return Ok(()) };
        for (n, m) in (1i64..5).flat_map(|n| (1i64..5).map(move |m| (n, m))) {
            let value = |i: i64, j: i64| move |var| match var {
                Var::Runtime(number) => Some(if number == 0 { n } else { m }),
                Var::Dim(number) => Some(if number == 0 { i } else { j }),
                Var::Range(_) => None,
            };
            let points = (0..n).flat_map(|i| (-1..=m).map(move |j| (i, j)));
            let values: std::result::Result<Vec<_>, _> =
                points.map(|(i, j)| setting.context.eval(expr, &value(i, j))).collect();
            if let (Ok(values), Ok(least)) = (values, setting.context.eval(least, &value(0, 0))) {
                prop_assert_eq!(values.into_iter().min(), Some(least), "at N = {}, M = {}", n, m);
            }
        }
    }
}
