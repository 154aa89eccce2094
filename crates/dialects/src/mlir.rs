//! MLIR as the passes see it: references with the lifetime of the context, and a
//! builder that inserts where it is told to.
//!
//! melior gives every reference the lifetime of what it was reached from. Passes
//! move operations between blocks, so that they need references which live as long
//! as the context; this module makes them, and holds the calls of MLIR's C API that
//! melior does not wrap. An [`Op`] must not be used after [`erase`].

mod affine;
mod builder;

pub use affine::{affine_map, affine_results, linalg_subscripts};
pub use builder::{Builder, ValueMap, copy_block};

use crate::element::ElementType;
use melior::{
    Context, ContextRef,
    ir::{
        Attribute, AttributeLike, Block, BlockLike, BlockRef, Identifier, Location, OperationRef,
        Region, RegionRef, Type, TypeLike, Value, ValueLike,
        attribute::{
            ArrayAttribute, BoolAttribute, DenseI32ArrayAttribute, DenseI64ArrayAttribute,
            DictionaryAttribute, FlatSymbolRefAttribute, FloatAttribute, IntegerAttribute,
            StringAttribute, TypeAttribute,
        },
        operation::{OperationBuilder, OperationLike},
        r#type::{FunctionType, IntegerType, RankedTensorType, TupleType},
    },
};
use mlir_sys::{MlirContext, MlirOperation};
use std::{cell::RefCell, collections::HashMap};

/// An operation of the context.
pub type Op<'c> = OperationRef<'c, 'c>;
/// A value of the context.
pub type Val<'c> = Value<'c, 'c>;
/// A block of the context.
pub type Blk<'c> = BlockRef<'c, 'c>;

/// Declares a view of the operations of one name.
macro_rules! op_view {
    ($(#[$doc:meta])* $view:ident, $name:literal) => {
        $(#[$doc])*
        #[derive(Copy, Clone, Debug)]
        pub struct $view<'c> {
            op: $crate::mlir::Op<'c>,
        }

        impl<'c> $view<'c> {
            /// The name of the operation.
            pub const NAME: &'static str = $name;

            #[doc = concat!("Views an operation as `", $name, "`, if it is one.")]
            pub fn cast(op: $crate::mlir::Op<'c>) -> Option<Self> {
                $crate::mlir::is(op, Self::NAME).then_some(Self { op })
            }

            /// The operation itself.
            pub fn op(self) -> $crate::mlir::Op<'c> {
                self.op
            }
        }
    };
}

pub(crate) use op_view;

pub(crate) fn raw(op: Op) -> MlirOperation {
    op.to_raw()
}

/// Extends the lifetime of an operation reference to that of the context.
pub fn op_ref<'c>(op: OperationRef<'c, '_>) -> Op<'c> {
    // SAFETY: the handle is the same; the module documentation says when it dies.
    unsafe { OperationRef::from_raw(op.to_raw()) }
}

/// Extends the lifetime of a value to that of the context.
pub fn val<'c>(value: impl ValueLike<'c>) -> Val<'c> {
    // SAFETY: as for `op_ref`.
    unsafe { Value::from_raw(value.to_raw()) }
}

/// Extends the lifetime of a block reference to that of the context.
pub fn block_ref<'c>(block: BlockRef<'c, '_>) -> Blk<'c> {
    // SAFETY: as for `op_ref`.
    unsafe { BlockRef::from_raw(block.to_raw()) }
}

/// The files and lines that a location names, each once, in its order.
pub fn source_lines(location: Location) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut pending = vec![location.to_raw()];
    while let Some(location) = pending.pop() {
        // SAFETY: each function is called on a location of its kind, and the buffer has as many places as it writes.
        unsafe {
            if mlir_sys::mlirLocationIsAFused(location) {
                let count = mlir_sys::mlirLocationFusedGetNumLocations(location) as usize;
                let start = pending.len();
                pending.resize(start + count, location);
                mlir_sys::mlirLocationFusedGetLocations(location, pending[start..].as_mut_ptr());
                pending[start..].reverse();
            } else if mlir_sys::mlirLocationIsAName(location) {
                pending.push(mlir_sys::mlirLocationNameGetChildLoc(location));
            } else if mlir_sys::mlirLocationIsACallSite(location) {
                pending.push(mlir_sys::mlirLocationCallSiteGetCallee(location));
            } else if mlir_sys::mlirLocationIsAFileLineColRange(location) {
                let file = mlir_sys::mlirLocationFileLineColRangeGetFilename(location);
                let file = melior::StringRef::from_raw(mlir_sys::mlirIdentifierStr(file));
                let line = mlir_sys::mlirLocationFileLineColRangeGetStartLine(location);
                let place = (file.as_str().unwrap_or_default().to_string(), line.max(0) as usize);
                if !found.contains(&place) {
                    found.push(place);
                }
            }
        }
    }
    found
}

/// Adds numbers to the location of an operation, which [`location_tags`] finds in all locations made of it.
pub fn tag_location(op: Op, numbers: &[i64]) {
    let context = context_of(op);
    let location = Location::fused(context, &[op.location()], i64_array(context, numbers));
    // SAFETY: the operation and the location are of one context.
    unsafe { mlir_sys::mlirOperationSetLocation(op.to_raw(), location.to_raw()) }
}

/// The numbers that [`tag_location`] added to a location or to one that it is made of.
pub fn location_tags(location: Location) -> Vec<Vec<i64>> {
    let (mut found, mut pending) = (Vec::new(), vec![location]);
    while let Some(location) = pending.pop() {
        if location.is_fused() {
            let metadata = location.fused_metadata();
            if !metadata.to_raw().ptr.is_null() {
                found.extend(integers_of(metadata));
            }
            pending
                .extend((0..location.fused_num_locations()).map(|it| location.fused_location(it)));
        }
    }
    found
}

