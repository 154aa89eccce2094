//! Shape algebra: dimension expressions, shapes as appended parts, and a solver for equations
//! between them.
//!
//! Source: Collins and Grover, "Axon: A Language for Dynamic Shapes in Deep Learning Graphs",
//! sections 3 and 5.
//!
//! A [`Shape`] is a list of [`Item`]s: dimensions, and variables that stand for any number of
//! dimensions. `s@[n, 3]` has one shape variable and two dimensions. A [`Dim`] is a size, written as
//! a canonical [polynomial](crate::polynomial) over dimension variables, or the ragged dimension
//! `*`, which differs across the tensor. Sizes are positive.
//!
//! [`text`] is the notation, [`solve`] the solver.
//!
//! ```
//! use tc_ir::shape::solve::Solver;
//! use tc_ir::shape::text::Names;
//!
//! let mut solver = Solver::new();
//! let mut names = Names::default();
//! for (number, (left, right)) in [("s@[a,b]", "[2,3]"), ("s@[b,a]", "r")].into_iter().enumerate() {
//!     let left = names.shape(&mut solver, left).unwrap();
//!     let right = names.shape(&mut solver, right).unwrap();
//!     solver.equate_shapes(left, right, number as u32);
//! }
//! solver.solve().unwrap();
//! let result = names.shape(&mut solver, "r").unwrap();
//! let result = solver.resolved_shape(&result);
//! assert_eq!(names.display_shape(&solver, &result), "[3,2]");
//! ```

mod ranks;
pub mod solve;
#[cfg(test)]
mod tests;
pub mod text;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use smallvec::SmallVec;

use crate::expr::{Context, Expr, Node, Var};
use crate::polynomial::{MAX_FACTORS, Normalizer, Polynomial, PolynomialError};

pub use ranks::RankEquation;

/// The most items of a shape.
pub const MAX_ITEMS: usize = 1024;

/// The most operators of a dimension expression.
pub const MAX_OPERATORS: u32 = 512;

/// A variable that stands for the size of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DimVar(pub u32);

/// A variable that stands for any number of dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShapeVar(pub u32);

/// A dimension in canonical form: equal dimensions that are equal as polynomials are equal values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    /// `*`: the extent differs across the tensor.
    Ragged,
    /// A known extent.
    Constant(i64),
    /// A variable.
    Var(DimVar),
    /// Any other expression.
    Sum(Rc<Polynomial>),
}

/// A part of a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// One dimension.
    Dim(Dim),
    /// Any number of dimensions.
    Var(ShapeVar),
}

/// A shape: its items appended, first dimension first. Without items it is that of a scalar.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The parts.
    pub items: SmallVec<[Item; 1]>,
}

impl Shape {
    /// The shape that a variable stands for.
    pub fn var(var: ShapeVar) -> Self {
        Self::from_iter([Item::Var(var)])
    }

    /// A shape of known rank.
    pub fn dims(dims: impl IntoIterator<Item = Dim>) -> Self {
        dims.into_iter().map(Item::Dim).collect()
    }

    /// The dimensions, if the rank is known.
    pub fn as_dims(&self) -> Option<Vec<&Dim>> {
        self.items.iter().map(Item::as_dim).collect()
    }

    /// The variable, if the shape is one.
    pub fn as_var(&self) -> Option<ShapeVar> {
        match self.items.as_slice() {
            [Item::Var(var)] => Some(*var),
            _ => None,
        }
    }

    /// The number of dimensions that it has at least.
    pub fn min_rank(&self) -> usize {
        self.items.iter().filter(|item| item.as_dim().is_some()).count()
    }
}

impl FromIterator<Item> for Shape {
    fn from_iter<I: IntoIterator<Item = Item>>(items: I) -> Self {
        Self { items: items.into_iter().collect() }
    }
}

impl Item {
    /// The dimension, if it is one.
    pub fn as_dim(&self) -> Option<&Dim> {
        match self {
            Item::Dim(dim) => Some(dim),
            Item::Var(_) => None,
        }
    }
}

/// The operators of figure 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DimOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`, rounded towards minus infinity.
    Div,
}

impl DimOp {
    /// The spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
        }
    }
}

