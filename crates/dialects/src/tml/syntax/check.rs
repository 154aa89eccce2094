//! The typing rules: each is one function, named after the rule.
//!
//! Source: figures 7 (s-empty, s-var), 8 (ok-prog, ok-empty, ok-stmt, ok-seq) and 9 (t-var, t-paren,
//! t-prod, t-trans, t-contr, t-elem, t-smul, t-sdiv). What violates a premise is one of the five failures
//! of section 3.2.1, or an index that is no dimension; the message names the rule, and notes say where the
//! extents were declared. An expression without a type makes no further errors.
//!
//! Figure 8 checks a statement after its predecessors, all under one context, so that the order of
//! statements does not matter to typing.
//!
//! The last step is the analysis of section 5: uses of variables that nothing has assigned to before, and
//! results that nothing is assigned to, in programs that say with qualifiers what is initialized.

use super::ast::Qualifier;
use super::ast::{self, BinaryOp};
use super::checked::{
    Checked, Expr, ExprKind, MAX_RANK, Operator, Statement, TensorType, Variable,
};
use crate::text::{Diagnostic, Name, Reason, Span};
use crate::{imap::MAX_EXTENT, text::diagnostic::sorted_and_capped};
use std::collections::{HashMap, HashSet};

/// Extents of which a diagnostic says where they were declared.
const MAX_ORIGINS: usize = 6;

/// Types a program (ok-prog). Without an error among the diagnostics, it is well-formed.
pub fn check(program: &ast::Program) -> (Checked, Vec<Diagnostic>) {
    let mut checker = Checker {
        program,
        context: HashMap::new(),
        undeclared: HashSet::new(),
        diagnostics: Vec::new(),
    };
    let mut checked = Checked::default();
    let is_qualified = program.declarations.iter().any(|it| it.qualifier.is_some());
    for (number, declaration) in program.declarations.iter().enumerate() {
        if let Some(ty) = checker.s_var(number, checked.variables.len(), declaration) {
            let passes = |qualifier: Option<Qualifier>, other: Qualifier| match qualifier {
                Some(qualifier) => qualifier != other,
                None => !is_qualified,
            };
            checked.variables.push(Variable {
                name: declaration.name.text.clone(),
                ty,
                qualifier: declaration.qualifier,
                live_in: passes(declaration.qualifier, Qualifier::Out),
                live_out: passes(declaration.qualifier, Qualifier::In),
                span: declaration.name.span,
            });
        }
    }
    for statement in &program.statements {
        if let Some(statement) = checker.ok_stmt(statement) {
            checked.statements.push(statement);
        }
    }
    let mut diagnostics = checker.diagnostics;
    if is_qualified && !diagnostics.iter().any(Diagnostic::is_error) {
        diagnostics.extend(uninitialized_uses(&checked));
        diagnostics.extend(unassigned_results(&checked));
    }
    (checked, sorted_and_capped(diagnostics))
}

/// A dimension of a type, and where its extent was declared.
#[derive(Clone, Copy, Debug)]
struct Dim {
    extent: i64,
    /// The declaration, by its number, and the dimension in it.
    declaration: usize,
    dim: usize,
}

/// A typed expression: what it becomes, and where its extents come from.
struct Typed {
    expr: Expr,
    dims: Vec<Dim>,
    /// The declaration of one of its variables, all of which have its element type.
    declaration: usize,
}

/// What the context says of a name.
struct Known {
    declaration: usize,
    /// The number of the variable and its type; none if the declaration is wrong.
    variable: Option<(usize, TensorType)>,
}

struct Checker<'p> {
    program: &'p ast::Program,
    /// The static context.
    context: HashMap<&'p str, Known>,
    /// Names that are reported already: by whether they are assigned to.
    undeclared: HashSet<(&'p str, bool)>,
    diagnostics: Vec<Diagnostic>,
}

