//! `TilingInterface` of operations with maps: the operation on a tile of its iteration domain.
//!
//! Loops are numbered dimension variables first, then range variables, and count from 0 whatever the
//! lower bounds of the variables: the driver of LLVM 22 takes the size of a loop for its upper bound.
//! A tile has an offset and a size per loop. A loop is *whole* if the tile holds all of its
//! iterations; the others are *cut*.
//!
//! * **Slices.** A subscript that is a linear sum of variables maps a tile to an interval, its
//!   *hull*. The operand is sliced to the hull, with stride 1; the factors stay in the map. A
//!   subscript without cut variables keeps its dimension whole, and so does an irregular one
//!   (`floordiv`, gathers, products of variables).
//! * **Bounds.** A hull must not stick out of its operand. Without constraints it cannot, because
//!   every point of the box accesses the operand. With constraints, either bounds prove it, or a
//!   constraint bounds the subscript itself and the slice is clamped to the operand, or the
//!   dimension stays whole. The guard of an access counts as constraints. An input is clamped only if an `imap.generic` computes it, which
//!   fusion may then compute per tile: otherwise static shapes are worth more than a slice.
//! * **Variables.** A cut variable counts from 0 in the tile. Its offset becomes a runtime variable
//!   of type `index` where irregular subscripts, constraints or `imap.index` need it.
//! * **Destinations.** Elements of the hull that no point stores keep the value of the destination.
//!   A dimension loop is parallel if the hulls of different tiles are disjoint.
//! * **Scans.** The scanned variable is not cut.
//! * **Scatters.** Updates of one element stay in order: of the variables that are not parallel, the
//!   first may be cut, and all of them if no element is updated twice. What data addresses stays whole.
//! * **Ranges.** A cut range needs accumulators that start from the destination, and no epilogue:
//!   otherwise each tile would start anew and finish too early.
//!
//! Before, a tile of 4 rows at `%o`:
//!
//! ```mlir
//! %r = imap.generic (i)[k] domain: i in [0, 15], k in [0, 7] ins(%x[i * 2, k]) outs(%y[i]) ..
//! ```
//!
//! After:
//!
//! ```mlir
//! %p = imap.apply <(d0) -> (d0 * 2)>(%o)
//! %xt = tensor.extract_slice %x[%p, 0] [7, 8] [1, 1]
//! %yt = tensor.extract_slice %y[%o] [4] [1]
//! %rt = imap.generic (i)[k] domain: i in [0, 3], k in [0, 7] ins(%xt[i * 2, k]) outs(%yt[i]) ..
//! ```

use super::{
    Access, AnyIndexed, Generic, Indexed, Inside, Runtime, Scan, Scatter, View, build_apply,
    extents::{extent_expr, is_index, queried_extent, size_expr},
    substitute_constraints,
    verify::index_variable,
};
use crate::{
    ffi,
    mlir::{self, Blk, Builder, Op, Val},
};
use melior::ir::{ValueLike, operation::OperationLike};
use std::{collections::BTreeSet, ops::Range};
use tc_ir::{
    Context, Interval,
    expr::{Expr, Var},
    map::{Constraint, IndexingMap, Variable},
    polynomial::Normalizer,
    prove::{Prover, Verdict},
    simplify::Simplifier,
};

/// An index that is known, or the value of one: `OpFoldResult`.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Index<'c> {
    /// Known at compile time.
    Constant(i64),
    /// A value of type `index`.
    Value(Val<'c>),
}

/// The offset and the size of a tile in one dimension.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Span<'c> {
    /// The first index.
    pub offset: Index<'c>,
    /// The number of indices.
    pub size: Index<'c>,
}

/// An operation on a tile.
#[derive(Clone, Debug)]
pub struct Tiled<'c> {
    /// The slices of operands.
    pub slices: Vec<Op<'c>>,
    /// The operation on them.
    pub op: Op<'c>,
}

/// Why an operation cannot be tiled as asked.
pub type Reason = String;

/// Why an operation on buffers is not tiled.
pub(super) const ON_BUFFERS: &str =
    "cannot tile an operation on buffers; tile before bufferization";

/// The dimension and range variables of a domain in the order of the loops.
pub(super) fn loop_vars(domain: &IndexingMap) -> Vec<Var> {
    domain.vars().map(|(var, _)| var).filter(|var| !matches!(var, Var::Runtime(_))).collect()
}

/// The name of a variable in a message.
fn name_of(domain: &IndexingMap, var: Var) -> String {
    let name = domain.variable(var).and_then(|variable| variable.name.as_deref());
    name.map_or_else(|| tc_ir::text::default_name(var), str::to_string)
}

/// A linear sum of loop variables and a part that does not depend on them.
struct Linear {
    terms: Vec<(Var, i64)>,
    rest: Expr,
}

/// A loop of an operation, and the part of it that a tile holds.
#[derive(Copy, Clone)]
pub(super) struct Loop {
    pub(super) var: Var,
    /// The bounds of the variable; none if they depend on data.
    bounds: Option<(Expr, Expr)>,
    /// First value of the variable and number of iterations, unless the loop is whole.
    cut: Option<(Expr, Expr)>,
}

impl Loop {
    /// Whether the bounds do not depend on data.
    pub(super) fn has_bounds(&self) -> bool {
        self.bounds.is_some()
    }
}

/// The part of an operand that a tile accesses, in one dimension.
#[derive(Copy, Clone)]
pub(super) struct Slice {
    pub(super) offset: Expr,
    pub(super) size: Expr,
    /// The subscript of the slice, over the variables of the tile.
    pub(super) index: Expr,
    /// Whether this is the whole dimension.
    pub(super) is_whole: bool,
}

