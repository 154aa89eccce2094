//! Functions that compute the extents of results, if no signature determines them.

use melior::ir::{Module, ValueLike, attribute::TypeAttribute, r#type::FunctionType};
use tc_dialects::mlir::{self, Builder, Op};
use tc_passes::{PipelineError, run_pipeline};

/// A module whose function of a name returns the extents of its results, and the ranks of these.
///
/// # Errors
/// A pass failed.
pub(super) fn compute<'c>(
    module: &Module<'c>,
    name: &str,
) -> Result<(Module<'c>, Vec<usize>), PipelineError> {
    let copy = Module::from_operation((*module.as_operation()).clone());
    let mut module = copy.ok_or(PipelineError::Diagnosed)?;
    let functions = mlir::ops(mlir::block_ref(module.body()));
    let function =
        functions.into_iter().find(|it| mlir::string_attr(*it, "sym_name") == Some(name));
    let ranks = function.map(return_extents).unwrap_or_default();
    run_pipeline(
        &mut module,
        "canonicalize,resolve-ranked-shaped-type-result-dims,canonicalize,cse",
    )?;
    Ok((module, ranks))
}

/// Lets a function return the extents of its results, a tensor for each, and forget which arguments
/// are accumulated into. Returns the ranks of the results.
fn return_extents(function: Op) -> Vec<usize> {
    let Some(body) = mlir::body(function, 0) else { return Vec::new() };
    let context = mlir::context_of(function);
    let returned = mlir::terminator(body);
    let b = Builder::before(returned);
    let ty = mlir::tensor_type(&[], b.int_type(64));
    let mut extents = Vec::new();
    let mut ranks = Vec::new();
    for result in mlir::operands(returned) {
        let rank = mlir::shape(result.r#type()).len();
        ranks.push(rank);
        for dim in 0..rank {
            let extent = b.value("arith.index_cast", &[b.dim(result, dim)], b.int_type(64));
            extents.push(b.value("tensor.from_elements", &[extent], ty));
        }
    }
    b.op("func.return", &extents, &[]);
    mlir::erase(returned);
    let inputs: Vec<_> = mlir::arguments(body).iter().map(|it| it.r#type()).collect();
    let ty = FunctionType::new(context, &inputs, &vec![ty; extents.len()]).into();
    mlir::set_attribute(function, "function_type", TypeAttribute::new(ty).into());
    mlir::remove_attribute(function, "res_attrs");
    mlir::remove_attribute(function, "arg_attrs");
    ranks
}
