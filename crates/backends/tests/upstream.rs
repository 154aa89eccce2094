//! Operations of MLIR's own dialects in programs: compiled and compared with their meaning, or
//! rejected by an error at the operation.

use melior::ir::Module;
use tc_backends::{
    Codegen, cpu,
    runtime::{Element, Tensor},
};
use tc_dialects::report;

/// The inputs of functions of one number: zero, one and less and more, of both signs.
const NUMBERS: [f64; 8] = [-2.5, -1.0, -0.75, 0.0, 0.25, 0.5, 1.0, 3.25];

/// Compiles a module, and runs its function `f`; or returns the first error and its line.
fn run(source: &str, inputs: &[&Tensor], threads: usize) -> Result<Vec<Tensor>, (usize, String)> {
    let context = tc_dialects::new_context();
    let module = Module::parse(&context, source);
    let module = module.unwrap_or_else(|| panic!("the module parses:\n{source}"));
    let (_, diagnostics) = report::collect(&context);
    match cpu::BACKEND.compile(&module, &Codegen { threads, ..Codegen::default() }) {
        Ok(program) => {
            let code = program.load().unwrap_or_else(|error| panic!("{error}:\n{source}"));
            Ok(code.function("f").expect("a function").run(inputs).expect("it runs"))
        }
        Err(error) => {
            let diagnostics = diagnostics.borrow();
            let first = diagnostics.iter().find(|it| it.is_error());
            let first = first.unwrap_or_else(|| panic!("'{error}' without a reason:\n{source}"));
            let (_, line, _) = first.place.as_ref().expect("a location");
            Err((*line, first.message.clone()))
        }
    }
}

fn tensor<T: Element>(shape: &[usize], values: &[T]) -> Tensor {
    Tensor::from_values(shape, values).expect("as many values as the shape has")
}

fn counted(shape: &[usize]) -> Tensor {
    let count = shape.iter().product();
    tensor(shape, &(0..count).map(|it| it as f32).collect::<Vec<_>>())
}

/// Checks the values of the only result of a function.
#[track_caller]
fn check(source: &str, inputs: &[&Tensor], expected: &[f32]) {
    for threads in [1, 2] {
        let outputs = run(source, inputs, threads).unwrap_or_else(|e| panic!("{e:?}:\n{source}"));
        let values = outputs[0].to_values::<f32>().expect("floats");
        let are_equal =
            values.iter().zip(expected).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()));
        assert!(are_equal && values.len() == expected.len(), "{values:?}, {expected:?}:\n{source}");
    }
}

/// A function of vectors of eight that computes `%r` of `%a` and `%b`, which are equal inputs in
/// opposite orders.
fn elementwise(element: &str, result: &str, body: &str) -> String {
    format!(
        r#"func.func @f(%x: tensor<8x{element}>, %y: tensor<8x{element}>) -> tensor<8x{result}> {{
  %init = tensor.empty() : tensor<8x{result}>
  %m = linalg.map ins(%x, %y : tensor<8x{element}>, tensor<8x{element}>) outs(%init : tensor<8x{result}>)
    (%a: {element}, %b: {element}, %old: {result}) {{
      {body}
      linalg.yield %r : {result}
    }}
  return %m : tensor<8x{result}>
}}"#
    )
}

/// Checks an operation on numbers, in double and single precision.
fn check_numbers(body: &str, meaning: impl Fn(f64, f64) -> f64) {
    let reversed: Vec<f64> = NUMBERS.iter().rev().copied().collect();
    let inputs = [tensor(&[8], &NUMBERS), tensor(&[8], &reversed)];
    let source = elementwise("f64", "f64", &body.replace("T", "f64"));
    let outputs = run(&source, &[&inputs[0], &inputs[1]], 1).expect(&source);
    let values = outputs[0].to_values::<f64>().expect("doubles");
    let single = |it: &[f64]| it.iter().map(|it| *it as f32).collect::<Vec<_>>();
    let inputs = [tensor(&[8], &single(&NUMBERS)), tensor(&[8], &single(&reversed))];
    let source = elementwise("f32", "f32", &body.replace("T", "f32"));
    let outputs = run(&source, &[&inputs[0], &inputs[1]], 1).expect(&source);
    let singles = outputs[0].to_values::<f32>().expect("floats");
    for (index, (a, b)) in NUMBERS.iter().zip(&reversed).enumerate() {
        let expected = meaning(*a, *b);
        for (value, bound) in [(values[index], 1e-13), (singles[index].into(), 2e-6)] {
            let is_close = (value - expected).abs() <= bound * expected.abs().max(1.0)
                || value == expected
                || (value.is_nan() && expected.is_nan());
            assert!(is_close, "{body} of {a} and {b}: {value}, expected {expected}");
        }
    }
}

