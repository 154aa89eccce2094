//! `tc-runtime-checks`: check unproven assumptions of range inference, outside the loops.
//!
//! The code of a statement assumes three kinds of facts, which may be false at run time. The pass emits
//! an `imap.check` with a message for each fact that it cannot prove:
//!
//! - Every index variable has a value: `lower <= upper`, a condition on the sizes.
//! - Every read is in bounds. For unconditional reads without data in their indices, this is a condition
//!   on the sizes. All other reads need a *scan*: a comprehension of rank 0 that recomputes the index
//!   over its variables and folds the comparisons with `and`. A scan also recomputes the conditions
//!   under which the read happens.
//! - No integer is divided by 0: a scan of the divisors.
//!
//! ```mlir
//! %O = tc.comprehension "O"["i"] .. {
//! ^bb0(%i: index):
//!   %k = tc.read %I[%i] {in_bounds} : tensor<?xi32> -> i32
//!   %p = arith.index_cast %k : i32 to index
//!   %x = tc.read %T[%p] : tensor<?xf32> -> f32
//!   ..
//! ```
//!
//! becomes, before the statement,
//!
//! ```mlir
//! %scan = tc.comprehension "O.check"[] reduce ["i"] #imap.combiner<and from identity> .. {
//! ^bb0(%i: index):
//!   %k = tc.read %I[%i] {in_bounds} : tensor<?xi32> -> i32
//!   %p = arith.index_cast %k : i32 to index
//!   %inside = arith.cmpi ult, %p, %B : index
//!   tc.yield %inside : i1
//! } : tensor<i1>
//! %ok = tc.read %scan[] {in_bounds} : tensor<i1> -> i1
//! imap.check %ok, "expected 0 <= I(i) < B for 'T(I(i))'"
//! ```
//!
//! All conditions on sizes are at the start of the function, followed by the scans that read only
//! arguments. A scan of an earlier result is directly before its statement. If a scan reads through an
//! access that itself needs a check, it comes after that check: scans are emitted in levels, and all
//! scans of a level precede its checks.
//!
//! Run this pass after `tc-infer-ranges` and before `convert-tc-to-imap`. It relies on the shapes of the
//! arguments, which the caller checks against `tc.sizes`. `kind=shape` checks only conditions on sizes
//! and indices, without data and divisors. `kind=bounds` also checks data that is used as an index.
//!
//! Limits: a read that can fail occurs directly in the body or in `scf.if`, in no other operation; the
//! scans of a function have at most `MAX_SCAN_OPS` operations.

mod facts;
mod scan;

use self::scan::{Guard, Place, Scan, Slicer, Test};
use crate::analysis::index_reader::{IndexReader, Leaves, element_read};
use melior::ir::{Location, ValueLike, operation::OperationLike};
use std::collections::{HashMap, HashSet};
use tc_dialects::{
    imap::{self, MAX_EXTENT, map},
    mlir::{self, Builder, Op, Val},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::{RemarkKind, Report, remark},
    tc::{Comprehension, Def, Size},
    text::Severity,
};
use tc_ir::{
    Context,
    expr::{Expr, Var},
    interval::Interval,
    map::{IndexingMap, Variable},
    polynomial,
    prove::{Prover, Verdict},
    solve::{self, Extreme},
};

/// The most operations in the scans of one function.
const MAX_SCAN_OPS: usize = 1 << 16;

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "tc-runtime-checks",
    summary: "Check unproven assumptions of range inference, outside the loops",
    anchor: "builtin.module",
    options: &[PassOption {
        name: "kind",
        description: "What to check: 'shape' for conditions on sizes and indices, 'bounds' for \
                      indices that are data too, 'all' for divisors too",
        default: "all",
    }],
    dependent_dialects: &["arith", "imap", "scf", "tc"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    let kind = match pass.options.text("kind") {
        "all" => Kind::All,
        "bounds" => Kind::Bounds,
        "shape" => Kind::Shape,
        other => {
            let message =
                format!("expected 'kind' to be 'shape', 'bounds' or 'all', but found '{other}'");
            Report::at(pass.op.location(), Severity::Error, message).emit();
            return Err(Failure);
        }
    };
    for def in mlir::ops(block).into_iter().filter_map(Def::cast) {
        pass.enter(def.op());
        check_def(def, kind).map_err(|report| {
            report.emit();
            Failure
        })?;
    }
    Ok(())
}

