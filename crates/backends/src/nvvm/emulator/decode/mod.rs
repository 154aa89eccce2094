//! From the tree to the decoded form: scopes, symbols, registers, labels; calls are expanded.
//!
//! A call becomes the body of the function with its parameters bound to the variables of the call,
//! so that divergence needs no frames. Recursion is an error.

mod arithmetic;
mod control;
mod memory;
mod operands;

use std::collections::HashMap;

use super::{
    cfg,
    error::{Error, Position},
    memory::SHARED_START,
    module::*,
    syntax::{self, Function, Source, Space, Statement, Variable},
};
use operands::Decoding;

/// Kernels longer than this after the expansion of calls are refused.
const MAX_INSTRUCTIONS: usize = 4_000_000;
/// Calls nested deeper than this are refused.
const MAX_DEPTH: usize = 32;

/// What a name of a variable stands for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Symbol {
    Global(usize),
    Constant(usize),
    Shared(usize),
    /// `.extern .shared`.
    Dynamic,
    Local(usize),
    /// A parameter of the kernel.
    Parameter(usize),
    /// A parameter or result of a call, which lies in local memory.
    CallParameter(usize),
}

/// A declared register, or a range of them.
#[derive(Debug, Clone, Copy)]
struct Declared {
    first: Reg,
    count: u32,
    bits: u32,
}

/// Decodes all kernels of a module.
pub(super) fn module(source: &Source<'_>) -> Result<Module, Error> {
    let mut symbols = HashMap::new();
    let mut globals = Vec::new();
    let mut constants = Vec::new();
    let mut shared = 0;
    for variable in &source.variables {
        let symbol = match variable.space {
            Space::Global => {
                let mut initial = variable.initial.clone().unwrap_or_default();
                initial.resize(variable.size, 0);
                globals.push(Global { size: variable.size, align: variable.align, initial });
                Symbol::Global(globals.len() - 1)
            }
            Space::Constant => {
                let offset = constants.len().next_multiple_of(variable.align);
                constants.resize(offset, 0);
                constants.extend_from_slice(variable.initial.as_deref().unwrap_or_default());
                constants.resize(offset + variable.size, 0);
                Symbol::Constant(offset)
            }
            Space::Shared if variable.external => Symbol::Dynamic,
            Space::Shared => Symbol::Shared(place(&mut shared, variable)),
            _ => return unsupported(variable.at, "state space of a module's variable"),
        };
        symbols.insert(variable.name, symbol);
    }
    let functions: HashMap<&str, &Function<'_>> =
        source.functions.iter().filter(|f| !f.kernel).fold(HashMap::new(), |mut map, function| {
            // A definition wins over a declaration.
            if function.body.is_some() || !map.contains_key(function.name) {
                map.insert(function.name, function);
            }
            map
        });
    let dynamic = source.variables.iter().filter(|v| v.external && v.space == Space::Shared);
    let dynamic_align = dynamic.map(|variable| variable.align).max().unwrap_or(16);
    let mut kernels = Vec::new();
    for function in source.functions.iter().filter(|f| f.kernel) {
        let Some(body) = &function.body else { continue };
        let mut kernel = kernel(function, body, &symbols, &functions, shared)?;
        kernel.dynamic_align = dynamic_align;
        kernels.push(kernel);
    }
    Ok(Module { kernels, globals, constants, target: source.target.to_string() })
}

