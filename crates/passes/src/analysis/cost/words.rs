//! Work for threads, in operations on numbers of one size.

use melior::ir::ValueLike;
use tc_dialects::mlir::{self, Op, Val};

/// The bytes of a number that counts as one where work is compared with
/// [`parallel_threshold`](crate::target::Machine::parallel_threshold).
pub const WORD_BYTES: u64 = 4;

/// The bytes of the elements of a value of any type.
pub fn element_bytes(value: Val) -> u64 {
    mlir::byte_width(mlir::element_type(value.r#type())).into()
}

/// The bytes of an element that an operation computes, by its first result; those of a word if it has none.
pub fn result_bytes(op: Op) -> u64 {
    mlir::results(op).first().map_or(WORD_BYTES, |result| element_bytes(*result))
}
