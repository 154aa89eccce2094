//! Definitions: their schemes, and when their shapes are solved.

use super::super::syntax::ast::{Expr, ExprKind, Let, Pattern};
use super::super::types::{Generality, MAX_PARTS, Node, Scheme, Ty, Types, TypesMark};
use super::{Binding, Inference, What};
use crate::text::{Reason, Span};
use std::rc::Rc;
use tc_ir::shape::solve::{Conflict, Mark};

/// What is defined.
pub(super) struct Defined {
    pub(super) ty: Ty,
    generality: Generality,
    /// Whether it is evaluated at each use, whatever its type is.
    is_value: bool,
    /// Before it was looked at.
    since: TypesMark,
    /// How many integers there were.
    integers: usize,
    span: Span,
}

impl Inference {
    /// A definition, of the file or in the body of a function.
    pub(super) fn definition(&mut self, definition: &Let, top: bool) {
        let outer = self.defining.len();
        let errors = self.diagnostics.len();
        if let Pattern::Name(name) = &definition.pattern {
            let is_function = matches!(definition.value.kind, ExprKind::Function(_));
            self.defining.push((Rc::clone(&name.text), is_function));
        }
        let mut defined = self.defined(&definition.value, top);
        let mark = defined.since.solver;
        if let Pattern::Tuple(..) = definition.pattern {
            defined.is_value = false;
            if defined.generality == Generality::All
                && !self.types.solver.residuals(mark).is_empty()
            {
                // Its parts cannot be had apart from each other: conditions are about all of them.
                defined.generality = Generality::Nothing;
                self.types.lower_levels(defined.since, self.level, true);
            }
        }
        self.destructure(&definition.pattern, defined.ty, &defined, top);
        if let Pattern::Tuple(..) = definition.pattern {
            self.solve(top.then_some(defined.ty), 0);
            if top {
                self.settle(mark, errors);
            }
        }
        if top && errors < self.diagnostics.len() {
            self.types.solver.forget_residuals(mark);
        }
        self.defining.truncate(outer);
    }

    /// Refuses a type that is too large.
    fn too_large(&mut self, ty: Ty, span: Span) -> Option<Ty> {
        let message = format!("type has more than {MAX_PARTS} parts");
        let is_too_large = self.types.is_too_large(ty);
        is_too_large.then(|| self.error(Reason::AxonLimit, span, message))
    }

    /// The type of what is defined, and what of it stands for anything at each use.
    pub(super) fn defined(&mut self, value: &Expr, top: bool) -> Defined {
        let errors = self.diagnostics.len();
        let since = self.types.mark();
        let pending = self.types.solver.num_pointwise();
        let integers = self.integers.len();
        if top {
            self.conflicts = 0;
        }
        let outer = self.level;
        self.level += 1;
        let mut ty = self.expr(value);
        self.solve(None, pending);
        let is_value = value.is_value();
        let generality = match is_value {
            true => Generality::All,
            false => self.types.generality(ty, outer, pending),
        };
        if generality != Generality::All {
            self.level = outer;
            self.types.lower_levels(since, outer, generality == Generality::Nothing);
        }
        if top || generality == Generality::All {
            if pending < self.types.solver.num_pointwise() {
                // What is decided depends on what is known.
                self.settle(since.solver, errors);
                self.solve(Some(ty), pending);
            }
            self.settle(since.solver, errors);
        }
        self.level = outer;
        if errors < self.diagnostics.len() {
            ty = self.types.add(Node::Error);
        }
        let ty = self.too_large(ty, value.span).unwrap_or(ty);
        let span = value.span;
        Defined { ty, generality, is_value, since, integers, span }
    }

    /// The scheme of what is defined, or of a part of it.
    pub(super) fn scheme(&mut self, ty: Ty, defined: &Defined) -> Scheme {
        let scheme = match defined.generality {
            Generality::Nothing => Types::monomorphic(ty),
            Generality::Elements | Generality::All => {
                let mut scheme = self.types.generalize(ty, self.level, defined.since.solver);
                if self.numbers.contains(&ty) {
                    self.numbers.insert(scheme.ty);
                }
                scheme.integers = self.open_integers(defined.integers);
                scheme
            }
        };
        let error = match std::mem::take(&mut self.types.too_large) {
            Some(error) => error.to_string(),
            None if std::mem::take(&mut self.types.too_deep) => {
                "type is nested too deeply".to_string()
            }
            None => return scheme,
        };
        Types::monomorphic(self.error(Reason::AxonLimit, defined.span, error))
    }

    /// Solves the equations between shapes, and where something is complete that has a type, decides about
    /// point-wise operations.
    pub(crate) fn solve(&mut self, complete: Option<Ty>, keep: usize) {
        let solved = match complete {
            Some(ty) => {
                let shapes = self.types.shapes(ty);
                self.types.solver.solve_pointwise(keep, &shapes)
            }
            None => self.types.solver.solve(),
        };
        self.solved(solved);
    }

    /// What is known about the shapes of a complete definition, whatever the order in which its parts
    /// were solved.
    pub(crate) fn settle(&mut self, since: Mark, errors: usize) {
        if errors == self.diagnostics.len() {
            let settled = self.types.solver.settle(since, self.level);
            self.solved(settled);
        }
    }

    fn solved(&mut self, solved: Result<(), Box<Conflict>>) {
        if let Err(conflict) = solved {
            // What follows from a contradiction is not worth reporting.
            self.types.solver.abandon();
            if self.conflicts == 0 {
                self.report_conflict(&conflict);
            }
            self.conflicts += 1;
        }
    }

    /// Binds the names of a pattern to what is defined, or to a part of it.
    fn destructure(&mut self, pattern: &Pattern, ty: Ty, defined: &Defined, top: bool) {
        match pattern {
            Pattern::Ignore(_) => {}
            Pattern::Name(name) => {
                let scheme = self.scheme(ty, defined);
                let binding = match defined.is_value || scheme.is_polymorphic() {
                    true => {
                        self.uses.polymorphic.insert((self.in_prelude, name.span));
                        Binding::Scheme(Rc::new(scheme.clone()))
                    }
                    false => Binding::Value(scheme.ty),
                };
                let is_tensor = matches!(self.types.node(scheme.ty), Node::Tensor(..));
                if !self.in_prelude && (is_tensor || matches!(binding, Binding::Value(_))) {
                    self.named.push((Rc::clone(&name.text), name.span, scheme.ty));
                }
                self.bind(Rc::clone(&name.text), binding);
                if top {
                    self.definitions.push((Rc::clone(&name.text), scheme));
                }
            }
            Pattern::Tuple(parts, span) => {
                let found = match self.types.node(ty) {
                    Node::Tuple(found) if found.len() == parts.len() => found,
                    _ => {
                        let vars: Vec<Ty> =
                            parts.iter().map(|_| self.types.var(self.level)).collect();
                        let tuple = self.types.add(Node::Tuple(vars.clone()));
                        let origin = self.origin(*span, What::Pattern, Some(ty));
                        if let Err(mismatch) = self.types.unify(tuple, ty, origin) {
                            let shown = self.anonymous(ty);
                            self.report_mismatch(mismatch, origin);
                            if let Some(last) = self.diagnostics.last_mut() {
                                last.notes.push((defined.span, format!("the value is {shown}")));
                            }
                            vec![self.types.add(Node::Error); parts.len()]
                        } else {
                            vars
                        }
                    }
                };
                for (part, ty) in parts.iter().zip(found) {
                    self.destructure(part, ty, defined, top);
                }
            }
        }
    }
}
