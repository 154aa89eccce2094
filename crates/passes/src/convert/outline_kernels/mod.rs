//! `imap-outline-kernels`: each operation on buffers becomes a kernel for a device, which the function starts.
//!
//! Before:
//!
//! ```mlir
//! func.func @f(%x: memref<?xf32>, %n: index, %y: memref<8xf32>) {
//!   imap.generic .. runtime(%n : index) ins(%x[i] : memref<?xf32>) outs(%y[i] : memref<8xf32>) ..
//! }
//! ```
//!
//! After:
//!
//! ```mlir
//! func.func @f(%x: memref<?xf32>, %n: index, %y: memref<8xf32>) {
//!   %base, %offset, %size, %stride = memref.extract_strided_metadata %x : ..
//!   imap.launch @kernels::@f_0 threads(%c8) args(%n, %x, %size, %y : ..)
//! }
//! gpu.module @kernels {
//!   gpu.func @f_0(%n: i64, %x: memref<f32> {llvm.noalias}, %size: i64, %y: memref<8xf32> {llvm.noalias}) kernel {
//!     .. // the operation, with %x under its type again
//!     gpu.return
//!   }
//! }
//! ```
//!
//! An operation is one of `imap`, a copy of buffers that are not contiguous, or an outermost nest of loops that
//! stores elements. The latter comes from FFT and linear algebra. The threads divide it as `distribute_loops.rs`
//! describes. Memory that is allocated in the body of independent loops gets a place for each of their points.
//!
//! Independent loops over tiles, an `scf.parallel` with operations of `imap`, become one kernel, whose blocks share the
//! tiles. The tile of an operand that several operations read is copied before (`tiles.rs`).
//!
//! Loops that give scalars, and what computes with these up to the last store, become the only iteration of a loop,
//! and so one kernel, unless the host uses a scalar.
//!
//! A kernel takes a buffer of static sizes, strides and offset as it is. Another one is a pointer, and what its type
//! leaves open are arguments of their own. Constants are copied. Operations that do the same on arguments of the
//! same types, which share memory in the same way, share a kernel.
//!
//! The number of threads is the number of points of the operation, times the number of threads that fold a point
//! together. Each tile has a block. Threads of more than `max-blocks` blocks are not started: others do their work. For dynamic sizes it is computed from the size of the first destination.
//!
//! Remark: how many operations of a function were outlined, and to how many kernels.

mod tiles;

use super::{
    distribute_loops::{Division, distribute, stores},
    generic_builder::GenericBuilder,
    index_emitter::IndexMath,
};
use crate::{
    analysis::{
        buffers::{
            VIEWS, argument_attributes, buffers_alone, needs_loops, open_parts, parts,
            values_from_outside,
        },
        launches::LAUNCH,
    },
    loops::{build_alloc, build_for, memref},
    target::WARP,
};
use melior::ir::{
    Attribute, Type, TypeLike, ValueLike,
    operation::{OperationLike, OperationPrintingFlags},
    r#type::{FunctionType, MemRefType},
};
use std::collections::{HashMap, HashSet, hash_map::Entry};
use tc_dialects::{
    imap::{AnyIndexed, Combiner, INDEPENDENT, Indexed, Sort},
    mlir::{self, Builder, Op, Val, ValueMap},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::{RemarkKind, Report, remark},
};
use tc_ir::{Context, Var};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "imap-outline-kernels",
    summary: "Make a kernel for a device of each operation on buffers",
    anchor: "builtin.module",
    options: &[
        PassOption {
            name: "block-size",
            description: "Threads of a block, a multiple of 32",
            default: "256",
        },
        PassOption {
            name: "max-blocks",
            description: "The most blocks of a launch: a few times as many as the device runs at a time",
            default: "65535",
        },
    ],
    dependent_dialects: &["arith", "gpu", "imap", "memref", "nvvm", "scf"],
    run,
};

