//! Inference of types and shapes.
//!
//! Source: Axon, section 4, on top of Damas and Milner, "Principal type-schemes for functional
//! programs". Definitions get a type scheme for what they leave open; variables of outer definitions keep
//! theirs, which levels tell (Remy). Equations between shapes are solved after every definition; point-wise
//! operations are decided when the function or the value in which they stand is complete. Then its
//! equations are solved once more, all at once.
//!
//! Functions are not recursive, parameters have one type. The time is near-linear in the size of the
//! program as long as signatures are small.

mod calls;
mod conditions;
mod definitions;
mod errors;
mod meanings;
mod names;
mod written;

pub(crate) use meanings::Valued;

use self::names::Signed;
use super::display::{Condition, KnownNames, Printer, Signature};
use super::syntax::ast::{Expr, ExprKind, Function, Pattern, Program, TypeExpr, TypeKind};
use super::syntax::parser::Declaration;
use super::syntax::with_stack;
use super::types::{Class, Elem, Integer, Node, Renaming, Scheme, Ty, Types};
use crate::axon::syntax::builtins;
use crate::text::{Diagnostic, Reason, SourceFile, Span, diagnostic::sorted_and_capped};
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::rc::Rc;
use tc_ir::shape::{
    Dim, Item, Shape, ShapeVar,
    solve::{Origin, Step},
};

/// How a program is looked at.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Names that are defined elsewhere; each has one type.
    pub globals: Vec<String>,
    /// Whether to keep the steps of the solver.
    pub explain: bool,
    /// Whether different names that are equal are an error instead of a warning.
    pub strict_names: bool,
}

/// What is known about a program.
#[derive(Debug)]
pub struct Inferred {
    /// What is wrong with it, sorted by place.
    pub diagnostics: Vec<Diagnostic>,
    /// What is probably not intended, sorted by place; nothing if it is wrong.
    pub warnings: Vec<Diagnostic>,
    pub(crate) inference: Inference,
    pub(crate) prelude: Rc<Program>,
    result: Option<Scheme>,
    pub(crate) names: Rc<KnownNames>,
}

/// The steps in which the shapes of a definition were found.
#[derive(Clone, Debug)]
struct Explanation {
    definition: Option<Rc<str>>,
    /// The type of the definition, unless it has several names.
    scheme: Option<Scheme>,
    steps: Vec<Step>,
}

/// What the annotations of a program call variables.
#[derive(Debug, Default)]
struct Names {
    dims: Vec<(tc_ir::shape::DimVar, String)>,
    shapes: Vec<(tc_ir::shape::ShapeVar, String)>,
    elems: Vec<(Elem, String)>,
    types: Vec<(Ty, String)>,
}

/// Where an equation comes from.
#[derive(Clone, Debug)]
pub(crate) struct OriginInfo {
    pub(crate) span: Span,
    pub(crate) what: What,
    /// The type that the place has.
    pub(crate) found: Option<Ty>,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Argument(Rc<str>, usize),
    Call(Rc<str>),
    /// A name of what may be used at several types.
    Use(Rc<str>),
    /// A name of something else that may be used at several types.
    ValueUse(Rc<str>),
    Pointwise(Rc<str>),
    Annotation(Rc<str>),
    ResultAnnotation,
    Result,
    Pattern,
    /// What a user says a parameter is, and where.
    Given(Rc<str>, Option<Rc<str>>),
    /// That a definition is run.
    Entry,
    /// That nothing says which shape a number has.
    Number,
    /// That a number is a scalar where it is an argument.
    Scalar,
    /// A number of a class of element types.
    Literal(Class),
}

/// Where an expression of a program stands: in the prelude or not, and its span, which no other
/// expression of its kind has.
pub(crate) type Place = (bool, Span);

