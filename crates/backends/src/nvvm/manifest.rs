//! The description of a compiled program for code that loads its kernels and calls its host code.

use super::{Program, emulator, program::entries};
use crate::{
    backend::{Argument, Error, Extent, Role, Signature},
    cpu::{header, interface::ENTRY_PREFIX},
};
use serde_json::{Value, json};
use tc_ir::Context;
use tc_passes::{
    analysis::{
        cost::Formula,
        launches::{Address, Memory, Step, Word},
    },
    target::Machine,
};

/// A kernel, and the bytes of its parameters.
type Described = (header::Kernel, Vec<usize>);

/// The manifest as JSON text.
///
/// # Errors
/// A kernel has no fixed block size, or the emulator cannot read the PTX.
pub(super) fn write(program: &Program, machine: &Machine) -> Result<String, Error> {
    let symbols = entries(program.signatures());
    let (calls, workspaces) = symbols.split_at(program.signatures().len());
    let symbols = calls.iter().zip(workspaces);
    let functions = program.signatures().iter().zip(program.plans()).zip(symbols);
    let functions = functions.map(|((signature, plan), (call, workspace))| {
        let step = |it: &Step| step(it, program.kernels(), signature);
        let steps = plan.steps.as_ref();
        json!({
            "name": signature.name,
            "symbol": format!("{ENTRY_PREFIX}{call}"),
            "workspace_symbol": format!("{ENTRY_PREFIX}{workspace}"),
            "arguments": signature.arguments.iter().map(argument).collect::<Vec<_>>(),
            "checks": signature.checks,
            "workspace_bytes": plan.workspace_bytes.as_ref().map(number),
            "steps": steps.map(|steps| steps.iter().map(step).collect::<Vec<_>>()),
        })
    });
    let functions: Vec<_> = functions.collect();
    let kernels = kernels(program)?.into_iter().map(|(kernel, parameters)| {
        json!({
            "name": kernel.name,
            "threads_per_block": kernel.threads,
            "static_shared_bytes": kernel.static_shared_bytes,
            "dynamic_shared_bytes": 0,
            "parameter_bytes": parameters,
        })
    });
    let manifest = json!({
        "target": "nvvm",
        "machine": machine.cpu,
        "functions": functions,
        "kernels": kernels.collect::<Vec<_>>(),
        "grid": "at least 1 block, at most one per block of the threads with work; any number is right",
        "constant_bytes": program.constants().len(),
    });
    Ok(format!("{manifest:#}\n"))
}

/// A number, or a formula over sizes as text.
fn number(formula: &Formula) -> Value {
    formula.constant().map_or_else(|| json!(formula.to_string()), Value::from)
}

fn step(step: &Step, kernels: &[String], signature: &Signature) -> Value {
    let address = |Address { memory, offset }: &Address| {
        let offset = number(offset);
        match memory {
            Memory::Argument(argument) => {
                json!({ "argument": signature.arguments[*argument].name, "offset": offset })
            }
            Memory::Workspace => json!({ "workspace": offset }),
            Memory::Constants => json!({ "constants": offset }),
        }
    };
    match step {
        Step::Launch { kernel, blocks, threads, arguments } => {
            let word = |word: &Word| match word {
                Word::Address(it) => address(it),
                Word::Value(value) => json!({ "value": number(value) }),
                Word::Element { address: place, bytes } => {
                    json!({ "element": address(place), "bytes": bytes })
                }
            };
            json!({
                "kernel": kernels.get(*kernel),
                "blocks": number(blocks),
                "threads": threads,
                "arguments": arguments.iter().map(word).collect::<Vec<_>>(),
            })
        }
        Step::Copy { target, source, bytes } => {
            json!({ "to": address(target), "from": address(source), "bytes": number(bytes) })
        }
    }
}

/// The kernels of a program.
///
/// # Errors
/// A kernel has no fixed block size, or the emulator cannot read the PTX.
pub(super) fn kernels(program: &Program) -> Result<Vec<Described>, Error> {
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
        let name = name.clone();
        Ok((header::Kernel { name, threads, static_shared_bytes: shared }, parameters))
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
    let extent = |(dim, extent): (usize, &Extent)| match extent {
        Extent::Constant(extent) => json!(extent),
        Extent::Size(name) => json!(name),
        Extent::Computed(dim) => match &computed {
            Some((map, names)) => {
                let formula = Formula::new(&ir, map.results[*dim], names);
                json!(formula.as_ref().map(number))
            }
            None => Value::Null,
        },
        Extent::Unknown => json!(argument.extent_name(dim)),
    };
    json!({
        "name": argument.name,
        "role": role,
        "element": argument.element.name(),
        "shape": argument.shape.iter().enumerate().map(extent).collect::<Vec<_>>(),
    })
}
