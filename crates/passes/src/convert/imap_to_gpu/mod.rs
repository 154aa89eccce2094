//! `convert-imap-to-gpu`: operations with maps on buffers become the code of one thread of a GPU.
//!
//! A kernel holds one operation, which spreads over all threads of the grid, for any number of blocks:
//!
//! * *Points* (`points.rs`): a thread computes every n-th point of the dimension variables, where n is the
//!   number of threads. Neighbouring threads have neighbouring points along the variable that `loop_nest/order.rs` puts
//!   innermost. In map form a thread takes several neighbouring points at once where their elements are
//!   aligned vectors.
//! * *Transposed points* (`transpose.rs`): where neighbouring elements of an input lie along another variable, a block
//!   copies a square of them to shared memory.
//! * *Folds* (`folds.rs`): where neighbouring elements of the inputs lie along a range variable, a part of a warp, a
//!   warp or a block computes each point. Its threads fold every n-th element from the identity. The values of the
//!   threads are combined by shuffles and, between warps, in shared memory (`group.rs`). The first thread
//!   combines the result with the start and stores it.
//! * *Folds along columns* (`columns.rs`): where neighbouring elements belong to few neighbouring points, several
//!   threads of a block fold the values of a point, and combine them in shared memory.
//! * *Products* (`product.rs`): a block computes a tile of rows and columns, with parts of both inputs in shared
//!   memory.
//! * *Scans* (`scan.rs`): a thread, a warp or a block per row.
//! * *Scatters* (`scatter.rs`): a thread per update if it is atomic, otherwise per updates of one element.
//! * *Sorts* (`sort.rs`): a thread or a block per row.
//!
//! A kernel may also hold independent loops over tiles (`tiles.rs`): a block computes a tile, with the operations above
//! spread over its threads.
//!
//! All threads of a group leave a loop together, so shuffles and barriers are never divergent.

mod columns;
mod folds;
mod group;
mod points;
mod product;
mod scan;
mod scatter;
mod sort;
mod tiles;
mod transpose;

use super::loop_nest::{
    Choices, converted,
    emit::{Nest, Scope},
    order::{self, Plan},
    schedule::circular,
};
use crate::{convert::index_emitter::IndexMath, loops, target::WARP};
use melior::ir::{BlockLike, Type, ValueLike};
use product::Product;
use std::{cell::RefCell, rc::Rc};
use tc_dialects::{
    imap::{Generic, Scan, Scatter, Sort, schedule::Schedule},
    mlir::{self, Builder, Op, Val},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::Report,
};
use tc_ir::Var;
use transpose::Transpose;

/// Bytes that one access of a thread moves at most.
const ACCESS_BYTES: i64 = 16;
/// Bytes of global memory that are moved together.
const SECTOR_BYTES: i64 = 32;

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "convert-imap-to-gpu",
    summary: "Turn operations of imap on buffers into the code of one thread of a GPU",
    anchor: "gpu.func",
    options: &[
        PassOption {
            name: "block-size",
            description: "Threads of a block, a multiple of 32",
            default: "256",
        },
        PassOption { name: "blocks", description: "Blocks that keep the GPU busy", default: "1" },
        PassOption {
            name: "strict-fp",
            description: "Neither reassociate nor contract floating-point operations",
            default: "false",
        },
    ],
    dependent_dialects: &["arith", "gpu", "llvm", "memref", "scf", "vector"],
    run,
};

fn run(run: &PassRun) -> Result<(), Failure> {
    let block_size = run.options.number("block-size").unwrap_or(0);
    if !(WARP..=1024).contains(&block_size) || block_size % WARP != 0 {
        Report::op_error(run.op, "'block-size' expects a multiple of 32, at most 1024").emit();
        return Err(Failure);
    }
    let (busy, choices) = (run.number("blocks")?, Choices::of(run)?);
    let ops = converted(run.op);
    let Some((op, others)) = ops.split_first() else { return Ok(()) };
    for op in &ops {
        if let Some(step) = Schedule::of(*op).and_then(|it| it.steps.into_iter().next()) {
            let why = format!("has the step '{step}', which the code of a GPU cannot obey");
            Report::op_error(*op, why).emit();
            return Err(Failure);
        }
    }
    run.enter(*op);
    let context = mlir::context_of(run.op);
    let sizes = mlir::parse_attribute(context, &format!("array<i32: {block_size}, 1, 1>"));
    mlir::set_attribute(run.op, "known_block_size", sizes);
    if let Some(loops) = tiles::loops_around(*op) {
        let grid = Grid::new(&Builder::before(loops), run.op, block_size, busy);
        return tiles::convert(loops, &grid, choices);
    }
    if let Some(second) = others.first() {
        let why = "is a second operation of this kernel, whose blocks do not wait for each other";
        Report::op_error(*second, format!("{why}; give it a kernel of its own")).emit();
        return Err(Failure);
    }
    let builder = Builder::before(*op);
    let grid = Grid::new(&builder, run.op, block_size, busy);
    let generic = Generic::cast(*op).map(|it| convert(it, &builder, &grid, choices));
    let scan = || Scan::cast(*op).map(|it| scan::convert(it, &builder, &grid, choices));
    let scatter = || Scatter::cast(*op).map(|it| scatter::convert(it, &builder, &grid, choices));
    let sort = || Sort::cast(*op).map(|it| sort::convert(it, &builder, &grid, choices));
    let converted = generic.or_else(scan).or_else(scatter).or_else(sort).unwrap_or(Ok(()));
    converted.map_err(|report| {
        report.emit_on(*op);
        Failure
    })?;
    mlir::erase(*op);
    Ok(())
}

