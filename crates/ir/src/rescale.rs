//! Range variables that take only every n-th value, counted in steps of n.
//!
//! With `s mod 6 in [3, 3]`, `s == 6*t + 3` for the values `t` of a new variable, which takes all
//! values between its bounds: the constraint goes, and loops over `t` visit nothing in vain. As
//! `RescaleSymbols` in XLA's `indexing_map.cc`. Runtime variables keep their values, since they are
//! given from outside, and dimension variables theirs, since callers index by them.

use std::collections::BTreeMap;

use crate::congruence::{Congruence, Merged};
use crate::expr::{Context, Expr, Var};
use crate::interval::{ceil_div_wide, floor_div_wide};
use crate::map::IndexingMap;

impl IndexingMap {
    /// Replaces each range variable `s` that constraints hold to `s == r (mod n)` by `n*s + r`,
    /// with bounds to match, and returns whether there was one. Constraints that contradict each
    /// other make the domain empty.
    ///
    /// ```
    /// use tc_ir::{Context, IndexingMap};
    /// let ctx = Context::new();
    /// let text = "(d0)[s0] -> (d0 + s0), domain: d0 in [0, 3], s0 in [0, 41], s0 mod 6 in [3, 3]";
    /// let mut map = IndexingMap::parse(&ctx, text)?;
    /// assert!(map.rescale_symbols(&ctx));
    /// map.simplify(&ctx);
    /// assert_eq!(
    ///     map.display(&ctx).to_string(),
    ///     "(d0)[s0] -> (d0 + s0 * 6 + 3), domain: d0 in [0, 3], s0 in [0, 6]"
    /// );
    /// # Ok::<(), tc_ir::ParseError>(())
    /// ```
    pub fn rescale_symbols(&mut self, ctx: &Context) -> bool {
        let mut merged: BTreeMap<u32, Congruence> = BTreeMap::new();
        let mut kept = Vec::with_capacity(self.constraints.len());
        for &constraint in &self.constraints {
            let (number, congruence) = match Congruence::of(ctx, &constraint) {
                Some((Var::Range(number), it)) if (number as usize) < self.ranges.len() => {
                    (number, it)
                }
                _ => {
                    kept.push(constraint);
                    continue;
                }
            };
            let both =
                merged.get(&number).map_or(Merged::One(congruence), |it| it.merge(congruence));
            match both {
                Merged::One(both) => {
                    merged.insert(number, both);
                }
                Merged::Contradiction => {
                    self.set_known_empty(ctx);
                    return true;
                }
                Merged::TooLarge => kept.push(constraint),
            }
        }
        if merged.is_empty() {
            return false;
        }
        self.constraints = kept;
        for (&number, congruence) in &merged {
            let variable = &mut self.ranges[number as usize];
            variable.lower = variable.lower.map(|it| divided(ctx, it, congruence, Bound::Lower));
            variable.upper = variable.upper.map(|it| divided(ctx, it, congruence, Bound::Upper));
        }
        self.substitute(ctx, &|var| match var {
            Var::Range(number) => {
                let Congruence { modulus, remainder } = *merged.get(&number)?;
                let steps = ctx.mul(ctx.var(var), ctx.constant(modulus));
                Some(ctx.add(steps, ctx.constant(remainder)))
            }
            _ => None,
        });
        self.sort_constraints(ctx);
        true
    }
}

enum Bound {
    Lower,
    Upper,
}

/// The bound of t where s == n*t + r and `bound` is that of s.
fn divided(ctx: &Context, bound: Expr, congruence: &Congruence, side: Bound) -> Expr {
    let Congruence { modulus, remainder } = *congruence;
    if let Some(value) = ctx.as_constant(bound) {
        let distance = i128::from(value) - i128::from(remainder);
        let quotient = match side {
            Bound::Lower => ceil_div_wide(distance, i128::from(modulus)),
            Bound::Upper => floor_div_wide(distance, i128::from(modulus)),
        };
        // Only a modulus of 1 leaves as large a number.
        let limit = |quotient: i128| quotient.clamp(i64::MIN.into(), i64::MAX.into());
        return ctx.constant(i64::try_from(limit(quotient)).unwrap_or(value));
    }
    let distance = ctx.sub(bound, ctx.constant(remainder));
    match side {
        Bound::Lower => ctx.ceil_div(distance, ctx.constant(modulus)),
        Bound::Upper => ctx.floor_div(distance, ctx.constant(modulus)),
    }
}
