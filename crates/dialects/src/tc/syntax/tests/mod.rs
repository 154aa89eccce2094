//! Conformance, meanings and limits; each file's own tests stand beside its code.

mod random;

use serde_json::Value;

use super::ast::{self, Assign, Reduction, UnaryOp};
use super::checked::{ArithOp, Checked, Dim, Expr, ExprKind, Source};
use super::parser::{MAX_HEIGHT, MAX_NESTING};
use super::*;
use crate::text::{
    Diagnostic, Reason, SourceFile, diagnostic::MAX_DIAGNOSTICS, source::MAX_FILE_BYTES,
};

const SYNTAX: &str = include_str!("../../../../../../tests/conformance/tc/syntax.jsonl");
const PROGRAMS: [&str; 3] = [
    include_str!("../../../../../../tests/conformance/tc/ranges.jsonl"),
    include_str!("../../../../../../tests/conformance/tc/eval.jsonl"),
    include_str!("../../../../../../tests/conformance/tc/kernels.jsonl"),
];

fn rows(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect("conformance rows are JSON"))
        .collect()
}

/// Parses and, if that went well, checks.
fn analyze(text: &str, relaxed: bool) -> (Checked, Vec<Diagnostic>) {
    let source = SourceFile::new("test.tc", text);
    let (program, diagnostics) = parse_program(&source, &Options { relaxed });
    if diagnostics.is_empty() { check(&program) } else { (Checked::default(), diagnostics) }
}

fn parse(text: &str) -> ast::Program {
    let source = SourceFile::new("test.tc", text);
    let (program, diagnostics) = parse_program(&source, &Options::default());
    assert!(diagnostics.is_empty(), "{}", source.render_all(&diagnostics));
    program
}

fn accepted(text: &str) -> Checked {
    let (checked, diagnostics) = analyze(text, false);
    let errors = SourceFile::new("test.tc", text).render_all(&diagnostics);
    assert!(!diagnostics.iter().any(Diagnostic::is_error), "{errors}");
    checked
}

/// The reasons of all diagnostics with their lines and columns.
fn reasons(text: &str) -> Vec<String> {
    let source = SourceFile::new("test.tc", text);
    let (_, diagnostics) = analyze(text, false);
    let located = |each: &Diagnostic| {
        let (line, column) = source.line_col(each.span.start);
        format!("{line}:{column} {}", each.reason.name())
    };
    diagnostics.iter().map(located).collect()
}

/// The value of the last statement of the last function.
fn last_value(checked: &Checked) -> &Expr {
    let function = checked.functions.last().expect("a function");
    &function.statements.last().expect("a statement").value
}

/// Whether a row comes out as it says, or what came out instead.
fn conforms(row: &Value) -> Result<(), String> {
    let text = row["tc"].as_str().unwrap_or_default();
    let relaxed = row["relaxed_syntax"] == true || row["float_index"] == true;
    let (checked, diagnostics) = analyze(text, relaxed);
    let shown = || SourceFile::new("case.tc", text).render_all(&diagnostics);
    let error = diagnostics.iter().find(|each| each.is_error());
    // Documented: bool literals exist, so that a condition may be `true`.
    let documented = row["optional"] == true && row["reason"] == "not_bool";
    if row["expected"] == "reject" && !documented {
        let Some(error) = error else {
            return Err("accepted".to_owned());
        };
        let name = error.reason.name();
        let also = row["accept_reasons"].as_array();
        let expected = row["reason"] == name
            || also.is_some_and(|reasons| reasons.iter().any(|reason| reason == name));
        let stage = row["stage"] == error.reason.stage().name();
        return if expected && stage { Ok(()) } else { Err(shown()) };
    }
    if error.is_some() {
        return Err(shown());
    }
    let warned = diagnostics.iter().any(|each| each.reason == Reason::UninitializedReduction);
    let expected = row["warnings"]
        .as_array()
        .is_some_and(|warnings| warnings.iter().any(|each| each == "uninitialized_reduction"));
    if warned != expected {
        return Err(shown());
    }
    if let Some(ty) = row["result_type"].as_str() {
        let found = last_value(&checked).ty.to_string();
        if found != ty {
            return Err(format!("type is {found}"));
        }
    }
    Ok(())
}

