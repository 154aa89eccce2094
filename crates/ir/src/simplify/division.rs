//! Rules for quotients and remainders.
//!
//! `x mod c` becomes `x - c*(x floordiv c)`, and quotients are brought to a normal form in
//! which equal ones cancel:
//!
//! - multiples of the divisor leave the numerator: `(c*a + r) floordiv c == a + r floordiv c`,
//!   and the coefficients of what stays are taken modulo `c`;
//! - a quotient in a numerator is absorbed: `(a + y floordiv b) floordiv c == (a*b + y)
//!   floordiv (b*c)`;
//! - a factor `g` of the divisor cancels: `(g*a + r) floordiv c == (a + k) floordiv (c/g)`
//!   where `r floordiv g` is one constant `k` on the whole domain.

use smallvec::SmallVec;

use super::sum::{Atom, Sum};
use super::write::{MAX_QUOTIENTS, Parts, Piece, Pieces, scale_in};
use super::{AtomData, MAX_DEPTH, Simplifier, Term};
use crate::expr::{Expr, Node, gcd};
use crate::interval::Interval;

/// The most quotients of sums in a numerator of which one is looked for that holds the others.
const MAX_ABSORBED: usize = 2;

/// The most quotients in a numerator that is divided term by term.
const MAX_DIVIDED: usize = 16;

/// The most common factors of terms and divisor that are tried.
pub(super) const MAX_FACTORS: usize = 8;

/// The most other forms of one quotient that are kept.
pub(super) const MAX_ALIASES: usize = 8;

/// The direction in which a quotient is rounded.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Rounding {
    /// Towards minus infinity.
    Down,
    /// Towards plus infinity.
    Up,
}

