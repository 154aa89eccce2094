//! Type errors, with the source locations that they follow from.

use super::super::display::{ANY_TENSOR, Printer, UNKNOWN, comparison};
use super::super::syntax::parser::OptionDeclaration;
use super::super::types::{Class, Difference, Mismatch, Node, Path, Ty, Types};
use super::conditions::Needed;
use super::{Inference, OriginInfo, What, count};
use crate::text::{Diagnostic, Reason, Span};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use tc_ir::shape::{
    Dim, Item, RankEquation, Shape,
    solve::{Clash, Conflict, Mark, Origin, Reason as Contradiction, Relation, Renaming},
    text::{DimExpr, Part},
};

/// Most places that an error lists.
const MAX_NOTES: usize = 12;

impl Inference {
    /// A type as text, with `_` and `...` for what is not known and has no name.
    pub(crate) fn anonymous(&mut self, ty: Ty) -> String {
        let mut printer = Printer::anonymous(self.known_names());
        printer.ty(&mut self.types, ty)
    }

    /// The same, with what is asked of element types that are not known.
    fn with_classes(&mut self, ty: Ty) -> String {
        let mut printer = Printer::anonymous(self.known_names()).with_classes();
        printer.ty(&mut self.types, ty)
    }

    /// The type of an annotation as it is written.
    fn as_written(&mut self, ty: Ty) -> String {
        Printer::written(self.names.written()).ty(&mut self.types, ty)
    }

    pub(crate) fn report_mismatch(&mut self, mismatch: Mismatch, origin: Origin) {
        let Mismatch { difference, path, core } = mismatch;
        let info = self.origins[origin as usize].clone();
        let place = format!("{}{}", Path::prefix(path.as_ref()), info.describe());
        // Types are shown with what is known.
        self.solve(None, 0);
        let a = |class: Class| match class {
            Class::Integer => "an integer".to_string(),
            _ => format!("a {}", class.name()),
        };
        let (reason, message) = match difference {
            Difference::Kinds(expected, found) => {
                let (expected, found) = (self.anonymous(expected), self.anonymous(found));
                (Reason::AxonType, format!("{place}: expected {expected}, found {found}"))
            }
            Difference::Arity(a, b) => (
                Reason::AxonArity,
                format!(
                    "{place}: expected a function of {}, found one of {b}",
                    count(a, "parameter")
                ),
            ),
            Difference::Size(a, b) => {
                (Reason::AxonArity, format!("{place}: expected {}, found {b}", count(a, "value")))
            }
            Difference::Elements(a, b) => (
                Reason::AxonElement,
                format!("{place}: element types {} and {} differ", a.name(), b.name()),
            ),
            Difference::NotOf(class, found) => (
                Reason::AxonElement,
                format!("{place}: expected {} element type, found {}", a(class), found.name()),
            ),
            Difference::Known(expected, class) => (
                Reason::AxonElement,
                format!("{place}: expected {}, found {}", expected.name(), a(class)),
            ),
            Difference::Classes(expected, class) => (
                Reason::AxonElement,
                format!("{place}: expected {} element type, found {}", a(expected), a(class)),
            ),
            Difference::Endless => (
                Reason::AxonType,
                format!("{place}: a type that would contain itself; a parameter has one type only"),
            ),
        };
        let mut error = Diagnostic::new(reason, info.span, message);
        self.notes(&mut error, &core, Some(origin));
        self.report(error);
    }

    /// Adds the places that an error follows from.
    pub(super) fn notes(
        &mut self,
        error: &mut Diagnostic,
        core: &[Origin],
        except: Option<Origin>,
    ) {
        let mut printer = Printer::anonymous(self.known_names());
        self.notes_as(error, core, except, &mut printer, &BTreeSet::new());
    }

