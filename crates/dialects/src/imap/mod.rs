//! The `imap` dialect: operations on tensors whose access functions are indexing maps.
//!
//! See `imap.td` for the operations; this module is their view from Rust.

pub mod canonicalize;
pub mod extents;
pub mod map;
pub mod partial;
pub(crate) mod prune;
mod sort;
pub mod tiling;
pub mod verify;

use crate::{
    ffi::{self, AccumulatorParts},
    mlir::{self, Blk, Builder, Op, Val},
};
use melior::{
    Context,
    ir::{Attribute, Location, Type, TypeLike, ValueLike, operation::OperationLike},
};
use std::{collections::BTreeSet, fmt};
use tc_ir::{
    FrozenMap,
    expr::{Expr, Var},
    interval::Interval,
    map::{Constraint, IndexingMap, Variable},
};

pub use sort::Sort;

#[allow(missing_docs)]
mod generated {
    melior::dialect! {
        name: "imap",
        files: ["src/imap/imap.td"],
        include_directory_env_vars: ["CARGO_MANIFEST_DIR"],
    }
}
/// Typed operations and builders that are generated from `imap.td`.
pub use generated::imap as ods;

/// The largest extent of a dimension, and the largest value of a size variable.
pub const MAX_EXTENT: i64 = i32::MAX as i64;

/// How the values of one element are folded.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum CombinerKind {
    /// The value is stored.
    Assign,
    /// The sum.
    Add,
    /// The product.
    Mul,
    /// The smaller float; a NaN loses against a number.
    MinF,
    /// The larger float; a NaN loses against a number.
    MaxF,
    /// The smaller signed integer.
    MinS,
    /// The larger signed integer.
    MaxS,
    /// The smaller unsigned integer.
    MinU,
    /// The larger unsigned integer.
    MaxU,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// The smaller float; a NaN wins.
    MinimumF,
    /// The larger float; a NaN wins.
    MaximumF,
    /// The region `combine` of the operation combines all accumulators.
    Custom,
}

impl CombinerKind {
    const NAMES: [(Self, &str); 14] = [
        (Self::Assign, "assign"),
        (Self::Add, "add"),
        (Self::Mul, "mul"),
        (Self::MinF, "minf"),
        (Self::MaxF, "maxf"),
        (Self::MinS, "mins"),
        (Self::MaxS, "maxs"),
        (Self::MinU, "minu"),
        (Self::MaxU, "maxu"),
        (Self::And, "and"),
        (Self::Or, "or"),
        (Self::MinimumF, "minimumf"),
        (Self::MaximumF, "maximumf"),
        (Self::Custom, "custom"),
    ];

    /// Whether this is the smallest or largest of floats.
    pub fn is_float_extremum(self) -> bool {
        matches!(self, Self::MinF | Self::MaxF | Self::MinimumF | Self::MaximumF)
    }

    fn of_name(name: &str) -> Option<Self> {
        Some(Self::NAMES.iter().find(|(_, known)| *known == name)?.0)
    }

