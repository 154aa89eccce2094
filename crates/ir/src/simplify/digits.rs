//! Digits of variables.
//!
//! Where `x floordiv c` or `x mod c` occurs, `x` is written `l + c*h` with the digits `l == x mod c`
//! and `h == x floordiv c`; with several divisors, each a multiple of the one before, there are as
//! many digits more (a mixed radix numeral, Knuth, "The Art of Computer Programming", 4.1). Unlike a
//! variable and its quotients, digits take their values independently of each other, but for the
//! highest where the extent is no multiple of its divisor. So the interval of a sum of them is
//! exact, terms of a numerator that never reach the divisor are seen at once, and sums with equal
//! values have equal terms.
//!
//! Example: for `x` in `[0, 3]`, `(13*x + 4*y) floordiv 8 - 3*(x floordiv 2)` is `(13*l + 2*h + 4*y)
//! floordiv 8`.

use smallvec::SmallVec;

use super::sum::{Atom, Sum};
use super::write::Piece;
use super::{Digit, Simplifier, Term};
use crate::expr::{Context, Expr, Node, Var, gcd};
use crate::hash::FastMap;
use crate::interval::Interval;

/// The most divisors of one variable that are looked at.
const MAX_CUTS: usize = 8;

/// Terms of a sum that are one number.
type Parts = SmallVec<[(Piece, i64); 4]>;

/// `factor * ((var floordiv divisor) mod modulus)`.
#[derive(Copy, Clone)]
struct Part {
    var: Var,
    divisor: i64,
    modulus: Option<i64>,
    factor: i64,
}

/// The divisors of variables in expressions, by variable: those that an operand which is a
/// multiple of a part of a variable is divided by.
fn divisors(ctx: &Context, exprs: &[Expr]) -> FastMap<Var, SmallVec<[i64; 4]>> {
    let mut found: FastMap<Var, SmallVec<[i64; 4]>> = FastMap::default();
    let mut parts: FastMap<Expr, Part> = FastMap::default();
    for expr in ctx.topological(exprs) {
        let node = ctx.node(expr);
        if let Node::Var(var) = node {
            parts.insert(expr, Part { var, divisor: 1, modulus: None, factor: 1 });
        }
        let Some((lhs, rhs)) = node.operands() else { continue };
        let (Some(&part), Some(by)) = (parts.get(&lhs), ctx.as_constant(rhs)) else { continue };
        if let Node::Mul(..) = node
            && let Some(factor) = part.factor.checked_mul(by)
        {
            parts.insert(expr, Part { factor, ..part });
        }
        if by <= 1 || !matches!(node, Node::FloorDiv(..) | Node::Mod(..)) {
            continue;
        }
        // k*x by c: x by c / gcd(k, c)
        let common = gcd(part.factor.unsigned_abs(), by.unsigned_abs());
        let Ok(common) = i64::try_from(common) else { continue };
        let cut = by / common;
        let divides = part.modulus.is_none_or(|modulus| modulus % cut == 0);
        let Some(divisor) = part.divisor.checked_mul(cut).filter(|_| 1 < cut && divides) else {
            continue;
        };
        found.entry(part.var).or_default().push(divisor);
        if part.factor == 1 {
            let rest = match node {
                Node::Mod(..) => Part { modulus: Some(by), ..part },
                _ => Part { divisor, modulus: part.modulus.map(|it| it / by), ..part },
            };
            parts.insert(expr, rest);
        }
    }
    found
}

/// Of the given divisors, those of the heaviest chain in which each is a multiple of the one before;
/// a divisor weighs as much as it occurs.
fn chain(mut divisors: SmallVec<[i64; 4]>) -> SmallVec<[i64; 4]> {
    divisors.sort_unstable();
    // For each divisor, the weight of the best chain that ends there, and its place in that.
    let mut best: SmallVec<[(i64, usize, Option<usize>); 4]> = SmallVec::new();
    for &divisor in &divisors {
        if let Some((last, weight, _)) = best.last_mut()
            && *last == divisor
        {
            *weight += 1;
            continue;
        }
        if MAX_CUTS < best.len() {
            break;
        }
        let before = (0..best.len())
            .filter(|&place| divisor % best[place].0 == 0)
            .max_by_key(|&place| best[place].1);
        best.push((divisor, 1 + before.map_or(0, |place| best[place].1), before));
    }
    let mut chain: SmallVec<[i64; 4]> = SmallVec::new();
    let mut next = (0..best.len()).max_by_key(|&place| best[place].1);
    while let Some(place) = next {
        chain.push(best[place].0);
        next = best[place].2;
    }
    chain.reverse();
    chain
}

