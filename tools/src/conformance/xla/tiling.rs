//! Cases of tiles that pass through single instructions: XLA's newer scheme.
//!
//! Tiles are compared by value, at sizes and numbers of tiles and runtime variables. Where they differ, or
//! ours does not hold, the expected one must be wrong: enumeration of the elements decides.

use super::checks::{Pass, squeeze};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use tc_dialects::hlo::{
    self, Module,
    indexing::{Indexing, InstructionRef, PlacedTile, Tiling, Untiled},
};
use tc_ir::{
    Context, Expr, Interval, Var,
    text::parse_expr,
    tile::{DimTile, Order, ReshapeKind, Tile, TilingSpace, minimal_reshapes},
};

/// Runs a case.
type Check = fn(&Value) -> Result<Pass, String>;

/// The field `kind` of the cases, with what runs them.
const CHECKS: &[(&str, Check)] = &[
    ("tile_propagation", check_propagation),
    ("reshape_tile", check_reshape),
    ("minimal_reshapes", check_minimal_reshapes),
    ("tiling_space", check_space),
];

/// At how many points two tiles are compared.
const POINTS: u64 = 2000;
/// The largest size of a tile that is tried where any is allowed.
const MAX_SIZE: u64 = 9;
/// The most elements of a tile that are enumerated.
const MAX_ELEMENTS: usize = 1 << 16;

/// Whether the row is one of these cases.
pub(super) fn is_case(row: &Value) -> bool {
    CHECKS.iter().any(|(kind, _)| row["kind"] == *kind)
}

/// Runs a case.
pub(super) fn run(row: &Value) -> Result<Pass, String> {
    let check = CHECKS.iter().find(|(kind, _)| row["kind"] == *kind);
    check.ok_or("an unknown kind")?.1(row)
}

pub(super) fn text<'r>(row: &'r Value, key: &str) -> Result<&'r str, String> {
    row[key].as_str().ok_or_else(|| format!("no text '{key}' in the case"))
}

pub(super) fn list<'r>(row: &'r Value, key: &str) -> Result<&'r [Value], String> {
    row[key].as_array().map(Vec::as_slice).ok_or_else(|| format!("no list '{key}' in the case"))
}

pub(super) fn integers(row: &Value, key: &str) -> Result<Vec<i64>, String> {
    let values: Option<_> = list(row, key)?.iter().map(Value::as_i64).collect();
    values.ok_or_else(|| format!("no integers '{key}' in the case"))
}

fn index(value: &Value) -> Result<usize, String> {
    value.as_u64().and_then(|it| usize::try_from(it).ok()).ok_or_else(|| "no index".to_string())
}

pub(super) fn read(text: &str) -> Result<Module, String> {
    let (source, module, diagnostics) = hlo::read("case.hlo", text.as_bytes().to_vec());
    module.ok_or_else(|| source.render_all(&diagnostics))
}

/// `tid_0`, `ts_0` and `rt_0`.
fn named(name: &str) -> Option<Var> {
    let number = |prefix: &str| name.strip_prefix(prefix)?.parse().ok();
    number("tid_")
        .map(Var::Range)
        .or_else(|| number("ts_").map(Var::Dim))
        .or_else(|| number("rt_").map(Var::Runtime))
}

fn name_of(var: Var) -> String {
    match var {
        Var::Range(number) => format!("tid_{number}"),
        Var::Dim(number) => format!("ts_{number}"),
        Var::Runtime(number) => format!("rt_{number}"),
    }
}

fn parse(ctx: &Context, text: &str) -> Result<Expr, String> {
    parse_expr(ctx, text, &named).map_err(|error| format!("{error}, in {text}"))
}

