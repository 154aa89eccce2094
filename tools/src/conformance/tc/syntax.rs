//! Accepted and rejected programs, and their checked form.

use super::program::Source;
use crate::conformance::{
    Options, Outcome, Status,
    row::{Mismatch, field, flag, optional, string, strings},
};
use serde_json::Value;
use std::collections::BTreeSet;
use tc_dialects::{
    tc::syntax::ast::{Expr, ExprKind, UnaryOp},
    text::{Diagnostic, Reason},
};

/// The deepest nesting of an expected grouping.
const MAX_NESTING: usize = 100;

pub(super) fn run(row: &Value, _options: &Options) -> Result<Outcome, Mismatch> {
    let source = Source::of_row(row)?;
    let found = source.first_error();
    let (expected, got) = (expectation(row)?, describe(found));
    let reasons = reasons(row)?;
    let optional_error = optional(row, "optional_error", string)?;
    let named = |error: &Diagnostic| error.reason.name();
    let accepts = match field(row, "expected", string)? {
        "accept" => true,
        "reject" => false,
        other => return Err(Mismatch::new("'accept' or 'reject'", format!("'{other}'"))),
    };
    let agrees = match (accepts, found) {
        (true, None) => true,
        (true, Some(error)) => optional_error == Some(named(error)),
        (false, None) => false,
        (false, Some(error)) => {
            let stage = field(row, "stage", string)?;
            stage == error.reason.stage().name() && reasons.contains(&named(error))
        }
    };
    if !agrees {
        // Half precision was refused by the original; it is a type here.
        let decided = flag(row, "optional")? || found.is_none() && reasons == ["half_unsupported"];
        let status = if decided { Status::Documented } else { Status::Failed };
        return Ok(Outcome::new(status, expected, got));
    }
    if found.is_none() {
        check_warnings(row, &source)?;
        check_type(row, &source)?;
        check_grouping(row, &source)?;
    }
    Ok(Outcome::new(Status::Passed, expected, got))
}

/// The reasons for which the program may be rejected.
fn reasons(row: &Value) -> Result<Vec<&str>, Mismatch> {
    let mut all: Vec<_> = optional(row, "reason", string)?.into_iter().collect();
    all.extend(optional(row, "accept_reasons", strings)?.unwrap_or_default());
    Ok(all)
}

fn expectation(row: &Value) -> Result<String, Mismatch> {
    let mut text = field(row, "expected", string)?.to_string();
    if let Some(stage) = optional(row, "stage", string)? {
        text += &format!(" at {stage}");
    }
    let reasons = reasons(row)?;
    if !reasons.is_empty() {
        text += &format!(": {}", reasons.join(" or "));
    }
    if let Some(error) = optional(row, "optional_error", string)? {
        text += &format!(", or reject: {error}");
    }
    Ok(text)
}

fn describe(error: Option<&Diagnostic>) -> String {
    match error {
        None => "accept".to_string(),
        Some(error) => {
            let (stage, reason) = (error.reason.stage().name(), error.reason.name());
            format!("reject at {stage}: {reason} ({})", error.message)
        }
    }
}

/// The warnings that the data knows. Those of range inference are not given yet.
fn check_warnings(row: &Value, source: &Source) -> Result<(), Mismatch> {
    let expected = optional(row, "warnings", strings)?.unwrap_or_default();
    let expected: BTreeSet<_> = expected.into_iter().collect();
    let warning = Reason::UninitializedReduction;
    let found: BTreeSet<_> = source.warns(warning).then_some(warning.name()).into_iter().collect();
    equal("warnings", &format!("{expected:?}"), &format!("{found:?}"))
}

fn equal(what: &str, expected: &str, found: &str) -> Result<(), Mismatch> {
    if expected == found {
        return Ok(());
    }
    Err(Mismatch::new(format!("{what} {expected}"), found))
}

/// The element type of what the last statement of the last function defines.
fn check_type(row: &Value, source: &Source) -> Result<(), Mismatch> {
    let Some(expected) = optional(row, "result_type", string)? else { return Ok(()) };
    let functions = source.checked.functions.last();
    let statement = functions.and_then(|function| function.statements.last());
    let found = statement.map_or("no statement", |statement| statement.scalar.name());
    equal("result type", expected, found)
}

