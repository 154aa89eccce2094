//! `imap-tile`: execute the schedules of operations.
//!
//! A row-wise softmax is four operations, because each needs a whole row of the one before. Computed some rows at a
//! time, all of them stay in cache, and the intermediate tensors have these rows instead of all. `imap-schedule`
//! chooses which operations go together, and the sizes of tiles; the tiling driver of LLVM makes the loops.
//!
//! Before, shortened:
//!
//! ```mlir
//! %m = imap.generic (d0)[s0] .. ins(%x[d0, s0] ..) outs(%e0[d0] : tensor<4096xf32>) fold [maximumf f32]
//!     attributes {imap.group = 0} {..}
//! %p = imap.generic (d0, d1) .. ins(%x[d0, d1], %m[d0] ..) outs(%e1[d0, d1] : tensor<4096x1024xf32>)
//!     attributes {imap.group = 0, imap.schedule = #imap.schedule<tile [d0 = 8]>} {..}
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
//! If a step cuts a range of a fold, the fold is opened first (`imap/open.rs`): one operation writes the starts, the tiles
//! accumulate in the destination, and one operation applies the epilogue.
//!
//! Each index of the tiled dimensions of a root has to need one index of each member of its group, so that nothing is
//! computed twice. Results that operations after the root read are stored as well. A schedule that an operation cannot
//! have is an error. Remark: `group`, for each schedule that is executed, with the number of operations and the sizes.

pub mod group;
pub mod pack;
pub(crate) mod parts;
pub mod permute;
mod rows;
pub mod schedule;
pub mod split;

use crate::target::TileLimits;
use group::{Group, Joined, Positions, group, join};
use melior::ir::{ValueLike, operation::OperationLike};
use rows::copy_rows;
use std::collections::{HashMap, HashSet};
use tc_dialects::{
    imap::{
        AnyIndexed, Generic, Indexed,
        open::open,
        schedule::{GROUP, Schedule, Step, variable_names},
        tiling,
    },
    mlir::{self, Blk, Builder, Op},
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, Report, remark},
};
use tc_ir::{Context, Interval, expr::Var};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "imap-tile",
    summary: "Execute the schedules of operations: compute groups one tile at a time",
    anchor: "func.func",
    options: &[],
    dependent_dialects: &["affine", "arith", "imap", "scf", "tensor"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let function = mlir::string_attr(pass.op, "sym_name").unwrap_or_default();
    let ir = Context::new();
    // Blocks that are left, and whether they are those of a loop that the pass made.
    let mut pending: Vec<_> = blocks_in(pass.op).into_iter().map(|it| (it, false)).collect();
    while let Some((block, is_inner)) = pending.pop() {
        if !is_inner {
            check_groups(block)?;
        }
        let mut made = Vec::new();
        tile_block(&ir, function, (block, is_inner), &mut made)?;
        pending.extend(made.into_iter().map(|block| (block, true)));
    }
    Ok(())
}

/// Checks that each group of a block has one root: an operation with a schedule that makes tiles.
fn check_groups(block: Blk) -> Result<(), Failure> {
    let is_root = |op: Op| {
        let steps = Schedule::of(op).map(|it| it.steps).unwrap_or_default();
        steps.iter().any(|step| step.tile_sizes().is_some())
    };
    let ops = mlir::ops(block).into_iter();
    let numbered = ops.filter_map(|op| Some((mlir::integer_attr(op, GROUP)?, op)));
    let (roots, members): (Vec<_>, Vec<_>) = numbered.partition(|(_, op)| is_root(*op));
    let mut known = HashSet::new();
    if let Some((group, op)) = roots.iter().find(|(group, _)| !known.insert(*group)) {
        let message = format!("is a second root of group {group}; remove one of the two schedules");
        return Err(fail(*op, message));
    }
    match members.iter().find(|(group, _)| !known.contains(group)) {
        None => Ok(()),
        Some((group, op)) => {
            let message = format!(
                "is in group {group}, of which no operation of the block has a step 'tile' or 'forall'"
            );
            Err(fail(*op, message))
        }
    }
}

/// The blocks inside of an operation, outside of operations with maps.
pub(crate) fn blocks_in<'c>(op: Op<'c>) -> Vec<Blk<'c>> {
    let mut found = Vec::new();
    let blocks = (0..op.region_count()).flat_map(|region| mlir::blocks(op, region));
    blocks.for_each(|block| collect(block, &mut found));
    found
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

