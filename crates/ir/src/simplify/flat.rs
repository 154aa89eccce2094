//! Normal forms of small expressions, in arrays of coefficients.
//!
//! Reshapes, slices and windows of few dimensions have maps whose quotients are quotients of sums of
//! variables. The normal form of such an expression, a *flat* one, is two arrays of coefficients: of
//! the variables, and of the quotients that have been met. The rules are those of `division` where
//! all terms are leaves; what needs others has no flat form. Nothing is looked up by hash, and
//! nothing is allocated but for new quotients.
//!
//! Example: for `d0` in `[0, 3]` and `d1` in `[0, 5]`, the sum `6*((d0*6 + d1) floordiv 6) + (d0*6 +
//! d1) mod 6` is flat: the quotient is `d0`, so all of it is `d0*6 + d1`.

mod write;

use std::cell::Cell;

use smallvec::SmallVec;

use super::Simplifier;
use super::division::{Cancelling, MAX_ALIASES, cancelling_factor};
use super::sum::{Atom, Sum};
use crate::expr::{Context, Expr, Node, Var};
use crate::interval::Interval;
use crate::map::IndexingMap;

/// The most variables of a map, and the most quotients that are met.
const MAX_FLAT: usize = 8;

/// Multiples of the variables of a map, by their position, and a constant.
#[derive(Copy, Clone, Default, Debug)]
struct Linear {
    coefficients: [i64; MAX_FLAT],
    constant: i64,
}

impl PartialEq for Linear {
    fn eq(&self, other: &Self) -> bool {
        // The comparison of arrays would be a call.
        let pairs = self.coefficients.iter().zip(&other.coefficients);
        pairs.fold(self.constant ^ other.constant, |all, (mine, theirs)| all | mine ^ theirs) == 0
    }
}

impl Eq for Linear {}

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

    /// The only variable, where it stands alone and once.
    fn single(&self) -> Option<usize> {
        let present = self.present();
        let place = present.trailing_zeros() as usize;
        let is_single = self.constant == 0 && present.is_power_of_two();
        (is_single && self.coefficients[place] == 1).then_some(place)
    }

    /// A bit per term that is there.
    #[inline]
    fn present(&self) -> u32 {
        present(&self.coefficients)
    }
}

/// A bit per coefficient that is not zero.
#[inline]
fn present(coefficients: &[i64; MAX_FLAT]) -> u32 {
    let bit = |(place, &coefficient): (u32, &i64)| u32::from(coefficient != 0) << place;
    (0..).zip(coefficients).map(bit).fold(0, |all, bit| all | bit)
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
        if !other.is_linear() {
            add_scaled(&mut self.quotients, &other.quotients, factor)?;
        }
        self.linear.add(&other.linear, factor)
    }

    fn is_linear(&self) -> bool {
        // Not a comparison of arrays, which would be a call.
        self.quotients.iter().fold(0, |all, coefficient| all | coefficient) == 0
    }

    /// The number of the only quotient, where that is there once.
    fn only_quotient(&self) -> Option<usize> {
        let present = present(&self.quotients);
        let number = present.trailing_zeros() as usize;
        (present.is_power_of_two() && self.quotients[number] == 1).then_some(number)
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
#[derive(Copy, Clone, Debug)]
struct Quotient {
    numerator: Linear,
    divisor: i64,
    /// The only variable, where it is a quotient of one.
    leaf: Option<usize>,
    /// The term of the simplifier that it is, once there is one.
    atom: Option<Atom>,
}

impl Quotient {
    fn is(&self, numerator: &Linear, divisor: i64) -> bool {
        self.divisor == divisor && self.numerator == *numerator
    }
}

/// The quotients that flat forms are made of. Contexts keep the memory of the last ones for the next.
#[derive(Default, Debug)]
struct Quotients {
    vars: Vec<(Var, Interval)>,
    /// The forms of the expressions that are read in the place of dimension variables, once they are
    /// asked for.
    read: Vec<Option<Flat>>,
    /// The same as they are written, with quotients of `written`.
    read_as_written: Vec<Option<Flat>>,
    /// Numerators and divisors to which no rule was applied.
    written: Vec<(Linear, i64)>,
    all: Vec<Quotient>,
    /// Other numerators and divisors with the same quotient on the domain, by number of the quotient.
    aliases: Vec<(usize, Flat, i64)>,
    /// The quotients of sums without multiples of the divisor that were asked for.
    known: Vec<(Linear, i64, Flat)>,
}

/// What expressions are read over, and how.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Reading {
    /// The variables.
    Own,
    /// Other expressions in the place of dimension variables.
    Composed,
    /// The variables, with the quotients as they are written.
    Written,
    /// Expressions with the quotients as they are written in the place of dimension variables.
    ComposedAsWritten,
}

