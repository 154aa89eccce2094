//! Imports Axon programs into the dialect.

use super::{PROGRAM, operation_name};
use crate::{
    axon::{
        display::Printer,
        infer::Inferred,
        syntax::{
            self,
            ast::{CallOption, Expr, ExprKind, Function, Let, Pattern, Program, TypeExpr},
            builtins::{is_builtin, is_in_prelude},
            with_stack,
        },
        types::{MAX_PARTS, Node, Ty},
    },
    mlir::{self, Builder, Val},
    report::{Report, location},
    text::{Diagnostic, Reason, SourceFile, Span},
};
use melior::{
    Context,
    ir::{
        Attribute, Location, Module, Type, ValueLike,
        attribute::IntegerAttribute,
        r#type::{FunctionType, IntegerType},
    },
};
use std::collections::HashMap;
use std::rc::Rc;

/// Imports the bytes of an `.axon` file, without types. What is wrong goes to the diagnostic handlers
/// of the context; `None` after an error.
pub fn import<'c>(context: &'c Context, file_name: &str, bytes: &[u8]) -> Option<Module<'c>> {
    let (source, program, diagnostics) = syntax::read(file_name, bytes.to_vec());
    for diagnostic in &diagnostics {
        Report::in_source(context, &source, diagnostic).emit();
    }
    if !diagnostics.is_empty() {
        return None;
    }
    let at = |span| location(context, &source, span);
    let same = |name: &str| name.to_string();
    match import_program(context, &source, &program, &at, &same, None) {
        Ok(module) => Some(module),
        Err(diagnostic) => {
            Report::in_source(context, &source, &diagnostic).emit();
            None
        }
    }
}

/// Imports a program whose text is `source`, with the types that were inferred, if any. `at` says where
/// its spans are, `original` what its names are to be called.
///
/// # Errors
/// A name that nothing defines, or a type that is too large.
pub(super) fn import_program<'c>(
    context: &'c Context,
    source: &SourceFile,
    program: &Program,
    at: &dyn Fn(Span) -> Location<'c>,
    original: &dyn Fn(&str) -> String,
    typed: Option<&mut Inferred>,
) -> Result<Module<'c>, Diagnostic> {
    context.get_or_load_dialect("axon");
    let place = at(Span::new(0, source.text().len() as u32));
    let module = Module::new(place);
    let (region, block) = mlir::region_with_block(&[], place);
    let printer = Printer::default();
    let mut importer = Importer {
        source,
        at,
        original,
        typed,
        scopes: HashMap::new(),
        bound: Vec::new(),
        printer,
        types: HashMap::new(),
        number: 0,
    };
    let builder = Builder::at_end(context, block, place);
    for definition in &program.lets {
        importer.start();
        importer.definition(&builder, definition, true)?;
    }
    let mut result = Vec::new();
    if let Some(value) = &program.result {
        importer.start();
        result.push(importer.expr(&builder, value)?);
    }
    builder.op("axon.return", &result, &[]);
    let outer = Builder::at_end(context, mlir::block_ref(module.body()), place);
    outer.op_with(PROGRAM, &[], &[], &[], vec![region]);
    Ok(module)
}

