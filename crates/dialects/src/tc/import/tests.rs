//! Imports small programs and those of the conformance data.

use super::import;
use crate::ffi;
use melior::{
    Context,
    ir::{Module, operation::OperationLike},
};
use proptest::prelude::*;
use std::{cell::RefCell, path::Path, rc::Rc};

/// Imports a program; the module as text, or else the diagnostics.
fn imported(text: &str, relaxed: bool) -> Result<String, Vec<String>> {
    let context = ffi::new_context();
    let messages = Rc::new(RefCell::new(Vec::new()));
    let sink = messages.clone();
    context.attach_diagnostic_handler(move |diagnostic| {
        sink.borrow_mut().push(format!("{}: {diagnostic}", diagnostic.location()));
        true
    });
    let module = import(&context, "t.tc", text.as_bytes(), relaxed);
    let Some(module) = module else { return Err(messages.borrow().clone()) };
    let printed = module.as_operation().to_string();
    assert!(module.as_operation().verify(), "{:?}\n{printed}", messages.borrow());
    assert_eq!(reprinted(&context, &printed), printed);
    Ok(printed)
}

/// The text of the module that a text is parsed to.
fn reprinted(context: &Context, text: &str) -> String {
    let module = Module::parse(context, text).expect("what was printed parses");
    module.as_operation().to_string()
}

fn check(text: &str, expected: &[&str]) -> String {
    let printed = imported(text, false).unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut rest = printed.as_str();
    for each in expected {
        let Some(at) = rest.find(each) else { panic!("expected '{each}' in order in\n{printed}") };
        rest = &rest[at + each.len()..];
    }
    printed
}

fn fails(text: &str, expected: &str) {
    let errors = imported(text, false).expect_err("the program is wrong").join("\n");
    assert!(errors.contains(expected), "{errors}");
}

/// The cases of a file of the conformance data.
fn cases(file: &str) -> Vec<serde_json::Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/tc");
    let text = std::fs::read_to_string(folder.join(file)).expect("the data is in the repository");
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).expect("one JSON value per line"))
        .collect()
}

