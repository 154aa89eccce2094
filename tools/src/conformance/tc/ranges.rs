//! Results of range inference: ranges, rounds, shapes, warnings, preconditions, errors.
//!
//! Formulas are compared by value: at the sizes that a case gives, and at
//! [`NUM_CANDIDATES`] seeded ones where all expected extents are positive. The texts are
//! not compared.

use super::program::{self, Session, Source, range_kind};
use crate::conformance::{
    Options, Outcome, Status,
    row::{Mismatch, array, field, integer, known_fields, object, optional, pair, string, strings},
    sizes::{Algebra, Comparison, candidates, show},
};
use melior::ir::Module;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tc_backends::program::Sizes;
use tc_dialects::{
    imap::map::from_attribute,
    mlir,
    report::Received,
    tc::{Comprehension, Def, syntax::checked::Dim},
    text::Reason,
};
use tc_ir::{Expr, IndexingMap, Var};
use tc_passes::run_pipeline;

/// Seeded sizes that are tried beyond those of a case.
const NUM_CANDIDATES: usize = 400;

/// Errors that all ask for a `where` clause; which of them is reported does not matter.
const WHERE_ERRORS: [&str; 3] = ["ambiguous", "dynamic_stride", "unknown_range"];

/// The warnings that the data knows.
const WARNINGS: [&str; 3] =
    ["unchecked_precondition", "data_dependent_access", "uninitialized_reduction"];

pub(super) fn run(row: &Value, _options: &Options) -> Result<Outcome, Mismatch> {
    let expected = field(row, "expected", Ok)?;
    known_fields(
        expected,
        &["ranges", "rounds", "outputs", "origins", "warnings", "preconditions", "error"],
    )?;
    let error = field(expected, "error", |value| match value {
        Value::Null => Ok(None),
        value => string(value).map(Some),
    })?;
    let source = Source::of_row(row)?;
    check_inputs(row, &source)?;
    let session = Session::new();
    match inferred(&session, &source) {
        Err((name, text)) => {
            let accepted = [error, optional(row, "accept_error", string)?];
            let same = |wanted: &str| {
                wanted == name || WHERE_ERRORS.contains(&wanted) && WHERE_ERRORS.contains(&&*name)
            };
            let status = match accepted.into_iter().flatten().any(same) {
                true => Status::Passed,
                false => Status::Failed,
            };
            let expected =
                error.map_or_else(|| expected.to_string(), |name| format!("error {name}"));
            Ok(Outcome::new(status, expected, format!("error {name} ({text})")))
        }
        Ok(module) => {
            let def = program::def(&module, field(row, "def", string)?)?;
            let found = Found::read(def, &session, &source)?;
            if let Some(error) = error {
                return Err(Mismatch::new(format!("error {error}"), found.to_json().to_string()));
            }
            check(row, expected, &found)?;
            Ok(Outcome::new(Status::Passed, expected.to_string(), found.to_json().to_string()))
        }
    }
}

/// The module with its ranges, or the name and the text of the first error.
fn inferred<'c>(session: &'c Session, source: &Source) -> Result<Module<'c>, (String, String)> {
    if let Some(error) = source.first_error() {
        return Err((error.reason.name().to_string(), error.message.clone()));
    }
    let named = |text: String| {
        let name = range_kind(&text).map_or("unknown", |kind| kind.name());
        (name.to_string(), text)
    };
    let mut module = session.import(source).map_err(named)?;
    match run_pipeline(&mut module, "tc-infer-ranges{record-rounds=true}") {
        Ok(()) => Ok(module),
        Err(error) => {
            let first = session.received().into_iter().find(Received::is_error);
            Err(named(first.map_or_else(|| error.to_string(), |it| it.message)))
        }
    }
}

/// A tensor that is returned.
struct Output {
    name: String,
    extents: Vec<Expr>,
    origins: Vec<Expr>,
}

/// A statement after inference.
struct Statement {
    target: String,
    /// Variable, lower bound, and upper bound, which is excluded.
    ranges: Vec<(String, Expr, Expr)>,
    rounds: Vec<BTreeSet<String>>,
    /// Where the element of an index is stored, by dimension.
    positions: Vec<Expr>,
}

/// A condition that is left to the caller.
struct Precondition {
    text: String,
    /// `None` if it is not one over sizes.
    condition: Option<IndexingMap>,
    is_data: bool,
}

