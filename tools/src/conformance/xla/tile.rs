//! Cases of symbolic tiles: what tiles of a result reach of an operand.
//!
//! Tiles are compared by value, over sizes of the tile: where the constraints of both hold, both
//! have to be the same progressions, and ours may have no more operators. Where they differ, or
//! only ours holds, enumeration decides.

use super::checks::{Pass, of_map, parse, squeeze};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use tc_dialects::hlo::{
    self,
    indexing::{Indexing, IndexingSet},
};
use tc_ir::{
    ConstraintExpression, Context, Expr, IndexingMap, Interval, Var, Variable,
    simplify::Simplifier,
    text::{default_name, parse_expr},
    tile::{SymbolicTile, candidate_sizes},
};

/// Runs a case.
type Check = fn(&Value) -> Result<Pass, String>;

/// The field `kind` of the cases, with what runs them.
const CHECKS: &[(&str, Check)] = &[
    ("symbolic_tile", check_tile),
    ("symbolic_tile_stride", check_stride),
    ("tiling_constraints", check_constraints),
    ("tiling_satisfies", check_satisfies),
    ("valid_tilings", check_valid_tilings),
    ("flat_tilings", check_flat_tilings),
    ("tiling_space_simplify", check_simplify),
];

/// The most sizes of tiles that a case is looked at with.
const MAX_SIZES: usize = 1 << 12;
/// The most points of a tile that are enumerated.
const MAX_POINTS: i64 = 1 << 16;
/// The largest extent all sizes of which are tried.
const MAX_FULL: i64 = 16;

/// Whether the row is one of these cases.
pub(super) fn is_case(row: &Value) -> bool {
    CHECKS.iter().any(|(kind, _)| row["kind"] == *kind)
}

/// Runs a case.
pub(super) fn run(row: &Value) -> Result<Pass, String> {
    let check = CHECKS.iter().find(|(kind, _)| row["kind"] == *kind);
    check.ok_or("an unknown kind")?.1(row)
}

fn text<'r>(row: &'r Value, key: &str) -> Result<&'r str, String> {
    row[key].as_str().ok_or_else(|| format!("no text '{key}' in the case"))
}

fn integers(value: &Value) -> Result<Vec<i64>, String> {
    let values: Option<_> = value.as_array().and_then(|it| it.iter().map(Value::as_i64).collect());
    values.ok_or_else(|| "no integers in the case".to_string())
}

/// Calls `use_of` with the maps of the root, one per operand of the case.
fn with_maps<T>(
    row: &Value,
    use_of: impl Fn(&Context, &[IndexingMap]) -> Result<T, String>,
) -> Result<T, String> {
    if let Some(map) = row["map"].as_str() {
        let ctx = Context::new();
        let mut map = parse(&ctx, map)?;
        if !map.constraints.is_empty() {
            map.simplify(&ctx);
        }
        return use_of(&ctx, &[map]);
    }
    let (source, module, diagnostics) =
        hlo::read("case.hlo", text(row, "hlo")?.as_bytes().to_vec());
    let module = module.ok_or_else(|| source.render_all(&diagnostics))?;
    let indexing = Indexing::of(&module).like_xla();
    let sets = indexing.output_to_input(indexing.root(module.entry), 0);
    let single = |set: &IndexingSet| {
        let map = set.single().map(|it| it.map.clone());
        map.ok_or_else(|| "expected one map of an operand".to_string())
    };
    let maps = match row["operand"].as_u64() {
        None => sets.iter().map(single).collect::<Result<Vec<_>, _>>()?,
        Some(operand) => {
            let operand = usize::try_from(operand).map_err(|error| error.to_string())?;
            vec![single(sets.get(operand).ok_or("no such operand")?)?]
        }
    };
    use_of(indexing.context(), &maps)
}

fn constraints(ctx: &Context, text: &str) -> Result<ConstraintExpression, String> {
    if text == "always satisfied" {
        return Ok(ConstraintExpression::always_satisfied());
    }
    ConstraintExpression::parse(ctx, text, &of_map).map_err(|error| format!("{error}, in {text}"))
}

/// A tile that a case expects. Range variables are runtimes.
struct Expected {
    offsets: Vec<Expr>,
    sizes: Vec<Expr>,
    strides: Vec<Expr>,
    constraints: ConstraintExpression,
    runtimes: Vec<Interval>,
}

