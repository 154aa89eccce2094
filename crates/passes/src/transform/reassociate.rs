//! `tml-reassociate`: reorder products and contractions to minimize operations.
//!
//! A network consists of products, contractions, transpositions and scalar multiplications only:
//! tensors, and pairs of their dimensions to sum over. A sum with several uses is computed once and is a
//! tensor of other networks; an outer product is inlined into each of its uses. Every order of
//! evaluation yields the same elements, and the same undefined ones, because all of them read the same
//! elements.
//!
//! The pass finds the cheapest order without outer products by dynamic programming over connected sets
//! of tensors (Pfeifer, Haegeman and Verstraete, "Faster identification of optimal contraction sequences
//! for tensor networks", 2014). For more than [`MAX_EXACT`] tensors, it joins the cheapest pair first.
//! Among equally cheap orders, it prefers sums over outer dimensions of temporaries to sums over outer
//! dimensions of arguments and results. Parts that share no dimension are multiplied last. The
//! expression changes only if the new order needs fewer operations.
//!
//! The product of a chain of three matrices, `(A # B # C) . [2 3, 4 5]`, takes one loop nest over four
//! indices as written, and two loop nests over three indices afterwards:
//!
//! ```mlir
//! %p = tml.product %A, %B : tensor<8x8xf64>, tensor<8x8xf64> -> tensor<8x8x8x8xf64>
//! %q = tml.contract %p [1, 2] : tensor<8x8x8x8xf64> -> tensor<8x8xf64>
//! %r = tml.product %q, %C : tensor<8x8xf64>, tensor<8x8xf64> -> tensor<8x8x8x8xf64>
//! %s = tml.contract %r [1, 2] : tensor<8x8x8x8xf64> -> tensor<8x8xf64>
//! ```
//!
//! Remarks, for each network of two tensors or more: `reassociated`, or `kept` if the written order is
//! as cheap, both with the floating-point operations before and after.

use melior::ir::{ValueLike, operation::OperationLike};
use std::collections::{BTreeSet, HashMap};
use tc_dialects::{
    mlir::{self, Builder, Op, Val},
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, remark},
    tml::{Program, dims, extents, syntax::checked::MAX_RANK},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "tml-reassociate",
    summary: "Reorder products and contractions to minimize operations",
    anchor: "tml.program",
    options: &[],
    dependent_dialects: &["tml"],
    run,
};

/// Tensors of one network for which every order is compared.
pub const MAX_EXACT: usize = 12;
/// Larger networks stay as they are.
const MAX_LEAVES: usize = 64;

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(program) = Program::cast(pass.op) else { return Ok(()) };
    let mut networks: HashMap<usize, Network> = HashMap::new();
    let mut indices = Indices::default();
    for op in mlir::ops(program.body()) {
        if !is_part(op) {
            continue;
        }
        let network = Network::of(op, &mut networks, &mut indices);
        let result = mlir::result(op, 0);
        let users = mlir::uses(result);
        let is_inner = !users.is_empty() && users.iter().all(|(user, _)| is_part(*user));
        let is_shared = 1 < users.len();
        let is_small = network.leaves.len() < MAX_LEAVES;
        if is_small && (is_inner && !is_shared || network.is_product()) {
            networks.insert(mlir::value_key(result), network);
        } else {
            improve(program, op, &network, &mut indices);
        }
    }
    Ok(())
}

/// Whether an operation is a part of a network.
fn is_part(op: Op) -> bool {
    ["tml.product", "tml.contract", "tml.transpose", "tml.smul"].contains(&mlir::name(op))
}

/// Indices of dimensions: their extents, and which are the same.
#[derive(Default)]
struct Indices {
    extents: Vec<i64>,
    same_as: Vec<usize>,
}

impl Indices {
    fn add(&mut self, extent: i64) -> usize {
        self.extents.push(extent);
        self.same_as.push(self.same_as.len());
        self.same_as.len() - 1
    }

