//! Reductions, and what moves a window over an array: `reduce`, `reduce-window` and
//! `select-and-scatter`.

use super::{
    Lowering,
    nest::{IndexMath, Memory, Nest, fold_box, for_each, identity},
    scalar,
    value::{self, Array, Scalar},
};
use crate::convert::loops::build_if;
use tc_dialects::{
    hlo::{
        ArrayShape, Attribute, ComputationId, ElementKind, ElementType, Instruction, Opcode,
        WindowDim,
    },
    imap::{Combiner, CombinerKind},
    mlir::{Builder, Val},
};
use tc_ir::{Interval, expr::Expr};

impl<'c> Lowering<'c, '_> {
    pub(super) fn reduce(
        &self,
        b: &Builder<'c>,
        instruction: &Instruction,
        operands: &[&Array<'c>],
        results: &[&ArrayShape],
    ) -> Result<Vec<Array<'c>>, String> {
        let (sources, inits) = operands.split_at(operands.len() / 2);
        let applied = self.applied(instruction, Attribute::ToApply)?;
        let reduced = instruction.dimensions();
        let dims = sources[0].dims();
        let extents: Vec<_> = reduced.iter().map(|dim| dims[*dim as usize]).collect();
        if let (Some(combiner), [source], false) =
            (self.combiner(applied, sources[0].element()), sources, extents.contains(&0))
        {
            return self.reduce_by_map(b, (source, inits[0]), results[0], combiner, |nest| {
                let mut free = (0..).map(|dim| self.ir.dim(dim));
                let index = (0i64..).zip(dims).map(|(dim, extent)| {
                    if reduced.contains(&dim) { Some(nest.range(*extent)) } else { free.next() }
                });
                index.flatten().collect()
            });
        }
        let step = &mut |b: &Builder<'c>, at: Fold<'_, 'c>| {
            let (mut free, mut folded) = (at.result.iter(), at.positions.iter());
            let mut index = vec![b.index(0); dims.len()];
            // Reduced dimensions may be listed in any order.
            for (dim, at) in index.iter_mut().enumerate() {
                if !reduced.contains(&(dim as i64)) {
                    *at = *free.next().ok_or("a shape that does not fit")?;
                }
            }
            for dim in reduced {
                index[*dim as usize] = *folded.next().ok_or("a shape that does not fit")?;
            }
            let new: Vec<_> = at.from.iter().map(|memory| memory.load(b, &index)).collect();
            self.apply_to(b, applied, at.from, at.carried, &new)
        };
        fold_each(b, operands, results, &extents, step)
    }

    /// Folds new elements into carried ones by a computation.
    fn apply_to(
        &self,
        b: &Builder<'c>,
        applied: ComputationId,
        like: &[Memory<'c>],
        carried: &[Val<'c>],
        new: &[Scalar<'c>],
    ) -> Result<Vec<Val<'c>>, String> {
        let arguments = [split(carried, like), new.to_vec()].concat();
        Ok(scalar::computation(b, self.module, applied, &arguments)?.concat())
    }

    /// A reduction of one array by a combiner, as one `imap.generic`: `index` says which element
    /// of the source is read, and adds the range variables and constraints to the nest.
    fn reduce_by_map(
        &self,
        b: &Builder<'c>,
        (source, init): (&Array<'c>, &Array<'c>),
        shape: &ArrayShape,
        kind: CombinerKind,
        index: impl FnOnce(&mut Nest<'c, '_>) -> Vec<Expr>,
    ) -> Result<Vec<Array<'c>>, String> {
        let filled = self.fill(b, shape, init)?;
        let mut nest = Nest::new(self.ir, &shape.dims);
        let index = index(&mut nest);
        nest.read(source.parts[0], index);
        let combiner = Combiner { kind, from_identity: false };
        nest.write(filled.parts[0], identity(self.ir, shape.rank()), combiner);
        let parts = nest.build(b, |_, values| Ok(values.to_vec()))?;
        Ok(vec![Array { parts, shape: shape.clone() }])
    }

    /// The combiner that a computation is, if it is one: a single operation on its parameters, in a
    /// type that is computed as it is stored.
    fn combiner(&self, applied: ComputationId, element: ElementType) -> Option<CombinerKind> {
        let computation = &self.module[applied];
        let root = computation.root();
        let on_parameters = computation.instructions.len() == 3
            && root.operands.len() == 2
            && root.operands[0] != root.operands[1]
            && computation.operands(root).all(|it| it.opcode == Opcode::Parameter);
        if on_parameters { combiner(root.opcode, element) } else { None }
    }

    pub(super) fn reduce_window(
        &self,
        b: &Builder<'c>,
        instruction: &Instruction,
        operands: &[&Array<'c>],
        results: &[&ArrayShape],
    ) -> Result<Vec<Array<'c>>, String> {
        let applied = self.applied(instruction, Attribute::ToApply)?;
        let dims = operands[0].dims();
        let window = full_window(instruction.window(), dims.len());
        let sizes: Vec<_> = window.iter().map(|dim| dim.size).collect();
        let combiner = self.combiner(applied, operands[0].element());
        let is_empty = sizes.contains(&0) || dims.contains(&0);
        if let (Some(combiner), [source, init], false) = (combiner, operands, is_empty) {
            return self.reduce_by_map(b, (source, init), results[0], combiner, |nest| {
                let index = window.iter().zip(dims).zip(0..).map(|((window, extent), dim)| {
                    let tap = nest.range(window.size);
                    let position = position(self.ir, window, self.ir.dim(dim), tap);
                    let (index, inside) = undilated(self.ir, window, position, *extent);
                    inside.into_iter().for_each(|(expr, interval)| nest.constrain(expr, interval));
                    index
                });
                index.collect()
            });
        }
        let step = &mut |b: &Builder<'c>, at: Fold<'_, 'c>| {
            let (index, inside) = window_index(b, &window, at.result, at.positions, dims);
            let mut failed = Ok(());
            let values = build_if(
                b,
                inside,
                &mut |b| {
                    let new: Vec<_> = at.from.iter().map(|memory| memory.load(b, &index)).collect();
                    self.apply_to(b, applied, at.from, at.carried, &new).unwrap_or_else(|error| {
                        failed = Err(error);
                        at.carried.to_vec()
                    })
                },
                &mut |_| at.carried.to_vec(),
            );
            failed.map(|()| values)
        };
        fold_each(b, operands, results, &sizes, step)
    }

    /// `select-and-scatter`: in each window one element of the operand is selected, and the source
    /// element of the window is added there.
    pub(super) fn select_and_scatter(
        &self,
        b: &Builder<'c>,
        instruction: &Instruction,
        operands: &[&Array<'c>],
    ) -> Result<Array<'c>, String> {
        let (operand, source, init) = (operands[0], operands[1], operands[2]);
        let select = self.applied(instruction, Attribute::Select)?;
        let scatter = self.applied(instruction, Attribute::Scatter)?;
        let dims = operand.dims();
        let window = full_window(instruction.window(), dims.len());
        let sizes: Vec<_> = window.iter().map(|dim| dim.size).collect();
        let filled = self.fill(b, &operand.shape, init)?;
        let result = Memory::copy_of(b, &filled);
        let (from, updates) = (Memory::of(b, operand), Memory::of(b, source));
        let num_values = operand.element().num_parts();
        for_each(b, source.dims(), &mut |b, place| {
            // Carried: whether anything was selected, the value, and its index.
            let zero = b.index(0);
            let mut first = vec![b.integer(b.int_type(1), 0)];
            let origin = vec![zero; dims.len()];
            first.extend(from.load(b, &origin));
            first.extend(&origin);
            let found = fold_box(b, &sizes, &first, &mut |b, taps, carried| {
                let (index, inside) = window_index(b, &window, place, taps, dims);
                let mut failed = Ok(());
                let values = build_if(
                    b,
                    inside,
                    &mut |b| {
                        let new = from.load(b, &index);
                        let old = carried[1..1 + num_values].to_vec();
                        let arguments = [old, new.clone()];
                        let kept = match scalar::computation(b, self.module, select, &arguments) {
                            Ok(kept) => kept[0][0],
                            Err(error) => {
                                failed = Err(error);
                                carried[0]
                            }
                        };
                        let keeps = b.and(carried[0], kept);
                        let mut next = vec![b.integer(b.int_type(1), 1)];
                        let candidates = new.iter().chain(&index);
                        next.extend(
                            carried[1..]
                                .iter()
                                .zip(candidates)
                                .map(|(o, n)| b.select(keeps, *o, *n)),
                        );
                        next
                    },
                    &mut |_| carried.to_vec(),
                );
                failed.map(|()| values)
            })?;
            let index = found[1 + num_values..].to_vec();
            let mut failed = Ok(());
            build_if(
                b,
                found[0],
                &mut |b| {
                    let arguments = [result.load(b, &index), updates.load(b, place)];
                    match scalar::computation(b, self.module, scatter, &arguments) {
                        Ok(values) => result.store(b, &index, &values[0]),
                        Err(error) => failed = Err(error),
                    }
                    Vec::new()
                },
                &mut |_| Vec::new(),
            );
            failed
        })?;
        Ok(result.array(b))
    }
}

