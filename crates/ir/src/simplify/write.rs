//! Converts normal forms to expressions and to intervals.
//!
//! A normal form has no remainders: `x mod c` is `x - c*(x floordiv c)`. Before it is
//! written, or its interval is taken, such terms are put together again.

use smallvec::SmallVec;

use super::digits::Digit;
use super::sum::{Atom, Sum};
use super::{Simplifier, Term};
use crate::expr::{Context, Expr, Node, Var, gcd};
use crate::hash::FastMap;
use crate::interval::Interval;

/// The most terms of a sum of variables that is looked at before it is written anew.
const MAX_VARIABLES: usize = 256;
/// The most terms whose coefficients are compared pair by pair.
const MAX_PAIRS: usize = 8;
/// How deep remainders of remainders are looked for.
const MAX_NESTED: u32 = 8;
/// The most quotients in one sum that are looked at.
pub(super) const MAX_QUOTIENTS: usize = 8;

/// A term that is written as one operation.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    Atom(Atom),
    /// `sum mod modulus`.
    Mod(Sum, i64),
    /// `sum floordiv divisor`.
    Div(Sum, i64),
    /// A digit of a leaf.
    Digit(Digit),
}

/// Multiples of pieces.
pub(super) type Parts = SmallVec<[(Piece, i64); 4]>;

/// A sum of multiples of pieces, and what is not put together.
#[derive(Clone, Debug)]
pub(super) struct Pieces {
    pub(super) parts: Parts,
    pub(super) rest: Sum,
}

