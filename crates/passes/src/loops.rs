//! Builders of `scf` loops and of the memory that they use.

use melior::ir::{Attribute, Type, ValueLike, operation::OperationLike, r#type::MemRefType};
use tc_dialects::{
    imap::{INDEPENDENT, SCRATCH},
    mlir::{self, Builder, Op, Val},
};

/// Bytes that temporaries are aligned to, also those that upstream bufferization allocates: the widest vector, and a line
/// of the caches.
pub const ALIGNMENT: i64 = 64;

/// Whether a buffer is row-major without gaps.
pub fn has_identity_layout(ty: Type) -> bool {
    ty == memref(&mlir::shape(ty), mlir::element_type(ty))
}

/// A buffer that is row-major without gaps.
pub fn memref<'c>(shape: &[Option<i64>], element: Type<'c>) -> Type<'c> {
    let shape: Vec<i64> = shape.iter().map(|extent| extent.unwrap_or(i64::MIN)).collect();
    MemRefType::contiguous(element, &shape, None).into()
}

/// Emits the allocation of a temporary of a `memref` type of static shape.
pub fn build_alloc<'c>(builder: &Builder<'c>, ty: Type<'c>) -> Val<'c> {
    builder.value_with("memref.alloc", &[], ty, &alloc_attributes(builder, 0))
}

/// Emits the allocation of memory inside of an operation, of a `memref` type with so many dynamic
/// extents.
pub fn build_scratch<'c>(builder: &Builder<'c>, ty: Type<'c>, extents: &[Val<'c>]) -> Val<'c> {
    let mut attributes = alloc_attributes(builder, extents.len()).to_vec();
    attributes.push((SCRATCH, Attribute::unit(builder.context)));
    builder.value_with("memref.alloc", extents, ty, &attributes)
}

/// Emits the allocation of memory on the stack of a thread, of a `memref` type of static shape.
pub fn build_stack<'c>(builder: &Builder<'c>, ty: Type<'c>) -> Val<'c> {
    builder.value_with("memref.alloca", &[], ty, &alloc_attributes(builder, 0))
}

fn alloc_attributes<'c>(
    builder: &Builder<'c>,
    num_extents: usize,
) -> [(&'static str, Attribute<'c>); 2] {
    [
        ("alignment", mlir::i64_attr(builder.context, ALIGNMENT)),
        ("operandSegmentSizes", mlir::segments(builder.context, &[num_extents, 0])),
    ]
}

