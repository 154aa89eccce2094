//! Whether two maps mean the same.
//!
//! Two maps are equal when their domains hold the same points and their results have the same
//! values there. Points where a bound or constraint has no value (it divides by zero), and results
//! without a value (they divide by zero or leave the 64-bit range) are left out of the comparison. What is
//! calculated on the way has 128 bits, so that bounds and constraints beyond 64 bits have their values.
//!
//! The method: equal simplified forms are equal maps. A domain in a small box is enumerated, which
//! decides. In a larger one, the parts of one domain outside of the other, and of both where a result
//! is larger or smaller than the other, are asked for a point ([emptiness](crate::emptiness)), which
//! decides as well where all is linear, with quotients, remainders, minima and maxima. Otherwise
//! a domain of which the constraints leave few points is enumerated; corners of the box and seeded
//! random points are tried; and where they show no difference, the [prover](crate::prove) is asked
//! whether each domain lies in the other and the results agree, as a whole, in one period of their
//! difference, or as the same operations on operands that agree. Without an answer the verdict is unknown: the problem is undecidable, since
//! products of variables are allowed (Matiyasevich 1970).

use crate::evaluator::{MapEvaluator, Values};
use crate::expr::{Context, Expr, Node};
use crate::interval::Interval;
use crate::linear_domain::{LinearAnswer, LinearDomain};
use crate::map::{IndexingMap, VarIntervals};
use crate::period::all_values;
use crate::prove::{Prover, Verdict};
use crate::samples::BoundingBox;
use crate::search::search;
use crate::simplify::Simplifier;
use crate::value_range::with_quotients;

/// How deep operands are compared.
const MAX_DEPTH: u32 = 6;
/// The most pairs of expressions that are compared.
const MAX_QUESTIONS: u32 = 32;
/// The terms of rows that are touched to find a point of one difference.
const MAX_WORK: usize = 1 << 20;
/// The most points of a domain in a large box that are enumerated.
const MAX_POINTS: usize = 10_000;
/// The most values of a difference that are looked at, as far as it is the same again and again.
const MAX_VALUES: u64 = 1 << 12;

/// Whether two maps mean the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Equality {
    /// They do.
    Equal,
    /// They do not, for a reason.
    Different(Difference),
    /// Neither is shown. They agree at corners of the box around both domains, and at 10 000 points
    /// of it.
    Unknown,
}

/// Why two maps do not mean the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Difference {
    /// They have other numbers of variables or results.
    Shape,
    /// At this point one of them is defined and the other is not, or a result differs.
    At(Values),
}

impl IndexingMap {
    /// Whether `self` and `other` mean the same; see the [module](crate::equality) text.
    ///
    /// ```
    /// use tc_ir::{Context, Difference, Equality, IndexingMap, Values};
    /// let ctx = Context::new();
    /// let parse = |text| IndexingMap::parse(&ctx, text).unwrap();
    /// let floor = parse("(d0) -> (d0 / 4), domain: d0 in [0, 11]");
    /// let ceil = parse("(d0) -> ((d0 + 1) ceildiv 4 - 1), domain: d0 in [0, 11]");
    /// assert_eq!(floor.equality(&ctx, &ceil), Equality::Equal);
    /// let other = parse("(d0) -> (d0 ceildiv 4), domain: d0 in [0, 11]");
    /// let at_one = Values { dims: vec![1], ..Values::default() };
    /// assert_eq!(floor.equality(&ctx, &other), Equality::Different(Difference::At(at_one)));
    /// ```
    pub fn equality(&self, ctx: &Context, other: &IndexingMap) -> Equality {
        let shape = |map: &IndexingMap| {
            (map.dims.len(), map.ranges.len(), map.runtimes.len(), map.results.len())
        };
        if shape(self) != shape(other) {
            return Equality::Different(Difference::Shape);
        }
        let forms = [normal_form(ctx, self), normal_form(ctx, other)];
        let [lhs, rhs] = &forms;
        if lhs == rhs {
            return Equality::Equal;
        }
        let (mut first, mut second) = (MapEvaluator::new(ctx, self), MapEvaluator::new(ctx, other));
        let mut shows = |point: &Values| differs(&mut first, &mut second, point);
        let different = |point| Equality::Different(Difference::At(point));
        let mut samples = BoundingBox::around(ctx, &[self, other]).samples();
        if samples.are_all() {
            return samples.find(shows).map_or(Equality::Equal, different);
        }
        let (mut is_domain_same, mut are_results_same) = (true, true);
        for answer in [outside(ctx, lhs, rhs), outside(ctx, rhs, lhs)] {
            match answer {
                LinearAnswer::Point(point) if shows(&point) => return different(point),
                answer => is_domain_same &= answer == LinearAnswer::Empty,
            }
        }
        for number in 0..lhs.results.len() {
            match unequal(ctx, lhs, [lhs.results[number], rhs.results[number]]) {
                LinearAnswer::Point(point) if shows(&point) => return different(point),
                answer => are_results_same &= answer == LinearAnswer::Empty,
            }
        }
        if is_domain_same && are_results_same {
            return Equality::Equal;
        }
        let found = forms.each_ref().map(|map| search(ctx, map, MAX_POINTS));
        let are_all = found.iter().all(|found| found.are_all);
        let mut points = found.into_iter().flat_map(|found| found.points);
        match points.find(|point| shows(point)) {
            Some(point) => return different(point),
            None if are_all => return Equality::Equal,
            None => {}
        }
        if let Some(point) = samples.find(shows) {
            return different(point);
        }
        let is_equal = (is_domain_same || same_domain(ctx, lhs, rhs))
            && (are_results_same || same_results(ctx, [self, other], [lhs, rhs]));
        if is_equal { Equality::Equal } else { Equality::Unknown }
    }
}

