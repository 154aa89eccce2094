//! Rewrite rules for shape equations (Collins and Grover, "Axon", section 5).

use std::rc::Rc;

use super::sums::{common_terms, content, difference, divided, has_one_sign};
use super::{EquationId, NEW, Outcome, Reason, Relation, Solver, Stepped, Var};
use crate::expr::gcd;
use crate::polynomial::{Polynomial, remove_factor};
use crate::shape::{Dim, DimError, DimOp, DimVar, Item, RankEquation, Shape, ShapeVar};

impl Solver {
    pub(super) fn step(&mut self, id: EquationId, relation: Relation) -> Stepped {
        match relation {
            Relation::Shapes(left, right) => self.step_shapes(id, &left, &right),
            Relation::Dims(left, right) => self.step_dims(id, &left, &right),
            Relation::Positive(dim) => self.step_positive(id, &dim),
            Relation::Elements(left, right) => self.step_elements(id, &left, &right),
        }
    }

    fn child(&mut self, id: EquationId, relation: Relation) {
        let origin = self.equations[id as usize].origin;
        self.add(relation, origin, vec![id]);
    }

    /// Replaces an equation by what residuals make of it. It may not be forgotten that this is known
    /// from them: what they are derived from may be rewritten by this equation in turn.
    fn rewritten_by_residuals(&mut self, id: EquationId, relation: Relation) -> Outcome {
        self.note("partial expressions", id, || relation.clone());
        let mut parents = vec![id];
        parents.extend(self.dim_rules.iter().map(|rule| rule.equation));
        parents.extend(self.shape_rules.iter().map(|rule| rule.equation));
        let origin = self.equations[id as usize].origin;
        self.add(relation, origin, parents);
        Outcome::Done
    }

    fn equal_dims(&mut self, id: EquationId, left: &Dim, right: &Dim) {
        if left != right {
            self.child(id, Relation::Dims(left.clone(), right.clone()));
        }
    }