fn import_all(file: &str, accepted: impl Fn(&serde_json::Value) -> bool) {
    let mut failures = Vec::new();
    for case in cases(file) {
        let Some(text) = case["tc"].as_str() else { continue };
        let flag = |name: &str| case[name].as_bool() == Some(true);
        let relaxed = flag("relaxed_syntax") || flag("float_index");
        let result = imported(text, relaxed);
        if accepted(&case)
            && let Err(errors) = result
        {
            failures.push(format!("{}: {}", case["name"], errors.join("; ")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn evaluated_programs_import_verify_and_round_trip() {
    import_all("eval.jsonl", |_| true);
}

#[test]
fn benchmark_kernels_import_verify_and_round_trip() {
    import_all("kernels.jsonl", |_| true);
}

#[test]
fn range_cases_import_verify_and_round_trip() {
    import_all("ranges.jsonl", |case| {
        // These two are for the front end; ranges that are not rectangular are refused here.
        let errors = ["missing_reduction", "tensor_in_where", "non_rectangular"];
        let error = case["expected"]["error"].as_str();
        !error.is_some_and(|error| errors.contains(&error))
    });
}

#[test]
fn syntax_cases_import_verify_and_round_trip() {
    import_all("syntax.jsonl", |case| {
        case["expected"] == "accept" && case["optional_error"].is_null()
    });
}

#[test]
fn ranges_over_index_variables_are_refused() {
    for case in cases("ranges.jsonl") {
        if case["expected"]["error"] == "non_rectangular" {
            let errors = imported(case["tc"].as_str().expect("a program"), false);
            let errors = errors.expect_err("not rectangular").join("\n");
            assert!(errors.contains("ranges are rectangular [TC0105]"), "{errors}");
        }
    }
    fails(
        "def f(float(N) A) -> (B) { B(i) +=! A(k) where m = i + 1, k in 0:m }",
        "the range of 'k' depends on index variable 'i'",
    );
}

#[test]
fn errors_have_locations_and_codes() {
    fails("def f(float(N) A) -> (B) {\n  B(i) = X(i)\n}", "t.tc\":2:10");
    fails("def f(float(N) A) -> (B) {\n  B(i) = X(i)\n}", "[TC0011]");
    fails("def f(", "[TC0001]");
}

#[test]
fn an_accumulated_output_is_an_argument() {
    check(
        "def f(uint8(N, 4) A) -> (B) { B(i) max= A(i, k) }",
        &[
            "tc.def @f(",
            "tensor<?x4xui8> {tc.name = \"A\", tc.sizes = [\"N\", 4]}",
            "tensor<?xui8> {tc.inout, tc.name = \"B\"}",
            "<maxu> outs(",
            "tc.read",
            "-> i8",
        ],
    );
}

#[test]
fn a_later_reduction_starts_from_the_earlier_result() {
    check(
        "def f(float(N) A) -> (B) { B(i) = A(i) B(i) += A(i) }",
        &["%B = tc.comprehension \"B\" [\"i\"] <assign>", "<add> outs(%B : tensor<?xf32>)"],
    );
}

#[test]
fn index_arithmetic_is_one_map() {
    check(
        "def f(float(N) A) -> (B) { B(i) +=! A(N - i - 1 + 2 * k) where k in 0:2 }",
        &["imap.apply <(d0, d1){N} -> (N - d0 - 1 + d1 * 2)>(", "tc.read"],
    );
    check(
        "def f(float(N) A) -> (B) { B(i) = A(N - i - 1) }",
        &["imap.apply <(d0){N} -> (N - d0 - 1)>(", "text = \"A(N - i - 1)\""],
    );
    let plain = check("def f(float(N) A) -> (B) { B(i) = A(i) + A(0) }", &["arith.constant 0"]);
    assert!(!plain.contains("imap.apply"), "{plain}");
}

#[test]
fn division_is_in_the_map_where_the_divisor_has_a_sign() {
    check(
        "def f(float(N) A) -> (B) { B(i) = A(i / 2 + i % N) where i in 0:N }",
        &["(d0){N} -> (d0 / 2 + d0 mod N)"],
    );
    check(
        "def f(float(N) A) -> (B) { B(i) = A(i % (0 - 3) + 2) where i in 0:N }",
        &["(d0) -> (-(-d0 mod 3) + 2)"],
    );
    check(
        "def f(float(N) A) -> (B) { B(i) +=! A(i / k) where i in 0:N, k in 0:2 }",
        &["tc.div %", " : index", "tc.read"],
    );
}

#[test]
fn ranges_intersect_and_may_use_extents_and_lets() {
    check(
        "def f(float(N) A) -> (B, C) {
           B(i) = A(i)
           C(j) +=! B(k) where m = B.0 - 1, k in 0:m, k in 1:N, j in 0:4
         }",
        &["tc.extent %B, 0", "imap.apply", "min(d0 - 1, N)", "where [0, 1] in("],
    );
}

#[test]
fn reads_in_branches_are_conditional() {
    check(
        "def f(float(N) A, float(N) B) -> (C) { C(i) = A(i) > 0 ? B(i + 1) : 0 }",
        &["arith.cmpf ogt", "scf.if", "tc.read", "scf.yield", "else", "scf.yield"],
    );
    let plain = check(
        "def f(float(N) A) -> (C) { C(i) = i < 3 ? 1.0 : 2.0 where i in 0:N }",
        &["arith.select"],
    );
    assert!(!plain.contains("scf.if"), "{plain}");
    check(
        "def f(bool(N) A) -> (C) { C(i) = A(i) && A(i + 1) || A(i + 2) }",
        &["scf.if", "tc.read", "else", "false", "scf.if", "true", "else", "tc.read"],
    );
    check(
        "def f(float(N) A, int32(N) I) -> (C) { C(i) = A(i < 3 ? 0 : I(i)) }",
        &["scf.if", "-> (index)", "arith.index_cast"],
    );
}

#[test]
fn lets_are_emitted_once_where_that_reads_nothing_needless() {
    let relu = check(
        "def f(float(N) A) -> (C) { C(i) = x > 0 ? x : 0 where x = A(i) }",
        &["tc.read", "arith.select"],
    );
    assert!(!relu.contains("scf.if"), "{relu}");
    assert_eq!(relu.matches("tc.read").count(), 1);
    let guarded = check(
        "def f(float(N) A) -> (C) { C(i) = i < 3 ? x + x : 0 where x = A(i), i in 0:N }",
        &["scf.if", "tc.read", "arith.addf"],
    );
    assert_eq!(guarded.matches("tc.read").count(), 1);
    let pure = check(
        "def f(float(N) A) -> (C) { C(i) = A(i) > 0 ? x * x : x where x = exp(float(i)) }",
        &["imap.builtin \"exp\"", "tc.read", "arith.select"],
    );
    assert_eq!(pure.matches("imap.builtin").count(), 1);
}

#[test]
fn unused_lets_and_exists_clauses_are_reads_for_ranges() {
    check(
        "def f(float(N) A, float(M) B) -> (C) {
           C(i) = A(i + 1) where exists B(i) + A(i), y = B(i + 2) * 2
         }",
        &["tc.yield", "} exists {", "tc.read", "B(i + 2)", "B(i)", "A(i)", "f32, f32, f32"],
    );
}

#[test]
fn casts_of_literals_are_constants_of_the_final_type() {
    let text = check(
        "def f(double(N) A) -> (C) { C(i) = A(i) * 2 + 0.5 }",
        &["2.000000e+00 : f64", "5.000000e-01 : f64"],
    );
    assert!(!text.contains("extf") && !text.contains("sitofp"), "{text}");
}

#[test]
fn float_to_integer_saturates() {
    check(
        "def f(float16(N) A) -> (C) { C(i) = int64(A(i)) }",
        &["arith.extf", "arith.fptosi", "9.22337203E+18", "9223372036854775807", "arith.cmpf uno"],
    );
}

#[test]
fn an_equivalence_is_kept_as_text() {
    check(
        "def f(float(N) A) -> (C) { C(i) = A(i) <=> copy(C(i),\n A(i) + 1) }",
        &["attributes {equivalent = \"copy(C(i), A(i) + 1)\"}"],
    );
}

#[test]
fn annotated_outputs_have_sizes() {
    check(
        "def f(float(N) A) -> (float(N, 3, Z) C) { C(i, j, k) = A(i) where j in 0:3, k in 0:4 }",
        &["{tc.name = \"C\", tc.sizes = [\"N\", 3, \"Z\"]}"],
    );
}

#[test]
fn deep_expressions_do_not_overflow_the_stack() {
    let deep = "A(".repeat(150) + "i" + &")".repeat(150);
    check(&format!("def f(int32(N) A) -> (C) {{ C(i) = {deep} }}"), &["tc.read"]);
    let chain = "A(i) > 0 ? A(i + 1) : ".repeat(150) + "A(i)";
    check(&format!("def f(int32(N) A) -> (C) {{ C(i) = {chain} }}"), &["scf.if"]);
    let sum = "i + ".repeat(150) + "i";
    check(&format!("def f(int32(N) A) -> (C) {{ C(i) = A({sum}) }}"), &["imap.apply"]);
}

#[test]
fn chains_of_lets_stay_small_or_are_refused() {
    let chain = |first: &str, next: &dyn Fn(usize) -> String, last: &str, num_lets: usize| {
        let lets: String = (1..num_lets).map(|n| format!(", x{n} = {}", next(n - 1))).collect();
        format!("def f(int32(N) A) -> (C) {{ C(i) = {last} where x0 = {first}{lets} }}")
    };
    let doubled = chain("i", &|n| format!("x{n} + x{n}"), "A(x59)", 60);
    check(&doubled, &["imap.apply"]);
    let long = chain("A(i)", &|n| format!("x{n} + 1"), "x9999", 10_000);
    check(&long, &["tc.read"]);
    let exponential =
        chain("A(i)", &|n| format!("i > {n} ? x{n} : x{n} + A(i)"), "A(i) > 0 ? x59 : 0", 60);
    fails(&exponential, "lets under conditions expand to more than");
    let deep = chain("A(i)", &|n| format!("x{n} + 1"), "A(i) > 0 ? x9999 : 0", 10_000);
    fails(&deep, "nested deeper than");
}

#[test]
fn relaxed_float_index_is_truncated() {
    let text = "def f(float(N) A, float(N) I) -> (B) { B(i) = A(I(i)) }";
    fails(text, "[TC0018]");
    let printed = imported(text, true).expect("the relaxed rules accept it");
    let (cast, index) = (printed.find("arith.fptosi"), printed.find("arith.index_cast"));
    assert!(cast.is_some() && cast < index, "{printed}");
}

/// Numbers and bools over the tensors, sizes, variables and the first `num_lets` lets of
/// [`random_program`].
fn number(num_lets: usize) -> BoxedStrategy<String> {
    let mut leaves = vec!["A(i)", "H(i + 1)", "U(i)", "L(i)", "i", "N", "3", "1.5"];
    leaves.extend(["x0", "x1", "x2"].iter().take(num_lets));
    let leaf = proptest::sample::select(leaves).prop_map(str::to_string);
    leaf.prop_recursive(5, 24, 4, |inner| {
        let pair = (inner.clone(), inner.clone());
        let condition = prop_oneof![
            Just("P(i)".to_string()),
            pair.clone().prop_map(|(a, b)| format!("{a} < {b}")),
            pair.clone().prop_map(|(a, b)| format!("(!bool({a}) || {b} != {b} && P(i + 2))")),
        ];
        let ops = proptest::sample::select(vec!["+", "-", "*", "/", "%"]);
        let types = proptest::sample::select(vec!["bool", "int8", "uint64", "float16", "double"]);
        prop_oneof![
            (pair.clone(), ops).prop_map(|((a, b), op)| format!("({a} {op} {b})")),
            pair.clone().prop_map(|(a, b)| format!("min({a}, -{b})")),
            (condition, pair).prop_map(|(c, (a, b))| format!("({c} ? {a} : {b})")),
            (types, inner.clone()).prop_map(|(ty, a)| format!("{ty}({a})")),
            inner.clone().prop_map(|a| format!("exp({a})")),
            inner.prop_map(|a| format!("A(int32({a}) / 2 + i)")),
        ]
    })
    .boxed()
}

fn random_program() -> impl Strategy<Value = String> {
    (number(0), number(1), number(2), number(3), number(3)).prop_map(
        |(x0, x1, x2, value, exists)| {
            format!(
                "def f(float(N) A, float16(N) H, uint8(N) U, int64(N) L, bool(N) P) -> (B) {{
               B(i) = {value} where i in 0:N, x0 = {x0}, x1 = {x1}, x2 = {x2}, exists {exists}
             }}"
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_import_verify_and_round_trip(text in random_program()) {
        let result = imported(&text, false);
        prop_assert!(result.is_ok(), "{result:?}\n{text}");
    }
}
