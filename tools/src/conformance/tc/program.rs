//! A TC program on its way through the compiler: read, checked, imported, and taken through
//! passes, with what was reported on the way.

use crate::conformance::row::{Mismatch, field, flag, string};
use melior::{
    Context,
    diagnostic::DiagnosticSeverity,
    ir::Module,
    pass::PassManager,
    utility::parse_pass_pipeline,
};
use serde_json::Value;
use std::{cell::RefCell, rc::Rc};
use tc_dialects::{
    mlir,
    tc::{
        Def,
        import::import_program,
        ranges::Kind,
        syntax::{
            self, Checked, Diagnostic, Reason, SourceFile, ast::Program, check, parse_program,
        },
    },
};

/// A program that has been read and, if it could be read, checked.
pub(super) struct Source {
    pub(super) file: SourceFile,
    pub(super) program: Program,
    pub(super) checked: Checked,
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl Source {
    /// The program of a row's field `tc`, with the spellings of the documentation if the
    /// row says so.
    pub(super) fn of_row(row: &Value) -> Result<Self, Mismatch> {
        let relaxed = flag(row, "relaxed_syntax")? || flag(row, "float_index")?;
        Ok(Self::read(field(row, "tc", string)?, relaxed))
    }

    /// Reads and checks a text.
    pub(super) fn read(text: &str, relaxed: bool) -> Self {
        let file = SourceFile::new("case.tc", text);
        let (program, diagnostics) = parse_program(&file, &syntax::Options { relaxed });
        let mut source = Self { file, program, checked: Checked::default(), diagnostics };
        // What the parser left out would be missed by the checks.
        if source.first_error().is_none() {
            let (checked, found) = check(&source.program);
            source.checked = checked;
            source.diagnostics.extend(found);
        }
        source
    }

    /// The first error.
    pub(super) fn first_error(&self) -> Option<&Diagnostic> {
        self.diagnostics.iter().find(|it| it.is_error())
    }

    /// The checks that hold, or the first error as a mismatch.
    pub(super) fn accepted(&self) -> Result<(), Mismatch> {
        match self.first_error() {
            None => Ok(()),
            Some(error) => Err(Mismatch::new("a valid program", self.file.render(error))),
        }
    }

    /// Whether a warning was given.
    pub(super) fn warns(&self, reason: Reason) -> bool {
        self.diagnostics.iter().any(|it| it.reason == reason)
    }
}

/// An error or a warning of an import or a pass.
#[derive(Clone, Debug)]
pub(super) struct Emitted {
    pub(super) is_error: bool,
    pub(super) text: String,
}

/// An MLIR context that keeps what is reported.
pub(super) struct Session {
    pub(super) context: Context,
    emitted: Rc<RefCell<Vec<Emitted>>>,
}

impl Session {
    pub(super) fn new() -> Self {
        tc_passes::register();
        let context = tc_dialects::new_context();
        let emitted: Rc<RefCell<Vec<Emitted>>> = Rc::default();
        let kept = Rc::clone(&emitted);
        context.attach_diagnostic_handler(move |diagnostic| {
            let is_error = match diagnostic.severity() {
                DiagnosticSeverity::Error => true,
                DiagnosticSeverity::Warning => false,
                _ => return true,
            };
            kept.borrow_mut().push(Emitted { is_error, text: diagnostic.to_string() });
            true
        });
        Self { context, emitted }
    }

    /// What has been reported so far.
    pub(super) fn emitted(&self) -> Vec<Emitted> {
        self.emitted.borrow().clone()
    }

    /// The reported errors as one text.
    pub(super) fn errors(&self) -> String {
        let texts: Vec<_> =
            self.emitted().into_iter().filter(|it| it.is_error).map(|it| it.text).collect();
        if texts.is_empty() { "an error".to_string() } else { texts.join("; ") }
    }

    /// The `tc` dialect module of a program that has no errors.
    ///
    /// # Errors
    /// The text of the first error.
    pub(super) fn import<'c>(&'c self, source: &Source) -> Result<Module<'c>, String> {
        import_program(&self.context, &source.file, &source.checked).map_err(|errors| {
            let first = errors.first().map(|error| error.message().to_string());
            first.unwrap_or_else(|| "an error".to_string())
        })
    }

    /// Runs passes, such as `a,b{option=1}`; whether they succeeded.
    pub(super) fn run(&self, module: &mut Module, passes: &str) -> bool {
        let manager = PassManager::new(&self.context);
        let pipeline = format!("builtin.module({passes})");
        parse_pass_pipeline(manager.as_operation_pass_manager(), &pipeline)
            .is_ok_and(|()| manager.run(module).is_ok())
    }
}

/// The `tc.def` of a name.
pub(super) fn def<'c>(module: &Module<'c>, name: &str) -> Result<Def<'c>, Mismatch> {
    mlir::ops(mlir::block_ref(module.body()))
        .into_iter()
        .filter_map(Def::cast)
        .find(|def| def.name() == name)
        .ok_or_else(|| Mismatch::new(format!("a function '{name}'"), "none of that name"))
}

/// What range inference reports, by the code at the end of the text.
pub(super) fn range_kind(text: &str) -> Option<Kind> {
    const KINDS: [Kind; 7] = [
        Kind::Ambiguous,
        Kind::DynamicStride,
        Kind::UnknownRange,
        Kind::EmptyRange,
        Kind::NonRectangular,
        Kind::UncheckedPrecondition,
        Kind::DataDependentAccess,
    ];
    let code = text.strip_suffix(']')?.rsplit_once('[')?.1;
    KINDS.into_iter().find(|kind| kind.code() == code)
}
