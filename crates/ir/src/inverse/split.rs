//! Variables as quotient and remainder.
//!
//! What is built from a variable `x` by sums, multiples, and quotients and remainders by constants repeats:
//! `f(x + p) == f(x) + s` for a period `p`, the least common multiple of what the divisors ask for. With `x
//! == p*q + o + r` for `r` in `[0, p - 1]`, `f` is `s*q + f(o + r)`: linear in `q`, and in `r` one of `p`
//! values. Periods that divide each other split `x` into digits, in which all is linear. The offset `o` is a
//! number where a quotient of the longest period has just grown, so that its values in one period do not
//! overlap those in the next.

use std::collections::BTreeMap;

use super::Work;
use crate::expr::{Context, Expr, Node, Var, gcd};
use crate::interval::{Interval, ceil_div_wide, floor_div_wide};
use crate::map::{IndexingMap, Variable};

/// The longest period.
const MAX_PERIOD: i128 = 1 << 32;

/// Which periods variables are split by.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Periods {
    /// Those in which as much as possible repeats.
    Longest,
    /// Those of what repeats first.
    Shortest,
}

/// A map over digits of the variables of another.
pub(super) struct Digits {
    pub(super) map: IndexingMap,
    /// The variables of the other map.
    pub(super) vars: Vec<Expr>,
}

impl Digits {
    /// The variables themselves.
    pub(super) fn of(ctx: &Context, map: &IndexingMap) -> Self {
        let vars = (0..).zip(&map.dims).map(|(number, _)| ctx.dim(number)).collect();
        Self { map: map.clone(), vars }
    }

    /// Splits the variables by their periods. `None` where there is none that is
    /// shorter than the interval of its variable, or no work is left.
    pub(super) fn split(&self, ctx: &Context, which: Periods, work: &Work) -> Option<Self> {
        let intervals = self.map.tightened_intervals(ctx);
        let mut map = self.map.clone();
        let mut replacements: Vec<Option<Expr>> = vec![None; map.dims.len()];
        let mut ends = Vec::new();
        let mut roots: BTreeMap<Var, Vec<Expr>> = BTreeMap::new();
        for root in repeating(&self.map) {
            for var in ctx.vars(root) {
                roots.entry(var).or_default().push(root);
            }
        }
        for (number, replacement) in (0..).zip(&mut replacements) {
            let var = Var::Dim(number);
            let interval = intervals.of(var);
            let roots = roots.get(&var).map_or(&[][..], |roots| &roots[..]);
            // They are sorted, and the periods of each counted.
            work.spend(4 * ctx.topological(roots).len())?;
            let Some((period, offset)) = period(ctx, roots, var, interval, which) else {
                continue;
            };
            let remainder = ctx.dim(u32::try_from(map.dims.len()).ok()?);
            let multiple = ctx.mul(ctx.dim(number), ctx.constant(period));
            let whole = ctx.add(multiple, ctx.add(remainder, ctx.constant(offset)));
            *replacement = Some(whole);
            let moved = interval.sub(Interval::point(offset));
            let quotients = moved.floor_div(Interval::point(period));
            let variable = map.variable_mut(var)?;
            ends.push((whole, interval));
            if variable.constant_interval(ctx).is_none() {
                let distances = variable.distances(ctx, whole).into_iter().flatten();
                ends.extend(distances.map(|distance| (distance, Interval::NON_NEGATIVE)));
            }
            variable.set_interval(ctx, quotients);
            map.dims.push(Variable::bounded(ctx, Interval::new(0, period - 1)));
        }
        if ends.is_empty() {
            return None;
        }
        let replaced = |var: Var| match var {
            Var::Dim(number) => replacements.get(number as usize).copied().flatten(),
            _ => None,
        };
        map.substitute(ctx, &replaced);
        for (expr, interval) in ends {
            map.add_constraint(ctx, expr, interval);
        }
        map.simplify(ctx);
        Some(Self { map, vars: ctx.substitute_all(&self.vars, &replaced) })
    }
}

/// The results and the left sides of equations.
fn repeating(map: &IndexingMap) -> Vec<Expr> {
    let equations = map.constraints.iter().filter(|it| it.interval.as_point().is_some());
    map.results.iter().copied().chain(equations.map(|equation| equation.expr)).collect()
}

/// The longest period of a variable that is shorter than its interval, of all quotients and remainders
/// with it, or else of those with the shortest periods, or the shortest; and the offset.
fn period(
    ctx: &Context,
    roots: &[Expr],
    var: Var,
    interval: Interval,
    which: Periods,
) -> Option<(i64, i64)> {
    let mut periods: BTreeMap<i128, Option<i128>> = BTreeMap::new();
    ctx.fold_values(roots, |_, node, operands| {
        let repeats = repeats(ctx, node, var, operands);
        if let Some((period, _)) = repeats {
            let offset = periods.entry(period).or_default();
            *offset = offset.or(first_step(ctx, node, var).map(|step| step.rem_euclid(period)));
        }
        repeats
    });
    let longest = match interval.num_members() {
        Some(count) => i128::from(count).min(MAX_PERIOD),
        None => MAX_PERIOD,
    };
    let (mut common, mut offset) = (1_i128, 0_i128);
    for (period, of_period) in periods {
        if which == Periods::Shortest && common != 1 {
            break;
        }
        match least_common_multiple(common, period) {
            Some(multiple) if multiple < longest => {
                (common, offset) = (multiple, of_period.unwrap_or(offset));
            }
            _ => break,
        }
    }
    Some((i64::try_from(common).ok().filter(|&period| 1 < period)?, i64::try_from(offset).ok()?))
}

