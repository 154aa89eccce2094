//! Parses HLO text.
//!
//! Recursive descent over tokens made on demand. After an error the parser goes on at the next
//! line that starts an instruction or a computation; a name whose definition had an error counts
//! as defined, so that one mistake is reported once. Computations may be used before they are
//! defined; instructions may not, as in XLA, which rules out cycles.
//!
//! Limits: [`MAX_NESTING`], [`MAX_SKIPPED`]. Time and memory are linear in the text.

use super::{
    lexer::{Lexer, Token, TokenKind},
    literal::literal,
    shapes::{Braces, is_shape_word},
    values::Scope,
};
use crate::{
    hlo::{
        Attribute, Computation, ComputationId, Header, Instruction, InstructionId, Module, Opcode,
        Payload, ProgramShape, StackFrames, Value,
    },
    text::{
        Diagnostic, Reason, SourceFile, Span,
        diagnostic::{MAX_DIAGNOSTICS, sorted_and_capped},
    },
};
use std::collections::HashMap;

/// Deepest nesting of tuples, and of computations written in place of their names.
pub const MAX_NESTING: u32 = 50;

/// Most bytes that are passed over after errors: a text with so much of what is no HLO is none.
pub const MAX_SKIPPED: usize = 4 << 20;

/// The current construct cannot be completed; the reason is already among the diagnostics.
pub(super) struct Failed;

pub(super) type Parsed<T> = Result<T, Failed>;

/// Parses the bytes of a file; the source file that comes back locates the diagnostics.
pub fn parse_bytes(name: &str, bytes: Vec<u8>) -> (SourceFile, Option<Module>, Vec<Diagnostic>) {
    match SourceFile::from_bytes(name, bytes, Reason::HloSyntax, Reason::HloLimit) {
        Ok(source) => {
            let (module, diagnostics) = parse_module(&source);
            (source, module, diagnostics)
        }
        Err(error) => {
            let (source, diagnostic) = *error;
            (source, None, vec![diagnostic])
        }
    }
}

/// Parses a module. There is one unless there are diagnostics.
pub fn parse_module(source: &SourceFile) -> (Option<Module>, Vec<Diagnostic>) {
    let text = match source.text_within(Reason::HloLimit) {
        Ok(text) => text,
        Err(error) => return (None, vec![error]),
    };
    let mut parser = Parser::new(text);
    let module = parser.text().ok();
    match parser.diagnostics.is_empty() {
        true => (module, Vec::new()),
        false => (None, sorted_and_capped(parser.diagnostics)),
    }
}

/// Parses the value of an attribute alone, such as `{size=3x3}`. It must be of a kind that refers
/// to no computation or instruction.
///
/// # Errors
/// The message, if it is not such a value.
pub fn parse_value(attribute: Attribute, text: &str) -> Result<Value, String> {
    let text = format!("={text}");
    let mut parser = Parser::new(&text);
    let value = parser.value(&Scope::default(), attribute);
    if value.is_ok() && !parser.at_end() {
        parser.unexpected(&format!("the end of '{attribute}'"));
    }
    match (value, parser.diagnostics.into_iter().next()) {
        (Ok(value), None) => Ok(value),
        (_, Some(diagnostic)) => Err(diagnostic.message),
        (Err(Failed), None) => Err(format!("'{attribute}' has no value")),
    }
}

/// What is known of a computation that the text names.
struct Slot<'a> {
    name: &'a str,
    /// Where it is named first.
    first: Span,
    /// Where it is defined.
    definition: Option<Span>,
    /// Its contents, unless they had an error.
    computation: Option<Computation>,
}

pub(super) struct Parser<'a> {
    pub(super) lexer: Lexer<'a>,
    /// The current token; the lexer stands behind it.
    pub(super) token: Token,
    pub(super) previous_end: u32,
    /// Bytes that were passed over after errors.
    skipped: usize,
    depth: u32,
    diagnostics: Vec<Diagnostic>,
    /// Computations in the order in which the text names them. Until the end of the text these
    /// positions are their ids.
    slots: Vec<Slot<'a>>,
    slot_of_name: HashMap<&'a str, ComputationId>,
    /// Slots in the order of their definitions.
    defined: Vec<ComputationId>,
    entry: Option<(ComputationId, Span)>,
}