/// The context of an operation.
pub fn context_of<'c>(op: Op<'c>) -> &'c Context {
    // SAFETY: the context outlives its operations.
    unsafe { context_from_raw(mlir_sys::mlirOperationGetContext(op.to_raw())) }
}

thread_local! {
    /// A `Context` is a wrapped handle, and melior's functions want a reference to the
    /// wrapper. This keeps one wrapper per handle seen; equal handles may share it.
    static CONTEXTS: RefCell<HashMap<usize, &'static ContextRef<'static>>> = RefCell::default();
}

/// A reference to the context of a handle.
///
/// # Safety
/// The context must be alive, and stay so for `'c`.
pub(crate) unsafe fn context_from_raw<'c>(raw: MlirContext) -> &'c Context {
    let wrapper = CONTEXTS.with_borrow_mut(|contexts| {
        *contexts.entry(raw.ptr as usize).or_insert_with(|| {
            // SAFETY: the wrapper does not own the context, and does nothing with it.
            Box::leak(Box::new(unsafe { ContextRef::from_raw(raw) }))
        })
    });
    // SAFETY: as for this function; the wrapper itself lives forever.
    unsafe { wrapper.to_ref() }
}

/// The name of an operation, `dialect.name`.
pub fn name<'c>(op: Op<'c>) -> &'c str {
    let name = op.name();
    let text = name.as_string_ref();
    // SAFETY: identifiers are interned in the context, and operation names are ASCII.
    unsafe {
        let raw = text.to_raw();
        str::from_utf8_unchecked(std::slice::from_raw_parts(raw.data.cast(), raw.length))
    }
}

/// Whether an operation has this name.
pub fn is(op: Op, expected: &str) -> bool {
    name(op) == expected
}

/// The operand number `index`; it must exist.
pub fn operand<'c>(op: Op<'c>, index: usize) -> Val<'c> {
    op.operand(index).expect("an operand that the operation's definition guarantees")
}

/// All operands.
pub fn operands<'c>(op: Op<'c>) -> Vec<Val<'c>> {
    (0..op.operand_count()).map(|index| operand(op, index)).collect()
}

/// The result number `index`; it must exist.
pub fn result<'c>(op: Op<'c>, index: usize) -> Val<'c> {
    val(op.result(index).expect("a result that the operation's definition guarantees"))
}

/// All results.
pub fn results<'c>(op: Op<'c>) -> Vec<Val<'c>> {
    (0..op.result_count()).map(|index| result(op, index)).collect()
}

/// The operands of one group of an operation with `operandSegmentSizes`.
pub fn operand_group<'c>(op: Op<'c>, group: usize) -> Vec<Val<'c>> {
    let Some(sizes) = op
        .attribute("operandSegmentSizes")
        .ok()
        .and_then(|attribute| DenseI32ArrayAttribute::try_from(attribute).ok())
    else {
        return Vec::new();
    };
    let size = |index| sizes.element(index).unwrap_or(0).max(0) as usize;
    let start: usize = (0..group).map(size).sum();
    (start..start + size(group)).map(|index| operand(op, index)).collect()
}

/// The only (or first) block of region `index`, if the region has one.
pub fn body<'c>(op: Op<'c>, index: usize) -> Option<Blk<'c>> {
    use melior::ir::RegionLike;
    // An index out of bounds is an error that prints the operation, and so verifies it.
    if op.region_count() <= index {
        return None;
    }
    op.region(index).ok().and_then(|region| region.first_block()).map(block_ref)
}

/// All blocks of region `index`.
pub fn blocks<'c>(op: Op<'c>, index: usize) -> Vec<Blk<'c>> {
    let mut result = Vec::new();
    let mut next = body(op, index);
    while let Some(block) = next {
        result.push(block);
        next = block.next_in_region().map(block_ref);
    }
    result
}

/// The operations of a block, in order, as they are now: the block may change while
/// they are walked.
pub fn ops<'c>(block: Blk<'c>) -> Vec<Op<'c>> {
    let mut result = Vec::new();
    let mut next = block.first_operation().map(op_ref);
    while let Some(op) = next {
        result.push(op);
        next = op.next_in_block().map(op_ref);
    }
    result
}

/// The first operation of a block.
pub fn first<'c>(block: Blk<'c>) -> Option<Op<'c>> {
    block.first_operation().map(op_ref)
}

/// The operation after another one in its block.
pub fn next<'c>(op: Op<'c>) -> Option<Op<'c>> {
    op.next_in_block().map(op_ref)
}

/// The terminator of a block that has one, by its operation's definition.
pub fn terminator<'c>(block: Blk<'c>) -> Op<'c> {
    op_ref(block.terminator().expect("a verified block ends in a terminator"))
}

/// The blocks that an operation may go to.
pub fn successors<'c>(op: Op<'c>) -> Vec<Blk<'c>> {
    // SAFETY: the operation is alive, and has as many successors.
    unsafe {
        let count = mlir_sys::mlirOperationGetNumSuccessors(op.to_raw());
        let block = |index| mlir_sys::mlirOperationGetSuccessor(op.to_raw(), index);
        (0..count).map(|index| BlockRef::from_raw(block(index))).collect()
    }
}

/// A new block directly behind another one, with arguments of these types and locations.
pub fn block_after<'c>(block: Blk<'c>, arguments: &[(Type<'c>, Location<'c>)]) -> Blk<'c> {
    let new = Block::new(arguments).into_raw();
    // SAFETY: the block stands in a region, which takes over the new one.
    unsafe {
        let region = mlir_sys::mlirBlockGetParentRegion(block.to_raw());
        mlir_sys::mlirRegionInsertOwnedBlockAfter(region, block.to_raw(), new);
        BlockRef::from_raw(new)
    }
}

