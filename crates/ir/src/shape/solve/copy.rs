//! Equations copied to a solver of their own.

use std::collections::{BTreeSet, HashMap};

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
    /// A copy for some equations, in which their variables have the same order, so that what is found
    /// in the copy does not depend on their numbers.
    pub(super) fn new<'r>(
        from: &'s Solver,
        relations: impl IntoIterator<Item = &'r Relation>,
    ) -> Self {
        let (mut dims, mut shapes) = (BTreeSet::new(), BTreeSet::new());
        for relation in relations {
            let vars = from.vars(relation);
            shapes.extend(vars.0);
            dims.extend(vars.1);
        }
        let mut to = from.sibling();
        let dims = dims.into_iter().map(|var| (var, to.dim_var(0))).collect();
        let shapes = shapes.into_iter().map(|var| (var, to.shape_var(0))).collect();
        Self { from, to, dims, shapes }
    }

    fn dim(&self, dim: &Dim) -> Dim {
        let mut copied = |var| self.dims.get(&var).map(|copy| Dim::Var(*copy));
        // Renaming makes nothing larger.
        self.from.arithmetic.substitute(dim, &mut copied).unwrap_or_else(|_| dim.clone())
    }

    pub(super) fn shape(&self, shape: &Shape) -> Shape {
        let items = shape.items.iter().map(|item| match item {
            Item::Dim(dim) => Item::Dim(self.dim(dim)),
            Item::Var(var) => Item::Var(self.shapes.get(var).copied().unwrap_or(*var)),
        });
        items.collect()
    }

    pub(super) fn relation(&self, relation: &Relation) -> Relation {
        match relation {
            Relation::Shapes(a, b) => Relation::Shapes(self.shape(a), self.shape(b)),
            Relation::Elements(a, b) => Relation::Elements(self.shape(a), self.shape(b)),
            Relation::Dims(a, b) => Relation::Dims(self.dim(a), self.dim(b)),
            Relation::Positive(a) => Relation::Positive(self.dim(a)),
        }
    }
}
