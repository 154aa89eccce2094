//! Scalar types of TC, and the rule for a common type of two operands.
//!
//! Source: the TC language, "Types". The rule follows the original except for bool, which takes the
//! type of the number it meets instead of counting as a 1-bit unsigned integer.

use std::fmt;

use crate::text::diagnostic::similar;

/// The type of one tensor element or of one value of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScalarType {
    /// `bool`: true or false, 1 or 0 as a number.
    Bool,
    /// `uint8`
    UInt8,
    /// `uint16`
    UInt16,
    /// `uint32`
    UInt32,
    /// `uint64`
    UInt64,
    /// `int8`
    Int8,
    /// `int16`
    Int16,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `float16`: IEEE binary16, rounded after each operation.
    Float16,
    /// `float` or `float32`: IEEE binary32.
    Float32,
    /// `double` or `float64`: IEEE binary64.
    Float64,
}

impl ScalarType {
    /// The keywords of the types.
    const KEYWORDS: [&str; 14] = [
        "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
        "float16", "float32", "float64", "float", "double",
    ];

    /// The type that a keyword of the language names.
    pub fn from_keyword(word: &str) -> Option<Self> {
        Some(match word {
            "bool" => Self::Bool,
            "uint8" => Self::UInt8,
            "uint16" => Self::UInt16,
            "uint32" => Self::UInt32,
            "uint64" => Self::UInt64,
            "int8" => Self::Int8,
            "int16" => Self::Int16,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "float16" => Self::Float16,
            "float" | "float32" => Self::Float32,
            "double" | "float64" => Self::Float64,
            _ => return None,
        })
    }

    /// The type that a word from another language, or a misspelled keyword, probably means.
    pub fn similar(word: &str) -> Option<Self> {
        match word {
            "int" => Some(Self::Int32),
            "half" => Some(Self::Float16),
            "byte" => Some(Self::UInt8),
            "uint" => Some(Self::UInt32),
            "long" => Some(Self::Int64),
            "short" => Some(Self::Int16),
            "boolean" => Some(Self::Bool),
            _ => similar(word, Self::KEYWORDS).and_then(Self::from_keyword),
        }
    }

    /// The keyword by which the printer and the messages name the type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::UInt8 => "uint8",
            Self::UInt16 => "uint16",
            Self::UInt32 => "uint32",
            Self::UInt64 => "uint64",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Float16 => "float16",
            Self::Float32 => "float",
            Self::Float64 => "double",
        }
    }

    /// Width in bits; 1 for bool.
    pub fn width(self) -> u32 {
        match self {
            Self::Bool => 1,
            Self::UInt8 | Self::Int8 => 8,
            Self::UInt16 | Self::Int16 | Self::Float16 => 16,
            Self::UInt32 | Self::Int32 | Self::Float32 => 32,
            Self::UInt64 | Self::Int64 | Self::Float64 => 64,
        }
    }

    /// Whether the type is one of the floating-point types.
    pub fn is_float(self) -> bool {
        matches!(self, Self::Float16 | Self::Float32 | Self::Float64)
    }

    /// Whether the type is a signed integer.
    pub fn is_signed_integer(self) -> bool {
        matches!(self, Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64)
    }

    /// Whether the type is an unsigned integer; bool is not.
    pub fn is_unsigned_integer(self) -> bool {
        matches!(self, Self::UInt8 | Self::UInt16 | Self::UInt32 | Self::UInt64)
    }

    /// Whether a value of the type may be an index: every integer, and bool as 0 or 1.
    pub fn is_integral(self) -> bool {
        !self.is_float()
    }

    /// The type that both operands of an operator are brought to.
    ///
    /// Equal types stay; bool gives way to a number, an integer to a float; of two floats or two
    /// unsigned integers the wider wins; any other pair of integers gives the signed integer of the
    /// wider width.
    pub fn matched(self, other: Self) -> Self {
        if self == other || other == Self::Bool {
            return self;
        }
        if self == Self::Bool {
            return other;
        }
        let wider = if self.width() < other.width() { other } else { self };
        match (self.is_float(), other.is_float()) {
            (true, false) => return self,
            (false, true) => return other,
            (true, true) => return wider,
            (false, false) => {}
        }
        if self.is_unsigned_integer() && other.is_unsigned_integer() {
            return wider;
        }
        match wider.width() {
            8 => Self::Int8,
            16 => Self::Int16,
            32 => Self::Int32,
            _ => Self::Int64,
        }
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The type of a checked expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A value, computed in the width of its scalar type.
    Scalar(ScalarType),
    /// An index or a bound of a range, computed in 64-bit signed arithmetic that never wraps.
    Index,
}

impl Type {
    /// The scalar type, or `None` for an index.
    pub fn scalar(self) -> Option<ScalarType> {
        match self {
            Self::Scalar(scalar) => Some(scalar),
            Self::Index => None,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(scalar) => scalar.fmt(f),
            Self::Index => f.write_str("index"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ScalarType::*;

    const ALL: [super::ScalarType; 12] =
        [Bool, UInt8, UInt16, UInt32, UInt64, Int8, Int16, Int32, Int64, Float16, Float32, Float64];

    #[test]
    fn matching_is_commutative_idempotent_and_absorbs() {
        for a in ALL {
            assert_eq!(a.matched(a), a);
            for b in ALL {
                let both = a.matched(b);
                assert_eq!(both, b.matched(a), "{a} {b}");
                assert_eq!(both.matched(a), both, "{a} {b}");
                assert!(a.width().max(b.width()) <= both.width() || both.is_float());
            }
        }
    }

    #[test]
    fn matching_of_each_rule() {
        assert_eq!(Int64.matched(Float32), Float32);
        assert_eq!(Float32.matched(Float64), Float64);
        assert_eq!(UInt8.matched(UInt32), UInt32);
        assert_eq!(UInt64.matched(Int8), Int64);
        assert_eq!(UInt8.matched(Int16), Int16);
        assert_eq!(UInt32.matched(Int32), Int32);
        assert_eq!(Bool.matched(UInt8), UInt8);
        assert_eq!(Bool.matched(Float16), Float16);
    }

    #[test]
    fn names_are_keywords() {
        for ty in ALL {
            assert_eq!(super::ScalarType::from_keyword(ty.name()), Some(ty));
        }
        for word in super::ScalarType::KEYWORDS {
            assert!(super::ScalarType::from_keyword(word).is_some(), "{word}");
        }
    }

    #[test]
    fn misspelled_keywords_are_similar_types() {
        for (word, ty) in
            [("flaot", Float32), ("Double", Float64), ("int23", Int32), ("byte", UInt8)]
        {
            assert_eq!(super::ScalarType::similar(word), Some(ty), "{word}");
        }
        assert_eq!(super::ScalarType::similar("tensor"), None);
    }
}
