//! Simplification of expressions and indexing maps.
//!
//! Expressions are brought to a normal form bottom up, each shared subexpression once: sums of
//! multiples of atoms, where an atom is a variable, a quotient by a constant whose numerator
//! is such a sum, or another operation on simplified operands. There are no remainders in it,
//! `x mod c` being `x - c*(x floordiv c)`, so that most identities of quotients and remainders
//! are the cancellation of equal terms; when the form is written down, remainders are put
//! together again. The rules (`division`) decide by the intervals of sums, as those of XLA's
//! `indexing_map.cc` and of Halide's simplifier do. Constraints tighten these, and say which quotients
//! are exact (`known`). Quotients of one variable are a sum of its
//! `digits`, which take their values independently of each other. With symbolic bounds or
//! divisors, questions that intervals leave open go to the [prover](crate::prove), a bounded
//! number of times.
//!
//! A simplified expression has, at every point of the domain where the given one has a value,
//! the same value. It never has more operators: where the normal form would, the parts are
//! simplified on their own.
//!
//! Compositions are not made before they are simplified (`composition`). Where all quotients are
//! those of sums of few variables, as in reshapes, their normal forms are arrays (`flat`). What stays
//! complicated is simplified over the row-major number of the element too (`numbered`), and is written
//! in the shortest of many ways (`arrangements`).
//!
//! Written form: a sum lists its terms in the order of [`Context::compare`], a positive one
//! first where there is one, the constant last; terms with coefficients of the same size are
//! collected (`(a - b) * 4`). Products list their factors in the same order.
//!
//! Cost: near-linear in the number of distinct subexpressions in practice. A sum of n terms
//! takes O(n log n), one with more than 8 quotients is not searched for remainders, and one with more than
//! 16 is divided as a whole; a minimum of n operands compares each with at most 32 others, and does not
//! compare those of minima in it again.

mod arrangements;
mod composition;
mod digits;
mod division;
mod domain;
mod extrema;
mod flat;
mod known;
mod numbered;
mod overflow;
mod products;
mod questions;
mod sum;
mod write;

use std::collections::BTreeSet;

use smallvec::SmallVec;

use crate::expr::{Context, Expr, FewTerms, LinearTerms, Node, Var, gcd, interval_of_operation};
use crate::hash::{FastMap, FastSet};
use crate::interval::Interval;
use crate::map::{IndexingMap, VarIntervals};
use crate::prove::Prover;
use extrema::Extremum;
use known::{KnownMultiple, KnownSum};
use sum::{Atom, Sum};
use write::build;

/// The most terms of a sum all parts of which are simplified on their own.
const MAX_PARTIAL: u32 = 32;
/// The most minima, and maxima, of a sum that are joined.
const MAX_PAIRED: usize = 16;
/// How deep rules may apply rules to what they build.
const MAX_DEPTH: u32 = 64;
/// How often an expression is simplified again to reach a fixpoint.
const MAX_ROUNDS: u32 = 8;
/// The largest tables that are kept for the next simplifier.
const MAX_KEPT: usize = 1 << 10;
/// The most questions to the prover per simplifier.
const MAX_QUESTIONS: u32 = 32;

/// What an [`Atom`] stands for.
#[derive(Debug)]
enum Term {
    /// A variable, or an operation that is no sum and no quotient by a constant.
    Leaf(Expr),
    /// `numerator floordiv divisor`, in normal form.
    Floor {
        numerator: Sum,
        divisor: i64,
        /// Whether it was given as a quotient rounded up.
        ceil: bool,
        /// Other numerators and divisors with the same quotient on the domain.
        aliases: Vec<(Sum, i64)>,
    },
}

/// A term of a sum with what is known of it.
#[derive(Debug)]
struct AtomData {
    term: Term,
    /// The leaf and the divisor of which it is the quotient; a leaf is its own quotient by 1.
    quotient_of: Option<(Atom, i64)>,
    /// An interval that holds every value on the domain.
    interval: Interval,
    /// Its value at one point of the domain, as far as that is easily known: what differs there
    /// need not be compared.
    sample: i64,
    /// The expression that it is written as, once that is asked for.
    written: Option<Expr>,
}

/// What a simplifier has found. Contexts keep the memory of the last one for the next.
#[derive(Default, Debug)]
struct Tables {
    atoms: Vec<AtomData>,
    /// The normal forms found so far; of written expressions too.
    expanded: FastMap<Expr, Sum>,
    /// The normal forms of expressions with others for their dimension variables.
    composed: FastMap<Expr, Sum>,
    /// The normal forms of quotients rounded down, by numerator and divisor.
    quotients: FastMap<(Sum, i64), Sum>,
    /// Intervals of sums with quotients.
    intervals: FastMap<Sum, Interval>,
    /// What sums are written as.
    written: FastMap<Sum, Expr>,
    /// The minima and maxima that are simplified.
    extrema: FastSet<Expr>,
    /// Bounds of the sizes of values (`overflow`).
    sizes: FastMap<Expr, f64>,
}

impl Tables {
    fn clear(&mut self) {
        self.atoms.clear();
        self.expanded.clear();
        self.composed.clear();
        self.quotients.clear();
        self.intervals.clear();
        self.written.clear();
        self.extrema.clear();
        self.sizes.clear();
    }
}

impl Drop for Simplifier<'_> {
    fn drop(&mut self) {
        // To clear large tables takes longer than to make small ones.
        if self.tables.expanded.capacity() <= MAX_KEPT {
            self.tables.clear();
            self.ctx.keep_scratch(std::mem::take(&mut self.tables));
        }
    }
}

/// A subexpression, simplified on its own.
#[derive(Copy, Clone)]
struct Part {
    form: Expr,
    /// The number of terms of the sum that is given.
    num_addends: u32,
}

