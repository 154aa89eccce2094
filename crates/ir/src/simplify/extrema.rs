//! Minima and maxima: sorted operands (if there are few), without dominated ones.

use smallvec::SmallVec;

use super::Simplifier;
use crate::expr::{Context, Expr, Node};

/// The most operands of a minimum or maximum, before a new one and after it, that it is compared with.
const MAX_COMPARED: usize = 16;
/// The most operands of a minimum or maximum that are sorted. Others come after them as they are given:
/// where each minimum is an operand of the next, all would be written anew each time.
const MAX_SORTED: usize = 32;

/// Which of its operands an operation picks.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Extremum {
    Min,
    Max,
}

impl Extremum {
    pub(super) fn of_node(node: Node) -> Option<Self> {
        match node {
            Node::Min(..) => Some(Extremum::Min),
            Node::Max(..) => Some(Extremum::Max),
            _ => None,
        }
    }

    /// The operands of a node of this kind.
    fn operands(self, node: Node) -> Option<(Expr, Expr)> {
        node.operands().filter(|_| Self::of_node(node) == Some(self))
    }

    fn of(self, ctx: &Context, lhs: Expr, rhs: Expr) -> Expr {
        match self {
            Extremum::Min => ctx.min(lhs, rhs),
            Extremum::Max => ctx.max(lhs, rhs),
        }
    }
}

impl Simplifier<'_> {
    /// The simplified minimum or maximum. The operands of such that are simplified already are not
    /// compared with each other again.
    pub(super) fn extremum(&mut self, lhs: Expr, rhs: Expr, kind: Extremum) -> Expr {
        let ctx = self.ctx;
        let (of_lhs, of_rhs) = (self.chain(lhs, kind), self.chain(rhs, kind));
        let (chain, other) =
            if of_lhs.len() < of_rhs.len() { (of_rhs, lhs) } else { (of_lhs, rhs) };
        let mut kept: Vec<Expr> = chain.iter().map(|&(operand, _)| operand).collect();
        // The first operands that stay: what they make is there.
        let mut num_same = kept.len();
        let mut candidates = ctx.operands_of(other, |node| kind.operands(node).is_some());
        if kept.is_empty() {
            candidates.extend(ctx.operands_of(lhs, |node| kind.operands(node).is_some()));
        }
        for candidate in candidates {
            if kept.contains(&candidate) {
                continue;
            }
            let mut place = kept.len();
            if place < MAX_SORTED {
                place = kept.partition_point(|&it| ctx.compare(it, candidate).is_lt());
            }
            let compared = place.saturating_sub(MAX_COMPARED)..kept.len().min(place + MAX_COMPARED);
            let (mut is_dominated, mut dominated) = (false, SmallVec::<[usize; 4]>::new());
            for number in compared {
                let operand = kept[number];
                let winner = match number < place {
                    true => self.decided(operand, candidate, kind),
                    false => self.decided(candidate, operand, kind),
                };
                if winner == Some(operand) {
                    is_dominated = true;
                    break;
                }
                if winner.is_some() {
                    dominated.push(number);
                }
            }
            for &number in dominated.iter().rev() {
                kept.remove(number);
                num_same = num_same.min(number);
                place -= usize::from(number < place);
            }
            if !is_dominated {
                kept.insert(place, candidate);
                num_same = num_same.min(place);
            }
        }
        let start = num_same.checked_sub(1).map(|last| chain[last].1);
        let extremum = kept[num_same..].iter().fold(start, |extremum, &operand| {
            Some(extremum.map_or(operand, |extremum| kind.of(ctx, extremum, operand)))
        });
        let extremum = extremum.unwrap_or(lhs);
        self.tables.extrema.insert(extremum);
        extremum
    }

    /// The operands of a simplified minimum or maximum in their order, each with what it makes with
    /// those before it. None where it is not known to be simplified.
    fn chain(&self, expr: Expr, kind: Extremum) -> Vec<(Expr, Expr)> {
        let mut chain = Vec::new();
        let mut rest = expr;
        while let Some((before, last)) = kind.operands(self.ctx.node(rest)) {
            chain.push((last, rest));
            rest = before;
        }
        if !chain.is_empty() && !self.tables.extrema.contains(&expr) {
            return Vec::new();
        }
        chain.push((rest, rest));
        chain.reverse();
        chain
    }

    /// Which of two expressions is the minimum or maximum everywhere, if one is.
    fn decided(&mut self, lhs: Expr, rhs: Expr, kind: Extremum) -> Option<Expr> {
        // min(a, max(a, b)) == a and its mirror
        for (plain, nested) in [(lhs, rhs), (rhs, lhs)] {
            match (self.ctx.node(nested), kind) {
                (Node::Max(a, b), Extremum::Min) | (Node::Min(a, b), Extremum::Max)
                    if a == plain || b == plain =>
                {
                    return Some(plain);
                }
                _ => {}
            }
        }
        let (smaller, larger) = if self.at_most(lhs, rhs) {
            (lhs, rhs)
        } else if self.at_most(rhs, lhs) {
            (rhs, lhs)
        } else {
            return None;
        };
        Some(match kind {
            Extremum::Min => smaller,
            Extremum::Max => larger,
        })
    }
}
