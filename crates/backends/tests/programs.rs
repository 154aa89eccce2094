//! Small programs that were compiled wrongly once, against the interpreter.

mod support {
    pub mod check;
    pub mod guard;
    pub mod random;
    pub mod scheduled;
    pub mod schedules;
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

/// Left-hand indices that are computed, of each operator, type and source of the extents.
#[test]
fn computed_left_hand_indices_update_elements() {
    let sizes = ["N=3,M=2,B=5", "N=40,M=9,B=7"];
    let sizes = |names: &[&str]| {
        sizes.map(|sizes| {
            let kept = sizes.split(',').filter(|size| names.contains(&&size[..1]));
            kept.collect::<Vec<_>>().join(",")
        })
    };
    for (text, names) in [
        // The extent is that of the type, of what is reduced into, or of a range clause.
        ("def f(int32(N) I) -> (int32(16) O) { O(I(i)) +=! 1 }", &["N"][..]),
        ("def f(int32(N) I, float(B) W) -> (float(B) O) { O(I(i)) max=! W(i % B) }", &["N", "B"]),
        ("def f(uint8(N, M) I) -> (int32(256) O) { O(I(i, j)) += i + j }", &["N", "M"]),
        (
            "def f(int64(N) I, float(N, M) U, float(B) Z) -> (O) {
            O(b, j) = Z(b) + j where j in 0:M
            O(I(i), j) += U(i, j)
          }",
            &["N", "M", "B"],
        ),
        (
            "def f(float(N) X, int32(B) Z) -> (O) {
            O(b) +=! 1 where b = int32(X(i) * 3) % B, b in 0:B
            O(b) *=! 2 where b = i / 2, b in 0:N, i in 0:N
          }",
            &["N", "B"],
        ),
        (
            "def f(int8(N) I, double(N) U) -> (O) {
            O(j, k) = double(1) where j in -3:4, k in -3:4
            O(I(i) - 3, 3 - I(i)) min= U(i)
            O(I(i) - 3, j) *= U(i) where j in 0:4
          }",
            &["N"],
        ),
        // Several, out of order, with variables that are plain subscripts, too.
        (
            "def f(int32(N, M) I, int32(N) J, float(M, N) U) -> (float(7, M, 4) O, P) {
            O(J(i), j, I(i, j)) +=! U(j, i)
            P(j, i) = U(j, i)
            P(j, i + 0 * J(i)) += O(J(i), j, 0)
          }",
            &["N", "M"],
        ),
        // The condition decides which element is read; nothing else is read.
        (
            "def f(int32(N) I, float(N) U, float(B) Z) -> (O) {
            O(b) = Z(b)
            O((0 < i ? I(i - 1) : 0) % B) += U(i)
          }",
            &["N", "B"],
        ),
        // What is read is what the tensor held before.
        (
            "def f(int32(N) I, float(B) Z) -> (O) {
            O(b) = Z(b)
            O(I(i) % B) += O(b) + O(B - 1 - I(i) % B) where b in 0:B
          }",
            &["N", "B"],
        ),
        // One element, and one per point.
        ("def f(float(N) A) -> (float(3) O) { O(1) +=! A(i) }", &["N"]),
        ("def f(float(N) A) -> (float(N) O) { O(N - 1 - i) max=! A(i) }", &["N"]),
        // Half precision, bool, and 64 bits.
        ("def f(int32(N) I, float16(N) A) -> (float16(8) O) { O(I(i)) += A(i) }", &["N"]),
        ("def f(int32(N) I, bool(N) A) -> (bool(8) O) { O(I(i)) +=! A(i) }", &["N"]),
        ("def f(uint64(N) I, int64(N) A) -> (int64(8) O) { O(I(i) % 8) min=! A(i) }", &["N"]),
    ] {
        let sizes = sizes(names);
        agrees(text, &[&sizes[0], &sizes[1]]);
    }
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
