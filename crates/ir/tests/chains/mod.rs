//! Random chains of tensor operations that only move elements, and ways to build the map of
//! one chain that differ in everything but the meaning.
//!
//! Shared by the completeness test and the benchmarks.

use tc_ir::{Context, Expr, IndexingMap, compose, compose_simplified};

/// A seeded generator of random numbers (SplitMix64, Steele et al. 2014).
pub struct Random(u64);

impl Random {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.next() % end).unwrap_or(0)
    }

    /// A number in `[lo, hi]`.
    pub fn between(&mut self, lo: i64, hi: i64) -> i64 {
        let count = usize::try_from(hi - lo + 1).unwrap_or(1);
        lo + i64::try_from(self.below(count)).unwrap_or(0)
    }

    /// Whether something of probability `1 / one_in` happens.
    pub fn once_in(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    /// The numbers below `count` in a random order.
    pub fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for i in (1..count).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }

    /// Extents with the product `size`: its prime factors in up to `max_rank` groups.
    pub fn shape_of_size(&mut self, size: i64, max_rank: usize) -> Vec<i64> {
        let rank = 1 + self.below(max_rank);
        let mut shape = vec![1; rank];
        let (mut rest, mut prime) = (size, 2);
        while 1 < rest {
            if rest % prime == 0 {
                rest /= prime;
                let axis = self.below(rank);
                shape[axis] *= prime;
            } else {
                prime += 1;
            }
        }
        shape
    }
}

/// An operation on one tensor.
#[derive(Clone, Debug)]
pub enum Step {
    /// The elements in row-major order under other extents.
    Reshape(Vec<i64>),
    /// Dimension `i` of the result is dimension `permutation[i]` of the operand.
    Transpose(Vec<usize>),
    /// Per dimension the first index, the distance, and how many.
    Slice(Vec<(i64, i64, i64)>),
    /// The given extents, of which those at the given places are the operand's.
    Broadcast(Vec<i64>, Vec<usize>),
}

/// The extents of a chain before its first operation and after each.
pub type Shape = Vec<i64>;

impl Step {
    /// The extents of the result on an operand of the given ones.
    pub fn result_shape(&self, operand: &[i64]) -> Shape {
        match self {
            Step::Reshape(shape) | Step::Broadcast(shape, _) => shape.clone(),
            Step::Transpose(permutation) => permutation.iter().map(|&i| operand[i]).collect(),
            Step::Slice(parts) => parts.iter().map(|&(_, _, extent)| extent).collect(),
        }
    }

    /// The map from elements of the result to those of an operand with the given extents.
    pub fn map(&self, ctx: &Context, operand: &[i64]) -> IndexingMap {
        let shape = self.result_shape(operand);
        let mut map = IndexingMap::identity(ctx, &shape);
        let dims = map.results;
        map.results = match self {
            Step::Reshape(_) => delinearized(ctx, linearized(ctx, &dims, &shape), operand),
            Step::Transpose(permutation) => {
                let mut results = dims.clone();
                for (&place, &dim) in permutation.iter().zip(&dims) {
                    results[place] = dim;
                }
                results
            }
            Step::Slice(parts) => dims
                .iter()
                .zip(parts)
                .map(|(&dim, &(start, stride, _))| {
                    let scaled = ctx.mul(dim, ctx.constant(stride));
                    ctx.add(scaled, ctx.constant(start))
                })
                .collect(),
            Step::Broadcast(_, places) => places.iter().map(|&place| dims[place]).collect(),
        };
        map
    }

    /// A random operation on an operand of the given extents, with a result of at most
    /// `max_size` elements.
    pub fn random(random: &mut Random, operand: &[i64], max_size: i64) -> Step {
        let size: i64 = operand.iter().product();
        match random.below(6) {
            0..=2 => Step::Reshape(random.shape_of_size(size, 4)),
            3 => Step::Transpose(random.permutation(operand.len())),
            4 => {
                let part = |&extent: &i64, random: &mut Random| {
                    if random.once_in(2) {
                        return (0, 1, extent);
                    }
                    let start = random.between(0, (extent - 1).min(3));
                    let stride = random.between(1, 3);
                    let most = (extent - start + stride - 1) / stride;
                    (start, stride, random.between((most + 1) / 2, most))
                };
                Step::Slice(operand.iter().map(|extent| part(extent, random)).collect())
            }
            _ => {
                let room = (max_size / size.max(1)).min(5);
                if room < 2 || 4 < operand.len() {
                    return Step::Transpose(random.permutation(operand.len()));
                }
                let (place, extent) = (random.below(operand.len() + 1), random.between(2, room));
                let mut shape = operand.to_vec();
                shape.insert(place, extent);
                let places = (0..shape.len()).filter(|&i| i != place).collect();
                Step::Broadcast(shape, places)
            }
        }
    }

