//! `convert-launch-to-calls`: what a function does with the memory of a device becomes calls.
//!
//! All buffers of the function are in the memory of the device. It takes two more arguments: the constants of
//! the program, in one buffer of the device, and the table of the functions of the device.
//!
//! | operation | function of the device |
//! |---|---|
//! | `imap.launch` | `launch(context, kernel, blocks, threads of a block, bytes of shared memory, arguments, count)` |
//! | `memref.copy` | `copy(context, target, source, bytes)` |
//! | `memref.load` | `read(context, target, source, bytes)`, which waits for the device |
//! | `memref.store` | `write(context, target, source, bytes)`; the bytes are taken before it returns |
//! | `memref.get_global` | none: a place among the constants |
//!
//! Kernels are numbered in the order of their module. Each argument of a kernel is one word of 64 bits. The grid has
//! as many blocks as hold the threads with work, and at least one.
//!
//! A call of `read` that fails gives a status that is not 0. The call has the attribute `tc.device_status`, for
//! `check-device-reads`.

use crate::analysis::{
    buffers::{DEVICE_STATUS, IS_WORKSPACE, VIEWS, needs_loops},
    launches::{Kernel, LAUNCH, constants, kernels},
};
use melior::ir::{
    Attribute, BlockLike, Type, TypeLike, ValueLike,
    attribute::DenseI32ArrayAttribute,
    operation::OperationLike,
    r#type::{FunctionType, MemRefType},
};
use std::collections::HashMap;
use tc_dialects::{
    mlir::{self, Builder, Op, Val},
    pass::{Failure, PassInfo, PassRun},
    report::Report,
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "convert-launch-to-calls",
    summary: "Turn launches of kernels and accesses of memory of a device into calls",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["arith", "llvm", "memref"],
    run,
};

/// Operations of control flow, which pass buffers on.
const CONTROL: [&str; 7] =
    ["func.return", "scf.condition", "scf.for", "scf.if", "scf.while", "scf.yield", "arith.select"];
/// Operations that read what the host knows of a buffer.
const DESCRIPTIONS: [&str; 4] = [
    "memref.dim",
    "memref.rank",
    "memref.extract_strided_metadata",
    "memref.extract_aligned_pointer_as_index",
];
/// The places of the functions in the table, behind the context.
const NUM_FUNCTIONS: usize = 4;
const LAUNCH_PLACE: usize = 0;
const COPY_PLACE: usize = 1;
const READ_PLACE: usize = 2;
const WRITE_PLACE: usize = 3;

fn run(pass: &PassRun) -> Result<(), Failure> {
    let emit = |report: Report| {
        report.emit();
        Failure
    };
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    let places = constants(pass.op).map_err(emit)?.places;
    let kernels = kernels(pass.op);
    for function in mlir::ops(block) {
        let is_host = mlir::is(function, "func.func") && mlir::body(function, 0).is_some();
        if !is_host || function.has_attribute(IS_WORKSPACE) {
            continue;
        }
        pass.enter(function);
        Host::new(function, &places, &kernels).convert().map_err(emit)?;
    }
    for op in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "memref.global")) {
        mlir::erase(op);
    }
    Ok(())
}

/// A function in conversion.
struct Host<'c, 'a> {
    function: Op<'c>,
    places: &'a HashMap<String, i64>,
    kernels: &'a HashMap<String, Kernel>,
    constants: Val<'c>,
    /// The context of the device, and its functions.
    context: Val<'c>,
    functions: Vec<Val<'c>>,
    /// Words on the stack: the arguments of a kernel, or an element.
    words: Val<'c>,
}