/// How the hull of a subscript lies in its operand.
enum Fit {
    /// It does not stick out.
    Inside,
    /// A constraint keeps the accesses inside, which the hull has to be clamped to.
    Clamped,
    /// It may stick out.
    Unknown,
}

/// Whether an `imap.generic` computes a tensor.
fn is_computed(tensor: Val) -> bool {
    mlir::defining_op(tensor).is_some_and(|op| Generic::cast(op).is_some())
}

/// Tiles one operation.
pub(super) struct Tiler<'a, 'c> {
    pub(super) ir: &'a Context,
    pub(super) generic: AnyIndexed<'c>,
    pub(super) builder: Builder<'c>,
    pub(super) view: View<'c>,
    /// What is accessed: inputs, destinations, elements among the runtimes.
    pub(super) accesses: Vec<Access<'c>>,
    /// The runtime variables: those of the operation, then offsets and sizes.
    pub(super) values: Vec<Val<'c>>,
    pub(super) variables: Vec<Variable>,
    pub(super) loops: Vec<Loop>,
}

impl<'a, 'c> Tiler<'a, 'c> {
    /// A tiler for the tile that holds all iterations.
    pub(super) fn new(ir: &'a Context, generic: AnyIndexed<'c>, builder: Builder<'c>) -> Self {
        let view = View::of(ir, generic);
        let accesses = view.accesses().cloned().collect();
        let values = view.runtime_values();
        let variables = view.domain.runtimes.clone();
        let is_data = |var: &Var| match var {
            Var::Runtime(number) => !is_index(values[*number as usize]),
            _ => true,
        };
        let new_loop = |var| {
            let variable = view.domain.variable(var);
            let bounds = variable.and_then(|variable| Some((variable.lower?, variable.upper?)));
            let bounds = bounds
                .filter(|(lower, upper)| !ir.vars_of_all(&[*lower, *upper]).iter().any(is_data));
            Loop { var, bounds, cut: None }
        };
        let loops = loop_vars(&view.domain).into_iter().map(new_loop).collect();
        Self { ir, generic, builder, view, accesses, values, variables, loops }
    }

    /// Sets the tile.
    pub(super) fn cut(&mut self, tile: &[Span<'c>]) -> Result<(), Reason> {
        if tile.len() != self.loops.len() {
            return Err(format!(
                "expected a tile of {} loops, found {}",
                self.loops.len(),
                tile.len()
            ));
        }
        for (number, span) in tile.iter().enumerate() {
            let Loop { var, bounds, .. } = self.loops[number];
            let name = name_of(&self.view.domain, var);
            let extent = self.view.domain.interval(self.ir, var).num_members();
            let extent = extent.and_then(|extent| i64::try_from(extent).ok()).unwrap_or(i64::MAX);
            let offset = self.expr(span.offset, &format!("{name}_offset"), Interval::NON_NEGATIVE);
            let size = self.expr(span.size, &format!("{name}_size"), Interval::new(0, extent));
            if self.is_equal(offset, self.ir.constant(0))
                && self.is_equal(size, self.num_iterations(number))
            {
                continue;
            }
            let Some((lower, _)) = bounds else {
                return Err(format!("cannot tile '{name}': its bounds depend on data"));
            };
            self.loops[number].cut = Some((self.ir.add(offset, lower), size));
        }
        Ok(())
    }

    /// The number of iterations of a whole loop. If its bounds depend on data, this is that of an
    /// interval that holds all iterations.
    fn num_iterations(&self, number: usize) -> Expr {
        let Loop { var, bounds, .. } = self.loops[number];
        match bounds {
            Some((lower, upper)) => self.canonical((self.ir.wrap(upper) - lower + 1).expr()),
            None => {
                let interval = self.view.domain.interval(self.ir, var);
                self.ir.constant(interval.hi.saturating_sub(interval.lo).saturating_add(1))
            }
        }
    }

    pub(super) fn canonical(&self, expr: Expr) -> Expr {
        self.ir.canonicalize(expr)
    }

    fn is_equal(&self, lhs: Expr, rhs: Expr) -> bool {
        self.ir.as_constant(self.canonical(self.ir.sub(lhs, rhs))) == Some(0)
    }

    /// An index as an expression. A value that is not an expression over the runtime variables
    /// becomes one of them, in an interval.
    pub(super) fn expr(&mut self, index: Index<'c>, name: &str, interval: Interval) -> Expr {
        let value = match index {
            Index::Constant(value) => return self.ir.constant(value),
            Index::Value(value) => value,
        };
        if let Some(expr) = size_expr(self.ir, &self.values, value) {
            return expr;
        }
        // The extents of a result are those of its destination.
        if let Some((tensor, dim)) = queried_extent(value) {
            let is_same = |number: &usize| mlir::result(self.generic.op(), *number) == tensor;
            let found = (0..self.generic.op().result_count()).find(is_same);
            let tensor = found.map_or(tensor, |number| self.view.outputs[number].value);
            if let Some(expr) = extent_expr(self.ir, &self.values, tensor, dim) {
                return expr;
            }
        }
        self.add_runtime(value, name, interval)
    }

    /// A new runtime variable in an interval.
    fn add_runtime(&mut self, value: Val<'c>, name: &str, interval: Interval) -> Expr {
        let (lower, upper) = ffi::constant_bounds(value);
        let interval = interval.intersect(Interval::new(lower, upper));
        let variable = Variable::bounded(self.ir, interval).named(name);
        self.values.push(value);
        self.variables.push(variable);
        self.ir.runtime((self.values.len() - 1) as u32)
    }

    /// An expression over runtime variables as an index.
    pub(super) fn index(&self, expr: Expr) -> Index<'c> {
        self.index_at(&self.builder, expr)
    }

