//! Canonical polynomials: the normal form that the interval solver, the prover and their texts
//! share.
//!
//! An index expression is written as `k0 + k1*m1 + k2*m2 + ...`, where every monomial `mi` is a
//! product of *atoms*: variables, and divisions, remainders, minima and maxima whose operands are
//! canonical themselves. Two expressions with the same polynomial have the same value wherever both
//! are defined. The converse fails only for identities that need case analysis or bounds; the
//! prover handles those.
//!
//! What the form does beyond collecting equal terms:
//! - `floor((c*x + r) / c) == x + floor(r / c)`, common factors of numerator and divisor cancel,
//!   nested divisions by constants merge, ceiling divisions become floor divisions;
//! - minima and maxima are flattened, arguments that differ by a constant merge, and the smallest
//!   constant of the arguments is moved out, so that `min(N, M) - 1 + 1` is `min(N, M)` again;
//! - `x mod c` keeps only the remainders of `x`'s coefficients.
//!
//! Cost: each shared subexpression is visited once, by a loop rather than by recursion. Polynomials
//! are limited to [`MAX_TERMS`] terms, and a normalizer to [`MAX_TOTAL_TERMS`] in all. Arithmetic
//! on coefficients is checked.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use smallvec::SmallVec;

use crate::expr::{Context, Expr, Node, Var};

/// The largest number of terms in one polynomial, and of arguments in one minimum or maximum.
pub const MAX_TERMS: usize = 512;

/// The largest number of factors of a term of a product.
pub const MAX_FACTORS: usize = 8;

/// The largest number of terms that one [`Normalizer`] keeps over all the expressions it has seen.
pub const MAX_TOTAL_TERMS: usize = 1 << 20;

/// How deep a text may nest before the rest is written as `...`.
const MAX_TEXT_DEPTH: usize = 64;

/// How many operations and names a text may have before the rest is written as `...`. Shared
/// subexpressions count each time, since they are written each time.
const MAX_TEXT_PARTS: usize = 4096;

/// Why an expression has no canonical polynomial.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolynomialError {
    /// A coefficient or constant leaves the range of `i64`.
    #[error("a coefficient overflows 64 bits")]
    Overflow,
    /// The expanded form is larger than [`MAX_TERMS`] or [`MAX_TOTAL_TERMS`] allow.
    #[error("the expanded expression is too large")]
    TooLarge,
}

/// The result of arithmetic on polynomials.
pub type Result<T> = std::result::Result<T, PolynomialError>;

/// A product of atoms, sorted; `x*x` holds `x` twice. Never empty: the constant is kept apart.
pub type Monomial = SmallVec<[Expr; 2]>;

/// A sum of monomials with integer coefficients, and a constant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Polynomial {
    constant: i64,
    terms: BTreeMap<Monomial, i64>,
}

impl Polynomial {
    /// The polynomial `value`.
    pub fn constant(value: i64) -> Self {
        Self { constant: value, terms: BTreeMap::new() }
    }

    /// The polynomial that is one atom, taken as it is.
    pub fn atom(atom: Expr) -> Self {
        let mut terms = BTreeMap::new();
        terms.insert(SmallVec::from_slice(&[atom]), 1);
        Self { constant: 0, terms }
    }

    /// The polynomial `coefficient * monomial`.
    pub fn term(monomial: Monomial, coefficient: i64) -> Self {
        let mut result = Self::default();
        if monomial.is_empty() {
            result.constant = coefficient;
        } else if coefficient != 0 {
            result.terms.insert(monomial, coefficient);
        }
        result
    }

    /// The value, when there are no terms.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The constant part.
    pub fn constant_part(&self) -> i64 {
        self.constant
    }

    /// The terms, in a fixed order.
    pub fn terms(&self) -> impl ExactSizeIterator<Item = (&Monomial, i64)> {
        self.terms.iter().map(|(monomial, &coefficient)| (monomial, coefficient))
    }

    /// The coefficient of a monomial; 0 when it does not occur.
    pub fn coefficient(&self, monomial: &Monomial) -> i64 {
        self.terms.get(monomial).copied().unwrap_or(0)
    }

    /// Sets the coefficient of a monomial; that of the empty one is the constant part.
    pub fn set(&mut self, monomial: &Monomial, coefficient: i64) {
        if monomial.is_empty() {
            self.constant = coefficient;
        } else if coefficient == 0 {
            self.terms.remove(monomial);
        } else {
            self.terms.insert(monomial.clone(), coefficient);
        }
    }