    /// The name in assembly.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(kind, _)| *kind == self);
        found.expect("every kind has a name").1
    }

    /// The operation of `arith` on floats, or on integers; `None` if it is none.
    fn operation(self, is_float: bool) -> Option<&'static str> {
        Some(match self {
            Self::Assign | Self::Custom => return None,
            Self::Add if is_float => "arith.addf",
            Self::Add => "arith.addi",
            Self::Mul if is_float => "arith.mulf",
            Self::Mul => "arith.muli",
            Self::MinF => "arith.minnumf",
            Self::MaxF => "arith.maxnumf",
            Self::MinS => "arith.minsi",
            Self::MaxS => "arith.maxsi",
            Self::MinU => "arith.minui",
            Self::MaxU => "arith.maxui",
            Self::And => "arith.andi",
            Self::Or => "arith.ori",
            Self::MinimumF => "arith.minimumf",
            Self::MaximumF => "arith.maximumf",
        })
    }

    /// The combiner that an operation of `arith` of this name is, if it is one.
    pub fn of_operation(name: &str) -> Option<Self> {
        let is_it = |kind: &Self| [true, false].iter().any(|it| kind.operation(*it) == Some(name));
        Self::NAMES.iter().map(|(kind, _)| *kind).find(is_it)
    }

    /// Emits the combination of an accumulated value with a new one.
    ///
    /// # Panics
    /// If no operation of `arith` combines.
    pub fn build<'c>(self, builder: &Builder<'c>, acc: Val<'c>, new: Val<'c>) -> Val<'c> {
        let ty = acc.r#type();
        let is_float = mlir::is_float(mlir::element_type(ty));
        let name = self.operation(is_float).expect("a combiner that is an operation");
        builder.value(name, &[acc, new], ty)
    }

    /// The identity of the operation in a type; without an operation, zero.
    pub fn identity<'c>(self, context: &'c Context, ty: Type<'c>) -> Attribute<'c> {
        let index_width = ty.is_index().then_some(64);
        let Some(width) = mlir::integer_width(ty).or(index_width) else {
            let value = match self {
                Self::Mul => 1.0,
                Self::MinF | Self::MinimumF => f64::INFINITY,
                Self::MaxF | Self::MaximumF => f64::NEG_INFINITY,
                _ => 0.0,
            };
            return mlir::float(context, ty, value);
        };
        let signed_max = if width >= 64 { i64::MAX } else { (1i64 << (width - 1)) - 1 };
        let value = match self {
            Self::Mul => 1,
            Self::MinS => signed_max,
            Self::MaxS => -signed_max - 1,
            Self::MinU | Self::And => -1,
            _ => 0,
        };
        mlir::integer(context, ty, value)
    }
}

/// The combiner of one result of a lowering, or of a comprehension.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Combiner {
    /// The operation.
    pub kind: CombinerKind,
    /// Whether the fold starts from the identity of the operation rather than from what
    /// the destination holds.
    pub from_identity: bool,
}

impl Combiner {
    /// Stores the value.
    pub const ASSIGN: Self = Self { kind: CombinerKind::Assign, from_identity: false };

    /// The region `combine` of the operation combines the value with what the destination holds.
    const CUSTOM: Self = Self { kind: CombinerKind::Custom, from_identity: false };

    /// Whether what the destination held before takes part.
    pub fn reads_destination(self) -> bool {
        self.kind != CombinerKind::Assign && !self.from_identity
    }

    /// The attribute `#imap.combiner<..>`.
    pub fn attribute(self, context: &Context) -> Attribute<'_> {
        mlir::parse_attribute(context, &format!("#imap.combiner<{self}>"))
    }

    /// Reads the attribute `#imap.combiner<..>`.
    pub fn from_attribute(attribute: Attribute) -> Option<Self> {
        let text = attribute.to_string();
        let text = text.strip_prefix("#imap.combiner<")?.strip_suffix('>')?;
        let (name, from_identity) = match text.strip_suffix(" from identity") {
            Some(name) => (name, true),
            None => (text, false),
        };
        Some(Self { kind: CombinerKind::of_name(name)?, from_identity })
    }
}

/// The start of a fold.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Start<'c> {
    /// The identity of the operation.
    Identity,
    /// A constant of the accumulator's type.
    Constant(Attribute<'c>),
    /// The contents of the destination of this number.
    Destination(usize),
}

/// A value that a fold accumulates.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Accumulator<'c> {
    /// The type of the value.
    pub ty: Type<'c>,
    /// The operation, which is not [`CombinerKind::Assign`].
    pub kind: CombinerKind,
    /// The identity of [`CombinerKind::Custom`]; the other combiners have their own.
    pub identity: Option<Attribute<'c>>,
    /// Its first value.
    pub start: Start<'c>,
}

