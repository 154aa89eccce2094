//! Sessions: values and errors of each language, and what is compiled once.

use tc_backends::{
    Error, Request, Session, Source,
    interp::compare,
    program::{Padding, Parameter, Shape},
    runtime::{ElementType, Tensor},
};
use tc_dialects::Language;

fn session() -> Session {
    Session::new("cpu").expect("this machine")
}

fn floats(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_values(shape, values).expect("as many values")
}

/// The first line of the error of a program that is opened and compiled.
fn rejection(name: &str, text: &str) -> String {
    let session = session();
    let compiled = session.open(Source::new(name, text)).and_then(|program| {
        session.compile(&*program, &Request::default())?;
        Ok(())
    });
    let Err(Error::Program(text)) = compiled else { panic!("{name}: {compiled:?}") };
    text.lines().next().unwrap_or_default().to_string()
}

#[test]
fn errors_have_source_lines_in_every_language() {
    let texts = [
        ("a.tc", "def f(float(N) A) -> (B) { B(i) = A(j) }", "a.tc:1:37: error: "),
        ("a.hlo", "HloModule m\nENTRY e { ROOT r = f32[3] iota() }", "a.hlo:2:"),
        ("a.axon", "f = fn(x : f32 [n]) { matmul(x, y) };", "a.axon:1:30: error: "),
        ("a.tml", "in var a : [2]\nout var b : [3]\nb = a", "a.tml:3:"),
        ("a.mlir", "func.func @f() {\n  return\n", "a.mlir:"),
        // Found when it is lowered.
        ("b.hlo", "HloModule m\nENTRY e { ROOT r = f32[3] rng-bit-generator() }", "b.hlo:2:"),
    ];
    for (name, text, expected) in texts {
        let found = rejection(name, text);
        assert!(found.starts_with(expected), "{found}");
    }
    let error = Session::new("gpu").err().expect("an unknown target").to_string();
    assert!(error.starts_with("'gpu' is not a target"), "{error}");
}

#[test]
fn complex_numbers_are_pairs() {
    let text = "HloModule m
        ENTRY e {
          x = c64[2] parameter(0)
          y = c64[2] multiply(x, x)
          z = f32[2] real(x)
          ROOT r = (c64[2], f32[2]) tuple(y, z)
        }";
    let session = session();
    let program = session.open(Source::new("m.hlo", text)).unwrap_or_else(|it| panic!("{it}"));
    let request = Request::default();
    let x = floats(&[2, 2], &[1.0, 2.0, 0.0, 3.0]);
    let results = session.call(&*program, &request, &[&x]).expect("it runs");
    assert_eq!(results, [floats(&[2, 2], &[-3.0, 4.0, -9.0, 0.0]), floats(&[2], &[1.0, 0.0])]);
    // The interpreter has the parts.
    let outcomes = session.interpret(&*program, &request, &[x]).expect("it is interpreted");
    assert_eq!(outcomes.len(), 3);
    compare(&outcomes[1], &floats(&[2], &[4.0, 0.0])).expect("the imaginary part");
    let executable = session.compile(&*program, &request).expect("it is compiled");
    let refused = |inputs: &[&Tensor]| executable.run(inputs).unwrap_err().to_string();
    let halves = floats(&[2], &[1.0, 2.0]);
    assert_eq!(refused(&[]), "expected 1 inputs, found 0");
    assert_eq!(refused(&[&halves]), "expected 'x' to have 2 dimensions, found shape [2]");
}

