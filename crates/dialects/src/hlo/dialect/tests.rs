//! The corpus of `tests/conformance` in the dialect: imported, verified, printed in every form,
//! parsed, and exported again.

use super::*;
use crate::{
    diagnostic,
    hlo::{Module, read, tests::corpus},
    tc::syntax::SourceFile,
};
use melior::{
    Context,
    ir::operation::{OperationLike, OperationPrintingFlags},
};

fn context() -> Context {
    let context = crate::new_context();
    context.get_or_load_dialect("hlo");
    context
}

fn parsed(name: &str, text: &str) -> (SourceFile, Module) {
    let (source, module, diagnostics) = read(name, text.as_bytes().to_vec());
    let module = module.unwrap_or_else(|| panic!("{}", source.render_all(&diagnostics)));
    (source, module)
}

/// The text of a module of the dialect as HLO.
fn exported(module: &melior::ir::Module) -> String {
    let op = mlir::op_ref(module.as_operation());
    match export(op) {
        Ok(module) => module.to_string(),
        Err(error) => panic!("{}", error.message()),
    }
}

/// The module after it was printed and parsed.
fn reparsed<'c>(context: &'c Context, name: &str, text: &str) -> melior::ir::Module<'c> {
    let (handler, received) = diagnostic::collect(context);
    let module = melior::ir::Module::parse(context, text);
    context.detach_diagnostic_handler(handler);
    module.unwrap_or_else(|| panic!("{name}: {:?}\n{text}", received.borrow()))
}

/// Compares texts; only the first line that differs is shown.
fn assert_same(name: &str, expected: &str, found: &str) {
    for (expected, found) in expected.lines().zip(found.lines()) {
        assert_eq!(expected, found, "{name}");
    }
    assert_eq!(expected.lines().count(), found.lines().count(), "{name}");
}

#[test]
fn corpus_survives_the_dialect() {
    let context = context();
    for (name, text) in corpus() {
        let (source, module) = parsed(&name, &text);
        let Ok(imported) = import_module(&context, &source, &module) else {
            panic!("{name} is not imported");
        };
        assert!(imported.as_operation().verify(), "{name}");
        let expected = module.to_string();
        assert_same(&name, &expected, &exported(&imported));

        let printed = imported.as_operation().to_string();
        let again = reparsed(&context, &name, &printed);
        assert_same(&name, &printed, &again.as_operation().to_string());
        assert_same(&name, &expected, &exported(&again));

        let flags = OperationPrintingFlags::new().print_generic_operation_form();
        let generic = imported.as_operation().to_string_with_flags(flags).unwrap();
        assert_same(&name, &expected, &exported(&reparsed(&context, &name, &generic)));
    }
}
