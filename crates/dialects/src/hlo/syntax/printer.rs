//! Writes a module as HLO text, in the form that XLA prints.
//!
//! The text parses back to the same module, spans aside. Floating point constants have the
//! shortest digits that give their values back, which may be fewer than XLA prints.

use crate::hlo::{
    ArrayLiteral, ArrayShape, Attribute, Computation, Header, Instruction, Literal, Module,
    Payload, ReplicaGroups, Shape, StackFrames, Value, WindowDim,
    shape::{write_list, write_separator},
};
use std::fmt::{self, Display, Formatter, Write};

/// What to write; by default everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintOptions {
    /// `%` before names, and the shapes of parameters and result after the names of computations.
    pub percent: bool,
    /// Where instructions come from.
    pub metadata: bool,
}

impl Default for PrintOptions {
    fn default() -> Self {
        Self { percent: true, metadata: true }
    }
}

/// The text of a module.
pub fn print(module: &Module, options: PrintOptions) -> String {
    let mut printer = Printer { module, options, out: String::new() };
    // Writing to a string cannot fail.
    let _ = printer.module();
    printer.out
}

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self, PrintOptions::default()))
    }
}

/// The values of the attributes of an instruction that its meaning depends on, with their text: those that have a
/// type, and the target of a custom call.
pub fn print_typed_attributes<'i>(
    module: &Module,
    computation: &Computation,
    instruction: &'i Instruction,
) -> Vec<(&'i Value, String)> {
    let options = PrintOptions { percent: false, metadata: false };
    let attributes = instruction.attributes.iter().filter(|(attribute, value)| {
        !matches!(value, Value::Text(_)) || *attribute == Attribute::CustomCallTarget
    });
    let text = |(attribute, value): &'i (Attribute, Value)| {
        let mut printer = Printer { module, options, out: format!("{attribute}=") };
        // Writing to a string cannot fail.
        let _ = printer.value(computation, value);
        (value, printer.out)
    };
    attributes.map(text).collect()
}

/// The text of a value of an attribute that refers to no computation or instruction.
pub fn print_value(value: &Value) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_value(&mut out, value);
    out
}

/// Lists of empty lists longer than this are written as one list; both read back the same.
const MAX_EMPTY_LISTS: i64 = 4096;

struct Printer<'m> {
    module: &'m Module,
    options: PrintOptions,
    out: String,
}

