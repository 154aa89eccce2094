//! Exports the dialect to an HLO [`Module`].

use super::{
    COMPUTATION, RETURN, attribute_name, attribute_order, opcode, parameter_attribute_name,
    types::Shapes,
    values::{literal, value},
};
use crate::{
    ffi,
    hlo::{
        Attribute, Computation, ComputationId, FileLocation, Header, Instruction, InstructionId,
        Literal, Module, Opcode, Payload, ProgramShape, Shape, StackFrame, StackFrames, Value,
        ValueKind,
        syntax::{lexer::is_name_byte, parse_value},
        verify::is_name,
    },
    mlir::{self, Op, Val},
    report::Report,
    text::{Severity, Span},
};
use melior::{
    Context,
    ir::{Attribute as MlirAttribute, BlockLike, Location, ValueLike, operation::OperationLike},
};
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

/// A constant of one value is written out if it has at most so many elements, as XLA writes all
/// of them.
const MAX_WRITTEN_OUT: i64 = 1 << 16;

/// Turns a module of `hlo` operations into a module of HLO. Spans of the result say nothing.
///
/// # Errors
/// What cannot be said in HLO, located.
pub fn export<'c>(op: Op<'c>) -> Result<Module, Report<'c>> {
    let (mut module, _) = Exporter::new(mlir::context_of(op), op, Scope::All).module()?;
    for computation in &mut module.computations {
        for instruction in &mut computation.instructions {
            if let Payload::Constant(literal) = &mut instruction.payload {
                write_out(literal, &instruction.shape);
            }
        }
    }
    Ok(module)
}

/// [`export`] for a conversion: constants of one value stay short, and the places of instructions
/// are known.
///
/// # Errors
/// What cannot be said in HLO, located.
pub fn export_located<'c>(op: Op<'c>) -> Result<(Module, Locations<'c>), Report<'c>> {
    let exporter = Exporter::new(mlir::context_of(op), op, Scope::All);
    exporter.module().map(|(module, places)| (module, Locations(places)))
}

/// Where the instructions of an exported module come from.
pub struct Locations<'c>(Places<'c>);

impl<'c> Locations<'c> {
    /// The location of an instruction or computation, by its span.
    pub fn of(&self, span: Span) -> Location<'c> {
        self.0.get(span).location()
    }
}

/// Repeats the value of small constants that have one value for all elements.
fn write_out(literal: &mut Literal, shape: &Shape) {
    match (literal, shape) {
        (Literal::Array(array), Shape::Array(shape)) if array.is_splat => {
            let count = shape.num_elements().filter(|count| *count <= MAX_WRITTEN_OUT);
            if let Some(count) = count {
                array.bytes = array.dense(count as usize);
                array.is_splat = false;
            }
        }
        (Literal::Tuple(values), Shape::Tuple(shapes)) => {
            values.iter_mut().zip(shapes).for_each(|(value, shape)| write_out(value, shape));
        }
        _ => {}
    }
}

/// What the module may hold besides computations.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Scope {
    /// Nothing.
    All,
    /// Operations of other dialects, which are passed over.
    Computations,
}

/// The computations of a module.
pub(super) fn computations<'c>(module: Op<'c>) -> impl Iterator<Item = Op<'c>> {
    let first = mlir::body(module, 0).and_then(|block| block.first_operation()).map(mlir::op_ref);
    let all = std::iter::successors(first, |op| op.next_in_block().map(mlir::op_ref));
    all.filter(|op| mlir::is(*op, COMPUTATION))
}

/// What a span of an exported module stands for.
#[derive(Clone, Copy)]
pub(super) enum Place<'c> {
    Op(Op<'c>),
    Argument(Op<'c>, Val<'c>),
}

