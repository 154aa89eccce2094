//! Calls, tuples, tokens, random numbers, and work done by several devices.
//!
//!   * F1: `tuple` gives its operands; `get-tuple-element` takes a tuple that has the element.
//!   * F2: `call` and `fusion` pass their operands to the computation and give its result.
//!   * F3: `condition` and `body` of a `while` take the operand; they give pred[] and the operand's
//!     shape.
//!   * F4: `conditional` selects by pred[] with two branches, or by s32[] with at least one. It has
//!     an operand for each branch, which the branch takes; all branches give the result.
//!   * F5: the operands of `after-all`, and the second one of `add-dependency`, are tokens.
//!   * F6: `all-reduce`, `collective-permute`, `collective-broadcast` and `opt-barrier` give shapes of
//!     their operands; several are a tuple. So does `all-to-all`, whose dimension splits into as many
//!     parts as a group has replicas.
//!   * F7: `all-gather` multiplies the size of one dimension by the number of replicas in a group,
//!     `reduce-scatter` divides it. Where the groups do not give the number, the written shape does.
//!   * F8: `to_apply` of `all-reduce` and `reduce-scatter` combines two scalars (W4).
//!   * F9: `replica_groups` names no replica twice; iota groups have as many entries as their array.
//!     The sources and targets of `collective-permute` are different, and not negative.
//!   * F10: `partition-id` and `replica-id` give u32[].
//!   * F11: `rng` takes two scalars of the result's type. `rng-bit-generator` takes its state, a list
//!     of u32 or u64, and gives a state and an array of integers.
//!   * F12: `copy-start` gives a tuple of the shape of its operand, twice, and u32[]; `copy-done`
//!     takes such a tuple and gives its first element.

use super::{Cx, Inferred, gives, is_permutation, one_or_tuple, same, takes, window};
use crate::{
    element::{ElementKind, ElementType},
    hlo::{ArrayShape, Attribute, Opcode, ReplicaGroups, Shape, Value},
};
use std::collections::HashSet;

pub(super) fn infer(cx: &Cx) -> Inferred {
    match cx.instruction.opcode {
        Opcode::Tuple => Ok(Some(Shape::Tuple(cx.operands().cloned().collect()))),
        Opcode::GetTupleElement => get_tuple_element(cx),
        Opcode::Call => call(cx, Attribute::ToApply),
        Opcode::Fusion => call(cx, Attribute::Calls),
        Opcode::While => while_loop(cx),
        Opcode::Conditional => conditional(cx),
        Opcode::AfterAll => {
            (0..cx.num_operands()).try_for_each(|position| token(cx, position))?;
            Ok(Some(Shape::Token))
        }
        Opcode::AddDependency => {
            token(cx, 1)?;
            Ok(Some(cx.operand(0).clone()))
        }
        Opcode::CopyStart => Ok(Some(started(cx.operand(0)))),
        Opcode::CopyDone => copy_done(cx),
        Opcode::OptBarrier => Ok(Some(cx.operand(0).clone())),
        Opcode::PartitionId | Opcode::ReplicaId => Ok(Some(Shape::scalar(ElementType::U32))),
        Opcode::Rng => rng(cx),
        Opcode::RngBitGenerator => rng_bit_generator(cx),
        Opcode::RngGetAndUpdateState => match cx.result()?.element_type.kind() {
            ElementKind::Unsigned => Ok(None),
            _ => Err("expected a state that holds unsigned integers".to_owned()),
        },
        // What a custom call gives is known to its target only.
        Opcode::CustomCall => Ok(None),
        _ => collective(cx),
    }
}

/// F1.
fn get_tuple_element(cx: &Cx) -> Inferred {
    let index = cx.instruction.integer(Attribute::Index).unwrap_or(-1);
    let Some(elements) = cx.operand(0).as_tuple() else {
        return Err(format!("expected a tuple, found {}", cx.operand(0).without_layout()));
    };
    match usize::try_from(index).ok().and_then(|index| elements.get(index)) {
        Some(element) => Ok(Some(element.clone())),
        None => Err(format!("index {index} of a tuple with {} elements", elements.len())),
    }
}

