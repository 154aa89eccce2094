//! Checks the expressions and clauses of one statement.

use std::collections::HashMap;

use super::super::ast::{self, Assign, BinaryOp, UnaryOp};
use super::super::checked::{
    Address, ArithOp, CompareOp, Dim, Equivalent, Expr, ExprKind, IndexVariable, Let, RangeClause,
    Source,
};
use super::super::types::{ScalarType, Type};
use super::index::to_index;
use super::{FunctionChecker, Symbol, builtin_redefined, redefined, shortened};
use crate::builtins::{self, BUILTINS, Builtin};
use crate::text::{Diagnostic, Name, Reason, Span, diagnostic::similar};

/// What a name of the statement's scope stands for.
#[derive(Clone, Copy)]
enum Local {
    /// An index variable, by position in `variables`.
    Variable(usize),
    /// A let, by position in `lets`; `None` after an error in its value.
    Let(Option<usize>),
}

/// What an expression may refer to.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Everything.
    Value,
    /// A bound of a range: no tensor elements.
    Bound,
    /// An equivalence annotation: no new index variables, which would have no meaning there.
    Annotation,
}

/// A tensor that an access or a dimension selector refers to.
struct View {
    source: Source,
    rank: usize,
    scalar: ScalarType,
    span: Span,
}

/// The checked clauses of a statement, other than lets.
pub(super) struct Clauses {
    pub(super) ranges: Vec<RangeClause>,
    pub(super) exists: Vec<Expr>,
}

/// What a statement's scope holds when the statement ends.
pub(super) struct Parts {
    pub(super) variables: Vec<IndexVariable>,
    pub(super) reductions: Vec<usize>,
    pub(super) lets: Vec<Let>,
}

/// The scope of one statement, inside that of its function.
pub(super) struct Scope<'f, 'a> {
    pub(super) function: &'f mut FunctionChecker<'a>,
    locals: HashMap<&'a str, (Local, Span)>,
    variables: Vec<IndexVariable>,
    /// How many of `variables` belong to the left-hand side.
    rank: usize,
    /// The dimensions that subscripts on the left address.
    addressed: Vec<usize>,
    /// The lets that are subscripts on the left, with the variables that carry their ranges.
    subscripts: HashMap<&'a str, Vec<usize>>,
    lets: Vec<Let>,
    /// For each let, whether its value reads a tensor.
    let_reads: Vec<bool>,
    place: Place,
    /// Whether a tensor was read since this was last cleared.
    reads: bool,
}

impl<'f, 'a> Scope<'f, 'a> {
    pub(super) fn new(function: &'f mut FunctionChecker<'a>) -> Self {
        Self {
            function,
            locals: HashMap::new(),
            variables: Vec::new(),
            rank: 0,
            addressed: Vec::new(),
            subscripts: HashMap::new(),
            lets: Vec::new(),
            let_reads: Vec::new(),
            place: Place::Value,
            reads: false,
        }
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.function.report(diagnostic);
    }

    fn error(&mut self, reason: Reason, span: Span, message: String) {
        self.report(Diagnostic::new(reason, span, message));
    }

    /// Enters the index variables of the left-hand side. The extents may be those of a value that is
    /// kept.
    pub(super) fn left(&mut self, statement: &'a ast::Statement, is_kept: bool) {
        let is_let = |name: &str| {
            let mut clauses = statement.clauses.iter();
            clauses
                .any(|it| matches!(it, ast::Clause::Let { name: bound, .. } if bound.text == name))
        };
        for (dim, subscript) in statement.indices.iter().enumerate() {
            let span = subscript.span;
            match &subscript.kind {
                ast::ExprKind::Name(name) if !is_let(name) => {
                    if let Some(&(_, first)) = self.locals.get(name.as_str()) {
                        self.report(redefined(&Name { text: name.clone(), span }, first));
                    } else {
                        self.new_variable(name, span);
                    }
                    continue;
                }
                ast::ExprKind::Name(name) if !is_kept => {
                    self.subscripts.entry(name).or_default().push(self.variables.len());
                }
                _ => {}
            }
            let name = format!("{}.{dim}", statement.target.text);
            self.variables.push(IndexVariable { name, span });
            self.addressed.push(dim);
        }
        self.rank = self.variables.len();
    }