impl<'c> Place<'c> {
    pub(super) fn location(self) -> Location<'c> {
        match self {
            Self::Op(op) => op.location(),
            Self::Argument(_, value) => mlir::argument_location(value),
        }
    }

    /// An error there.
    pub(super) fn report(self, message: String) -> Report<'c> {
        match self {
            Self::Op(op) => Report::op_error(op, message),
            Self::Argument(op, value) => {
                let (name, number) = (mlir::name(op), mlir::number(value));
                let message = format!("'{name}' op parameter {number}: {message}");
                Report::at(self.location(), Severity::Error, message)
            }
        }
    }
}

/// The places that the spans of an exported module number.
pub(super) struct Places<'c>(Vec<Place<'c>>);

impl<'c> Places<'c> {
    fn add(&mut self, place: Place<'c>) -> Span {
        let number = self.0.len() as u32;
        self.0.push(place);
        Span::new(number, number + 1)
    }

    /// The first place is the module itself.
    pub(super) fn get(&self, span: Span) -> Place<'c> {
        self.0.get(span.start as usize).copied().unwrap_or(self.0[0])
    }
}

/// Names that HLO text can hold, each given once.
#[derive(Default)]
struct Names<'a> {
    /// Names that something asks for: nothing else gets them.
    wanted: HashSet<Cow<'a, str>>,
    used: HashSet<String>,
    /// The last number that was put behind a name.
    numbers: HashMap<String, u32>,
}

/// The name with `_` for what cannot stand in a name of HLO text.
fn valid(name: &str) -> Cow<'_, str> {
    if is_name(name) {
        return Cow::Borrowed(name);
    }
    let part = |c: char| if c.is_ascii() && is_name_byte(c as u8) { c } else { '_' };
    let name: String = name.chars().map(part).collect();
    Cow::Owned(if is_name(&name) { name } else { format!("_{name}") })
}

impl<'a> Names<'a> {
    fn wanting(names: impl Iterator<Item = &'a str>) -> Self {
        Self { wanted: names.map(valid).collect(), ..Self::default() }
    }

