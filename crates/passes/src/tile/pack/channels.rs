//! Lanes without tests, and enough of them.
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
//! A product may have its results next to each other along a dimension that does not fill half of a vector, such as
//! a batch that comes last, or the three colors of an image. It has them along another dimension then, too. An input
//! that overlapping windows read, such as that image, is copied for it.
//!
//! An epilogue moves to the last operation, which reads its inputs in their order.

use super::{Limits, MAX_ELEMENTS, Product, scratch};
use crate::tile::moved_last;
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

/// A copy pays with a fraction of the usual reuse if the operation has no vectors without it.
pub(super) const FEW: i64 = 4;

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
    let view = &product.view;
    let is_new = |access: &Access| mlir::is_empty_tensor(access.value);
    let mut starts = view.accumulators.iter().map(|it| it.start);
    if view.outputs.len() != view.accumulators.len()
        || !view.outputs.iter().all(is_new)
        || starts.any(|it| matches!(it, Start::Destination(_)))
        || check_epilogue(product.ir, product.generic, view).is_err()
    {
        return None;
    }
    match product.lanes(limits).next() {
        Some(lane) => without_tests(product, lane, limits),
        None => with_lanes(product, limits),
    }
}

/// The dimension of a tensor that a variable alone is the subscript of.
fn place(product: &Product, access: &Access, var: Var) -> Option<usize> {
    access.subscripts.iter().position(|it| product.ir.as_var(*it) == Some(var))
}

/// Another dimension as lanes, because none in which the results are contiguous has enough values. It is contiguous in
/// an input, if one is, and the longest of those.
fn with_lanes(product: &Product, limits: Limits) -> Option<Plan> {
    let lanes = limits.vector_bits / product.element_bits();
    if product.num_values() < limits.min_reuse / FEW {
        return None;
    }
    let is_plain = |access: &Access, lane| {
        let mentions = |it: &&Expr| product.ir.vars(**it).contains(&lane);
        place(product, access, lane).is_some()
            && access.subscripts.iter().filter(mentions).count() == 1
    };
    let is_lane = |lane: &Var| {
        lanes <= product.extent(*lane)
            && product.view.outputs.iter().all(|it| is_plain(it, *lane))
            && product.folded().filter(|(_, it)| product.vars(it).contains(lane)).count() == 1
    };
    let is_contiguous =
        |lane: Var| product.folded().any(|(_, it)| product.step(it, lane) == Some(1));
    let candidates = product.dims.iter().copied().filter(is_lane);
    let lane = candidates.max_by_key(|lane| (is_contiguous(*lane), product.extent(*lane)))?;
    let places = product.view.outputs.iter().map(|it| place(product, it, lane));
    let last_dims = places.collect::<Option<_>>()?;
    let mut inputs = Vec::new();
    for (number, access) in product.folded() {
        let vars = product.vars(access);
        if vars.contains(&lane)
            && product.step(access, lane) != Some(1)
            && !product.can_copy(access, &vars)
        {
            inputs.push((number, window(product, access, lane)?));
        }
    }
    Some(Plan { last_dims, inputs })
}

/// The dimension along which neighbouring lanes read neighbours once it is the last one. `None` if there is none, or if a
/// copy of the tensor does not pay.
fn window(product: &Product, access: &Access, lane: Var) -> Option<usize> {
    let ir = product.ir;
    let mut dims =
        (0..access.subscripts.len()).filter(|dim| ir.vars(access.subscripts[*dim]).contains(&lane));
    let (dim, None) = (dims.next()?, dims.next()) else { return None };
    let points = product.dims.iter().map(|dim| product.extent(*dim));
    let points = points.fold(product.num_values(), i64::saturating_mul);
    let lengths = mlir::shape(access.value.r#type()).into_iter();
    let stored = lengths.fold(1, |all: i64, it| all.saturating_mul(it.unwrap_or(i64::MAX)));
    let pays = stored <= MAX_ELEMENTS && stored.saturating_mul(FEW) <= points;
    (pays && ir.coefficient(access.subscripts[dim], lane) == Some(1)).then_some(dim)
}

/// Other lanes than those that need masks.
fn without_tests(product: &Product, masked: Var, limits: Limits) -> Option<Plan> {
    let (ir, view) = (product.ir, &product.view);
    let lanes = limits.vector_bits / product.element_bits();
    let constraints = || view.domain.constraints.iter();
    let is_test_of = |it: &Constraint, var| ir.vars(it.expr).contains(&var);
    let is_range = |var: &Var| matches!(var, Var::Range(_));
    let is_mask = |it: &Constraint| is_test_of(it, masked) && ir.vars(it.expr).iter().any(is_range);
    let is_tested = |var| constraints().any(|it| is_test_of(it, var));
    if !constraints().any(is_mask) || product.num_values() < limits.min_reuse {
        return None;
    }
    let is_lane = |lane: &Var| {
        let along = |(_, access): (usize, &Access)| {
            let vars = product.vars(access);
            !(vars.contains(lane) && vars.contains(&masked))
        };
        2 * lanes <= product.extent(*lane) && !is_tested(*lane) && product.folded().all(along)
    };
    let mut candidates = product.dims.iter().copied().filter(is_lane);
    let last_dims = candidates.find_map(|lane| {
        view.outputs.iter().map(|it| place(product, it, lane)).collect::<Option<Vec<_>>>()
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
        let dim = place(product, access, run)?;
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
    scratch(product.build_copy(builder, domain, Vec::new(), accesses, None))
}
