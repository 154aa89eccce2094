//! The order of statements does not matter.

use super::programs::{drawn, drawn_open};
use super::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// The signature of a function with its conditions, sorted; what is wrong is one answer.
pub(super) fn answer(text: &str, name: &str) -> Vec<String> {
    let Ok(mut inferred) = inferred(text) else { return Vec::new() };
    let signature = inferred.signature(Some(name)).expect("it is defined");
    let mut conditions: Vec<String> = signature.conditions.into_iter().map(|it| it.text).collect();
    conditions.sort();
    conditions.push(signature.text);
    conditions
}

/// Programs that are drawn, the same ones each time, and their statements in other orders.
#[test]
fn the_order_of_statements_does_not_matter() {
    let cases = std::env::var("TC_RANDOM_PROGRAMS").ok().and_then(|text| text.parse().ok());
    let config =
        Config { cases: cases.unwrap_or(400), failure_persistence: None, ..Config::default() };
    let keys = prop::collection::vec(any::<u32>(), 8);
    let typed = std::cell::Cell::new(0);
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
        .run(&(prop_oneof![drawn(8), drawn_open(8)], keys), |(program, keys)| {
            let [first, other] = [&[][..], &keys].map(|keys| program.text(keys, true));
            let expected = answer(&first, "f");
            typed.set(typed.get() + u32::from(!expected.is_empty()));
            prop_assert_eq!(answer(&other, "f"), expected, "{}\n{}", first, other);
            Ok(())
        })
        .unwrap();
    assert!(100 < typed.get(), "{typed:?}");
}

/// What a result has to be says which operands of the operations before it are broadcast.
#[test]
fn what_is_forced_comes_before_what_is_decided() {
    for (program, expected) in [
        (
            "fn(x, scale : f32, shift : f32) : f32 [3,5] { x * scale + shift }",
            "(f32 [3,5], f32 [], f32 []) -> f32 [3,5]",
        ),
        (
            "fn(x, mean : f32, std : f32, w : f32 [16,3,3,3]) { conv((x - mean) / std, w) }",
            "(f32 [a,3,b,c], f32 [], f32 [], f32 [16,3,3,3]) -> f32 [a,16,(- b 2),(- c 2)]",
        ),
        (
            "fn(x, mean : f32, w : f32 [16,3,3,3]) { conv(2f * (x - mean), w) }",
            "(f32 [a,3,b,c], f32 [], f32 [16,3,3,3]) -> f32 [a,16,(- b 2),(- c 2)]",
        ),
        ("fn(x, k : f32) { softmax(x * k / k) }", "(f32 [a]@b, f32 []) -> f32 [a]@b"),
        (
            "fn(x, y : f32 [5], z : f32 [5], w : f32 [5,7], b) { linear(x * y + z, w, b) }",
            "(f32 [a,5], f32 [5], f32 [5], f32 [5,7], f32 [7]) -> f32 [a,7]",
        ),
        ("fn(x, shift : f32) : f32 [3,5] { x * 2f + shift }", "(f32 [3,5], f32 []) -> f32 [3,5]"),
        (
            "fn(x, y : f32 [3]) : f32 [2,3] { z = x + y; z + y }",
            "(f32 [2,3], f32 [3]) -> f32 [2,3]",
        ),
        (
            "fn(x, b : f32 [5]) : f32 [3,5] { z = x + b; z + x }",
            "(f32 [3,5], f32 [5]) -> f32 [3,5]",
        ),
        (
            "fn(x, y : f32 [7], k : f32) : (f32 [2,5,7], f32 r) { x - y, x - k }",
            "(f32 [2,5,7], f32 [7], f32 []) -> (f32 [2,5,7], f32 [2,5,7])",
        ),
        (
            "fn(x, y : f32 [7], k : f32) : (f32 r, f32 [2,5,7]) { x - k, x - y }",
            "(f32 [2,5,7], f32 [7], f32 []) -> (f32 [2,5,7], f32 [2,5,7])",
        ),
        (
            "fn(x, y : f32 [7], w : f32 [7,3], k : f32) { h = matmul(x - y, w); h, x * k }",
            "(f32 [a,7], f32 [7], f32 [7,3], f32 []) -> (f32 [a,3], f32 [a,7])",
        ),
        (
            "fn(x, y : f32 [7], w : f32 [7,3], k : f32) { v = x * k; h = matmul(x - y, w); h, v }",
            "(f32 [a,7], f32 [7], f32 [7,3], f32 []) -> (f32 [a,3], f32 [a,7])",
        ),
    ] {
        let found = answer(&format!("f = {program};"), "f");
        assert_eq!(found.last().map(String::as_str), Some(expected), "{program}");
    }
}

/// `x` and `y` differ, and each could be the last part of the other.
#[test]
fn what_either_operand_could_be_broadcast_for_is_refused() {
    for sum in ["x + y", "y + x"] {
        let refused = format!("f = fn(x : f32 [3]@p, y : f32 [4]@q) {{ {sum} }};");
        assert!(answer(&refused, "f").is_empty(), "{sum}");
        let typed = format!("f = fn(x : f32 [3]@p, y : f32 [4]@q) : f32 [4,3,5] {{ {sum} }};");
        assert_eq!(answer(&typed, "f"), ["(f32 [3,5], f32 [4,3,5]) -> f32 [4,3,5]"], "{sum}");
    }
}