impl Printer<'_> {
    fn module(&mut self) -> fmt::Result {
        write!(self.out, "HloModule {}", self.module.name)?;
        self.header(&self.module.header)?;
        self.out.write_str("\n\n")?;
        if self.options.metadata {
            self.frames(&self.module.frames)?;
        }
        for (id, computation) in self.module.computations() {
            if 0 < id.0 {
                self.out.write_char('\n')?;
            }
            self.computation(computation, id == self.module.entry)?;
        }
        Ok(())
    }

    fn header(&mut self, header: &Header) -> fmt::Result {
        let out = &mut self.out;
        if header.is_scheduled {
            out.write_str(", is_scheduled=true")?;
        }
        if let Some(shape) = &header.entry_computation_layout {
            out.write_str(", entry_computation_layout={(")?;
            for (position, parameter) in shape.parameters.iter().enumerate() {
                write_separator(out, position)?;
                write!(out, "{parameter}")?;
            }
            write!(out, ")->{}}}", shape.result)?;
        }
        for (name, text) in &header.others {
            write!(out, ", {name}={text}")?;
        }
        if let Some(count) = header.replica_count {
            write!(out, ", replica_count={count}")?;
        }
        if let Some(count) = header.num_partitions {
            write!(out, ", num_partitions={count}")?;
        }
        Ok(())
    }

    fn frames(&mut self, frames: &StackFrames) -> fmt::Result {
        let out = &mut self.out;
        for (title, names) in
            [("FileNames", &frames.file_names), ("FunctionNames", &frames.function_names)]
        {
            if !names.is_empty() {
                writeln!(out, "{title}")?;
                for (number, name) in (1..).zip(names) {
                    writeln!(out, "{number} \"{name}\"")?;
                }
                out.write_char('\n')?;
            }
        }
        if !frames.locations.is_empty() {
            writeln!(out, "FileLocations")?;
            for (number, each) in (1..).zip(&frames.locations) {
                writeln!(
                    out,
                    "{number} {{file_name_id={} function_name_id={} line={} end_line={} column={} \
                     end_column={}}}",
                    each.file_name_id,
                    each.function_name_id,
                    each.line,
                    each.end_line,
                    each.column,
                    each.end_column
                )?;
            }
            out.write_char('\n')?;
        }
        if !frames.frames.is_empty() {
            writeln!(out, "StackFrames")?;
            for (number, each) in (1..).zip(&frames.frames) {
                writeln!(
                    out,
                    "{number} {{file_location_id={} parent_frame_id={}}}",
                    each.file_location_id, each.parent_frame_id
                )?;
            }
            out.write_str("\n\n")?;
        }
        Ok(())
    }

    fn name(&mut self, name: &str) -> fmt::Result {
        if self.options.percent {
            self.out.write_char('%')?;
        }
        self.out.write_str(name)
    }

    fn computation(&mut self, computation: &Computation, is_entry: bool) -> fmt::Result {
        if is_entry {
            self.out.write_str("ENTRY ")?;
        }
        self.name(&computation.name)?;
        if self.options.percent {
            self.out.write_str(" (")?;
            for (position, &id) in computation.parameters.iter().enumerate() {
                let parameter = &computation[id];
                let separator = if 0 < position { ", " } else { "" };
                write!(self.out, "{separator}{}: ", parameter.name)?;
                parameter.shape.write(&mut self.out, false)?;
            }
            self.out.write_str(") -> ")?;
            computation.root().shape.write(&mut self.out, false)?;
        }
        self.out.write_str(" {\n")?;
        for (id, instruction) in computation.instructions() {
            self.out.write_str(if id == computation.root { "  ROOT " } else { "  " })?;
            self.instruction(computation, instruction)?;
            self.out.write_char('\n')?;
        }
        self.out.write_str("}\n")
    }

    fn instruction(&mut self, computation: &Computation, instruction: &Instruction) -> fmt::Result {
        self.name(&instruction.name)?;
        self.out.write_str(" = ")?;
        instruction.shape.write(&mut self.out, true)?;
        write!(self.out, " {}(", instruction.opcode)?;
        match &instruction.payload {
            Payload::None => {
                for (position, operand) in computation.operands(instruction).enumerate() {
                    match (position, self.options.percent) {
                        (0, _) => {}
                        (_, true) => write_separator(&mut self.out, position)?,
                        (_, false) => self.out.write_str(", ")?,
                    }
                    self.name(&operand.name)?;
                }
            }
            Payload::Parameter(number) => write!(self.out, "{number}")?,
            Payload::Constant(value) => write_literal(&mut self.out, value, &instruction.shape)?,
        }
        self.out.write_char(')')?;
        for (attribute, value) in &instruction.attributes {
            if *attribute == Attribute::Metadata && !self.options.metadata {
                continue;
            }
            write!(self.out, ", {attribute}=")?;
            self.value(computation, value)?;
        }
        Ok(())
    }

    /// Names in braces.
    fn names<'n>(&mut self, names: impl Iterator<Item = &'n str>) -> fmt::Result {
        self.out.write_char('{')?;
        for (position, name) in names.enumerate() {
            if 0 < position {
                self.out.write_str(", ")?;
            }
            self.name(name)?;
        }
        self.out.write_char('}')
    }

    fn value(&mut self, computation: &Computation, value: &Value) -> fmt::Result {
        let module = self.module;
        match value {
            Value::Computation(id) => self.name(&module[*id].name),
            Value::Computations(ids) => self.names(ids.iter().map(|&id| module[id].name.as_str())),
            Value::Instructions(ids) => {
                self.names(ids.iter().map(|&id| computation[id].name.as_str()))
            }
            _ => write_value(&mut self.out, value),
        }
    }
}

