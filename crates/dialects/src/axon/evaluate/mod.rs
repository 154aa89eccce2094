//! Evaluation of a program at known types, on whatever an [`Evaluator`] makes of tensors.
//!
//! Functions are values while a program is evaluated, and gone afterwards: each is evaluated anew at
//! every call, at the types of that call, so that what reaches the evaluator is first-order and has shapes
//! of known rank; what a size is, a number or an expression, is up to the evaluator. The functions of `map`, `reduce` and `loop` are evaluated once each, as the body of a loop.
//! One evaluator builds HLO, another calculates ([`super::to_hlo`], and the reference interpreter of the
//! backends), a third builds functions whose sizes are parameters (`convert-axon-to-imap`), so that they
//! agree on what a program means and on nothing else.
//!
//! Programs do not recurse, but their size may double with every definition: more than
//! [`Evaluator::MAX_CALLS`] calls are refused, and so are more than [`MAX_DEPTH`] of them inside of each other.

mod builtins;

use super::infer::{Inferred, Place, Uses};
use super::specialize::{Instance, Structure, Subst, TensorType, is_ragged};
pub use super::specialize::{constant, refuse};
use super::syntax::ast::{Expr, ExprKind, Function, Let, Name, Pattern, Program};
use super::syntax::parser::Declaration;
use super::syntax::with_stack;
use super::types::{ElementType, MAX_PARTS, Node, Ty, Types};
use crate::text::{Diagnostic, Reason, Span};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use tc_ir::shape::{Arithmetic, Dim, Item, Shape};

/// Most calls inside of each other.
pub const MAX_DEPTH: usize = 256;

/// A number in a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer, which fits the element type that it is given.
    Integer(i128),
    /// A float, not rounded yet.
    Float(f64),
}

/// A function on each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Pointwise {
    Add,
    Sub,
    Mul,
    Div,
    Max,
    Min,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Select,
    Neg,
    Exp,
    Log,
    Sqrt,
    Tanh,
    Sigmoid,
}

impl Pointwise {
    /// The function of this name in the table of built-in functions.
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "+" => Self::Add,
            "-" => Self::Sub,
            "*" => Self::Mul,
            "/" => Self::Div,
            "max" => Self::Max,
            "min" => Self::Min,
            "==" => Self::Equal,
            "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterEqual,
            "select" => Self::Select,
            "neg" => Self::Neg,
            "exp" => Self::Exp,
            "log" => Self::Log,
            "sqrt" => Self::Sqrt,
            "tanh" => Self::Tanh,
            "sigmoid" => Self::Sigmoid,
            _ => return None,
        })
    }

    /// The type of its results on elements of these types.
    pub fn result(self, elements: &[ElementType]) -> ElementType {
        match self {
            Self::Equal
            | Self::NotEqual
            | Self::Less
            | Self::LessEqual
            | Self::Greater
            | Self::GreaterEqual => ElementType::Bool,
            _ => elements[elements.len() - 1],
        }
    }
}

/// How filters move over images, per dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Window {
    pub stride: [i64; 2],
    pub padding: [i64; 2],
    pub dilation: [i64; 2],
}

/// What an evaluator refuses, without the place.
pub type Made<T> = Result<T, String>;

/// What tensors are made of. All shapes fit: inference has seen to it.
pub trait Evaluator: Sized {
    /// A tensor.
    type Tensor: Clone;
    /// The size of a dimension.
    type Size: Clone;
    /// Most calls of a program once its functions are evaluated anew at each call.
    const MAX_CALLS: usize;

