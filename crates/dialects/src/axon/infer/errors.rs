//! What is wrong, with the places that it follows from.

use super::super::display::Printer;
use super::super::types::{Mismatch, Ty, Types};
use super::{Inference, OriginInfo, What, count};
use crate::tc::syntax::{Diagnostic, Reason};
use std::rc::Rc;
use tc_ir::shape::{
    Dim, DimOp, DimVar, Shape,
    solve::{Conflict, Origin, Reason as Contradiction, Relation},
    text::{DimExpr, Part},
};

/// Most places that an error lists.
const MAX_NOTES: usize = 12;

impl Inference {
    /// A type as text, with `_` and `...` for what is not known and has no name.
    pub(crate) fn anonymous(&mut self, ty: Ty) -> String {
        let mut printer = Printer::anonymous(self.names.known(&mut self.types));
        printer.ty(&mut self.types, ty)
    }

    pub(crate) fn report_mismatch(
        &mut self,
        mismatch: Mismatch,
        origin: Origin,
        expected: Ty,
        found: Ty,
    ) {
        let info = self.origins[origin as usize].clone();
        let place = info.describe();
        let (mut expected, mut found) = (self.anonymous(expected), self.anonymous(found));
        let mut core = Vec::new();
        let (reason, message) = match mismatch {
            Mismatch::Kinds(a, b) => {
                let (a, b) = (self.anonymous(a), self.anonymous(b));
                if a != expected && b != found {
                    (expected, found) = (a, b);
                }
                (Reason::AxonType, format!("{place}: expected {expected}, found {found}"))
            }
            Mismatch::Arity(a, b) => (
                Reason::AxonArity,
                format!(
                    "{place}: expected a function of {}, found one of {b}",
                    count(a, "parameter")
                ),
            ),
            Mismatch::Size(a, b) => {
                (Reason::AxonArity, format!("{place}: expected {}, found {b}", count(a, "value")))
            }
            Mismatch::Elements(a, b, path) => {
                core = path;
                (
                    Reason::AxonElement,
                    format!("{place}: element types {} and {} differ", a.name(), b.name()),
                )
            }
            Mismatch::Class(name, class) => (
                Reason::AxonElement,
                format!("{place}: expected a {} element type, found {name}", class.name()),
            ),
            Mismatch::Endless => (
                Reason::AxonType,
                format!("{place}: a type that would contain itself; a parameter has one type only"),
            ),
        };
        let mut error = Diagnostic::new(reason, info.span, message);
        self.notes(&mut error, &core, Some(origin), true);
        self.report(error);
    }

    /// Adds the places that an error follows from.
    pub(super) fn notes(
        &mut self,
        error: &mut Diagnostic,
        core: &[Origin],
        except: Option<Origin>,
        minimal: bool,
    ) {
        let mut places: Vec<OriginInfo> = core
            .iter()
            .filter(|&&origin| Some(origin) != except)
            .map(|&origin| self.origins[origin as usize].clone())
            .collect();
        places.sort_by_key(|place| place.span);
        places.dedup_by_key(|place| place.span);
        let shown = places.len().min(MAX_NOTES);
        for place in &places[..shown] {
            let text = match place.found {
                Some(ty) => format!("{} is {}", place.describe(), self.anonymous(ty)),
                None => place.describe(),
            };
            error.notes.push((place.span, text));
        }
        if shown < places.len() {
            let rest = places.len() - shown;
            error.notes.push((places[shown].span, format!("and {rest} more places, from here")));
        }
        if !minimal {
            let text = "some of these places may not matter: the search for fewer took too long";
            error.notes.push((error.span, text.to_string()));
        }
    }

    /// The options of a call of a built-in function that it does not give and nothing determines.
    fn open_options(&mut self, origin: Origin) -> Vec<(Rc<str>, DimVar)> {
        let OriginInfo { span, what, .. } = &self.origins[origin as usize];
        let (What::Call(name), span) = (what, *span) else { return Vec::new() };
        let used = self.uses.builtins.get(&(self.in_prelude, span));
        let (Some(used), Some(declaration)) = (used, self.builtins.get(name)) else {
            return Vec::new();
        };
        let mut open = Vec::new();
        for option in declaration.options.iter().filter(|option| option.default.is_none()) {
            let dims = option.meaning.parts.iter().flat_map(|part| match part {
                Part::Dims(dims) => dims.as_slice(),
                Part::Name(_) => &[],
            });
            for dim in dims {
                if let DimExpr::Name(name) = dim
                    && let Some(dim) = used.dims.get(&name.text)
                    && let Dim::Var(var) = self.types.solver.resolved_dim(dim)
                {
                    open.push((Rc::clone(&option.name.text), var));
                }
            }
        }
        open
    }

