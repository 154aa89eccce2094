//! Sums of arithmetic progressions, and operations on them.

use std::cmp::Reverse;

use smallvec::{SmallVec, smallvec};

use super::nest::{Part, filling_sizes, nested};
use super::{Cover, Image, Irregularity, Rectangle, TiledVariable};
use crate::constraint_expression::ConstraintExpression;
use crate::expr::{Context, Expr, Node, Var, gcd};
use crate::hash::FastMap;
use crate::interval::Interval;
use crate::map::{Constraint, IndexingMap};

/// The values `stride * k` for `k` from 0 to `size - 1`.
#[derive(Clone)]
struct Term {
    stride: Expr,
    size: Expr,
    /// The variables that it depends on.
    vars: SmallVec<[Var; 2]>,
    /// Whether it is a multiple of its only variable.
    is_linear: bool,
}

/// The values `offset` plus one value of each term, where the constraints hold.
#[derive(Clone)]
struct Sum {
    offset: Expr,
    terms: SmallVec<[Term; 2]>,
    constraints: ConstraintExpression,
    /// Whether each term takes all of its values. The sum does if its terms share no variable.
    is_exact: bool,
}

/// What is known about the map and the tile.
pub(super) struct Walk<'a> {
    pub(super) ctx: &'a Context,
    pub(super) map: &'a IndexingMap,
    pub(super) tiled: FastMap<Var, TiledVariable>,
    pub(super) cover: Cover,
}