    /// The type of a tensor.
    fn tensor_type<'t>(&'t self, tensor: &'t Self::Tensor) -> &'t TensorType<Self::Size>;
    /// The size that a dimension has; `None` if nothing determines it.
    fn size(&self, dim: &Dim, arithmetic: &Arithmetic) -> Option<Self::Size>;
    /// The place in the program of what is made from now on.
    fn at(&mut self, span: Span);
    /// A scalar.
    fn number(&mut self, number: Number, element: ElementType) -> Made<Self::Tensor>;
    /// The tensor, repeated along dimensions before its own.
    fn broadcast(&mut self, tensor: &Self::Tensor, dims: &[Self::Size]) -> Made<Self::Tensor>;
    /// A function on each element of tensors of one shape.
    fn pointwise(&mut self, function: Pointwise, of: &[Self::Tensor]) -> Made<Self::Tensor>;
    /// The sums of products over the last dimension of `lhs` and the one after `batch` dimensions of
    /// `rhs`; the first `batch` dimensions of both go together.
    fn dot(&mut self, lhs: &Self::Tensor, rhs: &Self::Tensor, batch: usize) -> Made<Self::Tensor>;
    /// `filters` of `[k,c,r,s]` over `images` of `[n,c,h,w]`; the result has these sizes.
    fn convolution(
        &mut self,
        images: &Self::Tensor,
        filters: &Self::Tensor,
        window: Window,
        dims: [Self::Size; 4],
    ) -> Made<Self::Tensor>;
    /// One after the other along dimension 0.
    fn concat(&mut self, first: &Self::Tensor, second: &Self::Tensor) -> Made<Self::Tensor>;
    /// Backwards along dimension 0.
    fn reverse(&mut self, tensor: &Self::Tensor) -> Made<Self::Tensor>;
    /// A part of dimension 0.
    fn slice(
        &mut self,
        tensor: &Self::Tensor,
        start: Self::Size,
        size: Self::Size,
    ) -> Made<Self::Tensor>;
    /// The elements along dimension 0 at these indices, which are moved inside.
    fn gather(&mut self, tensor: &Self::Tensor, indices: &Self::Tensor) -> Made<Self::Tensor>;
    /// A matrix with rows and columns exchanged.
    fn transpose(&mut self, tensor: &Self::Tensor) -> Made<Self::Tensor>;
    /// The same elements in row-major order.
    fn reshape(&mut self, tensor: &Self::Tensor, dims: &[Self::Size]) -> Made<Self::Tensor>;
    /// The numbers from 0 on.
    fn iota(&mut self, element: ElementType, size: Self::Size) -> Made<Self::Tensor>;
    /// Starts with a scalar for each element of a row of a tensor, and combines it with that of each
    /// row, first row first, or in any order if the function is a sum, a product or an extremum.
    ///
    /// # Errors
    /// The function has no value, or cannot be evaluated here.
    fn reduce(
        evaluation: &mut Evaluation<'_, Self>,
        function: Callee,
        init: &Self::Tensor,
        of: &Self::Tensor,
        span: Span,
    ) -> Evaluated<Self::Tensor>;
    /// Calls a function with a state, where there is one, and each row of a tensor, first row first.
    /// Its value is the next state, where there is one, and a row of the tensor that comes back.
    ///
    /// # Errors
    /// The function has no value, or cannot be evaluated here.
    fn iterate(
        evaluation: &mut Evaluation<'_, Self>,
        function: Callee,
        state: Option<Value<Self::Tensor>>,
        over: &Self::Tensor,
        span: Span,
    ) -> Evaluated<Iterated<Self::Tensor>>;
}

/// The value of an expression.
#[derive(Clone, Debug)]
pub enum Value<T> {
    /// A tensor.
    Tensor(T),
    /// Several values.
    Tuple(Rc<[Value<T>]>),
    /// A function.
    Function(Callee),
}

impl<T: Clone> Value<T> {
    fn has_function(&self) -> bool {
        // A tuple may occur in many places.
        let mut seen = HashSet::new();
        let mut open = vec![self];
        while let Some(value) = open.pop() {
            match value {
                Self::Tensor(_) => {}
                Self::Tuple(parts) => {
                    if seen.insert(Rc::as_ptr(parts).cast::<u8>()) {
                        open.extend(parts.iter());
                    }
                }
                Self::Function(_) => return true,
            }
        }
        false
    }

    /// Its tensors in order; `None` if one of its parts is a function, or there are more than
    /// `MAX_PARTS`.
    pub fn tensors(&self) -> Option<Vec<T>> {
        let mut tensors = Vec::new();
        let mut open = vec![self];
        while let Some(value) = open.pop() {
            if MAX_PARTS < tensors.len() + open.len() {
                return None;
            }
            match value {
                Self::Tensor(tensor) => tensors.push(tensor.clone()),
                Self::Tuple(parts) => open.extend(parts.iter().rev()),
                Self::Function(_) => return None,
            }
        }
        Some(tensors)
    }

    /// Why it has no [`Self::tensors`]; `what` says what it is.
    fn no_tensors(&self, what: &str) -> String {
        match self.has_function() {
            true => format!("{what} has a function in it, expected tensors"),
            false => format!("{what} has more than {MAX_PARTS} tensors"),
        }
    }

