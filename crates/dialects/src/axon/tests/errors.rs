//! What is said about programs that are wrong: `errors.txt` has programs, and after each the error and
//! the places that it follows from.
//!
//! `UPDATE_EXPECT=1` writes what is said now.

use super::programs::drawn;
use super::*;
use crate::text::{Diagnostic, Reason, Span};
use infer::{OriginInfo, What};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::HashSet;
use std::path::Path;
use tc_ir::shape::solve::Origin;

/// What is inferred about a program in which `hole` stands for anything, and some places ask for nothing.
fn without_origins(text: &str, left_out: HashSet<Origin>) -> Inferred {
    let (program, errors) = syntax::parse_program(&SourceFile::new("test.axon", text));
    assert_eq!(errors, [], "{text}");
    let options = Options { globals: vec!["hole".to_string()], ..Options::default() };
    infer::infer_without(&program, &options, left_out)
}

/// The errors of a program.
fn diagnostics(text: &str) -> Vec<Diagnostic> {
    without_origins(text, HashSet::new()).diagnostics
}

/// A place of an error, and what is said about it.
type Place = (Span, String);

/// Whether an origin is the place of an error.
fn is_at(origin: &OriginInfo, (span, place): &Place) -> bool {
    let what = match &origin.what {
        What::Use(name) => format!("call of '{name}'"),
        What::Pointwise(name) if place.starts_with("result") => format!("result of '{name}'"),
        _ => origin.describe(),
    };
    origin.span == *span && place.contains(&what)
}

/// Checks that the places of an error about shapes contradict each other, and no longer do without one of
/// them; if it lists all of them. Where less is known about operands, operations may mean something else, so
/// that there is a contradiction of another place.
fn check_places(text: &str, error: &Diagnostic) {
    let is_cut = error.notes.iter().any(|(_, note)| note.starts_with("and "));
    if error.reason != Reason::AxonShape || is_cut {
        return;
    }
    let main = (error.span, error.message.clone());
    let notes = error.notes.iter().filter(|(_, note)| is_place(note)).cloned();
    let places: Vec<Place> = [main].into_iter().chain(notes).collect();
    let origins = without_origins(text, HashSet::new()).inference.origins;
    let prelude = without_origins("", HashSet::new()).inference.origins.len();
    // A name asks for something at the places of what it stands for.
    let asks = |origin: &OriginInfo| !matches!(origin.what, What::Use(_));
    let is_member = |origin: &OriginInfo| places.iter().any(|place| is_at(origin, place));
    let kept = |left_out: Option<&Place>| {
        let is_left_out = |origin: &OriginInfo| match is_member(origin) {
            true => left_out.is_some_and(|place| is_at(origin, place)),
            false => asks(origin),
        };
        let origins = origins.iter().enumerate().skip(prelude);
        let left_out = origins.filter(|(_, origin)| is_left_out(origin));
        let left_out = left_out.map(|(number, _)| number as Origin).collect();
        without_origins(text, left_out).diagnostics
    };
    assert_ne!(kept(None), [], "{text}\nwith nothing but {places:?}");
    for place in &places {
        let mut others = kept(Some(place));
        others.retain(|other| other.span == error.span && other.message == error.message);
        assert_eq!(others, [], "{text}\nwithout {place:?}");
    }
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
    let is_call = is("call of") || is("in the call of") || place.contains(" takes ");
    if is_call || is("operands of") {
        format!("{before}hole{after}")
    } else if is("annotation of") {
        format!("{before}anything{after}")
    } else if is("definition of") {
        format!("{before}{here}{}", after.replacen(" = ", " = hole; _ = ", 1))
    } else {
        format!("{before}hole(({here})){after}")
    }
}

/// The names in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|name| !name.is_empty())
}

/// The names of sizes and shapes in an error: those in brackets, or beside `@`.
fn names_of_sizes(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let mut found = Vec::new();
    for (place, c) in text.char_indices() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let before = text[..place].chars().next_back().unwrap_or(' ');
        let starts = c.is_ascii_alphabetic() && !before.is_ascii_alphanumeric() && before != '_';
        let Some(name) = names(&text[place..]).next().filter(|_| starts) else { continue };
        let after = &text[place + name.len()..];
        let is_size = 0 < depth || before == '@' || after.starts_with('@');
        if is_size && !after.starts_with(" tensor") && name != "tensor" && name != "fn" {
            found.push(name);
        }
    }
    found
}

/// Checks that each name of a size is one of the program, or that a note explains it.
fn check_names(text: &str, error: &Diagnostic) {
    let types = ElementType::ALL.map(ElementType::name).into_iter();
    let classes = [Class::Number, Class::Integer, Class::Float].map(Class::name);
    let own: Vec<&str> = names(text).chain(types).chain(classes).collect();
    let texts = error.notes.iter().map(|(_, text)| text).chain([&error.message]);
    // A signature has names of its own.
    let texts = texts.filter(|text| !text.contains("' has the type "));
    for name in texts.flat_map(|text| names_of_sizes(text)) {
        let explained = format!("'{name}' is ");
        let is_explained = error.notes.iter().any(|(_, note)| note.starts_with(&explained));
        assert!(own.contains(&name) || is_explained, "'{name}' in {error:?}\n{text}");
    }
}

