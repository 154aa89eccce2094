//! `convert-hlo-to-imap`: convert an HLO module to functions of `imap.generic` and `scf` loops.
//!
//! This pass converts the entry computation to a function and inlines the computations that it calls:
//! fusions and calls at their call sites, bodies of loops and conditionals inside `scf.while` and
//! `scf.if`, and reducers element by element. A large computation with several calls is a private function, which is
//! compiled once. Tuples disappear: the function has one argument per array
//! of its parameters and one result per array of its value. Each has a name (`tc.name`), and
//! `tc.unsigned` if its integers are unsigned. Element types stay as they are: bodies extend elements
//! that are less exact than `f16`, or have fewer than 8 bits, and truncate what they compute. They
//! compute complex numbers on their parts.
//!
//! | instructions | lowering |
//! |---|---|
//! | element-wise instructions, `iota`, data movement | `imap.generic` with the maps of its operands |
//! | `dot`, `convolution`; `reduce`, `reduce-window` by one operation | `imap.generic` with range variables |
//! | `dynamic-slice`, `dynamic-update-slice`, `gather` | `imap.generic` with runtime variables |
//! | `sort`, `topk` | `imap.sort`; of one element, `imap.generic` with a region that combines |
//! | `scatter` | `imap.scatter` |
//! | `select-and-scatter` | `imap.generic` that finds the places, and `imap.scatter` |
//! | reductions in order of encoded elements from a computed start | loops over memory |
//! | `fft`, `cholesky`, `triangular-solve` | loops over memory, without a library |
//! | custom calls of LAPACK's `potrf`, `trsm`, `getrf`, `gtsv` as JAX prints them | the same |
//! | `batch-norm-*` | `imap.generic`: sums per feature, and element-wise computations |
//! | `rng-bit-generator` | `imap.generic`, one iteration per block of bits |
//! | `while`, `conditional` | `scf.while`, `scf.if` |
//!
//! The subscripts come from the relations of the indexing analysis.
//!
//! Layouts do not change values; only `bitcast` uses them.
//!
//! Limits: shapes are static; arrays have at most [`MAX_BYTES`] bytes; calls nest at most [`MAX_DEPTH`]
//! deep; collective instructions run on one device.

mod batch_norm;
mod computation;
mod control;
mod custom_call;
mod dynamic;
mod fourier;
mod functions;
mod linear_algebra;
mod memory;
mod order;
mod random;
mod scan;
mod structure;
mod value;
mod window;

use super::{
    elements::{
        self, Scalar, complex, compute_type, decode_all, describe_arrays, encode_element, scalar,
        storage_type, to_bits,
    },
    generic_builder::GenericBuilder,
    subscripts::identity,
};
use computation::build_computation;
use functions::Functions;
use linear_algebra::TriangularForm;
use melior::{
    Context,
    ir::{
        Attribute, Location, Module as MlirModule, ValueLike, operation::OperationLike,
        r#type::FunctionType,
    },
};
use memory::{empty, empty_array};
use tc_dialects::{
    element::ElementType,
    hlo::{
        ArrayShape, Attribute as HloAttribute, ComputationId, Instruction, InstructionId, Literal,
        Module, Opcode, Shape, aliased_arrays, dialect,
        indexing::{Accesses, InstructionRef},
    },
    imap::{self, Accumulator, Combiner, CombinerKind, Indexed, Start},
    mlir::{self, Builder, Val},
    pass::{Failure, PassInfo, PassRun},
    report::Report,
    text::Severity,
};
use value::{Array, Value, tensor_type};

/// How deep calls, loops and conditionals may nest.
pub const MAX_DEPTH: usize = 160;
/// How many instructions may be built, those of computations once per use.
pub const MAX_INSTRUCTIONS: usize = 1 << 20;

/// How many bytes an array may have.
pub const MAX_BYTES: i64 = 1 << 36;

/// Why a constant without its elements is rejected.
const ELIDED: &str = "the elements of the constant are elided ('{...}'), so that the program can be \
                      analyzed but not compiled; print the module in full, with \
                      print_large_constants";

