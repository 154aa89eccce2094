//! The programs that `make bench BASE=..` measures, in all languages, as arguments of `tc-run`.

use crate::{Kernel, read};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The most bytes that all tensors of a published kernel take.
const MAX_BYTES: f64 = 256e6;

/// Entries of the Axon examples, and the shapes of their parameters.
const AXON: &[(&str, &str, &[&str])] = &[
    ("attention", "attention", &["Q=1024x64", "K=1024x64", "V=1024x64"]),
    ("attention", "heads", &["Q=8x256x64", "K=8x256x64", "V=8x256x64"]),
    ("mlp", "mlp", &["x=128x784", "w1=784x512", "w2=512x256", "w3=256x10"]),
    ("softmax", "softmax", &["x=1024x1024"]),
    ("convnet", "convnet", &["image=8x3x32x32", "f0=16x3x3x3", "f1=32x16x3x3", "f2=16x32x3x3"]),
    ("rnn", "rnn", &["W=128x128", "h=16x128", "x=64x16x128"]),
];

/// A program to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its language and name.
    pub name: String,
    /// The arguments of `tc-run`, without options that measure.
    pub arguments: Vec<String>,
}

/// All programs. The sources of published kernels are written to a folder.
///
/// # Errors
/// A source cannot be read or written, or is wrong.
pub fn cases(folder: &Path) -> io::Result<Vec<Case>> {
    let benches = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = benches.join("..");
    let mut cases = Vec::new();
    fs::create_dir_all(folder)?;
    for kernel in read(&root.join("tests/conformance/tc/kernels.jsonl"))? {
        cases.push(published(&kernel, folder)?);
    }
    let of_file = |language: &str, path: PathBuf| Case {
        name: format!("{language}/{}", path.file_stem().unwrap_or_default().to_string_lossy()),
        arguments: vec![path.display().to_string()],
    };
    let tml = files(&root.join("examples/tml"), "tml")?.into_iter();
    cases.extend(tml.map(|path| of_file("tml", path)));
    for (file, entry, shapes) in AXON {
        let path = root.join(format!("examples/axon/{file}.axon"));
        let mut arguments = vec![path.display().to_string(), "--entry".into(), (*entry).into()];
        for shape in *shapes {
            arguments.extend(["--shape".into(), (*shape).into()]);
        }
        cases.push(Case { name: format!("axon/{entry}"), arguments });
    }
    let hlo = files(&benches.join("hlo/programs"), "hlo")?.into_iter();
    cases.extend(hlo.map(|path| of_file("hlo", path)));
    Ok(cases)
}

/// A published kernel at the first of its published sizes.
fn published(kernel: &Kernel, folder: &Path) -> io::Result<Case> {
    let sizes = kernel.sizes.first().ok_or_else(|| io::Error::other("a kernel has no sizes"))?;
    let sizes = kernel.sizes(sizes, MAX_BYTES).map_err(io::Error::other)?;
    let sizes: Vec<_> = sizes.iter().map(|(name, size)| format!("{name}={size}")).collect();
    let path = folder.join(format!("{}.tc", kernel.name));
    fs::write(&path, &kernel.source)?;
    let path = path.display().to_string();
    let arguments =
        vec![path, "--entry".into(), kernel.def.clone(), "--size".into(), sizes.join(",")];
    Ok(Case { name: format!("tc/{}", kernel.name), arguments })
}

/// The files of a folder whose names end with a language, by name.
fn files(folder: &Path, language: &str) -> io::Result<Vec<PathBuf>> {
    let files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut files = files.collect::<io::Result<Vec<_>>>()?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == language));
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn cases_have_all_languages_and_valid_programs() {
        let folder = std::env::temp_dir().join(format!("tc-benches-{}", std::process::id()));
        let cases = cases(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let names: HashSet<_> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), cases.len(), "names are different");
        for language in ["tc/", "tml/", "axon/", "hlo/"] {
            let found = names.iter().filter(|name| name.starts_with(language)).count();
            assert!(3 <= found, "{found} programs of {language}");
        }
        for case in cases.iter().filter(|case| case.name.starts_with("hlo/")) {
            let text = fs::read(&case.arguments[0]).unwrap();
            let (_, module, diagnostics) = tc_dialects::hlo::read(&case.name, text);
            assert!(module.is_some(), "{}: {diagnostics:?}", case.name);
        }
    }
}
