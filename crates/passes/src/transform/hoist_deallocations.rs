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
use std::collections::{HashMap, HashSet};
use tc_dialects::{
    mlir::{self, Blk, Op},
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, remark},
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

/// Moves the deallocations of a block. Returns how many did.
fn hoist_in(block: Blk) -> usize {
    let ops = mlir::ops(block);
    let allocations: Vec<_> = ops.iter().filter(|op| mlir::is(**op, "memref.alloc")).collect();
    if allocations.is_empty() {
        return 0;
    }
    let places = ops.iter().enumerate().map(|(place, op)| (mlir::op_key(*op), place));
    let places: HashMap<usize, usize> = places.collect();
    let mut num_moved = 0;
    for allocation in allocations {
        let Some((last_use, deallocation)) = last_use(*allocation, block, &places) else {
            continue;
        };
        if let Some(next) = mlir::next(last_use)
            && next != deallocation
        {
            mlir::move_before(deallocation, next);
            num_moved += 1;
        }
    }
    num_moved
}

/// The last operation of a block that uses an allocation, and the one that frees it; `None` if several do,
/// or if none does in this block.
fn last_use<'c>(
    allocation: Op<'c>,
    block: Blk<'c>,
    places: &HashMap<usize, usize>,
) -> Option<(Op<'c>, Op<'c>)> {
    let allocated = mlir::result(allocation, 0);
    let (mut last, mut deallocation) = (allocation, None);
    let (mut buffers, mut seen) = (vec![allocated], HashSet::from([mlir::value_key(allocated)]));
    while let Some(buffer) = buffers.pop() {
        for (user, _) in mlir::uses(buffer) {
            if buffer == allocated
                && mlir::is(user, "memref.dealloc")
                && user.block().map(mlir::block_ref) == Some(block)
            {
                if deallocation.replace(user).is_some() {
                    return None;
                }
                continue;
            }
            let user = mlir::ancestor_in(user, block)?;
            if places.get(&mlir::op_key(last)) < places.get(&mlir::op_key(user)) {
                last = user;
            }
            let results = mlir::results(user).into_iter();
            buffers.extend(results.filter(|result| {
                mlir::is_memref(result.r#type()) && seen.insert(mlir::value_key(*result))
            }));
        }
    }
    Some((last, deallocation?))
}
