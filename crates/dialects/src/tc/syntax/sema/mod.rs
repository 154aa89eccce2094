//! Resolves names and types of a syntax tree.
//!
//! Source: the TC language, "Names and scopes", "Types" and "Statements". What is checked, each with the
//! reason it reports:
//! - names: `undeclared`, `redefined`, `builtin_redefined`, `temporary`, `input_immutable`,
//!   `untyped_input`, `uninitialized_local`;
//! - uses: `rank_mismatch`, `scalar_expected`, `not_a_tensor`, `builtin_arity`, `tensor_in_where`;
//! - types: `not_bool`, `index_not_integral`, `where_not_integral`, `narrowing`, `annotation_rank`,
//!   `out_of_range`;
//! - reductions: `missing_reduction`, and the warning `uninitialized_reduction`.
//!
//! Scopes nest: an index variable or let may take the name of a tensor or size, which it hides until the
//! statement ends. Where clauses are checked before the right-hand side, in order, so that a let is
//! known to what follows it and to the right-hand side. After an error the rest of the statement is
//! checked as far as it does not depend on what failed; a function with an error is left out of the
//! result. Ranges are not checked here: a program may be accepted and still lack one.

mod expr;
mod index;

use std::collections::{HashMap, HashSet};

use self::expr::Scope;
use super::ast;
use super::checked::{Checked, Dim, Function, Input, Output, SizeVariable, Statement};
use super::types::ScalarType;
use crate::builtins;
use crate::text::{
    Diagnostic, Name, Reason, Span,
    diagnostic::{MAX_DIAGNOSTICS, similar, sorted_and_capped},
};

/// Checks a program that was parsed without an error.
///
/// Diagnostics are sorted by place; functions with an error are left out. A program that was parsed with
/// errors lacks statements, so that checking it reports what follows from that as well.
pub fn check(program: &ast::Program) -> (Checked, Vec<Diagnostic>) {
    let mut checked = Checked::default();
    let mut diagnostics = Vec::new();
    let mut names: HashMap<&str, Span> = HashMap::new();
    for def in &program.defs {
        if let Some(&first) = names.get(def.name.text.as_str()) {
            diagnostics.push(redefined(&def.name, first));
        } else {
            names.insert(&def.name.text, def.name.span);
        }
        let checker = FunctionChecker {
            relaxed: program.relaxed,
            symbols: HashMap::new(),
            sizes: Vec::new(),
            inputs: Vec::new(),
            tensors: Vec::new(),
            num_outputs: 0,
            diagnostics: Vec::new(),
        };
        let (function, found) = checker.function(def);
        checked.functions.extend(function);
        diagnostics.extend(found);
    }
    (checked, sorted_and_capped(diagnostics))
}

/// What a name of a function's scope stands for.
#[derive(Clone, Copy)]
enum Symbol {
    /// A size variable of the inputs.
    Size(usize),
    /// A size that only annotations of outputs name.
    FreeSize,
    /// An input; `None` if it has no type, which is reported where it is declared.
    Input(Option<usize>),
    /// An output or local tensor, by position in `tensors`.
    Tensor(usize),
}

/// An output or a local tensor.
struct Tensor {
    name: String,
    span: Span,
    annotation: Option<Annotation>,
    /// The result that a read sees, once a statement assigned the tensor.
    current: Option<Definition>,
}

/// The type that the head gives an output.
struct Annotation {
    scalar: ScalarType,
    dims: Vec<Dim>,
    span: Span,
}

/// The last assignment of a tensor.
#[derive(Clone, Copy)]
struct Definition {
    statement: usize,
    rank: usize,
    /// Type of the elements; `None` after an error in the statement.
    scalar: Option<ScalarType>,
    span: Span,
}

