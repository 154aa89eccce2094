//! `outline-parallel-loops`: make a function of each parallel loop, which threads call for their iterations.
//!
//! Before:
//!
//! ```mlir
//! scf.parallel (%i) = (%c0) to (%c64) step (%c4) {
//!   .. // uses %x and %y
//! }
//! ```
//!
//! After:
//!
//! ```mlir
//! omp.parallel {
//!   .. // %first and %end, from the number of the thread and the number of threads
//!   func.call @f_part(%first, %end, %x, %y)
//! }
//!
//! func.func private @f_part(%first: index, %end: index, %x: memref<64xf32> {llvm.noalias}, ..) {
//!   scf.for %i = %first to %end step %c4 {
//!     .. // uses %x and %y
//!   }
//! }
//! ```
//!
//! Threads run about the same number of iterations, in order. Several loops count as one over the product of their
//! iterations. Stack memory of static size is allocated once per thread. A loop with results, which are reductions, stays:
//! it runs in one thread.
//!
//! Upstream's `convert-scf-to-openmp` makes `omp.wsloop`. Its translation puts the whole loop in a function that reads its
//! pointers from memory. LLVM knows less of them than of arguments, and takes about twice as long for such a loop.

use super::outline_functions::{outline, unused_name};
use crate::loops::{add_indices, annotate, build_for, constant_count, multiply_indices};
use melior::ir::{Region, operation::OperationLike};
use std::collections::HashSet;
use tc_dialects::{
    mlir::{self, Builder, Op, Val},
    pass::{Failure, PassInfo, PassRun},
    report::Report,
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "outline-parallel-loops",
    summary: "Make a function of each parallel loop, which threads call for their iterations",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["arith", "func", "llvm", "omp", "scf"],
    run,
};

/// The number of a thread, and the number of threads.
const THREADS: [&str; 2] = ["omp_get_thread_num", "omp_get_num_threads"];

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    let symbols = mlir::ops(block);
    let names = symbols.iter().filter_map(|op| mlir::string_attr(*op, "sym_name"));
    let mut names: HashSet<String> = names.map(str::to_owned).collect();
    let mut loops = Vec::new();
    for function in symbols.into_iter().filter(|op| mlir::is(*op, "func.func")) {
        mlir::walk(function, &mut |op| {
            if mlir::is(op, "scf.parallel") && op.result_count() == 0 {
                loops.push((function, op));
            }
        });
    }
    if loops.is_empty() {
        return Ok(());
    }
    for name in THREADS {
        declare(pass.op, name)?;
    }
    // Inner loops first.
    for (function, op) in loops.into_iter().rev() {
        pass.enter(op);
        let shared = share(op);
        let (part, passed) = outline(function, shared);
        let name = mlir::string_attr(function, "sym_name").unwrap_or_default();
        let name = unused_name(&mut names, format!("{name}_part"));
        mlir::set_attribute(part, "sym_name", mlir::string(pass.context, &name));
        let callee = ("callee", mlir::symbol(pass.context, &name));
        Builder::before(shared).op_with("func.call", &passed, &[], &[callee], vec![]);
        mlir::erase(shared);
    }
    Ok(())
}

/// Declares a function of OpenMP that returns a number.
fn declare(module: Op, name: &str) -> Result<(), Failure> {
    let Some(block) = mlir::body(module, 0) else { return Err(Failure) };
    let (context, symbols) = (mlir::context_of(module), mlir::ops(block));
    let ty = mlir::parse_attribute(context, "() -> i32");
    let known = symbols.iter().find(|op| mlir::string_attr(**op, "sym_name") == Some(name));
    if let Some(known) = known {
        let is_declaration = mlir::body(*known, 0).is_none()
            && known.attribute("function_type").is_ok_and(|it| it == ty);
        if is_declaration && mlir::is(*known, "func.func") {
            return Ok(());
        }
        let message = format!("has the name of a function of OpenMP, '{name}'; rename it");
        Report::op_error(*known, message).emit();
        return Err(Failure);
    }
    let attributes = [
        ("sym_name", mlir::string(context, name)),
        ("sym_visibility", mlir::string(context, "private")),
        ("function_type", ty),
    ];
    let region = vec![Region::new()];
    Builder::before(symbols[0]).op_with("func.func", &[], &[], &attributes, region);
    Ok(())
}

