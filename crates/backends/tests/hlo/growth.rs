//! Structure of the code for large modules: what must not grow faster than the module.

use crate::{floats, integers, reals, run};
use std::fmt::Write;
use tc_backends::{Form, Request, Session, Source};
use tc_dialects::element::ElementType;

/// The optimized LLVM IR of a module.
fn llvm_ir(text: &str) -> String {
    let session = Session::new("cpu").expect("this machine");
    let program = session.open(Source::new("test.hlo", text)).expect("the module is correct");
    let lowered = session.lower(&*program, &Request::default()).expect("the module is supported");
    let artifact = session.generate(&lowered).expect("the module compiles");
    String::from_utf8(artifact.emit(Form::LlvmIr).expect("text")).expect("UTF-8")
}

fn module(computations: &str, instructions: &str) -> String {
    format!("HloModule m\n\n{computations}ENTRY e {{\n{instructions}}}\n")
}

/// A chain of products, all of which live until a sum at the end.
fn products(n: usize) -> String {
    let mut text = String::from("  x0 = f32[4,4] parameter(0)\n  w = f32[4,4] parameter(1)\n");
    for i in 0..n {
        let _ = writeln!(
            text,
            "  x{} = f32[4,4] dot(x{i}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
            i + 1
        );
    }
    text += "  s0 = f32[4,4] negate(x0)\n";
    for i in 0..n {
        let root = if i + 1 == n { "ROOT " } else { "" };
        let _ = writeln!(text, "  {root}s{0} = f32[4,4] add(s{i}, x{0})", i + 1);
    }
    module("", &text)
}

#[test]
fn products_share_one_allocation() {
    for n in [20, 80] {
        let ir = llvm_ir(&products(n));
        let calls = ["call void @free(", "@malloc("].map(|it| ir.matches(it).count());
        // The call and the declaration.
        assert_eq!(calls, [1, 2], "{n} products");
    }
}

/// A chain of updates of a tensor of `n + 2` elements, the first of which is at `offset`.
fn updates(n: usize, first: &str, offset: &str) -> String {
    let mut text = format!("  d0 = f32[{}] {first}\n", n + 2);
    for i in 0..n {
        let _ = writeln!(
            text,
            "  k{i} = s32[] constant({i})\n  j{i} = s32[] add({offset}, k{i})\n  \
             d{} = f32[{}] dynamic-update-slice(d{i}, u, j{i})",
            i + 1,
            n + 2
        );
    }
    text
}

/// The tensor after such updates.
fn updated(mut tensor: Vec<f64>, update: &[f64], n: usize, offset: usize) -> Vec<f64> {
    for i in 0..n {
        let start = (i + offset).min(tensor.len() - 2);
        tensor[start..start + 2].copy_from_slice(update);
    }
    tensor
}

#[test]
fn chains_of_updates_work_in_place() {
    for n in [5, 100] {
        let body = updates(n, "negate(p)", "o");
        let text = format!(
            "  p = f32[{0}] parameter(0)\n  u = f32[2] parameter(1)\n  o = s32[] parameter(2)\n\
             {body}",
            n + 2
        );
        let text = module("", &text);
        assert!(!llvm_ir(&text).contains("call void @llvm.memcpy"));
        let values: Vec<f64> = (0..n + 2).map(|it| it as f64).collect();
        let inputs = [
            floats(ElementType::F32, &[n as i64 + 2], &values),
            floats(ElementType::F32, &[2], &[0.5, 0.25]),
            integers(ElementType::S32, &[], &[1]),
        ];
        let negated = values.iter().map(|it| -it).collect();
        assert_eq!(reals(&run(&text, &inputs)[0]), updated(negated, &[0.5, 0.25], n, 1));
    }
}

#[test]
fn chains_of_updates_work_in_place_in_loops() {
    for n in [5, 100] {
        let size = n + 2;
        let carried = format!("(s32[], f32[{size}], f32[2])");
        let body = updates(n, "get-tuple-element(t), index=1", "i");
        let computations = format!(
            "condition {{\n  t = {carried} parameter(0)\n  i = s32[] get-tuple-element(t), index=0\n  \
             last = s32[] constant(3)\n  ROOT less = pred[] compare(i, last), direction=LT\n}}\n\n\
             body {{\n  t = {carried} parameter(0)\n  i = s32[] get-tuple-element(t), index=0\n  \
             u = f32[2] get-tuple-element(t), index=2\n{body}  one = s32[] constant(1)\n  \
             next = s32[] add(i, one)\n  ROOT r = {carried} tuple(next, d{n}, u)\n}}\n\n"
        );
        let text = format!(
            "  p = f32[{size}] parameter(0)\n  u = f32[2] parameter(1)\n  zero = s32[] constant(0)\n  \
             t = {carried} tuple(zero, p, u)\n  \
             w = {carried} while(t), condition=condition, body=body\n  \
             ROOT r = f32[{size}] get-tuple-element(w), index=1\n"
        );
        let text = module(&computations, &text);
        // Only the parameter and the result are copied.
        let copies = llvm_ir(&text).matches("call void @llvm.memcpy").count();
        assert!(copies <= 2, "{copies} copies");
        let values: Vec<f64> = (0..size).map(|it| it as f64).collect();
        let inputs = [
            floats(ElementType::F32, &[size as i64], &values),
            floats(ElementType::F32, &[2], &[0.5, 0.25]),
        ];
        let mut expected = values;
        for step in 0..3 {
            expected = updated(expected, &[0.5, 0.25], n, step);
        }
        assert_eq!(reals(&run(&text, &inputs)[0]), expected);
    }
}

/// Each tensor of a chain is read again after the next one is made from it.
#[test]
fn updated_tensors_that_are_read_later_are_copied() {
    let n = 100;
    let body = updates(n, "negate(p)", "o");
    let mut text = format!(
        "  p = f32[{0}] parameter(0)\n  u = f32[2] parameter(1)\n  o = s32[] parameter(2)\n{body}",
        n + 2
    );
    let _ = writeln!(text, "  s0 = f32[{}] add(d0, d{n})", n + 2);
    for i in 0..n {
        let root = if i + 1 == n { "ROOT " } else { "" };
        let _ = writeln!(text, "  {root}s{0} = f32[{1}] add(s{i}, d{0})", i + 1, n + 2);
    }
    let values: Vec<f64> = (0..n + 2).map(|it| it as f64).collect();
    let inputs = [
        floats(ElementType::F32, &[n as i64 + 2], &values),
        floats(ElementType::F32, &[2], &[0.5, 0.25]),
        integers(ElementType::S32, &[], &[1]),
    ];
    let negated: Vec<f64> = values.iter().map(|it| -it).collect();
    let mut expected: Vec<f64> = negated.clone();
    for i in 1..=n + 1 {
        let tensor = updated(negated.clone(), &[0.5, 0.25], i.min(n), 1);
        expected.iter_mut().zip(tensor).for_each(|(sum, element)| *sum += element);
    }
    assert_eq!(reals(&run(&module("", &text), &inputs)[0]), expected);
}