/// The module of the kernels.
const MODULE: &str = "kernels";
/// The beginnings of the names of operations that a kernel of loops cannot hold.
const REFUSED: [&str; 5] = ["imap.", "func.", "memref.alloc", "memref.copy", "memref.get_global"];
/// Operations that repeat what they contain.
const LOOPS: [&str; 3] = ["scf.for", "scf.parallel", "scf.while"];

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    let number = |name| pass.number_in(name, 1.., "a positive number");
    let (block_size, max_blocks) = (number("block-size")?, number("max-blocks")?);
    let functions = mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "func.func"));
    let mut kernels = Kernels::new(pass, block_size, max_blocks);
    for function in functions {
        pass.enter(function);
        expand_copies(function);
        allocate_for_points(function);
        gather_scalars(function);
        let mut found = Vec::new();
        find(function, &mut found);
        found.iter().filter(|op| tiles::is_tiles(**op)).for_each(|op| tiles::stage(*op));
        let before = kernels.names.len();
        let name = mlir::string_attr(function, "sym_name").unwrap_or_default();
        for op in &found {
            pass.enter(*op);
            kernels.outline(name, *op).map_err(|report| {
                report.emit();
                Failure
            })?;
        }
        if !found.is_empty() {
            remark(
                function.location(),
                RemarkKind::Passed,
                PASS.argument,
                "operations",
                name,
                &[
                    ("Outlined", &found.len().to_string()),
                    ("Kernels", &(kernels.names.len() - before).to_string()),
                ],
            );
        }
    }
    Ok(())
}

/// Turns copies of buffers that are not contiguous, or in tiles, into operations of `imap`.
fn expand_copies(function: Op) {
    let mut copies = Vec::new();
    mlir::walk(function, &mut |op| {
        if mlir::is(op, "memref.copy") && (needs_loops(op) || is_in_tiles(op)) {
            copies.push(op);
        }
    });
    for copy in copies {
        copy_elements(&Builder::before(copy), mlir::operand(copy, 0), mlir::operand(copy, 1));
        mlir::erase(copy);
    }
}

fn is_in_tiles(op: Op) -> bool {
    mlir::parent(op).is_some_and(|it| tiles::is_tiles(it) || is_in_tiles(it))
}

/// Emits an operation of `imap` that copies a buffer.
fn copy_elements<'c>(builder: &Builder<'c>, source: Val<'c>, target: Val<'c>) {
    let ir = Context::new();
    let mut sizes = Vec::new();
    let extents = mlir::shape(source.r#type()).into_iter().enumerate();
    let extents: Vec<_> = extents
        .map(|(dim, extent)| match extent {
            Some(extent) => ir.constant(extent),
            None => {
                sizes.push((format!("n{dim}"), builder.dim(source, dim)));
                ir.runtime(sizes.len() as u32 - 1)
            }
        })
        .collect();
    let mut generic = GenericBuilder::over(&ir, &sizes, &extents);
    let place: Vec<_> = (0..extents.len()).map(|dim| ir.dim(dim as u32)).collect();
    generic.read(source, place.clone());
    generic.write(target, place, Combiner::ASSIGN);
    let built = generic.build(builder, |_, values| Ok(values.to_vec()));
    built.expect("a body that copies");
}

/// The operations of a function that become kernels, in order.
fn find<'c>(op: Op<'c>, found: &mut Vec<Op<'c>>) {
    for region in 0..op.region_count() {
        for inner in mlir::blocks(op, region).into_iter().flat_map(mlir::ops) {
            let has_maps = AnyIndexed::cast(inner).is_some() || Sort::cast(inner).is_some();
            if has_maps || tiles::is_tiles(inner) || is_nest(inner) {
                found.push(inner);
            } else {
                find(inner, found);
            }
        }
    }
}

/// Whether an operation is loops that only compute elements of buffers.
fn is_nest(op: Op) -> bool {
    LOOPS.contains(&mlir::name(op)) && op.result_count() == 0 && stores(op) && is_plain(op)
}

/// Whether a kernel of loops can hold an operation.
fn is_plain(op: Op) -> bool {
    let mut is_plain = true;
    mlir::walk(op, &mut |inner| {
        let name = mlir::name(inner);
        let computes = name == "imap.apply" || name == "imap.builtin";
        is_plain &= computes || !REFUSED.iter().any(|it| name.starts_with(it));
    });
    is_plain
}

