//! Counts the values of one index on a domain, without enumeration.
//!
//! An index is often `(f0*x0 + f1*x1 + .. + c) / d` with constraints on the same sum: a window with
//! stride, padding and dilation. The values of the sum are an arithmetic progression where each
//! factor is at most what the smaller ones reach, as in `4*a + b` with `b in [0, 5]`. Of two
//! progressions that do not close each other's gaps, a value `f0*t0 + f1*t1` is counted where `t1` is
//! the smallest possible: other pairs with this value are `(t0 + k*f1/g, t1 - k*f0/g)` with `g` the
//! greatest common divisor of the factors.

use std::collections::BTreeSet;
use tc_ir::{Constraint, Context, Expr, Node, Var, VarIntervals};

/// The most values of the shorter of two progressions.
const MAX_STEPS: i128 = 1 << 16;
/// The largest modulus of a constraint.
const MAX_MODULUS: i128 = 1 << 12;

/// `start`, `start + step`, .. : so many numbers, at least one. The step of one number is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progression {
    pub start: i128,
    pub step: i128,
    pub count: i128,
}

impl Progression {
    pub fn last(self) -> i128 {
        self.start + self.step * (self.count - 1)
    }

    pub fn contains(self, value: i128) -> bool {
        self.start <= value
            && value <= self.last()
            && (value - self.start).rem_euclid(self.step) == 0
    }

    /// Whether it is shown that the two have no number in common.
    pub fn is_disjoint(self, other: Self) -> bool {
        let apart = self.last() < other.start || other.last() < self.start;
        apart || (self.start - other.start) % gcd(self.step, other.step) != 0
    }

    /// The least common multiple of two steps.
    pub fn common_period(step: i128, other: i128) -> i128 {
        (step / gcd(step, other)).saturating_mul(other)
    }
}

/// The values of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub count: i128,
    /// Which ones, where they are that regular; those of an index that is moved for a move by 0.
    pub progression: Option<Progression>,
}

/// A sum of multiples of variables: `unit * (sum of factor * variable) + constant`, the factors
/// without a common divisor.
struct Sum {
    factors: Vec<(Var, i128)>,
    unit: i128,
    constant: i128,
}