/// The value of the last statement, against a grouping in prefix notation.
fn check_grouping(row: &Value, source: &Source) -> Result<(), Mismatch> {
    let Some(text) = optional(row, "parse", string)? else { return Ok(()) };
    let pattern = Pattern::parse(text)?;
    let statement = source.program.defs.last().and_then(|def| def.statements.last());
    let Some(statement) = statement else {
        return Err(Mismatch::new(format!("grouping {text}"), "no statement"));
    };
    if pattern.matches(&statement.value) {
        return Ok(());
    }
    Err(Mismatch::new(format!("grouping {text}"), prefix(&statement.value)))
}

/// An expected grouping: `(+ a ..)`.
#[derive(Debug, PartialEq)]
enum Pattern {
    /// `..`: anything, of any number.
    Rest,
    /// A number, or a name with or without indices.
    Leaf(String),
    /// An operator and its operands.
    Apply(String, Vec<Pattern>),
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        let malformed = || Mismatch::new("a grouping such as (+ a (* b ..))", format!("'{text}'"));
        let spaced = text.replace('(', " ( ").replace(')', " ) ");
        let mut open: Vec<(String, Vec<Pattern>)> = Vec::new();
        let mut words = spaced.split_whitespace();
        while let Some(word) = words.next() {
            let done = match word {
                "(" if open.len() < MAX_NESTING => {
                    let operator = words.next().filter(|it| !matches!(*it, "(" | ")"));
                    open.push((operator.ok_or_else(malformed)?.to_string(), Vec::new()));
                    continue;
                }
                "(" => return Err(malformed()),
                ")" => {
                    let (operator, operands) = open.pop().ok_or_else(malformed)?;
                    Self::Apply(operator, operands)
                }
                ".." => Self::Rest,
                leaf => Self::Leaf(leaf.to_string()),
            };
            match open.last_mut() {
                Some((_, operands)) => operands.push(done),
                None if words.next().is_none() => return Ok(done),
                None => break,
            }
        }
        Err(malformed())
    }

    fn matches(&self, expr: &Expr) -> bool {
        match self {
            Self::Rest => true,
            Self::Leaf(text) => match &expr.kind {
                ExprKind::Number(found) | ExprKind::Name(found) => found == text,
                ExprKind::Bool(value) => value.to_string() == *text,
                ExprKind::Apply { name, .. } => name.text == *text,
                _ => false,
            },
            Self::Apply(operator, operands) => {
                let (found, values) = parts(expr);
                if found != *operator {
                    return false;
                }
                let (operands, rest) = match operands.split_last() {
                    Some((Self::Rest, operands)) => (operands, true),
                    _ => (operands.as_slice(), false),
                };
                let fits = operands.len() == values.len() || rest && operands.len() < values.len();
                fits && operands.iter().zip(values).all(|(operand, value)| operand.matches(value))
            }
        }
    }
}

/// The operator of an expression, and its operands.
fn parts(expr: &Expr) -> (String, Vec<&Expr>) {
    match &expr.kind {
        ExprKind::Number(text) | ExprKind::Name(text) => (text.clone(), Vec::new()),
        ExprKind::Bool(value) => (value.to_string(), Vec::new()),
        ExprKind::Apply { name, args } => (name.text.clone(), args.iter().collect()),
        ExprKind::Extent { tensor, dim } => (format!("{}.{}", tensor.text, dim.text), Vec::new()),
        ExprKind::Cast { ty, value } => (ty.name().to_string(), vec![value]),
        ExprKind::Unary { op: UnaryOp::Neg, value } => ("-".to_string(), vec![value]),
        ExprKind::Unary { op: UnaryOp::Not, value } => ("!".to_string(), vec![value]),
        ExprKind::Binary { op, lhs, rhs } => (op.name().to_string(), vec![lhs, rhs]),
        ExprKind::Select { condition, on_true, on_false } => {
            ("?".to_string(), vec![condition, on_true, on_false])
        }
    }
}

