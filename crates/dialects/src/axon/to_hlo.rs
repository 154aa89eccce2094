//! Converts an Axon program at known sizes to an HLO module.
//!
//! An [`Evaluator`] that builds instructions. `map` and `loop` become a `while` that takes a row with
//! `dynamic-slice` and stores one with `dynamic-update-slice`; its body is built once, whatever the
//! number of rows. What a body uses of the computation around it is added to the state of its loop
//! when it is first used. `reduce` becomes a `reduce`, whose computation takes scalars that it uses of
//! the one around it as further operands that it passes on.

use super::dialect::{Asked, Read};
use super::evaluate::{
    Callee, Evaluated, Evaluation, Evaluator, Iterated, Made, Number, Pointwise, Value, Window,
    constant, evaluate, stepped,
};
use super::infer::Inferred;
use super::specialize::{Given, Instance, TensorType, refuse};
use super::syntax::ast::Program;
use super::types::ElementType;
use crate::{
    element::ElementType as HloElement,
    hlo::{
        self, ArrayLiteral, ArrayShape, Attribute, Computation, ComputationId, ConvolutionDims,
        Direction, Header, Instruction, InstructionId, Literal, Module, ORDERED, Opcode, Payload,
        Shape, SliceDim, StackFrames, Value as AttributeValue, WindowDim,
    },
    mlir,
    report::Report,
    text::{Diagnostic, Span},
};
use melior::ir::{Module as MlirModule, operation::OperationLike};
use std::collections::HashMap;
use tc_ir::shape::{Arithmetic, Dim};

impl<'c> Read<'c> {
    /// A definition of the program as a module of HLO, for given shapes of parameters; without a name,
    /// the value of the program or its only definition.
    ///
    /// # Errors
    /// What is asked for is not there, or cannot be executed.
    pub fn to_hlo(
        self,
        entry: Option<&str>,
        given: &[Given],
    ) -> Result<MlirModule<'c>, Report<'c>> {
        let mut asked = self.ask(entry, given)?;
        let Asked { program, inferred, entry, given, .. } = &mut asked;
        let instance = inferred.specialize(program, entry.as_deref(), given);
        let mut instance = instance.map_err(|refusal| asked.places.refused(refusal))?;
        asked.rename(&mut instance.parameters);
        let name = asked.name(instance.name.as_deref());
        let module = to_hlo(&mut asked.inferred, &asked.program, &instance, &name);
        let places = asked.places;
        let module = module.map_err(|diagnostic| places.report(&diagnostic))?;
        let at = |span: Span| places.location(span);
        let context = mlir::context_of(places.op);
        hlo::dialect::import_located(context, places.op.location(), &at, &module)
    }
}

/// The element type in HLO.
pub fn hlo_element(element: ElementType) -> HloElement {
    match element {
        ElementType::Bool => HloElement::Pred,
        ElementType::I8 => HloElement::S8,
        ElementType::I16 => HloElement::S16,
        ElementType::I32 => HloElement::S32,
        ElementType::I64 => HloElement::S64,
        ElementType::U8 => HloElement::U8,
        ElementType::U16 => HloElement::U16,
        ElementType::U32 => HloElement::U32,
        ElementType::U64 => HloElement::U64,
        ElementType::F16 => HloElement::F16,
        ElementType::Bf16 => HloElement::BF16,
        ElementType::F32 => HloElement::F32,
        ElementType::F64 => HloElement::F64,
    }
}

/// The element type of HLO in Axon, if it has one.
pub fn axon_element(element: HloElement) -> Option<ElementType> {
    ElementType::ALL.into_iter().find(|it| hlo_element(*it) == element)
}

/// The bits of a number as an element.
pub fn bits(number: Number, element: ElementType) -> u64 {
    let to = hlo_element(element);
    match number {
        Number::Integer(value) if element.is_float() => to.encode_float(value as f64),
        Number::Integer(value) => value as u64,
        Number::Float(value) => match to {
            // Rounded once, from the text.
            HloElement::F32 => u64::from((value as f32).to_bits()),
            _ => to.encode_float(value),
        },
    }
}

