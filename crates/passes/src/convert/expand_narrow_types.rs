//! `expand-narrow-types`: store and compute elements of fewer than 8 bits, and floats of 8 bits, with
//! types that processors have.
//!
//! Narrow types are the floats of at most 8 bits, and signless integers of 2 to 7 bits. This pass gives
//! tensors, memrefs and scalars of a narrow type the type `i8`: a float becomes its bits. The bits of
//! a byte above those of the type are undefined inside a function. Arguments and results have copies of the
//! sign there, or zeros if they have `tc.unsigned`. Arguments and results of floats get `tc.unsigned` and
//! `tc.bits_of`, the name of the type.
//!
//! - Operations of `arith` and `math` on integers get operands and results of the narrow type by
//!   `arith.trunci` and `arith.extui`.
//! - Operations on floats are computed in `f32`. Operations on the bits convert operands, and round
//!   results to nearest, ties to even.
//!
//! Before:
//!
//! ```mlir
//! func.func @f(%x: tensor<4xf8E5M2>) -> tensor<4xf32> {
//!   ..
//!   ^bb0(%a: f8E5M2):
//!     %v = arith.extf %a : f8E5M2 to f32
//! ```
//!
//! After:
//!
//! ```mlir
//! func.func @f(%x: tensor<4xi8> {tc.bits_of = "f8e5m2", tc.unsigned}) -> tensor<4xf32> {
//!   ..
//!   ^bb0(%a: i8):
//!     %bits = arith.extui %a : i8 to i32
//!     ..
//!     %v = arith.bitcast %wide : i32 to f32
//! ```
//!
//! Run this pass after fusion and before bufferization. A program without narrow types stays as it is.
//!
//! Limits: accumulators and runtime variables have other types, as have vectors and memrefs of integers
//! among the arguments. `f64` is not rounded to a narrow type directly, because it would be rounded twice.

use super::{elements::resize_float, generic_builder::GenericBuilder, subscripts::identity};
use melior::ir::{
    Attribute, Type, TypeLike, ValueLike,
    attribute::{AttributeLike, DictionaryAttribute},
    operation::OperationLike,
    r#type::{FunctionType, IntegerType, MemRefType},
};
use tc_dialects::{
    element::ElementType,
    imap::{self, Accumulator, AnyIndexed, Combiner, CombinerKind, Indexed, Scatter},
    mlir::{self, Builder, Op, Val},
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, Report, remark},
};
use tc_ir::{Context, IndexingMap, map::Variable};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "expand-narrow-types",
    summary: "Store and compute elements of narrow types with types that processors have",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["arith", "imap", "math", "tensor"],
    run,
};

/// The integers and the floats that processors lack.
#[derive(Clone, Copy, PartialEq)]
enum Narrow {
    Integer(u32),
    Float(ElementType),
}

impl Narrow {
    /// What a type, or that of its elements, is.
    fn of(ty: Type) -> Option<Self> {
        let ty = mlir::element_type(ty);
        match mlir::integer_width(ty) {
            Some(width @ 2..8) if mlir::is_signless(ty) => Some(Self::Integer(width)),
            _ => mlir::small_float(ty).map(Self::Float),
        }
    }
}

/// An operation that computes with a narrow type, and the types of its operands and results.
struct Computation<'c> {
    op: Op<'c>,
    operands: Vec<Type<'c>>,
    results: Vec<Type<'c>>,
}