/// Writes a value that refers to no computation or instruction; of one that does, nothing.
fn write_value(out: &mut impl Write, value: &Value) -> fmt::Result {
    match value {
        Value::Integer(value) => write!(out, "{value}"),
        Value::Boolean(value) => write!(out, "{value}"),
        Value::Number(value) => write!(out, "{value:?}"),
        Value::Integers(list) => write_braces(out, list),
        Value::Computation(_) | Value::Computations(_) | Value::Instructions(_) => Ok(()),
        Value::Window(dims) => write_window(out, dims),
        Value::Padding(dims) => {
            let interior = dims.iter().any(|dim| dim.interior != 0);
            for (position, dim) in dims.iter().enumerate() {
                let separator = if 0 < position { "x" } else { "" };
                write!(out, "{separator}{}_{}", dim.low, dim.high)?;
                if interior {
                    write!(out, "_{}", dim.interior)?;
                }
            }
            Ok(())
        }
        Value::Slice(dims) => {
            let strides = dims.iter().any(|dim| dim.stride != 1);
            out.write_char('{')?;
            for (position, dim) in dims.iter().enumerate() {
                let separator = if 0 < position { ", " } else { "" };
                write!(out, "{separator}[{}:{}", dim.start, dim.limit)?;
                if strides {
                    write!(out, ":{}", dim.stride)?;
                }
                out.write_char(']')?;
            }
            out.write_char('}')
        }
        Value::DimLabels(labels) => {
            write_labels(
                out,
                ('b', labels.input_batch),
                ('f', labels.input_feature),
                &labels.input_spatial,
            )?;
            out.write_char('_')?;
            write_labels(
                out,
                ('i', labels.kernel_input_feature),
                ('o', labels.kernel_output_feature),
                &labels.kernel_spatial,
            )?;
            out.write_str("->")?;
            write_labels(
                out,
                ('b', labels.output_batch),
                ('f', labels.output_feature),
                &labels.output_spatial,
            )
        }
        Value::ReplicaGroups(groups) => write_groups(out, groups),
        Value::Pairs(pairs) => {
            out.write_char('{')?;
            for (position, (source, target)) in pairs.iter().enumerate() {
                let separator = if 0 < position { "," } else { "" };
                write!(out, "{separator}{{{source},{target}}}")?;
            }
            out.write_char('}')
        }
        Value::Direction(value) => write!(out, "{value}"),
        Value::ComparisonType(value) => write!(out, "{value}"),
        Value::FusionKind(value) => write!(out, "{value}"),
        Value::FftType(value) => write!(out, "{value}"),
        Value::RandomAlgorithm(value) => write!(out, "{value}"),
        Value::RandomDistribution(value) => write!(out, "{value}"),
        Value::Transposition(value) => write!(out, "{value}"),
        Value::Text(text) => out.write_str(text),
    }
}

fn write_braces(f: &mut impl Write, list: &[i64]) -> fmt::Result {
    f.write_char('{')?;
    write_list(f, list)?;
    f.write_char('}')
}

fn write_window(f: &mut impl Write, dims: &[WindowDim]) -> fmt::Result {
    let default = WindowDim::default();
    f.write_char('{')?;
    let mut separator = "";
    let mut field = |name: &str, always: bool, value: &dyn Fn(&WindowDim) -> (i64, Option<i64>)| {
        if dims.is_empty() || !always && dims.iter().all(|dim| value(dim) == value(&default)) {
            return Ok(());
        }
        write!(f, "{separator}{name}=")?;
        separator = " ";
        for (position, dim) in dims.iter().enumerate() {
            if 0 < position {
                f.write_char('x')?;
            }
            match value(dim) {
                (number, None) => write!(f, "{number}")?,
                (low, Some(high)) => write!(f, "{low}_{high}")?,
            }
        }
        Ok(())
    };
    field("size", true, &|dim| (dim.size, None))?;
    field("stride", false, &|dim| (dim.stride, None))?;
    field("pad", false, &|dim| (dim.padding_low, Some(dim.padding_high)))?;
    field("lhs_dilate", false, &|dim| (dim.base_dilation, None))?;
    field("rhs_dilate", false, &|dim| (dim.window_dilation, None))?;
    field("rhs_reversal", false, &|dim| (i64::from(dim.reversal), None))?;
    f.write_char('}')
}

