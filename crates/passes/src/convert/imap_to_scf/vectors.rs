//! Reductions in vectors: a block of results is held in registers over the whole of the
//! range variables.
//!
//! One variable provides the *lanes* of the vectors. If it is a dimension variable
//! (`n` of `C(m, n) +=! A(m, k) * B(k, n)`), a vector holds neighbouring results, an
//! operand that does not depend on it is broadcast, and several vectors are neighbours.
//! If it is a range variable (`k` of `C(m, n) +=! A(m, k) * B(n, k)`), a vector holds
//! partial results of one element, which are folded across the lanes at the end; this
//! changes the order of floating-point operations. One or two further dimension
//! variables are *unrolled*: what an operand that does not depend on them holds is
//! loaded once for all the unrolled points, which is what makes the block worth its
//! registers.
//!
//! The register blocks follow the analysis of matrix products by Goto and van de Geijn,
//! "Anatomy of High-Performance Matrix Multiplication" (2008), without its packing.
//! Ends that do not fill a vector are masked; ends that do not fill a block are done in
//! blocks of four and of one.
//!
//! Only bodies of operations that work element by element on vectors are taken, with
//! operands that are contiguous in the lanes or independent of them.

use super::{
    emit::{Nest, Scope, index_of},
    nest::{Loop, outer_loops, reduction_loops},
    order::Plan,
};
use crate::convert::loops;
use melior::ir::{Attribute, Type, TypeLike, ValueLike, operation::OperationLike};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tc_dialects::{
    imap::CombinerKind,
    mlir::{self, Blk, Builder, Op, Val},
};
use tc_ir::{Expr, IndexingMap, Var};

/// How many blocks of an unrolled variable one stretch of the outer loops covers.
const BLOCKS_PER_STRETCH: i64 = 8;
/// The blocks that ends are done in.
const SMALL_BLOCKS: [i64; 2] = [4, 1];
/// Operations that mean on vectors what they mean on each element, and that cannot trap.
const ELEMENTWISE: &[&str] = &[
    "arith.addf", "arith.addi", "arith.andi", "arith.bitcast", "arith.cmpf", "arith.cmpi",
    "arith.constant", "arith.divf", "arith.extf", "arith.extsi", "arith.extui", "arith.fptosi",
    "arith.fptoui", "arith.maximumf", "arith.maxnumf", "arith.maxsi", "arith.maxui",
    "arith.minimumf", "arith.minnumf", "arith.minsi", "arith.minui", "arith.mulf", "arith.muli",
    "arith.negf", "arith.ori", "arith.select", "arith.shli", "arith.shrsi", "arith.shrui",
    "arith.sitofp", "arith.subf", "arith.subi", "arith.truncf", "arith.trunci", "arith.uitofp",
    "arith.xori", "math.absf", "math.absi", "math.ceil", "math.copysign", "math.floor", "math.fma",
    "math.sqrt", "math.trunc",
];

/// A block of results: which variables it spans and how far.
#[derive(Clone, Debug)]
pub(super) struct Tiling {
    /// The variable along the lanes.
    lane: Var,
    /// Lanes of a vector.
    lanes: i64,
    /// Neighbouring vectors along the lanes.
    vectors: i64,
    /// Unrolled dimension variables and their factors.
    unrolled: Vec<(Var, i64)>,
    /// The other dimension variables, outermost first.
    rest: Vec<Var>,
    /// The range variables, outermost first; the lanes come last if they are one of them.
    ranges: Vec<Var>,
    /// Whether the epilogue works on vectors too.
    vector_epilogue: bool,
}

impl Tiling {
    fn lane_is_range(&self) -> bool {
        matches!(self.lane, Var::Range(_))
    }

    /// Points of the lane variable that one block covers.
    fn width(&self) -> i64 {
        self.lanes * self.vectors
    }
}

