//! `rng-bit-generator`: the generators Threefry-2x32 and Philox-4x32, whose bits are a function of
//! a key and a number, so that all blocks of bits can be computed at once.
//!
//! Sources: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011), for both
//! functions; how the state is split into key and number, and how blocks are laid out in an array,
//! is as XLA does. The state is `{key, number}`, of Philox also `{key, low, high}`; the next state
//! has the number of the first block that was not used.

use super::{
    Lowering,
    memory::{empty, empty_array},
    value::Array,
};
use crate::convert::{
    elements::{coding::encode, compute_type},
    generic_builder::GenericBuilder,
    subscripts::{identity, row_major},
};
use melior::ir::ValueLike;
use tc_dialects::{
    element::ElementType,
    hlo::{ArrayShape, Attribute, Instruction, RandomAlgorithm, Value as AttributeValue},
    imap::{self, Combiner},
    mlir::{Builder, Val},
};

const THREEFRY_PARITY: i64 = 0x1bd1_1bda;
const THREEFRY_ROTATIONS: [[i64; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
/// Groups of four rounds, after each of which the key is added.
const THREEFRY_GROUPS: usize = 5;

const PHILOX_FACTORS: [i64; 2] = [0xd251_1f53, 0xcd9e_8d57];
const PHILOX_KEY_STEPS: [i64; 2] = [0x9e37_79b9, 0xbb67_ae85];
const PHILOX_ROUNDS: usize = 10;

/// What computes the words of a block from the state and the number of the block.
type WordsOf<'a, 'c> = dyn Fn(&Builder<'c>, &[Val<'c>], Val<'c>) -> Vec<Val<'c>> + 'a;

impl<'c> Lowering<'c, '_> {
    /// The next state and the bits. Elements of fewer than 32 bits are the low ones of 32.
    pub(super) fn rng_bit_generator(
        &self,
        b: &Builder<'c>,
        instruction: &Instruction,
        state: &Array<'c>,
        shape: &ArrayShape,
    ) -> Result<Vec<Array<'c>>, String> {
        let algorithm = match instruction.attribute(Attribute::Algorithm) {
            Some(AttributeValue::RandomAlgorithm(RandomAlgorithm::ThreeFry)) => {
                RandomAlgorithm::ThreeFry
            }
            // What XLA takes on CPUs.
            _ => RandomAlgorithm::Philox,
        };
        let lengths = if algorithm == RandomAlgorithm::ThreeFry { 2..=2 } else { 2..=3 };
        if state.element() != ElementType::U64 || !lengths.contains(&state.dims()[0]) {
            let expected = if *lengths.end() == 2 { "u64[2]" } else { "u64[2] or u64[3]" };
            return Err(format!(
                "expected a state of {expected} for '{algorithm}', found {}; try a \
                 'bitcast-convert' of u32 words",
                state.shape
            ));
        }
        let bits = match algorithm {
            RandomAlgorithm::ThreeFry => self.threefry_bits(b, state, shape)?,
            _ => self.philox_bits(b, state, shape)?,
        };
        let next = self.next_state(b, state, bits.num_blocks)?;
        Ok(vec![next, bits.array])
    }

    /// With 64 bits, block `i` is element `i`. With fewer, the first words of the blocks and the
    /// second ones alternate along a dimension: the first even one, or the largest.
    fn threefry_bits(
        &self,
        b: &Builder<'c>,
        state: &Array<'c>,
        shape: &ArrayShape,
    ) -> Result<Bits<'c>, String> {
        let mut blocks = shape.clone();
        let is_wide = shape.element_type.bits() == 64;
        let mut split = None;
        if !is_wide && !shape.is_scalar() {
            let largest = || (0..shape.rank()).rev().max_by_key(|dim| shape.dims[*dim]);
            let dim = shape.dims.iter().position(|extent| extent % 2 == 0).or_else(largest);
            let dim = dim.ok_or("a shape without dimensions")?;
            blocks.dims[dim] = shape.dims[dim].div_euclid(2) + shape.dims[dim] % 2;
            split = Some(dim);
        }
        let num_blocks = blocks.num_elements().unwrap_or(0);
        if num_blocks == 0 {
            return Ok(Bits { array: empty_array(b, shape), num_blocks });
        }
        let count = if split.is_some() { 2 } else { 1 };
        let mut words = self.blocks(b, state, &blocks, count, &|b, state, number| {
            let number = split_word(b, b.value("arith.addi", &[state[1], number], b.int_type(64)));
            threefry(b, number, split_word(b, state[0])).to_vec()
        })?;
        let array = match split {
            Some(dim) => {
                let mut padded = blocks;
                padded.dims[dim] *= 2;
                let all = self.interleave(b, &words, dim, padded)?;
                self.gather_by_map(b, &all, shape, &identity(self.ir, shape.rank()))?
            }
            None => words.swap_remove(0),
        };
        Ok(Bits { array, num_blocks })
    }

    /// The words of the blocks one after the other, in row-major order.
    fn philox_bits(
        &self,
        b: &Builder<'c>,
        state: &Array<'c>,
        shape: &ArrayShape,
    ) -> Result<Bits<'c>, String> {
        let per_block = if shape.element_type.bits() == 64 { 2 } else { 4 };
        let num_elements = shape.num_elements().unwrap_or(0);
        let num_blocks =
            num_elements.div_euclid(per_block) + i64::from(num_elements % per_block != 0);
        if num_blocks == 0 {
            return Ok(Bits { array: empty_array(b, shape), num_blocks });
        }
        let blocks = ArrayShape::new(shape.element_type, vec![num_blocks]);
        let words = self.blocks(b, state, &blocks, per_block as usize, &|b, state, number| {
            let (low, high) = philox_number(b, state, number);
            let ([x0, x1], [x2, x3]) = (split_word(b, low), split_word(b, high));
            philox(b, [x0, x1, x2, x3], split_word(b, state[0])).to_vec()
        })?;
        let padded = ArrayShape::new(shape.element_type, vec![num_blocks * per_block]);
        let all = self.interleave(b, &words, 0, padded)?;
        let position = row_major(self.ir, &identity(self.ir, shape.rank()), &shape.dims);
        let array = self.gather_by_map(b, &all, shape, &[position])?;
        Ok(Bits { array, num_blocks })
    }

    /// The elements that the words of each block give, in `count` arrays of `shape`, from the state
    /// and the row-major number of the block.
    fn blocks(
        &self,
        b: &Builder<'c>,
        state: &Array<'c>,
        shape: &ArrayShape,
        count: usize,
        words: &WordsOf<'_, 'c>,
    ) -> Result<Vec<Array<'c>>, String> {
        let element = shape.element_type;
        let mut nest = GenericBuilder::new(self.ir, &shape.dims);
        for place in 0..state.dims()[0] {
            nest.read(state.tensor, vec![self.ir.constant(place)]);
        }
        for _ in 0..count {
            nest.write(empty(b, shape), identity(self.ir, shape.rank()), Combiner::ASSIGN);
        }
        let blocks = nest.build(b, |b, state| {
            let u64_type = b.int_type(64);
            let mut number = b.integer(u64_type, 0);
            for (dim, extent) in shape.dims.iter().enumerate() {
                let at = imap::build_index(b, "dim", dim as u32);
                let at = b.value("arith.index_cast", &[at], u64_type);
                number = b.value("arith.muli", &[number, b.integer(u64_type, *extent)], u64_type);
                number = b.value("arith.addi", &[number, at], u64_type);
            }
            let words = words(b, state, number);
            let ty = compute_type(b, element);
            let elements: Vec<_> = match element.bits() {
                64 => words.chunks(2).map(|pair| join_words(b, pair[0], pair[1])).collect(),
                32 => words,
                _ => {
                    let low = |word: &Val<'c>| b.value("arith.trunci", &[*word], ty);
                    words.iter().map(low).map(|word| encode(b, element, word)).collect()
                }
            };
            Ok(elements[..count].to_vec())
        })?;
        let array = |tensor| Array { tensor, shape: shape.clone() };
        Ok(blocks.into_iter().map(array).collect())
    }

    /// An array in which elements of several arrays of the same sizes alternate along a dimension.
    fn interleave(
        &self,
        b: &Builder<'c>,
        arrays: &[Array<'c>],
        dim: usize,
        shape: ArrayShape,
    ) -> Result<Array<'c>, String> {
        let ir = self.ir;
        let mut result = empty_array(b, &shape);
        for (number, array) in arrays.iter().enumerate() {
            let mut index = identity(ir, array.dims().len());
            let scaled = ir.mul(index[dim], ir.constant(arrays.len() as i64));
            index[dim] = ir.add(scaled, ir.constant(number as i64));
            result = self.insert_by_map(b, array, result, &index)?;
        }
        Ok(result)
    }

    /// The state whose number is larger by that of the blocks.
    fn next_state(
        &self,
        b: &Builder<'c>,
        state: &Array<'c>,
        num_blocks: i64,
    ) -> Result<Array<'c>, String> {
        let places = (0..state.dims()[0]).map(|place| (state, vec![self.ir.constant(place)]));
        let places: Vec<_> = places.collect();
        self.compute(b, &state.shape, &places, &|b, state| {
            let state: Vec<_> = state.iter().map(|part| part[0]).collect();
            let (low, high) = philox_number(b, &state, b.integer(b.int_type(64), num_blocks));
            let at = imap::build_index(b, "dim", 0);
            let is = |place: i64| b.compare_int("eq", at, b.index(place));
            let number = b.select(is(1), low, high);
            Ok(vec![b.select(is(0), state[0], number)])
        })
    }
}