#[test]
fn values_have_no_padding() {
    let text = "in var a : [3 5]\ninout var b : [3 5]\nout var c : [3 5]\nb = a + b\nc = b * b";
    let session = session();
    let program = session.open(Source::new("p.tml", text)).unwrap_or_else(|it| panic!("{it}"));
    let entry = program.entry(&Request::default()).expect("an entry");
    let inputs = entry.complete(Default::default(), 1).expect("small");
    let inputs: Vec<_> = inputs.iter().collect();
    let run = |padding| {
        let request = Request { padding, ..Request::default() };
        session.compile(&*program, &request).expect("it is compiled").run(&inputs)
    };
    let plain = run(None).expect("it runs");
    assert_eq!(run(Some(Padding::Length(4))).expect("it runs"), plain);
    let shapes: Vec<_> = entry.outputs.iter().map(Parameter::dims).collect();
    assert_eq!(plain.iter().map(|it| it.shape().to_vec()).collect::<Vec<_>>(), shapes);
    let request = Request { padding: Some(Padding::Length(4)), ..Request::default() };
    let padded = session.compile(&*program, &request).expect("it is compiled");
    let error = padded.run(&inputs[1..]).unwrap_err().to_string();
    assert_eq!(error, "expected 2 inputs, found 1");
    let wide = Tensor::zeros(ElementType::F64, &[4, 8]).expect("small");
    let error = padded.run(&[&wide, &wide]).unwrap_err().to_string();
    assert_eq!(error, "expected dimension 0 of 'a' to be 3, found 4");
}

/// No formula of the signature has the extents of the result.
#[test]
fn extents_of_results_are_computed() {
    let text = "func.func @f(%a: tensor<?xf32>, %n: index) -> tensor<?xf32> {
        %r = tensor.extract_slice %a[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
        %s = arith.addf %r, %r : tensor<?xf32>
        return %s : tensor<?xf32>
      }";
    let session = session();
    let program = session.open(Source::new("f.mlir", text)).unwrap_or_else(|it| panic!("{it}"));
    assert_eq!(program.inputs(None).expect("one entry"), ["arg0", "arg1"]);
    let a = floats(&[4], &[1.0, 2.0, 3.0, 4.0]);
    let call = |n: i64| {
        let n = Tensor::from_values(&[], &[n]).expect("one value");
        session.call(&*program, &Request::default(), &[&a, &n]).expect("it runs").remove(0)
    };
    assert_eq!(call(3), floats(&[3], &[2.0, 4.0, 6.0]));
    assert_eq!(call(1), floats(&[1], &[2.0]));
}

#[test]
fn equal_requests_are_compiled_once() {
    let session = session();
    let source = Source { language: Language::Tc, ..Source::new("sums", SUMS) };
    let program = session.open(source).unwrap_or_else(|it| panic!("{it}"));
    assert_eq!(program.entries(), ["f", "g"]);
    assert_eq!(program.sizes(Some("f")).expect("an entry"), ["N"]);
    let a = |n: usize| floats(&[n], &vec![1.0; n]);
    let request = Request::of("f");
    for n in [3, 5, 3] {
        let results = session.call(&*program, &request, &[&a(n)]).expect("it runs");
        assert_eq!(results, [floats(&[], &[n as f32])]);
    }
    assert_eq!(session.num_compiled(), 2);
    let dynamic = Request { dynamic: true, ..request };
    for n in [3, 5] {
        session.call(&*program, &dynamic, &[&a(n)]).expect("it runs");
    }
    assert_eq!(session.num_compiled(), 3);
    let error = session.call(&*program, &Request::default(), &[&a(3)]).unwrap_err().to_string();
    assert_eq!(error, "the file has several functions; try '--entry' with one of: f, g");
    // An error that names an argument of a command line.
    let shape = Shape { source: Some("--shape A=3".into()), ..Shape::of("A", &a(3)) };
    let request =
        Request { shapes: vec![shape], sizes: [("N".into(), 4)].into(), ..Request::of("f") };
    let error = session.compile(&*program, &request).err().expect("two sizes").to_string();
    assert_eq!(error, "dimension 0 of input 'A' is 3, but size 'N' says 4");
}

const SUMS: &str = "
    def f(float(N) A) -> (B) { B +=! A(i) }
    def g(float(N) A) -> (B) { B(i) = A(i) }";
