//! Chains of maps as compilers compose them, drawn at random so that none is seen twice.

use tc_ir::{Constraint, Context, Expr, IndexingMap, Interval, Variable};

use crate::chains::{Chain, Random, Step};

/// Maps that compose in the order of the list; a single one is simplified only.
pub type Work = Vec<IndexingMap>;

/// A kind of work.
pub struct Workload {
    /// Its name.
    pub name: &'static str,
    /// How many are measured at once.
    pub batch: usize,
    /// The speed against MLIR that is aimed at, if any.
    pub aim: Option<f64>,
    /// Whether MLIR comes to an end on it within minutes.
    pub peer: bool,
    /// Draws one.
    pub draw: fn(&Context, &mut Random) -> Work,
}

/// What is measured.
pub const WORKLOADS: &[Workload] = &[
    Workload { name: "transposes", batch: 2000, aim: Some(3.0), peer: true, draw: transposes },
    Workload { name: "slices", batch: 2000, aim: Some(3.0), peer: true, draw: slices },
    Workload {
        name: "convolution windows",
        batch: 2000,
        aim: Some(3.0),
        peer: true,
        draw: convolution,
    },
    Workload { name: "pooling windows", batch: 2000, aim: Some(3.0), peer: true, draw: pooling },
    Workload {
        name: "reshape round trips",
        batch: 1000,
        aim: Some(20.0),
        peer: true,
        draw: round_trip,
    },
    Workload { name: "reshape chains", batch: 500, aim: Some(20.0), peer: true, draw: reshapes },
    Workload {
        name: "reshape-transpose chains",
        batch: 300,
        aim: None,
        peer: true,
        draw: reshape_transposes,
    },
    Workload { name: "fusion of 200 operations", batch: 1, aim: None, peer: false, draw: fusion },
    Workload { name: "documented examples", batch: 1000, aim: None, peer: true, draw: documented },
    Workload { name: "towers of depth 64", batch: 2, aim: None, peer: false, draw: tower64 },
    Workload {
        name: "maps with 50 constraints",
        batch: 20,
        aim: None,
        peer: true,
        draw: constrained,
    },
];

fn extents(random: &mut Random, rank: usize) -> Vec<i64> {
    (0..rank).map(|_| random.between(2, 4096)).collect()
}

fn chain(ctx: &Context, operand: Vec<i64>, steps: Vec<Step>) -> Work {
    Chain { operand, steps }.maps(ctx)
}

fn transposes(ctx: &Context, random: &mut Random) -> Work {
    let operand = extents(random, 4);
    let steps = (0..2).map(|_| Step::Transpose(random.permutation(4))).collect();
    chain(ctx, operand, steps)
}

fn slices(ctx: &Context, random: &mut Random) -> Work {
    let result = extents(random, 3);
    let (mut extents, mut steps) = (result, Vec::new());
    for _ in 0..2 {
        let parts: Vec<_> = extents
            .iter()
            .map(|&extent| (random.between(0, 1000), random.between(1, 50), extent))
            .collect();
        extents = parts.iter().map(|(start, stride, extent)| start + stride * extent).collect();
        steps.push(Step::Slice(parts));
    }
    steps.reverse();
    chain(ctx, extents, steps)
}

/// `(n, h, w, f)[kh, kw, c] -> (n, h * stride + kh * dilation, .., c)`, after which the operand
/// is a slice of another tensor.
fn convolution(ctx: &Context, random: &mut Random) -> Work {
    let (size, stride, dilation) =
        (random.between(8, 512), random.between(1, 4), random.between(1, 3));
    let (kernel, channels) = (random.between(1, 11), random.between(1, 512));
    let spatial = |dim: u32, range: u32| {
        let window = ctx.mul(ctx.range(range), ctx.constant(dilation));
        ctx.add(ctx.mul(ctx.dim(dim), ctx.constant(stride)), window)
    };
    let results = vec![ctx.dim(0), spatial(1, 0), spatial(2, 1), ctx.range(2)];
    let batch = random.between(1, 64);
    let window = unconstrained(
        ctx,
        &[batch, size, size, random.between(1, 512)],
        &[kernel, kernel, channels],
        results,
    );
    let read = (size - 1) * stride + (kernel - 1) * dilation + 1;
    let border = random.between(0, 1000);
    let slice = Step::Slice(vec![
        (0, 1, batch),
        (border, 1, read),
        (border, 1, read),
        (random.between(0, 1000), 1, channels),
    ]);
    let operand = [batch, border + read, border + read, 2000 + channels];
    vec![window, slice.map(ctx, &operand)]
}

