//! The parts of an `imap.generic` as a loop nest needs them: values of variables,
//! bounds, accesses, and copies of the body.

use super::{super::index_emitter::IndexEmitter, Choices, MAX_VARIABLES};
use crate::loops;
use melior::ir::{Attribute, Type, TypeLike, ValueLike, operation::OperationLike};
use std::collections::{BTreeMap, BTreeSet};
use tc_dialects::{
    imap::{self, Accumulator, AnyIndexed, Indexed, Inside, verify::index_variable},
    mlir::{self, Blk, Builder, Op, Val, ValueMap},
    report::Report,
};
use tc_ir::{Constraint, Context, Expr, IndexingMap, Interval, Var, Variable, map::VarIntervals};

/// An input and where it is read.
pub(in crate::convert) struct Input<'c> {
    pub buffer: Val<'c>,
    /// The constraints are the guard.
    pub map: IndexingMap,
    /// The constant where the guard fails.
    pub fill: Option<Attribute<'c>>,
    /// Whether the body or the epilogue uses the element.
    pub is_used: bool,
    /// Whether the body does, and not the epilogue alone.
    pub is_folded: bool,
}

/// A destination, and where it is written.
pub(in crate::convert) struct Output<'c> {
    pub buffer: Val<'c>,
    pub map: IndexingMap,
    pub element: Type<'c>,
}

/// The values of variables and the tightened bounds at a place in the nest.
#[derive(Clone, Default)]
pub(in crate::convert) struct Scope<'c> {
    pub values: BTreeMap<Var, Val<'c>>,
    /// Bounds of a strip of a variable, the upper one excluded.
    pub strips: BTreeMap<Var, (Val<'c>, Val<'c>)>,
    /// Conditions that hold.
    pub held: Vec<Constraint>,
    /// Conditions, one of which does not hold.
    pub failed: Vec<Vec<Constraint>>,
    /// Scratch memory of the thread.
    pub scratch: Vec<Val<'c>>,
    /// By number of an input, its element at the point, if it has been loaded.
    pub loaded: BTreeMap<usize, Val<'c>>,
}

/// An operation with maps taken apart.
pub(in crate::convert) struct Nest<'c> {
    pub ir: Context,
    pub generic: AnyIndexed<'c>,
    pub domain: IndexingMap,
    pub intervals: VarIntervals,
    pub inputs: Vec<Input<'c>>,
    pub outputs: Vec<Output<'c>>,
    /// What is folded; nothing in map form.
    pub accumulators: Vec<Accumulator<'c>>,
    /// The operand of each runtime variable, with its map if it is read from a buffer.
    pub runtimes: Vec<(Val<'c>, Option<IndexingMap>)>,
    /// Per runtime variable, the constant where the guard of the read fails.
    pub runtime_fills: Vec<Option<Attribute<'c>>>,
    pub choices: Choices,
    /// Whether the operands of the body stay in registers for several points.
    pub reuses_inputs: bool,
}