    /// The name that is asked for, or else one that begins with it or with `otherwise`.
    fn give(&mut self, wanted: Option<&str>, otherwise: &str) -> String {
        let base = valid(wanted.unwrap_or(otherwise));
        if wanted.is_some() && self.used.insert(base.to_string()) {
            return base.into_owned();
        }
        let number = self.numbers.entry(base.to_string()).or_insert(0);
        loop {
            *number += 1;
            let name = format!("{base}.{number}");
            if !self.wanted.contains(name.as_str()) && self.used.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// The state of the export of one module.
pub(super) struct Exporter<'c> {
    module: Op<'c>,
    scope: Scope,
    shapes: Shapes,
    places: Places<'c>,
    /// Computations by their symbols. Until they are ordered, ids are positions in the module.
    ids: HashMap<&'c str, ComputationId>,
}

impl<'c> Exporter<'c> {
    pub(super) fn new(context: &'c Context, module: Op<'c>, scope: Scope) -> Self {
        let explicit = module.attribute("hlo.explicit_layouts").is_ok();
        Self {
            module,
            scope,
            shapes: Shapes::new(context, explicit),
            places: Places(vec![Place::Op(module)]),
            ids: HashMap::new(),
        }
    }

    /// The module, and what its spans stand for.
    pub(super) fn module(mut self) -> Result<(Module, Places<'c>), Report<'c>> {
        if self.scope == Scope::All {
            self.only_computations()?;
        }
        let ops: Vec<_> = computations(self.module).collect();
        let symbol = |op| mlir::string_attr(op, "sym_name").unwrap_or_default();
        let mut names = Names::wanting(ops.iter().map(|&op| symbol(op)));
        self.ids = ops.iter().map(|&op| symbol(op)).zip((0..).map(ComputationId)).collect();
        let mut computations = Vec::with_capacity(ops.len());
        for &op in &ops {
            let name = names.give(Some(symbol(op)), "computation");
            computations.push(Some(self.computation(op, name)?));
        }
        let entry = match self.module.attribute("hlo.entry") {
            Err(_) => ComputationId(computations.len().saturating_sub(1) as u32),
            Ok(entry) => self.callee(entry).map_err(|message| self.error(message))?,
        };
        let order = self.order(&ops, &computations)?;
        let mut ids = vec![ComputationId(0); order.len()];
        for (position, id) in order.iter().enumerate() {
            ids[id.index()] = ComputationId(position as u32);
        }
        let mut ordered = Vec::with_capacity(order.len());
        for mut computation in order.iter().filter_map(|id| computations[id.index()].take()) {
            computation.renumber_callees(&ids);
            ordered.push(computation);
        }
        let Some(&entry) = ids.get(entry.index()) else {
            return Err(self.error("expected a computation"));
        };
        let name = mlir::string_attr(self.module, "sym_name").unwrap_or("module");
        let header = self.header().map_err(|message| self.error(message))?;
        let frames = self.frames().ok_or_else(|| {
            self.error(
                "expected 'hlo.stack_frames' to have the lists 'file_names', 'function_names', \
                 'locations' and 'frames'",
            )
        })?;
        let name = valid(name).into_owned();
        Ok((Module { name, header, frames, computations: ordered, entry }, self.places))
    }

    fn only_computations(&self) -> Result<(), Report<'c>> {
        for region in 0..self.module.region_count() {
            for op in mlir::blocks(self.module, region).into_iter().flat_map(mlir::ops) {
                if !mlir::is(op, COMPUTATION) {
                    return Err(Report::op_error(op, "cannot be part of an HLO module"));
                }
            }
        }
        Ok(())
    }

    fn error(&self, message: impl AsRef<str>) -> Report<'c> {
        Report::op_error(self.module, message)
    }

    /// The computation that a symbol refers to.
    fn callee(&self, symbol: MlirAttribute<'c>) -> Result<ComputationId, String> {
        let Some(name) = mlir::symbol_of(symbol) else {
            return Err(format!("expected the symbol of a computation, but found {symbol}"));
        };
        let id = self.ids.get(name).copied();
        id.ok_or_else(|| format!("'@{name}' is no computation of this module"))
    }

    /// The computations, each after those that it refers to, and otherwise as they stand.
    fn order(
        &self,
        ops: &[Op<'c>],
        computations: &[Option<Computation>],
    ) -> Result<Vec<ComputationId>, Report<'c>> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done,
        }
        let callees: Vec<Vec<ComputationId>> = computations
            .iter()
            .flatten()
            .map(|each| {
                each.instructions.iter().flat_map(Instruction::called_computations).collect()
            })
            .collect();
        let mut state = vec![State::New; computations.len()];
        let mut order = Vec::with_capacity(computations.len());
        for start in (0..computations.len() as u32).map(ComputationId) {
            // Each entry is a computation and how many of its callees were looked at.
            let mut path = vec![(start, 0)];
            while let Some((id, next)) = path.last_mut() {
                let (id, position) = (*id, *next);
                *next += 1;
                if position == 0 && state[id.index()] != State::New {
                    path.pop();
                    continue;
                }
                state[id.index()] = State::Open;
                match callees[id.index()].get(position) {
                    None => {
                        state[id.index()] = State::Done;
                        order.push(id);
                        path.pop();
                    }
                    Some(callee) if state[callee.index()] == State::Open => {
                        let name = mlir::string_attr(ops[callee.index()], "sym_name");
                        let message = format!(
                            "refers to '@{}', which leads back to it",
                            name.unwrap_or_default()
                        );
                        return Err(Report::op_error(ops[id.index()], message));
                    }
                    Some(&callee) => path.push((callee, 0)),
                }
            }
        }
        Ok(order)
    }

    // The module's own attributes.

