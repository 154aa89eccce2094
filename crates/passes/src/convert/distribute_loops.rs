//! Loops over memory as the code of a thread of a GPU.
//!
//! The iterations of independent loops ([`INDEPENDENT`]) are divided among threads. There are three forms:
//!
//! * A nest of independent loops without others inside: a thread computes every n-th point, where n is the number of
//!   threads of the grid.
//! * A nest of independent loops that contains others below loops in order or next to each other: a block computes
//!   every n-th point, where n is the number of blocks. So does the first block with loops in order that contain
//!   independent ones.
//! * Loops in order only: the first thread runs them.
//!
//! All threads of a block run the loops in order, and compute scalars from the same memory, so that these are equal.
//! The threads divide the inner independent loops among each other, and the first thread does whatever else stores.
//! A barrier stands before an operation that accesses what another thread may have stored, or stores what another
//! thread may have loaded, since the last barrier. So barriers are never divergent.
//!
//! A nest of independent loops whose bounds are known outside is one loop over its points. If there are independent
//! loops inside besides, a warp computes a point as a block does above.

use super::index_emitter::IndexMath;
use crate::{
    analysis::buffers::VIEWS,
    loops::{build_for, build_if},
    target::WARP,
};
use melior::ir::operation::OperationLike;
use std::collections::HashSet;
use tc_dialects::{
    imap::INDEPENDENT,
    mlir::{self, Blk, Builder, Op, Val, ValueMap},
};

/// How threads divide a nest of loops.
pub(crate) struct Division<'c> {
    /// The loops whose points are divided among blocks or among all threads, from outside to inside.
    pub(crate) points: Vec<Op<'c>>,
    /// Whether all threads of a block work on a point.
    pub(crate) by_blocks: bool,
}

impl<'c> Division<'c> {
    pub(crate) fn of(nest: Op<'c>) -> Self {
        let points = if is_independent(nest) { collapsible(nest) } else { Vec::new() };
        let body = points.last().copied().unwrap_or(nest);
        Self { points, by_blocks: contains_independent(body) }
    }

    /// The number of threads that have work, before the nest.
    pub(crate) fn threads(&self, builder: &Builder<'c>, block_size: i64) -> Val<'c> {
        let points = product(builder, &extents(builder, &self.points));
        if self.by_blocks { builder.scale_index(points, block_size) } else { points }
    }
}

/// Divides a nest in a kernel among the threads of blocks of a size. Of buffers in `alone` it is known that they
/// share no memory with others.
pub(crate) fn distribute<'c>(nest: Op<'c>, block_size: i64, alone: &[Val<'c>]) {
    let Division { points, by_blocks } = Division::of(nest);
    let builder = Builder::before(nest);
    let along_x = mlir::parse_attribute(builder.context, "#gpu<dim x>");
    let read =
        |name: &str| builder.value_with(name, &[], builder.index_type(), &[("dimension", along_x)]);
    let [thread, block, num_blocks] = ["gpu.thread_id", "gpu.block_id", "gpu.grid_dim"].map(read);
    if !by_blocks {
        let first = builder.add_index(builder.scale_index(block, block_size), thread);
        let share = Share { first, step: builder.scale_index(num_blocks, block_size) };
        match points.is_empty() {
            true => alone_in(&builder, nest, first),
            false => drop(collapse(&builder, &points, share)),
        }
        return;
    }
    let share = Share { first: block, step: num_blocks };
    let body = match points.is_empty() {
        true => {
            // One point.
            let bounds = (share.first, builder.index(1), share.step);
            let mut body = None;
            build_for(&builder, bounds, &[], &mut |inside, _, _| {
                inside.copy(nest, &mut ValueMap::default());
                body = Some(inside.block());
                Vec::new()
            });
            mlir::erase(nest);
            body.expect("the body of the loop")
        }
        false => collapse(&builder, &points, share),
    };
    let alone = alone.iter().map(|it| mlir::value_key(*it)).collect();
    let mut threads = Threads { thread, size: block_size, alone, since: Accesses::default() };
    threads.divide(body);
}

fn is_independent(op: Op) -> bool {
    op.has_attribute(INDEPENDENT)
}

fn contains_independent(op: Op) -> bool {
    let mut found = false;
    mlir::walk(op, &mut |inner| found |= inner != op && is_independent(inner));
    found
}

/// Whether an operation stores something, or something in it does.
pub(crate) fn stores(op: Op) -> bool {
    let mut found = false;
    mlir::walk(op, &mut |inner| found |= mlir::is(inner, "memref.store"));
    found
}

/// The independent loop in the body of another one that stores nothing besides.
fn only_inner<'c>(outer: Op<'c>) -> Option<Op<'c>> {
    let ops = mlir::ops(mlir::body(outer, 0)?);
    let mut effects = ops.into_iter().filter(|op| stores(*op) || mlir::is(*op, "memref.alloc"));
    let inner = effects.next().filter(|op| is_independent(*op))?;
    effects.next().is_none().then_some(inner)
}