/// A token as messages show it.
pub(super) fn described(text: &str, token: Token) -> String {
    let spelling = text.get(token.span.start as usize..token.span.end as usize).unwrap_or("");
    match token.kind {
        TokenKind::End => "end of text".to_owned(),
        TokenKind::OpenString => "a string without an end".to_owned(),
        TokenKind::OpenComment => "a comment without an end".to_owned(),
        TokenKind::Unknown => {
            let shown: String = spelling.chars().flat_map(char::escape_default).collect();
            format!("character '{shown}'")
        }
        TokenKind::String => format!("string {}", shortened(spelling)),
        _ => format!("'{}'", shortened(spelling)),
    }
}

/// At most 60 characters of a text.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        let mut lexer = Lexer { text, position: 0 };
        let token = lexer.token();
        Self {
            lexer,
            token,
            previous_end: 0,
            skipped: 0,
            depth: 0,
            diagnostics: Vec::new(),
            slots: Vec::new(),
            slot_of_name: HashMap::new(),
            defined: Vec::new(),
            entry: None,
        }
    }

    // Tokens.

    pub(super) fn spelling(&self, token: Token) -> &'a str {
        let lexer = &self.lexer;
        &lexer.text[token.span.start as usize..token.span.end as usize]
    }

    pub(super) fn bump(&mut self) -> Token {
        let token = self.token;
        self.previous_end = token.span.end;
        self.token = self.lexer.token();
        token
    }

    pub(super) fn is(&self, byte: u8) -> bool {
        self.token.kind == TokenKind::Punctuation(byte)
    }

    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.is(byte);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn expect(&mut self, byte: u8, place: &str) -> Parsed<Token> {
        match self.is(byte) {
            true => Ok(self.bump()),
            false => Err(self.unexpected(&format!("'{}' {place}", char::from(byte)))),
        }
    }

    fn is_word(&self, word: &str) -> bool {
        self.token.kind == TokenKind::Name && self.spelling(self.token) == word
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.bump();
        }
        found
    }

    /// Takes a name, and gives it without its `%`.
    pub(super) fn name(&mut self, expected: &str) -> Parsed<(&'a str, Span)> {
        if self.token.kind != TokenKind::Name {
            return Err(self.unexpected(expected));
        }
        let token = self.bump();
        let spelling = self.spelling(token);
        let name = spelling.strip_prefix('%').unwrap_or(spelling);
        match name.is_empty() {
            true => Err(self.error(Reason::HloSyntax, token.span, "expected a name after '%'")),
            false => Ok((name, token.span)),
        }
    }

    /// Takes an integer.
    pub(super) fn integer(&mut self, expected: &str) -> Parsed<i64> {
        if self.token.kind != TokenKind::Integer {
            return Err(self.unexpected(expected));
        }
        let token = self.bump();
        self.spelling(token).parse().map_err(|_| {
            let found = shortened(self.spelling(token));
            self.error(Reason::HloLimit, token.span, format!("{found} does not fit in 64 bits"))
        })
    }

    /// Takes an integer that is not negative.
    pub(super) fn natural(&mut self, what: &str) -> Parsed<i64> {
        let span = self.token.span;
        match self.integer(what)? {
            value if value < 0 => {
                let message = format!("expected {what}, found {value}, which is negative");
                Err(self.error(Reason::HloSyntax, span, message))
            }
            value => Ok(value),
        }
    }

    /// Elements with commas between them up to a closing byte, which is taken as well.
    pub(super) fn list<T>(
        &mut self,
        close: u8,
        mut element: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut elements = Vec::new();
        if self.eat(close) {
            return Ok(elements);
        }
        loop {
            elements.push(element(self)?);
            if self.eat(close) {
                return Ok(elements);
            }
            if !self.eat(b',') {
                return Err(self.unexpected(&format!("',' or '{}'", char::from(close))));
            }
        }
    }

    /// Goes on reading at another place.
    pub(super) fn restart(&mut self, position: usize) {
        self.lexer.position = position;
        self.bump();
    }

    // Errors.

    pub(super) fn report(&mut self, diagnostic: Diagnostic) -> Failed {
        self.diagnostics.push(diagnostic);
        if MAX_DIAGNOSTICS < self.diagnostics.len() {
            self.stop();
        }
        Failed
    }

    /// Gives the rest of the text up.
    fn stop(&mut self) {
        self.restart(self.lexer.text.len());
    }

    pub(super) fn error(
        &mut self,
        reason: Reason,
        span: Span,
        message: impl Into<String>,
    ) -> Failed {
        self.report(Diagnostic::new(reason, span, message))
    }

    pub(super) fn unexpected(&mut self, expected: &str) -> Failed {
        let token = self.token;
        let found = described(self.lexer.text, token);
        let message = format!("expected {expected}, found {found}");
        let failed = self.error(Reason::HloSyntax, token.span, message);
        // What follows an open string or comment was taken for a part of it.
        if matches!(token.kind, TokenKind::OpenString | TokenKind::OpenComment) {
            self.stop();
        }
        failed
    }

    /// An opening byte at this place has no closing one; nothing after it can be trusted.
    pub(super) fn not_closed(&mut self, at: usize, what: &str) -> Failed {
        let span = Span::new(at as u32, at as u32 + 1);
        let failed = self.error(Reason::HloSyntax, span, format!("{what} is not closed"));
        self.stop();
        failed
    }

    fn at_end(&self) -> bool {
        self.token.kind == TokenKind::End
    }

    /// Goes on at the next line that starts an instruction, or ends or starts a computation. Lines
    /// that were read already do not count, so that every call but one in two makes progress.
    fn recover(&mut self) {
        if self.at_end() {
            return;
        }
        let bytes = self.lexer.text.as_bytes();
        let mut at = self.previous_end as usize;
        while let Some(length) = bytes[at..].iter().position(|&byte| byte == b'\n') {
            at += length + 1;
            self.skipped += length + 1;
            if MAX_SKIPPED < self.skipped {
                break;
            }
            let mut ahead = Lexer { text: self.lexer.text, position: at };
            ahead.skip(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
            if matches!(ahead.byte(0), None | Some(b'\n')) {
                continue;
            }
            if ahead.byte(0) == Some(b'}') || starts_definition(&mut ahead) {
                return self.restart(at);
            }
        }
        self.stop();
    }

    // The text as a whole.

    fn text(&mut self) -> Parsed<Module> {
        let expected = "'HloModule', a computation or an instruction";
        let mut ahead = self.lexer.clone();
        let next = ahead.token().kind;
        let is_instruction = match self.token.kind {
            TokenKind::Punctuation(b'(') => true,
            TokenKind::Name => {
                let word = self.spelling(self.token);
                word == "ROOT" && next == TokenKind::Name
                    || next == TokenKind::Punctuation(b'=')
                    || next == TokenKind::Punctuation(b'[') && is_shape_word(word)
            }
            _ => return Err(self.unexpected(expected)),
        };
        if is_instruction {
            return self.single_instruction();
        }
        let mut module = Parts::unnamed();
        if self.eat_word("HloModule") {
            module.name = self.name("the name of the module")?.0.to_owned();
            self.header(&mut module.header)?;
            self.frames(&mut module.frames)?;
        }
        while !self.at_end() {
            if self.computation().is_err() {
                self.recover_computation();
            }
        }
        self.finish(module)
    }

    /// After an error outside of instructions: goes on at the next computation.
    fn recover_computation(&mut self) {
        loop {
            self.recover();
            // An instruction or a brace belongs to the computation that had the error.
            let mut ahead = Lexer { text: self.lexer.text, ..self.lexer };
            ahead.position = self.token.span.start as usize;
            if self.at_end() || !self.is(b'}') && !starts_instruction(&mut ahead) {
                return;
            }
        }
    }

    /// A text that is one instruction: what its operands name are parameters.
    fn single_instruction(&mut self) -> Parsed<Module> {
        let mut scope = Scope { makes_parameters: true, ..Scope::default() };
        self.instruction(&mut scope)?;
        if !self.at_end() {
            return Err(self.unexpected("end of text after a single instruction"));
        }
        let name = "entry";
        let span = Span::new(0, 0);
        let id = self.slot(name, span);
        self.entry = Some((id, span));
        let computation = self.close_scope(scope, name, span, None)?;
        self.define(id, span, Some(computation));
        self.finish(Parts::unnamed())
    }

    /// Checks what only the whole text shows, and orders the computations.
    fn finish(&mut self, parts: Parts) -> Parsed<Module> {
        let undefined: Vec<_> = self
            .slots
            .iter()
            .filter(|slot| slot.definition.is_none())
            .map(|slot| (slot.first, format!("computation '{}' is not defined", slot.name)))
            .collect();
        for (span, message) in undefined {
            self.error(Reason::HloUndefined, span, message);
        }
        let Some(&last) = self.defined.last() else {
            let span = self.token.span;
            return Err(self.error(Reason::HloSyntax, span, "expected a computation, found none"));
        };
        // As XLA does: without ENTRY it is the last computation.
        let entry = self.entry.map_or(last, |(id, _)| id);
        if !self.diagnostics.is_empty() {
            return Err(Failed);
        }
        let order = self.order()?;
        let mut ids = vec![ComputationId(0); self.slots.len()];
        for (position, id) in order.iter().enumerate() {
            ids[id.index()] = ComputationId(position as u32);
        }
        let mut computations = Vec::with_capacity(order.len());
        for id in order {
            let Some(mut computation) = self.slots[id.index()].computation.take() else {
                return Err(Failed);
            };
            if computation.name.is_empty() {
                computation.name = self.free_name(id);
            }
            computation.renumber_callees(&ids);
            computations.push(computation);
        }
        Ok(Module {
            name: parts.name,
            header: parts.header,
            frames: parts.frames,
            computations,
            entry: ids[entry.index()],
        })
    }

    /// A name that the text does not use, for a computation without one.
    fn free_name(&self, id: ComputationId) -> String {
        let mut name = format!("region_{}", id.0);
        while self.slot_of_name.contains_key(name.as_str()) {
            name.push('_');
        }
        name
    }

    /// The computations, each after those that it refers to, and otherwise in the order of their
    /// definitions. A cycle is an error.
    fn order(&mut self) -> Parsed<Vec<ComputationId>> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done,
        }
        let callees: Vec<Vec<ComputationId>> = self
            .slots
            .iter()
            .map(|slot| {
                let instructions = slot.computation.iter().flat_map(|each| &each.instructions);
                instructions.flat_map(Instruction::called_computations).collect()
            })
            .collect();
        let mut state = vec![State::New; self.slots.len()];
        let mut order = Vec::with_capacity(self.slots.len());
        for &start in &self.defined.clone() {
            // Each entry is a computation and how many of its callees were looked at.
            let mut path = vec![(start, 0)];
            while let Some((id, next)) = path.last_mut() {
                let (id, position) = (*id, *next);
                *next += 1;
                if position == 0 {
                    match state[id.index()] {
                        State::New => state[id.index()] = State::Open,
                        _ => {
                            path.pop();
                            continue;
                        }
                    }
                }
                match callees[id.index()].get(position) {
                    None => {
                        state[id.index()] = State::Done;
                        order.push(id);
                        path.pop();
                    }
                    Some(&callee) if state[callee.index()] == State::Open => {
                        return Err(self.cycle(id, callee));
                    }
                    Some(&callee) => path.push((callee, 0)),
                }
            }
        }
        Ok(order)
    }

    /// `caller` refers to `callee`, which leads to `caller`.
    fn cycle(&mut self, caller: ComputationId, callee: ComputationId) -> Failed {
        let name = |id: ComputationId| self.slots[id.index()].name;
        let message = match caller == callee {
            true => format!("computation '{}' calls itself", name(callee)),
            false => format!(
                "computations call each other in a cycle: '{}' calls '{}', which leads back to it",
                name(caller),
                name(callee)
            ),
        };
        let instructions =
            self.slots[caller.index()].computation.iter().flat_map(|each| &each.instructions);
        let call = instructions
            .filter(|each| each.called_computations().any(|called| called == callee))
            .map(|each| each.span)
            .next();
        self.error(Reason::HloStructure, call.unwrap_or_default(), message)
    }

    // Computations.

    /// The id of a computation that the text names.
    pub(super) fn slot(&mut self, name: &'a str, span: Span) -> ComputationId {
        let next = ComputationId(self.slots.len() as u32);
        let id = *self.slot_of_name.entry(name).or_insert(next);
        if id == next {
            self.slots.push(Slot { name, first: span, definition: None, computation: None });
        }
        id
    }

    fn define(&mut self, id: ComputationId, span: Span, computation: Option<Computation>) {
        let slot = &mut self.slots[id.index()];
        match slot.definition {
            Some(first) => {
                let message = format!("computation '{}' is defined twice", slot.name);
                let error = Diagnostic::new(Reason::HloRedefined, span, message)
                    .note(first, "the other definition is here");
                self.report(error);
            }
            None => {
                slot.definition = Some(span);
                slot.computation = computation;
                self.defined.push(id);
            }
        }
    }

    /// `[ENTRY] name [(parameters) -> result] { instructions }`
    fn computation(&mut self) -> Parsed<()> {
        let entry_span = self.token.span;
        let is_entry = self.eat_word("ENTRY");
        let (name, span) = self.name("a computation")?;
        let id = self.slot(name, span);
        if is_entry {
            if let Some((_, first)) = self.entry {
                let message = "a second computation is marked ENTRY";
                let error = Diagnostic::new(Reason::HloStructure, entry_span, message)
                    .note(first, "the first one is here");
                self.report(error);
            } else {
                self.entry = Some((id, entry_span));
            }
        }
        let signature = match self.is(b'(') {
            true => match self.signature() {
                Ok(signature) => Some(signature),
                Err(Failed) => {
                    self.define(id, span, None);
                    return Err(Failed);
                }
            },
            false => None,
        };
        let computation = self.body(name, span, signature);
        let is_complete = computation.is_ok();
        self.define(id, span, computation.ok().flatten());
        if !is_complete {
            return Err(Failed);
        }
        // The thread that runs it: a hint for a backend.
        if self.eat(b',') {
            let (name, span) = self.name("'execution_thread'")?;
            self.expect_assignment(name)?;
            if name != "execution_thread" {
                let message = format!("unknown attribute '{}' of a computation", shortened(name));
                return Err(self.error(Reason::HloAttribute, span, message));
            }
            self.opaque(name)?;
        }
        Ok(())
    }

    /// `(name: shape, ..) -> shape`
    fn signature(&mut self) -> Parsed<(ProgramShape, Span)> {
        let start = self.token.span;
        self.bump();
        let parameters = self.list(b')', |parser| {
            parser.name("the name of a parameter")?;
            parser.expect(b':', "and the shape of the parameter")?;
            parser.shape(Braces::Layout)
        })?;
        self.arrow()?;
        let result = self.shape(Braces::Body)?;
        let span = Span::new(start.start, self.previous_end);
        Ok((ProgramShape { parameters, result }, span))
    }

    /// `{ instructions }`. There is no computation if an instruction had an error.
    fn body(
        &mut self,
        name: &'a str,
        span: Span,
        signature: Option<(ProgramShape, Span)>,
    ) -> Parsed<Option<Computation>> {
        let open = self.expect(b'{', "and the instructions of the computation")?;
        let mut scope = Scope::default();
        let before = self.diagnostics.len();
        while !self.eat(b'}') {
            if self.token.kind != TokenKind::Name {
                if !self.at_end() {
                    let _ = self.unexpected("an instruction or '}'");
                    self.recover();
                    continue;
                }
                if before == self.diagnostics.len() {
                    let message = format!(
                        "expected '}}' at the end of computation '{name}', found end of text"
                    );
                    let error = Diagnostic::new(Reason::HloSyntax, self.token.span, message)
                        .note(open.span, "the computation begins here");
                    self.report(error);
                }
                return Err(Failed);
            }
            let mut ahead = Lexer { text: self.lexer.text, ..self.lexer };
            ahead.position = self.token.span.start as usize;
            if starts_computation(&mut ahead) {
                let _ = self.unexpected("'}' before the next computation");
                return Ok(None);
            }
            if self.instruction(&mut scope).is_err() {
                self.recover();
            }
        }
        if before != self.diagnostics.len() {
            return Ok(None);
        }
        Ok(self.close_scope(scope, name, span, signature).ok())
    }

    /// Checks what only the whole computation shows.
    fn close_scope(
        &mut self,
        mut scope: Scope<'a>,
        name: &str,
        span: Span,
        signature: Option<(ProgramShape, Span)>,
    ) -> Parsed<Computation> {
        scope.parameters.sort_by_key(|&(number, id)| (number, id));
        let instructions = &scope.instructions;
        for (position, &(number, id)) in scope.parameters.iter().enumerate() {
            if number == position as i64 {
                continue;
            }
            let count = scope.parameters.len();
            let same = position.checked_sub(1).map(|previous| scope.parameters[previous]);
            let at = instructions[id.index()].span;
            let error = match same {
                Some((other, first)) if other == number => Diagnostic::new(
                    Reason::HloStructure,
                    at,
                    format!("parameter number {number} is used twice in computation '{name}'"),
                )
                .note(instructions[first.index()].span, "the other one is here"),
                _ => Diagnostic::new(
                    Reason::HloStructure,
                    at,
                    format!(
                        "parameter number {number} leaves a gap: computation '{name}' has {count} \
                         parameters, and {position} is missing"
                    ),
                ),
            };
            return Err(self.report(error));
        }
        let root = match scope.root {
            Some((root, _)) => root,
            // As XLA does: without ROOT it is the last instruction.
            None => match instructions.len().checked_sub(1) {
                Some(last) => InstructionId(last as u32),
                None => {
                    let message = format!("computation '{name}' has no instructions");
                    return Err(self.error(Reason::HloStructure, span, message));
                }
            },
        };
        let computation = Computation {
            name: name.to_owned(),
            instructions: scope.instructions,
            parameters: scope.parameters.into_iter().map(|(_, id)| id).collect(),
            root,
            span,
        };
        if let Some((expected, span)) = signature
            && let Some(message) = differs(&expected, &computation, "signature")
        {
            return Err(self.error(Reason::HloShape, span, message));
        }
        Ok(computation)
    }

    /// The name of a computation, or `{ instructions }` in its place.
    pub(super) fn computation_reference(&mut self) -> Parsed<ComputationId> {
        if !self.is(b'{') {
            let (name, span) = self.name("the name of a computation")?;
            return Ok(self.slot(name, span));
        }
        let span = self.token.span;
        let id = ComputationId(self.slots.len() as u32);
        // It gets a name when all other names are known.
        self.slots.push(Slot { name: "", first: span, definition: None, computation: None });
        let computation = self.deeper(|parser| parser.body("", span, None));
        let is_complete = computation.is_ok();
        self.define(id, span, computation.ok().flatten());
        if is_complete { Ok(id) } else { Err(Failed) }
    }

    /// Runs a parser one level deeper, if that is allowed.
    pub(super) fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_NESTING {
            let span = self.token.span;
            let message = format!("nested deeper than {MAX_NESTING} levels");
            let failed = self.error(Reason::HloLimit, span, message);
            return Err(failed);
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    // Instructions.

    /// `[ROOT] name = shape opcode(operands), attributes`
    fn instruction(&mut self, scope: &mut Scope<'a>) -> Parsed<()> {
        let mut start = self.token.span;
        let is_root = self.eat_word("ROOT");
        let is_nameless = scope.makes_parameters && self.starts_shape();
        let (name, span) = match is_nameless {
            true => ("result", start),
            false => self.name("the name of an instruction")?,
        };
        start = span;
        if let Some(&(_, first)) = scope.names.get(name) {
            let message = format!("instruction '{}' is defined twice", shortened(name));
            let error = Diagnostic::new(Reason::HloRedefined, span, message)
                .note(first, "the other definition is here");
            return Err(self.report(error));
        }
        let instruction = match is_nameless {
            true => self.right_side(scope, name, start),
            false => match self.expect(b'=', "after the name of an instruction") {
                Ok(_) => self.right_side(scope, name, start),
                Err(failed) => Err(failed),
            },
        };
        let id = InstructionId(scope.instructions.len() as u32);
        scope.names.insert(name, (instruction.is_ok().then_some(id), span));
        if is_root {
            if let Some((_, first)) = scope.root {
                let message = "a second instruction is marked ROOT";
                let error = Diagnostic::new(Reason::HloStructure, span, message)
                    .note(first, "the first one is here");
                self.report(error);
            } else {
                scope.root = Some((id, span));
            }
        }
        let instruction = instruction?;
        if let Payload::Parameter(number) = instruction.payload {
            scope.parameters.push((number, id));
        }
        scope.instructions.push(instruction);
        Ok(())
    }

    fn right_side(
        &mut self,
        scope: &mut Scope<'a>,
        name: &str,
        start: Span,
    ) -> Parsed<Instruction> {
        if self.token.kind != TokenKind::Name && !self.is(b'(') {
            return Err(self.unexpected("the shape of the instruction"));
        }
        let shape = self.shape(Braces::Layout)?;
        let (word, opcode_span) = self.name("an opcode")?;
        if !self.is(b'(') {
            return Err(self.unexpected(&format!("'(' after opcode '{}'", shortened(word))));
        }
        let Some(opcode) = Opcode::from_name(word) else {
            let message = match Opcode::instead_of(word) {
                Some(advice) => format!("opcode '{word}' is not supported: {advice}"),
                None => format!("unknown opcode '{}'", shortened(word)),
            };
            let error = Diagnostic::new(Reason::HloOpcode, opcode_span, message);
            let names = Opcode::ALL.iter().map(|opcode| opcode.name());
            return Err(self.report(error.try_similar(word, names, self.diagnostics.len())));
        };
        let mut operands = Vec::new();
        let payload = match opcode {
            Opcode::Parameter => {
                self.bump();
                Payload::Parameter(self.natural("the number of a parameter")?)
            }
            Opcode::Constant => {
                // The lexer stands right after the parenthesis.
                let value = match literal(&mut self.lexer, &shape) {
                    Ok(value) => value,
                    Err(error) => return Err(self.report(error)),
                };
                self.bump();
                Payload::Constant(Box::new(value))
            }
            _ => {
                self.bump();
                while !self.is(b')') {
                    operands.push(self.operand(scope)?);
                    if !self.eat(b',') {
                        break;
                    }
                }
                Payload::None
            }
        };
        if !self.is(b')') {
            return Err(self.unexpected(&format!("')' after the operands of '{opcode}'")));
        }
        self.bump();
        let mut attributes = Vec::new();
        while self.eat(b',') {
            let attribute = self.attribute(scope, opcode, &attributes)?;
            attributes.push(attribute);
        }
        if !opcode.arity().allows(operands.len()) {
            let (found, expected) = (operands.len(), opcode.arity());
            let message = format!("'{opcode}' takes {expected}, found {found}");
            return Err(self.error(Reason::HloOperands, opcode_span, message));
        }
        for required in opcode.required() {
            if !attributes.iter().any(|(attribute, _)| attribute == required) {
                let message = format!("'{opcode}' needs the attribute '{required}'");
                return Err(self.error(Reason::HloAttribute, opcode_span, message));
            }
        }
        // Operands that are not there were reported.
        let Some(operands) = operands.into_iter().collect() else { return Err(Failed) };
        attributes.shrink_to_fit();
        Ok(Instruction {
            name: name.to_owned(),
            opcode,
            shape,
            operands,
            attributes,
            payload,
            span: Span::new(start.start, self.previous_end),
        })
    }

    /// `[shape] name`; nothing if its definition had an error.
    fn operand(&mut self, scope: &mut Scope<'a>) -> Parsed<Option<InstructionId>> {
        let shape_span = self.token.span;
        let shape = match self.starts_shape() {
            true => Some(self.shape(Braces::Layout)?),
            false => None,
        };
        let shape_span = Span::new(shape_span.start, self.previous_end);
        let (name, span) = self.name("an operand or ')'")?;
        match (scope.names.get(name), shape) {
            (Some(&(id, _)), shape) => {
                if let (Some(id), Some(shape)) = (id, shape) {
                    let defined = &scope.instructions[id.index()].shape;
                    if !shape.is_compatible(defined) {
                        let message = format!(
                            "operand '{name}' has shape {}, but {} is written here",
                            defined.without_layout(),
                            shape.without_layout()
                        );
                        return Err(self.error(Reason::HloShape, shape_span, message));
                    }
                }
                Ok(id)
            }
            (None, Some(shape)) if scope.makes_parameters => {
                let number = scope.parameters.len() as i64;
                let id = InstructionId(scope.instructions.len() as u32);
                scope.instructions.push(Instruction {
                    name: name.to_owned(),
                    opcode: Opcode::Parameter,
                    shape,
                    operands: Vec::new(),
                    attributes: Vec::new(),
                    payload: Payload::Parameter(number),
                    span,
                });
                scope.parameters.push((number, id));
                scope.names.insert(name, (Some(id), span));
                Ok(Some(id))
            }
            (None, _) => {
                let message =
                    format!("operand '{}' is not defined before its use", shortened(name));
                Err(self.error(Reason::HloUndefined, span, message))
            }
        }
    }
}

