//! Strided factors, one residue at a time.
//!
//! A convolution with stride 2 reads `x[.., 2 * w + q]`, whose elements are no neighbours for neighbouring `w`. A copy
//! holds the even elements of each row, then the odd ones, so that the read is `p[.., q mod 2, w + q floordiv 2]`. No
//! element is copied twice, however much windows overlap.
//!
//! A transposed convolution has the stride in its results, `y[.., 2 * w + r]`. They are computed as `t[.., r, w]`, and a
//! copy puts them in their places.

use super::{Limits, Product, scratch};
use melior::ir::{ValueLike, operation::OperationLike};
use tc_dialects::{
    imap::{Access, Generic, View},
    mlir::{self, Builder, Val},
};
use tc_ir::{
    Interval,
    expr::{Expr, Var},
    map::{IndexingMap, Variable},
};

/// A read with a stride in the last dimension.
struct Strided {
    /// The number of the input.
    input: usize,
    stride: i64,
    /// The last subscript without the lane.
    rest: Expr,
}

/// The same operation, in which factors with a stride along the lane are read from copies; `None` if none is worth one.
pub(super) fn separate<'c>(product: &Product<'_, 'c>, limits: Limits) -> Option<Generic<'c>> {
    // Without neighbouring results, neighbouring values of a range are in lanes.
    let lane = product.lanes(limits).next().unwrap_or_else(|| product.innermost());
    let found: Vec<_> =
        product.folded().filter_map(|it| strided(product, lane, it, limits)).collect();
    if found.is_empty() {
        return None;
    }
    let ir = product.ir;
    let builder = Builder::before(product.generic.op()).located(product.generic.op().location());
    let mut view: View<'c> = product.view.clone();
    for Strided { input, stride, rest } in found {
        let access = &mut view.inputs[input];
        let value = copy(product, &builder, access.value, stride);
        let mut subscripts = access.subscripts.clone();
        subscripts.pop();
        let factor = ir.constant(stride);
        subscripts.push(ir.modulo(rest, factor));
        subscripts.push(ir.add(ir.var(lane), ir.floor_div(rest, factor)));
        *access = Access { value, subscripts, ..access.clone() };
    }
    Some(product.rebuild(&builder, &view, &[]))
}

