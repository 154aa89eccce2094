//! Random programs: no panic, a round trip through the printer, and the invariants of the typed tree.

use proptest::prelude::*;

use super::super::checked::{Expr, ExprKind, Statement};
use super::super::*;
use super::parse;
use crate::text::{Diagnostic, Reason, SourceFile, Span};

/// Panics where a typed statement breaks an invariant of its module.
fn verify_statement(statement: &Statement) {
    assert_eq!(statement.value.ty, Type::Scalar(statement.scalar));
    verify(&statement.value, statement);
    for clause in &statement.ranges {
        for bound in [&clause.lower, &clause.upper] {
            assert_eq!(bound.ty, Type::Index);
            verify(bound, statement);
        }
    }
    for each in &statement.lets {
        verify(&each.value, statement);
        if let Some(index) = &each.index {
            assert_eq!(index.ty, Type::Index);
            verify(index, statement);
        }
    }
    for expr in &statement.exists {
        verify(expr, statement);
    }
}

fn verify(expr: &Expr, statement: &Statement) {
    let boolean = Type::Scalar(ScalarType::Bool);
    let int = Type::Scalar(ScalarType::Int32);
    let all = |operands: &[&Expr]| operands.iter().for_each(|each| verify(each, statement));
    match &expr.kind {
        ExprKind::Int(_) | ExprKind::Size(_) | ExprKind::Extent { .. } => {
            assert!(expr.ty == int || expr.ty == Type::Index);
        }
        ExprKind::Variable(variable) => {
            assert!(expr.ty == int || expr.ty == Type::Index);
            assert!(*variable < statement.variables.len());
        }
        ExprKind::Float { .. } => assert_eq!(expr.ty, Type::Scalar(ScalarType::Float32)),
        ExprKind::Bool(_) => assert_eq!(expr.ty, boolean),
        ExprKind::Let(position) => {
            let referred = &statement.lets[*position];
            match expr.ty {
                Type::Index => assert!(referred.index.is_some()),
                ty => assert_eq!(ty, referred.value.ty),
            }
        }
        ExprKind::Read { indices, .. } => {
            assert_ne!(expr.ty, Type::Index);
            for index in indices {
                assert_eq!(index.ty, Type::Index);
                verify(index, statement);
            }
        }
        ExprKind::Neg(value) => {
            assert_eq!(value.ty, expr.ty);
            all(&[value]);
        }
        ExprKind::Not(value) => {
            assert_eq!((value.ty, expr.ty), (boolean, boolean));
            all(&[value]);
        }
        ExprKind::Arith { lhs, rhs, .. } => {
            assert_eq!((lhs.ty, rhs.ty), (expr.ty, expr.ty));
            all(&[lhs, rhs]);
        }
        ExprKind::Compare { lhs, rhs, .. } => {
            assert_eq!((lhs.ty, expr.ty), (rhs.ty, boolean));
            all(&[lhs, rhs]);
        }
        ExprKind::And(lhs, rhs) | ExprKind::Or(lhs, rhs) => {
            assert_eq!((lhs.ty, rhs.ty, expr.ty), (boolean, boolean, boolean));
            all(&[lhs, rhs]);
        }
        ExprKind::Select { condition, on_true, on_false } => {
            assert_eq!(condition.ty, boolean);
            assert_eq!((on_true.ty, on_false.ty), (expr.ty, expr.ty));
            all(&[condition, on_true, on_false]);
        }
        ExprKind::Cast { value, explicit } => {
            assert!(*explicit || value.ty != expr.ty);
            assert_ne!(value.ty, Type::Index);
            all(&[value]);
        }
        ExprKind::Call { builtin, args } => {
            assert_eq!(args.len(), builtin.arity);
            for arg in args {
                assert_eq!(arg.ty, expr.ty);
                verify(arg, statement);
            }
        }
    }
}

/// Words from which random programs are made: every kind of token and some that are none.
const WORDS: &str = "def f ( ) -> { } float int32 bool (N) A B O i j N , . .0 : = += +=! max=! min= \
    *= + - * / % ! ? < <= == != && || <=> where in exists min max exp fmax true false 0 1 2.5 3e \
    0x1 99999999999 \u{e9} \n #c\n ;";

fn soup() -> impl Strategy<Value = String> {
    let words: Vec<&str> = WORDS.split(' ').collect();
    let word = prop::sample::select(words);
    prop::collection::vec(word, 0..60).prop_map(|words| words.join(" "))
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "A(i)", "B(i, j)", "i", "N", "1", "2.5", "x", "c", "true", "A.0",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(6, 40, 3, |inner| {
        let op = prop::sample::select(vec![
            "+", "-", "*", "/", "%", "<", ">", "<=", ">=", "==", "!=", "&&", "||",
        ]);
        let call = prop::sample::select(vec!["-", "!", "float", "uint8", "bool", "exp", "A"]);
        prop_oneof![
            4 => (inner.clone(), op, inner.clone()).prop_map(|(a, op, b)| format!("({a}) {op} ({b})")),
            2 => (call, inner.clone()).prop_map(|(name, a)| format!("{name}({a})")),
            1 => (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("({a}) ? ({b}) : ({c})")),
            1 => (inner.clone(), inner).prop_map(|(a, b)| format!("min({a}, {b})")),
        ]
    })
}

