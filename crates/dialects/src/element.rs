//! Element types of arrays, and how their values are stored as bits.
//!
//! A value of a float type is decoded to `f64`, which holds every value of every type exactly,
//! and encoded with rounding to nearest, ties to even. Sub-byte types take one byte per element.
//!
//! Source: the formats of `ml_dtypes`, and OCP 8-bit Floating Point Specification, section 5.

use std::fmt::{self, Display, Formatter};

/// What the values of a type are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementKind {
    /// `pred`: false or true.
    Pred,
    /// Integers in two's complement.
    Signed,
    /// Integers from 0 on.
    Unsigned,
    /// Floating point numbers.
    Float,
    /// Pairs of floating point numbers, real part first.
    Complex,
}

macro_rules! element_types {
    ($($(#[$doc:meta])* $variant:ident $name:literal $kind:ident $bits:literal;)*) => {
        /// The type of the elements of an array.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ElementType {
            $($(#[$doc])* $variant,)*
        }

        impl ElementType {
            /// Every element type.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in HLO text.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The type with this name in HLO text.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            /// What its values are.
            pub fn kind(self) -> ElementKind {
                match self { $(Self::$variant => ElementKind::$kind,)* }
            }

            /// How many bits a value has; `pred` has 8.
            pub fn bits(self) -> u32 {
                match self { $(Self::$variant => $bits,)* }
            }
        }
    };
}

element_types! {
    /// Truth values.
    Pred "pred" Pred 8;
    /// 2-bit integers.
    S2 "s2" Signed 2;
    /// 4-bit integers.
    S4 "s4" Signed 4;
    /// 8-bit integers.
    S8 "s8" Signed 8;
    /// 16-bit integers.
    S16 "s16" Signed 16;
    /// 32-bit integers.
    S32 "s32" Signed 32;
    /// 64-bit integers.
    S64 "s64" Signed 64;
    /// 2-bit integers without sign.
    U2 "u2" Unsigned 2;
    /// 4-bit integers without sign.
    U4 "u4" Unsigned 4;
    /// 8-bit integers without sign.
    U8 "u8" Unsigned 8;
    /// 16-bit integers without sign.
    U16 "u16" Unsigned 16;
    /// 32-bit integers without sign.
    U32 "u32" Unsigned 32;
    /// 64-bit integers without sign.
    U64 "u64" Unsigned 64;
    /// 2 exponent bits, 1 mantissa bit, finite values only.
    F4E2M1FN "f4e2m1fn" Float 4;
    /// 3 exponent bits, 4 mantissa bits.
    F8E3M4 "f8e3m4" Float 8;
    /// 4 exponent bits, 3 mantissa bits, as IEEE 754 would have it.
    F8E4M3 "f8e4m3" Float 8;
    /// 4 exponent bits, 3 mantissa bits, bias 11, one NaN, no infinity, no negative zero.
    F8E4M3B11FNUZ "f8e4m3b11fnuz" Float 8;
    /// 4 exponent bits, 3 mantissa bits, no infinity.
    F8E4M3FN "f8e4m3fn" Float 8;
    /// 4 exponent bits, 3 mantissa bits, bias 8, one NaN, no infinity, no negative zero.
    F8E4M3FNUZ "f8e4m3fnuz" Float 8;
    /// 5 exponent bits, 2 mantissa bits, as IEEE 754 would have it.
    F8E5M2 "f8e5m2" Float 8;
    /// 5 exponent bits, 2 mantissa bits, bias 16, one NaN, no infinity, no negative zero.
    F8E5M2FNUZ "f8e5m2fnuz" Float 8;
    /// Powers of two, and one NaN.
    F8E8M0FNU "f8e8m0fnu" Float 8;
    /// The upper half of an `f32`.
    BF16 "bf16" Float 16;
    /// IEEE 754 binary16.
    F16 "f16" Float 16;
    /// IEEE 754 binary32.
    F32 "f32" Float 32;
    /// IEEE 754 binary64.
    F64 "f64" Float 64;
    /// Pairs of `f32`.
    C64 "c64" Complex 64;
    /// Pairs of `f64`.
    C128 "c128" Complex 128;
}

impl Display for ElementType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which bit patterns of a float format are not ordinary numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Specials {
    /// The largest exponent: infinity, and NaN with a mantissa that is not zero.
    Ieee,
    /// All bits set but the sign is NaN; no infinity.
    OneNan,
    /// What would be negative zero is NaN; no infinity.
    Fnuz,
    /// None.
    Finite,
    /// All bits set is NaN; no sign, and no zero.
    ExponentOnly,
}

/// A binary floating point format of at most 16 bits.
#[derive(Clone, Copy)]
struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    specials: Specials,
}

impl Format {
    const fn new(exponent_bits: u32, mantissa_bits: u32, bias: i32, specials: Specials) -> Self {
        Self { exponent_bits, mantissa_bits, bias, specials }
    }

    fn sign_bit(self) -> u64 {
        match self.specials {
            Specials::ExponentOnly => 0,
            _ => 1 << (self.exponent_bits + self.mantissa_bits),
        }
    }

    /// Bits of the largest finite value.
    fn largest(self) -> u64 {
        let all = (1 << (self.exponent_bits + self.mantissa_bits)) - 1;
        match self.specials {
            Specials::Ieee => all - (1 << self.mantissa_bits),
            Specials::OneNan | Specials::ExponentOnly => all - 1,
            Specials::Fnuz | Specials::Finite => all,
        }
    }

    /// Bits of the positive quiet NaN, if the format has one.
    fn nan(self) -> Option<u64> {
        let all: u64 = (1 << (self.exponent_bits + self.mantissa_bits)) - 1;
        match self.specials {
            // The highest mantissa bit makes it quiet.
            Specials::Ieee => Some(all - ((1 << (self.mantissa_bits - 1)) - 1)),
            Specials::OneNan | Specials::ExponentOnly => Some(all),
            Specials::Fnuz => Some(self.sign_bit()),
            Specials::Finite => None,
        }
    }

    fn is_nan(self, bits: u64) -> bool {
        let magnitude = bits & !self.sign_bit();
        match self.specials {
            Specials::Ieee => self.largest() + 1 < magnitude,
            Specials::OneNan | Specials::ExponentOnly => self.largest() < magnitude,
            Specials::Fnuz => bits == self.sign_bit(),
            Specials::Finite => false,
        }
    }

    fn decode(self, bits: u64) -> f64 {
        let magnitude = bits & !self.sign_bit();
        if self.is_nan(bits) {
            return f64::NAN;
        }
        let mantissa = magnitude & ((1 << self.mantissa_bits) - 1);
        let exponent = (magnitude >> self.mantissa_bits) as i32;
        let value = if self.largest() < magnitude {
            f64::INFINITY
        } else if self.specials == Specials::ExponentOnly {
            power_of_two(exponent - self.bias)
        } else if exponent == 0 {
            mantissa as f64 * power_of_two(1 - self.bias - self.mantissa_bits as i32)
        } else {
            let significand = mantissa | 1 << self.mantissa_bits;
            significand as f64 * power_of_two(exponent - self.bias - self.mantissa_bits as i32)
        };
        if bits & self.sign_bit() == 0 { value } else { -value }
    }

    fn encode(self, value: f64) -> u64 {
        if value.is_nan() {
            return self.nan().unwrap_or(self.sign_bit());
        }
        let sign = if value.is_sign_negative() { self.sign_bit() } else { 0 };
        if self.specials == Specials::ExponentOnly {
            return self.encode_exponent(value);
        }
        let magnitude = self.round(value.abs());
        let out = if self.largest() < magnitude {
            // Without an infinity, what is too large is NaN; without both, the largest value.
            match self.specials {
                Specials::Ieee => self.largest() + 1,
                Specials::Finite => self.largest(),
                _ => return self.nan().unwrap_or(0) | sign,
            }
        } else {
            magnitude
        };
        if out == 0 && self.specials == Specials::Fnuz { 0 } else { out | sign }
    }

    /// Bits of a value that is not negative, rounded; may go past the largest.
    fn round(self, value: f64) -> u64 {
        if value == 0.0 {
            return 0;
        }
        if value.is_infinite() {
            return u64::MAX >> 1;
        }
        let least = 1 - self.bias;
        let exponent = exponent_of(value).max(least);
        // The last place of the result is `2^(exponent - mantissa_bits)`: scaling by powers of
        // two is exact, so the rounding happens once.
        let scaled = value * power_of_two(self.mantissa_bits as i32 - exponent);
        let units = scaled.round_ties_even() as u64;
        let biased = (exponent - least) as u64;
        // A significand that was rounded up to the next power of two carries into the exponent.
        (biased << self.mantissa_bits) + units
    }

    /// Only powers of two: the nearest, ties to the larger, as XLA converts. Zero and what is
    /// negative have no code and become NaN.
    fn encode_exponent(self, value: f64) -> u64 {
        if value.is_infinite() || value <= 0.0 {
            return self.largest() + 1;
        }
        let exponent = exponent_of(value);
        let mut code = i64::from(exponent) + i64::from(self.bias);
        let fraction = value * power_of_two(-exponent);
        if 1.5 <= fraction {
            code += 1;
        }
        (code.max(0) as u64).min(self.largest() + 1)
    }
}

/// `2^exponent` for the exponents of the small formats.
fn power_of_two(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

/// The exponent of a finite value over 0, so that `2^e <= value < 2^(e+1)`.
fn exponent_of(value: f64) -> i32 {
    let biased = (value.to_bits() >> 52) as i32 & 0x7ff;
    // Subnormals of f64 are below everything that the small formats hold.
    if biased == 0 { -1023 } else { biased - 1023 }
}

impl ElementType {
    /// Whether it is a signed or unsigned integer type; `pred` is not.
    pub fn is_integer(self) -> bool {
        matches!(self.kind(), ElementKind::Signed | ElementKind::Unsigned)
    }

    /// Whether it is a floating point type; complex types are not.
    pub fn is_float(self) -> bool {
        self.kind() == ElementKind::Float
    }

    /// Whether it is a complex type.
    pub fn is_complex(self) -> bool {
        self.kind() == ElementKind::Complex
    }

    /// Bytes that one element takes in a `Literal` of HLO.
    pub fn bytes(self) -> usize {
        self.bits().div_ceil(8) as usize
    }

    /// The type of the parts of a complex type, otherwise the type itself.
    pub fn part(self) -> Self {
        match self {
            Self::C64 => Self::F32,
            Self::C128 => Self::F64,
            other => other,
        }
    }

    /// How many parts of type [`part`](Self::part) an element has.
    pub fn num_parts(self) -> usize {
        if self.is_complex() { 2 } else { 1 }
    }

    /// The complex type with parts of this type.
    pub fn complex(self) -> Option<Self> {
        match self {
            Self::F32 => Some(Self::C64),
            Self::F64 => Some(Self::C128),
            _ => None,
        }
    }

    fn format(self) -> Option<Format> {
        use Specials::{ExponentOnly, Finite, Fnuz, Ieee, OneNan};
        Some(match self {
            Self::F4E2M1FN => Format::new(2, 1, 1, Finite),
            Self::F8E3M4 => Format::new(3, 4, 3, Ieee),
            Self::F8E4M3 => Format::new(4, 3, 7, Ieee),
            Self::F8E4M3B11FNUZ => Format::new(4, 3, 11, Fnuz),
            Self::F8E4M3FN => Format::new(4, 3, 7, OneNan),
            Self::F8E4M3FNUZ => Format::new(4, 3, 8, Fnuz),
            Self::F8E5M2 => Format::new(5, 2, 15, Ieee),
            Self::F8E5M2FNUZ => Format::new(5, 2, 16, Fnuz),
            Self::F8E8M0FNU => Format::new(8, 0, 127, ExponentOnly),
            Self::BF16 => Format::new(8, 7, 127, Ieee),
            Self::F16 => Format::new(5, 10, 15, Ieee),
            _ => return None,
        })
    }

    /// The value of the bits of a float type; 0 for other types.
    pub fn decode_float(self, bits: u64) -> f64 {
        match self {
            Self::F32 => f64::from(f32::from_bits(bits as u32)),
            Self::F64 => f64::from_bits(bits),
            other => other.format().map_or(0.0, |format| format.decode(bits)),
        }
    }

    /// The bits of a value in a float type, rounded to nearest, ties to even; 0 for other types.
    pub fn encode_float(self, value: f64) -> u64 {
        match self {
            Self::F32 => u64::from((value as f32).to_bits()),
            Self::F64 => value.to_bits(),
            other => other.format().map_or(0, |format| format.encode(value)),
        }
    }

    /// The bits of the positive quiet NaN of a float type, if it has one.
    pub fn nan_bits(self) -> Option<u64> {
        match self {
            Self::F32 => Some(u64::from(f32::NAN.to_bits())),
            Self::F64 => Some(f64::NAN.to_bits()),
            other => other.format()?.nan(),
        }
    }

    /// The sign bit of a float type; 0 for types without one.
    pub fn sign_bit(self) -> u64 {
        match self {
            Self::F32 => 1 << 31,
            Self::F64 => 1 << 63,
            other => other.format().map_or(0, Format::sign_bit),
        }
    }

    /// The smallest and the largest value of an integer type; 0 and 1 for `pred`.
    pub fn integer_range(self) -> (i128, i128) {
        match self.kind() {
            ElementKind::Signed => (-(1 << (self.bits() - 1)), (1 << (self.bits() - 1)) - 1),
            ElementKind::Unsigned => (0, (1 << self.bits()) - 1),
            _ => (0, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small_floats() -> impl Iterator<Item = ElementType> {
        ElementType::ALL.iter().copied().filter(|ty| ty.is_float() && ty.bits() <= 16)
    }

    #[test]
    fn every_bit_pattern_is_read_and_written_back() {
        for ty in small_floats() {
            for bits in 0..1u64 << ty.bits() {
                let value = ty.decode_float(bits);
                if value.is_nan() {
                    assert!(ty.decode_float(ty.encode_float(value)).is_nan(), "{ty} {bits:x}");
                } else {
                    assert_eq!(ty.encode_float(value), bits, "{ty} {bits:x} {value}");
                }
            }
        }
    }

    /// Against the definition: no other value is nearer, and a tie goes to even bits.
    #[test]
    fn rounding_is_to_nearest_even() {
        for ty in small_floats().filter(|ty| *ty != ElementType::F8E8M0FNU) {
            let sign = ty.sign_bit();
            let finite: Vec<u64> =
                (0..sign).filter(|&bits| ty.decode_float(bits).is_finite()).collect();
            for pair in finite.windows(2) {
                let (low, high) = (ty.decode_float(pair[0]), ty.decode_float(pair[1]));
                let middle = low + (high - low) / 2.0;
                let even = if pair[0] % 2 == 0 { pair[0] } else { pair[1] };
                assert_eq!(ty.encode_float(middle), even, "{ty} {middle}");
                let (below, above) = (middle - (high - low) / 8.0, middle + (high - low) / 8.0);
                assert_eq!(ty.encode_float(below), pair[0], "{ty} {below}");
                assert_eq!(ty.encode_float(above), pair[1], "{ty} {above}");
            }
        }
    }

    /// The codes that JAX and ml_dtypes give.
    #[test]
    fn powers_of_two() {
        let code = |value| ElementType::F8E8M0FNU.encode_float(value);
        let cases = [(0.75, 127), (1.0, 127), (1.5, 128), (3.0, 129), (6.0, 130), (2.9, 128)];
        cases.into_iter().for_each(|(value, bits)| assert_eq!(code(value), bits, "{value}"));
        for value in [0.0, -0.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            assert_eq!(code(value), 255, "{value}");
        }
    }

    #[test]
    fn limits_of_the_formats() {
        let largest = |ty: ElementType| {
            (0..1u64 << ty.bits())
                .map(|bits| ty.decode_float(bits))
                .filter(|value| value.is_finite())
                .fold(0.0, f64::max)
        };
        assert_eq!(largest(ElementType::F4E2M1FN), 6.0);
        assert_eq!(largest(ElementType::F8E3M4), 15.5);
        assert_eq!(largest(ElementType::F8E4M3), 240.0);
        assert_eq!(largest(ElementType::F8E4M3B11FNUZ), 30.0);
        assert_eq!(largest(ElementType::F8E4M3FN), 448.0);
        assert_eq!(largest(ElementType::F8E4M3FNUZ), 240.0);
        assert_eq!(largest(ElementType::F8E5M2), 57344.0);
        assert_eq!(largest(ElementType::F8E5M2FNUZ), 57344.0);
        assert_eq!(largest(ElementType::F8E8M0FNU), 2f64.powi(127));
        assert_eq!(largest(ElementType::F16), 65504.0);
        assert!(
            ElementType::F16.decode_float(ElementType::F16.encode_float(65520.0)).is_infinite()
        );
        assert!(ElementType::F8E4M3FN.decode_float(0x7f).is_nan());
        assert_eq!(ElementType::F8E4M3FN.encode_float(1000.0), 0x7f);
        assert_eq!(ElementType::F4E2M1FN.encode_float(-100.0), 0xf);
    }

    #[test]
    fn bf16_is_the_upper_half_of_f32() {
        for bits in 0..1u64 << 16 {
            let wide = f32::from_bits((bits as u32) << 16);
            let value = ElementType::BF16.decode_float(bits);
            assert!(value == f64::from(wide) || (value.is_nan() && wide.is_nan()));
        }
    }

    #[test]
    fn names_and_ranges() {
        for &ty in ElementType::ALL {
            assert_eq!(ElementType::from_name(ty.name()), Some(ty));
        }
        assert_eq!(ElementType::S4.integer_range(), (-8, 7));
        assert_eq!(ElementType::U64.integer_range(), (0, i128::from(u64::MAX)));
    }
}
