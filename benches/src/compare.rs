//! Comparison of two builds of `tc-run` on the same programs.
//!
//! The builds alternate, so that both meet the same state of the machine, and the minima count. A program
//! is slower if the ratio of base to new is below [`MIN_RATIO`] twice: programs that are below it once are
//! measured again after all others.

use crate::suite::Case;
use serde_json::{Value, json};
use std::{path::Path, process::Command};

/// Below this ratio of the times of base and new, a program counts as slower.
pub const MIN_RATIO: f64 = 0.92;

/// How often each build runs each program.
pub const RUNS: usize = 5;

/// One of the two builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// The build to compare with.
    Base,
    /// The current build.
    New,
}

/// The measurement of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// Seconds of the shortest call.
    pub seconds: f64,
    /// Seconds of the compilation.
    pub compile_seconds: f64,
    /// Bytes of temporaries, if the build reports them.
    pub temporary_bytes: Option<i64>,
}

impl Times {
    fn min(self, other: Self) -> Self {
        Self {
            seconds: self.seconds.min(other.seconds),
            compile_seconds: self.compile_seconds.min(other.compile_seconds),
            temporary_bytes: self.temporary_bytes.or(other.temporary_bytes),
        }
    }

    /// Runs a program with a build of `tc-run`.
    ///
    /// # Errors
    /// The program fails, or the output is not a measurement.
    pub fn measure(tool: &Path, case: &Case, threads: usize) -> Result<Self, String> {
        let mut command = Command::new(tool);
        command.env("TC_CACHE", "off").args(&case.arguments).args([
            "--bench",
            "--json",
            "--threads",
        ]);
        let output = command.arg(threads.to_string()).output();
        let output = output.map_err(|error| format!("{}: {error}", tool.display()))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            let line = text.lines().find(|line| line.contains("error")).unwrap_or("no message");
            return Err(format!("{}: {line}", output.status));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find(|line| line.starts_with('{')).unwrap_or_default();
        let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let number = |key: &str| {
            let number = value[key].as_f64().filter(|number| 0.0 < *number);
            number.ok_or_else(|| format!("expected a positive number '{key}' in {line}"))
        };
        Ok(Self {
            seconds: number("seconds_min")?,
            compile_seconds: number("compile_seconds")?,
            temporary_bytes: value["temporary_bytes"].as_i64(),
        })
    }
}

/// The minima of both builds for one program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Those of the build to compare with.
    pub base: Times,
    /// Those of the current build.
    pub new: Times,
}

impl Pair {
    /// The time of base divided by the time of new.
    pub fn ratio(&self) -> f64 {
        self.base.seconds / self.new.seconds
    }

    /// The compile time of base divided by the compile time of new.
    pub fn compile_ratio(&self) -> f64 {
        self.base.compile_seconds / self.new.compile_seconds
    }
}

/// Runs a program with a build.
pub type Measure<'a> = dyn FnMut(Build, &Case) -> Result<Times, String> + 'a;

/// Runs a program with both builds in alternation. Each build is the first one in every other round.
fn alternate(case: &Case, measure: &mut Measure) -> Result<Pair, (Build, String)> {
    let mut minima: [Option<Times>; 2] = [None; 2];
    for round in 0..RUNS {
        let mut order = [(0, Build::Base), (1, Build::New)];
        order.rotate_left(round % 2);
        for (place, build) in order {
            let times = measure(build, case).map_err(|error| (build, error))?;
            minima[place] = Some(minima[place].map_or(times, |minimum| minimum.min(times)));
        }
    }
    let [base, new] = minima.map(|times| times.expect("there are several rounds"));
    Ok(Pair { base, new })
}

/// The result for one program.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The name of the program.
    pub name: String,
    /// The measurement, or the build that failed and why.
    pub first: Result<Pair, (Build, String)>,
    /// The second measurement, if the first one was below [`MIN_RATIO`].
    pub second: Option<Pair>,
}

impl Row {
    /// The measurement that counts: the second one, if there is one.
    pub fn pair(&self) -> Option<Pair> {
        self.second.or(self.first.as_ref().ok().copied())
    }

    /// Whether the current build is slower in two measurements.
    pub fn is_slower(&self) -> bool {
        self.second.is_some_and(|pair| pair.ratio() < MIN_RATIO)
    }

    /// Whether the current build fails, so that nothing can be compared.
    pub fn has_failed(&self) -> bool {
        matches!(self.first, Err((Build::New, _)))
    }

    /// The row as an object.
    pub fn json(&self) -> Value {
        let Some(pair) = self.pair() else {
            let failed = self.first.as_ref().err();
            let error = failed.map(|(build, error)| format!("{}: {error}", name(*build)));
            return json!({ "name": self.name, "error": error });
        };
        let first = self.first.as_ref().ok().map(Pair::ratio);
        json!({
            "name": self.name,
            "base_seconds": pair.base.seconds,
            "new_seconds": pair.new.seconds,
            "ratio": pair.ratio(),
            "first_ratio": first,
            "slower": self.is_slower(),
            "base_compile_seconds": pair.base.compile_seconds,
            "new_compile_seconds": pair.new.compile_seconds,
            "compile_ratio": pair.compile_ratio(),
            "base_temporary_bytes": pair.base.temporary_bytes,
            "new_temporary_bytes": pair.new.temporary_bytes,
        })
    }
}

/// The name of a build in the output.
pub fn name(build: Build) -> &'static str {
    match build {
        Build::Base => "base",
        Build::New => "new",
    }
}