/// Why a dimension cannot be calculated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DimError {
    /// A constant leaves the range of 64 bits.
    #[error("the size of a dimension overflows 64 bits")]
    Overflow,
    /// An expression or a shape is larger than what is kept.
    #[error(
        "the expression of a shape is too large, expected at most {MAX_ITEMS} dimensions, \
         {MAX_OPERATORS} operators in a size, and {MAX_FACTORS} factors in a product"
    )]
    TooLarge,
    /// A divisor is zero.
    #[error("the size of a dimension is divided by zero")]
    DivisionByZero,
}

impl DimError {
    /// Whether it is about what is kept, and not about what a size means.
    pub fn is_limit(self) -> bool {
        matches!(self, Self::Overflow | Self::TooLarge)
    }
}

impl From<PolynomialError> for DimError {
    fn from(error: PolynomialError) -> Self {
        match error {
            PolynomialError::Overflow => Self::Overflow,
            PolynomialError::TooLarge => Self::TooLarge,
        }
    }
}

/// Arithmetic on dimensions, and the arena of its expressions.
#[derive(Debug, Default)]
pub struct Arithmetic {
    context: Context,
    /// What is divided by what, of divisions that were asked for.
    divisions: RefCell<HashMap<Expr, [Rc<Polynomial>; 2]>>,
}

impl Arithmetic {
    fn atom(&self, var: DimVar) -> Expr {
        self.context.runtime(var.0)
    }

    /// The variable that an atom is.
    fn as_var(&self, atom: Expr) -> Option<DimVar> {
        match self.context.node(atom) {
            Node::Var(Var::Runtime(number)) => Some(DimVar(number)),
            _ => None,
        }
    }

    /// What an atom divides by what; `None` if it is no division. It is put together once: otherwise each of
    /// the divisions inside of each other would be again wherever one of them is looked into.
    ///
    /// # Errors
    /// A coefficient overflows, or the expanded form is too large.
    fn division(&self, atom: Expr) -> Result<Option<[Rc<Polynomial>; 2]>, PolynomialError> {
        let Node::FloorDiv(lhs, rhs) = self.context.node(atom) else { return Ok(None) };
        if let Some(known) = self.divisions.borrow().get(&atom) {
            return Ok(Some(known.clone()));
        }
        let mut normalizer = Normalizer::new(&self.context);
        let operands = [normalizer.polynomial(lhs)?, normalizer.polynomial(rhs)?];
        self.divisions.borrow_mut().insert(atom, operands.clone());
        Ok(Some(operands))
    }

    /// The polynomial of a size; `None` for a ragged dimension.
    pub fn polynomial(&self, dim: &Dim) -> Option<Rc<Polynomial>> {
        match dim {
            Dim::Ragged => None,
            Dim::Constant(value) => Some(Rc::new(Polynomial::constant(*value))),
            Dim::Var(var) => Some(Rc::new(Polynomial::atom(self.atom(*var)))),
            Dim::Sum(sum) => Some(Rc::clone(sum)),
        }
    }

    /// The dimension with a size.
    ///
    /// # Errors
    /// The expression is too large.
    pub fn dim(&self, size: Polynomial) -> Result<Dim, DimError> {
        if let Some(value) = size.as_constant() {
            return Ok(Dim::Constant(value));
        }
        let atom = size.single_atom().filter(|_| size.constant_part() == 0);
        if let Some(var) = atom.and_then(|atom| self.as_var(atom)) {
            return Ok(Dim::Var(var));
        }
        let mut operators = 0;
        for (monomial, _) in size.terms() {
            for &atom in monomial {
                operators += 1 + self.context.cost(atom);
            }
        }
        if MAX_OPERATORS < operators {
            return Err(DimError::TooLarge);
        }
        Ok(Dim::Sum(Rc::new(size)))
    }

