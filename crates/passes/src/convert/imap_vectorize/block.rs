//! One block of results: its loads, its arithmetic and its stores.

use super::prefetch::Prefetch;
use crate::{
    convert::{
        index_emitter::IndexMath,
        loop_nest::{
            emit::{Nest, Scope, accessed, index_of},
            loops::reduction_loops,
            order::step_along,
            partial_sums::PartialSums,
            tiling::Tiling,
            vectors::{broadcast, extract, vector_type},
        },
    },
    loops,
};
use melior::ir::{Attribute, Type, ValueLike, operation::OperationLike};
use std::collections::{BTreeMap, HashMap};
use tc_dialects::{
    element::ElementType,
    imap::{self, Accumulator, CombinerKind, Indexed, Inside, Start},
    mlir::{self, Blk, Builder, Op, Val},
};
use tc_ir::{Constraint, IndexingMap, Var};

/// Elements of inputs that are loaded already: by the number of the input and the place
/// in the block.
type Loaded<'c> = HashMap<(usize, Vec<i64>), Lanes<'c>>;

/// A value that is the same in all lanes, or one per lane.
#[derive(Copy, Clone)]
struct Lanes<'c> {
    value: Val<'c>,
    is_vector: bool,
}

/// How many points of the lanes are left where they do not fill a block.
#[derive(Copy, Clone)]
pub enum Left<'c> {
    /// A number that is known.
    Known(i64),
    /// An index, calculated.
    Computed(Val<'c>),
}

/// A vector of a block: how many lanes it has, and which of them exist if not all do.
#[derive(Copy, Clone)]
struct Row<'c> {
    lanes: i64,
    mask: Option<Val<'c>>,
}

/// One block of results.
pub struct Block<'a, 'c> {
    nest: &'a Nest<'c>,
    tiling: &'a Tiling,
    /// The scope at its first point.
    scope: Scope<'c>,
    /// Per point: how far each unrolled variable is from the first point, and the number
    /// of the neighbouring vector.
    points: Vec<(Vec<i64>, i64)>,
    /// The neighbouring vectors.
    rows: Vec<Row<'c>>,
    /// The sizes along the unrolled variables.
    factors: Vec<i64>,
    /// Whether all points are in the interior.
    is_inside: bool,
}

impl<'a, 'c> Block<'a, 'c> {
    /// The block at the values that `scope` holds. `factors` are its sizes along the unrolled variables, and
    /// `is_inside` tells whether they are in the interior. `left` is the number of remaining points along the lanes,
    /// if they do not fill the block. If the number is known, the last vector has the next power of two of lanes.
    pub fn new(
        nest: &'a Nest<'c>,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        tiling: &'a Tiling,
        (factors, is_inside): (&[i64], bool),
        left: Option<Left<'c>>,
    ) -> Self {
        let full = Row { lanes: tiling.lanes, mask: None };
        let rows: Vec<_> = (0..tiling.vectors)
            .map_while(|vector| match left {
                None => Some(full),
                Some(Left::Computed(left)) => Some(Self::masked(tiling, builder, left, vector)),
                Some(Left::Known(left)) => {
                    let left = left - vector * tiling.lanes;
                    let lanes = (left.max(1) as u64).next_power_of_two() as i64;
                    match (left, lanes) {
                        (..=0, _) => None,
                        (left, _) if tiling.lanes <= left => Some(full),
                        (left, lanes) if left == lanes => Some(Row { lanes, mask: None }),
                        (left, lanes) => {
                            let mask = mask(builder, builder.index(left), lanes);
                            Some(Row { lanes, mask: Some(mask) })
                        }
                    }
                }
            })
            .collect();
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
            .flat_map(|point| (0..rows.len() as i64).map(move |vector| (point.clone(), vector)))
            .collect();
        let mut scope = scope.clone();
        if !tiling.lane_is_range() {
            let (lower, _) = nest.loop_bounds(builder, &mut scope, tiling.lane, &[]);
            scope.values.insert(tiling.lane, lower);
        }
        Self { nest, tiling, scope, points, rows, factors: factors.to_vec(), is_inside }
    }

    /// `scope` moved from the first point of the block to another one.
    fn at(
        &self,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        (offsets, vector): &(Vec<i64>, i64),
    ) -> Scope<'c> {
        let mut scope = scope.clone();
        let unrolled =
            self.tiling.unrolled.iter().map(|(var, _)| *var).zip(offsets.iter().copied());
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

