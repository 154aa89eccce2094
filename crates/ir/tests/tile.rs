//! Images of tiles against enumeration.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tc_ir::tile::{Cover, Image, Irregularity, Rectangle, SymbolicTile, TiledVariable, images};
use tc_ir::{ConstraintExpression, Context, Expr, IndexingMap, Interval, Var, Variable};

#[expect(dead_code, reason = "other tests use the rest")]
mod maps;

use maps::{Op, Tree};

/// The largest tile and the number of offsets that are tried.
const SIZES: i64 = 4;
const OFFSETS: i64 = 5;
/// What the dimension variables are less than in a tile.
const REACH: i64 = SIZES * OFFSETS;

fn any_tree() -> impl Strategy<Value = Tree> {
    let variable = prop_oneof![
        3 => Just(Var::Dim(0)),
        2 => Just(Var::Dim(1)),
        1 => Just(Var::Range(0)),
    ];
    let leaf = prop_oneof![
        1 => (-7..=7_i64).prop_map(Tree::Const),
        5 => variable.prop_map(Tree::Var),
    ];
    leaf.prop_recursive(4, 12, 2, |inner| {
        let op = |op, lhs, rhs| Tree::Op(op, Box::new(lhs), Box::new(rhs));
        let sum = prop_oneof![3 => Just(Op::Add), 1 => Just(Op::Sub)];
        let division = prop_oneof![2 => Just(Op::FloorDiv), 1 => Just(Op::CeilDiv), 2 => Just(Op::Mod)];
        let extremum = prop_oneof![Just(Op::Min), Just(Op::Max)];
        prop_oneof![
            4 => (sum, inner.clone(), inner.clone()).prop_map(move |(o, a, b)| op(o, a, b)),
            2 => (inner.clone(), -6..=6_i64).prop_map(move |(a, c)| op(Op::Mul, a, Tree::Const(c))),
            3 => (division, inner.clone(), 1..=6_i64).prop_map(move |(o, a, c)| op(o, a, Tree::Const(c))),
            1 => (extremum, inner.clone(), inner).prop_map(move |(o, a, b)| op(o, a, b)),
        ]
    })
}

/// How the offset and the size of a tiled variable are given.
#[derive(Copy, Clone, Debug)]
enum Form {
    /// Both are variables.
    Free,
    /// The offset is a multiple of the size.
    Aligned,
    /// The size is a constant, and the offset a multiple of it.
    Constant(i64),
    /// The variable is not tiled.
    Untiled,
}

fn any_form() -> impl Strategy<Value = Form> {
    prop_oneof![
        3 => Just(Form::Free),
        3 => Just(Form::Aligned),
        3 => (1..=SIZES).prop_map(Form::Constant),
        1 => Just(Form::Untiled),
    ]
}

/// Values of the variables of offsets and sizes, with the values that the variable takes.
type Choice = (Vec<(Var, i64)>, std::ops::Range<i64>);

/// The tiles of variable `number`.
fn choices(form: Form, number: u32, extent: i64) -> Vec<Choice> {
    let (position, size) = (Var::Dim(10 + number), Var::Dim(20 + number));
    let pairs = |sizes: std::ops::RangeInclusive<i64>| {
        sizes.flat_map(|size| (0..OFFSETS).map(move |position| (position, size)))
    };
    match form {
        Form::Free => {
            pairs(1..=SIZES).map(|(p, s)| (vec![(position, p), (size, s)], p..p + s)).collect()
        }
        Form::Aligned => pairs(1..=SIZES)
            .map(|(p, s)| (vec![(position, p), (size, s)], p * s..(p + 1) * s))
            .collect(),
        Form::Constant(s) => {
            pairs(s..=s).map(|(p, _)| (vec![(position, p)], p * s..(p + 1) * s)).collect()
        }
        Form::Untiled => vec![(Vec::new(), 0..extent)],
    }
}

fn tiled(ctx: &Context, form: Form, number: u32) -> Option<TiledVariable> {
    let (position, size) = (ctx.dim(10 + number), ctx.dim(20 + number));
    let var = Var::Dim(number);
    let of = |offset, size| Some(TiledVariable { var, offset, size });
    match form {
        Form::Free => of(position, size),
        Form::Aligned => of(ctx.mul(position, size), size),
        Form::Constant(value) => {
            let size = ctx.constant(value);
            of(ctx.mul(position, size), size)
        }
        Form::Untiled => None,
    }
}