/// Simplifies expressions of one context under what is known of their variables.
///
/// ```
/// use tc_ir::{Context, Interval, simplify::Simplifier};
/// let ctx = Context::new();
/// let (x, c) = (ctx.dim(0), ctx.constant(42));
/// let mut simplifier = Simplifier::new(&ctx, |_| Interval::new(53, 71));
/// let remainder = simplifier.simplify(ctx.modulo(x, c));
/// assert_eq!(ctx.display(remainder).to_string(), "d0 - 42");
/// ```
pub struct Simplifier<'c> {
    ctx: &'c Context,
    interval: Box<dyn Fn(Var) -> Interval + 'c>,
    /// Expressions that are known to lie in an interval.
    known: FastMap<Expr, Interval>,
    /// The sums among these, once they are asked for.
    known_sums: Option<Vec<KnownSum>>,
    /// The multiples of a number among these.
    known_multiples: Vec<KnownMultiple>,
    tables: Tables,
    prover: Option<Prover<'c>>,
    /// The variables with symbolic bounds and those in the bounds.
    symbolic: BTreeSet<Var>,
    /// The variables that have one value, which is symbolic.
    equal: FastMap<Var, Expr>,
    questions: u32,
    depth: u32,
    /// Whether a quotient by a negative constant was given.
    negative_divisors: bool,
    /// Whether a sum was shorter without remainders than with those that were found: others might
    /// be found next time.
    overruled: bool,
    /// How many more ways to write sums are tried (`arrangements`).
    ways: u32,
    /// Whether something other than a variable was met that may leave the 64-bit range.
    is_wide: bool,
}

impl<'c> Simplifier<'c> {
    /// A simplifier that knows intervals of the variables.
    pub fn new(ctx: &'c Context, interval: impl Fn(Var) -> Interval + 'c) -> Self {
        Simplifier {
            ctx,
            interval: Box::new(interval),
            known: FastMap::default(),
            known_sums: None,
            known_multiples: Vec::new(),
            tables: ctx.take_scratch(),
            prover: None,
            symbolic: BTreeSet::new(),
            equal: FastMap::default(),
            questions: 0,
            depth: 0,
            negative_divisors: false,
            overruled: false,
            ways: 0,
            is_wide: false,
        }
    }

    /// A simplifier that knows the bounds of the variables of `map`, not its constraints.
    pub fn for_map(ctx: &'c Context, map: &IndexingMap) -> Self {
        Self::within(ctx, map, map.intervals(ctx))
    }

    /// A simplifier that knows the bounds and the constraints of `map`.
    pub fn for_domain(ctx: &'c Context, map: &IndexingMap) -> Self {
        Self::for_domain_within(ctx, map, map.tightened_intervals(ctx))
    }

    /// [`for_domain`](Self::for_domain), given the intervals of the variables.
    fn for_domain_within(ctx: &'c Context, map: &IndexingMap, intervals: VarIntervals) -> Self {
        let mut simplifier = Self::within(ctx, map, intervals);
        for constraint in &map.constraints {
            simplifier.assume(constraint.expr, constraint.interval);
        }
        simplifier
    }

    /// A simplifier that knows intervals of the variables of `map`, and their bounds.
    fn within(ctx: &'c Context, map: &IndexingMap, intervals: VarIntervals) -> Self {
        let mut simplifier = Self::new(ctx, move |var| intervals.of(var));
        for (var, variable) in map.vars() {
            if variable.constant_interval(ctx).is_none() {
                let bounds: Vec<Expr> = variable.lower.into_iter().chain(variable.upper).collect();
                simplifier.symbolic.extend(ctx.vars_of_all(&bounds));
                simplifier.symbolic.insert(var);
            }
        }
        for (var, variable) in map.vars() {
            let (Some(lower), true) = (variable.lower, variable.lower == variable.upper) else {
                continue;
            };
            // A value whose own variables have none is not put in again.
            let is_last = |of: &Var| {
                map.variable(*of).is_some_and(|of| of.lower.is_none() || of.lower != of.upper)
            };
            let vars = ctx.vars(lower);
            if !vars.is_empty() && vars.iter().all(is_last) {
                simplifier.equal.insert(var, lower);
            }
        }
        if !simplifier.symbolic.is_empty() {
            let mut prover = Prover::new(ctx);
            for (var, variable) in map.vars() {
                prover.bound(var, variable.lower, variable.upper);
            }
            simplifier.prover = Some(prover);
            simplifier.questions = MAX_QUESTIONS;
        }
        simplifier
    }

    /// Takes for granted that `expr` lies in `interval`.
    pub fn assume(&mut self, expr: Expr, interval: Interval) {
        let slot = self.known.entry(expr).or_insert(Interval::ALL);
        *slot = slot.intersect(interval);
        self.forget();
    }

    /// Takes back what was found, which may depend on the expressions that were given.
    fn forget(&mut self) {
        self.known_sums = None;
        self.tables.clear();
        self.negative_divisors = false;
    }

    /// The simplified form of `expr`, which is its own simplified form.
    pub fn simplify(&mut self, expr: Expr) -> Expr {
        self.simplify_once(expr).0
    }

    /// The simplified form of `expr`, and whether that is known to stay as it is when it is
    /// simplified again.
    fn simplify_once(&mut self, expr: Expr) -> (Expr, bool) {
        if self.negative_divisors {
            self.forget();
        }
        let is_first = self.tables.expanded.is_empty();
        self.find_known_sums();
        let mut sum = self.expand(expr);
        if self.negative_divisors && !is_first {
            // What was written for other expressions has no negative divisors.
            self.forget();
            self.find_known_sums();
            sum = self.expand(expr);
        }
        let written = self.write(&sum);
        if self.ctx.cost(written) <= self.ctx.cost(expr) && self.overflows_no_more(written, expr) {
            (written, self.is_settled(&sum))
        } else {
            (self.simplify_parts(expr), false)
        }
    }

