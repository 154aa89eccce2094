//! Builds fused operations.

mod merge;
mod rescale;

use super::{
    candidate::Candidate,
    legality::{Composition, Form},
};
use melior::ir::{Attribute, ValueLike, operation::OperationLike};
use std::collections::{BTreeSet, HashMap};
use tc_dialects::{
    imap::{self, Access, AnyIndexed, Indexed, Inside, Runtime, View, verify::index_variable},
    mlir::{self, Blk, Builder, Val, ValueMap},
};
use tc_ir::{
    Context,
    expr::{Expr, Var},
    map::{Constraint, IndexingMap, Variable},
    simplify::Simplifier,
};

/// The operation under construction: variables, and operands with their maps.
pub(super) struct Frame<'c, 'i> {
    pub(super) ir: &'i Context,
    pub(super) domain: IndexingMap,
    pub(super) runtimes: Vec<Runtime<'c>>,
    pub(super) inputs: Vec<Access<'c>>,
}

impl<'c, 'i> Frame<'c, 'i> {
    /// The variables of an operation.
    pub(super) fn of(ir: &'i Context, candidate: &Candidate<'c>) -> Self {
        Self {
            ir,
            domain: candidate.view.domain.clone(),
            runtimes: candidate.view.runtimes.clone(),
            inputs: Vec::new(),
        }
    }

    /// Adds the runtime variables of the producer at these values of its dimension
    /// variables. Returns these values and the runtime variables as expressions of this
    /// operation. Equal runtime variables are shared.
    ///
    /// `dims` refers to runtime variable `k` of the producer as number `base + k`.
    pub(super) fn add_runtimes(
        &mut self,
        producer: &View<'c>,
        base: usize,
        dims: &[Expr],
    ) -> (Vec<Expr>, Vec<Expr>) {
        let ir = self.ir;
        let variables = &producer.domain.runtimes;
        let num_before = self.runtimes.len();
        let mut exprs: Vec<Option<Expr>> = vec![None; variables.len()];
        // The variables in `dims`, and those that they need, come first: they do not depend on
        // the dimension variables.
        let in_dims = runtime_numbers(ir, dims).filter_map(|number| number.checked_sub(base));
        let mut work: Vec<usize> = in_dims.collect();
        let mut needed = BTreeSet::new();
        while let Some(number) = work.pop() {
            if needed.insert(number) {
                let access = producer.runtimes[number].access().into_iter().flat_map(Access::exprs);
                let exprs: Vec<_> = access.chain(bounds(&variables[number])).collect();
                work.extend(runtime_numbers(ir, &exprs));
            }
        }
        for number in needed {
            self.add_runtime(producer, number, &[], &mut exprs);
        }
        let dims = ir.substitute_all(dims, &|var| match var {
            Var::Runtime(number) => *exprs.get((number as usize).checked_sub(base)?)?,
            _ => None,
        });
        for number in 0..variables.len() {
            if exprs[number].is_none() {
                self.add_runtime(producer, number, &dims, &mut exprs);
            }
        }
        let exprs: Vec<Expr> = exprs.into_iter().flatten().collect();
        // Bounds may use any of the variables.
        for (expr, variable) in exprs.iter().zip(variables) {
            if let Some(Var::Runtime(place)) = ir.as_var(*expr)
                && num_before <= place as usize
            {
                let renumbered = |bound: Expr| ir.substitute(bound, &in_place_of_runtimes(&exprs));
                let new = &mut self.domain.runtimes[place as usize];
                new.lower = variable.lower.map(renumbered);
                new.upper = variable.upper.map(renumbered);
            }
        }
        (dims, exprs)
    }

