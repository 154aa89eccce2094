//! Small programs that were compiled wrongly once, against the interpreter.

mod support {
    pub mod check;
    pub mod random;
}

use std::collections::BTreeMap;
use support::check::{Verdict, check};

/// Checks a program in all ways of compiling, at sizes written as `N=3,M=4`.
fn agrees(text: &str, sizes: &[&str]) {
    let sizes: Vec<BTreeMap<String, i64>> = sizes
        .iter()
        .map(|sizes| {
            let pairs = sizes.split(',').filter_map(|pair| pair.split_once('='));
            pairs.map(|(name, value)| (name.to_string(), value.parse().expect("a number"))).collect()
        })
        .collect();
    for seed in [0, 3] {
        match check(text, &sizes, seed) {
            Verdict::Passed(stats) => {
                assert_eq!(stats.runs, sizes.len(), "{:?}\n{text}", stats.refused);
                assert_eq!(stats.uncertain, 0, "nothing is checked\n{text}");
            }
            other => panic!("{other:?}\n{text}"),
        }
    }
}

#[test]
fn outputs_may_name_extents_that_no_input_has() {
    agrees("def f(float(N) A) -> (float(D) O) { O(i) = A(2 * i + 1) }", &["N=2", "N=9"]);
    agrees("def f(float(N) A) -> (float(D) O) { O(i) += A(i + 1) }", &["N=2", "N=9"]);
}
