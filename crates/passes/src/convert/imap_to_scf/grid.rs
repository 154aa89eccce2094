//! `convert-imap-to-gpu`: operations with maps on buffers become the code of one thread of a GPU.
//!
//! A kernel holds one `imap.generic`, which spreads over all threads of the grid, for any number of blocks:
//!
//! * *Points*: a thread computes every n-th point of the dimension variables, where n is the number of threads.
//!   Neighbouring threads have neighbouring points along the variable that `order.rs` puts innermost. In map
//!   form a thread takes several neighbouring points at once where their elements are aligned vectors.
//! * *Groups*: where neighbouring elements of the inputs lie along a range variable, a warp or a block
//!   computes each point. Its threads fold every n-th element from the identity. The values of the
//!   threads are combined by shuffles and, between warps, in shared memory. The first thread combines the
//!   result with the start and stores it.
//!
//! All threads of a group leave a loop together, so shuffles and barriers are never divergent.

use super::{
    CONVERTED, Choices, collapse,
    emit::{Nest, Scope},
    nest::{FoldBody, at_point, reduction_loops},
    order::{self, Plan},
    vectors::{extract, vector_type},
};
use crate::{convert::index_emitter::IndexMath, loops};
use melior::ir::{Attribute, BlockLike, Type, TypeLike, ValueLike};
use std::collections::BTreeMap;
use tc_dialects::{
    imap::Generic,
    mlir::{self, Builder, Op, Val},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::Report,
};
use tc_ir::{Expr, IndexingMap, Var};

/// Threads of a warp.
const WARP: i64 = 32;
/// Bytes that one access of a thread moves at most.
const ACCESS_BYTES: i64 = 16;

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
        PassOption {
            name: "strict-fp",
            description: "Neither reassociate nor contract floating-point operations",
            default: "false",
        },
    ],
    dependent_dialects: &["arith", "gpu", "memref", "scf", "vector"],
    run,
};

fn run(run: &PassRun) -> Result<(), Failure> {
    let block_size = run.options.number("block-size").unwrap_or(0);
    if !(WARP..=1024).contains(&block_size) || block_size % WARP != 0 {
        Report::op_error(run.op, "'block-size' expects a multiple of 32, at most 1024").emit();
        return Err(Failure);
    }
    let choices = Choices {
        parallel: false,
        parallel_threshold: 0,
        strict_fp: run.options.flag("strict-fp"),
        vector_bits: 0,
        vector_registers: 0,
    };
    let context = mlir::context_of(run.op);
    let sizes = mlir::parse_attribute(context, &format!("array<i32: {block_size}, 1, 1>"));
    mlir::set_attribute(run.op, "known_block_size", sizes);
    let mut ops = Vec::new();
    mlir::walk(run.op, &mut |op| {
        if CONVERTED.contains(&mlir::name(op)) {
            ops.push(op);
        }
    });
    let Some((op, others)) = ops.split_first() else { return Ok(()) };
    run.enter(*op);
    if let Some(second) = others.first() {
        let why = "is a second operation of this kernel, whose blocks do not wait for each other";
        Report::op_error(*second, format!("{why}; give it a kernel of its own")).emit();
        return Err(Failure);
    }
    let converted = match Generic::cast(*op) {
        Some(generic) => convert(run.op, generic, choices, block_size),
        None => Err(Report::error("is not supported on GPUs; only 'imap.generic' is")),
    };
    converted.map_err(|report| {
        report.emit_on(*op);
        Failure
    })
}

/// The first item of a thread among items that threads share, and the step to its next item.
#[derive(Clone, Copy)]
struct Share<'c> {
    first: Val<'c>,
    step: Val<'c>,
}

/// The threads of the grid.
struct Grid<'c> {
    kernel: Op<'c>,
    block_size: i64,
    /// The number of the thread in its block.
    thread: Val<'c>,
    block: Val<'c>,
    num_blocks: Val<'c>,
}

