//! The operations of a block as a graph: an edge from each operation to those that need its results.

use petgraph::{
    Direction,
    graph::{DiGraph, NodeIndex},
    visit::{Dfs, Reversed, Walker},
};
use std::collections::{HashMap, HashSet};
use tc_dialects::mlir::{self, Blk, Op};

/// The operations of a block in their order, and who needs whom, also inside of regions.
pub(super) struct BlockGraph<'c> {
    graph: DiGraph<Op<'c>, ()>,
    nodes: HashMap<usize, NodeIndex>,
}

impl<'c> BlockGraph<'c> {
    pub(super) fn new(block: Blk<'c>) -> Self {
        let (mut graph, mut nodes) = (DiGraph::new(), HashMap::new());
        for op in mlir::ops(block) {
            nodes.insert(mlir::op_key(op), graph.add_node(op));
        }
        for node in graph.node_indices() {
            mlir::walk(graph[node], &mut |inner| {
                for value in mlir::operands(inner) {
                    let producer =
                        mlir::defining_op(value).and_then(|op| nodes.get(&mlir::op_key(op)));
                    if let Some(producer) = producer.filter(|producer| **producer != node) {
                        graph.update_edge(*producer, node, ());
                    }
                }
            });
        }
        Self { graph, nodes }
    }

    /// The place of an operation in the block; `None` if it is in another one.
    pub(super) fn place(&self, op: Op<'c>) -> Option<usize> {
        self.nodes.get(&mlir::op_key(op)).map(|node| node.index())
    }

    fn node(&self, op: Op<'c>) -> NodeIndex {
        self.nodes[&mlir::op_key(op)]
    }

    /// Whether an operation in front of `second` needs a result of `first`.
    pub(super) fn is_used_between(&self, first: Op<'c>, second: Op<'c>) -> bool {
        let end = self.node(second);
        let mut users = self.graph.neighbors_directed(self.node(first), Direction::Outgoing);
        users.any(|user| user < end)
    }

    /// The operations between two that the second one needs, in their order. `None` if one of them needs the first one.
    pub(super) fn needed_between(&self, first: Op<'c>, second: Op<'c>) -> Option<Vec<Op<'c>>> {
        let (start, end) = (self.node(first), self.node(second));
        let needed = Dfs::new(Reversed(&self.graph), end).iter(Reversed(&self.graph));
        let mut between: Vec<_> = needed.filter(|node| start < *node && *node < end).collect();
        between.sort_unstable();
        let between_set: HashSet<_> = between.iter().copied().collect();
        let mut users = self.graph.neighbors_directed(start, Direction::Outgoing);
        let is_free = users.all(|user| !between_set.contains(&user));
        is_free.then(|| between.into_iter().map(|node| self.graph[node]).collect())
    }
}