/// Allocates the memory that each point of independent loops has for itself before the loops, for all points.
fn allocate_for_points(function: Op) {
    let mut nests = Vec::new();
    mlir::walk(function, &mut |op| {
        let is_inner = mlir::parent(op).is_some_and(|it| it.has_attribute(INDEPENDENT));
        if op.has_attribute(INDEPENDENT) && !is_inner {
            nests.push(op);
        }
    });
    for nest in nests {
        let points = Division::of(nest).points;
        let extents = points.iter().map(|it| extent(*it).map(Some)).collect::<Option<Vec<_>>>();
        let body = points.last().and_then(|it| mlir::body(*it, 0));
        let Some((extents, body)) = extents.zip(body) else { continue };
        let is_own = |op: &Op| mlir::is(*op, "memref.alloc") && op.operand_count() == 0;
        for alloc in mlir::ops(body).into_iter().filter(is_own) {
            let ty = mlir::result(alloc, 0).r#type();
            let shape = mlir::shape(ty);
            let all = memref(&[&extents[..], &shape].concat(), mlir::element_type(ty));
            let all = build_alloc(&Builder::before(nest).located(alloc.location()), all);
            let bodies = points.iter().filter_map(|it| mlir::body(*it, 0));
            let place: Vec<_> = bodies.map(|body| mlir::arguments(body)[0]).collect();
            mlir::replace(alloc, &[part_of(&Builder::before(alloc), all, &place, &shape)]);
        }
    }
}

/// The number of iterations of a loop, if it is known and the loop counts from 0 by 1.
fn extent(op: Op) -> Option<i64> {
    let constant = |number: usize| {
        let op = mlir::defining_op(mlir::operand(op, number))?;
        mlir::integer_attr(op, "value").filter(|_| mlir::is(op, "arith.constant"))
    };
    (constant(0)? == 0 && constant(2)? == 1).then(|| constant(1))?
}

/// The part of a buffer at a place in its first dimensions. `shape` is that of the others.
fn part_of<'c>(
    builder: &Builder<'c>,
    buffer: Val<'c>,
    place: &[Val<'c>],
    shape: &[Option<i64>],
) -> Val<'c> {
    let rank = shape.len();
    let mut strides = vec![1; rank];
    for dim in (1..rank).rev() {
        strides[dim - 1] = strides[dim] * shape[dim].unwrap_or(1);
    }
    let element = mlir::element_type(buffer.r#type());
    let text = |extent: &Option<i64>| format!("{}x", extent.unwrap_or(0));
    let extents: String = shape.iter().map(text).collect();
    let ty = format!("memref<{extents}{element}, strided<{strides:?}, offset: ?>>");
    let ty = mlir::parse_type(builder.context, &ty);
    let attribute = |first: i64, rest: Vec<i64>| {
        let values = [vec![first; place.len()], rest].concat();
        melior::ir::attribute::DenseI64ArrayAttribute::new(builder.context, &values).into()
    };
    let sizes = shape.iter().map(|extent| extent.unwrap_or(0)).collect();
    let attributes = [
        ("static_offsets", attribute(i64::MIN, vec![0; rank])),
        ("static_sizes", attribute(1, sizes)),
        ("static_strides", attribute(1, vec![1; rank])),
        ("operandSegmentSizes", mlir::segments(builder.context, &[1, place.len(), 0, 0])),
    ];
    builder.value_with("memref.subview", &[&[buffer], place].concat(), ty, &attributes)
}

/// Puts loops that give scalars, and what computes with these and stores, into loops of one iteration.
fn gather_scalars(op: Op) {
    for region in 0..op.region_count() {
        for block in mlir::blocks(op, region) {
            let mut run = Vec::new();
            for inner in mlir::ops(block) {
                if is_scalar_code(inner) {
                    run.push(inner);
                    continue;
                }
                gather_in(&std::mem::take(&mut run));
                gather_scalars(inner);
            }
            gather_in(&run);
        }
    }
}