/// Moves an operation and all behind it to a new block directly behind its own. The latter is left without
/// a terminator.
pub fn split_block<'c>(op: Op<'c>) -> (Blk<'c>, Blk<'c>) {
    let block = block_ref(op.block().expect("an operation of a pass is in a block"));
    let after = block_after(block, &[]);
    let mut moved = Some(op);
    while let Some(op) = moved {
        moved = next(op);
        // SAFETY: the operation leaves its block for another one that is alive.
        unsafe {
            mlir_sys::mlirOperationRemoveFromParent(op.to_raw());
            mlir_sys::mlirBlockAppendOwnedOperation(after.to_raw(), op.to_raw());
        }
    }
    (block, after)
}

/// All operations below `op`, itself included, outer ones first.
pub fn walk<'c>(op: Op<'c>, visit: &mut dyn FnMut(Op<'c>)) {
    // A worklist rather than recursion: nesting is in the hands of the input.
    let mut stack = vec![op];
    while let Some(op) = stack.pop() {
        let mut inner = Vec::new();
        for region in 0..op.region_count() {
            for block in blocks(op, region) {
                inner.extend(ops(block));
            }
        }
        visit(op);
        stack.extend(inner.into_iter().rev());
    }
}

/// The arguments of a block.
pub fn arguments<'c>(block: Blk<'c>) -> Vec<Val<'c>> {
    (0..block.argument_count())
        .map(|index| val(block.argument(index).expect("an index below the count")))
        .collect()
}

/// The operation that defines a value, unless it is a block argument.
pub fn defining_op<'c>(value: Val<'c>) -> Option<Op<'c>> {
    value.is_operation_result().then(|| {
        // SAFETY: the value is an operation's result.
        unsafe { OperationRef::from_raw(mlir_sys::mlirOpResultGetOwner(value.to_raw())) }
    })
}

/// Whether a tensor is a `tensor.empty`, of which no element is defined.
pub fn is_empty_tensor(value: Val) -> bool {
    defining_op(value).is_some_and(|op| is(op, "tensor.empty"))
}

/// The number of a value among the results of its operation, or the arguments of its
/// block.
pub fn number<'c>(value: Val<'c>) -> usize {
    // SAFETY: a value is one or the other.
    unsafe {
        if value.is_operation_result() {
            mlir_sys::mlirOpResultGetResultNumber(value.to_raw()) as usize
        } else {
            mlir_sys::mlirBlockArgumentGetArgNumber(value.to_raw()) as usize
        }
    }
}

/// The block of which a value is an argument.
pub fn argument_block<'c>(value: Val<'c>) -> Option<Blk<'c>> {
    value.is_block_argument().then(|| {
        // SAFETY: the value is a block argument.
        unsafe { BlockRef::from_raw(mlir_sys::mlirBlockArgumentGetOwner(value.to_raw())) }
    })
}

/// The operation in whose region `op` stands.
pub fn parent<'c>(op: Op<'c>) -> Option<Op<'c>> {
    op.parent_operation().map(op_ref)
}

/// The operation around the block of which a value is an argument.
pub fn argument_parent<'c>(value: Val<'c>) -> Option<Op<'c>> {
    argument_block(value)?.parent_operation().map(op_ref)
}

/// The nearest operation of this name around `op`.
pub fn ancestor<'c>(op: Op<'c>, wanted: &str) -> Option<Op<'c>> {
    let mut next = parent(op);
    while let Some(op) = next {
        if is(op, wanted) {
            return Some(op);
        }
        next = parent(op);
    }
    None
}

/// The operation of a block that is, or contains, another one.
pub fn ancestor_in<'c>(mut op: Op<'c>, block: Blk<'c>) -> Option<Op<'c>> {
    while op.block().map(block_ref) != Some(block) {
        op = parent(op)?;
    }
    Some(op)
}

/// Whether an operation stands in front of another one of its block.
pub fn is_before(first: Op, second: Op) -> bool {
    // SAFETY: both are alive and in one block.
    unsafe { mlir_sys::mlirOperationIsBeforeInBlock(first.to_raw(), second.to_raw()) }
}

/// The uses of a value: the operation and the number of its operand.
pub fn uses<'c>(value: Val<'c>) -> Vec<(Op<'c>, usize)> {
    let mut result = Vec::new();
    // SAFETY: a use is valid as long as the value's use list is not changed.
    unsafe {
        let mut next = mlir_sys::mlirValueGetFirstUse(value.to_raw());
        while !mlir_sys::mlirOpOperandIsNull(next) {
            result.push((
                OperationRef::from_raw(mlir_sys::mlirOpOperandGetOwner(next)),
                mlir_sys::mlirOpOperandGetOperandNumber(next) as usize,
            ));
            next = mlir_sys::mlirOpOperandGetNextUse(next);
        }
    }
    result
}

/// The value of an `arith.constant` of an integer or an index.
pub fn constant_of(value: Val) -> Option<i64> {
    let op = defining_op(value).filter(|op| is(*op, "arith.constant"))?;
    integer_attr(op, "value")
}

/// Lets every use of `value` use `replacement`.
pub fn replace_uses<'c>(value: Val<'c>, replacement: Val<'c>) {
    // SAFETY: both values are alive.
    unsafe { mlir_sys::mlirValueReplaceAllUsesOfWith(value.to_raw(), replacement.to_raw()) }
}

/// Gives a value another type. Its definition and its users have to agree.
pub fn set_type<'c>(value: Val<'c>, ty: Type<'c>) {
    // SAFETY: both are alive.
    unsafe { mlir_sys::mlirValueSetType(value.to_raw(), ty.to_raw()) }
}