/// The expressions between brackets behind a word.
fn bracketed(ctx: &Context, text: &str, word: &str) -> Result<Vec<Expr>, String> {
    let rest =
        text.split_once(&format!("{word} [")).ok_or_else(|| format!("no {word} in {text}"))?.1;
    let inner = rest.split_once(']').ok_or("no ']'")?.0;
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, sign) in inner.char_indices() {
        match sign {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    parts.iter().map(|it| it.trim()).filter(|it| !it.is_empty()).map(|it| parse(ctx, it)).collect()
}

fn dim_tiles(ctx: &Context, text: &str) -> Result<Vec<DimTile>, String> {
    let of = |word| bracketed(ctx, text, word);
    let (offsets, sizes, strides, bounds) =
        (of("offsets")?, of("sizes")?, of("strides")?, of("upper bounds")?);
    let rank = offsets.len();
    if [sizes.len(), strides.len(), bounds.len()] != [rank; 3] {
        return Err(format!("lists of different lengths in {text}"));
    }
    let dim = |i: usize| DimTile {
        offset: offsets[i],
        size: sizes[i],
        stride: strides[i],
        upper_bound: bounds[i],
    };
    Ok((0..rank).map(dim).collect())
}

/// A tile that a case expects.
fn parse_tile(ctx: &Context, text: &str) -> Result<PlacedTile, String> {
    let (tile, replica) = match text.split_once("replica ids") {
        Some((tile, replica)) => (tile, dim_tiles(ctx, replica)?.pop()),
        None => (text, None),
    };
    Ok(PlacedTile { array: 0, tile: Tile::new(dim_tiles(ctx, tile)?), replica })
}

pub(super) fn show(ctx: &Context, tile: &PlacedTile) -> String {
    let texts = |part: &dyn Fn(&DimTile) -> Expr| {
        let exprs = tile.tile.dims.iter().chain(&tile.replica).map(part);
        let texts: Vec<_> = exprs.map(|it| ctx.display_with(it, name_of).to_string()).collect();
        texts.join(", ")
    };
    format!(
        "offsets [{}] sizes [{}] strides [{}] upper bounds [{}] where {}",
        texts(&|it| it.offset),
        texts(&|it| it.size),
        texts(&|it| it.stride),
        texts(&|it| it.upper_bound),
        tile.tile.constraints.display_with(ctx, name_of)
    )
}

/// A tile with numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lanes {
    offset: i64,
    size: i64,
    stride: i64,
    upper_bound: i64,
}

impl Lanes {
    fn of(ctx: &Context, tile: &DimTile, point: &HashMap<Var, i64>) -> Result<Self, String> {
        let exprs = [tile.offset, tile.size, tile.stride, tile.upper_bound];
        let values = ctx.eval_all(&exprs, &|var| point.get(&var).copied());
        match values.map_err(|error| error.to_string())?[..] {
            [offset, size, stride, upper_bound] => Ok(Self { offset, size, stride, upper_bound }),
            _ => Err("no values".into()),
        }
    }

    /// The positions of the lanes that are not masked.
    fn positions(&self) -> impl Iterator<Item = i64> + Clone {
        let Self { offset, size, stride, upper_bound } = *self;
        (0..size)
            .map(move |lane| lane.saturating_mul(stride).saturating_add(offset))
            .filter(move |at| (0..upper_bound).contains(at))
    }

    /// Whether both have the same lanes, and mask the same ones. Where all are masked, they are the
    /// same.
    fn is_same(&self, other: &Self) -> bool {
        self.positions().eq(other.positions())
            && (self.positions().next().is_none() || self.size == other.size)
    }
}

fn lanes_of(
    ctx: &Context,
    tile: &PlacedTile,
    point: &HashMap<Var, i64>,
) -> Result<Vec<Lanes>, String> {
    tile.tile.dims.iter().chain(&tile.replica).map(|dim| Lanes::of(ctx, dim, point)).collect()
}

/// Whether the constraints of a tile hold.
pub(super) fn holds_at(
    ctx: &Context,
    tile: &Tile,
    point: &HashMap<Var, i64>,
) -> Result<bool, String> {
    let holds = tile.constraints.is_satisfied(ctx, &|var| point.get(&var).copied());
    holds.map_err(|error| error.to_string())
}

