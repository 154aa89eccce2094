//! Element types, and their bytes.

use half::{bf16, f16};
use melior::ir::{Type, TypeLike};
use std::fmt;
use tc_dialects::mlir;

/// The type of the elements of a [`Tensor`](super::Tensor).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// `i1`, one byte each, 0 or 1.
    Bool,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

/// A number of single precision that rounds to the same number of 16 bits as `value`: it is rounded to
/// odd (Boldo and Melquiond, 2008, "Emulation of a FMA and correctly rounded sums"). The conversions
/// of `half` from double precision drop bits that decide how a tie is rounded.
pub(crate) fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest) == value || value.is_nan() {
        return nearest;
    }
    let is_larger = value.abs() < f64::from(nearest).abs();
    f32::from_bits((nearest.to_bits() - u32::from(is_larger)) | 1)
}

impl ElementType {
    /// Every element type.
    pub const ALL: [Self; 13] = [
        Self::Bool,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F16,
        Self::Bf16,
        Self::F32,
        Self::F64,
    ];

    /// The element type of an MLIR type, or of the elements of a shaped one. A signless
    /// integer is signed unless `unsigned` is set; `index` is a signed integer of 64 bits. Integers of
    /// fewer than 8 bits take a byte, and so do floats of at most 8 bits: their bits.
    pub fn of(ty: Type, unsigned: bool) -> Option<Self> {
        let ty = mlir::element_type(ty);
        if ty.is_index() {
            return Some(Self::I64);
        }
        if ty.is_f16() {
            return Some(Self::F16);
        }
        if ty.is_bf16() {
            return Some(Self::Bf16);
        }
        if ty.is_f32() {
            return Some(Self::F32);
        }
        if ty.is_f64() {
            return Some(Self::F64);
        }
        if mlir::small_float(ty).is_some() {
            return Some(Self::U8);
        }
        let unsigned = unsigned || mlir::is_unsigned(ty);
        Some(match (mlir::integer_width(ty)?, unsigned) {
            (1, _) => Self::Bool,
            (2..=8, true) => Self::U8,
            (16, true) => Self::U16,
            (32, true) => Self::U32,
            (64, true) => Self::U64,
            (2..=8, false) => Self::I8,
            (16, false) => Self::I16,
            (32, false) => Self::I32,
            (64, false) => Self::I64,
            _ => return None,
        })
    }

    /// The bytes that one element takes.
    pub fn size(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }

    /// Whether it is a signed integer type.
    pub fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// The bits of an integer type (1 for bool); those of the format for a float.
    pub fn width(self) -> u32 {
        match self {
            Self::Bool => 1,
            _ => 8 * self.size() as u32,
        }
    }

