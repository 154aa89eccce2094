//! `outline-loops`: in a function with many loop nests, each becomes a function of its own.
//!
//! LLVM takes more than linear time for a function, and one of thousands of loops, which a training
//! step is, takes it hours. Of a nest in a function of its own it knows more, too: which buffers do
//! not overlap (`tc.noalias`), so that it needs no checks before vectorized code.
//!
//! Before:
//!
//! ```mlir
//! func.func @f(%a: memref<8xf32>, %b: memref<8xf32>) {
//!   scf.for %i = %c0 to %c8 step %c1 {
//!     %x = memref.load %a[%i] : memref<8xf32>
//!     memref.store %x, %b[%i] : memref<8xf32>
//!   }
//!   .. // many more
//! }
//! ```
//!
//! After:
//!
//! ```mlir
//! func.func private @f_loop_0(%a: memref<8xf32>, %b: memref<8xf32>)
//!     attributes {passthrough = ["noinline", ["tc.noalias", "11"]], ..} {
//!   .. // the loop
//! }
//! func.func @f(%a: memref<8xf32>, %b: memref<8xf32>) {
//!   func.call @f_loop_0(%a, %b)
//!   .. // many more
//! }
//! ```
//!
//! A nest is an outermost `scf.for` or `scf.parallel`, or one in a loop that contains more than 8 times
//! `max-loops` loops, as the loop of a whole program does. A nest that gives a buffer stays. So does one
//! that allocates memory, because only the function itself can report that there is none. What a nest uses becomes arguments, constants are copied. Nests that do the same, as those of the
//! layers of a network, share one function. The arguments of the function itself must not overlap,
//! as those of all compiled functions.
//!
//! Option: `max-loops`, how many nests a function may keep.
//! Remark: how many nests were outlined, and to how many functions.

use crate::analysis::buffers::{buffers_alone, values_from_outside};
use melior::ir::{
    Type, ValueLike,
    operation::{OperationLike, OperationPrintingFlags},
    r#type::FunctionType,
};
use std::collections::{HashMap, HashSet, hash_map::Entry};
use tc_dialects::{
    mlir::{self, Builder, Op, Val, ValueMap},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::{RemarkKind, Report, remark},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "outline-loops",
    summary: "Make a function of each loop nest of a function that has many",
    anchor: "builtin.module",
    options: &[PassOption {
        name: "max-loops",
        description: "How many loop nests a function may keep",
        default: "32",
    }],
    dependent_dialects: &["func", "llvm"],
    run,
};

/// The attribute of functions of LLVM that says which of the buffers that a function takes share
/// no memory with the others: a digit per buffer. `llvm.noalias` does not outlive the conversion
/// of a buffer to several arguments.
pub const NOALIAS: &str = "tc.noalias";

/// Loops that make a nest.
const LOOPS: [&str; 2] = ["scf.for", "scf.parallel"];
/// The loops of one operation are one nest, with fewer than so many times `max-loops` loops.
const NEST_FACTOR: i64 = 8;
fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(max_loops) = pass.options.number("max-loops") else {
        Report::op_error(pass.op, "'max-loops' expects a number").emit();
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
        let mut nests = Vec::new();
        find_nests(function, max_loops, &mut nests);
        if nests.len() as i64 <= max_loops {
            continue;
        }
        let function_name = mlir::string_attr(function, "sym_name").unwrap_or_default();
        let before = made.len();
        for nest in &nests {
            let (outlined, passed) = outline(function, *nest);
            let flags = OperationPrintingFlags::new().use_local_scope();
            let text = outlined.to_string_with_flags(flags).map_err(|_| Failure)?;
            let number = made.len();
            let name = match made.entry(text) {
                Entry::Occupied(entry) => {
                    mlir::erase(outlined);
                    entry.into_mut()
                }
                Entry::Vacant(entry) => {
                    let mut name = format!("{function_name}_loop_{number}");
                    while !names.insert(name.clone()) {
                        name.push('_');
                    }
                    mlir::set_attribute(outlined, "sym_name", mlir::string(pass.context, &name));
                    entry.insert(name)
                }
            };
            let types: Vec<_> = mlir::results(*nest).iter().map(|it| it.r#type()).collect();
            let callee = ("callee", mlir::symbol(pass.context, name));
            let call =
                Builder::before(*nest).op_with("func.call", &passed, &types, &[callee], vec![]);
            mlir::replace(*nest, &mlir::results(call));
        }
        remark(
            function.location(),
            RemarkKind::Passed,
            PASS.argument,
            "loops",
            function_name,
            &[
                ("Outlined", &nests.len().to_string()),
                ("Functions", &(made.len() - before).to_string()),
            ],
        );
    }
    Ok(())
}