/// The parts of a module apart from its computations.
struct Parts {
    name: String,
    header: Header,
    frames: StackFrames,
}

impl Parts {
    /// Those of a text without a first line.
    fn unnamed() -> Self {
        Self {
            name: "module".to_owned(),
            header: Header::default(),
            frames: StackFrames::default(),
        }
    }
}

/// Whether the numbers are those from 0 on in some order.
pub(crate) fn is_permutation(numbers: &[i64]) -> bool {
    let mut seen = vec![false; numbers.len()];
    numbers.iter().all(|&number| {
        let place = usize::try_from(number).ok().and_then(|number| seen.get_mut(number));
        place.is_some_and(|seen| !std::mem::replace(seen, true))
    })
}

/// How the shapes of a computation differ from those that `what` gives it.
pub(crate) fn differs(
    expected: &ProgramShape,
    computation: &Computation,
    what: &str,
) -> Option<String> {
    let name = &computation.name;
    let (given, found) = (expected.parameters.len(), computation.parameters.len());
    if given != found {
        return Some(format!(
            "expected as many parameters in {what} as computation '{name}' has, {found}, but found \
             {given}"
        ));
    }
    let shapes = expected.parameters.iter().zip(computation.parameter_shapes());
    for (position, (given, found)) in shapes.enumerate() {
        if !given.is_compatible(found) {
            return Some(format!(
                "{what} gives parameter {position} the shape {}, but in computation '{name}' it \
                 has {}",
                given.without_layout(),
                found.without_layout()
            ));
        }
    }
    let found = &computation.root().shape;
    (!expected.result.is_compatible(found)).then(|| {
        format!(
            "{what} gives the result the shape {}, but computation '{name}' gives {}",
            expected.result.without_layout(),
            found.without_layout()
        )
    })
}

