//! An operation with maps taken apart, or to be built.

use super::{
    Accumulator, AnyIndexed, CombinerKind, Generic, Indexed, Scan, Scatter, ScatterPromises, Start,
    extents::is_index, map,
};
use crate::mlir::{self, Blk, Builder, Val};
use melior::{
    Context,
    ir::{Attribute, ValueLike},
};
use std::collections::BTreeSet;
use tc_ir::{
    expr::{Expr, Var},
    map::{Constraint, IndexingMap, Variable},
};

/// An operand, and the element of it that a point of the domain accesses.
#[derive(Clone, Debug, PartialEq)]
pub struct Access<'c> {
    /// The tensor or buffer.
    pub value: Val<'c>,
    /// The index in each of its dimensions.
    pub subscripts: Vec<Expr>,
    /// Where one of these fails, the operand is not touched.
    pub guard: Vec<Constraint>,
    /// The constant that the body sees then; `None` is zero.
    pub fill: Option<Attribute<'c>>,
}

impl<'c> Access<'c> {
    /// An access without a guard.
    pub fn new(value: Val<'c>, subscripts: Vec<Expr>) -> Self {
        Self { value, subscripts, guard: Vec::new(), fill: None }
    }

    /// The subscripts, and the expressions of the guard.
    pub fn exprs(&self) -> Vec<Expr> {
        self.guard.iter().map(|it| it.expr).chain(self.subscripts.iter().copied()).collect()
    }

    /// The distance between the elements at two neighbouring values of a variable, in elements; `None` if it depends on
    /// the values of variables or on dynamic extents.
    pub fn step(&self, ir: &tc_ir::Context, var: Var) -> Option<i64> {
        let shape = mlir::shape(self.value.r#type());
        let (mut step, mut stride) = (0_i64, 1_i64);
        for (expr, length) in self.subscripts.iter().zip(shape).rev() {
            if ir.vars(*expr).contains(&var) {
                let own = ir.coefficient(*expr, var)?.checked_mul(stride)?;
                step = step.checked_add(own)?;
            }
            stride = stride.checked_mul(length?)?;
        }
        Some(step)
    }

    /// Replaces variables.
    pub fn substitute(&mut self, ir: &tc_ir::Context, replacement: &dyn Fn(Var) -> Option<Expr>) {
        self.subscripts = ir.substitute_all(&self.subscripts, replacement);
        substitute_constraints(ir, &mut self.guard, replacement);
    }

    /// The map over the variables of a domain, with the guard as its constraints.
    pub fn map(&self, domain: &IndexingMap) -> IndexingMap {
        let unbounded = |variables: &[Variable]| {
            let name = |it: &Variable| Variable { name: it.name.clone(), ..Variable::default() };
            variables.iter().map(name).collect()
        };
        IndexingMap {
            dims: unbounded(&domain.dims),
            ranges: unbounded(&domain.ranges),
            runtimes: unbounded(&domain.runtimes),
            results: self.subscripts.clone(),
            constraints: self.guard.clone(),
        }
    }
}

/// Replaces variables in constraints.
pub fn substitute_constraints(
    ir: &tc_ir::Context,
    constraints: &mut [Constraint],
    replacement: &dyn Fn(Var) -> Option<Expr>,
) {
    for constraint in constraints {
        constraint.expr = ir.substitute(constraint.expr, replacement);
    }
}

/// The value of a runtime variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Runtime<'c> {
    /// A value of type `index`.
    Index(Val<'c>),
    /// An element of a tensor or buffer of integers.
    Element(Access<'c>),
}

impl<'c> Runtime<'c> {
    /// The operand.
    pub fn value(&self) -> Val<'c> {
        match self {
            Self::Index(value) => *value,
            Self::Element(access) => access.value,
        }
    }

    /// Where it is read, if it is an element.
    pub fn access(&self) -> Option<&Access<'c>> {
        match self {
            Self::Index(_) => None,
            Self::Element(access) => Some(access),
        }
    }

