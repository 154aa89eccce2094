//! The driver of the passes that convert an Axon definition.

use tc_dialects::{
    axon::{
        Given,
        dialect::{PROGRAM, Read},
    },
    mlir::{self, Op},
    pass::{Failure, PassOption, PassRun},
    report::Report,
};

/// What the passes that convert a definition ask for.
pub const OPTIONS: &[PassOption] = &[
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

/// Converts the program of a module by what `convert` puts before it, from the program, the entry and
/// the shapes that are asked for, and the operation.
pub fn convert_program<'c>(
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
