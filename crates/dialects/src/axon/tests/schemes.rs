//! Each use of a definition has sizes of its own.

use super::order::answer;
use super::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// A size in an annotation of the function.
fn any_size() -> impl Strategy<Value = &'static str> {
    select(&["m", "n", "m", "n", "2", "6", "8", "m+n", "2*m"][..])
}

/// An annotation of the function, or none.
fn any_annotation() -> impl Strategy<Value = String> {
    let shape = prop_oneof![
        5 => any_size().prop_map(|a| format!("[{a}]")),
        2 => (any_size(), any_size()).prop_map(|(a, b)| format!("[{a},{b}]")),
        1 => Just("s".to_string()),
        1 => any_size().prop_map(|a| format!("[{a}]@s")),
        1 => any_size().prop_map(|a| format!("s@[{a}]")),
    ];
    prop_oneof![
        1 => Just(String::new()),
        1 => shape.prop_map(|shape| format!(" : f32 {shape}")),
    ]
}

/// What the function calculates of its parameters, of which there are `N`.
fn any_value<const N: usize>() -> impl Strategy<Value = String> {
    let name = (0..N).prop_map(|number| format!("x{number}"));
    name.prop_recursive(2, 8, 2, |inner| {
        let two = (inner.clone(), inner.clone());
        let sizes = (any_size(), any_size());
        let (op, size) = (select(&["+", "*"][..]), select(&["2", "m", "n"][..]));
        prop_oneof![
            3 => two.clone().prop_map(|(a, b)| format!("concat({a}, {b})")),
            3 => (two.clone(), op).prop_map(|((a, b), op)| format!("({a} {op} {b})")),
            1 => inner.clone().prop_map(|a| format!("exp({a})")),
            1 => inner.clone().prop_map(|a| format!("sum({a})")),
            2 => (inner.clone(), size).prop_map(|(a, n)| format!("slice({a}, size={n})")),
            1 => two.prop_map(|(a, b)| format!("matmul({a}, {b})")),
            1 => (inner, sizes).prop_map(|(a, (m, n))| format!("reshape({a}, shape=[{m},{n}])")),
        ]
    })
}

/// A function, and one that calls `f` and `g` with so many arguments.
fn any_program<const N: usize>() -> impl Strategy<Value = [String; 2]> {
    let annotations = prop::collection::vec(any_annotation(), N + 1);
    let function = (annotations, any_value::<N>()).prop_map(|(annotations, value)| {
        let parameters: Vec<String> =
            (0..N).map(|number| format!("x{number}{}", annotations[number])).collect();
        format!("fn({}){} {{ {value} }}", parameters.join(", "), annotations[N])
    });
    let known = prop_oneof![
        3 => Just(String::new()),
        1 => prop::collection::vec(1..=8_u32, 0..3).prop_map(|sizes| format!(" : f32 {sizes:?}")),
    ];
    let together = select(&["F, G", "F + G", "concat(F, G)", "F, exp(G) + y0"][..]);
    let known = prop::collection::vec(known, 2 * N + 1);
    (function, known, together).prop_map(|(function, known, together)| {
        let names: Vec<String> = (0..=2 * N).map(|number| format!("y{number}")).collect();
        let [first, last] = [&names[1..=N], &names[N + 1..]].map(|names| names.join(", "));
        let parameters: Vec<String> =
            names.iter().zip(known).map(|(name, shape)| format!("{name}{shape}")).collect();
        let body = together.replace('F', &format!("f({first})"));
        let body = body.replace('G', &format!("g({last})"));
        [function, format!("main = fn({}) {{ {body} }};", parameters.join(", "))]
    })
}

/// A function that is used twice says what two functions with the same text say that are used once each.
#[test]
fn uses_share_nothing() {
    let cases = std::env::var("TC_RANDOM_PROGRAMS").ok().and_then(|text| text.parse().ok());
    let config =
        Config { cases: cases.unwrap_or(400), failure_persistence: None, ..Config::default() };
    let programs = prop_oneof![any_program::<1>(), any_program::<2>(), any_program::<3>()];
    let typed = std::cell::Cell::new(0);
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
        .run(&programs, |[function, main]| {
            let shared = format!("f = {function};\n{}", main.replace("g(", "f("));
            let apart = format!("f = {function};\ng = {function};\n{main}");
            let expected = answer(&apart, "main");
            typed.set(typed.get() + u32::from(!expected.is_empty()));
            prop_assert_eq!(answer(&shared, "main"), expected, "{}", apart);
            Ok(())
        })
        .unwrap();
    assert!(80 < typed.get(), "{typed:?}");
}
