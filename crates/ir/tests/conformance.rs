//! Runs `tests/conformance/xla/simplify.jsonl`: behaviour of the index algebra as XLA documents and
//! tests it. `tc-conformance` runs any file of such cases.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

#[path = "../../../tools/src/conformance/xla/checks.rs"]
mod checks;

use checks::{CHECKS, Pass, find};

#[test]
fn xla_simplify_cases() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/xla/simplify.jsonl");
    let lines = std::fs::read_to_string(&path).expect("the cases are in the repository");
    let mut failures = Vec::new();
    let mut unseen: Vec<&str> = CHECKS.iter().map(|check| check.kind).collect();
    let (mut exact, mut other) = (BTreeMap::new(), Vec::new());
    for line in lines.lines() {
        let row: Value = serde_json::from_str(line).expect("a line is a JSON object");
        let name = row["name"].as_str().expect("a case has a name");
        let check = find(&row).expect("a check of every kind");
        unseen.retain(|kind| *kind != check.kind);
        match (check.run)(&row) {
            Ok(Pass::Exact) => *exact.entry(format!("{:?}", check.topic)).or_insert(0) += 1,
            Ok(Pass::Skipped(_)) if check.kind == "simplify_disputed" => {}
            Ok(pass) => other.push(format!("{name}: {pass:?}")),
            Err(error) => failures.push(format!("{} {name}: {error}", check.kind)),
        }
    }
    println!("exact: {exact:?}, otherwise: {other:#?}");
    assert!(failures.is_empty(), "{} cases:\n{}", failures.len(), failures.join("\n"));
    assert!(unseen.is_empty(), "no case of {unseen:?}");
}
