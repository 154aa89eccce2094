//! `check-allocations`: a function that gets no memory returns a code that says so.
//!
//! After each call of `malloc`, a null pointer leads to a block that frees what the function holds and
//! returns [`OUT_OF_MEMORY`]. Only a function with a C interface returns a code: in others, and in regions
//! of other operations (those of OpenMP), which cannot be left, the program is stopped. What may have been
//! freed before, depending on conditions, stays allocated: a block is freed if its allocation dominates the
//! failed one, which dominates its only deallocation.
//!
//! Before:
//!
//! ```mlir
//! %p = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
//! ```
//!
//! After:
//!
//! ```mlir
//!   %p = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
//!   %null = llvm.mlir.zero : !llvm.ptr
//!   %is_null = llvm.icmp "eq" %p, %null : !llvm.ptr
//!   %zero = llvm.mlir.constant(0 : i64) : i64
//!   %needs_memory = llvm.icmp "ne" %size, %zero : i64
//!   %failed = llvm.and %is_null, %needs_memory : i1
//!   llvm.cond_br %failed, ^failed, ^next
//! ^failed:
//!   llvm.call @free(%held) : (!llvm.ptr) -> ()
//!   %code = llvm.mlir.constant(-1 : i32) : i32
//!   llvm.return %code : i32
//! ^next:
//! ```
//!
//! Dominators: Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm", 2001. Remark: how many
//! allocations of a function are checked.

use melior::ir::{ValueLike, operation::OperationLike};
use std::collections::{HashMap, HashSet};
use tc_dialects::{
    diagnostic::{RemarkKind, remark},
    mlir::{self, Blk, Builder, Op, Val},
    pass::{Failure, PassInfo, PassRun},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "check-allocations",
    summary: "Return a code where memory cannot be allocated",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["llvm"],
    run,
};

/// The code that a compiled function returns if there is not enough memory.
pub const OUT_OF_MEMORY: i32 = -1;

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    for function in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "llvm.func")) {
        pass.enter(function);
        let num_checked = check(function);
        if 0 < num_checked {
            remark(
                function.location(),
                RemarkKind::Analysis,
                PASS.argument,
                "allocations",
                mlir::string_attr(function, "sym_name").unwrap_or_default(),
                &[("Checked", &num_checked.to_string())],
            );
        }
    }
    Ok(())
}

fn callee<'c>(op: Op<'c>) -> Option<&'c str> {
    let callee = op.attribute("callee").ok().filter(|_| mlir::is(op, "llvm.call"));
    callee.and_then(mlir::symbol_of)
}

/// Checks the allocations of a function. Returns how many there are.
fn check<'c>(function: Op<'c>) -> usize {
    let (mut allocations, mut frees) = (Vec::new(), HashMap::new());
    mlir::walk(function, &mut |op| match callee(op) {
        Some("malloc") if op.result_count() == 1 && op.operand_count() == 1 => allocations.push(op),
        Some("free") => {
            let pointer = mlir::value_key(mlir::operand(op, 0));
            frees.entry(pointer).or_insert_with(Vec::new).push(op);
        }
        _ => {}
    });
    if allocations.is_empty() {
        return 0;
    }
    let returns_code = function.attribute("llvm.emit_c_interface").is_ok();
    let places = Places::new(function);
    // The only place that frees each block of memory.
    let is_passed_on = |pointer: Val| {
        mlir::uses(pointer).into_iter().any(|(user, _)| !mlir::successors(user).is_empty())
    };
    let freed = |allocation: &Op<'c>| {
        let pointer = mlir::result(*allocation, 0);
        match frees.get(&mlir::value_key(pointer))?[..] {
            [free] if !is_passed_on(pointer) => Some((pointer, *allocation, free)),
            _ => None,
        }
    };
    let freed = allocations.iter().filter_map(freed);
    let held = if returns_code { places.held(&allocations, freed) } else { HashMap::new() };
    // The last ones first: what comes after an allocation moves to another block.
    for allocation in allocations.iter().rev() {
        branch(*allocation, held.get(&mlir::op_key(*allocation)).map(Vec::as_slice));
    }
    allocations.len()
}

