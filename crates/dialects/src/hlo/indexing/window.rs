//! Windows that slide over an operand: reduce-window, select-and-scatter, convolution.
//!
//! Along each dimension, position `w` of window `o` stands at position `i` of the operand where
//! `o * stride + w * window_dilation - padding_low == i * base_dilation`; where there is no such `i`
//! the window sees padding.

use super::{
    Op, dimension, dimensions,
    elementwise::same_position,
    relation::{Index, Relation, VarId},
};
use crate::hlo::{Attribute, WindowDim};
use tc_ir::Interval;

/// The window's dimensions; those that the text leaves out are 1.
fn window(op: &Op, rank: usize) -> Option<Vec<WindowDim>> {
    match op.instruction.window() {
        [] => Some(vec![WindowDim::default(); rank]),
        dims => (dims.len() == rank).then(|| dims.to_vec()),
    }
}

/// Demands that position `w` of window `o` is position `i` of the operand.
fn slide(relation: &mut Relation, dim: &WindowDim, o: VarId, w: VarId, i: VarId) -> Option<()> {
    let base = dim.base_dilation.checked_neg()?;
    if dim.stride < 1 || dim.window_dilation < 1 || -1 < base {
        return None;
    }
    let terms = [(dim.stride, o), (dim.window_dilation, w), (base, i)];
    relation.equate(terms, dim.padding_low.checked_neg()?);
    Some(())
}

/// Demands that position `w` of window `o` is some position of the operand.
fn meet(relation: &mut Relation, dim: &WindowDim, o: VarId, w: VarId, extent: i64) -> Option<()> {
    let is_dense =
        dim.base_dilation == 1 && 0 < extent && 0 < dim.stride && 0 < dim.window_dilation;
    if !is_dense {
        let i = relation.var(extent);
        return slide(relation, dim, o, w, i);
    }
    // A bound leaves `o` and `w` as they are; an equation solved for `o` would divide.
    let first = dim.padding_low;
    let last = first.checked_add(extent - 1)?;
    relation.bound([(dim.stride, o), (dim.window_dilation, w)], Interval::new(first, last));
    Some(())
}

/// Each output element reads the window over each input, and each initial value.
pub(super) fn reduce_window(op: &Op, output: usize, operand: usize) -> Option<Relation> {
    let output = op.output_dims(output)?;
    if op.num_operands() / 2 <= operand {
        return same_position(output, op.operand_dims(operand)?);
    }
    let input = op.operand_dims(operand)?;
    let window = window(op, input.len())?;
    if output.len() != input.len() {
        return None;
    }
    let mut relation = Relation { simplify: true, ..Relation::default() };
    let o = relation.vars(output);
    let w: Vec<VarId> = window.iter().map(|dim| relation.var(dim.size)).collect();
    let i = relation.vars(input);
    for (dim, each) in window.iter().enumerate() {
        slide(&mut relation, each, o[dim], w[dim], i[dim])?;
    }
    relation.output = o.into_iter().map(Index::Var).collect();
    relation.operands = vec![i.into_iter().map(Index::Var).collect()];
    Some(relation)
}

/// An output element may get the source element of each window that it lies in, and which one does
/// depends on the operand in the whole window.
pub(super) fn select_and_scatter(op: &Op, operand: usize) -> Option<Relation> {
    let (output, source) = (op.output_dims(0)?, op.operand_dims(1)?);
    let window = window(op, output.len())?;
    if operand == 2 {
        return same_position(output, op.operand_dims(2)?);
    }
    if output != op.operand_dims(0)? || source.len() != output.len() {
        return None;
    }
    let mut relation = Relation { simplify: true, ..Relation::default() };
    let scattered = relation.vars(output);
    let windows = relation.vars(source);
    let place = |relation: &mut Relation, positions: &[VarId]| {
        for (dim, each) in window.iter().enumerate() {
            let within = relation.var(each.size);
            slide(relation, each, windows[dim], within, positions[dim])?;
        }
        Some(())
    };
    place(&mut relation, &scattered)?;
    let mut index = windows.clone();
    if operand == 0 {
        let read = relation.vars(output);
        place(&mut relation, &read)?;
        index = read;
    }
    relation.operands = vec![index.into_iter().map(Index::Var).collect()];
    relation.output = scattered.into_iter().map(Index::Var).collect();
    Some(relation)
}

