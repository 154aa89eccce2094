//! `convert-axon-to-hlo`: convert an Axon definition at known sizes to an HLO module.
//!
//! The shapes of some parameters are given, and all other shapes follow from them. Functions are
//! evaluated at each call, with the types of that call. `map` and `loop` become `while`, and `reduce`
//! becomes `reduce`. The sizes decide the remaining conditions of inference: a violated condition is an
//! error at the source location that requires it. `convert-hlo-to-imap` lowers the result.
//!
//! A module contains one program, which the computations replace. Limits: as in
//! `tc_dialects::axon::evaluate`.

use melior::ir::operation::OperationLike;
use tc_dialects::{
    axon::{
        Given,
        dialect::{PROGRAM, Read},
    },
    mlir::{self, Op},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::Report,
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "convert-axon-to-hlo",
    summary: "Convert an Axon definition at known sizes to HLO",
    anchor: "builtin.module",
    options: OPTIONS,
    dependent_dialects: &["hlo"],
    run,
};

/// What the passes that convert a definition ask for.
pub(super) const OPTIONS: &[PassOption] = &[
    PassOption {
        name: "entry",
        description: "The definition; by default the value of the program, or its only one",
        default: "",
    },
    PassOption {
        name: "shapes",
        description: "Shapes of parameters, as \"Q=128x64;x=f64[?,3]\"",
        default: "",
    },
];

fn run(pass: &PassRun) -> Result<(), Failure> {
    convert_program(pass, |read, entry, given, program| {
        let module = read.to_hlo(entry, given)?;
        for op in mlir::ops(mlir::block_ref(module.body())) {
            mlir::move_before(op, program);
        }
        let converted = mlir::op_ref(module.as_operation());
        for (name, value) in converted.attributes() {
            if let Ok(name) = name.as_string_ref().as_str() {
                mlir::set_attribute(pass.op, name, value);
            }
        }
        Ok(())
    })
}

/// Converts the program of a module by what `convert` puts before it, from the program, the entry and
/// the shapes that are asked for, and the operation.
pub(super) fn convert_program<'c>(
    pass: &PassRun<'c>,
    convert: impl FnOnce(Read<'c>, Option<&str>, &[Given], Op<'c>) -> Result<(), Report<'c>>,
) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    let programs: Vec<_> =
        mlir::ops(block).into_iter().filter(|op| mlir::is(*op, PROGRAM)).collect();
    let emit = |report: Report| {
        report.emit();
        Failure
    };
    let program = match programs[..] {
        [] => return Ok(()),
        [program] => program,
        [_, second, ..] => {
            return Err(emit(Report::op_error(second, "expects to be the only one of a module")));
        }
    };
    pass.enter(program);
    let mut given = Vec::new();
    for text in pass.options.text("shapes").split(';').filter(|text| !text.trim().is_empty()) {
        let Some(shape) = Given::parse(text) else {
            let message = format!("'{text}' is no shape; expected NAME=4x3 or NAME=f64[4,3]");
            return Err(emit(Report::op_error(program, message)));
        };
        given.push(shape);
    }
    let entry = Some(pass.options.text("entry")).filter(|entry| !entry.is_empty());
    let read = Read::new(program).map_err(emit)?;
    convert(read, entry, &given, program).map_err(emit)?;
    mlir::erase(program);
    Ok(())
}
