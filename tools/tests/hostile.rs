//! Hostile input to the tools: an exit code and located errors, soon, and never a signal.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A tool that runs for longer hangs. Much more than it takes, for slow and busy machines.
const PATIENCE: Duration = Duration::from_secs(120);
/// More is not read by anyone.
const MAX_ANSWER: usize = 1 << 16;

fn file(name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile");
    fs::create_dir_all(&folder).expect("the folder of the build can be written");
    let path = folder.join(name);
    fs::write(&path, bytes).expect("the folder of the build can be written");
    path
}

/// Runs a tool to its end, which must come.
fn run(command: &mut Command) -> Output {
    let shown = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the tool starts");
    // The pipes are drained meanwhile, or the tool would wait for us.
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    let read = |pipe: &mut dyn std::io::Read| {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe can be read");
        bytes
    };
    let stdout = thread::spawn(move || read(stdout.as_mut().expect("piped")));
    let stderr = thread::spawn(move || read(stderr.as_mut().expect("piped")));
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("the tool is a child") {
            break status;
        }
        if PATIENCE < start.elapsed() {
            let _ = child.kill();
            panic!("no answer: {shown}");
        }
        thread::sleep(Duration::from_millis(5));
    };
    println!("{:.2} s: {shown}", start.elapsed().as_secs_f64());
    let output = Output {
        status,
        stdout: stdout.join().expect("it only reads"),
        stderr: stderr.join().expect("it only reads"),
    };
    let text = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    assert!(matches!(code, Some(0..=2)), "{:?}: {shown}\n{text}", output.status);
    assert!(!text.contains("panicked"), "{shown}\n{text}");
    assert!(output.stderr.len() < MAX_ANSWER, "{} bytes of errors: {shown}", output.stderr.len());
    output
}

/// All tools refuse a program and say where.
fn refused(name: &str, bytes: impl AsRef<[u8]>) {
    let path = file(name, bytes);
    let mut opt = Command::new(env!("CARGO_BIN_EXE_tc-opt"));
    let mut tc_run = Command::new(env!("CARGO_BIN_EXE_tc-run"));
    let mut compile = Command::new(env!("CARGO_BIN_EXE_tc-compile"));
    for command in
        [opt.arg("--infer-ranges"), tc_run.args(["--size", "N=4"]), compile.args(["-o", "-"])]
    {
        let output = run(command.arg(&path));
        assert_refused(&path, &output);
    }
}

/// There is an error with a place in the file.
fn assert_refused(path: &Path, output: &Output) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(0), "{path:?}\n{text}");
    let start = format!("{}:", path.display());
    let is_located = |line: &str| {
        line.strip_prefix(&start).is_some_and(|rest| {
            let mut parts = rest.splitn(3, ':');
            let mut number = || parts.next().is_some_and(|it| it.parse::<usize>().is_ok());
            number() && number() && rest.contains(" error: ")
        })
    };
    assert!(text.lines().any(is_located), "{path:?}\n{text}");
}

#[test]
fn texts() {
    refused("parentheses.tc", "(".repeat(64 << 20));
    refused("too-large.tc", "(".repeat((64 << 20) + 1));
    let head = "def f(float(N) A) -> (O) { O(i) = ";
    refused("nested.tc", format!("{head}{}A(i){} }}", "(".repeat(100_000), ")".repeat(100_000)));
    refused("ternaries.tc", format!("{head}{}A(i) }}", "A(i) > 0 ? A(i) : ".repeat(100_000)));
    refused("truncated.tc", head);
    refused("not-utf8.tc", b"def f(float(N) A) -> (O) { O(i) = A(i) } # \xff");
    refused("zeros.tc", [0; 4096]);
    refused("size.tc", "def f(float(9223372036854775807) A) -> (O) { O(i) = A(i) }");
    refused("rank.tc", format!("def f(float({}N) A) -> (O) {{ O(i) = A(i) }}", "N, ".repeat(1000)));
}

#[test]
fn sizes() {
    let path = file("sizes.tc", "def f(float(N, N) A) -> (O) { O(i) +=! A(i, j) }");
    for size in [
        "N=0",
        "N=-1",
        "N=2147483648",
        "N=9223372036854775807",
        "N=9223372036854775808",
        "N=99999999999999999999999999",
        "N=",
        "N",
        "=",
        "=1",
        "",
        "M=1",
        "N=1,N=2",
        "N=0x10",
        "N=1e3",
        "N=2147483647",
    ] {
        for arguments in [&["--check"][..], &["--dynamic"], &["--bench", "--json"]] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_tc-run"));
            let output = run(command.arg(&path).args(["--size", size]).args(arguments));
            let text = String::from_utf8_lossy(&output.stderr);
            assert_ne!(output.status.code(), Some(0), "{command:?}");
            assert!(text.contains("error: "), "{command:?}\n{text}");
        }
    }
    // Complex numbers of any parts become two tensors.
    for part in ["f32", "i32"] {
        let ty = format!("tensor<4xcomplex<{part}>>");
        let text = format!("func.func @f(%a: {ty}) -> {ty} {{ return %a : {ty} }}");
        let path = file(&format!("function-complex-{part}.mlir"), &text);
        let mut command = Command::new(env!("CARGO_BIN_EXE_tc-run"));
        let output = run(command.arg(&path).arg("--check"));
        assert_eq!(output.status.code(), Some(0), "{command:?}");
    }
}

