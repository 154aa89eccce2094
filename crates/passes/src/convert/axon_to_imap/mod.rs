//! `convert-axon-to-imap`: convert an Axon definition to a function with symbolic sizes.
//!
//! The ranks of all parameters must be known. Sizes that are not given are read from the dimensions of
//! arguments (`tc.sizes`), and all other sizes are expressions of these. So one function serves all
//! sizes. Functions of the program are evaluated at each call, as for HLO. The result consists of
//! `imap.generic` operations with the sizes among their runtime variables:
//!
//! | functions | lowering |
//! |---|---|
//! | element-wise functions, data movement, `iota` | `imap.generic` with the maps of the operands |
//! | `matmul`, `conv`, sums, products and extrema | `imap.generic` with range variables |
//! | other reductions | `scf` loops over the elements |
//! | `map`, `loop` | an `scf` loop that carries the state and the results of the calls |
//!
//! Values without dimensions and tensors of equal elements are scalars until they are needed in memory.
//!
//! At entry, the function checks (`imap.check`, with the source location that requires it): sizes are
//! positive, a size that several dimensions share is equal in all of them, and the remaining conditions
//! of inference hold. The code after the checks relies on them. Sizes of results are formulas
//! (`tc.extents`); the function checks the destination arguments against them (`tc.check_extents`).
//!
//! Before, a program with
//!
//! ```text
//! join = fn(x : f32 [m], y : f32 [n]) : f32 [8] { concat(x, y) };
//! ```
//!
//! After, with types and maps shortened:
//!
//! ```mlir
//! func.func @join(%x: tensor<?xf32> {tc.name = "x", tc.sizes = ["m"]}, %y: tensor<?xf32> ..) -> tensor<8xf32> {
//!   %m = tensor.dim %x, %c0
//!   %n = tensor.dim %y, %c0
//!   %sum = imap.apply <(){m, n} -> (m + n)>(%m, %n)
//!   %holds = arith.cmpi eq, %sum, %c8
//!   imap.check %holds, "join.axon:1:49: result of the function needs (+ m n) = 8"
//!   %init = tensor.empty(%sum) : tensor<?xf32>
//!   %first = imap.generic (d0){m} .. runtime(%m ..) ins(%x[d0] ..) outs(%init[d0] ..) {..}
//!   %both = imap.generic (d0){m, n} .. runtime(%m, %n ..) ins(%y[d0] ..) outs(%first[d0 + m] ..) {..}
//!   %result = tensor.cast %both : tensor<?xf32> to tensor<8xf32>
//!   return %result
//! }
//! ```
//!
//! Limits: as in `tc_dialects::axon::evaluate`, with at most 16384 calls. A condition is rejected if its
//! divisor may be zero or if it divides numbers of more than 64 bits.

mod checks;
mod evaluator;
mod lowering;

use super::axon_program;
use crate::convert::elements::describe_arrays;
use lowering::{Lowering, Tensor, tensor_type};
use melior::{
    Context,
    ir::{Attribute, Location, Module as MlirModule, Type, ValueLike, r#type::FunctionType},
};
use std::collections::HashSet;
use tc_dialects::{
    axon::{
        ElementType, Inferred,
        evaluate::{Made, evaluate, refuse},
        parametric::{Parametric, SizeVariable},
        syntax::ast::Program,
        to_hlo::hlo_element,
    },
    hlo::Shape,
    imap,
    mlir::{self, Builder},
    pass::{Failure, PassInfo, PassRun},
    report::placed,
    text::{Diagnostic, Span},
};
use tc_ir::Expr;

/// The dialects of what is built.
const DIALECTS: [&str; 6] = ["arith", "func", "imap", "math", "scf", "tensor"];

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "convert-axon-to-imap",
    summary: "Convert an Axon definition to a function with symbolic sizes",
    anchor: "builtin.module",
    options: axon_program::OPTIONS,
    dependent_dialects: &DIALECTS,
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    axon_program::convert_program(pass, |read, entry, given, program| {
        let ir = tc_ir::Context::new();
        read.parametric(entry, given, &ir, &mut |inferred, tree, parametric, name, location| {
            build(&Builder::before(program), inferred, tree, (&ir, parametric), name, location)
        })
    })
}

/// Builds a module of the function that an entry is; `name` is what it is called, and `location` says
/// where a place in the program is.
///
/// # Errors
/// What cannot be executed, or not with sizes that are parameters.
pub fn convert<'c>(
    context: &'c Context,
    inferred: &mut Inferred,
    program: &Program,
    entry: (&tc_ir::Context, &Parametric),
    name: &str,
    location: &dyn Fn(Span) -> Location<'c>,
) -> Result<MlirModule<'c>, Diagnostic> {
    for dialect in DIALECTS {
        context.get_or_load_dialect(dialect);
    }
    let at = location(entry.1.instance.span());
    let module = MlirModule::new(at);
    let outside = Builder::at_end(context, mlir::block_ref(module.body()), at);
    build(&outside, inferred, program, entry, name, location)?;
    Ok(module)
}