/// The opcode of a function, and what a comparison asks for; integers are divided differently.
pub fn opcode(function: Pointwise) -> (Opcode, Option<Direction>) {
    use Pointwise as F;
    let opcode = match function {
        F::Equal => return (Opcode::Compare, Some(Direction::Eq)),
        F::NotEqual => return (Opcode::Compare, Some(Direction::Ne)),
        F::Less => return (Opcode::Compare, Some(Direction::Lt)),
        F::LessEqual => return (Opcode::Compare, Some(Direction::Le)),
        F::Greater => return (Opcode::Compare, Some(Direction::Gt)),
        F::GreaterEqual => return (Opcode::Compare, Some(Direction::Ge)),
        F::Add => Opcode::Add,
        F::Sub => Opcode::Subtract,
        F::Mul => Opcode::Multiply,
        F::Div => Opcode::Divide,
        F::Max => Opcode::Maximum,
        F::Min => Opcode::Minimum,
        F::Select => Opcode::Select,
        F::Neg => Opcode::Negate,
        F::Exp => Opcode::Exponential,
        F::Log => Opcode::Log,
        F::Sqrt => Opcode::Sqrt,
        F::Tanh => Opcode::Tanh,
        F::Sigmoid => Opcode::Logistic,
    };
    (opcode, None)
}

/// The module that an entry is at its types; `name` is what it is called. It takes the parameters of
/// the instance and gives an array, or a tuple of the tensors of the result. Instructions have the
/// spans of the expressions in the program that they stand for.
///
/// # Errors
/// What cannot be executed.
pub fn to_hlo(
    inferred: &mut Inferred,
    program: &Program,
    instance: &Instance,
    name: &str,
) -> Result<Module, Diagnostic> {
    let mut builder = Builder { span: instance.span, ..Builder::default() };
    builder.levels.push(Level::new(Kind::Entry));
    let mut parameters = Vec::new();
    for (number, (name, ty)) in instance.parameters.iter().enumerate() {
        parameters.push(builder.parameter(number, name, ty.clone()));
    }
    let (mut builder, results) = evaluate(inferred, program, instance, builder, parameters)?;
    let mut ids: Vec<_> = results
        .iter()
        .map(|result| builder.local(result))
        .collect::<Made<_>>()
        .map_err(|error| refuse(instance.span, error))?;
    let root = match ids.as_slice() {
        [id] => *id,
        _ => builder.tuple(std::mem::take(&mut ids)),
    };
    let entry = builder.finish(name.to_string(), root);
    Ok(Module {
        name: name.to_string(),
        header: Header::default(),
        frames: StackFrames::default(),
        computations: builder.computations,
        entry,
    })
}

/// A tensor: an instruction of a computation under way.
#[derive(Clone, Debug)]
struct Tensor {
    /// How many computations are around that of the instruction.
    level: usize,
    id: InstructionId,
    ty: TensorType,
}

/// What a computation is for, and how it takes what it uses of the one around it.
#[derive(Debug)]
enum Kind {
    Entry,
    /// The body of a loop: one parameter, a tuple with an entry per value. What the entries are before
    /// the first iteration, where this is known.
    Body(Vec<Option<InstructionId>>),
    /// The function of a reduction: what is passed in addition to the first pair.
    Reducer(Vec<InstructionId>),
}

/// A computation under way.
#[derive(Debug)]
struct Level {
    kind: Kind,
    instructions: Vec<Instruction>,
    parameters: Vec<InstructionId>,
    /// Values of the computation around it, and what they are here.
    captured: HashMap<InstructionId, InstructionId>,
}

impl Level {
    fn new(kind: Kind) -> Self {
        let (instructions, parameters) = (Vec::new(), Vec::new());
        Self { kind, instructions, parameters, captured: HashMap::new() }
    }
}

/// Builds a module.
#[derive(Debug, Default)]
struct Builder {
    computations: Vec<Computation>,
    levels: Vec<Level>,
    span: Span,
}

type Attributes = Vec<(Attribute, AttributeValue)>;

/// Whether a function of two parameters is one associative operation on both. Others need not be: their rows are
/// folded in order.
fn is_associative(instructions: &[Instruction], result: InstructionId) -> bool {
    let root = &instructions[result.index()];
    let is_operation = matches!(
        root.opcode,
        Opcode::Add
            | Opcode::Multiply
            | Opcode::Maximum
            | Opcode::Minimum
            | Opcode::And
            | Opcode::Or
            | Opcode::Xor
    );
    let is_parameter = |it: &InstructionId| instructions[it.index()].opcode == Opcode::Parameter;
    instructions.len() == 3
        && is_operation
        && root.operands.iter().all(is_parameter)
        && root.operands[0] != root.operands[1]
}

