//! Floating-point operations and compulsory memory traffic of a function on tensors.

use super::{Extents, extents::root, max, trips::trips};
use melior::ir::{TypeLike, ValueLike, operation::OperationLike};
use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet, HashMap},
};
use tc_dialects::{
    imap::{Accumulator, AnyIndexed, CombinerKind, Indexed, Sort},
    mlir::{self, Blk, Op, Val},
};
use tc_ir::{Constraint, Context, Expr, IndexingMap, Var};

/// The most points of a box that are enumerated to count those that satisfy constraints.
const MAX_POINTS: u64 = 1 << 20;
/// The most iterations of loops that are counted one by one.
const MAX_ITERATIONS: u64 = 1 << 16;
/// How deep loops and branches may be nested.
const MAX_DEPTH: usize = 64;

/// An amount of work, or of a part of it; `None` if unknown.
type Amount = Option<Expr>;

/// The work of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Floating-point operations.
    pub flops: Amount,
    /// Bytes read and written.
    pub bytes: Amount,
}

/// The work of a function on tensors, before bufferization.
pub fn work(function: Op, extents: &Extents) -> Work {
    match mlir::body(function, 0) {
        Some(body) => Counter::new(extents).block(body, MAX_DEPTH),
        None => Work { flops: None, bytes: None },
    }
}

/// The work of one operation of a function on tensors.
pub fn work_of_operation(op: Op, extents: &Extents) -> Work {
    Counter::new(extents).op(op, MAX_DEPTH)
}

struct Counter<'a, 'i> {
    extents: &'a Extents<'i>,
    ir: &'i Context,
    /// The numbers of points of boxes under constraints, which are expensive to count.
    points: RefCell<HashMap<Vec<BoxPart>, Option<u64>>>,
    /// The iterations of loops that may still be counted one by one.
    iterations: Cell<u64>,
    /// The work of callees by name.
    called: RefCell<HashMap<String, Work>>,
}

/// A bound of a box or a constraint on its points: the text of an expression, and an interval.
type BoxPart = (String, i64, i64);

/// Elements of a tensor or buffer that an operation reads and writes.
#[derive(Clone, Copy)]
struct Access<'c> {
    shaped: Val<'c>,
    reads: Amount,
    writes: Amount,
}

/// The work of one operation: of an `imap.generic`, or of a loop nest.
#[derive(Clone)]
struct Operation<'c> {
    flops: Amount,
    accesses: BTreeMap<usize, Access<'c>>,
}

impl Operation<'_> {
    fn is_known(&self) -> bool {
        let is_known = |access: &Access| access.reads.is_some() && access.writes.is_some();
        self.flops.is_some() && self.accesses.values().all(is_known)
    }
}

impl<'a, 'i> Counter<'a, 'i> {
    fn new(extents: &'a Extents<'i>) -> Self {
        let iterations = Cell::new(MAX_ITERATIONS);
        let (points, called) = (RefCell::default(), RefCell::default());
        Self { extents, ir: extents.ir, points, iterations, called }
    }

    fn none(&self) -> Work {
        let zero = Some(self.ir.constant(0));
        Work { flops: zero, bytes: zero }
    }

    fn constant(&self, value: i64) -> Amount {
        Some(self.ir.constant(value))
    }

    fn add(&self, a: Amount, b: Amount) -> Amount {
        Some(self.ir.add(a?, b?))
    }

    /// A product, which is zero if a factor is.
    fn mul(&self, a: Amount, b: Amount) -> Amount {
        let zero = self.constant(0);
        if a == zero || b == zero {
            return zero;
        }
        Some(self.ir.mul(a?, b?))
    }

    fn sum(&self, a: Work, b: Work) -> Work {
        Work { flops: self.add(a.flops, b.flops), bytes: self.add(a.bytes, b.bytes) }
    }

    fn times(&self, work: Work, trips: Amount) -> Work {
        Work { flops: self.mul(work.flops, trips), bytes: self.mul(work.bytes, trips) }
    }

    /// The larger of two amounts, which are not negative.
    fn larger(&self, a: Amount, b: Amount) -> Amount {
        Some(max(self.ir, a?, b?))
    }

    fn block(&self, block: Blk, depth: usize) -> Work {
        mlir::ops(block)
            .into_iter()
            .fold(self.none(), |total, op| self.sum(total, self.op(op, depth)))
    }