/// Erases an operation without uses. The reference is dead afterwards.
pub fn erase(op: Op) {
    // SAFETY: the caller gives up the reference, as the module documentation says.
    unsafe { mlir_sys::mlirOperationDestroy(op.to_raw()) }
}

/// Replaces the results of an operation, and erases it.
pub fn replace<'c>(op: Op<'c>, values: &[Val<'c>]) {
    for (index, value) in values.iter().enumerate() {
        replace_uses(result(op, index), *value);
    }
    erase(op);
}

/// Creates an operation directly before another one, with its name, attributes and regions, but other
/// operands and results. The other one is left without blocks.
pub fn rebuild<'c>(op: Op<'c>, operands: &[Val<'c>], results: &[Type<'c>]) -> Op<'c> {
    rebuild_regions(op, operands, results, op.region_count())
}

/// [`rebuild`] with the first `count` regions alone.
pub fn rebuild_regions<'c>(
    op: Op<'c>,
    operands: &[Val<'c>],
    results: &[Type<'c>],
    count: usize,
) -> Op<'c> {
    use melior::ir::RegionLike;
    let attributes: Vec<_> = op.attributes().collect();
    let regions = (0..count).map(|index| {
        let region = Region::new();
        if let Ok(old) = op.region(index) {
            // SAFETY: both regions are alive.
            unsafe { mlir_sys::mlirRegionTakeBody(region.to_raw(), old.to_raw()) };
        }
        region
    });
    let new = OperationBuilder::new(name(op), op.location())
        .add_operands(operands)
        .add_results(results)
        .add_attributes(&attributes)
        .add_regions_vec(regions.collect());
    Builder::before(op).insert(new)
}

/// Moves an operation directly before another one.
pub fn move_before<'c>(op: Op<'c>, other: Op<'c>) {
    // SAFETY: both are alive and in blocks.
    unsafe { mlir_sys::mlirOperationMoveBefore(op.to_raw(), other.to_raw()) }
}

/// Sets an attribute, inherent or discardable.
pub fn set_attribute<'c>(op: Op<'c>, name: &str, attribute: Attribute<'c>) {
    // SAFETY: the operation is alive; the name is copied.
    unsafe {
        let name = mlir_sys::MlirStringRef { data: name.as_ptr().cast(), length: name.len() };
        mlir_sys::mlirOperationSetAttributeByName(op.to_raw(), name, attribute.to_raw())
    }
}

/// Removes an attribute, if it is there.
pub fn remove_attribute(op: Op, name: &str) {
    // SAFETY: the operation is alive; the name is not kept.
    unsafe {
        let name = mlir_sys::MlirStringRef { data: name.as_ptr().cast(), length: name.len() };
        mlir_sys::mlirOperationRemoveAttributeByName(op.to_raw(), name);
    }
}

/// Replaces one operand.
pub fn set_operand<'c>(op: Op<'c>, index: usize, value: Val<'c>) {
    // SAFETY: the operand exists, or MLIR asserts; both are alive.
    unsafe { mlir_sys::mlirOperationSetOperand(op.to_raw(), index as isize, value.to_raw()) }
}

/// Replaces all operands.
pub fn set_operands<'c>(op: Op<'c>, operands: &[Val<'c>]) {
    let operands: Vec<_> = operands.iter().map(|operand| operand.to_raw()).collect();
    // SAFETY: operation and values are alive; the array is copied.
    unsafe {
        mlir_sys::mlirOperationSetOperands(op.to_raw(), operands.len() as isize, operands.as_ptr());
    }
}

/// Whether a function is one that only its module calls.
pub fn is_private(function: Op) -> bool {
    string_attr(function, "sym_visibility") == Some("private")
}

/// The operation of a symbol in the outermost table around an operation.
pub fn find_symbol<'c>(op: Op<'c>, name: &str) -> Option<Op<'c>> {
    let mut table = parent(op)?;
    while let Some(around) = parent(table) {
        table = around;
    }
    let mut symbols = body(table, 0).map(ops)?.into_iter();
    symbols.find(|it| string_attr(*it, "sym_name") == Some(name))
}

/// The name of the function that an operation calls.
pub fn callee<'c>(call: Op<'c>) -> Option<&'c str> {
    call.attribute("callee").ok().and_then(symbol_of)
}

/// A string attribute's text.
pub fn string_attr<'c>(op: Op<'c>, name: &str) -> Option<&'c str> {
    op.attribute(name).ok().and_then(string_of)
}

/// The text of an attribute that is a string of UTF-8.
pub fn string_of(attribute: Attribute<'_>) -> Option<&str> {
    let attribute = StringAttribute::try_from(attribute).ok()?;
    // SAFETY: the text is interned in the context. Melior's own accessor does not take an
    // empty one, whose address is null, nor one that is not UTF-8.
    let bytes = unsafe {
        let raw = mlir_sys::mlirStringAttrGetValue(attribute.to_raw());
        if raw.length == 0 {
            return Some("");
        }
        std::slice::from_raw_parts(raw.data.cast(), raw.length)
    };
    str::from_utf8(bytes).ok()
}

/// An integer attribute's value.
pub fn integer_attr(op: Op, name: &str) -> Option<i64> {
    op.attribute(name).ok().and_then(integer_of)
}

/// The value of an attribute that is an integer.
pub fn integer_of(attribute: Attribute) -> Option<i64> {
    IntegerAttribute::try_from(attribute).ok().map(|number| number.value())
}

/// Inserts an argument into those of a block.
pub fn insert_argument<'c>(
    block: Blk<'c>,
    number: usize,
    ty: Type<'c>,
    location: Location<'c>,
) -> Val<'c> {
    // SAFETY: the block is alive, and has as many arguments before the new one.
    unsafe {
        Value::from_raw(mlir_sys::mlirBlockInsertArgument(
            block.to_raw(),
            number as isize,
            ty.to_raw(),
            location.to_raw(),
        ))
    }
}