/// What is checked.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Kind {
    Shape,
    Bounds,
    All,
}

type Checked<'c, T> = Result<T, Box<Report<'c>>>;

/// A condition on the sizes: expressions that are all `>= 0`.
struct Condition<'c> {
    exprs: Vec<Expr>,
    message: String,
    location: Location<'c>,
}

/// A value that the algebra does not follow, with what is known of it.
struct Data {
    /// How it is written, if it is an element.
    text: Option<String>,
    interval: Interval,
}

struct Checker<'c, 'i> {
    ir: &'i Context,
    kind: Kind,
    sizes: Vec<&'c str>,
    /// Knows the sizes, and the conditions that are checked.
    prover: Prover<'i>,
    /// The closed bounds of each dimension of a tensor.
    tensors: HashMap<usize, Vec<(Expr, Expr)>>,
    /// The runtime variables after the sizes.
    data: Vec<Data>,
    /// What the first statement can use.
    at_entry: HashSet<usize>,
    conditions: Vec<Condition<'c>>,
    scans: Vec<Scan<'c>>,
    num_scan_ops: usize,
}

fn check_def<'c>(def: Def<'c>, kind: Kind) -> Checked<'c, ()> {
    let ir = Context::new();
    let statements = def.comprehensions();
    let Some(first) = statements.first().map(|statement| statement.op()) else { return Ok(()) };
    let mut checker = Checker::new(&ir, def, kind);
    let mut domains = Vec::new();
    for statement in &statements {
        let domain = checker.domain(*statement)?;
        checker.require_values(*statement, &domain);
        checker.add_tensors(*statement, &domain);
        domains.push(domain);
    }
    checker.require_preconditions(def)?;
    let mut outer = IndexReader::new(&ir, &checker.sizes);
    let mut number = 0;
    for op in mlir::ops(def.body()) {
        if let Some(statement) = Comprehension::cast(op) {
            checker.inspect(statement, number, &domains[number], &outer)?;
            number += 1;
        } else {
            outer.visit(op, &mut DataLeaves { checker: &mut checker, statement: None });
        }
    }
    let counts = [checker.conditions.len(), checker.scans.len()].map(|it| it.to_string());
    checker.emit(def, first, &statements);
    remark(
        def.op().location(),
        RemarkKind::Passed,
        PASS.argument,
        "checks",
        def.name(),
        &[("Conditions", &counts[0]), ("Scans", &counts[1])],
    );
    Ok(())
}

/// The names of the variables of a statement, in the order of its block arguments.
fn variable_names<'c>(statement: Comprehension<'c>) -> Vec<&'c str> {
    [statement.index_vars(), statement.reduction_vars()].concat()
}

/// Which number the bits of an integer are.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
enum Signedness {
    Signed,
    Unsigned,
}

/// The expressions of integers and of indices that are data, by the numbers of the values.
type Vars = HashMap<(usize, Signedness), Expr>;

/// Index values that the algebra does not follow become runtime variables, in a statement
/// one for all that are equal.
struct DataLeaves<'a, 'c, 'i> {
    checker: &'a mut Checker<'c, 'i>,
    statement: Option<(&'a mut Slicer<'c>, &'a mut Vars)>,
}

impl<'c> Leaves<'c> for DataLeaves<'_, 'c, '_> {
    fn leaf(&mut self, _: &IndexReader<'c, '_>, value: Val<'c>) -> Option<Expr> {
        let read = element_read(value);
        let data = match read {
            Some((read, unsigned)) => {
                let ty = mlir::element_type(mlir::operand(read, 0).r#type());
                Data {
                    text: mlir::string_attr(read, "text").map(str::to_string),
                    interval: imap::element_interval(ty, unsigned),
                }
            }
            None => Data { text: None, interval: Interval::ALL },
        };
        let Some((slicer, vars)) = &mut self.statement else {
            return Some(self.checker.add_data(data, None));
        };
        // An element and the index it becomes are one number.
        let number = match read {
            Some((read, false)) => (slicer.number(mlir::result(read, 0)), Signedness::Signed),
            Some((read, true)) => (slicer.number(mlir::result(read, 0)), Signedness::Unsigned),
            None => (slicer.number(value), Signedness::Signed),
        };
        Some(*vars.entry(number).or_insert_with(|| self.checker.add_data(data, None)))
    }

    fn extent(&mut self, tensor: Val<'c>, dim: usize) -> Option<Expr> {
        let bounds = self.checker.tensors.get(&mlir::value_key(tensor))?;
        let (lower, upper) = *bounds.get(dim)?;
        Some(self.checker.extent(lower, upper))
    }
}

