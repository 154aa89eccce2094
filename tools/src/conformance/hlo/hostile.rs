//! Malformed texts: each is rejected with a located error, or accepted if XLA accepts it too.

use super::{
    super::{
        Options, Outcome, Status,
        row::{self, Mismatch},
    },
    FOLDER, field,
};
use serde_json::Value;
use std::path::Path;
use tc_dialects::{
    files::{self, MAX_SOURCE_BYTES},
    hlo,
};

pub(super) fn matches(row: &Value) -> bool {
    ["error", "xla_rejects", FOLDER].iter().all(|name| row.get(name).is_some())
}

/// Reads a text. Whether the error is about what the row says is for a reader, who gets both.
pub(super) fn run(case: &Value, _options: &Options) -> Result<Outcome, Mismatch> {
    let name = row::string(field(case, "name")?)?;
    let about = row::string(field(case, "error")?)?;
    let path = Path::new(row::string(field(case, FOLDER)?)?).join(name);
    let bytes = files::read(&path, MAX_SOURCE_BYTES)
        .map_err(|error| Mismatch::new(format!("the text {name}"), error.to_string()))?;
    let (source, module, diagnostics) = hlo::read(name, bytes);
    let expected = format!("an error about: {about}");
    match (module, diagnostics.first()) {
        (Some(_), _) if row::flag(case, "xla_rejects")? => Err(Mismatch::new(expected, "a module")),
        (Some(_), _) => Ok(Outcome::new(Status::Passed, expected, "a module, as XLA reads it")),
        (None, Some(error)) => {
            let (line, column) = source.line_col(error.span.start);
            let got = format!("{line}:{column}: {}", error.message);
            Ok(Outcome::new(Status::Passed, expected, got))
        }
        (None, None) => Err(Mismatch::new(expected, "no module and no error")),
    }
}