/// The tiling of a reduction, if it can be done in vectors and gains from it.
pub(super) fn tiling(nest: &Nest, plan: &Plan) -> Option<Tiling> {
    if nest.choices.vector_bits < 128 || nest.domain.ranges.is_empty() {
        return None;
    }
    let (lane, dims, ranges) = match plan {
        Plan::Rows { row, dims, ranges } => (*row, dims.clone(), ranges.clone()),
        Plan::Registers { dims, ranges } => (*ranges.last()?, dims.clone(), ranges.clone()),
    };
    let width = element_width(nest)?;
    let lanes = nest.choices.vector_bits / width;
    if lanes < 2 || !operands_fit(nest, lane) || !is_elementwise(nest.generic.body(), lane) {
        return None;
    }
    if matches!(lane, Var::Range(_)) && !may_reorder(nest) {
        return None;
    }
    let reused = |var: Var| {
        let inputs = nest.inputs.iter().filter(|input| input.is_used);
        inputs.filter(|input| !nest.needs(&input.map.results).contains(&var)).count()
    };
    // What is shared between unrolled points has to be loaded per lane to matter.
    let loads_lanes = |var: Var| {
        nest.inputs.iter().any(|input| {
            let needs = nest.needs(&input.map.results);
            input.is_used && needs.contains(&lane) && !needs.contains(&var)
        })
    };
    let mut candidates: Vec<Var> = dims
        .iter()
        .copied()
        .filter(|var| *var != lane && 0 < reused(*var) && extent(nest, *var) != Some(1))
        .collect();
    // The most reuse first; of equals, the one that moves least, which is the last.
    candidates.reverse();
    candidates.sort_by_key(|var| std::cmp::Reverse((loads_lanes(*var), reused(*var))));
    if !candidates.first().is_some_and(|var| loads_lanes(*var)) {
        candidates.clear();
    }
    let is_range = matches!(lane, Var::Range(_));
    candidates.truncate(2);
    if is_range && candidates.is_empty() && !has_float_extremes(nest) {
        // One result at a time is what LLVM's own vectorizer does as well, except for the
        // smallest and largest float.
        return None;
    }
    let (vectors, unrolled) = block(nest, lane, lanes, &candidates);
    let rest: Vec<_> = dims
        .into_iter()
        .filter(|var| *var != lane && unrolled.iter().all(|(other, _)| other != var))
        .collect();
    let tiling = Tiling {
        lane,
        lanes,
        vectors,
        unrolled,
        rest,
        ranges,
        vector_epilogue: nest
            .generic
            .epilogue()
            .is_none_or(|epilogue| is_elementwise(epilogue, lane)),
    };
    is_rectangular(nest, &tiling).then_some(tiling)
}

/// The extent of a variable, if it is a constant.
fn extent(nest: &Nest, var: Var) -> Option<i64> {
    nest.domain.variable(var)?.constant_interval(&nest.ir)?;
    i64::try_from(nest.intervals.of(var).num_members()?).ok()
}