impl Expected {
    fn of(ctx: &Context, row: &Value) -> Result<Self, String> {
        let results = |key: &str| Ok::<_, String>(parse(ctx, text(row, key)?)?.results);
        let texts = row["rt_vars"].as_array().ok_or("no list 'rt_vars' in the case")?;
        let runtimes = texts.iter().map(|text| {
            let bounds = text.as_str().and_then(|it| it.split_once("in [")?.1.strip_suffix(']'));
            let (lo, hi) = bounds.and_then(|it| it.split_once(", ")).ok_or("no bounds")?;
            let number = |text: &str| text.parse::<i64>().map_err(|_| format!("no number: {text}"));
            Ok::<_, String>(Interval::new(number(lo)?, number(hi)?))
        });
        Ok(Self {
            offsets: results("offset_map")?,
            sizes: results("size_map")?,
            strides: results("stride_map")?,
            constraints: constraints(ctx, text(row, "constraints")?)?,
            runtimes: runtimes.collect::<Result<_, String>>()?,
        })
    }
}

/// The sizes that tiles of the dimensions of a map are tried with.
fn sizes(extents: &[i64]) -> Vec<Vec<i64>> {
    let choices: Vec<Vec<i64>> = extents
        .iter()
        .map(|&extent| {
            let all: BTreeSet<i64> = if extent <= MAX_FULL {
                (1..=extent).collect()
            } else {
                [1, 2, 3, 5, 6, 8, 12, 16, extent / 2, extent - 1, extent].into()
            };
            all.into_iter().collect()
        })
        .collect();
    let total: usize = choices.iter().map(Vec::len).product();
    let tile = |mut number: usize| {
        let size = |choice: &Vec<i64>| {
            let place = number % choice.len();
            number /= choice.len();
            choice[place]
        };
        choices.iter().map(size).collect()
    };
    // An odd step meets every size of each dimension.
    let step = total.div_ceil(MAX_SIZES) | 1;
    (0..total).step_by(step).map(tile).collect()
}

/// A progression with a positive stride, or with stride 0 where it has one member.
fn normal([offset, size, stride]: [i64; 3]) -> [i64; 3] {
    match (size, stride) {
        (1, _) => [offset, 1, 0],
        (_, ..0) => [offset + (size - 1) * stride, size, -stride],
        _ => [offset, size, stride],
    }
}

/// A tile of the result of a map, by the sizes and the numbers of tiles before it.
struct Tile<'a> {
    ctx: &'a Context,
    map: &'a IndexingMap,
    sizes: &'a [i64],
    numbers: &'a [i64],
    runtimes: &'a [i64],
}

impl Tile<'_> {
    /// The values of the variables of a [`SymbolicTile`].
    fn value_of(&self, var: Var) -> Option<i64> {
        let (values, number) = match var {
            Var::Dim(number) => (self.sizes, number),
            Var::Range(number) => (self.numbers, number),
            Var::Runtime(number) => (self.runtimes, number),
        };
        values.get(number as usize).copied()
    }

    /// The offset, size and stride.
    fn values(&self, exprs: [Expr; 3]) -> Result<[i64; 3], String> {
        let values = self.ctx.eval_all(&exprs, &|var| self.value_of(var));
        let values = values.map_err(|error| error.to_string())?;
        Ok([values[0], values[1], values[2]])
    }

    fn progression(&self, exprs: [Expr; 3]) -> Result<[i64; 3], String> {
        self.values(exprs).map(normal)
    }

    /// The value of a result at the first point of the tile.
    fn first(&self, result: Expr) -> Result<i64, String> {
        let intervals = self.map.intervals(self.ctx);
        let value_of = |var| match var {
            Var::Dim(number) => Some(self.sizes[number as usize] * self.numbers[number as usize]),
            Var::Range(_) => Some(intervals.of(var).lo),
            Var::Runtime(_) => self.value_of(var),
        };
        self.ctx.eval(result, &value_of).map_err(|error| error.to_string())
    }

    fn holds(&self, constraints: &ConstraintExpression) -> Result<bool, String> {
        let holds = constraints.is_satisfied(self.ctx, &|var| self.value_of(var));
        holds.map_err(|error| error.to_string())
    }

    /// Whether the progression has the values that the result takes, by enumeration.
    fn is_image(&self, result: Expr, progression: [i64; 3]) -> Result<bool, String> {
        let vars: Vec<Var> = self.ctx.vars(result).into_iter().collect();
        let intervals = self.map.intervals(self.ctx);
        let mut points: Vec<HashMap<Var, i64>> = vec![HashMap::new()];
        for var in vars {
            let values = match var {
                Var::Dim(number) => {
                    let (size, before) =
                        (self.sizes[number as usize], self.numbers[number as usize]);
                    before * size..(before + 1) * size
                }
                Var::Range(_) => intervals.of(var).lo..intervals.of(var).hi + 1,
                Var::Runtime(number) => {
                    let value = self.runtimes[number as usize];
                    value..value + 1
                }
            };
            let count = i64::try_from(points.len()).map_err(|error| error.to_string())?;
            if MAX_POINTS < count * (values.end - values.start) {
                return Err("too many points to enumerate".into());
            }
            let extended = points.iter().flat_map(|point| {
                values.clone().map(move |value| {
                    let mut point = point.clone();
                    point.insert(var, value);
                    point
                })
            });
            points = extended.collect();
        }
        let values = points.iter().map(|it| self.ctx.eval(result, &|var| it.get(&var).copied()));
        let values: BTreeSet<i64> =
            values.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        let [offset, size, stride] = progression;
        let members: BTreeSet<i64> = (0..size).map(|k| offset + k * stride).collect();
        Ok(values == members)
    }
}