/// `(n, c, h, w)[kh, kw] -> (n, c, h * stride + kh, w * stride + kw)`, after which the operand
/// is a transposed tensor.
fn pooling(ctx: &Context, random: &mut Random) -> Work {
    let (size, stride, kernel) =
        (random.between(8, 512), random.between(1, 100), random.between(1, 100));
    let spatial = |dim: u32, range: u32| {
        ctx.add(ctx.mul(ctx.dim(dim), ctx.constant(stride)), ctx.range(range))
    };
    let results = vec![ctx.dim(0), ctx.dim(1), spatial(2, 0), spatial(3, 1)];
    let (batch, channels) = (random.between(1, 64), random.between(1, 512));
    let window = unconstrained(ctx, &[batch, channels, size, size], &[kernel, kernel], results);
    let read = (size - 1) * stride + kernel;
    let transpose = Step::Transpose(vec![0, 3, 1, 2]);
    vec![window, transpose.map(ctx, &[batch, read, read, channels])]
}

/// Extents with products below 2^40.
fn large_shape(random: &mut Random, rank: usize) -> Vec<i64> {
    (0..rank).map(|_| random.between(2, 60) * random.between(1, 4)).collect()
}

fn round_trip(ctx: &Context, random: &mut Random) -> Work {
    let operand = large_shape(random, 3);
    let between = random.shape_of_size(operand.iter().product(), 3);
    chain(ctx, operand.clone(), vec![Step::Reshape(between), Step::Reshape(operand)])
}

fn reshapes(ctx: &Context, random: &mut Random) -> Work {
    let operand = large_shape(random, 3);
    let size = operand.iter().product();
    let steps = (0..4).map(|_| Step::Reshape(random.shape_of_size(size, 4))).collect();
    chain(ctx, operand, steps)
}

fn reshape_transposes(ctx: &Context, random: &mut Random) -> Work {
    let operand = large_shape(random, 3);
    let size = operand.iter().product();
    let mut steps = Vec::new();
    for _ in 0..2 {
        let shape = random.shape_of_size(size, 4);
        steps.push(Step::Transpose(random.permutation(shape.len())));
        steps.insert(steps.len() - 1, Step::Reshape(shape));
    }
    chain(ctx, operand, steps)
}

/// Mostly elementwise operations, with transposes, broadcasts, slices and reshapes between.
fn fusion(ctx: &Context, random: &mut Random) -> Work {
    let operand = large_shape(random, 3);
    let mut shape = operand.clone();
    let mut steps = Vec::new();
    for number in 0..200 {
        let step = match number % 10 {
            2 => Step::Transpose(random.permutation(shape.len())),
            5 => Step::Slice(
                shape.iter().map(|&extent| (1.min(extent - 1), 1, (extent - 1).max(1))).collect(),
            ),
            // Splits the last dimension from time to time, and puts it together again.
            8 if number % 20 == 8 => {
                let last = shape.len() - 1;
                let mut split = shape.clone();
                let factor = (2..=8).rev().find(|f| shape[last] % f == 0).unwrap_or(1);
                split[last] /= factor;
                split.push(factor);
                Step::Reshape(split)
            }
            8 => {
                let mut joined = shape.clone();
                let last = joined.pop().unwrap_or(1);
                let end = joined.len() - 1;
                joined[end] *= last;
                Step::Reshape(joined)
            }
            _ => Step::Transpose((0..shape.len()).collect()),
        };
        shape = step.result_shape(&shape);
        steps.push(step);
    }
    chain(ctx, operand, steps)
}