/// A statement under inspection.
struct Inspection<'a, 'c, 'i> {
    statement: Comprehension<'c>,
    number: usize,
    domain: &'a IndexingMap,
    exprs: IndexReader<'c, 'a>,
    /// Knows the variables of the statement and its data too.
    prover: Prover<'i>,
    slicer: Slicer<'c>,
    vars: Vars,
    /// Per read that is scanned, by its result, the level of the scan.
    levels: HashMap<usize, usize>,
    /// The scans so far: what is tested, the number of the tested value, the guards.
    known: Vec<(Test, usize, Vec<Guard<'c>>, usize)>,
}

impl<'c, 'i> Checker<'c, 'i> {
    fn new(ir: &'i Context, def: Def<'c>, kind: Kind) -> Self {
        let sizes: Vec<_> = def.sizes().into_iter().map(|(name, ..)| name).collect();
        let mut prover = Prover::new(ir);
        for number in 0..sizes.len() {
            let (lower, upper) = (ir.constant(1), ir.constant(MAX_EXTENT));
            prover.bound(Var::Runtime(number as u32), Some(lower), Some(upper));
        }
        let mut tensors = HashMap::new();
        for parameter in def.parameters().into_iter().filter(|it| !it.inout) {
            let bounds = parameter.sizes.iter().map(|size| {
                let extent = match size {
                    Size::Constant(extent) => ir.constant(*extent),
                    Size::Variable(name) => {
                        let number = sizes.iter().position(|known| known == name);
                        ir.runtime(number.expect("the list was made of these") as u32)
                    }
                };
                (ir.constant(0), ir.sub(extent, ir.constant(1)))
            });
            tensors.insert(mlir::value_key(parameter.value), bounds.collect());
        }
        let mut at_entry: HashSet<_> =
            mlir::arguments(def.body()).into_iter().map(mlir::value_key).collect();
        for op in mlir::ops(def.body()) {
            if Comprehension::cast(op).is_some() {
                break;
            }
            at_entry.extend(mlir::results(op).into_iter().map(mlir::value_key));
        }
        Self {
            ir,
            kind,
            sizes,
            prover,
            tensors,
            data: Vec::new(),
            at_entry,
            conditions: Vec::new(),
            scans: Vec::new(),
            num_scan_ops: 0,
        }
    }