    /// Adds a runtime variable of the producer, or finds an equal one, and notes its expression.
    pub(super) fn add_runtime(
        &mut self,
        producer: &View<'c>,
        number: usize,
        dims: &[Expr],
        exprs: &mut [Option<Expr>],
    ) {
        let ir = self.ir;
        let mut runtime = producer.runtimes[number].clone();
        let mut variable = producer.domain.runtimes[number].clone();
        let renumbered = |var| match var {
            Var::Dim(dim) => dims.get(dim as usize).copied(),
            Var::Runtime(number) => exprs[number as usize],
            Var::Range(_) => None,
        };
        if let Runtime::Element(access) = &mut runtime {
            access.substitute(ir, &renumbered);
        }
        let in_bounds: Vec<_> = bounds(&variable).collect();
        let are_known = runtime_numbers(ir, &in_bounds).all(|it| exprs[it].is_some());
        let renumbered = |bound: Option<Expr>| bound.map(|it| ir.substitute(it, &renumbered));
        let (lower, upper) = (renumbered(variable.lower), renumbered(variable.upper));
        // Bounds decide how an element is read: as a signed or as an unsigned number.
        let is_equal = |known: &usize| {
            let other = &self.domain.runtimes[*known];
            self.runtimes[*known] == runtime && (other.lower, other.upper) == (lower, upper)
        };
        let known = (0..self.runtimes.len()).find(is_equal).filter(|_| are_known);
        let place = known.unwrap_or_else(|| {
            if self.domain.runtimes.iter().any(|other| other.name == variable.name) {
                variable.name = None;
            }
            self.runtimes.push(runtime);
            self.domain.runtimes.push(variable);
            self.runtimes.len() - 1
        });
        exprs[number] = Some(ir.runtime(place as u32));
    }

    /// Adds an input, or finds an equal one, and gives its number.
    pub(super) fn add_input(&mut self, access: Access<'c>) -> usize {
        let known = self.inputs.iter().position(|known| *known == access);
        known.unwrap_or_else(|| {
            self.inputs.push(access);
            self.inputs.len() - 1
        })
    }

    /// An operation with these destinations, with the folds of another operation, and with
    /// an epilogue if `epilogue`; and the numbers of the runtime variables that are left. `conditions`
    /// are those of `imap.inside`.
    pub(super) fn view(
        &self,
        outputs: &[Access<'c>],
        folds: &Candidate<'c>,
        epilogue: bool,
        conditions: &[Constraint],
    ) -> (View<'c>, Vec<usize>) {
        // Folds store, and their epilogue reads, where the constraints do not hold as well.
        let mut whole = self.domain.clone();
        if !folds.view.accumulators.is_empty() {
            whole.constraints.clear();
        }
        let inside = if epilogue { &whole } else { &self.domain };
        let mut of_inputs = Simplifier::for_map(self.ir, inside);
        let mut of_others = Simplifier::for_map(self.ir, &whole);
        let simplify = |simplifier: &mut Simplifier, access: &mut Access<'c>| {
            for it in &mut access.guard {
                it.expr = simplifier.simplify(it.expr);
            }
            access.guard.retain(|it| !it.interval.covers(simplifier.interval_of(it.expr)));
            for subscript in &mut access.subscripts {
                *subscript = simplifier.simplify(*subscript);
            }
        };
        let mut view = View {
            domain: self.domain.clone(),
            runtimes: self.runtimes.clone(),
            inputs: self.inputs.clone(),
            outputs: outputs.to_vec(),
            accumulators: folds.view.accumulators.clone(),
            ordered: folds.view.ordered,
            combiner: folds.view.combiner,
        };
        let num_inputs = view.inputs.len();
        for (number, access) in view.accesses_mut().enumerate() {
            let is_input = number < num_inputs;
            simplify(if is_input { &mut of_inputs } else { &mut of_others }, access);
        }
        let kept = view.drop_unused_runtimes(self.ir, conditions);
        (view, kept)
    }
}

pub(super) fn bounds(variable: &Variable) -> impl Iterator<Item = Expr> + use<> {
    variable.lower.into_iter().chain(variable.upper)
}

/// Puts expressions in the place of the runtime variables of these numbers.
pub(super) fn in_place_of_runtimes(exprs: &[Expr]) -> impl Fn(Var) -> Option<Expr> {
    move |var| match var {
        Var::Runtime(number) => exprs.get(number as usize).copied(),
        _ => None,
    }
}

