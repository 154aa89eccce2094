//! `PartialReductionOpInterface` of `imap.generic`: a reduction in parts.
//!
//! Partial results are tensors of the identity of their combiner, with one dimension more for each
//! split range, after those of the destination. A tile accumulates into them; the merge reduces
//! them, from the start of the operation and with its epilogue.

use super::{
    Access, Accumulator, Generic, Indexed, Inside, Runtime, Start, View, build_yield,
    substitute_in_conditions,
    tiling::{Index, Reason, Slice, Span, Tiled, Tiler, copy_attributes},
};
use crate::mlir::{self, Builder, Op, Val, ValueMap};
use melior::ir::ValueLike;
use std::collections::HashMap;
use tc_ir::{
    Context, Interval,
    expr::Var,
    map::{IndexingMap, Variable},
};

/// How a reduction is split.
#[derive(Clone, Debug)]
pub struct Split<'c> {
    /// The loops that are split, by their number; they are ranges.
    pub loops: Vec<usize>,
    /// The partial result that a tile belongs to, per loop. If absent, each iteration of a tile has
    /// one of its own.
    pub places: Option<Vec<Index<'c>>>,
}

/// Rejects what is not a split of a reduction of tensors.
fn check(tiler: &Tiler, split: &Split) -> Result<(), Reason> {
    let is_range = |number: &usize| {
        tiler
            .loops
            .get(*number)
            .is_some_and(|it| matches!(it.var, Var::Range(_)) && it.has_bounds())
    };
    if split.loops.is_empty() || !split.loops.iter().all(is_range) {
        return Err("cannot split a loop that is not a range, or is bounded by data".to_string());
    }
    if !tiler.accesses.iter().all(|it| mlir::is_tensor(it.value.r#type())) {
        return Err("cannot split an operation on buffers; split before bufferization".to_string());
    }
    if tiler.generic.keeps_order() {
        return Err("cannot split an ordered fold".to_string());
    }
    // Upstream replaces the destinations by the partial results, one for one.
    let is_paired = tiler.view.accumulators.len() == tiler.view.outputs.len();
    if !is_paired {
        return Err("cannot split a fold with other accumulators than destinations".to_string());
    }
    Ok(())
}

impl<'c> Tiler<'_, 'c> {
    /// The additional dimensions of the partial results.
    fn split_slices(&mut self, split: &Split<'c>) -> Vec<Slice> {
        let ir = self.ir;
        let mut slices = Vec::new();
        for (place, number) in split.loops.iter().enumerate() {
            slices.push(match &split.places {
                None => Slice {
                    offset: ir.constant(0),
                    size: self.size(*number),
                    index: self.zero_based(*number),
                    is_whole: false,
                },
                Some(places) => Slice {
                    offset: self.expr(places[place], "part", Interval::NON_NEGATIVE),
                    size: ir.constant(1),
                    index: ir.constant(0),
                    is_whole: false,
                },
            });
        }
        slices
    }
}

/// Tensors of the identity for the partial results, given the sizes of the loops.
///
/// # Errors
/// A split loop is not a range, or the operation works on buffers.
pub fn initial_tensors<'c>(
    generic: Generic<'c>,
    builder: Builder<'c>,
    sizes: &[Index<'c>],
    split: &Split<'c>,
) -> Result<Vec<Val<'c>>, Reason> {
    let ir = Context::new();
    let mut tiler = Tiler::new(&ir, generic.into(), builder);
    check(&tiler, split)?;
    let mut tensors = Vec::new();
    for (init, accumulator) in tiler.view.inits().into_iter().zip(generic.accumulators()) {
        let rank = mlir::shape(init.r#type()).len();
        let mut extents: Vec<_> = (0..rank).map(|dim| tiler.extent(init, dim)).collect();
        for number in &split.loops {
            let size = *sizes.get(*number).ok_or("expected a size for each loop")?;
            extents.push(tiler.expr(size, "size", Interval::NON_NEGATIVE));
        }
        let extents: Vec<_> = extents.into_iter().map(|extent| tiler.index(extent)).collect();
        tensors.push(build_identities(&ir, &builder, &extents, &accumulator));
    }
    Ok(tensors)
}

