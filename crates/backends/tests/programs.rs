//! Small programs that were compiled wrongly once, against the interpreter.

mod support {
    pub mod check;
    pub mod guard;
}

use std::collections::BTreeMap;
use support::check::{Verdict, check};

/// Checks a program in all ways of compiling, at sizes written as `N=3,M=4`.
fn agrees(text: &str, sizes: &[&str]) {
    let sizes: Vec<BTreeMap<String, i64>> = sizes
        .iter()
        .map(|sizes| {
            let pairs = sizes.split(',').filter_map(|pair| pair.split_once('='));
            pairs
                .map(|(name, value)| (name.to_string(), value.parse().expect("a number")))
                .collect()
        })
        .collect();
    for seed in [0, 3] {
        match check(text, &sizes, seed) {
            Verdict::Passed(stats) => {
                assert_eq!(stats.runs, sizes.len(), "{:?}\n{text}", stats.refused);
                assert_eq!(stats.uncertain, 0, "nothing is checked\n{text}");
            }
            Verdict::Rejected(reason) => panic!("{reason}\n{text}"),
            Verdict::Failed(failure) => panic!("{}: {}\n{text}", failure.kind, failure.message),
        }
    }
}

#[test]
fn outputs_may_name_extents_that_no_input_has() {
    agrees("def f(float(N) A) -> (float(D) O) { O(i) = A(2 * i + 1) }", &["N=2", "N=9"]);
    agrees("def f(float(N) A) -> (float(D) O) { O(i) += A(i + 1) }", &["N=2", "N=9"]);
}

/// LLVM's SLP vectorizer converts what it narrowed with the wrong sign.
#[test]
fn negative_numbers_cast_to_unsigned_become_large_floats() {
    let text = "def f(int32(N) A) -> (O) { O(i) = 3.25 + uint64(A(i)) }";
    agrees(text, &["N=4", "N=11"]);
    let text = "def f(int8(N) A) -> (O) { O(i) = double(uint32(A(i))) + 3.25 }";
    agrees(text, &["N=4", "N=11"]);
}

/// A call of a function in a conditional region, in a parallel loop.
#[test]
fn builtins_meet_conditions_in_parallel_loops() {
    let text = "def f(int16(N, N) A) -> (O) { O(i, j) = (true != i ? A(i, j) : 3.25) + exp(i) }";
    agrees(text, &["N=1", "N=7"]);
}

/// Only the storage of what the caller passes must fit, not where the indices start.
#[test]
fn accumulated_outputs_may_be_defined_anew() {
    let text = "def f(float(N) A, float(M) B) -> (O) { O(i) += A(i) + B(k) O(i) = O(i) * B(i) }";
    agrees(text, &["N=5,M=5", "N=3,M=4"]);
    let text = "def f(float(N) A) -> (O) { O(i) += A(i) O(i) = A(i - 2) }";
    agrees(text, &["N=5", "N=1"]);
}

/// An access bounds its variables even if it is found out later that it never happens.
#[test]
fn accesses_that_never_happen_bound_variables() {
    agrees("def f(uint8(5) A) -> (O) { O +=! A(j) + (3.25 != 4 ? 2147483647 : A(j + 4)) }", &[""]);
}

#[test]
fn indices_in_which_a_variable_cancels_are_constant() {
    agrees("def f(float(2) A) -> (O) { O(i) *=! A(j - j) where i in 0:3, j in 2:4 }", &[""]);
    agrees("def f(float(N) A) -> (O) { O(i) +=! A(j - j) + A(i) where j in 0:9 }", &["N=33"]);
}

#[test]
fn indices_of_operands_in_branches_leave_nothing_behind() {
    agrees(
        "def f(float(N) A) -> (O) { O(i) = A(0) < 0.5 ? A(x / 2) : A(N - 1 - i) where x = i + 0 }",
        &["N=5"],
    );
    agrees(
        "def f(float(N) A) -> (O) { O(i) = A(0) < 0.5 ? A(i / 2) : A(N - 1) where i in 0:N }",
        &["N=5"],
    );
}

/// LLVM's loop vectorizer divides only if the first lane takes the branch.
#[test]
fn divisions_by_sizes_in_branches_are_performed() {
    agrees(
        "def f(int32(N, M, N) A, float(N) B) -> (O) {
           O(i, j) = (0 <= j + 3 ? min(max(A(i, i, i % A.2), 0), A.2) : 1e-3) % B(0 - j)
         }",
        &["M=4,N=17", "M=2,N=70"],
    );
}
