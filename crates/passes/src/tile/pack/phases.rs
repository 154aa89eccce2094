//! Strided factors, one residue at a time.
//!
//! A convolution with stride 2 reads `x[.., 2 * w + q]`, whose elements are no neighbours for neighbouring `w`. A copy
//! holds the even elements of each row, then the odd ones, so that the read is `p[.., q mod 2, w + q floordiv 2]`. No
//! element is copied twice, however much windows overlap.

use super::{Limits, Product};
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
    let lane = product.lanes(limits).next()?;
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
    product.build_copy(builder, domain, [read, Access::new(copies, places.clone())], None)
}