/// Whether an operation loads, stores or computes scalars, or is loops that do.
fn is_scalar_code(op: Op) -> bool {
    let name = mlir::name(op);
    let is_loop = LOOPS.contains(&name) || (name == "scf.if" && !stores(op));
    let is_single = ["memref.load", "memref.store", "imap.apply", "imap.builtin"].contains(&name)
        || ["arith.", "math."].iter().any(|it| name.starts_with(it));
    (is_loop && is_plain(op)) || is_single
}

/// [`gather_scalars`] for operations that follow each other.
fn gather_in<'c>(run: &[Op<'c>]) {
    let Some(first) = run.first() else { return };
    let block = mlir::block_ref(first.block().expect("an operation in a function"));
    let places: HashMap<_, _> = run.iter().map(|op| mlir::op_key(*op)).zip(0..).collect();
    // Of each operation that depends on memory, the last one of the run that uses its results.
    let mut last_uses: Vec<Option<usize>> = Vec::new();
    for (place, op) in run.iter().enumerate() {
        let depends = |value: Val<'c>| {
            let defining = mlir::defining_op(value).map(mlir::op_key);
            defining.and_then(|key| places.get(&key)).is_some_and(|it| last_uses[*it].is_some())
        };
        let reads = mlir::is(*op, "memref.load") || 0 < op.region_count();
        if !reads && !mlir::operands(*op).into_iter().any(depends) {
            last_uses.push(None);
            continue;
        }
        let users = mlir::results(*op).into_iter().flat_map(mlir::uses);
        let users = users.map(|(user, _)| mlir::ancestor_in(user, block));
        let users = users.map(|user| places.get(&mlir::op_key(user?)).copied());
        let Some(last) = users.chain([Some(place)]).collect::<Option<Vec<_>>>() else {
            // The host needs it.
            gather_in(&run[..place]);
            return gather_in(&run[place + 1..]);
        };
        last_uses.push(last.into_iter().max());
    }
    let mut start = 0;
    while start < run.len() {
        let mut end = last_uses[start].unwrap_or(start);
        let mut place = start;
        while place < end {
            place += 1;
            end = end.max(last_uses[place].unwrap_or(place));
        }
        let parts = run[start..=end].iter().zip(&last_uses[start..=end]);
        let parts =
            parts.filter(|(op, depends)| depends.is_some() || mlir::is(**op, "memref.store"));
        let parts: Vec<_> = parts.map(|(op, _)| *op).collect();
        let has_loop = parts.iter().any(|op| LOOPS.contains(&mlir::name(*op)));
        if 1 < parts.len() && has_loop && parts.iter().any(|op| stores(*op)) {
            let before = Builder::before(run[end]);
            let bounds = (before.index(0), before.index(1), before.index(1));
            build_for(&before, bounds, &[], &mut |inside, _, _| {
                let end = inside.op("scf.yield", &[], &[]);
                parts.iter().for_each(|op| mlir::move_before(*op, end));
                mlir::erase(end);
                Vec::new()
            });
        }
        start = end + 1;
    }
}

/// The kernels of a module.
struct Kernels<'c> {
    root: Op<'c>,
    context: &'c melior::Context,
    module: Option<Op<'c>>,
    block_size: i64,
    max_blocks: i64,
    /// The names, by the text of the kernel without a name.
    names: HashMap<String, String>,
    taken: HashSet<String>,
}

impl<'c> Kernels<'c> {
    fn new(pass: &PassRun<'c>, block_size: i64, max_blocks: i64) -> Self {
        let block = mlir::body(pass.op, 0);
        let ops = block.map(mlir::ops).unwrap_or_default();
        let module = ops.into_iter().find(|op| mlir::is(*op, "gpu.module"));
        let mut taken = HashSet::new();
        for op in module.and_then(|it| mlir::body(it, 0)).map(mlir::ops).unwrap_or_default() {
            taken.extend(mlir::string_attr(op, "sym_name").map(str::to_string));
        }
        let (root, context) = (pass.op, pass.context);
        Self { root, context, module, block_size, max_blocks, names: HashMap::new(), taken }
    }