/// Erases an argument of a block, which nothing uses.
pub fn erase_argument(block: Blk, number: usize) {
    // SAFETY: the block is alive and has the argument.
    unsafe { mlir_sys::mlirBlockEraseArgument(block.to_raw(), number as u32) };
}

/// Whether an attribute is an integer or a float.
pub fn is_number(attribute: Attribute) -> bool {
    IntegerAttribute::try_from(attribute).is_ok() || FloatAttribute::try_from(attribute).is_ok()
}

/// The value of an attribute that is an integer of at most 64 bits, of an unsigned type too.
pub fn wide_integer_of(attribute: Attribute) -> Option<i128> {
    let value = IntegerAttribute::try_from(attribute).ok()?.value();
    Some(if is_unsigned(attribute.r#type()) { (value as u64).into() } else { value.into() })
}

/// The elements of an array attribute; none if it is absent.
pub fn array_attr<'c>(op: Op<'c>, name: &str) -> Vec<Attribute<'c>> {
    op.attribute(name).map(array_of).unwrap_or_default()
}

/// The elements of an attribute that is an array; none if it is not.
pub fn array_of(attribute: Attribute<'_>) -> Vec<Attribute<'_>> {
    let Ok(array) = ArrayAttribute::try_from(attribute) else { return Vec::new() };
    (0..array.len()).filter_map(|index| array.element(index).ok()).collect()
}

/// The strings of an array attribute.
pub fn strings_attr<'c>(op: Op<'c>, name: &str) -> Vec<&'c str> {
    array_attr(op, name).into_iter().filter_map(string_of).collect()
}

/// The numbers of a dense array attribute of `i64`.
pub fn integers_attr(op: Op, name: &str) -> Vec<i64> {
    let Some(array) =
        op.attribute(name).ok().and_then(|array| DenseI64ArrayAttribute::try_from(array).ok())
    else {
        return Vec::new();
    };
    (0..array.len()).filter_map(|index| array.element(index).ok()).collect()
}

/// The entry of an attribute that is a dictionary.
pub fn dictionary_entry<'c>(attribute: Attribute<'c>, name: &str) -> Option<Attribute<'c>> {
    DictionaryAttribute::try_from(attribute).ok()?.element_by_name(name)
}

/// A dictionary with one more entry.
pub fn with_entry<'c>(
    context: &'c Context,
    attribute: Attribute<'c>,
    name: &str,
    value: Attribute<'c>,
) -> Attribute<'c> {
    let old = DictionaryAttribute::try_from(attribute).ok();
    let old = old.iter().flat_map(|it| (0..it.len()).filter_map(|number| it.element(number).ok()));
    let new = (Identifier::new(context, name), value);
    let entries: Vec<_> = old.chain([new]).collect();
    DictionaryAttribute::new(context, &entries).into()
}

/// The numbers of an attribute that is a dense array of `i64`.
pub fn integers_of(attribute: Attribute) -> Option<Vec<i64>> {
    let array = DenseI64ArrayAttribute::try_from(attribute).ok()?;
    (0..array.len()).map(|index| array.element(index).ok()).collect()
}

/// The value of an attribute that is a truth value.
pub fn bool_of(attribute: Attribute) -> Option<bool> {
    BoolAttribute::try_from(attribute).ok().map(|value| value.value())
}

/// The value of an attribute that is a floating-point number.
pub fn float_of(attribute: Attribute) -> Option<f64> {
    // SAFETY: the second function is called on such an attribute only.
    unsafe {
        mlir_sys::mlirAttributeIsAFloat(attribute.to_raw())
            .then(|| mlir_sys::mlirFloatAttrGetValueDouble(attribute.to_raw()))
    }
}

/// The name in an attribute that is a symbol reference without nesting.
pub fn symbol_of(attribute: Attribute<'_>) -> Option<&str> {
    // SAFETY: the second function is called on such an attribute only; names are interned in
    // the context.
    let bytes: &[u8] = unsafe {
        if !mlir_sys::mlirAttributeIsAFlatSymbolRef(attribute.to_raw()) {
            return None;
        }
        let raw = mlir_sys::mlirFlatSymbolRefAttrGetValue(attribute.to_raw());
        match raw.length {
            0 => &[],
            length => std::slice::from_raw_parts(raw.data.cast(), length),
        }
    };
    str::from_utf8(bytes).ok()
}

/// Inputs and results of an attribute that is a function type.
pub fn function_type_of(attribute: Attribute<'_>) -> Option<(Vec<Type<'_>>, Vec<Type<'_>>)> {
    let ty = FunctionType::try_from(TypeAttribute::try_from(attribute).ok()?.value()).ok()?;
    let inputs = (0..ty.input_count()).map(|index| ty.input(index).ok());
    let results = (0..ty.result_count()).map(|index| ty.result(index).ok());
    Some((inputs.collect::<Option<_>>()?, results.collect::<Option<_>>()?))
}

/// Inputs and results of a function, from its attribute `function_type`.
pub fn function_type<'c>(op: Op<'c>) -> Option<(Vec<Type<'c>>, Vec<Type<'c>>)> {
    function_type_of(op.attribute("function_type").ok()?)
}

/// Whether an attribute is the elements of an array that are kept apart from the text.
pub(crate) fn is_dense_resource(attribute: Attribute) -> bool {
    // SAFETY: the attribute is alive.
    unsafe { mlir_sys::mlirAttributeIsADenseResourceElements(attribute.to_raw()) }
}

