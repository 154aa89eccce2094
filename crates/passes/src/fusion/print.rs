//! `imap-print-fusion-plan`: print the kernels of fused functions, what passes between them, and why they are not one.
//!
//! This pass does not change the IR. It prints to the standard output, as text or as a graph for Graphviz
//! (`format=dot`). A kernel is an operation with maps, wherever in a function it stands. A group is a set of kernels
//! that `imap-schedule` chose to be computed together, so that what passes between them stays in cache. Bytes and
//! operations are numbers, or formulas over the extents of arguments. Other options are the costs of `imap-fuse`, which
//! the reasons refer to.
//!
//! ```text
//! func @main: 4 kernels
//!   kernel 0: fold [maximumf] (d0 4096)[s0 1024], 4194304 flops, 16793600 bytes, group 0, from lines 12
//!     reads argument x: 16777216 bytes
//!   kernel 1: map (d0 4096, d1 1024), 4194304 flops, 33570816 bytes, group 0, from lines 18, 19, 20
//!     reads kernel 0: 16384 bytes, apart: the result of the producer has several consumers
//! ```
//!
//! ```text
//! tc-opt model.hlo --print-fusion-plan='format=dot target=cpu' -o /dev/null | dot -Tsvg -o plan.svg
//! ```

use super::{cost::plan, costs, with_costs};
use crate::{
    analysis::cost::{Extents, Formula, work_of_operation},
    target::MemoryBound,
};
use melior::ir::{Location, ValueLike, operation::OperationLike};
use petgraph::{
    Direction,
    graph::{DiGraph, NodeIndex},
    visit::EdgeRef,
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write as _,
};
use tc_dialects::{
    imap::{
        AnyIndexed, Generic, Indexed,
        schedule::{GROUP, variable_names},
    },
    mlir::{self, Blk, Op, Val},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::{self, Report},
    text::Severity,
};
use tc_ir::{Context, Expr, Variable};

/// How the plan is printed.
pub const FORMAT: PassOption =
    PassOption { name: "format", description: "'text', or 'dot' for Graphviz", default: "text" };

/// Checks a value of [`FORMAT`].
///
/// # Errors
/// The value is unknown.
pub fn check_format(text: &str) -> Result<&str, String> {
    match text {
        "text" | "dot" => Ok(text),
        other => Err(format!("'format' expects 'text' or 'dot', found '{other}'")),
    }
}

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "imap-print-fusion-plan",
    summary: "Print kernels, what passes between them, and why they are not one",
    anchor: "builtin.module",
    options: &with_costs(FORMAT),
    dependent_dialects: &[],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let fail = |location, message: String| {
        Report::at(location, Severity::Error, message).emit();
        Failure
    };
    let format = check_format(pass.options.text(FORMAT.name))
        .map_err(|message| fail(pass.op.location(), message))?;
    let write = if format == "dot" { FusionPlan::dot } else { FusionPlan::text };
    let costs = costs(pass)?;
    let Some(module) = mlir::body(pass.op, 0) else { return Ok(()) };
    let functions = mlir::ops(module).into_iter();
    let functions = functions.filter(|it| mlir::is(*it, "func.func"));
    let plans = functions.filter_map(|it| FusionPlan::of(it, &costs));
    let text: String = plans.map(|plan| write(&plan)).collect();
    report::print(text.as_bytes()).map_err(|error| {
        fail(Location::unknown(pass.context), format!("cannot print the plan: {error}"))
    })
}

/// The kernels of a function.
struct FusionPlan<'c> {
    name: &'c str,
    /// The nodes in the order of the operations.
    graph: DiGraph<Node, Edge>,
}

/// What a tensor comes from, or goes to.
enum Node {
    Argument(String),
    Kernel(Kernel),
    /// The function returns it.
    Results,
}

/// An operation with maps.
struct Kernel {
    number: usize,
    /// The kind and the points.
    description: String,
    flops: String,
    bytes: String,
    /// The operations that contain it, outermost first.
    within: Vec<String>,
    group: Option<usize>,
    /// The lines of the program that it stands for.
    lines: Vec<String>,
}