    /// The module of the kernels, which is made if there is none.
    fn module(&mut self) -> Op<'c> {
        *self.module.get_or_insert_with(|| {
            let block = mlir::body(self.root, 0).expect("a module has a body");
            let (region, _) = mlir::region_with_block(&[], self.root.location());
            let builder = Builder::at_end(self.context, block, self.root.location());
            let name = [("sym_name", mlir::string(self.context, MODULE))];
            builder.op_with("gpu.module", &[], &[], &name, vec![region])
        })
    }

    /// Replaces an operation of a function by the launch of a kernel.
    fn outline(&mut self, function: &str, op: Op<'c>) -> Result<(), Report<'c>> {
        if op.result_count() != 0 {
            let message = "is on tensors; a kernel needs buffers, so bufferize it first";
            return Err(Report::op_error(op, message));
        }
        let before = Builder::before(op);
        let threads = self.threads(&before, op);
        let most = before.index(self.block_size.saturating_mul(self.max_blocks));
        let threads = before.value("arith.minsi", &[threads, most], before.index_type());
        let (kernel, passed) = self.build(&before, op)?;
        let text = kernel.to_string_with_flags(OperationPrintingFlags::new().use_local_scope());
        let text = text.map_err(|_| Report::op_error(op, "cannot be printed"))?;
        let number = self.names.len();
        let name = match self.names.entry(text) {
            Entry::Occupied(entry) => {
                mlir::erase(kernel);
                entry.into_mut()
            }
            Entry::Vacant(entry) => {
                let mut name = format!("{}_{number}", identifier(function));
                while !self.taken.insert(name.clone()) {
                    name.push('_');
                }
                mlir::set_attribute(kernel, "sym_name", mlir::string(self.context, &name));
                entry.insert(name)
            }
        };
        let module = mlir::string_attr(self.module.expect("made for the kernel"), "sym_name");
        let symbol = format!("@{}::@{name}", module.unwrap_or(MODULE));
        let symbol = ("kernel", mlir::parse_attribute(self.context, &symbol));
        before.op_with(LAUNCH, &[&[threads], &passed[..]].concat(), &[], &[symbol], Vec::new());
        mlir::erase(op);
        Ok(())
    }

    /// Makes a kernel of an operation, without a name, and what it is started with.
    fn build(
        &mut self,
        host: &Builder<'c>,
        op: Op<'c>,
    ) -> Result<(Op<'c>, Vec<Val<'c>>), Report<'c>> {
        let is_constant = |value: &Val<'c>| {
            mlir::defining_op(*value).is_some_and(|op| mlir::is(op, "arith.constant"))
        };
        let used = values_from_outside(op);
        let (constants, used): (Vec<_>, Vec<_>) = used.into_iter().partition(is_constant);
        let alone = buffers_alone(&used).unwrap_or_default();
        let mut alone = alone.chars().map(|digit| digit == '1');
        let (mut passed, mut types, mut attributes) = (Vec::new(), Vec::new(), Vec::new());
        let mut parameters = Vec::new();
        // What threads exchange in memory is not theirs alone between barriers.
        let is_nest = is_nest(op);
        let exchanges = Sort::cast(op).is_some()
            || tiles::is_tiles(op)
            || is_nest && Division::of(op).by_blocks;
        let exchanged = if exchanges { stored_buffers(op) } else { HashSet::new() };
        let mut separate = Vec::new();
        for value in &used {
            let parameter = Parameter::of(host, *value).ok_or_else(|| {
                let message = format!(
                    "uses a value of type '{}', which a kernel cannot take",
                    value.r#type()
                );
                Report::op_error(op, message)
            })?;
            let is_alone = mlir::is_memref(value.r#type()) && alone.next() == Some(true);
            let is_exchanged = exchanged.contains(&mlir::value_key(*value));
            for (number, (passed_as, ty)) in parameter.passed.iter().enumerate() {
                passed.push(*passed_as);
                types.push(*ty);
                let is_noalias = is_alone && !is_exchanged && number == 0;
                attributes.push(argument_attributes(self.context, is_noalias));
            }
            if is_alone {
                separate.push(*value);
            }
            parameters.push(parameter);
        }
        let (region, block) = mlir::region_with_block(&types, op.location());
        let inside = Builder::at_end(self.context, block, op.location());
        let mut map = ValueMap::default();
        let mut arguments = mlir::arguments(block).into_iter();
        for (value, parameter) in used.iter().zip(&parameters) {
            let count = parameter.passed.len();
            let arguments: Vec<_> = arguments.by_ref().take(count).collect();
            map.insert(*value, parameter.rebuild(&inside, value.r#type(), &arguments));
        }
        for op in constants.into_iter().filter_map(mlir::defining_op) {
            inside.copy(op, &mut map);
        }
        let copy = inside.copy(op, &mut map);
        if is_nest {
            let separate = separate.into_iter().filter_map(|buffer| map.get(buffer));
            distribute(copy, self.block_size, &separate.collect::<Vec<_>>());
        }
        inside.op("gpu.return", &[], &[]);
        let module = mlir::body(self.module(), 0).expect("a module has a body");
        let ty: Type = FunctionType::new(self.context, &types, &[]).into();
        let sizes = format!("array<i32: {}, 1, 1>", self.block_size);
        let kernel = Builder::at_end(self.context, module, op.location()).op_with(
            "gpu.func",
            &[],
            &[],
            &[
                ("sym_name", mlir::string(self.context, "")),
                ("function_type", mlir::type_attr(ty)),
                ("arg_attrs", mlir::array(self.context, &attributes)),
                ("gpu.kernel", Attribute::unit(self.context)),
                ("known_block_size", mlir::parse_attribute(self.context, &sizes)),
            ],
            vec![region],
        );
        Ok((kernel, passed))
    }

    /// The number of threads that have work.
    fn threads(&self, builder: &Builder<'c>, op: Op<'c>) -> Val<'c> {
        let elements = |buffer: Val<'c>| {
            let extents =
                (0..mlir::shape(buffer.r#type()).len()).map(|dim| builder.dim(buffer, dim));
            let index = builder.index_type();
            let product = |all, extent| builder.value("arith.muli", &[all, extent], index);
            extents.reduce(product).unwrap_or_else(|| builder.index(1))
        };
        if let Some(sort) = Sort::cast(op) {
            return elements(sort.inputs()[0]);
        }
        if tiles::is_tiles(op) {
            return builder.scale_index(tiles::count(builder, op), self.block_size);
        }
        let Some(indexed) = AnyIndexed::cast(op) else {
            return Division::of(op).threads(builder, self.block_size);
        };
        let ir = Context::new();
        let domain = indexed.domain(&ir);
        let count = |is_wanted: fn(&Var) -> bool| {
            let mut vars = domain.vars().filter(|(var, _)| is_wanted(var));
            vars.try_fold(1i64, |all, (_, variable)| {
                let extent = variable.constant_interval(&ir)?.num_members()?;
                all.checked_mul(i64::try_from(extent).ok()?)
            })
        };
        let points = count(|var| matches!(var, Var::Dim(_)));
        let points = points.map(|points| builder.index(points));
        let points = points.or_else(|| indexed.inits().first().map(|it| elements(*it)));
        let points = points.unwrap_or_else(|| builder.index(1));
        let folded = count(|var| matches!(var, Var::Range(_)));
        let group = folded.map_or(self.block_size, |folded| match folded {
            ..WARP => 1,
            _ => folded.min(self.block_size),
        });
        if group == 1 { points } else { builder.scale_index(points, group) }
    }
}

/// The keys of the buffers that something in an operation stores to.
fn stored_buffers(op: Op) -> HashSet<usize> {
    let mut found = HashSet::new();
    let mut note = |mut buffer: Val| {
        found.insert(mlir::value_key(buffer));
        while let Some(view) =
            mlir::defining_op(buffer).filter(|it| VIEWS.contains(&mlir::name(*it)))
        {
            buffer = mlir::operand(view, 0);
            found.insert(mlir::value_key(buffer));
        }
    };
    mlir::walk(op, &mut |inner| {
        let sorted = Sort::cast(inner).map(|it| it.inits());
        let written = sorted.or_else(|| AnyIndexed::cast(inner).map(|it| it.inits()));
        written.into_iter().flatten().for_each(&mut note);
        if mlir::is(inner, "memref.store") {
            note(mlir::operand(inner, 1));
        }
    });
    found
}

/// What a kernel takes for a value: the values and the types of its parameters.
struct Parameter<'c> {
    passed: Vec<(Val<'c>, Type<'c>)>,
}