/// Builds the function of an entry.
fn build<'c>(
    outside: &Builder<'c>,
    inferred: &mut Inferred,
    program: &Program,
    (ir, entry): (&tc_ir::Context, &Parametric),
    name: &str,
    location: &dyn Fn(Span) -> Location<'c>,
) -> Result<(), Diagnostic> {
    let context = outside.context;
    let types: Vec<_> =
        entry.instance.parameters.iter().map(|(_, ty)| tensor_type(outside, ir, ty)).collect();
    let at = location(entry.instance.span());
    let (region, block) = mlir::region_with_block(&types, at);
    let names = entry.instance.parameters.iter().map(|(name, _)| name.as_str());
    mlir::name_arguments(context, block, names);
    let b = Builder::at_end(context, block, at);
    let arguments = mlir::arguments(block);
    let size =
        |size: &SizeVariable| (size.name.clone(), b.dim(arguments[size.parameter], size.dim));
    let sizes = entry.sizes.iter().map(size).collect();
    // Checks stand before it; nothing uses it.
    let end_of_checks = mlir::defining_op(b.index(0)).expect("a constant");
    let bounded = HashSet::new();
    let mut lowering = Lowering { ir, entry, location, sizes, b, end_of_checks, bounded };
    for (_, ty) in &entry.instance.parameters {
        // It is in memory.
        lowering.bounded.insert(lowering.bytes(ty));
    }
    for check in &entry.checks {
        let b = lowering.before_checks(check.span);
        let holds = lowering.holds(&b, &arguments, check.requirement).map_err(|reason| {
            let message = format!("{}, which {reason} where sizes are parameters", check.text);
            refuse(check.span, message).note(check.span, HINT)
        })?;
        imap::build_check(&b, holds, &placed(b.location, &check.text));
    }
    let parameters = entry.instance.parameters.iter().zip(&arguments);
    let parameters = parameters.map(|((_, ty), value)| Tensor::stored(*value, ty.clone()));
    let parameters = parameters.collect();
    let (mut lowering, mut results) =
        evaluate(inferred, program, &entry.instance, lowering, parameters)?;
    for (result, dims) in results.iter_mut().zip(&entry.results) {
        lowering.resize(result, dims.as_deref());
    }
    let values = results.iter().map(|result| lowering.in_memory(result)).collect::<Made<Vec<_>>>();
    let values = values.map_err(|error| refuse(entry.instance.span(), error))?;
    lowering.b.op("func.return", &values, &[]);

    let result_types: Vec<_> = values.iter().map(|value| value.r#type()).collect();
    let ty: Type = FunctionType::new(context, &types, &result_types).into();
    let described = |element: ElementType, name: String, extra: &[(&str, Attribute<'c>)]| {
        let shape = Shape::array(hlo_element(element), []);
        let described = describe_arrays(context, &shape, &|_| name.clone());
        mlir::extend_dictionary(context, described[0], extra)
    };
    let mut argument_attributes = Vec::new();
    for (number, (name, ty)) in entry.instance.parameters.iter().enumerate() {
        let mut names = vec![String::new(); ty.dims.len()];
        for size in entry.sizes.iter().filter(|size| size.parameter == number) {
            names[size.dim].clone_from(&size.name);
        }
        for (name, expr) in names.iter_mut().zip(&ty.dims) {
            let same = entry.sizes.iter().zip(0..).find(|it| ir.runtime(it.1) == *expr);
            if let Some((size, _)) = same {
                name.clone_from(&size.name);
            }
        }
        let mut extra = vec![("tc.sizes", mlir::strings(context, &names))];
        let is_formula =
            |(name, expr): (&String, &Expr)| name.is_empty() && ir.as_constant(*expr).is_none();
        if names.iter().zip(&ty.dims).any(is_formula) {
            extra.push(("tc.extents", lowering.formulas(&ty.dims)));
        }
        argument_attributes.push(described(ty.element, name.clone(), &extra));
    }
    let mut result_attributes = Vec::new();
    for (number, result) in results.iter().enumerate() {
        let is_open = result.ty.dims.iter().any(|size| ir.as_constant(*size).is_none());
        let extents = is_open.then(|| ("tc.extents", lowering.formulas(&result.ty.dims)));
        let extra: Vec<_> = extents.into_iter().collect();
        result_attributes.push(described(result.ty.element, format!("out{number}"), &extra));
    }
    outside.located(at).op_with(
        "func.func",
        &[],
        &[],
        &[
            ("sym_name", mlir::string(context, name)),
            ("function_type", mlir::type_attr(ty)),
            ("arg_attrs", mlir::array(context, &argument_attributes)),
            ("res_attrs", mlir::array(context, &result_attributes)),
            ("tc.check_extents", Attribute::unit(context)),
        ],
        vec![region],
    );
    Ok(())
}

/// What to do about what needs sizes that are known.
const HINT: &str = "try '--shape NAME=4x3' of tc-compile with all sizes of the parameters";
