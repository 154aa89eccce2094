//! Decodes an MLIR function into a [`Program`].
//!
//! Decoded are the operations that the front ends emit, and those that the passes of the CPU pipeline
//! leave before the `llvm` dialect; any other is an error. Nested regions are followed to a fixed depth.
//! Operations on scalars and vectors are in `decode_scalar`, control flow in `decode_flow`, tensors and
//! memory in `decode_memory`.

use super::{
    Limits,
    decode_flow::Called,
    error::{Error, location_of},
    function::Function,
    integer::{IntBinary, ScalarType},
    machine::Array,
    program::{
        At, Code, Global, IndexOp, Inst, MemReg, Moves, Parameter, Place, Program, Reg,
        SizeVariable, SourcePlace, TensorReg,
    },
    scalar::{FloatType, Scalar},
};
use crate::runtime::{ElementType, Tensor};
use melior::ir::{
    Attribute, BlockLike, Type, TypeLike, ValueLike, attribute::DictionaryAttribute,
    operation::OperationLike,
};
use std::{collections::HashMap, rc::Rc};
use tc_dialects::{
    imap::{Inside, verify::index_variable},
    mlir::{self, Blk, Op, Val},
    tc::{Def, Size},
};
use tc_ir::{Expr, Node, Var};

/// How deep regions may nest inside a statement.
const MAX_DEPTH: usize = 100;

/// Where a value of the function is at run time.
#[derive(Clone, Debug)]
pub(super) enum Slot {
    Scalar(Reg),
    /// The lanes, row-major.
    Vector(Vec<Reg>),
    Tensor(TensorReg),
    Memory(MemReg),
}

/// Expressions of index maps that have been computed, in one list of instructions.
pub(super) type Known = HashMap<Expr, Reg>;

pub(super) struct Decoder {
    pub(super) ir: tc_ir::Context,
    slots: HashMap<usize, Slot>,
    num_scalars: usize,
    num_tensors: usize,
    num_memories: usize,
    pub(super) constants: Vec<(Reg, Scalar)>,
    index_constants: HashMap<i64, Reg>,
    locations: Vec<SourcePlace>,
    /// The functions that are called, by name, and their code.
    pub(super) called: HashMap<String, Called>,
    pub(super) functions: Vec<Code>,
    /// The numbers of the globals that are used, by name.
    pub(super) global_numbers: HashMap<String, usize>,
    pub(super) globals: Vec<Global>,
    pub(super) sizes: Vec<SizeVariable>,
    /// The variables of the `imap.generic` whose regions are being decoded.
    pub(super) dims: Vec<Reg>,
    pub(super) ranges: Vec<Reg>,
    pub(super) runtimes: Vec<Reg>,
    /// Whether the region of a fold in any order is being decoded.
    pub(super) in_fold: bool,
    /// The number of the thread that runs the code that is being decoded, and the number of threads.
    pub(super) thread: (i64, i64),
    depth: usize,
}

