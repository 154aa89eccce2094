//! The text form of expressions and indexing maps.
//!
//! ```text
//! map        := vars "->" "(" [expr {"," expr}] ")" ["," ("domain:" | "where") entry {"," entry}]
//! vars       := "(" names ")" ["[" names "]"] ["{" names "}"]
//! entry      := expr "in" "[" bound "," bound "]"
//! bound      := "inf" | "-inf" | expr
//! expr       := product {("+" | "-") product}
//! product    := unary {("*" | "/" | "floordiv" | "ceildiv" | "mod") unary}
//! unary      := {"-"} (number | name | "(" expr ")" | ("min" | "max") "(" expr "," expr ")")
//! ```
//!
//! The form is XLA's (`indexing_map_serialization.h`): `/` is `floordiv`, bounds are
//! inclusive, an empty domain prints as `KNOWN EMPTY`, or by `{:#}` with its variables. The first
//! entry of a variable gives its bounds, every other entry is a constraint, which is kept as it is written: bounds may say where a
//! reduction has results, and constraints on the same variable which of them it adds to. After `where`, every entry is a constraint, whose
//! bounds may be expressions over runtime variables. Three extensions: a bound of a variable may
//! be an expression over runtime variables, an infinite bound is `inf` or `-inf`, and an
//! unbounded variable has no entry.
//!
//! A disjunction of conjunctions of constraints has a form of its own, in which `&&` binds more
//! tightly than `||`:
//!
//! ```text
//! constraints := "always satisfied" | "unsatisfiable" | conjunction {"||" conjunction}
//! conjunction := constraint {"&&" constraint}
//! constraint  := expr "in" "[" ("-inf" | expr) "," ("inf" | expr) "]"
//! ```
//!
//! What is printed parses back to the same map, except that a known empty map keeps nothing
//! but its emptiness and that names which are no identifiers or not unique are replaced.
//! Nesting deeper than [`MAX_NESTING`] is a parse error; an expression of more than
//! [`MAX_PRINTED_COST`] operations prints as its size only.

mod parse;
mod print;

use crate::expr::Var;

pub use parse::parse_expr;
pub use print::{ExprDisplay, MapDisplay, UNDEFINED, display_map};

/// The deepest nesting of parentheses and function calls that the parser accepts.
pub const MAX_NESTING: usize = 512;

/// The largest expression that is printed, in operations.
pub const MAX_PRINTED_COST: u32 = 1 << 20;

/// What is wrong with a text, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct ParseError {
    /// The byte offset in the parsed text.
    pub offset: usize,
    /// The line in the parsed text, from 1.
    pub line: usize,
    /// The column in that line, in bytes from 1.
    pub column: usize,
    /// What was found and what was expected.
    pub message: String,
}

impl ParseError {
    /// An error at a byte offset of `text`; one past the end counts as the end.
    ///
    /// ```
    /// use tc_ir::ParseError;
    /// let error = ParseError::at("(d0)\n -> (d1)", 10, "expected a variable");
    /// assert_eq!((error.line, error.column), (2, 6));
    /// ```
    pub fn at(text: &str, offset: usize, message: impl Into<String>) -> Self {
        let before = &text.as_bytes()[..offset.min(text.len())];
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        Self {
            offset,
            line: before.iter().filter(|&&byte| byte == b'\n').count() + 1,
            column: before.len() - line_start + 1,
            message: message.into(),
        }
    }
}

/// Words with a meaning of their own, which cannot name a variable.
const KEYWORDS: [&str; 7] = ["floordiv", "ceildiv", "mod", "min", "max", "in", "inf"];

fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !KEYWORDS.contains(&name)
}