fn array(ty: &TensorType) -> Shape {
    Shape::array(hlo_element(ty.element), ty.dims.clone())
}

fn integers(
    attribute: Attribute,
    list: impl IntoIterator<Item = i64>,
) -> (Attribute, AttributeValue) {
    (attribute, AttributeValue::Integers(list.into_iter().collect()))
}

/// The type of the counters of loops.
const COUNTER: ElementType = ElementType::I64;

fn scalar(element: ElementType) -> TensorType {
    TensorType { element, dims: Vec::new() }
}

impl Builder {
    fn level(&mut self) -> &mut Level {
        self.levels.last_mut().expect("a computation is under way")
    }

    fn push(
        &mut self,
        opcode: Opcode,
        shape: Shape,
        operands: Vec<InstructionId>,
        attributes: Attributes,
        payload: Payload,
    ) -> InstructionId {
        let span = self.span;
        let level = self.level();
        let id = InstructionId(level.instructions.len() as u32);
        let name = format!("{}.{}", opcode.name(), id.0);
        level.instructions.push(Instruction {
            name,
            opcode,
            shape,
            operands,
            attributes,
            payload,
            span,
        });
        id
    }

    fn here(&self, id: InstructionId, ty: TensorType) -> Tensor {
        Tensor { level: self.levels.len() - 1, id, ty }
    }

    /// An instruction on tensors.
    fn op(
        &mut self,
        opcode: Opcode,
        ty: TensorType,
        operands: &[&Tensor],
        attributes: Attributes,
    ) -> Made<Tensor> {
        let operands = operands.iter().map(|it| self.local(it)).collect::<Made<_>>()?;
        let id = self.push(opcode, array(&ty), operands, attributes, Payload::None);
        Ok(self.here(id, ty))
    }

    fn parameter(&mut self, number: usize, name: &str, ty: TensorType) -> Tensor {
        let payload = Payload::Parameter(number as i64);
        let id = self.push(Opcode::Parameter, array(&ty), Vec::new(), Vec::new(), payload);
        let level = self.level();
        level.instructions[id.index()].name = name.to_string();
        level.parameters.push(id);
        self.here(id, ty)
    }

    fn tuple(&mut self, operands: Vec<InstructionId>) -> InstructionId {
        let level = self.level();
        let shapes = operands.iter().map(|id| level.instructions[id.index()].shape.clone());
        let shape = Shape::Tuple(shapes.collect());
        self.push(Opcode::Tuple, shape, operands, Vec::new(), Payload::None)
    }

    fn part(&mut self, tuple: InstructionId, index: usize, shape: Shape) -> InstructionId {
        let attributes = vec![(Attribute::Index, AttributeValue::Integer(index as i64))];
        self.push(Opcode::GetTupleElement, shape, vec![tuple], attributes, Payload::None)
    }

    /// The instruction that a tensor is in the current computation.
    fn local(&mut self, tensor: &Tensor) -> Made<InstructionId> {
        self.local_at(self.levels.len() - 1, tensor)
    }

    fn local_at(&mut self, level: usize, tensor: &Tensor) -> Made<InstructionId> {
        if level <= tensor.level {
            return Ok(tensor.id);
        }
        let outside = self.local_at(level - 1, tensor)?;
        if let Some(&id) = self.levels[level].captured.get(&outside) {
            return Ok(id);
        }
        // Instructions go to the computation at the end of the list.
        let inner = self.levels.split_off(level + 1);
        let shape = array(&tensor.ty);
        let id = match &mut self.level().kind {
            Kind::Entry => unreachable!("nothing is around the entry"),
            Kind::Body(inits) => {
                inits.push(Some(outside));
                let index = inits.len() - 1;
                Ok(self.part(InstructionId(0), index, shape))
            }
            Kind::Reducer(captures) if tensor.ty.dims.is_empty() => {
                captures.push(outside);
                // The number of the parameter is known when all are.
                let payload = Payload::Parameter(0);
                Ok(self.push(Opcode::Parameter, shape, Vec::new(), Vec::new(), payload))
            }
            Kind::Reducer(_) => Err(format!(
                "the function of 'reduce' uses a tensor {} from outside, expected scalars; try \
                 'loop'",
                tensor.ty
            )),
        };
        if let Ok(id) = id {
            self.level().captured.insert(outside, id);
        }
        self.levels.extend(inner);
        id
    }