/// A number and a condition that are valid where `well_typed` puts them, under the relaxed rules.
fn typed_pair() -> impl Strategy<Value = (String, String)> {
    let number =
        prop::sample::select(vec!["A(i)", "B(i, j)", "i", "N", "1", "2.5", "x", "A.0", "H(j)"]);
    let condition = prop::sample::select(vec!["c", "true", "y"]);
    let leaf = (number, condition).prop_map(|(a, c)| (a.to_owned(), c.to_owned()));
    leaf.prop_recursive(5, 40, 2, |inner| {
        let op = prop::sample::select(vec!["+", "-", "*", "/", "%"]);
        let comparison = prop::sample::select(vec!["<", ">", "<=", ">=", "==", "!="]);
        let logical = prop::sample::select(vec!["&&", "||"]);
        let call = prop::sample::select(vec!["-", "float", "uint8", "int64", "exp", "A"]);
        prop_oneof![
            (inner.clone(), op, inner.clone(), comparison).prop_map(|(a, op, b, comparison)| {
                let condition = format!("({}) {comparison} ({})", a.0, b.0);
                (format!("({}) {op} ({})", a.0, b.0), condition)
            }),
            (call, inner.clone())
                .prop_map(|(name, a)| { (format!("{name}({})", a.0), format!("!({})", a.1)) }),
            (inner.clone(), logical, inner.clone()).prop_map(|(a, logical, b)| {
                let number = format!("({}) ? ({}) : ({})", a.1, b.0, a.0);
                (number, format!("({}) {logical} ({})", a.1, b.1))
            }),
            (inner.clone(), inner).prop_map(|(a, b)| {
                (format!("B({}, max({0}, {}))", a.0, b.0), format!("bool({})", b.0))
            }),
        ]
    })
}

/// Replaces every span of an expression, so that trees from different texts can be compared.
fn forget(expr: &mut ast::Expr) {
    use ast::ExprKind;
    expr.span = Span::default();
    match &mut expr.kind {
        ExprKind::Number(_) | ExprKind::Bool(_) | ExprKind::Name(_) => {}
        ExprKind::Apply { name, args } => {
            name.span = Span::default();
            args.iter_mut().for_each(forget);
        }
        ExprKind::Extent { tensor, dim } => {
            tensor.span = Span::default();
            dim.span = Span::default();
        }
        ExprKind::Cast { value, .. } | ExprKind::Unary { value, .. } => forget(value),
        ExprKind::Binary { lhs, rhs, .. } => {
            forget(lhs);
            forget(rhs);
        }
        ExprKind::Select { condition, on_true, on_false } => {
            forget(condition);
            forget(on_true);
            forget(on_false);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_words_never_panic(text in soup(), relaxed: bool) {
        let source = SourceFile::new("soup.tc", text.as_str());
        let (program, diagnostics) = parse_program(&source, &Options { relaxed });
        source.render_all(&diagnostics);
        let (_, diagnostics) = check(&program);
        source.render_all(&diagnostics);
    }

    #[test]
    fn random_words_in_a_body_never_panic(words in soup()) {
        let text = format!("def f(float(N) A, int32(N, 4) B) -> (O) {{ O(i) +=! {words} }}");
        let source = SourceFile::new("soup.tc", text.as_str());
        let (program, _) = parse_program(&source, &Options::default());
        let (_, diagnostics) = check(&program);
        source.render_all(&diagnostics);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        match SourceFile::from_bytes("bytes.tc", bytes, Reason::Syntax, Reason::Limit) {
            Ok(source) => {
                let (_, diagnostics) = parse_program(&source, &Options::default());
                source.render_all(&diagnostics);
            }
            Err(refused) => {
                refused.0.render(&refused.1);
            }
        }
    }

    #[test]
    fn printed_text_parses_to_the_same_tree(value in expression(), other in expression()) {
        let text = format!(
            "def f(float(N) A, int32(N, 4) B, bool c) -> (int8(N) O, P) {{
               O(i) min=! {value} <=> g({other}) where j in {other}:{value}, x = {other}, exists {value}
             }}"
        );
        let first = parse(&text);
        let printed = first.to_string();
        let second = parse(&printed);
        prop_assert_eq!(second.to_string(), printed);
        for (a, b) in first.defs[0].statements.iter().zip(&second.defs[0].statements) {
            for (a, b) in [
                (&a.value, &b.value),
                (&a.equivalent.as_ref().expect("written").args[0], &b.equivalent.as_ref().expect("written").args[0]),
            ] {
                let (mut a, mut b) = (a.clone(), b.clone());
                forget(&mut a);
                forget(&mut b);
                prop_assert_eq!(a, b);
            }
        }
        let (_, diagnostics) = check(&first);
        SourceFile::new("t.tc", text).render_all(&diagnostics);
    }

    #[test]
    fn well_typed_programs_keep_the_invariants(a in typed_pair(), b in typed_pair()) {
        let text = format!(
            "def f(float(N) A, int32(N, 4) B, bool c, float16(4) H) -> (O) {{
               O(i) +=! ({}) ? x : ({}) where j in 0:4, y = c, x = 2 * i, y2 = ({}), exists ({})
             }}",
            a.1, a.0, b.0, b.1
        );
        let source = SourceFile::new("t.tc", text);
        let (program, diagnostics) = parse_program(&source, &Options { relaxed: true });
        prop_assert!(diagnostics.is_empty(), "{}", source.render_all(&diagnostics));
        let (checked, diagnostics) = check(&program);
        let failed = diagnostics.iter().any(Diagnostic::is_error);
        prop_assert!(!failed, "{}", source.render_all(&diagnostics));
        checked.functions[0].statements.iter().for_each(verify_statement);
    }
}