/// What inference found out about expressions, in terms of the variables of the definition in which
/// they stand.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// The types of numbers.
    pub(crate) numbers: HashMap<Place, Ty>,
    /// The variables of what has a scheme, at each name that stands for it.
    pub(crate) schemes: HashMap<Place, (Rc<Scheme>, Renaming)>,
    /// The names of what has a scheme, where they are defined.
    pub(crate) polymorphic: HashSet<Place>,
    /// The types of the expressions and parameters of the program.
    pub(crate) types: HashMap<Span, Ty>,
    /// The uses of built-in functions: at the name, or where it is called, at the call.
    pub(crate) builtins: HashMap<Place, BuiltinUse>,
}

/// A use of a built-in function.
#[derive(Clone, Debug)]
pub(crate) struct BuiltinUse {
    name: Rc<str>,
    /// The type of the function.
    function: Ty,
    pub(crate) result: Ty,
    /// What the names of dimensions in its declaration stand for, those of options among them.
    pub(crate) dims: HashMap<String, Dim>,
    /// What the names of shapes stand for.
    shapes: HashMap<String, Shape>,
    /// The options that are given.
    options: Vec<Rc<str>>,
}

/// Infers the types and shapes of all definitions of a program.
pub fn infer(program: &Program, options: &Options) -> Inferred {
    infer_without(program, options, HashSet::new())
}

/// As [`infer`], where some places ask nothing of shapes.
pub(crate) fn infer_without(
    program: &Program,
    options: &Options,
    left_out: HashSet<Origin>,
) -> Inferred {
    let mut cx = Inference {
        types: Types::default(),
        scopes: HashMap::new(),
        bound: Vec::new(),
        builtins: builtins::table(),
        annotations: vec![Annotations::default()],
        origins: Vec::new(),
        run: None,
        names: Names::default(),
        named: Vec::new(),
        signatures: Vec::new(),
        warnings: Vec::new(),
        level: 0,
        defining: Vec::new(),
        places: HashMap::new(),
        conflicts: 0,
        diagnostics: Vec::new(),
        definitions: Vec::new(),
        explanations: Vec::new(),
        uses: Uses::default(),
        integers: Vec::new(),
        numbers: HashSet::new(),
        in_prelude: true,
    };
    cx.types.solver.solve_differences();
    cx.types.solver.leave_out(left_out);
    cx.types.hidden = true;
    let prelude = Rc::new(builtins::prelude());
    for definition in &prelude.lets {
        cx.definition(definition, true);
    }
    cx.in_prelude = false;
    cx.types.hidden = false;
    cx.definitions.clear();
    cx.names = Names::default();
    for name in &options.globals {
        let ty = cx.types.var(0);
        cx.bind(name.as_str().into(), Binding::Value(ty));
    }
    if options.explain {
        cx.types.solver.trace();
    }
    for definition in &program.lets {
        if let Pattern::Name(name) = &definition.pattern {
            cx.places.insert(Rc::clone(&name.text), name.span);
        }
    }
    for definition in &program.lets {
        cx.definition(definition, true);
        cx.check_integers();
        cx.check_names();
        let name = match &definition.pattern {
            Pattern::Name(name) => Some(Rc::clone(&name.text)),
            _ => None,
        };
        let last = cx.definitions.last().filter(|_| name.is_some());
        cx.explain(name, last.map(|(_, scheme)| scheme.clone()));
    }
    let result = program.result.as_ref().map(|result| {
        let defined = cx.defined(result, true);
        let scheme = cx.scheme(defined.ty, &defined);
        cx.check_integers();
        cx.check_names();
        cx.explain(None, Some(scheme.clone()));
        scheme
    });
    let names = cx.known_names();
    let mut warnings = std::mem::take(&mut cx.warnings);
    if !cx.diagnostics.is_empty() {
        warnings.clear();
    }
    if options.strict_names {
        cx.diagnostics.extend(warnings.drain(..).map(Diagnostic::promoted));
    }
    let diagnostics = sorted_and_capped(std::mem::take(&mut cx.diagnostics));
    let warnings = sorted_and_capped(warnings);
    Inferred { diagnostics, warnings, inference: cx, prelude, result, names }
}

impl Inferred {
    /// The names that the program defines, in order.
    pub fn definitions(&self) -> Vec<Rc<str>> {
        self.inference.definitions.iter().map(|(name, _)| Rc::clone(name)).collect()
    }

