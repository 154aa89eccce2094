//! Computations that are called several times: which of them are functions of their own, and their calls.

use super::{
    Lowering, MAX_DEPTH, MAX_INSTRUCTIONS, from_arguments,
    value::{Value, tensor_type},
};
use melior::ir::{Location, ValueLike, r#type::FunctionType};
use tc_dialects::{
    hlo::{ComputationId, Instruction, InstructionId, Module, Opcode, Shape},
    mlir::{self, Builder},
    report::Report,
    text::Severity,
};

/// A computation with fewer instructions is built at each of its calls, where it can be fused.
const MIN_INSTRUCTIONS: usize = 64;

/// The prefix of the names of functions. The name of the entry has no dot, so no two names are equal.
const PREFIX: &str = "call.";

/// How the computations of a module are built.
pub(super) struct Functions {
    /// By computation: whether it is a function.
    are_functions: Vec<bool>,
}

impl Functions {
    /// Finds the functions of a module.
    ///
    /// # Errors
    /// Calls nest too deep, or a function has too many instructions once the other calls are built in place.
    pub(super) fn of<'c>(
        module: &Module,
        location: &dyn Fn(ComputationId, InstructionId) -> Location<'c>,
    ) -> Result<Self, Report<'c>> {
        let num_calls = num_calls(module);
        let mut are_functions: Vec<bool> = Vec::with_capacity(module.computations.len());
        // Per computation: the number of instructions after inlining, and the depth of its calls. A callee stands before
        // its callers.
        let mut sizes: Vec<(usize, usize)> = Vec::with_capacity(module.computations.len());
        for (number, computation) in module.computations.iter().enumerate() {
            let (mut count, mut depth) = (0_usize, 0);
            for (id, instruction) in computation.instructions() {
                count = count.saturating_add(1);
                for called in built(instruction) {
                    let (called_count, called_depth) = sizes[called.index()];
                    if instruction.opcode != Opcode::Call || !are_functions[called.index()] {
                        count = count.saturating_add(called_count);
                    }
                    depth = depth.max(called_depth + 1);
                }
                if number != module.entry.index() {
                    continue;
                }
                let refuse = |message: String| {
                    Report::at(location(module.entry, id), Severity::Error, message)
                };
                if MAX_INSTRUCTIONS < count {
                    return Err(refuse(format!(
                        "the module has more than {MAX_INSTRUCTIONS} instructions once its calls are \
                         built in place"
                    )));
                }
                if MAX_DEPTH < depth {
                    return Err(refuse(format!("calls nest more than {MAX_DEPTH} deep")));
                }
            }
            are_functions.push(MIN_INSTRUCTIONS <= count && 2 <= num_calls[number]);
            sizes.push((count, depth));
        }
        Ok(Self { are_functions })
    }

    /// Whether a computation is a function.
    pub(super) fn has(&self, id: ComputationId) -> bool {
        self.are_functions[id.index()]
    }
}

/// The callees of an instruction. They are inlined there, unless they are functions.
fn built(instruction: &Instruction) -> impl Iterator<Item = ComputationId> {
    let is_built = matches!(
        instruction.opcode,
        Opcode::Call | Opcode::Fusion | Opcode::While | Opcode::Conditional
    );
    instruction.called_computations().filter(move |_| is_built)
}

/// The number of `call` instructions per callee. Computations that the entry does not reach do not count.
fn num_calls(module: &Module) -> Vec<usize> {
    let mut num_calls = vec![0; module.computations.len()];
    let mut needed = vec![false; module.computations.len()];
    needed[module.entry.index()] = true;
    for (number, computation) in module.computations.iter().enumerate().rev() {
        if !needed[number] {
            continue;
        }
        for (_, instruction) in computation.instructions() {
            for called in built(instruction) {
                needed[called.index()] = true;
                num_calls[called.index()] += usize::from(instruction.opcode == Opcode::Call);
            }
        }
    }
    num_calls
}

impl<'c> Lowering<'c, '_> {
    /// Builds the functions of a module.
    pub(super) fn build_functions(&self, outside: &Builder<'c>) -> Result<(), Report<'c>> {
        for (number, computation) in self.module.computations.iter().enumerate() {
            let id = ComputationId(number as u32);
            if !self.functions.has(id) {
                continue;
            }
            let location = (self.location)(id, computation.root);
            let mut types = Vec::new();
            for shape in computation.parameter_shapes() {
                shape.for_each_array(&mut |array| types.push(tensor_type(outside, array)));
            }
            let (region, block) = mlir::region_with_block(&types, location);
            let b = Builder::at_end(outside.context, block, location);
            let mut arguments = mlir::arguments(block).into_iter();
            let values: Vec<_> = computation
                .parameter_shapes()
                .map(|shape| from_arguments(shape, &mut arguments))
                .collect();
            let mut results = Vec::new();
            self.computation(&b, id, &values)?.flatten(&mut results);
            b.op("func.return", &results, &[]);
            let result_types: Vec<_> = results.iter().map(|value| value.r#type()).collect();
            let ty = FunctionType::new(outside.context, &types, &result_types);
            let name = format!("{PREFIX}{}", computation.name);
            outside.located(location).op_with(
                "func.func",
                &[],
                &[],
                &[
                    ("sym_name", mlir::string(outside.context, &name)),
                    ("sym_visibility", mlir::string(outside.context, "private")),
                    ("function_type", mlir::type_attr(ty.into())),
                ],
                vec![region],
            );
        }
        Ok(())
    }

    /// The value of a call of a function.
    pub(super) fn call_function(
        &self,
        b: &Builder<'c>,
        called: ComputationId,
        shape: &Shape,
        operands: &[Value<'c>],
    ) -> Value<'c> {
        let (mut passed, mut types) = (Vec::new(), Vec::new());
        operands.iter().for_each(|operand| operand.flatten(&mut passed));
        shape.for_each_array(&mut |array| types.push(tensor_type(b, array)));
        let name = format!("{PREFIX}{}", self.module[called].name);
        let callee = ("callee", mlir::symbol(b.context, &name));
        let call = b.op_with("func.call", &passed, &types, &[callee], Vec::new());
        from_arguments(shape, &mut mlir::results(call).into_iter())
    }
}
