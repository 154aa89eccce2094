//! Input that means harm, or is only unlucky: it is answered by located errors or, where it
//! is legal, compiled; soon, and without a crash.
//!
//! The answer is given within a second by an optimized build. The tests only guard against
//! hanging, since they share the machine with others.

use melior::ir::Module;
use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{LazyLock, mpsc},
    thread,
    time::Duration,
};
use tc_backends::{
    Codegen, Error, Program as _, Request, cpu,
    languages::tc::Program,
    program::Sizes,
    runtime::{Tensor, npy},
};
use tc_dialects::{mlir, report, tc::import::import};

/// No answer after this long counts as none. Much more than it takes, for slow and busy machines.
const PATIENCE: Duration = Duration::from_secs(120);
/// The stack of the main thread of a process.
const STACK: usize = 8 << 20;

/// How a program was answered.
#[derive(Debug, PartialEq)]
enum Answer {
    /// By errors that say where; the first one.
    Refused(String),
    /// It was compiled, or at the given sizes refused with a reason.
    Compiled(Option<String>),
}

/// Runs something on a stack of its own, not for ever.
fn watched<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    let start = std::time::Instant::now();
    thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || sender.send(work()))
        .expect("a thread starts");
    match receiver.recv_timeout(PATIENCE) {
        Ok(result) => {
            println!("{name}: {:.2} s", start.elapsed().as_secs_f64());
            result
        }
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{name}: no answer"),
        Err(mpsc::RecvTimeoutError::Disconnected) => panic!("{name}: panicked"),
    }
}

/// Imports, infers, and compiles a program for all sizes.
fn answer_to(bytes: &[u8], sizes: &Sizes) -> Answer {
    let context = tc_dialects::new_context();
    let (_, diagnostics) = report::collect(&context);
    let refused = || {
        let diagnostics = diagnostics.borrow();
        let error = diagnostics.iter().find(|it| it.is_error()).expect("the reason is said");
        assert!(error.place.is_some(), "nowhere: {}", error.message);
        assert!(error.message.len() < 10_000, "{} bytes of message", error.message.len());
        Answer::Refused(error.message.clone())
    };
    let Some(source) = import(&context, "hostile.tc", bytes, false) else { return refused() };
    let Ok(program) = Program::new(&context, source, false) else { return refused() };
    let mut reason = None;
    for entry in program.entries().into_iter().take(10) {
        let request = Request { entry: Some(entry), sizes: sizes.clone(), ..Request::default() };
        if let Err(error) = program.entry(&request) {
            reason = Some(error.to_string());
        }
    }
    let request = Request { dynamic: true, ..Request::default() };
    let compiled = program.lower(&request).and_then(|lowered| {
        Ok(cpu::BACKEND.compile(&lowered.module, &Codegen::default())?.load()?)
    });
    match compiled {
        Ok(_) => Answer::Compiled(reason),
        Err(Error::Program(_) | Error::Compile(_)) => refused(),
        Err(error) => Answer::Refused(error.to_string()),
    }
}

fn answer(name: &str, text: impl Into<Vec<u8>>) -> Answer {
    let bytes = text.into();
    watched(name, move || answer_to(&bytes, &Sizes::new()))
}

#[track_caller]
fn refused(name: &str, text: impl Into<Vec<u8>>, expected: &str) {
    match answer(name, text) {
        Answer::Refused(message) => assert!(message.contains(expected), "{name}: {message}"),
        Answer::Compiled(_) => panic!("{name}: accepted"),
    }
}

#[track_caller]
fn compiled(name: &str, text: impl Into<Vec<u8>>) {
    let answer = answer(name, text);
    assert!(matches!(answer, Answer::Compiled(_)), "{name}: {answer:?}");
}

/// A program with one statement over a vector.
fn vector(value: &str) -> String {
    format!("def f(float(N) A, int32(N) I) -> (O) {{ O(i) = {value} }}")
}

const PROGRAM: &str = "# a comment: \u{e9}
def f(float(N, M) A, int32(M) I, uint8(4) U, float16 s) -> (O, double(N) P) {
  O(i, j) +=! A(i, I(k)) * (A(min(max(i - 1, 0), N - 1), j) < 1.5e1 ? s : 2.0) where j in 0:M
  P(i) max= O(i, j) / (U((i + j) % 4) + 1) <=> library(O(i, j), 3) where x = exp(A(i, j)), exists A(i, j)
}
def g(bool(N) A) -> (O) { O += A(i) && !A(N - 1 - i) || true }
";