    /// [`access`](Self::access), to be changed.
    pub fn access_mut(&mut self) -> Option<&mut Access<'c>> {
        match self {
            Self::Index(_) => None,
            Self::Element(access) => Some(access),
        }
    }
}

/// An operation with maps taken apart, or to be built.
#[derive(Clone, Debug)]
pub struct View<'c> {
    /// The iteration domain.
    pub domain: IndexingMap,
    /// The values of the runtime variables.
    pub runtimes: Vec<Runtime<'c>>,
    /// What is read.
    pub inputs: Vec<Access<'c>>,
    /// The destinations.
    pub outputs: Vec<Access<'c>>,
    /// The accumulators; none in map form.
    pub accumulators: Vec<Accumulator<'c>>,
    /// Whether an `imap.generic` folds in lexicographic order of the range variables.
    pub ordered: bool,
    /// The block that combines the accumulators, which is copied. If none of them has a combiner with
    /// a name and this is absent, an empty block is made.
    pub combiner: Option<Blk<'c>>,
}

impl<'c> View<'c> {
    /// Takes an operation apart.
    pub fn of(ir: &tc_ir::Context, op: impl Indexed<'c>) -> Self {
        let mut parts = op.maps(ir).into_iter().zip(op.fills());
        let mut access = |value| {
            let (map, fill) = parts.next().expect("a verified operation has a map per operand");
            Access { value, subscripts: map.results, guard: map.constraints, fill }
        };
        let inputs = op.inputs().into_iter().map(&mut access).collect();
        let outputs = op.inits().into_iter().map(&mut access).collect();
        let runtime = |value| match is_index(value) {
            true => Runtime::Index(value),
            false => Runtime::Element(access(value)),
        };
        Self {
            domain: op.domain(ir),
            runtimes: op.runtimes().into_iter().map(runtime).collect(),
            inputs,
            outputs,
            accumulators: op.accumulators(),
            ordered: op.is_ordered(),
            combiner: op.combiner(),
        }
    }

    /// An operation that reads one element at each point and writes it elsewhere, without runtime variables.
    pub fn of_copy(domain: IndexingMap, [read, written]: [Access<'c>; 2]) -> Self {
        Self {
            domain,
            runtimes: Vec::new(),
            inputs: vec![read],
            outputs: vec![written],
            accumulators: Vec::new(),
            ordered: false,
            combiner: None,
        }
    }

    /// A copy of all elements of a tensor or buffer of these extents, without runtime variables.
    pub fn of_whole_copy(ir: &tc_ir::Context, extents: &[i64], operands: [Val<'c>; 2]) -> Self {
        let identity = IndexingMap::identity(ir, extents);
        let accesses = operands.map(|it| Access::new(it, identity.results.clone()));
        Self::of_copy(IndexingMap { results: Vec::new(), ..identity }, accesses)
    }

    /// The accesses in the order of their maps: inputs, destinations, elements among the runtimes.
    pub fn accesses(&self) -> impl Iterator<Item = &Access<'c>> {
        let elements = self.runtimes.iter().filter_map(Runtime::access);
        self.inputs.iter().chain(&self.outputs).chain(elements)
    }

    /// [`accesses`](Self::accesses), to be changed.
    pub fn accesses_mut(&mut self) -> impl Iterator<Item = &mut Access<'c>> {
        let elements = self.runtimes.iter_mut().filter_map(Runtime::access_mut);
        self.inputs.iter_mut().chain(&mut self.outputs).chain(elements)
    }

    /// The dimension variables that may have several values.
    pub fn looping_dims(&self, ir: &tc_ir::Context) -> Vec<Var> {
        let has_several = |variable: &Variable| {
            let interval = variable.constant_interval(ir);
            interval.is_none_or(|interval| interval.as_point().is_none())
        };
        let dims = self.domain.dims.iter().zip(0..);
        dims.filter(|(dim, _)| has_several(dim)).map(|(_, number)| Var::Dim(number)).collect()
    }

