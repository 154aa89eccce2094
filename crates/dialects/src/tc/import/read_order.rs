//! Plans how the lets of a statement are emitted for a set of expressions.
//!
//! A let is a name for an expression, and an operand of `?:`, `&&` or `||` is evaluated
//! only where it is needed. That matters for reads alone, which may be out of bounds
//! elsewhere: arithmetic may always be evaluated. So a let is emitted once, before
//! everything else, unless it reads a tensor and is used only under conditions.
//!
//! All walks are linear in the size of the statement. They do not recurse through lets,
//! whose chains are as long as the input wants.

use crate::tc::syntax::{
    Type,
    checked::{Expr, ExprKind, Let},
};
use std::collections::HashSet;

/// How often a let is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    /// Not at all.
    #[default]
    Never,
    /// Only under conditions.
    Sometimes,
    /// At every point.
    Always,
}

/// A let has two forms: its value in its own type, and that value as an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LetForm {
    /// The position among the lets of the statement.
    pub(super) number: usize,
    /// Whether the form is the index.
    pub(super) index: bool,
}

impl LetForm {
    /// The form to which a reference of this type refers.
    pub(super) fn of(number: usize, ty: Type) -> Self {
        Self { number, index: ty == Type::Index }
    }

    /// Its expression.
    pub(super) fn expr(self, lets: &[Let]) -> Option<&Expr> {
        let each = lets.get(self.number)?;
        if self.index { each.index.as_ref() } else { Some(&each.value) }
    }

    fn slot(self) -> usize {
        2 * self.number + usize::from(self.index)
    }
}

/// The order of the reads for the expressions of one region.
pub(super) struct ReadOrder {
    /// The need of each form of each let.
    needs: Vec<Need>,
    /// Whether a reference to the form reads a tensor where it stands.
    reads: Vec<bool>,
    /// The operands of conditional operators that read a tensor, by address.
    reading: HashSet<*const Expr>,
}

impl ReadOrder {
    /// Plans for expressions that are evaluated at every point.
    pub(super) fn new<'a>(lets: &'a [Let], roots: impl IntoIterator<Item = &'a Expr>) -> Self {
        let mut read_order = Self {
            needs: vec![Need::Never; 2 * lets.len()],
            reads: vec![false; 2 * lets.len()],
            reading: HashSet::new(),
        };
        let roots: Vec<_> = roots.into_iter().collect();
        for root in &roots {
            read_order.note_uses(root, Need::Always);
        }
        // A let refers to earlier ones only, so that all uses of a let are known when its
        // turn comes.
        for form in forms(lets).rev() {
            let need = read_order.need(form);
            if need != Need::Never
                && let Some(expr) = form.expr(lets)
            {
                read_order.note_uses(expr, need);
            }
        }
        for form in forms(lets) {
            let need = read_order.need(form);
            if need != Need::Never
                && let Some(expr) = form.expr(lets)
            {
                let reads = read_order.note_reads(expr);
                read_order.reads[form.slot()] = reads && need == Need::Sometimes;
            }
        }
        for root in &roots {
            read_order.note_reads(root);
        }
        read_order
    }

    /// How often a form is needed.
    pub(super) fn need(&self, form: LetForm) -> Need {
        self.needs[form.slot()]
    }

    /// The forms to emit before everything else, in order: those that are needed and may be
    /// evaluated at every point.
    pub(super) fn eager<'a>(&'a self, lets: &'a [Let]) -> impl Iterator<Item = LetForm> + 'a {
        forms(lets).filter(|form| self.need(*form) != Need::Never && !self.reads[form.slot()])
    }

    /// Whether an operand of a conditional operator reads a tensor when it is evaluated.
    pub(super) fn is_reading(&self, operand: &Expr) -> bool {
        self.reading.contains(&std::ptr::from_ref(operand))
    }

    fn note_uses(&mut self, root: &Expr, need: Need) {
        let mut stack = vec![(root, need)];
        while let Some((expr, need)) = stack.pop() {
            if let ExprKind::Let(number) = expr.kind {
                let slot = &mut self.needs[LetForm::of(number, expr.ty).slot()];
                *slot = need.max(*slot);
            }
            for_each_operand(expr, |operand, conditional| {
                stack.push((operand, if conditional { Need::Sometimes } else { need }));
            });
        }
    }

    /// Whether the evaluation of an expression reads a tensor. Recursion is as deep as the
    /// tree, which the parser limits.
    fn note_reads(&mut self, expr: &Expr) -> bool {
        let mut reads = match expr.kind {
            ExprKind::Read { .. } => true,
            ExprKind::Let(number) => self.reads[LetForm::of(number, expr.ty).slot()],
            _ => false,
        };
        for_each_operand(expr, |operand, conditional| {
            let reading = self.note_reads(operand);
            if reading && conditional {
                self.reading.insert(std::ptr::from_ref(operand));
            }
            reads |= reading;
        });
        reads
    }
}

