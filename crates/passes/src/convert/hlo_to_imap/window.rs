//! Reductions, and what moves a window over an array: `reduce`, `reduce-window` and
//! `select-and-scatter`.

use super::{
    Lowering,
    computation::build_computation,
    memory::{Memory, Point, build_inside, empty, extents, fold_box, for_each},
    scan,
    value::Array,
};
use crate::convert::{
    elements::{
        self,
        coding::{decode, encode},
        decode_all, encode_element,
        scalar::{self, combiner},
        scalars,
    },
    generic_builder::GenericBuilder,
    index_emitter::IndexMath,
    subscripts::identity,
};
use melior::ir::{Attribute as MlirAttribute, Type};
use std::iter;
use tc_dialects::{
    element::ElementType,
    hlo::{
        ArrayShape, Attribute, ComputationId, Instruction, Literal, ORDERED, Opcode,
        indexing::{Accesses, InstructionRef},
    },
    imap::{
        self, Accumulator, AnyIndexed, Combiner, CombinerKind, Indexed, ScatterPromises, Start,
    },
    mlir::{self, Builder, Val},
};
use tc_ir::{
    IndexingMap, Interval,
    map::{Constraint, Variable},
};

impl<'c> Lowering<'c, '_> {
    /// `reduce` and `reduce-window`.
    pub(super) fn reduce(
        &self,
        b: &Builder<'c>,
        at: InstructionRef,
        operands: &[&Array<'c>],
        results: &[&ArrayShape],
    ) -> Result<Vec<Array<'c>>, String> {
        let instruction = &self.module[at.computation][at.instruction];
        let applied = self.applied(instruction, Attribute::ToApply)?;
        let (sources, inits) = operands.split_at(operands.len() / 2);
        let mut accesses = self.over_output(at, 0, &[0])?;
        if accesses.is_empty(self.ir) {
            let results = results.iter().zip(inits);
            return results.map(|(shape, init)| self.fill(b, shape, init)).collect();
        }
        let combiner = match (sources, results) {
            ([source], [shape]) if source.element() == shape.element_type => {
                self.combiner(applied, source.element())
            }
            _ => None,
        };
        let widen: fn(ElementType) -> ElementType = match combiner {
            Some(_) => elements::sum_type,
            None => |element| element,
        };
        let starts = self.constants(b, at, sources.len(), widen);
        let is_ordered = combiner.is_none() && is_ordered(instruction);
        let is_encoded = |it: &&ArrayShape| is_encoded(it.element_type);
        if starts.is_none() && is_ordered && results.iter().any(is_encoded) {
            return self.fold_each(b, applied, accesses, operands, results);
        }
        let scan = scan::of_window(self.ir, &mut accesses);
        let mut nest = GenericBuilder::within(self.ir, accesses.domain.clone(), Vec::new());
        if let Some(scan) = scan {
            nest.scan(scan.dim, scan.is_exclusive);
        }
        for source in sources {
            nest.read(source.tensor, accesses.indices[0].clone());
        }
        for (shape, init) in results.iter().zip(inits) {
            let to = match starts.is_none() && is_ordered {
                true => self.fill(b, shape, init)?.tensor,
                false => empty(b, shape),
            };
            nest.write(to, accesses.index.clone(), Combiner::ASSIGN);
        }
        let generic = match (combiner, starts) {
            (Some(kind), starts) => {
                let (element, init) = (sources[0].element(), inits[0]);
                let start = starts.map(|starts| starts[0]).ok_or(init);
                fold_by_name(b, nest, element, kind, start)
            }
            (None, starts) => {
                if is_ordered {
                    nest.keep_order();
                }
                let elements: Vec<_> = sources
                    .iter()
                    .zip(results)
                    .map(|(it, shape)| (it.element(), shape.element_type))
                    .collect();
                let is_reversed = scan.is_some_and(|it| it.is_reversed);
                let starts = match starts {
                    Some(starts) => Starts::Constants(starts),
                    None if is_ordered => Starts::Destinations,
                    None => Starts::Arrays(inits),
                };
                self.fold_by_region(b, nest, &elements, (applied, is_reversed), starts)?
            }
        };
        let values = results.iter().zip(mlir::results(generic.op()));
        Ok(values.map(|(shape, tensor)| Array { tensor, shape: (*shape).clone() }).collect())
    }

    /// The constants that the last `count` operands of an instruction are, in the types with which
    /// bodies calculate with the element types that `widen` gives; `None` if one is computed.
    fn constants(
        &self,
        b: &Builder<'c>,
        at: InstructionRef,
        count: usize,
        widen: fn(ElementType) -> ElementType,
    ) -> Option<Vec<MlirAttribute<'c>>> {
        let computation = &self.module[at.computation];
        let operands: Vec<_> = computation.operands(&computation[at.instruction]).collect();
        let mut values = Vec::new();
        for operand in &operands[operands.len() - count..] {
            let literal = operand.literal().and_then(Literal::as_array)?;
            values.extend(scalar::numbers(b, literal, 0, widen(literal.element_type)));
        }
        Some(values)
    }

    /// A fold by a computation. `elements` are the types of the elements that are read and of those that are
    /// folded. The computation is given the new value first if it is folded in reverse.
    fn fold_by_region(
        &self,
        b: &Builder<'c>,
        mut nest: GenericBuilder<'c, '_>,
        elements: &[(ElementType, ElementType)],
        (applied, is_reversed): (ComputationId, bool),
        starts: Starts<'c, '_>,
    ) -> Result<AnyIndexed<'c>, String> {
        let (read, elements): (Vec<_>, Vec<_>) = elements.iter().copied().unzip();
        let parts = || elements.iter().flat_map(|it| iter::repeat_n(it.part(), it.num_parts()));
        let truth = b.int_type(1);
        let inits = if let Starts::Arrays(inits) = starts { inits } else { &[] };
        let num_flags = usize::from(!inits.is_empty());
        let flags = iter::repeat_n(truth, num_flags);
        let types: Vec<_> =
            flags.chain(parts().map(|part| elements::compute_type(b, part))).collect();
        inits.iter().for_each(|init| nest.read(init.tensor, Vec::new()));
        let accumulator = |(number, ty): (usize, &Type<'c>)| Accumulator {
            ty: *ty,
            kind: CombinerKind::Custom,
            identity: Some(match &starts {
                Starts::Constants(values) => values[number],
                _ => CombinerKind::Custom.identity(b.context, *ty),
            }),
            start: match starts {
                Starts::Destinations => Start::Destination(number),
                _ => Start::Identity,
            },
        };
        let accumulators = types.iter().enumerate().map(accumulator).collect();
        let epilogue = num_flags != 0 || elements.iter().copied().any(is_encoded);
        let generic = nest.build_fold(b, accumulators, epilogue);
        let (body, arguments) = b.inside(generic.body());
        let mut values = vec![body.integer(truth, 1); num_flags];
        let decoded = decode_all(&body, &read, &arguments[..elements.len()]);
        for ((value, from), to) in decoded.iter().zip(&read).zip(&elements) {
            values.extend(scalar::convert(&body, *from, *to, value));
        }
        imap::build_yield(&body, &values);
        if let Some(block) = generic.combiner() {
            let (combine, arguments) = b.inside(block);
            let (first, second) = arguments.split_at(types.len());
            let mut sides = [first, second];
            if is_reversed {
                sides.reverse();
            }
            let [(first_counts, first), (second_counts, second)] =
                sides.map(|side| side.split_at(num_flags));
            let both =
                scalars(&[first, second].concat(), elements.iter().chain(&elements).copied());
            let mut values = build_computation(&combine, self.module, applied, &both)?.concat();
            if let ([first_counts], [second_counts]) = (first_counts, second_counts) {
                for (number, value) in values.iter_mut().enumerate() {
                    let one = combine.select(*second_counts, *value, first[number]);
                    *value = combine.select(*first_counts, one, second[number]);
                }
                let counts = combine.value("arith.ori", &[*first_counts, *second_counts], truth);
                values.insert(0, counts);
            }
            imap::build_yield(&combine, &values);
        }
        if let Some(block) = generic.epilogue() {
            let (end, arguments) = b.inside(block);
            let (folded, inputs) = arguments.split_at(types.len());
            let mut values = scalars(&folded[num_flags..], elements.iter().copied());
            if num_flags != 0 {
                let starts = decode_all(&end, &elements, &inputs[elements.len()..]);
                let both = [starts.clone(), values].concat();
                values = build_computation(&end, self.module, applied, &both)?;
                for (value, start) in values.iter_mut().flatten().zip(starts.iter().flatten()) {
                    *value = end.select(folded[0], *value, *start);
                }
            }
            let values = elements.iter().zip(&values);
            let stored = values.map(|(element, it)| encode_element(&end, *element, it));
            imap::build_yield(&end, &stored.collect::<Vec<_>>());
        }
        Ok(generic)
    }

    /// Folds by a computation, in loops over memory. The operands are the arrays read, then what the
    /// folds start from.
    fn fold_each(
        &self,
        b: &Builder<'c>,
        applied: ComputationId,
        accesses: Accesses,
        operands: &[&Array<'c>],
        results: &[&ArrayShape],
    ) -> Result<Vec<Array<'c>>, String> {
        let ir = self.ir;
        let accesses = &accesses.from_zero(ir);
        let (sources, inits) = operands.split_at(operands.len() / 2);
        let from: Vec<_> = sources.iter().map(|source| Memory::of(b, source)).collect();
        let start: Vec<_> = inits.iter().map(|init| Memory::of(b, init)).collect();
        let to: Vec<_> = results.iter().map(|shape| Memory::allocate(b, shape)).collect();
        let ranges = extents(ir, &accesses.domain.ranges);
        for_each(b, &results[0].dims, &mut |b, dims| {
            let first: Vec<_> = start.iter().flat_map(|memory| memory.load(b, &[])).collect();
            let folded = fold_box(b, &ranges, &first, &mut |b, ranges, carried| {
                let point = Point { ir, accesses, dims, ranges, runtimes: &[] };
                build_inside(b, point.is_inside(b), carried, &mut |b| {
                    let index = point.emit(b, &accesses.indices[0]);
                    let new = from.iter().map(|memory| memory.load(b, &index));
                    let old = scalars(carried, from.iter().map(Memory::element));
                    let arguments: Vec<_> = old.into_iter().chain(new).collect();
                    Ok(build_computation(b, self.module, applied, &arguments)?.concat())
                })
            })?;
            let values = scalars(&folded, to.iter().map(Memory::element));
            to.iter().zip(values).for_each(|(memory, value)| memory.store(b, dims, &value));
            Ok(())
        })?;
        Ok(to.into_iter().map(|memory| memory.array(b)).collect())
    }

    /// The combiner that a computation is, if it is one: a single operation on its parameters, in a
    /// type that is computed as it is stored.
    pub(super) fn combiner(
        &self,
        applied: ComputationId,
        element: ElementType,
    ) -> Option<CombinerKind> {
        let computation = &self.module[applied];
        let root = computation.root();
        let on_parameters = computation.instructions.len() == 3
            && root.operands.len() == 2
            && root.operands[0] != root.operands[1]
            && computation.operands(root).all(|it| it.opcode == Opcode::Parameter);
        if on_parameters { combiner(root.opcode, element) } else { None }
    }

    /// `select-and-scatter`: in each window one element of the operand is selected, and the source
    /// element of the window is added there.
    pub(super) fn select_and_scatter(
        &self,
        b: &Builder<'c>,
        at: InstructionRef,
        operands: &[&Array<'c>],
    ) -> Result<Array<'c>, String> {
        let ir = self.ir;
        let instruction = &self.module[at.computation][at.instruction];
        let (operand, source, init) = (operands[0], operands[1], operands[2]);
        let select = self.applied(instruction, Attribute::Select)?;
        let scatter = self.applied(instruction, Attribute::Scatter)?;
        let filled = self.fill(b, &operand.shape, init)?;
        // The result has the sizes of the operand: what may be written is what is compared.
        let accesses = self.over_operands(at, &[1])?.remove(0);
        if accesses.is_empty(ir) {
            return Ok(filled);
        }
        let places = self.selected_places(b, select, &accesses, operand)?;
        let domain = IndexingMap {
            dims: accesses.domain.dims.clone(),
            runtimes: vec![Variable::default()],
            ..IndexingMap::default()
        };
        let mut nest = GenericBuilder::within(ir, domain, Vec::new());
        nest.table(places, identity(ir, accesses.domain.dims.len()), false);
        let mut place = ir.runtime(0);
        let count = operand.shape.num_elements().unwrap_or(0);
        let interval = Interval::new(0, count.saturating_sub(1));
        nest.scatter(vec![Constraint { expr: place, interval }], ScatterPromises::default());
        nest.read(source.tensor, accesses.index.clone());
        let mut index = Vec::new();
        for extent in operand.dims().iter().rev() {
            let extent = ir.constant(*extent);
            index.insert(0, ir.modulo(place, extent));
            place = ir.floor_div(place, extent);
        }
        Ok(self.build_scatter(b, nest, scatter, &[&filled], &index)?.remove(0))
    }

    /// Per window, the row-major place of the element that a computation selects, or -1 if the window has
    /// none. Of two elements the computation is given the one that comes first in the window first.
    fn selected_places(
        &self,
        b: &Builder<'c>,
        select: ComputationId,
        accesses: &Accesses,
        operand: &Array<'c>,
    ) -> Result<Val<'c>, String> {
        let ir = self.ir;
        let (element, long, truth) = (operand.element(), b.int_type(64), b.int_type(1));
        let extents = extents(ir, &accesses.domain.dims);
        let shape = ArrayShape::new(ElementType::S64, extents.clone());
        let mut nest = GenericBuilder::within(ir, accesses.domain.clone(), Vec::new());
        nest.read(operand.tensor, accesses.indices[0].clone());
        nest.write(empty(b, &shape), identity(ir, extents.len()), Combiner::ASSIGN);
        // Whether anything is selected, the value, and its place.
        let part = elements::compute_type(b, element.part());
        let values = std::iter::repeat_n(part, element.num_parts());
        let types: Vec<_> = [truth].into_iter().chain(values).chain([long]).collect();
        let kind = CombinerKind::Custom;
        let accumulator = |ty: &Type<'c>| Accumulator {
            ty: *ty,
            kind,
            identity: Some(kind.identity(b.context, *ty)),
            start: Start::Identity,
        };
        let fold = nest.build_fold(b, types.iter().map(accumulator).collect(), true);
        let (body, arguments) = b.inside(fold.body());
        let dims =
            (0..accesses.domain.dims.len() as u32).map(|it| imap::build_index(&body, "dim", it));
        let ranges = (0..accesses.domain.ranges.len() as u32)
            .map(|it| imap::build_index(&body, "range", it));
        let point: Vec<_> = dims.chain(ranges).collect();
        let strided = accesses.indices[0].iter().zip(operand.dims());
        let place = strided.fold(ir.constant(0), |place, (index, extent)| {
            ir.add(ir.mul(place, ir.constant(*extent)), *index)
        });
        let map = IndexingMap {
            dims: vec![Variable::default(); accesses.domain.dims.len()],
            ranges: vec![Variable::default(); accesses.domain.ranges.len()],
            results: vec![place],
            ..IndexingMap::default()
        };
        let place = imap::build_apply(&body, ir, &map, &point)[0];
        let place = body.value("arith.index_cast", &[place], long);
        let values = decode_all(&body, &[element], &arguments).remove(0);
        let found = body.integer(truth, 1);
        imap::build_yield(&body, &[&[found], &values[..], &[place]].concat());

        if let Some(block) = fold.combiner() {
            let (c, arguments) = b.inside(block);
            let (old, new) = arguments.split_at(types.len());
            let split = |side: &[Val<'c>]| -> (Val<'c>, Vec<Val<'c>>, Val<'c>) {
                (side[0], side[1..types.len() - 1].to_vec(), side[types.len() - 1])
            };
            let ((old_found, old_values, old_place), (new_found, new_values, new_place)) =
                (split(old), split(new));
            let keeps = |first: &Vec<Val<'c>>, second: &Vec<Val<'c>>| {
                let arguments = [first.clone(), second.clone()];
                Ok::<_, String>(build_computation(&c, self.module, select, &arguments)?[0][0])
            };
            let is_first = c.compare_int("slt", old_place, new_place);
            let forward = keeps(&old_values, &new_values)?;
            let backward = scalar::not(&c, keeps(&new_values, &old_values)?);
            let keeps = c.select(is_first, forward, backward);
            let is_alone = scalar::not(&c, new_found);
            let keeps = c.and(old_found, c.value("arith.ori", &[is_alone, keeps], truth));
            let found = c.value("arith.ori", &[old_found, new_found], truth);
            let chosen =
                old[1..].iter().zip(&new[1..]).map(|(old, new)| c.select(keeps, *old, *new));
            imap::build_yield(&c, &[found].into_iter().chain(chosen).collect::<Vec<_>>());
        }
        if let Some(block) = fold.epilogue() {
            let (end, arguments) = b.inside(block);
            let none = end.integer(long, -1);
            let place = end.select(arguments[0], arguments[types.len() - 1], none);
            imap::build_yield(&end, &[place]);
        }
        Ok(mlir::result(fold.op(), 0))
    }
}