/// The first item of a thread among items that threads share, and the step to its next item.
#[derive(Clone, Copy)]
struct Share<'c> {
    first: Val<'c>,
    step: Val<'c>,
}

/// Shared memory through which threads exchange the values of an accumulator.
struct Exchanged<'c> {
    element: Type<'c>,
    count: i64,
    /// Accumulators of one operation use different memory.
    accumulator: usize,
    memory: Val<'c>,
}

/// The threads of the grid.
struct Grid<'c> {
    kernel: Op<'c>,
    block_size: i64,
    /// Blocks that keep the GPU busy.
    busy: i64,
    /// The number of the thread in its block.
    thread: Val<'c>,
    block: Val<'c>,
    num_blocks: Val<'c>,
    /// Whether these are the threads of one block, of which the shared memory holds a tile.
    is_tile: bool,
    /// Shared memory that operations use one after the other.
    exchanged: Rc<RefCell<Vec<Exchanged<'c>>>>,
}

impl<'c> Grid<'c> {
    fn new(builder: &Builder<'c>, kernel: Op<'c>, block_size: i64, busy: i64) -> Self {
        let along_x = mlir::parse_attribute(builder.context, "#gpu<dim x>");
        let read = |name: &str| {
            builder.value_with(name, &[], builder.index_type(), &[("dimension", along_x)])
        };
        Self {
            kernel,
            block_size,
            busy,
            thread: read("gpu.thread_id"),
            block: read("gpu.block_id"),
            num_blocks: read("gpu.grid_dim"),
            is_tile: false,
            exchanged: Rc::default(),
        }
    }

    /// The share of a group of `size` threads in the points of the grid.
    fn groups(&self, builder: &Builder<'c>, size: i64) -> Share<'c> {
        let per_block = self.block_size / size;
        if per_block == 1 {
            return Share { first: self.block, step: self.num_blocks };
        }
        let in_block = divide(builder, self.thread, size);
        let first = builder.add_index(builder.scale_index(self.block, per_block), in_block);
        Share { first, step: builder.scale_index(self.num_blocks, per_block) }
    }

    /// The share of a thread in the work of its group of `size` threads.
    fn lanes(&self, builder: &Builder<'c>, size: i64) -> Share<'c> {
        let first = match size == self.block_size {
            true => self.thread,
            false => remainder(builder, self.thread, size),
        };
        Share { first, step: builder.index(size) }
    }

    /// Shared memory of a block for so many values of a type.
    fn shared(&self, builder: &Builder<'c>, element: Type<'c>, count: i64) -> Val<'c> {
        self.shared_of_shape(builder, element, &[count])
    }

    /// Shared memory of a block for so many elements of a buffer.
    fn shared_like(&self, builder: &Builder<'c>, buffer: Val<'c>, count: i64) -> Val<'c> {
        let element = mlir::element_type(buffer.r#type());
        self.shared(builder, mlir::signless(builder.context, element), count)
    }

    /// Shared memory of a block for a value per thread, or per warp, of an accumulator. Other operations of the kernel
    /// use the same memory, so a barrier has to precede the first store.
    fn exchanged(
        &self,
        builder: &Builder<'c>,
        element: Type<'c>,
        count: i64,
        accumulator: usize,
    ) -> Val<'c> {
        let is_same = |it: &&Exchanged| {
            (it.element, it.count, it.accumulator) == (element, count, accumulator)
        };
        let found = self.exchanged.borrow().iter().find(is_same).map(|it| it.memory);
        found.unwrap_or_else(|| {
            let memory = self.shared(builder, element, count);
            let made = Exchanged { element, count, accumulator, memory };
            self.exchanged.borrow_mut().push(made);
            memory
        })
    }

    /// Shared memory of a block for values of a type in this shape.
    fn shared_of_shape(&self, builder: &Builder<'c>, element: Type<'c>, shape: &[i64]) -> Val<'c> {
        let shape: String = shape.iter().map(|extent| format!("{extent}x")).collect();
        let ty = format!("memref<{shape}{element}, #gpu.address_space<workgroup>>");
        let ty = mlir::parse_type(builder.context, &ty);
        let count = mlir::integer_attr(self.kernel, WORKGROUP).unwrap_or(0);
        mlir::set_attribute(self.kernel, WORKGROUP, mlir::i64_attr(builder.context, count + 1));
        // A thread accesses vectors of it.
        let aligned = format!(
            "[{}]",
            vec![format!("{{llvm.align = {ACCESS_BYTES}}}"); count as usize + 1].join(", ")
        );
        let aligned = mlir::parse_attribute(builder.context, &aligned);
        mlir::set_attribute(self.kernel, "workgroup_attrib_attrs", aligned);
        let body = mlir::body(self.kernel, 0).expect("a kernel has a body");
        mlir::val(body.add_argument(ty, builder.location))
    }
}

