//! Names of one signature that inference makes equal.
//!
//! Different names suggest different sizes, shapes or types. If a function allows only equal ones, that is a
//! warning, with the places from which it follows. A name is not reported if inference finds a number or a
//! known type for it: programs give names to sizes and types that they know.

use super::super::types::{Elem, Node, Ty};
use super::Inference;
use crate::text::{Diagnostic, Reason, Span, diagnostic::MAX_DIAGNOSTICS};
use std::collections::HashMap;
use std::mem::Discriminant;
use tc_ir::shape::{Dim, DimVar, Shape, ShapeVar, solve::Origin};

/// What a name in a type denotes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named {
    Dim(DimVar),
    Shape(ShapeVar),
    Elem(Elem),
    Type(Ty),
}

/// The names in the types of a function by kind, each with the place where it occurs first.
pub(super) type Signed = HashMap<(Discriminant<Named>, String), (Span, Named)>;

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
            for ((_, name), (span, named)) in names {
                if MAX_DIAGNOSTICS <= self.warnings.len() {
                    return;
                }
                // Equal sizes, shapes or types have one canonical form.
                let Some(key) = self.canonical(named) else { continue };
                match known.get(&key).cloned() {
                    Some(first) => self.warn_of_equal_names(&first, &name, named, span),
                    None => _ = known.insert(key, (name, named)),
                }
            }
        }
    }

    /// The canonical form of what a name denotes; `None` if that is known, or a tuple or a function.
    fn canonical(&mut self, named: Named) -> Option<String> {
        match named {
            // A shape of one dimension has a name of its own.
            Named::Dim(var) => self.canonical_shape(&Shape::dims([Dim::Var(var)])),
            Named::Shape(var) => {
                self.canonical_shape(&Shape::var(var)).map(|shape| format!("shape {shape}"))
            }
            Named::Elem(elem) => {
                self.types.element(elem).err().map(|(root, _)| format!("element {root}"))
            }
            Named::Type(ty) => match self.types.node(ty) {
                Node::Var(_) => Some(format!("type {}", self.types.find(ty))),
                Node::Tensor(elem, shape) => {
                    let element = self.types.element(elem).map_err(|(root, _)| root);
                    let is_known = self.canonical_shape(&shape).is_none() && element.is_ok();
                    let shape = self.types.solver.resolved_shape(&shape);
                    (!is_known).then(|| format!("tensor {element:?} {shape:?}"))
                }
                Node::Tuple(_) | Node::Function(..) | Node::Link(_) | Node::Error => None,
            },
        }
    }

    fn canonical_shape(&mut self, shape: &Shape) -> Option<String> {
        let shape = self.types.solver.resolved_shape(shape);
        let (shapes, dims) = self.types.solver.shape_vars(&shape);
        (!shapes.is_empty() || !dims.is_empty()).then(|| format!("{shape:?}"))
    }

    /// The places from which it follows that two types are equal.
    fn why_equal_types(&mut self, a: Ty, b: Ty) -> Vec<Origin> {
        let (Node::Tensor(elem_a, shape_a), Node::Tensor(elem_b, shape_b)) =
            (self.types.node(a), self.types.node(b))
        else {
            return self.types.why_equal_vars(a, b);
        };
        let mut places = self.types.why_equal_elems(elem_a, elem_b);
        if let (Some(a), Some(b)) = (shape_a.as_var(), shape_b.as_var()) {
            places.extend(self.types.solver.why_equal_shapes(a, b));
        }
        places.sort_unstable();
        places.dedup();
        places
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
            (Named::Elem(a), Named::Elem(b)) => ("types", self.types.why_equal_elems(a, b)),
            (Named::Type(a), Named::Type(b)) => ("types", self.why_equal_types(a, b)),
            _ => return,
        };
        let message = format!("'{first}' and '{name}' are different names of equal {what}");
        let mut warning = Diagnostic::new(Reason::AxonEqualNames, span, message);
        self.notes(&mut warning, &places, None);
        self.warnings.push(warning.note(span, format!("try '{first}'")));
    }
}