/// The flat forms of expressions over the variables of one map, the bounds of which are constants.
pub(super) struct FlatForms<'c> {
    ctx: &'c Context,
    /// The numbers of the first range variable and of the first runtime variable.
    places: [usize; 2],
    quotients: Quotients,
    /// What is read in the place of dimension variables.
    read: &'c [Expr],
    /// The last operand of a division and how it was read.
    last: Option<(Expr, Reading)>,
    /// Its form.
    last_form: Flat,
    /// The last sum of variables that was written, and as what.
    last_written: Cell<Option<(Linear, Expr)>>,
    /// The terms of a simplifier that the variables are.
    atoms: [Option<Atom>; MAX_FLAT],
}

impl Drop for FlatForms<'_> {
    fn drop(&mut self) {
        let mut quotients = std::mem::take(&mut self.quotients);
        quotients.vars.clear();
        quotients.read.clear();
        quotients.read_as_written.clear();
        quotients.written.clear();
        quotients.all.clear();
        quotients.aliases.clear();
        quotients.known.clear();
        self.ctx.keep_scratch(quotients);
    }
}

impl<'c> FlatForms<'c> {
    /// The forms with expressions that are read in the place of the dimension variables. `None` where
    /// there are many variables, or bounds that are no constants.
    pub(super) fn reading(ctx: &'c Context, map: &IndexingMap, read: &'c [Expr]) -> Option<Self> {
        let places = [map.dims.len(), map.dims.len() + map.ranges.len()];
        let mut quotients: Quotients = ctx.take_scratch();
        for (var, variable) in map.vars() {
            if MAX_FLAT <= quotients.vars.len() {
                return None;
            }
            quotients.vars.push((var, variable.constant_interval(ctx)?));
        }
        Some(Self {
            ctx,
            places,
            quotients,
            read,
            last: None,
            last_form: Flat::default(),
            last_written: Cell::new(None),
            atoms: [None; MAX_FLAT],
        })
    }

    /// The flat form of `expr` with what is read for the dimension variables. `None` where there is no
    /// such form.
    pub(super) fn expand(&mut self, expr: Expr) -> Option<Flat> {
        self.expand_by(expr, Reading::Composed)
    }

    fn expand_by(&mut self, expr: Expr, reading: Reading) -> Option<Flat> {
        if !self.ctx.are_small(&[expr]) {
            return None;
        }
        let mut form = Flat::default();
        self.add_to(&mut form, expr, 1, reading)?;
        Some(form)
    }

    /// The sum of multiples of variables that an expression over what is read is, where quotients as
    /// they are written cancel: those of one map mostly do, in the position of an element.
    fn linear_of(&mut self, expr: Expr) -> Option<Linear> {
        if self.quotients.read_as_written.is_empty() {
            for &expr in self.read {
                let form = self.expand_by(expr, Reading::Written);
                self.quotients.read_as_written.push(form);
            }
        }
        let mut form = Flat::default();
        self.add_to(&mut form, expr, 1, Reading::ComposedAsWritten)?;
        form.is_linear().then_some(form.linear)
    }

    /// The form of what is read in the place of a dimension variable.
    fn form_of_read(&mut self, dim: u32) -> Option<&Flat> {
        if self.quotients.read.is_empty() {
            for &expr in self.read {
                let form = self.expand_by(expr, Reading::Own);
                self.quotients.read.push(form);
            }
        }
        self.quotients.read.get(dim as usize)?.as_ref()
    }

    /// Adds a multiple of `expr`. Recursion is limited by the number of operators.
    fn add_to(
        &mut self,
        form: &mut Flat,
        mut expr: Expr,
        mut factor: i64,
        reading: Reading,
    ) -> Option<()> {
        loop {
            match self.ctx.node(expr) {
                Node::Const(value) => {
                    let value = value.checked_mul(factor)?;
                    form.linear.constant = form.linear.constant.checked_add(value)?;
                    return Some(());
                }
                Node::Var(var) => return self.add_var(form, var, factor, reading),
                Node::Add(lhs, rhs) => {
                    self.add_to(form, lhs, factor, reading)?;
                    expr = rhs;
                }
                Node::Mul(value, by) => {
                    factor = factor.checked_mul(self.ctx.as_constant(by)?)?;
                    expr = value;
                }
                node @ (Node::FloorDiv(..) | Node::Mod(..)) => {
                    return self.add_division(form, node, factor, reading);
                }
                _ => return None,
            }
        }
    }

