//! HLO text of whole training steps: reading it (parser and verifier) and writing it again, against
//! XLA's own parser, which a Python with `jaxlib` runs in the same minute, in alternation. The
//! medians count. `benches/hlo/prepare` makes the texts and that Python.

use std::{
    error::Error,
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio},
    time::Instant,
};
use tc_dialects::hlo;

const RUNS: usize = 7;
const MAX_RATIO: f64 = 3.0;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("hlo-text: error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures; whether all ratios are what they are meant to be.
fn run() -> Result<bool, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = root.join("target/hlo-bench");
    if !folder.join("models").is_dir() {
        println!("hlo-text: skipped, there are no texts; 'make bench-hlo' makes them");
        return Ok(true);
    }
    let mut paths: Vec<PathBuf> = fs::read_dir(folder.join("models"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_, std::io::Error>>()?;
    paths.retain(|path| path.extension().is_some_and(|it| it == "hlo"));
    paths.sort_by_key(|path| fs::metadata(path).map_or(0, |it| it.len()));
    let mut peer = Peer::start(&folder, &root)?;
    println!(
        "| text | instructions | MB | read, ms | µs per instruction | write, ms | XLA, ms | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut is_met = true;
    for path in paths {
        is_met &= measure(&path, &mut peer)?;
    }
    println!("\nThe ratio is that of reading to XLA's parser, expected at most {MAX_RATIO}.");
    peer.finish()?;
    Ok(is_met)
}

/// Measures one text and prints a row; whether its ratio is what it is meant to be.
fn measure(path: &Path, peer: &mut Peer) -> Result<bool, Box<dyn Error>> {
    let bytes = fs::read(path)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let (mut reads, mut writes, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    let mut num_instructions = 0;
    // The first round warms up.
    for number in 0..=RUNS {
        let copy = bytes.clone();
        let start = Instant::now();
        let (_, module, diagnostics) = hlo::read(&name, copy);
        let read = start.elapsed().as_secs_f64();
        let module = module.ok_or_else(|| {
            let first = diagnostics.first().map_or("", |it| it.message.as_str());
            format!("{}: {first}", path.display())
        })?;
        let start = Instant::now();
        let text = module.to_string();
        let write = start.elapsed().as_secs_f64();
        if number == 0 {
            let (_, again, _) = hlo::read(&name, text.into_bytes());
            let same = again.is_some_and(|again| again.to_string() == module.to_string());
            if !same {
                return Err(format!("{}: written text reads differently", path.display()).into());
            }
        }
        num_instructions = module.num_instructions();
        let xla = peer.seconds(path)?;
        if 0 < number {
            reads.push(read);
            writes.push(write);
            theirs.push(xla);
        }
    }
    let (read, write, xla) = (median(reads), median(writes), median(theirs));
    let ratio = read / xla;
    println!(
        "| {name} | {num_instructions} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {ratio:.2} |",
        bytes.len() as f64 / 1e6,
        read * 1e3,
        read * 1e6 / num_instructions as f64,
        write * 1e3,
        xla * 1e3,
    );
    Ok(ratio <= MAX_RATIO)
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// The Python that runs XLA's parser.
struct Peer {
    child: Child,
    paths: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    fn start(folder: &Path, root: &Path) -> Result<Self, Box<dyn Error>> {
        let mut child = Command::new(folder.join("venv/bin/python"))
            .arg(root.join("benches/hlo/xla_parser.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let paths = child.stdin.take().ok_or("a pipe to the parser of XLA")?;
        let answers = child.stdout.take().ok_or("a pipe from the parser of XLA")?;
        Ok(Self { child, paths, answers: BufReader::new(answers) })
    }

    /// How long XLA's parser takes for a file.
    fn seconds(&mut self, path: &Path) -> Result<f64, Box<dyn Error>> {
        writeln!(self.paths, "{}", fs::canonicalize(path)?.display())?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        line.trim().parse().map_err(|_| format!("expected seconds, found '{line}'").into())
    }

    fn finish(mut self) -> Result<(), Box<dyn Error>> {
        drop(self.paths);
        self.child.wait()?;
        Ok(())
    }
}