    fn header(&mut self) -> Result<Header, String> {
        let module = self.module;
        let mut header = Header {
            is_scheduled: module.attribute("hlo.is_scheduled").is_ok(),
            replica_count: mlir::integer_attr(module, "hlo.replica_count"),
            num_partitions: mlir::integer_attr(module, "hlo.num_partitions"),
            ..Header::default()
        };
        if let Ok(layout) = module.attribute("hlo.entry_computation_layout") {
            let Some((inputs, results)) = mlir::function_type_of(layout) else {
                let name = "hlo.entry_computation_layout";
                return Err(format!("expected '{name}' to be a function type, but found {layout}"));
            };
            let [result] = results[..] else {
                return Err("expected 'hlo.entry_computation_layout' to have one result".to_owned());
            };
            let parameters = inputs.into_iter().map(|ty| self.shapes.shape(ty));
            header.entry_computation_layout = Some(ProgramShape {
                parameters: parameters.collect::<Result<_, _>>()?,
                result: self.shapes.shape(result)?,
            });
        }
        for entry in mlir::strings_attr(module, "hlo.header") {
            let parts = entry.split_once('=').filter(|(name, text)| {
                let is_word = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
                // What it says has no effect on the meaning, as `frontend_attributes` have none.
                name.bytes().all(is_word)
                    && parse_value(Attribute::FrontendAttributes, text).is_ok()
            });
            let Some((name, text)) = parts else {
                return Err(format!("expected 'hlo.header' to have 'name=text', found '{entry}'"));
            };
            header.others.push((name.to_owned(), text.to_owned()));
        }
        Ok(header)
    }

    fn frames(&self) -> Option<StackFrames> {
        let Ok(frames) = self.module.attribute("hlo.stack_frames") else {
            return Some(StackFrames::default());
        };
        let entry = |name| mlir::dictionary_entry(frames, name);
        let strings = |name| -> Option<Vec<String>> {
            let texts = mlir::array_of(entry(name)?).into_iter();
            let is_plain = |text: &&str| !text.contains(['"', '\n']);
            texts.map(|text| mlir::string_of(text).filter(is_plain).map(str::to_owned)).collect()
        };
        let numbers = |name| -> Option<Vec<u32>> {
            let numbers = mlir::integers_of(entry(name)?)?;
            numbers.into_iter().map(|number| number.try_into().ok()).collect()
        };
        let location = |part: &[u32]| match *part {
            [file_name_id, function_name_id, line, end_line, column, end_column] => {
                Some(FileLocation {
                    file_name_id,
                    function_name_id,
                    line,
                    end_line,
                    column,
                    end_column,
                })
            }
            _ => None,
        };
        let frame = |part: &[u32]| match *part {
            [file_location_id, parent_frame_id] => {
                Some(StackFrame { file_location_id, parent_frame_id })
            }
            _ => None,
        };
        Some(StackFrames {
            file_names: strings("file_names")?,
            function_names: strings("function_names")?,
            locations: numbers("locations")?.chunks(6).map(location).collect::<Option<_>>()?,
            frames: numbers("frames")?.chunks(2).map(frame).collect::<Option<_>>()?,
        })
    }

    // Computations.