/// A tensor that passes between two nodes.
struct Edge {
    bytes: String,
    /// Why the two kernels are not one.
    rejection: Option<String>,
}

impl<'c> FusionPlan<'c> {
    /// The plan of a function that has a body.
    fn of(function: Op<'c>, costs: &MemoryBound) -> Option<Self> {
        let block = mlir::body(function, 0)?;
        let name = mlir::string_attr(function, "sym_name").unwrap_or_default();
        let ir = Context::new();
        let arguments = mlir::arguments(block);
        let names = argument_names(function, arguments.len());
        let extents = extents(&ir, function, &arguments, &names);
        let mut it = PlanBuilder {
            ir: &ir,
            extents,
            nodes: HashMap::new(),
            graph: DiGraph::new(),
            num_kernels: 0,
            costs,
            groups: HashMap::new(),
        };
        for (value, name) in arguments.into_iter().zip(names) {
            let node = it.graph.add_node(Node::Argument(name));
            it.nodes.insert(mlir::value_key(value), node);
        }
        it.block(block, &mut Vec::new());
        let results = it.graph.add_node(Node::Results);
        for value in mlir::operands(mlir::terminator(block)) {
            it.connect(value, results, None);
        }
        Some(Self { name, graph: it.graph })
    }

    fn kernels(&self) -> impl Iterator<Item = (NodeIndex, &Kernel)> {
        self.graph.node_indices().filter_map(|node| match &self.graph[node] {
            Node::Kernel(kernel) => Some((node, kernel)),
            _ => None,
        })
    }

    fn text(&self) -> String {
        let count = self.kernels().count();
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = writeln!(text, "func @{}: {}", self.name, counted(count, "kernel"));
        for (node, kernel) in self.kernels() {
            let Kernel { number, description, flops, bytes, .. } = kernel;
            let _ = write!(text, "  kernel {number}: {description}, {flops} flops, {bytes} bytes");
            if let Some(group) = kernel.group {
                let _ = write!(text, ", group {group}");
            }
            if !kernel.within.is_empty() {
                let _ = write!(text, ", in {}", kernel.within.join(", "));
            }
            if !kernel.lines.is_empty() {
                let _ = write!(text, ", from lines {}", kernel.lines.join(", "));
            }
            text.push('\n');
            let mut edges: Vec<_> = self.graph.edges_directed(node, Direction::Incoming).collect();
            edges.sort_by_key(EdgeRef::id);
            for edge in edges {
                let source = match &self.graph[edge.source()] {
                    Node::Kernel(kernel) => format!("kernel {}", kernel.number),
                    Node::Argument(name) => format!("argument {name}"),
                    Node::Results => continue,
                };
                let Edge { bytes, rejection } = edge.weight();
                let _ = write!(text, "    reads {source}: {bytes} bytes");
                if let Some(rejection) = rejection {
                    let _ = write!(text, ", apart: {rejection}");
                }
                text.push('\n');
            }
        }
        text
    }