#[test]
fn conformance_syntax() {
    let rows = rows(SYNTAX);
    assert_eq!(rows.len(), 173);
    let failures: Vec<String> = rows
        .iter()
        .filter_map(|row| Some(format!("{}: {}", row["name"], conforms(row).err()?)))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn conformance_programs_are_accepted() {
    for row in PROGRAMS.into_iter().flat_map(rows) {
        let Some(text) = row["tc"].as_str() else {
            continue;
        };
        let relaxed = row["relaxed_syntax"] == true || row["float_index"] == true;
        let (_, diagnostics) = analyze(text, relaxed);
        let error = diagnostics.iter().find(|each| each.is_error());
        let found = error.map(|error| error.reason.name());
        // Range inference finds the other errors of these rows.
        let expected = row["expected"]["error"]
            .as_str()
            .filter(|reason| Reason::ALL.iter().any(|each| each.name() == *reason));
        assert_eq!(found, expected, "{}: {diagnostics:?}", row["name"]);
    }
}

#[test]
fn conformance_programs_survive_printing() {
    for row in [SYNTAX].into_iter().chain(PROGRAMS).flat_map(rows) {
        let source = SourceFile::new("case.tc", row["tc"].as_str().unwrap_or_default());
        let relaxed = Options { relaxed: true };
        let (program, diagnostics) = parse_program(&source, &relaxed);
        if !diagnostics.is_empty() {
            continue;
        }
        let printed = SourceFile::new("case.tc", program.to_string());
        let (again, diagnostics) = parse_program(&printed, &relaxed);
        assert!(diagnostics.is_empty(), "{}", printed.render_all(&diagnostics));
        assert_eq!(again.to_string(), printed.text());
        let reasons = |program| {
            let (_, diagnostics) = check(program);
            diagnostics.iter().map(|each| each.reason).collect::<Vec<_>>()
        };
        assert_eq!(reasons(&again), reasons(&program), "{}", printed.text());
    }
}

#[test]
fn examples_are_accepted_without_a_warning() {
    for text in [
        include_str!("../../../../../../examples/tc/avgpool.tc"),
        include_str!("../../../../../../examples/tc/conv2d.tc"),
        include_str!("../../../../../../examples/tc/correlation.tc"),
        include_str!("../../../../../../examples/tc/group_norm.tc"),
        include_str!("../../../../../../examples/tc/lut.tc"),
        include_str!("../../../../../../examples/tc/matmul.tc"),
        include_str!("../../../../../../examples/tc/mlp3.tc"),
        include_str!("../../../../../../examples/tc/softmax.tc"),
    ] {
        assert_eq!(reasons(text), Vec::<String>::new(), "{text}");
    }
}

/// An expression in prefix notation.
fn prefix(expr: &ast::Expr) -> String {
    use ast::ExprKind;
    match &expr.kind {
        ExprKind::Unary { op, value } => {
            let op = if *op == UnaryOp::Neg { "-" } else { "!" };
            format!("({op} {})", prefix(value))
        }
        ExprKind::Binary { op, lhs, rhs } => {
            format!("({} {} {})", op.name(), prefix(lhs), prefix(rhs))
        }
        ExprKind::Select { condition, on_true, on_false } => {
            format!("(? {} {} {})", prefix(condition), prefix(on_true), prefix(on_false))
        }
        _ => expr.to_string(),
    }
}

#[test]
fn precedence_and_grouping() {
    for (text, expected) in [
        ("-3%2+4*5+7-a", "(- (+ (+ (% (- 3) 2) (* 4 5)) 7) a)"),
        ("a - b - c", "(- (- a b) c)"),
        ("a ? 3 : b ? 3 : 4", "(? a 3 (? b 3 4))"),
        ("a ? b ? 1 : 2 : 3", "(? a (? b 1 2) 3)"),
        ("a > 0 || b < 0 ? a + 1 : a * 2", "(? (|| (> a 0) (< b 0)) (+ a 1) (* a 2))"),
        ("a || b && c == d + e * !f", "(|| a (&& b (== c (+ d (* e (! f))))))"),
        ("a * b + c < d && e || f", "(|| (&& (< (+ (* a b) c) d) e) f)"),
        ("a < b == c > d", "(> (== (< a b) c) d)"),
        ("- - a * b", "(* (- (- a)) b)"),
        ("a / b * c % d", "(% (* (/ a b) c) d)"),
    ] {
        let program = parse(&format!("def f() -> (o) {{ o = {text} }}"));
        let value = &program.defs[0].statements[0].value;
        assert_eq!(prefix(value), expected);
        assert_eq!(prefix(&reparsed(value)), expected);
    }
}

fn reparsed(value: &ast::Expr) -> ast::Expr {
    let mut program = parse(&format!("def f() -> (o) {{ o = {value} }}"));
    program.defs.remove(0).statements.remove(0).value
}

#[test]
fn parentheses_are_printed_where_needed() {
    for text in [
        "a - (b - c)",
        "(a + b) * c",
        "-(a + b)",
        "(a ? b : c) ? d : e",
        "(a ? b : c) + 1",
        "!(a < b) && c",
        "min(a + b, max(c, 1.5))",
    ] {
        let program = parse(&format!("def f() -> (o) {{ o = {text} }}"));
        assert_eq!(program.defs[0].statements[0].value.to_string(), text);
    }
}

#[test]
fn printing_a_whole_program() {
    let text = "\
def f(float(N, 3) A, bool b) -> (int32(N) O, p) {
  O(i) max=! int32(x * A(i, j)) <=> g(A(i, j)) where x = 2., j in 0:A.1, exists A(i, 0)
  p += b ? O.0 : -1
}

def g() -> () {
}
";
    assert_eq!(parse(text).to_string(), text);
}

