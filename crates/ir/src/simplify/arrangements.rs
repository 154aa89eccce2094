//! The shortest of many forms of an expression with few quotients.
//!
//! The length of what a normal form is written as depends on which remainders are put together, in which
//! order, and on what goes into quotients. The rules of `write` take what uses up most. They miss forms that
//! have a multiple of the divisor in a quotient, as rules for quotients took those out, and forms that need
//! a remainder which is longer at first. So an expression with several quotients is written in all ways,
//! within limits, once it is simplified, and the shortest is taken. It depends on the normal form alone: so what
//! was built in different ways is written in one.
//!
//! Example: `d0*27 + (d0 + d1*456 - ((d0*18 + d1) floordiv 19)*8664) floordiv 304` is `(d0 + ((d0*18 +
//! d1) mod 19)*456) floordiv 304`, with `27*304` of `d0` back in the quotient.

use std::cmp::Ordering;
use std::iter;

use smallvec::SmallVec;

use super::Simplifier;
use super::division::least_residue;
use super::numbered::MAX_COST;
use super::sum::{Atom, Sum};
use super::write::{Parts, Piece, Pieces, scale_in};
use crate::expr::{Context, Expr, gcd};
use crate::hash::FastSet;
use crate::map::IndexingMap;

/// The most ways to put the remainders of one sum together.
const MAX_ARRANGEMENTS: usize = 32;
/// The most ways to write the sums of one map.
const MAX_WAYS: u32 = 64;
/// The most quotients and remainders of an expression that is written in several ways.
const MAX_QUOTIENTS: u32 = 6;

impl IndexingMap {
    /// Whether a result or a constraint has a quotient or a remainder.
    pub(super) fn has_quotients(&self, ctx: &Context) -> bool {
        self.exprs().any(|expr| num_quotients(ctx, expr) != 0)
    }

    fn exprs(&self) -> impl Iterator<Item = Expr> {
        self.results.iter().copied().chain(self.constraints.iter().map(|it| it.expr))
    }

    /// Takes the shortest forms of expressions with several quotients. Returns whether one is new.
    pub(super) fn take_shortest(&mut self, ctx: &Context) -> bool {
        if !self.exprs().any(|expr| has_several_quotients(ctx, expr)) {
            return false;
        }
        let mut has_changed = false;
        let mut simplifier = Simplifier::for_domain(ctx, self);
        simplifier.ways = MAX_WAYS;
        for result in &mut self.results {
            has_changed |= simplifier.shorten(result);
        }
        if !self.constraints.is_empty() {
            // Not under each other.
            let mut simplifier = Simplifier::for_map(ctx, self);
            simplifier.ways = MAX_WAYS;
            for constraint in &mut self.constraints {
                has_changed |= simplifier.shorten(&mut constraint.expr);
            }
            self.sort_constraints(ctx);
        }
        has_changed
    }
}

/// Whether an expression has two to [`MAX_QUOTIENTS`] quotients or remainders.
fn has_several_quotients(ctx: &Context, expr: Expr) -> bool {
    (2..=MAX_QUOTIENTS).contains(&num_quotients(ctx, expr))
}

fn num_quotients(ctx: &Context, expr: Expr) -> u32 {
    ctx.fold_value(expr, |_, node, operands| {
        let of_operands = operands.map_or(0, |(&lhs, &rhs)| u32::saturating_add(lhs, rhs));
        of_operands.saturating_add(u32::from(node.is_division()))
    })
}

