//! Custom calls that are no library's.

use super::{bits, floats, reals, run, try_run};
use tc_dialects::element::ElementType;

/// `comparison` is what the call refers to.
fn top_k(comparison: &str, called: &str, result: &str) -> String {
    format!(
        "HloModule m\n{comparison}\nENTRY e {{\n  x = f32[2,6] parameter(0)\n  \
         ROOT r = {result} custom-call(x), custom_call_target=\"TopK\"{called}\n}}"
    )
}

const FIRST: &str = "(f32[2,3], s32[2,3])";
const LESS: &str = "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  \
                    ROOT c = pred[] compare(a, b), direction=LT\n}";
const CLOSER: &str = "closer {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  \
                      i = s32[] parameter(2)\n  j = s32[] parameter(3)\n  \
                      ROOT c = pred[] compare(i, j), direction=GT\n}";

#[test]
fn first_elements_in_the_order_of_a_comparison() {
    let rows = [
        3.0,
        -1.0,
        f64::NAN,
        7.0,
        7.0,
        f64::INFINITY,
        0.0,
        -2.0,
        5.0,
        -2.0,
        5.0,
        f64::NEG_INFINITY,
    ];
    let x = floats(ElementType::F32, &[2, 6], &rows);
    for (comparison, called, indices) in [
        // The largest, and of equal elements the first.
        ("", "", [2, 5, 3, 2, 4, 0]),
        (CLOSER, ", called_computations={closer}", [5, 4, 3, 5, 4, 3]),
    ] {
        let found = run(&top_k(comparison, called, FIRST), std::slice::from_ref(&x));
        assert_eq!(bits(&found[1]), indices, "{comparison}");
        let expected =
            indices.iter().enumerate().map(|(at, index)| rows[at / 3 * 6 + *index as usize]);
        for (found, expected) in reals(&found[0]).into_iter().zip(expected) {
            assert!(found == expected || found.is_nan() && expected.is_nan(), "{comparison}");
        }
    }
    let x = floats(ElementType::F32, &[2, 6], &[3., 1., 2., 1., 9., 0., 5., 5., 5., 4., 4., 6.]);
    let found = run(&top_k(LESS, ", called_computations={less}", FIRST), &[x]);
    assert_eq!(bits(&found[1]), [5, 1, 3, 3, 4, 0]);
}

#[test]
fn other_results_and_comparisons_are_refused() {
    let x = floats(ElementType::F32, &[2, 6], &[0.0; 12]);
    let error = |text: &str| try_run(text, std::slice::from_ref(&x)).expect_err(text);
    for result in ["f32[2,3]", "(f32[2,7], s32[2,7])", "(f32[2,3], s64[2,3])", "(f32[3], s32[3])"] {
        let expected = format!(
            "expected the first elements of f32[2,6] and, as s32, their indices; found {result}"
        );
        assert_eq!(error(&top_k("", "", result)), expected);
    }
    let wrong = LESS.replace("b = f32[]", "b = f64[]").replace("compare(a, b)", "compare(a, a)");
    assert_eq!(
        error(&top_k(&wrong, ", called_computations={less}", FIRST)),
        "expected 'less' to compare two f32"
    );
}
