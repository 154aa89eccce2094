//! Cases of the language TML: typing, evaluation without and with padding, and rounding.

mod eval;
mod typecheck;

use super::{
    Kind, Options, Outcome, Status,
    row::{self, Mismatch, field},
};
use serde_json::Value;
use tc_dialects::{
    text::{Diagnostic, SourceFile},
    tml::syntax::{Checked, checked::round_up, read},
};

/// The kinds of rows.
pub(super) const KINDS: &[Kind] = &[
    Kind { name: "tml typecheck", matches: |row| is_kind(row, "typecheck"), run: typecheck::run },
    Kind { name: "tml eval", matches: |row| is_kind(row, "eval"), run: eval::run },
    Kind {
        name: "tml round",
        matches: |row| {
            row.get("kind").and_then(Value::as_str) == Some("round")
                && row.get("vector_length").is_some()
        },
        run: run_round,
    },
];

fn is_kind(row: &Value, kind: &str) -> bool {
    row.get("kind").and_then(Value::as_str) == Some(kind)
        && row.get("program").is_some_and(Value::is_string)
}

/// The program of a row; the first error if it is not well-formed.
fn front_end(row: &Value) -> Result<Result<(SourceFile, Checked), Diagnostic>, Mismatch> {
    let text = field(row, "program", row::string)?;
    let (source, checked, diagnostics) = read("program", text.as_bytes().to_vec());
    Ok(match diagnostics.into_iter().find(Diagnostic::is_error) {
        Some(error) => Err(error),
        None => Ok((source, checked)),
    })
}

fn run_round(row: &Value, _options: &Options) -> Result<Outcome, Mismatch> {
    let number = |name| field(row, name, row::integer);
    let (n, vector_length, expected) =
        (number("n")?, number("vector_length")?, number("expected")?);
    if n < 0 || vector_length < 1 {
        return Err(Mismatch::new("a number and a vector length", format!("{n}, {vector_length}")));
    }
    let got = round_up(n, vector_length).to_string();
    if got != expected.to_string() {
        return Err(Mismatch::new(expected.to_string(), got));
    }
    Ok(Outcome::new(Status::Passed, expected.to_string(), got))
}
