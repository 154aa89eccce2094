//! What is said about programs that are wrong: `errors.txt` has programs, and after each the error and
//! the places that it follows from.
//!
//! `UPDATE_EXPECT=1` writes what is said now.

use super::*;
use crate::tc::syntax::{Diagnostic, Span};
use std::path::Path;

/// The errors of a program in which `hole` stands for anything.
fn diagnostics(text: &str) -> Vec<Diagnostic> {
    let (program, errors) = syntax::parse_program(&SourceFile::new("test.axon", text));
    assert_eq!(errors, [], "{text}");
    infer(&program, &Options { globals: vec!["hole".to_string()], explain: false }).diagnostics
}

/// Whether a note is a place that an error follows from, and not an explanation.
fn is_place(note: &str) -> bool {
    !note.starts_with('\'') && !note.contains("try ")
}

/// What is left of a program when a place of an error asks for nothing any more.
fn without(text: &str, span: Span, place: &str) -> String {
    let (before, after) = (&text[..span.start as usize], &text[span.end as usize..]);
    let here = &text[span.start as usize..span.end as usize];
    let is = |what: &str| place.starts_with(what);
    if is("call of") || is("operands of") || is("in the call of") {
        format!("{before}hole{after}")
    } else if is("annotation of") {
        format!("{before}anything{after}")
    } else {
        format!("{before}hole(({here})){after}")
    }
}

/// Whether a text has a name that no program has, or that no note explains.
fn has_internal_name(error: &Diagnostic) -> bool {
    let texts = error.notes.iter().map(|(_, text)| text).chain([&error.message]);
    texts.into_iter().any(|text| text.contains("d0000") || text.contains("s0000"))
}

#[test]
fn errors_say_which_places_contradict_each_other() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/axon/tests/errors.txt");
    let expected = std::fs::read_to_string(&path).expect("the table");
    let mut found = String::new();
    for text in expected.lines().filter_map(|line| line.strip_prefix("== ")) {
        let source = SourceFile::new("test.axon", text);
        let errors = diagnostics(text);
        let [error] = &errors[..] else { panic!("one error, not {errors:?}: {text}") };
        assert!(!has_internal_name(error), "{error:?}");
        let main = [(error.span, error.message.clone())];
        found += &format!("== {text}\n");
        for (span, line) in main.iter().chain(&error.notes) {
            found += &format!("{}: {line}\n", source.line_col(span.start).1);
        }
        // No member of the set can be left out.
        let places = error.notes.iter().filter(|(_, note)| is_place(note));
        for (span, place) in main.iter().chain(places) {
            let rest = without(text, *span, place);
            assert_eq!(diagnostics(&rest), [], "{text}\nwithout {place}:\n{rest}");
        }
    }
    match std::env::var_os("UPDATE_EXPECT") {
        Some(_) => std::fs::write(&path, found).expect("the table is written"),
        // The first program that differs.
        None => found.split("== ").zip(expected.split("== ")).for_each(|(a, b)| assert_eq!(a, b)),
    }
}