impl Simplifier<'_> {
    pub(super) fn as_floor(&self, atom: Atom) -> Option<(&Sum, i64)> {
        match &self.tables.atoms[atom.index()].term {
            Term::Floor { numerator, divisor, .. } => Some((numerator, *divisor)),
            Term::Leaf(_) => None,
        }
    }

    /// Puts remainders together, and multiples back into quotients; leaves quotients of leaves
    /// apart. `None` where there is nothing to put together.
    pub(super) fn pieces(&self, sum: &Sum) -> Option<Pieces> {
        let is_of_sum = |&(atom, _): &(Atom, i64)| {
            self.as_floor(atom).is_some() && self.quotient_of(atom).is_none()
        };
        if !sum.terms().iter().any(is_of_sum) {
            return None;
        }
        self.put_together(sum, &self.floors_by_fineness(sum)?)
    }

    /// The quotients of a sum with their divisors, the finest first, then by structure, as far as
    /// that is known. `None` where there are many.
    pub(super) fn floors_by_fineness(&self, sum: &Sum) -> Option<SmallVec<[(i64, Atom); 4]>> {
        let mut floors: SmallVec<[(i64, Atom); 4]> = SmallVec::new();
        for &(atom, _) in sum.terms() {
            if let Some((_, divisor)) = self.as_floor(atom) {
                floors.push((divisor, atom));
            }
        }
        if MAX_QUOTIENTS < floors.len() {
            return None;
        }
        let written = |atom: Atom| self.tables.atoms[atom.index()].written;
        floors.sort_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| match (written(a.1), written(b.1)) {
                (Some(a), Some(b)) => self.ctx.compare(a, b),
                _ => a.1.cmp(&b.1),
            })
        });
        Some(floors)
    }

    /// Takes digits out wherever a sum, or else a term of it, and its quotient are there, the finest
    /// first, whether or not that is shorter: `k*x + r + l*(x floordiv m) == k*(x mod m) + r + (k*m + l)*(x
    /// floordiv m)`.
    pub(super) fn digits_of_sums(&self, sum: &Sum) -> Option<Pieces> {
        let floors = self.floors_by_fineness(sum)?;
        let mut rest = sum.clone();
        let mut parts = Parts::new();
        for &(_, floor) in &floors {
            let is_there = |&(term, _): &(Atom, i64)| rest.coefficient(term) != 0;
            let candidates = self.values_of_remainders(floor, &floors, is_there, |_| true);
            let find = |scale_in: fn(&Sum, &Sum) -> Option<i64>| {
                candidates.iter().find_map(|it| Some((it, scale_in(&rest, &it.0)?)))
            };
            let mut found = find(scale_in);
            if found.is_none() && 0 < self.ways {
                found = find(least_scale_in);
            }
            if let Some(((value, modulus), scale)) = found {
                rest.add(value, scale.checked_neg()?)?;
                rest.add_term(floor, scale.checked_mul(*modulus)?)?;
                parts.push((Piece::Mod(value.clone(), *modulus), scale));
            }
        }
        parts.extend(rest.terms().iter().map(|&(atom, factor)| (Piece::Atom(atom), factor)));
        Some(Pieces { parts, rest })
    }

    /// `None` on overflow.
    fn put_together(&self, sum: &Sum, floors: &[(i64, Atom)]) -> Option<Pieces> {
        let mut rest = sum.clone();
        let mut parts = Parts::new();
        // Remainders that use a quotient up, the coarsest first; then others, the finest
        // first.
        let exact = floors.iter().rev().map(|&(_, floor)| (floor, true));
        let partial = floors.iter().map(|&(_, floor)| (floor, false));
        for (floor, exact) in exact.chain(partial) {
            let weight = rest.coefficient(floor);
            if weight == 0 {
                continue;
            }
            let is_leaf = self.quotient_of(floor).is_some();
            let is_opposite = |&(term, factor): &(Atom, i64)| {
                rest.coefficient(term).signum() * factor.signum() * weight.signum() < 0
            };
            let candidates = self.values_of_remainders(floor, floors, is_opposite, |value| {
                // Remainders of leaves are digits.
                !is_leaf || value.single().is_none_or(|it| self.quotient_of(it).is_none())
            });
            if candidates.is_empty() {
                continue;
            }
            for (value, modulus, scale) in chosen(&rest, candidates, weight, exact) {
                // s*x - s*m*(x floordiv m) == s*(x mod m)
                rest.add(&value, scale.checked_neg()?)?;
                rest.add_term(floor, scale.checked_mul(modulus)?)?;
                parts.push((Piece::Mod(value, modulus), scale));
            }
        }
        self.join(Pieces { parts, rest }, floors)
    }

    /// Puts what is left of a sum into its remainders and quotients. `None` on overflow.
    pub(super) fn join(&self, pieces: Pieces, floors: &[(i64, Atom)]) -> Option<Pieces> {
        let Pieces { mut parts, mut rest } = pieces;
        for (piece, scale) in &mut parts {
            // k*((x + a) mod m) + b == (k*(x + a) + b) mod (k*m) for 0 <= b < k
            if let Piece::Mod(value, modulus) = piece
                && value.constant != 0
                && 0 < rest.constant
                && rest.constant < *scale
            {
                let mut scaled = value.clone().scaled(*scale)?;
                scaled.constant = scaled.constant.checked_add(rest.constant)?;
                *modulus = modulus.checked_mul(*scale)?;
                *value = scaled;
                *scale = 1;
                rest.constant = 0;
            }
        }
        // k*((h + a) mod n) + b*(z - m*h) == b*((z + m*a) mod (m*n)) where b*m == k, z == x floordiv c
        // and h == x floordiv (c*m)
        for (piece, scale) in &mut parts {
            let Piece::Mod(value, modulus) = piece else { continue };
            while let Some((high, low, factor)) = self.digit_below(value, &rest, *scale) {
                let mut whole = value.clone().scaled(factor)?;
                whole.add_term(high, factor.checked_neg()?)?;
                whole.add_term(low, 1)?;
                rest.add_term(high, *scale)?;
                *modulus = modulus.checked_mul(factor)?;
                *scale /= factor;
                rest.add_term(low, scale.checked_neg()?)?;
                *value = whole;
            }
        }
        let of_sums = floors.iter().filter(|&&(_, floor)| self.quotient_of(floor).is_none());
        for &(divisor, floor) in of_sums {
            let scale = rest.coefficient(floor);
            let (numerator, _) = self.as_floor(floor)?;
            if scale == 0 {
                continue;
            }
            // s*(x floordiv c) + s*k*t == s*((x + k*c*t) floordiv c) where t is in x anyway
            let mut whole = None;
            for &(term, _) in numerator.terms() {
                let outside = rest.coefficient(term);
                if outside != 0 && outside.checked_rem(scale)? == 0 {
                    let inside = (outside / scale).checked_mul(divisor)?;
                    let whole = whole.get_or_insert_with(|| numerator.clone());
                    whole.add_term(term, inside)?;
                    rest.add_term(term, outside.checked_neg()?)?;
                }
            }
            if numerator.constant != 0
                && rest.constant != 0
                && rest.constant.checked_rem(scale)? == 0
            {
                let inside = (rest.constant / scale).checked_mul(divisor)?;
                let whole = whole.get_or_insert_with(|| numerator.clone());
                whole.constant = whole.constant.checked_add(inside)?;
                rest.constant = 0;
            }
            if let Some(whole) = whole {
                rest.add_term(floor, scale.checked_neg()?)?;
                parts.push((Piece::Div(whole, divisor), scale));
            }
        }
        Some(Pieces { parts, rest })
    }

    /// The sums and moduli whose remainders hold `floor`: `x` and `c` where it is `x floordiv
    /// c`. Those with the coarsest quotients in `x` come first. All terms of `x` are among the
    /// accepted, and `x` is.
    pub(super) fn values_of_remainders(
        &self,
        floor: Atom,
        floors: &[(i64, Atom)],
        accepts_term: impl Fn(&(Atom, i64)) -> bool,
        accepts: impl Fn(&Sum) -> bool,
    ) -> SmallVec<[(Sum, i64); 2]> {
        let mut values = SmallVec::new();
        let Term::Floor { numerator, divisor, aliases, .. } =
            &self.tables.atoms[floor.index()].term
        else {
            return values;
        };
        let divisor = *divisor;
        let accepts = |value: &Sum| value.terms().iter().all(&accepts_term) && accepts(value);
        for &(inner_divisor, inner) in floors.iter().rev() {
            if inner != floor
                && inner_divisor < divisor
                && divisor % inner_divisor == 0
                && accepts_term(&(inner, 1))
                && let Some(value) = self.over(numerator, inner, inner_divisor)
                && accepts(&value)
            {
                values.push((value, divisor / inner_divisor));
            }
        }
        if accepts(numerator) {
            values.push((numerator.clone(), divisor));
        }
        values.extend(aliases.iter().filter(|(value, _)| accepts(value)).cloned());
        values
    }

    /// An interval that holds every value of a sum.
    pub(super) fn interval_of_sum(&mut self, sum: &Sum) -> Interval {
        self.interval_at_depth(sum, 0)
    }

    fn interval_at_depth(&mut self, sum: &Sum, depth: u32) -> Interval {
        if let Some(atom) = sum.single() {
            return self.tables.atoms[atom.index()].interval;
        }
        if sum.terms().iter().all(|&(atom, _)| self.quotient_of(atom).is_some()) {
            return self.interval_of_terms(sum);
        }
        if let Some(&interval) = self.tables.intervals.get(sum) {
            return interval;
        }
        let Some(pieces) = self.pieces(sum) else {
            return self.interval_of_terms(sum);
        };
        let mut total = self.interval_of_terms(&pieces.rest);
        for (piece, coefficient) in &pieces.parts {
            let interval = self.interval_of_piece(piece, depth);
            total = total.add_multiple(interval, *coefficient);
        }
        total = total.intersect(self.known_interval_of_sum(sum));
        self.tables.intervals.insert(sum.clone(), total);
        total
    }

    pub(super) fn interval_of_piece(&mut self, piece: &Piece, depth: u32) -> Interval {
        match piece {
            Piece::Atom(atom) => self.tables.atoms[atom.index()].interval,
            Piece::Digit(digit) => self.interval_of_digit(*digit),
            Piece::Mod(value, modulus) => {
                let inner = self.interval_inside(value, depth);
                let interval =
                    inner.modulo(Interval::point(*modulus)).intersect(residues(value, *modulus));
                if self.known.is_empty() {
                    return interval;
                }
                let known = value.single().and_then(|atom| self.tables.atoms[atom.index()].written);
                let known = known.map_or(Interval::ALL, |value| {
                    self.known_interval(self.ctx.modulo(value, self.ctx.constant(*modulus)))
                });
                interval.intersect(known)
            }
            Piece::Div(value, divisor) => {
                self.interval_inside(value, depth).floor_div(Interval::point(*divisor))
            }
        }
    }

    fn interval_inside(&mut self, sum: &Sum, depth: u32) -> Interval {
        if MAX_NESTED <= depth { Interval::ALL } else { self.interval_at_depth(sum, depth + 1) }
    }

    /// Writes a normal form down.
    pub(super) fn write(&mut self, sum: &Sum) -> Expr {
        if let Some(value) = sum.as_constant() {
            return self.ctx.constant(value);
        }
        // An atom has a larger number than those in its numerator.
        let mut open: SmallVec<[Atom; 8]> = SmallVec::new();
        let mut stack: SmallVec<[Atom; 8]> = sum.terms().iter().map(|&(atom, _)| atom).collect();
        while let Some(atom) = stack.pop() {
            if self.tables.atoms[atom.index()].written.is_some() || open.contains(&atom) {
                continue;
            }
            open.push(atom);
            if let Some((numerator, _)) = self.as_floor(atom) {
                stack.extend(numerator.terms().iter().map(|&(atom, _)| atom));
            }
        }
        open.sort_unstable();
        for atom in open {
            let Term::Floor { numerator, divisor, ceil, .. } =
                &self.tables.atoms[atom.index()].term
            else {
                continue;
            };
            let (numerator, divisor, ceil) = (numerator.clone(), *divisor, *ceil);
            let written = self.write_quotient(&numerator, divisor, ceil, 0);
            self.tables.atoms[atom.index()].written = Some(written);
            self.tables.expanded.insert(written, Sum::from(atom));
        }
        self.find_aliases(sum);
        if 0 < self.ways {
            self.find_more_aliases(sum);
        }
        let written = self.write_sum(sum, 0);
        self.tables.expanded.insert(written, sum.clone());
        written
    }

    fn write_quotient(&mut self, numerator: &Sum, divisor: i64, ceil: bool, depth: u32) -> Expr {
        let by = self.ctx.constant(divisor);
        if ceil && numerator.constant == divisor - 1 {
            let mut numerator = numerator.clone();
            numerator.constant = 0;
            let numerator = self.write_sum(&numerator, depth);
            return self.ctx.ceil_div(numerator, by);
        }
        // -x floordiv c == x floordiv -c, which is shorter but rarely what backends like.
        if self.negative_divisors
            && numerator.constant == 0
            && numerator.terms().iter().all(|&(_, coefficient)| coefficient < 0)
            && let Some(negated) = numerator.clone().scaled(-1)
        {
            let negated = self.write_sum(&negated, depth);
            return self.ctx.floor_div(negated, self.ctx.constant(-divisor));
        }
        let numerator = self.write_sum(numerator, depth);
        self.ctx.floor_div(numerator, by)
    }

    /// Writes a sum whose atoms are written.
    pub(super) fn write_sum(&mut self, sum: &Sum, depth: u32) -> Expr {
        let ctx = self.ctx;
        if let Some(atom) = sum.single()
            && let Some(written) = self.tables.atoms[atom.index()].written
        {
            return written;
        }
        if sum.terms().iter().all(|&(atom, _)| self.as_floor(atom).is_none()) {
            let mut terms: SmallVec<[(Expr, i64); 8]> = SmallVec::new();
            for &(atom, coefficient) in sum.terms() {
                let written = self.tables.atoms[atom.index()].written;
                terms.push((written.unwrap_or_else(|| ctx.constant(0)), coefficient));
            }
            return build(ctx, &mut terms, sum.constant);
        }
        if let Some(&written) = self.tables.written.get(sum) {
            return written;
        }
        if 0 < self.ways && depth < MAX_NESTED {
            let written = self.write_shortest(sum, depth);
            self.tables.written.insert(sum.clone(), written);
            return written;
        }
        let pieces = if depth < MAX_NESTED { self.pieces(sum) } else { None };
        let written = match pieces {
            None => {
                let parts = self.shortest_quotients(sum);
                self.write_parts(&parts, sum.constant, depth)
            }
            Some(Pieces { parts: found, rest }) => {
                let mut parts = self.shortest_quotients(&rest);
                let has_remainder = found.iter().any(|(piece, _)| matches!(piece, Piece::Mod(..)));
                parts.extend(found);
                let mut written = self.write_parts(&parts, rest.constant, depth);
                if has_remainder && self.least_operators(sum) < ctx.cost(written) {
                    let plain = self.shortest_quotients(sum);
                    let plain = self.write_parts(&plain, sum.constant, depth);
                    if ctx.cost(plain) < ctx.cost(written) {
                        written = plain;
                        self.overruled = true;
                    }
                }
                written
            }
        };
        self.tables.written.insert(sum.clone(), written);
        written
    }

    /// A number of operators that a sum does not fall below when its terms are written one by one.
    fn least_operators(&self, sum: &Sum) -> u32 {
        let mut leaves: SmallVec<[Atom; 8]> = SmallVec::new();
        let mut operators = u32::from(sum.constant != 0);
        for (place, &(atom, _)) in sum.terms().iter().enumerate() {
            if let Some((leaf, _)) = self.quotient_of(atom) {
                // Quotients of one leaf may be shorter together.
                if leaves.contains(&leaf) {
                    return 0;
                }
                leaves.push(leaf);
            }
            let written = self.tables.atoms[atom.index()].written;
            operators = operators
                .saturating_add(u32::from(place != 0))
                .saturating_add(written.map_or(0, |written| self.ctx.cost(written)));
        }
        operators
    }

    /// Whether every value of a sum is known to have 64 bits.
    pub(super) fn fits(&mut self, sum: &Sum) -> bool {
        self.interval_of_sum(sum).is_bounded()
    }

    pub(super) fn write_parts(&mut self, parts: &Parts, mut constant: i64, depth: u32) -> Expr {
        let ctx = self.ctx;
        let mut terms: SmallVec<[(Expr, i64); 8]> = SmallVec::new();
        for (piece, coefficient) in parts {
            let interval = self.interval_of_piece(piece, 0);
            if let Some(value) = interval.as_point()
                && let Some(sum) =
                    value.checked_mul(*coefficient).and_then(|value| constant.checked_add(value))
            {
                constant = sum;
                continue;
            }
            let mut coefficient = *coefficient;
            let written = match piece {
                Piece::Atom(atom) => {
                    self.tables.atoms[atom.index()].written.unwrap_or_else(|| ctx.constant(0))
                }
                Piece::Digit(digit) => self.write_digit(*digit),
                Piece::Mod(value, modulus) => {
                    let (mut value, mut modulus) = (value.clone(), *modulus);
                    // k*(x mod m) == (k*x) mod (k*m), where x has multiples only
                    if 1 < coefficient
                        && value.terms().iter().all(|(_, factor)| 1 < factor.unsigned_abs())
                        && let Some(whole) = modulus.checked_mul(coefficient)
                        && let Some(scaled) = value.clone().scaled(coefficient)
                        && self.fits(&scaled)
                    {
                        (value, modulus, coefficient) = (scaled, whole, 1);
                    }
                    // A term may be subtracted instead.
                    let has_negative = 2 < modulus
                        && value.terms().iter().any(|&(_, factor)| factor == modulus - 1);
                    let value = match self.ways {
                        0 if !has_negative => self.write_sum(&value, depth + 1),
                        _ => self.write_shortest_residue(&value, modulus, depth + 1),
                    };
                    ctx.modulo(value, ctx.constant(modulus))
                }
                Piece::Div(value, divisor) => {
                    self.write_quotient(value, *divisor, false, depth + 1)
                }
            };
            terms.push((written, coefficient));
        }
        build(ctx, &mut terms, constant)
    }
}

