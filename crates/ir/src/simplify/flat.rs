//! Normal forms of small expressions, in arrays.
//!
//! Reshapes, slices and windows of few dimensions have maps whose quotients are quotients of sums of
//! variables. The normal form of such an expression, a *flat* one, is two arrays of coefficients: of
//! the variables, and of the quotients that have been met. The rules are those of `division` where
//! all terms are leaves; what needs others has no flat form. Nothing is looked up by hash, and
//! nothing is allocated but for new quotients.
//!
//! Example: for `d0` in `[0, 3]` and `d1` in `[0, 5]`, the sum `6*((d0*6 + d1) floordiv 6) + (d0*6 +
//! d1) mod 6` is flat: the quotient is `d0`, so all of it is `d0*6 + d1`.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::division::{Cancelling, MAX_ALIASES, cancelling_factor};
use super::sum::{Atom, Sum};
use super::{Simplifier, build};
use crate::expr::{Context, Expr, Node, Var};
use crate::interval::Interval;
use crate::map::IndexingMap;

/// The most variables of a map, and the most quotients that are met.
const MAX_FLAT: usize = 8;

/// Multiples of the variables of a map, by their position, and a constant.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
struct Linear {
    coefficients: [i64; MAX_FLAT],
    constant: i64,
}

impl Linear {
    /// Adds `factor * other`; `None` on overflow.
    fn add(&mut self, other: &Linear, factor: i64) -> Option<()> {
        add_scaled(&mut self.coefficients, &other.coefficients, factor)?;
        self.constant = self.constant.checked_add(other.constant.checked_mul(factor)?)?;
        Some(())
    }

    /// The terms that are there, with their positions.
    #[inline]
    fn terms(&self) -> impl Iterator<Item = (usize, i64)> {
        let mut present = self.present();
        std::iter::from_fn(move || {
            let place = present.trailing_zeros() as usize;
            present &= present.wrapping_sub(1);
            self.coefficients.get(place).map(|&coefficient| (place, coefficient))
        })
    }

    /// A bit per term that is there.
    #[inline]
    fn present(&self) -> u32 {
        let bit = |(place, &coefficient): (u32, &i64)| u32::from(coefficient != 0) << place;
        (0..).zip(&self.coefficients).map(bit).fold(0, |all, bit| all | bit)
    }
}

/// Multiples of variables and of quotients, and a constant.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Flat {
    linear: Linear,
    quotients: [i64; MAX_FLAT],
}

impl Flat {
    fn of(linear: Linear) -> Flat {
        Flat { linear, quotients: [0; MAX_FLAT] }
    }

    fn add(&mut self, other: &Flat, factor: i64) -> Option<()> {
        add_scaled(&mut self.quotients, &other.quotients, factor)?;
        self.linear.add(&other.linear, factor)
    }

    fn is_linear(&self) -> bool {
        self.quotients == [0; MAX_FLAT]
    }

    /// The number of the only quotient, where that is there once.
    fn only_quotient(&self) -> Option<usize> {
        let mut present = (0..MAX_FLAT).filter(|&number| self.quotients[number] != 0);
        let number = present.next().filter(|&number| self.quotients[number] == 1)?;
        present.next().is_none().then_some(number)
    }

    /// The number by which to multiply the terms to get those of `other` at the same places, which may
    /// have more.
    fn scale_to(&self, other: &Flat) -> Option<i64> {
        let mine = self.linear.coefficients.iter().chain(&self.quotients);
        let theirs = other.linear.coefficients.iter().chain(&other.quotients);
        let mut scale = None;
        for (&mine, &theirs) in mine.zip(theirs).filter(|&(&mine, _)| mine != 0) {
            let times = *scale.get_or_insert(theirs.checked_div(mine)?);
            if times == 0 || mine.checked_mul(times) != Some(theirs) {
                return None;
            }
        }
        scale
    }
}

