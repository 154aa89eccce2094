//! A sound prover for inequalities between index expressions.
//!
//! `e >= 0` is asked for all values of the variables within their bounds, which may be expressions
//! over other variables, and under assumed facts. The method:
//!
//! 1. The goal becomes a canonical [polynomial](crate::polynomial), its terms divided by their
//!    common factor.
//! 2. Facts that share an atom with it are collected: bounds, assumptions, and what is known of the
//!    atoms themselves (`c*(x floordiv c)` lies in `[x - c + 1, x]`, `x mod c` in `[0, c - 1]`, a
//!    minimum is at most each of its arguments). A fact that bounds a minimum from below or a
//!    maximum from above becomes one per argument.
//! 3. With every monomial as a variable of its own, the goal is a consequence over the integers
//!    when an exact linear program says so (Farkas' lemma).
//! 4. Where products of variables occur, the opposite of the goal joins the facts, products of two
//!    or three facts are added (the reformulation-linearization technique, Sherali and Adams 1990),
//!    and the linear program looks for a contradiction.
//! 5. Otherwise a minimum or maximum in the goal or in a fact is split: one case per argument that
//!    may be the least or the greatest, all of which have to hold.
//!
//! Limits: not complete for products and for divisibility. Numbers of facts, cases and questions
//! are bounded by the constants below, so that every answer comes in bounded time; what they cut
//! off is [`Verdict::Unknown`].

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::expr::{Context, Expr, Node, Var};
use crate::linear_program::{Affine, follows};
use crate::map::{Constraint, IndexingMap};
use crate::polynomial::{Extremum, Monomial, Normalizer, Polynomial, Result, remove_factor};

/// The most facts taken into one linear program, products not counted.
const MAX_FACTS: usize = 128;
/// The most facts taken because of one atom, so that a size that everything uses does not crowd out
/// the rest.
const MAX_FACTS_PER_ATOM: usize = 48;
/// The most products of facts taken into one linear program.
const MAX_PRODUCTS: usize = 96;
/// The most linear programs for one question.
const MAX_PROGRAMS: usize = 96;
/// The most tableau entries that the linear programs of one question touch.
const MAX_WORK: usize = 1 << 20;
/// How deep case splits nest, and side questions about divisors and numerators with them.
const MAX_DEPTH: usize = 6;
/// The most facts that one assumption with minima and maxima becomes.
const MAX_CONJUNCTS: usize = 32;
/// Constants from here on bound sizes in general and say nothing about products.
const LARGE: u64 = 1 << 30;

/// What is known of a claim about all values of the variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// True for all values.
    Proved,
    /// False for all values.
    Refuted,
    /// Neither is shown.
    Unknown,
}

/// Bounds and facts, and the questions that they answer.
///
/// ```
/// use tc_ir::expr::{Context, Var};
/// use tc_ir::prove::{Prover, Verdict};
/// let ctx = Context::new();
/// let (n, i) = (ctx.runtime(0), ctx.dim(0));
/// let mut prover = Prover::new(&ctx);
/// prover.bound(Var::Runtime(0), Some(ctx.constant(1)), None);
/// prover.bound(Var::Dim(0), Some(ctx.constant(0)), Some(ctx.sub(n, ctx.constant(1))));
/// // i / 2 < n
/// let half = ctx.floor_div(i, ctx.constant(2));
/// assert_eq!(prover.at_most(half, ctx.sub(n, ctx.constant(1))), Verdict::Proved);
/// assert_eq!(prover.at_most(n, i), Verdict::Refuted);
/// assert_eq!(prover.at_most(ctx.constant(1), i), Verdict::Unknown);
/// ```
pub struct Prover<'c> {
    context: &'c Context,
    facts: Facts,
    answers: RefCell<HashMap<Polynomial, bool>>,
}

impl<'c> Prover<'c> {
    /// A prover that knows nothing about any variable.
    pub fn new(context: &'c Context) -> Self {
        Self { context, facts: Facts::default(), answers: RefCell::default() }
    }