impl<'c> Grid<'c> {
    fn new(builder: &Builder<'c>, kernel: Op<'c>, block_size: i64) -> Self {
        let along_x = mlir::parse_attribute(builder.context, "#gpu<dim x>");
        let read = |name: &str| {
            builder.value_with(name, &[], builder.index_type(), &[("dimension", along_x)])
        };
        Self {
            kernel,
            block_size,
            thread: read("gpu.thread_id"),
            block: read("gpu.block_id"),
            num_blocks: read("gpu.grid_dim"),
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

    /// Shared memory of a block for values of a type, one per warp.
    fn shared(&self, builder: &Builder<'c>, element: Type<'c>) -> Val<'c> {
        let ty = mlir::parse_type(
            builder.context,
            &format!("memref<{}x{element}, #gpu.address_space<workgroup>>", self.block_size / WARP),
        );
        let count = mlir::integer_attr(self.kernel, WORKGROUP).unwrap_or(0);
        mlir::set_attribute(self.kernel, WORKGROUP, mlir::i64_attr(builder.context, count + 1));
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

fn remainder<'c>(builder: &Builder<'c>, value: Val<'c>, divisor: i64) -> Val<'c> {
    builder.value("arith.remui", &[value, builder.index(divisor)], builder.index_type())
}

/// Replaces an `imap.generic` on buffers.
fn convert<'c>(
    kernel: Op<'c>,
    generic: Generic<'c>,
    choices: Choices,
    block_size: i64,
) -> Result<(), Report<'c>> {
    let nest = Nest::new(generic.into(), choices)?;
    let builder = Builder::before(generic.op());
    let circular = || Report::error("has variables whose bounds depend on each other");
    let plan = order::plan(&nest, choices).ok_or_else(circular)?;
    let grid = Grid::new(&builder, kernel, block_size);
    let scope = nest.outer_scope(&builder);
    match plan {
        Plan::Registers { dims, ranges } => match group_size(&nest, &ranges, block_size) {
            1 => points(&nest, &builder, &scope, &grid, &dims, &ranges),
            size => groups(&nest, &builder, &scope, &grid, &dims, (&ranges, size)),
        },
        Plan::Rows { row, mut dims, ranges } => {
            dims.push(row);
            points(&nest, &builder, &scope, &grid, &dims, &ranges);
        }
    }
    mlir::erase(generic.op());
    Ok(())
}

/// The number of threads that fold the elements of one point.
fn group_size(nest: &Nest, ranges: &[Var], block_size: i64) -> i64 {
    let mut extents = ranges.iter().map(|var| nest.extent(*var));
    let count = extents.try_fold(1i64, |product, extent| product.checked_mul(extent?));
    match count {
        Some(count) if count < WARP => 1,
        Some(count) if count < block_size * 4 => WARP,
        _ => block_size,
    }
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

/// A thread per point.
fn points<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    grid: &Grid<'c>,
    dims: &[Var],
    ranges: &[Var],
) {
    let mut scope = scope.clone();
    let space = Space::new(nest, builder, &mut scope, dims);
    let at_once = points_at_once(nest, dims);
    let Share { first, step } = grid.groups(builder, 1);
    let end = divide(builder, space.total, at_once);
    let (narrowing, tested) =
        nest.distribute_constraints(ranges, &|var| matches!(var, Var::Range(_)));
    loops::build_for(builder, (first, end, step), &[], &mut |builder, point, _| {
        let mut scope = scope.clone();
        space.enter(builder, &mut scope, point, at_once);
        if at_once == 1 {
            at_point(nest, builder, &scope, ranges, &narrowing, &tested);
        } else {
            neighbours(nest, builder, &scope, dims[dims.len() - 1], at_once);
        }
        Vec::new()
    });
}

/// The number of neighbouring points that a thread computes at once: one 128-bit access per destination.
fn points_at_once(nest: &Nest, dims: &[Var]) -> i64 {
    let Some(inner) = dims.last() else { return 1 };
    if !nest.is_map_form() || !nest.domain.constraints.is_empty() {
        return 1;
    }
    let bytes = nest.outputs.iter().map(|it| i64::from(mlir::byte_width(it.element))).max();
    let count = bytes.map_or(1, |bytes| ACCESS_BYTES / bytes).max(1);
    let is_multiple = nest.extent(*inner).is_some_and(|extent| extent % count == 0);
    let are_vectors =
        nest.outputs.iter().all(|it| is_vector(nest, it.buffer.r#type(), &it.map, *inner, count));
    if is_multiple && are_vectors { count } else { 1 }
}

/// Whether so many neighbouring points of a variable, from a multiple of their number on, touch elements that
/// an aligned vector holds. A vector of truth values would be one of bits.
fn is_vector(nest: &Nest, buffer: Type, map: &IndexingMap, inner: Var, count: i64) -> bool {
    let Some((last, outer)) = map.results.split_last() else { return false };
    let rows_are_aligned = outer.is_empty()
        || mlir::shape(buffer).last().copied().flatten().is_some_and(|extent| extent % count == 0);
    let first = nest.ir.substitute(*last, &|var| (var == inner).then(|| nest.ir.constant(0)));
    let (lower, _) = nest.bounds_of(inner);
    map.constraints.is_empty()
        && mlir::integer_width(mlir::element_type(buffer)) != Some(1)
        && collapse::is_contiguous(buffer)
        && order::step_along(nest, map, inner) == Some(1)
        && rows_are_aligned
        && is_multiple_of(nest, first, count)
        && is_multiple_of(nest, lower, count)
}

/// Whether an expression is seen to be a multiple of a number.
fn is_multiple_of(nest: &Nest, expr: Expr, number: i64) -> bool {
    let Some(linear) = nest.ir.linear_terms(expr) else { return false };
    linear.constant % number == 0
        && linear.terms.iter().all(|(_, coefficient)| coefficient % number == 0)
}

/// Computes neighbouring points with one access per operand whose elements are neighbours.
fn neighbours<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    inner: Var,
    count: i64,
) {
    let mut scope = scope.clone();
    // By input, the elements at all points.
    let mut loaded: BTreeMap<usize, Vec<Val<'c>>> = BTreeMap::new();
    for (number, input) in nest.inputs.iter().enumerate() {
        let ty = input.buffer.r#type();
        if !input.is_used || !is_vector(nest, ty, &input.map, inner, count) {
            continue;
        }
        let vector = vector_type(mlir::element_type(ty), count);
        let indices = nest.exprs(builder, &mut scope, &input.map.results, true);
        let operands = [&[scope.buffer(input.buffer)], &indices[..]].concat();
        let attributes = [aligned(builder, vector, count)];
        let elements = builder.value_with("vector.load", &operands, vector, &attributes);
        loaded.insert(number, (0..count).map(|place| extract(builder, elements, place)).collect());
    }
    let computed: Vec<_> = (0..count)
        .map(|point| {
            let mut scope = scope.clone();
            let value = builder.add_index(scope.values[&inner], builder.index(point));
            scope.values.insert(inner, value);
            scope.loaded = loaded
                .iter()
                .map(|(number, elements)| (*number, elements[point as usize]))
                .collect();
            nest.compute(builder, &mut scope)
        })
        .collect();
    for (number, output) in nest.outputs.iter().enumerate() {
        let elements: Vec<_> = computed.iter().map(|values| values[number]).collect();
        let vector = vector_type(output.element, count);
        let value = builder.value("vector.from_elements", &elements, vector);
        let indices = nest.exprs(builder, &mut scope, &output.map.results, true);
        let operands = [&[value, scope.buffer(output.buffer)], &indices[..]].concat();
        let attributes = [aligned(builder, vector, count)];
        builder.op_with("vector.store", &operands, &[], &attributes, vec![]);
    }
}

/// The attribute that states that an access is aligned to the size of its vector, or to one access.
fn aligned<'c>(
    builder: &Builder<'c>,
    vector: Type<'c>,
    count: i64,
) -> (&'static str, Attribute<'c>) {
    let bytes = count * i64::from(mlir::byte_width(mlir::element_type(vector)));
    ("alignment", mlir::i64_attr(builder.context, bytes.min(ACCESS_BYTES)))
}

/// A group of threads per point.
fn groups<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    grid: &Grid<'c>,
    dims: &[Var],
    (ranges, size): (&[Var], i64),
) {
    let mut scope = scope.clone();
    let space = Space::new(nest, builder, &mut scope, dims);
    let workers = grid.groups(builder, size);
    let lanes = grid.lanes(builder, size);
    let shared: Vec<_> = match WARP < size {
        true => nest.accumulators.iter().map(|it| grid.shared(builder, it.ty)).collect(),
        false => Vec::new(),
    };
    let tested: Vec<_> = (0..nest.domain.constraints.len()).collect();
    let bounds = (workers.first, space.total, workers.step);
    loops::build_for(builder, bounds, &[], &mut |builder, point, _| {
        let mut scope = scope.clone();
        space.enter(builder, &mut scope, point, 1);
        let identities: Vec<_> =
            nest.accumulators.iter().map(|it| it.build_identity(builder)).collect();
        let mut body = |builder: &Builder<'c>, scope: &Scope<'c>, held: &[Val<'c>]| {
            nest.guarded(builder, scope, &tested, held, &mut |builder, scope| {
                nest.fold(builder, scope, held)
            })
        };
        let folded = shared_ranges(nest, builder, &scope, ranges, lanes, &identities, &mut body);
        let mut folded = across_warp(nest, builder, &scope, folded, WARP);
        if WARP < size {
            folded = across_block(nest, builder, &scope, grid, &shared, folded);
        }
        let is_first = builder.compare_int("eq", lanes.first, builder.index(0));
        loops::build_if(
            builder,
            is_first,
            &mut |builder| {
                let mut scope = scope.clone();
                let starts: Vec<_> = (0..nest.accumulators.len())
                    .map(|number| nest.start(builder, &mut scope, number))
                    .collect();
                let folded = nest.combine(builder, &mut scope, &starts, &folded);
                for (number, value) in
                    nest.finish(builder, &mut scope, folded).into_iter().enumerate()
                {
                    nest.store_output(builder, &mut scope, number, value);
                }
                Vec::new()
            },
            &mut |_| Vec::new(),
        );
        Vec::new()
    });
}