#[test]
fn several_errors_in_one_file() {
    let text = "\
def f(half(N) A) -> (O) { O(i) = A(i) }
def g(float(N) A) -> (O, P) {
  O(i) = A(i) + * 2
  P(i) = A(i);
  O(i) = A(i) where i in 0, x = 1
  O(i) = A(i)
  P(i) -= A(i)
}
x
def h() -> (O) { O = 1
def k() -> (O) { O = 0x1 }
";
    let found = reasons(text);
    assert!(found.iter().all(|each| each.ends_with(" syntax")));
    let places: Vec<_> = found.iter().filter_map(|each| each.split(' ').next()).collect();
    let expected = ["1:7", "3:17", "4:14", "5:27", "7:8", "9:1", "11:1", "11:22"];
    assert_eq!(places, expected);
}

#[test]
fn messages_name_what_was_found_and_expected() {
    for (text, expected) in [
        (
            "def f(half(N) A) -> (O) { }",
            "t.tc:1:7: error: expected a scalar type, found 'half' [TC0001]",
        ),
        (
            "def f() -> (O) { O = 1 & 2 }",
            "t.tc:1:24: error: expected a statement or '}', found character '&' [TC0001]",
        ),
        (
            "def f() -> (O) { O = 1 ",
            "t.tc:1:24: error: expected a statement or '}', found end of file [TC0001]",
        ),
        (
            "def f() -> (O) { O(0 1) = 1 }",
            "t.tc:1:22: error: expected ',', ')' or an operator, found '1' [TC0001]",
        ),
    ] {
        let source = SourceFile::new("t.tc", text);
        let (_, diagnostics) = parse_program(&source, &Options::default());
        let rendered = source.render(&diagnostics[0]);
        assert_eq!(rendered.lines().next(), Some(expected));
    }
}

/// One mistake each: the text of the body over a fixed head, and what is reported.
#[test]
fn each_mistake_has_its_reason() {
    let head = "def f(float(N, M) A, int32(N) I, float s, bool(N) B) -> (O, P) {";
    for (body, expected) in [
        ("O(i) = Q(i)", "undeclared"),
        ("O(i) = I(i) + Q.0", "undeclared"),
        ("O(i) = P(i)", "undeclared"),
        ("O(i) += O(i) + I(i)", "undeclared"),
        ("O(i) = I(i) <=> g(z)", "undeclared"),
        ("O(i) = I(i) where N in 0:2", "undeclared"),
        ("O(i,i) = A(i,i)", "redefined"),
        ("O(i) = x where x = I(i), x = 1", "redefined"),
        ("O(i) = I(i) where i = 1", "missing_reduction"),
        ("O(I(i)) = 1", "missing_reduction"),
        ("O(i, I(i)) = 1", "missing_reduction"),
        ("O(A(i, 0)) += 1", "index_not_integral"),
        ("O(Q(i)) += 1", "undeclared"),
        ("O(i, i) += 1 where i in 0:N", "redefined"),
        ("O(i) = 1 where i in 0:N O(i) += 1 where i = I(j), i in 0:N", "undeclared"),
        ("N(i) = I(i)", "redefined"),
        ("O(exp) = I(exp)", "builtin_redefined"),
        ("O(i) = I(i) where sin = 1", "builtin_redefined"),
        ("O(i) = I(i) where sin in 0:3", "builtin_redefined"),
        ("O(i) = I(i) + log", "builtin_redefined"),
        ("sin(i) = I(i)", "builtin_redefined"),
        ("O(i) = exp()", "builtin_arity"),
        ("O(i) = fmax(I(i))", "builtin_arity"),
        ("O(i) = A(i)", "rank_mismatch"),
        ("O(i) = s(i)", "rank_mismatch"),
        ("O(i) = I()", "rank_mismatch"),
        ("O(i) = I(i) * A.2", "rank_mismatch"),
        ("O(i) = I(i) O += 1", "rank_mismatch"),
        ("O(i) = I", "scalar_expected"),
        ("O(i) = N(i)", "not_a_tensor"),
        ("O(i) = i(0)", "not_a_tensor"),
        ("O(i) = x(0) where x = I(i)", "not_a_tensor"),
        ("O(i) = i.0", "not_a_tensor"),
        ("O(i) = sin.0", "not_a_tensor"),
        ("O(i) = I(s)", "index_not_integral"),
        ("O(i) = I(i * 1.5)", "index_not_integral"),
        ("O(i) = !I(i) ? 1 : 2", "not_bool"),
        ("O(i) = B(i) || I(i)", "not_bool"),
        ("O(i) = I(i) ? 1 : 2", "not_bool"),
        ("O(i) = I(i) where i in 0:s", "tensor_in_where"),
        ("O(i) = I(i) where i in I(0):N", "tensor_in_where"),
        ("O(i) = I(i) where x = I(0), i in 0:x", "tensor_in_where"),
        ("O(i) = I(i) where i in 0:N/2.0", "where_not_integral"),
        ("O(i) = A(i,j)", "missing_reduction"),
        ("O = 1 where exists I(i)", "missing_reduction"),
        ("I(i) = 1 where i in 0:2", "input_immutable"),
        ("T(i) = I(i)", "temporary"),
        ("O(i) = I(i) O(i) += 0.5", "narrowing"),
        ("O(i) = 2147483648", "out_of_range"),
        ("O(i) = -2147483648", "out_of_range"),
        ("O(i) = 1e39", "out_of_range"),
    ] {
        let rest = if body.contains("P(i)") { "" } else { "P = s" };
        let (_, diagnostics) = analyze(&format!("{head} {body} {rest} }}"), false);
        let errors = diagnostics.iter().filter(|each| each.is_error());
        let mut found: Vec<_> = errors.map(|error| error.reason.name()).collect();
        // What no statement assigns is reported as well where the one that should is wrong.
        found.retain(|&name| name != "undeclared" || expected == "undeclared");
        found.dedup();
        assert_eq!(found, [expected], "{body}");
    }
}

#[test]
fn mistakes_in_heads() {
    for (text, expected) in [
        ("def f(A) -> () {}", vec!["1:7 untyped_input"]),
        ("def f(float A, float A) -> () {}", vec!["1:22 redefined"]),
        ("def f(float(N) N) -> () {}", vec!["1:16 redefined"]),
        ("def f(float(N) A, float(A) B) -> () {}", vec!["1:25 redefined"]),
        ("def f(float(sin) A) -> () {}", vec!["1:13 builtin_redefined"]),
        ("def f(float A) -> (A) {}", vec!["1:20 redefined"]),
        ("def f(float A) -> (A) { A = 1 }", vec!["1:25 input_immutable"]),
        ("def f() -> (O, O) { O = 1 }", vec!["1:16 redefined"]),
        ("def f() -> (O) {}", vec!["1:13 undeclared"]),
        ("def f(float(0) A) -> () {}", vec!["1:13 out_of_range"]),
        ("def f(float(2147483648) A) -> () {}", vec!["1:13 out_of_range"]),
        ("def f() -> () {} def f() -> () {}", vec!["1:22 redefined"]),
        ("def f(float(N) A) -> (float(N, K) O) { O(i) = A(i) }", vec!["1:40 annotation_rank"]),
        ("def f(float A) -> (uint8 O) { O = 1 }", vec!["1:35 narrowing"]),
        ("def f(float(N) A) -> (float(K) O) { O(i) = A(i) * K }", vec!["1:51 undeclared"]),
    ] {
        assert_eq!(reasons(text), expected, "{text}");
    }
}

#[test]
fn one_mistake_is_reported_once() {
    let text = "\
def f(float(N) A) -> (O, P) {
  O(i) = A(i, j) + Q(k)
  P(i) = O(i) + 1
  T(i) = P(i)
  T(i) += T(i)
}
";
    assert_eq!(reasons(text), ["2:10 rank_mismatch", "2:20 undeclared", "4:3 temporary"]);
}