    fn step_shapes(&mut self, id: EquationId, left: &Shape, right: &Shape) -> Stepped {
        let (left, right) = (self.try_shape(left)?, self.try_shape(right)?);
        if left == right {
            return Ok(Outcome::Done);
        }
        let rank = |left: &Shape, right: &Shape| Reason::Rank(left.clone(), right.clone());
        let (new_left, new_right) = (self.rewritten(&left), self.rewritten(&right));
        if new_left.is_some() || new_right.is_some() {
            // What takes the place of a part may not tell any more.
            if RankEquation::new(&left, &right).is_impossible() {
                return Err(rank(&left, &right));
            }
            let relation = Relation::Shapes(new_left.unwrap_or(left), new_right.unwrap_or(right));
            return Ok(self.rewritten_by_residuals(id, relation));
        }
        if let (Some(a), Some(b)) = (left.as_dims(), right.as_dims()) {
            // Unpacking.
            if a.len() != b.len() {
                return Err(rank(&left, &right));
            }
            self.note("unpacking", id, || Relation::Shapes(left.clone(), right.clone()));
            for (a, b) in a.into_iter().zip(b) {
                self.equal_dims(id, a, b);
            }
            return Ok(Outcome::Done);
        }
        // Append unpacking, at the start and at the end.
        let (whole_left, whole_right) = (left, right);
        let (mut a, mut b) = (&whole_left.items[..], &whole_right.items[..]);
        let mut shortened = false;
        loop {
            match (a, b) {
                ([Item::Dim(x), rest_a @ ..], [Item::Dim(y), rest_b @ ..])
                | ([rest_a @ .., Item::Dim(x)], [rest_b @ .., Item::Dim(y)]) => {
                    self.equal_dims(id, x, y);
                    (a, b) = (rest_a, rest_b);
                }
                ([Item::Var(x), rest_a @ ..], [Item::Var(y), rest_b @ ..]) if x == y => {
                    (a, b) = (rest_a, rest_b);
                }
                ([rest_a @ .., Item::Var(x)], [rest_b @ .., Item::Var(y)]) if x == y => {
                    (a, b) = (rest_a, rest_b);
                }
                _ => break,
            }
            shortened = true;
        }
        if shortened {
            self.note("append unpacking", id, || {
                Relation::Shapes(whole_left.clone(), whole_right.clone())
            });
        }
        let left: Shape = a.iter().cloned().collect();
        let right: Shape = b.iter().cloned().collect();
        if left == right {
            return Ok(Outcome::Done);
        }
        // Of two variables, the newer one is replaced.
        let sides = match left.as_var() < right.as_var() {
            true => [(&right, &left), (&left, &right)],
            false => [(&left, &right), (&right, &left)],
        };
        for (var, other) in sides {
            if let Some(var) = var.as_var() {
                if !other.items.contains(&Item::Var(var)) {
                    self.note("replacement", id, || {
                        Relation::Shapes(Shape::var(var), other.clone())
                    });
                    self.bind_shape(id, var, other.clone());
                    return Ok(Outcome::Done);
                }
                // What stands beside the variable itself can only be empty.
                if 0 < other.min_rank() {
                    return Err(Reason::Endless(Shape::var(var), other.clone()));
                }
            }
        }
        for (known, other) in [(&left, &right), (&right, &left)] {
            if known.as_dims().is_none() {
                continue;
            }
            // Append dimensionality, empty shapes.
            if known.items.len() < other.min_rank() {
                return Err(rank(&whole_left, &whole_right));
            }
            if known.items.len() == other.min_rank() {
                self.note("empty shapes", id, || Relation::Shapes(left.clone(), right.clone()));
                self.empty_vars(id, other, None);
                let dims = other.items.iter().filter(|item| item.as_dim().is_some());
                for (a, b) in known.items.iter().zip(dims) {
                    if let (Item::Dim(a), Item::Dim(b)) = (a, b) {
                        self.equal_dims(id, a, b);
                    }
                }
                return Ok(Outcome::Done);
            }
        }
        for (var, other) in [(&left, &right), (&right, &left)] {
            if let Some(var) = var.as_var() {
                self.note("empty shapes", id, || Relation::Shapes(left.clone(), right.clone()));
                let count = other.items.iter().filter(|item| **item == Item::Var(var)).count();
                self.empty_vars(id, other, Some(var).filter(|_| count == 1));
                return Ok(Outcome::Done);
            }
        }
        if self.step_ranks(id, &left, &right)? || shortened {
            self.child(id, Relation::Shapes(left, right));
            return Ok(Outcome::Done);
        }
        for (known, other) in [(&left, &right), (&right, &left)] {
            if known.as_dims().is_some() {
                return Ok(Outcome::ShapeRule(other.clone(), known.clone()));
            }
        }
        match self.step_rotation(id, &left, &right)? {
            true => Ok(Outcome::Done),
            false => Ok(Outcome::Stuck),
        }
    }

    /// `u@q = q@v` holds where `u` and `v` are `x@y` and `y@x`, and `q` is `u` some times and then `x` (Lyndon and
    /// Schützenberger, "The equation a^M = b^N c^P in a free group", 1962). If there is only one such place in `u`
    /// that the sizes allow, it tells which sizes are equal. Whether it says something new.
    fn step_rotation(
        &mut self,
        id: EquationId,
        left: &Shape,
        right: &Shape,
    ) -> Result<bool, Reason> {
        let sides = [(left, right), (right, left)].into_iter().find_map(|(first, last)| {
            let (Some(Item::Var(after)), Some(Item::Var(before))) =
                (first.items.last(), last.items.first())
            else {
                return None;
            };
            let dims = |items: &[Item]| items.iter().map(|it| it.as_dim().cloned()).collect();
            let u: Option<Vec<Dim>> = dims(&first.items[..first.items.len() - 1]);
            let v: Option<Vec<Dim>> = dims(&last.items[1..]);
            let both = u.zip(v).filter(|(u, v)| after == before && u.len() == v.len());
            both.map(|(u, v)| (u, Item::Var(*after), v))
        });
        let Some((u, var, mut v)) = sides else { return Ok(false) };
        let is_known = |dim: &Dim| matches!(dim, Dim::Constant(_) | Dim::Ragged);
        let may_be_equal = |(a, b): (&Dim, &Dim)| a == b || !is_known(a) || !is_known(b);
        let mut rotations = Vec::new();
        for place in 0..u.len() {
            // Two single sizes are equal, or this says why they cannot be.
            if u.len() == 1 || u.iter().zip(&v).all(may_be_equal) {
                rotations.push((place, v.clone()));
            }
            v.rotate_left(1);
        }
        let [(place, v)] = &rotations[..] else {
            return match rotations.is_empty() {
                true => Err(Reason::Sizes),
                false => Ok(false),
            };
        };
        let is_new = u != *v;
        if is_new {
            self.note("rotation", id, || Relation::Shapes(left.clone(), right.clone()));
            u.iter().zip(v).for_each(|(a, b)| self.equal_dims(id, a, b));
            // What is left is the same with the sizes of `u` only.
            let mut rest = u.clone();
            rest.rotate_right(*place);
            let dims = |dims: Vec<Dim>| dims.into_iter().map(Item::Dim);
            let first = dims(u).chain([var.clone()]).collect();
            let last = [var].into_iter().chain(dims(rest)).collect();
            self.child(id, Relation::Shapes(first, last));
        }
        Ok(is_new)
    }

