//! Changes of the variable lists of a map, and what names of variables mean.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::emptiness::Emptiness;
use crate::expr::{Context, Var};
use crate::interval::Interval;
use crate::map::{IndexingMap, VarIntervals, Variable};

/// What a variable stands for on a GPU, by its name. As `VariableKind` in XLA's `indexing_map.h`.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum VariableKind {
    /// Nothing in particular.
    #[default]
    Default,
    /// `th_x`: the thread number in x within its block.
    ThreadX,
    /// `th_y`: the thread number in y within its block.
    ThreadY,
    /// `th_z`: the thread number in z within its block.
    ThreadZ,
    /// `bl_x`: the block number in x.
    BlockX,
    /// `bl_y`: the block number in y.
    BlockY,
    /// `bl_z`: the block number in z.
    BlockZ,
    /// `warp`: the warp number within its block.
    Warp,
    /// `th_w`: the thread number within its warp.
    WarpThread,
}

impl VariableKind {
    /// Every kind with the name of its variables and its own. The first has any other name.
    const ALL: [(Self, &'static str, &'static str); 9] = [
        (Self::Default, "default", "default"),
        (Self::ThreadX, "th_x", "thread x"),
        (Self::ThreadY, "th_y", "thread y"),
        (Self::ThreadZ, "th_z", "thread z"),
        (Self::BlockX, "bl_x", "block x"),
        (Self::BlockY, "bl_y", "block y"),
        (Self::BlockZ, "bl_z", "block z"),
        (Self::Warp, "warp", "warp"),
        (Self::WarpThread, "th_w", "thread within warp"),
    ];

    /// The kind of a variable of the given name.
    pub fn of_name(name: &str) -> Self {
        let found = Self::ALL.iter().find(|(_, variable, _)| *variable == name);
        found.map_or(Self::Default, |&(kind, ..)| kind)
    }
}

impl fmt::Display for VariableKind {
    /// Writes what the variable is, such as `thread x`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::ALL.iter().find(|(kind, ..)| kind == self);
        f.write_str(found.map_or("default", |&(.., name)| name))
    }
}

impl Variable {
    /// What the variable stands for on a GPU, by its name.
    pub fn kind(&self) -> VariableKind {
        self.name.as_deref().map_or(VariableKind::Default, VariableKind::of_name)
    }

    /// Whether the bounds leave a value whatever the runtime variables are.
    fn has_value(&self, ctx: &Context, intervals: &VarIntervals) -> bool {
        let (Some(lower), Some(upper)) = (self.lower, self.upper) else {
            return true;
        };
        let distance = ctx.sub(upper, lower);
        0 <= ctx.interval_of(distance, &|var| intervals.of(var)).lo
    }
}

/// A variable that is used and cannot go.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected variables that nothing uses, found {0:?} in use")]
pub struct VariableInUse(pub Var);

impl IndexingMap {
    /// Removes the given variables, which no result, constraint or bound of another variable may
    /// use, and renumbers the rest. Numbers without a variable do not matter. Bounds without
    /// values go with their variable; [`remove_unused`](Self::remove_unused) minds them.
    ///
    /// # Errors
    /// One of the variables is used. The map stays as it is.
    pub fn compress(&mut self, ctx: &Context, unused: &[Var]) -> Result<(), VariableInUse> {
        let unused: BTreeSet<Var> = unused.iter().copied().collect();
        let constraints = self.constraints.iter().map(|constraint| constraint.expr);
        let bounds = self
            .vars()
            .filter(|(var, _)| !unused.contains(var))
            .flat_map(|(_, variable)| variable.lower.into_iter().chain(variable.upper));
        let kept: Vec<_> = self.results.iter().copied().chain(constraints).chain(bounds).collect();
        if let Some(&used) = ctx.vars_of_all(&kept).intersection(&unused).next() {
            return Err(VariableInUse(used));
        }
        self.remove_vars(ctx, &|var| unused.contains(&var));
        Ok(())
    }

