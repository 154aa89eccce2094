//! The `imap` dialect: operations on tensors whose access functions are indexing maps.
//!
//! See `imap.td` for the operations; this module is their view from Rust.

pub mod canonicalize;
pub mod extents;
pub mod map;
pub mod open;
pub mod partial;
pub(crate) mod prune;
pub mod schedule;
mod sort;
pub mod tiling;
pub mod verify;
mod view;

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
pub use view::{Access, Runtime, View, renumbering, substitute_constraints};

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

/// The attribute of memory inside of an operation, as opposed to a tensor between operations: of its allocation, or of
/// the operation that fills it.
pub const SCRATCH: &str = "imap.scratch";

/// The attribute of an `scf.for` without results whose iterations may run in any order and at the same time.
///
/// If the body holds one other such loop and stores nothing besides, both are one nest: all its points are
/// independent, and they store nothing that the body loads outside of the inner loop.
pub const INDEPENDENT: &str = "imap.independent";

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

    /// Whether the order of what it folds does not show in the result.
    pub fn is_commutative(&self) -> bool {
        self.kind != CombinerKind::Custom && !self.rounds()
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

    /// Whether values are folded in lexicographic order of the range variables.
    fn is_ordered(self) -> bool {
        self.op().attribute("ordered").is_ok()
    }

    /// Whether the order shows in a result, and has to be kept.
    fn keeps_order(self) -> bool {
        self.is_ordered() && !self.accumulators().iter().all(Accumulator::is_commutative)
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

    /// Whether the order of the fold shows in its results: a combiner rounds floats.
    fn rounds(self) -> bool {
        // These yield one of their operands.
        const EXACT: [&str; 8] = [
            "arith.constant",
            "arith.maximumf",
            "arith.maxnumf",
            "arith.minimumf",
            "arith.minnumf",
            "arith.negf",
            "arith.select",
            "math.absf",
        ];
        let is_rounding = |op: &mlir::Op| {
            let yields_float = mlir::results(*op).iter().any(|it| mlir::is_float(it.r#type()));
            yields_float && !EXACT.contains(&mlir::name(*op))
        };
        let combiner = self.combiner().map(mlir::ops).unwrap_or_default();
        self.accumulators().iter().any(Accumulator::rounds) || combiner.iter().any(is_rounding)
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
    let mut map = map.clone();
    let used = view::drop_unused(ir, &mut map);
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
    if let Some(part) = mlir::complex_part(ty) {
        let zero = mlir::array(builder.context, &[mlir::float(builder.context, part, 0.0); 2]);
        return builder.value_with("complex.constant", &[], ty, &[("value", zero)]);
    }
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