    /// The atom, when the polynomial is `1 * atom + constant`.
    pub fn single_atom(&self) -> Option<Expr> {
        match self.single_term()? {
            (monomial, 1) if monomial.len() == 1 => Some(monomial[0]),
            _ => None,
        }
    }

    /// The term, when there is exactly one.
    fn single_term(&self) -> Option<(&Monomial, i64)> {
        if self.terms.len() == 1 { self.terms().next() } else { None }
    }

    /// The sum.
    ///
    /// # Errors
    /// Overflow of a coefficient, or too many terms.
    pub fn add(&self, other: &Self) -> Result<Self> {
        let (mut result, small) = if other.terms.len() <= self.terms.len() {
            (self.clone(), other)
        } else {
            (other.clone(), self)
        };
        result.accumulate_all(small)?;
        Ok(result)
    }

    fn accumulate_all(&mut self, other: &Self) -> Result<()> {
        self.constant = checked(self.constant.checked_add(other.constant))?;
        for (monomial, coefficient) in &other.terms {
            self.accumulate(monomial, *coefficient)?;
        }
        if self.terms.len() <= MAX_TERMS { Ok(()) } else { Err(PolynomialError::TooLarge) }
    }

    /// The difference `self - other`.
    ///
    /// # Errors
    /// Overflow of a coefficient, or too many terms.
    pub fn sub(&self, other: &Self) -> Result<Self> {
        self.add(&other.scale(-1)?)
    }

    /// The sum with a constant.
    ///
    /// # Errors
    /// Overflow of the constant.
    pub fn plus(&self, value: i64) -> Result<Self> {
        let constant = checked(self.constant.checked_add(value))?;
        Ok(Self { constant, terms: self.terms.clone() })
    }

    /// The product with a constant.
    ///
    /// # Errors
    /// Overflow of a coefficient.
    pub fn scale(&self, factor: i64) -> Result<Self> {
        if factor == 0 {
            return Ok(Self::default());
        }
        let constant = checked(self.constant.checked_mul(factor))?;
        let terms = self.terms.iter().map(|(monomial, coefficient)| {
            Ok((monomial.clone(), checked(coefficient.checked_mul(factor))?))
        });
        Ok(Self { constant, terms: terms.collect::<Result<_>>()? })
    }

    /// The product.
    ///
    /// # Errors
    /// Overflow of a coefficient, or too many terms.
    pub fn mul(&self, other: &Self) -> Result<Self> {
        if self.terms.len().saturating_mul(other.terms.len()) > MAX_TERMS * 4 {
            return Err(PolynomialError::TooLarge);
        }
        let mut result = self.scale(other.constant)?;
        for (monomial, coefficient) in &other.terms {
            if self.constant != 0 {
                result.accumulate(monomial, checked(coefficient.checked_mul(self.constant))?)?;
            }
            for (left, left_coefficient) in &self.terms {
                if left.len() + monomial.len() > MAX_FACTORS {
                    return Err(PolynomialError::TooLarge);
                }
                let mut product = left.clone();
                product.extend(monomial.iter().copied());
                product.sort_unstable();
                result
                    .accumulate(&product, checked(coefficient.checked_mul(*left_coefficient))?)?;
            }
        }
        if result.terms.len() <= MAX_TERMS { Ok(result) } else { Err(PolynomialError::TooLarge) }
    }

    /// Divides the variable part by the greatest common divisor `g` of its coefficients and rounds
    /// the constant down: `self >= 0` exactly when the result is, since every monomial is an
    /// integer.
    pub fn tightened(&self) -> Self {
        let divisor =
            self.terms.values().fold(0, |divisor, &coefficient| gcd(divisor, coefficient));
        if divisor <= 1 {
            return self.clone();
        }
        let terms = self
            .terms
            .iter()
            .map(|(monomial, coefficient)| (monomial.clone(), coefficient / divisor));
        Self { constant: self.constant.div_euclid(divisor), terms: terms.collect() }
    }

    fn accumulate(&mut self, monomial: &Monomial, coefficient: i64) -> Result<()> {
        use std::collections::btree_map::Entry;
        if coefficient == 0 {
            return Ok(());
        }
        match self.terms.entry(monomial.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(coefficient);
            }
            Entry::Occupied(mut entry) => {
                let sum = checked(entry.get().checked_add(coefficient))?;
                if sum == 0 {
                    entry.remove();
                } else {
                    entry.insert(sum);
                }
            }
        }
        Ok(())
    }
}

fn checked(value: Option<i64>) -> Result<i64> {
    value.ok_or(PolynomialError::Overflow)
}