fn run(pass: &PassRun) -> Result<(), Failure> {
    let (mut ops, mut has_narrow) = (Vec::new(), false);
    mlir::walk(pass.op, &mut |op| {
        ops.push(op);
        has_narrow |= defined(op).into_iter().any(|value| Narrow::of(value.r#type()).is_some());
    });
    if !has_narrow {
        return Ok(());
    }
    let expand = || {
        let (mut computations, mut functions) = (Vec::new(), Vec::new());
        for &op in &ops {
            pass.enter(op);
            check(op)?;
            if is_computation(op) {
                let (operands, results) = (types(&mlir::operands(op)), types(&mlir::results(op)));
                computations.push(Computation { op, operands, results });
            } else if let Some((arguments, results)) = mlir::function_type(op) {
                describe(op, "arg_attrs", &arguments)?;
                describe(op, "res_attrs", &results)?;
                functions.push((op, results));
            }
        }
        for &op in &ops {
            pass.enter(op);
            store_as_bytes(pass.context, op)?;
        }
        for computation in &computations {
            pass.enter(computation.op);
            expand(computation)?;
        }
        for (function, results) in functions {
            extend_results(function, &results);
        }
        Ok(computations.len())
    };
    let count = expand().map_err(|report: Report| {
        report.emit();
        Failure
    })?;
    let pairs = [("Expanded", &*count.to_string())];
    remark(pass.op.location(), RemarkKind::Analysis, PASS.argument, "operations", "", &pairs);
    Ok(())
}

fn types<'c>(values: &[Val<'c>]) -> Vec<Type<'c>> {
    values.iter().map(|value| value.r#type()).collect()
}

/// The results of an operation, and the arguments of its blocks.
fn defined<'c>(op: Op<'c>) -> Vec<Val<'c>> {
    let blocks = (0..op.region_count()).flat_map(|region| mlir::blocks(op, region));
    let arguments = blocks.flat_map(mlir::arguments);
    mlir::results(op).into_iter().chain(arguments).collect()
}