    /// The work of an operation outside of loop nests.
    fn op(&self, op: Op, depth: usize) -> Work {
        let unknown = Work { flops: None, bytes: None };
        let Some(depth) = depth.checked_sub(1) else { return unknown };
        let region =
            |number| mlir::body(op, number).map_or(self.none(), |it| self.block(it, depth));
        let moved = |bytes: Amount| Work { flops: self.constant(0), bytes };
        match mlir::name(op) {
            "imap.generic" | "imap.scan" | "imap.scatter" => self.indexed(op, depth),
            "imap.sort" => self.sort(op, depth),
            "scf.for" if !has_tensor_operations(op) => {
                let mut nest = Operation { flops: self.constant(0), accesses: BTreeMap::new() };
                self.add_op(&mut nest, op, self.constant(1), depth);
                self.work(&nest)
            }
            "scf.for" => self.times(region(0), self.trips(op)),
            "scf.while" => {
                let trips = trips(op);
                let tests = trips.and_then(|trips| self.constant(trips + 1));
                let trips = trips.and_then(|trips| self.constant(trips));
                self.sum(self.times(region(0), tests), self.times(region(1), trips))
            }
            "scf.if" => {
                let (first, second) = (region(0), region(1));
                Work {
                    flops: self.larger(first.flops, second.flops),
                    bytes: self.larger(first.bytes, second.bytes),
                }
            }
            "func.call" => self.call(op, depth).unwrap_or(unknown),
            "memref.copy" => moved(self.mul(self.bytes(mlir::operand(op, 0)), self.constant(2))),
            "bufferization.materialize_in_destination" => self.materialize(op),
            "tensor.from_elements" | "tensor.splat" => moved(self.bytes(mlir::result(op, 0))),
            name if is_free(name) => self.none(),
            _ if is_elementwise_on_tensors(op) => self.elementwise(op),
            _ => {
                let mut alone = Operation { flops: self.constant(0), accesses: BTreeMap::new() };
                self.add_op(&mut alone, op, self.constant(1), depth);
                self.work(&alone)
            }
        }
    }

    /// The work of a function of the program that is called; `None` for any other.
    fn call(&self, op: Op, depth: usize) -> Option<Work> {
        let name = mlir::callee(op)?;
        if let Some(known) = self.called.borrow().get(name) {
            return Some(*known);
        }
        let body = mlir::body(mlir::find_symbol(op, name)?, 0)?;
        let work = self.block(body, depth);
        self.called.borrow_mut().insert(name.to_string(), work);
        Some(work)
    }

    /// A result is written where it is computed. Only arguments and constants are copied.
    fn materialize(&self, op: Op) -> Work {
        let source = root(mlir::operand(op, 0));
        let is_computed =
            mlir::defining_op(source).is_some_and(|it| !mlir::is(it, "arith.constant"));
        let copied = self.mul(self.bytes(source), self.constant(2));
        match is_computed {
            true => self.none(),
            false => Work { flops: self.constant(0), bytes: copied },
        }
    }

    /// The bytes of a tensor or buffer.
    fn bytes(&self, shaped: Val) -> Amount {
        self.mul(self.extents.elements(shaped), self.width(shaped))
    }