/// An expression in prefix notation. The parser bounds how high a tree is.
fn prefix(expr: &Expr) -> String {
    let (operator, operands) = parts(expr);
    if operands.is_empty() {
        return operator;
    }
    let operands: Vec<_> = operands.into_iter().map(prefix).collect();
    format!("({operator} {})", operands.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn outcome(row: Value) -> (Status, String, String) {
        let outcome = run(&row, &Options::default()).unwrap_or_else(Outcome::from);
        (outcome.status, outcome.expected, outcome.got)
    }

    fn statement(value: &str) -> String {
        format!("def f(float(N) a, float(N) b) -> (o) {{ o(i) = {value} }}")
    }

    #[test]
    fn groupings() {
        let case = |value: &str, parse: &str| {
            let row = json!({ "tc": statement(value), "expected": "accept", "parse": parse });
            outcome(row)
        };
        let passes = |value, parse| case(value, parse).0 == Status::Passed;
        assert!(passes("a(i) + b(i) * 2", "(+ a (* b 2))"));
        assert!(passes("a(i) + b(i) * 2", "(+ .. (* ..))"));
        assert!(passes("max(-a(i), float(i))", "(max (- a) (float i))"));
        assert!(!passes("a(i) + b(i)", "(+ a)"));
        assert!(!passes("a(i) + b(i)", "(+ a b ..) x"));
        assert_eq!(
            case("a(i) - b(i) - 1.0", "(- a (- b 1.0))"),
            (
                Status::Failed,
                "grouping (- a (- b 1.0))".to_string(),
                "(- (- (a i) (b i)) 1.0)".to_string()
            )
        );
        for malformed in ["", "(", "()", ")", "(+ a", "a b", "((+) a)", &"(+ ".repeat(10_000)] {
            assert!(case("a(i)", malformed).1.starts_with("a grouping"), "{malformed}");
        }
    }

    #[test]
    fn each_expectation_is_compared() {
        let good = statement("a(i)");
        let bad = statement("c(i)");
        let warned = "def f(float(N) a) -> (o) { o += a(i) }";
        let expect = |status, row| assert_eq!(outcome(row).0, status);
        expect(Status::Passed, json!({ "tc": good, "expected": "accept", "result_type": "float" }));
        expect(
            Status::Failed,
            json!({ "tc": good, "expected": "accept", "result_type": "double" }),
        );
        expect(
            Status::Failed,
            json!({ "tc": good, "expected": "accept", "warnings": ["uninitialized_reduction"] }),
        );
        expect(Status::Failed, json!({ "tc": warned, "expected": "accept" }));
        expect(
            Status::Passed,
            json!({ "tc": warned, "expected": "accept", "warnings": ["uninitialized_reduction"] }),
        );
        expect(Status::Failed, json!({ "tc": bad, "expected": "accept" }));
        expect(
            Status::Passed,
            json!({ "tc": bad, "expected": "accept", "optional_error": "undeclared" }),
        );
        expect(Status::Documented, json!({ "tc": bad, "expected": "accept", "optional": true }));
        let reject = |stage, reason| json!({ "tc": bad, "expected": "reject", "stage": stage, "reason": reason });
        expect(Status::Passed, reject("sema", "undeclared"));
        expect(Status::Failed, reject("parse", "undeclared"));
        expect(Status::Failed, reject("sema", "syntax"));
        expect(Status::Failed, json!({ "tc": bad, "expected": "reject", "reason": "undeclared" }));
        let mut alternative = reject("sema", "redefined");
        alternative["accept_reasons"] = json!(["undeclared"]);
        expect(Status::Passed, alternative);
        let half = json!({
            "tc": "def f(float16(N) a) -> (o) { o(i) = a(i) }",
            "expected": "reject", "stage": "sema", "reason": "half_unsupported",
        });
        expect(Status::Documented, half);
        expect(Status::Failed, json!({ "tc": good, "expected": "maybe" }));
        expect(Status::Failed, json!({ "tc": good, "expected": "accept", "warnings": 1 }));
    }
}