    /// Whether the program ends in an expression.
    pub fn has_result(&self) -> bool {
        self.result.is_some()
    }

    /// The principal type of the last definition of a name, or of the expression at the end. `None`
    /// if there is none.
    pub fn signature(&mut self, entry: Option<&str>) -> Option<Signature> {
        let scheme = self.scheme(entry)?;
        Some(self.scheme_signature(&scheme))
    }

    /// The names and principal types of all definitions, in order, and of the expression at the end,
    /// which has no name.
    pub fn signatures(&mut self) -> Vec<(Option<Rc<str>>, Signature)> {
        let definitions = self.inference.definitions.clone().into_iter();
        let named = definitions.map(|(name, scheme)| (Some(name), scheme));
        let all: Vec<_> = named.chain(self.result.clone().map(|scheme| (None, scheme))).collect();
        all.into_iter().map(|(name, scheme)| (name, self.scheme_signature(&scheme))).collect()
    }

    fn scheme_signature(&mut self, scheme: &Scheme) -> Signature {
        self.printed(scheme).0
    }

    /// The signature of a scheme, and the printer that has named the variables in it.
    fn printed(&mut self, scheme: &Scheme) -> (Signature, Printer) {
        let types = &mut self.inference.types;
        let mut printer = Printer::new(Rc::clone(&self.names));
        let text = printer.signature(types, scheme.ty);
        let mut conditions = printer.classes();
        printer.name_conditions(types, &scheme.residuals);
        for residual in &scheme.residuals {
            let text = printer.condition(types, &residual.relation);
            let span = Some(self.inference.origins[residual.origin as usize].span);
            conditions.push(Condition { text, span });
        }
        (Signature { text, conditions }, printer)
    }

    /// The scheme of the last definition of a name, or of the expression at the end.
    pub(crate) fn scheme(&self, entry: Option<&str>) -> Option<Scheme> {
        let Some(entry) = entry else { return self.result.clone() };
        let mut definitions = self.inference.definitions.iter().rev();
        definitions.find(|(name, _)| **name == *entry).map(|(_, scheme)| scheme.clone())
    }

    /// How the shapes of each definition were found: the rules of section 5 in the order in which
    /// they were applied, and the places whose equations they were applied to.
    pub fn explanation(&mut self, source: &SourceFile) -> String {
        let mut out = String::new();
        let place = |span: Span| {
            let (line, column) = source.line_col(span.start);
            format!("{}:{line}:{column}", source.name())
        };
        let names = self.inference.names.written();
        for explanation in self.inference.explanations.clone() {
            let mut printer = Printer::new(Rc::clone(&names)).reserve(self.inference.reserved());
            if let Some(scheme) = &explanation.scheme {
                printer.explain_all(&self.printed(scheme).1);
            }
            let inference = &mut self.inference;
            let name = explanation.definition.as_deref().unwrap_or("the value of the program");
            out += &format!("{name}:\n");
            let mut operations: HashMap<ShapeVar, Span> = HashMap::new();
            for step in &explanation.steps {
                printer.name_all(&inference.types, &step.relation);
                let relation = printer.relation(&inference.types, &step.relation);
                let origin = &inference.origins[step.origin as usize];
                if let What::Pointwise(_) = origin.what {
                    for shape in inference.types.solver.vars(&step.relation).0 {
                        operations.entry(shape).or_insert(origin.span);
                    }
                }
                let (rule, what) = (step.rule, origin.describe());
                out += &format!("  {}: {rule}: {relation}  ({what})\n", place(origin.span));
            }
            let mut found = inference.first_places(&printer.invented);
            for (number, (var, name)) in printer.invented.iter().enumerate() {
                let broadcast = || {
                    let text = "what the smaller operand is repeated along".to_string();
                    Some((*operations.get(&Shape::from_iter([var.clone()]).as_var()?)?, text))
                };
                if let Some((span, text)) = found.remove(&number).or_else(broadcast) {
                    out += &format!("  {}: '{name}' is {text}\n", place(span));
                }
            }
        }
        out
    }
}

