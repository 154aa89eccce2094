//! A TC program on its way through the compiler: read, checked, imported, with ranges,
//! compiled; and what was reported on the way.

use crate::conformance::row::{Mismatch, field, flag, string};
use melior::{Context, ir::Module};
use serde_json::Value;
use std::{cell::RefCell, fmt::Display, rc::Rc};
use tc_backends::{
    Codegen, Compiled, Program as _, Request, cpu,
    interp::{Interpreter, Limits, Outcome},
    languages::tc,
    program::{Checks, Entry, Sizes},
    runtime::Tensor,
};
use tc_dialects::{
    mlir::{self, Op},
    report::{self, Received},
    tc::{
        Def,
        import::import_program,
        ranges::Kind,
        syntax::{self, Checked, ast::Program, check, parse_program},
    },
    text::{Diagnostic, Reason, SourceFile},
};

/// What one interpretation may use: a case is small, whatever its sizes say.
const LIMITS: Limits = Limits { points: 1 << 24, elements: 1 << 24 };

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

    /// Whether a warning was given.
    pub(super) fn warns(&self, reason: Reason) -> bool {
        self.diagnostics.iter().any(|it| it.reason == reason)
    }
}

/// An MLIR context that keeps what is reported.
pub(super) struct Session {
    pub(super) context: Context,
    received: Rc<RefCell<Vec<Received>>>,
}

impl Session {
    pub(super) fn new() -> Self {
        let context = tc_dialects::new_context();
        let (_, received) = report::collect(&context);
        Self { context, received }
    }

    /// What has been reported so far.
    pub(super) fn received(&self) -> Vec<Received> {
        self.received.borrow().clone()
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

    /// What stopped a step that should have succeeded.
    pub(super) fn stopped(&self, step: &str, error: impl Display) -> Mismatch {
        let errors = self.received().into_iter().filter(Received::is_error).map(|it| it.message);
        let texts: Vec<_> = std::iter::once(error.to_string()).chain(errors).collect();
        Mismatch::new(step, texts.join("; "))
    }

    /// The program of a row, ready to be run.
    pub(super) fn open<'c>(&'c self, row: &Value) -> Result<Runnable<'c>, Mismatch> {
        let source = Source::of_row(row)?;
        if let Some(error) = source.first_error() {
            return Err(Mismatch::new("a valid program", source.file.render(error)));
        }
        let module = self.import(&source).map_err(|error| self.stopped("an import", error))?;
        let program = tc::Program::new(&self.context, module, false)
            .map_err(|error| self.stopped("ranges", error))?;
        let name = field(row, "def", string)?;
        let def = program.def(Some(name)).map_err(|error| self.stopped("a function", error))?;
        Ok(Runnable { session: self, program, def })
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
    let code = text.strip_suffix(']')?.rsplit_once('[')?.1;
    Kind::ALL.into_iter().find(|kind| kind.code() == code)
}

/// A way to compile a function.
#[derive(Copy, Clone, Debug)]
pub(super) struct Variant {
    /// For a message.
    pub(super) what: &'static str,
    /// For all sizes, instead of for those given.
    pub(super) dynamic: bool,
    /// With producers in their consumers.
    pub(super) fused: bool,
    /// With checks of what depends on data.
    pub(super) checked: bool,
}

impl Variant {
    /// The ways that a result must not depend on.
    pub(super) const ALL: [Self; 5] = [
        Self { what: "dynamic sizes", dynamic: true, fused: false, checked: false },
        Self { what: "dynamic sizes, fused", dynamic: true, fused: true, checked: false },
        Self { what: "dynamic sizes, fused, checked", dynamic: true, fused: true, checked: true },
        Self { what: "static sizes", dynamic: false, fused: false, checked: false },
        Self { what: "static sizes, fused", dynamic: false, fused: true, checked: false },
    ];
}

/// A function whose ranges are inferred.
pub(super) struct Runnable<'c> {
    pub(super) session: &'c Session,
    pub(super) program: tc::Program<'c>,
    pub(super) def: Def<'c>,
}

impl<'c> Runnable<'c> {
    /// Those of the sizes given that the function has.
    pub(super) fn own_sizes(&self, sizes: &Sizes) -> Sizes {
        let own = self.def.sizes().into_iter();
        own.filter_map(|(name, ..)| Some((name.to_string(), *sizes.get(name)?))).collect()
    }

    /// The types of inputs and outputs at some sizes.
    pub(super) fn entry(&self, sizes: &Sizes) -> Result<Entry, tc_backends::Error> {
        self.program.entry(&Request { sizes: sizes.clone(), ..Request::of(self.def.name()) })
    }

    /// What the interpreter computes, before any optimization.
    pub(super) fn interpret(&self, inputs: &[Tensor]) -> Result<Vec<Outcome>, Mismatch> {
        self.interpret_op(self.def.op(), "the interpreter", inputs)
    }

    /// What the interpreter computes for one of the forms of the function.
    pub(super) fn interpret_op(
        &self,
        op: Op<'c>,
        how: &str,
        inputs: &[Tensor],
    ) -> Result<Vec<Outcome>, Mismatch> {
        Interpreter::new(op)
            .and_then(|interpreter| interpreter.run(inputs, LIMITS))
            .map_err(|error| self.session.stopped(&format!("a result ({how})"), error))
    }

    /// Native code for one of the forms of the function.
    pub(super) fn compile(&self, module: &Module<'c>, how: &str) -> Result<Compiled, Mismatch> {
        cpu::BACKEND
            .compile(module, &Codegen::default())
            .and_then(|program| program.load())
            .map_err(|error| self.session.stopped(&format!("code ({how})"), error))
    }

    /// The function as `imap` operations.
    pub(super) fn lower(&self, sizes: &Sizes, variant: Variant) -> Result<Module<'c>, Mismatch> {
        let request = Request {
            sizes: if variant.dynamic { Sizes::new() } else { sizes.clone() },
            dynamic: variant.dynamic,
            checks: if variant.checked { Checks::All } else { Checks::Shape },
            no_fuse: !variant.fused,
            ..Request::of(self.def.name())
        };
        let lowered = self.program.lower(&request);
        let stopped =
            |error| self.session.stopped(&format!("operations ({})", variant.what), error);
        Ok(lowered.map_err(stopped)?.module)
    }
}
