//! The order of statements does not matter.

use super::programs::{drawn, drawn_open};
use super::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// The signature of `f` with its conditions, sorted; what is wrong is one answer.
fn answer(text: &str) -> Vec<String> {
    let Ok(mut inferred) = inferred(text) else { return Vec::new() };
    let signature = inferred.signature(Some("f")).expect("f is defined");
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
            let expected = answer(&first);
            typed.set(typed.get() + u32::from(!expected.is_empty()));
            prop_assert_eq!(answer(&other), expected, "{}\n{}", first, other);
            Ok(())
        })
        .unwrap();
    assert!(100 < typed.get(), "{typed:?}");
}
