//! Parses the first line of a module and the tables below it.

use super::{
    lexer::TokenKind,
    parser::{Parsed, Parser, shortened},
    shapes::Braces,
};
use crate::{
    hlo::{
        FileLocation, Header, ProgramShape, StackFrame, StackFrames,
        alias::{self, INPUT_OUTPUT_ALIAS},
    },
    text::Reason,
};

/// Attributes of a module that have no effect on the values of results.
const HEADER_TEXT: &[&str] = &[
    "alias_passthrough_params",
    "allow_spmd_sharding_propagation_to_output",
    "allow_spmd_sharding_propagation_to_parameters",
    "buffer_donor",
    "entry_computation_parameter_sharding",
    "execution_profile",
    "frontend_attributes",
    INPUT_OUTPUT_ALIAS,
    "origin_recovery_table",
    "original_value_recovery_table",
    "spmd_output_sharding",
    "spmd_parameters_shardings",
    "stack_frame_index",
];

impl Parser<'_> {
    pub(super) fn header(&mut self, header: &mut Header) -> Parsed<()> {
        while self.eat(b',') {
            let (name, span) = self.name("the name of an attribute of the module")?;
            self.expect_assignment(name)?;
            match name {
                "entry_computation_layout" => {
                    header.entry_computation_layout = Some(self.program_shape()?);
                }
                "is_scheduled" => header.is_scheduled = self.boolean(name)?,
                "replica_count" => header.replica_count = Some(self.positive(name)?),
                "num_partitions" => header.num_partitions = Some(self.positive(name)?),
                _ if HEADER_TEXT.contains(&name) => {
                    let text = self.opaque(name)?.to_owned();
                    if name == INPUT_OUTPUT_ALIAS && !alias::is_valid(&text) {
                        let message = format!(
                            "expected '{name}' to be a list such as '{{ {{0}}: (1, {{}}, may-alias) }}': \
                             result 0 has the memory of parameter 1"
                        );
                        return Err(self.error(Reason::HloAttribute, span, message));
                    }
                    header.others.push((name.to_owned(), text));
                }
                _ => {
                    let message = format!("unknown attribute '{}' of the module", shortened(name));
                    return Err(self.error(Reason::HloAttribute, span, message));
                }
            }
        }
        Ok(())
    }

    fn positive(&mut self, what: &str) -> Parsed<i64> {
        self.bump();
        let span = self.token.span;
        match self.integer(what)? {
            value if 0 < value => Ok(value),
            value => {
                let message = format!("expected {what} to be at least 1, found {value}");
                Err(self.error(Reason::HloAttribute, span, message))
            }
        }
    }

    /// `{(shape, ..)->shape}`, after the `=` that is the current token.
    pub(super) fn program_shape(&mut self) -> Parsed<ProgramShape> {
        self.bump();
        self.expect(b'{', "and the shapes of parameters and result")?;
        self.expect(b'(', "and the shapes of parameters")?;
        let parameters = self.list(b')', |parser| parser.shape(Braces::Layout))?;
        self.arrow()?;
        let result = self.shape(Braces::Layout)?;
        self.expect(b'}', "after the shape of the result")?;
        Ok(ProgramShape { parameters, result })
    }

    pub(super) fn arrow(&mut self) -> Parsed<()> {
        if self.token.kind != TokenKind::Arrow {
            return Err(self.unexpected("'->' and the shape of the result"));
        }
        self.bump();
        Ok(())
    }

    pub(super) fn frames(&mut self, frames: &mut StackFrames) -> Parsed<()> {
        while self.token.kind == TokenKind::Name {
            match self.spelling(self.token) {
                "FileNames" => frames.file_names = self.table(Self::table_text)?,
                "FunctionNames" => frames.function_names = self.table(Self::table_text)?,
                "FileLocations" => {
                    let names = [
                        "file_name_id",
                        "function_name_id",
                        "line",
                        "end_line",
                        "column",
                        "end_column",
                    ];
                    frames.locations = self.table(|parser| {
                        let [file_name_id, function_name_id, line, end_line, column, end_column] =
                            parser.fields(names)?;
                        Ok(FileLocation {
                            file_name_id,
                            function_name_id,
                            line,
                            end_line,
                            column,
                            end_column,
                        })
                    })?;
                }
                "StackFrames" => {
                    frames.frames = self.table(|parser| {
                        let [file_location_id, parent_frame_id] =
                            parser.fields(["file_location_id", "parent_frame_id"])?;
                        Ok(StackFrame { file_location_id, parent_frame_id })
                    })?;
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// Entries with numbers from 1 on, after the name of the table.
    fn table<T>(&mut self, mut entry: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.bump();
        let mut entries = Vec::new();
        while self.token.kind == TokenKind::Integer {
            let token = self.token;
            let number = self.integer("a number")?;
            if number != entries.len() as i64 + 1 {
                let expected = entries.len() + 1;
                let message = format!("expected entry {expected} of the table, found {number}");
                return Err(self.error(Reason::HloSyntax, token.span, message));
            }
            entries.push(entry(self)?);
        }
        Ok(entries)
    }

    fn table_text(&mut self) -> Parsed<String> {
        if self.token.kind != TokenKind::String {
            return Err(self.unexpected("a string"));
        }
        let token = self.bump();
        let spelling = self.spelling(token);
        Ok(spelling[1..spelling.len() - 1].to_owned())
    }

    /// `{name=number ..}`: the numbers in the order of `names`, 0 for one that is not there.
    fn fields<const N: usize>(&mut self, names: [&str; N]) -> Parsed<[u32; N]> {
        let mut values = [0; N];
        self.expect(b'{', "and the fields of the entry")?;
        while !self.eat(b'}') {
            let (name, span) = self.name("the name of a field or '}'")?;
            let Some(place) = names.iter().position(|each| *each == name) else {
                let message = format!("unknown field '{}'", shortened(name));
                return Err(self.error(Reason::HloSyntax, span, message));
            };
            self.expect(b'=', "after the name of a field")?;
            let span = self.token.span;
            let value = self.integer("a number")?;
            let Ok(value) = u32::try_from(value) else {
                let message = format!("'{name}' is {value}, expected a number from 0 to 2^32 - 1");
                return Err(self.error(Reason::HloSyntax, span, message));
            };
            values[place] = value;
        }
        Ok(values)
    }
}