    /// The simplified form of an expression whose normal form is longer: of every
    /// subexpression, the shortest of its normal form, what its operands make, and itself. Of the sums
    /// in a long one, each has to have twice the terms of the one before to be looked at.
    fn simplify_parts(&mut self, root: Expr) -> Expr {
        let ctx = self.ctx;
        let folded = ctx.fold_value(root, |expr, node, operands: Option<(&Part, &Part)>| {
            let (mut num_addends, mut is_within_sum) = (1, false);
            let mut shortest = expr;
            let takes = |this: &mut Self, other: Expr, shortest: &mut Expr| {
                if ctx.cost(other) <= ctx.cost(*shortest) && this.overflows_no_more(other, expr) {
                    *shortest = other;
                }
            };
            if let Some((lhs, rhs)) = operands {
                if let Node::Add(..) = node {
                    num_addends = u32::saturating_add(lhs.num_addends, rhs.num_addends);
                    let longer = lhs.num_addends.max(rhs.num_addends);
                    is_within_sum = MAX_PARTIAL < longer
                        && longer.ilog2() == num_addends.ilog2()
                        && expr != root;
                }
                let made = match is_within_sum {
                    true => ctx.rebuild(node, lhs.form, rhs.form),
                    false => local(ctx, node, lhs.form, rhs.form),
                };
                takes(self, made, &mut shortest);
            }
            if !is_within_sum {
                let sum = self.expand(expr);
                let written = self.write(&sum);
                takes(self, written, &mut shortest);
            }
            Part { form: shortest, num_addends }
        });
        folded.form
    }

    /// Whether a sum would stay as it is when what it is written as is expanded. Normal forms of
    /// quotients in quotients may depend on what was looked at before; so do those of minima,
    /// products and the like, and those beside a quotient by a negative number. A `false` leaves it
    /// open.
    fn is_settled(&self, sum: &Sum) -> bool {
        let ctx = self.ctx;
        let is_var = |atom: Atom| match self.tables.atoms[atom.index()].term {
            Term::Leaf(leaf) => ctx.as_var(leaf).is_some(),
            Term::Floor { .. } => false,
        };
        let is_plain = |atom: Atom| self.quotient_of(atom).is_some_and(|(leaf, _)| is_var(leaf));
        let has_one_form = |atom: Atom| match &self.tables.atoms[atom.index()].term {
            Term::Leaf(_) => true,
            Term::Floor { aliases, .. } => aliases.is_empty(),
        };
        !self.overruled
            && !self.negative_divisors
            && sum.terms().iter().all(|&(atom, _)| {
                is_plain(atom)
                    || self.as_floor(atom).is_some_and(|(numerator, _)| {
                        let mut inner = numerator.terms().iter();
                        inner.all(|&(atom, _)| is_plain(atom) && has_one_form(atom))
                    })
            })
    }

    /// An interval that holds every value of `expr` on the domain.
    pub fn interval_of(&mut self, expr: Expr) -> Interval {
        self.find_known_sums();
        let sum = self.expand(expr);
        self.interval_of_sum(&sum).intersect(self.known_interval(expr))
    }

    fn known_interval(&self, expr: Expr) -> Interval {
        self.known.get(&expr).copied().unwrap_or(Interval::ALL)
    }

    // Normal forms

    /// The normal form of `expr`: every shared subexpression is visited once.
    fn expand(&mut self, root: Expr) -> Sum {
        if let Some(sum) = self.tables.expanded.get(&root) {
            return sum.clone();
        }
        let mut stack: SmallVec<[Expr; 16]> = SmallVec::from_slice(&[root]);
        while let Some(&expr) = stack.last() {
            let Some(sum) = self.expand_step(&mut stack, |tables| &tables.expanded) else {
                continue;
            };
            // What overflows stays as it is.
            let mut sum = match sum {
                Some(sum) => sum,
                None => self.rebuilt(expr),
            };
            if let Some(value) = self.known_interval(expr).as_point() {
                sum = Sum::constant(value);
            }
            self.replace_exact(&mut sum);
            if stack.is_empty() {
                self.tables.expanded.insert(expr, sum.clone());
                return sum;
            }
            self.tables.expanded.insert(expr, sum);
        }
        self.tables.expanded[&root].clone()
    }

    /// The normal form of `expr` with the expressions `read` for the dimension variables. `None` on
    /// overflow.
    fn expand_composed(&mut self, root: Expr, read: &[Expr]) -> Option<Sum> {
        let mut stack: SmallVec<[Expr; 16]> = SmallVec::from_slice(&[root]);
        while let Some(&expr) = stack.last() {
            let sum = match self.ctx.node(expr) {
                Node::Var(var) => {
                    stack.pop();
                    let new = match var {
                        Var::Dim(i) => read.get(i as usize).copied(),
                        _ => None,
                    };
                    self.expand(new.unwrap_or(expr))
                }
                _ => match self.expand_step(&mut stack, |tables| &tables.composed) {
                    Some(sum) => sum?,
                    None => continue,
                },
            };
            self.tables.composed.insert(expr, sum);
        }
        self.tables.composed.get(&root).cloned()
    }

    /// The normal form of the expression on top of the stack from those of its operands, which
    /// `known` holds, or else puts these on top. The inner `None` is an overflow.
    #[expect(clippy::option_option, reason = "nothing yet, or an overflow")]
    fn expand_step(
        &mut self,
        stack: &mut SmallVec<[Expr; 16]>,
        known: fn(&Tables) -> &FastMap<Expr, Sum>,
    ) -> Option<Option<Sum>> {
        let expr = *stack.last()?;
        if known(&self.tables).contains_key(&expr) {
            stack.pop();
            return None;
        }
        let node = self.ctx.node(expr);
        let linear =
            if self.is_linear(node) { self.addends(expr, known(&self.tables)) } else { None };
        let before = stack.len();
        let mut open = |operand: Expr| {
            let is_open = self.ctx.as_constant(operand).is_none()
                && !known(&self.tables).contains_key(&operand);
            if is_open {
                stack.push(operand);
            }
        };
        match (&linear, node.operands()) {
            (Some(linear), _) => linear.terms.iter().for_each(|&(term, _)| open(term)),
            (None, Some((lhs, rhs))) => [lhs, rhs].into_iter().for_each(open),
            (None, None) => {}
        }
        if stack.len() != before {
            return None;
        }
        stack.pop();
        Some(match (linear, node.operands()) {
            (Some(linear), _) => {
                let mut sum = Sum::constant(linear.constant);
                for (term, coefficient) in linear.terms {
                    if sum.append(&known(&self.tables)[&term], coefficient).is_none() {
                        return Some(None);
                    }
                }
                sum.collect().and_then(|()| self.join_symbolic(sum))
            }
            (None, Some((lhs, rhs))) => {
                let known = known(&self.tables);
                let operand = |expr| match self.ctx.as_constant(expr) {
                    Some(value) => Sum::constant(value),
                    None => known[&expr].clone(),
                };
                let (lhs, rhs) = (operand(lhs), operand(rhs));
                self.combine(node, lhs, rhs)
            }
            (None, None) => Some(match node {
                Node::Const(value) => Sum::constant(value),
                Node::Var(var) if self.equal.contains_key(&var) => self.expand(self.equal[&var]),
                _ => self.leaf(expr),
            }),
        })
    }

