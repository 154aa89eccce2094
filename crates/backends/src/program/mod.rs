//! Programs in any of the languages, and what may be asked of them.
//!
//! A [`Program`] is a source that has been read. A [`Request`] names an entry, sizes, shapes and options. With both,
//! [`Program::entry`] computes the [types](Parameter) of inputs and results, [`Program::lower`] the operations that a
//! backend compiles, and [`Program::interpret`] the reference results. Programs name no target.

mod entry;
mod error;
mod request;

pub use entry::{Entry, Layout, Parameter, in_memory};
pub use error::Error;
pub use request::{Checks, Padding, Request, Shape, Sizes};

use crate::{interp::Outcome, runtime::Tensor};
use melior::ir::Module;
use std::sync::atomic::{AtomicU64, Ordering};
use tc_dialects::{Language, text::SourceFile};

/// The identity of a program in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id(u64);

impl Id {
    /// An identity that no other program has.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The name in diagnostics.
    pub name: String,
    /// The text, or bytecode of MLIR.
    pub contents: Vec<u8>,
    /// The language.
    pub language: Language,
    /// TC: accept the spellings of its documentation.
    pub relaxed: bool,
    /// TC: print the rounds of range inference.
    pub explain: bool,
    /// Axon: reject different names of one signature that are equal.
    pub strict_names: bool,
}

impl Source {
    /// A source in the language of its file name or, without a known ending, of its first line.
    pub fn new(name: impl Into<String>, contents: impl Into<Vec<u8>>) -> Self {
        let (name, contents) = (name.into(), contents.into());
        let language = Language::of(&name, &contents);
        Self { name, contents, language, relaxed: false, explain: false, strict_names: false }
    }
}

/// Operations that a backend compiles, and how values are passed to them.
#[derive(Debug)]
pub struct Lowered<'c> {
    /// The module.
    pub module: Module<'c>,
    /// The function of the entry; empty if the module has several functions and no entry was chosen.
    pub function: String,
    /// The layouts of the inputs; empty if all are [`Layout::Plain`].
    pub inputs: Vec<Layout>,
    /// The layouts of the results; empty if all are [`Layout::Plain`].
    pub outputs: Vec<Layout>,
    /// The sizes that the code is for, in words, if the language reports them.
    pub note: Option<String>,
    /// The multiple that dimensions have been rounded up to.
    pub padding: Option<i64>,
}

impl<'c> Lowered<'c> {
    /// A function of a module whose values are single tensors.
    pub(crate) fn plain(module: Module<'c>, function: String) -> Self {
        let (inputs, outputs) = (Vec::new(), Vec::new());
        Self { module, function, inputs, outputs, note: None, padding: None }
    }
}

/// A program in one of the languages.
pub trait Program<'c> {
    /// Its identity.
    fn id(&self) -> Id;

    /// The warnings of its front end, as text.
    fn warnings(&self) -> String {
        String::new()
    }

    /// The language that it is defined by: a module of MLIR with `tc.def` operations is a TC program.
    fn language(&self) -> Language;

    /// The names of the functions that a request may choose.
    fn entries(&self) -> Vec<String>;

    /// The names of the inputs of an entry, in order.
    ///
    /// # Errors
    /// The entry does not exist, or a name is required.
    fn inputs(&self, entry: Option<&str>) -> Result<Vec<String>, Error>;

    /// The names of the size variables of an entry; none if the language has no names for sizes.
    ///
    /// # Errors
    /// The entry does not exist, or a name is required.
    fn sizes(&self, entry: Option<&str>) -> Result<Vec<String>, Error> {
        self.inputs(entry).map(|_| Vec::new())
    }

    /// The types of the inputs and results of an entry, at the sizes and shapes of the request.
    ///
    /// # Errors
    /// The entry does not exist, a size is missing, unknown or out of range, shapes contradict the program, or a
    /// condition on sizes does not hold.
    fn entry(&self, request: &Request) -> Result<Entry, Error>;

    /// The entry as `imap` operations, fused unless the request says otherwise.
    ///
    /// # Errors
    /// Those of [`entry`](Self::entry) for the sizes that are given, and unsupported operations.
    fn lower(&self, request: &Request) -> Result<Lowered<'c>, Error>;

    /// The results of the reference interpreter. A complex result is two: its real and its imaginary part.
    ///
    /// # Errors
    /// Those of [`entry`](Self::entry), and those of the interpreter.
    fn interpret(&self, request: &Request, inputs: &[Tensor]) -> Result<Vec<Outcome>, Error>;
}

/// The function of a name; without one, the only function.
///
/// # Errors
/// It does not exist, or a name is required.
pub(crate) fn select<T: Copy>(
    name: Option<&str>,
    functions: &[T],
    names: &[&str],
) -> Result<T, Error> {
    let list = names.join(", ");
    match (name, functions) {
        (Some(name), _) => {
            let number = names.iter().position(|it| *it == name).ok_or_else(|| {
                Error::Usage(format!("there is no function '{name}'; the file has: {list}"))
            })?;
            Ok(functions[number])
        }
        (None, [function]) => Ok(*function),
        (None, _) => Err(Error::Usage(format!(
            "the file has several functions; try '--entry' with one of: {list}"
        ))),
    }
}

/// The error that sizes are missing.
pub(crate) fn missing_sizes(missing: &[&str]) -> Error {
    let example: Vec<_> = missing.iter().map(|name| format!("{name}=64")).collect();
    Error::Usage(format!(
        "the size of {} is not known; try '--size {}' or '--inputs' with a folder of .npy files",
        missing.join(", "),
        example.join(",")
    ))
}

/// A name as C can spell it.
pub(crate) fn spelled(name: &str) -> String {
    let spell = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.chars().map(spell).collect()
}

/// The text of diagnostics, as an error.
pub(crate) fn rejected(
    source: &SourceFile,
    diagnostics: &[tc_dialects::text::Diagnostic],
) -> Error {
    Error::Program(source.render_all(diagnostics))
}