    fn index_at(&self, builder: &Builder<'c>, expr: Expr) -> Index<'c> {
        let expr = self.canonical(expr);
        if let Some(value) = self.ir.as_constant(expr) {
            return Index::Constant(value);
        }
        let map = IndexingMap {
            runtimes: self.values.iter().map(|_| Variable::default()).collect(),
            results: vec![expr],
            ..IndexingMap::default()
        };
        Index::Value(build_apply(builder, self.ir, &map, &self.values)[0])
    }

    pub(super) fn span(&self, slice: &Slice) -> Span<'c> {
        Span { offset: self.index(slice.offset), size: self.index(slice.size) }
    }

    pub(super) fn extent(&mut self, operand: Val<'c>, dim: usize) -> Expr {
        if let Some(extent) = extent_expr(self.ir, &self.values, operand, dim) {
            return extent;
        }
        let value = self.builder.dim(operand, dim);
        self.add_runtime(value, "extent", Interval::NON_NEGATIVE)
    }

    /// The decomposition of an expression into a linear sum; `None` for any other expression.
    fn linear(&self, expr: Expr) -> Option<Linear> {
        let ir = self.ir;
        let mut normalizer = Normalizer::new(ir);
        let polynomial = normalizer.polynomial(expr).ok()?;
        let (mut terms, mut rest) = (Vec::new(), ir.constant(polynomial.constant_part()));
        let is_fixed = |var: &Var| matches!(var, Var::Runtime(number) if is_index(self.values[*number as usize]));
        for (monomial, factor) in polynomial.terms() {
            if ir.vars_of_all(monomial).iter().all(is_fixed) {
                let product = monomial.iter().fold(ir.constant(factor), |a, b| ir.mul(a, *b));
                rest = ir.add(rest, product);
                continue;
            }
            let [atom] = monomial[..] else { return None };
            let var = ir.as_var(atom).filter(|var| !matches!(var, Var::Runtime(_)))?;
            terms.push((var, factor));
        }
        Some(Linear { terms, rest })
    }

    /// The value of a cut variable in terms of that of the tile; `None` for any other variable.
    pub(super) fn shifted(&self, var: Var) -> Option<Expr> {
        let found = self.loops.iter().find(|it| it.var == var)?;
        Some(self.ir.add(self.ir.var(var), found.cut?.0))
    }

    /// The number of iterations of a loop in the tile.
    pub(super) fn size(&self, number: usize) -> Expr {
        self.loops[number].cut.map_or_else(|| self.num_iterations(number), |(_, size)| size)
    }

    /// The iterations of a loop in the tile, counted from 0, in terms of the variables of the tile.
    pub(super) fn zero_based(&self, number: usize) -> Expr {
        let Loop { var, bounds, cut } = self.loops[number];
        match (cut, bounds) {
            (None, Some((lower, _))) => self.canonical(self.ir.sub(self.ir.var(var), lower)),
            _ => self.ir.var(var),
        }
    }

    fn is_cut(&self, var: Var) -> bool {
        self.loops.iter().any(|it| it.var == var && it.cut.is_some())
    }

    /// First and last value of a linear sum over the tile. `None` if it is bounded by data.
    fn hull(&self, linear: &Linear) -> Option<(Expr, Expr)> {
        let ir = self.ir;
        let (mut low, mut high) = (linear.rest, linear.rest);
        for (var, factor) in &linear.terms {
            let found = self.loops.iter().find(|it| it.var == *var)?;
            let (first, last) = match found.cut {
                Some((first, size)) => (first, (ir.wrap(first) + size - 1).expr()),
                None => found.bounds?,
            };
            let (first, last) = if 0 < *factor { (first, last) } else { (last, first) };
            low = ir.add(low, ir.mul(ir.constant(*factor), first));
            high = ir.add(high, ir.mul(ir.constant(*factor), last));
        }
        Some((self.canonical(low), self.canonical(high)))
    }

    /// The numbers of the destinations among the accesses.
    pub(super) fn destinations(&self) -> Range<usize> {
        let first = self.view.inputs.len();
        first..first + self.view.outputs.len()
    }

    fn is_destination(&self, operand: usize) -> bool {
        self.destinations().contains(&operand)
    }

    /// The part of an operand that the tile accesses.
    pub(super) fn slices(&mut self, operand: usize) -> Vec<Slice> {
        (0..self.accesses[operand].subscripts.len()).map(|dim| self.slice(operand, dim)).collect()
    }

    fn slice(&mut self, operand: usize, dim: usize) -> Slice {
        let ir = self.ir;
        let expr = self.accesses[operand].subscripts[dim];
        let index = self.canonical(ir.substitute(expr, &|var| self.shifted(var)));
        let extent = self.extent(self.accesses[operand].value, dim);
        let whole = Slice { offset: ir.constant(0), size: extent, index, is_whole: true };
        if !ir.vars(expr).into_iter().any(|var| self.is_cut(var)) {
            return whole;
        }
        let Some(linear) = self.linear(expr) else { return whole };
        let Some((mut low, mut high)) = self.hull(&linear) else { return whole };
        match self.fit(operand, expr, Some(extent)) {
            Fit::Inside => {}
            Fit::Clamped
                if self.is_destination(operand) || is_computed(self.accesses[operand].value) =>
            {
                (low, high) = self.clamp(low, high, extent);
            }
            Fit::Clamped | Fit::Unknown => return whole,
        }
        let mut size = self.canonical((ir.wrap(high) - low + 1).expr());
        // Strides make the hull of an empty tile less than empty.
        if Prover::for_domain(ir, &self.runtime_domain()).nonnegative(size) != Verdict::Proved {
            size = ir.max(size, ir.constant(0));
        }
        let index = self.canonical(ir.sub(index, low));
        Slice { offset: low, size, index, is_whole: false }
    }

