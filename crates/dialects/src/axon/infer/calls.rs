//! Calls and uses of built-in functions, with hints for syntax from other languages.

use super::super::display::Printer;
use super::super::syntax::ast::{CallOption, Expr, ExprKind, OptionValue, TypeKind};
use super::super::syntax::parser::{self, Declaration, OptionDeclaration};
use super::super::types::{Class, Kind, Node, Ty};
use super::{
    Annotations, Binding, BuiltinUse, Inference, NAMELESS, What, count, elem_names, quoted,
};
use crate::text::{Diagnostic, Reason, Span};
use std::rc::Rc;
use tc_ir::shape::{
    Dim, DimOp, Item, Shape,
    solve::{Origin, Relation},
    text::{DimExpr, Part},
};

impl Inference {
    /// The type of the value of a call.
    pub(super) fn call(
        &mut self,
        callee: &Expr,
        args: &[Expr],
        options: &[CallOption],
        span: Span,
    ) -> Ty {
        let mut spelled: Rc<str> = NAMELESS.into();
        let mut builtin = None;
        if let ExprKind::Name(name) = &callee.kind {
            spelled = Rc::clone(name);
            if self.scopes.get(name).is_none_or(Vec::is_empty) {
                builtin = self.builtins.get(name).cloned();
            }
        }
        if builtin.is_none()
            && let Some(option) = options.first()
        {
            // How many arguments there are is no mistake of its own.
            let function = self.expr(callee);
            if !matches!(self.types.node(function), Node::Error) {
                let message =
                    format!("{} has no options, only built-in functions have", quoted(&spelled));
                let span = option.name.span;
                let hint = option_hint(&option.name.text).unwrap_or(IN_ORDER);
                self.report(Diagnostic::new(Reason::AxonOption, span, message).note(span, hint));
            }
            args.iter().for_each(|arg| _ = self.expr(arg));
            return self.types.add(Node::Error);
        }
        let function = match &builtin {
            Some(declaration) => self.builtin(declaration, options, span),
            None => self.expr(callee),
        };
        let found: Vec<Ty> = args.iter().map(|arg| self.expr(arg)).collect();
        let are_scalars = match &builtin {
            Some(declaration) if !declaration.is_elementwise() => true,
            Some(_) if found.iter().all(|ty| self.numbers.contains(ty)) => {
                if let Node::Function(_, result) = self.types.node(function) {
                    self.numbers.insert(result);
                }
                false
            }
            _ => false,
        };
        match self.types.node(function) {
            Node::Function(params, result) => {
                let is_option = |it: &CallOption| match &builtin {
                    Some(known) => known.options.iter().any(|own| own.name.text == it.name.text),
                    None => true,
                };
                if params.len() != args.len() && !options.iter().all(is_option) {
                    // An argument with a name was taken for an option.
                    return self.types.add(Node::Error);
                }
                if params.len() != args.len() {
                    let message = format!(
                        "{} takes {}, found {}",
                        quoted(&spelled),
                        count(params.len(), "argument"),
                        args.len()
                    );
                    let failed = self.misused(Reason::AxonArity, span, message, function);
                    self.note_type(&spelled);
                    let named: Vec<_> = builtin.iter().flat_map(|it| &it.options).collect();
                    if let (true, Some(first)) = (params.len() < args.len(), named.first()) {
                        let brackets = matches!(first.meaning.parts[..], [Part::Name(_)]);
                        let value = if brackets { "[..]" } else { ".." };
                        let hint = format!("options have names; try '{}={value}'", first.name.text);
                        self.note_last(span, hint);
                    }
                    let of_two = match &*spelled {
                        "maximum" => Some("try 'max(x, y)' for the larger one of two"),
                        "minimum" => Some("try 'min(x, y)' for the smaller one of two"),
                        _ => None,
                    };
                    if let Some(hint) = of_two.filter(|_| args.len() == 2) {
                        self.note_last(span, hint.to_string());
                    }
                    return failed;
                }
                let mut kinds = |ty: &Ty| self.types.kind(*ty);
                let asked: Vec<_> = params.iter().map(&mut kinds).collect();
                let given: Vec<_> = found.iter().map(&mut kinds).collect();
                let mut failed = false;
                for (place, ((&param, &ty), arg)) in params.iter().zip(&found).zip(args).enumerate()
                {
                    if are_scalars {
                        self.scalar(param, ty, arg.span);
                    }
                    let what = What::Argument(Rc::clone(&spelled), place + 1);
                    let origin = self.origin(arg.span, what, Some(ty));
                    if let Err(mismatch) = self.types.unify(param, ty, origin) {
                        let is_of_kinds = mismatch.difference.is_of_kinds();
                        self.report_mismatch(mismatch, origin);
                        failed = true;
                        if is_of_kinds {
                            self.note_type(&spelled);
                            if let Some([first, last]) = swapped(&asked, &given) {
                                let hint = format!(
                                    "{} takes arguments {first} and {last} in the other order",
                                    quoted(&spelled)
                                );
                                self.note_last(arg.span, hint);
                                break;
                            }
                        }
                    }
                }
                if failed { self.types.add(Node::Error) } else { result }
            }
            Node::Error => function,
            Node::Var(_) => {
                let result = self.types.var(self.level);
                let expected = self.types.add(Node::Function(found, result));
                let origin = self.origin(span, What::Call(spelled), Some(expected));
                match self.types.unify(function, expected, origin) {
                    Ok(()) => result,
                    Err(mismatch) => {
                        self.report_mismatch(mismatch, origin);
                        self.types.add(Node::Error)
                    }
                }
            }
            _ => {
                self.solve(None, 0);
                let shown = self.anonymous(function);
                let message = format!("expected a function, found {shown}");
                self.misused(Reason::AxonType, callee.span, message, function)
            }
        }
    }

