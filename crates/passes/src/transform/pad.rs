//! `tml-pad`: round every dimension up to a multiple of the vector length.
//!
//! This pass only changes types. Operations on padded tensors compute the elements of the operations
//! without padding, and zeros elsewhere (theorems 2 and 3 of the report). The attribute `tml.extents`
//! keeps the extents without padding. The ambient application passes tensors with zero padding and
//! receives such tensors. A variable that is only a result becomes an argument too, for the zeros in its
//! padding.
//!
//! With `vector-length=4`, before:
//!
//! ```mlir
//! tml.program @f(%A: tensor<3x5xf64> {tml.name = "A"}) -> (tensor<5x3xf64> {tml.name = "B"}) {
//!   %t = tml.transpose %A [0, 1] : tensor<3x5xf64> -> tensor<5x3xf64>
//!   %B = tml.assign "B" %t : tensor<5x3xf64>
//!   tml.return %B : tensor<5x3xf64>
//! }
//! ```
//!
//! After:
//!
//! ```mlir
//! tml.program @f(%A: tensor<4x8xf64> {tml.extents = array<i64: 3, 5>, tml.name = "A"},
//!                %B0: tensor<8x4xf64> {tml.extents = array<i64: 5, 3>, tml.inout, tml.name = "B"})
//!     -> (tensor<8x4xf64> {tml.extents = array<i64: 5, 3>, tml.name = "B"})
//!     attributes {vector_length = 4 : i64} {
//!   %t = tml.transpose %A [0, 1] : tensor<4x8xf64> -> tensor<8x4xf64>
//!   %B = tml.assign "B" %t : tensor<8x4xf64>
//!   tml.return %B : tensor<8x4xf64>
//! }
//! ```
//!
//! Option: `vector-length`, at least 1. `tc-run` and `tc-compile` choose the length of the target, or a
//! shorter one if padding takes too much memory. Remark: `padded`, with the number of elements of all
//! arguments and results, before and after.

use melior::ir::{Attribute, Type, ValueLike, operation::OperationLike, r#type::FunctionType};
use std::collections::HashSet;
use tc_dialects::{
    mlir::{self, Builder, Op, Val, ValueMap},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::{RemarkKind, Report, remark},
    tml::{EXTENTS, INOUT, NAME, Program, extents, syntax::checked::round_up},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "tml-pad",
    summary: "Round every dimension up to a multiple of the vector length",
    anchor: "builtin.module",
    options: &[PassOption {
        name: "vector-length",
        description: "Extents become multiples of this number",
        default: "8",
    }],
    dependent_dialects: &[],
    run,
};

/// The largest vector length: extents stay far below the limits of types.
const MAX_VECTOR_LENGTH: i64 = 1 << 16;

fn run(pass: &PassRun) -> Result<(), Failure> {
    let expected = format!("a number from 1 to {MAX_VECTOR_LENGTH}");
    let vector_length = pass.number_in("vector-length", 1..=MAX_VECTOR_LENGTH, &expected)?;
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    for program in mlir::ops(block).into_iter().filter_map(Program::cast) {
        pass.enter(program.op());
        if program.vector_length().is_some() {
            Report::op_error(program.op(), "is padded already").emit();
            return Err(Failure);
        }
        pad(program, vector_length);
    }
    Ok(())
}

fn padded<'c>(ty: Type<'c>, vector_length: i64) -> Type<'c> {
    let round = |extent: &Option<i64>| extent.map(|extent| round_up(extent, vector_length));
    let shape: Vec<_> = mlir::shape(ty).iter().map(round).collect();
    mlir::tensor_type(&shape, mlir::element_type(ty))
}