    /// A domain of the runtime variables alone.
    fn runtime_domain(&self) -> IndexingMap {
        IndexingMap { runtimes: self.variables.clone(), ..IndexingMap::default() }
    }

    /// How the hull of a subscript lies in an operand.
    fn fit(&self, operand: usize, expr: Expr, extent: Option<Expr>) -> Fit {
        let guard = &self.accesses[operand].guard;
        let constraints = [&self.view.domain.constraints[..], guard].concat();
        let is_fold = !self.view.accumulators.is_empty() && self.scatter().is_none();
        let is_stored_everywhere = self.is_destination(operand) && is_fold;
        if constraints.is_empty() || is_stored_everywhere {
            return Fit::Inside;
        }
        let Some(extent) = extent else { return Fit::Unknown };
        let mut domain = IndexingMap { constraints: Vec::new(), ..self.view.domain.clone() };
        domain.runtimes = self.variables.clone();
        let prover = Prover::for_domain(self.ir, &domain);
        let last = (self.ir.wrap(extent) - 1).expr();
        let is_within = |low, high| {
            prover.nonnegative(low) == Verdict::Proved
                && prover.at_most(high, last) == Verdict::Proved
        };
        if is_within(expr, expr) {
            return Fit::Inside;
        }
        let is_runtime = |var: &Var| matches!(var, Var::Runtime(_));
        let bounds_it = |constraint: &Constraint| {
            let shift = self.canonical(self.ir.sub(expr, constraint.expr));
            let end = |end| self.ir.add(self.ir.constant(end), shift);
            constraint.interval.is_bounded()
                && self.ir.vars(shift).iter().all(is_runtime)
                && is_within(end(constraint.interval.lo), end(constraint.interval.hi))
        };
        if constraints.iter().any(bounds_it) { Fit::Clamped } else { Fit::Unknown }
    }

    /// The part of a hull that lies in an operand.
    fn clamp(&mut self, low: Expr, high: Expr, extent: Expr) -> (Expr, Expr) {
        let ir = self.ir;
        let low = ir.min(ir.max(low, ir.constant(0)), extent);
        let high = ir.min(high, (ir.wrap(extent) - 1).expr());
        let size = ir.max((ir.wrap(high) - low + 1).expr(), ir.constant(0));
        // Maps refer to the values of both, so that they stay linear.
        let mut opaque = |expr, name| match self.index(expr) {
            Index::Constant(value) => ir.constant(value),
            Index::Value(value) => self.add_runtime(value, name, Interval::NON_NEGATIVE),
        };
        let (low, size) = (opaque(low, "first"), opaque(size, "count"));
        (low, (ir.wrap(low) + size - 1).expr())
    }