/// The loops over range variables, shared by the threads of a group. If bounds depend on other range
/// variables, the threads share the innermost loop, otherwise all points.
fn shared_ranges<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    ranges: &[Var],
    lanes: Share<'c>,
    carried: &[Val<'c>],
    body: &mut FoldBody<'_, 'c>,
) -> Vec<Val<'c>> {
    let mut scope = scope.clone();
    let is_fixed = |var: &Var| nest.bound_needs(*var).iter().all(|it| !ranges.contains(it));
    if ranges.iter().all(is_fixed) {
        let space = Space::new(nest, builder, &mut scope, ranges);
        let bounds = (lanes.first, space.total, lanes.step);
        return loops::build_for(builder, bounds, carried, &mut |builder, point, carried| {
            let mut scope = scope.clone();
            space.enter(builder, &mut scope, point, 1);
            body(builder, &scope, carried)
        });
    }
    let Some((inner, outer)) = ranges.split_last() else { return body(builder, &scope, carried) };
    let none = BTreeMap::new();
    let outer = (outer, false);
    reduction_loops(nest, builder, &scope, outer, &none, carried, &mut |builder, scope, carried| {
        let mut scope = scope.clone();
        let (lower, end) = nest.loop_bounds(builder, &mut scope, *inner, &[]);
        let bounds = (builder.add_index(lower, lanes.first), end, lanes.step);
        loops::build_for(builder, bounds, carried, &mut |builder, value, carried| {
            let mut scope = scope.clone();
            scope.values.insert(*inner, value);
            body(builder, &scope, carried)
        })
    })
}

