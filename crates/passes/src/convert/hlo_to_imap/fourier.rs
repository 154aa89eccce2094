//! `fft`: Stockham's form of the fast Fourier transform, which needs no bit reversal, with mixed
//! radices; lengths with a larger prime factor go through Bluestein's convolution.
//!
//! Sources: C. Van Loan, "Computational Frameworks for the Fast Fourier Transform" (1992), sections
//! 1.7, 4.2 and 4.3. All lengths take O(n log n) steps. Everything is calculated in `f64`, so that a
//! `c64` result is rounded once. Of an even length, a transform from or to real numbers is a complex one of half the
//! length, of pairs of neighbours.

use super::{
    Lowering,
    memory::{Memory, for_each},
    value::{Array, tensor_type},
};
use crate::{
    convert::{
        elements::{Scalar, complex, scalar, storage_type},
        index_emitter::IndexMath,
    },
    loops::build_if,
};
use melior::ir::ValueLike;
use std::{
    cmp::Ordering,
    f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2},
};
use tc_dialects::{
    element::ElementType,
    hlo::{ArrayShape, Attribute, FftType, Instruction, Value as AttributeValue},
    mlir::{self, Builder, Val},
};

/// The radices of the transform, in the order in which they are divided out.
const RADICES: [i64; 7] = [4, 2, 3, 5, 7, 11, 13];
/// How long a transform may be: squares of positions have 64 bits.
const MAX_LENGTH: i64 = 1 << 31;
/// A table of at most this many roots is a constant.
const MAX_TABLE: i64 = 1 << 10;