    /// Whether an operation is a sum or a multiple.
    fn is_linear(&self, node: Node) -> bool {
        match node {
            Node::Add(..) => true,
            Node::Mul(_, factor) => self.ctx.as_constant(factor).is_some(),
            _ => false,
        }
    }

    /// The terms of a sum or a multiple, in any order and perhaps several times; of a long one, what is
    /// known already, and else from the last made to the first, so that a tower of sums is taken apart
    /// level by level. `None` on overflow.
    fn addends(&self, expr: Expr, known: &FastMap<Expr, Sum>) -> Option<FewTerms> {
        let addends = self.ctx.few_addends(expr, &|_, _| Some(None));
        addends.or_else(|| {
            let is_known = |term| known.contains_key(&term);
            let LinearTerms { terms, constant } = self.ctx.many_addends(expr, &is_known)?;
            Some(FewTerms { terms: terms.into(), constant })
        })
    }

    /// The normal form of an operation on operands that are given by theirs. `None` on overflow.
    fn combine(&mut self, node: Node, lhs: Sum, rhs: Sum) -> Option<Sum> {
        match (node, rhs.as_constant()) {
            (Node::FloorDiv(..), Some(divisor)) if divisor != 0 => self.floor_div(lhs, divisor),
            (Node::CeilDiv(..), Some(divisor)) if divisor != 0 => self.ceil_div(lhs, divisor),
            (Node::Mod(..), Some(modulus)) if 0 < modulus => self.modulo(lhs, modulus),
            (Node::Mul(..), Some(factor)) => lhs.scaled(factor),
            // A sum whose coefficients overflow stays as it is written.
            (Node::Add(..), _) => None,
            _ => {
                if let (Node::Mul(..), Some(factor)) = (node, lhs.as_constant()) {
                    return rhs.scaled(factor);
                }
                let (lhs, rhs) = (self.write(&lhs), self.write(&rhs));
                if let Some(kind) = Extremum::of_node(node) {
                    let values =
                        interval_of_operation(node, self.interval_of(lhs), self.interval_of(rhs));
                    let extremum = self.extremum(lhs, rhs, kind);
                    return Some(self.expand_simplified(extremum, values));
                }
                match node {
                    Node::Mul(..) => self.product(lhs, rhs),
                    Node::FloorDiv(..) => {
                        self.quotient_by_symbol(lhs, rhs, division::Rounding::Down)
                    }
                    Node::CeilDiv(..) => self.quotient_by_symbol(lhs, rhs, division::Rounding::Up),
                    Node::Mod(..) => self.remainder_by_symbol(lhs, rhs),
                    _ => None,
                }
            }
        }
    }

    /// The operation of `expr` on its written operands, taken as it is.
    fn rebuilt(&mut self, expr: Expr) -> Sum {
        let Some((lhs, rhs)) = self.ctx.node(expr).operands() else {
            return self.leaf(expr);
        };
        let mut operand = |expr: Expr| match self.tables.expanded.get(&expr).cloned() {
            Some(sum) => self.write(&sum),
            None => expr,
        };
        let (lhs, rhs) = (operand(lhs), operand(rhs));
        self.leaf(self.ctx.rebuild(self.ctx.node(expr), lhs, rhs))
    }

    /// The sum of an expression whose operands are written normal forms and which itself is
    /// no sum or quotient that a rule applies to. Its values lie in an interval.
    fn expand_simplified(&mut self, expr: Expr, values: Interval) -> Sum {
        match self.tables.expanded.get(&expr) {
            Some(sum) => sum.clone(),
            None => self.leaf_within(expr, values),
        }
    }

    /// An expression as a term of its own.
    fn leaf(&mut self, expr: Expr) -> Sum {
        self.leaf_within(expr, Interval::ALL)
    }

    /// An expression as a term of its own, the values of which lie in an interval.
    fn leaf_within(&mut self, expr: Expr, values: Interval) -> Sum {
        if let Some(value) = self.ctx.as_constant(expr) {
            return Sum::constant(value);
        }
        if let Some(sum) = self.tables.expanded.get(&expr)
            && let Some(atom) = sum.single()
            && matches!(self.tables.atoms[atom.index()].term, Term::Leaf(leaf) if leaf == expr)
        {
            return sum.clone();
        }
        let node = self.ctx.node(expr);
        let interval = match (node, node.operands()) {
            (Node::Var(var), _) => (self.interval)(var),
            (_, Some((lhs, rhs))) => {
                // An extremum lies on its side of the mean.
                let mean = match node {
                    Node::Min(..) => Interval::new(i64::MIN, self.mean_of(lhs, rhs).hi),
                    Node::Max(..) => Interval::new(self.mean_of(lhs, rhs).lo, i64::MAX),
                    _ => Interval::ALL,
                };
                let mut operand = |expr| match self.tables.expanded.get(&expr).cloned() {
                    Some(sum) => self.interval_of_sum(&sum).intersect(self.known_interval(expr)),
                    None => self.ctx.as_constant(expr).map_or(Interval::ALL, Interval::point),
                };
                let (lhs, rhs) = (operand(lhs), operand(rhs));
                interval_of_operation(node, lhs, rhs).intersect(mean)
            }
            _ => Interval::ALL,
        };
        let interval = interval.intersect(values).intersect(self.known_interval(expr));
        self.is_wide |= !interval.is_bounded() && !matches!(node, Node::Var(_));
        let sum = match interval.as_point() {
            Some(value) => Sum::constant(value),
            None => Sum::from(self.new_atom(Term::Leaf(expr), interval, Some(expr))),
        };
        self.tables.expanded.insert(expr, sum.clone());
        sum
    }