/// Whether a line starts an instruction or a computation.
fn starts_definition(lexer: &mut Lexer) -> bool {
    starts_instruction(&mut lexer.clone()) || starts_computation(lexer)
}

/// Whether an instruction starts here: `[ROOT] name = shape`.
fn starts_instruction(lexer: &mut Lexer) -> bool {
    let Some(mut word) = line_word(lexer) else { return false };
    if word == "ROOT" {
        match line_word(lexer) {
            Some(next) => word = next,
            None => return false,
        }
    }
    lexer.skip(|byte| byte == b' ');
    if lexer.byte(0) != Some(b'=') {
        return false;
    }
    lexer.position += 1;
    // Attributes on a line of their own have a name and a `=` too, but no shape.
    lexer.skip(|byte| byte == b' ');
    lexer.byte(0) == Some(b'(')
        || line_word(lexer).is_some_and(is_shape_word) && lexer.byte(0) == Some(b'[')
        || word.starts_with('%')
}

/// Whether a computation starts here: `ENTRY`, or a name before `{` or `(`.
fn starts_computation(lexer: &mut Lexer) -> bool {
    match line_word(lexer) {
        None => false,
        Some("ENTRY") => true,
        Some("ROOT") => false,
        Some(word) => {
            lexer.skip(|byte| byte == b' ');
            match lexer.byte(0) {
                Some(b'{') => true,
                Some(b'(') => Opcode::from_name(word).is_none(),
                _ => false,
            }
        }
    }
}

/// The word at the current place, after blanks of the same line.
fn line_word<'a>(lexer: &mut Lexer<'a>) -> Option<&'a str> {
    lexer.skip(|byte| byte == b' ' || byte == b'\t');
    let text: &'a str = lexer.text;
    match lexer.byte(0) {
        Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'%') => {
            let token = lexer.token();
            text.get(token.span.start as usize..token.span.end as usize)
        }
        _ => None,
    }
}
