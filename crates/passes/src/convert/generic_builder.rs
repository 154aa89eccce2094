//! Builds `imap.generic`, `imap.scan` and `imap.scatter` from a domain, reads and writes.

use melior::ir::{Attribute, ValueLike};
use tc_dialects::{
    imap::{
        self, Access, Accumulator, AnyIndexed, Combiner, Indexed, MAX_EXTENT, Runtime,
        ScatterPromises, View,
    },
    mlir::{self, Builder, Val},
};
use tc_ir::{
    Context, Expr, IndexingMap, Interval, Node, Var,
    map::{Constraint, Variable},
};

/// The conditions of a read, and the constant if one of them fails; `None` is zero.
pub type Guard<'c> = (Vec<Constraint>, Option<Attribute<'c>>);

/// An `imap.generic` to be built.
#[derive(Clone)]
pub struct GenericBuilder<'c, 'i> {
    ir: &'i Context,
    domain: IndexingMap,
    runtimes: Vec<Runtime<'c>>,
    inputs: Vec<Access<'c>>,
    outputs: Vec<Access<'c>>,
    combiners: Vec<Combiner>,
    /// The scanned dimension variable, and whether the scan is exclusive.
    scan: Option<(u32, bool)>,
    /// The guard of the destinations of a scatter, and its promises.
    scatter: Option<(Vec<Constraint>, ScatterPromises)>,
    /// Whether the fold keeps the order of the ranges.
    ordered: bool,
}

impl<'c, 'i> GenericBuilder<'c, 'i> {
    /// Over dimension variables of these extents, none of them 0.
    pub fn new(ir: &'i Context, dims: &[i64]) -> Self {
        let dims: Vec<_> = dims.iter().map(|extent| ir.constant(*extent)).collect();
        Self::over(ir, &[], &dims)
    }

