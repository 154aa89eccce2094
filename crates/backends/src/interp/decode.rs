//! Decodes an MLIR function into a [`Program`].
//!
//! Decoded are the operations that the front ends emit and the passes before bufferization
//! leave; any other is an error. Nested regions are followed to a fixed depth.

use super::{
    Limits,
    error::{Error, location_of},
    function::{self, Function},
    integer::{Division, IntBinary, IntPredicate, ScalarType, wrap},
    program::{
        At, Branch, Code, IndexOp, Inst, Parameter, Place, Program, Reg, SizeVariable, TensorReg,
    },
    scalar::{FloatBinary, FloatPredicate, FloatType, FloatUnary, Scalar},
};
use crate::runtime::{ElementType, Tensor};
use melior::ir::{
    Attribute, BlockLike, Type, TypeLike, ValueLike,
    attribute::{DictionaryAttribute, FloatAttribute},
    operation::OperationLike,
};
use std::{collections::HashMap, rc::Rc};
use tc_dialects::{
    imap::{CombinerKind, Generic, verify::index_variable},
    mlir::{self, Blk, Op, Val},
    tc::{Comprehension, Def, Size},
};
use tc_ir::{Expr, Node, Var};

/// How deep regions may nest inside a statement.
const MAX_DEPTH: usize = 100;

/// Where a value of the function is at run time.
#[derive(Copy, Clone, Debug)]
enum Slot {
    Scalar(Reg),
    Tensor(TensorReg),
}

/// Expressions of index maps that have been computed, in one list of instructions.
pub(super) type Known = HashMap<Expr, Reg>;

pub(super) struct Decoder {
    pub(super) ir: tc_ir::Context,
    slots: HashMap<usize, Slot>,
    num_scalars: usize,
    num_tensors: usize,
    constants: Vec<(Reg, Scalar)>,
    index_constants: HashMap<i64, Reg>,
    locations: Vec<Place>,
    pub(super) sizes: Vec<SizeVariable>,
    /// The variables of the `imap.generic` whose regions are being decoded.
    pub(super) dims: Vec<Reg>,
    pub(super) ranges: Vec<Reg>,
    depth: usize,
}

/// Decodes a `tc.def` or a `func.func`.
pub(crate) fn decode(op: Op) -> Result<Program, Error> {
    let mut decoder = Decoder {
        ir: tc_ir::Context::new(),
        slots: HashMap::new(),
        num_scalars: 0,
        num_tensors: 0,
        constants: Vec::new(),
        index_constants: HashMap::new(),
        locations: Vec::new(),
        sizes: Vec::new(),
        dims: Vec::new(),
        ranges: Vec::new(),
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
    let attributes = mlir::array_attr(op, "res_attrs");
    let mut results = Vec::new();
    for (number, value) in values.into_iter().enumerate() {
        let unsigned = has_unit(attributes.get(number).copied(), "tc.unsigned");
        let element = element_of(op, value.r#type(), unsigned)?;
        results.push((decoder.tensor(op, value)?, element));
    }
    Ok(Program {
        parameters,
        sizes: decoder.sizes,
        code,
        results,
        constants: decoder.constants,
        num_scalars: decoder.num_scalars,
        num_tensors: decoder.num_tensors,
        locations: decoder.locations,
        at,
    })
}

fn dictionary_element<'c>(attribute: Option<Attribute<'c>>, name: &str) -> Option<Attribute<'c>> {
    DictionaryAttribute::try_from(attribute?).ok()?.element_by_name(name)
}

fn has_unit(attribute: Option<Attribute>, name: &str) -> bool {
    dictionary_element(attribute, name).is_some()
}

fn element_of(op: Op, ty: Type, unsigned: bool) -> Result<ElementType, Error> {
    let element = if mlir::is_tensor(ty) { ElementType::of(ty, unsigned) } else { None };
    element.ok_or_else(|| {
        Error::at(
            op,
            format!("has an argument or a result of type '{ty}'; expected a ranked tensor of a known element type"),
        )
    })
}