/// The members of a progression.
fn members(ctx: &Context, it: &Rectangle, point: &BTreeMap<Var, i64>) -> BTreeSet<i64> {
    let values = ctx.eval_all(&[it.offset, it.size, it.stride], &|var| point.get(&var).copied());
    let values = values.expect("every variable has a value");
    assert!(1 <= values[1], "a size is at least 1");
    (0..values[1]).map(|k| values[0] + k * values[2]).collect()
}

#[test]
fn images_are_those_of_enumeration() {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::with_cases(400), rng);
    let strategy = (any_tree(), any_form(), any_form(), 1..=4_i64, 1..=4_i64);
    // Tiles with an exact image, with an exact and another hull, and without constraints that hold.
    let counts = std::cell::Cell::new([0_u32; 4]);
    let count = |which: usize| {
        let mut all = counts.get();
        all[which] += 1;
        counts.set(all);
    };
    let outcome = runner.run(&strategy, |(tree, first, second, extent, range)| {
        let ctx = Context::new();
        let bounded = |extent| Variable::bounded(&ctx, Interval::new(0, extent - 1));
        let map = IndexingMap {
            dims: vec![bounded(extent), bounded(extent)],
            ranges: vec![bounded(range)],
            results: vec![tree.build(&ctx)],
            ..IndexingMap::default()
        };
        let forms = [first, second];
        let tile: Vec<TiledVariable> =
            (0..2).filter_map(|i| tiled(&ctx, forms[i as usize], i)).collect();
        // The values of the result at every point that a tile may have, `d0` slowest.
        let grid: Vec<[i64; 3]> = (0..REACH * REACH * range)
            .map(|i| [i / (REACH * range), i / range % REACH, i % range])
            .collect();
        let values = tree.values(grid.len(), &|var| {
            let place = match var {
                Var::Dim(0) => 0,
                Var::Dim(_) => 1,
                _ => 2,
            };
            grid.iter().map(|point| point[place]).collect()
        });
        for cover in [Cover::Exact, Cover::Hull] {
            let image = images(&ctx, &map, &tile, cover).swap_remove(0);
            let vars = ctx.vars(map.results[0]);
            let is_whole = !vars.is_empty() && !tile.iter().any(|it| vars.contains(&it.var));
            prop_assert_eq!(image == Image::Whole, is_whole);
            let Image::Rectangular(rectangle) = image else { continue };
            for (point0, d0) in choices(first, 0, extent) {
                for (point1, d1) in choices(second, 1, extent) {
                    let point: BTreeMap<Var, i64> = point0.iter().chain(&point1).copied().collect();
                    let mut expected = BTreeSet::new();
                    for a in d0.clone() {
                        for b in d1.clone() {
                            let start = usize::try_from((a * REACH + b) * range).expect("small");
                            let end = start + usize::try_from(range).expect("small");
                            expected.extend(values[start..end].iter().flatten().copied());
                        }
                    }
                    let value_of = |var| point.get(&var).copied();
                    let holds = rectangle.constraints.is_satisfied(&ctx, &value_of);
                    let holds = holds.expect("every variable has a value");
                    let found = || members(&ctx, &rectangle, &point);
                    if cover == Cover::Hull {
                        prop_assert!(holds);
                        let found = found();
                        prop_assert!(found.is_superset(&expected), "{:?} {:?}", found, expected);
                        if rectangle.is_exact {
                            prop_assert_eq!(found, expected);
                        }
                        count(if rectangle.is_exact { 1 } else { 2 });
                    } else if holds {
                        prop_assert_eq!(found(), expected, "{:?}", point);
                        count(0);
                    } else {
                        count(3);
                    }
                }
            }
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let counts = counts.get();
    println!("{counts:?}");
    assert!(counts.iter().all(|it| 5000 < *it), "{counts:?}");
}

fn parse(ctx: &Context, text: &str) -> IndexingMap {
    IndexingMap::parse(ctx, text).expect("a map")
}

fn tile_of(offset: Expr, size: Expr) -> [TiledVariable; 1] {
    [TiledVariable { var: Var::Dim(0), offset, size }]
}

#[test]
fn constraints_restrict_an_image() {
    let ctx = Context::new();
    let map = parse(&ctx, "(d0) -> (d0 * 2), domain: d0 in [0, 9], d0 mod 3 in [0, 0]");
    let tile = tile_of(ctx.dim(1), ctx.dim(2));
    let exact = images(&ctx, &map, &tile, Cover::Exact);
    assert_eq!(exact, [Image::Irregular(Irregularity::Constrained)]);
    let hull = images(&ctx, &map, &tile, Cover::Hull);
    let [Image::Rectangular(hull)] = &hull[..] else { panic!("{hull:?}") };
    assert_eq!(hull.constraints, ConstraintExpression::always_satisfied());
    assert!(!hull.is_exact);
}

#[test]
fn irregular_images_have_a_reason() {
    let ctx = Context::new();
    let tile = tile_of(ctx.dim(1), ctx.dim(2));
    let reason = |text: &str, cover| {
        let map = parse(&ctx, text);
        match images(&ctx, &map, &tile, cover).swap_remove(0) {
            Image::Irregular(reason) => Some(reason),
            _ => None,
        }
    };
    let both = |result: &str| {
        let text = format!(
            "(d0)[s0]{{rt0}} -> ({result}), domain: d0 in [0, 9], s0 in [0, 4], rt0 in [1, 4]"
        );
        [Cover::Exact, Cover::Hull].map(|cover| reason(&text, cover))
    };
    use Irregularity::{Divisor, Product, SharedVariable, StridedOperand, Strides, SymbolicStride};
    assert_eq!(both("d0 * s0"), [Some(Product), Some(Product)]);
    assert_eq!(both("s0 / d0"), [Some(Divisor), Some(Divisor)]);
    assert_eq!(both("d0 / rt0"), [Some(Divisor), Some(Divisor)]);
    assert_eq!(both("d0 * rt0 + s0"), [Some(SymbolicStride), Some(SymbolicStride)]);
    assert_eq!(both("d0 * rt0"), [None, None]);
    assert_eq!(both("d0 + d0 / 2"), [Some(SharedVariable(Var::Dim(0))), None]);
    assert_eq!(both("d0 * 3 + s0 * 2"), [Some(Strides(3, 2)), None]);
    assert_eq!(both("(d0 * 5) / 3"), [Some(StridedOperand(5)), None]);
    let unbounded =
        reason("(d0)[s0] -> (d0 + s0), domain: d0 in [0, 9], s0 in [0, inf]", Cover::Hull);
    assert_eq!(unbounded, Some(Irregularity::Unbounded(Var::Range(0))));
}

#[test]
fn a_symbolic_tile_does_not_depend_on_its_position() {
    let ctx = Context::new();
    let error = |text| SymbolicTile::of(&ctx, &parse(&ctx, text)).unwrap_err();
    let position = error("(d0) -> ((d0 + 1) / 6), domain: d0 in [0, 9]");
    assert_eq!(position, Irregularity::Position);
    let tile = SymbolicTile::of(&ctx, &parse(&ctx, "(d0) -> (-d0 + 9), domain: d0 in [0, 9]"));
    let tile = tile.expect("a tile");
    let text = |expr| ctx.display(expr).to_string();
    assert_eq!(text(tile.offsets[0]), "-(s0 * d0) + 9");
    assert_eq!([text(tile.sizes[0]), text(tile.strides[0])], ["d0", "-1"]);
}

/// Ten contractions of rank 14: the tile of each operand is the image of the next one's. The work
/// grows with the number of variables, not with the length of the chain.
#[test]
fn a_chain_of_contractions_takes_linear_work() {
    let ctx = Context::new();
    let names: Vec<String> = (0..13).map(|i| format!("d{i}")).collect();
    let bounds: Vec<String> = names.iter().map(|name| format!("{name} in [0, 63]")).collect();
    let text = format!(
        "({dims})[s0] -> (s0, {dims}), domain: {bounds}, s0 in [0, 63]",
        dims = names.join(", "),
        bounds = bounds.join(", ")
    );
    let map = parse(&ctx, &text);
    let mut tile: Vec<TiledVariable> = (0..13)
        .map(|i| TiledVariable {
            var: Var::Dim(i),
            offset: ctx.mul(ctx.dim(100 + i), ctx.constant(8)),
            size: ctx.dim(200 + i),
        })
        .collect();
    let before = ctx.num_exprs();
    for _ in 0..10 {
        let found = images(&ctx, &map, &tile, Cover::Hull);
        assert_eq!(found[0], Image::Whole);
        // The operand is the result of another contraction, over its last dimension.
        let next = found.into_iter().skip(1).zip(0..).map(|(image, i)| match image {
            Image::Rectangular(it) => {
                assert!(it.is_exact);
                TiledVariable { var: Var::Dim(i), offset: it.offset, size: it.size }
            }
            other => panic!("{other:?}"),
        });
        tile = next.collect();
    }
    // Only a size minus one for each variable, and a few constants, whatever the length is.
    let made = ctx.num_exprs() - before;
    assert!(made <= 13 * 4, "{made} expressions");
}
