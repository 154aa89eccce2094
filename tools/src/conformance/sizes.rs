//! Expressions over size variables: `+ - * / min max`, where `/` rounds down, and
//! comparisons of them joined by `&&`. They are compared by value, at given sizes.

use super::row::Mismatch;
use tc_backends::program::Sizes;
use tc_ir::{Context, Expr, IndexingMap, Var, text::parse_expr};

/// Size variables, numbered as runtime variables, and an arena of expressions over them.
pub(super) struct Algebra {
    pub(super) ir: Context,
    names: Vec<String>,
}

/// One comparison of a condition.
#[derive(Copy, Clone, Debug)]
pub(super) struct Comparison {
    lhs: Expr,
    operator: &'static str,
    rhs: Expr,
}

impl Algebra {
    pub(super) fn new(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { ir: Context::new(), names: names.into_iter().map(Into::into).collect() }
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Reads an expression.
    pub(super) fn parse(&self, text: &str) -> Result<Expr, Mismatch> {
        let resolve = |name: &str| {
            let number = self.names.iter().position(|known| known == name)?;
            Some(Var::Runtime(number as u32))
        };
        parse_expr(&self.ir, text, &resolve).map_err(|error| {
            Mismatch::new(
                format!("an expression over the sizes {}", self.names.join(", ")),
                format!("'{text}', where in column {}: {}", error.column, error.message),
            )
        })
    }

    /// Reads comparisons that are joined by `&&`.
    pub(super) fn parse_condition(&self, text: &str) -> Result<Vec<Comparison>, Mismatch> {
        // Longer operators first, so that `<=` is not read as `<`.
        const OPERATORS: [&str; 6] = ["<=", ">=", "==", "!=", "<", ">"];
        let comparison = |text: &str| {
            let (operator, (lhs, rhs)) = OPERATORS
                .iter()
                .find_map(|operator| Some((*operator, text.split_once(operator)?)))
                .ok_or_else(|| Mismatch::new("a comparison", format!("'{text}'")))?;
            Ok(Comparison { lhs: self.parse(lhs)?, operator, rhs: self.parse(rhs)? })
        };
        text.split("&&").map(comparison).collect()
    }

    fn value_of(&self, var: Var, sizes: &Sizes) -> Option<i64> {
        match var {
            Var::Runtime(number) => sizes.get(self.names.get(number as usize)?).copied(),
            _ => None,
        }
    }

    /// The value of an expression, if it has one that fits 64 bits.
    pub(super) fn eval(&self, expr: Expr, sizes: &Sizes) -> Option<i64> {
        self.ir.eval(expr, &|var| self.value_of(var, sizes)).ok()
    }

    /// Whether a comparison holds, if its operands have values.
    pub(super) fn holds(&self, comparison: Comparison, sizes: &Sizes) -> Option<bool> {
        let (lhs, rhs) = (self.eval(comparison.lhs, sizes)?, self.eval(comparison.rhs, sizes)?);
        Some(match comparison.operator {
            "<=" => lhs <= rhs,
            ">=" => lhs >= rhs,
            "==" => lhs == rhs,
            "!=" => lhs != rhs,
            "<" => lhs < rhs,
            _ => lhs > rhs,
        })
    }

    /// Whether the constraints of a map hold, if they have values.
    pub(super) fn satisfied(&self, condition: &IndexingMap, sizes: &Sizes) -> Option<bool> {
        let mut all = true;
        for constraint in &condition.constraints {
            all &= constraint.interval.contains(self.eval(constraint.expr, sizes)?);
        }
        Some(all)
    }

    /// An expression as text.
    pub(super) fn text(&self, expr: Expr) -> String {
        tc_ir::polynomial::text(&self.ir, expr, &|var| match var {
            Var::Runtime(number) => self.names.get(number as usize).cloned().unwrap_or_default(),
            _ => tc_ir::text::default_name(var),
        })
    }
}

/// `N = 3, M = 4`
pub(super) fn show(sizes: &Sizes) -> String {
    let sizes: Vec<_> = sizes.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    if sizes.is_empty() { "no sizes".to_string() } else { sizes.join(", ") }
}

/// Seeded sizes to try beyond those that a case gives: small ones, where minima and
/// roundings change often, neighbours of the given ones, and large ones.
pub(super) fn candidates(names: &[String], samples: &[Sizes], count: usize) -> Vec<Sizes> {
    let mut generator = SplitMix64(0x7463_2d73_697a_6573);
    let mut draw = |low: i64, high: i64| {
        let length = (high - low + 1) as u64;
        low + (generator.next() % length) as i64
    };
    let one = |number: usize| {
        let sample = number.checked_rem(4 * samples.len()).and_then(|it| samples.get(it / 4));
        let value = |name: &String| {
            let value = match (number % 4, sample.and_then(|sample| sample.get(name))) {
                (0, Some(near)) => near.saturating_add(draw(-3, 3)).max(1),
                (1, _) => draw(1, 1 << 20),
                (2, _) => draw(1, 100),
                _ => draw(1, 12),
            };
            (name.clone(), value)
        };
        names.iter().map(value).collect()
    };
    (0..count).map(one).collect()
}

/// The generator of Steele, Lea and Flood, "Fast splittable pseudorandom number generators"
/// (2014).
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: i64, m: i64) -> Sizes {
        [("N".to_string(), n), ("M".to_string(), m)].into()
    }

    #[test]
    fn division_rounds_down() {
        let algebra = Algebra::new(["N", "M"]);
        let expr = algebra.parse("min(((N - M + 7)/2) - 3, 2*N)").unwrap();
        assert_eq!(algebra.eval(expr, &at(2, 10)), Some(-4));
        assert_eq!(algebra.eval(expr, &at(3, 1)), Some(1));
        let division = algebra.parse("N / (M - 1)").unwrap();
        assert_eq!(algebra.eval(division, &at(2, 1)), None);
    }

    #[test]
    fn conditions_are_comparisons() {
        let algebra = Algebra::new(["N", "M"]);
        let condition = algebra.parse_condition("-N >= -3 && N - M < 1").unwrap();
        let holds = |sizes| condition.iter().all(|it| algebra.holds(*it, &sizes) == Some(true));
        assert!(holds(at(3, 3)));
        assert!(!holds(at(4, 4)));
        assert!(!holds(at(3, 2)));
    }

    #[test]
    fn what_is_no_expression_is_located() {
        let algebra = Algebra::new(["N"]);
        let error = algebra.parse("N + K").unwrap_err();
        assert_eq!(error.expected, "an expression over the sizes N");
        assert!(error.got.starts_with("'N + K', where in column 5: "), "{}", error.got);
        assert!(algebra.parse_condition("N").is_err());
        assert!(algebra.parse(&"(".repeat(100_000)).is_err());
    }

    #[test]
    fn candidates_are_positive_and_repeat() {
        let names = ["N".to_string(), "M".to_string()];
        let found = candidates(&names, &[at(1, 5)], 200);
        assert_eq!(found, candidates(&names, &[at(1, 5)], 200));
        assert!(found.iter().all(|sizes| sizes.len() == 2 && sizes.values().all(|it| 1 <= *it)));
        assert_eq!(candidates(&[], &[], 3), vec![Sizes::new(); 3]);
    }
}
