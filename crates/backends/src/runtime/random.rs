//! Seeded random tensors for checks and benchmarks.
//!
//! Floats are multiples of a power of two, so coarse that products and short sums are
//! exact: a program that only multiplies and adds is then checked bit by bit. The
//! generator is SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
//! generators", 2014), so that a seed gives the same numbers on every machine.

use super::{
    element::{ElementType, Number},
    tensor::{Tensor, TensorError},
};

struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, or any number if it is 0. The bias is below `bound` / 2^64.
    fn below(&mut self, bound: u64) -> u64 {
        let value = self.next();
        if bound == 0 { value } else { ((u128::from(value) * u128::from(bound)) >> 64) as u64 }
    }
}

/// A tensor of random elements that depend on the seed only.
///
/// Without an interval: floats in `[-1, 1)`, signed integers in `[-8, 7]`, unsigned ones in
/// `[0, 15]`, bools. With one, its integers for an integer type (both ends included, as far
/// as the type goes), and numbers between the ends for a float type.
///
/// # Errors
/// The tensor does not fit the address space.
pub fn random(
    element: ElementType,
    shape: &[usize],
    seed: u64,
    interval: Option<(i64, i64)>,
) -> Result<Tensor, TensorError> {
    let mut tensor = Tensor::zeros(element, shape)?;
    let mut generator = SplitMix64(seed);
    let mut draw: Box<dyn FnMut() -> Number> = if element.is_float() {
        let (low, high) = interval.unwrap_or((-1, 1));
        // Steps within an interval of length 2: a product of two numbers has at most twice
        // as many bits, which leaves room for a sum in the same type.
        let steps: u64 = match element {
            ElementType::Bf16 => 1 << 3,
            ElementType::F16 => 1 << 4,
            ElementType::F32 => 1 << 9,
            _ => 1 << 20,
        };
        let length = (high as f64 - low as f64).max(0.0);
        Box::new(move || {
            let fraction = generator.below(steps) as f64 / steps as f64;
            Number::Float(low as f64 + fraction * length)
        })
    } else {
        let (least, greatest) = limits(element);
        let (low, high) = interval.unwrap_or(match element.is_signed() {
            true => (-8, 7),
            false => (0, 15),
        });
        let low = i128::from(low).clamp(least, greatest);
        let high = i128::from(high).clamp(low, greatest);
        Box::new(move || {
            // 2^64 values wrap to a bound of 0, which means any number.
            let offset = generator.below((high - low + 1) as u64);
            let value = low + i128::from(offset);
            i64::try_from(value).map_or(Number::Unsigned(value as u64), Number::Signed)
        })
    };
    for bytes in tensor.bytes_mut().chunks_exact_mut(element.size()) {
        element.write(draw(), bytes);
    }
    Ok(tensor)
}

/// A tensor of random elements that `encode` makes of numbers in `[-1, 1)`, which are multiples of 2^-19.
///
/// # Errors
/// The tensor does not fit the address space.
pub fn random_floats(
    element: ElementType,
    shape: &[usize],
    seed: u64,
    encode: impl Fn(f64) -> Number,
) -> Result<Tensor, TensorError> {
    const STEPS: u64 = 1 << 20;
    let mut tensor = Tensor::zeros(element, shape)?;
    let mut generator = SplitMix64(seed);
    for bytes in tensor.bytes_mut().chunks_exact_mut(element.size()) {
        let fraction = generator.below(STEPS) as f64 / STEPS as f64;
        element.write(encode(2.0 * fraction - 1.0), bytes);
    }
    Ok(tensor)
}

fn limits(element: ElementType) -> (i128, i128) {
    let width = element.width();
    if element.is_signed() {
        (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    } else {
        (0, (1 << width) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_in_their_interval() {
        for element in ElementType::ALL {
            let plain = random(element, &[4, 50], 7, None).unwrap();
            assert_eq!(plain, random(element, &[4, 50], 7, None).unwrap());
            assert_ne!(plain, random(element, &[4, 50], 8, None).unwrap());
            let (low, high) = match (element.is_float(), element.is_signed()) {
                (true, _) => (-1.0, 1.0),
                (_, true) => (-8.0, 7.0),
                _ => (0.0, 15.0),
            };
            assert!(plain.numbers().all(|it| (low..=high).contains(&it.to_f64())), "{element}");
            let ranged = random(element, &[200], 7, Some((0, 3))).unwrap();
            assert!(ranged.numbers().all(|it| (0.0..=3.0).contains(&it.to_f64())), "{element}");
            let mut seen: Vec<_> = ranged.numbers().map(|it| it.to_string()).collect();
            seen.sort();
            seen.dedup();
            assert!(seen.len() >= if element == ElementType::Bool { 2 } else { 4 }, "{element}");
        }
    }

    #[test]
    fn precise_floats_hardly_repeat() {
        let floats = random_floats(ElementType::F32, &[1000], 3, Number::Float).unwrap();
        let values = floats.to_values::<f32>().unwrap();
        assert!(values.iter().all(|it| (-1.0..1.0).contains(it)));
        let mut bits: Vec<_> = values.iter().map(|it| it.to_bits()).collect();
        bits.sort_unstable();
        bits.dedup();
        assert!(990 < bits.len(), "{}", bits.len());
    }

    #[test]
    fn the_whole_of_a_type_is_reached() {
        let whole = random(ElementType::I64, &[64], 1, Some((i64::MIN, i64::MAX))).unwrap();
        assert!(whole.numbers().any(|it| it.to_f64() < -1e18));
        assert!(whole.numbers().any(|it| it.to_f64() > 1e18));
    }
}