    /// Checks the subscripts of the left-hand side that are no index variables.
    pub(super) fn addresses(&mut self, statement: &'a ast::Statement) -> Option<Vec<Address>> {
        let mut addresses = Vec::new();
        for dim in self.addressed.clone() {
            let subscript = &statement.indices[dim..=dim];
            let value = self.values(subscript);
            let index = value.and_then(|value| self.indices(value, subscript));
            addresses.extend(index.into_iter().flatten().map(|index| Address { dim, index }));
        }
        (addresses.len() == self.addressed.len()).then_some(addresses)
    }

    fn new_variable(&mut self, name: &'a str, span: Span) -> Option<usize> {
        if builtins::lookup(name).is_some() {
            self.report(builtin_redefined(&Name { text: name.to_owned(), span }));
            return None;
        }
        let variable = self.variables.len();
        self.variables.push(IndexVariable { name: name.to_owned(), span });
        self.locals.insert(name, (Local::Variable(variable), span));
        Some(variable)
    }

    /// Checks the where clauses in order.
    pub(super) fn clauses(&mut self, statement: &'a ast::Statement) -> Clauses {
        let mut clauses = Clauses { ranges: Vec::new(), exists: Vec::new() };
        for clause in &statement.clauses {
            match clause {
                ast::Clause::Range { variable, lower, upper } => {
                    clauses.ranges.extend(self.range(variable, lower, upper))
                }
                ast::Clause::Let { name, value } => self.bind(name, value),
                ast::Clause::Exists(value) => clauses.exists.extend(self.value(value)),
            }
        }
        clauses
    }

    fn range(
        &mut self,
        name: &'a Name,
        lower: &'a ast::Expr,
        upper: &'a ast::Expr,
    ) -> Vec<RangeClause> {
        let variables = match self.subscripts.get(name.text.as_str()) {
            Some(variables) => variables.clone(),
            None => self.ranged_variable(name).into_iter().collect(),
        };
        let bounds = (self.bound(lower), self.bound(upper));
        let (Some(lower), Some(upper)) = bounds else { return Vec::new() };
        let span = name.span.to(upper.span);
        let clause =
            |variable| RangeClause { variable, lower: lower.clone(), upper: upper.clone(), span };
        variables.into_iter().map(clause).collect()
    }

    fn ranged_variable(&mut self, name: &'a Name) -> Option<usize> {
        let text = name.text.as_str();
        let what = match self.locals.get(text) {
            Some(&(Local::Variable(variable), _)) => {
                self.seen(variable, name.span);
                return Some(variable);
            }
            Some((Local::Let(_), _)) => "a let",
            None => match self.function.symbols.get(text) {
                Some((Symbol::Size(_) | Symbol::FreeSize, _)) => "a size",
                Some((Symbol::Input(_) | Symbol::Tensor(_), _)) => "a tensor",
                None => return self.new_variable(text, name.span),
            },
        };
        self.error(
            Reason::Undeclared,
            name.span,
            format!("'{text}' is {what}, expected an index variable"),
        );
        None
    }

    /// Keeps the first place in the text at which a variable occurs.
    fn seen(&mut self, variable: usize, span: Span) {
        let first = &mut self.variables[variable].span;
        *first = span.min(*first);
    }

    fn bound(&mut self, bound: &'a ast::Expr) -> Option<Expr> {
        self.place = Place::Bound;
        let value = self.value(bound);
        self.place = Place::Value;
        let value = value?;
        if let Some(scalar) = value.ty.scalar()
            && scalar.is_float()
        {
            self.error(
                Reason::WhereNotIntegral,
                bound.span,
                format!("bound of a range has type '{scalar}', expected an integer"),
            );
            return None;
        }
        Some(to_index(value))
    }

    fn bind(&mut self, name: &'a Name, value: &'a ast::Expr) {
        self.reads = false;
        let value = self.value(value);
        let reads = self.reads;
        if builtins::lookup(&name.text).is_some() {
            self.report(builtin_redefined(name));
            return;
        }
        if let Some(&(_, first)) = self.locals.get(name.text.as_str()) {
            self.report(redefined(name, first));
            return;
        }
        let position = value.map(|value| {
            let numeric = value
                .ty
                .scalar()
                .is_some_and(|scalar| scalar.is_integral() && scalar != ScalarType::Bool);
            self.lets.push(Let {
                name: name.text.clone(),
                span: name.span,
                index: numeric.then(|| to_index(value.clone())),
                value,
            });
            self.let_reads.push(reads);
            self.lets.len() - 1
        });
        self.locals.insert(&name.text, (Local::Let(position), name.span));
    }

