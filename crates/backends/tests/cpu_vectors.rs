//! Reductions in vector registers: every way a block can end, on every width of vector
//! that this machine can run, against a direct computation.

use melior::ir::Module;
use tc_backends::{
    Codegen, Compiled, Machine, cpu,
    runtime::{Element, Tensor},
};

fn compile(source: &str, options: &Codegen) -> Compiled {
    let context = tc_dialects::new_context();
    context.attach_diagnostic_handler(|diagnostic| {
        eprintln!("{}: {diagnostic}", diagnostic.location());
        true
    });
    let module = Module::parse(&context, source).expect("the module parses");
    let program = cpu::BACKEND.compile(&module, options).expect("the module lowers");
    program.load().expect("the code loads")
}

/// This machine, and older ones that it can stand for.
fn targets() -> Vec<Codegen> {
    let mut found = vec![Codegen::default(), Codegen { strict_fp: true, ..Codegen::default() }];
    if Machine::host().triple.starts_with("x86_64") {
        found.push(Codegen { machine: Machine::cpu("x86-64"), ..Codegen::default() });
        if Machine::host().features.contains("+avx2") {
            found.push(Codegen { machine: Machine::cpu("x86-64-v3"), ..Codegen::default() });
        }
    }
    found.push(Codegen { threads: 2, ..Codegen::default() });
    found
}

fn tensor<T: Element>(shape: &[usize], value: impl Fn(usize) -> T) -> Tensor {
    let values: Vec<T> = (0..shape.iter().product()).map(value).collect();
    Tensor::from_values(shape, &values).expect("as many values as the shape has")
}

