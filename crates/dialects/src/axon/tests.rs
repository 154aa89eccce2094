//! Whole programs: their signatures, and what is said about those that are wrong.

mod errors;
mod order;
mod programs;
mod schemes;

use super::*;
use crate::text::SourceFile;
use proptest::prelude::*;
use tc_ir::shape::{Dim, DimOp, DimVar};

fn inferred(text: &str) -> Result<Inferred, String> {
    let source = SourceFile::new("test.axon", text);
    let (program, diagnostics) = syntax::parse_program(&source);
    if !diagnostics.is_empty() {
        return Err(source.render_all(&diagnostics));
    }
    let inferred = infer(&program, &Options::default());
    match inferred.diagnostics.is_empty() {
        true => Ok(inferred),
        false => Err(source.render_all(&inferred.diagnostics)),
    }
}

/// The signature of the last definition, or of the expression at the end.
fn signature(text: &str) -> String {
    match inferred(text) {
        Err(errors) => errors,
        Ok(mut inferred) => {
            let name = match inferred.has_result() {
                true => None,
                false => inferred.definitions().pop(),
            };
            let signature = inferred.signature(name.as_deref()).expect("a definition");
            let conditions = signature.conditions.iter().filter(|it| it.span.is_some());
            let conditions: Vec<_> = conditions.map(|it| it.text.as_str()).collect();
            match conditions.is_empty() {
                true => signature.text,
                false => format!("{} where {}", signature.text, conditions.join(", ")),
            }
        }
    }
}

fn errors(text: &str) -> String {
    inferred(text).map(|_| ()).expect_err("an error")
}

/// The first line of the errors, without the name of the file.
fn error(text: &str) -> String {
    let errors = errors(text);
    let line = errors.lines().next().unwrap_or_default();
    line.trim_start_matches("test.axon:").to_string()
}

#[test]
fn the_prelude_has_types() {
    let inferred = infer(&syntax::builtins::prelude(), &Options::default());
    let source = SourceFile::new("prelude.axon", syntax::builtins::PRELUDE);
    assert_eq!(source.render_all(&inferred.diagnostics), "");
    assert_eq!(signature("f = softmax;"), "t [a]@b -> t [a]@b");
    assert_eq!(signature("f = linear;"), "(t [a,b], t [b,c], t [c]) -> t [a,c]");
}

#[test]
fn functions_are_used_at_several_types_ranks_and_shapes() {
    let text =
        "g = fn(a) { a + a }; f = fn(x : f32 [2], y : i32 [], z : f64 s@[n]) { g(x), g(y), g(z) }";
    assert_eq!(signature(text), "(f32 [2], i32 [], f64 s@[n]) -> (f32 [2], i32 [], f64 s@[n])");
    let text = "twice = fn(f, x) { f(f(x)) }; fn(x : f32 [3]) { twice(exp, twice(relu, x)) }";
    assert_eq!(signature(text), "f32 [3] -> f32 [3]");
    // A definition inside of a function too, but for what belongs to the function around it.
    let text = "fn(x : f32 [2], y : f32 [3], w) { g = fn(a) { concat(a, w) }; g(x), g(y) }";
    assert_eq!(signature(text), "(f32 [2], f32 [3], f32 [a]) -> (f32 [(+ a 2)], f32 [(+ a 3)])");
}

#[test]
fn names_of_numbers_are_used_at_several_types_ranks_and_shapes() {
    let text = "one = 1; half = 0.5; more = one; \
        f = fn(x : f32 [2], y : i32 [3,3]) { k = -1; x * one - half, y + more, x + k, y - k }";
    assert_eq!(signature(text), "(f32 [2], i32 [3,3]) -> (f32 [2], i32 [3,3], f32 [2], i32 [3,3])");
    assert_eq!(signature("half = 0.5;"), "t a");
    assert_eq!(
        signature("fn(x : f32 [3], y : f32 [2,3]) { k = 2; x * k + y }"),
        "(f32 [3], f32 [2,3]) -> f32 [2,3]"
    );
    // A tensor that a number was combined with is no number.
    let text = "next = fn(x) { x + 1 }; \
        f = fn(x : f32 [c], y : f32 [b,c]) { z = y * y; x * z, next(z) };";
    assert_eq!(signature(text), "(f32 [c], f32 [b,c]) -> (f32 [b,c], f32 [b,c])");
    // Also where they are calculated.
    let text = "f = fn(x : f32 [2], y : i32 [3]) { two = 1 + 1; x * two, y * two };";
    assert_eq!(signature(text), "(f32 [2], i32 [3]) -> (f32 [2], i32 [3])");
    assert_eq!(
        error("wide = 300; also = wide; f = fn(x : f32 [2], y : i8 [2]) { x * also, y * also };"),
        "1:8: error: 300 does not fit i8, expected -128 to 127 [AX0202]"
    );
}

#[test]
fn numbers_are_scalars_where_tensors_are_asked_for() {
    assert_eq!(signature("fn(x : f32 [4,5]) { gather(x, 0) }"), "f32 [4,5] -> f32 [5]");
    assert_eq!(signature("fn(x, i) { gather(x, i / 2 - 1) }"), "(t [a]@b, u c) -> t c@b");
    // In any shape that is needed elsewhere.
    assert_eq!(signature("fn(x) { x / sqrt(64f) }"), "t a -> t a");
    assert_eq!(signature("fn() : f32 [2,3] { 0 }"), "() -> f32 [2,3]");
    assert_eq!(
        signature("fn(x : f32 [2,3]) { loop(0, fn(s, e) { s + e, e }, x) }"),
        "f32 [2,3] -> (f32 [3], f32 [2,3])"
    );
    let text = "leaky = fn(x, slope) { max(x, x * slope) }; fn(x : f32 [3]) { leaky(x, 0.1) }";
    assert_eq!(signature(text), "f32 [3] -> f32 [3]");
}