/// The scope of one function.
struct FunctionChecker<'a> {
    relaxed: bool,
    symbols: HashMap<&'a str, (Symbol, Span)>,
    sizes: Vec<SizeVariable>,
    inputs: Vec<Input>,
    tensors: Vec<Tensor>,
    num_outputs: usize,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> FunctionChecker<'a> {
    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    fn function(mut self, def: &'a ast::Def) -> (Option<Function>, Vec<Diagnostic>) {
        for param in &def.inputs {
            self.input(param);
        }
        let assigned: HashSet<&str> =
            def.statements.iter().map(|statement| statement.target.text.as_str()).collect();
        for param in &def.outputs {
            self.output(param, &assigned);
        }
        self.num_outputs = self.tensors.len();
        let mut statements = Vec::new();
        for (position, statement) in def.statements.iter().enumerate() {
            statements.extend(self.statement(statement, position));
        }
        let mut outputs = Vec::new();
        let mut unassigned = Vec::new();
        for tensor in self.tensors.drain(..self.num_outputs) {
            match tensor.current {
                Some(Definition { statement, rank, scalar: Some(scalar), .. }) => {
                    outputs.push(Output {
                        name: tensor.name,
                        span: tensor.span,
                        scalar,
                        rank,
                        statement,
                        annotation: tensor.annotation.map(|annotation| annotation.dims),
                    })
                }
                // The statement that failed was reported.
                Some(_) => {}
                None => unassigned.push(tensor),
            }
        }
        for tensor in unassigned {
            let error = Diagnostic::new(
                Reason::Undeclared,
                tensor.span,
                format!("no statement assigns output '{}'", tensor.name),
            );
            let locals = self.tensors.iter().map(|local| &*local.name);
            let others = self.diagnostics.len();
            self.diagnostics.push(match similar(&tensor.name, locals) {
                Some(local) if others < MAX_DIAGNOSTICS => error.note(
                    tensor.span,
                    format!("local tensor '{local}' has a similar name; try one name for both"),
                ),
                _ => error,
            });
        }
        let function = (!self.diagnostics.iter().any(Diagnostic::is_error)).then(|| Function {
            name: def.name.text.clone(),
            name_span: def.name.span,
            span: def.span,
            sizes: self.sizes,
            inputs: self.inputs,
            outputs,
            locals: self.tensors.into_iter().map(|tensor| tensor.name).collect(),
            statements,
        });
        (function, self.diagnostics)
    }

    /// Enters a name of the function's scope; an error leaves the first meaning.
    fn declare(&mut self, name: &'a Name, symbol: Symbol) -> bool {
        if builtins::lookup(&name.text).is_some() {
            self.report(builtin_redefined(name));
            return false;
        }
        if let Some(&(_, first)) = self.symbols.get(name.text.as_str()) {
            self.report(redefined(name, first));
            return false;
        }
        self.symbols.insert(&name.text, (symbol, name.span));
        true
    }

    fn input(&mut self, param: &'a ast::Param) {
        let Some(ty) = &param.ty else {
            self.report(Diagnostic::new(
                Reason::UntypedInput,
                param.name.span,
                format!("input '{}' has no type, expected one such as 'float(N)'", param.name.text),
            ));
            self.declare(&param.name, Symbol::Input(None));
            return;
        };
        let mut dims = Vec::new();
        for dim in &ty.dims {
            let dim = match dim {
                ast::Dim::Number(number) => self.extent(number),
                ast::Dim::Size(name) => self.size(name),
            };
            // A size that failed was reported; the rank stays right for the checks that follow.
            dims.push(dim.unwrap_or(Dim::Const(1)));
        }
        let position = self.inputs.len();
        if self.declare(&param.name, Symbol::Input(Some(position))) {
            self.inputs.push(Input {
                name: param.name.text.clone(),
                span: param.name.span,
                scalar: ty.scalar,
                dims,
            });
        }
    }

    /// A size variable in the type of an input, new or met before.
    fn size(&mut self, name: &'a Name) -> Option<Dim> {
        if let Some(&(Symbol::Size(size), _)) = self.symbols.get(name.text.as_str()) {
            return Some(Dim::Size(size));
        }
        let size = self.sizes.len();
        if !self.declare(name, Symbol::Size(size)) {
            return None;
        }
        self.sizes.push(SizeVariable { name: name.text.clone(), span: name.span });
        Some(Dim::Size(size))
    }

    /// A constant extent.
    fn extent(&mut self, number: &Name) -> Option<Dim> {
        match number.text.parse::<i32>() {
            Ok(extent) if 1 <= extent => Some(Dim::Const(extent.into())),
            _ => {
                self.report(Diagnostic::new(
                    Reason::OutOfRange,
                    number.span,
                    format!(
                        "extent is {}, expected a number from 1 to {}",
                        shortened(&number.text),
                        i32::MAX
                    ),
                ));
                None
            }
        }
    }

    fn output(&mut self, param: &'a ast::Param, assigned: &HashSet<&str>) {
        let name = param.name.text.as_str();
        // An input named again as an output is reported once: where it is assigned, or else here.
        let input = matches!(self.symbols.get(name), Some((Symbol::Input(_), _)));
        if input && assigned.contains(name) {
            return;
        }
        let annotation = param.ty.as_ref().map(|ty| {
            let mut dims = Vec::new();
            for dim in &ty.dims {
                let dim = match dim {
                    ast::Dim::Number(number) => self.extent(number),
                    ast::Dim::Size(name) => self.annotated_size(name),
                };
                dims.push(dim.unwrap_or(Dim::Const(1)));
            }
            Annotation { scalar: ty.scalar, dims, span: ty.span }
        });
        let position = self.tensors.len();
        if self.declare(&param.name, Symbol::Tensor(position)) {
            self.tensors.push(Tensor {
                name: name.to_owned(),
                span: param.name.span,
                annotation,
                current: None,
            });
        }
    }

    fn annotated_size(&mut self, name: &'a Name) -> Option<Dim> {
        match self.symbols.get(name.text.as_str()) {
            Some(&(Symbol::Size(size), _)) => Some(Dim::Size(size)),
            Some((Symbol::FreeSize, _)) => Some(Dim::Free(name.text.clone())),
            _ => self.declare(name, Symbol::FreeSize).then(|| Dim::Free(name.text.clone())),
        }
    }

    /// Checks one statement and makes its tensor known; `None` after an error.
    fn statement(&mut self, statement: &'a ast::Statement, position: usize) -> Option<Statement> {
        let before = self.diagnostics.len();
        let target = self.target(statement);
        let tensor = target.and_then(|target| self.tensors.get(target));
        let previous = tensor.and_then(|tensor| tensor.current);
        let kept = matches!(statement.assign, ast::Assign::Reduce { init: false, .. })
            .then_some(previous)
            .flatten();
        let annotated = tensor
            .and_then(|tensor| tensor.annotation.as_ref())
            .map(|annotation| (annotation.scalar, annotation.dims.len(), annotation.span));

        let mut scope = Scope::new(self);
        scope.left(statement, kept.is_some());
        let clauses = scope.clauses(statement);
        let addresses = scope.addresses(statement);
        let value = scope.value(&statement.value);

        let rank = statement.indices.len();
        let mut wanted = None;
        if let Some((scalar, annotated_rank, span)) = annotated {
            wanted = Some((scalar, span));
            if annotated_rank != rank {
                scope.report(
                    Diagnostic::new(
                        Reason::AnnotationRank,
                        statement.target.span,
                        format!(
                            "'{}' has {rank} indices, expected {annotated_rank} as in its annotation",
                            statement.target.text
                        ),
                    )
                    .note(span, "annotated here"),
                );
            }
        }
        if let Some(kept) = kept {
            if annotated.is_none() {
                wanted = kept.scalar.map(|scalar| (scalar, kept.span));
            }
            if kept.rank != rank {
                scope.report(
                    Diagnostic::new(
                        Reason::RankMismatch,
                        statement.target.span,
                        format!(
                            "'{}' has {rank} indices, expected {} as in the value it reduces into",
                            statement.target.text, kept.rank
                        ),
                    )
                    .note(kept.span, "assigned here"),
                );
            }
        }
        let value = value.and_then(|value| scope.converted(value, wanted, &statement.target.text));
        let scalar = value.as_ref().and_then(|value| value.ty.scalar());

        // The annotation may name the result, so the tensor is entered before it is checked.
        if let Some(target) = target
            && let Some(tensor) = scope.function.tensors.get_mut(target)
        {
            tensor.current =
                Some(Definition { statement: position, rank, scalar, span: statement.target.span });
        }
        let equivalent = scope.equivalent(statement);
        scope.reductions(statement, before);
        if previous.is_none()
            && let Some(target) = target
        {
            let is_output = target < scope.function.num_outputs;
            scope.report_uninitialized(statement, is_output);
        }
        let parts = scope.finish();
        let (Some(tensor), Some(addresses), Some(value), Some(scalar)) =
            (target, addresses, value, scalar)
        else {
            return None;
        };
        let failed = self.diagnostics[before..].iter().any(Diagnostic::is_error);
        (!failed).then(|| Statement {
            tensor,
            assign: statement.assign,
            variables: parts.variables,
            rank,
            addresses,
            reductions: parts.reductions,
            scalar,
            previous: previous.map(|previous| previous.statement),
            ranges: clauses.ranges,
            lets: parts.lets,
            exists: clauses.exists,
            value,
            equivalent,
            target_span: statement.target.span,
            left_span: Span::new(statement.target.span.start, statement.assign_span.start),
            span: statement.span,
        })
    }

    /// The tensor that a statement assigns, by position in `tensors`.
    fn target(&mut self, statement: &'a ast::Statement) -> Option<usize> {
        let name = &statement.target;
        match self.symbols.get(name.text.as_str()) {
            Some(&(_, first)) if statement.local => {
                self.report(redefined(name, first));
                None
            }
            Some(&(Symbol::Tensor(tensor), _)) => Some(tensor),
            Some(&(Symbol::Input(_), first)) => {
                self.report(
                    Diagnostic::new(
                        Reason::InputImmutable,
                        name.span,
                        format!("input '{}' cannot be assigned", name.text),
                    )
                    .note(first, "declared here"),
                );
                None
            }
            Some(&(Symbol::Size(_) | Symbol::FreeSize, first)) => {
                self.report(redefined(name, first));
                None
            }
            None if builtins::lookup(&name.text).is_some() => {
                self.report(builtin_redefined(name));
                None
            }
            None => {
                if !statement.local {
                    self.report_temporary(name);
                }
                // After an error too, so that its uses are checked and not reported again.
                let tensor = self.tensors.len();
                self.symbols.insert(&name.text, (Symbol::Tensor(tensor), name.span));
                self.tensors.push(Tensor {
                    name: name.text.clone(),
                    span: name.span,
                    annotation: None,
                    current: None,
                });
                Some(tensor)
            }
        }
    }
}

impl FunctionChecker<'_> {
    fn report_temporary(&mut self, name: &Name) {
        let error = Diagnostic::new(
            Reason::Temporary,
            name.span,
            format!("'{}' is neither an output nor declared 'local'", name.text),
        );
        let tensors = self.tensors.iter().map(|tensor| &*tensor.name);
        let others = self.diagnostics.len();
        let error = error.try_similar(&name.text, tensors, others).note(
            name.span,
            format!("try 'local {0}', or list '{0}' among the outputs", name.text),
        );
        self.report(error);
    }
}

/// A literal for a message, without the middle of a very long one.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text.to_owned(),
    }
}

fn redefined(name: &Name, first: Span) -> Diagnostic {
    Diagnostic::new(Reason::Redefined, name.span, format!("'{}' is already declared", name.text))
        .note(first, "declared here")
}

fn builtin_redefined(name: &Name) -> Diagnostic {
    Diagnostic::new(
        Reason::BuiltinRedefined,
        name.span,
        format!("'{}' is a built-in function, expected another name", name.text),
    )
}
