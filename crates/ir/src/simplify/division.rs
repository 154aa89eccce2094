//! Rules for quotients and remainders.
//!
//! With `x == c*a + r`, all terms of `a` being those of `x` whose coefficient is a multiple of
//! `c`, `x floordiv c == a + r floordiv c` and `x mod c == r mod c`. More generally, if `x ==
//! g*a + r` for a divisor `g` of `c` and `r floordiv g` is one constant `k` on the whole
//! domain, then `x floordiv c == (a + k) floordiv (c/g)`, and `x mod c == g*((a + k) mod
//! (c/g)) + (r - k*g)`.

use super::{MAX_DEPTH, Simplifier, Sum};
use crate::expr::{Expr, Node, checked_ceil_div, checked_floor_div, gcd};
use crate::interval::Interval;

/// The most common factors of terms and divisor that are tried.
pub(super) const MAX_FACTORS: usize = 8;

/// The direction in which a quotient is rounded.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Rounding {
    /// Towards minus infinity.
    Down,
    /// Towards plus infinity.
    Up,
}

impl Rounding {
    /// The rounding of a numerator that is about to be divided by a number of the given sign:
    /// `floor(y / c) == floor(ceil(y) / c)` for a negative integer `c` and any real `y`.
    fn inner(self, divisor: i64) -> Rounding {
        match (self, 0 < divisor) {
            (Rounding::Down, true) | (Rounding::Up, false) => Rounding::Down,
            (Rounding::Down, false) | (Rounding::Up, true) => Rounding::Up,
        }
    }

    fn divide(self, lhs: i64, rhs: i64) -> Option<i64> {
        match self {
            Rounding::Down => checked_floor_div(lhs, rhs),
            Rounding::Up => checked_ceil_div(lhs, rhs),
        }
    }

    fn divide_interval(self, lhs: Interval, rhs: i64) -> Interval {
        match self {
            Rounding::Down => lhs.floor_div(Interval::point(rhs)),
            Rounding::Up => lhs.ceil_div(Interval::point(rhs)),
        }
    }
}