/// The elements of a dense elements attribute of `count` elements with `width` bytes each, and
/// whether only one is stored, for all. Of truth values each has a byte here.
pub fn dense_bytes(attribute: Attribute, count: usize, width: usize) -> Option<(Vec<u8>, bool)> {
    // SAFETY: the functions are called on dense elements only. Their bytes belong to the
    // context, and there are as many as the number of elements that are stored says.
    unsafe {
        let raw = attribute.to_raw();
        let found = mlir_sys::mlirAttributeIsADenseElements(raw)
            .then(|| mlir_sys::mlirElementsAttrGetNumElements(raw));
        if found.is_none_or(|found| usize::try_from(found) != Ok(count)) {
            return None;
        }
        let is_splat = mlir_sys::mlirDenseElementsAttrIsSplat(raw);
        let stored = if is_splat { 1 } else { count };
        if stored == 0 {
            return Some((Vec::new(), false));
        }
        if integer_width(element_type(attribute.r#type())) == Some(1) {
            let bools =
                (0..stored).map(|at| mlir_sys::mlirDenseElementsAttrGetBoolValue(raw, at as isize));
            return Some((bools.map(u8::from).collect(), is_splat));
        }
        let data = mlir_sys::mlirDenseElementsAttrGetRawData(raw).cast::<u8>();
        Some((std::slice::from_raw_parts(data, stored.checked_mul(width)?).to_vec(), is_splat))
    }
}

/// The element that all elements of a dense elements attribute are; `None` of another attribute.
pub fn splat_of(attribute: Attribute<'_>) -> Option<Attribute<'_>> {
    // SAFETY: the last function is called on dense elements only, of which one is stored.
    unsafe {
        let raw = attribute.to_raw();
        let is_splat = mlir_sys::mlirAttributeIsADenseElements(raw)
            && mlir_sys::mlirDenseElementsAttrIsSplat(raw);
        is_splat.then(|| Attribute::from_raw(mlir_sys::mlirDenseElementsAttrGetSplatValue(raw)))
    }
}

/// A key under which a type can stand in a map or set.
pub(crate) fn type_key(ty: Type) -> usize {
    ty.to_raw().ptr as usize
}

/// The types of a tuple type.
pub fn tuple_elements(ty: Type<'_>) -> Option<Vec<Type<'_>>> {
    let tuple = TupleType::try_from(ty).ok()?;
    (0..tuple.type_count()).map(|index| tuple.r#type(index).ok()).collect()
}

/// The encoding of a tensor type with a rank.
pub fn encoding(ty: Type<'_>) -> Option<Attribute<'_>> {
    // SAFETY: the second function is called on such a type only.
    unsafe {
        if !mlir_sys::mlirTypeIsARankedTensor(ty.to_raw()) {
            return None;
        }
        Attribute::from_option_raw(mlir_sys::mlirRankedTensorTypeGetEncoding(ty.to_raw()))
    }
}

/// The location of a block argument.
pub fn argument_location<'c>(value: Val<'c>) -> Location<'c> {
    // SAFETY: any value has a location, which belongs to the context.
    unsafe { Location::from_raw(mlir_sys::mlirValueGetLocation(value.to_raw())) }
}

/// Names block arguments by the location of each: they print as `%name`. An empty name leaves an
/// argument as it is.
pub fn name_arguments<'n>(context: &Context, block: Blk, names: impl IntoIterator<Item = &'n str>) {
    for (value, name) in arguments(block).into_iter().zip(names) {
        if name.is_empty() {
            continue;
        }
        let mut location = argument_location(value);
        if location.is_name() {
            location = location.name_child_location();
        }
        let named = Location::name(context, name, location);
        // SAFETY: the value is a block argument, and the location is one of its context.
        unsafe { mlir_sys::mlirBlockArgumentSetLocation(value.to_raw(), named.to_raw()) }
    }
}

/// The shape of a tensor or memref type: `None` for a dynamic extent. Empty if the
/// type has no shape.
pub fn shape(ty: Type) -> Vec<Option<i64>> {
    // SAFETY: the functions are called on shaped types with a rank only.
    unsafe {
        if !mlir_sys::mlirTypeIsAShaped(ty.to_raw())
            || !mlir_sys::mlirShapedTypeHasRank(ty.to_raw())
        {
            return Vec::new();
        }
        (0..mlir_sys::mlirShapedTypeGetRank(ty.to_raw()))
            .map(|dim| {
                let dim = dim as isize;
                (!mlir_sys::mlirShapedTypeIsDynamicDim(ty.to_raw(), dim))
                    .then(|| mlir_sys::mlirShapedTypeGetDimSize(ty.to_raw(), dim))
            })
            .collect()
    }
}

/// The element type of a shaped type; a scalar type itself.
pub fn element_type<'c>(ty: Type<'c>) -> Type<'c> {
    // SAFETY: called on shaped types only.
    unsafe {
        if mlir_sys::mlirTypeIsAShaped(ty.to_raw()) {
            Type::from_raw(mlir_sys::mlirShapedTypeGetElementType(ty.to_raw()))
        } else {
            ty
        }
    }
}

/// A tensor type; `None` is a dynamic extent.
pub fn tensor_type<'c>(shape: &[Option<i64>], element: Type<'c>) -> Type<'c> {
    let dynamic = i64::MIN as u64;
    let shape: Vec<u64> =
        shape.iter().map(|extent| extent.map_or(dynamic, |extent| extent as u64)).collect();
    RankedTensorType::new(&shape, element, None).into()
}

/// A tensor type of static sizes.
pub fn static_tensor_type<'c>(
    dims: &[i64],
    element: Type<'c>,
    encoding: Option<Attribute<'c>>,
) -> Type<'c> {
    let dims: Vec<_> = dims.iter().map(|&dim| dim as u64).collect();
    RankedTensorType::new(&dims, element, encoding).into()
}

