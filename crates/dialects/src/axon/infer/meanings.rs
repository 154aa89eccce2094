//! Explains variables that a program does not name, in terms of the program.

use super::super::display::Printer;
use super::super::types::{Node, Path, Step, Ty};
use super::{BuiltinUse, Inference, OriginInfo, Place, What};
use crate::text::{Diagnostic, Span};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use tc_ir::shape::{Arithmetic, Dim, Item, Shape};

/// A value of a program: its name if it has one, its place and its type.
pub(crate) type Valued = (Option<Rc<str>>, Span, Ty);

/// Most parts of types that are looked at for a variable.
const MAX_LOOKED_AT: usize = 1 << 14;

impl Inference {
    /// The names of the program that stand for values.
    pub(crate) fn reserved(&self) -> HashSet<Rc<str>> {
        self.named.iter().map(|(name, ..)| Rc::clone(name)).collect()
    }

    /// The values of the program, those with names first.
    pub(crate) fn values(&self) -> Vec<Valued> {
        let named = self.named.iter();
        let mut values: Vec<Valued> =
            named.map(|(name, span, ty)| (Some(Rc::clone(name)), *span, *ty)).collect();
        let uses: HashMap<Span, &Rc<str>> = self.origins.iter().filter_map(used).collect();
        let mut others: Vec<(Span, Ty)> =
            self.uses.types.iter().map(|(span, ty)| (*span, *ty)).collect();
        // Small ones first.
        others.sort_unstable_by_key(|(span, _)| (span.end, Reverse(span.start)));
        let name = |span: &Span| uses.get(span).map(|name| Rc::clone(name));
        values.extend(others.into_iter().map(|(span, ty)| (name(&span), span, ty)));
        values
    }

    /// The uses of built-in functions.
    fn builtins(&self) -> Vec<Valued> {
        let uses = self.uses.builtins.iter().filter(|((in_prelude, _), _)| !in_prelude);
        let value = |((_, span), used): (&Place, &BuiltinUse)| {
            (Some(Rc::clone(&used.name)), *span, used.function)
        };
        let mut values: Vec<Valued> = uses.map(value).collect();
        values.sort_unstable_by_key(|(_, span, _)| *span);
        values
    }

    /// Adds a note for each variable that was given a name in a text.
    pub(crate) fn explain_names(
        &mut self,
        error: &mut Diagnostic,
        printer: &mut Printer,
        first: &[Valued],
    ) {
        let invented = std::mem::take(&mut printer.invented);
        if invented.is_empty() {
            return;
        }
        let mut values = first.to_vec();
        values.extend(self.values());
        let alone = |_: &Arithmetic, shape: &Shape, var: &Item| position(shape, var);
        let mut found = self.meanings(&invented, printer, &values, &alone);
        if found.len() < invented.len() {
            // What does not matter for an error may say it.
            let mut all = Printer::default();
            let root = |(var, name): &(Item, String)| {
                let shape = Shape::from_iter([var.clone()]);
                let root = self.types.solver.resolved_shape(&shape).items.into_iter().next();
                let is_var = |it: &Item| matches!(it, Item::Var(_) | Item::Dim(Dim::Var(_)));
                (root.filter(is_var).unwrap_or_else(|| var.clone()), name.clone())
            };
            let roots: Vec<_> = invented.iter().map(root).collect();
            let others = self.meanings(&roots, &mut all, &values, &alone);
            let builtins = self.builtins();
            let of_builtins = self.meanings(&invented, printer, &builtins, &alone);
            values.extend(builtins);
            let inside = self.meanings(&invented, printer, &values, &inside);
            for (place, text) in others.into_iter().chain(of_builtins).chain(inside) {
                found.entry(place).or_insert(text);
            }
        }
        for (place, (var, name)) in invented.iter().enumerate() {
            let (span, text) = found.remove(&place).unwrap_or_else(|| {
                let text = match var {
                    Item::Var(_) => "any dimensions that these places leave open",
                    Item::Dim(_) => "a size that these places leave open",
                };
                (error.span, text.to_string())
            });
            error.notes.push((span, format!("'{name}' is {text}")));
        }
    }

