//! Shapes of the values of instructions.
//!
//! Sizes are `i64` from 0 on, as in XLA. Element and byte counts are computed with checks: a
//! shape of hostile text may have more elements than 64 bits count.

use crate::element::ElementType;
use std::fmt::{self, Display, Formatter, Write};

/// Where the elements of an array stand in memory. A layout never changes a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Layout {
    /// The dimensions, the one that varies fastest first: a permutation of all of them.
    pub minor_to_major: Vec<i64>,
    /// Tiling, memory space and the like: the text after the `:`, such as `T(8,128)`.
    pub properties: String,
}

impl Layout {
    /// The layout that a shape without one has: the last dimension varies fastest.
    pub fn row_major(rank: usize) -> Self {
        Self { minor_to_major: (0..rank as i64).rev().collect(), properties: String::new() }
    }
}

/// The type and the sizes of an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArrayShape {
    /// The type of each element.
    pub element_type: ElementType,
    /// The size of each dimension, dimension 0 outermost.
    pub dims: Vec<i64>,
    /// The layout, if the text gives one; otherwise it is [`Layout::row_major`].
    pub layout: Option<Box<Layout>>,
}

impl ArrayShape {
    /// An array without a layout.
    pub fn new(element_type: ElementType, dims: impl Into<Vec<i64>>) -> Self {
        Self { element_type, dims: dims.into(), layout: None }
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Whether it has no dimensions.
    pub fn is_scalar(&self) -> bool {
        self.dims.is_empty()
    }

    /// The number of elements; `None` if it does not fit in an `i64`.
    pub fn num_elements(&self) -> Option<i64> {
        // A size of 0 makes the product 0, whatever the others are.
        if self.dims.contains(&0) {
            return Some(0);
        }
        self.dims.iter().try_fold(1i64, |count, &dim| count.checked_mul(dim))
    }

    /// The number of bytes with one byte for each sub-byte element; `None` if it does not fit in
    /// an `i64`.
    pub fn num_bytes(&self) -> Option<i64> {
        self.num_elements()?.checked_mul(self.element_type.bytes() as i64)
    }

    /// Whether type and sizes are the same, whatever the layouts are.
    pub fn is_compatible(&self, other: &Self) -> bool {
        self.element_type == other.element_type && self.dims == other.dims
    }

    /// The dimensions, the one that varies fastest first.
    pub fn minor_to_major(&self) -> Vec<i64> {
        match &self.layout {
            Some(layout) => layout.minor_to_major.clone(),
            None => (0..self.rank() as i64).rev().collect(),
        }
    }
}

/// What the value of an instruction is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// One array.
    Array(ArrayShape),
    /// Several values.
    Tuple(Vec<Shape>),
    /// No data, only an order between instructions.
    Token,
}

impl Shape {
    /// An array without a layout.
    pub fn array(element_type: ElementType, dims: impl Into<Vec<i64>>) -> Self {
        Self::Array(ArrayShape::new(element_type, dims))
    }

    /// An array without dimensions.
    pub fn scalar(element_type: ElementType) -> Self {
        Self::array(element_type, [])
    }