impl<'c> Accumulator<'c> {
    /// The accumulators of the element types of destinations, for one combiner each; none, which is
    /// the map form, if all of them assign.
    pub fn of_combiners(
        context: &'c Context,
        combiners: &[Combiner],
        inits: &[Val<'c>],
    ) -> Vec<Self> {
        if combiners.iter().all(|it| *it == Combiner::ASSIGN) {
            return Vec::new();
        }
        let accumulator = |(number, (combiner, init)): (usize, (&Combiner, &Val<'c>))| Self {
            ty: mlir::signless(context, mlir::element_type(init.r#type())),
            kind: combiner.kind,
            identity: None,
            start: match combiner.from_identity {
                true => Start::Identity,
                false => Start::Destination(number),
            },
        };
        combiners.iter().zip(inits).enumerate().map(accumulator).collect()
    }

    /// The attribute `#imap.acc<..>`.
    pub fn attribute(self) -> Attribute<'c> {
        let (start, out) = match self.start {
            Start::Identity => (None, None),
            Start::Constant(start) => (Some(start), None),
            Start::Destination(out) => (None, Some(out)),
        };
        let Self { ty, kind, identity, .. } = self;
        let kind = kind.name();
        ffi::accumulator_attribute(&AccumulatorParts { ty, kind, identity, start, out })
    }

    /// Reads the attribute `#imap.acc<..>`.
    pub fn from_attribute(attribute: Attribute<'c>) -> Option<Self> {
        let AccumulatorParts { ty, kind, identity, start, out } =
            ffi::accumulator_parts(attribute)?;
        let start = match (start, out) {
            (_, Some(out)) => Start::Destination(out),
            (Some(start), None) => Start::Constant(start),
            (None, None) => Start::Identity,
        };
        Some(Self { ty, kind: CombinerKind::of_name(kind)?, identity, start })
    }

    /// The destination that it starts from.
    pub fn destination(&self) -> Option<usize> {
        match self.start {
            Start::Destination(number) => Some(number),
            _ => None,
        }
    }

    /// Whether it is a sum or a product of floats, which rounds.
    pub fn rounds(&self) -> bool {
        matches!(self.kind, CombinerKind::Add | CombinerKind::Mul) && mlir::is_float(self.ty)
    }

    /// Emits the identity of the operation.
    pub fn build_identity(&self, builder: &Builder<'c>) -> Val<'c> {
        let own = || self.kind.identity(builder.context, self.ty);
        builder.constant(self.ty, self.identity.unwrap_or_else(own))
    }

    /// Emits the start; `held` loads from the destination of a number.
    pub fn build_start(
        &self,
        builder: &Builder<'c>,
        held: impl FnOnce(usize) -> Val<'c>,
    ) -> Val<'c> {
        match self.start {
            Start::Identity => self.build_identity(builder),
            Start::Constant(value) => builder.constant(self.ty, value),
            Start::Destination(number) => held(number),
        }
    }
}

impl fmt::Display for Combiner {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}", self.kind.name())?;
        if self.from_identity { write!(formatter, " from identity") } else { Ok(()) }
    }
}

mlir::op_view! {
    /// An `imap.generic`.
    Generic, "imap.generic"
}

/// An operation with an iteration domain and an indexing map per operand.
pub trait Indexed<'c>: Copy {
    /// The operation itself.
    fn op(self) -> Op<'c>;

    /// The iteration domain, a map without results.
    fn domain(self, ir: &tc_ir::Context) -> IndexingMap {
        self.frozen_domain().thaw(ir)
    }