/// The numbers of the runtime variables in expressions.
fn runtime_numbers(ir: &Context, exprs: &[Expr]) -> impl Iterator<Item = usize> + use<> {
    ir.vars_of_all(exprs).into_iter().filter_map(|var| match var {
        Var::Runtime(number) => Some(number as usize),
        _ => None,
    })
}

/// A copy of the producer in the operation under construction.
struct Copied {
    /// The numbers of its inputs.
    inputs: Vec<usize>,
    /// Its dimension and runtime variables.
    dims: Vec<Expr>,
    runtimes: Vec<Expr>,
    /// Its range variables; none if they have the same numbers.
    ranges: Vec<Expr>,
}

impl Copied {
    fn replacement(&self, var: Var) -> Option<Expr> {
        match var {
            Var::Dim(number) => self.dims.get(number as usize).copied(),
            Var::Runtime(number) => self.runtimes.get(number as usize).copied(),
            Var::Range(number) => self.ranges.get(number as usize).copied(),
        }
    }
}

impl<'c, 'i> Composition<'c, 'i> {
    pub(super) fn build(self) -> AnyIndexed<'c> {
        match self.form {
            Form::Epilogue => self.build_epilogue(),
            Form::Producer | Form::Fold => self.build_producer(),
        }
    }

    fn builder(&self) -> Builder<'c> {
        let consumer = self.consumer.generic.op();
        let builder = Builder::before(consumer);
        let producer = self.producer.generic.op().location();
        builder.located(imap::fused_location(builder.context, consumer.location(), producer))
    }

    /// Adds the reads of the producer's inputs, over the consumer's variables, to the frame. They are
    /// under the guard of the consumer's read as well.
    fn add_producer_inputs(
        &self,
        frame: &mut Frame<'c, 'i>,
        dims: &[Expr],
        guard: &[Constraint],
        fill: Option<Attribute<'c>>,
    ) -> Copied {
        let base = self.consumer.view.runtimes.len();
        let (dims, runtimes) = frame.add_runtimes(&self.producer.view, base, dims);
        let ranges = match self.form {
            Form::Fold => {
                let first = self.consumer.view.domain.ranges.len() as u32;
                let count = self.producer.view.domain.ranges.len() as u32;
                (first..first + count).map(|number| self.ir.range(number)).collect()
            }
            Form::Producer | Form::Epilogue => Vec::new(),
        };
        let mut copied = Copied { inputs: Vec::new(), dims, runtimes, ranges };
        for input in &self.producer.view.inputs {
            let mut access = input.clone();
            access.substitute(self.ir, &|var| copied.replacement(var));
            access.guard.extend(guard);
            if !guard.is_empty() && self.producer.copies(fill) {
                access.fill = fill;
            }
            copied.inputs.push(frame.add_input(access));
        }
        copied
    }

    /// The conditions of every `imap.inside` of the operation under construction.
    fn conditions<'a>(&self, copies: impl Iterator<Item = &'a Copied>) -> Vec<Constraint> {
        let mut conditions = Inside::conditions_in(self.ir, &self.consumer.generic.blocks());
        let guards = self.reads.iter().map(|read| &self.consumer.view.inputs[*read].guard);
        conditions.extend(guards.flatten());
        let of_producer = Inside::conditions_in(self.ir, &self.producer.generic.blocks());
        for copied in copies {
            let mut moved = of_producer.clone();
            imap::substitute_constraints(self.ir, &mut moved, &|var| copied.replacement(var));
            conditions.extend(moved);
        }
        conditions
    }

    fn build_producer(self) -> AnyIndexed<'c> {
        let ir = self.ir;
        let consumer = &self.consumer;
        let mut frame = Frame::of(ir, consumer);
        // What stands for each input of the consumer: an input, or a body of the producer.
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        let mut bodies: HashMap<usize, Copied> = HashMap::new();
        for (number, access) in consumer.view.inputs.iter().enumerate() {
            match self.reads.iter().position(|read| *read == number) {
                Some(read) => {
                    let (dims, guard) = (&self.dims[read], &access.guard);
                    let copied = self.add_producer_inputs(&mut frame, dims, guard, access.fill);
                    if self.form == Form::Fold {
                        let replacement = |var| copied.replacement(var);
                        let ranges = moved_ranges(ir, &self.producer.view, &replacement);
                        frame.domain.ranges.extend(ranges);
                    }
                    bodies.insert(number, copied);
                }
                None => {
                    numbers.insert(number, frame.add_input(access.clone()));
                }
            }
        }
        let builder = self.builder();
        let epilogue = consumer.generic.epilogue().is_some();
        let conditions = self.conditions(bodies.values());
        let outputs = &consumer.view.outputs;
        let (view, kept) = frame.view(outputs, consumer, epilogue, &conditions);
        let fused = view.build_like(ir, &builder, consumer.generic);
        let num_folded = view.accumulators.len();
        let blocks = [(Some(consumer.generic.body()), Some(fused.body()), 0)];
        let epilogues = [(consumer.generic.epilogue(), fused.epilogue(), num_folded)];
        for (old, new, offset) in blocks.into_iter().chain(epilogues) {
            let (Some(old), Some(new)) = (old, new) else { continue };
            let inside = Builder::at_end(builder.context, new, builder.location);
            let (old_arguments, new_arguments) = (mlir::arguments(old), mlir::arguments(new));
            let mut values = ValueMap::default();
            for folded in 0..offset {
                values.insert(old_arguments[folded], new_arguments[folded]);
            }
            for (number, argument) in old_arguments[offset..].iter().enumerate() {
                if let Some(new) = numbers.get(&number) {
                    values.insert(*argument, new_arguments[offset + new]);
                } else if !mlir::uses(*argument).is_empty() {
                    let copied = &bodies[&number];
                    let arguments: Vec<_> =
                        copied.inputs.iter().map(|input| new_arguments[offset + input]).collect();
                    let body = self.producer.generic.body();
                    let mut value = copy_body(&frame, &inside, body, &arguments, copied)[0];
                    let Access { guard, fill, .. } = &consumer.view.inputs[number];
                    if !guard.is_empty() && !self.producer.copies(*fill) {
                        let holds = imap::build_inside(&inside, ir, guard);
                        let fill = imap::build_fill(&inside, *fill, value.r#type());
                        value = inside.select(holds, value, fill);
                    }
                    values.insert(*argument, value);
                }
            }
            copy_rest(&inside, old, &mut values);
        }
        imap::substitute_in_conditions(ir, &fused.blocks(), &imap::renumbering(ir, &kept));
        fused
    }

    fn build_epilogue(self) -> AnyIndexed<'c> {
        let ir = self.ir;
        let (consumer, producer) = (&self.consumer, &self.producer);
        let mut frame = Frame::of(ir, consumer);
        let base = consumer.view.runtimes.len();
        let (_, runtimes) = frame.add_runtimes(&producer.view, base, &self.dims[0]);
        let replacement = in_place_of_runtimes(&runtimes);
        frame.domain.ranges = moved_ranges(ir, &producer.view, &replacement);
        let copied = self.add_producer_inputs(&mut frame, &self.dims[0], &[], None);
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        for (number, access) in consumer.view.inputs.iter().enumerate() {
            if !self.reads.contains(&number) {
                numbers.insert(number, frame.add_input(access.clone()));
            }
        }
        let builder = self.builder();
        let conditions = self.conditions(std::iter::once(&copied));
        let (view, kept) = frame.view(&consumer.view.outputs, producer, true, &conditions);
        let fused = AnyIndexed::from(view.build(ir, &builder, true));

        let inside = Builder::at_end(builder.context, fused.body(), builder.location);
        let new_arguments = mlir::arguments(fused.body());
        let arguments: Vec<_> = copied.inputs.iter().map(|input| new_arguments[*input]).collect();
        let values = copy_body(&frame, &inside, producer.generic.body(), &arguments, &copied);
        imap::build_yield(&inside, &values);

        let epilogue = fused.epilogue().expect("it was asked for");
        let inside = Builder::at_end(builder.context, epilogue, builder.location);
        let new_arguments = mlir::arguments(epilogue);
        let (folded, read) = new_arguments.split_at(view.accumulators.len());
        let result = match producer.generic.epilogue() {
            None => folded[0],
            Some(old) => {
                let inputs = copied.inputs.iter().map(|input| read[*input]);
                let arguments: Vec<_> = folded.iter().copied().chain(inputs).collect();
                copy_body(&frame, &inside, old, &arguments, &copied)[0]
            }
        };
        let mut values = ValueMap::default();
        for (number, argument) in mlir::arguments(consumer.generic.body()).into_iter().enumerate() {
            let value = numbers.get(&number).map_or(result, |input| read[*input]);
            values.insert(argument, value);
        }
        copy_rest(&inside, consumer.generic.body(), &mut values);
        imap::substitute_in_conditions(ir, &fused.blocks(), &imap::renumbering(ir, &kept));
        fused
    }
}

