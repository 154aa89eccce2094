//! Numbers of which a short interval and a remainder are known.
//!
//! Where `t` lies in `[l, l + w - 1]` and `w <= m`, its remainder by `m` says which of these numbers it is:
//! `t == l + (t - l) mod m`, since `0 <= t - l < m`. The intervals are
//!
//! - of quotients: `(a*t + k) floordiv c == q` is `c*q <= a*t + k <= c*q + c - 1`, at most `(c - 1)
//!   floordiv a + 1` numbers;
//! - of digits: `(x floordiv a) mod b` is a quotient of `x mod a*b`;
//! - of several quotients of one number at once: each cuts the numbers into intervals of its own, of which
//!   `t` lies in the one with the largest lower end; the cuts of all repeat with the least common multiple
//!   of the divisors, and the largest gap between them is `w`;
//! - the bounds of the number, which may be symbolic; so may `m`.

use std::collections::BTreeMap;

use super::Solver;
use super::monotone::{Sum, primitive};
use super::residues::Residue;
use crate::expr::{Expr, Node, Var, gcd};
use crate::prove::{Prover, Verdict};

/// The longest period of cuts that are looked at.
const MAX_PERIOD: i64 = 1 << 10;

/// An interval that a quotient says.
#[derive(Clone, Copy)]
struct Window {
    least: Expr,
    width: i64,
    /// Where all such intervals start: at numbers with this remainder by the divisor.
    cuts: Option<(i64, i64)>,
}

impl Solver<'_> {
    /// Solves numbers of which a quotient, or a remainder by a symbol, is known.
    pub(super) fn join_windows(&mut self) {
        let ctx = self.ctx;
        let mut places: BTreeMap<Expr, Vec<Window>> = BTreeMap::new();
        for (term, value) in self.all_known() {
            match ctx.node(term) {
                Node::FloorDiv(numerator, by) | Node::CeilDiv(numerator, by) => {
                    let rounds_down = matches!(ctx.node(term), Node::FloorDiv(..));
                    if let Some(by) = ctx.as_constant(by).filter(|&by| 1 < by)
                        && let Some((number, window)) =
                            self.window(numerator, by, value, rounds_down)
                    {
                        places.entry(number).or_default().push(window);
                    }
                }
                Node::Mod(numerator, modulus) => {
                    if ctx.as_constant(modulus).is_none() {
                        self.solve_symbolic(numerator, modulus, value);
                    } else if let Some((number, window)) =
                        self.window_of_digit(numerator, modulus, value)
                    {
                        places.entry(number).or_default().push(window);
                    }
                }
                _ => {}
            }
        }
        let congruences = self.congruences();
        for (number, windows) in places {
            if self.express(number).is_none() {
                let residue = self.residue_of(&congruences, number);
                if let Some(value) = self.at(&windows, residue) {
                    self.add(number, value);
                }
            }
        }
    }

    /// The number in these windows with this remainder.
    fn at(&self, windows: &[Window], residue: Option<Residue>) -> Option<Expr> {
        let ctx = self.ctx;
        let modulus = residue.map_or(1, |it| it.0);
        let narrowest = windows.iter().min_by_key(|window| window.width)?;
        let least = if narrowest.width <= modulus {
            narrowest.least
        } else {
            let width = width_between_cuts(windows)?;
            let lower_ends = windows.iter().filter(|it| it.cuts.is_some()).map(|it| it.least);
            let largest = lower_ends.reduce(|lhs, rhs| ctx.max(lhs, rhs))?;
            (width <= modulus).then_some(largest)?
        };
        Some(match residue {
            Some((modulus, remainder)) => {
                let above = ctx.modulo(ctx.sub(remainder, least), ctx.constant(modulus));
                ctx.add(least, above)
            }
            None => least,
        })
    }

    /// `expr == factor*number + rest`, for a number without a factor or constant and a known rest.
    fn multiple(&self, expr: Expr) -> Option<(Expr, i64, Expr)> {
        let Sum { unknown, known } = self.sum(expr)?;
        let form = primitive(&unknown)?;
        let factor = unknown.first()?.1.checked_div(form.first()?.1)?;
        Some((self.total(&form), factor, known))
    }

    /// The interval of a number of which a quotient is known.
    fn window(
        &self,
        numerator: Expr,
        by: i64,
        quotient: Expr,
        rounds_down: bool,
    ) -> Option<(Expr, Window)> {
        let ctx = self.ctx;
        let (number, factor, rest) = self.multiple(numerator)?;
        // lo <= factor*number <= lo + by - 1
        let below = if rounds_down { 0 } else { 1 - by };
        let lo = ctx.add(ctx.mul(quotient, ctx.constant(by)), ctx.constant(below));
        let lo = ctx.sub(lo, rest);
        let size = factor.checked_abs()?;
        let least = if 0 < factor { lo } else { ctx.neg(ctx.add(lo, ctx.constant(by - 1))) };
        let offset = ctx.as_constant(rest).and_then(|rest| below.checked_sub(rest));
        let start = offset.and_then(|offset| {
            let end =
                if 0 < factor { offset } else { offset.checked_add(by - 1)?.checked_neg()? };
            Some((by, end.rem_euclid(by)))
        });
        let window = Window {
            least: ctx.ceil_div(least, ctx.constant(size)),
            width: (by - 1) / size + 1,
            cuts: start.filter(|_| size == 1),
        };
        Some((number, window))
    }

    /// That of a remainder of which a digit is known: `(x floordiv a) mod b == (x mod a*b) floordiv a`.
    fn window_of_digit(&self, digit: Expr, modulus: Expr, value: Expr) -> Option<(Expr, Window)> {
        let ctx = self.ctx;
        let Node::FloorDiv(whole, unit) = ctx.node(digit) else { return None };
        let unit = ctx.as_constant(unit).filter(|&unit| 1 < unit)?;
        let modulus = ctx.as_constant(modulus).filter(|&modulus| 1 < modulus)?;
        let remainder = ctx.modulo(whole, ctx.constant(modulus.checked_mul(unit)?));
        self.window(remainder, unit, value, true)
    }

    /// Solves `numerator mod modulus == value` for a modulus over runtime variables.
    fn solve_symbolic(&mut self, numerator: Expr, modulus: Expr, value: Expr) -> Option<()> {
        let ctx = self.ctx;
        let is_symbol = ctx.vars(modulus).iter().all(|var| matches!(var, Var::Runtime(_)));
        let (number, factor, rest) = self.multiple(numerator).filter(|_| is_symbol)?;
        if factor.unsigned_abs() != 1 {
            return None;
        }
        let least = match ctx.as_var(number) {
            Some(var) => self.map.variable(var)?.lower?,
            None => ctx.constant(0),
        };
        let prover = Prover::for_domain(ctx, self.map);
        let above = ctx.sub(number, least);
        let below = ctx.sub(ctx.sub(modulus, above), ctx.constant(1));
        let fits = [above, below].into_iter().all(|it| prover.nonnegative(it) == Verdict::Proved);
        if fits {
            let congruent = ctx.mul(ctx.sub(value, rest), ctx.constant(factor));
            let above = ctx.modulo(ctx.sub(congruent, least), modulus);
            self.add(number, ctx.add(least, above));
        }
        Some(())
    }
}

