//! Operations of `linalg` have the same values through `imap.generic`, through `imap.generic` and back,
//! by MLIR's own lowering, in the interpreter, and as kernels of a GPU in the emulator.
//!
//! Elements are small integers, also as floats, so that all values are exact. `TC_RANDOM_PROGRAMS` sets
//! the number of random operations, `TC_RANDOM_SEED` the first seed. With `TC_PTXAS=all`, ptxas assembles the kernels.

#[path = "support/device.rs"]
mod device;
#[path = "support/random.rs"]
mod random;

use melior::ir::Module;
use random::Random;
use std::fmt::Write;
use tc_backends::{
    Codegen, cpu,
    interp::{self, Interpreter, Limits},
    nvvm::{Program, assemble, emulator, machines},
    runtime::Tensor,
};
use tc_dialects::{mlir, report};
use tc_passes::run_pipeline;

const TO_IMAP: &str = "func.func(convert-linalg-to-imap),canonicalize,cse";
const BACK: &str = "func.func(convert-imap-to-linalg),canonicalize,cse";
const FUSE: &str = "imap-fuse,canonicalize,cse";

/// The number of operations with indexing maps: of `imap` and of `linalg`.
fn count(module: &Module) -> (usize, usize) {
    let (mut imap, mut linalg) = (0, 0);
    mlir::walk(mlir::op_ref(module.as_operation()), &mut |op| match mlir::name(op) {
        "imap.generic" => imap += 1,
        "linalg.index" | "linalg.yield" => {}
        name => linalg += usize::from(name.starts_with("linalg.")),
    });
    (imap, linalg)
}

/// Operations that cannot be converted.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Kept {
    None,
    /// A reduction without a combiner.
    Linalg,
    /// A domain without points, perhaps.
    Imap,
}

/// Whether tensors have the same bits, except for the signs of zeros: which zero a minimum of two is, is
/// not defined.
fn are_equal(lhs: &Tensor, rhs: &Tensor) -> bool {
    let floats = lhs.to_values::<f32>().zip(rhs.to_values::<f32>());
    lhs.bytes() == rhs.bytes() || floats.is_some_and(|(lhs, rhs)| lhs == rhs)
}

/// Checks the function `f` of a module. Returns how many operations of `imap` are left after fusion.
fn check(text: &str, inputs: &[Tensor], kept: Kept) -> Result<usize, String> {
    let context = tc_dialects::new_context();
    let (_, received) = report::collect(&context);
    let said = |what: String| {
        let messages: Vec<_> = received.borrow().iter().map(|it| it.message.clone()).collect();
        format!("{what}: {}", messages.join("; "))
    };
    let mut module = Module::parse(&context, text).ok_or_else(|| said("not parsed".to_string()))?;
    let body = mlir::body(mlir::op_ref(module.as_operation()), 0).expect("a module has a body");
    let interpreter = Interpreter::new(mlir::ops(body)[0]).map_err(|error| error.to_string())?;
    let outcomes = interpreter.run(inputs, Limits::default());
    let expected = outcomes.map_err(|error| format!("the interpreter: {error}"))?;

    let run = |module: &Module, what: &str| -> Result<Vec<Tensor>, String> {
        let failed = |error: &dyn std::fmt::Display| {
            said(format!("{what}: {error}\n{}", module.as_operation()))
        };
        let program = cpu::BACKEND.compile(module, &Codegen::default());
        let compiled = program.map_err(|error| failed(&error))?.load();
        let compiled = compiled.map_err(|error| failed(&error))?;
        let zeros = |it: &interp::Outcome| Tensor::zeros(it.element(), it.shape());
        let results: Result<Vec<_>, _> = expected.iter().map(zeros).collect();
        let mut results = results.map_err(|error| failed(&error))?;
        let inputs: Vec<_> = inputs.iter().collect();
        let function = compiled.function("f").expect("the function of the module");
        function.call(&inputs, &mut results).map_err(|error| failed(&error))?;
        for (outcome, result) in expected.iter().zip(&results) {
            interp::compare(outcome, result).map_err(|error| failed(&error))?;
        }
        Ok(results)
    };
    let upstream = run(&module, "MLIR's lowering")?;
    let same = |module: &Module, what: &str| -> Result<(), String> {
        let results = run(module, what)?;
        let agree = upstream.iter().zip(&results).all(|(a, b)| are_equal(a, b));
        let text = || format!("{what}: other bits\n{}", module.as_operation());
        if agree { Ok(()) } else { Err(text()) }
    };
    let converted = |module: &mut Module, pipeline: &str| {
        run_pipeline(module, pipeline).map_err(|error| said(format!("{pipeline}: {error}")))
    };

    converted(&mut module, TO_IMAP)?;
    let left = count(&module);
    if left.0 == 0 && left.1 == 0 || (0 < left.1) != (kept == Kept::Linalg) {
        return Err(said(format!(
            "{left:?} operations of imap and linalg\n{}",
            module.as_operation()
        )));
    }
    same(&module, "imap")?;
    if kept == Kept::None {
        run_on_gpu(&module, inputs).map_err(|error| said(format!("on a GPU: {error}")))?;
    }
    let mut fused = Module::parse(&context, &module.as_operation().to_string()).expect("it parses");
    converted(&mut fused, FUSE)?;
    let num_fused = count(&fused).0;
    if num_fused < left.0 {
        same(&fused, "imap, fused")?;
        converted(&mut fused, BACK)?;
        if count(&fused).0 != 0 && kept != Kept::Imap {
            return Err(said(format!("not converted back\n{}", fused.as_operation())));
        }
        same(&fused, "linalg, fused")?;
    }
    converted(&mut module, BACK)?;
    if count(&module).0 != 0 && kept != Kept::Imap {
        return Err(said(format!("not converted back\n{}", module.as_operation())));
    }
    same(&module, "there and back")?;
    Ok(num_fused)
}