    /// A prover that knows the bounds and the constraints of a map.
    pub fn for_domain(context: &'c Context, map: &IndexingMap) -> Self {
        let mut prover = Self::new(context);
        for (var, variable) in map.vars() {
            prover.bound(var, variable.lower, variable.upper);
        }
        for Constraint { expr, interval } in &map.constraints {
            if interval.lo != i64::MIN {
                prover.assume_at_most(context.constant(interval.lo), *expr);
            }
            if interval.hi != i64::MAX {
                prover.assume_at_most(*expr, context.constant(interval.hi));
            }
        }
        prover
    }

    /// A prover for the same context with the same facts, to which more can be added.
    pub fn fork(&self) -> Self {
        Self { context: self.context, facts: self.facts.clone(), answers: RefCell::default() }
    }

    /// The arena of the expressions.
    pub fn context(&self) -> &'c Context {
        self.context
    }

    /// Assumes `lower <= var` and `var <= upper`. Bounds may use other variables.
    pub fn bound(&mut self, var: Var, lower: Option<Expr>, upper: Option<Expr>) {
        let var = self.context.var(var);
        if let Some(lower) = lower {
            self.assume_at_most(lower, var);
        }
        if let Some(upper) = upper {
            self.assume_at_most(var, upper);
        }
    }

    /// Assumes `a <= b`. A fact too large for the canonical form is left out, which is sound.
    pub fn assume_at_most(&mut self, a: Expr, b: Expr) {
        let mut normalizer = Normalizer::new(self.context);
        let difference = difference(&mut normalizer, a, b);
        if let Ok(facts) = difference.and_then(|fact| conjuncts(&mut normalizer, fact)) {
            facts.into_iter().for_each(|fact| self.facts.push(fact));
            self.answers.borrow_mut().clear();
        }
    }

    /// Whether a contradiction between bounds and facts is shown with at most so many linear
    /// programs, and no more than for any question.
    pub(crate) fn contradicts_itself(&self, num_programs: usize) -> bool {
        let mut normalizer = Normalizer::new(self.context);
        let programs = MAX_PROGRAMS.saturating_sub(num_programs);
        let mut search = Search { normalizer: &mut normalizer, programs, work: MAX_WORK };
        search.implied(&Polynomial::constant(-1), &self.facts, 0).unwrap_or(false)
    }

    /// Whether `expr >= 0`.
    pub fn nonnegative(&self, expr: Expr) -> Verdict {
        self.at_most(self.context.constant(0), expr)
    }

    /// Whether `a <= b`.
    pub fn at_most(&self, a: Expr, b: Expr) -> Verdict {
        let mut normalizer = Normalizer::new(self.context);
        match difference(&mut normalizer, a, b) {
            Ok(goal) => self.verdict(&mut normalizer, &goal),
            Err(_) => Verdict::Unknown,
        }
    }

    /// Whether `a <= b` is shown; whether the opposite could be is not asked.
    pub(crate) fn shows_at_most(&self, a: Expr, b: Expr) -> bool {
        let mut normalizer = Normalizer::new(self.context);
        let goal = difference(&mut normalizer, a, b);
        goal.is_ok_and(|goal| self.holds(&mut normalizer, &goal))
    }

    /// Whether `a == b`. Refuted when the two differ in the same direction everywhere.
    pub fn equal(&self, a: Expr, b: Expr) -> Verdict {
        match (self.at_most(a, b), self.at_most(b, a)) {
            (Verdict::Proved, Verdict::Proved) => Verdict::Proved,
            (Verdict::Refuted, _) | (_, Verdict::Refuted) => Verdict::Refuted,
            _ => Verdict::Unknown,
        }
    }

    /// Whether `goal >= 0`, for a canonical polynomial.
    pub(crate) fn verdict(&self, normalizer: &mut Normalizer<'c>, goal: &Polynomial) -> Verdict {
        if self.holds(normalizer, goal) {
            return Verdict::Proved;
        }
        // Not goal >= 0 is -goal - 1 >= 0.
        match goal.scale(-1).and_then(|negated| negated.plus(-1)) {
            Ok(negated) if self.holds(normalizer, &negated) => Verdict::Refuted,
            _ => Verdict::Unknown,
        }
    }

    /// Whether `goal >= 0` is shown.
    pub(crate) fn holds(&self, normalizer: &mut Normalizer<'c>, goal: &Polynomial) -> bool {
        let goal = goal.tightened();
        if let Some(value) = goal.as_constant() {
            return 0 <= value;
        }
        if let Some(&answer) = self.answers.borrow().get(&goal) {
            return answer;
        }
        let mut search = Search { normalizer, programs: 0, work: MAX_WORK };
        // An error is an overflow or too large a term on the way: not shown.
        let answer = search.implied(&goal, &self.facts, 0).unwrap_or(false);
        self.answers.borrow_mut().insert(goal, answer);
        answer
    }
}