    fn width(&self, shaped: Val) -> Amount {
        self.constant(mlir::byte_width(mlir::element_type(shaped.r#type())).into())
    }

    /// Arithmetic on whole tensors.
    fn elementwise(&self, op: Op) -> Work {
        let elements = self.extents.elements(mlir::result(op, 0));
        let operands: BTreeMap<_, _> =
            mlir::operands(op).into_iter().map(|it| (mlir::value_key(root(it)), it)).collect();
        let values = operands.into_values().chain(mlir::results(op));
        Work {
            flops: self.mul(elements, self.constant(flops(op))),
            bytes: values.fold(self.constant(0), |sum, it| self.add(sum, self.bytes(it))),
        }
    }

    fn indexed(&self, op: Op, depth: usize) -> Work {
        let Some(generic) = AnyIndexed::cast(op) else { return self.none() };
        let space = Space::new(generic, self.extents);
        let (domain, maps, accumulators) = (&space.domain, &space.maps, generic.accumulators());
        let all: BTreeSet<_> = domain
            .vars()
            .map(|(var, _)| var)
            .filter(|var| !matches!(var, Var::Runtime(_)))
            .collect();
        let dims: BTreeSet<_> = (0..domain.dims.len() as u32).map(Var::Dim).collect();
        let points = self.count(&space, &all, &domain.constraints);
        // Where constraints exclude all points, a fold stores its start.
        let stored = self.count(&space, &dims, &[]);

        let mut work = Operation { flops: self.constant(0), accesses: BTreeMap::new() };
        let tensors = space.elements.iter();
        let tensors = tensors.map(|(number, map)| (space.runtimes[*number as usize], &maps[*map]));
        let read = generic.inputs().into_iter().zip(maps).chain(tensors);
        let mut seen = BTreeSet::new();
        for (operand, map) in read {
            let place = (mlir::value_key(root(operand)), map.results.clone());
            if seen.insert(place) {
                let inside = [&domain.constraints[..], &map.constraints].concat();
                let read = self.count(&space, &space.needs(&map.results), &inside);
                self.access(&mut work, operand, read, self.constant(0));
            }
        }
        let outputs = generic.inits().into_iter().zip(&maps[generic.inputs().len()..]);
        for (number, (init, map)) in outputs.enumerate() {
            let constraints = if accumulators.is_empty() { &domain.constraints[..] } else { &[] };
            let written = self.count(&space, &space.needs(&map.results), constraints);
            let is_read = accumulators.iter().any(|it| it.destination() == Some(number));
            let read = if is_read { written } else { self.constant(0) };
            self.access(&mut work, init, read, written);
        }
        if let Some(combiner) = generic.combiner() {
            self.add_block(&mut work, combiner, points, depth);
        }
        let is_named = |it: &&Accumulator| it.kind != CombinerKind::Custom;
        let folds = accumulators.iter().filter(is_named).filter(|it| mlir::is_float(it.ty));
        let folds = self.mul(points, self.constant(folds.count() as i64));
        work.flops = self.add(work.flops, folds);
        self.add_block(&mut work, generic.body(), points, depth);
        if let Some(epilogue) = generic.epilogue() {
            self.add_block(&mut work, epilogue, stored, depth);
        }
        self.work(&work)
    }

    /// A sort compares each item about log2 of the row's length times.
    fn sort(&self, op: Op, depth: usize) -> Work {
        let Some(sort) = Sort::cast(op) else { return self.none() };
        let mut work = Operation { flops: self.constant(0), accesses: BTreeMap::new() };
        let inputs = sort.inputs();
        for input in &inputs {
            self.access(&mut work, *input, self.extents.elements(*input), self.constant(0));
        }
        for init in sort.inits() {
            self.access(&mut work, init, self.constant(0), self.extents.elements(init));
        }
        let extent = self.extents.extent(inputs[0], sort.dim());
        let extent = extent.and_then(|extent| self.ir.as_constant(extent));
        let depth_of_tree = extent.map(|extent| i64::from((extent.max(1) as u64).ilog2()));
        let items = self.extents.elements(inputs[0]);
        let num_comparisons = self.mul(items, depth_of_tree.and_then(|depth| self.constant(depth)));
        self.add_block(&mut work, sort.comparator(), num_comparisons, depth);
        self.work(&work)
    }

    fn add_block<'c>(&self, work: &mut Operation<'c>, block: Blk<'c>, trips: Amount, depth: usize) {
        for op in mlir::ops(block) {
            self.add_op(work, op, trips, depth);
        }
    }

    /// Adds an operation in a loop nest or in the body of an `imap.generic`, which runs `trips` times.
    fn add_op<'c>(&self, work: &mut Operation<'c>, op: Op<'c>, trips: Amount, depth: usize) {
        let unknown = |work: &mut Operation<'c>| {
            *work = Operation { flops: None, accesses: BTreeMap::new() };
        };
        let Some(depth) = depth.checked_sub(1) else { return unknown(work) };
        let zero = self.constant(0);
        match mlir::name(op) {
            "scf.for" => {
                let Some(body) = mlir::body(op, 0) else { return unknown(work) };
                let before = work.clone();
                self.add_block(work, body, self.mul(trips, self.trips(op)), depth);
                if before.is_known()
                    && !work.is_known()
                    && let Some(counted) = self.iterate(before, op, body, trips, depth)
                {
                    *work = counted;
                }
            }
            "scf.if" => {
                let mut sides = [work.clone(), work.clone()];
                for (number, side) in sides.iter_mut().enumerate() {
                    let block = mlir::body(op, number);
                    block.into_iter().for_each(|it| self.add_block(side, it, trips, depth));
                }
                let [first, second] = sides;
                *work = self.larger_operation(first, second);
            }
            "tensor.extract" | "memref.load" => {
                self.access(work, mlir::operand(op, 0), trips, zero);
            }
            "memref.store" => self.access(work, mlir::operand(op, 1), zero, trips),
            name if is_free(name) || is_scalar(op) => {
                work.flops = self.add(work.flops, self.mul(trips, self.constant(flops(op))));
            }
            _ => unknown(work),
        }
    }