/// Whether an operation computes with values of narrow types, rather than move them.
fn is_computation(op: Op) -> bool {
    let name = mlir::name(op);
    let computes =
        name.starts_with("arith.") || name.starts_with("math.") || name == "imap.builtin";
    let values = mlir::operands(op).into_iter().chain(mlir::results(op));
    computes
        && !matches!(name, "arith.constant" | "arith.select")
        && values.into_iter().any(|value| Narrow::of(value.r#type()).is_some())
}

/// Refuses what would need more than other types.
fn check<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let Some(indexed) = AnyIndexed::cast(op) else { return Ok(()) };
    // Those of a scatter with a region are its destinations.
    let is_destination =
        |it: &Accumulator| Scatter::cast(op).is_some() && it.kind == CombinerKind::Custom;
    let accumulators = indexed.accumulators();
    let mut accumulators = accumulators.iter().filter(|it| !is_destination(it));
    if let Some(it) = accumulators.find(|it| Narrow::of(it.ty).is_some()) {
        let message = format!(
            "folds in '{}'; fold in a wider type, and truncate in the epilogue or afterwards",
            it.ty
        );
        return Err(Report::op_error(op, message));
    }
    let runtimes = indexed.runtimes().into_iter().map(|it| it.r#type());
    if let Some(ty) = runtimes.into_iter().find(|ty| Narrow::of(*ty).is_some()) {
        let message = format!("reads runtime variables from '{ty}'; extend it to a wider type");
        return Err(Report::op_error(op, message));
    }
    Ok(())
}

/// Changes the types of what an operation defines, and its attributes.
fn store_as_bytes<'c>(context: &'c melior::Context, op: Op<'c>) -> Result<(), Report<'c>> {
    let refuse = |message: String| Report::op_error(op, message);
    for value in defined(op) {
        let ty = value.r#type();
        let bytes = bytes(context, ty).map_err(refuse)?;
        if bytes != ty {
            mlir::set_type(value, bytes);
        }
    }
    let attributes: Vec<_> = op.attributes().collect();
    for (name, old) in attributes {
        let new = stored(context, old).map_err(refuse)?;
        if let (true, Ok(name)) = (new != old, name.as_string_ref().as_str()) {
            mlir::set_attribute(op, name, new);
        }
    }
    Ok(())
}

/// The type with bytes in place of elements of a narrow type.
///
/// # Errors
/// There is no such type.
fn bytes<'c>(context: &'c melior::Context, ty: Type<'c>) -> Result<Type<'c>, String> {
    if let Ok(function) = FunctionType::try_from(ty) {
        let inputs = (0..function.input_count()).filter_map(|it| function.input(it).ok());
        let results = (0..function.result_count()).filter_map(|it| function.result(it).ok());
        let inputs = inputs.map(|ty| bytes(context, ty)).collect::<Result<Vec<_>, _>>()?;
        let results = results.map(|ty| bytes(context, ty)).collect::<Result<Vec<_>, _>>()?;
        return Ok(FunctionType::new(context, &inputs, &results).into());
    }
    if Narrow::of(ty).is_none() {
        return Ok(ty);
    }
    let byte: Type = IntegerType::new(context, 8).into();
    if mlir::element_type(ty) == ty {
        return Ok(byte);
    }
    let dims: Vec<_> = mlir::shape(ty).into_iter().map(|it| it.unwrap_or(i64::MIN)).collect();
    if let Ok(memref) = MemRefType::try_from(ty) {
        return Ok(
            MemRefType::new(byte, &dims, Some(memref.layout()), memref.memory_space()).into()
        );
    }
    if mlir::is_tensor(ty) {
        return Ok(mlir::static_tensor_type(&dims, byte, mlir::encoding(ty)));
    }
    Err(format!(
        "uses '{ty}', whose elements cannot be stored as bytes; expected scalars, and tensors and memrefs \
         with a rank"
    ))
}

/// The attribute with types and numbers as they are stored.
fn stored<'c>(
    context: &'c melior::Context,
    attribute: Attribute<'c>,
) -> Result<Attribute<'c>, String> {
    if let Some(ty) = mlir::type_of(attribute) {
        return Ok(mlir::type_attr(bytes(context, ty)?));
    }
    if attribute.is_array() {
        let elements = mlir::array_of(attribute).into_iter().map(|it| stored(context, it));
        return Ok(mlir::array(context, &elements.collect::<Result<Vec<_>, _>>()?));
    }
    if let Ok(dictionary) = DictionaryAttribute::try_from(attribute) {
        let mut changed = attribute;
        for (name, old) in (0..dictionary.len()).filter_map(|it| dictionary.element(it).ok()) {
            let new = stored(context, old)?;
            if let (true, Ok(name)) = (new != old, name.as_string_ref().as_str()) {
                changed = mlir::extend_dictionary(context, changed, &[(name, new)]);
            }
        }
        return Ok(changed);
    }
    let is_elements = attribute.is_elements();
    if !is_elements && !mlir::is_number(attribute) && mlir::float_of(attribute).is_none() {
        return Ok(attribute);
    }
    let ty = attribute.r#type();
    let Some(narrow) = Narrow::of(ty) else { return Ok(attribute) };
    let ty = bytes(context, ty)?;
    if is_elements {
        // MLIR keeps such elements in bytes, too.
        let count = mlir::shape(ty).into_iter().try_fold(1, |count, it| Some(count * it? as usize));
        let elements = count.and_then(|count| mlir::dense_bytes(attribute, count, 1));
        let elements = elements.ok_or_else(|| format!("has unknown elements of '{ty}'"))?.0;
        let bits: Vec<_> = elements.into_iter().map(u64::from).collect();
        return Ok(mlir::dense(ty, mlir::element_type(ty), &bits));
    }
    let bits = match narrow {
        Narrow::Integer(_) => mlir::integer_of(attribute).unwrap_or_default(),
        Narrow::Float(element) => {
            element.encode_float(mlir::float_of(attribute).unwrap_or_default()) as i64
        }
    };
    Ok(mlir::integer(context, ty, bits))
}

