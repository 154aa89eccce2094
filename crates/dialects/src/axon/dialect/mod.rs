//! The `axon` dialect: programs as MLIR. See `axon.td` for operations and types.
//!
//! [`import()`] brings a program into the dialect without types; [`Read`] writes a program of the dialect
//! as Axon text again and reads that, so that whatever works on programs works on the dialect, and
//! [`Read::typed`] imports it with the types that inference found.

mod export;
mod import;
pub mod verify;

pub use import::import;

use super::syntax::ast::Program;
use super::{Given, Inferred, Options, Refusal, infer, parametric::Parametric, syntax};
use crate::{
    mlir::{self, Op},
    report::Report,
    text::{Diagnostic, SourceFile, Span},
};
use export::Exported;
use import::import_program;
use melior::ir::{Location, Module, operation::OperationLike};

#[allow(missing_docs)]
mod generated {
    melior::dialect! {
        name: "axon",
        files: ["src/axon/axon.td"],
        include_directory_env_vars: ["CARGO_MANIFEST_DIR"],
    }
}
/// Typed operations and builders that are generated from `axon.td`.
pub use generated::axon as ods;

/// The name of an operation that is a program.
pub const PROGRAM: &str = "axon.program";

/// Operators, and the operations that they are.
const OPERATORS: [(&str, &str); 11] = [
    ("+", "add"),
    ("-", "sub"),
    ("*", "mul"),
    ("/", "div"),
    ("==", "equal"),
    ("!=", "not_equal"),
    ("<", "less"),
    ("<=", "less_equal"),
    (">", "greater"),
    (">=", "greater_equal"),
    ("lstmStep", "lstm_step"),
];

/// The name of the operation that a call of a built-in function is.
pub fn operation_name(builtin: &str) -> String {
    let operator = OPERATORS.iter().find(|(name, _)| *name == builtin);
    format!("axon.{}", operator.map_or(builtin, |(_, name)| name))
}

/// The built-in function that an operation calls; `None` for another operation.
pub fn builtin(op: Op<'_>) -> Option<&str> {
    let name = mlir::name(op).strip_prefix("axon.")?;
    let operator = OPERATORS.iter().find(|(_, operation)| *operation == name);
    let name = operator.map_or(name, |(name, _)| name);
    syntax::builtins::is_builtin(name).then_some(name)
}

/// A program of the dialect, read.
pub struct Read<'c> {
    places: Places<'c>,
    source: SourceFile,
    program: Program,
    inferred: Inferred,
}

/// The operations that a program was written from.
pub(super) struct Places<'c> {
    pub(super) op: Op<'c>,
    exported: Exported<'c>,
}

impl<'c> Places<'c> {
    pub(super) fn location(&self, span: Span) -> Location<'c> {
        self.exported.op_at(span).unwrap_or(self.op).location()
    }

    pub(super) fn report(&self, diagnostic: &Diagnostic) -> Report<'c> {
        Report::of(diagnostic, |span| self.location(span))
    }

    pub(super) fn refused(&self, refusal: Refusal) -> Report<'c> {
        match refusal {
            Refusal::Request(reason) => Report::op_error(self.op, reason),
            Refusal::Program(diagnostics) => self.last_report(&diagnostics),
        }
    }

    /// Emits all reports but the last one.
    fn last_report(&self, diagnostics: &[Diagnostic]) -> Report<'c> {
        let mut reports = diagnostics.iter().map(|diagnostic| self.report(diagnostic));
        let first = reports.next().unwrap_or_else(|| Report::op_error(self.op, "is wrong"));
        reports.fold(first, |last, next| {
            last.emit();
            next
        })
    }
}