    /// Ends the current computation.
    fn finish(&mut self, name: String, root: InstructionId) -> ComputationId {
        let level = self.levels.pop().expect("a computation is under way");
        self.computations.push(Computation {
            name,
            instructions: level.instructions,
            parameters: level.parameters,
            root,
            span: self.span,
        });
        ComputationId(self.computations.len() as u32 - 1)
    }

    /// A name that no other computation has.
    fn fresh(&self, what: &str) -> String {
        format!("{what}.{}", self.computations.len())
    }

    fn constant(&mut self, ty: ElementType, bits: u64) -> Tensor {
        let mut literal = ArrayLiteral::new(hlo_element(ty));
        literal.push_bits(bits);
        let payload = Payload::Constant(Box::new(Literal::Array(literal)));
        let ty = scalar(ty);
        let id = self.push(Opcode::Constant, array(&ty), Vec::new(), Vec::new(), payload);
        self.here(id, ty)
    }

    /// The next entry of the state of the loop whose body is under way, which is an array.
    fn state_entry(&mut self, init: Option<InstructionId>, ty: TensorType) -> Tensor {
        let Kind::Body(inits) = &mut self.level().kind else {
            unreachable!("the body of a loop is under way")
        };
        inits.push(init);
        let index = inits.len() - 1;
        let id = self.part(InstructionId(0), index, array(&ty));
        self.here(id, ty)
    }

    /// Integers divided and rounded down, 0 if the divisor is.
    fn divide_integers(&mut self, lhs: &Tensor, rhs: &Tensor) -> Made<Tensor> {
        let ty = lhs.ty.clone();
        let truth = TensorType { element: ElementType::Bool, dims: ty.dims.clone() };
        let compare = |builder: &mut Self, direction, lhs: &Tensor, rhs: &Tensor| {
            let attributes = vec![(Attribute::Direction, AttributeValue::Direction(direction))];
            builder.op(Opcode::Compare, truth.clone(), &[lhs, rhs], attributes)
        };
        let constant = |builder: &mut Self, value: i128| {
            let scalar = builder.number(Number::Integer(value), ty.element)?;
            builder.broadcast(&scalar, &ty.dims)
        };
        let zero = constant(self, 0)?;
        let one = constant(self, 1)?;
        let by_zero = compare(self, Direction::Eq, rhs, &zero)?;
        let divisor = self.op(Opcode::Select, ty.clone(), &[&by_zero, &one, rhs], Vec::new())?;
        let mut quotient = self.op(Opcode::Divide, ty.clone(), &[lhs, &divisor], Vec::new())?;
        if ty.element.integer_range().is_some_and(|(low, _)| low < 0) {
            // The remainder has the sign of the dividend; the quotient is too large where that of the
            // divisor is another.
            let rest = self.op(Opcode::Remainder, ty.clone(), &[lhs, &divisor], Vec::new())?;
            let inexact = compare(self, Direction::Ne, &rest, &zero)?;
            let signs = self.op(Opcode::Xor, ty.clone(), &[&rest, &divisor], Vec::new())?;
            let opposite = compare(self, Direction::Lt, &signs, &zero)?;
            let wrong = self.op(Opcode::And, truth.clone(), &[&inexact, &opposite], Vec::new())?;
            let less = self.op(Opcode::Subtract, ty.clone(), &[&quotient, &one], Vec::new())?;
            quotient =
                self.op(Opcode::Select, ty.clone(), &[&wrong, &less, &quotient], Vec::new())?;
        }
        self.op(Opcode::Select, ty.clone(), &[&by_zero, &zero, &quotient], Vec::new())
    }
}

impl Evaluator for Builder {
    type Tensor = Tensor;
    type Size = i64;
    const MAX_CALLS: usize = 1 << 16;

    fn tensor_type<'t>(&'t self, tensor: &'t Tensor) -> &'t TensorType {
        &tensor.ty
    }

    fn size(&self, dim: &Dim, _: &Arithmetic) -> Option<i64> {
        constant(dim)
    }

    fn at(&mut self, span: Span) {
        self.span = span;
    }

    fn number(&mut self, number: Number, element: ElementType) -> Made<Tensor> {
        Ok(self.constant(element, bits(number, element)))
    }