/// Two letters and the digits of spatial dimensions, each at its place.
fn write_labels(
    f: &mut impl Write,
    first: (char, i64),
    second: (char, i64),
    spatial: &[i64],
) -> fmt::Result {
    for place in 0..spatial.len() as i64 + 2 {
        let digit = spatial.iter().position(|dim| *dim == place);
        match digit {
            _ if place == first.1 => f.write_char(first.0)?,
            _ if place == second.1 => f.write_char(second.0)?,
            Some(digit) => write!(f, "{digit}")?,
            // Only in labels that `verify` refuses.
            None => f.write_char('?')?,
        }
    }
    Ok(())
}

fn write_groups(f: &mut impl Write, groups: &ReplicaGroups) -> fmt::Result {
    match groups {
        ReplicaGroups::Lists(groups) => {
            f.write_char('{')?;
            for (position, group) in groups.iter().enumerate() {
                if 0 < position {
                    f.write_char(',')?;
                }
                write_braces(f, group)?;
            }
            f.write_char('}')
        }
        ReplicaGroups::Iota { group_dims, dims, transpose } => {
            f.write_char('[')?;
            write_list(f, group_dims)?;
            f.write_str("]<=[")?;
            write_list(f, dims)?;
            f.write_char(']')?;
            if !transpose.is_empty() {
                f.write_str("T(")?;
                write_list(f, transpose)?;
                f.write_char(')')?;
            }
            Ok(())
        }
    }
}

fn write_literal(f: &mut impl Write, literal: &Literal, shape: &Shape) -> fmt::Result {
    match (literal, shape) {
        (Literal::Array(array), Shape::Array(shape)) => write_array(f, array, shape),
        (Literal::Elided, Shape::Array(_)) => f.write_str("{...}"),
        (Literal::Tuple(values), Shape::Tuple(shapes)) => {
            f.write_char('(')?;
            for (position, (value, shape)) in values.iter().zip(shapes).enumerate() {
                if 0 < position {
                    f.write_str(", ")?;
                }
                write_literal(f, value, shape)?;
            }
            f.write_char(')')
        }
        // Only in a module that `verify` refuses.
        _ => f.write_str("?"),
    }
}

fn write_array(f: &mut impl Write, array: &ArrayLiteral, shape: &ArrayShape) -> fmt::Result {
    if shape.is_scalar() || array.is_splat {
        return array.write_element(f, 0, true);
    }
    // An array without elements is a list of empty lists.
    let zero = shape.dims.iter().position(|&dim| dim == 0);
    let mut dims = &shape.dims[..zero.unwrap_or(shape.rank())];
    let product = |dims: &[i64]| dims.iter().try_fold(1i64, |count, dim| count.checked_mul(*dim));
    if zero.is_some() && product(dims).is_none_or(|count| MAX_EMPTY_LISTS < count) {
        dims = &[];
    }
    let count = match zero {
        Some(_) => product(dims).unwrap_or(1),
        None => array.num_stored() as i64,
    };
    // The number of elements in a list of each dimension.
    let mut sizes = Vec::with_capacity(dims.len());
    let mut size = 1i64;
    for dim in dims.iter().rev() {
        size = size.saturating_mul(*dim);
        sizes.push(size);
    }
    for position in 0..count {
        if 0 < position {
            f.write_str(", ")?;
        }
        for _ in sizes.iter().filter(|&size| position % size == 0) {
            f.write_char('{')?;
        }
        match zero {
            Some(_) => f.write_str("{}")?,
            None => array.write_element(f, position as usize, false)?,
        }
        for _ in sizes.iter().filter(|&size| (position + 1) % size == 0) {
            f.write_char('}')?;
        }
    }
    Ok(())
}