/// The same for programs that are drawn, the same ones each time.
#[test]
fn places_of_errors_contradict_each_other_and_none_can_be_left_out() {
    let cases = std::env::var("TC_RANDOM_PROGRAMS").ok().and_then(|text| text.parse().ok());
    let config =
        Config { cases: cases.unwrap_or(400), failure_persistence: None, ..Config::default() };
    let [wrong, open] = [0; 2].map(std::cell::Cell::new);
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
        .run(&drawn(7), |program| {
            let text = program.text(&[], false);
            if let [error] = &diagnostics(&text)[..] {
                wrong.set(wrong.get() + 1);
                match error.notes.iter().any(|(_, note)| note.contains("may not matter")) {
                    true => open.set(open.get() + 1),
                    false => check_places(&text, error),
                }
            }
            Ok(())
        })
        .unwrap();
    assert!(100 < wrong.get() && 100 * open.get() <= wrong.get(), "{open:?} of {wrong:?}");
}

/// The conformance programs that are wrong, and the pieces of programs that tests put together.
#[test]
fn errors_have_no_internal_names() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/axon");
    let mut wrong = 0;
    for file in ["programs.jsonl", "rules.jsonl", "inference.jsonl"] {
        let rows = std::fs::read_to_string(folder.join(file)).expect("the cases");
        for row in rows.lines() {
            let row: serde_json::Value = serde_json::from_str(row).expect("a case");
            let Some(text) = row["program"].as_str() else { continue };
            let globals = row["globals"].as_array().into_iter().flatten();
            let globals: Vec<String> =
                globals.filter_map(|name| Some(name.as_str()?.to_string())).collect();
            let (program, _) = syntax::parse_program(&SourceFile::new("test.axon", text));
            let errors = infer(&program, &Options { globals, ..Options::default() }).diagnostics;
            errors.iter().for_each(|error| check_names(text, error));
            wrong += usize::from(!errors.is_empty());
        }
    }
    assert!(15 < wrong);
}

/// What is said where sizes are given, or missing, when a program is run.
#[test]
fn errors_of_a_run_are_in_terms_of_the_program() {
    let lines = |text: &str, given: &[&str], parametric: bool| {
        let source = SourceFile::new("test.axon", text);
        let (program, _) = syntax::parse_program(&source);
        let mut inferred = infer(&program, &Options::default());
        let given: Vec<Given> = given.iter().filter_map(|text| Given::parse(text)).collect();
        let entry = inferred.definitions().pop();
        let refusal = match parametric {
            true => {
                let ir = tc_ir::Context::new();
                inferred.parametric(&program, entry.as_deref(), &given, &ir).err()
            }
            false => inferred.specialize(&program, entry.as_deref(), &given).err(),
        };
        let Some(Refusal::Program(errors)) = refusal else { return String::new() };
        errors.iter().for_each(|error| check_names(text, error));
        let notes = errors.iter().flat_map(|error| {
            [&error.message].into_iter().chain(error.notes.iter().map(|(_, note)| note))
        });
        notes.map(|line| format!("{line}\n")).collect()
    };
    for (text, given, expected) in RUNS {
        assert_eq!(lines(text, given, false), *expected, "{text}");
    }
    for (text, given, expected) in PARAMETRIC {
        assert_eq!(lines(text, given, true), *expected, "{text}");
    }
}

