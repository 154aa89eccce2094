//! How often an `scf.while` on tensors runs, by evaluation of its counter.

use super::extents::root;
use melior::ir::{TypeLike, ValueLike, operation::OperationLike};
use std::collections::HashMap;
use tc_dialects::{
    imap::{Generic, Indexed},
    mlir::{self, Blk, Op, Val},
};

/// The most iterations that are evaluated.
const MAX_TRIPS: i64 = 1 << 16;
/// How many operations may lie between a counter and the values carried by the loop.
const MAX_DEPTH: usize = 32;

/// How often the second region of an `scf.while` runs. `None` if that depends on data, or is more often
/// than the analysis evaluates.
pub(super) fn trips(op: Op) -> Option<i64> {
    let (before, after) = (mlir::body(op, 0)?, mlir::body(op, 1)?);
    let nothing = Known::default();
    let mut carried: Vec<_> =
        mlir::operands(op).into_iter().map(|init| nothing.value(init)).collect();
    let condition = mlir::terminator(before);
    let (test, passed) = (mlir::operand(condition, 0), &mlir::operands(condition)[1..]);
    let yielded = mlir::operands(mlir::terminator(after));
    for trip in 0..MAX_TRIPS {
        let known = Known::of(before, &carried);
        if known.value(test)? == 0 {
            return Some(trip);
        }
        let passed: Vec<_> = passed.iter().map(|value| known.value(*value)).collect();
        let known = Known::of(after, &passed);
        carried = yielded.iter().map(|value| known.value(*value)).collect();
    }
    None
}

/// The integers that are known in a region: block arguments, of scalars or of tensors with one element.
#[derive(Default)]
struct Known(HashMap<usize, i128>);

impl Known {
    fn of(block: Blk, values: &[Option<i128>]) -> Self {
        let arguments = mlir::arguments(block).into_iter().zip(values);
        Self(arguments.filter_map(|(it, value)| Some((mlir::value_key(it), (*value)?))).collect())
    }

    fn value(&self, value: Val) -> Option<i128> {
        self.value_within(value, MAX_DEPTH)
    }

    fn value_within(&self, value: Val, depth: usize) -> Option<i128> {
        let depth = depth.checked_sub(1)?;
        let value = root(value);
        if let Some(known) = self.0.get(&mlir::value_key(value)) {
            return Some(*known);
        }
        if mlir::shape(value.r#type()).iter().any(|extent| *extent != Some(1)) {
            return None;
        }
        let op = mlir::defining_op(value)?;
        if let Some(generic) = Generic::cast(op) {
            return self.element(generic, mlir::number(value), depth);
        }
        if mlir::is(op, "arith.constant") {
            return constant(op);
        }
        let operands = mlir::operands(op).into_iter();
        let operands: Option<Vec<_>> =
            operands.map(|operand| self.value_within(operand, depth)).collect();
        let width = mlir::integer_width(mlir::element_type(value.r#type())).unwrap_or(64);
        let predicate = mlir::integer_attr(op, "predicate");
        evaluate(mlir::name(op), &operands?, width, predicate)
    }

    /// The element of a result that has one, if the operation only computes with integers.
    fn element(&self, generic: Generic, result: usize, depth: usize) -> Option<i128> {
        let ir = tc_ir::Context::new();
        let domain = generic.domain(&ir);
        let is_point = |variable: &tc_ir::map::Variable| {
            variable.lower.is_some() && variable.lower == variable.upper
        };
        let variables = domain.dims.iter().chain(&domain.ranges);
        if !variables.into_iter().all(is_point)
            || !domain.constraints.is_empty()
            || !generic.accumulators().is_empty()
        {
            return None;
        }
        let inputs: Vec<_> =
            generic.inputs().into_iter().map(|input| self.value_within(input, depth)).collect();
        let inside = Self::of(generic.body(), &inputs);
        let yielded = *mlir::operands(mlir::terminator(generic.body())).get(result)?;
        inside.value_within(yielded, depth)
    }
}

/// The element of an integer constant with one element.
fn constant(op: Op) -> Option<i128> {
    let value = op.attribute("value").ok()?;
    let ty = mlir::element_type(mlir::result(op, 0).r#type());
    let width = mlir::integer_width(ty).or_else(|| ty.is_index().then_some(64))?;
    if let Some(integer) = mlir::wide_integer_of(value) {
        return Some(wrap(integer, width));
    }
    let (bytes, _) = mlir::dense_bytes(value, 1, width.div_ceil(8) as usize)?;
    let bits = bytes
        .iter()
        .rev()
        .try_fold(0_i128, |bits, byte| bits.checked_mul(256).map(|bits| bits | i128::from(*byte)));
    Some(wrap(bits?, width))
}

/// The signed integer of the low bits of a number.
fn wrap(value: i128, width: u32) -> i128 {
    if 127 <= width {
        return value;
    }
    let modulus = 1_i128 << width;
    let value = value.rem_euclid(modulus);
    if 1 < width && modulus / 2 <= value { value - modulus } else { value }
}

/// The result of an operation on signed integers of a width. Truth values are 0 and 1.
fn evaluate(name: &str, operands: &[i128], width: u32, predicate: Option<i64>) -> Option<i128> {
    let value = match (name, operands) {
        ("arith.addi", [a, b]) => a.checked_add(*b)?,
        ("arith.subi", [a, b]) => a.checked_sub(*b)?,
        ("arith.muli", [a, b]) => a.checked_mul(*b)?,
        ("arith.andi", [a, b]) => a & b,
        ("arith.ori", [a, b]) => a | b,
        ("arith.xori", [a, b]) => a ^ b,
        ("arith.minsi", [a, b]) => *a.min(b),
        ("arith.maxsi", [a, b]) => *a.max(b),
        ("arith.select", [condition, a, b]) => *if *condition == 0 { b } else { a },
        ("arith.extsi" | "arith.trunci" | "arith.index_cast" | "tensor.extract", [a]) => *a,
        ("tensor.from_elements", [a]) => *a,
        ("arith.cmpi", [a, b]) => i128::from(match predicate? {
            0 => a == b,
            1 => a != b,
            2 => a < b,
            3 => a <= b,
            4 => a > b,
            5 => a >= b,
            // Unsigned comparisons of what may be negative.
            predicate if 0 <= *a && 0 <= *b => match predicate {
                6 => a < b,
                7 => a <= b,
                8 => a > b,
                _ => a >= b,
            },
            _ => return None,
        }),
        _ => return None,
    };
    Some(wrap(value, width))
}
