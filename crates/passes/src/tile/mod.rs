//! `imap-tile`: compute chains of operations one tile of their common dimensions at a time.
//!
//! A row-wise softmax is four operations, because each needs a whole row of the one before. Computed some rows at a
//! time, all of them stay in cache, and the intermediate tensors have these rows instead of all. [`group()`] says
//! which operations go together; the tiling driver of LLVM makes the loops.
//!
//! Before, shortened:
//!
//! ```mlir
//! %m = imap.generic (d0)[s0] .. ins(%x[d0, s0] ..) outs(%e0[d0] : tensor<4096xf32>) fold [maximumf f32] {..}
//! %p = imap.generic (d0, d1) .. ins(%x[d0, d1], %m[d0] ..) outs(%e1[d0, d1] : tensor<4096x1024xf32>) {..}
//! ```
//!
//! After:
//!
//! ```mlir
//! %p = scf.for %i = %c0 to %c4096 step %c8 iter_args(%o = %e1) -> (tensor<4096x1024xf32>) {
//!   %xt = tensor.extract_slice %x[%i, 0] [8, 1024] [1, 1] : ..
//!   %e = tensor.empty() : tensor<8xf32>
//!   %m = imap.generic (d0)[s0] .. ins(%xt[d0, s0] ..) outs(%e[d0] : tensor<8xf32>) fold [maximumf f32] {..}
//!   ..
//! ```
//!
//! A group has a root and operations before it. Each index of the tiled dimensions of the root needs one index of
//! each member, so that nothing is computed twice. Results that operations after the root read are stored as well.
//! A group is worth it if
//!
//! * at least `min-bytes` of traffic stay in cache: results of members, and operands that several of them read;
//! * a tile touches at most `tile-bytes`;
//! * no operand of more than `shared-bytes` is read again for each tile, except the second factor of a product.
//!
//! With a product, a tile has at least `min-rows` rows and touches at most `product-bytes`. A product that is in no group
//! is tiled by rows, so that those of its first factor stay in cache.
//!
//! Of the sets of tiled dimensions from the outermost one on, the one with the least traffic wins. The
//! contiguous dimension is only tiled if it is the only dimension.
//!
//! With `parallel`, the loop is an `scf.forall` if there is enough work for threads, and folds that belong to no
//! group are tiled as well. Remark: `group`, for each
//! group, with its operations and the sizes of its tiles.

pub mod group;
pub mod pack;
pub(crate) mod parts;
pub mod split;

use group::{Group, Limits, Positions, group};
use melior::ir::{ValueLike, operation::OperationLike};
use std::collections::HashSet;
use tc_dialects::{
    imap::{AnyIndexed, Generic, tiling},
    mlir::{self, Blk, Builder},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::{RemarkKind, Report, remark},
};
use tc_ir::Context;

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "imap-tile",
    summary: "Compute chains of operations one tile of their common dimensions at a time",
    anchor: "func.func",
    options: &[
        PassOption {
            name: "min-bytes",
            description: "The least bytes of results that are no longer stored whole",
            default: "131072",
        },
        PassOption {
            name: "tile-bytes",
            description: "The most bytes that a tile may touch: a part of the second-level cache",
            default: "524288",
        },
        PassOption {
            name: "shared-bytes",
            description: "The most bytes of an operand that all tiles read again: a part of the first-level cache",
            default: "16384",
        },
        PassOption {
            name: "product-bytes",
            description: "The most bytes that a tile with a product may touch: a part of the last-level cache",
            default: "2097152",
        },
        PassOption {
            name: "min-rows",
            description: "The least rows of a product in a tile",
            default: "16",
        },
        PassOption {
            name: "min-points",
            description: "The least points of the last operation in a tile, if they fit in cache",
            default: "8192",
        },
        PassOption {
            name: "min-row",
            description: "The least elements of a contiguous row that tiles cut",
            default: "64",
        },
        PassOption {
            name: "parallel",
            description: "Make scf.forall of loops with enough work for threads",
            default: "false",
        },
        PassOption {
            name: "parallel-threshold",
            description: "Operations below which loops stay in one thread",
            default: "262144",
        },
    ],
    dependent_dialects: &["affine", "arith", "imap", "scf", "tensor"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let number = |name| {
        let found = pass.options.number(name).and_then(|it| u64::try_from(it).ok());
        found.ok_or_else(|| {
            Report::op_error(pass.op, format!("'{name}' expects a number")).emit();
            Failure
        })
    };
    let threshold = number("parallel-threshold")?;
    let limits = Limits {
        min_bytes: number("min-bytes")?,
        tile_bytes: number("tile-bytes")?,
        shared_bytes: number("shared-bytes")?,
        product_bytes: number("product-bytes")?,
        min_points: number("min-points")?,
        min_rows: number("min-rows")?,
        min_row: number("min-row")?.max(1),
        parallel: pass.options.flag("parallel").then_some(threshold),
    };
    let function = mlir::string_attr(pass.op, "sym_name").unwrap_or_default();
    let mut blocks = Vec::new();
    for region in 0..pass.op.region_count() {
        mlir::blocks(pass.op, region).into_iter().for_each(|block| collect(block, &mut blocks));
    }
    for block in blocks {
        tile_block(function, block, &limits);
    }
    Ok(())
}