/// The bits of the widest element; `None` if one is no number in memory.
fn element_width(nest: &Nest) -> Option<i64> {
    let inputs = nest.inputs.iter().filter(|input| input.is_used);
    let elements = inputs
        .map(|input| mlir::element_type(input.buffer.r#type()))
        .chain(nest.outputs.iter().map(|output| output.element));
    let mut widest = 0;
    for element in elements {
        let width = match mlir::integer_width(element) {
            Some(width @ (8 | 16 | 32 | 64)) => i64::from(width),
            Some(_) => return None,
            None => match element.to_string().as_str() {
                "f16" => 16,
                "f32" => 32,
                "f64" => 64,
                _ => return None,
            },
        };
        widest = widest.max(width);
    }
    Some(widest)
}

/// Whether every operand is contiguous in the lanes or does not depend on them, and the
/// destinations are contiguous in lanes that are a dimension variable.
fn operands_fit(nest: &Nest, lane: Var) -> bool {
    let step = |map: &IndexingMap| -> Option<i64> {
        if !nest.needs(&map.results).contains(&lane) {
            return Some(0);
        }
        let (last, outer) = map.results.split_last()?;
        if nest.needs(outer).contains(&lane) || !nest.ir.vars(*last).contains(&lane) {
            return None;
        }
        // A runtime variable that is read at a place along the lanes differs per lane.
        let runtimes: Vec<Expr> = nest
            .ir
            .vars(*last)
            .into_iter()
            .filter(|var| matches!(var, Var::Runtime(_)))
            .map(|var| nest.ir.var(var))
            .collect();
        if nest.needs(&runtimes).contains(&lane) {
            return None;
        }
        nest.coefficient(*last, lane)
    };
    let inputs = nest.inputs.iter().filter(|input| input.is_used);
    let inputs_fit = inputs.map(|input| step(&input.map)).all(|it| matches!(it, Some(0 | 1)));
    let wanted = i64::from(matches!(lane, Var::Dim(_)));
    inputs_fit && nest.outputs.iter().all(|output| step(&output.map) == Some(wanted))
}

/// Whether a block consists of operations on elements, and of indices other than the
/// lanes.
fn is_elementwise(block: Blk, lane: Var) -> bool {
    mlir::ops(block).into_iter().all(|op| {
        if let Some(var) = index_of(op) {
            return var != lane;
        }
        let scalars = mlir::operands(op).into_iter().chain(mlir::results(op));
        let fits = mlir::is(op, "imap.yield")
            || (ELEMENTWISE.contains(&mlir::name(op)) && op.region_count() == 0);
        // An index may be 64 bits wide or not: the lanes are not made for it.
        fits && scalars.into_iter().all(|value| !value.r#type().is_index())
    })
}

/// Whether the values of each result may be folded in any order.
fn may_reorder(nest: &Nest) -> bool {
    nest.outputs.iter().all(|output| {
        let sum = matches!(output.combiner.kind, CombinerKind::Add | CombinerKind::Mul);
        !(nest.choices.strict_fp && sum && mlir::is_float(output.element))
    })
}

/// Whether a result is the smallest or largest of floats.
fn has_float_extremes(nest: &Nest) -> bool {
    let kinds = [CombinerKind::MinF, CombinerKind::MaxF];
    nest.outputs.iter().any(|output| kinds.contains(&output.combiner.kind))
}

/// Chooses how many neighbouring vectors and unrolled points a block has, so that its
/// results fill the registers and leave some for operands.
fn block(nest: &Nest, lane: Var, lanes: i64, candidates: &[Var]) -> (i64, Vec<(Var, i64)>) {
    let registers = if nest.choices.vector_registers < 32 { 12 } else { 28 };
    let budget = (registers / nest.outputs.len() as i64).max(1);
    let ceil_div = |a: i64, b: i64| a.div_euclid(b) + i64::from(a.rem_euclid(b) != 0);
    // Blocks of equal size, instead of full ones and a small rest.
    let even = |var: Var, factor: i64| match extent(nest, var) {
        Some(extent) if 0 < extent => ceil_div(extent, ceil_div(extent, factor.max(1))),
        _ => factor.max(1),
    };
    // What is left of the budget goes to each in turn.
    let unroll = |mut left: i64, limits: &[i64]| -> Vec<(Var, i64)> {
        let mut unrolled = Vec::new();
        for (var, limit) in candidates.iter().zip(limits) {
            let factor = even(*var, left.min(*limit));
            if 1 < factor {
                left /= factor;
                unrolled.push((*var, factor));
            }
        }
        unrolled
    };
    if matches!(lane, Var::Range(_)) {
        let unrolled = match candidates.len() {
            2 => unroll(budget, &[if registers < 28 { 3 } else { 4 }, 6]),
            _ => unroll(budget, &[8]),
        };
        let vectors = if unrolled.is_empty() { available(nest, lane, lanes, 4) } else { 1 };
        return (vectors.min(budget), unrolled);
    }
    let most = if candidates.is_empty() { 4 } else { 2 };
    let vectors = available(nest, lane, lanes, most).min(budget);
    (vectors, unroll(budget / vectors, &[14, 8]))
}

/// As many neighbouring vectors as there are, but at most `most`.
fn available(nest: &Nest, lane: Var, lanes: i64, most: i64) -> i64 {
    extent(nest, lane).map_or(most, |extent| (extent - 1).div_euclid(lanes) + 1).clamp(1, most)
}

/// Whether the bounds of the variables of a block depend on outer variables only, and
/// no constraint on the block.
fn is_rectangular(nest: &Nest, tiling: &Tiling) -> bool {
    let rest: BTreeSet<Var> = tiling.rest.iter().copied().collect();
    let mut blocked: BTreeSet<Var> = tiling.unrolled.iter().map(|(var, _)| *var).collect();
    blocked.insert(tiling.lane);
    let outer = tiling.rest.iter().chain(&blocked).filter(|var| matches!(var, Var::Dim(_)));
    let mut known = BTreeSet::new();
    for var in &tiling.rest {
        if !nest.bound_needs(*var).is_subset(&known) {
            return false;
        }
        known.insert(*var);
    }
    outer.into_iter().all(|var| nest.bound_needs(*var).is_subset(&rest))
        && tiling.ranges.iter().all(|var| nest.bound_needs(*var).is_disjoint(&blocked))
        && nest.domain.constraints.iter().all(|it| nest.needs(&[it.expr]).is_disjoint(&blocked))
}

/// Builds the loops of a tiling.
pub(super) fn build<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    tiling: &Tiling,
) {
    let mut loops: Vec<_> = tiling.rest.iter().copied().map(Loop::over).collect();
    if !tiling.lane_is_range() {
        loops.push(Loop::stretches(tiling.lane, tiling.width()));
    }
    // Stretches of the unrolled variables are there to be divided among threads, and to
    // be kept in cache if there are two of them.
    if nest.choices.parallel || tiling.lane_is_range() {
        for (var, factor) in &tiling.unrolled {
            loops.push(Loop::stretches(*var, factor * BLOCKS_PER_STRETCH));
        }
    }
    outer_loops(nest, builder, scope, &loops, &mut |builder, scope| {
        if tiling.lane_is_range() {
            return unrolled_loops(nest, builder, scope, tiling, &[], None);
        }
        let full = extent(nest, tiling.lane).is_some_and(|extent| extent % tiling.width() == 0);
        if full {
            return unrolled_loops(nest, builder, scope, tiling, &[], None);
        }
        let (lower, upper) = scope.stretches[&tiling.lane];
        let left = builder.value("arith.subi", &[upper, lower], builder.index_type());
        let width = builder.index(tiling.width());
        let is_full = builder.compare_int("eq", left, width);
        loops::build_if(
            builder,
            is_full,
            &mut |inside| {
                unrolled_loops(nest, inside, scope, tiling, &[], None);
                Vec::new()
            },
            &mut |inside| {
                unrolled_loops(nest, inside, scope, tiling, &[], Some(left));
                Vec::new()
            },
        );
    });
}

/// The loops over blocks of the unrolled variables; `factors` are those already entered.
fn unrolled_loops<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    tiling: &Tiling,
    factors: &[i64],
    left: Option<Val<'c>>,
) {
    let Some((var, factor)) = tiling.unrolled.get(factors.len()).copied() else {
        return Block::new(nest, builder, scope, tiling, factors, left).build(builder);
    };
    let mut scope = scope.clone();
    let (mut lower, upper) = nest.loop_bounds(builder, &mut scope, var, &[]);
    let index = builder.index_type();
    let divides = extent(nest, var).is_some_and(|extent| extent % factor == 0);
    let mut sizes = vec![factor];
    if !divides {
        sizes.extend(SMALL_BLOCKS.into_iter().filter(|small| *small < factor));
    }
    for (number, size) in sizes.iter().enumerate() {
        let step = builder.index(*size);
        // Where full blocks end: the last loop takes every point that is left.
        let end = if number + 1 == sizes.len() {
            upper
        } else {
            let length = builder.value("arith.subi", &[upper, lower], index);
            let rest = builder.value("arith.remsi", &[length, step], index);
            builder.value("arith.subi", &[upper, rest], index)
        };
        loops::build_for(builder, (lower, end, step), &[], &mut |inside, value, _| {
            let mut scope = scope.clone();
            scope.values.insert(var, value);
            let factors = [factors, &[*size]].concat();
            unrolled_loops(nest, inside, &scope, tiling, &factors, left);
            Vec::new()
        });
        lower = end;
    }
}

/// A value that is the same in all lanes, or one per lane.
#[derive(Copy, Clone)]
struct Lanes<'c> {
    value: Val<'c>,
    is_vector: bool,
}