impl Names {
    /// The names of the variables of annotations, whatever is known about these.
    fn written(&self) -> Rc<KnownNames> {
        Rc::new(KnownNames {
            dims: self.dims.iter().cloned().collect(),
            shapes: self.shapes.iter().cloned().collect(),
            elems: self.elems.iter().cloned().collect(),
            types: self.types.iter().cloned().collect(),
        })
    }

    fn len(&self) -> [usize; 4] {
        [self.dims.len(), self.shapes.len(), self.elems.len(), self.types.len()]
    }

    fn truncate(&mut self, [dims, shapes, elems, types]: [usize; 4]) {
        self.dims.truncate(dims);
        self.shapes.truncate(shapes);
        self.elems.truncate(elems);
        self.types.truncate(types);
    }

    /// The names of the variables that stand for those of the annotations, where something is known
    /// about shapes.
    fn known(
        &self,
        types: &mut Types,
        known: &mut dyn FnMut(&mut Types, &Shape) -> Shape,
    ) -> Rc<KnownNames> {
        let mut names = KnownNames::default();
        for (var, name) in &self.dims {
            let shape = known(types, &Shape::dims([Dim::Var(*var)]));
            if let [Item::Dim(Dim::Var(root))] = shape.items[..] {
                names.dims.entry(root).or_insert_with(|| name.clone());
            }
        }
        for (var, name) in &self.shapes {
            if let Some(root) = known(types, &Shape::var(*var)).as_var() {
                names.shapes.entry(root).or_insert_with(|| name.clone());
            }
        }
        for (elem, name) in &self.elems {
            if let Err((root, _)) = types.element(*elem) {
                names.elems.entry(root).or_insert_with(|| name.clone());
            }
        }
        Rc::new(names)
    }
}

impl OriginInfo {
    pub(crate) fn describe(&self) -> String {
        match &self.what {
            What::Argument(function, number) => {
                format!("argument {number} of {}", quoted(function))
            }
            What::Call(function) | What::Use(function) => format!("call of {}", quoted(function)),
            What::ValueUse(name) => format!("use of '{name}'"),
            What::Pointwise(function) => format!("operands of '{function}'"),
            What::Annotation(name) => format!("annotation of '{name}'"),
            What::ResultAnnotation => "annotation of the result".to_string(),
            What::Result => "result of the function".to_string(),
            What::Pattern => "definition of several names".to_string(),
            What::Given(_, Some(source)) => format!("'{source}'"),
            What::Given(name, None) => format!("what is given for '{name}'"),
            What::Entry => "what is run".to_string(),
            What::Number | What::Scalar | What::Literal(_) => "number".to_string(),
        }
    }

    /// What follows its description: operands need something, and a call needs it.
    pub(crate) fn needs(&self) -> &'static str {
        if matches!(self.what, What::Pointwise(_)) { "need" } else { "needs" }
    }
}

/// What a name stands for.
#[derive(Clone, Debug)]
enum Binding {
    Value(Ty),
    Scheme(Rc<Scheme>),
}

/// What the names in the annotations of a function stand for.
#[derive(Clone, Debug, Default)]
struct Annotations {
    /// How many definitions the function is nested in.
    level: u32,
    elems: HashMap<Rc<str>, Elem>,
    types: HashMap<Rc<str>, Ty>,
    shapes: HashMap<String, Shape>,
    dims: HashMap<String, Dim>,
    /// Names that stand before a shape somewhere: alone they are scalars.
    elem_names: HashSet<Rc<str>>,
    classes: HashMap<Rc<str>, Class>,
    /// The names of dimensions and shapes in its types, each where it occurs first.
    written: Signed,
}

/// A definition that is run.
#[derive(Debug)]
pub(crate) struct Run {
    /// The first origin of the run; those before it are in terms of the definition.
    pub(crate) origin: Origin,
    pub(crate) definition: Valued,
    pub(crate) scheme: Rc<Scheme>,
    pub(crate) renaming: Rc<Renaming>,
    /// What the definition calls the variables of the scheme.
    pub(crate) names: Rc<KnownNames>,
}

