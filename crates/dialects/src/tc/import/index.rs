//! Index expressions: as much arithmetic as possible becomes one indexing map.
//!
//! An expression is first built as a [`tc_ir::Expr`] whose dimension variables stand for
//! values (index variables, extents, and whatever else is computed) and whose runtime
//! variables are the size variables, by number. Where a value is needed, the variables that
//! occur are numbered anew and become the operands of `imap.apply`.

use super::{
    body::{Emitted, Emitter},
    scalar::{self, Literal},
};
use crate::{
    imap::{self, MAX_EXTENT},
    mlir::{self, Val},
    tc::syntax::{
        Type,
        checked::{ArithOp, Expr, ExprKind},
    },
    text::Span,
};
use tc_ir::{IndexingMap, Interval, Node, Var, Variable};

/// The most operations of one map. A let is written out wherever it is used, so that a
/// chain of them could grow exponentially: a larger expression becomes a value of its own.
const MAX_MAP_COST: u32 = 256;

/// The sign of a divisor.
enum Sign {
    Positive,
    Negative,
    Unknown,
}

impl<'a, 'c> Emitter<'_, 'a, 'c> {
    /// Emits an expression as an index. It may also be an index variable, a size or an
    /// extent in its scalar type.
    pub(super) fn index_value(&mut self, expr: &'a Expr) -> Emitted<'c, Val<'c>> {
        let index = self.index(expr)?;
        Ok(self.materialize(index, expr.span))
    }

    /// Builds the expression of an index.
    pub(super) fn index(&mut self, expr: &'a Expr) -> Emitted<'c, tc_ir::Expr> {
        self.enter(expr.span)?;
        let index = match &expr.kind {
            ExprKind::Int(value) => self.ir.constant(*value),
            ExprKind::Variable(number) => self.leaf(self.variable(*number), Interval::ALL),
            ExprKind::Size(number) => self.ir.runtime(*number as u32),
            ExprKind::Extent { statement, dim } => {
                let value = self.scope.extent(*statement, *dim, expr.span);
                self.leaf(value, Interval::new(1, MAX_EXTENT))
            }
            ExprKind::Let(number) => self.let_index(*number)?,
            ExprKind::Neg(value) => {
                let value = self.index(value)?;
                self.ir.neg(value)
            }
            ExprKind::Arith { op, lhs, rhs } => self.index_arith(*op, lhs, rhs, expr.span)?,
            ExprKind::Select { condition, on_true, on_false } => {
                let value = self.select(condition, on_true, on_false, expr.span)?;
                self.leaf(value, Interval::ALL)
            }
            ExprKind::Cast { value, .. } => self.index_cast(value, expr.span)?,
            ExprKind::Float { .. }
            | ExprKind::Bool(_)
            | ExprKind::Read { .. }
            | ExprKind::Not(_)
            | ExprKind::Compare { .. }
            | ExprKind::And(..)
            | ExprKind::Or(..)
            | ExprKind::Call { .. } => {
                unreachable!("an index holds such operands below casts only")
            }
        };
        self.leave();
        Ok(self.limited(index, expr.span))
    }

    /// The expression itself, or if it is too large for one map the value of it.
    pub(super) fn limited(&mut self, index: tc_ir::Expr, span: Span) -> tc_ir::Expr {
        if self.ir.cost(index) <= MAX_MAP_COST {
            return index;
        }
        let value = self.materialize(index, span);
        self.leaf(value, Interval::ALL)
    }

    /// The dimension variable that stands for a value.
    fn leaf(&mut self, value: Val<'c>, interval: Interval) -> tc_ir::Expr {
        let next = self.leaves.len() as u32;
        let number = *self.leaf_numbers.entry(mlir::value_key(value)).or_insert(next);
        if number == next {
            self.leaves.push((value, interval));
        }
        self.ir.dim(number)
    }

    fn index_arith(
        &mut self,
        op: ArithOp,
        lhs: &'a Expr,
        rhs: &'a Expr,
        span: Span,
    ) -> Emitted<'c, tc_ir::Expr> {
        let (lhs, rhs) = (self.index(lhs)?, self.index(rhs)?);
        Ok(match op {
            ArithOp::Add => self.ir.add(lhs, rhs),
            ArithOp::Sub => self.ir.sub(lhs, rhs),
            ArithOp::Mul => self.ir.mul(lhs, rhs),
            ArithOp::Min => self.ir.min(lhs, rhs),
            ArithOp::Max => self.ir.max(lhs, rhs),
            ArithOp::Div | ArithOp::Mod => self.index_division(op, lhs, rhs, span),
        })
    }

    /// Division that floors. In a map the divisor is positive: a negative one changes its
    /// sign, and one of unknown sign, which may be 0, is left to `tc.div` and `tc.rem`.
    fn index_division(
        &mut self,
        op: ArithOp,
        lhs: tc_ir::Expr,
        rhs: tc_ir::Expr,
        span: Span,
    ) -> tc_ir::Expr {
        let quotient = op == ArithOp::Div;
        match self.sign(rhs) {
            Sign::Positive if quotient => self.ir.floor_div(lhs, rhs),
            Sign::Positive => self.ir.modulo(lhs, rhs),
            // a / b == -a / -b, and so a - b * (a / b) == -(-a - -b * (-a / -b))
            Sign::Negative if quotient => self.ir.floor_div(self.ir.neg(lhs), self.ir.neg(rhs)),
            Sign::Negative => self.ir.neg(self.ir.modulo(self.ir.neg(lhs), self.ir.neg(rhs))),
            Sign::Unknown => {
                let (lhs, rhs) = (self.materialize(lhs, span), self.materialize(rhs, span));
                let name = if quotient { "tc.div" } else { "tc.rem" };
                let value = scalar::divide(&self.builder(span), name, false, lhs, rhs);
                self.leaf(value, Interval::ALL)
            }
        }
    }

    fn sign(&self, index: tc_ir::Expr) -> Sign {
        let interval = self.ir.interval_of(index, &|var| match var {
            Var::Dim(number) => self.leaves[number as usize].1,
            _ => Interval::new(1, MAX_EXTENT),
        });
        if interval.is_empty() {
            Sign::Unknown
        } else if 0 < interval.lo {
            Sign::Positive
        } else if interval.hi < 0 {
            Sign::Negative
        } else {
            Sign::Unknown
        }
    }

    /// A value of a scalar type as an index.
    fn index_cast(&mut self, value: &'a Expr, span: Span) -> Emitted<'c, tc_ir::Expr> {
        match value.ty {
            Type::Index => self.index(value),
            Type::Scalar(from) => {
                if let Some(Literal::Int(number)) = Literal::of(value) {
                    return Ok(self.ir.constant(number));
                }
                let value = self.value(value)?;
                let value = scalar::to_index(&self.builder(span), value, from);
                Ok(self.leaf(value, Interval::ALL))
            }
        }
    }

    /// Emits the value of an expression.
    pub(super) fn materialize(&mut self, index: tc_ir::Expr, span: Span) -> Val<'c> {
        match self.ir.node(index) {
            Node::Const(value) => return self.builder(span).index(value),
            Node::Var(var) => return self.leaf_value(var, span),
            _ => {}
        }
        let vars = self.ir.vars(index);
        let (mut dims, mut sizes) = (Vec::new(), Vec::new());
        for var in &vars {
            match var {
                Var::Dim(_) | Var::Range(_) => dims.push(*var),
                Var::Runtime(_) => sizes.push(*var),
            }
        }
        let new_number = |list: &[Var], var| {
            let number = list.iter().position(|it| *it == var);
            number.expect("it is among the variables") as u32
        };
        let result = self.ir.substitute(index, &|var| {
            Some(match var {
                Var::Dim(_) | Var::Range(_) => self.ir.dim(new_number(&dims, var)),
                Var::Runtime(_) => self.ir.runtime(new_number(&sizes, var)),
            })
        });
        let name = |var: &Var| match var {
            Var::Runtime(number) => {
                Variable::default().named(&self.scope.function.sizes[*number as usize].name)
            }
            _ => Variable::default(),
        };
        let map = IndexingMap {
            dims: vec![Variable::default(); dims.len()],
            runtimes: sizes.iter().map(name).collect(),
            results: vec![result],
            ..IndexingMap::default()
        };
        let operands: Vec<_> =
            dims.iter().chain(&sizes).map(|var| self.leaf_value(*var, span)).collect();
        imap::build_apply(&self.builder(span), &self.ir, &map, &operands)[0]
    }

    fn leaf_value(&mut self, var: Var, span: Span) -> Val<'c> {
        match var {
            Var::Dim(number) | Var::Range(number) => self.leaves[number as usize].0,
            Var::Runtime(number) => self.scope.size(number as usize, span),
        }
    }
}
