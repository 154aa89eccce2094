//! Triangular and tridiagonal systems, and the factorizations of Cholesky and Gauss, by rows; each
//! matrix of a batch on its own.
//!
//! Source: G. Golub and C. Van Loan, "Matrix Computations", sections 3.1, 3.4 and 4.2. Types less
//! exact than `f32` are calculated in it and rounded once, at the end.

use super::{
    Lowering,
    memory::{Memory, each, fold, for_each, in_order},
    value::Array,
};
use crate::convert::{
    elements::{Scalar, complex, compute_type, scalar, sum_type},
    index_emitter::IndexMath,
    subscripts::identity,
};
use melior::ir::ValueLike;
use tc_dialects::{
    element::ElementType,
    hlo::{ArrayShape, Attribute, Instruction, Opcode, Transposition, Value as AttributeValue},
    imap,
    mlir::{Builder, Val},
};
use tc_ir::expr::ceil_div;

/// The attributes of `triangular-solve`.
#[derive(Clone, Copy)]
pub(super) struct TriangularForm {
    pub(super) is_left: bool,
    pub(super) is_lower: bool,
    pub(super) has_unit_diagonal: bool,
    pub(super) transposition: Transposition,
}

impl TriangularForm {
    pub(super) fn of(instruction: &Instruction) -> Self {
        let transposition = match instruction.attribute(Attribute::TransposeA) {
            Some(AttributeValue::Transposition(transposition)) => *transposition,
            _ => Transposition::None,
        };
        Self {
            is_left: instruction.flag(Attribute::LeftSide),
            is_lower: instruction.flag(Attribute::Lower),
            has_unit_diagonal: instruction.flag(Attribute::UnitDiagonal),
            transposition,
        }
    }
}

/// How many rows of a triangular system are solved before the others are updated.
const PANEL: i64 = 32;
/// How many rows are searched for a pivot one after the other.
const SEARCHED: i64 = 64;

/// A factorization by Gaussian elimination with row exchanges.
pub(super) struct LuFactorization<'c> {
    /// `U`, and below its diagonal `L` without its diagonal of ones.
    pub(super) factors: Array<'c>,
    /// For each step the row that is exchanged with the row of that step; a base is added.
    pub(super) pivots: Array<'c>,
    /// The first step, counted from 1, whose pivot is zero; otherwise 0.
    pub(super) info: Array<'c>,
}