/// One block of results.
struct Block<'a, 'c> {
    nest: &'a Nest<'c>,
    tiling: &'a Tiling,
    /// The scope at its first point.
    scope: Scope<'c>,
    /// Per point: how far each unrolled variable is from the first point, and the number
    /// of the neighbouring vector.
    points: Vec<(Vec<i64>, i64)>,
    /// Points of the lanes that are left, where they do not fill the block.
    left: Option<Val<'c>>,
}

impl<'a, 'c> Block<'a, 'c> {
    fn new(
        nest: &'a Nest<'c>,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        tiling: &'a Tiling,
        factors: &[i64],
        left: Option<Val<'c>>,
    ) -> Self {
        let mut points = vec![Vec::new()];
        for factor in factors {
            points = points
                .into_iter()
                .flat_map(|point: Vec<i64>| {
                    (0..*factor).map(move |offset| [&point[..], &[offset]].concat())
                })
                .collect();
        }
        let points = points
            .into_iter()
            .flat_map(|point| (0..tiling.vectors).map(move |vector| (point.clone(), vector)))
            .collect();
        let mut scope = scope.clone();
        if !tiling.lane_is_range() {
            let (lower, _) = nest.loop_bounds(builder, &mut scope, tiling.lane, &[]);
            scope.values.insert(tiling.lane, lower);
        }
        Self { nest, tiling, scope, points, left }
    }