/// The combiner that an opcode is on a type that is computed as it is stored.
pub(in crate::convert) fn combiner(opcode: Opcode, element: ElementType) -> Option<CombinerKind> {
    if element.bits() < 8 {
        return None;
    }
    // A sum of halves would be rounded at each step.
    let sums = matches!(element, ElementType::F32 | ElementType::F64);
    let is_native = !value::is_coded(element);
    Some(match (opcode, element.kind()) {
        (Opcode::Add | Opcode::Or | Opcode::Maximum, ElementKind::Pred) => CombinerKind::Or,
        (Opcode::Multiply | Opcode::And | Opcode::Minimum, ElementKind::Pred) => CombinerKind::And,
        (Opcode::Add, ElementKind::Float) if sums => CombinerKind::Add,
        (Opcode::Multiply, ElementKind::Float) if sums => CombinerKind::Mul,
        (Opcode::Maximum, ElementKind::Float) if is_native => CombinerKind::MaximumF,
        (Opcode::Minimum, ElementKind::Float) if is_native => CombinerKind::MinimumF,
        (_, ElementKind::Float | ElementKind::Complex | ElementKind::Pred) => return None,
        (Opcode::Add, _) => CombinerKind::Add,
        (Opcode::Multiply, _) => CombinerKind::Mul,
        (Opcode::And, _) => CombinerKind::And,
        (Opcode::Or, _) => CombinerKind::Or,
        (Opcode::Maximum, ElementKind::Signed) => CombinerKind::MaxS,
        (Opcode::Minimum, ElementKind::Signed) => CombinerKind::MinS,
        (Opcode::Maximum, _) => CombinerKind::MaxU,
        (Opcode::Minimum, _) => CombinerKind::MinU,
        _ => return None,
    })
}