    fn scatter(&self) -> Option<Scatter<'c>> {
        Scatter::cast(self.generic.op())
    }

    /// Whether each loop is parallel: different tiles along it store into disjoint hulls of every
    /// destination. The scanned variable of a scan is not.
    fn parallel_loops(&self) -> Vec<bool> {
        let intervals = self.view.domain.intervals(self.ir);
        let scanned = Scan::cast(self.generic.op()).map(|it| Var::Dim(it.dim()));
        let spread = |var: Var| {
            let members = intervals.of(var).num_members()?;
            Some(i128::from(members.saturating_sub(1)))
        };
        // Whether a step of the variable exceeds the spread of the others.
        let separates = |linear: &Linear, var: Var| {
            let (mut own, mut others) = (0, Some(0_i128));
            for (term, factor) in &linear.terms {
                let factor = i128::from(*factor).abs();
                if *term == var {
                    own = factor;
                } else {
                    let step = spread(*term).and_then(|spread| spread.checked_mul(factor));
                    others = others.and_then(|others| others.checked_add(step?));
                }
            }
            others.is_some_and(|others| others < own)
        };
        let is_separated = |operand: usize, var: Var| {
            let Access { value: init, subscripts, .. } = &self.accesses[operand];
            subscripts.iter().enumerate().any(|(dim, expr)| {
                let extent = extent_expr(self.ir, &self.values, *init, dim);
                self.linear(*expr).is_some_and(|linear| separates(&linear, var))
                    && !matches!(self.fit(operand, *expr, extent), Fit::Unknown)
            })
        };
        let is_parallel = |var: Var| {
            let is_single = spread(var) == Some(0);
            matches!(var, Var::Dim(_))
                && scanned != Some(var)
                && (is_single || self.destinations().all(|operand| is_separated(operand, var)))
        };
        self.loops.iter().map(|it| is_parallel(it.var)).collect()
    }

    /// Whether each point of the dimension variables is known to store elements of its own: subscripts are sums in
    /// which the step of a variable exceeds the spread of those with smaller steps, as digits of a number are.
    fn stores_apart(&self) -> bool {
        let intervals = self.view.domain.intervals(self.ir);
        let spread = |var: Var| {
            intervals.of(var).num_members().map(|count| i128::from(count.saturating_sub(1)))
        };
        let is_apart = |operand: usize| {
            let subscripts = self.accesses[operand].subscripts.iter();
            let mut left: Vec<Linear> = subscripts.filter_map(|it| self.linear(*it)).collect();
            let mut known = BTreeSet::new();
            loop {
                let before = known.len();
                left.retain_mut(|linear| {
                    linear.terms.retain(|(var, _)| !known.contains(var));
                    linear.terms.sort_by_key(|(_, factor)| factor.unsigned_abs());
                    let mut smaller = Some(0_i128);
                    let are_digits = linear.terms.iter().all(|(var, factor)| {
                        let factor = i128::from(*factor).abs();
                        let is_digit = smaller.is_some_and(|smaller| smaller < factor);
                        let own = spread(*var).and_then(|spread| spread.checked_mul(factor));
                        smaller = smaller.zip(own).and_then(|(sum, own)| sum.checked_add(own));
                        is_digit
                    });
                    if are_digits {
                        known.extend(linear.terms.iter().map(|(var, _)| *var));
                    }
                    !are_digits
                });
                if known.len() == before {
                    break;
                }
            }
            let mut dims = (0..self.view.domain.dims.len() as u32).map(Var::Dim);
            dims.all(|dim| known.contains(&dim) || spread(dim) == Some(0))
        };
        self.destinations().all(is_apart)
    }

    /// Rejects tiles that would change results.
    fn check_tile(&self) -> Result<(), Reason> {
        self.check_ranges()?;
        let is_cut = |it: &Loop| it.cut.is_some();
        let name = |it: &Loop| name_of(&self.view.domain, it.var);
        if let Some(scan) = Scan::cast(self.generic.op())
            && let Some(cut) = self.loops.get(scan.dim() as usize).filter(|it| is_cut(it))
        {
            return Err(format!(
                "cannot tile '{}': the scan goes along it; tile other dimensions",
                name(cut)
            ));
        }
        if let Some(scatter) = self.scatter()
            && !scatter.promises().unique
        {
            let parallel = self.parallel_loops().into_iter();
            let ordered = self.loops.iter().zip(parallel).filter(|(_, is_parallel)| !is_parallel);
            if let Some((cut, _)) = ordered.skip(1).find(|(it, _)| is_cut(it)) {
                return Err(format!(
                    "cannot tile '{}': updates of one element would change their order; tile \
                     plain subscripts of the destinations, or the first of the other variables",
                    name(cut)
                ));
            }
        }
        Ok(())
    }

    /// Rejects cut ranges of reductions that are not open at both ends.
    fn check_ranges(&self) -> Result<(), Reason> {
        let ranges = self.loops.iter().filter(|it| matches!(it.var, Var::Range(_)));
        let intervals = self.view.domain.intervals(self.ir);
        let has_several = |it: &&Loop| intervals.of(it.var).as_point().is_none();
        let is_cut = |it: &&Loop| it.cut.is_some();
        let inner = ranges.clone().filter(has_several).skip(1);
        if let Some(cut) = inner.clone().find(is_cut).filter(|_| self.generic.keeps_order()) {
            return Err(format!(
                "cannot tile range '{}': the fold is ordered; tile its first range only",
                name_of(&self.view.domain, cut.var)
            ));
        }
        let Some(cut) = ranges.clone().find(is_cut) else { return Ok(()) };
        // A loop over tiles carries each result into the destination of the same number.
        let mut accumulators = self.view.accumulators.iter().enumerate();
        let starts = accumulators.any(|(number, it)| it.destination() != Some(number));
        let why = match (starts, self.generic.epilogue().is_some()) {
            (true, _) => "an accumulator does not start from its destination",
            (_, true) => "there is an epilogue",
            _ => return Ok(()),
        };
        Err(format!(
            "cannot tile range '{}': {why}, so that every tile would give a final value; fold from \
             the destination and make the epilogue an operation of its own",
            name_of(&self.view.domain, cut.var)
        ))
    }

    /// Slices an operand; the operand itself if the tile accesses all of it.
    pub(super) fn slice_operand(
        &self,
        operand: Val<'c>,
        parts: &[Slice],
        slices: &mut Vec<Op<'c>>,
    ) -> Val<'c> {
        if parts.iter().all(|part| part.is_whole) {
            return operand;
        }
        let spans: Vec<_> = parts.iter().map(|part| self.span(part)).collect();
        let slice = build_extract_slice(&self.builder, operand, &spans);
        slices.push(slice);
        mlir::result(slice, 0)
    }

    /// The domain of the tile.
    fn tile_domain(&self) -> IndexingMap {
        let ir = self.ir;
        let mut domain = self.view.domain.clone();
        domain.runtimes = self.variables.clone();
        for it in &self.loops {
            if let (Some((_, size)), Some(variable)) = (it.cut, domain.variable_mut(it.var)) {
                variable.lower = Some(ir.constant(0));
                variable.upper = Some(self.canonical((ir.wrap(size) - 1).expr()));
            }
        }
        let constraints = std::mem::take(&mut domain.constraints);
        domain.constraints = self.shifted_constraints(&domain, &constraints);
        domain.sort_constraints(ir);
        domain
    }

    /// The constraints over the variables of the tile, without those that its bounds prove.
    fn shifted_constraints(&self, bounds: &IndexingMap, all: &[Constraint]) -> Vec<Constraint> {
        let ir = self.ir;
        let mut simplifier = Simplifier::for_map(ir, bounds);
        let shifted = all.iter().map(|it| {
            let expr = ir.substitute(it.expr, &|var| self.shifted(var));
            Constraint { expr: simplifier.simplify(self.canonical(expr)), ..*it }
        });
        let shifted: Vec<_> = shifted.collect();
        let is_open = |it: &Constraint| !it.interval.covers(simplifier.interval_of(it.expr));
        shifted.into_iter().filter(is_open).collect()
    }

    /// The operation on the tile, given its accesses without guards, and the places of its runtime variables
    /// among those of the tiler.
    pub(super) fn tile_view(&self, mut accesses: Vec<Access<'c>>) -> (View<'c>, Vec<usize>) {
        let ir = self.ir;
        let domain = self.tile_domain();
        let mut simplifier = Simplifier::for_map(ir, &domain);
        let bounds = IndexingMap { constraints: Vec::new(), ..domain.clone() };
        for (access, old) in accesses.iter_mut().zip(&self.accesses) {
            access.subscripts =
                access.subscripts.iter().map(|it| simplifier.simplify(*it)).collect();
            access.guard = self.shifted_constraints(&bounds, &old.guard);
            access.fill = old.fill;
        }
        let mut elements = accesses.split_off(self.destinations().end).into_iter();
        let outputs = accesses.split_off(self.view.inputs.len());
        let runtime = |value: &Val<'c>| match is_index(*value) {
            true => Runtime::Index(*value),
            false => Runtime::Element(elements.next().expect("an access per element")),
        };
        let mut view = View {
            domain,
            runtimes: self.values.iter().map(runtime).collect(),
            inputs: accesses,
            outputs,
            accumulators: self.view.accumulators.clone(),
            ordered: self.view.ordered,
            combiner: self.view.combiner,
        };
        // The map of a tensor uses runtime variables before its own: those of type index are first.
        let mut order: Vec<usize> = (0..self.values.len()).collect();
        order.sort_by_key(|number| !is_index(self.values[*number]));
        view.keep_runtimes(ir, &order);
        let mut conditions = Vec::new();
        for inside in Inside::all_of(&self.generic.blocks()) {
            conditions.extend(inside.conditions(ir));
        }
        substitute_constraints(ir, &mut conditions, &|var| self.shifted(var));
        substitute_constraints(ir, &mut conditions, &super::renumbering(ir, &order));
        let kept = view.drop_unused_runtimes(ir, &conditions);
        (view, kept.into_iter().map(|place| order[place]).collect())
    }

    /// Copies a region of the operation. `renumber` gives the variables of the copy, and `runtimes` the
    /// places of its runtime variables among those of the tiler.
    pub(super) fn copy_region(
        &self,
        from: Blk<'c>,
        to: Blk<'c>,
        renumber: &dyn Fn(Var) -> Var,
        runtimes: &[usize],
    ) {
        let arguments = mlir::arguments(from).into_iter().zip(mlir::arguments(to));
        let mut values = arguments.collect();
        let builder = Builder::at_end(self.builder.context, to, self.builder.location);
        let mut indices = Vec::new();
        for op in mlir::ops(from) {
            mlir::walk(builder.copy(op, &mut values), &mut |op| {
                indices.extend(
                    index_variable(op).filter(|_| mlir::is(op, "imap.index")).map(|var| (op, var)),
                );
            });
        }
        let ir = self.ir;
        let of_copy = super::renumbering(ir, runtimes);
        super::substitute_in_conditions(ir, &[to], &|var| match var {
            Var::Runtime(_) => of_copy(var),
            _ => {
                let found = self.loops.iter().find(|it| it.var == var)?;
                let offset = found.cut.map_or(ir.constant(0), |(offset, _)| offset);
                Some(ir.add(ir.var(renumber(var)), ir.substitute(offset, &of_copy)))
            }
        });
        for (op, var) in indices {
            super::set_index_variable(op, renumber(var));
            let Some(next) = mlir::next(op) else { continue };
            let cut = self.loops.iter().find(|it| it.var == var).and_then(|it| it.cut);
            // The tile may stand before the place of the own builder.
            let builder = Builder::before(next);
            let offset = match cut.map(|(offset, _)| self.index_at(&builder, offset)) {
                None | Some(Index::Constant(0)) => continue,
                Some(Index::Constant(value)) => builder.index(value),
                Some(Index::Value(value)) => value,
            };
            let index = mlir::result(op, 0);
            let sum = builder.op("arith.addi", &[offset, offset], &[builder.index_type()]);
            mlir::replace_uses(index, mlir::result(sum, 0));
            mlir::set_operand(sum, 0, index);
        }
    }
}