    /// Which options might be given.
    pub(crate) fn option_hint(&mut self, origin: Origin) -> Option<String> {
        let (option, _) = self.open_options(origin).into_iter().next()?;
        Some(format!("'{option}' is not given and follows from nothing; try '{option}=..' here"))
    }

    pub(super) fn report_conflict(&mut self, conflict: &Conflict) {
        let info = self.origins[conflict.origin as usize].clone();
        let mut printer = Printer::anonymous(self.names.known(&mut self.types));
        for (option, var) in self.open_options(conflict.origin) {
            printer.call(var, option);
        }
        let types = &mut self.types;
        let place = info.describe();
        let needs = info.needs();
        let both = match &conflict.relation {
            Relation::Shapes(a, b) => {
                let (a, b) = (printer.shape(types, a), printer.shape(types, b));
                match info.what {
                    What::Pointwise(_) => format!("{place} have shapes {b} and {a}"),
                    _ => format!("{place} has shape {b}, expected {a}"),
                }
            }
            Relation::Elements(a, b) => {
                let (a, b) = (printer.shape(types, a), printer.shape(types, b));
                format!("{place}: shapes {b} and {a} have different numbers of elements")
            }
            Relation::Dims(a, b) => {
                let (a, b) = (printer.dim_text(types, a), printer.dim_text(types, b));
                format!("{place} {needs} {a} = {b}")
            }
            Relation::Positive(a) => match compared(types, a) {
                Some((less, more)) => {
                    let (less, more) =
                        (printer.dim_text(types, &less), printer.dim_text(types, &more));
                    format!("{place} {needs} {less} <= {more}")
                }
                None => {
                    format!("{place} {needs} a positive size, found {}", printer.dim_text(types, a))
                }
            },
        };
        let why = match &conflict.reason {
            Contradiction::Dims(a, b) => {
                let (a, b) = (printer.dim_text(types, a), printer.dim_text(types, b));
                format!("size {a} is not {b}")
            }
            Contradiction::Rank(a, b) => {
                let rank = |shape: &Shape| match shape.as_dims() {
                    Some(dims) => format!("rank {}", dims.len()),
                    None => format!("rank {} or more", shape.min_rank()),
                };
                format!("{} is not {}", rank(b), rank(a))
            }
            Contradiction::Endless(..) => "the shape would contain itself".to_string(),
            Contradiction::NotPositive(a) => match (&conflict.relation, a) {
                (Relation::Positive(given), Dim::Constant(_)) => match compared(types, given) {
                    Some((less, more)) => {
                        let less = printer.dim_text(types, &less);
                        format!("{less} is more than {}", printer.dim_text(types, &more))
                    }
                    None => format!("size {} is not positive", printer.dim_text(types, a)),
                },
                (_, Dim::Constant(_)) => {
                    format!("size {} is not positive", printer.dim_text(types, a))
                }
                _ => "all sizes are at least 1".to_string(),
            },
            Contradiction::RaggedElements(_) => {
                "a ragged tensor has no number of elements".to_string()
            }
            Contradiction::Arithmetic(error) => error.to_string(),
        };
        let mut error = Diagnostic::new(Reason::AxonShape, info.span, format!("{both}: {why}"));
        self.notes(&mut error, &conflict.core, Some(conflict.origin), conflict.minimal);
        if let Some(hint) = self.option_hint(conflict.origin) {
            error.notes.push((info.span, hint));
        }
        self.report(error);
    }
}

/// What is at most what, where a difference is positive.
fn compared(types: &Types, positive: &Dim) -> Option<(Dim, Dim)> {
    let arithmetic = types.solver.arithmetic();
    let least = arithmetic.apply(DimOp::Sub, positive, &Dim::Constant(1)).ok()?;
    let (more, less) = arithmetic.added_and_subtracted(&least).ok()?;
    (more != Dim::Constant(0) && less != Dim::Constant(0)).then_some((less, more))
}