#[test]
fn all_definitions_are_used_at_several_types() {
    let types = |text: &str, expected: &str| assert_eq!(signature(text), expected, "{text}");
    let twice = "(f32 [2], f64 [3]) -> (f32 [2], f64 [3])";
    types(
        "scale = fn(k) { fn(x) { x * k } }; half = scale(0.5); \
         fn(x : f32 [2], y : f64 [3]) { half(x), half(y) }",
        twice,
    );
    types(
        "compose = fn(f, g) { fn(x) { g(f(x)) } }; h = compose(exp, tanh); \
         fn(x : f32 [2], y : f64 [3]) { h(x), h(y) }",
        twice,
    );
    types("a, (b, _) = exp, (tanh, 1); fn(x : f32 [2], y : f64 [3]) { b(a(x)), a(b(y)) }", twice);
    // What belongs to the function around it is the same at all uses: shapes here.
    let text = "fn(x, y : f64 [3], z : i32 [2]) { ones = select(x > 0, 1, 1); y * ones, z * ones }";
    assert_eq!(
        error(text),
        "1:73: error: operands of '*' have shapes [2] and [3]: size 2 is not 3 [AX0301]"
    );
    let text =
        "fn(x : f32 s, y : f64 s, z : i32 s) { ones = select(x > 0, 1, 1); y * ones, z * ones }";
    types(text, "(f32 s, f64 s, i32 s) -> (f64 s, i32 s)");
    // A function whose operations have to do with what is known here is complete where it is used.
    types(
        "fn(x : f32 [3]) { d = (fn(g) { fn(b) { b * g } })(sum(x)); x + d(x) }",
        "f32 [3] -> f32 [3]",
    );
    // Parts that only a condition holds together are not had apart.
    types(
        "two = fn(f) { fn(x : f32 [m], y : f32 [n]) : f32 [8] { f(concat(x, y)) } }; g, _ = two(exp), 1; \
         fn(a : f32 [3], b : f32 [5]) { g(a, b) }",
        "(f32 [3], f32 [5]) -> f32 [8]",
    );
    assert_eq!(
        error("f = fn(g) { h = g; fn(x : f32 [2], y : f64 [2]) { h(x), h(y) } };"),
        "1:59: error: argument 1 of 'h': element types f32 and f64 differ [AX0202]"
    );
}

/// What says that the types in definitions are equal does not double with each of them.
#[test]
fn definitions_of_definitions_are_inferred_in_time() {
    let mut text = "f0 = fn(x) { x };".to_string();
    for (next, last) in (1..=40).zip(0..) {
        text += &format!("f{next} = f{last}(f{last});");
    }
    assert_eq!(signature(&format!("{text} fn(x : f32 [3]) {{ f40(x) }}")), "f32 [3] -> f32 [3]");
}

/// A condition may say what a size is that variables of the definition make: they are others at each use.
#[test]
fn conditions_are_those_of_each_use() {
    let joined =
        "r = fn(x : f32 [m], y) : f32 [8] { concat(x, y) }; main = fn(a : f32 [3], b : f32 [5]";
    assert_eq!(
        signature(&format!("{joined}, c : f32 [2], d : f32 [6]) {{ r(a, b) + r(c, d) }};")),
        "(f32 [3], f32 [5], f32 [2], f32 [6]) -> f32 [8]"
    );
    let text =
        "r = fn(x) : f32 [2] { concat(slice(x, size=m), x) }; main = fn(x, y) { r(x), r(y) };";
    assert_eq!(
        signature(text),
        "(f32 [(- 2 a)], f32 [(- 2 b)]) -> (f32 [2], f32 [2]) where a <= 1, b <= 1"
    );
    for text in ["r(a, b) + w", "w + r(a, b)"] {
        let error = error(&format!("{joined}, w : f32 [9]) {{ {text} }};"));
        assert!(error.contains("operands of '+' have shapes"), "{error}");
    }
    for params in [
        "x : f32 [m], y",
        "x, y : f32 [n]",
        "x : f32 [m], y : f32 [n]",
        "x, y",
        "x : f32 [m], y : f32 s",
    ] {
        for (inner, result) in
            [("concat(x, y)", "8"), ("concat(y, x)", "8"), ("z = concat(x, y); z", "4 + 4")]
        {
            let text = format!(
                "r = fn({params}) : f32 [{result}] {{ {inner} }}; \
                 main = fn(a : f32 [3], b : f32 [5], w) {{ r(a, b) + w, r(b, a) }};"
            );
            assert_eq!(
                signature(&text),
                "(f32 [3], f32 [5], f32 [8]) -> (f32 [8], f32 [8])",
                "{text}"
            );
        }
    }
}

#[test]
fn broadcasting_is_for_what_cannot_be_equal() {
    assert_eq!(signature("fn(a : f32 [2,3], b) { a + b }"), "(f32 [2,3], f32 [2,3]) -> f32 [2,3]");
    assert_eq!(
        signature("fn(a : f32 [2,3], b : f32 [3]) { a + b }"),
        "(f32 [2,3], f32 [3]) -> f32 [2,3]"
    );
    assert_eq!(
        signature("fn(a : f32 [n], b : f32 [2,3]) { a + b }"),
        "(f32 [3], f32 [2,3]) -> f32 [2,3]"
    );
    assert_eq!(
        signature("fn(a : f32 s, b : f32 [3]@s) { a * b }"),
        "(f32 s, f32 [3]@s) -> f32 [3]@s"
    );
    // What is known later counts: point-wise operations come last.
    assert_eq!(
        signature("fn(a, b : f32 [3]) { c = a - b; d = matmul(a, a); c }"),
        "(f32 a@[3,3], f32 [3]) -> f32 a@[3,3]"
    );
    assert_eq!(
        signature("fn(c, a : f32 [2,3], b : f32 [3]) { select(c, a, b) }"),
        "(bool [2,3], f32 [2,3], f32 [3]) -> f32 [2,3]"
    );
    // An operation waits for those that its operands depend on.
    assert_eq!(
        signature("fn(a : f32 [3], b : f32 [], c : f32 []) { a * b + c }"),
        "(f32 [3], f32 [], f32 []) -> f32 [3]"
    );
    assert_eq!(
        signature("fn(x : f32 [2,3], k : f32) { map(fn(r) { k - r * k * k }, x + x) }"),
        "(f32 [2,3], f32 []) -> f32 [2,3]"
    );
    assert_eq!(
        signature(
            "fn(x : f32 [2,3], k : f32 [3]) { loop(k, fn(s, r) { s * 2f + k, k + r * s }, x * k) }"
        ),
        "(f32 [2,3], f32 [3]) -> (f32 [3], f32 [2,3])"
    );
    // Numbers have any shape.
    assert_eq!(signature("fn(x) { max(x * 2, 0f) }"), "t a -> t a");
}

