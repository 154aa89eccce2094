//! Tolerances for results, relative to a float64 reference.
//!
//! The bound is `2 * n * u * m`: `n` counts the rounded operations on the longest path to a
//! result, `u` is the unit roundoff of the least exact type on the way, and `m` how large values
//! are: the element itself, or a typical one of the result or of an input. The largest value on
//! the way to each element would be exact; it takes an evaluation that carries magnitudes.
//! A library function counts 4, a reduction of `k` terms `k`; a loop counts its body as often
//! as its counter says, where that can be seen.

use tc_dialects::{
    element::ElementType,
    hlo::{Attribute, ComputationId, Instruction, Module, Opcode},
};

/// What a loop counts whose number of steps is not written down.
const UNKNOWN_TRIPS: f64 = 100.0;

/// The rounded operations on the longest path to a result of the entry computation.
pub(super) fn num_operations(module: &Module) -> f64 {
    // Every computation stands before its callers.
    let mut totals: Vec<f64> = Vec::with_capacity(module.computations.len());
    for computation in &module.computations {
        let mut paths: Vec<f64> = Vec::with_capacity(computation.instructions.len());
        for instruction in &computation.instructions {
            let longest = |paths: &[f64]| {
                instruction.operands.iter().map(|id| paths[id.index()]).fold(0.0, f64::max)
            };
            let called = |id: ComputationId| totals[id.index()];
            let calls = instruction.called_computations().map(called).fold(0.0, f64::max);
            let operand_dims = |number: usize| {
                let operand = instruction.operands.get(number);
                let shape = operand.and_then(|id| computation[*id].array());
                shape.map_or(&[][..], |shape| shape.dims.as_slice())
            };
            paths.push(longest(&paths) + count(instruction, calls, &operand_dims));
        }
        totals.push(paths[computation.root.index()]);
    }
    totals[module.entry.index()].max(1.0)
}

fn count<'d>(
    instruction: &Instruction,
    calls: f64,
    operand_dims: &dyn Fn(usize) -> &'d [i64],
) -> f64 {
    let product = |dims: &[i64], of: &[i64]| -> f64 {
        dims.iter().filter_map(|dim| of.get(*dim as usize)).map(|extent| *extent as f64).product()
    };
    let elements = |dims: &[i64]| dims.iter().map(|extent| *extent as f64).product::<f64>();
    match instruction.opcode {
        Opcode::Dot => product(instruction.dot_dims().lhs_contracting, operand_dims(0)),
        Opcode::Convolution => {
            let kernel = operand_dims(1);
            let outputs = instruction.dim_labels().map_or(1, |it| it.kernel_output_feature);
            elements(kernel) / kernel.get(outputs as usize).map_or(1.0, |it| (*it).max(1) as f64)
        }
        Opcode::Reduce => calls * product(instruction.dimensions(), operand_dims(0)),
        Opcode::ReduceWindow => {
            calls * instruction.window().iter().map(|it| it.size as f64).product::<f64>()
        }
        Opcode::SelectAndScatter | Opcode::Scatter => calls * elements(operand_dims(1)).max(1.0),
        Opcode::Fft => 8.0 * elements(instruction.integers(Attribute::FftLength)),
        Opcode::Cholesky | Opcode::TriangularSolve => {
            4.0 * operand_dims(0).last().map_or(1.0, |it| *it as f64)
        }
        Opcode::While => calls * trips(instruction),
        Opcode::Call | Opcode::Fusion | Opcode::Map | Opcode::Conditional => calls,
        Opcode::Add
        | Opcode::Subtract
        | Opcode::Multiply
        | Opcode::Divide
        | Opcode::Convert
        | Opcode::Sqrt
        | Opcode::ReducePrecision => 1.0,
        Opcode::Exponential
        | Opcode::ExponentialMinusOne
        | Opcode::Log
        | Opcode::LogPlusOne
        | Opcode::Logistic
        | Opcode::Power
        | Opcode::Rsqrt
        | Opcode::Cbrt
        | Opcode::Sine
        | Opcode::Cosine
        | Opcode::Tan
        | Opcode::Tanh
        | Opcode::Atan2
        | Opcode::Erf
        | Opcode::Sinh
        | Opcode::Cosh
        | Opcode::Asin
        | Opcode::Acos
        | Opcode::Asinh
        | Opcode::Acosh
        | Opcode::Atanh
        | Opcode::Abs
        | Opcode::Sign
        | Opcode::Remainder => 4.0,
        _ => 0.0,
    }
}

/// The number of steps that XLA wrote down, if it did.
fn trips(instruction: &Instruction) -> f64 {
    let known = instruction.text(Attribute::BackendConfig).and_then(|text| {
        let (_, rest) = text.split_once("\"known_trip_count\":{\"n\":\"")?;
        rest.split_once('"')?.0.parse::<f64>().ok()
    });
    known.unwrap_or(UNKNOWN_TRIPS)
}

/// The unit roundoff of the least exact float type that the module calculates in.
pub(super) fn unit_roundoff(module: &Module, result: ElementType) -> f64 {
    let instructions = module.computations.iter().flat_map(|it| &it.instructions);
    let mut types = vec![result];
    for instruction in instructions {
        let moves = matches!(instruction.opcode, Opcode::Parameter | Opcode::Constant);
        if !moves {
            instruction.shape.for_each_array(&mut |array| types.push(array.element_type.part()));
        }
    }
    types.into_iter().map(roundoff_of).fold(0.0, f64::max)
}

/// Half the distance from 1 to the next number.
fn roundoff_of(element: ElementType) -> f64 {
    match element.part() {
        ElementType::F64 => 2f64.powi(-53),
        ElementType::F32 => 2f64.powi(-24),
        ElementType::F16 => 2f64.powi(-11),
        ElementType::BF16 => 2f64.powi(-8),
        // The 8-bit types are compared exactly where their rounding is the point.
        _ => 0.0,
    }
}