/// Decodes a `tc.def` or a `func.func`.
pub(crate) fn decode(op: Op) -> Result<Program, Error> {
    let mut decoder = Decoder {
        ir: tc_ir::Context::new(),
        slots: HashMap::new(),
        num_scalars: 0,
        num_tensors: 0,
        num_memories: 0,
        constants: Vec::new(),
        index_constants: HashMap::new(),
        locations: Vec::new(),
        called: HashMap::new(),
        functions: Vec::new(),
        global_numbers: HashMap::new(),
        globals: Vec::new(),
        sizes: Vec::new(),
        dims: Vec::new(),
        ranges: Vec::new(),
        runtimes: Vec::new(),
        in_fold: false,
        thread: (0, 1),
        depth: 0,
    };
    let [body] = mlir::blocks(op, 0)[..] else {
        return Err(Error::at(op, "expects a body of one block"));
    };
    let at = decoder.at(op);
    let def = Def::cast(op);
    if def.is_none() && !mlir::is(op, "func.func") {
        return Err(Error::at(op, "cannot be run; expected 'tc.def' or 'func.func'"));
    }
    let mut code = Code::new();
    let parameters = decoder.parameters(op, body)?;
    if let Some(def) = def {
        decoder.size_variables(def);
        // In reverse, so that the first statement has the last word.
        for statement in def.comprehensions().into_iter().rev() {
            decoder.destination_origin(statement, &mut code)?;
        }
    }
    let values = decoder.block(body, &mut code)?;
    let return_at = body.terminator().map_or(at, |returned| decoder.at(mlir::op_ref(returned)));
    let mut status = None;
    let mut results = Vec::new();
    let attributes = mlir::array_attr(op, "res_attrs");
    for (number, value) in values.into_iter().enumerate() {
        // What `convert-results-to-destinations` leaves as the only result.
        if mlir::integer_width(value.r#type()) == Some(32) && op.has_attribute("tc.checks") {
            let checks = mlir::strings_attr(op, "tc.checks").into_iter().map(str::to_string);
            status = Some((decoder.scalar(op, value)?, checks.collect()));
            continue;
        }
        let unsigned = has_unit(attributes.get(number).copied(), "tc.unsigned");
        let types = types_of(op, value.r#type(), unsigned)?;
        results.push((decoder.place(op, value)?, types));
    }
    Ok(Program {
        parameters,
        sizes: decoder.sizes,
        code,
        results,
        status,
        functions: decoder.functions,
        globals: decoder.globals,
        constants: decoder.constants,
        num_scalars: decoder.num_scalars,
        num_tensors: decoder.num_tensors,
        num_memories: decoder.num_memories,
        locations: decoder.locations,
        at,
        return_at,
    })
}

fn dictionary_element<'c>(attribute: Option<Attribute<'c>>, name: &str) -> Option<Attribute<'c>> {
    DictionaryAttribute::try_from(attribute?).ok()?.element_by_name(name)
}

fn has_unit(attribute: Option<Attribute>, name: &str) -> bool {
    dictionary_element(attribute, name).is_some()
}

/// The types of the elements of an argument or a result, in memory and as they are computed.
fn types_of(op: Op, ty: Type, unsigned: bool) -> Result<(ElementType, ScalarType), Error> {
    let is_array = mlir::is_tensor(ty) || mlir::is_memref(ty);
    let element = if is_array { ElementType::of(ty, unsigned) } else { None };
    element.zip(scalar_type(mlir::element_type(ty))).ok_or_else(|| {
        Error::at(
            op,
            format!("has an argument or a result of type '{ty}'; expected a ranked tensor of a known element type"),
        )
    })
}

/// The extents of a type that are all static.
pub(super) fn static_shape(ty: Type) -> Option<Vec<usize>> {
    mlir::shape(ty).into_iter().map(|extent| usize::try_from(extent?).ok()).collect()
}

/// The scalar type of a value, or of the lanes of a vector; `None` if no instruction supports it.
pub(super) fn scalar_type(ty: Type) -> Option<ScalarType> {
    let ty = if ty.is_vector() { mlir::element_type(ty) } else { ty };
    if ty.is_index() {
        return Some(ScalarType::Int(64));
    }
    if let Some(width) = mlir::integer_width(ty) {
        return (1..=64).contains(&width).then_some(ScalarType::Int(width));
    }
    if let Some(small) = mlir::small_float(ty) {
        return Some(ScalarType::Small(small));
    }
    Some(ScalarType::Float(if ty.is_f16() {
        FloatType::F16
    } else if ty.is_bf16() {
        FloatType::Bf16
    } else if ty.is_f32() {
        FloatType::F32
    } else if ty.is_f64() {
        FloatType::F64
    } else {
        return None;
    }))
}