/// `C(m, n) = epilogue(combine over k of A(..) * B(..))` with dynamic sizes.
struct Product {
    /// The element type in MLIR.
    ty: &'static str,
    /// The results of the maps of A and B.
    a: &'static str,
    b: &'static str,
    /// The names of their extents.
    a_sizes: [&'static str; 2],
    b_sizes: [&'static str; 2],
    combine: &'static str,
    multiply: &'static str,
    epilogue: &'static str,
}

impl Product {
    fn source(&self, sizes: Option<[usize; 3]>) -> String {
        let Self { ty, a, b, combine, multiply, epilogue, .. } = self;
        let extent = |name: &str| match sizes {
            None => "?".to_string(),
            Some([m, n, k]) => (match name {
                "M" => m,
                "N" => n,
                _ => k,
            })
            .to_string(),
        };
        let tensor =
            |names: [&str; 2]| format!("tensor<{}x{}x{ty}>", extent(names[0]), extent(names[1]));
        let (a_type, b_type) = (tensor(self.a_sizes), tensor(self.b_sizes));
        let c_type = tensor(["M", "N"]);
        let quoted = |names: [&str; 2]| format!("[\"{}\", \"{}\"]", names[0], names[1]);
        let mut dims = String::new();
        let mut runtime = String::new();
        let mut variables = String::new();
        let mut bounds = "m in [0, M - 1], n in [0, N - 1], k in [0, K - 1]".to_string();
        let mut empty = "tensor.empty()".to_string();
        if let Some(sizes) = sizes {
            for (name, value) in ["M", "N", "K"].iter().zip(sizes) {
                bounds = bounds.replace(&format!("{name} - 1"), &(value - 1).to_string());
            }
        } else {
            for name in ["M", "N", "K"] {
                let (source, names) = if self.a_sizes.contains(&name) {
                    (format!("%A : {a_type}"), self.a_sizes)
                } else {
                    (format!("%B : {b_type}"), self.b_sizes)
                };
                let dim = names.iter().position(|it| *it == name).unwrap();
                let (value, ty) = source.split_once(" : ").unwrap();
                dims += &format!("  %{name} = tensor.dim {value}, %c{dim} : {ty}\n");
                bounds += &format!(", {name} in [1, 2147483647]");
            }
            variables = "{M, N, K}".to_string();
            runtime = "runtime(%M, %N, %K : index, index, index)".to_string();
            empty = "tensor.empty(%M, %N)".to_string();
        }
        format!(
            r#"
func.func @product(%A: {a_type} {{tc.name = "A", tc.sizes = {}}},
                   %B: {b_type} {{tc.name = "B", tc.sizes = {}}})
    -> ({c_type} {{tc.name = "C", tc.sizes = ["M", "N"]}}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
{dims}
  %init = {empty} : {c_type}
  %c = imap.generic (m, n)[k]{variables} domain: {bounds}
    {runtime}
    ins(%A[{a}], %B[{b}] : {a_type}, {b_type})
    outs(%init[m, n] : {c_type}) fold [{combine} {ty}] {{
  ^bb0(%a: {ty}, %b: {ty}):
    %p = {multiply} %a, %b : {ty}
    imap.yield %p : {ty}
  }} {epilogue} -> {c_type}
  return %c : {c_type}
}}"#,
            quoted(self.a_sizes),
            quoted(self.b_sizes),
        )
    }

    /// Compiles for sizes that are known or not, runs, and compares.
    fn check<T: Element + PartialEq + std::fmt::Debug>(
        &self,
        options: &Codegen,
        sizes: &[[usize; 3]],
        value: impl Fn(usize) -> T,
        expected: impl Fn(&mut dyn Iterator<Item = (T, T)>) -> T,
    ) {
        let dynamic = compile(&self.source(None), options);
        for [m, n, k] in sizes.iter().copied() {
            let size = |name: &str| match name {
                "M" => m,
                "N" => n,
                _ => k,
            };
            let a = tensor(&self.a_sizes.map(size), &value);
            let b = tensor(&self.b_sizes.map(size), |i| value(3 * i + 1));
            let at = |names: [&str; 2], point: [usize; 3]| {
                let index = |name: &str| match name {
                    "M" => point[0],
                    "N" => point[1],
                    _ => point[2],
                };
                index(names[0]) * size(names[1]) + index(names[1])
            };
            let wanted: Vec<T> = (0..m * n)
                .map(|i| {
                    expected(&mut (0..k).map(|r| {
                        let point = [i / n, i % n, r];
                        (value(at(self.a_sizes, point)), value(3 * at(self.b_sizes, point) + 1))
                    }))
                })
                .collect();
            // One code for every size, and one for this size alone.
            let mut programs = vec![&dynamic];
            let fixed;
            if options.machine == Machine::host() && options.threads == 1 && !options.strict_fp {
                fixed = compile(&self.source(Some([m, n, k])), options);
                programs.push(&fixed);
            }
            for compiled in programs {
                let result = compiled.function("product").unwrap().run(&[&a, &b]).unwrap();
                assert_eq!(result[0].to_values::<T>().unwrap(), wanted, "{options:?} {m} {n} {k}");
            }
        }
    }
}

const SIZES: [[usize; 3]; 9] = [
    [1, 1, 1],
    [2, 16, 5],
    [15, 31, 17],
    [14, 32, 16],
    [33, 47, 40],
    [5, 70, 3],
    // Ends of one, two and three lanes.
    [4, 33, 3],
    [3, 18, 2],
    [2, 35, 4],
];

#[test]
fn lanes_along_results() {
    let product = Product {
        ty: "f32",
        a: "m, k",
        b: "k, n",
        a_sizes: ["M", "K"],
        b_sizes: ["K", "N"],
        combine: "add",
        multiply: "arith.mulf",
        epilogue: "",
    };
    for options in targets() {
        let value = |i: usize| (i % 7) as f32 - 3.0;
        product.check(&options, &SIZES, value, |pairs| pairs.map(|(a, b)| a * b).sum());
    }
}

#[test]
fn lanes_along_the_reduction() {
    let product = Product {
        ty: "f64",
        a: "m, k",
        b: "n, k",
        a_sizes: ["M", "K"],
        b_sizes: ["N", "K"],
        combine: "add",
        multiply: "arith.mulf",
        epilogue: "",
    };
    for options in targets() {
        let value = |i: usize| (i % 7) as f64 - 3.0;
        product.check(&options, &SIZES, value, |pairs| pairs.map(|(a, b)| a * b).sum());
    }
}

#[test]
fn largest_product_with_an_epilogue() {
    let product = Product {
        ty: "i32",
        a: "m, k",
        b: "k, n",
        a_sizes: ["M", "K"],
        b_sizes: ["K", "N"],
        combine: "maxs",
        multiply: "arith.muli",
        epilogue: "epilogue {\n^bb0(%f: i32, %a: i32, %b: i32):\n\
                   %one = arith.constant 1 : i32\n%s = arith.addi %f, %one : i32\n\
                   imap.yield %s : i32\n}",
    };
    for options in targets() {
        product.check(
            &options,
            &SIZES,
            |i| (i * 37 % 23) as i32 - 11,
            |pairs| pairs.map(|(a, b)| a * b).max().unwrap() + 1,
        );
    }
}

/// The epilogue calls a function, element by element.
#[test]
fn scalar_epilogue() {
    let product = Product {
        ty: "f32",
        a: "m, k",
        b: "k, n",
        a_sizes: ["M", "K"],
        b_sizes: ["K", "N"],
        combine: "add",
        multiply: "arith.mulf",
        epilogue: "epilogue {\n^bb0(%f: f32, %a: f32, %b: f32):\n\
                   %s = imap.builtin \"fabs\"(%f) : f32\n\
                   imap.yield %s : f32\n}",
    };
    for options in targets() {
        let value = |i: usize| (i % 7) as f32 - 3.0;
        let absolute = |pairs: &mut dyn Iterator<Item = (f32, f32)>| {
            pairs.map(|(a, b)| a * b).sum::<f32>().abs()
        };
        product.check(&options, &SIZES, value, absolute);
    }
}

#[test]
fn largest_float_along_the_reduction() {
    let product = Product {
        ty: "f32",
        a: "m, k",
        b: "n, k",
        a_sizes: ["M", "K"],
        b_sizes: ["N", "K"],
        combine: "maxf",
        multiply: "arith.addf",
        epilogue: "",
    };
    for options in targets() {
        let value = |i: usize| (i * 37 % 23) as f32 - 40.0;
        product.check(&options, &SIZES, value, |pairs| {
            pairs.map(|(a, b)| a + b).fold(f32::NEG_INFINITY, f32::max)
        });
    }
}

/// A row, a column and everything: what is folded into one vector, or one number. A NaN loses
/// against any number, or wins.
#[test]
fn largest_of_rows() {
    let source = |combiner: &str| {
        format!(
            r#"
func.func @rows(%A: tensor<?x?xf32> {{tc.name = "A", tc.sizes = ["M", "N"]}})
    -> (tensor<?xf32> {{tc.name = "B", tc.sizes = ["M"]}}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %M = tensor.dim %A, %c0 : tensor<?x?xf32>
  %N = tensor.dim %A, %c1 : tensor<?x?xf32>
  %init = tensor.empty(%M) : tensor<?xf32>
  %r = imap.generic (d0)[s0]{{M, N}} domain: d0 in [0, M - 1], s0 in [0, N - 1], M in [1, 2147483647], N in [1, 2147483647]
    runtime(%M, %N : index, index)
    ins(%A[d0, s0] : tensor<?x?xf32>) outs(%init[d0] : tensor<?xf32>) fold [{combiner} f32] {{
  ^bb0(%x: f32):
    imap.yield %x : f32
  }} -> tensor<?xf32>
  return %r : tensor<?xf32>
}}"#
        )
    };
    let propagate = |a: f32, b: f32| if a.is_nan() || b.is_nan() { f32::NAN } else { a.max(b) };
    let larger: [(_, &dyn Fn(f32, f32) -> f32); 2] =
        [("maxf", &f32::max), ("maximumf", &propagate)];
    for (combiner, larger) in larger {
        for options in targets() {
            let compiled = compile(&source(combiner), &options);
            for [m, n] in [[1, 1], [3, 64], [2, 65], [5, 127], [1, 200]] {
                // Every second row has NaNs.
                let value = |i: usize| {
                    if (i / n).is_multiple_of(2) && i % 5 == 3 {
                        f32::NAN
                    } else {
                        (i * 37 % 101) as f32 - 200.0
                    }
                };
                let input = tensor(&[m, n], value);
                let result = compiled.function("rows").unwrap().run(&[&input]).unwrap();
                let numbers = |values: Vec<f32>| -> Vec<_> {
                    values.into_iter().map(|x| if x.is_nan() { None } else { Some(x) }).collect()
                };
                let expected = (0..m)
                    .map(|i| (0..n).map(|j| value(i * n + j)).fold(f32::NEG_INFINITY, larger))
                    .collect();
                let found = result[0].to_values::<f32>().unwrap();
                assert_eq!(numbers(found), numbers(expected), "{combiner} {m} {n}");
            }
        }
    }
}