    /// Adds the places that an error follows from. The types of some are printed by what a printer knows.
    fn notes_as(
        &mut self,
        error: &mut Diagnostic,
        core: &[Origin],
        except: Option<Origin>,
        printer: &mut Printer,
        known: &BTreeSet<Origin>,
    ) {
        let is_shown = |origin: &Origin| {
            Some(*origin) != except && !matches!(self.origins[*origin as usize].what, What::Entry)
        };
        let mut places: Vec<Origin> = core.iter().copied().filter(is_shown).collect();
        let literals: HashMap<Span, &str> = core
            .iter()
            .filter_map(|&origin| match self.origins[origin as usize] {
                OriginInfo { span, what: What::Literal(class), .. } => Some((span, class.name())),
                _ => None,
            })
            .collect();
        // An argument that is a number, or its name, says what the number is.
        let is_literal =
            |info: &OriginInfo| matches!(info.what, What::Literal(_) | What::ValueUse(_));
        let others = places.iter().map(|&origin| &self.origins[origin as usize]);
        let others = others.filter(|info| !is_literal(info)).map(|info| info.span);
        let said: HashSet<Span> = others.chain([error.span]).collect();
        places.retain(|&origin| {
            let info = &self.origins[origin as usize];
            !is_literal(info) || !said.contains(&info.span)
        });
        places.sort_by_key(|&origin| self.origins[origin as usize].span);
        places.dedup_by_key(|&mut origin| {
            let info = &self.origins[origin as usize];
            (info.span, info.describe())
        });
        if let (true, Some(place)) = (places.is_empty(), except)
            && let Some(ty) = self.origins[place as usize].found
        {
            self.note_definition(error, ty);
        }
        let shown = places.len().min(MAX_NOTES);
        for &place in &places[..shown] {
            let info = self.origins[place as usize].clone();
            let is_number = self.is_number(info.span);
            let text = match (&info.what, info.found) {
                (What::Use(name), _) => format!("in the call of '{name}' here"),
                (What::ValueUse(name), _) if self.is_number_use(info.span) => {
                    format!("'{name}' is a number here")
                }
                (What::ValueUse(name), _) => format!("in the use of '{name}' here"),
                (What::Scalar, _) => "a number is a scalar here".to_string(),
                (What::Literal(class), _) => format!("a {} is written here", class.name()),
                (_, Some(_)) if is_number => {
                    let class = literals.get(&info.span).unwrap_or(&"number");
                    format!("{} is a {class}", info.describe())
                }
                (what, Some(ty)) => {
                    let ty = match what {
                        What::Annotation(_) | What::ResultAnnotation => self.as_written(ty),
                        _ if known.contains(&place) => printer.ty(&mut self.types, ty),
                        _ if error.reason == Reason::AxonElement => self.with_classes(ty),
                        _ => self.anonymous(ty),
                    };
                    match ty == ANY_TENSOR || ty == UNKNOWN {
                        true => info.describe(),
                        false => format!("{} is {ty}", info.describe()),
                    }
                }
                (_, None) => info.describe(),
            };
            error.notes.push((info.span, text));
        }
        if let Some(&next) = places.get(shown) {
            let rest = places.len() - shown;
            let span = self.origins[next as usize].span;
            error.notes.push((span, format!("and {rest} more places, from here")));
        }
    }

    /// Adds where the value of a type is defined, if it has a name.
    pub(super) fn note_definition(&mut self, error: &mut Diagnostic, ty: Ty) {
        let sources = self.types.sources(ty);
        let is_source = |ty: &Ty| sources.contains(ty);
        let named = self.named.iter().rev().find(|(_, _, named)| is_source(named));
        let Some((name, span, _)) = named.cloned() else { return };
        let shown = match self.uses.numbers.values().any(is_source) {
            true => "a number".to_string(),
            false => self.anonymous(ty),
        };
        error.notes.push((span, format!("'{name}' is {shown}")));
    }

    /// Whether a name stands for a number, or for what is made of numbers alone.
    fn is_number_use(&self, span: Span) -> bool {
        self.uses.types.get(&span).is_some_and(|ty| self.numbers.contains(ty))
    }

    /// Whether a number is written at a place of the program.
    fn is_number(&self, span: Span) -> bool {
        self.uses.numbers.contains_key(&(self.in_prelude, span))
    }

