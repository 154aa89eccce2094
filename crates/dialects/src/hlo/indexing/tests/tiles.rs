//! Tiles of operands and results against the pairs of elements that maps hold for.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;
use tc_ir::tile::{DimTile, Order, Tile};

/// A random instruction on small arrays.
fn any_module(random: &mut Random) -> String {
    let rank = random.between(1, 3) as usize;
    let dims = random.dims(rank, 6);
    let order = random.permutation(rank);
    let along = random.between(0, rank as i64 - 1) as usize;
    match random.between(0, 8) {
        0 => module(&[&dims, &dims], &dims, "add", ""),
        1 => {
            let output: Vec<i64> = order.iter().map(|&dim| dims[dim]).collect();
            module(&[&dims], &output, "transpose", &format!("dimensions={{{}}}", list(&order)))
        }
        2 => {
            let mut places = order.clone();
            places.truncate(random.between(0, rank as i64) as usize);
            places.sort_unstable();
            let operand: Vec<i64> = places.iter().map(|&dim| dims[dim]).collect();
            module(&[&operand], &dims, "broadcast", &format!("dimensions={{{}}}", list(&places)))
        }
        3 => {
            let steps: Vec<[i64; 3]> = dims
                .iter()
                .map(|&extent| {
                    let start = random.between(0, extent - 1);
                    [start, random.between(start + 1, extent), random.between(1, 2)]
                })
                .collect();
            let output: Vec<i64> = steps.iter().map(|[a, b, c]| (b - a + c - 1) / c).collect();
            let texts = steps.iter().map(|[a, b, c]| format!("[{a}:{b}:{c}]"));
            module(&[&dims], &output, "slice", &format!("slice={{{}}}", joined(texts, ",")))
        }
        4 => {
            let edges: Vec<[i64; 2]> =
                dims.iter().map(|_| [random.between(0, 3), random.between(0, 3)]).collect();
            let output: Vec<i64> =
                dims.iter().zip(&edges).map(|(extent, [a, b])| extent + a + b).collect();
            let texts = edges.iter().map(|[a, b]| format!("{a}_{b}"));
            module(&[&dims, &[]], &output, "pad", &format!("padding={}", joined(texts, "x")))
        }
        5 => {
            let (mut other, mut output) = (dims.clone(), dims.clone());
            other[along] = random.between(1, 4);
            output[along] += other[along];
            module(&[&dims, &other], &output, "concatenate", &format!("dimensions={{{along}}}"))
        }
        6 => {
            let (a, b, c) = (random.between(1, 3), random.between(1, 4), random.between(1, 3));
            let shapes = [vec![a * b, c], vec![a, b, c], vec![a, b * c], vec![a * b * c]];
            let [from, to] = [0, 0].map(|_| &shapes[random.between(0, 3) as usize]);
            module(&[from], to, "reshape", "")
        }
        7 => {
            let [batch, m, n, k] = [0; 4].map(|_| random.between(1, 4));
            let attributes = "lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, \
                              rhs_contracting_dims={0}";
            module(&[&[batch, m, k], &[k, batch, n]], &[batch, m, n], "dot", attributes)
        }
        _ => {
            let mut output = dims.clone();
            output.remove(along);
            let attributes = format!("dimensions={{{along}}}, to_apply=add");
            module(&[&dims, &[]], &output, "reduce", &attributes)
        }
    }
}

type Point = HashMap<Var, i64>;

fn lanes(tiling: &Tiling, tile: &DimTile, point: &Point) -> Vec<i64> {
    let ctx = tiling.indexing.context();
    let exprs = [tile.offset, tile.size, tile.stride, tile.upper_bound];
    let values = ctx.eval_all(&exprs, &|var| point.get(&var).copied()).expect("all have values");
    let all = (0..values[1]).map(|lane| values[0] + lane * values[2]);
    all.filter(|at| (0..values[3]).contains(at)).collect()
}

fn elements(tiling: &Tiling, tile: &Tile, point: &Point) -> BTreeSet<Vec<i64>> {
    let lanes: Vec<Vec<i64>> = tile.dims.iter().map(|it| lanes(tiling, it, point)).collect();
    let counts: Vec<i64> = lanes.iter().map(|it| it.len() as i64).collect();
    let pick = |index: Vec<i64>| index.iter().zip(&lanes).map(|(i, it)| it[*i as usize]).collect();
    indices(&counts).into_iter().map(pick).collect()
}