impl Simplifier<'_> {
    /// The simplified quotient.
    pub(super) fn quotient(&mut self, lhs: Expr, rhs: Expr, rounding: Rounding) -> Expr {
        let given = self.divide_as_given(lhs, rhs, rounding);
        if MAX_DEPTH <= self.depth || !self.is_quotient(given) {
            return given;
        }
        if let Some(&simplified) = self.applied.get(&given) {
            return simplified;
        }
        self.depth += 1;
        let simplified = match self.ctx.as_constant(rhs) {
            Some(0) => None,
            Some(divisor) => self.quotient_by_constant(lhs, divisor, rounding),
            None => self.quotient_by_symbol(lhs, rhs, rounding),
        };
        self.depth -= 1;
        let simplified = simplified.unwrap_or(given);
        self.applied.insert(given, simplified);
        simplified
    }

    fn divide_as_given(&self, lhs: Expr, rhs: Expr, rounding: Rounding) -> Expr {
        match rounding {
            Rounding::Down => self.ctx.floor_div(lhs, rhs),
            Rounding::Up => self.ctx.ceil_div(lhs, rhs),
        }
    }

    fn is_quotient(&self, expr: Expr) -> bool {
        matches!(self.ctx.node(expr), Node::FloorDiv(..) | Node::CeilDiv(..))
    }

    /// A simpler form of `lhs / divisor`, or `None` when no rule applies.
    fn quotient_by_constant(
        &mut self,
        lhs: Expr,
        divisor: i64,
        rounding: Rounding,
    ) -> Option<Expr> {
        let ctx = self.ctx;
        if divisor == -1 {
            return self.add_scaled(ctx.constant(0), lhs, -1);
        }
        let interval = self.interval_of(lhs);
        if let Some(value) = rounding.divide_interval(interval, divisor).as_point() {
            return Some(ctx.constant(value));
        }
        let sum = Sum::of(ctx, lhs)?;

        // (c*a + r) / c == a + r / c
        let (mut multiples, mut rest) = (Sum::default(), Sum::default());
        for (&term, &coefficient) in &sum.terms {
            if coefficient % divisor == 0 {
                multiples.add_term(term, coefficient / divisor)?;
            } else {
                rest.add_term(term, coefficient)?;
            }
        }
        if rest.terms.is_empty() {
            multiples.constant = rounding.divide(sum.constant, divisor)?;
            return self.sum(multiples);
        }
        if sum.constant % divisor == 0 {
            multiples.constant = sum.constant / divisor;
        } else {
            rest.constant = sum.constant;
        }
        if !multiples.terms.is_empty() || multiples.constant != 0 {
            let rest = self.sum(rest)?;
            let quotient = self.quotient(rest, ctx.constant(divisor), rounding);
            multiples.add(ctx, quotient, 1)?;
            return self.sum(multiples);
        }

        self.reduce_by_factor(&sum, divisor, rounding)
            .or_else(|| self.absorb_quotient(&sum, lhs, divisor, rounding))
            .or_else(|| self.floor_for_ceil(lhs, divisor, rounding))
    }

    /// `(g*a + r) / c == (a + k) / (c / g)` where `r / g` is always `k`.
    fn reduce_by_factor(&mut self, sum: &Sum, divisor: i64, rounding: Rounding) -> Option<Expr> {
        let inner = rounding.inner(divisor);
        for factor in common_factors(sum, divisor) {
            let (mut multiples, rest) = split(sum, factor)?;
            let rest = self.interval_of_sum(&rest);
            if let Some(offset) = inner.divide_interval(rest, factor).as_point() {
                multiples.constant = multiples.constant.checked_add(offset)?;
                let reduced = self.sum(multiples)?;
                let divisor = self.ctx.constant(divisor / factor);
                return Some(self.quotient(reduced, divisor, rounding));
            }
        }
        None
    }

    /// `(a + y / b) / c == (a*b + y) / (b*c)`, where the inner quotient is rounded as the
    /// outer one needs it.
    fn absorb_quotient(
        &mut self,
        sum: &Sum,
        lhs: Expr,
        divisor: i64,
        rounding: Rounding,
    ) -> Option<Expr> {
        let ctx = self.ctx;
        let mut found = None;
        let mut others = 0;
        for (&term, &coefficient) in &sum.terms {
            let inner = match (ctx.node(term), rounding.inner(divisor)) {
                (Node::FloorDiv(value, by), Rounding::Down)
                | (Node::CeilDiv(value, by), Rounding::Up)
                    if coefficient == 1 =>
                {
                    ctx.as_constant(by).filter(|&by| by != 0).map(|by| (term, value, by))
                }
                _ => None,
            };
            match inner {
                Some(inner) if found.is_none() => found = Some(inner),
                _ => others += i32::from(self.is_quotient(term)),
            }
        }
        let (term, value, by) = found?;
        let mut numerator = sum.clone();
        numerator.add_term(term, -1)?;
        for coefficient in numerator.terms.values_mut() {
            *coefficient = coefficient.checked_mul(by)?;
        }
        numerator.constant = numerator.constant.checked_mul(by)?;
        numerator.add(ctx, value, 1)?;
        let numerator = self.sum(numerator)?;
        let by = ctx.constant(by.checked_mul(divisor)?);
        let absorbed = self.quotient(numerator, by, rounding);
        let given = self.divide_as_given(lhs, ctx.constant(divisor), rounding);
        let worth = if others == 0 {
            ctx.cost(absorbed) <= ctx.cost(given)
        } else {
            ctx.cost(absorbed) < ctx.cost(given)
        };
        worth.then_some(absorbed)
    }

    /// `x ceildiv c == (x + c - 1) floordiv c` for c > 0 and `(x + c + 1) floordiv c` for
    /// c < 0, where that is no longer.
    fn floor_for_ceil(&mut self, lhs: Expr, divisor: i64, rounding: Rounding) -> Option<Expr> {
        if rounding == Rounding::Down {
            return None;
        }
        let ctx = self.ctx;
        let offset = divisor.checked_sub(divisor.signum())?;
        let numerator = self.add_scaled(lhs, ctx.constant(offset), 1)?;
        let floor = self.quotient(numerator, ctx.constant(divisor), Rounding::Down);
        let given = ctx.ceil_div(lhs, ctx.constant(divisor));
        (ctx.cost(floor) <= ctx.cost(given)).then_some(floor)
    }

    /// A simpler form of `lhs / divisor`, or `None`. The quotient has a value only where the
    /// divisor is not zero, so the rules may take that for granted.
    fn quotient_by_symbol(&mut self, lhs: Expr, divisor: Expr, rounding: Rounding) -> Option<Expr> {
        let ctx = self.ctx;
        if ctx.as_constant(lhs) == Some(0) {
            return Some(lhs);
        }
        let quotient = {
            let (lhs, rhs) = (self.interval_of(lhs), self.interval_of(divisor));
            match rounding {
                Rounding::Down => lhs.floor_div(rhs),
                Rounding::Up => lhs.ceil_div(rhs),
            }
        };
        if let Some(value) = quotient.as_point() {
            return Some(ctx.constant(value));
        }
        let (multiples, rest) = self.split_by_symbol(lhs, divisor)?;
        let changed = !multiples.terms.is_empty() || multiples.constant != 0;
        let rest = self.sum(rest)?;
        let quotient = if ctx.as_constant(rest) == Some(0) {
            rest
        } else if rounding == Rounding::Down && self.is_reduced(rest, divisor) {
            ctx.constant(0)
        } else if changed {
            self.divide_as_given(rest, divisor, rounding)
        } else {
            return None;
        };
        let mut multiples = multiples;
        multiples.add(ctx, quotient, 1)?;
        self.sum(multiples)
    }

    /// Whether `0 <= expr < divisor` is shown.
    fn is_reduced(&mut self, expr: Expr, divisor: Expr) -> bool {
        let Some(above) = self.add_scaled(divisor, expr, -1) else {
            return false;
        };
        let Some(above) = self.add_scaled(above, self.ctx.constant(-1), 1) else {
            return false;
        };
        self.is_non_negative(expr) && self.is_non_negative(above)
    }

    /// Splits `expr` into `divisor * multiples + rest` term by term.
    fn split_by_symbol(&mut self, expr: Expr, divisor: Expr) -> Option<(Sum, Sum)> {
        let ctx = self.ctx;
        let (divisor_factors, divisor_scale) = self.factors(divisor)?;
        let sum = Sum::of(ctx, expr)?;
        let whole = Sum::of(ctx, divisor)?;
        let (mut multiples, mut rest) = (Sum::default(), Sum::default());
        rest.constant = sum.constant;
        for (&term, &coefficient) in &sum.terms {
            let (mut factors, scale) = self.factors(term)?;
            let scale = scale.checked_mul(coefficient)?;
            let contained = divisor_factors.iter().all(|factor| {
                let place = factors.iter().position(|f| f == factor);
                place.map(|place| factors.remove(place)).is_some()
            });
            if contained && divisor_scale != 0 && scale % divisor_scale == 0 {
                let quotient = self.multiply(&factors, 1);
                multiples.add(ctx, quotient, scale.checked_div(divisor_scale)?)?;
            } else {
                rest.add_term(term, coefficient)?;
            }
        }
        // The divisor may itself be a sum that is part of the expression.
        if let Some((&term, &by)) = whole.terms.iter().next()
            && (1 < whole.terms.len() || whole.constant != 0)
        {
            let times = rest.coefficient(term).checked_div(by)?;
            let present = times != 0
                && whole.constant.checked_mul(times) == Some(rest.constant)
                && whole.terms.iter().all(|(&term, &coefficient)| {
                    coefficient.checked_mul(times) == Some(rest.coefficient(term))
                });
            if present {
                rest.add(ctx, divisor, times.checked_neg()?)?;
                multiples.constant = multiples.constant.checked_add(times)?;
            }
        }
        Some((multiples, rest))
    }

    /// The simplified remainder.
    pub(super) fn remainder(&mut self, lhs: Expr, rhs: Expr) -> Expr {
        let given = self.ctx.modulo(lhs, rhs);
        if MAX_DEPTH <= self.depth || !matches!(self.ctx.node(given), Node::Mod(..)) {
            return given;
        }
        if let Some(&simplified) = self.applied.get(&given) {
            return simplified;
        }
        self.depth += 1;
        let simplified = match self.ctx.as_constant(rhs) {
            Some(modulus) if modulus <= 0 => None,
            Some(modulus) => self.remainder_by_constant(lhs, modulus),
            None => self.remainder_by_symbol(lhs, rhs),
        };
        self.depth -= 1;
        let simplified = simplified.unwrap_or(given);
        self.applied.insert(given, simplified);
        simplified
    }

    /// A simpler form of `lhs mod modulus`, or `None` when no rule applies.
    fn remainder_by_constant(&mut self, lhs: Expr, modulus: i64) -> Option<Expr> {
        let ctx = self.ctx;
        if let Some(shifted) = self.shift_into_range(lhs, modulus) {
            return Some(shifted);
        }
        let reduced = self.reduce_coefficients(lhs, modulus)?;
        let numerator = self.sum(reduced)?;
        if numerator != lhs {
            return Some(self.remainder(numerator, ctx.constant(modulus)));
        }
        let sum = Sum::of(ctx, lhs)?;
        self.remainder_by_factor(&sum, lhs, modulus)
    }

    /// `x mod c == x - k*c` where `x floordiv c` is always `k`.
    fn shift_into_range(&mut self, lhs: Expr, modulus: i64) -> Option<Expr> {
        let interval = self.interval_of(lhs);
        let quotient = interval.floor_div(Interval::point(modulus)).as_point()?;
        let offset = quotient.checked_mul(modulus)?.checked_neg()?;
        self.add_scaled(lhs, self.ctx.constant(offset), 1)
    }

    /// The terms of `expr` with multiples of `modulus` taken away and remainders by multiples
    /// of it opened.
    fn reduce_coefficients(&mut self, expr: Expr, modulus: i64) -> Option<Sum> {
        let ctx = self.ctx;
        let given = Sum::of(ctx, expr)?;
        let mut opened = Sum { constant: given.constant.rem_euclid(modulus), ..Sum::default() };
        for (&term, &coefficient) in &given.terms {
            let coefficient = coefficient % modulus;
            match ctx.node(term) {
                // k*(y mod m) and k*y differ by a multiple of k*m.
                Node::Mod(value, by)
                    if ctx.as_constant(by).is_some_and(|by| {
                        0 < by
                            && i128::from(coefficient) * i128::from(by) % i128::from(modulus) == 0
                    }) =>
                {
                    opened.add(ctx, value, coefficient)?;
                }
                _ => opened.add_term(term, coefficient)?,
            }
        }
        let mut reduced = Sum { constant: opened.constant.rem_euclid(modulus), ..Sum::default() };
        for (&term, &coefficient) in &opened.terms {
            let coefficient = coefficient % modulus;
            // A factor that leaves 1 is cheaper as 1.
            let one = coefficient.rem_euclid(modulus) == 1;
            let coefficient = if one { 1 } else { coefficient };
            if coefficient != 0 {
                reduced.add_term(term, coefficient)?;
            }
        }
        Some(reduced)
    }

    /// `(g*a + r) mod c == g*((a + k) mod (c/g)) + (r - k*g)` where `r floordiv g` is always
    /// `k`, unless that is longer.
    fn remainder_by_factor(&mut self, sum: &Sum, lhs: Expr, modulus: i64) -> Option<Expr> {
        let ctx = self.ctx;
        let given = ctx.modulo(lhs, ctx.constant(modulus));
        for factor in common_factors(sum, modulus) {
            let (mut multiples, mut rest) = split(sum, factor)?;
            let interval = self.interval_of_sum(&rest);
            let Some(offset) = interval.floor_div(Interval::point(factor)).as_point() else {
                continue;
            };
            multiples.constant = multiples.constant.checked_add(offset)?;
            rest.constant = rest.constant.checked_sub(offset.checked_mul(factor)?)?;
            let multiples = self.sum(multiples)?;
            let remainder = self.remainder(multiples, ctx.constant(modulus / factor));
            rest.add(ctx, remainder, factor)?;
            let candidate = self.sum(rest)?;
            if ctx.cost(candidate) <= ctx.cost(given) {
                return Some(candidate);
            }
        }
        None
    }

    /// A simpler form of `lhs mod modulus`, or `None`. The rules hold for a modulus of either
    /// sign; the remainder has a value only where it is not zero.
    fn remainder_by_symbol(&mut self, lhs: Expr, modulus: Expr) -> Option<Expr> {
        let ctx = self.ctx;
        let (multiples, rest) = self.split_by_symbol(lhs, modulus)?;
        let mut changed = !multiples.terms.is_empty() || multiples.constant != 0;
        let mut opened = Sum { constant: rest.constant, ..Sum::default() };
        for (&term, &coefficient) in &rest.terms {
            match ctx.node(term) {
                Node::Mod(value, by) if by == modulus => {
                    opened.add(ctx, value, coefficient)?;
                    changed = true;
                }
                _ => opened.add_term(term, coefficient)?,
            }
        }
        let rest = self.sum(opened)?;
        if ctx.as_constant(rest) == Some(0) || self.is_reduced(rest, modulus) {
            return Some(rest);
        }
        changed.then(|| ctx.modulo(rest, modulus))
    }

    fn interval_of_sum(&mut self, sum: &Sum) -> Interval {
        let mut total = Interval::point(sum.constant);
        for (&term, &coefficient) in &sum.terms {
            let scaled = self.interval_of(term).mul(Interval::point(coefficient));
            total = total.add(scaled);
        }
        total
    }
}

/// The common factors of the divisor with single coefficients, the largest first, without 1
/// and the divisor itself.
fn common_factors(sum: &Sum, divisor: i64) -> Vec<i64> {
    let divisor = divisor.unsigned_abs();
    let mut factors: Vec<i64> = sum
        .terms
        .values()
        .map(|coefficient| gcd(coefficient.unsigned_abs(), divisor))
        .filter(|&factor| 1 < factor && factor < divisor)
        .filter_map(|factor| i64::try_from(factor).ok())
        .collect();
    factors.sort_unstable_by(|a, b| b.cmp(a));
    factors.dedup();
    factors.truncate(MAX_FACTORS);
    factors
}

/// Splits a sum into `factor * first + second`, where `second` holds the constant.
fn split(sum: &Sum, factor: i64) -> Option<(Sum, Sum)> {
    let (mut multiples, mut rest) = (Sum::default(), Sum::default());
    for (&term, &coefficient) in &sum.terms {
        if coefficient % factor == 0 {
            multiples.add_term(term, coefficient / factor)?;
        } else {
            rest.add_term(term, coefficient)?;
        }
    }
    rest.constant = sum.constant;
    Some((multiples, rest))
}