impl Simplifier<'_> {
    /// `numerator floordiv divisor`, for a divisor that is not zero. `None` on overflow.
    pub(super) fn floor_div(&mut self, numerator: Sum, divisor: i64) -> Option<Sum> {
        if 0 < divisor {
            return self.quotient(numerator, divisor);
        }
        // x floordiv -c == -x floordiv c
        self.negative_divisors = true;
        self.quotient(numerator.scaled(-1)?, divisor.checked_neg()?)
    }

    /// `numerator ceildiv divisor`, for a divisor that is not zero. `None` on overflow.
    pub(super) fn ceil_div(&mut self, numerator: Sum, divisor: i64) -> Option<Sum> {
        let (mut numerator, divisor) = if 0 < divisor {
            (numerator, divisor)
        } else {
            self.negative_divisors = true;
            (numerator.scaled(-1)?, divisor.checked_neg()?)
        };
        // x ceildiv c == (x + c - 1) floordiv c
        numerator.constant = numerator.constant.checked_add(divisor - 1)?;
        let before = self.tables.atoms.len();
        let quotient = self.quotient(numerator, divisor)?;
        for data in &mut self.tables.atoms[before..] {
            if let Term::Floor { ceil, .. } = &mut data.term {
                *ceil = true;
            }
        }
        Some(quotient)
    }

    /// `value mod modulus` for a positive modulus. `None` on overflow.
    pub(super) fn modulo(&mut self, value: Sum, modulus: i64) -> Option<Sum> {
        let quotient = self.quotient(value.clone(), modulus)?;
        let mut remainder = value.clone();
        remainder.add(&quotient, modulus.checked_neg()?)?;
        if self.num_floors(&remainder) <= MAX_QUOTIENTS {
            return Some(remainder);
        }
        // A remainder of many quotients would be lost among them: it stays whole.
        let (_, value) = self.residue(&value, modulus)?;
        let value = self.write(&value);
        Some(self.leaf(self.ctx.modulo(value, self.ctx.constant(modulus))))
    }

    /// How many quotients a sum has.
    fn num_floors(&self, sum: &Sum) -> usize {
        sum.terms().iter().filter(|&&(atom, _)| self.as_floor(atom).is_some()).count()
    }

    /// The normal form of `numerator floordiv divisor` for a positive divisor. `None` on
    /// overflow.
    pub(super) fn quotient(&mut self, numerator: Sum, divisor: i64) -> Option<Sum> {
        if divisor == 1 {
            return Some(numerator);
        }
        if MAX_DIVIDED < self.num_floors(&numerator) {
            // It stays whole, so that a tower of quotients grows by one at each level.
            let value = self.write(&numerator);
            return Some(self.leaf(self.ctx.floor_div(value, self.ctx.constant(divisor))));
        }
        // (c*a + r) floordiv c == a + r floordiv c
        let (mut whole, mut rest) = numerator.split(divisor);
        whole.constant = rest.constant.div_euclid(divisor);
        rest.constant = rest.constant.rem_euclid(divisor);
        if rest.terms().is_empty() {
            return Some(whole);
        }
        let key = (rest, divisor);
        if let Some(quotient) = self.tables.quotients.get(&key) {
            whole.add(quotient, 1)?;
            return Some(whole);
        }
        if MAX_DEPTH <= self.depth {
            let quotient = self.floor_atom(key.0, divisor);
            whole.add(&Sum::from(quotient), 1)?;
            return Some(whole);
        }
        self.depth += 1;
        let are_leaves = key.0.terms().iter().all(|&(atom, _)| self.as_floor(atom).is_none());
        let quotient = if are_leaves {
            self.reduced_quotient_of_leaves(&key.0, divisor)
        } else {
            self.reduced_quotient(&key.0, divisor)
        };
        self.depth -= 1;
        let quotient = quotient?;
        whole.add(&quotient, 1)?;
        self.add_alias(&quotient, &key.0, divisor);
        self.tables.quotients.insert(key, quotient);
        Some(whole)
    }

    /// Where `numerator floordiv divisor` is one quotient `q` that the numerator does not have, and a
    /// sum `a`, notes that `q` is `(numerator - divisor*a) floordiv divisor` too.
    fn add_alias(&mut self, quotient: &Sum, numerator: &Sum, divisor: i64) -> Option<()> {
        let is_new = |&&(atom, _): &&(Atom, i64)| {
            self.as_floor(atom).is_some() && numerator.coefficient(atom) == 0
        };
        let mut floors = quotient.terms().iter().filter(is_new);
        let (&(atom, 1), None) = (floors.next()?, floors.next()) else {
            return None;
        };
        if let Some((own, by)) = self.as_floor(atom)
            && quotient.single().is_some()
            && by == divisor
            && own == numerator
        {
            return None;
        }
        let mut rest = quotient.clone();
        rest.add_term(atom, -1)?;
        let mut alias = numerator.clone();
        alias.add(&rest, divisor.checked_neg()?)?;
        self.note_alias(atom, alias, divisor);
        Some(())
    }

    /// Notes that a quotient is `alias floordiv divisor` too.
    pub(super) fn note_alias(&mut self, atom: Atom, alias: Sum, divisor: i64) {
        if let Term::Floor { numerator, divisor: by, aliases, .. } =
            &mut self.tables.atoms[atom.index()].term
            && aliases.len() < MAX_ALIASES
            && (*by != divisor || *numerator != alias)
            && !aliases.iter().any(|(sum, by)| *by == divisor && *sum == alias)
        {
            aliases.push((alias, divisor));
        }
    }

    /// Looks for quotients in `sum` that are quotients of the other terms.
    pub(super) fn find_aliases(&mut self, sum: &Sum) -> Option<()> {
        let floors = sum.terms().iter().filter(|&&(atom, _)| self.as_floor(atom).is_some());
        let floors: SmallVec<[(Atom, i64); MAX_QUOTIENTS + 1]> =
            floors.take(MAX_QUOTIENTS + 1).copied().collect();
        if floors.len() < 2 || MAX_QUOTIENTS < floors.len() {
            return None;
        }
        for &(floor, weight) in &floors {
            // k*x - k*m*(x floordiv m) where x is all the rest, with the constant or without
            let mut rest = sum.clone();
            rest.add_term(floor, weight.checked_neg()?)?;
            let content = i64::try_from(rest.content()).ok()?;
            let constants = if rest.constant == 0 { &[0][..] } else { &[rest.constant, 0] };
            for &constant in constants {
                if 0 <= weight || weight % content != 0 || constant % content != 0 {
                    continue;
                }
                let modulus = weight.checked_div(content)?.checked_neg()?;
                rest.constant = constant;
                let value = rest.clone().divided(content);
                if 1 < modulus
                    && self.may_be_quotient(floor, self.sample_of(&value), modulus)
                    && !self.is_alias(floor, &value, modulus)
                {
                    self.quotient(value, modulus);
                }
            }
            for &(inner, coefficient) in &floors {
                let modulus = weight.checked_div(coefficient)?.checked_neg()?;
                let sample = self.tables.atoms[inner.index()].sample;
                if 1 < modulus
                    && weight % coefficient == 0
                    && self.may_be_quotient(floor, sample, modulus)
                    && !self.is_alias(floor, &Sum::from(inner), modulus)
                {
                    self.quotient(Sum::from(inner), modulus);
                }
            }
        }
        Some(())
    }

    /// Whether a quotient is known to be that of `value` and `by`.
    pub(super) fn is_alias(&self, floor: Atom, value: &Sum, by: i64) -> bool {
        match &self.tables.atoms[floor.index()].term {
            Term::Floor { numerator, divisor, aliases, .. } => {
                (by == *divisor && value == numerator)
                    || aliases.iter().any(|(alias, divisor)| by == *divisor && value == alias)
            }
            Term::Leaf(_) => false,
        }
    }

    /// Whether an atom has the value of a quotient at the sample point.
    pub(super) fn may_be_quotient(&self, atom: Atom, numerator: i64, divisor: i64) -> bool {
        self.tables.atoms[atom.index()].sample == numerator.div_euclid(divisor)
    }

    /// The quotient of a sum without multiples of the divisor.
    fn reduced_quotient(&mut self, given: &Sum, divisor: i64) -> Option<Sum> {
        let constant_quotient =
            |interval: Interval| interval.only_quotient(divisor).map(Sum::constant);
        if let Some(quotient) = constant_quotient(self.interval_of_sum(given)) {
            return Some(quotient);
        }
        if let [(_, 1)] = given.terms() {
            // Its coefficient is reduced, and has no factor.
            return self.absorb(given, divisor);
        }
        let (mut whole, numerator) = self.residue(given, divisor)?;
        if numerator != *given
            && let Some(quotient) = constant_quotient(self.interval_of_sum(&numerator))
        {
            whole.add(&quotient, 1)?;
            return Some(whole);
        }
        if let Some(least) = least_residue(&numerator, divisor)
            && let Some(quotient) = constant_quotient(self.interval_of_sum(&least))
        {
            let mut multiples = numerator;
            multiples.add(&least, -1)?;
            whole.add(&multiples.divided(divisor), 1)?;
            whole.add(&quotient, 1)?;
            return Some(whole);
        }
        let found = self.cancelled(&numerator, divisor);
        if let Some(quotient) = found.or_else(|| self.absorb(&numerator, divisor)) {
            whole.add(&quotient, 1)?;
            return Some(whole);
        }
        // Smaller digits, which may leave less to divide.
        let mut small = numerator.clone();
        self.reduce_digits(&mut small, divisor);
        let mut found = None;
        if small != numerator {
            let mut multiples = numerator;
            multiples.add(&small, -1)?;
            whole.add(&multiples.divided(divisor), 1)?;
            found = constant_quotient(self.interval_of_sum(&small));
            found = found.or_else(|| self.cancelled(&small, divisor));
        }
        let quotient = match found {
            Some(quotient) => quotient,
            None => {
                let key = (small, divisor);
                match self.tables.quotients.get(&key) {
                    Some(quotient) => quotient.clone(),
                    None => {
                        let quotient = Sum::from(self.floor_atom(key.0.clone(), divisor));
                        self.tables.quotients.insert(key, quotient.clone());
                        quotient
                    }
                }
            }
        };
        whole.add(&quotient, 1)?;
        Some(whole)
    }

    /// [`reduced_quotient`](Self::reduced_quotient) of a sum of leaves: the same rules, where there
    /// are no remainders to look for.
    fn reduced_quotient_of_leaves(&mut self, given: &Sum, divisor: i64) -> Option<Sum> {
        let values = self.interval_of_leaves(given);
        if let Some(value) = values.only_quotient(divisor) {
            return Some(Sum::constant(value));
        }
        let is_given = given.terms().iter().all(|&(_, it)| 0 <= it && it < divisor);
        let (mut whole, mut numerator, mut values) = (Sum::default(), given.clone(), values);
        if !is_given {
            numerator = self.congruent(given, divisor);
            whole = given.clone();
            whole.add(&numerator, -1)?;
            whole = whole.divided(divisor);
            values = self.interval_of_leaves(&numerator);
            if let Some(value) = values.only_quotient(divisor) {
                whole.constant = whole.constant.checked_add(value)?;
                return Some(whole);
            }
        }
        if let Some(least) = least_residue(&numerator, divisor)
            && let Some(value) = self.interval_of_leaves(&least).only_quotient(divisor)
        {
            numerator.add(&least, -1)?;
            whole.add(&numerator.divided(divisor), 1)?;
            whole.constant = whole.constant.checked_add(value)?;
            return Some(whole);
        }
        let mut terms: SmallVec<[(i64, Interval); 8]> = SmallVec::new();
        for &(atom, coefficient) in numerator.terms() {
            terms.push((coefficient, self.tables.atoms[atom.index()].interval));
        }
        let quotient = match cancelling_factor(&terms, numerator.constant, divisor) {
            Some(Cancelling { factor, offset, rest }) => {
                let mut reduced = Sum::constant(offset);
                for &(atom, coefficient) in numerator.terms() {
                    let left = rest.of(coefficient, factor);
                    reduced.add_term(atom, coefficient.checked_sub(left)? / factor)?;
                }
                self.quotient(reduced, divisor / factor)?
            }
            None => {
                let key = (numerator, divisor);
                let known = if is_given { None } else { self.tables.quotients.get(&key) };
                match known {
                    Some(quotient) => quotient.clone(),
                    None => {
                        let values = values.floor_div(Interval::point(divisor));
                        let quotient =
                            Sum::from(self.floor_atom_of(key.0.clone(), divisor, values));
                        if !is_given {
                            self.tables.quotients.insert(key, quotient.clone());
                        }
                        quotient
                    }
                }
            }
        };
        whole.add(&quotient, 1)?;
        Some(whole)
    }

    /// The interval of a sum of leaves.
    fn interval_of_leaves(&self, sum: &Sum) -> Interval {
        self.interval_of_each(sum).intersect(self.known_interval_of_sum(sum))
    }

    fn cancelled(&mut self, numerator: &Sum, divisor: i64) -> Option<Sum> {
        let cancelled = self.cancel_factor(numerator, divisor);
        cancelled.or_else(|| self.cancel_nearly(numerator, divisor))
    }

    fn floor_atom(&mut self, numerator: Sum, divisor: i64) -> Atom {
        let values = self.interval_of_sum(&numerator).floor_div(Interval::point(divisor));
        self.floor_atom_of(numerator, divisor, values)
    }

    pub(super) fn floor_atom_of(&mut self, numerator: Sum, divisor: i64, values: Interval) -> Atom {
        self.new_atom(
            Term::Floor { numerator, divisor, ceil: false, aliases: Vec::new() },
            values,
            None,
        )
    }

    /// A sum that differs by a multiple of the divisor, with coefficients in `[0, divisor)`. Those of
    /// products without bounds stay where they are smaller: a multiple of a product of two variables
    /// may leave the 128 bits that it has itself.
    fn congruent(&self, given: &Sum, divisor: i64) -> Sum {
        let mut sum = given.modulo(divisor);
        for &(atom, coefficient) in given.terms() {
            let AtomData { term, interval, .. } = &self.tables.atoms[atom.index()];
            if let Term::Leaf(leaf) = term
                && !interval.is_bounded()
                && self.ctx.as_var(*leaf).is_none()
                && coefficient.unsigned_abs() < sum.coefficient(atom).unsigned_abs()
            {
                sum.set(atom, coefficient);
            }
        }
        sum
    }

    /// `given == divisor * first + second`, where the coefficients of the second depend on
    /// those of the given sum modulo the divisor only: they lie in `[0, divisor)`, except
    /// where another multiple makes a remainder.
    fn residue(&self, given: &Sum, divisor: i64) -> Option<(Sum, Sum)> {
        let mut rest = self.congruent(given, divisor);
        let mut whole = given.clone();
        whole.add(&rest, -1)?;
        let mut whole = whole.divided(divisor);
        let mut floors: SmallVec<[(i64, Atom); 4]> = given
            .terms()
            .iter()
            .filter_map(|&(atom, _)| Some((self.as_floor(atom)?.1, atom)))
            .collect();
        floors.sort_unstable();
        for &(_, floor) in &floors {
            // k*x - k*m*(x floordiv m) == k*(x mod m)
            let weight = rest.coefficient(floor);
            let is_there = |&(term, _): &(Atom, i64)| rest.coefficient(term) != 0;
            let values = self.values_of_remainders(floor, &floors, is_there, |_| true);
            let found = values.into_iter().find_map(|(value, modulus)| {
                let wanted = scale_in(&rest, &value)?.checked_mul(modulus)?.checked_neg()?;
                let congruent = wanted.rem_euclid(divisor) == weight.rem_euclid(divisor);
                congruent.then_some(wanted)
            });
            if let Some(wanted) = found {
                let moved = weight.checked_sub(wanted)?;
                rest.add_term(floor, moved.checked_neg()?)?;
                whole.add_term(floor, moved / divisor)?;
            }
        }
        Some((whole, rest))
    }

    /// `x` with `numerator floordiv (b*c) == x floordiv c`, where `x` holds the quotient
    /// `inner`, which is by `b`: `(a + y floordiv b) floordiv c == (a*b + y) floordiv (b*c)`.
    pub(super) fn over(&self, numerator: &Sum, inner: Atom, inner_divisor: i64) -> Option<Sum> {
        let (inner_numerator, _) = self.as_floor(inner)?;
        let mut difference = numerator.clone();
        difference.add(inner_numerator, -1)?;
        let constant = difference.constant;
        let (mut value, rest) = difference.split(inner_divisor);
        if !rest.terms().is_empty() || constant % inner_divisor != 0 {
            return None;
        }
        value.constant = constant / inner_divisor;
        value.add_term(inner, 1)?;
        Some(value)
    }

    /// `(g*a + r) floordiv c == (a + k) floordiv (c/g)` where `r floordiv g` is always `k`.
    fn cancel_factor(&mut self, numerator: &Sum, divisor: i64) -> Option<Sum> {
        let pieces = self.pieces(numerator);
        let rest = pieces.as_ref().map_or(numerator, |pieces| &pieces.rest);
        let constant = rest.constant;
        let mut parts = self.split_digits(rest);
        let has_sums = pieces.is_some();
        parts.extend(pieces.into_iter().flat_map(|pieces| pieces.parts));
        let found = self.cancel_in(&parts, constant, divisor);
        if found.is_some() || !has_sums {
            return found;
        }
        let Pieces { parts, rest } = self.digits_of_sums(numerator)?;
        self.cancel_in(&parts, rest.constant, divisor)
    }

    /// [`cancel_factor`](Self::cancel_factor) of a sum that is taken apart.
    fn cancel_in(&mut self, parts: &Parts, constant: i64, divisor: i64) -> Option<Sum> {
        let mut terms: SmallVec<[(i64, Interval); 8]> = SmallVec::new();
        for (piece, coefficient) in parts {
            terms.push((*coefficient, self.interval_of_piece(piece, 0)));
        }
        let Cancelling { factor, offset, rest } = cancelling_factor(&terms, constant, divisor)?;
        let mut reduced = Sum::constant(offset);
        for (piece, coefficient) in parts {
            let left = rest.of(*coefficient, factor);
            self.add_piece(&mut reduced, piece, coefficient.checked_sub(left)? / factor)?;
        }
        self.quotient(reduced, divisor / factor)
    }

    /// `(g*a + r) floordiv c == (a + k) floordiv (c/g)`, as in
    /// [`cancel_factor`](Self::cancel_factor), where coefficients are split too: of `71*x`, `70*x`
    /// is in `g*a` and `x` in `r`.
    fn cancel_nearly(&mut self, numerator: &Sum, divisor: i64) -> Option<Sum> {
        let mut factors: SmallVec<[i64; 8]> = SmallVec::new();
        for &(_, coefficient) in numerator.terms() {
            let near = [Some(coefficient), coefficient.checked_sub(1), coefficient.checked_add(1)];
            for near in near.into_iter().flatten() {
                factors.extend(common_factor(near, divisor));
            }
        }
        factors.sort_unstable_by(|a, b| b.cmp(a));
        factors.dedup();
        let has_quotients =
            numerator.terms().iter().any(|&(atom, _)| self.as_floor(atom).is_some());
        // What is left of a coefficient by the nearest multiple of a factor.
        let small = |coefficient: i64, factor: i64| {
            let above = coefficient.rem_euclid(factor);
            if factor - above < above { above - factor } else { above }
        };
        for factor in factors.into_iter().take(MAX_FACTORS) {
            if !has_quotients {
                // The terms are independent: the sum takes the values at the ends.
                let length = |&(atom, coefficient): &(Atom, i64)| {
                    let Interval { lo, hi } = self.tables.atoms[atom.index()].interval;
                    let small = i128::from(small(coefficient, factor));
                    (i128::from(hi) - i128::from(lo)) * small.abs()
                };
                let total = numerator.terms().iter().map(length).fold(0, i128::saturating_add);
                if i128::from(factor) <= total {
                    continue;
                }
            }
            let (mut reduced, mut rest) = (Sum::default(), Sum::constant(numerator.constant));
            for &(atom, coefficient) in numerator.terms() {
                let small = small(coefficient, factor);
                reduced.add_term(atom, coefficient.checked_sub(small)? / factor)?;
                rest.add_term(atom, small)?;
            }
            if let Some(offset) = self.interval_of_sum(&rest).only_quotient(factor) {
                reduced.constant = offset;
                return self.quotient(reduced, divisor / factor);
            }
        }
        None
    }

    fn add_piece(&mut self, sum: &mut Sum, piece: &Piece, factor: i64) -> Option<()> {
        if factor == 0 {
            return Some(());
        }
        match piece {
            Piece::Atom(atom) => sum.add_term(*atom, factor),
            Piece::Digit(digit) => {
                let low = self.quotient(Sum::from(digit.leaf), digit.divisor)?;
                sum.add(&low, factor)?;
                let Some(modulus) = digit.modulus else { return Some(()) };
                let divisor = digit.divisor.checked_mul(modulus)?;
                let high = self.quotient(Sum::from(digit.leaf), divisor)?;
                sum.add(&high, factor.checked_mul(modulus)?.checked_neg()?)
            }
            Piece::Mod(value, modulus) => {
                let value = self.modulo(value.clone(), *modulus)?;
                sum.add(&value, factor)
            }
            Piece::Div(value, divisor) => {
                let quotient = self.quotient(value.clone(), *divisor)?;
                sum.add(&quotient, factor)
            }
        }
    }

    /// `(a + y floordiv b) floordiv c == (a*b + y) floordiv (b*c)`, where one quotient is
    /// there once; one of a sum, which holds the others, rather than those of a leaf, of which the finest
    /// is taken.
    fn absorb(&mut self, numerator: &Sum, divisor: i64) -> Option<Sum> {
        let once = |&&(atom, coefficient): &&(Atom, i64)| {
            coefficient == 1 && self.as_floor(atom).is_some()
        };
        let is_of_sum = |&&(atom, _): &&(Atom, i64)| self.quotient_of(atom).is_none();
        let mut inner = numerator.terms().iter().filter(once);
        let of_sums = inner.clone().filter(is_of_sum);
        let is_outermost = |&&(outer, _): &&(Atom, i64)| {
            let holds = |(own, _): (&Sum, i64), atom| atom == outer || own.coefficient(atom) != 0;
            let mut others = of_sums.clone();
            self.as_floor(outer).is_some_and(|own| others.all(|&(atom, _)| holds(own, atom)))
        };
        let &(atom, _) = match of_sums.clone().next() {
            Some(_) if of_sums.clone().nth(MAX_ABSORBED).is_some() => return None,
            Some(_) => of_sums.clone().find(is_outermost)?,
            None => {
                let leaf = |&(atom, _): &(Atom, i64)| Some(self.quotient_of(atom)?.0);
                let finest = inner.clone().min_by_key(|&&(atom, _)| self.quotient_of(atom))?;
                inner.all(|other| leaf(other) == leaf(finest)).then_some(finest)?
            }
        };
        let (inner_numerator, by) = self.as_floor(atom)?;
        let inner_numerator = inner_numerator.clone();
        let mut absorbed = numerator.clone();
        absorbed.add_term(atom, -1)?;
        let mut absorbed = absorbed.scaled(by)?;
        absorbed.add(&inner_numerator, 1)?;
        self.quotient(absorbed, by.checked_mul(divisor)?)
    }

    /// The quotient of written expressions by one that is not constant, or by zero. It has a
    /// value only where the divisor is not zero, so the rules may take that for granted.
    pub(super) fn quotient_by_symbol(
        &mut self,
        lhs: Expr,
        divisor: Expr,
        rounding: Rounding,
    ) -> Option<Sum> {
        let ctx = self.ctx;
        let as_given = |lhs: Expr| match rounding {
            Rounding::Down => ctx.floor_div(lhs, divisor),
            Rounding::Up => ctx.ceil_div(lhs, divisor),
        };
        if ctx.as_constant(divisor) == Some(0) {
            return Some(self.leaf(as_given(lhs)));
        }
        if ctx.as_constant(lhs) == Some(0) {
            return Some(Sum::constant(0));
        }
        let quotient = {
            let (lhs, rhs) = (self.interval_of(lhs), self.interval_of(divisor));
            match rounding {
                Rounding::Down => lhs.floor_div(rhs),
                Rounding::Up => lhs.ceil_div(rhs),
            }
        };
        if let Some(value) = quotient.as_point() {
            return Some(Sum::constant(value));
        }
        let (mut multiples, rest) = self.split_by_symbol(lhs, divisor)?;
        let changed = !multiples.terms().is_empty() || multiples.constant != 0;
        let rest = if changed { self.write(&rest) } else { lhs };
        let whole = match rounding {
            _ if ctx.as_constant(rest) == Some(0) => Some(0),
            Rounding::Down => self.number_of_multiples(rest, divisor),
            Rounding::Up => None,
        };
        let quotient = whole.map_or_else(|| self.leaf(as_given(rest)), Sum::constant);
        multiples.add(&quotient, 1)?;
        Some(multiples)
    }

    /// `expr floordiv divisor`, where it is shown to be 0, 1 or -1.
    fn number_of_multiples(&mut self, expr: Expr, divisor: Expr) -> Option<i64> {
        if self.is_reduced(expr, divisor) {
            return Some(0);
        }
        // Constant bounds have been asked.
        self.prover.is_some().then_some(())?;
        [1, -1].into_iter().find(|&times: &i64| {
            let rest = self.add_scaled(expr, divisor, -times);
            rest.is_some_and(|rest| self.is_reduced(rest, divisor))
        })
    }

    /// Whether `0 <= expr < divisor` is shown.
    fn is_reduced(&mut self, expr: Expr, divisor: Expr) -> bool {
        if matches!(self.ctx.node(expr), Node::Mod(_, by) if by == divisor) {
            return self.is_non_negative(divisor);
        }
        if !self.is_non_negative(expr) {
            return false;
        }
        let below = self.ctx.add(divisor, self.ctx.constant(-1));
        let above = self.add_scaled(below, expr, -1);
        above.is_some_and(|above| self.is_non_negative(above))
    }

    /// Splits `expr` into `divisor * multiples + rest` term by term.
    fn split_by_symbol(&mut self, expr: Expr, divisor: Expr) -> Option<(Sum, Sum)> {
        let (divisor_factors, divisor_scale) = self.factors(divisor)?;
        let sum = self.expand(expr);
        let whole = self.expand(divisor);
        let (mut multiples, mut rest) = (Sum::default(), Sum::constant(sum.constant));
        for &(term, coefficient) in sum.terms() {
            let written = self.write(&Sum::from(term));
            let (mut factors, scale) = self.factors(written)?;
            let scale = scale.checked_mul(coefficient)?;
            let contained = divisor_factors.iter().all(|factor| {
                let place = factors.iter().position(|f| f == factor);
                place.map(|place| factors.remove(place)).is_some()
            });
            if contained && scale.checked_rem(divisor_scale) == Some(0) {
                let quotient = self.multiply(&factors)?;
                multiples.add(&quotient, scale / divisor_scale)?;
            } else {
                rest.add_term(term, coefficient)?;
            }
        }
        // The divisor may itself be a sum that is part of the expression.
        if let Some(&(term, by)) = whole.terms().first()
            && (1 < whole.terms().len() || whole.constant != 0)
        {
            let times = rest.coefficient(term).checked_div(by)?;
            let present = times != 0
                && whole.constant.checked_mul(times) == Some(rest.constant)
                && whole.terms().iter().all(|&(term, coefficient)| {
                    coefficient.checked_mul(times) == Some(rest.coefficient(term))
                });
            if present {
                rest.add(&whole, times.checked_neg()?)?;
                multiples.constant = multiples.constant.checked_add(times)?;
            }
        }
        Some((multiples, rest))
    }

    /// The remainder of written expressions by one that is not a positive constant. The rules
    /// hold for a modulus of either sign; the remainder has a value only where it is not zero.
    pub(super) fn remainder_by_symbol(&mut self, lhs: Expr, modulus: Expr) -> Option<Sum> {
        let ctx = self.ctx;
        if ctx.as_constant(modulus).is_some() {
            return Some(self.leaf(ctx.modulo(lhs, modulus)));
        }
        let (multiples, rest) = self.split_by_symbol(lhs, modulus)?;
        let mut changed = !multiples.terms().is_empty() || multiples.constant != 0;
        let mut opened = Sum::constant(rest.constant);
        for &(term, coefficient) in rest.terms() {
            let inner = match self.tables.atoms[term.index()].term {
                Term::Leaf(leaf) => match ctx.node(leaf) {
                    Node::Mod(value, by) if by == modulus => Some(value),
                    _ => None,
                },
                Term::Floor { .. } => None,
            };
            match inner {
                Some(value) => {
                    let value = self.expand(value);
                    opened.add(&value, coefficient)?;
                    changed = true;
                }
                None => opened.add_term(term, coefficient)?,
            }
        }
        let rest = if changed { self.write(&opened) } else { lhs };
        if ctx.as_constant(rest) == Some(0) {
            return Some(Sum::constant(0));
        }
        match self.number_of_multiples(rest, modulus) {
            Some(times) => self.sum_scaled(rest, modulus, times.checked_neg()?),
            None => Some(self.leaf(ctx.modulo(rest, modulus))),
        }
    }
}

