//! Register blocks: the step `vector` of a schedule, held against the operation that is to be computed so.

use super::{
    emit::{Nest, constrained},
    guards::has_tests,
    order::{Plan, differs_at_runtime, is_constrained, step_along},
    schedule::{VectorStep, name},
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
pub(in crate::convert) const MAX_TRANSPOSED: i64 = 16;
/// The most vectors of results in a block. Each vector adds code, and no target has so many registers.
const MAX_BLOCK: i64 = 256;
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
pub(in crate::convert) struct Tiling {
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

/// The values of a variable for which constraints hold, whatever the values of the other variables are.
#[derive(Clone, Debug)]
pub(in crate::convert) struct Interior {
    pub var: Var,
    pub first: i64,
    pub last: i64,
    /// The numbers of the constraints.
    pub constraints: Vec<usize>,
}

impl Interior {
    /// The interior of a variable of constant extent; `None` if the variable has no constraints, or some with the
    /// lanes, or if the interior has fewer than two values.
    pub fn of(nest: &Nest, var: Var, lane: Var) -> Option<Self> {
        nest.extent(var)?;
        let values = nest.intervals.of(var);
        let mut found = Self { var, first: values.lo, last: values.hi, constraints: Vec::new() };
        for (number, constraint) in nest.domain.constraints.iter().enumerate() {
            let needs = nest.needs(&[constraint.expr]);
            if !needs.contains(&var) {
                continue;
            }
            let is_local = |it: &Var| *it == var || *it != lane && !matches!(it, Var::Runtime(_));
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

    /// The constraints that bound the lanes, if these are a range: the loop over it is shorter.
    fn tightening(&self, nest: &Nest) -> Vec<usize> {
        let is_bound = |constraint: &Constraint| {
            let needs = nest.needs(&[constraint.expr]);
            let factor = nest.ir.coefficient(constraint.expr, self.lane);
            factor.is_some_and(|factor| factor != 0)
                && self.unrolled.iter().all(|(var, _)| !needs.contains(var))
                && nest.elements_in(constraint.expr).is_empty()
        };
        let constraints = nest.domain.constraints.iter().enumerate();
        let found = constraints.filter(|(_, it)| self.lane_is_range() && is_bound(it));
        found.map(|(number, _)| number).collect()
    }

    /// Whether a block loads each element of a folded input once for several results, as a product does.
    pub fn reuses_inputs(&self, nest: &Nest) -> bool {
        let dims = self.unrolled.iter().map(|(var, _)| *var).chain([self.lane]);
        let dims: Vec<_> = dims.filter(|var| matches!(var, Var::Dim(_))).collect();
        let mut inputs = nest.inputs.iter().filter(|input| input.is_folded);
        !nest.is_map_form()
            && inputs.all(|input| {
                let needs = nest.needs(&input.map.results);
                dims.iter().any(|dim| !needs.contains(dim))
            })
    }

    /// Points of the lane variable that one block covers.
    pub fn width(&self) -> i64 {
        self.lanes * self.vectors
    }

    /// The block of a step, for loops of this plan.
    ///
    /// # Errors
    /// The text says why the operation cannot be computed in such blocks.
    pub fn of(nest: &Nest, plan: &Plan, step: &VectorStep) -> Result<Self, String> {
        let name = |var: Var| name(nest, var);
        let lane = step.lanes;
        let (dims, ranges) = match plan {
            Plan::Rows { dims, ranges, row } => ([&dims[..], &[*row]].concat(), ranges.clone()),
            Plan::Registers { dims, ranges } => (dims.clone(), ranges.clone()),
        };
        let last = match plan {
            Plan::Rows { row, .. } => Some(row),
            Plan::Registers { dims, ranges } => ranges.last().or(dims.last()),
        };
        if last != Some(&lane) {
            return Err(format!(
                "the loop over the lanes '{}' is not the innermost one",
                name(lane)
            ));
        }
        let inputs = nest.inputs.iter().filter(|input| input.is_used).map(|input| input.buffer);
        let mut buffers = inputs.chain(nest.outputs.iter().map(|output| output.buffer));
        if !buffers.all(|it| mlir::has_unit_inner_stride(it.r#type())) {
            return Err("a buffer is not contiguous in its last dimension".to_string());
        }
        let (lanes, vectors) = vectors(nest, step)?;
        let unrolled = step.sizes.iter().copied().filter(|(var, size)| *var != lane && 1 < *size);
        let mut unrolled: Vec<(Var, i64)> = unrolled.collect();
        if let Some((var, _)) = unrolled.iter().find(|(var, _)| !dims.contains(var)) {
            let name = name(*var);
            return Err(format!("'{name}' is no dimension of several values, and no lanes"));
        }
        let factors = unrolled.iter().map(|(_, factor)| *factor);
        let size = factors.fold(vectors, i64::saturating_mul);
        if MAX_BLOCK < size {
            return Err(format!("the block has {size} vectors, and {MAX_BLOCK} are the most"));
        }
        // The loops keep their order.
        unrolled.sort_by_key(|(var, _)| dims.iter().position(|other| other == var));
        let is_rest =
            |var: &Var| *var != lane && unrolled.iter().all(|(unrolled, _)| unrolled != var);
        let mut tiling = Self {
            lane,
            lanes,
            vectors,
            rest: dims.iter().copied().filter(is_rest).collect(),
            ranges,
            vector_epilogue: nest
                .generic
                .epilogue()
                .is_none_or(|epilogue| is_elementwise(nest, epilogue, lane)),
            transposed: Vec::new(),
            interior: None,
            unrolled,
        };
        check_body(nest, lane)?;
        match tiling.ranges.is_empty() {
            true => tiling.transposed = transposed(nest, &tiling)?,
            false => tiling.check_fold(nest)?,
        }
        let is_constrained = |var: &Var| is_constrained(nest, *var);
        let unrolled = tiling.unrolled.iter().map(|(var, _)| *var);
        let constrained: Vec<Var> = unrolled.filter(is_constrained).collect();
        match constrained[..] {
            [] => {}
            [var] if !tiling.ranges.is_empty() => {
                let none = || format!("constraints on '{}' leave no interior", name(var));
                tiling.interior = Some(Interior::of(nest, var, lane).ok_or_else(none)?);
            }
            _ => return Err("constraints divide the block".to_string()),
        }
        // Masks stay in registers.
        let has_masks = nest.accumulators.iter().any(|it| mlir::integer_width(it.ty) == Some(1));
        if tiling.held(nest).is_some() && has_masks {
            return Err("the epilogue needs truth values of single lanes".to_string());
        }
        match is_rectangular(nest, &tiling) {
            true => Ok(tiling),
            false => Err("bounds or constraints vary inside of the block".to_string()),
        }
    }

    fn check_fold(&self, nest: &Nest) -> Result<(), String> {
        if !operands_fit(nest, self.lane) {
            return Err("an operand is not contiguous along the lanes".to_string());
        }
        match self.lane_is_range() && nest.keeps_order() {
            true => {
                Err("the lanes are a range, and the fold keeps the order of its ranges".to_string())
            }
            false => Ok(()),
        }
    }
}

/// The lanes of a vector register, for the widest element.
///
/// # Errors
/// An element is no number in memory, or the machine has no vectors of such.
pub(in crate::convert) fn register_lanes(nest: &Nest) -> Result<i64, String> {
    let width = element_width(nest).ok_or("an element type has no vectors")?;
    match nest.choices.vector_bits / width {
        lanes @ 2.. => Ok(lanes),
        _ => Err(format!("the machine has no vectors of {width} bits per element")),
    }
}

/// The lanes of a vector of a block, and the number of vectors along the lanes.
fn vectors(nest: &Nest, step: &VectorStep) -> Result<(i64, i64), String> {
    let most = register_lanes(nest)?;
    let size = step.sizes.iter().find(|(var, _)| *var == step.lanes).map_or(1, |(_, size)| *size);
    let lanes = size.min(most);
    match 1 < lanes && lanes & (lanes - 1) == 0 && size % lanes == 0 {
        true => Ok((lanes, size / lanes)),
        false => Err(format!(
            "the size of the lanes, {size}, is no power of two from 2 to {most} and no multiple of {most}"
        )),
    }
}

/// Whether what is computed per point, and what combines it, works on vectors.
fn check_body(nest: &Nest, lane: Var) -> Result<(), String> {
    let combiner = nest.generic.combiner();
    let mut folding = [Some(nest.generic.body()), combiner].into_iter().flatten();
    match folding.all(|block| is_elementwise(nest, block, lane)) {
        true => Ok(()),
        false => Err("the body has an operation that works on single elements only".to_string()),
    }
}

/// The inputs of an operation on elements that are contiguous in another variable than the destinations are. Blocks of
/// them are transposed.
fn transposed(nest: &Nest, tiling: &Tiling) -> Result<Vec<usize>, String> {
    let lane = tiling.lane;
    // A block stores all of its elements. Without a fold, guards split loops instead.
    let may_skip_stores = !nest.domain.constraints.is_empty() && nest.is_map_form();
    if may_skip_stores || has_tests(nest) {
        return Err("an operation on elements has constraints or guards".to_string());
    }
    if !tiling.vector_epilogue
        || nest.outputs.iter().any(|output| step_along(nest, &output.map, lane) != Some(1))
    {
        return Err("a destination is not contiguous along the lanes".to_string());
    }
    let misfits: Vec<usize> = misfits(nest, lane);
    if misfits.is_empty() {
        return Ok(misfits);
    }
    // Truth values in registers are masks, which are not transposed.
    let is_bool = |number: &usize| {
        let element = mlir::element_type(nest.inputs[*number].buffer.r#type());
        mlir::integer_width(element) == Some(1)
    };
    let fails =
        |reason: &str| Err(format!("an input is not contiguous along the lanes, and {reason}"));
    if misfits.iter().any(is_bool) {
        return fails("truth values are not transposed");
    }
    let [(across, size)] = tiling.unrolled[..] else {
        return fails("no other variable alone has a size");
    };
    let is_contiguous =
        |number: &usize| step_along(nest, &nest.inputs[*number].map, across) == Some(1);
    let is_short = |var| nest.extent(var).is_some_and(|extent| extent < tiling.lanes);
    if !misfits.iter().all(is_contiguous) {
        return fails("not along the other variable either");
    }
    if tiling.vectors != 1 || size != tiling.lanes || MAX_TRANSPOSED < size {
        return fails(&format!("the block is no square of at most {MAX_TRANSPOSED}"));
    }
    match is_short(lane) || is_short(across) {
        true => fails("the block is larger than the operation"),
        false => Ok(misfits),
    }
}

/// The inputs that are neither contiguous along the lanes nor equal for all of them.
pub(in crate::convert) fn misfits(nest: &Nest, lane: Var) -> Vec<usize> {
    let inputs = nest.inputs.iter().enumerate().filter(|(_, input)| input.is_used);
    inputs
        .filter(|(_, input)| !matches!(step_along(nest, &input.map, lane), Some(0 | 1)))
        .map(|(number, _)| number)
        .collect()
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
        // An epilogue reads few elements.
        None => {
            matches!(lane, Var::Dim(_))
                && !input.is_folded
                && input.map.constraints.is_empty()
                && !differs_at_runtime(nest, &input.map.results, lane)
        }
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
        !differs_at_runtime(nest, &[condition.expr], lane)
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
    excluded.extend(tiling.tightening(nest));
    excluded.extend(tiling.interior.iter().flat_map(|it| &it.constraints));
    let mut constraints = nest.domain.constraints.iter().enumerate();
    outer.into_iter().all(|var| nest.bound_needs(*var).is_subset(&rest))
        && tiling.ranges.iter().all(|var| nest.bound_needs(*var).is_disjoint(&blocked))
        && constraints.all(|(number, it)| {
            excluded.contains(&number) || nest.needs(&[it.expr]).is_disjoint(&blocked)
        })
}