/// An expression with the size of a coefficient and whether it is positive.
type Addend = (Expr, u64, bool);
type Addends = SmallVec<[Addend; 8]>;

/// Writes a sum of multiples of distinct terms, none of them zero, and a constant.
pub(crate) fn build(ctx: &Context, terms: &mut [(Expr, i64)], constant: i64) -> Expr {
    terms.sort_by(|a, b| ctx.compare(a.0, b.0));
    build_sorted(ctx, terms, constant)
}

/// [`build`], where the terms have the order of [`Context::compare`].
pub(super) fn build_sorted(ctx: &Context, terms: &[(Expr, i64)], constant: i64) -> Expr {
    let addends = terms
        .iter()
        .map(|&(term, coefficient)| (term, coefficient.unsigned_abs(), 0 < coefficient));
    // A term may be a constant itself: 2^63 is one, written as a sum.
    let expr = match counts_of_sizes(terms) {
        None => chain(ctx, addends),
        Some(counts) => chain(ctx, collected(ctx, addends, &counts).iter().copied()),
    };
    if constant == 0 { expr } else { ctx.add(expr, ctx.constant(constant)) }
}

/// How often each size of a coefficient other than 1 occurs; `None` where none does twice.
fn counts_of_sizes(terms: &[(Expr, i64)]) -> Option<FastMap<u64, usize>> {
    let sizes = terms.iter().map(|&(_, coefficient)| coefficient.unsigned_abs());
    // A few are compared faster than hashed.
    if terms.len() <= MAX_PAIRS {
        let mut rest = sizes.clone();
        let mut is_equal = false;
        while let Some(size) = rest.next() {
            is_equal |= size != 1 && rest.clone().any(|other| other == size);
        }
        if !is_equal {
            return None;
        }
    }
    let mut counts: FastMap<u64, usize> = FastMap::default();
    for size in sizes.filter(|&size| size != 1) {
        *counts.entry(size).or_default() += 1;
    }
    counts.values().any(|&count| 1 < count).then_some(counts)
}