/// Tells callers of which types the bytes are that a function takes or gives.
fn describe<'c>(function: Op<'c>, name: &str, types: &[Type<'c>]) -> Result<(), Report<'c>> {
    let context = mlir::context_of(function);
    let mut attributes = mlir::array_attr(function, name);
    attributes.resize(types.len(), mlir::dictionary(context, &[]));
    let mut changed = false;
    for (ty, attribute) in types.iter().zip(&mut attributes) {
        match Narrow::of(*ty) {
            Some(Narrow::Float(element)) => {
                let bits_of = ("tc.bits_of", mlir::string(context, element.name()));
                let added = [("tc.unsigned", Attribute::unit(context)), bits_of];
                *attribute = mlir::extend_dictionary(context, *attribute, &added);
                changed = true;
            }
            Some(Narrow::Integer(_)) if mlir::is_memref(*ty) => {
                let message =
                    format!("takes or returns '{ty}'; use a tensor, or elements of 8 bits");
                return Err(Report::op_error(function, message));
            }
            _ => {}
        }
    }
    if changed {
        mlir::set_attribute(function, name, mlir::array(context, &attributes));
    }
    Ok(())
}

/// Defines the bits of the bytes that a function returns for integers of these types.
fn extend_results<'c>(function: Op<'c>, types: &[Type<'c>]) {
    let attributes = mlir::array_attr(function, "res_attrs");
    let ends = mlir::blocks(function, 0).into_iter().map(mlir::terminator);
    for end in ends.filter(|it| mlir::is(*it, "func.return")) {
        for (number, ty) in types.iter().enumerate().filter(|(_, ty)| mlir::is_tensor(**ty)) {
            let Some(Narrow::Integer(width)) = Narrow::of(*ty) else { continue };
            let attribute = attributes.get(number);
            let unsigned = attribute.and_then(|it| mlir::dictionary_entry(*it, "tc.unsigned"));
            let name = if unsigned.is_some() { "arith.extui" } else { "arith.extsi" };
            let value = mlir::operand(end, number);
            mlir::set_operand(end, number, extended(&Builder::before(end), value, width, name));
        }
    }
}

/// A tensor of bytes of which the low bits count, extended by an operation.
fn extended<'c>(b: &Builder<'c>, tensor: Val<'c>, width: u32, name: &str) -> Val<'c> {
    let ir = Context::new();
    let (mut domain, mut sizes) = (IndexingMap::default(), Vec::new());
    for (dim, extent) in mlir::shape(tensor.r#type()).into_iter().enumerate() {
        let extent = extent.map(|it| ir.constant(it)).unwrap_or_else(|| {
            let least = Some(ir.constant(0));
            domain.runtimes.push(Variable { lower: least, ..Variable::default() });
            sizes.push(b.dim(tensor, dim));
            ir.runtime(sizes.len() as u32 - 1)
        });
        let last = ir.canonicalize(ir.sub(extent, ir.constant(1)));
        domain.dims.push(Variable::between(ir.constant(0), last));
    }
    let index = identity(&ir, domain.dims.len());
    let empty = b.value("tensor.empty", &sizes, tensor.r#type());
    let mut nest = GenericBuilder::within(&ir, domain, sizes);
    nest.read(tensor, index.clone());
    nest.write(empty, index, Combiner::ASSIGN);
    let generic = nest.build_generic(b, false);
    let (body, arguments) = b.inside(generic.body());
    let bits = body.value("arith.trunci", &[arguments[0]], body.int_type(width));
    imap::build_yield(&body, &[body.value(name, &[bits], body.int_type(8))]);
    mlir::result(generic.op(), 0)
}

/// Replaces an operation that computes with narrow types.
fn expand<'c>(computation: &Computation<'c>) -> Result<(), Report<'c>> {
    let Computation { op, operands, results } = computation;
    let (b, name) = (Builder::before(*op), mlir::name(*op));
    let float = Type::float32(b.context);
    if name == "arith.bitcast" {
        // Both types have the same width, so that both are stored as bytes.
        mlir::replace(*op, &mlir::operands(*op));
        return Ok(());
    }
    let refuse = |message: String| Report::op_error(*op, message);
    if let Some(ty) = operands.iter().chain(results).find(|ty| mlir::element_type(**ty) != **ty) {
        let message = format!("computes with '{ty}'; expected an operation on scalars");
        return Err(refuse(message));
    }
    let values =
        mlir::operands(*op).into_iter().zip(operands).map(|(value, ty)| match Narrow::of(*ty) {
            Some(Narrow::Integer(_)) => b.value("arith.trunci", &[value], *ty),
            Some(Narrow::Float(element)) => Format::of(element).decode(&b, value),
            None => value,
        });
    let values: Vec<_> = values.collect();
    let computed = results.iter().map(|ty| match Narrow::of(*ty) {
        Some(Narrow::Float(_)) => float,
        _ => *ty,
    });
    let computed: Vec<_> = computed.collect();
    let computed = match name {
        "arith.extf" | "arith.truncf" => {
            if values[0].r#type().is_f64() {
                let message = "rounds 'f64' to a narrow type; round it to 'f32' first".to_string();
                return Err(refuse(message));
            }
            vec![resize_float(&b, values[0], computed[0])]
        }
        _ => mlir::results(mlir::rebuild(*op, &values, &computed)),
    };
    let stored = computed.into_iter().zip(results).map(|(value, ty)| match Narrow::of(*ty) {
        Some(Narrow::Integer(_)) => b.value("arith.extui", &[value], b.int_type(8)),
        Some(Narrow::Float(element)) => Format::of(element).encode(&b, value),
        None => value,
    });
    mlir::replace(*op, &stored.collect::<Vec<_>>());
    Ok(())
}

