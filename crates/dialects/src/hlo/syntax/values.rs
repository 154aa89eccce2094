//! Parses the attributes of instructions.

use super::{
    lexer::TokenKind,
    parser::{Failed, Parsed, Parser, shortened},
};
use crate::{
    hlo::{
        Attribute, ConvolutionDims, Instruction, InstructionId, Opcode, PaddingDim, ReplicaGroups,
        SliceDim, Value, ValueKind, WindowDim,
    },
    text::{Reason, Span},
};
use std::collections::HashMap;

/// What is known inside of a computation.
#[derive(Default)]
pub(super) struct Scope<'a> {
    /// The instructions by their names, and where they are defined; nothing for one with an
    /// error.
    pub(super) names: HashMap<&'a str, (Option<InstructionId>, Span)>,
    pub(super) instructions: Vec<Instruction>,
    /// Numbers of parameters.
    pub(super) parameters: Vec<(i64, InstructionId)>,
    pub(super) root: Option<(InstructionId, Span)>,
    /// Whether an operand that nothing defines is a parameter.
    pub(super) makes_parameters: bool,
}

macro_rules! keyword {
    ($parser:expr, $name:expr, $ty:ident) => {{
        $parser.bump();
        let (word, span) = $parser.name(&format!("a value of '{}'", $name))?;
        match crate::hlo::$ty::from_name(word) {
            Some(value) => Ok(Value::$ty(value)),
            None => {
                let all: Vec<_> = crate::hlo::$ty::ALL.iter().map(|each| each.name()).collect();
                let found = shortened(word);
                let message = format!(
                    "expected '{}' to be one of {}, found '{found}'",
                    $name,
                    all.join(", ")
                );
                Err($parser.error(Reason::HloAttribute, span, message))
            }
        }
    }};
}

impl<'a> Parser<'a> {
    /// `name=value`
    pub(super) fn attribute(
        &mut self,
        scope: &Scope<'a>,
        opcode: Opcode,
        others: &[(Attribute, Value)],
    ) -> Parsed<(Attribute, Value)> {
        let (name, span) = self.name("the name of an attribute")?;
        let Some(attribute) = opcode.attribute(name) else {
            let known = Attribute::ALL.iter().any(|each| each.name() == name);
            let name = shortened(name);
            let message = match known {
                true => format!("'{opcode}' does not take the attribute '{name}'"),
                false => format!("unknown attribute '{name}'"),
            };
            return Err(self.error(Reason::HloAttribute, span, message));
        };
        if others.iter().any(|(other, _)| *other == attribute) {
            let message = format!("attribute '{name}' is given twice");
            return Err(self.error(Reason::HloAttribute, span, message));
        }
        self.expect_assignment(name)?;
        Ok((attribute, self.value(scope, attribute)?))
    }

    /// The current token must be `=`; it is not taken, so that the value can be read as bytes.
    pub(super) fn expect_assignment(&mut self, name: &str) -> Parsed<()> {
        match self.is(b'=') {
            true => Ok(()),
            false => Err(self.unexpected(&format!("'=' after attribute '{}'", shortened(name)))),
        }
    }

