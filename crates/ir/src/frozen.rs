//! Maps that need no [`Context`]: what an attribute of the compiler keeps, and threads share.

use std::collections::{BTreeSet, HashMap};

use crate::expr::{Context, Expr, Node, Var, constant_interval};
use crate::interval::Interval;
use crate::map::{Constraint, IndexingMap, Variable};

/// An indexing map with a table of its own for the expressions.
///
/// It may be shared by threads. Two are equal if their maps have the same structure and names,
/// in whatever contexts they were made; the order of constraints does not count.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FrozenMap {
    /// Operands stand before operations.
    nodes: Box<[Node]>,
    /// Its expressions are places in `nodes`.
    map: IndexingMap,
}

/// Numbers the nodes of a context in the order in which a map reaches them.
struct Freezer<'a> {
    ir: &'a Context,
    places: HashMap<Expr, Expr>,
    nodes: Vec<Node>,
}

impl Freezer<'_> {
    fn freeze(&mut self, root: Expr) -> Expr {
        let mut stack = vec![root];
        while let Some(&expr) = stack.last() {
            let node = self.ir.node(expr);
            let missing = node.operands().and_then(|(lhs, rhs)| {
                [lhs, rhs].into_iter().find(|operand| !self.places.contains_key(operand))
            });
            if let Some(operand) = missing {
                stack.push(operand);
                continue;
            }
            stack.pop();
            if !self.places.contains_key(&expr) {
                let node = node.map_operands(|operand| self.places[&operand]);
                self.places.insert(expr, Expr::frozen(self.nodes.len()));
                self.nodes.push(node);
            }
        }
        self.places[&root]
    }
}

impl FrozenMap {
    /// The map, whose expressions belong to `ir`.
    pub fn of(ir: &Context, map: &IndexingMap) -> Self {
        let mut constraints = map.constraints.clone();
        let ends = |it: &Constraint| (it.interval.lo, it.interval.hi);
        constraints.sort_by(|a, b| ir.compare(a.expr, b.expr).then_with(|| ends(a).cmp(&ends(b))));
        let mut freezer = Freezer { ir, places: HashMap::new(), nodes: Vec::new() };
        let map = map_exprs(&IndexingMap { constraints, ..map.clone() }, |it| freezer.freeze(it));
        Self { nodes: freezer.nodes.into(), map }
    }

    /// The map with expressions of `ir`.
    pub fn thaw(&self, ir: &Context) -> IndexingMap {
        let mut exprs: Vec<Expr> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let node = node.map_operands(|operand| exprs[operand.frozen_place()]);
            exprs.push(ir.intern(node));
        }
        map_exprs(&self.map, |it| exprs[it.frozen_place()])
    }

    /// The numbers of dimension, range and runtime variables.
    pub fn counts(&self) -> (usize, usize, usize) {
        (self.map.dims.len(), self.map.ranges.len(), self.map.runtimes.len())
    }

    /// The number of all variables.
    pub fn num_vars(&self) -> usize {
        self.map.vars().count()
    }

    /// The number of results.
    pub fn num_results(&self) -> usize {
        self.map.results.len()
    }

    /// Whether something but the bounds of the variables restricts the domain.
    pub fn has_constraints(&self) -> bool {
        !self.map.constraints.is_empty()
    }

    /// The variables with their bounds, which are [`constant`](Self::interval) or expressions.
    pub fn vars(&self) -> impl Iterator<Item = (Var, &Variable)> {
        self.map.vars()
    }

    /// The bounds of a variable of this map, if they are constants or absent.
    pub fn interval(&self, variable: &Variable) -> Option<Interval> {
        let node = |expr: Expr| self.nodes[expr.frozen_place()];
        constant_interval(variable.lower, variable.upper, node)
    }

    /// The variables that the results use.
    pub fn result_vars(&self) -> BTreeSet<Var> {
        self.vars_of(self.map.results.iter().copied())
    }

    /// The variables that the constraints use.
    pub fn constraint_vars(&self) -> BTreeSet<Var> {
        self.vars_of(self.map.constraints.iter().map(|it| it.expr))
    }

    /// The variables that the bounds of a variable of this map use.
    pub fn bound_vars(&self, variable: &Variable) -> BTreeSet<Var> {
        self.vars_of([variable.lower, variable.upper].into_iter().flatten())
    }

    fn vars_of(&self, roots: impl IntoIterator<Item = Expr>) -> BTreeSet<Var> {
        let mut is_used = vec![false; self.nodes.len()];
        for root in roots {
            is_used[root.frozen_place()] = true;
        }
        let mut vars = BTreeSet::new();
        for (place, node) in self.nodes.iter().enumerate().rev() {
            if !is_used[place] {
                continue;
            }
            if let Node::Var(var) = node {
                vars.insert(*var);
            }
            if let Some((lhs, rhs)) = node.operands() {
                is_used[lhs.frozen_place()] = true;
                is_used[rhs.frozen_place()] = true;
            }
        }
        vars
    }
}

