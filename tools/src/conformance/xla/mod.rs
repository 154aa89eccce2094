//! Cases of the index algebra (simplification, composition, text and queries of maps), of the
//! indexing analysis of HLO, and of symbolic tiles.
//!
//! Rows have a field `kind`. Kinds of other analyses of the same source are not known yet, so
//! that their rows fail.

pub(super) mod checks;
mod indexing;
mod tile;
mod tiled_computation;
mod tiling;

use super::{Kind, Options, Outcome, Status, row::Mismatch};
use checks::{Pass, Topic};
use serde_json::Value;

/// The kinds of rows, by topic.
pub(super) const KINDS: &[Kind] = &[
    Kind { name: "xla simplify", matches: |row| is(row, Topic::Simplify), run },
    Kind { name: "xla compose", matches: |row| is(row, Topic::Compose), run },
    Kind { name: "xla text", matches: |row| is(row, Topic::Text), run },
    Kind { name: "xla exprs", matches: |row| is(row, Topic::Expressions), run },
    Kind { name: "xla queries", matches: |row| is(row, Topic::Queries), run },
    Kind { name: "xla intervals", matches: |row| is(row, Topic::Intervals), run },
    Kind { name: "xla constraints", matches: |row| is(row, Topic::Constraints), run },
    Kind { name: "xla indexing", matches: indexing::is_case, run },
    Kind { name: "xla tile", matches: tile::is_case, run },
    Kind { name: "xla tiling", matches: tiling::is_case, run },
    Kind { name: "xla tiled computation", matches: tiled_computation::is_case, run },
];

fn is(row: &Value, topic: Topic) -> bool {
    checks::find(row).is_some_and(|check| check.topic == topic)
}

fn run(row: &Value, _options: &Options) -> Result<Outcome, Mismatch> {
    let found = match checks::find(row) {
        Some(check) => (check.run)(row),
        None if indexing::is_case(row) => indexing::run(row),
        None if tile::is_case(row) => tile::run(row),
        None if tiling::is_case(row) => tiling::run(row),
        None if tiled_computation::is_case(row) => tiled_computation::run(row),
        None => return Err(Mismatch::new("a known kind", "another")),
    };
    let expected = ["expected", "composed", "expected_any"]
        .iter()
        .find_map(|key| row.get(key))
        .map_or_else(String::new, |value| {
            value.as_str().map_or_else(|| value.to_string(), str::to_string)
        });
    let (status, got) = match found {
        Ok(Pass::Exact) => (Status::Passed, expected.clone()),
        Ok(Pass::Spelling) => (Status::Spelling, "another spelling of it".to_string()),
        Ok(Pass::Simpler) => (Status::Simpler, "a simpler form of it".to_string()),
        Ok(Pass::Skipped(reason)) => (Status::Skipped, reason),
        Err(reason) => (Status::Failed, reason),
    };
    Ok(Outcome::new(status, expected, got))
}