/// The range variables of an operation, with other variables in their bounds.
fn moved_ranges(
    ir: &Context,
    view: &View,
    replacement: &dyn Fn(Var) -> Option<Expr>,
) -> Vec<Variable> {
    let moved = |variable: &Variable| Variable {
        name: variable.name.clone(),
        lower: variable.lower.map(|bound| ir.substitute(bound, replacement)),
        upper: variable.upper.map(|bound| ir.substitute(bound, replacement)),
    };
    view.domain.ranges.iter().map(moved).collect()
}

/// Copies a block with these arguments and variables. Returns the yielded values.
fn copy_body<'c>(
    frame: &Frame<'c, '_>,
    inside: &Builder<'c>,
    block: Blk<'c>,
    arguments: &[Val<'c>],
    copied: &Copied,
) -> Vec<Val<'c>> {
    let arguments = arguments.iter().copied();
    let mut values: ValueMap = mlir::arguments(block).into_iter().zip(arguments).collect();
    for op in mlir::ops(block) {
        if mlir::is(op, "imap.yield") {
            let copy = |value| values.get(value).unwrap_or(value);
            return mlir::operands(op).into_iter().map(copy).collect();
        }
        let copy = inside.located(op.location()).copy(op, &mut values);
        let mut inner = Vec::new();
        mlir::walk(copy, &mut |op| inner.push(op));
        for asked in inner {
            if let Some(inside) = Inside::cast(asked) {
                inside.substitute(frame.ir, &|var| copied.replacement(var));
            }
            let asks = mlir::is(asked, "imap.index").then(|| index_variable(asked)).flatten();
            let Some(expr) = asks.and_then(|var| copied.replacement(var)) else {
                continue;
            };
            let value = build_index(frame, &Builder::before(asked), expr);
            if asked == copy {
                values.insert(mlir::result(op, 0), value);
            }
            mlir::replace(asked, &[value]);
        }
    }
    unreachable!("a verified body ends in imap.yield")
}

