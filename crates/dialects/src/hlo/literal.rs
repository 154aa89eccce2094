//! The values of constants, as compact arrays of bytes.
//!
//! Elements are stored row-major and little-endian; `pred` and sub-byte types take one byte each,
//! and complex numbers two parts, the real one first. A constant whose text gives one value for
//! an array with dimensions is kept as that one value, so that memory never grows with a number
//! in the text.

use crate::element::{ElementKind, ElementType};
use std::fmt::{self, Write};

/// The value of a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Literal {
    /// The elements of an array.
    Array(ArrayLiteral),
    /// The values of a tuple.
    Tuple(Vec<Literal>),
    /// The elements of an array that the text omits, `{...}`. They are unknown: two such constants
    /// are not equal.
    Elided,
}

impl Literal {
    /// The array, if it is one.
    pub fn as_array(&self) -> Option<&ArrayLiteral> {
        match self {
            Self::Array(array) => Some(array),
            Self::Tuple(_) | Self::Elided => None,
        }
    }

    /// Whether any of the values is elided.
    pub fn has_elided(&self) -> bool {
        match self {
            Self::Array(_) => false,
            Self::Tuple(values) => values.iter().any(Self::has_elided),
            Self::Elided => true,
        }
    }
}

/// The elements of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayLiteral {
    /// The type of each element.
    pub element_type: ElementType,
    /// The elements, [`ElementType::bytes`] each; a single one if `is_splat`.
    pub bytes: Vec<u8>,
    /// Whether every element of the array has the one value that is stored.
    pub is_splat: bool,
}

impl ArrayLiteral {
    /// An array without elements yet.
    pub fn new(element_type: ElementType) -> Self {
        Self { element_type, bytes: Vec::new(), is_splat: false }
    }

    /// The number of elements that are stored.
    pub fn num_stored(&self) -> usize {
        self.bytes.len() / self.element_type.bytes()
    }

    /// Appends an element of a type that is not complex, or one part of a complex one.
    pub fn push_bits(&mut self, bits: u64) {
        let width = self.element_type.part().bytes();
        self.bytes.extend_from_slice(&bits.to_le_bytes()[..width]);
    }

    /// The bits of a stored value; complex elements count as two values. 0 beyond the end.
    pub fn bits(&self, position: usize) -> u64 {
        let width = self.element_type.part().bytes();
        let mut bits = [0; 8];
        let start = position.saturating_mul(width);
        if let Some(bytes) = self.bytes.get(start..start.saturating_add(width)) {
            bits[..width].copy_from_slice(bytes);
        }
        u64::from_le_bytes(bits)
    }

    /// The stored element at a position as an integer, if the type is an integer or `pred`.
    pub fn integer(&self, position: usize) -> Option<i128> {
        if self.num_stored() <= position {
            return None;
        }
        let bits = self.bits(position);
        let unused = 64 - self.element_type.bits().min(64);
        match self.element_type.kind() {
            ElementKind::Pred | ElementKind::Unsigned => Some(i128::from(bits)),
            ElementKind::Signed => Some(i128::from((bits << unused) as i64 >> unused)),
            _ => None,
        }
    }

    /// The stored element at a position as a float, if the type is one.
    pub fn float(&self, position: usize) -> Option<f64> {
        (self.element_type.is_float() && position < self.num_stored())
            .then(|| self.element_type.decode_float(self.bits(position)))
    }

    /// Real and imaginary part of the stored element at a position, if the type is complex.
    pub fn complex(&self, position: usize) -> Option<(f64, f64)> {
        let part = self.element_type.part();
        (self.element_type.is_complex() && position < self.num_stored()).then(|| {
            let bits = |offset| self.bits(2 * position + offset);
            (part.decode_float(bits(0)), part.decode_float(bits(1)))
        })
    }

    /// The bytes of all elements of an array of `count` elements.
    pub fn dense(&self, count: usize) -> Vec<u8> {
        if self.is_splat { self.bytes.repeat(count) } else { self.bytes.clone() }
    }

    /// Writes the stored element at a position as HLO text.
    pub(super) fn write_element(
        &self,
        f: &mut impl Write,
        position: usize,
        scalar: bool,
    ) -> fmt::Result {
        let part = self.element_type.part();
        match self.element_type.kind() {
            ElementKind::Pred if scalar => write!(f, "{}", self.bits(position) != 0),
            ElementKind::Complex => {
                f.write_char('(')?;
                write_float(f, part, self.bits(2 * position))?;
                f.write_str(", ")?;
                write_float(f, part, self.bits(2 * position + 1))?;
                f.write_char(')')
            }
            ElementKind::Float => write_float(f, part, self.bits(position)),
            _ => write!(f, "{}", self.integer(position).unwrap_or(0)),
        }
    }
}