    fn broadcast(&mut self, tensor: &Tensor, dims: &[i64]) -> Made<Tensor> {
        let rank = tensor.ty.dims.len();
        let ty = TensorType { element: tensor.ty.element, dims: dims.to_vec() };
        let kept = (dims.len() - rank) as i64..dims.len() as i64;
        self.op(Opcode::Broadcast, ty, &[tensor], vec![integers(Attribute::Dimensions, kept)])
    }

    fn pointwise(&mut self, function: Pointwise, of: &[Tensor]) -> Made<Tensor> {
        let elements: Vec<_> = of.iter().map(|it| it.ty.element).collect();
        let ty = TensorType { element: function.result(&elements), dims: of[0].ty.dims.clone() };
        let operands: Vec<_> = of.iter().collect();
        if function == Pointwise::Div && !ty.element.is_float() {
            return self.divide_integers(&of[0], &of[1]);
        }
        let (opcode, direction) = opcode(function);
        let direction = direction.map(AttributeValue::Direction);
        let attributes = direction.map(|it| (Attribute::Direction, it)).into_iter().collect();
        self.op(opcode, ty, &operands, attributes)
    }

    fn dot(&mut self, lhs: &Tensor, rhs: &Tensor, batch: usize) -> Made<Tensor> {
        let contracted = lhs.ty.dims.len() - 1;
        let mut dims = lhs.ty.dims[..contracted].to_vec();
        dims.extend(&rhs.ty.dims[batch + 1..]);
        let together = || 0..batch as i64;
        let mut attributes = vec![
            integers(Attribute::LhsContractingDims, [contracted as i64]),
            integers(Attribute::RhsContractingDims, [batch as i64]),
        ];
        if 0 < batch {
            attributes.push(integers(Attribute::LhsBatchDims, together()));
            attributes.push(integers(Attribute::RhsBatchDims, together()));
        }
        let ty = TensorType { element: lhs.ty.element, dims };
        self.op(Opcode::Dot, ty, &[lhs, rhs], attributes)
    }

    fn convolution(
        &mut self,
        images: &Tensor,
        filters: &Tensor,
        window: Window,
        dims: [i64; 4],
    ) -> Made<Tensor> {
        let dim = |at: usize| WindowDim {
            size: filters.ty.dims[2 + at],
            stride: window.stride[at],
            padding_low: window.padding[at],
            padding_high: window.padding[at],
            window_dilation: window.dilation[at],
            ..WindowDim::default()
        };
        let labels = ConvolutionDims {
            input_batch: 0,
            input_feature: 1,
            input_spatial: vec![2, 3],
            kernel_output_feature: 0,
            kernel_input_feature: 1,
            kernel_spatial: vec![2, 3],
            output_batch: 0,
            output_feature: 1,
            output_spatial: vec![2, 3],
        };
        let attributes = vec![
            (Attribute::Window, AttributeValue::Window(vec![dim(0), dim(1)])),
            (Attribute::DimLabels, AttributeValue::DimLabels(Box::new(labels))),
        ];
        let ty = TensorType { element: images.ty.element, dims: dims.to_vec() };
        self.op(Opcode::Convolution, ty, &[images, filters], attributes)
    }

    fn concat(&mut self, first: &Tensor, second: &Tensor) -> Made<Tensor> {
        let mut ty = first.ty.clone();
        ty.dims[0] = ty.dims[0].checked_add(second.ty.dims[0]).ok_or("a size overflows 64 bits")?;
        let attributes = vec![integers(Attribute::Dimensions, [0])];
        self.op(Opcode::Concatenate, ty, &[first, second], attributes)
    }

    fn reverse(&mut self, tensor: &Tensor) -> Made<Tensor> {
        let attributes = vec![integers(Attribute::Dimensions, [0])];
        self.op(Opcode::Reverse, tensor.ty.clone(), &[tensor], attributes)
    }

    fn slice(&mut self, tensor: &Tensor, start: i64, size: i64) -> Made<Tensor> {
        let mut ty = tensor.ty.clone();
        let whole = |&limit: &i64| SliceDim { start: 0, limit, stride: 1 };
        let mut parts: Vec<_> = ty.dims.iter().map(whole).collect();
        let limit = start.checked_add(size).ok_or("a size overflows 64 bits")?;
        parts[0] = SliceDim { start, limit, stride: 1 };
        ty.dims[0] = size;
        let attributes = vec![(Attribute::Slice, AttributeValue::Slice(parts))];
        self.op(Opcode::Slice, ty, &[tensor], attributes)
    }

