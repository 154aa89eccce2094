//! `imap-outline-functions`: in a function with many operations on buffers, each becomes a function of its own.
//!
//! Equal operations, for example in the layers of a network, share one function, which is lowered and compiled once.
//! LLVM takes more than linear time for a function: hours for a training step, which has thousands of loops. In an
//! outlined function LLVM also knows which buffers do not alias (`llvm.noalias`), so vectorized code needs no run-time
//! checks.
//!
//! Before:
//!
//! ```mlir
//! func.func @f(%a: memref<8xf32>, %b: memref<8xf32>) {
//!   imap.generic (d0) .. ins(%a[d0] : memref<8xf32>) outs(%b[d0] : memref<8xf32>) {..}
//!   .. // many more
//! }
//! ```
//!
//! After:
//!
//! ```mlir
//! func.func private @f_0(%a: memref<8xf32> {llvm.noalias}, %b: memref<8xf32> {llvm.noalias})
//!     attributes {llvm.bareptr, passthrough = ["noinline"], tc.outlined, ..} {
//!   .. // the operation
//! }
//! func.func @f(%a: memref<8xf32>, %b: memref<8xf32>) {
//!   func.call @f_0(%a, %b)
//!   .. // many more
//! }
//! ```
//!
//! An operation is an operation of `imap`, or an outermost `scf.for` or `scf.parallel`. An `scf.for` with more than
//! `max-loops` nested loops, such as the loop of a whole program, is not outlined, but the operations in its body are. A
//! loop that yields a buffer, or that calls functions of the program, is not outlined. Nor is a loop of the program whose
//! operations are to be measured: their work is noted (`note-work`), and that of the loop is not. Loops in a function that
//! the pass has made before are divided the same way, so that LLVM gets several small functions, and equal operations in
//! a loop over tiles become one. In a parallel loop, such a function has no parallel loops of its own (`tc.in_thread`).
//!
//! The outlined function takes each used value as an argument, except small constants and views with computed offsets:
//! it contains copies of these. Buffers are passed as pointers if all their sizes, strides and offsets are constant. The
//! pass assumes that the arguments of the enclosing function do not alias, which holds for every compiled function.
//!
//! Options: `max-operations`, how many operations a function may keep; `max-loops`, how many loops an outlined loop may
//! contain. An operation of `imap` counts as eight loops.
//! Remark: how many operations were outlined, and to how many functions.

use crate::{
    analysis::buffers::{
        OUTLINED, VIEWS, argument_attributes, buffers_alone, is_pointer, values_from_outside,
    },
    loops::{IN_THREAD, is_in_parallel},
};
use melior::ir::{
    Attribute, Type, ValueLike,
    operation::{OperationLike, OperationPrintingFlags},
    r#type::FunctionType,
};
use std::collections::{HashMap, HashSet, hash_map::Entry};
use tc_dialects::{
    imap::{AnyIndexed, Sort},
    mlir::{self, Builder, Op, Val, ValueMap},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::{RemarkKind, remark},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "imap-outline-functions",
    summary: "Make a function of each operation on buffers of a function that has many",
    anchor: "builtin.module",
    options: &[
        PassOption {
            name: "max-operations",
            description: "How many operations on buffers a function may keep",
            default: "32",
        },
        PassOption {
            name: "max-loops",
            description: "How many loops an outlined loop may contain; an operation of imap counts as eight",
            default: "256",
        },
    ],
    dependent_dialects: &["func", "llvm"],
    run,
};

/// Loops that make a nest.
const LOOPS: [&str; 2] = ["scf.for", "scf.parallel"];
/// The elements of constants that are copied rather than passed, so that LLVM knows them.
const MAX_CONSTANT: i64 = 64;
/// An operation of `imap` becomes about as many loops.
const LOOPS_PER_OPERATION: i64 = 8;

