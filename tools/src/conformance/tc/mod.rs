//! Cases of the TC language: what is accepted, which ranges are inferred, what is computed.
//!
//! Rows have a field `tc` with the source text; `tests/conformance/README.md` says how they
//! are told apart.

mod claim;
mod eval;
mod kernels;
mod program;
mod ranges;
mod syntax;
mod values;

use super::Kind;
use serde_json::Value;

/// The kinds of rows, and how to tell them apart.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "tc claim",
        matches: |row| row.get("kind").and_then(Value::as_str) == Some("claim"),
        run: claim::run,
    },
    Kind {
        name: "tc syntax",
        matches: |row| is_tc(row) && row.get("expected").is_some_and(Value::is_string),
        run: syntax::run,
    },
    Kind {
        name: "tc ranges",
        matches: |row| {
            is_tc(row) && row.get("expected").is_some_and(|it| it.get("error").is_some())
        },
        run: ranges::run,
    },
    Kind {
        name: "tc kernels",
        matches: |row| is_tc(row) && row.get("sizes").is_some_and(Value::is_array),
        run: kernels::run,
    },
    Kind {
        name: "tc eval",
        matches: |row| is_tc(row) && row.get("sizes").is_some_and(Value::is_object),
        run: eval::run,
    },
];

fn is_tc(row: &Value) -> bool {
    row.get("kind").is_none() && row.get("tc").is_some_and(Value::is_string)
}