/// A program under inference, and what remains of it.
#[derive(Debug)]
pub(crate) struct Inference {
    pub(crate) types: Types,
    scopes: HashMap<Rc<str>, Vec<Binding>>,
    /// Names in the order in which they were bound, for leaving scopes.
    bound: Vec<Rc<str>>,
    pub(crate) builtins: HashMap<Rc<str>, Rc<Declaration>>,
    annotations: Vec<Annotations>,
    pub(crate) origins: Vec<OriginInfo>,
    /// The definition that is run, if one is.
    pub(crate) run: Option<Run>,
    names: Names,
    /// The names of the program, their places and what they stand for.
    pub(crate) named: Vec<(Rc<str>, Span, Ty)>,
    /// The names in the types of the functions of the definition at the top.
    signatures: Vec<Signed>,
    pub(crate) warnings: Vec<Diagnostic>,
    level: u32,
    /// The names that are being defined, and whether they stand for functions.
    defining: Vec<(Rc<str>, bool)>,
    /// The names that are defined at the top, and where.
    places: HashMap<Rc<str>, Span>,
    /// Contradictions between shapes in the current definition of the file.
    conflicts: usize,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) definitions: Vec<(Rc<str>, Scheme)>,
    explanations: Vec<Explanation>,
    pub(crate) uses: Uses,
    /// The integers of the current definition of the file.
    integers: Vec<Integer>,
    /// The types of numbers, and of what element-wise functions make of numbers alone.
    numbers: HashSet<Ty>,
    /// Whether the definitions are those of the prelude.
    in_prelude: bool,
}