    /// The value of an operation, in canonical form. Whatever is calculated from a ragged dimension
    /// is ragged.
    ///
    /// # Errors
    /// A constant overflows, a divisor is zero, or the result is too large.
    pub fn apply(&self, op: DimOp, lhs: &Dim, rhs: &Dim) -> Result<Dim, DimError> {
        let (Some(a), Some(b)) = (self.polynomial(lhs), self.polynomial(rhs)) else {
            return Ok(Dim::Ragged);
        };
        self.dim(match op {
            DimOp::Add => a.add(&b)?,
            DimOp::Sub => a.sub(&b)?,
            DimOp::Mul => a.mul(&b)?,
            DimOp::Div => {
                if b.as_constant() == Some(0) {
                    return Err(DimError::DivisionByZero);
                }
                Normalizer::new(&self.context).floor_div(&a, &b)?
            }
        })
    }

    /// The variables of a dimension, sorted.
    pub fn vars(&self, dim: &Dim) -> Vec<DimVar> {
        match dim {
            Dim::Ragged | Dim::Constant(_) => Vec::new(),
            Dim::Var(var) => vec![*var],
            Dim::Sum(sum) => self.polynomial_vars(sum),
        }
    }

    fn polynomial_vars(&self, sum: &Polynomial) -> Vec<DimVar> {
        let mut vars = BTreeSet::new();
        for (monomial, _) in sum.terms() {
            for &atom in monomial {
                match self.as_var(atom) {
                    Some(var) => _ = vars.insert(var),
                    None => {
                        vars.extend(self.context.vars(atom).into_iter().filter_map(
                            |var| match var {
                                Var::Runtime(number) => Some(DimVar(number)),
                                _ => None,
                            },
                        ))
                    }
                }
            }
        }
        vars.into_iter().collect()
    }

    /// The dimension with its variables replaced.
    ///
    /// # Errors
    /// A constant overflows, a divisor becomes zero, or the result is too large.
    pub fn substitute(
        &self,
        dim: &Dim,
        replacement: &mut dyn FnMut(DimVar) -> Option<Dim>,
    ) -> Result<Dim, DimError> {
        let sum = match dim {
            Dim::Ragged | Dim::Constant(_) => return Ok(dim.clone()),
            Dim::Var(var) => return Ok(replacement(*var).unwrap_or_else(|| dim.clone())),
            Dim::Sum(sum) => sum,
        };
        let mut replaced = Vec::new();
        let mut inside = BTreeSet::new();
        for var in self.polynomial_vars(sum) {
            if let Some(value) = replacement(var) {
                inside.extend(self.vars(&value));
                let Some(value) = self.polynomial(&value) else { return Ok(Dim::Ragged) };
                replaced.push((self.atom(var), value));
            }
        }
        if replaced.is_empty() {
            return Ok(dim.clone());
        }
        let mut sum = Rc::clone(sum);
        if inside.iter().any(|var| replaced.iter().any(|(atom, _)| *atom == self.atom(*var))) {
            // A value is not to be replaced again: its variables get other names meanwhile.
            let mut renamed = Vec::new();
            for (number, (atom, _)) in (0..u32::MAX).rev().zip(&mut replaced) {
                let other = self.atom(DimVar(number));
                renamed.push((*atom, Rc::new(Polynomial::atom(other))));
                *atom = other;
            }
            sum = Rc::new(Normalizer::replacing_all(&self.context, renamed).renormalize(&sum)?);
        }
        let result = Normalizer::replacing_all(&self.context, replaced).renormalize(&sum)?;
        self.check_divisors(&result)?;
        self.dim(result)
    }

    /// No divisor of an atom is the constant zero.
    fn check_divisors(&self, sum: &Polynomial) -> Result<(), DimError> {
        let atoms = sum.terms().flat_map(|(monomial, _)| monomial.iter().copied());
        let atoms: Vec<Expr> = atoms.filter(|&atom| self.as_var(atom).is_none()).collect();
        for expr in self.context.topological(&atoms) {
            if let Node::FloorDiv(_, divisor) = self.context.node(expr)
                && self.context.as_constant(divisor) == Some(0)
            {
                return Err(DimError::DivisionByZero);
            }
        }
        Ok(())
    }

    /// The same equation without subtractions and without what both sides have in common. A constant
    /// that is alone comes second.
    ///
    /// # Errors
    /// A constant overflows, or a side is too large.
    pub fn balanced(&self, left: &Dim, right: &Dim) -> Result<(Dim, Dim), DimError> {
        let (Some(a), Some(b)) = (self.polynomial(left), self.polynomial(right)) else {
            return Ok((left.clone(), right.clone()));
        };
        let (plus, minus) = self.sides(&a.sub(&b)?)?;
        let swap = matches!(plus, Dim::Constant(_));
        Ok(if swap { (minus, plus) } else { (plus, minus) })
    }

