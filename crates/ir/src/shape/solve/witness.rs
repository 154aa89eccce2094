//! Searches for a solution of conditions that no rule solves.
//!
//! A function that is run with `x : f32 [a+b]` of size 5 asks for some `a` and `b`, and not for which: its code reads
//! neither. So ranks and sizes are tried until the rules have nothing left to ask for. What is found is a solution;
//! where nothing is found, there may still be one.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::copy::Copy;
use super::sizes::possible_sizes;
use super::{Failure, Mark, Relation, Residual, Solver, Var};
use crate::shape::{Dim, DimVar, RankEquation, Shape, ShapeVar};

/// How much work it may be, in equations solved.
const MAX_WORK: usize = 1 << 12;
/// The largest size that is tried beside those that an integer program proposes: a small one first, so that the
/// values of many variables are tried, then a large one.
const MAX_SIZES: [i64; 2] = [8, 512];
/// The largest rank that is tried where no equation has the sizes to be split.
const MAX_RANK: usize = 3;

/// A variable that something is tried for, in order.
enum Choice {
    Shape(ShapeVar, usize),
    Dim(DimVar, Vec<i64>),
}

impl Solver {
    /// Whether some ranks and sizes are found that fit all of some conditions.
    pub fn have_solution(&self, residuals: &[Residual]) -> bool {
        // What has no variables in common is asked for on its own.
        let mut groups: Vec<(HashSet<Var>, Vec<&Relation>)> = Vec::new();
        for Residual { relation, .. } in residuals {
            let (shapes, dims) = self.vars(relation);
            let vars = shapes.into_iter().map(Var::Shape).chain(dims.into_iter().map(Var::Dim));
            let mut group = (vars.collect::<HashSet<Var>>(), vec![relation]);
            for other in std::mem::take(&mut groups) {
                if group.0.is_disjoint(&other.0) {
                    groups.push(other);
                } else {
                    group.0.extend(other.0);
                    group.1.extend(other.1);
                }
            }
            groups.push(group);
        }
        groups.iter().all(|(_, relations)| self.solution(relations).is_some())
    }

    /// The conditions in another solver, with equations that leave nothing of them: whatever it leaves open fits.
    fn solution(&self, relations: &[&Relation]) -> Option<(Vec<Relation>, Self)> {
        MAX_SIZES.into_iter().find_map(|max_size| self.small_solution(relations, max_size))
    }

    /// As [`Solver::solution`], where no larger size is tried, but for those that are proposed.
    fn small_solution(
        &self,
        relations: &[&Relation],
        max_size: i64,
    ) -> Option<(Vec<Relation>, Self)> {
        let whole = Copy::new(self, relations.iter().map(|it| self.vars(it)));
        let relations: Vec<Relation> = relations.iter().map(|it| whole.relation(it)).collect();
        let mut whole = whole.to;
        let mut parts: HashMap<ShapeVar, Vec<Dim>> = HashMap::new();
        let mut open: Vec<Vec<Relation>> = vec![Vec::new()];
        let mut work = MAX_WORK;
        while let Some(tried) = open.pop() {
            work = work.saturating_sub(relations.len() + tried.len());
            if work == 0 {
                return None;
            }
            let all = || relations.iter().chain(&tried);
            let mut copy = Copy::new(&whole, all().map(|it| whole.vars(it)));
            for relation in all() {
                copy.to.given(copy.relation(relation), 0);
            }
            let Ok(left) = copy.to.left() else { continue };
            let left: Vec<Relation> = left.iter().map(|it| copy.original(it)).collect();
            let values: Vec<Relation> = match whole.choice(&left, max_size) {
                None => {
                    let relations = relations.iter().map(|it| copy.relation(it)).collect();
                    return Some((relations, copy.to));
                }
                Some(Choice::Shape(var, most)) => {
                    let dims = parts.entry(var).or_default();
                    while dims.len() < most {
                        dims.push(Dim::Var(whole.dim_var(0)));
                    }
                    let value = |rank| Shape::dims(dims[..rank].iter().cloned());
                    (0..=most).map(|rank| Relation::Shapes(Shape::var(var), value(rank))).collect()
                }
                Some(Choice::Dim(var, sizes)) => {
                    let value = |size| Relation::Dims(Dim::Var(var), Dim::Constant(size));
                    sizes.into_iter().map(value).collect()
                }
            };
            let values = values.into_iter().rev();
            open.extend(values.map(|value| tried.iter().cloned().chain([value]).collect()));
        }
        None
    }

