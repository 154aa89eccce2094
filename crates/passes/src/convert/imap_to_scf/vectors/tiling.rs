//! Which reductions and transpositions are done in vectors, and with what blocks.

use crate::convert::loop_nest::{
    emit::{Nest, accessed, constrained},
    guards::has_tests,
    order::{Plan, step_along},
    partial_sums::PartialSums,
};
use melior::ir::{ValueLike, operation::OperationLike};
use std::collections::BTreeSet;
use tc_dialects::{
    imap::{Indexed, Inside},
    mlir::{self, Blk},
};
use tc_ir::{
    Constraint, Var,
    expr::{checked_ceil_div, checked_floor_div},
};

/// The most lanes of a block that is transposed: as many vectors have to be held at once.
const MAX_TRANSPOSED: i64 = 16;
/// The values that a variable without constraints needs, to be unrolled rather than one with some.
const MIN_FREE: i64 = 4;
/// Operations that mean on vectors what they mean on each element, and that cannot trap.
#[rustfmt::skip]
const ELEMENTWISE: &[&str] = &[
    "arith.addf", "arith.addi", "arith.andi", "arith.bitcast", "arith.cmpf", "arith.cmpi",
    "arith.constant", "arith.divf", "arith.extf", "arith.extsi", "arith.extui", "arith.fptosi",
    "arith.fptoui", "arith.index_cast", "arith.index_castui", "arith.maximumf", "arith.maxnumf", "arith.maxsi", "arith.maxui",
    "arith.minimumf", "arith.minnumf", "arith.minsi", "arith.minui", "arith.mulf", "arith.muli",
    "arith.negf", "arith.ori", "arith.select", "arith.shli", "arith.shrsi", "arith.shrui",
    "arith.sitofp", "arith.subf", "arith.subi", "arith.truncf", "arith.trunci", "arith.uitofp",
    "arith.xori", "math.absf", "math.absi", "math.ceil", "math.copysign", "math.floor",
    "math.fma", "math.sqrt", "math.trunc",
];

/// A block of results: which variables it spans and how far.
#[derive(Clone, Debug)]
pub(in super::super) struct Tiling {
    /// The variable along the lanes.
    pub lane: Var,
    /// Lanes of a vector.
    pub lanes: i64,
    /// Neighbouring vectors along the lanes.
    pub vectors: i64,
    /// Unrolled dimension variables and their factors.
    pub unrolled: Vec<(Var, i64)>,
    /// The other dimension variables, outermost first.
    pub rest: Vec<Var>,
    /// The range variables, outermost first; the lanes come last if they are one of them.
    pub ranges: Vec<Var>,
    /// Whether the epilogue works on vectors too.
    pub vector_epilogue: bool,
    /// The inputs that are contiguous in the unrolled variable rather than in the lanes,
    /// so that blocks of them are transposed.
    pub transposed: Vec<usize>,
    /// Where the constraints on an unrolled variable hold; blocks stay inside.
    pub interior: Option<Interior>,
}

/// The values of a variable for which constraints hold, whatever the values of the ranges are.
#[derive(Clone, Debug)]
pub(in super::super) struct Interior {
    pub var: Var,
    pub first: i64,
    pub last: i64,
    /// The numbers of the constraints.
    pub constraints: Vec<usize>,
}