    /// Removes the variables that `removable` accepts, that no result uses and that no constraint or
    /// bound ties to a variable that stays, where they surely have values that satisfy the constraints
    /// on them. Returns the removed ones. Where no values do, the map becomes known to be empty, with
    /// all its variables; one that is known to be empty is left alone.
    ///
    /// ```
    /// use tc_ir::{Context, IndexingMap, Var};
    /// let ctx = Context::new();
    /// let text = "(d0)[s0, s1] -> (s1), domain: d0 in [0, 9], s0 in [0, 69], s1 in [0, 19], s0 mod 3 in [0, 0]";
    /// let mut map = IndexingMap::parse(&ctx, text)?;
    /// assert_eq!(map.remove_unused(&ctx, &|var| var != Var::Dim(0)), [Var::Range(0)]);
    /// assert_eq!(map.display(&ctx).to_string(), "(d0)[s0] -> (s0), domain: d0 in [0, 9], s0 in [0, 19]");
    /// # Ok::<(), tc_ir::ParseError>(())
    /// ```
    pub fn remove_unused(&mut self, ctx: &Context, removable: &dyn Fn(Var) -> bool) -> Vec<Var> {
        if self.is_known_empty(ctx) {
            return Vec::new();
        }
        let uses = Uses::of(ctx, self);
        let mut used = ctx.vars_of_all(&self.results);
        used.extend(uses.bounds.keys().filter(|&&var| !removable(var)));
        used.extend(uses.missing());
        uses.add_used(&mut used);
        let mut unused: BTreeSet<Var> =
            uses.bounds.keys().copied().filter(|var| !used.contains(var)).collect();
        let mut left = unused.clone();
        while let Some(var) = left.pop_first() {
            let part = uses.part(var, &used);
            left.retain(|var| !part.contains(var));
            match uses.has_values(ctx, self, &part) {
                Some(true) => {}
                Some(false) => {
                    self.set_known_empty(ctx);
                    return Vec::new();
                }
                None => unused.retain(|var| !part.contains(var)),
            }
        }
        let mut vars_of_constraints = uses.constraints.iter();
        self.constraints
            .retain(|_| vars_of_constraints.next().is_none_or(|vars| vars.is_disjoint(&unused)));
        if !unused.is_empty() {
            self.remove_vars(ctx, &|var| unused.contains(&var));
        }
        unused.into_iter().collect()
    }

    /// Removes every variable that nothing uses and returns them; see
    /// [`remove_unused`](Self::remove_unused).
    pub fn remove_unused_vars(&mut self, ctx: &Context) -> Vec<Var> {
        self.remove_unused(ctx, &|_| true)
    }

    /// Removes the range and runtime variables that nothing uses and returns them; see
    /// [`remove_unused`](Self::remove_unused).
    pub fn remove_unused_symbols(&mut self, ctx: &Context) -> Vec<Var> {
        self.remove_unused(ctx, &|var| !matches!(var, Var::Dim(_)))
    }

    /// Makes every range and runtime variable a dimension variable, after those that are there,
    /// the range variables first. Symbolic bounds become constraints.
    pub fn convert_symbols_to_dimensions(&mut self, ctx: &Context) {
        let intervals = self.intervals(ctx);
        let symbolic: Vec<(Var, Variable)> = self
            .vars()
            .filter(|(_, variable)| variable.constant_interval(ctx).is_none())
            .map(|(var, variable)| (var, variable.clone()))
            .collect();
        for (var, bounds) in symbolic {
            let expr = ctx.var(var);
            let distances = [
                bounds.lower.map(|lower| ctx.sub(expr, lower)),
                bounds.upper.map(|upper| ctx.sub(upper, expr)),
            ];
            if let Some(variable) = self.variable_mut(var) {
                variable.set_interval(ctx, intervals.of(var));
            }
            for distance in distances.into_iter().flatten() {
                self.add_constraint(ctx, distance, Interval::NON_NEGATIVE);
            }
        }
        let (first_range, first_runtime) = (self.dims.len(), self.dims.len() + self.ranges.len());
        self.dims.append(&mut self.ranges);
        self.dims.append(&mut self.runtimes);
        self.substitute(ctx, &|var| {
            let (first, number) = match var {
                Var::Dim(_) => return None,
                Var::Range(number) => (first_range, number),
                Var::Runtime(number) => (first_runtime, number),
            };
            Some(ctx.dim(u32::try_from(first).ok()?.checked_add(number)?))
        });
        self.sort_constraints(ctx);
    }

    /// Makes range variables dimension variables, after those that are there and in their own
    /// order. Numbers without a variable do not matter.
    pub fn convert_ranges_to_dimensions(&mut self, ctx: &Context, numbers: &[u32]) {
        let converted: BTreeSet<u32> = numbers.iter().copied().collect();
        let mut places = Vec::with_capacity(self.ranges.len());
        let mut kept = Vec::with_capacity(self.ranges.len());
        for (number, variable) in (0..).zip(std::mem::take(&mut self.ranges)) {
            let (list, make): (_, fn(u32) -> Var) = if converted.contains(&number) {
                (&mut self.dims, Var::Dim)
            } else {
                (&mut kept, Var::Range)
            };
            places.push(u32::try_from(list.len()).map(make));
            list.push(variable);
        }
        self.ranges = kept;
        self.substitute(ctx, &|var| match var {
            Var::Range(number) => Some(ctx.var(places.get(number as usize)?.ok()?)),
            _ => None,
        });
        self.sort_constraints(ctx);
    }
}