    /// The iteration domain, as the attribute holds it.
    fn frozen_domain(self) -> &'c FrozenMap {
        let attribute = self.op().attribute("domain").ok();
        attribute.and_then(map::frozen).expect("a verified operation has a domain")
    }

    /// The values of the runtime variables: an `index` or an integer tensor each.
    fn runtimes(self) -> Vec<Val<'c>> {
        mlir::operand_group(self.op(), 0)
    }

    /// The tensors read.
    fn inputs(self) -> Vec<Val<'c>> {
        mlir::operand_group(self.op(), 1)
    }

    /// The destinations.
    fn inits(self) -> Vec<Val<'c>> {
        mlir::operand_group(self.op(), 2)
    }

    /// The indexing maps: of the inputs, the destinations, and the tensors among the
    /// runtimes.
    fn maps(self, ir: &tc_ir::Context) -> Vec<IndexingMap> {
        self.frozen_maps().into_iter().map(|map| map.thaw(ir)).collect()
    }

    /// The indexing maps, as the attributes hold them.
    fn frozen_maps(self) -> Vec<&'c FrozenMap> {
        mlir::array_attr(self.op(), "maps").into_iter().filter_map(map::frozen).collect()
    }

    /// Per map, the constant that the body sees where the guard of the access fails; `None` is zero.
    fn fills(self) -> Vec<Option<Attribute<'c>>> {
        let fills = mlir::array_attr(self.op(), "fills");
        let constant = |fill: &Attribute<'c>| Some(*fill).filter(|it| mlir::is_number(*it));
        (0..self.frozen_maps().len()).map(|number| constant(fills.get(number)?)).collect()
    }

    /// Whether an access has a guard.
    fn has_guards(self) -> bool {
        self.frozen_maps().iter().any(|map| map.has_constraints())
    }

    /// The accumulators; none in map form.
    fn accumulators(self) -> Vec<Accumulator<'c>> {
        let attributes = mlir::array_attr(self.op(), "accumulators");
        let mut found: Vec<_> =
            attributes.into_iter().filter_map(Accumulator::from_attribute).collect();
        if mlir::is(self.op(), Scatter::NAME) {
            let context = mlir::context_of(self.op());
            if found.is_empty() && self.op().region_count() == 2 {
                let combiners = vec![Combiner::CUSTOM; self.inits().len()];
                return Accumulator::of_combiners(context, &combiners, &self.inits());
            }
            for (number, accumulator) in found.iter_mut().enumerate() {
                accumulator.start = Start::Destination(number);
            }
        }
        found
    }

    /// The block that computes the values of a point.
    fn body(self) -> Blk<'c> {
        mlir::body(self.op(), 0).expect("a verified operation has a body")
    }

    /// Whether each iteration touches one element through both of two operands, given by their
    /// numbers, which no other iteration touches: what one reads may then be overwritten by the
    /// other. That is so without range variables, if both have one map, and that lists every
    /// dimension variable once.
    fn touches_same_element(self, first: usize, second: usize) -> bool {
        let ir = tc_ir::Context::new();
        let (domain, maps) = (self.domain(&ir), self.maps(&ir));
        let place = |operand: usize| operand.checked_sub(self.runtimes().len());
        let map = |operand| maps.get(place(operand)?);
        let (Some(lhs), Some(rhs)) = (map(first), map(second)) else { return false };
        let dims: BTreeSet<_> = lhs.results.iter().filter_map(|expr| ir.as_var(*expr)).collect();
        let is_dim = |var: &Var| matches!(var, Var::Dim(_));
        let is_bijective = dims.len() == domain.dims.len() && dims.iter().all(is_dim);
        domain.ranges.is_empty() && lhs.results == rhs.results && is_bijective
    }

    /// Whether a region combines, rather than an operation per accumulator.
    fn has_combiner(self) -> bool {
        self.accumulators().iter().any(|it| it.kind == CombinerKind::Custom)
    }

    /// The block that maps two tuples of accumulators to one, if no combiner has a name.
    fn combiner(self) -> Option<Blk<'c>> {
        if self.has_combiner() { mlir::body(self.op(), 1) } else { None }
    }

    /// The block that maps folded values to what is stored.
    fn epilogue(self) -> Option<Blk<'c>> {
        mlir::body(self.op(), 1 + usize::from(self.has_combiner()))
    }

    /// Whether the results depend on the contents of a destination: a fold starts from it, or the
    /// operation does not store every element.
    fn reads_destination(self, destination: usize) -> bool {
        extents::reads_destination(self, destination)
    }

    /// The blocks that may depend on the point: the body, and the epilogue if there is one.
    fn blocks(self) -> Vec<Blk<'c>> {
        [Some(self.body()), self.epilogue()].into_iter().flatten().collect()
    }
}

mlir::op_view! {
    /// An `imap.scatter`. Its accumulators start from the destinations.
    Scatter, "imap.scatter"
}

/// The promises of an `imap.scatter`: `unique` and `sorted`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ScatterPromises {
    /// No element is updated twice.
    pub unique: bool,
    /// Among points that differ only in dimension variables that elements of `runtimes` depend on, later
    /// ones do not update earlier elements, in row-major order.
    pub sorted: bool,
}

impl Scatter<'_> {
    /// Its promises.
    pub fn promises(self) -> ScatterPromises {
        let holds = |name| self.op.attribute(name).is_ok();
        ScatterPromises { unique: holds("unique"), sorted: holds("sorted") }
    }
}

mlir::op_view! {
    /// An `imap.scan`.
    Scan, "imap.scan"
}

impl Scan<'_> {
    /// The number of the scanned dimension variable.
    pub fn dim(self) -> u32 {
        let number = mlir::integer_attr(self.op, "dim").and_then(|it| u32::try_from(it).ok());
        number.expect("a verified imap.scan has a scanned dimension")
    }

    /// Whether what is stored at a point lacks the value of the point.
    pub fn is_exclusive(self) -> bool {
        self.op.attribute("exclusive").is_ok()
    }
}