/// The examples of "Indexing analysis" (openxla.org/xla/indexing), other extents each time.
fn documented(ctx: &Context, random: &mut Random) -> Work {
    let (n, m) = (random.between(5, 3000), random.between(2, 3000));
    let (d0, d1, d2) = (ctx.dim(0), ctx.dim(1), ctx.dim(2));
    let c = |value: i64| ctx.constant(value);
    let linear = |factors: &[(Expr, i64)]| {
        factors
            .iter()
            .map(|&(expr, factor)| ctx.mul(expr, c(factor)))
            .reduce(|lhs, rhs| ctx.add(lhs, rhs))
            .unwrap_or_else(|| c(0))
    };
    let (dims, results) = match random.below(4) {
        0 => (vec![n, m], vec![ctx.add(d0, ctx.floor_div(d1, c(m))), ctx.modulo(d1, c(m))]),
        1 => {
            let sum = linear(&[(d0, n * m), (d1, m), (d2, 1)]);
            let inner = ctx.modulo(sum, c(n * m));
            let results = vec![
                ctx.floor_div(sum, c(n * m)),
                ctx.floor_div(inner, c(m)),
                ctx.modulo(d2, c(m)),
            ];
            (vec![10, n, m], results)
        }
        2 => {
            let sum = linear(&[(d0, 4 * m), (d1, m), (d2, 1)]);
            let by = c(2 * m);
            (vec![n, 10, m], vec![ctx.floor_div(sum, by), ctx.modulo(sum, by)])
        }
        _ => {
            let sum = linear(&[(d0, -m), (d1, -1)]);
            let sum = ctx.add(sum, c(n * m - 1));
            let quotient = ctx.floor_div(sum, c(m));
            (vec![n, m], vec![ctx.add(ctx.neg(quotient), c(n - 1))])
        }
    };
    vec![unconstrained(ctx, &dims, &[], results)]
}

fn tower64(ctx: &Context, random: &mut Random) -> Work {
    vec![tower(ctx, random, 64)]
}

/// Divisions and remainders nested to the given depth.
pub fn tower(ctx: &Context, random: &mut Random, depth: usize) -> IndexingMap {
    let mut expr = ctx.dim(0);
    for level in 0..depth {
        let divisor = random.between(3, 1000);
        expr = if level % 2 == 0 {
            ctx.floor_div(
                ctx.add(ctx.mul(expr, ctx.constant(divisor - 1)), ctx.dim(1)),
                ctx.constant(divisor),
            )
        } else {
            ctx.modulo(ctx.add(expr, ctx.dim(2)), ctx.constant(1_000_000 + divisor))
        };
    }
    unconstrained(ctx, &[1 << 40, 4096, 4096], &[], vec![expr])
}

/// An expression of which every level uses the one below twice.
pub fn shared(ctx: &Context, random: &mut Random, depth: usize) -> IndexingMap {
    let mut expr = ctx.dim(0);
    for _ in 0..depth {
        let quotient = ctx.floor_div(expr, ctx.constant(random.between(2, 9)));
        let remainder = ctx.modulo(expr, ctx.constant(random.between(100, 1000)));
        expr = ctx.add(ctx.add(quotient, remainder), ctx.dim(1));
    }
    unconstrained(ctx, &[1 << 40, 4096], &[], vec![expr])
}

/// Work of a size: what grows in it is its name.
pub struct Growth {
    /// Its name.
    pub name: &'static str,
    /// The largest size.
    pub largest: usize,
    /// Draws one of a size.
    pub draw: fn(&Context, &mut Random, usize) -> Work,
}

/// What is measured at sizes that grow.
pub const GROWTHS: &[Growth] = &[
    Growth { name: "minimum of n variables", largest: 512, draw: minimum },
    Growth { name: "n nested maxima", largest: 512, draw: maxima },
    Growth { name: "sum of n quotients", largest: 512, draw: quotients },
    Growth { name: "sum of n remainders", largest: 512, draw: remainders },
    Growth { name: "sum of n quotients and remainders", largest: 512, draw: both },
    Growth { name: "n padded windows", largest: 64, draw: padded_windows },
    Growth { name: "n reshapes in turn", largest: 512, draw: there_and_back },
    Growth { name: "n reshapes at once", largest: 512, draw: there_and_back_at_once },
];

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// `min(min(d0, d1), ..)`
fn minimum(ctx: &Context, random: &mut Random, size: usize) -> Work {
    let extents: Vec<i64> = (0..size).map(|_| random.between(2, 1000)).collect();
    let least = (1..count(size)).fold(ctx.dim(0), |least, i| ctx.min(least, ctx.dim(i)));
    vec![unconstrained(ctx, &extents, &[], vec![least])]
}

/// `e = max(e, e floordiv 2 + d2)` from `d0 + d1` on.
fn maxima(ctx: &Context, random: &mut Random, size: usize) -> Work {
    let mut expr = ctx.add(ctx.dim(0), ctx.dim(1));
    for _ in 0..size {
        let half = ctx.floor_div(expr, ctx.constant(2));
        expr = ctx.max(expr, ctx.add(half, ctx.dim(2)));
    }
    let extents = [random.between(100, 200), random.between(100, 200), random.between(100, 200)];
    vec![unconstrained(ctx, &extents, &[], vec![expr])]
}

