//! Derivations of types, for explaining conflicts.

use super::{Class, Elem, ElemNode, Ty, Types};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use tc_ir::shape::solve::Origin;

/// An element type that another one is equal to, and why.
type Link<'t> = (Elem, &'t Rc<[Origin]>);

/// Where a chain of equal element types ends.
#[derive(Clone, Copy)]
pub(super) enum Goal {
    Known,
    Node(Elem),
    /// Where a class is asked for.
    Asked(Class),
    /// Where a class is asked for that has nothing in common with another.
    Apart(Class),
}

/// How many uses of definitions are looked into to explain an element type.
const MAX_CHAINS: usize = 256;

impl Types {
    /// What says that a type is a tensor, a tuple or a function.
    pub(crate) fn why_kind(&mut self, ty: Ty) -> Vec<Origin> {
        let copies = self.sources(ty);
        let why = copies.iter().filter_map(|copy| Some(&self.sources.get(copy)?.1));
        why.flat_map(|why| why.iter().copied()).collect()
    }

    /// A type, that which it is a copy of, and so on.
    pub(crate) fn sources(&mut self, ty: Ty) -> Vec<Ty> {
        let first = self.find(ty);
        std::iter::successors(Some(first), |copy| Some(self.sources.get(copy)?.0)).collect()
    }

    /// What says that two different element types are the same, or that one belongs to a class: the
    /// shortest chains of equalities from the last equation to the goals. No link can be left out.
    pub(super) fn last_edge(&self, goals: Vec<(Elem, Goal)>) -> Vec<Origin> {
        let (last, others) = self.edges.split_last().expect("one was added");
        let mut path = self.chains(goals, others);
        path.extend_from_slice(&last.2);
        path.sort_unstable();
        path.dedup();
        path
    }

    /// What says that the type of elements is what it is.
    pub(crate) fn why_known(&self, elem: Elem) -> Vec<Origin> {
        self.chains(vec![(elem, Goal::Known)], &self.edges)
    }

    /// What says that two element types are equal.
    pub(crate) fn why_equal_elems(&self, a: Elem, b: Elem) -> Vec<Origin> {
        self.chains(vec![(a, Goal::Node(b))], &self.edges)
    }

    /// What says that two type variables are equal. More than is needed may be among it.
    pub(crate) fn why_equal_vars(&mut self, a: Ty, b: Ty) -> Vec<Origin> {
        let root = self.find(a);
        let equal = if root == self.find(b) { self.equal.get(&root) } else { None };
        equal.into_iter().flatten().flat_map(|equal| equal.origins.iter().copied()).collect()
    }

    /// The shortest chains of equalities from element types to goals. What is equal in a use
    /// of a definition is so because of a chain in the definition.
    fn chains(
        &self,
        mut goals: Vec<(Elem, Goal)>,
        edges: &[(Elem, Elem, Rc<[Origin]>)],
    ) -> Vec<Origin> {
        let mut near: HashMap<Elem, Vec<Link>> = HashMap::new();
        for (x, y, origins) in edges {
            near.entry(*x).or_default().push((*y, origins));
            near.entry(*y).or_default().push((*x, origins));
        }
        let mut path = Vec::new();
        for _ in 0..MAX_CHAINS {
            let Some((start, goal)) = goals.pop() else { break };
            let mut from: HashMap<Elem, Option<Link>> = HashMap::from([(start, None)]);
            let mut queue = VecDeque::from([start]);
            while let Some(at) = queue.pop_front() {
                // What one element type of a definition is asked for in a use, others that are equal to it are.
                let mut others = near.get(&at).into_iter().flatten();
                let is_asked = |(other, origins): &Link| {
                    self.is_same_use(at, *other, origins) && self.is_at(*other, goal)
                };
                if self.is_at(at, goal) || !matches!(goal, Goal::Node(_)) && others.any(is_asked) {
                    let copied = self.copied.get(&at).filter(|_| !matches!(goal, Goal::Node(_)));
                    if let Some(&(original, used)) = copied {
                        path.push(used);
                        goals.push((original, goal));
                    }
                    path.extend(self.literals.get(&at));
                    self.chain(at, &from, &mut path, &mut goals);
                    break;
                }
                for &(next, origins) in near.get(&at).into_iter().flatten() {
                    from.entry(next).or_insert_with(|| {
                        queue.push_back(next);
                        Some((at, origins))
                    });
                }
            }
        }
        path
    }

    /// The links of a chain; those that are uses of definitions become goals.
    fn chain(
        &self,
        end: Elem,
        from: &HashMap<Elem, Option<Link>>,
        path: &mut Vec<Origin>,
        goals: &mut Vec<(Elem, Goal)>,
    ) {
        // Where the links of one use began.
        let mut inside: Option<Elem> = None;
        let mut at = end;
        loop {
            let step = from[&at];
            let is_used =
                step.is_some_and(|(previous, origins)| self.is_same_use(previous, at, origins));
            if let Some(last) = inside.filter(|_| !is_used) {
                goals.push((self.copied[&last].0, Goal::Node(self.copied[&at].0)));
                inside = None;
            }
            let Some((previous, origins)) = step else { return };
            path.extend_from_slice(origins);
            if is_used {
                inside = inside.or(Some(at));
            }
            at = previous;
        }
    }

    /// Whether two element types are equal because those of a definition are of which they are copies.
    fn is_same_use(&self, a: Elem, b: Elem, origins: &Rc<[Origin]>) -> bool {
        let used = |elem| self.copied.get(&elem).map(|(_, used)| *used);
        used(a) == used(b) && used(a).is_some_and(|used| **origins == [used])
    }

    fn is_at(&self, elem: Elem, goal: Goal) -> bool {
        let asked = self.asked[elem as usize];
        match goal {
            Goal::Known => matches!(self.elems[elem as usize], ElemNode::Known(_)),
            Goal::Node(node) => elem == node,
            Goal::Asked(class) => asked == class,
            Goal::Apart(class) => asked.meet(class).is_none(),
        }
    }
}
