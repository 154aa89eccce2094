//! `hlo-print-graph`: a picture of an HLO module, in the DOT language of Graphviz.
//!
//! Changes nothing. Prints to the standard output. An instruction is a node; an edge leads from
//! each operand to its user and shows the maps from the output of the user to the operand. A
//! computation is a cluster, inside that of its caller if it has only one; a dashed edge leads
//! from it to the instructions that call it. Of more than four maps the rest is counted; long lines
//! are cut, and whole in the tooltips of a picture. `only=NAME,NAME` draws instructions and computations
//! of these names, with what is next to them and what they call.
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
