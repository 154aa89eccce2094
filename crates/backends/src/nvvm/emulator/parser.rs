//! From tokens to the tree of [`super::syntax`]: the grammar that LLVM 22 writes.

use super::{
    error::{Error, Position},
    lexer::{Kind, Token, tokens},
    syntax::*,
};

/// Directives of a kernel or function, with the number of values behind each.
const FUNCTION_DIRECTIVES: &[(&str, usize)] = &[
    (".minnctapersm", 1),
    (".maxnreg", 1),
    (".maxclusterrank", 1),
    (".explicitcluster", 0),
    (".blocksareclusters", 0),
    (".noreturn", 0),
];

/// Sizes of the types that declare registers and variables, in bits.
const TYPE_BITS: &[(&str, u32)] = &[
    (".pred", 1),
    (".b8", 8),
    (".u8", 8),
    (".s8", 8),
    (".b16", 16),
    (".u16", 16),
    (".s16", 16),
    (".f16", 16),
    (".bf16", 16),
    (".b32", 32),
    (".u32", 32),
    (".s32", 32),
    (".f32", 32),
    (".b64", 64),
    (".u64", 64),
    (".s64", 64),
    (".f64", 64),
];

/// Parses a module.
pub(super) fn parse(text: &str) -> Result<Source<'_>, Error> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0 };
    parser.module()
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    next: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Kind<'a> {
        self.token().kind
    }

    fn token(&self) -> Token<'a> {
        // The last token is `End`, and `bump` never passes it.
        self.tokens[self.next]
    }

    fn at(&self) -> Position {
        self.token().at
    }

    fn bump(&mut self) -> Kind<'a> {
        let kind = self.peek();
        if kind != Kind::End {
            self.next += 1;
        }
        kind
    }

    fn expected<T>(&self, what: &str) -> Result<T, Error> {
        let message = format!("expected {what}, found {}", self.peek().describe());
        Err(Error::Syntax { at: self.at(), message })
    }

    fn accept(&mut self, symbol: u8) -> bool {
        let found = self.peek() == Kind::Symbol(symbol);
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, symbol: u8) -> Result<(), Error> {
        if self.accept(symbol) {
            Ok(())
        } else {
            self.expected(&format!("'{}'", char::from(symbol)))
        }
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = self.peek() == Kind::Word(word);
        if found {
            self.bump();
        }
        found
    }

    fn name(&mut self, what: &str) -> Result<&'a str, Error> {
        match self.peek() {
            Kind::Word(word) if !word.starts_with('.') => {
                self.bump();
                Ok(word)
            }
            _ => self.expected(what),
        }
    }

    fn integer(&mut self) -> Result<i64, Error> {
        let negative = self.accept(b'-');
        match self.peek() {
            Kind::Integer(n) => {
                self.bump();
                let n = n as i64;
                Ok(if negative { n.wrapping_neg() } else { n })
            }
            _ => self.expected("an integer"),
        }
    }

    fn unsigned(&mut self) -> Result<u32, Error> {
        match self.peek() {
            Kind::Integer(n) if u32::try_from(n).is_ok() => {
                self.bump();
                Ok(n as u32)
            }
            _ => self.expected("an integer below 2^32"),
        }
    }

    fn unsupported<T>(&self, what: &str) -> Result<T, Error> {
        Err(Error::Unsupported {
            at: self.at(),
            what: format!("{what} {}", self.peek().describe()),
        })
    }

    fn skip_line(&mut self) {
        let line = self.at().line;
        while self.at().line == line && self.peek() != Kind::End {
            self.bump();
        }
    }

    fn skip_section(&mut self) -> Result<(), Error> {
        while self.peek() != Kind::Symbol(b'{') {
            if self.bump() == Kind::End {
                return self.expected("'{'");
            }
        }
        while !self.accept(b'}') {
            if self.bump() == Kind::End {
                return self.expected("'}'");
            }
        }
        Ok(())
    }

    fn module(&mut self) -> Result<Source<'a>, Error> {
        let mut source = Source::default();
        loop {
            match self.peek() {
                Kind::End => return Ok(source),
                Kind::Word(".version") => {
                    self.bump();
                    match self.peek() {
                        Kind::Decimal(_) => self.bump(),
                        _ => return self.expected("a version"),
                    };
                }
                Kind::Word(".target") => {
                    self.bump();
                    source.target = self.name("a target")?;
                    while self.accept(b',') {
                        self.name("an option of the target")?;
                    }
                }
                Kind::Word(".address_size") => {
                    self.bump();
                    if self.peek() != Kind::Integer(64) {
                        return self.expected("'64'");
                    }
                    self.bump();
                }
                Kind::Word(".file" | ".loc") => self.skip_line(),
                Kind::Word(".section") => self.skip_section()?,
                Kind::Word(".pragma") => {
                    self.bump();
                    self.bump();
                    self.expect(b';')?;
                }
                Kind::Word(_) => self.declaration(&mut source)?,
                _ => return self.expected("a directive"),
            }
        }
    }

    fn declaration(&mut self, source: &mut Source<'a>) -> Result<(), Error> {
        let mut external = false;
        loop {
            match self.peek() {
                Kind::Word(".visible" | ".weak" | ".common") => {
                    self.bump();
                }
                Kind::Word(".extern") => {
                    external = true;
                    self.bump();
                }
                Kind::Word(".entry" | ".func") => {
                    let function = self.function()?;
                    source.functions.push(function);
                    return Ok(());
                }
                Kind::Word(word) => match variable_space(word) {
                    Some(space) => {
                        let mut variable = self.variable(space, external)?;
                        variable.external = external;
                        self.expect(b';')?;
                        source.variables.push(variable);
                        return Ok(());
                    }
                    None => return self.unsupported("directive"),
                },
                _ => return self.expected("a declaration"),
            }
        }
    }

    fn function(&mut self) -> Result<Function<'a>, Error> {
        let kernel = self.bump() == Kind::Word(".entry");
        let at = self.at();
        let results = if !kernel && self.accept(b'(') { self.parameters()? } else { Vec::new() };
        let name = self.name("a name")?;
        let parameters = if self.accept(b'(') { self.parameters()? } else { Vec::new() };
        let mut function = Function {
            name,
            kernel,
            results,
            parameters,
            max_threads: None,
            required_threads: None,
            cluster: None,
            body: None,
            at,
        };
        loop {
            match self.peek() {
                Kind::Symbol(b'{') => {
                    self.bump();
                    function.body = Some(self.body()?);
                    self.accept(b';');
                    return Ok(function);
                }
                Kind::Symbol(b';') => {
                    self.bump();
                    return Ok(function);
                }
                Kind::Word(".maxntid") => function.max_threads = Some(self.extents()?),
                Kind::Word(".reqntid") => function.required_threads = Some(self.extents()?),
                Kind::Word(".reqnctapercluster") => function.cluster = Some(self.extents()?),
                Kind::Word(".pragma") => {
                    self.bump();
                    self.bump();
                    self.expect(b';')?;
                }
                Kind::Word(word) => {
                    match FUNCTION_DIRECTIVES.iter().find(|(directive, _)| *directive == word) {
                        Some((_, values)) => {
                            self.bump();
                            for _ in 0..*values {
                                self.unsigned()?;
                            }
                        }
                        None => return self.unsupported("directive"),
                    }
                }
                _ => return self.expected("a body"),
            }
        }
    }

    fn extents(&mut self) -> Result<[u32; 3], Error> {
        self.bump();
        let mut extents = [self.unsigned()?, 1, 1];
        for extent in &mut extents[1..] {
            if self.accept(b',') {
                *extent = self.unsigned()?;
            }
        }
        Ok(extents)
    }

    fn parameters(&mut self) -> Result<Vec<Variable<'a>>, Error> {
        let mut parameters = Vec::new();
        while !self.accept(b')') {
            if !parameters.is_empty() {
                self.expect(b',')?;
            }
            if !self.accept_word(".param") {
                return self.expected("'.param'");
            }
            parameters.push(self.variable_behind_space(Space::Parameter, false)?);
        }
        Ok(parameters)
    }

    fn variable(&mut self, space: Space, external: bool) -> Result<Variable<'a>, Error> {
        self.bump();
        self.variable_behind_space(space, external)
    }

    /// `.align 16 .b8 name[4][8] = {..}`, and `.u64 .ptr .global .align 16 name` of parameters.
    fn variable_behind_space(
        &mut self,
        space: Space,
        external: bool,
    ) -> Result<Variable<'a>, Error> {
        let mut bits = None;
        let mut align = None;
        let mut pointer = false;
        let at = loop {
            match self.peek() {
                Kind::Word(".align") => {
                    self.bump();
                    let at = self.at();
                    let value = self.unsigned()?;
                    if !value.is_power_of_two() || value > 1 << 20 {
                        let message = format!("expected a power of two, found '{value}'");
                        return Err(Error::Syntax { at, message });
                    }
                    if !pointer {
                        align = Some(value as usize);
                    }
                }
                Kind::Word(".ptr") => {
                    pointer = true;
                    self.bump();
                }
                Kind::Word(".global" | ".shared" | ".const" | ".local") if pointer => {
                    self.bump();
                }
                Kind::Word(word) if word.starts_with('.') => match type_bits(word) {
                    Some(found) if bits.is_none() => {
                        bits = Some(found);
                        self.bump();
                    }
                    _ => return self.unsupported("attribute or type"),
                },
                _ => break self.at(),
            }
        };
        let Some(bits) = bits else { return self.expected("a type") };
        let name = self.name("a name")?;
        let element = (bits as usize).div_ceil(8);
        let mut size = Some(element);
        let mut unsized_array = false;
        while self.accept(b'[') {
            if self.accept(b']') {
                unsized_array = true;
                continue;
            }
            let extent = self.unsigned()? as usize;
            size = size.and_then(|size| size.checked_mul(extent));
            self.expect(b']')?;
        }
        let initial = if self.accept(b'=') { Some(self.initial(element)?) } else { None };
        let too_large = |message: String| Error::Syntax { at, message };
        let mut size = size
            .filter(|size| *size <= 1 << 32)
            .ok_or_else(|| too_large("expected at most 2^32 bytes, found more".to_string()))?;
        if unsized_array {
            size = initial.as_ref().map_or(0, Vec::len);
            if initial.is_none() && !external {
                return Err(too_large(format!("expected a size of '{name}', found none")));
            }
        }
        if initial.as_ref().is_some_and(|bytes| bytes.len() > size) {
            return Err(too_large(format!("expected at most {size} bytes of initial values")));
        }
        let align = align.unwrap_or(element).max(1);
        Ok(Variable { space, name, align, size, initial, external: false, at })
    }

    /// Initial values; nested braces are flat.
    fn initial(&mut self, element: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let mut depth = 0;
        loop {
            match self.peek() {
                Kind::Symbol(b'{') => {
                    self.bump();
                    depth += 1;
                }
                Kind::Symbol(b'}') if depth > 0 => {
                    self.bump();
                    depth -= 1;
                }
                Kind::Symbol(b',') if depth > 0 => {
                    self.bump();
                }
                Kind::Single(bits) => {
                    self.bump();
                    bytes.extend_from_slice(&u64::from(bits).to_le_bytes()[..element]);
                }
                Kind::Double(bits) => {
                    self.bump();
                    bytes.extend_from_slice(&bits.to_le_bytes()[..element]);
                }
                Kind::Symbol(b'-') | Kind::Integer(_) => {
                    let value = self.integer()?;
                    bytes.extend_from_slice(&value.to_le_bytes()[..element]);
                }
                Kind::Word(_) => return self.unsupported("initial value"),
                _ => return self.expected("an initial value"),
            }
            if depth == 0 {
                return Ok(bytes);
            }
        }
    }

    fn body(&mut self) -> Result<Vec<Statement<'a>>, Error> {
        let mut statements = Vec::new();
        let mut depth = 0;
        loop {
            let at = self.at();
            match self.peek() {
                Kind::Symbol(b'{') => {
                    self.bump();
                    depth += 1;
                    statements.push(Statement::Open);
                }
                Kind::Symbol(b'}') => {
                    self.bump();
                    if depth == 0 {
                        return Ok(statements);
                    }
                    depth -= 1;
                    statements.push(Statement::Close);
                }
                Kind::Symbol(b';') => {
                    self.bump();
                }
                Kind::Word(".loc" | ".file") => self.skip_line(),
                Kind::Word(".pragma") => {
                    self.bump();
                    self.bump();
                    self.expect(b';')?;
                }
                Kind::Word(".reg") => statements.push(self.registers()?),
                Kind::Word(word) if word.starts_with('.') => match variable_space(word) {
                    Some(space) => {
                        let variable = self.variable(space, false)?;
                        self.expect(b';')?;
                        statements.push(Statement::Variable(variable));
                    }
                    None => return self.unsupported("directive"),
                },
                Kind::Word(name) => {
                    if self.tokens.get(self.next + 1).map(|t| t.kind) == Some(Kind::Symbol(b':')) {
                        self.next += 2;
                        statements.push(self.label(name, at)?);
                    } else {
                        statements.push(Statement::Instruction(self.instruction(None)?));
                    }
                }
                Kind::Symbol(b'@') => {
                    self.bump();
                    let negated = self.accept(b'!');
                    let predicate = self.name("a predicate")?;
                    let instruction = self.instruction(Some((predicate, negated)))?;
                    statements.push(Statement::Instruction(instruction));
                }
                _ => return self.expected("a statement"),
            }
        }
    }

    fn label(&mut self, name: &'a str, at: Position) -> Result<Statement<'a>, Error> {
        if !self.accept_word(".branchtargets") {
            return Ok(Statement::Label { name, at });
        }
        let mut labels = vec![self.name("a label")?];
        while self.accept(b',') {
            labels.push(self.name("a label")?);
        }
        self.expect(b';')?;
        Ok(Statement::Targets { name, labels, at })
    }

    fn registers(&mut self) -> Result<Statement<'a>, Error> {
        self.bump();
        let at = self.at();
        let bits = match self.peek() {
            Kind::Word(word) => match type_bits(word) {
                Some(bits) => bits,
                None => return self.unsupported("register type"),
            },
            _ => return self.expected("a type"),
        };
        self.bump();
        let mut names = Vec::new();
        loop {
            let name = self.name("a register")?;
            let count = if self.accept(b'<') {
                let count = self.unsigned()?;
                if count > 1 << 16 {
                    let message = format!("expected at most 65536 registers, found {count}");
                    return Err(Error::Syntax { at, message });
                }
                self.expect(b'>')?;
                Some(count)
            } else {
                None
            };
            names.push(Names { name, count });
            if !self.accept(b',') {
                break;
            }
        }
        self.expect(b';')?;
        Ok(Statement::Registers { bits, names, at })
    }

    fn instruction(&mut self, guard: Option<(&'a str, bool)>) -> Result<Instruction<'a>, Error> {
        let at = self.at();
        let opcode = self.name("an instruction")?;
        let mut operands = Vec::new();
        while !self.accept(b';') {
            if !operands.is_empty() {
                self.expect(b',')?;
            }
            operands.push(self.operand()?);
        }
        Ok(Instruction { guard, opcode, operands, at })
    }

    fn operand(&mut self) -> Result<Operand<'a>, Error> {
        match self.peek() {
            Kind::Symbol(b'{') => {
                self.bump();
                Ok(Operand::Vector(self.simple_operands(b'}')?))
            }
            Kind::Symbol(b'(') => {
                self.bump();
                Ok(Operand::List(self.simple_operands(b')')?))
            }
            Kind::Symbol(b'[') => {
                self.bump();
                let (base, offset) = match self.simple()? {
                    Operand::Name(name, offset) => (Operand::Name(name, 0), offset),
                    other => (other, 0),
                };
                let mut coordinates = Vec::new();
                if self.accept(b',') {
                    if self.accept(b'{') {
                        coordinates = self.simple_operands(b'}')?;
                    } else {
                        return self.expected("'{'");
                    }
                }
                self.expect(b']')?;
                Ok(Operand::Address { base: Box::new(base), offset, coordinates })
            }
            _ => {
                let first = self.simple()?;
                if self.accept(b'|') {
                    let second = self.simple()?;
                    return Ok(Operand::Pair(Box::new(first), Box::new(second)));
                }
                Ok(first)
            }
        }
    }

    fn simple_operands(&mut self, close: u8) -> Result<Vec<Operand<'a>>, Error> {
        let mut operands = Vec::new();
        while !self.accept(close) {
            if !operands.is_empty() {
                self.expect(b',')?;
            }
            operands.push(self.simple()?);
        }
        Ok(operands)
    }

    fn simple(&mut self) -> Result<Operand<'a>, Error> {
        match self.peek() {
            Kind::Word("_") => {
                self.bump();
                Ok(Operand::Sink)
            }
            Kind::Word(_) => {
                let name = self.name("an operand")?;
                let offset = match self.peek() {
                    Kind::Symbol(b'+') => {
                        self.bump();
                        self.integer()?
                    }
                    Kind::Symbol(b'-') => self.integer()?,
                    _ => 0,
                };
                Ok(Operand::Name(name, offset))
            }
            Kind::Symbol(b'!') => {
                self.bump();
                Ok(Operand::Not(self.name("a predicate")?))
            }
            Kind::Single(bits) => {
                self.bump();
                Ok(Operand::Single(bits))
            }
            Kind::Double(bits) => {
                self.bump();
                Ok(Operand::Double(bits))
            }
            Kind::Symbol(b'-') | Kind::Integer(_) => Ok(Operand::Integer(self.integer()?)),
            _ => self.expected("an operand"),
        }
    }
}

fn variable_space(word: &str) -> Option<Space> {
    match word {
        ".global" => Some(Space::Global),
        ".shared" => Some(Space::Shared),
        ".const" => Some(Space::Constant),
        ".local" => Some(Space::Local),
        ".param" => Some(Space::Parameter),
        _ => None,
    }
}

fn type_bits(word: &str) -> Option<u32> {
    TYPE_BITS.iter().find(|(name, _)| *name == word).map(|(_, bits)| *bits)
}