    fn find(&self, mut index: usize) -> usize {
        while self.same_as[index] != index {
            index = self.same_as[index];
        }
        index
    }

    /// The number of points that these indices have.
    fn points<'a>(&self, indices: impl IntoIterator<Item = &'a usize>) -> f64 {
        let distinct: BTreeSet<_> = indices.into_iter().map(|index| self.find(*index)).collect();
        distinct.into_iter().map(|index| self.extents[index] as f64).product()
    }
}

/// A tensor of a network, with the index of each dimension.
#[derive(Clone)]
struct Leaf<'c> {
    value: Val<'c>,
    indices: Vec<usize>,
}

/// What products, contractions and transpositions compute from tensors.
#[derive(Clone)]
struct Network<'c> {
    leaves: Vec<Leaf<'c>>,
    /// The indices of the result.
    dims: Vec<usize>,
    /// The indices and the number of factors of the loop nest that is not emitted yet.
    open: Vec<usize>,
    factors: usize,
    has_sum: bool,
    /// Operations of the loop nests that are, in the order written.
    flops: f64,
}

impl<'c> Network<'c> {
    fn leaf(value: Val<'c>, indices: &mut Indices) -> Self {
        let dims: Vec<_> = extents(value).into_iter().map(|it| indices.add(it)).collect();
        let leaves = vec![Leaf { value, indices: dims.clone() }];
        Self { leaves, open: dims.clone(), dims, factors: 1, has_sum: false, flops: 0.0 }
    }

    /// The network of an operation, of which those of its operands become a part.
    fn of(op: Op<'c>, known: &mut HashMap<usize, Self>, indices: &mut Indices) -> Self {
        let mut operand = |number: usize| {
            let value = mlir::operand(op, number);
            match known.get(&mlir::value_key(value)) {
                Some(network) => network.renamed(indices),
                None => Self::leaf(value, indices),
            }
        };
        match mlir::name(op) {
            "tml.product" | "tml.smul" => {
                let (lhs, rhs) = (operand(0), operand(1));
                let (mut lhs, rhs) = (lhs.stored(indices), rhs.stored(indices));
                lhs.leaves.extend(rhs.leaves);
                lhs.dims.extend(rhs.dims);
                lhs.open.extend(rhs.open);
                lhs.factors += rhs.factors;
                lhs.flops += rhs.flops;
                lhs
            }
            name => {
                let mut network = operand(0);
                let [first, second] = dims(op).expect("verified");
                if name == "tml.transpose" {
                    network.dims.swap(first, second);
                    return network;
                }
                let last = network.dims.remove(second);
                let first = network.dims.remove(first);
                let (first, last) = (indices.find(first), indices.find(last));
                indices.same_as[last] = first;
                network.has_sum = true;
                network
            }
        }
    }

    /// Whether it is an outer product.
    fn is_product(&self) -> bool {
        !self.has_sum && self.flops == 0.0
    }

    /// The same with indices of its own.
    fn renamed(&self, indices: &mut Indices) -> Self {
        let mut names = HashMap::new();
        let mut rename = |list: &[usize]| -> Vec<usize> {
            let mut rename = |index: &usize| {
                let index = indices.find(*index);
                *names.entry(index).or_insert_with(|| indices.add(indices.extents[index]))
            };
            list.iter().map(&mut rename).collect()
        };
        let mut network = self.clone();
        network.dims = rename(&self.dims);
        network.open = rename(&self.open);
        for leaf in &mut network.leaves {
            leaf.indices = rename(&leaf.indices);
        }
        network
    }

    /// Operations of the open loop nest.
    fn open_flops(&self, indices: &Indices) -> f64 {
        let operations = self.factors - 1 + usize::from(self.has_sum);
        indices.points(&self.open) * operations as f64
    }

