//! Scans: the part of a statement that a value depends on, computed over the variables that
//! it depends on, with a test of the value at every point.
//!
//! The part is a backward slice from the value and from the conditions under which it is
//! used; the operations of a body are pure, so that any of them can be repeated. Slices
//! are linear in the size of the body. Equal values are found by numbering them.

use super::{Checked, SizeValues};
use melior::ir::{Attribute, Region, ValueLike, operation::OperationLike};
use std::collections::{BTreeSet, HashMap, HashSet};
use tc_dialects::{
    imap::{self, Combiner, CombinerKind, map},
    mlir::{self, Blk, Builder, Op, Val, ValueMap},
    report::Report,
    tc::Comprehension,
};
use tc_ir::{
    Context,
    expr::Expr,
    map::{IndexingMap, Variable},
    prove::Prover,
    solve,
};

/// An `scf.if` around an operation, and the branch that holds it.
#[derive(Copy, Clone)]
pub(super) struct Guard<'c> {
    op: Op<'c>,
    branch: usize,
    /// The number of the condition, which equal conditions share.
    number: usize,
}

impl<'c> Guard<'c> {
    /// The condition, and whether it has to hold.
    pub(super) fn condition(self) -> (Val<'c>, bool) {
        (mlir::operand(self.op, 0), self.branch == 0)
    }

    /// The block that holds the operation.
    fn block(self) -> Blk<'c> {
        mlir::body(self.op, self.branch).expect("the block in which the operation was found")
    }
}

impl PartialEq for Guard<'_> {
    /// Whether both let the same points pass.
    fn eq(&self, other: &Self) -> bool {
        (self.number, self.branch) == (other.number, other.branch)
    }
}

/// What holds of a value at every point.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Test {
    /// It is within closed bounds over the sizes; at least one is given.
    Inside { lower: Option<Expr>, upper: Option<Expr> },
    /// It is not 0.
    NonZero,
}

/// What a value and the conditions around it depend on.
pub(super) struct Slice {
    /// The operations to be repeated, by their first results.
    ops: HashSet<usize>,
    /// The variables, by the number of the block argument.
    vars: BTreeSet<usize>,
    /// The values from outside of the statement.
    pub(super) captured: HashSet<usize>,
    /// The reads, by their results.
    pub(super) reads: Vec<usize>,
    /// How many operations there are, nested ones included.
    pub(super) num_ops: usize,
}

impl Slice {
    fn holds(&self, op: Op) -> bool {
        op.result_count() > 0 && self.ops.contains(&first_result(op))
    }
}

/// Finds slices of one statement.
pub(super) struct Slicer<'c> {
    statement: Comprehension<'c>,
    /// The variables of the statement.
    arguments: HashMap<usize, usize>,
    /// The values computed in the statement.
    local: HashSet<usize>,
    /// Values of the same number are equal.
    numbers: HashMap<usize, usize>,
}

impl<'c> Slicer<'c> {
    pub(super) fn new(statement: Comprehension<'c>) -> Self {
        let arguments = mlir::arguments(statement.body()).into_iter().map(mlir::value_key);
        let mut slicer = Self {
            statement,
            arguments: arguments.enumerate().map(|(number, key)| (key, number)).collect(),
            local: HashSet::new(),
            numbers: HashMap::new(),
        };
        let mut known = HashMap::new();
        for top in mlir::ops(statement.body()) {
            mlir::walk(top, &mut |op| {
                slicer.local.extend(mlir::results(op).into_iter().map(mlir::value_key));
                slicer.number_results(op, &mut known);
            });
        }
        slicer
    }

