//! Equations between shapes: the solution and the residual equations.
//!
//! Solutions are compared up to the choice of free variables, as the README beside the cases says.

use super::super::row::{Mismatch, array, field, flag, object, optional, pair, string, strings};
use super::super::{Options, Outcome, Status};
use super::outcomes;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use tc_ir::shape::{
    Arithmetic, Dim, DimError, DimOp, DimVar, Item, Shape, ShapeVar,
    solve::{Mark, Relation, Solver},
    text::{Names, TextError},
};

/// Runs a row.
pub(super) fn run(row: &Value, _: &Options) -> Result<Outcome, Mismatch> {
    let mut read = Case::default();
    read.read(row)?;
    let mut case = read.in_order_of_names();
    let refused = case.read(row)?;
    // A size that cannot be calculated is none.
    let solved = match refused {
        Some(error) => Err(format!("{error:?}")),
        None => case.solver.solve().map_err(|conflict| format!("{:?}", conflict.reason)),
    };
    let mut expected = Vec::new();
    for outcome in outcomes(row) {
        let fail = flag(outcome, "fail")?;
        let holds = match (&solved, fail) {
            (Err(_), true) => true,
            (Ok(()), false) => case.agrees(outcome)?,
            _ => false,
        };
        expected.push(if fail { "no solution".to_string() } else { outcome.to_string() });
        if holds {
            let status = if expected.len() == 1 { Status::Passed } else { Status::Documented };
            return Ok(Outcome::new(status, expected.pop().unwrap_or_default(), "the same"));
        }
    }
    let got = match solved {
        Err(reason) => format!("no solution: {reason}"),
        Ok(()) => case.describe(),
    };
    Err(Mismatch::new(expected.join(" or "), got))
}

#[derive(Default)]
struct Case {
    solver: Solver,
    names: Names,
}

/// The value of each variable, by its number.
#[derive(Default)]
struct Values {
    shapes: HashMap<ShapeVar, Shape>,
    dims: HashMap<DimVar, Dim>,
}

impl Case {
    /// The same names, of variables that are numbered by them: so the answer is that of a set of equations.
    fn in_order_of_names(&self) -> Self {
        let mut case = Self::default();
        let dims: BTreeSet<&String> = self.names.dims.keys().collect();
        let shapes: BTreeSet<&String> = self.names.shapes.keys().collect();
        for name in dims {
            case.names.dims.insert(name.clone(), case.solver.dim_var(0));
        }
        for name in shapes {
            case.names.shapes.insert(name.clone(), case.solver.shape_var(0));
        }
        case
    }