    /// A value of the same structure with other tensors. Without functions there are as many as
    /// [`Self::tensors`] gives.
    pub fn with_tensors(&self, tensors: &mut impl Iterator<Item = T>) -> Self {
        match self {
            Self::Tensor(tensor) => Self::Tensor(tensors.next().unwrap_or_else(|| tensor.clone())),
            Self::Tuple(parts) => {
                let mut values = Vec::with_capacity(parts.len());
                for part in parts.iter() {
                    values.push(part.with_tensors(tensors));
                }
                Self::Tuple(values.into())
            }
            Self::Function(_) => self.clone(),
        }
    }
}

/// The last state, where there is one, and a row from each call.
pub type Iterated<T> = (Option<Value<T>>, T);

/// What a call of the function of a loop gives: the next state, where there is one, and a row.
///
/// # Errors
/// The value is something else.
pub fn stepped<T: Clone>(
    has_state: bool,
    value: Value<T>,
    span: Span,
) -> Evaluated<(Option<Value<T>>, T)> {
    match (has_state, value) {
        (false, Value::Tensor(row)) => Ok((None, row)),
        (true, Value::Tuple(parts)) => match &parts[..] {
            [next, Value::Tensor(row)] => Ok((Some(next.clone()), row.clone())),
            _ => Err(refuse(span, "the function gives no state and tensor")),
        },
        _ => Err(refuse(span, "the function gives no tensor")),
    }
}

/// A function, by its number in an [`Evaluation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Callee(usize);

/// The value, or what has none.
pub type Evaluated<T> = Result<T, Diagnostic>;

#[derive(Clone)]
enum FunctionValue<'p> {
    Closure(&'p Function, Scope),
    /// A built-in function, the place of its use, and what the variables there stand for.
    Builtin(Rc<Declaration>, Place, Rc<Subst>),
}

/// Where names are looked up: the first `len` names of a frame, then those around it.
#[derive(Clone, Copy, Debug)]
struct Env {
    frame: usize,
    len: usize,
}

/// What an expression is evaluated in.
#[derive(Clone, Debug)]
struct Scope {
    env: Env,
    subst: Rc<Subst>,
    in_prelude: bool,
}

/// The names of one evaluation of a function. A name may be defined again; which definition counts
/// depends on where it is used.
struct Frame<'p, T> {
    names: HashMap<Rc<str>, Vec<(usize, Binding<'p, T>)>>,
    len: usize,
    parent: Option<Env>,
    subst: Rc<Subst>,
}

#[derive(Clone)]
enum Binding<'p, T> {
    Value(Value<T>),
    /// What is polymorphic is evaluated at the types at which it is used.
    Definition(Definition<'p>),
}

/// A definition, or a part of one.
#[derive(Clone)]
struct Definition<'p> {
    value: &'p Expr,
    /// Which part of the value, and which part of that, and so on.
    part: Rc<[usize]>,
    /// How many names of its frame are defined before it.
    len: usize,
    in_prelude: bool,
}

/// The values of polymorphic definitions that are calculated, by their frames and places: at each of the types at
/// which they are used.
type Instances<T> = BTreeMap<(usize, Place), Vec<(Rc<Subst>, Value<T>)>>;

/// A program under evaluation.
pub struct Evaluation<'p, T: Evaluator> {
    /// What tensors are made of.
    pub evaluator: T,
    types: &'p mut Types,
    uses: &'p Uses,
    table: &'p HashMap<Rc<str>, Rc<Declaration>>,
    frames: Vec<Frame<'p, T::Tensor>>,
    functions: Vec<FunctionValue<'p>>,
    calls: usize,
    depth: usize,
    /// Those of the program, and of each loop whose body is being evaluated: what is made in a loop cannot be
    /// used outside of it.
    instances: Vec<Instances<T::Tensor>>,
    /// The first frame of which an instance was added since the innermost call, if that has functions.
    kept: usize,
    /// The place in the program from where the prelude is being evaluated.
    call_site: Span,
}