/// Any operation with maps.
#[derive(Copy, Clone, Debug)]
pub struct AnyIndexed<'c> {
    op: Op<'c>,
}

impl<'c> AnyIndexed<'c> {
    /// Views an operation as one with maps, if it is one.
    pub fn cast(op: Op<'c>) -> Option<Self> {
        let names = [Generic::NAME, Scan::NAME, Scatter::NAME];
        names.contains(&mlir::name(op)).then_some(Self { op })
    }

    /// The operation around another one.
    pub fn around(op: Op<'c>) -> Option<Self> {
        let mut parent = mlir::parent(op);
        while let Some(op) = parent {
            if let Some(found) = Self::cast(op) {
                return Some(found);
            }
            parent = mlir::parent(op);
        }
        None
    }

    /// The operation itself.
    pub fn op(self) -> Op<'c> {
        self.op
    }
}

macro_rules! indexed {
    ($($view:ident),*) => {$(
        impl<'c> Indexed<'c> for $view<'c> {
            fn op(self) -> Op<'c> {
                self.op
            }
        }
    )*};
}

indexed!(Generic, Scan, Scatter, AnyIndexed);

impl<'c> From<Generic<'c>> for AnyIndexed<'c> {
    fn from(generic: Generic<'c>) -> Self {
        Self { op: generic.op }
    }
}

impl<'c> From<Scatter<'c>> for AnyIndexed<'c> {
    fn from(scatter: Scatter<'c>) -> Self {
        Self { op: scatter.op }
    }
}

impl<'c> From<Scan<'c>> for AnyIndexed<'c> {
    fn from(scan: Scan<'c>) -> Self {
        Self { op: scan.op }
    }
}

mlir::op_view! {
    /// An `imap.inside`.
    Inside, "imap.inside"
}

impl<'c> Inside<'c> {
    /// The conditions, over the variables of the enclosing operation.
    pub fn conditions(self, ir: &tc_ir::Context) -> Vec<Constraint> {
        self.frozen_map().thaw(ir).constraints
    }

    /// Replaces what it tests.
    fn set_conditions(self, ir: &tc_ir::Context, conditions: &[Constraint]) {
        let context = mlir::context_of(self.op);
        let map = map::to_attribute(context, ir, &conditions_map(ir, conditions));
        mlir::set_attribute(self.op, "map", map);
    }

    /// Replaces variables in what it tests.
    pub fn substitute(self, ir: &tc_ir::Context, replacement: &dyn Fn(Var) -> Option<Expr>) {
        let mut map = self.frozen_map().thaw(ir);
        map.substitute(ir, replacement);
        self.set_conditions(ir, &map.constraints);
    }

    /// The map whose constraints it tests.
    pub fn frozen_map(self) -> &'c FrozenMap {
        let attribute = self.op.attribute("map").ok();
        attribute.and_then(map::frozen).expect("a verified imap.inside has a map")
    }

    /// The conditions of all operations of this kind in blocks.
    pub fn conditions_in(ir: &tc_ir::Context, blocks: &[Blk<'c>]) -> Vec<Constraint> {
        Self::all_of(blocks).into_iter().flat_map(|inside| inside.conditions(ir)).collect()
    }

    /// The operations of this kind in blocks.
    pub fn all_of(blocks: &[Blk<'c>]) -> Vec<Self> {
        let mut found = Vec::new();
        for op in blocks.iter().flat_map(|block| mlir::ops(*block)) {
            mlir::walk(op, &mut |op| found.extend(Self::cast(op)));
        }
        found
    }
}

/// A map without results, with these constraints and as many variables as they need.
fn conditions_map(ir: &tc_ir::Context, conditions: &[Constraint]) -> IndexingMap {
    let mut map = IndexingMap { constraints: conditions.to_vec(), ..IndexingMap::default() };
    let exprs: Vec<_> = conditions.iter().map(|it| it.expr).collect();
    for var in ir.vars_of_all(&exprs) {
        let (variables, number) = match var {
            Var::Dim(number) => (&mut map.dims, number),
            Var::Range(number) => (&mut map.ranges, number),
            Var::Runtime(number) => (&mut map.runtimes, number),
        };
        let count = variables.len().max(number as usize + 1);
        variables.resize(count, Variable::default());
    }
    map
}

/// Emits `imap.inside`: whether the constraints hold at the point.
pub fn build_inside<'c>(
    builder: &Builder<'c>,
    ir: &tc_ir::Context,
    conditions: &[Constraint],
) -> Val<'c> {
    let map = map::to_attribute(builder.context, ir, &conditions_map(ir, conditions));
    builder.value_with("imap.inside", &[], builder.int_type(1), &[("map", map)])
}

