//! Verifies modules: their structure, and the shape of each instruction.
//!
//! The shape of an instruction is inferred from operands and attributes where they determine it,
//! and compared with the one that is written, layouts apart. Every instruction is looked at once;
//! time is linear in the size of the module.
//!
//! Of each instruction, whatever its opcode:
//!
//!   * C1: operands stand before it, and are as many as the opcode takes.
//!   * C2: it has the attributes that the opcode needs and no others, each with a value of its kind.
//!   * C3: the computations that it refers to stand before its own.
//!   * C4: sizes are not negative, and the bytes of each array can be counted in 64 bits. A layout
//!     is a permutation of the dimensions.
//!   * C5: the shape is the one that follows from operands and attributes.
//!   * C6: a parameter has a number, a constant a value of its shape.
//!
//! Of computations and the module:
//!
//!   * C7: names are unique, and such that the printed text can be read again.
//!   * C8: the parameters are listed in the order of their numbers, which count from 0.
//!   * C9: the root is one of the instructions; nothing refers to the entry.
//!   * C10: `entry_computation_layout` has the shapes of the entry computation.
//!   * C11: `input_output_alias` has results and parameters of the entry computation, each once.
//!
//! The constraints of the opcodes are numbered in the modules `elementwise` (E), `structural` (S),
//! `indexed` (I), `contraction` (D), `window` (W) and `control` (F). Source: OpenXLA, "Operation
//! Semantics"; StableHLO, specification, where that is silent. Not checked: that a promise
//! (`unique_indices`, `is_associative`) holds, and what attributes kept as text say.

mod contraction;
mod control;
mod elementwise;
mod indexed;
mod structural;
#[cfg(test)]
mod tests;
mod window;

use super::{
    ArrayShape, Attribute, COMMON, Computation, ComputationId, Header, Instruction, Literal,
    Module, Opcode, Payload, Shape, Value, alias,
    syntax::parser::{differs, is_permutation},
};
use crate::text::{
    Diagnostic, Reason, Span,
    diagnostic::{MAX_DIAGNOSTICS, sorted_and_capped},
};
use std::{collections::HashSet, fmt::Display};

/// What an opcode's check gives: the shape that it infers, if it does, or what is wrong.
type Inferred = Result<Option<Shape>, String>;

/// Checks a module; it is a valid one if there are no diagnostics.
pub fn verify(module: &Module) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut names = HashSet::new();
    for (id, computation) in module.computations() {
        let error =
            |message: String| Diagnostic::new(Reason::HloStructure, computation.span, message);
        // C7.
        if !is_name(&computation.name) {
            diagnostics.push(error(format!("'{}' is no name of a computation", computation.name)));
        }
        if !names.insert(computation.name.as_str()) {
            let message = format!("computation '{}' is defined twice", computation.name);
            diagnostics.push(error(message));
        }
        match verify_structure(module, id, computation) {
            Ok(()) => verify_instructions(module, computation, &mut diagnostics),
            Err((span, message)) => {
                diagnostics.push(Diagnostic::new(Reason::HloStructure, span, message));
            }
        }
        if MAX_DIAGNOSTICS < diagnostics.len() {
            break;
        }
    }
    if diagnostics.is_empty()
        && let Err(message) = verify_module(module, &module.header)
    {
        let entry = module.computations.get(module.entry.index());
        let span = entry.map(|each| each.span).unwrap_or_default();
        diagnostics.push(Diagnostic::new(Reason::HloVerify, span, message));
    }
    sorted_and_capped(diagnostics)
}

/// C9 to C11.
fn verify_module(module: &Module, header: &Header) -> Result<(), String> {
    let Some(entry) = module.computations.get(module.entry.index()) else {
        return Err("the entry is not one of the computations".to_owned());
    };
    if let Some(expected) = &header.entry_computation_layout
        && let Some(message) = differs(expected, entry, "'entry_computation_layout'")
    {
        return Err(message);
    }
    alias::check(module)
}

/// Whether a word is read back as a name.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name.bytes().all(super::syntax::lexer::is_name_byte)
        && !name.contains("->")
}