#[test]
fn files_that_are_none() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for path in [&folder.join("nothing.tc"), folder, Path::new("/dev/null/x.tc")] {
        for tool in [
            env!("CARGO_BIN_EXE_tc-opt"),
            env!("CARGO_BIN_EXE_tc-run"),
            env!("CARGO_BIN_EXE_tc-compile"),
            env!("CARGO_BIN_EXE_tc-conformance"),
        ] {
            let mut command = Command::new(tool);
            let output = run(command.arg(path));
            assert_ne!(output.status.code(), Some(0), "{command:?}");
            let silent = output.stderr.is_empty() && output.stdout.is_empty();
            assert!(!silent, "{command:?} says nothing");
        }
    }
}

/// Functions on tensors that cannot be run, and attributes of another kind than expected.
#[test]
fn functions() {
    for (name, text) in [
        ("unranked", "func.func @f(%a: tensor<*xf32>) -> tensor<*xf32> { return %a : tensor<*xf32> }"),
        (
            "vectors",
            "func.func @f(%a: tensor<4xvector<4xf32>>, %b: vector<4xf32>) -> tensor<4xvector<4xf32>> {
               return %a : tensor<4xvector<4xf32>>
             }",
        ),
        (
            "blocks",
            "func.func @f(%a: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
               cf.cond_br %c, ^bb1, ^bb2
             ^bb1:
               return %a : tensor<4xf32>
             ^bb2:
               %e = tensor.empty() : tensor<4xf32>
               return %e : tensor<4xf32>
             }",
        ),
        (
            "recursive",
            "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
               %b = func.call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>
               return %b : tensor<4xf32>
             }",
        ),
        (
            "huge",
            "func.func @f(%a: tensor<4611686018427387904x4xf32>) -> tensor<4xf32> {
               %e = tensor.empty() : tensor<4xf32>
               return %e : tensor<4xf32>
             }",
        ),
        (
            "attributes",
            "func.func @f(%a: tensor<?xf32> {tc.name = 7 : i32, tc.sizes = 3 : i32},
                          %b: tensor<?xf32> {tc.sizes = [\"N\", \"M\", \"K\"], tc.inout})
                 -> (tensor<?xf32> {tc.name = \"\", tc.extents = \"no\"})
                 attributes {tc.preconditions = [1 : i32, {condition = 3 : i32}], tc.checks = 3 : i32} {
               return %a : tensor<?xf32>
             }",
        ),
    ] {
        let path = file(&format!("function-{name}.mlir"), text);
        for arguments in [&["--check"][..], &["--bench", "--json"], &["--size", "N=4"]] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_tc-run"));
            let output = run(command.arg(&path).args(arguments));
            let text = String::from_utf8_lossy(&output.stderr);
            assert_ne!(output.status.code(), Some(0), "{command:?}");
            assert!(text.contains("error: "), "{command:?}\n{text}");
        }
    }
}

const PRINT: [&str; 2] = ["--print-indexing-maps", "--graph"];
const PRINT_AND_LOWER: [&str; 3] = [PRINT[0], PRINT[1], "--convert-hlo-to-imap"];

/// Reads and verifies an HLO program and runs passes. One that is refused says where.
fn hlo_through(passes: &[&str], name: &str, bytes: impl AsRef<[u8]>) {
    let path = file(name, bytes);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tc-opt"));
    let output = run(command.args(passes).args(["-o", "/dev/null"]).arg(&path));
    if output.status.code() != Some(0) {
        assert_refused(&path, &output);
    }
}

fn hlo(name: &str, bytes: impl AsRef<[u8]>) {
    hlo_through(&PRINT_AND_LOWER, name, bytes);
}

/// An entry computation of these lines.
fn entry(lines: &str) -> String {
    format!("HloModule m\nENTRY e {{\n{lines}}}\n")
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(|number| line(number) + "\n").collect()
}

fn names(count: usize, prefix: &str) -> String {
    (0..count).map(|number| format!("{prefix}{number}")).collect::<Vec<_>>().join(", ")
}

fn tuple_of(count: usize) -> String {
    format!("({})", vec!["f32[2]"; count].join(", "))
}

fn parameters(count: usize) -> String {
    lines(count, |number| format!("p{number} = f32[2] parameter({number})"))
}

#[test]
fn hlo_nesting() {
    let deep = 100_000;
    let (open, close) = ("{".repeat(deep), "}".repeat(deep));
    hlo("parentheses.hlo", "(".repeat(64 << 20));
    hlo("too-large.hlo", "(".repeat((64 << 20) + 1));
    hlo("constants.hlo", entry(&format!("ROOT r = f32[1] constant({open}1{close})\n")));
    let tuple = format!("{}f32[]{}", "(".repeat(deep), ")".repeat(deep));
    hlo("shapes.hlo", entry(&format!("ROOT r = {tuple} parameter(0)\n")));
    let config = format!("ROOT r = f32[] parameter(0), backend_config={open}{close}\n");
    hlo("config.hlo", entry(&config));
}

#[test]
fn hlo_calls() {
    let chain = |passes: &[&str], name, count: usize, body: &dyn Fn(usize) -> String| {
        let first = "f0 {\np = f32[2] parameter(0)\nROOT r = f32[2] negate(p)\n}\n";
        let others = lines(count, |number| {
            format!("f{} {{\np = f32[2] parameter(0)\n{}\n}}", number + 1, body(number))
        });
        let last = format!("p = f32[2] parameter(0)\nROOT r = f32[2] call(p), to_apply=f{count}");
        let text = format!("HloModule m\n{first}{others}ENTRY e {{\n{last}\n}}\n");
        hlo_through(passes, name, text);
    };
    chain(&PRINT_AND_LOWER, "chain.hlo", 10_000, &|callee| {
        format!("ROOT r = f32[2] call(p), to_apply=f{callee}")
    });
    // Built in place, there would be 2^60: conversion refuses it, after as many as it allows.
    chain(&PRINT, "doubled.hlo", 60, &|callee| {
        format!(
            "a = f32[2] call(p), to_apply=f{callee}\nROOT r = f32[2] call(a), to_apply=f{callee}"
        )
    });
    let call = |name, callee| {
        format!(
            "{name} {{\np = f32[] parameter(0)\nROOT r = f32[] call(p), to_apply={callee}\n}}\n"
        )
    };
    let entry = call("ENTRY e", "a");
    hlo("cycle.hlo", format!("HloModule m\n{}{}{entry}", call("a", "b"), call("b", "a")));
    hlo("itself.hlo", format!("HloModule m\n{}{entry}", call("a", "a")));
}

#[test]
fn hlo_counts() {
    let many = 100_000;
    hlo("parameters.hlo", entry(&format!("{}ROOT r = f32[2] negate(p9)\n", parameters(many))));
    let n = 3_000;
    let (tuple, params) = (tuple_of(n), names(n, "p"));
    let all = format!("ROOT r = {tuple} tuple({params})\n");
    hlo("tuple.hlo", entry(&(parameters(n) + &all)));
    let elements = lines(n, |it| format!("p{it} = f32[2] get-tuple-element(t), index={it}"));
    hlo("elements.hlo", entry(&format!("t = {tuple} parameter(0)\n{elements}{all}")));
    let size = 2 * n;
    let concatenate = format!("ROOT r = f32[{size}] concatenate({params}), dimensions={{0}}\n");
    hlo("concatenate.hlo", entry(&(parameters(n) + &concatenate)));
    // As many results as operands.
    let inside = lines(n, |it| format!("n{it} = f32[2] negate(p{it})"));
    let callee = format!("ROOT r = {tuple} tuple({})\n", names(n, "n"));
    let fusion = format!("ROOT r = {tuple} fusion({params}), kind=kLoop, calls=f\n");
    let text =
        format!("f {{\n{}{inside}{callee}}}\n", parameters(n)) + &entry(&(parameters(n) + &fusion));
    hlo("fusion.hlo", text);
    let state = format!("t = {tuple} parameter(0)\n");
    let text = format!(
        "c {{\n{state}ROOT r = pred[] constant(true)\n}}\nb {{\n{state}ROOT r = {tuple} copy(t)\n}}\n"
    ) + &entry(&format!("{state}ROOT r = {tuple} while(t), condition=c, body=b\n"));
    hlo("state.hlo", text);
    // Every result of a reduction needs all operands.
    let n = 500;
    let scalars = format!("({})", vec!["f32[]"; n].join(", "));
    let text = format!(
        "f {{\n{}{}ROOT r = {scalars} tuple({})\n}}\n",
        lines(2 * n, |it| format!("p{it} = f32[] parameter({it})")),
        lines(n, |it| format!("n{it} = f32[] add(p{it}, p{})", n + it)),
        names(n, "n")
    ) + &entry(&format!(
        "{}z = f32[] constant(0)\nROOT r = {scalars} reduce({}, {}), dimensions={{0}}, to_apply=f\n",
        parameters(n),
        names(n, "p"),
        vec!["z"; n].join(", ")
    ));
    hlo("reduce.hlo", text);
    let ones = vec!["1"; n].join(",");
    let order: Vec<_> = (0..n).rev().map(|dim| dim.to_string()).collect();
    let order = order.join(",");
    hlo(
        "rank.hlo",
        entry(&format!(
            "p = f32[{ones}] parameter(0)\nROOT r = f32[{ones}] transpose(p), dimensions={{{order}}}\n"
        )),
    );
}

#[test]
fn hlo_sizes() {
    let most = i64::MAX;
    let beyond = format!("{}0", u64::MAX);
    for (number, text) in [
        format!("ROOT r = pred[{most}] parameter(0)\n"),
        format!("p = pred[{most}] parameter(0)\nROOT r = pred[{most}] not(p)\n"),
        format!("ROOT r = f32[{most}] parameter(0)\n"),
        format!("ROOT r = f32[{most},{most}] parameter(0)\n"),
        format!("ROOT r = f32[{beyond}] parameter(0)\n"),
        format!("ROOT r = f32[{most}] constant(0)\n"),
        "ROOT r = f32[1000000,1000000] constant(0)\n".to_string(),
        "ROOT r = f32[1000000000000] constant({1, 2, 3})\n".to_string(),
        "ROOT r = f32[1000000000000] constant({...})\n".to_string(),
        format!("ROOT r = f32[2] parameter({most})\n"),
        format!("p = f32[2] parameter(0)\nROOT r = f32[2] get-tuple-element(p), index={most}\n"),
        format!(
            "p = pred[{most}] parameter(0)\nROOT r = pred[1] slice(p), slice={{[{}:{most}:{most}]}}\n",
            most - 1
        ),
        format!(
            "p = pred[3] parameter(0)\nz = pred[] constant(0)\n\
             ROOT r = pred[{}] pad(p, z), padding=0_0_{}\n",
            most - 2,
            most / 2 - 2
        ),
        format!(
            "p = f32[2] parameter(0)\nROOT r = f32[2] broadcast(p), dimensions={{{most}}}\n"
        ),
        format!("ROOT r = s64[{most}] iota(), iota_dimension=0\n"),
        format!(
            "p = f32[300] parameter(0)\nq = f32[2,2] parameter(1)\n\
             ROOT r = f32[300] all-gather(p), dimensions={{0}}, replica_groups=[{most},{most}]<=[{most}]\n"
        ),
    ]
    .iter()
    .enumerate()
    {
        hlo(&format!("size-{number}.hlo"), entry(text));
    }
}

/// Texts of a real program with its end cut off, and with some bytes changed.
#[test]
fn hlo_damage() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/conformance/hlo");
    let text = fs::read(folder.join("lenet_grad/optimized.hlo")).expect("it is there");
    let samples = 24;
    for sample in 0..samples {
        let length = text.len() * sample / samples;
        hlo(&format!("cut-{sample}.hlo"), &text[..length]);
    }
    let mut state = 1_u64;
    let mut random = move |below: usize| {
        // Knuth's constants for a linear congruential generator.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for sample in 0..samples {
        let mut changed = text.clone();
        for _ in 0..1 + sample % 4 {
            let place = random(changed.len());
            changed[place] = match random(3) {
                0 => random(256) as u8,
                1 => text[random(text.len())],
                _ => b"{}()[],=\"-0123456789"[random(19)],
            };
        }
        hlo(&format!("changed-{sample}.hlo"), changed);
    }
}

/// The malformed programs of the corpus end every tool that reads HLO, in order.
#[test]
fn hlo_corpus() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/conformance/hlo/hostile");
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the folder can be read").path();
        if path.extension().is_none_or(|ending| ending != "hlo") {
            continue;
        }
        let opt = run(Command::new(env!("CARGO_BIN_EXE_tc-opt")).arg(&path));
        let tc_run = run(Command::new(env!("CARGO_BIN_EXE_tc-run")).arg(&path));
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // XLA reads these as well: the last instruction is the root, the last computation the entry.
        let is_read = name.starts_with("25-") || name.starts_with("27-");
        // A constant without its elements can be analyzed, but not compiled.
        let is_elided = name.starts_with("23-");
        for (output, is_accepted) in [(opt, is_read || is_elided), (tc_run, is_read)] {
            match is_accepted {
                true => assert_eq!(output.status.code(), Some(0), "{name}"),
                false => assert_refused(&path, &output),
            }
        }
    }
}