/// `(d0 + d1 * a) floordiv c + ..`, no two with one divisor.
fn quotients(ctx: &Context, random: &mut Random, size: usize) -> Work {
    sum_of_divisions(ctx, random, size, |value, divisor| ctx.floor_div(value, divisor))
}

/// `(d0 + d1 * a) mod c + ..`, no two with one divisor.
fn remainders(ctx: &Context, random: &mut Random, size: usize) -> Work {
    sum_of_divisions(ctx, random, size, |value, divisor| ctx.modulo(value, divisor))
}

/// `(d0 + d1 * a) floordiv c + (d0 + d1 * a) mod c + ..`, no two with one divisor.
fn both(ctx: &Context, random: &mut Random, size: usize) -> Work {
    sum_of_divisions(ctx, random, size, |value, divisor| {
        ctx.add(ctx.floor_div(value, divisor), ctx.modulo(value, divisor))
    })
}

fn sum_of_divisions(
    ctx: &Context,
    random: &mut Random,
    size: usize,
    divided: impl Fn(Expr, Expr) -> Expr,
) -> Work {
    let mut sum = ctx.constant(0);
    for place in 0..size {
        let scaled = ctx.mul(ctx.dim(1), ctx.constant(random.between(2, 99)));
        let divisor = ctx.constant(1000 + i64::from(count(place)));
        sum = ctx.add(sum, divided(ctx.add(ctx.dim(0), scaled), divisor));
    }
    vec![unconstrained(ctx, &[1 << 30, 1 << 30], &[], vec![sum])]
}

/// `d0 + s0 - 1` where that is in bounds, of itself.
fn padded_windows(ctx: &Context, random: &mut Random, size: usize) -> Work {
    let extent = random.between(100, 200);
    let place = ctx.add(ctx.add(ctx.dim(0), ctx.range(0)), ctx.constant(-1));
    let mut window = unconstrained(ctx, &[extent], &[3], vec![place]);
    window.constraints.push(Constraint { expr: place, interval: Interval::new(0, extent - 1) });
    vec![window; size]
}

/// Reshapes between 12x35 and 20x21.
fn there_and_back(ctx: &Context, _: &mut Random, size: usize) -> Work {
    let shapes = [vec![20, 21], vec![12, 35]];
    let steps = shapes.into_iter().cycle().take(size).map(Step::Reshape).collect();
    chain(ctx, vec![12, 35], steps)
}

/// The same as one expression, before anything is simplified.
fn there_and_back_at_once(ctx: &Context, _: &mut Random, size: usize) -> Work {
    let (mut row, mut column) = (ctx.dim(0), ctx.dim(1));
    for (from, to) in [(35, 21), (21, 35)].into_iter().cycle().take(size) {
        let position = ctx.add(ctx.mul(row, ctx.constant(from)), column);
        row = ctx.floor_div(position, ctx.constant(to));
        column = ctx.modulo(position, ctx.constant(to));
    }
    vec![unconstrained(ctx, &[12, 35], &[], vec![row, column])]
}

fn constrained(ctx: &Context, random: &mut Random) -> Work {
    let dims: Vec<i64> = (0..10).map(|_| random.between(100, 5000)).collect();
    let vars: Vec<Expr> = (0..10).map(|i| ctx.dim(i)).collect();
    let mut map = unconstrained(ctx, &dims, &[], vars.clone());
    for number in 0..50 {
        let (a, b) = (vars[random.below(10)], vars[random.below(10)]);
        let sum = ctx.add(ctx.mul(a, ctx.constant(random.between(2, 99))), b);
        let expr = match number % 3 {
            0 => sum,
            1 => ctx.floor_div(sum, ctx.constant(random.between(2, 99))),
            _ => ctx.modulo(sum, ctx.constant(random.between(50, 5000))),
        };
        let interval = Interval::new(random.between(0, 3), random.between(1000, 100_000));
        map.constraints.push(Constraint { expr, interval });
    }
    vec![map]
}

/// A map without constraints.
fn unconstrained(ctx: &Context, dims: &[i64], ranges: &[i64], results: Vec<Expr>) -> IndexingMap {
    let variables = |extents: &[i64]| {
        extents.iter().map(|&e| Variable::bounded(ctx, Interval::new(0, e - 1))).collect()
    };
    IndexingMap { dims: variables(dims), ranges: variables(ranges), results, ..Default::default() }
}