    /// The same, as a factor of another nest: sums are temporary tensors.
    fn stored(mut self, indices: &Indices) -> Self {
        if self.has_sum {
            self.flops += self.open_flops(indices);
            self.open.clone_from(&self.dims);
            (self.factors, self.has_sum) = (1, false);
        }
        self
    }
}

/// An order of evaluation: sets of leaves, as bits.
#[derive(Clone, Copy)]
struct Best {
    flops: f64,
    /// Sums over outer dimensions of tensors that are no temporaries, see [`Order::splits_rows`].
    num_split: usize,
    /// The two sets that are joined; none for a single leaf.
    parts: Option<(u64, u64)>,
}

/// Rebuilds a network in a cheaper order, if there is one.
fn improve<'c>(program: Program<'c>, op: Op<'c>, network: &Network<'c>, indices: &mut Indices) {
    if network.leaves.len() < 2 || network.is_product() {
        return;
    }
    let order = Order::new(network, indices);
    let before = network.flops + network.open_flops(indices);
    let after = order.flops(network, indices);
    let is_better = after < before;
    let after_text = after.min(before).to_string();
    let arguments = [
        ("FlopsBefore", &*before.to_string()),
        ("FlopsAfter", &*after_text),
        ("Tensors", &*network.leaves.len().to_string()),
    ];
    let (kind, name) = match is_better {
        true => (RemarkKind::Passed, "reassociated"),
        false => (RemarkKind::Analysis, "kept"),
    };
    remark(op.location(), kind, PASS.argument, name, program.name(), &arguments);
    if is_better {
        let value = order.build(network, indices, &Builder::before(op));
        mlir::replace(op, &[value]);
    }
}

/// The cheapest order found, per part of the network.
struct Order {
    best: HashMap<u64, Best>,
    /// The connected parts.
    parts: Vec<u64>,
    /// Which leaves each index stands in, by the index; sums inside of one leaf are left out.
    places: HashMap<usize, u64>,
}

impl Order {
    fn new(network: &Network, indices: &Indices) -> Self {
        let mut places: HashMap<usize, u64> = HashMap::new();
        for (number, leaf) in network.leaves.iter().enumerate() {
            let found: Vec<_> = leaf.indices.iter().map(|index| indices.find(*index)).collect();
            for index in &found {
                if found.iter().filter(|it| *it == index).count() == 1 {
                    *places.entry(*index).or_default() |= 1 << number;
                }
            }
        }
        let mut order = Self { best: HashMap::new(), parts: Vec::new(), places };
        for (number, leaf) in network.leaves.iter().enumerate() {
            // The sums inside of one tensor.
            let all = leaf.indices.len();
            let traced = indices.points(&leaf.indices);
            let distinct: BTreeSet<_> = leaf.indices.iter().map(|it| indices.find(*it)).collect();
            let flops = if distinct.len() < all { traced } else { 0.0 };
            order.best.insert(1 << number, Best { flops, num_split: 0, parts: None });
        }
        let mut left: u64 = network.leaves.iter().enumerate().map(|(number, _)| 1 << number).sum();
        while left != 0 {
            let mut part = left & left.wrapping_neg();
            loop {
                let larger = order.places.values().filter(|it| **it & part != 0);
                let larger = larger.fold(part, |part, place| part | place);
                if larger == part {
                    break;
                }
                part = larger;
            }
            left &= !part;
            order.parts.push(part);
            match part.count_ones() as usize {
                1 => {}
                2..=MAX_EXACT => order.exact(part, network, indices),
                _ => order.greedy(part, indices),
            }
        }
        order
    }

    /// The indices that a set of leaves has once its inner sums are taken, by their representatives.
    fn outer(&self, set: u64) -> BTreeSet<usize> {
        // An index of two leaves is a sum.
        let is_outer =
            |place: u64| place & set != 0 && (place & !set != 0 || place.count_ones() == 1);
        self.places.iter().filter(|(_, place)| is_outer(**place)).map(|(index, _)| *index).collect()
    }