    /// The name as TC programs write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::F16 => "float16",
            Self::Bf16 => "bfloat16",
            Self::F32 => "float32",
            Self::F64 => "float64",
        }
    }

    /// The type descriptor of NumPy, in little-endian order.
    pub fn npy_descr(self) -> &'static str {
        match self {
            Self::Bool => "|b1",
            Self::U8 => "|u1",
            Self::U16 => "<u2",
            Self::U32 => "<u4",
            Self::U64 => "<u8",
            Self::I8 => "|i1",
            Self::I16 => "<i2",
            Self::I32 => "<i4",
            Self::I64 => "<i8",
            Self::F16 => "<f2",
            // As the package ml_dtypes writes it.
            Self::Bf16 => "<V2",
            Self::F32 => "<f4",
            Self::F64 => "<f8",
        }
    }

    /// The number that the bytes of one element hold; there must be [`size`](Self::size)
    /// of them.
    pub fn read(self, bytes: &[u8]) -> Number {
        match self {
            Self::Bool => Number::Unsigned(u64::from(bytes[0] != 0)),
            Self::U8 => Number::Unsigned(u8::get(bytes).into()),
            Self::U16 => Number::Unsigned(u16::get(bytes).into()),
            Self::U32 => Number::Unsigned(u32::get(bytes).into()),
            Self::U64 => Number::Unsigned(u64::get(bytes)),
            Self::I8 => Number::Signed(i8::get(bytes).into()),
            Self::I16 => Number::Signed(i16::get(bytes).into()),
            Self::I32 => Number::Signed(i32::get(bytes).into()),
            Self::I64 => Number::Signed(i64::get(bytes)),
            Self::F16 => Number::Float(f16::get(bytes).to_f64()),
            Self::Bf16 => Number::Float(bf16::get(bytes).to_f64()),
            Self::F32 => Number::Float(f32::get(bytes).into()),
            Self::F64 => Number::Float(f64::get(bytes)),
        }
    }

    /// Stores a number into the bytes of one element. Integers keep their low bits, floats
    /// are rounded to nearest; an integer type takes the whole part of a float, saturated.
    pub fn write(self, number: Number, bytes: &mut [u8]) {
        if self.is_float() {
            let value = number.to_f64();
            return match self {
                Self::F16 => f16::from_f32(to_odd(value)).put(bytes),
                Self::Bf16 => bf16::from_f32(to_odd(value)).put(bytes),
                Self::F32 => (value as f32).put(bytes),
                _ => value.put(bytes),
            };
        }
        let value = match number {
            Number::Signed(value) => value as u64,
            Number::Unsigned(value) => value,
            Number::Float(value) if self.is_signed() => value as i64 as u64,
            Number::Float(value) => value as u64,
        };
        if self == Self::Bool {
            bytes[0] = u8::from(value != 0);
        } else {
            bytes.copy_from_slice(&value.to_le_bytes()[..self.size()]);
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The value of one element.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Number {
    /// Of a signed integer type.
    Signed(i64),
    /// Of an unsigned integer type, or 0 or 1 of bool.
    Unsigned(u64),
    /// Of a floating-point type.
    Float(f64),
}

impl Number {
    /// The nearest float.
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Signed(value) => value as f64,
            Self::Unsigned(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Signed(value) => write!(formatter, "{value}"),
            Self::Unsigned(value) => write!(formatter, "{value}"),
            // The shortest text that reads back as the same value, in either notation.
            Self::Float(value) => write!(formatter, "{value:?}"),
        }
    }
}

/// A Rust type that can be the element of a [`Tensor`](super::Tensor).
pub trait Element: Copy {
    /// The element type.
    const TYPE: ElementType;
    /// Reads an element from its bytes, of which there must be `TYPE.size()`.
    fn get(bytes: &[u8]) -> Self;
    /// Writes an element to its bytes, of which there must be `TYPE.size()`.
    fn put(self, bytes: &mut [u8]);
}

macro_rules! element {
    ($($rust:ty => $name:ident),*) => { $(
        impl Element for $rust {
            const TYPE: ElementType = ElementType::$name;

            fn get(bytes: &[u8]) -> Self {
                let mut buffer = [0; size_of::<$rust>()];
                buffer.copy_from_slice(bytes);
                Self::from_le_bytes(buffer)
            }

            fn put(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
        }
    )* };
}

element! {
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    f16 => F16, bf16 => Bf16, f32 => F32, f64 => F64
}

impl Element for bool {
    const TYPE: ElementType = ElementType::Bool;

    fn get(bytes: &[u8]) -> Self {
        bytes[0] != 0
    }

    fn put(self, bytes: &mut [u8]) {
        bytes[0] = self.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether a number of 16 bits is the nearest one, and the even one of two.
    fn is_nearest(value: f64, bits: u16, to_f64: impl Fn(u16) -> f64) -> bool {
        let distance = |bits: u16| (to_f64(bits) - value).abs();
        let others = [bits.wrapping_sub(1), bits.wrapping_add(1)];
        others.iter().filter(|it| to_f64(**it).is_finite()).all(|other| {
            let (own, other) = (distance(bits), distance(*other));
            own < other || own == other && bits.is_multiple_of(2)
        })
    }

    proptest! {
        #[test]
        fn halves_are_the_nearest(
            bits in any::<u16>(),
            next in prop_oneof![Just(0.5), 0.0..1.0],
            nudge in -2i64..=2,
        ) {
            let between = |to_f64: &dyn Fn(u16) -> f64| {
                let (low, high) = (to_f64(bits), to_f64(bits.wrapping_add(1)));
                let value = low + (high - low) * next;
                f64::from_bits(value.to_bits().wrapping_add_signed(nudge))
            };
            let half = |bits: u16| f16::from_bits(bits).to_f64();
            let value = between(&half);
            prop_assume!(value.is_finite() && value.abs() < 65504.0);
            prop_assert!(is_nearest(value, f16::from_f32(to_odd(value)).to_bits(), half), "{value}");
            let brain = |bits: u16| bf16::from_bits(bits).to_f64();
            let value = between(&brain);
            prop_assume!(value.is_finite() && value.abs() < bf16::MAX.to_f64());
            prop_assert!(is_nearest(value, bf16::from_f32(to_odd(value)).to_bits(), brain), "{value}");
        }
    }
}
