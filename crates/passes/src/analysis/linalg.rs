//! Structured operations of the `linalg` dialect as nests of loops with indexing maps, and why some
//! operations are none.

use melior::ir::{Type, TypeLike, ValueLike, operation::OperationLike};
use tc_dialects::{
    imap::CombinerKind,
    mlir::{self, Blk, Op, Val},
    report::{RemarkKind, Report, remark},
    text::Severity,
};
use tc_ir::{Context, Expr, Var};

/// Why an operation stays in `linalg`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The property that `imap.generic` does not support.
    pub reason: String,
    /// What the author of the program can do.
    pub advice: &'static str,
}

fn reject<T>(reason: impl Into<String>, advice: &'static str) -> Result<T, Rejection> {
    Err(Rejection { reason: reason.into(), advice })
}

/// A structured operation on tensors that `imap.generic` can express.
#[derive(Debug)]
pub struct Structured<'c> {
    /// The loops, in order.
    pub loops: Vec<Loop<'c>>,
    /// The operands that are read: tensors and scalars.
    pub inputs: Vec<Val<'c>>,
    /// The destinations.
    pub inits: Vec<Val<'c>>,
    /// The subscripts of inputs and destinations, in this order, over the variables of the loops.
    pub subscripts: Vec<Vec<Expr>>,
    /// If there is a reduction, the fold into each destination; none otherwise.
    pub folds: Vec<Fold<'c>>,
    /// The computation, with an argument for each input and destination.
    pub body: Blk<'c>,
}

/// A loop from 0.
#[derive(Copy, Clone, Debug)]
pub struct Loop<'c> {
    /// A dimension variable if the loop is parallel, a range variable otherwise.
    pub var: Var,
    /// The operand and the dimension of it that the loop runs over.
    pub extent: (Val<'c>, usize),
}

/// A fold of values into an element of a destination.
#[derive(Copy, Clone, Debug)]
pub struct Fold<'c> {
    /// The combiner.
    pub kind: CombinerKind,
    /// The operation that combines the element and a value.
    pub combine: Op<'c>,
    /// The value.
    pub value: Val<'c>,
}

const LOWERED: &str = "MLIR's lowering of linalg compiles it; it is not fused";
const NO_FOLD: &str =
    "its body does not fold one value into the element of each destination by a combiner";
const COMBINERS: &str = "yield the addf, addi, mulf, muli, andi, ori, maximumf, maxnumf, maxsi, maxui, \
                         minimumf, minnumf, minsi or minui of the element and a value; as it is, \
                         MLIR's lowering of linalg compiles it, and it is not fused";