/// The dialects of what is built.
const DIALECTS: [&str; 9] =
    ["arith", "bufferization", "complex", "func", "imap", "math", "memref", "scf", "tensor"];

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "convert-hlo-to-imap",
    summary: "Convert an HLO module to functions of imap.generic and loops",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &DIALECTS,
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    let computations: Vec<_> =
        mlir::ops(block).into_iter().filter(|op| mlir::is(*op, dialect::COMPUTATION)).collect();
    if computations.is_empty() {
        return Ok(());
    }
    let build = || {
        let (module, locations) = dialect::export_located(pass.op)?;
        let location = |computation: ComputationId, instruction: InstructionId| {
            locations.of(module[computation][instruction].span)
        };
        let outside = Builder::at_end(pass.context, block, pass.op.location());
        build_main(&outside, &module, &location)
    };
    build().map_err(|report: Report| {
        report.emit();
        Failure
    })?;
    computations.into_iter().for_each(mlir::erase);
    let names: Vec<_> = pass.op.attributes().map(|(name, _)| name).collect();
    for name in names.iter().filter_map(|name| name.as_string_ref().as_str().ok()) {
        if name.starts_with("hlo.") {
            mlir::remove_attribute(pass.op, name);
        }
    }
    Ok(())
}

/// Converts a module. `location` says where an instruction comes from.
///
/// # Errors
/// An instruction is not supported, or not on these types.
pub fn convert<'c>(
    context: &'c Context,
    module: &Module,
    location: &dyn Fn(ComputationId, InstructionId) -> Location<'c>,
) -> Result<MlirModule<'c>, Report<'c>> {
    for dialect in DIALECTS {
        context.get_or_load_dialect(dialect);
    }
    let at = location(module.entry, module.entry().root);
    let result = MlirModule::new(at);
    let outside = Builder::at_end(context, mlir::block_ref(result.body()), at);
    build_main(&outside, module, location)?;
    Ok(result)
}

/// Builds the function of a module, named `main`.
fn build_main<'c>(
    outside: &Builder<'c>,
    module: &Module,
    location: &dyn Fn(ComputationId, InstructionId) -> Location<'c>,
) -> Result<(), Report<'c>> {
    let context = outside.context;
    let ir = tc_ir::Context::new();
    let functions = &Functions::of(module, location)?;
    let lowering = Lowering { ir: &ir, module, functions, location };
    lowering.build_functions(outside)?;
    let entry = module.entry();
    let at = location(module.entry, entry.root);
    let (mut types, mut argument_attributes) = (Vec::new(), Vec::new());
    for id in &entry.parameters {
        let Instruction { name, shape, .. } = &entry.instructions[id.index()];
        let name = |number: usize| match shape {
            Shape::Tuple(_) => format!("{name}_{number}"),
            _ => name.clone(),
        };
        argument_attributes.extend(describe_arrays(context, shape, &name));
        shape.for_each_array(&mut |array| types.push(tensor_type(outside, array)));
    }
    let (region, block) = mlir::region_with_block(&types, at);
    mlir::name_arguments(context, block, argument_attributes.iter().map(|it| array_name(*it)));
    let b = Builder::at_end(context, block, at);
    let mut arguments = mlir::arguments(block).into_iter();
    let values: Vec<_> =
        entry.parameter_shapes().map(|shape| from_arguments(shape, &mut arguments)).collect();
    let value = lowering.computation(&b, module.entry, &values)?;
    let mut results = Vec::new();
    value.flatten(&mut results);
    b.op("func.return", &results, &[]);
    let result_types: Vec<_> = results.iter().map(|value| value.r#type()).collect();
    let ty = FunctionType::new(context, &types, &result_types);
    let aliases = aliased_arrays(module);
    for (_, argument) in &aliases {
        let described = &mut argument_attributes[*argument];
        let inout = Attribute::unit(context);
        *described = mlir::with_entry(context, *described, "tc.inout", inout);
    }
    // A result that has the memory of an argument has its name.
    let name = |number: usize| match aliases.iter().find(|(result, _)| *result == number) {
        Some((_, argument)) => array_name(argument_attributes[*argument]).to_string(),
        None => format!("out{number}"),
    };
    let result_attributes = describe_arrays(context, &entry.root().shape, &name);
    outside.op_with(
        "func.func",
        &[],
        &[],
        &[
            ("sym_name", mlir::string(context, "main")),
            ("function_type", mlir::type_attr(ty.into())),
            ("arg_attrs", mlir::array(context, &argument_attributes)),
            ("res_attrs", mlir::array(context, &result_attributes)),
        ],
        vec![region],
    );
    Ok(())
}

