//! A module as a graph, in the DOT language of Graphviz.
//!
//! A node per instruction, with its shape, opcode and attributes; the whole line is its tooltip. An edge
//! from each operand to its user, with the number of the operand where there are several, and the
//! maps from the output of the user to the operand. A computation is a cluster, which stands inside
//! that of its caller if only one computation calls it; a dashed edge leads from it to each
//! instruction that calls it.
//!
//! The text is written here because crates that build DOT from graphs (petgraph's `Dot`) have no
//! clusters, and without them a module of many computations cannot be read.

use super::{
    Indexing, IndexingSet, InstructionRef, Op, Selection,
    module_text::{Listed, payload_text},
    num_arrays,
    text::UNKNOWN,
};
use crate::hlo::{ComputationId, Instruction, InstructionId, Opcode, Value, syntax};
use std::{
    collections::BTreeSet,
    io::{self, Write},
};

/// The most maps that are written at an edge.
const MAX_MAPS_SHOWN: usize = 4;
/// The most characters of a line in a node.
const MAX_LINE: usize = 60;
/// The most characters of a tooltip.
const MAX_TOOLTIP: usize = 1000;

impl Indexing<'_> {
    /// Writes the module as a graph.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_graph(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_graph_of(&self.everything(), out)
    }

    /// Writes a part of the module as a graph: the instructions that are selected, their operands and
    /// users, and the computations that the selected ones call.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_graph_around(&self, selection: &Selection, out: &mut dyn Write) -> io::Result<()> {
        let mut shown = Selection::new();
        let mut called = Vec::new();
        for (&id, selected) in selection {
            let computation = &self.module[id];
            let shown = shown.entry(id).or_default();
            for (instruction, it) in computation.instructions() {
                if selected.contains(&instruction) {
                    shown.insert(instruction);
                    shown.extend(&it.operands);
                    called.extend(it.called_computations());
                } else if it.operands.iter().any(|operand| selected.contains(operand)) {
                    shown.insert(instruction);
                }
            }
        }
        let mut seen = BTreeSet::new();
        while let Some(id) = called.pop() {
            if seen.insert(id) {
                let computation = &self.module[id];
                let shown = shown.entry(id).or_default();
                for (instruction, it) in computation.instructions() {
                    shown.insert(instruction);
                    called.extend(it.called_computations());
                }
            }
        }
        self.write_graph_of(&shown, out)
    }

    fn write_graph_of(&self, shown: &Selection, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "digraph {} {{", quoted(&self.module.name))?;
        writeln!(out, "  compound=true;")?;
        writeln!(out, "  graph [fontname=\"monospace\", fontsize=11, style=rounded, color=gray];")?;
        writeln!(
            out,
            "  node [shape=box, style=filled, fillcolor=white, fontname=\"monospace\", fontsize=10];"
        )?;
        writeln!(out, "  edge [fontname=\"monospace\", fontsize=8];")?;
        self.write_clusters(shown, out)?;
        for (&computation, instructions) in shown {
            for &instruction in instructions {
                self.write_edges(InstructionRef { computation, instruction }, shown, out)?;
            }
        }
        writeln!(out, "}}")
    }

    /// The cluster that each computation stands in: that of its only caller.
    fn parents(&self, shown: &Selection) -> Vec<Option<ComputationId>> {
        let mut callers: Vec<BTreeSet<ComputationId>> =
            vec![BTreeSet::new(); self.module.computations.len()];
        for (&id, instructions) in shown {
            for &instruction in instructions {
                for callee in self.module[id][instruction].called_computations() {
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

    fn write_clusters(&self, shown: &Selection, out: &mut dyn Write) -> io::Result<()> {
        let mut children: Vec<Vec<ComputationId>> =
            vec![Vec::new(); self.module.computations.len()];
        let mut open = Vec::new();
        let parents = self.parents(shown);
        for &id in shown.keys() {
            match parents[id.index()] {
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
            for &instruction in shown.get(&id).into_iter().flatten() {
                self.write_node(InstructionRef { computation: id, instruction }, out)?;
            }
            open.push((id, true));
            open.extend(children[id.index()].iter().rev().map(|&child| (child, false)));
        }
        Ok(())
    }

    fn write_node(&self, at: InstructionRef, out: &mut dyn Write) -> io::Result<()> {
        let computation = &self.module[at.computation];
        let it = &computation[at.instruction];
        let is_root = at.instruction == computation.root;
        let (root, style) = if is_root { ("ROOT ", ", penwidth=2") } else { ("", "") };
        let inside = payload_text(it).map_or_else(String::new, |text| format!("({text})"));
        let Instruction { name, opcode, shape, .. } = it;
        let value = format!("{} {opcode}{inside}", shape.without_default_layouts());
        let mut lines = vec![format!("{root}{name}"), value];
        for (value, text) in syntax::print_typed_attributes(self.module, computation, it) {
            // Edges lead to computations.
            if !matches!(value, Value::Computation(_) | Value::Computations(_)) {
                lines.push(text);
            }
        }
        let lines: Vec<String> = lines.iter().map(|line| shortened(line, MAX_LINE)).collect();
        let color = match opcode {
            Opcode::Parameter => ", fillcolor=gray90",
            Opcode::Constant | Opcode::Iota => ", fillcolor=gray97",
            Opcode::Fusion | Opcode::Call | Opcode::Conditional | Opcode::While => {
                ", fillcolor=lightblue"
            }
            _ => "",
        };
        let tooltip = quoted(&shortened(&self.instruction_text(at), MAX_TOOLTIP));
        let (node, label) = (node(at.computation, at.instruction), quoted(&lines.join("\n")));
        writeln!(out, "    {node} [label={label}, tooltip={tooltip}{color}{style}];")
    }

    fn write_edges(
        &self,
        at: InstructionRef,
        shown: &Selection,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let op = Op::new(self, at);
        let to = node(at.computation, at.instruction);
        let is_shown = |computation: ComputationId, instruction: InstructionId| {
            shown.get(&computation).is_some_and(|shown| shown.contains(&instruction))
        };
        let operands = &op.instruction.operands;
        if operands.iter().any(|&operand| is_shown(at.computation, operand)) {
            let mut sets = vec![IndexingSet::default(); op.num_operands()];
            let listed = self.listed(&op);
            // The position of an operand of a tuple says it all.
            if op.instruction.opcode != Opcode::Tuple && listed == Listed::Pairs {
                for output in 0..num_arrays(&op.instruction.shape) {
                    let found = self.output_to_input(at, output);
                    sets.iter_mut().zip(&found).for_each(|(set, found)| set.extend(found));
                }
            }
            for (number, (&operand, set)) in operands.iter().zip(&sets).enumerate() {
                if !is_shown(at.computation, operand) {
                    continue;
                }
                let from = node(at.computation, operand);
                let maps = match listed {
                    Listed::Unknown => UNKNOWN.to_owned(),
                    _ => self.edge_text(set),
                };
                let number = match operands.len() {
                    1 => String::new(),
                    _ => format!("operand {number}"),
                };
                let lines = [number, maps].into_iter().filter(|text| !text.is_empty());
                let label = lines.collect::<Vec<_>>().join("\n");
                match label.is_empty() {
                    true => writeln!(out, "  {from} -> {to};")?,
                    false => writeln!(out, "  {from} -> {to} [label={}];", quoted(&label))?,
                }
            }
        }
        for callee in op.instruction.called_computations() {
            let root = self.module[callee].root;
            if is_shown(callee, root) {
                let from = node(callee, root);
                writeln!(out, "  {from} -> {to} [style=dashed, ltail=cluster_{}];", callee.0)?;
            }
        }
        Ok(())
    }

    fn edge_text(&self, set: &IndexingSet) -> String {
        let maps = set.maps().iter().take(MAX_MAPS_SHOWN);
        let mut texts: Vec<_> = maps
            .map(|map| {
                let mut map = map.clone();
                map.simplify(&self.context);
                self.map_text(&map).replace(", domain: ", "\n  domain: ")
            })
            .collect();
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

/// The beginning of a line that has more than so many characters.
fn shortened(line: &str, most: usize) -> String {
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}..", &line[..end]),
        None => line.to_owned(),
    }
}

/// A text as a string of DOT, its lines on the left.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    match text.contains('\n') {
        true => format!("\"{}\\l\"", text.replace('\n', "\\l")),
        false => format!("\"{text}\""),
    }
}