impl<'c> Lowering<'c, '_> {
    /// The `X` with `op(A) X = B`, or `X op(A) = B`.
    pub(super) fn triangular_solve(
        &self,
        b: &Builder<'c>,
        form: TriangularForm,
        matrices: &Array<'c>,
        right: &Array<'c>,
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let element = sum_type(shape.element_type);
        let TriangularForm { is_left, is_lower, has_unit_diagonal, transposition } = form;
        let mut is_transposed = transposition != Transposition::None;
        let is_conjugate = transposition == Transposition::Adjoint;
        let matrices = self.converted(b, matrices, element)?;
        let mut right = self.converted(b, right, element)?;
        // `X op(A) = B` is the same as `op(A)^T X^T = B^T`.
        if !is_left {
            right = self.transposed(b, &right, false)?;
            is_transposed = !is_transposed;
        }
        let is_forward = is_lower != is_transposed;
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
            // Solves for a row, from what the rows before it left.
            let divide = |b: &Builder<'c>, row: Val<'c>| {
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
            };
            // Subtracts what a solved row contributes to another one.
            let subtract = |b: &Builder<'c>, solved: Val<'c>, row: Val<'c>| {
                let factor = load(b, row, solved);
                for_each(b, &[columns], &mut |b, column| {
                    let place = [batch, &[row, column[0]]].concat();
                    let other = x.load(b, &[batch, &[solved, column[0]]].concat());
                    let value = subtract_product(b, &x.load(b, &place), &factor, &other);
                    x.store(b, &place, &value);
                    Ok(())
                })
            };
            in_order(b, b.index(ceil_div(extent, PANEL)), &mut |b, panel| {
                let first = b.scale_index(panel, PANEL);
                let end = b.add_index(first, b.index(PANEL));
                let end = b.value("arith.minsi", &[end, b.index(extent)], b.index_type());
                let size = b.sub_index(end, first);
                in_order(b, size, &mut |b, step| {
                    let step = b.add_index(first, step);
                    let solved = row_of(b, step);
                    divide(b, solved)?;
                    let next = b.add_index(step, b.index(1));
                    each(b, b.sub_index(end, next), &mut |b, distance| {
                        subtract(b, solved, row_of(b, b.add_index(next, distance)))
                    })
                })?;
                each(b, b.sub_index(b.index(extent), end), &mut |b, distance| {
                    let row = row_of(b, b.add_index(end, distance));
                    in_order(b, size, &mut |b, step| {
                        subtract(b, row_of(b, b.add_index(first, step)), row)
                    })
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
        is_lower: bool,
        matrices: &Array<'c>,
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let element = sum_type(shape.element_type);
        let mut matrices = self.converted(b, matrices, element)?;
        if !is_lower {
            matrices = self.transposed(b, &matrices, true)?;
        }
        let (batch, extent) = split_dims(&matrices);
        let rank = matrices.shape.rank();
        let triangle = [(&matrices, identity(self.ir, rank))];
        let triangle = self.compute(b, &matrices.shape, &triangle, &|b, scalars| {
            let [row, column] =
                [rank - 2, rank - 1].map(|dim| imap::build_index(b, "dim", dim as u32));
            let is_above = b.compare_int("slt", row, column);
            Ok(select(b, is_above, &zeros(b, &scalars[0]), &scalars[0]))
        })?;
        let factor = Memory::copy_of(b, &triangle);
        for_each(b, &batch, &mut |b, batch| {
            let place = |row: Val<'c>, column: Val<'c>| [batch, &[row, column]].concat();
            // The conjugate of a column, without gaps.
            let conjugates = Memory::scratch(b, &ArrayShape::new(element, vec![extent]));
            in_order(b, b.index(extent), &mut |b, step| {
                // The diagonal is real.
                let mut pivot = factor.load(b, &place(step, step));
                let ty = pivot[0].r#type();
                pivot[0] = b.value("math.sqrt", &[pivot[0]], ty);
                pivot[1..].fill(b.float(ty, 0.0));
                factor.store(b, &place(step, step), &pivot);
                let next = b.add_index(step, b.index(1));
                let below = b.sub_index(b.index(extent), next);
                each(b, below, &mut |b, distance| {
                    let row = b.add_index(next, distance);
                    let divide = |x: &Val<'c>| b.value("arith.divf", &[*x, pivot[0]], x.r#type());
                    let value = factor.load(b, &place(row, step));
                    let value: Scalar<'c> = value.iter().map(divide).collect();
                    factor.store(b, &place(row, step), &value);
                    conjugates.store(b, &[row], &conjugate(b, &value));
                    Ok(())
                })?;
                // Subtracts what the column contributes to those right of it.
                each(b, below, &mut |b, distance| {
                    let row = b.add_index(next, distance);
                    let x = factor.load(b, &place(row, step));
                    each(b, b.add_index(distance, b.index(1)), &mut |b, distance| {
                        let column = b.add_index(next, distance);
                        let value = factor.load(b, &place(row, column));
                        let value = subtract_product(b, &value, &x, &conjugates.load(b, &[column]));
                        factor.store(b, &place(row, column), &value);
                        Ok(())
                    })
                })
            })
        })?;
        let mut result = factor.array(b);
        if !is_lower {
            result = self.transposed(b, &result, true)?;
        }
        self.converted(b, &result, shape.element_type)
    }

    /// The orders of the first leading minors that are not positive, from Cholesky's factors of their
    /// matrices; otherwise 0.
    pub(super) fn first_minor_not_positive(
        &self,
        b: &Builder<'c>,
        factors: &Array<'c>,
    ) -> Result<Array<'c>, String> {
        let (batch, extent) = split_dims(factors);
        let factor = Memory::of(b, factors);
        let info = Memory::allocate(b, &ArrayShape::new(ElementType::S32, batch.clone()));
        for_each(b, &batch, &mut |b, batch| {
            let found = fold(b, b.index(extent), &[no_failure(b)], &mut |b, row, found| {
                let pivot = factor.load(b, &[batch, &[row, row]].concat())[0];
                let is_positive = b.compare_float("ogt", pivot, b.float(pivot.r#type(), 0.0));
                Ok(vec![first_failure(b, found[0], scalar::not(b, is_positive), row)])
            })?;
            info.store(b, batch, &found);
            Ok(())
        })?;
        Ok(info.array(b))
    }

    /// Gaussian elimination. Step `k` exchanges row `k` with the row at or below it that has the
    /// largest element in column `k`; the size of complex numbers is the sum of the sizes of their
    /// parts, as in LAPACK. A column of zeros is left as it is.
    pub(super) fn lu(
        &self,
        b: &Builder<'c>,
        matrices: &Array<'c>,
        pivot_base: i64,
    ) -> Result<LuFactorization<'c>, String> {
        let element = matrices.element();
        let (batch, columns) = split_dims(matrices);
        let rows = matrices.dims()[batch.len()];
        let steps = rows.min(columns);
        let a = Memory::copy_of(b, matrices);
        let integers =
            |dims: Vec<i64>| Memory::allocate(b, &ArrayShape::new(ElementType::S32, dims));
        let (pivots, info) = (integers([&batch[..], &[steps]].concat()), integers(batch.clone()));
        // The rows are searched in parts, whose results are in memory.
        let parts = ceil_div(rows, SEARCHED).max(1);
        for_each(b, &batch, &mut |b, batch| {
            let sizes = Memory::scratch(b, &ArrayShape::new(element.part(), vec![parts]));
            let places = Memory::scratch(b, &ArrayShape::new(ElementType::S32, vec![parts]));
            let place = |row: Val<'c>, column: Val<'c>| [batch, &[row, column]].concat();
            let failed = fold(b, b.index(steps), &[no_failure(b)], &mut |b, step, failed| {
                let none = [b.float(compute_type(b, element), -1.0), step];
                let larger = |b: &Builder<'c>, size: Val<'c>, row: Val<'c>, found: &[Val<'c>]| {
                    let is_larger = b.compare_float("ogt", size, found[0]);
                    select(b, is_larger, &[size, row], found)
                };
                let search = |b: &Builder<'c>, first: Val<'c>, end: Val<'c>| {
                    fold(b, b.sub_index(end, first), &none, &mut |b, distance, found| {
                        let row = b.add_index(first, distance);
                        Ok(larger(b, size_of(b, &a.load(b, &place(row, step))), row, found))
                    })
                };
                let found = if parts == 1 {
                    search(b, step, b.index(rows))?[1]
                } else {
                    for_each(b, &[parts], &mut |b, part| {
                        let first = b.scale_index(part[0], SEARCHED);
                        let end = b.add_index(first, b.index(SEARCHED));
                        let end = b.value("arith.minsi", &[end, b.index(rows)], b.index_type());
                        let first = b.value("arith.maxsi", &[first, step], b.index_type());
                        let found = search(b, first, end)?;
                        sizes.store(b, part, &found[..1]);
                        places.store(b, part, &[as_s32(b, found[1], 0)]);
                        Ok(())
                    })?;
                    fold(b, b.index(parts), &none, &mut |b, part, found| {
                        let row = places.load(b, &[part])[0];
                        let row = b.value("arith.index_cast", &[row], b.index_type());
                        Ok(larger(b, sizes.load(b, &[part])[0], row, found))
                    })?[1]
                };
                pivots.store(b, &[batch, &[step]].concat(), &[as_s32(b, found, pivot_base)]);
                for_each(b, &[columns], &mut |b, column| {
                    let (top, bottom) = (place(step, column[0]), place(found, column[0]));
                    let (x, y) = (a.load(b, &top), a.load(b, &bottom));
                    a.store(b, &top, &y);
                    a.store(b, &bottom, &x);
                    Ok(())
                })?;
                let pivot = a.load(b, &place(step, step));
                let is_zero = equals_zero(b, &pivot);
                let next = b.add_index(step, b.index(1));
                let rest = |b: &Builder<'c>, extent: i64| b.sub_index(b.index(extent), next);
                each(b, rest(b, rows), &mut |b, distance| {
                    let row = b.add_index(next, distance);
                    let dividend = a.load(b, &place(row, step));
                    let operands = [dividend.clone(), pivot.clone()];
                    let quotient = scalar::arithmetic(b, Opcode::Divide, element, &operands)?;
                    let factor = select(b, is_zero, &dividend, &quotient);
                    a.store(b, &place(row, step), &factor);
                    each(b, rest(b, columns), &mut |b, distance| {
                        let column = b.add_index(next, distance);
                        let (x, y) = (place(row, column), place(step, column));
                        let value = subtract_product(b, &a.load(b, &x), &factor, &a.load(b, &y));
                        a.store(b, &x, &value);
                        Ok(())
                    })
                })?;
                Ok(vec![first_failure(b, failed[0], is_zero, step)])
            })?;
            info.store(b, batch, &failed);
            Ok(())
        })?;
        Ok(LuFactorization { factors: a.array(b), pivots: pivots.array(b), info: info.array(b) })
    }

    /// The orders of rows after exchanges of row `k` with the row that `pivots` has at `k`.
    pub(super) fn permutation_of_pivots(
        &self,
        b: &Builder<'c>,
        pivots: &Array<'c>,
        rows: i64,
    ) -> Result<Array<'c>, String> {
        let (steps, batch) = pivots.dims().split_last().ok_or("pivots without a dimension")?;
        let shape = ArrayShape::new(ElementType::S32, [batch, &[rows]].concat());
        let order = Memory::allocate(b, &shape);
        let pivots = Memory::of(b, pivots);
        for_each(b, batch, &mut |b, batch| {
            let place = |row: Val<'c>| [batch, &[row]].concat();
            for_each(b, &[rows], &mut |b, row| {
                order.store(b, &place(row[0]), &[as_s32(b, row[0], 0)]);
                Ok(())
            })?;
            in_order(b, b.index(*steps), &mut |b, step| {
                let pivot = pivots.load(b, &place(step))[0];
                let pivot = b.value("arith.index_cast", &[pivot], b.index_type());
                let (x, y) = (order.load(b, &place(step)), order.load(b, &place(pivot)));
                order.store(b, &place(step), &y);
                order.store(b, &place(pivot), &x);
                Ok(())
            })
        })?;
        Ok(order.array(b))
    }

    /// Solves tridiagonal systems by elimination with exchanges of neighbouring rows. Row `i` of a
    /// matrix has `lower[i]`, `diagonal[i]` and `upper[i]`; `lower[0]` and the last of `upper` are not
    /// read. The results: the second diagonal above that of `U`, from its element 1 on, the diagonal of
    /// `U`, the first one above it, the solutions, and the first step, counted from 1, whose pivot
    /// is zero, or 0.
    ///
    /// Source: LAPACK, `SGTSV`.
    pub(super) fn tridiagonal_solve(
        &self,
        b: &Builder<'c>,
        [lower, diagonal, upper]: [&Array<'c>; 3],
        right: &Array<'c>,
    ) -> Result<Vec<Array<'c>>, String> {
        let element = right.element();
        let (batch, columns) = split_dims(right);
        let extent = right.dims()[batch.len()];
        let [lower, diagonal, upper, x] =
            [lower, diagonal, upper, right].map(|array| Memory::copy_of(b, array));
        let info = Memory::allocate(b, &ArrayShape::new(ElementType::S32, batch.clone()));
        let divide = |b: &Builder<'c>, x: Scalar<'c>, y: &Scalar<'c>| {
            scalar::arithmetic(b, Opcode::Divide, element, &[x, y.clone()])
        };
        for_each(b, &batch, &mut |b, batch| {
            let at = |row: Val<'c>| [batch, &[row]].concat();
            let in_column = |row: Val<'c>, column: Val<'c>| [batch, &[row, column]].concat();
            // Makes `lower` of the next row zero; returns whether the pivot is zero.
            let eliminate = |b: &Builder<'c>, row: Val<'c>, is_last: bool| {
                let next = b.add_index(row, b.index(1));
                let (pivot, below) = (diagonal.load(b, &at(row)), lower.load(b, &at(next)));
                let exchanges = b.compare_float("ult", size_of(b, &pivot), size_of(b, &below));
                // The upper and the lower one of two elements after the exchange.
                let ordered = |b: &Builder<'c>, x: &[Val<'c>], y: &[Val<'c>]| {
                    (select(b, exchanges, y, x), select(b, exchanges, x, y))
                };
                let (first, second) = ordered(b, &pivot, &below);
                let is_zero = equals_zero(b, &first);
                let factor = divide(b, second, &first)?;
                diagonal.store(b, &at(row), &first);
                let above = upper.load(b, &at(row));
                let (first, second) = ordered(b, &above, &diagonal.load(b, &at(next)));
                upper.store(b, &at(row), &first);
                let rest = subtract_product(b, &second, &factor, &first);
                diagonal.store(b, &at(next), &rest);
                if !is_last {
                    let above = upper.load(b, &at(next));
                    let zero = zeros(b, &above);
                    let (first, second) = ordered(b, &zero, &above);
                    lower.store(b, &at(next), &first);
                    let rest = subtract_product(b, &second, &factor, &first);
                    upper.store(b, &at(next), &rest);
                }
                for_each(b, &[columns], &mut |b, column| {
                    let (row, next) = (in_column(row, column[0]), in_column(next, column[0]));
                    let (first, second) = ordered(b, &x.load(b, &row), &x.load(b, &next));
                    x.store(b, &row, &first);
                    x.store(b, &next, &subtract_product(b, &second, &factor, &first));
                    Ok(())
                })?;
                Ok::<_, String>(is_zero)
            };
            // Solves for a row, from the solutions of as many rows below it as count.
            let substitute = |b: &Builder<'c>, row: Val<'c>, num_below: i64| {
                let next = |distance: i64| b.add_index(row, b.index(distance));
                let pivot = diagonal.load(b, &at(row));
                let mut above = Vec::new();
                if 1 <= num_below {
                    above.push((upper.load(b, &at(row)), next(1)));
                }
                if 2 <= num_below {
                    above.push((lower.load(b, &at(next(1))), next(2)));
                }
                for_each(b, &[columns], &mut |b, column| {
                    let place = in_column(row, column[0]);
                    let mut value = x.load(b, &place);
                    for (factor, below) in &above {
                        let solved = x.load(b, &in_column(*below, column[0]));
                        value = subtract_product(b, &value, factor, &solved);
                    }
                    x.store(b, &place, &divide(b, value, &pivot)?);
                    Ok(())
                })
            };
            let mut failed = no_failure(b);
            if 0 < extent {
                let steps = b.index((extent - 2).max(0));
                failed = fold(b, steps, &[failed], &mut |b, row, failed| {
                    let is_zero = eliminate(b, row, false)?;
                    Ok(vec![first_failure(b, failed[0], is_zero, row)])
                })?[0];
                if 1 < extent {
                    let row = b.index(extent - 2);
                    let is_zero = eliminate(b, row, true)?;
                    failed = first_failure(b, failed, is_zero, row);
                }
                let last = b.index(extent - 1);
                let is_zero = equals_zero(b, &diagonal.load(b, &at(last)));
                failed = first_failure(b, failed, is_zero, last);
                substitute(b, last, 0)?;
                if 1 < extent {
                    substitute(b, b.index(extent - 2), 1)?;
                }
                in_order(b, steps, &mut |b, step| {
                    substitute(b, b.sub_index(b.index(extent - 3), step), 2)
                })?;
            }
            info.store(b, batch, &[failed]);
            Ok(())
        })?;
        Ok([lower, diagonal, upper, x, info].map(|memory| memory.array(b)).into())
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