/// The addends with those of one size collected in the place of the first of them.
fn collected(
    ctx: &Context,
    given: impl Iterator<Item = Addend>,
    counts: &FastMap<u64, usize>,
) -> Addends {
    let mut addends = Addends::new();
    let mut groups: FastMap<u64, Addends> = FastMap::default();
    for (term, size, positive) in given {
        if counts.get(&size).is_none_or(|&count| count < 2) {
            addends.push((term, size, positive));
            continue;
        }
        let members = groups.entry(size).or_default();
        if members.is_empty() {
            // Its expression and sign come below.
            addends.push((term, size, true));
        }
        members.push((term, 1, positive));
    }
    for (expr, size, positive) in &mut addends {
        if let Some(mut members) = groups.remove(size) {
            *positive = members.iter().any(|&(.., positive)| positive);
            for (.., sign) in &mut members {
                *sign = *sign == *positive;
            }
            *expr = chain(ctx, members.iter().copied());
        }
    }
    addends
}

/// Whether [`build`] writes a sum of multiples of variables, all of which are `accepted`, just as
/// it is. A `false` leaves it open.
pub(super) fn is_written_sum(ctx: &Context, expr: Expr, accepted: &impl Fn(Var) -> bool) -> bool {
    let mut rest = expr;
    if let Node::Add(sum, constant) = ctx.node(expr)
        && ctx.as_constant(constant).is_some()
    {
        rest = sum;
    }
    // From the last to the first, with the order of the variables.
    let mut terms: SmallVec<[(Var, i64); 8]> = SmallVec::new();
    loop {
        let (term, before) = match ctx.node(rest) {
            Node::Add(before, term) => (term, Some(before)),
            _ => (rest, None),
        };
        let (var, coefficient) = match ctx.node(term) {
            Node::Var(var) => (var, 1),
            Node::Mul(factor, constant) => match (ctx.as_var(factor), ctx.as_constant(constant)) {
                (Some(var), Some(constant)) => (var, constant),
                _ => return false,
            },
            _ => return false,
        };
        let size = coefficient.unsigned_abs();
        if size == 0
            || !accepted(var)
            || MAX_VARIABLES <= terms.len()
            || (size != 1 && terms.iter().any(|&(_, other)| other.unsigned_abs() == size))
        {
            return false;
        }
        terms.push((var, coefficient));
        match before {
            Some(before) => rest = before,
            None => break,
        }
    }
    let Some(((first, coefficient), later)) = terms.split_last() else {
        return false;
    };
    // A positive term comes first where there is one, or one with a factor: the first of them in order.
    later.windows(2).all(|pair| pair[1].0 < pair[0].0)
        && later.iter().all(|&(var, other)| match *coefficient {
            1.. => *first < var || (var < *first && other < 0),
            -1 => *first < var && other == -1,
            _ => other < 0 && (*first < var || (var < *first && other == -1)),
        })
}

