//! Equations copied to a solver of their own.

use std::collections::HashMap;
use std::rc::Rc;

use super::{Relation, Solver};
use crate::shape::{Dim, DimVar, Item, Shape, ShapeVar};

/// Copies equations to a solver of their own.
pub(super) struct Copy<'s> {
    from: &'s Solver,
    pub(super) to: Solver,
    dims: HashMap<DimVar, DimVar>,
    shapes: HashMap<ShapeVar, ShapeVar>,
}

impl<'s> Copy<'s> {
    pub(super) fn new(from: &'s Solver) -> Self {
        Self { from, to: from.sibling(), dims: HashMap::new(), shapes: HashMap::new() }
    }

    fn dim(&mut self, dim: &Dim) -> Dim {
        let (dims, to) = (&mut self.dims, &mut self.to);
        let mut copied = |var| *dims.entry(var).or_insert_with(|| to.dim_var(0));
        match dim {
            Dim::Var(var) => Dim::Var(copied(*var)),
            // Renaming makes nothing larger.
            _ => {
                let arithmetic = Rc::clone(&self.from.arithmetic);
                let renamed = arithmetic.substitute(dim, &mut |var| Some(Dim::Var(copied(var))));
                renamed.unwrap_or_else(|_| dim.clone())
            }
        }
    }

    pub(super) fn shape(&mut self, shape: &Shape) -> Shape {
        let items = shape.items.iter().map(|item| match item {
            Item::Dim(dim) => Item::Dim(self.dim(dim)),
            Item::Var(var) => {
                let to = &mut self.to;
                Item::Var(*self.shapes.entry(*var).or_insert_with(|| to.shape_var(0)))
            }
        });
        items.collect()
    }

    pub(super) fn relation(&mut self, relation: &Relation) -> Relation {
        match relation {
            Relation::Shapes(a, b) => Relation::Shapes(self.shape(a), self.shape(b)),
            Relation::Elements(a, b) => Relation::Elements(self.shape(a), self.shape(b)),
            Relation::Dims(a, b) => Relation::Dims(self.dim(a), self.dim(b)),
            Relation::Positive(a) => Relation::Positive(self.dim(a)),
        }
    }
}