/// The value of LAPACK's `info` before anything fails.
fn no_failure<'c>(b: &Builder<'c>) -> Val<'c> {
    b.integer(b.int_type(32), 0)
}

/// `info` after a step: the number of the first one that fails, counted from 1.
fn first_failure<'c>(b: &Builder<'c>, info: Val<'c>, fails: Val<'c>, step: Val<'c>) -> Val<'c> {
    let is_first = b.and(fails, b.compare_int("eq", info, no_failure(b)));
    b.select(is_first, as_s32(b, step, 1), info)
}

/// An index plus a base, as `s32`.
fn as_s32<'c>(b: &Builder<'c>, index: Val<'c>, base: i64) -> Val<'c> {
    let sum = b.add_index(index, b.index(base));
    b.value("arith.index_cast", &[sum], b.int_type(32))
}

/// The sum of the sizes of the parts.
fn size_of<'c>(b: &Builder<'c>, x: &[Val<'c>]) -> Val<'c> {
    let part = |x: &Val<'c>| b.value("math.absf", &[*x], x.r#type());
    x[1..].iter().fold(part(&x[0]), |sum, x| b.value("arith.addf", &[sum, part(x)], x.r#type()))
}

fn equals_zero<'c>(b: &Builder<'c>, x: &[Val<'c>]) -> Val<'c> {
    let size = size_of(b, x);
    b.compare_float("oeq", size, b.float(size.r#type(), 0.0))
}

fn zeros<'c>(b: &Builder<'c>, like: &[Val<'c>]) -> Scalar<'c> {
    like.iter().map(|x| b.float(x.r#type(), 0.0)).collect()
}

fn select<'c>(b: &Builder<'c>, condition: Val<'c>, yes: &[Val<'c>], no: &[Val<'c>]) -> Scalar<'c> {
    yes.iter().zip(no).map(|(yes, no)| b.select(condition, *yes, *no)).collect()
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
