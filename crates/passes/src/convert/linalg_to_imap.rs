//! `convert-linalg-to-imap`: convert structured operations of `linalg` to `imap.generic`.
//!
//! This pass converts `linalg.generic` and all operations with a name that have indexing maps, on
//! tensors. Parallel loops become dimension variables, and reductions range variables. Dynamic extents
//! become runtime variables, the `tensor.dim` of an operand. `linalg.index` becomes `imap.index`.
//!
//! An operation with reductions becomes a fold. It starts from the destination, or from the identity if
//! a `linalg.fill` stores this in the destination. The body must be one addition, multiplication,
//! minimum, maximum, `andi` or `ori` of the element of the destination and a value.
//!
//! Before:
//!
//! ```mlir
//! %zero = arith.constant 0.0 : f32
//! %empty = tensor.empty() : tensor<4x2xf32>
//! %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x2xf32>) -> tensor<4x2xf32>
//! %C = linalg.matmul ins(%A, %B : tensor<4x3xf32>, tensor<3x2xf32>) outs(%init : tensor<4x2xf32>)
//!     -> tensor<4x2xf32>
//! ```
//!
//! After:
//!
//! ```mlir
//! %empty = tensor.empty() : tensor<4x2xf32>
//! %C = imap.generic (d0, d1)[s0] domain: d0 in [0, 3], d1 in [0, 1], s0 in [0, 2]
//!     ins(%A[d0, s0], %B[s0, d1] : tensor<4x3xf32>, tensor<3x2xf32>) outs(%empty[d0, d1] : tensor<4x2xf32>) fold [add f32] {
//! ^bb0(%a: f32, %b: f32):
//!   %p = arith.mulf %a, %b : f32
//!   imap.yield %p : f32
//! } -> tensor<4x2xf32>
//! ```
//!
//! Remarks: `linalg` for each operation that stays, with the reason. MLIR's own lowering compiles these.
//! Results do not change, except that folds of floating-point numbers may be reassociated later.

use crate::analysis::linalg::{Structured, operations, remark_kept};
use crate::convert::generic_builder::GenericBuilder;
use melior::ir::{ValueLike, operation::OperationLike};
use tc_dialects::{
    imap::{self, Combiner, CombinerKind, Indexed},
    mlir::{self, Builder, Op, Val, ValueMap},
    pass::{Failure, PassInfo, PassRun},
};
use tc_ir::{Context, Expr, IndexingMap, Var, map::Variable};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "convert-linalg-to-imap",
    summary: "Convert structured linalg operations on tensors to imap.generic",
    anchor: "func.func",
    options: &[],
    dependent_dialects: &["arith", "imap", "tensor"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let ir = Context::new();
    // Readers first: they see which operation fills their destination.
    for op in operations(pass.op).into_iter().rev() {
        pass.enter(op);
        match Structured::of(&ir, op) {
            Ok(_) if is_unused(op) => mlir::erase(op),
            Ok(structured) => convert(&ir, op, structured),
            Err(it) => remark_kept(op, PASS.argument, &it.reason, it.advice),
        }
    }
    Ok(())
}

fn is_unused(op: Op) -> bool {
    mlir::results(op).into_iter().all(|result| mlir::uses(result).is_empty())
}