/// The loop nests of an operation, but for those that give or allocate buffers. The nests of a loop that
/// contains more than [`NEST_FACTOR`] times `max_loops` loops are those inside of it.
fn find_nests<'c>(op: Op<'c>, max_loops: i64, found: &mut Vec<Op<'c>>) {
    for region in 0..op.region_count() {
        for inner in mlir::blocks(op, region).into_iter().flat_map(mlir::ops) {
            if !is_loop(inner) || NEST_FACTOR * max_loops < num_loops(inner) {
                find_nests(inner, max_loops, found);
            } else if mlir::results(inner).iter().all(|it| !mlir::is_memref(it.r#type()))
                && !allocates(inner)
            {
                found.push(inner);
            }
        }
    }
}

fn is_loop(op: Op) -> bool {
    LOOPS.iter().any(|name| mlir::is(op, name))
}

/// The number of loops inside of an operation.
fn num_loops(op: Op) -> i64 {
    let mut count = 0;
    mlir::walk(op, &mut |inner| count += i64::from(inner != op && is_loop(inner)));
    count
}

fn allocates(nest: Op) -> bool {
    let mut found = false;
    mlir::walk(nest, &mut |op| found |= mlir::is(op, "memref.alloc"));
    found
}

/// Makes a function of a nest, without a name, before the one that it stands in. With what it is to
/// be called with.
fn outline<'c>(function: Op<'c>, nest: Op<'c>) -> (Op<'c>, Vec<Val<'c>>) {
    let context = mlir::context_of(function);
    let used = values_from_outside(nest);
    let is_constant = |value: &Val<'c>| {
        mlir::defining_op(*value).is_some_and(|op| mlir::is(op, "arith.constant"))
    };
    let (constants, passed): (Vec<_>, Vec<_>) = used.into_iter().partition(is_constant);
    let types: Vec<_> = passed.iter().map(|value| value.r#type()).collect();
    let result_types: Vec<_> = mlir::results(nest).iter().map(|value| value.r#type()).collect();

    let (region, block) = mlir::region_with_block(&types, nest.location());
    let inside = Builder::at_end(context, block, nest.location());
    let mut map = ValueMap::default();
    for (value, argument) in passed.iter().zip(mlir::arguments(block)) {
        map.insert(*value, argument);
    }
    for op in constants.into_iter().filter_map(mlir::defining_op) {
        inside.copy(op, &mut map);
    }
    let copy = inside.copy(nest, &mut map);
    inside.op("func.return", &mlir::results(copy), &[]);

    // LLVM would put what is called once where it is called.
    let mut passed_on = vec![mlir::string(context, "noinline")];
    if let Some(alone) = buffers_alone(&passed) {
        passed_on.push(mlir::strings(context, &[NOALIAS, &alone]));
    }
    let ty: Type = FunctionType::new(context, &types, &result_types).into();
    let outlined = Builder::before(function).located(nest.location()).op_with(
        "func.func",
        &[],
        &[],
        &[
            ("sym_name", mlir::string(context, "")),
            ("sym_visibility", mlir::string(context, "private")),
            ("function_type", mlir::type_attr(ty)),
            ("llvm.linkage", mlir::parse_attribute(context, "#llvm.linkage<internal>")),
            ("passthrough", mlir::array(context, &passed_on)),
        ],
        vec![region],
    );
    (outlined, passed)
}