impl<'c> Lowering<'c, '_> {
    pub(super) fn fft(
        &self,
        b: &Builder<'c>,
        instruction: &Instruction,
        source: &Array<'c>,
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let lengths = instruction.integers(Attribute::FftLength);
        if let Some(length) = lengths.iter().find(|length| !(1..=MAX_LENGTH).contains(*length)) {
            return Err(format!(
                "expected transforms of lengths from 1 to {MAX_LENGTH}, found {length}"
            ));
        }
        let Some(AttributeValue::FftType(kind)) = instruction.attribute(Attribute::FftType) else {
            return Err("'fft' without 'fft_type'".to_string());
        };
        let is_inverse = matches!(kind, FftType::Ifft | FftType::Irfft);
        let last = shape.rank() - 1;
        // The real side of a transform has the whole last dimension.
        let mut dims: Vec<_> = (shape.rank() - lengths.len()..shape.rank()).collect();
        if *kind != FftType::Irfft {
            dims.rotate_right(1);
        }
        let mut array = source.clone();
        for (number, dim) in dims.iter().enumerate() {
            let element = match number + 1 == dims.len() {
                true => shape.element_type,
                false => ElementType::C128,
            };
            let mut result = ArrayShape::new(element, array.dims().to_vec());
            result.dims[*dim] = shape.dims[*dim];
            let length = match *dim == last {
                true => lengths[lengths.len() - 1],
                false => shape.dims[*dim],
            };
            let transform = Transform { dim: *dim, length, is_inverse };
            array = self.transform(b, &array, transform, result)?;
        }
        Ok(array)
    }

    /// The transforms along a dimension. Of a source with half of the elements, the others are conjugates of these.
    /// Elements that the result has no place for are not stored.
    fn transform(
        &self,
        b: &Builder<'c>,
        source: &Array<'c>,
        transform: Transform,
        shape: ArrayShape,
    ) -> Result<Array<'c>, String> {
        let Transform { dim, length, is_inverse } = transform;
        let (from, to) = (source.element(), shape.element_type);
        let is_half = source.dims()[dim] < length;
        let num_stored = shape.dims[dim];
        let (lines, result) = (Memory::of(b, source), Memory::allocate(b, &shape));
        let scale = if is_inverse { 1.0 / length as f64 } else { 1.0 };
        let mut others = source.dims().to_vec();
        others[dim] = 1;
        let at = |place: &[Val<'c>], index: Val<'c>| {
            let mut place = place.to_vec();
            place[dim] = index;
            place
        };
        // The inverse is the transform with real and imaginary parts exchanged.
        let exchanged = |mut value: Scalar<'c>| {
            if is_inverse {
                value.reverse();
            }
            value
        };
        let load = |b: &Builder<'c>, place: &[Val<'c>], index: Val<'c>| {
            let mut number = index;
            if is_half {
                let back = b.sub_index(b.index(length), index);
                number = b.value("arith.minsi", &[index, back], b.index_type());
            }
            let mut value =
                scalar::convert(b, from, ElementType::C128, &lines.load(b, &at(place, number)));
            if is_half {
                let is_conjugate = b.compare_int("ne", number, index);
                let negative = b.value("arith.negf", &[value[1]], value[1].r#type());
                value[1] = b.select(is_conjugate, negative, value[1]);
            }
            exchanged(value)
        };
        let store = |b: &Builder<'c>, place: &[Val<'c>], index: Val<'c>, value: &[Val<'c>]| {
            let value = exchanged(scaled(b, value, scale));
            let value = scalar::convert(b, ElementType::C128, to, &value);
            result.store(b, &at(place, index), &value);
        };
        let is_real = is_half || !is_inverse && !from.is_complex();
        let pairs = (is_real && length % 2 == 0).then(|| radices_of(length / 2)).flatten();
        if let Some(radices) = pairs {
            let half = length / 2;
            let pairs = Pairs { half, factors: Factors::new(self, b, half, radices, 2)? };
            for_each(b, &others, &mut |b, place| {
                let scratch = pairs.factors.scratch(b);
                // Pairs, and elements of the transform, in the order of one that is not inverse.
                let load = |b: &Builder<'c>, index| {
                    scalar::convert(b, from, ElementType::C128, &lines.load(b, &at(place, index)))
                };
                for_each(b, &[pairs.half], &mut |b, index| {
                    let value = match is_half {
                        true => pairs.joined(b, index[0], &load),
                        false => {
                            let even = b.scale_index(index[0], 2);
                            let odd = b.add_index(even, b.index(1));
                            vec![load(b, even)[0], load(b, odd)[0]]
                        }
                    };
                    scratch[0].store(b, index, &exchanged(value));
                    Ok(())
                })?;
                let found = pairs.factors.run(b, &scratch, 0)?;
                let load = |b: &Builder<'c>, index| exchanged(scratch[found].load(b, &[index]));
                let store = |b: &Builder<'c>, index, value: &[Val<'c>]| {
                    let value = scalar::convert(b, ElementType::C128, to, value);
                    result.store(b, &at(place, index), &value);
                };
                if !is_half {
                    return for_each(b, &[num_stored], &mut |b, index| {
                        store(b, index[0], &pairs.separated(b, index[0], &load));
                        Ok(())
                    });
                }
                for_each(b, &[pairs.half], &mut |b, index| {
                    let value = scaled(b, &load(b, index[0]), 2.0 * scale);
                    let even = b.scale_index(index[0], 2);
                    let zero = b.float(value[0].r#type(), 0.0);
                    store(b, even, &[value[0], zero]);
                    store(b, b.add_index(even, b.index(1)), &[value[1], zero]);
                    Ok(())
                })
            })?;
            return Ok(result.array(b));
        }
        if let Some(radices) = radices_of(length) {
            let factors = Factors::new(self, b, length, radices, 1)?;
            for_each(b, &others, &mut |b, place| {
                let scratch = factors.scratch(b);
                for_each(b, &[length], &mut |b, index| {
                    scratch[0].store(b, index, &load(b, place, index[0]));
                    Ok(())
                })?;
                let found = factors.run(b, &scratch, 0)?;
                for_each(b, &[num_stored], &mut |b, index| {
                    store(b, place, index[0], &scratch[found].load(b, index));
                    Ok(())
                })
            })?;
            return Ok(result.array(b));
        }
        let convolution = Convolution::new(self, b, length)?;
        for_each(b, &others, &mut |b, place| {
            convolution.run(b, num_stored, &|b, index| load(b, place, index), &|b, index, value| {
                store(b, place, index, value);
            })
        })?;
        Ok(result.array(b))
    }

    /// The roots of unity `exp(-2 * pi * i * k / n)`, for `k` from 0 to below `n`.
    fn roots(&self, b: &Builder<'c>, length: i64) -> Result<Array<'c>, String> {
        let shape = |extent: i64| ArrayShape::new(ElementType::C128, vec![extent]);
        // The roots `first * step`, for each number below `extent`.
        let table = |extent: i64, step: i64| {
            let roots: Vec<_> = (0..extent).map(|number| root(number * step, length)).collect();
            let bits: Vec<_> =
                roots.iter().flat_map(|(re, im)| [re.to_bits(), im.to_bits()]).collect();
            let ty = tensor_type(b, &shape(extent));
            let part = storage_type(b, ElementType::F64);
            Array { tensor: b.constant(ty, mlir::dense(ty, part, &bits)), shape: shape(extent) }
        };
        if length <= MAX_TABLE {
            return Ok(table(length, 1));
        }
        // A product of two roots from tables of about the square root of the length.
        let width = (length.isqrt() as u64).next_power_of_two().max(MAX_TABLE as u64) as i64;
        let (fine, coarse) = (table(width, 1), table((length - 1) / width + 1, width));
        let (at, width) = (self.ir.dim(0), self.ir.constant(width));
        let sources = [
            (&fine, vec![self.ir.modulo(at, width)]),
            (&coarse, vec![self.ir.floor_div(at, width)]),
        ];
        self.compute(b, &shape(length), &sources, &|b, scalars| {
            Ok(complex::multiply(b, &scalars[0], &scalars[1]))
        })
    }
}