/// Writes the shortest decimal number that gives the bits back, or a name for a special value.
fn write_float(f: &mut impl Write, ty: ElementType, bits: u64) -> fmt::Result {
    let value = ty.decode_float(bits);
    if value.is_nan() {
        return write_nan(f, ty, bits);
    }
    if value.is_infinite() {
        return f.write_str(if value < 0.0 { "-inf" } else { "inf" });
    }
    let plain = value == 0.0 || (1e-5..1e16).contains(&value.abs());
    match ty {
        ElementType::F32 if plain => write!(f, "{}", value as f32),
        ElementType::F32 => write!(f, "{:e}", value as f32),
        ElementType::F64 if plain => write!(f, "{value}"),
        ElementType::F64 => write!(f, "{value:e}"),
        _ => {
            // At most 17 digits tell all values of f64 apart, so the loop ends with a result.
            let decimal = (0..17)
                .map(|digits| format!("{value:.digits$e}"))
                .find(|text| text.parse().is_ok_and(|value| ty.encode_float(value) == bits))
                .and_then(|text| text.parse::<f64>().ok())
                .unwrap_or(value);
            if plain { write!(f, "{decimal}") } else { write!(f, "{decimal:e}") }
        }
    }
}

/// `nan`, with sign and payload where they are not those of the positive quiet NaN.
fn write_nan(f: &mut impl Write, ty: ElementType, bits: u64) -> fmt::Result {
    let Some(nan) = ty.nan_bits() else { return f.write_str("nan") };
    // Where the sign bit alone makes the NaN, it is no sign.
    let sign = if nan == ty.sign_bit() { 0 } else { ty.sign_bit() };
    if bits & sign != 0 {
        f.write_char('-')?;
    }
    let (bits, nan) = (bits & !sign, nan & !sign);
    if bits == nan {
        f.write_str("nan")
    } else {
        write!(f, "nan(0x{:x})", bits & !ty.encode_float(f64::INFINITY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(ty: ElementType, bits: u64) -> String {
        let mut text = String::new();
        write_float(&mut text, ty, bits).unwrap();
        text
    }

    #[test]
    fn shortest_digits() {
        let f32_text = |value: f32| written(ElementType::F32, u64::from(value.to_bits()));
        assert_eq!(f32_text(0.1), "0.1");
        assert_eq!(f32_text(-0.0), "-0");
        assert_eq!(f32_text(1e-5), "1e-5");
        assert_eq!(f32_text(f32::MAX), "3.4028235e38");
        assert_eq!(f32_text(16777216.0), "16777216");
        assert_eq!(f32_text(f32::NEG_INFINITY), "-inf");
        let bf16 = |value| written(ElementType::BF16, ElementType::BF16.encode_float(value));
        assert_eq!(bf16(0.9414), "0.94");
        assert_eq!(bf16(-0.418), "-0.418");
        assert_eq!(written(ElementType::F16, 1), "6e-8");
    }

    #[test]
    fn small_floats_come_back() {
        for &ty in ElementType::ALL.iter().filter(|ty| ty.is_float() && ty.bits() <= 16) {
            for bits in 0..1u64 << ty.bits() {
                let text = written(ty, bits);
                if let Ok(value) = text.parse::<f64>()
                    && !value.is_nan()
                {
                    assert_eq!(ty.encode_float(value), bits, "{ty} {text}");
                } else {
                    assert!(text.contains("nan"), "{ty} {text}");
                }
            }
        }
    }

    #[test]
    fn elements_of_every_kind() {
        let mut array = ArrayLiteral::new(ElementType::S4);
        array.push_bits(0xf);
        assert_eq!((array.integer(0), array.integer(1)), (Some(-1), None));
        let mut array = ArrayLiteral::new(ElementType::C64);
        array.push_bits(u64::from(1f32.to_bits()));
        array.push_bits(u64::from((-2f32).to_bits()));
        assert_eq!(array.num_stored(), 1);
        assert_eq!(array.complex(0), Some((1.0, -2.0)));
        let mut array = ArrayLiteral::new(ElementType::U64);
        array.push_bits(u64::MAX);
        assert_eq!(array.integer(0), Some(i128::from(u64::MAX)));
        let splat = ArrayLiteral { is_splat: true, ..array };
        assert_eq!(splat.dense(2).len(), 16);
    }
}