    /// The domain of a statement, bounded on all sides.
    fn domain(&self, statement: Comprehension<'c>) -> Checked<'c, IndexingMap> {
        let error = |message: &str| Box::new(Report::op_error(statement.op(), message));
        let Some(domain) = statement.domain(self.ir) else {
            let error = Report::op_error(statement.op(), "has no domain yet");
            return Err(Box::new(error.note(None, "try running 'tc-infer-ranges' first")));
        };
        if domain.runtimes.len() != self.sizes.len() {
            return Err(error(&format!(
                "has a domain with {} runtime variables, but its function has {} size variables",
                domain.runtimes.len(),
                self.sizes.len()
            )));
        }
        let mut variables = domain.dims.iter().chain(&domain.ranges);
        if variables.any(|it| it.lower.is_none() || it.upper.is_none()) {
            return Err(error("expects bounds on both sides of every variable of its domain"));
        }
        Ok(domain)
    }

    fn simplified(&self, expr: Expr) -> Expr {
        solve::simplified(&self.prover, expr).unwrap_or(expr)
    }

    fn extent(&self, lower: Expr, upper: Expr) -> Expr {
        self.simplified(self.ir.add(self.ir.sub(upper, lower), self.ir.constant(1)))
    }

    /// The name of a variable; `names` are those of the statement.
    fn name_of(&self, names: &[&str], rank: usize, var: Var) -> String {
        let name = match var {
            Var::Dim(number) => names.get(number as usize).copied(),
            Var::Range(number) => names.get(rank + number as usize).copied(),
            Var::Runtime(number) => match self.data_of(var) {
                None => self.sizes.get(number as usize).copied(),
                Some(data) => data.text.as_deref(),
            },
        };
        name.unwrap_or("the index").to_string()
    }

    /// The data that a variable stands for, if it does.
    fn data_of(&self, var: Var) -> Option<&Data> {
        let Var::Runtime(number) = var else { return None };
        self.data.get((number as usize).checked_sub(self.sizes.len())?)
    }

    /// A new variable for data, of which a prover is told if there is one already.
    fn add_data(&mut self, data: Data, prover: Option<&mut Prover<'i>>) -> Expr {
        let var = Var::Runtime((self.sizes.len() + self.data.len()) as u32);
        if let Some(prover) = prover {
            self.bound(prover, var, data.interval);
        }
        self.data.push(data);
        self.ir.var(var)
    }

    fn bound(&self, prover: &mut Prover<'i>, var: Var, interval: Interval) {
        let finite = |bound, infinity| (bound != infinity).then(|| self.ir.constant(bound));
        let Interval { lo, hi } = interval;
        prover.bound(var, finite(lo, i64::MIN), finite(hi, i64::MAX));
    }

    /// Requires expressions over the sizes to be `>= 0`. Those that are known to be are left
    /// out; the others are known from here on.
    fn require(&mut self, exprs: &[Expr], message: String, location: Location<'c>) {
        // What fails for all sizes is never known to hold, but still said once.
        let is_said = |expr: Expr| self.conditions.iter().any(|it| it.exprs.contains(&expr));
        let open =
            |expr: &&Expr| self.prover.nonnegative(**expr) != Verdict::Proved && !is_said(**expr);
        let exprs: Vec<_> = exprs.iter().filter(open).copied().collect();
        if exprs.is_empty() {
            return;
        }
        for expr in &exprs {
            self.prover.assume_at_most(self.ir.constant(0), *expr);
        }
        self.conditions.push(Condition { exprs, message, location });
    }

    /// Requires that every variable of a statement has a value.
    fn require_values(&mut self, statement: Comprehension<'c>, domain: &IndexingMap) {
        let target = statement.left_text();
        let variables = domain.dims.iter().chain(&domain.ranges);
        for (name, variable) in variable_names(statement).into_iter().zip(variables) {
            let (Some(lower), Some(upper)) = (variable.lower, variable.upper) else { continue };
            let difference = self.simplified(self.ir.sub(upper, lower));
            let condition =
                polynomial::condition_text(self.ir, difference, &|var| self.name_of(&[], 0, var));
            let message = format!("expected {condition} for the range of '{name}' in '{target}'");
            self.require(&[difference], message, statement.op().location());
        }
    }

    /// Notes the bounds of the tensor that a statement defines.
    fn add_tensors(&mut self, statement: Comprehension<'c>, domain: &IndexingMap) {
        let own = domain.dims.iter().filter_map(|dim| dim.lower.zip(dim.upper)).collect();
        let bounds = match statement.outs() {
            // Contents that the caller passes in have the bounds of the first statement.
            Some(outs) => self.tensors.entry(mlir::value_key(outs)).or_insert(own).clone(),
            None => own,
        };
        self.tensors.insert(mlir::value_key(statement.result()), bounds);
    }

    /// Requires what range inference recorded as conditions on the sizes.
    fn require_preconditions(&mut self, def: Def<'c>) -> Checked<'c, ()> {
        // Guarded ones are found again at the reads.
        for precondition in def.preconditions().into_iter().filter(|it| !it.guarded) {
            let condition = precondition.condition;
            let condition = condition.and_then(|it| map::from_attribute(self.ir, it));
            let Some(condition) = condition else { continue };
            if condition.runtimes.len() != self.sizes.len() {
                let message = "has a precondition that is not over its size variables";
                return Err(Box::new(Report::op_error(def.op(), message)));
            }
            let mut exprs = Vec::new();
            for constraint in &condition.constraints {
                let Interval { lo, hi } = constraint.interval;
                if lo != i64::MIN {
                    exprs.push(self.ir.sub(constraint.expr, self.ir.constant(lo)));
                }
                if hi != i64::MAX {
                    exprs.push(self.ir.sub(self.ir.constant(hi), constraint.expr));
                }
            }
            let message = format!("expected {} for '{}'", precondition.text, precondition.access);
            self.require(&exprs, message, def.op().location());
        }
        Ok(())
    }

    /// Finds what has to be scanned before a statement.
    fn inspect(
        &mut self,
        statement: Comprehension<'c>,
        number: usize,
        domain: &IndexingMap,
        outer: &IndexReader<'c, '_>,
    ) -> Checked<'c, ()> {
        let mut doubtful = Vec::new();
        for top in mlir::ops(statement.body()) {
            mlir::walk(top, &mut |op| match mlir::name(op) {
                "tc.read" if !op.has_attribute("in_bounds") => doubtful.push(op),
                "tc.div" | "tc.rem" if self.kind == Kind::All => doubtful.push(op),
                _ => {}
            });
        }
        if doubtful.is_empty() && statement.addressed().is_empty() {
            return Ok(());
        }
        let first_data = self.data.len();
        let mut exprs = IndexReader::nested(outer);
        exprs.enter(statement, statement.body());
        let (mut slicer, mut vars) = (Slicer::new(statement), Vars::new());
        let numbering = Some((&mut slicer, &mut vars));
        let mut leaves = DataLeaves { checker: self, statement: numbering };
        exprs.visit_block(statement.body(), &mut leaves);
        let mut prover = self.prover.fork();
        for (number, dim) in domain.dims.iter().enumerate() {
            prover.bound(Var::Dim(number as u32), dim.lower, dim.upper);
        }
        for (number, range) in domain.ranges.iter().enumerate() {
            prover.bound(Var::Range(number as u32), range.lower, range.upper);
        }
        for (number, data) in self.data.iter().enumerate().skip(first_data) {
            let var = Var::Runtime((self.sizes.len() + number) as u32);
            self.bound(&mut prover, var, data.interval);
        }
        let mut inspection = Inspection {
            statement,
            number,
            domain,
            exprs,
            prover,
            slicer,
            vars,
            levels: HashMap::new(),
            known: Vec::new(),
        };
        for op in doubtful {
            if mlir::is(op, "tc.read") {
                self.inspect_read(&mut inspection, op)?;
            } else {
                self.inspect_division(&mut inspection, op)?;
            }
        }
        let update = mlir::terminator(statement.body());
        for (dim, address) in statement.addressed().into_iter().zip(statement.addresses()) {
            let (Some(lower), Some(upper)) = (domain.dims[dim].lower, domain.dims[dim].upper)
            else {
                continue;
            };
            let text = statement.left_text();
            self.inspect_index(&mut inspection, update, address, (lower, upper), &text)?;
        }
        Ok(())
    }

    fn inspect_read(&mut self, at: &mut Inspection<'_, 'c, 'i>, read: Op<'c>) -> Checked<'c, ()> {
        let operands = mlir::operands(read);
        let Some(bounds) = self.tensors.get(&mlir::value_key(operands[0])).cloned() else {
            let message = "reads a tensor that is neither an argument nor a result of a statement";
            return Err(Box::new(Report::op_error(read, message)));
        };
        let access = mlir::string_attr(read, "text").unwrap_or("a read");
        for (index, bounds) in operands[1..].iter().zip(bounds) {
            if let Some(level) = self.inspect_index(at, read, *index, bounds, access)? {
                let key = mlir::value_key(mlir::result(read, 0));
                let known = at.levels.entry(key).or_insert(level);
                *known = level.max(*known);
            }
        }
        Ok(())
    }