    /// Adds a multiple of a variable, or of what is read in its place.
    fn add_var(&mut self, form: &mut Flat, var: Var, factor: i64, reading: Reading) -> Option<()> {
        match (var, reading) {
            (Var::Dim(i), Reading::Composed) => return form.add(self.form_of_read(i)?, factor),
            (Var::Dim(i), Reading::ComposedAsWritten) => {
                return form.add(self.quotients.read_as_written.get(i as usize)?.as_ref()?, factor);
            }
            _ => {}
        }
        let place = self.place_of(var)?;
        if let Some(value) = self.quotients.vars[place].1.as_point() {
            let value = value.checked_mul(factor)?;
            form.linear.constant = form.linear.constant.checked_add(value)?;
        } else {
            let to = &mut form.linear.coefficients[place];
            *to = to.checked_add(factor)?;
        }
        Some(())
    }

    /// Adds a multiple of a quotient rounded down or of a remainder.
    #[inline(never)]
    fn add_division(
        &mut self,
        form: &mut Flat,
        node: Node,
        mut factor: i64,
        reading: Reading,
    ) -> Option<()> {
        let (value, by) = node.operands()?;
        let by = self.ctx.as_constant(by).filter(|&by| 0 < by)?;
        let nested = match self.ctx.node(value) {
            Node::FloorDiv(..) | Node::Mod(..) => {
                let mut nested = Flat::default();
                self.add_to(&mut nested, value, 1, reading)?;
                Some(nested)
            }
            _ => {
                self.find_dividend(value, reading)?;
                None
            }
        };
        let value = nested.as_ref().unwrap_or(&self.last_form);
        if let Node::Mod(..) = node {
            // x mod c == x - c*(x floordiv c)
            form.add(value, factor)?;
            factor = factor.checked_mul(by)?.checked_neg()?;
        }
        if reading == Reading::Written {
            self.quotients.add_written(form, value, by, factor)
        } else {
            self.quotients.add_quotient(form, value, by, factor)
        }
    }

    /// Makes the form of a sum that is divided the last. The results of one map often divide the same
    /// sum.
    fn find_dividend(&mut self, value: Expr, reading: Reading) -> Option<()> {
        let key = (value, reading);
        if self.last != Some(key) {
            let linear = match reading {
                Reading::Composed => self.linear_of(value),
                Reading::ComposedAsWritten => return None,
                Reading::Own | Reading::Written => None,
            };
            let mut dividend = Flat::of(linear.unwrap_or_default());
            if linear.is_none() {
                self.add_to(&mut dividend, value, 1, reading)?;
            }
            (self.last, self.last_form) = (Some(key), dividend);
        }
        Some(())
    }

    fn place_of(&self, var: Var) -> Option<usize> {
        let place = match var {
            Var::Dim(i) => i as usize,
            Var::Range(i) => self.places[0].checked_add(i as usize)?,
            Var::Runtime(i) => self.places[1].checked_add(i as usize)?,
        };
        self.quotients.vars.get(place).is_some_and(|&(found, _)| found == var).then_some(place)
    }