/// A step of a fold: which element of the result it is for, where it stands among what is folded,
/// and what there is so far.
struct Fold<'a, 'c> {
    result: &'a [Val<'c>],
    positions: &'a [Val<'c>],
    from: &'a [Memory<'c>],
    carried: &'a [Val<'c>],
}

/// What a step of a fold gives: the next values.
type FoldStep<'a, 'c> = dyn FnMut(&Builder<'c>, Fold<'_, 'c>) -> Result<Vec<Val<'c>>, String> + 'a;

/// Folds, for each element of the results, over a box of these extents. The operands are the
/// arrays read, then what the folds start from.
fn fold_each<'c>(
    b: &Builder<'c>,
    operands: &[&Array<'c>],
    results: &[&ArrayShape],
    extents: &[i64],
    step: &mut FoldStep<'_, 'c>,
) -> Result<Vec<Array<'c>>, String> {
    let (sources, inits) = operands.split_at(operands.len() / 2);
    let from: Vec<_> = sources.iter().map(|source| Memory::of(b, source)).collect();
    let start: Vec<_> = inits.iter().map(|init| Memory::of(b, init)).collect();
    let to: Vec<_> = results.iter().map(|shape| Memory::allocate(b, shape)).collect();
    for_each(b, &results[0].dims, &mut |b, result| {
        let first: Vec<_> = start.iter().flat_map(|memory| memory.load(b, &[])).collect();
        let folded = fold_box(b, extents, &first, &mut |b, positions, carried| {
            step(b, Fold { result, positions, from: &from, carried })
        })?;
        let values = split(&folded, &to);
        to.iter().zip(values).for_each(|(memory, value)| memory.store(b, result, &value));
        Ok(())
    })?;
    Ok(to.into_iter().map(|memory| memory.array(b)).collect())
}