/// What is left of a coefficient when multiples of a factor are taken out of it.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Rest {
    /// All of it, where it is no multiple.
    All,
    /// What is left by the nearest multiple.
    Nearest,
}

impl Rest {
    pub(super) fn of(self, coefficient: i64, factor: i64) -> i64 {
        let above = coefficient.rem_euclid(factor);
        match self {
            _ if above == 0 => 0,
            Rest::All => coefficient,
            Rest::Nearest if factor - above < above => above - factor,
            Rest::Nearest => above,
        }
    }
}

/// A sum that differs by a multiple of the divisor, with the smallest coefficients, of both signs; `None` where
/// the sum is that.
pub(super) fn least_residue(sum: &Sum, divisor: i64) -> Option<Sum> {
    let is_large = |&&(_, factor): &&(Atom, i64)| divisor / 2 < factor && factor < divisor;
    let mut large = sum.terms().iter().filter(is_large).peekable();
    large.peek()?;
    let mut least = sum.clone();
    for &(atom, factor) in large {
        least.set(atom, factor - divisor);
    }
    Some(least)
}

/// `(g*a + r) floordiv c == (a + k) floordiv (c/g)`, where `r floordiv g` is always `k`.
pub(super) struct Cancelling {
    pub(super) factor: i64,
    pub(super) offset: i64,
    pub(super) rest: Rest,
}