    fn dot(&self) -> String {
        let mut text = format!("digraph \"{}\" {{\n", escaped(self.name));
        text += "  node [shape=box, style=filled, fillcolor=white, fontname=\"monospace\", fontsize=10];\n";
        text += "  edge [fontname=\"monospace\", fontsize=8];\n";
        let mut clusters: BTreeMap<Option<usize>, String> = BTreeMap::new();
        for node in self.graph.node_indices() {
            let (id, mut group) = (node.index(), None);
            let line = match &self.graph[node] {
                Node::Argument(name) => {
                    format!("  n{id} [shape=ellipse, label=\"{}\"];\n", escaped(name))
                }
                Node::Results => format!("  n{id} [shape=ellipse, label=\"results\"];\n"),
                Node::Kernel(kernel) => {
                    group = kernel.group;
                    let Kernel { number, description, flops, bytes, .. } = kernel;
                    let within: String =
                        kernel.within.iter().map(|it| format!("\\nin {it}")).collect();
                    format!(
                        "  n{id} [label=\"{number}: {}\\n{flops} flops\\n{bytes} bytes{within}\", tooltip=\"lines {}\"];\n",
                        escaped(description),
                        kernel.lines.join(", ")
                    )
                }
            };
            clusters.entry(group).or_default().push_str(&line);
        }
        for (group, nodes) in clusters {
            match group {
                None => text += &nodes,
                Some(group) => {
                    let _ = write!(
                        text,
                        "  subgraph cluster_{group} {{\n  label=\"group {group}\"; style=rounded; fontname=\"monospace\"; fontsize=10;\n{nodes}  }}\n"
                    );
                }
            }
        }
        for edge in self.graph.edge_references() {
            let (from, to) = (edge.source().index(), edge.target().index());
            let Edge { bytes, rejection } = edge.weight();
            let flops = match &self.graph[edge.source()] {
                Node::Kernel(kernel) => format!("\\n{} flops", kernel.flops),
                _ => String::new(),
            };
            let _ = writeln!(
                text,
                "  n{from} -> n{to} [label=\"{bytes} bytes{flops}\", tooltip=\"{}\"];",
                escaped(rejection.as_deref().unwrap_or_default())
            );
        }
        text + "}\n"
    }
}

/// A plan under construction.
struct PlanBuilder<'i> {
    ir: &'i Context,
    extents: Extents<'i>,
    /// The nodes that make values.
    nodes: HashMap<usize, NodeIndex>,
    graph: DiGraph<Node, Edge>,
    num_kernels: usize,
    costs: &'i MemoryBound,
    /// The numbers of groups, by those in the attributes of their operations.
    groups: HashMap<i64, usize>,
}

impl<'c> PlanBuilder<'_> {
    /// Adds the kernels of a block, and those of the blocks inside of its other operations.
    fn block(&mut self, block: Blk<'c>, within: &mut Vec<String>) {
        for op in mlir::ops(block) {
            let Some(indexed) = AnyIndexed::cast(op) else {
                within.push(mlir::name(op).to_string());
                for region in 0..op.region_count() {
                    for inner in mlir::blocks(op, region) {
                        self.carry(&mlir::operands(op), &mlir::arguments(inner));
                        self.block(inner, within);
                        self.carry(&mlir::operands(mlir::terminator(inner)), &mlir::results(op));
                    }
                }
                within.pop();
                continue;
            };
            let next = self.groups.len();
            let group = mlir::integer_attr(op, GROUP);
            let group = group.map(|group| *self.groups.entry(group).or_insert(next));
            let kernel = self.kernel(indexed, within, group);
            let node = self.graph.add_node(Node::Kernel(kernel));
            for value in mlir::results(op) {
                self.nodes.insert(mlir::value_key(value), node);
            }
            let mut seen = Vec::new();
            for value in mlir::operands(op) {
                if !seen.contains(&value) {
                    self.connect(value, node, AnyIndexed::cast(op));
                    seen.push(value);
                }
            }
        }
    }

    /// Takes the last values, which a loop or a branch passes on, for those in front of it.
    fn carry(&mut self, from: &[Val<'c>], to: &[Val<'c>]) {
        for (from, to) in from.iter().rev().zip(to.iter().rev()) {
            if let Some(node) = self.nodes.get(&mlir::value_key(*from)).copied() {
                self.nodes.insert(mlir::value_key(*to), node);
            }
        }
    }