/// The name that a variable has in text unless it is given one: `d0`, `s0`, `rt0`.
pub fn default_name(var: Var) -> String {
    match var {
        Var::Dim(i) => format!("d{i}"),
        Var::Range(i) => format!("s{i}"),
        Var::Runtime(i) => format!("rt{i}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Context;
    use crate::interval::Interval;
    use crate::map::IndexingMap;

    fn message(text: &str) -> String {
        let ctx = Context::new();
        let error = IndexingMap::parse(&ctx, text).expect_err("the text is wrong");
        assert_eq!(error.to_string(), format!("1:{}: {}", error.offset + 1, error.message));
        format!("{}: {}", error.offset, error.message)
    }

    #[test]
    fn symbolic_bounds_round_trip() {
        let text = "(m, n)[r_k]{M, K, N} -> (m, n), domain: m in [0, M - 1], n in [0, N - 1], \
                    r_k in [0, K - 1], M in [1, 2147483647]";
        let ctx = Context::new();
        let map = IndexingMap::parse(&ctx, text).expect("a map");
        assert_eq!(map.display(&ctx).to_string(), text);
        assert_eq!(map.interval(&ctx, Var::Dim(0)), Interval::new(0, 2147483646));
    }

    #[test]
    fn infinite_bounds_round_trip() {
        for text in [
            "(d0, d1, d2) -> (d0), domain: d0 in [0, inf], d1 in [-inf, 5], d0 + d1 in [-inf, 3]",
            "(d0) -> (d0), domain: d0 in [-inf, inf], d0 in [0, 5]",
            "(d0) -> (d0), domain: d0 in [0, 6], d0 in [0, 4]",
        ] {
            let ctx = Context::new();
            let map = IndexingMap::parse(&ctx, text).expect("a map");
            assert_eq!(map.display(&ctx).to_string(), text);
        }
    }

    #[test]
    fn extreme_constants_round_trip() {
        for text in [
            "(d0) -> (d0 + -9223372036854775808)",
            "(d0) -> (d0 * -9223372036854775808, -9223372036854775808 * -1)",
            "(d0) -> (d0 - (d0 + 1) * 2, -(d0 / 2), -d0 / 2, d0 * (-d0))",
        ] {
            let ctx = Context::new();
            let map = IndexingMap::parse(&ctx, text).expect("a map");
            assert_eq!(map.display(&ctx).to_string(), text);
        }
    }

    #[test]
    fn errors_name_place_and_expectation() {
        assert_eq!(message(""), "0: expected '(', found the end");
        assert_eq!(message("(d0) (d0)"), "5: expected '->', found '('");
        assert_eq!(message("(d0 -> (d0)"), "4: expected ',' or ')', found '-'");
        assert_eq!(message("(d0) -> (d1)"), "9: expected a variable, found 'd1'");
        assert_eq!(message("(d0, d0) -> ()"), "5: variable 'd0' is declared twice");
        assert_eq!(
            message("(d0) -> (99999999999999999999)"),
            "9: expected a number of at most 64 bits, found '99999999999999999999'"
        );
        assert_eq!(
            message("(d0, d1) -> (d0), domain: d0 in [0, d1]"),
            "36: expected a bound over runtime variables, found 'd1' in it"
        );
        assert_eq!(
            message("(d0) -> (d0), domain: d0 in [inf, 5]"),
            "29: expected '-inf' or an expression, found 'inf'"
        );
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let deep = "(".repeat(64 << 20);
        let ctx = Context::new();
        let error = parse_expr(&ctx, &deep, &|_| None).expect_err("too deep");
        assert_eq!(error.message, "expected at most 512 nested parentheses");
        assert!(IndexingMap::parse(&ctx, &format!("() -> {deep}")).is_err());
        let accepted = format!("{}5{}", "(".repeat(512), ")".repeat(512));
        assert!(parse_expr(&ctx, &accepted, &|_| None).is_ok());
    }

    #[test]
    fn long_sums_need_no_stack() {
        let ctx = Context::new();
        let mut sum = ctx.dim(0);
        for i in 1..200_000 {
            sum = ctx.add(sum, ctx.dim(i));
        }
        let text = ctx.display(sum).to_string();
        let resolve = |name: &str| name[1..].parse().ok().map(Var::Dim);
        assert_eq!(parse_expr(&ctx, &text, &resolve), Ok(sum));
    }

    #[test]
    fn clashing_names_are_told_apart() {
        let ctx = Context::new();
        let mut map = IndexingMap::identity(&ctx, &[2, 3, 4]);
        map.dims[0].name = Some("d1".into());
        map.dims[2].name = Some("a b".into());
        assert_eq!(
            map.display(&ctx).to_string(),
            "(d1, d1_0, d2) -> (d1, d1_0, d2), domain: d1 in [0, 1], d1_0 in [0, 2], d2 in [0, 3]"
        );
    }
}
