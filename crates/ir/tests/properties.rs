//! Random maps against enumeration of their domains.

use std::collections::HashMap;

use proptest::prelude::*;
use tc_ir::simplify::Simplifier;
use tc_ir::text::parse_expr;
use tc_ir::{Context, EvalError, Expr, IndexingMap, Interval, Var, compose};

mod maps;

use maps::{Op, Tree, any_sketch, any_tree};

type Values = (Vec<i64>, Vec<i64>, Vec<i64>);

/// All points of the box around the domain, the runtime variables included.
fn box_of(map: &IndexingMap, ctx: &Context) -> Vec<Values> {
    let intervals = map.intervals(ctx);
    let mut points: Vec<Vec<i64>> = vec![Vec::new()];
    for (var, _) in map.vars() {
        let interval = intervals.of(var);
        points = points
            .into_iter()
            .flat_map(|point| {
                (interval.lo..=interval.hi).map(move |value| {
                    let mut point = point.clone();
                    point.push(value);
                    point
                })
            })
            .collect();
    }
    let (dims, ranges) = (map.dims.len(), map.ranges.len());
    points
        .into_iter()
        .map(|point| {
            (
                point[..dims].to_vec(),
                point[dims..dims + ranges].to_vec(),
                point[dims + ranges..].to_vec(),
            )
        })
        .collect()
}

fn value_in(point: &Values, var: Var) -> i64 {
    match var {
        Var::Dim(i) => point.0[i as usize],
        Var::Range(i) => point.1[i as usize],
        Var::Runtime(i) => point.2[i as usize],
    }
}

fn contains(map: &IndexingMap, ctx: &Context, point: &Values) -> Result<bool, EvalError> {
    map.contains(ctx, &point.0, &point.1, &point.2)
}

/// Whether membership of a point came out as expected. Where a point is outside by its bounds,
/// a constraint need not have a value.
fn agrees(found: Result<bool, EvalError>, expected: bool) -> bool {
    found.map_or(!expected, |found| found == expected)
}

fn evaluate(ctx: &Context, expr: Expr, point: &Values) -> Result<i64, EvalError> {
    ctx.eval(expr, &|var| Some(value_in(point, var)))
}

/// Limits points so that a case takes milliseconds, taken evenly.
fn thinned(points: Vec<Values>, limit: usize) -> impl Iterator<Item = Values> {
    let step = points.len().div_ceil(limit).max(1);
    points.into_iter().step_by(step)
}

