//! Element types of tensors.

/// The type of the elements of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ElementType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    Bf16,
    F32,
    F64,
}

impl ElementType {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Bool,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F16,
        Self::Bf16,
        Self::F32,
        Self::F64,
    ];

    /// The spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// The type with a spelling.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ty| ty.name() == name)
    }

    /// The type that is meant by a name that is none, but looks like one: that of a type or a class of types in
    /// another language, letters of a type with another number of bits, or in capitals.
    pub(crate) fn meant(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        let kind = lower.trim_end_matches(|c: char| c.is_ascii_digit());
        let bits = &lower[kind.len()..];
        let letters = match kind {
            _ if bits.len() < 2 && !matches!(bits, "4" | "8") => None,
            "f" | "bf" | "i" | "u" => Some(kind),
            "float" | "fp" => Some("f"),
            "bfloat" => Some("bf"),
            "int" => Some("i"),
            "uint" => Some("u"),
            _ => None,
        };
        let Some(letters) = letters else {
            let meant = match lower.as_str() {
                "bool" | "boolean" => Self::Bool,
                "byte" | "char" => Self::U8,
                "short" => Self::I16,
                "int" | "integer" => Self::I32,
                "uint" => Self::U32,
                "long" => Self::I64,
                "half" => Self::F16,
                "float" | "number" => Self::F32,
                "double" => Self::F64,
                _ => return None,
            };
            return (meant.name() != name).then_some(meant);
        };
        let bits: u32 = bits.parse().unwrap_or(u32::MAX);
        let others = Self::ALL.into_iter().filter_map(|ty| {
            let width: u32 = ty.name().strip_prefix(letters)?.parse().ok()?;
            Some((width.abs_diff(bits), ty))
        });
        let (_, nearest) = others.min_by_key(|(distance, _)| *distance)?;
        (nearest.name() != name).then_some(nearest)
    }

    /// The least and the greatest integer of an integer type.
    pub fn integer_range(self) -> Option<(i128, i128)> {
        let (bits, signed) = match self {
            Self::I8 => (8, true),
            Self::I16 => (16, true),
            Self::I32 => (32, true),
            Self::I64 => (64, true),
            Self::U8 => (8, false),
            Self::U16 => (16, false),
            Self::U32 => (32, false),
            Self::U64 => (64, false),
            _ => return None,
        };
        Some(if signed { (-1 << (bits - 1), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) })
    }

    /// Why there is no such integer of this type.
    pub fn misfit(self, value: i128) -> Option<String> {
        let (low, high) = self.integer_range()?;
        let message = || format!("{value} does not fit {}, expected {low} to {high}", self.name());
        (!(low..=high).contains(&value)).then(message)
    }

    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        self.class() == Class::Float
    }

    /// The smallest class that it belongs to.
    fn class(self) -> Class {
        match self {
            Self::Bool => Class::Any,
            Self::F16 | Self::Bf16 | Self::F32 | Self::F64 => Class::Float,
            _ => Class::Integer,
        }
    }
}

/// What is asked of an element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Nothing.
    Any,
    /// All but `bool`.
    Number,
    /// Integers, with and without sign.
    Integer,
    /// Floating-point numbers.
    Float,
}

impl Class {
    /// The spelling in the table of built-in functions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Float => "float",
        }
    }

    /// The class with a spelling.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Any, Self::Number, Self::Integer, Self::Float]
            .into_iter()
            .find(|class| class.name() == name)
    }

    /// What belongs to both.
    pub(super) fn meet(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Any, one) | (one, Self::Any) => Some(one),
            (Self::Number, one) | (one, Self::Number) => Some(one),
            _ => Some(self).filter(|_| self == other),
        }
    }

    pub(super) fn holds(self, ty: ElementType) -> bool {
        match self {
            Self::Any => true,
            Self::Number => ty != ElementType::Bool,
            Self::Integer | Self::Float => ty.class() == self,
        }
    }
}
