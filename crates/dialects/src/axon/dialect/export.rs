//! Exports a program of the dialect as Axon text.
//!
//! A value that is used once, in the block in which it is calculated, is written where it is used;
//! others are definitions. Names that would stand for something else in the text are written with a
//! number; which place belongs to which operation, and which name to which, is kept.

use super::{PROGRAM, builtin};
use crate::{
    axon::syntax::builtins::{is_builtin, is_in_prelude},
    mlir::{self, Blk, Op, Val, value_key},
    report::Report,
    text::Span,
};
use melior::ir::operation::OperationLike;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// Deepest nesting of operations; that of the text is limited by its parser.
const MAX_DEPTH: usize = 150;

/// Most operations that are written where they are used inside of each other; those of longer chains
/// become definitions.
const MAX_HEIGHT: usize = 32;

/// The text of a program.
pub(super) struct Exported<'c> {
    pub(super) text: String,
    /// The places of operations by their beginning, outer ones first.
    places: Vec<(Span, Op<'c>)>,
    /// Names in the text, and those that they stand for where these are others.
    renamed: HashMap<String, String>,
    /// The names in the text of values that have one.
    names: HashMap<usize, String>,
}

impl<'c> Exported<'c> {
    /// The innermost operation around a span.
    pub(super) fn op_at(&self, span: Span) -> Option<Op<'c>> {
        let after = self.places.partition_point(|(place, _)| place.start <= span.start);
        let before = self.places[..after].iter().rev();
        before
            .map(|(place, op)| (place, *op))
            .find(|(place, _)| span.end <= place.end)
            .map(|it| it.1)
    }

    /// The name in the program of a name in the text.
    pub(super) fn original<'n>(&'n self, name: &'n str) -> &'n str {
        self.renamed.get(name).map_or(name, String::as_str)
    }

    /// The names in the text of the arguments of a function.
    pub(super) fn arguments(&self, function: Op<'c>) -> Vec<String> {
        let arguments = mlir::body(function, 0).map(mlir::arguments).unwrap_or_default();
        let name = |argument: &Val<'c>| self.names.get(&value_key(*argument)).cloned();
        arguments.iter().filter_map(name).collect()
    }

    /// The name in the text of a value.
    pub(super) fn name(&self, value: Val<'c>) -> Option<&str> {
        self.names.get(&value_key(value)).map(String::as_str)
    }
}

/// Whether a name means something wherever nothing defines it.
fn is_reserved(name: &str) -> bool {
    matches!(name, "fn" | "inf" | "_") || is_builtin(name) || is_in_prelude(name)
}

/// Writes a program.
///
/// # Errors
/// It nests too deeply.
pub(super) fn export<'c>(program: Op<'c>) -> Result<Exported<'c>, Report<'c>> {
    let mut exporter = Exporter {
        out: Exported {
            text: String::new(),
            places: Vec::new(),
            renamed: HashMap::new(),
            names: HashMap::new(),
        },
        taken: HashSet::new(),
        added: Vec::new(),
        heights: HashMap::new(),
        depth: 0,
    };
    let Some(block) = mlir::body(program, 0) else { return Ok(exporter.out) };
    // Definitions at the top keep their names, the last one of each.
    let mut last: HashMap<&str, Op<'c>> = HashMap::new();
    for op in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "axon.def")) {
        last.insert(mlir::string_attr(op, "name").unwrap_or_default(), op);
    }
    for (name, op) in last {
        if !is_reserved(name) {
            exporter.taken.insert(name.to_string());
            exporter.out.names.insert(value_key(mlir::result(op, 0)), name.to_string());
        }
    }
    exporter.block(block)?;
    exporter.out.places.sort_by_key(|(place, _)| (place.start, std::cmp::Reverse(place.end)));
    Ok(exporter.out)
}

struct Exporter<'c> {
    out: Exported<'c>,
    taken: HashSet<String>,
    /// Those that were taken one after the other.
    added: Vec<String>,
    /// By value that is written where it is used.
    heights: HashMap<usize, usize>,
    depth: usize,
}

type Written<'c> = Result<(), Report<'c>>;

impl<'c> Exporter<'c> {
    fn put(&mut self, text: &str) {
        self.out.text.push_str(text);
    }