/// The greatest common divisor of two magnitudes; 1 where it would not fit.
fn gcd(a: i64, b: i64) -> i64 {
    i64::try_from(crate::expr::gcd(a.unsigned_abs(), b.unsigned_abs())).unwrap_or(1)
}

/// Which end of its arguments an atom takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extremum {
    /// The least argument.
    Min,
    /// The greatest argument.
    Max,
}

/// Turns expressions into polynomials and back, remembering what it has seen.
pub struct Normalizer<'c> {
    context: &'c Context,
    memo: HashMap<Expr, Rc<Polynomial>>,
    total_terms: usize,
}

impl<'c> Normalizer<'c> {
    /// A normalizer for expressions of `context`.
    pub fn new(context: &'c Context) -> Self {
        Self { context, memo: HashMap::new(), total_terms: 0 }
    }

    /// A normalizer that takes `replacement` for every occurrence of `atom`.
    pub fn replacing(context: &'c Context, atom: Expr, replacement: Polynomial) -> Self {
        let mut result = Self::new(context);
        result.memo.insert(atom, Rc::new(replacement));
        result
    }

    /// A normalizer that takes a polynomial for every occurrence of some atoms.
    pub fn replacing_all(
        context: &'c Context,
        replacements: impl IntoIterator<Item = (Expr, Rc<Polynomial>)>,
    ) -> Self {
        let mut result = Self::new(context);
        result.memo.extend(replacements);
        result
    }