/// A tuple type.
pub fn tuple_type<'c>(context: &'c Context, elements: &[Type<'c>]) -> Type<'c> {
    TupleType::new(context, elements).into()
}

/// Whether a type is a tensor with a rank.
pub fn is_tensor(ty: Type) -> bool {
    ty.is_ranked_tensor()
}

/// Whether a type is a memref.
pub fn is_memref(ty: Type) -> bool {
    ty.is_mem_ref()
}

/// Whether neighbours in the last dimension of a memref are known to be neighbours in memory.
pub fn has_unit_inner_stride(ty: Type) -> bool {
    let mut strides = vec![0_i64; shape(ty).len()];
    let mut offset = 0;
    // SAFETY: the type is a memref with a rank; there is room for a stride per dimension.
    let has_strides = is_memref(ty)
        && unsafe {
            let strides = strides.as_mut_ptr();
            let result =
                mlir_sys::mlirMemRefTypeGetStridesAndOffset(ty.to_raw(), strides, &mut offset);
            result.value != 0
        };
    has_strides && strides.last().is_none_or(|stride| *stride == 1)
}

/// The signless form of an integer type; any other type itself.
pub fn signless<'c>(context: &'c Context, ty: Type<'c>) -> Type<'c> {
    match IntegerType::try_from(ty) {
        Ok(integer) if !integer.is_signless() => IntegerType::new(context, integer.width()).into(),
        _ => ty,
    }
}

/// Whether a type is an integer without a sign of its own.
pub fn is_signless(ty: Type) -> bool {
    IntegerType::try_from(ty).is_ok_and(|integer| integer.is_signless())
}

/// Whether an integer type is unsigned.
pub fn is_unsigned(ty: Type) -> bool {
    IntegerType::try_from(ty).is_ok_and(|integer| integer.is_unsigned())
}

/// The width of an integer type, or `None`.
pub fn integer_width(ty: Type) -> Option<u32> {
    IntegerType::try_from(ty).ok().map(|integer| integer.width())
}

/// The type of complex numbers of two parts of a float type.
pub fn complex_type(part: Type) -> Type {
    // SAFETY: the type is a float.
    unsafe { Type::from_raw(mlir_sys::mlirComplexTypeGet(part.to_raw())) }
}

/// The type of the parts of a complex type; `None` for another type.
pub fn complex_part(ty: Type) -> Option<Type> {
    // SAFETY: the second function is called on such a type only.
    unsafe {
        mlir_sys::mlirTypeIsAComplex(ty.to_raw())
            .then(|| Type::from_raw(mlir_sys::mlirComplexTypeGetElementType(ty.to_raw())))
    }
}

/// The bytes that an element of a scalar type takes in memory.
pub fn byte_width(ty: Type) -> u32 {
    if let Some(part) = complex_part(ty) {
        return 2 * byte_width(part);
    }
    let bits = if ty.is_float() { ty.float_width() } else { integer_width(ty).unwrap_or(64) };
    bits.div_ceil(8)
}

/// Whether a type is a floating-point type.
pub fn is_float(ty: Type) -> bool {
    ty.is_float()
}

/// A float type of these elements.
///
/// # Panics
/// They are no floats.
pub fn float_type(context: &Context, element: ElementType) -> Type<'_> {
    let name = element.name();
    match element {
        ElementType::F16 => Type::float16(context),
        ElementType::BF16 => Type::bfloat16(context),
        ElementType::F32 => Type::float32(context),
        ElementType::F64 => Type::float64(context),
        _ => {
            assert!(element.is_float(), "{element} is no float");
            // `f8e4m3fn` is `f8E4M3FN`.
            parse_type(context, &format!("f{}", name[1..].to_uppercase()))
        }
    }
}

/// The element type that a float type of at most 8 bits is.
pub fn small_float(ty: Type) -> Option<ElementType> {
    let is_small = is_float(ty) && byte_width(ty) == 1;
    if is_small { ElementType::from_name(&ty.to_string().to_lowercase()) } else { None }
}

/// Parses an attribute from text that this crate wrote itself.
pub fn parse_attribute<'c>(context: &'c Context, text: &str) -> Attribute<'c> {
    Attribute::parse(context, text).expect("text of an attribute of our own parses")
}

/// Parses a type from text that this crate wrote itself.
pub fn parse_type<'c>(context: &'c Context, text: &str) -> Type<'c> {
    Type::parse(context, text).expect("text of a type of our own parses")
}

/// A symbol reference.
pub fn symbol<'c>(context: &'c Context, name: &str) -> Attribute<'c> {
    FlatSymbolRefAttribute::new(context, name).into()
}

/// A dictionary attribute.
pub fn dictionary<'c>(context: &'c Context, entries: &[(&str, Attribute<'c>)]) -> Attribute<'c> {
    let entries: Vec<_> =
        entries.iter().map(|(name, value)| (Identifier::new(context, name), *value)).collect();
    DictionaryAttribute::new(context, &entries).into()
}

/// An integer of an integer type or of `index`, of which wider values keep their low bits.
pub fn integer<'c>(context: &'c Context, ty: Type<'c>, value: i64) -> Attribute<'c> {
    match integer_width(ty) {
        Some(1) => BoolAttribute::new(context, value & 1 != 0).into(),
        _ => IntegerAttribute::new(ty, value).into(),
    }
}

/// A number of a floating-point type.
pub fn float<'c>(context: &'c Context, ty: Type<'c>, value: f64) -> Attribute<'c> {
    FloatAttribute::new(context, ty, value).into()
}

/// An attribute that is a truth value.
pub fn bool_attr(context: &Context, value: bool) -> Attribute<'_> {
    BoolAttribute::new(context, value).into()
}

/// An `f64` attribute.
pub fn f64_attr(context: &Context, value: f64) -> Attribute<'_> {
    FloatAttribute::new(context, Type::float64(context), value).into()
}

