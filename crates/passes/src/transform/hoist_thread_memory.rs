//! `hoist-thread-memory`: allocate the stack memory of parallel loops once per thread.
//!
//! `convert-scf-to-openmp` puts the body of a loop into a `memref.alloca_scope`, so that its stack memory is
//! released after each iteration. Loops in such a scope cannot become branches (LLVM 22). This pass moves
//! allocations of static size to the beginning of the parallel region. `canonicalize` then removes the
//! scope. The iterations of a thread run one after the other, so that they can share the memory.
//!
//! Before:
//!
//! ```mlir
//! omp.parallel {
//!   omp.wsloop {
//!     omp.loop_nest (%i) : index = (%c0) to (%n) step (%c1) {
//!       memref.alloca_scope {
//!         %buffer = memref.alloca() : memref<512xf32>
//!         ..
//! ```
//!
//! After:
//!
//! ```mlir
//! omp.parallel {
//!   %buffer = memref.alloca() : memref<512xf32>
//!   omp.wsloop {
//!     omp.loop_nest (%i) : index = (%c0) to (%n) step (%c1) {
//!       memref.alloca_scope {
//!         ..
//! ```

use melior::ir::operation::OperationLike;
use tc_dialects::{
    mlir,
    pass::{Failure, PassInfo, PassRun},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "hoist-thread-memory",
    summary: "Allocate the stack memory of parallel loops once per thread",
    anchor: "func.func",
    options: &[],
    dependent_dialects: &[],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let mut allocations = Vec::new();
    mlir::walk(pass.op, &mut |op| {
        let is_in_scope = || mlir::parent(op).is_some_and(|it| mlir::is(it, "memref.alloca_scope"));
        if mlir::is(op, "memref.alloca") && op.operand_count() == 0 && is_in_scope() {
            allocations.push(op);
        }
    });
    for op in allocations {
        let first = mlir::ancestor(op, "omp.parallel")
            .and_then(|region| mlir::body(region, 0))
            .and_then(|block| mlir::ops(block).first().copied());
        if let Some(first) = first {
            mlir::move_before(op, first);
        }
    }
    Ok(())
}