    /// The arena of the expressions.
    pub fn context(&self) -> &'c Context {
        self.context
    }

    /// The canonical polynomial of an expression.
    ///
    /// # Errors
    /// A coefficient overflows, or the expanded form is too large.
    pub fn polynomial(&mut self, root: Expr) -> Result<Rc<Polynomial>> {
        let mut pending = vec![root];
        while let Some(&expr) = pending.last() {
            if self.memo.contains_key(&expr) {
                pending.pop();
                continue;
            }
            let node = self.context.node(expr);
            let before = pending.len();
            if let Some((lhs, rhs)) = node.operands() {
                pending.extend(
                    [rhs, lhs].into_iter().filter(|operand| !self.memo.contains_key(operand)),
                );
            }
            if pending.len() == before {
                pending.pop();
                let polynomial = self.combine(expr, node)?;
                self.remember(expr, polynomial)?;
            }
        }
        Ok(Rc::clone(&self.memo[&root]))
    }

    /// The polynomial with every atom looked up anew: applies the replacement of
    /// [`Normalizer::replacing`].
    ///
    /// # Errors
    /// A coefficient overflows, or the expanded form is too large.
    pub fn renormalize(&mut self, polynomial: &Polynomial) -> Result<Polynomial> {
        let mut result = Polynomial::constant(polynomial.constant);
        for (monomial, coefficient) in &polynomial.terms {
            let mut product = Polynomial::constant(*coefficient);
            for &atom in monomial {
                product = product.mul(&*self.polynomial(atom)?)?;
            }
            result.accumulate_all(&product)?;
        }
        Ok(result)
    }

    fn remember(&mut self, expr: Expr, polynomial: Polynomial) -> Result<()> {
        self.total_terms += polynomial.terms.len() + 1;
        if self.total_terms > MAX_TOTAL_TERMS {
            return Err(PolynomialError::TooLarge);
        }
        self.memo.insert(expr, Rc::new(polynomial));
        Ok(())
    }

    fn combine(&mut self, expr: Expr, node: Node) -> Result<Polynomial> {
        let operand = |expr: &Expr| Rc::clone(&self.memo[expr]);
        match node {
            Node::Const(value) => Ok(Polynomial::constant(value)),
            Node::Var(_) => Ok(Polynomial::atom(expr)),
            Node::Add(a, b) => operand(&a).add(&operand(&b)),
            Node::Mul(a, b) => operand(&a).mul(&operand(&b)),
            Node::FloorDiv(a, b) => {
                let (a, b) = (operand(&a), operand(&b));
                self.floor_div(&a, &b)
            }
            Node::CeilDiv(a, b) => {
                let (a, b) = (operand(&a), operand(&b));
                self.ceil_div(&a, &b)
            }
            Node::Mod(a, b) => {
                let (a, b) = (operand(&a), operand(&b));
                self.modulo(&a, &b)
            }
            Node::Min(a, b) => {
                let arguments = [operand(&a), operand(&b)];
                self.extremum(Extremum::Min, arguments.iter().map(Rc::as_ref))
            }
            Node::Max(a, b) => {
                let arguments = [operand(&a), operand(&b)];
                self.extremum(Extremum::Max, arguments.iter().map(Rc::as_ref))
            }
        }
    }

    /// `floor(a / b)`.
    ///
    /// # Errors
    /// A coefficient overflows, or the expanded form is too large.
    pub fn floor_div(&mut self, a: &Polynomial, b: &Polynomial) -> Result<Polynomial> {
        match b.as_constant() {
            Some(divisor) if divisor > 0 => self.floor_div_constant(a.clone(), divisor),
            Some(divisor) if divisor < 0 => {
                self.floor_div_constant(a.scale(-1)?, checked(divisor.checked_neg())?)
            }
            Some(_) => self.opaque(a, b, Context::floor_div),
            None => {
                let (quotient, rest) = split_multiples(a, b)?;
                if rest == Polynomial::default() {
                    return Ok(quotient);
                }
                quotient.add(&self.opaque(&rest, b, Context::floor_div)?)
            }
        }
    }

    /// `ceil(a / b)`.
    ///
    /// # Errors
    /// A coefficient overflows, or the expanded form is too large.
    pub fn ceil_div(&mut self, a: &Polynomial, b: &Polynomial) -> Result<Polynomial> {
        match b.as_constant() {
            Some(divisor) if divisor > 0 => self.floor_div_constant(a.plus(divisor - 1)?, divisor),
            // ceil(a / b) == -floor(-a / b), whatever the sign of b.
            _ => self.floor_div(&a.scale(-1)?, b)?.scale(-1),
        }
    }

    fn floor_div_constant(
        &mut self,
        mut numerator: Polynomial,
        mut divisor: i64,
    ) -> Result<Polynomial> {
        let mut quotient = Polynomial::default();
        loop {
            if divisor == 1 {
                return quotient.add(&numerator);
            }
            let mut rest = Polynomial::constant(numerator.constant.rem_euclid(divisor));
            let mut whole = Polynomial::constant(numerator.constant.div_euclid(divisor));
            for (monomial, &coefficient) in &numerator.terms {
                // Part of a coefficient stays, since `3*i / 2` reads better than `i / 2 + i`.
                if coefficient % divisor == 0 {
                    whole.accumulate(monomial, coefficient / divisor)?;
                } else {
                    rest.accumulate(monomial, coefficient)?;
                }
            }
            quotient = quotient.add(&whole)?;
            if rest.terms.is_empty() {
                return Ok(quotient);
            }
            let common =
                rest.terms.values().fold(divisor, |common, &coefficient| gcd(common, coefficient));
            if common > 1 {
                divisor /= common;
                numerator = rest.tightened_by(common);
                continue;
            }
            match self.merge_nested(&rest, divisor)? {
                Some((merged, product)) => (numerator, divisor) = (merged, product),
                None => {
                    let atom =
                        self.opaque(&rest, &Polynomial::constant(divisor), Context::floor_div)?;
                    return quotient.add(&atom);
                }
            }
        }
    }

    /// `floor((floor(x/d) + k) / c) == floor((x + k*d) / (c*d))`, and the same for `-floor(x/d)`.
    fn merge_nested(
        &mut self,
        rest: &Polynomial,
        divisor: i64,
    ) -> Result<Option<(Polynomial, i64)>> {
        let Some((monomial, coefficient)) = rest.single_term() else {
            return Ok(None);
        };
        if monomial.len() != 1 || !matches!(coefficient, 1 | -1) {
            return Ok(None);
        }
        let Node::FloorDiv(inner, inner_divisor) = self.context.node(monomial[0]) else {
            return Ok(None);
        };
        let Some(inner_divisor) =
            self.context.as_constant(inner_divisor).filter(|&divisor| 0 < divisor)
        else {
            return Ok(None);
        };
        let Some(product) = divisor.checked_mul(inner_divisor) else {
            return Ok(None);
        };
        let inner = self.polynomial(inner)?;
        let shift = checked(rest.constant.checked_mul(inner_divisor))?;
        let merged = if coefficient == 1 {
            inner.plus(shift)?
        } else {
            // -floor(x/d) == floor((d - 1 - x) / d)
            inner.scale(-1)?.plus(inner_divisor - 1)?.plus(shift)?
        };
        Ok(Some((merged, product)))
    }

    /// `a mod b`.
    ///
    /// # Errors
    /// A coefficient overflows, or the expanded form is too large.
    pub fn modulo(&mut self, a: &Polynomial, b: &Polynomial) -> Result<Polynomial> {
        // x mod -c == x mod c
        let divisor = b.as_constant().and_then(i64::checked_abs);
        let Some(divisor) = divisor.filter(|&divisor| divisor > 0) else {
            return self.opaque(a, b, Context::modulo);
        };
        let mut rest = Polynomial::constant(a.constant.rem_euclid(divisor));
        for (monomial, &coefficient) in &a.terms {
            rest.accumulate(monomial, coefficient % divisor)?;
        }
        if rest.terms.is_empty() {
            return Ok(rest);
        }
        self.opaque(&rest, b, Context::modulo)
    }

    /// The least of the arguments.
    ///
    /// # Errors
    /// A coefficient overflows, or the expanded form is too large.
    pub fn min<'p>(
        &mut self,
        arguments: impl IntoIterator<Item = &'p Polynomial>,
    ) -> Result<Polynomial> {
        self.extremum(Extremum::Min, arguments)
    }

    /// The greatest of the arguments.
    ///
    /// # Errors
    /// A coefficient overflows, or the expanded form is too large.
    pub fn max<'p>(
        &mut self,
        arguments: impl IntoIterator<Item = &'p Polynomial>,
    ) -> Result<Polynomial> {
        self.extremum(Extremum::Max, arguments)
    }

    /// The canonical arguments of the minimum or maximum that `atom` is, nested ones merged; `None`
    /// for any other.
    ///
    /// # Errors
    /// A coefficient overflows, or the expanded form is too large.
    pub fn arguments(&mut self, atom: Expr) -> Result<Option<(Extremum, Vec<Polynomial>)>> {
        let kind = match self.context.node(atom) {
            Node::Min(..) => Extremum::Min,
            Node::Max(..) => Extremum::Max,
            _ => return Ok(None),
        };
        let mut arguments = Vec::new();
        let mut pending = vec![atom];
        while let Some(expr) = pending.pop() {
            match (self.context.node(expr), kind) {
                (Node::Min(a, b), Extremum::Min) | (Node::Max(a, b), Extremum::Max) => {
                    pending.extend([b, a])
                }
                // This call does not nest: what it meets inside was made by this normalizer and is
                // remembered.
                _ => arguments.push(self.polynomial(expr)?.as_ref().clone()),
            }
            if MAX_TERMS < arguments.len() {
                return Err(PolynomialError::TooLarge);
            }
        }
        Ok(Some((kind, arguments)))
    }

    fn extremum<'p>(
        &mut self,
        kind: Extremum,
        arguments: impl IntoIterator<Item = &'p Polynomial>,
    ) -> Result<Polynomial> {
        // Arguments with the same terms differ by a constant, so that one of them decides.
        let mut groups: BTreeMap<BTreeMap<Monomial, i64>, i64> = BTreeMap::new();
        for argument in arguments {
            let nested = match argument.single_atom() {
                Some(atom) => self.arguments(atom)?,
                None => None,
            };
            let leaves = match nested {
                Some((nested_kind, leaves)) if nested_kind == kind => leaves
                    .iter()
                    .map(|leaf| leaf.plus(argument.constant))
                    .collect::<Result<Vec<_>>>()?,
                _ => vec![argument.clone()],
            };
            for leaf in leaves {
                let best = groups.entry(leaf.terms).or_insert(leaf.constant);
                *best = if kind == Extremum::Min {
                    (*best).min(leaf.constant)
                } else {
                    (*best).max(leaf.constant)
                };
            }
        }
        if groups.len() > MAX_TERMS {
            return Err(PolynomialError::TooLarge);
        }
        if groups.len() == 1 {
            let (terms, constant) = groups.pop_first().expect("there is one group");
            return Ok(Polynomial { constant, terms });
        }
        let offset = groups.values().copied().min().unwrap_or(0);
        let lone_constant =
            groups.remove(&BTreeMap::new()).map(|constant| (BTreeMap::new(), constant));
        let mut result: Option<Expr> = None;
        for (terms, constant) in groups.into_iter().chain(lone_constant) {
            let constant = checked(constant.checked_sub(offset))?;
            let argument = self.plain(&Polynomial { constant, terms })?;
            result = Some(match (result, kind) {
                (None, _) => argument,
                (Some(so_far), Extremum::Min) => self.context.min(so_far, argument),
                (Some(so_far), Extremum::Max) => self.context.max(so_far, argument),
            });
        }
        match result {
            Some(atom) => self.wrap(atom)?.plus(offset),
            None => Ok(Polynomial::default()),
        }
    }

    /// An operation kept as an atom.
    fn opaque(
        &mut self,
        a: &Polynomial,
        b: &Polynomial,
        build: impl Fn(&Context, Expr, Expr) -> Expr,
    ) -> Result<Polynomial> {
        let (a, b) = (self.plain(a)?, self.plain(b)?);
        let atom = build(self.context, a, b);
        self.wrap(atom)
    }

    fn wrap(&mut self, atom: Expr) -> Result<Polynomial> {
        if let Some(value) = self.context.as_constant(atom) {
            return Ok(Polynomial::constant(value));
        }
        let polynomial = Polynomial::atom(atom);
        self.remember(atom, polynomial.clone())?;
        Ok(polynomial)
    }

    /// The expression of a polynomial, term by term.
    fn plain(&mut self, polynomial: &Polynomial) -> Result<Expr> {
        let expr = sum_expr(self.context, polynomial);
        self.remember(expr, polynomial.clone())?;
        Ok(expr)
    }

    /// The expression of a polynomial, as a person would write it: positive terms first, and a
    /// constant that stands beside a lone division, minimum or maximum moved into it, as in
    /// `(N - 1) floordiv 2`.
    ///
    /// # Errors
    /// A coefficient overflows, or the expanded form is too large.
    pub fn expr(&mut self, polynomial: &Polynomial) -> Result<Expr> {
        match self.absorbed(polynomial)? {
            Absorbed::Division(numerator, divisor) => {
                let numerator = self.plain(&numerator)?;
                Ok(self.context.floor_div(numerator, self.context.constant(divisor)))
            }
            Absorbed::Extremum(kind, arguments) => {
                let mut exprs = Vec::with_capacity(arguments.len());
                for argument in &arguments {
                    exprs.push(match self.absorbed(argument)? {
                        Absorbed::Division(numerator, divisor) => {
                            let numerator = self.plain(&numerator)?;
                            self.context.floor_div(numerator, self.context.constant(divisor))
                        }
                        _ => self.plain(argument)?,
                    });
                }
                let build = if kind == Extremum::Min { Context::min } else { Context::max };
                Ok(exprs
                    .into_iter()
                    .reduce(|a, b| build(self.context, a, b))
                    .expect("an extremum has arguments"))
            }
            Absorbed::Nothing => self.plain(polynomial),
        }
    }

    fn absorbed(&mut self, polynomial: &Polynomial) -> Result<Absorbed> {
        let Some(atom) = polynomial.single_atom() else {
            return Ok(Absorbed::Nothing);
        };
        if let Node::FloorDiv(numerator, divisor) = self.context.node(atom) {
            let Some(divisor) = self.context.as_constant(divisor).filter(|&divisor| 0 < divisor)
            else {
                return Ok(Absorbed::Nothing);
            };
            let shift = checked(polynomial.constant.checked_mul(divisor))?;
            return Ok(Absorbed::Division(self.polynomial(numerator)?.plus(shift)?, divisor));
        }
        let Some((kind, arguments)) = self.arguments(atom)? else {
            return Ok(Absorbed::Nothing);
        };
        let shifted = arguments.iter().map(|argument| argument.plus(polynomial.constant));
        Ok(Absorbed::Extremum(kind, shifted.collect::<Result<_>>()?))
    }
}