impl Simplifier<'_> {
    /// Takes the simplified form of an expression with several quotients. Returns whether that is new.
    fn shorten(&mut self, expr: &mut Expr) -> bool {
        if MAX_COST < self.ctx.cost(*expr) || !has_several_quotients(self.ctx, *expr) {
            return false;
        }
        let new = self.simplify(*expr);
        std::mem::replace(expr, new) != new
    }

    /// Shorter first; of those of one length, sums before remainders before quotients.
    fn compare_lengths(&self, lhs: Expr, rhs: Expr) -> Ordering {
        let lengths = self.ctx.cost(lhs).cmp(&self.ctx.cost(rhs));
        lengths.then_with(|| self.ctx.compare(rhs, lhs))
    }

    /// The shortest way to write a sum.
    pub(super) fn write_shortest(&mut self, sum: &Sum, depth: u32) -> Expr {
        let mut written: SmallVec<[Expr; 8]> = SmallVec::new();
        for arrangement in self.arrangements(sum) {
            self.ways = self.ways.saturating_sub(1);
            let floors = self.floors_by_fineness(&arrangement.rest).unwrap_or_default();
            let mut forms = self.with_all_inside(&arrangement);
            forms.extend(self.with_small_rest(&arrangement));
            forms.extend(self.join(arrangement.clone(), &floors));
            forms.push(arrangement);
            for Pieces { parts: found, rest } in forms {
                let mut parts = self.shortest_quotients(&rest);
                parts.extend(found);
                written.push(self.write_parts(&parts, rest.constant, depth));
            }
        }
        let shortest = written.into_iter().min_by(|&a, &b| self.compare_lengths(a, b));
        shortest.unwrap_or_else(|| self.ctx.constant(sum.constant))
    }

    /// Ways to put remainders together, the one with none first: `s*x + t*(x floordiv m) == s*(x mod m)
    /// + (s*m + t)*(x floordiv m)`.
    fn arrangements(&self, sum: &Sum) -> Vec<Pieces> {
        let mut all = vec![Pieces { parts: Parts::new(), rest: sum.clone() }];
        let Some(floors) = self.floors_by_fineness(sum) else { return all };
        let mut seen: FastSet<Sum> = FastSet::from_iter([sum.clone()]);
        let mut place = 0;
        while place < all.len() {
            let Pieces { parts, rest } = all[place].clone();
            for &(_, floor) in &floors {
                let weight = rest.coefficient(floor);
                let is_there = |&(term, _): &(Atom, i64)| rest.coefficient(term) != 0;
                if weight == 0 {
                    continue;
                }
                let values = self.values_of_remainders(floor, &floors, is_there, |_| true);
                for (value, modulus) in values {
                    // What uses up the sum, and what uses up the quotient.
                    let exact = (weight % modulus == 0).then_some(-(weight / modulus));
                    for scale in [scale_in(&rest, &value), exact].into_iter().flatten() {
                        let Some(left) = without_remainder(&rest, floor, &value, modulus, scale)
                        else {
                            continue;
                        };
                        if all.len() < MAX_ARRANGEMENTS && seen.insert(left.clone()) {
                            let mut parts = parts.clone();
                            parts.push((Piece::Mod(value.clone(), modulus), scale));
                            all.push(Pieces { parts, rest: left });
                        }
                    }
                }
            }
            place += 1;
        }
        all
    }

    /// For each quotient of a sum, that with all in it that can be: `s*(x floordiv c) + s*t == s*((x +
    /// c*t) floordiv c)`.
    fn with_all_inside(&mut self, pieces: &Pieces) -> Vec<Pieces> {
        let inside = |&(floor, scale): &(Atom, i64)| {
            if self.quotient_of(floor).is_some() {
                return None;
            }
            let (numerator, divisor) = self.as_floor(floor)?;
            let mut whole = numerator.clone();
            let size = i64::try_from(scale.unsigned_abs()).ok()?;
            let mut rest = pieces.rest.clone();
            rest.add_term(floor, scale.checked_neg()?)?;
            let (mut multiples, mut rest) = rest.split(size);
            if multiples.terms().is_empty() {
                return None;
            }
            if rest.constant % size == 0 {
                multiples.constant = rest.constant / size;
                rest.constant = 0;
            }
            whole.add(&multiples, divisor.checked_mul(scale.signum())?)?;
            if !self.fits(&whole) {
                return None;
            }
            let mut parts = pieces.parts.clone();
            parts.push((Piece::Div(whole, divisor), scale));
            Some(Pieces { parts, rest })
        };
        pieces.rest.terms().iter().filter_map(inside).collect()
    }

    /// `k*(x mod m) + r == (k*x + r) mod (k*m)` where `0 <= r < k`.
    fn with_small_rest(&mut self, pieces: &Pieces) -> Option<Pieces> {
        let remainders = pieces.parts.iter().enumerate();
        remainders.filter(|(_, (_, scale))| 1 < *scale).find_map(|(place, (piece, scale))| {
            let Piece::Mod(value, modulus) = piece else { return None };
            let (_, mut small) = pieces.rest.split(*scale);
            small.constant = small.constant.rem_euclid(*scale);
            let values = self.interval_of_sum(&small);
            if values.lo < 0 || *scale <= values.hi || small == Sum::default() {
                return None;
            }
            let Pieces { mut parts, mut rest } = pieces.clone();
            rest.add(&small, -1)?;
            small.add(value, *scale)?;
            let whole = modulus.checked_mul(*scale).filter(|_| self.fits(&small))?;
            parts[place] = (Piece::Mod(small, whole), 1);
            Some(Pieces { parts, rest })
        })
    }

    /// Writes the value of a remainder, or one that differs from it by a multiple of the modulus, where
    /// that is not longer.
    pub(super) fn write_shortest_residue(&mut self, value: &Sum, modulus: i64, depth: u32) -> Expr {
        let given = self.write_sum(value, depth);
        let positive = value.modulo(modulus);
        let least = least_residue(&positive, modulus);
        let mut written: SmallVec<[Expr; 2]> = SmallVec::new();
        for mut residue in iter::once(positive).chain(least) {
            residue.constant = residue.constant.rem_euclid(modulus);
            if self.fits(&residue) {
                written.push(self.write_sum(&residue, depth));
            }
        }
        let shortest = written.into_iter().min_by(|&a, &b| self.compare_lengths(a, b));
        shortest.filter(|&it| self.ctx.cost(it) <= self.ctx.cost(given)).unwrap_or(given)
    }

    /// Looks for quotients in `sum` that are quotients of some of the other terms: of those that are no
    /// multiples of it, or of those but for one quotient.
    pub(super) fn find_more_aliases(&mut self, sum: &Sum) -> Option<()> {
        let floors = self.floors_by_fineness(sum)?;
        for &(_, floor) in &floors {
            let weight = sum.coefficient(floor);
            let mut others = Sum::constant(sum.constant);
            for &(atom, coefficient) in sum.terms() {
                if coefficient.checked_rem(weight)? != 0 {
                    others.add_term(atom, coefficient)?;
                }
            }
            let mut candidates = vec![others.clone()];
            for &(_, other) in &floors {
                let coefficient = others.coefficient(other);
                if coefficient != 0 {
                    let mut fewer = others.clone();
                    fewer.add_term(other, coefficient.checked_neg()?)?;
                    candidates.push(fewer);
                }
            }
            for mut candidate in candidates {
                self.try_alias(floor, weight, &candidate);
                if candidate.constant != 0 {
                    candidate.constant = 0;
                    self.try_alias(floor, weight, &candidate);
                }
            }
        }
        Some(())
    }

    /// Looks whether a quotient is that of a part of a sum, where `k*x - k*m*floor` stands in it.
    fn try_alias(&mut self, floor: Atom, weight: i64, part: &Sum) -> Option<()> {
        let content = match i64::try_from(part.content()).ok()? {
            0 => return None,
            content if part.constant % content == 0 => content,
            content => {
                i64::try_from(gcd(content.unsigned_abs(), part.constant.unsigned_abs())).ok()?
            }
        };
        let scale = if weight < 0 { content } else { -content };
        let modulus = weight.checked_div(scale)?.checked_neg()?;
        let value = part.clone().divided(content).scaled(scale.signum())?;
        if weight % content == 0
            && 1 < modulus
            && self.may_be_quotient(floor, self.sample_of(&value), modulus)
            && !self.is_alias(floor, &value, modulus)
        {
            // Which notes it.
            self.quotient(value, modulus)?;
        }
        Some(())
    }
}

