//! Conformance files: compares the documented behavior of languages and analyses with this implementation.
//!
//! A file is JSON Lines, one case per line. What kind of case a row is follows from its
//! content alone, so that any file can be run wherever it lies; the README beside a folder
//! of such files says which fields its rows have. [`run`] runs files, [`Report`] prints
//! what came out.
//!
//! The cases of one folder are one module with a table of `Kind`s; `SUITES` lists the
//! tables. A kind is a predicate on rows and a function that runs one. To add a folder, add
//! a module and its table.
//!
//! Rows may be hostile: a field of a wrong type, a panic, and a case that takes too long
//! each fail that case and no other.

mod axon;
mod hlo;
mod report;
mod row;
mod schedule;
mod sizes;
mod tc;
mod tml;
mod xla;

pub use report::Report;

use row::{Mismatch, object};
use serde_json::Value;
use std::{
    borrow::Cow,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tc_backends::runtime::Tensor;
use tc_dialects::files;

/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 1 << 28;

/// How cases are run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Cases that run at a time.
    pub jobs: usize,
    /// How long one case may take.
    pub time_limit: Duration,
    /// Iteration points that a case which chooses its own sizes may take.
    pub work_limit: u64,
}

impl Default for Options {
    /// One job per core, two minutes, and 2^14 points.
    fn default() -> Self {
        let jobs = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Self { jobs, time_limit: Duration::from_secs(120), work_limit: 1 << 14 }
    }
}

/// What became of a case.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// The case holds.
    Passed,
    /// The case leaves the decision to the implementation, and ours is another one than the
    /// case spells. Counted as passed.
    Documented,
    /// What was found means the same as what the case says, in other words of the same length.
    /// Counted as passed.
    Spelling,
    /// What was found means the same as what the case says, in fewer words. Counted as passed.
    Simpler,
    /// The case does not hold, or could not be run.
    Failed,
    /// The case cannot be run, for the reason that its outcome gives.
    Skipped,
}

impl Status {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Documented => "passed (documented)",
            Self::Spelling => "passed (spelling)",
            Self::Simpler => "passed (simpler)",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// The status of a case, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What became of it.
    pub status: Status,
    /// What the case says.
    pub expected: String,
    /// What was found; of a skipped case the reason.
    pub got: String,
}

impl Outcome {
    fn new(status: Status, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self { status, expected: expected.into(), got: got.into() }
    }
}

impl From<Mismatch> for Outcome {
    fn from(mismatch: Mismatch) -> Self {
        Self::new(Status::Failed, mismatch.expected, mismatch.got)
    }
}

/// A case that has been run.
#[derive(Clone, Debug)]
pub struct Case {
    /// The file, as it was named or found.
    pub file: String,
    /// The line in it, from 1.
    pub line: usize,
    /// The name of the case; `line N` if it has none.
    pub name: String,
    /// The kind, such as `tc syntax`.
    pub kind: &'static str,
    /// The opcodes of an HLO program.
    pub opcodes: Vec<String>,
    /// What came out.
    pub outcome: Outcome,
}

/// A kind of case.
struct Kind {
    /// Its name in reports.
    name: &'static str,
    /// Whether a row is of this kind.
    matches: fn(&Value) -> bool,
    /// Runs a row.
    run: fn(&Value, &Options) -> Result<Outcome, Mismatch>,
}

/// The kinds of every folder. The first that matches a row runs it.
const SUITES: &[&[Kind]] = &[tc::KINDS, axon::KINDS, hlo::KINDS, tml::KINDS, xla::KINDS];

/// Kinds of what is not a case.
const FILE: &str = "file";
const MALFORMED: &str = "malformed";
const UNKNOWN: &str = "unknown";