#[test]
fn local_tensors_are_not_outputs() {
    let text = "def f(float(N, M) A) -> (O) {
  local sum(i) +=! A(i, j)
  local local(i) = sum(i) * 0.5
  local(i) += sum(i) where i in 0:1
  O(i) = local(i) / sum(i)
}
";
    assert_eq!(parse(text).to_string(), text);
    let checked = accepted(text);
    let function = &checked.functions[0];
    assert_eq!(function.locals, ["sum", "local"]);
    let names: Vec<_> = function.statements.iter().map(|each| function.target(each)).collect();
    assert_eq!(names, ["sum", "local", "local", "O"]);
    assert_eq!(function.outputs.len(), 1);
    // A declaration needs a new name; `op=` needs a value.
    let declared = |statement: &str| {
        reasons(&format!("def f(float(N) A) -> (O) {{\n{statement}\nO(i) = A(i) }}"))
    };
    assert_eq!(declared("local A(i) = A(i)"), ["2:7 redefined"]);
    assert_eq!(declared("local O(i) = A(i)"), ["2:7 redefined"]);
    assert_eq!(declared("local exp(i) = A(i)"), ["2:7 builtin_redefined"]);
    assert_eq!(declared("local t(i) = A(i) local t(i) = A(i)"), ["2:25 redefined"]);
    assert_eq!(declared("local t += A(i)"), ["2:9 uninitialized_local"]);
    assert_eq!(declared("local t(i) = t(i)"), ["2:14 undeclared"]);
    assert_eq!(declared("t(i) = A(i)"), ["2:1 temporary"]);
    // After a mistake the parser goes on at a declaration too.
    assert_eq!(
        reasons("def f(float(N) A) -> (O) { O(i) = * local t(i) = * }"),
        ["1:35 syntax", "1:50 syntax"]
    );
}