    /// Operations of joining two sets.
    fn join(&self, first: u64, second: u64, indices: &Indices) -> f64 {
        let all: BTreeSet<_> = self.outer(first).union(&self.outer(second)).copied().collect();
        // No tensor of the language has more dimensions.
        if MAX_RANK < all.len() { f64::INFINITY } else { 2.0 * indices.points(&all) }
    }

    fn share(&self, first: u64, second: u64) -> bool {
        self.places.values().any(|place| place & first != 0 && place & second != 0)
    }

    /// Whether two sets of a part are joined by a sum over a dimension that two or more others follow, of
    /// an operand that is no temporary or for the result. Those others are one long row of a temporary,
    /// and several of a tensor with padding.
    fn splits_rows(
        &self,
        (first, second): (u64, u64),
        part: u64,
        network: &Network,
        indices: &Indices,
    ) -> bool {
        let (lhs, rhs) = (self.outer(first), self.outer(second));
        let is_summed = |index: &usize| {
            let index = indices.find(*index);
            lhs.contains(&index) && rhs.contains(&index)
        };
        network.leaves.iter().enumerate().any(|(number, leaf)| {
            let leaf_alone = 1 << number;
            let is_result = first | second == part && part & leaf_alone != 0;
            (is_result || first == leaf_alone || second == leaf_alone)
                && leaf.indices.iter().rev().skip(2).any(is_summed)
        })
    }

    /// Every order of a connected part: the fewest operations, and of those the fewest split rows.
    fn exact(&mut self, part: u64, network: &Network, indices: &Indices) {
        // Subsets in ascending order: smaller ones first.
        let mut set = 0_u64;
        loop {
            set = set.wrapping_sub(part) & part;
            if 1 < set.count_ones() {
                let mut best: Option<Best> = None;
                let mut first = (set - 1) & set;
                while first != 0 {
                    let second = set & !first;
                    // Each pair once.
                    if second < first
                        && let (Some(lhs), Some(rhs)) =
                            (self.best.get(&first), self.best.get(&second))
                        && self.share(first, second)
                    {
                        let flops = lhs.flops + rhs.flops + self.join(first, second, indices);
                        let splits = self.splits_rows((first, second), part, network, indices);
                        let num_split = lhs.num_split + rhs.num_split + usize::from(splits);
                        if best.is_none_or(|best| (flops, num_split) < (best.flops, best.num_split))
                        {
                            let parts = Some((second, first));
                            best = Some(Best { flops, num_split, parts });
                        }
                    }
                    first = (first - 1) & set;
                }
                if let Some(best) = best {
                    self.best.insert(set, best);
                }
            }
            if set == part {
                return;
            }
        }
    }

    /// The cheapest pair first.
    fn greedy(&mut self, part: u64, indices: &Indices) {
        let mut sets: Vec<u64> =
            (0..64).map(|bit| 1 << bit).filter(|bit| part & bit != 0).collect();
        while 1 < sets.len() {
            let mut cheapest: Option<(f64, usize, usize)> = None;
            for second in 1..sets.len() {
                for first in 0..second {
                    if self.share(sets[first], sets[second]) {
                        let flops = self.join(sets[first], sets[second], indices);
                        if cheapest.is_none_or(|(least, ..)| flops < least) {
                            cheapest = Some((flops, first, second));
                        }
                    }
                }
            }
            let (flops, first, second) = cheapest.expect("the part is connected");
            let (rhs, lhs) = (sets.remove(second), sets.remove(first));
            let flops = flops + self.best[&lhs].flops + self.best[&rhs].flops;
            let best = Best { flops, num_split: 0, parts: Some((lhs, rhs)) };
            self.best.insert(lhs | rhs, best);
            sets.push(lhs | rhs);
        }
    }