    /// Adds the iterations of a loop one by one: inner loops may depend on its index. `None` if this does
    /// not help, or takes too many iterations.
    fn iterate<'c>(
        &self,
        mut work: Operation<'c>,
        op: Op<'c>,
        body: Blk<'c>,
        trips: Amount,
        depth: usize,
    ) -> Option<Operation<'c>> {
        let constant = |number| self.ir.as_constant(self.extents.value(mlir::operand(op, number))?);
        let (lower, upper, step) = (constant(0)?, constant(1)?, constant(2)?);
        let step = usize::try_from(step).ok().filter(|step| 0 < *step)?;
        let count = u64::try_from(self.ir.as_constant(self.trips(op)?)?).ok()?;
        self.iterations.set(self.iterations.get().checked_sub(count.max(1))?);
        let index = *mlir::arguments(body).first()?;
        for value in (lower..upper).step_by(step) {
            self.extents.bind(index, Some(value));
            self.add_block(&mut work, body, trips, depth);
            if !work.is_known() {
                break;
            }
        }
        self.extents.bind(index, None);
        work.is_known().then_some(work)
    }

    fn larger_operation<'c>(&self, first: Operation<'c>, second: Operation<'c>) -> Operation<'c> {
        let mut accesses = first.accesses;
        for (key, access) in second.accesses {
            let entry = accesses.entry(key).or_insert(access);
            entry.reads = self.larger(entry.reads, access.reads);
            entry.writes = self.larger(entry.writes, access.writes);
        }
        Operation { flops: self.larger(first.flops, second.flops), accesses }
    }

    fn access<'c>(&self, work: &mut Operation<'c>, shaped: Val<'c>, reads: Amount, writes: Amount) {
        let zero = self.constant(0);
        let shaped = root(shaped);
        let entry = work.accesses.entry(mlir::value_key(shaped));
        let entry = entry.or_insert(Access { shaped, reads: zero, writes: zero });
        entry.reads = self.add(entry.reads, reads);
        entry.writes = self.add(entry.writes, writes);
    }

    /// The work of one operation: it accesses no more elements than there are.
    fn work(&self, operation: &Operation) -> Work {
        let bytes = operation.accesses.values().map(|access| {
            let elements = self.extents.elements(access.shaped);
            let limited = |accesses: Amount| match accesses == self.constant(0) {
                true => accesses,
                false => Some(self.extents.min(elements?, accesses?)),
            };
            let accesses = self.add(limited(access.reads), limited(access.writes));
            self.mul(accesses, self.width(access.shaped))
        });
        let bytes = bytes.fold(self.constant(0), |sum, it| self.add(sum, it));
        Work { flops: operation.flops, bytes: operation.flops.and(bytes) }
    }

    /// How often an `scf.for` runs.
    fn trips(&self, op: Op) -> Amount {
        let bound = |number| self.extents.value(mlir::operand(op, number));
        let (lower, upper, step) = (bound(0)?, bound(1)?, bound(2)?);
        Some(self.extents.not_negative(self.ir.ceil_div(self.ir.sub(upper, lower), step)))
    }

    /// The number of points of some variables of a domain that satisfy the constraints on them.
    fn count(&self, space: &Space, vars: &BTreeSet<Var>, constraints: &[Constraint]) -> Amount {
        let mut total = self.constant(1);
        let mut left = vars.clone();
        for group in space.those_on(vars, constraints) {
            let mut concerned = BTreeSet::new();
            for constraint in &group {
                concerned.extend(space.needs(&[constraint.expr]));
            }
            left = &left - &concerned;
            total = self.mul(total, self.enumerate(space, &concerned, &group));
        }
        for var in left {
            total = self.mul(total, self.extent(space, var));
        }
        total
    }

    /// The number of values of a variable.
    fn extent(&self, space: &Space, var: Var) -> Amount {
        let (lower, upper) = space.bounds(var)?;
        Some(self.extents.not_negative(self.ir.add(self.ir.sub(upper, lower), self.ir.constant(1))))
    }

    /// Counts the points of constant bounds that satisfy constraints, one by one.
    fn enumerate(&self, space: &Space, vars: &BTreeSet<Var>, constraints: &[Constraint]) -> Amount {
        let mut dims = Vec::new();
        let mut total = 1_u64;
        for var in vars {
            let (lower, upper) = space.bounds(*var)?;
            let (lower, upper) = (self.ir.as_constant(lower)?, self.ir.as_constant(upper)?);
            let extent = (i128::from(upper) - i128::from(lower) + 1).max(0);
            total = total.checked_mul(u64::try_from(extent).ok()?)?;
            dims.push((lower, upper));
        }
        if MAX_POINTS < total {
            return None;
        }
        let place = |var: Var| vars.iter().position(|it| *it == var);
        let renamed = |var: Var| place(var).map(|place| self.ir.dim(place as u32));
        let mut key: Vec<BoxPart> =
            dims.iter().map(|(lower, upper)| (String::new(), *lower, *upper)).collect();
        let mut map = IndexingMap::default();
        for (lower, upper) in dims {
            let bounds = (self.ir.constant(lower), self.ir.constant(upper));
            map.dims.push(tc_ir::map::Variable::between(bounds.0, bounds.1));
        }
        for constraint in constraints {
            let expr = self.ir.substitute(space.resolved(constraint.expr)?, &renamed);
            let interval = constraint.interval;
            let text = tc_ir::polynomial::text(self.ir, expr, &tc_ir::text::default_name);
            key.push((text, interval.lo, interval.hi));
            map.constraints.push(Constraint { expr, interval });
        }
        let known = self.points.borrow().get(&key).copied();
        let count = known.unwrap_or_else(|| {
            let points = map.points(self.ir, &[]).ok()?;
            points.map(|point| point.ok()).try_fold(0_u64, |count, point| point.map(|_| count + 1))
        });
        self.points.borrow_mut().insert(key, count);
        self.constant(i64::try_from(count?).ok()?)
    }
}