    /// Brings the right-hand side to the type that the tensor must have, if it is fixed already.
    pub(super) fn converted(
        &mut self,
        value: Expr,
        wanted: Option<(ScalarType, Span)>,
        tensor: &str,
    ) -> Option<Expr> {
        let (Some((wanted, span)), Some(found)) = (wanted, value.ty.scalar()) else {
            return Some(value);
        };
        if found.matched(wanted) == wanted {
            return Some(coerced(value, wanted));
        }
        self.report(
            Diagnostic::new(
                Reason::Narrowing,
                value.span,
                format!("value has type '{found}', expected at most '{wanted}'"),
            )
            .note(span, format!("'{tensor}' has type '{wanted}' from here"))
            .note(value.span, format!("try '{wanted}(...)'")),
        );
        None
    }

    /// Checks the equivalence annotation.
    pub(super) fn equivalent(&mut self, statement: &'a ast::Statement) -> Option<Equivalent> {
        let equivalent = statement.equivalent.as_ref()?;
        self.place = Place::Annotation;
        let args = self.values(&equivalent.args);
        self.place = Place::Value;
        Some(Equivalent {
            name: equivalent.name.text.clone(),
            span: equivalent.name.span,
            args: args?,
        })
    }

    /// Refuses reduction variables under `=`, unless the statement has an error since `before`: a name
    /// that failed to mean something else would look like one.
    pub(super) fn reductions(&mut self, statement: &ast::Statement, before: usize) {
        let failed = self.function.diagnostics[before..].iter().any(Diagnostic::is_error);
        if statement.assign != Assign::Plain || failed {
            return;
        }
        if let Some(dim) = self.addressed.first() {
            let span = statement.indices[*dim].span;
            let message =
                "subscript on the left of '=' is not an index variable, expected a reduction";
            self.report(
                Diagnostic::new(Reason::MissingReduction, span, message.to_owned())
                    .note(statement.assign_span, "try a reduction, such as '+='"),
            );
            return;
        }
        let reductions = &self.variables[self.rank..];
        if let Some(variable) = reductions.iter().min_by_key(|variable| variable.span) {
            let error = Diagnostic::new(
                Reason::MissingReduction,
                variable.span,
                format!(
                    "index variable '{}' does not occur on the left of '=', expected a reduction",
                    variable.name
                ),
            );
            // Any name that means nothing else is an index variable.
            let names = self.locals.keys().chain(self.function.symbols.keys()).copied();
            let error = error
                .try_similar(&variable.name, names, before)
                .note(statement.assign_span, "try a reduction, such as '+=!'");
            self.report(error);
        }
    }

    /// Reports `op=` on a tensor that no statement before defines.
    pub(super) fn report_uninitialized(&mut self, statement: &ast::Statement, is_output: bool) {
        if matches!(statement.assign, Assign::Reduce { init: false, .. }) {
            let (op, name) = (statement.assign.name(), &statement.target.text);
            let (reason, message) = match is_output {
                true => (
                    Reason::UninitializedReduction,
                    format!("'{op}' reduces into what the caller passes as '{name}'"),
                ),
                false => (
                    Reason::UninitializedLocal,
                    format!("'{op}' reduces into local tensor '{name}', which has no value yet"),
                ),
            };
            self.report(
                Diagnostic::new(reason, statement.assign_span, message)
                    .note(statement.assign_span, format!("try '{op}!' to start from nothing")),
            );
        }
    }

    /// Ends the scope.
    pub(super) fn finish(self) -> Parts {
        let mut reductions: Vec<usize> = (self.rank..self.variables.len()).collect();
        reductions.sort_by_key(|&variable| self.variables[variable].span);
        Parts { variables: self.variables, reductions, lets: self.lets }
    }

    /// Checks an expression; `None` if something in it was reported.
    ///
    /// Recursion is as deep as the tree, which the parser limits.
    pub(super) fn value(&mut self, expr: &'a ast::Expr) -> Option<Expr> {
        let span = expr.span;
        match &expr.kind {
            ast::ExprKind::Number(text) => self.number(text, span),
            ast::ExprKind::Bool(value) => {
                Some(scalar_expr(ExprKind::Bool(*value), ScalarType::Bool, span))
            }
            ast::ExprKind::Name(name) => self.name(name, span),
            ast::ExprKind::Apply { name, args } => self.apply(name, args, span),
            ast::ExprKind::Extent { tensor, dim } => self.extent(tensor, dim, span),
            ast::ExprKind::Cast { ty, value } => self.cast(*ty, value, span),
            ast::ExprKind::Unary { op, value } => self.unary(*op, value, span),
            ast::ExprKind::Binary { op, lhs, rhs } => self.binary(*op, lhs, rhs, span),
            ast::ExprKind::Select { condition, on_true, on_false } => {
                self.select(condition, on_true, on_false, span)
            }
        }
    }