/// The tensors that an entry gives, and the evaluator that made them. `parameters` are those that it
/// takes, of the types that the instance has for them.
///
/// # Errors
/// What cannot be executed, at its place.
pub fn evaluate<T: Evaluator>(
    inferred: &mut Inferred,
    program: &Program,
    instance: &Instance<T::Size>,
    evaluator: T,
    parameters: Vec<T::Tensor>,
) -> Evaluated<(T, Vec<T::Tensor>)> {
    let prelude = Rc::clone(&inferred.prelude);
    let inference = &mut inferred.inference;
    let none = Rc::new(Subst::default());
    let mut evaluation = Evaluation {
        evaluator,
        types: &mut inference.types,
        uses: &inference.uses,
        table: &inference.builtins,
        frames: vec![Frame {
            names: HashMap::new(),
            len: 0,
            parent: None,
            subst: Rc::clone(&none),
        }],
        functions: Vec::new(),
        calls: 0,
        depth: 0,
        instances: vec![BTreeMap::new()],
        kept: usize::MAX,
        call_site: instance.span,
    };
    evaluation.evaluator.at(instance.span);
    let scope = |evaluation: &Evaluation<'_, T>, in_prelude| Scope {
        env: Env { frame: 0, len: evaluation.frames[0].len },
        subst: Rc::clone(&none),
        in_prelude,
    };
    let needed = needed(program, instance.name.as_deref());
    for (definition, in_prelude) in
        prelude.lets.iter().map(|it| (it, true)).chain(needed.into_iter().map(|it| (it, false)))
    {
        let scope = scope(&evaluation, in_prelude);
        evaluation.define(definition, &scope)?;
    }
    let scope = Scope { subst: Rc::clone(&instance.subst), ..scope(&evaluation, false) };
    let value = match (&instance.name, &program.result) {
        (Some(name), _) => match evaluation.lookup(name, scope.env) {
            Some((Binding::Definition(definition), frame)) => {
                evaluation.instance(&definition, frame, scope.subst)?
            }
            Some((Binding::Value(value), _)) => value,
            None => return Err(refuse(instance.span, format!("'{name}' is not defined"))),
        },
        (None, Some(result)) => evaluation.eval(result, &scope)?,
        (None, None) => return Err(refuse(instance.span, "the program has no value")),
    };
    let value = match (&instance.arguments, value) {
        (Some(structures), Value::Function(function)) => {
            let mut parameters = parameters.into_iter();
            let arguments = structures.iter().map(|it| structured(it, &mut parameters)).collect();
            evaluation.apply(function, arguments, instance.span)?
        }
        (_, value) => value,
    };
    let results =
        value.tensors().ok_or_else(|| refuse(instance.span, value.no_tensors("the result")))?;
    Ok((evaluation.evaluator, results))
}

/// Refuses what has sizes that nothing determines.
fn unknown_size(what: &str, site: Span) -> Diagnostic {
    let message = format!("nothing determines the sizes of {what}");
    let hint = "try an annotation, or an option such as 'size=4'";
    Diagnostic::new(Reason::AxonUnknownSize, site, message).note(site, hint)
}

/// A part of a value.
fn part_of<T: Clone>(value: &Value<T>, part: &[usize], span: Span) -> Evaluated<Value<T>> {
    part.iter().try_fold(value.clone(), |whole, &at| match &whole {
        Value::Tuple(parts) => {
            parts.get(at).cloned().ok_or_else(|| refuse(span, "expected more values"))
        }
        _ => Err(refuse(span, "expected several values")),
    })
}

fn structured<T>(structure: &Structure, tensors: &mut std::vec::IntoIter<T>) -> Value<T> {
    match structure {
        Structure::Tensor => Value::Tensor(tensors.next().expect("as many as the instance has")),
        Structure::Tuple(parts) => {
            Value::Tuple(parts.iter().map(|part| structured(part, tensors)).collect())
        }
    }
}

/// The definitions that an entry may use, in order.
fn needed<'p>(program: &'p Program, entry: Option<&str>) -> Vec<&'p Let> {
    let mut names: HashSet<Rc<str>> = HashSet::new();
    match entry {
        Some(entry) => _ = names.insert(entry.into()),
        None => program.result.iter().for_each(|result| collect_names(result, &mut names)),
    }
    let mut needed = Vec::new();
    for definition in program.lets.iter().rev() {
        if defines_any(&definition.pattern, &names) {
            collect_names(&definition.value, &mut names);
            needed.push(definition);
        }
    }
    needed.reverse();
    needed
}

fn defines_any(pattern: &Pattern, names: &HashSet<Rc<str>>) -> bool {
    match pattern {
        Pattern::Ignore(_) => false,
        Pattern::Name(name) => names.contains(&name.text),
        Pattern::Tuple(parts, _) => parts.iter().any(|part| defines_any(part, names)),
    }
}

