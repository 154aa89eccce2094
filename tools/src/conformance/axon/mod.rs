//! Cases of the Axon language: which shapes follow from equations, and which signatures from
//! programs. `tests/conformance/axon/README.md` describes the rows.

mod program;
mod solve;

use super::Kind;
use serde_json::Value;

/// The kinds of rows, and how to tell them apart.
pub(super) const KINDS: &[Kind] = &[
    Kind { name: "axon solve", matches: |row| is_kind(row, "solve"), run: solve::run },
    Kind { name: "axon program", matches: |row| is_kind(row, "program"), run: program::run },
];

fn is_kind(row: &Value, kind: &str) -> bool {
    row.get("kind").and_then(Value::as_str) == Some(kind)
}

/// What a case expects, and what it accepts as well.
fn outcomes(row: &Value) -> Vec<&Value> {
    let also = row.get("also_accept").and_then(Value::as_array).into_iter().flatten();
    row.get("expected").into_iter().chain(also).collect()
}