    /// Checks all expressions, even after one of them failed.
    fn values(&mut self, exprs: &'a [ast::Expr]) -> Option<Vec<Expr>> {
        let mut checked = Vec::with_capacity(exprs.len());
        for expr in exprs {
            checked.extend(self.value(expr));
        }
        (checked.len() == exprs.len()).then_some(checked)
    }

    fn number(&mut self, text: &str, span: Span) -> Option<Expr> {
        if text.bytes().all(|c| c.is_ascii_digit()) {
            if let Ok(value) = text.parse::<i32>() {
                let kind = ExprKind::Int(value.into());
                return Some(scalar_expr(kind, ScalarType::Int32, span));
            }
            self.error(
                Reason::OutOfRange,
                span,
                format!(
                    "literal is {}, expected at most {} for an 'int32'",
                    shortened(text),
                    i32::MAX
                ),
            );
            return None;
        }
        match text.parse::<f32>() {
            Ok(value) if value.is_finite() => {
                let kind = ExprKind::Float { value: value.into(), text: text.to_owned() };
                Some(scalar_expr(kind, ScalarType::Float32, span))
            }
            _ => {
                self.error(
                    Reason::OutOfRange,
                    span,
                    format!(
                        "literal is {}, expected at most {:e} for a 'float'",
                        shortened(text),
                        f32::MAX
                    ),
                );
                None
            }
        }
    }

    /// A name without indices.
    fn name(&mut self, name: &'a str, span: Span) -> Option<Expr> {
        match self.locals.get(name) {
            Some(&(Local::Variable(variable), _)) => {
                self.seen(variable, span);
                let kind = ExprKind::Variable(variable);
                return Some(scalar_expr(kind, ScalarType::Int32, span));
            }
            Some(&(Local::Let(position), _)) => return self.let_value(position?, name, span),
            None => {}
        }
        match self.function.symbols.get(name) {
            Some(&(Symbol::Size(size), _)) => {
                Some(scalar_expr(ExprKind::Size(size), ScalarType::Int32, span))
            }
            Some(&(Symbol::FreeSize, first)) => {
                self.report(
                    Diagnostic::new(
                        Reason::Undeclared,
                        span,
                        format!("size '{name}' is given by no input, expected one that is"),
                    )
                    .note(first, "named only by an output's annotation"),
                );
                None
            }
            Some((Symbol::Input(_) | Symbol::Tensor(_), _)) => self.rank_zero_read(name, span),
            None if self.place == Place::Annotation => {
                let error = Diagnostic::new(
                    Reason::Undeclared,
                    span,
                    format!("'{name}' is not declared, expected a variable of the statement"),
                );
                let names = self.locals.keys().chain(self.function.symbols.keys()).copied();
                let others = self.function.diagnostics.len();
                self.report(error.try_similar(name, names, others));
                None
            }
            None => {
                let variable = self.new_variable(name, span)?;
                let kind = ExprKind::Variable(variable);
                Some(scalar_expr(kind, ScalarType::Int32, span))
            }
        }
    }

    fn let_value(&mut self, position: usize, name: &str, span: Span) -> Option<Expr> {
        if self.let_reads[position] {
            self.reads = true;
            if self.place == Place::Bound {
                let first = self.lets[position].span;
                self.report(tensor_in_where(name, span).note(first, "a let of a tensor's element"));
                return None;
            }
        }
        Some(Expr { kind: ExprKind::Let(position), ty: self.lets[position].value.ty, span })
    }

    /// A tensor without indices, which must have none.
    fn rank_zero_read(&mut self, name: &'a str, span: Span) -> Option<Expr> {
        if self.place == Place::Bound {
            self.report(tensor_in_where(name, span));
            return None;
        }
        let view = self.view(name, span)?;
        if view.rank != 0 {
            self.report(
                Diagnostic::new(
                    Reason::ScalarExpected,
                    span,
                    format!("tensor '{name}' has no indices, expected {} of them", view.rank),
                )
                .note(view.span, "declared here"),
            );
            return None;
        }
        Some(self.read(&view, Vec::new(), span))
    }