/// The name that `describe_arrays` records.
fn array_name(described: Attribute<'_>) -> &str {
    mlir::dictionary_entry(described, "tc.name").and_then(mlir::string_of).unwrap_or_default()
}

/// The value whose arrays are given one by one.
fn from_arguments<'c>(shape: &Shape, arguments: &mut impl Iterator<Item = Val<'c>>) -> Value<'c> {
    match shape {
        Shape::Array(shape) => {
            let tensor = arguments.next().expect("an argument per array");
            Value::Array(Array { tensor, shape: shape.clone() })
        }
        Shape::Tuple(elements) => {
            let mut values = Vec::with_capacity(elements.len());
            for element in elements {
                // Not `map`: the recursion would nest the type of the iterator.
                let mut count = 0;
                element.for_each_array(&mut |_| count += 1);
                let tensors: Vec<_> = arguments.take(count).collect();
                values.push(from_arguments(element, &mut tensors.into_iter()));
            }
            Value::Tuple(values.into())
        }
        Shape::Token => Value::Token,
    }
}

/// What computes an element from its index.
type ElementAt<'a, 'c> = dyn Fn(&Builder<'c>, &[Val<'c>]) -> Result<Scalar<'c>, String> + 'a;
/// What computes an element from elements of operands.
type ElementFrom<'a, 'c> = dyn Fn(&Builder<'c>, &[Scalar<'c>]) -> Result<Scalar<'c>, String> + 'a;

/// Builds a module.
struct Lowering<'c, 'm> {
    ir: &'m tc_ir::Context,
    module: &'m Module,
    functions: &'m Functions,
    location: &'m dyn Fn(ComputationId, InstructionId) -> Location<'c>,
}