fn convert<'c>(ir: &Context, op: Op<'c>, structured: Structured<'c>) {
    let Structured { loops, inputs, mut inits, subscripts, folds, body } = structured;
    let b = Builder::before(op);
    let mut domain = IndexingMap::default();
    let mut runtimes = Vec::new();
    for it in &loops {
        let (operand, dim) = it.extent;
        let extent = match mlir::shape(operand.r#type())[dim] {
            Some(extent) => ir.constant(extent),
            None => {
                domain
                    .runtimes
                    .push(Variable { lower: Some(ir.constant(0)), ..Variable::default() });
                runtimes.push(b.dim(operand, dim));
                ir.runtime(runtimes.len() as u32 - 1)
            }
        };
        let last = ir.canonicalize(ir.sub(extent, ir.constant(1)));
        let variables = match it.var {
            Var::Dim(_) => &mut domain.dims,
            _ => &mut domain.ranges,
        };
        variables.push(Variable::between(ir.constant(0), last));
    }

    let mut nest = GenericBuilder::within(ir, domain, runtimes);
    let mut combiners = vec![Combiner::ASSIGN; inits.len()];
    for ((init, fold), combiner) in inits.iter_mut().zip(&folds).zip(&mut combiners) {
        let filled = filled_with_identity(*init, fold.kind);
        *combiner = Combiner { kind: fold.kind, from_identity: filled.is_some() };
        *init = filled.unwrap_or(*init);
    }
    let arguments = mlir::arguments(body);
    let stored = &subscripts[inputs.len()..];
    for ((init, index), argument) in inits.iter_mut().zip(stored).zip(&arguments[inputs.len()..]) {
        let is_read = !folds.is_empty() || !mlir::uses(*argument).is_empty();
        if !is_read && is_computed(*init) && stores_all(ir, *init, index) {
            *init = b.empty_like(*init, mlir::element_type(init.r#type()));
        }
    }
    for ((init, index), combiner) in inits.iter().zip(stored).zip(combiners) {
        nest.write(*init, index.clone(), combiner);
    }
    // Without reductions, the destination is one more input if the body uses its elements.
    let sources = inputs.iter().chain(inits.iter().filter(|_| folds.is_empty()));
    let mut values = ValueMap::default();
    let mut read = Vec::new();
    for ((source, index), argument) in sources.zip(&subscripts).zip(arguments) {
        if !mlir::is_tensor(source.r#type()) {
            values.insert(argument, *source);
        } else if !mlir::uses(argument).is_empty() {
            nest.read(*source, index.clone());
            read.push(argument);
        }
    }

    let generic = nest.build_generic(&b, false);
    for (old, new) in read.into_iter().zip(mlir::arguments(generic.body())) {
        values.insert(old, new);
    }
    let inside = Builder::at_end(b.context, generic.body(), b.location);
    let yielded = match folds.is_empty() {
        true => mlir::operands(mlir::terminator(body)),
        false => folds.iter().map(|it| it.value).collect(),
    };
    for inner in mlir::ops(body) {
        if mlir::is(inner, "linalg.index") {
            let number = mlir::integer_attr(inner, "dim").unwrap_or(0);
            let index = match loops[number as usize].var {
                Var::Dim(number) => imap::build_index(&inside, "dim", number),
                Var::Range(number) | Var::Runtime(number) => {
                    imap::build_index(&inside, "range", number)
                }
            };
            values.insert(mlir::result(inner, 0), index);
        } else if !mlir::is(inner, "linalg.yield") && folds.iter().all(|it| it.combine != inner) {
            inside.copy(inner, &mut values);
        }
    }
    let yielded: Vec<_> =
        yielded.into_iter().map(|value| values.get(value).unwrap_or(value)).collect();
    imap::build_yield(&inside, &yielded);
    mlir::replace(op, &mlir::results(generic.op()));
}

/// Whether another structured operation computes a tensor. As a destination that is only overwritten, it
/// would keep that operation from being fused.
fn is_computed(tensor: Val) -> bool {
    mlir::defining_op(tensor).is_some_and(|op| mlir::name(op).starts_with("linalg."))
}

/// Whether subscripts, each a variable or a constant, reach all elements of a destination.
fn stores_all(ir: &Context, init: Val, index: &[Expr]) -> bool {
    let mut dims = index.iter().zip(mlir::shape(init.r#type()));
    dims.all(|(expr, extent)| ir.as_constant(*expr).is_none() || extent == Some(1))
}

/// The tensor that a `linalg.fill` overwrites with the identity of a combiner to give `init`.
fn filled_with_identity(init: Val<'_>, kind: CombinerKind) -> Option<Val<'_>> {
    let fill = mlir::defining_op(init).filter(|it| mlir::is(*it, "linalg.fill"))?;
    let value = mlir::defining_op(mlir::operand(fill, 0))?.attribute("value").ok()?;
    let identity = kind.identity(mlir::context_of(fill), mlir::element_type(init.r#type()));
    (identity == value).then(|| mlir::operand(fill, 1))
}