/// A sum of multiples given by size and sign, a positive one first, or one that has a factor, which takes
/// the sign; zero when empty.
fn chain(ctx: &Context, addends: impl Iterator<Item = Addend> + Clone) -> Expr {
    let signed = |(expr, size, positive): Addend| {
        let magnitude = i128::from(size);
        let signed = if positive { magnitude } else { -magnitude };
        // The sizes are those of 64-bit coefficients; a group takes the sign of a
        // positive member if it has one, so only -2^63 can have size 2^63.
        match i64::try_from(signed).unwrap_or(i64::MIN) {
            1 => expr,
            factor => ctx.mul(expr, ctx.constant(factor)),
        }
    };
    let first = addends.clone().position(|(.., positive)| positive);
    let first = first.or_else(|| addends.clone().position(|(_, size, _)| 1 < size));
    let mut sum = first.and_then(|place| addends.clone().nth(place)).map(signed);
    for (place, addend) in addends.enumerate() {
        if Some(place) != first {
            let term = signed(addend);
            sum = Some(sum.map_or(term, |sum| ctx.add(sum, term)));
        }
    }
    sum.unwrap_or_else(|| ctx.constant(0))
}

/// Sums with moduli, and by what to multiply them, to take out of `sum` as remainders of a
/// quotient with the given weight.
fn chosen(
    sum: &Sum,
    candidates: SmallVec<[(Sum, i64); 2]>,
    weight: i64,
    exact: bool,
) -> SmallVec<[(Sum, i64, i64); 2]> {
    let scale_of = |(value, modulus): &(Sum, i64)| {
        let scale = scale_in(sum, value)?;
        Some((scale, weight.checked_add(scale.checked_mul(*modulus)?)?))
    };
    let mut found = SmallVec::new();
    if exact {
        let scales: SmallVec<[_; 4]> = candidates.iter().map(scale_of).collect();
        let mut take = |place: usize| {
            if let Some((scale, _)) = scales[place] {
                let (value, modulus) = &candidates[place];
                found.push((value.clone(), *modulus, scale));
            }
        };
        let left = |place: usize| scales[place].map(|(_, left)| left);
        if let Some(place) = (0..scales.len()).find(|&place| left(place) == Some(0)) {
            take(place);
            return found;
        }
        // Two remainders by one quotient.
        for first in 0..scales.len() {
            for second in first + 1..scales.len() {
                let terms = candidates[first].0.terms();
                if let (Some(one), Some(other)) = (left(first), left(second))
                    && one.checked_add(other).and_then(|sum| sum.checked_sub(weight)) == Some(0)
                    && terms.iter().all(|&(term, _)| candidates[second].0.coefficient(term) == 0)
                {
                    take(first);
                    take(second);
                    return found;
                }
            }
        }
        // A multiple of what is there, the rest of which stays.
        let mut parts = candidates.into_iter();
        found.extend(parts.find_map(|(value, modulus)| part_of(sum, value, modulus, weight)));
        return found;
    }
    // Digits: k*x - l*(x floordiv m) == k*(x mod m) + (k*m - l)*(x floordiv m)
    for candidate in candidates {
        if let Some((scale, left)) = scale_of(&candidate)
            && left.signum() != weight.signum()
            && left.unsigned_abs() < weight.unsigned_abs()
        {
            found.push((candidate.0, candidate.1, scale));
            break;
        }
    }
    found
}