impl<'c> Parameter<'c> {
    /// `None` if a kernel cannot take a value of its type.
    fn of(host: &Builder<'c>, value: Val<'c>) -> Option<Self> {
        let (ty, index) = (value.r#type(), host.int_type(64));
        if let Ok(buffer) = MemRefType::try_from(ty) {
            let open = open_parts(buffer);
            if open.is_empty() {
                return Some(Self { passed: vec![(value, ty)] });
            }
            let element = mlir::element_type(ty);
            let base = MemRefType::contiguous(element, &[], None).into();
            let rank = mlir::shape(ty).len();
            let types = [vec![base], vec![host.index_type(); 1 + 2 * rank]].concat();
            let parts = host.op("memref.extract_strided_metadata", &[value], &types);
            let mut passed = vec![(value, base)];
            passed.extend(open.iter().map(|part| (mlir::result(parts, 1 + part), index)));
            return Some(Self { passed });
        }
        let passed_as = match mlir::integer_width(ty) {
            Some(1) => host.int_type(8),
            Some(8 | 16 | 32 | 64) if mlir::is_signless(ty) => ty,
            None if ty.is_index() => index,
            None if mlir::is_float(ty) && matches!(mlir::byte_width(ty), 2 | 4 | 8) => ty,
            _ => return None,
        };
        Some(Self { passed: vec![(value, passed_as)] })
    }

    /// The value in the kernel, from its parameters.
    fn rebuild(&self, inside: &Builder<'c>, ty: Type<'c>, parameters: &[Val<'c>]) -> Val<'c> {
        let first = parameters[0];
        let Ok(buffer) = MemRefType::try_from(ty) else {
            return match mlir::integer_width(ty) {
                _ if ty.is_index() => inside.value("arith.index_cast", &[first], ty),
                Some(1) => inside.value("arith.trunci", &[first], ty),
                _ => first,
            };
        };
        let open = open_parts(buffer);
        if open.is_empty() {
            return first;
        }
        let index = inside.index_type();
        let values =
            parameters[1..].iter().map(|it| inside.value("arith.index_cast", &[*it], index));
        let operands = [&[first], &values.collect::<Vec<_>>()[..]].concat();
        let parts = parts(buffer);
        let rank = (parts.len() - 1) / 2;
        let num_open =
            |from: usize, to: usize| open.iter().filter(|it| (from..to).contains(*it)).count();
        let groups = [1, num_open(0, 1), num_open(1, 1 + rank), num_open(1 + rank, parts.len())];
        let fixed: Vec<_> = parts.iter().map(|it| it.unwrap_or(i64::MIN)).collect();
        let attribute = |values: &[i64]| {
            melior::ir::attribute::DenseI64ArrayAttribute::new(inside.context, values).into()
        };
        let attributes = [
            ("static_offsets", attribute(&fixed[..1])),
            ("static_sizes", attribute(&fixed[1..=rank])),
            ("static_strides", attribute(&fixed[1 + rank..])),
            ("operandSegmentSizes", mlir::segments(inside.context, &groups)),
        ];
        inside.value_with("memref.reinterpret_cast", &operands, ty, &attributes)
    }
}

/// A name that every assembler takes.
fn identifier(name: &str) -> String {
    let name = name.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '_' });
    let name: String = name.collect();
    if name.starts_with(|it: char| it.is_ascii_digit()) { format!("_{name}") } else { name }
}