impl Interior {
    /// The interior of a variable of constant extent; `None` if the variable has no constraints, or some with the
    /// lanes, or if the interior has fewer than two values.
    fn of(nest: &Nest, var: Var, lane: Var) -> Option<Self> {
        nest.extent(var)?;
        let values = nest.intervals.of(var);
        let mut found = Self { var, first: values.lo, last: values.hi, constraints: Vec::new() };
        for (number, constraint) in nest.domain.constraints.iter().enumerate() {
            let needs = nest.needs(&[constraint.expr]);
            if !needs.contains(&var) {
                continue;
            }
            let is_range = |other: &Var| matches!(other, Var::Range(_)) && *other != lane;
            let is_local = |other: &Var| *other == var || is_range(other);
            if !needs.iter().all(is_local) || !nest.elements_in(constraint.expr).is_empty() {
                return None;
            }
            let factor = nest.ir.coefficient(constraint.expr, var).filter(|factor| *factor != 0)?;
            let without = |it| (it == var).then(|| nest.ir.constant(0));
            let rest = nest.ir.substitute(constraint.expr, &without);
            let rest = nest.ir.interval_of(rest, &|var| nest.intervals.of(var));
            let (lo, hi) = (constraint.interval.lo, constraint.interval.hi);
            // Of `factor * var`.
            let least = if lo == i64::MIN { None } else { Some(lo.checked_sub(rest.lo)?) };
            let most = if hi == i64::MAX { None } else { Some(hi.checked_sub(rest.hi)?) };
            let (least, most) = if 0 < factor { (least, most) } else { (most, least) };
            if let Some(least) = least {
                found.first = found.first.max(checked_ceil_div(least, factor)?);
            }
            if let Some(most) = most {
                found.last = found.last.min(checked_floor_div(most, factor)?);
            }
            found.constraints.push(number);
        }
        (!found.constraints.is_empty() && found.first < found.last).then_some(found)
    }

    /// The number of values.
    pub fn extent(&self) -> i64 {
        self.last - self.first + 1
    }
}

impl Tiling {
    /// Whether vectors hold parts of one result rather than neighbouring results.
    pub fn lane_is_range(&self) -> bool {
        matches!(self.lane, Var::Range(_))
    }

    /// The partial results that the values of the last range variable go to in turn.
    pub fn chains(&self) -> i64 {
        if self.lane_is_range() { self.width() } else { 1 }
    }

    /// The shape of the memory that holds a block for an epilogue that works on single values; `None` if
    /// it finds the accumulators in registers or in the destinations.
    pub fn held(&self, nest: &Nest) -> Option<[Option<i64>; 2]> {
        let is_held = !self.vector_epilogue && !self.lane_is_range() && !nest.is_paired();
        let num_rows = self.unrolled.iter().map(|(_, factor)| factor).product();
        is_held.then_some([Some(num_rows), Some(self.width())])
    }

    /// The constraints that hold for some of the lanes, a part of them without gaps: the others are not
    /// folded.
    pub fn masked(&self, nest: &Nest) -> Vec<usize> {
        if self.lane_is_range() || nest.is_map_form() {
            return Vec::new();
        }
        let is_masked = |constraint: &Constraint| {
            let needs = nest.needs(&[constraint.expr]);
            needs.contains(&self.lane)
                && self.unrolled.iter().all(|(var, _)| !needs.contains(var))
                && nest.elements_in(constraint.expr).is_empty()
                && nest.ir.coefficient(constraint.expr, self.lane).is_some()
        };
        let constraints = nest.domain.constraints.iter().enumerate();
        constraints.filter(|(_, it)| is_masked(it)).map(|(number, _)| number).collect()
    }

    /// Points of the lane variable that one block covers.
    pub fn width(&self) -> i64 {
        self.lanes * self.vectors
    }
}