    /// The integers between half of the least and half of the greatest sum of two expressions that are expanded.
    fn mean_of(&mut self, lhs: Expr, rhs: Expr) -> Interval {
        let operand = |expr| match self.ctx.as_constant(expr) {
            Some(value) => Some(Sum::constant(value)),
            None => self.tables.expanded.get(&expr).cloned(),
        };
        let (Some(mut sum), Some(rhs)) = (operand(lhs), operand(rhs)) else { return Interval::ALL };
        match sum.add(&rhs, 1) {
            Some(()) => {
                let total = self.interval_of_sum(&sum);
                let two = Interval::point(2);
                Interval::new(total.ceil_div(two).lo, total.floor_div(two).hi)
            }
            None => Interval::ALL,
        }
    }

    fn new_atom(&mut self, term: Term, interval: Interval, written: Option<Expr>) -> Atom {
        let atom = Atom::new(self.tables.atoms.len());
        let (sample, quotient_of) = match &term {
            Term::Leaf(_) => (inner_point(interval), Some((atom, 1))),
            Term::Floor { numerator, divisor, .. } => {
                let leaf =
                    numerator.single().and_then(|it| self.tables.atoms[it.index()].quotient_of);
                let quotient_of = leaf.filter(|&(_, by)| by == 1).map(|(leaf, _)| (leaf, *divisor));
                (self.sample_of(numerator).div_euclid(*divisor), quotient_of)
            }
        };
        self.tables.atoms.push(AtomData { term, quotient_of, interval, sample, written });
        atom
    }

    /// The value of a sum at the [sample](AtomData::sample) point; any number on overflow.
    fn sample_of(&self, sum: &Sum) -> i64 {
        sum.terms().iter().fold(sum.constant, |total, &(atom, coefficient)| {
            total.wrapping_add(coefficient.wrapping_mul(self.tables.atoms[atom.index()].sample))
        })
    }

    /// `lhs + factor * rhs`; `None` on overflow.
    fn add_scaled(&mut self, lhs: Expr, rhs: Expr, factor: i64) -> Option<Expr> {
        let sum = self.sum_scaled(lhs, rhs, factor)?;
        Some(self.write(&sum))
    }

    /// The normal form of `lhs + factor * rhs`; `None` on overflow.
    fn sum_scaled(&mut self, lhs: Expr, rhs: Expr, factor: i64) -> Option<Sum> {
        let mut sum = self.expand(lhs);
        let rhs = self.expand(rhs);
        sum.add(&rhs, factor)?;
        self.join_symbolic(sum)
    }

    /// A sum with the pairs of its terms joined that are shorter together, for divisors that are no constants
    /// and for extrema. `None` on overflow.
    fn join_symbolic(&mut self, sum: Sum) -> Option<Sum> {
        if sum.terms().len() < 2 || MAX_DEPTH <= self.depth {
            return Some(sum);
        }
        let (mut remainders, mut quotients) = (Vec::new(), Vec::new());
        let (mut minima, mut maxima) = (Vec::new(), Vec::new());
        for &(atom, _) in sum.terms() {
            let Term::Leaf(leaf) = self.tables.atoms[atom.index()].term else { continue };
            match self.ctx.node(leaf) {
                Node::Mod(value, modulus) => remainders.push((atom, value, modulus)),
                Node::Mul(..) | Node::FloorDiv(..) => quotients.push(leaf),
                Node::Min(a, b) => minima.push((atom, a, b)),
                Node::Max(a, b) => maxima.push((atom, a, b)),
                _ => {}
            }
        }
        if remainders.is_empty() && quotients.is_empty() && (minima.is_empty() || maxima.is_empty())
        {
            return Some(sum);
        }
        self.depth += 1;
        let joined = self
            .join_remainders(sum, &remainders)
            .and_then(|sum| self.join_quotients(sum, &quotients))
            .and_then(|sum| self.join_extrema(sum, &minima, &maxima));
        self.depth -= 1;
        joined
    }

    /// `b*n*(x floordiv n) + b*(x mod n) == b*x`
    fn join_remainders(&mut self, mut sum: Sum, found: &[(Atom, Expr, Expr)]) -> Option<Sum> {
        for &(atom, value, modulus) in found {
            // The remainder of a negative divisor is not that of the quotient rounded down. Zero
            // has neither.
            if self.ctx.as_constant(modulus).is_some()
                || !self.is_non_negative(modulus)
                || !self.may_have_multiple(&sum, modulus)
            {
                continue;
            }
            let coefficient = sum.coefficient(atom);
            let quotient = self.quotient_by_symbol(value, modulus, division::Rounding::Down);
            let Some(quotient) = quotient else { continue };
            let quotient = self.write(&quotient);
            let Some(multiple) = self.product(quotient, modulus) else { continue };
            if coefficient != 0 && sum.has_multiple(&multiple, coefficient) {
                sum.add(&multiple, coefficient.checked_neg()?)?;
                sum.add_term(atom, coefficient.checked_neg()?)?;
                let value = self.expand(value);
                sum.add(&value, coefficient)?;
            }
        }
        Some(sum)
    }

    /// `b*x - b*n*(x floordiv n) == b*(x mod n)`
    fn join_quotients(&mut self, mut sum: Sum, found: &[Expr]) -> Option<Sum> {
        for &product in found {
            let Some((factors, _)) = self.factors(product) else { continue };
            for quotient in factors {
                let Node::FloorDiv(value, divisor) = self.ctx.node(quotient) else { continue };
                // As for remainders.
                if self.ctx.as_constant(divisor).is_some() || !self.is_non_negative(divisor) {
                    continue;
                }
                let Some(multiple) = self.product(quotient, divisor) else { continue };
                let Some(&(first, scale)) = multiple.terms().first() else { continue };
                let Some(coefficient) = sum.coefficient(first).checked_div(scale) else { continue };
                let Some(negated) = coefficient.checked_neg() else { continue };
                let whole = self.expand(value);
                if coefficient != 0
                    && sum.has_multiple(&multiple, coefficient)
                    && sum.has_multiple(&whole, negated)
                {
                    let remainder = self.remainder_by_symbol(value, divisor)?;
                    sum.add(&multiple, negated)?;
                    sum.add(&whole, coefficient)?;
                    sum.add(&remainder, negated)?;
                }
            }
        }
        Some(sum)
    }

