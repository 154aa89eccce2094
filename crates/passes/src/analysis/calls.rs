//! Which functions of a module call which.

use petgraph::{algo::toposort, graphmap::DiGraphMap};
use std::collections::HashMap;
use tc_dialects::{
    mlir::{self, Blk, Op},
    report::Report,
};

/// The functions of a module that have a body, and their calls.
pub(crate) struct Calls<'c> {
    /// The functions in the order of the module.
    pub functions: Vec<Op<'c>>,
    /// Pairs of a call and its caller.
    pub list: Vec<(Op<'c>, Op<'c>)>,
    by_name: HashMap<&'c str, Op<'c>>,
}

impl<'c> Calls<'c> {
    /// The calls in the block of a module.
    pub fn of(module: Blk<'c>) -> Self {
        let has_body = |op: &Op| mlir::is(*op, "func.func") && mlir::body(*op, 0).is_some();
        let functions: Vec<_> = mlir::ops(module).into_iter().filter(has_body).collect();
        let mut list = Vec::new();
        for function in &functions {
            mlir::walk(*function, &mut |op| {
                list.extend(mlir::is(op, "func.call").then_some((op, *function)));
            });
        }
        let name = |op: &Op<'c>| mlir::string_attr(*op, "sym_name").unwrap_or_default();
        let by_name = functions.iter().map(|op| (name(op), *op)).collect();
        Self { functions, list, by_name }
    }

    /// The function that is called; `None` if the module does not have its body.
    pub fn callee(&self, call: Op<'c>) -> Option<Op<'c>> {
        self.by_name.get(mlir::callee(call)?).copied()
    }

    /// The functions that others call or that call others, each one after those that it calls.
    ///
    /// # Errors
    /// A function calls itself, directly or through others.
    pub fn callees_first(&self) -> Result<Vec<Op<'c>>, Report<'c>> {
        let mut graph: DiGraphMap<usize, ()> = DiGraphMap::new();
        let mut by_key = HashMap::new();
        for (call, caller) in &self.list {
            let Some(callee) = self.callee(*call) else { continue };
            let [from, to] = [callee, *caller].map(|op| (mlir::op_key(op), op));
            by_key.extend([from, to]);
            graph.add_edge(from.0, to.0, ());
        }
        let order = toposort(&graph, None).map_err(|cycle| {
            let why = "calls itself, directly or through others; use a loop";
            Report::op_error(by_key[&cycle.node_id()], why)
        })?;
        Ok(order.into_iter().map(|key| by_key[&key]).collect())
    }
}