/// Replaces variables in what every `imap.inside` of some blocks tests.
pub fn substitute_in_conditions(
    ir: &tc_ir::Context,
    blocks: &[Blk],
    replacement: &dyn Fn(Var) -> Option<Expr>,
) {
    for inside in Inside::all_of(blocks) {
        inside.substitute(ir, replacement);
    }
}

/// The destinations of an operation, if it is one of `imap` that has some.
pub fn destinations(op: Op<'_>) -> Option<Vec<Val<'_>>> {
    let inits = AnyIndexed::cast(op).map(Indexed::inits);
    inits.or_else(|| Some(Sort::cast(op)?.inits()))
}

/// The parts of an `imap.generic` to be built.
#[derive(Clone, Debug)]
pub struct GenericParts<'c> {
    /// The iteration domain.
    pub domain: IndexingMap,
    /// The values of the runtime variables.
    pub runtimes: Vec<Val<'c>>,
    /// The tensors read.
    pub inputs: Vec<Val<'c>>,
    /// The destinations.
    pub inits: Vec<Val<'c>>,
    /// One map per input, destination and tensor among the runtimes, in this order. Its constraints
    /// are the guard of the access.
    pub maps: Vec<IndexingMap>,
    /// Per map, the constant where the guard fails; `None` is zero. What is absent is `None`, too.
    pub fills: Vec<Option<Attribute<'c>>>,
    /// The accumulators; none in map form.
    pub accumulators: Vec<Accumulator<'c>>,
    /// The block that combines the accumulators, which is copied. If none of them has a combiner with
    /// a name and this is absent, an empty block is made.
    pub combiner: Option<Blk<'c>>,
}

