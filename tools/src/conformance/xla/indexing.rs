//! Cases of the indexing analysis of HLO: maps of instructions, of groups of instructions, between
//! layouts, and of epilogues.

use super::checks::{Pass, same_map, squeeze};
use serde_json::Value;
use std::collections::HashSet;
use tc_dialects::hlo::{
    self, ComputationId, InstructionId, Module, Payload, Shape,
    indexing::{Direction, Indexing, IndexingSet, InstructionRef, OperandIndexing, array},
};
use tc_ir::{IndexingMap, Var};

/// Runs a case.
type Check = fn(&Case) -> Result<Pass, String>;

/// The field `kind` of the cases, with what runs them.
const CHECKS: &[(&str, Check)] = &[
    ("instruction", check_instruction),
    ("physical_layout", check_instruction),
    ("grouped", check_grouped),
    ("epilogue", check_epilogue),
];

/// Whether the row is one of these cases.
pub(super) fn is_case(row: &Value) -> bool {
    row.get("hlo").is_some_and(Value::is_string)
        && CHECKS.iter().any(|(kind, _)| row["kind"] == *kind)
}

/// Runs a case.
pub(super) fn run(row: &Value) -> Result<Pass, String> {
    let text = row["hlo"].as_str().ok_or("no text 'hlo' in the case")?;
    let (source, module, diagnostics) = hlo::read("case.hlo", text.as_bytes().to_vec());
    let Some(module) = module else { return Err(source.render_all(&diagnostics)) };
    let (_, check) =
        CHECKS.iter().find(|(kind, _)| row["kind"] == *kind).ok_or("an unknown kind")?;
    check(&Case { row, module: &module, indexing: Indexing::of(&module).like_xla() })
}

struct Case<'r> {
    row: &'r Value,
    module: &'r Module,
    indexing: Indexing<'r>,
}