    /// The form as a sum of terms of a simplifier. `None` on overflow.
    pub(super) fn sum_of(&mut self, simplifier: &mut Simplifier<'_>, form: &Flat) -> Option<Sum> {
        for (atom, &(var, _)) in self.atoms.iter_mut().zip(&self.quotients.vars) {
            if atom.is_none() {
                *atom = simplifier.expand(self.ctx.var(var)).single();
            }
        }
        for number in 0..self.quotients.all.len() {
            if form.quotients[number] == 0 {
                continue;
            }
            let atom = match self.quotients.all[number].atom {
                Some(atom) => atom,
                None => {
                    let Quotient { numerator, divisor, .. } = self.quotients.all[number];
                    let values =
                        self.quotients.interval_of(&numerator).floor_div(Interval::point(divisor));
                    let numerator = self.known_sum_of(&Flat::of(numerator))?;
                    simplifier.quotient_atom(numerator, divisor, values)?
                }
            };
            self.quotients.all[number].atom = Some(atom);
            for (alias, divisor) in self.quotients.aliases_of(number) {
                if let Some(alias) = self.known_sum_of(alias) {
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
        for (quotient, &coefficient) in self.quotients.all.iter().zip(&form.quotients) {
            if coefficient != 0 {
                sum.append(&Sum::from(quotient.atom?), coefficient)?;
            }
        }
        sum.collect()?;
        Some(sum)
    }
}

impl Quotients {
    /// Adds `factor * (value floordiv divisor)` to `form`, for a positive divisor.
    fn add_quotient(
        &mut self,
        form: &mut Flat,
        value: &Flat,
        divisor: i64,
        factor: i64,
    ) -> Option<()> {
        if divisor == 1 {
            return form.add(value, factor);
        }
        if value.is_linear() {
            return self.add_quotient_of_linear(form, &value.linear, divisor, factor);
        }
        // (c*a + r) floordiv c == a + r floordiv c
        let mut rest = *value;
        for (rest, whole) in rest.quotients.iter_mut().zip(&mut form.quotients) {
            if *rest % divisor == 0 {
                *whole = whole.checked_add((*rest / divisor).checked_mul(factor)?)?;
                *rest = 0;
            }
        }
        if rest.is_linear() {
            return self.add_quotient_of_linear(form, &rest.linear, divisor, factor);
        }
        let number = rest.only_quotient()?;
        take_multiples(&mut rest.linear, divisor, &mut form.linear, factor)?;
        // (a + y floordiv b) floordiv c == (a*b + y) floordiv (b*c)
        let Quotient { numerator, divisor: by, .. } = &self.all[number];
        let (mut absorbed, by) = (*numerator, *by);
        absorbed.add(&rest.linear, by)?;
        let mut quotient = Flat::default();
        self.add_quotient_of_linear(&mut quotient, &absorbed, by.checked_mul(divisor)?, 1)?;
        self.add_alias(&quotient, &rest.linear, Some(number), divisor);
        form.add(&quotient, factor)
    }

    /// [`add_quotient`](Self::add_quotient) with no rules but those for congruent numerators and for a
    /// quotient of a quotient.
    fn add_written(
        &mut self,
        form: &mut Flat,
        value: &Flat,
        divisor: i64,
        factor: i64,
    ) -> Option<()> {
        let (mut numerator, mut by) = (value.linear, divisor);
        if !value.is_linear() {
            // (a + y floordiv b) floordiv c == (a*b + y) floordiv (b*c)
            let (inner, inner_divisor) = &self.written[value.only_quotient()?];
            by = inner_divisor.checked_mul(divisor)?;
            numerator = *inner;
            numerator.add(&value.linear, *inner_divisor)?;
        }
        let take = |part: &mut i64, whole: &mut i64| {
            let multiple = part.div_euclid(by).checked_mul(factor)?;
            *whole = whole.checked_add(multiple)?;
            *part = part.rem_euclid(by);
            Some(())
        };
        for (part, whole) in numerator.coefficients.iter_mut().zip(&mut form.linear.coefficients) {
            if *part != 0 {
                take(part, whole)?;
            }
        }
        take(&mut numerator.constant, &mut form.linear.constant)?;
        if numerator.present() == 0 {
            return Some(());
        }
        let found = self.written.iter().position(|it| it.1 == by && it.0 == numerator);
        let number = match found {
            Some(number) => number,
            None if self.written.len() == MAX_FLAT => return None,
            None => {
                self.written.push((numerator, by));
                self.written.len() - 1
            }
        };
        form.quotients[number] = form.quotients[number].checked_add(factor)?;
        Some(())
    }

    fn interval_of(&self, linear: &Linear) -> Interval {
        let values = linear.terms().fold(Interval::point(0), |values, (place, coefficient)| {
            values.add_multiple(self.vars[place].1, coefficient)
        });
        values.add(Interval::point(linear.constant))
    }

    /// The rules of [`Simplifier::reduced_quotient_of_leaves`].
    fn add_quotient_of_linear(
        &mut self,
        form: &mut Flat,
        given: &Linear,
        divisor: i64,
        factor: i64,
    ) -> Option<()> {
        if divisor == 1 {
            return form.linear.add(given, factor);
        }
        // (c*a + r) floordiv c == a + r floordiv c
        let mut rest = *given;
        take_multiples(&mut rest, divisor, &mut form.linear, factor)?;
        if rest.present() == 0 {
            return Some(());
        }
        let is_known = |(known, by, _): &(Linear, i64, Flat)| *by == divisor && *known == rest;
        if let Some(place) = self.known.iter().position(is_known) {
            return form.add(&self.known[place].2, factor);
        }
        let mut quotient = Flat::default();
        self.add_reduced_quotient(&mut quotient, &rest, divisor)?;
        self.add_alias(&quotient, &rest, None, divisor);
        form.add(&quotient, factor)?;
        self.known.push((rest, divisor, quotient));
        Some(())
    }

    fn add_reduced_quotient(
        &mut self,
        form: &mut Flat,
        given: &Linear,
        divisor: i64,
    ) -> Option<()> {
        if let Some(value) = self.interval_of(given).only_quotient(divisor) {
            form.linear.constant = value;
            return Some(());
        }
        let mut numerator = *given;
        for (place, coefficient) in given.terms() {
            if !(0..divisor).contains(&coefficient) {
                numerator.coefficients[place] = coefficient.rem_euclid(divisor);
                form.linear.coefficients[place] = coefficient.div_euclid(divisor);
            }
        }
        if form.linear.present() != 0
            && let Some(value) = self.interval_of(&numerator).only_quotient(divisor)
        {
            form.linear.constant = value;
            return Some(());
        }
        let mut least = numerator;
        for coefficient in &mut least.coefficients {
            if divisor / 2 < *coefficient {
                *coefficient -= divisor;
            }
        }
        if least != numerator
            && let Some(value) = self.interval_of(&least).only_quotient(divisor)
        {
            for (place, coefficient) in numerator.terms() {
                let moved = (coefficient - least.coefficients[place]) / divisor;
                form.linear.coefficients[place] += moved;
            }
            form.linear.constant = value;
            return Some(());
        }
        let mut terms: SmallVec<[(i64, Interval); MAX_FLAT]> = SmallVec::new();
        for (place, coefficient) in numerator.terms() {
            terms.push((coefficient, self.vars[place].1));
        }
        if let Some(Cancelling { factor, offset, rest }) =
            cancelling_factor(&terms, numerator.constant, divisor)
        {
            let mut reduced = Linear { constant: offset, ..Linear::default() };
            for (place, coefficient) in numerator.terms() {
                let left = rest.of(coefficient, factor);
                reduced.coefficients[place] = coefficient.checked_sub(left)? / factor;
            }
            return self.add_quotient_of_linear(form, &reduced, divisor / factor, 1);
        }
        let number = match self.all.iter().position(|it| it.is(&numerator, divisor)) {
            Some(number) => number,
            None if self.all.len() == MAX_FLAT => return None,
            None => {
                let leaf = numerator.single();
                self.all.push(Quotient { numerator, divisor, leaf, atom: None });
                self.all.len() - 1
            }
        };
        form.quotients[number] += 1;
        Some(())
    }

    /// As [`Simplifier::add_alias`], of a sum of variables and perhaps one quotient.
    fn add_alias(
        &mut self,
        quotient: &Flat,
        numerator: &Linear,
        inner: Option<usize>,
        divisor: i64,
    ) -> Option<()> {
        let number = quotient.only_quotient()?;
        let mut alias = *numerator;
        alias.add(&quotient.linear, divisor.checked_neg()?)?;
        if inner.is_none() && self.all[number].is(&alias, divisor) {
            return Some(());
        }
        let mut alias = Flat::of(alias);
        if let Some(inner) = inner {
            alias.quotients[inner] = 1;
        }
        if self.aliases_of(number).count() < MAX_ALIASES
            && !self.aliases_of(number).any(|known| known == (&alias, divisor))
        {
            self.aliases.push((number, alias, divisor));
        }
        Some(())
    }

    /// Other numerators and divisors with the same quotient as the one with this number.
    fn aliases_of(&self, number: usize) -> impl Iterator<Item = (&Flat, i64)> {
        let own = self.aliases.iter().filter(move |&&(quotient, ..)| quotient == number);
        own.map(|(_, alias, divisor)| (alias, *divisor))
    }
}

/// `rest == divisor * a + r`: leaves `r` and adds `factor * a` to `form`, where the coefficients of
/// `r` are no multiples of the divisor, and its constant is in `[0, divisor - 1]`.
fn take_multiples(rest: &mut Linear, divisor: i64, form: &mut Linear, factor: i64) -> Option<()> {
    for place in 0..MAX_FLAT {
        let coefficient = rest.coefficients[place];
        let is_small = coefficient.unsigned_abs() < divisor.unsigned_abs();
        if !is_small && coefficient % divisor == 0 {
            let whole = (coefficient / divisor).checked_mul(factor)?;
            form.coefficients[place] = form.coefficients[place].checked_add(whole)?;
            rest.coefficients[place] = 0;
        }
    }
    if !(0..divisor).contains(&rest.constant) {
        let whole = rest.constant.div_euclid(divisor).checked_mul(factor)?;
        form.constant = form.constant.checked_add(whole)?;
        rest.constant = rest.constant.rem_euclid(divisor);
    }
    Some(())
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