/// What a lone atom and its constant become when the constant moves in.
enum Absorbed {
    Division(Polynomial, i64),
    Extremum(Extremum, Vec<Polynomial>),
    Nothing,
}

impl Polynomial {
    /// Divides the terms, which are multiples of `common`, and rounds the constant down.
    fn tightened_by(&self, common: i64) -> Self {
        let terms = self
            .terms
            .iter()
            .map(|(monomial, coefficient)| (monomial.clone(), coefficient / common));
        Self { constant: self.constant.div_euclid(common), terms: terms.collect() }
    }
}

/// Writes `a == q*b + rest` for a divisor that is one monomial, such as a size; `q == 0` for any
/// other.
fn split_multiples(a: &Polynomial, b: &Polynomial) -> Result<(Polynomial, Polynomial)> {
    let mut quotient = Polynomial::default();
    let (divisor, 1, 0) = (match b.single_term() {
        Some((monomial, coefficient)) => (monomial, coefficient, b.constant),
        None => return Ok((quotient, a.clone())),
    }) else {
        return Ok((quotient, a.clone()));
    };
    let mut rest = Polynomial::constant(a.constant);
    for (monomial, &coefficient) in &a.terms {
        match remove_factor(monomial, divisor) {
            Some(remaining) => {
                quotient = quotient.add(&Polynomial::term(remaining, coefficient))?
            }
            None => rest.accumulate(monomial, coefficient)?,
        }
    }
    Ok((quotient, rest))
}