    /// Whether each input that is read along ranges is read along all dimensions, unlike the factors of a
    /// product: a fold then reads each element once.
    pub fn reads_once(&self, ir: &tc_ir::Context) -> bool {
        !self.inputs.iter().any(|access| self.reads_again(ir, access))
    }

    /// Whether an input is read along ranges, and not along all dimensions: each element for several results.
    pub fn reads_again(&self, ir: &tc_ir::Context, access: &Access) -> bool {
        let used = ir.vars_of_all(&access.subscripts);
        let is_folded = used.iter().any(|var| matches!(var, Var::Range(_)));
        is_folded && !self.looping_dims(ir).iter().all(|dim| used.contains(dim))
    }

    /// The operands of the runtime variables.
    pub fn runtime_values(&self) -> Vec<Val<'c>> {
        self.runtimes.iter().map(Runtime::value).collect()
    }

    /// The destinations.
    pub fn inits(&self) -> Vec<Val<'c>> {
        self.outputs.iter().map(|it| it.value).collect()
    }

    /// Replaces variables in the domain and in all accesses.
    pub fn substitute(&mut self, ir: &tc_ir::Context, replacement: &dyn Fn(Var) -> Option<Expr>) {
        self.domain.substitute(ir, replacement);
        self.accesses_mut().for_each(|it| it.substitute(ir, replacement));
    }

    /// Drops the runtime variables that neither accesses nor `conditions`, of `imap.inside`, use. Returns
    /// the old numbers of those that are left.
    pub fn drop_unused_runtimes(
        &mut self,
        ir: &tc_ir::Context,
        conditions: &[Constraint],
    ) -> Vec<usize> {
        let conditions = conditions.iter().map(|it| it.expr);
        let accesses = self.inputs.iter().chain(&self.outputs).flat_map(Access::exprs);
        let fixed = domain_exprs(&self.domain).chain(conditions).chain(accesses).collect();
        let needs = |number: usize| {
            let bounds = self.domain.runtimes.get(number).into_iter().flat_map(bounds);
            let access = self.runtimes.get(number).and_then(Runtime::access);
            bounds.chain(access.into_iter().flat_map(Access::exprs)).collect()
        };
        let used: Vec<_> = used_runtimes(ir, fixed, &needs).into_iter().collect();
        self.keep_runtimes(ir, &used);
        used
    }

    /// Keeps the runtime variables of these numbers, in this order; nothing uses another one.
    pub(super) fn keep_runtimes(&mut self, ir: &tc_ir::Context, kept: &[usize]) {
        self.substitute(ir, &renumbering(ir, kept));
        let variables = &self.domain.runtimes;
        self.domain.runtimes = kept.iter().map(|number| variables[*number].clone()).collect();
        self.runtimes = kept.iter().map(|number| self.runtimes[*number].clone()).collect();
    }

    /// Builds an `imap.generic` with empty blocks for the body and, if `epilogue`, the epilogue; their
    /// arguments are those that the operation's definition asks for.
    pub fn build(&self, ir: &tc_ir::Context, builder: &Builder<'c>, epilogue: bool) -> Generic<'c> {
        let ordered = self.ordered.then(|| ("ordered", Attribute::unit(builder.context)));
        let attributes = ordered.into_iter().collect();
        Generic { op: self.build_op(ir, builder, epilogue, (Generic::NAME, attributes)) }
    }

    /// Builds an `imap.generic` that yields the elements that it reads.
    pub fn build_copy(&self, ir: &tc_ir::Context, builder: &Builder<'c>) -> Generic<'c> {
        let copy = self.build(ir, builder, false);
        let (inside, arguments) = builder.inside(copy.body());
        super::build_yield(&inside, &arguments);
        copy
    }

    /// Builds an `imap.scan` along a dimension variable, as [`build`](Self::build) does.
    pub fn build_scan(
        &self,
        ir: &tc_ir::Context,
        builder: &Builder<'c>,
        epilogue: bool,
        (dim, is_exclusive): (u32, bool),
    ) -> Scan<'c> {
        let mut attributes = vec![("dim", mlir::i64_attr(builder.context, i64::from(dim)))];
        if is_exclusive {
            attributes.push(("exclusive", Attribute::unit(builder.context)));
        }
        Scan { op: self.build_op(ir, builder, epilogue, (Scan::NAME, attributes)) }
    }

    /// Builds an `imap.scatter` with these promises, as [`build`](Self::build) does. Accumulators start
    /// from the destinations.
    pub fn build_scatter(
        &self,
        ir: &tc_ir::Context,
        builder: &Builder<'c>,
        promises: ScatterPromises,
    ) -> Scatter<'c> {
        let names = [("unique", promises.unique), ("sorted", promises.sorted)];
        let promised = names.into_iter().filter(|(_, holds)| *holds);
        let attributes =
            promised.map(|(name, _)| (name, Attribute::unit(builder.context))).collect();
        Scatter { op: self.build_op(ir, builder, false, (Scatter::NAME, attributes)) }
    }

    /// Builds an operation of the kind of another one, with an epilogue if that has one. It has the
    /// same scanned dimension variable and promises.
    pub fn build_like(
        &self,
        ir: &tc_ir::Context,
        builder: &Builder<'c>,
        other: AnyIndexed<'c>,
    ) -> AnyIndexed<'c> {
        let epilogue = other.epilogue().is_some();
        if let Some(scan) = Scan::cast(other.op) {
            return self
                .build_scan(ir, builder, epilogue, (scan.dim(), scan.is_exclusive()))
                .into();
        }
        match Scatter::cast(other.op) {
            Some(scatter) => self.build_scatter(ir, builder, scatter.promises()).into(),
            None => self.build(ir, builder, epilogue).into(),
        }
    }

    fn build_op(
        &self,
        ir: &tc_ir::Context,
        builder: &Builder<'c>,
        epilogue: bool,
        (name, mut attributes): (&str, Vec<(&str, Attribute<'c>)>),
    ) -> mlir::Op<'c> {
        let context = builder.context;
        let scalar =
            |it: &Access<'c>| mlir::signless(context, mlir::element_type(it.value.r#type()));
        let inputs: Vec<_> = self.inputs.iter().map(scalar).collect();
        let mut regions = vec![mlir::region_with_block(&inputs, builder.location).0];
        let folded: Vec<_> = self.accumulators.iter().map(|it| it.ty).collect();
        if self.accumulators.iter().any(|it| it.kind == CombinerKind::Custom) {
            let arguments = [folded.clone(), folded.clone()].concat();
            let (region, block) = mlir::region_with_block(&arguments, builder.location);
            if let Some(old) = self.combiner {
                mlir::copy_block(context, old, block, builder.location);
            }
            regions.push(region);
        }
        if epilogue {
            let arguments = [folded, inputs].concat();
            regions.push(mlir::region_with_block(&arguments, builder.location).0);
        }
        let mut accumulators = self.accumulators.clone();
        if name == Scatter::NAME {
            // All of them start from the destinations, and those of a region stand for no attribute.
            accumulators.retain(|it| it.kind != CombinerKind::Custom);
            accumulators.iter_mut().for_each(|it| it.start = Start::Identity);
        }
        let accumulators: Vec<_> = accumulators.iter().map(|it| it.attribute()).collect();
        let results = self.inits().into_iter().map(|init| init.r#type());
        let results: Vec<_> = results.filter(|ty| mlir::is_tensor(*ty)).collect();
        attributes.push(("accumulators", mlir::array(context, &accumulators)));
        attributes.extend(self.operand_attributes(ir, context));
        attributes.extend(self.fills_attribute(context).map(|fills| ("fills", fills)));
        builder.op_with(name, &self.operands(), &results, &attributes, regions)
    }

    /// Gives an operation these operands, and their maps.
    pub fn set_operands(&self, ir: &tc_ir::Context, op: mlir::Op<'c>) {
        let context = mlir::context_of(op);
        mlir::set_operands(op, &self.operands());
        for (name, attribute) in self.operand_attributes(ir, context) {
            mlir::set_attribute(op, name, attribute);
        }
        match self.fills_attribute(context) {
            Some(fills) => mlir::set_attribute(op, "fills", fills),
            None => mlir::remove_attribute(op, "fills"),
        }
    }

    fn operands(&self) -> Vec<Val<'c>> {
        let inputs = self.inputs.iter().map(|it| it.value);
        self.runtime_values().into_iter().chain(inputs).chain(self.inits()).collect()
    }

    /// The domain, the maps, and the number of operands of each kind.
    fn operand_attributes(
        &self,
        ir: &tc_ir::Context,
        context: &'c Context,
    ) -> [(&'static str, Attribute<'c>); 3] {
        let attribute = |map: &IndexingMap| map::to_attribute(context, ir, map);
        let maps: Vec<_> = self.accesses().map(|it| attribute(&it.map(&self.domain))).collect();
        let groups = [self.runtimes.len(), self.inputs.len(), self.outputs.len()];
        [
            ("domain", attribute(&self.domain)),
            ("maps", mlir::array(context, &maps)),
            ("operandSegmentSizes", mlir::segments(context, &groups)),
        ]
    }

    /// The attribute `fills`, if there is a constant. One without a guard is left out.
    fn fills_attribute(&self, context: &'c Context) -> Option<Attribute<'c>> {
        let fills: Vec<_> =
            self.accesses().map(|it| it.fill.filter(|_| !it.guard.is_empty())).collect();
        let of = |fill: &Option<Attribute<'c>>| fill.unwrap_or_else(|| Attribute::unit(context));
        let attributes: Vec<_> = fills.iter().map(of).collect();
        fills.iter().any(Option::is_some).then(|| mlir::array(context, &attributes))
    }
}

fn bounds(variable: &Variable) -> impl Iterator<Item = Expr> + use<> {
    variable.lower.into_iter().chain(variable.upper)
}

/// The bounds of dimension and range variables, and the constraints.
fn domain_exprs(domain: &IndexingMap) -> impl Iterator<Item = Expr> {
    let constraints = domain.constraints.iter().map(|it| it.expr);
    domain.dims.iter().chain(&domain.ranges).flat_map(bounds).chain(constraints)
}

/// The numbers of the runtime variables in expressions, and of those that these need: `needs` gives the
/// expressions that one depends on.
fn used_runtimes(
    ir: &tc_ir::Context,
    mut work: Vec<Expr>,
    needs: &dyn Fn(usize) -> Vec<Expr>,
) -> BTreeSet<usize> {
    let mut used = BTreeSet::new();
    while !work.is_empty() {
        for var in ir.vars_of_all(&std::mem::take(&mut work)) {
            if let Var::Runtime(number) = var
                && used.insert(number as usize)
            {
                work.extend(needs(number as usize));
            }
        }
    }
    used
}

/// Drops the runtime variables that nothing in a map uses. Returns the old numbers of those that are left.
pub(super) fn drop_unused(ir: &tc_ir::Context, map: &mut IndexingMap) -> Vec<usize> {
    let fixed = domain_exprs(map).chain(map.results.iter().copied()).collect();
    let needs = |number: usize| map.runtimes.get(number).into_iter().flat_map(bounds).collect();
    let used: Vec<_> = used_runtimes(ir, fixed, &needs).into_iter().collect();
    map.substitute(ir, &renumbering(ir, &used));
    map.runtimes = used.iter().map(|number| map.runtimes[*number].clone()).collect();
    used
}

/// Gives runtime variables their places among those of these numbers.
pub fn renumbering<'a>(
    ir: &'a tc_ir::Context,
    kept: &'a [usize],
) -> impl Fn(Var) -> Option<Expr> + use<'a> {
    move |var| match var {
        Var::Runtime(number) => {
            let place = kept.iter().position(|kept| *kept == number as usize)?;
            Some(ir.runtime(place as u32))
        }
        _ => None,
    }
}