/// An expression over few and mostly large constants, and over one variable.
fn any_extreme_tree() -> impl Strategy<Value = Tree> {
    let constant = prop_oneof![
        4 => prop_oneof![Just(i64::MAX), Just(i64::MIN), Just(i64::MAX - 3), Just(1 << 62)],
        3 => prop_oneof![Just(-1), Just(2), Just(5), Just(-10)],
    ];
    let leaf = prop_oneof![4 => constant.prop_map(Tree::Const), 1 => Just(Tree::Var(Var::Dim(0)))];
    leaf.prop_recursive(6, 30, 2, |inner| {
        let op = prop_oneof![
            4 => Just(Op::Add), 3 => Just(Op::Sub), 3 => Just(Op::Mul), 1 => Just(Op::FloorDiv),
            1 => Just(Op::CeilDiv), 1 => Just(Op::Mod), 1 => Just(Op::Min), 1 => Just(Op::Max),
        ];
        (op, inner.clone(), inner)
            .prop_map(|(op, lhs, rhs)| Tree::Op(op, Box::new(lhs), Box::new(rhs)))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn builders_keep_values(tree in any_tree(), seed in -50..50_i64) {
        let ctx = Context::new();
        let expr = tree.build(&ctx);
        let value_of = |var: Var| match var {
            Var::Dim(i) => seed + i64::from(i),
            Var::Range(i) => seed / 3 - i64::from(i),
            Var::Runtime(i) => seed.abs() + i64::from(i),
        };
        if let Some(value) = tree.values(1, &|var| vec![value_of(var)])[0] {
            prop_assert_eq!(ctx.eval(expr, &|var| Some(value_of(var))), Ok(value));
        }
    }

    #[test]
    fn simplify_keeps_domain_and_values(sketch in any_sketch()) {
        let ctx = Context::new();
        let map = sketch.build(&ctx);
        let mut simplified = map.clone();
        let changed = simplified.simplify(&ctx);
        prop_assert_eq!(changed, simplified != map && !map.is_known_empty(&ctx));
        let text = format!("{} => {}", map.display(&ctx), simplified.display(&ctx));
        for (&old, &new) in map.results.iter().zip(&simplified.results) {
            prop_assert!(ctx.cost(new) <= ctx.cost(old), "{}", text);
        }
        for point in thinned(box_of(&map, &ctx), 3000) {
            let Ok(inside) = contains(&map, &ctx, &point) else { continue };
            prop_assert!(agrees(contains(&simplified, &ctx, &point), inside), "{:?} {}", point, text);
            if !inside {
                continue;
            }
            for (&old, &new) in map.results.iter().zip(&simplified.results) {
                let old = evaluate(&ctx, old, &point);
                if old.is_ok() {
                    prop_assert_eq!(evaluate(&ctx, new, &point), old, "{:?} {}", point, text);
                }
            }
        }
        // No point outside of the old box comes in.
        let (old, new) = (map.intervals(&ctx), simplified.intervals(&ctx));
        for (var, _) in map.vars() {
            prop_assert!(old.of(var).covers(new.of(var)), "{}", text);
        }
    }

    #[test]
    fn simplify_reaches_a_fixpoint(sketch in any_sketch()) {
        let ctx = Context::new();
        let mut map = sketch.build(&ctx);
        map.simplify(&ctx);
        let once = map.clone();
        prop_assert!(!map.simplify(&ctx), "{} => {}", once.display(&ctx), map.display(&ctx));
    }

    #[test]
    fn canonicalize_keeps_values(tree in any_tree(), seeds in prop::collection::vec(-30..30_i64, 6)) {
        let ctx = Context::new();
        let expr = tree.build(&ctx);
        let canonical = ctx.canonicalize(expr);
        let point = (seeds[..2].to_vec(), seeds[2..4].to_vec(), seeds[4..].to_vec());
        let value = evaluate(&ctx, expr, &point);
        if value.is_ok() {
            prop_assert_eq!(
                evaluate(&ctx, canonical, &point), value,
                "{} => {}", ctx.display(expr), ctx.display(canonical)
            );
        }
        prop_assert!(ctx.cost(canonical) <= ctx.cost(expr));
        prop_assert_eq!(ctx.canonicalize(canonical), canonical);
    }

    #[test]
    fn intervals_enclose_values(sketch in any_sketch()) {
        let ctx = Context::new();
        let map = sketch.build(&ctx);
        let intervals = map.intervals(&ctx);
        let mut simplifier = Simplifier::for_map(&ctx, &map);
        for &result in &map.results {
            let enclosure = ctx.interval_of(result, &|var| intervals.of(var));
            let multiple = i128::from(ctx.divisor_of(result));
            let sharper = simplifier.interval_of(result);
            for point in thinned(box_of(&map, &ctx), 2000) {
                if let Ok(value) = evaluate(&ctx, result, &point) {
                    prop_assert!(enclosure.contains(value), "{} {}", ctx.display(result), enclosure);
                    let (dims, ranges, runtimes) = &point;
                    let inside = map.contains(&ctx, dims, ranges, runtimes);
                    prop_assert!(
                        sharper.contains(value) || inside != Ok(true),
                        "{} {}", ctx.display(result), sharper
                    );
                    prop_assert!(
                        if multiple == 0 { value == 0 } else { i128::from(value) % multiple == 0 },
                        "{} = {} is no multiple of {}", ctx.display(result), value, multiple
                    );
                }
            }
        }
    }

    #[test]
    fn exact_ranges_are_hulls(sketch in any_sketch()) {
        let ctx = Context::new();
        let map = sketch.build(&ctx);
        let intervals = map.intervals(&ctx);
        let sizes = map.vars().map(|(var, _)| intervals.of(var).num_members().unwrap_or(0));
        // Smaller domains are enumerated by the library, too.
        prop_assume!((1 << 10..1 << 15).contains(&sizes.product::<u64>()));
        let points = box_of(&map, &ctx);
        let inside = |point: &&Values| contains(&map, &ctx, point) == Ok(true);
        let points: Vec<&Values> = points.iter().filter(inside).collect();
        for &result in &map.results {
            let text = format!("{} of {}", ctx.display(result), map.display(&ctx));
            let range = map.range_of(&ctx, result);
            let values = points.iter().filter_map(|point| evaluate(&ctx, result, point).ok());
            let (lo, hi) = values
                .fold((i64::MAX, i64::MIN), |(lo, hi), value| (lo.min(value), hi.max(value)));
            let hull = if lo <= hi { Interval::new(lo, hi) } else { Interval::EMPTY };
            prop_assert!(range.interval.covers(hull), "{} is not {}: {}", range.interval, hull, text);
            prop_assert!(
                !range.is_exact || hull.covers(range.interval),
                "{} is more than {}: {}", range.interval, hull, text
            );
        }
    }

    #[test]
    fn printed_maps_parse_back(sketch in any_sketch()) {
        let ctx = Context::new();
        let mut map = sketch.build(&ctx);
        for _ in 0..2 {
            let printed = map.display(&ctx).to_string();
            let parsed = IndexingMap::parse(&ctx, &printed);
            let parsed = parsed.map_err(|e| TestCaseError::fail(format!("{printed}: {e}")))?;
            prop_assert_eq!(parsed.display(&ctx).to_string(), printed);
            if !map.is_known_empty(&ctx) {
                prop_assert_eq!(&parsed, &map);
            }
            map.simplify(&ctx);
        }
    }

    #[test]
    fn printed_expressions_parse_back(trees in prop::collection::vec(any_extreme_tree(), 20)) {
        let ctx = Context::new();
        for tree in trees {
            let expr = tree.build(&ctx);
            let printed = ctx.display(expr).to_string();
            let parsed = parse_expr(&ctx, &printed, &|name| (name == "d0").then_some(Var::Dim(0)));
            let parsed = parsed.map_err(|e| TestCaseError::fail(format!("{printed}: {e}")))?;
            prop_assert_eq!(parsed, expr, "{} => {}", printed, ctx.display(parsed));
        }
    }

    #[test]
    fn substitution_is_evaluation_in_two_steps(
        tree in any_tree(), inner in any_tree(), seeds in prop::collection::vec(-20..20_i64, 6)
    ) {
        let ctx = Context::new();
        let (outer, inner) = (tree.build(&ctx), inner.build(&ctx));
        let point = (seeds[..2].to_vec(), seeds[2..4].to_vec(), seeds[4..].to_vec());
        let var = Var::Dim(0);
        let substituted = ctx.substitute(outer, &|v| (v == var).then_some(inner));
        if let Ok(value) = evaluate(&ctx, inner, &point) {
            let fed = |v| Some(if v == var { value } else { value_in(&point, v) });
            if let Ok(expected) = ctx.eval(outer, &fed) {
                prop_assert_eq!(evaluate(&ctx, substituted, &point), Ok(expected));
            }
        }
    }

    #[test]
    fn composition_applies_one_map_after_the_other(first in any_sketch(), second in any_sketch()) {
        let ctx = Context::new();
        let mut first = first.build(&ctx);
        // Two results feed the two dimensions of the second map.
        let result = first.results[0];
        first.results.resize(2, result);
        let second = second.build(&ctx);
        let composed = compose(&ctx, &first, &second).expect("the ranks agree");
        let mut simplified = composed.clone();
        simplified.simplify(&ctx);
        let (points, others) = (box_of(&first, &ctx), box_of(&second, &ctx));
        // A few assignments of the second map's own variables for each point of the first.
        let others: Vec<Values> = thinned(others, 7).collect();
        for (point, other) in thinned(points, 400).flat_map(|p| others.iter().map(move |o| (p.clone(), o))) {
            let both = (
                point.0.clone(),
                [&other.1[..], &point.1[..]].concat(),
                [&other.2[..], &point.2[..]].concat(),
            );
            let Ok(in_first) = contains(&first, &ctx, &point) else { continue };
            let middle = first.evaluate(&ctx, &point.0, &point.1, &point.2);
            let Ok(middle) = middle else { continue };
            let fed = (middle, other.1.clone(), other.2.clone());
            let Ok(in_second) = contains(&second, &ctx, &fed) else { continue };
            let inside = in_first && in_second;
            prop_assert!(agrees(contains(&composed, &ctx, &both), inside), "{}", composed.display(&ctx));
            prop_assert!(agrees(contains(&simplified, &ctx, &both), inside), "{}", simplified.display(&ctx));
            if inside {
                let expected = second.evaluate(&ctx, &fed.0, &fed.1, &fed.2);
                if expected.is_ok() {
                    prop_assert_eq!(&composed.evaluate(&ctx, &both.0, &both.1, &both.2), &expected);
                    prop_assert_eq!(&simplified.evaluate(&ctx, &both.0, &both.1, &both.2), &expected);
                }
            }
        }
    }

    #[test]
    fn points_are_the_contained_ones(sketch in any_sketch()) {
        let ctx = Context::new();
        let map = sketch.build(&ctx);
        let mut expected: HashMap<Vec<i64>, Vec<_>> = HashMap::new();
        for point in box_of(&map, &ctx) {
            match contains(&map, &ctx, &point) {
                Ok(true) => expected.entry(point.2).or_default().push((point.0, point.1)),
                Ok(false) => {}
                Err(_) => return Ok(()),
            }
        }
        for (runtimes, expected) in expected {
            let points = map.points(&ctx, &runtimes).expect("a bounded domain");
            let found: Vec<_> = points
                .map(|point| point.map(|point| (point.dims, point.ranges)))
                .collect::<Result<_, _>>()
                .expect("every constraint has a value");
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in "[d0-9s rt()\\[\\]{},:*/+a-z<>-]{0,60}") {
        let ctx = Context::new();
        let _ = IndexingMap::parse(&ctx, &text);
        let _ = IndexingMap::parse(&ctx, &format!("(d0)[s0] -> ({text}"));
        let _ = IndexingMap::parse(&ctx, &format!("(d0)[s0] -> (d0), domain: {text}"));
    }
}