/// The largest gap between the cuts of all windows.
fn width_between_cuts(windows: &[Window]) -> Option<i64> {
    let cuts: Vec<(i64, i64)> = windows.iter().filter_map(|window| window.cuts).collect();
    let mut period = 1_i64;
    for &(by, _) in &cuts {
        let common = i64::try_from(gcd(period.unsigned_abs(), by.unsigned_abs())).ok()?;
        period = period.checked_mul(by / common).filter(|&period| period <= MAX_PERIOD)?;
    }
    let is_cut = |number: i64| cuts.iter().any(|&(by, start)| number.rem_euclid(by) == start);
    let first = (0..period).find(|&number| is_cut(number))?;
    let (mut last, mut widest) = (first, 0);
    for number in first + 1..=first + period {
        if is_cut(number) {
            widest = widest.max(number - last);
            last = number;
        }
    }
    Some(widest)
}

#[cfg(test)]
mod tests {
    use super::super::tests::inverse_of;

    #[test]
    fn a_remainder_picks_from_an_interval() {
        for text in [
            "(d0) -> (d0 ceildiv 2, d0 mod 2), domain: d0 in [-7, 20]",
            "(d0) -> (d0 / 2, d0 mod 4), domain: d0 in [0, 31]",
            "(d0) -> (((d0 + 4) mod 42) / 6, (d0 + 4) mod 42 mod 10), domain: d0 in [0, 41]",
            "(d0) -> (d0 / 3, d0 mod 6), domain: d0 in [0, 31]",
            "(d0) -> (d0 mod 6, d0 / 3), domain: d0 in [1, 31]",
            "(d0) -> (d0 / 4, d0 mod 6), domain: d0 in [-31, 31]",
            "(d0) -> (d0 / 1000, d0 mod 7, d0 mod 11, d0 mod 13), domain: d0 in [0, 99999]",
            "(d0) -> ((d0 * -3 + 5) / 7, (d0 * 2) mod 9), domain: d0 in [-50, 50]",
            "(d0, d1) -> ((d0 + d1 * 9) / 7, (d0 + d1 * 9) mod 11, d1 + d0 * 2), \
             domain: d0 in [0, 50], d1 in [0, 50]",
            "(d0, d1) -> ((d0 + d1 * 3) / 6, d0 mod 8, d1), domain: d0 in [0, 50], d1 in [0, 50]",
        ] {
            inverse_of(text);
        }
    }

    #[test]
    fn several_quotients_cut_the_numbers_finely() {
        for text in [
            "(d0) -> (d0 / 2, (d0 + 1) / 2), domain: d0 in [-9, 9]",
            "(d0) -> (d0 / 6, (d0 + 2) ceildiv 6, (d0 - 1) / 3, d0 mod 3), domain: d0 in [-30, 30]",
            "(d0) -> (d0 / 4, -d0 / 4, (d0 + 2) / 4, d0 mod 2), domain: d0 in [-30, 30]",
        ] {
            inverse_of(text);
        }
    }

    #[test]
    fn rotations() {
        for text in [
            "(d0) -> ((d0 + 3) mod 10), domain: d0 in [0, 9]",
            "(d0){N} -> ((d0 + 3) mod N), domain: d0 in [0, N - 1], N in [1, 100]",
            "(d0){N} -> ((-d0 - 1) mod (N * 2)), domain: d0 in [N, N * 2], N in [1, 100]",
        ] {
            inverse_of(text);
        }
    }
}
