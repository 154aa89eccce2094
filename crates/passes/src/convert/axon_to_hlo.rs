//! `convert-axon-to-hlo`: convert an Axon definition at known sizes to an HLO module.
//!
//! The shapes of some parameters are given, and all other shapes follow from them. Functions are
//! evaluated at each call, with the types of that call. `map` and `loop` become `while`, and `reduce`
//! becomes `reduce`. The sizes decide the remaining conditions of inference: a violated condition is an
//! error at the source location that requires it. `convert-hlo-to-imap` lowers the result.
//!
//! A module contains one program, which the computations replace. Limits: as in
//! `tc_dialects::axon::evaluate`.

use super::axon_program::{OPTIONS, convert_program};
use melior::ir::operation::OperationLike;
use tc_dialects::{
    mlir,
    pass::{Failure, PassInfo, PassRun},
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