/// Copies the operations of a block, its terminator included.
pub(super) fn copy_rest<'c>(inside: &Builder<'c>, block: Blk<'c>, values: &mut ValueMap<'c>) {
    for op in mlir::ops(block) {
        inside.located(op.location()).copy(op, values);
    }
}

/// Emits the value of an expression over the variables of the operation under construction.
fn build_index<'c>(frame: &Frame<'c, '_>, builder: &Builder<'c>, expr: Expr) -> Val<'c> {
    let ir = frame.ir;
    let vars: Vec<Var> = ir.vars(expr).into_iter().collect();
    let operands: Vec<Val> = vars
        .iter()
        .map(|var| {
            let (kind, number) = match *var {
                Var::Runtime(number) => return frame.runtimes[number as usize].value(),
                Var::Dim(number) => ("dim", number),
                Var::Range(number) => ("range", number),
            };
            imap::build_index(builder, kind, number)
        })
        .collect();
    let position = |var: Var| vars.iter().position(|known| *known == var);
    let map = IndexingMap {
        dims: vec![Variable::default(); vars.len()],
        results: vec![ir.substitute(expr, &|var| position(var).map(|place| ir.dim(place as u32)))],
        ..IndexingMap::default()
    };
    imap::build_apply(builder, ir, &map, &operands)[0]
}