    fn gather(&mut self, tensor: &Tensor, indices: &Tensor) -> Made<Tensor> {
        let rank = tensor.ty.dims.len() as i64;
        let places = indices.ty.dims.len() as i64;
        let mut dims = indices.ty.dims.clone();
        dims.extend(&tensor.ty.dims[1..]);
        let mut sizes = tensor.ty.dims.clone();
        sizes[0] = 1;
        let attributes = vec![
            integers(Attribute::OffsetDims, places..places + rank - 1),
            integers(Attribute::CollapsedSliceDims, [0]),
            integers(Attribute::StartIndexMap, [0]),
            (Attribute::IndexVectorDim, AttributeValue::Integer(places)),
            integers(Attribute::SliceSizes, sizes),
        ];
        let ty = TensorType { element: tensor.ty.element, dims };
        self.op(Opcode::Gather, ty, &[tensor, indices], attributes)
    }

    fn transpose(&mut self, tensor: &Tensor) -> Made<Tensor> {
        let mut ty = tensor.ty.clone();
        ty.dims.reverse();
        self.op(Opcode::Transpose, ty, &[tensor], vec![integers(Attribute::Dimensions, [1, 0])])
    }

    fn reshape(&mut self, tensor: &Tensor, dims: &[i64]) -> Made<Tensor> {
        let ty = TensorType { element: tensor.ty.element, dims: dims.to_vec() };
        self.op(Opcode::Reshape, ty, &[tensor], Vec::new())
    }

    fn iota(&mut self, element: ElementType, size: i64) -> Made<Tensor> {
        let attributes = vec![(Attribute::IotaDimension, AttributeValue::Integer(0))];
        self.op(Opcode::Iota, TensorType { element, dims: vec![size] }, &[], attributes)
    }

    fn reduce(
        evaluation: &mut Evaluation<'_, Self>,
        function: Callee,
        init: &Tensor,
        of: &Tensor,
        span: Span,
    ) -> Evaluated<Tensor> {
        let at = |error: String| refuse(span, error);
        let element = of.ty.element;
        evaluation.evaluator.levels.push(Level::new(Kind::Reducer(Vec::new())));
        let so_far = evaluation.evaluator.parameter(0, "so_far", scalar(element));
        let next = evaluation.evaluator.parameter(1, "next", scalar(element));
        let args = vec![Value::Tensor(so_far), Value::Tensor(next)];
        let result = evaluation.apply(function, args, span)?;
        let builder = &mut evaluation.evaluator;
        let Value::Tensor(result) = result else {
            return Err(at("the function of 'reduce' gives no tensor".to_string()));
        };
        let result = builder.local(&result).map_err(at)?;
        let Kind::Reducer(captures) = &builder.level().kind else {
            unreachable!("the function of a reduction is under way")
        };
        let captures = captures.clone();
        let is_associative = is_associative(&builder.level().instructions, result);
        let name = builder.fresh("combine");
        let combine = builder.finish_reducer(name, result, &captures);
        let ty = TensorType { element, dims: of.ty.dims[1..].to_vec() };
        // Operands, then where each starts; a captured scalar is both.
        let mut operands = vec![builder.local(of).map_err(at)?];
        let mut inits = vec![builder.local(init).map_err(at)?];
        let mut shapes = vec![array(&ty)];
        for capture in captures {
            let shape = builder.level().instructions[capture.index()].shape.clone();
            let Shape::Array(ArrayShape { element_type, .. }) = shape else { continue };
            let whole = Shape::array(element_type, of.ty.dims.clone());
            let attributes = vec![integers(Attribute::Dimensions, [])];
            let repeated =
                builder.push(Opcode::Broadcast, whole, vec![capture], attributes, Payload::None);
            operands.push(repeated);
            inits.push(capture);
            shapes.push(Shape::array(element_type, ty.dims.clone()));
        }
        operands.extend(inits);
        let mut attributes = vec![
            integers(Attribute::Dimensions, [0]),
            (Attribute::ToApply, AttributeValue::Computation(combine)),
        ];
        if !is_associative {
            attributes.push((Attribute::FrontendAttributes, AttributeValue::Text(ORDERED.into())));
        }
        let is_plain = shapes.len() == 1;
        let shape = if is_plain { shapes.swap_remove(0) } else { Shape::Tuple(shapes) };
        let mut id = builder.push(Opcode::Reduce, shape, operands, attributes, Payload::None);
        if !is_plain {
            id = builder.part(id, 0, array(&ty));
        }
        Ok(builder.here(id, ty))
    }