    pub(super) fn value(&mut self, scope: &Scope<'a>, attribute: Attribute) -> Parsed<Value> {
        let name = attribute.name();
        match attribute.kind() {
            ValueKind::Text => Ok(Value::Text(self.opaque(name)?.into())),
            ValueKind::Boolean => Ok(Value::Boolean(self.boolean(name)?)),
            ValueKind::Integer => {
                self.bump();
                Ok(Value::Integer(self.integer(&format!("an integer for '{name}'"))?))
            }
            ValueKind::Number => {
                let (word, span) = self.word();
                match word.parse::<f64>() {
                    Ok(value) if value.is_finite() => Ok(Value::Number(value)),
                    _ => Err(self.bad_value(span, name, "a number", word)),
                }
            }
            ValueKind::Integers => {
                self.bump();
                Ok(Value::Integers(self.integers(name)?))
            }
            ValueKind::Computation => {
                self.bump();
                Ok(Value::Computation(self.computation_reference()?))
            }
            ValueKind::Computations => {
                self.bump();
                self.expect(b'{', &format!("and computations for '{name}'"))?;
                Ok(Value::Computations(self.list(b'}', Self::computation_reference)?))
            }
            ValueKind::Instructions => {
                self.bump();
                self.expect(b'{', &format!("and instructions for '{name}'"))?;
                let list = self.list(b'}', |parser| parser.instruction_reference(scope))?;
                // One that is not there was reported.
                list.into_iter().collect::<Option<_>>().map(Value::Instructions).ok_or(Failed)
            }
            ValueKind::Window => self.window().map(Value::Window),
            ValueKind::Padding => self.padding(name).map(Value::Padding),
            ValueKind::Slice => self.slice().map(Value::Slice),
            ValueKind::DimLabels => {
                let (word, span) = self.word();
                match dim_labels(word) {
                    Some(labels) => Ok(Value::DimLabels(Box::new(labels))),
                    None => {
                        let expected = "labels such as 'b01f_01io->b01f'";
                        Err(self.bad_value(span, name, expected, word))
                    }
                }
            }
            ValueKind::ReplicaGroups => {
                self.bump();
                self.replica_groups(name).map(|groups| Value::ReplicaGroups(Box::new(groups)))
            }
            ValueKind::Pairs => {
                self.bump();
                let span = self.token.span;
                let groups = self.groups(name)?;
                let pairs = groups.iter().map(|group| match group[..] {
                    [source, target] => Some((source, target)),
                    _ => None,
                });
                match pairs.collect() {
                    Some(pairs) => Ok(Value::Pairs(pairs)),
                    None => {
                        let message = format!("expected pairs for '{name}'");
                        Err(self.error(Reason::HloAttribute, span, message))
                    }
                }
            }
            ValueKind::Direction => keyword!(self, name, Direction),
            ValueKind::ComparisonType => keyword!(self, name, ComparisonType),
            ValueKind::FusionKind => keyword!(self, name, FusionKind),
            ValueKind::FftType => keyword!(self, name, FftType),
            ValueKind::RandomAlgorithm => keyword!(self, name, RandomAlgorithm),
            ValueKind::RandomDistribution => keyword!(self, name, RandomDistribution),
            ValueKind::Transposition => keyword!(self, name, Transposition),
        }
    }