/// A tensor with the identity of an accumulator in all elements.
fn build_identities<'c>(
    ir: &Context,
    builder: &Builder<'c>,
    extents: &[Index<'c>],
    accumulator: &Accumulator<'c>,
) -> Val<'c> {
    let (mut shape, mut sizes, mut dims) = (Vec::new(), Vec::new(), Vec::new());
    for extent in extents {
        match *extent {
            Index::Constant(extent) => {
                shape.push(Some(extent));
                dims.push(Variable::bounded(ir, Interval::new(0, extent.saturating_sub(1))));
            }
            Index::Value(extent) => {
                let last = ir.wrap(ir.runtime(sizes.len() as u32)) - 1;
                dims.push(Variable::between(ir.constant(0), last.expr()));
                shape.push(None);
                sizes.push(extent);
            }
        }
    }
    let empty = builder.value("tensor.empty", &sizes, mlir::tensor_type(&shape, accumulator.ty));
    let mut domain = IndexingMap::identity_of(ir, dims);
    domain.runtimes = vec![Variable::bounded(ir, Interval::new(0, i64::MAX)); sizes.len()];
    let outputs = vec![Access::new(empty, std::mem::take(&mut domain.results))];
    let view = View {
        domain,
        runtimes: sizes.into_iter().map(Runtime::Index).collect(),
        inputs: Vec::new(),
        outputs,
        accumulators: Vec::new(),
        ordered: false,
        combiner: None,
    };
    let fill = view.build(ir, builder, false);
    let inside = Builder::at_end(builder.context, fill.body(), builder.location);
    let identity = accumulator.build_identity(&inside);
    build_yield(&inside, &[identity]);
    mlir::result(fill.op(), 0)
}

/// The operation on a tile, which accumulates into partial results.
///
/// # Errors
/// As [`initial_tensors`], or the bounds of a loop that is cut depend on data.
pub fn tile<'c>(
    generic: Generic<'c>,
    builder: Builder<'c>,
    partials: &[Val<'c>],
    tile: &[Span<'c>],
    split: &Split<'c>,
) -> Result<Tiled<'c>, Reason> {
    let ir = Context::new();
    let mut tiler = Tiler::new(&ir, generic.into(), builder);
    check(&tiler, split)?;
    tiler.cut(tile)?;
    let (mut accesses, mut slices) = (Vec::new(), Vec::new());
    for number in 0..tiler.accesses.len() {
        let mut parts = tiler.slices(number);
        let mut operand = tiler.accesses[number].value;
        if let Some(destination) = tiler.destinations().position(|it| it == number) {
            operand = *partials.get(destination).ok_or("expected a tensor for each result")?;
            parts.extend(tiler.split_slices(split));
        }
        let operand = tiler.slice_operand(operand, &parts, &mut slices);
        accesses.push(Access::new(operand, parts.iter().map(|part| part.index).collect()));
    }
    let (mut view, runtimes) = tiler.tile_view(accesses);
    for (number, accumulator) in view.accumulators.iter_mut().enumerate() {
        accumulator.start = Start::Destination(number);
    }
    let mut renumbered = HashMap::new();
    if split.places.is_none() {
        let (mut dims, mut ranges) = (tiler.view.domain.dims.len() as u32, 0);
        let mut converted = Vec::new();
        for (number, it) in tiler.loops.iter().enumerate() {
            let Var::Range(range) = it.var else { continue };
            let (make, count): (fn(u32) -> Var, _) = if split.loops.contains(&number) {
                converted.push(range);
                (Var::Dim, &mut dims)
            } else {
                (Var::Range, &mut ranges)
            };
            renumbered.insert(it.var, make(*count));
            *count += 1;
        }
        view.domain.convert_ranges_to_dimensions(&ir, &converted);
        let renumbered = |var| Some(ir.var(*renumbered.get(&var)?));
        view.accesses_mut().for_each(|it| it.substitute(&ir, &renumbered));
    }
    let new = view.build(&ir, &builder, false);
    let renumber = |var| renumbered.get(&var).copied().unwrap_or(var);
    tiler.copy_region(generic.body(), new.body(), &renumber, &runtimes);
    copy_attributes(tiler.generic.op(), new.op());
    Ok(Tiled { slices, op: new.op() })
}

