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

/// The first line in which texts differ.
fn difference(expected: &str, found: &str) -> Option<String> {
    let mut pairs = expected.lines().zip(found.lines());
    let line = pairs.find(|(expected, found)| expected != found);
    let shown = line.map(|(expected, found)| format!("expected: {expected}\n   found: {found}"));
    shown.or_else(|| (expected != found).then(|| "the length".to_owned()))
}

#[test]
fn corpus_survives_the_dialect() {
    let context = context();
    let mut failures = Vec::new();
    for (name, text) in corpus() {
        let (source, module) = parsed(&name, &text);
        let imported = import_module(&context, &source, &module);
        let imported = imported.unwrap_or_else(|error| panic!("{name}: {}", error.message()));
        assert!(imported.as_operation().verify(), "{name}");
        let expected = module.to_string();
        let mut check = |form: &str, expected: &str, found: &str| {
            let difference = difference(expected, found);
            failures.extend(difference.map(|text| format!("{name}, {form}:\n{text}")));
        };
        check("imported", &expected, &exported(&imported));

        let printed = imported.as_operation().to_string();
        let again = reparsed(&context, &name, &printed);
        check("printed", &printed, &again.as_operation().to_string());
        check("parsed", &expected, &exported(&again));

        let flags = OperationPrintingFlags::new().print_generic_operation_form();
        let generic = imported.as_operation().to_string_with_flags(flags).unwrap();
        let again = reparsed(&context, &name, &generic);
        check("parsed from the generic form", &expected, &exported(&again));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