    /// Where variables stood before anything was known, of those that stood somewhere.
    pub(super) fn first_places(
        &mut self,
        invented: &[(Item, String)],
    ) -> HashMap<usize, (Span, String)> {
        let mut printer = Printer::written(Rc::default());
        let values = [self.values(), self.builtins()].concat();
        let alone = |_: &Arithmetic, shape: &Shape, var: &Item| position(shape, var);
        let mut found = self.meanings(invented, &mut printer, &values, &alone);
        for (place, text) in self.meanings(invented, &mut printer, &values, &inside) {
            found.entry(place).or_insert(text);
        }
        found
    }

    /// Where variables stand: the first value in whose shape each of them has a position.
    fn meanings(
        &mut self,
        wanted: &[(Item, String)],
        printer: &mut Printer,
        values: &[Valued],
        position: &dyn Fn(&Arithmetic, &Shape, &Item) -> Option<String>,
    ) -> HashMap<usize, (Span, String)> {
        let mut found = HashMap::new();
        let mut looked_at = 0;
        for (name, span, ty) in values {
            let mut pending = vec![(*ty, None)];
            while let Some((ty, path)) = pending.pop() {
                looked_at += 1;
                if found.len() == wanted.len() || MAX_LOOKED_AT < looked_at {
                    return found;
                }
                let then = |step| Path::then(path.as_ref(), step);
                match self.types.node(ty) {
                    Node::Tensor(_, shape) => {
                        let shape = printer.resolved_shape(&mut self.types, &shape);
                        for (place, (var, _)) in wanted.iter().enumerate() {
                            let arithmetic = self.types.solver.arithmetic();
                            let Some(text) = position(arithmetic, &shape, var) else { continue };
                            found.entry(place).or_insert_with(|| {
                                let whole = match name {
                                    Some(name) => format!("'{name}'"),
                                    None => "this value".to_string(),
                                };
                                (*span, format!("{text} of {}{whole}", Path::prefix(path.as_ref())))
                            });
                        }
                    }
                    Node::Tuple(parts) => {
                        let parts = parts.into_iter().enumerate().rev();
                        pending.extend(parts.map(|(at, ty)| (ty, then(Step::Part(at)))));
                    }
                    Node::Function(params, result) => {
                        pending.push((result, then(Step::Result)));
                        let params = params.into_iter().enumerate().rev();
                        pending.extend(params.map(|(at, ty)| (ty, then(Step::Parameter(at + 1)))));
                    }
                    Node::Var(_) | Node::Link(_) | Node::Error => {}
                }
            }
        }
        found
    }
}

/// The place of a use of a definition, and its name.
fn used(origin: &OriginInfo) -> Option<(Span, &Rc<str>)> {
    match &origin.what {
        What::Use(name) | What::ValueUse(name) => Some((origin.span, name)),
        _ => None,
    }
}

/// The dimension of a shape in which a variable stands with others.
fn inside(arithmetic: &Arithmetic, shape: &Shape, var: &Item) -> Option<String> {
    let Item::Dim(Dim::Var(var)) = var else { return None };
    let stands = |item: &Item| item.as_dim().is_some_and(|it| arithmetic.vars(it).contains(var));
    let place = shape.items.iter().position(stands)?;
    Some(match shape.items[..place].iter().all(|item| item.as_dim().is_some()) {
        true => format!("in dimension {place}"),
        false => "in a dimension".to_string(),
    })
}

/// Where a variable stands in a shape, if it stands there alone.
fn position(shape: &Shape, var: &Item) -> Option<String> {
    let place = shape.items.iter().position(|item| item == var)?;
    let (before, after) = (&shape.items[..place], &shape.items[place + 1..]);
    let has_rank = |items: &[Item]| items.iter().all(|item| item.as_dim().is_some());
    Some(match var {
        Item::Dim(Dim::Var(_)) if has_rank(before) => format!("dimension {place}"),
        Item::Dim(Dim::Var(_)) if has_rank(after) => match after.len() {
            0 => "the last dimension".to_string(),
            n => format!("dimension {} from the end", n + 1),
        },
        Item::Dim(_) => "a dimension".to_string(),
        Item::Var(_) => match (before.len(), after.len()) {
            (0, 0) => "the shape".to_string(),
            (0, n) if has_rank(after) => format!("the shape without the last {n}"),
            (n, 0) if has_rank(before) => format!("the shape without the first {n}"),
            _ => "a part of the shape".to_string(),
        },
    })
}