/// The monomial without the atoms of `factor`, when it has them all.
pub(crate) fn remove_factor(monomial: &Monomial, factor: &Monomial) -> Option<Monomial> {
    let mut remaining = monomial.clone();
    for atom in factor {
        let position = remaining.iter().position(|candidate| candidate == atom)?;
        remaining.remove(position);
    }
    Some(remaining)
}

/// The terms in the order in which they are written: positive ones first, and within a sign by
/// structure, variables first.
fn written_order<'p>(context: &Context, polynomial: &'p Polynomial) -> Vec<(&'p Monomial, i64)> {
    let mut terms: Vec<_> = polynomial.terms().collect();
    terms.sort_by(|(left, left_coefficient), (right, right_coefficient)| {
        let by_atoms = written_factors(context, left)
            .into_iter()
            .zip(written_factors(context, right))
            .map(|(a, b)| context.compare(a, b))
            .find(|order| order.is_ne());
        (*left_coefficient < 0)
            .cmp(&(*right_coefficient < 0))
            .then(by_atoms.unwrap_or_else(|| left.len().cmp(&right.len())))
    });
    terms
}

/// The factors of a product in the order in which they are written, by structure.
fn written_factors(context: &Context, monomial: &Monomial) -> Monomial {
    let mut factors = monomial.clone();
    factors.sort_by(|&a, &b| context.compare(a, b));
    factors
}