/// A number at which a quotient differs from that of the number before it.
fn first_step(ctx: &Context, node: Node, var: Var) -> Option<i128> {
    let (Node::FloorDiv(numerator, _) | Node::CeilDiv(numerator, _)) = node else { return None };
    let linear = ctx.linear_terms(numerator)?;
    let of_var = linear.terms.iter().find(|it| ctx.as_var(it.0) == Some(var))?;
    let (factor, constant) = (i128::from(of_var.1), i128::from(linear.constant));
    // Where the numerator is no longer negative, or becomes positive, or the other way round.
    let is_floor = matches!(node, Node::FloorDiv(..));
    Some(if is_floor == (0 < factor) {
        ceil_div_wide(-constant, factor)
    } else {
        floor_div_wide(-constant, factor) + 1
    })
}

/// The period of an operation in a variable, and by how much it grows in one.
type Repeats = Option<(i128, i128)>;

fn repeats(ctx: &Context, node: Node, var: Var, operands: Option<(&Repeats, &Repeats)>) -> Repeats {
    let Some((&lhs, &rhs)) = operands else {
        return Some((1, i128::from(node == Node::Var(var))));
    };
    let ((of_lhs, lhs), (of_rhs, rhs)) = (lhs?, rhs?);
    let period = least_common_multiple(of_lhs, of_rhs).filter(|&it| it <= MAX_PERIOD)?;
    // By how much the operands grow in that.
    let (lhs, rhs) = (lhs.checked_mul(period / of_lhs)?, rhs.checked_mul(period / of_rhs)?);
    let by = node.operands().and_then(|(_, by)| ctx.as_constant(by)).map(i128::from);
    match node {
        Node::Add(..) => Some((period, lhs.checked_add(rhs)?)),
        Node::Mul(..) if lhs == 0 && rhs == 0 => Some((period, 0)),
        Node::Mul(..) => Some((period, lhs.checked_mul(by?)?)),
        Node::Min(..) | Node::Max(..) if lhs == rhs => Some((period, lhs)),
        Node::FloorDiv(..) | Node::CeilDiv(..) | Node::Mod(..) => {
            let by = by.filter(|&by| by != 0)?;
            let whole = least_common_multiple(lhs, by)?;
            let times = if lhs == 0 { 1 } else { whole / lhs.checked_abs()? };
            let period = period.checked_mul(times).filter(|&it| it <= MAX_PERIOD)?;
            let is_remainder = matches!(node, Node::Mod(..));
            Some((period, if is_remainder { 0 } else { lhs.checked_mul(times)?.checked_div(by)? }))
        }
        _ => None,
    }
}

/// Zero where one of the numbers is.
fn least_common_multiple(lhs: i128, rhs: i128) -> Option<i128> {
    let [lhs, rhs] = [lhs.unsigned_abs(), rhs.unsigned_abs()].map(u64::try_from);
    let (lhs, rhs) = (lhs.ok()?, rhs.ok()?);
    let common = gcd(lhs, rhs).max(1);
    i128::from(lhs).checked_mul(i128::from(rhs / common))
}

#[cfg(test)]
mod tests {
    use super::super::tests::inverse_of;

    #[test]
    fn periodic_functions() {
        for text in [
            "(d0) -> ((d0 - 1 + d0 / 3) / 5, (d0 - 1 + d0 / 3) mod 9), domain: d0 in [0, 721]",
            "(d0) -> (((-(d0 / 4) + 140) * 4 + d0 mod 4) / 3, ((-(d0 / 4) + 140) * 4 + d0 mod 4) mod 3), \
             domain: d0 in [0, 563]",
            "(d0) -> (d0 * 3 + (d0 / 5) * 2), domain: d0 in [0, 999]",
            "(d0) -> (d0 + d0 / 2 + d0 / 3), domain: d0 in [-100, 999]",
            "(d0) -> ((d0 / 4) * 9 + (d0 * 3) mod 4), domain: d0 in [0, 1000]",
            "(d0) -> ((d0 mod 4) * 9 + (d0 / 4) mod 9, d0 / 36), domain: d0 in [0, 1000]",
            "(d0) -> (d0 mod 2 + (d0 / 6) * 2, ((d0 / 2) mod 3) * 2 + d0 mod 2), domain: d0 in [0, 99]",
        ] {
            inverse_of(text);
        }
    }
}
