//! The register blocks of reductions and transpositions.
//!
//! The register blocks follow the analysis of matrix products by Goto and van de Geijn,
//! "Anatomy of High-Performance Matrix Multiplication" (2008).

use crate::{
    convert::loop_nest::{
        emit::{Nest, accessed},
        order::{Plan, is_constrained, step_along},
        partial_sums::PartialSums,
        schedule::VectorStep,
        tiling::{Interior, MAX_TRANSPOSED, misfits, register_lanes},
    },
    tile::pack::BLOCK_VECTORS,
};
use tc_dialects::imap::Indexed;
use tc_ir::{Var, expr::ceil_div};

/// The bits of the narrowest vector registers that blocks are worth it for.
const MIN_BITS: i64 = 128;
/// The most neighbouring vectors of a block that is one row high: what it reads of each row of an operand is a few
/// lines of cache.
const MAX_VECTORS: i64 = 16;
/// The values that a variable without constraints needs, to be unrolled rather than one with some.
const MIN_FREE: i64 = 4;

/// The block of an operation with these loops, if one gains. It may turn out to be impossible.
pub(super) fn choose(nest: &Nest, plan: &Plan) -> Option<VectorStep> {
    if nest.choices.vector_bits < MIN_BITS {
        return None;
    }
    let (lane, dims, ranges) = match plan {
        Plan::Rows { row, dims, ranges } => (*row, dims, ranges),
        Plan::Registers { dims, ranges } => match ranges.last() {
            Some(last) => (*last, dims, ranges),
            None => return transposition(nest, dims),
        },
    };
    let lanes = register_lanes(nest).ok()?;
    let reused = |var: Var| {
        let inputs = nest.inputs.iter().filter(|input| input.is_folded);
        inputs.filter(|input| !nest.needs(&accessed(&input.map)).contains(&var)).count()
    };
    // What is shared between unrolled points has to be loaded per lane to matter.
    let loads_lanes = |var: Var| {
        nest.inputs.iter().any(|input| {
            let needs = nest.needs(&accessed(&input.map));
            input.is_folded && needs.contains(&lane) && !needs.contains(&var)
        })
    };
    let interior = |var: Var| Interior::of(nest, var, lane).filter(|_| !nest.is_map_form());
    let mut candidates: Vec<Var> = dims
        .iter()
        .copied()
        .filter(|var| *var != lane)
        .filter(|var| !is_constrained(nest, *var) || interior(*var).is_some())
        .filter(|var| 0 < reused(*var) && nest.extent(*var) != Some(1))
        .collect();
    // Most reuse first. Of equal candidates, one without constraints, then the one with the smallest steps, which is
    // the last.
    let is_free = |var: Var| {
        !is_constrained(nest, var) && nest.extent(var).is_none_or(|extent| MIN_FREE <= extent)
    };
    candidates.reverse();
    let key = |var: &Var| (loads_lanes(*var), reused(*var), is_free(*var));
    candidates.sort_by_key(|var| std::cmp::Reverse(key(var)));
    if !candidates.first().is_some_and(|var| loads_lanes(*var)) {
        candidates.clear();
    }
    let is_range = matches!(lane, Var::Range(_));
    // One border is enough code.
    let constrained = candidates.iter().copied().find(|var| is_constrained(nest, *var));
    candidates.retain(|var| !is_constrained(nest, *var) || Some(*var) == constrained);
    candidates.truncate(2);
    let interior = candidates.iter().find_map(|var| interior(*var));
    // The fold across the lanes has to be worth its steps.
    let fills_lanes = || nest.extent(lane).is_none_or(|extent| lanes <= extent);
    let gains = || {
        has_float_extremes(nest)
            || nest.generic.has_combiner() && fills_lanes()
            || PartialSums::of(nest, ranges, lanes).is_some()
    };
    if is_range && is_constrained(nest, lane) && !fills_lanes() {
        return None;
    }
    if is_range && candidates.is_empty() && !gains() {
        // One result at a time is what LLVM's own vectorizer does as well, except for the
        // smallest and largest float, for combiners that are regions, and for sums so long that each
        // lane has partial sums.
        return None;
    }
    let is_strided = || {
        let mut inputs = nest.inputs.iter().filter(|input| input.is_folded);
        inputs.any(|input| !matches!(step_along(nest, &input.map, lane), Some(0 | 1)))
    };
    let is_plain =
        || !has_float_extremes(nest) && !nest.generic.has_combiner() && !is_constrained(nest, lane);
    if candidates.is_empty() && is_plain() && is_strided() {
        // LLVM vectorizes such a row, with wider loads.
        return None;
    }
    let (vectors, mut sizes) = block(nest, lane, lanes, &candidates, interior.as_ref());
    // As the loops: what moves farthest is outermost.
    sizes.sort_by_key(|(var, _)| dims.iter().position(|other| other == var));
    sizes.push((lane, lanes * vectors));
    Some(VectorStep { sizes, lanes: lane })
}

/// The block of an operation on elements of which some inputs are contiguous in another variable than the destinations
/// are.
fn transposition(nest: &Nest, dims: &[Var]) -> Option<VectorStep> {
    let lane = *dims.last()?;
    let misfits = misfits(nest, lane);
    if misfits.is_empty() {
        return None;
    }
    let is_contiguous =
        |number: &usize, var| step_along(nest, &nest.inputs[*number].map, var) == Some(1);
    let fits = |var: &Var| misfits.iter().all(|number| is_contiguous(number, *var));
    let across = dims.iter().copied().filter(|var| *var != lane).find(fits)?;
    let lanes = register_lanes(nest).ok()?.min(MAX_TRANSPOSED);
    Some(VectorStep { sizes: vec![(across, lanes), (lane, lanes)], lanes: lane })
}

/// Chooses how many neighbouring vectors and unrolled points a block has. The results stay in registers. Two units with a
/// latency of four cycles need 8 results; 16 hide the latency of loads, too. More results make more code, but not faster
/// code.
fn block(
    nest: &Nest,
    lane: Var,
    lanes: i64,
    candidates: &[Var],
    interior: Option<&Interior>,
) -> (i64, Vec<(Var, i64)>) {
    // 16 registers hold operands as well.
    let (results, outer) = if nest.choices.vector_registers < 32 { (12, 3) } else { (16, 4) };
    let budget = (results / nest.num_values() as i64).max(1);
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
            2 => unroll(budget, &[outer, 4]),
            _ => unroll(budget, &[8]),
        };
        let vectors = if unrolled.is_empty() { available(nest, lane, lanes, 4) } else { 1 };
        return (vectors.min(budget), unrolled);
    }
    let most = if candidates.is_empty() { budget.min(MAX_VECTORS) } else { BLOCK_VECTORS };
    let count = available(nest, lane, lanes, i64::MAX);
    let vectors = ceil_div(count, ceil_div(count, most.min(budget)));
    (vectors, unroll(budget / vectors, &[8, 8]))
}

/// As many neighbouring vectors as there are, but at most `most`.
fn available(nest: &Nest, lane: Var, lanes: i64, most: i64) -> i64 {
    nest.extent(lane).map_or(most, |extent| (extent - 1).div_euclid(lanes) + 1).clamp(1, most)
}

/// Whether a result is the smallest or largest of floats.
fn has_float_extremes(nest: &Nest) -> bool {
    nest.accumulators.iter().any(|it| it.kind.is_float_extremum())
}