    /// The conditions that no rule solves.
    fn left(&mut self) -> Result<Vec<Relation>, Failure> {
        loop {
            let left = self.checked()?;
            if !self.find_sizes(Mark::default()) {
                return Ok(left);
            }
        }
    }

    /// The variable of some conditions that is tried next: a rank before sizes.
    fn choice(&self, left: &[Relation], max_size: i64) -> Option<Choice> {
        let all = left.iter().map(|it| (it, self.vars(it)));
        if let Some((relation, shapes)) =
            all.clone().find_map(|(it, (shapes, _))| (!shapes.is_empty()).then_some((it, shapes)))
        {
            let most = match relation {
                Relation::Shapes(left, right) => {
                    let has_rank = [left, right].iter().any(|it| it.as_dims().is_some());
                    let RankEquation { counts, num_dims, .. } = RankEquation::new(left, right);
                    let count = counts.get(&shapes[0]).filter(|_| has_rank);
                    count.and_then(|count| usize::try_from(num_dims.checked_div(*count)?).ok())
                }
                _ => None,
            };
            return Some(Choice::Shape(shapes[0], most.unwrap_or(MAX_RANK)));
        }
        let dims: BTreeSet<DimVar> = all.flat_map(|(_, (_, dims))| dims).collect();
        let var = *dims.first()?;
        let proposed = possible_sizes(&self.arithmetic, left.iter()).get(&var).copied();
        let mut sizes: Vec<i64> = proposed.into_iter().collect();
        sizes.extend((1..=max_size).filter(|size| Some(*size) != proposed));
        Some(Choice::Dim(var, sizes))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is left of equations.
    fn residuals(equations: &[String]) -> (Solver, Vec<Residual>) {
        let sides: Vec<(&str, &str)> =
            equations.iter().map(|it| it.split_once(" = ").unwrap()).collect();
        let (mut solver, _) = Solver::of_shapes(&sides);
        solver.solve().and_then(|()| solver.settle(Mark::default(), 0)).unwrap();
        let residuals = solver.residuals(Mark::default());
        (solver, residuals)
    }

    /// Whether a solution is found, which is one.
    fn is_found(equations: &[String]) -> bool {
        let (solver, residuals) = residuals(equations);
        let relations: Vec<&Relation> = residuals.iter().map(|it| &it.relation).collect();
        let solution = solver.solution(&relations);
        assert!(solution.is_none() || solver.have_solution(&residuals), "{equations:?}");
        let Some((relations, mut found)) = solution else { return false };
        // What is open is anything.
        let (mut shapes, mut dims) = (Vec::new(), Vec::new());
        for relation in &relations {
            let relation = found.resolved(relation);
            let vars = found.vars(&relation);
            shapes.extend(vars.0);
            dims.extend(vars.1);
        }
        for (number, var) in shapes.into_iter().enumerate() {
            let dims = (0..number % 3).map(|size| Dim::Constant(1 + size as i64));
            found.given(Relation::Shapes(Shape::var(var), Shape::dims(dims)), 0);
        }
        for (number, var) in dims.into_iter().enumerate() {
            found.given(Relation::Dims(Dim::Var(var), Dim::Constant(1 + number as i64)), 0);
        }
        found.run().unwrap();
        for relation in &relations {
            match found.resolved(relation) {
                Relation::Dims(a, b) => assert_eq!(a, b, "{equations:?}"),
                Relation::Shapes(a, b) => assert_eq!(a, b, "{equations:?}"),
                Relation::Positive(Dim::Constant(size)) => assert!(0 < size, "{equations:?}"),
                other => panic!("{other:?} is open: {equations:?}"),
            }
        }
        true
    }

    #[test]
    fn solutions_are_found() {
        let found = |equations: &[&str]| {
            is_found(&equations.iter().map(|it| it.to_string()).collect::<Vec<_>>())
        };
        assert!(found(&["[a + b] = [5]"]));
        assert!(found(&["[n / 2] = [3]"]));
        assert!(found(&["[n / 7] = [1000]"]));
        assert!(found(&["[n * m] = [n / 2 + 91]"]));
        assert!(found(&["[(a + 1) * (b + 1)] = [10403]"]));
        assert!(found(&["[a * a + b * b] = [99985]"]));
        assert!(found(&["[(a - b) * (a + b)] = [105]"]));
        assert!(found(&["[c * b] = [36]", "[b + (c / 3) * (b / 3)] = [7]"]));
        assert!(found(&["p@q = [2,3]"]));
        assert!(found(&["p@q = q@p"]));
        assert!(found(&["p@[3]@q = [2,3,3]", "[a + b]@p = [7,2]"]));
        assert!(found(&["p@[n]@q = [2,3,4]", "[m * n] = [k + 4]"]));
        // None of these has one.
        assert!(!found(&["[n * n + n * 2] = [m * m + 4]", "[m * 2] = [n * n * n + 3]"]));
    }

    /// An equation of a size and what it is for some values of its variables.
    fn any_equation(values: [i64; 3]) -> impl Strategy<Value = (String, i64)> {
        let leaf = prop_oneof![2 => (0..3_usize).prop_map(Ok), 1 => (1..4_i64).prop_map(Err)];
        let operator = prop::sample::select(vec!['+', '-', '*', '/']);
        let operators = prop::collection::vec((operator, leaf), 1..4);
        (0..3_usize, operators).prop_map(move |(first, operators)| {
            let name = |var: usize| ["a", "b", "c"][var].to_string();
            let (mut text, mut value) = (name(first), values[first]);
            for (operator, leaf) in operators {
                let (other, size) = match leaf {
                    Ok(var) => (name(var), values[var]),
                    Err(number) => (number.to_string(), number),
                };
                text = format!("({text} {operator} {other})");
                value = match operator {
                    '+' => value + size,
                    '-' => value - size,
                    '*' => value * size,
                    _ => value.div_euclid(size),
                };
            }
            (format!("[{text}] = [{value}]"), value)
        })
    }

    fn any_equations() -> impl Strategy<Value = Vec<String>> {
        let values = prop::array::uniform3(1..7_i64);
        let equations = values.prop_flat_map(|it| prop::collection::vec(any_equation(it), 1..4));
        equations.prop_map(|all| {
            all.into_iter().filter(|(_, value)| 0 < *value).map(|(text, _)| text).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// Small systems that have one.
        #[test]
        fn solutions_of_sizes_are_found(equations in any_equations()) {
            prop_assert!(is_found(&equations), "{:?}", equations);
        }

        #[test]
        fn solutions_of_shapes_are_found(
            sides in prop::collection::vec(prop::collection::vec(0..3_usize, 1..4), 1..4),
            values in prop::array::uniform3(prop::collection::vec(1..4_i64, 0..3)),
        ) {
            let equation = |vars: &Vec<usize>| {
                let names: Vec<_> = vars.iter().map(|var| ["p", "q", "r"][*var]).collect();
                let sizes: Vec<String> =
                    vars.iter().flat_map(|var| &values[*var]).map(i64::to_string).collect();
                format!("{} = [{}]", names.join("@"), sizes.join(","))
            };
            let equations: Vec<String> = sides.iter().map(equation).collect();
            prop_assert!(is_found(&equations), "{:?}", equations);
        }
    }
}
