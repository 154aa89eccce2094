//! The corpus of `tests/conformance`: each text is read, verified, printed, and read again.

use super::{syntax::PrintOptions, *};
use std::{
    fs,
    path::{Path, PathBuf},
};

fn conformance() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance")
}

/// Files of the folder and the folders below it with this ending, in order.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|each| each == ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The texts of programs, with their names.
fn programs() -> Vec<(String, String)> {
    files(&conformance().join("hlo"), "hlo")
        .iter()
        .filter(|path| !path.iter().any(|part| part == "hostile"))
        .map(|path| (path.display().to_string(), fs::read_to_string(path).unwrap()))
        .collect()
}

/// The field `hlo` of each row, with the name of the row.
fn rows(file: &str) -> Vec<(String, String)> {
    fs::read_to_string(conformance().join(file))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter_map(|row| Some((row["name"].to_string(), row["hlo"].as_str()?.to_owned())))
        .collect()
}

pub(super) fn corpus() -> Vec<(String, String)> {
    let mut all = programs();
    assert_eq!(all.len(), 147);
    all.extend(rows("hlo/ops.jsonl"));
    assert_eq!(all.len(), 147 + 543);
    all.extend(rows("xla/indexing_analysis.jsonl"));
    assert!(147 + 543 + 80 < all.len());
    all
}

/// Reads and verifies a text that must have no errors.
fn module(name: &str, text: &str) -> Module {
    let (source, module, diagnostics) = read(name, text.as_bytes().to_vec());
    module.unwrap_or_else(|| panic!("{}", source.render_all(&diagnostics)))
}

/// The same module with spans that do not depend on the text.
fn without_spans(mut module: Module) -> Module {
    for computation in &mut module.computations {
        computation.span = Default::default();
        for instruction in &mut computation.instructions {
            instruction.span = Default::default();
        }
    }
    module
}

#[test]
fn corpus_reads_back_from_its_printed_form() {
    for (name, text) in corpus() {
        let first = module(&name, &text);
        for percent in [false, true] {
            let printed = syntax::print(&first, PrintOptions { percent, metadata: true });
            let second = module(&name, &printed);
            assert_eq!(syntax::print(&second, PrintOptions { percent, metadata: true }), printed);
            assert_eq!(without_spans(second), without_spans(first.clone()), "{name}");
        }
    }
}

/// A line without the value of a constant, which XLA prints with other digits.
fn comparable(line: &str) -> &str {
    let end = line.find(" constant(").map_or(line.len(), |at| at + 1);
    &line[..end]
}

/// What is read is complete: the printed form is the text of XLA, constants apart.
#[test]
fn corpus_prints_as_xla_prints_it() {
    let mut all = programs();
    all.extend(rows("hlo/ops.jsonl"));
    for (name, text) in all {
        let options = PrintOptions { percent: text.contains('%'), metadata: true };
        let printed = syntax::print(&module(&name, &text), options);
        // The first line has its attributes in another order.
        let lines = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| !line.is_empty()).skip(1);
            lines.map(|line| comparable(line).to_owned()).collect()
        };
        for (found, expected) in lines(&printed).iter().zip(&lines(&text)) {
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(lines(&printed).len(), lines(&text).len(), "{name}");
    }
}

/// Every hostile file is answered with a located error, or accepted where XLA accepts it. The
/// messages are printed beside what they must be about, for a reader to compare.
#[test]
fn hostile_files_have_located_errors() {
    let folder = conformance().join("hlo/hostile");
    let expected = fs::read_to_string(folder.join("expected.json")).unwrap();
    let expected: serde_json::Value = serde_json::from_str(&expected).unwrap();
    let expected = expected.as_object().unwrap();
    assert_eq!(expected.len(), 49);
    for (file, case) in expected {
        let (source, module, diagnostics) = read(file, fs::read(folder.join(file)).unwrap());
        println!("expected: {}", case["error"].as_str().unwrap());
        for diagnostic in &diagnostics {
            println!("   found: {}", source.render(diagnostic).lines().next().unwrap());
        }
        assert_eq!(module.is_none(), !diagnostics.is_empty());
        match case["xla_rejects"].as_bool().unwrap() {
            true => assert!(module.is_none(), "{file} is accepted"),
            false => println!("   XLA accepts it; found: {}", module.is_some()),
        }
    }
}