/// The numbers of tiles, one of each dimension.
fn points(tiling: &Tiling) -> Vec<Point> {
    let counts =
        (0..tiling.space.dims.len()).map(|dim| tiling.space.num_tiles(dim).expect("sizes"));
    let point = |numbers: Vec<i64>| (0..).map(Var::Range).zip(numbers).collect();
    indices(&counts.collect::<Vec<_>>()).into_iter().map(point).collect()
}

/// Compares the tiles of operands and of results with the pairs of related elements. Returns the number of tiles whose
/// constraints hold.
fn compare(text: &str, random: &mut Random) -> Result<usize, TestCaseError> {
    let module = parse(text);
    let indexing = Indexing::of(&module).like_xla();
    let (ctx, at) = (indexing.context(), indexing.root(module.entry));
    let mut tiling = Tiling::of(&indexing, at).expect("an array");
    let sizes: Vec<i64> =
        tiling.space.dims.iter().map(|it| random.between(1, it.extent + 1)).collect();
    prop_assert!(tiling.space.choose(ctx, &sizes));
    let root = PlacedTile::from(tiling.root_tiles().remove(0));
    let mut count = 0;
    let holds = |tile: &Tile, point: &Point| {
        let holds = tile.constraints.is_satisfied(ctx, &|var| point.get(&var).copied());
        holds.expect("all have values")
    };
    if let Ok(tiles) = tiling.operand_tiles(at, &root) {
        for (operand, tile) in tiles.into_iter().enumerate() {
            let tile = tile.expect("an operand that is read").tile;
            let set = &indexing.output_to_input(at, 0)[operand];
            let all = pairs_of_set(&indexing, set, 0, &|_, _| 0);
            let rank = root.tile.dims.len();
            let summed = tiling::contracted(&Op::new(&indexing, at), operand);
            for point in points(&tiling).iter().filter(|point| holds(&tile, point)) {
                let from = elements(&tiling, &root.tile, point);
                let is_in_step = |to: &[i64]| {
                    summed.iter().enumerate().all(|(position, dim)| {
                        let number = tiling.positions.iter().position(|it| it.1 == rank + position);
                        let own = number.and_then(|it| tiling.space.tile(ctx, it));
                        let lanes = lanes(&tiling, &own.expect("a dimension"), point);
                        dim.is_none_or(|dim| lanes.contains(&to[dim]))
                    })
                };
                let needed = all.iter().filter(|(o, i)| from.contains(o) && is_in_step(i));
                let needed: BTreeSet<_> = needed.map(|(_, i)| i.clone()).collect();
                // Of a tile without an element, more may be said to be needed.
                if !needed.is_empty() {
                    prop_assert_eq!(
                        elements(&tiling, &tile, point),
                        needed,
                        "{} {:?}",
                        text,
                        sizes
                    );
                    count += 1;
                }
            }
        }
    }
    for operand in 0..indexing.instruction(at).operands.len() {
        let source = tiling.sources(at)[operand];
        let mut own = Tiling::of(&indexing, source).expect("an array");
        let sizes: Vec<i64> =
            own.space.dims.iter().map(|it| random.between(1, it.extent + 1)).collect();
        prop_assert!(own.space.choose(ctx, &sizes));
        let start = PlacedTile::from(own.root_tiles().remove(0));
        let Ok(tiles) = own.output_tiles(at, operand, &start) else { continue };
        let all = pairs_of_set(&indexing, &indexing.input_to_output(at, operand)[0], 0, &|_, _| 0);
        let tile = tiles.into_iter().next().flatten().expect("an output").tile;
        for point in points(&own).iter().filter(|point| holds(&tile, point)) {
            let from = elements(&own, &start.tile, point);
            let needed = all.iter().filter(|(i, _)| from.contains(i)).map(|(_, o)| o.clone());
            let needed: BTreeSet<_> = needed.collect();
            if !needed.is_empty() {
                prop_assert_eq!(elements(&own, &tile, point), needed, "{} {:?}", text, sizes);
                count += 1;
            }
        }
    }
    Ok(count)
}

