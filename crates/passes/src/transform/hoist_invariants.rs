//! `hoist-invariants`: compute tensors that are the same in every iteration of a loop once, before the loop.
//!
//! The pass runs before `imap-fuse`, which would make such operations parts of others that do change. It moves
//!
//! - folds, scans, sorts and scatters,
//! - divisions and functions of elements, unless the result is large and is computed from less, and
//! - other operations on elements, if a product reads the result in the loop, or if the result takes the place
//!   of a tensor that was moved.
//!
//! Broadcasts and other cheap operations stay in the loop, where fusion makes them parts of their readers. An operation
//! that moves takes copies of them with it.
//!
//! Before:
//!
//! ```mlir
//! %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %x0) -> (tensor<8xf32>) {
//!   %s = imap.generic (i)[j] .. ins(%a[i, j] : tensor<8x8xf32>) outs(%e[i] : tensor<8xf32>) fold [add f32] ..
//!   %y = imap.generic (i) .. ins(%x[i], %s[i] : tensor<8xf32>, tensor<8xf32>) ..
//!   scf.yield %y : tensor<8xf32>
//! }
//! ```
//!
//! After:
//!
//! ```mlir
//! %s = imap.generic (i)[j] .. ins(%a[i, j] : tensor<8x8xf32>) outs(%e[i] : tensor<8xf32>) fold [add f32] ..
//! %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %x0) -> (tensor<8xf32>) {
//!   %y = imap.generic (i) .. ins(%x[i], %s[i] : tensor<8xf32>, tensor<8xf32>) ..
//!   scf.yield %y : tensor<8xf32>
//! }
//! ```
//!
//! A loop may have no iterations, so operations stay that are not safe then: those with runtime variables, which
//! may be no subscripts, and divisions by numbers that may be zero. Option: `max-bytes`, the largest result that is
//! computed from less. Remark: the number of operations that left a loop.

use super::hoist_divisions::{is_division, is_safe_divisor};
use crate::analysis::buffers::{is_movable, static_bytes, values_from_outside};
use melior::ir::{ValueLike, operation::OperationLike};
use std::collections::HashSet;
use tc_dialects::{
    imap::{Generic, Indexed, View},
    mlir::{self, Builder, Op, Val, ValueMap},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::{RemarkKind, remark},
};
use tc_ir::Context;

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "hoist-invariants",
    summary: "Compute tensors that do not change in a loop before the loop",
    anchor: "builtin.module",
    options: &[PassOption {
        name: "max-bytes",
        description: "The largest result of functions of elements that is computed from less",
        default: "1048576",
    }],
    dependent_dialects: &[],
    run,
};

const LOOPS: [&str; 2] = ["scf.for", "scf.while"];

/// Operations on elements of `math` that are cheap.
const CHEAP: [&str; 8] = [
    "math.absf",
    "math.absi",
    "math.ceil",
    "math.copysign",
    "math.floor",
    "math.fma",
    "math.round",
    "math.trunc",
];

fn run(pass: &PassRun) -> Result<(), Failure> {
    let max_bytes = pass.number("max-bytes")?;
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    let ir = Context::new();
    for function in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "func.func")) {
        pass.enter(function);
        let mut loops = Vec::new();
        mlir::walk(function, &mut |op| {
            if LOOPS.iter().any(|name| mlir::is(op, name)) {
                loops.push(op);
            }
        });
        // What leaves an inner loop may leave the loop around it.
        let mut num_hoisted = 0;
        for op in loops.into_iter().rev() {
            let mut around = Loop::new(&ir, op, max_bytes);
            around.hoist();
            num_hoisted += around.hoisted.len();
        }
        remark(
            function.location(),
            RemarkKind::Analysis,
            PASS.argument,
            "operations",
            mlir::string_attr(function, "sym_name").unwrap_or_default(),
            &[("Hoisted", &num_hoisted.to_string())],
        );
    }
    Ok(())
}

/// A loop, and the operations that need not stay in it.
struct Loop<'c, 'i> {
    ir: &'i Context,
    op: Op<'c>,
    max_bytes: i64,
    /// The operations of its blocks that compute the same in every iteration, in order.
    invariant: Vec<Op<'c>>,
    /// The copies of operations that stay, by their results.
    copies: ValueMap<'c>,
    /// The keys of operations that moved.
    hoisted: HashSet<usize>,
}

