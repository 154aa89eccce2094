//! Which values the elements of index tensors may have, so that every access through them
//! is inside its tensor.
//!
//! For each access whose index expression holds one element of an input, the interval
//! solver gives the largest interval of that element for all values of the index
//! variables; the intervals of one input intersect. Used to draw random inputs, at given
//! sizes.

use super::index_reader::{IndexReader, Leaves, element_read};
use std::collections::{BTreeMap, HashMap};
use tc_dialects::{
    mlir::{self, Op, Val},
    tc::{Comprehension, Def, Size},
};
use tc_ir::{
    Context,
    expr::{Expr, Var},
    map::IndexingMap,
    prove::Prover,
    solve,
};

/// The closed interval of the elements of each input that is used as an index, by name.
/// `def` has ranges. An interval may be empty, where no value is inside.
pub fn element_ranges(def: Def, sizes: &BTreeMap<String, i64>) -> BTreeMap<String, (i64, i64)> {
    let ir = Context::new();
    let names: Vec<_> = def.sizes().into_iter().map(|(name, ..)| name).collect();
    let mut analysis = Analysis {
        ir: &ir,
        sizes: names.iter().filter_map(|name| sizes.get(*name).copied()).collect(),
        bounds: HashMap::new(),
        inputs: HashMap::new(),
        elements: Vec::new(),
        found: BTreeMap::new(),
    };
    if analysis.sizes.len() != names.len() {
        return BTreeMap::new();
    }
    analysis.add_inputs(def, sizes);
    let mut outer = IndexReader::new(&ir, &names);
    for op in mlir::ops(def.body()) {
        match Comprehension::cast(op) {
            Some(statement) => analysis.visit(statement, &outer),
            None => outer.visit(op, &mut analysis),
        }
    }
    analysis.found
}

struct Analysis<'c, 'i> {
    ir: &'i Context,
    /// The values of the size variables.
    sizes: Vec<i64>,
    /// The closed bounds of the dimensions of each tensor.
    bounds: HashMap<usize, Vec<(i64, i64)>>,
    inputs: HashMap<usize, &'c str>,
    /// The input of which each runtime variable after the sizes is an element, if any.
    elements: Vec<Option<&'c str>>,
    found: BTreeMap<String, (i64, i64)>,
}

impl<'c> Leaves<'c> for Analysis<'c, '_> {
    fn leaf(&mut self, exprs: &IndexReader<'c, '_>, value: Val<'c>) -> Option<Expr> {
        let input = element_read(value)
            .and_then(|(read, _)| self.inputs.get(&mlir::value_key(mlir::operand(read, 0))));
        self.elements.push(input.copied());
        Some(exprs.ir.runtime((self.sizes.len() + self.elements.len() - 1) as u32))
    }

    fn extent(&mut self, tensor: Val<'c>, dim: usize) -> Option<Expr> {
        let (lower, upper) = *self.bounds.get(&mlir::value_key(tensor))?.get(dim)?;
        Some(self.ir.constant(upper - lower + 1))
    }
}

impl<'c, 'i> Analysis<'c, 'i> {
    fn add_inputs(&mut self, def: Def<'c>, sizes: &BTreeMap<String, i64>) {
        for parameter in def.parameters() {
            let bounds = parameter
                .sizes
                .iter()
                .filter_map(|size| match size {
                    Size::Constant(extent) => Some(*extent),
                    Size::Variable(name) => sizes.get(*name).copied(),
                })
                .map(|extent| (0, extent - 1));
            self.bounds.insert(mlir::value_key(parameter.value), bounds.collect());
            if !parameter.inout {
                self.inputs.insert(mlir::value_key(parameter.value), parameter.name);
            }
        }
    }

    /// The value of an expression over the sizes.
    fn value(&self, expr: Expr) -> Option<i64> {
        let value = |var| match var {
            Var::Runtime(number) => self.sizes.get(number as usize).copied(),
            _ => None,
        };
        self.ir.eval(expr, &value).ok()
    }