/// What inference found for a function.
struct Found {
    algebra: Algebra,
    statements: Vec<Statement>,
    outputs: Vec<Output>,
    warnings: BTreeSet<&'static str>,
    preconditions: Vec<Precondition>,
}

impl Found {
    fn read(def: Def, session: &Session, source: &Source) -> Result<Self, Mismatch> {
        let algebra = Algebra::new(def.sizes().into_iter().map(|(name, ..)| name));
        let statements = def.comprehensions().into_iter().map(|it| Statement::read(it, &algebra));
        let statements = statements.collect::<Result<_, _>>()?;
        let outputs = def.outputs().into_iter().enumerate().map(|(number, name)| {
            let results = |map: Option<IndexingMap>| {
                map.map(|map| map.results)
                    .ok_or_else(|| missing(&format!("a shape of output '{name}'")))
            };
            let extents = results(def.output_extents(&algebra.ir, number))?;
            let origins = results(def.output_origins(&algebra.ir, number))?;
            Ok(Output { name: name.to_string(), extents, origins })
        });
        let outputs = outputs.collect::<Result<_, Mismatch>>()?;
        let preconditions = def.preconditions().into_iter().map(|it| Precondition {
            text: it.text.to_string(),
            condition: it.condition.and_then(|it| from_attribute(&algebra.ir, it)),
            is_data: it.data,
        });
        let preconditions = preconditions.collect();
        let warned = session.received().into_iter().filter(|it| !it.is_error());
        let mut warnings: BTreeSet<_> =
            warned.filter_map(|it| range_kind(&it.message)).map(|kind| kind.name()).collect();
        if source.warns(Reason::UninitializedReduction) {
            warnings.insert(Reason::UninitializedReduction.name());
        }
        Ok(Self { algebra, statements, outputs, warnings, preconditions })
    }

    /// The findings in the form of a case's `expected`.
    fn to_json(&self) -> Value {
        let text = |expr: &Expr| json!(self.algebra.text(*expr));
        let mut fields = Map::new();
        let ranges = self.statements.iter().map(|statement| {
            let range = |(name, lower, upper): &(String, Expr, Expr)| {
                (name.clone(), json!([text(lower), text(upper)]))
            };
            Value::Object(statement.ranges.iter().map(range).collect())
        });
        fields.insert("ranges".into(), ranges.collect());
        fields.insert("rounds".into(), self.statements.iter().map(|it| json!(it.rounds)).collect());
        let output = |output: &Output, formulas: &[Expr]| {
            (output.name.clone(), formulas.iter().map(text).collect::<Value>())
        };
        let outputs = self.outputs.iter().map(|it| output(it, &it.extents));
        fields.insert("outputs".into(), Value::Object(outputs.collect()));
        let is_zero = |origin: &Expr| self.algebra.ir.as_constant(*origin) == Some(0);
        let shifted = self.outputs.iter().filter(|it| !it.origins.iter().all(is_zero));
        let origins: Map<_, _> = shifted.map(|it| output(it, &it.origins)).collect();
        if !origins.is_empty() {
            fields.insert("origins".into(), Value::Object(origins));
        }
        if !self.warnings.is_empty() {
            fields.insert("warnings".into(), json!(self.warnings));
        }
        if !self.preconditions.is_empty() {
            let texts = self.preconditions.iter().map(|it| json!(it.text));
            fields.insert("preconditions".into(), texts.collect());
        }
        fields.insert("error".into(), Value::Null);
        Value::Object(fields)
    }
}

fn missing(what: &str) -> Mismatch {
    Mismatch::new(what, "none")
}

impl Statement {
    fn read(statement: Comprehension, algebra: &Algebra) -> Result<Self, Mismatch> {
        let target = statement.target().to_string();
        let domain = statement.domain(&algebra.ir);
        let domain =
            domain.ok_or_else(|| missing(&format!("a domain of the statement for '{target}'")))?;
        let names = statement.index_vars().into_iter().chain(statement.reduction_vars());
        let variables = domain.dims.iter().chain(&domain.ranges);
        let ranges = names.zip(variables).map(|(name, variable)| {
            let bounds = variable.lower.zip(variable.upper);
            let (lower, upper) = bounds.ok_or_else(|| missing(&format!("a range of '{name}'")))?;
            Ok((name.to_string(), lower, algebra.ir.add(upper, algebra.ir.constant(1))))
        });
        let ranges = ranges.collect::<Result<_, Mismatch>>()?;
        let rounds = mlir::array_attr(statement.op(), "rounds").into_iter().map(|round| {
            let names = mlir::array_of(round).into_iter().filter_map(mlir::string_of);
            names.map(str::to_string).collect()
        });
        Ok(Self { target, ranges, rounds: rounds.collect(), positions: domain.results })
    }
}