impl Inference {
    fn explain(&mut self, definition: Option<Rc<str>>, scheme: Option<Scheme>) {
        let steps = self.types.solver.take_steps();
        if !steps.is_empty() {
            self.explanations.push(Explanation { definition, scheme, steps });
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    fn error(&mut self, reason: Reason, span: Span, message: impl Into<String>) -> Ty {
        self.report(Diagnostic::new(reason, span, message));
        self.types.add(Node::Error)
    }

    /// Calls the variables of a copy as those that they stand for are called.
    pub(crate) fn name_copies(&mut self, known: &KnownNames, renaming: &Renaming) {
        fn named<V: Copy + Eq + Hash + Ord>(
            copies: &HashMap<V, V>,
            known: &HashMap<V, String>,
        ) -> Vec<(V, String)> {
            let mut copies: Vec<_> = copies.iter().collect();
            copies.sort_unstable();
            let name = |(var, copy): (&V, &V)| Some((*copy, known.get(var)?.clone()));
            copies.into_iter().filter_map(name).collect()
        }
        self.names.dims.extend(named(&renaming.sizes.dims, &known.dims));
        self.names.shapes.extend(named(&renaming.sizes.shapes, &known.shapes));
        self.names.elems.extend(named(&renaming.elems, &known.elems));
    }

    /// The names of the variables that stand for those of the annotations.
    pub(crate) fn known_names(&mut self) -> Rc<KnownNames> {
        self.names.known(&mut self.types, &mut |types, shape| types.solver.resolved_shape(shape))
    }

    pub(crate) fn origin(&mut self, span: Span, what: What, found: Option<Ty>) -> Origin {
        self.origins.push(OriginInfo { span, what, found });
        self.origins.len() as Origin - 1
    }

    fn bind(&mut self, name: Rc<str>, binding: Binding) {
        self.scopes.entry(Rc::clone(&name)).or_default().push(binding);
        self.bound.push(name);
    }

    fn leave_scope(&mut self, mark: usize) {
        while mark < self.bound.len() {
            let Some(name) = self.bound.pop() else { break };
            if let Some(bindings) = self.scopes.get_mut(&name) {
                bindings.pop();
            }
        }
    }

    fn expr(&mut self, expr: &Expr) -> Ty {
        let ty = with_stack(|| self.expr_kind(expr));
        if !self.in_prelude {
            self.uses.types.insert(expr.span, ty);
        }
        ty
    }

    fn expr_kind(&mut self, expr: &Expr) -> Ty {
        match &expr.kind {
            // A number stands for a tensor of any shape that it is needed in.
            ExprKind::Integer(value) => {
                let (ty, elem) = self.number(Class::Number, expr.span);
                if !self.in_prelude {
                    let (value, span) = (*value, expr.span);
                    self.integers.push(Integer { value, span, elem });
                }
                ty
            }
            ExprKind::Float(_) => self.number(Class::Float, expr.span).0,
            ExprKind::Name(name) => self.name(name, expr.span),
            ExprKind::Tuple(parts) => {
                let parts = parts.iter().map(|part| self.expr(part)).collect();
                self.types.add(Node::Tuple(parts))
            }
            ExprKind::Call { function, args, options } => {
                self.call(function, args, options, expr.span)
            }
            ExprKind::Function(function) => self.function(function),
        }
    }

    fn number(&mut self, class: Class, span: Span) -> (Ty, Elem) {
        let shape = self.types.solver.shape_var(self.level);
        self.types.solver.set_number(shape);
        let elem = self.types.elem_var(self.level, class);
        let ty = self.types.add(Node::Tensor(elem, Shape::var(shape)));
        let origin = self.origin(span, What::Literal(class), Some(ty));
        self.types.literal(elem, origin);
        self.uses.numbers.insert((self.in_prelude, span), ty);
        self.numbers.insert(ty);
        (ty, elem)
    }

    /// The integers from one on whose type is not known: the least and the greatest of each type.
    fn open_integers(&mut self, since: usize) -> Vec<Integer> {
        let mut open: HashMap<Elem, (Integer, Integer)> = HashMap::new();
        for integer in &self.integers[since..] {
            let Err((root, _)) = self.types.element(integer.elem) else { continue };
            let both = || (integer.clone(), integer.clone());
            let (least, greatest) = open.entry(root).or_insert_with(both);
            if integer.value < least.value {
                *least = integer.clone();
            }
            if greatest.value < integer.value {
                *greatest = integer.clone();
            }
        }
        let mut open: Vec<_> = open.into_values().flat_map(|(a, b)| [a, b]).collect();
        open.sort_by_key(|integer| (integer.span, integer.elem));
        open.dedup_by_key(|integer| (integer.span, integer.elem));
        open
    }

    /// The integers of a definition have to fit the types of a use as well.
    pub(crate) fn use_integers(&mut self, scheme: &Scheme, renaming: &Renaming, origin: Origin) {
        for integer in &scheme.integers {
            let copy = self.types.copy_integer(integer, renaming, origin);
            self.integers.extend(copy);
        }
    }

    /// Refuses integers that the types of their elements do not have.
    pub(crate) fn check_integers(&mut self) {
        for Integer { value, span, elem } in std::mem::take(&mut self.integers) {
            if let Ok(known) = self.types.element(elem)
                && let Some(misfit) = known.misfit(value)
                // Several uses of a definition ask for the same.
                && !self.diagnostics.iter().any(|it| it.span == span && it.message == misfit)
            {
                let mut error = Diagnostic::new(Reason::AxonElement, span, misfit);
                let path = self.types.why_known(elem);
                self.notes(&mut error, &path, None);
                self.report(error);
            }
        }
    }

    fn name(&mut self, name: &Rc<str>, span: Span) -> Ty {
        let binding = self.scopes.get(name).and_then(|bindings| bindings.last()).cloned();
        match binding {
            Some(Binding::Value(ty)) => ty,
            Some(Binding::Scheme(scheme)) => {
                let is_number = self.numbers.contains(&scheme.ty);
                let what = match self.types.node(scheme.ty) {
                    Node::Function(..) => What::Use(Rc::clone(name)),
                    _ => What::ValueUse(Rc::clone(name)),
                };
                let origin = self.origin(span, what, None);
                let asks = vec![origin; scheme.residuals.len()];
                let (ty, renaming) = self.types.instantiate(&scheme, self.level, origin, &asks);
                self.use_integers(&scheme, &renaming, origin);
                if is_number {
                    self.numbers.insert(ty);
                }
                self.uses.schemes.insert((self.in_prelude, span), (scheme, renaming));
                ty
            }
            None => match self.builtins.get(name).cloned() {
                Some(declaration) => self.builtin(&declaration, &[], span),
                None => self.undefined(name, span),
            },
        }
    }

    /// Refuses a name that nothing defines.
    fn undefined(&mut self, name: &Rc<str>, span: Span) -> Ty {
        let message = format!("'{name}' is not defined");
        let error = Diagnostic::new(Reason::AxonUndefined, span, message);
        let defining = self.defining.iter().rev().find(|(known, _)| known == name);
        let is_size = self.annotations.iter().any(|it| it.dims.contains_key(&**name));
        let error = if let Some((_, is_function)) = defining {
            let hint = match is_function {
                true => "functions do not call themselves; try 'loop'",
                false => "a definition does not use itself; try another name for one of the two",
            };
            error.note(span, hint)
        } else if is_size {
            error.note(span, format!("'{name}' is a size in annotations, and no value"))
        } else if let Some(place) = self.places.get(name) {
            error.note(*place, format!("'{name}' is defined here; try that before its use"))
        } else if let Some(hint) = calls::function_hint(name) {
            error.note(span, hint)
        } else {
            let scopes = self.scopes.iter().filter(|(_, it)| !it.is_empty());
            let names = scopes.map(|(known, _)| known).chain(self.builtins.keys());
            error.try_similar(name, names.map(|known| &**known), self.diagnostics.len())
        };
        self.report(error);
        self.types.add(Node::Error)
    }

    fn function(&mut self, function: &Function) -> Ty {
        let mut annotations = Annotations { level: self.level, ..Annotations::default() };
        let written = function.params.iter().filter_map(|param| param.ty.as_ref());
        for ty in written.chain(&function.result_type) {
            elem_names(ty, &mut annotations.elem_names);
        }
        self.annotations.push(annotations);
        let mark = self.bound.len();
        let mut params = Vec::new();
        for param in &function.params {
            let ty = match &param.ty {
                None => self.types.var(self.level),
                Some(written) => {
                    let what = What::Annotation(Rc::clone(&param.name.text));
                    self.annotation(written, what)
                }
            };
            params.push(ty);
            if !self.in_prelude {
                self.uses.types.insert(param.name.span, ty);
                self.named.push((Rc::clone(&param.name.text), param.name.span, ty));
            }
            self.bind(Rc::clone(&param.name.text), Binding::Value(ty));
        }
        for definition in &function.lets {
            self.definition(definition, false);
        }
        let mut result = self.expr(&function.result);
        if let Some(written) = &function.result_type {
            let annotated = self.annotation(written, What::ResultAnnotation);
            let origin = self.origin(function.result.span, What::Result, Some(result));
            if let Err(mismatch) = self.types.unify(annotated, result, origin) {
                self.report_mismatch(mismatch, origin);
                result = self.types.add(Node::Error);
            }
        }
        self.leave_scope(mark);
        if let Some(annotations) = self.annotations.pop()
            && !self.in_prelude
        {
            self.signatures.push(annotations.written);
        }
        self.types.add(Node::Function(params, result))
    }
}

/// What a function is called that is no name.
const NAMELESS: &str = "the function";

fn quoted(function: &str) -> String {
    match function {
        NAMELESS => function.to_string(),
        _ => format!("'{function}'"),
    }
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

/// The names that stand before a shape.
fn elem_names(written: &TypeExpr, found: &mut HashSet<Rc<str>>) {
    match &written.kind {
        TypeKind::Name(_) => {}
        TypeKind::Tensor(name, _) => _ = found.insert(Rc::clone(&name.text)),
        TypeKind::Tuple(parts) => parts.iter().for_each(|part| elem_names(part, found)),
        TypeKind::Function(params, result) => {
            params.iter().for_each(|param| elem_names(param, found));
            elem_names(result, found);
        }
    }
}