impl<'c, 'i> Loop<'c, 'i> {
    fn new(ir: &'i Context, op: Op<'c>, max_bytes: i64) -> Self {
        let (mut invariant, mut keys) = (Vec::new(), HashSet::new());
        let blocks = (0..op.region_count()).flat_map(|region| mlir::blocks(op, region));
        for inner in blocks.flat_map(mlir::ops).filter(|inner| is_speculatable(*inner)) {
            let is_outside = |value: &Val<'c>| match mlir::defining_op(*value) {
                Some(producer) => {
                    mlir::parent(producer) != Some(op) || keys.contains(&mlir::op_key(producer))
                }
                None => mlir::argument_parent(*value) != Some(op),
            };
            if mlir::operands(inner).iter().all(is_outside) {
                keys.insert(mlir::op_key(inner));
                invariant.push(inner);
            }
        }
        Self { ir, op, max_bytes, invariant, copies: ValueMap::default(), hoisted: HashSet::new() }
    }

    fn hoist(&mut self) {
        for op in std::mem::take(&mut self.invariant) {
            if self.is_worth_it(op) {
                self.copy_operands(op);
                mlir::move_before(op, self.op);
                self.hoisted.insert(mlir::op_key(op));
            }
        }
    }

    /// Whether an operation is still in one of the blocks of the loop.
    fn contains(&self, op: Op<'c>) -> bool {
        mlir::parent(op) == Some(self.op)
    }

    fn is_worth_it(&self, op: Op<'c>) -> bool {
        if !mlir::name(op).starts_with("imap.") {
            return false;
        }
        let Some(generic) = Generic::cast(op) else { return true };
        let view = View::of(self.ir, generic);
        if !view.accumulators.is_empty() {
            return true;
        }
        let total = |values: &[Val<'c>]| {
            values.iter().try_fold(0_i64, |sum, it| sum.checked_add(static_bytes(it.r#type())?))
        };
        let results = mlir::results(op);
        let Some(result_bytes) = total(&results) else { return false };
        let sources = self.sources(generic.inputs());
        let Some(source_bytes) = total(&sources) else { return false };
        if is_costly(generic) {
            return result_bytes <= source_bytes.max(self.max_bytes);
        }
        // Fusion cannot compute the factors of products where they are read. They may be wider than their sources.
        let computes = 1 < mlir::ops(generic.body()).len();
        let is_factor = computes && results.iter().any(|it| self.is_factor(*it));
        let replaced: Vec<_> = sources
            .into_iter()
            .filter(|source| {
                let is_hoisted = mlir::defining_op(*source)
                    .is_some_and(|it| self.hoisted.contains(&mlir::op_key(it)));
                is_hoisted && mlir::uses(*source).iter().all(|(user, _)| *user == op)
            })
            .collect();
        is_factor && result_bytes <= source_bytes.saturating_mul(4)
            || !replaced.is_empty() && total(&replaced).is_some_and(|it| result_bytes <= it)
    }

    /// Whether a fold reads each element of a tensor for several of its results.
    fn is_factor(&self, value: Val<'c>) -> bool {
        let folds = mlir::uses(value).into_iter().filter_map(|(user, _)| Generic::cast(user));
        folds.map(|fold| View::of(self.ir, fold)).any(|view| {
            let mut reads = view.inputs.iter().filter(|it| it.value == value);
            reads.any(|access| view.reads_again(self.ir, access))
        })
    }

    /// The tensors outside of the loop that values are computed from.
    fn sources(&self, mut values: Vec<Val<'c>>) -> Vec<Val<'c>> {
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        while let Some(value) = values.pop() {
            if !seen.insert(mlir::value_key(value)) {
                continue;
            }
            match mlir::defining_op(value).filter(|op| self.contains(*op)) {
                // A result takes nothing from the destinations of operations that stay, which are maps.
                Some(op) => {
                    let inputs = |it: Generic<'c>| it.inputs();
                    values.extend(Generic::cast(op).map_or_else(|| mlir::operands(op), inputs));
                }
                None => found.push(value),
            }
        }
        found
    }

    /// Copies the operations that stay in the loop, and that an operation needs, before the loop.
    fn copy_operands(&mut self, op: Op<'c>) {
        let mut work: Vec<_> = self.producers(op).map(|it| (it, false)).collect();
        while let Some((producer, operands_copied)) = work.pop() {
            let results = mlir::results(producer);
            if results.iter().all(|it| self.copies.get(*it).is_some()) {
                continue;
            }
            if operands_copied {
                let builder = Builder::before(self.op).located(producer.location());
                builder.copy(producer, &mut self.copies);
                continue;
            }
            work.push((producer, true));
            work.extend(self.producers(producer).map(|it| (it, false)));
        }
        for (place, value) in mlir::operands(op).into_iter().enumerate() {
            if let Some(copy) = self.copies.get(value) {
                mlir::set_operand(op, place, copy);
            }
        }
    }

    /// The operations in the loop that compute operands of an operation.
    fn producers(&self, op: Op<'c>) -> impl Iterator<Item = Op<'c>> {
        let producers = mlir::operands(op).into_iter().filter_map(mlir::defining_op);
        producers.filter(|it| self.contains(*it)).collect::<Vec<_>>().into_iter()
    }
}

/// Whether an operation may be performed although no iteration does it, and has no effect but its results.
fn is_speculatable(op: Op) -> bool {
    let moves = [
        "arith.constant",
        "tensor.cast",
        "tensor.empty",
        "tensor.expand_shape",
        "tensor.collapse_shape",
    ];
    if moves.iter().any(|name| mlir::is(op, name)) {
        return true;
    }
    if !mlir::name(op).starts_with("imap.") || mlir::results(op).is_empty() {
        return false;
    }
    let operands = mlir::operands(op);
    let uses_others = values_from_outside(op).iter().any(|it| !operands.contains(it));
    let has_runtimes = Generic::cast(op).is_some_and(|it| !it.runtimes().is_empty());
    let mut may_trap = false;
    mlir::walk(op, &mut |inner| may_trap |= is_division(inner) && !is_safe_divisor(inner));
    is_movable(op) && !uses_others && !has_runtimes && !may_trap
}

/// Whether an element takes much longer than to load it.
fn is_costly(generic: Generic) -> bool {
    let mut found = false;
    mlir::walk(generic.op(), &mut |op| {
        let name = mlir::name(op);
        found |= is_division(op)
            || ["arith.divf", "arith.remf", "imap.builtin"].contains(&name)
            || name.starts_with("math.") && !CHEAP.contains(&name);
    });
    found
}