fn run(pass: &PassRun) -> Result<(), Failure> {
    let (max_operations, max_loops) = (pass.number("max-operations")?, pass.number("max-loops")?);
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    let mut names: HashSet<String> = HashSet::new();
    for op in mlir::ops(block) {
        names.extend(mlir::string_attr(op, "sym_name").map(str::to_owned));
    }
    // The names of the functions that were made, by their text.
    let mut made: HashMap<String, String> = HashMap::new();
    for function in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "func.func")) {
        pass.enter(function);
        let mut operations = Vec::new();
        find(function, max_loops, &mut operations);
        if operations.len() as i64 <= max_operations {
            continue;
        }
        let function_name = mlir::string_attr(function, "sym_name").unwrap_or_default();
        let before = made.len();
        for op in &operations {
            let (outlined, passed) = outline(function, *op);
            let flags = OperationPrintingFlags::new().use_local_scope();
            let text = outlined.to_string_with_flags(flags).map_err(|_| Failure)?;
            let number = made.len();
            let name = match made.entry(text) {
                Entry::Occupied(entry) => {
                    mlir::erase(outlined);
                    entry.into_mut()
                }
                Entry::Vacant(entry) => {
                    let name = unused_name(&mut names, format!("{function_name}_{number}"));
                    mlir::set_attribute(outlined, "sym_name", mlir::string(pass.context, &name));
                    entry.insert(name)
                }
            };
            let types: Vec<_> = mlir::results(*op).iter().map(|it| it.r#type()).collect();
            let callee = ("callee", mlir::symbol(pass.context, name));
            let call =
                Builder::before(*op).op_with("func.call", &passed, &types, &[callee], vec![]);
            mlir::replace(*op, &mlir::results(call));
        }
        remark(
            function.location(),
            RemarkKind::Passed,
            PASS.argument,
            "operations",
            function_name,
            &[
                ("Outlined", &operations.len().to_string()),
                ("Functions", &(made.len() - before).to_string()),
            ],
        );
    }
    Ok(())
}

/// The operations that become functions: a loop with at most `max_loops` nested loops, or the operations in its body. A
/// parallel loop of the program is always outlined as a whole.
fn find<'c>(op: Op<'c>, max_loops: i64, found: &mut Vec<Op<'c>>) {
    for region in 0..op.region_count() {
        for inner in mlir::blocks(op, region).into_iter().flat_map(mlir::ops) {
            let is_whole = mlir::is(inner, "scf.parallel")
                && mlir::ancestor(inner, "func.func").is_some_and(|it| !it.has_attribute(OUTLINED));
            let is_nest = || {
                is_whole
                    || is_loop(inner)
                        && num_loops(inner) <= max_loops
                        && !is_around_noted(inner)
                        && !has_calls(inner)
            };
            if is_operation(inner) || is_nest() {
                if mlir::results(inner).iter().all(|it| !mlir::is_memref(it.r#type())) {
                    found.push(inner);
                }
            } else {
                find(inner, max_loops, found);
            }
        }
    }
}

fn is_loop(op: Op) -> bool {
    LOOPS.iter().any(|name| mlir::is(op, name))
}

/// Whether an operation belongs to `imap` and becomes loops.
pub fn is_operation(op: Op) -> bool {
    AnyIndexed::cast(op).is_some() || Sort::cast(op).is_some()
}

/// Whether the work of operations in a loop is noted, and that of the loop is not.
fn is_around_noted(op: Op) -> bool {
    let mut is_inside = false;
    mlir::walk(op, &mut |inner| is_inside |= is_operation(inner) && is_noted(inner));
    is_inside && !is_noted(op)
}

/// Whether an operation calls functions of the program. These return a code, and what is outlined does not.
fn has_calls(op: Op) -> bool {
    let mut has_calls = false;
    mlir::walk(op, &mut |inner| has_calls |= mlir::is(inner, "func.call"));
    has_calls
}

fn is_noted(op: Op) -> bool {
    !mlir::location_tags(op.location()).is_empty()
}

/// About how many loops an operation contains once it is lowered.
fn num_loops(op: Op) -> i64 {
    let mut count = 0;
    mlir::walk(op, &mut |inner| {
        count += i64::from(inner != op && is_loop(inner));
        count += LOOPS_PER_OPERATION * i64::from(is_operation(inner));
    });
    count
}