/// The names in an expression, those that are bound in it as well.
fn collect_names(expr: &Expr, names: &mut HashSet<Rc<str>>) {
    with_stack(|| match &expr.kind {
        ExprKind::Integer(_) | ExprKind::Float(_) => {}
        ExprKind::Name(name) => _ = names.insert(Rc::clone(name)),
        ExprKind::Tuple(parts) => parts.iter().for_each(|part| collect_names(part, names)),
        ExprKind::Call { function, args, .. } => {
            collect_names(function, names);
            args.iter().for_each(|arg| collect_names(arg, names));
        }
        ExprKind::Function(function) => {
            function.lets.iter().for_each(|it| collect_names(&it.value, names));
            collect_names(&function.result, names);
        }
    });
}

impl<'p, T: Evaluator> Evaluation<'p, T> {
    /// The place in the program that a place in it or in the prelude belongs to.
    fn site(&self, scope: &Scope, span: Span) -> Span {
        if scope.in_prelude { self.call_site } else { span }
    }

    fn bind(&mut self, frame: usize, name: &Rc<str>, binding: Binding<'p, T::Tensor>) {
        let frame = &mut self.frames[frame];
        frame.names.entry(Rc::clone(name)).or_default().push((frame.len, binding));
        frame.len += 1;
    }

    /// What a name stands for, and the frame in which it is defined.
    fn lookup(&self, name: &str, env: Env) -> Option<(Binding<'p, T::Tensor>, usize)> {
        let mut next = Some(env);
        while let Some(env) = next {
            let frame = &self.frames[env.frame];
            let definitions = frame.names.get(name).map_or(&[][..], Vec::as_slice);
            if let Some((_, binding)) = definitions.iter().rev().find(|(at, _)| *at < env.len) {
                return Some((binding.clone(), env.frame));
            }
            next = frame.parent;
        }
        None
    }

    fn define(&mut self, definition: &'p Let, scope: &Scope) -> Evaluated<()> {
        let len = self.frames[scope.env.frame].len;
        let mut names = Vec::new();
        let mut pending = vec![(&definition.pattern, Vec::new())];
        while let Some((pattern, part)) = pending.pop() {
            match pattern {
                Pattern::Ignore(_) => {}
                Pattern::Name(name) => names.push((name, part)),
                Pattern::Tuple(parts, _) => {
                    let parts = parts.iter().enumerate().rev();
                    pending.extend(parts.map(|(at, it)| (it, [&part[..], &[at]].concat())));
                }
            }
        }
        let in_prelude = scope.in_prelude;
        let uses = self.uses;
        let is_polymorphic = |name: &Name| uses.polymorphic.contains(&(in_prelude, name.span));
        let value = match !names.is_empty() && names.iter().all(|(name, _)| is_polymorphic(name)) {
            true => None,
            false => Some(self.eval(&definition.value, scope)?),
        };
        for (name, part) in names {
            let binding = match &value {
                Some(value) if !is_polymorphic(name) => {
                    let span = self.site(scope, definition.pattern.span());
                    Binding::Value(part_of(value, &part, span)?)
                }
                _ => {
                    let (value, part) = (&definition.value, part.into());
                    Binding::Definition(Definition { value, part, len, in_prelude })
                }
            };
            self.bind(scope.env.frame, &name.text, binding);
        }
        Ok(())
    }

    /// The value of a definition of a frame at types that it is used at. It is calculated once for these.
    fn instance(
        &mut self,
        definition: &Definition<'p>,
        frame: usize,
        subst: Rc<Subst>,
    ) -> Evaluated<Value<T::Tensor>> {
        let &Definition { value, len, in_prelude, .. } = definition;
        let scope = Scope { env: Env { frame, len }, subst: Rc::clone(&subst), in_prelude };
        let span = self.site(&scope, value.span);
        if value.is_value() {
            return part_of(&self.eval(value, &scope)?, &definition.part, span);
        }
        let place = (frame, (in_prelude, value.span));
        let known = self.instances.last().and_then(|instances| instances.get(&place));
        let known = known.and_then(|known| known.iter().find(|(at, _)| *at == subst));
        let whole = match known {
            Some((_, whole)) => whole.clone(),
            None => {
                let whole = self.eval(value, &scope)?;
                if whole.has_function() {
                    self.kept = self.kept.min(frame);
                }
                if let Some(instances) = self.instances.last_mut() {
                    instances.entry(place).or_default().push((subst, whole.clone()));
                }
                whole
            }
        };
        part_of(&whole, &definition.part, span)
    }