/// A block, and those inside of it, outside of operations with maps.
fn collect<'c>(block: Blk<'c>, found: &mut Vec<Blk<'c>>) {
    found.push(block);
    for op in mlir::ops(block).into_iter().filter(|op| AnyIndexed::cast(*op).is_none()) {
        for region in 0..op.region_count() {
            mlir::blocks(op, region).into_iter().for_each(|inner| collect(inner, found));
        }
    }
}

/// The groups of a block, last ones first. Each is passed on before the next one is looked for.
pub(crate) fn for_each_group<'c>(block: Blk<'c>, limits: &Limits, with: &mut dyn FnMut(Group<'c>)) {
    let ir = Context::new();
    let (mut taken, mut refused) = (HashSet::new(), HashSet::new());
    let ops = mlir::ops(block);
    let positions: Positions =
        ops.iter().enumerate().map(|(number, op)| (mlir::op_key(*op), number)).collect();
    for op in ops.into_iter().rev() {
        if taken.contains(&mlir::op_key(op)) {
            continue;
        }
        let Some(root) = Generic::cast(op) else { continue };
        let alone = refused.contains(&mlir::op_key(op));
        let mut found = None;
        if !alone || limits.parallel.is_some() {
            found = group(&ir, &positions, root, (alone, &mut refused), limits);
        }
        let Some(group) = found.or_else(|| group::block(&ir, root, limits)) else { continue };
        taken.extend(group.members.iter().map(|(member, _)| mlir::op_key(member.op())));
        with(group);
    }
}

fn tile_block<'c>(function: &str, block: Blk<'c>, limits: &Limits) {
    for_each_group(block, limits, &mut |group| {
        let root = group.root;
        let location = root.op().location();
        for (op, operand) in &group.reused {
            let ty = mlir::operands(*op)[*operand].r#type();
            let empty = Builder::before(*op).located(op.location()).value("tensor.empty", &[], ty);
            mlir::set_operand(*op, *operand, empty);
        }
        let members: Vec<_> =
            group.members.iter().map(|(it, escapes)| (AnyIndexed::from(*it), *escapes)).collect();
        if tiling::tile_and_fuse(root.into(), &group.sizes, group.is_parallel, &members).is_some() {
            let sizes: Vec<_> = group.sizes.iter().map(i64::to_string).collect();
            remark(
                location,
                RemarkKind::Passed,
                PASS.argument,
                "group",
                function,
                &[("Operations", &(members.len() + 1).to_string()), ("Sizes", &sizes.join(", "))],
            );
        }
    });
}