    /// Takes `=` and the bytes up to a blank, a comma or a closing bracket.
    fn word(&mut self) -> (&'a str, Span) {
        self.lexer.skip_blanks();
        let start = self.lexer.position;
        self.lexer.skip(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b',' | b'}' | b')'));
        let end = self.lexer.position;
        let text: &'a str = self.lexer.text;
        self.restart(end);
        (&text[start..end], Span::new(start as u32, end as u32))
    }

    /// Takes `=` and a value that is kept as text: a string, something in braces, or a word.
    pub(super) fn opaque(&mut self, name: &str) -> Parsed<&'a str> {
        let text: &'a str = self.lexer.text;
        self.lexer.skip_blanks();
        let start = self.lexer.position;
        match self.lexer.byte(0) {
            Some(b'{') => {
                if let Err((at, what)) = self.skip_braces() {
                    return Err(self.not_closed(at, &format!("the {what} of '{name}'")));
                }
            }
            Some(b'"') => {
                if !self.lexer.skip_string() {
                    return Err(self.not_closed(start, &format!("the string of '{name}'")));
                }
            }
            _ => {
                let (word, _) = self.word();
                if word.is_empty() {
                    return Err(self.unexpected(&format!("a value for '{name}'")));
                }
                return Ok(word);
            }
        }
        let end = self.lexer.position;
        self.restart(end);
        Ok(&text[start..end])
    }

    /// Moves past braces, whatever is inside. What is not closed, and where it stands, is an error.
    fn skip_braces(&mut self) -> Result<(), (usize, &'static str)> {
        let open = self.lexer.position;
        let mut depth = 0u32;
        loop {
            self.lexer.skip(|byte| !matches!(byte, b'{' | b'}' | b'"'));
            match self.lexer.byte(0) {
                Some(b'{') => depth += 1,
                Some(b'}') => depth -= 1,
                Some(_) => {
                    let quote = self.lexer.position;
                    if !self.lexer.skip_string() {
                        return Err((quote, "string"));
                    }
                    continue;
                }
                None => return Err((open, "'{'")),
            }
            self.lexer.position += 1;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn bad_value(&mut self, span: Span, name: &str, expected: &str, found: &str) -> Failed {
        let found = shortened(found);
        let message = format!("expected {expected} for '{name}', found '{found}'");
        self.error(Reason::HloAttribute, span, message)
    }

    pub(super) fn boolean(&mut self, name: &str) -> Parsed<bool> {
        match self.word() {
            ("true", _) => Ok(true),
            ("false", _) => Ok(false),
            (word, span) => Err(self.bad_value(span, name, "'true' or 'false'", word)),
        }
    }

    fn integers(&mut self, name: &str) -> Parsed<Vec<i64>> {
        self.expect(b'{', &format!("and integers for '{name}'"))?;
        self.list(b'}', |parser| parser.integer(&format!("an integer for '{name}'")))
    }

    fn instruction_reference(&mut self, scope: &Scope<'a>) -> Parsed<Option<InstructionId>> {
        let (name, span) = self.name("the name of an instruction")?;
        match scope.names.get(name) {
            Some(&(id, _)) => Ok(id),
            None => {
                let message =
                    format!("instruction '{}' is not defined before its use", shortened(name));
                Err(self.error(Reason::HloUndefined, span, message))
            }
        }
    }

    /// `{size=3x3 stride=2x2 pad=1_1x0_0 lhs_dilate=.. rhs_dilate=.. rhs_reversal=..}`
    fn window(&mut self) -> Parsed<Vec<WindowDim>> {
        let start = self.token.span;
        self.bump();
        self.expect(b'{', "and the fields of the window")?;
        let mut fields: Vec<(&str, Vec<Vec<i64>>)> = Vec::new();
        while !self.eat(b'}') {
            let (name, span) = self.name("a field of the window or '}'")?;
            let width = match name {
                "size" | "stride" | "lhs_dilate" | "rhs_dilate" | "rhs_reversal" => 1,
                "pad" => 2,
                _ => {
                    let message = format!("unknown field '{}' of a window", shortened(name));
                    return Err(self.error(Reason::HloAttribute, span, message));
                }
            };
            self.expect_assignment(name)?;
            let (word, at) = self.word();
            match numbers(word, width..=width) {
                Some(groups) => fields.push((name, groups)),
                None => return Err(self.bad_value(at, name, "numbers such as '2x1'", word)),
            }
        }
        let rank = fields.iter().find(|(name, _)| *name == "size").map_or(0, |each| each.1.len());
        if let Some((name, groups)) = fields.iter().find(|(_, groups)| groups.len() != rank) {
            let found = groups.len();
            let message =
                format!("'{name}' of the window has {found} dimensions, expected {rank} as 'size'");
            return Err(self.error(Reason::HloAttribute, start, message));
        }
        let mut window = vec![WindowDim::default(); rank];
        for (name, groups) in fields {
            for (dim, group) in window.iter_mut().zip(groups) {
                match name {
                    "size" => dim.size = group[0],
                    "stride" => dim.stride = group[0],
                    "lhs_dilate" => dim.base_dilation = group[0],
                    "rhs_dilate" => dim.window_dilation = group[0],
                    "rhs_reversal" => dim.reversal = group[0] != 0,
                    _ => (dim.padding_low, dim.padding_high) = (group[0], group[1]),
                }
            }
        }
        Ok(window)
    }

    /// `low_high[_interior]x..`
    fn padding(&mut self, name: &str) -> Parsed<Vec<PaddingDim>> {
        let (word, span) = self.word();
        if word.is_empty() {
            return Ok(Vec::new());
        }
        match numbers(word, 2..=3) {
            Some(groups) => Ok(groups
                .iter()
                .map(|group| PaddingDim {
                    low: group[0],
                    high: group[1],
                    interior: group.get(2).copied().unwrap_or(0),
                })
                .collect()),
            None => Err(self.bad_value(span, name, "numbers such as '1_0x2_3_1'", word)),
        }
    }

    /// `{[start:limit:stride], ..}`
    fn slice(&mut self) -> Parsed<Vec<SliceDim>> {
        self.bump();
        self.expect(b'{', "and ranges for 'slice'")?;
        self.list(b'}', |parser| {
            parser.expect(b'[', "and a range")?;
            let start = parser.integer("the start of a range")?;
            parser.expect(b':', "after the start of a range")?;
            let limit = parser.integer("the limit of a range")?;
            let stride = match parser.eat(b':') {
                true => parser.integer("the stride of a range")?,
                false => 1,
            };
            parser.expect(b']', "at the end of a range")?;
            Ok(SliceDim { start, limit, stride })
        })
    }

    /// `{{0,1},{2,3}}`
    fn groups(&mut self, name: &str) -> Parsed<Vec<Vec<i64>>> {
        self.expect(b'{', &format!("and groups for '{name}'"))?;
        self.list(b'}', |parser| parser.integers(name))
    }

    /// Lists, or `[groups,size]<=[dims]T(transpose)`.
    fn replica_groups(&mut self, name: &str) -> Parsed<ReplicaGroups> {
        if !self.eat(b'[') {
            return self.groups(name).map(ReplicaGroups::Lists);
        }
        let size = |parser: &mut Self| parser.natural("a size");
        let group_dims = self.list(b']', size)?;
        self.expect(b'<', "and the numbers of the groups")?;
        self.expect(b'=', "after '<'")?;
        self.expect(b'[', "and the sizes of an array")?;
        let dims = self.list(b']', size)?;
        let mut transpose = Vec::new();
        if self.token.kind == TokenKind::Name && self.spelling(self.token) == "T" {
            self.bump();
            self.expect(b'(', "and the order of dimensions")?;
            transpose = self.list(b')', size)?;
        }
        Ok(ReplicaGroups::Iota { group_dims, dims, transpose })
    }
}

/// `1_2x3_4` as groups of numbers, each with an allowed count.
fn numbers(word: &str, count: std::ops::RangeInclusive<usize>) -> Option<Vec<Vec<i64>>> {
    word.split('x')
        .map(|group| {
            let group: Option<Vec<i64>> = group.split('_').map(|part| part.parse().ok()).collect();
            group.filter(|group| count.contains(&group.len()))
        })
        .collect()
}

/// `b01f_01io->b01f`
fn dim_labels(word: &str) -> Option<ConvolutionDims> {
    let (operands, output) = word.split_once("->")?;
    let (input, kernel) = operands.split_once('_')?;
    let (input_batch, input_feature, input_spatial) = labels(input, 'b', 'f')?;
    let (kernel_input_feature, kernel_output_feature, kernel_spatial) = labels(kernel, 'i', 'o')?;
    let (output_batch, output_feature, output_spatial) = labels(output, 'b', 'f')?;
    let rank = input_spatial.len();
    (kernel_spatial.len() == rank && output_spatial.len() == rank).then_some(ConvolutionDims {
        input_batch,
        input_feature,
        input_spatial,
        kernel_input_feature,
        kernel_output_feature,
        kernel_spatial,
        output_batch,
        output_feature,
        output_spatial,
    })
}

/// Where two letters and the digits from 0 on stand in a word that holds each of them once.
fn labels(word: &str, first: char, second: char) -> Option<(i64, i64, Vec<i64>)> {
    let place = |label: char| {
        let mut places = word.char_indices().filter(|&(_, c)| c == label).map(|(at, _)| at as i64);
        places.next().filter(|_| places.next().is_none())
    };
    let spatial = word.len().checked_sub(2).filter(|&count| count <= 10)?;
    let spatial: Option<_> = (b'0'..).take(spatial).map(|digit| place(char::from(digit))).collect();
    Some((place(first)?, place(second)?, spatial?))
}