/// A point of the domain of `inner` that is not in that of `outer`.
fn outside(ctx: &Context, inner: &IndexingMap, outer: &IndexingMap) -> LinearAnswer {
    let mut claims: Vec<(Expr, Interval)> = Vec::new();
    for ((var, theirs), (_, mine)) in outer.vars().zip(inner.vars()) {
        let [of_theirs, of_mine] = [theirs, mine].map(|it| it.distances(ctx, ctx.var(var)));
        let pairs = of_theirs.into_iter().zip(of_mine);
        let differing = pairs.filter_map(|(theirs, mine)| theirs.filter(|it| Some(*it) != mine));
        claims.extend(differing.map(|it| (it, Interval::NON_NEGATIVE)));
    }
    let constraints = outer.constraints.iter().filter(|it| !inner.constraints.contains(it));
    claims.extend(constraints.map(|constraint| (constraint.expr, constraint.interval)));
    let mut domain = LinearDomain::new(ctx, inner);
    domain.deny(&claims);
    domain.solve(&mut { MAX_WORK })
}

/// A point of the domain where two expressions differ.
fn unequal(ctx: &Context, map: &IndexingMap, [lhs, rhs]: [Expr; 2]) -> LinearAnswer {
    if lhs == rhs {
        return LinearAnswer::Empty;
    }
    let mut domain = LinearDomain::new(ctx, map);
    domain.deny(&[(ctx.sub(lhs, rhs), Interval::point(0))]);
    domain.solve(&mut { MAX_WORK })
}

/// The simplified map without names.
fn normal_form(ctx: &Context, map: &IndexingMap) -> IndexingMap {
    let mut map = map.clone();
    map.simplify(ctx);
    for variable in map.dims.iter_mut().chain(&mut map.ranges).chain(&mut map.runtimes) {
        variable.name = None;
    }
    map
}

fn differs(first: &mut MapEvaluator, second: &mut MapEvaluator, point: &Values) -> bool {
    let (Ok(in_first), Ok(in_second)) = (first.contains(point), second.contains(point)) else {
        return false;
    };
    if in_first != in_second {
        return true;
    }
    in_first
        && first.results().any(|number| match (first.result(number), second.result(number)) {
            (Ok(lhs), Ok(rhs)) => lhs != rhs,
            _ => false,
        })
}

/// Whether the domains are shown to be equal.
fn same_domain(ctx: &Context, lhs: &IndexingMap, rhs: &IndexingMap) -> bool {
    is_inside(ctx, lhs, rhs) && is_inside(ctx, rhs, lhs)
}

/// A prover that knows the bounds and the constraints of a map, remainders as quotients.
fn prover_of<'c>(ctx: &'c Context, map: &IndexingMap) -> Prover<'c> {
    let intervals = map.intervals(ctx);
    let mut map = map.clone();
    for constraint in &mut map.constraints {
        constraint.expr = with_quotients(ctx, constraint.expr, &intervals);
    }
    Prover::for_domain(ctx, &map)
}