/// Copies the attributes that are not part of the definition of an operation.
pub fn copy_attributes<'c>(from: Op<'c>, to: Op<'c>) {
    for (name, attribute) in from.attributes() {
        let Ok(name) = name.as_string_ref().as_str() else { continue };
        if name != "fills" && to.attribute(name).is_err() {
            mlir::set_attribute(to, name, attribute);
        }
    }
}

/// `tensor.extract_slice` with stride 1.
pub fn build_extract_slice<'c>(
    builder: &Builder<'c>,
    operand: Val<'c>,
    spans: &[Span<'c>],
) -> Op<'c> {
    let constant = |index: Index| match index {
        Index::Constant(value) => value,
        Index::Value(_) => i64::MIN,
    };
    let value = |index: Index<'c>| match index {
        Index::Constant(_) => None,
        Index::Value(value) => Some(value),
    };
    let offsets: Vec<_> = spans.iter().filter_map(|span| value(span.offset)).collect();
    let sizes: Vec<_> = spans.iter().filter_map(|span| value(span.size)).collect();
    let shape: Vec<_> = spans
        .iter()
        .map(|span| Some(constant(span.size)).filter(|_| value(span.size).is_none()))
        .collect();
    let ty = mlir::tensor_type(&shape, mlir::element_type(operand.r#type()));
    let numbers = |values: Vec<i64>| mlir::i64_array(builder.context, &values);
    let segments = mlir::segments(builder.context, &[1, offsets.len(), sizes.len(), 0]);
    builder.op_with(
        "tensor.extract_slice",
        &[vec![operand], offsets, sizes].concat(),
        &[ty],
        &[
            ("static_offsets", numbers(spans.iter().map(|span| constant(span.offset)).collect())),
            ("static_sizes", numbers(spans.iter().map(|span| constant(span.size)).collect())),
            ("static_strides", numbers(vec![1; spans.len()])),
            ("operandSegmentSizes", segments),
        ],
        Vec::new(),
    )
}

/// Whether each loop is parallel.
pub fn parallel_loops(generic: AnyIndexed) -> Vec<bool> {
    let ir = Context::new();
    Tiler::new(&ir, generic, Builder::before(generic.op())).parallel_loops()
}

/// Whether each point of the dimension variables is known to store elements of its own.
pub(super) fn stores_apart(ir: &Context, generic: Generic) -> bool {
    Tiler::new(ir, generic.into(), Builder::before(generic.op())).stores_apart()
}

/// Offset and size of each loop. If bounds depend on data, these are of an interval that holds all
/// iterations.
pub fn iteration_domain<'c>(generic: AnyIndexed<'c>, builder: Builder<'c>) -> Vec<Span<'c>> {
    let ir = Context::new();
    let tiler = Tiler::new(&ir, generic, builder);
    (0..tiler.loops.len())
        .map(|number| Span {
            offset: Index::Constant(0),
            size: tiler.index(tiler.num_iterations(number)),
        })
        .collect()
}

/// Replaces an operation by loops over its tiles and gives the outermost one: `scf.forall` if `is_parallel`, else
/// `scf.for`. `sizes` are per loop; 0 does not tile it. The members, consumers before producers, are computed in the
/// tile that reads them. If the flag of a member is set, the loops also return its results. `None` if the
/// operation cannot be tiled.
pub fn tile_and_fuse<'c>(
    root: AnyIndexed<'c>,
    sizes: &[i64],
    is_parallel: bool,
    members: &[(AnyIndexed<'c>, bool)],
) -> Option<Op<'c>> {
    let (members, escapes): (Vec<_>, Vec<_>) =
        members.iter().map(|(it, escapes)| (it.op(), *escapes)).unzip();
    ffi::tile_and_fuse(root.op(), sizes, is_parallel, &members, &escapes)
}

/// The operation on a tile, with slices of its operands. If `keep_operands`, an operand of the tile
/// has the same number as in the operation.
///
/// # Errors
/// The operation works on buffers, a reduction that is cut is not open, or the operands cannot keep
/// their numbers.
pub fn tile<'c>(
    generic: AnyIndexed<'c>,
    builder: Builder<'c>,
    tile: &[Span<'c>],
    keep_operands: bool,
) -> Result<Tiled<'c>, Reason> {
    let ir = Context::new();
    let mut tiler = Tiler::new(&ir, generic, builder);
    if !tiler.accesses.iter().all(|it| mlir::is_tensor(it.value.r#type())) {
        return Err(ON_BUFFERS.to_string());
    }
    tiler.cut(tile)?;
    tiler.check_tile()?;
    let (mut accesses, mut slices) = (Vec::new(), Vec::new());
    for number in 0..tiler.accesses.len() {
        let parts = tiler.slices(number);
        let operand = tiler.slice_operand(tiler.accesses[number].value, &parts, &mut slices);
        accesses.push(Access::new(operand, parts.iter().map(|part| part.index).collect()));
    }
    let (mut view, runtimes) = tiler.tile_view(accesses);
    if keep_operands {
        let missing = tiler.view.runtimes.len().checked_sub(view.runtimes.len());
        let missing = missing.ok_or("the tile has more runtime variables than the operation")?;
        for _ in 0..missing {
            view.runtimes.push(Runtime::Index(builder.index(0)));
            view.domain.runtimes.push(Variable::default());
        }
    }
    let new = view.build_like(&ir, &builder, generic);
    for (from, to) in generic.blocks().into_iter().zip(new.blocks()) {
        tiler.copy_region(from, to, &|var| var, &runtimes);
    }
    copy_attributes(tiler.generic.op(), new.op());
    Ok(Tiled { slices, op: new.op() })
}

/// The position of the tile of a result.
///
/// # Errors
/// As [`tile`].
pub fn result_position<'c>(
    generic: AnyIndexed<'c>,
    builder: Builder<'c>,
    result: usize,
    tile: &[Span<'c>],
) -> Result<Vec<Span<'c>>, Reason> {
    let ir = Context::new();
    let mut tiler = Tiler::new(&ir, generic, builder);
    tiler.cut(tile)?;
    let slices = tiler.slices(tiler.view.inputs.len() + result);
    Ok(slices.iter().map(|slice| tiler.span(slice)).collect())
}