    fn vector_type(&self, element: Type<'c>) -> Type<'c> {
        Type::vector(&[self.tiling.lanes as u64], element)
    }

    /// `scope` moved from the first point of the block to another one.
    fn at(
        &self,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        (offsets, vector): &(Vec<i64>, i64),
    ) -> Scope<'c> {
        let mut scope = scope.clone();
        let unrolled = self.tiling.unrolled.iter().map(|(var, _)| *var).zip(offsets.iter().copied());
        let lane = (self.tiling.lane, vector * self.tiling.lanes);
        for (var, offset) in unrolled.chain([lane]) {
            if let (true, Some(value)) = (offset != 0, scope.values.get(&var)) {
                let offset = builder.index(offset);
                let sum = builder.value("arith.addi", &[*value, offset], builder.index_type());
                scope.values.insert(var, sum);
            }
        }
        scope
    }

    /// The lanes of neighbouring vector `vector` that exist where `left` are left in all.
    fn mask(&self, builder: &Builder<'c>, left: Val<'c>, vector: i64) -> Val<'c> {
        let offset = builder.index(vector * self.tiling.lanes);
        let left = builder.value("arith.subi", &[left, offset], builder.index_type());
        let ty = self.vector_type(builder.int_type(1));
        builder.value("vector.create_mask", &[left], ty)
    }

    fn broadcast(&self, builder: &Builder<'c>, value: Val<'c>) -> Val<'c> {
        builder.value("vector.broadcast", &[value], self.vector_type(value.r#type()))
    }

    fn widened(&self, builder: &Builder<'c>, lanes: Lanes<'c>) -> Val<'c> {
        if lanes.is_vector { lanes.value } else { self.broadcast(builder, lanes.value) }
    }

    fn build(&self, builder: &Builder<'c>) {
        let nest = self.nest;
        let masks: Vec<_> =
            (0..self.tiling.vectors)
                .map(|vector| self.left.map(|left| self.mask(builder, left, vector)))
                .collect();
        let mut start = Vec::new();
        for point in &self.points {
            for number in 0..nest.outputs.len() {
                start.push(self.start(builder, point, masks[point.1 as usize], number));
            }
        }
        let order = &self.tiling.ranges;
        let (narrowing, tested) =
            nest.distribute_constraints(order, &|var| matches!(var, Var::Range(_)));
        let (lane_loop, outer) = if self.tiling.lane_is_range() {
            let (lane, outer) = order.split_last().expect("the lanes are the last range");
            (Some(*lane), outer)
        } else {
            (None, &order[..])
        };
        let folded = reduction_loops(
            nest,
            builder,
            &self.scope,
            outer,
            &narrowing,
            &start,
            &mut |builder, scope, folded| {
                nest.guarded(builder, scope, &tested, folded, &mut |builder, scope| {
                    match lane_loop {
                        Some(lane) => self.along_lanes(builder, scope, lane, folded),
                        None => self.fold(builder, scope, folded, &masks),
                    }
                })
            },
        );
        if self.tiling.lane_is_range() {
            self.finish_points(builder, &folded);
        } else {
            self.finish_vectors(builder, &folded, &masks);
        }
    }

    /// What the fold of a result starts from at a point.
    fn start(
        &self,
        builder: &Builder<'c>,
        point: &(Vec<i64>, i64),
        mask: Option<Val<'c>>,
        number: usize,
    ) -> Val<'c> {
        let output = &self.nest.outputs[number];
        if !self.tiling.lane_is_range() && output.combiner.reads_destination() {
            let mut scope = self.at(builder, &self.scope, point);
            return self.load_vector(builder, &mut scope, output.buffer, &output.map, mask);
        }
        let identity = output.combiner.build_identity(builder, output.element);
        self.broadcast(builder, identity)
    }

    /// The loop along lanes that are a range variable: full vectors, then the rest.
    fn along_lanes(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        lane: Var,
        folded: &[Val<'c>],
    ) -> Vec<Val<'c>> {
        let (lower, upper) = self.nest.loop_bounds(builder, scope, lane, &[]);
        let index = builder.index_type();
        let step = builder.index(self.tiling.width());
        let length = builder.value("arith.subi", &[upper, lower], index);
        let rest = builder.value("arith.remsi", &[length, step], index);
        let end = builder.value("arith.subi", &[upper, rest], index);
        let all = vec![None; self.tiling.vectors as usize];
        let folded = loops::build_for(
            builder,
            (lower, end, step),
            folded,
            &mut |builder, value, folded| {
                let mut scope = scope.clone();
                scope.values.insert(lane, value);
                self.fold(builder, &mut scope, folded, &all)
            },
        );
        if extent(self.nest, lane).is_some_and(|extent| extent % self.tiling.width() == 0) {
            return folded;
        }
        let zero = builder.index(0);
        let some_left = builder.compare_int("sgt", rest, zero);
        loops::build_if(
            builder,
            some_left,
            &mut |builder| {
                let mut scope = scope.clone();
                scope.values.insert(lane, end);
                let masks: Vec<_> = (0..self.tiling.vectors)
                    .map(|vector| Some(self.mask(builder, rest, vector)))
                    .collect();
                let new = self.fold(builder, &mut scope, &folded, &masks);
                // Lanes past the end must not count.
                let num_outputs = self.nest.outputs.len();
                let points = self.points.iter().flat_map(|it| vec![it; num_outputs]);
                points
                    .zip(new.into_iter().zip(&folded))
                    .map(|((_, vector), (new, old))| match masks[*vector as usize] {
                        Some(mask) => builder.select(mask, new, *old),
                        None => new,
                    })
                    .collect()
            },
            &mut |_| folded.clone(),
        )
    }

    /// Evaluates the body at every point of the block and folds its values.
    fn fold(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        folded: &[Val<'c>],
        masks: &[Option<Val<'c>>],
    ) -> Vec<Val<'c>> {
        let nest = self.nest;
        let mut loaded = HashMap::new();
        let mut result = Vec::new();
        for (point, held) in self.points.iter().zip(folded.chunks(nest.outputs.len())) {
            let mask = masks[point.1 as usize];
            let mut here = self.at(builder, scope, point);
            let block = nest.generic.body();
            let values =
                self.evaluate(builder, &mut here, block, &[], point, mask, &mut loaded);
            for ((output, held), value) in nest.outputs.iter().zip(held).zip(values) {
                let value = output.combiner.build(builder, *held, value);
                if let Some(op) = mlir::defining_op(value) {
                    nest.relax(op, "#arith.fastmath<reassoc,contract>");
                }
                result.push(value);
            }
        }
        result
    }

    /// Evaluates a block on vectors and returns what it yields; `first` are the values of
    /// its first arguments, the others are elements of the inputs.
    #[allow(clippy::too_many_arguments)]
    fn evaluate(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        block: Blk<'c>,
        first: &[Val<'c>],
        point: &(Vec<i64>, i64),
        mask: Option<Val<'c>>,
        loaded: &mut HashMap<(usize, Vec<i64>), Lanes<'c>>,
    ) -> Vec<Val<'c>> {
        let mut values: BTreeMap<usize, Lanes<'c>> = BTreeMap::new();
        let arguments = mlir::arguments(block);
        for (argument, value) in arguments.iter().zip(first) {
            values.insert(mlir::value_key(*argument), Lanes { value: *value, is_vector: true });
        }
        for (number, argument) in arguments[first.len()..].iter().enumerate() {
            if mlir::uses(*argument).is_empty() {
                continue;
            }
            let key = (number, self.place(&self.nest.inputs[number].map, point));
            let lanes = match loaded.get(&key) {
                Some(lanes) => *lanes,
                None => {
                    let lanes = self.load_input(builder, scope, number, mask);
                    loaded.insert(key, lanes);
                    lanes
                }
            };
            values.insert(mlir::value_key(*argument), lanes);
        }
        for op in mlir::ops(block) {
            let lanes_of = |value: Val<'c>| {
                let found = values.get(&mlir::value_key(value)).copied();
                found.unwrap_or(Lanes { value, is_vector: false })
            };
            if mlir::is(op, "imap.yield") {
                return mlir::operands(op)
                    .into_iter()
                    .map(|value| self.widened(builder, lanes_of(value)))
                    .collect();
            }
            let operands: Vec<_> = mlir::operands(op).into_iter().map(lanes_of).collect();
            let result = mlir::results(op).first().map(|value| mlir::value_key(*value));
            let lanes = match index_of(op) {
                Some(var) => Lanes { value: scope.values[&var], is_vector: false },
                None => self.copy(builder, op, &operands),
            };
            values.extend(result.map(|result| (result, lanes)));
        }
        Vec::new()
    }

    /// The offsets of a point in the variables that a map depends on: where they are
    /// equal, so is the element.
    fn place(&self, map: &IndexingMap, (offsets, vector): &(Vec<i64>, i64)) -> Vec<i64> {
        let needs = self.nest.needs(&map.results);
        let unrolled = self.tiling.unrolled.iter().map(|(var, _)| *var).zip(offsets);
        unrolled
            .chain([(self.tiling.lane, vector)])
            .map(|(var, offset)| if needs.contains(&var) { *offset } else { 0 })
            .collect()
    }

    fn load_input(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        number: usize,
        mask: Option<Val<'c>>,
    ) -> Lanes<'c> {
        let input = &self.nest.inputs[number];
        if self.nest.needs(&input.map.results).contains(&self.tiling.lane) {
            let value = self.load_vector(builder, scope, input.buffer, &input.map, mask);
            Lanes { value, is_vector: true }
        } else {
            let value = self.nest.load_at(builder, scope, input.buffer, &input.map);
            Lanes { value, is_vector: false }
        }
    }

    /// Neighbouring elements; zeros in the lanes that a mask leaves out.
    fn load_vector(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        buffer: Val<'c>,
        map: &IndexingMap,
        mask: Option<Val<'c>>,
    ) -> Val<'c> {
        let element = mlir::element_type(buffer.r#type());
        let ty = self.vector_type(element);
        let indices = self.nest.exprs(builder, scope, &map.results, true);
        let place = [&[scope.buffer(buffer)], &indices[..]].concat();
        let Some(mask) = mask else { return builder.value("vector.load", &place, ty) };
        let zero = if mlir::is_float(element) {
            builder.float(element, 0.0)
        } else {
            builder.integer(element, 0)
        };
        let zeros = self.broadcast(builder, zero);
        builder.value("vector.maskedload", &[&place[..], &[mask, zeros]].concat(), ty)
    }

    /// Copies an operation, on vectors if any of its operands is one.
    fn copy(&self, builder: &Builder<'c>, op: Op<'c>, operands: &[Lanes<'c>]) -> Lanes<'c> {
        let is_vector = operands.iter().any(|operand| operand.is_vector);
        let values: Vec<_> = operands
            .iter()
            .map(|operand| if is_vector { self.widened(builder, *operand) } else { operand.value })
            .collect();
        let result = mlir::result(op, 0).r#type();
        let ty = if is_vector { self.vector_type(result) } else { result };
        let attributes: Vec<(String, Attribute)> = op
            .attributes()
            .filter_map(|(name, value)| {
                Some((name.as_string_ref().as_str().ok()?.to_string(), value))
            })
            .collect();
        let attributes: Vec<_> =
            attributes.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let value = builder.value_with(mlir::name(op), &values, ty, &attributes);
        if let Some(op) = mlir::defining_op(value) {
            self.nest.relax(op, "#arith.fastmath<contract>");
        }
        Lanes { value, is_vector }
    }

    /// Stores vectors of neighbouring results.
    fn finish_vectors(
        &self,
        builder: &Builder<'c>,
        folded: &[Val<'c>],
        masks: &[Option<Val<'c>>],
    ) {
        let nest = self.nest;
        let epilogue = nest.generic.epilogue();
        let mut loaded = HashMap::new();
        for (point, folded) in self.points.iter().zip(folded.chunks(nest.outputs.len())) {
            let mask = masks[point.1 as usize];
            let mut scope = self.at(builder, &self.scope, point);
            let stored = match epilogue {
                Some(epilogue) if self.tiling.vector_epilogue => {
                    self.evaluate(builder, &mut scope, epilogue, folded, point, mask, &mut loaded)
                }
                _ => folded.to_vec(),
            };
            for (output, value) in nest.outputs.iter().zip(stored) {
                let indices = nest.exprs(builder, &mut scope, &output.map.results, true);
                let place = [&[scope.buffer(output.buffer)], &indices[..]].concat();
                match mask {
                    Some(mask) => builder
                        .op("vector.maskedstore", &[&place[..], &[mask, value]].concat(), &[]),
                    None => builder.op("vector.store", &[&[value], &place[..]].concat(), &[]),
                };
            }
        }
        if epilogue.is_some() && !self.tiling.vector_epilogue {
            self.finish_one_by_one(builder);
        }
    }

    /// Runs an epilogue that does not work on vectors over the block that was stored.
    fn finish_one_by_one(&self, builder: &Builder<'c>) {
        let nest = self.nest;
        let (lower, upper) = self.scope.stretches[&self.tiling.lane];
        let one = builder.index(1);
        let mut rows: Vec<&(Vec<i64>, i64)> = Vec::new();
        rows.extend(self.points.iter().filter(|(_, vector)| *vector == 0));
        for point in rows {
            let row = self.at(builder, &self.scope, point);
            loops::build_for(builder, (lower, upper, one), &[], &mut |builder, value, _| {
                let mut scope = row.clone();
                scope.values.insert(self.tiling.lane, value);
                let folded: Vec<_> = (0..nest.outputs.len())
                    .map(|number| nest.load_output(builder, &mut scope, number))
                    .collect();
                let stored = nest.finish(builder, &mut scope, folded);
                for (number, value) in stored.into_iter().enumerate() {
                    nest.store_output(builder, &mut scope, number, value);
                }
                Vec::new()
            });
        }
    }

    /// Folds each vector across its lanes and stores the results one by one.
    fn finish_points(&self, builder: &Builder<'c>, folded: &[Val<'c>]) {
        let nest = self.nest;
        let num_outputs = nest.outputs.len();
        let neighbours = num_outputs * self.tiling.vectors as usize;
        let firsts = self.points.iter().filter(|(_, vector)| *vector == 0);
        for (point, folded) in firsts.zip(folded.chunks(neighbours)) {
            let mut scope = self.at(builder, &self.scope, point);
            let mut results = Vec::new();
            for (number, output) in nest.outputs.iter().enumerate() {
                let mut vector = folded[number];
                for other in folded[num_outputs..].iter().skip(number).step_by(num_outputs) {
                    vector = output.combiner.build(builder, vector, *other);
                }
                let mut value = self.across(builder, output.combiner.kind, vector, output.element);
                if output.combiner.reads_destination() {
                    let held = nest.load_output(builder, &mut scope, number);
                    value = output.combiner.build(builder, held, value);
                }
                results.push(value);
            }
            let stored = nest.finish(builder, &mut scope, results);
            for (number, value) in stored.into_iter().enumerate() {
                nest.store_output(builder, &mut scope, number, value);
            }
        }
    }

    fn across(
        &self,
        builder: &Builder<'c>,
        kind: CombinerKind,
        vector: Val<'c>,
        element: Type<'c>,
    ) -> Val<'c> {
        let name = match kind {
            CombinerKind::Assign | CombinerKind::Add => "add",
            CombinerKind::Mul => "mul",
            CombinerKind::MinF => "minnumf",
            CombinerKind::MaxF => "maxnumf",
            CombinerKind::MinS => "minsi",
            CombinerKind::MaxS => "maxsi",
            CombinerKind::MinU => "minui",
            CombinerKind::MaxU => "maxui",
            CombinerKind::And => "and",
            CombinerKind::Or => "or",
        };
        let kind = mlir::parse_attribute(builder.context, &format!("#vector.kind<{name}>"));
        let flags = mlir::parse_attribute(builder.context, "#arith.fastmath<reassoc>");
        let mut attributes = vec![("kind", kind)];
        if mlir::is_float(element) {
            attributes.push(("fastmath", flags));
        }
        builder.value_with("vector.reduction", &[vector], element, &attributes)
    }
}
