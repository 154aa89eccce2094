//! The cache of objects: a program that was compiled before is loaded, and computes the same values.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};
use tc_backends::{
    Codegen, Error, Executable, Machine, Request, Session, Source, backend, cpu, runtime::Tensor,
};

const ROWS: usize = 512;

/// The extents of a chain of products, each of which is worth two threads.
const SIZES: [usize; 7] = [128, 160, 96, 130, 110, 150, 100];

/// A program that LLVM compiles in parts.
fn program() -> String {
    let mut text =
        format!("HloModule m\nENTRY e {{\n  x0 = f32[{ROWS},{}] parameter(0)\n", SIZES[0]);
    for (number, pair) in SIZES.windows(2).enumerate() {
        let (rows, columns, next) = (pair[0], pair[1], number + 1);
        let root = if next + 1 == SIZES.len() { "ROOT " } else { "" };
        let _ = write!(
            text,
            "  w{number} = f32[{rows},{columns}] parameter({next})\n  {root}x{next} = f32[{ROWS},{columns}] \
             dot(x{number}, w{number}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
        );
    }
    text + "}\n"
}

fn inputs() -> Vec<Tensor> {
    let matrix = |rows: usize, columns: usize| {
        let values: Vec<f32> = (0..rows * columns).map(|it| (it % 7) as f32 * 0.1 - 0.3).collect();
        Tensor::from_values(&[rows, columns], &values).expect("as many values")
    };
    let factors = SIZES.windows(2).map(|pair| matrix(pair[0], pair[1]));
    [matrix(ROWS, SIZES[0])].into_iter().chain(factors).collect()
}

/// A folder that does not exist.
fn new_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cache-{name}"));
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn with(folder: &Path) -> Codegen {
    Codegen { cache: Some(folder.to_path_buf()), ..Codegen::default() }
}

/// Compiles the program in a session of its own.
fn load(codegen: Codegen) -> Result<Executable, Error> {
    let session = Session::with_backend(cpu::BACKEND, codegen);
    let program = session.open(Source::new("chain.hlo", program()))?;
    session.load(&session.lower(&*program, &Request::default())?)
}

/// The number of objects that were in the cache, and the result.
fn run(codegen: Codegen) -> (usize, Tensor) {
    let executable = load(codegen).unwrap_or_else(|error| panic!("{error}"));
    let inputs = inputs();
    let results = executable.run(&inputs.iter().collect::<Vec<_>>());
    let [result] = results.expect("the call succeeds").try_into().expect("one result");
    (executable.cache_hits(), result)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).expect("the folder is there").flatten().map(|it| it.path()).collect()
}

#[test]
fn a_program_is_compiled_once() {
    let folder = new_folder("once");
    let (hits, expected) = run(Codegen::default());
    assert_eq!(hits, 0);
    assert_eq!(run(with(&folder)), (0, expected.clone()));
    let entries = entries(&folder);
    assert!(1 < entries.len(), "the program has one part");
    for compile_threads in [1, 3] {
        let codegen = Codegen { compile_threads, ..with(&folder) };
        assert_eq!(run(codegen), (entries.len(), expected.clone()));
    }
    // Part of an entry.
    let object = fs::read(&entries[0]).expect("the entry is there");
    fs::write(&entries[0], &object[..object.len() / 2]).expect("the entry is written");
    assert_eq!(run(with(&folder)), (entries.len() - 1, expected.clone()));
    assert_eq!(fs::read(&entries[0]).expect("the entry is there"), object);
    assert_eq!(run(with(&folder)), (entries.len(), expected));
}

#[test]
fn other_options_have_other_objects() {
    let folder = new_folder("options");
    let mut others =
        vec![Codegen { strict_fp: true, ..with(&folder) }, Codegen { threads: 2, ..with(&folder) }];
    if with(&folder).machine.triple.starts_with("x86_64") {
        others.push(Codegen { machine: Machine::cpu("x86-64"), ..with(&folder) });
    }
    let (_, expected) = run(with(&folder));
    for other in others {
        let (hits, first) = run(other.clone());
        assert_eq!(hits, 0, "{other:?}");
        let (hits, second) = run(other.clone());
        assert!(1 < hits, "{other:?}");
        assert_eq!(first, second, "{other:?}");
        assert_eq!(first.shape(), expected.shape());
    }
}

#[test]
fn code_that_measures_its_kernels_is_kept() {
    let folder = new_folder("profile");
    run(with(&folder));
    for is_kept in [false, true] {
        let executable = load(Codegen { profile: true, ..with(&folder) });
        let executable = executable.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(0 < executable.cache_hits(), is_kept);
        let inputs = inputs();
        let inputs: Vec<_> = inputs.iter().collect();
        for _ in 0..2 {
            executable.run(&inputs).expect("the call succeeds");
        }
        let profile = executable.profile().expect("the code measures its kernels");
        assert_eq!(profile.kernels.iter().map(|it| it.runs).sum::<u64>(), SIZES.len() as u64 - 1);
    }
}

#[test]
fn a_folder_that_is_none_is_an_error() {
    let folder = new_folder("file");
    fs::write(&folder, "").expect("the file is written");
    let error = load(with(&folder)).err().expect("the folder is a file");
    assert!(matches!(error, Error::Compile(backend::Error::Cache { .. })), "{error}");
}
