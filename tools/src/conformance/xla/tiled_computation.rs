//! Cases of tiles of whole fusions: of each instruction the sizes, the strides, and where the tile of each
//! program starts.
//!
//! Where XLA refuses a fusion or sizes, and ours does not, enumeration of the elements decides.

use super::checks::{Pass, same_map};
use super::tiling::{Step, holds_at, integers, list, points, read, show, text};
use serde_json::Value;
use std::collections::HashMap;
use tc_dialects::hlo::{
    Module, Opcode,
    indexing::{Indexing, InstructionRef, PlacedTile, Tiling, Untiled},
};
use tc_ir::Context;

/// Runs a case.
type Check = fn(&Value) -> Result<Pass, String>;

/// The field `kind` of the cases, with what runs them.
const CHECKS: &[(&str, Check)] = &[
    ("tiled_computation", check_computation),
    ("tile_analysis_decision", check_decision),
    ("tiling_error", check_error),
];

/// Whether the row is one of these cases.
pub(super) fn is_case(row: &Value) -> bool {
    CHECKS.iter().any(|(kind, _)| row["kind"] == *kind)
}

/// Runs a case.
pub(super) fn run(row: &Value) -> Result<Pass, String> {
    let check = CHECKS.iter().find(|(kind, _)| row["kind"] == *kind);
    check.ok_or("an unknown kind")?.1(row)
}

/// The tiling of what a case is about.
fn tiling<'i, 'm>(row: &Value, indexing: &'i Indexing<'m>) -> Result<Tiling<'i, 'm>, Untiled> {
    let root = indexing.root(indexing.module().entry);
    match row["scope"].as_str() {
        Some(scope) if scope.contains("fusions together") => {
            Tiling::through_fusions(indexing, root)
        }
        _ => Tiling::of(indexing, root),
    }
}

/// The extents of what a dimension of the space is cut in: as the case says, and the whole of a
/// dimension that a reduction sums over. The parameters of the root are those of what it contracts,
/// then those of its dimensions.
fn sizes(row: &Value, indexing: &Indexing, tiling: &Tiling) -> Result<Vec<i64>, String> {
    let parameters = integers(row, "root_tile_parameters")?;
    let own = tiling.positions.iter().filter(|(at, _)| *at == tiling.root()).count();
    let is_product = |at| indexing.instruction(at).opcode != Opcode::Reduce;
    let rank = tiling.root_tiles().first().map_or(0, |tile| tile.dims.len());
    let contracted = if is_product(tiling.root()) { own - rank } else { 0 };
    let mut seen: HashMap<InstructionRef, usize> = HashMap::new();
    let size = |(number, &(at, position)): (usize, &(InstructionRef, usize))| {
        let extent = tiling.space.dims[number].extent;
        if !is_product(at) && (at != tiling.root() || rank <= position) {
            return Ok(extent);
        }
        if at == tiling.root() {
            let place = if position < rank { contracted + position } else { position - rank };
            return parameters.get(place).copied().ok_or_else(|| "too few sizes".to_string());
        }
        let others = &row["other_tile_parameters"][&indexing.instruction(at).name];
        let place = seen.entry(at).or_default();
        *place += 1;
        others[*place - 1].as_i64().ok_or_else(|| "no size of a contraction".to_string())
    };
    tiling.positions.iter().enumerate().map(size).collect()
}

/// The order of loops that a case asks for.
fn scheduled(row: &Value, loops: Vec<usize>, rank: usize) -> Result<Vec<usize>, String> {
    match row["schedule"].as_str() {
        None => Ok(loops),
        // The last two dimensions of the result change places.
        Some("transposed_dot") if 2 <= rank => {
            let mut loops = loops;
            loops.swap(rank - 2, rank - 1);
            Ok(loops)
        }
        Some(other) => Err(format!("an unknown schedule: {other}")),
    }
}

/// An instruction with its tile, and those that it was reached through.
struct Place {
    at: InstructionRef,
    tile: PlacedTile,
    through: Vec<InstructionRef>,
}