#[test]
fn shapes_are_inferred_backwards() {
    assert_eq!(
        signature("fn(x, f : f32 [8,3,3,3]) : f32 [1,8,30,30] { conv(x, f) }"),
        "(f32 [1,3,32,32], f32 [8,3,3,3]) -> f32 [1,8,30,30]"
    );
    assert_eq!(
        signature("fn(x : f32 [n,3,9,9]) { conv(x, reshape(x, shape=[4,3,k,k]), stride=2) }"),
        "f32 [4,3,9,9] -> f32 [4,4,1,1]"
    );
    assert_eq!(
        signature("fn(x : f32 [n,3,18,18]) { conv(x, reshape(x, shape=[4,3,k,k]), stride=2) }"),
        "f32 [n,3,18,18] -> f32 [n,4,(/ (- 20 k) 2),(/ (- 20 k) 2)] \
         where (/ (- 20 k) 2) > 0, (* n 972) = (* (* k k) 12)"
    );
    // A difference that is known says what its first size is.
    assert_eq!(
        signature("fn(x : t [n,3,h,40], f : t [5,3,a,12]) : t [1,5,30,w] { conv(x, f) }"),
        "(t [1,3,(+ a 29),40], t [5,3,a,12]) -> t [1,5,30,29]"
    );
    assert_eq!(signature("fn(x : f32 [n,5]) { x + iota() }"), "f32 [n,5] -> f32 [n,5]");
    assert_eq!(
        signature("fn(x : f32 [4,5]) { gather(x, iota(size=2)) }"),
        "f32 [4,5] -> f32 [2,5]"
    );
}

/// Whatever a definition asks for first.
#[test]
fn the_order_of_calls_does_not_matter() {
    let expected = "t a@[b,b] -> (t a@[b,b], t a@[b,b]) where [c]@d = a@[b,b]";
    for text in [
        "fn(x) { reverse(x), matmul(x, x) }",
        "fn(x) { r = reverse(x); m = matmul(x, x); r, m }",
        "fn(x) { matmul(x, x), reverse(x) }",
        "fn(x) { m = matmul(x, x); r = reverse(x); r, m }",
    ] {
        assert_eq!(signature(text), expected, "{text}");
    }
    let text = "fn(x : f32 [2,a]@s, y) { z = reverse(y); matmul(y, y), concat(x, z) }";
    assert_eq!(
        signature(text),
        "(f32 [2,a]@s, f32 [b,a]@s) -> (f32 [b,a]@s, f32 [(+ b 2),a]@s) \
         where [b,a]@s = c@[d,d]"
    );
}

#[test]
fn what_is_left_is_a_condition() {
    assert_eq!(
        signature("fn(x : f32 [m], y : f32 [n]) : f32 [8] { concat(x, y) }"),
        "(f32 [m], f32 [n]) -> f32 [8] where (+ m n) = 8"
    );
    // Conditions of a function hold where it is called.
    let text = "f = fn(x : f32 [m], y : f32 [n]) : f32 [8] { concat(x, y) }; \
                fn(a : f32 [3], b) { f(a, b) }";
    assert_eq!(signature(text), "(f32 [3], f32 [5]) -> f32 [8]");
    let text = "f = fn(x : f32 [m], y : f32 [n]) : f32 [8] { concat(x, y) }; \
                fn(a : f32 [3], b : f32 [4]) { f(a, b) }";
    assert_eq!(
        error(text),
        "1:98: error: argument 2 of 'f' has shape [4], expected [5]: size 4 is not 5 [AX0301]"
    );
    assert_eq!(
        signature("fn(x : f32 [n]) { slice(x, start=2, size=3) }"),
        "f32 [n] -> f32 [3] where 5 <= n"
    );
}

#[test]
fn errors_name_both_shapes_and_all_that_is_needed() {
    let text = "f = fn(x : f32 [2,3]) {\n  y = exp(x);\n  unrelated = x + x;\n  matmul(y, y)\n};";
    assert_eq!(
        errors(text),
        "test.axon:4:13: error: argument 2 of 'matmul' has shape [2,3], expected [3,_]: \
         size 2 is not 3 [AX0301]\n  matmul(y, y)\n            ^\n\
         test.axon:1:12: note: annotation of 'x' is f32 [2,3]\nf = fn(x : f32 [2,3]) {\n           \
         ^~~~~~~~~\n\
         test.axon:2:11: note: argument 1 of 'exp' is f32 [2,3]\n  y = exp(x);\n          ^\n\
         test.axon:4:10: note: argument 1 of 'matmul' is f32 [2,3]\n  matmul(y, y)\n         ^\n"
    );
}

#[test]
fn sizes_of_options_are_no_less_than_they_may_be() {
    for (body, condition) in [
        ("slice(x, start=n-m, size=m)", Some("m <= n")),
        ("slice(x, start=m-4, size=1)", Some("4 <= m")),
        ("slice(x, start=n/(m-2), size=1)", Some("3 <= m")),
        ("conv(i, w, padding=m-5)", Some("5 <= m")),
        ("conv(i, w, dilation=m-5)", Some("6 <= m")),
        ("conv(i, w, stride=[m-5,1])", Some("6 <= m")),
        ("conv(i, w, padding=m+n)", None),
    ] {
        let program = "f = fn(x : f32 [n], y : f32 [m], i : f32 [1,1,9,9], w : f32 [1,1,1,1])";
        let mut inferred = inferred(&format!("{program} {{ {body} }};")).expect("it has a type");
        let conditions = inferred.signature(Some("f")).expect("f is defined").conditions;
        match condition {
            Some(expected) => assert!(conditions.iter().any(|it| it.text == expected), "{body}"),
            None => assert!(conditions.is_empty(), "{body}: {conditions:?}"),
        }
    }
    assert_eq!(
        error(
            "f = fn(x : f32 [9], y : f32 [n]) { slice(x, size=2, start=n-4) };\n\
               g = fn(x : f32 [9], y : f32 [2]) { f(x, y) };"
        )
        .lines()
        .next(),
        Some("2:36: error: call of 'f' needs 4 <= n, which is 4 <= 2 here [AX0301]")
    );
    for (option, found) in
        [("start=2.5", "2.5"), ("size=3.5.6.7", "3.5.6.7"), ("size=n/2.9", "2.9")]
    {
        let error = error(&format!("f = fn(x : f32 [n]) {{ slice(x, {option}) }};"));
        assert!(error.contains(&format!("expected a size, found '{found}'")), "{error}");
    }
}

#[test]
fn arguments_in_another_order_are_one_mistake() {
    for (call, places) in [
        ("map(x, exp)", "1 and 2"),
        ("fn(y) { map(y, fn(row) { row }) }", "1 and 2"),
        ("scan(fn(s, row) { s, row }, 0f, x)", "1 and 2"),
        ("reduce(0f, +, x)", "1 and 2"),
        ("reduce(x, 0f, +)", "1 and 3"),
        ("loop(fn(s, row) { s, row }, 0f, x)", "1 and 2"),
        ("map(0f, x)", ""),
        ("reduce(+, +, x)", ""),
    ] {
        let errors = errors(&format!("f = fn(x : f32 [3]) {{ {call} }};"));
        let hint = format!("takes arguments {places} in the other order");
        assert_eq!(errors.contains(&hint), !places.is_empty(), "{errors}");
        assert_eq!(errors.matches(": error: ").count(), 1, "{errors}");
    }
}