#[test]
fn nesting_without_end() {
    refused("64 MB of (", "(".repeat(64 << 20), "");
    refused("more than 64 MB", "(".repeat((64 << 20) + 1), "expected at most");
    for (name, open, middle, close) in [
        ("parentheses", "(", "1", ")"),
        ("ternaries", "true ? 1.0 : ", "2.0", ""),
        ("conditions of ternaries", "(", "true", " ? true : false)"),
        ("negations", "-", "A(i)", ""),
        ("double negations", "!", "true", ""),
        ("sums", "1 + ", "A(i)", ""),
        ("sums to the right", "1 + (", "A(i)", ")"),
        ("comparisons", "1 < ", "2", ""),
        ("conjunctions", "true && ", "true", ""),
        ("indices", "A(", "i", ")"),
        ("integer indices", "I(", "i", ")"),
        ("calls", "exp(", "A(i)", ")"),
        ("casts", "int8(", "A(i)", ")"),
        ("minima", "min(1, ", "A(i)", ")"),
        ("unclosed", "min(", "", ""),
    ] {
        let nested = |depth| format!("{}{middle}{}", open.repeat(depth), close.repeat(depth));
        match answer(name, vector(&nested(100_000))) {
            Answer::Refused(message) => assert!(!message.is_empty()),
            Answer::Compiled(_) => panic!("{name}: 100000 levels are accepted"),
        }
        answer(name, vector(&nested(150)));
        answer(name, vector(&nested(399)));
    }
}

#[test]
fn large_numbers() {
    for number in ["2147483648", "9223372036854775807", "9223372036854775808", &"9".repeat(1000)] {
        refused(number, format!("def f(float({number}) A) -> (O) {{ O(i) = A(i) }}"), "");
        refused(number, vector(&format!("A(i + {number})")), "");
        refused(number, vector(&format!("A({number} * i)")), "");
        refused(number, vector(&format!("A(i) where i in 0:{number}")), "");
        refused(number, vector(&format!("A(i) + {number}")), "");
    }
    refused("a long number", vector(&"9".repeat(1 << 20)), "");
    refused("a long exponent", vector(&format!("A(i) + 1e{}", "9".repeat(1000))), "");
    compiled(
        "a tensor beyond memory",
        "def f(float(2147483647, 2147483647, 2147483647) A) -> (O) { O(i) = A(i, i, i) }",
    );
    let most = 2_147_483_647;
    let product = vec![most.to_string(); 5].join(" * ");
    for value in [
        format!("A({most} * i + {most})"),
        format!("A(i * {product})"),
        format!("A(i + {product})"),
        format!("A(({product}) / {most} - i)"),
        format!("A(i) where i in 0:{product}"),
        format!("A(i) where i in -{most} - {most}:{most} * {most}"),
        "A(i) where i in 0:N * N * N * N * N * N * N * N * N * N".to_string(),
        "A(i % (N * N * N * N * N * N * N * N * N * N))".to_string(),
        "A(i / 0)".to_string(),
        "A(i % 0)".to_string(),
        "A(i) / 0".to_string(),
        "I(i) / 0 + I(i) % 0".to_string(),
    ] {
        answer(&value, vector(&value));
    }
}