/// A convolution: the lhs is read through windows, the rhs is the kernel. Positions of the kernel that
/// meet padding are not read.
///
/// With `g` feature groups, block `j` of the output features sees block `j` of the input features
/// only. With `g` batch groups, it sees block `j` of the batch only.
pub(super) fn convolution(op: &Op, operands: &[usize]) -> Option<Relation> {
    let (output, lhs, rhs) = (op.output_dims(0)?, op.operand_dims(0)?, op.operand_dims(1)?);
    let dims = op.instruction.dim_labels()?;
    let window = window(op, dims.output_spatial.len())?;
    let groups = |attribute| op.instruction.integer(attribute).unwrap_or(1);
    let feature_groups = groups(Attribute::FeatureGroupCount);
    let batch_groups = groups(Attribute::BatchGroupCount);

    let output_batch = dimension(dims.output_batch, output.len())?;
    let output_feature = dimension(dims.output_feature, output.len())?;
    let output_spatial = dimensions(&dims.output_spatial, output.len())?;
    let input_batch = dimension(dims.input_batch, lhs.len())?;
    let input_feature = dimension(dims.input_feature, lhs.len())?;
    let input_spatial = dimensions(&dims.input_spatial, lhs.len())?;
    let kernel_input_feature = dimension(dims.kernel_input_feature, rhs.len())?;
    let kernel_output_feature = dimension(dims.kernel_output_feature, rhs.len())?;
    let kernel_spatial = dimensions(&dims.kernel_spatial, rhs.len())?;
    let ranks = [output.len(), lhs.len(), rhs.len()];
    let spatial = [&output_spatial, &input_spatial, &kernel_spatial];
    if spatial.iter().zip(ranks).any(|(spatial, rank)| spatial.len() + 2 != rank) {
        return None;
    }

    let mut relation = Relation { simplify: true, ..Relation::default() };
    let out = relation.vars(output);
    let within: Vec<VarId> = window.iter().map(|dim| relation.var(dim.size)).collect();
    let feature = relation.var(rhs[kernel_input_feature]);
    relation.output = out.iter().copied().map(Index::Var).collect();

    // The part of the output features that a group has.
    let split = |relation: &mut Relation, groups: i64| {
        let part = output[output_feature].checked_div(groups)?;
        let (group, rest) = (relation.var(groups), relation.var(part));
        relation.equate([(1, out[output_feature]), (-part, group), (-1, rest)], 0);
        Some(group)
    };
    let reads_lhs = operands.contains(&0);
    let (mut lhs_index, mut rhs_index) = (vec![feature; lhs.len()], vec![feature; rhs.len()]);
    rhs_index[kernel_output_feature] = out[output_feature];
    lhs_index[input_batch] = out[output_batch];
    if reads_lhs && feature_groups != 1 {
        let group = split(&mut relation, feature_groups)?;
        let position = relation.var(lhs[input_feature]);
        let size = rhs[kernel_input_feature];
        relation.equate([(1, position), (-size, group), (-1, feature)], 0);
        lhs_index[input_feature] = position;
    }
    if reads_lhs && batch_groups != 1 {
        let group = if op.like_xla {
            relation.var(batch_groups)
        } else {
            split(&mut relation, batch_groups)?
        };
        let position = relation.var(lhs[input_batch]);
        let terms = [(1, position), (-output[output_batch], group), (-1, out[output_batch])];
        relation.equate(terms, 0);
        lhs_index[input_batch] = position;
    }
    for (dim, window) in window.iter().enumerate() {
        let (at, tap) = (out[output_spatial[dim]], within[dim]);
        let extent = lhs[input_spatial[dim]];
        if reads_lhs {
            let position = relation.var(extent);
            slide(&mut relation, window, at, tap, position)?;
            lhs_index[input_spatial[dim]] = position;
        } else if !op.like_xla {
            meet(&mut relation, window, at, tap, extent)?;
        }
        rhs_index[kernel_spatial[dim]] = if window.reversal {
            let position = relation.var(window.size);
            relation.equate([(1, position), (1, tap)], 1i64.checked_sub(window.size)?);
            position
        } else {
            tap
        };
    }
    let index = |operand: &usize| {
        let index = if *operand == 0 { &lhs_index } else { &rhs_index };
        index.iter().copied().map(Index::Var).collect()
    };
    relation.operands = operands.iter().map(index).collect();
    Some(relation)
}
