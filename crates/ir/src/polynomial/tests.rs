//! The canonical form keeps values, is a fixpoint, and reads well.

use proptest::prelude::*;

use super::*;

/// A random expression, as a program for a stack machine over `Context`.
pub(crate) fn any_expr(num_vars: u32) -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        2 => (-6i64..7).prop_map(Tree::Constant),
        3 => (0..num_vars).prop_map(Tree::Var),
    ];
    leaf.prop_recursive(4, 24, 2, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            4 => pair.clone().prop_map(|(a, b)| Tree::Binary(0, a.into(), b.into())),
            3 => pair.clone().prop_map(|(a, b)| Tree::Binary(1, a.into(), b.into())),
            1 => pair.clone().prop_map(|(a, b)| Tree::Binary(2, a.into(), b.into())),
            2 => (inner.clone(), -3i64..5).prop_map(|(a, c)| Tree::Binary(2, a.into(), Tree::Constant(c).into())),
            2 => (inner.clone(), 1i64..6).prop_map(|(a, c)| Tree::Binary(3, a.into(), Tree::Constant(c).into())),
            1 => (inner.clone(), 1i64..6).prop_map(|(a, c)| Tree::Binary(4, a.into(), Tree::Constant(c).into())),
            1 => (inner, 1i64..6).prop_map(|(a, c)| Tree::Binary(5, a.into(), Tree::Constant(c).into())),
            1 => pair.clone().prop_map(|(a, b)| Tree::Binary(3, a.into(), b.into())),
            2 => pair.clone().prop_map(|(a, b)| Tree::Binary(6, a.into(), b.into())),
            2 => pair.prop_map(|(a, b)| Tree::Binary(7, a.into(), b.into())),
        ]
    })
}

#[derive(Clone, Debug)]
pub(crate) enum Tree {
    Constant(i64),
    Var(u32),
    Binary(u8, Box<Tree>, Box<Tree>),
}

impl Tree {
    /// Recursive, over trees that the generator keeps shallow.
    pub(crate) fn build(&self, context: &Context, vars: &[Expr]) -> Expr {
        match self {
            Tree::Constant(value) => context.constant(*value),
            Tree::Var(number) => vars[*number as usize],
            Tree::Binary(op, a, b) => {
                let (a, b) = (a.build(context, vars), b.build(context, vars));
                match op {
                    0 => context.add(a, b),
                    1 => context.sub(a, b),
                    2 => context.mul(a, b),
                    3 => context.floor_div(a, b),
                    4 => context.ceil_div(a, b),
                    5 => context.modulo(a, b),
                    6 => context.min(a, b),
                    _ => context.max(a, b),
                }
            }
        }
    }
}

fn letters(var: Var) -> String {
    match var {
        Var::Runtime(number) => ["N", "M", "K"][number as usize].to_owned(),
        Var::Dim(number) => ["i", "j"][number as usize].to_owned(),
        Var::Range(_) => "k".to_owned(),
    }
}

fn shown(build: impl Fn(&Context, Expr, Expr, Expr) -> Expr) -> String {
    let context = Context::new();
    let [n, m, i] = [context.runtime(0), context.runtime(1), context.dim(0)];
    text(&context, build(&context, n, m, i), &letters)
}

#[test]
fn text_reads_like_source() {
    let c = |context: &Context, value| context.constant(value);
    assert_eq!(shown(|x, n, m, _| x.add(x.sub(c(x, 1), m), n)), "N - M + 1");
    assert_eq!(shown(|x, n, _, _| x.floor_div(x.sub(n, c(x, 1)), c(x, 2))), "(N - 1) / 2");
    assert_eq!(shown(|x, n, _, _| x.sub(c(x, 10), n)), "10 - N");
    assert_eq!(
        shown(|x, n, m, _| x.sub(x.min(x.add(n, c(x, 1)), x.add(m, c(x, 1))), c(x, 1))),
        "min(N, M)"
    );
    assert_eq!(shown(|x, n, m, i| x.mul(x.add(n, m), i)), "i*N + i*M");
    assert_eq!(shown(|x, n, _, i| x.mul(x.floor_div(i, n), c(x, 3))), "3*(i / N)");
    assert_eq!(shown(|x, n, _, _| x.neg(n)), "-N");
    assert_eq!(shown(|x, n, _, i| x.modulo(x.add(i, n), c(x, 4))), "(i + N) % 4");
}

