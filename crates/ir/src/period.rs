//! Periods of expressions.
//!
//! `(d0 * d0) mod 4` is the same at `d0` and at `d0 + 4`, and `(d0 / 2) mod 3` at `d0` and at `d0 + 6`. The rule:
//! sums, differences and products of integers are congruent modulo `m` where their operands are, `x floordiv c`
//! where `x` is congruent modulo `c*m`, and `x mod c` is the same where `x` is congruent modulo `c`. What such an
//! expression is anywhere, it is in a box with one period of each variable.

use smallvec::SmallVec;

use crate::expr::{Context, Expr, Node, Var, gcd};
use crate::interval::Interval;

/// The most operators of an expression whose periods are looked for.
const MAX_COST: u32 = 64;

/// A number by which `var` may grow without a change of `expr`, or with one that is a multiple of `modulus`.
fn period(ctx: &Context, expr: Expr, var: Var, modulus: Option<i64>) -> Option<i64> {
    let of = |operand, modulus| period(ctx, operand, var, modulus);
    let both = |lhs, rhs, modulus| least_common_multiple(of(lhs, modulus)?, of(rhs, modulus)?);
    let positive = |expr| ctx.as_constant(expr).filter(|&value| 0 < value);
    match ctx.node(expr) {
        Node::Const(_) => Some(1),
        Node::Var(other) if other != var => Some(1),
        Node::Var(_) => modulus,
        Node::Add(lhs, rhs) | Node::Mul(lhs, rhs) => both(lhs, rhs, modulus),
        Node::Mod(value, by) if positive(by).is_some() => of(value, positive(by)),
        Node::FloorDiv(value, by) | Node::CeilDiv(value, by) if positive(by).is_some() => {
            let whole = match modulus {
                Some(modulus) => Some(modulus.checked_mul(positive(by)?)?),
                None => None,
            };
            of(value, whole)
        }
        Node::FloorDiv(lhs, rhs)
        | Node::CeilDiv(lhs, rhs)
        | Node::Mod(lhs, rhs)
        | Node::Min(lhs, rhs)
        | Node::Max(lhs, rhs) => both(lhs, rhs, None),
    }
}

fn least_common_multiple(a: i64, b: i64) -> Option<i64> {
    let common = gcd(a.unsigned_abs(), b.unsigned_abs());
    a.checked_mul(b.checked_div(i64::try_from(common).ok()?)?)
}

/// The numbers of an interval up to one period. `None` where there are no fewer.
fn one_period(ctx: &Context, expr: Expr, var: Var, values: Interval) -> Option<Interval> {
    let period = period(ctx, expr, var, None)?;
    let lo = if values.lo == i64::MIN { 0 } else { values.lo };
    let shorter = Interval::new(lo, lo.checked_add(period - 1)?);
    values.num_members().is_none_or(|members| period.unsigned_abs() < members).then_some(shorter)
}

/// Calls `visit` with values that are all that an expression has on a box, until it returns `false`. Returns
/// whether it never did; `None` where there are more than `max_points` of them, or one has no value.
pub(crate) fn all_values(
    ctx: &Context,
    expr: Expr,
    interval: impl Fn(Var) -> Interval,
    max_points: u64,
    mut visit: impl FnMut(i64) -> bool,
) -> Option<bool> {
    let mut bounds: SmallVec<[(Var, Interval); 4]> =
        ctx.vars(expr).into_iter().map(|var| (var, interval(var))).collect();
    let num_points = |bounds: &[(Var, Interval)]| {
        let members = |count: u64, it: &(Var, Interval)| count.checked_mul(it.1.num_members()?);
        bounds.iter().try_fold(1, members).filter(|&count| count <= max_points)
    };
    let count = match num_points(&bounds) {
        Some(count) => count,
        None if MAX_COST < ctx.cost(expr) => return None,
        None => {
            for (var, values) in &mut bounds {
                *values = one_period(ctx, expr, *var, *values).unwrap_or(*values);
            }
            num_points(&bounds)?
        }
    };
    let mut point: SmallVec<[(Var, i64); 4]> =
        bounds.iter().map(|&(var, values)| (var, values.lo)).collect();
    for _ in 0..count {
        let value_of =
            |var| point.iter().find(|&&(other, _)| other == var).map(|&(_, value)| value);
        if !visit(ctx.eval(expr, &value_of).ok()?) {
            return Some(false);
        }
        for ((_, value), (_, values)) in point.iter_mut().zip(&bounds) {
            if *value < values.hi {
                *value += 1;
                break;
            }
            *value = values.lo;
        }
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_expr() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("d0".to_string()),
            Just("d1".to_string()),
            (-4_i64..5).prop_map(|it| format!("({it})")),
        ];
        leaf.prop_recursive(4, 24, 2, |inner| {
            let pair = (inner.clone(), inner.clone());
            prop_oneof![
                (pair.clone(), prop::sample::select(vec!["+", "-", "*"]))
                    .prop_map(|((lhs, rhs), operator)| format!("({lhs} {operator} {rhs})")),
                (pair, prop::sample::select(vec!["min", "max"]))
                    .prop_map(|((lhs, rhs), name)| format!("{name}({lhs}, {rhs})")),
                (inner, prop::sample::select(vec!["mod", "/", "ceildiv"]), 1_i64..6)
                    .prop_map(|(lhs, operator, by)| format!("({lhs} {operator} {by})")),
            ]
        })
    }

    proptest! {
        /// The values in one period are those in a box.
        #[test]
        fn periods_hold_all_values(text in any_expr(), modulus in 1_i64..6, lo in -20_i64..20) {
            let ctx = Context::new();
            let text = format!("(d0, d1) -> (({text}) mod {modulus})");
            let map = crate::map::IndexingMap::parse(&ctx, &text).expect("a map");
            let expr = map.results[0];
            let values_in = |size: i64, max_points| {
                let mut values = std::collections::BTreeSet::new();
                let interval = |_| Interval::new(lo, lo + size - 1);
                let add = |value| {
                    values.insert(value);
                    true
                };
                all_values(&ctx, expr, interval, max_points, add).map(|_| values)
            };
            if let Some(values) = values_in(200, 400) {
                prop_assert_eq!(Some(values), values_in(200, 40_000), "{}", text);
            }
        }
    }
}