    /// Gives the results of an operation the numbers of an equal one before it.
    fn number_results(&mut self, op: Op<'c>, known: &mut HashMap<String, Vec<usize>>) {
        if op.region_count() > 0 || op.result_count() == 0 {
            return;
        }
        let mut key = mlir::name(op).to_string();
        for (name, attribute) in op.attributes() {
            let name = name.as_string_ref();
            let name = name.as_str().unwrap_or_default();
            if !matches!(name, "text" | "in_bounds") {
                key += &format!(" {name}={attribute}");
            }
        }
        for operand in mlir::operands(op) {
            key += &format!(" {}", self.number(operand));
        }
        key += &format!(" {}", mlir::result(op, 0).r#type());
        let results = mlir::results(op);
        let fresh = self.numbers.len();
        let numbers =
            known.entry(key).or_insert_with(|| (fresh..fresh + results.len()).collect()).clone();
        self.numbers.extend(results.into_iter().map(mlir::value_key).zip(numbers));
    }

    /// The number of a value.
    pub(super) fn number(&mut self, value: Val<'c>) -> usize {
        let fresh = self.numbers.len();
        *self.numbers.entry(mlir::value_key(value)).or_insert(fresh)
    }

    /// The conditions around an operation of the statement, outermost first.
    pub(super) fn guards(&mut self, op: Op<'c>) -> Checked<'c, Vec<Guard<'c>>> {
        let mut guards = Vec::new();
        let mut inner = op;
        while let Some(outer) = mlir::parent(inner)
            && outer != self.statement.op()
        {
            let block = inner.block().map(mlir::block_ref);
            let branch = (0..2).find(|region| mlir::body(outer, *region) == block);
            let Some(branch) = branch.filter(|_| mlir::is(outer, "scf.if")) else {
                let message = format!(
                    "stands in '{}': expected only 'scf.if' around what is checked",
                    mlir::name(outer)
                );
                return Err(Box::new(Report::op_error(op, message)));
            };
            let number = self.number(mlir::operand(outer, 0));
            guards.push(Guard { op: outer, branch, number });
            inner = outer;
        }
        guards.reverse();
        Ok(guards)
    }

    /// What a value and the conditions around it depend on.
    pub(super) fn slice(&self, value: Val<'c>, guards: &[Guard<'c>]) -> Slice {
        let mut slice = Slice {
            ops: HashSet::new(),
            vars: BTreeSet::new(),
            captured: HashSet::new(),
            reads: Vec::new(),
            num_ops: 0,
        };
        // Values computed in the regions of operations that are repeated as a whole.
        let mut internal = HashSet::new();
        let mut seen = HashSet::new();
        let mut stack = vec![value];
        stack.extend(guards.iter().map(|guard| mlir::operand(guard.op, 0)));
        while let Some(value) = stack.pop() {
            let key = mlir::value_key(value);
            if internal.contains(&key) || !seen.insert(key) {
                continue;
            }
            if let Some(var) = self.arguments.get(&key) {
                slice.vars.insert(*var);
                continue;
            }
            let op = mlir::defining_op(value).filter(|_| self.local.contains(&key));
            let Some(op) = op else {
                slice.captured.insert(key);
                continue;
            };
            if !slice.ops.insert(first_result(op)) {
                continue;
            }
            mlir::walk(op, &mut |inner| {
                slice.num_ops += 1;
                let results = mlir::results(inner).into_iter().map(mlir::value_key);
                if mlir::is(inner, "tc.read") {
                    slice.reads.extend(results.clone());
                }
                if inner != op {
                    internal.extend(results);
                }
                stack.extend(mlir::operands(inner));
            });
        }
        slice
    }
}

fn first_result(op: Op) -> usize {
    mlir::value_key(mlir::result(op, 0))
}

/// Where the check of a scan stands: before a statement, after the checks of lower levels.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The number of the statement.
    pub(super) statement: usize,
    /// 0 if all reads of the scan are safe.
    pub(super) level: usize,
}

/// A scan to be emitted.
pub(super) struct Scan<'c> {
    pub(super) place: Place,
    /// The statement that holds the value.
    pub(super) statement: Comprehension<'c>,
    pub(super) domain: IndexingMap,
    /// The operation that uses the value.
    pub(super) op: Op<'c>,
    /// What is tested.
    pub(super) value: Val<'c>,
    pub(super) test: Test,
    /// When the operation is performed.
    pub(super) guards: Vec<Guard<'c>>,
    pub(super) slice: Slice,
    /// What the failed check says.
    pub(super) message: String,
}