    /// Operations of the whole: those of the parts, and of multiplying them in the end.
    fn flops(&self, network: &Network, indices: &Indices) -> f64 {
        let parts: f64 = self.parts.iter().map(|part| self.best[part].flops).sum();
        let products = (self.parts.len() - 1) as f64;
        parts + products * indices.points(&network.dims)
    }

    fn build<'c>(
        &self,
        network: &Network<'c>,
        indices: &Indices,
        builder: &Builder<'c>,
    ) -> Val<'c> {
        let mut whole: Option<Leaf<'c>> = None;
        for part in &self.parts {
            let next = self.build_set(*part, network, indices, builder);
            whole = Some(match whole {
                None => next,
                Some(before) => product(builder, &before, &next),
            });
        }
        let mut whole = whole.expect("a network has leaves");
        for (place, index) in network.dims.iter().enumerate() {
            let index = indices.find(*index);
            let found = whole.indices.iter().skip(place).position(|it| *it == index);
            let found = place + found.expect("the result has these dimensions");
            if found != place {
                whole = transpose(builder, &whole, place, found);
            }
        }
        whole.value
    }

    fn build_set<'c>(
        &self,
        set: u64,
        network: &Network<'c>,
        indices: &Indices,
        builder: &Builder<'c>,
    ) -> Leaf<'c> {
        let joined = match self.best[&set].parts {
            None => {
                let leaf = &network.leaves[set.trailing_zeros() as usize];
                let found = leaf.indices.iter().map(|index| indices.find(*index)).collect();
                Leaf { value: leaf.value, indices: found }
            }
            Some((first, second)) => {
                let lhs = self.build_set(first, network, indices, builder);
                let rhs = self.build_set(second, network, indices, builder);
                product(builder, &lhs, &rhs)
            }
        };
        contract_pairs(builder, joined)
    }
}

/// Sums over every index that stands twice.
fn contract_pairs<'c>(builder: &Builder<'c>, mut tensor: Leaf<'c>) -> Leaf<'c> {
    loop {
        let pair = tensor.indices.iter().enumerate().find_map(|(second, index)| {
            let first = tensor.indices[..second].iter().position(|it| it == index)?;
            Some([first, second])
        });
        let Some([first, second]) = pair else { return tensor };
        let mut shape = mlir::shape(tensor.value.r#type());
        for place in [second, first] {
            shape.remove(place);
            tensor.indices.remove(place);
        }
        tensor.value =
            build(builder, "tml.contract", &[tensor.value], &shape, Some([first, second]));
    }
}

fn product<'c>(builder: &Builder<'c>, lhs: &Leaf<'c>, rhs: &Leaf<'c>) -> Leaf<'c> {
    let shapes = [lhs, rhs].map(|it| mlir::shape(it.value.r#type()));
    let value = build(builder, "tml.product", &[lhs.value, rhs.value], &shapes.concat(), None);
    Leaf { value, indices: [&lhs.indices[..], &rhs.indices].concat() }
}

fn transpose<'c>(
    builder: &Builder<'c>,
    tensor: &Leaf<'c>,
    first: usize,
    second: usize,
) -> Leaf<'c> {
    let mut shape = mlir::shape(tensor.value.r#type());
    shape.swap(first, second);
    let value = build(builder, "tml.transpose", &[tensor.value], &shape, Some([first, second]));
    let mut indices = tensor.indices.clone();
    indices.swap(first, second);
    Leaf { value, indices }
}

fn build<'c>(
    builder: &Builder<'c>,
    name: &str,
    operands: &[Val<'c>],
    shape: &[Option<i64>],
    dims: Option<[usize; 2]>,
) -> Val<'c> {
    let ty = mlir::tensor_type(shape, mlir::element_type(operands[0].r#type()));
    let dims = dims.map(|dims| mlir::i64_array(builder.context, &dims.map(|dim| dim as i64)));
    let attributes: Vec<_> = dims.map(|dims| ("dims", dims)).into_iter().collect();
    builder.value_with(name, operands, ty, &attributes)
}
