//! Operations on elements at the same position, and those that keep one dimension.

use super::{
    Op, dimension,
    relation::{Index, Relation},
};
use crate::hlo::{Attribute, Opcode};

/// An element needs the elements at the same position, and the value of an operand without
/// dimensions.
pub(super) fn elementwise(op: &Op, output: usize, operands: &[usize]) -> Option<Relation> {
    let dims = operands.iter().map(|&operand| op.operand_dims(operand));
    same_positions(op.output_dims(output)?, &dims.collect::<Option<Vec<_>>>()?)
}

/// The same position of arrays of the same sizes; the only position of a scalar.
pub(super) fn same_position(output: &[i64], operand: &[i64]) -> Option<Relation> {
    same_positions(output, &[operand])
}

fn same_positions(output: &[i64], operands: &[&[i64]]) -> Option<Relation> {
    let mut relation = Relation::default();
    relation.output = indices(&mut relation, output);
    for operand in operands {
        if *operand != output && !operand.is_empty() {
            return None;
        }
        relation.operands.push(relation.output[..operand.len()].to_vec());
    }
    Some(relation)
}

/// A new variable per dimension.
pub(super) fn indices(relation: &mut Relation, dims: &[i64]) -> Vec<Index> {
    relation.vars(dims).into_iter().map(Index::Var).collect()
}

/// The bits of elements as another type: a wider type has one dimension less.
pub(super) fn bitcast_convert(op: &Op) -> Option<Relation> {
    let (output, operand) = (op.output_dims(0)?, op.operand_dims(0)?);
    if output == operand {
        return same_position(output, operand);
    }
    let mut relation = Relation::default();
    let is_wider = output.len() < operand.len();
    let (short, long) = if is_wider { (output, operand) } else { (operand, output) };
    relation.output = indices(&mut relation, long);
    relation.operands = vec![relation.output.get(..short.len())?.to_vec()];
    let relation = if is_wider { relation.swapped() } else { relation };
    (long.len() == short.len() + 1 && long.starts_with(short)).then_some(relation)
}

/// Of a batch normalization, operand and result have all dimensions, and the other arrays the
/// feature dimension only. Statistics of a feature need all of its elements.
pub(super) fn batch_norm(op: &Op, output: usize, operand: usize) -> Option<Relation> {
    let all = op.operand_dims(0)?;
    let feature = dimension(op.instruction.integer(Attribute::FeatureIndex)?, all.len())?;
    let (output, operand) = (op.output_dims(output)?, op.operand_dims(operand)?);
    // In inference each element is normalized by itself.
    if op.instruction.opcode == Opcode::BatchNormInference && output == operand {
        return same_position(output, operand);
    }
    let mut relation = Relation::default();
    let shared = Index::Var(relation.var(*all.get(feature)?));
    let mut place = |dims: &[i64]| {
        let position = if dims.len() == all.len() { feature } else { 0 };
        let index = |(dim, &extent): (usize, &i64)| {
            if dim == position { shared } else { Index::Var(relation.var(extent)) }
        };
        dims.iter().enumerate().map(index).collect()
    };
    let (output, operands) = (place(output), vec![place(operand)]);
    Some(Relation { output, operands, ..relation })
}