/// The instruction that a path leads to from the root.
fn follow(
    indexing: &Indexing,
    tiling: &Tiling,
    module: &Module,
    path: &str,
) -> Result<Place, String> {
    let (first, steps) = path.split_once('.').unwrap_or((path, ""));
    let all = |wanted: &dyn Fn(InstructionRef) -> bool| {
        let tiles = tiling.tiles().map_err(|error| error.to_string())?;
        let found = tiles.into_iter().rfind(|(at, _)| wanted(*at));
        let (at, tile) = found.ok_or_else(|| format!("nothing is at {path}"))?;
        Ok::<_, String>(Place { at, tile, through: Vec::new() })
    };
    let number = |text: &str, name: &str, close: char| {
        let text = text.strip_prefix(name)?.strip_suffix(close)?;
        text.parse::<usize>().ok()
    };
    let mut place = if first == "root" {
        let tile = tiling.root_tiles().into_iter().next().ok_or("no root")?;
        Place { at: tiling.root(), tile: tile.into(), through: Vec::new() }
    } else if let Some(number) = number(first, "roots[", ']') {
        let computation = &module[tiling.root().computation];
        let instruction = *computation.root().operands.get(number).ok_or("no such root")?;
        all(&|at| at == InstructionRef { instruction, ..tiling.root() })?
    } else if let Some(number) = number(first, "parameter(", ')') {
        let number = i64::try_from(number).map_err(|error| error.to_string())?;
        all(&|at| indexing.instruction(at).parameter_number() == Some(number))?
    } else {
        return Err(format!("an unknown path: {path}"));
    };
    for step in steps.split('.').filter(|step| !step.is_empty()) {
        let number = number(step, "operand(", ')').ok_or("an unknown step")?;
        let tiles = tiling.operand_tiles(place.at, &place.tile);
        let tile = tiles.map_err(|error| error.to_string())?.into_iter().nth(number).flatten();
        let at = *tiling.sources(place.at).get(number).ok_or("no such operand")?;
        place.through.push(place.at);
        place = Place { at, tile: tile.ok_or("no tile")?, ..place };
    }
    Ok(place)
}

/// Compares a tile with what a case expects of it.
fn compare(
    row: &Value,
    indexing: &Indexing,
    tiling: &Tiling,
    expected: &Value,
) -> Result<Pass, String> {
    let ctx = indexing.context();
    let path = text(expected, "path")?;
    let place = follow(indexing, tiling, indexing.module(), path)?;
    let tile = place.tile.tile.simplified(ctx, &tiling.space);
    let constant = |expr| ctx.as_constant(expr).ok_or_else(|| format!("no number at {path}"));
    let sizes = tile.dims.iter().map(|lanes| constant(lanes.size));
    let sizes = sizes.collect::<Result<Vec<_>, _>>()?;
    if expected["sizes"].is_array() && sizes != integers(expected, "sizes")? {
        return Err(format!("found the sizes {sizes:?} at {path}"));
    }
    if expected["strides"].is_array() {
        let strides = integers(expected, "strides")?;
        for ((lanes, expected), size) in tile.dims.iter().zip(strides).zip(sizes) {
            // The stride of one lane means nothing.
            if size != 1 && constant(lanes.stride)? != expected {
                return Err(format!("another stride than {expected} at {path}"));
            }
        }
    }
    let Some(offsets) = expected["offsets"].as_str() else { return Ok(Pass::Exact) };
    let loops = tiling.loops(&place.through);
    let rank = tiling.root_tiles().first().map_or(0, |tile| tile.dims.len());
    let loops = scheduled(row, loops, rank)?;
    let found = tiling.offsets(&tile, &loops).ok_or_else(|| format!("no offsets at {path}"))?;
    if path.starts_with("roots") && !tiling.is_partition(place.at, &place.tile, &loops) {
        return Err(format!("the programs do not cut {path} into tiles"));
    }
    same_map(ctx, &found, offsets)
}

