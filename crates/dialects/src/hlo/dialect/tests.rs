//! The corpus of `tests/conformance` in the dialect: imported, verified, printed in every form,
//! parsed, and exported again.

use super::*;
use crate::{
    hlo::{Arity, Module, ValueKind, read, tests::corpus},
    report,
    text::SourceFile,
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
    let (handler, received) = report::collect(context);
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
        let expected = match name.ends_with(".hlo") {
            true => module.to_string(),
            // Written by hand, in part otherwise than XLA does.
            false => exported(&imported),
        };
        let mut check = |form: &str, expected: &str, found: &str| {
            let difference = difference(expected, found);
            failures.extend(difference.map(|text| format!("{name}, {form}:\n{text}")));
        };
        check("imported", &expected, &exported(&imported));
        check("read again", &expected, &parsed(&name, &expected).1.to_string());

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

/// What `mlir-tblgen` says of `hlo.td`, in JSON.
fn definitions() -> serde_json::Value {
    let prefix = std::env::var("MLIR_SYS_220_PREFIX").expect(".cargo/config.toml sets it");
    let prefix = std::path::Path::new(&prefix);
    let output = std::process::Command::new(prefix.join("bin/llvm-tblgen"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["-dump-json", "-I", ".", "-I"])
        .arg(prefix.join("include"))
        .arg("src/hlo/hlo.td")
        .output()
        .expect("llvm-tblgen runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

/// The constraint that `hlo.td` has for attributes of a kind.
fn constraint(kind: ValueKind) -> String {
    match kind {
        ValueKind::Integer => "I64Attr".to_owned(),
        ValueKind::Boolean => "BoolAttr".to_owned(),
        ValueKind::Number => "F64Attr".to_owned(),
        ValueKind::Integers => "DenseI64ArrayAttr".to_owned(),
        ValueKind::Computation => "FlatSymbolRefAttr".to_owned(),
        ValueKind::Computations => "FlatSymbolRefArrayAttr".to_owned(),
        ValueKind::Text => "StrAttr".to_owned(),
        kind => format!("Hlo_{kind:?}Attr"),
    }
}

/// The table of opcodes and `hlo.td` have the same operations, with the same attributes.
#[test]
fn definitions_are_the_table_of_opcodes() {
    let all = definitions();
    let mut names: Vec<_> = Opcode::ALL.iter().map(|opcode| operation_name(*opcode)).collect();
    names.retain(|name| *name != operation_name(Opcode::Parameter));
    names.extend([COMPUTATION, RETURN]);
    names.sort_unstable();
    let op = |name: &serde_json::Value| &all[name.as_str().unwrap()];
    let ops = all["!instanceof"]["Op"].as_array().unwrap().iter().map(op);
    let mut defined: Vec<_> = ops
        .filter(|op| op["opDialect"]["def"] == "Hlo_Dialect")
        .map(|op| (format!("hlo.{}", op["opName"].as_str().unwrap()), op))
        .collect();
    defined.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(defined.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), names);

    for &opcode in Opcode::ALL.iter().filter(|opcode| **opcode != Opcode::Parameter) {
        let (name, op) = defined.iter().find(|(name, _)| name == operation_name(opcode)).unwrap();
        assert!(!op["summary"].as_str().unwrap().is_empty());
        let (mut attributes, mut operands, mut is_variadic) = (Vec::new(), 0, false);
        for argument in op["arguments"]["args"].as_array().unwrap() {
            let definition = argument[0]["def"].as_str().unwrap();
            let is_a = |class: &str| {
                let classes = all[definition]["!superclasses"].as_array().unwrap();
                classes.iter().any(|each| each == class)
            };
            if is_a("Attr") {
                let base = &all[definition]["baseAttr"]["def"];
                let constraint = base.as_str().unwrap_or(definition).to_owned();
                attributes.push((argument[1].as_str().unwrap(), constraint, is_a("OptionalAttr")));
            } else if is_a("Variadic") {
                is_variadic = true;
            } else if !is_a("Property") {
                operands += 1;
            }
        }
        let given = |attribute: &Attribute, is_optional| {
            (attribute_name(*attribute), constraint(attribute.kind()), is_optional)
        };
        let mut expected: Vec<_> =
            opcode.required().iter().map(|each| given(each, false)).collect();
        expected.extend(opcode.optional().iter().map(|each| given(each, true)));
        if opcode == Opcode::Constant {
            expected.push(("value", "AnyAttr".to_owned(), false));
        }
        attributes.sort_unstable();
        expected.sort_unstable();
        assert_eq!(attributes, expected, "{name}");
        match opcode.arity() {
            Arity::Exactly(count) => assert!(!is_variadic && operands == count, "{name}"),
            Arity::AtLeast(count) => assert!(is_variadic && operands <= count, "{name}"),
        }
    }
}

/// Every attribute that is not text alone has its place in the order of printing.
#[test]
fn order_of_attributes_names_each_once() {
    let mut seen = std::collections::HashSet::new();
    assert!(ORDER.iter().all(|attribute| seen.insert(*attribute)));
    for &opcode in Opcode::ALL {
        let all = opcode.required().len() + opcode.optional().len() + COMMON.len();
        assert_eq!(attribute_order(opcode).len(), all);
    }
}

/// Names in MLIR that HLO text cannot hold, values that nothing names, and constants that would
/// grow without bound.
#[test]
fn what_text_cannot_say_is_replaced() {
    let context = context();
    let text = r#"
        module @"my module" {
          hlo.computation private @"a\22b"(%x: tensor<f32>) -> tensor<f32> {
            hlo.return %x : tensor<f32>
          }
          hlo.computation @main() -> tensor<1000000x1000000xf32> {
            %0 = hlo.constant dense<1.0> : tensor<f32>
            %1 = hlo.call %0 {to_apply = @"a\22b"} : (tensor<f32>) -> tensor<f32> name "add.1"
            %add.1 = hlo.add %1, %1 {hlo.control_predecessors = ["gone", "add.1"]} : tensor<f32>
            %2 = hlo.constant dense<1.0> : tensor<1000000x1000000xf32>
            hlo.return %2 : tensor<1000000x1000000xf32>
          }
        }"#;
    let module = reparsed(&context, "names", text);
    assert_eq!(
        exported(&module),
        "\
HloModule my_module

%a_b (param.1: f32[]) -> f32[] {
  ROOT %param.1 = f32[] parameter(0)
}

ENTRY %main () -> f32[1000000,1000000] {
  %constant.1 = f32[] constant(1)
  %add.1 = f32[] call(%constant.1), to_apply=%a_b
  %add.1.1 = f32[] add(%add.1, %add.1), control-predecessors={%add.1}
  ROOT %constant.2 = f32[1000000,1000000] constant(1)
}
"
    );
}

#[test]
fn long_modules_take_linear_time() {
    let mut text = "HloModule long\nENTRY main {\n  x.0 = f32[] parameter(0)\n".to_owned();
    for number in 1..20_000 {
        text += &format!("  x.{number} = f32[] negate(x.{})\n", number - 1);
    }
    text += "}\n";
    let (source, module) = parsed("long", &text);
    let context = context();
    let imported = import_module(&context, &source, &module).unwrap_or_else(|_| unreachable!());
    assert!(imported.as_operation().verify());
    assert_eq!(exported(&imported), module.to_string());
}