fn add_scaled(to: &mut [i64; MAX_FLAT], from: &[i64; MAX_FLAT], factor: i64) -> Option<()> {
    for (to, &from) in to.iter_mut().zip(from) {
        if from != 0 {
            *to = to.checked_add(from.checked_mul(factor)?)?;
        }
    }
    Some(())
}

/// `numerator floordiv divisor`, as far as the rules take it.
struct Quotient {
    numerator: Linear,
    divisor: i64,
    /// Other numerators and divisors with the same quotient on the domain.
    aliases: SmallVec<[(Flat, i64); 1]>,
    /// The term of the simplifier that it is, once there is one.
    atom: Option<Atom>,
}

/// The flat forms of expressions over the variables of one map, the bounds of which are constants.
pub(super) struct FlatForms<'c> {
    ctx: &'c Context,
    vars: SmallVec<[(Var, Interval); MAX_FLAT]>,
    /// The numbers of the first range variable and of the first runtime variable.
    places: [usize; 2],
    quotients: SmallVec<[Quotient; 2]>,
    /// The quotients of sums without multiples of the divisor that were asked for.
    known: SmallVec<[(Linear, i64, Flat); 4]>,
    /// The last operand of a division, whether it was one with others for its dimension variables,
    /// and its form.
    last: Option<(Expr, bool, Flat)>,
    /// The terms of a simplifier that the variables are.
    atoms: [Option<Atom>; MAX_FLAT],
}

impl<'c> FlatForms<'c> {
    /// `None` where there are many variables, or bounds that are no constants.
    pub(super) fn new(ctx: &'c Context, map: &IndexingMap) -> Option<Self> {
        let places = [map.dims.len(), map.dims.len() + map.ranges.len()];
        let mut vars = SmallVec::new();
        for (var, variable) in map.vars() {
            if MAX_FLAT <= vars.len() {
                return None;
            }
            vars.push((var, variable.constant_interval(ctx)?));
        }
        Some(Self {
            ctx,
            vars,
            places,
            quotients: SmallVec::new(),
            known: SmallVec::new(),
            last: None,
            atoms: [None; MAX_FLAT],
        })
    }

    /// The flat form of `expr`; with those of other expressions for the dimension variables, where
    /// `read` gives them.
    pub(super) fn expand(&mut self, expr: Expr, read: Option<&[Option<Flat>]>) -> Option<Flat> {
        if !self.ctx.are_small(&[expr]) {
            return None;
        }
        let mut form = Flat::default();
        self.add_to(&mut form, expr, 1, read)?;
        Some(form)
    }

