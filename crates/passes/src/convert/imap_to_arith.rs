//! `convert-imap-to-arith`: convert the scalar operations of `imap` to `arith` and calls.
//!
//! This pass converts `imap.apply` to `arith` operations on `index`, and `imap.builtin "f"` to a call of
//! `tc_f_f32` or `tc_f_f64`, declared as a private function of the module. Operands of a narrower type
//! are widened to `f32`, and the result is narrowed.
//!
//! Operations in the body of an `imap.generic` are converted too. These stay: `imap.index`, `imap.inside` and
//! `imap.yield` belong to `convert-imap-to-scf`, and `imap.check` belongs to
//! `convert-results-to-destinations`.

use super::index_emitter::IndexEmitter;
use melior::ir::{
    Attribute, ValueLike,
    attribute::{FlatSymbolRefAttribute, StringAttribute, TypeAttribute},
    operation::OperationLike,
    r#type::FunctionType,
};
use std::collections::BTreeMap;
use tc_dialects::{
    imap,
    mlir::{self, Builder, Op},
    pass::{Failure, PassInfo, PassRun},
    report::Report,
};
use tc_ir::Context;

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "convert-imap-to-arith",
    summary: "Convert imap.apply to arith and imap.builtin to calls",
    anchor: "",
    options: &[],
    dependent_dialects: &["arith", "func"],
    run,
};

fn run(run: &PassRun) -> Result<(), Failure> {
    let mut ops = Vec::new();
    mlir::walk(run.op, &mut |op| ops.push(op));
    let mut declared = BTreeMap::new();
    for op in ops {
        let converted = match mlir::name(op) {
            "imap.apply" => convert_apply(op),
            "imap.builtin" => convert_builtin(op, &mut declared),
            _ => continue,
        };
        converted.map_err(|report| {
            report.emit_on(op);
            Failure
        })?;
    }
    let Some(module) = mlir::body(run.op, 0) else { return Ok(()) };
    for (name, ty) in declared {
        declare(run, module, &name, ty);
    }
    Ok(())
}

fn convert_apply<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let ir = Context::new();
    let attribute = op.attribute("map").ok();
    let Some(map) = attribute.and_then(|it| imap::map::from_attribute(&ir, it)) else {
        return Err(Report::error("expected an indexing map"));
    };
    let operands = mlir::operands(op);
    let value_of = |var| operands.get(map.position(var)).copied();
    let intervals = map.intervals(&ir);
    let emitter = IndexEmitter {
        builder: Builder::before(op),
        ir: &ir,
        intervals: &|var| intervals.of(var),
        no_overflow: false,
    };
    let values = emitter.emit(&map.results, &value_of);
    mlir::replace(op, &values);
    Ok(())
}

fn convert_builtin<'c>(
    op: Op<'c>,
    declared: &mut BTreeMap<String, melior::ir::Type<'c>>,
) -> Result<(), Report<'c>> {
    let builder = Builder::before(op);
    let name = mlir::string_attr(op, "name").unwrap_or_default();
    let result = mlir::result(op, 0).r#type();
    let f32_type = melior::ir::Type::float32(builder.context);
    let wide = match result.to_string().as_str() {
        "f64" | "f32" => result,
        "f16" | "bf16" => f32_type,
        other => return Err(Report::error(format!("is not supported on '{other}'"))),
    };
    let operands: Vec<_> = mlir::operands(op)
        .into_iter()
        .map(|value| match value.r#type() == wide {
            true => value,
            false => builder.value("arith.extf", &[value], wide),
        })
        .collect();
    let symbol = format!("tc_{name}_{wide}");
    let callee: Attribute = FlatSymbolRefAttribute::new(builder.context, &symbol).into();
    let call = builder.value_with("func.call", &operands, wide, &[("callee", callee)]);
    let value = match result == wide {
        true => call,
        false => builder.value("arith.truncf", &[call], result),
    };
    let inputs = vec![wide; operands.len()];
    declared.insert(symbol, FunctionType::new(builder.context, &inputs, &[wide]).into());
    mlir::replace(op, &[value]);
    Ok(())
}

/// Declares a function, unless the module has one of that name.
fn declare<'c>(run: &PassRun<'c>, module: mlir::Blk<'c>, name: &str, ty: melior::ir::Type<'c>) {
    let ops = mlir::ops(module);
    if ops.iter().any(|op| mlir::string_attr(*op, "sym_name") == Some(name)) {
        return;
    }
    let builder = match ops.first() {
        Some(first) => Builder::before(*first).located(run.op.location()),
        None => Builder::at_end(run.context, module, run.op.location()),
    };
    builder.op_with(
        "func.func",
        &[],
        &[],
        &[
            ("sym_name", StringAttribute::new(run.context, name).into()),
            ("sym_visibility", StringAttribute::new(run.context, "private").into()),
            ("function_type", TypeAttribute::new(ty).into()),
        ],
        vec![melior::ir::Region::new()],
    );
}