/// The variables of each constraint, and of the bounds of each variable.
struct Uses {
    constraints: Vec<BTreeSet<Var>>,
    bounds: BTreeMap<Var, BTreeSet<Var>>,
}

impl Uses {
    fn of(ctx: &Context, map: &IndexingMap) -> Self {
        let of_bounds = |variable: &Variable| {
            let bounds: Vec<_> = variable.lower.into_iter().chain(variable.upper).collect();
            ctx.vars_of_all(&bounds)
        };
        Self {
            constraints: map.constraints.iter().map(|it| ctx.vars(it.expr)).collect(),
            bounds: map.vars().map(|(var, variable)| (var, of_bounds(variable))).collect(),
        }
    }

    /// The variables that the map uses and does not have.
    fn missing(&self) -> impl Iterator<Item = Var> {
        let vars = self.constraints.iter().chain(self.bounds.values()).flatten().copied();
        vars.filter(|var| !self.bounds.contains_key(var))
    }

    /// Adds what constraints and bounds tie to variables that are used.
    fn add_used(&self, used: &mut BTreeSet<Var>) {
        loop {
            let before = used.len();
            for vars in &self.constraints {
                if !vars.is_disjoint(used) {
                    used.extend(vars);
                }
            }
            let of_bounds = used.iter().filter_map(|var| self.bounds.get(var)).flatten();
            used.extend(of_bounds.copied().collect::<Vec<_>>());
            if used.len() == before {
                return;
            }
        }
    }

    /// A variable that is not used, with all the others that have to be looked at together with it.
    fn part(&self, var: Var, used: &BTreeSet<Var>) -> BTreeSet<Var> {
        let mut part = BTreeSet::from([var]);
        loop {
            let before = part.len();
            for vars in &self.constraints {
                if !vars.is_disjoint(&part) {
                    part.extend(vars);
                }
            }
            for (&var, vars) in self.bounds.iter().filter(|(var, _)| !used.contains(var)) {
                if part.contains(&var) || !vars.is_disjoint(&part) {
                    part.extend(vars.difference(used));
                    part.insert(var);
                }
            }
            if part.len() == before {
                return part;
            }
        }
    }