    /// The options of a call of a built-in function that it does not give and nothing determines: a size, or
    /// a shape.
    fn open_options(&mut self, origin: Origin) -> Vec<(Rc<str>, Item)> {
        let OriginInfo { span, what, .. } = &self.origins[origin as usize];
        let (What::Call(name), span) = (what, *span) else { return Vec::new() };
        let used = self.uses.builtins.get(&(self.in_prelude, span));
        let (Some(used), Some(declaration)) = (used, self.builtins.get(name)) else {
            return Vec::new();
        };
        let mut open = Vec::new();
        let is_open = |option: &&OptionDeclaration| {
            option.default.is_none() && !used.options.contains(&option.name.text)
        };
        for option in declaration.options.iter().filter(is_open) {
            let sizes = option.meaning.parts.iter().flat_map(|part| match part {
                Part::Dims(dims) => dims.as_slice(),
                Part::Name(_) => &[],
            });
            let sizes = sizes.filter_map(|dim| match dim {
                DimExpr::Name(name) => used.dims.get(&name.text).cloned().map(Item::Dim),
                _ => None,
            });
            let shapes = option.meaning.parts.iter().filter_map(|part| match part {
                Part::Name(name) => used.shapes.get(&name.text).cloned(),
                Part::Dims(_) => None,
            });
            let all = sizes.chain(shapes.flat_map(|shape| shape.items));
            for item in all.collect::<Vec<_>>() {
                let shape = self.types.solver.resolved_shape(&Shape::from_iter([item]));
                let [item @ (Item::Var(_) | Item::Dim(Dim::Var(_)))] = &shape.items[..] else {
                    continue;
                };
                open.push((Rc::clone(&option.name.text), item.clone()));
            }
        }
        open
    }

    /// Which options might be given.
    pub(crate) fn option_hint(&mut self, origin: Origin) -> Option<String> {
        let (option, item) = self.open_options(origin).into_iter().next()?;
        let value = if item.as_dim().is_some() { ".." } else { "[..]" };
        Some(format!("'{option}' is not given; try '{option}={value}' here"))
    }

    /// The place to report a contradiction at: the last one that a reader comes to, or that of the
    /// equation which does not hold if the others and this one do.
    fn clash(&mut self, conflict: &Conflict) -> (Origin, Option<Clash>) {
        let info = |origin: Origin| &self.origins[origin as usize];
        let read = |origin: &Origin| {
            let OriginInfo { span, what, .. } = info(*origin);
            (matches!(what, What::Given(..)), span.end, Reverse(span.start), *origin)
        };
        let Some(last) = conflict.places.iter().copied().max_by_key(read) else {
            return (conflict.origin, None);
        };
        // What is decided about an operation depends on what its result has to be.
        let is_operation = |origin: &Origin| {
            let OriginInfo { span, what, .. } = info(*origin);
            matches!(what, What::Pointwise(_)) && *span == info(last).span
        };
        let operation = conflict.places.iter().copied().find(is_operation);
        let mut tried = operation.into_iter().chain([last]);
        let mut next = tried.next();
        for _ in 0..3 {
            let Some(origin) = next else { break };
            match self.types.solver.clash(conflict, origin) {
                Ok(clash) => return (origin, Some(clash)),
                Err(other) => next = tried.next().or(other),
            }
        }
        (conflict.origin, None)
    }

    /// Where a user says what a parameter is, if the parameter as the program has it, which is no place that
    /// a reader knows, is to contradict that. What is given is what is found then.
    fn given(
        &mut self,
        conflict: &Conflict,
        origin: Origin,
        relation: &mut Relation,
        reason: &mut Contradiction,
    ) -> Option<Origin> {
        let is_run = matches!(self.origins[origin as usize].what, What::Entry);
        let Relation::Shapes(a, b) = relation else { return None };
        conflict.places.iter().filter(|_| is_run).find_map(|&place| {
            let OriginInfo { what: What::Given(..), found: Some(ty), .. } =
                self.origins[place as usize]
            else {
                return None;
            };
            let Node::Tensor(_, given) = self.types.node(ty) else { return None };
            if given == *a {
                std::mem::swap(a, b);
                match reason {
                    Contradiction::Dims(a, b) => std::mem::swap(a, b),
                    Contradiction::Rank(a, b) => std::mem::swap(a, b),
                    _ => {}
                }
            }
            (given == *b).then_some(place)
        })
    }