#[test]
fn large_sizes() {
    let text = "def f(float(N, M) A) -> (O) { O(i, j) = A(i, j) + A(i + 1, M * j / M) }";
    for size in [i64::MIN, -1, 0, 1, 2, 1 << 31, (1 << 31) - 1, i64::MAX - 1, i64::MAX] {
        let sizes: Sizes = [("N".to_string(), size), ("M".to_string(), (1 << 31) - 1)].into();
        let answer = watched(&format!("N = {size}"), move || answer_to(text.as_bytes(), &sizes));
        let Answer::Compiled(reason) = answer else { panic!("{answer:?}") };
        assert_eq!(reason.is_none(), (2..1 << 31).contains(&size), "{size}: {reason:?}");
    }
    // Inputs of legal sizes that no memory holds are errors as well.
    let message = watched("inputs beyond memory", || {
        let context = tc_dialects::new_context();
        let text = "def f(float(N, N, N) A) -> (O) { O(i) = A(i, i, i) }";
        let source = import(&context, "large.tc", text.as_bytes(), false).expect("it is right");
        let program = Program::new(&context, source, false).expect("its ranges are known");
        let sizes: Sizes = [("N".to_string(), (1 << 31) - 1)].into();
        let entry = program.entry(&Request { sizes, ..Request::default() });
        let inputs = entry.expect("the sizes are legal").complete(BTreeMap::new(), 0);
        inputs.err().map(|error| error.to_string())
    });
    assert!(message.is_some_and(|it| it.contains("too large")));
    // The interpreter stops at a limit.
    let error = watched("too many points", || {
        let context = tc_dialects::new_context();
        let text =
            "def f(float(4) A) -> (O) { O +=! A(0) where i in 0:2147483647, j in 0:2147483647 }";
        let source = import(&context, "large.tc", text.as_bytes(), false).expect("it is right");
        let program = Program::new(&context, source, false).expect("its ranges are known");
        let inputs = [Tensor::from_values(&[4], &[0.0f32; 4]).expect("four values")];
        let error = program.interpret(&Request::default(), &inputs).err();
        error.map(|error| error.to_string())
    });
    assert!(error.is_some_and(|it| it.starts_with("the interpreter: large.tc:1:")));
}

#[test]
fn bytes_that_are_no_text() {
    refused("not UTF-8", b"def f(float(N) A) -> (O) { O(i) = A(\xff) }".to_vec(), "UTF-8");
    refused("half of a character", b"def f(\xe2\x82".to_vec(), "UTF-8");
    refused("zeros", vec![0; 1 << 16], "");
    compiled("a byte order mark", "\u{feff}def f(float(N) A) -> (O) { O(i) = A(i) }");
    refused("one within", "def f(float(N) A) -> (O) { \u{feff}O(i) = A(i) }", "");
    refused("UTF-16", "d\0e\0f\0 \0f\0", "");
    refused("a name that is none", "def f\u{301}(float(N) A) -> (O) { O(i) = A(i) }", "");
    compiled("carriage returns", "def f(float(N) A)\r\n-> (O)\r\n{ O(i) = A(i) }\r\n");
    compiled("nothing", "");
    compiled("a comment", "# nothing");
    for seed in 0..32u64 {
        let mut state = seed;
        let bytes: Vec<u8> = (0..1 << 12).map(|_| next(&mut state) as u8).collect();
        answer("random bytes", bytes);
    }
}

/// The next number of a linear congruential generator (Knuth's MMIX).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn truncated_and_damaged_programs() {
    compiled("the program", PROGRAM);
    let bytes = PROGRAM.as_bytes();
    watched("truncated programs", || {
        for end in 0..bytes.len() {
            front(&bytes[..end]);
        }
    });
    watched("damaged programs", || {
        for seed in 0..500u64 {
            let mut state = seed;
            let mut damaged = bytes.to_vec();
            for _ in 0..1 + next(&mut state) % 3 {
                let at = next(&mut state) as usize % damaged.len();
                match next(&mut state) % 4 {
                    0 => drop(damaged.remove(at)),
                    1 => damaged.insert(at, next(&mut state) as u8),
                    2 => {
                        let from = next(&mut state) as usize % damaged.len();
                        let piece = damaged[from..damaged.len().min(from + 8)].to_vec();
                        damaged.splice(at..at, piece);
                    }
                    _ => {
                        damaged[at] =
                            b"(){}0123456789+-*/%<>=!?:.,NAOIijk \n"[next(&mut state) as usize % 36]
                    }
                }
            }
            front(&damaged);
        }
    });
}

/// Imports and infers, which is where the shape of the text matters.
fn front(bytes: &[u8]) {
    static CONTEXT: LazyLock<()> = LazyLock::new(tc_passes::register);
    LazyLock::force(&CONTEXT);
    let context = tc_dialects::new_context();
    let (_, diagnostics) = report::collect(&context);
    if let Some(source) = import(&context, "damaged.tc", bytes, false)
        && Program::new(&context, source, false).is_ok()
    {
        return;
    }
    let diagnostics = diagnostics.borrow();
    let mut errors = diagnostics.iter().filter(|it| it.is_error());
    assert!(errors.clone().next().is_some(), "{}", String::from_utf8_lossy(bytes));
    assert!(errors.all(|it| it.place.is_some()), "{diagnostics:?}");
}

