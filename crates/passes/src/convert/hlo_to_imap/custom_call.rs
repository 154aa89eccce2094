//! Custom calls: those that XLA itself replaces, and the LAPACK functions by which JAX lowers linear
//! algebra for CPUs.
//!
//! | function | becomes |
//! |---|---|
//! | `Sharding` and the like | the operand |
//! | `TopK` | a sort of each row |
//! | `lapack_*potrf_ffi` | `cholesky`, with the other triangle of the operand |
//! | `lapack_*trsm_ffi` | `triangular-solve` |
//! | `lapack_*getrf_ffi`, `LuDecomposition` | Gaussian elimination |
//! | `lapack_*gtsv_ffi` | elimination in tridiagonal matrices |
//!
//! `*` is `s`, `d`, `c` or `z`, for `f32`, `f64`, `c64` and `c128`. Matrices are in the last two
//! dimensions. LAPACK stores them by columns; layouts do not change values and are ignored.

use super::{Lowering, linear_algebra::TriangularForm, value::Array};
use crate::convert::{elements::scalar, subscripts::identity};
use tc_dialects::{
    element::ElementType,
    hlo::{ArrayShape, Attribute, Instruction, Opcode, Transposition},
    imap,
    mlir::Builder,
};

/// How JAX prints a module without calls of LAPACK.
const PRINT_OPERATIONS: &str =
    "jax.jit(f).trace(x).lower(lowering_platforms=(\"tpu\",)).as_text(dialect=\"hlo\")";

/// The functions that a module without calls of LAPACK may still call.
const TPU_FUNCTIONS: [&str; 3] = ["Eigh", "ProductOfElementaryHouseholderReflectors", "Qr"];

/// A custom call whose operands are arrays.
struct Call<'a, 'c> {
    target: &'a str,
    instruction: &'a Instruction,
    operands: &'a [&'a Array<'c>],
    results: &'a [&'a ArrayShape],
}

