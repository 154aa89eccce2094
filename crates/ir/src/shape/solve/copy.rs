//! Copies equations to a solver of their own, with renamed variables.

use std::collections::{BTreeSet, HashMap};

use super::{Origin, Pointwise, Reason, Relation, Solver};
use crate::shape::{Arithmetic, Dim, DimVar, Item, Shape, ShapeVar};

/// What stands for variables. Those without an entry stand for themselves.
#[derive(Clone, Debug, Default)]
pub struct Renaming {
    /// For sizes.
    pub dims: HashMap<DimVar, DimVar>,
    /// For shapes.
    pub shapes: HashMap<ShapeVar, ShapeVar>,
}

impl Renaming {
    /// A dimension with other variables.
    pub fn dim(&self, arithmetic: &Arithmetic, dim: &Dim) -> Dim {
        let mut renamed = |var| self.dims.get(&var).map(|other| Dim::Var(*other));
        // Renaming makes nothing larger.
        arithmetic.substitute(dim, &mut renamed).unwrap_or_else(|_| dim.clone())
    }

    /// A shape with other variables.
    pub fn shape(&self, arithmetic: &Arithmetic, shape: &Shape) -> Shape {
        let items = shape.items.iter().map(|item| match item {
            Item::Dim(dim) => Item::Dim(self.dim(arithmetic, dim)),
            Item::Var(var) => Item::Var(self.shapes.get(var).copied().unwrap_or(*var)),
        });
        items.collect()
    }

    /// A condition with other variables.
    pub fn relation(&self, arithmetic: &Arithmetic, relation: &Relation) -> Relation {
        let shape = |it| self.shape(arithmetic, it);
        let dim = |it| self.dim(arithmetic, it);
        match relation {
            Relation::Shapes(a, b) => Relation::Shapes(shape(a), shape(b)),
            Relation::Elements(a, b) => Relation::Elements(shape(a), shape(b)),
            Relation::Dims(a, b) => Relation::Dims(dim(a), dim(b)),
            Relation::Positive(a) => Relation::Positive(dim(a)),
        }
    }

    /// A point-wise operation with other variables.
    pub(super) fn pointwise(&self, arithmetic: &Arithmetic, op: &Pointwise) -> Pointwise {
        let shape = |it| self.shape(arithmetic, it);
        Pointwise {
            operands: op.operands.iter().map(shape).collect(),
            result: shape(&op.result),
            origin: op.origin,
            decision: None,
        }
    }
}

/// Copies equations to a solver of their own.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) to: Solver,
    forth: Renaming,
    back: Renaming,
}

impl Copy {
    /// A copy for equations with some variables, in which their variables have the same order, so that what is found
    /// in the copy does not depend on their numbers.
    pub(super) fn new(
        from: &Solver,
        of_relations: impl IntoIterator<Item = (Vec<ShapeVar>, Vec<DimVar>)>,
    ) -> Self {
        let (mut dims, mut shapes) = (BTreeSet::new(), BTreeSet::new());
        for vars in of_relations {
            shapes.extend(vars.0);
            dims.extend(vars.1);
        }
        let mut copy =
            Self { to: from.sibling(), forth: Renaming::default(), back: Renaming::default() };
        copy.extend(shapes, dims);
        copy
    }

    fn extend(
        &mut self,
        shapes: impl IntoIterator<Item = ShapeVar>,
        dims: impl IntoIterator<Item = DimVar>,
    ) {
        for var in dims {
            self.forth.dims.entry(var).or_insert_with(|| {
                let copy = self.to.dim_var(0);
                self.back.dims.insert(copy, var);
                copy
            });
        }
        for var in shapes {
            self.forth.shapes.entry(var).or_insert_with(|| {
                let copy = self.to.shape_var(0);
                self.back.shapes.insert(copy, var);
                copy
            });
        }
    }

    pub(super) fn relation(&self, relation: &Relation) -> Relation {
        self.forth.relation(&self.to.arithmetic, relation)
    }

    /// A copy of a point-wise operation, made for something else.
    pub(super) fn pointwise(&self, op: &Pointwise, origin: Origin) -> Pointwise {
        Pointwise { origin, ..self.forth.pointwise(&self.to.arithmetic, op) }
    }

    /// Says that those of its variables that stand for the shapes of numbers do.
    pub(super) fn set_numbers(&mut self, from: &Solver) {
        for (var, copy) in &self.forth.shapes {
            if from.numbers.contains(var) {
                self.to.set_number(*copy);
            }
        }
    }

    /// Says what a variable that was made in the copy is a copy of.
    pub(super) fn adopt(&mut self, var: ShapeVar, copy: ShapeVar) {
        self.forth.shapes.insert(var, copy);
        self.back.shapes.insert(copy, var);
    }

    pub(super) fn original(&self, relation: &Relation) -> Relation {
        self.back.relation(&self.to.arithmetic, relation)
    }

    /// The variables that some are copies of, sorted.
    pub(super) fn original_vars(
        &self,
        (shapes, dims): (Vec<ShapeVar>, Vec<DimVar>),
    ) -> (Vec<ShapeVar>, Vec<DimVar>) {
        let shapes = shapes.iter().map(|var| self.back.shapes[var]);
        let dims = dims.iter().map(|var| self.back.dims[var]);
        let (mut shapes, mut dims): (Vec<_>, Vec<_>) = (shapes.collect(), dims.collect());
        shapes.sort_unstable();
        dims.sort_unstable();
        (shapes, dims)
    }

    pub(super) fn original_reason(&self, reason: &Reason) -> Reason {
        let dim = |it| self.back.dim(&self.to.arithmetic, it);
        let shape = |it| self.back.shape(&self.to.arithmetic, it);
        match reason {
            Reason::Dims(a, b) => Reason::Dims(dim(a), dim(b)),
            Reason::Rank(a, b) => Reason::Rank(shape(a), shape(b)),
            Reason::Sizes => Reason::Sizes,
            Reason::Endless(a, b) => Reason::Endless(shape(a), shape(b)),
            Reason::NotPositive(a) => Reason::NotPositive(dim(a)),
            Reason::RaggedElements(a) => Reason::RaggedElements(shape(a)),
            Reason::Arithmetic(error) => Reason::Arithmetic(*error),
        }
    }

    /// A shape with all put in that the copied equations say.
    pub(super) fn resolved_shape(&mut self, shape: &Shape) -> Shape {
        let (shapes, dims) = self.to.shape_vars(shape);
        self.extend(shapes, dims);
        let shape = self.forth.shape(&self.to.arithmetic, shape);
        let shape = self.to.resolved_shape(&shape);
        self.back.shape(&self.to.arithmetic, &shape)
    }

    /// A dimension with all put in that the copied equations say.
    pub(super) fn resolved_dim(&mut self, dim: &Dim) -> Dim {
        self.extend([], self.to.arithmetic.vars(dim));
        let dim = self.forth.dim(&self.to.arithmetic, dim);
        let dim = self.to.resolved_dim(&dim);
        self.back.dim(&self.to.arithmetic, &dim)
    }
}