struct Importer<'a, 'c> {
    source: &'a SourceFile,
    at: &'a dyn Fn(Span) -> Location<'c>,
    original: &'a dyn Fn(&str) -> String,
    typed: Option<&'a mut Inferred>,
    /// The values of names, and whether they may be polymorphic.
    scopes: HashMap<Rc<str>, Vec<(Val<'c>, bool)>>,
    /// Names in the order in which they were bound.
    bound: Vec<Rc<str>>,
    /// Names the variables of the definition at the top that is being imported.
    printer: Printer,
    types: HashMap<Ty, (Type<'c>, usize)>,
    /// How many names have been defined at the top.
    number: usize,
}

type Imported<T> = Result<T, Diagnostic>;

impl<'c> Importer<'_, 'c> {
    /// Starts a definition at the top.
    fn start(&mut self) {
        self.types.clear();
        if let Some(inferred) = &self.typed {
            self.printer = Printer::new(Rc::clone(&inferred.names));
        }
    }

    fn bind(&mut self, name: &Rc<str>, value: Val<'c>, is_polymorphic: bool) {
        self.scopes.entry(Rc::clone(name)).or_default().push((value, is_polymorphic));
        self.bound.push(Rc::clone(name));
    }

    fn leave(&mut self, mark: usize) {
        for name in self.bound.drain(mark..) {
            if let Some(values) = self.scopes.get_mut(&name) {
                values.pop();
            }
        }
    }

    fn definition(&mut self, b: &Builder<'c>, definition: &Let, top: bool) -> Imported<()> {
        let value = self.expr(b, &definition.value)?;
        self.pattern(b, &definition.pattern, value, definition.value.is_value(), top)
    }

    fn pattern(
        &mut self,
        b: &Builder<'c>,
        pattern: &Pattern,
        value: Val<'c>,
        is_value: bool,
        top: bool,
    ) -> Imported<()> {
        let b = b.located((self.at)(pattern.span()));
        match pattern {
            Pattern::Ignore(_) => {}
            Pattern::Name(name) => {
                let text = mlir::string(b.context, &(self.original)(&name.text));
                let mut attributes = vec![("name", text)];
                let conditions = if top { self.conditions() } else { Vec::new() };
                if !conditions.is_empty() {
                    attributes.push(("conditions", mlir::strings(b.context, &conditions)));
                }
                let ty = value.r#type();
                let value = b.value_with("axon.def", &[value], ty, &attributes);
                let is_polymorphic = match &self.typed {
                    Some(typed) => typed.inference.uses.polymorphic.contains(&(false, name.span)),
                    None => is_value,
                };
                self.bind(&name.text, value, is_polymorphic);
            }
            Pattern::Tuple(parts, span) => {
                let types = mlir::tuple_elements(value.r#type());
                let types = types.filter(|types| types.len() == parts.len());
                let types = types.unwrap_or_else(|| vec![any(b.context); parts.len()]);
                if parts.len() < 2 {
                    let message = "expected the names of two parts or more";
                    return Err(Diagnostic::new(Reason::AxonArity, *span, message));
                }
                let op = b.op("axon.unpack", &[value], &types);
                for (part, value) in parts.iter().zip(mlir::results(op)) {
                    self.pattern(&b, part, value, false, top)?;
                }
            }
        }
        Ok(())
    }

    /// What inference left to be checked for the next definition at the top.
    fn conditions(&mut self) -> Vec<String> {
        self.number += 1;
        let Some(inferred) = &self.typed else { return Vec::new() };
        let Some((_, scheme)) = inferred.inference.definitions.get(self.number - 1) else {
            return Vec::new();
        };
        let mut conditions = Vec::new();
        self.printer.name_conditions(&inferred.inference.types, &scheme.residuals);
        for residual in &scheme.residuals {
            let text = self.printer.condition(&inferred.inference.types, &residual.relation);
            let place = (self.at)(inferred.inference.origins[residual.origin as usize].span);
            conditions.push(format!("{text}, for {place}"));
        }
        conditions
    }

    /// The type of an expression or a parameter.
    fn ty(&mut self, b: &Builder<'c>, span: Span) -> Imported<Type<'c>> {
        let Some(inferred) = &mut self.typed else { return Ok(any(b.context)) };
        let Some(&ty) = inferred.inference.uses.types.get(&span) else {
            return Ok(any(b.context));
        };
        let (ty, size) = self.mlir_type(b.context, ty, 0);
        match size <= MAX_PARTS {
            true => Ok(ty),
            false => {
                let message = format!("type has more than {MAX_PARTS} parts");
                Err(Diagnostic::new(Reason::AxonLimit, span, message))
            }
        }
    }

    /// A type, and of how many parts it is. A type with too many is left out.
    fn mlir_type(&mut self, context: &'c Context, ty: Ty, depth: u32) -> (Type<'c>, usize) {
        let Some(inferred) = &mut self.typed else { return (any(context), 1) };
        let types = &mut inferred.inference.types;
        let root = types.find(ty);
        if let Some(known) = self.types.get(&root) {
            return *known;
        }
        let result = match types.node(root) {
            Node::Tensor(elem, shape) => {
                let element = self.printer.element(types, elem);
                let shape = self.printer.shape(types, &shape).replace('@', " ++ ");
                (mlir::parse_type(context, &format!("!axon.tensor<{element}, {shape}>")), 1)
            }
            Node::Tuple(parts) => {
                let (parts, size) = self.mlir_types(context, &parts, depth);
                (mlir::tuple_type(context, &parts), size)
            }
            Node::Function(params, result) => {
                let (mut parts, size) =
                    self.mlir_types(context, &[&params[..], &[result]].concat(), depth);
                let result = parts.split_off(parts.len().saturating_sub(1));
                (FunctionType::new(context, &parts, &result).into(), size)
            }
            Node::Var(_) => {
                let name = self.printer.type_var(root);
                (mlir::parse_type(context, &format!("!axon.var<\"{name}\">")), 1)
            }
            Node::Link(_) | Node::Error => (any(context), 1),
        };
        self.types.insert(root, result);
        result
    }

    fn mlir_types(
        &mut self,
        context: &'c Context,
        parts: &[Ty],
        depth: u32,
    ) -> (Vec<Type<'c>>, usize) {
        let mut types = Vec::new();
        let mut size = 1_usize;
        for part in parts {
            let (ty, part) = match depth < crate::axon::types::MAX_DEPTH {
                true => self.mlir_type(context, *part, depth + 1),
                false => (any(context), MAX_PARTS),
            };
            size = size.saturating_add(part);
            types.push(ty);
        }
        // MLIR would make all of it when it prints.
        if MAX_PARTS < size {
            types.fill(any(context));
        }
        (types, size)
    }

    fn expr(&mut self, b: &Builder<'c>, expr: &Expr) -> Imported<Val<'c>> {
        with_stack(|| self.expr_kind(b, expr))
    }

    fn expr_kind(&mut self, b: &Builder<'c>, expr: &Expr) -> Imported<Val<'c>> {
        let b = &b.located((self.at)(expr.span));
        let ty = self.ty(b, expr.span)?;
        match &expr.kind {
            ExprKind::Integer(value) => {
                let integer = match i64::try_from(*value) {
                    Ok(_) => IntegerType::new(b.context, 64),
                    Err(_) => IntegerType::unsigned(b.context, 64),
                };
                let value: Attribute = IntegerAttribute::new(integer.into(), *value as i64).into();
                Ok(b.value_with("axon.number", &[], ty, &[("value", value)]))
            }
            ExprKind::Float(value) => {
                let value = mlir::f64_attr(b.context, *value);
                Ok(b.value_with("axon.number", &[], ty, &[("value", value)]))
            }
            ExprKind::Name(name) => match self.lookup(name) {
                Some((value, false)) => Ok(value),
                Some((value, true)) => Ok(b.value("axon.use", &[value], ty)),
                None => self.library(b, name, expr.span, ty),
            },
            ExprKind::Tuple(parts) => {
                let parts = parts.iter().map(|part| self.expr(b, part));
                let parts = parts.collect::<Imported<Vec<_>>>()?;
                Ok(b.value("axon.tuple", &parts, ty))
            }
            ExprKind::Function(function) => self.function(b, function, ty),
            ExprKind::Call { function, args, options } => {
                let builtin = match &function.kind {
                    ExprKind::Name(name) if self.lookup(name).is_none() => {
                        Some(name).filter(|name| is_builtin(name))
                    }
                    _ => None,
                };
                let mut operands = Vec::new();
                if builtin.is_none() {
                    operands.push(self.expr(b, function)?);
                    if let Some(option) = options.first() {
                        let message = "only built-in functions have options";
                        return Err(Diagnostic::new(Reason::AxonOption, option.name.span, message));
                    }
                }
                for arg in args.iter() {
                    operands.push(self.expr(b, arg)?);
                }
                let name = builtin.map_or("axon.call".to_string(), |name| operation_name(name));
                let options = self.options(b.context, options);
                let options: Vec<_> = options.iter().map(|(name, text)| (&**name, *text)).collect();
                Ok(b.value_with(&name, &operands, ty, &options))
            }
        }
    }

    fn lookup(&self, name: &str) -> Option<(Val<'c>, bool)> {
        self.scopes.get(name)?.last().copied()
    }

    /// A function that the program does not define.
    fn library(
        &mut self,
        b: &Builder<'c>,
        name: &str,
        span: Span,
        ty: Type<'c>,
    ) -> Imported<Val<'c>> {
        if !is_builtin(name) && !is_in_prelude(name) {
            let message = format!("'{name}' is not defined");
            return Err(Diagnostic::new(Reason::AxonUndefined, span, message));
        }
        Ok(b.value_with("axon.builtin", &[], ty, &[("name", mlir::string(b.context, name))]))
    }

    fn options(
        &self,
        context: &'c Context,
        options: &[CallOption],
    ) -> Vec<(Rc<str>, Attribute<'c>)> {
        let text = |option: &CallOption| {
            (Rc::clone(&option.name.text), mlir::string(context, self.slice(option.span)))
        };
        options.iter().map(text).collect()
    }

    /// A part of the text.
    fn slice(&self, span: Span) -> &str {
        let text = self.source.text();
        text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    fn function(
        &mut self,
        b: &Builder<'c>,
        function: &Function,
        ty: Type<'c>,
    ) -> Imported<Val<'c>> {
        let mut types = Vec::new();
        for param in &function.params {
            types.push(self.ty(b, param.name.span)?);
        }
        let (region, block) = mlir::region_with_block(&types, b.location);
        let mark = self.bound.len();
        for (param, value) in function.params.iter().zip(mlir::arguments(block)) {
            self.bind(&param.name.text, value, false);
        }
        let inside = Builder::at_end(b.context, block, b.location);
        for definition in &function.lets {
            self.definition(&inside, definition, false)?;
        }
        let result = self.expr(&inside, &function.result)?;
        inside.located((self.at)(function.result.span)).op("axon.return", &[result], &[]);
        self.leave(mark);
        let names: Vec<_> =
            function.params.iter().map(|param| (self.original)(&param.name.text)).collect();
        let mut attributes = vec![("params", mlir::strings(b.context, &names))];
        let text = |ty: &Option<TypeExpr>| ty.as_ref().map_or("", |ty| self.slice(ty.span));
        if function.params.iter().any(|param| param.ty.is_some()) {
            let annotations: Vec<_> = function.params.iter().map(|param| text(&param.ty)).collect();
            attributes.push(("annotations", mlir::strings(b.context, &annotations)));
        }
        if function.result_type.is_some() {
            let annotation = mlir::string(b.context, text(&function.result_type));
            attributes.push(("result_annotation", annotation));
        }
        let op = b.op_with("axon.fn", &[], &[ty], &attributes, vec![region]);
        Ok(mlir::result(op, 0))
    }
}

/// The type of what has not been inferred.
fn any(context: &Context) -> Type<'_> {
    mlir::parse_type(context, "!axon.any")
}