    /// Adds a multiple of `expr`. Recursion is limited by the number of operators.
    fn add_to(
        &mut self,
        form: &mut Flat,
        expr: Expr,
        factor: i64,
        read: Option<&[Option<Flat>]>,
    ) -> Option<()> {
        let node = self.ctx.node(expr);
        match node {
            Node::Const(value) => {
                let value = value.checked_mul(factor)?;
                form.linear.constant = form.linear.constant.checked_add(value)?;
            }
            Node::Var(var) => match (var, read) {
                (Var::Dim(i), Some(read)) => {
                    let of_read = read.get(i as usize)?.as_ref()?;
                    form.add(of_read, factor)?;
                }
                _ => {
                    let place = self.place_of(var)?;
                    let to = match self.vars[place].1.as_point() {
                        Some(value) => {
                            let value = value.checked_mul(factor)?;
                            form.linear.constant = form.linear.constant.checked_add(value)?;
                            return Some(());
                        }
                        None => &mut form.linear.coefficients[place],
                    };
                    *to = to.checked_add(factor)?;
                }
            },
            Node::Add(lhs, rhs) => {
                self.add_to(form, lhs, factor, read)?;
                self.add_to(form, rhs, factor, read)?;
            }
            Node::Mul(value, by) => {
                let by = self.ctx.as_constant(by)?;
                self.add_to(form, value, factor.checked_mul(by)?, read)?;
            }
            Node::FloorDiv(value, by) | Node::Mod(value, by) => {
                let by = self.ctx.as_constant(by).filter(|&by| 0 < by)?;
                let value = self.dividend(value, read)?;
                let quotient = self.quotient(&value, by)?;
                if let Node::Mod(..) = node {
                    // x mod c == x - c*(x floordiv c)
                    form.add(&value, factor)?;
                    form.add(&quotient, factor.checked_mul(by)?.checked_neg()?)?;
                } else {
                    form.add(&quotient, factor)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// The form of an operand of a division: the results of one map often divide the same sum.
    fn dividend(&mut self, expr: Expr, read: Option<&[Option<Flat>]>) -> Option<Flat> {
        if let Some((last, is_read, form)) = &self.last
            && (*last, *is_read) == (expr, read.is_some())
        {
            return Some(*form);
        }
        let mut form = Flat::default();
        self.add_to(&mut form, expr, 1, read)?;
        self.last = Some((expr, read.is_some(), form));
        Some(form)
    }

    fn place_of(&self, var: Var) -> Option<usize> {
        let place = match var {
            Var::Dim(i) => i as usize,
            Var::Range(i) => self.places[0].checked_add(i as usize)?,
            Var::Runtime(i) => self.places[1].checked_add(i as usize)?,
        };
        self.vars.get(place).is_some_and(|&(found, _)| found == var).then_some(place)
    }

    /// `value floordiv divisor` for a positive divisor.
    fn quotient(&mut self, value: &Flat, divisor: i64) -> Option<Flat> {
        if divisor == 1 {
            return Some(*value);
        }
        if value.is_linear() {
            return self.quotient_of_linear(&value.linear, divisor);
        }
        // (c*a + r) floordiv c == a + r floordiv c
        let (mut whole, mut rest) = (Flat::default(), *value);
        for (rest, whole) in rest.quotients.iter_mut().zip(&mut whole.quotients) {
            if *rest % divisor == 0 {
                *whole = *rest / divisor;
                *rest = 0;
            }
        }
        if rest.is_linear() {
            let quotient = self.quotient_of_linear(&rest.linear, divisor)?;
            whole.add(&quotient, 1)?;
            return Some(whole);
        }
        let number = rest.only_quotient()?;
        for (rest, whole) in rest.linear.coefficients.iter_mut().zip(&mut whole.linear.coefficients)
        {
            if *rest % divisor == 0 {
                *whole = *rest / divisor;
                *rest = 0;
            }
        }
        whole.linear.constant = rest.linear.constant.div_euclid(divisor);
        rest.linear.constant = rest.linear.constant.rem_euclid(divisor);
        // (a + y floordiv b) floordiv c == (a*b + y) floordiv (b*c)
        let Quotient { numerator, divisor: by, .. } = &self.quotients[number];
        let (mut absorbed, by) = (*numerator, *by);
        absorbed.add(&rest.linear, by)?;
        let quotient = self.quotient_of_linear(&absorbed, by.checked_mul(divisor)?)?;
        self.add_alias(&quotient, &rest, divisor);
        whole.add(&quotient, 1)?;
        Some(whole)
    }

    fn interval_of(&self, linear: &Linear) -> Interval {
        let mut total = Interval::point(linear.constant);
        for (place, coefficient) in linear.terms() {
            total = total.add(self.vars[place].1.mul(Interval::point(coefficient)));
        }
        total
    }

    /// The rules of [`Simplifier::reduced_quotient_of_leaves`].
    fn quotient_of_linear(&mut self, given: &Linear, divisor: i64) -> Option<Flat> {
        if divisor == 1 {
            return Some(Flat::of(*given));
        }
        // (c*a + r) floordiv c == a + r floordiv c
        let (mut whole, mut rest) = (Flat::default(), Linear::default());
        let mut is_divided = true;
        for (place, coefficient) in given.terms() {
            if coefficient % divisor == 0 {
                whole.linear.coefficients[place] = coefficient / divisor;
            } else {
                rest.coefficients[place] = coefficient;
                is_divided = false;
            }
        }
        whole.linear.constant = given.constant.div_euclid(divisor);
        rest.constant = given.constant.rem_euclid(divisor);
        if is_divided {
            return Some(whole);
        }
        let is_known = |(known, by, _): &&(Linear, i64, Flat)| *by == divisor && *known == rest;
        if let Some((_, _, quotient)) = self.known.iter().find(is_known) {
            whole.add(quotient, 1)?;
            return Some(whole);
        }
        let quotient = self.reduced_quotient(&rest, divisor)?;
        self.add_alias(&quotient, &Flat::of(rest), divisor);
        whole.add(&quotient, 1)?;
        self.known.push((rest, divisor, quotient));
        Some(whole)
    }

    fn reduced_quotient(&mut self, given: &Linear, divisor: i64) -> Option<Flat> {
        let constant = |value| Flat::of(Linear { constant: value, ..Linear::default() });
        let quotient_of = |values: Interval| values.floor_div(Interval::point(divisor));
        let mut values = quotient_of(self.interval_of(given));
        if let Some(value) = values.as_point() {
            return Some(constant(value));
        }
        let (mut whole, mut numerator) = (Linear::default(), *given);
        for (place, coefficient) in given.terms() {
            numerator.coefficients[place] = coefficient.rem_euclid(divisor);
            whole.coefficients[place] = coefficient.div_euclid(divisor);
        }
        if numerator != *given {
            values = quotient_of(self.interval_of(&numerator));
            if let Some(value) = values.as_point() {
                whole.constant = value;
                return Some(Flat::of(whole));
            }
        }
        let mut terms: SmallVec<[(i64, Interval); MAX_FLAT]> = SmallVec::new();
        for (place, coefficient) in numerator.terms() {
            terms.push((coefficient, self.vars[place].1));
        }
        let mut whole = Flat::of(whole);
        match cancelling_factor(&terms, numerator.constant, divisor) {
            Some(Cancelling { factor, offset, rest }) => {
                let mut reduced = Linear { constant: offset, ..Linear::default() };
                for (place, coefficient) in numerator.terms() {
                    let left = rest.of(coefficient, factor);
                    reduced.coefficients[place] = coefficient.checked_sub(left)? / factor;
                }
                whole.add(&self.quotient_of_linear(&reduced, divisor / factor)?, 1)?;
            }
            None => {
                let is_same = |it: &Quotient| it.divisor == divisor && it.numerator == numerator;
                let number = match self.quotients.iter().position(is_same) {
                    Some(number) => number,
                    None if self.quotients.len() == MAX_FLAT => return None,
                    None => {
                        let aliases = SmallVec::new();
                        self.quotients.push(Quotient { numerator, divisor, aliases, atom: None });
                        self.quotients.len() - 1
                    }
                };
                whole.quotients[number] += 1;
            }
        }
        Some(whole)
    }

    /// As [`Simplifier::add_alias`].
    fn add_alias(&mut self, quotient: &Flat, numerator: &Flat, divisor: i64) -> Option<()> {
        let number = quotient.only_quotient()?;
        let (mut alias, mut rest) = (*numerator, *quotient);
        rest.quotients[number] = 0;
        alias.add(&rest, divisor.checked_neg()?)?;
        let own = &mut self.quotients[number];
        let is_own = alias == Flat::of(own.numerator) && divisor == own.divisor;
        let aliases = &mut own.aliases;
        if !is_own && aliases.len() < MAX_ALIASES && !aliases.contains(&(alias, divisor)) {
            aliases.push((alias, divisor));
        }
        Some(())
    }

    /// What a form is written as, where that is seen at once: a sum with at most one quotient, or one
    /// remainder. Others need the rules of `write`, which lead to the same for these.
    pub(super) fn write(&self, form: &Flat) -> Option<Expr> {
        let mut present = (0..self.quotients.len()).filter(|&number| form.quotients[number] != 0);
        let (first, second) = (present.next(), present.next());
        if present.next().is_some() {
            return None;
        }
        let by_divisor = |number: usize| self.quotients[number].divisor;
        match (first, second) {
            (None, _) => Some(self.write_linear(&form.linear, None)),
            (Some(only), None) if form.quotients[only] == 1 => self.write_with_quotient(form, only),
            (Some(only), None) => self.write_remainder(form, only, None),
            (Some(first), Some(second)) => {
                let (fine, coarse) = match by_divisor(first).cmp(&by_divisor(second)) {
                    Ordering::Less => (first, second),
                    Ordering::Equal => return None,
                    Ordering::Greater => (second, first),
                };
                self.write_remainder(form, coarse, Some(fine))
            }
        }
    }

    /// Writes a sum of multiples of variables, and a quotient.
    fn write_linear(&self, linear: &Linear, quotient: Option<Expr>) -> Expr {
        let mut terms: SmallVec<[(Expr, i64); MAX_FLAT + 1]> = SmallVec::new();
        for (place, coefficient) in linear.terms() {
            terms.push((self.ctx.var(self.vars[place].0), coefficient));
        }
        terms.extend(quotient.map(|quotient| (quotient, 1)));
        build(self.ctx, &mut terms, linear.constant)
    }

    /// The only variable of a quotient that is one of a variable: a digit.
    fn leaf_of(&self, number: usize) -> Option<usize> {
        let mut terms = self.quotients[number].numerator.terms();
        let (place, 1) = terms.next()? else { return None };
        let is_leaf = terms.next().is_none() && self.quotients[number].numerator.constant == 0;
        is_leaf.then_some(place)
    }

    /// `w + x floordiv c`, where what `w` has of the terms of `x` goes into the quotient:
    /// `w + k*t + x floordiv c == w + (x + k*c*t) floordiv c`.
    fn write_with_quotient(&self, form: &Flat, number: usize) -> Option<Expr> {
        let Quotient { numerator, divisor, aliases, .. } = &self.quotients[number];
        let (mut rest, mut whole) = (form.linear, *numerator);
        let may_be_remainder = |value: &Flat| value.linear.terms().all(|(_, factor)| factor < 0);
        if rest.terms().any(|(_, coefficient)| coefficient < 0)
            || aliases.iter().any(|(value, _)| may_be_remainder(value))
        {
            return None;
        }
        if let Some(leaf) = self.leaf_of(number) {
            if rest.coefficients[leaf] != 0 {
                return None;
            }
        } else {
            for (place, _) in numerator.terms() {
                let inside = rest.coefficients[place].checked_mul(*divisor)?;
                whole.coefficients[place] = whole.coefficients[place].checked_add(inside)?;
                rest.coefficients[place] = 0;
            }
            if whole.constant != 0 {
                let inside = rest.constant.checked_mul(*divisor)?;
                whole.constant = whole.constant.checked_add(inside)?;
                rest.constant = 0;
            }
        }
        let quotient = self.write_linear(&whole, None);
        let quotient = self.ctx.floor_div(quotient, self.ctx.constant(*divisor));
        Some(self.write_linear(&rest, Some(quotient)))
    }

    /// A remainder by the coarsest quotient, where the form is nothing else. `fine` is the other
    /// quotient.
    fn write_remainder(&self, form: &Flat, coarse: usize, fine: Option<usize>) -> Option<Expr> {
        let Quotient { numerator, divisor, aliases, .. } = &self.quotients[coarse];
        let modulus = form.quotients[coarse].checked_neg().filter(|&modulus| 1 < modulus)?;
        let mut value = *form;
        value.quotients[coarse] = 0;
        if self.leaf_of(coarse).is_some() {
            // Digits: (x floordiv c) mod m == x floordiv c - m*(x floordiv (c*m))
            let (known, by) = match fine {
                Some(fine) => (self.quotients[fine].numerator, self.quotients[fine].divisor),
                None => (value.linear, 1),
            };
            let is_digit = known == *numerator
                && by.checked_mul(modulus) == Some(*divisor)
                && fine
                    .is_none_or(|it| value.quotients[it] == 1 && value.linear == Linear::default());
            if !is_digit {
                return None;
            }
        } else {
            // The first sum with such terms has to be this one.
            let over = fine.and_then(|fine| self.over(coarse, fine));
            let own = (Flat::of(*numerator), *divisor);
            let candidates = over.iter().chain([&own]).chain(aliases);
            let mut matching = candidates.filter(|(candidate, by)| {
                candidate.scale_to(&value).is_some_and(|it| it.checked_mul(*by) == Some(modulus))
            });
            if *matching.next()? != (value, modulus) {
                return None;
            }
        }
        let value = match fine {
            None => self.write_linear(&value.linear, None),
            Some(fine) if value.quotients[fine] == 1 => self.write_with_quotient(&value, fine)?,
            Some(_) => return None,
        };
        Some(self.ctx.modulo(value, self.ctx.constant(modulus)))
    }

    /// `x` and `n` with `x floordiv n` for the coarse quotient, where `x` holds the fine one.
    fn over(&self, coarse: usize, fine: usize) -> Option<(Flat, i64)> {
        let (coarse, inner) = (&self.quotients[coarse], &self.quotients[fine]);
        let mut difference = coarse.numerator;
        difference.add(&inner.numerator, -1)?;
        let by = inner.divisor;
        let is_multiple = difference.constant % by == 0
            && difference.terms().all(|(_, coefficient)| coefficient % by == 0);
        if coarse.divisor % by != 0 || !is_multiple {
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

    /// The form as a sum of terms of a simplifier. `None` on overflow.
    pub(super) fn sum_of(&mut self, simplifier: &mut Simplifier<'_>, form: &Flat) -> Option<Sum> {
        for (atom, &(var, _)) in self.atoms.iter_mut().zip(&self.vars) {
            if atom.is_none() {
                *atom = simplifier.expand(self.ctx.var(var)).single();
            }
        }
        for number in 0..self.quotients.len() {
            if form.quotients[number] == 0 {
                continue;
            }
            let atom = match self.quotients[number].atom {
                Some(atom) => atom,
                None => {
                    let Quotient { numerator, divisor, .. } = self.quotients[number];
                    let values = self.interval_of(&numerator).floor_div(Interval::point(divisor));
                    let numerator = self.known_sum_of(&Flat::of(numerator))?;
                    simplifier.quotient_atom(numerator, divisor, values)?
                }
            };
            self.quotients[number].atom = Some(atom);
            for place in 0..self.quotients[number].aliases.len() {
                let (alias, divisor) = self.quotients[number].aliases[place];
                if let Some(alias) = self.known_sum_of(&alias) {
                    simplifier.note_alias(atom, alias, divisor);
                }
            }
        }
        self.known_sum_of(form)
    }

    /// [`sum_of`](Self::sum_of) where the simplifier has all the terms; `None` where it has not.
    fn known_sum_of(&self, form: &Flat) -> Option<Sum> {
        let mut sum = Sum::constant(form.linear.constant);
        for (place, coefficient) in form.linear.terms() {
            sum.append(&Sum::from(self.atoms[place]?), coefficient)?;
        }
        for (quotient, &coefficient) in self.quotients.iter().zip(&form.quotients) {
            if coefficient != 0 {
                sum.append(&Sum::from(quotient.atom?), coefficient)?;
            }
        }
        sum.collect()?;
        Some(sum)
    }
}

impl Simplifier<'_> {
    /// The term for a quotient that no rule applies to.
    fn quotient_atom(&mut self, numerator: Sum, divisor: i64, values: Interval) -> Option<Atom> {
        let key = (numerator, divisor);
        if let Some(quotient) = self.tables.quotients.get(&key) {
            return quotient.single();
        }
        let atom = self.floor_atom_of(key.0.clone(), divisor, values);
        self.tables.quotients.insert(key, Sum::from(atom));
        Some(atom)
    }
}