impl<'c, 'm> Lowering<'c, 'm> {
    /// The value of a computation.
    fn computation(
        &self,
        b: &Builder<'c>,
        id: ComputationId,
        arguments: &[Value<'c>],
    ) -> Result<Value<'c>, Report<'c>> {
        let computation = &self.module[id];
        let mut values: Vec<Value<'c>> = Vec::with_capacity(computation.instructions.len());
        for (number, instruction) in computation.instructions() {
            let location = (self.location)(id, number);
            let refuse = |message: String| Report::at(location, Severity::Error, message);
            let mut too_large = None;
            instruction.shape.for_each_array(&mut |array| {
                if array.num_bytes().is_none_or(|bytes| MAX_BYTES < bytes) {
                    too_large = Some(array.to_string());
                }
            });
            if let Some(array) = too_large {
                let message =
                    format!("expected an array of at most {MAX_BYTES} bytes, found {array}");
                return Err(refuse(message));
            }
            let operands: Vec<_> = instruction
                .operands
                .iter()
                .map(|operand| values[operand.index()].clone())
                .collect();
            let at = b.located(location);
            let value = match instruction.opcode {
                Opcode::Parameter => {
                    let number = instruction.parameter_number().unwrap_or(0) as usize;
                    arguments[number].clone()
                }
                Opcode::Call | Opcode::Fusion => {
                    let called = instruction.called_computations().next();
                    let called = called.ok_or_else(|| refuse("a call of nothing".into()))?;
                    match instruction.opcode == Opcode::Call && self.functions.has(called) {
                        true => self.call_function(&at, called, &instruction.shape, &operands),
                        false => self.computation(&at, called, &operands)?,
                    }
                }
                Opcode::While => self.while_loop(&at, instruction, &operands[0])?,
                Opcode::Conditional => self.conditional(&at, instruction, &operands)?,
                _ => {
                    let this = InstructionRef { computation: id, instruction: number };
                    self.instruction(&at, this, &operands).map_err(refuse)?
                }
            };
            values.push(value);
        }
        Ok(values.swap_remove(computation.root.index()))
    }

    /// The value of an instruction that calls no computation, or one of scalars.
    fn instruction(
        &self,
        b: &Builder<'c>,
        at: InstructionRef,
        operands: &[Value<'c>],
    ) -> Result<Value<'c>, String> {
        let computation = &self.module[at.computation];
        let instruction = &computation[at.instruction];
        let arrays: Vec<&Array<'c>> = operands
            .iter()
            .filter_map(|operand| match operand {
                Value::Array(array) => Some(array),
                _ => None,
            })
            .collect();
        // Those that have or take tuples and tokens.
        match instruction.opcode {
            Opcode::Tuple => return Ok(Value::Tuple(operands.into())),
            Opcode::GetTupleElement => {
                let index = instruction.integer(HloAttribute::Index).unwrap_or(0) as usize;
                let Value::Tuple(elements) = &operands[0] else {
                    return Err("expected a tuple".to_string());
                };
                return Ok(elements[index].clone());
            }
            Opcode::CopyStart => {
                let number = self.integer(b, &ArrayShape::new(ElementType::U32, []), 0)?;
                let copy = operands[0].clone();
                return Ok(Value::Tuple([copy.clone(), copy, Value::Array(number)].into()));
            }
            Opcode::CopyDone => {
                let Value::Tuple(elements) = &operands[0] else {
                    return Err("expected a tuple".to_string());
                };
                return Ok(elements[0].clone());
            }
            Opcode::OptBarrier | Opcode::AddDependency => return Ok(operands[0].clone()),
            Opcode::Copy if arrays.is_empty() => return Ok(operands[0].clone()),
            Opcode::AfterAll => return Ok(Value::Token),
            Opcode::Constant => {
                let literal = instruction.literal().ok_or("a constant without a value")?;
                return self.constant(b, literal, &instruction.shape);
            }
            _ => {}
        }
        if arrays.len() != operands.len() {
            return Err(format!("'{}' of a tuple is not supported", instruction.opcode));
        }
        let results: Vec<&ArrayShape> = {
            let mut shapes = Vec::new();
            instruction.shape.for_each_array(&mut |array| shapes.push(array));
            shapes
        };
        let empty_result = results.iter().all(|shape| shape.num_elements() == Some(0));
        if empty_result && !results.is_empty() {
            let arrays = results.iter().map(|shape| empty_array(b, shape));
            return Ok(structured(&instruction.shape, arrays.collect()));
        }
        let Some(shape) = results.first().copied() else {
            return Err(format!("'{}' is not supported", instruction.opcode));
        };
        let one = |array: Array<'c>| vec![array];
        let found = match instruction.opcode {
            Opcode::Broadcast
            | Opcode::Transpose
            | Opcode::Reverse
            | Opcode::Slice
            | Opcode::DynamicSlice
            | Opcode::Reshape => one(self.rearrange(b, at, &arrays, shape)?),
            Opcode::Bitcast if arrays[0].element() == shape.element_type => {
                one(self.rearrange(b, at, &arrays, shape)?)
            }
            Opcode::Bitcast | Opcode::BitcastConvert => {
                one(self.bitcast_convert(b, at, arrays[0], shape)?)
            }
            Opcode::Concatenate => one(self.concatenate(b, at, &arrays, shape)?),
            Opcode::Pad => one(self.pad(b, at, &arrays, shape)?),
            Opcode::Iota => one(self.iota(b, instruction, shape)?),
            Opcode::Dot | Opcode::Convolution => one(self.contraction(b, at, &arrays, shape)?),
            Opcode::DynamicUpdateSlice => one(self.dynamic_update_slice(b, at, &arrays)?),
            Opcode::Gather => one(self.gather(b, at, &arrays, shape)?),
            Opcode::Scatter => self.scatter(b, at, &arrays)?,
            Opcode::Map => one(self.map(b, at, &arrays, shape)?),
            Opcode::Reduce | Opcode::ReduceWindow => self.reduce(b, at, &arrays, &results)?,
            Opcode::SelectAndScatter => one(self.select_and_scatter(b, at, &arrays)?),
            Opcode::Sort => self.sort(b, instruction, &arrays)?,
            Opcode::TopK => self.top_k(b, instruction, arrays[0], &results)?,
            Opcode::Fft => one(self.fft(b, instruction, arrays[0], shape)?),
            Opcode::Cholesky => {
                one(self.cholesky(b, instruction.flag(HloAttribute::Lower), arrays[0], shape)?)
            }
            Opcode::TriangularSolve => {
                let form = TriangularForm::of(instruction);
                one(self.triangular_solve(b, form, arrays[0], arrays[1], shape)?)
            }
            Opcode::RngBitGenerator => {
                let [_, bits] = results[..] else { return Err("expected a pair".to_string()) };
                self.rng_bit_generator(b, instruction, arrays[0], bits)?
            }
            Opcode::BatchNormTraining | Opcode::BatchNormInference | Opcode::BatchNormGrad => {
                self.batch_norm(b, at, &arrays)?
            }
            Opcode::PartitionId | Opcode::ReplicaId => one(self.integer(b, shape, 0)?),
            Opcode::GetDimensionSize => {
                let dim = instruction.dimensions().first().copied().unwrap_or(0) as usize;
                one(self.integer(b, shape, arrays[0].dims()[dim])?)
            }
            Opcode::AllReduce
            | Opcode::AllGather
            | Opcode::AllToAll
            | Opcode::ReduceScatter
            | Opcode::CollectivePermute
            | Opcode::CollectiveBroadcast => self.of_one_device(instruction, &arrays, &results)?,
            Opcode::CustomCall => self.custom_call(b, instruction, &arrays, &results)?,
            opcode if scalar::is_element_wise(opcode) => {
                one(self.element_wise(b, at, &arrays, shape)?)
            }
            opcode => {
                let advice = instead_of(opcode).map(|advice| format!("; {advice}"));
                let advice = advice.unwrap_or_default();
                return Err(format!("'{opcode}' is not supported in compiled code{advice}"));
            }
        };
        debug_assert_eq!(found.len(), results.len(), "{}", computation.name);
        Ok(structured(&instruction.shape, found))
    }

    fn constant(
        &self,
        b: &Builder<'c>,
        literal: &Literal,
        shape: &Shape,
    ) -> Result<Value<'c>, String> {
        match (literal, shape) {
            (Literal::Array(literal), Shape::Array(shape)) => {
                let count = shape.num_elements().unwrap_or(0) as usize;
                if count == 0 {
                    return Ok(Value::Array(empty_array(b, shape)));
                }
                let part = shape.element_type.part();
                let ty = tensor_type(b, shape);
                let num_stored = if literal.is_splat { 1 } else { count };
                // Literals hold integers of fewer than 8 bits with copies of their sign.
                let mask = u64::MAX >> (64 - part.bits());
                let bits = (0..num_stored * shape.element_type.num_parts()).map(|at| match literal
                    .integer(at)
                {
                    Some(value) => value as u64 & mask,
                    None => literal.bits(at),
                });
                let elements = mlir::dense(ty, storage_type(b, part), &bits.collect::<Vec<_>>());
                Ok(Value::Array(Array { tensor: b.constant(ty, elements), shape: shape.clone() }))
            }
            (Literal::Elided, _) => Err(ELIDED.to_string()),
            (Literal::Tuple(literals), Shape::Tuple(shapes)) => {
                let elements = literals.iter().zip(shapes);
                let values = elements.map(|(literal, shape)| self.constant(b, literal, shape));
                Ok(Value::Tuple(values.collect::<Result<_, _>>()?))
            }
            _ => Err("a constant of another structure than its shape".to_string()),
        }
    }

