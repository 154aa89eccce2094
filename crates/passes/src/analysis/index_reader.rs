//! Index values of a comprehension as expressions of its variables.
//!
//! The index variables of a statement are its block arguments: the left-hand ones are
//! dimension variables, the others range variables. The size variables of the function
//! are the first runtime variables, in order. What cannot be written with these (an
//! element of a tensor, a value chosen by a condition) is a further runtime variable,
//! which [`Leaves`] hands out.
//!
//! One forward pass over the operations, linear in their number. Shared values can stand for
//! expressions that are as large as 2 to the number of operations when written out: one of
//! more than [`MAX_COST`] operators counts as none.

use melior::ir::{TypeLike, ValueLike, operation::OperationLike};
use std::collections::HashMap;
use tc_dialects::{
    imap::map,
    mlir::{self, Blk, Op, Val},
    tc::Comprehension,
};
use tc_ir::{
    Context,
    expr::{Expr, Var},
};

/// The operators of an expression that is followed. Maps are kept as text, whose nesting
/// the parser limits to somewhat more.
pub const MAX_COST: u32 = 400;

/// Gives expressions to values that are not index arithmetic.
pub trait Leaves<'c> {
    /// The expression of an index value, or `None` to leave it without one. `exprs`
    /// knows everything before it.
    fn leaf(&mut self, exprs: &IndexReader<'c, '_>, value: Val<'c>) -> Option<Expr>;

    /// The expression of the extent of a dimension of a tensor.
    fn extent(&mut self, tensor: Val<'c>, dim: usize) -> Option<Expr>;
}

/// The expressions found so far.
pub struct IndexReader<'c, 'i> {
    /// Where the expressions live.
    pub ir: &'i Context,
    /// What was known outside of the statement.
    outer: Option<&'i IndexReader<'c, 'i>>,
    sizes: HashMap<&'c str, Expr>,
    exprs: HashMap<usize, Expr>,
}

impl<'c, 'i> IndexReader<'c, 'i> {
    /// Knows the size variables, as runtime variables in this order.
    pub fn new(ir: &'i Context, sizes: &[&'c str]) -> Self {
        let sizes = sizes
            .iter()
            .enumerate()
            .map(|(number, name)| (*name, ir.runtime(number as u32)))
            .collect();
        Self { ir, outer: None, sizes, exprs: HashMap::new() }
    }

    /// Knows all that `outer` knows, for the inside of a statement.
    pub fn nested(outer: &'i IndexReader<'c, 'i>) -> Self {
        Self { ir: outer.ir, outer: Some(outer), sizes: outer.sizes.clone(), exprs: HashMap::new() }
    }

    /// The expression of an index value, if it has one.
    pub fn get(&self, value: Val<'c>) -> Option<Expr> {
        let found = self.exprs.get(&mlir::value_key(value)).copied();
        found.or_else(|| self.outer.and_then(|outer| outer.get(value)))
    }

    /// Lets the arguments of a block of a comprehension stand for its variables.
    pub fn enter(&mut self, statement: Comprehension<'c>, block: Blk<'c>) {
        let rank = statement.index_vars().len();
        for (number, argument) in mlir::arguments(block).into_iter().enumerate() {
            let var = match number.checked_sub(rank) {
                None => Var::Dim(number as u32),
                Some(number) => Var::Range(number as u32),
            };
            self.exprs.insert(mlir::value_key(argument), self.ir.var(var));
        }
    }

    /// Visits a block and all regions in it, in order.
    pub fn visit_block(&mut self, block: Blk<'c>, leaves: &mut dyn Leaves<'c>) {
        for op in mlir::ops(block) {
            let mut inner = Vec::new();
            mlir::walk(op, &mut |op| inner.push(op));
            for op in inner {
                self.visit(op, leaves);
            }
        }
    }

    /// Visits one operation whose operands have been visited.
    pub fn visit(&mut self, op: Op<'c>, leaves: &mut dyn Leaves<'c>) {
        match mlir::name(op) {
            "tc.size" => {
                let name = mlir::string_attr(op, "name").unwrap_or_default();
                if let Some(size) = self.sizes.get(name) {
                    self.exprs.insert(mlir::value_key(mlir::result(op, 0)), *size);
                }
            }
            "tc.extent" => {
                let dim = mlir::integer_attr(op, "dim").unwrap_or(0) as usize;
                let extent = leaves.extent(mlir::operand(op, 0), dim);
                self.record(mlir::result(op, 0), extent, leaves);
            }
            "arith.constant" => {
                let value = mlir::integer_attr(op, "value");
                let constant = value.map(|value| self.ir.constant(value));
                self.record(mlir::result(op, 0), constant, leaves);
            }
            "imap.apply" => self.visit_apply(op, leaves),
            _ => {
                for result in mlir::results(op) {
                    self.record(result, None, leaves);
                }
            }
        }
    }

    fn visit_apply(&mut self, op: Op<'c>, leaves: &mut dyn Leaves<'c>) {
        let map = op.attribute("map").ok().and_then(|it| map::from_attribute(self.ir, it));
        let operands: Option<Vec<_>> =
            mlir::operands(op).into_iter().map(|value| self.get(value)).collect();
        let exprs = map.zip(operands).map(|(map, operands)| {
            let replacement = |var| operands.get(map.position(var)).copied();
            self.ir.substitute_all(&map.results, &replacement)
        });
        for (number, result) in mlir::results(op).into_iter().enumerate() {
            let expr = exprs.as_ref().map(|exprs| exprs[number]);
            self.record(result, expr, leaves);
        }
    }

    fn record(&mut self, value: Val<'c>, expr: Option<Expr>, leaves: &mut dyn Leaves<'c>) {
        if !value.r#type().is_index() {
            return;
        }
        let expr = expr.filter(|expr| self.ir.cost(*expr) <= MAX_COST);
        if let Some(expr) = expr.or_else(|| leaves.leaf(self, value)) {
            self.exprs.insert(mlir::value_key(value), expr);
        }
    }
}

/// The `tc.read` of which a value is an element, looking through casts between
/// integers and index, and whether the element is extended as an unsigned number.
pub fn element_read<'c>(value: Val<'c>) -> Option<(Op<'c>, bool)> {
    let cast = mlir::defining_op(value)?;
    let unsigned = match mlir::name(cast) {
        "arith.index_cast" => false,
        "arith.index_castui" => true,
        _ => return None,
    };
    let read = mlir::defining_op(mlir::operand(cast, 0))?;
    mlir::is(read, "tc.read").then_some((read, unsigned))
}