impl<'p> Checker<'p> {
    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// s-var: the variable is not in the context yet. Extents are positive (definition 2).
    fn s_var(
        &mut self,
        number: usize,
        num_variables: usize,
        declaration: &'p ast::Declaration,
    ) -> Option<TensorType> {
        let name = declaration.name.text.as_str();
        if let Some(known) = self.context.get(name) {
            let first = &self.program.declarations[known.declaration];
            let message = format!("'{name}' is declared twice, expected a new name (rule s-var)");
            let error = Diagnostic::new(Reason::TmlRedeclaration, declaration.name.span, message);
            self.report(error.note(first.name.span, format!("'{name}' is declared here first")));
            return None;
        }
        let mut extents = Vec::new();
        for (dim, extent) in declaration.extents.iter().enumerate() {
            match extent.text.parse::<i64>().ok().filter(|extent| *extent <= MAX_EXTENT) {
                Some(0) => {
                    let message = format!(
                        "dimension {} of '{name}' has extent 0, expected a positive extent (rule s-var)",
                        dim + 1
                    );
                    self.report(Diagnostic::new(Reason::TmlExtent, extent.span, message));
                }
                Some(value) => extents.push(value),
                None => {
                    let message = format!(
                        "dimension {} of '{name}' has extent {}, expected at most {MAX_EXTENT}",
                        dim + 1,
                        shortened(&extent.text)
                    );
                    self.report(Diagnostic::new(Reason::TmlLimit, extent.span, message));
                }
            }
        }
        let rank = declaration.extents.len();
        if MAX_RANK < rank {
            let message = format!("'{name}' has {rank} dimensions, expected at most {MAX_RANK}");
            self.report(Diagnostic::new(Reason::TmlLimit, declaration.name.span, message));
        }
        let is_type = extents.len() == rank && rank <= MAX_RANK;
        let element = declaration.element.unwrap_or_default();
        let ty = is_type.then_some(TensorType { element, extents });
        let variable = ty.clone().map(|ty| (num_variables, ty));
        self.context.insert(name, Known { declaration: number, variable });
        ty
    }

    /// ok-stmt: the variable is declared, and the expression has its type.
    fn ok_stmt(&mut self, statement: &'p ast::Statement) -> Option<Statement> {
        let value = self.expr(&statement.value);
        let name = statement.target.text.as_str();
        let Some(known) = self.context.get(name) else {
            let message =
                format!("'{name}' is assigned to, expected a declared variable (rule ok-stmt)");
            let span = statement.target.span;
            let error = Diagnostic::new(Reason::TmlAssignUndeclared, span, message);
            self.report_undeclared(error, name, true);
            return None;
        };
        let (declaration, variable) = (known.declaration, known.variable.clone());
        let ((variable, ty), value) = (variable?, value?);
        if ty != value.expr.ty {
            let message = format!(
                "the value has type {}, expected {ty}, the type of '{name}' (rule ok-stmt)",
                value.expr.ty
            );
            let error = Diagnostic::new(Reason::TmlAssignType, statement.value.span, message);
            let target: Vec<_> = (0..ty.rank())
                .map(|dim| Dim { extent: ty.extents[dim], declaration, dim })
                .collect();
            let error = if ty.extents == value.expr.ty.extents {
                self.with_elements(error, [declaration, value.declaration])
            } else if ty.rank() == 0 {
                let place = self.program.declarations[declaration].span;
                let error = error.note(place, format!("'{name}' is declared as a scalar here"));
                self.with_origins(error, value.dims)
            } else {
                self.with_origins(error, differing(&target, &value.dims))
            };
            self.report(error);
            return None;
        }
        let (target_span, span) = (statement.target.span, statement.span);
        Some(Statement { variable, value: value.expr, target_span, span })
    }