    /// Requires that an index of an access is within bounds. Returns the level of the scan, if that
    /// takes one.
    fn inspect_index(
        &mut self,
        at: &mut Inspection<'_, 'c, 'i>,
        op: Op<'c>,
        index: Val<'c>,
        (lower, upper): (Expr, Expr),
        access: &str,
    ) -> Checked<'c, Option<usize>> {
        let guards = at.slicer.guards(op)?;
        let facts = self.facts(at, &guards);
        let names = variable_names(at.statement);
        let rank = at.domain.dims.len();
        let expr = at.exprs.get(index).expect("every index value has an expression");
        let below = facts.prover.at_most(lower, expr) != Verdict::Proved;
        let above = facts.prover.at_most(expr, upper) != Verdict::Proved;
        let (lower, upper) = (below.then_some(lower), above.then_some(upper));
        if lower.is_none() && upper.is_none() {
            return Ok(None);
        }
        let has_data = self.ir.vars(expr).into_iter().any(|var| self.data_of(var).is_some());
        if has_data && self.kind == Kind::Shape {
            return Ok(None);
        }
        let show = |expr| polynomial::text(self.ir, expr, &|var| self.name_of(&names, rank, var));
        let low = lower.map(|lower| format!("{} <= ", show(lower))).unwrap_or_default();
        let high = upper.map(|upper| {
            let after = self.simplified(self.ir.add(upper, self.ir.constant(1)));
            format!(" < {}", show(after))
        });
        let range = format!("{low}{}{}", show(expr), high.unwrap_or_default());
        let message = format!("expected {range} for '{access}'");
        // A condition on the sizes is normally one of the preconditions already.
        if !has_data
            && guards.is_empty()
            && let Some(conditions) = self.size_conditions(at, expr, lower, upper)
        {
            self.require(&conditions, message, op.location());
            return Ok(None);
        }
        self.add_scan(at, op, index, Test::Inside { lower, upper }, guards, message).map(Some)
    }

    /// Expressions over the sizes that are all `>= 0` exactly if an index is within bounds
    /// for all values of the variables; `None` if that takes a look at each value.
    fn size_conditions(
        &self,
        at: &Inspection<'_, 'c, 'i>,
        expr: Expr,
        lower: Option<Expr>,
        upper: Option<Expr>,
    ) -> Option<Vec<Expr>> {
        let eliminate = |var| {
            let variable = match var {
                Var::Dim(number) => at.domain.dims.get(number as usize),
                Var::Range(number) => at.domain.ranges.get(number as usize),
                Var::Runtime(_) => None,
            };
            variable.map(|variable| (variable.lower, variable.upper))
        };
        let mut conditions = Vec::new();
        if let Some(lower) = lower {
            let Ok(Extreme::Finite(least)) = solve::minimum(&at.prover, expr, &eliminate) else {
                return None;
            };
            conditions.push(self.ir.sub(least, lower));
        }
        if let Some(upper) = upper {
            let Ok(Extreme::Finite(greatest)) = solve::maximum(&at.prover, expr, &eliminate) else {
                return None;
            };
            conditions.push(self.ir.sub(upper, greatest));
        }
        Some(conditions)
    }

    fn inspect_division(
        &mut self,
        at: &mut Inspection<'_, 'c, 'i>,
        division: Op<'c>,
    ) -> Checked<'c, ()> {
        let divisor = mlir::operand(division, 1);
        let guards = at.slicer.guards(division)?;
        if self.is_nonzero(at, divisor, &guards) {
            return Ok(());
        }
        let (names, rank) = (variable_names(at.statement), at.domain.dims.len());
        let expr = self.int_expr(at, divisor, 0);
        let is_nameless = |var| self.data_of(var).is_some_and(|data| data.text.is_none());
        let text = if self.ir.vars(expr).into_iter().any(is_nameless) {
            "a divisor".to_string()
        } else {
            polynomial::text(self.ir, expr, &|var| self.name_of(&names, rank, var))
        };
        let message =
            format!("expected {text} != 0 for a division in '{}'", at.statement.left_text());
        self.add_scan(at, division, divisor, Test::NonZero, guards, message)?;
        Ok(())
    }

    /// Adds a scan, unless one that says as much is there. Returns its level.
    fn add_scan(
        &mut self,
        at: &mut Inspection<'_, 'c, 'i>,
        op: Op<'c>,
        value: Val<'c>,
        test: Test,
        guards: Vec<Guard<'c>>,
        message: String,
    ) -> Checked<'c, usize> {
        let number = at.slicer.number(value);
        let same = at.known.iter().find(|(known, value, outer, _)| {
            *known == test && *value == number && guards.starts_with(outer)
        });
        if let Some((.., level)) = same {
            return Ok(*level);
        }
        let slice = at.slicer.slice(value, &guards);
        self.num_scan_ops += slice.num_ops;
        if MAX_SCAN_OPS < self.num_scan_ops {
            let message = format!("needs scans with more than {MAX_SCAN_OPS} operations");
            return Err(Box::new(Report::op_error(at.statement.op(), message)));
        }
        let level = slice.reads.iter().filter_map(|read| at.levels.get(read)).max();
        let level = level.map_or(0, |level| level + 1);
        let hoisted = slice.captured.iter().all(|value| self.at_entry.contains(value));
        let statement = if hoisted { 0 } else { at.number };
        at.known.push((test, number, guards.clone(), level));
        self.scans.push(Scan {
            place: Place { statement, level },
            statement: at.statement,
            domain: at.domain.clone(),
            op,
            value,
            test,
            guards,
            slice,
            message,
        });
        Ok(level)
    }

    /// Emits all checks. `first` is the first statement.
    fn emit(mut self, def: Def<'c>, first: Op<'c>, statements: &[Comprehension<'c>]) {
        let start = mlir::ops(def.body())[0];
        let mut sizes = SizeValues {
            ir: self.ir,
            builder: Builder::before(start),
            names: &self.sizes,
            values: HashMap::new(),
        };
        let at_first = Builder::before(first);
        let values: Vec<_> = self
            .conditions
            .iter()
            .map(|condition| {
                sizes.all_nonnegative(&at_first.located(condition.location), &condition.exprs)
            })
            .collect();
        for (condition, value) in self.conditions.iter().zip(values) {
            imap::build_check(&at_first.located(condition.location), value, &condition.message);
        }
        self.scans.sort_by_key(|scan| scan.place);
        for group in self.scans.chunk_by(|a, b| a.place == b.place) {
            // All scans of a group first, then all checks: code that is reached only if
            // checks hold nests once per group.
            let builder = Builder::before(statements[group[0].place.statement].op());
            let tensors: Vec<_> =
                group.iter().map(|scan| scan.emit(&builder, self.ir, &mut sizes)).collect();
            let values: Vec<_> = group
                .iter()
                .zip(tensors)
                .map(|(scan, tensor)| scan.emit_read(&builder, tensor))
                .collect();
            for (scan, value) in group.iter().zip(values) {
                imap::build_check(&builder.located(scan.op.location()), value, &scan.message);
            }
        }
    }
}

