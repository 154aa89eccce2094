//! Values of variables: replacement by reference, and rewriting by residuals.

use std::rc::Rc;

use super::sums::rewrite_sum;
use super::{Relation, Solver};
use crate::polynomial::{Monomial, Normalizer, Polynomial};
use crate::shape::{Dim, DimError, DimVar, Item, MAX_ITEMS, Shape, ShapeVar};

impl Solver {
    /// Makes the value of a variable free of variables that have a value themselves.
    fn flatten_dim(&mut self, var: DimVar) -> Result<(), DimError> {
        let mut pending = vec![var];
        while let Some(&top) = pending.last() {
            let Some((value, _)) = &self.dims[top.0 as usize].value else {
                pending.pop();
                continue;
            };
            let value = value.clone();
            let inner: Vec<DimVar> = self.arithmetic.vars(&value);
            let mut deep = false;
            let mut bound = false;
            for var in inner {
                if let Some((value, _)) = &self.dims[var.0 as usize].value {
                    bound = true;
                    let vars = self.arithmetic.vars(value);
                    if vars.iter().any(|var| self.dims[var.0 as usize].value.is_some()) {
                        pending.push(var);
                        deep = true;
                    }
                }
            }
            if deep {
                continue;
            }
            if bound {
                let arithmetic = Rc::clone(&self.arithmetic);
                let dims = &self.dims;
                let flat = arithmetic.substitute(&value, &mut |var| {
                    dims[var.0 as usize].value.as_ref().map(|(value, _)| value.clone())
                })?;
                if let Some((value, _)) = &mut self.dims[top.0 as usize].value {
                    *value = flat;
                }
            }
            pending.pop();
        }
        Ok(())
    }

    pub(super) fn try_dim(&mut self, dim: &Dim) -> Result<Dim, DimError> {
        let vars = match dim {
            Dim::Ragged | Dim::Constant(_) => return Ok(dim.clone()),
            Dim::Var(var) if self.dims[var.0 as usize].value.is_none() => return Ok(dim.clone()),
            _ => self.arithmetic.vars(dim),
        };
        for var in vars {
            self.flatten_dim(var)?;
        }
        let arithmetic = Rc::clone(&self.arithmetic);
        let dims = &self.dims;
        arithmetic.substitute(dim, &mut |var| {
            dims[var.0 as usize].value.as_ref().map(|(value, _)| value.clone())
        })
    }

    fn flatten_shape(&mut self, var: ShapeVar) -> Result<(), DimError> {
        let mut pending = vec![var];
        while let Some(&top) = pending.last() {
            let Some((value, _)) = &self.shapes[top.0 as usize].value else {
                pending.pop();
                continue;
            };
            let bound = |solver: &Self, var: ShapeVar| {
                solver.shapes[var.0 as usize].value.as_ref().map(|(value, _)| value.clone())
            };
            let mut deep = false;
            let mut flat = Shape::default();
            for item in &value.items {
                match item {
                    Item::Var(var) => match bound(self, *var) {
                        None => flat.items.push(item.clone()),
                        Some(inner) => {
                            let is_bound = |item: &Item| match item {
                                Item::Var(var) => self.shapes[var.0 as usize].value.is_some(),
                                Item::Dim(_) => false,
                            };
                            if inner.items.iter().any(is_bound) {
                                pending.push(*var);
                                deep = true;
                            }
                            flat.items.extend(inner.items);
                        }
                    },
                    Item::Dim(_) => flat.items.push(item.clone()),
                }
            }
            if deep {
                continue;
            }
            if MAX_ITEMS < flat.items.len() {
                return Err(DimError::TooLarge);
            }
            if let Some((value, _)) = &mut self.shapes[top.0 as usize].value {
                *value = flat;
            }
            pending.pop();
        }
        Ok(())
    }

    pub(super) fn try_shape(&mut self, shape: &Shape) -> Result<Shape, DimError> {
        let mut items = Shape::default();
        for item in &shape.items {
            match item {
                Item::Dim(dim) => items.items.push(Item::Dim(self.try_dim(dim)?)),
                Item::Var(var) => {
                    self.flatten_shape(*var)?;
                    match self.shapes[var.0 as usize].value.clone() {
                        None => items.items.push(item.clone()),
                        Some((value, _)) => {
                            for item in value.items {
                                items.items.push(match item {
                                    Item::Dim(dim) => Item::Dim(self.try_dim(&dim)?),
                                    other => other,
                                });
                            }
                        }
                    }
                }
            }
        }
        if MAX_ITEMS < items.items.len() {
            return Err(DimError::TooLarge);
        }
        Ok(items)
    }