#[test]
fn math() {
    type Unary = (&'static str, fn(f64) -> f64);
    let unary: [Unary; 31] = [
        ("absf", f64::abs),
        ("acos", libm::acos),
        ("acosh", libm::acosh),
        ("asin", libm::asin),
        ("asinh", libm::asinh),
        ("atan", libm::atan),
        ("atanh", libm::atanh),
        ("cbrt", libm::cbrt),
        ("ceil", f64::ceil),
        ("cos", f64::cos),
        ("cosh", f64::cosh),
        ("erf", libm::erf),
        ("erfc", libm::erfc),
        ("exp", f64::exp),
        ("exp2", f64::exp2),
        ("expm1", f64::exp_m1),
        ("floor", f64::floor),
        ("log", f64::ln),
        ("log10", f64::log10),
        ("log1p", f64::ln_1p),
        ("log2", f64::log2),
        ("round", f64::round),
        ("roundeven", f64::round_ties_even),
        ("rsqrt", |x| 1.0 / x.sqrt()),
        ("sin", f64::sin),
        ("sinh", f64::sinh),
        ("sqrt", f64::sqrt),
        ("tan", f64::tan),
        ("tanh", f64::tanh),
        ("trunc", f64::trunc),
        ("fpowi", |x| x * x * x),
    ];
    for (name, meaning) in unary {
        let body = match name {
            "fpowi" => "%n = arith.constant 3 : i32\n %r = math.fpowi %a, %n : T, i32".to_string(),
            _ => format!("%r = math.{name} %a : T"),
        };
        check_numbers(&body, |a, _| meaning(a));
    }
    check_numbers("%r = math.atan2 %a, %b : T", f64::atan2);
    check_numbers("%r = math.copysign %a, %b : T", f64::copysign);
    check_numbers("%r = math.powf %a, %b : T", f64::powf);
    check_numbers("%r = math.fma %a, %b, %a : T", |a, b| a.mul_add(b, a));
    let (x, y) = (tensor(&[8], &[-8i32, -3, -1, 0, 1, 2, 5, 7]), tensor(&[8], &[2i32; 8]));
    for (body, meaning) in [
        ("%r = math.absi %a : i32", i32::abs as fn(i32) -> i32),
        ("%r = math.ctlz %a : i32", |a| a.leading_zeros() as i32),
        ("%r = math.cttz %a : i32", |a| a.trailing_zeros() as i32),
        ("%r = math.ctpop %a : i32", |a| a.count_ones() as i32),
        ("%r = math.ipowi %a, %b : i32", |a| a * a),
        (
            "%w = arith.extsi %a : i32 to i128\n %v = arith.extsi %b : i32 to i128\n \
          %q = arith.divsi %w, %v : i128\n %r = arith.trunci %q : i128 to i32",
            |a| a / 2,
        ),
    ] {
        let outputs = run(&elementwise("i32", "i32", body), &[&x, &y], 1).expect(body);
        let expected: Vec<_> = x.to_values::<i32>().unwrap().into_iter().map(meaning).collect();
        assert_eq!(outputs[0].to_values::<i32>().expect("integers"), expected, "{body}");
    }
}

/// Functions of the complex number `a + bi`: the sum of both parts of the result.
#[test]
fn complex() {
    let check = |body: &str, meaning: fn((f64, f64)) -> (f64, f64)| {
        let body = format!(
            "%z = complex.create %a, %b : complex<T>\n {body}\n %u = complex.re %w : complex<T>\n \
             %v = complex.im %w : complex<T>\n %r = arith.addf %u, %v : T"
        );
        check_numbers(&body, |a, b| {
            let (u, v) = meaning((a, b));
            u + v
        });
    };
    check("%w = complex.mul %z, %z : complex<T>", |(a, b)| (a * a - b * b, 2.0 * a * b));
    check("%w = complex.add %z, %z : complex<T>", |(a, b)| (2.0 * a, 2.0 * b));
    check("%w = complex.sub %z, %z : complex<T>", |_| (0.0, 0.0));
    check("%w = complex.conj %z : complex<T>", |(a, b)| (a, -b));
    check("%w = complex.neg %z : complex<T>", |(a, b)| (-a, -b));
    check("%w = complex.exp %z : complex<T>", |(a, b)| (a.exp() * b.cos(), a.exp() * b.sin()));
    check("%w = complex.sin %z : complex<T>", |(a, b)| (a.sin() * b.cosh(), a.cos() * b.sinh()));
    check("%w = complex.cos %z : complex<T>", |(a, b)| (a.cos() * b.cosh(), -a.sin() * b.sinh()));
    check("%w = complex.log %z : complex<T>", |(a, b)| (a.hypot(b).ln(), b.atan2(a)));
    check(
        "%c = complex.constant [3.0 : T, 4.0 : T] : complex<T>\n %w = complex.div %z, %c : complex<T>",
        |(a, b)| ((3.0 * a + 4.0 * b) / 25.0, (3.0 * b - 4.0 * a) / 25.0),
    );
    check_numbers(
        "%z = complex.create %a, %b : complex<T>\n %r = complex.abs %z : complex<T>",
        f64::hypot,
    );
    check_numbers(
        "%z = complex.create %a, %b : complex<T>\n %r = complex.angle %z : complex<T>",
        |a, b| b.atan2(a),
    );
}

/// A function of tensors of floats: the types of its arguments, `%a`, `%b`, .., that of its result,
/// and its body.
fn function(arguments: &[&str], result: &str, body: &str) -> String {
    let names = ["a", "b", "c"].iter().zip(arguments);
    let arguments: Vec<_> = names.map(|(name, ty)| format!("%{name}: tensor<{ty}>")).collect();
    format!("func.func @f({}) -> tensor<{result}> {{\n{body}\n}}", arguments.join(", "))
}

#[test]
fn tensors() {
    let (x, y) = (counted(&[4]), counted(&[2, 3]));
    let pad = |element: &str| {
        format!(
            "%v = arith.constant 9.0 : f32
            %r = tensor.pad %a low[1] high[2] {{ ^bb0(%i: index): {element} }} : tensor<4xf32> to tensor<7xf32>
            return %r : tensor<7xf32>"
        )
    };
    check(
        &function(&["4xf32"], "7xf32", &pad("tensor.yield %v : f32")),
        &[&x],
        &[9.0, 0.0, 1.0, 2.0, 3.0, 9.0, 9.0],
    );
    let index = "%j = arith.index_cast %i : index to i32
      %w = arith.sitofp %j : i32 to f32
      tensor.yield %w : f32";
    check(&function(&["4xf32"], "7xf32", &pad(index)), &[&x], &[0.0, 0.0, 1.0, 2.0, 3.0, 5.0, 6.0]);
    check(
        &function(
            &["2x3xf32"],
            "2x4xf32",
            "%s = tensor.extract_slice %a[0, 1] [2, 1] [1, 1] : tensor<2x3xf32> to tensor<2x1xf32>
            %r = tensor.concat dim(1) %a, %s : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
            return %r : tensor<2x4xf32>",
        ),
        &[&y],
        &[0.0, 1.0, 2.0, 1.0, 3.0, 4.0, 5.0, 4.0],
    );
    // Strided copies.
    check(
        &function(
            &["6x6xf32"],
            "3x4xf32",
            "%r = tensor.extract_slice %a[0, 1] [3, 4] [2, 1] : tensor<6x6xf32> to tensor<3x4xf32>
            return %r : tensor<3x4xf32>",
        ),
        &[&counted(&[6, 6])],
        &[1.0, 2.0, 3.0, 4.0, 13.0, 14.0, 15.0, 16.0, 25.0, 26.0, 27.0, 28.0],
    );
    check(
        &function(
            &["4xf32", "2xf32"],
            "4xf32",
            "%r = tensor.insert_slice %b into %a[1] [2] [2] : tensor<2xf32> into tensor<4xf32>
            return %r : tensor<4xf32>",
        ),
        &[&x, &tensor(&[2], &[7.0f32, 8.0])],
        &[0.0, 7.0, 2.0, 8.0],
    );
    check(
        &function(
            &["2x3xf32"],
            "4xf32",
            "%s = tensor.extract_slice %a[0, 0] [2, 2] [1, 2] : tensor<2x3xf32> to tensor<2x2xf32>
            %r = tensor.collapse_shape %s [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
            return %r : tensor<4xf32>",
        ),
        &[&y],
        &[0.0, 2.0, 3.0, 5.0],
    );
    check(
        &function(
            &["4xf32"],
            "2x2xf32",
            "%r = tensor.generate { ^bb0(%i: index, %j: index):
              %k = affine.linearize_index [%j, %i] by (2, 2) : index
              %v = tensor.extract %a[%k] : tensor<4xf32>
              tensor.yield %v : f32 } : tensor<2x2xf32>
            return %r : tensor<2x2xf32>",
        ),
        &[&x],
        &[0.0, 2.0, 1.0, 3.0],
    );
    check(
        &function(
            &["4xf32"],
            "3xf32",
            "%i = arith.constant 3 : index
            %v = tensor.extract %a[%i] : tensor<4xf32>
            %r = tensor.splat %v : tensor<3xf32>
            return %r : tensor<3xf32>",
        ),
        &[&x],
        &[3.0, 3.0, 3.0],
    );
    check(
        &function(
            &["4xf32", "2xi32"],
            "?x?xf32",
            "%r = tensor.reshape %a(%b) : (tensor<4xf32>, tensor<2xi32>) -> tensor<?x?xf32>
            %s = tensor.cast %r : tensor<?x?xf32> to tensor<2x2xf32>
            %t = linalg.transpose ins(%s : tensor<2x2xf32>) outs(%s : tensor<2x2xf32>) permutation = [1, 0]
            return %t : tensor<2x2xf32>",
        )
        .replace("-> tensor<?x?xf32> {", "-> tensor<2x2xf32> {"),
        &[&x, &tensor(&[2], &[2i32, 2])],
        &[0.0, 2.0, 1.0, 3.0],
    );
    check(
        &function(
            &["4xf32"],
            "4xf32",
            "%e = math.exp2 %a : tensor<4xf32>
            %r = arith.subf %e, %a : tensor<4xf32>
            return %r : tensor<4xf32>",
        ),
        &[&x],
        &[1.0, 1.0, 2.0, 5.0],
    );
    check(
        &function(
            &["4xf32"],
            "4xf32",
            "%r = affine.for %i = 1 to 3 iter_args(%t = %a) -> tensor<4xf32> {
              %v = tensor.extract %t[%i] : tensor<4xf32>
              %w = arith.addf %v, %v : f32
              %n = tensor.insert %w into %t[%i] : tensor<4xf32>
              affine.yield %n : tensor<4xf32> }
            return %r : tensor<4xf32>",
        ),
        &[&x],
        &[0.0, 2.0, 4.0, 3.0],
    );
    check(
        &function(
            &["4xf32"],
            "4xf32",
            "%e = tensor.empty() : tensor<4xf32>
            %r = scf.forall (%i) in (2) shared_outs(%o = %e) -> tensor<4xf32> {
              %j = affine.apply affine_map<(d0) -> (d0 * 2)>(%i)
              %s = tensor.extract_slice %a[%j] [2] [1] : tensor<4xf32> to tensor<2xf32>
              %d = arith.addf %s, %s : tensor<2xf32>
              scf.forall.in_parallel {
                tensor.parallel_insert_slice %d into %o[%j] [2] [1] : tensor<2xf32> into tensor<4xf32> } }
            return %r : tensor<4xf32>",
        ),
        &[&x],
        &[0.0, 2.0, 4.0, 6.0],
    );
    check(
        &function(
            &["4xf32"],
            "4xf32",
            "%d = shape.shape_of %a : tensor<4xf32> -> tensor<1xindex>
            %n = shape.num_elements %d : tensor<1xindex> -> index
            %two = index.constant 2
            %h = index.floordivs %n, %two
            %k = arith.index_cast %h : index to i32
            %v = arith.sitofp %k : i32 to f32
            %e = tensor.empty() : tensor<4xf32>
            %r = linalg.fill ins(%v : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
            return %r : tensor<4xf32>",
        ),
        &[&x],
        &[2.0; 4],
    );
}

#[test]
fn linalg() {
    let (x, y) = (counted(&[2, 3]), counted(&[3, 2]));
    let zeros = |shape: &[usize]| tensor(shape, &vec![0.0f32; shape.iter().product()]);
    let named = |operation: &str, types: [&str; 3]| {
        let [a, b, c] = types;
        let body = format!(
            "%r = linalg.{operation} ins(%a, %b : tensor<{a}>, tensor<{b}>) outs(%c : tensor<{c}>) -> tensor<{c}>
            return %r : tensor<{c}>"
        );
        function(&types, c, &body)
    };
    check(
        &named("matmul", ["2x3xf32", "3x2xf32", "2x2xf32"]),
        &[&x, &y, &zeros(&[2, 2])],
        &[10.0, 13.0, 28.0, 40.0],
    );
    check(
        &named("matvec", ["2x3xf32", "3xf32", "2xf32"]),
        &[&x, &counted(&[3]), &zeros(&[2])],
        &[5.0, 14.0],
    );
    check(
        &named("conv_1d", ["4xf32", "2xf32", "3xf32"]),
        &[&counted(&[4]), &tensor(&[2], &[1.0f32, 10.0]), &counted(&[3])],
        &[10.0, 22.0, 34.0],
    );
    check(
        &named("pooling_nhwc_max", ["1x2x2x1xf32", "2x2xf32", "1x1x1x1xf32"]),
        &[&counted(&[1, 2, 2, 1]), &zeros(&[2, 2]), &zeros(&[1, 1, 1, 1])],
        &[3.0],
    );
    check(
        &function(
            &["2x3xf32", "2xf32"],
            "2xf32",
            "%r = linalg.reduce { arith.addf } ins(%a : tensor<2x3xf32>) outs(%b : tensor<2xf32>) dimensions = [1]
            return %r : tensor<2xf32>",
        ),
        &[&x, &tensor(&[2], &[100.0f32, 200.0])],
        &[103.0, 212.0],
    );
    check(
        &function(
            &["2xf32", "2x3xf32"],
            "2x3xf32",
            "%r = linalg.broadcast ins(%a : tensor<2xf32>) outs(%b : tensor<2x3xf32>) dimensions = [1]
            return %r : tensor<2x3xf32>",
        ),
        &[&counted(&[2]), &x],
        &[0.0, 0.0, 0.0, 1.0, 1.0, 1.0],
    );
    // The input is not overwritten, although nothing else uses it.
    check(
        &function(
            &["2x3xf32"],
            "3x2xf32",
            "%e = tensor.empty() : tensor<3x2xf32>
            %t = linalg.transpose ins(%a : tensor<2x3xf32>) outs(%e : tensor<3x2xf32>) permutation = [1, 0]
            %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                iterator_types = [\"parallel\", \"parallel\"]}
                ins(%t : tensor<3x2xf32>) outs(%t : tensor<3x2xf32>) {
            ^bb0(%x: f32, %y: f32):
              %i = linalg.index 0 : index
              %k = index.casts %i : index to i32
              %v = arith.sitofp %k : i32 to f32
              %s = arith.addf %x, %v : f32
              linalg.yield %s : f32
            } -> tensor<3x2xf32>
            return %r : tensor<3x2xf32>",
        ),
        &[&x],
        &[0.0, 3.0, 2.0, 5.0, 4.0, 7.0],
    );
    check(
        &function(
            &["1x2xf32"],
            "1x2xf32",
            "%e = tensor.empty() : tensor<1x2xf32>
            %r = linalg.softmax dimension(1) ins(%a : tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
            return %r : tensor<1x2xf32>",
        ),
        &[&tensor(&[1, 2], &[1000.0f32, 1000.0])],
        &[0.5, 0.5],
    );
    check(
        &function(
            &["2x3xf32"],
            "1x2x2x2xf32",
            "%v = arith.constant 9.0 : f32
            %e = tensor.empty() : tensor<1x2x2x2xf32>
            %r = linalg.pack %a padding_value(%v : f32) inner_dims_pos = [0, 1] inner_tiles = [2, 2]
              into %e : tensor<2x3xf32> -> tensor<1x2x2x2xf32>
            return %r : tensor<1x2x2x2xf32>",
        ),
        &[&x],
        &[0.0, 1.0, 3.0, 4.0, 2.0, 9.0, 5.0, 9.0],
    );
    check(
        &function(
            &["1x2x2x2xf32"],
            "2x3xf32",
            "%e = tensor.empty() : tensor<2x3xf32>
            %r = linalg.unpack %a inner_dims_pos = [0, 1] inner_tiles = [2, 2]
              into %e : tensor<1x2x2x2xf32> -> tensor<2x3xf32>
            return %r : tensor<2x3xf32>",
        ),
        &[&counted(&[1, 2, 2, 2])],
        &[0.0, 1.0, 4.0, 2.0, 3.0, 6.0],
    );
}

#[test]
fn vectors() {
    let check = |body: &str, expected: &[f32]| {
        let body = format!(
            "%c0 = arith.constant 0 : index
            %c1 = arith.constant 1 : index
            %c2 = arith.constant 2 : index
            %zero = arith.constant 0.0 : f32
            %v = vector.transfer_read %a[%c0], %zero : tensor<4xf32>, vector<4xf32>
            %m = vector.shape_cast %v : vector<4xf32> to vector<2x2xf32>
            %s = vector.extract %v[%c2] : f32 from vector<4xf32>
            {body}
            %e = tensor.empty() : tensor<4xf32>
            %stored = vector.transfer_write %r, %e[%c0] : vector<4xf32>, tensor<4xf32>
            return %stored : tensor<4xf32>"
        );
        self::check(
            &function(&["4xf32"], "4xf32", &body),
            &[&tensor(&[4], &[1f32, 2., 3., 4.])],
            expected,
        );
    };
    check("%r = vector.broadcast %s : f32 to vector<4xf32>", &[3.0; 4]);
    check("%r = vector.insert %zero, %v[%c1] : f32 into vector<4xf32>", &[1.0, 0.0, 3.0, 4.0]);
    check(
        "%r = vector.shuffle %v, %v [3, 6, 1, 4] : vector<4xf32>, vector<4xf32>",
        &[4.0, 3.0, 2.0, 1.0],
    );
    check(
        "%q = vector.reduction <add>, %v, %s : vector<4xf32> into f32
        %r = vector.broadcast %q : f32 to vector<4xf32>",
        &[13.0; 4],
    );
    check(
        "%q = vector.multi_reduction <mul>, %m, %s [0, 1] : vector<2x2xf32> to f32
        %r = vector.broadcast %q : f32 to vector<4xf32>",
        &[72.0; 4],
    );
    check(
        "%t = vector.transpose %m, [1, 0] : vector<2x2xf32> to vector<2x2xf32>
        %r = vector.shape_cast %t : vector<2x2xf32> to vector<4xf32>",
        &[1.0, 3.0, 2.0, 4.0],
    );
    check(
        "%q = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
            affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
            iterator_types = [\"parallel\", \"parallel\", \"reduction\"], kind = #vector.kind<add>}
            %m, %m, %m : vector<2x2xf32>, vector<2x2xf32> into vector<2x2xf32>
        %r = vector.shape_cast %q : vector<2x2xf32> to vector<4xf32>",
        &[6.0, 13.0, 14.0, 29.0],
    );
    check(
        "%u = vector.extract %m[1] : vector<2xf32> from vector<2x2xf32>
        %q = vector.outerproduct %u, %u : vector<2xf32>, vector<2xf32>
        %r = vector.shape_cast %q : vector<2x2xf32> to vector<4xf32>",
        &[9.0, 12.0, 12.0, 16.0],
    );
    check(
        "%r = vector.transfer_read %a[%c2], %s : tensor<4xf32>, vector<4xf32>",
        &[3.0, 4.0, 3.0, 3.0],
    );
    check(
        "%k = vector.create_mask %c1, %c2 : vector<2x2xi1>
        %z = arith.constant dense<0.0> : vector<2x2xf32>
        %q = arith.select %k, %m, %z : vector<2x2xi1>, vector<2x2xf32>
        %r = vector.shape_cast %q : vector<2x2xf32> to vector<4xf32>",
        &[1.0, 2.0, 0.0, 0.0],
    );
    check(
        "%k = vector.constant_mask [3] : vector<4xi1>
        %q = vector.mask %k { vector.reduction <add>, %v : vector<4xf32> into f32 } : vector<4xi1> -> f32
        %r = vector.broadcast %q : f32 to vector<4xf32>",
        &[6.0; 4],
    );
    check(
        "%i = vector.step : vector<4xindex>
        %k = vector.constant_mask [2] : vector<4xi1>
        %r = vector.gather %a[%c1][%i], %k, %v : tensor<4xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<4xf32>",
        &[2.0, 3.0, 3.0, 4.0],
    );
    check(
        "%x, %y = vector.deinterleave %v : vector<4xf32> -> vector<2xf32>
        %r = vector.interleave %y, %x : vector<2xf32> -> vector<4xf32>",
        &[2.0, 1.0, 4.0, 3.0],
    );
    check(
        "%x:4 = vector.to_elements %m : vector<2x2xf32>
        %r = vector.from_elements %x#3, %x#2, %x#1, %x#0 : vector<4xf32>",
        &[4.0, 3.0, 2.0, 1.0],
    );
    check("%r = math.cbrt %v : vector<4xf32>", &[1.0, 1.259_921_1, 1.442_249_5, 1.587_401]);
}

/// Loops and branches over memory.
#[test]
fn memory() {
    let check = |body: &str, expected: &[f32]| {
        let body = format!(
            "%c0 = arith.constant 0 : index
            %c1 = arith.constant 1 : index
            %c4 = arith.constant 4 : index
            %zero = arith.constant 0.0 : f32
            %m = bufferization.to_buffer %a : tensor<4xf32> to memref<4xf32>
            %n = memref.alloc() : memref<4xf32>
            memref.copy %m, %n : memref<4xf32> to memref<4xf32>
            {body}
            %r = bufferization.to_tensor %n restrict : memref<4xf32> to tensor<4xf32>
            return %r : tensor<4xf32>"
        );
        self::check(
            &function(&["4xf32"], "4xf32", &body),
            &[&tensor(&[4], &[1f32, 2., 3., 4.])],
            expected,
        );
    };
    let double = "%x = memref.load %m[%i] : memref<4xf32>
        %y = arith.addf %x, %x : f32
        memref.store %y, %n[%i] : memref<4xf32>";
    for head in [
        "scf.for %i = %c0 to %c4 step %c1",
        "scf.parallel (%i) = (%c0) to (%c4) step (%c1)",
        "scf.forall (%i) in (4)",
        "affine.for %i = 0 to 4",
        "affine.parallel (%i) = (0) to (4)",
    ] {
        check(&format!("{head} {{\n{double}\n}}"), &[2.0, 4.0, 6.0, 8.0]);
    }
    check(
        &format!(
            "affine.for %i = 0 to 4 {{ affine.if affine_set<(i) : (i - 2 >= 0)>(%i) {{\n{double}\n}} }}"
        ),
        &[1.0, 2.0, 6.0, 8.0],
    );
    check(
        &format!(
            "%q = scf.while (%i = %c1) : (index) -> index {{
              %c = arith.cmpi slt, %i, %c4 : index
              scf.condition(%c) %i : index
            }} do {{ ^bb0(%i: index):
              {double}
              %next = arith.addi %i, %c1 : index
              scf.yield %next : index }}"
        ),
        &[1.0, 4.0, 6.0, 8.0],
    );
    for sum in [
        "%q = scf.parallel (%i) = (%c0) to (%c4) step (%c1) init (%zero) -> f32 {
          %x = memref.load %m[%i] : memref<4xf32>
          scf.reduce(%x : f32) { ^bb0(%l: f32, %r: f32):
            %t = arith.addf %l, %r : f32
            scf.reduce.return %t : f32 } }",
        "%q = affine.parallel (%i) = (0) to (4) reduce (\"addf\") -> f32 {
          %x = affine.load %m[%i] : memref<4xf32>
          affine.yield %x : f32 }",
    ] {
        check(&format!("{sum}\nmemref.store %q, %n[%c1] : memref<4xf32>"), &[1.0, 10.0, 3.0, 4.0]);
    }
    check(
        "%q = scf.index_switch %c4 -> f32 case 4 { %v = arith.constant 7.0 : f32\n scf.yield %v : f32 }
          default { scf.yield %zero : f32 }
        memref.store %q, %n[%c1] : memref<4xf32>",
        &[1.0, 7.0, 3.0, 4.0],
    );
    check(
        "%x = memref.load %m[%c1] : memref<4xf32>
        %c = arith.cmpf ogt, %x, %zero : f32
        %q = scf.execute_region -> f32 { cf.cond_br %c, ^bb1, ^bb2
          ^bb1: cf.br ^bb3(%zero : f32)
          ^bb2: cf.br ^bb3(%x : f32)
          ^bb3(%z: f32): scf.yield %z : f32 }
        memref.store %q, %n[%c1] : memref<4xf32>",
        &[1.0, 0.0, 3.0, 4.0],
    );
    check(
        "%o = memref.atomic_rmw addf %zero, %n[%c1] : (f32, memref<4xf32>) -> f32
        %q = memref.atomic_rmw maximumf %o, %n[%c0] : (f32, memref<4xf32>) -> f32",
        &[2.0, 2.0, 3.0, 4.0],
    );
    check(
        "%s = memref.subview %m[0] [2] [2] : memref<4xf32> to memref<2xf32, strided<[2]>>
        %t = memref.subview %n[1] [2] [1] : memref<4xf32> to memref<2xf32, strided<[1], offset: 1>>
        memref.copy %s, %t : memref<2xf32, strided<[2]>> to memref<2xf32, strided<[1], offset: 1>>",
        &[1.0, 1.0, 3.0, 4.0],
    );
    check(
        "%s = memref.expand_shape %m [[0, 1]] output_shape [2, 2] : memref<4xf32> into memref<2x2xf32>
        %t = memref.transpose %s (i, j) -> (j, i) : memref<2x2xf32> to memref<2x2xf32, strided<[1, 2]>>
        %u = memref.expand_shape %n [[0, 1]] output_shape [2, 2] : memref<4xf32> into memref<2x2xf32>
        memref.copy %t, %u : memref<2x2xf32, strided<[1, 2]>> to memref<2x2xf32>",
        &[1.0, 3.0, 2.0, 4.0],
    );
    check(
        "%v = vector.load %m[%c0] : memref<4xf32>, vector<4xf32>
        %w = arith.mulf %v, %v : vector<4xf32>
        %k = vector.constant_mask [3] : vector<4xi1>
        vector.maskedstore %n[%c0], %k, %w : memref<4xf32>, vector<4xi1>, vector<4xf32>",
        &[1.0, 4.0, 9.0, 4.0],
    );
    // A variable may have the name of a function that the code calls.
    let source = function(
        &["4xf32"],
        "4xf32",
        "%n = memref.alloc() : memref<4xf32>
        %g = memref.get_global @memcpy : memref<4xf32>
        memref.copy %g, %n : memref<4xf32> to memref<4xf32>
        %r = bufferization.to_tensor %n restrict : memref<4xf32> to tensor<4xf32>
        return %r : tensor<4xf32>",
    );
    let source = format!("memref.global constant @memcpy : memref<4xf32> = dense<2.0>\n{source}");
    self::check(&source, &[&counted(&[4])], &[2.0; 4]);
}

