//! The description of a compiled program for code that loads its kernels and calls its host code.

use super::{Program, emulator, program::entries};
use crate::{
    backend::{Argument, Error, Extent, Role},
    cpu::interface::ENTRY_PREFIX,
};
use serde_json::{Value, json};
use tc_ir::Context;
use tc_passes::{analysis::cost::Formula, target::Machine};

/// The manifest as JSON text.
///
/// # Errors
/// A kernel has no fixed block size, or the emulator cannot read the PTX.
pub(super) fn write(program: &Program, machine: &Machine) -> Result<String, Error> {
    let symbols = entries(program.signatures());
    let (calls, workspaces) = symbols.split_at(program.signatures().len());
    let symbols = calls.iter().zip(workspaces);
    let functions =
        program.signatures().iter().zip(symbols).map(|(signature, (call, workspace))| {
            json!({
                "name": signature.name,
                "symbol": format!("{ENTRY_PREFIX}{call}"),
                "workspace_symbol": format!("{ENTRY_PREFIX}{workspace}"),
                "arguments": signature.arguments.iter().map(argument).collect::<Vec<_>>(),
                "checks": signature.checks,
            })
        });
    let functions: Vec<_> = functions.collect();
    let manifest = json!({
        "target": "nvvm",
        "machine": machine.cpu,
        "functions": functions,
        "kernels": kernels(program)?,
        "grid": "at least 1 block, at most one per block of the threads with work; any number is right",
        "constant_bytes": program.constants().len(),
    });
    Ok(format!("{manifest:#}\n"))
}

fn kernels(program: &Program) -> Result<Vec<Value>, Error> {
    if program.kernels().is_empty() {
        return Ok(Vec::new());
    }
    let wrong = |reason: String| Error::Llvm(format!("the kernels cannot be described: {reason}"));
    let module =
        emulator::Module::parse(program.ptx()).map_err(|error| wrong(error.to_string()))?;
    let describe = |name: &String| {
        let block = module.block(name).zip(module.parameter_sizes(name));
        let ((threads, shared), parameters) =
            block.ok_or_else(|| wrong(format!("'{name}' has no fixed block")))?;
        Ok(json!({
            "name": name,
            "threads_per_block": threads,
            "static_shared_bytes": shared,
            "dynamic_shared_bytes": 0,
            "parameter_bytes": parameters,
        }))
    };
    program.kernels().iter().map(describe).collect()
}

fn argument(argument: &Argument) -> Value {
    let role = match argument.role {
        Role::Input => "input",
        Role::Output => "output",
        Role::InOut => "inout",
    };
    let ir = Context::new();
    let computed = argument.extents.as_ref().map(|formulas| formulas.map(&ir));
    let extent = |extent: &Extent| match extent {
        Extent::Constant(extent) => json!(extent),
        Extent::Size(name) => json!(name),
        Extent::Computed(dim) => match &computed {
            Some((map, names)) => {
                let formula = Formula::new(&ir, map.results[*dim], names);
                json!(formula.map(|formula| formula.to_string()))
            }
            None => Value::Null,
        },
        Extent::Unknown => Value::Null,
    };
    json!({
        "name": argument.name,
        "role": role,
        "element": argument.element.name(),
        "shape": argument.shape.iter().map(extent).collect::<Vec<_>>(),
    })
}
