//! Which memory buffers share, and what an operation uses from outside.

use melior::{
    Context,
    ir::{
        Attribute, BlockLike, Type, TypeLike, ValueLike, operation::OperationLike,
        r#type::MemRefType,
    },
};
use std::collections::HashSet;
use tc_dialects::mlir::{self, Op, Val};

/// The attribute of a function of the program that others of its module call.
pub(crate) const CALLEE: &str = "tc.callee";
/// The attribute of functions that `imap-outline-functions` makes.
pub(crate) const OUTLINED: &str = "tc.outlined";
/// The attribute of a function that computes the bytes of the workspace of another one.
pub(crate) const IS_WORKSPACE: &str = "tc.workspace";
/// The attribute of calls that give the status of a device.
pub(crate) const DEVICE_STATUS: &str = "tc.device_status";
/// What gives the same memory under another type.
pub(crate) const VIEWS: [&str; 7] = [
    "memref.cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.memory_space_cast",
    "memref.reinterpret_cast",
    "memref.subview",
    "memref.view",
];
/// What gives memory that nothing else refers to.
const ALLOCATIONS: [&str; 3] = ["memref.alloc", "memref.alloca", "memref.get_global"];

/// The bytes of a buffer of this type; `None` if its sizes are not static, or if it is larger than memory can be.
pub(crate) fn static_bytes(ty: Type) -> Option<i64> {
    let width = i64::from(mlir::byte_width(mlir::element_type(ty)));
    let bytes = mlir::shape(ty).into_iter().try_fold(width, |all, extent| all.checked_mul(extent?));
    bytes.filter(|bytes| *bytes <= i64::MAX / 2)
}

/// The arguments of a function that hold results, and no values when the function is called, by key.
pub(crate) fn results_in_arguments(function: Op) -> HashSet<usize> {
    let arguments = mlir::body(function, 0).map(mlir::arguments).unwrap_or_default();
    let attributes = mlir::array_attr(function, "arg_attrs").into_iter();
    let is_result = |attributes| {
        let has = |name| mlir::dictionary_entry(attributes, name).is_some();
        has("tc.output") && !has("tc.inout")
    };
    let results = arguments.into_iter().zip(attributes).filter(|(_, it)| is_result(*it));
    results.map(|(argument, _)| mlir::value_key(argument)).collect()
}

/// Whether an operation works on tensors alone, so that it may be computed earlier or later.
pub(crate) fn is_movable(op: Op) -> bool {
    let mut found = true;
    mlir::walk(op, &mut |inner| {
        let is_memory = |ty: Type| ty.is_mem_ref() || ty.is_unranked_mem_ref();
        found &= !mlir::operands(inner).iter().any(|it| is_memory(it.r#type()))
            && !mlir::is(inner, "func.call")
            && !mlir::is(inner, "imap.check");
    });
    found
}

/// What an operation uses of what is defined outside of it, in order of appearance.
pub(crate) fn values_from_outside<'c>(nest: Op<'c>) -> Vec<Val<'c>> {
    let mut inside = HashSet::new();
    mlir::walk(nest, &mut |op| {
        inside.extend(mlir::results(op).into_iter().map(mlir::value_key));
        for block in (0..op.region_count()).flat_map(|region| mlir::blocks(op, region)) {
            inside.extend(mlir::arguments(block).into_iter().map(mlir::value_key));
        }
    });
    let mut found = Vec::new();
    mlir::walk(nest, &mut |op| {
        found.extend(
            mlir::operands(op).into_iter().filter(|value| inside.insert(mlir::value_key(*value))),
        );
    });
    found
}