/// Formulas of a case with what stands for them here.
struct Formulas {
    /// What it is, for a message.
    what: String,
    expected: Expr,
    found: Expr,
}

fn check(row: &Value, expected: &Value, found: &Found) -> Result<(), Mismatch> {
    check_rounds(expected, found)?;
    let algebra = &found.algebra;
    let mut formulas = Vec::new();
    // Lower and upper bounds, to tell where a range is not empty.
    let mut extents = Vec::new();
    let ranges = field(expected, "ranges", array)?;
    count("statements", ranges.len(), found.statements.len())?;
    for (number, (ranges, statement)) in ranges.iter().zip(&found.statements).enumerate() {
        let ranges = object(ranges)?;
        let what = format!("variables of statement {number}");
        count(&what, ranges.len(), statement.ranges.len())?;
        for (name, lower, upper) in &statement.ranges {
            let bounds = field_of(ranges, name, &format!("a range of statement {number}"))?;
            let [expected_lower, expected_upper] = pair(bounds)?;
            let what = format!("range of '{name}' in statement {number}");
            let expected_lower = algebra.parse(string(expected_lower)?)?;
            let expected_upper = algebra.parse(string(expected_upper)?)?;
            extents.push(algebra.ir.sub(expected_upper, expected_lower));
            let pairs =
                [("lower bound", expected_lower, *lower), ("upper bound", expected_upper, *upper)];
            for (end, expected, found) in pairs {
                formulas.push(Formulas { what: format!("{end} of the {what}"), expected, found });
            }
        }
    }
    let outputs = field(expected, "outputs", object)?;
    count("outputs", outputs.len(), found.outputs.len())?;
    let origins = optional(expected, "origins", object)?;
    for output in &found.outputs {
        let wanted = strings(field_of(outputs, &output.name, "an output")?)?;
        count(&format!("dimensions of '{}'", output.name), wanted.len(), output.extents.len())?;
        let origin = origins.and_then(|origins| origins.get(&output.name));
        let origin = origin.map(strings).transpose()?.unwrap_or_else(|| vec!["0"; wanted.len()]);
        count(&format!("origins of '{}'", output.name), origin.len(), output.origins.len())?;
        let stored = found.statements.iter().rev().find(|it| it.target == output.name);
        for dim in 0..wanted.len() {
            let place = format!("dimension {dim} of output '{}'", output.name);
            let extent = algebra.parse(wanted[dim])?;
            extents.push(extent);
            let what = format!("extent of {place}");
            formulas.push(Formulas { what, expected: extent, found: output.extents[dim] });
            let origin = algebra.parse(origin[dim])?;
            let what = format!("origin of {place}");
            formulas.push(Formulas { what, expected: origin, found: output.origins[dim] });
            if let Some(position) = stored.and_then(|it| it.positions.get(dim)) {
                // The origin is stored at position 0.
                let at_origin = |var| (var == Var::Dim(dim as u32)).then_some(origin);
                formulas.push(Formulas {
                    what: format!("position of the origin in {place}"),
                    expected: algebra.ir.constant(0),
                    found: algebra.ir.substitute(*position, &at_origin),
                });
            }
        }
    }
    if let Some(name) = origins.and_then(|it| it.keys().find(|name| !outputs.contains_key(*name))) {
        return Err(Mismatch::new("origins of outputs", format!("'{name}'")));
    }
    check_warnings(row, expected, found)?;
    let conditions = optional(expected, "preconditions", strings)?.unwrap_or_default();
    let conditions = conditions.into_iter().map(|text| algebra.parse_condition(text));
    let conditions: Vec<_> = conditions.collect::<Result<Vec<_>, _>>()?.concat();
    let samples = samples(row, found, &formulas)?;
    let tried = candidates(algebra.names(), &samples, NUM_CANDIDATES);
    let positive = |sizes: &&Sizes| {
        extents.iter().all(|extent| algebra.eval(*extent, sizes).is_some_and(|it| 0 < it))
    };
    for sizes in samples.iter().chain(tried.iter().filter(positive)) {
        check_formulas(&formulas, algebra, sizes)?;
        check_conditions(&conditions, found, sizes)?;
    }
    Ok(())
}

