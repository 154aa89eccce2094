//! Statements about performance, which only a reader can judge.

use crate::conformance::{
    Options, Outcome, Status,
    row::{Mismatch, field, string},
};
use serde_json::Value;

pub(super) fn run(row: &Value, _options: &Options) -> Result<Outcome, Mismatch> {
    let text = field(row, "text", string)?;
    field(row, "where", string)?;
    Ok(Outcome::new(Status::Skipped, text, "a performance claim, for reading"))
}
