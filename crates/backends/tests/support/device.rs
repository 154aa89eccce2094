//! Programs on the GPU target, in the emulator, against the interpreter.

use melior::ir::Module;
use std::sync::{Arc, Mutex};
use tc_backends::{
    Codegen,
    backend::Function,
    interp::{Interpreter, Limits, Outcome, compare},
    nvvm::{Emulator, Program, emulator, machines},
    runtime::Tensor,
};
use tc_dialects::mlir;

/// How much was compared.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The kernels of the program.
    pub kernels: usize,
    /// How often kernels were started.
    pub launches: usize,
    /// The elements that were compared.
    pub elements: usize,
    /// The barriers at which warps arrived.
    pub barriers: u64,
    /// The stores to global memory, by warps and by threads.
    pub stores: (u64, u64),
}

/// Compiles a module for a GPU once, runs a function of it for each list of inputs on few and on many blocks, and
/// compares the results with the interpreter's.
///
/// # Errors
/// The program cannot be compiled, fails, or has other results.
pub fn compare_program(
    module: &Module,
    name: &str,
    inputs: &[&[Tensor]],
    options: &emulator::Options,
) -> Result<Run, String> {
    let functions = mlir::ops(mlir::block_ref(module.body()));
    let function =
        functions.into_iter().find(|it| mlir::string_attr(*it, "sym_name") == Some(name));
    let function = function.ok_or("no such function")?;
    let interpreter = Interpreter::new(function).map_err(|error| error.to_string())?;
    let interpreter = interpreter.allow_undefined_results();
    let mut expected = Vec::new();
    for inputs in inputs {
        let outcomes = interpreter.run(inputs, Limits::default());
        expected.push(outcomes.map_err(|error| error.to_string())?);
    }
    let program = Program::lower(module, &Codegen::new(machines()[0].clone()));
    let program = program.map_err(|error| error.to_string())?;
    let device = Emulator::new(program.ptx(), program.kernels());
    let mut device = device.map_err(|error| format!("{error}\n{}", program.ptx()))?;
    device.options = options.clone();
    let device = Arc::new(Mutex::new(device));
    let compiled = program.load(device.clone()).map_err(|error| error.to_string())?;
    let function = compiled.function(name).ok_or("no such function")?;
    let mut run = Run { kernels: program.kernels().len(), ..Run::default() };
    for (number, (inputs, expected)) in inputs.iter().zip(&expected).enumerate() {
        device.lock().expect("no panic").max_blocks = if number % 2 == 0 { 3 } else { 64 };
        compare_run(function, inputs, expected, &mut run)
            .map_err(|error| format!("run {number}: {error}"))?;
    }
    let counts = &device.lock().expect("no panic").counts;
    run.launches = counts.len();
    for (_, counts) in counts {
        run.barriers += counts.barriers;
        let stores = counts.kinds.get("st.global").copied().unwrap_or_default();
        run.stores = (run.stores.0 + stores.warp, run.stores.1 + stores.thread);
    }
    Ok(run)
}

fn compare_run(
    function: Function,
    inputs: &[Tensor],
    expected: &[Outcome],
    run: &mut Run,
) -> Result<(), String> {
    let mut found = Vec::new();
    for outcome in expected {
        let zeros = Tensor::zeros(outcome.element(), outcome.shape());
        found.push(zeros.map_err(|error| error.to_string())?);
    }
    let inputs: Vec<_> = inputs.iter().collect();
    function.call(&inputs, &mut found).map_err(|error| error.to_string())?;
    for (number, (expected, found)) in expected.iter().zip(&found).enumerate() {
        let compared =
            compare(expected, found).map_err(|error| format!("result {number} {error}"))?;
        run.elements += compared.num_elements - compared.num_uncertain;
    }
    Ok(())
}
