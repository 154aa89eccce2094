//! Values of indices in a function on tensors at known extents of its arguments, and which values the
//! elements of its index tensors may have, so that every access through them is in bounds.
//!
//! The counterpart of [`element_ranges`](super::element_ranges) for `imap.generic`: the elements are
//! runtime variables, whose bounds in the domain hold too.

use melior::ir::{ValueLike, operation::OperationLike};
use std::collections::{BTreeMap, HashMap};
use tc_dialects::{
    imap::{self, AnyIndexed, Generic, Indexed},
    mlir::{self, Op, Val},
};
use tc_ir::{
    Context,
    expr::{Expr, Var},
    map::IndexingMap,
    prove::Prover,
    solve,
};

/// How many operations lie between an index and the arguments.
const MAX_DEPTH: usize = 32;

struct Argument {
    number: usize,
    extents: Vec<i64>,
    /// The element of a tensor without dimensions.
    scalar: Option<i64>,
}

/// The extents of the arguments of a function, and what follows from them.
#[derive(Default)]
pub struct IndexValues {
    arguments: HashMap<usize, Argument>,
}

impl IndexValues {
    /// Adds the next argument: its extents, and its element if it is a scalar of known value.
    pub fn add_argument(&mut self, value: Val, extents: Vec<i64>, scalar: Option<i64>) {
        let number = self.arguments.len();
        self.arguments.insert(mlir::value_key(value), Argument { number, extents, scalar });
    }

    /// The value of an index, if it depends on the arguments added and constants only.
    pub fn value(&self, value: Val) -> Option<i64> {
        self.value_within(value, MAX_DEPTH)
    }

    fn value_within(&self, value: Val, depth: usize) -> Option<i64> {
        let depth = depth.checked_sub(1)?;
        let op = mlir::defining_op(value)?;
        match mlir::name(op) {
            "arith.constant" => mlir::integer_attr(op, "value"),
            "tensor.dim" => {
                let dim = self.value_within(mlir::operand(op, 1), depth)?;
                self.extent(mlir::operand(op, 0), usize::try_from(dim).ok()?, depth)
            }
            "tensor.extract" => self.arguments.get(&mlir::value_key(mlir::operand(op, 0)))?.scalar,
            "imap.apply" => {
                let ir = Context::new();
                let map = imap::map::from_attribute(&ir, op.attribute("map").ok()?)?;
                let operands = mlir::operands(op).into_iter();
                let values: Option<Vec<_>> =
                    operands.map(|operand| self.value_within(operand, depth)).collect();
                let values = values?;
                let result = *map.results.get(mlir::number(value))?;
                ir.eval(result, &|var| values.get(map.position(var)).copied()).ok()
            }
            _ => None,
        }
    }

    /// The extent of a dimension of a tensor.
    fn extent(&self, tensor: Val, dim: usize, depth: usize) -> Option<i64> {
        let depth = depth.checked_sub(1)?;
        let shape = mlir::shape(tensor.r#type());
        if let Some(extent) = *shape.get(dim)? {
            return Some(extent);
        }
        if let Some(argument) = self.arguments.get(&mlir::value_key(tensor)) {
            return argument.extents.get(dim).copied();
        }
        let op = mlir::defining_op(tensor)?;
        match mlir::name(op) {
            "tensor.empty" => {
                let number = shape[..dim].iter().filter(|extent| extent.is_none()).count();
                self.value_within(*mlir::operands(op).get(number)?, depth)
            }
            "tensor.cast" => self.extent(mlir::operand(op, 0), dim, depth),
            _ => {
                let init = AnyIndexed::cast(op)?.inits().get(mlir::number(tensor)).copied()?;
                self.extent(init, dim, depth)
            }
        }
    }

    /// The closed interval of the elements of each argument, by its number, that a function uses as
    /// indices. It may be empty, where no value is in bounds.
    pub fn element_ranges(&self, function: Op) -> BTreeMap<usize, (i64, i64)> {
        let ir = Context::new();
        let mut found = BTreeMap::new();
        mlir::walk(function, &mut |op| {
            if let Some(generic) = Generic::cast(op) {
                self.visit(&ir, generic, &mut found);
            }
        });
        found
    }

    fn visit(&self, ir: &Context, generic: Generic, found: &mut BTreeMap<usize, (i64, i64)>) {
        let (domain, runtimes) = (generic.domain(ir), generic.runtimes());
        let values: Vec<_> = runtimes.iter().map(|value| self.value(*value)).collect();
        for (number, runtime) in runtimes.iter().enumerate() {
            let Some(argument) = self.arguments.get(&mlir::value_key(*runtime)) else { continue };
            let element = Var::Runtime(number as u32);
            for (expr, upper) in self.conditions(ir, generic, &domain, element) {
                let range = range_of(ir, &domain, &values, element, (expr, upper));
                let Some((lower, upper)) = range else { continue };
                let entry = found.entry(argument.number).or_insert((i64::MIN, i64::MAX));
                *entry = (entry.0.max(lower), entry.1.min(upper));
            }
        }
    }

    /// Expressions that use an element, each of which has to be at least 0 and, if there is one, at
    /// most the bound.
    fn conditions(
        &self,
        ir: &Context,
        generic: Generic,
        domain: &IndexingMap,
        element: Var,
    ) -> Vec<(Expr, Option<i64>)> {
        let mut conditions = Vec::new();
        if let Some(variable) = domain.variable(element) {
            let value = ir.var(element);
            conditions.extend(variable.lower.map(|lower| (ir.sub(value, lower), None)));
            conditions.extend(variable.upper.map(|upper| (ir.sub(upper, value), None)));
        }
        let operands = generic.inputs().into_iter().chain(generic.inits());
        for (map, operand) in generic.maps(ir).iter().zip(operands) {
            // A guard lets an element be anything.
            if !map.constraints.is_empty() {
                continue;
            }
            for (dim, result) in map.results.iter().enumerate() {
                if ir.vars(*result).contains(&element)
                    && let Some(extent) = self.extent(operand, dim, MAX_DEPTH)
                {
                    conditions.push((*result, Some(extent - 1)));
                }
            }
        }
        conditions
    }
}

/// The interval of an element in which an expression is at least 0 and at most a bound, whatever the
/// other variables are. `values` are those of the runtime variables, where they are known.
fn range_of(
    ir: &Context,
    domain: &IndexingMap,
    values: &[Option<i64>],
    element: Var,
    (expr, upper): (Expr, Option<i64>),
) -> Option<(i64, i64)> {
    let known = |var: Var| match var {
        Var::Runtime(number) => values.get(number as usize).copied().flatten(),
        _ => None,
    };
    let expr = ir.substitute(expr, &|var| known(var).map(|value| ir.constant(value)));
    let constant = |bound: Option<Expr>| Some(ir.constant(ir.eval(bound?, &known).ok()?));
    let eliminate = |var: Var| {
        if var == element {
            return None;
        }
        let variable = domain.variable(var)?;
        Some((constant(variable.lower), constant(variable.upper)))
    };
    let bounds = (Some(ir.constant(0)), upper.map(|upper| ir.constant(upper)));
    let prover = Prover::new(ir);
    let solution = solve::solve(&prover, expr, bounds.0, bounds.1, element, &eliminate).ok()?;
    let end = |bound: Option<Expr>| ir.eval(bound?, &|_| None).ok();
    let (lower, upper) = (end(solution.lower), end(solution.upper));
    (lower.is_some() || upper.is_some())
        .then_some((lower.unwrap_or(i64::MIN), upper.unwrap_or(i64::MAX)))
}