/// Combines the values of so many neighbouring threads of a warp. All of them get the result.
fn across_warp<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    mut values: Vec<Val<'c>>,
    count: i64,
) -> Vec<Val<'c>> {
    let mut offset = count / 2;
    while 0 < offset {
        let others: Vec<_> = values.iter().map(|value| exchange(builder, *value, offset)).collect();
        values = nest.combine(builder, &mut scope.clone(), &values, &others);
        offset /= 2;
    }
    values
}

/// Combines the values of the warps of a block, which each thread of a warp has. The threads of the first
/// warp get the result.
fn across_block<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    grid: &Grid<'c>,
    shared: &[Val<'c>],
    values: Vec<Val<'c>>,
) -> Vec<Val<'c>> {
    let num_warps = grid.block_size / WARP;
    let warp = divide(builder, grid.thread, WARP);
    let lane = remainder(builder, grid.thread, WARP);
    let is_first = builder.compare_int("eq", lane, builder.index(0));
    // The values of the point before have been read.
    builder.op("gpu.barrier", &[], &[]);
    loops::build_if(
        builder,
        is_first,
        &mut |builder| {
            for (buffer, value) in shared.iter().zip(&values) {
                builder.op("memref.store", &[*value, *buffer, warp], &[]);
            }
            Vec::new()
        },
        &mut |_| Vec::new(),
    );
    builder.op("gpu.barrier", &[], &[]);
    let is_there = builder.compare_int("ult", lane, builder.index(num_warps));
    let own = loops::build_if(
        builder,
        is_there,
        &mut |builder| {
            let load = |buffer: &Val<'c>| {
                let ty = mlir::element_type(buffer.r#type());
                builder.value("memref.load", &[*buffer, lane], ty)
            };
            shared.iter().map(load).collect()
        },
        &mut |builder| nest.accumulators.iter().map(|it| it.build_identity(builder)).collect(),
    );
    across_warp(nest, builder, scope, own, (num_warps as u64).next_power_of_two() as i64)
}

