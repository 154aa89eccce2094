//! Tiles that pass through maps, against enumeration of their lanes.

use std::collections::{BTreeSet, HashMap};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tc_ir::tile::{DimTile, Irregularity, Order, ReshapeKind, Tile, TilingSpace, minimal_reshapes};
use tc_ir::{Context, Expr, IndexingMap, Interval, Var, Variable};

/// A dimension of the array, and its tile.
#[derive(Clone, Debug)]
struct Dim {
    extent: i64,
    /// The domain of the map starts so much later and ends so much sooner.
    margins: (i64, i64),
    /// `None` if any size may be chosen.
    size: Option<i64>,
    stride: i64,
    /// What is added to the offset, and to the upper bound.
    shift: i64,
    bound: i64,
    /// Whether the offset has the number of the tile.
    is_numbered: bool,
}

/// A sum, or all or some of its digits.
#[derive(Clone, Debug)]
struct Result {
    factors: [i64; 3],
    constant: i64,
    radices: Vec<i64>,
    dropped: usize,
}

fn any_dim() -> impl Strategy<Value = Dim> {
    let margin = || prop_oneof![4 => Just(0), 1 => 1..=2_i64];
    (
        1..=6_i64,
        (margin(), margin()),
        prop_oneof![Just(None), (1..=4_i64).prop_map(Some)],
        prop_oneof![3 => Just(1), 1 => 2..=3_i64],
        prop_oneof![4 => Just(0), 1 => -3..=3_i64],
        prop_oneof![3 => Just(0), 1 => -2..=2_i64],
        prop_oneof![3 => Just(true), 1 => Just(false)],
    )
        .prop_map(|(extent, margins, size, stride, shift, bound, is_numbered)| Dim {
            extent,
            margins,
            size,
            stride,
            shift,
            bound,
            is_numbered,
        })
}

fn any_result() -> impl Strategy<Value = Result> {
    let factor = || prop_oneof![3 => Just(0), 3 => Just(1), 3 => 2..=8_i64];
    let radices = prop_oneof![
        2 => Just(Vec::new()),
        3 => prop::collection::vec(2..=6_i64, 1..=2),
    ];
    (
        [factor(), factor(), factor()],
        prop_oneof![3 => Just(0), 1 => -3..=3_i64],
        radices,
        0..=3_usize,
    )
        .prop_map(|(factors, constant, radices, dropped)| Result {
            factors,
            constant,
            radices,
            dropped,
        })
}

impl Result {
    fn exprs(&self, ctx: &Context, rank: usize) -> Vec<Expr> {
        let mut sum = ctx.wrap(ctx.constant(self.constant));
        for (number, &factor) in (0..).zip(&self.factors[..rank]) {
            sum = sum + ctx.wrap(ctx.dim(number)) * factor;
        }
        let mut rest = sum;
        let mut digits = Vec::new();
        for &radix in &self.radices {
            digits.push((rest % radix).expr());
            rest = rest / radix;
        }
        digits.push(rest.expr());
        if self.dropped < digits.len() && 1 < digits.len() {
            digits.remove(self.dropped);
        }
        digits.reverse();
        digits
    }
}

fn positions(ctx: &Context, lanes: &DimTile, point: &HashMap<Var, i64>) -> Vec<i64> {
    let exprs = [lanes.offset, lanes.size, lanes.stride, lanes.upper_bound];
    let values = ctx.eval_all(&exprs, &|var| point.get(&var).copied()).expect("all have values");
    let all = (0..values[1]).map(|lane| values[0] + lane * values[2]);
    all.filter(|at| (0..values[3]).contains(at)).collect()
}

fn product(dims: &[Vec<i64>]) -> Vec<Vec<i64>> {
    dims.iter().fold(vec![Vec::new()], |found, dim| {
        let longer = |each: &Vec<i64>| {
            let each = each.clone();
            dim.iter().map(move |at| [&each[..], &[*at]].concat()).collect::<Vec<_>>()
        };
        found.iter().flat_map(longer).collect()
    })
}

