//! Whole programs.

use super::*;
use crate::tc::syntax::SourceFile;

fn signature(text: &str, entry: Option<&str>) -> String {
    let source = SourceFile::new("test.axon", text);
    let (program, diagnostics) = syntax::parse_program(&source);
    if !diagnostics.is_empty() {
        return source.render_all(&diagnostics);
    }
    let mut inferred = infer(&program, &Options::default());
    if !inferred.diagnostics.is_empty() {
        return source.render_all(&inferred.diagnostics);
    }
    inferred.signature(entry).expect("a definition").text
}

#[test]
fn the_prelude_has_types() {
    let inferred = infer(&builtins::prelude(), &Options::default());
    let source = SourceFile::new("prelude.axon", builtins::PRELUDE);
    assert_eq!(source.render_all(&inferred.diagnostics), "");
    assert_eq!(signature("f = softmax;", Some("f")), "t [a]@b -> t [a]@b");
}