impl<'c> Lowering<'c, '_> {
    /// A custom call.
    pub(super) fn custom_call(
        &self,
        b: &Builder<'c>,
        instruction: &Instruction,
        operands: &[&Array<'c>],
        results: &[&ArrayShape],
    ) -> Result<Vec<Array<'c>>, String> {
        let target = instruction.string(Attribute::CustomCallTarget).unwrap_or_default();
        let call = Call { target: &target, instruction, operands, results };
        match (&*target, operands) {
            (
                "Sharding"
                | "SPMDFullToShardShape"
                | "SPMDShardToFullShape"
                | "xla.sdy.FuncResultSharding"
                | "xla.sdy.GlobalToLocalShape"
                | "xla.sdy.LocalToGlobalShape",
                [operand],
            ) => return Ok(vec![(*operand).clone()]),
            ("TopK", [operand]) => return self.custom_top_k(b, instruction, operand, results),
            ("LuDecomposition", _) => return self.lu_decomposition(b, &call),
            _ => {}
        }
        let Some((element, function)) = lapack_function(&target) else {
            return Err(call.unsupported());
        };
        match function {
            "potrf" => self.potrf(b, &call, element),
            "trsm" => self.trsm(b, &call, element),
            "getrf" => self.getrf(b, &call, element),
            "gtsv" => self.gtsv(b, &call, element),
            _ => Err(call.unsupported()),
        }
    }

    /// Cholesky's factor in one triangle, the operand in the other one, and the order of the first
    /// leading minor that is not positive.
    fn potrf(
        &self,
        b: &Builder<'c>,
        call: &Call<'_, 'c>,
        element: ElementType,
    ) -> Result<Vec<Array<'c>>, String> {
        let (batch, [rows, _]) = call.matrix(0, element)?;
        let shape = matrix_shape(element, batch, [rows, rows]);
        call.expect(&[&shape], &[&shape, &info_shape(batch)])?;
        let is_lower = call.choice("uplo", [b'L', b'U'])? == b'L';
        let factor = self.cholesky(b, is_lower, call.operands[0], &shape)?;
        let info = self.first_minor_not_positive(b, &factor)?;
        let row = shape.rank() as u32 - 2;
        let index = identity(self.ir, shape.rank());
        let sources = [(&factor, index.clone()), (call.operands[0], index)];
        let result = self.compute(b, &shape, &sources, &|b, scalars| {
            let [row, column] = [row, row + 1].map(|dim| imap::build_index(b, "dim", dim));
            let (small, large) = if is_lower { (column, row) } else { (row, column) };
            let is_inside = b.compare_int("sle", small, large);
            let parts = scalars[0].iter().zip(&scalars[1]);
            Ok(parts.map(|(inside, outside)| b.select(is_inside, *inside, *outside)).collect())
        })?;
        Ok(vec![result, info])
    }

    /// A triangular system. Some versions of JAX pass a scalar by which the right side is multiplied.
    fn trsm(
        &self,
        b: &Builder<'c>,
        call: &Call<'_, 'c>,
        element: ElementType,
    ) -> Result<Vec<Array<'c>>, String> {
        let (batch, [rows, columns]) = call.matrix(1, element)?;
        let is_left = call.choice("side", [b'L', b'R'])? == b'L';
        let order = if is_left { rows } else { columns };
        let triangles = matrix_shape(element, batch, [order, order]);
        let shape = matrix_shape(element, batch, [rows, columns]);
        let factor = ArrayShape::new(element, []);
        let operands = [&triangles, &shape, &factor];
        call.expect(&operands[..call.operands.len().clamp(2, 3)], &[&shape])?;
        let form = TriangularForm {
            is_left,
            is_lower: call.choice("uplo", [b'L', b'U'])? == b'L',
            has_unit_diagonal: call.choice("diag", [b'N', b'U'])? == b'U',
            transposition: match call.choice("trans_x", [b'N', b'T', b'C'])? {
                b'T' => Transposition::Transpose,
                b'C' => Transposition::Adjoint,
                _ => Transposition::None,
            },
        };
        let mut right = call.operands[1].clone();
        if let Some(factor) = call.operands.get(2) {
            let sources = [(*factor, Vec::new()), (&right, identity(self.ir, shape.rank()))];
            right = self.compute(b, &shape, &sources, &|b, scalars| {
                scalar::arithmetic(b, Opcode::Multiply, element, scalars)
            })?;
        }
        Ok(vec![self.triangular_solve(b, form, call.operands[0], &right, &shape)?])
    }

    /// The factors of `P A = L U`, the pivots counted from 1, and the first pivot that is zero.
    fn getrf(
        &self,
        b: &Builder<'c>,
        call: &Call<'_, 'c>,
        element: ElementType,
    ) -> Result<Vec<Array<'c>>, String> {
        let (batch, [rows, columns]) = call.matrix(0, element)?;
        let shape = matrix_shape(element, batch, [rows, columns]);
        let pivots = vector_shape(ElementType::S32, batch, rows.min(columns));
        call.expect(&[&shape], &[&shape, &pivots, &info_shape(batch)])?;
        let lu = self.lu(b, call.operands[0], 1)?;
        Ok(vec![lu.factors, lu.pivots, lu.info])
    }

    /// The factors of `P A = L U`, the pivots counted from 0, and `P` as the order of rows.
    ///
    /// Source: OpenXLA, `LuDecompositionExpander`.
    fn lu_decomposition(
        &self,
        b: &Builder<'c>,
        call: &Call<'_, 'c>,
    ) -> Result<Vec<Array<'c>>, String> {
        let element = call.operands.first().map_or(ElementType::F32, |operand| operand.element());
        if !matches!(
            element,
            ElementType::F32 | ElementType::F64 | ElementType::C64 | ElementType::C128
        ) {
            return Err(format!("'{}' of '{element}' is not supported", call.target));
        }
        let (batch, [rows, columns]) = call.matrix(0, element)?;
        let shape = matrix_shape(element, batch, [rows, columns]);
        let pivots = vector_shape(ElementType::S32, batch, rows.min(columns));
        let order = vector_shape(ElementType::S32, batch, rows);
        call.expect(&[&shape], &[&shape, &pivots, &order])?;
        let lu = self.lu(b, call.operands[0], 0)?;
        let order = self.permutation_of_pivots(b, &lu.pivots, rows)?;
        Ok(vec![lu.factors, lu.pivots, order])
    }

    /// The three diagonals of `U`, the solutions of tridiagonal systems, and the first pivot that is
    /// zero.
    fn gtsv(
        &self,
        b: &Builder<'c>,
        call: &Call<'_, 'c>,
        element: ElementType,
    ) -> Result<Vec<Array<'c>>, String> {
        let (batch, [rows, columns]) = call.matrix(3, element)?;
        let diagonal = vector_shape(element, batch, rows);
        let shape = matrix_shape(element, batch, [rows, columns]);
        let arrays = [&diagonal, &diagonal, &diagonal, &shape];
        let info = info_shape(batch);
        call.expect(&arrays, &[&arrays[..], &[&info]].concat())?;
        let [lower, diagonal, upper, right] = call.operands[..] else {
            return Err(call.unsupported());
        };
        self.tridiagonal_solve(b, [lower, diagonal, upper], right)
    }
}