fn count(what: &str, expected: usize, found: usize) -> Result<(), Mismatch> {
    if expected == found {
        return Ok(());
    }
    Err(Mismatch::new(format!("{expected} {what}"), found.to_string()))
}

fn field_of<'r>(
    fields: &'r Map<String, Value>,
    name: &str,
    what: &str,
) -> Result<&'r Value, Mismatch> {
    fields.get(name).ok_or_else(|| {
        let names: Vec<_> = fields.keys().map(String::as_str).collect();
        Mismatch::new(format!("{what}: one of {}", names.join(", ")), format!("'{name}'"))
    })
}

/// The inputs and their sizes, of a function that is correct up to its ranges.
fn check_inputs(row: &Value, source: &Source) -> Result<(), Mismatch> {
    let name = field(row, "def", string)?;
    let inputs = field(row, "inputs", object)?;
    let Some(function) = source.checked.functions.iter().find(|it| it.name == name) else {
        return Ok(());
    };
    let mut expected = BTreeMap::new();
    for (name, sizes) in inputs {
        let sizes: Vec<_> = strings(sizes)?.into_iter().map(str::to_string).collect();
        expected.insert(name.as_str(), sizes);
    }
    let size = |dim: &Dim| match dim {
        Dim::Size(number) => function.sizes[*number].name.clone(),
        Dim::Const(extent) => extent.to_string(),
        Dim::Free(name) => name.clone(),
    };
    let found = function.inputs.iter();
    let found = found.map(|it| (it.name.as_str(), it.dims.iter().map(size).collect::<Vec<_>>()));
    let found: BTreeMap<_, _> = found.collect();
    if expected == found {
        return Ok(());
    }
    Err(Mismatch::new(format!("inputs {expected:?}"), format!("{found:?}")))
}

fn check_rounds(expected: &Value, found: &Found) -> Result<(), Mismatch> {
    let statements = field(expected, "rounds", array)?;
    count("statements with rounds", statements.len(), found.statements.len())?;
    for (number, (rounds, statement)) in statements.iter().zip(&found.statements).enumerate() {
        let rounds = array(rounds)?.iter().map(strings).collect::<Result<Vec<_>, _>>()?;
        let rounds =
            rounds.into_iter().map(|names| names.into_iter().map(str::to_string).collect());
        let rounds: Vec<BTreeSet<String>> = rounds.collect();
        if rounds != statement.rounds {
            let expected = format!("rounds {} of statement {number}", json!(rounds));
            return Err(Mismatch::new(expected, json!(statement.rounds).to_string()));
        }
    }
    Ok(())
}

fn check_warnings(row: &Value, expected: &Value, found: &Found) -> Result<(), Mismatch> {
    let set = |row, name| -> Result<BTreeSet<&str>, Mismatch> {
        Ok(optional(row, name, strings)?.unwrap_or_default().into_iter().collect())
    };
    let mut wanted = set(expected, "warnings")?;
    // In a mode that promotes warnings, the error is that of the warning.
    wanted.extend(optional(row, "error_if_warnings_are_errors", string)?);
    let may = set(row, "optional_warnings")?;
    let known = |name: &&str| WARNINGS.contains(name) && !may.contains(name);
    let (must, got): (BTreeSet<_>, BTreeSet<_>) = (
        wanted.iter().copied().filter(known).collect(),
        found.warnings.iter().copied().filter(known).collect(),
    );
    if let Some(unknown) = wanted.iter().find(|name| !WARNINGS.contains(name)) {
        return Err(Mismatch::new("a known warning", format!("'{unknown}'")));
    }
    if must == got {
        return Ok(());
    }
    Err(Mismatch::new(format!("warnings {must:?}"), format!("{got:?}")))
}