/// Whether every point of the domain of `inner` is shown to lie in that of `outer`.
fn is_inside(ctx: &Context, inner: &IndexingMap, outer: &IndexingMap) -> bool {
    if inner.is_known_empty(ctx) {
        return true;
    }
    let prover = prover_of(ctx, inner);
    let intervals = inner.intervals(ctx);
    let at_most = |lhs: Expr, rhs: Expr| {
        let [lhs, rhs] = [lhs, rhs].map(|expr| with_quotients(ctx, expr, &intervals));
        prover.at_most(lhs, rhs) == Verdict::Proved
    };
    let bounds_hold = outer.vars().all(|(var, variable)| {
        variable.lower.is_none_or(|lower| at_most(lower, ctx.var(var)))
            && variable.upper.is_none_or(|upper| at_most(ctx.var(var), upper))
    });
    bounds_hold
        && outer.constraints.iter().all(|constraint| {
            inner.constraints.contains(constraint) || {
                let (lo, hi) = (constraint.interval.lo, constraint.interval.hi);
                (lo == i64::MIN || at_most(ctx.constant(lo), constraint.expr))
                    && (hi == i64::MAX || at_most(constraint.expr, ctx.constant(hi)))
            }
        })
}

/// Whether the results of two maps on one domain are shown to be equal, as they are given or
/// simplified.
fn same_results(ctx: &Context, given: [&IndexingMap; 2], simplified: [&IndexingMap; 2]) -> bool {
    let map = simplified[0];
    let simplifier = Simplifier::for_domain(ctx, map);
    let mut comparison = Comparison {
        ctx,
        simplifier,
        prover: prover_of(ctx, map),
        intervals: map.intervals(ctx),
        questions: MAX_QUESTIONS,
    };
    (0..map.results.len()).all(|number| {
        [simplified, given]
            .into_iter()
            .any(|[lhs, rhs]| comparison.equal(lhs.results[number], rhs.results[number], 0))
    })
}

/// Compares expressions on one domain.
struct Comparison<'c> {
    ctx: &'c Context,
    simplifier: Simplifier<'c>,
    prover: Prover<'c>,
    intervals: VarIntervals,
    /// How many pairs may still be compared.
    questions: u32,
}