#[test]
fn statements_are_in_single_assignment_form() {
    let checked = accepted(
        "def f(float(N, 7) A) -> (O, Q) {
           O(i) +=! A(i, j)
           O(i) = O(i) / A.1 where i in 0:O.0
           Q(k) max= O(k)
           O(i) *= O(i)
         }",
    );
    let function = &checked.functions[0];
    assert_eq!(function.inputs[0].dims, [Dim::Size(0), Dim::Const(7)]);
    let previous: Vec<_> = function.statements.iter().map(|each| each.previous).collect();
    assert_eq!(previous, [None, Some(0), None, Some(1)]);
    assert_eq!(function.outputs[0].statement, 3);
    let caller: Vec<_> =
        function.statements.iter().map(|each| each.accumulates_caller_value()).collect();
    assert_eq!(caller, [false, false, true, false]);

    let second = &function.statements[1];
    let ExprKind::Arith { op, lhs, rhs } = &second.value.kind else {
        panic!("{:?}", second.value);
    };
    assert_eq!(*op, ArithOp::Div);
    let ExprKind::Read { source, indices } = &lhs.kind else {
        panic!("{lhs:?}");
    };
    assert_eq!(*source, Source::Statement(0));
    assert_eq!(indices[0].kind, ExprKind::Variable(0));
    assert_eq!(indices[0].ty, Type::Index);
    let ExprKind::Cast { value, explicit } = &rhs.kind else {
        panic!("{rhs:?}");
    };
    assert!(!explicit);
    assert_eq!(value.kind, ExprKind::Int(7));
    let upper = &second.ranges[0].upper;
    assert_eq!(upper.ty, Type::Index);
    assert_eq!(upper.kind, ExprKind::Extent { statement: 0, dim: 0 });
}