/// The number by which to multiply the terms of `value` to get those of `sum`.
pub(super) fn scale_in(sum: &Sum, value: &Sum) -> Option<i64> {
    let &(first, factor) = value.terms().first()?;
    let scale = sum.coefficient(first).checked_div(factor)?;
    let same = scale != 0
        && value
            .terms()
            .iter()
            .all(|&(term, factor)| factor.checked_mul(scale) == Some(sum.coefficient(term)));
    same.then_some(scale)
}

/// The number of least size by which to multiply a term of `value` to get that of `sum`.
fn least_scale_in(sum: &Sum, value: &Sum) -> Option<i64> {
    let scales = value.terms().iter().filter_map(|&(term, factor)| {
        let coefficient = sum.coefficient(term);
        (coefficient.checked_rem(factor)? == 0).then(|| coefficient / factor)
    });
    scales.min_by_key(|scale| scale.unsigned_abs())
}

/// The values of `sum mod modulus`, as its coefficients tell: with `g` the greatest common divisor of
/// them and the modulus, all are congruent to the constant modulo `g`.
fn residues(sum: &Sum, modulus: i64) -> Interval {
    let common = sum.terms().iter().fold(modulus.unsigned_abs(), |common, &(_, coefficient)| {
        gcd(common, coefficient.unsigned_abs())
    });
    let Ok(common) = i64::try_from(common) else {
        return Interval::ALL;
    };
    let least = sum.constant.rem_euclid(common);
    Interval::new(least, modulus - common + least)
}