impl<'c, 'a> Host<'c, 'a> {
    fn new(
        function: Op<'c>,
        places: &'a HashMap<String, i64>,
        kernels: &'a HashMap<String, Kernel>,
    ) -> Self {
        let entry = mlir::body(function, 0).expect("a function with a body");
        let location = function.location();
        let builder = Builder::before(mlir::first(entry).expect("a block has a terminator"));
        let builder = builder.located(location);
        let pointer = pointer_type(&builder);
        let bytes: Type = MemRefType::contiguous(builder.int_type(8), &[i64::MIN], None).into();
        let constants = mlir::val(entry.add_argument(bytes, location));
        let table = mlir::val(entry.add_argument(pointer, location));
        let (mut types, results) = mlir::function_type(function).unwrap_or_default();
        types.extend([bytes, pointer]);
        let ty: Type = FunctionType::new(builder.context, &types, &results).into();
        mlir::set_attribute(function, "function_type", mlir::type_attr(ty));
        let mut attributes = mlir::array_attr(function, "arg_attrs");
        if !attributes.is_empty() {
            attributes.resize(types.len(), mlir::dictionary(builder.context, &[]));
            mlir::set_attribute(function, "arg_attrs", mlir::array(builder.context, &attributes));
        }
        let mut loaded = (0..=NUM_FUNCTIONS).map(|place| {
            let place = element(&builder, table, pointer, place);
            builder.value("llvm.load", &[place], pointer)
        });
        let context = loaded.next().expect("the context comes first");
        let functions = loaded.collect();
        let mut num_words = 1;
        mlir::walk(function, &mut |op| {
            if mlir::is(op, LAUNCH) {
                num_words = num_words.max(op.operand_count() - 1);
            }
        });
        let word = builder.int_type(64);
        let count = builder.integer(word, num_words as i64);
        let ty = ("elem_type", mlir::type_attr(word));
        let words = builder.value_with("llvm.alloca", &[count], pointer, &[ty]);
        Self { function, places, kernels, constants, context, functions, words }
    }

    fn convert(&self) -> Result<(), Report<'c>> {
        let mut ops = Vec::new();
        mlir::walk(self.function, &mut |op| ops.push(op));
        for op in ops {
            match mlir::name(op) {
                LAUNCH => self.launch(op)?,
                "memref.copy" => self.copy(op)?,
                "memref.load" => self.read(op)?,
                "memref.store" => self.write(op)?,
                "memref.get_global" => self.global(op)?,
                "func.func" => {}
                name => {
                    let types = mlir::operands(op).into_iter().chain(mlir::results(op));
                    let mut types = types.map(|it| it.r#type());
                    let known = CONTROL.iter().chain(&DESCRIPTIONS).chain(&VIEWS);
                    if types.any(mlir::is_memref) && !known.into_iter().any(|it| *it == name) {
                        let message = "works on buffers in a way that has no kernel; for a device, state it with \
                                       operations of 'imap' or with loops over 'memref.load' and 'memref.store'";
                        return Err(Report::op_error(op, message));
                    }
                }
            }
        }
        Ok(())
    }