/// Adds the branch behind an allocation: where it fails, the values are freed and the function returns, or
/// the program stops.
fn branch<'c>(allocation: Op<'c>, held: Option<&[Val<'c>]>) {
    let context = mlir::context_of(allocation);
    let Some(next) = mlir::next(allocation) else { return };
    let (before, after) = mlir::split_block(next);
    let failed = mlir::block_after(before);
    let (pointer, size) = (mlir::result(allocation, 0), mlir::operand(allocation, 0));
    let builder = Builder::at_end(context, before, allocation.location());
    let compare = |lhs: Val<'c>, rhs: Val<'c>, predicate: i64| {
        let predicate = ("predicate", mlir::i64_attr(context, predicate));
        builder.value_with("llvm.icmp", &[lhs, rhs], builder.int_type(1), &[predicate])
    };
    let null = builder.value("llvm.mlir.zero", &[], pointer.r#type());
    // The numbers of the predicates 'eq' and 'ne'.
    let is_null = compare(pointer, null, 0);
    let zero = builder.value("llvm.mlir.zero", &[], size.r#type());
    let needs_memory = compare(size, zero, 1);
    let condition = builder.value("llvm.and", &[is_null, needs_memory], builder.int_type(1));
    let segments = [("operandSegmentSizes", mlir::segments(context, &[1, 0, 0]))];
    builder.branch("llvm.cond_br", &[condition], &segments, &[failed, after]);

    let builder = Builder::at_end(context, failed, allocation.location());
    let Some(held) = held else {
        builder.op("llvm.intr.trap", &[], &[]);
        builder.op("llvm.unreachable", &[], &[]);
        return;
    };
    for pointer in held {
        let attributes = [
            ("callee", mlir::symbol(context, "free")),
            ("operandSegmentSizes", mlir::segments(context, &[1, 0])),
            ("op_bundle_sizes", mlir::segments(context, &[])),
        ];
        builder.op_with("llvm.call", &[*pointer], &[], &attributes, Vec::new());
    }
    let code = mlir::parse_attribute(context, &format!("{OUT_OF_MEMORY} : i32"));
    let code =
        builder.value_with("llvm.mlir.constant", &[], builder.int_type(32), &[("value", code)]);
    builder.op("llvm.return", &[code], &[]);
}

/// The places of operations in a function, and which come first on all ways.
struct Places {
    /// By operation: its block and its place there.
    places: HashMap<usize, (usize, usize)>,
    /// By block, the time at which a walk of the dominator tree enters and leaves it.
    spans: Vec<(usize, usize)>,
}

impl Places {
    fn new(function: Op) -> Self {
        let blocks = mlir::blocks(function, 0);
        let numbers: HashMap<_, _> =
            blocks.iter().enumerate().map(|(number, it)| (mlir::block_key(*it), number)).collect();
        let mut places = HashMap::new();
        for (number, block) in blocks.iter().enumerate() {
            for (place, op) in mlir::ops(*block).into_iter().enumerate() {
                places.insert(mlir::op_key(op), (number, place));
            }
        }
        let successors: Vec<Vec<usize>> = blocks
            .iter()
            .map(|block: &Blk| {
                let blocks = mlir::successors(mlir::terminator(*block));
                blocks.into_iter().map(|it| numbers[&mlir::block_key(it)]).collect()
            })
            .collect();
        Self { places, spans: spans(&dominators(&successors)) }
    }

    /// The place of an operation of the function's own blocks that can be reached. Whatever comes before
    /// another one on all ways has a lesser place.
    fn place(&self, op: Op) -> Option<Place> {
        let (block, place) = *self.places.get(&mlir::op_key(op))?;
        let (enter, leave) = self.spans[block];
        (0 < enter).then_some(Place { enter, place, leave })
    }

    /// For each allocation in the function's own blocks what is held there, of memory with its only
    /// deallocation.
    fn held<'c>(
        &self,
        allocations: &[Op<'c>],
        freed: impl Iterator<Item = (Val<'c>, Op<'c>, Op<'c>)>,
    ) -> HashMap<usize, Vec<Val<'c>>> {
        let placed = |(pointer, allocation, free)| {
            Some((self.place(allocation)?, self.place(free)?, pointer))
        };
        let mut freed: Vec<(Place, Place, Val)> = freed.filter_map(placed).collect();
        freed.sort_by_key(|(allocation, ..)| *allocation);
        let mut freed = freed.into_iter().peekable();
        let mut own: Vec<_> = allocations
            .iter()
            .filter_map(|op| Some((self.place(*op)?, mlir::op_key(*op))))
            .collect();
        own.sort();
        let mut open: Vec<(Place, Place, Val)> = Vec::new();
        let keys = allocations.iter().map(|op| mlir::op_key(*op));
        let mut held: HashMap<usize, Vec<Val>> =
            keys.filter(|key| self.places.contains_key(key)).map(|key| (key, Vec::new())).collect();
        for (place, key) in own {
            while let Some(next) = freed.next_if(|(allocation, ..)| *allocation < place) {
                open.push(next);
            }
            // Nothing from here on comes before these deallocations.
            open.retain(|(_, free, _)| place < *free);
            let is_held = |(allocation, free, _): &&(Place, Place, Val)| {
                allocation.dominates(place) && place.dominates(*free)
            };
            held.insert(key, open.iter().filter(is_held).map(|it| it.2).collect());
        }
        held
    }
}

/// The place of an operation: the times at which a walk of the dominator tree enters and leaves its
/// block, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    enter: usize,
    place: usize,
    leave: usize,
}

impl Place {
    /// Whether it comes before another one on every way to that.
    fn dominates(self, other: Self) -> bool {
        match self.enter == other.enter {
            true => self.place < other.place,
            false => self.enter < other.enter && other.leave < self.leave,
        }
    }
}

/// The nearest dominator of each node that can be reached from node 0, itself for that one.
fn dominators(successors: &[Vec<usize>]) -> Vec<Option<usize>> {
    // Nodes in postorder.
    let (mut order, mut seen) = (Vec::new(), HashSet::from([0]));
    let mut stack = vec![(0, 0)];
    while let Some((node, next)) = stack.pop() {
        match successors[node].get(next) {
            None => order.push(node),
            Some(successor) => {
                stack.push((node, next + 1));
                if seen.insert(*successor) {
                    stack.push((*successor, 0));
                }
            }
        }
    }
    let mut rank = vec![0; successors.len()];
    let mut predecessors = vec![Vec::new(); successors.len()];
    for (place, node) in order.iter().enumerate() {
        rank[*node] = place;
        successors[*node].iter().for_each(|successor| predecessors[*successor].push(*node));
    }
    let mut nearest: Vec<Option<usize>> = vec![None; successors.len()];
    nearest[0] = Some(0);
    let mut changed = true;
    while changed {
        changed = false;
        for node in order.iter().rev().filter(|node| **node != 0) {
            let mut found: Option<usize> = None;
            for other in predecessors[*node].iter().filter(|it| nearest[**it].is_some()) {
                let mut meet = *other;
                let mut known = found.unwrap_or(meet);
                while meet != known {
                    let lower = if rank[meet] < rank[known] { &mut meet } else { &mut known };
                    *lower = nearest[*lower].unwrap_or(0);
                }
                found = Some(meet);
            }
            changed |= nearest[*node] != found;
            nearest[*node] = found;
        }
    }
    nearest
}

/// When a walk of a tree enters and leaves each node.
fn spans(parents: &[Option<usize>]) -> Vec<(usize, usize)> {
    let mut children = vec![Vec::new(); parents.len()];
    for (node, parent) in parents.iter().enumerate().skip(1) {
        parent.iter().for_each(|parent| children[*parent].push(node));
    }
    let mut spans = vec![(0, 0); parents.len()];
    let (mut time, mut stack) = (0, vec![(0, 0)]);
    while let Some((node, next)) = stack.pop() {
        time += 1;
        if next == 0 {
            spans[node].0 = time;
        }
        match children[node].get(next) {
            None => spans[node].1 = time,
            Some(child) => stack.extend([(node, next + 1), (*child, 0)]),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether every way from node 0 to `to` passes `node`.
    fn dominates(successors: &[Vec<usize>], node: usize, to: usize) -> bool {
        let (mut seen, mut pending) = (HashSet::new(), vec![0]);
        while let Some(found) = pending.pop() {
            if found != node && seen.insert(found) {
                pending.extend(&successors[found]);
            }
        }
        !seen.contains(&to)
    }

    proptest! {
        #[test]
        fn dominators_are_on_every_way(
            successors in (1_usize..9).prop_flat_map(|count| {
                proptest::collection::vec(proptest::collection::vec(0..count, 0..3), count)
            })
        ) {
            let nearest = dominators(&successors);
            let spans = spans(&nearest);
            let is_reached = |node: usize| node == 0 || nearest[node].is_some();
            for node in (0..successors.len()).filter(|node| is_reached(*node)) {
                for to in (0..successors.len()).filter(|to| is_reached(*to) && *to != node) {
                    let found = spans[node].0 < spans[to].0 && spans[to].1 < spans[node].1;
                    prop_assert_eq!(found, dominates(&successors, node, to));
                }
            }
        }
    }
}