impl Comparison<'_> {
    /// Whether two expressions are shown to have the same values: as a whole, or because they are the
    /// same operation on the same values. Recursion is limited by [`MAX_DEPTH`].
    fn equal(&mut self, lhs: Expr, rhs: Expr, depth: u32) -> bool {
        if lhs == rhs {
            return true;
        }
        if depth == MAX_DEPTH || self.questions == 0 {
            return false;
        }
        self.questions -= 1;
        let ctx = self.ctx;
        let difference = self.simplifier.simplify(ctx.sub(lhs, rhs));
        let intervals = |var| self.intervals.of(var);
        if all_values(ctx, difference, intervals, MAX_VALUES, |value| value == 0) == Some(true) {
            return true;
        }
        let [first, second] = [lhs, rhs].map(|expr| with_quotients(ctx, expr, &self.intervals));
        if self.prover.equal(first, second) == Verdict::Proved {
            return true;
        }
        let (one, other) = (ctx.node(lhs), ctx.node(rhs));
        let (Some((a, b)), Some((c, d))) = (one.operands(), other.operands()) else {
            return false;
        };
        if std::mem::discriminant(&one) != std::mem::discriminant(&other) {
            return false;
        }
        // Equal modulo the modulus is enough.
        if matches!(one, Node::Mod(..)) && b == d && self.is_zero(ctx.modulo(ctx.sub(a, c), b)) {
            return true;
        }
        let commutes = matches!(one, Node::Add(..) | Node::Mul(..) | Node::Min(..) | Node::Max(..));
        let mut both = |(a, c), (b, d)| self.equal(a, c, depth + 1) && self.equal(b, d, depth + 1);
        both((a, c), (b, d)) || commutes && both((a, d), (b, c))
    }

    fn is_zero(&mut self, expr: Expr) -> bool {
        self.ctx.as_constant(self.simplifier.simplify(expr)) == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(lhs: &str, rhs: &str) -> Equality {
        let ctx = Context::new();
        let parse = |text| IndexingMap::parse(&ctx, text).expect("a map");
        parse(lhs).equality(&ctx, &parse(rhs))
    }

    #[test]
    fn periods_decide_large_domains() {
        let map =
            |result| format!("(d0, d1) -> ({result}), domain: d0 in [0, 99999], d1 in [5, 99999]");
        for (lhs, rhs) in [
            ("(d0 * d0) mod 4", "d0 mod 2"),
            ("(d0 * d1 / 2) mod 3 + d1", "(d0 * d1 mod 6) / 2 + d1"),
            ("(d0 * d0 * d0 - d0) mod 6", "0"),
        ] {
            assert_eq!(verdict(&map(lhs), &map(rhs)), Equality::Equal, "{lhs}");
        }
        let (lhs, rhs) = (map("(d0 * d0) mod 8"), map("d0 mod 2"));
        assert!(matches!(verdict(&lhs, &rhs), Equality::Different(Difference::At(_))));
    }

    #[test]
    fn large_domains_are_decided() {
        let text = "(i, j){M, N} -> ((i * N + j) / N), domain: i in [0, M - 1], j in [0, N - 1], \
                    M in [1, 100000], N in [1, 100000]";
        let plain = "(a, b){M, N} -> (a), domain: a in [0, M - 1], b in [0, N - 1], \
                     M in [1, 100000], N in [1, 100000], M * N in [1, inf]";
        assert_eq!(verdict(text, plain), Equality::Equal);
        let wrong = plain.replace("b in [0, N - 1]", "b in [0, N]");
        assert!(matches!(verdict(text, &wrong), Equality::Different(Difference::At(_))));
    }

    #[test]
    fn the_shape_counts() {
        assert_eq!(verdict("(d0) -> ()", "() -> ()"), Equality::Different(Difference::Shape));
        assert_eq!(verdict("() -> ()", "() -> (0)"), Equality::Different(Difference::Shape));
    }

    #[test]
    fn empty_domains_are_equal() {
        let empty = "(d0) -> (d0), domain: d0 in [0, 1000000], d0 mod 8 in [45, 49]";
        assert_eq!(verdict(empty, "(d0) -> (7), domain: d0 in [3, 2]"), Equality::Equal);
    }

    #[test]
    fn linear_differences_are_found_and_excluded() {
        let domain = "domain: d0 in [0, 1000000], d1 in [0, 1000000]";
        for (lhs, rhs, sides) in [
            ("max(d0, d1) - min(d0, d1)", "max(d0 - d1, d1 - d0)", ""),
            ("(d0 + d1 * 7) mod 7", "d0 - (d0 / 7) * 7", ""),
            ("(d0 / 6) / 35", "(d0 / 10) / 21", ""),
            (
                "d0 / 3 + d1",
                "(d0 - d1 * 2) / 3 + (d1 * 5) / 3",
                ", d0 + d1 * 3 in [5, 7], d1 mod 3 in [0, 0]",
            ),
        ] {
            let map = |result: &str| format!("(d0, d1) -> ({result}), {domain}{sides}");
            assert_eq!(verdict(&map(lhs), &map(rhs)), Equality::Equal, "{lhs}");
            // One row or column differs.
            let other = format!("max(d0 - 999999, 0) + max(1 - d1, 0) + {rhs}");
            let answer = verdict(&map(lhs), &map(&other));
            assert!(matches!(answer, Equality::Different(Difference::At(_))), "{other}");
        }
        let one = format!("(d0, d1) -> (), {domain}, d0 * 15 + d1 * 10 in [1000, 1004]");
        let other = format!("(d0, d1) -> (), {domain}, d0 * 3 + d1 * 2 in [200, 200]");
        assert_eq!(verdict(&one, &other), Equality::Equal);
    }

    #[test]
    fn few_points_of_large_boxes_are_enumerated() {
        let domain = "domain: d0 in [0, 1000000], d1 in [0, 1000000], d0 + d1 * 2 in [0, 90]";
        let square = format!("(d0, d1) -> ((d0 + d1) * (d0 + d1)), {domain}");
        let sum = format!("(d0, d1) -> (d0 * d0 + d0 * d1 * 2 + d1 * d1), {domain}");
        assert_eq!(verdict(&square, &sum), Equality::Equal);
        let wrong = sum.replace("d1 * d1", "max(d1, 45) * d1");
        assert!(matches!(verdict(&square, &wrong), Equality::Different(Difference::At(_))));
    }

    #[test]
    fn what_nothing_decides_is_unknown() {
        let squares = "(d0, d1) -> (d0 * d0 * d0 * d1 * d1), \
                       domain: d0 in [0, 1000000], d1 in [0, 1000000], \
                       d0 * d0 * d0 - d1 * d1 * d1 * 2 in [123456789012345, 123456789012345]";
        let none = "(d0, d1) -> (0), domain: d0 in [0, 1000000], d1 in [0, 1000000], \
                    d0 * d0 * d0 - d1 * d1 * d1 * 2 in [123456789012346, 123456789012346]";
        assert_eq!(verdict(squares, none), Equality::Unknown);
    }
}
