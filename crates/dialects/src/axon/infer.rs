//! Inference of types and shapes.
//!
//! Source: Axon, section 4, on top of Damas and Milner, "Principal type-schemes for functional
//! programs". Definitions of functions get a type scheme; variables of outer definitions keep theirs,
//! which levels tell (Remy). Equations between shapes are solved after every definition; point-wise
//! operations are decided when the function or the value in which they stand is complete. Then its
//! equations are solved once more, all at once.
//!
//! Functions are not recursive, parameters have one type. The time is near-linear in the size of the
//! program as long as signatures are small.

mod conditions;
mod errors;
mod meanings;
mod written;

pub(crate) use meanings::Valued;

use super::builtins;
use super::display::{Condition, KnownNames, Printer, Signature};
use super::syntax::ast::{
    CallOption, Expr, ExprKind, Function, Let, OptionValue, Pattern, Program, TypeExpr, TypeKind,
};
use super::syntax::parser::{self, Declaration, OptionDeclaration};
use super::syntax::with_stack;
use super::types::{
    Class, Elem, Generality, Integer, MAX_PARTS, Node, Renaming, Scheme, Ty, Types, TypesMark,
};
use crate::tc::syntax::{Diagnostic, Reason, SourceFile, Span, diagnostic::sorted_and_capped};
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::rc::Rc;
use tc_ir::shape::{
    Dim, Item, Shape, ShapeVar,
    solve::{Conflict, Mark, Origin, Relation, Step},
    text::{DimExpr, Part},
};

/// How a program is looked at.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Names that are defined elsewhere; each has one type.
    pub globals: Vec<String>,
    /// Whether to keep the steps of the solver.
    pub explain: bool,
}

/// What is known about a program.
#[derive(Debug)]
pub struct Inferred {
    /// What is wrong with it, sorted by place.
    pub diagnostics: Vec<Diagnostic>,
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
        cx.explain(None, Some(scheme.clone()));
        scheme
    });
    let names = cx.known_names();
    let diagnostics = sorted_and_capped(std::mem::take(&mut cx.diagnostics));
    Inferred { diagnostics, inference: cx, prelude, result, names }
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

/// What is defined.
struct Defined {
    ty: Ty,
    generality: Generality,
    /// Whether it is evaluated at each use, whatever its type is.
    is_value: bool,
    /// Before it was looked at.
    since: TypesMark,
    /// How many integers there were.
    integers: usize,
    span: Span,
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

    // Definitions.

    /// A definition, of the file or in the body of a function.
    fn definition(&mut self, definition: &Let, top: bool) {
        let outer = self.defining.len();
        let errors = self.diagnostics.len();
        let mark = self.types.solver.mark();
        if let Pattern::Name(name) = &definition.pattern {
            let is_function = matches!(definition.value.kind, ExprKind::Function(_));
            self.defining.push((Rc::clone(&name.text), is_function));
        }
        let mut defined = self.defined(&definition.value, top);
        if let Pattern::Tuple(..) = definition.pattern {
            defined.is_value = false;
            if defined.generality == Generality::All
                && !self.types.solver.residuals(mark).is_empty()
            {
                // Its parts cannot be had apart from each other: conditions are about all of them.
                defined.generality = Generality::Nothing;
                self.types.lower_levels(defined.since, self.level, true);
            }
        }
        self.destructure(&definition.pattern, defined.ty, &defined, top);
        if let Pattern::Tuple(..) = definition.pattern {
            self.solve(top.then_some(defined.ty), 0);
            if top {
                self.settle(mark, errors);
            }
        }
        if top && errors < self.diagnostics.len() {
            self.types.solver.forget_residuals(mark);
        }
        self.defining.truncate(outer);
    }

    /// Refuses a type that is too large.
    fn too_large(&mut self, ty: Ty, span: Span) -> Option<Ty> {
        let message = format!("type has more than {MAX_PARTS} parts");
        let is_too_large = self.types.is_too_large(ty);
        is_too_large.then(|| self.error(Reason::AxonLimit, span, message))
    }