/// The sizes of the samples, after comparing the numbers that they give.
fn samples(row: &Value, found: &Found, formulas: &[Formulas]) -> Result<Vec<Sizes>, Mismatch> {
    let algebra = &found.algebra;
    let mut all = Vec::new();
    for sample in optional(row, "samples", array)?.unwrap_or_default() {
        known_fields(sample, &["sizes", "ranges", "outputs"])?;
        let sizes = field(sample, "sizes", object)?;
        let sizes = sizes.iter().map(|(name, value)| Ok((name.clone(), integer(value)?)));
        let sizes: Sizes = sizes.collect::<Result<_, Mismatch>>()?;
        if let Some(name) = algebra.names().iter().find(|name| !sizes.contains_key(*name)) {
            return Err(Mismatch::new(format!("a value of size '{name}' in a sample"), "none"));
        }
        let check = |what: String, expr: Expr, wanted: &Value| {
            let (wanted, value) = (integer(wanted)?, algebra.eval(expr, &sizes));
            if value == Some(wanted) {
                return Ok(());
            }
            let place = format!("{what} {wanted} at {}", show(&sizes));
            Err(Mismatch::new(place, value.map_or("no value".to_string(), |it| it.to_string())))
        };
        let ranges = field(sample, "ranges", array)?;
        count("statements of a sample", ranges.len(), found.statements.len())?;
        for (number, (ranges, statement)) in ranges.iter().zip(&found.statements).enumerate() {
            let ranges = object(ranges)?;
            for (name, lower, upper) in &statement.ranges {
                let [wanted_lower, wanted_upper] =
                    pair(field_of(ranges, name, "a sampled range")?)?;
                let what = format!("of '{name}' in statement {number}");
                check(format!("lower bound {what}"), *lower, wanted_lower)?;
                check(format!("upper bound {what}"), *upper, wanted_upper)?;
            }
        }
        let outputs = field(sample, "outputs", object)?;
        for output in &found.outputs {
            let wanted = array(field_of(outputs, &output.name, "a sampled output")?)?;
            count(&format!("dimensions of '{}'", output.name), wanted.len(), output.extents.len())?;
            for (extent, wanted) in output.extents.iter().zip(wanted) {
                check(format!("extent of '{}'", output.name), *extent, wanted)?;
            }
        }
        // A formula that disagrees with its own sample must not pass for want of values.
        check_formulas(formulas, algebra, &sizes)?;
        all.push(sizes);
    }
    Ok(all)
}

fn check_formulas(formulas: &[Formulas], algebra: &Algebra, sizes: &Sizes) -> Result<(), Mismatch> {
    for Formulas { what, expected, found } in formulas {
        let wanted = algebra.eval(*expected, sizes);
        let value = algebra.eval(*found, sizes);
        // Without a value in 64 bits there is nothing to compare.
        if wanted != value && wanted.is_some() {
            let number =
                |value: Option<i64>| value.map_or("no value".to_string(), |it| it.to_string());
            let (expected, found) = (algebra.text(*expected), algebra.text(*found));
            return Err(Mismatch::new(
                format!("{what} {expected}, {} at {}", number(wanted), show(sizes)),
                format!("{found}, {}", number(value)),
            ));
        }
    }
    Ok(())
}

