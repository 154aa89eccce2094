//! Matrix products.
//!
//! The dimensions of the output are those of the batch, then the free ones of the lhs, then those of
//! the rhs. Contracted dimensions are read completely.

use super::{
    Op, dimensions,
    elementwise::indices,
    relation::{Index, Relation, VarId},
};
use crate::hlo::Attribute;

/// The variables of a product, and the index of each operand.
struct Product {
    relation: Relation,
    lhs: Vec<VarId>,
    rhs: Vec<VarId>,
}

/// `groups` dimensions of the rhs choose one of several matrices, and the output has one in front if
/// `leading` gives its extent.
fn product(op: &Op, groups: &[i64], leading: Option<i64>) -> Option<Product> {
    let (lhs, rhs) = (op.operand_dims(0)?, op.operand_dims(1)?);
    let dims = op.instruction.dot_dims();
    let lhs_batch = dimensions(dims.lhs_batch, lhs.len())?;
    let rhs_batch = dimensions(dims.rhs_batch, rhs.len())?;
    let lhs_contracting = dimensions(dims.lhs_contracting, lhs.len())?;
    let rhs_contracting = dimensions(dims.rhs_contracting, rhs.len())?;
    let groups = dimensions(groups, rhs.len())?;
    let shared = |ours: &[usize], theirs: &[usize]| {
        ours.len() == theirs.len()
            && ours.iter().zip(theirs).all(|(&ours, &theirs)| lhs[ours] == rhs[theirs])
    };
    if !shared(&lhs_batch, &rhs_batch) || !shared(&lhs_contracting, &rhs_contracting) {
        return None;
    }
    let mut relation = Relation::default();
    let mut output: Vec<VarId> = leading.map(|extent| relation.var(extent)).into_iter().collect();
    let (mut lhs_index, mut rhs_index) = (vec![None; lhs.len()], vec![None; rhs.len()]);
    for (&ours, &theirs) in lhs_batch.iter().zip(&rhs_batch) {
        let var = relation.var(lhs[ours]);
        (lhs_index[ours], rhs_index[theirs]) = (Some(var), Some(var));
        output.push(var);
    }
    for (dim, &extent) in lhs.iter().enumerate() {
        if !lhs_contracting.contains(&dim) && !lhs_batch.contains(&dim) {
            let var = relation.var(extent);
            lhs_index[dim] = Some(var);
            output.push(var);
        }
    }
    let bound = [&rhs_contracting[..], &rhs_batch, &groups].concat();
    for (dim, &extent) in rhs.iter().enumerate() {
        if !bound.contains(&dim) {
            let var = relation.var(extent);
            rhs_index[dim] = Some(var);
            output.push(var);
        }
    }
    for (&ours, &theirs) in lhs_contracting.iter().zip(&rhs_contracting) {
        let var = relation.var(lhs[ours]);
        (lhs_index[ours], rhs_index[theirs]) = (Some(var), Some(var));
    }
    let all = |index: Vec<Option<VarId>>| index.into_iter().collect::<Option<Vec<_>>>();
    for dim in groups {
        rhs_index[dim] = Some(relation.var(rhs[dim]));
    }
    if output.len() != op.output_dims(0)?.len() {
        return None;
    }
    relation.output = output.into_iter().map(Index::Var).collect();
    Some(Product { relation, lhs: all(lhs_index)?, rhs: all(rhs_index)? })
}

impl Product {
    /// The relation to some of the two operands.
    fn operands(self, numbers: &[usize]) -> Relation {
        let index = |number: &usize| {
            let index = if *number == 0 { &self.lhs } else { &self.rhs };
            index.iter().copied().map(Index::Var).collect()
        };
        let operands = numbers.iter().map(index).collect();
        Relation { operands, ..self.relation }
    }
}

/// `dot`.
pub(super) fn dot(op: &Op, operands: &[usize]) -> Option<Relation> {
    Some(product(op, &[], None)?.operands(operands))
}

/// `scaled-dot`: a scale belongs to a block of elements in each dimension.
pub(super) fn scaled_dot(op: &Op, operand: usize) -> Option<Relation> {
    let product = product(op, &[], None)?;
    if operand < 2 {
        return Some(product.operands(&[operand]));
    }
    let values = op.operand_dims(operand - 2)?;
    let scales = op.operand_dims(operand)?;
    let mut relation = product.operands(&[operand - 2]);
    if scales.is_empty() {
        relation.operands[0].clear();
        return Some(relation);
    }
    if scales.len() != values.len() {
        return None;
    }
    for (dim, (&extent, &blocks)) in values.iter().zip(scales).enumerate() {
        if extent == blocks {
            continue;
        }
        let block =
            extent.checked_div(blocks).filter(|block| block.checked_mul(blocks) == Some(extent))?;
        let Index::Var(position) = relation.operands[0][dim] else { continue };
        let (scale, rest) = (relation.var(blocks), relation.var(block));
        relation.equate([(block, scale), (1, rest), (-1, position)], 0);
        relation.operands[0][dim] = Index::Var(scale);
    }
    Some(relation)
}

/// `ragged-dot`: the group that an element belongs to follows from the sizes of all groups before
/// it, so that every group counts. If the ragged dimension is contracted, the output has a dimension
/// of groups in front.
pub(super) fn ragged_dot(op: &Op, operand: usize) -> Option<Relation> {
    let sizes = op.operand_dims(2)?;
    let instruction = op.instruction;
    let [ragged] = instruction.integers(Attribute::LhsRaggedDims) else { return None };
    let contracted = instruction.dot_dims().lhs_contracting.contains(ragged);
    let leading = if contracted { Some(*sizes.last()?) } else { None };
    let groups = instruction.integers(Attribute::RhsGroupDims);
    if operand < 2 {
        let relation = product(op, groups, leading)?.operands(&[operand]);
        // Groups may be empty, and leave a part of the ragged dimension to none.
        return Some(Relation { is_conditional: true, ..relation });
    }
    let mut relation = Relation::default();
    relation.output = indices(&mut relation, op.output_dims(0)?);
    relation.operands = vec![indices(&mut relation, sizes)];
    Some(relation)
}