impl Walk<'_> {
    /// The values of a result.
    pub(super) fn image(&self, result: Expr) -> Image {
        let vars = self.ctx.vars(result);
        let is_fixed = |var: &Var| matches!(var, Var::Runtime(_)) && !self.tiled.contains_key(var);
        if !vars.iter().all(is_fixed) && !vars.iter().any(|var| self.tiled.contains_key(var)) {
            return Image::Whole;
        }
        if self.cover == Cover::Exact && !self.map.constraints.is_empty() {
            return Image::Irregular(Irregularity::Constrained);
        }
        let sum = self.ctx.fold(&[result], |_, node, operands| self.step(node, operands));
        match sum.and_then(|mut sums| self.progression(sums.swap_remove(0))) {
            Ok(sum) => Image::Rectangular(self.rectangle(sum)),
            Err(reason) => Image::Irregular(reason),
        }
    }

    fn rectangle(&self, sum: Sum) -> Rectangle {
        let (size, stride) = match &sum.terms[..] {
            [term] => (term.size, term.stride),
            _ => (self.ctx.constant(1), self.ctx.constant(0)),
        };
        let mut constraints = sum.constraints;
        constraints.simplify(self.ctx);
        let is_exact = sum.is_exact && self.map.constraints.is_empty();
        Rectangle { offset: sum.offset, size, stride, constraints, is_exact }
    }

    fn step(&self, node: Node, operands: Option<(&Sum, &Sum)>) -> Result<Sum, Irregularity> {
        let Some((lhs, rhs)) = operands else {
            return match node {
                Node::Var(var) => self.variable(var),
                Node::Const(value) => Ok(point(self.ctx.constant(value))),
                _ => unreachable!("operations have operands"),
            };
        };
        match node {
            Node::Add(..) => Ok(self.add(lhs, rhs)),
            Node::Mul(..) if rhs.terms.is_empty() => Ok(self.scale(lhs, rhs)),
            Node::Mul(..) if lhs.terms.is_empty() => Ok(self.scale(rhs, lhs)),
            Node::Mul(..) => Err(Irregularity::Product),
            _ if lhs.terms.is_empty() && rhs.terms.is_empty() => {
                let constraints = both(&lhs.constraints, &rhs.constraints);
                let is_exact = lhs.is_exact && rhs.is_exact;
                let offset = self.ctx.rebuild(node, lhs.offset, rhs.offset);
                Ok(Sum { constraints, is_exact, ..point(offset) })
            }
            Node::Min(..) | Node::Max(..) => self.extremum(node, lhs, rhs),
            _ => {
                let divisor = self.ctx.as_constant(rhs.offset).filter(|_| rhs.terms.is_empty());
                let divisor = divisor.filter(|it| 0 < *it).ok_or(Irregularity::Divisor)?;
                match node {
                    Node::FloorDiv(..) => self.quotient(lhs, divisor),
                    Node::CeilDiv(..) => {
                        let rounded = point(self.ctx.constant(divisor - 1));
                        self.quotient(&self.add(lhs, &rounded), divisor)
                    }
                    _ => self.remainder(lhs, divisor),
                }
            }
        }
    }

    fn variable(&self, var: Var) -> Result<Sum, Irregularity> {
        let ctx = self.ctx;
        let (offset, size) = match (self.tiled.get(&var), self.map.variable(var)) {
            (Some(tiled), _) => (tiled.offset, tiled.size),
            (None, _) if matches!(var, Var::Runtime(_)) => return Ok(point(ctx.var(var))),
            (None, variable) => {
                let bounds = variable.and_then(|it| Some((it.lower?, it.upper?)));
                let (lower, upper) = bounds.ok_or(Irregularity::Unbounded(var))?;
                (lower, (ctx.wrap(upper) - lower + 1).expr())
            }
        };
        let stride = ctx.constant(1);
        let term = Term { stride, size, vars: smallvec![var], is_linear: true };
        Ok(self.sum(offset, smallvec![term]))
    }

    /// A sum without the terms that have one value.
    fn sum(&self, offset: Expr, mut terms: SmallVec<[Term; 2]>) -> Sum {
        let is = |expr, value| self.ctx.as_constant(expr) == Some(value);
        terms.retain(|term| !is(term.size, 1) && !is(term.stride, 0));
        Sum { terms, ..point(offset) }
    }

    fn add(&self, lhs: &Sum, rhs: &Sum) -> Sum {
        let mut terms = lhs.terms.clone();
        for term in &rhs.terms {
            let same =
                |other: &&mut Term| other.is_linear && term.is_linear && other.vars == term.vars;
            match terms.iter_mut().find(same) {
                Some(other) => other.stride = self.ctx.add(other.stride, term.stride),
                None => terms.push(term.clone()),
            }
        }
        Sum {
            constraints: both(&lhs.constraints, &rhs.constraints),
            is_exact: lhs.is_exact && rhs.is_exact,
            ..self.sum(self.ctx.add(lhs.offset, rhs.offset), terms)
        }
    }

    fn scale(&self, sum: &Sum, factor: &Sum) -> Sum {
        let by = |expr| self.ctx.mul(expr, factor.offset);
        let terms = sum.terms.iter().map(|term| Term { stride: by(term.stride), ..term.clone() });
        Sum {
            constraints: both(&sum.constraints, &factor.constraints),
            is_exact: sum.is_exact && factor.is_exact,
            ..self.sum(by(sum.offset), terms.collect())
        }
    }

    fn constant_stride(&self, term: &Term) -> Result<i64, Irregularity> {
        let stride = self.ctx.as_constant(term.stride).filter(|it| *it != i64::MIN);
        stride.ok_or(Irregularity::SymbolicStride)
    }

    /// Reverses the order of the values of a term.
    fn reverse(&self, offset: &mut Expr, term: &mut Term) {
        let ctx = self.ctx;
        let last = (ctx.wrap(term.size) - 1) * term.stride;
        *offset = (ctx.wrap(*offset) + last).expr();
        term.stride = ctx.neg(term.stride);
    }

    /// The sum with at most one term.
    fn progression(&self, sum: Sum) -> Result<Sum, Irregularity> {
        match (self.cover, sum.terms.len()) {
            (_, 0) => Ok(sum),
            (Cover::Exact, 1) => Ok(sum),
            (Cover::Exact, _) => self.exact_progression(sum),
            (Cover::Hull, 1) if self.constant_stride(&sum.terms[0]).is_err() => Ok(sum),
            (Cover::Hull, _) => self.hull(sum),
        }
    }

    /// The sum in the scheme of the [module](super) text.
    fn exact_progression(&self, mut sum: Sum) -> Result<Sum, Irregularity> {
        let ctx = self.ctx;
        if let Some(var) = shared_variable(&sum.terms) {
            return Err(Irregularity::SharedVariable(var));
        }
        let mut terms: Vec<(i64, Term)> = Vec::with_capacity(sum.terms.len());
        for term in std::mem::take(&mut sum.terms) {
            terms.push((self.constant_stride(&term)?, term));
        }
        terms.sort_by_key(|(stride, _)| Reverse(stride.unsigned_abs()));
        // The terms of larger strides get the sign of the smallest.
        let is_negative = terms.last().is_some_and(|(stride, _)| *stride < 0);
        let mut merged: Vec<(i64, Term)> = Vec::with_capacity(terms.len());
        for (mut stride, mut term) in terms {
            if (stride < 0) != is_negative {
                self.reverse(&mut sum.offset, &mut term);
                stride = -stride;
            }
            match merged.last_mut() {
                Some((last, other)) if *last == stride => {
                    other.size = (ctx.wrap(other.size) + term.size - 1).expr();
                    other.vars.extend(term.vars);
                }
                Some((last, _)) if *last % stride != 0 => {
                    return Err(Irregularity::Strides(*last, stride));
                }
                _ => merged.push((stride, term)),
            }
        }
        if merged.len() == 1 {
            sum.terms = merged.into_iter().map(|(_, term)| term).collect();
            return Ok(sum);
        }
        let parts: Vec<Part> = merged.iter().map(|(stride, term)| (*stride, term.size)).collect();
        sum.constraints = both(&sum.constraints, &filling_sizes(ctx, &parts, &|_| Vec::new()));
        let (size, stride) = nested(ctx, &parts);
        let vars = merged.into_iter().flat_map(|(_, term)| term.vars).collect();
        sum.terms.push(Term { stride, size, vars, is_linear: false });
        Ok(sum)
    }

    /// A progression with a positive stride that covers the sum.
    fn hull(&self, mut sum: Sum) -> Result<Sum, Irregularity> {
        let ctx = self.ctx;
        let mut steps: SmallVec<[(u64, Term); 4]> = SmallVec::new();
        for mut term in std::mem::take(&mut sum.terms) {
            let stride = self.constant_stride(&term)?;
            if stride < 0 {
                self.reverse(&mut sum.offset, &mut term);
            }
            steps.push((stride.unsigned_abs(), term));
        }
        steps.sort_by_key(|(stride, _)| *stride);
        let step = steps.iter().fold(0, |step, (stride, _)| gcd(step, *stride));
        // Sums of the terms so far reach every multiple of the step up to this one.
        let mut reach = 0_u64;
        let mut last = ctx.wrap(0);
        let mut vars = SmallVec::new();
        sum.is_exact &= steps.len() == 1 || shared_variable(steps.iter().map(|it| &it.1)).is_none();
        for (stride, term) in steps {
            let factor = stride / step;
            sum.is_exact &= factor <= reach.saturating_add(1);
            let num_steps = ctx.wrap(term.size) - 1;
            let at_least = ctx.as_constant(num_steps.expr()).map_or(0, i64::unsigned_abs);
            reach = reach.saturating_add(factor.saturating_mul(at_least));
            last = last + num_steps * i64::try_from(factor).expect("a divisor of a stride");
            vars.extend(term.vars);
        }
        let size = (last + 1).expr();
        let stride = ctx.constant(i64::try_from(step).expect("a divisor of a stride"));
        sum.terms.push(Term { stride, size, vars, is_linear: false });
        Ok(sum)
    }

    /// The operand of a nonlinear operation as a progression with a positive stride, apart from its
    /// term.
    fn operand(&self, sum: &Sum) -> Result<(Sum, Option<(i64, Term)>), Irregularity> {
        let mut sum = self.progression(sum.clone())?;
        let Some(mut term) = sum.terms.pop() else { return Ok((sum, None)) };
        let stride = self.constant_stride(&term)?;
        if stride < 0 {
            self.reverse(&mut sum.offset, &mut term);
        }
        term.is_linear = false;
        Ok((sum, Some((stride.abs(), term))))
    }

    /// Marks what covers the values of an operation but is not seen to equal them.
    fn inexact(&self, sum: &mut Sum, reason: Irregularity) -> Result<(), Irregularity> {
        sum.is_exact = false;
        if self.cover == Cover::Exact { Err(reason) } else { Ok(()) }
    }

    /// The sum of an offset and a term, where the constraints of `sum` hold.
    fn with_term(&self, sum: Sum, term: Term) -> Sum {
        Sum {
            constraints: sum.constraints,
            is_exact: sum.is_exact,
            ..self.sum(sum.offset, smallvec![term])
        }
    }

    /// Where a tile whose offset is a multiple of its size lies between two multiples of `divisor` or
    /// consists of such stretches. `None` for other tiles, and where it is not usable.
    fn nesting(&self, offset: Expr, size: Expr, divisor: i64) -> Option<ConstraintExpression> {
        let ctx = self.ctx;
        if let Some(size) = ctx.as_constant(size) {
            let is_nested = 0 < size && (divisor % size == 0 || size % divisor == 0);
            let is_multiple = is_nested && ctx.is_multiple_of(offset, size);
            return is_multiple.then(ConstraintExpression::always_satisfied);
        }
        if self.cover == Cover::Hull || !is_multiple(ctx, offset, size) {
            return None;
        }
        let divides = |lhs, rhs| vec![divides(ctx, lhs, rhs)];
        let divisor = ctx.constant(divisor);
        Some(ConstraintExpression::new(vec![divides(size, divisor), divides(divisor, size)]))
    }

    fn quotient(&self, sum: &Sum, divisor: i64) -> Result<Sum, Irregularity> {
        let ctx = self.ctx;
        let (mut sum, term) = self.operand(sum)?;
        let offset = sum.offset;
        sum.offset = divided(ctx, offset, divisor);
        let Some((stride, mut term)) = term else { return Ok(sum) };
        if stride % divisor == 0 {
            term.stride = ctx.constant(stride / divisor);
            return Ok(self.with_term(sum, term));
        }
        if divisor < stride {
            self.inexact(&mut sum, Irregularity::StridedOperand(stride))?;
        }
        let is_aligned = ctx.is_multiple_of(offset, divisor);
        let nesting = self.nesting(offset, term.size, divisor).filter(|_| stride == 1);
        let last = (ctx.wrap(term.size) - 1) * stride;
        term.size = if stride == 1 && (is_aligned || nesting.is_some()) {
            ctx.ceil_div(term.size, ctx.constant(divisor))
        } else if is_aligned {
            (last / divisor + 1).expr()
        } else {
            ((last + offset) / divisor - sum.offset + 1).expr()
        };
        if let Some(constraints) = nesting.filter(|_| !is_aligned) {
            sum.constraints = both(&sum.constraints, &constraints);
        }
        term.stride = ctx.constant(1);
        Ok(self.with_term(sum, term))
    }

    fn remainder(&self, sum: &Sum, divisor: i64) -> Result<Sum, Irregularity> {
        let ctx = self.ctx;
        let (mut sum, term) = self.operand(sum)?;
        let offset = sum.offset;
        let is_aligned = ctx.is_multiple_of(offset, divisor);
        if !is_aligned {
            sum.offset = ctx.modulo(offset, ctx.constant(divisor));
        } else {
            sum.offset = ctx.constant(0);
        }
        let Some((stride, mut term)) = term.filter(|(stride, _)| stride % divisor != 0) else {
            return Ok(sum);
        };
        term.stride = ctx.constant(stride);
        let mut nesting = None;
        if stride == 1 {
            let always = ConstraintExpression::always_satisfied;
            nesting =
                if is_aligned { Some(always()) } else { self.nesting(offset, term.size, divisor) };
            term.size = ctx.min(term.size, ctx.constant(divisor));
        }
        let constraints = nesting.unwrap_or_else(|| {
            let last = (ctx.wrap(term.size) - 1) * stride + sum.offset;
            let within = Constraint { expr: last.expr(), interval: Interval::new(0, divisor - 1) };
            let mut within = ConstraintExpression::new(vec![vec![within]]);
            within.simplify(ctx);
            within
        });
        if self.cover == Cover::Hull && !constraints.is_always_satisfied() {
            // Every remainder may occur.
            sum.offset = ctx.constant(0);
            sum.is_exact = false;
            (term.stride, term.size) = (ctx.constant(1), ctx.constant(divisor));
        } else {
            sum.constraints = both(&sum.constraints, &constraints);
        }
        Ok(self.with_term(sum, term))
    }

    /// The minimum or maximum of two progressions: that of values without gaps has none.
    fn extremum(&self, node: Node, lhs: &Sum, rhs: &Sum) -> Result<Sum, Irregularity> {
        let ctx = self.ctx;
        let (lhs, rhs) = (self.operand(lhs)?, self.operand(rhs)?);
        let mut sum = point(ctx.rebuild(node, lhs.0.offset, rhs.0.offset));
        sum.constraints = both(&lhs.0.constraints, &rhs.0.constraints);
        sum.is_exact = lhs.0.is_exact && rhs.0.is_exact;
        let last = |(sum, term): &(Sum, Option<(i64, Term)>)| match term {
            None => sum.offset,
            Some((stride, term)) => ((ctx.wrap(term.size) - 1) * *stride + sum.offset).expr(),
        };
        let last = ctx.rebuild(node, last(&lhs), last(&rhs));
        let terms: SmallVec<[(i64, Term); 2]> = lhs.1.into_iter().chain(rhs.1).collect();
        if let Some((stride, _)) = terms.iter().find(|(stride, _)| *stride != 1) {
            self.inexact(&mut sum, Irregularity::StridedOperand(*stride))?;
        }
        if let Some(var) = shared_variable(terms.iter().map(|it| &it.1)) {
            self.inexact(&mut sum, Irregularity::SharedVariable(var))?;
        }
        let term = Term {
            stride: ctx.constant(1),
            size: (ctx.wrap(last) - sum.offset + 1).expr(),
            vars: terms.into_iter().flat_map(|it| it.1.vars).collect(),
            is_linear: false,
        };
        Ok(self.with_term(sum, term))
    }
}

