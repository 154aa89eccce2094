//! `drop-argument-attributes`: removes the attributes of the arguments of functions.
//!
//! They describe what a caller passes (`tc.name`, `tc.sizes`, `tc.extents`, ..). Whoever needs them reads
//! them before buffers are introduced; LLVM IR cannot hold them. Those of the `llvm` dialect stay.
//!
//! Before:
//!
//! ```mlir
//! func.func @f(%a: memref<4xf32> {tc.name = "A"}) -> i32
//! ```
//!
//! After:
//!
//! ```mlir
//! func.func @f(%a: memref<4xf32>) -> i32
//! ```

use melior::ir::attribute::DictionaryAttribute;
use tc_dialects::{
    mlir::{self, Op},
    pass::{Failure, PassInfo, PassRun},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "drop-argument-attributes",
    summary: "Remove the attributes of the arguments of functions",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &[],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let module = mlir::body(pass.op, 0).ok_or(Failure)?;
    for function in mlir::ops(module).into_iter().filter(|op| mlir::is(*op, "func.func")) {
        keep_llvm_attributes(function);
    }
    Ok(())
}

fn keep_llvm_attributes(function: Op) {
    let context = mlir::context_of(function);
    let mut are_kept = false;
    let attributes = mlir::array_attr(function, "arg_attrs").into_iter().map(|it| {
        let dictionary = DictionaryAttribute::try_from(it).ok();
        let entries =
            dictionary.iter().flat_map(|it| (0..it.len()).filter_map(|n| it.element(n).ok()));
        let entries: Vec<_> = entries.collect();
        let entries = entries.iter().filter_map(|(name, value)| {
            let name = name.as_string_ref().as_str().ok()?;
            name.starts_with("llvm.").then_some((name, *value))
        });
        let entries: Vec<_> = entries.collect();
        are_kept |= !entries.is_empty();
        mlir::dictionary(context, &entries)
    });
    let attributes: Vec<_> = attributes.collect();
    match are_kept {
        true => mlir::set_attribute(function, "arg_attrs", mlir::array(context, &attributes)),
        false => mlir::remove_attribute(function, "arg_attrs"),
    }
}
