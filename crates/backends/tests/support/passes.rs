//! Every pass of the CPU pipeline against the interpreter.

use melior::ir::Module;
use std::collections::BTreeMap;
use tc_backends::{
    cpu,
    interp::{self, Interpreter, Limits, Outcome, compare},
    runtime::Tensor,
};
use tc_dialects::mlir;

/// How much was compared.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    pub modules: usize,
    /// How many modules each pass has changed.
    pub changes: BTreeMap<String, usize>,
    /// The elements that were compared, over all passes.
    pub elements: usize,
    /// The elements of which the interpreter knows nothing.
    pub uncertain: usize,
}

impl Stats {
    /// Adds what was compared of other modules.
    pub fn add(&mut self, other: &Self) {
        self.modules += other.modules;
        for (pass, count) in &other.changes {
            *self.changes.entry(pass.clone()).or_default() += count;
        }
        self.elements += other.elements;
        self.uncertain += other.uncertain;
    }
}

/// Interprets the function `name` of a module before the CPU pipeline and after each pass of it up to the
/// `llvm` dialect, and compares the results with the first ones, which are returned. Undefined elements
/// of the first results may be anything.
///
/// # Errors
/// A pass failed, or a module after a pass cannot be run or has other results; the message names the pass
/// and has the module before and after it.
pub fn check_passes(
    module: &Module,
    name: &str,
    inputs: &[Tensor],
    options: &tc_backends::Codegen,
) -> Result<(Vec<Outcome>, Stats), String> {
    let expected =
        interpret(module, name, inputs).map_err(|error| format!("before all passes: {error}"))?;
    let shapes: Vec<_> = expected.iter().map(|it| it.shape().to_vec()).collect();
    // The function when its arguments have attributes, which later passes drop.
    let mut marked = None;
    let mut stats = Stats { modules: 1, ..Stats::default() };
    let mut before = module.as_operation().to_string();
    cpu::lower_by_pass(module, options, |pass, module| {
        let text = module.as_operation().to_string();
        if text == before {
            return Ok(());
        }
        *stats.changes.entry(pass.to_string()).or_default() += 1;
        let run = |marked: &mut Option<Interpreter>| {
            let mut interpreter = decode(module, name)?;
            if let Some(marked) = marked {
                interpreter = interpreter.with_arguments_of(marked);
            } else if interpreter.takes_outputs() {
                *marked = Some(interpreter.clone());
            }
            interpreter.run_with_outputs(inputs, &shapes, Limits::default())
        };
        let found = run(&mut marked).map_err(|error| error.to_string());
        let result = found.and_then(|found| agree(&expected, &found, &mut stats));
        result.map_err(|error| {
            Failure(format!("after '{pass}': {error}\nbefore:\n{before}\nafter:\n{text}"))
        })?;
        before = text;
        Ok(())
    })
    .map_err(|Failure(message)| message)?;
    Ok((expected, stats))
}

struct Failure(String);

impl From<tc_backends::backend::Error> for Failure {
    fn from(error: tc_backends::backend::Error) -> Self {
        Self(error.to_string())
    }
}

/// The function `name` of a module at any level; its results may have undefined elements.
fn decode(module: &Module, name: &str) -> Result<Interpreter, interp::Error> {
    let functions = mlir::ops(mlir::block_ref(module.body()));
    let function =
        functions.into_iter().find(|it| mlir::string_attr(*it, "sym_name") == Some(name));
    let function = function.expect("passes keep the function");
    Ok(Interpreter::new(function)?.allow_undefined_results())
}

/// Runs the function `name` of a module on tensors; results may have undefined elements.
///
/// # Errors
/// The interpreter's.
pub fn interpret(
    module: &Module,
    name: &str,
    inputs: &[Tensor],
) -> Result<Vec<Outcome>, interp::Error> {
    decode(module, name)?.run(inputs, Limits::default())
}

/// Checks that results are within the bounds of other ones.
///
/// # Errors
/// The first element that is not.
pub fn agree(expected: &[Outcome], found: &[Outcome], stats: &mut Stats) -> Result<(), String> {
    if expected.len() != found.len() {
        return Err(format!("expected {} results, but found {}", expected.len(), found.len()));
    }
    for (number, (expected, found)) in expected.iter().zip(found).enumerate() {
        let tensor = found.to_tensor().map_err(|error| error.to_string())?;
        let compared =
            compare(expected, &tensor).map_err(|error| format!("result {number} {error}"))?;
        let lost = (0..found.num_elements())
            .find(|at| found.is_undefined(*at) && !expected.is_undefined(*at));
        if let Some(lost) = lost {
            return Err(format!("result {number} at {:?} is undefined", expected.index_of(lost)));
        }
        stats.elements += compared.num_elements;
        stats.uncertain += compared.num_uncertain;
    }
    Ok(())
}