impl Sum {
    fn of(ctx: &Context, expr: Expr) -> Option<Self> {
        let linear = ctx.linear_terms(expr)?;
        let factors = linear.terms.iter().map(|&(term, factor)| Some((ctx.as_var(term)?, factor)));
        let mut factors: Vec<(Var, i128)> = factors
            .map(|it| it.map(|(var, factor)| (var, factor.into())))
            .collect::<Option<_>>()?;
        factors.sort_unstable();
        let divisor = factors.iter().fold(0, |divisor, &(_, factor)| gcd(divisor, factor));
        // The first factor is positive, so that sums that differ in sign have the same ones.
        let sign = factors.first().map_or(1, |(_, factor)| factor.signum());
        let unit = divisor.max(1) * sign;
        factors.iter_mut().for_each(|(_, factor)| *factor /= unit);
        Some(Self { factors, unit, constant: linear.constant.into() })
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

/// Which values of a sum count: those in an interval, and in one class modulo a number.
#[derive(Clone, Copy, Debug)]
struct Filter {
    low: i128,
    high: i128,
    modulus: i128,
    residue: i128,
}

impl Filter {
    /// Demands that `unit * sum + constant` lies in an interval.
    fn bound(&mut self, unit: i128, constant: i128, low: i128, high: i128) -> Option<()> {
        let (low, high) = (low.checked_sub(constant)?, high.checked_sub(constant)?);
        let (low, high) = if 0 < unit { (low, high) } else { (high, low) };
        self.low = self.low.max(ceil_div(low, unit));
        self.high = self.high.min(floor_div(high, unit));
        Some(())
    }

    /// Demands that `unit * sum + constant` is in a class of numbers.
    fn class(&mut self, unit: i128, constant: i128, modulus: i128, residue: i128) -> Option<()> {
        let both = self.modulus.checked_mul(modulus)?;
        if modulus < 1 || MAX_MODULUS < both {
            return None;
        }
        let fits = |value: &i128| {
            let own = value.rem_euclid(self.modulus) == self.residue;
            own && (unit * value + constant - residue).rem_euclid(modulus) == 0
        };
        let mut classes = (0..both).filter(fits);
        let (first, second) = (classes.next(), classes.next());
        match first {
            None => self.high = i128::MIN,
            Some(first) => {
                self.modulus = second.map_or(both, |second| second - first);
                self.residue = first;
            }
        }
        Some(())
    }

    /// Demands what a constraint says, if it is about the same sum.
    fn constrain(&mut self, ctx: &Context, sum: &Sum, constraint: &Constraint) -> Option<()> {
        let (low, high) = (constraint.interval.lo.into(), constraint.interval.hi.into());
        let divisor = |expr| ctx.as_constant(expr).filter(|it| 0 < *it).map(i128::from);
        let same = |expr| Sum::of(ctx, expr).filter(|other| other.factors == sum.factors);
        match ctx.node(constraint.expr) {
            Node::Mod(inner, divisor_expr) => {
                let (inner, modulus) = (same(inner)?, divisor(divisor_expr)?);
                if low != high || !(0..modulus).contains(&low) {
                    return None;
                }
                self.class(inner.unit, inner.constant, modulus, low)
            }
            Node::FloorDiv(inner, divisor_expr) => {
                let (inner, divisor) = (same(inner)?, divisor(divisor_expr)?);
                let high = high.checked_mul(divisor)?.checked_add(divisor - 1)?;
                self.bound(inner.unit, inner.constant, low.checked_mul(divisor)?, high)
            }
            _ => {
                let inner = same(constraint.expr)?;
                self.bound(inner.unit, inner.constant, low, high)
            }
        }
    }

    /// Of `start + step * t` with `t in [0, span]`, the values of `t` that count: the first, the
    /// step and the last.
    fn steps(&self, start: i128, step: i128, span: i128) -> Option<(i128, i128, i128)> {
        let first = ceil_div(self.low.saturating_sub(start), step).max(0);
        let last = floor_div(self.high.saturating_sub(start), step).min(span);
        let period = self.modulus / gcd(self.modulus, step);
        let fits = |t: &i128| (start + step * t - self.residue).rem_euclid(self.modulus) == 0;
        let first = (first..first.checked_add(period)?).find(fits)?;
        let last = first + floor_div(last.checked_sub(first)?, period) * period;
        (first <= last).then_some((first, period, last))
    }
}

fn floor_div(value: i128, by: i128) -> i128 {
    let quotient = value / by;
    if value % by != 0 && (value < 0) != (by < 0) { quotient - 1 } else { quotient }
}

fn ceil_div(value: i128, by: i128) -> i128 {
    -floor_div(-value, by)
}

/// The values from 0 to `extent` that an index takes; `None` if it is not of this form.
/// `moved_by` are variables that have the same value for all elements, whatever it is.
pub(super) fn line(
    ctx: &Context,
    bounds: &VarIntervals,
    index: Expr,
    constraints: &[Constraint],
    moved_by: &BTreeSet<Var>,
    extent: i64,
) -> Option<Line> {
    let extent = i128::from(extent);
    let (inner, divisor) = match ctx.node(index) {
        Node::FloorDiv(inner, divisor) => {
            (inner, ctx.as_constant(divisor).filter(|it| 0 < *it).map(i128::from)?)
        }
        _ => (index, 1),
    };
    let is_moved = Sum::of(ctx, inner)?.factors.iter().any(|(var, _)| moved_by.contains(var));
    if is_moved {
        // The values move together; they must stay inside and nothing else may depend on them.
        let range = ctx.interval_of(index, &|var| bounds.of(var));
        if divisor != 1 || !constraints.is_empty() || range.lo < 0 || extent <= range.hi.into() {
            return None;
        }
    }
    let still = ctx.substitute(inner, &|var| moved_by.contains(&var).then(|| ctx.constant(0)));
    let sum = Sum::of(ctx, still)?;
    let mut filter = Filter { low: i128::MIN / 4, high: i128::MAX / 4, modulus: 1, residue: 0 };
    for constraint in constraints {
        filter.constrain(ctx, &sum, constraint)?;
    }
    if !is_moved {
        filter.bound(sum.unit, sum.constant, 0, extent.checked_mul(divisor)?.checked_sub(1)?)?;
    }
    let values = values(bounds, &sum, &filter)?;
    let Some(Progression { start, step, count }) = values.progression else {
        // A quotient may be the same for several values.
        return (divisor == 1 || values.count == 0).then_some(values);
    };
    let quotient = |value: i128| floor_div(sum.unit * value + sum.constant, divisor);
    let (first, last) = (quotient(start), quotient(start + step * (count - 1)));
    let (start, last) = (first.min(last), first.max(last));
    let reach = (sum.unit * step).abs();
    let progression = if reach % divisor == 0 {
        let step = if count == 1 { 1 } else { reach / divisor };
        Progression { start, step, count }
    } else if reach < divisor {
        // No quotient is left out.
        Progression { start, step: 1, count: last - start + 1 }
    } else {
        return None;
    };
    Some(Line { count: progression.count, progression: Some(progression) })
}

/// The values of a sum that count.
fn values(bounds: &VarIntervals, sum: &Sum, filter: &Filter) -> Option<Line> {
    // Each variable counts from 0 on, and its factor is positive.
    let mut start = 0i128;
    let mut terms = Vec::new();
    for &(var, factor) in &sum.factors {
        let range = bounds.of(var);
        if range.is_empty() {
            return Some(Line { count: 0, progression: None });
        }
        if !range.is_bounded() {
            return None;
        }
        let (low, high) = (i128::from(range.lo), i128::from(range.hi));
        start = start.checked_add(factor.checked_mul(if 0 < factor { low } else { high })?)?;
        if low < high {
            terms.push((factor.abs(), high - low));
        }
    }
    terms.sort_unstable();
    let mut parts: Vec<(i128, i128)> = Vec::new();
    for (factor, span) in terms {
        let closes =
            |part: &&mut (i128, i128)| factor % part.0 == 0 && factor / part.0 <= part.1 + 1;
        match parts.iter_mut().find(closes) {
            Some(part) => part.1 = part.1.checked_add((factor / part.0).checked_mul(span)?)?,
            None => parts.push((factor, span)),
        }
    }
    let none = Some(Line { count: 0, progression: None });
    match parts[..] {
        [] | [_] => {
            let (step, span) = parts.first().copied().unwrap_or((1, 0));
            let Some((first, period, last)) = filter.steps(start, step, span) else { return none };
            let count = (last - first) / period + 1;
            let step = if count == 1 { 1 } else { step * period };
            let start = start + first * parts.first().map_or(1, |part| part.0);
            Some(Line { count, progression: Some(Progression { start, step, count }) })
        }
        [one, two] => {
            let (long, short) = if two.1 <= one.1 { (one, two) } else { (two, one) };
            if MAX_STEPS < short.1 {
                return None;
            }
            let divisor = gcd(long.0, short.0);
            let (more, less) = (short.0 / divisor, long.0 / divisor);
            let mut count = 0;
            for step in 0..=short.1 {
                // Where a smaller step has the same value, it is counted there.
                let found = filter.steps(start + short.0 * step, long.0, long.1);
                let Some((first, period, last)) = found else { continue };
                let least = if less <= step { (long.1 - more + 1).max(first) } else { first };
                let least = first + ceil_div(least - first, period) * period;
                count += ((last - least) / period + 1).max(0) * i128::from(least <= last);
            }
            Some(Line { count, progression: None })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tc_ir::IndexingMap;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn counts_what_enumeration_finds(
            terms in prop::collection::vec((-7i64..8, -2i64..3, 0i64..6), 0..4),
            constant in -6i64..7,
            divisor in 1i64..4,
            limits in prop::option::of((-9i64..9, 0i64..20, -2i64..3)),
            class in prop::option::of((1i64..5, 0i64..5, -2i64..3)),
            extent in 0i64..40,
        ) {
            let names: Vec<String> = (0..terms.len()).map(|it| format!("d{it}")).collect();
            let sum: String =
                terms.iter().zip(&names).map(|((factor, ..), name)| format!("{name} * {factor} + ")).collect();
            let scaled = |scale: i64| {
                let scaled = terms.iter().zip(&names);
                scaled.map(|((factor, ..), name)| format!("{name} * {} + ", factor * scale)).collect::<String>()
            };
            let bounds = terms.iter().zip(&names).map(|((_, low, span), name)| format!("{name} in [{low}, {}]", low + span));
            let mut domain: Vec<String> = bounds.collect();
            if let Some((low, span, scale)) = limits {
                domain.push(format!("{}1 in [{low}, {}]", scaled(scale), low + span));
            }
            if let Some((modulus, residue, scale)) = class {
                domain.push(format!("({}2) mod {modulus} in [{residue}, {residue}]", scaled(scale)));
            }
            let domain = if domain.is_empty() { String::new() } else { format!(", domain: {}", domain.join(", ")) };
            let text = format!("({}) -> (({sum}{constant}) / {divisor}){domain}", names.join(", "));
            let ctx = Context::new();
            let map = IndexingMap::parse(&ctx, &text).expect("a map");
            let expected: BTreeSet<i64> = map
                .points(&ctx, &[])
                .expect("a box")
                .map(|point| point.expect("a value"))
                .map(|point| map.evaluate(&ctx, &point.dims, &point.ranges, &[]).expect("a value")[0])
                .filter(|value| (0..extent).contains(value))
                .collect();
            let found = line(
                &ctx, &map.intervals(&ctx), map.results[0], &map.constraints, &BTreeSet::new(), extent,
            );
            if let Some(found) = found {
                prop_assert_eq!(found.count, expected.len() as i128, "{}", text);
                if let Some(progression) = found.progression {
                    let all: BTreeSet<i64> =
                        (0..extent).filter(|&it| progression.contains(it.into())).collect();
                    prop_assert_eq!(all, expected, "{}", text);
                }
            } else if terms.len() < 3 && divisor == 1 && limits.is_none() && class.is_none() {
                prop_assert!(false, "not counted: {}", text);
            }
        }
    }
}