fn extents(ctx: &Context, map: &IndexingMap) -> Vec<i64> {
    let intervals = map.intervals(ctx);
    (0..).zip(&map.dims).map(|(number, _)| intervals.of(Var::Dim(number)).hi + 1).collect()
}

fn progressions<'t>(
    offsets: &'t [Expr],
    sizes: &'t [Expr],
    strides: &'t [Expr],
) -> impl Iterator<Item = [Expr; 3]> {
    offsets.iter().zip(sizes).zip(strides).map(|((a, b), c)| [*a, *b, *c])
}

fn check_tile(row: &Value) -> Result<Pass, String> {
    with_maps(row, |ctx, maps| {
        let map = &maps[0];
        let found = SymbolicTile::of(ctx, map);
        if row["expected"].is_null() {
            return match found {
                Err(_) => Ok(Pass::Exact),
                // XLA derives none.
                Ok(found) => verify(ctx, map, &found).map(|()| Pass::Simpler),
            };
        }
        let found = found.map_err(|reason| reason.to_string())?;
        compare(ctx, map, &found, &Expected::of(ctx, row)?)
    })
}

/// Whether a tile is what enumeration finds.
fn verify(ctx: &Context, map: &IndexingMap, found: &SymbolicTile) -> Result<(), String> {
    if !map.runtimes.is_empty() {
        return Err("expected no tile".into());
    }
    let extents = extents(ctx, map);
    for sizes in sizes(&extents) {
        let last: Vec<i64> =
            extents.iter().zip(&sizes).map(|(extent, size)| extent / size - 1).collect();
        for numbers in [vec![0; sizes.len()], last] {
            let tile = Tile { ctx, map, sizes: &sizes, numbers: &numbers, runtimes: &[] };
            if !tile.holds(&found.constraints)? {
                continue;
            }
            let all = progressions(&found.offsets, &found.sizes, &found.strides);
            for (progression, &result) in all.zip(&map.results) {
                if !tile.is_image(result, tile.progression(progression)?)? {
                    return Err(format!("expected no tile, found a wrong one for {sizes:?}"));
                }
            }
        }
    }
    Ok(())
}