/// A list with one element at the end.
pub(crate) fn moved_last<T: Clone>(list: &[T], place: usize) -> Vec<T> {
    let mut list = list.to_vec();
    list[place..].rotate_left(1);
    list
}

fn positions_in(block: Blk) -> Positions {
    let ops = mlir::ops(block).into_iter().enumerate();
    ops.map(|(number, op)| (mlir::op_key(op), number)).collect()
}

/// The groups of a block that are worth it, last ones first.
pub(crate) fn groups<'c>(block: Blk<'c>, limits: &TileLimits) -> Vec<Group<'c>> {
    let mut groups = Vec::new();
    let ir = Context::new();
    let (mut taken, mut refused) = (HashSet::new(), HashSet::new());
    let positions = positions_in(block);
    for op in mlir::ops(block).into_iter().rev() {
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
        taken.extend(group.members.iter().map(|member| mlir::op_key(member.op())));
        groups.push(group);
    }
    groups
}

/// Executes the next step of each schedule in a block. The blocks of new loops with further steps are added to `made`.
/// In such a block, members that no tile needs one tile of stay in front of the loops.
fn tile_block<'c>(
    ir: &Context,
    function: &str,
    (block, is_inner): (Blk<'c>, bool),
    made: &mut Vec<Blk<'c>>,
) -> Result<(), Failure> {
    mlir::ops(block).into_iter().try_for_each(|op| prepare(ir, op))?;
    let positions = positions_in(block);
    let mut groups: HashMap<i64, Vec<Generic>> = HashMap::new();
    let mut roots = Vec::new();
    for op in mlir::ops(block) {
        let Some(indexed) = AnyIndexed::cast(op) else { continue };
        let schedule = Schedule::of(op);
        let is_tiled = |it: &Schedule| it.steps[0].tile_sizes().is_some();
        if let Some(schedule) = schedule.filter(is_tiled) {
            roots.push((indexed, schedule));
        } else if let (Some(group), Some(generic)) =
            (mlir::integer_attr(op, GROUP), Generic::cast(op))
        {
            groups.entry(group).or_default().push(generic);
        }
    }
    // Members are found among the operations as they are. The loops of one group hide them from another one.
    let mut planned = Vec::new();
    for (root, mut schedule) in roots.into_iter().rev() {
        let op = root.op();
        let step = schedule.steps.remove(0);
        let sizes = loop_sizes(ir, root, step.tile_sizes().unwrap_or_default())?;
        let number = mlir::integer_attr(op, GROUP);
        let marked = number.and_then(|number| groups.remove(&number)).unwrap_or_default();
        let mut joined = Joined::default();
        if let (Some(root), Some(number)) = (Generic::cast(op), number) {
            let num_dims = root.frozen_domain().counts().0;
            let dims = (0..num_dims as u32).filter(|dim| 0 < sizes[*dim as usize]).collect();
            match join(ir, &positions, root, &dims, &marked) {
                Ok(found) => joined = found,
                Err(_) if is_inner => {
                    marked.iter().for_each(|member| mlir::remove_attribute(member.op(), GROUP));
                }
                Err(op) => {
                    let message = format!(
                        "is no member of group {number}: its readers do not need one tile of it per tile"
                    );
                    return Err(fail(op, message));
                }
            }
        }
        for (op, operand) in &joined.reused {
            let ty = mlir::operands(*op)[*operand].r#type();
            let empty = Builder::before(*op).located(op.location());
            mlir::set_operand(*op, *operand, empty.value("tensor.empty", &[], ty));
        }
        planned.push((root, step, schedule, sizes, joined.members));
    }
    for (root, step, schedule, sizes, members) in planned {
        let op = root.op();
        // The tiles have the attributes of the operations.
        let has_more = schedule.steps.first().is_some_and(Step::is_on_tensors);
        let is_last = !schedule.steps.iter().any(|step| step.tile_sizes().is_some());
        schedule.set(op);
        if is_last {
            for op in members.iter().map(|(member, _)| member.op()).chain([op]) {
                mlir::remove_attribute(op, GROUP);
            }
        }
        let location = op.location();
        let is_parallel = matches!(step, Step::Forall(_));
        let members: Vec<_> =
            members.iter().map(|(it, escapes)| (AnyIndexed::from(*it), *escapes)).collect();
        let Some(created) = tiling::tile_and_fuse(root, &sizes, is_parallel, &members) else {
            return Err(fail(op, format!("cannot be computed by '{step}'")));
        };
        let sizes: Vec<_> = sizes.iter().map(i64::to_string).collect();
        remark(
            location,
            RemarkKind::Passed,
            PASS.argument,
            "group",
            function,
            &[("Operations", &(members.len() + 1).to_string()), ("Sizes", &sizes.join(", "))],
        );
        if has_more {
            made.extend(blocks_in(created));
        }
    }
    // Steps without an effect leave members without loops.
    for op in groups.into_values().flatten().map(|member| member.op()) {
        mlir::remove_attribute(op, GROUP);
    }
    Ok(())
}