    /// Gives the solver the equations of a row. Why a size in them cannot be calculated, if there is one.
    fn read(&mut self, row: &Value) -> Result<Option<DimError>, Mismatch> {
        let mut refused = None;
        let dimension_vars = optional(row, "dimension_vars", strings)?.unwrap_or_default();
        for (number, equation) in field(row, "constraints", array)?.iter().enumerate() {
            let [left, right] = pair(equation)?;
            let (left, right) = (string(left)?, string(right)?);
            let is_dim = |side: &str| {
                side.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '(' || c == '*')
                    || dimension_vars.contains(&side.trim())
            };
            let relation = match self.relation(left, right, is_dim(left) || is_dim(right)) {
                Ok(relation) => relation,
                Err(TextError::Dim(error)) => {
                    refused = Some(error);
                    continue;
                }
                Err(error) => return Err(malformed(left, right, &error)),
            };
            match relation {
                Relation::Shapes(left, right) => {
                    self.solver.equate_shapes(left, right, number as u32);
                }
                Relation::Dims(left, right) => self.solver.equate_dims(left, right, number as u32),
                other => _ = self.solver.given(other, number as u32),
            }
        }
        Ok(refused)
    }

    fn relation(&mut self, left: &str, right: &str, dims: bool) -> Result<Relation, TextError> {
        Ok(if dims {
            Relation::Dims(self.dim(left)?, self.dim(right)?)
        } else {
            Relation::Shapes(self.shape(left)?, self.shape(right)?)
        })
    }

    fn shape(&mut self, text: &str) -> Result<Shape, TextError> {
        self.names.shape(&mut self.solver, text)
    }

    fn dim(&mut self, text: &str) -> Result<Dim, TextError> {
        self.names.dim(&mut self.solver, text)
    }

    /// Whether the solution is the expected one.
    fn agrees(&mut self, expected: &Value) -> Result<bool, Mismatch> {
        let mut theirs = Values::default();
        let solution = field(expected, "solution", object)?;
        for (name, value) in solution {
            let value = string(value)?;
            if let Some(&var) = self.names.dims.get(name) {
                let value = self.dim(value).map_err(|error| malformed(name, value, &error))?;
                theirs.dims.insert(var, value);
            } else if let Some(&var) = self.names.shapes.get(name) {
                let value = self.shape(value).map_err(|error| malformed(name, value, &error))?;
                theirs.shapes.insert(var, value);
            } else {
                return Err(Mismatch::new("a variable of the constraints", format!("'{name}'")));
            }
        }
        let mut residual = Vec::new();
        for equation in field(expected, "residual", array)? {
            let [left, right] = pair(equation)?;
            let (left, right) = (string(left)?, string(right)?);
            let is_dim = |side: &str| !side.contains(['[', '@']);
            let dims = is_dim(left) && is_dim(right);
            let relation = self.relation(left, right, dims);
            let relation = relation.map_err(|error| malformed(left, right, &error))?;
            residual.push(self.substituted(&relation, &theirs));
        }
        let pairs = self.pairs(&theirs);
        let Some(renaming) = renaming(&pairs) else { return Ok(false) };
        for (ours, theirs) in &pairs {
            if self.substituted(ours, &renaming) != *theirs {
                return Ok(false);
            }
        }
        let mut found = Vec::new();
        for left in self.solver.residuals(Mark::default()) {
            if !matches!(left.relation, Relation::Positive(_)) {
                found.push(self.substituted(&left.relation, &renaming));
            }
        }
        for relation in &residual {
            let arithmetic = self.solver.arithmetic();
            let Some(at) = found.iter().position(|other| same(arithmetic, other, relation)) else {
                return Ok(false);
            };
            found.swap_remove(at);
        }
        Ok(found.is_empty())
    }

    /// What each variable is here, and what it is expected to be; as equations of a variable with
    /// itself, so that both kinds are one.
    fn pairs(&mut self, theirs: &Values) -> Vec<(Relation, Relation)> {
        let mut pairs = Vec::new();
        for var in self.names.dims.values() {
            let ours = self.solver.resolved_dim(&Dim::Var(*var));
            let theirs = theirs.dims.get(var).cloned().unwrap_or(Dim::Var(*var));
            pairs.push((Relation::Positive(ours), Relation::Positive(theirs)));
        }
        for var in self.names.shapes.values() {
            let ours = self.solver.resolved_shape(&Shape::var(*var));
            let theirs = theirs.shapes.get(var).cloned().unwrap_or(Shape::var(*var));
            let empty = Shape::default;
            pairs.push((Relation::Shapes(ours, empty()), Relation::Shapes(theirs, empty())));
        }
        pairs
    }

    fn substituted(&self, relation: &Relation, values: &Values) -> Relation {
        let dim = |dim: &Dim| {
            let replaced = &mut |var| values.dims.get(&var).cloned();
            let result = self.solver.arithmetic().substitute(dim, replaced);
            result.unwrap_or_else(|_| dim.clone())
        };
        let shape = |shape: &Shape| {
            let mut result = Shape::default();
            for item in &shape.items {
                match item {
                    Item::Dim(it) => result.items.push(Item::Dim(dim(it))),
                    Item::Var(var) => match values.shapes.get(var) {
                        Some(value) => result.items.extend(value.items.iter().cloned()),
                        None => result.items.push(item.clone()),
                    },
                }
            }
            result
        };
        match relation {
            Relation::Shapes(a, b) => Relation::Shapes(shape(a), shape(b)),
            Relation::Elements(a, b) => Relation::Elements(shape(a), shape(b)),
            Relation::Dims(a, b) => Relation::Dims(dim(a), dim(b)),
            Relation::Positive(a) => Relation::Positive(dim(a)),
        }
    }

    fn describe(&mut self) -> String {
        let names = self.names.clone();
        let mut lines = Vec::new();
        for (name, var) in &names.dims {
            let dim = self.solver.resolved_dim(&Dim::Var(*var));
            lines.push(format!("{name} = {}", names.display_dim(&self.solver, &dim)));
        }
        for (name, var) in &names.shapes {
            let shape = self.solver.resolved_shape(&Shape::var(*var));
            lines.push(format!("{name} = {}", names.display_shape(&self.solver, &shape)));
        }
        lines.sort();
        for left in self.solver.residuals(Mark::default()) {
            let solver = &self.solver;
            match &left.relation {
                Relation::Shapes(a, b) => lines.push(format!(
                    "left {} = {}",
                    names.display_shape(solver, a),
                    names.display_shape(solver, b)
                )),
                Relation::Dims(a, b) => lines.push(format!(
                    "left {} = {}",
                    names.display_dim(solver, a),
                    names.display_dim(solver, b)
                )),
                Relation::Positive(_) | Relation::Elements(..) => {}
            }
        }
        lines.join(", ")
    }
}