    /// Makes an argument a scalar if it is a number and a tensor is asked for, whose shape is that of no result.
    fn scalar(&mut self, param: Ty, arg: Ty, span: Span) {
        if !self.numbers.contains(&arg) {
            return;
        }
        let (Node::Tensor(_, expected), Node::Tensor(_, shape)) =
            (self.types.node(param), self.types.node(arg))
        else {
            return;
        };
        let scalar = Shape::default();
        if expected != scalar {
            let origin = self.origin(span, What::Scalar, Some(arg));
            self.types.solver.given(Relation::Shapes(scalar, shape), origin);
        }
    }

    /// An error that a value is what it is, with the places that say so.
    fn misused(&mut self, reason: Reason, span: Span, message: String, value: Ty) -> Ty {
        let core = self.types.why_kind(value);
        let mut error = Diagnostic::new(reason, span, message);
        self.notes(&mut error, &core, None);
        if error.notes.is_empty() {
            self.note_definition(&mut error, value);
        }
        self.report(error);
        self.types.add(Node::Error)
    }

    /// Adds a note to the last error.
    fn note_last(&mut self, span: Span, text: String) {
        if let Some(error) = self.diagnostics.last_mut() {
            error.notes.push((span, text));
        }
    }

    /// Adds the type of a function to the last error, which is about a call of it.
    fn note_type(&mut self, name: &Rc<str>) {
        let binding = self.scopes.get(name).and_then(|bindings| bindings.last()).cloned();
        let ty = match (binding, self.builtins.get(name)) {
            (Some(Binding::Scheme(scheme)), _) => {
                let mut printer = Printer::new(self.known_names());
                printer.signature(&mut self.types, scheme.ty)
            }
            (None, Some(declaration)) => declaration.written.to_string(),
            _ => return,
        };
        if let Some(error) = self.diagnostics.last_mut() {
            error.notes.push((error.span, format!("'{name}' has the type {ty}")));
        }
    }