/// Emits the load of an element of a buffer.
pub fn build_load<'c>(builder: &Builder<'c>, buffer: Val<'c>, indices: &[Val<'c>]) -> Val<'c> {
    let operands = [&[buffer], indices].concat();
    builder.value("memref.load", &operands, mlir::element_type(buffer.r#type()))
}

/// Emits the store of a value in an element of a buffer.
pub fn build_store<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    buffer: Val<'c>,
    indices: &[Val<'c>],
) {
    builder.op("memref.store", &[&[value, buffer], indices].concat(), &[]);
}

/// What fills a loop: from the index and the carried values, the next carried values.
pub type ForBody<'a, 'c> = dyn FnMut(&Builder<'c>, Val<'c>, &[Val<'c>]) -> Vec<Val<'c>> + 'a;

/// Emits `scf.for` from `lower` to `upper`, which is excluded, and returns its results.
/// `body` gets the index and the carried values, and returns the next carried values. If the upper bound is the sum of
/// the lower one and a constant, the loop counts from 0: LLVM then knows how often it runs.
pub fn build_for<'c>(
    builder: &Builder<'c>,
    (lower, upper, step): (Val<'c>, Val<'c>, Val<'c>),
    inits: &[Val<'c>],
    body: &mut ForBody<'_, 'c>,
) -> Vec<Val<'c>> {
    if let Some(length) = constant_above(upper, lower) {
        let bounds = (builder.index(0), length, step);
        return build_for(builder, bounds, inits, &mut |inside, offset, carried| {
            body(inside, add_indices(inside, lower, offset), carried)
        });
    }
    let carried: Vec<_> = inits.iter().map(|value| value.r#type()).collect();
    let arguments = [vec![builder.index_type()], carried.clone()].concat();
    let (region, block) = mlir::region_with_block(&arguments, builder.location);
    let operands = [&[lower, upper, step], inits].concat();
    let op = builder.op_with("scf.for", &operands, &carried, &[], vec![region]);
    let inside = Builder::at_end(builder.context, block, builder.location);
    let arguments = mlir::arguments(block);
    let yielded = body(&inside, arguments[0], &arguments[1..]);
    inside.op("scf.yield", &yielded, &[]);
    mlir::results(op)
}

/// The constant that is added to `base` for a value.
fn constant_above<'c>(value: Val<'c>, base: Val<'c>) -> Option<Val<'c>> {
    let op = mlir::defining_op(value).filter(|it| mlir::is(*it, "arith.addi"))?;
    let constant = mlir::operand(op, 1);
    (mlir::operand(op, 0) == base && mlir::constant_of(constant).is_some()).then_some(constant)
}

/// Emits a loop from 0 to below `extent` whose iterations are [`INDEPENDENT`].
pub fn build_independent<'c>(
    builder: &Builder<'c>,
    extent: Val<'c>,
    body: &mut dyn FnMut(&Builder<'c>, Val<'c>),
) {
    let (region, block) = mlir::region_with_block(&[builder.index_type()], builder.location);
    let operands = [builder.index(0), extent, builder.index(1)];
    let independent = [(INDEPENDENT, Attribute::unit(builder.context))];
    builder.op_with("scf.for", &operands, &[], &independent, vec![region]);
    let (inside, arguments) = builder.inside(block);
    body(&inside, arguments[0]);
    inside.op("scf.yield", &[], &[]);
}

/// Emits `scf.while` over carried values and returns the last ones. `goes_on` computes the condition
/// from the carried values, `body` the next carried values.
pub fn build_while<'c>(
    builder: &Builder<'c>,
    inits: &[Val<'c>],
    goes_on: &mut dyn FnMut(&Builder<'c>, &[Val<'c>]) -> Val<'c>,
    body: &mut dyn FnMut(&Builder<'c>, &[Val<'c>]) -> Vec<Val<'c>>,
) -> Vec<Val<'c>> {
    let types: Vec<_> = inits.iter().map(|value| value.r#type()).collect();
    let (before, before_block) = mlir::region_with_block(&types, builder.location);
    let (after, after_block) = mlir::region_with_block(&types, builder.location);
    let inside = Builder::at_end(builder.context, before_block, builder.location);
    let carried = mlir::arguments(before_block);
    let condition = goes_on(&inside, &carried);
    inside.op("scf.condition", &[&[condition], &carried[..]].concat(), &[]);
    let inside = Builder::at_end(builder.context, after_block, builder.location);
    let next = body(&inside, &mlir::arguments(after_block));
    inside.op("scf.yield", &next, &[]);
    mlir::results(builder.op_with("scf.while", inits, &types, &[], vec![before, after]))
}

/// The attribute of a function that parallel loops call.
pub const IN_THREAD: &str = "tc.in_thread";

/// Whether an operation is in a parallel loop, or in a function that one calls.
pub fn is_in_parallel(op: Op) -> bool {
    ["scf.parallel", "scf.forall"].iter().any(|it| mlir::ancestor(op, it).is_some())
        || mlir::ancestor(op, "func.func").is_some_and(|it| it.has_attribute(IN_THREAD))
}

/// Emits the product of two indices, which does not overflow.
pub fn multiply_indices<'c>(builder: &Builder<'c>, lhs: Val<'c>, rhs: Val<'c>) -> Val<'c> {
    match (mlir::constant_of(lhs), mlir::constant_of(rhs)) {
        (Some(1), _) => rhs,
        (_, Some(1)) => lhs,
        _ => without_overflow(builder, "arith.muli", lhs, rhs),
    }
}

/// Emits the sum of two indices, which does not overflow.
pub fn add_indices<'c>(builder: &Builder<'c>, lhs: Val<'c>, rhs: Val<'c>) -> Val<'c> {
    match (mlir::constant_of(lhs), mlir::constant_of(rhs)) {
        (Some(0), _) => rhs,
        (_, Some(0)) => lhs,
        _ => without_overflow(builder, "arith.addi", lhs, rhs),
    }
}

