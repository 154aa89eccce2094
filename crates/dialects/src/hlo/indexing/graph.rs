//! A module as a graph, in the DOT language of Graphviz.
//!
//! A node per instruction; an edge from each operand to its user, with the maps from the output of
//! the user to the operand. A computation is a cluster, which stands inside that of its caller if
//! only one computation calls it; a dashed edge leads from it to each instruction that calls it.
//!
//! The text is written here because crates that build DOT from graphs (petgraph's `Dot`) have no
//! clusters, and without them a module of many computations cannot be read.

use super::{
    Indexing, IndexingSet, InstructionRef, Op, module_text::Listed, num_arrays, text::UNKNOWN,
};
use crate::hlo::{ComputationId, InstructionId, Opcode};
use std::{
    collections::BTreeSet,
    io::{self, Write},
};

/// The most maps that are written at an edge.
const MAX_MAPS_SHOWN: usize = 4;

impl Indexing<'_> {
    /// Writes the module as a graph.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_graph(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "digraph {} {{", quoted(&self.module.name))?;
        writeln!(out, "  compound=true;")?;
        writeln!(out, "  node [shape=box, fontname=\"monospace\", fontsize=10];")?;
        writeln!(out, "  edge [fontname=\"monospace\", fontsize=8];")?;
        self.write_clusters(out)?;
        for (id, computation) in self.module.computations() {
            for (instruction, _) in computation.instructions() {
                self.write_edges(InstructionRef { computation: id, instruction }, out)?;
            }
        }
        writeln!(out, "}}")
    }

    /// The cluster that each computation stands in: that of its only caller.
    fn parents(&self) -> Vec<Option<ComputationId>> {
        let mut callers: Vec<BTreeSet<ComputationId>> =
            vec![BTreeSet::new(); self.module.computations.len()];
        for (id, computation) in self.module.computations() {
            for instruction in &computation.instructions {
                for callee in instruction.called_computations() {
                    callers[callee.index()].insert(id);
                }
            }
        }
        let only = |callers: &BTreeSet<ComputationId>| match callers.len() {
            1 => callers.first().copied(),
            _ => None,
        };
        callers.iter().map(only).collect()
    }

    fn write_clusters(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut children: Vec<Vec<ComputationId>> =
            vec![Vec::new(); self.module.computations.len()];
        let mut open = Vec::new();
        let parents = self.parents();
        for ((id, _), parent) in self.module.computations().zip(&parents) {
            match parent {
                Some(parent) => children[parent.index()].push(id),
                None => open.push((id, false)),
            }
        }
        open.reverse();
        // Clusters nest as deep as calls do, so that recursion would not end well.
        while let Some((id, is_done)) = open.pop() {
            if is_done {
                writeln!(out, "  }}")?;
                continue;
            }
            let computation = &self.module[id];
            let entry = if id == self.module.entry { "ENTRY " } else { "" };
            let label = quoted(&format!("{entry}{}", computation.name));
            writeln!(out, "  subgraph cluster_{} {{", id.0)?;
            writeln!(out, "    label={label};")?;
            for (instruction, it) in computation.instructions() {
                let at = InstructionRef { computation: id, instruction };
                let label = match self.instruction_text(at).split_once(" = ") {
                    Some((name, value)) => quoted(&format!("{name}\n{value}")),
                    None => quoted(&it.name),
                };
                let style = if instruction == computation.root { ", penwidth=2" } else { "" };
                writeln!(out, "    {} [label={label}{style}];", node(id, instruction))?;
            }
            open.push((id, true));
            open.extend(children[id.index()].iter().rev().map(|&child| (child, false)));
        }
        Ok(())
    }

    fn write_edges(&self, at: InstructionRef, out: &mut dyn Write) -> io::Result<()> {
        let op = Op::new(self, at);
        let to = node(at.computation, at.instruction);
        let mut sets = vec![IndexingSet::default(); op.num_operands()];
        let listed = self.listed(&op);
        // The position of an operand of a tuple says it all.
        if op.instruction.opcode != Opcode::Tuple && listed == Listed::Pairs {
            for output in 0..num_arrays(&op.instruction.shape) {
                let found = self.output_to_input(at, output);
                sets.iter_mut().zip(&found).for_each(|(set, found)| set.extend(found));
            }
        }
        for (&operand, set) in op.instruction.operands.iter().zip(&sets) {
            let from = node(at.computation, operand);
            let label = match listed {
                Listed::Unknown => UNKNOWN.to_owned(),
                _ => self.edge_text(set),
            };
            match label.is_empty() {
                true => writeln!(out, "  {from} -> {to};")?,
                false => writeln!(out, "  {from} -> {to} [label={}];", quoted(&label))?,
            }
        }
        for callee in op.instruction.called_computations() {
            let from = node(callee, self.module[callee].root);
            writeln!(out, "  {from} -> {to} [style=dashed, ltail=cluster_{}];", callee.0)?;
        }
        Ok(())
    }

    fn edge_text(&self, set: &IndexingSet) -> String {
        let maps = set.maps().iter().take(MAX_MAPS_SHOWN);
        let mut texts: Vec<_> =
            maps.map(|map| self.map_text(map).replace(", domain: ", "\n  domain: ")).collect();
        if MAX_MAPS_SHOWN < set.maps().len() {
            texts.push(format!("and {} more", set.maps().len() - MAX_MAPS_SHOWN));
        }
        if set.has_unknown() {
            texts.push(UNKNOWN.to_owned());
        }
        texts.join("\n")
    }
}

fn node(computation: ComputationId, instruction: InstructionId) -> String {
    format!("i{}_{}", computation.0, instruction.0)
}

/// A text as a string of DOT, its lines on the left.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    match text.contains('\n') {
        true => format!("\"{}\\l\"", text.replace('\n', "\\l")),
        false => format!("\"{text}\""),
    }
}
