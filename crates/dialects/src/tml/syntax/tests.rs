use super::checked::{ExprKind, MAX_RANK, round_up};
use super::parser::{MAX_HEIGHT, MAX_NESTING};
use super::*;
use proptest::prelude::*;

fn front_end(text: &str) -> (Checked, Vec<Diagnostic>) {
    let (program, mut diagnostics) = parse_program(&SourceFile::new("p.tml", text));
    let (checked, found) = check(&program);
    diagnostics.extend(found);
    (checked, diagnostics)
}

fn rendered(text: &str) -> String {
    SourceFile::new("p.tml", text).render_all(&front_end(text).1)
}

/// The value of the only statement, which must be well-typed.
fn value(text: &str) -> checked::Expr {
    let (mut checked, diagnostics) = front_end(text);
    assert!(diagnostics.is_empty(), "{text}: {diagnostics:?}");
    checked.statements.remove(0).value
}

fn extents(text: &str) -> Vec<i64> {
    value(text).ty.extents
}

const DECLARATIONS: &str = "var s : []\nvar a : [2 3]\nvar b : [3 2]\nvar t : [2 3 4 5 2]\n";

#[test]
fn failures_name_their_rule_and_the_declared_extents() {
    let cases = [
        ("var a : []", "5:5", "'a' is declared twice, expected a new name (rule s-var) [TML0101]"),
        (
            "x = a",
            "5:1",
            "'x' is assigned to, expected a declared variable (rule ok-stmt) [TML0102]",
        ),
        (
            "a = b",
            "5:5",
            "the value has type [3 2], expected [2 3], the type of 'a' (rule ok-stmt) [TML0103]",
        ),
        ("a = x", "5:5", "'x' is used, expected a declared variable (rule t-var) [TML0104]"),
        (
            "s = a . [1 2]",
            "5:10",
            "dimensions 1 and 2 have extents 2 and 3, expected equal extents (rule t-contr) [TML0105]",
        ),
        (
            "a = a + b",
            "5:5",
            "the operands of '+' have types [2 3] and [3 2], expected equal types (rule t-elem) [TML0105]",
        ),
        (
            "a = a - s",
            "5:5",
            "the operands of '-' have types [2 3] and [], expected equal types (rule t-elem) [TML0105]",
        ),
        (
            "a = a * s",
            "5:5",
            "the operands of '*' have types [2 3] and [], expected equal types, or a scalar on the left (rules t-elem, t-smul) [TML0105]",
        ),
        (
            "a = s / a",
            "5:5",
            "the operands of '/' have types [] and [2 3], expected equal types, or a scalar on the right (rules t-elem, t-sdiv) [TML0105]",
        ),
        (
            "s = a . [1 3]",
            "5:12",
            "index 3 is no dimension of the operand, expected one from 1 to 2 (rule t-contr) [TML0106]",
        ),
        (
            "s = a . [0 1]",
            "5:10",
            "index 0 is no dimension of the operand, expected one from 1 to 2 (rule t-contr) [TML0106]",
        ),
        (
            "s = s . [1 2]",
            "5:10",
            "index 1 is no dimension of the operand, expected a tensor with dimensions instead of a scalar (rule t-contr) [TML0106]",
        ),
        (
            "s = a . [1 1]",
            "5:12",
            "dimension 1 is numbered twice, expected each once (rule t-contr) [TML0106]",
        ),
        (
            "s = t . [1 5, 5 2]",
            "5:15",
            "dimension 5 is numbered twice, expected each once (rule t-contr) [TML0106]",
        ),
        (
            "b = a ^ [1 3]",
            "5:12",
            "index 3 is no dimension of the operand, expected one from 1 to 2 (rule t-trans) [TML0106]",
        ),
        (
            "t = t ^ [1 2 3]",
            "5:10",
            "3 dimensions are permuted, expected all 5 of the operand, or two to swap (rule t-trans) [TML0106]",
        ),
        (
            "t = t ^ [1 2 3 4 1]",
            "5:18",
            "dimension 1 is numbered twice, expected each once (rule t-trans) [TML0106]",
        ),
        (
            "var z : [2 0]",
            "5:12",
            "dimension 2 of 'z' has extent 0, expected a positive extent (rule s-var) [TML0107]",
        ),
        (
            "var z : [2147483648]",
            "5:10",
            "dimension 1 of 'z' has extent 2147483648, expected at most 2147483647 [TML0002]",
        ),
        (
            "var z : f32 [2 3] z = a",
            "5:23",
            "the value has type [2 3], expected f32 [2 3], the type of 'z' (rule ok-stmt) [TML0103]",
        ),
        (
            "var z : f32 [] s = z # s",
            "5:20",
            "the operands of '#' have elements of f32 and f64, expected equal types (rule t-prod) [TML0105]",
        ),
    ];
    for (statement, place, message) in cases {
        let text = format!("{DECLARATIONS}{statement}");
        let found = rendered(&text);
        let expected = format!("p.tml:{place}: error: {message}\n");
        assert!(found.starts_with(&expected), "{statement}: {found}");
    }
    let found = rendered(&format!("{DECLARATIONS}s = a . [1 2]"));
    for note in [
        "p.tml:2:10: note: extent 2 is declared here, as dimension 1 of 'a'",
        "p.tml:2:12: note: extent 3 is declared here, as dimension 2 of 'a'",
    ] {
        assert!(found.contains(note), "{found}");
    }
}