/// Runs the function `f` of a module in the emulator.
fn run_on_gpu(module: &Module, inputs: &[Tensor]) -> Result<(), String> {
    let options = emulator::Options::default();
    let run = device::compare_program(module, "f", &[inputs], &options)?;
    if run.launches < run.kernels || run.elements == 0 {
        return Err(format!("not everything is computed: {run:?}"));
    }
    // What has no dimensions is computed by the host.
    if 0 < run.kernels && std::env::var("TC_PTXAS").is_ok_and(|it| it == "all") {
        for machine in machines() {
            let program = Program::lower(module, &Codegen::new(machine.clone()));
            let program = program.map_err(|error| error.to_string())?;
            assemble(program.ptx(), &machine).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// A tensor type, with dynamic extents or not.
fn tensor_type(shape: &[i64], element: &str, dynamic: impl Fn(usize) -> bool) -> String {
    let extents = shape.iter().enumerate().map(|(dim, extent)| match dynamic(dim) {
        true => "?x".to_string(),
        false => format!("{extent}x"),
    });
    format!("tensor<{}{element}>", extents.collect::<String>())
}

fn tensor(shape: &[i64], element: &str, values: &mut dyn FnMut() -> i64) -> Tensor {
    let shape: Vec<_> = shape.iter().map(|extent| *extent as usize).collect();
    let values: Vec<_> = (0..shape.iter().product()).map(|_| values()).collect();
    let tensor = match element {
        "f32" => {
            Tensor::from_values(&shape, &values.iter().map(|it| *it as f32).collect::<Vec<_>>())
        }
        "i8" => Tensor::from_values(&shape, &values.iter().map(|it| *it as i8).collect::<Vec<_>>()),
        "i64" => Tensor::from_values(&shape, &values),
        _ => Tensor::from_values(&shape, &values.iter().map(|it| *it as i32).collect::<Vec<_>>()),
    };
    tensor.expect("as many values as the shape has")
}

/// Operations with a name: the text before and after the operands, and the shapes of these, the
/// destination last. An operation without text behind has its result type there.
const NAMED: &[(&str, &str, &[&[i64]])] = &[
    ("matmul", "", &[&[5, 7], &[7, 6], &[5, 6]]),
    ("matmul", "", &[&[9, 17], &[17, 33], &[9, 33]]),
    ("matmul", "", &[&[1, 4], &[4, 1], &[1, 1]]),
    ("batch_matmul", "", &[&[3, 5, 7], &[3, 7, 6], &[3, 5, 6]]),
    ("batch_reduce_matmul", "", &[&[3, 5, 7], &[3, 7, 6], &[5, 6]]),
    ("mmt4d", "", &[&[2, 3, 4, 5], &[3, 3, 2, 5], &[2, 3, 4, 2]]),
    ("matvec", "", &[&[5, 7], &[7], &[5]]),
    ("vecmat", "", &[&[5], &[5, 7], &[7]]),
    ("batch_matvec", "", &[&[2, 5, 7], &[2, 7], &[2, 5]]),
    ("dot", "", &[&[19], &[19], &[]]),
    ("conv_1d", "", &[&[9], &[3], &[7]]),
    (
        "conv_1d_nwc_wcf {strides = dense<2> : vector<1xi64>}",
        "",
        &[&[2, 9, 3], &[3, 3, 4], &[2, 4, 4]],
    ),
    ("conv_1d_ncw_fcw", "", &[&[2, 3, 9], &[4, 3, 3], &[2, 4, 7]]),
    ("conv_2d", "", &[&[7, 8], &[2, 3], &[6, 6]]),
    ("conv_2d_nhwc_hwcf", "", &[&[1, 6, 7, 3], &[3, 2, 3, 4], &[1, 4, 6, 4]]),
    (
        "conv_2d_nhwc_hwcf {strides = dense<2> : vector<2xi64>, dilations = dense<[1, 2]> : vector<2xi64>}",
        "",
        &[&[2, 7, 9, 3], &[3, 3, 3, 4], &[2, 3, 3, 4]],
    ),
    ("conv_2d_nchw_fchw", "", &[&[2, 3, 6, 7], &[4, 3, 3, 2], &[2, 4, 4, 6]]),
    ("conv_3d", "", &[&[4, 5, 6], &[2, 3, 2], &[3, 3, 5]]),
    ("conv_3d_ndhwc_dhwcf", "", &[&[1, 4, 5, 6, 2], &[2, 3, 2, 2, 3], &[1, 3, 3, 5, 3]]),
    ("conv_3d_ncdhw_fcdhw", "", &[&[2, 2, 4, 5, 6], &[3, 2, 2, 3, 2], &[2, 3, 3, 3, 5]]),
    ("depthwise_conv_2d_nhwc_hwc", "", &[&[2, 6, 7, 3], &[3, 2, 3], &[2, 4, 6, 3]]),
    ("depthwise_conv_2d_nhwc_hwcm", "", &[&[2, 6, 7, 3], &[3, 2, 3, 2], &[2, 4, 6, 3, 2]]),
    ("depthwise_conv_2d_nchw_chw", "", &[&[2, 3, 6, 7], &[3, 3, 2], &[2, 3, 4, 6]]),
    ("pooling_nhwc_sum", "", &[&[2, 6, 7, 3], &[3, 2], &[2, 4, 6, 3]]),
    (
        "pooling_nhwc_max {strides = dense<2> : vector<2xi64>}",
        "",
        &[&[1, 6, 7, 3], &[2, 3], &[1, 3, 3, 3]],
    ),
    ("pooling_nhwc_min", "", &[&[2, 6, 7, 3], &[3, 2], &[2, 4, 6, 3]]),
    ("pooling_nchw_sum", "", &[&[2, 3, 6, 7], &[3, 2], &[2, 3, 4, 6]]),
    ("pooling_nchw_max", "", &[&[2, 3, 6, 7], &[3, 2], &[2, 3, 4, 6]]),
    ("pooling_nwc_sum", "", &[&[2, 7, 3], &[2], &[2, 6, 3]]),
    ("pooling_ndhwc_min", "", &[&[1, 4, 5, 6, 2], &[2, 3, 2], &[1, 3, 3, 5, 2]]),
    ("transpose", "permutation = [2, 0, 1]", &[&[4, 5, 6], &[6, 4, 5]]),
    ("broadcast", "dimensions = [0, 2]", &[&[5], &[4, 5, 6]]),
    ("reduce { arith.add }", "dimensions = [0, 2]", &[&[4, 5, 6], &[5]]),
    ("reduce { arith.mul }", "dimensions = [1]", &[&[5, 2], &[5]]),
    ("map { arith.mul }", "", &[&[4, 5], &[4, 5], &[4, 5]]),
    ("copy", "", &[&[4, 5], &[4, 5]]),
    ("add", "", &[&[4, 5], &[4, 5], &[4, 5]]),
    ("sub", "", &[&[4, 5], &[4, 5], &[4, 5]]),
    ("mul", "", &[&[4, 5], &[4, 5], &[4, 5]]),
    ("div", "", &[&[4, 5], &[4, 5], &[4, 5]]),
    ("max", "", &[&[4, 5], &[4, 5], &[4, 5]]),
    ("min", "", &[&[4, 5], &[4, 5], &[4, 5]]),
    ("elementwise kind = #linalg.elementwise_kind<sub>", "", &[&[4, 5], &[4, 5], &[4, 5]]),
    (
        "contract indexing_maps = [affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k) -> (j, k)>, \
         affine_map<(i, j, k) -> (j, i)>]",
        "",
        &[&[7, 5], &[6, 7], &[6, 5]],
    ),
];

/// Those on integers only.
const NAMED_INTEGERS: &[(&str, &str, &[&[i64]])] = &[
    ("div_unsigned", "", &[&[4, 5], &[4, 5], &[4, 5]]),
    ("pooling_nhwc_max_unsigned", "", &[&[2, 6, 7, 3], &[3, 2], &[2, 4, 6, 3]]),
    ("pooling_nhwc_min_unsigned", "", &[&[2, 6, 7, 3], &[3, 2], &[2, 4, 6, 3]]),
    ("reduce { arith.andi }", "dimensions = [1]", &[&[5, 7], &[5]]),
    ("reduce { arith.ori }", "dimensions = [1]", &[&[5, 7], &[5]]),
    ("reduce { arith.maxui }", "dimensions = [0]", &[&[5, 7], &[7]]),
];

/// Those on floats only.
const NAMED_FLOATS: &[(&str, &str, &[&[i64]])] = &[
    ("abs", "", &[&[4, 5], &[4, 5]]),
    ("ceil", "", &[&[4, 5], &[4, 5]]),
    ("erf", "", &[&[4, 5], &[4, 5]]),
    ("exp", "", &[&[4, 5], &[4, 5]]),
    ("floor", "", &[&[4, 5], &[4, 5]]),
    ("log", "", &[&[4, 5], &[4, 5]]),
    ("negf", "", &[&[4, 5], &[4, 5]]),
    ("powf", "", &[&[4, 5], &[4, 5], &[4, 5]]),
    ("reciprocal", "", &[&[4, 5], &[4, 5]]),
    ("round", "", &[&[4, 5], &[4, 5]]),
    ("rsqrt", "", &[&[4, 5], &[4, 5]]),
    ("sqrt", "", &[&[4, 5], &[4, 5]]),
    ("square", "", &[&[4, 5], &[4, 5]]),
    ("tanh", "", &[&[4, 5], &[4, 5]]),
    ("reduce { arith.maximumf }", "dimensions = [1]", &[&[5, 7], &[5]]),
    ("reduce { arith.minnumf }", "dimensions = [1]", &[&[5, 7], &[5]]),
];

/// A function `f` with one operation, and inputs for it.
fn named(
    (before, after, shapes): (&str, &str, &[&[i64]]),
    elements: &[&str],
    dynamic: bool,
) -> (String, Vec<Tensor>) {
    let mut random = Random::new(7);
    let operands: Vec<_> = shapes
        .iter()
        .zip(elements)
        .enumerate()
        .map(|(number, (shape, element))| {
            let ty = tensor_type(shape, element, |_| dynamic);
            (format!("%{number}"), ty, tensor(shape, element, &mut || random.between(1, 9)))
        })
        .collect();
    let list = |operands: &[(String, String, Tensor)]| {
        let (names, types): (Vec<_>, Vec<_>) =
            operands.iter().map(|(name, ty, _)| (name.clone(), ty.clone())).unzip();
        format!("{} : {}", names.join(", "), types.join(", "))
    };
    let (inputs, output) = operands.split_at(operands.len() - 1);
    let result = &output[0].1;
    // The combiners of some operations depend on the type.
    let suffix = if elements[0] == "f32" { "f }" } else { "i }" };
    let before = match before.ends_with("add }") || before.ends_with("mul }") {
        true => before.replace(" }", suffix),
        false => before.to_string(),
    };
    let has_type = after.is_empty() && !before.starts_with("map");
    let after = if has_type { format!("-> {result}") } else { after.to_string() };
    let arguments: Vec<_> = operands.iter().map(|(name, ty, _)| format!("{name}: {ty}")).collect();
    let text = format!(
        "func.func @f({}) -> {result} {{\n  %r = linalg.{before} ins({}) outs({}) {after}\n  \
         return %r : {result}\n}}\n",
        arguments.join(", "),
        list(inputs),
        list(output)
    );
    (text, operands.into_iter().map(|(.., tensor)| tensor).collect())
}

#[track_caller]
fn check_named(operation: (&str, &str, &[&[i64]]), elements: &[&str], dynamic: bool) {
    let (text, inputs) = named(operation, elements, dynamic);
    if let Err(error) = check(&text, &inputs, Kept::None) {
        panic!("{error}\n{text}");
    }
}

#[test]
fn named_operations_on_integers() {
    for operation in NAMED.iter().chain(NAMED_INTEGERS) {
        check_named(*operation, &["i32"; 3], false);
        check_named(*operation, &["i32"; 3], true);
    }
}

#[test]
fn named_operations_on_floats() {
    for operation in NAMED.iter().chain(NAMED_FLOATS) {
        check_named(*operation, &["f32"; 3], false);
    }
}

#[test]
fn named_operations_on_several_types() {
    check_named(("matmul", "", &[&[5, 7], &[7, 6], &[5, 6]]), &["i8", "i8", "i32"], true);
    check_named(("conv_1d", "", &[&[9], &[3], &[7]]), &["i8", "i8", "i64"], false);
    check_named(("copy", "", &[&[4, 5], &[4, 5]]), &["i8", "f32"], true);
    let select = |dynamic: bool| {
        let [ty, bit] = ["f32", "i1"].map(|it| tensor_type(&[4, 5], it, |_| dynamic));
        format!(
            "func.func @f(%a: {ty}, %b: {ty}, %e: {ty}, %bits: {bit}) -> {ty} {{
              %m = linalg.map ins(%a, %b : {ty}, {ty}) outs(%bits : {bit}) (%x: f32, %y: f32, %old: i1) {{
                %c = arith.cmpf olt, %x, %y : f32
                linalg.yield %c : i1
              }}
              %r = linalg.select ins(%m, %a, %b : {bit}, {ty}, {ty}) outs(%e : {ty}) -> {ty}
              return %r : {ty}
            }}"
        )
    };
    let mut random = Random::new(3);
    let mut inputs: Vec<_> =
        (0..3).map(|_| tensor(&[4, 5], "f32", &mut || random.between(-9, 9))).collect();
    inputs.push(Tensor::from_values(&[4, 5], &[false; 20]).expect("as many values"));
    for dynamic in [false, true] {
        let num_fused = check(&select(dynamic), &inputs, Kept::None);
        assert_eq!(num_fused, Ok(1));
    }
}

/// Fills with the identity start a fold; others are stored.
#[test]
fn fills() {
    let sum = |element: &str, value: &str, add: &str| {
        format!(
            "func.func @f(%a: tensor<4x5x{element}>) -> tensor<4x{element}> {{
              %v = arith.constant {value} : {element}
              %e = tensor.empty() : tensor<4x{element}>
              %i = linalg.fill ins(%v : {element}) outs(%e : tensor<4x{element}>) -> tensor<4x{element}>
              %r = linalg.reduce {{ arith.{add} }} ins(%a : tensor<4x5x{element}>) outs(%i : tensor<4x{element}>)
                dimensions = [1]
              return %r : tensor<4x{element}>
            }}"
        )
    };
    let mut random = Random::new(5);
    for (element, value, add, num_operations) in [
        ("f32", "0.0", "addf", 1),
        ("f32", "-0.0", "addf", 2),
        ("f32", "7.0", "addf", 2),
        ("f32", "1.0", "mulf", 1),
        ("f32", "0xFF800000", "maximumf", 1),
        ("f32", "0xFF7FFFFF", "maximumf", 2),
        ("i32", "0", "addi", 1),
        ("i32", "0", "maxsi", 2),
        ("i32", "-2147483648", "maxsi", 1),
        ("i8", "-1", "minui", 1),
        ("i64", "-1", "andi", 1),
    ] {
        let input = tensor(&[4, 5], element, &mut || random.between(-3, 3));
        let num_fused = check(&sum(element, value, add), &[input], Kept::None);
        assert_eq!(num_fused, Ok(num_operations), "{value} : {element}, {add}");
    }
}