fn check_computation(row: &Value) -> Result<Pass, String> {
    let module = read(text(row, "hlo")?)?;
    let indexing = Indexing::of(&module).like_xla();
    let tiling = chosen(row, &indexing)?.map_err(|error| error.to_string())?;
    let mut worst = Pass::Exact;
    for expected in list(row, "expected")? {
        let pass = compare(row, &indexing, &tiling, expected)?;
        if pass != Pass::Exact {
            worst = pass;
        }
    }
    Ok(worst)
}

/// The tiling with the sizes of the case.
fn chosen<'i, 'm>(
    row: &Value,
    indexing: &'i Indexing<'m>,
) -> Result<Result<Tiling<'i, 'm>, Untiled>, String> {
    let mut tiling = match tiling(row, indexing) {
        Ok(tiling) => tiling,
        Err(reason) => return Ok(Err(reason)),
    };
    let sizes = sizes(row, indexing, &tiling)?;
    match tiling.space.choose(indexing.context(), &sizes) {
        true => Ok(Ok(tiling)),
        false => Err("the sizes do not fit".into()),
    }
}

/// Why a fusion cannot be computed by programs that each have one tile of the result.
fn refusal(indexing: &Indexing, tiling: &Tiling) -> Option<String> {
    let tiles = match tiling.tiles() {
        Ok(tiles) => tiles,
        Err(reason) => return Some(reason.to_string()),
    };
    let loops = tiling.loops(&[]);
    let root = &indexing.module()[tiling.root().computation];
    let stored: Vec<InstructionRef> = match root.root().opcode {
        Opcode::Tuple => root.root().operands.iter(),
        _ => [].iter(),
    }
    .map(|&instruction| InstructionRef { instruction, ..tiling.root() })
    .collect();
    for (at, tile) in &tiles {
        if !tiling.is_in_one_operand(*at, &tile.tile) {
            return Some("a tile has elements of several operands".into());
        }
        if stored.contains(at) && !tiling.is_partition(*at, tile, &loops) {
            return Some("the programs do not cut a result into tiles".into());
        }
    }
    None
}

/// Whether each step has the elements that enumeration finds.
fn verify(indexing: &Indexing, tiling: &Tiling) -> Result<(), String> {
    let ctx: &Context = indexing.context();
    for (at, tile) in tiling.tiles().map_err(|error| error.to_string())? {
        if tiling.sources(at).is_empty() {
            continue;
        }
        let step = Step { indexing, tiling, at, operand: None, tile: &tile };
        let found = step.result().map_err(|error| error.to_string())?;
        for point in points(&tiling.space) {
            for (number, found) in found.iter().enumerate() {
                let Some(found) = found else { continue };
                if holds_at(ctx, &found.tile, &point)? && !step.is_right(number, found, &point)? {
                    let found = show(ctx, found);
                    return Err(format!("wrong at {point:?} for operand {number}: {found}"));
                }
            }
        }
    }
    Ok(())
}

fn check_decision(row: &Value) -> Result<Pass, String> {
    let is_expected = row["expected"].as_bool().ok_or("no decision in the case")?;
    let module = read(text(row, "hlo")?)?;
    let indexing = Indexing::of(&module).like_xla();
    let found = tiling(row, &indexing).and_then(|tiling| tiling.tiles().map(|_| tiling));
    match (found, is_expected) {
        (Ok(_), true) | (Err(_), false) => Ok(Pass::Exact),
        (Err(reason), true) => Err(reason.to_string()),
        // XLA's code generation refuses it.
        (Ok(tiling), false) => verify(&indexing, &tiling).map(|()| Pass::Simpler),
    }
}

fn check_error(row: &Value) -> Result<Pass, String> {
    let module = read(text(row, "hlo")?)?;
    let indexing = Indexing::of(&module).like_xla();
    match chosen(row, &indexing)? {
        Err(_) => Ok(Pass::Exact),
        Ok(tiling) => match refusal(&indexing, &tiling) {
            Some(_) => Ok(Pass::Exact),
            None => Err("expected an error".into()),
        },
    }
}