/// Whether elements are stored otherwise than a fold accumulates them.
fn is_encoded(element: ElementType) -> bool {
    elements::is_narrow(element) || element.is_complex()
}

/// Where the values come from with which the folds of a computation start.
enum Starts<'c, 'a> {
    /// Constants per part of the elements: by the contract of HLO, these are neutral.
    Constants(Vec<MlirAttribute<'c>>),
    /// Arrays of rank 0: an accumulator says whether there is a value, and the epilogue folds into them.
    Arrays(&'a [&'a Array<'c>]),
    /// The destinations, which are filled: for folds that keep their order.
    Destinations,
}

/// Whether the front end asks for the order of the elements: its functions need not be associative, as the
/// computations of HLO are.
fn is_ordered(instruction: &Instruction) -> bool {
    instruction.text(Attribute::FrontendAttributes) == Some(ORDERED)
}

/// A fold of one array by a combiner with a name. What is less exact than `f32` is folded in it. A
/// start that is no constant is combined at the end.
fn fold_by_name<'c>(
    b: &Builder<'c>,
    mut nest: GenericBuilder<'c, '_>,
    element: ElementType,
    kind: CombinerKind,
    start: Result<MlirAttribute<'c>, &Array<'c>>,
) -> AnyIndexed<'c> {
    let sum = elements::sum_type(element);
    let ty = elements::compute_type(b, sum);
    let decoded = |b: &Builder<'c>, stored| {
        scalar::convert(b, element, sum, &[decode(b, element, stored)])[0]
    };
    let mut accumulator = Accumulator { ty, kind, identity: None, start: Start::Identity };
    match start {
        Ok(value) if value != kind.identity(b.context, ty) => {
            accumulator.start = Start::Constant(value);
        }
        Ok(_) => {}
        Err(init) => nest.read(init.tensor, Vec::new()),
    }
    let epilogue = element != sum || start.is_err();
    let generic = nest.build_fold(b, vec![accumulator], epilogue);
    let (body, arguments) = b.inside(generic.body());
    imap::build_yield(&body, &[decoded(&body, arguments[0])]);
    if let Some(block) = generic.epilogue() {
        let (end, arguments) = b.inside(block);
        let mut folded = arguments[0];
        if start.is_err() {
            folded = kind.build(&end, decoded(&end, arguments[2]), folded);
        }
        let result = scalar::convert(&end, sum, element, &[folded])[0];
        imap::build_yield(&end, &[encode(&end, element, result)]);
    }
    generic
}