    /// `b*min(x, y) + b*max(x + s, y + s) == b*(x + y + s)`
    fn join_extrema(
        &mut self,
        mut sum: Sum,
        minima: &[(Atom, Expr, Expr)],
        maxima: &[(Atom, Expr, Expr)],
    ) -> Option<Sum> {
        for &(min, x, y) in minima.iter().take(MAX_PAIRED) {
            for &(max, p, q) in maxima.iter().take(MAX_PAIRED) {
                let b = sum.coefficient(min);
                if b == 0 || b != sum.coefficient(max) {
                    continue;
                }
                let [x, y, p, q] = [x, y, p, q].map(|operand| self.expand(operand));
                let difference = |a: &Sum, b: &Sum| {
                    let mut difference = a.clone();
                    difference.add(b, -1).map(|()| difference)
                };
                let other = if difference(&p, &x)? == difference(&q, &y)? {
                    &p
                } else if difference(&q, &x)? == difference(&p, &y)? {
                    &q
                } else {
                    continue;
                };
                for atom in [min, max] {
                    sum.add_term(atom, b.checked_neg()?)?;
                }
                sum.add(&y, b)?;
                sum.add(other, b)?;
            }
        }
        Some(sum)
    }

    /// Whether a sum may contain a multiple of a divisor: some term has all of its factors, or is one
    /// of its terms. Without this question, a remainder of remainders would be divided again for each
    /// of them.
    fn may_have_multiple(&mut self, sum: &Sum, divisor: Expr) -> bool {
        let Some((factors, _)) = self.factors(divisor) else { return false };
        let whole = self.expand(divisor);
        sum.terms().iter().any(|&(term, _)| {
            let of_term = match self.tables.atoms[term.index()].term {
                Term::Leaf(leaf) => self.factors(leaf),
                Term::Floor { .. } => None,
            };
            whole.coefficient(term) != 0
                || of_term.is_some_and(|(of_term, _)| factors.iter().all(|it| of_term.contains(it)))
        })
    }
}

/// A member of the interval that is no end of it, where there is one.
fn inner_point(interval: Interval) -> i64 {
    if interval.is_bounded() && !interval.is_empty() {
        let length = i128::from(interval.hi) - i128::from(interval.lo);
        i64::try_from(i128::from(interval.lo) + length * 5 / 8).unwrap_or(interval.lo)
    } else {
        interval.lo.max(12_345).min(interval.hi)
    }
}

/// An operation on simplified operands, after the rules that look no further than these.
fn local(ctx: &Context, node: Node, lhs: Expr, rhs: Expr) -> Expr {
    let positive = |expr| ctx.as_constant(expr).filter(|&it| 0 < it);
    match (node, ctx.node(lhs), positive(rhs)) {
        // x floordiv a floordiv b == x floordiv (a*b)
        (Node::FloorDiv(..), Node::FloorDiv(value, inner), Some(by)) => {
            if let Some(whole) = positive(inner).and_then(|inner| inner.checked_mul(by)) {
                return ctx.floor_div(value, ctx.constant(whole));
            }
        }
        // (x mod (a*b)) floordiv a == (x floordiv a) mod b
        (Node::FloorDiv(..), Node::Mod(value, modulus), Some(by)) => {
            if let Some(modulus) = positive(modulus).filter(|modulus| modulus % by == 0) {
                return ctx.modulo(ctx.floor_div(value, rhs), ctx.constant(modulus / by));
            }
        }
        // x mod (a*b) mod a == x mod a
        (Node::Mod(..), Node::Mod(value, modulus), Some(by))
            if positive(modulus).is_some_and(|modulus| modulus % by == 0) =>
        {
            return ctx.modulo(value, rhs);
        }
        // (g*x) floordiv (g*c) == x floordiv c, and rounded up
        (Node::FloorDiv(..) | Node::CeilDiv(..), Node::Mul(value, factor), _) => {
            if let (Some(factor), Some(by)) = (ctx.as_constant(factor), ctx.as_constant(rhs))
                && let Ok(common) = i64::try_from(gcd(factor.unsigned_abs(), by.unsigned_abs()))
                && 1 < common
            {
                let value = ctx.mul(value, ctx.constant(factor / common));
                return ctx.rebuild(node, value, ctx.constant(by / common));
            }
        }
        (Node::Add(..), ..) => {
            if let Some(mut linear) = ctx.few_linear_terms(ctx.add(lhs, rhs)) {
                return build(ctx, &mut linear.terms, linear.constant);
            }
        }
        _ => {}
    }
    ctx.rebuild(node, lhs, rhs)
}

impl Context {
    /// The normal form of `expr` when nothing is known of its variables, which is its own normal
    /// form.
    pub fn canonicalize(&self, expr: Expr) -> Expr {
        let mut forms: SmallVec<[Expr; 4]> = SmallVec::from_slice(&[expr]);
        let mut form = expr;
        for _ in 0..MAX_ROUNDS {
            // What a simplifier has seen on the way may keep it from rules that apply to the result.
            let next = Simplifier::new(self, |_| Interval::ALL).simplify(form);
            if next == form {
                return next;
            }
            // Forms of one length that lead to each other have one of them as normal form.
            if let Some(start) = forms.iter().position(|&other| other == next) {
                let circle = forms[start..].iter().copied();
                return circle.min_by(|&a, &b| self.compare(a, b)).unwrap_or(next);
            }
            forms.push(next);
            form = next;
        }
        form
    }
}