/// The unmasked elements, the last dimension fastest.
fn elements(lanes: &[Lanes]) -> Result<Vec<Vec<i64>>, String> {
    let mut found = vec![Vec::new()];
    for lanes in lanes {
        if MAX_ELEMENTS < found.len().saturating_mul(lanes.positions().count()) {
            return Err("too many elements to enumerate".into());
        }
        let longer = found
            .iter()
            .flat_map(|element| lanes.positions().map(move |at| [&element[..], &[at]].concat()));
        found = longer.collect();
    }
    Ok(found)
}

/// Seeded numbers.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }

    fn within(&mut self, interval: Interval) -> i64 {
        let count = interval.num_members().unwrap_or(1);
        interval.lo + i64::try_from(self.below(count.min(u64::from(u32::MAX)))).unwrap_or(0)
    }
}

/// Sizes and numbers of tiles, and runtime variables.
pub(super) fn points(space: &TilingSpace) -> Vec<HashMap<Var, i64>> {
    let mut seeded = Seeded(1);
    let mut point = |_| {
        let mut point = HashMap::new();
        for (number, dim) in (0..).zip(&space.dims) {
            let any = i64::try_from(seeded.below(MAX_SIZE) + 1).unwrap_or(1);
            let size = dim.tile_size.unwrap_or(any.min(dim.extent.max(1)));
            let tiles = (dim.extent - 1).max(0) / size;
            point.insert(Var::Dim(number), size);
            point.insert(Var::Range(number), seeded.within(Interval::new(0, tiles)));
        }
        for (number, &interval) in (0..).zip(&space.runtimes) {
            point.insert(Var::Runtime(number), seeded.within(interval));
        }
        point
    };
    (0..POINTS).map(&mut point).collect()
}

/// A step from a tile to another one.
pub(super) struct Step<'a, 'm> {
    pub(super) indexing: &'a Indexing<'m>,
    pub(super) tiling: &'a Tiling<'a, 'm>,
    /// The instruction.
    pub(super) at: InstructionRef,
    /// The operand that has the tile, or `None` if the result does.
    pub(super) operand: Option<usize>,
    pub(super) tile: &'a PlacedTile,
}

impl Step<'_, '_> {
    /// What the unmasked elements of the tile lead to at a point: the elements of operand or output
    /// `number`, with the number of the replica, if there is one.
    fn reached(
        &self,
        number: usize,
        point: &HashMap<Var, i64>,
    ) -> Result<BTreeSet<Vec<i64>>, String> {
        let ctx = self.indexing.context();
        let sets = match self.operand {
            None => self.indexing.output_to_input(self.at, self.tile.array),
            Some(operand) => self.indexing.input_to_output(self.at, operand),
        };
        let indexing = sets.get(number).and_then(|set| set.single()).ok_or("no single map")?;
        let map = &indexing.map;
        if !map.ranges.is_empty() || !map.runtimes.is_empty() {
            return Err("a map with variables".into());
        }
        let mut reached = BTreeSet::new();
        for element in
            elements(&lanes_of(ctx, &PlacedTile { replica: None, ..self.tile.clone() }, point)?)?
        {
            if !map.contains(ctx, &element, &[], &[]).map_err(|error| error.to_string())? {
                continue;
            }
            let mut to =
                map.evaluate(ctx, &element, &[], &[]).map_err(|error| error.to_string())?;
            if let Some(replica) = &indexing.replica {
                let replica = replica.evaluate(ctx, &element, &[], &[]);
                to.extend(replica.map_err(|error| error.to_string())?);
            }
            reached.insert(to);
        }
        Ok(reached)
    }

    /// Whether a tile has the elements that the step leads to. A step that does not say which replica is
    /// meant carries that of the tile before along.
    pub(super) fn is_right(
        &self,
        number: usize,
        tile: &PlacedTile,
        point: &HashMap<Var, i64>,
    ) -> Result<bool, String> {
        let ctx = self.indexing.context();
        let reached = self.reached(number, point)?;
        let rank = tile.tile.dims.len();
        let mut lanes = lanes_of(ctx, tile, point)?;
        if reached.iter().all(|element| element.len() == rank) {
            let before = self.tile.replica.map(|it| Lanes::of(ctx, &it, point)).transpose()?;
            let after = lanes.split_off(rank).pop();
            if !before.into_iter().zip(after).all(|(before, after)| before.is_same(&after)) {
                return Ok(false);
            }
        }
        let found: BTreeSet<_> = elements(&lanes)?.into_iter().collect();
        Ok(found == reached)
    }