/// The same map over other expressions: bounds, then constraints, then results.
fn map_exprs(map: &IndexingMap, mut of: impl FnMut(Expr) -> Expr) -> IndexingMap {
    let mut variables = |variables: &[Variable]| -> Vec<Variable> {
        let variable = |it: &Variable| Variable {
            name: it.name.clone(),
            lower: it.lower.map(&mut of),
            upper: it.upper.map(&mut of),
        };
        variables.iter().map(variable).collect()
    };
    let (dims, ranges) = (variables(&map.dims), variables(&map.ranges));
    let runtimes = variables(&map.runtimes);
    let constraint = |it: &Constraint| Constraint { expr: of(it.expr), interval: it.interval };
    let constraints = map.constraints.iter().map(constraint).collect();
    let results = map.results.iter().map(|it| of(*it)).collect();
    IndexingMap { dims, ranges, runtimes, results, constraints }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::hash_map::DefaultHasher;
    use std::hash::{Hash, Hasher};

    const TEXTS: [&str; 4] = [
        "(i, j)[k]{n} -> (i * 2 + k, max(j, n) mod 7, k), domain: i in [0, n - 1], j in [0, 4], \
         k in [0, 2], n in [1, 100], i + k in [1, 5], j in [1, 3]",
        "(d0) -> (d0 / 3 + d0 mod 3, d0 ceildiv 2)",
        "() -> ()",
        "KNOWN EMPTY",
    ];

    fn hash(map: &FrozenMap) -> u64 {
        let mut hasher = DefaultHasher::new();
        map.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn freezing_keeps_the_map() {
        for text in TEXTS {
            let (first, second) = (Context::new(), Context::new());
            let map = IndexingMap::parse(&first, text).expect("a map");
            // The second context numbers expressions differently.
            second.add(second.constant(7), second.runtime(9));
            let thawed = FrozenMap::of(&first, &map).thaw(&second);
            assert_eq!(thawed.display(&second).to_string(), map.display(&first).to_string());
            let again = FrozenMap::of(&second, &thawed);
            assert_eq!(again, FrozenMap::of(&first, &map));
            assert_eq!(hash(&again), hash(&FrozenMap::of(&first, &map)));
        }
    }

    #[test]
    fn names_bounds_and_structure_count() {
        let ir = Context::new();
        let parse = |text: &str| FrozenMap::of(&ir, &IndexingMap::parse(&ir, text).expect("a map"));
        let texts = [
            "(i) -> (i)",
            "(j) -> (j)",
            "(i) -> (i), domain: i in [0, 3]",
            "(i) -> (i), domain: i in [0, 4]",
            "(i) -> (i + 1)",
            "(i) -> (i), domain: i in [-inf, inf], i in [0, 3]",
        ];
        for (number, text) in texts.iter().enumerate() {
            for other in &texts[number + 1..] {
                assert_ne!(parse(text), parse(other));
            }
        }
        let order =
            |first, second| parse(&format!("(i, j) -> (), domain: i in [0, 9], {first}, {second}"));
        let (sum, difference) = ("i + j in [0, 3]", "i - j in [0, 3]");
        assert_eq!(order(sum, difference), order(difference, sum));
    }

    #[test]
    fn variables_are_found() {
        let ir = Context::new();
        let map = FrozenMap::of(&ir, &IndexingMap::parse(&ir, TEXTS[0]).expect("a map"));
        assert_eq!(map.counts(), (2, 1, 1));
        assert_eq!((map.num_vars(), map.num_results(), map.has_constraints()), (4, 3, true));
        let all = [Var::Dim(0), Var::Dim(1), Var::Range(0), Var::Runtime(0)];
        assert_eq!(map.result_vars(), BTreeSet::from(all));
        let variables: Vec<_> = map.vars().map(|(_, variable)| variable).collect();
        assert_eq!(map.bound_vars(variables[0]), BTreeSet::from([Var::Runtime(0)]));
        assert_eq!(map.interval(variables[0]), None);
        assert_eq!(map.interval(variables[1]), Some(Interval::new(0, 4)));
    }

    #[test]
    fn conditions_are_constraints() {
        let ir = Context::new();
        let text = "(i)[k]{n} -> (i), where i in [0, 3], k in [0, n - 1], i + k in [2, inf]";
        let map = IndexingMap::parse(&ir, text).expect("a map");
        assert!(map.vars().all(|(_, variable)| (variable.lower, variable.upper) == (None, None)));
        for (i, k, n) in
            (-1..5).flat_map(|i| (-1..5).flat_map(move |k| (-1..5).map(move |n| (i, k, n))))
        {
            let expected = (0..4).contains(&i) && (0..n).contains(&k) && 2 <= i + k;
            assert_eq!(map.satisfies_constraints(&ir, &[i], &[k], &[n]), Ok(expected));
        }
        let map = FrozenMap::of(&ir, &map);
        let all = [Var::Dim(0), Var::Range(0), Var::Runtime(0)];
        assert_eq!(map.constraint_vars(), BTreeSet::from(all));
        assert_eq!(map.result_vars(), BTreeSet::from([Var::Dim(0)]));
    }

    #[test]
    fn maps_are_shared_by_threads() {
        let ir = Context::new();
        let map = FrozenMap::of(&ir, &IndexingMap::parse(&ir, TEXTS[0]).expect("a map"));
        let text = map.thaw(&ir).display(&ir).to_string();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let own = Context::new();
                    assert_eq!(map.thaw(&own).display(&own).to_string(), text);
                });
            }
        });
    }
}
