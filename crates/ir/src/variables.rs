//! Changes of the variable lists of a map, and what names of variables mean.

use std::collections::BTreeSet;
use std::fmt;

use crate::expr::{Context, Var};
use crate::interval::Interval;
use crate::map::{IndexingMap, Variable};

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
}