    /// The type of a use of a built-in function.
    pub(super) fn builtin(
        &mut self,
        declaration: &Declaration,
        options: &[CallOption],
        span: Span,
    ) -> Ty {
        let mut meaning = Annotations { level: self.level, ..Annotations::default() };
        for condition in &declaration.conditions {
            if let parser::Condition::Class(name, class) = condition
                && let Some(class) = Class::from_name(&class.text)
            {
                meaning.classes.insert(Rc::clone(&name.text), class);
            }
        }
        for (place, option) in options.iter().enumerate() {
            if options[..place].iter().any(|it| it.name.text == option.name.text) {
                let message = format!("option '{}' is given twice", option.name.text);
                self.error(Reason::AxonOption, option.name.span, message);
            }
            if declaration.options.iter().all(|it| it.name.text != option.name.text) {
                let known: Vec<_> =
                    declaration.options.iter().map(|it| format!("'{}'", it.name.text)).collect();
                let (name, option_name) = (&declaration.name.text, &option.name.text);
                let message = match known.is_empty() {
                    true => format!("'{name}' has no options, found '{option_name}'"),
                    false => format!(
                        "'{name}' has no option '{option_name}', expected {}",
                        known.join(", ")
                    ),
                };
                let mut error = Diagnostic::new(Reason::AxonOption, option.name.span, message);
                let in_order = declaration.options.is_empty().then_some(IN_ORDER);
                let hint = option_hint(&option.name.text).or(in_order);
                error.notes.extend(hint.map(|hint| (option.name.span, hint.to_string())));
                self.report(error);
            }
        }
        let what = match declaration.pointwise {
            true => What::Pointwise(Rc::clone(&declaration.name.text)),
            false => What::Call(Rc::clone(&declaration.name.text)),
        };
        let origin = self.origin(span, what, None);
        for option in &declaration.options {
            let given = options.iter().find(|it| it.name.text == option.name.text);
            self.option(option, given, &mut meaning, origin);
        }
        let outer = std::mem::replace(&mut self.annotations, vec![meaning]);
        let names = self.names.len();
        for ty in declaration.params.iter().chain([&declaration.result]) {
            elem_names(ty, &mut self.annotations[0].elem_names);
        }
        let mut shapes = Vec::new();
        let mut types = Vec::new();
        for ty in declaration.params.iter().chain([&declaration.result]) {
            if let (true, TypeKind::Tensor(elem, _)) = (declaration.pointwise, &ty.kind) {
                let elem = self.lower_elem(elem);
                let shape = Shape::var(self.types.solver.shape_var(self.level));
                types.push(self.types.add(Node::Tensor(elem, shape.clone())));
                shapes.push(shape);
            } else {
                types.push(self.lower_type(ty));
            }
        }
        let result = types.pop().expect("the result");
        if let Node::Tensor(_, shape) = self.types.node(result) {
            self.types.solver.positive_sizes(&shape, origin);
        }
        for condition in &declaration.conditions {
            match condition {
                parser::Condition::Class(..) => {}
                parser::Condition::Positive(sizes) => {
                    for item in self.lower_shape(sizes).items {
                        if let Item::Dim(dim) = item {
                            self.types.solver.given(Relation::Positive(dim), origin);
                        }
                    }
                }
                parser::Condition::Elements(left, right) => {
                    let (left, right) = (self.lower_shape(left), self.lower_shape(right));
                    self.types.solver.equate_elements(left, right, origin);
                }
            }
        }
        if declaration.pointwise
            && let Some(result) = shapes.pop()
        {
            self.types.solver.pointwise(shapes, result, origin);
        }
        let meaning = std::mem::replace(&mut self.annotations, outer).pop().unwrap_or_default();
        let name = Rc::clone(&declaration.name.text);
        let function = self.types.add(Node::Function(types, result));
        let Annotations { dims, shapes, .. } = meaning;
        let options = options.iter().map(|option| Rc::clone(&option.name.text)).collect();
        let used = BuiltinUse { name, function, result, dims, shapes, options };
        self.uses.builtins.insert((self.in_prelude, span), used);
        self.names.truncate(names);
        function
    }

    /// A name in an option that no annotation has, and that is the name of a value.
    fn value_in(&self, option: &OptionValue) -> Option<String> {
        let mut names = Vec::new();
        match option {
            OptionValue::Dim(dim) => dim.names(&mut names),
            OptionValue::Shape(shape) => shape.parts.iter().for_each(|part| match part {
                Part::Name(name) => names.push(name),
                Part::Dims(dims) => dims.iter().for_each(|dim| dim.names(&mut names)),
            }),
        }
        let is_value = |name: &str| {
            let binding = self.scopes.get(name).and_then(|bindings| bindings.last());
            let is_size =
                |it: &Annotations| it.dims.contains_key(name) || it.shapes.contains_key(name);
            matches!(binding, Some(Binding::Value(_))) && !self.annotations.iter().any(is_size)
        };
        names.into_iter().map(|name| name.text.clone()).find(|name| is_value(name))
    }