fn sum_expr(context: &Context, polynomial: &Polynomial) -> Expr {
    let constant = polynomial.constant;
    let mut sum: Option<Expr> = None;
    if constant > 0 && polynomial.terms().all(|(_, coefficient)| coefficient < 0) {
        sum = Some(context.constant(constant));
    }
    let leading_constant = sum.is_some();
    for (monomial, coefficient) in written_order(context, polynomial) {
        let product = written_factors(context, monomial)
            .into_iter()
            .reduce(|a, b| context.mul(a, b))
            .expect("a monomial has an atom");
        let magnitude = |value: i64| {
            if value == 1 { product } else { context.mul(product, context.constant(value)) }
        };
        sum = Some(match (sum, coefficient.checked_neg()) {
            (Some(so_far), Some(negated)) if coefficient < 0 => {
                context.sub(so_far, magnitude(negated))
            }
            (Some(so_far), _) => context.add(so_far, magnitude(coefficient)),
            (None, _) => magnitude(coefficient),
        });
    }
    match sum {
        None => context.constant(constant),
        Some(sum) if constant == 0 || leading_constant => sum,
        Some(sum) => context.add(sum, context.constant(constant)),
    }
}

/// Writes an expression as a person would: `N - M + 1`, `(I - 1) / 2`, `min(N, M)`. Division rounds
/// down.
///
/// `name` gives each variable its name. Text nested deeper than a fixed limit is written as `...`.
pub fn text(context: &Context, expr: Expr, name: &dyn Fn(Var) -> String) -> String {
    let mut normalizer = Normalizer::new(context);
    match normalizer.polynomial(expr) {
        Ok(polynomial) => {
            Writer { normalizer: &mut normalizer, name, parts: 0 }.sum(&polynomial, 0)
        }
        // Too large for the canonical form, so too large to read.
        Err(_) => "...".to_owned(),
    }
}

/// Writes `expr >= 0` as a comparison with positive terms on both sides, such as `I + J - 1 <= K`.
///
/// `name` gives each variable its name. Text nested deeper than a fixed limit is written as `...`.
pub fn condition_text(context: &Context, expr: Expr, name: &dyn Fn(Var) -> String) -> String {
    let mut normalizer = Normalizer::new(context);
    let Ok(polynomial) = normalizer.polynomial(expr) else {
        return "...".to_owned();
    };
    let polynomial = polynomial.tightened();
    let (mut left, mut right) = (Polynomial::default(), Polynomial::default());
    for (monomial, coefficient) in polynomial.terms() {
        let (side, magnitude) = match coefficient.checked_neg() {
            Some(negated) if coefficient < 0 => (&mut left, negated),
            _ => (&mut right, coefficient),
        };
        side.terms.insert(monomial.clone(), magnitude);
    }
    // The constant reads best beside other terms: `2 <= N`, `I + J - 1 <= K`, `N <= 5`.
    let constant = polynomial.constant;
    if right.terms.is_empty() {
        right.constant = constant;
    } else {
        left.constant = constant.saturating_neg();
    }
    let mut writer = Writer { normalizer: &mut normalizer, name, parts: 0 };
    let (left, right) = (writer.sum(&left, 0), writer.sum(&right, 0));
    format!("{left} <= {right}")
}