/// Both forms of every let, in order.
fn forms(lets: &[Let]) -> impl DoubleEndedIterator<Item = LetForm> + use<> {
    (0..2 * lets.len()).map(|slot| LetForm { number: slot / 2, index: slot % 2 == 1 })
}

/// Calls `visit` with each operand, and whether it is evaluated only under a condition.
pub(super) fn for_each_operand<'a>(expr: &'a Expr, mut visit: impl FnMut(&'a Expr, bool)) {
    match &expr.kind {
        ExprKind::Int(_)
        | ExprKind::Float { .. }
        | ExprKind::Bool(_)
        | ExprKind::Variable(_)
        | ExprKind::Size(_)
        | ExprKind::Extent { .. }
        | ExprKind::Let(_) => {}
        ExprKind::Read { indices: operands, .. } | ExprKind::Call { args: operands, .. } => {
            operands.iter().for_each(|operand| visit(operand, false));
        }
        ExprKind::Neg(value) | ExprKind::Not(value) | ExprKind::Cast { value, .. } => {
            visit(value, false);
        }
        ExprKind::Arith { lhs, rhs, .. } | ExprKind::Compare { lhs, rhs, .. } => {
            visit(lhs, false);
            visit(rhs, false);
        }
        ExprKind::And(lhs, rhs) | ExprKind::Or(lhs, rhs) => {
            visit(lhs, false);
            visit(rhs, true);
        }
        ExprKind::Select { condition, on_true, on_false } => {
            visit(condition, false);
            visit(on_true, true);
            visit(on_false, true);
        }
    }
}

/// The reads of an expression that stand in no other read, in order. Those of the lets that
/// it refers to are not among them.
pub(super) fn outer_reads<'a>(root: &'a Expr, found: &mut Vec<&'a Expr>) {
    let mut stack = vec![root];
    while let Some(expr) = stack.pop() {
        if matches!(expr.kind, ExprKind::Read { .. }) {
            found.push(expr);
            continue;
        }
        let first = stack.len();
        for_each_operand(expr, |operand, _| stack.push(operand));
        stack[first..].reverse();
    }
}

/// The first index variable on which the value of an expression depends, directly or
/// through lets.
pub(super) fn first_variable<'a>(root: &'a Expr, lets: &'a [Let]) -> Option<(usize, &'a Expr)> {
    let mut seen = HashSet::new();
    let mut stack = vec![root];
    while let Some(expr) = stack.pop() {
        match expr.kind {
            ExprKind::Variable(variable) => return Some((variable, expr)),
            ExprKind::Let(number) => {
                let form = LetForm::of(number, expr.ty);
                if seen.insert(form) {
                    stack.extend(form.expr(lets));
                }
            }
            _ => {}
        }
        let first = stack.len();
        for_each_operand(expr, |operand, _| stack.push(operand));
        stack[first..].reverse();
    }
    None
}