/// `sum - scale * (value - modulus * floor)`, where `floor` is `value floordiv modulus`.
fn without_remainder(sum: &Sum, floor: Atom, value: &Sum, modulus: i64, scale: i64) -> Option<Sum> {
    let mut left = sum.clone();
    left.add(value, scale.checked_neg()?)?;
    left.add_term(floor, scale.checked_mul(modulus)?)?;
    Some(left)
}

#[cfg(test)]
mod tests {
    use crate::simplify::simplified;

    #[test]
    fn equal_sums_are_written_in_one_way() {
        for (domain, forms) in [
            (
                // k*(x mod m) + r == (k*x + r) mod (k*m)
                "d0 in [0, 16], d1 in [0, 19], d2 in [0, 18]",
                &[
                    "(d0 * 12 + (d1 * 48 + d2 + 3) / 324) mod 60",
                    "(d1 * 48 + d2 + 3) / 324 + (d0 * 12) mod 60",
                ][..],
            ),
            (
                // Two quotients of one sum, the coarser first.
                "d0 in [0, 11], d1 in [0, 35], d2 in [0, 199]",
                &[
                    "((d1 + d2 * 36) / 80) * 480 + (d0 + ((d1 + d2 * 36) mod 40) * 12)",
                    "d0 + d1 * 12 + d2 * 432 + ((d1 + d2 * 36) / 80 - (d1 + d2 * 36) / 40) * 480",
                ],
            ),
            (
                // Multiples of the divisor that belong to a remainder in the quotient.
                "d0 in [0, 839], d1 in [0, 41]",
                &[
                    "(d0 * 6480 + d1 * 360 + (d0 * 42 + d1) mod 360) / 144 - ((d0 * 18 + d1) / 24) * 60",
                    "(((d0 * 42 + d1) / 24) mod 15 + ((d0 * 18 + d1) mod 24) * 15) / 6",
                ],
            ),
            (
                // A quotient of some of the other terms.
                "d0 in [0, 8418]",
                &["(d0 + d0 / 2) mod 504", "d0 mod 2 + ((d0 / 2) mod 168) * 3"],
            ),
            (
                // A remainder of which the sum holds one term.
                "d0 in [0, 3], d1 in [0, 7], d2 in [0, 3], d3 in [0, 26]",
                &[
                    "(d0 * 6750 + d1 * 450 + d2 * 51 + d3 + ((d2 * 6 + d3 + 3) / 8) * 7 + 4728) / 180",
                    "(d0 * 3600 + d1 * 240 + d2 * 30 + d3 + 2523) / 96",
                ],
            ),
            (
                // A quotient of some of the other terms, with a constant that their factor does not divide.
                "d0 in [0, 167]",
                &[
                    "(d0 mod 8) * 7 + ((d0 / 8) * 112 + 59) mod 1176",
                    "(d0 * 14 - (d0 mod 8) * 7 + 59) mod 1176",
                ],
            ),
            (
                // A quotient that holds another one beside it.
                "d0 in [0, 139], d1 in [0, 23]",
                &[
                    "(d0 + (((d1 * 25) / 18) mod 8) * 140) / 80",
                    "((d0 + ((d1 * 25) / 18) * 140) / 80) mod 14",
                ],
            ),
            (
                "d0 in [0, 99], d1 in [0, 99]",
                &["(d0 * 7 + d1 * 13) / 40 / 5", "((d0 * 7 + d1 * 13) mod 8000) / 200"],
            ),
        ] {
            let vars = (0..domain.matches("in").count()).map(|i| format!("d{i}"));
            let vars = vars.collect::<Vec<_>>().join(", ");
            let simplest = |form| simplified(&format!("({vars}) -> ({form}), domain: {domain}"));
            for form in forms {
                assert_eq!(simplest(form), simplest(&forms[0]), "{form}");
            }
        }
    }
}