    fn interval(&self, domain: &IndexingMap, var: Var) -> Option<(i64, i64)> {
        let variable = domain.variable(var)?;
        Some((self.value(variable.lower?)?, self.value(variable.upper?)?))
    }

    fn visit(&mut self, statement: Comprehension<'c>, outer: &IndexReader<'c, '_>) {
        let Some(domain) = statement.domain(self.ir) else { return };
        let mut exprs = IndexReader::nested(outer);
        exprs.enter(statement, statement.body());
        exprs.visit_block(statement.body(), self);
        for top in mlir::ops(statement.body()) {
            let mut reads = Vec::new();
            mlir::walk(top, &mut |op| {
                if mlir::is(op, "tc.read") {
                    reads.push(op);
                }
            });
            for read in reads {
                self.visit_read(read, &exprs, &domain);
            }
        }
        let own: Vec<_> = (0..domain.dims.len() as u32)
            .map(|dim| self.interval(&domain, Var::Dim(dim)).unwrap_or((0, -1)))
            .collect();
        for (dim, address) in statement.addressed().into_iter().zip(statement.addresses()) {
            self.visit_index(address, own[dim], &exprs, &domain);
        }
        let bounds = statement
            .outs()
            .and_then(|outs| self.bounds.get(&mlir::value_key(outs)))
            .filter(|bounds| bounds.len() == domain.dims.len())
            .cloned()
            .unwrap_or(own);
        self.bounds.insert(mlir::value_key(statement.result()), bounds);
    }

    fn visit_read(&mut self, read: Op<'c>, exprs: &IndexReader<'c, '_>, domain: &IndexingMap) {
        let Some(bounds) = self.bounds.get(&mlir::value_key(mlir::operand(read, 0))).cloned()
        else {
            return;
        };
        for (index, bounds) in mlir::operands(read)[1..].iter().zip(bounds) {
            self.visit_index(*index, bounds, exprs, domain);
        }
    }

    fn visit_index(
        &mut self,
        index: Val<'c>,
        (lower, upper): (i64, i64),
        exprs: &IndexReader<'c, '_>,
        domain: &IndexingMap,
    ) {
        let Some(expr) = exprs.get(index) else { return };
        // Sizes have values, so that only index variables and elements are left.
        let expr = self.ir.substitute(expr, &|var| match var {
            Var::Runtime(number) => {
                self.sizes.get(number as usize).map(|value| self.ir.constant(*value))
            }
            _ => None,
        });
        let elements: Vec<_> =
            self.ir.vars(expr).into_iter().filter(|var| matches!(var, Var::Runtime(_))).collect();
        let [Var::Runtime(number)] = elements[..] else { return };
        let Some(input) = self.elements[number as usize - self.sizes.len()] else { return };
        let eliminate = |var: Var| match var {
            Var::Runtime(_) => None,
            _ => {
                let (lower, upper) = self.interval(domain, var)?;
                Some((Some(self.ir.constant(lower)), Some(self.ir.constant(upper))))
            }
        };
        let solution = solve::solve(
            &Prover::new(self.ir),
            expr,
            Some(self.ir.constant(lower)),
            Some(self.ir.constant(upper)),
            Var::Runtime(number),
            &eliminate,
        );
        let Ok(solution) = solution else { return };
        let bound = |bound: Option<Expr>| bound.and_then(|bound| self.value(bound));
        let lower = bound(solution.lower);
        let upper = bound(solution.upper);
        if lower.is_none() && upper.is_none() {
            return;
        }
        let entry = self.found.entry(input.to_string()).or_insert((i64::MIN, i64::MAX));
        entry.0 = entry.0.max(lower.unwrap_or(i64::MIN));
        entry.1 = entry.1.min(upper.unwrap_or(i64::MAX));
    }
}
