//! Cases that say what a program computes: exactly, and what padding does to it. Compiled code must agree
//! with that, without padding and with.

use super::{
    super::row::{self, Mismatch, array, field, flag, integer, object, optional},
    Options, Outcome, Status, front_end,
};
use num_bigint::BigInt;
use num_rational::BigRational;
use serde_json::{Map, Value, json};
use std::{collections::HashMap, fmt::Display};
use tc_backends::{
    Program as _, Request, Session,
    interp::Limits,
    languages::tml,
    program::Padding,
    tml::{
        compare,
        interp::{self, Machine, indices},
        value::{self, Bounded, Division},
    },
};
use tc_dialects::tml::syntax::Checked;

/// Elements, with padding, that the tensors of a program may have.
const MAX_ELEMENTS: u64 = 1 << 22;

/// What a row writes for the undefined value.
const UNDEFINED: &str = "undef";

/// An element of a row: a number, or undefined.
type Element = Option<BigRational>;

pub(super) fn run(row: &Value, _: &Options) -> Result<Outcome, Mismatch> {
    let (source, program) =
        front_end(row)?.map_err(|error| Mismatch::new("a well-formed program", error.message))?;
    let initial = elements(&program, field(row, "initial", object)?)?;
    let expected = elements(&program, field(row, "expected", object)?)?;
    let division = match flag(row, "controlled_division")? {
        true => Division::Controlled,
        false => Division::Plain,
    };
    let limits = Limits { elements: MAX_ELEMENTS, ..Limits::default() };
    let passed = |variable: usize, place: usize| initial.get(&variable)?[place].clone();
    let evaluate = |vector_length| {
        let machine = Machine::new(&program, vector_length, division, limits, passed);
        final_store(start(machine)?)
    };
    let plain = evaluate(1)?;
    expect(&program, &expected, &plain, "evaluated")?;
    let bounded = |variable: usize, place: usize| passed(variable, place).map(Bounded::exact);
    let bounded = start(Machine::new(&program, 1, division, limits, bounded))?;
    let tensors = compare::tensors(&bounded)
        .map_err(|error| Mismatch::new("an initial store", error.to_string()))?;
    let bounded = final_store(bounded)?;
    let compiled = |vector_length: Option<i64>| {
        let run = || -> Result<(), String> {
            let text = |error: &dyn Display| error.to_string();
            let session = Session::new("cpu").map_err(|it| text(&it))?;
            let compiled = tml::Program::new(session.context(), source.clone(), program.clone());
            let padding = vector_length.map(Padding::Length);
            let request = Request { padding, ..Request::default() };
            let executable = session.compile(&compiled, &request).map_err(|it| text(&it))?;
            let entry = compiled.entry(&request).map_err(|it| text(&it))?;
            let inputs: Vec<_> = entry.inputs.iter().map(|it| &tensors[&it.name]).collect();
            let mut buffers = executable.buffers(&inputs).map_err(|it| text(&it))?;
            executable.call(&mut buffers).map_err(|it| text(&it))?;
            let names = entry.outputs.iter().map(|it| it.name.as_str());
            let outputs = names.zip(buffers.outputs());
            compare::compare_padded(&bounded, outputs).map(drop).map_err(|it| text(&it))
        };
        let how =
            vector_length.map_or_else(String::new, |it| format!(", padded to multiples of {it}"));
        run().map_err(|error| Mismatch::new(format!("what the rules give (compiled{how})"), error))
    };
    compiled(None)?;
    let mut status = Status::Passed;
    for case in optional(row, "padding", array)?.unwrap_or_default() {
        let vector_length = field(case, "vector_length", integer)?;
        if vector_length < 1 {
            return Err(Mismatch::new("a vector length", vector_length.to_string()));
        }
        let how = format!("padded to multiples of {vector_length}");
        let padded = evaluate(vector_length)?;
        let is_equal = (0..program.variables.len()).all(|variable| {
            indices(&plain.tensor(variable).extents).all(|index| {
                plain.tensor(variable).get(&index) == padded.tensor(variable).get(&index)
            })
        });
        for (name, found) in
            [("in_bounds_equal", is_equal), ("padding_zero", padded.is_padding_zero())]
        {
            if found != flag(case, name)? {
                if !flag(row, "ambiguous")? {
                    return Err(Mismatch::new(
                        format!("{name} = {} ({how})", !found),
                        found.to_string(),
                    ));
                }
                status = Status::Documented;
            }
        }
        compiled(Some(vector_length))?;
    }
    let results = expected.keys().map(|variable| {
        let tensor = plain.tensor(*variable);
        (program.variables[*variable].name.clone(), nested(&tensor.extents, &tensor.elements))
    });
    let got = Value::Object(results.collect()).to_string();
    Ok(Outcome::new(status, row["expected"].to_string(), got))
}

fn start<V: value::Value>(
    machine: Result<Machine<'_, V>, interp::Error>,
) -> Result<Machine<'_, V>, Mismatch> {
    machine.map_err(|error| Mismatch::new("an initial store", error.to_string()))
}