/// Runs conformance files, and those in folders (at any depth `*.jsonl`, `case.json` of programs
/// that have a folder of their own, and `expected.json` of malformed programs); `-` is the standard
/// input. Whatever cannot be read is a failed case of the report.
pub fn run(paths: &[PathBuf], options: &Options) -> Report {
    let mut cases = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            let read = io::stdin().take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
            read_cases("<stdin>", read.map(|_| bytes), &mut cases);
            continue;
        }
        match files_of(path) {
            Ok(files) if files.is_empty() => {
                cases.push(not_run(path.display(), 1, FILE, "conformance files (*.jsonl)", "none"));
            }
            Ok(files) => {
                for file in files {
                    read_cases(&file.display().to_string(), read(&file), &mut cases);
                }
            }
            Err(error) => {
                cases.push(not_run(
                    path.display(),
                    1,
                    FILE,
                    "a file or folder",
                    &error.to_string(),
                ));
            }
        }
    }
    let shared = Arc::new(options.clone());
    let mut tasks: Vec<Box<dyn FnOnce() -> Outcome + Send>> = Vec::new();
    let mut places = Vec::new();
    for (place, case) in cases.iter_mut().enumerate() {
        if let Some((kind, row)) = case.pending.take() {
            let options = Arc::clone(&shared);
            tasks.push(Box::new(move || (kind.run)(&row, &options).unwrap_or_else(Outcome::from)));
            places.push(place);
        }
    }
    let results = schedule::run_all(tasks, options.jobs, options.time_limit);
    for (place, result) in places.into_iter().zip(results) {
        cases[place].case.outcome =
            result.unwrap_or_else(|what| Outcome::new(Status::Failed, "a result", what));
    }
    Report { cases: cases.into_iter().map(|pending| pending.case).collect() }
}

/// Compares the results of the HLO program of a text with those in its folder, as its `case.json` describes
/// them: exactly, or within a bound that follows from the number of operations.
///
/// # Errors
/// What is expected and what was found instead.
pub fn check_hlo_results(
    folder: &Path,
    text: Vec<u8>,
    inputs: &[Tensor],
    results: &[Cow<Tensor>],
) -> Result<(), String> {
    hlo::check(folder, text, inputs, results)
}

