//! Mixed-radix digits of variables.
//!
//! Quotients of one variable, the divisors of which are multiples of each other, depend on each
//! other: `x floordiv 8` is at most half of `x floordiv 4`. The digits of a mixed radix numeral
//! (Knuth, "The Art of Computer Programming", 4.1) do not, but for the highest where the extent
//! is no multiple of its divisor. So a sum of quotients is turned into one of digits, where
//!
//! ```text
//! x floordiv c == (x floordiv c) mod m + m*(x floordiv (c*m))
//! ```
//!
//! to take its interval, to see which terms of a numerator never reach the divisor, and to write
//! it where that is shorter. Sums hold quotients, not digits: these have the same coefficients
//! whatever other divisors occur.
//!
//! Example: for `x` in `[0, 7]`, `x - 2*(x floordiv 2) + 2*(x floordiv 4)` is `x mod 2 + 2*(x
//! floordiv 4)`, which lies in `[0, 3]`.

use smallvec::SmallVec;

use super::Simplifier;
use super::sum::{Atom, Sum};
use super::write::{Parts, Piece};
use crate::expr::Expr;
use crate::interval::Interval;

/// The most quotients of variables in a sum that are put together.
const MAX_DIGITS: usize = 16;

/// `(leaf floordiv divisor) mod modulus`, where the highest digit has no modulus.
#[derive(Copy, Clone, Debug)]
pub(super) struct Digit {
    pub(super) leaf: Atom,
    pub(super) divisor: i64,
    pub(super) modulus: Option<i64>,
}

/// Multiples of digits.
type Digits = SmallVec<[(Digit, i64); 4]>;

/// Multiples of quotients of one leaf, by divisor.
struct Quotients {
    leaf: Atom,
    terms: SmallVec<[(i64, Atom, i64); 4]>,
}