    fn expr(&mut self, expr: &'p ast::Expr) -> Option<Typed> {
        match &expr.kind {
            ast::ExprKind::Variable(name) => self.t_var(name, expr.span),
            ast::ExprKind::Paren(inner) => self.t_paren(inner),
            ast::ExprKind::Binary { op, lhs, rhs } => {
                let (lhs, rhs) = (self.expr(lhs), self.expr(rhs));
                let (lhs, rhs) = (lhs?, rhs?);
                match op {
                    BinaryOp::Add => self.t_elem(Operator::Add, lhs, rhs, expr.span),
                    BinaryOp::Sub => self.t_elem(Operator::Sub, lhs, rhs, expr.span),
                    BinaryOp::Mul if is_scalar_operand(&lhs, &rhs) => {
                        Some(self.t_smul(lhs, rhs, expr.span))
                    }
                    BinaryOp::Mul => self.t_elem(Operator::Mul, lhs, rhs, expr.span),
                    BinaryOp::Div if is_scalar_operand(&rhs, &lhs) => {
                        Some(self.t_sdiv(lhs, rhs, expr.span))
                    }
                    BinaryOp::Div => self.t_elem(Operator::Div, lhs, rhs, expr.span),
                    BinaryOp::Product => self.t_prod(lhs, rhs, expr.span),
                }
            }
            ast::ExprKind::Contract { operand, pairs } => {
                let operand = self.expr(operand)?;
                self.t_contr(operand, pairs, expr.span)
            }
            ast::ExprKind::Transpose { operand, entries } => {
                let operand = self.expr(operand)?;
                self.t_trans(operand, entries, expr.span)
            }
        }
    }

    /// t-var: the variable is in the context, which says its type.
    fn t_var(&mut self, name: &'p str, span: Span) -> Option<Typed> {
        let Some(known) = self.context.get(name) else {
            let message = format!("'{name}' is used, expected a declared variable (rule t-var)");
            let error = Diagnostic::new(Reason::TmlUseUndeclared, span, message);
            self.report_undeclared(error, name, false);
            return None;
        };
        let (variable, ty) = known.variable.clone()?;
        let declaration = known.declaration;
        let dims = ty.extents.iter().enumerate();
        let dims = dims.map(|(dim, extent)| Dim { extent: *extent, declaration, dim }).collect();
        let expr = Expr { kind: ExprKind::Variable(variable), ty, span };
        Some(Typed { expr, dims, declaration })
    }

    /// t-paren: the type of what stands inside.
    fn t_paren(&mut self, inner: &'p ast::Expr) -> Option<Typed> {
        self.expr(inner)
    }

    /// t-elem: equal types.
    fn t_elem(&mut self, op: Operator, lhs: Typed, rhs: Typed, span: Span) -> Option<Typed> {
        if lhs.expr.ty == rhs.expr.ty {
            let ty = lhs.expr.ty.clone();
            let kind = ExprKind::Elementwise(op, Box::new(lhs.expr), Box::new(rhs.expr));
            return Some(Typed { expr: Expr { kind, ty, span }, ..lhs });
        }
        let (sign, or_else, rules) = match op {
            Operator::Add => ("+", "", "rule t-elem"),
            Operator::Sub => ("-", "", "rule t-elem"),
            Operator::Mul => ("*", ", or a scalar on the left", "rules t-elem, t-smul"),
            Operator::Div => ("/", ", or a scalar on the right", "rules t-elem, t-sdiv"),
        };
        let message = format!(
            "the operands of '{sign}' have types {} and {}, expected equal types{or_else} ({rules})",
            lhs.expr.ty, rhs.expr.ty
        );
        let mut error = Diagnostic::new(Reason::TmlExprType, span, message);
        let may_scale = match op {
            Operator::Mul => lhs.dims.is_empty(),
            Operator::Div => rhs.dims.is_empty(),
            Operator::Add | Operator::Sub => false,
        };
        let is_mixed = lhs.expr.ty.element != rhs.expr.ty.element;
        if is_mixed {
            error = self.with_elements(error, [lhs.declaration, rhs.declaration]);
        }
        if !(is_mixed && may_scale) {
            error = self.with_origins(error, differing(&lhs.dims, &rhs.dims));
        }
        if op == Operator::Mul && rhs.dims.is_empty() {
            error = error.note(span, "try the scalar on the left");
        }
        self.report(error);
        None
    }