/// What a `copy-start` of a value gives.
fn started(operand: &Shape) -> Shape {
    Shape::Tuple(vec![operand.clone(), operand.clone(), Shape::scalar(ElementType::U32)])
}

/// F12.
fn copy_done(cx: &Cx) -> Inferred {
    let operand = cx.operand(0);
    match operand.as_tuple() {
        Some([copy, ..]) if operand.is_compatible(&started(copy)) => Ok(Some(copy.clone())),
        _ => Err(format!(
            "expected what 'copy-start' gives, a tuple of a shape, twice, and u32[], found {}",
            operand.without_layout()
        )),
    }
}

/// F2.
fn call(cx: &Cx, attribute: Attribute) -> Inferred {
    let computation = cx.callee(attribute)?;
    takes(computation, cx.operands())?;
    Ok(Some(computation.root().shape.clone()))
}

/// F3.
fn while_loop(cx: &Cx) -> Inferred {
    let (condition, body) = (cx.callee(Attribute::Condition)?, cx.callee(Attribute::Body)?);
    takes(condition, cx.operands())?;
    gives(condition, &Shape::scalar(ElementType::Pred))?;
    takes(body, cx.operands())?;
    gives(body, cx.operand(0))?;
    Ok(Some(cx.operand(0).clone()))
}

/// F4.
fn conditional(cx: &Cx) -> Inferred {
    let selector = cx.array(0)?;
    let has = |attribute| cx.instruction.attribute(attribute).is_some();
    let listed = has(Attribute::BranchComputations);
    let pair = (has(Attribute::TrueComputation), has(Attribute::FalseComputation));
    if (listed, pair) != (true, (false, false)) && (listed, pair) != (false, (true, true)) {
        return Err(
            "expected 'branch_computations', or 'true_computation' and 'false_computation'"
                .to_owned(),
        );
    }
    let branches = cx.instruction.branches();
    let fits = selector.is_scalar()
        && match selector.element_type {
            ElementType::Pred => branches.len() == 2,
            ElementType::S32 => listed && !branches.is_empty(),
            _ => false,
        };
    if !fits {
        let count = branches.len();
        return Err(format!("{selector} does not select one of {count} branches"));
    }
    same("the number of operands", cx.num_operands(), branches.len() + 1)?;
    for (branch, operand) in branches.iter().zip(cx.operands().skip(1)) {
        let branch = &cx.module[*branch];
        takes(branch, std::iter::once(operand))?;
        gives(branch, &cx.instruction.shape)?;
    }
    Ok(None)
}

/// F5.
fn token(cx: &Cx, position: usize) -> Result<(), String> {
    match cx.operand(position) {
        Shape::Token => Ok(()),
        other => Err(format!(
            "expected operand {position} to be a token, found {}",
            other.without_layout()
        )),
    }
}

/// F9: the number of replicas in a group, if the groups say it.
fn group_size(cx: &Cx) -> Result<Option<i64>, String> {
    let Some(groups) = cx.instruction.replica_groups() else { return Ok(None) };
    match groups {
        ReplicaGroups::Lists(lists) => {
            let mut seen = HashSet::new();
            for &replica in lists.iter().flatten() {
                if replica < 0 || !seen.insert(replica) {
                    return Err(format!("'replica_groups' names replica {replica} twice"));
                }
            }
        }
        ReplicaGroups::Iota { group_dims, dims, transpose } => {
            let count = |dims: &[i64]| ArrayShape::new(ElementType::Pred, dims).num_elements();
            let fits =
                transpose.is_empty() || transpose.len() == dims.len() && is_permutation(transpose);
            if count(group_dims).is_none() || count(group_dims) != count(dims) || !fits {
                return Err(format!(
                    "expected 'replica_groups' to cut an array of {dims:?} into {group_dims:?}"
                ));
            }
        }
    }
    Ok(groups.group_size().filter(|&size| 0 < size))
}