/// Two inputs of a window, two results, and one of them accumulated into.
#[test]
fn window_with_two_results() {
    let source = r#"
func.func @window(%I: tensor<3x20x40xf32> {tc.name = "I"}, %W: tensor<6x3x3x3xf32> {tc.name = "W"},
                  %S: tensor<6x18x38xf32> {tc.name = "S", tc.inout})
    -> (tensor<6x18x38xf32> {tc.name = "S"}, tensor<6x18x38xf32> {tc.name = "T"}) {
  %init = tensor.empty() : tensor<6x18x38xf32>
  %r:2 = imap.generic (f, h, w)[c, kh, kw] domain: f in [0, 5], h in [0, 17], w in [0, 37], c in [0, 2], kh in [0, 2], kw in [0, 2]
    ins(%I[c, h + kh, w + kw], %W[f, c, kh, kw] : tensor<3x20x40xf32>, tensor<6x3x3x3xf32>)
    outs(%S[f, h, w], %init[f, h, w] : tensor<6x18x38xf32>, tensor<6x18x38xf32>) fold [add f32 from outs 0, minf f32] {
  ^bb0(%x: f32, %w: f32):
    %p = arith.mulf %x, %w : f32
    imap.yield %p, %x : f32, f32
  } -> tensor<6x18x38xf32>, tensor<6x18x38xf32>
  return %r#0, %r#1 : tensor<6x18x38xf32>, tensor<6x18x38xf32>
}"#;
    let value = |i: usize| (i % 11) as f32 - 5.0;
    let image = tensor(&[3, 20, 40], value);
    let weights = tensor(&[6, 3, 3, 3], |i| (i % 4) as f32);
    let sums = tensor(&[6, 18, 38], |i| i as f32);
    let mut expected = (Vec::new(), Vec::new());
    for i in 0..6 * 18 * 38 {
        let (f, h, w) = (i / (18 * 38), i / 38 % 18, i % 38);
        let (mut sum, mut least) = (i as f32, f32::INFINITY);
        for (c, kh, kw) in (0..27).map(|k| (k / 9, k / 3 % 3, k % 3)) {
            let x = value((c * 20 + h + kh) * 40 + w + kw);
            sum += x * (((f * 3 + c) * 9 + kh * 3 + kw) % 4) as f32;
            least = least.min(x);
        }
        expected.0.push(sum);
        expected.1.push(least);
    }
    for options in targets() {
        let compiled = compile(source, &options);
        let result = compiled.function("window").unwrap().run(&[&image, &weights, &sums]).unwrap();
        assert_eq!(result[0].to_values::<f32>().unwrap(), expected.0, "{options:?}");
        assert_eq!(result[1].to_values::<f32>().unwrap(), expected.1, "{options:?}");
    }
}