/// Random bits, and how many blocks of them were made.
struct Bits<'c> {
    array: Array<'c>,
    num_blocks: i64,
}

fn binary<'c>(b: &Builder<'c>, name: &str, x: Val<'c>, y: Val<'c>) -> Val<'c> {
    b.value(name, &[x, y], x.r#type())
}

/// The low and the high half of 64 bits.
fn split_word<'c>(b: &Builder<'c>, word: Val<'c>) -> [Val<'c>; 2] {
    let half = b.int_type(32);
    let high = binary(b, "arith.shrui", word, b.integer(b.int_type(64), 32));
    [word, high].map(|word| b.value("arith.trunci", &[word], half))
}

fn join_words<'c>(b: &Builder<'c>, low: Val<'c>, high: Val<'c>) -> Val<'c> {
    let [low, high] = [low, high].map(|word| b.value("arith.extui", &[word], b.int_type(64)));
    let high = binary(b, "arith.shli", high, b.integer(b.int_type(64), 32));
    binary(b, "arith.ori", low, high)
}

/// Threefry-2x32 with 20 rounds.
fn threefry<'c>(b: &Builder<'c>, number: [Val<'c>; 2], key: [Val<'c>; 2]) -> [Val<'c>; 2] {
    let constant = |value: i64| b.integer(b.int_type(32), value);
    let parity = binary(b, "arith.xori", key[0], key[1]);
    let keys = [key[0], key[1], binary(b, "arith.xori", parity, constant(THREEFRY_PARITY))];
    let mut x = [0, 1].map(|word| binary(b, "arith.addi", number[word], keys[word]));
    for group in 0..THREEFRY_GROUPS {
        for rotation in THREEFRY_ROTATIONS[group % 2] {
            x[0] = binary(b, "arith.addi", x[0], x[1]);
            let left = binary(b, "arith.shli", x[1], constant(rotation));
            let right = binary(b, "arith.shrui", x[1], constant(32 - rotation));
            x[1] = binary(b, "arith.xori", x[0], binary(b, "arith.ori", left, right));
        }
        let next = group + 1;
        x[0] = binary(b, "arith.addi", x[0], keys[next % 3]);
        x[1] = binary(b, "arith.addi", x[1], keys[(next + 1) % 3]);
        x[1] = binary(b, "arith.addi", x[1], constant(next as i64));
    }
    x
}

