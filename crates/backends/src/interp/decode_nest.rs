//! Decodes `imap.generic`, `imap.scan` and `tc.comprehension` into a [`LoopNest`].

use super::{
    decode::{Decoder, Known, is_last_use, scalar_type},
    decode_scalar::constant,
    error::Error,
    fold::FoldKind,
    integer::ScalarType,
    program::{
        Accumulator, At, Branch, Code, Combiner, FoldStart, If, Inside, Inst, Loop, LoopNest,
        MemoryInst, Moves, Output, Place, Promise, Reg, Scan, Scatter, Start,
    },
    scalar::Scalar,
};
use melior::ir::{Attribute, Type, ValueLike};
use std::collections::HashSet;
use tc_dialects::{
    imap::{self, AnyIndexed, CombinerKind, Indexed},
    mlir::{self, Op, Val},
    tc::Comprehension,
};
use tc_ir::{Constraint, Expr, IndexingMap, Var, Variable};

/// A map, and the constant where its constraints do not hold.
type Access<'c> = (IndexingMap, Option<Attribute<'c>>);

/// The registers of the variables of a domain.
struct Registers {
    dims: Vec<Reg>,
    ranges: Vec<Reg>,
    runtimes: Vec<Reg>,
    /// When the value of each runtime variable is known.
    stages: Vec<Stage>,
}

/// When a value is known: before the nest, at a point of the dimensions, or at a point of
/// dimensions and ranges.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Before,
    Dim,
    Point,
}

impl Registers {
    fn stage(&self, var: Var) -> Stage {
        match var {
            Var::Dim(_) => Stage::Dim,
            Var::Range(_) => Stage::Point,
            Var::Runtime(number) => {
                self.stages.get(number as usize).copied().unwrap_or(Stage::Point)
            }
        }
    }

    /// The register of a variable that is known at a stage.
    fn get(&self, var: Var, stage: Stage) -> Option<Reg> {
        if stage < self.stage(var) {
            return None;
        }
        match var {
            Var::Dim(number) => self.dims.get(number as usize),
            Var::Range(number) => self.ranges.get(number as usize),
            Var::Runtime(number) => self.runtimes.get(number as usize),
        }
        .copied()
    }
}

/// The three lists of instructions of a nest before its body.
#[derive(Default)]
struct Stages {
    code: [Code; 3],
    known: [Known; 3],
}

impl Decoder {
    /// Emits index expressions where all they use is known, not before `least`.
    fn staged(
        &mut self,
        exprs: &[Expr],
        registers: &Registers,
        least: Stage,
        at: At,
        stages: &mut Stages,
    ) -> Result<(Vec<Reg>, Stage), Error> {
        let vars = self.ir.vars_of_all(exprs);
        let stage = vars.into_iter().map(|var| registers.stage(var)).fold(least, Stage::max);
        let regs = self.exprs(
            exprs,
            &|var| registers.get(var, stage),
            &mut stages.known[stage as usize],
            at,
            &mut stages.code[stage as usize],
        )?;
        Ok((regs, stage))
    }

    /// The loops over the dimensions (`Stage::Dim`) or the ranges (`Stage::Point`) of a
    /// domain. Their bounds must be known before them.
    fn loops(
        &mut self,
        (op, at): (Op, At),
        domain: &IndexingMap,
        registers: &Registers,
        kind: Stage,
        stages: &mut Stages,
    ) -> Result<Vec<Loop>, Error> {
        let (variables, regs, default, latest) = match kind {
            Stage::Point => (&domain.ranges, &registers.ranges, "s", Stage::Dim),
            _ => (&domain.dims, &registers.dims, "d", Stage::Before),
        };
        let mut loops = Vec::new();
        for (number, variable) in variables.iter().enumerate() {
            let name = name_of(variable, default, number);
            let (Some(lower), Some(upper)) = (variable.lower, variable.upper) else {
                return Err(Error::at(op, format!("has no bounds for '{name}'")));
            };
            let (bounds, stage) =
                self.staged(&[lower, upper], registers, Stage::Before, at, stages)?;
            if latest < stage {
                let message = format!("has bounds for '{name}' that are not known before its loop");
                return Err(Error::at(op, message));
            }
            let variable = regs[number];
            loops.push(Loop { name, variable, lower: bounds[0], upper: bounds[1] });
        }
        Ok(loops)
    }