    /// Evaluates the function of a loop.
    fn in_loop<V>(&mut self, evaluate: impl FnOnce(&mut Self) -> V) -> V {
        self.instances.push(BTreeMap::new());
        let value = evaluate(self);
        self.instances.pop();
        value
    }

    fn function(&mut self, function: FunctionValue<'p>) -> Value<T::Tensor> {
        self.functions.push(function);
        Value::Function(Callee(self.functions.len() - 1))
    }

    fn eval(&mut self, expr: &'p Expr, scope: &Scope) -> Evaluated<Value<T::Tensor>> {
        with_stack(|| self.eval_kind(expr, scope))
    }

    fn eval_kind(&mut self, expr: &'p Expr, scope: &Scope) -> Evaluated<Value<T::Tensor>> {
        match &expr.kind {
            ExprKind::Integer(value) => self.number(Number::Integer(*value), expr.span, scope),
            ExprKind::Float(value) => self.number(Number::Float(*value), expr.span, scope),
            ExprKind::Name(name) => match self.lookup(name, scope.env) {
                Some((Binding::Value(value), _)) => Ok(value),
                Some((Binding::Definition(definition), frame)) => {
                    let outer = Rc::clone(&self.frames[frame].subst);
                    let subst = match self.uses.schemes.get(&(scope.in_prelude, expr.span)) {
                        Some((_, renaming)) => {
                            Rc::new(self.types.compose(&outer, renaming, &scope.subst))
                        }
                        None => outer,
                    };
                    self.instance(&definition, frame, subst)
                }
                None => self.builtin_value(name, (scope.in_prelude, expr.span), scope),
            },
            ExprKind::Tuple(parts) => {
                let parts = parts.iter().map(|part| self.eval(part, scope));
                Ok(Value::Tuple(parts.collect::<Evaluated<Vec<_>>>()?.into()))
            }
            ExprKind::Function(function) => {
                Ok(self.function(FunctionValue::Closure(function, scope.clone())))
            }
            ExprKind::Call { function, args, .. } => {
                let builtin = match &function.kind {
                    ExprKind::Name(name) if self.lookup(name, scope.env).is_none() => Some(name),
                    _ => None,
                };
                let function = match builtin {
                    Some(name) => self.builtin_value(name, (scope.in_prelude, expr.span), scope)?,
                    None => self.eval(function, scope)?,
                };
                let args = args.iter().map(|arg| self.eval(arg, scope));
                let args = args.collect::<Evaluated<Vec<_>>>()?;
                let site = self.site(scope, expr.span);
                match function {
                    Value::Function(callee) => self.apply(callee, args, site),
                    _ => Err(refuse(site, "expected a function")),
                }
            }
        }
    }

    /// A built-in function as a value.
    fn builtin_value(
        &mut self,
        name: &Rc<str>,
        place: Place,
        scope: &Scope,
    ) -> Evaluated<Value<T::Tensor>> {
        let Some(declaration) = self.table.get(name) else {
            let message = format!("'{name}' is defined outside of the program, and has no value");
            return Err(refuse(self.site(scope, place.1), message));
        };
        let subst = Rc::clone(&scope.subst);
        Ok(self.function(FunctionValue::Builtin(Rc::clone(declaration), place, subst)))
    }

    /// The value of a function.
    ///
    /// # Errors
    /// What cannot be executed in it, and too many calls.
    pub fn apply(
        &mut self,
        callee: Callee,
        args: Vec<Value<T::Tensor>>,
        span: Span,
    ) -> Evaluated<Value<T::Tensor>> {
        self.calls += 1;
        if T::MAX_CALLS < self.calls {
            let message = format!(
                "the program has more than {} calls once functions are instantiated for each of \
                 their calls",
                T::MAX_CALLS
            );
            let hint = "try 'loop' or 'map' for what is repeated";
            return Err(Diagnostic::new(Reason::AxonLimit, span, message).note(span, hint));
        }
        if MAX_DEPTH < self.depth {
            let message = format!("calls nest more than {MAX_DEPTH} deep");
            return Err(Diagnostic::new(Reason::AxonLimit, span, message));
        }
        let outer_site = self.call_site;
        self.call_site = span;
        self.depth += 1;
        let (frames, functions) = (self.frames.len(), self.functions.len());
        let kept = std::mem::replace(&mut self.kept, usize::MAX);
        let result = with_stack(|| self.call(callee, args, span));
        if matches!(&result, Ok(value) if !value.has_function()) && frames <= self.kept {
            // Nothing refers to what was made for the call.
            self.frames.truncate(frames);
            self.functions.truncate(functions);
            if let Some(instances) = self.instances.last_mut() {
                instances.split_off(&(frames, Place::default()));
            }
        }
        self.kept = kept.min(self.kept);
        self.depth -= 1;
        self.call_site = outer_site;
        self.evaluator.at(outer_site);
        result
    }