    /// Whether the variables of a [`part`](Self::part) have values, whatever the others are; `None`
    /// where neither that nor the contrary is seen.
    fn has_values(&self, ctx: &Context, map: &IndexingMap, part: &BTreeSet<Var>) -> Option<bool> {
        let touches = |vars: &BTreeSet<Var>| !vars.is_disjoint(part);
        if !self.constraints.iter().any(touches) {
            let intervals = map.intervals(ctx);
            // Runtime variables take values in their order, the others after them.
            let has_value = |&var: &Var| {
                let is_before = |other: &Var| match (var, other) {
                    (Var::Runtime(number), Var::Runtime(other)) => *other < number,
                    (_, other) => matches!(other, Var::Runtime(_)),
                };
                self.bounds[&var].iter().all(|other| !part.contains(other) || is_before(other))
                    && map.variable(var).is_some_and(|it| it.has_value(ctx, &intervals))
            };
            if part.iter().all(has_value) {
                return Some(true);
            }
        }
        if part.iter().any(|var| !self.bounds[var].is_subset(part)) {
            return None;
        }
        let mut alone = map.clone();
        alone.results.clear();
        let mut vars_of_constraints = self.constraints.iter();
        alone.constraints.retain(|_| vars_of_constraints.next().is_some_and(touches));
        for (var, _) in map.vars().filter(|(var, _)| !part.contains(var)) {
            if let Some(variable) = alone.variable_mut(var) {
                variable.set_interval(ctx, Interval::point(0));
            }
        }
        match alone.emptiness(ctx) {
            Emptiness::Empty => Some(false),
            Emptiness::Inhabited(_) => Some(true),
            Emptiness::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(ctx: &Context, text: &str) -> IndexingMap {
        IndexingMap::parse(ctx, text).expect("a map")
    }

    #[test]
    fn symbolic_bounds_become_constraints() {
        let ctx = Context::new();
        let mut map = parse(&ctx, "(i){N} -> (i), domain: i in [0, N - 1], N in [1, 9]");
        map.convert_symbols_to_dimensions(&ctx);
        assert_eq!(
            map.display(&ctx).to_string(),
            "(i, N) -> (i), domain: i in [0, 8], N in [1, 9], N - 1 - i in [0, inf]"
        );
    }

    #[test]
    fn used_variables_stay() {
        let ctx = Context::new();
        let mut map = parse(&ctx, "(d0, d1){N} -> (d0), domain: d1 in [0, N]");
        assert_eq!(map.compress(&ctx, &[Var::Dim(0)]), Err(VariableInUse(Var::Dim(0))));
        assert_eq!(map.compress(&ctx, &[Var::Runtime(0)]), Err(VariableInUse(Var::Runtime(0))));
        assert_eq!(map.compress(&ctx, &[Var::Runtime(0), Var::Dim(1), Var::Range(7)]), Ok(()));
        assert_eq!(map.display(&ctx).to_string(), "(d0) -> (d0)");
    }

    #[test]
    fn constraints_go_with_variables_that_only_they_use() {
        let ctx = Context::new();
        let domain = "domain: d0 in [0, 49], d1 in [0, 59], s0 in [0, 69], s1 in [0, 19]";
        let removed = |results: &str, more: &str, removable: &dyn Fn(Var) -> bool| {
            let mut map =
                parse(&ctx, &format!("(d0, d1)[s0, s1]{{N}} -> ({results}), {domain}, {more}"));
            map.remove_unused(&ctx, removable);
            map.display(&ctx).to_string()
        };
        let symbols = |var: Var| !matches!(var, Var::Dim(_));
        for (results, more, expected) in [
            (
                "d0, d1, s1",
                "s0 mod 3 in [0, 0]",
                "(d0, d1)[s0] -> (d0, d1, s0), domain: d0 in [0, 49], d1 in [0, 59], s0 in [0, 19]",
            ),
            // A constraint of a variable that stays ties others to it, also over further ones.
            (
                "s1",
                "N in [1, 5], d1 mod 2 in [0, 0], s0 + N in [3, 70], d1 + N in [0, 60]",
                "(d0, d1)[s0, s1]{N} -> (s1), domain: d0 in [0, 49], d1 in [0, 59], \
                 s0 in [0, 69], s1 in [0, 19], N in [1, 5], d1 + N in [0, 60], \
                 d1 mod 2 in [0, 0], s0 + N in [3, 70]",
            ),
            ("d0", "N in [1, 5], s0 mod 3 in [1, 1], s0 - s1 * 3 in [0, 0]", "KNOWN EMPTY"),
        ] {
            assert_eq!(removed(results, more, &symbols), expected);
        }
        for (results, more, expected) in [
            (
                "s0, d1, s1",
                "d0 mod 3 in [0, 0]",
                "(d0)[s0, s1] -> (s0, d0, s1), domain: d0 in [0, 59], s0 in [0, 69], s1 in [0, 19]",
            ),
            // The size that only removed variables use.
            (
                "d0",
                "N in [4, 99], s0 - N in [-9, -1], d1 * N in [6, 6]",
                "(d0) -> (d0), domain: d0 in [0, 49]",
            ),
            // A product: N = 0 leaves no value for d1.
            (
                "d0, N",
                "N in [0, 9], d1 * N in [6, 6]",
                "(d0, d1){N} -> (d0, N), domain: d0 in [0, 49], d1 in [0, 59], N in [0, 9], \
                 d1 * N in [6, 6]",
            ),
        ] {
            assert_eq!(removed(results, more, &|_| true), expected);
        }
    }

    #[test]
    fn symbolic_bounds_go_where_they_leave_values() {
        let ctx = Context::new();
        for (text, expected) in [
            ("(i){N} -> (), domain: i in [0, N - 1], N in [0, 9]", "() -> ()"),
            (
                "(i){N} -> (N), domain: i in [0, N - 1], N in [1, 9]",
                "(){N} -> (N), domain: N in [1, 9]",
            ),
            (
                "(i){N} -> (N), domain: i in [0, N - 1], N in [0, 9]",
                "(i){N} -> (N), domain: i in [0, N - 1], N in [0, 9]",
            ),
            ("(){M, N} -> (), domain: M in [N + 1, N + 2], N in [M + 1, M + 2]", "KNOWN EMPTY"),
            (
                "()[i]{M, N} -> (M), domain: i in [0, N - 1], M in [1, 9], N in [1, M]",
                "(){M} -> (M), domain: M in [1, 9]",
            ),
        ] {
            let mut map = parse(&ctx, text);
            map.remove_unused_vars(&ctx);
            assert_eq!(map.display(&ctx).to_string(), expected, "{text}");
        }
    }

    #[test]
    fn variables_that_a_map_lacks_stay_in_use() {
        let ctx = Context::new();
        let mut map = IndexingMap::identity(&ctx, &[5, 6]);
        map.results.pop();
        map.add_constraint(&ctx, ctx.add(ctx.dim(1), ctx.dim(2)), Interval::new(0, 5));
        assert_eq!(map.remove_unused_vars(&ctx), []);
    }
}
