//! A variable as two: one counts parts of its values, the other one the values of a part.

use melior::ir::operation::OperationLike;
use tc_dialects::{
    imap::{
        Generic, Indexed, View, build_index, substitute_constraints, substitute_in_conditions,
        verify::index_variable,
    },
    mlir::{self, Blk, Builder, ValueMap},
};
use tc_ir::{
    Context, Interval,
    expr::{Expr, Var},
    map::{IndexingMap, Variable},
    simplify::Simplifier,
};

/// The parts of the values of a variable.
#[derive(Clone, Copy)]
pub(crate) struct Parts {
    pub var: Var,
    pub values: Interval,
    pub num_parts: i64,
    /// The values of a part, but perhaps of the last.
    pub size: i64,
}

impl Parts {
    /// The variable, from the number of a part and the place in it.
    pub fn value(&self, ir: &Context, part: Var, place: Var) -> Expr {
        let before = ir.mul(ir.var(part), ir.constant(self.size));
        ir.add(ir.add(before, ir.var(place)), ir.constant(self.values.lo))
    }

    /// Lets the variable have so many values, from 0.
    pub fn bound(&self, ir: &Context, domain: &mut IndexingMap, count: i64) {
        if let Some(variable) = domain.variable_mut(self.var) {
            variable.set_interval(ir, Interval::new(0, count - 1));
        }
    }

    /// The accesses and constraints of an operation on the values of one part. `part` counts the parts, and `place`
    /// the values of one.
    pub fn in_part<'c>(
        &self,
        ir: &Context,
        view: &View<'c>,
        (part, place): (Var, Var),
    ) -> View<'c> {
        let value = self.value(ir, part, place);
        let replacement = |var: Var| (var == self.var).then_some(value);
        let mut parts = view.clone();
        parts.accesses_mut().for_each(|it| it.substitute(ir, &replacement));
        substitute_constraints(ir, &mut parts.domain.constraints, &replacement);
        parts
    }

    /// An operation with a further variable, which counts the parts: a dimension variable, or a range if `as_range`.
    /// The variable itself counts the values of a part.
    pub fn divide<'c>(
        &self,
        ir: &Context,
        view: &View<'c>,
        as_range: bool,
    ) -> (View<'c>, (Var, Var)) {
        let part = match as_range {
            true => Var::Range(view.domain.ranges.len() as u32),
            false => Var::Dim(view.domain.dims.len() as u32),
        };
        let vars = (part, self.var);
        let mut parts = self.in_part(ir, view, vars);
        self.bound(ir, &mut parts.domain, self.size);
        let numbers = Variable::bounded(ir, Interval::new(0, self.num_parts - 1));
        match as_range {
            true => parts.domain.ranges.push(numbers),
            false => parts.domain.dims.push(numbers),
        }
        (parts, vars)
    }

    /// Builds the same operation with two variables instead of one, and keeps the old operation after it. The parts have
    /// the same length.
    pub fn split<'c>(&self, ir: &Context, generic: Generic<'c>) -> Generic<'c> {
        let builder = Builder::before(generic.op()).located(generic.op().location());
        let as_range = matches!(self.var, Var::Range(_));
        let (mut view, vars) = self.divide(ir, &View::of(ir, generic), as_range);
        let domain = view.domain.clone();
        let mut simplifier = Simplifier::for_map(ir, &domain);
        for access in view.accesses_mut() {
            access.subscripts.iter_mut().for_each(|it| *it = simplifier.simplify(*it));
        }
        // The bounds decide what constraints are, which do not hold everywhere.
        let mut of_bounds =
            Simplifier::for_map(ir, &IndexingMap { constraints: Vec::new(), ..domain });
        for constraint in &mut view.domain.constraints {
            constraint.expr = of_bounds.simplify(constraint.expr);
        }
        let new = view.build(ir, &builder, generic.epilogue().is_some());
        self.copy_body(ir, &builder, generic.body(), new.body(), vars);
        if let (Some(from), Some(to)) = (generic.epilogue(), new.epilogue()) {
            self.copy_body(ir, &builder, from, to, vars);
        }
        new
    }

    /// Copies a block of an operation to one on the values of a part.
    pub fn copy_body<'c>(
        &self,
        ir: &Context,
        builder: &Builder<'c>,
        from: Blk<'c>,
        to: Blk<'c>,
        vars: (Var, Var),
    ) {
        let values = mlir::arguments(from).into_iter().zip(mlir::arguments(to)).collect();
        self.copy_block(ir, builder, from, to, values, vars);
    }

    /// Copies a block to the end of another one, with `value` for the variable, also in its conditions.
    pub fn copy_block<'c>(
        &self,
        ir: &Context,
        builder: &Builder<'c>,
        from: Blk<'c>,
        to: Blk<'c>,
        mut values: ValueMap<'c>,
        (part, place): (Var, Var),
    ) {
        let inside = Builder::at_end(builder.context, to, builder.location);
        let mut indices = Vec::new();
        for op in mlir::ops(from) {
            mlir::walk(inside.copy(op, &mut values), &mut |op| {
                let is_split = index_variable(op) == Some(self.var);
                indices.extend((mlir::is(op, "imap.index") && is_split).then_some(op));
            });
        }
        for op in indices {
            let builder = Builder::before(op);
            let ty = builder.index_type();
            let [part, place] = [part, place].map(|var| match var {
                Var::Range(number) => build_index(&builder, "range", number),
                Var::Dim(number) | Var::Runtime(number) => build_index(&builder, "dim", number),
            });
            let before = builder.value("arith.muli", &[part, builder.index(self.size)], ty);
            let before = builder.value("arith.addi", &[before, builder.index(self.values.lo)], ty);
            mlir::replace(op, &[builder.value("arith.addi", &[before, place], ty)]);
        }
        let value = self.value(ir, part, place);
        substitute_in_conditions(ir, &[to], &|var| (var == self.var).then_some(value));
    }
}

/// The number of values of a variable, if it is known.
pub(crate) fn extent(ir: &Context, variable: &Variable) -> Option<i64> {
    i64::try_from(variable.constant_interval(ir)?.num_members()?).ok()
}