    fn read(&mut self, view: &View, indices: Vec<Expr>, span: Span) -> Expr {
        self.reads = true;
        let kind = ExprKind::Read { source: view.source, indices };
        scalar_expr(kind, view.scalar, span)
    }

    /// The tensor of this name, as the statement sees it.
    fn view(&mut self, name: &str, span: Span) -> Option<View> {
        let not_a_tensor = |what: &str, first: Span| {
            Diagnostic::new(
                Reason::NotATensor,
                span,
                format!("'{name}' is {what}, expected a tensor"),
            )
            .note(first, "declared here")
        };
        let local = self.locals.get(name).copied();
        let error = match (local, self.function.symbols.get(name)) {
            (Some((Local::Variable(_), first)), _) => not_a_tensor("an index variable", first),
            (Some((Local::Let(_), first)), _) => not_a_tensor("a let", first),
            (None, Some(&(Symbol::Size(_) | Symbol::FreeSize, first))) => {
                not_a_tensor("a size", first)
            }
            (None, Some(&(Symbol::Input(position), first))) => {
                // An input without a type was reported in the head.
                let position = position?;
                let input = &self.function.inputs[position];
                return Some(View {
                    source: Source::Input(position),
                    rank: input.dims.len(),
                    scalar: input.scalar,
                    span: first,
                });
            }
            (None, Some(&(Symbol::Tensor(tensor), _))) => {
                match self.function.tensors[tensor].current {
                    Some(definition) => {
                        return Some(View {
                            source: Source::Statement(definition.statement),
                            rank: definition.rank,
                            // The statement that failed was reported.
                            scalar: definition.scalar?,
                            span: definition.span,
                        });
                    }
                    None => Diagnostic::new(
                        Reason::Undeclared,
                        span,
                        format!("'{name}' is read before a statement assigns it"),
                    ),
                }
            }
            (None, None) => {
                let error = Diagnostic::new(
                    Reason::Undeclared,
                    span,
                    format!("'{name}' is not declared, expected a tensor or built-in function"),
                );
                let symbols = self.function.symbols.iter().filter(|(_, (symbol, _))| {
                    matches!(symbol, Symbol::Input(_) | Symbol::Tensor(_))
                });
                let names = symbols.map(|(known, _)| *known);
                let names = names.chain(BUILTINS.iter().map(|builtin| builtin.name));
                let others = self.function.diagnostics.len();
                match ScalarType::similar(name) {
                    Some(ty) if similar(name, names.clone()).is_none() => {
                        error.note(span, format!("try '{ty}'"))
                    }
                    _ => error.try_similar(name, names, others),
                }
            }
        };
        self.report(error);
        None
    }

    /// An access or the call of a built-in function.
    fn apply(&mut self, name: &'a Name, args: &'a [ast::Expr], span: Span) -> Option<Expr> {
        if let Some(builtin) = builtins::lookup(&name.text) {
            return self.call(builtin, args, span);
        }
        let text = name.text.as_str();
        let tensor = !self.locals.contains_key(text)
            && matches!(
                self.function.symbols.get(text),
                Some((Symbol::Input(_) | Symbol::Tensor(_), _))
            );
        if tensor && self.place == Place::Bound {
            self.report(tensor_in_where(text, span));
            return None;
        }
        let view = self.view(text, name.span);
        let indices = self.values(args);
        let view = view?;
        if view.rank != args.len() {
            self.report(
                Diagnostic::new(
                    Reason::RankMismatch,
                    span,
                    format!(
                        "access of '{text}' has {} indices, expected {}",
                        args.len(),
                        view.rank
                    ),
                )
                .note(view.span, "declared here"),
            );
            return None;
        }
        let indices = self.indices(indices?, args)?;
        Some(self.read(&view, indices, span))
    }

    /// Brings the indices of an access to the type of an index.
    fn indices(&mut self, indices: Vec<Expr>, args: &[ast::Expr]) -> Option<Vec<Expr>> {
        let mut integral = true;
        for (index, arg) in indices.iter().zip(args) {
            if let Some(scalar) = index.ty.scalar()
                && scalar.is_float()
                && !self.function.relaxed
            {
                integral = false;
                self.report(
                    Diagnostic::new(
                        Reason::IndexNotIntegral,
                        arg.span,
                        format!("index has type '{scalar}', expected an integer"),
                    )
                    .note(arg.span, "try 'int32(...)'"),
                );
            }
        }
        integral.then(|| indices.into_iter().map(to_index).collect())
    }

