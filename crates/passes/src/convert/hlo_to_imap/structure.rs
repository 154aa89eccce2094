//! Instructions that move elements: each element of the result is one of an operand.

use super::{
    Lowering,
    nest::{IndexMath, Memory, Nest, empty, empty_array, identity},
    scalar,
    value::Array,
};
use tc_dialects::{
    hlo::{ArrayShape, Instruction, Opcode},
    imap::Combiner,
    mlir::{Builder, Val},
};
use tc_ir::{Context, Expr};

/// How many operands of `concatenate` are put into a tensor one after the other. Bufferization takes
/// cubic time for such a chain, so that more are written to memory.
const MAX_INSERTIONS: usize = 64;

impl<'c> Lowering<'c, '_> {
    /// The array whose element at `d` is the one of `source` at `index(d)`.
    pub(super) fn gather_by_map(
        &self,
        b: &Builder<'c>,
        source: &Array<'c>,
        shape: &ArrayShape,
        index: Vec<Expr>,
    ) -> Result<Array<'c>, String> {
        let inits = empty(b, shape);
        let parts = source.parts.iter().zip(inits).map(|(part, init)| {
            if shape.num_elements() == Some(0) {
                return Ok(init);
            }
            let mut nest = Nest::new(self.ir, &shape.dims);
            nest.read(*part, index.clone());
            nest.write(init, identity(self.ir, shape.rank()), Combiner::ASSIGN);
            Ok(nest.build(b, |_, values| Ok(values.to_vec()))?[0])
        });
        Ok(Array { parts: parts.collect::<Result<_, String>>()?, shape: shape.clone() })
    }

    /// Writes `source` into a copy of `target`, its element at `d` to `index(d)`.
    pub(super) fn insert_by_map(
        &self,
        b: &Builder<'c>,
        source: &Array<'c>,
        target: Array<'c>,
        runtimes: &[(Val<'c>, i64)],
        index: &dyn Fn(&[Expr]) -> Vec<Expr>,
    ) -> Result<Array<'c>, String> {
        if source.shape.num_elements() == Some(0) {
            return Ok(target);
        }
        let parts = source.parts.iter().zip(&target.parts).map(|(part, init)| {
            let mut nest = Nest::new(self.ir, source.dims());
            let runtimes: Vec<_> =
                runtimes.iter().map(|(value, last)| nest.runtime(*value, *last)).collect();
            nest.read(*part, identity(self.ir, source.dims().len()));
            nest.write(*init, index(&runtimes), Combiner::ASSIGN);
            Ok(nest.build(b, |_, values| Ok(values.to_vec()))?[0])
        });
        Ok(Array { parts: parts.collect::<Result<_, String>>()?, shape: target.shape })
    }

    /// An array of one value.
    pub(super) fn fill(
        &self,
        b: &Builder<'c>,
        shape: &ArrayShape,
        value: &Array<'c>,
    ) -> Result<Array<'c>, String> {
        self.gather_by_map(b, value, shape, Vec::new())
    }

    /// Instructions with a map from each element of the result to one of the only operand.
    pub(super) fn rearrange(
        &self,
        b: &Builder<'c>,
        instruction: &Instruction,
        source: &Array<'c>,
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let ir = self.ir;
        let dims = identity(ir, shape.rank());
        let index = match instruction.opcode {
            Opcode::Broadcast => {
                let of = |dim: &i64| dims[*dim as usize];
                instruction.dimensions().iter().map(of).collect()
            }
            Opcode::Transpose => {
                let mut index = dims.clone();
                for (to, from) in instruction.dimensions().iter().enumerate() {
                    index[*from as usize] = dims[to];
                }
                index
            }
            Opcode::Reverse => {
                let mut index = dims;
                for dim in instruction.dimensions() {
                    let dim = *dim as usize;
                    index[dim] = ir.sub(ir.constant(shape.dims[dim] - 1), index[dim]);
                }
                index
            }
            Opcode::Slice => {
                let slices = instruction.slice_dims().iter().zip(dims);
                slices
                    .map(|(slice, dim)| {
                        let scaled = ir.mul(dim, ir.constant(slice.stride));
                        ir.add(scaled, ir.constant(slice.start))
                    })
                    .collect()
            }
            Opcode::Bitcast => {
                let (to, from) = (constants(ir, &shape.dims), constants(ir, source.dims()));
                let position = linear(ir, &dims, &to, &shape.minor_to_major());
                delinearize(ir, position, &from, &source.shape.minor_to_major())
            }
            // Reshape: the same position in row-major order.
            _ => {
                let (to, from) = (constants(ir, &shape.dims), constants(ir, source.dims()));
                reshape_index(ir, &dims, &to, &from)
            }
        };
        self.gather_by_map(b, source, shape, index)
    }

    /// `concatenate`.
    pub(super) fn concatenate(
        &self,
        b: &Builder<'c>,
        instruction: &Instruction,
        sources: &[&Array<'c>],
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let dim = instruction.dimensions().first().copied().unwrap_or(0) as usize;
        let mut offset = 0;
        let is_empty = |source: &&&Array| source.shape.num_elements() == Some(0);
        let sources: Vec<_> = sources.iter().filter(|source| !is_empty(source)).collect();
        if MAX_INSERTIONS < sources.len() {
            let result = Memory::allocate(b, shape);
            for source in sources {
                result.insert(b, &Memory::of(b, source), &|b, index| {
                    let mut index = index.to_vec();
                    index[dim] = b.add_index(index[dim], b.index(offset));
                    index
                })?;
                offset += source.dims()[dim];
            }
            return Ok(result.array(b));
        }
        let mut result = empty_array(b, shape);
        for source in sources {
            let index = |_: &[Expr]| {
                let mut index = identity(self.ir, shape.rank());
                index[dim] = self.ir.add(index[dim], self.ir.constant(offset));
                index
            };
            result = self.insert_by_map(b, source, result, &[], &index)?;
            offset += source.dims()[dim];
        }
        Ok(result)
    }

    /// `pad`: what is cut off by negative padding is not written.
    pub(super) fn pad(
        &self,
        b: &Builder<'c>,
        instruction: &Instruction,
        source: &Array<'c>,
        value: &Array<'c>,
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let ir = self.ir;
        let filled = self.fill(b, shape, value)?;
        // In each dimension, the elements from `first` on, `count` of them, land inside.
        let mut kept = source.shape.clone();
        let (mut from, mut to) = (Vec::new(), Vec::new());
        for (dim, padding) in instruction.padding().iter().enumerate() {
            let step = padding.interior + 1;
            let (extent, have) = (shape.dims[dim], source.dims()[dim]);
            let first = if padding.low < 0 { (-padding.low + step - 1) / step } else { 0 };
            let last = (extent - 1 - padding.low).div_euclid(step).min(have - 1);
            kept.dims[dim] = (last - first + 1).max(0);
            let at = ir.dim(dim as u32);
            from.push(ir.add(at, ir.constant(first)));
            let scaled = ir.mul(at, ir.constant(step));
            to.push(ir.add(scaled, ir.constant(first * step + padding.low)));
        }
        if kept.num_elements() == Some(0) {
            return Ok(filled);
        }
        let parts = source.parts.iter().zip(&filled.parts).map(|(part, init)| {
            let mut nest = Nest::new(ir, &kept.dims);
            nest.read(*part, from.clone());
            nest.write(*init, to.clone(), Combiner::ASSIGN);
            Ok(nest.build(b, |_, values| Ok(values.to_vec()))?[0])
        });
        let parts = parts.collect::<Result<_, String>>()?;
        Ok(Array { parts, shape: shape.clone() })
    }

    /// `iota`.
    pub(super) fn iota(
        &self,
        b: &Builder<'c>,
        instruction: &Instruction,
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let dim = instruction.integer(tc_dialects::hlo::Attribute::IotaDimension).unwrap_or(0);
        self.generate(b, shape, &|b, index| {
            let wide = b.value("arith.index_cast", &[index[dim as usize]], b.int_type(64));
            let from = tc_dialects::hlo::ElementType::S64;
            Ok(scalar::convert(b, from, shape.element_type, &[wide]))
        })
    }
}

