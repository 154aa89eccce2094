//! Solves unknowns in an interval of `w` numbers, given their value mod `m >= w`.
//!
//! Where `t` lies in `[l, l + w - 1]` and `w <= m`, its remainder by `m` says which of these numbers it is:
//! `t == l + (t - l) mod m`, since `0 <= t - l < m`. The intervals are
//!
//! - of quotients: `(a*t + k) floordiv c == q` is `c*q <= a*t + k <= c*q + c - 1`, at most `(c - 1)
//!   floordiv a + 1` numbers;
//! - of sums that a constraint bounds: `d0 - 3*d1 in [0, 2]` says `d1`, where `d0` is known;
//! - of digits: `(x floordiv a) mod b` is a quotient of `x mod a*b`;
//! - of several quotients of one number at once: each cuts the numbers into intervals of its own, of which
//!   `t` lies in the one with the largest lower end; the cuts of all repeat with the least common multiple
//!   of the divisors, and the largest gap between them is `w`;
//! - the bounds of the number, which may be symbolic; so may `m`.

use std::collections::BTreeMap;

use super::Solver;
use super::monotone::{Sum, primitive};
use super::residues::Residue;
use crate::expr::{Expr, Node, gcd};
use crate::map::Constraint;

/// The longest period of cuts that are looked at.
const MAX_PERIOD: i64 = 1 << 10;

/// An interval that a quotient says.
#[derive(Clone, Copy)]
struct Window {
    least: Expr,
    /// How many numbers it holds: a constant, or over the variables of the map.
    width: Expr,
    /// Where all such intervals start: at numbers with this remainder by the divisor.
    cuts: Option<(i64, i64)>,
}

