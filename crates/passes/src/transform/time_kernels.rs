//! `time-kernels`: call a clock around each outlined function.
//!
//! Before and after each call of a function that `imap-outline-functions` made, `tc_profile_begin` and
//! `tc_profile_end` are called with the number of the function. The loader of the code defines both. The module gets the
//! attribute `tc.kernels`: for each outlined function its name, the lines of the program that it comes from, and its
//! floating-point operations and bytes, if they are constant, and the schedules that it executes.

use super::{
    note_work::{self, Amounts},
    outline_functions::is_operation,
};
use crate::analysis::{buffers::OUTLINED, cost::work};
use melior::ir::{Attribute, Region, operation::OperationLike, r#type::FunctionType};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tc_dialects::{
    mlir::{self, Builder, Op},
    pass::{Failure, PassInfo, PassRun},
};
use tc_ir::Context;

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "time-kernels",
    summary: "Call a clock around each outlined function",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["arith", "func"],
    run,
};

/// The attribute of the module that describes kernels.
const KERNELS: &str = "tc.kernels";
/// The functions that are called before and after a kernel, with its number.
pub const CLOCK: [&str; 2] = ["tc_profile_begin", "tc_profile_end"];

/// A kernel of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The name of its function.
    pub name: String,
    /// The lines of the program that it comes from, in order.
    pub lines: Vec<i64>,
    /// Floating-point operations of one run, if that is constant.
    pub flops: Option<u64>,
    /// Bytes that one run reads and writes, if that is constant.
    pub bytes: Option<u64>,
    /// The steps of the schedules on tensors that it executes; empty if there are none.
    pub schedule: String,
}

/// The kernels of a module, by their numbers.
pub fn kernels(module: Op) -> Vec<Kernel> {
    let kernel = |entry: Attribute| {
        let get = |name: &str| mlir::dictionary_entry(entry, name);
        let numbers = |name: &str| get(name).and_then(mlir::integers_of).unwrap_or_default();
        let amount = |name: &str| numbers(name).first().and_then(|it| u64::try_from(*it).ok());
        let text = |name: &str| get(name).and_then(mlir::string_of).unwrap_or_default().to_string();
        Kernel {
            name: text("name"),
            lines: numbers("lines"),
            flops: amount("flops"),
            bytes: amount("bytes"),
            schedule: text("schedule"),
        }
    };
    mlir::array_attr(module, KERNELS).into_iter().map(kernel).collect()
}

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    let context = pass.context;
    let schedules = note_work::take_schedules(pass.op);
    let functions: Vec<_> =
        mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "func.func")).collect();
    let outlined: Vec<_> =
        functions.iter().copied().filter(|op| op.attribute(OUTLINED).is_ok()).collect();
    let Some(first) = outlined.first() else { return Ok(()) };
    let names: Vec<_> = outlined
        .iter()
        .map(|op| mlir::string_attr(*op, "sym_name").unwrap_or_default().to_string())
        .collect();
    let mut lines: Vec<_> = outlined.iter().map(|op| lines(*op)).collect();
    let noted: Vec<_> = outlined.iter().map(|op| noted(*op)).collect();
    let amounts = amounts(&outlined, &noted);

    let builder = Builder::before(*first);
    let ty = FunctionType::new(context, &[builder.int_type(64)], &[]);
    for name in CLOCK {
        let attributes = [
            ("sym_name", mlir::string(context, name)),
            ("sym_visibility", mlir::string(context, "private")),
            ("function_type", mlir::type_attr(ty.into())),
        ];
        builder.op_with("func.func", &[], &[], &attributes, vec![Region::new()]);
    }
    let numbers: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
    let mut calls = Vec::new();
    for function in functions {
        mlir::walk(function, &mut |op| {
            let callee = mlir::callee(op).filter(|_| mlir::is(op, "func.call"));
            let number = callee.and_then(|name| numbers.get(name));
            calls.extend(number.map(|number| (op, *number)));
        });
    }
    for (call, number) in calls {
        // Operations that share a function come from different lines.
        lines[number].extend(source_lines(call));
        let builder = Builder::before(call);
        let number = mlir::i64_attr(context, number as i64);
        let number = builder.constant(builder.int_type(64), number);
        let [_, end] = CLOCK.map(|name| {
            let callee = ("callee", mlir::symbol(context, name));
            builder.op_with("func.call", &[number], &[], &[callee], vec![])
        });
        mlir::move_before(call, end);
    }

    let mut kernels = Vec::new();
    for (((amounts, name), lines), noted) in amounts.into_iter().zip(&names).zip(lines).zip(&noted)
    {
        let lines: Vec<_> = lines.into_iter().collect();
        let mut entries = vec![
            ("name", mlir::string(context, name)),
            ("lines", mlir::i64_array(context, &lines)),
        ];
        let schedule = schedule(noted, &schedules);
        if !schedule.is_empty() {
            entries.push(("schedule", mlir::string(context, &schedule)));
        }
        for (name, amount) in ["flops", "bytes"].into_iter().zip(amounts) {
            entries.extend(amount.map(|amount| (name, mlir::i64_array(context, &[amount]))));
        }
        kernels.push(mlir::dictionary(context, &entries));
    }
    mlir::set_attribute(pass.op, KERNELS, mlir::array(context, &kernels));
    Ok(())
}

/// The lines of the program that the operations of `imap` in a function come from. Constants and views may come from
/// anywhere.
fn lines(function: Op) -> BTreeSet<i64> {
    let mut found = BTreeSet::new();
    mlir::walk(function, &mut |op| {
        if is_operation(op) {
            found.extend(source_lines(op));
        }
    });
    found
}

fn source_lines(op: Op) -> impl Iterator<Item = i64> {
    mlir::source_lines(op.location()).into_iter().map(|(_, line)| line as i64)
}

/// The operations that a function computes, by their numbers, as `note-work` noted them.
fn noted(function: Op) -> BTreeMap<i64, Amounts> {
    let mut found = BTreeMap::new();
    mlir::walk(function, &mut |op| {
        if is_operation(op) {
            found.extend(note_work::noted(op));
        }
    });
    found
}

/// The different schedules of operations.
fn schedule(noted: &BTreeMap<i64, Amounts>, schedules: &[String]) -> String {
    let of = |number: &i64| schedules.get(usize::try_from(*number).ok()?);
    let mut found: Vec<&str> = Vec::new();
    for schedule in noted.keys().filter_map(of).filter(|it| !it.is_empty()) {
        if !found.contains(&&**schedule) {
            found.push(schedule);
        }
    }
    found.join("; ")
}

/// The work of outlined functions: that of the operations that they compute, or the work of their loops if nothing is
/// noted. The work of an operation in several functions cannot be divided among them.
fn amounts(outlined: &[Op], noted: &[BTreeMap<i64, Amounts>]) -> Vec<Amounts> {
    let mut functions: HashMap<i64, usize> = HashMap::new();
    noted.iter().flat_map(BTreeMap::keys).for_each(|it| *functions.entry(*it).or_default() += 1);
    let amounts = |(function, noted): (&Op, &BTreeMap<i64, Amounts>)| {
        if noted.is_empty() || noted.keys().any(|number| 1 < functions[number]) {
            let ir = Context::new();
            let extents = note_work::extents(&ir, *function);
            return note_work::constant(&ir, work(*function, &extents));
        }
        [0, 1].map(|kind| noted.values().map(|amounts| amounts[kind]).sum())
    };
    outlined.iter().zip(noted).map(amounts).collect()
}