/// Conversions of a small float.
struct Format {
    element: ElementType,
    mantissa: u32,
    bias: i32,
}

impl Format {
    fn of(element: ElementType) -> Self {
        let (mantissa, bias) = match element {
            ElementType::F4E2M1FN => (1, 1),
            ElementType::F8E3M4 => (4, 3),
            ElementType::F8E4M3 | ElementType::F8E4M3FN => (3, 7),
            ElementType::F8E4M3B11FNUZ => (3, 11),
            ElementType::F8E4M3FNUZ => (3, 8),
            ElementType::F8E5M2 => (2, 15),
            ElementType::F8E5M2FNUZ => (2, 16),
            // F8E8M0FNU: an exponent alone.
            _ => (0, 127),
        };
        Self { element, mantissa, bias }
    }

    fn code_of(&self, value: f64) -> i64 {
        self.element.encode_float(value) as i64
    }

    /// The code of the greatest finite number.
    fn greatest(&self) -> i64 {
        let is_finite = |code: &u64| self.element.decode_float(*code).is_finite();
        let sign_bit = self.element.sign_bit();
        let codes = (0..1 << self.element.bits()).filter(|code| code & sign_bit == 0);
        codes.filter(is_finite).max().unwrap_or(0) as i64
    }

    fn has_infinity(&self) -> bool {
        self.element.decode_float(self.element.encode_float(f64::INFINITY)).is_infinite()
    }

    /// The `f32` of bits.
    fn decode<'c>(&self, b: &Builder<'c>, stored: Val<'c>) -> Val<'c> {
        let (ty, i32_type) = (Type::float32(b.context), b.int_type(32));
        let integer = |value: i64| b.integer(i32_type, value);
        let binary = |name: &str, x, y| b.value(name, &[x, y], i32_type);
        let bits_of = |value: f32| integer(i64::from(value.to_bits() as i32));
        let code = b.value("arith.extui", &[stored], i32_type);
        let code = match self.element.bits() {
            8 => code,
            width => binary("arith.andi", code, integer((1 << width) - 1)),
        };
        let sign_bit = self.element.sign_bit() as i64;
        let magnitude = match sign_bit {
            0 => code,
            _ => binary("arith.andi", code, integer(sign_bit - 1)),
        };
        let shift = i64::from(23 - self.mantissa);
        let normal = binary("arith.shli", magnitude, integer(shift));
        let normal = binary("arith.addi", normal, integer(i64::from(127 - self.bias) << 23));
        // A multiple of the least number, without numbers that are subnormal in f32: they are slow.
        let least = match sign_bit {
            0 => bits_of(2f32.powi(-self.bias)),
            _ => {
                let steps = b.value("arith.sitofp", &[magnitude], ty);
                let least = b.float(ty, 2f64.powi(1 - self.bias - self.mantissa as i32));
                let product = b.value("arith.mulf", &[steps, least], ty);
                b.value("arith.bitcast", &[product], i32_type)
            }
        };
        let is_small = b.compare_int("slt", magnitude, integer(1 << self.mantissa));
        let mut bits = b.select(is_small, least, normal);
        let greatest = self.greatest();
        if self.has_infinity() {
            let is_infinite = b.compare_int("eq", magnitude, integer(greatest + 1));
            bits = b.select(is_infinite, bits_of(f32::INFINITY), bits);
        }
        let last = greatest + i64::from(self.has_infinity());
        let is_nan = match self.code_of(f64::NAN) {
            // In place of a negative zero.
            nan if self.code_of(-0.0) == 0 && nan == sign_bit => {
                Some(b.compare_int("eq", code, integer(nan)))
            }
            nan if last < nan => Some(b.compare_int("sgt", magnitude, integer(last))),
            _ => None,
        };
        if sign_bit != 0 {
            let sign = binary("arith.andi", code, integer(sign_bit));
            let sign = binary("arith.shli", sign, integer(i64::from(32 - self.element.bits())));
            bits = binary("arith.ori", bits, sign);
        }
        if let Some(is_nan) = is_nan {
            bits = b.select(is_nan, bits_of(f32::NAN), bits);
        }
        b.value("arith.bitcast", &[bits], ty)
    }

