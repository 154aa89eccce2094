//! Reports of a run, for people and for programs.

use super::{Case, Status};
use serde_json::json;
use std::{
    collections::BTreeMap,
    io::{self, Write},
};

/// Texts of a failure are cut to this many characters in the report for people.
const MAX_SHOWN: usize = 400;

/// The cases of a run, in the order of the files.
#[derive(Clone, Debug)]
pub struct Report {
    /// Every case.
    pub cases: Vec<Case>,
}

impl Report {
    /// Whether no case failed.
    pub fn is_success(&self) -> bool {
        self.count(None, Status::Failed) == 0
    }

    /// The number of cases of a kind, or of all, with a status.
    fn count(&self, kind: Option<&str>, status: Status) -> usize {
        let counted = |case: &&Case| {
            kind.is_none_or(|kind| kind == case.kind) && case.outcome.status == status
        };
        self.cases.iter().filter(counted).count()
    }

    /// The cases that passed, in whatever way.
    fn passed(&self, kind: Option<&str>) -> usize {
        [Status::Passed, Status::Documented, Status::Spelling, Status::Simpler]
            .into_iter()
            .map(|status| self.count(kind, status))
            .sum()
    }

    /// The passes of cases that compare forms of maps: how many are as expected, and in which
    /// way the others are not.
    fn write_shares(&self, out: &mut dyn Write) -> io::Result<()> {
        let [spelling, simpler] =
            [Status::Spelling, Status::Simpler].map(|status| self.count(None, status));
        let passed = self.passed(None);
        if spelling + simpler == 0 {
            return Ok(());
        }
        let exact = passed - spelling - simpler;
        let share = |count: usize| 100.0 * count as f64 / passed as f64;
        writeln!(
            out,
            "of {passed} passed: {exact} exact ({:.1}%), {spelling} another spelling ({:.1}%), \
             {simpler} simpler than expected ({:.1}%)",
            share(exact),
            share(spelling),
            share(simpler)
        )
    }

    /// Of each opcode, the cases of single operations and of programs that have it.
    fn write_opcodes(&self, out: &mut dyn Write) -> io::Result<()> {
        // Operations passed and failed, programs passed and failed.
        let mut counts: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
        for case in &self.cases {
            let first = if case.kind == "hlo op" { 0 } else { 2 };
            let place = match case.outcome.status {
                Status::Skipped => continue,
                Status::Failed => first + 1,
                _ => first,
            };
            for opcode in &case.opcodes {
                counts.entry(opcode).or_default()[place] += 1;
            }
        }
        if counts.is_empty() {
            return Ok(());
        }
        let width = counts.keys().map(|opcode| opcode.len()).max().unwrap_or(0);
        let width = width.max("opcode".len());
        writeln!(out, "{:width$}  operations: passed  failed  programs: passed  failed", "opcode")?;
        for (opcode, [passed, failed, programs_passed, programs_failed]) in counts {
            writeln!(
                out,
                "{opcode:width$}  {passed:>18}  {failed:>6}  {programs_passed:>16}  \
                 {programs_failed:>6}"
            )?;
        }
        writeln!(out)
    }

    /// Writes one line per failed or skipped case, a table per opcode and one per kind, and the
    /// counts. `verbose` adds a line per case that passed.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_text(&self, out: &mut dyn Write, verbose: bool) -> io::Result<()> {
        for case in &self.cases {
            let Case { file, line, name, kind, outcome, .. } = case;
            let (expected, got) = (one_line(&outcome.expected), one_line(&outcome.got));
            let name = one_line(name);
            match outcome.status {
                Status::Failed => writeln!(
                    out,
                    "{file}:{line}:1: error: {kind} '{name}': expected {expected}, got {got}"
                )?,
                Status::Skipped => {
                    writeln!(out, "{file}:{line}:1: remark: {kind} '{name}' skipped: {got}")?;
                }
                passed if verbose => writeln!(
                    out,
                    "{file}:{line}:1: remark: {kind} '{name}' {}: expected {expected}, got {got}",
                    passed.name()
                )?,
                Status::Passed | Status::Documented | Status::Spelling | Status::Simpler => {}
            }
        }
        self.write_opcodes(out)?;
        let mut kinds: Vec<&str> = Vec::new();
        for case in &self.cases {
            if !kinds.contains(&case.kind) {
                kinds.push(case.kind);
            }
        }
        let width = kinds.iter().map(|kind| kind.len()).max().unwrap_or(0).max("total".len());
        writeln!(
            out,
            "{:width$}  passed  (documented)  (spelling)  (simpler)  failed  skipped",
            "kind"
        )?;
        for kind in kinds.iter().map(|kind| Some(*kind)).chain([None]) {
            writeln!(
                out,
                "{:width$}  {:>6}  {:>12}  {:>10}  {:>9}  {:>6}  {:>7}",
                kind.unwrap_or("total"),
                self.passed(kind),
                self.count(kind, Status::Documented),
                self.count(kind, Status::Spelling),
                self.count(kind, Status::Simpler),
                self.count(kind, Status::Failed),
                self.count(kind, Status::Skipped),
            )?;
        }
        self.write_shares(out)?;
        writeln!(
            out,
            "{} passed, {} failed, {} skipped",
            self.passed(None),
            self.count(None, Status::Failed),
            self.count(None, Status::Skipped)
        )
    }

    /// Writes one JSON object per case and line.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        for case in &self.cases {
            let row = json!({
                "file": case.file,
                "name": case.name,
                "kind": case.kind,
                "status": case.outcome.status.name(),
                "expected": case.outcome.expected,
                "got": case.outcome.got,
            });
            writeln!(out, "{row}")?;
        }
        Ok(())
    }
}

