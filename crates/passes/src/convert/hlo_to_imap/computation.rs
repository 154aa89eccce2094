//! Computations of scalars, built in place.

use super::{ELIDED, MAX_DEPTH};
use crate::convert::elements::{
    Scalar,
    scalar::{apply, bitcast, constant, is_element_wise},
};
use tc_dialects::{
    element::ElementType,
    hlo::{Attribute, ComputationId, Instruction, Module, Opcode},
    mlir::Builder,
};

/// How many instructions a computation of scalars may have, its calls built in place.
const MAX_SCALAR_INSTRUCTIONS: usize = 1 << 14;

/// The results of a computation of scalars: one, or those of a tuple.
///
/// # Errors
/// An instruction in it is not one of scalars, or not supported, or there are too many once
/// calls are built in place.
pub(super) fn build_computation<'c>(
    b: &Builder<'c>,
    module: &Module,
    id: ComputationId,
    arguments: &[Scalar<'c>],
) -> Result<Vec<Scalar<'c>>, String> {
    build_at_depth(b, module, id, arguments, (&mut 0, 0))
}

/// `num_built` counts instructions, `depth` calls.
fn build_at_depth<'c>(
    b: &Builder<'c>,
    module: &Module,
    id: ComputationId,
    arguments: &[Scalar<'c>],
    (num_built, depth): (&mut usize, usize),
) -> Result<Vec<Scalar<'c>>, String> {
    let computation = &module[id];
    *num_built += computation.instructions.len();
    if MAX_SCALAR_INSTRUCTIONS < *num_built || MAX_DEPTH < depth {
        return Err(format!(
            "expected a computation of at most {MAX_SCALAR_INSTRUCTIONS} scalar instructions in \
             calls at most {} deep",
            MAX_DEPTH
        ));
    }
    let mut values: Vec<Vec<Scalar<'c>>> = Vec::with_capacity(computation.instructions.len());
    for instruction in &computation.instructions {
        let operand = |number: usize| &values[instruction.operands[number].index()];
        let value = match instruction.opcode {
            Opcode::Parameter => {
                let number = instruction.parameter_number().unwrap_or(0) as usize;
                vec![arguments.get(number).cloned().ok_or("a parameter without an argument")?]
            }
            Opcode::Constant => {
                let literal = instruction.literal().ok_or("a constant without a value")?;
                if literal.has_elided() {
                    return Err(ELIDED.to_string());
                }
                let literal = literal.as_array();
                vec![constant(b, literal.ok_or("a tuple constant is not supported here")?, 0)]
            }
            Opcode::Tuple => {
                let elements =
                    (0..instruction.operands.len()).map(|number| operand(number)[0].clone());
                elements.collect()
            }
            Opcode::GetTupleElement => {
                let index = instruction.integer(Attribute::Index).unwrap_or(0) as usize;
                vec![operand(0)[index].clone()]
            }
            Opcode::Call | Opcode::Fusion | Opcode::Map => {
                let called = instruction.called_computations().next();
                let arguments: Vec<_> = (0..instruction.operands.len())
                    .map(|number| operand(number)[0].clone())
                    .collect();
                let called = called.ok_or("a call of nothing")?;
                build_at_depth(b, module, called, &arguments, (num_built, depth + 1))?
            }
            // Of scalars, these change nothing.
            Opcode::Broadcast | Opcode::Reshape | Opcode::Transpose | Opcode::OptBarrier => {
                operand(0).clone()
            }
            Opcode::Bitcast | Opcode::BitcastConvert => {
                let from = element_of(&computation[instruction.operands[0]])?;
                match (element_of(instruction)?, from.is_complex()) {
                    (to, _) if from == to => operand(0).clone(),
                    (to, false) => vec![vec![bitcast(b, from, to, operand(0)[0][0])]],
                    (to, true) => {
                        let opcode = instruction.opcode;
                        return Err(format!("'{opcode}' from '{from}' to '{to}' is not supported"));
                    }
                }
            }
            opcode if is_element_wise(opcode) => {
                let operands: Vec<_> = instruction
                    .operands
                    .iter()
                    .map(|id| Ok((element_of(&computation[*id])?, values[id.index()][0].clone())))
                    .collect::<Result<_, String>>()?;
                vec![apply(b, instruction, &operands)?]
            }
            opcode => {
                return Err(format!("'{opcode}' is not supported in a computation of scalars"));
            }
        };
        values.push(value);
    }
    Ok(values.swap_remove(computation.root.index()))
}

fn element_of(instruction: &Instruction) -> Result<ElementType, String> {
    let shape = instruction.array().filter(|shape| shape.is_scalar());
    let shape = shape.ok_or_else(|| {
        format!("'{}' is not a scalar, which computations of scalars need", instruction.name)
    })?;
    Ok(shape.element_type)
}
