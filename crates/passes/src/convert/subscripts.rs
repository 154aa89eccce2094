//! Subscripts of tensors as expressions.

use tc_ir::{Context, Expr};

/// The dimension variables `d0, ..` as an index.
pub fn identity(ir: &Context, rank: usize) -> Vec<Expr> {
    (0..rank as u32).map(|dim| ir.dim(dim)).collect()
}

/// Extents as expressions.
fn constants(ir: &Context, dims: &[i64]) -> Vec<Expr> {
    dims.iter().map(|extent| ir.constant(*extent)).collect()
}

/// The position of an index in an array in row-major order.
pub fn row_major(ir: &Context, index: &[Expr], dims: &[i64]) -> Expr {
    linear(ir, index, &constants(ir, dims))
}

fn linear(ir: &Context, index: &[Expr], dims: &[Expr]) -> Expr {
    let (mut position, mut stride) = (ir.constant(0), ir.constant(1));
    for (index, extent) in index.iter().zip(dims).rev() {
        position = ir.add(position, ir.mul(*index, stride));
        stride = ir.mul(stride, *extent);
    }
    position
}

/// Where the element at `index` of an array of `to` stands in one of `from`, both row-major.
pub fn reshape_index(ir: &Context, index: &[Expr], to: &[Expr], from: &[Expr]) -> Vec<Expr> {
    let mut rest = linear(ir, index, to);
    let mut result = vec![ir.constant(0); from.len()];
    for (dim, extent) in from.iter().enumerate().rev() {
        // An array without elements has no positions.
        let extent = if ir.as_constant(*extent) == Some(0) { ir.constant(1) } else { *extent };
        result[dim] = if dim == 0 { rest } else { ir.modulo(rest, extent) };
        rest = ir.floor_div(rest, extent);
    }
    result
}