#[test]
fn condition_text_puts_terms_on_both_sides() {
    let context = Context::new();
    let [i, j, k] = [context.runtime(0), context.runtime(1), context.runtime(2)];
    let condition = context.add(context.sub(context.sub(k, i), j), context.constant(1));
    assert_eq!(condition_text(&context, condition, &letters), "N + M - 1 <= K");
    let constant = |value| context.constant(value);
    assert_eq!(condition_text(&context, context.sub(i, constant(2)), &letters), "2 <= N");
    assert_eq!(condition_text(&context, context.sub(constant(5), i), &letters), "N <= 5");
    assert_eq!(condition_text(&context, context.neg(i), &letters), "N <= 0");
}

#[test]
fn canonical_form_merges() {
    // floor((floor(x / 2) + 1) / 3) == floor((x + 2) / 6), and -floor(-x / 4) == ceil(x / 4).
    let context = Context::new();
    let x = context.dim(0);
    let c = |value| context.constant(value);
    let mut normalizer = Normalizer::new(&context);
    let mut same = |a: Expr, b: Expr| {
        let (a, b) = (normalizer.polynomial(a).unwrap(), normalizer.polynomial(b).unwrap());
        assert_eq!(a, b);
    };
    let nested = context.floor_div(context.add(context.floor_div(x, c(2)), c(1)), c(3));
    same(nested, context.floor_div(context.add(x, c(2)), c(6)));
    let n = context.runtime(0);
    same(
        context.floor_div(context.add(context.mul(n, x), x), n),
        context.add(x, context.floor_div(x, n)),
    );
    same(
        context.ceil_div(context.mul(x, c(4)), c(6)),
        context.floor_div(context.add(context.mul(x, c(2)), c(2)), c(3)),
    );
    same(context.min(context.add(x, c(1)), context.max(x, x)), x);
}

#[test]
fn canonical_form_refuses_what_is_too_large() {
    let context = Context::new();
    let mut product = context.constant(1);
    for number in 0..20 {
        product = context.mul(product, context.add(context.dim(number), context.constant(1)));
    }
    assert_eq!(Normalizer::new(&context).polynomial(product), Err(PolynomialError::TooLarge));
    let huge = context.mul(context.mul(context.dim(0), context.constant(i64::MAX)), context.dim(1));
    let huge = context.add(huge, huge);
    assert_eq!(Normalizer::new(&context).polynomial(huge), Err(PolynomialError::Overflow));
}

#[test]
fn canonical_form_walks_long_chains() {
    let context = Context::new();
    let (x, y) = (context.dim(0), context.dim(1));
    let mut chain = x;
    for step in 0..50_000 {
        chain = context.add(chain, if step % 2 == 0 { x } else { y });
    }
    let expected = context
        .add(context.mul(x, context.constant(25_001)), context.mul(y, context.constant(25_000)));
    let mut normalizer = Normalizer::new(&context);
    assert_eq!(normalizer.polynomial(chain), normalizer.polynomial(expected));
    let mut deep = x;
    for step in 0..3_000 {
        deep = context.min(context.add(deep, y), context.dim(step % 7));
    }
    assert!(Normalizer::new(&context).polynomial(deep).is_ok());
    assert!(text(&context, deep, &|_| "x".to_owned()).contains("..."));
}

#[test]
fn the_least_coefficient_is_no_special_case() {
    let context = Context::new();
    let half = context.floor_div(context.dim(0), context.constant(2));
    let expr =
        context.floor_div(context.mul(half, context.constant(i64::MIN)), context.constant(3));
    let polynomial = Normalizer::new(&context).polynomial(expr).unwrap();
    let rebuilt = Normalizer::new(&context).expr(&polynomial).unwrap();
    for value in -3..=3 {
        let value = |_| Some(value);
        assert_eq!(context.eval(rebuilt, &value), context.eval(expr, &value));
    }
}

proptest! {
    #[test]
    fn canonical_form_keeps_values(tree in any_expr(3)) {
        let context = Context::new();
        let vars = [context.dim(0), context.dim(1), context.runtime(0)];
        let expr = tree.build(&context, &vars);
        let mut normalizer = Normalizer::new(&context);
        let Ok(polynomial) = normalizer.polynomial(expr) else { return Ok(()) };
        let rebuilt = normalizer.expr(&polynomial).unwrap();
        // What is rebuilt is canonical already.
        let mut fresh = Normalizer::new(&context);
        prop_assert_eq!(&fresh.polynomial(rebuilt).unwrap(), &polynomial);
        for values in (0..125).map(|index| [index % 5 - 2, index / 5 % 5 - 2, index / 25 - 2]) {
            let value = |var| match var {
                Var::Dim(number) => Some(values[number as usize]),
                _ => Some(values[2]),
            };
            if let Ok(expected) = context.eval(expr, &value) {
                // A division by zero may cancel, but what has a value keeps it.
                prop_assert_eq!(context.eval(rebuilt, &value), Ok(expected));
            }
        }
    }
}