    /// The bits of an `f32`, rounded to nearest, ties to even.
    fn encode<'c>(&self, b: &Builder<'c>, value: Val<'c>) -> Val<'c> {
        let (ty, i32_type) = (Type::float32(b.context), b.int_type(32));
        let integer = |value: i64| b.integer(i32_type, value);
        let constant = |value: f64| b.float(ty, value);
        let magnitude = b.value("math.absf", &[value], ty);
        // Normal numbers: rounded on the bits of f32, where a carry runs into the exponent.
        let shift = i64::from(23 - self.mantissa);
        let bits = b.value("arith.bitcast", &[magnitude], i32_type);
        let half = 1 << (shift - 1);
        // Ties go to even codes; powers of two alone take the larger.
        let is_power = self.element == ElementType::F8E8M0FNU;
        let bias = if is_power {
            // The least power of two is below the normal numbers of f32.
            let is_normal = b.compare_int("sge", bits, integer(2 * half));
            b.select(is_normal, integer(half), integer(half / 2))
        } else {
            let high = b.value("arith.shrui", &[bits, integer(shift)], i32_type);
            let odd = b.value("arith.andi", &[high, integer(1)], i32_type);
            b.value("arith.addi", &[odd, integer(half - 1)], i32_type)
        };
        let rounded = b.value("arith.addi", &[bits, bias], i32_type);
        let rounded = b.value("arith.shrui", &[rounded, integer(shift)], i32_type);
        let rebias = i64::from(127 - self.bias) << self.mantissa;
        let normal = b.value("arith.subi", &[rounded, integer(rebias)], i32_type);
        let mut result = if is_power {
            normal
        } else {
            // Subnormal numbers: a multiple of the least one.
            let least = 2f64.powi(1 - self.bias - self.mantissa as i32);
            let steps = b.value("arith.mulf", &[magnitude, constant(1.0 / least)], ty);
            let steps = b.value("math.roundeven", &[steps], ty);
            let limit = 2f64.powi(1 - self.bias);
            let is_subnormal = b.compare_float("olt", magnitude, constant(limit));
            // A large number of steps has no i32; it is not used then.
            let steps = b.select(is_subnormal, steps, constant(0.0));
            let steps = b.value("arith.fptoui", &[steps], i32_type);
            b.select(is_subnormal, steps, normal)
        };
        // Beyond the greatest finite value by half a step or more.
        let sign_bit = self.element.sign_bit();
        let is_large = b.compare_int("sgt", result, integer(self.greatest()));
        result = b.select(is_large, integer(self.code_of(f64::INFINITY)), result);
        if sign_bit != 0 {
            let bits = b.value("arith.bitcast", &[value], i32_type);
            let mut is_negative = b.compare_int("slt", bits, integer(0));
            if self.code_of(-0.0) == 0 {
                let is_other = b.compare_int("ne", result, integer(0));
                is_negative = b.value("arith.andi", &[is_negative, is_other], b.int_type(1));
            }
            let negative = b.value("arith.ori", &[result, integer(sign_bit as i64)], i32_type);
            result = b.select(is_negative, negative, result);
        }
        // Without zero and negative numbers, only what is above zero has a code.
        let is_nan = if is_power {
            b.compare_float("ule", value, constant(0.0))
        } else {
            b.compare_float("uno", value, value)
        };
        result = b.select(is_nan, integer(self.code_of(f64::NAN)), result);
        b.value("arith.trunci", &[result], b.int_type(8))
    }
}
