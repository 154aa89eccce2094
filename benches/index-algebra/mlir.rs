//! MLIR's affine maps through its C API: what `AffineMap::compose` and `simplifyAffineMap` do.

use mlir_sys as sys;
use tc_ir::{Context, Expr, IndexingMap, Node, Var};

/// A context of MLIR without threads of its own.
pub struct Mlir(sys::MlirContext);

/// A map in a context of MLIR.
#[derive(Clone)]
pub struct Map {
    dims: u32,
    symbols: u32,
    results: Vec<sys::MlirAffineExpr>,
}

impl Mlir {
    /// A new context.
    pub fn new() -> Self {
        // SAFETY: no arguments to get wrong.
        Mlir(unsafe { sys::mlirContextCreateWithThreading(false) })
    }

    /// The results and constraints of a map. Range variables come first among the symbols.
    ///
    /// # Errors
    /// The map has operations that affine maps do not have.
    pub fn import(&self, ctx: &Context, map: &IndexingMap) -> Result<Map, String> {
        let mut roots: Vec<Expr> = map.results.clone();
        roots.extend(map.constraints.iter().map(|constraint| constraint.expr));
        let ranges = map.ranges.len();
        let context = self.0;
        let results = ctx.fold(&roots, |_, node, operands| {
            let operands = operands.map(|(&lhs, &rhs)| (lhs, rhs));
            // SAFETY: the expressions are of this context, which is alive.
            unsafe {
                Ok(match (node, operands) {
                    (Node::Const(value), _) => sys::mlirAffineConstantExprGet(context, value),
                    (Node::Var(Var::Dim(i)), _) => sys::mlirAffineDimExprGet(context, i as isize),
                    (Node::Var(Var::Range(i)), _) => {
                        sys::mlirAffineSymbolExprGet(context, i as isize)
                    }
                    (Node::Var(Var::Runtime(i)), _) => {
                        sys::mlirAffineSymbolExprGet(context, (i as usize + ranges) as isize)
                    }
                    (Node::Add(..), Some((lhs, rhs))) => sys::mlirAffineAddExprGet(lhs, rhs),
                    (Node::Mul(..), Some((lhs, rhs))) => sys::mlirAffineMulExprGet(lhs, rhs),
                    (Node::FloorDiv(..), Some((lhs, rhs))) => {
                        sys::mlirAffineFloorDivExprGet(lhs, rhs)
                    }
                    (Node::CeilDiv(..), Some((lhs, rhs))) => {
                        sys::mlirAffineCeilDivExprGet(lhs, rhs)
                    }
                    (Node::Mod(..), Some((lhs, rhs))) => sys::mlirAffineModExprGet(lhs, rhs),
                    _ => return Err(format!("no affine expression for {node:?}")),
                })
            }
        })?;
        Ok(Map {
            dims: u32::try_from(map.dims.len()).unwrap_or(u32::MAX),
            symbols: u32::try_from(ranges + map.runtimes.len()).unwrap_or(u32::MAX),
            results,
        })
    }

    /// `second` after `first`, not simplified. As in `AffineMap::compose`, the symbols of
    /// `second` come first.
    pub fn compose(&self, first: &Map, second: &Map) -> Map {
        // SAFETY: as in `import`; the array of results is as long as said.
        unsafe {
            let shift = |&expr: &sys::MlirAffineExpr| {
                if first.symbols == 0 || second.symbols == 0 {
                    return expr;
                }
                sys::mlirAffineExprShiftSymbols(expr, first.symbols, second.symbols, 0)
            };
            let mut shifted: Vec<_> = first.results.iter().map(shift).collect();
            let symbols = first.symbols + second.symbols;
            let map = sys::mlirAffineMapGet(
                self.0,
                first.dims as isize,
                symbols as isize,
                shifted.len() as isize,
                shifted.as_mut_ptr(),
            );
            let results =
                second.results.iter().map(|&expr| sys::mlirAffineExprCompose(expr, map)).collect();
            Map { dims: first.dims, symbols, results }
        }
    }

    /// Simplifies every result.
    pub fn simplify(&self, map: &mut Map) {
        for result in &mut map.results {
            // SAFETY: as in `import`.
            *result = unsafe { sys::mlirSimplifyAffineExpr(*result, map.dims, map.symbols) };
        }
        // A map is an object of the context too.
        // SAFETY: as in `compose`.
        unsafe {
            sys::mlirAffineMapGet(
                self.0,
                map.dims as isize,
                map.symbols as isize,
                map.results.len() as isize,
                map.results.as_mut_ptr(),
            );
        }
    }

    /// Whether two maps are one.
    pub fn equal(&self, first: &Map, second: &Map) -> bool {
        first.results.len() == second.results.len()
            && first
                .results
                .iter()
                .zip(&second.results)
                // SAFETY: as in `import`.
                .all(|(&first, &second)| unsafe { sys::mlirAffineExprEqual(first, second) })
    }

    /// The number of operations in the results written out as text.
    pub fn cost(&self, map: &Map) -> u64 {
        let mut stack = map.results.clone();
        let mut count = 0;
        while let Some(expr) = stack.pop() {
            // SAFETY: as in `import`; operands are asked for of operations only.
            unsafe {
                if sys::mlirAffineExprIsABinary(expr) {
                    count += 1;
                    stack.push(sys::mlirAffineBinaryOpExprGetLHS(expr));
                    stack.push(sys::mlirAffineBinaryOpExprGetRHS(expr));
                }
            }
        }
        count
    }
}

impl Drop for Mlir {
    fn drop(&mut self) {
        // SAFETY: made in `new`, and nothing else destroys it.
        unsafe { sys::mlirContextDestroy(self.0) }
    }
}