impl Case<'_> {
    fn index(&self) -> Result<usize, String> {
        let index = self.row["index"].as_u64().ok_or("no number 'index' in the case")?;
        usize::try_from(index).map_err(|error| error.to_string())
    }

    fn expected_lists(&self) -> Result<Vec<Vec<&str>>, String> {
        let lists = self.row["expected"].as_array().ok_or("no lists 'expected' in the case")?;
        lists.iter().map(texts).collect()
    }

    /// The instruction of a computation that a field names.
    fn find(&self, computation: ComputationId, name: &str) -> Result<InstructionRef, String> {
        let instruction = self.module[computation].find(name);
        let instruction = instruction.ok_or_else(|| format!("no instruction '{name}'"))?;
        Ok(InstructionRef { computation, instruction })
    }

    /// Compares sets of maps.
    fn compare(&self, found: &IndexingSet, expected: &[&str]) -> Result<Pass, String> {
        let printed = self.indexing.set_text(found);
        let explain =
            |reason: String| format!("expected {expected:?}, found {printed:?}: {reason}");
        if printed.len() != expected.len() {
            return Err(explain("another number of maps".into()));
        }
        let mut open: Vec<&str> = expected.to_vec();
        let unknown = |text: &&str| squeeze(text) == "unknownindexing";
        if found.has_unknown() {
            let position = open.iter().position(unknown);
            open.swap_remove(position.ok_or_else(|| explain("unknown".into()))?);
        }
        let mut worst = Pass::Exact;
        for map in found.maps() {
            let outcomes: Vec<_> = open.iter().map(|text| self.compare_map(map, text)).collect();
            // A map that is spelled as expected goes with that text, not with one like it.
            let best = outcomes
                .iter()
                .position(|it| *it == Ok(Pass::Exact))
                .or_else(|| outcomes.iter().position(Result::is_ok));
            let Some(best) = best else {
                let reasons: Vec<String> = outcomes.into_iter().filter_map(Result::err).collect();
                return Err(explain(reasons.join("; ")));
            };
            open.swap_remove(best);
            worst = worse(worst, outcomes.into_iter().nth(best).and_then(Result::ok));
        }
        Ok(worst)
    }

    /// Compares a map, what its runtime variables are, and the replica.
    fn compare_map(&self, found: &OperandIndexing, expected: &str) -> Result<Pass, String> {
        let (expected, replica) = match expected.split_once("replica id:") {
            Some((map, replica)) => (map, Some(replica)),
            None => (expected, None),
        };
        let (map, runtimes) = match expected.split_once("runtime variables:") {
            Some((map, runtimes)) => (map, runtimes),
            None => (expected, ""),
        };
        let ctx = self.indexing.context();
        let mut worst = same_map(ctx, &found.map, map.trim())?;
        // Where the domain is empty, nothing is read.
        if found.map.is_known_empty(ctx) {
            return Ok(worst);
        }
        let mut rest = runtimes.trim();
        for (number, runtime) in found.runtimes.iter().enumerate() {
            let after = rest.strip_prefix(&format!("rt{number}:"));
            let after = after.ok_or_else(|| format!("expected {rest}, found rt{number}"))?;
            let end = after.find(&format!("rt{}:", number + 1)).unwrap_or(after.len());
            let (line, next) = after.split_at(end);
            rest = next;
            let (source, map) = line.split_once(';').ok_or("no ';' in a runtime variable")?;
            let instruction = self.indexing.instruction(runtime.source.instruction());
            let spelled = self.indexing.source_text(runtime.source);
            if ![spelled.as_str(), &instruction.name].contains(&source.trim()) {
                return Err(format!("expected {source} as rt{number}, found {spelled}"));
            }
            worst = worse(worst, Some(self.compare_shown(&runtime.map, map)?));
        }
        if !rest.is_empty() {
            return Err(format!("expected {rest}"));
        }
        match (&found.replica, replica) {
            (None, None) => Ok(worst),
            (Some(found), Some(expected)) => {
                Ok(worse(worst, Some(self.compare_shown(found, expected)?)))
            }
            (found, _) => {
                Err(format!("found {} replica id", if found.is_some() { "a" } else { "no" }))
            }
        }
    }

    /// Compares a map that belongs to another: its runtime variables are shown where they are used.
    fn compare_shown(&self, found: &IndexingMap, expected: &str) -> Result<Pass, String> {
        let ctx = self.indexing.context();
        let mut found = found.clone();
        found.remove_unused(ctx, &|var| matches!(var, Var::Runtime(_)));
        same_map(ctx, &found, expected.trim())
    }
}

fn worse(a: Pass, b: Option<Pass>) -> Pass {
    match (&a, b) {
        (Pass::Exact, Some(b)) | (Pass::Simpler, Some(b @ Pass::Spelling)) => b,
        _ => a,
    }
}

fn texts(value: &Value) -> Result<Vec<&str>, String> {
    let list = value.as_array().ok_or("no list of texts in the case")?;
    list.iter().map(|text| text.as_str().ok_or_else(|| "no text in the case".into())).collect()
}

fn direction(row: &Value) -> Result<Direction, String> {
    match row["direction"].as_str() {
        Some("output_to_input") => Ok(Direction::OutputToInput),
        Some("input_to_output") => Ok(Direction::InputToOutput),
        other => Err(format!("unknown direction {other:?}")),
    }
}

fn check_instruction(case: &Case) -> Result<Pass, String> {
    let (index, direction) = (case.index()?, direction(case.row)?);
    let at = case.indexing.root(case.module.entry);
    let root = case.indexing.instruction(at);
    let mut sets = match direction {
        Direction::OutputToInput => case.indexing.output_to_input(at, index),
        Direction::InputToOutput => case.indexing.input_to_output(at, index),
    };
    if case.row["kind"] == "physical_layout" {
        let operands: Vec<&Shape> =
            case.module.entry().operands(root).map(|operand| &operand.shape).collect();
        for (number, set) in sets.iter_mut().enumerate() {
            let (output, operand) = match direction {
                Direction::OutputToInput => (index, number),
                Direction::InputToOutput => (number, index),
            };
            let output = array(&root.shape, output).ok_or("no such output")?;
            let operand = operands.get(operand).ok_or("no such operand")?;
            *set = case.indexing.physical(set, direction, output, operand);
        }
    }
    let expected = case.expected_lists()?;
    if sets.len() != expected.len() {
        return Err(format!("expected {} sets, found {}", expected.len(), sets.len()));
    }
    let mut worst = Pass::Exact;
    for (found, expected) in sets.iter().zip(&expected) {
        worst = worse(worst, Some(case.compare(found, expected)?));
    }
    Ok(worst)
}