#[test]
fn habits_of_other_languages_are_answered() {
    let tried = |text: &str| {
        let errors = errors(text);
        let tried = errors.lines().filter_map(|line| line.split_once(": note: try "));
        tried.map(|(_, tried)| tried.to_string()).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(tried("f = fn(x) { let y = x; y };"), "'name = value;' without a keyword");
    assert_eq!(tried("f = fn(x) { return x };"), "the value alone: it ends the function");
    assert_eq!(tried("def f(x) { x }"), "'name = fn(..) { .. };'");
    let select = "'select(condition, value, otherwise)'";
    assert_eq!(tried("f = fn(x) { if x > 0 then x else 0 };"), select);
    assert_eq!(tried("f = fn(x) { x > 0 ? x : 0 };"), select);
    assert_eq!(tried("f = fn(x) { for i in x };"), "'map', 'reduce' or 'loop' over dimension 0");
    assert_eq!(tried("f = fn(x) -> f32 [2] { x };"), "':' before the type of a result");
    assert_eq!(tried("f = fn(x) { x @ x };"), "'matmul' for a product of matrices");
    assert_eq!(
        tried("f = fn(x) { x[0] };"),
        "'gather' for elements, or 'slice' for a range of them"
    );
    assert_eq!(
        tried("f = fn(x) { reshape(x, [3,1]) };"),
        "'shape=[..]' for an option; brackets hold sizes, not values"
    );
    assert_eq!(
        tried("f = fn(x, y) { concat([x, y]) };"),
        "values without brackets, 'concat(x, y)': these hold sizes"
    );
    assert_eq!(tried("f = fn(x : [3,4]) { x };"), "an element type before the shape: 'f32 [3,4]'");
    assert_eq!(tried("f = fn(x : [3;4]) { x };"), "an element type before the shape: 'f32 [3,4]'");
    assert_eq!(
        tried("f = fn(x : f32 [3] [4]) { x };"),
        "one list of sizes, '[3,4]', or '@' between two"
    );
    let brackets = "brackets around the sizes: 'f32 [3,4]'";
    for written in ["f32(3)", "f32<3x4>", "f32 3"] {
        assert_eq!(tried(&format!("f = fn(x : {written}) {{ x }};")), brackets);
    }
    assert_eq!(
        error("f = fn(x : f32 [3;4]) { x };"),
        "1:18: error: expected ',' or ']' after a dimension, found ';' [AX0001]"
    );
    assert_eq!(
        tried("f = fn(x : f32 [?,4]) { reshape(x, shape=[-1]) };"),
        "a name for a size that is open, or follows from others: '[n,4]'"
    );
    assert_eq!(
        tried("f = fn(x : f32 [..., 3]) { x };"),
        "a name for dimensions that are open: 's@[4]'"
    );
    assert_eq!(
        tried("f = fn(x, w) { conv(x, w, stride=(2,2)) };"),
        "brackets around sizes: '[2,2]'"
    );
    let transpose = "a function of the value: 'transpose(x)' instead of 'x.T'";
    assert_eq!(tried("f = fn(x) { x.T };"), transpose);
    let alone = "the name of a function alone: 'exp(x)'";
    assert_eq!(tried("f = fn(x) { np.exp(x) };"), alone);
    assert_eq!(tried("f = fn(x) { x.sum() };"), alone);
    assert_eq!(tried("f = fn(x) { x * 1e400 };"), "'inf'");
    assert_eq!(tried("f = fn(x) { x * .5 };"), "a digit before the point: '0.5'");
    assert_eq!(tried("f = fn(x) { x ^ 2 };"), "a product: 'x * x'");
    assert_eq!(tried("f = fn(x) { x % 2 };"), "'x - x / y * y' for a remainder of integers");
    let body = "'{ .. }' around the body: 'fn(x) { value }'";
    assert_eq!(tried("f = fn(x) => x;"), body);
    assert_eq!(tried("f = fn(x) = x + 1;"), body);
    assert_eq!(tried("f(x) = x + 1;"), "'f = fn(..) { .. };'");
    assert_eq!(tried("f(x, (y)) { x }"), "'name = fn(..) { .. };'");
    assert_eq!(tried("f = fn(x): { x };"), "nothing instead of ':' before a body");
    assert_eq!(tried("f = lambda x: x;"), "'fn(x) { value }'");
    assert_eq!(tried("f = fn(x) { relu x };"), "parentheses around the arguments: 'relu(x)'");
    assert_eq!(tried("f = fn(x) { x += 1; x };"), "the whole definition: 'x = x + 1;'");
    assert_eq!(tried("f = fn(x) { y := x; y };"), "'name = value;'");
    assert_eq!(tried("f = fn(x) { if (x > (0)) { x } else { 0 } };"), select);
    assert_eq!(tried("f = fn(x) { x + 1 if x > 0 else 0 };"), select);
    assert_eq!(tried("f = fn(a, b) { a or b };"), "'select(a, a, b)' for a or b");
    for not in ["!a", "not a"] {
        assert_eq!(
            tried(&format!("f = fn(a, x) {{ select({not}, x, 0) }};")),
            "'select(a, 0 == 1, 0 == 0)' for not a"
        );
    }
    assert_eq!(tried("f = fn(x) { maximum(x, 0) };"), "'max(x, y)' for the larger one of two");
    for text in ["f = fn(x) { y = x };", "f = fn(x) { y = x; };"] {
        assert_eq!(tried(text), "'y' after this definition: a body ends in a value");
    }
    for comment in ["// a", "/* a */"] {
        assert_eq!(tried(&format!("{comment}\nf = fn(x) {{ x }};")), "'#', which starts a comment");
    }
    assert_eq!(tried("f = fn(x, y) { cat(x, y) };"), "'concat'");
    for lambda in ["|x| x", "\\x -> x"] {
        assert_eq!(tried(&format!("f = {lambda};")), "'fn(x) { value }'");
    }
    assert_eq!(tried("fn f(x) { x }"), "'name = fn(..) { .. };'");
    assert_eq!(tried("f = fn(x) { 2x };"), "'*' between a number and a name: '2 * x'");
    assert_eq!(
        tried("f = fn(x) { x + 1.0f32 };"),
        "'f' alone: a number has the element type that is needed"
    );
    assert_eq!(tried("f = fn(x) { x + 0xff };"), "a decimal number");
    assert_eq!(tried("f = fn(x) { exp(x=x) };"), "the arguments in order, without names");
    assert_eq!(tried("f = fn(x) { zeros(shape=[3]) + x };").split(':').next(), Some("a number"));
    let text = errors("f = fn(x) { reshape(x, 3, 4) };");
    assert!(text.contains(": note: options have names; try 'shape=[..]'"), "{text}");
    assert_eq!(tried("f = fn(x : f32 @[n]) { x };"), "a name before '@': 's@[n]'");
    assert_eq!(tried("f = fn(x) { x ** 2 };"), "a product: 'x * x'");
    assert_eq!(tried("f = fn(x) { x // as it is\n };"), "'#', which starts a comment");
    assert_eq!(tried("f = fn(a, b) { a && b };"), "'select(a, b, a)' for a and b");
    assert_eq!(tried("f = fn(weights) { relu(wieghts) };"), "'weights'");
    assert_eq!(tried("f = fn(x) { sigmiod(x) };"), "'sigmoid'");
    assert_eq!(tried("f = fn(x) { sofmax(x) };"), "'softmax'");
    assert_eq!(signature("f = fn(let) { let };"), "S -> S");
}

#[test]
fn errors_of_calls_say_what_the_function_is() {
    let last = |text: &str| {
        let errors = errors(text);
        let last = errors.lines().rfind(|line| line.contains(": note: ")).unwrap_or_default();
        last.trim_start_matches("test.axon:").to_string()
    };
    assert_eq!(
        last("fn(x : f32 [2]) { map(x, x) }"),
        "1:23: note: 'map' has the type (fn(t b) -> u c, t [n]@b) -> u [n]@c"
    );
    assert_eq!(
        last("fn(x) { relu(x, x) }"),
        "1:9: note: 'relu' has the type (t s) -> t s where t : number"
    );
    assert_eq!(
        last("fn(x) { scan(0f, 0f, x) }"),
        "1:18: note: 'scan' has the type (S, fn(S, t a) -> (S, u b), t [c]@a) -> (S, u [c]@b)"
    );
    assert_eq!(
        last("g = fn(a : f32 [n], b) { a + b }; fn(x) { g(x) }"),
        "1:43: note: 'g' has the type (f32 [n], f32 [n]) -> f32 [n]"
    );
    assert_eq!(last("fn(g, x) { g(g, x) }"), "");
}

/// Where operations wait for each other, what has to be broadcast is decided first.
#[test]
fn what_has_to_be_broadcast_is() {
    assert_eq!(
        signature(
            "f = fn(p : f32 [d]@s) { v = map(fn(r) { r + p }, p); \
             _, l = loop(p, fn(t, r) { t + r, r }, v); v - p, l };"
        ),
        "f32 [d]@s -> (f32 [d,d]@s, f32 [d,d]@s)"
    );
}

/// In both orders, though each condition could hold alone.
#[test]
fn ranks_that_fit_together_nowhere_are_refused() {
    let [reverse, matmul] =
        ["a = map(fn(r) { reverse(r) }, x);", "b = map(fn(r) { matmul(r, x) }, x);"];
    for both in [[reverse, matmul], [matmul, reverse]] {
        let error = error(&format!("fn(x) {{ {} b }}", both.concat()));
        assert!(error.ends_with("one has 1 dimension more than the other [AX0301]"), "{error}");
    }
}

#[test]
fn one_error_per_mistake() {
    assert_eq!(error("fn(x) { x + q }"), "1:13: error: 'q' is not defined [AX0101]");
    assert_eq!(
        error("g = fn(a, b) { a }; fn(x) { g(x) }"),
        "1:29: error: 'g' takes 2 arguments, found 1 [AX0103]"
    );
    assert_eq!(
        error("fn(x : f32 [2], y : i32 [2]) { x + y }"),
        "1:36: error: argument 2 of '+': element types f32 and i32 differ [AX0202]"
    );
    assert_eq!(
        error("fn(x : i32 [2]) { exp(x) }"),
        "1:23: error: argument 1 of 'exp': expected a float element type, found i32 [AX0202]"
    );
    assert_eq!(
        error("fn(x : f24 [2]) { x }"),
        "1:8: error: 'f24' is no element type, expected bool, i8, i16, i32, i64, u8, u16, u32, \
         u64, f16, bf16, f32, f64, or a variable such as 't' [AX0202]"
    );
    // Variables with these names would accept everything.
    for (name, meant) in [
        ("f8", "f16"),
        ("f33", "f32"),
        ("F32", "f32"),
        ("f128", "f64"),
        ("bfloat16", "bf16"),
        ("float32", "f32"),
        ("int8", "i8"),
        ("uint64", "u64"),
        ("float", "f32"),
        ("int", "i32"),
        ("Bool", "bool"),
        ("number", "f32"),
    ] {
        let expected = format!("'{name}' is no element type");
        for text in [format!("fn(x : {name} [2]) {{ x }}"), format!("fn(x : {name}) {{ x }}")] {
            assert!(error(&text).contains(&expected));
            assert!(errors(&text).contains(&format!(": note: try '{meant}'")));
        }
    }
    for name in ["t", "f", "i", "u", "bf", "float2", "ints", "t32"] {
        assert_eq!(inferred(&format!("fn(x : {name} [2]) {{ x }}")).err(), None);
    }
    assert_eq!(
        error("fn(x : f32 s, y : f32 [s]) { x }"),
        "1:24: error: 's' is a shape elsewhere, and stands for one dimension here; expected \
         another name [AX0102]"
    );
    assert_eq!(error("f = fn(x) { f(x) };"), "1:13: error: 'f' is not defined [AX0101]");
    assert_eq!(
        error("fn(x) { x(x) }"),
        "1:9: error: call of 'x': a type that would contain itself; a parameter has one type only \
         [AX0201]"
    );
    assert_eq!(
        error("fn(f, x : f32 [2]) { f(x) + f(f) }"),
        "1:31: error: argument 1 of 'f': expected f32 [2], found fn(f32 [2]) -> _ [AX0201]"
    );
    assert_eq!(
        error("fn() { iota(size=3, size=4) }"),
        "1:21: error: option 'size' is given twice [AX0104]"
    );
    assert_eq!(
        error("fn(x, n : i32) { slice(x, size=n) }"),
        "1:32: error: 'n' is a value here, and option 'size' expects sizes, which come from shapes; \
         try the name of a dimension, as n in 'x : t [n]' [AX0104]"
    );
    assert_eq!(
        signature("f = fn(x : f32 [n], n : i32) { slice(x, size=n) };"),
        "(f32 [n], i32 []) -> f32 [n]"
    );
    assert_eq!(
        error("fn(k : f32) { k(k) }"),
        "1:15: error: expected a function, found f32 [] [AX0201]"
    );
    let grows = |value: &str| {
        let error = error(&format!("g = fn(y : f32 [m]) : f32 [4294967296*m] {{ 1f }}; {value}"));
        assert!(error.ends_with("the size of a dimension overflows 64 bits [AX0002]"), "{error}");
    };
    grows("fn(x) { g(g(x)) }");
    grows("fn(x) { g(g(g(x))) }");
    assert_eq!(
        error("fn(x) { conv(x, x, strides=2) }"),
        "1:20: error: 'conv' has no option 'strides', expected 'stride', 'padding', 'dilation' \
         [AX0104]"
    );
    assert_eq!(
        error("fn(x) { conv(x, x, stride=0) }"),
        "1:27: error: option 'stride' expects a size or 2 sizes in brackets, at least 1 [AX0104]"
    );
    assert_eq!(
        error("fn(x) { a, b = exp(x); a }"),
        "1:9: error: definition of several names: expected (_, _), found a tensor [AX0201]"
    );
    assert_eq!(
        error("fn(x : f32 [0]) { exp(x) }"),
        "1:8: error: annotation of 'x' needs a positive size, found 0 [AX0301]"
    );
    assert_eq!(
        error("fn(x : f32 [3000000000]) { x }"),
        "1:12: error: size 3000000000 is too large, expected at most 2147483647 [AX0002]"
    );
    assert_eq!(
        error("fn(x : f32 [n / 0]) { x }"),
        "1:12: error: the size of a dimension is divided by zero [AX0301]"
    );
    let too_large = "the expression of a shape is too large, expected at most 1024 dimensions, \
                     512 operators in a size, and 8 factors in a product [AX0002]";
    assert_eq!(error("fn(x : f32 [n*n*n*n*n*n*n*n*n]) { x }"), format!("1:12: error: {too_large}"));
    assert_eq!(
        error("fn(x : f32 [n]) { iota(size=n*n*n*n*n*n*n*n*n) }"),
        format!("1:29: error: {too_large}")
    );
    assert_eq!(
        error("fn(x : f32 [9000000000*9000000000]) { x }"),
        "1:12: error: the size of a dimension overflows 64 bits [AX0002]"
    );
    assert_eq!(
        error("fn(x : f32 [*,2]) { reshape(x, shape=[4]) }"),
        "1:21: error: call of 'reshape': shapes [*,2] and [4] have different numbers of elements: \
         a ragged tensor has no number of elements [AX0301]"
    );
}

#[test]
fn a_wrong_definition_does_not_hide_the_next() {
    let first = "f = fn(a : f32 [n*k - n - 1]) : f32 [0] { a };";
    let second = "g = fn(a : f32 [n+m], c : f32 [n+m-35]) : f32 [3] { a };";
    let both = errors(&format!("{first}\n{second}"));
    assert_eq!(both.matches("error: ").count(), 2, "{both}");
    assert!(both.contains("1:33: error: ") && both.contains("2:27: error: "), "{both}");
}

#[test]
fn sizes_that_all_terms_share_cancel() {
    assert_eq!(
        signature("fn(x : f32 [b,12]) : f32 [b,h,4] { reshape(x) }"),
        "f32 [b,12] -> f32 [b,3,4]"
    );
    assert!(errors("fn(x : f32 [b,10]) : f32 [b,h,4] { reshape(x) }").contains("AX0301"));
    assert!(errors("fn(y : f32 [1]@q@q) : f32 p@p { y }").contains("AX0301"));
}

proptest! {
    /// A comparison says that a size is positive, at all sizes.
    #[test]
    fn positive_sizes_are_compared(constant in -30_i64..30, factors in prop::array::uniform2(-6_i64..7), scale in 1_i64..6) {
        let mut types = types::Types::default();
        let vars = [types.solver.dim_var(0), types.solver.dim_var(0)];
        let arithmetic = types.solver.arithmetic();
        let term = |(var, factor): (&DimVar, &i64)| {
            arithmetic.apply(DimOp::Mul, &Dim::Var(*var), &Dim::Constant(factor * scale)).unwrap()
        };
        let sum = vars.iter().zip(&factors).map(term).fold(Dim::Constant(constant), |sum, term| {
            arithmetic.apply(DimOp::Add, &sum, &term).unwrap()
        });
        let Some((less, sign, more)) = display::comparison(arithmetic, &sum) else {
            return Ok(());
        };
        let text = |dim| arithmetic.dim_text(dim, &|var| if var == vars[0] { "m" } else { "n" }.to_string());
        let shown = format!("{} {sign} {}", text(&less), text(&more));
        for m in 1..12 {
            for n in 1..12 {
                let value = |dim| {
                    arithmetic.evaluate(dim, &|var| Some(if var == vars[0] { m } else { n })).unwrap()
                };
                let holds = match sign {
                    "<" => value(&less) < value(&more),
                    _ => value(&less) <= value(&more),
                };
                prop_assert_eq!(holds, 0 < value(&sum), "{} at {}, {}", shown, m, n);
            }
        }
    }
}

#[test]
fn shapes_of_parameters() {
    let given = |element, dims: &[i64]| {
        // What is not positive is not given.
        let dims = dims.iter().map(|size| (0 < *size).then_some(*size)).collect();
        Some(Given { parameter: "Q".to_string(), element, dims, source: None })
    };
    for (text, expected) in [
        ("Q=128x64", given(None, &[128, 64])),
        ("Q=[128, 64]", given(None, &[128, 64])),
        ("Q=f64[128,64]", given(Some(ElementType::F64), &[128, 64])),
        ("Q=f64 3x4", given(Some(ElementType::F64), &[3, 4])),
        ("Q=bool []", given(Some(ElementType::Bool), &[])),
        ("Q=[]", given(None, &[])),
        ("Q=7", given(None, &[7])),
        ("Q=?x64", given(None, &[0, 64])),
        ("Q=f16[?, ?]", given(Some(ElementType::F16), &[0, 0])),
    ] {
        assert_eq!(Given::parse(text), expected, "{text}");
    }
    for text in [
        "Q", "Q=", "Q=f32", "Q=0x1", "Q=-1", "Q=[1", "Q=1]", "Q=f24[1]", "Q=1xx2", "Q=??",
        "=\u{e9}[",
    ] {
        assert_eq!(Given::parse(text), None, "{text}");
    }
}

#[test]
fn numbers_have_the_type_of_their_elements() {
    assert_eq!(
        error("fn(x : i8 [2]) { x + 300 }"),
        "1:22: error: 300 does not fit i8, expected -128 to 127 [AX0202]"
    );
    assert!(
        errors("fn(x : u8 [2]) { y = exp(0f); x * -1 }").contains("annotation of 'x' is u8 [2]")
    );
    assert!(
        errors("fn(x : i32 [3]) { reduce(+, 0f, reduce(+, 0, x) < 3) }")
            .contains("1:29: note: argument 2 of 'reduce' is a float")
    );
    assert_eq!(signature("fn(x : i16 [2]) { x + 300 }"), "i16 [2] -> i16 [2]");
    // Also where a function is used at several types, in it and in those that it calls.
    let functions = "g = fn(x) { h = fn(y) { y * 2 - 300 }; h(x) };";
    let uses = "k = fn(x) { g(x) }; f = fn(a : i16 [2], b : i8 [3]) { k(a), k(b), k(b) };";
    let found = errors(&format!("{functions}\n{uses}"));
    let heads = found.lines().filter_map(|line| line.strip_prefix("test.axon:"));
    assert_eq!(
        heads.collect::<Vec<_>>(),
        [
            "1:33: error: 300 does not fit i8, expected -128 to 127 [AX0202]",
            "1:25: note: argument 1 of '*' is a tensor of numbers",
            "1:25: note: argument 1 of '-' is a tensor of numbers",
            "1:33: note: argument 2 of '-' is a number",
            "1:40: note: in the call of 'h' here",
            "1:42: note: argument 1 of 'h' is a tensor of numbers",
            "2:13: note: in the call of 'g' here",
            "2:15: note: argument 1 of 'g' is a tensor of numbers",
            "2:45: note: annotation of 'b' is i8 [3]",
            "2:61: note: in the call of 'k' here",
            "2:63: note: argument 1 of 'k' is i8 [3]",
        ]
    );
    assert_eq!(
        signature(&format!("{functions} f = fn(x : i16 [2]) {{ g(x) }};")),
        "i16 [2] -> i16 [2]"
    );
    assert_eq!(signature("fn(x) { x + 300 }"), "t a -> t a");
}

#[test]
fn what_cannot_be_written_is_answered() {
    let found = |text: &str| -> Vec<String> {
        let errors = errors(text);
        let lines = errors.lines().filter_map(|line| line.strip_prefix("test.axon:"));
        lines.map(str::to_string).collect()
    };
    assert_eq!(
        found("f = fn(x : f32 [3,4]) { sum(x, axis=1) };"),
        [
            "1:32: error: 'sum' has no options, only built-in functions have [AX0104]",
            "1:32: note: functions work along dimension 0; try 'map' for each row, or 'transpose'"
        ]
    );
    assert_eq!(
        found("f = fn(x : f32 [3,4]) { reduce(+, 0f, x, axis=1) };"),
        [
            "1:42: error: 'reduce' has no options, found 'axis' [AX0104]",
            "1:42: note: functions work along dimension 0; try 'map' for each row, or 'transpose'"
        ]
    );
    assert_eq!(
        found("g = fn(x, k) { x * k }; f = fn(x) { g(x, k=2) };"),
        [
            "1:42: error: 'g' has no options, only built-in functions have [AX0104]",
            "1:42: note: try the arguments in order, without names"
        ]
    );
    assert_eq!(
        found("f = fn(x) { g(x) }; g = fn(x) { x };"),
        [
            "1:13: error: 'g' is not defined [AX0101]",
            "1:21: note: 'g' is defined here; try that before its use"
        ]
    );
    assert_eq!(
        found("f = fn(x) { y = f(x); y };"),
        [
            "1:17: error: 'f' is not defined [AX0101]",
            "1:17: note: functions do not call themselves; try 'loop'"
        ]
    );
    assert_eq!(
        found("f = fn(x) { y = y + x; y };"),
        [
            "1:17: error: 'y' is not defined [AX0101]",
            "1:17: note: a definition does not use itself; try another name for one of the two"
        ]
    );
    assert_eq!(
        found("mean = fn(x : f32 [n]) { sum(x) / n };"),
        [
            "1:35: error: 'n' is not defined [AX0101]",
            "1:35: note: 'n' is a size in annotations, and no value"
        ]
    );
}

#[test]
fn options_that_are_missing_are_named() {
    let text = "fn(x : f32 [3]) { slice(x, start=3) }";
    assert_eq!(
        error(text),
        "1:19: error: call of 'slice' needs (+ size start) <= n, which is (+ size 3) <= 3 here: all sizes are \
         at least 1 [AX0301]"
    );
    assert!(errors(text).contains("note: 'size' is not given; try 'size=..'"));
    assert_eq!(
        error("fn(x : f32 [3]) { slice(x, start=2, size=5) }"),
        "1:19: error: call of 'slice' needs (+ size start) <= n, which is 7 <= 3 here [AX0301]"
    );
    assert_eq!(
        error("fn(x : f32 [1,1,4,4], f : f32 [1,1,5,4]) { conv(x, f) }"),
        "1:44: error: call of 'conv' needs r <= h, which is 5 <= 4 here [AX0301]"
    );
}

/// Operators in a row do not nest.
#[test]
fn operators_in_a_row() {
    let row =
        |terms: usize| format!("f = fn(x : f32 [2]) {{ {}x }};", "x - 2f * x + ".repeat(terms));
    assert_eq!(signature(&row(5_000)), "f32 [2] -> f32 [2]");
    assert_eq!(
        error(&row(10_000)),
        "1:106517: error: expression has 16384 operators in a row, expected fewer; try definitions for \
         its parts [AX0002]"
    );
    let deep = format!("f = fn(x) {{ x{} }};", " + (x".repeat(99) + &")".repeat(99));
    assert!(inferred(&deep).is_ok());
    let functions = "fn() { ".repeat(90) + "x" + &format!("{} }}", " + x".repeat(200)).repeat(90);
    assert!(errors(&functions).contains("16384 operators in a row"));
}

/// Hostile texts end in an error, or not at all in one.
#[test]
fn hostile_texts_are_refused() {
    let deep = |open: &str, close: &str| {
        format!("f = {}x{};", open.repeat(100_000), close.repeat(100_000))
    };
    let many = |text: &str| text.repeat(10_000);
    for text in [
        deep("(", ")"),
        deep("fn(x) { ", "}"),
        deep("-", ""),
        deep("f(", ")"),
        deep("x + (", ")"),
        format!("fn(x : {}f32{}) {{ x }}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("fn(x : {}f32) {{ x }}", "fn() -> ".repeat(100_000)),
        format!("fn(x : f32 [{}1]) {{ x }}", "1+".repeat(100_000)),
        format!("f = {}1;", "1 + ".repeat(100_000)),
        format!("f = x{};", many("(x)")),
        "f = fn(x : f32 [999999999999999999999]) { x };".to_string(),
        "f = 99999999999999999999;".to_string(),
        "f = fn(".to_string(),
        "f = fn(x) { x".to_string(),
        "= ; = ; ' \u{e9} 1.2.3 }".to_string(),
        "f = fn(x) { x } g = 1;".to_string(),
        "f(x) = 2;".to_string(),
    ] {
        assert!(inferred(&text).is_err(), "{}", &text[..text.len().min(60)]);
    }
    assert_eq!(
        error("f = fn(x) { }"),
        "1:13: error: expected an expression as the value of the function, found '}' [AX0001]"
    );
    // Types that double, and types that nest, with every definition.
    let mut text = "fn(x) { a0 = x;\n".to_string();
    for at in 0..300 {
        text += &format!("a{} = a{at}, a{at};\n", at + 1);
    }
    assert!(inferred(&(text + "a300 }")).is_err());
    let mut text = "f0 = fn(x) { x, x };\n".to_string();
    for at in 1..40 {
        let before = at - 1;
        text += &format!("f{at} = fn(x) {{ f{before}(x), f{before}(x) }};\n");
    }
    assert!(errors(&text).contains("type has more than 4096 parts"));
    let mut text = "twice = fn(x) { x, x }; f = fn(x) { a0, b0 = twice(x);\n".to_string();
    for at in 0..40 {
        text += &format!("a{0}, b{0} = twice(twice((a{at}, b{at})));\n", at + 1);
    }
    assert!(errors(&(text + "1f }")).contains("type has more than 4096 parts"));
    // Errors are short.
    let long = "[1]@".repeat(900);
    assert!(errors(&format!("fn(x : f32 {long}[2]) : f32 [3] {{ x }}")).len() < 2_000);
    assert!(errors("f = fn(x, x) { x };").contains("'x' is the name of two parameters"));
    assert!(inferred("f = fn(_, _) { 1f };").is_ok());
    // Sizes that double.
    let mut text = "fn(x : f32 [n]) { a0 = x;\n".to_string();
    for at in 0..100 {
        text += &format!("a{} = concat(a{at}, a{at});\n", at + 1);
    }
    assert!(errors(&(text + "a100 }")).contains("overflows"));
}

#[test]
fn explanations_name_rules_and_places() {
    let source = SourceFile::new("t.axon", "f = fn(x : f32 [2,3], y) { matmul(x, y) };");
    let (program, _) = syntax::parse_program(&source);
    let options = Options { explain: true, ..Options::default() };
    let mut inferred = infer(&program, &options);
    let text = inferred.explanation(&source);
    assert!(text.contains("t.axon:1:35: append unpacking: "), "{text}");
    assert!(text.contains("(argument 1 of 'matmul')"), "{text}");
}

/// Pieces of programs, whole and broken.
const PIECES: &[&str] = &[
    "f",
    "g",
    "x",
    "y",
    "_",
    "fn(x, y) { ",
    "fn(x : f32 [n], y : t s@[n, 2*n]) : t s { ",
    " }",
    "; ",
    " = ",
    ", ",
    "(",
    ")",
    " + ",
    " - ",
    " * ",
    "0f",
    "3",
    "-inf",
    "exp(",
    "matmul(x, y)",
    "reduce(+, 0f, x)",
    "map(fn(a) { a }, x)",
    "loop(x, y, x)",
    "concat(x, y)",
    "transpose(x)",
    "conv(x, y, stride=2)",
    "reshape(x, shape=[n,*])",
    "iota(size=4)",
    "slice(x, size=2)",
    "lstmStep(x)",
    "[",
    "]",
    "@",
    ":",
    "->",
    "select(x, y, y)",
    "#\n",
    "'",
    "x(x)",
    "gather(x, y)",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..Default::default() })]

    /// Any text gets a signature or located errors.
    #[test]
    fn any_text_is_answered(pieces in prop::collection::vec(0..PIECES.len(), 0..40)) {
        let text: String = pieces.iter().map(|&piece| PIECES[piece]).collect();
        match inferred(&text) {
            Err(errors) => prop_assert!(errors.starts_with("test.axon:"), "{}", errors),
            Ok(mut inferred) => {
                for name in inferred.definitions() {
                    prop_assert!(inferred.signature(Some(&name)).is_some());
                }
            }
        }
    }

    /// A call of a function by its arguments has the signature of the function.
    #[test]
    fn a_call_has_the_type_of_what_is_called(
        lines in prop::collection::vec((0..6_usize, 0..8_usize, 0..8_usize), 1..12),
    ) {
        let mut text = "f = fn(v0, v1 : f32 [2,3], v2 : f32 s, v3 : f32 [n]@s) {\n".to_string();
        for (number, (op, a, b)) in lines.iter().enumerate() {
            let (a, b) = (a % (number + 4), b % (number + 4));
            let value = match op {
                0 => format!("v{a} + v{b}"),
                1 => format!("matmul(v{a}, v{b})"),
                2 => format!("concat(v{a}, v{b})"),
                3 => format!("reduce(+, 0f, v{a})"),
                4 => format!("transpose(v{a})"),
                _ => format!("map(fn(a) {{ a * v{b} }}, v{a})"),
            };
            text += &format!("  v{} = {value};\n", number + 4);
        }
        text += &format!("  v{}\n}};\n", lines.len() + 3);
        if let Ok(mut first) = inferred(&text) {
            let signature = first.signature(Some("f")).expect("f is defined").text;
            // Called with what it takes, it gives what it gives.
            let source = SourceFile::new("signature", signature.clone());
            prop_assert!(syntax::parse_signature(&source).is_ok(), "{}", signature);
            let again = format!("{text}g = fn(a, b, c, d) {{ f(a, b, c, d) }};");
            let mut second = inferred(&again).map_err(TestCaseError::fail)?;
            let called = second.signature(Some("g")).expect("g is defined").text;
            let names = |text: &str| text.replace(|c: char| c.is_ascii_lowercase(), "a");
            prop_assert_eq!(names(&called), names(&signature));
        }
    }
}