/// The tiling of a reduction, if it can be done in vectors and gains from it.
pub(in super::super) fn tiling(nest: &Nest, plan: &Plan) -> Option<Tiling> {
    let inputs = nest.inputs.iter().filter(|input| input.is_used).map(|input| input.buffer);
    let mut buffers = inputs.chain(nest.outputs.iter().map(|output| output.buffer));
    if nest.choices.vector_bits < 128 || !buffers.all(|it| mlir::is_contiguous(it.r#type())) {
        return None;
    }
    let (lane, dims, ranges) = match plan {
        Plan::Rows { row, dims, ranges } => (*row, dims.clone(), ranges.clone()),
        Plan::Registers { dims, ranges } => match ranges.last() {
            Some(last) => (*last, dims.clone(), ranges.clone()),
            None => return transposition(nest, dims),
        },
    };
    let width = element_width(nest)?;
    let lanes = nest.choices.vector_bits / width;
    let mut folding = [Some(nest.generic.body()), nest.generic.combiner()].into_iter().flatten();
    let in_lanes = folding.all(|block| is_elementwise(nest, block, lane));
    if lanes < 2 || !operands_fit(nest, lane) || !in_lanes {
        return None;
    }
    if matches!(lane, Var::Range(_)) && nest.keeps_order() {
        return None;
    }
    let reused = |var: Var| {
        let inputs = nest.inputs.iter().filter(|input| input.is_used);
        inputs.filter(|input| !nest.needs(&accessed(&input.map)).contains(&var)).count()
    };
    // What is shared between unrolled points has to be loaded per lane to matter.
    let loads_lanes = |var: Var| {
        nest.inputs.iter().any(|input| {
            let needs = nest.needs(&accessed(&input.map));
            input.is_used && needs.contains(&lane) && !needs.contains(&var)
        })
    };
    // A constraint would have to be tested for each point of a block.
    let is_constrained = |var: Var| {
        let mut constraints = nest.domain.constraints.iter();
        constraints.any(|it| nest.needs(&[it.expr]).contains(&var))
    };
    let interior = |var: Var| Interior::of(nest, var, lane).filter(|_| !nest.is_map_form());
    let mut candidates: Vec<Var> = dims
        .iter()
        .copied()
        .filter(|var| *var != lane && (!is_constrained(*var) || interior(*var).is_some()))
        .filter(|var| 0 < reused(*var) && nest.extent(*var) != Some(1))
        .collect();
    // Most reuse first. Of equal candidates, one without constraints, then the one with the smallest steps, which is
    // the last.
    let is_free =
        |var: Var| !is_constrained(var) && nest.extent(var).is_none_or(|extent| MIN_FREE <= extent);
    candidates.reverse();
    let key = |var: &Var| (loads_lanes(*var), reused(*var), is_free(*var));
    candidates.sort_by_key(|var| std::cmp::Reverse(key(var)));
    if !candidates.first().is_some_and(|var| loads_lanes(*var)) {
        candidates.clear();
    }
    let is_range = matches!(lane, Var::Range(_));
    // One border is enough code.
    let constrained = candidates.iter().copied().find(|var| is_constrained(*var));
    candidates.retain(|var| !is_constrained(*var) || Some(*var) == constrained);
    candidates.truncate(2);
    let interior = candidates.iter().find_map(|var| interior(*var));
    // The fold across the lanes has to be worth its steps.
    let fills_lanes = || nest.extent(lane).is_none_or(|extent| lanes <= extent);
    let gains = || {
        has_float_extremes(nest)
            || nest.generic.has_combiner() && fills_lanes()
            || PartialSums::of(nest, &ranges, lanes).is_some()
    };
    if is_range && candidates.is_empty() && !gains() {
        // One result at a time is what LLVM's own vectorizer does as well, except for the
        // smallest and largest float, for combiners that are regions, and for sums so long that each
        // lane has partial sums.
        return None;
    }
    let is_strided = || {
        let mut inputs = nest.inputs.iter().filter(|input| input.is_used);
        inputs.any(|input| !matches!(step_along(nest, &input.map, lane), Some(0 | 1)))
    };
    let is_plain =
        || !has_float_extremes(nest) && !nest.generic.has_combiner() && !is_constrained(lane);
    if candidates.is_empty() && is_plain() && is_strided() {
        // LLVM vectorizes such a row, with wider loads.
        return None;
    }
    let (vectors, mut unrolled) = block(nest, lane, lanes, &candidates, interior.as_ref());
    // The loops keep their order: what moves farthest is outermost.
    unrolled.sort_by_key(|(var, _)| dims.iter().position(|other| other == var));
    let unrolled_vars: Vec<Var> = unrolled.iter().map(|(var, _)| *var).collect();
    let rest: Vec<_> =
        dims.into_iter().filter(|var| *var != lane && !unrolled_vars.contains(var)).collect();
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
            .is_none_or(|epilogue| is_elementwise(nest, epilogue, lane)),
        transposed: Vec::new(),
        interior: interior.filter(|it| unrolled_vars.contains(&it.var)),
    };
    // Masks stay in registers.
    let has_masks = nest.accumulators.iter().any(|it| mlir::integer_width(it.ty) == Some(1));
    let is_held = tiling.held(nest).is_some() && has_masks;
    (!is_held && is_rectangular(nest, &tiling)).then_some(tiling)
}