    /// Connects the node that makes a value with one that takes it, if there is one.
    fn connect(&mut self, value: Val<'c>, reader: NodeIndex, consumer: Option<AnyIndexed<'c>>) {
        let Some(source) = self.nodes.get(&mlir::value_key(value)).copied() else { return };
        let producer = mlir::defining_op(value).and_then(Generic::cast);
        let rejection = match (producer, consumer) {
            (Some(producer), Some(consumer)) if producer.op().block() == consumer.op().block() => {
                Some(match plan(self.ir, consumer, producer, (self.costs, true)) {
                    Err(rejection) => rejection.to_string(),
                    // Canonicalization after fusion makes bodies cheaper.
                    Ok(_) => "imap-fuse can fuse them as they are now".to_string(),
                })
            }
            _ => None,
        };
        let width = i64::from(mlir::byte_width(mlir::element_type(value.r#type())));
        let elements = match mlir::is_tensor(value.r#type()) {
            true => self.extents.elements(value),
            false => Some(self.ir.constant(1)),
        };
        let bytes = elements.map(|it| self.ir.mul(it, self.ir.constant(width)));
        let edge = Edge { bytes: self.formula(bytes), rejection };
        self.graph.add_edge(source, reader, edge);
    }

    fn kernel(
        &mut self,
        indexed: AnyIndexed<'c>,
        within: &[String],
        group: Option<usize>,
    ) -> Kernel {
        let number = self.num_kernels;
        self.num_kernels += 1;
        let op = indexed.op();
        let work = work_of_operation(op, &self.extents);
        let lines = mlir::source_lines(op.location()).into_iter().map(|(_, line)| line);
        let lines: BTreeSet<usize> = lines.collect();
        Kernel {
            number,
            description: describe(self.ir, indexed),
            flops: self.formula(work.flops),
            bytes: self.formula(work.bytes),
            within: within.to_vec(),
            group,
            lines: lines.iter().map(usize::to_string).collect(),
        }
    }

    fn formula(&self, amount: Option<Expr>) -> String {
        let formula = amount.and_then(|it| Formula::new(self.ir, it, self.extents.names()));
        formula.map_or_else(|| "?".to_string(), |it| it.to_string())
    }
}

/// The kind of an operation, its combiners, and its variables with their extents.
fn describe(ir: &Context, indexed: AnyIndexed) -> String {
    let folds: Vec<_> = indexed.accumulators().iter().map(|it| it.kind.name()).collect();
    let kind = match mlir::name(indexed.op()) {
        "imap.generic" if folds.is_empty() => "map".to_string(),
        "imap.generic" => format!("fold [{}]", folds.join(", ")),
        name => name.trim_start_matches("imap.").to_string(),
    };
    let domain = indexed.domain(ir);
    let extent = |variable: &Variable| {
        let extent = variable.constant_interval(ir).and_then(|it| it.num_members());
        extent.map_or_else(|| "?".to_string(), |extent| extent.to_string())
    };
    let variables = domain.dims.iter().chain(&domain.ranges);
    let named = variable_names(&domain).into_iter().zip(variables);
    let named: Vec<_> = named.map(|(name, it)| format!("{name} {}", extent(it))).collect();
    let (dims, ranges) = named.split_at(domain.dims.len());
    let ranges = match ranges {
        [] => String::new(),
        ranges => format!("[{}]", ranges.join(", ")),
    };
    format!("{kind} ({}){ranges}", dims.join(", "))
}

/// The names of the arguments of a function.
fn argument_names(function: Op, count: usize) -> Vec<String> {
    let attributes = mlir::array_attr(function, "arg_attrs");
    let name = |number: usize| {
        let attributes = attributes.get(number).copied();
        let name = attributes.and_then(|it| mlir::dictionary_entry(it, "tc.name"));
        let name = name.and_then(mlir::string_of);
        name.map_or_else(|| format!("arg{number}"), str::to_string)
    };
    (0..count).map(name).collect()
}

/// The extents of the arguments: numbers, or sizes such as `x.0`.
fn extents<'i>(ir: &'i Context, function: Op, arguments: &[Val], names: &[String]) -> Extents<'i> {
    let mut extents = Extents::new(ir, function);
    for (value, name) in arguments.iter().zip(names) {
        let shape = match mlir::is_tensor(value.r#type()) {
            true => mlir::shape(value.r#type()),
            false => Vec::new(),
        };
        let dims = shape.into_iter().enumerate().map(|(dim, extent)| match extent {
            Some(extent) => Some(ir.constant(extent)),
            None => Some(extents.size(&format!("{name}.{dim}"), 0)),
        });
        let dims = dims.collect();
        extents.add_argument(dims, None);
    }
    extents
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
