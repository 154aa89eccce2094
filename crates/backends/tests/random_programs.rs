//! Random TC programs give the same results compiled and interpreted.
//!
//! `cargo test -p tc-backends --test random_programs` checks 200; the environment variable
//! `TC_RANDOM_PROGRAMS` asks for another number, `TC_RANDOM_SEED` for another first seed.
//! A program that fails is printed with its seed, and made smaller. One that ends the process
//! is left in a file `random-<worker>.tc` of the `tmp` folder of the build.

mod support;

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};
use support::{
    check::{Stats, Verdict, check},
    generator::generate,
    shrink::shrink,
};

/// Workers check one program at a time; more than this gain nothing with the machines at hand.
const MAX_WORKERS: usize = 8;

/// Failures after which the rest is not tried.
const MAX_FAILURES: usize = 10;

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[derive(Default)]
struct Report {
    totals: Stats,
    passed: usize,
    /// How often the front end and inference said no, by the code of the message.
    rejected: BTreeMap<String, usize>,
    refused: BTreeMap<String, usize>,
    failures: Vec<String>,
}

/// The code or the words in a message that are the same for all programs.
fn class(message: &str) -> String {
    if let Some(start) = message.rfind('[').filter(|_| message.ends_with(']')) {
        return message[start..].to_string();
    }
    let words = message.split(|it: char| it.is_ascii_digit() || it == '\'').step_by(2);
    words.collect::<Vec<_>>().join("..").chars().take(60).collect()
}

#[test]
fn compiled_programs_agree_with_the_interpreter() {
    let count = from_environment("TC_RANDOM_PROGRAMS", 300);
    let first = from_environment("TC_RANDOM_SEED", 0);
    let verbose = std::env::var_os("TC_RANDOM_VERBOSE").is_some();
    // Panics are reported with the program.
    std::panic::set_hook(Box::new(|_| {}));
    let next = AtomicU64::new(first);
    let report = Mutex::new(Report::default());
    let workers = thread::available_parallelism().map_or(1, |it| it.get()).min(MAX_WORKERS);
    thread::scope(|scope| {
        for worker in 0..workers {
            let (next, report) = (&next, &report);
            scope.spawn(move || {
                let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
                let running = folder.join(format!("random-{worker}.tc"));
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let done = report.lock().expect("no worker panics").failures.len();
                    if first + count <= seed || MAX_FAILURES <= done {
                        break;
                    }
                    check_seed(seed, report, verbose, &running);
                }
                // Without it, the next run still says which program it is at.
                let _ = std::fs::remove_file(running);
            });
        }
    });
    let _ = std::panic::take_hook();
    let report = report.into_inner().expect("no worker panics");
    println!(
        "{} programs passed with {} runs of the interpreter, {} comparisons of {} elements ({} uncertain)",
        report.passed,
        report.totals.runs,
        report.totals.comparisons,
        report.totals.elements,
        report.totals.uncertain
    );
    println!("rejected: {:?}\nrefused at some sizes: {:?}", report.rejected, report.refused);
    assert!(report.failures.is_empty(), "{}", report.failures.join("\n\n"));
    let rejected: usize = report.rejected.values().sum();
    assert!(
        rejected * 4 < count as usize,
        "{rejected} of {count} programs are rejected: the generator is useless"
    );
    assert!(count as usize <= report.totals.runs, "too few programs run: {:?}", report.refused);
    assert!(
        report.totals.uncertain * 5 <= report.totals.elements,
        "{} of {} elements are uncertain",
        report.totals.uncertain,
        report.totals.elements
    );
}

fn check_seed(seed: u64, report: &Mutex<Report>, verbose: bool, running: &Path) {
    let program = generate(seed);
    let text = format!("# seed {seed}, {:?}\n{}", program.sizes, program.text);
    std::fs::write(running, text).expect("the folder of the build can be written");
    if verbose {
        eprintln!("seed {seed}\n{}", program.text);
    }
    let verdict = check(&program.text, &program.sizes, seed);
    if verbose {
        eprintln!("seed {seed}: {verdict:?}");
    }
    let failure = match verdict {
        Verdict::Passed(stats) => {
            let report = &mut *report.lock().expect("no worker panics");
            report.passed += 1;
            report.totals.runs += stats.runs;
            report.totals.comparisons += stats.comparisons;
            report.totals.elements += stats.elements;
            report.totals.uncertain += stats.uncertain;
            for reason in stats.refused {
                *report.refused.entry(class(&reason)).or_default() += 1;
            }
            return;
        }
        Verdict::Rejected(reason) => {
            let report = &mut *report.lock().expect("no worker panics");
            *report.rejected.entry(class(&reason)).or_default() += 1;
            return;
        }
        Verdict::Failed(failure) => failure,
    };
    let fails = |text: &str| match check(text, &program.sizes, seed) {
        Verdict::Failed(other) => other.kind == failure.kind,
        _ => false,
    };
    let smaller = shrink(&program.text, 2000, fails);
    let message = match check(&smaller, &program.sizes, seed) {
        Verdict::Failed(smaller) => smaller.message,
        other => format!("{other:?}"),
    };
    report.lock().expect("no worker panics").failures.push(format!(
        "seed {seed}: {}: {}\n{}smaller: {message}\n{smaller}",
        failure.kind, failure.message, program.text
    ));
}