impl<'c> GenericParts<'c> {
    /// Drops the runtime variables that neither maps nor `conditions`, of `imap.inside`, use, and the
    /// maps of their tensors. Returns the old numbers of those that are left.
    pub fn drop_unused_runtimes(
        &mut self,
        ir: &tc_ir::Context,
        conditions: &[Constraint],
    ) -> Vec<usize> {
        let num_fixed = self.inputs.len() + self.inits.len();
        let mut tensor_maps: Vec<Option<IndexingMap>> = Vec::new();
        self.fills.resize(self.maps.len(), None);
        let mut tail_fills = self.fills.split_off(num_fixed).into_iter();
        let mut fills = Vec::new();
        let mut tail = self.maps.split_off(num_fixed).into_iter();
        for value in &self.runtimes {
            let shaped = mlir::is_tensor(value.r#type()) || mlir::is_memref(value.r#type());
            tensor_maps.push(if shaped { tail.next() } else { None });
            fills.push(if shaped { tail_fills.next().flatten() } else { None });
        }
        let conditions = conditions_map(ir, conditions);
        let maps = [&self.domain, &conditions].into_iter().chain(&self.maps);
        let used: Vec<_> = used_runtimes(ir, maps, &tensor_maps).into_iter().collect();
        for number in &used {
            if let Some(map) = tensor_maps[*number].take() {
                self.maps.push(map);
                self.fills.push(fills[*number]);
            }
        }
        for map in std::iter::once(&mut self.domain).chain(&mut self.maps) {
            keep_runtimes(ir, map, &used);
        }
        self.runtimes = used.iter().map(|number| self.runtimes[*number]).collect();
        used
    }

    /// Builds the operation with empty blocks for the body and, if `epilogue`, the
    /// epilogue; their arguments are those that the operation's definition asks for.
    pub fn build(&self, ir: &tc_ir::Context, builder: &Builder<'c>, epilogue: bool) -> Generic<'c> {
        Generic { op: self.build_op(ir, builder, epilogue, (Generic::NAME, Vec::new())) }
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
    pub(crate) fn build_like(
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
    ) -> Op<'c> {
        let context = builder.context;
        let scalar = |value: &Val<'c>| mlir::signless(context, mlir::element_type(value.r#type()));
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
        let maps: Vec<_> =
            self.maps.iter().map(|map| map::to_attribute(context, ir, map)).collect();
        let mut accumulators = self.accumulators.clone();
        if name == Scatter::NAME {
            // All of them start from the destinations, and those of a region stand for no attribute.
            accumulators.retain(|it| it.kind != CombinerKind::Custom);
            accumulators.iter_mut().for_each(|it| it.start = Start::Identity);
        }
        let accumulators: Vec<_> = accumulators.iter().map(|it| it.attribute()).collect();
        let results: Vec<_> =
            self.inits.iter().map(|init| init.r#type()).filter(|ty| mlir::is_tensor(*ty)).collect();
        let groups = [self.runtimes.len(), self.inputs.len(), self.inits.len()];
        attributes.extend([
            ("domain", map::to_attribute(context, ir, &self.domain)),
            ("maps", mlir::array(context, &maps)),
            ("accumulators", mlir::array(context, &accumulators)),
            ("operandSegmentSizes", mlir::segments(context, &groups)),
        ]);
        attributes.extend(self.fills_attribute(context).map(|fills| ("fills", fills)));
        let operands = [&self.runtimes[..], &self.inputs, &self.inits].concat();
        builder.op_with(name, &operands, &results, &attributes, regions)
    }

    /// The attribute `fills`, if there is a constant. One without a guard is left out.
    fn fills_attribute(&self, context: &'c Context) -> Option<Attribute<'c>> {
        let is_guarded = |number: usize| !self.maps[number].constraints.is_empty();
        let fill = |number: usize| {
            self.fills.get(number).copied().flatten().filter(|_| is_guarded(number))
        };
        let fills: Vec<_> = (0..self.maps.len()).map(fill).collect();
        let of = |fill: &Option<Attribute<'c>>| fill.unwrap_or_else(|| Attribute::unit(context));
        let attributes: Vec<_> = fills.iter().map(of).collect();
        fills.iter().any(Option::is_some).then(|| mlir::array(context, &attributes))
    }
}

/// The numbers of the runtime variables that maps use in results, constraints, and bounds of
/// dimension and range variables; and of those that these need for their own bounds and for their
/// maps, `tensor_maps`, one for each that has one.
fn used_runtimes<'a>(
    ir: &tc_ir::Context,
    maps: impl IntoIterator<Item = &'a IndexingMap>,
    tensor_maps: &[Option<IndexingMap>],
) -> BTreeSet<usize> {
    let bounds = |variables: &[Variable]| -> Vec<Expr> {
        variables.iter().flat_map(|it| [it.lower, it.upper]).flatten().collect()
    };
    let maps: Vec<_> = maps.into_iter().collect();
    let mut work: Vec<Expr> = Vec::new();
    for map in &maps {
        work.extend([bounds(&map.dims), bounds(&map.ranges), map.results.clone()].concat());
        work.extend(map.constraints.iter().map(|it| it.expr));
    }
    let mut used = BTreeSet::new();
    while !work.is_empty() {
        for var in ir.vars_of_all(&std::mem::take(&mut work)) {
            let Var::Runtime(number) = var else { continue };
            let number = number as usize;
            if !used.insert(number) {
                continue;
            }
            let tensor_map = tensor_maps.get(number).and_then(Option::as_ref);
            for map in maps.iter().copied().chain(tensor_map) {
                work.extend(map.runtimes.get(number..=number).map(bounds).unwrap_or_default());
            }
            work.extend(tensor_map.iter().flat_map(|map| &map.results));
            let guards = tensor_map.iter().flat_map(|map| &map.constraints);
            work.extend(guards.map(|it| it.expr));
        }
    }
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

/// Keeps the runtime variables of these numbers, in this order; the map uses no other.
fn keep_runtimes(ir: &tc_ir::Context, map: &mut IndexingMap, kept: &[usize]) {
    map.substitute(ir, &renumbering(ir, kept));
    map.runtimes = kept.iter().map(|number| map.runtimes[*number].clone()).collect();
}

/// Emits `imap.apply` and returns the values of the map's results. Runtime variables that
/// the map does not use are left out; a result that is a lone variable is its operand.
pub fn build_apply<'c>(
    builder: &Builder<'c>,
    ir: &tc_ir::Context,
    map: &IndexingMap,
    operands: &[Val<'c>],
) -> Vec<Val<'c>> {
    let fixed = map.dims.len() + map.ranges.len();
    let operand = |expr| operands.get(map.position(ir.as_var(expr)?)).copied();
    if let Some(values) = map.results.iter().map(|expr| operand(*expr)).collect() {
        return values;
    }
    let used: Vec<_> = used_runtimes(ir, [map], &[]).into_iter().collect();
    let mut map = map.clone();
    keep_runtimes(ir, &mut map, &used);
    let mut kept = operands[..fixed].to_vec();
    kept.extend(used.iter().map(|number| operands[fixed + number]));
    let types = vec![builder.index_type(); map.results.len()];
    let attributes = [("map", map::to_attribute(builder.context, ir, &map))];
    mlir::results(builder.op_with("imap.apply", &kept, &types, &attributes, Vec::new()))
}

/// Emits `imap.apply` on sizes, the runtime variables of expressions, and returns their values.
pub fn build_sizes<'c>(
    builder: &Builder<'c>,
    ir: &tc_ir::Context,
    sizes: &[(impl AsRef<str>, Val<'c>)],
    exprs: &[Expr],
) -> Vec<Val<'c>> {
    let map = IndexingMap {
        runtimes: sizes.iter().map(|(name, _)| Variable::default().named(name.as_ref())).collect(),
        results: exprs.to_vec(),
        ..IndexingMap::default()
    };
    let values: Vec<_> = sizes.iter().map(|(_, value)| *value).collect();
    build_apply(builder, ir, &map, &values)
}

/// Emits `imap.index` for a variable of a kind, `dim` or `range`.
pub fn build_index<'c>(builder: &Builder<'c>, kind: &str, number: u32) -> Val<'c> {
    let kind = mlir::parse_attribute(builder.context, &format!("#imap<variable {kind}>"));
    let number = mlir::i64_attr(builder.context, i64::from(number));
    let attributes = [("kind", kind), ("number", number)];
    builder.value_with("imap.index", &[], builder.index_type(), &attributes)
}

/// Changes the variable whose value an `imap.index` yields.
pub(crate) fn set_index_variable(op: mlir::Op, var: Var) {
    let (kind, number) = match var {
        Var::Range(number) => ("range", number),
        Var::Dim(number) | Var::Runtime(number) => ("dim", number),
    };
    let context = mlir::context_of(op);
    let kind = mlir::parse_attribute(context, &format!("#imap<variable {kind}>"));
    mlir::set_attribute(op, "kind", kind);
    mlir::set_attribute(op, "number", mlir::i64_attr(context, i64::from(number)));
}

/// Emits the constant that the body sees where the guard of an access fails.
pub fn build_fill<'c>(builder: &Builder<'c>, fill: Option<Attribute<'c>>, ty: Type<'c>) -> Val<'c> {
    let zero = || CombinerKind::Add.identity(builder.context, ty);
    builder.constant(ty, fill.unwrap_or_else(zero))
}

