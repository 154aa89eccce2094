//! Maps against slow definitions: for small arrays, which elements of an operand does each element
//! of the output read? Each definition is written from the semantics of the operation, as a
//! predicate on a pair of positions; both maps of the pair must hold for exactly the same pairs.

mod analysis;
mod corpus;
mod gathers;
mod plain;
mod programs;
mod tiles;
mod windows;

use super::*;
use crate::{
    element::ElementType,
    hlo::{Shape, syntax},
    text::SourceFile,
};
use std::collections::BTreeSet;
use tc_ir::{IndexingMap, Interval, Var};

pub(super) fn parse(text: &str) -> Module {
    let source = SourceFile::new("test.hlo", text);
    let (module, errors) = syntax::parse_module(&source);
    module.unwrap_or_else(|| panic!("{text}\n{}", source.render_all(&errors)))
}

/// Every index of an array, the last dimension fastest.
pub(super) fn indices(dims: &[i64]) -> Vec<Vec<i64>> {
    dims.iter().fold(vec![Vec::new()], |all, &extent| {
        let extended = |index: &Vec<i64>| {
            let index = index.clone();
            (0..extent).map(move |i| [&index[..], &[i]].concat()).collect::<Vec<_>>()
        };
        all.iter().flat_map(extended).collect()
    })
}

/// Pairs of a position in the output and one in the operand.
pub(super) type Pairs = BTreeSet<(Vec<i64>, Vec<i64>)>;

/// The value of a runtime variable: of an instruction, at an index.
pub(super) type Data<'a> = &'a dyn Fn(&str, &[i64]) -> i64;

/// The pairs that a map holds for, as (source, target).
pub(super) fn pairs(indexing: &Indexing, map: &OperandIndexing, data: Data) -> Pairs {
    let ctx = indexing.context();
    let bounds = map.map.intervals(ctx);
    let extents: Vec<Interval> = map
        .map
        .vars()
        .filter(|(var, _)| !matches!(var, Var::Runtime(_)))
        .map(|(var, _)| bounds.of(var))
        .collect();
    let mut pairs = Pairs::new();
    if map.map.is_known_empty(ctx) {
        return pairs;
    }
    let sizes: Vec<i64> = extents.iter().map(|it| it.hi - it.lo + 1).collect();
    for point in indices(&sizes) {
        let point: Vec<i64> = point.iter().zip(&extents).map(|(i, it)| i + it.lo).collect();
        let (dims, ranges) = point.split_at(map.map.dims.len());
        // The position of one may depend on those after it.
        let mut runtimes = vec![0; map.runtimes.len()];
        for (number, runtime) in map.runtimes.iter().enumerate().rev() {
            let at = runtime.map.evaluate(ctx, dims, ranges, &runtimes).expect("a value");
            let name = &indexing.instruction(runtime.source.instruction()).name;
            let value = data(name, &at);
            let moved = runtime.moved_into.map(|it| value.clamp(it.lo, it.hi));
            runtimes[number] = moved.unwrap_or(value);
        }
        let holds =
            |map: &IndexingMap| map.contains(ctx, dims, ranges, &runtimes).expect("a value");
        if holds(&map.map) && !map.exceptions.iter().any(holds) {
            let target = map.map.evaluate(ctx, dims, ranges, &runtimes).expect("a value");
            pairs.insert((dims.to_vec(), target));
        }
    }
    pairs
}

/// The pairs that a whole set holds for, of one array of the operand.
fn pairs_of_set(indexing: &Indexing, set: &IndexingSet, array: usize, data: Data) -> Pairs {
    assert!(!set.has_unknown(), "unknown indexing");
    let maps = set.maps().iter().filter(|it| it.array == array);
    maps.flat_map(|map| pairs(indexing, map, data)).collect()
}

fn swapped(pairs: Pairs) -> Pairs {
    pairs.into_iter().map(|(a, b)| (b, a)).collect()
}

pub(super) fn dims_of(shape: &Shape, number: usize) -> Vec<i64> {
    array(shape, number).expect("an array").dims.clone()
}

/// Both maps between an output and an operand of the root of ENTRY, against a definition.
pub(super) struct Check<'a> {
    pub text: &'a str,
    pub output: usize,
    pub operand: usize,
    pub data: Data<'a>,
}

impl<'a> Check<'a> {
    pub fn new(text: &'a str, operand: usize) -> Self {
        Self { text, output: 0, operand, data: &|_, _| 0 }
    }

