//! Expressions with the names of the source.

use tc_ir::expr::{Context, Expr, Var};
use tc_ir::polynomial::{Normalizer, condition_text, text};
use tc_ir::solve::SolveError;

use super::{Range, Scope, Statement, Value};

/// Writes expressions with the names of the source.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) context: &'a Context,
    pub(super) scope: &'a Scope,
    pub(super) statement: &'a Statement,
}

impl Names<'_> {
    pub(super) fn of(&self, var: Var) -> String {
        if let Some(index_var) =
            self.statement.index_vars.iter().find(|index_var| index_var.var == var)
        {
            return index_var.name.clone();
        }
        let Var::Runtime(number) = var else {
            return "?".to_owned();
        };
        match self.scope.values.get(number as usize) {
            Some(Value::Size { name }) => name.clone(),
            Some(Value::Data { text, .. }) => text.clone(),
            None => "?".to_owned(),
        }
    }

    pub(super) fn text(&self, expr: Expr) -> String {
        text(self.context, expr, &|var| self.of(var))
    }

    /// The first value after a closed upper bound, as half-open ranges write it.
    pub(super) fn after(&self, upper: Expr) -> String {
        let mut normalizer = Normalizer::new(self.context);
        let after = normalizer.polynomial(upper).and_then(|upper| normalizer.expr(&upper.plus(1)?));
        after.map_or_else(|_| "...".to_owned(), |after| self.text(after))
    }

    pub(super) fn range(&self, range: Range) -> String {
        format!("{}:{}", self.text(range.lower), self.after(range.upper))
    }

    /// `lower <= what < upper + 1`, with the ends that there are.
    pub(super) fn interval(&self, what: &str, lower: Option<Expr>, upper: Option<Expr>) -> String {
        let lower = lower.map(|lower| format!("{} <= ", self.text(lower))).unwrap_or_default();
        let upper = upper.map(|upper| format!(" < {}", self.after(upper))).unwrap_or_default();
        format!("{lower}{what}{upper}")
    }

    pub(super) fn condition(
        &self,
        argument: Expr,
        lower: Option<Expr>,
        upper: Option<Expr>,
    ) -> String {
        self.interval(&self.text(argument), lower, upper)
    }

    /// `num_unresolved` variables would do with one range.
    pub(super) fn suggestion(&self, index_var: usize, num_unresolved: usize) -> String {
        let name = &self.statement.index_vars[index_var].name;
        let size =
            name.strip_prefix("r_").filter(|rest| !rest.is_empty()).unwrap_or(name).to_uppercase();
        let whom = if num_unresolved == 1 { "it" } else { "one of them" };
        format!("try a range for {whom}: 'where {name} in 0:{size}'")
    }

    pub(super) fn reason(&self, error: &SolveError, index_var: usize) -> String {
        let name = &self.statement.index_vars[index_var].name;
        match error {
            SolveError::NotLinear => format!("it is not linear in '{name}'"),
            SolveError::VaryingCoefficient { with } => {
                format!("the coefficient of '{name}' changes with '{}'", self.of(*with))
            }
            SolveError::UnknownSign { coefficient } => {
                format!("the sign of '{}' depends on the sizes", self.text(*coefficient))
            }
            SolveError::NotMonotone { var } => {
                format!("it rises and falls with '{}'", self.of(*var))
            }
            SolveError::Unbounded { var } => {
                format!("'{}' is known only at run time", self.of(*var))
            }
            SolveError::Undecided { condition } => {
                let condition = condition_text(self.context, *condition, &|var| self.of(var));
                format!("the bound differs with '{condition}'")
            }
            error => error.to_string(),
        }
    }
}