#[test]
fn syntax_errors_say_what_to_try() {
    let cases = [
        ("var a : [2]\na = a\nvar b : [2]", "3:1", "expected a statement, found a declaration"),
        ("var 1a : [2]", "1:5", "expected the name of a variable, found '1'"),
        ("var a : [2, 3]", "1:11", "expected an extent or ']', found ','"),
        ("var var : [2]", "1:5", "expected the name of a variable, found 'var'"),
        ("var a_b : [2]", "1:6", "expected ':' and the type of the variable, found character '_'"),
        ("var a : f16 [2]", "1:9", "expected 'f32', 'f64' or '[' and the extents, found 'f16'"),
        ("var a : [] a = a . [1]", "1:22", "expected the number of a dimension, found ']'"),
        ("var a : [] a = a ^ [1]", "1:22", "expected the number of a dimension, found ']'"),
        ("var a : [2 2] a = a ^ [1, 2]", "1:25", "expected the number of a dimension, found ','"),
        ("var var a : []", "1:5", "expected the name of a variable, found 'var'"),
        ("var a : [] a = -a", "1:16", "expected a variable or '(', found '-'"),
        ("var a : [] a = 2 * a", "1:16", "expected a variable or '(', found '2'"),
        ("var a : [] a = (a", "1:18", "expected ')' or an operator, found end of file"),
        (
            "var a : [] a = a a",
            "1:19",
            "expected '=' and the value of the statement, found end of file",
        ),
        ("var a : [] a = ()", "1:17", "expected a variable or '(', found ')'"),
        ("var a : [] )", "1:12", "expected a declaration or a statement, found ')'"),
        ("in a : []", "1:4", "expected '=' and the value of the statement, found 'a'"),
        ("\u{e9}", "1:1", "expected a declaration or a statement, found character '\u{e9}'"),
    ];
    for (text, place, message) in cases {
        let found = rendered(text);
        let expected = format!("p.tml:{place}: error: {message} [TML0001]\n");
        assert!(found.starts_with(&expected), "{text}: {found}");
    }
}

#[test]
fn words_are_keywords_where_they_must_be() {
    let (checked, diagnostics) = front_end(
        "in var in : f32 [2] out var out : f32[2] inout var inout:f32[2] var f32 : f64 []
         out = in inout = out // a comment = [",
    );
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let found: Vec<_> = checked.variables.iter().map(|it| (it.live_in, it.live_out)).collect();
    assert_eq!(found, [(true, false), (false, true), (true, true), (false, false)]);
    let (checked, _) = front_end("var a : [] a = a");
    assert!(checked.variables[0].live_in && checked.variables[0].live_out);
}

#[test]
fn sugar_expands_to_the_core() {
    let text =
        |value: &str| format!("var t : [2 3 4 5 2] var a : [3 4 5] var b : [3 2 2 5 4] {value}");
    assert_eq!(extents(&text("a = t . [5 1]")), [3, 4, 5]);
    let several = value("var t : [2 3 4 3 2 4] var r : [] r = t . [2 4, 3 6, 1 5]");
    let single = value("var t : [2 3 4 3 2 4] var r : [] r = t . [2 4] . [2 4] . [1 2]");
    assert_eq!(several.ty.extents, [0_i64; 0]);
    fn kinds(expr: &checked::Expr) -> Vec<String> {
        let head = match &expr.kind {
            ExprKind::Contract(_, dims) => format!("contract {dims:?}"),
            ExprKind::Transpose(_, dims) => format!("transpose {dims:?}"),
            _ => "leaf".to_string(),
        };
        [vec![head], expr.operands().flat_map(kinds).collect()].concat()
    }
    assert_eq!(kinds(&several), kinds(&single));
    assert_eq!(kinds(&several).len(), 4);
    // Dimension k of the result is dimension p_k of the operand.
    assert_eq!(extents(&text("b = t ^ [2 1 5 4 3]")), [3, 2, 2, 5, 4]);
    // Two entries are a swap, also where they look like the identity.
    assert_eq!(extents("var a : [2 3] var b : [3 2] b = a ^ [1 2]"), [3, 2]);
    assert_eq!(kinds(&value("var t : [2 3 4] t = t ^ [1 2 3]")), ["leaf"]);
}

#[test]
fn one_precedence_from_left_to_right() {
    let value = value("var a : [2] var m : [2 2] m = a + a # a - m ^ [1 2]");
    assert!(matches!(value.kind, ExprKind::Transpose(..)));
}