/// The number of arguments of a `gpu.func` that are shared memory.
const WORKGROUP: &str = "workgroup_attributions";

fn divide<'c>(builder: &Builder<'c>, value: Val<'c>, divisor: i64) -> Val<'c> {
    if divisor == 1 {
        return value;
    }
    builder.value("arith.divui", &[value, builder.index(divisor)], builder.index_type())
}

/// The quotient, rounded up.
fn divide_up<'c>(builder: &Builder<'c>, value: Val<'c>, divisor: i64) -> Val<'c> {
    divide(builder, builder.add_index(value, builder.index(divisor - 1)), divisor)
}

fn remainder<'c>(builder: &Builder<'c>, value: Val<'c>, divisor: i64) -> Val<'c> {
    builder.value("arith.remui", &[value, builder.index(divisor)], builder.index_type())
}

/// Emits the code of an `imap.generic` on buffers.
fn convert<'c>(
    generic: Generic<'c>,
    builder: &Builder<'c>,
    grid: &Grid<'c>,
    choices: Choices,
) -> Result<(), Report<'c>> {
    let nest = Nest::new(generic.into(), choices)?;
    let plan = order::plan(&nest).ok_or_else(|| Report::error(circular()))?;
    let scope = nest.outer_scope(builder);
    let (dims, ranges) = match &plan {
        Plan::Registers { dims, ranges } => (dims.clone(), ranges),
        Plan::Rows { row, dims, ranges } => ([&dims[..], &[*row]].concat(), ranges),
    };
    if let Some(product) = Product::of(&nest, &dims, ranges, (grid.block_size, grid.busy)) {
        product.build(&nest, builder, &scope, grid);
        return Ok(());
    }
    let transpose = if grid.is_tile { None } else { Transpose::of(&nest, &dims) };
    if let Some(transpose) = transpose {
        transpose.build(&nest, builder, &scope, grid);
        return Ok(());
    }
    match plan {
        Plan::Registers { dims, ranges } => {
            match folds::group_size(&nest, &ranges, grid.block_size) {
                1 => points::points(&nest, builder, &scope, grid, &dims, &ranges),
                size => folds::groups(&nest, builder, &scope, grid, &dims, (&ranges, size)),
            }
        }
        Plan::Rows { ranges, .. } => {
            let vars = (&dims[..], &ranges[..]);
            let busy = grid.busy.saturating_mul(grid.block_size);
            match columns::length(&nest, vars, (grid.block_size, busy)) {
                Some(length) => columns::fold(&nest, builder, &scope, grid, vars, length),
                None => points::points(&nest, builder, &scope, grid, &dims, &ranges),
            }
        }
    }
    Ok(())
}

/// Variables that together are one index, with the values of their bounds.
struct Space<'c> {
    /// The first value and the number of values, from the outermost variable to the innermost.
    vars: Vec<(Var, Val<'c>, Val<'c>)>,
    /// The number of points.
    total: Val<'c>,
}

impl<'c> Space<'c> {
    fn new(nest: &Nest<'c>, builder: &Builder<'c>, scope: &mut Scope<'c>, vars: &[Var]) -> Self {
        let index = builder.index_type();
        let mut total = builder.index(1);
        let vars: Vec<_> = vars
            .iter()
            .map(|var| {
                let (lower, end) = nest.loop_bounds(builder, scope, *var, &[]);
                let extent = builder.value("arith.subi", &[end, lower], index);
                let extent = builder.value("arith.maxsi", &[extent, builder.index(0)], index);
                total = builder.value("arith.muli", &[total, extent], index);
                (*var, lower, extent)
            })
            .collect();
        Self { vars, total }
    }

    /// The loop over the points of a share.
    fn each(
        &self,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        share: Share<'c>,
        body: &mut dyn FnMut(&Builder<'c>, &Scope<'c>),
    ) {
        let bounds = (share.first, self.total, share.step);
        loops::build_for(builder, bounds, &[], &mut |builder, point, _| {
            let mut scope = scope.clone();
            self.enter(builder, &mut scope, point, 1);
            body(builder, &scope);
            Vec::new()
        });
    }

    /// Notes the values of the variables at a point. The innermost variable advances by `stride` per point.
    fn enter(&self, builder: &Builder<'c>, scope: &mut Scope<'c>, point: Val<'c>, stride: i64) {
        let index = builder.index_type();
        let mut left = point;
        for (number, (var, lower, extent)) in self.vars.iter().enumerate().rev() {
            let stride = if number + 1 == self.vars.len() { stride } else { 1 };
            let value = if number == 0 {
                left
            } else {
                let steps = if stride == 1 { *extent } else { divide(builder, *extent, stride) };
                let value = builder.value("arith.remui", &[left, steps], index);
                left = builder.value("arith.divui", &[left, steps], index);
                value
            };
            let value = builder.add_index(builder.scale_index(value, stride), *lower);
            scope.values.insert(*var, value);
        }
    }
}