/// Polynomials that are `>= 0`, found by the atoms in them.
#[derive(Clone, Default)]
struct Facts {
    all: Vec<Polynomial>,
    by_atom: HashMap<Expr, Vec<usize>>,
}

impl Facts {
    fn push(&mut self, fact: Polynomial) {
        for atom in atoms_of(&fact) {
            let places = self.by_atom.entry(atom).or_default();
            // A product may hold an atom twice.
            if places.last() != Some(&self.all.len()) {
                places.push(self.all.len());
            }
        }
        self.all.push(fact);
    }

    fn about(&self, atom: Expr) -> &[usize] {
        self.by_atom.get(&atom).map_or(&[], Vec::as_slice)
    }
}

fn difference(normalizer: &mut Normalizer, a: Expr, b: Expr) -> Result<Polynomial> {
    normalizer.polynomial(b)?.sub(&*normalizer.polynomial(a)?)
}

/// The facts that `fact >= 0` is equivalent to: a minimum with a positive coefficient stands for
/// each of its arguments at once, and so does a maximum with a negative one.
fn conjuncts(normalizer: &mut Normalizer, fact: Polynomial) -> Result<Vec<Polynomial>> {
    let mut done = Vec::new();
    let mut pending = vec![fact];
    while let Some(fact) = pending.pop() {
        let mut splittable = None;
        for (monomial, coefficient) in fact.terms() {
            let [atom] = monomial[..] else { continue };
            let wanted = if 0 < coefficient { Extremum::Min } else { Extremum::Max };
            if let Some((_, arguments)) =
                normalizer.arguments(atom)?.filter(|(kind, _)| *kind == wanted)
            {
                splittable = Some((monomial.clone(), coefficient, arguments));
                break;
            }
        }
        match splittable {
            Some((monomial, coefficient, arguments))
                if pending.len() + done.len() + arguments.len() <= MAX_CONJUNCTS =>
            {
                let rest = fact.sub(&Polynomial::term(monomial, coefficient))?;
                for argument in arguments {
                    pending.push(rest.add(&argument.scale(coefficient)?)?);
                }
            }
            _ => done.push(fact.tightened()),
        }
    }
    Ok(done)
}

/// One question, with its budget.
struct Search<'n, 'c> {
    normalizer: &'n mut Normalizer<'c>,
    programs: usize,
    work: usize,
}

impl Search<'_, '_> {
    /// Whether `goal >= 0` follows from `facts >= 0`. Recursion is limited by [`MAX_DEPTH`].
    fn implied(&mut self, goal: &Polynomial, facts: &Facts, depth: usize) -> Result<bool> {
        let goal = goal.tightened();
        if let Some(value) = goal.as_constant()
            && 0 <= value
        {
            return Ok(true);
        }
        self.programs += 1;
        if MAX_PROGRAMS < self.programs {
            return Ok(false);
        }
        let relevant = self.relevant_facts(&goal, facts, depth)?;
        if linear_consequence(&goal, relevant.iter(), &mut self.work)
            || self.follows_with_products(&goal, &relevant)?
        {
            return Ok(true);
        }
        if depth == MAX_DEPTH {
            return Ok(false);
        }
        let Some(atom) =
            std::iter::once(&goal).chain(&relevant).find_map(|place| self.splittable(place))
        else {
            return Ok(false);
        };
        self.holds_in_all_cases(atom, &goal, &relevant, depth)
    }

