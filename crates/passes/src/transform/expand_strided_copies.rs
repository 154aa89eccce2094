//! `expand-strided-copies`: copies between buffers that are not contiguous become loops.
//!
//! `finalize-memref-to-llvm` turns a `memref.copy` of contiguous buffers into `memcpy`, and any
//! other one into a call of `memrefCopy`, a function of MLIR's runtime library. An object must
//! not need that library.
//!
//! Before:
//!
//! ```mlir
//! memref.copy %a, %b : memref<4x3xf32, strided<[12, 2]>> to memref<4x3xf32>
//! ```
//!
//! After:
//!
//! ```mlir
//! scf.for %i = %c0 to %c4 step %c1 {
//!   scf.for %j = %c0 to %c3 step %c1 {
//!     %x = memref.load %a[%i, %j] : memref<4x3xf32, strided<[12, 2]>>
//!     memref.store %x, %b[%i, %j] : memref<4x3xf32>
//!   }
//! }
//! ```
//!
//! Copies of unranked buffers stay as they are. Remark: the number of copies that were expanded.

use crate::{
    analysis::buffers::needs_loops,
    loops::{build_for, build_load, build_store},
};
use melior::ir::{ValueLike, operation::OperationLike};
use tc_dialects::{
    mlir::{self, Builder, Op},
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, remark},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "expand-strided-copies",
    summary: "Expand copies of buffers that are not contiguous into loops",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["arith", "memref", "scf"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    for function in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "func.func")) {
        pass.enter(function);
        let mut copies = Vec::new();
        mlir::walk(function, &mut |op| {
            if mlir::is(op, "memref.copy") && needs_loops(op) {
                copies.push(op);
            }
        });
        for copy in &copies {
            expand(*copy);
        }
        if !copies.is_empty() {
            remark(
                function.location(),
                RemarkKind::Analysis,
                PASS.argument,
                "copies",
                mlir::string_attr(function, "sym_name").unwrap_or_default(),
                &[("Expanded", &copies.len().to_string())],
            );
        }
    }
    Ok(())
}

/// Replaces a copy by a loop nest.
fn expand(copy: Op) {
    let (source, target) = (mlir::operand(copy, 0), mlir::operand(copy, 1));
    let ty = source.r#type();
    let mut builder = Builder::before(copy);
    let (zero, one) = (builder.index(0), builder.index(1));
    let extents = mlir::shape(ty).into_iter().enumerate().map(|(dim, extent)| match extent {
        Some(extent) => builder.index(extent),
        None => {
            builder.value("memref.dim", &[source, builder.index(dim as i64)], builder.index_type())
        }
    });
    let extents: Vec<_> = extents.collect();
    let mut indices = Vec::new();
    for extent in extents {
        let mut body = builder.block();
        build_for(&builder, (zero, extent, one), &[], &mut |inside, index, _| {
            body = inside.block();
            indices.push(index);
            Vec::new()
        });
        builder = Builder::before(mlir::terminator(body));
    }
    let value = build_load(&builder, source, &indices);
    build_store(&builder, value, target, &indices);
    mlir::erase(copy);
}
