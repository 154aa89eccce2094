//! `imap-split-variables`: a variable that is divided becomes two.
//!
//! A reshape that is composed into its reader leaves divisions: `s / 64` and `s mod 64` are the subscripts of a row
//! that was two dimensions. With one variable for each of them, the subscripts are variables again, which vectors,
//! tiles and packing know.
//!
//! Before, shortened:
//!
//! ```mlir
//! %r = imap.generic (i, j)[s] domain: .., s in [0, 511]
//!     ins(%x[s / 64, i, s mod 64], %w[s, j] ..) outs(%e[i, j] ..) fold [add f32] {..}
//! ```
//!
//! After:
//!
//! ```mlir
//! %r = imap.generic (i, j)[s, t] domain: .., s in [0, 63], t in [0, 7]
//!     ins(%x[t, i, s], %w[t * 64 + s, j] ..) outs(%e[i, j] ..) fold [add f32] {..}
//! ```
//!
//! A variable is split if it is an operand of a division by a constant that divides the number of its values. A range
//! of an ordered fold stays as it is. The variables of the last two dimensions of the results of a fold are split also
//! if a sum with them is divided, as in a transposed convolution: `(i + s) mod 2 = 0` does not depend on `i / 2`. If the
//! constant does not divide the extent of the last dimension, a few more results are computed from nothing, and left out by
//! a copy.
//! Remark: `split`, with the divisor.

use super::parts::{Parts, extent};
use melior::ir::{ValueLike, operation::OperationLike};
use tc_dialects::{
    imap::{Access, Generic, Indexed, Runtime, View},
    mlir::{self, Builder, Val},
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, remark},
};
use tc_ir::{
    Context, Interval,
    expr::{Expr, Node, Var, ceil_div},
    map::{Constraint, Variable},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "imap-split-variables",
    summary: "Split variables that subscripts divide",
    anchor: "func.func",
    options: &[],
    dependent_dialects: &["arith", "imap"],
    run,
};

/// The most variables that one operation gains.
const MAX_SPLITS: usize = 8;

fn run(pass: &PassRun) -> Result<(), Failure> {
    let mut found = Vec::new();
    mlir::walk(pass.op, &mut |op| found.extend(Generic::cast(op)));
    let function = mlir::string_attr(pass.op, "sym_name").unwrap_or_default();
    for mut generic in found {
        pass.enter(generic.op());
        let ir = Context::new();
        for _ in 0..MAX_SPLITS {
            let Some((parts, count)) = divided(&ir, generic) else { break };
            if parts.num_parts * parts.size != count {
                let Some((longer, results)) = lengthen(&ir, generic, parts, count) else { break };
                mlir::replace(generic.op(), &results);
                generic = longer;
            }
            let new = parts.split(&ir, generic);
            let arguments = [("By", &*parts.size.to_string())];
            let at = generic.op().location();
            remark(at, RemarkKind::Passed, PASS.argument, "split", function, &arguments);
            mlir::replace(generic.op(), &mlir::results(new.op()));
            generic = new;
        }
    }
    Ok(())
}

/// The variables of the last and of the second to last dimension of all results of a fold, where these are variables.
fn block(ir: &Context, view: &View) -> [Option<Var>; 2] {
    [0, 1].map(|place| {
        if view.domain.ranges.is_empty() {
            return None;
        }
        let along = |it: &Access| ir.as_var(*it.subscripts.iter().rev().nth(place)?);
        let mut vars = view.outputs.iter().map(along);
        let first = vars.next()??;
        vars.all(|var| var == Some(first)).then_some(first)
    })
}