/// Of each buffer among the values, `1` if it shares no memory with the others and `0` otherwise;
/// `None` if that is not known of any.
pub(crate) fn buffers_alone(values: &[Val]) -> Option<String> {
    let buffers = values.iter().filter(|value| mlir::is_memref(value.r#type()));
    // A buffer from somewhere else may be any of the others.
    let known: Vec<_> =
        buffers.map(|value| Some((*value, roots(*value)?))).collect::<Option<_>>()?;
    let is_alone = |number: usize| {
        let (value, roots) = &known[number];
        let mut others = known.iter().enumerate().filter(|(other, _)| *other != number);
        others
            .all(|(_, (other, others))| roots.is_disjoint(others) || are_exchanged(*value, *other))
    };
    Some((0..known.len()).map(|number| if is_alone(number) { '1' } else { '0' }).collect())
}

/// Whether two values are two buffers in this order or in the other one, by the same condition.
fn are_exchanged(first: Val, second: Val) -> bool {
    let selected = |mut value| {
        loop {
            let op = mlir::defining_op(value)?;
            match mlir::name(op) {
                "arith.select" => return <[Val; 3]>::try_from(mlir::operands(op)).ok(),
                name if VIEWS.contains(&name) => value = mlir::operand(op, 0),
                _ => return None,
            }
        }
    };
    let (Some([condition, a, b]), Some([other, c, d])) = (selected(first), selected(second)) else {
        return false;
    };
    let are_apart = || Some(roots(a)?.is_disjoint(&roots(b)?));
    condition == other && a == d && b == c && are_apart() == Some(true)
}

/// The keys of the allocations and of the arguments of a function that a buffer may be part of.
fn roots(value: Val) -> Option<HashSet<usize>> {
    let (mut found, mut seen, mut open) = (HashSet::new(), HashSet::new(), vec![value]);
    while let Some(value) = open.pop() {
        if !seen.insert(mlir::value_key(value)) {
            continue;
        }
        let number = mlir::number(value);
        let yielded = |op, region, number: usize| {
            mlir::operands(mlir::terminator(mlir::body(op, region)?)).get(number).copied()
        };
        let Some(op) = mlir::defining_op(value) else {
            let around = mlir::argument_parent(value)?;
            match mlir::name(around) {
                // Other arguments of an outlined function may be one buffer.
                "func.func" if around.has_attribute(OUTLINED) && !is_noalias(value) => {
                    found.insert(mlir::op_key(around));
                }
                "func.func" => {
                    found.insert(mlir::value_key(value));
                }
                "scf.for" => {
                    // The first argument is the index.
                    let number = number.checked_sub(1)?;
                    open.push(mlir::operand(around, 3 + number));
                    open.push(yielded(around, 0, number)?);
                }
                "scf.while" if mlir::argument_block(value) == mlir::body(around, 0) => {
                    open.push(mlir::operand(around, number));
                    open.push(yielded(around, 1, number)?);
                }
                "scf.while" => open.push(yielded(around, 0, 1 + number)?),
                _ => return None,
            }
            continue;
        };
        match mlir::name(op) {
            name if ALLOCATIONS.contains(&name) => {
                found.insert(mlir::value_key(value));
            }
            name if VIEWS.contains(&name) => open.push(mlir::operand(op, 0)),
            "arith.select" => open.extend(&mlir::operands(op)[1..]),
            "scf.for" => {
                open.push(mlir::operand(op, 3 + number));
                open.push(yielded(op, 0, number)?);
            }
            "scf.if" => open.extend([yielded(op, 0, number)?, yielded(op, 1, number)?]),
            "scf.while" => open.push(yielded(op, 0, 1 + number)?),
            _ => return None,
        }
    }
    Some(found)
}

/// Whether a value is passed as at most one pointer (`llvm.bareptr`): any value but a buffer, or a buffer with constant
/// sizes, strides and offset. LLVM 22 does not pass all empty buffers.
pub(crate) fn is_pointer(ty: Type) -> bool {
    let is_empty = || mlir::shape(ty).contains(&Some(0));
    let is_static = || MemRefType::try_from(ty).is_ok_and(|it| open_parts(it).is_empty());
    !mlir::is_memref(ty) || is_static() && !is_empty()
}

/// The attribute of an argument that shares no memory with others.
const NOALIAS: &str = "llvm.noalias";

/// The attributes of an argument that shares no memory with others if it is `alone`.
pub(crate) fn argument_attributes(context: &Context, alone: bool) -> Attribute<'_> {
    let noalias = (NOALIAS, Attribute::unit(context));
    mlir::dictionary(context, if alone { std::slice::from_ref(&noalias) } else { &[] })
}

/// Whether a value is an argument of a function that shares no memory with the others.
pub(crate) fn is_noalias(value: Val) -> bool {
    let Some(function) = mlir::argument_parent(value) else { return false };
    let attributes = mlir::array_attr(function, "arg_attrs");
    let own = attributes.get(mlir::number(value)).copied();
    ["func.func", "llvm.func"].contains(&mlir::name(function))
        && own.is_some_and(|it| mlir::dictionary_entry(it, NOALIAS).is_some())
}

/// Whether a copy is between ranked buffers of which one is not contiguous.
pub(crate) fn needs_loops(copy: Op) -> bool {
    let types: Vec<_> = mlir::operands(copy).iter().map(|it| it.r#type()).collect();
    types.iter().all(|it| mlir::is_memref(*it)) && !types.into_iter().all(is_copied_by_memcpy)
}

/// Whether `finalize-memref-to-llvm` copies buffers of this type by `memcpy`.
fn is_copied_by_memcpy(ty: Type) -> bool {
    let Ok(buffer) = MemRefType::try_from(ty) else { return false };
    let extents = mlir::shape(ty);
    let dims: Vec<_> = extents.iter().map(|extent| extent.unwrap_or(i64::MIN)).collect();
    let plain = MemRefType::contiguous(mlir::element_type(ty), &dims, buffer.memory_space());
    if Type::from(plain) == ty {
        return true;
    }
    let mut expected = 1i64;
    let (strides, _) = buffer.strides_and_offset();
    extents.into_iter().zip(strides).rev().all(|(extent, stride)| {
        let is_dense = stride == expected;
        expected = expected.saturating_mul(extent.unwrap_or(0));
        is_dense && extent.is_some_and(|extent| 0 < extent)
    })
}

/// The offset, the sizes and the strides of a type of buffers; `None` where they are open.
pub(crate) fn parts(buffer: MemRefType) -> Vec<Option<i64>> {
    let (strides, offset) = buffer.strides_and_offset();
    let known = |value: i64| (value != i64::MIN).then_some(value);
    let sizes = mlir::shape(buffer.into());
    [known(offset)].into_iter().chain(sizes).chain(strides.into_iter().map(known)).collect()
}

/// The numbers of the parts that are open.
pub(crate) fn open_parts(buffer: MemRefType) -> Vec<usize> {
    let parts = parts(buffer).into_iter().enumerate();
    parts.filter(|(_, part)| part.is_none()).map(|(number, _)| number).collect()
}

/// The argument of a function or the allocation that a buffer is a view of, by a key; `None` if that may be in the
/// memory of another one.
pub fn origin(value: Val) -> Option<usize> {
    let mut value = value;
    loop {
        let Some(op) = mlir::defining_op(value) else {
            let block = mlir::argument_block(value)?;
            let function = mlir::op_ref(block.parent_operation()?);
            let ours = mlir::is(function, "func.func") && function.has_attribute("tc.checks");
            return (ours || is_noalias(value)).then(|| mlir::value_key(value));
        };
        match mlir::name(op) {
            "memref.alloc" | "memref.alloca" => return Some(mlir::value_key(value)),
            "memref.subview"
            | "memref.cast"
            | "memref.reinterpret_cast"
            | "memref.collapse_shape"
            | "memref.expand_shape" => value = mlir::operand(op, 0),
            _ => return None,
        }
    }
}
