//! Random and mutated text: never a panic, and what is accepted prints and reads back.

use crate::{
    hlo::{read, syntax::print},
    text::Span,
};
use proptest::prelude::*;

/// Words of which much of HLO text is made.
const WORDS: [&str; 48] = [
    "HloModule",
    "ENTRY",
    "ROOT",
    "m",
    "%a",
    "b",
    "c",
    "f",
    "f32",
    "s32",
    "pred",
    "token",
    "[2]",
    "[]",
    "[2,3]",
    "{1,0}",
    "{0}",
    "{",
    "}",
    "(",
    ")",
    "=",
    ",",
    ":",
    "->",
    "0",
    "1",
    "-3",
    "2x2",
    "nan",
    "add",
    "parameter",
    "constant",
    "reduce",
    "tuple",
    "call",
    "while",
    "to_apply",
    "dimensions",
    "window",
    "slice",
    "padding",
    "metadata",
    "\"x\"",
    "\n",
    "/*index=5*/",
    "-inf",
    "\u{e9}",
];

const PROGRAM: &str = r#"HloModule m, entry_computation_layout={(f32[4,6]{1,0}, s32[2])->(f32[4], f32[2,6])}

FileNames
1 "a.py"

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

%body (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %n = f32[4]{0} negate(%p), metadata={op_name="n \" }" stack_frame_id=1}
}

cond {
  p = f32[4] parameter(0)
  ROOT c = pred[] constant(false)
}

ENTRY %main (a: f32[4,6], i: s32[2]) -> (f32[4], f32[2,6]) {
  %a = f32[4,6]{1,0} parameter(0)
  %i = s32[2]{0} parameter(1)
  zero = f32[] constant(-0)
  k = f32[2,3] constant({ { 1, nan, -inf }, /*i0=1*/ { 1e-5, .5, 3 } })
  z = c64[2] constant({(1, -2), (nan, 0)})
  r = f32[4] reduce(f32[4,6] %a, f32[] zero), dimensions={1}, to_apply=add
  p = f32[5,8] pad(%a, zero), padding=-1_2_0x1_1_0
  w = f32[2,3] reduce-window(%a, zero), window={size=3x4 stride=2x2 pad=0_1x1_1}, to_apply=add
  sl = f32[2,3] slice(%a), slice={[0:4:2], [0:6:2]}
  g = f32[2,6] gather(%a, %i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,6}
  l = f32[4] while(r), condition=cond, body=%body, backend_config={"n":"5"}
  ROOT t = (f32[4], f32[2,6]) tuple(l, g), control-predecessors={p, w}
}
"#;

/// Reads a text; if it is a module, its printed form must read back to the same.
fn survives(text: &str) {
    let (source, module, diagnostics) = read("random.hlo", text.as_bytes().to_vec());
    assert_eq!(module.is_none(), !diagnostics.is_empty());
    assert!(diagnostics.is_sorted_by_key(|each| each.span));
    source.render_all(&diagnostics);
    let Some(module) = module else { return };
    let printed = print(&module, Default::default());
    let (source, again, diagnostics) = read("printed.hlo", printed.clone().into_bytes());
    let Some(again) = again else { panic!("{printed}\n{}", source.render_all(&diagnostics)) };
    assert_eq!(print(&again, Default::default()), printed);
}

#[test]
fn the_program_is_valid() {
    survives(PROGRAM);
    assert_eq!(read("p", PROGRAM.as_bytes().to_vec()).2, Vec::new());
}

/// The places where a text can be cut: between words, numbers and signs.
fn pieces(text: &str) -> Vec<Span> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
    let bytes = text.as_bytes();
    let mut pieces = Vec::new();
    let mut start = 0;
    for end in 1..=bytes.len() {
        if end == bytes.len() || !(is_word(bytes[end - 1]) && is_word(bytes[end])) {
            pieces.push(Span::new(start, end as u32));
            start = end as u32;
        }
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        read("random.hlo", bytes);
    }

    #[test]
    fn any_words(words in proptest::collection::vec(proptest::sample::select(&WORDS[..]), 0..80)) {
        survives(&words.join(" "));
        survives(&format!("HloModule m\nENTRY e {{ a = f32[] {} }}", words.concat()));
    }

    #[test]
    fn mutated_programs(
        changes in proptest::collection::vec((0usize..5, any::<usize>(), any::<usize>()), 1..4),
    ) {
        let mut text = PROGRAM.to_owned();
        for (kind, at, other) in changes {
            let all = pieces(&text);
            let place = all[at % all.len()];
            let source = all[other % all.len()];
            let range = place.start as usize..place.end as usize;
            let piece = text[source.start as usize..source.end as usize].to_owned();
            match kind {
                0 => text.replace_range(range, ""),
                1 => text.replace_range(range, &piece),
                2 => text.insert_str(range.start, &piece),
                3 => text.replace_range(range, WORDS[other % WORDS.len()]),
                _ => text.truncate(range.start),
            }
            if text.is_empty() {
                break;
            }
        }
        survives(&text);
    }
}
