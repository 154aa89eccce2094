//! Whether a map is well formed. What this crate makes of well-formed maps is; a map that is put
//! together from its fields need not be.

use crate::expr::{Context, Expr, Var};
use crate::map::IndexingMap;
use crate::text::default_name;

/// What is wrong with a map.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VerifyError {
    /// A result, a constraint or a bound uses a variable that the map does not have.
    #[error("expected variables of the map, found '{}'", default_name(*.0))]
    UnknownVariable(Var),
    /// A bound uses a dimension or range variable.
    #[error(
        "expected bounds of '{}' over runtime variables, found '{}' in them",
        default_name(*.variable), default_name(*.used)
    )]
    LocalBound {
        /// The variable with the bound.
        variable: Var,
        /// The variable in it.
        used: Var,
    },
}

impl IndexingMap {
    /// Checks that the map has the variables that it uses, and that bounds use runtime variables only.
    ///
    /// # Errors
    /// The first of these rules that does not hold.
    ///
    /// ```
    /// use tc_ir::{Context, IndexingMap, Var, VerifyError};
    /// let ctx = Context::new();
    /// let mut map = IndexingMap::identity(&ctx, &[8, 4]);
    /// assert_eq!(map.verify(&ctx), Ok(()));
    /// map.dims.pop();
    /// assert_eq!(map.verify(&ctx), Err(VerifyError::UnknownVariable(Var::Dim(1))));
    /// ```
    pub fn verify(&self, ctx: &Context) -> Result<(), VerifyError> {
        let constraints = self.constraints.iter().map(|constraint| constraint.expr);
        let exprs: Vec<Expr> = self.results.iter().copied().chain(constraints).collect();
        for var in ctx.vars_of_all(&exprs) {
            self.variable(var).ok_or(VerifyError::UnknownVariable(var))?;
        }
        for (variable, bounds) in self.vars() {
            let bounds: Vec<Expr> = bounds.lower.into_iter().chain(bounds.upper).collect();
            for used in ctx.vars_of_all(&bounds) {
                self.variable(used).ok_or(VerifyError::UnknownVariable(used))?;
                if !matches!(used, Var::Runtime(_)) {
                    return Err(VerifyError::LocalBound { variable, used });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Interval;

    #[test]
    fn errors_name_the_variables() {
        let ctx = Context::new();
        let text = "(i)[k]{N} -> (i, k), domain: i in [0, N - 1], k in [0, 9], i + k in [0, 9]";
        let map = IndexingMap::parse(&ctx, text).expect("a map");
        assert_eq!(map.verify(&ctx), Ok(()));
        let error = |change: &dyn Fn(&mut IndexingMap)| {
            let mut changed = map.clone();
            change(&mut changed);
            changed.verify(&ctx).expect_err("a malformed map").to_string()
        };
        let unknown = |name: &str| format!("expected variables of the map, found '{name}'");
        assert_eq!(error(&|map| map.results.push(ctx.range(1))), unknown("s1"));
        let add = |map: &mut IndexingMap| map.add_constraint(&ctx, ctx.dim(7), Interval::EMPTY);
        assert_eq!(error(&add), unknown("d7"));
        assert_eq!(error(&|map| map.runtimes.clear()), unknown("rt0"));
        assert_eq!(
            error(&|map| map.ranges[0].upper = Some(ctx.dim(0))),
            "expected bounds of 's0' over runtime variables, found 'd0' in them"
        );
    }
}
