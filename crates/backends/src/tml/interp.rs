//! The evaluation rules of TML, one function each.
//!
//! Source: sections 3.2.2 and 4.1 of the report, figures 10 to 15. The implementation without padding is
//! the one of vector length 1, which rounds nothing (definition 7). Expressions are evaluated element by
//! element as figure 12 says, nested sums included, which is naive on purpose: nothing is computed once
//! and used twice, and no part of an expression is ever stored. How many elements that takes is known
//! before any is evaluated, so that what takes too many is refused at once.
//!
//! Every access to the store is checked. That none is outside of it, so that a well-formed program never
//! gets stuck, is what corollaries 2 and 3 say, and what tests check with [`Error::Stuck`].

use super::value::{Division, Value};
use crate::interp::Limits;
use tc_dialects::tml::syntax::{
    Checked,
    checked::{Expr, ExprKind, Operator, Qualifier, round_up},
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
    /// An element; none if the index is outside.
    pub fn get(&self, index: &[usize]) -> Option<&Option<V>> {
        self.at(index.iter().copied())
    }

    fn at(&self, index: impl ExactSizeIterator<Item = usize>) -> Option<&Option<V>> {
        if index.len() != self.extents.len() {
            return None;
        }
        let place = index.zip(&self.extents).try_fold(0, |place, (index, extent)| {
            (index < *extent).then(|| place * extent + index)
        });
        self.elements.get(place?)
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

/// An expression whose dimensions and sums are index variables: the rules that only move elements,
/// transposition and taking an outer product apart, are the indices of its variables.
#[derive(Debug)]
enum Term {
    /// The element of a variable, by the index variable of each dimension.
    Element(usize, Vec<usize>),
    /// The sum over an index variable with this many values.
    Sum(usize, usize, Box<Term>),
    /// An operator on two elements.
    Operation(Operator, Box<Term>, Box<Term>),
}

impl Term {
    /// The elements that are evaluated for one of this expression.
    fn points(&self) -> u64 {
        let below = match self {
            Self::Element(..) => 0,
            Self::Sum(_, extent, operand) => operand.points().saturating_mul(*extent as u64),
            Self::Operation(_, lhs, rhs) => lhs.points().saturating_add(rhs.points()),
        };
        below.saturating_add(1)
    }
}

/// The value of a statement as a term, whose first index variables are its dimensions.
struct Body {
    extents: Vec<usize>,
    term: Term,
    /// How many index variables there are.
    num_variables: usize,
}

/// A program and its store.
#[derive(Clone, Debug)]
pub struct Machine<'p, V> {
    program: &'p Checked,
    vector_length: i64,
    division: Division,
    store: Vec<Tensor<V>>,
    limits: Limits,
}

impl<'p, V: Value> Machine<'p, V> {
    /// The store in the beginning (figures 10, 13 and 15): `ambient` says what the ambient application
    /// has put into an element of a variable, by its place without padding, which may be nothing; padding
    /// is 0. The vector length is at least 1.
    ///
    /// # Errors
    /// An `in` variable has an undefined element, or there are more elements than `limits` allow.
    pub fn new(
        program: &'p Checked,
        vector_length: i64,
        division: Division,
        limits: Limits,
        ambient: impl Fn(usize, usize) -> Option<V>,
    ) -> Result<Self, Error> {
        let mut machine = Self { program, vector_length, division, store: Vec::new(), limits };
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
    /// The limits, before anything is evaluated, or [`Error::Stuck`], which a program from [`check`]
    /// never gets.
    ///
    /// [`check`]: tc_dialects::tml::syntax::check()
    pub fn run(&mut self) -> Result<(), Error> {
        let program = self.program;
        let bodies: Vec<_> = program.statements.iter().map(|it| self.body(&it.value)).collect();
        let points = bodies.iter().map(|body| {
            let elements = body.extents.iter().map(|extent| *extent as u64);
            elements.fold(body.term.points(), u64::saturating_mul)
        });
        let points = points.fold(0, u64::saturating_add);
        if self.limits.points < points {
            let (what, limit) = ("the number of elements to be evaluated", self.limits.points);
            return Err(Error::Limit { what, found: points.to_string(), limit });
        }
        let mut statements = program.statements.iter().zip(&bodies);
        statements.try_for_each(|(statement, body)| self.ev_stmt(statement.variable, body))
    }

    /// The program.
    pub fn program(&self) -> &'p Checked {
        self.program
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
        ambient: &impl Fn(usize, usize) -> Option<V>,
    ) -> Result<Tensor<V>, Error> {
        let declared = &self.program.variables[variable];
        let extents = self.extents(&declared.ty.extents);
        let is_input = matches!(declared.qualifier, Some(Qualifier::In | Qualifier::InOut));
        let mut elements = Vec::new();
        let mut places = 0..;
        for index in indices(&extents) {
            let place = self.is_in_bounds(variable, &index).then(|| places.next()).flatten();
            let element = place.map_or_else(|| Some(V::zero()), |place| ambient(variable, place));
            if is_input && element.is_none() {
                return Err(Error::Undefined { variable: declared.name.clone(), index });
            }
            elements.push(element);
        }
        Ok(Tensor { extents, elements })
    }

    fn body(&self, value: &Expr) -> Body {
        let extents = self.extents(&value.ty.extents);
        let mut num_variables = extents.len();
        let dims: Vec<_> = (0..num_variables).collect();
        let term = self.term(value, dims, &mut num_variables);
        Body { extents, term, num_variables }
    }

    /// The element of an expression at an index (figure 12).
    fn term(&self, expr: &Expr, mut index: Vec<usize>, num_variables: &mut usize) -> Term {
        let mut below = |expr: &Expr, index| Box::new(self.term(expr, index, num_variables));
        match &expr.kind {
            // (7) eval(x)_i = x_i
            ExprKind::Variable(variable) => Term::Element(*variable, index),
            // (9) eval(e # f)_(i, j) = eval(e)_i * eval(f)_j
            ExprKind::Product(lhs, rhs) => {
                let right = index.split_off(lhs.ty.rank());
                Term::Operation(Operator::Mul, below(lhs, index), below(rhs, right))
            }
            // (10) transposition
            ExprKind::Transpose(operand, [first, second]) => {
                index.swap(*first, *second);
                *below(operand, index)
            }
            // (11) the sum over the diagonal of two dimensions
            ExprKind::Contract(operand, [first, second]) => {
                let extent = round_up(operand.ty.extents[*first], self.vector_length) as usize;
                let variable = *num_variables;
                *num_variables += 1;
                index.insert(*first, variable);
                index.insert(*second, variable);
                Term::Sum(variable, extent, Box::new(self.term(operand, index, num_variables)))
            }
            // (18) element by element
            ExprKind::Elementwise(op, lhs, rhs) => {
                Term::Operation(*op, below(lhs, index.clone()), below(rhs, index))
            }
            ExprKind::ScalarMul(scalar, tensor) => {
                Term::Operation(Operator::Mul, below(scalar, Vec::new()), below(tensor, index))
            }
            ExprKind::ScalarDiv(tensor, scalar) => {
                Term::Operation(Operator::Div, below(tensor, index), below(scalar, Vec::new()))
            }
        }
    }

    /// ev-stmt and ev-pad-stmt: all elements of the value, under the store before, then the update.
    fn ev_stmt(&mut self, variable: usize, body: &Body) -> Result<(), Error> {
        let mut elements = Vec::new();
        let mut values = vec![0; body.num_variables];
        for index in indices(&body.extents) {
            values[..index.len()].copy_from_slice(&index);
            elements.push(self.eval(&body.term, &mut values)?);
        }
        let target = &mut self.store[variable];
        if target.extents != body.extents {
            let variable = self.program.variables[variable].name.clone();
            return Err(Error::Stuck { variable, index: body.extents.clone() });
        }
        target.elements = elements;
        Ok(())
    }

    /// A term for values of the index variables.
    fn eval(&self, term: &Term, values: &mut [usize]) -> Result<Option<V>, Error> {
        match term {
            Term::Element(variable, index) => {
                let index = index.iter().map(|it| values[*it]);
                match self.store[*variable].at(index.clone()) {
                    Some(element) => Ok(element.clone()),
                    None => {
                        let variable = self.program.variables[*variable].name.clone();
                        Err(Error::Stuck { variable, index: index.collect() })
                    }
                }
            }
            Term::Sum(variable, extent, operand) => {
                let (mut is_defined, mut failed) = (true, None);
                let sum = V::sum((0..*extent).filter_map(|value| {
                    values[*variable] = value;
                    let term = self.eval(operand, values).unwrap_or_else(|error| {
                        failed.get_or_insert(error);
                        None
                    });
                    is_defined &= term.is_some();
                    term
                }));
                failed.map_or(Ok(is_defined.then_some(sum)), Err)
            }
            Term::Operation(op, lhs, rhs) => {
                let (lhs, rhs) = (self.eval(lhs, values)?, self.eval(rhs, values)?);
                Ok(self.division.apply(*op, lhs, rhs))
            }
        }
    }
}
