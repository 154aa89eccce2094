//! Imports a well-formed TML program into the `tml` dialect.
//!
//! The statements become values one after the other: what a use of a variable reads is the value of the
//! last assignment before it, which is all that reaching definitions are where nothing branches (section
//! 5 of the report). Every operation has the location of the expression that it stands for.

use super::syntax::{
    self,
    checked::{Checked, Element, Expr, ExprKind, Operator, Qualifier, TensorType},
};
use super::{INOUT, NAME, Program};
use crate::{
    mlir::{self, Builder, Val},
    report::{Report, location},
    text::{Diagnostic, SourceFile, Span},
};
use melior::{
    Context,
    ir::{
        Attribute, Block, Location, Module, Region, RegionLike, Type, ValueLike,
        r#type::FunctionType,
    },
};
use std::path::Path;

/// How a variable is passed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Passing {
    /// Whether the program takes its first value.
    pub is_argument: bool,
    /// Whether the program gives its last value.
    pub is_result: bool,
}

/// How the variables of a program are passed. Those that are declared `in` or `inout` are arguments. In
/// a program that declares none so, those are that are read before they are assigned to, or never are
/// assigned to. Results are those that are taken in the end, and declared so or assigned to.
pub fn passing(program: &Checked) -> Vec<Passing> {
    let count = program.variables.len();
    let (mut is_read_first, mut is_assigned) = (vec![false; count], vec![false; count]);
    for statement in &program.statements {
        statement.value.for_each_use(&mut |variable, _| {
            is_read_first[variable] |= !is_assigned[variable];
        });
        is_assigned[statement.variable] = true;
    }
    let passing = |(number, variable): (usize, &syntax::checked::Variable)| Passing {
        is_argument: matches!(variable.qualifier, Some(Qualifier::In | Qualifier::InOut))
            || variable.live_in && (is_read_first[number] || !is_assigned[number]),
        is_result: variable.live_out && (variable.qualifier.is_some() || is_assigned[number]),
    };
    program.variables.iter().enumerate().map(passing).collect()
}

/// Imports the text of a `.tml` file. Errors and warnings are emitted as diagnostics of the context;
/// `None` after an error. The program has the name of the file, as C can spell it.
pub fn import<'c>(context: &'c Context, file_name: &str, bytes: &[u8]) -> Option<Module<'c>> {
    let (source, checked, diagnostics) = syntax::read(file_name, bytes.to_vec());
    for diagnostic in &diagnostics {
        Report::in_source(context, &source, diagnostic).emit();
    }
    let failed = diagnostics.iter().any(Diagnostic::is_error);
    (!failed).then(|| import_program(context, &source, &checked))
}

/// The name of the program of a file: that of the file without folder and ending, as C can spell it.
pub fn program_name(file_name: &str) -> String {
    let stem = Path::new(file_name).file_stem().unwrap_or_default().to_string_lossy();
    let spell = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = stem.chars().map(spell).collect();
    match name.chars().next() {
        Some(first) if !first.is_ascii_digit() => name,
        _ => format!("tml_{name}"),
    }
}