    fn call(
        &mut self,
        builtin: &'static Builtin,
        args: &'a [ast::Expr],
        span: Span,
    ) -> Option<Expr> {
        let values = self.values(args);
        if args.len() != builtin.arity {
            self.error(
                Reason::BuiltinArity,
                span,
                format!(
                    "'{}' has {} arguments, expected {}",
                    builtin.name,
                    args.len(),
                    builtin.arity
                ),
            );
            return None;
        }
        let values = values?;
        let scalar = values
            .iter()
            .filter_map(|value| value.ty.scalar())
            .fold(ScalarType::Float32, ScalarType::matched);
        let args = values.into_iter().map(|value| coerced(value, scalar)).collect();
        Some(scalar_expr(ExprKind::Call { builtin, args }, scalar, span))
    }

    /// `tensor.dim`; of an input it is the size or number that its type gives.
    fn extent(&mut self, tensor: &Name, dim: &Name, span: Span) -> Option<Expr> {
        let view = if builtins::lookup(&tensor.text).is_some() {
            self.error(
                Reason::NotATensor,
                tensor.span,
                format!("'{}' is a built-in function, expected a tensor", tensor.text),
            );
            None
        } else {
            self.view(&tensor.text, tensor.span)
        };
        let view = view?;
        let Some(dim) = dim.text.parse().ok().filter(|&dim| dim < view.rank) else {
            self.report(
                Diagnostic::new(
                    Reason::RankMismatch,
                    dim.span,
                    format!(
                        "dimension is {}, expected one of the {} of '{}', from 0",
                        shortened(&dim.text),
                        view.rank,
                        tensor.text
                    ),
                )
                .note(view.span, "declared here"),
            );
            return None;
        };
        let kind = match view.source {
            Source::Statement(statement) => ExprKind::Extent { statement, dim },
            Source::Input(input) => match self.function.inputs[input].dims[dim] {
                Dim::Size(size) => ExprKind::Size(size),
                Dim::Const(extent) => ExprKind::Int(extent),
                Dim::Free(_) => return None,
            },
        };
        Some(scalar_expr(kind, ScalarType::Int32, span))
    }

    fn cast(&mut self, ty: ScalarType, value: &'a ast::Expr, span: Span) -> Option<Expr> {
        let value = Box::new(self.value(value)?);
        let kind = ExprKind::Cast { value, explicit: true };
        Some(scalar_expr(kind, ty, span))
    }

    fn unary(&mut self, op: UnaryOp, value: &'a ast::Expr, span: Span) -> Option<Expr> {
        let value = self.value(value)?;
        let ty = value.ty;
        let kind = match op {
            UnaryOp::Neg => ExprKind::Neg(Box::new(value)),
            UnaryOp::Not => ExprKind::Not(Box::new(self.bool_operand(value, "operand of '!'")?)),
        };
        Some(Expr { kind, ty, span })
    }

    fn bool_operand(&mut self, value: Expr, what: &str) -> Option<Expr> {
        if value.ty == Type::Scalar(ScalarType::Bool) {
            return Some(value);
        }
        self.error(
            Reason::NotBool,
            value.span,
            format!("{what} has type '{}', expected 'bool'", value.ty),
        );
        None
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        lhs: &'a ast::Expr,
        rhs: &'a ast::Expr,
        span: Span,
    ) -> Option<Expr> {
        let chained = is_ordering(op)
            && matches!(&lhs.kind, ast::ExprKind::Binary { op, .. } if is_ordering(*op));
        let lhs = self.value(lhs);
        let rhs = self.value(rhs);
        let (lhs, rhs) = (lhs?, rhs?);
        match operation(op) {
            Operation::Logical => self.logical(op, lhs, rhs, span),
            Operation::Arith(op) => {
                let (lhs, rhs, scalar) = matched(lhs, rhs)?;
                let (lhs, rhs) = (Box::new(lhs), Box::new(rhs));
                Some(scalar_expr(ExprKind::Arith { op, lhs, rhs }, scalar, span))
            }
            Operation::Compare(compare) => {
                if chained && rhs.ty != Type::Scalar(ScalarType::Bool) {
                    let message = format!("'{}' compares the result of a comparison", op.name());
                    self.report(
                        Diagnostic::new(Reason::ChainedComparison, span, message)
                            .note(span, "try '&&' between two comparisons"),
                    );
                }
                let (lhs, rhs, _) = matched(lhs, rhs)?;
                let kind =
                    ExprKind::Compare { op: compare, lhs: Box::new(lhs), rhs: Box::new(rhs) };
                Some(scalar_expr(kind, ScalarType::Bool, span))
            }
        }
    }

