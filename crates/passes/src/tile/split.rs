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
//! of an ordered fold stays as it is. The variable along which the results of a fold are neighbours is split also if a sum
//! with it is divided, as in a transposed convolution: `(i + s) mod 2 = 0` does not depend on `i / 2`. Remark: `split`,
//! with the divisor.

use super::parts::{Parts, extent};
use melior::ir::operation::OperationLike;
use tc_dialects::{
    imap::{Generic, Indexed, View},
    mlir,
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, remark},
};
use tc_ir::{
    Context,
    expr::{Expr, Node, Var},
    map::Variable,
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
            let Some(parts) = divided(&ir, generic) else { break };
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

/// The variable along which all results of a fold are neighbours.
fn row(ir: &Context, view: &View) -> Option<Var> {
    let lasts = view.outputs.iter().map(|it| ir.as_var(*it.subscripts.last()?));
    let lasts: Vec<_> = lasts.collect::<Option<_>>()?;
    let first = *lasts.first()?;
    let is_fold = !view.domain.ranges.is_empty();
    (is_fold && lasts.iter().all(|var| *var == first)).then_some(first)
}

/// The parts of a variable that a subscript divides.
fn divided(ir: &Context, generic: Generic) -> Option<Parts> {
    let view = View::of(ir, generic);
    let mut subscripts: Vec<Expr> =
        view.accesses().flat_map(|it| it.subscripts.iter().copied()).collect();
    let keeps_order = generic.keeps_order();
    let bounds = view.domain.vars().flat_map(|(_, it)| [it.lower, it.upper]).flatten();
    let bounding = ir.vars_of_all(&bounds.collect::<Vec<_>>());
    let row = row(ir, &view);
    if row.is_some() {
        subscripts.extend(view.domain.constraints.iter().map(|it| it.expr));
    }
    ir.topological(&subscripts).into_iter().find_map(|expr| {
        let (Node::FloorDiv(dividend, divisor) | Node::Mod(dividend, divisor)) = ir.node(expr)
        else {
            return None;
        };
        let var = ir
            .as_var(dividend)
            .or_else(|| row.filter(|row| ir.coefficient(dividend, *row) == Some(1)));
        let (var, size) = (var?, ir.as_constant(divisor)?);
        let is_free = match var {
            Var::Dim(_) => true,
            Var::Range(_) => !keeps_order,
            Var::Runtime(_) => false,
        };
        let variable: &Variable = view.domain.variable(var)?;
        let (values, count) = (variable.constant_interval(ir)?, extent(ir, variable)?);
        let fits = values.lo == 0 && 1 < size && size < count && count % size == 0;
        let is_split = is_free && fits && !bounding.contains(&var);
        is_split.then(|| Parts { var, values, num_parts: count / size, size })
    })
}
