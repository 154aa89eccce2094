//! Every PTX file that LLVM wrote is taken, or names what is not there; mutated texts never panic.

use std::{fs, path::Path};

use proptest::prelude::*;
use tc_backends::nvvm::emulator::{Error, Module};

fn files(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/emulator/ptx").join(folder);
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "ptx"))
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, fs::read_to_string(path).expect("text"))
        })
        .collect();
    files.sort();
    files
}

#[test]
fn kernels_are_taken() {
    for (name, text) in files("") {
        if let Err(error) = Module::parse(&text) {
            panic!("{name}: {error}");
        }
    }
}

/// Instructions of the recipe's list that are not there, by a part of the message.
const MISSING: &[&str] = &["tcgen05", "external function", "cp.reduce", "cp.async.bulk"];

#[test]
fn operations_are_taken_or_named() {
    let mut missing = Vec::new();
    for (name, text) in files("ops") {
        match Module::parse(&text) {
            Ok(_) => {}
            Err(Error::Unsupported { at, what }) => {
                assert!(MISSING.iter().any(|part| what.contains(part)), "{name}:{at}: {what}");
                missing.push(name);
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
    assert!(missing.len() < 12, "{missing:?}");
}

#[test]
fn unknown_things_are_named() {
    let text = |body: &str| {
        format!(
            ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{{\n{body}\n}}\n"
        )
    };
    let cases = [
        ("frob.s32 %r1, %r2;", "6:1: unsupported instruction 'frob.s32'"),
        (
            ".reg .b32 %r<3>;\nadd.weird.s32 %r1, %r2, 1;",
            "7:4: unsupported modifier '.weird' of 'add.weird.s32'",
        ),
        (".frob 5;", "6:1: unsupported directive '.frob'"),
        (
            ".reg .b32 %r<3>;\nmov.u32 %r1, %clock;",
            "7:1: unsupported special register, or undeclared register '%clock'",
        ),
        (".reg .b32 %r<3>;\nadd.s32 %r1, %r2;", "7:1: expected 3 operands of 'add', found 2"),
        ("bra $nowhere;", "6:1: expected a label, found '$nowhere'"),
    ];
    for (body, expected) in cases {
        let error = Module::parse(&text(body)).expect_err(body);
        assert_eq!(error.to_string(), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_text_never_panics(
        file in any::<prop::sample::Index>(),
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..4usize, any::<prop::sample::Index>()),
            1..6,
        ),
    ) {
        let mut files = files("");
        files.extend(self::files("ops"));
        let (_, text) = &files[file.index(files.len())];
        let mut bytes = text.as_bytes().to_vec();
        for (at, kind, other) in edits {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            let other = other.index(bytes.len());
            match kind {
                0 => bytes[at] = b"{}[]();,.@%+-|09azAZ_:\"/"[other % 24],
                1 => {
                    bytes.remove(at);
                }
                2 => {
                    let end = (at + other % 40).min(bytes.len());
                    let piece = bytes[at..end].to_vec();
                    bytes.splice(other..other, piece);
                }
                _ => bytes.truncate(at.max(1)),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        let _ = Module::parse(&text);
    }
}