    /// Operations that together do the same on an operand of the given extents, by way of an
    /// intermediate tensor.
    pub fn split(&self, random: &mut Random, operand: &[i64]) -> Vec<Step> {
        match self {
            Step::Reshape(_) => {
                let between = random.shape_of_size(operand.iter().product(), 4);
                vec![Step::Reshape(between), self.clone()]
            }
            // The second takes dimension i from where the first has put permutation[i].
            Step::Transpose(permutation) => {
                let first = random.permutation(permutation.len());
                let place = |&dim: &usize| first.iter().position(|&d| d == dim).unwrap_or(dim);
                let second = permutation.iter().map(place).collect();
                vec![Step::Transpose(first), Step::Transpose(second)]
            }
            Step::Slice(parts) => {
                let first: Vec<_> = parts
                    .iter()
                    .zip(operand)
                    .map(|(&(start, _, _), &extent)| (start, 1, extent - start))
                    .collect();
                let second = parts.iter().map(|&(_, stride, extent)| (0, stride, extent)).collect();
                vec![Step::Slice(first), Step::Slice(second)]
            }
            Step::Broadcast(shape, places) => {
                let ones: Vec<i64> = (0..shape.len())
                    .map(|i| if places.contains(&i) { shape[i] } else { 1 })
                    .collect();
                let all = (0..shape.len()).collect();
                // A broadcast of a dimension of extent 1 reads index 0 of it: as a slice that
                // does not move.
                if ones == *shape {
                    return vec![Step::Reshape(ones), Step::Broadcast(shape.clone(), all)];
                }
                vec![self.clone(), Step::Transpose(all)]
            }
        }
    }
}

/// The row-major position of an element.
fn linearized(ctx: &Context, indices: &[Expr], shape: &[i64]) -> Expr {
    indices.iter().zip(shape).fold(ctx.constant(0), |position, (&index, &extent)| {
        ctx.add(ctx.mul(position, ctx.constant(extent)), index)
    })
}

/// The indices of the element at a row-major position.
fn delinearized(ctx: &Context, position: Expr, shape: &[i64]) -> Vec<Expr> {
    let mut stride = 1;
    let mut indices: Vec<Expr> = shape
        .iter()
        .enumerate()
        .rev()
        .map(|(axis, &extent)| {
            let quotient = ctx.floor_div(position, ctx.constant(stride));
            stride *= extent;
            if axis == 0 { quotient } else { ctx.modulo(quotient, ctx.constant(extent)) }
        })
        .collect();
    indices.reverse();
    indices
}

/// A chain of operations and the extents that it starts from.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The extents of the operand of the first operation.
    pub operand: Shape,
    /// The operations, in the order in which they are performed.
    pub steps: Vec<Step>,
}

impl Chain {
    /// A random chain of `length` operations on tensors of at most `max_size` elements.
    pub fn random(random: &mut Random, length: usize, max_size: i64) -> Chain {
        let mut operand = vec![1; 1 + random.below(4)];
        loop {
            let axis = random.below(operand.len());
            let factor = [2, 2, 2, 3, 3, 4, 5, 7][random.below(8)];
            if max_size < 2 * factor * operand.iter().product::<i64>() {
                break;
            }
            operand[axis] *= factor;
        }
        let mut shape = operand.clone();
        let mut steps = Vec::new();
        for _ in 0..length {
            let step = Step::random(random, &shape, max_size);
            shape = step.result_shape(&shape);
            steps.push(step);
        }
        Chain { operand, steps }
    }

    /// The same chain with some operations split in two.
    pub fn detour(&self, random: &mut Random) -> Chain {
        let mut shape = self.operand.clone();
        let mut steps = Vec::new();
        for step in &self.steps {
            if random.once_in(2) {
                steps.extend(step.split(random, &shape));
            } else {
                steps.push(step.clone());
            }
            shape = step.result_shape(&shape);
        }
        Chain { operand: self.operand.clone(), steps }
    }

    /// The maps of the operations from the last one back to the first: each leads from the
    /// result of an operation to its operand, so that they compose in this order.
    pub fn maps(&self, ctx: &Context) -> Vec<IndexingMap> {
        let mut shape = self.operand.clone();
        let mut maps = Vec::new();
        for step in &self.steps {
            maps.push(step.map(ctx, &shape));
            shape = step.result_shape(&shape);
        }
        maps.reverse();
        maps
    }
}

/// How the maps of a chain are put together: which neighbours are composed next, and whether
/// what comes of it is simplified at once.
pub type Order = Vec<(usize, bool)>;

/// The order that composes the first two maps until one is left, simplifying each.
pub fn in_order(num_maps: usize) -> Order {
    vec![(0, true); num_maps.saturating_sub(1)]
}

/// A random order.
pub fn random_order(random: &mut Random, num_maps: usize) -> Order {
    (1..num_maps).rev().map(|pairs| (random.below(pairs), random.once_in(2))).collect()
}

/// The composition of maps in the given order, simplified.
pub fn composed(
    ctx: &Context,
    maps: &[IndexingMap],
    order: &Order,
) -> Result<IndexingMap, tc_ir::ComposeError> {
    let mut maps = maps.to_vec();
    for &(place, simplify) in order {
        let second = maps.remove(place + 1);
        let composed = if simplify { compose_simplified } else { compose };
        maps[place] = composed(ctx, &maps[place], &second)?;
    }
    let mut map = maps.swap_remove(0);
    map.simplify(ctx);
    Ok(map)
}