/// Compares the builds on all programs. `done` sees each row as soon as it is measured, and once more if
/// it is measured again.
pub fn compare(cases: &[Case], measure: &mut Measure, done: &mut dyn FnMut(&Row)) -> Vec<Row> {
    let mut rows = Vec::new();
    for case in cases {
        let first = alternate(case, measure);
        let row = Row { name: case.name.clone(), first, second: None };
        done(&row);
        rows.push(row);
    }
    for (case, row) in cases.iter().zip(&mut rows) {
        if row.first.as_ref().is_ok_and(|pair| pair.ratio() < MIN_RATIO) {
            match alternate(case, measure) {
                Ok(pair) => row.second = Some(pair),
                Err(error) => row.first = Err(error),
            }
            done(row);
        }
    }
    rows
}

/// The geometric mean of some ratios; `None` if there are none.
pub fn geometric_mean(ratios: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for ratio in ratios {
        sum += ratio.ln();
        count += 1.0;
    }
    (0.0 < count).then(|| f64::exp(sum / count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::HashMap, fs};

    fn case(name: &str) -> Case {
        Case { name: name.to_string(), arguments: vec![format!("{name}.tc")] }
    }

    fn times(seconds: f64) -> Times {
        Times { seconds, compile_seconds: 1.0, temporary_bytes: None }
    }

    /// Compares builds that take these times: per program, of base and of new, the last one again and
    /// again. Returns the rows and the order of the runs.
    fn simulate(programs: &[(&str, [Vec<f64>; 2])]) -> (Vec<Row>, Vec<(String, Build)>) {
        let cases: Vec<_> = programs.iter().map(|(name, _)| case(name)).collect();
        let mut runs = Vec::new();
        let mut calls: HashMap<(String, bool), usize> = HashMap::new();
        let mut measure = |build: Build, case: &Case| {
            runs.push((case.name.clone(), build));
            let (_, both) = programs.iter().find(|(name, _)| *name == case.name).unwrap();
            let series = &both[usize::from(build == Build::New)];
            let call = calls.entry((case.name.clone(), build == Build::New)).or_default();
            let seconds = series.get(*call).or(series.last()).copied();
            *call += 1;
            seconds.map(times).ok_or_else(|| "it fails".to_string())
        };
        let rows = compare(&cases, &mut measure, &mut |_| {});
        (rows, runs)
    }

    #[test]
    fn builds_alternate_and_minima_count() {
        let series = [vec![5.0, 4.0, 3.0, 7.0, 6.0], vec![9.0, 9.0, 1.5, 9.0, 9.0]];
        let (rows, runs) = simulate(&[("a", series)]);
        let order: Vec<_> = runs.iter().map(|(_, build)| *build).collect();
        let (base, new) = (Build::Base, Build::New);
        assert_eq!(order, [base, new, new, base, base, new, new, base, base, new]);
        assert_eq!(rows[0].pair().unwrap().ratio(), 2.0);
        assert!(!rows[0].is_slower() && rows[0].second.is_none());
    }

    #[test]
    fn a_program_is_slower_if_it_is_so_twice() {
        let once = [vec![1.0], [[2.0; RUNS], [1.0; RUNS]].concat()];
        let twice = [vec![1.0], vec![1.1]];
        let barely = [vec![1.0], vec![1.08]];
        let (rows, runs) = simulate(&[("once", once), ("twice", twice), ("barely", barely)]);
        let slower: Vec<_> = rows.iter().map(Row::is_slower).collect();
        assert_eq!(slower, [false, true, false]);
        let repeated: Vec<_> = rows.iter().map(|row| row.second.is_some()).collect();
        assert_eq!(repeated, [true, true, false]);
        // Repeated measurements come last.
        let names: Vec<_> = runs.iter().step_by(2 * RUNS).map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["once", "twice", "barely", "once", "twice"]);
        assert_eq!(rows[0].json()["ratio"], 1.0);
        assert_eq!(rows[0].json()["first_ratio"], 0.5);
    }

    #[test]
    fn failures_name_the_build() {
        let (rows, _) = simulate(&[("a", [vec![], vec![1.0]]), ("b", [vec![1.0], vec![]])]);
        assert_eq!(rows[0].json()["error"], "base: it fails");
        assert_eq!(rows[1].json()["error"], "new: it fails");
        assert_eq!([rows[0].has_failed(), rows[1].has_failed()], [false, true]);
    }

    #[test]
    fn means_are_geometric() {
        assert_eq!(geometric_mean([]), None);
        assert!((geometric_mean([2.0, 0.5, 8.0]).unwrap() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn measurements_are_read_from_the_output_of_the_tool() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("tc-compare-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let tool = folder.join("tc-run");
        let script = "#!/bin/sh\n\
            [ \"$*\" = 'a.tc --bench --json --threads 3' ] || { echo 'tc-run: error: no' >&2; exit 1; }\n\
            echo '{\"seconds_min\":0.25,\"compile_seconds\":2,\"temporary_bytes\":64}'\n";
        fs::write(&tool, script).unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        let measured = Times::measure(&tool, &case("a"), 3);
        let failed = Times::measure(&tool, &case("b"), 3);
        fs::remove_dir_all(&folder).unwrap();
        let expected = Times { seconds: 0.25, compile_seconds: 2.0, temporary_bytes: Some(64) };
        assert_eq!(measured, Ok(expected));
        assert!(failed.unwrap_err().ends_with("tc-run: error: no"));
    }
}
