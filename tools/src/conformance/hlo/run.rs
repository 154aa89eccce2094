//! Runs a program and compares its results.

use tc_backends::{
    Codegen, cpu,
    hlo::{Array, Error, Executable, locations},
};
use tc_dialects::{
    element::ElementType,
    hlo::{self, Module},
    report,
};

/// A program and its outputs, or why it does not run.
pub(super) fn run(text: String, inputs: &[Array]) -> Result<(Module, Vec<Array>), String> {
    let (source, module, diagnostics) = hlo::read("module.hlo", text.into_bytes());
    let Some(module) = module else {
        let first = diagnostics.first().map_or("", |it| it.message.as_str());
        return Err(format!("refused: {first}"));
    };
    let context = tc_dialects::new_context();
    let (_, received) = report::collect(&context);
    let places = locations(&context, &module, &source);
    let executable =
        Executable::compile(&context, &module, &places, cpu::BACKEND, &Codegen::default());
    let executable = executable.map_err(|error| match error {
        Error::Diagnosed | Error::Compile(_) => {
            let received = received.borrow();
            let first = received.iter().find(|it| it.is_error());
            first.map_or_else(|| error.to_string(), |it| it.message.clone())
        }
        Error::Call(message) => message,
    })?;
    let outputs = executable.run(inputs).map_err(|error| error.to_string())?;
    Ok((module, outputs))
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