#[test]
fn many_of_everything() {
    let list = |count: usize, item: &dyn Fn(usize) -> String, separator: &str| {
        (0..count).map(item).collect::<Vec<_>>().join(separator)
    };
    let def = |number| format!("def f{number}(float(N) A) -> (O) {{ O(i) = A(i) }}");
    answer("functions", list(1000, &def, "\n"));
    let statement = |number| format!("O(i) = O(i) + A(i) * {number}");
    answer(
        "statements",
        format!("def f(float(N) A) -> (O) {{ O(i) = A(i) {} }}", list(300, &statement, "\n")),
    );
    let output = |number| format!("O{number}");
    let statement = |number| format!("O{number}(i) = A(i) + {number}");
    answer(
        "outputs",
        format!(
            "def f(float(N) A) -> ({}) {{ {} }}",
            list(300, &output, ", "),
            list(300, &statement, "\n")
        ),
    );
    let input = |number| format!("float(N{number}) A{number}");
    let read = |number| format!("A{number}(i)");
    answer(
        "inputs",
        format!(
            "def f({}) -> (O) {{ O(i) = {} }}",
            list(200, &input, ", "),
            list(200, &read, " + ")
        ),
    );
    let size = |number| format!("N{number}");
    let index = |number| format!("i{number}");
    for rank in [20, 100, 1000] {
        answer(
            &format!("rank {rank}"),
            format!(
                "def f(float({}) A) -> (O) {{ O +=! A({}) }}",
                list(rank, &size, ", "),
                list(rank, &index, ", ")
            ),
        );
    }
    let read = |number| format!("A(i + {number})");
    answer("reads", vector(&list(300, &read, " + ")));
    let read = |number| format!("A((i + {number}) % N)");
    answer("wrapped reads", vector(&list(100, &read, " + ")));
    let read = |number| format!("A(I((i * {number}) % N))");
    answer("looked up reads", vector(&list(100, &read, " + ")));
    let index = |number| format!("i{number}");
    for count in [8, 30, 200] {
        let clause = |number| format!("i{number} in 0:{}", number + 2);
        answer(
            &format!("{count} variables in one index"),
            format!(
                "def f(float(N) A) -> (O) {{ O +=! A({}) where {} }}",
                list(count, &index, " + "),
                list(count, &clause, ", ")
            ),
        );
        let coefficient = |number| format!("{} * i{number}", number + 2);
        answer(
            &format!("{count} variables that nothing bounds"),
            format!("def f(float(N) A) -> (O) {{ O +=! A({}) }}", list(count, &coefficient, " + ")),
        );
    }
    refused("a long name", format!("def {}() -> (O) {{ O = 1 }}", "f".repeat(1 << 20)), "");
    refused("many errors", "def ".repeat(100_000), "");
    refused("many tokens", "a ".repeat(1 << 21), "");
    refused("many lines", "\n".repeat(1 << 22) + "x", "");
    let mut keywords = String::new();
    for number in 0..10_000 {
        let _ = writeln!(keywords, "def f{number}(float(N) A) -> (B) {{ C(i) = D(i) }}");
    }
    refused("many wrong functions", keywords, "");
}

#[test]
fn expressions_that_grow_when_written_out() {
    for (name, step) in [
        ("sums", "x{p} + x{p}"),
        ("products", "x{p} * x{p}"),
        ("maxima", "max(x{p} - 1, x{p} / 2)"),
        ("minima of sums", "min(x{p} + i, x{p} + N)"),
        ("divisions", "(x{p} + i) / 2"),
        ("remainders", "(x{p} * 3 + i) % 7"),
        ("remainders by sizes", "(x{p} + 1) % N"),
        ("reads", "I((x{p} + x{p}) % N)"),
        ("conditions", "i < x{p} ? x{p} + 1 : x{p} - 1"),
    ] {
        for depth in [10, 64, 300] {
            let lets = (1..=depth).map(|number| {
                let step = step.replace("{p}", &(number - 1).to_string());
                format!("x{number} = {step}")
            });
            let lets: Vec<_> = lets.collect();
            for value in [format!("A(x{depth} % N)"), format!("A(i) + x{depth}")] {
                let text = format!("{value} where i in 0:N, x0 = i, {}", lets.join(", "));
                answer(&format!("{depth} {name}, {value}"), vector(&text));
            }
        }
    }
    let doubled = (0..60).fold("i".to_string(), |text, _| format!("({text}) / 2 + 1"));
    answer("a chain of divisions", vector(&format!("A({doubled})")));
    let clamped =
        (0..60).fold("i".to_string(), |text, n| format!("max(min({text} + 1, N - {n}), {n})"));
    answer("a chain of clamps", vector(&format!("A({clamped}) where i in 0:N")));
    answer("a chain of clamps without a range", vector(&format!("A({clamped})")));
}