/// The conditions over sizes hold where those of the case do.
fn check_conditions(wanted: &[Comparison], found: &Found, sizes: &Sizes) -> Result<(), Mismatch> {
    let algebra = &found.algebra;
    let wanted = wanted
        .iter()
        .map(|it| algebra.holds(*it, sizes))
        .try_fold(true, |all, it| Some(all && it?));
    let Some(wanted) = wanted else { return Ok(()) };
    let mut all = true;
    for precondition in found.preconditions.iter().filter(|it| !it.is_data) {
        let holds = precondition.condition.as_ref().and_then(|it| algebra.satisfied(it, sizes));
        let Some(holds) = holds else {
            let expected =
                format!("a value of the condition '{}' at {}", precondition.text, show(sizes));
            return Err(Mismatch::new(expected, "none"));
        };
        all &= holds;
    }
    if wanted == all {
        return Ok(());
    }
    let texts: Vec<_> = found.preconditions.iter().map(|it| it.text.as_str()).collect();
    Err(Mismatch::new(
        format!("preconditions that are {wanted} at {}", show(sizes)),
        format!("{all} for '{}'", texts.join("' and '")),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(row: &Value) -> (Status, String, String) {
        let outcome = run(row, &Options::default()).unwrap_or_else(Outcome::from);
        (outcome.status, outcome.expected, outcome.got)
    }

    /// A row that holds, for tests that change one field of it.
    fn row() -> Value {
        json!({
            "tc": "def f(float(N) B, float(M) K) -> (A) { A(i) += B(i + k - 1) * K(k) }",
            "def": "f",
            "inputs": { "B": ["N"], "K": ["M"] },
            "expected": {
                "ranges": [{ "i": ["1", "N - M + 2"], "k": ["0", "M"] }],
                "rounds": [[["k"], ["i"]]],
                "outputs": { "A": ["N - M + 1"] },
                "origins": { "A": ["1"] },
                "warnings": ["uninitialized_reduction"],
                "error": null,
            },
            "samples": [{
                "sizes": { "N": 9, "M": 3 },
                "ranges": [{ "i": [1, 8], "k": [0, 3] }],
                "outputs": { "A": [7] },
            }],
        })
    }

    #[test]
    fn formulas_are_compared_by_value() {
        assert_eq!(outcome(&row()).0, Status::Passed);
        let mut other = row();
        other["expected"]["ranges"][0]["i"][1] = json!("(2*N - 2*M + 5)/2");
        assert_eq!(outcome(&other).0, Status::Passed);
        // Right at the sample, and wrong elsewhere.
        other["expected"]["ranges"][0]["i"][1] = json!("N - 1");
        let (status, expected, got) = outcome(&other);
        assert_eq!(status, Status::Failed);
        assert!(expected.starts_with("upper bound of the range of 'i' in statement 0 N - 1, "));
        assert!(got.starts_with("-M + N + 2, ") || got.starts_with("N - M + 2, "), "{got}");
    }

    #[test]
    fn every_field_is_compared() {
        let changes: [(&str, Value); 14] = [
            ("/def", json!("g")),
            ("/inputs/B", json!(["M"])),
            ("/expected/ranges/0/k/0", json!("1")),
            ("/expected/ranges/0", json!({ "i": ["1", "N - M + 2"] })),
            ("/expected/ranges", json!([])),
            ("/expected/rounds/0", json!([["i", "k"]])),
            ("/expected/outputs/A/0", json!("N - M")),
            ("/expected/outputs", json!({})),
            ("/expected/origins", json!({})),
            ("/expected/origins", json!({ "A": ["1"], "B": ["0"] })),
            ("/expected/warnings", json!([])),
            ("/expected/error", json!("ambiguous")),
            ("/samples/0/ranges/0/i/1", json!(9)),
            ("/samples/0/outputs/A/0", json!(8)),
        ];
        for (place, value) in changes {
            let mut row = row();
            *row.pointer_mut(place).expect("a field of the row") = value;
            let (status, expected, got) = outcome(&row);
            assert_eq!(status, Status::Failed, "{place}: {expected}, {got}");
        }
        let mut unknown = row();
        unknown["expected"]["strides"] = json!([]);
        assert!(outcome(&unknown).1.starts_with("one of the fields ranges, "));
    }

    #[test]
    fn preconditions_are_compared_by_truth() {
        let mut row = json!({
            "tc": "def f(float(I) B, float(J) C, float(K) D) -> (A) { A(i, j) = B(i) * C(j) * D(i + j) }",
            "def": "f",
            "inputs": { "B": ["I"], "C": ["J"], "D": ["K"] },
            "expected": {
                "ranges": [{ "i": ["0", "I"], "j": ["0", "J"] }],
                "rounds": [[["i", "j"]]],
                "outputs": { "A": ["I", "J"] },
                "warnings": ["unchecked_precondition"],
                "preconditions": ["0 < I && I + J < K + 2"],
                "error": null,
            },
        });
        assert_eq!(outcome(&row).0, Status::Passed);
        row["expected"]["preconditions"][0] = json!("I + J < K + 1");
        let (status, expected, _) = outcome(&row);
        assert_eq!(status, Status::Failed);
        assert!(expected.starts_with("preconditions that are "), "{expected}");
        row["expected"]["preconditions"] = json!([]);
        assert_eq!(outcome(&row).0, Status::Failed);
    }

    #[test]
    fn errors_have_names() {
        let mut row = json!({
            "tc": "def f(float(N) B) -> (A) { A(i) +=! B(i + k) }",
            "def": "f", "inputs": { "B": ["N"] },
            "expected": { "error": "ambiguous" },
        });
        assert_eq!(outcome(&row).0, Status::Passed);
        // All of these ask for a where clause.
        row["expected"]["error"] = json!("unknown_range");
        assert_eq!(outcome(&row).0, Status::Passed);
        row["expected"]["error"] = json!("empty_range");
        let (status, expected, got) = outcome(&row);
        assert_eq!((status, expected.as_str()), (Status::Failed, "error empty_range"));
        assert!(got.starts_with("error ambiguous ("), "{got}");
        row["accept_error"] = json!("ambiguous");
        assert_eq!(outcome(&row).0, Status::Passed);
        row["tc"] = json!("def f(float(N) B) -> (A) { A(i) = B(i) where i in 0:k }");
        assert_eq!(outcome(&row).0, Status::Failed);
    }
}