/// The first of the largest elements of each row or column, or -1 if an element is no number; and the
/// product of the elements and of the number that the destination holds. Regions combine.
#[test]
fn folds_by_regions() {
    let source = |element: &str, sizes: &str| {
        format!(
            r#"
func.func @argmax(%A: tensor<?x?xf32> {{tc.name = "A", tc.sizes = [{sizes}]}})
    -> (tensor<?xi32> {{tc.name = "B", tc.sizes = ["I"]}}) {{
  %dim_i = arith.constant {dim_i} : index
  %dim_j = arith.constant {dim_j} : index
  %I = tensor.dim %A, %dim_i : tensor<?x?xf32>
  %J = tensor.dim %A, %dim_j : tensor<?x?xf32>
  %init = tensor.empty(%I) : tensor<?xi32>
  %r = imap.generic (i)[j]{{I, J}} domain: i in [0, I - 1], j in [0, J - 1], I in [1, 2147483647], J in [1, 2147483647]
    runtime(%I, %J : index, index) ins(%A[{element}] : tensor<?x?xf32>) outs(%init[i] : tensor<?xi32>)
    fold [i1 identity false, f32 identity 0xFF800000, i32 identity 0] {{
  ^bb0(%a: f32):
    %j = imap.index range 0
    %place = arith.index_cast %j : index to i32
    %nan = arith.cmpf uno, %a, %a : f32
    imap.yield %nan, %a, %place : i1, f32, i32
  }} combine {{
  ^bb0(%n0: i1, %v0: f32, %i0: i32, %n1: i1, %v1: f32, %i1: i32):
    %n = arith.ori %n0, %n1 : i1
    %more = arith.cmpf ogt, %v0, %v1 : f32
    %equal = arith.cmpf oeq, %v0, %v1 : f32
    %before = arith.cmpi slt, %i0, %i1 : i32
    %tie = arith.andi %equal, %before : i1
    %first = arith.ori %more, %tie : i1
    %v = arith.select %first, %v0, %v1 : f32
    %i = arith.select %first, %i0, %i1 : i32
    imap.yield %n, %v, %i : i1, f32, i32
  }} epilogue {{
  ^bb0(%n: i1, %v: f32, %i: i32, %a: f32):
    %none = arith.constant -1 : i32
    %found = arith.select %n, %none, %i : i32
    imap.yield %found : i32
  }} -> tensor<?xi32>
  return %r : tensor<?xi32>
}}
func.func @product(%A: tensor<?x?xi32> {{tc.name = "A", tc.sizes = [{sizes}]}},
                   %B: tensor<?xi32> {{tc.name = "B", tc.sizes = ["I"]}})
    -> (tensor<?xi32> {{tc.name = "C", tc.sizes = ["I"]}}) {{
  %dim_j = arith.constant {dim_j} : index
  %c0 = arith.constant 0 : index
  %I = tensor.dim %B, %c0 : tensor<?xi32>
  %J = tensor.dim %A, %dim_j : tensor<?x?xi32>
  %r = imap.generic (i)[j]{{I, J}} domain: i in [0, I - 1], j in [0, J - 1], I in [1, 2147483647], J in [1, 2147483647]
    runtime(%I, %J : index, index) ins(%A[{element}] : tensor<?x?xi32>) outs(%B[i] : tensor<?xi32>)
    fold [i32 identity 1 from outs 0] {{
  ^bb0(%a: i32):
    imap.yield %a : i32
  }} combine {{
  ^bb0(%x: i32, %y: i32):
    %z = arith.muli %x, %y : i32
    imap.yield %z : i32
  }} -> tensor<?xi32>
  return %r : tensor<?xi32>
}}"#,
            dim_i = usize::from(element == "j, i"),
            dim_j = usize::from(element == "i, j"),
        )
    };
    // Ties and, in some rows, numbers that are none.
    let value = |i: usize, j: usize| match (i * 7 + j * 5) % 97 {
        13 => f32::NAN,
        other => (other % 11) as f32 - 20.0,
    };
    let factor = |i: usize, j: usize| ((i + 3 * j) % 8) as i32 - 9;
    let argmax = |i: usize, num_columns: usize| {
        let row: Vec<f32> = (0..num_columns).map(|j| value(i, j)).collect();
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let place = row.iter().position(|it| *it == largest).unwrap();
        if row.iter().any(|it| it.is_nan()) { -1 } else { place as i32 }
    };
    for options in targets() {
        for (element, sizes) in [("i, j", "\"I\", \"J\""), ("j, i", "\"J\", \"I\"")] {
            let compiled = compile(&source(element, sizes), &options);
            for [m, n] in [[1, 1], [3, 4], [5, 16], [17, 33], [40, 70], [8, 128], [33, 8]] {
                let point =
                    |at: usize| if element == "i, j" { (at / n, at % n) } else { (at % m, at / m) };
                let shape = if element == "i, j" { [m, n] } else { [n, m] };
                let values = tensor(&shape, |at| value(point(at).0, point(at).1));
                let result = compiled.function("argmax").unwrap().run(&[&values]).unwrap();
                let expected: Vec<i32> = (0..m).map(|i| argmax(i, n)).collect();
                assert_eq!(
                    result[0].to_values::<i32>().unwrap(),
                    expected,
                    "{options:?} {element} {m} {n}"
                );

                let values = tensor(&shape, |at| factor(point(at).0, point(at).1));
                let start = tensor(&[m], |i| i as i32 + 3);
                let result = compiled.function("product").unwrap().run(&[&values, &start]).unwrap();
                let product =
                    |i: usize| (0..n).map(|j| factor(i, j)).fold(i as i32 + 3, i32::wrapping_mul);
                let expected: Vec<i32> = (0..m).map(product).collect();
                assert_eq!(
                    result[0].to_values::<i32>().unwrap(),
                    expected,
                    "{options:?} {element} {m} {n}"
                );
            }
        }
    }
}