/// A factor of the divisor that cancels in a sum of independent terms, given by their coefficients
/// and intervals.
pub(super) fn cancelling_factor(
    terms: &[(i64, Interval)],
    constant: i64,
    divisor: i64,
) -> Option<Cancelling> {
    let mut factors = Factors::new();
    let add = |factors: &mut Factors, coefficient: i64, length: i64| {
        if let Some(factor) = common_factor(coefficient, divisor)
            && length < factor
            && !factors.contains(&factor)
        {
            factors.push(factor);
        }
    };
    for &(coefficient, _) in terms {
        add(&mut factors, coefficient, 0);
    }
    add_common_factors(&mut factors);
    for rest in [Rest::All, Rest::Nearest] {
        if rest == Rest::Nearest {
            for &(coefficient, Interval { lo, hi }) in terms {
                // Of this term at least its values are left, which have to be below the factor, and
                // that is no larger than what it divides.
                let length = hi.checked_sub(lo).filter(|&length| length < divisor / 2);
                if let Some(length) = length {
                    for near in [coefficient.checked_sub(1), coefficient.checked_add(1)] {
                        if let Some(size) = near.and_then(i64::checked_abs)
                            && length < size
                        {
                            add(&mut factors, size, length);
                        }
                    }
                }
            }
        }
        factors.sort_unstable_by(|a, b| b.cmp(a));
        for &factor in factors.iter().take(MAX_FACTORS) {
            let mut values = Interval::point(constant);
            for &(coefficient, interval) in terms {
                let left = rest.of(coefficient, factor);
                if left != 0 {
                    values = values.add_multiple(interval, left);
                }
            }
            if let Some(offset) = values.only_quotient(factor) {
                return Some(Cancelling { factor, offset, rest });
            }
        }
    }
    None
}

/// Factors of a divisor.
type Factors = SmallVec<[i64; 16]>;

/// Adds the common factors of two of the given ones: where several terms stay, the factor that they
/// have in common cancels.
fn add_common_factors(factors: &mut Factors) {
    for first in 0..factors.len().min(MAX_FACTORS) {
        for second in 0..first {
            let (first, second) = (factors[first], factors[second]);
            if first % second != 0
                && second % first != 0
                && let Some(common) = common_factor(first, second)
                && !factors.contains(&common)
            {
                factors.push(common);
            }
        }
    }
}

/// The greatest common divisor of a coefficient and the divisor, unless it is 1 or the
/// divisor itself.
fn common_factor(coefficient: i64, divisor: i64) -> Option<i64> {
    let divisor = divisor.unsigned_abs();
    let factor = gcd(coefficient.unsigned_abs(), divisor);
    if factor <= 1 || divisor <= factor {
        return None;
    }
    i64::try_from(factor).ok()
}