    fn call(
        &mut self,
        callee: Callee,
        args: Vec<Value<T::Tensor>>,
        span: Span,
    ) -> Evaluated<Value<T::Tensor>> {
        match self.functions[callee.0].clone() {
            FunctionValue::Builtin(declaration, place, subst) => {
                self.evaluator.at(span);
                self.builtin(&declaration.name.text, place, &subst, args, span)
            }
            FunctionValue::Closure(function, scope) => {
                self.frames.push(Frame {
                    names: HashMap::new(),
                    len: 0,
                    parent: Some(scope.env),
                    subst: Rc::clone(&scope.subst),
                });
                let frame = self.frames.len() - 1;
                for (param, arg) in function.params.iter().zip(args) {
                    self.bind(frame, &param.name.text, Binding::Value(arg));
                }
                let mut inner = Scope { env: Env { frame, len: 0 }, ..scope };
                for definition in &function.lets {
                    inner.env.len = self.frames[frame].len;
                    self.define(definition, &inner)?;
                }
                inner.env.len = self.frames[frame].len;
                self.eval(&function.result, &inner)
            }
        }
    }

    fn number(&mut self, number: Number, span: Span, scope: &Scope) -> Evaluated<Value<T::Tensor>> {
        let ty = self.uses.numbers.get(&(scope.in_prelude, span)).copied();
        let site = self.site(scope, span);
        let ty = ty.ok_or_else(|| refuse(site, "a number without a type"))?;
        let Node::Tensor(elem, shape) = self.types.node(ty) else {
            return Err(refuse(site, "a number that is no tensor"));
        };
        let element = self.types.known_element(elem, &scope.subst);
        if let Number::Integer(value) = number
            && let Some(misfit) = element.misfit(value)
        {
            return Err(refuse(site, misfit));
        }
        let mut shape = self.types.known_shape(&shape, &scope.subst);
        // A number of which nothing is known is a scalar.
        shape.items.retain(|item| match item {
            Item::Dim(_) => true,
            Item::Var(var) => self.types.undetermined.contains(var),
        });
        let dims = self.sizes(&shape, "the number", site)?;
        self.evaluator.at(site);
        let scalar = self.evaluator.number(number, element).map_err(|error| refuse(site, error))?;
        let tensor = match dims.is_empty() {
            true => scalar,
            false => {
                self.evaluator.broadcast(&scalar, &dims).map_err(|error| refuse(site, error))?
            }
        };
        Ok(Value::Tensor(tensor))
    }

    /// The sizes of a shape, which have to be known.
    fn sizes(&self, shape: &Shape, what: &str, site: Span) -> Evaluated<Vec<T::Size>> {
        if is_ragged(shape) {
            let message = format!("{what} is ragged: ragged tensors are not executed");
            return Err(refuse(site, message));
        }
        let arithmetic = self.types.solver.arithmetic();
        let sizes = shape.items.iter().map(|item| self.evaluator.size(item.as_dim()?, arithmetic));
        sizes.collect::<Option<_>>().ok_or_else(|| unknown_size(what, site))
    }

    /// The type of the result of a use of a built-in function.
    fn result_type(
        &mut self,
        ty: Ty,
        subst: &Subst,
        name: &str,
        site: Span,
    ) -> Evaluated<TensorType<T::Size>> {
        let Node::Tensor(elem, shape) = self.types.node(ty) else {
            return Err(refuse(site, format!("'{name}' gives no tensor")));
        };
        let element = self.types.known_element(elem, subst);
        let shape = self.types.known_shape(&shape, subst);
        let dims = self.sizes(&shape, &format!("what '{name}' gives"), site)?;
        Ok(TensorType { element, dims })
    }
}