#[test]
fn reduction_variables_are_in_order_of_the_text() {
    let checked = accepted(
        "def f(float(N, M) A) -> (O) { O(i) +=! A(b, a) * i * c where c in 0:2, a in 0:3, i in 0:1 }",
    );
    let statement = &checked.functions[0].statements[0];
    let names: Vec<_> = statement
        .reductions
        .iter()
        .map(|&variable| statement.variables[variable].name.as_str())
        .collect();
    assert_eq!(names, ["b", "a", "c"]);
    assert_eq!(statement.indices()[0].name, "i");
    assert_eq!(statement.reduction(), Some((Reduction::Add, true)));
}

#[test]
fn reduction_without_reduction_variable_is_assignment() {
    let checked = accepted("def f(float(N) A) -> (O) { O(i) +=! A(i) }");
    let statement = &checked.functions[0].statements[0];
    assert_eq!(statement.reduction(), None);
    assert_eq!(statement.assign, Assign::Reduce { op: Reduction::Add, init: true });
}

/// A typed expression in prefix notation, with the type of each node that is not an index.
fn typed(expr: &Expr) -> String {
    let ty = expr.ty;
    let many = |exprs: &[Expr]| exprs.iter().map(typed).collect::<Vec<_>>().join(" ");
    match &expr.kind {
        ExprKind::Int(value) => format!("{value}:{ty}"),
        ExprKind::Float { text, .. } => format!("{text}:{ty}"),
        ExprKind::Bool(value) => value.to_string(),
        ExprKind::Variable(variable) => format!("v{variable}:{ty}"),
        ExprKind::Size(size) => format!("n{size}:{ty}"),
        ExprKind::Extent { statement, dim } => format!("s{statement}.{dim}:{ty}"),
        ExprKind::Let(position) => format!("l{position}:{ty}"),
        ExprKind::Read { indices, .. } => format!("[{}]:{ty}", many(indices)),
        ExprKind::Neg(value) => format!("(- {})", typed(value)),
        ExprKind::Not(value) => format!("(! {})", typed(value)),
        ExprKind::Arith { op, lhs, rhs } => format!("({op:?} {} {})", typed(lhs), typed(rhs)),
        ExprKind::Compare { op, lhs, rhs } => format!("({op:?} {} {})", typed(lhs), typed(rhs)),
        ExprKind::And(lhs, rhs) => format!("(&& {} {})", typed(lhs), typed(rhs)),
        ExprKind::Or(lhs, rhs) => format!("(|| {} {})", typed(lhs), typed(rhs)),
        ExprKind::Select { condition, on_true, on_false } => {
            format!("(? {} {} {})", typed(condition), typed(on_true), typed(on_false))
        }
        ExprKind::Cast { value, explicit } => {
            format!("{}{ty}({})", if *explicit { "!" } else { "" }, typed(value))
        }
        ExprKind::Call { builtin, args } => format!("({} {})", builtin.name, many(args)),
    }
}

#[test]
fn conversions_are_explicit() {
    let head =
        "def f(uint8(N) U, int16(N) S, float(N) F, double(N) D, bool(N) B, float16(N) H) -> (O)";
    for (value, expected) in [
        ("U(i) + S(i)", "(Add int16([v0:index]:uint8) [v0:index]:int16)"),
        ("U(i) + 1", "(Add int32([v0:index]:uint8) 1:int32)"),
        ("B(i) ? 1 : F(i)", "(? [v0:index]:bool float(1:int32) [v0:index]:float)"),
        ("B(i) * 2.", "(Mul float([v0:index]:bool) 2.:float)"),
        ("exp(H(i))", "(exp float([v0:index]:float16))"),
        ("fmax(D(i), 0)", "(fmax [v0:index]:double double(0:int32))"),
        ("-B(i)", "(- [v0:index]:bool)"),
        ("min(H(i), i)", "(Min [v0:index]:float16 float16(v0:int32))"),
        ("int8(i)", "!int8(v0:int32)"),
        ("F(i) < 0", "(Less [v0:index]:float float(0:int32))"),
    ] {
        let checked = accepted(&format!("{head} {{ O(i) = {value} where i in 0:3 }}"));
        assert_eq!(typed(last_value(&checked)), expected);
    }
}