fn strided<'c>(
    product: &Product<'_, 'c>,
    lane: Var,
    (input, access): (usize, &Access<'c>),
    limits: Limits,
) -> Option<Strided> {
    let ir = product.ir;
    let (last, outer) = access.subscripts.split_last()?;
    let stride = ir.coefficient(*last, lane).filter(|stride| 1 < *stride)?;
    let is_elsewhere = outer.iter().any(|expr| ir.vars(*expr).contains(&lane));
    let vars = product.vars(access);
    let lengths: Option<Vec<i64>> = mlir::shape(access.value.r#type()).into_iter().collect();
    let stored = lengths?.into_iter().fold(1_i64, i64::saturating_mul);
    let read = vars.iter().fold(1_i64, |all, var| all.saturating_mul(product.extent(*var)));
    let pays = limits.min_reuse <= product.reuse(&vars) && stored <= read;
    if is_elsewhere || !pays || super::MAX_ELEMENTS < stored || product.can_copy(access, &vars) {
        return None;
    }
    let rest = ir.substitute(*last, &|var| (var == lane).then(|| ir.constant(0)));
    Some(Strided { input, stride, rest })
}

/// The same operation with results of which those along the lanes are neighbours, and copies of these to their places;
/// `None` if they are neighbours already.
pub(super) fn gather<'c>(
    product: &Product<'_, 'c>,
    limits: Limits,
) -> Option<(Generic<'c>, Vec<Val<'c>>)> {
    let ir = product.ir;
    let extent = |var: Var| product.extent(var);
    let mut places = product.view.outputs.iter().map(|it| {
        let (last, outer) = it.subscripts.split_last()?;
        let terms = ir.linear_terms(*last)?;
        let [(first, one), (second, stride)] = terms.terms[..] else { return None };
        let (place, lane) = (ir.as_var(first)?, ir.as_var(second)?);
        let (place, lane, stride) = match (one, stride) {
            (1, stride) if 1 < stride => (place, lane, stride),
            (stride, 1) if 1 < stride => (lane, place, stride),
            _ => return None,
        };
        let is_whole = terms.constant == 0 && extent(place) == stride;
        let is_elsewhere = |var| outer.iter().any(|expr| ir.vars(*expr).contains(&var));
        let is_empty = mlir::is_empty_tensor(it.value);
        let is_static = mlir::shape(it.value.r#type()).iter().all(Option::is_some);
        let is_alone = !is_elsewhere(place) && !is_elsewhere(lane);
        (is_whole && is_empty && is_static && is_alone).then_some((place, lane, stride))
    });
    let (place, lane, stride) = places.next()??;
    let lanes = limits.vector_bits / product.element_bits();
    let fits = |access: &Access<'c>| matches!(product.step(access, lane), Some(0 | 1));
    if !places.all(|it| it == Some((place, lane, stride)))
        || 2 * extent(lane) < lanes
        || product.num_values() < limits.min_reuse
        || !product.folded().all(|(_, access)| fits(access))
    {
        return None;
    }
    let builder = Builder::before(product.generic.op()).located(product.generic.op().location());
    let mut view: View<'c> = product.view.clone();
    for output in &mut view.outputs {
        let mut shape = mlir::shape(output.value.r#type());
        shape.pop();
        shape.extend([Some(stride), Some(extent(lane))]);
        let ty = mlir::tensor_type(&shape, mlir::element_type(output.value.r#type()));
        output.value = builder.value("tensor.empty", &[], ty);
        output.subscripts.pop();
        output.subscripts.extend([ir.var(place), ir.var(lane)]);
    }
    let new = product.rebuild(&builder, &view, &[]);
    let results = mlir::results(new.op()).into_iter();
    let copies = results.zip(&product.view.outputs).map(|(result, output)| {
        let extents = mlir::shape(result.r#type()).into_iter().map(|it| it.unwrap_or(1));
        let dims = extents.map(|it| Variable::bounded(ir, Interval::new(0, it - 1)));
        let domain = IndexingMap { dims: dims.collect(), ..IndexingMap::default() };
        let places: Vec<Expr> = (0..domain.dims.len() as u32).map(|dim| ir.dim(dim)).collect();
        let mut target = places.clone();
        let (step, residue) = (target.pop(), target.pop());
        let index = step
            .zip(residue)
            .map(|(step, residue)| ir.add(ir.mul(step, ir.constant(stride)), residue));
        target.extend(index);
        let accesses = [Access::new(result, places), Access::new(output.value, target)];
        product.build_copy(&builder, domain, Vec::new(), accesses, None)
    });
    Some((new, copies.collect()))
}

/// The rows of a tensor, each divided by the residues of its indices.
fn copy<'c>(
    product: &Product<'_, 'c>,
    builder: &Builder<'c>,
    value: Val<'c>,
    stride: i64,
) -> Val<'c> {
    let ir = product.ir;
    let mut shape = mlir::shape(value.r#type());
    let length = shape.pop().flatten().unwrap_or(1);
    let steps = length.div_euclid(stride) + i64::from(length % stride != 0);
    shape.extend([Some(stride), Some(steps)]);
    let ty = mlir::tensor_type(&shape, mlir::element_type(value.r#type()));
    let copies = builder.value("tensor.empty", &[], ty);
    let extents = shape.iter().map(|extent| extent.unwrap_or(1));
    let dims = extents.map(|extent| Variable::bounded(ir, Interval::new(0, extent - 1)));
    let mut domain = IndexingMap { dims: dims.collect(), ..IndexingMap::default() };
    let places: Vec<Expr> = (0..shape.len() as u32).map(|dim| ir.dim(dim)).collect();
    let [outer @ .., residue, step] = &places[..] else { return value };
    let index = ir.add(ir.mul(*step, ir.constant(stride)), *residue);
    if steps * stride != length {
        domain.add_constraint(ir, index, Interval::new(0, length - 1));
    }
    let read = Access::new(value, [outer, &[index]].concat());
    let written = Access::new(copies, places.clone());
    scratch(product.build_copy(builder, domain, Vec::new(), [read, written], None))
}