    /// The array whose element at an index is what `value` computes from it.
    fn generate(
        &self,
        b: &Builder<'c>,
        shape: &ArrayShape,
        value: &ElementAt<'_, 'c>,
    ) -> Result<Array<'c>, String> {
        self.compute(b, shape, &[], &|inside, _| {
            let rank = shape.rank() as u32;
            let index: Vec<_> =
                (0..rank).map(|dim| imap::build_index(inside, "dim", dim)).collect();
            value(inside, &index)
        })
    }

    /// An array of one integer.
    fn integer(
        &self,
        b: &Builder<'c>,
        shape: &ArrayShape,
        value: i64,
    ) -> Result<Array<'c>, String> {
        self.generate(b, shape, &|b, _| {
            Ok(vec![b.integer(compute_type(b, shape.element_type), value)])
        })
    }

    /// The array of what `value` computes from the elements of `sources` at the indices of their
    /// maps.
    fn compute(
        &self,
        b: &Builder<'c>,
        shape: &ArrayShape,
        sources: &[(&Array<'c>, Vec<tc_ir::Expr>)],
        value: &ElementFrom<'_, 'c>,
    ) -> Result<Array<'c>, String> {
        let target = empty_array(b, shape);
        if shape.num_elements() == Some(0) {
            return Ok(target);
        }
        let mut nest = GenericBuilder::new(self.ir, &shape.dims);
        for (source, index) in sources {
            nest.read(source.tensor, index.clone());
        }
        nest.write(target.tensor, identity(self.ir, shape.rank()), Combiner::ASSIGN);
        let elements: Vec<_> = sources.iter().map(|(source, _)| source.element()).collect();
        let values = nest.build(b, |inside, stored| {
            let scalars = decode_all(inside, &elements, stored);
            let result = value(inside, &scalars)?;
            Ok(vec![encode_element(inside, shape.element_type, &result)])
        })?;
        Ok(Array { tensor: values[0], ..target })
    }

    /// The operands of an instruction with the index of each at an element of the result.
    fn aligned<'a>(
        &self,
        at: InstructionRef,
        operands: &[&'a Array<'c>],
    ) -> Result<Vec<(&'a Array<'c>, Vec<tc_ir::Expr>)>, String> {
        let numbers: Vec<_> = (0..operands.len()).collect();
        let indices = self.over_output(at, 0, &numbers)?.indices;
        Ok(operands.iter().copied().zip(indices).collect())
    }

    fn element_wise(
        &self,
        b: &Builder<'c>,
        at: InstructionRef,
        operands: &[&Array<'c>],
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let instruction = &self.module[at.computation][at.instruction];
        let elements: Vec<_> = operands.iter().map(|operand| operand.element()).collect();
        self.compute(b, shape, &self.aligned(at, operands)?, &|inside, scalars| {
            let operands: Vec<_> = elements.iter().copied().zip(scalars.iter().cloned()).collect();
            scalar::apply(inside, instruction, &operands)
        })
    }

    /// `map`.
    fn map(
        &self,
        b: &Builder<'c>,
        at: InstructionRef,
        operands: &[&Array<'c>],
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let instruction = &self.module[at.computation][at.instruction];
        let applied = self.applied(instruction, HloAttribute::ToApply)?;
        self.compute(b, shape, &self.aligned(at, operands)?, &|inside, scalars| {
            let mut results = build_computation(inside, self.module, applied, scalars)?;
            Ok(results.swap_remove(0))
        })
    }

    fn applied(
        &self,
        instruction: &Instruction,
        attribute: HloAttribute,
    ) -> Result<ComputationId, String> {
        let found = instruction.computation(attribute);
        found.ok_or_else(|| format!("'{}' without '{attribute}'", instruction.opcode))
    }

    /// `bitcast-convert`, between types of any widths.
    fn bitcast_convert(
        &self,
        b: &Builder<'c>,
        at: InstructionRef,
        source: &Array<'c>,
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let opcode = self.module[at.computation][at.instruction].opcode;
        let (from, to) = (source.element(), shape.element_type);
        let (have, want) = (from.bits(), to.bits());
        if from == to {
            return Ok(Array { tensor: source.tensor, shape: shape.clone() });
        }
        if have == want && !from.is_complex() && !to.is_complex() {
            // A bitcast may change the order of dimensions besides.
            let moved = ArrayShape { element_type: from, ..shape.clone() };
            let source = if opcode == Opcode::Bitcast {
                self.rearrange(b, at, &[source], &moved)?
            } else {
                source.clone()
            };
            let sources = [(&source, identity(self.ir, shape.rank()))];
            return self.compute(b, shape, &sources, &|inside, scalars| {
                Ok(vec![scalar::bitcast(inside, from, to, scalars[0][0])])
            });
        }
        if from.is_complex() || to.is_complex() {
            return Err(format!("'{opcode}' from '{from}' to '{to}' is not supported"));
        }
        if want < have {
            // One element becomes several, along a new last dimension.
            let rank = source.shape.rank();
            let mut nest = GenericBuilder::new(self.ir, &shape.dims);
            nest.read(source.tensor, identity(self.ir, rank));
            nest.write(empty(b, shape), identity(self.ir, rank + 1), Combiner::ASSIGN);
            let values = nest.build(b, |inside, stored| {
                let (wide, narrow) = (inside.int_type(have), inside.int_type(want));
                let bits = to_bits(inside, stored[0], wide);
                let part = imap::build_index(inside, "dim", rank as u32);
                let part = inside.value("arith.index_cast", &[part], wide);
                let width = inside.integer(wide, i64::from(want));
                let shift = inside.value("arith.muli", &[part, width], wide);
                let bits = inside.value("arith.shrui", &[bits, shift], wide);
                let bits = inside.value("arith.trunci", &[bits], narrow);
                Ok(vec![to_bits(inside, bits, storage_type(inside, to))])
            })?;
            return Ok(Array { tensor: values[0], shape: shape.clone() });
        }
        // Several elements, along the last dimension, become one.
        let rank = shape.rank();
        let count = want / have;
        let mut nest = GenericBuilder::new(self.ir, &shape.dims);
        for part in 0..count {
            let mut index = identity(self.ir, rank);
            index.push(self.ir.constant(i64::from(part)));
            nest.read(source.tensor, index);
        }
        nest.write(empty(b, shape), identity(self.ir, rank), Combiner::ASSIGN);
        let values = nest.build(b, |inside, stored| {
            let wide = inside.int_type(want);
            let mut all = inside.integer(wide, 0);
            for (part, value) in stored.iter().enumerate() {
                let bits = to_bits(inside, *value, inside.int_type(have));
                let bits = inside.value("arith.extui", &[bits], wide);
                let shift = inside.integer(wide, part as i64 * i64::from(have));
                let bits = inside.value("arith.shli", &[bits, shift], wide);
                all = inside.value("arith.ori", &[all, bits], wide);
            }
            Ok(vec![to_bits(inside, all, storage_type(inside, to))])
        })?;
        Ok(Array { tensor: values[0], shape: shape.clone() })
    }

    /// `dot` and `convolution`: sums of products, in the type of the result, or in `f32` for types that
    /// are less exact.
    fn contraction(
        &self,
        b: &Builder<'c>,
        at: InstructionRef,
        factors: &[&Array<'c>],
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let ir = self.ir;
        let sum = elements::sum_type(shape.element_type);
        let kind = if sum == ElementType::Pred { CombinerKind::Or } else { CombinerKind::Add };
        let accesses = self.over_output(at, 0, &[0, 1])?;
        if accesses.is_empty(ir) {
            return self.generate(b, shape, &|b, _| {
                let ty = compute_type(b, shape.element_type);
                let zero = b.constant(ty, kind.identity(b.context, ty));
                Ok(vec![zero; shape.element_type.num_parts()])
            });
        }
        let summed = ArrayShape { element_type: sum, ..shape.clone() };
        let elements: Vec<_> = factors.iter().map(|factor| factor.element()).collect();
        let mut nest = GenericBuilder::within(ir, accesses.domain.clone(), Vec::new());
        for (factor, index) in factors.iter().zip(&accesses.indices) {
            nest.read(factor.tensor, index.clone());
        }
        nest.write(empty(b, &summed), identity(ir, shape.rank()), Combiner::ASSIGN);
        let ty = compute_type(b, sum);
        let accumulator = Accumulator { ty, kind, identity: None, start: Start::Identity };
        let accumulators = vec![accumulator; sum.num_parts()];
        let generic = nest.build_fold(b, accumulators, sum.is_complex());
        let (inside, stored) = b.inside(generic.body());
        let scalars = decode_all(&inside, &elements, &stored);
        let factors: Vec<_> = scalars
            .iter()
            .zip(&elements)
            .map(|(x, element)| scalar::convert(&inside, *element, sum, x))
            .collect();
        let (x, y) = (&factors[0], &factors[1]);
        let product = match sum.is_complex() {
            true => complex::multiply(&inside, x, y),
            false => vec![elements::multiply(&inside, sum, x[0], y[0])],
        };
        imap::build_yield(&inside, &product);
        if let Some(block) = generic.epilogue() {
            let (end, arguments) = b.inside(block);
            let folded = &arguments[..sum.num_parts()];
            imap::build_yield(&end, &[encode_element(&end, sum, folded)]);
        }
        let sums = Array { tensor: mlir::result(generic.op(), 0), shape: summed };
        if sum == shape.element_type {
            return Ok(sums);
        }
        self.compute(b, shape, &[(&sums, identity(ir, shape.rank()))], &|inside, scalars| {
            Ok(scalar::convert(inside, sum, shape.element_type, &scalars[0]))
        })
    }

    /// The loops over the elements of an output, which read operands.
    fn over_output(
        &self,
        at: InstructionRef,
        output: usize,
        operands: &[usize],
    ) -> Result<Accesses, String> {
        let found = Accesses::over_output(self.ir, self.module, at, output, operands);
        found.ok_or_else(|| self.unrelated(at))
    }

    /// For each of the operands, the loops over those of its elements that stand in the output.
    fn over_operands(
        &self,
        at: InstructionRef,
        operands: &[usize],
    ) -> Result<Vec<Accesses>, String> {
        let found = Accesses::over_operands(self.ir, self.module, at, 0, operands);
        found.ok_or_else(|| self.unrelated(at))
    }

    fn unrelated(&self, at: InstructionRef) -> String {
        let opcode = self.module[at.computation][at.instruction].opcode;
        format!("'{opcode}' with operands that do not fit the result")
    }

    /// Collective instructions of a program that runs on one device: the operands.
    fn of_one_device(
        &self,
        instruction: &Instruction,
        sources: &[&Array<'c>],
        results: &[&ArrayShape],
    ) -> Result<Vec<Array<'c>>, String> {
        let same = sources.len() == results.len()
            && sources
                .iter()
                .zip(results)
                .all(|(source, result)| source.shape.is_compatible(result));
        if !same {
            return Err(format!("'{}' of several devices is not supported", instruction.opcode));
        }
        Ok(sources.iter().map(|source| (*source).clone()).collect())
    }
}

/// What to use instead of an opcode that has no compiled form.
fn instead_of(opcode: Opcode) -> Option<&'static str> {
    match opcode {
        Opcode::Rng | Opcode::RngGetAndUpdateState => {
            Some("its values are not defined; try 'rng-bit-generator' with a state")
        }
        Opcode::SetDimensionSize => Some("sizes are static; try a 'select' by an 'iota'"),
        _ => None,
    }
}

/// The arrays as a value of this structure.
fn structured<'c>(shape: &Shape, arrays: Vec<Array<'c>>) -> Value<'c> {
    fn build<'c>(shape: &Shape, arrays: &mut std::vec::IntoIter<Array<'c>>) -> Value<'c> {
        match shape {
            Shape::Array(_) => arrays.next().map_or(Value::Token, Value::Array),
            Shape::Tuple(elements) => {
                Value::Tuple(elements.iter().map(|element| build(element, arrays)).collect())
            }
            Shape::Token => Value::Token,
        }
    }
    build(shape, &mut arrays.into_iter())
}