    /// t-smul: a scalar on the left.
    fn t_smul(&mut self, lhs: Typed, rhs: Typed, span: Span) -> Typed {
        let ty = rhs.expr.ty.clone();
        let kind = ExprKind::ScalarMul(Box::new(lhs.expr), Box::new(rhs.expr));
        Typed { expr: Expr { kind, ty, span }, ..rhs }
    }

    /// t-sdiv: a scalar on the right.
    fn t_sdiv(&mut self, lhs: Typed, rhs: Typed, span: Span) -> Typed {
        let ty = lhs.expr.ty.clone();
        let kind = ExprKind::ScalarDiv(Box::new(lhs.expr), Box::new(rhs.expr));
        Typed { expr: Expr { kind, ty, span }, ..lhs }
    }

    /// t-prod: the dimensions of both.
    fn t_prod(&mut self, lhs: Typed, rhs: Typed, span: Span) -> Option<Typed> {
        let (left, right) = (&lhs.expr.ty, &rhs.expr.ty);
        if left.element != right.element {
            let message = format!(
                "the operands of '#' have elements of {} and {}, expected equal types (rule t-prod)",
                left.element.name(),
                right.element.name()
            );
            let error = Diagnostic::new(Reason::TmlExprType, span, message);
            let error = self.with_elements(error, [lhs.declaration, rhs.declaration]);
            self.report(error);
            return None;
        }
        let rank = left.rank() + right.rank();
        if MAX_RANK < rank {
            let message = format!("the product has {rank} dimensions, expected at most {MAX_RANK}");
            self.report(Diagnostic::new(Reason::TmlLimit, span, message));
            return None;
        }
        let extents = [&left.extents[..], &right.extents].concat();
        let ty = TensorType { element: left.element, extents };
        let dims = [lhs.dims, rhs.dims].concat();
        let kind = ExprKind::Product(Box::new(lhs.expr), Box::new(rhs.expr));
        Some(Typed { expr: Expr { kind, ty, span }, dims, declaration: lhs.declaration })
    }

    /// The dimension that an index numbers, from 0.
    fn dimension(&mut self, index: &Name, dims: &[Dim], rule: &str) -> Option<usize> {
        let number = index.text.parse::<usize>().ok();
        if let Some(number) = number.filter(|number| (1..=dims.len()).contains(number)) {
            return Some(number - 1);
        }
        let expected = match dims.len() {
            0 => "a tensor with dimensions instead of a scalar".to_owned(),
            1 => "the only dimension, 1".to_owned(),
            rank => format!("one from 1 to {rank}"),
        };
        let text = shortened(&index.text);
        let message =
            format!("index {text} is no dimension of the operand, expected {expected} ({rule})");
        let error = Diagnostic::new(Reason::TmlIndex, index.span, message);
        let error = self.with_origins(error, dims.to_vec());
        self.report(error);
        None
    }

    /// Reports an index that numbers a dimension for the second time.
    fn used_twice(&mut self, index: &Name, first: &Name, rule: &str) {
        let message =
            format!("dimension {} is numbered twice, expected each once ({rule})", index.text);
        let error = Diagnostic::new(Reason::TmlIndex, index.span, message);
        self.report(error.note(first.span, "it is numbered here first"));
    }