/// A random `linalg.generic`, most of the time with a consumer.
struct Generator {
    random: Random,
    element: &'static str,
    /// The extents of the loops, and which of them are reductions.
    extents: Vec<i64>,
    reductions: Vec<bool>,
    /// Whether extents may be dynamic.
    dynamic: bool,
    arguments: Vec<(String, Tensor)>,
    body: String,
}

impl Generator {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let num_loops = random.between(0, 4);
        let extents = (0..num_loops).map(|_| *random.pick(&[1, 2, 3, 4, 5, 8, 19])).collect();
        let reductions = (0..num_loops).map(|_| random.chance(40)).collect();
        let mut it = Self {
            element: *random.pick(&["i32", "i32", "i64", "i8", "f32"]),
            dynamic: random.chance(40),
            random,
            extents,
            reductions,
            arguments: Vec::new(),
            body: String::new(),
        };
        if it.random.chance(6) && 0 < num_loops {
            let number = it.random.below(it.extents.len());
            it.extents[number] = 0;
        }
        it
    }

    fn is_float(&self) -> bool {
        self.element == "f32"
    }

    fn tensor_type(&mut self, shape: &[i64]) -> String {
        let flags: Vec<_> = shape.iter().map(|_| self.dynamic && self.random.chance(60)).collect();
        tensor_type(shape, self.element, |dim| flags[dim])
    }

    /// An argument of the function: its name and its type.
    fn argument(&mut self, shape: &[i64]) -> (String, String) {
        let (name, ty) = (format!("%a{}", self.arguments.len()), self.tensor_type(shape));
        let random = &mut self.random;
        let tensor = tensor(shape, self.element, &mut || random.between(-4, 4));
        self.arguments.push((format!("{name}: {ty}"), tensor));
        (name, ty)
    }

    /// A subscript that has no negative values, and its largest value.
    fn subscript(&mut self) -> (String, i64) {
        let constant = self.random.between(1, 2);
        let known: Vec<_> = (0..self.extents.len()).collect();
        if known.is_empty() {
            return (constant.to_string(), constant);
        }
        let (i, j) = (*self.random.pick(&known), *self.random.pick(&known));
        let (last, other) = (self.extents[i] - 1, self.extents[j] - 1);
        // MLIR requires that subscripts of the first and the last iteration are in bounds.
        if self.extents.contains(&0) {
            return (format!("d{i}"), last);
        }
        match self.random.weighted(&[50, 12, 8, 8, 8, 8, 6]) {
            0 => (format!("d{i}"), last),
            1 => (format!("d{i} * 2 + d{j}"), 2 * last + other),
            2 => (format!("d{i} + {constant}"), last + constant),
            3 => (format!("{last} - d{i}"), last),
            4 => (format!("d{i} floordiv 2"), last / 2),
            5 => (format!("(d{i} + d{j}) mod 3"), 2.min(last + other)),
            _ => (constant.to_string(), constant),
        }
    }

    /// The function `f`, and whether the operation is one that stays in `linalg`.
    fn generate(mut self) -> (String, Vec<Tensor>, bool) {
        let num_loops = self.extents.len();
        let mut maps = Vec::new();
        let mut operands: Vec<(String, String)> = Vec::new();
        let mut covered: Vec<bool> = self.reductions.iter().map(|it| !it).collect();
        for _ in 0..self.random.between(0, 3) {
            if self.random.chance(10) {
                maps.push(String::new());
                let value = self.random.between(-4, 4);
                let value = if self.is_float() { format!("{value}.0") } else { value.to_string() };
                let name = format!("%s{}", operands.len());
                let _ = writeln!(self.body, "  {name} = arith.constant {value} : {}", self.element);
                operands.push((name, self.element.to_string()));
                continue;
            }
            let (mut index, mut shape) = (Vec::new(), Vec::new());
            for _ in 0..self.random.between(0, 3) {
                let (text, last) = self.subscript();
                let number = text.strip_prefix('d').and_then(|it| it.parse::<usize>().ok());
                let more = match number {
                    Some(number) => {
                        covered[number] = true;
                        0
                    }
                    None => self.random.between(0, 1),
                };
                index.push(text);
                shape.push(last + 1 + more);
            }
            maps.push(index.join(", "));
            operands.push(self.argument(&shape));
        }
        let missing: Vec<_> = (0..num_loops).filter(|number| !covered[*number]).collect();
        if !missing.is_empty() {
            let index: Vec<_> = missing.iter().map(|number| format!("d{number}")).collect();
            let shape: Vec<_> = missing.iter().map(|number| self.extents[*number]).collect();
            maps.push(index.join(", "));
            operands.push(self.argument(&shape));
        }
        let num_inputs = operands.len();
        let is_fold = self.reductions.contains(&true);

        let num_outputs = self.random.between(1, 2) as usize;
        let mut shapes = Vec::new();
        for number in 0..num_outputs {
            let mut order: Vec<_> = (0..num_loops).filter(|it| !self.reductions[*it]).collect();
            for place in (1..order.len()).rev() {
                order.swap(place, self.random.below(place + 1));
            }
            let mut index: Vec<_> = order.iter().map(|number| format!("d{number}")).collect();
            let mut shape: Vec<_> = order.iter().map(|number| self.extents[*number]).collect();
            if self.random.chance(10) {
                // MLIR takes it that all elements are stored.
                let place = self.random.below(index.len() + 1);
                index.insert(place, "0".to_string());
                shape.insert(place, 1);
            }
            maps.push(index.join(", "));
            let (mut name, ty) = self.argument(&shape);
            if self.random.chance(40) {
                let value = *self.random.pick(&["0", "0", "1", "-1"]);
                let value = if self.is_float() { format!("{value}.0") } else { value.to_string() };
                let _ = writeln!(
                    self.body,
                    "  %v{number} = arith.constant {value} : {0}\n  %i{number} = linalg.fill \
                     ins(%v{number} : {0}) outs({name} : {ty}) -> {ty}",
                    self.element
                );
                name = format!("%i{number}");
            }
            operands.push((name, ty));
            shapes.push(shape);
        }

        let stays = is_fold && !self.extents.contains(&0) && self.random.chance(6);
        let computation = self.computation(num_inputs, num_outputs, is_fold, stays);
        let dims: Vec<_> = (0..num_loops).map(|number| format!("d{number}")).collect();
        let dims = dims.join(", ");
        let maps: Vec<_> =
            maps.iter().map(|index| format!("affine_map<({dims}) -> ({index})>")).collect();
        let kinds = self.reductions.iter();
        let kinds: Vec<_> =
            kinds.map(|it| if *it { "\"reduction\"" } else { "\"parallel\"" }).collect();
        let list = |operands: &[(String, String)]| {
            let (names, types): (Vec<_>, Vec<_>) = operands.iter().cloned().unzip();
            format!("{} : {}", names.join(", "), types.join(", "))
        };
        let ins = match num_inputs {
            0 => String::new(),
            _ => format!("ins({}) ", list(&operands[..num_inputs])),
        };
        let outputs = operands.split_off(num_inputs);
        let types: Vec<_> = outputs.iter().map(|(_, ty)| ty.clone()).collect();
        let types = types.join(", ");
        let several = if num_outputs == 1 { "" } else { ":2" };
        let _ = writeln!(
            self.body,
            "  %r{several} = linalg.generic {{indexing_maps = [{}], iterator_types = [{}]}} {ins}\
             outs({}) {{\n{computation}  }} -> ({types})",
            maps.join(", "),
            kinds.join(", "),
            list(&outputs)
        );
        let mut results: Vec<_> = match num_outputs {
            1 => vec!["%r".to_string()],
            _ => vec!["%r#0".to_string(), "%r#1".to_string()],
        };
        if self.random.chance(50) {
            let (other, other_type) = self.argument(&shapes[0]);
            let (result, ty) = (results[0].clone(), outputs[0].1.clone());
            let (out, out_type) = match self.random.chance(50) {
                true => (&result, &ty),
                false => (&other, &other_type),
            };
            let name = self.random.pick(&["add", "mul", "max"]);
            let _ = writeln!(
                self.body,
                "  %c = linalg.{name} ins({result}, {other} : {ty}, {other_type}) outs({out} : {out_type}) -> \
                 {out_type}"
            );
            results[0] = "%c".to_string();
            let types: Vec<_> = [out_type.clone()]
                .into_iter()
                .chain(outputs[1..].iter().map(|it| it.1.clone()))
                .collect();
            return self.function(&results, &types.join(", "), stays);
        }
        self.function(&results, &types, stays)
    }

    fn function(self, results: &[String], types: &str, stays: bool) -> (String, Vec<Tensor>, bool) {
        let (arguments, inputs): (Vec<_>, Vec<_>) = self.arguments.into_iter().unzip();
        let text = format!(
            "func.func @f({}) -> ({types}) {{\n{}  return {} : {types}\n}}\n",
            arguments.join(", "),
            self.body,
            results.join(", ")
        );
        (text, inputs, stays)
    }

    /// The body of the operation.
    fn computation(
        &mut self,
        num_inputs: usize,
        num_outputs: usize,
        is_fold: bool,
        stays: bool,
    ) -> String {
        let element = self.element;
        let names = (0..num_inputs).map(|number| format!("%x{number}: {element}"));
        let old = (0..num_outputs).map(|number| format!("%y{number}: {element}"));
        let arguments: Vec<_> = names.chain(old).collect();
        let mut text = format!("  ^bb0({}):\n", arguments.join(", "));
        let mut values: Vec<_> = (0..num_inputs).map(|number| format!("%x{number}")).collect();
        if !is_fold {
            values.extend((0..num_outputs).map(|number| format!("%y{number}")));
        }
        let one = if self.is_float() { "1.0" } else { "1" };
        let _ = writeln!(text, "    %one = arith.constant {one} : {element}");
        values.push("%one".to_string());
        if !self.extents.is_empty() && !self.is_float() && self.random.chance(40) {
            let number = self.random.below(self.extents.len());
            let _ = writeln!(
                text,
                "    %i = linalg.index {number} : index\n    %n = arith.index_cast %i : index to {element}"
            );
            values.push("%n".to_string());
        }
        let ops: &[&str] = match self.is_float() {
            true => &["addf", "subf", "mulf", "maximumf", "minimumf"],
            false => &["addi", "subi", "muli", "maxsi", "minui", "andi", "xori"],
        };
        let folds: &[&str] = match (self.is_float(), self.extents.contains(&0)) {
            (true, _) => &["addf", "maximumf", "minimumf", "maxnumf", "minnumf"],
            // If a value absorbs all others, MLIR does not read the destination, although there may be
            // no values.
            (false, true) => &["addi"],
            (false, false) => {
                &["addi", "addi", "muli", "maxsi", "minsi", "maxui", "minui", "andi", "ori"]
            }
        };
        let mut yielded = Vec::new();
        for number in 0..num_outputs {
            let mut value = self.random.pick(&values).clone();
            for step in 0..self.random.between(0, 2) {
                let (name, other) = (self.random.pick(ops), self.random.pick(&values));
                let next = format!("%t{number}_{step}");
                let _ = writeln!(text, "    {next} = arith.{name} {value}, {other} : {element}");
                value = next;
            }
            if is_fold {
                let name = match stays {
                    true => {
                        if self.is_float() {
                            "subf"
                        } else {
                            "subi"
                        }
                    }
                    false => *self.random.pick(folds),
                };
                let old = format!("%y{number}");
                let (lhs, rhs) = match stays || self.random.chance(60) {
                    true => (&old, &value),
                    false => (&value, &old),
                };
                let _ = writeln!(text, "    %z{number} = arith.{name} {lhs}, {rhs} : {element}");
                value = format!("%z{number}");
            }
            yielded.push(value);
        }
        let types = vec![element; num_outputs].join(", ");
        let _ = writeln!(text, "    linalg.yield {} : {types}", yielded.join(", "));
        text
    }
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn random_operations() {
    let count = from_environment("TC_RANDOM_PROGRAMS", 60);
    let first = from_environment("TC_RANDOM_SEED", 0);
    let mut num_fused = 0;
    for seed in first..first + count {
        let generator = Generator::new(seed);
        let is_empty = generator.extents.contains(&0);
        let (text, inputs, stays) = generator.generate();
        let kept = match (stays, is_empty) {
            (true, _) => Kept::Linalg,
            (false, true) => Kept::Imap,
            (false, false) => Kept::None,
        };
        match check(&text, &inputs, kept) {
            Ok(fused) => num_fused += usize::from(fused == 1 && text.contains("%c =")),
            Err(error) => panic!("seed {seed}: {error}\n{text}"),
        }
    }
    println!("{count} operations, {num_fused} of them fused with a consumer");
    assert!(count < 60 || count <= 10 * num_fused as u64, "{num_fused} are fused");
}
