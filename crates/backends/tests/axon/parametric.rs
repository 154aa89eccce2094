//! Functions whose sizes are parameters: one object against the reference interpreter at many sizes,
//! and what it checks at entry.

use super::{example, generator::random_program, random_input, random_programs, request};
use proptest::prelude::*;
use tc_backends::{
    Codegen, Executable, Program as _, Request, Session, Source,
    backend::CallError,
    cpu,
    interp::compare,
    languages::axon::Program,
    nvvm,
    program::Shape,
    runtime::{ElementType, Number, Tensor, random},
};
use tc_dialects::axon::Options;

/// A compiled function whose sizes are parameters.
struct Parametric {
    session: Session,
    text: String,
    entry: String,
    code: Executable,
    ir: String,
}

impl Parametric {
    fn new(text: &str, entry: &str, given: &[&str]) -> Result<Self, String> {
        Self::on(Session::with_backend(cpu::BACKEND, Codegen::default()), text, entry, given)
    }

    /// A function for the target of a session.
    fn on(session: Session, text: &str, entry: &str, given: &[&str]) -> Result<Self, String> {
        let shapes = given.iter().map(|it| Shape::parse(it).expect("a shape")).collect();
        let request = Request { shapes, dynamic: true, ..Request::of(entry) };
        let program = read(&session, text)?;
        let lowered = session.lower(&program, &request).map_err(|it| it.to_string())?;
        let ir = lowered.module.as_operation().to_string();
        assert!(lowered.note.as_ref().is_some_and(|it| it.contains("all sizes")), "{ir}");
        let code = session.load(&lowered).map_err(|error| format!("{error}\n{ir}"))?;
        drop((lowered, program));
        Ok(Self { session, text: text.to_string(), entry: entry.to_string(), code, ir })
    }

    /// Runs it at some sizes, and the interpreter, on random inputs.
    fn check(&self, shapes: Call) -> Result<(), String> {
        let program = read(&self.session, &self.text)?;
        let request = request(Some(&self.entry), shapes);
        let specialized = program.specialize(&request).map_err(|error| error.to_string())?;
        let parameters = specialized.parameters().iter().zip(0..);
        let inputs: Vec<_> = parameters.map(|((_, ty), seed)| random_input(ty, seed)).collect();
        let found = self.run(&inputs).map_err(|error| format!("{error}\n{}", self.ir))?;
        let outcomes = program.interpret(&request, &inputs);
        let outcomes = outcomes.map_err(|error| error.to_string())?;
        assert_eq!(outcomes.len(), found.len());
        for (outcome, found) in outcomes.iter().zip(&found) {
            let stats = compare(outcome, found);
            let stats = stats.map_err(|error| format!("{shapes:?}: {error}\n{}", self.ir))?;
            assert!(stats.num_uncertain * 2 <= stats.num_elements, "{stats:?}\n{}", self.ir);
        }
        Ok(())
    }

    /// Whether the program rejects some sizes.
    fn is_forbidden(&self, shapes: Call) -> bool {
        let program = read(&self.session, &self.text).expect("read before");
        program.specialize(&request(Some(&self.entry), shapes)).is_err()
    }

    fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, CallError> {
        self.code.run(&inputs.iter().collect::<Vec<_>>())
    }

    /// What it says about parameters of `f32` of these sizes.
    fn refused(&self, dims: &[&[usize]]) -> String {
        let arguments = self.code.signature().arguments.iter().zip(dims);
        let tensors =
            arguments.map(|(argument, dims)| Tensor::zeros(argument.element, dims).expect("small"));
        match self.run(&tensors.collect::<Vec<_>>()) {
            Ok(_) => "nothing".to_string(),
            Err(CallError::Check { message, .. }) => message,
            Err(error) => error.to_string(),
        }
    }
}

fn read<'c>(session: &'c Session, text: &str) -> Result<Program<'c>, String> {
    let program = Program::read(session.context(), "test.axon", text.into(), Options::default());
    program.map_err(|it| it.to_string())
}

/// The sizes of parameters in one call.
type Call<'a> = &'a [(&'a str, &'a [i64])];