fn final_store<V: value::Value>(mut machine: Machine<'_, V>) -> Result<Machine<'_, V>, Mismatch> {
    machine.run().map_err(|error| Mismatch::new("a final store", error.to_string()))?;
    Ok(machine)
}

fn expect(
    program: &Checked,
    expected: &HashMap<usize, Vec<Element>>,
    machine: &Machine<BigRational>,
    how: &str,
) -> Result<(), Mismatch> {
    for (variable, elements) in expected {
        let tensor = machine.tensor(*variable);
        for (index, expected) in indices(&tensor.extents).zip(elements) {
            let found = tensor.get(&index).expect("an index of the tensor");
            if found != expected {
                let name = &program.variables[*variable].name;
                let what = format!("{name}{index:?} = {} ({how})", show(expected));
                return Err(Mismatch::new(what, show(found)));
            }
        }
    }
    Ok(())
}

fn show(element: &Element) -> String {
    element.as_ref().map_or_else(|| UNDEFINED.to_string(), BigRational::to_string)
}

/// The tensors of a row, by the numbers of the variables.
fn elements(
    program: &Checked,
    tensors: &Map<String, Value>,
) -> Result<HashMap<usize, Vec<Element>>, Mismatch> {
    let mut found = HashMap::new();
    for (name, value) in tensors {
        let variable = program
            .variable(name)
            .ok_or_else(|| Mismatch::new("variables of the program", format!("'{name}'")))?;
        let mut elements = Vec::new();
        flatten(value, name, &program.variables[variable].ty.extents, &mut elements)?;
        found.insert(variable, elements);
    }
    Ok(found)
}

fn flatten(
    value: &Value,
    name: &str,
    extents: &[i64],
    elements: &mut Vec<Element>,
) -> Result<(), Mismatch> {
    let Some((extent, rest)) = extents.split_first() else {
        elements.push(element(value)?);
        return Ok(());
    };
    let values = array(value)?;
    if values.len() as i64 != *extent {
        return Err(Mismatch::new(
            format!("extent {extent} in '{name}'"),
            values.len().to_string(),
        ));
    }
    values.iter().try_for_each(|value| flatten(value, name, rest, elements))
}

/// An integer, `"p/q"`, or undefined.
fn element(value: &Value) -> Result<Element, Mismatch> {
    if value.as_str() == Some(UNDEFINED) {
        return Ok(None);
    }
    let text = match value {
        Value::String(text) => text.clone(),
        _ => integer(value)?.to_string(),
    };
    let (numerator, denominator) = text.split_once('/').unwrap_or((&text, "1"));
    let number = |text: &str| text.parse::<BigInt>().ok();
    let zero = BigInt::default();
    match (number(numerator), number(denominator).filter(|it| *it != zero)) {
        (Some(numerator), Some(denominator)) => Ok(Some(BigRational::new(numerator, denominator))),
        _ => Err(Mismatch::new("an integer, \"p/q\" or \"undef\"", row::describe(value))),
    }
}

/// Elements as rows have them.
fn nested(extents: &[usize], elements: &[Element]) -> Value {
    let Some((extent, rest)) = extents.split_first() else {
        return match elements.first() {
            Some(Some(number)) if number.is_integer() => {
                let text = number.to_string();
                text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number))
            }
            Some(element) => json!(show(element)),
            None => Value::Null,
        };
    };
    let length = elements.len() / extent.max(&1);
    elements.chunks(length.max(1)).map(|part| nested(rest, part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Value {
        json!({
            "program": "var a : [2] var b : [2] var c : [2] c = a / b",
            "initial": { "a": [1, 0], "b": [2, 0] },
            "expected": { "c": ["1/2", 0] },
            "controlled_division": true,
            "padding": [{ "vector_length": 4, "in_bounds_equal": true, "padding_zero": true }],
        })
    }

    #[test]
    fn values_and_padding_are_compared() {
        let outcome = run(&row(), &Options::default()).unwrap();
        assert_eq!((outcome.status, outcome.got.as_str()), (Status::Passed, r#"{"c":["1/2",0]}"#));
        let changes = [
            ("/expected/c/0", json!(1), "c[0] = 1 (evaluated)"),
            ("/expected/c", json!([1]), "extent 2 in 'c'"),
            ("/expected", json!({ "x": 1 }), "variables of the program"),
            ("/controlled_division", json!(false), "c[1] = 0 (evaluated)"),
            ("/initial/a/0", json!("1/0"), "an integer, \"p/q\" or \"undef\""),
            ("/padding/0/padding_zero", json!(false), "padding_zero = false (padded"),
            ("/padding/0/in_bounds_equal", json!(false), "in_bounds_equal = false (padded"),
            ("/padding/0/vector_length", json!(0), "a vector length"),
            ("/padding/0/vector_length", json!(1_i64 << 62), "an initial store"),
            ("/program", json!("var a"), "a well-formed program"),
        ];
        for (place, value, message) in changes {
            let mut row = row();
            *row.pointer_mut(place).expect("a field of the row") = value;
            let mismatch = run(&row, &Options::default()).unwrap_err();
            assert!(mismatch.expected.starts_with(message), "{place}: {mismatch:?}");
        }
    }
}
