//! Published kernels at published sizes, as conformance files list them, and how their
//! compiled code is measured; and the comparison of two builds of `tc-run`.

pub mod compare;
pub mod suite;

use serde_json::Value;
use std::{
    collections::BTreeMap,
    env, io,
    path::{Path, PathBuf},
    process::Command,
};
use tc_backends::{
    Codegen, Error, Program, Request, Session, Source, cpu,
    program::{Entry, Sizes, in_memory},
    run::{Bench, sample},
};
use tc_dialects::Language;

/// Builds a tool of this checkout for release, and returns its path. Only for benchmarks, which are
/// built for release themselves.
///
/// # Errors
/// The build fails.
pub fn build_tool(name: &str) -> io::Result<PathBuf> {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_string());
    let mut command = Command::new(cargo);
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    command.args(["build", "--quiet", "--release", "--package", "tc-tools", "--bin", name]);
    let status = command.status()?;
    if !status.success() {
        return Err(io::Error::other(format!("{command:?} failed: {status}")));
    }
    // The benchmark is in the folder 'deps' of the same profile.
    let path = env::current_exe()?.ancestors().nth(2).map(|folder| folder.join(name));
    let path = path.filter(|path| path.exists());
    path.ok_or_else(|| io::Error::other(format!("'{name}' was not built")))
}

/// A program and the sizes at which it is measured.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The name of the benchmark.
    pub name: String,
    /// The TC program.
    pub source: String,
    /// Its function.
    pub def: String,
    /// The published sizes.
    pub sizes: Vec<Sizes>,
}

/// Reads the kernels of a conformance file: the rows with a list of sizes.
///
/// # Errors
/// The file cannot be read, or a row is not what it should be.
pub fn read(path: &Path) -> io::Result<Vec<Kernel>> {
    let text = std::fs::read_to_string(path)?;
    let mut kernels = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |what: &str| {
            let at = format!("{}:{}: {what}", path.display(), number + 1);
            io::Error::new(io::ErrorKind::InvalidData, at)
        };
        let row: Value = serde_json::from_str(line).map_err(|error| wrong(&error.to_string()))?;
        if row["sizes"].is_array() {
            kernels.push(kernel(&row).ok_or_else(|| wrong("expected name, tc, def and sizes"))?);
        }
    }
    Ok(kernels)
}

fn kernel(row: &Value) -> Option<Kernel> {
    let text = |key: &str| Some(row[key].as_str()?.to_string());
    let sizes = |sizes: &Value| {
        sizes
            .as_object()?
            .iter()
            .map(|(name, value)| Some((name.clone(), value.as_i64()?)))
            .collect()
    };
    Some(Kernel {
        name: text("name")?,
        source: text("tc")?,
        def: text("def")?,
        sizes: row["sizes"].as_array()?.iter().map(sizes).collect::<Option<_>>()?,
    })
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The sizes: those asked for, or smaller ones that fit the memory limit.
    pub sizes: Sizes,
    /// The time of a call.
    pub bench: Bench,
    /// Seconds from the source to code in memory.
    pub compile_seconds: f64,
    /// Floating-point operations of a call, if known.
    pub flops: Option<i64>,
    /// Bytes that the operations of a call read and write, if known.
    pub bytes: Option<i64>,
}

impl Kernel {
    fn open<'c>(&self, session: &'c Session) -> Result<Box<dyn Program<'c> + 'c>, Error> {
        let source = Source { language: Language::Tc, ..Source::new(&self.name, &*self.source) };
        session.open(source)
    }

    /// The sizes of the function, made smaller until its tensors take no more than `max_bytes`.
    ///
    /// # Errors
    /// The program is rejected at these sizes.
    pub fn sizes(&self, published: &Sizes, max_bytes: f64) -> Result<Sizes, Error> {
        let session = Session::new("cpu")?;
        Ok(self.fit(&*self.open(&session)?, published, max_bytes)?.sizes)
    }

    /// Compiles the kernel for sizes and measures it on random inputs. Sizes whose tensors
    /// take more than `max_bytes` are made smaller, the largest one first.
    ///
    /// # Errors
    /// The program is rejected at these sizes, or cannot be compiled.
    pub fn measure(
        &self,
        published: &Sizes,
        max_bytes: f64,
        options: &Codegen,
    ) -> Result<Measurement, Error> {
        let start = std::time::Instant::now();
        let session = Session::with_backend(cpu::BACKEND, options.clone());
        let program = self.open(&session)?;
        let entry = self.fit(&*program, published, max_bytes)?;
        let lowered = session.lower(&*program, &self.request(entry.sizes.clone()))?;
        let executable = session.load(&lowered)?;
        let compile_seconds = start.elapsed().as_secs_f64();
        let cost = session.costs(&lowered)?.into_iter().find(|cost| cost.name == self.def);
        let cost = cost.ok_or_else(|| Error::Usage(format!("'{}' was not compiled", self.def)))?;

        let inputs = entry.complete(BTreeMap::new(), 0)?;
        let mut buffers = executable.buffers(&inputs.iter().collect::<Vec<_>>())?;
        Ok(Measurement {
            bench: sample(|| executable.call(&mut buffers))?,
            compile_seconds,
            flops: cost.flops.and_then(|it| it.constant()),
            bytes: cost.bytes.and_then(|it| it.constant()),
            sizes: entry.sizes,
        })
    }

    fn request(&self, sizes: Sizes) -> Request {
        Request { sizes, ..Request::of(&self.def) }
    }

    /// The function at sizes of which the largest one was halved until all tensors fit.
    fn fit(
        &self,
        program: &dyn Program,
        published: &Sizes,
        max_bytes: f64,
    ) -> Result<Entry, Error> {
        // The file lists sizes of a whole benchmark, of which this may be a part.
        let own = program.sizes(Some(&self.def))?;
        let mut sizes = published.clone();
        sizes.retain(|name, _| own.contains(name));
        loop {
            let entry = program.entry(&self.request(sizes.clone()))?;
            let largest = sizes.iter_mut().max_by_key(|(_, value)| **value);
            match largest {
                Some((_, size)) if max_bytes < num_bytes(&entry) && 1 < *size => *size /= 2,
                _ => return Ok(entry),
            }
        }
    }
}

fn num_bytes(entry: &Entry) -> f64 {
    let tensors = entry.inputs.iter().chain(&entry.outputs);
    tensors
        .map(|it| {
            let count: f64 = it.dims().iter().map(|extent| *extent as f64).product();
            count * in_memory(it.element).size() as f64
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_read_and_measured() {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/conformance/tc/kernels.jsonl");
        let kernels = read(&path).unwrap();
        assert!(15 <= kernels.len());
        let kernel = kernels.iter().find(|it| it.name == "1LUT").unwrap();
        let published = &kernel.sizes[0];
        let measured = kernel.measure(published, 4e6, &Codegen::default()).unwrap();
        assert!(measured.sizes["E1"] < published["E1"]);
        assert_eq!(measured.sizes["D"], published["D"]);
        // The rows of the table that are read, fewer than it has, the indices and the sums.
        assert_eq!(measured.bytes, Some(4 * (128 * 50 * 64 + 128 * 50 + 128 * 64)));
        assert_eq!(measured.flops, Some(128 * 50 * 64));
        assert!(0.0 < measured.bench.seconds_min);
    }
}