    /// t-contr: different dimensions of equal extents, which are dropped. Several pairs are contracted
    /// one after the other.
    fn t_contr(&mut self, operand: Typed, pairs: &[[Name; 2]], span: Span) -> Option<Typed> {
        const RULE: &str = "rule t-contr";
        let mut used: Vec<Option<&Name>> = vec![None; operand.dims.len()];
        let mut found = Vec::new();
        let mut is_well_typed = true;
        for pair in pairs {
            let mut dims = [0; 2];
            for (dim, index) in dims.iter_mut().zip(pair) {
                let Some(number) = self.dimension(index, &operand.dims, RULE) else {
                    is_well_typed = false;
                    continue;
                };
                if let Some(first) = used[number] {
                    self.used_twice(index, first, RULE);
                    is_well_typed = false;
                }
                used[number] = Some(index);
                *dim = number;
            }
            let [first, second] = dims.map(|dim| operand.dims.get(dim).copied());
            if let (true, Some(first), Some(second)) = (is_well_typed, first, second)
                && first.extent != second.extent
            {
                let message = format!(
                    "dimensions {} and {} have extents {} and {}, expected equal extents ({RULE})",
                    pair[0].text, pair[1].text, first.extent, second.extent
                );
                let at = pair[0].span.to(pair[1].span);
                let error = Diagnostic::new(Reason::TmlExprType, at, message);
                let error = self.with_origins(error, vec![first, second]);
                self.report(error);
                is_well_typed = false;
            }
            found.push(dims);
        }
        if !is_well_typed {
            return None;
        }
        // Where the dimensions of the operand are, after the pairs before.
        let mut left: Vec<usize> = (0..operand.dims.len()).collect();
        let Typed { mut expr, mut dims, declaration } = operand;
        for pair in found {
            let mut places = pair.map(|dim| {
                left.iter().position(|it| *it == dim).expect("each dimension is dropped once")
            });
            places.sort_unstable();
            let [first, second] = places;
            for place in [second, first] {
                left.remove(place);
                dims.remove(place);
            }
            let extents = dims.iter().map(|dim| dim.extent).collect();
            let ty = TensorType { element: expr.ty.element, extents };
            expr = Expr { kind: ExprKind::Contract(Box::new(expr), [first, second]), ty, span };
        }
        Some(Typed { expr, dims, declaration })
    }

    /// t-trans: two dimensions swap. A permutation is a sequence of swaps.
    fn t_trans(&mut self, operand: Typed, entries: &[Name], span: Span) -> Option<Typed> {
        const RULE: &str = "rule t-trans";
        let rank = operand.dims.len();
        let numbers: Vec<_> =
            entries.iter().map(|index| self.dimension(index, &operand.dims, RULE)).collect();
        let numbers = numbers.into_iter().collect::<Option<Vec<_>>>()?;
        let Typed { mut expr, mut dims, declaration } = operand;
        let mut swap = |first: usize, second: usize, expr: Expr| {
            dims.swap(first, second);
            let extents = dims.iter().map(|dim| dim.extent).collect();
            let ty = TensorType { element: expr.ty.element, extents };
            Expr { kind: ExprKind::Transpose(Box::new(expr), [first, second]), ty, span }
        };
        if let [first, second] = numbers[..] {
            expr = swap(first, second, expr);
            return Some(Typed { expr, dims, declaration });
        }
        for (place, number) in numbers.iter().enumerate() {
            if let Some(first) = numbers[..place].iter().position(|it| it == number) {
                self.used_twice(&entries[place], &entries[first], RULE);
                return None;
            }
        }
        if numbers.len() != rank {
            let message = format!(
                "{} dimensions are permuted, expected all {rank} of the operand, or two to swap ({RULE})",
                numbers.len()
            );
            let at = entries[0].span.to(entries[entries.len() - 1].span);
            self.report(Diagnostic::new(Reason::TmlIndex, at, message));
            return None;
        }
        // Which dimension of the operand stands where.
        let mut order: Vec<usize> = (0..rank).collect();
        for (place, number) in numbers.iter().enumerate() {
            let found = order.iter().position(|it| it == number).expect("a permutation of all");
            if found != place {
                order.swap(place, found);
                expr = swap(place, found, expr);
            }
        }
        Some(Typed { expr, dims, declaration })
    }

    /// Adds where extents were declared.
    fn with_origins(&self, mut error: Diagnostic, dims: Vec<Dim>) -> Diagnostic {
        for Dim { extent, declaration, dim } in dims.into_iter().take(MAX_ORIGINS) {
            let declaration = &self.program.declarations[declaration];
            let name = &declaration.name.text;
            let text =
                format!("extent {extent} is declared here, as dimension {} of '{name}'", dim + 1);
            error = error.note(declaration.extents[dim].span, text);
        }
        error
    }