impl<'c> Structured<'c> {
    /// Reads an operation.
    ///
    /// # Errors
    /// `imap.generic` cannot express it.
    pub fn of(ir: &Context, op: Op<'c>) -> Result<Self, Rejection> {
        let (Some((num_loops, subscripts)), Some(body)) =
            (mlir::linalg_subscripts(ir, op), mlir::body(op, 0))
        else {
            return reject("it has no indexing maps", LOWERED);
        };
        let operands = mlir::operands(op);
        if operands.iter().any(|it| mlir::is_memref(it.r#type())) {
            return reject("it works on buffers", "convert it before bufferization");
        }
        let num_inputs = operands.len() - op.result_count();
        let (inputs, inits) = operands.split_at(num_inputs);
        check_elements(op)?;
        check_body(body)?;

        let iterators = mlir::array_attr(op, "iterator_types");
        // Operations with a name have no such attribute: their destinations name the parallel loops.
        let stored = ir.vars_of_all(&subscripts[num_inputs..].concat());
        let (mut num_dims, mut num_ranges) = (0, 0);
        let mut loops = Vec::new();
        for number in (0..).take(num_loops) {
            let is_parallel = match iterators.get(number as usize) {
                Some(iterator) => iterator.to_string().contains("parallel"),
                None => stored.contains(&Var::Dim(number)),
            };
            let (var, count) = match is_parallel {
                true => (Var::Dim(num_dims), &mut num_dims),
                false => (Var::Range(num_ranges), &mut num_ranges),
            };
            *count += 1;
            let Some(extent) = extent(&operands, &subscripts, num_inputs, ir.dim(number)) else {
                return reject(format!("no operand has the extent of loop {number}"), LOWERED);
            };
            loops.push(Loop { var, extent });
        }
        let variable = |var| match var {
            Var::Dim(number) => loops.get(number as usize).map(|it| ir.var(it.var)),
            _ => None,
        };
        let subscripts: Vec<_> =
            subscripts.iter().map(|exprs| ir.substitute_all(exprs, &variable)).collect();
        for exprs in &subscripts[num_inputs..] {
            check_destination(ir, exprs, num_dims)?;
        }
        let folds = if num_ranges == 0 { Vec::new() } else { folds(body, num_inputs)? };
        Ok(Self { loops, inputs: inputs.to_vec(), inits: inits.to_vec(), subscripts, folds, body })
    }
}

/// The operand and the dimension that have the extent of a loop, preferably a static one.
/// Destinations come first, so that the operation is seen to store all of their elements.
fn extent<'c>(
    operands: &[Val<'c>],
    subscripts: &[Vec<Expr>],
    num_inputs: usize,
    variable: Expr,
) -> Option<(Val<'c>, usize)> {
    let mut found = Vec::new();
    for operand in (num_inputs..operands.len()).chain(0..num_inputs) {
        let dims = subscripts[operand].iter().enumerate().filter(|(_, expr)| **expr == variable);
        found.extend(dims.map(|(dim, _)| (operands[operand], dim)));
    }
    let is_static = |it: &&(Val, usize)| mlir::shape(it.0.r#type())[it.1].is_some();
    found.iter().find(is_static).or(found.first()).copied()
}

/// Elements are signless numbers of at most 64 bits.
fn check_elements(op: Op) -> Result<(), Rejection> {
    let context = mlir::context_of(op);
    let is_number = |ty: &Type| {
        let is_narrow = mlir::integer_width(*ty).map_or(mlir::is_float(*ty), |width| width <= 64);
        ty.is_index() || (is_narrow && mlir::signless(context, *ty) == *ty)
    };
    let elements = mlir::operands(op).into_iter().map(|it| mlir::element_type(it.r#type()));
    match elements.into_iter().find(|ty| !is_number(ty)) {
        Some(ty) => reject(format!("it has elements of type '{ty}'"), LOWERED),
        None => Ok(()),
    }
}

/// The body computes scalars, and reads tensors at most.
fn check_body(body: Blk) -> Result<(), Rejection> {
    let mut other = None;
    for op in mlir::ops(body) {
        mlir::walk(op, &mut |inner| {
            let is_supported = match mlir::name(inner).split_once('.') {
                Some(("arith" | "complex" | "index" | "math" | "ub", _)) => true,
                Some(("affine", name)) => matches!(name, "apply" | "max" | "min"),
                Some(("imap", name)) => matches!(name, "apply" | "builtin"),
                Some(("linalg", name)) => matches!(name, "index" | "yield"),
                Some(("scf", name)) => matches!(name, "for" | "if" | "yield"),
                Some(("tensor", name)) => matches!(name, "dim" | "extract"),
                _ => false,
            };
            if !is_supported {
                other = other.or(Some(inner));
            }
        });
    }
    match other {
        Some(op) => reject(format!("its body contains '{}'", mlir::name(op)), LOWERED),
        None => Ok(()),
    }
}

/// A destination has each dimension variable as one of its subscripts. Others are constants.
fn check_destination(ir: &Context, subscripts: &[Expr], num_dims: u32) -> Result<(), Rejection> {
    let others = subscripts.iter().filter(|expr| ir.as_constant(**expr).is_none());
    let mut vars: Vec<_> = others.map(|expr| ir.as_var(*expr)).collect();
    vars.sort();
    if vars.into_iter().eq((0..num_dims).map(|dim| Some(Var::Dim(dim)))) {
        return Ok(());
    }
    reject("the parallel loops are not the subscripts of each destination, in some order", LOWERED)
}

/// The fold into each destination that a body computes.
fn folds<'c>(body: Blk<'c>, num_inputs: usize) -> Result<Vec<Fold<'c>>, Rejection> {
    let yielded = mlir::operands(mlir::terminator(body));
    let elements = mlir::arguments(body).split_off(num_inputs);
    let folds = yielded.into_iter().zip(elements);
    let folds: Option<Vec<_>> = folds.map(|(result, element)| fold(result, element)).collect();
    folds.map_or_else(|| reject(NO_FOLD, COMBINERS), Ok)
}

/// The fold that yields `result` from the element of a destination.
fn fold<'c>(result: Val<'c>, element: Val<'c>) -> Option<Fold<'c>> {
    let combine = mlir::defining_op(result)?;
    let kind = CombinerKind::of_operation(mlir::name(combine))?;
    let is_used_once = |value| mlir::uses(value).len() == 1;
    let operands = mlir::operands(combine);
    let number = operands.iter().position(|it| *it == element)?;
    let value = operands[1 - number];
    (is_used_once(element) && is_used_once(result)).then_some(Fold { kind, combine, value })
}

/// The operations in `root` that compute tensors or buffers, in order.
pub fn operations<'c>(root: Op<'c>) -> Vec<Op<'c>> {
    let mut found = Vec::new();
    mlir::walk(root, &mut |op| {
        let name = mlir::name(op).strip_prefix("linalg.");
        if name.is_some_and(|name| !matches!(name, "yield" | "index")) {
            found.push(op);
        }
    });
    found
}

/// Emits a missed remark of a pass for an operation of a function that stays in `linalg`.
pub fn remark_kept(op: Op, pass: &str, reason: &str, advice: &str) {
    let function = mlir::ancestor(op, "func.func");
    let function = function.and_then(|it| mlir::string_attr(it, "sym_name")).unwrap_or_default();
    let arguments = [("Operation", mlir::name(op)), ("Reason", reason), ("Advice", advice)];
    remark(op.location(), RemarkKind::Missed, pass, "linalg", function, &arguments);
}

/// Emits a missed remark of a fusion pass for each operation in a function.
pub fn remark_not_fused(function: Op, pass: &str) {
    let ir = Context::new();
    for op in operations(function) {
        let rejected = Structured::of(&ir, op).err();
        let advice = rejected.map_or("run 'convert-linalg-to-imap' first", |it| it.advice);
        remark_kept(op, pass, "linalg operations are not fused with imap operations", advice);
    }
}

/// Reports as a diagnostic the first operation of a program that `convert-linalg-to-imap` keeps.
pub fn report_kept(program: Op) {
    let ir = Context::new();
    let rejected = |op| Some((op, Structured::of(&ir, op).err()?));
    let mut kept = operations(program).into_iter().filter_map(rejected);
    let Some((first, rejection)) = kept.next() else { return };
    let others = match kept.count() {
        0 => String::new(),
        others => format!(" (as do {others} more)"),
    };
    let message = format!("'{}' stays in linalg: {}{others}", mlir::name(first), rejection.reason);
    Report::at(first.location(), Severity::Remark, message).note(None, rejection.advice).emit();
}
