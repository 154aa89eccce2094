//! Flat forms as expressions: the rules of `write` where there are few quotients, all of sums of
//! variables. They lead to the same expressions; where they may not, nothing is written here.

use smallvec::SmallVec;

use super::{Flat, FlatForms, Linear, MAX_FLAT, Quotient};
use crate::expr::Expr;
use crate::simplify::write::{build, build_sorted};

/// The most quotients of a form that is written.
const MAX_WRITTEN: usize = 4;

/// Numbers of quotients.
type Numbers = SmallVec<[usize; MAX_WRITTEN]>;
/// Expressions with their coefficients.
type Terms = SmallVec<[(Expr, i64); MAX_FLAT + MAX_WRITTEN]>;

/// `scale * (value mod modulus)`.
struct Remainder {
    value: Flat,
    modulus: i64,
    scale: i64,
}

/// `coefficient * (leaf floordiv divisor)`; a variable is its own quotient by 1.
#[derive(Copy, Clone)]
struct LeafQuotient {
    leaf: usize,
    divisor: i64,
    coefficient: i64,
}

/// The parts that two quotients of one variable are written in.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Shortest {
    /// As they are.
    Quotients,
    /// `lower * ((x floordiv c) mod modulus) + upper * (x floordiv (c*modulus))`
    Digits { modulus: i64, upper: i64 },
}