#[test]
fn maps_in_mlir_text() {
    let module = |map: &str| {
        format!(
            "func.func @f(%a: index) -> index {{ %b = imap.apply #imap.map<{map}>(%a) : index return %b : index }}"
        )
    };
    let dims: Vec<_> = (0..100_000).map(|number| format!("d{number}")).collect();
    let doubled = (0..62).fold("d0".to_string(), |text, _| format!("({text}) * 2"));
    for (name, map) in [
        ("open parentheses", format!("(d0) -> ({}", "(".repeat(1 << 20))),
        ("parentheses", format!("(d0) -> ({}d0{})", "(".repeat(100_000), ")".repeat(100_000))),
        ("signs", format!("(d0) -> ({}d0)", "-".repeat(100_000))),
        ("a large number", "(d0) -> (d0 + 99999999999999999999999)".to_string()),
        ("an overflow", "(d0) -> (9223372036854775807 * 9223372036854775807 + d0)".to_string()),
        (
            "the least number",
            "(d0) -> (d0 * -9223372036854775808 - -9223372036854775808)".to_string(),
        ),
        ("a division", "(d0) -> (d0 floordiv 0)".to_string()),
        ("many dimensions", format!("({}) -> (d0)", dims.join(", "))),
        ("many terms", format!("(d0) -> ({})", vec!["d0"; 100_000].join(" + "))),
        ("powers", format!("(d0) -> ({doubled})")),
        (
            "bounds",
            "(d0) -> (d0), domain: d0 in [9223372036854775807, -9223372036854775808]".to_string(),
        ),
        ("a closing bracket", "(d0) -> (d0)>".to_string()),
        ("nothing", String::new()),
        ("no arrow", "(d0".to_string()),
        ("no ASCII", "(\u{e9}) -> (\u{e9})".to_string()),
    ] {
        let text = module(&map);
        watched(name, move || {
            let context = tc_dialects::new_context();
            let (_, diagnostics) = report::collect(&context);
            let Some(mut module) = Module::parse(&context, &text) else {
                let diagnostics = diagnostics.borrow();
                assert!(diagnostics.iter().any(|it| it.is_error() && it.place.is_some()));
                return;
            };
            let _ = tc_passes::run_pipeline(&mut module, "canonicalize,cse,convert-imap-to-arith");
            assert!(mlir::body(mlir::op_ref(module.as_operation()), 0).is_some());
        });
    }
}

#[test]
fn damaged_tensor_files() {
    let tensor = Tensor::from_values(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).expect("six");
    let whole = npy::to_bytes(&tensor);
    assert_eq!(npy::from_bytes(&whole).expect("it was just written"), tensor);
    for end in 0..whole.len() {
        assert!(npy::from_bytes(&whole[..end]).is_err(), "{end} bytes are enough");
    }
    watched("damaged tensors", move || {
        for seed in 0..2000u64 {
            let mut state = seed;
            let mut damaged = whole.clone();
            for _ in 0..1 + next(&mut state) % 3 {
                let at = next(&mut state) as usize % 128;
                damaged[at] = next(&mut state) as u8;
            }
            let _ = npy::from_bytes(&damaged);
        }
    });
    for shape in [
        "(9223372036854775807, 9223372036854775807)",
        "(4611686018427387904, 0)",
        "(18446744073709551616,)",
        "(-1,)",
        "(1099511627776,)",
        &format!("({})", "1,".repeat(20_000)),
        &format!("{}1{}", "(".repeat(20_000), ")".repeat(20_000)),
    ] {
        let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
        header.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        let _ = watched("a header", move || npy::from_bytes(&bytes).is_ok());
    }
}
