//! `imap-outline-functions`: in a function with many operations on buffers, each becomes a function of its own.
//!
//! Operations that do the same, as those of the layers of a network, share one function: it is lowered and compiled
//! once. LLVM takes more than linear time for a function, and one of thousands of loops, which a training step is,
//! takes it hours. Of a nest in a function of its own it knows more, too: which buffers do not overlap
//! (`llvm.noalias`), so that it needs no checks before vectorized code.
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
//! An operation is one of `imap`, or an outermost `scf.for` or `scf.parallel`. A loop that contains more than
//! `max-operations` operations, as the loop of a whole program does, is not taken as a whole: those inside of it are.
//! A loop that gives a buffer stays.
//!
//! What an operation uses becomes arguments. Small constants are copied, and so are views at places that are computed.
//! Buffers are passed as pointers if none of them has open sizes or strides. The arguments of the function itself must
//! not overlap, as those of all compiled functions.
//!
//! Option: `max-operations`, how many a function may keep.
//! Remark: how many operations were outlined, and to how many functions.

use crate::analysis::buffers::{NOALIAS, VIEWS, buffers_alone, open_parts, values_from_outside};
use melior::ir::{
    Attribute, Type, ValueLike,
    operation::{OperationLike, OperationPrintingFlags},
    r#type::{FunctionType, MemRefType},
};
use std::collections::{HashMap, HashSet, hash_map::Entry};
use tc_dialects::{
    imap::{AnyIndexed, Sort},
    mlir::{self, Builder, Op, Val, ValueMap},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::{RemarkKind, Report, remark},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "imap-outline-functions",
    summary: "Make a function of each operation on buffers of a function that has many",
    anchor: "builtin.module",
    options: &[PassOption {
        name: "max-operations",
        description: "How many operations on buffers a function may keep",
        default: "32",
    }],
    dependent_dialects: &["func", "llvm"],
    run,
};

/// The attribute of functions that this pass makes.
pub(crate) const OUTLINED: &str = "tc.outlined";
/// Loops that make a nest.
const LOOPS: [&str; 2] = ["scf.for", "scf.parallel"];
/// The elements of constants that are copied rather than passed, so that LLVM knows them.
const MAX_CONSTANT: u64 = 64;
/// An operation of `imap` becomes about as many loops.
const LOOPS_PER_OPERATION: i64 = 8;

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(max_operations) = pass.options.number("max-operations") else {
        Report::op_error(pass.op, "'max-operations' expects a number").emit();
        return Err(Failure);
    };
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
        find(function, max_operations, &mut operations);
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
                    let mut name = format!("{function_name}_{number}");
                    while !names.insert(name.clone()) {
                        name.push('_');
                    }
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

/// The operations that may become functions. Of a loop with more than `max_operations`, these are those inside of it.
fn find<'c>(op: Op<'c>, max_operations: i64, found: &mut Vec<Op<'c>>) {
    for region in 0..op.region_count() {
        for inner in mlir::blocks(op, region).into_iter().flat_map(mlir::ops) {
            let is_loop = is_loop(inner);
            let is_large = || LOOPS_PER_OPERATION * max_operations < num_loops(inner);
            if is_operation(inner) || is_loop && !is_large() {
                if mlir::results(inner).iter().all(|it| !mlir::is_memref(it.r#type())) {
                    found.push(inner);
                }
            } else {
                find(inner, max_operations, found);
            }
        }
    }
}

fn is_loop(op: Op) -> bool {
    LOOPS.iter().any(|name| mlir::is(op, name))
}

/// Whether an operation is one of `imap` that becomes loops.
fn is_operation(op: Op) -> bool {
    AnyIndexed::cast(op).is_some() || Sort::cast(op).is_some()
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

/// Makes a function of an operation, without a name, before the one that it stands in. With what it is to be called with.
fn outline<'c>(function: Op<'c>, op: Op<'c>) -> (Op<'c>, Vec<Val<'c>>) {
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

    let alone = buffers_alone(&passed).unwrap_or_default();
    let mut alone = alone.chars().map(|digit| digit == '1');
    let attributes = passed.iter().map(|value| {
        let is_alone = mlir::is_memref(value.r#type()) && alone.next() == Some(true);
        argument_attributes(context, is_alone)
    });
    let attributes: Vec<_> = attributes.collect();
    let ty: Type = FunctionType::new(context, &types, &result_types).into();
    let unit = Attribute::unit(context);
    let are_pointers = passed.iter().all(|value| is_static(value.r#type()));
    let convention = are_pointers.then_some(("llvm.bareptr", unit));
    // LLVM would put what is called once where it is called.
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
        &[&properties[..], convention.as_slice()].concat(),
        vec![region],
    );
    (outlined, passed)
}

/// The attributes of an argument: of a buffer, whether it shares no memory with the others.
pub(crate) fn argument_attributes(context: &melior::Context, is_alone: bool) -> Attribute<'_> {
    let noalias = (NOALIAS, Attribute::unit(context));
    mlir::dictionary(context, if is_alone { std::slice::from_ref(&noalias) } else { &[] })
}

/// What an operation uses: values that are passed, and operations that are copied, in order.
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
            let is_view = VIEWS.contains(&mlir::name(*op)) && !is_static(value.r#type());
            let is_small = || num_elements(value.r#type()) <= MAX_CONSTANT;
            is_view
                || mlir::is(*op, "arith.constant")
                || mlir::is(*op, "memref.get_global") && is_small()
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

/// The elements of a buffer; `u64::MAX` if its sizes are open.
fn num_elements(ty: Type) -> u64 {
    let extents = mlir::shape(ty).into_iter();
    extents.fold(1, |product: u64, extent| {
        product.saturating_mul(extent.map_or(u64::MAX, i64::unsigned_abs))
    })
}

/// Whether a pointer is all that is needed of a value, if it is a buffer.
fn is_static(ty: Type) -> bool {
    !mlir::is_memref(ty) || MemRefType::try_from(ty).is_ok_and(|it| open_parts(it).is_empty())
}