impl FlatForms<'_> {
    /// What a form is written as; `None` where rules may apply that are not here.
    pub(in crate::simplify) fn write(&self, form: &Flat) -> Option<Expr> {
        if form.is_linear() {
            return Some(self.write_linear(&form.linear));
        }
        if let Some(written) = self.write_alone(form) {
            return Some(written);
        }
        let mut floors = Numbers::new();
        for (number, &coefficient) in form.quotients.iter().enumerate() {
            if coefficient != 0 {
                floors.push(number);
            }
        }
        if MAX_WRITTEN < floors.len() {
            return None;
        }
        let mut terms = Terms::new();
        // Quotients of variables are put together as digits only.
        if floors.iter().all(|&number| self.leaf_of(number).is_some()) {
            self.push_terms(form, &floors, &mut terms)?;
            return Some(build(self.ctx, &mut terms, form.linear.constant));
        }
        // The finest quotients first.
        floors.sort_unstable_by_key(|&number| self.quotients.all[number].divisor);
        let divisor = |number: usize| self.quotients.all[number].divisor;
        if floors.windows(2).any(|pair| divisor(pair[0]) == divisor(pair[1])) {
            return None;
        }
        let mut rest = *form;
        let mut found: SmallVec<[Remainder; 2]> = SmallVec::new();
        for &floor in floors.iter().rev() {
            self.take_remainder(&mut rest, floor, &floors, &mut found)?;
        }
        // Where nothing was taken, nothing is there.
        let mut left = floors.iter().filter(|&&floor| rest.quotients[floor] != 0);
        if !found.is_empty()
            && left.any(|&floor| self.find_candidate(&rest, floor, &floors, |_, _| true).1)
        {
            return None;
        }
        // Where nothing was found, more would be looked for among several.
        if found.is_empty() && 1 < floors.len() {
            return None;
        }
        let is_joined = |it: &Remainder| {
            let mut quotients = it.value.quotients.iter().zip(&rest.quotients);
            it.value.linear.constant != 0 && 0 < rest.linear.constant
                || quotients.any(|(&value, &rest)| value != 0 && rest != 0)
        };
        if found.iter().any(is_joined) {
            return None;
        }
        for &floor in &floors {
            if self.leaf_of(floor).is_none() {
                self.take_quotient(&mut rest, floor, &mut terms)?;
            }
        }
        let has_remainder = !found.is_empty();
        for remainder in found {
            terms.push(self.write_remainder(remainder)?);
        }
        self.push_terms(&rest, &floors, &mut terms)?;
        let written = build(self.ctx, &mut terms, rest.linear.constant);
        let is_shortest =
            !has_remainder || self.ctx.cost(written) <= self.least_operators(form, &floors)?;
        is_shortest.then_some(written)
    }

    /// Writes a quotient that stands alone, or a remainder of one, as most results of reshapes do.
    /// `None` for other forms.
    fn write_alone(&self, form: &Flat) -> Option<Expr> {
        if form.linear.constant != 0 || form.linear.present() != 0 {
            return None;
        }
        let mut numbers = (0..MAX_FLAT).filter(|&number| form.quotients[number] != 0);
        let (first, second) = (numbers.next()?, numbers.next());
        let all = &self.quotients.all;
        let (fine, coarse) = match second {
            Some(second) if all[second].divisor < all[first].divisor => (second, Some(first)),
            _ => (first, second),
        };
        if numbers.next().is_some() || form.quotients[fine] != 1 {
            return None;
        }
        let ctx = self.ctx;
        let Quotient { numerator, divisor, .. } = &all[fine];
        let write = || ctx.floor_div(self.write_linear(numerator), ctx.constant(*divisor));
        let Some(coarse) = coarse else { return Some(write()) };
        // x floordiv c - m*(x floordiv (c*m)) == (x floordiv c) mod m. That of a variable is a digit,
        // the others are always shorter so.
        let modulus = form.quotients[coarse].checked_neg()?;
        let is_remainder = self.leaf_of(fine).is_none()
            && divisor.checked_mul(modulus) == Some(all[coarse].divisor)
            && all[coarse].numerator == *numerator;
        is_remainder.then(|| ctx.modulo(write(), ctx.constant(modulus)))
    }

    /// Writes a sum of multiples of variables. Most results of one map divide the same.
    fn write_linear(&self, linear: &Linear) -> Expr {
        if let Some((known, written)) = self.last_written.get()
            && known == *linear
        {
            return written;
        }
        let mut terms = Terms::new();
        for (place, coefficient) in linear.terms() {
            terms.push((self.ctx.var(self.quotients.vars[place].0), coefficient));
        }
        let written = build_sorted(self.ctx, &terms, linear.constant);
        self.last_written.set(Some((*linear, written)));
        written
    }

    /// The only variable of a quotient that is one of a variable.
    fn leaf_of(&self, number: usize) -> Option<usize> {
        self.quotients.all[number].leaf
    }

    /// Whether a form is a variable or a quotient of one.
    fn is_digit(&self, form: &Flat) -> bool {
        if form.is_linear() {
            return form.linear.single().is_some();
        }
        let is_alone = form.linear == Linear::default();
        let quotient = form.only_quotient().filter(|_| is_alone);
        quotient.is_some_and(|number| self.leaf_of(number).is_some())
    }

    /// Goes through the sums and moduli whose remainders hold the quotient `floor`, where all terms are
    /// in `rest` with the opposite sign, until one is taken. Returns whether there is one, and whether
    /// it was taken.
    fn find_candidate(
        &self,
        rest: &Flat,
        floor: usize,
        floors: &Numbers,
        mut takes: impl FnMut(&Flat, i64) -> bool,
    ) -> (bool, bool) {
        let Quotient { numerator, divisor, .. } = &self.quotients.all[floor];
        let is_negative = rest.quotients[floor] < 0;
        let is_leaf = self.leaf_of(floor).is_some();
        let is_accepted = |value: &Flat| {
            let theirs = rest.linear.coefficients.iter().chain(&rest.quotients);
            let mut pairs = value.linear.coefficients.iter().chain(&value.quotients).zip(theirs);
            let are_opposite = pairs.all(|(&mine, &theirs)| {
                mine == 0 || theirs != 0 && ((mine < 0) == (theirs < 0)) == is_negative
            });
            are_opposite && value.quotients[floor] == 0 && !(is_leaf && self.is_digit(value))
        };
        let mut is_there = false;
        let mut is_taken = |value: &Flat, modulus: i64| {
            is_accepted(value) && {
                is_there = true;
                takes(value, modulus)
            }
        };
        let mut inside = floors.iter().rev().filter(|&&inner| {
            rest.quotients[inner] != 0 && self.quotients.all[inner].divisor < *divisor
        });
        let found = inside.any(|&inner| {
            self.over(floor, inner).is_some_and(|(value, modulus)| is_taken(&value, modulus))
        });
        let found = found
            || is_taken(&Flat::of(*numerator), *divisor)
            || self.quotients.aliases_of(floor).any(|(value, modulus)| is_taken(value, modulus));
        (is_there, found)
    }

    /// Takes a remainder that uses the quotient `floor` up out of `rest`. `None` where there are others
    /// that do not.
    fn take_remainder(
        &self,
        rest: &mut Flat,
        floor: usize,
        floors: &Numbers,
        found: &mut SmallVec<[Remainder; 2]>,
    ) -> Option<()> {
        let weight = rest.quotients[floor];
        if weight == 0 {
            return Some(());
        }
        // s*x - s*m*(x floordiv m) == s*(x mod m)
        let is_used_up = |value: &Flat, modulus: i64| {
            let scale = value.scale_to(rest)?;
            (scale.checked_mul(modulus)?.checked_neg() == Some(weight)).then_some(scale)
        };
        let (is_there, is_taken) = self.find_candidate(rest, floor, floors, |value, modulus| {
            let scale = is_used_up(value, modulus);
            found.extend(scale.map(|scale| Remainder { value: *value, modulus, scale }));
            scale.is_some()
        });
        if !is_taken {
            return (!is_there).then_some(());
        }
        let Remainder { value, scale, .. } = found.last()?;
        rest.add(value, scale.checked_neg()?)?;
        rest.quotients[floor] = 0;
        Some(())
    }

    /// Takes a quotient out of `rest`, with the multiples of its terms that go into it: `s*(x floordiv
    /// c) + s*k*t == s*((x + k*c*t) floordiv c)`.
    fn take_quotient(&self, rest: &mut Flat, floor: usize, terms: &mut Terms) -> Option<()> {
        let scale = rest.quotients[floor];
        if scale == 0 {
            return Some(());
        }
        let Quotient { numerator, divisor, .. } = &self.quotients.all[floor];
        let mut whole = *numerator;
        let take_in = |inside: &mut i64, outside: &mut i64| {
            if outside.checked_rem(scale)? == 0 {
                *inside = inside.checked_add((*outside / scale).checked_mul(*divisor)?)?;
                *outside = 0;
            }
            Some(())
        };
        for (place, _) in numerator.terms() {
            take_in(&mut whole.coefficients[place], &mut rest.linear.coefficients[place])?;
        }
        if whole.constant != 0 {
            take_in(&mut whole.constant, &mut rest.linear.constant)?;
        }
        rest.quotients[floor] = 0;
        let ctx = self.ctx;
        terms.push((ctx.floor_div(self.write_linear(&whole), ctx.constant(*divisor)), scale));
        Some(())
    }

    fn write_remainder(&self, remainder: Remainder) -> Option<(Expr, i64)> {
        let Remainder { mut value, mut modulus, mut scale } = remainder;
        // k*(x mod m) == (k*x) mod (k*m), where x has multiples only
        let has_multiples = |value: &[i64; MAX_FLAT]| {
            value.iter().all(|&coefficient| coefficient == 0 || 1 < coefficient.unsigned_abs())
        };
        if 1 < scale && has_multiples(&value.linear.coefficients) && has_multiples(&value.quotients)
        {
            // What has quotients needs their intervals.
            if !value.is_linear() {
                return None;
            }
            let mut scaled = Linear::default();
            scaled.add(&value.linear, scale)?;
            if !self.quotients.interval_of(&scaled).is_bounded() {
                return None;
            }
            (value, modulus, scale) = (Flat::of(scaled), modulus.checked_mul(scale)?, 1);
        }
        let value = self.write(&value)?;
        Some((self.ctx.modulo(value, self.ctx.constant(modulus)), scale))
    }

    /// Adds the terms of a form all quotients of which are quotients of variables, those of one
    /// variable as they are shortest. `None` where they are three or more.
    fn push_terms(&self, form: &Flat, floors: &Numbers, terms: &mut Terms) -> Option<()> {
        let ctx = self.ctx;
        let write = |it: LeafQuotient| {
            let leaf = ctx.var(self.quotients.vars[it.leaf].0);
            ctx.floor_div(leaf, ctx.constant(it.divisor))
        };
        let groups = self.leaf_quotients(form, floors);
        for (place, coefficient) in form.linear.terms() {
            if groups.iter().all(|group| group.leaf != place) {
                terms.push((ctx.var(self.quotients.vars[place].0), coefficient));
            }
        }
        for group in groups.chunk_by(|a, b| a.leaf == b.leaf) {
            match group {
                [only] => terms.push((write(*only), only.coefficient)),
                [low, high] => match shortest(*low, *high)? {
                    Shortest::Quotients => {
                        terms.extend([
                            (write(*low), low.coefficient),
                            (write(*high), high.coefficient),
                        ]);
                    }
                    Shortest::Digits { modulus, upper } => {
                        let digit = ctx.modulo(write(*low), ctx.constant(modulus));
                        terms.push((digit, low.coefficient));
                        if upper != 0 {
                            terms.push((write(*high), upper));
                        }
                    }
                },
                _ => return None,
            }
        }
        Some(())
    }

    /// The quotients of variables in a form, with the variables that have some, those of one variable
    /// side by side, from the finest on.
    fn leaf_quotients(
        &self,
        form: &Flat,
        floors: &Numbers,
    ) -> SmallVec<[LeafQuotient; MAX_WRITTEN]> {
        let mut found: SmallVec<[LeafQuotient; MAX_WRITTEN]> = SmallVec::new();
        for &number in floors {
            let coefficient = form.quotients[number];
            let Some(leaf) = self.leaf_of(number).filter(|_| coefficient != 0) else { continue };
            let whole = form.linear.coefficients[leaf];
            if whole != 0 && found.iter().all(|other| other.leaf != leaf) {
                found.push(LeafQuotient { leaf, divisor: 1, coefficient: whole });
            }
            let divisor = self.quotients.all[number].divisor;
            found.push(LeafQuotient { leaf, divisor, coefficient });
        }
        found.sort_unstable_by_key(|it| (it.leaf, it.divisor));
        found
    }

    /// A number of operators that a form does not fall below when remainders are not looked for; `None`
    /// where that is not clear.
    fn least_operators(&self, form: &Flat, floors: &Numbers) -> Option<u32> {
        let mut sizes: SmallVec<[u64; MAX_FLAT + MAX_WRITTEN]> = SmallVec::new();
        let (mut operators, mut terms) = (u32::from(form.linear.constant != 0), 0);
        let mut add_size = |coefficient: i64| {
            let size = coefficient.unsigned_abs();
            if size != 1 && !sizes.contains(&size) {
                sizes.push(size);
            }
        };
        let groups = self.leaf_quotients(form, floors);
        for group in groups.chunk_by(|a, b| a.leaf == b.leaf) {
            match group {
                [only] => {
                    operators += 1;
                    terms += 1;
                    add_size(only.coefficient);
                }
                [low, high] => {
                    let of_low = u32::from(low.divisor != 1);
                    operators += of_low + 1;
                    terms += 1;
                    add_size(low.coefficient);
                    match shortest(*low, *high)? {
                        Shortest::Quotients => {
                            terms += 1;
                            add_size(high.coefficient);
                        }
                        Shortest::Digits { upper: 0, .. } => {}
                        Shortest::Digits { upper, .. } => {
                            operators += 1;
                            terms += 1;
                            add_size(upper);
                        }
                    }
                }
                _ => return None,
            }
        }
        for (place, coefficient) in form.linear.terms() {
            if groups.iter().all(|group| group.leaf != place) {
                terms += 1;
                add_size(coefficient);
            }
        }
        for &number in floors {
            let numerator = &self.quotients.all[number].numerator;
            if self.leaf_of(number).is_none() && form.quotients[number] != 0 {
                terms += 1;
                add_size(form.quotients[number]);
                // One for the quotient, one per term but the first.
                operators += numerator.present().count_ones().max(1);
                operators += u32::from(numerator.constant != 0);
                operators += u32::from(numerator.terms().any(|(_, factor)| factor != 1));
            }
        }
        let factors = u32::try_from(sizes.len()).ok()?;
        Some(operators + factors + u32::saturating_sub(terms, 1))
    }

    /// `x` and `n` with `x floordiv n` for the coarse quotient, where `x` holds the fine one.
    fn over(&self, coarse: usize, fine: usize) -> Option<(Flat, i64)> {
        let (coarse, inner) = (&self.quotients.all[coarse], &self.quotients.all[fine]);
        let by = inner.divisor;
        if coarse.divisor % by != 0 {
            return None;
        }
        let mut difference = coarse.numerator;
        difference.add(&inner.numerator, -1)?;
        let is_multiple = difference.constant % by == 0
            && difference.terms().all(|(_, coefficient)| coefficient % by == 0);
        if !is_multiple {
            return None;
        }
        let mut value = Flat::default();
        for (place, coefficient) in difference.terms() {
            value.linear.coefficients[place] = coefficient / by;
        }
        value.linear.constant = difference.constant / by;
        value.quotients[fine] = 1;
        Some((value, coarse.divisor / by))
    }
}

/// How a sum of two quotients of one variable is written. `None` where they may be one quotient of a multiple,
/// or a remainder and a rest of the lower.
fn shortest(low: LeafQuotient, high: LeafQuotient) -> Option<Shortest> {
    if low.coefficient.checked_rem(high.coefficient)? == 0 {
        return None;
    }
    let of_factor = |factor: i64| u32::from(factor.unsigned_abs() != 1);
    let of_low = u32::from(low.divisor != 1);
    let of_low_term = 1 + of_low + of_factor(low.coefficient);
    let plain = of_low_term + 2 + of_factor(high.coefficient);
    if high.divisor % low.divisor == 0 {
        let modulus = high.divisor / low.divisor;
        let upper = low.coefficient.checked_mul(modulus)?.checked_add(high.coefficient)?;
        let of_upper = if upper == 0 { 0 } else { 2 + of_factor(upper) };
        if upper != 0 && high.coefficient % modulus == 0 {
            return None;
        }
        if of_low_term + 1 + of_upper <= plain {
            return Some(Shortest::Digits { modulus, upper });
        }
    }
    Some(Shortest::Quotients)
}
