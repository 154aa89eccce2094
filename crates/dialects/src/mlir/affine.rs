//! Affine maps of MLIR as index expressions, and back.

use super::{Op, array_of};
use melior::{
    Context,
    ir::{Attribute, AttributeLike},
};
use std::collections::HashMap;
use tc_ir::{Context as IndexContext, Expr, Node, Var};

/// The results of an affine map as index expressions over dimension variables; `None` if the attribute is
/// not an affine map, or uses symbols.
pub fn affine_results(ir: &IndexContext, attribute: Attribute) -> Option<Vec<Expr>> {
    // SAFETY: the functions are called on an affine map, and on expressions of the kind that they need.
    unsafe {
        if !mlir_sys::mlirAttributeIsAAffineMap(attribute.to_raw()) {
            return None;
        }
        let map = mlir_sys::mlirAffineMapAttrGetValue(attribute.to_raw());
        let results = 0..mlir_sys::mlirAffineMapGetNumResults(map);
        results
            .map(|number| affine_expr(ir, mlir_sys::mlirAffineMapGetResult(map, number)))
            .collect()
    }
}

/// A structured operation of `linalg`: the number of its loops, and for each operand its subscripts
/// over the loops as dimension variables. `None` for any other operation, and if a map uses symbols.
pub fn linalg_subscripts(ir: &IndexContext, op: Op) -> Option<(usize, Vec<Vec<Expr>>)> {
    // SAFETY: the operation is alive; any other one gives a null attribute. The elements of the
    // attribute are affine maps.
    let (maps, num_loops) = unsafe {
        let maps = mlir_sys::mlirLinalgGetIndexingMapsAttribute(op.to_raw());
        let maps = array_of(Attribute::from_option_raw(maps)?);
        let first = mlir_sys::mlirAffineMapAttrGetValue(maps.first()?.to_raw());
        (maps, mlir_sys::mlirAffineMapGetNumDims(first))
    };
    let subscripts = maps.into_iter().map(|map| affine_results(ir, map));
    Some((usize::try_from(num_loops).ok()?, subscripts.collect::<Option<_>>()?))
}

/// An affine expression without symbols as an index expression.
///
/// # Safety
/// The expression belongs to a context that is alive.
unsafe fn affine_expr(ir: &IndexContext, expr: mlir_sys::MlirAffineExpr) -> Option<Expr> {
    use mlir_sys::*;
    /// An expression to be converted, or the operation on the last two that have been.
    enum Step {
        Expr(MlirAffineExpr),
        Apply(fn(&IndexContext, Expr, Expr) -> Expr),
    }
    let mut steps = vec![Step::Expr(expr)];
    let mut done = Vec::new();
    while let Some(step) = steps.pop() {
        let expr = match step {
            Step::Expr(expr) => expr,
            Step::Apply(apply) => {
                let (rhs, lhs) = (done.pop()?, done.pop()?);
                done.push(apply(ir, lhs, rhs));
                continue;
            }
        };
        // SAFETY: each function is called on an expression of its kind.
        unsafe {
            if mlirAffineExprIsADim(expr) {
                done.push(ir.dim(u32::try_from(mlirAffineDimExprGetPosition(expr)).ok()?));
                continue;
            }
            if mlirAffineExprIsAConstant(expr) {
                done.push(ir.constant(mlirAffineConstantExprGetValue(expr)));
                continue;
            }
            let apply: fn(&IndexContext, Expr, Expr) -> Expr = match () {
                () if mlirAffineExprIsAAdd(expr) => IndexContext::add,
                () if mlirAffineExprIsAMul(expr) => IndexContext::mul,
                () if mlirAffineExprIsAMod(expr) => IndexContext::modulo,
                () if mlirAffineExprIsAFloorDiv(expr) => IndexContext::floor_div,
                () if mlirAffineExprIsACeilDiv(expr) => IndexContext::ceil_div,
                () => return None,
            };
            steps.push(Step::Apply(apply));
            steps.push(Step::Expr(mlirAffineBinaryOpExprGetRHS(expr)));
            steps.push(Step::Expr(mlirAffineBinaryOpExprGetLHS(expr)));
        }
    }
    done.pop()
}

/// An affine map over dimensions with these results, as an attribute. `None` if a result uses another
/// variable, or is not affine.
pub fn affine_map<'c>(
    context: &'c Context,
    ir: &IndexContext,
    num_dims: usize,
    results: &[Expr],
) -> Option<Attribute<'c>> {
    use mlir_sys::*;
    let raw = context.to_raw();
    let divisor = |expr| ir.as_constant(expr).filter(|value| 0 < *value);
    let mut known: HashMap<Expr, MlirAffineExpr> = HashMap::new();
    for expr in ir.topological(results) {
        let node = ir.node(expr);
        let operands = node.operands().map(|(lhs, rhs)| (known[&lhs], known[&rhs]));
        // SAFETY: all operands belong to the context. Products have a constant factor, and divisors
        // are positive.
        let affine = unsafe {
            match (node, operands) {
                (Node::Const(value), _) => mlirAffineConstantExprGet(raw, value),
                (Node::Var(Var::Dim(number)), _) if (number as usize) < num_dims => {
                    mlirAffineDimExprGet(raw, number as isize)
                }
                (Node::Add(..), Some((lhs, rhs))) => mlirAffineAddExprGet(lhs, rhs),
                (Node::Mul(_, factor), Some((lhs, rhs))) => {
                    ir.as_constant(factor)?;
                    mlirAffineMulExprGet(lhs, rhs)
                }
                (Node::FloorDiv(_, by), Some((lhs, rhs))) => {
                    divisor(by)?;
                    mlirAffineFloorDivExprGet(lhs, rhs)
                }
                (Node::CeilDiv(_, by), Some((lhs, rhs))) => {
                    divisor(by)?;
                    mlirAffineCeilDivExprGet(lhs, rhs)
                }
                (Node::Mod(_, by), Some((lhs, rhs))) => {
                    divisor(by)?;
                    mlirAffineModExprGet(lhs, rhs)
                }
                _ => return None,
            }
        };
        known.insert(expr, affine);
    }
    let mut results: Vec<_> = results.iter().map(|expr| known[expr]).collect();
    // SAFETY: the expressions belong to the context, and use `num_dims` dimensions at most.
    unsafe {
        let map = mlirAffineMapGet(
            raw,
            num_dims as isize,
            0,
            results.len() as isize,
            results.as_mut_ptr(),
        );
        Attribute::from_option_raw(mlirAffineMapAttrGet(map))
    }
}
