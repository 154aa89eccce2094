//! What is read, how errors are reported and recovered from, and that no text does harm.

mod random;

use super::*;
use crate::{
    hlo::{Attribute, ComputationId, Module, Opcode, Value, read},
    text::SourceFile,
};
use std::time::{Duration, Instant};

/// The module of a text that must have no errors, verified.
fn module(text: &str) -> Module {
    let (source, module, diagnostics) = read("t.hlo", text.as_bytes().to_vec());
    module.unwrap_or_else(|| panic!("{text}\n{}", source.render_all(&diagnostics)))
}

/// The errors of a text: `line:column: message`.
fn errors(text: &str) -> Vec<String> {
    let source = SourceFile::new("t.hlo", text);
    let (module, diagnostics) = parse_module(&source);
    assert_eq!(module.is_some(), diagnostics.is_empty());
    diagnostics
        .iter()
        .map(|each| {
            let (line, column) = source.line_col(each.span.start);
            format!("{line}:{column}: {}", each.message)
        })
        .collect()
}

#[test]
fn texts_without_a_first_line() {
    let text = "f { p = f32[2] parameter(0) ROOT r = f32[2] negate(p) }\nENTRY e { ROOT c = f32[2] constant(1) }";
    assert_eq!(module(text).computations.len(), 2);
    for text in [
        "ROOT %r = f32[10]{0} multiply(f32[10]{0} %x, f32[10]{0} %y)",
        "r = f32[10] multiply(f32[10] x, f32[10] y)",
        "f32[10] multiply(f32[10] x, f32[10] y)",
        "(f32[], f32[2]) tuple(f32[] x, f32[2] y)",
    ] {
        assert_eq!(module(text).entry().parameters.len(), 2, "{text}");
    }
}

#[test]
fn computations_in_place_of_names() {
    let text = "r = f32[] reduce(f32[8] x, f32[] c), dimensions={0}, \
                to_apply={ a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }";
    let module = module(text);
    let reducer = module.entry().root().computation(Attribute::ToApply).unwrap();
    assert_eq!(module[reducer].root().opcode, Opcode::Add);
    let mut text = "HloModule m\nENTRY e { ".to_owned();
    text += &"r = f32[] call(), to_apply={".repeat(1000);
    assert!(errors(&text)[0].contains("nested deeper than 50 levels"));
}

#[test]
fn computations_are_ordered() {
    let text = "HloModule m\nENTRY e { p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=%f }\n\
                f { p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=g }\n\
                g { p = f32[] parameter(0) ROOT r = f32[] negate(p) }";
    let module = module(text);
    let names: Vec<_> = module.computations.iter().map(|each| each.name.as_str()).collect();
    assert_eq!(names, ["g", "f", "e"]);
    assert_eq!(module.entry, ComputationId(2));
}

#[test]
fn deep_chains_of_calls() {
    let count = 20_000;
    let mut text = "HloModule m\n".to_owned();
    for number in 0..count {
        text += &format!("f{number} {{ ROOT r = f32[] call(), to_apply=f{} }}\n", number + 1);
    }
    text += &format!(
        "f{count} {{ ROOT r = f32[] constant(1) }}\nENTRY e {{ ROOT r = f32[] call(), to_apply=f0 }}"
    );
    assert_eq!(module(&text).computations.len(), count + 2);
}