#[test]
fn uninitialized_uses_are_warned_of_where_qualifiers_say_what_is_initialized() {
    let text = "in var a : [2]\nvar t : [2]\nout var r : [2]\nr = t + a\nt = r\nr = t";
    let (checked, diagnostics) = front_end(text);
    assert_eq!(checked.statements.len(), 3);
    assert!(!diagnostics[0].is_error());
    assert_eq!(diagnostics.len(), 1);
    let found = SourceFile::new("p.tml", text).render_all(&diagnostics);
    let expected =
        "p.tml:4:5: warning: 't' is used before anything is assigned to it [TML0201]\nr = t + a\n";
    assert!(found.starts_with(expected), "{found}");
    assert_eq!(front_end("var a : [] var b : [] b = a").1, []);
}

#[test]
fn results_that_nothing_is_assigned_to_are_warned_of() {
    let found = rendered("out var r : [2]\nin var a : [2]\nout var s : [2]\ns = a");
    let expected = "p.tml:1:9: warning: 'r' is a result, but nothing is assigned to it [TML0202]\n";
    assert!(found.starts_with(expected), "{found}");
    assert_eq!(found.matches("TML0202").count(), 1, "{found}");
}

#[test]
fn undeclared_names_are_reported_once() {
    let found = rendered("var a : [2]\na = b + b\nA = a\na = b\nA = b");
    assert_eq!(found.matches("'b' is used").count(), 1, "{found}");
    assert_eq!(found.matches("'A' is assigned to").count(), 1, "{found}");
}

#[test]
fn mixed_elements_are_shown_where_they_are_declared() {
    for value in ["a + b", "a # b", "s * b", "b / s", "a # a . [1 2] * b", "a"] {
        let text = format!("var a : f32 [2]\nvar b : [2]\nvar s : f32 []\nb = {value}");
        let found = rendered(&text);
        assert!(
            found.contains("p.tml:2:1: note: the elements of 'b' are f64, from here"),
            "{found}"
        );
        assert!(found.contains("are f32, from here"), "{found}");
        assert!(!found.contains("note: extent"), "{found}");
    }
}

#[test]
fn limits_are_errors() {
    let over = |text: String| {
        let found = rendered(&text);
        assert!(found.contains("[TML0002]"), "{found}");
        assert!(found.len() < 2000, "{}", found.len());
    };
    let nesting = MAX_NESTING as usize + 1;
    over(format!("var a : [] a = {}a{}", "(".repeat(nesting), ")".repeat(nesting)));
    over(format!("var a : [] a = a{}", " + a".repeat(MAX_HEIGHT as usize)));
    over(format!("var a : [] a = a . [1 2{}]", ", 1 2".repeat(MAX_HEIGHT as usize)));
    over(format!("var a : [] a = a ^ [1 2{}]", " 1".repeat(MAX_HEIGHT as usize)));
    over(format!("var a : [{}]", " 1".repeat(MAX_RANK + 1)));
    over(format!("var a : [1 1] var b : [] b = a{}", " # a".repeat(MAX_RANK)));
    over(format!("var {} : []", "a".repeat(2000)));
    over(format!("var a : [{}]", "9".repeat(1000)));
    over(format!("var a : [] {}", "a = a ".repeat(400_000)));
    let deep = format!("var a : [] a = a{}", " + a".repeat(MAX_HEIGHT as usize - 1));
    assert_eq!(front_end(&deep).1, []);
}

#[test]
fn many_errors_are_capped() {
    let text: String = (0..10_000).map(|number| format!("x{number} = y{number} ")).collect();
    let (_, diagnostics) = front_end(&text);
    assert_eq!(diagnostics.len(), 101);
}

#[test]
fn rounding_up() {
    for (number, length, expected) in
        [(1, 4, 4), (4, 4, 4), (5, 4, 8), (7, 8, 8), (9, 8, 16), (3, 1, 3)]
    {
        assert_eq!(round_up(number, length), expected);
    }
}

/// Pieces of programs, well-formed or not.
fn piece() -> impl Strategy<Value = String> {
    let words = [
        "var",
        "in",
        "out",
        "inout",
        "f32",
        "f64",
        "a",
        "b",
        "x1",
        "[",
        "]",
        "(",
        ")",
        ":",
        "=",
        "+",
        "-",
        "*",
        "/",
        "#",
        ".",
        "^",
        ",",
        "0",
        "1",
        "2",
        "3",
        "[2 3]",
        ". [1 2]",
        "^ [1 2]",
        "// c\n",
        "\n",
        "_",
        "\u{e9}",
        "var a : [2 2]",
        "a = a",
        "var b : []",
    ];
    proptest::sample::select(words.to_vec()).prop_map(|word| format!("{word} "))
}

proptest! {
    #[test]
    fn any_text_is_read_and_printed_text_parses_back(pieces in prop::collection::vec(piece(), 0..60)) {
        let text = pieces.concat();
        let (program, diagnostics) = parse_program(&SourceFile::new("p.tml", text));
        for diagnostic in diagnostics.iter().chain(&check(&program).1) {
            prop_assert!(!diagnostic.message.is_empty());
        }
        let printed = program.to_string();
        let (again, diagnostics) = parse_program(&SourceFile::new("p.tml", printed.clone()));
        prop_assert!(diagnostics.is_empty(), "{printed}\n{diagnostics:?}");
        prop_assert_eq!(printed, again.to_string());
    }
}
