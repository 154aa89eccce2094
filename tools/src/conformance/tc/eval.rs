//! Numeric cases: what a program computes, exactly.
//!
//! A case is interpreted as it is imported, then compiled in every [`Variant`]; each of
//! these is interpreted once more and run as native code. The interpreter goes first,
//! because it stays inside its tensors whatever the inputs are.

use super::{
    program::{Runnable, Session, Variant},
    values::{check_exact, nested, tensor},
};
use crate::conformance::{
    Options, Outcome, Status,
    row::{Mismatch, array, field, integer, object, optional},
};
use serde_json::{Map, Value, json};
use tc_backends::{
    interp,
    program::{Entry, Sizes, in_memory},
    runtime::{Number, Tensor},
};
use tc_dialects::mlir;

pub(super) fn run(row: &Value, _options: &Options) -> Result<Outcome, Mismatch> {
    let session = Session::new();
    let runnable = session.open(row)?;
    let sizes = field(row, "sizes", object)?.iter();
    let sizes = sizes.map(|(name, value)| Ok((name.clone(), integer(value)?)));
    let sizes = runnable.own_sizes(&sizes.collect::<Result<Sizes, Mismatch>>()?);
    let entry = runnable.entry(&sizes).map_err(|error| session.stopped("shapes", error))?;
    let inputs = inputs(row, &entry)?;
    let case = Case { row, runnable, entry };
    let outcomes = case.runnable.interpret(&inputs)?;
    case.check("interpreted", &outcomes, interp::Outcome::shape, |it| numbers(it).collect())?;
    for (outcome, output) in outcomes.iter().zip(&case.entry.outputs) {
        case.check_origin(&output.name, "interpreted", outcome.origin())?;
    }
    for variant in Variant::ALL {
        case.check_variant(&sizes, variant, &inputs)?;
    }
    let results = case.entry.outputs.iter().zip(&outcomes);
    let results =
        results.map(|(output, it)| (output.name.clone(), nested(it.shape(), numbers(it))));
    let got = Value::Object(results.collect());
    Ok(Outcome::new(Status::Passed, row["expected"].to_string(), got.to_string()))
}

fn numbers(outcome: &interp::Outcome) -> impl Iterator<Item = Number> {
    (0..outcome.num_elements()).map(|position| outcome.number(position))
}

/// The arguments: inputs, then what accumulated outputs hold before.
fn inputs(row: &Value, entry: &Entry) -> Result<Vec<Tensor>, Mismatch> {
    let given = field(row, "inputs", object)?;
    let none = Map::new();
    let initial = optional(row, "initial_outputs", object)?.unwrap_or(&none);
    let names: Vec<_> = entry.inputs.iter().chain(&entry.outputs).map(|it| &it.name).collect();
    if let Some(name) = given.keys().chain(initial.keys()).find(|name| !names.contains(name)) {
        return Err(Mismatch::new("inputs and outputs of the function", format!("'{name}'")));
    }
    let tensors = entry.inputs.iter().map(|input| {
        let name = &input.name;
        let value = given.get(name).or_else(|| initial.get(name));
        let value = value.ok_or_else(|| Mismatch::new(format!("a value of '{name}'"), "none"))?;
        tensor(value, name, in_memory(input.element), &input.dims())
    });
    tensors.collect()
}

struct Case<'r, 'c> {
    row: &'r Value,
    runnable: Runnable<'c>,
    entry: Entry,
}

impl Case<'_, '_> {
    /// Compares the results of one run.
    fn check<T>(
        &self,
        how: &str,
        results: &[T],
        shape: impl Fn(&T) -> &[usize],
        numbers: impl Fn(&T) -> Vec<Number>,
    ) -> Result<(), Mismatch> {
        let expected = field(self.row, "expected", object)?;
        for name in expected.keys() {
            if !self.entry.outputs.iter().any(|output| output.name == *name) {
                return Err(Mismatch::new("outputs of the function", format!("'{name}'")));
            }
        }
        if results.len() != self.entry.outputs.len() {
            let expected = format!("{} outputs ({how})", self.entry.outputs.len());
            return Err(Mismatch::new(expected, results.len().to_string()));
        }
        for (output, result) in self.entry.outputs.iter().zip(results) {
            let name = &output.name;
            let value = expected.get(name);
            let value =
                value.ok_or_else(|| Mismatch::new(format!("values of output '{name}'"), "none"))?;
            check_exact(value, name, how, shape(result), numbers(result).into_iter())?;
        }
        Ok(())
    }

    /// Compares where an output starts.
    fn check_origin(&self, name: &str, how: &str, found: &[i64]) -> Result<(), Mismatch> {
        let origins = optional(self.row, "origins", object)?;
        let expected = match origins.and_then(|origins| origins.get(name)) {
            Some(origin) => array(origin)?.iter().map(integer).collect::<Result<Vec<_>, _>>()?,
            None => vec![0; found.len()],
        };
        if expected == found {
            return Ok(());
        }
        Err(Mismatch::new(
            format!("origin {} of '{name}' ({how})", json!(expected)),
            json!(found).to_string(),
        ))
    }

