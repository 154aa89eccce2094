//! The evaluation rules of TML, one function each.
//!
//! Source: sections 3.2.2 and 4.1 of the report, figures 10 to 15. The implementation without padding is
//! the one of vector length 1, which rounds nothing (definition 7). Expressions are evaluated element by
//! element as figure 12 says, nested sums included, which is naive on purpose: nothing is computed once
//! and used twice.
//!
//! Every access to the store is checked. That none is outside of it, so that a well-formed program never
//! gets stuck, is what corollaries 2 and 3 say, and what tests check with [`Error::Stuck`].

use super::value::{Division, Value};
use crate::interp::Limits;
use tc_dialects::tml::syntax::{
    Checked,
    checked::{Expr, ExprKind, Operator, Qualifier, Statement, round_up},
};

/// Why a program is not evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An access outside of the domain of the store.
    #[error("element {index:?} of '{variable}' is not in the store")]
    Stuck {
        /// The variable.
        variable: String,
        /// The index, from 0.
        index: Vec<usize>,
    },
    /// A variable with the qualifier `in` or `inout` that has an undefined element in the beginning.
    #[error("'{variable}' is passed without a value at {index:?}, expected one (rule d-in-var)")]
    Undefined {
        /// The variable.
        variable: String,
        /// The index, from 0.
        index: Vec<usize>,
    },
    /// More work or memory than a run may take.
    #[error("{what} is {found}, expected at most {limit}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        found: String,
        /// How much there may be.
        limit: u64,
    },
}

/// The elements of a variable in the store, row-major; `None` is the undefined value.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor<V> {
    /// The extents, rounded up to the vector length.
    pub extents: Vec<usize>,
    /// The elements.
    pub elements: Vec<Option<V>>,
}

impl<V> Tensor<V> {
    /// The place of an index; none if it is outside.
    fn place(&self, index: &[usize]) -> Option<usize> {
        let is_inside = index.len() == self.extents.len()
            && index.iter().zip(&self.extents).all(|(index, extent)| index < extent);
        let fold = |place, (index, extent): (&usize, &usize)| place * extent + index;
        is_inside.then(|| index.iter().zip(&self.extents).fold(0, fold))
    }

    /// An element; none if the index is outside.
    pub fn get(&self, index: &[usize]) -> Option<&Option<V>> {
        self.elements.get(self.place(index)?)
    }
}

/// All multi-indices below some extents, in row-major order.
pub fn indices(extents: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<'_> {
    let mut next = extents.iter().all(|extent| 0 < *extent).then(|| vec![0; extents.len()]);
    std::iter::from_fn(move || {
        let index = next.take()?;
        let mut following = index.clone();
        for dim in (0..extents.len()).rev() {
            following[dim] += 1;
            if following[dim] < extents[dim] {
                next = Some(following);
                break;
            }
            following[dim] = 0;
        }
        Some(index)
    })
}

/// A program and its store.
#[derive(Clone, Debug)]
pub struct Machine<'p, V> {
    program: &'p Checked,
    vector_length: i64,
    division: Division,
    store: Vec<Tensor<V>>,
    points: u64,
    limits: Limits,
}

impl<'p, V: Value> Machine<'p, V> {
    /// The store in the beginning (figures 10, 13 and 15): `ambient` says what the ambient application
    /// has put into an element of a variable, which may be nothing; padding is 0. The vector length is
    /// at least 1.
    ///
    /// # Errors
    /// An `in` variable has an undefined element, or there are more elements than `limits` allow.
    pub fn new(
        program: &'p Checked,
        vector_length: i64,
        division: Division,
        limits: Limits,
        ambient: impl Fn(usize, &[usize]) -> Option<V>,
    ) -> Result<Self, Error> {
        let mut machine =
            Self { program, vector_length, division, store: Vec::new(), points: 0, limits };
        let mut num_elements = 0_u64;
        for variable in 0..program.variables.len() {
            let padded = program.variables[variable].ty.padded(vector_length).num_elements();
            let padded = padded.and_then(|it| u64::try_from(it).ok()).unwrap_or(u64::MAX);
            num_elements = num_elements.saturating_add(padded);
            if limits.elements < num_elements {
                let (what, limit) = ("the number of elements of all variables", limits.elements);
                return Err(Error::Limit { what, found: num_elements.to_string(), limit });
            }
            let tensor = machine.d_pad_var(variable, &ambient)?;
            machine.store.push(tensor);
        }
        Ok(machine)
    }

    /// Runs the statements (ev-prog, ev-seq).
    ///
    /// # Errors
    /// The limits, or [`Error::Stuck`], which a program from [`check`] never gets.
    ///
    /// [`check`]: tc_dialects::tml::syntax::check()
    pub fn run(&mut self) -> Result<(), Error> {
        self.program.statements.iter().try_for_each(|statement| self.ev_stmt(statement))
    }

    /// What a variable holds.
    pub fn tensor(&self, variable: usize) -> &Tensor<V> {
        &self.store[variable]
    }