fn without_overflow<'c>(builder: &Builder<'c>, name: &str, lhs: Val<'c>, rhs: Val<'c>) -> Val<'c> {
    let flags = mlir::parse_attribute(builder.context, "#arith.overflow<nsw>");
    builder.value_with(name, &[lhs, rhs], builder.index_type(), &[("overflowFlags", flags)])
}

/// How often an `scf.for` runs, if its bounds are constant.
pub fn trip_count(op: Op) -> Option<i64> {
    if !mlir::is(op, "scf.for") {
        return None;
    }
    let bound = |number| mlir::operand(op, number);
    constant_count(bound(0), bound(1), bound(2))
}

/// How often a loop with these bounds runs, if they are constant.
pub fn constant_count(lower: Val, upper: Val, step: Val) -> Option<i64> {
    let [lower, upper, step] = [lower, upper, step].map(mlir::constant_of);
    let (distance, step) = (upper?.checked_sub(lower?)?.max(0), step?);
    (0 < step).then(|| distance / step + i64::from(distance % step != 0))
}

/// Emits `scf.parallel` over loops given by lower bound, excluded upper bound and step.
pub fn build_parallel<'c>(
    builder: &Builder<'c>,
    loops: &[(Val<'c>, Val<'c>, Val<'c>)],
    body: &mut dyn FnMut(&Builder<'c>, &[Val<'c>]),
) {
    let indices = vec![builder.index_type(); loops.len()];
    let (region, block) = mlir::region_with_block(&indices, builder.location);
    let operands: Vec<_> = loops
        .iter()
        .map(|it| it.0)
        .chain(loops.iter().map(|it| it.1))
        .chain(loops.iter().map(|it| it.2))
        .collect();
    let segments = mlir::segments(builder.context, &[loops.len(), loops.len(), loops.len(), 0]);
    builder.op_with(
        "scf.parallel",
        &operands,
        &[],
        &[("operandSegmentSizes", segments)],
        vec![region],
    );
    let inside = Builder::at_end(builder.context, block, builder.location);
    body(&inside, &mlir::arguments(block));
    inside.op("scf.reduce", &[], &[]);
}

/// Tells LLVM how to compile a loop, by parameters of an `#llvm.loop_annotation`. Conversions pass it on to branches of the
/// `llvm` dialect, which have an attribute of this name.
pub fn annotate(op: Op, parameters: &str) {
    let text = format!("#llvm.loop_annotation<{parameters}>");
    mlir::set_attribute(op, "loop_annotation", mlir::parse_attribute(mlir::context_of(op), &text));
}

/// Emits `scf.if` and returns its results; each branch returns the values it yields.
pub fn build_if<'c>(
    builder: &Builder<'c>,
    condition: Val<'c>,
    then: &mut dyn FnMut(&Builder<'c>) -> Vec<Val<'c>>,
    otherwise: &mut dyn FnMut(&Builder<'c>) -> Vec<Val<'c>>,
) -> Vec<Val<'c>> {
    build_branches(builder, condition, &mut |inside, holds| {
        if holds { then(inside) } else { otherwise(inside) }
    })
}

/// Emits `scf.if` and returns its results; `branch` is given whether the condition holds, and
/// returns the values that the branch yields.
pub fn build_branches<'c>(
    builder: &Builder<'c>,
    condition: Val<'c>,
    branch: &mut dyn FnMut(&Builder<'c>, bool) -> Vec<Val<'c>>,
) -> Vec<Val<'c>> {
    let (first, then_block) = mlir::region_with_block(&[], builder.location);
    let (second, else_block) = mlir::region_with_block(&[], builder.location);
    let at = |block| Builder::at_end(builder.context, block, builder.location);
    // The types of the results are those of what the first branch yields, so that the
    // branches are filled before the operation that holds them exists.
    let yielded = branch(&at(then_block), true);
    at(then_block).op("scf.yield", &yielded, &[]);
    let types: Vec<_> = yielded.iter().map(|value| value.r#type()).collect();
    let other = branch(&at(else_block), false);
    at(else_block).op("scf.yield", &other, &[]);
    mlir::results(builder.op_with("scf.if", &[condition], &types, &[], vec![first, second]))
}