    /// A name for a value, which is that wanted if it stands for nothing else.
    fn name(&mut self, value: Val<'c>, wanted: &str) -> String {
        if let Some(name) = self.out.names.get(&value_key(value)) {
            return name.clone();
        }
        let numbered = (2_u32..).map(|number| format!("{wanted}_{number}"));
        let mut names = std::iter::once(wanted.to_string()).chain(numbered);
        let free = |name: &String| !is_reserved(name) && !self.taken.contains(name);
        let name = names.find(free).unwrap_or_default();
        self.taken.insert(name.clone());
        self.added.push(name.clone());
        if name != wanted {
            self.out.renamed.insert(name.clone(), wanted.to_string());
        }
        self.out.names.insert(value_key(value), name.clone());
        name
    }

    /// The operation that is the only one to use a value, if it stands in the same block.
    fn only_user(&self, op: Op<'c>, value: Val<'c>) -> Option<Op<'c>> {
        match mlir::uses(value)[..] {
            [(user, _)] if user.block() == op.block() => Some(user),
            _ => None,
        }
    }

    fn block(&mut self, block: Blk<'c>) -> Written<'c> {
        for op in mlir::ops(block) {
            let start = self.out.text.len();
            match mlir::name(op) {
                "axon.return" => {
                    if let Some(value) = mlir::operands(op).first() {
                        self.value(*value)?;
                        self.put("\n");
                    }
                    continue;
                }
                "axon.def" => {
                    let result = mlir::result(op, 0);
                    let operand = mlir::operand(op, 0);
                    let unpacked = mlir::defining_op(operand)
                        .is_some_and(|it| mlir::is(it, "axon.unpack"))
                        && self.only_user(op, operand) == Some(op);
                    if unpacked {
                        continue;
                    }
                    let wanted = mlir::string_attr(op, "name").unwrap_or_default();
                    // The value first: it may have the name of what it takes.
                    let name = self.name(result, wanted);
                    self.put(&format!("{name} = "));
                    self.value(operand)?;
                }
                "axon.unpack" => {
                    let mut names = Vec::new();
                    for part in mlir::results(op) {
                        names.push(match (self.only_user(op, part), mlir::uses(part).is_empty()) {
                            (_, true) => "_".to_string(),
                            (Some(user), _) if mlir::is(user, "axon.def") => {
                                let wanted = mlir::string_attr(user, "name").unwrap_or_default();
                                let name = self.name(mlir::result(user, 0), wanted);
                                self.out.names.insert(value_key(part), name.clone());
                                name
                            }
                            _ => self.name(part, "_v"),
                        });
                    }
                    self.put(&format!("{} = ", names.join(", ")));
                    self.value(mlir::operand(op, 0))?;
                }
                _ => {
                    let result = mlir::result(op, 0);
                    if self.only_user(op, result).is_some() && self.height(op) < MAX_HEIGHT {
                        continue;
                    }
                    let name = match mlir::uses(result).is_empty() {
                        true => "_".to_string(),
                        false => self.name(result, "_v"),
                    };
                    self.put(&format!("{name} = "));
                    self.op(op)?;
                }
            }
            self.place(start, op);
            self.put(";\n");
        }
        Ok(())
    }

    /// How many operations that are written where they are used nest in an operation, itself included.
    fn height(&mut self, op: Op<'c>) -> usize {
        let inside = mlir::operands(op).into_iter().map(value_key);
        let inside = inside.filter(|key| !self.out.names.contains_key(key));
        let highest = inside.filter_map(|key| self.heights.get(&key)).max();
        let height = 1 + highest.copied().unwrap_or(0);
        self.heights.insert(value_key(mlir::result(op, 0)), height);
        height
    }

    fn place(&mut self, start: usize, op: Op<'c>) {
        let span = Span::new(start as u32, self.out.text.len() as u32);
        self.out.places.push((span, op));
    }

    /// A value where it is used.
    fn value(&mut self, value: Val<'c>) -> Written<'c> {
        if let Some(name) = self.out.names.get(&value_key(value)) {
            let name = name.clone();
            self.put(&name);
            return Ok(());
        }
        match mlir::defining_op(value) {
            Some(op) => self.op(op),
            None => Err(Report::error("has an argument without a name")),
        }
    }

    fn list(&mut self, values: &[Val<'c>]) -> Written<'c> {
        self.put("(");
        for (number, value) in values.iter().enumerate() {
            self.put(if number == 0 { "" } else { ", " });
            self.value(*value)?;
        }
        Ok(())
    }

    /// An operation where its result is used.
    fn op(&mut self, op: Op<'c>) -> Written<'c> {
        if self.depth == MAX_DEPTH {
            return Err(Report::op_error(op, format!("nests more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let start = self.out.text.len();
        let operands = mlir::operands(op);
        match mlir::name(op) {
            "axon.use" => self.value(operands[0])?,
            "axon.builtin" => {
                self.put(mlir::string_attr(op, "name").unwrap_or_default());
            }
            "axon.number" => self.number(op),
            "axon.tuple" => {
                self.list(&operands)?;
                self.put(")");
            }
            "axon.call" => {
                self.callee(operands[0])?;
                self.list(&operands[1..])?;
                self.put(")");
            }
            "axon.fn" => self.function(op)?,
            _ => {
                let Some(name) = builtin(op) else {
                    return Err(Report::op_error(op, format!("is not expected in '{PROGRAM}'")));
                };
                if !name.starts_with(|c: char| c.is_ascii_alphabetic()) && operands.len() == 2 {
                    self.put("(");
                    self.value(operands[0])?;
                    self.put(&format!(" {name} "));
                    self.value(operands[1])?;
                } else {
                    self.put(name);
                    self.list(&operands)?;
                    for (number, (name, value)) in options(op).into_iter().enumerate() {
                        let comma = if number == 0 && operands.is_empty() { "" } else { ", " };
                        self.put(&format!("{comma}{name}={value}"));
                    }
                }
                self.put(")");
            }
        }
        self.place(start, op);
        self.depth -= 1;
        Ok(())
    }

    /// A function that is called: one that is written down there stands in parentheses.
    fn callee(&mut self, value: Val<'c>) -> Written<'c> {
        let is_function = !self.out.names.contains_key(&value_key(value))
            && mlir::defining_op(value).is_some_and(|op| mlir::is(op, "axon.fn"));
        self.put(if is_function { "(" } else { "" });
        self.value(value)?;
        self.put(if is_function { ")" } else { "" });
        Ok(())
    }

    fn number(&mut self, op: Op<'c>) {
        let Ok(value) = op.attribute("value") else { return };
        let text = match (mlir::wide_integer_of(value), mlir::float_of(value)) {
            (Some(integer), _) => integer.to_string(),
            (_, Some(float)) => format!("{float:?}"),
            _ => "0".to_string(),
        };
        match text.starts_with('-') {
            true => self.put(&format!("({text})")),
            false => self.put(&text),
        }
    }

    fn function(&mut self, op: Op<'c>) -> Written<'c> {
        let Some(block) = mlir::body(op, 0) else { return Ok(()) };
        // Functions side by side may use the same names.
        let mark = self.added.len();
        let names = mlir::strings_attr(op, "params");
        let annotations = mlir::strings_attr(op, "annotations");
        self.put("fn (");
        for (number, argument) in mlir::arguments(block).into_iter().enumerate() {
            let name = self.name(argument, names.get(number).copied().unwrap_or("_v"));
            let comma = if number == 0 { "" } else { ", " };
            self.put(&format!("{comma}{name}"));
            if let Some(annotation) = annotations.get(number).filter(|it| !it.is_empty()) {
                self.put(&format!(" : {annotation}"));
            }
        }
        self.put(")");
        if let Some(annotation) = mlir::string_attr(op, "result_annotation") {
            // Writing to a string cannot fail.
            let _ = write!(self.out.text, " : {annotation}");
        }
        self.put(" {\n");
        self.block(block)?;
        self.put("}");
        for name in self.added.drain(mark..) {
            self.taken.remove(&name);
        }
        Ok(())
    }
}

/// The options of a call of a built-in function, in the order of their names. Attributes of other
/// dialects, whose names have a point, are none.
pub(super) fn options<'c>(op: Op<'c>) -> Vec<(String, &'c str)> {
    let mut options = Vec::new();
    for (name, value) in op.attributes() {
        if let (Ok(name), Some(value)) = (name.as_string_ref().as_str(), mlir::string_of(value))
            && !name.contains('.')
        {
            options.push((name.to_string(), value));
        }
    }
    options.sort();
    options
}