/// `C(c, i) = sum over k, s of A(k, e i + d s - 2) * B(c, k, s)` where the element of `A` exists, and the largest of
/// these elements of `A`. Lanes run along `i`: a constraint is a mask.
#[test]
fn padded_windows() {
    let source = |stride: usize, dilation: usize| {
        format!(
            r#"
func.func @window(%A: tensor<?x?xf32> {{tc.name = "A", tc.sizes = ["K", "I"]}},
                  %B: tensor<?x?x3xf32> {{tc.name = "B", tc.sizes = ["D", "K", "3"]}})
    -> (tensor<?x?xf32> {{tc.name = "C", tc.sizes = ["D", "I"]}},
        tensor<?x?xf32> {{tc.name = "M", tc.sizes = ["K", "I"]}}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %D = tensor.dim %B, %c0 : tensor<?x?x3xf32>
  %K = tensor.dim %A, %c0 : tensor<?x?xf32>
  %I = tensor.dim %A, %c1 : tensor<?x?xf32>
  %sums = tensor.empty(%D, %I) : tensor<?x?xf32>
  %r = imap.generic (c, i)[k, s]{{D, K, I}} domain: c in [0, D - 1], i in [0, I - 1], k in [0, K - 1], s in [0, 2], D in [1, 2147483647], K in [1, 2147483647], I in [1, 2147483647], {stride} * i + {dilation} * s in [2, 4294967296], I - {stride} * i - {dilation} * s in [-1, 4294967296]
    runtime(%D, %K, %I : index, index, index)
    ins(%A[k, {stride} * i + {dilation} * s - 2], %B[c, k, s] : tensor<?x?xf32>, tensor<?x?x3xf32>)
    outs(%sums[c, i] : tensor<?x?xf32>) fold [add f32] {{
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  }} -> tensor<?x?xf32>
  %most = tensor.empty(%K, %I) : tensor<?x?xf32>
  %m = imap.generic (k, i)[s]{{K, I}} domain: k in [0, K - 1], i in [0, I - 1], s in [0, 2], K in [1, 2147483647], I in [1, 2147483647], {stride} * i + {dilation} * s in [2, 4294967296], I - {stride} * i - {dilation} * s in [-1, 4294967296]
    runtime(%K, %I : index, index) ins(%A[k, {stride} * i + {dilation} * s - 2] : tensor<?x?xf32>)
    outs(%most[k, i] : tensor<?x?xf32>) fold [maximumf f32] {{
  ^bb0(%a: f32):
    imap.yield %a : f32
  }} -> tensor<?x?xf32>
  return %r, %m : tensor<?x?xf32>, tensor<?x?xf32>
}}"#
        )
    };
    for options in targets() {
        for (stride, dilation) in [(1, 1), (1, 7), (2, 2), (3, 1)] {
            let compiled = compile(&source(stride, dilation), &options);
            for [d, k, i] in [[1, 1, 1], [5, 3, 4], [8, 2, 33], [3, 4, 16], [12, 3, 70]] {
                let a = |k: usize, i: usize| ((5 * k + 3 * i) % 11) as f32 - 12.0;
                // A weight that is not finite counts only where it is multiplied.
                let b = |c: usize, k: usize, s: usize| match (c, s) {
                    (2, 0) => f32::INFINITY,
                    _ => ((c + 2 * k + s) % 5) as f32,
                };
                let values = [
                    tensor(&[k, i], |at| a(at / i, at % i)),
                    tensor(&[d, k, 3], |at| b(at / 3 / k, at / 3 % k, at % 3)),
                ];
                let function = compiled.function("window").unwrap();
                let result = function.run(&[&values[0], &values[1]]).unwrap();
                let places = |at: usize| {
                    let place = move |s: usize| (stride * at + dilation * s).checked_sub(2);
                    (0..3).filter_map(move |s| Some((s, place(s).filter(|it| *it < i)?)))
                };
                let sum = |c: usize, at: usize| -> f32 {
                    let terms =
                        (0..k).flat_map(|k| places(at).map(move |(s, it)| a(k, it) * b(c, k, s)));
                    terms.sum()
                };
                let most = |k: usize, at: usize| {
                    places(at).map(|(_, it)| a(k, it)).fold(f32::NEG_INFINITY, f32::max)
                };
                let sums: Vec<f32> = (0..d * i).map(|at| sum(at / i, at % i)).collect();
                let largest: Vec<f32> = (0..k * i).map(|at| most(at / i, at % i)).collect();
                assert_eq!(
                    result[0].to_values::<f32>().unwrap(),
                    sums,
                    "{options:?} {stride} {dilation} {d} {k} {i}"
                );
                assert_eq!(
                    result[1].to_values::<f32>().unwrap(),
                    largest,
                    "{options:?} {stride} {dilation} {d} {k} {i}"
                );
            }
        }
    }
}