impl<'c> Scan<'c> {
    /// Emits the scan, a tensor of rank 0.
    pub(super) fn emit(
        &self,
        builder: &Builder<'c>,
        ir: &Context,
        sizes: &mut SizeValues<'_, 'c>,
    ) -> Val<'c> {
        let builder = builder.located(self.op.location());
        let context = builder.context;
        let vars: Vec<_> = self.slice.vars.iter().copied().collect();
        let index_types = vec![builder.index_type(); vars.len()];
        let (region, block) = mlir::region_with_block(&index_types, builder.location);
        let mut values = ValueMap::default();
        let arguments = mlir::arguments(self.statement.body());
        for (var, argument) in vars.iter().zip(mlir::arguments(block)) {
            values.insert(arguments[*var], argument);
        }
        let comparison = self.comparison(&builder, ir, sizes);
        let inside = Builder::at_end(context, block, builder.location);
        let holds = self.emit_body(inside, values, comparison, ir);
        inside.op("tc.yield", &[holds], &[]);

        let names = super::variable_names(self.statement);
        let names: Vec<_> = vars.iter().map(|var| names[*var]).collect();
        let variables: Vec<&Variable> =
            self.domain.dims.iter().chain(&self.domain.ranges).collect();
        let domain = IndexingMap {
            ranges: vars.iter().map(|var| variables[*var].clone()).collect(),
            runtimes: self.domain.runtimes.clone(),
            ..IndexingMap::default()
        };
        let combiner = match vars[..] {
            [] => Combiner::ASSIGN,
            _ => Combiner { kind: CombinerKind::And, from_identity: true },
        };
        let target = format!("{}.check", self.statement.target());
        let mut attributes = vec![
            ("target", mlir::string(context, &target)),
            ("index_vars", mlir::array(context, &[])),
            ("combiner", combiner.attribute(context)),
            ("domain", map::to_attribute(context, ir, &domain)),
            ("operandSegmentSizes", mlir::segments(context, &[0, 0])),
        ];
        if !names.is_empty() {
            attributes.push(("reduction_vars", mlir::strings(context, &names)));
        }
        let ty = mlir::tensor_type(&[], builder.int_type(1));
        let regions = vec![region, Region::new()];
        let op = builder.op_with(Comprehension::NAME, &[], &[ty], &attributes, regions);
        mlir::result(op, 0)
    }

    /// Emits the read of what the scan found.
    pub(super) fn emit_read(&self, builder: &Builder<'c>, tensor: Val<'c>) -> Val<'c> {
        let builder = builder.located(self.op.location());
        let in_bounds = Attribute::unit(builder.context);
        builder.value_with("tc.read", &[tensor], builder.int_type(1), &[("in_bounds", in_bounds)])
    }

    /// Emits the sides of the comparison, which are the same at every point.
    fn comparison(
        &self,
        builder: &Builder<'c>,
        ir: &Context,
        sizes: &mut SizeValues<'_, 'c>,
    ) -> Comparison<'c> {
        let (lower, upper) = match self.test {
            Test::NonZero => return Comparison::NonZero,
            Test::Inside { lower, upper } => (lower, upper),
        };
        match (lower, upper) {
            (Some(lower), Some(upper)) => {
                let extent = ir.add(ir.sub(upper, lower), ir.constant(1));
                let extent = solve::simplified(&Prover::new(ir), extent).unwrap_or(extent);
                let origin = Some(lower).filter(|lower| ir.as_constant(*lower) != Some(0));
                let origin = origin.map(|origin| sizes.expr(builder, origin));
                Comparison::Within { origin, extent: sizes.expr(builder, extent) }
            }
            (Some(lower), None) => Comparison::AtLeast(sizes.expr(builder, lower)),
            (None, Some(upper)) => Comparison::AtMost(sizes.expr(builder, upper)),
            (None, None) => unreachable!("a test has a bound"),
        }
    }

    /// Emits the slice and the test, under the conditions. Returns whether the test holds or
    /// is not needed.
    fn emit_body(
        &self,
        inside: Builder<'c>,
        mut values: ValueMap<'c>,
        comparison: Comparison<'c>,
        ir: &Context,
    ) -> Val<'c> {
        let num_free = self.num_free_guards();
        let mut builder = inside;
        let mut block = self.statement.body();
        let mut frames = Vec::new();
        for (depth, guard) in self.guards.iter().enumerate() {
            self.copy_slice(block, guard.op, &builder, &mut values);
            let condition = mlir::operand(guard.op, 0);
            let condition = values.get(condition).unwrap_or(condition);
            let mut frame = Frame { builder, condition, branch: guard.branch, region: None };
            if depth + num_free < self.guards.len() {
                let (region, inner) = mlir::region_with_block(&[], builder.location);
                builder = Builder::at_end(builder.context, inner, builder.location);
                frame.region = Some(region);
            }
            frames.push(frame);
            block = guard.block();
        }
        self.copy_slice(block, self.op, &builder, &mut values);
        let value = values.get(self.value).unwrap_or(self.value);
        let mut holds = comparison.emit(&builder, ir, value);
        for frame in frames.into_iter().rev() {
            let outer = frame.builder;
            holds = frame.close(&builder, holds);
            builder = outer;
        }
        holds
    }

    /// How many of the innermost conditions guard no read that may fail: what they guard is
    /// computed at every point, without a branch.
    fn num_free_guards(&self) -> usize {
        let is_free = |guard: &&Guard<'c>| {
            mlir::ops(guard.block()).into_iter().filter(|op| self.slice.holds(*op)).all(|op| {
                op.region_count() == 0
                    && (!mlir::is(op, "tc.read") || op.has_attribute("in_bounds"))
            })
        };
        self.guards.iter().rev().take_while(is_free).count()
    }

    /// Copies the operations of the slice that stand in a block before `end`.
    fn copy_slice(
        &self,
        block: Blk<'c>,
        end: Op<'c>,
        builder: &Builder<'c>,
        values: &mut ValueMap<'c>,
    ) {
        for op in mlir::ops(block).into_iter().take_while(|op| *op != end) {
            if self.slice.holds(op) {
                builder.located(op.location()).copy(op, values);
            }
        }
    }
}