    /// The shapes of what a point-wise operation works on.
    fn operands(&mut self, span: Span, printer: &mut Printer) -> Vec<Shape> {
        let used = self.uses.builtins.get(&(self.in_prelude, span));
        let Some(Node::Function(params, _)) = used.map(|used| self.types.node(used.function))
        else {
            return Vec::new();
        };
        let shapes = params.into_iter().filter_map(|param| match self.types.node(param) {
            Node::Tensor(_, shape) => Some(printer.resolved_shape(&mut self.types, &shape)),
            _ => None,
        });
        shapes.collect()
    }

    pub(super) fn report_conflict(&mut self, conflict: &Conflict) {
        let (mut origin, clash) = self.clash(conflict);
        let (mut relation, mut equation, is_result, mut reason, mut view) = match clash {
            Some(it) => (it.relation, it.equation, it.is_result, it.reason, Some(it.known)),
            None => {
                let Conflict { relation, equation, is_result, reason, .. } = conflict;
                (relation.clone(), Some(*equation), *is_result, reason.clone(), None)
            }
        };
        if let Some(given) = self.given(conflict, origin, &mut relation, &mut reason) {
            (origin, equation) = (given, None);
        }
        let info = self.origins[origin as usize].clone();
        let names = match &mut view {
            Some(view) => self.names.known(&mut self.types, &mut |_, shape| view.shape(shape)),
            None => self.known_names(),
        };
        let mut printer = Printer::anonymous(names).view(view).reserve(self.reserved());
        for (option, item) in self.open_options(origin) {
            if let Item::Dim(Dim::Var(var)) = item {
                printer.call(var, option);
            }
        }
        let part = equation.and_then(|equation| self.types.parts.get(&equation));
        let part = Path::prefix(part);
        let place = format!("{part}{}", info.describe());
        if let Contradiction::Arithmetic(limit) = reason
            && limit.is_limit()
        {
            let mut error =
                Diagnostic::new(Reason::AxonLimit, info.span, format!("{place}: {limit}"));
            self.notes(&mut error, &conflict.core, Some(origin));
            return self.report(error);
        }
        let needs = info.needs();
        if let Some(needed) = self.needed(origin, &relation, &mut printer) {
            let mut message = format!("{place} {needs} {}", needed.text);
            if !needed.is_known {
                let why = why(&mut self.types, &mut printer, &relation, &reason);
                message += &format!(": {why}");
            }
            return self.report_at(conflict, origin, message, printer, Some(needed));
        }
        let operands = match &info.what {
            What::Pointwise(_) => Some(self.operands(info.span, &mut printer)),
            _ => None,
        };
        let types = &mut self.types;
        let both = match &relation {
            Relation::Shapes(a, b) => {
                let is_broadcast = operands.is_some_and(|operands| !operands.contains(a));
                let a = &if is_broadcast { operand(a) } else { a.clone() };
                printer.name_repeated(types, &[a, b]);
                let (a, b) = (printer.shape(types, a), printer.shape(types, b));
                match &info.what {
                    What::Pointwise(name) if is_result => {
                        format!("result of '{name}' has shape {b}, expected {a}")
                    }
                    What::Pointwise(_) => format!("{place} have shapes {b} and {a}"),
                    // A condition of what is used, or how a part of its type follows from others.
                    What::Use(_) => format!("{place} {needs} {b} = {a}"),
                    _ => format!("{place} has shape {b}, expected {a}"),
                }
            }
            Relation::Elements(a, b) => {
                let is_open = [a, b].map(|it| printer.resolved_shape(types, it).as_var().is_some());
                if let (Contradiction::RaggedElements(_), [true, _] | [_, true]) =
                    (&reason, is_open)
                {
                    let ragged = printer.shape(types, if is_open[0] { b } else { a });
                    let message =
                        format!("{place}: shape {ragged} is ragged, and has no number of elements");
                    return self.report_at(conflict, origin, message, printer, None);
                }
                printer.name_repeated(types, &[a, b]);
                let (a, b) = (printer.shape(types, a), printer.shape(types, b));
                format!("{place}: shapes {b} and {a} have different numbers of elements")
            }
            Relation::Dims(a, b) => {
                printer.name_repeated(types, &[&Shape::dims([a.clone(), b.clone()])]);
                let (a, b) = (printer.dim_text(types, a), printer.dim_text(types, b));
                format!("{place} {needs} {a} = {b}")
            }
            Relation::Positive(a) => {
                printer.name_repeated(types, &[&Shape::dims([a.clone()])]);
                match comparison(types.solver.arithmetic(), a) {
                    Some((less, sign, more)) => {
                        let (less, more) =
                            (printer.dim_text(types, &less), printer.dim_text(types, &more));
                        format!("{place} {needs} {less} {sign} {more}")
                    }
                    None => {
                        let found = printer.dim_text(types, a);
                        let message = format!("{place} {needs} a positive size, found {found}");
                        if let Dim::Constant(_) = printer.resolved_dim(types, a) {
                            return self.report_at(conflict, origin, message, printer, None);
                        }
                        message
                    }
                }
            }
        };
        let why = why(types, &mut printer, &relation, &reason);
        self.report_at(conflict, origin, format!("{both}: {why}"), printer, None);
    }

