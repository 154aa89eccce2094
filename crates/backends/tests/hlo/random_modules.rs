//! Random HLO modules give the results that a naive evaluator gives.
//!
//! `cargo test -p tc-backends --test hlo random_modules` checks 300; the environment variable
//! `TC_RANDOM_PROGRAMS` asks for another number, `TC_RANDOM_SEED` for another first seed.

use super::{
    floats, from_environment,
    generator::generate,
    integers, reals,
    reference::{Tensor, Value, evaluate, parts},
    run_in,
    scheduled::route,
};
use tc_backends::{Request, Session, languages::hlo::Array};
use tc_dialects::{element::ElementType, hlo};

/// Failures after which the rest is not tried.
const MAX_FAILURES: usize = 5;

fn array(tensor: &Tensor) -> Array {
    let shape = &tensor.shape;
    if shape.element_type.is_complex() {
        let parts = tensor.elements.iter().flat_map(|value| parts(*value));
        let values: Vec<_> = parts.map(|part| part as f64).collect();
        return floats(shape.element_type, &shape.dims, &values);
    }
    if shape.element_type.is_float() {
        let values: Vec<_> = tensor.elements.iter().map(|value| *value as f64).collect();
        return floats(shape.element_type, &shape.dims, &values);
    }
    let values: Vec<_> = tensor.elements.iter().map(|value| *value as u64).collect();
    integers(shape.element_type, &shape.dims, &values)
}

/// Compiles a module in the way that the seed draws, and compares its results with the results of the evaluator.
fn check(text: &str, inputs: &[Tensor], seed: u64) -> Result<(), String> {
    let (_, module, diagnostics) = hlo::read("random.hlo", text.as_bytes().to_vec());
    let Some(module) = module else {
        return Err(format!("refused: {}\n{text}", diagnostics[0].message));
    };
    let arguments: Vec<_> = inputs.iter().cloned().map(Value::Array).collect();
    let expected = evaluate(&module, module.entry, &arguments).flatten();
    let inputs: Vec<_> = inputs.iter().map(array).collect();
    let (backend, codegen, no_fuse) = route(seed);
    let session = Session::with_backend(backend, codegen);
    let request = Request { no_fuse, ..Request::default() };
    let found = run_in(&session, &request, text, &inputs);
    let found = found.map_err(|error| format!("{error}\n{text}"))?;
    for (number, (expected, found)) in expected.iter().zip(&found).enumerate() {
        let expected = array(expected);
        // Zeroes may have either sign.
        let element = expected.shape.element_type;
        let is_same = if element.is_float() || element.is_complex() {
            reals(&expected) == reals(found)
        } else {
            expected.bytes == found.bytes
        };
        if !is_same {
            return Err(format!(
                "result {number}: expected {:?}, found {:?}\n{text}",
                super::bits(&expected),
                super::bits(found),
            ));
        }
    }
    Ok(())
}