/// The position of the tile of a partial result.
///
/// # Errors
/// As [`tile`].
pub fn result_position<'c>(
    generic: Generic<'c>,
    builder: Builder<'c>,
    result: usize,
    tile: &[Span<'c>],
    split: &Split<'c>,
) -> Result<Vec<Span<'c>>, Reason> {
    let ir = Context::new();
    let mut tiler = Tiler::new(&ir, generic.into(), builder);
    check(&tiler, split)?;
    tiler.cut(tile)?;
    let mut slices = tiler.slices(tiler.view.inputs.len() + result);
    slices.extend(tiler.split_slices(split));
    Ok(slices.iter().map(|slice| tiler.span(slice)).collect())
}

/// The reduction of partial results.
///
/// # Errors
/// As [`initial_tensors`], or the epilogue depends on data that is read per range.
pub fn merge<'c>(
    generic: Generic<'c>,
    builder: Builder<'c>,
    partials: &[Val<'c>],
    split: &Split<'c>,
) -> Result<Op<'c>, Reason> {
    let ir = Context::new();
    let mut tiler = Tiler::new(&ir, generic.into(), builder);
    check(&tiler, split)?;
    let first = *partials.first().ok_or("expected a tensor for each result")?;
    let rank = mlir::shape(first.r#type()).len();
    let mut ranges = Vec::new();
    for (place, number) in split.loops.iter().enumerate() {
        let extent = tiler.extent(first, rank - split.loops.len() + place);
        let variable = Variable::between(ir.constant(0), (ir.wrap(extent) - 1).expr());
        let name = tiler.view.domain.variable(tiler.loops[*number].var);
        let name = name.and_then(|variable| variable.name.clone());
        ranges.push(Variable { name, ..variable });
    }
    // What the ranges hold is folded, constraints on it included.
    let mut domain = IndexingMap { constraints: Vec::new(), ranges, ..tiler.view.domain.clone() };
    domain.runtimes = tiler.variables.clone();
    let mut inputs = Vec::new();
    for (partial, output) in partials.iter().zip(&tiler.view.outputs) {
        let mut subscripts = output.subscripts.clone();
        subscripts.extend((0..split.loops.len() as u32).map(|number| ir.range(number)));
        inputs.push(Access::new(*partial, subscripts));
    }
    // The inputs that the epilogue uses.
    let arguments = generic.epilogue().map(mlir::arguments).unwrap_or_default();
    let kept: Vec<usize> = arguments
        .iter()
        .skip(partials.len())
        .enumerate()
        .filter(|(_, argument)| !mlir::uses(**argument).is_empty())
        .map(|(number, _)| number)
        .collect();
    inputs.extend(kept.iter().map(|number| tiler.view.inputs[*number].clone()));
    let elements = tiler.view.runtimes.iter().cloned();
    let added = tiler.values[tiler.view.runtimes.len()..].iter().copied().map(Runtime::Index);
    let mut view = View {
        domain,
        runtimes: elements.chain(added).collect(),
        inputs,
        outputs: tiler.view.outputs.clone(),
        accumulators: tiler.view.accumulators.clone(),
        ordered: tiler.view.ordered,
        combiner: tiler.view.combiner,
    };
    let epilogue: Vec<_> = generic.epilogue().into_iter().collect();
    let conditions = Inside::conditions_in(&ir, &epilogue);
    let runtimes = view.drop_unused_runtimes(&ir, &conditions);
    let is_range = |var: &Var| matches!(var, Var::Range(_));
    let mut elements = view.runtimes.iter().filter_map(Runtime::access);
    if elements.any(|it| ir.vars_of_all(&it.exprs()).iter().any(is_range)) {
        return Err("the epilogue uses a runtime variable that is read per range".to_string());
    }
    let new = view.build(&ir, &builder, generic.epilogue().is_some());
    let body = Builder::at_end(builder.context, new.body(), builder.location);
    build_yield(&body, &mlir::arguments(new.body())[..partials.len()]);
    if let (Some(from), Some(to)) = (generic.epilogue(), new.epilogue()) {
        let targets = mlir::arguments(to);
        let mut values = ValueMap::default();
        for number in 0..partials.len() {
            values.insert(arguments[number], targets[number]);
        }
        for (place, number) in kept.iter().enumerate() {
            values.insert(arguments[partials.len() + number], targets[2 * partials.len() + place]);
        }
        let inside = Builder::at_end(builder.context, to, builder.location);
        for op in mlir::ops(from) {
            inside.copy(op, &mut values);
        }
        substitute_in_conditions(&ir, &[to], &super::renumbering(&ir, &runtimes));
    }
    copy_attributes(tiler.generic.op(), new.op());
    Ok(new.op())
}
