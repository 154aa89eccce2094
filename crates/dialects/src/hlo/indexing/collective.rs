//! Operations between replicas.
//!
//! The replica that an element is read from is given by its position in the group that reads; a
//! group without numbers has all replicas. With a channel, groups are of partitions or devices. What depends on the position of the reading replica is a
//! runtime variable.

use super::{
    Op, Reads, RuntimeSource, dimension,
    elementwise::same_position,
    relation::{Index, Relation},
};
use crate::hlo::{Attribute, Opcode, ReplicaGroups};
use tc_ir::Interval;

/// The number of devices in the group. Which numbers groups have, and who belongs to a group that is
/// not listed, depends on the channel and on `use_global_device_ids`, as in XLA's
/// `GetCollectiveOpGroupMode`: replicas; with a channel, partitions where there is one group mode
/// only, otherwise all partitions of the replicas, or devices.
fn group_size(op: &Op) -> Option<i64> {
    let instruction = op.instruction;
    let (replicas, partitions) = devices(op);
    let has_channel = instruction.attribute(Attribute::ChannelId).is_some();
    let (all, of_each) = match instruction.opcode {
        _ if !has_channel => (replicas, 1),
        Opcode::AllToAll | Opcode::CollectiveBroadcast | Opcode::CollectivePermute => {
            (partitions, 1)
        }
        _ if instruction.flag(Attribute::UseGlobalDeviceIds) => {
            (replicas.checked_mul(partitions)?, 1)
        }
        _ => (replicas.checked_mul(partitions)?, partitions),
    };
    let listed = match instruction.replica_groups() {
        Some(ReplicaGroups::Lists(groups)) if groups.is_empty() => None,
        Some(groups) => Some(groups.group_size()?.checked_mul(of_each)?),
        None => None,
    };
    listed.or(Some(all)).filter(|&size| 0 < size)
}

/// How many replicas and partitions the module runs on.
fn devices(op: &Op) -> (i64, i64) {
    let header = &op.module.header;
    (header.replica_count.unwrap_or(1), header.num_partitions.unwrap_or(1))
}

/// How output `output` depends on an operand. Output `i` belongs to operand `i`.
pub(super) fn reads(op: &Op, output: usize, operand: usize) -> Option<Reads> {
    let instruction = op.instruction;
    if instruction.opcode == Opcode::AllToAll && instruction.dimensions().is_empty() {
        // Output `i` is the operand of replica `i` with the position of this replica as number.
        return match (op.num_operands(), group_size(op)?) {
            (1, 1) => related(same_position(op.output_dims(output)?, op.operand_dims(operand)?)),
            _ => Some(Reads::Unknown),
        };
    }
    if output != operand {
        return Some(Reads::Nothing);
    }
    let (output, dims) = (op.output_dims(output)?, op.operand_dims(operand)?);
    related(match instruction.opcode {
        Opcode::AllGather => all_gather(op, output, dims),
        Opcode::ReduceScatter => parts(op, output, dims),
        Opcode::AllToAll => parts(op, output, dims),
        Opcode::AllReduce => {
            let mut relation = same_position(output, dims)?;
            relation.replica = Some(Index::Var(relation.var(group_size(op)?)));
            Some(relation)
        }
        Opcode::CollectiveBroadcast => {
            let relation = same_position(output, dims)?;
            Some(Relation { replica: Some(Index::Const(0)), ..relation })
        }
        // The pairs say which replica sends to this one.
        _ => {
            let mut relation = same_position(output, dims)?;
            let (replicas, partitions) = devices(op);
            let has_channel = op.instruction.attribute(Attribute::ChannelId).is_some();
            let last = if has_channel { partitions } else { replicas }.checked_sub(1)?;
            let source = RuntimeSource::Replica(op.at);
            let sender = relation.runtime(Interval::new(0, last), source, Vec::new(), true);
            relation.replica = Some(Index::Var(sender));
            Some(relation)
        }
    })
}

fn related(relation: Option<Relation>) -> Option<Reads> {
    relation.map(Reads::Related)
}

/// The operands of all replicas stand one after the other.
fn all_gather(op: &Op, output: &[i64], operand: &[i64]) -> Option<Relation> {
    let [along] = op.instruction.dimensions() else { return None };
    let along = dimension(*along, output.len())?;
    let part = *operand.get(along)?;
    let group = output[along].checked_div(part.max(1))?;
    let mut relation = Relation { simplify: true, ..Relation::default() };
    let (outer, inner) = (relation.vars(output), relation.vars(operand));
    let replica = relation.var(group);
    if outer.len() != inner.len() {
        return None;
    }
    relation.output = outer.iter().copied().map(Index::Var).collect();
    let mut operand = relation.output.clone();
    operand[along] = Index::Var(inner[along]);
    relation.operands = vec![operand];
    relation.equate([(1, outer[along]), (-part, replica), (-1, inner[along])], 0);
    relation.replica = Some(Index::Var(replica));
    Some(relation)
}

/// The operands are cut into a part per replica, and this replica gets its part of each: reduced
/// (`reduce-scatter`), or one after the other (`all-to-all`).
fn parts(op: &Op, output: &[i64], operand: &[i64]) -> Option<Relation> {
    let [along] = op.instruction.dimensions() else { return None };
    let along = dimension(*along, output.len())?;
    let group = group_size(op)?;
    let part = operand.get(along)?.checked_div(group)?;
    let mut relation = Relation { simplify: true, ..Relation::default() };
    let own = {
        let source = RuntimeSource::Replica(op.at);
        relation.runtime(Interval::new(0, group - 1), source, Vec::new(), true)
    };
    let outer = relation.vars(output);
    let (inner, within) = (relation.vars(operand), relation.var(part));
    let replica = relation.var(group);
    if outer.len() != inner.len() {
        return None;
    }
    relation.output = outer.iter().copied().map(Index::Var).collect();
    let mut operand = relation.output.clone();
    operand[along] = Index::Var(inner[along]);
    relation.operands = vec![operand];
    relation.equate([(1, inner[along]), (-part, own), (-1, within)], 0);
    if op.instruction.opcode == Opcode::ReduceScatter {
        relation.equate([(1, outer[along]), (-1, within)], 0);
    } else {
        relation.equate([(1, outer[along]), (-part, replica), (-1, within)], 0);
    }
    relation.replica = Some(Index::Var(replica));
    Some(relation)
}