    /// The array, if it is one.
    pub fn as_array(&self) -> Option<&ArrayShape> {
        match self {
            Self::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The elements, if it is a tuple.
    pub fn as_tuple(&self) -> Option<&[Self]> {
        match self {
            Self::Tuple(elements) => Some(elements),
            _ => None,
        }
    }

    /// The elements of a tuple, otherwise the shape itself as the only one.
    pub fn elements(&self) -> &[Self] {
        match self {
            Self::Tuple(elements) => elements,
            other => std::slice::from_ref(other),
        }
    }

    /// Whether both are the same but for layouts.
    pub fn is_compatible(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Array(a), Self::Array(b)) => a.is_compatible(b),
            (Self::Tuple(a), Self::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_compatible(b))
            }
            (Self::Token, Self::Token) => true,
            _ => false,
        }
    }

    /// Calls `visit` with each array, in order.
    pub fn for_each_array<'s>(&'s self, visit: &mut impl FnMut(&'s ArrayShape)) {
        match self {
            Self::Array(array) => visit(array),
            Self::Tuple(elements) => {
                elements.iter().for_each(|element| element.for_each_array(visit))
            }
            Self::Token => {}
        }
    }

    /// The shape without layouts that say nothing: row-major ones without properties.
    pub fn without_default_layouts(&self) -> Self {
        let mut shape = self.clone();
        let mut open = vec![&mut shape];
        while let Some(next) = open.pop() {
            match next {
                Self::Array(array) => {
                    let default = Layout::row_major(array.rank());
                    array.layout = array.layout.take().filter(|layout| **layout != default);
                }
                Self::Tuple(elements) => open.extend(elements),
                Self::Token => {}
            }
        }
        shape
    }

    /// The shape without layouts, as computation signatures and messages show it.
    pub fn without_layout(&self) -> WithoutLayout<'_> {
        WithoutLayout(self)
    }

    pub(super) fn write(&self, f: &mut impl Write, layouts: bool) -> fmt::Result {
        match self {
            Self::Token => f.write_str("token[]"),
            Self::Array(array) => {
                write!(f, "{}[", array.element_type)?;
                write_list(f, &array.dims)?;
                f.write_char(']')?;
                match &array.layout {
                    Some(layout) if layouts => write_layout(f, layout),
                    _ => Ok(()),
                }
            }
            Self::Tuple(elements) => {
                f.write_char('(')?;
                for (position, element) in elements.iter().enumerate() {
                    write_separator(f, position)?;
                    element.write(f, layouts)?;
                }
                f.write_char(')')
            }
        }
    }
}

/// The integers with commas between them.
pub(super) fn write_list(f: &mut impl Write, list: &[i64]) -> fmt::Result {
    for (position, number) in list.iter().enumerate() {
        if 0 < position {
            f.write_char(',')?;
        }
        write!(f, "{number}")?;
    }
    Ok(())
}

/// What stands before the element at this position: a comma, and a count for readers now and then.
pub(super) fn write_separator(f: &mut impl Write, position: usize) -> fmt::Result {
    if 0 < position {
        f.write_str(", ")?;
        if position.is_multiple_of(5) {
            write!(f, "/*index={position}*/")?;
        }
    }
    Ok(())
}

fn write_layout(f: &mut impl Write, layout: &Layout) -> fmt::Result {
    f.write_char('{')?;
    write_list(f, &layout.minor_to_major)?;
    if !layout.properties.is_empty() {
        write!(f, ":{}", layout.properties)?;
    }
    f.write_char('}')
}

impl Display for Shape {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write(f, true)
    }
}

impl Display for ArrayShape {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.element_type)?;
        write_list(f, &self.dims)?;
        f.write_char(']')
    }
}

/// Shows a shape without layouts; see [`Shape::without_layout`].
#[derive(Clone, Copy, Debug)]
pub struct WithoutLayout<'s>(&'s Shape);

impl Display for WithoutLayout<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.write(f, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_checked() {
        let shape = |dims: &[i64]| ArrayShape::new(ElementType::F32, dims);
        assert_eq!(shape(&[]).num_elements(), Some(1));
        assert_eq!(shape(&[i64::MAX, i64::MAX, 0]).num_elements(), Some(0));
        assert_eq!(shape(&[1 << 32, 1 << 32]).num_elements(), None);
        assert_eq!(shape(&[1 << 62]).num_bytes(), None);
        assert_eq!(ArrayShape::new(ElementType::S4, [3]).num_bytes(), Some(3));
    }

    #[test]
    fn printed_form() {
        let mut array = ArrayShape::new(ElementType::BF16, [2, 3]);
        array.layout =
            Some(Box::new(Layout { minor_to_major: vec![0, 1], properties: "T(8,128)".into() }));
        let shape = Shape::Tuple(vec![Shape::Array(array), Shape::Token, Shape::Tuple(Vec::new())]);
        assert_eq!(shape.to_string(), "(bf16[2,3]{0,1:T(8,128)}, token[], ())");
        assert_eq!(shape.without_layout().to_string(), "(bf16[2,3], token[], ())");
    }
}
