//! `check-allocations`: return a code if an allocation fails.
//!
//! After each call of `malloc`, a null pointer leads to the one block of the function that frees all held
//! memory and returns [`OUT_OF_MEMORY`]. An array on the stack has a slot per allocation: the pointer while
//! it is held, null before and after. Code and time are linear in the number of allocations.
//!
//! A function with a C interface returns a code, and so does a function of the program that it calls, whose code is
//! checked in the same way. In others, and in regions of other operations (those
//! of OpenMP), which cannot be left, the program is stopped. Memory has a slot if one operation of the
//! function's own blocks frees it and no block takes it as an argument. Other memory stays allocated.
//!
//! Before:
//!
//! ```mlir
//! %p = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
//! ..
//! llvm.call @free(%p) : (!llvm.ptr) -> ()
//! ```
//!
//! After:
//!
//! ```mlir
//!   %slots = llvm.alloca %count x !llvm.ptr : (i64) -> !llvm.ptr
//!   .. // null in all slots
//!   %p = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
//!   %null = llvm.mlir.zero : !llvm.ptr
//!   %is_null = llvm.icmp "eq" %p, %null : !llvm.ptr
//!   %zero = llvm.mlir.zero : i64
//!   %needs_memory = llvm.icmp "ne" %size, %zero : i64
//!   %failed = llvm.and %is_null, %needs_memory : i1
//!   llvm.cond_br %failed, ^failed, ^next
//! ^next:
//!   %slot = llvm.getelementptr %slots[0] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
//!   llvm.store %p, %slot : !llvm.ptr, !llvm.ptr
//!   ..
//!   llvm.store %null, %slot : !llvm.ptr, !llvm.ptr
//!   llvm.call @free(%p) : (!llvm.ptr) -> ()
//!   ..
//! ^failed:
//!   .. // frees what is in the slots
//!   llvm.return %code : i32
//! ```
//!
//! Remark: how many allocations of a function are checked.

use crate::analysis::buffers::CALLEE;
use melior::ir::{
    Attribute, Type, ValueLike,
    attribute::{DenseI32ArrayAttribute, IntegerAttribute},
    operation::OperationLike,
};
use std::collections::{HashMap, HashSet};
use tc_dialects::{
    mlir::{self, Blk, Builder, Op, Val},
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, remark},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "check-allocations",
    summary: "Return a code where memory cannot be allocated",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["llvm"],
    run,
};

/// The code that a compiled function returns if there is not enough memory.
pub const OUT_OF_MEMORY: i32 = -1;

/// The size of a pointer, that of the size of an allocation.
const POINTER_BYTES: i64 = 8;
/// The numbers of the predicates 'eq', 'ne' and 'ult' of 'llvm.icmp'.
const ICMP_EQ: i64 = 0;
const ICMP_NE: i64 = 1;
const ICMP_ULT: i64 = 6;
/// An index of 'llvm.getelementptr' that is an operand.
const DYNAMIC_INDEX: i32 = i32::MIN;

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    let functions: Vec<_> =
        mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "llvm.func")).collect();
    let is_called = |op: &&Op| op.has_attribute(CALLEE);
    let called = functions.iter().filter(is_called);
    let called: HashSet<_> = called.filter_map(|op| mlir::string_attr(*op, "sym_name")).collect();
    for function in functions {
        pass.enter(function);
        let num_checked = check(function, &called);
        if 0 < num_checked {
            remark(
                function.location(),
                RemarkKind::Analysis,
                PASS.argument,
                "allocations",
                mlir::string_attr(function, "sym_name").unwrap_or_default(),
                &[("Checked", &num_checked.to_string())],
            );
        }
    }
    Ok(())
}

fn callee<'c>(op: Op<'c>) -> Option<&'c str> {
    mlir::callee(op).filter(|_| mlir::is(op, "llvm.call"))
}

fn is_allocation(op: Op) -> bool {
    callee(op) == Some("malloc") && op.result_count() == 1 && op.operand_count() == 1
}