/// Replaces a parallel loop by a region that each thread runs, and returns the loop of a thread.
fn share(op: Op) -> Op {
    let builder = Builder::before(op).located(op.location());
    let (context, index) = (builder.context, builder.index_type());
    let [lowers, uppers, steps] = [0, 1, 2].map(|group| mlir::operand_group(op, group));
    let bounds = lowers.iter().zip(&uppers).zip(&steps);
    let counts: Vec<_> =
        bounds.map(|((lower, upper), step)| count(&builder, *lower, *upper, *step)).collect();
    let total = counts[1..].iter().fold(counts[0], |all, it| multiply_indices(&builder, all, *it));

    let (region, block) = mlir::region_with_block(&[], op.location());
    let no_clauses = [("operandSegmentSizes", mlir::segments(context, &[0; 6]))];
    builder.op_with("omp.parallel", &[], &[], &no_clauses, vec![region]);
    let inside = Builder::at_end(context, block, op.location());
    let [thread, num_threads] = THREADS.map(|name| {
        let callee = [("callee", mlir::symbol(context, name))];
        let number = inside.value_with("func.call", &[], inside.int_type(32), &callee);
        inside.value("arith.index_castui", &[number], index)
    });
    let length = inside.value("arith.ceildivui", &[total, num_threads], index);
    let first = inside.value("arith.muli", &[thread, length], index);
    let end = inside.value("arith.addi", &[first, length], index);
    let end = inside.value("arith.minui", &[end, total], index);

    let body = mlir::body(op, 0).expect("a loop has a body");
    let (inner, terminator) = (mlir::ops(body), mlir::terminator(body));
    let is_stack = |it: &Op| mlir::is(*it, "memref.alloca") && it.operand_count() == 0;
    let (stack, inner): (Vec<_>, Vec<_>) = inner.into_iter().partition(is_stack);
    let place = inside.op("omp.terminator", &[], &[]);
    stack.into_iter().for_each(|it| mlir::move_before(it, place));
    let inside = Builder::before(place).located(op.location());
    // The numbers of iterations of several loops, and the index itself of a single one.
    let at = |number| {
        let offset = multiply_indices(&inside, number, steps[0]);
        add_indices(&inside, lowers[0], offset)
    };
    let bounds = match counts.len() {
        1 => (at(first), at(end), steps[0]),
        _ => (first, end, inside.index(1)),
    };
    let mut is_around_loop = false;
    build_for(&inside, bounds, &[], &mut |builder, value, _| {
        let mut rest = value;
        for place in (0..counts.len()).rev() {
            let mut value = rest;
            if place != 0 {
                value = builder.value("arith.remui", &[rest, counts[place]], index);
                rest = builder.value("arith.divui", &[rest, counts[place]], index);
            }
            if counts.len() != 1 {
                value = add_indices(
                    builder,
                    lowers[place],
                    multiply_indices(builder, value, steps[place]),
                );
            }
            mlir::replace_uses(mlir::arguments(body)[place], value);
        }
        let place = builder.op("scf.yield", &[], &[]);
        for op in inner.iter().copied().filter(|it| *it != terminator) {
            is_around_loop |= op.region_count() != 0;
            mlir::move_before(op, place);
        }
        mlir::erase(place);
        Vec::new()
    });
    mlir::erase(op);
    let shared = mlir::ops(block).into_iter().rev().nth(1).expect("the loop is before the end");
    if is_around_loop {
        // LLVM would copy the loops inside.
        annotate(shared, "unroll = <disable = true>");
    }
    shared
}

/// The number of iterations of a loop.
fn count<'c>(builder: &Builder<'c>, lower: Val<'c>, upper: Val<'c>, step: Val<'c>) -> Val<'c> {
    let index = builder.index_type();
    if let Some(count) = constant_count(lower, upper, step) {
        return builder.index(count);
    }
    let distance = builder.value("arith.subi", &[upper, lower], index);
    let count = builder.value("arith.ceildivsi", &[distance, step], index);
    builder.value("arith.maxsi", &[count, builder.index(0)], index)
}