/// Philox-4x32 with 10 rounds.
fn philox<'c>(b: &Builder<'c>, number: [Val<'c>; 4], key: [Val<'c>; 2]) -> [Val<'c>; 4] {
    let (mut x, mut key) = (number, key);
    for _ in 0..PHILOX_ROUNDS {
        let product = |word: Val<'c>, factor: i64| {
            let wide = b.value("arith.extui", &[word], b.int_type(64));
            let factor = b.integer(b.int_type(64), factor);
            split_word(b, binary(b, "arith.muli", wide, factor))
        };
        let [low0, high0] = product(x[0], PHILOX_FACTORS[0]);
        let [low1, high1] = product(x[2], PHILOX_FACTORS[1]);
        let mix = |high: Val<'c>, word: Val<'c>, key: Val<'c>| {
            binary(b, "arith.xori", binary(b, "arith.xori", high, word), key)
        };
        x = [mix(high1, x[1], key[0]), low1, mix(high0, x[3], key[1]), low0];
        key = [0, 1].map(|word| {
            let step = b.integer(b.int_type(32), PHILOX_KEY_STEPS[word]);
            binary(b, "arith.addi", key[word], step)
        });
    }
    x
}

/// The 128-bit number in a state plus a count, as its low and its high half. A state of two has
/// the key as the high half.
fn philox_number<'c>(b: &Builder<'c>, state: &[Val<'c>], count: Val<'c>) -> (Val<'c>, Val<'c>) {
    let high = if state.len() == 3 { state[2] } else { state[0] };
    let low = binary(b, "arith.addi", state[1], count);
    let carries = b.compare_int("ult", low, state[1]);
    let carry = b.value("arith.extui", &[carries], b.int_type(64));
    (low, binary(b, "arith.addi", high, carry))
}