/// The text of a map, simplified.
#[cfg(test)]
pub(crate) fn simplified(text: &str) -> String {
    let ctx = Context::new();
    let mut map = crate::map::IndexingMap::parse(&ctx, text).expect("a map");
    map.simplify(&ctx);
    map.display(&ctx).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_forms_of_digits_stay() {
        let ctx = Context::new();
        for text in [
            "(d0, d1) -> (((d0 * 3 + d1 * 2) mod 6) / 2)",
            "(d0, d1) -> (d0 mod 3 - (d0 * 4 + d1 * 3) mod 6)",
            "(d0) -> ((d0 ceildiv 3) * 2 + ((d0 + 2) mod 3 - d0 ceildiv 4) * 3 + (d0 / 2) mod 3)",
        ] {
            let map = crate::map::IndexingMap::parse(&ctx, text).expect("a map");
            let canonical = ctx.canonicalize(map.results[0]);
            assert_eq!(ctx.canonicalize(canonical), canonical, "{text}");
        }
    }

    #[test]
    fn numerators_of_many_quotients_stay_whole() {
        let ctx = Context::new();
        let mut tower = "d0".to_string();
        for _ in 0..60 {
            tower = format!("(({tower}) * 3 + d1) / 2");
        }
        let text = format!("(d0, d1) -> ({tower}), domain: d0 in [0, 99999], d1 in [0, 9]");
        let map = crate::map::IndexingMap::parse(&ctx, &text).expect("a map");
        let mut simple = map.clone();
        simple.simplify(&ctx);
        assert!(ctx.cost(simple.results[0]) <= ctx.cost(map.results[0]));
        for point in [[0, 0], [0, 9], [1, 3], [7919, 5], [99999, 9]] {
            let [given, found] = [&map, &simple].map(|map| map.evaluate(&ctx, &point, &[], &[]));
            assert!(given.is_ok() && given == found, "{point:?}: {found:?}");
        }
    }

    #[test]
    fn symbolic_linearization_is_undone() {
        assert_eq!(
            simplified(
                "(i, j){M, N} -> ((i * N + j) / N, (i * N + j) mod N), domain: \
                 i in [0, M - 1], j in [0, N - 1], M in [1, 1000], N in [1, 1000]"
            ),
            "(i, j){M, N} -> (i, j), domain: \
             i in [0, M - 1], j in [0, N - 1], M in [1, 1000], N in [1, 1000]"
        );
    }

    #[test]
    fn symbolic_remainder_joins_its_quotient() {
        assert_eq!(
            simplified("(i){N} -> ((i / N) * N + i mod N), domain: N in [0, inf]"),
            "(i){N} -> (i), domain: N in [0, inf]"
        );
    }

    #[test]
    fn multiples_of_a_symbol_are_taken_out() {
        for (result, bounds, expected) in [
            ("i - (i / N) * N", "[0, 99]", "i mod N"),
            ("(i / (N + 1)) * (N + 1) - i", "[0, 99]", "-(i mod (N + 1))"),
            ("(i mod N) / N", "[0, 99]", "0"),
            ("i / N", "[N, N * 2 - 1]", "1"),
            ("i mod N", "[N, N * 2 - 1]", "i - N"),
            ("i / N", "[-N, -1]", "-1"),
            ("i mod N", "[-N, -1]", "i + N"),
            ("i / N", "[N, N * 2]", "i / N"),
            ("i / 2 - N / 2", "[N, N]", "0"),
        ] {
            let domain = format!("domain: i in {bounds}, N in [1, 50]");
            assert_eq!(
                simplified(&format!("(i){{N}} -> ({result}), {domain}")),
                format!("(i){{N}} -> ({expected}), {domain}")
            );
        }
        // Neither value can be put into the other.
        let domain = "domain: M in [N, N], N in [M, M]";
        let text = format!("(){{M, N}} -> (M + N), {domain}");
        assert_eq!(simplified(&text), text);
    }

    #[test]
    fn extrema_of_the_same_operands_are_joined() {
        for (result, expected) in [
            ("min(d0, d1) + max(d0, d1)", "d0 + d1"),
            ("min(d0, 7) + max(d0 - 7, 0)", "d0"),
            ("max(d0 + 5, d1 + 4) + min(d0 - 1, d1 - 2)", "d0 + d1 + 3"),
            ("max(d0, d1) * 3 + min(d0, d1) * 3 - d0 * 3", "d1 * 3"),
            ("max(d0, d1) * 2 + min(d0, d1)", "min(d0, d1) + max(d0, d1) * 2"),
            ("min(d0, 7) + max(d0 - 6, 0)", "min(d0, 7) + max(d0 - 6, 0)"),
        ] {
            let domain = "domain: d0 in [0, 99], d1 in [0, 99]";
            assert_eq!(
                simplified(&format!("(d0, d1) -> ({result}), {domain}")),
                format!("(d0, d1) -> ({expected}), {domain}")
            );
        }
    }

    #[test]
    fn remainders_of_one_sum_are_merged() {
        for (domain, expected) in [
            (
                "d0 mod 3 in [0, 0], d0 mod 2 in [0, 0]",
                "d0 in [0, 96], d1 in [0, 99], d0 mod 6 in [0, 0]",
            ),
            (
                "d0 mod 4 in [0, 0], d0 mod 2 in [0, 0]",
                "d0 in [0, 96], d1 in [0, 99], d0 mod 4 in [0, 0]",
            ),
            (
                "d0 mod 6 in [1, 1], d0 mod 3 in [1, 1]",
                "d0 in [1, 97], d1 in [0, 99], d0 mod 6 in [1, 1]",
            ),
            (
                "d0 mod 4 in [3, 3], d0 mod 6 in [1, 1]",
                "d0 in [7, 91], d1 in [0, 99], d0 mod 12 in [7, 7]",
            ),
            (
                "(d0 + d1) mod 4 in [3, 3], (d0 + d1 + 1) mod 3 in [2, 2]",
                "d0 in [0, 99], d1 in [0, 99], (d0 + d1) mod 12 in [7, 7]",
            ),
        ] {
            let all =
                format!("(d0, d1) -> (d0, d1), domain: d0 in [0, 99], d1 in [0, 99], {domain}");
            assert_eq!(simplified(&all), format!("(d0, d1) -> (d0, d1), domain: {expected}"));
        }
        let both = "d0 mod 4 in [1, 1], d0 mod 6 in [2, 2]";
        assert_eq!(
            simplified(&format!("(d0) -> (d0), domain: d0 in [0, 99], {both}")),
            "KNOWN EMPTY"
        );
    }

    #[test]
    fn symbolic_bounds_prove_constraints() {
        assert_eq!(
            simplified(
                "(i)[k]{N} -> (i + k), domain: i in [0, N - 4], k in [0, 3], N in [4, 1000], \
                 N - 1 - i - k in [0, inf], i - N in [-inf, -4]"
            ),
            "(i)[k]{N} -> (i + k), domain: i in [0, N - 4], k in [0, 3], N in [4, 1000]"
        );
    }

    #[test]
    fn a_bound_of_two_to_the_63_is_not_rounded() {
        let text = "(d0, d1) -> (0), domain: d0 in [0, 1], d1 in [0, 4], \
                    -d0 - d1 * 9223372036854775807 in [-inf, -9223372036854775808]";
        let ctx = Context::new();
        let mut map = IndexingMap::parse(&ctx, text).expect("a map");
        map.simplify(&ctx);
        assert_eq!(map.contains(&ctx, &[0, 1], &[], &[]), Ok(false));
        assert_eq!(map.contains(&ctx, &[1, 1], &[], &[]), Ok(true));
    }

    #[test]
    fn finite_bounds_do_not_become_infinite() {
        for constraint in
            ["d0 + d1 - 9223372036854775807 in [0, 0]", "-d0 - d1 in [-9223372036854775807, 0]"]
        {
            let text = format!(
                "(d0, d1) -> (0), domain: d0 in [0, 9223372036854775806], d1 in [0, 2], {constraint}"
            );
            let ctx = Context::new();
            let mut map = IndexingMap::parse(&ctx, &text).expect("a map");
            map.simplify(&ctx);
            let inside = |d0, d1| map.contains(&ctx, &[d0, d1], &[], &[]);
            assert_eq!(inside(i64::MAX - 1, 1), Ok(true), "{constraint}");
            assert_eq!(inside(i64::MAX - 1, 2), Ok(false), "{constraint}");
        }
    }

    #[test]
    fn a_constant_beyond_64_bits_is_a_term() {
        assert_eq!(
            simplified("(d0) -> (min(-1, 1 + 9223372036854775807) + d0), domain: d0 in [0, 1]"),
            "(d0) -> (d0 - 1), domain: d0 in [0, 1]"
        );
    }

    #[test]
    fn results_do_not_depend_on_each_other() {
        let domain = "d0 in [15, 23], s0 in [0, 8]";
        let (first, second) = ("d0 / -5", "(s0 * -5) / 11");
        for results in [format!("{first}, {second}"), format!("{second}, {first}")] {
            let text = format!("(d0)[s0] -> ({results}), domain: {domain}");
            assert_eq!(simplified(&text), text);
        }
    }

    #[test]
    fn what_is_simplified_stays_so() {
        for text in [
            "(d0) -> (d0 - ((d0 + 1) / 5) * 4 - 5)",
            "()[s0] -> (s0 * 2 - ((s0 + 1) / 3) * 5 + 1), domain: s0 in [0, 68]",
            "(d0, d1) -> (d0), domain: d0 * 2 + d1 - ((d0 + 5) / 6) * 11 + 9 in [-inf, 2]",
        ] {
            let ctx = Context::new();
            let mut map = crate::map::IndexingMap::parse(&ctx, text).expect("a map");
            map.simplify(&ctx);
            assert!(!map.simplify(&ctx), "{text}");
        }
    }

    #[test]
    fn a_sum_may_leave_64_bits_on_the_way() {
        let (result, domain) =
            ("(d0 - d1 + 9223372036854775806) / 9223372036854775807", "d0 in [0, 1], d1 in [1, 2]");
        assert_eq!(
            simplified(&format!("(d0, d1) -> ({result}), domain: {domain}")),
            format!("(d0, d1) -> (0), domain: {domain}")
        );
    }

    #[test]
    fn products_are_not_multiplied() {
        let ctx = Context::new();
        let text = "(d0, d1) -> (((d0 * d1) / -1) mod 15077)";
        let mut map = IndexingMap::parse(&ctx, text).expect("a map");
        let point = [i64::MAX, i64::MAX - 1];
        let value = map.evaluate(&ctx, &point, &[], &[]);
        assert!(value.is_ok());
        map.simplify(&ctx);
        assert_eq!(map.evaluate(&ctx, &point, &[], &[]), value);
    }

    #[test]
    fn the_least_coefficient_has_a_quotient() {
        let text = "(d0){n} -> ((d0 * n * -9223372036854775808) / (n * -1))";
        assert!(simplified(text).contains("->"));
    }

    #[test]
    fn equal_coefficients_are_collected() {
        let ctx = Context::new();
        let (a, b, c) = (ctx.dim(0), ctx.dim(1), ctx.dim(2));
        let four = ctx.constant(4);
        let difference = ctx.sub(ctx.mul(a, four), ctx.mul(b, four));
        let sum = ctx.add(c, difference);
        assert_eq!(ctx.display(ctx.canonicalize(sum)).to_string(), "(d0 - d1) * 4 + d2");
    }

    #[test]
    fn shared_subexpressions_are_visited_once() {
        let ctx = Context::new();
        let mut expr = ctx.dim(0);
        for i in 0..150 {
            let quotient = ctx.floor_div(expr, ctx.constant(2));
            let remainder = ctx.modulo(expr, ctx.constant(3 + i % 5));
            expr = ctx.add(ctx.min(quotient, remainder), ctx.mul(expr, ctx.dim(1)));
        }
        let canonical = ctx.canonicalize(expr);
        assert!(ctx.cost(canonical) <= ctx.cost(expr));
        assert!(ctx.num_exprs() < 100_000, "{}", ctx.num_exprs());
    }

    #[test]
    fn nested_remainders_take_polynomial_time() {
        let ctx = Context::new();
        let mut expr = ctx.dim(0);
        for i in 0..200 {
            let remainder = ctx.modulo(expr, ctx.constant(1000 - i));
            let quotient = ctx.ceil_div(expr, ctx.constant(3 + i));
            expr = ctx.add(ctx.add(remainder, quotient), ctx.dim(1));
        }
        let canonical = ctx.canonicalize(expr);
        assert!(ctx.cost(canonical) <= ctx.cost(expr));
        assert!(ctx.num_exprs() < 100_000, "{}", ctx.num_exprs());
    }

    #[test]
    fn long_sums_take_little_time() {
        let ctx = Context::new();
        let mut sum = ctx.constant(0);
        for i in (0..20_000).rev() {
            sum = ctx.add(sum, ctx.mul(ctx.dim(i), ctx.constant(i64::from(i % 7))));
        }
        let canonical = ctx.canonicalize(sum);
        assert!(ctx.cost(canonical) < ctx.cost(sum));
    }
}
