//! The work that threads divide.
//!
//! The unit is an operation on a vector register of 32-bit numbers. An operation on 64-bit numbers counts twice, because a
//! vector holds half as many. A load or a store counts as [`LOAD`] operations. Each element counts once, because later loads
//! hit the first-level cache. A function or a division counts as several operations. In a register block, a multiplication
//! and the addition of its result count as one operation.

use melior::ir::ValueLike;
use tc_dialects::{
    imap::{AnyIndexed, Indexed},
    mlir::{self, Blk, Op, Val},
};
use tc_ir::{Context, IndexingMap, Var};

/// The bytes of a number that counts as one.
pub const WORD_BYTES: u64 = 4;

/// A load from the second-level cache, in operations on registers.
pub const LOAD: u64 = 8;
/// A mathematical function or a call, in operations on registers.
const FUNCTION: u64 = 30;
/// A division or a square root, in operations on registers.
const DIVISION: u64 = 8;

/// The work of an operation with maps.
pub struct ThreadWork {
    /// The work at each value of the unknown variables, in bytes: [`WORD_BYTES`] are one operation.
    pub known: u64,
    /// The variables of which the program computes the number of values.
    pub unknown: Vec<Var>,
}

impl ThreadWork {
    /// The work of an operation, given the number of values of its variables, `None` for unknown ones.
    /// `is_product` if blocks of results multiply and add in one operation.
    pub fn of(op: AnyIndexed, extent: &dyn Fn(Var) -> Option<u64>, is_product: bool) -> Self {
        let ir = Context::new();
        let domain = op.domain(&ir);
        let vars = domain.vars().map(|(var, _)| var);
        let vars: Vec<_> = vars.filter(|it| !matches!(it, Var::Runtime(_))).collect();
        let points =
            |vars: &[Var]| vars.iter().filter_map(|var| extent(*var)).fold(1, u64::saturating_mul);
        let mut known = points(&vars).saturating_mul(point_work(op, is_product));
        for (value, map) in op.inputs().into_iter().chain(op.inits()).zip(op.maps(&ir)) {
            let elements = elements(&ir, value, &map, &vars, &points);
            let bytes = elements.saturating_mul(element_bytes(value));
            known = known.saturating_add(bytes.saturating_mul(LOAD));
        }
        let unknown = vars.into_iter().filter(|var| extent(*var).is_none()).collect();
        Self { known, unknown }
    }
}

/// The elements that a map reads or writes, at each value of the unknown variables.
fn elements(
    ir: &Context,
    value: Val,
    map: &IndexingMap,
    vars: &[Var],
    points: &dyn Fn(&[Var]) -> u64,
) -> u64 {
    let used = ir.vars_of_all(&map.results);
    let is_indirect = used.iter().any(|var| matches!(var, Var::Runtime(_)));
    let used = vars.iter().copied().filter(|var| is_indirect || used.contains(var));
    let points = points(&used.collect::<Vec<_>>());
    let extents = mlir::shape(value.r#type()).into_iter();
    let all = extents
        .map(|it| it?.try_into().ok())
        .try_fold(1, |all: u64, extent: Option<u64>| Some(all.saturating_mul(extent?)));
    all.map_or(points, |all| points.min(all))
}

/// The work of the body at one point, and of its folds.
fn point_work(op: AnyIndexed, is_product: bool) -> u64 {
    let body = op.body();
    if op.accumulators().is_empty() {
        return block_work(body);
    }
    let is_separate = |value: &Val| {
        let op = mlir::defining_op(*value).map_or("", mlir::name);
        !(is_product && matches!(op, "arith.mulf" | "arith.muli"))
    };
    let values = mlir::operands(mlir::terminator(body)).into_iter();
    values.filter(is_separate).map(element_bytes).sum::<u64>() + block_work(body)
}

/// The work of the operations of a block and of those nested in it, in bytes.
pub fn block_work(block: Blk) -> u64 {
    let mut work = 0;
    for op in mlir::ops(block) {
        mlir::walk(op, &mut |inner| work += operations(inner) * result_bytes(inner));
    }
    work
}

/// The operations on registers that an operation takes.
fn operations(op: Op) -> u64 {
    match mlir::name(op) {
        "arith.constant" | "imap.index" | "imap.yield" | "scf.yield" => 0,
        "arith.divf" | "arith.divsi" | "arith.divui" | "arith.remf" | "arith.remsi"
        | "arith.remui" | "math.rsqrt" | "math.sqrt" => DIVISION,
        "math.absf" | "math.absi" | "math.ceil" | "math.copysign" | "math.ctpop" | "math.floor"
        | "math.fma" | "math.roundeven" | "math.trunc" => 1,
        "func.call" | "imap.builtin" => FUNCTION,
        name if name.starts_with("math.") => FUNCTION,
        _ => 1,
    }
}

/// The bytes of the elements of a value of any type.
pub fn element_bytes(value: Val) -> u64 {
    mlir::byte_width(mlir::element_type(value.r#type())).into()
}

/// The bytes of an element of the first result; [`WORD_BYTES`] if an operation has no result.
fn result_bytes(op: Op) -> u64 {
    mlir::results(op).first().map_or(WORD_BYTES, |result| element_bytes(*result))
}
