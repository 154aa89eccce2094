//! `hlo-print-graph`: print an HLO module as a graph in the DOT language of Graphviz.
//!
//! This pass does not change the IR. It prints to the standard output. An instruction is a node. An edge
//! leads from each operand to its user and shows the maps from the output of the user to the operand. A
//! computation is a cluster, nested in the cluster of its caller if it has only one; a dashed edge leads
//! from it to the instructions that call it. An edge shows at most four maps and counts the rest. Long
//! lines are cut; the tooltips of a picture show them in full. `only=NAME,NAME` draws instructions and
//! computations of these names, their neighbors, and the computations that they call.
//!
//! ```text
//! tc-opt model.hlo --graph -o /dev/null | dot -Tsvg -o model.svg
//! ```

use super::print_indexing_maps::{ONLY, print, selected};
use tc_dialects::pass::{Failure, PassInfo, PassRun};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "hlo-print-graph",
    summary: "Print an HLO module as a graph for Graphviz",
    anchor: "builtin.module",
    options: &[ONLY],
    dependent_dialects: &[],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    print(pass, |indexing, out| match selected(pass, &indexing)? {
        Some(selection) => indexing.write_graph_around(&selection, out),
        None => indexing.write_graph(out),
    })
}