    /// What follows from the number of dimensions on both sides, where variables that both have
    /// cancel: the remaining ones are empty, or one of them is known. Whether there is such a thing.
    fn step_ranks(&mut self, id: EquationId, left: &Shape, right: &Shape) -> Result<bool, Reason> {
        let ranks = RankEquation::new(left, right);
        if ranks.is_impossible() {
            return Err(Reason::Rank(left.clone(), right.clone()));
        }
        if ranks.is_open() {
            return Ok(false);
        }
        let RankEquation { counts, num_dims, .. } = ranks;
        if num_dims == 0 {
            for var in counts.keys() {
                self.child(id, Relation::Shapes(Shape::var(*var), Shape::default()));
            }
            return Ok(!counts.is_empty());
        }
        let Some((&var, &count)) = counts.iter().next().filter(|_| counts.len() == 1) else {
            return Ok(false);
        };
        let rank = usize::try_from(num_dims / count).unwrap_or(usize::MAX);
        for (known, other) in [(left, right), (right, left)] {
            let start = other.items.iter().position(|item| *item == Item::Var(var));
            if let Some(start) = start.filter(|_| known.as_dims().is_some()) {
                let value = known.items.iter().skip(start).take(rank).cloned().collect();
                self.child(id, Relation::Shapes(Shape::var(var), value));
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Equates the variables of a shape with the empty shape, all but one.
    fn empty_vars(&mut self, id: EquationId, shape: &Shape, except: Option<ShapeVar>) {
        for item in &shape.items {
            if let Item::Var(var) = item
                && Some(*var) != except
            {
                self.child(id, Relation::Shapes(Shape::var(*var), Shape::default()));
            }
        }
    }

    pub(super) fn bind_shape(&mut self, id: EquationId, var: ShapeVar, value: Shape) {
        let variable = &mut self.shapes[var.0 as usize];
        let level = variable.level;
        let waiting = std::mem::take(&mut variable.waiting);
        self.limit_levels(&value, level);
        // All of its variables but one may be empty.
        self.equations[id as usize].depends_on_order |=
            value.min_rank() == 0 && 1 < value.items.len();
        if let Some(other) = value.as_var() {
            if [var, other].iter().any(|it| self.of_numbers.contains_key(it)) {
                match self.is_decided_with_others(id) {
                    true => _ = self.of_numbers.remove(&other),
                    false => _ = self.of_numbers.entry(other).or_insert(Some(id)),
                }
            }
            if self.named_shapes.contains(&var) {
                self.named_shapes.insert(other);
            }
        }
        self.shapes[var.0 as usize].value = Some((value, id));
        self.news.push(Var::Shape(var));
        self.wake(waiting, None);
    }

    fn bind_dim(&mut self, id: EquationId, var: DimVar, value: Dim) -> Stepped {
        if let Dim::Constant(..=0) = value {
            return Err(Reason::NotPositive(value));
        }
        self.note("replacement", id, || Relation::Dims(Dim::Var(var), value.clone()));
        if let Dim::Var(other) = value
            && self.named_dims.contains(&var)
        {
            self.named_dims.insert(other);
        }
        if let Dim::Sum(_) = value {
            self.child(id, Relation::Positive(value.clone()));
        }
        self.replace_dim(id, var, value);
        Ok(Outcome::Done)
    }

    /// Gives a variable a value that is known to be positive.
    pub(super) fn replace_dim(&mut self, id: EquationId, var: DimVar, value: Dim) {
        let variable = &mut self.dims[var.0 as usize];
        let level = variable.level;
        let waiting = std::mem::take(&mut variable.waiting);
        self.limit_dim_levels(&value, level);
        self.dims[var.0 as usize].value = Some((value, id));
        self.news.push(Var::Dim(var));
        self.wake(waiting, None);
    }

    /// Gives a variable a value; a sum in the turn of the equation that says so, without subtractions if that leaves a
    /// variable alone.
    fn define(&mut self, id: EquationId, var: DimVar, value: Dim) -> Stepped {
        if !matches!(value, Dim::Sum(_)) || !self.is_new(id) {
            return self.bind_dim(id, var, value);
        }
        let (plus, minus) = self.arithmetic.balanced(&Dim::Var(var), &value)?;
        let is_defined = self.defined(&plus, &minus).is_some();
        let (left, right) = if is_defined { (plus, minus) } else { (Dim::Var(var), value) };
        self.child(id, Relation::Dims(left, right));
        Ok(Outcome::Done)
    }

    /// Whether an equation is to be simplified on its own before it changes others.
    fn is_new(&self, id: EquationId) -> bool {
        self.class(&self.equations[id as usize]).is_some_and(|(class, ..)| class == NEW)
    }

    /// Whether an equation is a partial expression of the paper, which gives no variable a value that is larger than
    /// another one.
    pub(super) fn is_partial(&self, id: EquationId) -> bool {
        let is_constant = |dim: &Dim| matches!(dim, Dim::Constant(_) | Dim::Ragged);
        match &self.equations[id as usize].relation {
            Relation::Dims(a, b) => !self.solves_differences && (is_constant(a) || is_constant(b)),
            _ => false,
        }
    }

    fn step_dims(&mut self, id: EquationId, left: &Dim, right: &Dim) -> Stepped {
        let left = self.try_dim(left)?;
        let right = self.try_dim(right)?;
        if left == right {
            return Ok(Outcome::Done);
        }
        let (new_left, new_right) = (self.reduced(&left)?, self.reduced(&right)?);
        if new_left != left || new_right != right {
            return Ok(self.rewritten_by_residuals(id, Relation::Dims(new_left, new_right)));
        }
        let different = || Reason::Dims(left.clone(), right.clone());
        match (&left, &right) {
            (Dim::Constant(_) | Dim::Ragged, Dim::Constant(_) | Dim::Ragged) => Err(different()),
            (Dim::Var(a), Dim::Var(b)) => {
                // The newer one is replaced.
                let (old, new) = (*a.min(b), *a.max(b));
                self.bind_dim(id, new, Dim::Var(old))
            }
            (Dim::Var(var), other @ (Dim::Constant(_) | Dim::Ragged))
            | (other @ (Dim::Constant(_) | Dim::Ragged), Dim::Var(var)) => {
                self.bind_dim(id, *var, other.clone())
            }
            (Dim::Ragged, Dim::Sum(_)) | (Dim::Sum(_), Dim::Ragged) => Ok(Outcome::Stuck),
            _ => {
                for (var, other) in [(&left, &right), (&right, &left)] {
                    if let Dim::Var(var) = var
                        && !self.arithmetic.vars(other).contains(var)
                    {
                        return self.define(id, *var, other.clone());
                    }
                }
                let outcome = self.step_sums(id, &left, &right)?.ok_or_else(different)?;
                Ok(match outcome {
                    Outcome::Stuck | Outcome::Rule(..) if self.is_new(id) => Outcome::Simple,
                    outcome => outcome,
                })
            }
        }
    }

    /// Arithmetic simplification of an equation between sizes. `None` if no positive integers
    /// satisfy it.
    fn step_sums(
        &mut self,
        id: EquationId,
        left: &Dim,
        right: &Dim,
    ) -> Result<Option<Outcome>, Reason> {
        let arithmetic = Rc::clone(&self.arithmetic);
        let (Some(a), Some(b)) = (arithmetic.polynomial(left), arithmetic.polynomial(right)) else {
            return Ok(Some(Outcome::Stuck));
        };
        // `a == b + constant`, without constants and common terms in `a` and `b`.
        let mut constant = difference(b.constant_part(), a.constant_part())?;
        let common = common_terms(&a, &b);
        let strip = |sum: &Polynomial| -> Result<Polynomial, DimError> {
            Ok(sum.sub(&common)?.plus(difference(0, sum.constant_part())?)?)
        };
        let (mut a, mut b) = (strip(&a)?, strip(&b)?);
        // What one side adds and the other one subtracts stands where it is added; but opposites are no sizes
        // if they are equal, which is left to where conditions are looked at together.
        if constant != 0 || a.add(&b)? != Polynomial::default() {
            for (monomial, coefficient) in a.sub(&b)?.terms() {
                if a.coefficient(monomial) != 0 && b.coefficient(monomial) != 0 {
                    a.set(monomial, coefficient.max(0));
                    b.set(monomial, difference(0, coefficient.min(0))?);
                }
            }
        }
        // Common factors.
        let divisor = i64::try_from(gcd(content(&a), content(&b))).unwrap_or(1);
        if divisor == 0 {
            return Ok(Some(Outcome::Done).filter(|_| constant == 0));
        }
        if constant % divisor != 0 {
            return Ok(None);
        }
        constant /= divisor;
        (a, b) = (divided(&a, divisor), divided(&b, divisor));
        let whole = a.sub(&b)?;
        // What always has the same sign is never zero.
        let (low, high) = arithmetic.bounds(&whole.plus(difference(0, constant)?)?);
        if low.is_some_and(|low| 0 < low) || high.is_some_and(|high| high < 0) {
            return Ok(None);
        }
        // Sizes that all terms share.
        if constant == 0
            && let Some(factor) = arithmetic.common_factor(&whole)
        {
            let mut divided = Polynomial::default();
            for (monomial, coefficient) in whole.terms() {
                let rest = remove_factor(monomial, &factor).unwrap_or_default();
                divided = divided.add(&Polynomial::term(rest, coefficient))?;
            }
            let zero = Dim::Constant(0);
            let (plus, minus) = arithmetic.balanced(&arithmetic.dim(divided)?, &zero)?;
            let relation = self.oriented(&Relation::Dims(plus, minus));
            self.note("arithmetic simplification", id, || relation.clone());
            self.child(id, relation);
            return Ok(Some(Outcome::Done));
        }
        // `(op d c1) = c2`, and `(* d d) = c2`.
        match arithmetic.roots(&whole.plus(difference(0, constant)?)?).as_deref() {
            Some([]) => return Ok(None),
            Some([root]) if let [var] = arithmetic.polynomial_vars(&whole)[..] => {
                return self.bind_dim(id, var, Dim::Constant(*root)).map(Some);
            }
            _ => {}
        }
        let (empty_a, empty_b) = (a.terms().len() == 0, b.terms().len() == 0);
        // A variable alone on a side, after what was common is dropped.
        let var_of = |sum: &Polynomial| match arithmetic.dim(sum.clone()) {
            Ok(Dim::Var(var)) => Some(var),
            _ => None,
        };
        let value_of_a = || -> Result<Dim, DimError> { arithmetic.dim(b.plus(constant)?) };
        let value_of_b =
            || -> Result<Dim, DimError> { arithmetic.dim(a.plus(difference(0, constant)?)?) };
        let free = |var: DimVar, sum: &Polynomial| {
            Some(var).filter(|var| !arithmetic.polynomial_vars(sum).contains(var))
        };
        let var_a = var_of(&a).and_then(|var| free(var, &b));
        let var_b = var_of(&b).and_then(|var| free(var, &a));
        // Of two variables, the larger value is written as a sum.
        let prefer_a = match (var_a, var_b) {
            (Some(var_a), Some(var_b)) => (0, var_b) < (constant, var_a),
            (some, _) => some.is_some(),
        };
        match (var_a, var_b) {
            (Some(var), _) if prefer_a => return self.define(id, var, value_of_a()?).map(Some),
            (_, Some(var)) => return self.define(id, var, value_of_b()?).map(Some),
            _ => {}
        }
        if !self.is_partial(id) {
            let (plus, minus) =
                arithmetic.balanced(&arithmetic.dim(whole.clone())?, &Dim::Constant(constant))?;
            if let Some((var, value)) = self.defined(&plus, &minus) {
                return self.define(id, var, value.clone()).map(Some);
            }
        }
        // Partial expressions.
        let (sum, value) = match (empty_a, empty_b) {
            (false, true) => (a, constant),
            (true, false) => (b, difference(0, constant)?),
            _ if has_one_sign(&whole) => (whole, constant),
            _ => return Ok(Some(Outcome::Stuck)),
        };
        let divisor = i64::try_from(content(&sum)).unwrap_or(1);
        if value % divisor != 0 {
            return Ok(None);
        }
        let (sum, value) = (divided(&sum, divisor), value / divisor);
        let negative = sum.terms().next().is_some_and(|(_, coefficient)| coefficient < 0);
        let opposite = |sum: &Polynomial| -> Result<_, DimError> {
            Ok((sum.scale(-1)?, difference(0, value)?))
        };
        // What is left for the program to check has no constant beside the expression.
        if value != 0 {
            let (sum, value) = if value < 0 { opposite(&sum)? } else { (sum.clone(), value) };
            let simple = (arithmetic.dim(sum)?, Dim::Constant(value));
            if (left, right) != (&simple.0, &simple.1) && (right, left) != (&simple.0, &simple.1) {
                let relation = Relation::Dims(simple.0, simple.1);
                self.note("arithmetic simplification", id, || relation.clone());
                self.child(id, relation);
                return Ok(Some(Outcome::Done));
            }
        }
        if value == 0 {
            let zero = Dim::Constant(0);
            let (plus, minus) = arithmetic.balanced(&arithmetic.dim(sum.clone())?, &zero)?;
            if ![(&plus, &minus), (&minus, &plus)].contains(&(left, right)) {
                let relation = self.oriented(&Relation::Dims(plus, minus));
                self.note("arithmetic simplification", id, || relation.clone());
                self.child(id, relation);
                return Ok(Some(Outcome::Done));
            }
        }
        let (sum, value) = if negative { opposite(&sum)? } else { (sum, value) };
        Ok(Some(Outcome::Rule(Rc::new(sum), value)))
    }

    fn step_positive(&mut self, id: EquationId, dim: &Dim) -> Stepped {
        let dim = self.try_dim(dim)?;
        let new = self.reduced(&dim)?;
        if new != dim {
            return Ok(self.rewritten_by_residuals(id, Relation::Positive(new)));
        }
        match &dim {
            Dim::Constant(1..) | Dim::Var(_) | Dim::Ragged => Ok(Outcome::Done),
            Dim::Constant(_) => Err(Reason::NotPositive(dim)),
            Dim::Sum(sum) => match self.arithmetic.bounds(sum) {
                (Some(1..), _) => Ok(Outcome::Done),
                (_, Some(..=0)) => Err(Reason::NotPositive(dim)),
                _ => Ok(Outcome::Stuck),
            },
        }
    }

    fn step_elements(&mut self, id: EquationId, left: &Shape, right: &Shape) -> Stepped {
        let (left, right) = (self.try_shape(left)?, self.try_shape(right)?);
        if left == right {
            return Ok(Outcome::Done);
        }
        let (new_left, new_right) = (self.rewritten(&left), self.rewritten(&right));
        if new_left.is_some() || new_right.is_some() {
            let relation = Relation::Elements(new_left.unwrap_or(left), new_right.unwrap_or(right));
            return Ok(self.rewritten_by_residuals(id, relation));
        }
        let mut products = Vec::new();
        for shape in [&left, &right] {
            let Some(dims) = shape.as_dims() else { return Ok(Outcome::Stuck) };
            if dims.contains(&&Dim::Ragged) {
                return Err(Reason::RaggedElements(shape.clone()));
            }
            let mut product = Dim::Constant(1);
            for dim in dims {
                product = self.arithmetic.apply(DimOp::Mul, &product, dim)?;
            }
            products.push(product);
        }
        self.equal_dims(id, &products[0], &products[1]);
        Ok(Outcome::Done)
    }
}