    /// Adds where elements of different types were declared.
    fn with_elements(&self, mut error: Diagnostic, declarations: [usize; 2]) -> Diagnostic {
        for declaration in declarations.map(|number| &self.program.declarations[number]) {
            let (name, element) = (&declaration.name.text, declaration.element.unwrap_or_default());
            let text = format!("the elements of '{name}' are {}, from here", element.name());
            error = error.note(declaration.span, text);
        }
        error
    }

    /// Reports a name that is not declared, once for all uses and once for all assignments.
    fn report_undeclared(&mut self, error: Diagnostic, name: &'p str, is_assigned: bool) {
        if !self.undeclared.insert((name, is_assigned)) {
            return;
        }
        let declarations = self.program.declarations.iter();
        let names = declarations.map(|declaration| declaration.name.text.as_str());
        self.report(error.try_similar(name, names, self.diagnostics.len()));
    }
}

/// Whether the first is a scalar, and the second a tensor of the same elements that is none.
fn is_scalar_operand(scalar: &Typed, tensor: &Typed) -> bool {
    let (scalar, tensor) = (&scalar.expr.ty, &tensor.expr.ty);
    scalar.rank() == 0 && tensor.rank() != 0 && scalar.element == tensor.element
}

/// Of types of one rank the dimensions in which they differ, otherwise all.
fn differing(lhs: &[Dim], rhs: &[Dim]) -> Vec<Dim> {
    let all = lhs.len() != rhs.len();
    if all {
        return [lhs, rhs].concat();
    }
    let pairs = lhs.iter().zip(rhs).filter(|(lhs, rhs)| lhs.extent != rhs.extent);
    pairs.flat_map(|(lhs, rhs)| [*lhs, *rhs]).collect()
}

/// A number as it is spelled, unless it is very long.
fn shortened(digits: &str) -> String {
    match digits.len() {
        0..=24 => digits.to_owned(),
        length => format!("{}.. ({length} digits)", &digits[..20]),
    }
}

/// Uses of variables that are neither passed by the ambient application nor assigned to before.
fn uninitialized_uses(checked: &Checked) -> Vec<Diagnostic> {
    let mut is_initialized: Vec<_> = checked.variables.iter().map(|it| it.live_in).collect();
    let mut warnings = Vec::new();
    for statement in &checked.statements {
        statement.value.for_each_use(&mut |number, span| {
            if is_initialized[number] {
                return;
            }
            let Variable { name, qualifier, span: declared, .. } = &checked.variables[number];
            let message = format!("'{name}' is used before anything is assigned to it");
            let hint = match qualifier {
                Some(_) => format!("try 'inout var {name}', if the value comes from outside"),
                None => format!("try 'in var {name}', if the value comes from outside"),
            };
            warnings.push(
                Diagnostic::new(Reason::TmlUninitialized, span, message)
                    .note(*declared, format!("'{name}' is declared here"))
                    .note(*declared, hint),
            );
        });
        is_initialized[statement.variable] = true;
    }
    warnings
}

/// Variables declared `out` that nothing is assigned to.
fn unassigned_results(checked: &Checked) -> impl Iterator<Item = Diagnostic> {
    let assigned: HashSet<_> = checked.statements.iter().map(|it| it.variable).collect();
    let variables = checked.variables.iter().enumerate();
    let found = variables.filter(move |(number, variable)| {
        variable.qualifier == Some(Qualifier::Out) && !assigned.contains(number)
    });
    found.map(|(_, Variable { name, span, .. })| {
        let message = format!("'{name}' is a result, but nothing is assigned to it");
        Diagnostic::new(Reason::TmlUnassigned, *span, message)
            .note(*span, format!("try 'inout var {name}', if its value comes from outside"))
    })
}