    /// Compiles the function in one way, interprets that, and runs it.
    fn check_variant(
        &self,
        sizes: &Sizes,
        variant: Variant,
        inputs: &[Tensor],
    ) -> Result<(), Mismatch> {
        let Runnable { session, def, .. } = self.runnable;
        let what = variant.what;
        let module = self.runnable.lower(sizes, variant)?;
        let function = mlir::ops(mlir::block_ref(module.body()))
            .into_iter()
            .find(|op| {
                mlir::is(*op, "func.func") && mlir::string_attr(*op, "sym_name") == Some(def.name())
            })
            .ok_or_else(|| {
                Mismatch::new(format!("a func.func '{}' ({what})", def.name()), "none")
            })?;
        let how = format!("interpreted, {what}");
        let outcomes = self.runnable.interpret_op(function, &how, inputs)?;
        self.check(&how, &outcomes, interp::Outcome::shape, |it| numbers(it).collect())?;

        let how = format!("compiled, {what}");
        let compiled = self.runnable.compile(&module, &how)?;
        let function = compiled
            .function(def.name())
            .ok_or_else(|| Mismatch::new(format!("a function '{}' ({how})", def.name()), "none"))?;
        let arguments: Vec<_> = inputs.iter().collect();
        let outputs = function
            .run(&arguments)
            .map_err(|error| session.stopped(&format!("a result ({how})"), error))?;
        self.check(&how, &outputs, Tensor::shape, |it| it.numbers().collect())?;
        let signature = function.signature();
        for number in signature.outputs() {
            let argument = &signature.arguments[number];
            let origin = match &argument.origins {
                Some(origins) => origins.evaluate(sizes),
                None => Some(vec![0; argument.shape.len()]),
            };
            let origin = origin.ok_or_else(|| {
                Mismatch::new(format!("an origin of '{}' ({how})", argument.name), "no value")
            })?;
            self.check_origin(&argument.name, &how, &origin)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(row: &Value) -> (Status, String, String) {
        let outcome = run(row, &Options::default()).unwrap_or_else(Outcome::from);
        (outcome.status, outcome.expected, outcome.got)
    }

    fn row() -> Value {
        json!({
            "tc": "def f(float(N) A, int32(M) I) -> (O, S) { O(i) = A(i - 1) S(j) += A(I(j)) }",
            "def": "f",
            "sizes": { "N": 3, "M": 2 },
            "inputs": { "A": [1, 2.5, 3], "I": [2, 0] },
            "initial_outputs": { "S": [10, 20] },
            "expected": { "O": [1, 2.5, 3], "S": [13, 21] },
            "origins": { "O": [1] },
        })
    }

    #[test]
    fn values_and_origins_are_compared() {
        let (status, _, got) = outcome(&row());
        assert_eq!((status, got.as_str()), (Status::Passed, r#"{"O":[1,2.5,3],"S":[13,21]}"#));
        let changes = [
            ("/expected/O/2", json!(4), "O[2] = 4 (interpreted)"),
            ("/expected/S", json!([13]), "as many values of 'S' as the case has (interpreted)"),
            ("/expected", json!({ "O": [1, 2.5, 3] }), "values of output 'S'"),
            ("/expected", json!({ "X": 1 }), "outputs of the function"),
            ("/origins", json!({}), "origin [0] of 'O' (interpreted)"),
            ("/origins/O/0", json!(2), "origin [2] of 'O' (interpreted)"),
            ("/initial_outputs", json!({}), "a value of 'S'"),
            ("/inputs/A", json!([1, 2]), "3 elements in dimension 0 of 'A'"),
            ("/inputs/I/0", json!(3), "a result (the interpreter)"),
            ("/inputs/I/0", json!(0.5), "numbers of type int32 in 'I'"),
            (
                "/inputs",
                json!({ "A": [1, 2, 3], "I": [0, 0], "X": 1 }),
                "inputs and outputs of the function",
            ),
            ("/sizes", json!({ "N": 3 }), "shapes"),
            ("/def", json!("g"), "a function"),
            ("/tc", json!("def f"), "a valid program"),
        ];
        for (place, value, message) in changes {
            let mut row = row();
            *row.pointer_mut(place).expect("a field of the row") = value;
            let (status, expected, got) = outcome(&row);
            assert_eq!(status, Status::Failed, "{place}");
            assert!(expected.starts_with(message), "{place}: {expected}, {got}");
        }
    }

    #[test]
    fn sizes_do_not_exhaust_memory() {
        let row = json!({
            "tc": "def f(float a) -> (O) { O(i) = a where i in 0:2000000000 }",
            "def": "f", "sizes": {}, "inputs": { "a": 1 }, "expected": { "O": [] },
        });
        assert_eq!(outcome(&row).0, Status::Failed);
    }
}
