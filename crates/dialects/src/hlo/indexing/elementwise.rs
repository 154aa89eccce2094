//! Operations on elements at the same position, and those that keep one dimension.

use super::{
    Op, dimension,
    relation::{Index, Relation},
};
use crate::hlo::{Attribute, Opcode};

/// An element needs the element at the same position, and the value of an operand without
/// dimensions.
pub(super) fn elementwise(op: &Op, output: usize, operand: usize) -> Option<Relation> {
    same_position(op.output_dims(output)?, op.operand_dims(operand)?)
}

/// The same position of arrays of the same sizes; the only position of a scalar.
pub(super) fn same_position(output: &[i64], operand: &[i64]) -> Option<Relation> {
    let mut relation = Relation::default();
    relation.output = indices(&mut relation, output);
    if output == operand {
        relation.operand = relation.output.clone();
    } else if !operand.is_empty() {
        return None;
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
    if output.len() < operand.len() {
        relation.operand = indices(&mut relation, operand);
        relation.output = relation.operand.get(..output.len())?.to_vec();
    } else {
        relation.output = indices(&mut relation, output);
        relation.operand = relation.output.get(..operand.len())?.to_vec();
    }
    let (short, long) =
        if output.len() < operand.len() { (output, operand) } else { (operand, output) };
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
    let (output, operand) = (place(output), place(operand));
    Some(Relation { output, operand, ..relation })
}