fn kernel(
    function: &Function<'_>,
    statements: &[Statement<'_>],
    symbols: &HashMap<&str, Symbol>,
    functions: &HashMap<&str, &Function<'_>>,
    shared: usize,
) -> Result<Kernel, Error> {
    let mut parameters = Vec::new();
    let mut bindings = HashMap::new();
    let mut bytes = 0;
    for variable in &function.parameters {
        let offset = place(&mut bytes, variable);
        parameters.push(Parameter { offset, size: variable.size });
        bindings.insert(variable.name, Symbol::Parameter(offset));
    }
    let mut builder = Builder {
        symbols,
        functions,
        instructions: Vec::new(),
        registers: 0,
        constants: HashMap::new(),
        specials: HashMap::new(),
        labels: Vec::new(),
        shared,
        local: 0,
        calls: vec![function.name.to_string()],
        carry: None,
    };
    builder.body(statements, bindings, None)?;
    builder.emit(Op::Exit, function.at, "exit");
    builder.resolve_labels();
    cfg::set_joins(&mut builder.instructions);
    let mut constants: Vec<_> = builder.constants.iter().map(|(c, r)| (*r, *c)).collect();
    constants.sort_by_key(|(reg, _)| *reg);
    let mut specials: Vec<_> = builder.specials.iter().map(|(s, r)| (*r, *s)).collect();
    specials.sort_by_key(|(reg, _)| *reg);
    Ok(Kernel {
        name: function.name.to_string(),
        parameters,
        parameter_bytes: bytes,
        instructions: builder.instructions,
        registers: builder.registers as usize,
        constants,
        specials,
        shared_bytes: builder.shared,
        dynamic_align: 1,
        local_bytes: builder.local,
        max_threads: function.max_threads,
        required_threads: function.required_threads,
        cluster: function.cluster,
    })
}

/// The aligned offset of a variable in a space that grows.
fn place(end: &mut usize, variable: &Variable<'_>) -> usize {
    let offset = end.next_multiple_of(variable.align);
    *end = offset + variable.size;
    offset
}

pub(super) fn unsupported<T>(at: Position, what: impl Into<String>) -> Result<T, Error> {
    Err(Error::Unsupported { at, what: what.into() })
}

pub(super) fn syntax<T>(at: Position, message: impl Into<String>) -> Result<T, Error> {
    Err(Error::Syntax { at, message: message.into() })
}

/// A kernel under construction.
pub(super) struct Builder<'s, 'a> {
    symbols: &'s HashMap<&'a str, Symbol>,
    functions: &'s HashMap<&'a str, &'s Function<'a>>,
    instructions: Vec<Instruction>,
    registers: u32,
    constants: HashMap<Constant, Reg>,
    specials: HashMap<Special, Reg>,
    /// The pc of each label; branches hold the label's number until all are known.
    labels: Vec<u32>,
    shared: usize,
    local: usize,
    /// The names of the functions that are being expanded.
    calls: Vec<String>,
    carry: Option<Reg>,
}

/// The scopes of one expanded body.
pub(super) struct Body<'b, 'a> {
    parents: Vec<usize>,
    labels: HashMap<(usize, &'a str), u32>,
    targets: HashMap<(usize, &'a str), &'b [&'a str]>,
    registers: HashMap<(usize, &'a str), Declared>,
    variables: HashMap<(usize, &'a str), Symbol>,
    /// Where `ret` of a function goes; kernels have none.
    result: Option<u32>,
    scope: usize,
}

impl<'a> Body<'_, 'a> {
    /// Looks a name up from the current scope outwards.
    fn find<T: Copy>(&self, table: &HashMap<(usize, &'a str), T>, name: &'a str) -> Option<T> {
        let mut scope = self.scope;
        loop {
            if let Some(found) = table.get(&(scope, name)) {
                return Some(*found);
            }
            if scope == 0 {
                return None;
            }
            scope = self.parents[scope];
        }
    }

    fn register(&self, name: &'a str) -> Option<(Reg, u32)> {
        if let Some(found) = self.find(&self.registers, name) {
            // A single register counts 0.
            return (found.count == 0).then_some((found.first, found.bits));
        }
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number: u32 = name[prefix.len()..].parse().ok()?;
        let range = self.find(&self.registers, prefix)?;
        (number < range.count).then_some((range.first + number, range.bits))
    }

    fn variable(&self, name: &'a str) -> Option<Symbol> {
        self.find(&self.variables, name)
    }

    fn label(&self, name: &'a str) -> Option<u32> {
        self.find(&self.labels, name)
    }
}

impl<'s, 'a> Builder<'s, 'a> {
    pub(super) fn emit(&mut self, op: Op, at: Position, kind: &str) {
        let (guard, together, kind) = (None, Together::Free, kind.to_string());
        self.instructions.push(Instruction { op, guard, together, at, kind });
    }

    fn new_registers(&mut self, count: u32, at: Position) -> Result<Reg, Error> {
        let first = self.registers;
        self.registers = first.saturating_add(count);
        if self.registers > 1 << 20 {
            return syntax(at, "expected at most 2^20 registers, found more");
        }
        Ok(first)
    }

    pub(super) fn constant(&mut self, value: Constant) -> Reg {
        let next = self.registers;
        let reg = *self.constants.entry(value).or_insert(next);
        self.registers = self.registers.max(reg + 1);
        reg
    }

    pub(super) fn special(&mut self, value: Special) -> Reg {
        let next = self.registers;
        let reg = *self.specials.entry(value).or_insert(next);
        self.registers = self.registers.max(reg + 1);
        reg
    }

    /// The register that holds the carry of `add.cc`.
    pub(super) fn carry(&mut self) -> Reg {
        let next = self.registers;
        let reg = *self.carry.get_or_insert(next);
        self.registers = self.registers.max(reg + 1);
        reg
    }

    fn new_label(&mut self) -> u32 {
        self.labels.push(END);
        self.labels.len() as u32 - 1
    }

    /// Labels and branch targets with their scopes, which may be used before they are seen.
    fn scopes<'b>(&mut self, statements: &'b [Statement<'a>]) -> Result<Body<'b, 'a>, Error> {
        let mut body = Body {
            parents: vec![0],
            labels: HashMap::new(),
            targets: HashMap::new(),
            registers: HashMap::new(),
            variables: HashMap::new(),
            result: None,
            scope: 0,
        };
        let mut scope = 0;
        for statement in statements {
            match statement {
                Statement::Open => {
                    body.parents.push(scope);
                    scope = body.parents.len() - 1;
                }
                Statement::Close => scope = body.parents[scope],
                Statement::Label { name, at } => {
                    let label = self.new_label();
                    if body.labels.insert((scope, name), label).is_some() {
                        return syntax(*at, format!("label '{name}' is defined twice"));
                    }
                }
                Statement::Targets { name, labels, at } => {
                    let old = body.targets.insert((scope, name), labels);
                    if old.is_some() {
                        return syntax(*at, format!("label '{name}' is defined twice"));
                    }
                }
                _ => {}
            }
        }
        Ok(body)
    }

    fn body(
        &mut self,
        statements: &[Statement<'a>],
        bindings: HashMap<&'a str, Symbol>,
        result: Option<u32>,
    ) -> Result<(), Error> {
        let mut body = self.scopes(statements)?;
        body.result = result;
        body.variables = bindings.into_iter().map(|(name, s)| ((0, name), s)).collect();
        let mut next_scope = 0;
        for statement in statements {
            match statement {
                Statement::Open => {
                    next_scope += 1;
                    body.scope = next_scope;
                }
                Statement::Close => body.scope = body.parents[body.scope],
                Statement::Label { name, .. } => {
                    let label = body.labels[&(body.scope, *name)];
                    self.labels[label as usize] = self.instructions.len() as u32;
                }
                Statement::Targets { .. } => {}
                Statement::Registers { bits, names, at } => {
                    for names in names {
                        let first = self.new_registers(names.count.unwrap_or(1), *at)?;
                        let count = names.count.unwrap_or(0);
                        let declared = Declared { first, count, bits: *bits };
                        body.registers.insert((body.scope, names.name), declared);
                    }
                }
                Statement::Variable(variable) => {
                    let symbol = match variable.space {
                        Space::Shared => Symbol::Shared(place(&mut self.shared, variable)),
                        Space::Local => Symbol::Local(place(&mut self.local, variable)),
                        Space::Parameter => Symbol::CallParameter(place(&mut self.local, variable)),
                        _ => return unsupported(variable.at, "state space of a body's variable"),
                    };
                    if self.local > 1 << 24 || self.shared > 1 << 24 {
                        return unsupported(variable.at, "size of a body's variable");
                    }
                    body.variables.insert((body.scope, variable.name), symbol);
                }
                Statement::Instruction(instruction) => {
                    if self.instructions.len() >= MAX_INSTRUCTIONS {
                        return unsupported(instruction.at, "length of a kernel with its calls");
                    }
                    Decoding::new(self, &body, instruction)?.instruction()?;
                }
            }
        }
        Ok(())
    }

    /// Expands a call: results and arguments are variables of the call.
    fn call(
        &mut self,
        name: &'a str,
        results: &[Symbol],
        arguments: &[Symbol],
        at: Position,
    ) -> Result<(), Error> {
        match name {
            // Prints nothing; the result, the number of arguments, is never used.
            "vprintf" => {
                self.emit(Op::Nothing, at, "call");
                return Ok(());
            }
            "__assertfail" => {
                self.emit(Op::Assertion, at, "call");
                return Ok(());
            }
            _ => {}
        }
        let Some(function) = self.functions.get(name).copied() else {
            return syntax(at, format!("expected a function, found '{name}'"));
        };
        let Some(statements) = &function.body else {
            return unsupported(at, format!("external function '{name}'"));
        };
        if self.calls.iter().any(|active| active == name) || self.calls.len() > MAX_DEPTH {
            return unsupported(at, format!("recursive call of '{name}'"));
        }
        let expected = (function.results.len(), function.parameters.len());
        if expected != (results.len(), arguments.len()) {
            return syntax(at, format!("expected the arguments of '{name}', found others"));
        }
        let formal = function.results.iter().chain(&function.parameters);
        let actual = results.iter().chain(arguments);
        let bindings = formal.map(|v| v.name).zip(actual.copied()).collect();
        let end = self.new_label();
        self.calls.push(name.to_string());
        self.body(statements, bindings, Some(end))?;
        self.calls.pop();
        self.labels[end as usize] = self.instructions.len() as u32;
        Ok(())
    }

    fn resolve_labels(&mut self) {
        for instruction in &mut self.instructions {
            match &mut instruction.op {
                Op::Branch { target, .. } => *target = self.labels[*target as usize],
                Op::BranchIndexed { targets, .. } => {
                    for target in targets {
                        *target = self.labels[*target as usize];
                    }
                }
                _ => {}
            }
        }
    }

    /// The address of a variable in its own space, and a displacement.
    pub(super) fn symbol_address(&mut self, symbol: Symbol, offset: i64) -> Reg {
        let at = |start: usize| Constant::Bits((start as u64).wrapping_add_signed(offset));
        let constant = match symbol {
            Symbol::Global(index) => Constant::Global(index, offset),
            Symbol::Dynamic => Constant::Dynamic(offset),
            Symbol::Shared(start) => at(SHARED_START as usize + start),
            Symbol::Constant(start)
            | Symbol::Local(start)
            | Symbol::Parameter(start)
            | Symbol::CallParameter(start) => at(start),
        };
        self.constant(constant)
    }

    pub(super) fn module_symbol(&self, name: &str) -> Option<Symbol> {
        self.symbols.get(name).copied()
    }

    pub(super) fn push(&mut self, instruction: Instruction) {
        self.instructions.push(instruction);
    }
}

/// The name of the base instruction and, for memory, its state space: what counts are kept by.
pub(super) fn kind(instruction: &syntax::Instruction<'_>) -> String {
    let mut parts = instruction.opcode.split('.');
    let base = parts.next().unwrap_or_default();
    let second = match base {
        "cp" | "red" | "atom" | "ld" | "st" | "mbarrier" => parts.find(|part| {
            matches!(
                *part,
                "global"
                    | "shared"
                    | "shared::cta"
                    | "shared::cluster"
                    | "local"
                    | "const"
                    | "param"
                    | "async"
                    | "arrive"
                    | "init"
                    | "try_wait"
                    | "test_wait"
            )
        }),
        _ => None,
    };
    match second {
        Some(second) => format!("{base}.{second}"),
        None => base.to_string(),
    }
}
