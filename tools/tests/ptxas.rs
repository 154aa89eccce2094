//! NVIDIA's assembler, ptxas, on the kernels of programs in all languages.
//!
//! Those of the benchmarks are assembled for every machine, and all their values stay in registers. Of the corpus of
//! HLO, a part is assembled for one machine. With `TC_PTXAS=all` (`make ptxas`), all of it and the examples are
//! assembled for every machine.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
    sync::{
        Once,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};
use tc_backends::nvvm::{Stack, machines, stacks};
use tc_benches::suite::{self, Case};
use tc_passes::target::Machine;

/// Unless all programs of the corpus are assembled, one in so many is.
const PART: usize = 8;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Lets the ptxas that `./bootstrap` installs be found.
fn use_installed_package() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let folder = root().join("target/python/nvidia/cu13/bin");
        let others = env::var_os("PATH").unwrap_or_default();
        let folders = env::join_paths([folder].into_iter().chain(env::split_paths(&others)));
        // SAFETY: every test calls this function before it reads the environment.
        unsafe { env::set_var("PATH", folders.expect("paths without colons")) };
    });
}

/// Compiles a program for a machine, and assembles its kernels. Returns their stacks.
fn assemble(case: &Case, machine: &Machine) -> Result<Vec<Stack>, String> {
    let target = format!("--target=nvvm:{}", machine.cpu);
    let output = Command::new(env!("CARGO_BIN_EXE_tc-compile"))
        .args(&case.arguments)
        .args([&target, "--emit=ptx", "-o", "-"])
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    // A program need not have kernels.
    if output.stdout.is_empty() {
        return Ok(Vec::new());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    stacks(&text, machine).map_err(|error| error.to_string())
}

/// Assembles programs for machines, on all processors. Returns the stacks of each.
fn assemble_all(cases: &[Case], machines: &[Machine]) -> BTreeMap<String, Vec<Stack>> {
    use_installed_package();
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            let (next, sender) = (&next, sender.clone());
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(number / machines.len()) else { break };
                    let machine = &machines[number % machines.len()];
                    let name = format!("{} for {}", case.name, machine.cpu);
                    sender.send((name, assemble(case, machine))).expect("the receiver is alive");
                }
            });
        }
    });
    drop(sender);
    let (mut assembled, mut failures) = (BTreeMap::new(), Vec::new());
    for (name, result) in receiver {
        match result {
            Ok(stacks) => _ = assembled.insert(name, stacks),
            Err(error) => failures.push(format!("{name}: {error}")),
        }
    }
    failures.sort();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assembled
}

/// Programs as files.
fn of_files(files: impl IntoIterator<Item = PathBuf>) -> Vec<Case> {
    let case = |file: PathBuf| {
        let name = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
        Case { name, arguments: vec![file.display().to_string()] }
    };
    files.into_iter().map(case).collect()
}

/// The files in a folder with an ending.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect("a folder of this repository");
    let files = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> =
        files.filter(|file| file.extension().is_some_and(|it| it == ending)).collect();
    files.sort();
    files
}

/// The programs of the corpus of HLO, before and after XLA's optimization.
fn corpus() -> Vec<Case> {
    let folder = root().join("tests/conformance/hlo");
    let entries = fs::read_dir(folder).expect("the corpus");
    let mut folders: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    folders.sort();
    let texts = ["module.hlo", "optimized.hlo"].into_iter();
    let texts = texts.flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    of_files(texts.filter(|file| file.is_file()))
}

#[test]
fn kernels_of_benchmarks_stay_in_registers() {
    let folder = env::temp_dir().join(format!("tc-ptxas-{}", process::id()));
    let cases = suite::cases(&folder).expect("the programs of the benchmarks");
    let assembled = assemble_all(&cases, &machines());
    fs::remove_dir_all(&folder).expect("the folder is there");
    for (name, stacks) in &assembled {
        assert!(!stacks.is_empty(), "{name} has no kernel");
        for stack in stacks {
            assert_eq!((stack.frame, stack.spilled), (0, 0), "{name}: {stack:?}");
        }
    }
    assert_eq!(assembled.len(), 3 * cases.len());
}

/// The Axon programs of the benchmarks, with sizes that are parameters.
fn axon_of_all_sizes() -> Vec<Case> {
    let folder = env::temp_dir().join(format!("tc-ptxas-axon-{}", process::id()));
    let cases = suite::cases(&folder).expect("the programs of the benchmarks");
    fs::remove_dir_all(&folder).expect("the folder is there");
    let open = |argument: String| match argument.split_once('=') {
        Some((name, sizes)) => {
            let sizes = sizes.split('x').map(|_| "?").collect::<Vec<_>>().join("x");
            format!("{name}={sizes}")
        }
        None => argument,
    };
    let of_all_sizes = |case: Case| Case {
        name: format!("{} of all sizes", case.name),
        arguments: case.arguments.into_iter().map(open).collect(),
    };
    let is_axon = |case: &Case| case.name.starts_with("axon/");
    cases.into_iter().filter(is_axon).map(of_all_sizes).collect()
}

#[test]
fn programs_assemble() {
    let (mut cases, mut machines) = (corpus(), machines());
    if env::var("TC_PTXAS").is_ok_and(|it| it == "all") {
        for (folder, ending) in [("examples/tc", "tc"), ("examples/tml", "tml")] {
            cases.extend(of_files(files(folder, ending)));
        }
        cases.extend(axon_of_all_sizes());
    } else {
        cases = cases.into_iter().step_by(PART).collect();
        machines.retain(|machine| machine.cpu == "sm_90a");
    }
    let assembled = assemble_all(&cases, &machines);
    let kernels: usize = assembled.values().map(Vec::len).sum();
    println!("{} programs, {kernels} functions", assembled.len());
    assert_eq!(assembled.len(), machines.len() * cases.len());
    assert!(60 <= kernels, "{kernels}");
}
