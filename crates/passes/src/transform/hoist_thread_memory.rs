//! `hoist-thread-memory`: allocate the stack memory of parallel loops once per thread.
//!
//! `convert-scf-to-openmp` puts the body of a loop into a `memref.alloca_scope`, so that its stack memory is
//! released after each iteration. Loops in such a scope cannot become branches (LLVM 22). This pass moves
//! allocations of static size to the beginning of the parallel region, and removes a scope without allocations;
//! `canonicalize` would keep one with calls. The iterations of a thread run one after the other, so that they can share
//! the memory.
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
//!       ..
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

const SCOPE: &str = "memref.alloca_scope";
const REGION: &str = "omp.parallel";

fn run(pass: &PassRun) -> Result<(), Failure> {
    let (mut allocations, mut scopes) = (Vec::new(), Vec::new());
    mlir::walk(pass.op, &mut |op| {
        if mlir::is(op, SCOPE) {
            scopes.push(op);
        }
        let is_in_scope = || mlir::parent(op).is_some_and(|it| mlir::is(it, SCOPE));
        if mlir::is(op, "memref.alloca") && op.operand_count() == 0 && is_in_scope() {
            allocations.push(op);
        }
    });
    for op in allocations {
        let first = mlir::ancestor(op, REGION)
            .and_then(|region| mlir::body(region, 0))
            .and_then(|block| mlir::ops(block).first().copied());
        if let Some(first) = first {
            mlir::move_before(op, first);
        }
    }
    for scope in scopes.into_iter().filter(|it| it.result_count() == 0) {
        // Memory that an inner parallel region allocates is on the stacks of its threads.
        let holder = |op| {
            std::iter::successors(mlir::parent(op), |op| mlir::parent(*op))
                .find(|it| *it == scope || mlir::is(*it, REGION))
        };
        let mut allocates = false;
        mlir::walk(scope, &mut |op| {
            allocates |= mlir::is(op, "memref.alloca") && holder(op) == Some(scope);
        });
        if let (false, Some(body)) = (allocates, mlir::body(scope, 0)) {
            let terminator = mlir::terminator(body);
            let inner = mlir::ops(body).into_iter().filter(|op| *op != terminator);
            inner.for_each(|op| mlir::move_before(op, scope));
            mlir::erase(scope);
        }
    }
    Ok(())
}