fn malformed(left: &str, right: &str, error: &TextError) -> Mismatch {
    Mismatch::new(format!("an equation in '{left} = {right}'"), error.to_string())
}

/// Whether two equations are the same but for their sides, and for what is on both sides of sizes:
/// `(/ (- h 3) 2) = 4` is `(/ (+ h 1) 2) = 6`.
fn same(arithmetic: &Arithmetic, a: &Relation, b: &Relation) -> bool {
    match (a, b) {
        (Relation::Dims(a, b), Relation::Dims(c, d)) => {
            let difference = |lhs, rhs| arithmetic.apply(DimOp::Sub, lhs, rhs).ok();
            let ours = difference(a, b);
            (a, b) == (c, d)
                || (a, b) == (d, c)
                || ours.is_some_and(|it| {
                    it != Dim::Ragged && [difference(c, d), difference(d, c)].contains(&Some(it))
                })
        }
        (Relation::Shapes(a, b), Relation::Shapes(c, d)) => (a, b) == (c, d) || (a, b) == (d, c),
        _ => a == b,
    }
}

/// The variables of the second that take the places of those of the first.
fn renaming(pairs: &[(Relation, Relation)]) -> Option<Values> {
    let mut values = Values::default();
    let (mut dims, mut shapes) = (HashMap::new(), HashMap::new());
    let mut dim = |a: &Dim, b: &Dim| match (a, b) {
        (Dim::Var(a), Dim::Var(b)) => {
            values.dims.insert(*a, Dim::Var(*b));
            dims.insert(*b, *a).is_none_or(|old| old == *a)
        }
        _ => true,
    };
    for pair in pairs {
        match pair {
            (Relation::Positive(a), Relation::Positive(b)) => {
                if !dim(a, b) {
                    return None;
                }
            }
            (Relation::Shapes(a, _), Relation::Shapes(b, _)) => {
                if a.items.len() != b.items.len() {
                    return None;
                }
                for items in a.items.iter().zip(&b.items) {
                    let unique = match items {
                        (Item::Dim(a), Item::Dim(b)) => dim(a, b),
                        (Item::Var(a), Item::Var(b)) => {
                            values.shapes.insert(*a, Shape::var(*b));
                            shapes.insert(*b, *a).is_none_or(|old| old == *a)
                        }
                        _ => false,
                    };
                    if !unique {
                        return None;
                    }
                }
            }
            _ => return None,
        }
    }
    Some(values)
}
