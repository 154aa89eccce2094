//! Cases of HLO programs: single operations with inputs and outputs in the row, programs with
//! a folder of files, and malformed texts.

mod bound;
mod hostile;
mod program;
mod run;

use super::{
    Kind, Options, Outcome, Status,
    row::{self, Mismatch},
};
pub(super) use program::check;
use run::{Elements, agree};
use serde_json::Value;
use std::collections::BTreeSet;
use tc_backends::languages::hlo::Array;
use tc_dialects::{element::ElementType, hlo::ArrayShape};

/// The file that describes a program, in a folder with its texts, inputs and outputs.
pub(super) const CASE_FILE: &str = "case.json";
/// The file that says what is wrong with each text of a folder.
pub(super) const HOSTILE_FILE: &str = "expected.json";
/// The field of a row of such a file that gets the path of the folder.
pub(super) const FOLDER: &str = "folder";

/// The kinds of rows.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "hlo op",
        matches: |row| row.get("kind").and_then(Value::as_str) == Some("hlo_op"),
        run: run_op,
    },
    Kind {
        name: "hlo program",
        matches: |row| is_program(row) && !is_optional(row),
        run: program::run,
    },
    Kind {
        name: "hlo optional",
        matches: |row| is_program(row) && is_optional(row),
        run: program::run,
    },
    Kind { name: "hlo hostile", matches: hostile::matches, run: hostile::run },
];

/// The opcodes of a program, before and after optimization.
pub(super) fn opcodes(row: &Value) -> Vec<String> {
    let lists = ["opcodes", "opcodes_optimized"].into_iter().filter_map(|name| row.get(name));
    let opcodes = lists.filter_map(Value::as_array).flatten().filter_map(Value::as_str);
    opcodes.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

fn is_program(row: &Value) -> bool {
    ["inputs", "outputs", FOLDER].iter().all(|name| row.get(name).is_some())
}

fn is_optional(row: &Value) -> bool {
    row.get("optional").and_then(Value::as_bool) == Some(true)
}

fn field<'r>(row: &'r Value, name: &str) -> Result<&'r Value, Mismatch> {
    row.get(name).ok_or_else(|| Mismatch::new(format!("a field '{name}'"), "none"))
}

/// Runs a single operation and compares with the outputs of the row.
fn run_op(case: &Value, _options: &Options) -> Result<Outcome, Mismatch> {
    let text = row::string(field(case, "hlo")?)?;
    let inputs =
        row::array(field(case, "inputs")?)?.iter().map(array).collect::<Result<Vec<_>, _>>()?;
    let outputs = row::array(field(case, "outputs")?)?;
    let found = match run::run(text.to_string(), &inputs) {
        Ok((_, found)) => found,
        Err(reason) => return Err(Mismatch::new("a program that runs", reason)),
    };
    if found.len() != outputs.len() {
        let expected = format!("{} results", outputs.len());
        return Err(Mismatch::new(expected, found.len().to_string()));
    }
    for (number, (output, found)) in outputs.iter().zip(&found).enumerate() {
        let expected = array(output)?;
        let tolerance = |name: &str| output.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        let (rtol, atol) = (tolerance("rtol"), tolerance("atol"));
        if !expected.shape.is_compatible(&found.shape) {
            let show =
                |array: &Array| format!("{}{:?}", array.shape.element_type, array.shape.dims);
            return Err(Mismatch::new(show(&expected), show(found)));
        }
        let (expected, found) = (Elements::of(&expected), Elements::of(found));
        for position in 0..expected.count() {
            let bound = atol + rtol * expected.magnitude(position);
            if !agree(&expected, &found, position, bound) {
                return Err(Mismatch::new(
                    format!("output {number}[{position}] = {}", expected.show(position)),
                    found.show(position),
                ));
            }
        }
    }
    Ok(Outcome::new(Status::Passed, "the outputs", "the outputs"))
}

/// An array of a row: `dtype`, `shape`, and `data` in base64.
fn array(value: &Value) -> Result<Array, Mismatch> {
    let shape = shape(value)?;
    let bytes = decode_base64(row::string(field(value, "data")?)?)
        .ok_or_else(|| Mismatch::new("data in base64", "other text"))?;
    of_bytes(shape, bytes)
}

/// `dtype` and `shape` of an input or output.
fn shape(value: &Value) -> Result<ArrayShape, Mismatch> {
    let name = row::string(field(value, "dtype")?)?;
    let element = ElementType::from_name(name)
        .ok_or_else(|| Mismatch::new("an element type", format!("'{name}'")))?;
    let dims = row::array(field(value, "shape")?)?.iter().map(row::integer);
    Ok(ArrayShape::new(element, dims.collect::<Result<Vec<_>, _>>()?))
}

/// An array with these elements, as many as its shape says.
fn of_bytes(shape: ArrayShape, bytes: Vec<u8>) -> Result<Array, Mismatch> {
    if shape.num_bytes() != Some(bytes.len() as i64) {
        let expected = format!("{:?} bytes of data", shape.num_bytes());
        return Err(Mismatch::new(expected, bytes.len().to_string()));
    }
    Ok(Array { shape, bytes })
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut num_bits) = (0_u32, 0);
    for digit in text.trim_end_matches('=').bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        num_bits += 6;
        if 8 <= num_bits {
            num_bits -= 8;
            bytes.push((bits >> num_bits) as u8);
        }
    }
    Some(bytes)
}