/// Imports a well-formed program into a module. The dialects must be registered with the context, see
/// [`register_dialects`](crate::register_dialects).
pub fn import_program<'c>(
    context: &'c Context,
    source: &SourceFile,
    program: &Checked,
) -> Module<'c> {
    for dialect in ["tml", "func", "imap", "tensor", "arith"] {
        context.get_or_load_dialect(dialect);
    }
    let at = |span| location(context, source, span);
    let passing = passing(program);
    let types: Vec<_> =
        program.variables.iter().map(|variable| tensor_type(context, &variable.ty)).collect();
    let passed = |test: fn(&Passing) -> bool| {
        let numbers = passing.iter().enumerate().filter(move |(_, it)| test(it));
        numbers.map(|(number, _)| number).collect::<Vec<_>>()
    };
    let arguments = passed(|it| it.is_argument);
    let results = passed(|it| it.is_result);
    let declared: Vec<_> = arguments
        .iter()
        .map(|number| (types[*number], at(program.variables[*number].span)))
        .collect();

    let region = Region::new();
    let block = mlir::block_ref(region.append_block(Block::new(&declared)));
    let builder = Builder::at_end(context, block, Location::new(context, source.name(), 1, 1));
    let mut importer = Importer { builder, at: &at, values: vec![None; types.len()], program };
    for (number, value) in arguments.iter().zip(mlir::arguments(block)) {
        importer.values[*number] = Some(value);
    }
    for statement in &program.statements {
        let value = importer.expr(&statement.value);
        let name = &program.variables[statement.variable].name;
        let attributes = [("name", mlir::string(context, name))];
        let builder = builder.located(at(statement.target_span));
        let value = builder.value_with("tml.assign", &[value], value.r#type(), &attributes);
        importer.values[statement.variable] = Some(value);
    }
    let returned: Vec<_> = results
        .iter()
        .map(|number| importer.variable(*number, program.variables[*number].span))
        .collect();
    builder.op("tml.return", &returned, &[]);

    let attributes = |numbers: &[usize], is_argument: bool| {
        let attribute = |number: &usize| {
            let name = mlir::string(context, &program.variables[*number].name);
            let mut entries = vec![(NAME, name)];
            if is_argument && passing[*number].is_result {
                entries.push((INOUT, Attribute::unit(context)));
            }
            mlir::dictionary(context, &entries)
        };
        mlir::array(context, &numbers.iter().map(attribute).collect::<Vec<_>>())
    };
    let select = |numbers: &[usize]| numbers.iter().map(|it| types[*it]).collect::<Vec<_>>();
    let ty: Type = FunctionType::new(context, &select(&arguments), &select(&results)).into();
    let module = Module::new(Location::new(context, source.name(), 1, 1));
    let name = program_name(source.name());
    let outer = Builder::at_end(context, mlir::block_ref(module.body()), builder.location);
    outer.op_with(
        Program::NAME,
        &[],
        &[],
        &[
            ("sym_name", mlir::string(context, &name)),
            ("function_type", mlir::type_attr(ty)),
            ("arg_attrs", attributes(&arguments, true)),
            ("res_attrs", attributes(&results, false)),
        ],
        vec![region],
    );
    module
}

fn tensor_type<'c>(context: &'c Context, ty: &TensorType) -> Type<'c> {
    let element = match ty.element {
        Element::F32 => Type::float32(context),
        Element::F64 => Type::float64(context),
    };
    let shape: Vec<_> = ty.extents.iter().map(|extent| Some(*extent)).collect();
    mlir::tensor_type(&shape, element)
}

struct Importer<'c, 'a> {
    builder: Builder<'c>,
    at: &'a dyn Fn(Span) -> Location<'c>,
    /// What each variable holds, if it has been passed or assigned to.
    values: Vec<Option<Val<'c>>>,
    program: &'a Checked,
}

impl<'c> Importer<'c, '_> {
    /// What a variable holds, where nothing has been assigned to it something undefined.
    fn variable(&mut self, number: usize, span: Span) -> Val<'c> {
        if let Some(value) = self.values[number] {
            return value;
        }
        let variable = &self.program.variables[number];
        let context = self.builder.context;
        let builder = self.builder.located((self.at)(span));
        let attributes = [("name", mlir::string(context, &variable.name))];
        let ty = tensor_type(context, &variable.ty);
        let value = builder.value_with("tml.undef", &[], ty, &attributes);
        self.values[number] = Some(value);
        value
    }

    fn expr(&mut self, expr: &Expr) -> Val<'c> {
        let context = self.builder.context;
        let operands = match expr.kind {
            ExprKind::Variable(number) => return self.variable(number, expr.span),
            _ => expr.operands().map(|operand| self.expr(operand)).collect::<Vec<_>>(),
        };
        let (name, dims) = match expr.kind {
            ExprKind::Elementwise(op, ..) => (elementwise_name(op), None),
            ExprKind::ScalarMul(..) => ("tml.smul", None),
            ExprKind::ScalarDiv(..) => ("tml.sdiv", None),
            ExprKind::Contract(_, dims) => ("tml.contract", Some(dims)),
            ExprKind::Transpose(_, dims) => ("tml.transpose", Some(dims)),
            ExprKind::Product(..) | ExprKind::Variable(_) => ("tml.product", None),
        };
        let dims = dims.map(|dims| mlir::i64_array(context, &dims.map(|dim| dim as i64)));
        let attributes: Vec<_> = dims.map(|dims| ("dims", dims)).into_iter().collect();
        let builder = self.builder.located((self.at)(expr.span));
        builder.value_with(name, &operands, tensor_type(context, &expr.ty), &attributes)
    }
}

fn elementwise_name(op: Operator) -> &'static str {
    match op {
        Operator::Add => "tml.add",
        Operator::Sub => "tml.sub",
        Operator::Mul => "tml.mul",
        Operator::Div => "tml.div",
    }
}