    /// Neighbouring vector `vector` where `left` points of the lanes are left.
    fn masked(tiling: &Tiling, builder: &Builder<'c>, left: Val<'c>, vector: i64) -> Row<'c> {
        let offset = builder.index(vector * tiling.lanes);
        let left = builder.value("arith.subi", &[left, offset], builder.index_type());
        Row { lanes: tiling.lanes, mask: Some(mask(builder, left, tiling.lanes)) }
    }

    /// Emits the block.
    pub fn build(&self, builder: &Builder<'c>) {
        let nest = self.nest;
        let mut start = Vec::new();
        for point in &self.points {
            for accumulator in &nest.accumulators {
                start.push(self.start(builder, point, accumulator));
            }
        }
        let order = &self.tiling.ranges;
        let masked = self.tiling.masked(nest);
        let (mut tightening, mut tested) =
            nest.distribute_constraints(order, &|var| matches!(var, Var::Range(_)));
        let interior = self.tiling.interior.iter().filter(|_| self.is_inside);
        let holding: Vec<usize> =
            masked.iter().chain(interior.flat_map(|it| &it.constraints)).copied().collect();
        tightening.values_mut().for_each(|it| it.retain(|number| !holding.contains(number)));
        tested.retain(|number| !holding.contains(number));
        let lane = self.tiling.lane;
        let bounds = tightening.get(&lane).map(Vec::as_slice).unwrap_or_default();
        let sums = PartialSums::of(nest, order, self.tiling.chains());
        let strip = sums.as_ref().map(PartialSums::strip);
        let prefetch = Prefetch::of(nest, self.tiling, &self.factors, strip);
        let mut fold =
            |builder: &Builder<'c>, scope: &Scope<'c>, ranges: &[Var], held: &[Val<'c>]| {
                let outer = match ranges.split_last() {
                    Some((last, outer)) if *last == lane => outer,
                    _ => ranges,
                };
                let mut fold = |builder: &Builder<'c>, scope: &Scope<'c>, held: &[Val<'c>]| {
                    reduction_loops(
                        nest,
                        builder,
                        scope,
                        (outer, false),
                        &tightening,
                        held,
                        &mut |inside, scope, held| {
                            nest.guarded(inside, scope, &tested, held, &mut |inside, scope| {
                                match self.tiling.lane_is_range() {
                                    true => self.along_lanes(inside, scope, bounds, held),
                                    false => self.in_lanes(inside, scope, &masked, held),
                                }
                            })
                        },
                    )
                };
                match &prefetch {
                    Some(it) => it.build(nest, self.tiling, builder, scope, held, &mut fold),
                    None => fold(builder, scope, held),
                }
            };
        let folded = match sums {
            None => fold(builder, &self.scope, order, &start),
            Some(sums) => {
                let zeros: Vec<_> = self
                    .points
                    .iter()
                    .flat_map(|(_, vector)| nest.accumulators.iter().map(|it| (it, *vector)))
                    .map(|(accumulator, vector)| {
                        let zero = accumulator.build_identity(builder);
                        broadcast(builder, zero, self.rows[vector as usize].lanes)
                    })
                    .collect();
                let values = (&start[..], &zeros[..]);
                let scope = &self.scope;
                sums.build_in_values(nest, builder, scope, order, &tightening, values, &mut fold)
            }
        };
        if self.tiling.lane_is_range() {
            self.finish_points(builder, &folded);
        } else {
            self.finish_vectors(builder, &folded);
        }
    }

    /// What an accumulator starts from at a point. Lanes along a range start from the identity.
    fn start(
        &self,
        builder: &Builder<'c>,
        point: &(Vec<i64>, i64),
        accumulator: &Accumulator<'c>,
    ) -> Val<'c> {
        let row = self.rows[point.1 as usize];
        let start = match (accumulator.start, self.tiling.lane_is_range()) {
            (Start::Destination(number), false) => {
                let mut scope = self.at(builder, &self.scope, point);
                let output = &self.nest.outputs[number];
                let place = (output.buffer, &output.map);
                return self.load_vector(builder, &mut scope, place, None, row);
            }
            (Start::Constant(_), false) => {
                accumulator.build_start(builder, |_| unreachable!("it starts from a constant"))
            }
            _ => accumulator.build_identity(builder),
        };
        broadcast(builder, start, row.lanes)
    }

    /// The loop along lanes that are a range variable: full vectors, then the rest.
    fn along_lanes(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        constraints: &[usize],
        folded: &[Val<'c>],
    ) -> Vec<Val<'c>> {
        let lane = self.tiling.lane;
        let (lower, upper) = self.nest.loop_bounds(builder, scope, lane, constraints);
        let index = builder.index_type();
        let step = builder.index(self.tiling.width());
        let length = builder.value("arith.subi", &[upper, lower], index);
        let rest = builder.value("arith.remsi", &[length, step], index);
        let end = builder.value("arith.subi", &[upper, rest], index);
        let folded =
            loops::build_for(builder, (lower, end, step), folded, &mut |builder, value, folded| {
                let mut scope = scope.clone();
                scope.values.insert(lane, value);
                self.fold(builder, &mut scope, folded, &self.rows)
            });
        let is_divided = |extent| extent % self.tiling.width() == 0;
        if constraints.is_empty() && self.nest.extent(lane).is_some_and(is_divided) {
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
                let rows: Vec<_> = (0..self.tiling.vectors)
                    .map(|vector| Self::masked(self.tiling, builder, rest, vector))
                    .collect();
                // Lanes past the end must not count.
                self.fold_masked(builder, &mut scope, &folded, &rows)
            },
            &mut |_| folded.clone(),
        )
    }

    /// Folds in the lanes at which constraints hold, at one point of the range variables.
    fn in_lanes(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        constraints: &[usize],
        folded: &[Val<'c>],
    ) -> Vec<Val<'c>> {
        if constraints.is_empty() {
            return self.fold(builder, scope, folded, &self.rows);
        }
        let lane = self.tiling.lane;
        let (lower, upper) = self.nest.loop_bounds(builder, scope, lane, &[]);
        let (first, end) = self.nest.loop_bounds(builder, scope, lane, constraints);
        let same_first = builder.compare_int("eq", first, lower);
        let same_end = builder.compare_int("eq", end, upper);
        let hold_in_all = builder.and(same_first, same_end);
        let hold_in_some = builder.compare_int("slt", first, end);
        let in_some = |builder: &Builder<'c>| {
            let mut scope = scope.clone();
            scope.strips.insert(lane, (first, end));
            let rows: Vec<_> = (0..)
                .zip(&self.rows)
                .map(|(vector, row)| {
                    let offset = builder.index(vector * self.tiling.lanes);
                    let start = builder.value(
                        "arith.addi",
                        &[scope.values[&lane], offset],
                        offset.r#type(),
                    );
                    let number =
                        |value| builder.value("arith.subi", &[value, start], offset.r#type());
                    let before_end = mask(builder, number(end), row.lanes);
                    let from_first = self.lanes_from(builder, number(first), row.lanes);
                    let mask =
                        builder.value("arith.andi", &[before_end, from_first], before_end.r#type());
                    Row { mask: Some(mask), ..*row }
                })
                .collect();
            self.fold_masked(builder, &mut scope, folded, &rows)
        };
        loops::build_if(
            builder,
            hold_in_all,
            &mut |builder| self.fold(builder, &mut scope.clone(), folded, &self.rows),
            &mut |builder| {
                let otherwise = &mut |_: &Builder<'c>| folded.to_vec();
                loops::build_if(builder, hold_in_some, &mut |builder| in_some(builder), otherwise)
            },
        )
    }

    /// Folds in the lanes that the masks of rows leave.
    fn fold_masked(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        folded: &[Val<'c>],
        rows: &[Row<'c>],
    ) -> Vec<Val<'c>> {
        let new = self.fold(builder, scope, folded, rows);
        let num_values = self.nest.num_values();
        let points = self.points.iter().flat_map(|it| vec![it; num_values]);
        points
            .zip(new.into_iter().zip(folded))
            .map(|((_, vector), (new, old))| match rows[*vector as usize].mask {
                Some(mask) => builder.select(mask, new, *old),
                None => new,
            })
            .collect()
    }

    /// Evaluates the body at every point of the block and folds its values.
    fn fold(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        folded: &[Val<'c>],
        rows: &[Row<'c>],
    ) -> Vec<Val<'c>> {
        let nest = self.nest;
        let mut loaded = HashMap::new();
        let mut result = Vec::new();
        let num_folded = nest.accumulators.len();
        for (number, point) in self.points.iter().enumerate() {
            let row = rows[point.1 as usize];
            let mut here = self.at(builder, scope, point);
            let block = nest.generic.body();
            let values = self.evaluate(builder, &mut here, block, &[], point, row, &mut loaded);
            if nest.is_map_form() {
                result.extend(values);
                continue;
            }
            let held = &folded[number * num_folded..][..num_folded];
            result.extend(self.combine(builder, held, &values, row.lanes));
        }
        result
    }

    /// Folds vectors with a value per accumulator into others.
    fn combine(
        &self,
        builder: &Builder<'c>,
        folded: &[Val<'c>],
        values: &[Val<'c>],
        lanes: i64,
    ) -> Vec<Val<'c>> {
        let Some(combiner) = self.nest.generic.combiner() else {
            return self.nest.combine_by_name(builder, folded, values);
        };
        let vector = |value: &Val<'c>| Lanes { value: *value, is_vector: true };
        let both = folded.iter().chain(values).map(vector);
        let arguments = mlir::arguments(combiner).into_iter().map(mlir::value_key);
        let known = arguments.zip(both).collect();
        self.calculate(builder, &mut self.scope.clone(), combiner, known, lanes)
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
        row: Row<'c>,
        loaded: &mut Loaded<'c>,
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
            if self.tiling.transposed.contains(&number) && !loaded.contains_key(&key) {
                self.load_transposed(builder, number, loaded);
            }
            let lanes = match loaded.get(&key) {
                Some(lanes) => *lanes,
                None => {
                    let lanes = self.load_input(builder, scope, number, row);
                    loaded.insert(key, lanes);
                    lanes
                }
            };
            values.insert(mlir::value_key(*argument), lanes);
        }
        self.calculate(builder, scope, block, values, row.lanes)
    }

    /// Copies the operations of a block, whose arguments are known, on vectors and returns what it
    /// yields.
    fn calculate(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        block: Blk<'c>,
        mut values: BTreeMap<usize, Lanes<'c>>,
        lanes: i64,
    ) -> Vec<Val<'c>> {
        for op in mlir::ops(block) {
            let lanes_of = |value: Val<'c>| {
                let found = values.get(&mlir::value_key(value)).copied();
                found.unwrap_or(Lanes { value, is_vector: false })
            };
            if mlir::is(op, "imap.yield") {
                return mlir::operands(op)
                    .into_iter()
                    .map(|value| widened(builder, lanes_of(value), lanes))
                    .collect();
            }
            let operands: Vec<_> = mlir::operands(op).into_iter().map(lanes_of).collect();
            let result = mlir::results(op).first().map(|value| mlir::value_key(*value));
            let calculated = if let Some(var) = index_of(op) {
                self.index(builder, scope, var, lanes)
            } else if let Some(inside) = Inside::cast(op) {
                let conditions = inside.conditions(&self.nest.ir);
                let always =
                    || Lanes { value: builder.integer(builder.int_type(1), 1), is_vector: false };
                self.inside(builder, scope, &conditions, lanes).unwrap_or_else(always)
            } else {
                self.copy(builder, op, &operands, lanes)
            };
            values.extend(result.map(|result| (result, calculated)));
        }
        Vec::new()
    }

    /// The value of a variable in each lane.
    fn index(&self, builder: &Builder<'c>, scope: &Scope<'c>, var: Var, lanes: i64) -> Lanes<'c> {
        let first = scope.values[&var];
        if var != self.tiling.lane {
            return Lanes { value: first, is_vector: false };
        }
        let ty = vector_type(first.r#type(), lanes);
        let steps = builder.value("vector.step", &[], ty);
        let first = broadcast(builder, first, lanes);
        Lanes { value: builder.value("arith.addi", &[first, steps], ty), is_vector: true }
    }

    /// The offsets of a point in the variables that a map depends on: where they are
    /// equal, so is the element.
    fn place(&self, map: &IndexingMap, (offsets, vector): &(Vec<i64>, i64)) -> Vec<i64> {
        let needs = self.nest.needs(&accessed(map));
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
        row: Row<'c>,
    ) -> Lanes<'c> {
        let input = &self.nest.inputs[number];
        if self.nest.needs(&input.map.results).contains(&self.tiling.lane) {
            let inside = self.inside(builder, scope, &input.map.constraints, row.lanes);
            let mask = match (row.mask, inside) {
                (Some(mask), Some(inside)) => {
                    let ty = mask.r#type();
                    Some(builder.value("arith.andi", &[mask, inside.value], ty))
                }
                (mask, inside) => mask.or(inside.map(|it| it.value)),
            };
            let is_contiguous = step_along(self.nest, &input.map, self.tiling.lane) == Some(1);
            let (row, place) = (Row { mask, ..row }, (input.buffer, &input.map));
            let value = match is_contiguous {
                true => self.load_vector(builder, scope, place, input.fill, row),
                false => self.load_strided(builder, scope, place, row),
            };
            Lanes { value, is_vector: true }
        } else {
            let value = self.nest.load_at(builder, scope, input.buffer, &input.map, input.fill);
            Lanes { value, is_vector: false }
        }
    }

    /// In which lanes conditions hold; `None` in all of them. The value is a vector.
    fn inside(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        conditions: &[Constraint],
        lanes: i64,
    ) -> Option<Lanes<'c>> {
        let nest = self.nest;
        let index = builder.index_type();
        let mask_type = vector_type(builder.int_type(1), lanes);
        let mut masks = Vec::new();
        for condition in conditions {
            if !nest.needs(&[condition.expr]).contains(&self.tiling.lane) {
                let holds = nest.condition(builder, scope, &[*condition]);
                masks.extend(holds.map(|holds| broadcast(builder, holds, lanes)));
                continue;
            }
            let rises = nest.ir.coefficient(condition.expr, self.tiling.lane) == Some(1);
            let first = nest.exprs(builder, scope, &[condition.expr], false)[0];
            let distance = |from, to| builder.value("arith.subi", &[to, from], index);
            // The values of the lanes are `first`, `first + 1`, .., or `first`, `first - 1`, ..
            let (lo, hi) = (condition.interval.lo, condition.interval.hi);
            if lo != i64::MIN {
                let end = builder.index(lo);
                masks.push(match rises {
                    true => self.lanes_from(builder, distance(first, end), lanes),
                    false => self.lanes_to(builder, distance(end, first), lanes),
                });
            }
            if hi != i64::MAX {
                let end = builder.index(hi);
                masks.push(match rises {
                    true => self.lanes_to(builder, distance(first, end), lanes),
                    false => self.lanes_from(builder, distance(end, first), lanes),
                });
            }
        }
        let all = masks.into_iter().reduce(|x, y| builder.value("arith.andi", &[x, y], mask_type));
        all.map(|value| Lanes { value, is_vector: true })
    }

    /// The lanes from a number on.
    fn lanes_from(&self, builder: &Builder<'c>, first: Val<'c>, lanes: i64) -> Val<'c> {
        let before = mask(builder, first, lanes);
        let one = builder.integer(builder.int_type(1), 1);
        let all = broadcast(builder, one, lanes);
        builder.value("arith.xori", &[before, all], all.r#type())
    }

    /// The lanes up to a number.
    fn lanes_to(&self, builder: &Builder<'c>, last: Val<'c>, lanes: i64) -> Val<'c> {
        let one = builder.index(1);
        mask(builder, builder.value("arith.addi", &[last, one], builder.index_type()), lanes)
    }

    /// Neighbouring elements, and a constant in the lanes that a mask leaves out.
    fn load_vector(
        &self,
        builder: &Builder<'c>,
        scope: &mut Scope<'c>,
        (buffer, map): (Val<'c>, &IndexingMap),
        fill: Option<Attribute<'c>>,
        row: Row<'c>,
    ) -> Val<'c> {
        let element = mlir::element_type(buffer.r#type());
        let ty = vector_type(element, row.lanes);
        let indices = self.nest.exprs(builder, scope, &map.results, true);
        let place = [&[buffer], &indices[..]].concat();
        let Some(mask) = row.mask else { return builder.value("vector.load", &place, ty) };
        let others = imap::build_fill(builder, fill, element);
        let others = broadcast(builder, others, row.lanes);
        builder.value("vector.maskedload", &[&place[..], &[mask, others]].concat(), ty)
    }

    /// Elements that are no neighbours, one by one. A lane that a mask leaves out has the element of the
    /// nearest lane of the block that exists.
    fn load_strided(
        &self,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        (buffer, map): (Val<'c>, &IndexingMap),
        row: Row<'c>,
    ) -> Val<'c> {
        let (nest, lane, index) = (self.nest, self.tiling.lane, builder.index_type());
        let mut scope = scope.clone();
        let first = scope.values[&lane];
        let (lower, upper) = nest.loop_bounds(builder, &mut scope, lane, &[]);
        let last = builder.value("arith.subi", &[upper, builder.index(1)], index);
        let elements: Vec<_> = (0..row.lanes)
            .map(|number| {
                let mut value = builder.value("arith.addi", &[first, builder.index(number)], index);
                if row.mask.is_some() {
                    value = builder.value("arith.minsi", &[value, last], index);
                    value = builder.value("arith.maxsi", &[value, lower], index);
                }
                scope.values.insert(lane, value);
                nest.load_at(builder, &mut scope, buffer, map, None)
            })
            .collect();
        let ty = vector_type(mlir::element_type(buffer.r#type()), row.lanes);
        builder.value("vector.from_elements", &elements, ty)
    }

    /// Loads a square block of an input that is contiguous in the unrolled variable, one
    /// vector per lane, and transposes it into one vector per unrolled point.
    fn load_transposed(&self, builder: &Builder<'c>, number: usize, loaded: &mut Loaded<'c>) {
        let input = &self.nest.inputs[number];
        let mut rows = Vec::new();
        for lane in 0..self.tiling.lanes {
            let mut scope = self.scope.clone();
            if let Some(value) = scope.values.get_mut(&self.tiling.lane) {
                let offset = builder.index(lane);
                *value = builder.value("arith.addi", &[*value, offset], builder.index_type());
            }
            let place = (input.buffer, &input.map);
            rows.push(self.load_vector(builder, &mut scope, place, None, self.rows[0]));
        }
        for (offset, value) in self.transpose(builder, rows).into_iter().enumerate() {
            let place = self.place(&input.map, &(vec![offset as i64], 0));
            loaded.insert((number, place), Lanes { value, is_vector: true });
        }
    }

    /// Transposes a square of a power of two. In round `h` the squares of `h` by `h`
    /// elements beside the diagonal of each square of `2h` by `2h` change places.
    fn transpose(&self, builder: &Builder<'c>, mut rows: Vec<Val<'c>>) -> Vec<Val<'c>> {
        let size = rows.len();
        let mut half = 1;
        while half < size {
            // Lanes of the second operand are numbered after those of the first.
            let pick = |second: bool| -> Vec<i64> {
                let shift = if second { half } else { 0 };
                (0..size)
                    .map(|lane| match lane & half == 0 {
                        true => (lane + shift) as i64,
                        false => (size + lane - half + shift) as i64,
                    })
                    .collect()
            };
            let masks = [false, true].map(|it| mlir::i64_array(builder.context, &pick(it)));
            for first in (0..size).filter(|row| row & half == 0) {
                let pair = [rows[first], rows[first + half]];
                let [low, high] = masks.map(|mask| {
                    let ty = pair[0].r#type();
                    builder.value_with("vector.shuffle", &pair, ty, &[("mask", mask)])
                });
                (rows[first], rows[first + half]) = (low, high);
            }
            half *= 2;
        }
        rows
    }

    /// Copies an operation, on vectors if any of its operands is one.
    fn copy(
        &self,
        builder: &Builder<'c>,
        op: Op<'c>,
        operands: &[Lanes<'c>],
        lanes: i64,
    ) -> Lanes<'c> {
        let is_vector = operands.iter().any(|operand| operand.is_vector);
        let values: Vec<_> = operands
            .iter()
            .map(
                |operand| if is_vector { widened(builder, *operand, lanes) } else { operand.value },
            )
            .collect();
        let result = mlir::result(op, 0).r#type();
        let ty = if is_vector { vector_type(result, lanes) } else { result };
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
    fn finish_vectors(&self, builder: &Builder<'c>, folded: &[Val<'c>]) {
        let nest = self.nest;
        let epilogue = nest.generic.epilogue();
        let mut loaded = HashMap::new();
        for (point, folded) in self.points.iter().zip(folded.chunks(nest.num_values())) {
            let row = self.rows[point.1 as usize];
            let mut scope = self.at(builder, &self.scope, point);
            if self.is_held() {
                let first = point.1 * self.tiling.lanes;
                let place = [builder.index(self.row_of(point)), builder.index(first)];
                for (buffer, value) in self.scope.scratch.iter().zip(folded) {
                    builder.op("vector.store", &[&[*value, *buffer], &place[..]].concat(), &[]);
                }
                continue;
            }
            let stored = match epilogue {
                Some(epilogue) if self.tiling.vector_epilogue => {
                    self.evaluate(builder, &mut scope, epilogue, folded, point, row, &mut loaded)
                }
                _ => folded.to_vec(),
            };
            for (output, value) in nest.outputs.iter().zip(stored) {
                let indices = nest.exprs(builder, &mut scope, &output.map.results, true);
                let place = [&[output.buffer], &indices[..]].concat();
                match row.mask {
                    Some(mask) => builder.op(
                        "vector.maskedstore",
                        &[&place[..], &[mask, value]].concat(),
                        &[],
                    ),
                    None => builder.op("vector.store", &[&[value], &place[..]].concat(), &[]),
                };
            }
        }
        if epilogue.is_some() && !self.tiling.vector_epilogue {
            self.finish_one_by_one(builder);
        }
    }

    /// Whether scratch memory holds the accumulators of the block.
    fn is_held(&self) -> bool {
        !self.scope.scratch.is_empty()
    }

    /// The number of the row of the block that a point is in.
    fn row_of(&self, point: &(Vec<i64>, i64)) -> i64 {
        let before = self.points.iter().filter(|it| it.1 == 0).take_while(|it| it.0 != point.0);
        before.count() as i64
    }

    /// Runs an epilogue that does not work on vectors, in loops over the block that was stored.
    fn finish_one_by_one(&self, builder: &Builder<'c>) {
        let last = self.points.last().map_or(&[][..], |(offsets, _)| offsets);
        let row = builder.index(0);
        self.finish_rows(builder, &self.scope, (&self.tiling.unrolled[..last.len()], last), row);
    }

    /// The loops over the unrolled variables, whose last offsets are given, and over the lanes. `row` is
    /// the number of the rows before, divided by the rows of one iteration.
    fn finish_rows(
        &self,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        (unrolled, last): (&[(Var, i64)], &[i64]),
        row: Val<'c>,
    ) {
        let index = builder.index_type();
        let one = builder.index(1);
        let (Some(((var, _), unrolled)), Some((end, last))) =
            (unrolled.split_first(), last.split_first())
        else {
            return self.finish_row(builder, scope, row);
        };
        let count = builder.index(end + 1);
        let bounds = (builder.index(0), count, one);
        loops::build_for(builder, bounds, &[], &mut |builder, offset, _| {
            let mut scope = scope.clone();
            if let Some(first) = scope.values.get(var) {
                let value = builder.value("arith.addi", &[*first, offset], index);
                scope.values.insert(*var, value);
            }
            let before = builder.value("arith.muli", &[row, count], index);
            let row = builder.value("arith.addi", &[before, offset], index);
            self.finish_rows(builder, &scope, (unrolled, last), row);
            Vec::new()
        });
    }

    fn finish_row(&self, builder: &Builder<'c>, scope: &Scope<'c>, row: Val<'c>) {
        let nest = self.nest;
        let (lower, upper) = self.scope.strips[&self.tiling.lane];
        let bounds = (lower, upper, builder.index(1));
        loops::build_for(builder, bounds, &[], &mut |builder, value, _| {
            let mut scope = scope.clone();
            scope.values.insert(self.tiling.lane, value);
            let folded = match self.is_held() {
                true => {
                    let offset = builder.value("arith.subi", &[value, lower], value.r#type());
                    let buffers = self.scope.scratch.iter();
                    buffers.map(|it| loops::build_load(builder, *it, &[row, offset])).collect()
                }
                false => {
                    let numbers = 0..nest.outputs.len();
                    numbers.map(|it| nest.load_output(builder, &mut scope, it)).collect()
                }
            };
            let stored = nest.finish(builder, &mut scope, folded);
            for (number, value) in stored.into_iter().enumerate() {
                nest.store_output(builder, &mut scope, number, value);
            }
            Vec::new()
        });
    }

    /// Folds each vector across its lanes and stores the results one by one.
    fn finish_points(&self, builder: &Builder<'c>, folded: &[Val<'c>]) {
        let nest = self.nest;
        let num_values = nest.accumulators.len();
        let neighbours = num_values * self.tiling.vectors as usize;
        let firsts = self.points.iter().filter(|(_, vector)| *vector == 0);
        for (point, folded) in firsts.zip(folded.chunks(neighbours)) {
            let mut scope = self.at(builder, &self.scope, point);
            let vectors = folded.chunks(num_values).map(<[_]>::to_vec);
            let combine = |x: Vec<_>, y: Vec<_>| self.combine(builder, &x, &y, self.tiling.lanes);
            let vector = vectors.reduce(combine).unwrap_or_default();
            let mut results = match nest.generic.has_combiner() {
                true => self.reduce_horizontally_by_region(builder, vector),
                false => {
                    let accumulators = nest.accumulators.iter().zip(vector);
                    accumulators
                        .map(|(it, value)| reduce_horizontally(builder, it.kind, value, it.ty))
                        .collect()
                }
            };
            if nest.accumulators.iter().any(|it| it.start != Start::Identity) {
                let start: Vec<_> =
                    (0..num_values).map(|number| nest.start(builder, &mut scope, number)).collect();
                results = nest.combine(builder, &mut scope, &start, &results);
            }
            let stored = nest.finish(builder, &mut scope, results);
            for (number, value) in stored.into_iter().enumerate() {
                nest.store_output(builder, &mut scope, number, value);
            }
        }
    }

    /// Folds vectors across their lanes by the combiner: the second half into the first half, until one
    /// lane is left.
    fn reduce_horizontally_by_region(
        &self,
        builder: &Builder<'c>,
        mut vector: Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        let mut lanes = self.tiling.lanes;
        while 1 < lanes {
            lanes /= 2;
            let [low, high] = [0, lanes].map(|first| {
                let lanes: Vec<i64> = (first..first + lanes).collect();
                let mask = mlir::i64_array(builder.context, &lanes);
                let pick = |value: &Val<'c>| {
                    let element = mlir::element_type(value.r#type());
                    let ty = vector_type(element, lanes.len() as i64);
                    builder.value_with("vector.shuffle", &[*value, *value], ty, &[("mask", mask)])
                };
                vector.iter().map(pick).collect::<Vec<_>>()
            });
            vector = self.combine(builder, &low, &high, lanes);
        }
        vector.iter().map(|value| extract(builder, *value, 0)).collect()
    }
}

/// Folds a vector across its lanes by a combiner with a name.
fn reduce_horizontally<'c>(
    builder: &Builder<'c>,
    kind: CombinerKind,
    vector: Val<'c>,
    element: Type<'c>,
) -> Val<'c> {
    let name = match kind {
        CombinerKind::Add => "add",
        CombinerKind::Mul => "mul",
        CombinerKind::MinF => "minnumf",
        CombinerKind::MaxF => "maxnumf",
        CombinerKind::MinS => "minsi",
        CombinerKind::MaxS => "maxsi",
        CombinerKind::MinU => "minui",
        CombinerKind::MaxU => "maxui",
        CombinerKind::And => "and",
        CombinerKind::Or => "or",
        CombinerKind::MinimumF => "minimumf",
        CombinerKind::MaximumF => "maximumf",
        CombinerKind::Assign | CombinerKind::Custom => {
            unreachable!("vectors fold by combiners with a name")
        }
    };
    if matches!(kind, CombinerKind::MinF | CombinerKind::MaxF) && mlir::byte_width(element) < 4 {
        // LLVM calls 'fminf' and 'fmaxf' for these (LLVM 22).
        let single = mlir::float_type(builder.context, ElementType::F32);
        let lanes = mlir::shape(vector.r#type())[0].expect("the lanes of a vector are known");
        let wide = builder.value("arith.extf", &[vector], vector_type(single, lanes));
        let folded = reduce_horizontally(builder, kind, wide, single);
        return builder.value("arith.truncf", &[folded], element);
    }
    let kind = mlir::parse_attribute(builder.context, &format!("#vector.kind<{name}>"));
    let flags = mlir::parse_attribute(builder.context, "#arith.fastmath<reassoc>");
    let mut attributes = vec![("kind", kind)];
    if mlir::is_float(element) {
        attributes.push(("fastmath", flags));
    }
    builder.value_with("vector.reduction", &[vector], element, &attributes)
}

fn widened<'c>(builder: &Builder<'c>, value: Lanes<'c>, lanes: i64) -> Val<'c> {
    if value.is_vector { value.value } else { broadcast(builder, value.value, lanes) }
}

/// The first `left` of so many lanes.
fn mask<'c>(builder: &Builder<'c>, left: Val<'c>, lanes: i64) -> Val<'c> {
    builder.value("vector.create_mask", &[left], vector_type(builder.int_type(1), lanes))
}
