//! `triangular-solve` and `cholesky`: substitution and Cholesky's factorization by rows, each matrix
//! of a batch on its own.
//!
//! Source: G. Golub and C. Van Loan, "Matrix Computations", sections 3.1 and 4.2. Types less exact
//! than `f32` are calculated in it and rounded once, at the end.

use super::{
    Lowering, complex,
    nest::{IndexMath, Memory, fold, for_each, identity},
    scalar,
    value::{Array, Scalar, compute_type, sum_type},
};
use melior::ir::ValueLike;
use tc_dialects::{
    hlo::{
        ArrayShape, Attribute, ElementType, Instruction, Opcode, Transposition,
        Value as AttributeValue,
    },
    mlir::{Builder, Val},
};

impl<'c> Lowering<'c, '_> {
    /// The `X` with `op(A) X = B`, or `X op(A) = B`.
    pub(super) fn triangular_solve(
        &self,
        b: &Builder<'c>,
        instruction: &Instruction,
        matrices: &Array<'c>,
        right: &Array<'c>,
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let element = sum_type(shape.element_type);
        let (mut is_transposed, is_conjugate) = match instruction.attribute(Attribute::TransposeA) {
            Some(AttributeValue::Transposition(Transposition::Transpose)) => (true, false),
            Some(AttributeValue::Transposition(Transposition::Adjoint)) => (true, true),
            _ => (false, false),
        };
        let matrices = self.converted(b, matrices, element)?;
        let mut right = self.converted(b, right, element)?;
        // `X op(A) = B` is the same as `op(A)^T X^T = B^T`.
        let is_left = instruction.flag(Attribute::LeftSide);
        if !is_left {
            right = self.transposed(b, &right, false)?;
            is_transposed = !is_transposed;
        }
        let is_forward = instruction.flag(Attribute::Lower) != is_transposed;
        let has_unit_diagonal = instruction.flag(Attribute::UnitDiagonal);
        let (batch, columns) = split_dims(&right);
        let extent = right.dims()[batch.len()];
        let (a, x) = (Memory::of(b, &matrices), Memory::copy_of(b, &right));
        for_each(b, &batch, &mut |b, batch| {
            let load = |b: &Builder<'c>, row: Val<'c>, column: Val<'c>| {
                let place = if is_transposed { [column, row] } else { [row, column] };
                let loaded = a.load(b, &[batch, &place].concat());
                if is_conjugate { conjugate(b, &loaded) } else { loaded }
            };
            let row_of = |b: &Builder<'c>, step: Val<'c>| {
                if is_forward { step } else { b.sub_index(b.index(extent - 1), step) }
            };
            for_each(b, &[extent], &mut |b, step| {
                let row = row_of(b, step[0]);
                // Subtracts what the rows solved before contribute.
                fold(b, step[0], &[], &mut |b, step, _| {
                    let solved = row_of(b, step);
                    let factor = load(b, row, solved);
                    for_each(b, &[columns], &mut |b, column| {
                        let place = [batch, &[row, column[0]]].concat();
                        let other = x.load(b, &[batch, &[solved, column[0]]].concat());
                        let value = subtract_product(b, &x.load(b, &place), &factor, &other);
                        x.store(b, &place, &value);
                        Ok(())
                    })?;
                    Ok(Vec::new())
                })?;
                if has_unit_diagonal {
                    return Ok(());
                }
                let pivot = load(b, row, row);
                for_each(b, &[columns], &mut |b, column| {
                    let place = [batch, &[row, column[0]]].concat();
                    let operands = [x.load(b, &place), pivot.clone()];
                    let value = scalar::arithmetic(b, Opcode::Divide, element, &operands)?;
                    x.store(b, &place, &value);
                    Ok(())
                })
            })
        })?;
        let mut solution = x.array(b);
        if !is_left {
            solution = self.transposed(b, &solution, false)?;
        }
        self.converted(b, &solution, shape.element_type)
    }

    /// The lower triangular `L` with `A = L L^H`, or the upper triangular `U` with `A = U^H U`, from
    /// the same triangle of `A`; the other one is 0. NaN where `A` is not positive definite.
    pub(super) fn cholesky(
        &self,
        b: &Builder<'c>,
        instruction: &Instruction,
        matrices: &Array<'c>,
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let element = sum_type(shape.element_type);
        let is_lower = instruction.flag(Attribute::Lower);
        let mut matrices = self.converted(b, matrices, element)?;
        if !is_lower {
            matrices = self.transposed(b, &matrices, true)?;
        }
        let (batch, extent) = split_dims(&matrices);
        let zeroes = self.generate(b, &matrices.shape, &|b, _| {
            Ok(vec![b.float(compute_type(b, element), 0.0); element.num_parts()])
        })?;
        let (a, factor) = (Memory::of(b, &matrices), Memory::copy_of(b, &zeroes));
        for_each(b, &batch, &mut |b, batch| {
            let place = |row: Val<'c>, column: Val<'c>| [batch, &[row, column]].concat();
            // An element of `A` without the contributions of the columns before.
            let remainder = |b: &Builder<'c>, row: Val<'c>, column: Val<'c>| {
                let first = a.load(b, &place(row, column));
                fold(b, column, &first, &mut |b, before, carried| {
                    let x = factor.load(b, &place(row, before));
                    let y = conjugate(b, &factor.load(b, &place(column, before)));
                    Ok(subtract_product(b, carried, &x, &y))
                })
            };
            for_each(b, &[extent], &mut |b, row| {
                let row = row[0];
                fold(b, row, &[], &mut |b, column, _| {
                    let value = remainder(b, row, column)?;
                    // The diagonal is real.
                    let pivot = factor.load(b, &place(column, column))[0];
                    let divide = |x: &Val<'c>| b.value("arith.divf", &[*x, pivot], x.r#type());
                    let value: Scalar<'c> = value.iter().map(divide).collect();
                    factor.store(b, &place(row, column), &value);
                    Ok(Vec::new())
                })?;
                let mut value = remainder(b, row, row)?;
                let ty = value[0].r#type();
                value[0] = b.value("math.sqrt", &[value[0]], ty);
                value[1..].fill(b.float(ty, 0.0));
                factor.store(b, &place(row, row), &value);
                Ok(())
            })
        })?;
        let mut result = factor.array(b);
        if !is_lower {
            result = self.transposed(b, &result, true)?;
        }
        self.converted(b, &result, shape.element_type)
    }

    /// The matrices in the last two dimensions transposed, and their elements conjugate if asked.
    fn transposed(
        &self,
        b: &Builder<'c>,
        source: &Array<'c>,
        is_conjugate: bool,
    ) -> Result<Array<'c>, String> {
        let rank = source.shape.rank();
        let mut dims = source.dims().to_vec();
        let mut index = identity(self.ir, rank);
        dims.swap(rank - 2, rank - 1);
        index.swap(rank - 2, rank - 1);
        let shape = ArrayShape::new(source.element(), dims);
        self.compute(b, &shape, &[(source, index)], &|b, scalars| {
            Ok(if is_conjugate { conjugate(b, &scalars[0]) } else { scalars[0].clone() })
        })
    }

    /// The same numbers in another type.
    pub(super) fn converted(
        &self,
        b: &Builder<'c>,
        source: &Array<'c>,
        element: ElementType,
    ) -> Result<Array<'c>, String> {
        let from = source.element();
        if from == element {
            return Ok(source.clone());
        }
        let shape = ArrayShape::new(element, source.dims());
        let sources = [(source, identity(self.ir, shape.rank()))];
        self.compute(b, &shape, &sources, &|b, scalars| {
            Ok(scalar::convert(b, from, element, &scalars[0]))
        })
    }
}

/// The batch dimensions, and the number of columns.
fn split_dims(matrices: &Array) -> (Vec<i64>, i64) {
    let dims = matrices.dims();
    (dims[..dims.len() - 2].to_vec(), dims[dims.len() - 1])
}

fn conjugate<'c>(b: &Builder<'c>, x: &[Val<'c>]) -> Scalar<'c> {
    let mut result = x.to_vec();
    for imaginary in &mut result[1..] {
        *imaginary = b.value("arith.negf", &[*imaginary], imaginary.r#type());
    }
    result
}

/// `x - y * z`.
fn subtract_product<'c>(
    b: &Builder<'c>,
    x: &[Val<'c>],
    y: &[Val<'c>],
    z: &[Val<'c>],
) -> Scalar<'c> {
    let product = match (y, z) {
        ([y], [z]) => vec![b.value("arith.mulf", &[*y, *z], y.r#type())],
        _ => complex::multiply(b, y, z),
    };
    let subtract = |(x, y): (&Val<'c>, Val<'c>)| b.value("arith.subf", &[*x, y], x.r#type());
    x.iter().zip(product).map(subtract).collect()
}