/// C1 to C3, C7 to C9: what must hold before shapes can be looked at.
fn verify_structure(
    module: &Module,
    id: ComputationId,
    computation: &Computation,
) -> Result<(), (Span, String)> {
    let count = computation.instructions.len();
    let fail = |message: String| Err((computation.span, message));
    if count <= computation.root.index() {
        return fail(format!("the root of '{}' is not one of its instructions", computation.name));
    }
    for (position, id) in computation.parameters.iter().enumerate() {
        let number =
            computation.instructions.get(id.index()).and_then(|each| each.parameter_number());
        if number != Some(position as i64) {
            return fail(format!("parameter {position} of '{}' is not listed", computation.name));
        }
    }
    let mut names = HashSet::with_capacity(count);
    let mut num_parameters = 0;
    for (own, instruction) in computation.instructions() {
        let fail = |message: String| Err((instruction.span, message));
        let (name, opcode) = (&instruction.name, instruction.opcode);
        if !is_name(name) {
            return fail(format!("'{name}' is no name of an instruction"));
        }
        if !names.insert(name.as_str()) {
            return fail(format!("instruction '{name}' is defined twice"));
        }
        num_parameters += usize::from(opcode == Opcode::Parameter);
        if !opcode.arity().allows(instruction.operands.len()) {
            let (found, expected) = (instruction.operands.len(), opcode.arity());
            return fail(format!("'{opcode}' takes {expected}, found {found}"));
        }
        if instruction.operands.iter().any(|operand| own <= *operand) {
            return fail(format!("an operand of '{name}' does not stand before it"));
        }
        for required in opcode.required() {
            if instruction.attribute(*required).is_none() {
                return fail(format!("'{opcode}' needs the attribute '{required}'"));
            }
        }
        for (attribute, value) in &instruction.attributes {
            let mut allowed = opcode.required().iter().chain(opcode.optional()).chain(COMMON);
            if !allowed.any(|each| each == attribute) {
                return fail(format!("'{opcode}' does not take the attribute '{attribute}'"));
            }
            if attribute.kind() != value.kind() {
                return fail(format!("'{attribute}' of '{opcode}' has a value of another kind"));
            }
            if let Value::Instructions(list) = value
                && list.iter().any(|each| own <= *each)
            {
                return fail(format!("an instruction in '{attribute}' does not stand before"));
            }
        }
        if instruction.called_computations().any(|callee| id <= callee) {
            return fail(format!("a computation that '{name}' refers to does not stand before"));
        }
        if instruction.called_computations().any(|callee| callee == module.entry) {
            return fail(format!("'{name}' refers to the entry computation"));
        }
    }
    if num_parameters != computation.parameters.len() {
        return fail(format!("a parameter of '{}' is not listed", computation.name));
    }
    Ok(())
}

/// C4 to C6 of each instruction of a computation.
fn verify_instructions(
    module: &Module,
    computation: &Computation,
    diagnostics: &mut Vec<Diagnostic>,
) {
    for instruction in &computation.instructions {
        let checked = verify_shape(&instruction.shape).and_then(|()| {
            let cx = Cx { module, computation, instruction };
            match infer(&cx)? {
                Some(expected) if !expected.is_compatible(&instruction.shape) => Err(format!(
                    "expected shape {} from operands and attributes, found {}",
                    expected.without_layout(),
                    instruction.shape.without_layout()
                )),
                _ => Ok(()),
            }
        });
        if let Err(message) = checked {
            let message = format!("'{}': {message}", instruction.opcode);
            diagnostics.push(Diagnostic::new(Reason::HloVerify, instruction.span, message));
            if MAX_DIAGNOSTICS < diagnostics.len() {
                return;
            }
        }
    }
}

/// C4.
fn verify_shape(shape: &Shape) -> Result<(), String> {
    let mut error = None;
    shape.for_each_array(&mut |array| {
        let problem = match &array.layout {
            _ if array.dims.iter().any(|dim| *dim < 0) => "has a negative size",
            _ if array.num_elements().is_none() => "has more elements than 64 bits can count",
            _ if array.num_bytes().is_none() => "has more bytes than 64 bits can count",
            Some(layout)
                if layout.minor_to_major.len() != array.rank()
                    || !is_permutation(&layout.minor_to_major) =>
            {
                "has a layout that is no permutation of its dimensions"
            }
            _ => return,
        };
        error.get_or_insert_with(|| format!("shape {array} {problem}"));
    });
    error.map_or(Ok(()), Err)
}