    /// Reports a contradiction with the places that it follows from, and what the names in it are.
    fn report_at(
        &mut self,
        conflict: &Conflict,
        origin: Origin,
        message: String,
        mut printer: Printer,
        needed: Option<Needed>,
    ) {
        let span = self.origins[origin as usize].span;
        let mut error = Diagnostic::new(Reason::AxonShape, span, message);
        let entry = self.run.as_ref().map_or(0, |run| run.origin);
        let places = conflict.places.iter().copied().filter(|place| entry <= *place).collect();
        self.notes_as(&mut error, &conflict.core, Some(origin), &mut printer, &places);
        if !conflict.minimal {
            let text = "some of these places may not matter: no fewer were found that say the same";
            error.notes.push((error.span, text.to_string()));
        }
        self.explain_names(&mut error, &mut printer, &[]);
        if let Some(Needed { mut printer, function, .. }) = needed {
            self.explain_names(&mut error, &mut printer, &[function]);
        }
        if let Some(hint) = self.option_hint(origin) {
            error.notes.push((span, hint));
        }
        self.report(error);
    }
}

/// The operand in an equation of a point-wise operation, without the dimensions that it is broadcast
/// along.
fn operand(shape: &Shape) -> Shape {
    match shape.items.as_slice() {
        [Item::Var(_), rest @ ..] if !rest.is_empty() => rest.iter().cloned().collect(),
        _ => shape.clone(),
    }
}

/// Why a condition does not hold.
fn why(
    types: &mut Types,
    printer: &mut Printer,
    relation: &Relation,
    reason: &Contradiction,
) -> String {
    match reason {
        Contradiction::Dims(a, b) => {
            if let Relation::Shapes(expected, found) = relation
                && let Some(ranks) = ranks(expected, found)
            {
                return ranks;
            }
            let Some((a, b)) = differing(types, relation, (a, b)) else {
                return "no sizes fit all of these places".to_string();
            };
            let known =
                [&a, &b].into_iter().all(|dim| matches!(dim, Dim::Constant(_) | Dim::Ragged));
            let is_not = if known { "is not" } else { "is never" };
            let (a, b) = (printer.dim_text(types, &a), printer.dim_text(types, &b));
            format!("size {b} {is_not} {a}")
        }
        Contradiction::Rank(a, b) => {
            let shown = match relation {
                Relation::Shapes(expected, found) => ranks(expected, found),
                _ => None,
            };
            let together = || "no ranks fit all of these places".to_string();
            shown.or_else(|| ranks(a, b)).unwrap_or_else(together)
        }
        Contradiction::Sizes => "no sizes fit all of these places".to_string(),
        Contradiction::Endless(..) => "the shape would contain itself".to_string(),
        Contradiction::NotPositive(a) => match (relation, a) {
            (_, Dim::Constant(_)) => {
                format!("size {} is not positive", printer.dim_text(types, a))
            }
            _ => "all sizes are at least 1".to_string(),
        },
        Contradiction::RaggedElements(_) => "a ragged tensor has no number of elements".to_string(),
        Contradiction::Arithmetic(error) => error.to_string(),
    }
}