#[test]
fn text_attributes_are_kept_as_they_are() {
    let text = r##"HloModule m, frontend_attributes={a={m = #x<["d"=1]>}}, replica_count=2
ENTRY e {
  ROOT r = f32[] constant(1), sharding={replicated}, metadata={op_name="a \" } b" source_line=7}, backend_config={"n":{"k":"}"}}, frontend_attributes={x="{",y=z}
}
"##;
    let module = module(text);
    let root = module.entry().root();
    assert_eq!(root.metadata("op_name").as_deref(), Some("a \" } b"));
    assert_eq!(root.metadata("source_line").as_deref(), Some("7"));
    assert_eq!(root.metadata("source_file"), None);
    assert_eq!(root.text(Attribute::BackendConfig), Some(r#"{"n":{"k":"}"}}"#));
    let printed = print(&module, PrintOptions { percent: false, metadata: true });
    assert!(printed.contains("frontend_attributes={a={m = #x<[\"d\"=1]>}}, replica_count=2"));
    assert!(printed.contains(text.lines().nth(2).unwrap()), "{printed}");
    let printed = print(&module, PrintOptions { percent: true, metadata: false });
    assert!(!printed.contains("metadata"), "{printed}");
}

#[test]
fn windows_and_paddings_print_what_they_need() {
    for attribute in [
        "window={size=3x3}",
        "window={size=3x3 stride=2x1 pad=1_0x2_-3 lhs_dilate=2x1 rhs_dilate=1x2 rhs_reversal=1x0}",
        "window={}",
    ] {
        let text = format!(
            "r = f32[1] custom-call(f32[1] x), custom_call_target=\"t\", {attribute}, \
             dim_labels=0bf_io0->fb0"
        );
        assert!(module(&text).to_string().contains(attribute));
    }
    let text = "r = f32[1,2] pad(f32[3,3] x, f32[] y), padding=-1_0_1x0_-1_0";
    assert!(errors(text).is_empty());
    let root = module("r = f32[4] pad(f32[3] x, f32[] y), padding=1_0").entry().root().clone();
    assert_eq!(root.padding()[0].low, 1);
    assert!(matches!(root.attribute(Attribute::Padding), Some(Value::Padding(_))));
}

#[test]
fn several_errors_in_one_text() {
    let text = "HloModule m
f {
  a = f32[2] parameter(0)
  b = f32[2] frobnicate(a)
  c = f32[2] add(b, b)
  d = f32[2] add(a,
    nowhere)
  e = f32[2] add(a, a), flavour={1,
     2}
  ROOT g = f32[2] add(a, a), dimensions={0}
}

ENTRY main {
  x = q9[2] parameter(0)
  ROOT y = f32[2] call(x), to_apply=h
";
    assert_eq!(
        errors(text),
        [
            "4:14: unknown opcode 'frobnicate'",
            "7:5: operand 'nowhere' is not defined before its use",
            "8:25: unknown attribute 'flavour'",
            "10:30: 'add' does not take the attribute 'dimensions'",
            "14:7: unknown element type 'q9'",
            "15:37: computation 'h' is not defined",
        ]
    );
}

#[test]
fn a_computation_that_is_not_closed() {
    assert_eq!(
        errors(
            "HloModule m\nf {\n  a = f32[] constant(1)\nENTRY main {\n  b = f32[] constant(1)\n}"
        ),
        ["4:1: expected '}' before the next computation, found 'ENTRY'"]
    );
    assert_eq!(
        errors("HloModule m\nENTRY main {\n  b = f32[] constant(1)"),
        ["3:24: expected '}' at the end of computation 'main', found end of text"]
    );
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    let instruction = |text: &str| errors(&format!("HloModule m\nENTRY e {{\n{text}\n}}"));
    for (text, expected) in [
        (
            "a = f32[2] parameter(0)\nb = f32[] add(s32[2] a, a)",
            "4:15: operand 'a' has shape f32[2], but s32[2] is written here",
        ),
        (
            "a = f32[<=7] parameter(0)",
            "3:9: expected a size, found a dynamic one, which is not supported",
        ),
        ("a = f32[2]{0:T(8) parameter(0)", "3:11: the '{' of a layout is not closed"),
        ("a = f32[2]{0,} parameter(0)", ""),
        ("a = token[2] parameter(0)", "3:5: a token has no dimensions"),
        ("a = (f32[], parameter(0)", "3:13: expected a shape, found 'parameter'"),
        (
            "a = f32[] constant(1), metadata={} , metadata={}",
            "3:38: attribute 'metadata' is given twice",
        ),
        (
            "a = s32[2] iota(), iota_dimension=x",
            "3:35: expected an integer for 'iota_dimension', found 'x'",
        ),
        (
            "a = s32[2] iota(), iota_dimension 3",
            "3:35: expected '=' after attribute 'iota_dimension', found '3'",
        ),
        (
            "a = f32[] constant(1)\nb = pred[] compare(a, a), direction=XX",
            "4:37: expected 'direction' to be one of EQ, NE, GE, GT, LE, LT, found 'XX'",
        ),
        (
            "a = f32[] constant(1), control-predecessors={b}",
            "3:46: instruction 'b' is not defined before its use",
        ),
        ("% = f32[] constant(1)", "3:1: expected a name after '%'"),
        (
            "a = f32[] constant(1) /* open",
            "3:23: expected an instruction or '}', found a comment without an end",
        ),
    ] {
        match expected {
            "" => assert!(instruction(text).is_empty(), "{text}: {:?}", instruction(text)),
            _ => assert_eq!(instruction(text), [expected], "{text}"),
        }
    }
}

#[test]
fn tables_of_stack_frames() {
    let text = "HloModule m\n\nFileNames\n1 \"a \\\"b.py\"\n\nFunctionNames\n1 \"f\"\n\nFileLocations\n\
                1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=2}\n\n\
                StackFrames\n1 {file_location_id=1 parent_frame_id=1}\n\n\
                ENTRY e { ROOT c = f32[] constant(1) }";
    let module = module(text);
    assert_eq!(module.frames.locations[0].line, 3);
    assert!(module.to_string().contains("1 \"a \\\"b.py\"\n"));
    let bad = text.replace("1 {file_location", "2 {file_location");
    assert!(errors(&bad)[0].contains("expected entry 1 of the table, found 2"));
    let bad = text.replace("line=3 end", "lines=3 end");
    assert!(errors(&bad)[0].contains("unknown field 'lines'"));
}

/// Time is linear in the text, whatever it holds, and errors are capped.
#[test]
fn large_texts_are_answered_quickly() {
    let head = "HloModule m\nENTRY e {\n a = ";
    let size = 2 << 20;
    for piece in
        ["{", "(", "a\n", "/* ", "\"", "a = f32[] add(\n", "f32[1,", "} ", "x {\n", "\u{e9}"]
    {
        for prefix in [
            "",
            head,
            "HloModule m, frontend_attributes=",
            "HloModule m\nENTRY e {\n a = f32[] constant(",
        ] {
            let text = format!("{prefix}{}", piece.repeat(size / piece.len()));
            let start = Instant::now();
            let found = errors(&text);
            let took = start.elapsed();
            assert!((1..=101).contains(&found.len()), "{prefix}{piece}: {} errors", found.len());
            // Generous: the machine may be busy, and nothing is optimized.
            assert!(took < Duration::from_secs(10), "{prefix}{piece}: {took:?}");
        }
    }
}