#[test]
fn indices_are_computed_wide() {
    let head = "def f(float(N) A, uint8(N) U) -> (O)";
    for (index, expected) in [
        ("2*i + N - 1", "(Sub (Add (Mul 2:index v0:index) n0:index) 1:index)"),
        ("U(i) + 1", "(Add index([v0:index]:uint8) 1:index)"),
        ("i < N ? i : -i", "(? (Less v0:index n0:index) v0:index (- v0:index))"),
        ("int32(A(i)) + i", "(Add index(!int32([v0:index]:float)) v0:index)"),
        ("int64(i + 1)", "(Add v0:index 1:index)"),
        ("int8(i)", "index(!int8(v0:int32))"),
        ("i == 0", "index((Equal v0:int32 0:int32))"),
        (
            "A(i) < 0 && i < 2 ? 1 : 0",
            "(? (&& (Less [v0:index]:float float(0:int32)) (Less v0:index 2:index)) 1:index 0:index)",
        ),
        ("x + y", "(Add l0:index l1:index)"),
    ] {
        let text = format!("{head} {{ O(i) = A({index}) where x = i + 1, y = x * x }}");
        let checked = accepted(&text);
        let ExprKind::Read { indices, .. } = &last_value(&checked).kind else {
            panic!("{index}");
        };
        assert_eq!(typed(&indices[0]), expected);
        let lets = &checked.functions[0].statements[0].lets;
        let wide = lets[1].index.as_ref().map(typed);
        assert_eq!(wide.as_deref(), Some("(Mul l0:index l0:index)"));
    }
}

#[test]
fn relaxed_float_index_keeps_its_clamp_visible() {
    let text = "def f(float(J) B, float(I) C) -> A { A(i) = B(max(min(C(i), J-1), int(0))) }";
    let (checked, diagnostics) = analyze(text, true);
    assert!(diagnostics.is_empty());
    let ExprKind::Read { indices, .. } = &last_value(&checked).kind else {
        panic!();
    };
    assert_eq!(
        typed(&indices[0]),
        "(Max (Min index([v0:index]:float) (Sub n0:index 1:index)) 0:index)"
    );
    assert_eq!(reasons(text), ["1:34 syntax"]);
}

#[test]
fn annotations_and_kept_types() {
    let checked = accepted(
        "def f(bool(N) B, float(N) A) -> (int32 c, double(K, N) D, e) {
           c +=! B(i)
           D(i, j) = A(j) where i in 0:2
           e = 1
           e = 1.5
           e += 1
         }",
    );
    let function = &checked.functions[0];
    let types: Vec<_> = function.statements.iter().map(|each| each.scalar).collect();
    use ScalarType::{Float32, Float64, Int32};
    assert_eq!(types, [Int32, Float64, Int32, Float32, Float32]);
    assert_eq!(typed(&function.statements[0].value), "int32([v0:index]:bool)");
    assert_eq!(function.outputs[1].annotation, Some(vec![Dim::Free("K".to_owned()), Dim::Size(0)]));
    assert_eq!(function.outputs[2].scalar, Float32);
}

#[test]
fn locals_hide_names_of_the_function() {
    let checked = accepted("def f(float(N) A) -> (O) { O(N) = A(N) * A.0 + x where x = N }");
    let text = typed(last_value(&checked));
    assert_eq!(text, "(Add (Mul [v0:index]:float float(n0:int32)) float(l0:int32))");
}

#[test]
fn chained_comparison_is_warned_of() {
    let head = "def f(float(N) A) -> (O) { O(i) =";
    assert_eq!(reasons(&format!("{head} 0 < A(i) < 1 }}")), ["1:35 chained_comparison"]);
    assert!(reasons(&format!("{head} (0 < A(i)) == (A(i) < 1) }}")).is_empty());
}