/// A test whose sides have been computed.
#[derive(Copy, Clone)]
enum Comparison<'c> {
    /// From the origin, or 0, on, fewer than the extent.
    Within {
        origin: Option<Val<'c>>,
        extent: Val<'c>,
    },
    AtLeast(Val<'c>),
    AtMost(Val<'c>),
    NonZero,
}

impl<'c> Comparison<'c> {
    fn emit(self, builder: &Builder<'c>, ir: &Context, value: Val<'c>) -> Val<'c> {
        match self {
            Self::Within { origin, extent } => {
                let position = match origin {
                    None => value,
                    Some(origin) => {
                        let map = IndexingMap {
                            dims: vec![Variable::default(); 2],
                            results: vec![ir.sub(ir.dim(0), ir.dim(1))],
                            ..IndexingMap::default()
                        };
                        imap::build_apply(builder, ir, &map, &[value, origin])[0]
                    }
                };
                // Negative positions are the largest unsigned numbers.
                builder.compare_int("ult", position, extent)
            }
            Self::AtLeast(bound) => builder.compare_int("sge", value, bound),
            Self::AtMost(bound) => builder.compare_int("sle", value, bound),
            Self::NonZero => {
                let zero = builder.integer(value.r#type(), 0);
                builder.compare_int("ne", value, zero)
            }
        }
    }
}

/// A condition in a scan: where it is tested, and the region of its branch, unless the
/// branch is computed whether the condition holds or not.
struct Frame<'c> {
    builder: Builder<'c>,
    condition: Val<'c>,
    branch: usize,
    region: Option<Region<'c>>,
}

impl<'c> Frame<'c> {
    /// Ends the branch, in which `holds` was computed by `inside`. Where the branch is not
    /// taken, all is well.
    fn close(self, inside: &Builder<'c>, holds: Val<'c>) -> Val<'c> {
        let Self { builder, condition, branch, region } = self;
        let ty = builder.int_type(1);
        let Some(region) = region else {
            let well = builder.integer(ty, 1);
            let (yes, no) = if branch == 0 { (holds, well) } else { (well, holds) };
            return builder.select(condition, yes, no);
        };
        inside.op("scf.yield", &[holds], &[]);
        let (other, block) = mlir::region_with_block(&[], builder.location);
        let not_taken = Builder::at_end(builder.context, block, builder.location);
        let well = not_taken.integer(ty, 1);
        not_taken.op("scf.yield", &[well], &[]);
        let regions = if branch == 0 { vec![region, other] } else { vec![other, region] };
        mlir::result(builder.op_with("scf.if", &[condition], &[ty], &[], regions), 0)
    }
}