/// The value that the thread has whose number in the warp differs in the bit `offset`.
fn exchange<'c>(builder: &Builder<'c>, value: Val<'c>, offset: i64) -> Val<'c> {
    let i32_type = builder.int_type(32);
    let mode = mlir::parse_attribute(builder.context, "#gpu<shuffle_mode xor>");
    let shuffle = |word: Val<'c>| {
        let operands = [word, builder.integer(i32_type, offset), builder.integer(i32_type, WARP)];
        let types = [i32_type, builder.int_type(1)];
        mlir::result(
            builder.op_with("gpu.shuffle", &operands, &types, &[("mode", mode)], vec![]),
            0,
        )
    };
    let ty = value.r#type();
    if ty.is_index() {
        let wide = builder.value("arith.index_cast", &[value], builder.int_type(64));
        let found = exchange(builder, wide, offset);
        return builder.value("arith.index_cast", &[found], ty);
    }
    let bits = mlir::integer_width(ty).unwrap_or_else(|| 8 * mlir::byte_width(ty));
    let integer = builder.int_type(bits);
    let as_bits = match ty == integer {
        true => value,
        false => builder.value("arith.bitcast", &[value], integer),
    };
    let found = match bits {
        32 => shuffle(as_bits),
        64 => {
            let low = builder.value("arith.trunci", &[as_bits], i32_type);
            let shift = builder.integer(integer, 32);
            let high = builder.value("arith.shrui", &[as_bits, shift], integer);
            let high = builder.value("arith.trunci", &[high], i32_type);
            let low = builder.value("arith.extui", &[shuffle(low)], integer);
            let high = builder.value("arith.extui", &[shuffle(high)], integer);
            let high = builder.value("arith.shli", &[high, shift], integer);
            builder.value("arith.ori", &[high, low], integer)
        }
        _ => {
            let wide = builder.value("arith.extui", &[as_bits], i32_type);
            builder.value("arith.trunci", &[shuffle(wide)], integer)
        }
    };
    if ty == integer { found } else { builder.value("arith.bitcast", &[found], ty) }
}