/// A transform along a dimension.
#[derive(Clone, Copy)]
struct Transform {
    dim: usize,
    length: i64,
    is_inverse: bool,
}

/// The radices whose product a positive length is, if there are such.
fn radices_of(length: i64) -> Option<Vec<i64>> {
    let (mut rest, mut radices) = (length, Vec::new());
    for radix in RADICES {
        while rest % radix == 0 {
            radices.push(radix);
            rest /= radix;
        }
    }
    (rest == 1).then_some(radices)
}

/// The root of unity `exp(-2 * pi * i * k / n)`, for `k` from 0 to below `n`. Angles are at most
/// an eighth of a turn, so that symmetric roots are so exactly.
fn root(k: i64, n: i64) -> (f64, f64) {
    let (quarter, rest) = (4 * k / n, 4 * k % n);
    let angle = |part: i64| FRAC_PI_2 * part as f64 / n as f64;
    let (sin, cos) = match (2 * rest).cmp(&n) {
        Ordering::Less => angle(rest).sin_cos(),
        Ordering::Equal => (FRAC_1_SQRT_2, FRAC_1_SQRT_2),
        Ordering::Greater => {
            let (sin, cos) = angle(n - rest).sin_cos();
            (cos, sin)
        }
    };
    match quarter {
        0 => (cos, -sin),
        1 => (-sin, -cos),
        2 => (-cos, sin),
        _ => (sin, cos),
    }
}