    /// The type of what is defined, and what of it stands for anything at each use.
    fn defined(&mut self, value: &Expr, top: bool) -> Defined {
        let errors = self.diagnostics.len();
        let since = self.types.mark();
        let pending = self.types.solver.num_pointwise();
        let integers = self.integers.len();
        if top {
            self.conflicts = 0;
        }
        let outer = self.level;
        self.level += 1;
        let mut ty = self.expr(value);
        self.solve(None, pending);
        let is_value = value.is_value();
        let generality = match is_value {
            true => Generality::All,
            false => self.types.generality(ty, outer, pending),
        };
        if generality != Generality::All {
            self.level = outer;
            self.types.lower_levels(since, outer, generality == Generality::Nothing);
        }
        if top || generality == Generality::All {
            if pending < self.types.solver.num_pointwise() {
                // What is decided depends on what is known.
                self.settle(since.solver, errors);
                self.solve(Some(ty), pending);
            }
            self.settle(since.solver, errors);
        }
        self.level = outer;
        if errors < self.diagnostics.len() {
            ty = self.types.add(Node::Error);
        }
        let ty = self.too_large(ty, value.span).unwrap_or(ty);
        let span = value.span;
        Defined { ty, generality, is_value, since, integers, span }
    }

    /// The scheme of what is defined, or of a part of it.
    fn scheme(&mut self, ty: Ty, defined: &Defined) -> Scheme {
        let scheme = match defined.generality {
            Generality::Nothing => Types::monomorphic(ty),
            Generality::Elements | Generality::All => {
                let mut scheme = self.types.generalize(ty, self.level, defined.since.solver);
                if self.numbers.contains(&ty) {
                    self.numbers.insert(scheme.ty);
                }
                scheme.integers = self.open_integers(defined.integers);
                scheme
            }
        };
        let error = match std::mem::take(&mut self.types.too_large) {
            Some(error) => error.to_string(),
            None if std::mem::take(&mut self.types.too_deep) => {
                "type is nested too deeply".to_string()
            }
            None => return scheme,
        };
        Types::monomorphic(self.error(Reason::AxonLimit, defined.span, error))
    }

    /// Solves the equations between shapes, and where something is complete that has a type, decides about
    /// point-wise operations.
    pub(crate) fn solve(&mut self, complete: Option<Ty>, keep: usize) {
        let solved = match complete {
            Some(ty) => {
                let shapes = self.types.shapes(ty);
                self.types.solver.solve_pointwise(keep, &shapes)
            }
            None => self.types.solver.solve(),
        };
        self.solved(solved);
    }

    /// What is known about the shapes of a complete definition, whatever the order in which its parts
    /// were solved.
    pub(super) fn settle(&mut self, since: Mark, errors: usize) {
        if errors == self.diagnostics.len() {
            let settled = self.types.solver.settle(since, self.level);
            self.solved(settled);
        }
    }

    fn solved(&mut self, solved: Result<(), Box<Conflict>>) {
        if let Err(conflict) = solved {
            // What follows from a contradiction is not worth reporting.
            self.types.solver.abandon();
            if self.conflicts == 0 {
                self.report_conflict(&conflict);
            }
            self.conflicts += 1;
        }
    }

    /// Binds the names of a pattern to what is defined, or to a part of it.
    fn destructure(&mut self, pattern: &Pattern, ty: Ty, defined: &Defined, top: bool) {
        match pattern {
            Pattern::Ignore(_) => {}
            Pattern::Name(name) => {
                let scheme = self.scheme(ty, defined);
                let binding = match defined.is_value || scheme.is_polymorphic() {
                    true => {
                        self.uses.polymorphic.insert((self.in_prelude, name.span));
                        Binding::Scheme(Rc::new(scheme.clone()))
                    }
                    false => Binding::Value(scheme.ty),
                };
                let is_tensor = matches!(self.types.node(scheme.ty), Node::Tensor(..));
                if !self.in_prelude && (is_tensor || matches!(binding, Binding::Value(_))) {
                    self.named.push((Rc::clone(&name.text), name.span, scheme.ty));
                }
                self.bind(Rc::clone(&name.text), binding);
                if top {
                    self.definitions.push((Rc::clone(&name.text), scheme));
                }
            }
            Pattern::Tuple(parts, span) => {
                let found = match self.types.node(ty) {
                    Node::Tuple(found) if found.len() == parts.len() => found,
                    _ => {
                        let vars: Vec<Ty> =
                            parts.iter().map(|_| self.types.var(self.level)).collect();
                        let tuple = self.types.add(Node::Tuple(vars.clone()));
                        let origin = self.origin(*span, What::Pattern, Some(ty));
                        if let Err(mismatch) = self.types.unify(tuple, ty, origin) {
                            let shown = self.anonymous(ty);
                            self.report_mismatch(mismatch, origin);
                            if let Some(last) = self.diagnostics.last_mut() {
                                last.notes.push((defined.span, format!("the value is {shown}")));
                            }
                            vec![self.types.add(Node::Error); parts.len()]
                        } else {
                            vars
                        }
                    }
                };
                for (part, ty) in parts.iter().zip(found) {
                    self.destructure(part, ty, defined, top);
                }
            }
        }
    }