impl<'c> Read<'c> {
    /// Reads an `axon.program`, and infers its types.
    ///
    /// # Errors
    /// It is wrong; all errors but the one that is returned have been emitted.
    pub fn new(op: Op<'c>) -> Result<Self, Report<'c>> {
        Self::with_options(op, &Options::default())
    }

    /// As [`Self::new`], with options of the inference.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn with_options(op: Op<'c>, options: &Options) -> Result<Self, Report<'c>> {
        let exported = export::export(op)?;
        let source = SourceFile::new("axon.program", exported.text.clone());
        let (program, mut diagnostics) = syntax::parse_program(&source);
        let inferred = infer(&program, options);
        if diagnostics.is_empty() {
            diagnostics.clone_from(&inferred.diagnostics);
        }
        let places = Places { op, exported };
        match diagnostics.is_empty() {
            true => Ok(Self { places, source, program, inferred }),
            false => Err(places.last_report(&diagnostics)),
        }
    }

    /// Emits the warnings of the inference.
    pub fn emit_warnings(&self) {
        self.inferred.warnings.iter().for_each(|warning| self.places.report(warning).emit());
    }

    /// The program again, with the types of all values.
    ///
    /// # Errors
    /// A type is too large to be written down.
    pub fn typed(self) -> Result<Module<'c>, Report<'c>> {
        let Self { places, source, program, mut inferred } = self;
        let at = |span: Span| places.location(span);
        let original = |name: &str| places.exported.original(name).to_string();
        let context = mlir::context_of(places.op);
        import_program(context, &source, &program, &at, &original, Some(&mut inferred))
            .map_err(|diagnostic| places.report(&diagnostic))
    }

    /// A definition of the program as an entry whose sizes are parameters, of which some may be given,
    /// and what `build` makes of it: from what is known about the program, the program, the entry, its
    /// name, and where places are.
    ///
    /// # Errors
    /// What is asked for is not there, or cannot be executed.
    pub fn parametric(
        self,
        entry: Option<&str>,
        given: &[Given],
        ir: &tc_ir::Context,
        build: &mut Build<'_, 'c>,
    ) -> Result<(), Report<'c>> {
        let mut asked = self.ask(entry, given)?;
        let Asked { program, inferred, entry, given, .. } = &mut asked;
        let parametric = inferred.parametric(program, entry.as_deref(), given, ir);
        let mut parametric = parametric.map_err(|refusal| asked.places.refused(refusal))?;
        asked.rename(&mut parametric.instance.parameters);
        let name = asked.name(parametric.instance.name.as_deref());
        let places = &asked.places;
        let at = |span: Span| places.location(span);
        build(&mut asked.inferred, &asked.program, &parametric, &name, &at)
            .map_err(|diagnostic| places.report(&diagnostic))
    }

    /// Looks for an entry, and says of what is given which names it has in the text.
    pub(super) fn ask(self, entry: Option<&str>, given: &[Given]) -> Result<Asked<'c>, Report<'c>> {
        let Self { places, program, inferred, .. } = self;
        let definitions = definitions(places.op);
        if let Some(entry) = entry.filter(|entry| !definitions.contains(entry)) {
            let names = definitions.join(", ");
            let message = format!("has no definition '{entry}'; it has: {names}");
            return Err(Report::op_error(places.op, message));
        }
        // What its parameters are called in the text, and in the program.
        let function = entry_function(places.op, entry);
        let exported = function.map(|it| places.exported.arguments(it)).unwrap_or_default();
        let names = function.map(|it| mlir::strings_attr(it, "params")).unwrap_or_default();
        let mut given = given.to_vec();
        for given in &mut given {
            let names = names.iter().copied().zip(exported.iter().map(String::as_str));
            given.parameter = renamed(&given.parameter, names);
        }
        let entry = entry.and_then(|entry| definition(places.op, entry));
        let entry = entry.and_then(|op| places.exported.name(mlir::result(op, 0)));
        let entry = entry.map(str::to_string);
        let names = exported.into_iter().zip(names).collect();
        Ok(Asked { places, program, inferred, entry, given, names })
    }
}