/// `C(i, b, j) = A(j, b, i) + B(i, j)`: one input across its rows, one along them.
#[test]
fn transposed_input() {
    fn check<T>(options: &Codegen, ty: &str, add: &str, value: impl Fn(usize) -> T)
    where
        T: Element + PartialEq + std::fmt::Debug + std::ops::Add<Output = T>,
    {
        let source = format!(
            r#"
func.func @permute(%A: tensor<?x?x?x{ty}> {{tc.name = "A", tc.sizes = ["J", "D", "I"]}},
                   %B: tensor<?x?x{ty}> {{tc.name = "B", tc.sizes = ["I", "J"]}})
    -> (tensor<?x?x?x{ty}> {{tc.name = "C", tc.sizes = ["I", "D", "J"]}}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %I = tensor.dim %B, %c0 : tensor<?x?x{ty}>
  %J = tensor.dim %B, %c1 : tensor<?x?x{ty}>
  %D = tensor.dim %A, %c1 : tensor<?x?x?x{ty}>
  %init = tensor.empty(%I, %D, %J) : tensor<?x?x?x{ty}>
  %r = imap.generic (i, b, j){{I, J, D}} domain: i in [0, I - 1], b in [0, D - 1], j in [0, J - 1], I in [1, 2147483647], J in [1, 2147483647], D in [1, 2147483647]
    runtime(%I, %J, %D : index, index, index)
    ins(%A[j, b, i], %B[i, j] : tensor<?x?x?x{ty}>, tensor<?x?x{ty}>)
    outs(%init[i, b, j] : tensor<?x?x?x{ty}>) {{
  ^bb0(%x: {ty}, %y: {ty}):
    %z = {add} %x, %y : {ty}
    imap.yield %z : {ty}
  }} -> tensor<?x?x?x{ty}>
  return %r : tensor<?x?x?x{ty}>
}}"#
        );
        let compiled = compile(&source, options);
        for [i, d, j] in [[1, 1, 1], [16, 2, 16], [17, 1, 40], [5, 3, 33], [64, 1, 7]] {
            let a = tensor(&[j, d, i], &value);
            let b = tensor(&[i, j], |at| value(at + 5));
            let result = compiled.function("permute").unwrap().run(&[&a, &b]).unwrap();
            let expected: Vec<T> = (0..i * d * j)
                .map(|at| {
                    let (row, plane, column) = (at / (d * j), at / j % d, at % j);
                    value((column * d + plane) * i + row) + value(row * j + column + 5)
                })
                .collect();
            assert_eq!(result[0].to_values::<T>().unwrap(), expected, "{ty} {i} {d} {j}");
        }
    }
    for options in targets() {
        check(&options, "f32", "arith.addf", |i| i as f32);
        check(&options, "f64", "arith.addf", |i| i as f64);
        check(&options, "i8", "arith.addi", |i| (i % 50) as i8);
    }
}