    // Expressions.

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
        } else if let Some(hint) = function_hint(name) {
            error.note(span, hint)
        } else {
            let scopes = self.scopes.iter().filter(|(_, it)| !it.is_empty());
            let names = scopes.map(|(known, _)| known).chain(self.builtins.keys());
            error.try_similar(name, names.map(|known| &**known), self.diagnostics.len())
        };
        self.report(error);
        self.types.add(Node::Error)
    }

    fn call(&mut self, callee: &Expr, args: &[Expr], options: &[CallOption], span: Span) -> Ty {
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
                    if let (true, Some(first)) = (params.len() < args.len(), named.first())
                        && let Some(error) = self.diagnostics.last_mut()
                    {
                        let brackets = matches!(first.meaning.parts[..], [Part::Name(_)]);
                        let value = if brackets { "[..]" } else { ".." };
                        let hint = format!("options have names; try '{}={value}'", first.name.text);
                        error.notes.push((span, hint));
                    }
                    return failed;
                }
                let mut failed = false;
                for (place, (param, (ty, arg))) in
                    params.into_iter().zip(found.into_iter().zip(args)).enumerate()
                {
                    if are_scalars {
                        self.scalar(param, ty, arg.span);
                    }
                    let what = What::Argument(Rc::clone(&spelled), place + 1);
                    let origin = self.origin(arg.span, what, Some(ty));
                    if let Err(mismatch) = self.types.unify(param, ty, origin) {
                        let is_of_kinds = mismatch.difference.is_of_kinds();
                        self.report_mismatch(mismatch, origin);
                        if is_of_kinds {
                            self.note_type(&spelled);
                        }
                        failed = true;
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
        self.annotations.pop();
        self.types.add(Node::Function(params, result))
    }

    // Built-in functions.

    /// The type of a use of a built-in function.
    fn builtin(&mut self, declaration: &Declaration, options: &[CallOption], span: Span) -> Ty {
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
        for option in &declaration.options {
            let given = options.iter().find(|it| it.name.text == option.name.text);
            self.option(option, given, &mut meaning);
        }
        let what = match declaration.pointwise {
            true => What::Pointwise(Rc::clone(&declaration.name.text)),
            false => What::Call(Rc::clone(&declaration.name.text)),
        };
        let origin = self.origin(span, what, None);
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

    /// What the names of an option mean in a call.
    fn option(
        &mut self,
        declared: &OptionDeclaration,
        given: Option<&CallOption>,
        meaning: &mut Annotations,
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
            meaning.dims.insert(name.text.clone(), size);
        }
    }
}

/// What a function is called that is no name.
const NAMELESS: &str = "the function";

/// What to write for an argument with its name.
const IN_ORDER: &str = "try the arguments in order, without names";

/// What to write for an option of other languages.
fn option_hint(option: &str) -> Option<&'static str> {
    let is_axis = matches!(option, "axis" | "axes" | "dim" | "dims" | "dimension");
    is_axis.then_some("functions work along dimension 0; try 'map' for each row, or 'transpose'")
}

/// What to write for a function or a value of other languages.
fn function_hint(name: &str) -> Option<&'static str> {
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
