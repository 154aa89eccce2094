//! Runs the conformance files of the repository, and `tc-conformance` as its users do.

use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tc_tools::conformance::{Options, Status, run};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/conformance").join(name)
}

#[test]
fn tc() {
    let report = run(&[folder("tc")], &Options::default());
    if !report.is_success() {
        report.write_text(&mut std::io::stderr(), false).expect("standard error takes text");
        panic!("conformance cases of tests/conformance/tc fail");
    }
    let kinds = ["tc syntax", "tc ranges", "tc kernels", "tc eval"];
    for kind in kinds {
        let passed = |it: &&tc_tools::conformance::Case| {
            it.kind == kind && it.outcome.status == Status::Passed
        };
        assert!(10 < report.cases.iter().filter(passed).count(), "{kind}");
    }
}

#[test]
fn xla() {
    let report = run(&[folder("xla")], &Options::default());
    if !report.is_success() {
        report.write_text(&mut std::io::stderr(), false).expect("standard error takes text");
        panic!("conformance cases of tests/conformance/xla fail");
    }
    let skipped = report.cases.iter().filter(|it| it.outcome.status == Status::Skipped).count();
    assert_eq!((report.cases.len(), skipped), (283 + 89 + 160, 3));
}

#[test]
fn hlo() {
    let report = run(&[folder("hlo")], &Options::default());
    if !report.is_success() {
        report.write_text(&mut std::io::stderr(), false).expect("standard error takes text");
        panic!("conformance cases of tests/conformance/hlo fail");
    }
    let count = |kind: &str| report.cases.iter().filter(|it| it.kind == kind).count();
    assert_eq!(count("hlo program") + count("hlo optional"), 75);
    assert_eq!(count("hlo op"), 543);
    assert_eq!(count("hlo hostile"), 49);
}

#[test]
fn axon() {
    let report = run(&[folder("axon")], &Options::default());
    if !report.is_success() {
        report.write_text(&mut std::io::stderr(), false).expect("standard error takes text");
        panic!("conformance cases of tests/conformance/axon fail");
    }
    let count = |kind: &str| report.cases.iter().filter(|it| it.kind == kind).count();
    assert_eq!([count("axon solve"), count("axon program")], [101, 120]);
}

#[test]
fn tml() {
    let report = run(&[folder("tml")], &Options::default());
    if !report.is_success() {
        report.write_text(&mut std::io::stderr(), false).expect("standard error takes text");
        panic!("conformance cases of tests/conformance/tml fail");
    }
    let count = |kind: &str| report.cases.iter().filter(|it| it.kind == kind).count();
    assert_eq!([count("tml typecheck"), count("tml eval"), count("tml round")], [44, 24, 7]);
}

fn tool(arguments: &[&str], rows: &str) -> Output {
    let name = format!(
        "{:x}.jsonl",
        rows.bytes()
            .fold(7u64, |hash, byte| { hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte) })
    );
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&file, rows).expect("the folder for tests can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tc-conformance"));
    command.args(arguments).arg(&file).output().expect("the tool runs")
}

const GOOD: &str =
    r#"{"name": "good", "tc": "def f(float(N) A) -> (O) { O(i) = A(i) }", "expected": "accept"}"#;
const BAD: &str =
    r#"{"name": "bad", "tc": "def f(float(N) A) -> (O) { O(i) = B(i) }", "expected": "accept"}"#;
const CLAIM: &str = r#"{"name": "fast", "kind": "claim", "text": "fast", "where": "here", "verified_in_text": true}"#;

#[test]
fn the_last_line_counts() {
    let output = tool(&[], &format!("{GOOD}\n{CLAIM}\n"));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().last(), Some("1 passed, 0 failed, 1 skipped"));
    assert_eq!(output.status.code(), Some(0));
    let output = tool(&[], &format!("{GOOD}\n{BAD}\nnot JSON\n"));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().last(), Some("1 passed, 2 failed, 0 skipped"));
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains(
        ":2:1: error: tc syntax 'bad': expected accept, got reject at sema: undeclared ("
    ));
    assert!(text.contains(":3:1: error: malformed 'line 3': expected a JSON object, got "));
    assert_eq!(tool(&["--no-such-option"], GOOD).status.code(), Some(2));
}

#[test]
fn json_has_one_object_per_case() {
    let output = tool(&["--json"], &format!("{GOOD}\n{BAD}\n{CLAIM}\n"));
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found: Vec<_> =
        rows.iter().map(|row| [&row["name"], &row["kind"], &row["status"]]).collect();
    assert_eq!(
        found,
        [
            ["good", "tc syntax", "passed"],
            ["bad", "tc syntax", "failed"],
            ["fast", "tc claim", "skipped"]
        ]
    );
    for row in &rows {
        let keys: Vec<_> = row.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["file", "name", "kind", "status", "expected", "got"]);
    }
    let summary = String::from_utf8(output.stderr).unwrap();
    assert_eq!(summary.lines().last(), Some("1 passed, 1 failed, 1 skipped"));
}