impl<'c> Nest<'c> {
    /// Takes an operation on buffers apart.
    ///
    /// # Errors
    /// It is an operation on tensors, or has more than [`MAX_VARIABLES`] dimension and range variables.
    pub fn new(generic: AnyIndexed<'c>, choices: Choices) -> Result<Self, Report<'c>> {
        if generic.op().result_count() != 0 {
            return Err(Report::error("expected buffers as operands, found tensors"));
        }
        let (num_dims, num_ranges, _) = generic.frozen_domain().counts();
        let num_variables = num_dims + num_ranges;
        if MAX_VARIABLES < num_variables {
            return Err(Report::error(format!(
                "has {num_variables} variables; at most {MAX_VARIABLES} are supported"
            )));
        }
        hoist_indices(generic);
        let ir = Context::new();
        let mut domain = generic.domain(&ir);
        for (variable, value) in domain.runtimes.iter_mut().zip(generic.runtimes()) {
            let element = mlir::element_type(value.r#type());
            if variable.lower.is_none() && variable.upper.is_none() && !element.is_index() {
                let interval = imap::element_interval(element, false);
                let bounds = Variable::bounded(&ir, interval);
                *variable = Variable { name: variable.name.take(), ..bounds };
            }
        }
        let intervals = domain.intervals(&ir);
        let mut accesses = generic.maps(&ir).into_iter().zip(generic.fills());
        // Simplified, so that a map depends on the variables that it names.
        let mut next_access = || {
            let (mut map, fill) =
                accesses.next().expect("a verified imap.generic has a map per operand");
            let guard = std::mem::take(&mut map.constraints);
            map.simplify(&ir);
            map.constraints = guard;
            (map, fill)
        };
        let body = mlir::arguments(generic.body());
        let epilogue = generic.epilogue().map(mlir::arguments).unwrap_or_default();
        let (inits, accumulators) = (generic.inits(), generic.accumulators());
        let inputs = generic
            .inputs()
            .into_iter()
            .enumerate()
            .map(|(number, buffer)| {
                let in_epilogue = epilogue.get(accumulators.len() + number);
                let is_folded = !mlir::uses(body[number]).is_empty();
                let is_used =
                    is_folded || in_epilogue.is_some_and(|value| !mlir::uses(*value).is_empty());
                let (map, fill) = next_access();
                Input { buffer, map, fill, is_used, is_folded }
            })
            .collect();
        let outputs = inits
            .into_iter()
            .map(|buffer| Output {
                buffer,
                map: next_access().0,
                element: mlir::element_type(buffer.r#type()),
            })
            .collect();
        let (mut runtimes, mut runtime_fills) = (Vec::new(), Vec::new());
        for value in generic.runtimes() {
            let access = mlir::is_memref(value.r#type()).then(&mut next_access);
            let (map, fill) = access.map_or((None, None), |(map, fill)| (Some(map), fill));
            runtimes.push((value, map));
            runtime_fills.push(fill);
        }
        let mut nest = Self {
            ir,
            generic,
            domain,
            intervals,
            inputs,
            outputs,
            accumulators,
            runtimes,
            runtime_fills,
            choices,
            reuses_inputs: false,
        };
        nest.read_scalars();
        Ok(nest)
    }

    /// Reads before the operation the runtime variables that are elements of buffers of rank 0: they are values
    /// from then on.
    fn read_scalars(&mut self) {
        let builder = Builder::before(self.generic.op());
        let is_scalar = |map: &IndexingMap| map.results.is_empty() && map.constraints.is_empty();
        for number in 0..self.runtimes.len() {
            if self.runtimes[number].1.as_ref().is_some_and(is_scalar) {
                let variable = self.ir.runtime(number as u32);
                let value = self.exprs(&builder, &mut Scope::default(), &[variable], false)[0];
                self.runtimes[number] = (value, None);
            }
        }
    }

    /// The scope outside all loops: runtime variables given as values, and variables of
    /// one value.
    pub fn outer_scope(&self, builder: &Builder<'c>) -> Scope<'c> {
        let mut scope = Scope::default();
        for (var, _) in self.domain.vars() {
            if let Some(value) = self.fixed(var) {
                scope.values.insert(var, builder.index(value));
            }
        }
        for (number, (value, map)) in self.runtimes.iter().enumerate() {
            if map.is_none() {
                scope.values.insert(Var::Runtime(number as u32), *value);
            }
        }
        scope
    }

    /// The only value of a dimension or range variable that always has one value: one whose bounds may cross
    /// has none at times.
    pub fn fixed(&self, var: Var) -> Option<i64> {
        let value = self.intervals.of(var).as_point()?;
        let variable = self.domain.variable(var).filter(|_| !matches!(var, Var::Runtime(_)))?;
        let interval = |bound| self.ir.interval_of(bound, &|var| self.intervals.of(var));
        let is_reached =
            |bound: Option<Expr>| bound.map(interval).and_then(|it| it.as_point()) == Some(value);
        (is_reached(variable.lower) && is_reached(variable.upper)).then_some(value)
    }

    /// The extent of a variable, if it is a constant.
    pub fn extent(&self, var: Var) -> Option<i64> {
        self.domain.variable(var)?.constant_interval(&self.ir)?;
        i64::try_from(self.intervals.of(var).num_members()?).ok()
    }

    /// The dimension and range variables on which values of these expressions depend,
    /// through the elements that runtime variables are read from too, other than those of
    /// one value.
    pub fn needs(&self, exprs: &[Expr]) -> BTreeSet<Var> {
        let mut found = BTreeSet::new();
        let mut work: Vec<Var> = self.ir.vars_of_all(exprs).into_iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(var) = work.pop() {
            if !seen.insert(var) {
                continue;
            }
            match var {
                Var::Runtime(number) => {
                    if let Some((_, Some(map))) = self.runtimes.get(number as usize) {
                        work.extend(self.ir.vars_of_all(&accessed(map)));
                    }
                }
                _ if self.fixed(var).is_some() => {}
                _ => {
                    found.insert(var);
                }
            }
        }
        found
    }

    /// The runtime variables of an expression that are read from buffers.
    pub fn elements_in(&self, expr: Expr) -> Vec<Expr> {
        let is_element = |var: &Var| {
            matches!(var, Var::Runtime(number)
                if self.runtimes.get(*number as usize).is_some_and(|(_, map)| map.is_some()))
        };
        let vars = self.ir.vars(expr).into_iter();
        vars.filter(is_element).map(|var| self.ir.var(var)).collect()
    }

    /// The bounds of a dimension or range variable.
    pub fn bounds_of(&self, var: Var) -> (Expr, Expr) {
        let variable = self.domain.variable(var).expect("a variable of the domain");
        let bound = |end: Option<Expr>| end.expect("a verified domain bounds its variables");
        (bound(variable.lower), bound(variable.upper))
    }

    /// The variables whose values the bounds of `var` need.
    pub fn bound_needs(&self, var: Var) -> BTreeSet<Var> {
        let (lower, upper) = self.bounds_of(var);
        self.needs(&[lower, upper])
    }

    /// The values of expressions, reading the runtime variables they need.
    pub fn exprs(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        exprs: &[Expr],
        no_overflow: bool,
    ) -> Vec<Val<'c>> {
        self.read_runtimes(builder, scope, exprs);
        self.emit(builder, scope, exprs, no_overflow)
    }

    fn emit(
        &self,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        exprs: &[Expr],
        no_overflow: bool,
    ) -> Vec<Val<'c>> {
        let intervals = |var| self.intervals.of(var);
        let emitter =
            IndexEmitter { builder: *builder, ir: &self.ir, intervals: &intervals, no_overflow };
        emitter.emit(exprs, &|var| scope.values.get(&var).copied())
    }

    /// Reads the runtime variables that expressions need and that are not known yet.
    fn read_runtimes(&self, builder: &Builder<'c>, scope: &mut Scope<'c>, exprs: &[Expr]) {
        for number in self.unread_runtimes(scope, exprs) {
            let (buffer, map) = &self.runtimes[number as usize];
            let map = map.as_ref().expect("a runtime variable without a map has a value");
            let fill = self.runtime_fills[number as usize];
            let element = self.load_at(builder, scope, *buffer, map, fill);
            let index = builder.index_type();
            // A variable that is never negative is read as an unsigned number, which
            // it may well be; a signed element that keeps to the bounds reads the same.
            let interval = self.intervals.of(Var::Runtime(number));
            let value = if element.r#type() == index {
                element
            } else if 0 <= interval.lo {
                builder.value("arith.index_castui", &[element], index)
            } else {
                builder.value("arith.index_cast", &[element], index)
            };
            scope.values.insert(Var::Runtime(number), value);
        }
    }

    /// The runtime variables that have to be read for expressions, those that others
    /// are read with first.
    fn unread_runtimes(&self, scope: &Scope<'c>, exprs: &[Expr]) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        let mut work: Vec<Var> = self.ir.vars_of_all(exprs).into_iter().collect();
        while let Some(var) = work.pop() {
            if let Var::Runtime(number) = var
                && !scope.values.contains_key(&var)
                && found.insert(number)
                && let Some((_, Some(map))) = self.runtimes.get(number as usize)
            {
                work.extend(self.ir.vars_of_all(&accessed(map)));
            }
        }
        found
    }

    /// The bounds of the loop over `var`, the upper one excluded, tightened by the
    /// constraints given.
    pub fn loop_bounds(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        var: Var,
        tightening: &[usize],
    ) -> (Val<'c>, Val<'c>) {
        let (mut lower, mut upper) = match scope.strips.get(&var) {
            Some(strip) => *strip,
            None => {
                let (lower, upper) = self.bounds_of(var);
                let end = self.ir.add(upper, self.ir.constant(1));
                let values = self.exprs(builder, scope, &[lower, end], false);
                (values[0], values[1])
            }
        };
        for number in tightening {
            let constraint = &self.domain.constraints[*number];
            (lower, upper) = self.tighten(builder, scope, constraint, var, (lower, upper));
        }
        (lower, upper)
    }

    /// The part of the values of `var` between two bounds, the upper one excluded, at which a
    /// constraint holds.
    pub fn tighten(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        constraint: &Constraint,
        var: Var,
        (mut lower, mut upper): (Val<'c>, Val<'c>),
    ) -> (Val<'c>, Val<'c>) {
        let index = builder.index_type();
        let (min, end) = self.tightened(constraint, var);
        if let Some(min) = min {
            let value = self.exprs(builder, scope, &[min], false)[0];
            lower = builder.value("arith.maxsi", &[lower, value], index);
        }
        if let Some(end) = end {
            let value = self.exprs(builder, scope, &[end], false)[0];
            upper = builder.value("arith.minsi", &[upper, value], index);
        }
        (lower, upper)
    }

    /// Whether elements have to be read for the values of expressions.
    pub fn must_read(&self, scope: &Scope<'c>, exprs: &[Expr]) -> bool {
        !self.unread_runtimes(scope, exprs).is_empty()
    }

    /// Where a constraint `factor * var + rest in [lo, hi]` lets `var` begin and, excluded, end.
    fn tightened(&self, constraint: &Constraint, var: Var) -> (Option<Expr>, Option<Expr>) {
        let ir = &self.ir;
        let factor = self.ir.coefficient(constraint.expr, var).unwrap_or(1);
        let rest = ir.substitute(constraint.expr, &|it| (it == var).then(|| ir.constant(0)));
        let rest = ir.wrap(rest);
        let lo = Some(constraint.interval.lo).filter(|lo| *lo != i64::MIN);
        let hi = Some(constraint.interval.hi).filter(|hi| *hi != i64::MAX);
        // The least and the greatest value of `step * var`, for a positive step.
        let (least, greatest) = if 0 < factor {
            (lo.map(|lo| lo - rest), hi.map(|hi| hi - rest))
        } else {
            (hi.map(|hi| rest - hi), lo.map(|lo| rest - lo))
        };
        let step = ir.constant(factor.saturating_abs());
        let steps = |value: Expr| ir.floor_div(value, step);
        let one = ir.constant(1);
        let before = |value| steps(ir.sub(value, one));
        let first = least.map(|it| ir.add(before(it.into()), one));
        (first, greatest.map(|it| ir.add(steps(it.into()), one)))
    }

    /// Splits the constraints between the loops that run in this order: those which
    /// tighten the loop of each variable, and those left to be tested inside. Only loops
    /// whose points may be skipped can be tightened.
    pub fn distribute_constraints(
        &self,
        order: &[Var],
        may_skip: &dyn Fn(Var) -> bool,
    ) -> (BTreeMap<Var, Vec<usize>>, Vec<usize>) {
        let mut tightening: BTreeMap<Var, Vec<usize>> = BTreeMap::new();
        let mut tested = Vec::new();
        for (number, constraint) in self.domain.constraints.iter().enumerate() {
            let needs = self.needs(&[constraint.expr]);
            let last = order.iter().rev().find(|var| needs.contains(var));
            // Through an element that is read there, the constraint may need the variable.
            let from_buffers = !self.elements_in(constraint.expr).is_empty();
            match last {
                Some(var)
                    if may_skip(*var)
                        && !from_buffers
                        && self.ir.coefficient(constraint.expr, *var).is_some_and(|it| it != 0) =>
                {
                    tightening.entry(*var).or_default().push(number);
                }
                _ => tested.push(number),
            }
        }
        (tightening, tested)
    }

    /// The number of values that variables have together; `None` if it is unknown.
    pub fn num_points(&self, vars: &[Var]) -> Option<i64> {
        let mut extents = vars.iter().map(|var| self.extent(*var));
        extents.try_fold(1i64, |product, extent| product.checked_mul(extent?))
    }

    /// Runs `then` where the constraints hold; elsewhere the values are `otherwise`.
    pub fn guarded(
        &self,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        constraints: &[usize],
        otherwise: &[Val<'c>],
        then: &mut dyn FnMut(&Builder<'c>, &mut Scope<'c>) -> Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        let mut scope = scope.clone();
        let mut ready = Vec::new();
        let mut late = Vec::new();
        for number in constraints {
            let expr = self.domain.constraints[*number].expr;
            // An element may exist only where the constraints on its place hold.
            let list = if self.unread_runtimes(&scope, &[expr]).is_empty() {
                &mut ready
            } else {
                &mut late
            };
            list.push(*number);
        }
        if ready.is_empty() {
            let Some((first, rest)) = late.split_first() else {
                return then(builder, &mut scope);
            };
            ready = vec![*first];
            late = rest.to_vec();
        }
        let ready: Vec<_> =
            ready.into_iter().map(|number| self.domain.constraints[number]).collect();
        let Some(condition) = self.condition(builder, &mut scope, &ready) else {
            return self.guarded(builder, &scope, &late, otherwise, then);
        };
        loops::build_if(
            builder,
            condition,
            &mut |inside| self.guarded(inside, &scope, &late, otherwise, then),
            &mut |_| otherwise.to_vec(),
        )
    }

    /// Whether constraints hold; `None` if that is known.
    pub fn condition(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        constraints: &[Constraint],
    ) -> Option<Val<'c>> {
        let held = scope.held.clone();
        let mut condition: Option<Val> = None;
        for constraint in constraints.iter().filter(|it| !held.contains(it)) {
            let value = self.exprs(builder, scope, &[constraint.expr], false)[0];
            let Interval { lo, hi } = constraint.interval;
            let ends = [("sge", lo, i64::MIN), ("sle", hi, i64::MAX)];
            for (predicate, end, _) in ends.into_iter().filter(|(_, end, none)| end != none) {
                let end = builder.index(end);
                let holds = builder.compare_int(predicate, value, end);
                condition = Some(match condition {
                    Some(all) => builder.value("arith.andi", &[all, holds], builder.int_type(1)),
                    None => holds,
                });
            }
        }
        condition
    }

    /// The element of a buffer that a map selects, or a constant where its constraints do not hold.
    pub fn load_at(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        buffer: Val<'c>,
        map: &IndexingMap,
        fill: Option<Attribute<'c>>,
    ) -> Val<'c> {
        let ty = mlir::signless(builder.context, mlir::element_type(buffer.r#type()));
        if scope.failed.contains(&map.constraints) {
            return imap::build_fill(builder, fill, ty);
        }
        let Some(condition) = self.condition(builder, scope, &map.constraints) else {
            let indices = self.exprs(builder, scope, &map.results, true);
            return loops::build_load(builder, buffer, &indices);
        };
        let results = loops::build_if(
            builder,
            condition,
            &mut |inside| {
                let indices = self.exprs(inside, &mut scope.clone(), &map.results, true);
                vec![loops::build_load(inside, buffer, &indices)]
            },
            &mut |inside| vec![imap::build_fill(inside, fill, ty)],
        );
        results[0]
    }

    /// Loads, in front of loops over some variables, the inputs of the body whose elements do not depend on them. A store
    /// in the loops keeps LLVM from doing so.
    pub fn load_invariant(&self, builder: &Builder<'c>, scope: &mut Scope<'c>, loops: &[Var]) {
        let runs = loops.iter().all(|var| self.extent(*var).is_some_and(|extent| 0 < extent));
        let arguments = mlir::arguments(self.generic.body());
        for (number, input) in self.inputs.iter().enumerate() {
            let exists = input.map.results.is_empty() || runs && self.domain.constraints.is_empty();
            let needs = self.needs(&accessed(&input.map));
            if exists
                && !mlir::uses(arguments[number]).is_empty()
                && loops.iter().all(|var| !needs.contains(var))
                && self.outputs.iter().all(|output| output.buffer != input.buffer)
            {
                let (map, fill) = (&input.map, input.fill);
                let element = self.load_at(builder, scope, input.buffer, map, fill);
                scope.loaded.insert(number, element);
            }
        }
    }

    /// What destination `number` holds.
    pub fn load_output(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        number: usize,
    ) -> Val<'c> {
        let output = &self.outputs[number];
        self.load_at(builder, scope, output.buffer, &output.map, None)
    }

    /// Stores a value in destination `number`.
    pub fn store_output(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        number: usize,
        value: Val<'c>,
    ) {
        let output = &self.outputs[number];
        let indices = self.exprs(builder, scope, &output.map.results, true);
        loops::build_store(builder, value, output.buffer, &indices);
    }

    /// What an accumulator starts from.
    pub fn start(&self, builder: &Builder<'c>, scope: &mut Scope<'c>, number: usize) -> Val<'c> {
        let load = |output| self.load_output(builder, scope, output);
        self.accumulators[number].build_start(builder, load)
    }

    /// Whether the order of the fold shows in its results.
    pub fn rounds(&self) -> bool {
        self.generic.rounds()
    }

    /// Whether the order of the ranges has to be kept: an ordered fold asks for it, or rounding shows it
    /// and floats are kept as they are.
    pub fn keeps_order(&self) -> bool {
        self.generic.keeps_order() || self.choices.strict_fp && self.rounds()
    }

    /// Whether values are stored as they are, at the points that satisfy the constraints only.
    pub fn is_map_form(&self) -> bool {
        self.accumulators.is_empty()
    }

    /// The number of values that the body computes.
    pub fn num_values(&self) -> usize {
        if self.is_map_form() { self.outputs.len() } else { self.accumulators.len() }
    }

    /// Whether each destination can hold an accumulator.
    pub fn is_paired(&self) -> bool {
        let elements = self.outputs.iter().map(|it| it.element);
        elements.eq(self.accumulators.iter().map(|it| it.ty))
    }

    /// Evaluates the body at the point of the scope.
    pub fn compute(&self, builder: &Builder<'c>, scope: &mut Scope<'c>) -> Vec<Val<'c>> {
        self.copy_block(builder, scope, self.generic.body(), &[])
    }