    fn logical(&mut self, op: BinaryOp, lhs: Expr, rhs: Expr, span: Span) -> Option<Expr> {
        let what = format!("operand of '{}'", op.name());
        let lhs = self.bool_operand(lhs, &what);
        let rhs = self.bool_operand(rhs, &what);
        let (lhs, rhs) = (Box::new(lhs?), Box::new(rhs?));
        let kind = match op {
            BinaryOp::And => ExprKind::And(lhs, rhs),
            _ => ExprKind::Or(lhs, rhs),
        };
        Some(scalar_expr(kind, ScalarType::Bool, span))
    }

    fn select(
        &mut self,
        condition: &'a ast::Expr,
        on_true: &'a ast::Expr,
        on_false: &'a ast::Expr,
        span: Span,
    ) -> Option<Expr> {
        let condition = self.value(condition);
        let on_true = self.value(on_true);
        let on_false = self.value(on_false);
        let condition = self.bool_operand(condition?, "condition of '?'");
        let (on_true, on_false, scalar) = matched(on_true?, on_false?)?;
        let kind = ExprKind::Select {
            condition: Box::new(condition?),
            on_true: Box::new(on_true),
            on_false: Box::new(on_false),
        };
        Some(scalar_expr(kind, scalar, span))
    }
}

fn is_ordering(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Less | BinaryOp::Greater | BinaryOp::LessEqual | BinaryOp::GreaterEqual)
}

/// What an operator between two numbers does.
enum Operation {
    Arith(ArithOp),
    Compare(CompareOp),
    /// `&&` and `||`, which take bools and skip the second operand where they can.
    Logical,
}

fn operation(op: BinaryOp) -> Operation {
    match op {
        BinaryOp::Less => Operation::Compare(CompareOp::Less),
        BinaryOp::Greater => Operation::Compare(CompareOp::Greater),
        BinaryOp::LessEqual => Operation::Compare(CompareOp::LessEqual),
        BinaryOp::GreaterEqual => Operation::Compare(CompareOp::GreaterEqual),
        BinaryOp::Equal => Operation::Compare(CompareOp::Equal),
        BinaryOp::NotEqual => Operation::Compare(CompareOp::NotEqual),
        BinaryOp::Add => Operation::Arith(ArithOp::Add),
        BinaryOp::Sub => Operation::Arith(ArithOp::Sub),
        BinaryOp::Mul => Operation::Arith(ArithOp::Mul),
        BinaryOp::Div => Operation::Arith(ArithOp::Div),
        BinaryOp::Mod => Operation::Arith(ArithOp::Mod),
        BinaryOp::Min => Operation::Arith(ArithOp::Min),
        BinaryOp::Max => Operation::Arith(ArithOp::Max),
        BinaryOp::And | BinaryOp::Or => Operation::Logical,
    }
}

fn scalar_expr(kind: ExprKind, scalar: ScalarType, span: Span) -> Expr {
    Expr { kind, ty: Type::Scalar(scalar), span }
}

/// The value in another type, by an implicit cast where it has a different one.
fn coerced(value: Expr, scalar: ScalarType) -> Expr {
    if value.ty == Type::Scalar(scalar) {
        return value;
    }
    let span = value.span;
    let kind = ExprKind::Cast { value: Box::new(value), explicit: false };
    scalar_expr(kind, scalar, span)
}

/// Both values in their matched type.
fn matched(lhs: Expr, rhs: Expr) -> Option<(Expr, Expr, ScalarType)> {
    let scalar = lhs.ty.scalar()?.matched(rhs.ty.scalar()?);
    Some((coerced(lhs, scalar), coerced(rhs, scalar), scalar))
}

fn tensor_in_where(name: &str, span: Span) -> Diagnostic {
    Diagnostic::new(
        Reason::TensorInWhere,
        span,
        format!("bound of a range reads tensor '{name}', expected sizes and numbers only"),
    )
}