    /// Calls a function of the device. `types` are those of results.
    fn call(
        &self,
        builder: &Builder<'c>,
        place: usize,
        arguments: &[Val<'c>],
        types: &[Type<'c>],
    ) -> Op<'c> {
        let operands = [&[self.functions[place], self.context], arguments].concat();
        let segments = mlir::segments(builder.context, &[operands.len(), 0]);
        let attributes = [
            ("operandSegmentSizes", segments),
            ("op_bundle_sizes", mlir::segments(builder.context, &[])),
        ];
        builder.op_with("llvm.call", &operands, types, &attributes, Vec::new())
    }

    fn launch(&self, op: Op<'c>) -> Result<(), Report<'c>> {
        let builder = Builder::before(op);
        let symbol = op.attribute("kernel").map(|it| it.to_string()).unwrap_or_default();
        let Some((number, threads)) = self.kernels.get(&symbol).copied() else {
            return Err(Report::op_error(
                op,
                format!("starts {symbol}, which is no kernel of this module"),
            ));
        };
        let word = builder.int_type(64);
        for (number, value) in mlir::operands(op).into_iter().skip(1).enumerate() {
            let value = match mlir::is_memref(value.r#type()) {
                true => address_of_base(&builder, value),
                false => to_word(&builder, value),
            };
            let place = element(&builder, self.words, word, number);
            builder.op("llvm.store", &[value, place], &[]);
        }
        let index = builder.index_type();
        let wanted = mlir::operand(op, 0);
        let blocks = builder.value("arith.ceildivsi", &[wanted, builder.index(threads)], index);
        let blocks = builder.value("arith.maxsi", &[blocks, builder.index(1)], index);
        let blocks =
            builder.value("arith.minsi", &[blocks, builder.index(i64::from(i32::MAX))], index);
        let i32_type = builder.int_type(32);
        let blocks = builder.value("arith.index_cast", &[blocks], i32_type);
        let constant = |value: i64| builder.integer(i32_type, value);
        let count = constant(op.operand_count() as i64 - 1);
        let arguments =
            [constant(number), blocks, constant(threads), constant(0), self.words, count];
        self.call(&builder, LAUNCH_PLACE, &arguments, &[]);
        mlir::erase(op);
        Ok(())
    }

    fn copy(&self, op: Op<'c>) -> Result<(), Report<'c>> {
        let builder = Builder::before(op);
        let (source, target) = (mlir::operand(op, 0), mlir::operand(op, 1));
        let ty = source.r#type();
        if needs_loops(op) {
            return Err(Report::op_error(
                op,
                "copies buffers that are not contiguous; outline it as a kernel",
            ));
        }
        let width = i64::from(mlir::byte_width(mlir::element_type(ty)));
        let mut bytes = builder.index(width);
        for dim in 0..mlir::shape(ty).len() {
            let operands = [bytes, builder.dim(source, dim)];
            bytes = builder.value("arith.muli", &operands, builder.index_type());
        }
        let bytes = to_word(&builder, bytes);
        let [source, target] = [source, target].map(|it| address(&builder, it, &[]));
        self.call(&builder, COPY_PLACE, &[target, source, bytes], &[]);
        mlir::erase(op);
        Ok(())
    }

    fn read(&self, op: Op<'c>) -> Result<(), Report<'c>> {
        let builder = Builder::before(op);
        let operands = mlir::operands(op);
        let ty = mlir::result(op, 0).r#type();
        let stored = stored_type(&builder, op, ty)?;
        let source = address(&builder, operands[0], &operands[1..]);
        let word = builder.int_type(64);
        let bytes = builder.integer(word, i64::from(mlir::byte_width(ty)));
        let i32_type = builder.int_type(32);
        let call = self.call(&builder, READ_PLACE, &[self.words, source, bytes], &[i32_type]);
        mlir::set_attribute(call, DEVICE_STATUS, Attribute::unit(builder.context));
        let value = builder.value("llvm.load", &[self.words], stored);
        let value = match stored == ty {
            true => value,
            false if ty.is_index() => builder.value("arith.index_cast", &[value], ty),
            false => builder.value("arith.trunci", &[value], ty),
        };
        mlir::replace(op, &[value]);
        Ok(())
    }

    fn write(&self, op: Op<'c>) -> Result<(), Report<'c>> {
        let builder = Builder::before(op);
        let operands = mlir::operands(op);
        let ty = operands[0].r#type();
        stored_type(&builder, op, ty)?;
        let target = address(&builder, operands[1], &operands[2..]);
        builder.op("llvm.store", &[to_word(&builder, operands[0]), self.words], &[]);
        let bytes = builder.integer(builder.int_type(64), i64::from(mlir::byte_width(ty)));
        self.call(&builder, WRITE_PLACE, &[target, self.words, bytes], &[]);
        mlir::erase(op);
        Ok(())
    }

    fn global(&self, op: Op<'c>) -> Result<(), Report<'c>> {
        let builder = Builder::before(op);
        let name = op.attribute("name").ok().and_then(mlir::symbol_of).unwrap_or_default();
        let Some(place) = self.places.get(name) else {
            return Err(Report::op_error(
                op,
                format!("names '{name}', which is no constant of this module"),
            ));
        };
        let ty = mlir::result(op, 0).r#type();
        let view = builder.value("memref.view", &[self.constants, builder.index(*place)], ty);
        mlir::replace(op, &[view]);
        Ok(())
    }
}

fn pointer_type<'c>(builder: &Builder<'c>) -> Type<'c> {
    mlir::parse_type(builder.context, "!llvm.ptr")
}

/// The address of an element of an array.
fn element<'c>(builder: &Builder<'c>, array: Val<'c>, ty: Type<'c>, number: usize) -> Val<'c> {
    let indices = DenseI32ArrayAttribute::new(builder.context, &[number as i32]).into();
    let attributes = [("elem_type", mlir::type_attr(ty)), ("rawConstantIndices", indices)];
    builder.value_with("llvm.getelementptr", &[array], pointer_type(builder), &attributes)
}

/// A scalar in the low bits of a word.
fn to_word<'c>(builder: &Builder<'c>, value: Val<'c>) -> Val<'c> {
    let (ty, word) = (value.r#type(), builder.int_type(64));
    if ty.is_index() {
        return builder.value("arith.index_cast", &[value], word);
    }
    let bits = mlir::integer_width(ty).unwrap_or_else(|| 8 * mlir::byte_width(ty));
    let integer = builder.int_type(bits);
    let value = match mlir::is_float(ty) {
        true => builder.value("arith.bitcast", &[value], integer),
        false => value,
    };
    if bits == 64 { value } else { builder.value("arith.extui", &[value], word) }
}

/// The type in memory of the elements that an operation accesses.
fn stored_type<'c>(
    builder: &Builder<'c>,
    op: Op<'c>,
    ty: Type<'c>,
) -> Result<Type<'c>, Report<'c>> {
    match mlir::integer_width(ty) {
        _ if ty.is_index() => Ok(builder.int_type(64)),
        Some(1) => Ok(builder.int_type(8)),
        Some(8 | 16 | 32 | 64) => Ok(ty),
        None if mlir::is_float(ty) && matches!(mlir::byte_width(ty), 2 | 4 | 8) => Ok(ty),
        _ => Err(Report::op_error(
            op,
            format!("has elements of type '{ty}', which the host cannot access"),
        )),
    }
}

/// The address that the offset of a buffer counts from, as a word.
fn address_of_base<'c>(builder: &Builder<'c>, buffer: Val<'c>) -> Val<'c> {
    let name = "memref.extract_aligned_pointer_as_index";
    let pointer = builder.value(name, &[buffer], builder.index_type());
    to_word(builder, pointer)
}

/// The address of an element of a buffer, by default its first, as a word.
fn address<'c>(builder: &Builder<'c>, buffer: Val<'c>, indices: &[Val<'c>]) -> Val<'c> {
    let ty = buffer.r#type();
    let element = mlir::element_type(ty);
    let rank = mlir::shape(ty).len();
    let index = builder.index_type();
    let base = MemRefType::contiguous(element, &[], None).into();
    let types = [vec![base], vec![index; 1 + 2 * rank]].concat();
    let parts = builder.op("memref.extract_strided_metadata", &[buffer], &types);
    let mut place = mlir::result(parts, 1);
    for (dim, number) in indices.iter().enumerate() {
        let stride = mlir::result(parts, 2 + rank + dim);
        let step = builder.value("arith.muli", &[*number, stride], index);
        place = builder.value("arith.addi", &[place, step], index);
    }
    let bytes = builder.index(i64::from(mlir::byte_width(element)));
    let bytes = builder.value("arith.muli", &[place, bytes], index);
    let start = address_of_base(builder, buffer);
    builder.value("arith.addi", &[start, to_word(builder, bytes)], builder.int_type(64))
}