    /// Looks for a contradiction between the facts, the opposite of the goal, and their products.
    fn follows_with_products(&mut self, goal: &Polynomial, facts: &[Polynomial]) -> Result<bool> {
        let mut facts = facts.to_vec();
        facts.push(goal.scale(-1)?.plus(-1)?);
        let products = products(&facts)?;
        let absurd = Polynomial::constant(-1);
        Ok(!products.is_empty()
            && linear_consequence(&absurd, facts.iter().chain(&products), &mut self.work))
    }

    fn holds_in_all_cases(
        &mut self,
        atom: Expr,
        goal: &Polynomial,
        facts: &[Polynomial],
        depth: usize,
    ) -> Result<bool> {
        let Some((kind, arguments)) = self.normalizer.arguments(atom)? else {
            return Ok(false);
        };
        let sign = if kind == Extremum::Min { 1 } else { -1 };
        for (chosen, value) in arguments.iter().enumerate() {
            let mut case = Normalizer::replacing(self.normalizer.context(), atom, value.clone());
            let case_goal = case.renormalize(goal)?;
            let mut case_facts = Facts::default();
            for fact in facts {
                let fact = case.renormalize(fact)?;
                conjuncts(&mut case, fact)?.into_iter().for_each(|fact| case_facts.push(fact));
            }
            for (other, argument) in arguments.iter().enumerate() {
                if other != chosen {
                    let order = case.renormalize(&argument.sub(value)?.scale(sign)?)?;
                    conjuncts(&mut case, order)?.into_iter().for_each(|fact| case_facts.push(fact));
                }
            }
            let mut search =
                Search { normalizer: &mut case, programs: self.programs, work: self.work };
            let holds = search.implied(&case_goal, &case_facts, depth + 1)?;
            (self.programs, self.work) = (search.programs, search.work);
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A minimum or maximum somewhere in the polynomial, operands of its atoms included.
    fn splittable(&self, polynomial: &Polynomial) -> Option<Expr> {
        let context = self.normalizer.context();
        let mut pending: Vec<_> =
            polynomial.terms().flat_map(|(monomial, _)| monomial.iter().copied()).collect();
        let mut seen = BTreeSet::new();
        while let Some(expr) = pending.pop() {
            if !seen.insert(expr) {
                continue;
            }
            let node = context.node(expr);
            if matches!(node, Node::Min(..) | Node::Max(..)) {
                return Some(expr);
            }
            if let Some((a, b)) = node.operands() {
                pending.extend([a, b]);
            }
        }
        None
    }

    /// The facts that share an atom with the goal, directly or through other facts, and those about
    /// the atoms.
    fn relevant_facts(
        &mut self,
        goal: &Polynomial,
        facts: &Facts,
        depth: usize,
    ) -> Result<Vec<Polynomial>> {
        let mut selected: Vec<Polynomial> = Vec::new();
        let mut taken = BTreeSet::new();
        let mut atoms = BTreeSet::new();
        let mut queue: Vec<Expr> = atoms_of(goal);
        if queue.is_empty() {
            // A false goal: only a contradiction among the facts can show it.
            queue.extend(facts.all.iter().take(MAX_FACTS).flat_map(atoms_of));
        }
        let mut next = 0;
        while next < queue.len() && selected.len() < MAX_FACTS {
            let atom = queue[next];
            next += 1;
            if !atoms.insert(atom) {
                continue;
            }
            let start = selected.len();
            for &place in facts.about(atom).iter().take(MAX_FACTS_PER_ATOM) {
                if taken.insert(place) {
                    selected.push(facts.all[place].clone());
                }
            }
            let definitions = self.facts_about(atom, facts, depth)?;
            selected.extend(definitions);
            for fact in &selected[start..] {
                queue.extend(atoms_of(fact).into_iter().filter(|atom| !atoms.contains(atom)));
            }
        }
        selected.truncate(MAX_FACTS);
        Ok(selected)
    }

    /// What holds of an atom that is no variable.
    fn facts_about(&mut self, atom: Expr, facts: &Facts, depth: usize) -> Result<Vec<Polynomial>> {
        let this = Polynomial::atom(atom);
        match self.normalizer.context().node(atom) {
            Node::FloorDiv(a, b) => {
                let (a, b) = (self.operand(a)?, self.operand(b)?);
                self.facts_about_quotient(&this, &a, &b, facts, depth)
            }
            Node::Mod(a, b) => {
                let (a, b) = (self.operand(a)?, self.operand(b)?);
                if !self.is_positive(&b, facts, depth)? {
                    return Ok(vec![this]);
                }
                let mut result = vec![this.clone(), b.plus(-1)?.sub(&this)?];
                let quotient = self.normalizer.floor_div(&a, &b)?;
                let parts = b.mul(&quotient)?.add(&this)?;
                result.extend([a.sub(&parts)?, parts.sub(&a)?]);
                Ok(result)
            }
            Node::Min(..) | Node::Max(..) => {
                let Some((kind, arguments)) = self.normalizer.arguments(atom)? else {
                    return Ok(Vec::new());
                };
                let order = |argument: &Polynomial| match kind {
                    Extremum::Min => argument.sub(&this),
                    Extremum::Max => this.sub(argument),
                };
                arguments.iter().map(order).collect()
            }
            _ => Ok(Vec::new()),
        }
    }

    fn facts_about_quotient(
        &mut self,
        quotient: &Polynomial,
        a: &Polynomial,
        b: &Polynomial,
        facts: &Facts,
        depth: usize,
    ) -> Result<Vec<Polynomial>> {
        if !self.is_positive(b, facts, depth)? {
            return Ok(Vec::new());
        }
        // b*q <= a <= b*q + b - 1
        let product = b.mul(quotient)?;
        let mut result = vec![a.sub(&product)?, product.add(b)?.plus(-1)?.sub(a)?];
        // The linear program does not round, so it is told what rounding gives.
        if depth + 2 <= MAX_DEPTH && self.implied(a, facts, depth + 3)? {
            result.push(quotient.clone());
            if b.as_constant().is_none() {
                result.push(a.sub(quotient)?);
            }
        }
        Ok(result)
    }

    /// Whether a divisor is shown to be positive. A divisor is not zero where there is a value.
    fn is_positive(&mut self, divisor: &Polynomial, facts: &Facts, depth: usize) -> Result<bool> {
        match divisor.as_constant() {
            Some(divisor) => Ok(0 < divisor),
            None => Ok(depth < MAX_DEPTH && self.implied(&divisor.plus(-1)?, facts, depth + 2)?),
        }
    }

    fn operand(&mut self, expr: Expr) -> Result<Polynomial> {
        Ok(self.normalizer.polynomial(expr)?.as_ref().clone())
    }
}

fn atoms_of(polynomial: &Polynomial) -> Vec<Expr> {
    polynomial.terms().flat_map(|(monomial, _)| monomial.iter().copied()).collect()
}

fn mentions(polynomial: &Polynomial, atom: Expr) -> bool {
    polynomial.terms().any(|(monomial, _)| monomial.contains(&atom))
}

/// Products of two or three of the facts that speak of the products of variables in them, and of
/// those in such products.
fn products(facts: &[Polynomial]) -> Result<Vec<Polynomial>> {
    let factors: Vec<&Polynomial> = facts
        .iter()
        .filter(|fact| fact.constant_part().unsigned_abs() < LARGE && fact.terms().len() <= 6)
        .filter(|fact| fact.terms().all(|(monomial, _)| monomial.len() == 1))
        .collect();
    let wanted = nonlinear_monomials(facts);
    let mut result = Vec::new();
    let mut done = BTreeSet::new();
    multiply_pairs(&factors, &wanted, &mut done, &mut result)?;
    multiply_pairs(&factors, &nonlinear_monomials(&result), &mut done, &mut result)?;
    let num_pairs = result.len();
    for monomial in wanted.iter().filter(|monomial| monomial.len() == 3) {
        for index in 0..num_pairs {
            let completing = |(pair, _): (&Monomial, i64)| match remove_factor(monomial, pair)?[..]
            {
                [third] => Some(third),
                _ => None,
            };
            let thirds: Vec<Expr> = result[index].terms().filter_map(completing).collect();
            for factor in &factors {
                if 2 * MAX_PRODUCTS <= result.len() {
                    return Ok(result);
                }
                if thirds.iter().any(|&third| mentions(factor, third)) {
                    let product = result[index].mul(factor)?;
                    result.push(product);
                }
            }
        }
    }
    Ok(result)
}

fn nonlinear_monomials(places: &[Polynomial]) -> BTreeSet<Monomial> {
    let monomials = places.iter().flat_map(|place| place.terms().map(|(monomial, _)| monomial));
    monomials.filter(|monomial| 1 < monomial.len()).cloned().collect()
}

/// Adds the products of two factors that hold one atom each of a pair that is multiplied in a
/// wanted monomial.
fn multiply_pairs(
    factors: &[&Polynomial],
    wanted: &BTreeSet<Monomial>,
    done: &mut BTreeSet<(usize, usize)>,
    result: &mut Vec<Polynomial>,
) -> Result<()> {
    let mut pairs = BTreeSet::new();
    for monomial in wanted {
        for (place, &first) in monomial.iter().enumerate() {
            pairs.extend(monomial[place + 1..].iter().map(|&second| (first, second)));
        }
    }
    for (first, second) in pairs {
        let holds: Vec<(bool, bool)> = factors
            .iter()
            .map(|factor| (mentions(factor, first), mentions(factor, second)))
            .collect();
        for (i, a) in factors.iter().enumerate().filter(|&(i, _)| holds[i] != (false, false)) {
            for (j, b) in factors.iter().enumerate().skip(i) {
                if MAX_PRODUCTS <= result.len() {
                    return Ok(());
                }
                let speaks = (holds[i].0 && holds[j].1) || (holds[i].1 && holds[j].0);
                if speaks && done.insert((i, j)) {
                    result.push(a.mul(b)?);
                }
            }
        }
    }
    Ok(())
}

/// Asks the linear program with every monomial as a variable. A fact with a monomial that nothing
/// can cancel is of no use and left out first.
fn linear_consequence<'p>(
    goal: &Polynomial,
    facts: impl Iterator<Item = &'p Polynomial>,
    work: &mut usize,
) -> bool {
    let mut facts: Vec<&Polynomial> = facts.collect();
    facts.sort_unstable();
    facts.dedup();
    loop {
        let mut signs: BTreeMap<&Monomial, (bool, bool)> = BTreeMap::new();
        for fact in &facts {
            for (monomial, coefficient) in fact.terms() {
                let (positive, negative) = signs.entry(monomial).or_default();
                *positive |= 0 < coefficient;
                *negative |= coefficient < 0;
            }
        }
        for (monomial, coefficient) in goal.terms() {
            // The goal stands on the other side of the equation.
            let (positive, negative) = signs.entry(monomial).or_default();
            *positive |= coefficient < 0;
            *negative |= 0 < coefficient;
        }
        let before = facts.len();
        facts.retain(|fact| fact.terms().all(|(monomial, _)| signs[monomial] == (true, true)));
        if facts.len() == before {
            break;
        }
    }
    let columns: BTreeSet<&Monomial> = std::iter::once(goal)
        .chain(facts.iter().copied())
        .flat_map(|place| place.terms().map(|(monomial, _)| monomial))
        .collect();
    let affine = |polynomial: &Polynomial| Affine {
        coefficients: columns.iter().map(|monomial| polynomial.coefficient(monomial)).collect(),
        constant: polynomial.constant_part(),
    };
    let rows: Vec<_> = facts.iter().map(|fact| affine(fact)).collect();
    follows(&affine(goal), &rows, work)
}

#[cfg(test)]
mod tests;