fn check(text: &str, entry: &str, given: &[&str], calls: &[Call]) {
    let compiled = Parametric::new(text, entry, given).unwrap_or_else(|it| panic!("{text}\n{it}"));
    for call in calls {
        compiled.check(call).unwrap_or_else(|error| panic!("{text}\n{call:?}: {error}"));
    }
}

fn refusal(text: &str, entry: &str, given: &[&str]) -> String {
    let error = Parametric::new(text, entry, given).err().expect(text);
    let first = error.lines().next().unwrap_or_default();
    first.trim_start_matches("test.axon:").to_string()
}

/// A function for all sizes: the name of its example, its own, given shapes, and calls.
type Example<'a> = (&'a str, &'a str, &'a [&'a str], &'a [Call<'a>]);

const RNN_CALLS: &[Call] = &[&[("x", &[6, 2, 3])], &[("x", &[1, 1, 1])], &[("x", &[2, 5, 9])]];

const EXAMPLES: &[Example] = &[
    (
        "attention",
        "attention",
        &[],
        &[
            &[("Q", &[12, 8]), ("V", &[16, 4])],
            &[("Q", &[1, 1]), ("V", &[1, 1])],
            &[("Q", &[7, 33]), ("V", &[1, 5])],
        ],
    ),
    (
        "attention",
        "heads",
        &[],
        &[
            &[("Q", &[3, 5, 4]), ("K", &[3, 6, 4]), ("V", &[3, 6, 2])],
            &[("Q", &[1, 1, 1]), ("K", &[1, 9, 1]), ("V", &[1, 9, 17])],
            &[("Q", &[2, 9, 3]), ("K", &[2, 1, 3]), ("V", &[2, 1, 5])],
        ],
    ),
    ("softmax", "softmax", &["x=?x?"], &[&[("x", &[9, 4])], &[("x", &[1, 1])], &[("x", &[3, 19])]]),
    ("softmax", "softmax", &["x=?"], &[&[("x", &[9])], &[("x", &[1])], &[("x", &[300])]]),
    (
        "mlp",
        "mlp",
        &["x=?x?"],
        &[
            &[("x", &[5, 7]), ("w1", &[7, 6]), ("w2", &[6, 4]), ("w3", &[4, 3])],
            &[("x", &[1, 1]), ("w1", &[1, 1]), ("w2", &[1, 1]), ("w3", &[1, 1])],
            &[("x", &[2, 33]), ("w1", &[33, 5]), ("w2", &[5, 40]), ("w3", &[40, 7])],
        ],
    ),
    ("rnn", "rnn", &["x=?x?x?"], RNN_CALLS),
    ("rnn", "lstm", &["x=?x?x?"], RNN_CALLS),
    ("rnn", "bidirectionalLstm", &["x=?x?x?"], RNN_CALLS),
    ("rnn", "residualRnn", &["x=?x?x?"], RNN_CALLS),
];

#[test]
fn examples_agree_at_all_sizes() {
    for (name, entry, given, calls) in EXAMPLES {
        check(&example(name), entry, given, calls);
    }
}

#[test]
fn examples_agree_at_all_sizes_on_the_gpu_target() {
    let backend = nvvm::BACKEND.on_device("emulator").expect("a device");
    for (name, entry, given, calls) in EXAMPLES {
        let codegen = Codegen::new(nvvm::machines().remove(0));
        let session = Session::with_backend(backend, codegen);
        let function = Parametric::on(session, &example(name), entry, given);
        let function = function.unwrap_or_else(|error| panic!("{entry}: {error}"));
        assert!(3 <= calls.len());
        for call in *calls {
            function.check(call).unwrap_or_else(|error| panic!("{entry} at {call:?}: {error}"));
        }
    }
}

#[test]
fn convolutions_agree_at_all_sizes() {
    let f: &[i64] = &[16, 16, 3, 3];
    let small: &[i64] = &[1, 3, 32, 32];
    let call: Call = &[("image", small), ("f0", &[16, 3, 3, 3]), ("f1", f), ("f2", f)];
    check(&example("convnet"), "convnet", &["f0=16x3x3x3", "f1=16x16x3x3"], &[call]);
    // Everything is open: the filters of the block are of different sizes that fit.
    let (wide, narrow): (&[i64], &[i64]) = (&[4, 16, 5, 2], &[16, 4, 1, 4]);
    let other: Call = &[("image", small), ("f0", &[16, 3, 5, 1]), ("f1", wide), ("f2", narrow)];
    check(&example("convnet"), "convnet", &["f0=?x?x?x?"], &[call, other]);
    let text = "f = fn(x : f32 [n,c,h,w], k) { conv(x, k, stride=[1,2], padding=1, dilation=[2,1]), conv(x, k) };";
    check(
        text,
        "f",
        &[],
        &[
            &[("x", &[2, 3, 7, 8]), ("k", &[4, 3, 3, 2])],
            &[("x", &[1, 1, 1, 1]), ("k", &[1, 1, 1, 1])],
            &[("x", &[1, 2, 5, 3]), ("k", &[3, 2, 2, 3])],
        ],
    );
}

#[test]
fn every_function_of_the_table_runs_at_all_sizes() {
    let text = "
        moves = fn(x : f32 [n,m], y : f32 [k,m], i : i32 [p,q], j : u8 []) {
          concat(x, y), reverse(x), slice(concat(x, y), start=n, size=k), gather(x, i), gather(y, j),
          transpose(x), reshape(concat(x, y), shape=[(n + k) * m]), reshape(x, shape=[m,n])
        };
        elements = fn(x : f64 [n,m], y : f64 [m], b : bool [n,m], k : f64 []) {
          x + y, x * k - 2f, x / y, max(x, k), min(y, 0f), x == x, x < y, x >= k, select(b, x, x + y),
          -x, exp(x), log(x), sqrt(x), tanh(y), sigmoid(x), relu(y), iota(size=n) * 2f
        };
        folds = fn(x : f32 [n,m], k : f32 []) {
          sum(x), product(x), maximum(x), minimum(x), reduce(+, k, x), sum(sum(x)),
          reduce(fn(a, b) { max(a, b) * k }, 0f, x), reduce(-, 1f, x), reduce(-, k, sum(x)),
          map(fn(r) { r * k }, x), map(sum, x), map(fn(r) { map(fn(e) { e + k }, r) }, x),
          loop(k, fn(s, r) { s + sum(r), r * s }, x),
          loop((sum(x), k), fn(s, r) { a, b = s; (r - a, b * 0.5f), r + b }, x)
        };
        integers = fn(a : i8 [n], b : i8 [n], c : u16 [n]) {
          a + b, a / b, -a, a * b, max(a, b), c / (c - c), c / 3, reduce(+, 0, a), reduce(*, 1, c),
          reduce(max, 0, a), reduce(min, 9, c), a < b, relu(a), matmul(reshape(a, shape=[1,n]), reshape(b, shape=[n,1]))
        };
        halves = fn(q : bf16 [m,d], k : bf16 [n,d], h : f16 [n,d]) {
          e = matmul(q, transpose(k)) / 2f;
          map(softmax, e), tanh(e), sum(k), reduce(max, -inf, k), matmul(transpose(h), h), sum(h),
          loop(0f, fn(s, r) { s / 2f + sum(r), r * s }, k)
        };";
    let calls: [Call; 3] = [
        &[("x", &[4, 3]), ("y", &[2, 3]), ("i", &[2, 5])],
        &[("x", &[1, 1]), ("y", &[1, 1]), ("i", &[1, 1])],
        &[("x", &[3, 9]), ("y", &[7, 9]), ("i", &[3, 1])],
    ];
    check(text, "moves", &[], &calls);
    for entry in ["elements", "folds"] {
        check(text, entry, &[], &[&[("x", &[4, 3])], &[("x", &[1, 1])], &[("x", &[2, 17])]]);
    }
    check(text, "integers", &[], &[&[("a", &[40])], &[("a", &[1])]]);
    check(
        text,
        "halves",
        &[],
        &[&[("q", &[4, 3]), ("k", &[5, 3])], &[("q", &[1, 1]), ("k", &[1, 1])]],
    );
}

/// Conditions that inference leaves are checked when the function is called.
#[test]
fn conditions_are_checked_at_entry() {
    let join = "join = fn(x : f32 [m], y : f32 [n]) : f32 [8] {\n  concat(x, y)\n};";
    let join = Parametric::new(join, "join", &[]).expect("it is right");
    assert_eq!(join.refused(&[&[3], &[5]]), "nothing");
    assert_eq!(
        join.refused(&[&[3], &[4]]),
        "test.axon:2:3: result of the function needs (+ m n) = 8"
    );
    // A size that two dimensions have is compared before the code is called.
    let dot = Parametric::new("f = fn(a : f32 [m,k], b : f32 [k,n]) { matmul(a, b) };", "f", &[]);
    let dot = dot.expect("it is right");
    assert_eq!(dot.refused(&[&[2, 3], &[3, 4]]), "nothing");
    assert_eq!(
        dot.refused(&[&[2, 3], &[4, 4]]),
        "expected dimension 0 of 'b' to be 3, as 'k' is elsewhere, found 4"
    );
    let text = "
        f = fn(x : f32 [n], y : f32 [a,b,c], z : f32 [2*k]) {
          slice(x, start=4, size=2), reshape(y, shape=[n,4]), z + slice(x, size=k)
        };";
    let error = Parametric::new(text, "f", &[]).err().expect("k is not 2 * k");
    assert!(error.contains("operands of '+'"), "{error}");
    let text = "
        f = fn(x : f32 [n], y : f32 [a,b,c], z : f32 [2*k]) {
          slice(x, start=4, size=2), reshape(y, shape=[n,4]), reshape(z, shape=[k,2]), slice(x, size=k)
        };";
    let f = Parametric::new(text, "f", &[]).expect("it is right");
    assert_eq!(f.refused(&[&[6], &[2, 3, 4], &[8]]), "nothing");
    assert_eq!(
        f.refused(&[&[5], &[5, 2, 2], &[2]]),
        "test.axon:3:11: call of 'slice' needs 6 <= n"
    );
    assert_eq!(
        f.refused(&[&[6], &[2, 3, 5], &[2]]),
        "test.axon:3:38: call of 'reshape' needs (* n 4) = (* (* a b) c)"
    );
    assert_eq!(
        f.refused(&[&[6], &[2, 3, 4], &[7]]),
        "test.axon:2:46: expected dimension 0 of 'z' to be (* k 2)"
    );
    assert_eq!(
        f.refused(&[&[6], &[2, 3, 4], &[14]]),
        "test.axon:3:88: call of 'slice' needs k <= n"
    );
}

/// Sizes that no dimension is alone follow from those that are linear in them.
#[test]
fn sizes_follow_from_linear_dimensions() {
    let text = "
        less = fn(x : f32 [100-2*n]) { slice(x, size=n) };
        more = fn(x : f32 [3*n+1], y : f32 [k], z : f32 [n*k]) {
          slice(x, size=n), y, reshape(z, shape=[k,n]) + 1f
        };";
    check(text, "less", &[], &[&[("x", &[80])], &[("x", &[98])]]);
    check(text, "more", &[], &[&[("x", &[13]), ("y", &[2])], &[("x", &[4]), ("y", &[1])]]);
    let less = Parametric::new(text, "less", &[]).expect("it is right");
    let dimension = "test.axon:2:19: expected dimension 0 of 'x' to be (- 100 (* n 2))";
    assert_eq!(less.refused(&[&[81]]), dimension);
    assert_eq!(less.refused(&[&[100]]), format!("{dimension} with n > 0"));
    assert_eq!(less.refused(&[&[10]]), "test.axon:2:40: call of 'slice' needs n <= 33");
    let more = Parametric::new(text, "more", &[]).expect("it is right");
    assert_eq!(
        more.refused(&[&[14], &[2], &[8]]),
        "test.axon:3:19: expected dimension 0 of 'x' to be (+ (* n 3) 1)"
    );
    // This one is compared before the code is called.
    assert_eq!(more.refused(&[&[13], &[2], &[7]]), "expected dimension 0 of 'z' to be 8, found 7");
}

/// A function for all sizes is compiled once for each list of ranks and element types.
#[test]
fn functions_are_compiled_for_all_sizes() {
    let text = "
        pair = fn(p : (t [m], t [n]), k : t []) : t [8] {
          x, y = p;
          concat(x, y) * k
        };";
    let session = Session::new("cpu").expect("this machine");
    let program = session.open(Source::new("pair.axon", text)).expect("it is right");
    let request = Request { dynamic: true, ..Request::default() };
    let pair = |inputs: [&Tensor; 3]| session.call(&*program, &request, &inputs);
    let vector = |element, size, seed| random(element, &[size], seed, None).expect("small");
    let one = |element| {
        let mut one = Tensor::zeros(element, &[]).expect("small");
        one.set(0, Number::Signed(1));
        one
    };
    for element in [ElementType::F32, ElementType::Bf16] {
        for sizes in [[3, 5], [1, 7], [4, 4]] {
            let [x, y] = sizes.map(|size| vector(element, size, size as u64));
            let results = pair([&x, &y, &one(element)]).expect("they fit");
            assert_eq!((results[0].element(), results[0].shape()), (element, &[8][..]));
            assert_eq!(results[0].bytes(), [x.bytes(), y.bytes()].concat());
        }
    }
    assert_eq!(session.num_compiled(), 2);
    let refused = |sizes: [usize; 2]| {
        let [x, y] = sizes.map(|size| vector(ElementType::F32, size, 1));
        pair([&x, &y, &one(ElementType::F32)]).expect_err("they do not fit").to_string()
    };
    assert_eq!(
        refused([3, 4]),
        "check failed: pair.axon:4:11: result of the function needs (+ m n) = 8"
    );
    assert_eq!(
        refused([0, 8]),
        "check failed: pair.axon:2:19: expected dimension 0 of 'p.0' to be 1 to 2147483647"
    );
}

#[test]
fn what_needs_sizes_is_refused_in_place() {
    assert_eq!(
        refusal("f = fn(x) { sum(x) };", "f", &[]),
        "1:8: error: 'x' is _ [_]@..., of which the rank is not known [AX0401]"
    );
    assert_eq!(
        refusal("f = fn(x : f32 [n*n]) { x };", "f", &[]),
        "1:8: error: the sizes in dimension '(* n n)' of 'x' do not follow from the sizes of parameters [AX0401]"
    );
    assert_eq!(
        refusal("f = fn(x : f32 [n,1,h,w], k : f32 [1,1,r,r]) { conv(x, k, stride=n) };", "f", &[]),
        "1:48: error: nothing determines the sizes of the options of 'conv' [AX0401]"
    );
    assert_eq!(
        refusal("f = fn(x : f32 [n]) { sum(iota()) + x };", "f", &[]),
        "1:27: error: nothing determines the sizes of what 'iota' gives [AX0401]"
    );
    assert_eq!(
        refusal("f = fn(x : f32 [n,*]) { x };", "f", &[]),
        "1:8: error: 'x' is f32 [n,*]: ragged tensors are not executed [AX0402]"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 50, ..random_programs(60) })]

    /// A program that is compiled once calculates what the reference interpreter does at all sizes, and
    /// refuses those that the program forbids.
    #[test]
    fn random_programs_agree_at_all_sizes(choices in prop::collection::vec(any::<u32>(), 80)) {
        let text = random_program(choices, true);
        let compiled = Parametric::new(&text, "f", &[]);
        let compiled = compiled.unwrap_or_else(|error| panic!("{text}\n{error}"));
        for [a, b, c, d] in [[1, 2, 3, 4], [1, 1, 1, 1], [5, 3, 2, 1]] {
            let dims: [&[i64]; 6] = [&[], &[c], &[b, c], &[c, c], &[b, c, c], &[a, d]];
            let call: Vec<_> = ["p0", "p1", "p2", "p3", "p4", "p5"].into_iter().zip(dims).collect();
            let outcome = compiled.check(&call);
            let is_forbidden = compiled.is_forbidden(&call);
            if is_forbidden {
                let dims: Vec<Vec<_>> =
                    dims.iter().map(|dims| dims.iter().map(|it| *it as usize).collect()).collect();
                let dims: Vec<_> = dims.iter().map(Vec::as_slice).collect();
                let refusal = compiled.refused(&dims);
                // A result of a negative size is refused before the code is called.
                let is_refused = refusal.starts_with("test.axon:")
                    || refusal.ends_with("is not known from the inputs");
                prop_assert!(is_refused, "{text}\n{call:?}: {refusal}");
            } else {
                prop_assert!(outcome.is_ok(), "{text}\n{call:?}: {}", outcome.unwrap_err());
            }
        }
    }
}