impl Simplifier<'_> {
    /// The leaf and the divisor of which an atom is the quotient.
    pub(super) fn quotient_of(&self, atom: Atom) -> Option<(Atom, i64)> {
        self.tables.atoms[atom.index()].quotient_of
    }

    /// The terms of a sum that are quotients of one leaf, for each leaf of which there are two
    /// or more.
    fn quotients_by_leaf(&self, sum: &Sum) -> SmallVec<[Quotients; 2]> {
        let mut found: SmallVec<[Quotients; 2]> = SmallVec::new();
        let mut count = 0;
        for &(atom, coefficient) in sum.terms() {
            let Some((leaf, divisor)) = self.quotient_of(atom).filter(|&(_, by)| by != 1) else {
                continue;
            };
            count += 1;
            if MAX_DIGITS < count {
                return SmallVec::new();
            }
            let place = found.iter().position(|quotients| quotients.leaf == leaf);
            let place = place.unwrap_or_else(|| {
                let mut terms = SmallVec::new();
                match sum.coefficient(leaf) {
                    0 => {}
                    whole => terms.push((1, leaf, whole)),
                }
                found.push(Quotients { leaf, terms });
                found.len() - 1
            });
            found[place].terms.push((divisor, atom, coefficient));
        }
        found.retain(|quotients| 1 < quotients.terms.len());
        for quotients in &mut found {
            quotients.terms.sort_unstable_by_key(|&(divisor, ..)| divisor);
        }
        found
    }

    /// `a*(x floordiv c) + b*(x floordiv (c*m)) == a*((x floordiv c) mod m) + (a*m + b)*(x
    /// floordiv (c*m))`, from the lowest on. `None` where a divisor is no multiple of the one
    /// before, and on overflow.
    fn digits(quotients: &Quotients) -> Option<Digits> {
        let mut digits = Digits::new();
        let mut weight = 0_i64;
        for (place, &(divisor, _, coefficient)) in quotients.terms.iter().enumerate() {
            weight = weight.checked_add(coefficient)?;
            let next = quotients.terms.get(place + 1).map(|&(next, ..)| next);
            if next.is_some_and(|next| next % divisor != 0) {
                return None;
            }
            let modulus = next.map(|next| next / divisor);
            if weight != 0 {
                digits.push((Digit { leaf: quotients.leaf, divisor, modulus }, weight));
            }
            weight = weight.checked_mul(modulus.unwrap_or(1))?;
        }
        Some(digits)
    }

    /// The values of a digit.
    pub(super) fn interval_of_digit(&self, digit: Digit) -> Interval {
        let whole = self.tables.atoms[digit.leaf.index()].interval;
        let quotient = whole.floor_div(Interval::point(digit.divisor));
        let values = digit.modulus.map_or(quotient, |it| quotient.modulo(Interval::point(it)));
        if self.known.is_empty() {
            return values;
        }
        values.intersect(self.known_interval(self.write_digit(digit)))
    }

    pub(super) fn write_digit(&self, digit: Digit) -> Expr {
        let ctx = self.ctx;
        let leaf = self.tables.atoms[digit.leaf.index()].written.unwrap_or_else(|| ctx.constant(0));
        let quotient = ctx.floor_div(leaf, ctx.constant(digit.divisor));
        digit.modulus.map_or(quotient, |modulus| ctx.modulo(quotient, ctx.constant(modulus)))
    }

    /// The interval of a sum, with nothing but quotients of leaves put together.
    pub(super) fn interval_of_terms(&self, sum: &Sum) -> Interval {
        let plus = |values: Interval, atom: Atom, coefficient: i64| {
            values.add_multiple(self.tables.atoms[atom.index()].interval, coefficient)
        };
        let mut total = Interval::point(0);
        let groups = self.quotients_by_leaf(sum);
        let is_grouped = |atom: Atom| {
            self.quotient_of(atom)
                .is_some_and(|(leaf, _)| groups.iter().any(|quotients| quotients.leaf == leaf))
        };
        for &(atom, coefficient) in sum.terms() {
            if groups.is_empty() || !is_grouped(atom) {
                total = plus(total, atom, coefficient);
            }
        }
        for quotients in &groups {
            let mut apart = Interval::point(0);
            for &(_, atom, coefficient) in &quotients.terms {
                apart = plus(apart, atom, coefficient);
            }
            if let Some(digits) = Self::digits(quotients) {
                let mut together = Interval::point(0);
                for (digit, weight) in digits {
                    together = together.add_multiple(self.interval_of_digit(digit), weight);
                }
                apart = apart.intersect(together);
            }
            total = total.add(apart);
        }
        // The constant comes last: beside it, the terms may leave 64 bits only on the way.
        total = total.add(Interval::point(sum.constant));
        total.intersect(self.known_interval_of_sum(sum))
    }

    /// The terms of a sum, with the quotients of a leaf as what `form` makes of them.
    fn with_quotients(
        &self,
        sum: &Sum,
        form: impl Fn(&Self, &Quotients) -> Option<Parts>,
    ) -> Parts {
        let groups = self.quotients_by_leaf(sum);
        let mut parts = Parts::new();
        let mut replaced: SmallVec<[Atom; 4]> = SmallVec::new();
        for quotients in &groups {
            if let Some(new) = form(self, quotients) {
                parts.extend(new);
                replaced.push(quotients.leaf);
            }
        }
        let kept = sum.terms().iter().filter(|&&(atom, _)| {
            replaced.is_empty()
                || !self.quotient_of(atom).is_some_and(|(leaf, _)| replaced.contains(&leaf))
        });
        parts.extend(kept.map(|&(atom, coefficient)| (Piece::Atom(atom), coefficient)));
        parts
    }

    /// The terms of a sum, with digits for the quotients of a leaf.
    pub(super) fn split_digits(&self, sum: &Sum) -> Parts {
        self.with_quotients(sum, |_, quotients| Some(positional(Self::digits(quotients)?)))
    }

    /// The terms of a sum, with the quotients of a leaf as they are shortest.
    pub(super) fn shortest_quotients(&self, sum: &Sum) -> Parts {
        self.with_quotients(sum, |this, quotients| {
            let atoms = quotients.terms.iter().map(|&(_, atom, c)| (Piece::Atom(atom), c));
            let forms = [
                Self::digits(quotients).map(positional),
                Some(atoms.collect()),
                this.scaled_quotient(quotients),
                Self::remainders(quotients),
            ];
            forms.into_iter().flatten().min_by_key(|parts| this.num_operators(parts))
        })
    }

    /// `a*(x floordiv c) - b*m*(x floordiv (c*m)) == (a - b)*(x floordiv c) + b*((x floordiv c) mod m)`, from the
    /// highest on. `None` on overflow.
    fn remainders(quotients: &Quotients) -> Option<Parts> {
        let mut parts = Parts::new();
        let mut terms = quotients.terms.clone();
        while let Some((divisor, atom, coefficient)) = terms.pop() {
            if let Some((below, _, rest)) = terms.last_mut()
                && divisor % *below == 0
                && coefficient % (divisor / *below) == 0
            {
                let modulus = divisor / *below;
                let scale = (coefficient / modulus).checked_neg()?;
                *rest = rest.checked_sub(scale)?;
                let digit = Digit { leaf: quotients.leaf, divisor: *below, modulus: Some(modulus) };
                parts.push((Piece::Digit(digit), scale));
            } else {
                parts.push((Piece::Atom(atom), coefficient));
            }
        }
        parts.retain(|&mut (_, coefficient)| coefficient != 0);
        Some(parts)
    }

    /// `a*b*(x floordiv c) + b*(x floordiv (c*m)) == b*(((x floordiv c)*(a*m + 1)) floordiv m)`.
    fn scaled_quotient(&self, quotients: &Quotients) -> Option<Parts> {
        let &[(low, value, a), (high, _, b)] = &quotients.terms[..] else { return None };
        if a.checked_rem(b)? != 0 || high % low != 0 {
            return None;
        }
        let factor = (a / b).checked_mul(high / low)?.checked_add(1)?;
        let scaled = Sum::from(value).scaled(factor)?;
        let values = self.tables.atoms[value.index()].interval.mul(Interval::point(factor));
        let mut parts = Parts::new();
        parts.push((Piece::Div(scaled, high / low), b));
        let is_short = 0 < factor && values.is_bounded() || factor == -1 && self.negative_divisors;
        is_short.then_some(parts)
    }

    fn num_operators(&self, parts: &Parts) -> usize {
        let of_quotient = |divisor: i64| usize::from(divisor != 1);
        let of_part = |(piece, coefficient): &(Piece, i64)| {
            let operators = match piece {
                Piece::Digit(digit) => {
                    of_quotient(digit.divisor) + usize::from(digit.modulus.is_some())
                }
                Piece::Atom(atom) => self.quotient_of(*atom).map_or(0, |(_, by)| of_quotient(by)),
                Piece::Div(value, _) => {
                    let of_value = |&(atom, factor): &(Atom, i64)| {
                        let plain = factor == -1 && self.negative_divisors;
                        usize::from(!plain)
                            + self.quotient_of(atom).map_or(0, |(_, by)| of_quotient(by))
                    };
                    1 + value.terms().iter().map(of_value).sum::<usize>()
                }
                Piece::Mod(..) => 0,
            };
            1 + operators + usize::from(coefficient.unsigned_abs() != 1)
        };
        parts.iter().map(of_part).sum()
    }

    /// Replaces the coefficients of quotients by congruent ones, with which those of the digits lie
    /// in `[0, divisor)`: so the sum takes the smallest values. No quotient comes in or leaves.
    pub(super) fn reduce_digits(&self, sum: &mut Sum, divisor: i64) {
        for quotients in self.quotients_by_leaf(sum) {
            let mut terms = quotients.terms.iter().peekable();
            let mut below = 0_i64;
            while let Some(&(by, atom, coefficient)) = terms.next() {
                let Some(weight) = below.checked_add(coefficient) else { break };
                let weight = weight.rem_euclid(divisor);
                let Some(reduced) = weight.checked_sub(below) else { break };
                sum.set(atom, reduced);
                let next = terms.peek().map_or(by, |&&(next, ..)| next);
                match weight.checked_mul(next / by) {
                    Some(product) if next % by == 0 => below = product,
                    _ => break,
                }
            }
        }
    }

    /// Quotients `h` and `z` of one leaf and `m` with `h == z floordiv m`, where `h` is in `value`
    /// once and `b*(z - m*h)` in `rest`, for `b*m == scale`.
    pub(super) fn digit_below(
        &self,
        value: &Sum,
        rest: &Sum,
        scale: i64,
    ) -> Option<(Atom, Atom, i64)> {
        if scale <= 1 {
            return None;
        }
        value.terms().iter().filter(|&&(_, factor)| factor == 1).find_map(|&(high, _)| {
            let (leaf, above) = self.quotient_of(high)?;
            if rest.coefficient(high) != scale.checked_neg()? {
                return None;
            }
            rest.terms().iter().find_map(|&(low, weight)| {
                let (other, below) = self.quotient_of(low)?;
                let factor = above / below;
                (other == leaf
                    && below < above
                    && above % below == 0
                    && weight.checked_mul(factor) == Some(scale))
                .then_some((high, low, factor))
            })
        })
    }
}