    fn iterate(
        evaluation: &mut Evaluation<'_, Self>,
        function: Callee,
        state: Option<Value<Tensor>>,
        over: &Tensor,
        span: Span,
    ) -> Evaluated<Iterated<Tensor>> {
        let at = |error: String| refuse(span, error);
        let builder = &mut evaluation.evaluator;
        let count = over.ty.dims[0];
        let zero = builder.constant(COUNTER, 0);
        let tensors = state.as_ref().and_then(Value::tensors).unwrap_or_default();
        let mut inits = Vec::new();
        for tensor in &tensors {
            inits.push(builder.local(tensor).map_err(at)?);
        }
        builder.levels.push(Level::new(Kind::Body(Vec::new())));
        // The parameter: its shape is known when all entries are.
        let payload = Payload::Parameter(0);
        let shape = Shape::Tuple(Vec::new());
        let parameter = builder.push(Opcode::Parameter, shape, Vec::new(), Vec::new(), payload);
        builder.level().parameters.push(parameter);
        let counter = builder.state_entry(Some(zero.id), scalar(COUNTER));
        let mut entries = Vec::new();
        for (tensor, init) in tensors.iter().zip(inits) {
            entries.push(builder.state_entry(Some(init), tensor.ty.clone()));
        }
        let row = builder.row(over, &counter).map_err(at)?;
        let mut args = Vec::new();
        args.extend(state.as_ref().map(|state| state.with_tensors(&mut entries.iter().cloned())));
        args.push(Value::Tensor(row));
        let result = evaluation.apply(function, args, span)?;
        let builder = &mut evaluation.evaluator;
        builder.span = span;
        let (next, result) = stepped(state.is_some(), result, span)?;
        let next = next.and_then(|next| next.tensors()).unwrap_or_default();
        if next.iter().map(|it| &it.ty).ne(tensors.iter().map(|it| &it.ty)) {
            return Err(at("the state of a loop changes its type".to_string()));
        }
        // The results of all iterations.
        let mut all = result.ty.clone();
        all.dims.insert(0, count);
        let mut single = result.ty.clone();
        single.dims.insert(0, 1);
        let results = builder.state_entry(None, all.clone());
        let Kind::Body(entry_inits) = &builder.level().kind else {
            unreachable!("the body of a loop is under way")
        };
        let results_entry = entry_inits.len() - 1;
        let line = builder.op(Opcode::Reshape, single, &[&result], Vec::new()).map_err(at)?;
        let start = builder.constant(COUNTER, 0);
        let mut operands = vec![&results, &line, &counter];
        operands.extend(result.ty.dims.iter().map(|_| &start));
        let updated = builder.op(Opcode::DynamicUpdateSlice, all.clone(), &operands, Vec::new());
        let updated = updated.map_err(at)?;
        let one = builder.constant(COUNTER, 1);
        let counted = builder.op(Opcode::Add, scalar(COUNTER), &[&counter, &one], Vec::new());
        let counted = counted.map_err(at)?;
        let mut written = vec![(0, counted.id), (results_entry, updated.id)];
        for (number, tensor) in next.iter().enumerate() {
            written.push((1 + number, builder.local(tensor).map_err(at)?));
        }
        let (body, mut operands, shape) = builder.finish_body(parameter, &written);
        let condition = builder.condition(&shape, count);

        // Around the loop.
        let element = all.element;
        let init = builder.constant(element, 0);
        let init = builder.broadcast(&init, &all.dims).map_err(at)?;
        operands[results_entry] = Some(init.id);
        let operands = operands.into_iter().flatten().collect();
        let first = builder.push(Opcode::Tuple, shape.clone(), operands, Vec::new(), Payload::None);
        let attributes = vec![
            (Attribute::Condition, AttributeValue::Computation(condition)),
            (Attribute::Body, AttributeValue::Computation(body)),
        ];
        let last = builder.push(Opcode::While, shape, vec![first], attributes, Payload::None);
        let mut finals = Vec::new();
        for (number, tensor) in tensors.iter().enumerate() {
            let id = builder.part(last, 1 + number, array(&tensor.ty));
            finals.push(builder.here(id, tensor.ty.clone()));
        }
        let id = builder.part(last, results_entry, array(&all));
        let results = builder.here(id, all);
        Ok((state.map(|state| state.with_tensors(&mut finals.into_iter())), results))
    }
}