/// Dense elements of a tensor type, as [`dense_bytes`] gives them: all, or one for all. `None` if
/// there are more or fewer.
pub(crate) fn dense_from_bytes<'c>(ty: Type<'c>, bytes: &[u8]) -> Option<Attribute<'c>> {
    if integer_width(element_type(ty)) == Some(1) {
        return dense_from_bools(ty, bytes);
    }
    // SAFETY: MLIR checks the number of bytes, and copies them.
    unsafe {
        Attribute::from_option_raw(mlir_sys::mlirDenseElementsAttrRawBufferGet(
            ty.to_raw(),
            bytes.len(),
            bytes.as_ptr().cast(),
        ))
    }
}

/// How MLIR stores truth values is its own business: it is given them one by one.
fn dense_from_bools<'c>(ty: Type<'c>, bytes: &[u8]) -> Option<Attribute<'c>> {
    let count = shape(ty).into_iter().try_fold(1i64, |count, dim| count.checked_mul(dim?))?;
    let bools: Vec<i32> = bytes.iter().map(|&byte| i32::from(byte != 0)).collect();
    // SAFETY: the type is a tensor of truth values with `count` elements.
    unsafe {
        let raw = match bools[..] {
            [value] if count != 1 => {
                mlir_sys::mlirDenseElementsAttrBoolSplatGet(ty.to_raw(), value != 0)
            }
            _ if i64::try_from(bools.len()) == Ok(count) => {
                mlir_sys::mlirDenseElementsAttrBoolGet(ty.to_raw(), count as isize, bools.as_ptr())
            }
            _ => return None,
        };
        Attribute::from_option_raw(raw)
    }
}

/// A string attribute.
pub fn string<'c>(context: &'c Context, text: &str) -> Attribute<'c> {
    StringAttribute::new(context, text).into()
}

/// An array attribute.
pub fn array<'c>(context: &'c Context, elements: &[Attribute<'c>]) -> Attribute<'c> {
    ArrayAttribute::new(context, elements).into()
}

/// An array attribute of strings.
pub fn strings<'c>(context: &'c Context, texts: &[impl AsRef<str>]) -> Attribute<'c> {
    let texts: Vec<_> = texts.iter().map(|text| string(context, text.as_ref())).collect();
    array(context, &texts)
}

/// An `i64` attribute.
pub fn i64_attr(context: &Context, value: i64) -> Attribute<'_> {
    IntegerAttribute::new(IntegerType::new(context, 64).into(), value).into()
}

/// The elements of a tensor of integers or floats of at most 64 bits, given by their bits; one
/// element stands for all.
pub fn dense<'c>(ty: Type<'c>, element: Type<'c>, bits: &[u64]) -> Attribute<'c> {
    let width = byte_width(element) as usize;
    let bytes = bits.iter().flat_map(|bits| bits.to_le_bytes().into_iter().take(width));
    dense_from_bytes(ty, &bytes.collect::<Vec<_>>()).expect("one element, or as many as there are")
}

/// A dense array attribute of `i64`.
pub fn i64_array<'c>(context: &'c Context, values: &[i64]) -> Attribute<'c> {
    DenseI64ArrayAttribute::new(context, values).into()
}

/// The attribute `operandSegmentSizes` for groups of these lengths.
pub fn segments<'c>(context: &'c Context, groups: &[usize]) -> Attribute<'c> {
    let sizes: Vec<i32> = groups.iter().map(|size| *size as i32).collect();
    DenseI32ArrayAttribute::new(context, &sizes).into()
}

/// A dictionary attribute with these entries added or replaced. What is no dictionary
/// counts as an empty one.
pub fn extend_dictionary<'c>(
    context: &'c Context,
    attribute: Attribute<'c>,
    added: &[(&str, Attribute<'c>)],
) -> Attribute<'c> {
    let mut entries = Vec::new();
    if let Ok(dictionary) = DictionaryAttribute::try_from(attribute) {
        let old = (0..dictionary.len()).filter_map(|index| dictionary.element(index).ok());
        let replaced = |name: &Identifier| {
            added.iter().any(|(added, _)| name.as_string_ref().as_str() == Ok(*added))
        };
        entries.extend(old.filter(|(name, _)| !replaced(name)));
    }
    entries.extend(added.iter().map(|(name, value)| (Identifier::new(context, name), *value)));
    DictionaryAttribute::new(context, &entries).into()
}

/// A type attribute.
pub fn type_attr(ty: Type) -> Attribute {
    TypeAttribute::new(ty).into()
}

/// The type that an attribute is; `None` for another attribute.
pub fn type_of(attribute: Attribute) -> Option<Type> {
    TypeAttribute::try_from(attribute).ok().map(|it| it.value())
}

/// A key under which a value can stand in a map or set.
pub fn value_key(value: Val) -> usize {
    value.to_raw().ptr as usize
}

/// A key under which an operation can stand in a map.
pub fn op_key(op: Op) -> usize {
    op.to_raw().ptr as usize
}

/// A key under which a block can stand in a map.
pub fn block_key(block: Blk) -> usize {
    block.to_raw().ptr as usize
}

/// A region with one block that has arguments of these types.
pub fn region_with_block<'c>(types: &[Type<'c>], location: Location<'c>) -> (Region<'c>, Blk<'c>) {
    use melior::ir::RegionLike;
    let arguments: Vec<_> = types.iter().map(|ty| (*ty, location)).collect();
    let region = Region::new();
    let block = block_ref(region.append_block(Block::new(&arguments)));
    (region, block)
}

/// A reference to region `index` of an operation.
pub fn region<'c>(op: Op<'c>, index: usize) -> Option<RegionRef<'c, 'c>> {
    op.region(index).ok()
}