#[test]
fn tiles_have_the_elements_that_maps_lead_to() {
    let mut count = 0;
    for seed in 0..1500 {
        let mut random = Random(seed);
        let text = any_module(&mut random);
        count += compare(&text, &mut random).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    assert!(10_000 < count, "{count}");
}

#[test]
fn programs_number_the_tiles_of_a_product() {
    let module = parse(
        "HloModule m\nENTRY e {\n  a = f32[4,6] parameter(0)\n  b = f32[6,8] parameter(1)\n  \
         n = f32[4,6] negate(a)\n  ROOT d = f32[4,8] dot(n, b), lhs_contracting_dims={1}, \
         rhs_contracting_dims={0}\n}\n",
    );
    let indexing = Indexing::of(&module);
    let (ctx, at) = (indexing.context(), indexing.root(module.entry));
    let mut tiling = Tiling::of(&indexing, at).expect("an array");
    assert_eq!(tiling.positions, [(at, 0), (at, 1), (at, 2)]);
    assert_eq!(tiling.space.dims[2].order, Order::Sequential);
    let root = PlacedTile::from(tiling.root_tiles().remove(0));
    assert_eq!(tiling.offsets(&root.tile, &tiling.loops(&[])), None);
    assert!(tiling.space.choose(ctx, &[2, 4, 3]));
    let root = PlacedTile::from(tiling.root_tiles().remove(0));
    let lhs = tiling.operand_tiles(at, &root).expect("tiles").remove(0).expect("a tile");
    let text = |tile: &PlacedTile, through: &[InstructionRef]| {
        let map = tiling.offsets(&tile.tile, &tiling.loops(through)).expect("chosen sizes");
        map.display(ctx).to_string()
    };
    assert_eq!(
        [text(&root, &[]), text(&lhs, &[at])],
        [
            "(pid_0) -> ((pid_0 / 2) * 2, (pid_0 mod 2) * 4), domain: pid_0 in [0, 3]",
            "(pid_0) -> ((pid_0 / 4) * 2, (pid_0 mod 2) * 3), domain: pid_0 in [0, 7]",
        ]
    );
    assert!(tiling.is_partition(at, &root, &tiling.loops(&[])));
    // The programs with the same rows have the same tile of the lhs.
    assert!(!tiling.is_partition(tiling.sources(at)[0], &lhs, &tiling.loops(&[at])));
}

#[test]
fn a_tuple_is_tiled_by_the_operand_that_needs_the_others() {
    let text = |root: &str| {
        format!(
            "HloModule m\nENTRY e {{\n  a = f32[4,6] parameter(0)\n  n = f32[4,6] negate(a)\n  \
             r = f32[24] reshape(n)\n  s = f32[4,6] sine(a)\n  {root}\n}}\n"
        )
    };
    let root = |text: &str| {
        let module = parse(text);
        let indexing = Indexing::of(&module);
        let tiling = Tiling::of(&indexing, indexing.root(module.entry));
        tiling.map(|tiling| indexing.instruction(tiling.root()).name.to_string())
    };
    let one = text("ROOT t = (f32[24], f32[4,6]) tuple(r, n)");
    assert_eq!(root(&one), Ok("r".to_string()));
    let two = text("ROOT t = (f32[24], f32[4,6]) tuple(r, s)");
    assert_eq!(root(&two), Err(Untiled::Root));
}

#[test]
fn fusions_are_looked_through() {
    let module = parse(
        "HloModule m\nf {\n  p = f32[8] parameter(0)\n  ROOT n = f32[8] negate(p)\n}\n\
         g {\n  p = f32[8] parameter(0)\n  ROOT r = f32[2,4] reshape(p)\n}\n\
         ENTRY e {\n  a = f32[8] parameter(0)\n  x = f32[8] fusion(a), kind=kLoop, calls=f\n  \
         ROOT y = f32[2,4] fusion(x), kind=kLoop, calls=g\n}\n",
    );
    let indexing = Indexing::of(&module);
    let tiling = Tiling::through_fusions(&indexing, indexing.root(module.entry)).expect("an array");
    let tiles = tiling.tiles().expect("tiles");
    let names: Vec<&str> = tiles.iter().map(|(at, _)| &*indexing.instruction(*at).name).collect();
    assert_eq!(names, ["r", "n", "a"]);
}

#[test]
fn what_has_no_tile_says_why() {
    let reason = |text: String| {
        let module = parse(&text);
        let indexing = Indexing::of(&module);
        let tiling = Tiling::of(&indexing, indexing.root(module.entry)).expect("an array");
        tiling.tiles().expect_err("no tile").to_string()
    };
    let reverse = module(&[&[4]], &[4], "reverse", "dimensions={0}");
    assert_eq!(reason(reverse), "operand 0: a stride of -1");
    let transposed = module(&[&[2, 6]], &[4, 3], "reshape", "");
    assert_eq!(reason(transposed), "operand 0: two terms that depend on the variable Dim(0)");
    let sort = "HloModule m\nENTRY e {\n  a = f32[4] parameter(0)\n  \
                ROOT c = f32[4] custom-call(a), custom_call_target=\"f\"\n}\n";
    assert_eq!(reason(sort.to_string()), "operand 0 is not read by one map");
}