    /// What the names of an option mean in a call, which asks for no less than the option takes.
    fn option(
        &mut self,
        declared: &OptionDeclaration,
        given: Option<&CallOption>,
        meaning: &mut Annotations,
        call: Origin,
    ) {
        let mut names = Vec::new();
        let mut whole = None;
        for part in &declared.meaning.parts {
            match part {
                Part::Name(name) => whole = Some(name.text.clone()),
                Part::Dims(dims) => dims.iter().for_each(|dim| dim.names(&mut names)),
            }
        }
        let Some(given) = given else {
            if let Some(value) = declared.default {
                for name in names {
                    meaning.dims.insert(name.text.clone(), Dim::Constant(value));
                }
            }
            return;
        };
        if let Some(name) = self.value_in(&given.value) {
            let message = format!(
                "'{name}' is a value here, and option '{}' expects sizes, which come from shapes; \
                 try the name of a dimension, as n in 'x : t [n]'",
                declared.name.text
            );
            self.error(Reason::AxonOption, given.span, message);
            return;
        }
        if let Some(name) = whole {
            let shape = match &given.value {
                OptionValue::Shape(shape) => self.lower_shape(shape),
                OptionValue::Dim(DimExpr::Name(name)) => self.shape_name(name),
                OptionValue::Dim(_) => {
                    let option = &declared.name.text;
                    let message = format!("option '{option}' expects a shape, such as '[n, 2]'");
                    self.error(Reason::AxonOption, given.span, message);
                    return;
                }
            };
            meaning.shapes.insert(name, shape);
            return;
        }
        let sizes: Vec<Dim> = match &given.value {
            OptionValue::Dim(dim) => vec![self.lower_dim(dim, given.span); names.len()],
            OptionValue::Shape(shape) => {
                let shape = self.lower_shape(shape);
                let dims = shape.as_dims().unwrap_or_default();
                dims.into_iter().cloned().collect()
            }
        };
        let least = declared.default.unwrap_or(1).min(1);
        let too_small = |dim: &Dim| match dim {
            Dim::Constant(value) => *value < least,
            Dim::Ragged => true,
            _ => false,
        };
        if sizes.len() != names.len() || sizes.iter().any(too_small) {
            let message = format!(
                "option '{}' expects {}, at least {least}",
                declared.name.text,
                match names.len() {
                    1 => "a size".to_string(),
                    n => format!("a size or {n} sizes in brackets"),
                }
            );
            self.error(Reason::AxonOption, given.span, message);
            return;
        }
        for (name, size) in names.into_iter().zip(sizes) {
            if let Dim::Sum(_) = size {
                let one_more = Dim::Constant(1 - least);
                match self.types.solver.arithmetic().apply(DimOp::Add, &size, &one_more) {
                    Ok(size) => self.types.solver.positive_sizes(&Shape::dims([size]), call),
                    Err(error) => {
                        self.error(Reason::AxonLimit, given.span, error.to_string());
                        return;
                    }
                }
            }
            meaning.dims.insert(name.text.clone(), size);
        }
    }
}

/// The numbers of two arguments, one of which is a function where the other one is asked for, if that is all that is
/// wrong.
fn swapped(asked: &[Option<Kind>], given: &[Option<Kind>]) -> Option<[usize; 2]> {
    let fits = |param: usize, arg: usize| {
        let (param, arg) = (asked[param], given[arg]);
        param == arg || param.is_none() || arg.is_none()
    };
    let places = 0..given.len();
    let is_right = |&[from, to]: &[usize; 2]| {
        let is_function = [given[from], asked[to]] == [Some(Kind::Function); 2];
        let is_wrong = !fits(from, from) || !fits(to, to);
        let mut others = places.clone().filter(|place| ![from, to].contains(place));
        is_function && is_wrong && fits(from, to) && others.all(|it| fits(it, it))
    };
    let mut pairs = places.clone().flat_map(|from| places.clone().map(move |to| [from, to]));
    let [from, to] = pairs.find(is_right)?;
    Some([from.min(to) + 1, from.max(to) + 1])
}

/// What to write for an argument with its name.
const IN_ORDER: &str = "try the arguments in order, without names";

/// What to write for an option of other languages.
fn option_hint(option: &str) -> Option<&'static str> {
    let is_axis = matches!(option, "axis" | "axes" | "dim" | "dims" | "dimension");
    is_axis.then_some("functions work along dimension 0; try 'map' for each row, or 'transpose'")
}

/// What to write for a function or a value of other languages.
pub(super) fn function_hint(name: &str) -> Option<&'static str> {
    Some(match name {
        "add" => "try '+'",
        "sub" | "subtract" => "try '-'",
        "mul" | "multiply" => "try '*'",
        "div" | "divide" => "try '/'",
        "pow" | "square" => "try a product: 'x * x'",
        "abs" => "try 'max(x, -x)'",
        "mean" | "average" => "try 'sum(x)', divided by the number of rows",
        "cat" | "concatenate" | "stack" => "try 'concat'",
        "where" => "try 'select(condition, value, otherwise)'",
        "mm" | "bmm" | "dot" | "einsum" => "try 'matmul'",
        "permute" | "swapaxes" => "try 'transpose'",
        "view" | "flatten" => "try 'reshape(x, shape=[..])'",
        "embedding" | "take" => "try 'gather'",
        "arange" | "range" => "try 'iota(size=..)'",
        "zeros" | "zeros_like" | "ones" | "full" => {
            "try a number: it stands for a tensor of the shape that is needed"
        }
        "true" | "True" => "try '0 == 0'",
        "false" | "False" => "try '0 == 1'",
        "sin" | "cos" | "tan" | "erf" | "cast" => "there is no built-in function like it",
        _ => return None,
    })
}