/// The one diagnostic of a program that goes over a limit.
fn limit(text: &str) -> (usize, usize) {
    let source = SourceFile::new("test.tc", text);
    let (_, diagnostics) = analyze(text, false);
    assert_eq!(diagnostics[0].reason, Reason::Limit, "{diagnostics:?}");
    source.line_col(diagnostics[0].span.start)
}

#[test]
fn nesting_is_limited() {
    let n = 100_000;
    let body = |value: String| format!("def f() -> (o) {{ o = {value} }}");
    for value in [
        format!("{}1{}", "(".repeat(n), ")".repeat(n)),
        format!("{}1", "- ".repeat(n)),
        format!("1{}", " + 1".repeat(n)),
        format!("{}1", "true ? 1 : ".repeat(n)),
        format!("{}true{} ? 1 : 2", "true ? ".repeat(n), " : 1".repeat(n)),
        format!("{}1{}", "float(".repeat(n), ")".repeat(n)),
        format!("{}1{}", "exp(".repeat(n), ")".repeat(n)),
        format!("{}1{}", "min(1, ".repeat(n), ")".repeat(n)),
    ] {
        limit(&body(value));
    }
    limit(&"(".repeat(n).replacen('(', "def f() -> (o) { o = (", 1));
}

/// Programs that reach the limits exactly, through each kind of node.
#[test]
fn nesting_up_to_the_limits_is_handled_everywhere() {
    let nested = MAX_NESTING as usize - 1;
    let high = MAX_HEIGHT as usize - 1;
    for value in [
        format!("{}1{}", "(".repeat(nested), ")".repeat(nested)),
        format!("{}1", "- ".repeat(high)),
        format!("1{}", " + 1.0".repeat(high)),
        format!("{}1", "true ? 1.0 : ".repeat(nested)),
        format!("{}i{}", "I(".repeat(nested), ")".repeat(nested)),
        format!("{}i{}", "exp(".repeat(nested), ")".repeat(nested)),
        format!("{}1.5{}", "1 + (".repeat(nested), ")".repeat(nested)),
    ] {
        let text = format!("def f(int32(N) I) -> (o) {{ o +=! {value} where exists I(i) }}");
        let checked = accepted(&text);
        let printed = parse(&text).to_string();
        assert_eq!(checked.clone(), checked);
        assert_eq!(parse(&printed).to_string(), printed);
    }
}

#[test]
fn sizes_of_files_and_tokens_are_limited() {
    let long = format!("def f() -> (o) {{ o = {} }}", "a".repeat(2000));
    assert_eq!(limit(&long), (1, 22));
    let statements = "o = 1\n".repeat(400_000);
    assert_eq!(limit(&format!("def f() -> (o) {{ {statements} }}")), (349_523, 3));
    let bytes = vec![b'('; MAX_FILE_BYTES + 1];
    let (_, error) = *SourceFile::from_bytes("big.tc", bytes, Reason::Syntax, Reason::Limit)
        .expect_err("over the limit");
    assert_eq!(error.reason, Reason::Limit);
}

#[test]
fn many_errors_are_capped() {
    let text = "def f() -> (o) { o = Q(1) }\n".repeat(1000);
    let (_, diagnostics) = analyze(&text, false);
    assert_eq!(diagnostics.len(), MAX_DIAGNOSTICS + 1);
    let (_, diagnostics) = analyze(&"def ".repeat(10_000), false);
    assert_eq!(diagnostics.len(), MAX_DIAGNOSTICS + 1);
}

#[test]
fn truncated_programs_are_refused_without_a_panic() {
    let text = "def f(float(N, M) A, int32 b) -> (float(N) O) { # c\u{e9}\n  O(i) +=! min(A(i, j), 1.5e-3) \
                * float(b) <=> g(A(i, j)) where x = b ? 1 : 2, j in 0:A.1, exists A(i, 0)\n}\n";
    for end in 0..text.len() {
        if let Some(part) = text.get(..end) {
            let source = SourceFile::new("part.tc", part);
            let (_, diagnostics) = analyze(part, false);
            source.render_all(&diagnostics);
        }
    }
}