/// Checks the allocations of a function, and its calls of others that return a code. Returns how many there are.
fn check<'c>(function: Op<'c>, called: &HashSet<&str>) -> usize {
    let (mut allocations, mut frees) = (Vec::new(), HashMap::new());
    mlir::walk(function, &mut |op| match callee(op) {
        _ if is_allocation(op) => allocations.push(op),
        Some(name) if called.contains(name) => allocations.push(op),
        Some("free") => {
            let pointer = mlir::value_key(mlir::operand(op, 0));
            frees.entry(pointer).or_insert_with(Vec::new).push(op);
        }
        _ => {}
    });
    let is_own = |op: &Op<'c>| mlir::parent(*op) == Some(function);
    let returns_code =
        ["llvm.emit_c_interface", CALLEE].iter().any(|it| function.has_attribute(it));
    if !returns_code || !allocations.iter().any(is_own) {
        allocations.iter().rev().for_each(|allocation| _ = branch(*allocation, None));
        return allocations.len();
    }
    // The only operation that frees each block of memory.
    let is_passed_on = |pointer: Val| {
        mlir::uses(pointer).into_iter().any(|(user, _)| !mlir::successors(user).is_empty())
    };
    let freed = |allocation: &Op<'c>| {
        let pointer = mlir::result(*allocation, 0);
        match frees.get(&mlir::value_key(pointer))?[..] {
            [free] if is_own(allocation) && is_own(&free) && !is_passed_on(pointer) => {
                Some((mlir::op_key(*allocation), free))
            }
            _ => None,
        }
    };
    let freed: HashMap<_, _> =
        allocations.iter().filter(|it| is_allocation(**it)).filter_map(freed).collect();
    // Where the only allocation fails, nothing is held.
    let slots = (1 < allocations.len()).then(|| Slots::new(function, freed.len())).flatten();
    let exit = exit(function, slots.as_ref());
    let mut number = 0;
    // The last ones first: what comes after an allocation moves to another block.
    for allocation in allocations.iter().rev() {
        let next = branch(*allocation, Some(exit).filter(|_| is_own(allocation)));
        if let (Some(slots), Some(next)) = (&slots, next)
            && let Some(free) = freed.get(&mlir::op_key(*allocation))
        {
            slots.store(&Builder::before(next), number, mlir::result(*allocation, 0));
            let builder = Builder::before(*free);
            slots.store(&builder, number, null(&builder));
            number += 1;
        }
    }
    allocations.len()
}

/// An array of pointers to the memory that a function holds.
struct Slots<'c> {
    array: Val<'c>,
    count: Val<'c>,
}

impl<'c> Slots<'c> {
    /// An array of so many null pointers; `None` for an empty one.
    fn new(function: Op<'c>, count: usize) -> Option<Self> {
        let first = mlir::body(function, 0).and_then(|entry| mlir::ops(entry).first().copied());
        let builder = Builder::before(first.filter(|_| 0 < count)?).located(function.location());
        let pointer = pointer_type(&builder);
        let count = constant(&builder, 64, count as i64);
        let array = builder.value_with("llvm.alloca", &[count], pointer, &[element(pointer)]);
        let zero = constant(&builder, 8, 0);
        let bytes = constant(&builder, 64, POINTER_BYTES);
        let bytes = builder.value("llvm.mul", &[count, bytes], builder.int_type(64));
        let is_volatile = ("isVolatile", mlir::bool_attr(builder.context, false));
        builder.op_with("llvm.intr.memset", &[array, zero, bytes], &[], &[is_volatile], Vec::new());
        Some(Self { array, count })
    }

    fn store(&self, builder: &Builder<'c>, number: usize, pointer: Val<'c>) {
        let indices = [number as i32];
        let indices = DenseI32ArrayAttribute::new(builder.context, &indices).into();
        let slot = self.slot(builder, &[], indices);
        builder.op("llvm.store", &[pointer, slot], &[]);
    }

    fn slot(&self, builder: &Builder<'c>, index: &[Val<'c>], indices: Attribute<'c>) -> Val<'c> {
        let pointer = pointer_type(builder);
        let operands = [&[self.array], index].concat();
        let attributes = [element(pointer), ("rawConstantIndices", indices)];
        builder.value_with("llvm.getelementptr", &operands, pointer, &attributes)
    }
}

fn pointer_type<'c>(builder: &Builder<'c>) -> Type<'c> {
    mlir::parse_type(builder.context, "!llvm.ptr")
}

fn element<'c>(ty: Type<'c>) -> (&'static str, Attribute<'c>) {
    ("elem_type", mlir::type_attr(ty))
}

fn null<'c>(builder: &Builder<'c>) -> Val<'c> {
    builder.value("llvm.mlir.zero", &[], pointer_type(builder))
}