/// The first two sizes at one place that differ, or are never equal; of what has no shapes, those that were found.
fn differing(types: &Types, relation: &Relation, found: (&Dim, &Dim)) -> Option<(Dim, Dim)> {
    let Relation::Shapes(left, right) = relation else {
        return Some((found.0.clone(), found.1.clone()));
    };
    let pairs = |left: &[Item], right: &[Item]| -> Vec<(Dim, Dim)> {
        let pairs = left.iter().zip(right);
        pairs.map_while(|(a, b)| Some((a.as_dim()?.clone(), b.as_dim()?.clone()))).collect()
    };
    let mut all = pairs(&left.items, &right.items);
    if left.as_dims().is_none() || right.as_dims().is_none() {
        let backwards = |shape: &Shape| shape.items.iter().rev().cloned().collect::<Shape>();
        all.extend(pairs(&backwards(left).items, &backwards(right).items));
    }
    let is_known = |dim: &Dim| matches!(dim, Dim::Constant(_) | Dim::Ragged);
    let differ = |(a, b): &&(Dim, Dim)| is_known(a) && is_known(b) && a != b;
    let never = |(a, b): &&(Dim, Dim)| {
        let mut solver = types.solver.sibling();
        let mut renaming = Renaming::default();
        for var in solver.vars(&Relation::Dims(a.clone(), b.clone())).1 {
            renaming.dims.insert(var, solver.dim_var(0));
        }
        let [a, b] = [a, b].map(|dim| renaming.dim(solver.arithmetic(), dim));
        solver.given(Relation::Dims(a, b), 0);
        solver.solve().is_err() || solver.settle(Mark::default(), 0).is_err()
    };
    if let Some(pair) = all.iter().find(differ).or_else(|| all.iter().find(never)) {
        return Some(pair.clone());
    }
    // Sizes at several places that one variable is equal to.
    let stands = |dim: &Dim| all.iter().any(|(a, b)| a == dim || b == dim);
    let both = is_known(found.0) && is_known(found.1) && stands(found.0) && stands(found.1);
    both.then(|| (found.0.clone(), found.1.clone()))
}

/// Why two shapes have different ranks, whatever their variables stand for; `None` if they may have the
/// same.
fn ranks(expected: &Shape, found: &Shape) -> Option<String> {
    let ranks = RankEquation::new(found, expected);
    let rank = |shape: &Shape| match shape.as_dims() {
        Some(dims) => format!("rank {}", dims.len()),
        None => format!("rank {} or more", shape.min_rank()),
    };
    let either = expected.as_dims().is_some() || found.as_dims().is_some();
    let differ = |but: &str| {
        let difference = usize::try_from(ranks.num_dims.unsigned_abs()).unwrap_or(usize::MAX);
        Some(match either {
            true => format!("{} is not {}", rank(found), rank(expected)),
            false => format!("one has {but}{} more than the other", count(difference, "dimension")),
        })
    };
    if !ranks.is_impossible() {
        return None;
    }
    if ranks.counts.is_empty() {
        return differ("");
    }
    // `whole` dimensions and variables on one side, more dimensions on the other.
    let whole = if ranks.is_swapped { expected } else { found }.min_rank();
    let Ok(rest) = usize::try_from(ranks.num_dims) else { return differ("at least ") };
    let parts = ranks.divisor();
    Some(match whole {
        0 => format!("rank {rest} is no multiple of {parts}"),
        _ => format!("{} more is no multiple of {parts}", count(rest, "dimension")),
    })
}