/// Values of expressions over the sizes, in the function around the statements.
struct SizeValues<'a, 'c> {
    ir: &'a Context,
    /// The start of the function.
    builder: Builder<'c>,
    names: &'a [&'c str],
    values: HashMap<u32, Val<'c>>,
}

impl<'c> SizeValues<'_, 'c> {
    fn size(&mut self, number: u32) -> Val<'c> {
        *self.values.entry(number).or_insert_with(|| {
            let name = mlir::string(self.builder.context, self.names[number as usize]);
            let ty = self.builder.index_type();
            self.builder.value_with("tc.size", &[], ty, &[("name", name)])
        })
    }

    /// Emits the values of expressions.
    fn exprs(&mut self, builder: &Builder<'c>, exprs: &[Expr]) -> Vec<Val<'c>> {
        let used: Vec<_> = self
            .ir
            .vars_of_all(exprs)
            .into_iter()
            .filter_map(|var| match var {
                Var::Runtime(number) => Some(number),
                Var::Dim(_) | Var::Range(_) => None,
            })
            .collect();
        let renumbered = |var| match var {
            Var::Runtime(number) => {
                let place = used.iter().position(|used| *used == number)?;
                Some(self.ir.runtime(place as u32))
            }
            Var::Dim(_) | Var::Range(_) => None,
        };
        let map = IndexingMap {
            runtimes: used
                .iter()
                .map(|number| Variable::default().named(self.names[*number as usize]))
                .collect(),
            results: self.ir.substitute_all(exprs, &renumbered),
            ..IndexingMap::default()
        };
        let operands: Vec<_> = used.iter().map(|number| self.size(*number)).collect();
        imap::build_apply(builder, self.ir, &map, &operands)
    }

    /// Emits the value of one expression.
    fn expr(&mut self, builder: &Builder<'c>, expr: Expr) -> Val<'c> {
        match self.ir.as_constant(expr) {
            Some(value) => builder.index(value),
            None => self.exprs(builder, &[expr])[0],
        }
    }

    /// Emits whether all expressions are `>= 0`.
    fn all_nonnegative(&mut self, builder: &Builder<'c>, exprs: &[Expr]) -> Val<'c> {
        let zero = builder.index(0);
        let mut all = None;
        for value in self.exprs(builder, exprs) {
            let holds = builder.compare_int("sge", value, zero);
            all = Some(match all {
                None => holds,
                Some(all) => builder.value("arith.andi", &[all, holds], builder.int_type(1)),
            });
        }
        all.unwrap_or_else(|| builder.integer(builder.int_type(1), 1))
    }
}