/// One value.
fn point(offset: Expr) -> Sum {
    let constraints = ConstraintExpression::always_satisfied();
    Sum { offset, terms: SmallVec::new(), constraints, is_exact: true }
}

/// Whether the offset is seen to be a multiple of the size.
pub(super) fn is_multiple(ctx: &Context, offset: Expr, size: Expr) -> bool {
    match (ctx.as_constant(size), ctx.node(offset)) {
        (Some(size), _) => 0 < size && ctx.is_multiple_of(offset, size),
        (_, Node::Mul(lhs, rhs)) => lhs == size || rhs == size,
        (_, Node::Const(value)) => value == 0,
        _ => offset == size,
    }
}

/// That `lhs` divides `rhs`.
pub(super) fn divides(ctx: &Context, lhs: Expr, rhs: Expr) -> Constraint {
    Constraint { expr: ctx.modulo(rhs, lhs), interval: Interval::point(0) }
}

/// The quotient of an offset, without an operation where the offset is a product with a multiple of
/// the divisor.
pub(super) fn divided(ctx: &Context, offset: Expr, divisor: i64) -> Expr {
    if let Node::Mul(lhs, rhs) = ctx.node(offset)
        && let Some(factor) = ctx.as_constant(rhs)
        && factor % divisor == 0
    {
        return ctx.mul(lhs, ctx.constant(factor / divisor));
    }
    ctx.floor_div(offset, ctx.constant(divisor))
}

/// A variable that two terms depend on.
fn shared_variable<'t>(terms: impl IntoIterator<Item = &'t Term>) -> Option<Var> {
    let mut seen: SmallVec<[Var; 8]> = SmallVec::new();
    for term in terms {
        if let Some(var) = term.vars.iter().find(|var| seen.contains(var)) {
            return Some(*var);
        }
        seen.extend(term.vars.iter().copied());
    }
    None
}

/// What holds where both hold; the same constraints are not repeated.
fn both(lhs: &ConstraintExpression, rhs: &ConstraintExpression) -> ConstraintExpression {
    if lhs == rhs || rhs.is_always_satisfied() { lhs.clone() } else { lhs.and(rhs) }
}
