//! Integer division of the languages in which it floors.

use melior::ir::ValueLike;
use tc_dialects::mlir::{Builder, Val};

/// Integer division that floors, wraps at the most negative value, and gives 0 for a
/// divisor of 0; or its remainder.
pub fn build_division<'c>(
    builder: &Builder<'c>,
    (lhs, rhs): (Val<'c>, Val<'c>),
    unsigned: bool,
    remainder: bool,
) -> Val<'c> {
    let ty = lhs.r#type();
    let zero = builder.integer(ty, 0);
    let one = builder.integer(ty, 1);
    let is_zero = builder.compare_int("eq", rhs, zero);
    if unsigned {
        let divisor = builder.select(is_zero, one, rhs);
        let name = if remainder { "arith.remui" } else { "arith.divui" };
        let value = builder.value(name, &[lhs, divisor], ty);
        return builder.select(is_zero, zero, value);
    }
    // A divisor of -1 is taken apart: the machine's division overflows on it.
    let minus_one = builder.integer(ty, -1);
    let is_minus_one = builder.compare_int("eq", rhs, minus_one);
    let special = builder.value("arith.ori", &[is_zero, is_minus_one], builder.int_type(1));
    let divisor = builder.select(special, one, rhs);
    if remainder {
        let value = builder.value("arith.remsi", &[lhs, divisor], ty);
        let is_exact = builder.compare_int("eq", value, zero);
        let value_negative = builder.compare_int("slt", value, zero);
        let divisor_negative = builder.compare_int("slt", divisor, zero);
        let same_sign = builder.compare_int("eq", value_negative, divisor_negative);
        let keep = builder.value("arith.ori", &[is_exact, same_sign], builder.int_type(1));
        let moved = builder.value("arith.addi", &[value, divisor], ty);
        let floored = builder.select(keep, value, moved);
        return builder.select(special, zero, floored);
    }
    let quotient = builder.value("arith.floordivsi", &[lhs, divisor], ty);
    let negated = builder.value("arith.subi", &[zero, lhs], ty);
    let value = builder.select(is_minus_one, negated, quotient);
    builder.select(is_zero, zero, value)
}