/// F6 to F9.
fn collective(cx: &Cx) -> Inferred {
    let instruction = cx.instruction;
    let opcode = instruction.opcode;
    let size = group_size(cx)?;
    if matches!(opcode, Opcode::AllReduce | Opcode::ReduceScatter) {
        for position in 0..cx.num_operands() {
            let array = cx.array(position)?;
            window::reducer(cx, Attribute::ToApply, &[array, array])?;
        }
    }
    if let Some(Value::Pairs(pairs)) = instruction.attribute(Attribute::SourceTargetPairs) {
        let (mut sources, mut targets) = (HashSet::new(), HashSet::new());
        for &(source, target) in pairs {
            if source < 0 || target < 0 || !sources.insert(source) || !targets.insert(target) {
                return Err(format!("the pair {{{source},{target}}} names a replica again"));
            }
        }
    }
    let mut results: Vec<Shape> = cx.operands().cloned().collect();
    match opcode {
        Opcode::AllGather | Opcode::ReduceScatter => {
            let written = instruction.shape.elements();
            for (position, result) in results.iter_mut().enumerate() {
                let dim = cx.dimension(cx.array(position)?.rank())?;
                let Shape::Array(array) = result else { continue };
                let written = written.get(position).and_then(Shape::as_array);
                let written = written.and_then(|array| array.dims.get(dim)).copied();
                let found = array.dims[dim];
                array.dims[dim] = match (opcode, size) {
                    (Opcode::AllGather, Some(size)) => {
                        super::size(i128::from(found) * i128::from(size))?
                    }
                    (_, Some(size)) if found % size == 0 => found / size,
                    (Opcode::AllGather, None) => written
                        .filter(|&written| found != 0 && written % found == 0)
                        .unwrap_or(found),
                    (_, None) => written
                        .filter(|&written| written != 0 && found % written == 0)
                        .unwrap_or(found),
                    (_, Some(size)) => {
                        return Err(format!("size {found} does not split into {size} parts"));
                    }
                };
            }
        }
        Opcode::AllToAll if !instruction.dimensions().is_empty() => {
            let array = cx.array(0)?;
            let dim = cx.dimension(array.rank())?;
            if let Some(size) = size
                && array.dims[dim] % size != 0
            {
                return Err(format!("size {} does not split into {size} parts", array.dims[dim]));
            }
        }
        // Without a dimension, each replica of the group gets one of the operands.
        Opcode::AllToAll => return Ok(Some(Shape::Tuple(results))),
        _ => {}
    }
    Ok(Some(one_or_tuple(results)))
}

/// F11.
fn rng(cx: &Cx) -> Inferred {
    let result = cx.result()?;
    for position in 0..2 {
        let array = cx.array(position)?;
        if !array.is_scalar() || array.element_type != result.element_type {
            return Err(format!(
                "expected operand {position} to be {}[], found {array}",
                result.element_type
            ));
        }
    }
    Ok(None)
}

/// F11.
fn rng_bit_generator(cx: &Cx) -> Inferred {
    let state = cx.array(0)?;
    let is_state = matches!(state.element_type, ElementType::U32 | ElementType::U64);
    if !is_state || state.rank() != 1 {
        return Err(format!("expected a list of u32 or u64 as the state, found {state}"));
    }
    match &cx.instruction.shape {
        Shape::Tuple(elements) => match &elements[..] {
            [next, Shape::Array(bits)]
                if next.is_compatible(cx.operand(0)) && bits.element_type.is_integer() =>
            {
                Ok(None)
            }
            _ => Err(format!(
                "expected ({state}, an array of integers), found {}",
                cx.instruction.shape.without_layout()
            )),
        },
        other => Err(format!("expected a tuple, found {}", other.without_layout())),
    }
}