impl<'c> Call<'_, 'c> {
    /// The batch dimensions of an operand, and the sizes of its matrices.
    fn matrix(&self, number: usize, element: ElementType) -> Result<(&[i64], [i64; 2]), String> {
        let dims = self.operands.get(number).map(|operand| operand.dims());
        match dims.and_then(|dims| dims.split_last_chunk::<2>()) {
            Some((batch, sizes)) => Ok((batch, *sizes)),
            None => Err(format!(
                "expected matrices of '{element}' as operand {number} of '{}', found {}",
                self.target,
                self.operands.get(number).map_or("none".to_string(), |it| it.shape.to_string())
            )),
        }
    }

    /// Checks the shapes of all operands and results.
    fn expect(&self, operands: &[&ArrayShape], results: &[&ArrayShape]) -> Result<(), String> {
        let given: Vec<_> = self.operands.iter().map(|operand| &operand.shape).collect();
        let is_compatible = |given: &[&ArrayShape], expected: &[&ArrayShape]| {
            given.len() == expected.len()
                && given.iter().zip(expected).all(|(x, y)| x.is_compatible(y))
        };
        if is_compatible(&given, operands) && is_compatible(self.results, results) {
            return Ok(());
        }
        let list = |shapes: &[&ArrayShape]| {
            let texts: Vec<_> = shapes.iter().map(|shape| text_of(shape)).collect();
            texts.join(", ")
        };
        Err(format!(
            "expected '{}' to take ({}) and to return ({}), found ({}) and ({})",
            self.target,
            list(operands),
            list(results),
            list(&given),
            list(self.results)
        ))
    }

    /// A character in `backend_config`, such as `{uplo = 76 : ui8}`.
    fn choice<const N: usize>(&self, name: &str, choices: [u8; N]) -> Result<u8, String> {
        let config = self.instruction.string(Attribute::BackendConfig).unwrap_or_default();
        let entries = config.trim().trim_start_matches('{').trim_end_matches('}').split(',');
        let value = entries.filter_map(|entry| entry.split_once('=')).find_map(|(key, value)| {
            let number = value.split(':').next().unwrap_or_default();
            (key.trim() == name).then(|| number.trim())
        });
        let found = value.and_then(|value| value.parse().ok());
        if let Some(found) = found.filter(|found| choices.contains(found)) {
            return Ok(found);
        }
        let expected: Vec<_> =
            choices.iter().map(|choice| format!("{choice} ('{}')", char::from(*choice))).collect();
        let (found, advice) = match value {
            Some(value) => (format!("'{value}'"), ""),
            None => ("none".to_string(), "; JAX prints it with 'lower(x).compile().as_text()'"),
        };
        Err(format!(
            "expected '{name}' in 'backend_config' of '{}' to be {}, found {found}{advice}",
            self.target,
            expected.join(" or ")
        ))
    }

    fn unsupported(&self) -> String {
        let advice = if self.target.contains("callback") {
            "; a compiled program cannot call Python, remove the callback from it".to_string()
        } else if TPU_FUNCTIONS.contains(&self.target) {
            String::new()
        } else {
            format!(
                "; '{PRINT_OPERATIONS}' prints operations instead of library calls, except those of \
                 'Qr' and 'Eigh'"
            )
        };
        format!("the custom call of '{}' is not supported{advice}", self.target)
    }
}

/// The element type and the name of a function of LAPACK.
fn lapack_function(target: &str) -> Option<(ElementType, &str)> {
    let name = target.strip_prefix("lapack_")?.strip_suffix("_ffi")?;
    let element = match name.chars().next()? {
        's' => ElementType::F32,
        'd' => ElementType::F64,
        'c' => ElementType::C64,
        'z' => ElementType::C128,
        _ => return None,
    };
    Some((element, &name[1..]))
}

fn matrix_shape(element: ElementType, batch: &[i64], sizes: [i64; 2]) -> ArrayShape {
    ArrayShape::new(element, [batch, &sizes].concat())
}

fn vector_shape(element: ElementType, batch: &[i64], size: i64) -> ArrayShape {
    ArrayShape::new(element, [batch, &[size]].concat())
}

/// One `info` per matrix.
fn info_shape(batch: &[i64]) -> ArrayShape {
    ArrayShape::new(ElementType::S32, batch)
}

/// A shape without its layout.
fn text_of(shape: &ArrayShape) -> String {
    ArrayShape::new(shape.element_type, shape.dims.as_slice()).to_string()
}
