//! Names of one signature that inference makes equal.
//!
//! Different names suggest different sizes. If a function allows only equal ones, that is a warning, with
//! the places from which it follows. Names that are numbers in the end are not reported: programs give
//! names to sizes that they know.

use super::Inference;
use crate::tc::syntax::{Diagnostic, Reason, Span, diagnostic::MAX_DIAGNOSTICS};
use std::collections::HashMap;
use tc_ir::shape::{Dim, DimVar, Shape, ShapeVar};

/// What a name in a type denotes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named {
    Dim(DimVar),
    Shape(ShapeVar),
}

/// The names in the types of a function, each with the place where it occurs first.
pub(super) type Signed = HashMap<String, (Span, Named)>;

impl Named {
    fn shape(self) -> Shape {
        match self {
            Self::Dim(var) => Shape::dims([Dim::Var(var)]),
            Self::Shape(var) => Shape::var(var),
        }
    }
}

impl Inference {
    /// Warns of names of one signature that are equal, once a definition is complete and right.
    pub(super) fn check_names(&mut self) {
        let signatures = std::mem::take(&mut self.signatures);
        if !self.diagnostics.is_empty() {
            return;
        }
        for signature in signatures {
            let mut names: Vec<_> = signature.into_iter().collect();
            names.sort_by_key(|(_, (span, _))| *span);
            let mut known: HashMap<String, (String, Named)> = HashMap::new();
            for (name, (span, named)) in names {
                if MAX_DIAGNOSTICS <= self.warnings.len() {
                    return;
                }
                let shape = self.types.solver.resolved_shape(&named.shape());
                let (shapes, dims) = self.types.solver.shape_vars(&shape);
                if shapes.is_empty() && dims.is_empty() {
                    continue;
                }
                // Equal shapes have one canonical form. A shape of one dimension has a name of its own.
                let key = match named {
                    Named::Dim(_) => format!("{shape:?}"),
                    Named::Shape(_) => format!("shape {shape:?}"),
                };
                match known.get(&key).cloned() {
                    Some(first) => self.warn_of_equal_names(&first, &name, named, span),
                    None => _ = known.insert(key, (name, named)),
                }
            }
        }
    }

    fn warn_of_equal_names(
        &mut self,
        (first, first_named): &(String, Named),
        name: &str,
        named: Named,
        span: Span,
    ) {
        let (what, places) = match (*first_named, named) {
            (Named::Dim(a), Named::Dim(b)) => ("sizes", self.types.solver.why_equal_dims(a, b)),
            (Named::Shape(a), Named::Shape(b)) => {
                ("shapes", self.types.solver.why_equal_shapes(a, b))
            }
            _ => return,
        };
        let message = format!("'{first}' and '{name}' are different names of equal {what}");
        let mut warning = Diagnostic::new(Reason::AxonEqualNames, span, message);
        self.notes(&mut warning, &places, None);
        self.warnings.push(warning.note(span, format!("try '{first}'")));
    }
}