/// C6.
fn verify_literal(literal: &Literal, shape: &Shape) -> bool {
    match (literal, shape) {
        (Literal::Array(array), Shape::Array(shape)) => {
            let expected = if array.is_splat { Some(1) } else { shape.num_elements() };
            array.element_type == shape.element_type
                && expected == Some(array.num_stored() as i64)
                && array.bytes.len() % array.element_type.bytes() == 0
        }
        (Literal::Elided, Shape::Array(_)) => true,
        (Literal::Tuple(values), Shape::Tuple(shapes)) => {
            values.len() == shapes.len()
                && values.iter().zip(shapes).all(|(value, shape)| verify_literal(value, shape))
        }
        _ => false,
    }
}

/// C5: the shape that operands and attributes of an instruction determine.
fn infer(cx: &Cx) -> Inferred {
    use Opcode::*;
    match cx.instruction.opcode {
        Parameter => match cx.instruction.payload {
            Payload::Parameter(_) => Ok(None),
            _ => Err("expected the number of the parameter".to_owned()),
        },
        Constant => match cx.instruction.literal() {
            Some(literal) if verify_literal(literal, &cx.instruction.shape) => Ok(None),
            _ => Err("expected a value of the shape".to_owned()),
        },
        Abs | Acos | Acosh | Add | And | Asin | Asinh | Atan2 | Atanh | BitcastConvert | Cbrt
        | Ceil | Clamp | Compare | Complex | Convert | Copy | Cosine | Cosh | CountLeadingZeros
        | Divide | Erf | Exponential | ExponentialMinusOne | Floor | Imag | IsFinite | Log
        | LogPlusOne | Logistic | Maximum | Minimum | Mulhi | Multiply | Negate | Not | Or
        | Popcnt | Power | Real | ReducePrecision | Remainder | RoundNearestAfz
        | RoundNearestEven | Rsqrt | Select | ShiftLeft | ShiftRightArithmetic
        | ShiftRightLogical | Sign | Sine | Sinh | Sqrt | StochasticConvert | Subtract | Tan
        | Tanh | Xor => elementwise::infer(cx),
        Bitcast | Broadcast | Concatenate | GetDimensionSize | Iota | Pad | Reshape | Reverse
        | SetDimensionSize | Slice | Transpose => structural::infer(cx),
        DynamicSlice | DynamicUpdateSlice | Gather | Scatter => indexed::infer(cx),
        Cholesky | Convolution | Dot | Fft | RaggedDot | ScaledDot | TriangularSolve => {
            contraction::infer(cx)
        }
        BatchNormGrad | BatchNormInference | BatchNormTraining | Map | Reduce | ReduceWindow
        | Scan | SelectAndScatter | Sort | TopK => window::infer(cx),
        AddDependency | AfterAll | AllGather | AllReduce | AllToAll | Call
        | CollectiveBroadcast | CollectivePermute | Conditional | CopyDone | CopyStart
        | CustomCall | Fusion | GetTupleElement | OptBarrier | PartitionId | ReduceScatter
        | ReplicaId | Rng | RngBitGenerator | RngGetAndUpdateState | Tuple | While => {
            control::infer(cx)
        }
    }
}

/// An instruction, and where it stands.
struct Cx<'m> {
    module: &'m Module,
    computation: &'m Computation,
    instruction: &'m Instruction,
}

impl<'m> Cx<'m> {
    fn num_operands(&self) -> usize {
        self.instruction.operands.len()
    }

