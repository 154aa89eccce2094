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
        let text = String::from_utf8_lossy(&output.stderr);
        assert_ne!(output.status.code(), Some(0), "{command:?}\n{text}");
        let start = format!("{}:", path.display());
        let is_located = |line: &str| {
            line.strip_prefix(&start).is_some_and(|rest| {
                let mut parts = rest.splitn(3, ':');
                let mut number = || parts.next().is_some_and(|it| it.parse::<usize>().is_ok());
                number() && number() && rest.contains(" error: ")
            })
        };
        assert!(text.lines().any(is_located), "{command:?}\n{text}");
    }
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