/// The type of a scalar, if instructions work on it.
pub(super) fn scalar_type(ty: Type) -> Option<ScalarType> {
    if ty.is_index() {
        return Some(ScalarType::Int(64));
    }
    if let Some(width) = mlir::integer_width(ty) {
        return (1..=64).contains(&width).then_some(ScalarType::Int(width));
    }
    Some(ScalarType::Float(if ty.is_f16() {
        FloatType::F16
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
            let element = element_of(op, value.r#type(), has_unit(attribute, "tc.unsigned"))?;
            let name = dictionary_element(attribute, "tc.name").and_then(mlir::string_of);
            parameters.push(Parameter {
                name: name.map_or_else(|| format!("argument {number}"), |name| format!("'{name}'")),
                element,
                shape: mlir::shape(value.r#type()),
                tensor: self.new_tensor(value),
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
        self.slots.insert(mlir::value_key(value), Slot::Scalar(reg));
        reg
    }

    /// A register for a tensor value.
    pub(super) fn new_tensor(&mut self, value: Val) -> TensorReg {
        let reg = self.num_tensors;
        self.num_tensors += 1;
        self.slots.insert(mlir::value_key(value), Slot::Tensor(reg));
        reg
    }

    /// Lets a scalar value be in a register that exists.
    pub(super) fn bind(&mut self, value: Val, reg: Reg) {
        self.slots.insert(mlir::value_key(value), Slot::Scalar(reg));
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
        self.locations.push(Place { location: location_of(op), what });
        self.locations.len() - 1
    }

    /// The register of a scalar operand of `op`.
    pub(super) fn scalar(&self, op: Op, value: Val) -> Result<Reg, Error> {
        match self.slots.get(&mlir::value_key(value)) {
            Some(Slot::Scalar(reg)) => Ok(*reg),
            _ => Err(Error::at(
                op,
                format!(
                    "has an operand of type '{}' that the interpreter has no value for",
                    value.r#type()
                ),
            )),
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

    fn scalars<'c>(&self, op: Op<'c>, values: &[Val<'c>]) -> Result<Vec<Reg>, Error> {
        values.iter().map(|value| self.scalar(op, *value)).collect()
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
    fn width(&self, op: Op, value: Val) -> Result<u32, Error> {
        match scalar_type(value.r#type()) {
            Some(ScalarType::Int(width)) => Ok(width),
            _ => Err(self.unsupported_type(op, value)),
        }
    }

    fn float_type(&self, op: Op, value: Val) -> Result<FloatType, Error> {
        match scalar_type(value.r#type()) {
            Some(ScalarType::Float(ty)) => Ok(ty),
            _ => Err(self.unsupported_type(op, value)),
        }
    }

    fn unsupported_type(&self, op: Op, value: Val) -> Error {
        Error::at(
            op,
            format!("works on '{}', which the interpreter does not support", value.r#type()),
        )
    }

    fn op<'c>(&mut self, op: Op<'c>, code: &mut Code) -> Result<(), Error> {
        match mlir::name(op).split_once('.') {
            Some(("arith", name)) => self.arith(op, name, code),
            Some(("math", name)) => self.math(op, name, code),
            Some(("imap", name)) => self.imap(op, name, code),
            Some(("tc", name)) => self.tc(op, name, code),
            _ => self.other(op, code),
        }
    }

    fn unsupported(&self, op: Op) -> Error {
        Error::at(op, "is not supported by the interpreter")
    }

    fn arith<'c>(&mut self, op: Op<'c>, name: &str, code: &mut Code) -> Result<(), Error> {
        let operands = mlir::operands(op);
        let result = mlir::result(op, 0);
        if name == "constant" && mlir::is_tensor(result.r#type()) {
            return self.tensor_constant(op, code);
        }
        if name == "constant" {
            return self.arith_constant(op);
        }
        let regs = self.scalars(op, &operands)?;
        if let Some(int) = int_binary(name) {
            let width = self.width(op, result)?;
            let (to, at) = (self.new_scalar(result), self.at(op));
            code.push(Inst::Int { op: int, width, to, lhs: regs[0], rhs: regs[1], at });
            return Ok(());
        }
        if let Some(mut float) = float_binary(name) {
            if float == FloatBinary::Mul && goes_into_sum(result) {
                float = FloatBinary::MulIntoSum;
            }
            let ty = self.float_type(op, result)?;
            let to = self.new_scalar(result);
            code.push(Inst::Float { op: float, ty, to, lhs: regs[0], rhs: regs[1] });
            return Ok(());
        }
        let predicate = mlir::integer_attr(op, "predicate").unwrap_or(-1);
        let from = regs[0];
        let inst = match name {
            "cmpi" => Inst::IntCompare {
                predicate: IntPredicate::from_number(predicate)
                    .ok_or_else(|| self.unsupported(op))?,
                width: self.width(op, operands[0])?,
                to: self.new_scalar(result),
                lhs: from,
                rhs: regs[1],
            },
            "cmpf" => {
                self.float_type(op, operands[0])?;
                Inst::FloatCompare {
                    predicate: FloatPredicate::from_number(predicate)
                        .ok_or_else(|| self.unsupported(op))?,
                    to: self.new_scalar(result),
                    lhs: from,
                    rhs: regs[1],
                }
            }
            "select" => {
                let ty = scalar_type(result.r#type())
                    .ok_or_else(|| self.unsupported_type(op, result))?;
                Inst::Select {
                    float: ty.is_float(),
                    to: self.new_scalar(result),
                    condition: from,
                    yes: regs[1],
                    no: regs[2],
                }
            }
            "negf" => Inst::FloatOne {
                op: FloatUnary::Neg,
                ty: self.float_type(op, result)?,
                to: self.new_scalar(result),
                from,
            },
            "extf" | "truncf" => {
                self.float_type(op, operands[0])?;
                let ty = self.float_type(op, result)?;
                Inst::FloatConvert { ty, to: self.new_scalar(result), from }
            }
            "sitofp" | "uitofp" => Inst::IntToFloat {
                ty: self.float_type(op, result)?,
                width: self.width(op, operands[0])?,
                signed: name == "sitofp",
                to: self.new_scalar(result),
                from,
            },
            "fptosi" | "fptoui" => {
                self.float_type(op, operands[0])?;
                Inst::FloatToInt {
                    width: self.width(op, result)?,
                    signed: name == "fptosi",
                    to: self.new_scalar(result),
                    from,
                }
            }
            "extsi" | "extui" | "trunci" | "index_cast" | "index_castui" => Inst::IntConvert {
                signed: !matches!(name, "extui" | "index_castui"),
                from_width: self.width(op, operands[0])?,
                to_width: self.width(op, result)?,
                to: self.new_scalar(result),
                from,
            },
            _ => return Err(self.unsupported(op)),
        };
        code.push(inst);
        Ok(())
    }

    fn arith_constant(&mut self, op: Op) -> Result<(), Error> {
        let result = mlir::result(op, 0);
        let attribute = op.attribute("value").ok();
        let value = match scalar_type(result.r#type()) {
            Some(ScalarType::Int(width)) => {
                attribute.and_then(mlir::integer_of).map(|value| Scalar::int(wrap(value, width)))
            }
            Some(ScalarType::Float(_)) => attribute
                .and_then(|attribute| FloatAttribute::try_from(attribute).ok())
                .map(|value| Scalar::exact(value.value())),
            None => None,
        };
        let value = value.ok_or_else(|| self.unsupported_type(op, result))?;
        let reg = self.new_scalar(result);
        self.constants.push((reg, value));
        Ok(())
    }

    /// A constant tensor: dense elements.
    fn tensor_constant(&mut self, op: Op, code: &mut Code) -> Result<(), Error> {
        let result = mlir::result(op, 0);
        let unsupported = || self.unsupported_type(op, result);
        let element = element_of(op, result.r#type(), false)?;
        let shape: Option<Vec<_>> = mlir::shape(result.r#type())
            .into_iter()
            .map(|extent| usize::try_from(extent?).ok())
            .collect();
        let shape = shape.ok_or_else(unsupported)?;
        let count = shape.iter().try_fold(1usize, |count, extent| count.checked_mul(*extent));
        let most = Limits::default().elements;
        let count = count.filter(|count| *count as u64 <= most).ok_or_else(|| {
            Error::at(
                op,
                format!(
                    "has a constant of '{}'; expected at most {most} elements",
                    result.r#type()
                ),
            )
        })?;
        let value = op.attribute("value").ok();
        let bytes = value.and_then(|value| mlir::dense_bytes(value, count, element.size()));
        let (bytes, is_splat) = bytes.ok_or_else(unsupported)?;
        let mut tensor = Tensor::zeros(element, &shape)
            .map_err(|error| Error::at(op, format!("has a constant that does not fit: {error}")))?;
        let bytes = if is_splat { bytes.repeat(count) } else { bytes };
        tensor.bytes_mut().copy_from_slice(&bytes);
        let to = self.new_tensor(result);
        code.push(Inst::Constant { to, array: Rc::new(super::to_array(&tensor)) });
        Ok(())
    }

    fn math(&mut self, op: Op, name: &str, code: &mut Code) -> Result<(), Error> {
        let function = function::of_math(name).ok_or_else(|| self.unsupported(op))?;
        self.call(op, function, code)
    }

    fn call(&mut self, op: Op, function: Function, code: &mut Code) -> Result<(), Error> {
        let result = mlir::result(op, 0);
        let ty = self.float_type(op, result)?;
        let operands = self.scalars(op, &mlir::operands(op))?;
        if operands.len() != function.arity() {
            return Err(self.unsupported(op));
        }
        let to = self.new_scalar(result);
        code.push(Inst::Call { function, ty, to, operands });
        Ok(())
    }

    fn imap(&mut self, op: Op, name: &str, code: &mut Code) -> Result<(), Error> {
        match name {
            "generic" => self.generic(op, code),
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
            "apply" => self.apply(op, code),
            "builtin" => {
                let name = mlir::string_attr(op, "name").unwrap_or_default();
                let function = Function::lookup(name).ok_or_else(|| {
                    Error::at(op, format!("names the built-in \"{name}\", which does not exist"))
                })?;
                self.call(op, function, code)
            }
            "check" => {
                let condition = self.scalar(op, mlir::operand(op, 0))?;
                let message = mlir::string_attr(op, "message").unwrap_or_default().into();
                let at = self.at(op);
                code.push(Inst::Check { condition, message, at });
                Ok(())
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

    fn extent(&mut self, op: Op, dim: Reg, code: &mut Code) -> Result<(), Error> {
        let tensor = self.tensor(op, mlir::operand(op, 0))?;
        let (to, at) = (self.new_scalar(mlir::result(op, 0)), self.at(op));
        code.push(Inst::Extent { to, tensor, dim, at });
        Ok(())
    }

    /// `tc.read` and `tensor.extract`.
    fn read(&mut self, op: Op, code: &mut Code) -> Result<(), Error> {
        let operands = mlir::operands(op);
        let tensor = self.tensor(op, operands[0])?;
        let indices = self.scalars(op, &operands[1..])?;
        let (to, at) = (self.new_scalar(mlir::result(op, 0)), self.at(op));
        code.push(Inst::Read { to, tensor, indices, lenient: false, at });
        Ok(())
    }

    fn other(&mut self, op: Op, code: &mut Code) -> Result<(), Error> {
        match mlir::name(op) {
            "scf.if" => {
                if self.depth == MAX_DEPTH {
                    return Err(Error::at(op, format!("is nested more than {MAX_DEPTH} deep")));
                }
                self.depth += 1;
                let result = self.scf_if(op, code);
                self.depth -= 1;
                result
            }
            "tensor.extract" => self.read(op, code),
            "tensor.dim" => {
                let dim = self.scalar(op, mlir::operand(op, 1))?;
                self.extent(op, dim, code)
            }
            "tensor.empty" => {
                let result = mlir::result(op, 0);
                let mut dynamic = self.scalars(op, &mlir::operands(op))?.into_iter();
                let mut shape = Vec::new();
                for extent in mlir::shape(result.r#type()) {
                    let reg = match extent {
                        Some(extent) => self.constant(extent),
                        None => dynamic.next().ok_or_else(|| self.unsupported(op))?,
                    };
                    shape.push(reg);
                }
                let (to, at) = (self.new_tensor(result), self.at(op));
                code.push(Inst::Empty { to, shape, at });
                Ok(())
            }
            "tensor.cast" => {
                let from = self.tensor(op, mlir::operand(op, 0))?;
                let result = mlir::result(op, 0);
                let shape = mlir::shape(result.r#type());
                let (to, at) = (self.new_tensor(result), self.at(op));
                code.push(Inst::Reshaped { to, from, shape, at });
                Ok(())
            }
            "linalg.fill" if op.operand_count() == 2 && op.result_count() == 1 => {
                let value = self.scalar(op, mlir::operand(op, 0))?;
                let tensor = self.tensor(op, mlir::operand(op, 1))?;
                let to = self.new_tensor(mlir::result(op, 0));
                code.push(Inst::Fill { to, tensor, value });
                Ok(())
            }
            _ => Err(self.unsupported(op)),
        }
    }

    fn scf_if(&mut self, op: Op, code: &mut Code) -> Result<(), Error> {
        let condition = self.scalar(op, mlir::operand(op, 0))?;
        let mut branches = Vec::new();
        for region in 0..2 {
            let mut branch = Branch::default();
            if let Some(block) = mlir::body(op, region) {
                let values = self.block(block, &mut branch.code)?;
                branch.results = self.scalars(op, &values)?;
            }
            branches.push(branch);
        }
        let mut to = Vec::new();
        for result in mlir::results(op) {
            let ty = scalar_type(result.r#type());
            let ty = ty.ok_or_else(|| self.unsupported_type(op, result))?;
            to.push((self.new_scalar(result), ty.is_float()));
        }
        let otherwise = branches.pop().unwrap_or_default();
        let then = branches.pop().unwrap_or_default();
        code.push(Inst::If { condition, then, otherwise, to });
        Ok(())
    }
}

/// Whether a product may be contracted with a sum: one that it is a term of, perhaps after a
/// change of sign or a choice.
fn goes_into_sum(product: Val) -> bool {
    mlir::uses(product).into_iter().any(|(user, operand)| match mlir::name(user) {
        "arith.addf" | "arith.subf" | "arith.negf" | "arith.select" | "scf.yield" => true,
        "imap.yield" | "tc.yield" => {
            let parent = mlir::parent(user);
            let combiner =
                match parent.map(|parent| (Generic::cast(parent), Comprehension::cast(parent))) {
                    Some((Some(generic), _)) => generic.combiners().get(operand).copied(),
                    Some((_, Some(statement))) => Some(statement.combiner()),
                    _ => None,
                };
            combiner.is_some_and(|combiner| combiner.kind == CombinerKind::Add)
        }
        _ => false,
    })
}

fn int_binary(name: &str) -> Option<IntBinary> {
    Some(match name {
        "addi" => IntBinary::Add,
        "subi" => IntBinary::Sub,
        "muli" => IntBinary::Mul,
        "divsi" => IntBinary::Divide(Division::Signed),
        "divui" => IntBinary::Divide(Division::Unsigned),
        "floordivsi" => IntBinary::Divide(Division::Floor),
        "ceildivsi" => IntBinary::Divide(Division::Ceil),
        "ceildivui" => IntBinary::Divide(Division::CeilUnsigned),
        "remsi" => IntBinary::Remainder(Division::Signed),
        "remui" => IntBinary::Remainder(Division::Unsigned),
        "andi" => IntBinary::And,
        "ori" => IntBinary::Or,
        "xori" => IntBinary::Xor,
        "shli" => IntBinary::ShiftLeft,
        "shrsi" => IntBinary::ShiftRightSigned,
        "shrui" => IntBinary::ShiftRightUnsigned,
        "minsi" => IntBinary::MinSigned,
        "maxsi" => IntBinary::MaxSigned,
        "minui" => IntBinary::MinUnsigned,
        "maxui" => IntBinary::MaxUnsigned,
        _ => return None,
    })
}

fn float_binary(name: &str) -> Option<FloatBinary> {
    Some(match name {
        "addf" => FloatBinary::Add,
        "subf" => FloatBinary::Sub,
        "mulf" => FloatBinary::Mul,
        "divf" => FloatBinary::Div,
        "remf" => FloatBinary::Rem,
        "minnumf" => FloatBinary::MinNum,
        "maxnumf" => FloatBinary::MaxNum,
        "minimumf" => FloatBinary::Minimum,
        "maximumf" => FloatBinary::Maximum,
        _ => return None,
    })
}