    /// What is added in a size, and what is subtracted; nothing of a ragged one.
    ///
    /// # Errors
    /// A constant overflows, or a side is too large.
    pub fn added_and_subtracted(&self, dim: &Dim) -> Result<(Dim, Dim), DimError> {
        match self.polynomial(dim) {
            Some(size) => self.sides(&size),
            None => Ok((dim.clone(), Dim::Constant(0))),
        }
    }

    fn sides(&self, size: &Polynomial) -> Result<(Dim, Dim), DimError> {
        let (mut plus, mut minus) = (Polynomial::default(), Polynomial::default());
        let constant = (&Default::default(), size.constant_part());
        for (monomial, coefficient) in size.terms().chain([constant]) {
            match coefficient {
                0.. => plus.set(monomial, coefficient),
                _ => minus.set(monomial, coefficient.checked_neg().ok_or(DimError::Overflow)?),
            }
        }
        Ok((self.dim(plus)?, self.dim(minus)?))
    }

    /// The dimension in another context, where `value` gives its variables. `None` for a ragged
    /// dimension and for a variable without a value.
    pub fn expr(
        &self,
        dim: &Dim,
        context: &Context,
        value: &dyn Fn(DimVar) -> Option<Expr>,
    ) -> Option<Expr> {
        let sum = match dim {
            Dim::Ragged => return None,
            Dim::Constant(constant) => return Some(context.constant(*constant)),
            Dim::Var(var) => return value(*var),
            Dim::Sum(sum) => sum,
        };
        let mut total = context.constant(sum.constant_part());
        for (monomial, coefficient) in sum.terms() {
            let mut product = context.constant(coefficient);
            let atoms = self.context.fold(monomial, |_, node, operands| match (node, operands) {
                (Node::Var(Var::Runtime(number)), _) => value(DimVar(number)).ok_or(()),
                (Node::Const(constant), _) => Ok(context.constant(constant)),
                (_, Some((&lhs, &rhs))) => Ok(context.rebuild(node, lhs, rhs)),
                (_, None) => Err(()),
            });
            for atom in atoms.ok()? {
                product = context.mul(product, atom);
            }
            total = context.add(total, product);
        }
        Some(context.canonicalize(total))
    }

    /// How often a variable stands in a dimension, and the dimension without it; `None` if the
    /// dimension is not linear in it.
    pub fn linear_in(&self, dim: &Dim, var: DimVar) -> Option<(i64, Dim)> {
        let sum = self.polynomial(dim)?;
        let (mut rest, mut factor) = (Polynomial::constant(sum.constant_part()), 0);
        for (monomial, coefficient) in sum.terms() {
            if monomial[..] == [self.atom(var)] {
                factor = coefficient;
            } else {
                rest.set(monomial, coefficient);
            }
        }
        let rest = self.dim(rest).ok()?;
        (factor != 0 && !self.vars(&rest).contains(&var)).then_some((factor, rest))
    }

    /// The value where every variable has one. `None` for a ragged dimension, a variable without a
    /// value, an overflow, or a division by zero.
    pub fn evaluate(&self, dim: &Dim, value: &dyn Fn(DimVar) -> Option<i64>) -> Option<i64> {
        match dim {
            Dim::Ragged => None,
            Dim::Constant(constant) => Some(*constant),
            Dim::Var(var) => value(*var),
            Dim::Sum(sum) => {
                let lookup = |var| match var {
                    Var::Runtime(number) => value(DimVar(number)),
                    _ => None,
                };
                let mut total = sum.constant_part();
                for (monomial, coefficient) in sum.terms() {
                    let mut product = coefficient;
                    for &atom in monomial {
                        let factor = self.context.eval(atom, &lookup).ok()?;
                        product = product.checked_mul(factor)?;
                    }
                    total = total.checked_add(product)?;
                }
                Some(total)
            }
        }
    }
}