/// What is made of an entry whose sizes are parameters.
pub type Build<'a, 'c> = dyn FnMut(
        &mut Inferred,
        &Program,
        &Parametric,
        &str,
        &dyn Fn(Span) -> Location<'c>,
    ) -> Result<(), Diagnostic>
    + 'a;

/// A program of the dialect of which an entry is asked for, as it is called in the text.
pub(super) struct Asked<'c> {
    pub(super) places: Places<'c>,
    pub(super) program: Program,
    pub(super) inferred: Inferred,
    pub(super) entry: Option<String>,
    pub(super) given: Vec<Given>,
    /// What the parameters of the entry are called in the text, and in the program.
    names: Vec<(String, &'c str)>,
}

impl Asked<'_> {
    /// Gives parameters the names that they have in the program.
    pub(super) fn rename<T>(&self, parameters: &mut [(String, T)]) {
        for (name, _) in parameters {
            *name = renamed(name, self.names.iter().map(|(from, to)| (from.as_str(), *to)));
        }
    }

    /// What an entry is called in the program.
    pub(super) fn name(&self, name: Option<&str>) -> String {
        name.map_or("main", |name| self.places.exported.original(name)).to_string()
    }
}

/// The name of a parameter, or of a part of one, by another name of the parameter.
fn renamed<'n>(name: &str, mut names: impl Iterator<Item = (&'n str, &'n str)>) -> String {
    let (base, part) = name.split_once('.').map_or((name, None), |(base, part)| (base, Some(part)));
    let base = names.find(|(from, _)| *from == base).map_or(base, |(_, to)| to);
    part.map_or(base.to_string(), |part| format!("{base}.{part}"))
}

/// The last definition of a name at the top of a program.
fn definition<'c>(program: Op<'c>, name: &str) -> Option<Op<'c>> {
    let is_it =
        |op: &Op<'c>| mlir::is(*op, "axon.def") && mlir::string_attr(*op, "name") == Some(name);
    mlir::ops(mlir::body(program, 0)?).into_iter().rev().find(is_it)
}

/// The function that an entry of a program is, if it is one.
fn entry_function<'c>(program: Op<'c>, entry: Option<&str>) -> Option<Op<'c>> {
    let mut op = match entry {
        Some(entry) => definition(program, entry)?,
        // The value of the program, or the only definition.
        None => {
            let ops = mlir::ops(mlir::body(program, 0)?);
            ops.into_iter().rev().find(|op| !mlir::operands(*op).is_empty())?
        }
    };
    while !mlir::is(op, "axon.fn") {
        op = mlir::defining_op(*mlir::operands(op).first()?)?;
    }
    Some(op)
}

/// The names that a program defines at the top, in order.
fn definitions(program: Op<'_>) -> Vec<&str> {
    let ops = mlir::body(program, 0).map(mlir::ops).unwrap_or_default();
    let definitions = ops.into_iter().filter(|op| mlir::is(*op, "axon.def"));
    definitions.filter_map(|op| mlir::string_attr(op, "name")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axon::syntax::builtins::num_params;

    /// Every built-in function has an operation, and says which it is.
    #[test]
    fn built_in_functions_are_operations() {
        let context = crate::new_context();
        for name in crate::axon::syntax::builtins::names() {
            let operation = operation_name(&name);
            let number = num_params(&name).unwrap_or_default();
            let operands = |operand: &str| vec![operand; number].join(", ");
            let text = format!(
                "%0 = axon.number 1 : !axon.any \
                 %1 = \"{operation}\"({}) : ({}) -> !axon.any",
                operands("%0"),
                operands("!axon.any")
            );
            let module = Module::parse(&context, &text);
            let module = module.unwrap_or_else(|| panic!("'{operation}' is no operation"));
            let op = mlir::ops(mlir::block_ref(module.body()))[1];
            assert_eq!(builtin(op), Some(&*name));
        }
    }
}