    /// Whether expressions are variables and constants, no variable twice, and name every dimension variable that may
    /// have several values: then no two points have the same values of them.
    fn is_permutation(&self, domain: &IndexingMap, exprs: &[Expr]) -> bool {
        let mut seen = HashSet::new();
        let is_plain = exprs.iter().all(|expr| match self.ir.as_var(*expr) {
            Some(var) => seen.insert(var),
            None => self.ir.as_constant(*expr).is_some(),
        });
        let is_one = |variable: &Variable| {
            variable.constant_interval(&self.ir).is_some_and(|it| it.as_point().is_some())
        };
        let mut dims = (0..).map(Var::Dim).zip(&domain.dims);
        is_plain && dims.all(|(var, variable)| seen.contains(&var) || is_one(variable))
    }

    fn new_regs(&mut self, count: usize) -> Vec<Reg> {
        (0..count).map(|_| self.new_reg()).collect()
    }

    /// `imap.generic`, `imap.scan` and `imap.scatter`.
    pub(super) fn indexed<'c>(&mut self, op: Op<'c>, code: &mut Code) -> Result<(), Error> {
        let unsupported = || Error::at(op, "is not supported by the interpreter");
        let generic = AnyIndexed::cast(op).ok_or_else(unsupported)?;
        let scan = imap::Scan::cast(op);
        let (inputs, inits) = (generic.inputs(), generic.inits());
        let at = self.at(op);
        let mut domain = generic.domain(&self.ir);
        let (maps, fills) = (generic.maps(&self.ir), generic.fills());
        let accumulators = generic.accumulators();
        if maps.len() < inputs.len() + inits.len() {
            return Err(unsupported());
        }
        let scatter = imap::Scatter::cast(op);
        if scatter.is_some() {
            domain.constraints.extend_from_slice(&maps[inputs.len()].constraints);
        }
        let mut stages = Stages::default();
        let mut registers = Registers {
            dims: self.new_regs(domain.dims.len()),
            ranges: self.new_regs(domain.ranges.len()),
            runtimes: Vec::new(),
            stages: Vec::new(),
        };
        let accesses: Vec<_> = maps.iter().cloned().zip(fills).collect();
        let tensors = &accesses[inputs.len() + inits.len()..];
        let scatter = scatter.map(|it| {
            let exprs = tensors.iter().flat_map(|(map, _)| {
                map.results.iter().copied().chain(map.constraints.iter().map(|it| it.expr))
            });
            let read = self.ir.vars_of_all(&exprs.collect::<Vec<_>>());
            let dims = (0..).map(Var::Dim).zip(&registers.dims);
            let windows = dims.filter(|(var, _)| !read.contains(var)).map(|(_, reg)| *reg);
            Scatter { promises: it.promises(), windows: windows.collect() }
        });
        let mut body = self.runtimes(
            (op, at),
            generic.runtimes(),
            tensors,
            &domain,
            &mut registers,
            &mut stages,
        )?;
        self.runtime_bounds(&domain, &registers, at, &mut stages, &mut body)?;
        let mut dims = self.loops((op, at), &domain, &registers, Stage::Dim, &mut stages)?;
        if let Some(scan) = scan {
            let scanned = dims.remove(scan.dim() as usize);
            dims.push(scanned);
        }
        let ranges = self.loops((op, at), &domain, &registers, Stage::Point, &mut stages)?;
        let constrained: Vec<_> = domain.constraints.iter().map(|it| it.expr).collect();
        let (constrained, _) =
            self.staged(&constrained, &registers, Stage::Point, at, &mut stages)?;

        let outer = (
            std::mem::replace(&mut self.dims, registers.dims.clone()),
            std::mem::replace(&mut self.ranges, registers.ranges.clone()),
            std::mem::replace(&mut self.runtimes, registers.runtimes.clone()),
        );
        let read: Vec<_> = inputs.iter().copied().zip(accesses.iter().cloned()).collect();
        let arguments = mlir::arguments(generic.body());
        body.extend(self.inputs((op, at), &read, &arguments, &registers, Stage::Point)?);
        let yielded = self.block(generic.body(), &mut body)?;
        let values =
            yielded.into_iter().map(|it| self.scalar(op, it)).collect::<Result<Vec<_>, _>>()?;

        let mut combiner = None;
        if let Some(block) = generic.combiner() {
            let arguments = self.new_regs(2 * accumulators.len());
            for (argument, reg) in mlir::arguments(block).iter().zip(&arguments) {
                self.bind(*argument, *reg);
            }
            let mut code = Code::new();
            let outer = std::mem::replace(&mut self.in_fold, !generic.is_ordered());
            let yielded = self.block(block, &mut code)?;
            self.in_fold = outer;
            let results: Vec<_> =
                yielded.into_iter().map(|it| self.scalar(op, it)).collect::<Result<_, _>>()?;
            if results.len() != accumulators.len() {
                return Err(Error::at(op, "yields too few values"));
            }
            let promise = |(it, yielded): (&imap::Accumulator, Val)| {
                let ty = scalar_type(it.ty);
                let rounds = match ty {
                    Some(ScalarType::Float(ty)) if is_computed(yielded) => Some(ty),
                    _ => None,
                };
                let is_float = !matches!(ty, Some(ScalarType::Int(_)));
                Some(Promise { identity: constant(it.ty, it.identity?)?, is_float, rounds })
            };
            let is_kept = !generic.is_ordered() && scatter.is_none();
            let yielded = mlir::operands(mlir::terminator(block));
            let promises = accumulators.iter().zip(yielded).map(promise).collect::<Option<_>>();
            let promises = promises.filter(|_| is_kept).unwrap_or_default();
            combiner = Some(Combiner { arguments, code, results, promises });
        }
        let folded = self.new_regs(accumulators.len());
        let mut epilogue = Code::new();
        let mut stored = if accumulators.is_empty() { values.clone() } else { folded.clone() };
        if let Some(block) = generic.epilogue() {
            let arguments = mlir::arguments(block);
            for (argument, reg) in arguments.iter().zip(&folded) {
                self.bind(*argument, *reg);
            }
            let arguments = &arguments[folded.len().min(arguments.len())..];
            epilogue = self.inputs((op, at), &read, arguments, &registers, Stage::Dim)?;
            let yielded = self.block(block, &mut epilogue)?;
            stored = yielded.into_iter().map(|it| self.scalar(op, it)).collect::<Result<_, _>>()?;
        }
        (self.dims, self.ranges, self.runtimes) = outer;
        if values.len() < accumulators.len() || stored.len() != inits.len() {
            return Err(Error::at(op, "yields too few values"));
        }
        let accumulators = accumulators.iter().zip(values.iter().zip(&folded));
        let accumulators = accumulators
            .map(|(it, (value, folded))| accumulator(op, it, *value, *folded))
            .collect::<Result<_, _>>()?;
        let mut results = mlir::results(op).into_iter();

        let mut outputs = Vec::new();
        for (number, init) in inits.into_iter().enumerate() {
            let exprs = &maps[inputs.len() + number].results;
            let (position, stage) = self.staged(exprs, &registers, Stage::Dim, at, &mut stages)?;
            let is_injective = scatter.is_some() || self.is_permutation(&domain, exprs);
            if Stage::Dim < stage {
                return Err(Error::at(op, "stores to a place that depends on a range variable"));
            }
            let (start, to) = match self.place(op, init)? {
                Place::Tensor(tensor) => {
                    let result = results.next().ok_or_else(unsupported)?;
                    let take = is_last_use(op, init);
                    (Start::Tensor { tensor, take }, self.new_tensor(result))
                }
                // No tensor results: the register stays unused.
                Place::Memory(memory) => (Start::Memory(memory), 0),
            };
            outputs.push(Output { start, to, position, is_injective, stored: stored[number] });
        }
        let [before, per_dim, constraint_code] = stages.code;
        let constraints =
            constrained.into_iter().zip(domain.constraints.iter().map(|it| it.interval)).collect();
        code.push(Inst::LoopNest(Box::new(LoopNest {
            at,
            scan: scan.map(|it| match it.is_exclusive() {
                true => Scan::Exclusive,
                false => Scan::Inclusive,
            }),
            scatter,
            must_run: false,
            dims,
            ranges,
            before,
            per_dim,
            constraint_code,
            constraints,
            body,
            accumulators,
            combiner,
            epilogue,
            outputs,
        })));
        Ok(())
    }

    /// Reads the runtime variables, each as early as its map allows. Whether such a read is in
    /// bounds does not matter before the body runs: what to emit there is returned.
    fn runtimes(
        &mut self,
        (op, at): (Op, At),
        values: Vec<Val>,
        accesses: &[Access],
        domain: &IndexingMap,
        registers: &mut Registers,
        stages: &mut Stages,
    ) -> Result<Code, Error> {
        let mut checks = Code::new();
        let mut accesses = accesses.iter();
        let intervals = domain.intervals(&self.ir);
        for (var, value) in (0..).map(Var::Runtime).zip(values) {
            if scalar_type(value.r#type()).is_some() {
                registers.runtimes.push(self.scalar(op, value)?);
                registers.stages.push(Stage::Before);
                continue;
            }
            let place = self.place(op, value)?;
            let access = accesses.next().ok_or_else(|| Error::at(op, "has too few maps"))?;
            let guard = access.0.constraints.iter().map(|it| it.expr);
            let exprs: Vec<_> = access.0.results.iter().copied().chain(guard).collect();
            let vars = self.ir.vars_of_all(&exprs);
            let stage =
                vars.into_iter().map(|var| registers.stage(var)).fold(Stage::Before, Stage::max);
            let to = self.new_reg();
            let value_of = |var| registers.get(var, stage);
            let element = mlir::element_type(value.r#type());
            let known = &mut stages.known[stage as usize];
            let code = &mut stages.code[stage as usize];
            self.read_at((op, at), (to, element), place, access, true, &value_of, known, code)?;
            let known = &mut Known::new();
            self.read_at(
                (op, at),
                (to, element),
                place,
                access,
                false,
                &value_of,
                known,
                &mut checks,
            )?;
            let width = mlir::integer_width(element).unwrap_or(64);
            if width < 64 && 0 <= intervals.of(var).lo {
                let (from_width, to_width) = (width, 64);
                let unsigned =
                    || Inst::IntConvert { signed: false, from_width, to_width, to, from: to };
                stages.code[stage as usize].push(unsigned());
                checks.push(unsigned());
            }
            registers.runtimes.push(to);
            registers.stages.push(stage);
        }
        Ok(checks)
    }

    /// Checks that the runtime variables are where the maps were simplified for: those that
    /// are given before the nest, those that are read where its body runs.
    fn runtime_bounds(
        &mut self,
        domain: &IndexingMap,
        registers: &Registers,
        at: At,
        stages: &mut Stages,
        checks: &mut Code,
    ) -> Result<(), Error> {
        let mut known = Known::new();
        for (number, variable) in domain.runtimes.iter().enumerate() {
            let bounds: Vec<_> = variable.lower.into_iter().chain(variable.upper).collect();
            if bounds.is_empty() {
                continue;
            }
            let value = registers.runtimes[number];
            let read = checks.iter().any(|it| match it {
                Inst::Read { to, .. } => *to == value,
                Inst::If(guarded) => guarded.scalars.iter().any(|(to, _)| *to == value),
                Inst::Memory(inst, _) => {
                    matches!(&**inst, MemoryInst::Load { to, .. } if to[..] == [value])
                }
                _ => false,
            });
            let vars = self.ir.vars_of_all(&bounds);
            let before = !read && vars.into_iter().all(|var| registers.stage(var) == Stage::Before);
            let regs = if before {
                self.staged(&bounds, registers, Stage::Before, at, stages)?.0
            } else {
                let value_of = |var| registers.get(var, Stage::Point);
                self.exprs(&bounds, &value_of, &mut known, at, checks)?
            };
            let inside = Inside {
                name: name_of(variable, "rt", number),
                value,
                lower: variable.lower.map(|_| regs[0]),
                upper: variable.upper.and(regs.last().copied()),
            };
            let code = if before { &mut stages.code[Stage::Before as usize] } else { &mut *checks };
            code.push(Inst::Inside(Box::new(inside), at));
        }
        Ok(())
    }

    /// Reads the inputs that a region uses. What they need must be known at `stage`.
    fn inputs<'c>(
        &mut self,
        (op, at): (Op<'c>, At),
        inputs: &[(Val<'c>, Access<'c>)],
        arguments: &[Val<'c>],
        registers: &Registers,
        stage: Stage,
    ) -> Result<Code, Error> {
        let mut code = Code::new();
        let mut known = Known::new();
        for ((input, access), argument) in inputs.iter().zip(arguments) {
            if mlir::uses(*argument).is_empty() {
                continue;
            }
            let value_of = |var| registers.get(var, stage);
            let place = self.place(op, *input)?;
            let to = (self.new_scalar(*argument), argument.r#type());
            self.read_at((op, at), to, place, access, false, &value_of, &mut known, &mut code)?;
        }
        Ok(code)
    }

    /// Emits whether conditions hold. If `lenient`, an undefined value leaves that open.
    pub(super) fn holds(
        &mut self,
        conditions: &[Constraint],
        value_of: &dyn Fn(Var) -> Option<Reg>,
        known: &mut Known,
        (to, lenient): (Reg, bool),
        at: At,
        code: &mut Code,
    ) -> Result<(), Error> {
        let exprs: Vec<_> = conditions.iter().map(|it| it.expr).collect();
        let regs = self.exprs(&exprs, value_of, known, at, code)?;
        let conditions = regs.into_iter().zip(conditions.iter().map(|it| it.interval)).collect();
        code.push(Inst::Holds { to, conditions, lenient, at });
        Ok(())
    }

    /// Emits the read of an element. Where the guard does not hold, the constant is read.
    #[allow(clippy::too_many_arguments)]
    fn read_at<'c>(
        &mut self,
        (op, at): (Op<'c>, At),
        (to, ty): (Reg, Type<'c>),
        place: Place,
        (map, fill): &Access<'c>,
        lenient: bool,
        value_of: &dyn Fn(Var) -> Option<Reg>,
        known: &mut Known,
        code: &mut Code,
    ) -> Result<(), Error> {
        if map.constraints.is_empty() {
            let indices = self.exprs(&map.results, value_of, known, at, code)?;
            code.push(read(to, place, indices, lenient, at));
            return Ok(());
        }
        let condition = self.new_reg();
        self.holds(&map.constraints, value_of, known, (condition, lenient), at, code)?;
        let mut then = Code::new();
        let indices = self.exprs(&map.results, value_of, &mut Known::new(), at, &mut then)?;
        let element = self.new_reg();
        then.push(read(element, place, indices, lenient, at));
        let unknown = || Error::at(op, "has a guard with an unknown constant");
        let is_float = scalar_type(ty).ok_or_else(unknown)?.is_float();
        let value = match fill {
            Some(fill) => constant(ty, *fill).ok_or_else(unknown)?,
            None if is_float => Scalar::exact(0.0),
            None => Scalar::int(0),
        };
        let constant = self.new_reg();
        self.constants.push((constant, value));
        let branch = |code, from| Branch {
            code,
            results: Moves { scalars: vec![(to, from)], ..Moves::default() },
        };
        code.push(Inst::If(Box::new(If {
            condition,
            then: branch(then, element),
            otherwise: branch(Code::new(), constant),
            scalars: vec![(to, is_float)],
            tensors: Vec::new(),
            at,
        })));
        Ok(())
    }

    /// The domain of a comprehension, and the registers of its variables.
    fn comprehension_domain(
        &mut self,
        statement: Comprehension,
    ) -> Result<(IndexingMap, Registers), Error> {
        let op = statement.op();
        let domain = statement.domain(&self.ir).ok_or_else(|| {
            Error::at(op, "has no domain; expected 'tc-infer-ranges' to have run")
        })?;
        if domain.runtimes.len() != self.sizes.len() {
            let message = format!(
                "has a domain of {} runtime variables; expected the {} size variables of the function",
                domain.runtimes.len(),
                self.sizes.len()
            );
            return Err(Error::at(op, message));
        }
        let registers = Registers {
            dims: self.new_regs(domain.dims.len()),
            ranges: self.new_regs(domain.ranges.len()),
            runtimes: self.sizes.iter().map(|size| size.value).collect(),
            stages: vec![Stage::Before; self.sizes.len()],
        };
        Ok((domain, registers))
    }

    /// The positions of the elements whose indices are all lowest, or all highest.
    fn corner(
        &mut self,
        domain: &IndexingMap,
        dims: Vec<Reg>,
        registers: &Registers,
        at: At,
        code: &mut Code,
    ) -> Result<Vec<Reg>, Error> {
        let value_of = |var| match var {
            Var::Dim(number) => dims.get(number as usize).copied(),
            var => registers.get(var, Stage::Before),
        };
        self.exprs(&domain.results, &value_of, &mut Known::new(), at, code)
    }

    /// An output that the caller passes in has the origin that its first statement gives it.
    pub(super) fn destination_origin(
        &mut self,
        statement: Comprehension,
        code: &mut Code,
    ) -> Result<(), Error> {
        let Some(outs) = statement.outs().filter(|outs| outs.is_block_argument()) else {
            return Ok(());
        };
        let op = statement.op();
        let at = self.at(op);
        let tensor = self.tensor(op, outs)?;
        let (domain, registers) = self.comprehension_domain(statement)?;
        let mut stages = Stages::default();
        let dims = self.loops((op, at), &domain, &registers, Stage::Dim, &mut stages)?;
        let [mut before, ..] = stages.code;
        let first: Vec<_> = dims.iter().map(|it| it.lower).collect();
        let position = self.corner(&domain, first.clone(), &registers, at, &mut before)?;
        code.append(&mut before);
        code.push(Inst::Origin { tensor, first, position, at });
        Ok(())
    }

    /// `tc.comprehension`.
    pub(super) fn comprehension(&mut self, op: Op, code: &mut Code) -> Result<(), Error> {
        let statement = Comprehension::cast(op)
            .ok_or_else(|| Error::at(op, "is not supported by the interpreter"))?;
        let at = self.at(op);
        let (domain, mut registers) = self.comprehension_domain(statement)?;
        let mut stages = Stages::default();
        let mut dims = self.loops((op, at), &domain, &registers, Stage::Dim, &mut stages)?;
        let mut ranges = self.loops((op, at), &domain, &registers, Stage::Point, &mut stages)?;
        let names = statement.index_vars().into_iter().chain(statement.reduction_vars());
        for (variable, name) in dims.iter_mut().chain(&mut ranges).zip(names) {
            variable.name = name.into();
        }
        let constrained: Vec<_> = domain.constraints.iter().map(|it| it.expr).collect();
        let (constrained, _) =
            self.staged(&constrained, &registers, Stage::Point, at, &mut stages)?;

        let variables = registers.dims.iter().chain(&registers.ranges);
        for (argument, reg) in mlir::arguments(statement.body()).into_iter().zip(variables) {
            self.bind(argument, *reg);
        }
        let mut body = Code::new();
        let yielded = self.block(statement.body(), &mut body)?;
        let yielded =
            yielded.into_iter().map(|it| self.scalar(op, it)).collect::<Result<Vec<_>, _>>()?;
        let addressed = statement.addressed();
        if yielded.len() != 1 + addressed.len() {
            let message = format!("expects its body to yield {} values", 1 + addressed.len());
            return Err(Error::at(op, message));
        }
        let (value, combiner) = (yielded[0], statement.combiner());
        let fold = match combiner.kind {
            CombinerKind::Assign => None,
            kind => Some(fold_kind(op, kind, mlir::element_type(statement.result().r#type()))?),
        };

        let start = match statement.outs() {
            Some(outs) => Start::Tensor { tensor: self.tensor(op, outs)?, take: false },
            None => {
                let first: Vec<_> = dims.iter().map(|it| it.lower).collect();
                let highest = dims.iter().map(|it| it.upper).collect();
                let before = &mut stages.code[Stage::Before as usize];
                let position = self.corner(&domain, first.clone(), &registers, at, before)?;
                let last = self.corner(&domain, highest, &registers, at, before)?;
                let shape = mlir::shape(statement.result().r#type());
                // TC leaves it open what is between the elements that a statement defines.
                let fill = match fold {
                    Some(fold) if !addressed.is_empty() => fold.identity(),
                    _ => Scalar::UNKNOWN,
                };
                Start::New { first, position, last, shape, fill }
            }
        };
        let mut scatter = None;
        let position = if addressed.is_empty() {
            self.staged(&domain.results, &registers, Stage::Dim, at, &mut stages)?.0
        } else {
            // The element that a point updates is known after the body.
            scatter = Some(Scatter::default());
            for (dim, address) in addressed.iter().zip(&yielded[1..]) {
                registers.dims[*dim] = *address;
            }
            let value_of = |var| registers.get(var, Stage::Point);
            let position =
                self.exprs(&domain.results, &value_of, &mut Known::new(), at, &mut body)?;
            let mut dim = 0..;
            dims.retain(|_| !dim.next().is_some_and(|dim| addressed.contains(&dim)));
            dims.append(&mut ranges);
            stages.code[Stage::Dim as usize].append(&mut body);
            position
        };
        let mut accumulators = Vec::new();
        if let Some(fold) = fold {
            let start = match combiner.from_identity && scatter.is_none() {
                true => FoldStart::Identity,
                false => FoldStart::Output(0),
            };
            accumulators.push(Accumulator { fold, start, value, folded: self.new_reg() });
        }
        let stored = accumulators.first().map_or(value, |it| it.folded);
        let to = self.new_tensor(statement.result());
        let output = Output { start, to, position, is_injective: true, stored };
        let constraints =
            constrained.into_iter().zip(domain.constraints.iter().map(|it| it.interval)).collect();
        let [before, per_dim, constraint_code] = stages.code;
        code.push(Inst::LoopNest(Box::new(LoopNest {
            at,
            scan: None,
            scatter,
            must_run: true,
            dims,
            ranges,
            before,
            per_dim,
            constraint_code,
            constraints,
            body,
            accumulators,
            combiner: None,
            epilogue: Code::new(),
            outputs: vec![output],
        })));
        Ok(())
    }
}

/// Reads an element of a tensor or of memory.
pub(super) fn read(to: Reg, place: Place, indices: Vec<Reg>, lenient: bool, at: At) -> Inst {
    match place {
        Place::Tensor(tensor) => Inst::Read { to, tensor, indices, lenient, at },
        Place::Memory(memory) => {
            let load = MemoryInst::Load { to: vec![to], memory, indices, masked: None, lenient };
            Inst::Memory(Box::new(load), at)
        }
    }
}

fn name_of(variable: &Variable, default: &str, number: usize) -> String {
    variable.name.as_ref().map_or_else(|| format!("{default}{number}"), |name| name.to_string())
}

fn accumulator(
    op: Op,
    accumulator: &imap::Accumulator,
    value: Reg,
    folded: Reg,
) -> Result<Accumulator, Error> {
    let start = match (accumulator.start, accumulator.identity) {
        (imap::Start::Destination(number), _) => FoldStart::Output(number),
        (imap::Start::Constant(attribute), _) | (imap::Start::Identity, Some(attribute)) => {
            let value = constant(accumulator.ty, attribute);
            let unknown = || Error::at(op, "starts a fold from an unknown constant");
            FoldStart::Constant(value.ok_or_else(unknown)?)
        }
        (imap::Start::Identity, None) => FoldStart::Identity,
    };
    Ok(Accumulator { fold: fold_kind(op, accumulator.kind, accumulator.ty)?, start, value, folded })
}

/// Whether a value is the result of a computation, not just one of several arguments or constants.
fn is_computed(value: Val) -> bool {
    let (mut work, mut seen) = (vec![value], HashSet::new());
    while let Some(value) = work.pop() {
        let Some(op) = mlir::defining_op(value).filter(|_| seen.insert(mlir::value_key(value)))
        else {
            continue;
        };
        let first = match mlir::name(op) {
            "arith.constant" => continue,
            "arith.select" => 1,
            "arith.maximumf" | "arith.minimumf" | "arith.maxnumf" | "arith.minnumf" => 0,
            _ => return true,
        };
        work.extend(&mlir::operands(op)[first..]);
    }
    false
}

fn fold_kind(op: Op, kind: CombinerKind, ty: Type) -> Result<FoldKind, Error> {
    scalar_type(ty).and_then(|scalar| FoldKind::of(kind, scalar)).ok_or_else(|| {
        let name = kind.name();
        let message =
            format!("combines '{ty}' by '{name}', which the interpreter does not support");
        Error::at(op, message)
    })
}
