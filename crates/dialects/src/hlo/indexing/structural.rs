//! Operations that move elements: broadcast, transpose, reverse, slice, pad, concatenate, and tuples.

use super::{
    Op, Reads, array, dimension, dimensions,
    elementwise::{indices, same_position},
    num_arrays,
    relation::{Condition, Index, Relation},
};
use crate::hlo::{Attribute, Opcode};
use std::ops::Range;
use tc_ir::Interval;

/// The operand of a `tuple` that an array of it comes from.
pub(super) fn tuple_source(op: &Op, output: usize) -> Option<usize> {
    let mut end = 0;
    (0..op.num_operands()).find(|&number| {
        end += op.operand(number).map_or(0, |operand| num_arrays(&operand.shape));
        output < end
    })
}

/// The arrays of a `tuple` that come from an operand.
pub(super) fn tuple_places(op: &Op, operand: usize) -> Range<usize> {
    let count = |number| op.operand(number).map_or(0, |operand| num_arrays(&operand.shape));
    let first: usize = (0..operand).map(count).sum();
    first..first + count(operand)
}

/// Operations whose outputs are arrays of their operands, whole tuples included.
pub(super) fn forwarded(op: &Op, output: usize, operand: usize) -> Option<Reads> {
    let shape = |number| op.operand(number).map(|operand| &operand.shape);
    let (source, number) = match op.instruction.opcode {
        Opcode::Tuple => {
            let source = tuple_source(op, output)?;
            (source, output.checked_sub(tuple_places(op, source).start)?)
        }
        Opcode::GetTupleElement => {
            let index = usize::try_from(op.instruction.integer(Attribute::Index)?).ok()?;
            let before = shape(0)?.as_tuple()?.get(..index)?;
            (0, before.iter().map(num_arrays).sum::<usize>() + output)
        }
        // The operand twice, and a number.
        Opcode::CopyStart => match num_arrays(shape(0)?) {
            count if output < 2 * count => (0, output % count),
            _ => return Some(Reads::Nothing),
        },
        // The value is the first operand, which may be a tuple; `add-dependency` has a token as well.
        _ => (0, output),
    };
    if operand != source {
        return Some(Reads::Nothing);
    }
    let dims = &array(shape(source)?, number)?.dims;
    let relation = same_position(dims, dims)?;
    Some(Reads::Related(Relation { array: number, ..relation }))
}

/// `dimensions[i]` of the output is dimension `i` of the operand.
pub(super) fn broadcast(op: &Op) -> Option<Relation> {
    let (output, operand) = (op.output_dims(0)?, op.operand_dims(0)?);
    let places = dimensions(op.instruction.dimensions(), output.len())?;
    let fits = places.len() == operand.len()
        && places.iter().zip(operand).all(|(&place, &extent)| output[place] == extent);
    let mut relation = Relation::default();
    relation.output = indices(&mut relation, output);
    relation.operands = vec![places.iter().map(|&place| relation.output[place]).collect()];
    fits.then_some(relation)
}

/// Dimension `i` of the output is `dimensions[i]` of the operand.
pub(super) fn transpose(op: &Op) -> Option<Relation> {
    let (output, operand) = (op.output_dims(0)?, op.operand_dims(0)?);
    let places = dimensions(op.instruction.dimensions(), operand.len())?;
    let fits = places.len() == output.len()
        && places.iter().zip(output).all(|(&place, &extent)| operand[place] == extent);
    let mut relation = Relation::default();
    let index = indices(&mut relation, operand);
    relation.output = places.iter().map(|&place| index[place]).collect();
    relation.operands = vec![index];
    fits.then_some(relation)
}

/// The two positions of a reversed dimension add up to the last one.
pub(super) fn reverse(op: &Op) -> Option<Relation> {
    let dims = op.output_dims(0)?;
    let reversed = dimensions(op.instruction.dimensions(), dims.len())?;
    let mut relation = same_position(dims, op.operand_dims(0)?)?;
    for dim in reversed {
        let from = relation.var(dims[dim]);
        let Index::Var(to) = relation.output[dim] else { continue };
        relation.equate([(1, from), (1, to)], 1i64.checked_sub(dims[dim])?);
        relation.operands[0][dim] = Index::Var(from);
    }
    Some(relation)
}

/// `input == start + output * stride`.
pub(super) fn slice(op: &Op) -> Option<Relation> {
    let (output, operand) = (op.output_dims(0)?, op.operand_dims(0)?);
    let slices = op.instruction.slice_dims();
    let steps = slices.iter().map(|slice| (slice.start, slice.stride));
    stepped(output, operand, steps)
}

/// `output == low + input * (interior + 1)`; the pad value is read where there is no such input.
pub(super) fn pad(op: &Op, operand: usize) -> Option<Relation> {
    let (output, input) = (op.output_dims(0)?, op.operand_dims(0)?);
    let steps = op
        .instruction
        .padding()
        .iter()
        .map(|padding| Some((padding.low, padding.interior.checked_add(1)?)))
        .collect::<Option<Vec<_>>>()?;
    if operand == 1 {
        let mut relation = same_position(output, op.operand_dims(1)?)?;
        if !op.like_xla && steps.len() == output.len() && input.len() == output.len() {
            let inside = relation.output.iter().zip(input).zip(&steps);
            let inside = inside.map(|((&index, &extent), &(low, step))| {
                let Index::Var(position) = index else { return None };
                let last = extent.checked_sub(1)?.checked_mul(step)?;
                let (constant, interval) = (low.checked_neg()?, Interval::new(0, last));
                Some(Condition { terms: vec![(1, position)], constant, step, interval })
            });
            let inside = inside.collect::<Option<_>>()?;
            relation.except(inside);
        }
        return Some(relation);
    }
    Some(stepped(input, output, steps.into_iter())?.swapped())
}

/// Relates an array (as output) to a larger one (as operand), in which it stands from a start on
/// with a stride in each dimension.
fn stepped(
    part: &[i64],
    whole: &[i64],
    steps: impl ExactSizeIterator<Item = (i64, i64)>,
) -> Option<Relation> {
    if steps.len() != part.len() || part.len() != whole.len() {
        return None;
    }
    let mut relation = Relation::default();
    let (inner, outer) = (relation.vars(part), relation.vars(whole));
    for ((&inner, &outer), (start, stride)) in inner.iter().zip(&outer).zip(steps) {
        if stride < 1 {
            return None;
        }
        relation.equate([(1, outer), (-stride, inner)], start.checked_neg()?);
    }
    relation.output = inner.into_iter().map(Index::Var).collect();
    relation.operands = vec![outer.into_iter().map(Index::Var).collect()];
    Some(relation)
}

/// An operand stands in the output after those before it.
pub(super) fn concatenate(op: &Op, operand: usize) -> Option<Relation> {
    let (output, dims) = (op.output_dims(0)?, op.operand_dims(operand)?);
    let [along] = op.instruction.dimensions() else { return None };
    let along = dimension(*along, output.len())?;
    let firsts = op.starts.get_or_init(|| {
        let mut first = Some(0i64);
        let after = |operand| {
            let extent = op.operand_dims(operand).and_then(|dims| dims.get(along));
            let next = first.and_then(|it| it.checked_add(*extent?));
            std::mem::replace(&mut first, next)
        };
        (0..op.num_operands()).map(after).collect()
    });
    let mut starts = vec![0; dims.len()];
    *starts.get_mut(along)? = (*firsts.get(operand)?)?;
    Some(stepped(dims, output, starts.into_iter().map(|start| (start, 1)))?.swapped())
}