/// Executes the steps of an operation before the next step that makes loops. If that step cuts a range of a fold, the fold
/// is opened first.
fn prepare(ir: &Context, op: Op) -> Result<(), Failure> {
    let Some(root) = AnyIndexed::cast(op) else { return Ok(()) };
    let Some(mut schedule) = Schedule::of(op) else { return Ok(()) };
    let sizes = loop {
        match schedule.steps.first() {
            Some(Step::Pack(input)) => {
                copy_rows(ir, root, *input).map_err(|reason| fail(op, reason))?;
            }
            Some(Step::Tile(sizes) | Step::Forall(sizes)) => {
                let sizes = loop_sizes(ir, root, sizes)?;
                // Without iterations there is no tile, and a slice of nothing is no slice upstream.
                if !root.domain(ir).is_known_empty(ir) && sizes.iter().any(|size| *size != 0) {
                    break Some(sizes);
                }
            }
            _ => break None,
        }
        schedule.steps.remove(0);
    };
    schedule.set(op);
    let Some(sizes) = sizes else { return Ok(()) };
    if let Some(step @ Step::Forall(_)) = schedule.steps.first() {
        let parallel = tiling::parallel_loops(root);
        let mut cut = sizes.iter().zip(parallel).zip(variable_names(&root.domain(ir)));
        if let Some((_, name)) = cut.find(|((size, parallel), _)| **size != 0 && !parallel) {
            let hint = match Generic::cast(op) {
                Some(_) => "use 'tile'",
                None => "cut another dimension",
            };
            let message = format!(
                "cannot be computed by '{step}': tiles along '{name}' depend on each other; {hint}"
            );
            return Err(fail(op, message));
        }
    }
    let Some(generic) = Generic::cast(op) else { return Ok(()) };
    let num_dims = generic.frozen_domain().counts().0;
    let accumulators = generic.accumulators();
    let mut starts = accumulators.iter().enumerate();
    let is_open =
        generic.epilogue().is_none() && starts.all(|(number, it)| it.destination() == Some(number));
    if !is_open && sizes[num_dims..].iter().any(|size| *size != 0) {
        open(ir, generic).map_err(|reason| {
            fail(op, format!("the fold cannot be computed in tiles of a range: {reason}"))
        })?;
    }
    Ok(())
}

/// The sizes of the tiles of a step, per loop of the operation; 0 for a loop that stays whole, as a range does that one
/// tile covers.
fn loop_sizes<'c>(
    ir: &Context,
    root: AnyIndexed<'c>,
    step: &[(String, i64)],
) -> Result<Vec<i64>, Failure> {
    let domain = root.domain(ir);
    let names = variable_names(&domain);
    let mut sizes = vec![0; names.len()];
    for (name, size) in step {
        let Some(place) = names.iter().position(|it| it == name) else {
            let names = names.join(", ");
            let message = format!("the schedule names '{name}', and the operation has {names}");
            return Err(fail(root.op(), message));
        };
        let interval = match place.checked_sub(domain.dims.len()) {
            Some(range) => domain.interval(ir, Var::Range(range as u32)),
            None => Interval::ALL,
        };
        let is_covered = interval.num_members().is_some_and(|count| count <= size.unsigned_abs());
        sizes[place] = if is_covered { 0 } else { *size };
    }
    Ok(sizes)
}

fn fail(op: Op, message: String) -> Failure {
    Report::op_error(op, message).emit();
    Failure
}