    /// Whether what is known can be put into a shape.
    ///
    /// # Errors
    /// A constant overflows, or the result is too large.
    pub fn check_shape(&mut self, shape: &Shape) -> Result<(), DimError> {
        self.try_shape(shape).map(|_| ())
    }

    /// A shape with the values of its variables put in, and nothing that residuals say. What would be too large
    /// stays as it is.
    pub fn known_shape(&mut self, shape: &Shape) -> Shape {
        self.try_shape(shape).unwrap_or_else(|_| shape.clone())
    }

    /// A shape with all that is known put in, residuals included. What would be too large stays as
    /// it is.
    pub fn resolved_shape(&mut self, shape: &Shape) -> Shape {
        let mut result = self.known_shape(shape);
        result = self.rewritten(&result).unwrap_or(result);
        if !self.dim_rules.is_empty() {
            for item in &mut result.items {
                if let Item::Dim(dim) = item {
                    *dim = self.reduced(dim).unwrap_or_else(|_| dim.clone());
                }
            }
        }
        result
    }

    /// A dimension with all that is known put in, residuals included. What would be too large stays
    /// as it is.
    pub fn resolved_dim(&mut self, dim: &Dim) -> Dim {
        let dim = self.try_dim(dim).unwrap_or_else(|_| dim.clone());
        self.reduced(&dim).unwrap_or(dim)
    }

    /// A condition with all that is known put in, but for residuals.
    pub(super) fn resolved(&mut self, relation: &Relation) -> Relation {
        let shape = |solver: &mut Self, shape: &Shape| solver.known_shape(shape);
        let dim =
            |solver: &mut Self, dim: &Dim| solver.try_dim(dim).unwrap_or_else(|_| dim.clone());
        match relation {
            Relation::Shapes(a, b) => Relation::Shapes(shape(self, a), shape(self, b)),
            Relation::Elements(a, b) => Relation::Elements(shape(self, a), shape(self, b)),
            Relation::Dims(a, b) => Relation::Dims(dim(self, a), dim(self, b)),
            Relation::Positive(a) => Relation::Positive(dim(self, a)),
        }
    }

    /// A shape in which sequences that are known to be dimensions are replaced by them; `None` if
    /// there are none.
    pub(super) fn rewritten(&self, shape: &Shape) -> Option<Shape> {
        let mut result = None;
        'again: loop {
            let shape: &Shape = result.as_ref().unwrap_or(shape);
            for rule in &self.shape_rules {
                let length = rule.pattern.items.len();
                let found =
                    shape.items.windows(length).position(|it| it == &rule.pattern.items[..]);
                if let Some(at) = found {
                    let mut items: Vec<Item> = shape.items.to_vec();
                    items.splice(at..at + length, rule.value.items.iter().cloned());
                    result = Some(items.into_iter().collect());
                    continue 'again;
                }
            }
            return result;
        }
    }

    /// A dimension in which expressions that are known to be constants are replaced by them.
    pub(super) fn reduced(&self, dim: &Dim) -> Result<Dim, DimError> {
        match dim {
            Dim::Sum(sum) if !self.dim_rules.is_empty() => {
                let reduced = self.reduced_sum((**sum).clone())?;
                if reduced == **sum { Ok(dim.clone()) } else { self.arithmetic.dim(reduced) }
            }
            _ => Ok(dim.clone()),
        }
    }

    /// Recursion is as deep as divisions are nested, which the size of an expression limits.
    fn reduced_sum(&self, mut sum: Polynomial) -> Result<Polynomial, DimError> {
        let context = &self.arithmetic.context;
        let mut atoms = Vec::new();
        for (monomial, _) in sum.terms() {
            for &atom in monomial {
                if let Some([old_lhs, old_rhs]) = self.arithmetic.division(atom)? {
                    let lhs = self.reduced_sum((*old_lhs).clone())?;
                    let rhs = self.reduced_sum((*old_rhs).clone())?;
                    if lhs != *old_lhs || rhs != *old_rhs {
                        if rhs.as_constant() == Some(0) {
                            return Err(DimError::DivisionByZero);
                        }
                        let quotient = Normalizer::new(context).floor_div(&lhs, &rhs)?;
                        atoms.push((atom, Rc::new(quotient)));
                    }
                }
            }
        }
        if !atoms.is_empty() {
            sum = Normalizer::replacing_all(context, atoms).renormalize(&sum)?;
        }
        let text = |product: &Monomial| {
            self.dim_text(&Dim::Sum(Rc::new(Polynomial::term(product.clone(), 1))))
        };
        'again: loop {
            for rule in &self.dim_rules {
                if let Some(next) = rewrite_sum(&sum, &rule.sum, rule.value, &text)? {
                    sum = next;
                    continue 'again;
                }
            }
            return Ok(sum);
        }
    }
}