fn types<'c>(list: &[(&str, Val<'c>)], vector_length: i64) -> Vec<Type<'c>> {
    list.iter().map(|(_, value)| padded(value.r#type(), vector_length)).collect()
}

fn pad(program: Program, vector_length: i64) {
    let op = program.op();
    let context = mlir::context_of(op);
    let (parameters, outputs) = (program.parameters(), program.outputs());
    // The arguments, then results that are no arguments: names, types without padding.
    let mut passed: Vec<_> = parameters.iter().map(|it| it.name).zip(program.arguments()).collect();
    let results: Vec<_> = outputs.iter().map(|it| it.name).zip(program.results()).collect();
    let known: HashSet<_> = parameters.iter().map(|it| it.name).collect();
    let is_new = |(name, _): &&(&str, Val)| !known.contains(name);
    passed.extend(results.iter().filter(is_new));
    let (inputs, returned) = (types(&passed, vector_length), types(&results, vector_length));
    let (region, block) = mlir::region_with_block(&inputs, op.location());
    let mut values = ValueMap::default();
    for (old, new) in program.arguments().into_iter().zip(mlir::arguments(block)) {
        values.insert(old, new);
    }
    let builder = Builder::at_end(context, block, op.location());
    for op in mlir::ops(program.body()) {
        copy(&builder.located(op.location()), op, vector_length, &mut values);
    }

    let attributes = |list: &[(&str, Val)], is_argument: bool| {
        let attribute = |(name, value): &(&str, Val)| {
            let mut entries = vec![
                (EXTENTS, mlir::i64_array(context, &extents(*value))),
                (NAME, mlir::string(context, name)),
            ];
            if is_argument && results.iter().any(|(result, _)| result == name) {
                entries.push((INOUT, Attribute::unit(context)));
            }
            mlir::dictionary(context, &entries)
        };
        mlir::array(context, &list.iter().map(attribute).collect::<Vec<_>>())
    };
    let count = |list: &[i64]| list.iter().map(|extent| *extent as f64).product::<f64>();
    let before: f64 = passed.iter().map(|(_, value)| count(&extents(*value))).sum();
    let shape = |ty: &Type| mlir::shape(*ty).into_iter().flatten().collect::<Vec<_>>();
    let after: f64 = inputs.iter().map(|ty| count(&shape(ty))).sum();
    let ty: Type = FunctionType::new(context, &inputs, &returned).into();
    Builder::before(op).op_with(
        Program::NAME,
        &[],
        &[],
        &[
            ("sym_name", mlir::string(context, program.name())),
            ("function_type", mlir::type_attr(ty)),
            ("arg_attrs", attributes(&passed, true)),
            ("res_attrs", attributes(&results, false)),
            ("vector_length", mlir::i64_attr(context, vector_length)),
        ],
        vec![region],
    );
    let (before, after) = (before.to_string(), after.to_string());
    let arguments = [("ElementsBefore", before.as_str()), ("ElementsAfter", after.as_str())];
    let kind = RemarkKind::Passed;
    remark(op.location(), kind, PASS.argument, "padded", program.name(), &arguments);
    mlir::erase(op);
}

/// The same operation on padded tensors.
fn copy<'c>(builder: &Builder<'c>, op: Op<'c>, vector_length: i64, values: &mut ValueMap<'c>) {
    let operands: Vec<_> =
        mlir::operands(op).into_iter().map(|it| values.get(it).unwrap_or(it)).collect();
    let types: Vec<_> =
        mlir::results(op).iter().map(|it| padded(it.r#type(), vector_length)).collect();
    let mut attributes: Vec<_> = ["name", "dims"]
        .into_iter()
        .filter_map(|name| Some((name, op.attribute(name).ok()?)))
        .collect();
    if mlir::is(op, "tml.undef") {
        let logical = extents(mlir::result(op, 0));
        attributes.push(("extents", mlir::i64_array(builder.context, &logical)));
    }
    let copy = builder.op_with(mlir::name(op), &operands, &types, &attributes, Vec::new());
    for (old, new) in mlir::results(op).into_iter().zip(mlir::results(copy)) {
        values.insert(old, new);
    }
}