impl Builder {
    /// The row of a tensor with this number.
    fn row(&mut self, tensor: &Tensor, number: &Tensor) -> Made<Tensor> {
        let mut ty = tensor.ty.clone();
        ty.dims[0] = 1;
        let start = self.constant(COUNTER, 0);
        let mut operands = vec![tensor, number];
        operands.extend(ty.dims[1..].iter().map(|_| &start));
        let attributes = vec![integers(Attribute::DynamicSliceSizes, ty.dims.iter().copied())];
        let row = self.op(Opcode::DynamicSlice, ty.clone(), &operands, attributes)?;
        ty.dims.remove(0);
        self.op(Opcode::Reshape, ty, &[&row], Vec::new())
    }

    /// Ends the function of a reduction: scalars from outside are further pairs, of which what comes
    /// second is passed on.
    fn finish_reducer(
        &mut self,
        name: String,
        result: InstructionId,
        captures: &[InstructionId],
    ) -> ComputationId {
        if captures.is_empty() {
            return self.finish(name, result);
        }
        let level = self.level();
        let inner: Vec<_> = captures.iter().map(|capture| level.captured[capture]).collect();
        let count = 1 + captures.len();
        let mut parameters = vec![level.parameters[0]];
        let mut seconds = vec![level.parameters[1]];
        level.instructions[seconds[0].index()].payload = Payload::Parameter(count as i64);
        for (number, &id) in inner.iter().enumerate() {
            let payload = Payload::Parameter((count + 1 + number) as i64);
            level.instructions[id.index()].payload = payload;
            seconds.push(id);
        }
        for (number, &id) in inner.iter().enumerate() {
            let shape = self.level().instructions[id.index()].shape.clone();
            let payload = Payload::Parameter(1 + number as i64);
            parameters.push(self.push(Opcode::Parameter, shape, Vec::new(), Vec::new(), payload));
        }
        parameters.extend(seconds);
        self.level().parameters = parameters;
        let mut results = vec![result];
        results.extend(inner);
        let root = self.tuple(results);
        self.finish(name, root)
    }

    /// Ends the body of a loop, in which some entries of the state have been written: the body, where
    /// the entries start, and the shape of the state.
    fn finish_body(
        &mut self,
        parameter: InstructionId,
        written: &[(usize, InstructionId)],
    ) -> (ComputationId, Vec<Option<InstructionId>>, Shape) {
        let level = self.level();
        let Kind::Body(inits) = &level.kind else {
            unreachable!("the body of a loop is under way")
        };
        let inits = inits.clone();
        // What is not written stays.
        let mut next = vec![parameter; inits.len()];
        let mut shapes = vec![Shape::Tuple(Vec::new()); inits.len()];
        for (id, instruction) in (0..).map(InstructionId).zip(&level.instructions) {
            if let (Opcode::GetTupleElement, [of]) = (instruction.opcode, &instruction.operands[..])
                && let (Some(index), true) =
                    (instruction.integer(Attribute::Index), *of == parameter)
            {
                next[index as usize] = id;
                shapes[index as usize] = instruction.shape.clone();
            }
        }
        for &(index, id) in written {
            next[index] = id;
        }
        let shape = Shape::Tuple(shapes);
        level.instructions[parameter.index()].shape = shape.clone();
        let root = self.push(Opcode::Tuple, shape.clone(), next, Vec::new(), Payload::None);
        let name = self.fresh("body");
        (self.finish(name, root), inits, shape)
    }

    /// Whether the first entry of the state of a loop is less than a number.
    fn condition(&mut self, state: &Shape, count: i64) -> ComputationId {
        self.levels.push(Level::new(Kind::Entry));
        let payload = Payload::Parameter(0);
        let state = self.push(Opcode::Parameter, state.clone(), Vec::new(), Vec::new(), payload);
        self.level().parameters.push(state);
        let counter = self.part(state, 0, array(&scalar(COUNTER)));
        let count = self.constant(COUNTER, count as u64);
        let attributes = vec![(Attribute::Direction, AttributeValue::Direction(Direction::Lt))];
        let shape = array(&scalar(ElementType::Bool));
        let operands = vec![counter, count.id];
        let root = self.push(Opcode::Compare, shape, operands, attributes, Payload::None);
        let name = self.fresh("condition");
        self.finish(name, root)
    }
}