    /// `reads(output, operand)` says whether an element of the output reads one of the operand.
    pub fn against(self, reads: impl Fn(&[i64], &[i64]) -> bool) {
        let module = parse(self.text);
        let indexing = Indexing::of(&module);
        let at = indexing.root(module.entry);
        let root = indexing.instruction(at);
        let output = dims_of(&root.shape, self.output);
        let operand = &module.entry()[root.operands[self.operand]];
        let operand = dims_of(&operand.shape, 0);
        let mut expected = Pairs::new();
        for o in indices(&output) {
            for i in indices(&operand).into_iter().filter(|i| reads(&o, i)) {
                expected.insert((o.clone(), i));
            }
        }
        let to_input = &indexing.output_to_input(at, self.output)[self.operand];
        let to_output = &indexing.input_to_output(at, self.operand)[self.output];
        let found = pairs_of_set(&indexing, to_input, 0, self.data);
        let explain = |set| format!("{}\n{:?}", self.text, indexing.set_text(set));
        assert_eq!(found, expected, "output to input of {}", explain(to_input));
        let found = swapped(pairs_of_set(&indexing, to_output, 0, self.data));
        assert_eq!(found, expected, "input to output of {}", explain(to_output));

        let touched = expected.iter().map(|(_, i)| i).collect::<BTreeSet<_>>().len() as i64;
        let shape = ArrayShape::new(ElementType::F32, operand);
        let found = indexing.utilization(to_input, 0, &shape).expect("a small array");
        if found.exact {
            assert_eq!(found.touched, touched, "utilization of {}", explain(to_input));
        } else {
            assert!(touched <= found.touched, "utilization of {}", explain(to_input));
            let ctx = indexing.context();
            let is_certain = |map: &OperandIndexing| {
                let runtimes = map.runtimes.iter();
                let is_common = |it: &RuntimeVariable| {
                    it.moved_into.is_some() && ctx.vars_of_all(&it.map.results).is_empty()
                };
                !map.is_conditional && { runtimes }.all(is_common)
            };
            let is_countable = to_input.maps().iter().all(is_certain);
            assert!(!is_countable, "no exact utilization of {}", explain(to_input));
        }
    }
}

/// The accesses of loops over the output of the root of ENTRY, against a definition: `multiplies(output,
/// lhs, rhs)` says whether an element of the output adds the product of an element of either operand.
pub(super) fn check_products(text: &str, multiplies: impl Fn(&[i64], &[i64], &[i64]) -> bool) {
    let module = parse(text);
    let indexing = Indexing::of(&module);
    let at = indexing.root(module.entry);
    let root = indexing.instruction(at);
    let operand = |number: usize| dims_of(&module.entry()[root.operands[number]].shape, 0);
    let mut expected = Pairs::new();
    for o in indices(&dims_of(&root.shape, 0)) {
        for (l, r) in indices(&operand(0))
            .iter()
            .flat_map(|l| indices(&operand(1)).into_iter().map(move |r| (l, r)))
        {
            if multiplies(&o, l, &r) {
                expected.insert((o.clone(), [&l[..], &r].concat()));
            }
        }
    }
    let accesses = Accesses::over_output(indexing.context(), &module, at, 0, &[0, 1]);
    let accesses = accesses.expect("a relation");
    let map = IndexingMap { results: accesses.indices.concat(), ..accesses.domain };
    let found = pairs(&indexing, &OperandIndexing::new(0, map), &|_, _| 0);
    assert_eq!(found, expected, "{text}");
}

/// Random numbers from a seed (splitmix64), so that a failure can be repeated.
pub(super) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() % (high - low + 1) as u64) as i64
    }

    pub fn flip(&mut self) -> bool {
        self.next().is_multiple_of(2)
    }

    pub fn dims(&mut self, rank: usize, largest: i64) -> Vec<i64> {
        (0..rank).map(|_| self.between(1, largest)).collect()
    }

    /// The numbers below `count` in any order.
    pub fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            all.swap(last, self.between(0, last as i64) as usize);
        }
        all
    }
}

pub(super) fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

pub(super) fn joined(items: impl IntoIterator<Item = String>, by: &str) -> String {
    items.into_iter().collect::<Vec<_>>().join(by)
}

/// A module whose root applies an operation to parameters `p0`, `p1`, .. of these sizes.
pub(super) fn module(operands: &[&[i64]], output: &[i64], op: &str, attributes: &str) -> String {
    module_of(operands, &format!("f32[{}]", list(output)), op, attributes)
}

pub(super) fn module_of(operands: &[&[i64]], shape: &str, op: &str, attributes: &str) -> String {
    let mut text = String::from(
        "HloModule m\nadd {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  \
         ROOT sum = f32[] add(x, y)\n}\nless {\n  x = f32[] parameter(0)\n  \
         y = f32[] parameter(1)\n  ROOT less = pred[] compare(x, y), direction=LT\n}\nENTRY e {\n",
    );
    for (number, dims) in operands.iter().enumerate() {
        text += &format!("  p{number} = f32[{}] parameter({number})\n", list(dims));
    }
    let names = joined((0..operands.len()).map(|number| format!("p{number}")), ", ");
    let separator = if attributes.is_empty() { "" } else { ", " };
    text + &format!("  ROOT r = {shape} {op}({names}){separator}{attributes}\n}}\n")
}