impl Solver<'_> {
    /// Solves numbers of which a quotient, or a remainder by a symbol, is known.
    pub(super) fn join_windows(&mut self) {
        let ctx = self.ctx;
        let mut places: BTreeMap<Expr, Vec<Window>> = BTreeMap::new();
        let mut remainders = Vec::new();
        for (term, value) in self.all_known() {
            let place = match ctx.node(term) {
                Node::FloorDiv(numerator, by) => self.window(numerator, by, value, true),
                Node::CeilDiv(numerator, by) => self.window(numerator, by, value, false),
                Node::Mod(numerator, modulus) => {
                    if ctx.as_constant(modulus).is_none() {
                        remainders.extend(self.symbolic_remainder(numerator, modulus, value));
                    }
                    self.window_of_digit(numerator, modulus, value)
                }
                _ => None,
            };
            if let Some((number, window)) = place {
                places.entry(number).or_default().push(window);
            }
        }
        for &Constraint { expr, interval } in &self.map.constraints {
            if let Some(extent) = interval.hi.checked_sub(interval.lo).filter(|&it| 0 <= it)
                && interval.is_bounded()
                && let [least, extent] = [interval.lo, extent].map(|it| ctx.constant(it))
                && let Some((number, window)) = self.window_of(expr, least, extent)
            {
                places.entry(number).or_default().push(window);
            }
        }
        let congruences = self.congruences();
        for (&number, windows) in &places {
            if self.express(number).is_none() {
                let residue = self.residue_of(&congruences, number);
                if let Some(value) = self.at(windows, residue) {
                    self.add(number, value);
                }
            }
        }
        for (number, modulus, remainder) in remainders {
            let windows = places.get(&number).map_or(&[][..], |windows| &windows[..]);
            if self.express(number).is_none()
                && let Some(least) = self.least_within(number, modulus, windows)
                && let Some(modulus) = self.express(modulus)
            {
                let above = ctx.modulo(ctx.sub(remainder, least), modulus);
                self.add(number, ctx.add(least, above));
            }
        }
    }

    /// The number in these windows with this remainder.
    fn at(&self, windows: &[Window], residue: Option<Residue>) -> Option<Expr> {
        let ctx = self.ctx;
        let modulus = residue.map_or(1, |it| it.0);
        let widths = windows.iter().filter_map(|it| Some((ctx.as_constant(it.width)?, it.least)));
        let least = match widths.min_by_key(|it| it.0) {
            Some((width, least)) if width <= modulus => least,
            _ => {
                let width = width_between_cuts(windows)?;
                let lower_ends = windows.iter().filter(|it| it.cuts.is_some()).map(|it| it.least);
                let largest = lower_ends.reduce(|lhs, rhs| ctx.max(lhs, rhs))?;
                (width <= modulus).then_some(largest)?
            }
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
        by: Expr,
        quotient: Expr,
        rounds_down: bool,
    ) -> Option<(Expr, Window)> {
        let ctx = self.ctx;
        let value = self.divisor(by)?;
        let largest = ctx.sub(by, ctx.constant(1));
        let below = if rounds_down { ctx.constant(0) } else { ctx.sub(ctx.constant(1), value) };
        let least = ctx.add(ctx.mul(quotient, value), below);
        let (number, mut window) = self.window_of(numerator, least, largest)?;
        let (_, factor, rest) = self.multiple(numerator)?;
        let constants = ctx.as_constant(by).zip(ctx.as_constant(below)).zip(ctx.as_constant(rest));
        window.cuts = constants.and_then(|((by, below), rest)| {
            let offset = below.checked_sub(rest)?;
            let start = match factor {
                1 => offset,
                -1 => offset.checked_add(by - 1)?.checked_neg()?,
                _ => return None,
            };
            Some((by, start.rem_euclid(by)))
        });
        Some((number, window))
    }

    /// The interval of the number that `expr` is a multiple of, where it lies in `[least, least + extent]`.
    fn window_of(&self, expr: Expr, least: Expr, extent: Expr) -> Option<(Expr, Window)> {
        let ctx = self.ctx;
        let (number, factor, rest) = self.multiple(expr)?;
        let size = ctx.constant(factor.checked_abs()?);
        let least = ctx.sub(least, rest);
        let least = if 0 < factor { least } else { ctx.neg(ctx.add(least, self.express(extent)?)) };
        let window = Window {
            least: ctx.ceil_div(least, size),
            width: ctx.add(ctx.floor_div(extent, size), ctx.constant(1)),
            cuts: None,
        };
        Some((number, window))
    }

    /// That of a remainder of which a digit is known: `(x floordiv a) mod b == (x mod a*b) floordiv a`.
    fn window_of_digit(&self, digit: Expr, modulus: Expr, value: Expr) -> Option<(Expr, Window)> {
        let ctx = self.ctx;
        let Node::FloorDiv(whole, unit) = ctx.node(digit) else { return None };
        let product = ctx.mul(modulus, unit);
        let are_divisors =
            [modulus, unit, product].into_iter().all(|it| self.divisor(it).is_some());
        are_divisors.then(|| self.window(ctx.modulo(whole, product), unit, value, true))?
    }

    /// `numerator mod modulus == value` as the remainder of a number, for a modulus that is known and no constant.
    fn symbolic_remainder(
        &self,
        numerator: Expr,
        modulus: Expr,
        value: Expr,
    ) -> Option<(Expr, Expr, Expr)> {
        let ctx = self.ctx;
        let (number, factor, rest) =
            self.multiple(numerator).filter(|_| self.divisor(modulus).is_some())?;
        let remainder = ctx.mul(ctx.sub(value, rest), ctx.constant(factor));
        (factor.unsigned_abs() == 1).then_some((number, modulus, remainder))
    }

    /// The least of at most so many numbers in a row, one of which this is.
    fn least_within(&mut self, number: Expr, modulus: Expr, windows: &[Window]) -> Option<Expr> {
        if let Some(window) = windows.iter().find(|it| self.is_at_most(it.width, modulus)) {
            return Some(window.least);
        }
        self.least_of(number, modulus)
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
    fn constraints_are_windows() {
        assert_eq!(
            inverse_of("(d0, d1) -> (d0), domain: d0 in [0, 99], d0 - d1 * 3 in [0, 2]"),
            "(d0) -> (d0, d0 / 3), domain: d0 in [0, 99]"
        );
        for text in [
            "(d0, d1) -> (d0), domain: d0 in [0, 99], d0 + d1 * 5 in [-1, 1]",
            "(d0, d1) -> (d0, d1 mod 4), domain: d0 in [0, 99], d0 - d1 * 3 in [0, 11]",
            "(d0, d1, d2) -> (d0, d1), domain: d0 in [0, 9], d1 in [0, 9], d0 + d1 * 2 - d2 * 7 in [0, 5]",
            "(d0, d1){N} -> (d1), domain: d0 in [0, N + 1], d1 in [0, 9], N in [8, 9], d0 * 12 in [10, 16]",
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
