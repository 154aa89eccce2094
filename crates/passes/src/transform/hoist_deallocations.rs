//! `hoist-deallocations`: free memory after its last use instead of at the end of the block.
//!
//! Upstream frees an allocation at the end of its block. So a program of many steps would keep the
//! memory of all steps.
//!
//! Before:
//!
//! ```mlir
//! %a = memref.alloc() : memref<8xf32>
//! "use"(%a) : (memref<8xf32>) -> ()
//! .. // many more
//! memref.dealloc %a : memref<8xf32>
//! ```
//!
//! After:
//!
//! ```mlir
//! %a = memref.alloc() : memref<8xf32>
//! "use"(%a) : (memref<8xf32>) -> ()
//! memref.dealloc %a : memref<8xf32>
//! .. // many more
//! ```
//!
//! A result buffer may alias any buffer that its operation takes or uses in a region, so a use of the
//! result also counts as a use of those. Only buffers that are allocated and freed in one block move.
//! Upstream's `optimize-allocation-liveness` has the same purpose, but frees buffers that are still used
//! through other values (LLVM 22).
//!
//! Remark: the number of moved deallocations.

use melior::ir::{ValueLike, operation::OperationLike};
use std::collections::{BTreeSet, HashMap};
use tc_dialects::{
    diagnostic::{RemarkKind, remark},
    mlir::{self, Blk, Op},
    pass::{Failure, PassInfo, PassRun},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "hoist-deallocations",
    summary: "Free memory after its last use",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &[],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    for function in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "func.func")) {
        pass.enter(function);
        let mut num_moved = 0;
        mlir::walk(function, &mut |op| {
            for block in (0..op.region_count()).flat_map(|region| mlir::blocks(op, region)) {
                num_moved += hoist_in(block);
            }
        });
        remark(
            function.location(),
            RemarkKind::Analysis,
            PASS.argument,
            "deallocations",
            mlir::string_attr(function, "sym_name").unwrap_or_default(),
            &[("Hoisted", &num_moved.to_string())],
        );
    }
    Ok(())
}

/// What a block allocates, and how it is used.
struct Allocation<'c> {
    /// The last operation of the block that uses it, but for the next.
    last_use: Op<'c>,
    /// What frees it.
    deallocation: Option<Op<'c>>,
}

/// Moves the deallocations of a block. Returns how many did.
fn hoist_in(block: Blk) -> usize {
    let mut allocations: Vec<Allocation> = Vec::new();
    // By buffer: the allocations that it may be part of.
    let mut sources: HashMap<usize, BTreeSet<usize>> = HashMap::new();
    for op in mlir::ops(block) {
        if mlir::is(op, "memref.alloc") {
            let source = BTreeSet::from([allocations.len()]);
            sources.insert(mlir::value_key(mlir::result(op, 0)), source);
            allocations.push(Allocation { last_use: op, deallocation: None });
            continue;
        }
        let mut used: BTreeSet<usize> = BTreeSet::new();
        mlir::walk(op, &mut |inner| {
            for operand in mlir::operands(inner) {
                used.extend(sources.get(&mlir::value_key(operand)).into_iter().flatten());
            }
        });
        if mlir::is(op, "memref.dealloc")
            && let [number] = used.iter().copied().collect::<Vec<_>>()[..]
            && allocations[number].deallocation.is_none()
        {
            allocations[number].deallocation = Some(op);
            continue;
        }
        for number in &used {
            allocations[*number].last_use = op;
        }
        if !used.is_empty() {
            for result in mlir::results(op).into_iter().filter(|it| mlir::is_memref(it.r#type())) {
                sources.insert(mlir::value_key(result), used.clone());
            }
        }
    }
    let mut num_moved = 0;
    for Allocation { last_use, deallocation } in allocations {
        if let Some(deallocation) = deallocation
            && let Some(next) = mlir::next(last_use)
            && next != deallocation
        {
            mlir::move_before(deallocation, next);
            num_moved += 1;
        }
    }
    num_moved
}