impl Simplifier<'_> {
    /// Notes that a quotient of a part of a variable was made, where the numerator is that.
    pub(super) fn note_quotient(&mut self, numerator: &Sum, divisor: i64) {
        let &[(first, 1)] = numerator.terms() else { return };
        if numerator.constant != 0 {
            return;
        }
        let (value, by) = match self.atoms[first.index()].term {
            Term::Leaf(leaf) => (leaf, 1),
            Term::Digit(digit) if digit.modulus.is_none_or(|modulus| modulus % divisor == 0) => {
                (digit.value, digit.divisor)
            }
            Term::Digit(_) => return,
            Term::Floor { .. } => return,
        };
        if let (Some(var), Some(divisor)) = (self.ctx.as_var(value), by.checked_mul(divisor)) {
            self.discovered.push((var, divisor));
        }
    }

    /// Splits the variables of which the expressions take quotients into digits, by those divisors
    /// and by the given ones.
    pub(super) fn split_variables(&mut self, exprs: &[Expr], given: &[(Var, i64)]) {
        let mut all = divisors(self.ctx, exprs);
        for &(var, divisor) in given {
            all.entry(var).or_default().push(divisor);
        }
        for (var, divisors) in all {
            self.cuts.insert(var, chain(divisors));
        }
    }

    /// The digits of a variable with the given bounds. `None` on overflow.
    pub(super) fn digits(&mut self, value: Expr, var: Var, interval: Interval) -> Option<Sum> {
        let ctx = self.ctx;
        let mut sum = Sum::default();
        let mut divisors: SmallVec<[i64; 4]> = SmallVec::from_slice(&[1]);
        // What exceeds the variable divides nothing.
        let cuts = self.cuts[&var].iter().copied();
        divisors.extend(
            cuts.filter(|&cut| interval.floor_div(Interval::point(cut)).as_point().is_none()),
        );
        for place in 0..divisors.len() {
            let divisor = divisors[place];
            let modulus = divisors.get(place + 1).map(|next| next / divisor);
            let quotient = ctx.floor_div(value, ctx.constant(divisor));
            let (written, values) = match modulus {
                Some(modulus) => {
                    (ctx.modulo(quotient, ctx.constant(modulus)), Interval::new(0, modulus - 1))
                }
                None => (quotient, interval.floor_div(Interval::point(divisor))),
            };
            let values = values.intersect(self.known_interval(written));
            let digit = Term::Digit(Digit { value, divisor, modulus });
            let atom = self.new_atom(digit, values, Some(written));
            let digit = values.as_point().map_or(Sum::from(atom), Sum::constant);
            sum.append(&digit, divisor)?;
            if written != value {
                self.expanded.insert(written, digit);
            }
        }
        Some(sum)
    }

    pub(super) fn as_digit(&self, atom: Atom) -> Option<Digit> {
        match self.atoms[atom.index()].term {
            Term::Digit(digit) => Some(digit),
            Term::Leaf(_) | Term::Floor { .. } => None,
        }
    }

    /// Whether the second atom is the digit above the first.
    fn is_next(&self, first: Atom, second: Atom) -> bool {
        second.index() == first.index() + 1
            && match (self.as_digit(first), self.as_digit(second)) {
                (Some(first), Some(second)) => {
                    first.value == second.value && first.modulus.is_some()
                }
                _ => false,
            }
    }

    /// `k` and the digit `h` above `digit` where `a*digit + k*h` is a multiple of one number.
    pub(super) fn continuation(&self, digit: Atom, a: i64) -> Option<(Atom, i64)> {
        let modulus = self.as_digit(digit)?.modulus?;
        Some((Atom::new(digit.index() + 1), a.checked_mul(modulus)?))
    }

    /// The digit below `digit`, and the weight at which it makes one number with `scale` times
    /// that: positive, and the digit times its weight less than the scale.
    pub(super) fn digit_below(&self, digit: Atom, scale: i64) -> Option<(Atom, i64)> {
        let below = Atom::new(digit.index().checked_sub(1)?);
        let modulus = self.as_digit(below)?.modulus?;
        (self.is_next(below, digit) && 0 < scale && scale % modulus == 0)
            .then_some((below, scale / modulus))
    }

    /// The number of terms at the start, all of them digits of one variable, that are together a
    /// multiple of one number: `a*l + a*m*h == a*(l + m*h)`.
    fn run(&self, terms: &[(Atom, i64)]) -> usize {
        let mut length = 1;
        while let [(low, a), (high, b)] = terms[length - 1..terms.len().min(length + 1)]
            && self.is_next(low, high)
            && let Some(modulus) = self.as_digit(low).and_then(|digit| digit.modulus)
            && a.checked_mul(modulus) == Some(b)
        {
            length += 1;
        }
        length
    }

    /// The digits from one to another, both included, as one number.
    fn digit_between(&self, first: Atom, last: Atom) -> Option<Digit> {
        let (low, high) = (self.as_digit(first)?, self.as_digit(last)?);
        let modulus = match high.modulus {
            Some(modulus) => Some((high.divisor / low.divisor).checked_mul(modulus)?),
            None => None,
        };
        Some(Digit { modulus, ..low })
    }

    /// The values of the digits from one to another.
    pub(super) fn interval_of_digits(&self, first: Atom, last: Atom) -> Interval {
        let Some(digit) = self.digit_between(first, last) else {
            return Interval::ALL;
        };
        let Digit { value, divisor, modulus } = digit;
        let whole = match self.ctx.as_var(value) {
            Some(var) => (self.interval)(var).intersect(self.known_interval(value)),
            None => Interval::ALL,
        };
        let quotient = whole.floor_div(Interval::point(divisor));
        let values = modulus.map_or(quotient, |it| quotient.modulo(Interval::point(it)));
        if self.known.is_empty() {
            return values;
        }
        values.intersect(self.known_interval(self.write_digits(first, last)))
    }

    /// Writes the digits from one to another as one number.
    pub(super) fn write_digits(&self, first: Atom, last: Atom) -> Expr {
        let ctx = self.ctx;
        let Some(Digit { value, divisor, modulus }) = self.digit_between(first, last) else {
            return ctx.constant(0);
        };
        let quotient = ctx.floor_div(value, ctx.constant(divisor));
        modulus.map_or(quotient, |modulus| ctx.modulo(quotient, ctx.constant(modulus)))
    }

    /// The interval of a sum without quotients.
    pub(super) fn interval_of_plain(&self, sum: &Sum) -> Interval {
        let mut total = Interval::point(sum.constant);
        let mut terms = sum.terms();
        while let Some(&(first, coefficient)) = terms.first() {
            let length = if self.cuts.is_empty() { 1 } else { self.run(terms) };
            let interval = match length {
                1 => self.atoms[first.index()].interval,
                _ => self.interval_of_digits(first, terms[length - 1].0),
            };
            total = total.add(interval.mul(Interval::point(coefficient)));
            terms = &terms[length..];
        }
        total
    }

    /// Terms as pieces, digits of a variable put together where that is shorter.
    pub(super) fn put_digits_together(&self, terms: &[(Atom, i64)]) -> Option<Parts> {
        let mut parts = Parts::new();
        let mut rest = terms;
        while let Some(&(first, _)) = rest.first() {
            let mut length = 1;
            while let Some(digit) = self.as_digit(first)
                && let Some(other) = rest.get(length).and_then(|&(atom, _)| self.as_digit(atom))
                && digit.value == other.value
            {
                length += 1;
            }
            let (digits, others) = rest.split_at(length);
            rest = others;
            if self.as_digit(first).is_none() {
                parts.push((Piece::Atom(first), digits[0].1));
                continue;
            }
            let forms = [self.positional(digits), self.quotients_of_variable(digits)?];
            let shortest = forms.into_iter().min_by_key(|it| self.num_operators(it));
            parts.extend(shortest.into_iter().flatten());
        }
        Some(parts)
    }

    /// Digits in runs.
    fn positional(&self, digits: &[(Atom, i64)]) -> Parts {
        let mut parts = Parts::new();
        let mut rest = digits;
        while let Some(&(first, coefficient)) = rest.first() {
            let length = self.run(rest);
            parts.push((Piece::Digits(first, rest[length - 1].0), coefficient));
            rest = &rest[length..];
        }
        parts
    }

    /// `a*l + b*h == a*x + (b - c*a)*(x floordiv c)`, as multiples of all digits from one on.
    /// `None` on overflow.
    fn quotients_of_variable(&self, digits: &[(Atom, i64)]) -> Option<Parts> {
        let &(present, _) = digits.first()?;
        let (mut lowest, mut highest) = (present.index(), present.index());
        while 0 < lowest && self.is_next(Atom::new(lowest - 1), Atom::new(lowest)) {
            lowest -= 1;
        }
        while highest + 1 < self.atoms.len()
            && self.is_next(Atom::new(highest), Atom::new(highest + 1))
        {
            highest += 1;
        }
        let mut parts = Parts::new();
        let mut carried = 0_i64;
        for number in lowest..=highest {
            let atom = Atom::new(number);
            let place = digits.binary_search_by_key(&atom, |&(atom, _)| atom);
            let coefficient = place.map_or(0, |place| digits[place].1);
            let factor = coefficient.checked_sub(carried)?;
            if factor != 0 {
                parts.push((Piece::Digits(atom, Atom::new(highest)), factor));
            }
            carried = coefficient.checked_mul(self.as_digit(atom)?.modulus.unwrap_or(1))?;
        }
        Some(parts)
    }

    fn num_operators(&self, parts: &Parts) -> usize {
        let of_part = |&(ref piece, coefficient): &(Piece, i64)| {
            let operators = match *piece {
                Piece::Digits(first, last) => self.digit_between(first, last).map_or(0, |digit| {
                    usize::from(digit.divisor != 1) + usize::from(digit.modulus.is_some())
                }),
                _ => 0,
            };
            1 + operators + usize::from(coefficient.unsigned_abs() != 1)
        };
        parts.iter().map(of_part).sum()
    }

    /// A sum with the same remainder, with the higher digits of variables where they make no
    /// difference: `(x mod 3) * 2` and `x * 2` modulo 3.
    pub(super) fn continued(&self, value: &Sum, modulus: i64) -> Sum {
        let mut all = value.clone();
        if self.cuts.is_empty() {
            return all;
        }
        for &(term, factor) in value.terms() {
            let (mut last, mut sum) = ((term, factor), all.clone());
            while let Some((next, inside)) = self.continuation(last.0, last.1)
                && inside % modulus == 0
                && value.coefficient(next) == 0
                && sum.add_term(next, inside).is_some()
            {
                last = (next, inside);
            }
            if last.0 != term && self.as_digit(last.0).is_some_and(|it| it.modulus.is_none()) {
                all = sum;
            }
        }
        all
    }

    /// A shorter quotient with the same value: `(a + x floordiv b) floordiv c == (a*b + x)
    /// floordiv (b*c)` where all terms of `a` are multiples anyway.
    pub(super) fn over_digits(&self, numerator: &Sum, divisor: i64) -> Option<(Sum, i64)> {
        if self.cuts.is_empty() {
            return None;
        }
        let mut single = numerator.terms().iter().filter(|(_, c)| c.unsigned_abs() == 1);
        let (&(top, 1), None) = (single.next()?, single.next()) else {
            return None;
        };
        let digit = self.as_digit(top).filter(|it| it.divisor != 1 && it.modulus.is_none())?;
        let mut all = numerator.clone().scaled(digit.divisor)?;
        let mut lower = top;
        while 0 < lower.index() && self.is_next(Atom::new(lower.index() - 1), lower) {
            lower = Atom::new(lower.index() - 1);
            if numerator.coefficient(lower) != 0 {
                return None;
            }
            all.add_term(lower, self.as_digit(lower)?.divisor)?;
        }
        Some((all, divisor.checked_mul(digit.divisor)?))
    }

    /// Coefficients of digits modulo a divisor, as few numbers as possible: where `b == a*m (mod
    /// c)`, `a*l + b*h` becomes `a*(l + m*h)`.
    pub(super) fn reduced_digits(&self, terms: &mut [(Atom, i64)], divisor: i64) {
        for place in 1..terms.len() {
            let ((low, a), (high, b)) = (terms[place - 1], terms[place]);
            if self.is_next(low, high)
                && let Some(modulus) = self.as_digit(low).and_then(|digit| digit.modulus)
                && let Some(wanted) = a.checked_mul(modulus)
                && wanted.rem_euclid(divisor) == b.rem_euclid(divisor)
            {
                terms[place].1 = wanted;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn the_heaviest_chain_is_taken() {
        let chain = |divisors: &[i64]| chain(SmallVec::from_slice(divisors)).to_vec();
        assert_eq!(chain(&[6, 4, 12, 24, 4]), [4, 12, 24]);
        assert_eq!(chain(&[5, 6, 2, 30]), [2, 6, 30]);
        assert_eq!(chain(&[7]), [7]);
    }
}
