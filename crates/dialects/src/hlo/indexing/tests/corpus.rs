//! Every instruction of every module of the conformance corpus: both directions, and where arrays
//! are small, that they hold for the same pairs.

use super::*;
use std::{fs, path::Path};

/// The most pairs that are compared.
const MAX_PAIRS: i64 = 1 << 10;

fn texts(folder: &Path, found: &mut Vec<String>) {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() && !path.ends_with("hostile") {
            texts(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "hlo") {
            found.push(fs::read_to_string(path).unwrap());
        } else if path.extension().is_some_and(|ending| ending == "jsonl") {
            let rows = fs::read_to_string(path).unwrap();
            for line in rows.lines() {
                let row: serde_json::Value = serde_json::from_str(line).unwrap();
                found.extend(row["hlo"].as_str().map(str::to_owned));
            }
        }
    }
}

#[test]
fn both_directions_agree() {
    let conformance = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance");
    let mut all = Vec::new();
    texts(&conformance.join("hlo"), &mut all);
    texts(&conformance.join("xla"), &mut all);
    assert!(700 < all.len());
    let (mut compared, mut unknown) = (0, BTreeSet::new());
    for text in &all {
        let source = SourceFile::new("corpus.hlo", text);
        let Some(module) = syntax::parse_module(&source).0 else { continue };
        let indexing = Indexing::of(&module);
        for (computation, callee) in module.computations() {
            for (instruction, _) in callee.instructions() {
                let at = InstructionRef { computation, instruction };
                compared += compare(&indexing, at, &mut unknown);
            }
        }
    }
    assert!(5000 < compared, "{compared}");
    let expected = [
        Opcode::Call,
        Opcode::Cholesky,
        Opcode::Conditional,
        Opcode::CustomCall,
        Opcode::Fft,
        Opcode::Fusion,
        Opcode::RngBitGenerator,
        Opcode::TriangularSolve,
        Opcode::While,
    ];
    let others: Vec<_> = unknown.iter().filter(|opcode| !expected.contains(opcode)).collect();
    assert!(others.is_empty(), "without maps: {others:?}");
}

/// Compares the maps of one instruction, and returns how many pairs of an output and an operand it
/// compared.
fn compare(indexing: &Indexing, at: InstructionRef, unknown: &mut BTreeSet<Opcode>) -> usize {
    let it = indexing.instruction(at);
    let computation = &indexing.module()[at.computation];
    let outputs = num_arrays(&it.shape);
    let forward: Vec<_> =
        (0..it.operands.len()).map(|operand| indexing.input_to_output(at, operand)).collect();
    let mut compared = 0;
    let backwards = (0..outputs).map(|output| (output, indexing.output_to_input(at, output)));
    for (output, backward) in backwards {
        assert_eq!(backward.len(), it.operands.len());
        for (operand, (to_input, id)) in backward.iter().zip(&it.operands).enumerate() {
            let to_output = &forward[operand][output];
            if to_input.has_unknown() || to_output.has_unknown() {
                unknown.insert(it.opcode);
                continue;
            }
            let shape = &computation[*id].shape;
            for number in 0..num_arrays(shape) {
                let count = |dims: Vec<i64>| dims.iter().product::<i64>();
                let (from, to) = (count(dims_of(shape, number)), count(dims_of(&it.shape, output)));
                let box_size = |set: &IndexingSet| {
                    set.maps().iter().map(|map| points(indexing, map)).max().unwrap_or(0)
                };
                let largest = box_size(to_input).max(box_size(to_output));
                if MAX_PAIRS < from.saturating_mul(to) || MAX_PAIRS < largest {
                    continue;
                }
                let data = |_: &str, index: &[i64]| index.iter().sum::<i64>() % 3;
                let to_input = pairs_of_set(indexing, to_input, number, &data);
                let to_output = pairs_of_set(indexing, to_output, number, &data);
                assert_eq!(to_input, swapped(to_output), "{} {}", it.name, it.opcode);
                compared += 1;
            }
        }
    }
    compared
}

/// The number of points of the box around the domain, without runtime variables.
fn points(indexing: &Indexing, map: &OperandIndexing) -> i64 {
    let bounds = map.map.intervals(indexing.context());
    map.map
        .vars()
        .filter(|(var, _)| !matches!(var, Var::Runtime(_)))
        .map(|(var, _)| bounds.of(var).num_members().map_or(i64::MAX, |count| count as i64))
        .fold(1, i64::saturating_mul)
}
