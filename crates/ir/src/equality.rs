//! Whether two maps mean the same.
//!
//! Two maps are equal when their domains hold the same points and their results have the same
//! values there. Points where a bound or constraint has no value (it divides by zero or leaves the
//! 64-bit range), and results without a value, are left out of the comparison.
//!
//! The method: equal simplified forms are equal maps. A domain in a small box is enumerated, which
//! decides. In a larger one, corners and seeded random points are tried; where they show no
//! difference, the [prover](crate::prove) is asked whether each domain lies in the other and the
//! results agree. Without an answer the verdict is unknown: the problem is undecidable, since
//! products of variables are allowed (Matiyasevich 1970).

use crate::evaluator::{MapEvaluator, Values};
use crate::expr::{Context, Expr};
use crate::map::IndexingMap;
use crate::prove::{Prover, Verdict};
use crate::samples::BoundingBox;
use crate::simplify::Simplifier;

/// Whether two maps mean the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Equality {
    /// They do.
    Equal,
    /// They do not, for a reason.
    Different(Difference),
    /// Neither is shown. They agree at the corners of the domain and 10 000 points of the box
    /// around it.
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
        let [lhs, rhs] = [normal_form(ctx, self), normal_form(ctx, other)];
        if lhs == rhs {
            return Equality::Equal;
        }
        let (mut first, mut second) = (MapEvaluator::new(ctx, self), MapEvaluator::new(ctx, other));
        let mut samples = BoundingBox::around(ctx, &[self, other]).samples();
        match samples.find(|point| differs(&mut first, &mut second, point)) {
            Some(point) => Equality::Different(Difference::At(point)),
            None if samples.are_all() || is_proved(ctx, &lhs, &rhs) => Equality::Equal,
            None => Equality::Unknown,
        }
    }
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

/// Whether the maps are shown to be equal.
fn is_proved(ctx: &Context, lhs: &IndexingMap, rhs: &IndexingMap) -> bool {
    is_inside(ctx, lhs, rhs) && is_inside(ctx, rhs, lhs) && has_equal_results(ctx, lhs, rhs)
}

/// Whether every point of the domain of `inner` is shown to lie in that of `outer`.
fn is_inside(ctx: &Context, inner: &IndexingMap, outer: &IndexingMap) -> bool {
    if inner.is_known_empty(ctx) {
        return true;
    }
    let prover = Prover::for_domain(ctx, inner);
    let at_most = |lhs: Expr, rhs: Expr| prover.at_most(lhs, rhs) == Verdict::Proved;
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

fn has_equal_results(ctx: &Context, lhs: &IndexingMap, rhs: &IndexingMap) -> bool {
    let prover = Prover::for_domain(ctx, lhs);
    let mut simplifier = Simplifier::for_map(ctx, lhs);
    for constraint in &lhs.constraints {
        simplifier.assume(constraint.expr, constraint.interval);
    }
    lhs.results.iter().zip(&rhs.results).all(|(&lhs, &rhs)| {
        lhs == rhs
            || ctx.as_constant(simplifier.simplify(ctx.sub(lhs, rhs))) == Some(0)
            || prover.equal(lhs, rhs) == Verdict::Proved
    })
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
    fn what_nothing_decides_is_unknown() {
        let squares = "(d0, d1) -> (d0 * d0 * d0 * d1 * d1), \
                       domain: d0 in [0, 1000000], d1 in [0, 1000000], \
                       d0 * d0 * d0 - d1 * d1 * d1 * 2 in [123456789012345, 123456789012345]";
        let none = "(d0, d1) -> (0), domain: d0 in [0, 1000000], d1 in [0, 1000000], \
                    d0 * d0 * d0 - d1 * d1 * d1 * 2 in [123456789012346, 123456789012346]";
        assert_eq!(verdict(squares, none), Equality::Unknown);
    }
}