/// The remainder that uses up a quotient of the given weight, where `sum` holds at least as
/// much of each term of the value.
fn part_of(sum: &Sum, value: Sum, modulus: i64, weight: i64) -> Option<(Sum, i64, i64)> {
    if weight % modulus != 0 {
        return None;
    }
    let scale = (weight / modulus).checked_neg()?;
    let mut exact = 0;
    for &(term, factor) in value.terms() {
        let (found, needed) = (sum.coefficient(term), factor.checked_mul(scale)?);
        if found == needed {
            exact += 1;
        } else if found.signum() != needed.signum() || found.unsigned_abs() < needed.unsigned_abs()
        {
            return None;
        }
    }
    (0 < exact || value.terms().len() == 1).then_some((value, modulus, scale))
}

#[cfg(test)]
mod tests {
    use crate::simplify::simplified;

    #[test]
    fn remainders_are_shortest() {
        for (given, expected) in [
            ("d0 - (d1 / 3) * 3 + d1 * 2", "d0 + d1 + d1 mod 3"),
            ("d0 - (d1 / 3) * 6 + d1 * 3", "d0 + d1 + (d1 mod 3) * 2"),
            ("d1 * 5 - (d1 / 3) * 12", "d1 + (d1 mod 3) * 4"),
            ("(d0 * 32 + d1) / 32 + d0 mod 4", "d0 + d0 mod 4"),
        ] {
            let domain = "domain: d0 in [0, 99], d1 in [0, 31]";
            let [found, wanted] = [given, expected]
                .map(|form| simplified(&format!("(d0, d1) -> ({form}), {domain}")));
            assert_eq!(found, wanted, "{given}");
            assert!(found.starts_with(&format!("(d0, d1) -> ({expected})")), "{found}");
        }
    }
}