/// The values of several arrays, from their parts one after the other.
fn split<'c>(values: &[Val<'c>], like: &[Memory<'c>]) -> Vec<Scalar<'c>> {
    let mut rest = values;
    let mut next = |memory: &Memory<'c>| {
        let (scalar, others) = rest.split_at(memory.element().num_parts());
        rest = others;
        scalar.to_vec()
    };
    like.iter().map(&mut next).collect()
}

/// A window has no entry where it is 1 wide in all dimensions.
fn full_window(window: &[WindowDim], rank: usize) -> Vec<WindowDim> {
    if window.is_empty() { vec![WindowDim::default(); rank] } else { window.to_vec() }
}

/// The position in the padded, dilated operand that element `tap` of window `at` stands on, without
/// the padding: negative ones lie in it.
fn position(ir: &tc_ir::Context, window: &WindowDim, at: Expr, tap: Expr) -> Expr {
    let start = ir.mul(at, ir.constant(window.stride));
    let offset = ir.mul(tap, ir.constant(window.window_dilation));
    ir.sub(ir.add(start, offset), ir.constant(window.padding_low))
}

/// The index of the element that stands on a position, and where there is one.
fn undilated(
    ir: &tc_ir::Context,
    window: &WindowDim,
    position: Expr,
    extent: i64,
) -> (Expr, Vec<(Expr, Interval)>) {
    let step = window.base_dilation;
    let last = (extent - 1) * step;
    let mut inside = vec![(position, Interval::new(0, last))];
    if step == 1 {
        return (position, inside);
    }
    inside.push((ir.modulo(position, ir.constant(step)), Interval::point(0)));
    (ir.floor_div(position, ir.constant(step)), inside)
}

/// The index of an element of a window, and whether there is one.
fn window_index<'c>(
    b: &Builder<'c>,
    window: &[WindowDim],
    place: &[Val<'c>],
    taps: &[Val<'c>],
    dims: &[i64],
) -> (Vec<Val<'c>>, Val<'c>) {
    let mut inside = b.integer(b.int_type(1), 1);
    let mut index = Vec::new();
    for (dim, window) in window.iter().enumerate() {
        let start = b.scale_index(place[dim], window.stride);
        let offset = b.scale_index(taps[dim], window.window_dilation);
        let position = b.add_index(start, offset);
        let position = b.sub_index(position, b.index(window.padding_low));
        let step = window.base_dilation;
        let extent = ((dims[dim] - 1) * step + 1).max(0);
        inside = b.and(inside, b.is_inside(position, extent));
        if step == 1 {
            index.push(position);
            continue;
        }
        let step = b.index(step);
        let rest = b.value("arith.remui", &[position, step], b.index_type());
        inside = b.and(inside, b.compare_int("eq", rest, b.index(0)));
        index.push(b.value("arith.divui", &[position, step], b.index_type()));
    }
    (index, inside)
}