    /// Whether a tile has other elements than those that the step leads to, for the sizes of a point.
    fn is_wrong_somewhere(
        &self,
        number: usize,
        tile: &PlacedTile,
        point: &HashMap<Var, i64>,
    ) -> Result<bool, String> {
        let counts: Vec<i64> = (0..)
            .zip(&self.tiling.space.dims)
            .map(|(dim, it)| {
                let size = point.get(&Var::Dim(dim)).copied().unwrap_or(1);
                (it.extent - 1).max(0) / size.max(1) + 1
            })
            .collect();
        for each in 0..counts.iter().copied().max().unwrap_or(0) {
            let mut point = point.clone();
            for (dim, count) in (0..).zip(&counts) {
                point.insert(Var::Range(dim), each.min(count - 1));
            }
            if !self.is_right(number, tile, &point)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Compares what is found of an operand or output with what is expected.
    fn compare(
        &self,
        number: usize,
        found: &PlacedTile,
        expected: &PlacedTile,
    ) -> Result<Pass, String> {
        let ctx = self.indexing.context();
        let explain = |reason: &str| {
            format!("expected {}, found {}: {reason}", show(ctx, expected), show(ctx, found))
        };
        let ranks = [found, expected].map(|it| (it.tile.dims.len(), it.replica.is_some()));
        if ranks[0] != ranks[1] {
            return Err(explain("another rank"));
        }
        let mut is_wrong = false;
        for point in points(&self.tiling.space) {
            // Nothing is said of what follows from a tile that is not right.
            if !holds_at(ctx, &self.tile.tile, &point)? {
                continue;
            }
            let holds = holds_at(ctx, &found.tile, &point)?;
            let (ours, theirs) = (lanes_of(ctx, found, &point)?, lanes_of(ctx, expected, &point)?);
            if holds && ours.iter().zip(&theirs).all(|(ours, theirs)| ours.is_same(theirs)) {
                continue;
            }
            if holds && !self.is_right(number, found, &point)? {
                return Err(explain(&format!("wrong at {point:?}")));
            }
            // Ours is right, or says that these sizes give no tile.
            let is_needed = match holds {
                true => self.is_right(number, expected, &point)?,
                false => !self.is_wrong_somewhere(number, expected, &point)?,
            };
            if is_needed {
                return Err(explain(&format!("another one at {point:?}")));
            }
            is_wrong = true;
        }
        let cost = |tile: &PlacedTile| -> u64 {
            let dims = tile.tile.dims.iter().chain(&tile.replica);
            let exprs = dims.flat_map(|it| [it.offset, it.size, it.stride, it.upper_bound]);
            exprs.map(|expr| u64::from(ctx.cost(expr))).sum()
        };
        let dims = |tile: &PlacedTile| (tile.tile.dims.clone(), tile.replica);
        match (cost(found), cost(expected)) {
            _ if is_wrong => Ok(Pass::Simpler),
            _ if dims(found) == dims(expected) => Ok(Pass::Exact),
            (ours, theirs) if ours < theirs => Ok(Pass::Simpler),
            (ours, theirs) if ours == theirs => Ok(Pass::Spelling),
            _ => Err(explain("more operators")),
        }
    }

    /// The tiles that the step leads to.
    pub(super) fn result(&self) -> Result<Vec<Option<PlacedTile>>, Untiled> {
        let found = match self.operand {
            None => self.tiling.operand_tiles(self.at, self.tile),
            Some(operand) => self.tiling.output_tiles(self.at, operand, self.tile),
        };
        let ctx = self.indexing.context();
        let space = &self.tiling.space;
        let simplified = |found: PlacedTile| PlacedTile {
            tile: found.tile.simplified(ctx, space),
            replica: found.replica.map(|dim| dim.map(|expr| space.simplify(ctx, expr))),
            ..found
        };
        found.map(|tiles| tiles.into_iter().map(|tile| tile.map(simplified)).collect())
    }
}

struct Case<'r, 'm> {
    row: &'r Value,
    indexing: &'r Indexing<'m>,
    tiling: &'r Tiling<'r, 'm>,
}

impl Case<'_, '_> {
    fn find(&self, name: &str) -> Result<InstructionRef, String> {
        let entry = self.indexing.module().entry;
        let computation = &self.indexing.module()[entry];
        match name {
            "root" => Ok(self.indexing.root(entry)),
            _ => computation
                .find(name)
                .map(|instruction| InstructionRef { computation: entry, instruction })
                .ok_or_else(|| format!("no instruction '{name}'")),
        }
    }

    /// The tile that XLA's tests start from: dimension `i` is that of the space, with stride `i + 1`.
    fn strided(&self, dims: &[i64]) -> Tile {
        let ctx = self.indexing.context();
        let space = &self.tiling.space;
        let dims = (1..).zip(dims).enumerate().map(|(number, (stride, &extent))| {
            let var = u32::try_from(number).unwrap_or(u32::MAX);
            let chosen = space.dims.get(number).and_then(|dim| dim.tile_size);
            let size = chosen.map_or(ctx.dim(var), |size| ctx.constant(size));
            DimTile {
                offset: ctx.mul(ctx.range(var), size),
                size,
                stride: ctx.constant(stride),
                upper_bound: ctx.constant(extent),
            }
        });
        Tile::new(dims.collect())
    }

    /// The tile that the case describes, of an array of these extents.
    fn input(&self, dims: &[i64]) -> Result<PlacedTile, String> {
        let ctx = self.indexing.context();
        let input = text(self.row, "input_tile")?;
        let root = || self.tiling.root_tiles().into_iter().next().ok_or("no root");
        let pick = |tiles: Vec<Option<PlacedTile>>, number: &str| {
            let number: usize = number.parse().map_err(|_| format!("no number: {number}"))?;
            tiles.into_iter().nth(number).flatten().ok_or_else(|| "no tile".to_string())
        };
        let step = |name: &str, tile: &PlacedTile| {
            let tiles = self.tiling.operand_tiles(self.find(name)?, tile);
            tiles.map_err(|error| error.to_string())
        };
        if let Some(bounds) = input.strip_prefix("strided_test_tile with ") {
            let mut tile = self.strided(dims);
            for (dim, bound) in tile.dims.iter_mut().zip(bracketed(ctx, bounds, "upper bounds")?) {
                dim.upper_bound = bound;
            }
            return Ok(tile.into());
        }
        if let Some(rest) = input.strip_prefix("result ") {
            let (number, name) = rest
                .split_once(" of propagating the strided test tile through ")
                .ok_or("an unknown tile")?;
            let shape = self.indexing.instruction(self.find(name)?).array().ok_or("no array")?;
            return pick(step(name, &self.strided(&shape.dims).into())?, number);
        }
        if let Some(rest) = input.strip_prefix("tile of ") {
            let rest = rest.strip_suffix(" for the root tile").ok_or("an unknown tile")?;
            let (name, number) = rest.split_once(" operand ").ok_or("an unknown tile")?;
            return pick(step(name, &root()?.into())?, number);
        }
        match input {
            "strided_test_tile" => Ok(self.strided(dims).into()),
            "root_tile" => Ok(root()?.into()),
            _ => Err(format!("an unknown tile: {input}")),
        }
    }
}

fn check_propagation(row: &Value) -> Result<Pass, String> {
    let module = read(text(row, "hlo")?)?;
    let indexing = Indexing::of(&module).like_xla();
    let ctx = indexing.context();
    let tiling = Tiling::of(&indexing, indexing.root(module.entry));
    let mut tiling = tiling.map_err(|error| error.to_string())?;
    if !row["tile_sizes"].is_null() && !tiling.space.choose(ctx, &integers(row, "tile_sizes")?) {
        return Err("the sizes do not fit".into());
    }
    let case = Case { row, indexing: &indexing, tiling: &tiling };
    let at = case.find(text(row, "instruction")?)?;
    let number = index(&row["index"])?;
    let operand = match text(row, "direction")? {
        "to_input" => None,
        "to_output" => Some(number),
        other => return Err(format!("an unknown direction: {other}")),
    };
    // XLA's tests give the tile of the first array, whichever is asked for.
    let first = if operand.is_some() { first_operand(&indexing, at) } else { at };
    let shape = hlo::indexing::array(&indexing.instruction(first).shape, 0).ok_or("no array")?;
    let mut tile = case.input(&shape.dims)?;
    if operand.is_none() {
        tile.array = number;
    }
    let step = Step { indexing: &indexing, tiling: &tiling, at, operand, tile: &tile };
    let found = step.result();
    let Some(expected) = row["expected"].as_array() else {
        let Ok(found) = found else { return Ok(Pass::Exact) };
        // XLA has none.
        for point in points(&tiling.space) {
            for (number, found) in found.iter().enumerate() {
                let Some(found) = found else { continue };
                if holds_at(ctx, &found.tile, &point)? && !step.is_right(number, found, &point)? {
                    return Err(format!(
                        "expected no tile, found {} for {number}",
                        show(ctx, found)
                    ));
                }
            }
        }
        return Ok(Pass::Simpler);
    };
    let found = found.map_err(|error| error.to_string())?;
    if found.len() != expected.len() {
        return Err(format!("expected {} tiles, found {}", expected.len(), found.len()));
    }
    let mut worst = Pass::Exact;
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        let expected = parse_tile(ctx, expected.as_str().ok_or("no text")?)?;
        let found = found.as_ref().ok_or("expected a tile")?;
        let pass = step.compare(number, found, &expected)?;
        if pass != Pass::Exact {
            worst = pass;
        }
    }
    Ok(worst)
}

fn first_operand(indexing: &Indexing, at: InstructionRef) -> InstructionRef {
    let operands = &indexing.instruction(at).operands;
    InstructionRef { instruction: operands.first().copied().unwrap_or(at.instruction), ..at }
}

fn shape_text(dims: &[i64]) -> String {
    let dims: Vec<String> = dims.iter().map(i64::to_string).collect();
    format!("f32[{}]", dims.join(","))
}

/// The row-major numbers of elements.
fn numbers(elements: &[Vec<i64>], dims: &[i64]) -> Vec<i64> {
    let number = |element: &Vec<i64>| {
        element.iter().zip(dims).fold(0, |number, (at, extent)| number * extent + at)
    };
    elements.iter().map(number).collect()
}

fn check_reshape(row: &Value) -> Result<Pass, String> {
    let (from, to) = (integers(row, "shape")?, integers(row, "to_shape")?);
    let module = read(&format!(
        "HloModule m\nENTRY e {{\n  p = {} parameter(0)\n  ROOT r = {} reshape(p)\n}}\n",
        shape_text(&from),
        shape_text(&to)
    ))?;
    let indexing = Indexing::of(&module);
    let (ctx, at) = (indexing.context(), indexing.root(module.entry));
    let operand = first_operand(&indexing, at);
    let mut tiling = Tiling::of(&indexing, operand).map_err(|error| error.to_string())?;
    let sizes = integers(row, "tile_sizes")?;
    if !tiling.space.choose(ctx, &sizes) {
        return Err("the sizes do not fit".into());
    }
    let texts = |key: &str| -> Result<Vec<Expr>, String> {
        let of = |text: &Value| {
            let expr = parse(ctx, text.as_str().ok_or("no text")?)?;
            Ok(ctx.substitute(expr, &|var| match var {
                Var::Dim(number) => Some(ctx.constant(*sizes.get(number as usize)?)),
                _ => None,
            }))
        };
        list(row, key)?.iter().map(of).collect()
    };
    let (offsets, bounds, strides) =
        (texts("offsets")?, texts("upper_bounds")?, integers(row, "strides")?);
    let dims = offsets.iter().zip(&bounds).zip(strides.iter().zip(&sizes));
    let dims = dims.map(|((&offset, &upper_bound), (&stride, &size))| DimTile {
        offset,
        size: ctx.constant(size),
        stride: ctx.constant(stride),
        upper_bound,
    });
    let tile = PlacedTile::from(Tile::new(dims.collect()));
    let step = Step { indexing: &indexing, tiling: &tiling, at, operand: Some(0), tile: &tile };
    let is_expected = row["expected"]["same_elements"] == Value::Bool(true);
    let found = match step.result() {
        Ok(found) => found.into_iter().next().flatten().ok_or("no tile")?,
        Err(_) if !is_expected => return Ok(Pass::Exact),
        Err(reason) => return Err(reason.to_string()),
    };
    for point in points(&tiling.space) {
        if !holds_at(ctx, &found.tile, &point)? {
            return Err(format!("no tile at {point:?}: {}", show(ctx, &found)));
        }
        let before = numbers(&elements(&lanes_of(ctx, &tile, &point)?)?, &from);
        let after = numbers(&elements(&lanes_of(ctx, &found, &point)?)?, &to);
        if before != after {
            return Err(format!(
                "expected {before:?}, found {after:?} at {point:?}: {}",
                show(ctx, &found)
            ));
        }
    }
    Ok(if is_expected { Pass::Exact } else { Pass::Simpler })
}

fn check_minimal_reshapes(row: &Value) -> Result<Pass, String> {
    let found = minimal_reshapes(&integers(row, "shape")?, &integers(row, "to_shape")?);
    let found = found.ok_or("no reshapes")?;
    let expected = list(row, "expected")?;
    let matches = |(found, expected): (&tc_ir::tile::MinimalReshape, &Value)| {
        let range = |range: &std::ops::Range<usize>| serde_json::json!([range.start, range.len()]);
        let kind = match found.kind {
            ReshapeKind::Identity => "Identity",
            ReshapeKind::IncreaseRank => "IncreaseRank",
            ReshapeKind::DecreaseRank => "DecreaseRank",
            ReshapeKind::Expand => "ExpandShape",
            ReshapeKind::Collapse => "CollapseShape",
            ReshapeKind::Generic => "Generic",
        };
        range(&found.from) == expected["input"]
            && range(&found.to) == expected["output"]
            && expected["category"] == kind
    };
    if found.len() == expected.len() && found.iter().zip(expected).all(matches) {
        Ok(Pass::Exact)
    } else {
        Err(format!("found {found:?}"))
    }
}

fn check_space(row: &Value) -> Result<Pass, String> {
    let module = read(text(row, "hlo")?)?;
    let indexing = Indexing::of(&module).like_xla();
    let ctx = indexing.context();
    let tiling = Tiling::of(&indexing, indexing.root(module.entry));
    let tiling = tiling.map_err(|error| error.to_string())?;
    let expected = &row["expected"];
    let dims = tiling.space.dims.iter().zip(&tiling.positions).map(|(dim, (_, position))| {
        let order = match dim.order {
            Order::Parallel => "parallel",
            Order::Sequential => "sequential",
        };
        serde_json::json!({ "type": order, "size": dim.extent, "dim_id": position })
    });
    let dims = Value::Array(dims.collect());
    if dims != expected["dimensions"] {
        return Err(format!("found the dimensions {dims}"));
    }
    let bounds = tiling.space.runtimes.iter().map(|it| serde_json::json!([it.lo, it.hi]));
    let bounds = Value::Array(bounds.collect());
    if bounds != expected["runtime_bounds"] {
        return Err(format!("found the bounds {bounds}"));
    }
    let roots = list(expected, "root_tiles")?;
    let found = tiling.root_tiles();
    if roots.len() != found.len() {
        return Err(format!("found {} roots", found.len()));
    }
    for (root, expected) in found.into_iter().zip(roots) {
        let expected = parse_tile(ctx, expected.as_str().ok_or("no text")?)?;
        let root = PlacedTile::from(root);
        if root.tile.dims != expected.tile.dims {
            return Err(format!("found {}", squeeze(&show(ctx, &root))));
        }
    }
    Ok(Pass::Exact)
}