    fn computation(&mut self, op: Op<'c>, name: String) -> Result<Computation, Report<'c>> {
        let span = self.places.add(Place::Op(op));
        let block = match mlir::blocks(op, 0)[..] {
            [block] => block,
            _ => return Err(Report::op_error(op, "expected one block")),
        };
        let mut ops = mlir::ops(block);
        let Some(terminator) = ops.pop().filter(|last| mlir::is(*last, RETURN)) else {
            return Err(Report::op_error(op, "expected an 'hlo.return' at the end"));
        };
        let mut body = Body::new(op, mlir::arguments(block), &ops);
        for &op in &ops {
            let Some(opcode) = opcode(op) else {
                return Err(Report::op_error(op, "is no instruction of HLO"));
            };
            while let Some(number) = body.next_parameter(body.instructions.len() as i64) {
                self.parameter(&mut body, number)?;
            }
            // Operations may have been erased since the places were written down.
            for operand in mlir::operands(op) {
                if operand.is_block_argument() {
                    self.parameter(&mut body, mlir::number(operand))?;
                }
            }
            let instruction = self.instruction(op, opcode, &mut body)?;
            body.push(mlir::result(op, 0), instruction);
        }
        while let Some(number) = body.next_parameter(i64::MAX) {
            self.parameter(&mut body, number)?;
        }
        let root = mlir::operand(terminator, 0);
        let (_, results) = mlir::function_type(op).unwrap_or_default();
        if results[..] != [root.r#type()] {
            let message = format!("returns {}, which is not the result's type", root.r#type());
            return Err(Report::op_error(terminator, message));
        }
        let Some(root) = body.id(root) else {
            return Err(Report::op_error(terminator, "returns no value of this computation"));
        };
        let parameters = body.parameters.into_iter().flatten().collect();
        Ok(Computation { name, instructions: body.instructions, parameters, root, span })
    }

    /// Puts a parameter at the end of the instructions, unless it is among them.
    fn parameter(&mut self, body: &mut Body<'c>, number: usize) -> Result<(), Report<'c>> {
        if body.parameters[number].is_some() {
            return Ok(());
        }
        let place = Place::Argument(body.op, body.arguments[number]);
        let attributes = body.argument_attributes.get(number).copied();
        let entry = |name| attributes.and_then(|all| mlir::dictionary_entry(all, name));
        let failed = |message| place.report(message);
        let shape = self.shapes.shape(body.arguments[number].r#type()).map_err(failed)?;
        let name = entry("hlo.name").and_then(mlir::string_of);
        let name = body.names.give(name, "param");
        let attributes = self.attributes(body, Opcode::Parameter, |attribute| {
            entry(parameter_attribute_name(attribute))
        });
        let instruction = Instruction {
            name,
            opcode: Opcode::Parameter,
            shape,
            operands: Vec::new(),
            attributes: attributes.map_err(failed)?,
            payload: Payload::Parameter(number as i64),
            span: self.places.add(place),
        };
        body.parameters[number] = Some(InstructionId(body.instructions.len() as u32));
        body.push(body.arguments[number], instruction);
        Ok(())
    }

    fn instruction(
        &mut self,
        op: Op<'c>,
        opcode: Opcode,
        body: &mut Body<'c>,
    ) -> Result<Instruction, Report<'c>> {
        let failed = |message| Report::op_error(op, message);
        let (name, metadata) = ffi::hlo_origin(op);
        let operands: Option<Vec<_>> =
            mlir::operands(op).into_iter().map(|operand| body.id(operand)).collect();
        let Some(operands) = operands else {
            return Err(failed("has an operand that is no value of this computation".to_owned()));
        };
        let shape = self.shapes.shape(mlir::result(op, 0).r#type()).map_err(failed)?;
        let payload = match opcode {
            Opcode::Constant => {
                let value = op.attribute("value").map_err(|_| failed("has no value".to_owned()))?;
                Payload::Constant(Box::new(literal(value, &shape).map_err(failed)?))
            }
            _ => Payload::None,
        };
        let context = mlir::context_of(op);
        let attributes = self.attributes(body, opcode, |attribute| match attribute {
            Attribute::Metadata => metadata.map(|text| mlir::string(context, text)),
            _ => op.attribute(attribute_name(attribute)).ok(),
        });
        Ok(Instruction {
            name: body.names.give(name, opcode.name()),
            opcode,
            shape,
            operands,
            attributes: attributes.map_err(failed)?,
            payload,
            span: self.places.add(Place::Op(op)),
        })
    }

    /// The attributes of an instruction, of which `given` has the values.
    fn attributes(
        &self,
        body: &Body<'c>,
        opcode: Opcode,
        given: impl Fn(Attribute) -> Option<MlirAttribute<'c>>,
    ) -> Result<Vec<(Attribute, Value)>, String> {
        let mut attributes = Vec::new();
        for &attribute in attribute_order(opcode) {
            let Some(given) = given(attribute) else { continue };
            let value = match attribute.kind() {
                ValueKind::Computation => Value::Computation(self.callee(given)?),
                ValueKind::Computations => {
                    let symbols = mlir::array_of(given).into_iter();
                    Value::Computations(
                        symbols.map(|each| self.callee(each)).collect::<Result<_, _>>()?,
                    )
                }
                ValueKind::Instructions => {
                    let names = mlir::array_of(given).into_iter().filter_map(mlir::string_of);
                    let ids: Vec<_> =
                        names.filter_map(|name| body.named.get(name).copied()).collect();
                    // What was before is gone.
                    if ids.is_empty() {
                        continue;
                    }
                    Value::Instructions(ids)
                }
                _ => value(attribute, given)?,
            };
            attributes.push((attribute, value));
        }
        attributes.shrink_to_fit();
        Ok(attributes)
    }
}

/// A computation that is being put together.
struct Body<'c> {
    op: Op<'c>,
    arguments: Vec<Val<'c>>,
    argument_attributes: Vec<MlirAttribute<'c>>,
    /// Parameters by their places in the text, the last one first: place and number.
    pending: Vec<(i64, usize)>,
    parameters: Vec<Option<InstructionId>>,
    instructions: Vec<Instruction>,
    ids: HashMap<usize, InstructionId>,
    names: Names<'c>,
    named: HashMap<String, InstructionId>,
}

impl<'c> Body<'c> {
    fn new(op: Op<'c>, arguments: Vec<Val<'c>>, ops: &[Op<'c>]) -> Self {
        let argument_attributes = mlir::array_attr(op, "arg_attrs");
        let entry =
            |number: usize, name| mlir::dictionary_entry(*argument_attributes.get(number)?, name);
        let place = |number| entry(number, "hlo.position").and_then(mlir::integer_of);
        let count = arguments.len();
        let mut pending: Vec<_> =
            (0..count).map(|number| (place(number).unwrap_or(number as i64), number)).collect();
        pending.sort_unstable();
        pending.reverse();
        let parameters =
            (0..count).filter_map(|number| mlir::string_of(entry(number, "hlo.name")?));
        let others = ops.iter().filter_map(|op| ffi::hlo_origin(*op).0);
        Self {
            names: Names::wanting(parameters.chain(others)),
            op,
            arguments,
            pending,
            parameters: vec![None; count],
            instructions: Vec::with_capacity(count + ops.len()),
            ids: HashMap::with_capacity(count + ops.len()),
            named: HashMap::new(),
            argument_attributes,
        }
    }

    /// The next parameter whose place is not behind this one.
    fn next_parameter(&mut self, place: i64) -> Option<usize> {
        self.pending.pop_if(|(wanted, _)| *wanted <= place).map(|(_, number)| number)
    }

    fn push(&mut self, value: Val<'c>, instruction: Instruction) {
        let id = InstructionId(self.instructions.len() as u32);
        self.ids.insert(mlir::value_key(value), id);
        self.named.insert(instruction.name.clone(), id);
        self.instructions.push(instruction);
    }

    fn id(&self, value: Val<'c>) -> Option<InstructionId> {
        self.ids.get(&mlir::value_key(value)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_and_unique() {
        for (name, expected) in [
            ("add.5", "add.5"),
            ("5", "5"),
            ("", "_"),
            ("a b\"c", "a_b_c"),
            ("ü", "_"),
            (".x", "_.x"),
        ] {
            assert_eq!(valid(name), expected);
        }
        let mut names = Names::wanting(["a", "a.1", "a"].into_iter());
        assert_eq!(names.give(Some("a"), "x"), "a");
        assert_eq!(names.give(Some("a"), "x"), "a.2");
        assert_eq!(names.give(Some("a.1"), "x"), "a.1");
        assert_eq!(names.give(None, "add"), "add.1");
        assert_eq!(names.give(None, "add"), "add.2");
    }
}
