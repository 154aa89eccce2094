//! Runs a program and compares its results.

use tc_backends::{
    Error, Executable, Request, Session, Source,
    languages::hlo::{Array, arrays},
    runtime::{Tensor, TensorError},
};
use tc_dialects::{
    Language,
    element::ElementType,
    hlo::{self, Module},
};

/// A program and its outputs, or why it does not run.
pub(super) fn run(text: String, inputs: &[Array]) -> Result<(Module, Vec<Array>), String> {
    let (_, module, diagnostics) = hlo::read("module.hlo", text.clone().into_bytes());
    let Some(module) = module else {
        let first = diagnostics.first().map_or("", |it| it.message.as_str());
        return Err(format!("refused: {first}"));
    };
    let results = || -> Result<Vec<Tensor>, Error> {
        let session = Session::new("cpu")?;
        let source = Source { language: Language::Hlo, ..Source::new("module.hlo", text) };
        let program = session.open(source)?;
        let executable: Executable =
            session.load(&session.lower(&*program, &Request::default())?)?;
        let inputs =
            inputs.iter().map(Array::to_tensor).collect::<Result<Vec<_>, TensorError>>()?;
        Ok(executable.run(&inputs.iter().collect::<Vec<_>>())?)
    };
    let results = results().map_err(|error| error.to_string())?;
    let [_, shapes] = arrays(&module);
    let outputs = shapes.into_iter().zip(&results).map(|(shape, it)| Array::of(shape, it));
    Ok((module.clone(), outputs.collect()))
}

/// The elements of an array as numbers.
pub(super) struct Elements<'a> {
    array: &'a Array,
}

impl<'a> Elements<'a> {
    pub(super) fn of(array: &'a Array) -> Self {
        Self { array }
    }

    /// How many values there are; a complex number is two.
    pub(super) fn count(&self) -> usize {
        self.array.bytes.len() / self.part().bytes()
    }

    fn part(&self) -> ElementType {
        self.array.shape.element_type.part()
    }

    fn bits(&self, position: usize) -> u64 {
        let width = self.part().bytes();
        let mut bytes = [0; 8];
        bytes[..width].copy_from_slice(&self.array.bytes[position * width..(position + 1) * width]);
        u64::from_le_bytes(bytes)
    }

    /// The value, if it is a float.
    fn float(&self, position: usize) -> Option<f64> {
        self.part().is_float().then(|| self.part().decode_float(self.bits(position)))
    }

    /// How large a value is; 0 for integers.
    pub(super) fn magnitude(&self, position: usize) -> f64 {
        self.float(position).map_or(0.0, f64::abs)
    }

    pub(super) fn show(&self, position: usize) -> String {
        match self.float(position) {
            Some(value) => format!("{value:e}"),
            None => format!("{:#x}", self.bits(position)),
        }
    }
}

/// Whether two values agree within a bound; integers exactly.
pub(super) fn agree(expected: &Elements, found: &Elements, position: usize, bound: f64) -> bool {
    match (expected.float(position), found.float(position)) {
        (Some(x), Some(y)) if x.is_nan() || y.is_nan() => x.is_nan() && y.is_nan(),
        (Some(x), Some(y)) => x == y || (x.is_finite() && (x - y).abs() <= bound),
        _ => expected.bits(position) == found.bits(position),
    }
}