    /// An element that is no padding.
    pub fn is_in_bounds(&self, variable: usize, index: &[usize]) -> bool {
        let extents = &self.program.variables[variable].ty.extents;
        index.iter().zip(extents).all(|(index, extent)| (*index as i64) < *extent)
    }

    /// Whether all padding is 0.
    pub fn is_padding_zero(&self) -> bool {
        self.store.iter().enumerate().all(|(variable, tensor)| {
            indices(&tensor.extents).zip(&tensor.elements).all(|(index, element)| {
                self.is_in_bounds(variable, &index) || element.as_ref().is_some_and(V::is_zero)
            })
        })
    }

    fn extents(&self, extents: &[i64]) -> Vec<usize> {
        extents.iter().map(|extent| round_up(*extent, self.vector_length) as usize).collect()
    }

    /// d-var, d-in-var and d-pad-var: what is allocated for a variable.
    fn d_pad_var(
        &self,
        variable: usize,
        ambient: &impl Fn(usize, &[usize]) -> Option<V>,
    ) -> Result<Tensor<V>, Error> {
        let declared = &self.program.variables[variable];
        let extents = self.extents(&declared.ty.extents);
        let is_input = matches!(declared.qualifier, Some(Qualifier::In | Qualifier::InOut));
        let mut elements = Vec::new();
        for index in indices(&extents) {
            let element = match self.is_in_bounds(variable, &index) {
                true => ambient(variable, &index),
                false => Some(V::zero()),
            };
            if is_input && element.is_none() {
                return Err(Error::Undefined { variable: declared.name.clone(), index });
            }
            elements.push(element);
        }
        Ok(Tensor { extents, elements })
    }

    /// ev-stmt and ev-pad-stmt: all elements of the value, under the store before, then the update.
    fn ev_stmt(&mut self, statement: &Statement) -> Result<(), Error> {
        let extents = self.extents(&statement.value.ty.extents);
        let mut elements = Vec::new();
        for index in indices(&extents) {
            elements.push(self.eval(&statement.value, &index)?);
        }
        let target = &mut self.store[statement.variable];
        if target.extents != extents {
            let variable = self.program.variables[statement.variable].name.clone();
            return Err(Error::Stuck { variable, index: extents });
        }
        target.elements = elements;
        Ok(())
    }

    /// The element of an expression (figure 12).
    fn eval(&mut self, expr: &Expr, index: &[usize]) -> Result<Option<V>, Error> {
        self.points += 1;
        if self.limits.points < self.points {
            let (what, limit) = ("the number of elements evaluated", self.limits.points);
            return Err(Error::Limit { what, found: format!("over {limit}"), limit });
        }
        match &expr.kind {
            // (7) eval(x)_i = x_i
            ExprKind::Variable(variable) => match self.store[*variable].get(index) {
                Some(element) => Ok(element.clone()),
                None => {
                    let variable = self.program.variables[*variable].name.clone();
                    Err(Error::Stuck { variable, index: index.to_vec() })
                }
            },
            // (9) eval(e # f)_(i, j) = eval(e)_i * eval(f)_j
            ExprKind::Product(lhs, rhs) => {
                let (left, right) = index.split_at(lhs.ty.rank().min(index.len()));
                let (lhs, rhs) = (self.eval(lhs, left)?, self.eval(rhs, right)?);
                Ok(self.division.apply(Operator::Mul, lhs, rhs))
            }
            // (10) transposition
            ExprKind::Transpose(operand, [first, second]) => {
                let mut index = index.to_vec();
                index.swap(*first, *second);
                self.eval(operand, &index)
            }
            // (11) the sum over the diagonal of two dimensions
            ExprKind::Contract(operand, [first, second]) => {
                let extent = round_up(operand.ty.extents[*first], self.vector_length) as usize;
                let mut terms = Vec::new();
                let mut is_defined = true;
                for k in 0..extent {
                    let mut inner = index.to_vec();
                    inner.insert(*first, k);
                    inner.insert(*second, k);
                    match self.eval(operand, &inner)? {
                        Some(term) => terms.push(term),
                        None => is_defined = false,
                    }
                }
                Ok(is_defined.then(|| V::sum(terms.into_iter())))
            }
            // (18) element by element
            ExprKind::Elementwise(op, lhs, rhs) => {
                let (lhs, rhs) = (self.eval(lhs, index)?, self.eval(rhs, index)?);
                Ok(self.division.apply(*op, lhs, rhs))
            }
            ExprKind::ScalarMul(scalar, tensor) => {
                let (lhs, rhs) = (self.eval(scalar, &[])?, self.eval(tensor, index)?);
                Ok(self.division.apply(Operator::Mul, lhs, rhs))
            }
            ExprKind::ScalarDiv(tensor, scalar) => {
                let (lhs, rhs) = (self.eval(tensor, index)?, self.eval(scalar, &[])?);
                Ok(self.division.apply(Operator::Div, lhs, rhs))
            }
        }
    }
}