impl Decoder {
    fn parameters<'c>(&mut self, op: Op<'c>, body: Blk<'c>) -> Result<Vec<Parameter>, Error> {
        let attributes = mlir::array_attr(op, "arg_attrs");
        let mut parameters = Vec::new();
        for (number, value) in mlir::arguments(body).into_iter().enumerate() {
            let attribute = attributes.get(number).copied();
            let unsigned = has_unit(attribute, "tc.unsigned");
            let (element, scalar) = types_of(op, value.r#type(), unsigned)?;
            let name = dictionary_element(attribute, "tc.name").and_then(mlir::string_of);
            let output = dictionary_element(attribute, "tc.output").and_then(mlir::integer_of);
            self.define(op, value)?;
            parameters.push(Parameter {
                name: name.map_or_else(|| format!("argument {number}"), |name| format!("'{name}'")),
                element,
                scalar,
                shape: mlir::shape(value.r#type()),
                place: self.place(op, value)?,
                output: output.map(|it| (it as usize, has_unit(attribute, "tc.inout"))),
            });
        }
        Ok(parameters)
    }

    fn size_variables(&mut self, def: Def) {
        let parameters = def.parameters();
        for (name, ..) in def.sizes() {
            let mut places = Vec::new();
            for (number, parameter) in parameters.iter().enumerate() {
                for (dim, size) in parameter.sizes.iter().enumerate() {
                    if *size == Size::Variable(name) {
                        places.push((number, dim));
                    }
                }
            }
            let value = self.new_reg();
            self.sizes.push(SizeVariable { name: name.into(), value, places });
        }
    }

    pub(super) fn new_reg(&mut self) -> Reg {
        self.num_scalars += 1;
        self.num_scalars - 1
    }

    /// A register for a scalar value.
    pub(super) fn new_scalar(&mut self, value: Val) -> Reg {
        let reg = self.new_reg();
        self.set_slot(value, Slot::Scalar(reg));
        reg
    }

    /// A register for a tensor value.
    pub(super) fn new_tensor(&mut self, value: Val) -> TensorReg {
        let reg = self.new_tensor_reg();
        self.set_slot(value, Slot::Tensor(reg));
        reg
    }

    pub(super) fn new_tensor_reg(&mut self) -> TensorReg {
        self.num_tensors += 1;
        self.num_tensors - 1
    }

    /// A register for a memref value.
    pub(super) fn new_memory(&mut self, value: Val) -> MemReg {
        self.num_memories += 1;
        self.set_slot(value, Slot::Memory(self.num_memories - 1));
        self.num_memories - 1
    }

    /// The registers of a scalar, or of the lanes of a vector.
    pub(super) fn new_lanes(&mut self, op: Op, value: Val) -> Result<Vec<Reg>, Error> {
        /// More lanes than this are not decoded one by one.
        const MAX_LANES: usize = 1 << 12;
        if !value.r#type().is_vector() {
            return Ok(vec![self.new_scalar(value)]);
        }
        let shape = static_shape(value.r#type());
        let count = shape.and_then(|it| it.into_iter().try_fold(1usize, usize::checked_mul));
        let count = count.filter(|count| *count <= MAX_LANES);
        let count = count.ok_or_else(|| self.unsupported_type(op, value))?;
        let lanes: Vec<_> = (0..count).map(|_| self.new_reg()).collect();
        self.set_slot(value, Slot::Vector(lanes.clone()));
        Ok(lanes)
    }

    /// Gives a value registers by its type.
    pub(super) fn define(&mut self, op: Op, value: Val) -> Result<Slot, Error> {
        let ty = value.r#type();
        if mlir::is_tensor(ty) {
            return Ok(Slot::Tensor(self.new_tensor(value)));
        }
        if mlir::is_memref(ty) {
            return Ok(Slot::Memory(self.new_memory(value)));
        }
        if scalar_type(ty).is_none() {
            return Err(self.unsupported_type(op, value));
        }
        let lanes = self.new_lanes(op, value)?;
        Ok(if ty.is_vector() { Slot::Vector(lanes) } else { Slot::Scalar(lanes[0]) })
    }

    pub(super) fn set_slot(&mut self, value: Val, slot: Slot) {
        self.slots.insert(mlir::value_key(value), slot);
    }

    /// Lets a scalar value be in a register that exists.
    pub(super) fn bind(&mut self, value: Val, reg: Reg) {
        self.set_slot(value, Slot::Scalar(reg));
    }

    pub(super) fn constant(&mut self, value: i64) -> Reg {
        if let Some(reg) = self.index_constants.get(&value) {
            return *reg;
        }
        let reg = self.new_reg();
        self.constants.push((reg, Scalar::int(value)));
        self.index_constants.insert(value, reg);
        reg
    }

    pub(super) fn at(&mut self, op: Op) -> At {
        // Only reads carry the text of the source.
        let text = match mlir::name(op) {
            "tc.read" => mlir::string_attr(op, "text"),
            "tc.comprehension" => mlir::string_attr(op, "target"),
            _ => None,
        };
        let what = match text {
            Some(text) => format!("'{text}'"),
            None => format!("'{}' op", mlir::name(op)),
        };
        self.locations.push(SourcePlace { location: location_of(op), what });
        self.locations.len() - 1
    }

    pub(super) fn slot(&self, op: Op, value: Val) -> Result<Slot, Error> {
        self.slots.get(&mlir::value_key(value)).cloned().ok_or_else(|| no_value(op, value))
    }

    /// The register of a scalar operand of `op`.
    pub(super) fn scalar(&self, op: Op, value: Val) -> Result<Reg, Error> {
        match self.slots.get(&mlir::value_key(value)) {
            Some(Slot::Scalar(reg)) => Ok(*reg),
            _ => Err(no_value(op, value)),
        }
    }

    /// The registers of a scalar or vector operand of `op`.
    pub(super) fn lanes(&self, op: Op, value: Val) -> Result<Vec<Reg>, Error> {
        match self.slots.get(&mlir::value_key(value)) {
            Some(Slot::Scalar(reg)) => Ok(vec![*reg]),
            Some(Slot::Vector(lanes)) => Ok(lanes.clone()),
            _ => Err(no_value(op, value)),
        }
    }

    /// The register of a tensor operand of `op`.
    pub(super) fn tensor(&self, op: Op, value: Val) -> Result<TensorReg, Error> {
        match self.slots.get(&mlir::value_key(value)) {
            Some(Slot::Tensor(reg)) => Ok(*reg),
            _ => Err(Error::at(
                op,
                format!("has an operand of type '{}'; expected a tensor", value.r#type()),
            )),
        }
    }

    /// The register of a memref operand of `op`.
    pub(super) fn memory(&self, op: Op, value: Val) -> Result<MemReg, Error> {
        match self.slots.get(&mlir::value_key(value)) {
            Some(Slot::Memory(reg)) => Ok(*reg),
            _ => Err(Error::at(
                op,
                format!("has an operand of type '{}'; expected a memref", value.r#type()),
            )),
        }
    }

    /// The register of a tensor or memref operand of `op`.
    pub(super) fn place(&self, op: Op, value: Val) -> Result<Place, Error> {
        match mlir::is_memref(value.r#type()) {
            true => Ok(Place::Memory(self.memory(op, value)?)),
            false => Ok(Place::Tensor(self.tensor(op, value)?)),
        }
    }

    pub(super) fn scalars<'c>(&self, op: Op<'c>, values: &[Val<'c>]) -> Result<Vec<Reg>, Error> {
        values.iter().map(|value| self.scalar(op, *value)).collect()
    }

    /// The copies of values to slots of the same types. A tensor that `op` is the only user of, in the block
    /// that it comes from, is taken along.
    pub(super) fn moves<'c>(
        &self,
        op: Op<'c>,
        to: &[Slot],
        from: &[Val<'c>],
    ) -> Result<Moves, Error> {
        let mut moves = Moves::default();
        if to.len() != from.len() {
            let message = format!("passes {} values; expected {}", from.len(), to.len());
            return Err(Error::at(op, message));
        }
        for (to, value) in to.iter().zip(from) {
            match (to, self.slot(op, *value)?) {
                (Slot::Scalar(to), Slot::Scalar(from)) => moves.scalars.push((*to, from)),
                (Slot::Vector(to), Slot::Vector(from)) => {
                    moves.scalars.extend(to.iter().copied().zip(from));
                }
                (Slot::Tensor(to), Slot::Tensor(from)) => {
                    moves.tensors.push((*to, from, is_last_use(op, *value)));
                }
                (Slot::Memory(to), Slot::Memory(from)) => moves.memories.push((*to, from)),
                _ => return Err(no_value(op, *value)),
            }
        }
        Ok(moves)
    }

    /// Decodes a block into `code` and returns the operands of its terminator.
    pub(super) fn block<'c>(
        &mut self,
        block: Blk<'c>,
        code: &mut Code,
    ) -> Result<Vec<Val<'c>>, Error> {
        let terminator = block.terminator().map(mlir::op_ref);
        for op in mlir::ops(block) {
            if Some(op) == terminator {
                break;
            }
            self.op(op, code)?;
        }
        Ok(terminator.map(mlir::operands).unwrap_or_default())
    }

    /// Emits what computes index expressions, and returns where their values are.
    pub(super) fn exprs(
        &mut self,
        exprs: &[Expr],
        value_of: &dyn Fn(Var) -> Option<Reg>,
        known: &mut Known,
        at: At,
        code: &mut Code,
    ) -> Result<Vec<Reg>, Error> {
        let mut pending: Vec<Expr> = exprs.iter().rev().copied().collect();
        while let Some(expr) = pending.last().copied() {
            if known.contains_key(&expr) {
                pending.pop();
                continue;
            }
            let node = self.ir.node(expr);
            let reg = match (node, node.operands()) {
                (Node::Const(value), _) => self.constant(value),
                (Node::Var(var), _) => value_of(var).ok_or_else(|| {
                    let place = &self.locations[at];
                    let message = format!("{} uses {var:?} where it has no value yet", place.what);
                    Error::new(&place.location, message)
                })?,
                (_, Some((lhs, rhs))) => {
                    let (Some(lhs), Some(rhs)) =
                        (known.get(&lhs).copied(), known.get(&rhs).copied())
                    else {
                        pending.extend([rhs, lhs]);
                        continue;
                    };
                    let op = match node {
                        Node::Mul(..) => IndexOp::Mul,
                        Node::FloorDiv(..) => IndexOp::FloorDiv,
                        Node::CeilDiv(..) => IndexOp::CeilDiv,
                        Node::Mod(..) => IndexOp::Mod,
                        Node::Min(..) => IndexOp::Min,
                        Node::Max(..) => IndexOp::Max,
                        _ => IndexOp::Add,
                    };
                    let to = self.new_reg();
                    code.push(Inst::Index { op, to, lhs, rhs, at });
                    to
                }
                // Every other node has operands.
                _ => self.constant(0),
            };
            known.insert(expr, reg);
            pending.pop();
        }
        Ok(exprs.iter().map(|expr| known[expr]).collect())
    }

    /// The width of an integer operand or result.
    pub(super) fn width(&self, op: Op, value: Val) -> Result<u32, Error> {
        match scalar_type(value.r#type()) {
            Some(ScalarType::Int(width)) => Ok(width),
            _ => Err(self.unsupported_type(op, value)),
        }
    }

    /// The type in which an operation on floats computes.
    pub(super) fn float_type(&self, op: Op, value: Val) -> Result<FloatType, Error> {
        match scalar_type(value.r#type()) {
            Some(ScalarType::Float(ty)) => Ok(ty),
            Some(ScalarType::Small(_)) => Ok(FloatType::F32),
            _ => Err(self.unsupported_type(op, value)),
        }
    }

    pub(super) fn unsupported_type(&self, op: Op, value: Val) -> Error {
        Error::at(
            op,
            format!("works on '{}', which the interpreter does not support", value.r#type()),
        )
    }

    fn op<'c>(&mut self, op: Op<'c>, code: &mut Code) -> Result<(), Error> {
        match mlir::name(op).split_once('.') {
            Some(("arith" | "math" | "ub", _)) => self.elementwise(op, code),
            Some(("vector", name)) => self.vector(op, name, code),
            Some(("imap", name)) => self.imap(op, name, code),
            Some(("tc", name)) => self.tc(op, name, code),
            Some(("scf" | "func", name)) => self.nested(op, |it| it.flow(op, name, code)),
            Some(("omp", name)) => self.nested(op, |it| it.threads(op, name, code)),
            Some(("llvm", "mlir.constant")) => self.scalar_constant(op),
            Some(("cf", "assert")) => {
                let message = mlir::string_attr(op, "msg").unwrap_or_default();
                self.check(op, message, code)
            }
            Some(("tensor", name)) => self.tensors(op, name, code),
            Some(("memref", "alloca_scope")) => self.nested(op, |it| it.region(op, code)),
            Some(("memref", name)) => self.memories(op, name, code),
            Some(("bufferization", name)) => self.bufferization(op, name, code),
            Some(("linalg", name)) => self.linalg(op, name, code),
            _ => Err(self.unsupported(op)),
        }
    }

    /// Decodes the regions of an operation, unless it is nested too deeply.
    fn nested(
        &mut self,
        op: Op,
        decode: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.depth == MAX_DEPTH {
            return Err(Error::at(op, format!("is nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let result = decode(self);
        self.depth -= 1;
        result
    }

    fn check(&mut self, op: Op, message: &str, code: &mut Code) -> Result<(), Error> {
        let condition = self.scalar(op, mlir::operand(op, 0))?;
        let at = self.at(op);
        code.push(Inst::Check { condition, message: message.into(), at });
        Ok(())
    }

    pub(super) fn unsupported(&self, op: Op) -> Error {
        Error::at(op, "is not supported by the interpreter")
    }

    /// Dense elements of a type.
    pub(super) fn dense_elements(
        &self,
        op: Op,
        ty: Type,
        value: Option<Attribute>,
    ) -> Result<Array, Error> {
        let unsupported = || {
            let message = format!("works on '{ty}', which the interpreter does not support");
            Error::at(op, message)
        };
        let element = ElementType::of(ty, false).ok_or_else(unsupported)?;
        let shape = static_shape(ty).ok_or_else(unsupported)?;
        let count = shape.iter().try_fold(1usize, |count, extent| count.checked_mul(*extent));
        let most = Limits::default().elements;
        let count = count.filter(|count| *count as u64 <= most).ok_or_else(|| {
            Error::at(op, format!("has a constant of '{ty}'; expected at most {most} elements"))
        })?;
        let bytes = value.and_then(|value| mlir::dense_bytes(value, count, element.size()));
        let (bytes, is_splat) = bytes.ok_or_else(unsupported)?;
        let mut tensor = Tensor::zeros(element, &shape)
            .map_err(|error| Error::at(op, format!("has a constant that does not fit: {error}")))?;
        let bytes = if is_splat { bytes.repeat(count) } else { bytes };
        tensor.bytes_mut().copy_from_slice(&bytes);
        let scalar = scalar_type(mlir::element_type(ty)).ok_or_else(unsupported)?;
        Ok(super::to_array(&tensor, scalar))
    }

    /// A constant tensor or vector.
    pub(super) fn dense_constant(&mut self, op: Op, code: &mut Code) -> Result<(), Error> {
        let result = mlir::result(op, 0);
        let array = self.dense_elements(op, result.r#type(), op.attribute("value").ok())?;
        if result.r#type().is_vector() {
            let lanes = self.new_lanes(op, result)?;
            self.constants.extend(lanes.into_iter().zip(array.scalars));
            return Ok(());
        }
        let to = self.new_tensor(result);
        code.push(Inst::Constant { to, array: Rc::new(array) });
        Ok(())
    }

    fn imap(&mut self, op: Op, name: &str, code: &mut Code) -> Result<(), Error> {
        match name {
            "generic" | "scan" | "scatter" => self.indexed(op, code),
            "sort" => self.sort(op, code),
            "index" => {
                let reg = match index_variable(op) {
                    Some(Var::Dim(number)) => self.dims.get(number as usize),
                    Some(Var::Range(number)) => self.ranges.get(number as usize),
                    _ => None,
                };
                let reg = *reg.ok_or_else(|| self.unsupported(op))?;
                // A copy, because the variable changes and the value of this op does not.
                let to = self.new_scalar(mlir::result(op, 0));
                code.push(Inst::Copy { to, from: reg });
                Ok(())
            }
            "inside" => {
                let inside = Inside::cast(op).ok_or_else(|| self.unsupported(op))?;
                let conditions = inside.conditions(&self.ir);
                let (dims, ranges) = (self.dims.clone(), self.ranges.clone());
                let runtimes = self.runtimes.clone();
                let value_of = |var| match var {
                    Var::Dim(number) => dims.get(number as usize).copied(),
                    Var::Range(number) => ranges.get(number as usize).copied(),
                    Var::Runtime(number) => runtimes.get(number as usize).copied(),
                };
                let at = self.at(op);
                let to = self.new_scalar(mlir::result(op, 0));
                self.holds(&conditions, &value_of, &mut Known::new(), (to, false), at, code)
            }
            "apply" => self.apply(op, code),
            "builtin" => {
                let name = mlir::string_attr(op, "name").unwrap_or_default();
                let function = Function::lookup(name).ok_or_else(|| {
                    Error::at(op, format!("names the built-in \"{name}\", which does not exist"))
                })?;
                self.call(op, &function, code)
            }
            "check" => {
                let message = mlir::string_attr(op, "message").unwrap_or_default();
                self.check(op, message, code)
            }
            _ => Err(self.unsupported(op)),
        }
    }

    fn apply(&mut self, op: Op, code: &mut Code) -> Result<(), Error> {
        let attribute = op.attribute("map").ok();
        let map = attribute.and_then(|it| tc_dialects::imap::map::from_attribute(&self.ir, it));
        let map = map.ok_or_else(|| self.unsupported(op))?;
        let operands = self.scalars(op, &mlir::operands(op))?;
        let (num_dims, num_ranges) = (map.dims.len(), map.ranges.len());
        let value_of = |var| {
            let index = match var {
                Var::Dim(number) => number as usize,
                Var::Range(number) => num_dims + number as usize,
                Var::Runtime(number) => num_dims + num_ranges + number as usize,
            };
            operands.get(index).copied()
        };
        let at = self.at(op);
        let regs = self.exprs(&map.results, &value_of, &mut Known::new(), at, code)?;
        for (result, from) in mlir::results(op).into_iter().zip(regs) {
            let to = self.new_scalar(result);
            code.push(Inst::Copy { to, from });
        }
        Ok(())
    }

    fn tc(&mut self, op: Op, name: &str, code: &mut Code) -> Result<(), Error> {
        match name {
            "comprehension" => self.comprehension(op, code),
            "size" => {
                let name = mlir::string_attr(op, "name").unwrap_or_default();
                let size = self.sizes.iter().find(|size| size.name == name);
                let reg = size.ok_or_else(|| self.unsupported(op))?.value;
                self.bind(mlir::result(op, 0), reg);
                Ok(())
            }
            "extent" => {
                let dim = mlir::integer_attr(op, "dim").unwrap_or(-1);
                let dim = self.constant(dim);
                self.extent(op, dim, code)
            }
            "read" => self.read(op, code),
            "div" | "rem" => {
                let signed = op.attribute("unsigned_").is_err();
                let int =
                    if name == "div" { IntBinary::TcDiv(signed) } else { IntBinary::TcRem(signed) };
                let result = mlir::result(op, 0);
                let width = self.width(op, result)?;
                let regs = self.scalars(op, &mlir::operands(op))?;
                let (to, at) = (self.new_scalar(result), self.at(op));
                code.push(Inst::Int { op: int, width, to, lhs: regs[0], rhs: regs[1], at });
                Ok(())
            }
            _ => Err(self.unsupported(op)),
        }
    }

    pub(super) fn extent(&mut self, op: Op, dim: Reg, code: &mut Code) -> Result<(), Error> {
        let tensor = self.tensor(op, mlir::operand(op, 0))?;
        let (to, at) = (self.new_scalar(mlir::result(op, 0)), self.at(op));
        code.push(Inst::Extent { to, tensor, dim, at });
        Ok(())
    }

    /// `tc.read` and `tensor.extract`.
    pub(super) fn read(&mut self, op: Op, code: &mut Code) -> Result<(), Error> {
        let operands = mlir::operands(op);
        let tensor = self.tensor(op, operands[0])?;
        let indices = self.scalars(op, &operands[1..])?;
        let (to, at) = (self.new_scalar(mlir::result(op, 0)), self.at(op));
        code.push(Inst::Read { to, tensor, indices, lenient: false, at });
        Ok(())
    }
}

fn no_value(op: Op, value: Val) -> Error {
    let message = format!(
        "has an operand of type '{}' that the interpreter has no value for",
        value.r#type()
    );
    Error::at(op, message)
}

/// Whether an operation is the only user of a value, and uses it once per definition.
pub(super) fn is_last_use<'c>(op: Op<'c>, value: Val<'c>) -> bool {
    let block = mlir::defining_op(value)
        .and_then(|it| it.block().map(mlir::block_ref))
        .or_else(|| mlir::argument_block(value));
    let is_same = |block| op.block().is_some_and(|it| mlir::block_ref(it) == block);
    mlir::uses(value).len() == 1 && block.is_some_and(is_same)
}