fn compare(
    ctx: &Context,
    map: &IndexingMap,
    found: &SymbolicTile,
    expected: &Expected,
) -> Result<Pass, String> {
    let intervals = map.intervals(ctx);
    let ours: Vec<Interval> =
        (0..).zip(&map.runtimes).map(|(number, _)| intervals.of(Var::Runtime(number))).collect();
    if expected.runtimes != ours {
        return Err(format!("expected runtimes {:?}, found {ours:?}", expected.runtimes));
    }
    if found.offsets.len() != expected.offsets.len() {
        return Err("expected another rank".into());
    }
    let (mut pass, mut disputed) = (spelling(ctx, found, expected)?, None);
    for sizes in sizes(&extents(ctx, map)) {
        for at_end in [false, true] {
            let pick = |it: &Interval| if at_end { it.hi } else { it.lo };
            let (own, other): (Vec<i64>, Vec<i64>) =
                (ours.iter().map(pick).collect(), expected.runtimes.iter().map(pick).collect());
            // XLA's offset is that of the first tile.
            let numbers = vec![0; sizes.len()];
            let tile = Tile { ctx, map, sizes: &sizes, numbers: &numbers, runtimes: &own };
            let xla = Tile { numbers: &other, ..tile };
            let holds = [tile.holds(&found.constraints)?, xla.holds(&expected.constraints)?];
            if holds == [false, true] {
                let wrong = wrong_tile(&tile, &xla, expected)?;
                let wrong = wrong.ok_or_else(|| format!("no tile for sizes {sizes:?}"))?;
                disputed =
                    Some(format!("for sizes {sizes:?}, the expected tile {wrong:?} is wrong"));
            }
            if !holds[0] {
                continue;
            }
            let all = progressions(&found.offsets, &found.sizes, &found.strides).zip(progressions(
                &expected.offsets,
                &expected.sizes,
                &expected.strides,
            ));
            for ((own, other), &result) in all.zip(&map.results) {
                let own = tile.progression(own)?;
                let other = holds[1].then(|| xla.progression(other)).transpose()?;
                if other == Some(own) {
                    continue;
                }
                if !tile.is_image(result, own)? {
                    return Err(format!("for sizes {sizes:?}, expected {other:?}, found {own:?}"));
                }
                // Ours is right where XLA has none, or another.
                pass = Pass::Simpler;
                if let Some(other) = other {
                    disputed =
                        Some(format!("for sizes {sizes:?}, {own:?} is right, not {other:?}"));
                }
            }
        }
    }
    Ok(disputed.map_or(pass, Pass::Skipped))
}

/// The numbers of a tile of these sizes for which the expected sizes and strides are wrong.
fn wrong_tile(own: &Tile, xla: &Tile, expected: &Expected) -> Result<Option<Vec<i64>>, String> {
    let counts: Vec<i64> = extents(own.ctx, own.map)
        .iter()
        .zip(own.sizes)
        .map(|(extent, size)| extent / size)
        .collect();
    for number in 0..counts.iter().copied().max().unwrap_or(0) {
        let numbers: Vec<i64> = counts.iter().map(|count| number.min(count - 1)).collect();
        let tile = Tile { numbers: &numbers, ..*own };
        let all = progressions(&expected.offsets, &expected.sizes, &expected.strides);
        for (progression, &result) in all.zip(&own.map.results) {
            let [_, size, stride] = xla.values(progression)?;
            if !tile.is_image(result, normal([tile.first(result)?, size, stride]))? {
                return Ok(Some(numbers));
            }
        }
    }
    Ok(None)
}

/// How the texts of two tiles compare; ours may not be longer.
fn spelling(ctx: &Context, found: &SymbolicTile, expected: &Expected) -> Result<Pass, String> {
    let first = |expr: &Expr| {
        ctx.substitute(*expr, &|var| matches!(var, Var::Range(_)).then(|| ctx.constant(0)))
    };
    let offsets: Vec<Expr> = found.offsets.iter().map(first).collect();
    let own = [&offsets, &found.sizes, &found.strides];
    let other = [&expected.offsets, &expected.sizes, &expected.strides];
    let cost = |exprs: [&Vec<Expr>; 3]| -> u64 {
        exprs.into_iter().flatten().map(|expr| u64::from(ctx.cost(*expr))).sum()
    };
    let texts = [&found.constraints, &expected.constraints]
        .map(|it| squeeze(&it.display_with(ctx, default_name).to_string()));
    match (cost(own), cost(other)) {
        (ours, theirs) if theirs < ours => {
            let show = |exprs: [&Vec<Expr>; 3]| {
                let texts: Vec<_> = exprs
                    .iter()
                    .copied()
                    .flatten()
                    .map(|it| ctx.display(*it).to_string())
                    .collect();
                texts.join(", ")
            };
            Err(format!("more operators: {}", show(own)))
        }
        _ if own == other && texts[0] == texts[1] => Ok(Pass::Exact),
        (ours, theirs) if ours < theirs => Ok(Pass::Simpler),
        _ => Ok(Pass::Spelling),
    }
}

fn check_stride(row: &Value) -> Result<Pass, String> {
    let (sizes, expected) = (integers(&row["tile_sizes"])?, integers(&row["expected"])?);
    with_maps(row, |ctx, maps| {
        let found = SymbolicTile::of(ctx, &maps[0]).map_err(|reason| reason.to_string())?;
        let tile = Tile {
            ctx,
            map: &maps[0],
            sizes: &sizes,
            numbers: &vec![0; sizes.len()],
            runtimes: &[],
        };
        let strides = ctx.eval_all(&found.strides, &|var| tile.value_of(var));
        let strides = strides.map_err(|error| error.to_string())?;
        let constraints = tile.holds(&found.constraints)?;
        if constraints && strides == expected {
            Ok(Pass::Exact)
        } else {
            Err(format!("expected {expected:?}, found {strides:?}, constraints: {constraints}"))
        }
    })
}

