//! Reshapes and bitcasts: the same numbers of elements in the same order.
//!
//! An element of either array has a number, the sum of its indices times their strides; the numbers
//! of both sides are equal. For a reshape the order is row-major, for a bitcast that of the
//! layouts, so that a bitcast needs no decomposition into transpose, reshape and transpose. Where
//! the strides of both sides meet, the sum splits into independent ones: `[4,8,12] -> [32,3,4]` is
//! `[4,8] -> [32]` and `[12] -> [3,4]`.

use super::{
    Op,
    relation::{Index, Relation, VarId},
};
use crate::hlo::ArrayShape;
use tc_ir::tile::minimal_reshapes;

/// The order is row-major.
pub(super) fn reshape(op: &Op) -> Option<Relation> {
    let (output, operand) = (op.output_dims(0)?, op.operand_dims(0)?);
    let row_major = |rank: usize| (0..rank).rev().collect();
    same_numbers(output, row_major(output.len()), operand, row_major(operand.len()))
}

/// The order is that in memory. Elements of another size would not have numbers in common.
pub(super) fn bitcast(op: &Op) -> Option<Relation> {
    let (output, operand) = (op.instruction.array()?, op.operand(0)?.array()?);
    if output.element_type.bits() != operand.element_type.bits() {
        return None;
    }
    same_numbers(&output.dims, minor_to_major(output)?, &operand.dims, minor_to_major(operand)?)
}

/// The dimensions of an array, the one that varies fastest first.
pub(super) fn minor_to_major(array: &ArrayShape) -> Option<Vec<usize>> {
    let order = super::dimensions(&array.minor_to_major(), array.rank())?;
    let mut seen = vec![false; array.rank()];
    order.iter().for_each(|&dim| seen[dim] = true);
    (order.len() == array.rank() && seen.iter().all(|&seen| seen)).then_some(order)
}

/// Between the logical index of an array (as output) and the index in the order of its layout, the
/// slowest dimension first (as operand).
pub(super) fn physical(array: &ArrayShape) -> Option<Relation> {
    let order = minor_to_major(array)?;
    let mut relation = Relation::default();
    let logical = relation.vars(&array.dims);
    relation.operands = vec![order.iter().rev().map(|&dim| Index::Var(logical[dim])).collect()];
    relation.output = logical.into_iter().map(Index::Var).collect();
    Some(relation)
}

/// A dimension with its part of the number of an element.
struct Digit {
    var: VarId,
    extent: i64,
}

/// Relates elements of two arrays that have the same number. The orders list the dimensions, the one
/// with the smallest stride first.
fn same_numbers(
    output: &[i64],
    output_order: Vec<usize>,
    operand: &[i64],
    operand_order: Vec<usize>,
) -> Option<Relation> {
    let mut relation = Relation { simplify: true, ..Relation::default() };
    let mut digits = |dims: &[i64], order: Vec<usize>| {
        let vars = relation.vars(dims);
        let digits: Vec<Digit> =
            order.into_iter().map(|dim| Digit { var: vars[dim], extent: dims[dim] }).collect();
        (vars.into_iter().map(Index::Var).collect::<Vec<_>>(), digits)
    };
    let (output_index, output_digits) = digits(output, output_order);
    let (operand_index, operand_digits) = digits(operand, operand_order);
    (relation.output, relation.operands) = (output_index, vec![operand_index]);
    if output.contains(&0) && operand.contains(&0) {
        return Some(relation);
    }
    // Dimensions of both sides, from where the products of their extents are the same up to where
    // they are the next time. The one that varies fastest comes last.
    let extents = |digits: &[Digit]| digits.iter().rev().map(|it| it.extent).collect::<Vec<_>>();
    for group in minimal_reshapes(&extents(&output_digits), &extents(&operand_digits))? {
        let mut terms = Vec::new();
        for (digits, range, sign) in
            [(&output_digits, group.from, 1), (&operand_digits, group.to, -1)]
        {
            let mut factor = sign;
            for place in range.rev() {
                let digit = &digits[digits.len() - 1 - place];
                terms.push((factor, digit.var));
                factor = digit.extent.checked_mul(factor)?;
            }
        }
        relation.equate(terms, 0);
    }
    Some(relation)
}
