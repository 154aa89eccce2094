//! Operations along whole dimensions: reduce, scan, sort, topk.

use super::{
    Op, dimension, dimensions,
    elementwise::{indices, same_position},
    relation::{Index, Relation},
};
use crate::hlo::Attribute;
use tc_ir::Interval;

/// Each output reads every input along the reduced dimensions, and every initial value.
pub(super) fn reduce(op: &Op, output: usize, operand: usize) -> Option<Relation> {
    let output = op.output_dims(output)?;
    let input = op.operand_dims(operand)?;
    if op.num_operands() / 2 <= operand {
        return same_position(output, input);
    }
    let reduced = dimensions(op.instruction.dimensions(), input.len())?;
    let mut relation = Relation::default();
    let index = indices(&mut relation, input);
    let kept = (0..input.len()).filter(|dim| !reduced.contains(dim));
    relation.output = kept.clone().map(|dim| index[dim]).collect();
    relation.operands = vec![index];
    kept.map(|dim| input[dim]).eq(output.iter().copied()).then_some(relation)
}

/// A scan: the carried values go from step to step along a dimension, so that an output needs the
/// inputs of its own step and of those before. Operands are the inputs, then the initial values of
/// what is carried; outputs are those with all steps, then what is carried to the end.
pub(super) fn scan(op: &Op, output: usize, operand: usize) -> Option<Relation> {
    let instruction = op.instruction;
    let carries = usize::try_from(instruction.integer(Attribute::NumCarries)?).ok()?;
    let inputs = op.num_operands().checked_sub(carries)?;
    let steps = super::num_arrays(&instruction.shape).checked_sub(carries)?;
    let [along] = instruction.dimensions() else { return None };
    let (output_dims, operand_dims) = (op.output_dims(output)?, op.operand_dims(operand)?);
    let (is_step, is_input) = (output < steps, operand < inputs);
    let rank = output_dims.len() + usize::from(!is_step);
    let along = dimension(*along, rank)?;

    let mut relation = Relation::default();
    let mut rest = output_dims.to_vec();
    let extent = match (is_step, is_input) {
        (true, _) => Some(rest.remove(along)),
        (false, true) => operand_dims.get(along).copied(),
        (false, false) => None,
    };
    let shared = indices(&mut relation, &rest);
    let with_step = |index: &[Index], step: Index| {
        let mut index = index.to_vec();
        index.insert(along, step);
        index
    };
    let step = extent.map(|extent| relation.var(extent));
    relation.output = match step {
        Some(step) if is_step => with_step(&shared, Index::Var(step)),
        _ => shared.clone(),
    };
    let operand = match step {
        Some(step) if is_input && is_step && (op.like_xla || carries == 0) => {
            with_step(&shared, Index::Var(step))
        }
        Some(step) if is_input && is_step => {
            let extent = *operand_dims.get(along)?;
            let read = relation.var(extent);
            let forward = if instruction.flag(Attribute::IsReverse) { -1 } else { 1 };
            let before = Interval::new(0, extent.saturating_sub(1));
            relation.bound([(forward, step), (-forward, read)], before);
            with_step(&shared, Index::Var(read))
        }
        Some(step) if is_input && !op.like_xla => with_step(&shared, Index::Var(step)),
        _ => shared,
    };
    relation.operands = vec![operand];
    let expected = if is_input { rest.len() + 1 } else { rest.len() };
    (operand_dims.len() == expected).then_some(relation)
}

/// Each output needs all operands along the sorted dimension: they are sorted together.
pub(super) fn sort(op: &Op, output: usize, operand: usize) -> Option<Relation> {
    let dims = op.output_dims(output)?;
    let along = match op.instruction.dimensions() {
        [along] => dimension(*along, dims.len())?,
        _ => dims.len().checked_sub(1)?,
    };
    let mut relation = same_position(dims, op.operand_dims(operand)?)?;
    let read = relation.var(dims[along]);
    *relation.operands[0].get_mut(along)? = Index::Var(read);
    Some(relation)
}

/// Each output needs the whole last dimension.
pub(super) fn top_k(op: &Op, output: usize) -> Option<Relation> {
    let (output, operand) = (op.output_dims(output)?, op.operand_dims(0)?);
    let (last, rest) = operand.split_last()?;
    let mut relation = Relation::default();
    relation.output = indices(&mut relation, output);
    let mut index = relation.output.get(..rest.len())?.to_vec();
    index.push(Index::Var(relation.var(*last)));
    relation.operands = vec![index];
    (output.len() == operand.len() && output.starts_with(rest)).then_some(relation)
}