/// The constraints of the tiles of all operands.
fn all_constraints(ctx: &Context, maps: &[IndexingMap]) -> Result<ConstraintExpression, String> {
    let mut all = ConstraintExpression::always_satisfied();
    for map in maps {
        all =
            all.and(&SymbolicTile::of(ctx, map).map_err(|reason| reason.to_string())?.constraints);
    }
    all.simplify(ctx);
    Ok(all)
}

fn check_constraints(row: &Value) -> Result<Pass, String> {
    with_maps(row, |ctx, maps| {
        let found = all_constraints(ctx, maps)?;
        let found = found.display_with(ctx, default_name).to_string();
        let expected = text(row, "expected")?;
        if squeeze(&found) == squeeze(expected) {
            Ok(Pass::Exact)
        } else {
            Err(format!("expected {expected}, found {found}"))
        }
    })
}

fn is_satisfied(ctx: &Context, all: &ConstraintExpression, sizes: &[i64]) -> Result<bool, String> {
    let value_of = |var| match var {
        Var::Dim(number) => sizes.get(number as usize).copied(),
        _ => None,
    };
    all.is_satisfied(ctx, &value_of).map_err(|error| error.to_string())
}

fn check_satisfies(row: &Value) -> Result<Pass, String> {
    let sizes = integers(&row["root_tile_parameters"])?;
    with_maps(row, |ctx, maps| {
        let found = is_satisfied(ctx, &all_constraints(ctx, maps)?, &sizes)?;
        equal_values(&Value::Bool(found), &row["expected"])
    })
}

fn equal_values(found: &Value, expected: &Value) -> Result<Pass, String> {
    if found == expected {
        Ok(Pass::Exact)
    } else {
        Err(format!("expected {expected}, found {found}"))
    }
}

fn check_valid_tilings(row: &Value) -> Result<Pass, String> {
    with_maps(row, |ctx, maps| {
        let all = all_constraints(ctx, maps)?;
        let mut valid = Vec::new();
        for sizes in candidate_sizes(&extents(ctx, &maps[0])) {
            if is_satisfied(ctx, &all, &sizes)? {
                valid.push(Value::from(sizes));
            }
        }
        equal_values(&Value::from(valid), &row["expected"])
    })
}

fn check_flat_tilings(row: &Value) -> Result<Pass, String> {
    let found = candidate_sizes(&integers(&row["dims"])?).map(Value::from).collect();
    equal_values(&Value::Array(found), &row["expected"])
}

fn check_simplify(row: &Value) -> Result<Pass, String> {
    let ctx = Context::new();
    let bounds = row["dims"].as_array().ok_or("no list 'dims' in the case")?;
    let bounds: Vec<Vec<i64>> = bounds.iter().map(integers).collect::<Result<_, _>>()?;
    let interval = |var| match var {
        Var::Dim(number) => match bounds.get(number as usize).map(Vec::as_slice) {
            Some([lo, hi]) => Interval::new(*lo, *hi),
            _ => Interval::ALL,
        },
        _ => Interval::ALL,
    };
    let expr = parse_expr(&ctx, text(row, "expr")?, &of_map).map_err(|error| error.to_string())?;
    let found = Simplifier::new(&ctx, interval).simplify(expr);
    let printed = ctx.display(found).to_string();
    let expected = text(row, "expected")?;
    if squeeze(&printed) == squeeze(expected) {
        return Ok(Pass::Exact);
    }
    let other = parse_expr(&ctx, expected, &of_map).map_err(|error| error.to_string())?;
    let dims = bounds.iter().map(|it| Variable::bounded(&ctx, Interval::new(it[0], it[1])));
    let map =
        IndexingMap { dims: dims.collect(), results: vec![found, other], ..IndexingMap::default() };
    for point in map.points(&ctx, &[]).map_err(|error| error.to_string())? {
        let point = point.map_err(|error| error.to_string())?;
        let values =
            map.evaluate(&ctx, &point.dims, &[], &[]).map_err(|error| error.to_string())?;
        if values[0] != values[1] {
            return Err(format!("expected {expected}, found {printed}"));
        }
    }
    if ctx.cost(found) < ctx.cost(other) {
        Ok(Pass::Simpler)
    } else {
        Err(format!("expected {expected}, found {printed}, which is no shorter"))
    }
}