/// A text without line breaks, cut to a readable length.
fn one_line(text: &str) -> String {
    let mut characters = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut shown: String = characters.by_ref().take(MAX_SHOWN).collect();
    if characters.next().is_some() {
        shown += "..";
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::Outcome;

    #[test]
    fn both_forms() {
        let case = |name: &str, kind, status| Case {
            file: "f.jsonl".into(),
            line: 3,
            name: name.into(),
            kind,
            opcodes: Vec::new(),
            outcome: Outcome::new(status, "1\n2", "x".repeat(500)),
        };
        let report = Report {
            cases: vec![
                case("a", "tc syntax", Status::Passed),
                case("b", "tc syntax", Status::Documented),
                case("c", "tc eval", Status::Failed),
                case("d", "tc claim", Status::Skipped),
                case("e", "xla compose", Status::Spelling),
                case("f", "xla compose", Status::Simpler),
            ],
        };
        assert!(!report.is_success());
        let mut text = Vec::new();
        report.write_text(&mut text, false).unwrap();
        let x = "x".repeat(400);
        assert_eq!(
            String::from_utf8(text).unwrap(),
            format!(
                "f.jsonl:3:1: error: tc eval 'c': expected 1 2, got {x}..\n\
                 f.jsonl:3:1: remark: tc claim 'd' skipped: {x}..\n\
                 kind         passed  (documented)  (spelling)  (simpler)  failed  skipped\n\
                 tc syntax         2             1           0          0       0        0\n\
                 tc eval           0             0           0          0       1        0\n\
                 tc claim          0             0           0          0       0        1\n\
                 xla compose       2             0           1          1       0        0\n\
                 total             4             1           1          1       1        1\n\
                 of 4 passed: 2 exact (50.0%), 1 another spelling (25.0%), 1 simpler than \
                 expected (25.0%)\n\
                 4 passed, 1 failed, 1 skipped\n"
            )
        );
        let mut json = Vec::new();
        report.write_json(&mut json).unwrap();
        let json = String::from_utf8(json).unwrap();
        let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
        let expected = json!({
            "file": "f.jsonl", "name": "a", "kind": "tc syntax", "status": "passed",
            "expected": "1\n2", "got": "x".repeat(500),
        });
        assert_eq!(first, expected);
        assert_eq!(json.lines().count(), 6);
    }
    #[test]
    fn cases_that_passed_and_opcodes() {
        let case = |name: &str, kind, status, opcodes: &[&str]| Case {
            file: "f.jsonl".into(),
            line: 1,
            name: name.into(),
            kind,
            opcodes: opcodes.iter().map(|it| it.to_string()).collect(),
            outcome: Outcome::new(status, "this", "that"),
        };
        let report = Report {
            cases: vec![
                case("a", "hlo op", Status::Passed, &["add"]),
                case("b", "hlo op", Status::Failed, &["fft"]),
                case("c", "hlo program", Status::Passed, &["add", "parameter"]),
                case("d", "hlo program", Status::Skipped, &["add"]),
            ],
        };
        let mut text = Vec::new();
        report.write_text(&mut text, true).unwrap();
        let text = String::from_utf8(text).unwrap();
        let expected = "\
            f.jsonl:1:1: remark: hlo op 'a' passed: expected this, got that\n\
            f.jsonl:1:1: error: hlo op 'b': expected this, got that\n\
            f.jsonl:1:1: remark: hlo program 'c' passed: expected this, got that\n\
            f.jsonl:1:1: remark: hlo program 'd' skipped: that\n\
            opcode     operations: passed  failed  programs: passed  failed\n\
            add                         1       0                 1       0\n\
            fft                         0       1                 0       0\n\
            parameter                   0       0                 1       0\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.ends_with("2 passed, 1 failed, 1 skipped\n"), "{text}");
    }
}
