//! Lanes without tests.
//!
//! A padded convolution on `x[n, c, h, w]` has its results next to each other along a row of the image, and which
//! points of a row are padding depends on the weight. Each vector would need a mask. Results along the channels need none:
//!
//! ```text
//! y[n, o, h, w] = sum x[n, c, h + r - 1, w + s - 1] * k[o, c, r, s], h + r - 1 in [0, 31], w + s - 1 in [0, 31]
//! ```
//!
//! becomes
//!
//! ```text
//! p[n, h, w, c] = x[n, c, h, w]
//! t[n, h, w, o] = sum p[n, h + r - 1, w + s - 1, c] * k[o, c, r, s], h + r - 1 in [0, 31], w + s - 1 in [0, 31]
//! y[n, o, h, w] = t[n, h, w, o]
//! ```
//!
//! An epilogue moves to the last operation, which reads its inputs in their order.

use super::{Limits, MAX_ELEMENTS, Product, scratch};
use melior::ir::{ValueLike, operation::OperationLike};
use tc_dialects::{
    imap::{
        Access, Generic, Start, View,
        open::{build_finish, build_fold, check_epilogue},
    },
    mlir::{self, Builder, Val},
};
use tc_ir::{
    Interval,
    expr::{Expr, Var},
    map::{Constraint, IndexingMap, Variable},
};

/// The dimensions of tensors that become the last ones.
struct Plan {
    /// Per destination.
    last_dims: Vec<usize>,
    /// The numbers of inputs, and the dimensions that their folds run along.
    inputs: Vec<(usize, usize)>,
}

/// The same operation on copies, and its results; `None` if its vectors need no masks, or if copies do not pay.
pub(super) fn reorder<'c>(
    product: &Product<'_, 'c>,
    limits: Limits,
) -> Option<(Generic<'c>, Vec<Val<'c>>)> {
    let plan = plan(product, limits)?;
    let (ir, old) = (product.ir, product.generic);
    let builder = Builder::before(old.op()).located(old.op().location());
    let mut fold: View<'c> = product.view.clone();
    for (number, dim) in plan.inputs {
        let access = &mut fold.inputs[number];
        access.value = copy(product, &builder, access.value, dim);
        access.subscripts = moved_last(&access.subscripts, dim);
    }
    for (number, dim) in plan.last_dims.iter().enumerate() {
        let output = &mut fold.outputs[number];
        let shape = moved_last(&mlir::shape(output.value.r#type()), *dim);
        let ty = mlir::tensor_type(&shape, fold.accumulators[number].ty);
        output.value = builder.value("tensor.empty", &[], ty);
        output.subscripts = moved_last(&output.subscripts, *dim);
    }
    let outputs = fold.outputs.clone();
    let new = build_fold(ir, &builder, old, fold);
    scratch(mlir::result(new.op(), 0));

    let results = mlir::results(new.op()).into_iter().zip(outputs);
    let results = results.map(|(value, output)| Access { value, ..output }).collect();
    let finish = build_finish(ir, &builder, old, &product.view, results);
    Some((new, mlir::results(finish.op())))
}

fn plan(product: &Product, limits: Limits) -> Option<Plan> {
    let (ir, view) = (product.ir, &product.view);
    let lanes = limits.vector_bits / product.element_bits();
    let masked = product.lanes(limits).next()?;
    let constraints = || view.domain.constraints.iter();
    let is_test_of = |it: &Constraint, var| ir.vars(it.expr).contains(&var);
    let is_range = |var: &Var| matches!(var, Var::Range(_));
    let is_mask = |it: &Constraint| is_test_of(it, masked) && ir.vars(it.expr).iter().any(is_range);
    let is_tested = |var| constraints().any(|it| is_test_of(it, var));
    let count =
        product.ranges.iter().fold(1, |all: i64, it| all.saturating_mul(product.extent(*it)));
    let is_new = |access: &Access| {
        mlir::defining_op(access.value).is_some_and(|op| mlir::is(op, "tensor.empty"))
    };
    let starts = view.accumulators.iter().map(|it| it.start);
    if !constraints().any(is_mask)
        || count < limits.min_reuse
        || view.outputs.len() != view.accumulators.len()
        || !view.outputs.iter().all(is_new)
        || starts.into_iter().any(|it| matches!(it, Start::Destination(_)))
        || check_epilogue(ir, product.generic, view).is_err()
    {
        return None;
    }
    let place =
        |access: &Access, var| access.subscripts.iter().position(|it| ir.as_var(*it) == Some(var));
    let is_lane = |lane: &Var| {
        let along = |(_, access): (usize, &Access)| {
            let vars = product.vars(access);
            !(vars.contains(lane) && vars.contains(&masked))
        };
        2 * lanes <= product.extent(*lane) && !is_tested(*lane) && product.folded().all(along)
    };
    let mut candidates = product.dims.iter().copied().filter(is_lane);
    let last_dims = candidates.find_map(|lane| {
        view.outputs.iter().map(|it| place(it, lane)).collect::<Option<Vec<_>>>()
    })?;
    // The innermost range of the fold is in no test.
    let run = product.ranges.iter().copied().filter(|it| !is_tested(*it));
    let run = run.max_by_key(|it| product.extent(*it)).filter(|it| lanes <= product.extent(*it))?;
    let mut inputs = Vec::new();
    for (number, access) in product.folded() {
        let vars = product.vars(access);
        if !vars.contains(&masked) {
            continue;
        }
        let dim = place(access, run)?;
        let extents = mlir::shape(access.value.r#type()).into_iter();
        let stored = extents.fold(1_i64, |all, it| all.saturating_mul(it.unwrap_or(i64::MAX)));
        if MAX_ELEMENTS < stored || product.reuse(&vars) < limits.min_reuse {
            return None;
        }
        if dim + 1 < access.subscripts.len() {
            inputs.push((number, dim));
        }
    }
    Some(Plan { last_dims, inputs })
}

/// A list with one element at the end.
fn moved_last<T: Clone>(list: &[T], place: usize) -> Vec<T> {
    let mut list = list.to_vec();
    list[place..].rotate_left(1);
    list
}

/// A copy of a tensor with one dimension as the last one.
fn copy<'c>(
    product: &Product<'_, 'c>,
    builder: &Builder<'c>,
    value: Val<'c>,
    dim: usize,
) -> Val<'c> {
    let ir = product.ir;
    let shape = moved_last(&mlir::shape(value.r#type()), dim);
    let ty = mlir::tensor_type(&shape, mlir::element_type(value.r#type()));
    let copies = builder.value("tensor.empty", &[], ty);
    let extents = shape.iter().map(|extent| extent.unwrap_or(1));
    let dims = extents.map(|extent| Variable::bounded(ir, Interval::new(0, extent - 1)));
    let domain = IndexingMap { dims: dims.collect(), ..IndexingMap::default() };
    let places: Vec<Expr> = (0..shape.len() as u32).map(|dim| ir.dim(dim)).collect();
    let mut read = places.clone();
    read[dim..].rotate_right(1);
    let accesses = [Access::new(value, read), Access::new(copies, places)];
    scratch(product.build_copy(builder, domain, accesses, None))
}
