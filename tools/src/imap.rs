//! Functions on tensors in MLIR, of `imap` operations for instance, in `tc-run`.

use crate::{
    command_line::{Execution, check, make_folder, print, print_ir},
    cost::{Costs, Measured, counted},
    profile::Report,
};
use std::{collections::HashSet, path::Path, time::Instant};
use tc_backends::{
    backend::Role,
    run::{self, Error, Session, read_inputs},
    runtime::{Tensor, npy},
};

/// Compiles a function and runs it. `init` gives outputs that are accumulated into
/// their first contents.
///
/// # Errors
/// There is no such function, it cannot be compiled, or an input or a result is wrong.
pub fn run(
    session: &Session,
    entry: Option<&str>,
    init: &[(String, Tensor)],
    execution: &Execution,
) -> Result<(), Error> {
    let function = session.tensor_function(entry)?;
    let (backend, codegen) = execution.target()?;
    let options = execution.compilation.options(codegen, true);
    let mut sizes = execution.compilation.sizes()?;
    let start = Instant::now();
    let lowered = function.lower(&options)?;
    let lower_seconds = start.elapsed().as_secs_f64();
    print_ir(execution, &lowered)?;
    let start = Instant::now();
    let compiled = backend.compile(&lowered, &options.codegen)?.load()?;
    let compile_seconds = lower_seconds + start.elapsed().as_secs_f64();
    let code = compiled.function(function.name()).expect("the function of the module");
    let signature = code.signature();

    let mut given = match &execution.inputs {
        Some(folder) => read_inputs(signature, folder)?,
        None => Default::default(),
    };
    for (name, tensor) in init {
        if !signature.arguments.iter().any(|it| it.role == Role::InOut && it.name == *name) {
            return Err(Error::Usage(format!(
                "'{name}' is not an output that is accumulated into"
            )));
        }
        given.insert(name.clone(), tensor.clone());
    }
    let inputs = function.inputs(signature, &mut sizes, given, execution.seed)?;
    // Before the compiled program runs: the interpreter rejects accesses out of bounds.
    let outcomes = match execution.check {
        Some(_) => function.interpret(&inputs)?,
        None => Vec::new(),
    };
    let start = Instant::now();
    let mut results = function.call(code, &inputs, backend, &options)?;
    let first_call = start.elapsed().as_secs_f64();

    let mut report = String::new();
    for (name, result) in function.result_names().iter().zip(&results) {
        let extents: Vec<_> = result.shape().iter().map(ToString::to_string).collect();
        report += &format!("{name}: {}({})\n", result.element(), extents.join(", "));
    }
    let expected = execution.expected()?;
    for ((name, result), outcome) in function.result_names().iter().zip(&results).zip(&outcomes) {
        report += &check(name, outcome, result, expected)?;
    }
    if let Some(folder) = &execution.outputs {
        save(folder, function.result_names(), &results)?;
    }
    let mut kernels = String::new();
    let timing = if execution.measures() {
        let arguments: Vec<_> = inputs.iter().collect();
        let roles = signature.arguments.iter().map(|it| it.role);
        let roles = roles.filter(|role| *role != Role::Output);
        let read = arguments.iter().zip(roles).filter(|(_, role)| *role == Role::Input);
        let read: Vec<_> = read.map(|(tensor, _)| *tensor).collect();
        let bench = run::measure(code, &read, &mut results)?;
        let costs = Costs::of(&backend.cost(&lowered, &options.codegen)?, function.name(), &sizes);
        let profile = compiled.profile().map(|it| Report::new(it, &options.codegen));
        if execution.json {
            let (name, threads) = (function.name(), options.codegen.threads);
            let profile = profile.map(|it| it.json());
            let llvm_time = compiled.llvm_time();
            let measured =
                Measured { name, bench, compile_seconds, llvm_time, costs, threads, profile };
            return print(format!("{}\n", measured.json(&[])).as_bytes());
        }
        kernels = profile.map(|it| it.table()).unwrap_or_default();
        bench.describe(costs.flops, costs.bytes)
    } else if execution.json {
        let name = function.name();
        let costs = Costs::of(&backend.cost(&lowered, &options.codegen)?, name, &sizes);
        return print(format!("{}\n", counted(name, &compiled.counts(), costs)).as_bytes());
    } else {
        format!("{:.3} ms", first_call * 1e3)
    };
    let compiled = compile_seconds * 1e3;
    print(format!("{report}{timing}, compiled in {compiled:.0} ms\n{kernels}").as_bytes())
}

/// Writes results to `NAME.npy` in a folder. A name that another result has gets underscores.
fn save(folder: &Path, names: &[String], results: &[Tensor]) -> Result<(), Error> {
    make_folder(folder)?;
    let mut used = HashSet::new();
    for (name, result) in names.iter().zip(results) {
        let mut name = name.clone();
        while !used.insert(name.clone()) {
            name.push('_');
        }
        npy::save(npy::file_in(folder, &name)?, result)?;
    }
    Ok(())
}
