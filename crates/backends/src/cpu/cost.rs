//! Costs of compiled functions, as formulas over their sizes.

use super::{pipeline, prepare, run};
use crate::{
    backend::{Argument, Cost, Error, Extent, Signature, read_signatures},
    llvm,
};
use melior::ir::{Module, TypeLike, ValueLike};
use tc_dialects::mlir::{self, Op};
use tc_ir::{Context, Expr};
use tc_passes::{
    analysis::cost::{Extents, Formula, Memory, Work, memory, work},
    target::Codegen,
};

/// The costs of the functions of a module on tensors, compiled with these options. The module stays as
/// it is.
///
/// # Errors
/// A pass failed, which its diagnostics explain.
pub(super) fn cost(module: &Module, codegen: &Codegen) -> Result<Vec<Cost>, Error> {
    llvm::check_target(&codegen.machine)?;
    let (mut copy, upstream) = prepare(module, "")?;
    let signatures = read_signatures(&copy).ok_or(Error::Lowering)?;
    let mut costs = work_costs(&signatures, &copy);
    run(&mut copy, &pipeline::to_nests(codegen, upstream))?;
    let functions = functions(&copy);
    for (signature, cost) in signatures.iter().zip(&mut costs) {
        let is_own = |it: &&Op| mlir::string_attr(**it, "sym_name") == Some(&signature.name);
        let function = *functions.iter().find(is_own).ok_or(Error::Lowering)?;
        let ir = Context::new();
        let extents = extents(&ir, signature, function, false);
        let Memory { temporary_bytes, scratch_bytes } = memory(function, &extents, codegen.threads);
        cost.temporary_bytes = formula(&extents, temporary_bytes);
        cost.scratch_bytes = formula(&extents, scratch_bytes);
    }
    Ok(costs)
}

/// The operations and memory traffic of functions with destinations, the same for every target.
pub(crate) fn work_costs(signatures: &[Signature], module: &Module) -> Vec<Cost> {
    let mut costs = Vec::new();
    for (signature, function) in signatures.iter().zip(functions(module)) {
        let ir = Context::new();
        let extents = extents(&ir, signature, function, false);
        let Work { flops, bytes } = work(function, &extents);
        costs.push(Cost {
            name: signature.name.clone(),
            flops: formula(&extents, flops),
            bytes: formula(&extents, bytes),
            temporary_bytes: None,
            scratch_bytes: None,
        });
    }
    costs
}

/// The functions that have a signature.
fn functions<'c>(module: &Module<'c>) -> Vec<Op<'c>> {
    let ops = mlir::ops(mlir::block_ref(module.body())).into_iter();
    let is_entry = |op: &Op| mlir::is(*op, "func.func") && !mlir::is_private(*op);
    ops.filter(|op| is_entry(op) && mlir::body(*op, 0).is_some()).collect()
}

fn formula(extents: &Extents, expr: Option<Expr>) -> Option<Formula> {
    Formula::new(extents.ir, expr?, extents.names())
}

/// The extents of the arguments over the names by which `tc-run` takes sizes. With `only_extents`, extents of outputs
/// that nothing computes have such names, too, but no elements have.
pub(crate) fn extents<'i>(
    ir: &'i Context,
    signature: &Signature,
    function: Op,
    only_extents: bool,
) -> Extents<'i> {
    let mut extents = Extents::new(ir, function);
    let values = mlir::body(function, 0).map(mlir::arguments).unwrap_or_default();
    for (argument, value) in signature.arguments.iter().zip(values) {
        let dims = (0..argument.shape.len())
            .map(|dim| extent(&mut extents, argument, dim, only_extents))
            .collect();
        let is_index = !only_extents
            && argument.shape.is_empty()
            && mlir::element_type(value.r#type()).is_index();
        let scalar = is_index.then(|| extents.size(&argument.name, i64::MIN));
        extents.add_argument(dims, scalar);
    }
    extents
}

fn extent(
    extents: &mut Extents,
    argument: &Argument,
    dim: usize,
    only_extents: bool,
) -> Option<Expr> {
    match &argument.shape[dim] {
        Extent::Constant(extent) => Some(extents.ir.constant(i64::try_from(*extent).ok()?)),
        Extent::Size(name) => Some(extents.size(name, 1)),
        Extent::Computed(result) => {
            let (map, names) = argument.extents.as_ref()?.map(extents.ir);
            extents.computed(&map, &names, *result)
        }
        Extent::Unknown if argument.output.is_some() && !only_extents => None,
        Extent::Unknown => Some(extents.size(&argument.extent_name(dim), 0)),
    }
}