/// Emits `imap.yield`.
pub fn build_yield<'c>(builder: &Builder<'c>, values: &[Val<'c>]) {
    builder.op("imap.yield", values, &[]);
}

/// Emits `imap.check`: the program stops with `message` unless `condition` holds.
pub fn build_check<'c>(builder: &Builder<'c>, condition: Val<'c>, message: &str) {
    let message = mlir::string(builder.context, message);
    builder.op_with("imap.check", &[condition], &[], &[("message", message)], Vec::new());
}

/// The values that elements of an integer type have as an index. Unsigned 64-bit
/// elements above `i64::MAX` count as positive infinity.
pub fn element_interval(ty: Type, unsigned: bool) -> Interval {
    match (mlir::integer_width(ty).unwrap_or(64), unsigned) {
        (0..=63, true) => Interval::new(0, (1 << mlir::integer_width(ty).unwrap_or(0)) - 1),
        (_, true) => Interval::new(0, i64::MAX),
        (width @ 1..=63, false) => Interval::new(-(1 << (width - 1)), (1 << (width - 1)) - 1),
        (_, false) => Interval::ALL,
    }
}

/// A location in the source that stands for two: of operations that became one.
pub fn fused_location<'c>(
    context: &'c Context,
    first: Location<'c>,
    second: Location<'c>,
) -> Location<'c> {
    Location::fused(context, &[first, second], Attribute::unit(context))
}