fn constant<'c>(builder: &Builder<'c>, width: u32, value: i64) -> Val<'c> {
    let ty = builder.int_type(width);
    let value = IntegerAttribute::new(ty, value).into();
    builder.value_with("llvm.mlir.constant", &[], ty, &[("value", value)])
}

/// Adds the block that a function is left by if an allocation fails: it frees what is in the slots.
fn exit<'c>(function: Op<'c>, slots: Option<&Slots<'c>>) -> Blk<'c> {
    let (context, location) = (mlir::context_of(function), function.location());
    let blocks = mlir::blocks(function, 0);
    let first = mlir::block_after(blocks[blocks.len() - 1], &[]);
    let mut builder = Builder::at_end(context, first, location);
    if let Some(slots) = slots {
        let index = builder.int_type(64);
        let test = mlir::block_after(first, &[(index, location)]);
        let free = mlir::block_after(test, &[]);
        let last = mlir::block_after(free, &[]);
        let number = mlir::arguments(test)[0];
        builder.branch("llvm.br", &[constant(&builder, 64, 0)], &[], &[test]);

        let inside = Builder::at_end(context, test, location);
        let predicate = ("predicate", mlir::i64_attr(context, ICMP_ULT));
        let operands = [number, slots.count];
        let condition = inside.value_with("llvm.icmp", &operands, inside.int_type(1), &[predicate]);
        let segments = ("operandSegmentSizes", mlir::segments(context, &[1, 0, 0]));
        inside.branch("llvm.cond_br", &[condition], &[segments], &[free, last]);

        let inside = Builder::at_end(context, free, location);
        let dynamic = DenseI32ArrayAttribute::new(context, &[DYNAMIC_INDEX]).into();
        let slot = slots.slot(&inside, &[number], dynamic);
        let pointer = inside.value("llvm.load", &[slot], pointer_type(&inside));
        let attributes = [
            ("callee", mlir::symbol(context, "free")),
            ("operandSegmentSizes", mlir::segments(context, &[1, 0])),
            ("op_bundle_sizes", mlir::segments(context, &[])),
        ];
        inside.op_with("llvm.call", &[pointer], &[], &attributes, Vec::new());
        let one = constant(&inside, 64, 1);
        let next = inside.value("llvm.add", &[number, one], index);
        inside.branch("llvm.br", &[next], &[], &[test]);
        builder = Builder::at_end(context, last, location);
    }
    let code = constant(&builder, 32, OUT_OF_MEMORY.into());
    builder.op("llvm.return", &[code], &[]);
    first
}

/// Adds the branch behind an allocation or a call: if it fails, to `exit`, or the program stops. Returns the first
/// operation of what goes on.
fn branch<'c>(allocation: Op<'c>, exit: Option<Blk<'c>>) -> Option<Op<'c>> {
    let context = mlir::context_of(allocation);
    let next = mlir::next(allocation)?;
    let (before, after) = mlir::split_block(next);
    let result = mlir::result(allocation, 0);
    let builder = Builder::at_end(context, before, allocation.location());
    let compare = |lhs: Val<'c>, rhs: Val<'c>, predicate: i64| {
        let predicate = ("predicate", mlir::i64_attr(context, predicate));
        builder.value_with("llvm.icmp", &[lhs, rhs], builder.int_type(1), &[predicate])
    };
    let zero = |ty| builder.value("llvm.mlir.zero", &[], ty);
    let condition = match is_allocation(allocation) {
        true => {
            let is_null = compare(result, null(&builder), ICMP_EQ);
            let size = mlir::operand(allocation, 0);
            let needs_memory = compare(size, zero(size.r#type()), ICMP_NE);
            builder.value("llvm.and", &[is_null, needs_memory], builder.int_type(1))
        }
        false => compare(result, zero(result.r#type()), ICMP_NE),
    };
    let failed = exit.unwrap_or_else(|| {
        let failed = mlir::block_after(before, &[]);
        let builder = Builder::at_end(context, failed, allocation.location());
        builder.op("llvm.intr.trap", &[], &[]);
        builder.op("llvm.unreachable", &[], &[]);
        failed
    });
    let segments = [("operandSegmentSizes", mlir::segments(context, &[1, 0, 0]))];
    builder.branch("llvm.cond_br", &[condition], &segments, &[failed, after]);
    Some(next)
}