/// A name that is not used yet, which begins with `name`.
pub(super) fn unused_name(used: &mut HashSet<String>, mut name: String) -> String {
    while !used.insert(name.clone()) {
        name.push('_');
    }
    name
}

/// Inserts an unnamed function with a copy of `op` before `function`, and returns it with the operands of its calls.
pub(super) fn outline<'c>(function: Op<'c>, op: Op<'c>) -> (Op<'c>, Vec<Val<'c>>) {
    let context = mlir::context_of(function);
    let mut used = Used::default();
    values_from_outside(op).into_iter().for_each(|value| used.add(value));
    let passed = used.passed;
    let types: Vec<_> = passed.iter().map(|value| value.r#type()).collect();
    let result_types: Vec<_> = mlir::results(op).iter().map(|value| value.r#type()).collect();

    let (region, block) = mlir::region_with_block(&types, op.location());
    let inside = Builder::at_end(context, block, op.location());
    let mut map = ValueMap::default();
    for (value, argument) in passed.iter().zip(mlir::arguments(block)) {
        map.insert(*value, argument);
    }
    for op in used.copied {
        inside.copy(op, &mut map);
    }
    let copy = inside.copy(op, &mut map);
    inside.op("func.return", &mlir::results(copy), &[]);

    let unit = Attribute::unit(context);
    let is_in_thread = is_in_parallel(op).then_some((IN_THREAD, unit));
    let alone = buffers_alone(&passed).unwrap_or_default();
    let mut alone = alone.chars().map(|digit| digit == '1');
    let attributes = passed.iter().map(|value| {
        let is_alone = mlir::is_memref(value.r#type()) && alone.next() == Some(true);
        argument_attributes(context, is_alone)
    });
    let attributes: Vec<_> = attributes.collect();
    let ty: Type = FunctionType::new(context, &types, &result_types).into();
    let are_pointers = passed.iter().all(|value| is_pointer(value.r#type()));
    let convention = are_pointers.then_some(("llvm.bareptr", unit));
    // LLVM inlines a function with one caller otherwise.
    let passed_on = mlir::array(context, &[mlir::string(context, "noinline")]);
    let properties = [
        ("sym_name", mlir::string(context, "")),
        ("sym_visibility", mlir::string(context, "private")),
        ("function_type", mlir::type_attr(ty)),
        ("arg_attrs", mlir::array(context, &attributes)),
        ("llvm.linkage", mlir::parse_attribute(context, "#llvm.linkage<internal>")),
        (OUTLINED, unit),
        ("passthrough", passed_on),
    ];
    let outlined = Builder::before(function).located(op.location()).op_with(
        "func.func",
        &[],
        &[],
        &[&properties[..], convention.as_slice(), is_in_thread.as_slice()].concat(),
        vec![region],
    );
    (outlined, passed)
}

/// The values that an operation uses: arguments of the outlined function, and operations that it contains copies of.
#[derive(Default)]
struct Used<'c> {
    passed: Vec<Val<'c>>,
    copied: Vec<Op<'c>>,
    seen: HashSet<usize>,
}

impl<'c> Used<'c> {
    fn add(&mut self, value: Val<'c>) {
        if !self.seen.insert(mlir::value_key(value)) {
            return;
        }
        let is_copied = |op: &Op<'c>| {
            let is_view = VIEWS.contains(&mlir::name(*op)) && !is_pointer(value.r#type());
            let extents = mlir::shape(value.r#type()).into_iter().flatten();
            let is_small = extents.product::<i64>() <= MAX_CONSTANT;
            is_view
                || mlir::is(*op, "arith.constant")
                || mlir::is(*op, "memref.get_global") && is_small
        };
        match mlir::defining_op(value).filter(is_copied) {
            Some(op) => {
                mlir::operands(op).into_iter().for_each(|operand| self.add(operand));
                self.copied.push(op);
            }
            None => self.passed.push(value),
        }
    }
}