fn check_grouped(case: &Case) -> Result<Pass, String> {
    let module = case.module;
    let (computation, scope) = match &case.row["scope"] {
        Value::String(name) => {
            (module.find(name).ok_or_else(|| format!("no computation '{name}'"))?, None)
        }
        Value::Array(_) => (module.entry, Some(texts(&case.row["scope"])?)),
        _ => (module.entry, None),
    };
    let start = case.row["start"].as_str().ok_or("no name 'start' in the case")?;
    let start = case.find(computation, start)?;
    let mut scope = match scope {
        Some(names) => Some(
            names
                .iter()
                .map(|name| Ok(case.find(computation, name)?.instruction))
                .collect::<Result<HashSet<InstructionId>, String>>()?,
        ),
        None => None,
    };
    let direct = case.row["direct"] == true;
    if direct {
        scope = Some(HashSet::from([start.instruction]));
    }
    let mut grouped = case.indexing.grouped(start, case.index()?, scope.as_ref());
    if direct {
        // Operands only; the start has no operand that is itself.
        grouped.remove(&start.instruction);
    }
    let expected = case.row["expected"].as_object().ok_or("no names 'expected' in the case")?;
    let checked = match &case.row["checked"] {
        Value::Null => None,
        names => Some(texts(names)?),
    };
    for (&id, found) in &grouped {
        let name = &module[computation][id].name;
        let is_checked = checked.as_ref().is_none_or(|names| names.contains(&name.as_str()));
        if is_checked && !found.is_empty() && !expected.contains_key(name) {
            return Err(format!("expected nothing of {name}, found maps"));
        }
    }
    let mut worst = Pass::Exact;
    for (name, expected) in expected {
        let id =
            resolve(module, computation, name).ok_or_else(|| format!("no instruction '{name}'"))?;
        let found = grouped.get(&id).cloned().unwrap_or_default();
        let outcome = case.compare(&found, &texts(expected)?);
        worst = worse(worst, Some(outcome.map_err(|reason| format!("{name}: {reason}"))?));
    }
    Ok(worst)
}

/// The instruction with this name; what a fusion passes as a parameter stands for it.
fn resolve(module: &Module, computation: ComputationId, name: &str) -> Option<InstructionId> {
    let own = module[computation].find(name);
    own.or_else(|| {
        let mut callers = module.computations().flat_map(|(_, caller)| {
            let calls = caller.instructions.iter().filter(|instruction| {
                instruction.called_computations().any(|callee| callee == computation)
            });
            calls.map(move |call| (caller, call))
        });
        let (caller, call) = callers.next()?;
        let passed = caller.find(name)?;
        let number = call.operands.iter().position(|&operand| operand == passed)?;
        module[computation].instructions().find_map(|(id, instruction)| {
            let is_it = matches!(instruction.payload, Payload::Parameter(it) if usize::try_from(it) == Ok(number));
            is_it.then_some(id)
        })
    })
}

fn check_epilogue(case: &Case) -> Result<Pass, String> {
    let name =
        |key: &str| case.row[key].as_str().ok_or_else(|| format!("no name '{key}' in the case"));
    let (from, to) = (name("from")?, name("to")?);
    let mut computations = case.module.computations();
    let (computation, found) = computations
        .find(|(_, each)| each.find(from).is_some() && each.find(to).is_some())
        .ok_or("no computation with both instructions")?;
    let to = found.find(to).ok_or("no such instruction")?;
    let set = case.indexing.epilogue(case.find(computation, from)?, case.index()?, to);
    match &case.expected_lists()?[..] {
        [expected] => case.compare(&set, expected),
        _ => Err("expected one list in the case".into()),
    }
}