/// Programs, what is given for the last definition, and what is said about running it.
const RUNS: &[(&str, &[&str], &str)] = &[
    // A number whose shape nothing determines is a scalar.
    ("g = fn(x, i) { gather(x, i) }; f = fn(x : f32 [4,5]) { sum(g(x, 0)) };", &[], ""),
    (
        "h = fn(x, i) { sum(gather(x, i)) }; g = fn(x) { h(x, 0) }; f = fn(x : f32 s) { g(x) };",
        &["x=4x5"],
        "",
    ),
    (
        "g = fn(a, b) { slice(concat(a, b), start=35, size=1) }; f = fn(x : f32 [k], y) { g(x, y) };",
        &["x=3", "y=4"],
        "call of 'g' needs 36 <= (+ c k), which is 36 <= 7 here\n\
         call of 'slice'\n\
         argument 1 of 'slice' is _ [(+ _ _)]@...\n\
         argument 1 of 'concat' is _ [_]@...\n\
         argument 2 of 'concat' is _ [_]@...\n\
         what is given for 'x' is f32 [3]\n\
         what is given for 'y' is f32 [4]\n\
         in the call of 'g' here\n\
         argument 1 of 'g' is f32 [k]\n\
         argument 2 of 'g' is f32 [_]\n\
         'k' is dimension 0 of parameter 1 of 'f'\n\
         'c' is dimension 0 of parameter 2 of 'f'\n",
    ),
    (
        "f = fn(x) { x + 1f };",
        &[],
        "'x' is a tensor, of which not all sizes are known\n\
         try '--shape x=NxN' with a number for what is open\n",
    ),
    (
        "f = fn(x : f32 [n,2], y : f32 [k]) { reshape(x, shape=[3,m]) };",
        &["x=6x2"],
        "'y' is f32 [k], of which not all sizes are known\n\
         try '--shape y=N' with a number for what is open\n",
    ),
    (
        "f = fn(x : f32 [4]) { slice(x, start=1) };",
        &[],
        "call of 'slice' needs a <= 3, which what is given does not determine\n\
         'a' is dimension 0 of this value\n\
         'size' is not given; try 'size=..' here\n",
    ),
    (
        "f = fn(x : f32 [4]) { reshape(x) };",
        &[],
        "call of 'reshape' needs elements a = [4], which what is given does not determine\n\
         'a' is the shape of this value\n\
         'shape' is not given; try 'shape=[..]' here\n",
    ),
    (
        "f = fn(x : f32 [n], y : f32 [2*n]) { x };",
        &["x=2147483647"],
        "a size of 'y' would be 4294967294, expected at most 2147483647\n",
    ),
    // A condition that what is given decides.
    (
        "f = fn(x : f32 [m], y : f32 [n]) : f32 [8] { concat(x, y) };",
        &["x=3", "y=4"],
        "what is given for 'y' has shape [4], expected [5]: size 4 is not 5\n\
         what is given for 'x' is f32 [3]\n\
         annotation of the result is f32 [8]\n\
         result of the function is f32 [8]\n\
         argument 1 of 'concat' is f32 [m]\n\
         argument 2 of 'concat' is f32 [n]\n",
    ),
    (
        "f = fn(x : t a@[n]@b, y : t b) { reverse(x), y };",
        &["x=3x4", "y=3"],
        "what is given for 'x' has shape [3,4], expected a@[n,3]: size 4 is not 3\n\
         annotation of 'x' is t a@[n]@b\n\
         what is given for 'y' is t [3]\n\
         annotation of 'y' is t b\n",
    ),
    (
        "g = fn(a) { a * 300 }; f = fn(x) { g(x) };",
        &["x=i8[3]"],
        "300 does not fit i8, expected -128 to 127\n\
         argument 1 of '*' is a tensor of numbers\n\
         argument 2 of '*' is a number\n\
         what is given for 'x' is i8 [3]\n\
         in the call of 'g' here\n\
         argument 1 of 'g' is a tensor of numbers\n",
    ),
    (
        "g = fn(a : t [n,n]) { a }; f = fn(x) { g(x) };",
        &["x=2x3"],
        "what is given for 'x' has shape [2,3], expected [b,b]: size 3 is not 2\n\
         annotation of 'a' is t [n,n]\n\
         in the call of 'g' here\n\
         argument 1 of 'g' is _ [_,_]\n\
         'b' is dimension 0 of 'x'\n",
    ),
];

/// The same, of compiling it for sizes that are parameters.
const PARAMETRIC: &[(&str, &[&str], &str)] = &[
    ("g = fn(x, i) { gather(x, i) }; f = fn(x : f32 [n,5]) { sum(g(x, 0)) };", &[], ""),
    (
        "f = fn(x) { slice(x, start=1) };",
        &["x=?"],
        "call of 'slice' needs b < a, which what is given does not determine\n\
         'a' is dimension 0 of 'x'\n\
         'b' is dimension 0 of this value\n\
         'size' is not given; try 'size=..' here\n",
    ),
    (
        "f = fn(x) { reverse(x) };",
        &[],
        "'x' is _ [_]@..., of which the rank is not known\n\
         try '--shape x=?x..' with a number or '?' for each dimension that is open\n",
    ),
];

#[test]
fn errors_say_which_places_contradict_each_other() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/axon/tests/errors.txt");
    let expected = std::fs::read_to_string(&path).expect("the table");
    let mut found = String::new();
    for text in expected.lines().filter_map(|line| line.strip_prefix("== ")) {
        let source = SourceFile::new("test.axon", text);
        let errors = diagnostics(text);
        let [error] = &errors[..] else { panic!("one error, not {errors:?}: {text}") };
        check_names(text, error);
        let main = [(error.span, error.message.clone())];
        found += &format!("== {text}\n");
        for (span, line) in main.iter().chain(&error.notes) {
            found += &format!("{}: {line}\n", source.line_col(span.start).1);
        }
        check_places(text, error);
        // Without a member there is no other contradiction, either.
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