/// Recursive, and limited to [`MAX_TEXT_DEPTH`] and [`MAX_TEXT_PARTS`].
struct Writer<'a, 'c> {
    normalizer: &'a mut Normalizer<'c>,
    name: &'a dyn Fn(Var) -> String,
    parts: usize,
}

impl Writer<'_, '_> {
    fn sum(&mut self, polynomial: &Polynomial, depth: usize) -> String {
        self.parts += 1;
        if MAX_TEXT_DEPTH < depth || MAX_TEXT_PARTS < self.parts {
            return "...".to_owned();
        }
        match self.normalizer.absorbed(polynomial) {
            Ok(Absorbed::Division(numerator, divisor)) => {
                let numerator = self.sum(&numerator, depth + 1);
                return format!("{} / {divisor}", parenthesized(numerator));
            }
            Ok(Absorbed::Extremum(kind, arguments)) => {
                let name = if kind == Extremum::Min { "min" } else { "max" };
                return self.call(name, &arguments, depth);
            }
            Ok(Absorbed::Nothing) | Err(_) => {}
        }
        let constant = polynomial.constant;
        let terms = written_order(self.normalizer.context, polynomial);
        let mut text = String::new();
        let leading = constant > 0 && terms.iter().all(|&(_, coefficient)| coefficient < 0);
        if leading || terms.is_empty() {
            text = constant.to_string();
        }
        for (monomial, coefficient) in terms {
            if text.is_empty() {
                text.push_str(if coefficient < 0 { "-" } else { "" });
            } else {
                text.push_str(if coefficient < 0 { " - " } else { " + " });
            }
            let magnitude = coefficient.unsigned_abs();
            if magnitude != 1 {
                text.push_str(&format!("{magnitude}*"));
            }
            let factors: Vec<_> = written_factors(self.normalizer.context, monomial)
                .into_iter()
                .map(|atom| self.atom(atom, depth + 1))
                .collect();
            // A division that is multiplied needs its parentheses: 3*(N / 2).
            let alone = factors.len() == 1 && magnitude == 1;
            let factors = factors
                .into_iter()
                .map(|factor| if alone { factor } else { parenthesized(factor) });
            text.push_str(&factors.collect::<Vec<_>>().join("*"));
        }
        if constant != 0 && !leading && !polynomial.terms.is_empty() {
            text.push_str(if constant < 0 { " - " } else { " + " });
            text.push_str(&constant.unsigned_abs().to_string());
        }
        text
    }

    fn call(&mut self, name: &str, arguments: &[Polynomial], depth: usize) -> String {
        let arguments: Vec<_> =
            arguments.iter().map(|argument| self.sum(argument, depth + 1)).collect();
        format!("{name}({})", arguments.join(", "))
    }

    fn atom(&mut self, atom: Expr, depth: usize) -> String {
        self.parts += 1;
        if MAX_TEXT_DEPTH < depth || MAX_TEXT_PARTS < self.parts {
            return "...".to_owned();
        }
        let operand = |writer: &mut Self, expr: Expr| match writer.normalizer.polynomial(expr) {
            Ok(polynomial) => parenthesized(writer.sum(&polynomial, depth + 1)),
            Err(_) => "...".to_owned(),
        };
        match self.normalizer.context.node(atom) {
            Node::Var(var) => (self.name)(var),
            Node::Const(value) => value.to_string(),
            Node::Min(..) | Node::Max(..) => self.sum(&Polynomial::atom(atom), depth),
            Node::FloorDiv(a, b) => format!("{} / {}", operand(self, a), operand(self, b)),
            Node::CeilDiv(a, b) => format!("ceildiv({}, {})", operand(self, a), operand(self, b)),
            Node::Mod(a, b) => format!("{} % {}", operand(self, a), operand(self, b)),
            Node::Add(a, b) => format!("{} + {}", operand(self, a), operand(self, b)),
            Node::Mul(a, b) => format!("{} * {}", operand(self, a), operand(self, b)),
        }
    }
}

/// Puts parentheses around anything but a name, a number or a call.
fn parenthesized(text: String) -> String {
    let mut depth = 0usize;
    let simple = text.chars().all(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > 0 || !matches!(c, ' ' | '*' | '-')
    });
    if simple { text } else { format!("({text})") }
}

#[cfg(test)]
pub(crate) mod tests;