fn positional(digits: Digits) -> Parts {
    digits.into_iter().map(|(digit, weight)| (Piece::Digit(digit), weight)).collect()
}

#[cfg(test)]
mod tests {
    use crate::simplify::simplified;

    #[test]
    fn quotients_of_a_variable_and_of_its_sums_meet() {
        let domain = "domain: d0 in [0, 3], d1 in [0, 1]";
        for (given, expected) in [
            (
                "(d0 * 13 + d1 * 4) / 8 - (d0 / 2) * 3",
                "(d1 * 4 + (d0 / 2) * 2 + (d0 mod 2) * 13) / 8",
            ),
            ("(d0 / 2) * 2 + d0 mod 2", "d0"),
            ("d0 - d0 / 2", "d0 - d0 / 2"),
            ("(d0 / 2 + d1 * 4) / 2", "d1 * 2"),
        ] {
            let found = simplified(&format!("(d0, d1) -> ({given}), {domain}"));
            let wanted = simplified(&format!("(d0, d1) -> ({expected}), {domain}"));
            assert_eq!(found, wanted, "{given}");
        }
    }

    #[test]
    fn digits_need_not_fill_the_variable() {
        assert_eq!(
            simplified("(d0) -> ((d0 / 4 + (d0 mod 4) * 3) / 3), domain: d0 in [-7, 4]"),
            "(d0) -> (d0 / 12 + d0 mod 4), domain: d0 in [-7, 4]"
        );
        assert_eq!(
            simplified("(d0) -> ((d0 / 4 + (d0 mod 4) * 3) / 3), domain: d0 in [0, 9]"),
            "(d0) -> (d0 mod 4), domain: d0 in [0, 9]"
        );
    }

    #[test]
    fn quotients_are_written_in_the_shortest_way() {
        for (given, expected) in [
            ("d0 + (d0 / 4 - d0 / 2) * 2", "(d0 / 4) * 2 + d0 mod 2"),
            ("d0 * 2 + d0 / 2", "(d0 * 5) / 2"),
            ("(d0 * 5) / 2", "(d0 * 5) / 2"),
            ("d0 - (d0 / 8) * 8", "d0 mod 8"),
            // The quotient of the coefficients has no 64 bits.
            ("d0 * -9223372036854775808 - d0 / 2", "d0 * -9223372036854775808 - d0 / 2"),
        ] {
            assert_eq!(
                simplified(&format!("(d0) -> ({given}), domain: d0 in [0, 99]")),
                format!("(d0) -> ({expected}), domain: d0 in [0, 99]")
            );
        }
    }
}