#[test]
fn random_modules_agree_with_the_evaluator() {
    let count = from_environment("TC_RANDOM_PROGRAMS", 300);
    let first = from_environment("TC_RANDOM_SEED", 0);
    let failures = (first..first + count).filter_map(|seed| {
        let program = generate(seed);
        let failed = check(&program.text, &program.inputs, seed).err();
        failed.map(|error| format!("seed {seed}: {error}"))
    });
    let failures: Vec<_> = failures.take(MAX_FAILURES).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn complex_numbers_are_generated() {
    let texts: Vec<_> = (0..300).map(|seed| generate(seed).text).collect();
    for opcode in ["multiply", "dot", "pad", "reduce", "select", "gather"] {
        let has = |text: &&String| {
            let mut lines = text.lines().filter(|line| line.contains(&format!("] {opcode}(")));
            lines.any(|line| line.contains(" = c64[") || line.contains(" = c128["))
        };
        assert!(texts.iter().any(|text| has(&text)), "no '{opcode}' of complex numbers");
    }
}

/// Modules that were compiled wrongly once.
fn agrees(text: &str) {
    let (_, module, _) = hlo::read("module.hlo", text.as_bytes().to_vec());
    let module = module.unwrap_or_else(|| panic!("the text is not verified\n{text}"));
    let number = |at: i64| i128::from((at * 5 + 1) % 4);
    for offset in 0..2 {
        let input = |shape: &hlo::Shape| {
            let shape = shape.as_array().expect("an array").clone();
            let is_truth = shape.element_type == ElementType::Pred;
            let value = |at| if is_truth { i128::from(offset) } else { number(at + offset) };
            let count = shape.num_elements().expect("a size");
            Tensor { elements: (0..count).map(value).collect(), shape }
        };
        let inputs: Vec<_> = module.entry().parameter_shapes().map(input).collect();
        for seed in 0..6 {
            check(text, &inputs, seed).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

/// A convolution with a window of one element is zero in the padding.
#[test]
fn windows_of_one_element_may_lie_in_the_padding() {
    agrees(
        "HloModule m\n\nENTRY main {\n  a = s16[3,5,6] parameter(0)\n  \
         b = s16[3,4,1] parameter(1)\n  ROOT c = s16[7,4,3] convolution(a, b), \
         window={size=1 pad=0_2}, dim_labels=b0f_io0->0fb, feature_group_count=2\n}\n",
    );
}

/// What a branch passes on must not be the memory of what is updated later.
#[test]
fn branches_may_pass_on_what_is_updated_later() {
    agrees(
        "HloModule m\n\nsame {\n  ROOT a = u8[4] parameter(0)\n}\n\nENTRY main {\n  \
         p = pred[] parameter(0)\n  a = u8[4] parameter(1)\n  i = s32[] parameter(2)\n  \
         u = u8[2] parameter(3)\n  x = u8[4] reverse(a), dimensions={0}\n  y = u8[4] not(a)\n  \
         c = u8[4] conditional(p, x, y), true_computation=same, false_computation=same\n  \
         d = u8[4] dynamic-update-slice(x, u, i)\n  e = u8[4] add(c, c)\n  f = u8[4] add(d, d)\n  \
         ROOT r = (u8[4], u8[4]) tuple(e, f)\n}\n",
    );
}

/// Three branches or more: the last one for all other numbers.
#[test]
fn branches_are_selected_by_number() {
    for number in [-2147483648, -1, 0, 1, 2, 3, 4, 5, 2147483647_i64] {
        let names = ["negate", "abs", "sign", "not", "copy"];
        let mut text = "HloModule m\n\n".to_string();
        for name in names {
            text += &format!(
                "b_{name} {{\n  a = s32[3] parameter(0)\n  ROOT b = s32[3] {name}(a)\n}}\n\n"
            );
        }
        text += &format!(
            "ENTRY main {{\n  a = s32[3] parameter(0)\n  i = s32[] constant({number})\n  \
             ROOT c = s32[3] conditional(i, a, a, a, a, a), \
             branch_computations={{{}}}\n}}\n",
            names.map(|name| format!("b_{name}")).join(", ")
        );
        agrees(&text);
    }
}

/// A tensor that is filled for one result, and for another to fold into.
#[test]
fn results_may_start_from_other_results() {
    agrees(
        "HloModule m\n\nadd {\n  x = u32[] parameter(0)\n  y = u32[] parameter(1)\n  \
         ROOT z = u32[] add(x, y)\n}\n\nENTRY main {\n  a = u32[3] parameter(0)\n  \
         one = u32[] constant(1)\n  sum = u32[] reduce(a, one), dimensions={0}, to_apply=add\n  \
         same = u32[] reshape(one)\n  filled = u32[5] broadcast(one), dimensions={}\n  \
         padded = u32[5] pad(a, one), padding=1_1\n  \
         ROOT r = (u32[], u32[], u32[5], u32[5]) tuple(sum, same, filled, padded)\n}\n",
    );
}

/// Two instructions that read the same memory at different times, one that changes it in between.
#[test]
fn memory_is_read_when_an_instruction_runs() {
    agrees(
        "HloModule m\n\nge {\n  x = s32[] parameter(0)\n  y = s32[] parameter(1)\n  \
         ROOT z = pred[] compare(x, y), direction=GE\n}\n\nadd {\n  x = s32[] parameter(0)\n  \
         y = s32[] parameter(1)\n  ROOT z = s32[] add(x, y)\n}\n\nENTRY main {\n  \
         a = s32[5] parameter(0)\n  b = s32[3] parameter(1)\n  one = s32[] constant(1)\n  \
         x = s32[5] select-and-scatter(a, b, one), window={size=1 stride=2}, select=ge, \
         scatter=add\n  y = s32[5] reduce(a, one), dimensions={}, to_apply=add\n  \
         z = s32[5] select-and-scatter(y, y, one), window={size=1}, select=ge, scatter=add\n  \
         ROOT r = (s32[5], s32[5]) tuple(x, z)\n}\n",
    );
}

/// A branch passes on what is a result as well.
#[test]
fn branches_may_pass_on_results() {
    agrees(
        "HloModule m\n\nsame {\n  ROOT a = f16[] parameter(0)\n}\n\nENTRY main {\n  \
         a = f16[] parameter(0)\n  b = f16[] parameter(1)\n  p = pred[] parameter(2)\n  \
         x = f16[] negate(a)\n  y = f16[] negate(b)\n  c = f16[] conditional(p, x, y), \
         true_computation=same, false_computation=same\n  \
         ROOT r = (f16[], f16[], f16[]) tuple(x, c, y)\n}\n",
    );
}

#[test]
fn many_loops_become_functions() {
    // More nests than a function keeps; all but the last do the same with other arrays.
    let mut text = "HloModule m\nadd { a = s32[] parameter(0) b = s32[] parameter(1) \
                    ROOT c = s32[] add(a, b) }\nENTRY e {\n  zero = s32[] constant(0)\n  \
                    x0 = s32[5,3] parameter(0)\n"
        .to_owned();
    for step in 0..40 {
        let next = step + 1;
        text += &format!(
            "  s{step} = s32[5] reduce(x{step}, zero), dimensions={{1}}, to_apply=add\n  \
             b{step} = s32[5,3] broadcast(s{step}), dimensions={{0}}\n  \
             x{next} = s32[5,3] subtract(x{step}, b{step})\n"
        );
    }
    agrees(&(text + "  ROOT r = (s32[5,3], s32[5]) tuple(x40, s20)\n}"));
}