/// An independent loop and those inside it that are one nest with it, and whose bounds are known outside.
fn collapsible<'c>(outermost: Op<'c>) -> Vec<Op<'c>> {
    let mut nest = vec![outermost];
    while let Some(inner) = only_inner(nest[nest.len() - 1]) {
        if !bounds(inner).iter().all(|bound| is_outside(*bound, outermost)) {
            break;
        }
        nest.push(inner);
    }
    nest
}

/// Whether a value is defined outside of an operation.
fn is_outside(value: Val, op: Op) -> bool {
    let mut around = match mlir::defining_op(value) {
        Some(defining) => Some(defining),
        None => mlir::argument_parent(value),
    };
    while let Some(inner) = around {
        if inner == op {
            return false;
        }
        around = mlir::parent(inner);
    }
    true
}

/// Lower bound, upper bound and step.
fn bounds<'c>(op: Op<'c>) -> [Val<'c>; 3] {
    [0, 1, 2].map(|number| mlir::operand(op, number))
}

/// The numbers of iterations of loops.
fn extents<'c>(builder: &Builder<'c>, loops: &[Op<'c>]) -> Vec<Val<'c>> {
    let extent = |it: &Op<'c>| {
        let [lower, upper, step] = bounds(*it);
        builder.trip_count(lower, upper, step)
    };
    loops.iter().map(extent).collect()
}

fn product<'c>(builder: &Builder<'c>, factors: &[Val<'c>]) -> Val<'c> {
    let multiply = |x, y: &Val<'c>| builder.value("arith.muli", &[x, *y], builder.index_type());
    factors.iter().fold(builder.index(1), multiply)
}

/// The first iteration of a thread, and the step to its next one.
#[derive(Clone, Copy)]
struct Share<'c> {
    first: Val<'c>,
    step: Val<'c>,
}

/// Makes one loop over a share of the points of a nest. Returns its body.
fn collapse<'c>(builder: &Builder<'c>, nest: &[Op<'c>], share: Share<'c>) -> Blk<'c> {
    let extents = extents(builder, nest);
    let total = product(builder, &extents);
    let mut block = None;
    build_for(builder, (share.first, total, share.step), &[], &mut |builder, point, _| {
        let index = builder.index_type();
        let mut left = point;
        let mut map = ValueMap::default();
        for (number, (it, extent)) in nest.iter().zip(&extents).enumerate().rev() {
            let mut iteration = left;
            if number != 0 {
                iteration = builder.value("arith.remui", &[left, *extent], index);
                left = builder.value("arith.divui", &[left, *extent], index);
            }
            let [lower, _, step] = bounds(*it);
            let distance = builder.value("arith.muli", &[iteration, step], index);
            let body = mlir::body(*it, 0).expect("a loop has a body");
            map.insert(mlir::arguments(body)[0], builder.add_index(lower, distance));
        }
        for (number, it) in nest.iter().enumerate() {
            let body = mlir::body(*it, 0).expect("a loop has a body");
            let inner = nest.get(number + 1).copied();
            let ops = mlir::ops(body).into_iter();
            for op in ops.filter(|op| !mlir::is(*op, "scf.yield") && Some(*op) != inner) {
                builder.copy(op, &mut map);
            }
        }
        block = Some(builder.block());
        Vec::new()
    });
    mlir::erase(nest[0]);
    block.expect("the body of the loop")
}

/// Lets one thread run an operation without results: the one whose number is 0.
fn alone_in<'c>(builder: &Builder<'c>, op: Op<'c>, number: Val<'c>) {
    let is_first = builder.compare_int("eq", number, builder.index(0));
    let mut then = |inside: &Builder<'c>| {
        inside.copy(op, &mut ValueMap::default());
        Vec::new()
    };
    build_if(builder, is_first, &mut then, &mut |_| Vec::new());
    mlir::erase(op);
}