/// A case and, until it has been run, how to.
struct Pending {
    case: Case,
    pending: Option<(&'static Kind, Value)>,
}

fn not_run(
    file: impl ToString,
    line: usize,
    kind: &'static str,
    expected: &str,
    got: &str,
) -> Pending {
    let case = Case {
        file: file.to_string(),
        line,
        name: format!("line {line}"),
        kind,
        opcodes: Vec::new(),
        outcome: Outcome::new(Status::Failed, expected, got),
    };
    Pending { case, pending: None }
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    files::open(file)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The file itself, or the conformance files in a folder, sorted by path. Links to folders
/// are not followed, so that a walk ends.
fn files_of(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut found = Vec::new();
    let mut folders = vec![path.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "jsonl")
                || path.file_name().is_some_and(|name| {
                    [hlo::CASE_FILE, hlo::HOSTILE_FILE].iter().any(|file| name == *file)
                })
            {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Adds a case for each row of a file.
fn read_cases(file: &str, bytes: io::Result<Vec<u8>>, cases: &mut Vec<Pending>) {
    let bytes = match bytes {
        Ok(bytes) if MAX_FILE_BYTES < bytes.len() as u64 => {
            let expected = format!("at most {MAX_FILE_BYTES} bytes");
            return cases.push(not_run(file, 1, FILE, &expected, "more"));
        }
        Ok(bytes) => bytes,
        Err(error) => {
            return cases.push(not_run(file, 1, FILE, "a readable file", &error.to_string()));
        }
    };
    for (line_number, row) in rows_of(file, &bytes) {
        let row = match row {
            Ok(row) => row,
            Err(got) => {
                cases.push(not_run(file, line_number, MALFORMED, "a JSON object", &got));
                continue;
            }
        };
        let Ok(fields) = object(&row) else {
            let got = row::describe(&row);
            cases.push(not_run(file, line_number, MALFORMED, "a JSON object", &got));
            continue;
        };
        let kind = SUITES.iter().copied().flatten().find(|kind| (kind.matches)(&row));
        let opcodes = hlo::opcodes(&row);
        let mut pending = match kind {
            Some(kind) => Pending {
                pending: Some((kind, row.clone())),
                ..not_run(file, line_number, kind.name, "a result", "none")
            },
            None => {
                let got = match row.get("kind").and_then(Value::as_str) {
                    Some(kind) => format!("kind '{kind}'"),
                    None => {
                        let keys: Vec<_> = fields.keys().map(String::as_str).collect();
                        format!("fields {}", keys.join(", "))
                    }
                };
                not_run(file, line_number, UNKNOWN, "a row of a known kind", &got)
            }
        };
        if let Some(name) = row.get("name").and_then(Value::as_str) {
            pending.case.name = name.to_string();
        }
        pending.case.opcodes = opcodes;
        cases.push(pending);
    }
}

/// The rows of a file with their lines, or why one cannot be read. A row of an HLO program or a
/// malformed one is about files beside it, and gets the path of their folder.
fn rows_of(file: &str, bytes: &[u8]) -> Vec<(usize, Result<Value, String>)> {
    let path = Path::new(file);
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let folder: Value = path.parent().unwrap_or(Path::new("")).display().to_string().into();
    let with_folder = |row: Value| match row {
        Value::Object(mut fields) => {
            fields.insert(hlo::FOLDER.to_string(), folder.clone());
            Value::Object(fields)
        }
        other => other,
    };
    match name {
        // One row on many lines.
        hlo::CASE_FILE => vec![(1, parse(bytes).map(with_folder))],
        hlo::HOSTILE_FILE => match parse(bytes) {
            Ok(Value::Object(programs)) => {
                let text = String::from_utf8_lossy(bytes);
                let row = |(name, mut row): (String, Value)| {
                    if let Some(fields) = row.as_object_mut() {
                        fields.insert("name".to_owned(), name.as_str().into());
                    }
                    let quoted = format!("\"{name}\"");
                    let line = text.lines().position(|line| line.contains(&quoted));
                    (line.map_or(1, |line| line + 1), Ok(with_folder(row)))
                };
                programs.into_iter().map(row).collect()
            }
            other => vec![(1, other)],
        },
        _ => (1..)
            .zip(bytes.split(|&byte| byte == b'\n'))
            .filter(|(_, line)| !line.trim_ascii().is_empty())
            .map(|(number, line)| (number, parse(line)))
            .collect(),
    }
}

fn parse(bytes: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(bytes).map_err(|error| {
        // The line that the error gives is the one in the row, always 1.
        let text = error.to_string();
        let text = text.split(" at line ").next().unwrap_or_default();
        format!("{text} in column {}", error.column())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statuses(text: &str) -> Vec<(usize, String, &'static str, Option<Outcome>)> {
        let mut cases = Vec::new();
        read_cases("f.jsonl", Ok(text.as_bytes().to_vec()), &mut cases);
        let read = |it: Pending| {
            let ready = it.pending.is_none().then_some(it.case.outcome);
            (it.case.line, it.case.name, it.case.kind, ready)
        };
        cases.into_iter().map(read).collect()
    }

    #[test]
    fn rows_are_told_apart_by_content() {
        let text = r#"{"name": "a", "tc": "", "expected": "accept"}
{"name": "b", "tc": "", "expected": {"error": null}}

{"name": "c", "tc": "", "sizes": []}
{"name": "d", "tc": "", "sizes": {}}
{"name": "e", "kind": "claim"}
{"name": "f", "kind": "simplify"}"#;
        let found: Vec<_> = statuses(text).into_iter().map(|it| (it.0, it.1, it.2)).collect();
        let expected = [
            (1, "a", "tc syntax"),
            (2, "b", "tc ranges"),
            (4, "c", "tc kernels"),
            (5, "d", "tc eval"),
            (6, "e", "tc claim"),
            (7, "f", "xla simplify"),
        ];
        assert_eq!(found, expected.map(|(line, name, kind)| (line, name.to_string(), kind)));
    }

    #[test]
    fn what_is_no_case_fails() {
        let text = "{\n[]\n{\"kind\": \"rescale\", \"name\": \"x\"}\n{\"tc\": 1, \"a\": 2}\n\u{0}";
        let found: Vec<_> = statuses(text)
            .into_iter()
            .map(|(line, name, kind, outcome)| {
                let outcome = outcome.expect("nothing to run");
                format!("{line} {name} {kind}: {}, {}", outcome.expected, outcome.got)
            })
            .collect();
        assert_eq!(
            found,
            [
                "1 line 1 malformed: a JSON object, EOF while parsing an object in column 1",
                "2 line 2 malformed: a JSON object, an array",
                "3 x unknown: a row of a known kind, kind 'rescale'",
                "4 line 4 unknown: a row of a known kind, fields tc, a",
                "5 line 5 malformed: a JSON object, expected value in column 1",
            ]
        );
    }

    #[test]
    fn a_missing_file_is_a_failure() {
        let report = run(&[PathBuf::from("no/such/file")], &Options::default());
        assert_eq!(report.cases.len(), 1);
        assert_eq!(report.cases[0].outcome.status, Status::Failed);
        assert!(!report.is_success());
    }
}
