//! The launches, copies and memory of each function of a program, as formulas over its sizes.

use crate::{
    backend::{Role, Signature},
    cpu,
};
use melior::ir::{Module, ValueLike, operation::OperationLike};
use std::collections::HashMap;
use tc_dialects::mlir::{self, Op};
use tc_ir::Context;
use tc_passes::{
    analysis::{
        cost::Formula,
        launches::{
            Constants, LAUNCH, Memory, Step, Word, kernel_functions, steps, workspace_bytes,
        },
    },
    transform::assign_buffers::WORKSPACE,
};

/// The launches, copies and memory of a function.
pub(super) struct Plan {
    /// The launches and copies of a call whose checks succeed. `None` if control flow decides, or the host computes
    /// with elements.
    pub steps: Option<Vec<Step>>,
    /// The bytes of its workspace.
    pub workspace_bytes: Option<Formula>,
}

/// The plans of the functions of a module after `imap-assign-buffers`.
pub(super) fn plans(module: &Module, signatures: &[Signature], constants: &Constants) -> Vec<Plan> {
    let functions = functions(module);
    let root = mlir::op_ref(module.as_operation());
    let plan = |signature: &Signature| {
        let ir = Context::new();
        let function = functions.get(&*signature.name);
        let steps = function.and_then(|function| {
            steps(root, *function, &cpu::extents(&ir, signature, *function, true), constants)
        });
        let steps = steps.filter(|steps| reads_inputs(steps, signature));
        Plan { steps, workspace_bytes: workspace(&functions, signature) }
    };
    signatures.iter().map(plan).collect()
}

/// Whether all elements that the host reads are inputs or constants, so that they are the same before and after any
/// step.
fn reads_inputs(steps: &[Step], signature: &Signature) -> bool {
    let is_fixed = |word: &Word| match word {
        Word::Element { address, .. } => match address.memory {
            Memory::Argument(number) => signature.arguments[number].role == Role::Input,
            Memory::Constants => true,
            Memory::Workspace => false,
        },
        Word::Address(_) | Word::Value(_) => true,
    };
    steps.iter().all(|step| match step {
        Step::Launch { arguments, .. } => arguments.iter().all(is_fixed),
        Step::Copy { .. } => true,
    })
}

/// For each function of a module after `convert-imap-to-gpu`: the bytes of its workspace, and the most bytes of
/// shared memory of a block of one of its kernels.
pub(super) fn memory(
    module: &Module,
    signatures: &[Signature],
) -> Vec<(Option<Formula>, Option<Formula>)> {
    let functions = functions(module);
    let kernels = shared_bytes(module);
    let memory = |signature: &Signature| {
        let mut shared = Some(0);
        mlir::walk(*functions.get(&*signature.name)?, &mut |op| {
            if mlir::is(op, LAUNCH) {
                let kernel = op.attribute("kernel").map(|it| it.to_string()).unwrap_or_default();
                shared = shared.zip(kernels.get(&kernel).copied().flatten()).map(|(a, b)| a.max(b));
            }
        });
        let ir = Context::new();
        let shared = Formula::new(&ir, ir.constant(shared?), &[]);
        Some((workspace(&functions, signature), shared))
    };
    signatures.iter().map(|it| memory(it).unwrap_or_default()).collect()
}

/// The functions of the host by their names.
fn functions<'c>(module: &Module<'c>) -> HashMap<&'c str, Op<'c>> {
    let ops = mlir::ops(mlir::block_ref(module.body())).into_iter();
    let functions = ops.filter(|op| mlir::is(*op, "func.func"));
    functions.filter_map(|op| Some((mlir::string_attr(op, "sym_name")?, op))).collect()
}

/// The bytes of the workspace of a function.
fn workspace(functions: &HashMap<&str, Op>, signature: &Signature) -> Option<Formula> {
    let function = *functions.get(&*format!("{}{WORKSPACE}", signature.name))?;
    let ir = Context::new();
    workspace_bytes(function, &cpu::extents(&ir, signature, function, true))
}

/// The bytes of shared memory of kernels by their symbols, if they are static.
fn shared_bytes(module: &Module) -> HashMap<String, Option<i64>> {
    let kernels = kernel_functions(mlir::op_ref(module.as_operation()));
    kernels.into_iter().map(|(symbol, kernel)| (symbol, declared_bytes(kernel))).collect()
}

/// The bytes of the arrays in shared memory that a kernel declares.
fn declared_bytes(kernel: Op) -> Option<i64> {
    let parameters = mlir::function_type(kernel).map_or(0, |(inputs, _)| inputs.len());
    let count = mlir::integer_attr(kernel, "workgroup_attributions").unwrap_or(0);
    let arrays = mlir::arguments(mlir::body(kernel, 0)?).into_iter().skip(parameters);
    let bytes = arrays.take(count as usize).map(|array| {
        let width = i64::from(mlir::byte_width(mlir::element_type(array.r#type())));
        let mut extents = mlir::shape(array.r#type()).into_iter();
        extents.try_fold(width, |bytes, extent| bytes.checked_mul(extent?))
    });
    bytes.sum()
}