/// The buffers that are loaded from and stored to.
#[derive(Clone, Default)]
struct Accesses {
    loaded: HashSet<usize>,
    stored: HashSet<usize>,
}

impl Accesses {
    fn extend(&mut self, other: Self) {
        self.loaded.extend(other.loaded);
        self.stored.extend(other.stored);
    }

    /// Whether what is stored meets what others access.
    fn conflict(&self, other: &Self) -> bool {
        let meets = |x: &HashSet<usize>, y: &HashSet<usize>| !x.is_disjoint(y);
        meets(&self.stored, &other.stored)
            || meets(&self.stored, &other.loaded)
            || meets(&self.loaded, &other.stored)
    }
}

/// The threads of a block or of a warp.
struct Threads<'c> {
    /// The number of the thread among them.
    thread: Val<'c>,
    size: i64,
    /// Buffers that share no memory with others.
    alone: HashSet<usize>,
    /// The accesses since the last barrier.
    since: Accesses,
}

impl<'c> Threads<'c> {
    /// Divides what the threads do together among them.
    fn divide(&mut self, block: Blk<'c>) {
        for op in mlir::ops(block) {
            let accesses = self.accesses(op);
            let is_whole = op.result_count() == 0 && !contains_independent(op);
            if is_independent(op) {
                self.wait(op, accesses);
                self.divide_loop(op);
            } else if accesses.stored.is_empty() {
                self.wait(op, accesses);
            } else if is_whole {
                self.wait(op, accesses);
                alone_in(&Builder::before(op), op, self.thread);
            } else {
                // A region may follow itself, or be left out.
                self.since.extend(accesses);
                let before = self.since.clone();
                let mut after = before.clone();
                for block in (0..op.region_count()).flat_map(|region| mlir::blocks(op, region)) {
                    self.since = before.clone();
                    self.divide(block);
                    after.extend(std::mem::take(&mut self.since));
                }
                self.since = after;
            }
        }
    }

    /// Puts a barrier before an operation if it needs one.
    fn wait(&mut self, op: Op<'c>, accesses: Accesses) {
        if self.since.conflict(&accesses) {
            let builder = Builder::before(op);
            if self.size == WARP {
                let all = builder.integer(builder.int_type(32), -1);
                builder.op("nvvm.bar.warp.sync", &[all], &[]);
            } else {
                builder.op("gpu.barrier", &[], &[]);
            }
            self.since = Accesses::default();
        }
        self.since.extend(accesses);
    }

    fn accesses(&self, op: Op<'c>) -> Accesses {
        let mut found = Accesses::default();
        mlir::walk(op, &mut |inner| match mlir::name(inner) {
            "memref.load" => drop(found.loaded.insert(self.key(mlir::operand(inner, 0)))),
            "memref.store" => drop(found.stored.insert(self.key(mlir::operand(inner, 1)))),
            _ => {}
        });
        found
    }

    /// The key of a buffer, the same for all that may share memory.
    fn key(&self, mut buffer: Val<'c>) -> usize {
        loop {
            let key = mlir::value_key(buffer);
            if self.alone.contains(&key) {
                return key;
            }
            match mlir::defining_op(buffer).filter(|op| VIEWS.contains(&mlir::name(*op))) {
                Some(view) => buffer = mlir::operand(view, 0),
                None => return 0,
            }
        }
    }

    /// Divides the iterations of an independent loop: among warps if it contains others, else among threads.
    fn divide_loop(&self, op: Op<'c>) {
        let builder = Builder::before(op);
        let nest = collapsible(op);
        if self.size == WARP || !contains_independent(nest[nest.len() - 1]) {
            let share = Share { first: self.thread, step: builder.index(self.size) };
            collapse(&builder, &nest, share);
            return;
        }
        let (index, warp) = (builder.index_type(), builder.index(WARP));
        let first = builder.value("arith.divui", &[self.thread, warp], index);
        let lane = builder.value("arith.remui", &[self.thread, warp], index);
        let body =
            collapse(&builder, &nest, Share { first, step: builder.index(self.size / WARP) });
        let alone = self.alone.clone();
        Threads { thread: lane, size: WARP, alone, since: Accesses::default() }.divide(body);
    }
}
