//! `update-in-place`: lets an operation write to the buffer whose elements it is the last to read.
//!
//! Before:
//!
//! ```mlir
//! %b = memref.alloc() : memref<8xf32>
//! .. // writes %b
//! %c = memref.alloc() : memref<8xf32>
//! imap.generic (i) .. ins(%b[i] : memref<8xf32>) outs(%c[i] : memref<8xf32>) {..}
//! .. // reads %c
//! ```
//!
//! After:
//!
//! ```mlir
//! %b = memref.alloc() : memref<8xf32>
//! .. // writes %b
//! imap.generic (i) .. ins(%b[i] : memref<8xf32>) outs(%b[i] : memref<8xf32>) {..}
//! .. // reads %b
//! ```
//!
//! The operation touches one element of both buffers at each point, which no other point touches. Nothing uses the old
//! buffer afterwards, or the new one before. The new one may also be a result of the function; the old one is allocated
//! in the same block. A `memref.copy` between two such buffers is not needed any more.
//!
//! Remark: how many buffers of a function are gone.

use super::deallocate_local_buffers::USERS;
use crate::analysis::buffers::{VIEWS, results_in_arguments};
use melior::ir::{ValueLike, operation::OperationLike};
use std::collections::{HashMap, HashSet};
use tc_dialects::{
    imap::{AnyIndexed, Generic, Indexed},
    mlir::{self, Blk, Op, Val},
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, remark},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "update-in-place",
    summary: "Let operations write to the buffer whose elements they are the last to read",
    anchor: "func.func",
    options: &[],
    dependent_dialects: &["memref"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let function = pass.op;
    // By block, in the order of the blocks.
    let (mut writers, mut numbers): (Vec<Vec<Op>>, _) = (Vec::new(), HashMap::new());
    mlir::walk(function, &mut |op| {
        if (mlir::is(op, "memref.copy") || Generic::cast(op).is_some())
            && let Some(block) = op.block()
        {
            let block = mlir::block_key(mlir::block_ref(block));
            let number = *numbers.entry(block).or_insert(writers.len());
            if number == writers.len() {
                writers.push(Vec::new());
            }
            writers[number].push(op);
        }
    });
    let results = &results_in_arguments(function);
    let mut gone = 0;
    for writers in writers {
        let Some(block) = writers[0].block().map(mlir::block_ref) else { continue };
        let ops = mlir::ops(block).into_iter().enumerate();
        let places = ops.map(|(n, op)| (mlir::op_key(op), n)).collect();
        let uses = Uses { block, results, places };
        gone += writers.into_iter().map(|it| uses.update(it)).sum::<usize>();
    }
    let name = mlir::string_attr(function, "sym_name").unwrap_or_default();
    let (at, arguments) = (function.location(), [("Gone", &*gone.to_string())]);
    remark(at, RemarkKind::Passed, PASS.argument, "buffers", name, &arguments);
    Ok(())
}

/// The order of the operations of a block.
struct Uses<'a, 'c> {
    block: Blk<'c>,
    /// The results among the arguments of the function.
    results: &'a HashSet<usize>,
    places: HashMap<usize, usize>,
}

impl<'c> Uses<'_, 'c> {
    /// Replaces buffers that an operation writes, or that it reads last. Returns how many are gone.
    fn update(&self, op: Op<'c>) -> usize {
        let num_operands = mlir::operands(op).len();
        let first_output = match Generic::cast(op) {
            Some(generic) => num_operands - generic.inits().len(),
            None => num_operands - 1,
        };
        let mut gone = 0;
        for output in first_output..num_operands {
            let new = mlir::operand(op, output);
            let is_result = self.results.contains(&mlir::value_key(new));
            if !(is_result || self.allocation(new).is_some()) || !self.uses_are(new, op, usize::ge)
            {
                continue;
            }
            let old = (0..first_output).find(|input| self.is_last(op, *input, output));
            let Some(old) = old.map(|input| mlir::operand(op, input)) else { continue };
            let (replaced, by) = if is_result { (old, new) } else { (new, old) };
            let Some(allocation) = self.allocation(replaced) else { continue };
            mlir::replace(allocation, &[by]);
            gone += 1;
        }
        if mlir::is(op, "memref.copy") && 0 < gone {
            mlir::erase(op);
        }
        gone
    }

    /// Whether an operation may write an output over what it reads as an input.
    fn is_last(&self, op: Op<'c>, input: usize, output: usize) -> bool {
        let (old, new) = (mlir::operand(op, input), mlir::operand(op, output));
        let generic = Generic::cast(op);
        let is_same = |read| generic.is_none_or(|it| it.touches_same_element(read, output));
        let reads = mlir::uses(old).into_iter().filter(|(user, _)| *user == op);
        old.r#type() == new.r#type()
            && self.allocation(old).is_some()
            && self.uses_are(old, op, usize::le)
            && reads.map(|(_, number)| number).all(is_same)
    }

    fn allocation(&self, buffer: Val<'c>) -> Option<Op<'c>> {
        let op = mlir::defining_op(buffer)?;
        let is_here = op.block().map(mlir::block_ref) == Some(self.block);
        (is_here && mlir::is(op, "memref.alloc") && op.operand_count() == 0).then_some(op)
    }

    /// Whether all uses of a buffer stand in this order to an operation, which uses it under its own name. None keeps
    /// a reference to it.
    fn uses_are(&self, buffer: Val<'c>, op: Op<'c>, order: fn(&usize, &usize) -> bool) -> bool {
        let place = |op: Op<'c>| self.places.get(&mlir::op_key(op));
        let Some(here) = place(op) else { return false };
        let mut names = vec![buffer];
        while let Some(name) = names.pop() {
            for (user, _) in mlir::uses(name) {
                let around = mlir::ancestor_in(user, self.block);
                let is_in_order = around.and_then(place).is_some_and(|it| order(it, here));
                // The body of the operation may load any element.
                let is_named = user == op && name == buffer;
                if !is_in_order || around == Some(op) && !is_named {
                    return false;
                }
                if VIEWS.contains(&mlir::name(user)) {
                    names.extend(mlir::results(user));
                } else if !USERS.contains(&mlir::name(user)) && AnyIndexed::cast(user).is_none() {
                    return false;
                }
            }
        }
        true
    }
}