/// Extents as expressions.
fn constants(ir: &Context, dims: &[i64]) -> Vec<Expr> {
    dims.iter().map(|extent| ir.constant(*extent)).collect()
}

/// The position of an index in an array whose dimensions vary in this order, the fastest first.
fn linear(ir: &Context, index: &[Expr], dims: &[Expr], order: &[i64]) -> Expr {
    let (mut position, mut stride) = (ir.constant(0), ir.constant(1));
    for dim in order {
        let dim = *dim as usize;
        position = ir.add(position, ir.mul(index[dim], stride));
        stride = ir.mul(stride, dims[dim]);
    }
    position
}

/// The position of an index in an array in row-major order.
pub(super) fn row_major(ir: &Context, index: &[Expr], dims: &[i64]) -> Expr {
    linear(ir, index, &constants(ir, dims), &row_major_order(dims.len()))
}

fn row_major_order(rank: usize) -> Vec<i64> {
    (0..rank as i64).rev().collect()
}

/// The index of a position; see [`linear`].
fn delinearize(ir: &Context, position: Expr, dims: &[Expr], order: &[i64]) -> Vec<Expr> {
    let mut index = vec![ir.constant(0); dims.len()];
    let mut rest = position;
    for (place, dim) in order.iter().enumerate() {
        let extent = dims[*dim as usize];
        // An array without elements has no positions.
        let extent = if ir.as_constant(extent) == Some(0) { ir.constant(1) } else { extent };
        let is_last = place + 1 == order.len();
        index[*dim as usize] = if is_last { rest } else { ir.modulo(rest, extent) };
        rest = ir.floor_div(rest, extent);
    }
    index
}

/// Where the element at `index` of an array of `to` stands in one of `from`, both row-major.
pub(in crate::convert) fn reshape_index(
    ir: &Context,
    index: &[Expr],
    to: &[Expr],
    from: &[Expr],
) -> Vec<Expr> {
    let position = linear(ir, index, to, &row_major_order(to.len()));
    delinearize(ir, position, from, &row_major_order(from.len()))
}