    /// Evaluates the body at the point of the scope and folds its values into `folded`.
    pub fn fold(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        folded: &[Val<'c>],
    ) -> Vec<Val<'c>> {
        let values = self.compute(builder, scope);
        self.combine(builder, scope, folded, &values)
    }

    /// Folds a value per accumulator into others.
    pub fn combine(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        folded: &[Val<'c>],
        values: &[Val<'c>],
    ) -> Vec<Val<'c>> {
        match self.generic.combiner() {
            Some(combiner) => self.copy_block(builder, scope, combiner, &[folded, values].concat()),
            None => self.combine_by_name(builder, folded, values),
        }
    }

    /// Folds values, which may be vectors, into others by combiners with a name.
    pub fn combine_by_name(
        &self,
        builder: &Builder<'c>,
        folded: &[Val<'c>],
        values: &[Val<'c>],
    ) -> Vec<Val<'c>> {
        let pairs = folded.iter().zip(values);
        let combine = |(accumulator, (old, new)): (&Accumulator<'c>, (&Val<'c>, &Val<'c>))| {
            let value = accumulator.kind.build(builder, *old, *new);
            if let Some(op) = mlir::defining_op(value) {
                let reassociate = if self.generic.is_ordered() { "" } else { "reassoc," };
                self.relax(op, &format!("#arith.fastmath<{reassociate}contract>"));
            }
            value
        };
        self.accumulators.iter().zip(pairs).map(combine).collect()
    }

    /// What is stored for the folded values.
    pub fn finish(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        folded: Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        match self.generic.epilogue() {
            Some(epilogue) => self.copy_block(builder, scope, epilogue, &folded),
            None => folded,
        }
    }

    /// Combines folded values with the starts of a point, and stores its results.
    pub fn start_and_store(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        folded: &[Val<'c>],
    ) {
        let numbers = 0..self.accumulators.len();
        let starts: Vec<_> = numbers.map(|number| self.start(builder, scope, number)).collect();
        let folded = self.combine(builder, scope, &starts, folded);
        self.finish_and_store(builder, scope, folded);
    }

    /// Stores the results of a point for the folded values.
    pub fn finish_and_store(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        folded: Vec<Val<'c>>,
    ) {
        for (number, value) in self.finish(builder, scope, folded).into_iter().enumerate() {
            self.store_output(builder, scope, number, value);
        }
    }

    /// Copies a block of the operation, whose arguments are `first` and the elements of
    /// the inputs, and returns what it yields.
    fn copy_block(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        block: Blk<'c>,
        first: &[Val<'c>],
    ) -> Vec<Val<'c>> {
        let mut map = ValueMap::default();
        let arguments = mlir::arguments(block);
        for (argument, value) in arguments.iter().zip(first) {
            map.insert(*argument, *value);
        }
        let elements = arguments[first.len()..].iter().zip(&self.inputs).enumerate();
        for (number, (argument, input)) in elements {
            if mlir::uses(*argument).is_empty() {
                continue;
            }
            let loaded = scope.loaded.get(&number).copied();
            let value = loaded.unwrap_or_else(|| {
                self.load_at(builder, scope, input.buffer, &input.map, input.fill)
            });
            map.insert(*argument, value);
        }
        for op in mlir::ops(block) {
            if mlir::is(op, "imap.yield") {
                let yielded = mlir::operands(op);
                return yielded.into_iter().map(|value| map.get(value).unwrap_or(value)).collect();
            }
            if let Some(var) = index_of(op) {
                map.insert(mlir::result(op, 0), scope.values[&var]);
            } else if let Some(inside) = Inside::cast(op) {
                let conditions = inside.conditions(&self.ir);
                let known = |value| builder.integer(builder.int_type(1), value);
                let holds = match scope.failed.contains(&conditions) {
                    true => known(0),
                    false => {
                        self.condition(builder, scope, &conditions).unwrap_or_else(|| known(1))
                    }
                };
                map.insert(mlir::result(op, 0), holds);
            } else {
                let copy = builder.copy(op, &mut map);
                mlir::walk(copy, &mut |op| self.relax(op, "#arith.fastmath<contract>"));
            }
        }
        Vec::new()
    }

    /// Sets the flags of a floating-point operation that has none of its own.
    pub fn relax(&self, op: Op<'c>, flags: &str) {
        const RELAXED: [&str; 3] = ["arith.addf", "arith.mulf", "arith.subf"];
        if self.choices.strict_fp || !RELAXED.contains(&mlir::name(op)) {
            return;
        }
        let none = |found: Attribute| found.to_string().contains("none");
        if op.attribute("fastmath").map_or(true, none) {
            mlir::set_attribute(op, "fastmath", mlir::parse_attribute(mlir::context_of(op), flags));
        }
    }
}

/// The expressions that an access evaluates: the guard and the subscripts.
pub(in crate::convert) fn accessed(map: &IndexingMap) -> Vec<Expr> {
    [&constrained(&map.constraints)[..], &map.results].concat()
}

/// The expressions of constraints.
pub(in crate::convert) fn constrained(constraints: &[Constraint]) -> Vec<Expr> {
    constraints.iter().map(|it| it.expr).collect()
}

/// The variable of an `imap.index`.
pub(in crate::convert) fn index_of(op: Op) -> Option<Var> {
    mlir::is(op, "imap.index").then(|| index_variable(op)).flatten()
}

/// Moves every `imap.index` and `imap.inside` that stands in a nested region to the front of the body,
/// so that copying the body meets them first.
fn hoist_indices(generic: AnyIndexed) {
    for block in generic.blocks() {
        let first = mlir::ops(block)[0];
        for op in mlir::ops(block) {
            mlir::walk(op, &mut |inner| {
                let is_of_point = mlir::is(inner, "imap.index") || mlir::is(inner, Inside::NAME);
                if is_of_point && inner != first {
                    mlir::move_before(inner, first);
                }
            });
        }
    }
}