/// An operand, as far as it has a map.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The destination of a result.
    Destination(usize),
    /// The operand of this number, which is an input or a destination.
    Number(usize),
}

/// Why an operand has no tiles.
const TWICE: &str = "two subscripts have the same variable";

/// The variable of a subscript `v + rest` or `rest - v` that runs over a whole dimension.
struct Axis {
    var: Var,
    factor: i64,
    rest: Expr,
}

impl<'c> Tiler<'_, 'c> {
    fn map_of(&self, operand: Operand) -> Result<usize, Reason> {
        let number = match operand {
            Operand::Destination(result) => Some(self.view.inputs.len() + result),
            Operand::Number(number) => number.checked_sub(self.view.runtimes.len()),
        };
        number.ok_or_else(|| "cannot fuse along a tensor of runtime variables".to_string())
    }

    /// The axis of each dimension of an operand; none of one that no variable runs over, or that a tile has whole.
    /// Emits no operation.
    fn axes(&self, operand: usize, tile: &[Span<'c>]) -> Result<Vec<Option<Axis>>, Reason> {
        let mut used = BTreeSet::new();
        let access = &self.accesses[operand];
        let shape = mlir::shape(access.value.r#type());
        let is_whole = |dim: usize| {
            let whole = shape.get(dim).copied().flatten().map(Index::Constant);
            tile.get(dim)
                .is_some_and(|it| it.offset == Index::Constant(0) && Some(it.size) == whole)
        };
        let axis = |(dim, expr): (usize, &Expr)| {
            if is_whole(dim) {
                let vars = self.ir.vars(*expr).into_iter();
                let mut vars = vars.filter(|var| !matches!(var, Var::Runtime(_)));
                let are_new = vars.all(|var| used.insert(var));
                return if are_new { Ok(None) } else { Err(TWICE) };
            }
            let linear = self.linear(*expr).ok_or("a subscript is not a sum of variables")?;
            let (var, factor) = match linear.terms[..] {
                [] => return Ok(None),
                [(var, factor @ (1 | -1))] => (var, factor),
                _ => return Err("a subscript has a factor or several variables"),
            };
            if !used.insert(var) {
                return Err(TWICE);
            }
            let bounds = self.loops.iter().find(|it| it.var == var).and_then(|it| it.bounds);
            let bounds = bounds.ok_or("the bounds of a variable depend on data")?;
            let (first, last) = if factor == 1 { bounds } else { (bounds.1, bounds.0) };
            let at = |var| self.ir.add(self.ir.mul(self.ir.constant(factor), var), linear.rest);
            let extent = extent_expr(self.ir, &self.values, access.value, dim);
            let covers = extent.is_some_and(|extent| {
                self.is_equal(at(first), self.ir.constant(0))
                    && self.is_equal((self.ir.wrap(at(last)) + 1).expr(), extent)
            });
            if !covers {
                return Err("the accesses are not known to cover the operand");
            }
            Ok(Some(Axis { var, factor, rest: linear.rest }))
        };
        let axes: Result<_, &str> = access.subscripts.iter().enumerate().map(axis).collect();
        axes.map_err(str::to_string)
    }
}

/// Whether a tile of an operand is the hull of a tile of iterations. Emits no operation.
pub fn has_tile<'c>(generic: AnyIndexed<'c>, operand: Operand, tile: &[Span<'c>]) -> bool {
    let ir = Context::new();
    let tiler = Tiler::new(&ir, generic, Builder::before(generic.op()));
    tiler.map_of(operand).and_then(|operand| tiler.axes(operand, tile)).is_ok()
}

/// The tile of iterations that access given tiles of operands.
///
/// # Errors
/// There is no such tile, or its iterations access more than that.
pub fn domain_tile<'c>(
    generic: AnyIndexed<'c>,
    builder: Builder<'c>,
    tiles: &[(Operand, Vec<Span<'c>>)],
) -> Result<Vec<Span<'c>>, Reason> {
    let ir = Context::new();
    let mut tiler = Tiler::new(&ir, generic, builder);
    let whole = (0..tiler.loops.len()).map(|it| (ir.constant(0), tiler.num_iterations(it)));
    let (mut loops, mut requested): (Vec<_>, _) = (whole.collect(), Vec::new());
    let mut found: BTreeSet<usize> = BTreeSet::new();
    for (operand, spans) in tiles {
        let operand = tiler.map_of(*operand)?;
        for (dim, axis) in tiler.axes(operand, spans)?.into_iter().enumerate() {
            let span = spans.get(dim).ok_or("expected a tile of the rank of the operand")?;
            let offset = tiler.expr(span.offset, "offset", Interval::ALL);
            let size = tiler.expr(span.size, "size", Interval::NON_NEGATIVE);
            requested.push((operand, dim, offset, size));
            let Some(Axis { var, factor, rest }) = axis else { continue };
            let first = match factor {
                1 => ir.wrap(offset) - rest,
                _ => ir.wrap(rest) - offset - size + 1,
            };
            let number = tiler.view.domain.position(var);
            let lower = tiler.loops[number].bounds.map_or(ir.constant(0), |(lower, _)| lower);
            let range = (tiler.canonical((first - lower).expr()), size);
            let old: (Expr, Expr) = std::mem::replace(&mut loops[number], range);
            let is_same = tiler.is_equal(old.0, range.0) && tiler.is_equal(old.1, range.1);
            if !found.insert(number) && !is_same {
                return Err("the tiles of two operands belong to different iterations".to_string());
            }
        }
    }
    let span =
        |range: (Expr, Expr)| Span { offset: tiler.index(range.0), size: tiler.index(range.1) };
    let domain: Vec<_> = loops.into_iter().map(span).collect();
    tiler.cut(&domain)?;
    for (operand, dim, offset, size) in requested {
        let slice = tiler.slice(operand, dim);
        if !tiler.is_equal(slice.offset, offset) || !tiler.is_equal(slice.size, size) {
            return Err("the iterations of the tile access more of the operand".to_string());
        }
    }
    Ok(domain)
}