/// The tiling of an operation on elements of which some inputs are contiguous in another
/// variable than the destinations are.
fn transposition(nest: &Nest, dims: &[Var]) -> Option<Tiling> {
    let lane = *dims.last()?;
    let epilogue = nest.generic.epilogue();
    // A block stores all of its elements.
    let may_skip_stores = !nest.domain.constraints.is_empty() && nest.is_map_form();
    // Without a fold, guards split loops instead.
    if may_skip_stores
        || has_tests(nest)
        || !is_elementwise(nest, nest.generic.body(), lane)
        || epilogue.is_some_and(|epilogue| !is_elementwise(nest, epilogue, lane))
        || nest.outputs.iter().any(|output| step_along(nest, &output.map, lane) != Some(1))
    {
        return None;
    }
    let misfits: Vec<usize> = nest
        .inputs
        .iter()
        .enumerate()
        .filter(|(_, input)| input.is_used)
        .filter(|(_, input)| !matches!(step_along(nest, &input.map, lane), Some(0 | 1)))
        .map(|(number, _)| number)
        .collect();
    // Truth values in registers are masks, which are not transposed.
    let is_bool = |number: &usize| {
        let element = mlir::element_type(nest.inputs[*number].buffer.r#type());
        mlir::integer_width(element) == Some(1)
    };
    if misfits.iter().any(is_bool) {
        return None;
    }
    let is_contiguous =
        |number: &usize, var| step_along(nest, &nest.inputs[*number].map, var) == Some(1);
    let across = dims
        .iter()
        .copied()
        .filter(|var| *var != lane)
        .find(|var| misfits.iter().all(|number| is_contiguous(number, *var)))?;
    let lanes = (nest.choices.vector_bits / element_width(nest)?).min(MAX_TRANSPOSED);
    let is_short = |var| nest.extent(var).is_some_and(|extent| extent < lanes);
    if misfits.is_empty() || lanes < 2 || is_short(lane) || is_short(across) {
        return None;
    }
    let tiling = Tiling {
        lane,
        lanes,
        vectors: 1,
        unrolled: vec![(across, lanes)],
        rest: dims.iter().copied().filter(|var| *var != lane && *var != across).collect(),
        ranges: Vec::new(),
        vector_epilogue: true,
        transposed: misfits,
        interior: None,
    };
    is_rectangular(nest, &tiling).then_some(tiling)
}

/// The bits of the widest element; `None` if one is not a number in memory. Truth values that
/// are read are numbers too: `store-bools-as-bytes` makes bytes of them. Those that are folded are
/// masks.
fn element_width(nest: &Nest) -> Option<i64> {
    let inputs = nest.inputs.iter().filter(|input| input.is_used);
    let elements = inputs
        .map(|input| (mlir::element_type(input.buffer.r#type()), false))
        .chain(nest.outputs.iter().map(|output| (output.element, true)))
        .chain(nest.accumulators.iter().map(|it| (it.ty, false)));
    let mut widest = 0;
    for (element, is_stored) in elements {
        let width = match mlir::integer_width(element) {
            Some(1) if !is_stored => 8,
            Some(width @ (8 | 16 | 32 | 64)) => i64::from(width),
            Some(_) => return None,
            None => match element.to_string().as_str() {
                "f16" | "bf16" => 16,
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
/// destinations are contiguous in lanes that are a dimension variable. A guard becomes a mask.
fn operands_fit(nest: &Nest, lane: Var) -> bool {
    let mut inputs = nest.inputs.iter().filter(|input| input.is_used);
    let inputs_fit = inputs.all(|input| match step_along(nest, &input.map, lane) {
        Some(0) => !nest.needs(&constrained(&input.map.constraints)).contains(&lane),
        Some(1) => have_masks(nest, &input.map.constraints, lane),
        // Neighbouring results may read elements that are no neighbours, but not under a guard.
        Some(_) => matches!(lane, Var::Dim(_)) && input.map.constraints.is_empty(),
        None => false,
    });
    let wanted = i64::from(matches!(lane, Var::Dim(_)));
    inputs_fit
        && nest.outputs.iter().all(|output| step_along(nest, &output.map, lane) == Some(wanted))
}

/// Whether conditions hold for all lanes alike, or from one lane on, or up to one.
fn have_masks(nest: &Nest, conditions: &[Constraint], lane: Var) -> bool {
    conditions.iter().all(|condition| {
        if !nest.needs(&[condition.expr]).contains(&lane) {
            return true;
        }
        // A runtime variable that is read at a place along the lanes differs per lane.
        let vars = nest.ir.vars(condition.expr).into_iter();
        let runtimes = vars.filter(|var| matches!(var, Var::Runtime(_)));
        let runtimes: Vec<_> = runtimes.map(|var| nest.ir.var(var)).collect();
        !nest.needs(&runtimes).contains(&lane)
            && matches!(nest.ir.coefficient(condition.expr, lane), Some(1 | -1))
    })
}

/// Whether a block consists of operations on elements, of indices, and of conditions that are masks.
fn is_elementwise(nest: &Nest, block: Blk, lane: Var) -> bool {
    mlir::ops(block).into_iter().all(|op| {
        if let Some(inside) = Inside::cast(op) {
            return have_masks(nest, &inside.conditions(&nest.ir), lane);
        }
        let is_known = ["imap.index", "imap.yield"].contains(&mlir::name(op));
        is_known || (ELEMENTWISE.contains(&mlir::name(op)) && op.region_count() == 0)
    })
}

/// Whether a result is the smallest or largest of floats.
fn has_float_extremes(nest: &Nest) -> bool {
    nest.accumulators.iter().any(|it| it.kind.is_float_extremum())
}

/// Chooses how many neighbouring vectors and unrolled points a block has, so that its
/// results fill the registers and leave some for operands.
fn block(
    nest: &Nest,
    lane: Var,
    lanes: i64,
    candidates: &[Var],
    interior: Option<&Interior>,
) -> (i64, Vec<(Var, i64)>) {
    let registers = if nest.choices.vector_registers < 32 { 12 } else { 28 };
    let budget = (registers / nest.num_values() as i64).max(1);
    let ceil_div = |a: i64, b: i64| a.div_euclid(b) + i64::from(a.rem_euclid(b) != 0);
    // Blocks of equal size, instead of full ones and a small rest.
    let extent = |var: Var| match interior.filter(|it| it.var == var) {
        Some(interior) => Some(interior.extent()),
        None => nest.extent(var),
    };
    let even = |var: Var, factor: i64| match extent(var) {
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
    let most = if candidates.is_empty() { 8 } else { 2 };
    let vectors = available(nest, lane, lanes, most).min(budget);
    (vectors, unroll(budget / vectors, &[14, 8]))
}

/// As many neighbouring vectors as there are, but at most `most`.
fn available(nest: &Nest, lane: Var, lanes: i64, most: i64) -> i64 {
    nest.extent(lane).map_or(most, |extent| (extent - 1).div_euclid(lanes) + 1).clamp(1, most)
}

/// Whether the bounds of the variables of a block depend on outer variables only, and of the
/// constraints only those that are masks on the block.
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
    let mut excluded = tiling.masked(nest);
    excluded.extend(tiling.interior.iter().flat_map(|it| &it.constraints));
    let mut constraints = nest.domain.constraints.iter().enumerate();
    outer.into_iter().all(|var| nest.bound_needs(*var).is_subset(&rest))
        && tiling.ranges.iter().all(|var| nest.bound_needs(*var).is_disjoint(&blocked))
        && constraints.all(|(number, it)| {
            excluded.contains(&number) || nest.needs(&[it.expr]).is_disjoint(&blocked)
        })
}