fn scaled<'c>(b: &Builder<'c>, value: &[Val<'c>], scale: f64) -> Scalar<'c> {
    if scale == 1.0 {
        return value.to_vec();
    }
    let factor = b.float(value[0].r#type(), scale);
    value.iter().map(|x| b.value("arith.mulf", &[*x, factor], x.r#type())).collect()
}

/// A transform of `2 * half` real numbers `x`, computed from the complex numbers `x[2 * j] + i * x[2 * j + 1]`.
///
/// `E` is the transform of the even elements of `x`, and `O` the transform of the odd elements. The transform of the
/// complex numbers is `Z = E + i * O`. The result is `X[k] = E[k] + w^k * O[k]`. `E` and `O` transform real numbers, so
/// `E[half - k]` is the conjugate of `E[k]`.
struct Pairs<'c> {
    half: i64,
    factors: Factors<'c>,
}

impl<'c> Pairs<'c> {
    /// `X[k]`, given `Z`, for `k` up to `half`.
    fn separated(
        &self,
        b: &Builder<'c>,
        k: Val<'c>,
        load: &dyn Fn(&Builder<'c>, Val<'c>) -> Scalar<'c>,
    ) -> Scalar<'c> {
        // The transform is periodic.
        let wrapped = |index| {
            let is_end = b.compare_int("eq", index, b.index(self.half));
            b.select(is_end, b.index(0), index)
        };
        let value = load(b, wrapped(k));
        let other = load(b, wrapped(b.sub_index(b.index(self.half), k)));
        let [even, odd] = parts(b, &value, &other);
        // `O[k]` is the half difference divided by `i`.
        let odd = vec![odd[1], b.value("arith.negf", &[odd[0]], odd[0].r#type())];
        add(b, &even, &complex::multiply(b, &odd, &self.root(b, k)))
    }

    /// `Z[k]`, given `X`, for `k` below `half`. The imaginary parts of the first and of the last element do not count.
    fn joined(
        &self,
        b: &Builder<'c>,
        k: Val<'c>,
        load: &dyn Fn(&Builder<'c>, Val<'c>) -> Scalar<'c>,
    ) -> Scalar<'c> {
        let is_first = b.compare_int("eq", k, b.index(0));
        let load = |index| {
            let mut value = load(b, index);
            let zero = b.float(value[1].r#type(), 0.0);
            value[1] = b.select(is_first, zero, value[1]);
            value
        };
        let [even, odd] = parts(b, &load(k), &load(b.sub_index(b.index(self.half), k)));
        let mut root = self.root(b, k);
        root[1] = b.value("arith.negf", &[root[1]], root[1].r#type());
        let odd = complex::multiply(b, &odd, &root);
        let turned = vec![b.value("arith.negf", &[odd[1]], odd[1].r#type()), odd[0]];
        add(b, &even, &turned)
    }

    /// `w^k`, for `k` up to `half`.
    fn root(&self, b: &Builder<'c>, k: Val<'c>) -> Scalar<'c> {
        self.factors.roots.load(b, &[k])
    }
}

/// Half of the sum of a number and the conjugate of another one, and half of the difference.
fn parts<'c>(b: &Builder<'c>, value: &[Val<'c>], other: &[Val<'c>]) -> [Scalar<'c>; 2] {
    let ty = value[0].r#type();
    let half = |x| b.value("arith.mulf", &[x, b.float(ty, 0.5)], ty);
    let sum = |number: usize| half(b.value("arith.addf", &[value[number], other[number]], ty));
    let difference =
        |number: usize| half(b.value("arith.subf", &[value[number], other[number]], ty));
    [vec![sum(0), difference(1)], vec![difference(0), sum(1)]]
}

/// A transform of a length that the radices divide.
struct Factors<'c> {
    length: i64,
    radices: Vec<i64>,
    /// The roots of unity of `unit` times the length.
    roots: Memory<'c>,
    unit: i64,
}

impl<'c> Factors<'c> {
    fn new(
        lowering: &Lowering<'c, '_>,
        b: &Builder<'c>,
        length: i64,
        radices: Vec<i64>,
        unit: i64,
    ) -> Result<Self, String> {
        let roots = Memory::of(b, &lowering.roots(b, length * unit)?);
        Ok(Self { length, radices, roots, unit })
    }

    /// Memory for the elements of a transform: each step reads one and writes the other.
    fn scratch(&self, b: &Builder<'c>) -> [Memory<'c>; 2] {
        let shape = ArrayShape::new(ElementType::C128, vec![self.length]);
        [Memory::scratch(b, &shape), Memory::scratch(b, &shape)]
    }

    /// Transforms what is in `scratch[first]`, and returns where the result is.
    fn run(
        &self,
        b: &Builder<'c>,
        scratch: &[Memory<'c>; 2],
        first: usize,
    ) -> Result<usize, String> {
        let (mut stride, mut current) = (1, first);
        for radix in &self.radices {
            self.step(b, *radix, stride, &scratch[current], &scratch[1 - current])?;
            stride *= radix;
            current = 1 - current;
        }
        Ok(current)
    }

    /// There are `stride` transforms of the rest of the length, whose elements alternate. With
    /// `n = m * r`, each becomes `r` transforms of length `m`: element `p` of number `t` is
    /// `sum_j x[p + m * j] * w_r^(j * t) * w_n^(p * t)`.
    fn step(
        &self,
        b: &Builder<'c>,
        radix: i64,
        stride: i64,
        from: &Memory<'c>,
        to: &Memory<'c>,
    ) -> Result<(), String> {
        let rest = self.length / (stride * radix);
        for_each(b, &[rest], &mut |b, position| {
            let position = position[0];
            let twiddle = |number: i64| {
                self.roots.load(b, &[b.scale_index(position, number * stride * self.unit)])
            };
            // With one element left all of them are 1.
            let twiddles: Vec<_> = (1..radix).filter(|_| 1 < rest).map(twiddle).collect();
            for_each(b, &[stride], &mut |b, place| {
                let load = |number: i64| {
                    let index = b.add_index(position, b.index(rest * number));
                    from.load(b, &[b.add_index(b.scale_index(index, stride), place[0])])
                };
                let elements: Vec<_> = (0..radix).map(load).collect();
                for number in 0..radix {
                    let turned = elements
                        .iter()
                        .zip(0..)
                        .map(|(element, at)| turn(b, element, root(at * number % radix, radix)));
                    let sum = turned.reduce(|x, y| add(b, &x, &y));
                    let mut sum = sum.ok_or("a radix of nothing")?;
                    // The first one is always 1.
                    let before = usize::try_from(number - 1).ok();
                    if let Some(twiddle) = before.and_then(|at| twiddles.get(at)) {
                        sum = complex::multiply(b, &sum, twiddle);
                    }
                    let index = b.scale_index(position, radix);
                    let index = b.add_index(index, b.index(number));
                    to.store(b, &[b.add_index(b.scale_index(index, stride), place[0])], &sum);
                }
                Ok(())
            })
        })
    }
}

fn add<'c>(b: &Builder<'c>, x: &[Val<'c>], y: &[Val<'c>]) -> Scalar<'c> {
    x.iter().zip(y).map(|(x, y)| b.value("arith.addf", &[*x, *y], x.r#type())).collect()
}

/// The product with a constant; one with a quarter turn needs no multiplication.
fn turn<'c>(b: &Builder<'c>, x: &[Val<'c>], (cos, sin): (f64, f64)) -> Scalar<'c> {
    let negative = |x: Val<'c>| b.value("arith.negf", &[x], x.r#type());
    let (re, im) = (x[0], x[1]);
    match (cos, sin) {
        (1.0, 0.0) => vec![re, im],
        (-1.0, 0.0) => vec![negative(re), negative(im)],
        (0.0, 1.0) => vec![negative(im), re],
        (0.0, -1.0) => vec![im, negative(re)],
        _ => {
            let ty = re.r#type();
            complex::multiply(b, x, &[b.float(ty, cos), b.float(ty, sin)])
        }
    }
}

/// A transform of any length `n` as a cyclic convolution, of a power of two as its length:
/// `2 * j * k == j^2 + k^2 - (k - j)^2`, so that with `c[k] = exp(-pi * i * k^2 / n)` element `k` is
/// `c[k] * sum_j x[j] * c[j] / c[k - j]`.
struct Convolution<'c> {
    length: i64,
    /// The roots of unity of twice the length.
    roots: Memory<'c>,
    factors: Factors<'c>,
    /// The transform of `1 / c`, divided by its length.
    filter: Memory<'c>,
}

impl<'c> Convolution<'c> {
    fn new(lowering: &Lowering<'c, '_>, b: &Builder<'c>, length: i64) -> Result<Self, String> {
        let padded = (2 * length as u64 - 1).next_power_of_two() as i64;
        let radices = radices_of(padded).ok_or("a power of two has radices")?;
        let factors = Factors::new(lowering, b, padded, radices, 1)?;
        let roots = Memory::of(b, &lowering.roots(b, 2 * length)?);
        let shape = ArrayShape::new(ElementType::C128, vec![padded]);
        let filter = Memory::scratch(b, &shape);
        let scratch = factors.scratch(b);
        let result = Self { length, roots, factors, filter };
        for_each(b, &[padded], &mut |b, index| {
            // Distances from 0, backwards too.
            let back = b.sub_index(b.index(padded), index[0]);
            let distance = b.value("arith.minsi", &[index[0], back], b.index_type());
            let value = result.or_zero(b, distance, &|b| {
                let c = result.chirp(b, distance);
                vec![c[0], b.value("arith.negf", &[c[1]], c[1].r#type())]
            });
            scratch[0].store(b, index, &value);
            Ok(())
        })?;
        let found = result.factors.run(b, &scratch, 0)?;
        for_each(b, &[padded], &mut |b, index| {
            let value = scratch[found].load(b, index);
            result.filter.store(b, index, &scaled(b, &value, 1.0 / padded as f64));
            Ok(())
        })?;
        Ok(result)
    }

    /// `c[k]`.
    fn chirp(&self, b: &Builder<'c>, at: Val<'c>) -> Scalar<'c> {
        let square = b.value("arith.muli", &[at, at], b.index_type());
        let number = b.value("arith.remui", &[square, b.index(2 * self.length)], b.index_type());
        self.roots.load(b, &[number])
    }

    /// A value at positions inside of the length, 0 at the others.
    fn or_zero(
        &self,
        b: &Builder<'c>,
        at: Val<'c>,
        value: &dyn Fn(&Builder<'c>) -> Scalar<'c>,
    ) -> Scalar<'c> {
        let zero = |b: &Builder<'c>| vec![b.float(storage_type(b, ElementType::F64), 0.0); 2];
        build_if(b, b.is_inside(at, self.length), &mut |b| value(b), &mut |b| zero(b))
    }

    /// Transforms what `load` gives, and hands so many elements of the result to `store`.
    fn run(
        &self,
        b: &Builder<'c>,
        num_stored: i64,
        load: &dyn Fn(&Builder<'c>, Val<'c>) -> Scalar<'c>,
        store: &dyn Fn(&Builder<'c>, Val<'c>, &[Val<'c>]),
    ) -> Result<(), String> {
        let scratch = self.factors.scratch(b);
        for_each(b, &[self.factors.length], &mut |b, index| {
            let value = self.or_zero(b, index[0], &|b| {
                complex::multiply(b, &load(b, index[0]), &self.chirp(b, index[0]))
            });
            scratch[0].store(b, index, &value);
            Ok(())
        })?;
        let found = self.factors.run(b, &scratch, 0)?;
        for_each(b, &[self.factors.length], &mut |b, index| {
            let value = scratch[found].load(b, index);
            let product = complex::multiply(b, &value, &self.filter.load(b, index));
            scratch[found].store(b, index, &product);
            Ok(())
        })?;
        // Back again: with real and imaginary parts exchanged.
        let swapped = [scratch[0].swapped(), scratch[1].swapped()];
        let found = self.factors.run(b, &swapped, found)?;
        for_each(b, &[num_stored], &mut |b, index| {
            let value = scratch[found].load(b, index);
            let chirp = self.chirp(b, index[0]);
            store(b, index[0], &complex::multiply(b, &value, &chirp));
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn radices_multiply_to_the_length() {
        for length in 1..=1000 {
            let has_large_prime = (17..=length)
                .any(|prime| length % prime == 0 && (2..prime).all(|divisor| prime % divisor != 0));
            match radices_of(length) {
                Some(radices) => assert_eq!(radices.iter().product::<i64>(), length),
                None => assert!(has_large_prime, "{length}"),
            }
            assert_eq!(radices_of(length).is_none(), has_large_prime, "{length}");
        }
    }

    /// Near the cosine and sine, whatever the octant.
    #[test]
    fn roots_are_exact_and_symmetric() {
        for n in 1..=100 {
            for k in 0..n {
                let (cos, sin) = root(k, n);
                let angle = -2.0 * std::f64::consts::PI * k as f64 / n as f64;
                assert!((cos - angle.cos()).abs() < 2e-15 && (sin - angle.sin()).abs() < 2e-15);
                let (mirrored, opposite) = root((n - k) % n, n);
                assert_eq!((cos, sin), (mirrored, -opposite), "{k} of {n}");
            }
        }
        assert_eq!(
            [0, 1, 2, 3].map(|k| root(k, 4)),
            [(1.0, 0.0), (0.0, -1.0), (-1.0, 0.0), (0.0, 1.0)]
        );
    }
}