/// The sizes and numbers of tiles of a space, sizes up to 5.
fn points(space: &TilingSpace) -> Vec<HashMap<Var, i64>> {
    let mut points = vec![HashMap::new()];
    for (number, dim) in (0..).zip(&space.dims) {
        let sizes = dim.tile_size.map_or(1..=5, |size| size..=size);
        let choices: Vec<(i64, i64)> = sizes
            .flat_map(|size| (0..=(dim.extent - 1) / size).map(move |tile| (size, tile)))
            .collect();
        let longer = points.iter().flat_map(|point| {
            choices.iter().map(move |(size, tile)| {
                let mut point: HashMap<Var, i64> = point.clone();
                point.extend([(Var::Dim(number), *size), (Var::Range(number), *tile)]);
                point
            })
        });
        points = longer.collect();
    }
    points
}

#[test]
fn tiles_have_the_elements_of_their_lanes() {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::with_cases(3000), rng);
    let dims = prop::collection::vec(any_dim(), 1..=3);
    let strategy = (dims, prop::collection::vec(any_result(), 1..=2));
    // Tiles that are found, with constraints that hold and that do not hold, and refused ones.
    let counts = std::cell::Cell::new([0_u32; 3]);
    let count = |which: usize| {
        let mut all = counts.get();
        all[which] += 1;
        counts.set(all);
    };
    let outcome = runner.run(&strategy, |(dims, results)| {
        let ctx = Context::new();
        let mut space = TilingSpace::parallel(&dims.iter().map(|it| it.extent).collect::<Vec<_>>());
        for (dim, own) in space.dims.iter_mut().zip(&dims) {
            dim.tile_size = own.size;
        }
        let tile = Tile::new(
            (0..)
                .zip(&dims)
                .map(|(number, dim)| {
                    let size = dim.size.map_or(ctx.dim(number), |size| ctx.constant(size));
                    let tile = if dim.is_numbered { ctx.range(number) } else { ctx.constant(0) };
                    DimTile {
                        offset: (ctx.wrap(tile) * size + dim.shift).expr(),
                        size,
                        stride: ctx.constant(dim.stride),
                        upper_bound: ctx.constant(dim.extent + dim.bound),
                    }
                })
                .collect(),
        );
        let domain = |dim: &Dim| Interval::new(dim.margins.0, dim.extent - 1 - dim.margins.1);
        let map = IndexingMap {
            dims: dims.iter().map(|dim| Variable::bounded(&ctx, domain(dim))).collect(),
            results: results.iter().flat_map(|it| it.exprs(&ctx, dims.len())).collect(),
            ..IndexingMap::default()
        };
        if dims.iter().any(|dim| domain(dim).is_empty()) {
            return Ok(());
        }
        let found = match tile.through(&ctx, &space, &map, &[]) {
            Ok(found) => found,
            Err(_) => {
                count(2);
                return Ok(());
            }
        };
        let simplified = found.simplified(&ctx, &space);
        for point in points(&space) {
            let value_of = |var| point.get(&var).copied();
            let holds = |tile: &Tile| {
                tile.constraints.is_satisfied(&ctx, &value_of).expect("all have values")
            };
            prop_assert_eq!(holds(&found), holds(&simplified));
            let lanes: Vec<Vec<i64>> = (tile.dims.iter().zip(&dims))
                .map(|(lanes, dim)| {
                    let mut all = positions(&ctx, lanes, &point);
                    all.retain(|at| domain(dim).contains(*at));
                    all
                })
                .collect();
            // With one dimension in one result, a tile without lanes has none later on either.
            if lanes.iter().any(Vec::is_empty) {
                continue;
            }
            if !holds(&found) {
                count(1);
                continue;
            }
            let image = |element: Vec<i64>| map.evaluate(&ctx, &element, &[], &[]).expect("small");
            let expected: BTreeSet<Vec<i64>> = product(&lanes)
                .into_iter()
                .map(image)
                .filter(|element| element.iter().all(|at| 0 <= *at))
                .collect();
            for tile in [&found, &simplified] {
                let own: Vec<Vec<i64>> =
                    tile.dims.iter().map(|lanes| positions(&ctx, lanes, &point)).collect();
                let own: BTreeSet<Vec<i64>> = product(&own).into_iter().collect();
                prop_assert_eq!(&own, &expected, "{:?} {:?}", point, tile);
            }
            count(0);
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let counts = counts.get();
    println!("{counts:?}");
    assert!(10_000 < counts[0] && 1000 < counts[1] && 300 < counts[2], "{counts:?}");
}

/// A reshape of small arrays: what is found has the same elements in the same order.
#[test]
fn a_reshape_keeps_the_order() {
    let ctx = Context::new();
    let number = |dims: &[i64], element: &[i64]| {
        element.iter().zip(dims).fold(0, |number, (at, extent)| number * extent + at)
    };
    let mut found_some = 0;
    for (from, to) in [([2, 6], [3, 4]), ([4, 3], [2, 6]), ([1, 12], [4, 3]), ([12, 1], [2, 6])] {
        let flat = [from[0] * from[1]];
        for (size0, size1) in (1..=from[0]).flat_map(|a| (1..=from[1]).map(move |b| (a, b))) {
            let mut space = TilingSpace::parallel(&from);
            assert!(space.choose(&ctx, &[size0, size1]));
            let tile = Tile::new((0..2).filter_map(|dim| space.tile(&ctx, dim)).collect());
            let collapse = format!("(d0, d1) -> (d0 * {} + d1)", from[1]);
            let domain = format!("d0 in [0, {}], d1 in [0, {}]", from[0] - 1, from[1] - 1);
            let collapse = IndexingMap::parse(&ctx, &format!("{collapse}, domain: {domain}"));
            let expand = format!(
                "(d0) -> (d0 / {0}, d0 mod {0}), domain: d0 in [0, {1}]",
                to[1],
                flat[0] - 1
            );
            let expand = IndexingMap::parse(&ctx, &expand).expect("a map");
            let Ok(line) = tile.through(&ctx, &space, &collapse.expect("a map"), &[]) else {
                continue;
            };
            let found = line.through(&ctx, &space, &expand, &[]);
            for point in points(&space) {
                let elements = |tile: &Tile, dims: &[i64]| {
                    let all: Vec<_> =
                        tile.dims.iter().map(|lanes| positions(&ctx, lanes, &point)).collect();
                    product(&all).iter().map(|it| number(dims, it)).collect::<Vec<_>>()
                };
                let holds = |tile: &Tile| {
                    let value_of = |var| point.get(&var).copied();
                    tile.constraints.is_satisfied(&ctx, &value_of).expect("all have values")
                };
                if holds(&line) {
                    assert_eq!(elements(&line, &flat), elements(&tile, &from));
                    found_some += 1;
                }
                if let Ok(found) = &found
                    && holds(found)
                {
                    assert_eq!(elements(found, &to), elements(&tile, &from));
                    found_some += 1;
                }
            }
        }
    }
    assert!(100 < found_some, "{found_some}");
}

#[test]
fn minimal_reshapes_multiply_to_the_whole() {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::with_cases(500), rng);
    let dims = || prop::collection::vec(1..=4_i64, 0..=5);
    let outcome = runner.run(&(dims(), dims()), |(from, to)| {
        let count = |dims: &[i64]| dims.iter().product::<i64>();
        // An array in the same order with the same number of elements.
        let rest = count(&from) * count(&to);
        let to = [&to[..], &[rest / count(&to)]].concat();
        let from = [&from[..], &[rest / count(&from)]].concat();
        let found = minimal_reshapes(&from, &to).expect("the same number of elements");
        let (mut at, mut to_at) = (0, 0);
        for reshape in &found {
            prop_assert_eq!([reshape.from.start, reshape.to.start], [at, to_at]);
            (at, to_at) = (reshape.from.end, reshape.to.end);
            let (before, after) = (&from[reshape.from.clone()], &to[reshape.to.clone()]);
            prop_assert_eq!(count(before), count(after));
            // No shorter beginnings have the same number of elements.
            let is_split = (1..before.len()).any(|i| {
                (1..after.len()).any(|j| {
                    let parts = [&before[..i], &before[i..], &after[..j], &after[j..]];
                    count(parts[0]) == count(parts[2]) && parts.iter().all(|part| 1 < count(part))
                })
            });
            prop_assert!(!is_split, "{:?}", reshape);
            if reshape.kind == ReshapeKind::Identity {
                prop_assert_eq!(before.len(), after.len());
            }
        }
        prop_assert_eq!([at, to_at], [from.len(), to.len()]);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(minimal_reshapes(&[2, 3], &[5]), None);
    assert_eq!(minimal_reshapes(&[i64::MAX, 2], &[2, i64::MAX]), None);
    assert_eq!(minimal_reshapes(&[-2, 2], &[-4]), None);
    assert_eq!(minimal_reshapes(&[0, 3], &[0]).map(|it| it.len()), Some(1));
}

fn parse(ctx: &Context, text: &str) -> IndexingMap {
    IndexingMap::parse(ctx, text).expect("a map")
}

#[test]
fn refused_tiles_have_a_reason() {
    let ctx = Context::new();
    let space = TilingSpace::parallel(&[8, 8]);
    let tile = Tile::new((0..2).filter_map(|dim| space.tile(&ctx, dim)).collect());
    let reason = |results: &str| {
        let text = format!("(d0, d1) -> ({results}), domain: d0 in [0, 7], d1 in [0, 7]");
        tile.through(&ctx, &space, &parse(&ctx, &text), &[]).unwrap_err()
    };
    assert_eq!(reason("d0, d0 + 1"), Irregularity::SharedVariable(Var::Dim(0)));
    assert_eq!(reason("d0 * d1"), Irregularity::Nonlinear);
    assert_eq!(reason("-d0 + 7"), Irregularity::Stride(-1));
    assert_eq!(reason("d0 * 3 + d1 * 2"), Irregularity::Strides(3, 2));
    assert_eq!(reason("d0, d0 mod 4"), Irregularity::Digits);
    let line = parse(&ctx, "(d0) -> (d0), domain: d0 in [0, 7]");
    assert_eq!(tile.through(&ctx, &space, &line, &[]), Err(Irregularity::Rank(1, 2)));
    let holes = "(d0, d1) -> (d0), domain: d0 in [0, 7], d1 in [0, 7], d0 + d1 in [0, 7]";
    let holes = tile.through(&ctx, &space, &parse(&ctx, holes), &[]);
    assert_eq!(holes, Err(Irregularity::Constrained));
}

#[test]
fn a_range_variable_takes_its_lanes_or_all_values() {
    let ctx = Context::new();
    let mut space = TilingSpace::parallel(&[8]);
    let sum = space.add_dim(20, Order::Sequential);
    let tile = Tile::new(space.tile(&ctx, 0).into_iter().collect());
    let map = parse(&ctx, "(d0)[s0] -> (d0, s0), domain: d0 in [0, 7], s0 in [0, 19]");
    let bound = tile.through(&ctx, &space, &map, &[space.tile(&ctx, sum)]).expect("a tile");
    assert_eq!(bound.dims[1], space.tile(&ctx, sum).expect("a dimension"));
    let whole = tile.through(&ctx, &space, &map, &[]).expect("a tile");
    assert_eq!(whole.dims[1], DimTile::whole(&ctx, 0, 20).expect("a small number"));
    let size = ctx.as_constant(whole.dims[1].size);
    assert_eq!(size, Some(32));
}

#[test]
fn sizes_are_chosen_once_they_are_allowed() {
    let ctx = Context::new();
    let mut space = TilingSpace::parallel(&[8, 5]);
    assert!(!space.choose(&ctx, &[4]));
    assert!(!space.choose(&ctx, &[4, 0]));
    assert!(space.choose(&ctx, &[3, 5]));
    assert_eq!(space.interval(Var::Range(0)), Interval::new(0, 2));
    assert_eq!(space.interval(Var::Dim(1)), Interval::point(5));
    let only = space.tile(&ctx, 1).expect("a dimension");
    assert_eq!(ctx.as_constant(only.offset), Some(0));
    assert_eq!(space.tile(&ctx, 2), None);
}