    /// Over dimension variables whose extents are expressions of sizes, the first runtime variables.
    pub fn over(ir: &'i Context, sizes: &[(String, Val<'c>)], dims: &[Expr]) -> Self {
        let size = |(name, _): &(String, _)| {
            Variable::bounded(ir, Interval::new(1, MAX_EXTENT)).named(name)
        };
        let domain = IndexingMap {
            dims: dims.iter().map(|extent| below(ir, *extent)).collect(),
            runtimes: sizes.iter().map(size).collect(),
            ..IndexingMap::default()
        };
        Self::within(ir, domain, sizes.iter().map(|(_, value)| *value).collect())
    }

    /// Over a domain, with the values of its runtime variables.
    pub fn within(ir: &'i Context, domain: IndexingMap, runtimes: Vec<Val<'c>>) -> Self {
        let runtimes = runtimes.into_iter().map(Runtime::Index).collect();
        let (inputs, outputs, combiners) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            ir,
            domain,
            runtimes,
            inputs,
            outputs,
            combiners,
            scan: None,
            scatter: None,
            ordered: false,
        }
    }

    /// Scans along a dimension variable; no range variable may be added.
    pub fn scan(&mut self, dim: u32, is_exclusive: bool) {
        self.scan = Some((dim, is_exclusive));
    }

    /// Updates elements of the destinations where constraints hold.
    pub fn scatter(&mut self, guard: Vec<Constraint>, promises: ScatterPromises) {
        self.scatter = Some((guard, promises));
    }

    /// Folds in the order of the ranges.
    pub fn keep_order(&mut self) {
        self.ordered = true;
    }

    /// Adds a range variable, from 0 to below `extent`; a single value needs none.
    pub fn range(&mut self, extent: i64) -> Expr {
        self.range_over(self.ir.constant(extent))
    }

    /// Adds a range variable whose extent is an expression of sizes.
    pub fn range_over(&mut self, extent: Expr) -> Expr {
        if self.ir.as_constant(extent) == Some(1) {
            return self.ir.constant(0);
        }
        let number = self.domain.ranges.len() as u32;
        self.domain.ranges.push(below(self.ir, extent));
        self.ir.range(number)
    }

    /// Adds a runtime variable with the value of an index between 0 and `last`.
    pub fn runtime(&mut self, value: Val<'c>, last: i64) -> Expr {
        let number = self.domain.runtimes.len() as u32;
        self.domain.runtimes.push(Variable::bounded(self.ir, Interval::new(0, last)));
        self.runtimes.push(Runtime::Index(value));
        self.ir.runtime(number)
    }

    /// Adds a runtime variable whose values are the elements of an integer tensor.
    pub fn element(&mut self, tensor: Val<'c>, index: Vec<Expr>, is_unsigned: bool) -> Expr {
        let number = self.domain.runtimes.len() as u32;
        self.domain.runtimes.push(Variable::default());
        self.table(tensor, index, is_unsigned);
        self.ir.runtime(number)
    }

    /// Gives the next runtime variable of the domain the elements of a tensor. It has the bounds of the
    /// type, and those of unsigned integers if `is_unsigned`.
    pub fn table(&mut self, tensor: Val<'c>, index: Vec<Expr>, is_unsigned: bool) {
        let variable = &mut self.domain.runtimes[self.runtimes.len()];
        *variable = Variable { name: variable.name.clone(), ..Variable::default() };
        if is_unsigned {
            let interval = imap::element_interval(mlir::element_type(tensor.r#type()), true);
            variable.set_interval(self.ir, interval);
        }
        self.runtimes.push(Runtime::Element(Access::new(tensor, index)));
    }

    /// The body applies only where an expression has a value in the interval. It never becomes a
    /// bound of a dimension variable, which would leave elements of the result unwritten.
    pub fn constrain(&mut self, expr: Expr, interval: Interval) {
        if !interval.covers(self.domain.range_of(self.ir, expr).interval) {
            match self.ir.node(expr) {
                Node::Var(Var::Dim(_)) => {
                    self.domain.constraints.push(Constraint { expr, interval });
                }
                _ => self.domain.add_constraint(self.ir, expr, interval),
            }
        }
    }

    /// Reads a tensor at an index.
    pub fn read(&mut self, tensor: Val<'c>, index: Vec<Expr>) {
        self.read_where(tensor, index, (Vec::new(), None));
    }

    /// Reads a tensor at an index, under a guard.
    pub fn read_where(&mut self, value: Val<'c>, subscripts: Vec<Expr>, (guard, fill): Guard<'c>) {
        self.inputs.push(Access { value, subscripts, guard, fill });
    }

    /// Writes to a tensor at an index.
    pub fn write(&mut self, init: Val<'c>, index: Vec<Expr>, combiner: Combiner) {
        self.outputs.push(Access::new(init, index));
        self.combiners.push(combiner);
    }

    /// Builds it, with what `body` computes from what is read.
    ///
    /// # Errors
    /// Those of `body`.
    pub fn build(
        self,
        b: &Builder<'c>,
        body: impl FnOnce(&Builder<'c>, &[Val<'c>]) -> Result<Vec<Val<'c>>, String>,
    ) -> Result<Vec<Val<'c>>, String> {
        let generic = self.build_generic(b, false);
        let inside = Builder::at_end(b.context, generic.body(), b.location);
        let values = body(&inside, &mlir::arguments(generic.body()))?;
        imap::build_yield(&inside, &values);
        Ok(mlir::results(generic.op()))
    }

    /// Builds it with empty blocks, one of them for an epilogue if that is asked for.
    pub fn build_generic(self, b: &Builder<'c>, epilogue: bool) -> AnyIndexed<'c> {
        let inits: Vec<_> = self.outputs.iter().map(|it| it.value).collect();
        let accumulators = Accumulator::of_combiners(b.context, &self.combiners, &inits);
        self.build_fold(b, accumulators, epilogue)
    }

    /// Builds it with empty blocks and other accumulators than the combiners of the destinations.
    pub fn build_fold(
        self,
        b: &Builder<'c>,
        accumulators: Vec<Accumulator<'c>>,
        epilogue: bool,
    ) -> AnyIndexed<'c> {
        let mut view = View {
            domain: self.domain,
            runtimes: self.runtimes,
            inputs: self.inputs,
            outputs: self.outputs,
            accumulators,
            ordered: self.ordered,
            combiner: None,
        };
        if let Some((guard, _)) = &self.scatter {
            view.outputs.iter_mut().for_each(|it| it.guard.clone_from(guard));
        }
        let whole = IndexingMap { constraints: Vec::new(), ..view.domain.clone() };
        for access in view.accesses_mut() {
            let results = access.subscripts.iter().map(|it| self.ir.canonicalize(*it)).collect();
            let mut map = IndexingMap { results, ..whole.clone() };
            // A destination has elements where a range has no values.
            if !map.is_known_empty(self.ir) {
                map.simplify(self.ir);
            }
            access.subscripts = map.results;
        }
        view.drop_unused_runtimes(self.ir, &[]);
        match (self.scan, self.scatter) {
            (Some(scan), _) => view.build_scan(self.ir, b, epilogue, scan).into(),
            (_, Some((_, promises))) => view.build_scatter(self.ir, b, promises).into(),
            (None, None) => view.build(self.ir, b, epilogue).into(),
        }
    }
}

/// A variable from 0 to below an extent.
fn below(ir: &Context, extent: Expr) -> Variable {
    let last = ir.canonicalize((ir.wrap(extent) - 1).expr());
    Variable::between(ir.constant(0), last)
}
