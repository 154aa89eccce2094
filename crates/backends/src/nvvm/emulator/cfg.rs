//! Where diverged lanes meet again: immediate postdominators of branches.
//!
//! Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm", on the reversed graph.

use super::module::{END, Instruction, Op};

/// Fills in `join` of every branch.
pub(super) fn set_joins(instructions: &mut [Instruction]) {
    let successors: Vec<Vec<usize>> = (0..instructions.len())
        .map(|pc| successors(&instructions[pc], pc, instructions.len()))
        .collect();
    let parents = postdominators(&successors);
    for (pc, instruction) in instructions.iter_mut().enumerate() {
        let parent = parents[pc].filter(|p| *p < successors.len());
        let meet = parent.map_or(END, |p| p as u32);
        match &mut instruction.op {
            Op::Branch { join, .. } | Op::BranchIndexed { join, .. } => *join = meet,
            _ => {}
        }
    }
}

/// The instructions that may follow; the number of instructions stands for the end.
fn successors(instruction: &Instruction, pc: usize, end: usize) -> Vec<usize> {
    let mut list = match &instruction.op {
        Op::Branch { target, .. } => vec![*target as usize],
        Op::BranchIndexed { targets, .. } => targets.iter().map(|t| *t as usize).collect(),
        // Lanes that exit are expected nowhere: only an unguarded exit ends the path.
        Op::Exit | Op::Trap | Op::Assertion if instruction.guard.is_some() => Vec::new(),
        Op::Exit | Op::Trap | Op::Assertion => vec![end],
        _ => vec![(pc + 1).min(end)],
    };
    if instruction.guard.is_some() {
        list.push((pc + 1).min(end));
    }
    for target in &mut list {
        *target = (*target).min(end);
    }
    list
}

/// The immediate postdominator of each node; nothing for nodes that never reach the end.
fn postdominators(successors: &[Vec<usize>]) -> Vec<Option<usize>> {
    let end = successors.len();
    let mut predecessors = vec![Vec::new(); end + 1];
    for (node, next) in successors.iter().enumerate() {
        for s in next {
            predecessors[*s].push(node);
        }
    }
    // Postorder of the reversed graph, from the end.
    let mut order = vec![usize::MAX; end + 1];
    let mut postorder = Vec::new();
    let mut seen = vec![false; end + 1];
    let mut stack = vec![(end, 0)];
    seen[end] = true;
    while let Some((node, next)) = stack.last_mut() {
        if let Some(p) = predecessors[*node].get(*next) {
            *next += 1;
            if !seen[*p] {
                seen[*p] = true;
                stack.push((*p, 0));
            }
        } else {
            order[*node] = postorder.len();
            postorder.push(*node);
            stack.pop();
        }
    }
    let mut parent: Vec<Option<usize>> = vec![None; end + 1];
    parent[end] = Some(end);
    let mut changed = true;
    while changed {
        changed = false;
        for node in postorder.iter().rev().copied().filter(|n| *n != end) {
            let mut new: Option<usize> = None;
            for s in successors[node].iter().copied().filter(|s| parent[*s].is_some()) {
                new = Some(match new {
                    None => s,
                    Some(other) => intersect(&parent, &order, s, other),
                });
            }
            if new.is_some() && parent[node] != new {
                parent[node] = new;
                changed = true;
            }
        }
    }
    parent
}

fn intersect(parent: &[Option<usize>], order: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        while order[a] < order[b] {
            a = parent[a].expect("a processed node has a parent");
        }
        while order[b] < order[a] {
            b = parent[b].expect("a processed node has a parent");
        }
    }
    a
}
