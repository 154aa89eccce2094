//! Cases that say whether a program is well-formed: its context and the types of its statements, or
//! which failure it has.

use super::{
    super::row::{Mismatch, array, field, flag, object, optional, string},
    Options, Outcome, Status, front_end,
};
use serde_json::{Value, json};
use tc_dialects::tml::syntax::Checked;

pub(super) fn run(row: &Value, _options: &Options) -> Result<Outcome, Mismatch> {
    let expected = field(row, "expected", |value| object(value).map(|_| value))?;
    let is_well_formed = flag(expected, "ok")?;
    let (ok, got) = match front_end(row)? {
        Ok((_, checked)) => (true, describe(&checked)),
        Err(error) => {
            let reason = error.reason.name().trim_start_matches("tml_");
            (false, json!({ "ok": false, "reason": reason, "message": error.message }))
        }
    };
    let agrees = ok == is_well_formed
        && match ok {
            true => {
                let types = optional(expected, "statement_types", array)?.map(<[Value]>::to_vec);
                optional(expected, "context", object)?
                    .is_none_or(|context| got["context"] == Value::Object(context.clone()))
                    && types.is_none_or(|types| got["statement_types"] == Value::Array(types))
            }
            false => {
                let reason = optional(expected, "reason", string)?;
                reason.is_none_or(|reason| got["reason"] == reason)
            }
        };
    let (expected, got) = (expected.to_string(), got.to_string());
    match agrees {
        true => Ok(Outcome::new(Status::Passed, expected, got)),
        false if flag(row, "ambiguous")? => Ok(Outcome::new(Status::Documented, expected, got)),
        false => Err(Mismatch::new(expected, got)),
    }
}

fn describe(checked: &Checked) -> Value {
    let context = checked.variables.iter();
    let context = context.map(|it| (it.name.clone(), json!(it.ty.extents))).collect();
    let types = checked.statements.iter().map(|statement| json!(statement.value.ty.extents));
    json!({
        "ok": true,
        "context": Value::Object(context),
        "statement_types": types.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_types_and_reasons_are_compared() {
        let good = json!({
            "program": "var a : [2] a = a",
            "expected": { "ok": true, "context": { "a": [2] }, "statement_types": [[2]] },
        });
        let bad = json!({
            "program": "var a : [2] a = b",
            "expected": { "ok": false, "reason": "use_undeclared" },
        });
        for row in [&good, &bad] {
            assert_eq!(run(row, &Options::default()).unwrap().status, Status::Passed);
        }
        let changes = [
            (&good, "/expected/ok", json!(false)),
            (&good, "/expected/context/a", json!([3])),
            (&good, "/expected/context", json!({})),
            (&good, "/expected/statement_types", json!([])),
            (&bad, "/expected/ok", json!(true)),
            (&bad, "/expected/reason", json!("syntax")),
        ];
        for (row, place, value) in changes {
            let mut row = row.clone();
            *row.pointer_mut(place).expect("a field") = value;
            assert!(run(&row, &Options::default()).is_err(), "{place}");
        }
    }
}