/// A fold with a row of results that is as long as its parts together, and copies of the results that are wanted; `None`
/// if the others cannot be computed.
fn lengthen<'c>(
    ir: &Context,
    generic: Generic<'c>,
    parts: Parts,
    count: i64,
) -> Option<(Generic<'c>, Vec<Val<'c>>)> {
    let mut view = View::of(ir, generic);
    let is_empty = |it: &Access| {
        let shape = mlir::shape(it.value.r#type());
        // All of the row is computed.
        let is_whole = shape.last() == Some(&Some(count)) && shape.iter().all(Option::is_some);
        is_whole && mlir::is_empty_tensor(it.value)
    };
    // An epilogue reads for every result.
    let epilogue = generic.epilogue().map(mlir::arguments).unwrap_or_default();
    let read = epilogue.get(view.accumulators.len()..).unwrap_or_default();
    let mut in_epilogue =
        view.inputs.iter().zip(read).filter(|(_, argument)| !mlir::uses(**argument).is_empty());
    // Of a runtime variable, too: bounds may need it.
    let mut places = view.runtimes.iter().filter_map(Runtime::access);
    let moves = |it: &Access| ir.vars_of_all(&it.exprs()).contains(&parts.var);
    if !view.outputs.iter().all(is_empty)
        || in_epilogue.any(|(it, _)| moves(it))
        || places.any(moves)
    {
        return None;
    }
    let builder = Builder::before(generic.op()).located(generic.op().location());
    let length = parts.num_parts * parts.size;
    parts.bound(ir, &mut view.domain, length);
    let interval = Interval::new(0, count - 1);
    view.domain.constraints.push(Constraint { expr: ir.var(parts.var), interval });
    let wanted: Vec<Val> = view.outputs.iter().map(|it| it.value).collect();
    for output in &mut view.outputs {
        let mut shape = mlir::shape(output.value.r#type());
        shape.pop();
        shape.push(Some(length));
        let ty = mlir::tensor_type(&shape, mlir::element_type(output.value.r#type()));
        output.value = builder.value("tensor.empty", &[], ty);
    }
    let new = view.build(ir, &builder, generic.epilogue().is_some());
    mlir::copy_block(builder.context, generic.body(), new.body(), builder.location);
    if let (Some(from), Some(to)) = (generic.epilogue(), new.epilogue()) {
        mlir::copy_block(builder.context, from, to, builder.location);
    }
    let results = mlir::results(new.op()).into_iter().zip(wanted);
    let copies = results.map(|(result, wanted)| {
        let extents = mlir::shape(wanted.r#type()).into_iter().map(|it| it.unwrap_or(1));
        let extents: Vec<_> = extents.collect();
        let copy = View::of_whole_copy(ir, &extents, [result, wanted]).build_copy(ir, &builder);
        mlir::result(copy.op(), 0)
    });
    Some((new, copies.collect()))
}

/// The parts of a variable that a subscript divides, and the number of its values.
fn divided(ir: &Context, generic: Generic) -> Option<(Parts, i64)> {
    let view = View::of(ir, generic);
    let mut subscripts: Vec<Expr> =
        view.accesses().flat_map(|it| it.subscripts.iter().copied()).collect();
    let keeps_order = generic.keeps_order();
    let bounds = view.domain.vars().flat_map(|(_, it)| [it.lower, it.upper]).flatten();
    let bounding = ir.vars_of_all(&bounds.collect::<Vec<_>>());
    let block = block(ir, &view);
    if block != [None; 2] {
        subscripts.extend(view.domain.constraints.iter().map(|it| it.expr));
    }
    ir.topological(&subscripts).into_iter().find_map(|expr| {
        let (Node::FloorDiv(dividend, divisor) | Node::Mod(dividend, divisor)) = ir.node(expr)
        else {
            return None;
        };
        let plain = ir.as_var(dividend);
        let is_term = |var: &&Var| ir.coefficient(dividend, **var) == Some(1);
        let var = plain.or_else(|| block.iter().flatten().find(is_term).copied());
        let (var, size) = (var?, ir.as_constant(divisor)?);
        let is_free = match var {
            Var::Dim(_) => true,
            Var::Range(_) => !keeps_order,
            Var::Runtime(_) => false,
        };
        let variable: &Variable = view.domain.variable(var)?;
        let (values, count) = (variable.constant_interval(ir)?, extent(ir, variable)?);
        // Only the contiguous dimension can be longer than it has to be.
        let is_even = count % size == 0 || plain.is_none() && block[0] == Some(var);
        let fits = values.lo == 0 && 1 < size && size < count && is_even;
        let is_split = is_free && fits && !bounding.contains(&var);
        let num_parts = ceil_div(count, size);
        is_split.then_some((Parts { var, values, num_parts, size }, count))
    })
}