    /// The shape of an operand.
    fn operand(&self, position: usize) -> &'m Shape {
        &self.computation[self.instruction.operands[position]].shape
    }

    fn operands(&self) -> impl ExactSizeIterator<Item = &'m Shape> {
        let computation = self.computation;
        self.instruction.operands.iter().map(|&id| &computation[id].shape)
    }

    /// The shape of an operand that must be an array.
    fn array(&self, position: usize) -> Result<&'m ArrayShape, String> {
        match self.operand(position) {
            Shape::Array(array) => Ok(array),
            other => Err(format!(
                "expected operand {position} to be an array, found {}",
                other.without_layout()
            )),
        }
    }

    /// The shapes of some operands that must be arrays.
    fn arrays(&self, range: std::ops::Range<usize>) -> Result<Vec<&'m ArrayShape>, String> {
        range.map(|position| self.array(position)).collect()
    }

    /// The shape of the instruction, which must be an array.
    fn result(&self) -> Result<&'m ArrayShape, String> {
        match &self.instruction.shape {
            Shape::Array(array) => Ok(array),
            other => {
                Err(format!("expected the result to be an array, found {}", other.without_layout()))
            }
        }
    }

    /// An operand that must be one integer.
    fn index(&self, position: usize) -> Result<&'m ArrayShape, String> {
        let array = self.array(position)?;
        if array.is_scalar() && array.element_type.is_integer() {
            return Ok(array);
        }
        Err(format!("expected operand {position} to be one integer, found {array}"))
    }

    /// The one entry of `dimensions`, a dimension of an array of this rank.
    fn dimension(&self, rank: usize) -> Result<usize, String> {
        match self.instruction.dimensions() {
            [dim] => {
                dims_of("dimensions", &[*dim], rank)?;
                Ok(*dim as usize)
            }
            other => Err(format!("expected one entry in 'dimensions', found {}", other.len())),
        }
    }

    fn callee(&self, attribute: Attribute) -> Result<&'m Computation, String> {
        match self.instruction.computation(attribute) {
            Some(id) => Ok(&self.module[id]),
            None => Err(format!("expected the attribute '{attribute}'")),
        }
    }
}

/// A tuple, or the one element itself.
fn one_or_tuple(mut elements: Vec<Shape>) -> Shape {
    match elements.len() {
        1 => elements.remove(0),
        _ => Shape::Tuple(elements),
    }
}

/// Checks that a list holds different dimensions of an array of this rank.
fn dims_of(what: &str, list: &[i64], rank: usize) -> Result<(), String> {
    let mut seen = vec![false; rank];
    for &dim in list {
        match usize::try_from(dim).ok().and_then(|dim| seen.get_mut(dim)) {
            None => return Err(out_of_range(what, dim, rank)),
            Some(true) => return Err(format!("'{what}' has dimension {dim} twice")),
            Some(seen) => *seen = true,
        }
    }
    Ok(())
}

fn out_of_range(what: &str, dim: i64, rank: usize) -> String {
    match rank {
        0 => format!("'{what}' has dimension {dim}, but the array has none"),
        _ => format!("'{what}' has dimension {dim}, expected one from 0 to {}", rank - 1),
    }
}

/// Checks that two numbers are the same.
fn same<T: PartialEq + Display>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("expected {what} to be {expected}, found {found}"))
}

/// The sizes of the dimensions that are in none of the lists, which were checked before.
fn remaining(dims: &[i64], lists: &[&[i64]]) -> Vec<i64> {
    let is_in = |dim: usize| lists.iter().any(|list| list.contains(&(dim as i64)));
    dims.iter().enumerate().filter(|(dim, _)| !is_in(*dim)).map(|(_, size)| *size).collect()
}

/// A size that was computed in 128 bits.
fn size(value: i128) -> Result<i64, String> {
    i64::try_from(value).map_err(|_| format!("a size of {value} does not fit in 64 bits"))
}

/// Checks that a computation has so many parameters.
fn has_parameters(computation: &Computation, expected: usize) -> Result<(), String> {
    let found = computation.parameters.len();
    if found == expected {
        return Ok(());
    }
    let name = &computation.name;
    let parameters = if expected == 1 { "parameter" } else { "parameters" };
    Err(format!("expected computation '{name}' to have {expected} {parameters}, found {found}"))
}

/// Checks that a computation takes parameters of these shapes.
fn takes<'s>(
    computation: &Computation,
    shapes: impl ExactSizeIterator<Item = &'s Shape>,
) -> Result<(), String> {
    let name = &computation.name;
    has_parameters(computation, shapes.len())?;
    for (position, (found, expected)) in computation.parameter_shapes().zip(shapes).enumerate() {
        if !found.is_compatible(expected) {
            return Err(format!(
                "expected parameter {position} of computation '{name}' to have shape {}, found {}",
                expected.without_layout(),
                found.without_layout()
            ));
        }
    }
    Ok(())
}

/// Checks that the result of a computation has a shape.
fn gives(computation: &Computation, expected: &Shape) -> Result<(), String> {
    let found = &computation.root().shape;
    if found.is_compatible(expected) {
        return Ok(());
    }
    Err(format!(
        "expected computation '{}' to give {}, found {}",
        computation.name,
        expected.without_layout(),
        found.without_layout()
    ))
}