/// The iteration space of an `imap.generic`.
struct Space<'a, 'c, 'i> {
    extents: &'a Extents<'i>,
    domain: IndexingMap,
    maps: Vec<IndexingMap>,
    runtimes: Vec<Val<'c>>,
    /// Per runtime variable that is an element of a tensor, the number of its map.
    elements: BTreeMap<u32, usize>,
}

impl<'a, 'c, 'i> Space<'a, 'c, 'i> {
    fn new(generic: AnyIndexed<'c>, extents: &'a Extents<'i>) -> Self {
        let (domain, maps) = (generic.domain(extents.ir), generic.maps(extents.ir));
        let runtimes = generic.runtimes();
        let first = generic.inputs().len() + generic.inits().len();
        let is_tensor =
            |value: &Val| mlir::is_tensor(value.r#type()) || mlir::is_memref(value.r#type());
        let tensors = (0..).zip(&runtimes).filter(|(_, value)| is_tensor(value));
        let elements = tensors.map(|(number, _)| number).zip(first..).collect();
        Self { extents, domain, maps, runtimes, elements }
    }

    /// The dimension and range variables that expressions depend on, also through elements of tensors.
    fn needs(&self, exprs: &[Expr]) -> BTreeSet<Var> {
        let ir = self.extents.ir;
        let mut needs = BTreeSet::new();
        let mut pending = ir.vars_of_all(exprs);
        while let Some(var) = pending.pop_first() {
            if !needs.insert(var) {
                continue;
            }
            let Var::Runtime(number) = var else { continue };
            if let Some(map) = self.elements.get(&number).and_then(|map| self.maps.get(*map)) {
                let guard = map.constraints.iter().map(|it| it.expr);
                let exprs: Vec<_> = map.results.iter().copied().chain(guard).collect();
                pending.extend(ir.vars_of_all(&exprs));
            }
        }
        needs.retain(|var| !matches!(var, Var::Runtime(_)));
        needs
    }

    /// An expression with the sizes of the function. `None` if it has other runtime variables.
    fn resolved(&self, expr: Expr) -> Option<Expr> {
        let ir = self.extents.ir;
        let mut values = BTreeMap::new();
        for var in ir.vars(expr) {
            let Var::Runtime(number) = var else { continue };
            let value = *self.runtimes.get(number as usize)?;
            values.insert(var, self.extents.value(value)?);
        }
        Some(ir.substitute(expr, &|var| values.get(&var).copied()))
    }

    /// The bounds of a variable.
    fn bounds(&self, var: Var) -> Option<(Expr, Expr)> {
        let variable = self.domain.variable(var)?;
        Some((self.resolved(variable.lower?)?, self.resolved(variable.upper?)?))
    }

    /// The constraints that depend on these variables only, in groups that have no variable in common.
    fn those_on(&self, vars: &BTreeSet<Var>, constraints: &[Constraint]) -> Vec<Vec<Constraint>> {
        let mut groups: Vec<(BTreeSet<Var>, Vec<Constraint>)> = Vec::new();
        for constraint in constraints {
            let mut needs = self.needs(&[constraint.expr]);
            if !needs.is_subset(vars) {
                continue;
            }
            let mut group = vec![*constraint];
            groups.retain(|(others, constraints)| {
                let is_apart = others.is_disjoint(&needs);
                if !is_apart {
                    needs.extend(others);
                    group.extend(constraints);
                }
                is_apart
            });
            groups.push((needs, group));
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }
}

/// Whether an operation has operations on tensors inside.
fn has_tensor_operations(op: Op) -> bool {
    let mut found = false;
    mlir::walk(op, &mut |inner| {
        let is_tensor = |value: Val| mlir::is_tensor(value.r#type());
        let is_read = matches!(mlir::name(inner), "tensor.extract" | "tensor.dim");
        found |= !is_read
            && (mlir::results(inner).into_iter().any(is_tensor)
                || mlir::operands(inner).into_iter().any(is_tensor)
                || mlir::is(inner, "memref.copy")
                || mlir::is(inner, "scf.while"));
    });
    found
}

/// Whether an operation is arithmetic on scalars or vectors.
fn is_scalar(op: Op) -> bool {
    let name = mlir::name(op);
    let dialect = name.split('.').next().unwrap_or_default();
    matches!(dialect, "arith" | "math" | "index")
        && op.region_count() == 0
        && mlir::operands(op).into_iter().chain(mlir::results(op)).all(|value| {
            let ty = value.r#type();
            !mlir::is_tensor(ty) && !mlir::is_memref(ty)
        })
        || name == "imap.builtin"
}

fn is_elementwise_on_tensors(op: Op) -> bool {
    let dialect = mlir::name(op).split('.').next().unwrap_or_default();
    matches!(dialect, "arith" | "math")
        && op.result_count() == 1
        && mlir::is_tensor(mlir::result(op, 0).r#type())
}

/// Whether an operation neither computes with floats nor moves elements.
fn is_free(name: &str) -> bool {
    matches!(
        name,
        "arith.constant"
            | "bufferization.to_buffer"
            | "bufferization.to_tensor"
            | "func.return"
            | "imap.apply"
            | "imap.check"
            | "imap.index"
            | "imap.inside"
            | "imap.yield"
            | "memref.alloc"
            | "memref.alloca"
            | "memref.cast"
            | "memref.dim"
            | "memref.get_global"
            | "memref.prefetch"
            | "scf.condition"
            | "scf.yield"
            | "tensor.cast"
            | "tensor.collapse_shape"
            | "tensor.dim"
            | "tensor.empty"
            | "tensor.expand_shape"
    )
}

/// The floating-point operations of an operation on scalars or vectors, or per element of a tensor.
fn flops(op: Op) -> i64 {
    let counted = [
        "arith.addf",
        "arith.subf",
        "arith.mulf",
        "arith.divf",
        "arith.remf",
        "arith.negf",
        "arith.minimumf",
        "arith.maximumf",
        "arith.minnumf",
        "arith.maxnumf",
        "imap.builtin",
    ];
    let name = mlir::name(op);
    let Some(ty) = mlir::results(op).first().map(|result| result.r#type()) else { return 0 };
    let is_float = mlir::is_float(ty) || mlir::is_float(mlir::element_type(ty));
    if !is_float || !(name.starts_with("math.") || counted.contains(&name)) {
        return 0;
    }
    let lanes = if ty.is_vector() { mlir::shape(ty) } else { Vec::new() };
    lanes.into_iter().flatten().product::<i64>() * if name == "math.fma" { 2 } else { 1 }
}