/// Each line is an operation on `%a` that is rejected where it stands, with a part of the message.
#[test]
fn unsupported_operations() {
    let check = |operation: &str, expected: &str| {
        let body = format!("\n{operation}\nreturn %a : tensor<4xf32>");
        let declarations = [
            ("@g", "func.func private @g(tensor<4xf32>) -> tensor<4xf32>\n"),
            ("@v", "memref.global @v : memref<4xf32>\n"),
            ("@printf", "llvm.func @printf(f32) -> f32\n"),
        ];
        let head = declarations.iter().find(|(name, _)| operation.contains(name));
        let head = head.map_or("", |(_, declaration)| declaration);
        let source = format!("{head}{}", function(&["4xf32"], "4xf32", &body));
        let (line, message) = run(&source, &[], 1).err().unwrap_or_else(|| panic!("{operation}"));
        let lines: Vec<_> = source.lines().collect();
        let found = lines[line - 1].trim();
        assert!(
            operation.contains(found) || found.starts_with("memref.global"),
            "{line}: {message}"
        );
        assert!(message.contains(expected), "{operation}: {message}");
    };
    check(
        "%t = tosa.exp %a : (tensor<4xf32>) -> tensor<4xf32>",
        "does not lower the dialect 'tosa'",
    );
    check("%t = func.call @g(%a) : (tensor<4xf32>) -> tensor<4xf32>", "has no body; inline it");
    check("%t = memref.get_global @v : memref<4xf32>", "give it a value");
    check("%s = shape.shape_of %a : tensor<4xf32> -> !shape.shape", "'!shape.shape'");
    check("%t = tensor.bitcast %a : tensor<4xf32> to tensor<4xi32>", "use 'arith.bitcast'");
    check("%s = vector.vscale", "use vectors of a fixed length");
    check("%s = arith.constant dense<0.0> : vector<[4]xf32>", "use a vector of a fixed length");
    check("%s = arith.constant 0.0 : f128", "use 'f64'");
    check("%t = arith.constant true\ncf.assert %t, \"\"", "use 'imap.check'");
    check("%m = memref.alloc() : memref<4xf32>\nmemref.dealloc %m : memref<4xf32>", "remove it");
    check(
        "%z = arith.constant dense<0.0> : vector<4xf32>\nvector.print %z : vector<4xf32>",
        "prints nothing",
    );
    check(
        "%i = arith.constant 0 : index\n%z = arith.constant 0.0 : f32\n\
         %k = arith.constant dense<false> : vector<4xi1>\n\
         %v = vector.transfer_read %a[%i], %z, %k : tensor<4xf32>, vector<4xf32>",
        "use 'arith.select'",
    );
    check(
        "%z = arith.constant 0.0 : f32\n%s, %c = math.sincos %z : f32",
        "use 'math.sin' and 'math.cos'",
    );
    check(
        "%z = arith.constant 0.0 : f32\n%s = llvm.call @printf(%z) : (f32) -> f32",
        "the program needs 'printf'",
    );
}
