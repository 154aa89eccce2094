//! Tensors in memory.

use super::element::{Element, ElementType, Number};
use std::fmt;

/// The data of a tensor starts at a multiple of this many bytes: a cache line, and the
/// widest vector.
pub const ALIGNMENT: usize = 64;

/// A dense tensor, row-major, of elements in little-endian order.
#[derive(Clone, PartialEq)]
pub struct Tensor {
    element: ElementType,
    shape: Vec<usize>,
    data: AlignedBytes,
}

/// Why a tensor cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// The number of bytes does not fit the address space.
    #[error("a tensor of {element} with shape {} is too large", Shape(.shape))]
    TooLarge {
        /// The element type asked for.
        element: ElementType,
        /// The shape asked for.
        shape: Vec<usize>,
    },
    /// The shape and the number of elements disagree.
    #[error("expected {expected} elements for shape {}, but found {found}", Shape(.shape))]
    Count {
        /// The shape asked for.
        shape: Vec<usize>,
        /// How many elements it has.
        expected: usize,
        /// How many were given.
        found: usize,
    },
}

/// Prints a shape or an index as `[2, 3]`.
#[derive(Copy, Clone, Debug)]
pub struct Shape<'a, T>(pub &'a [T]);

impl<T: fmt::Display> fmt::Display for Shape<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("[")?;
        for (number, extent) in self.0.iter().enumerate() {
            let separator = if number == 0 { "" } else { ", " };
            write!(formatter, "{separator}{extent}")?;
        }
        formatter.write_str("]")
    }
}

impl Tensor {
    /// A tensor of zeros.
    ///
    /// # Errors
    /// It does not fit the address space.
    pub fn zeros(element: ElementType, shape: &[usize]) -> Result<Self, TensorError> {
        // The extents are multiplied without zeros, so that [0, huge] is refused as well:
        // compiled code computes strides from all of them.
        let bytes = shape
            .iter()
            .filter(|extent| **extent != 0)
            .try_fold(element.size(), |bytes, extent| bytes.checked_mul(*extent))
            .filter(|bytes| *bytes <= isize::MAX as usize - ALIGNMENT);
        let Some(bytes) = bytes else {
            return Err(TensorError::TooLarge { element, shape: shape.to_vec() });
        };
        let bytes = if shape.contains(&0) { 0 } else { bytes };
        let data = AlignedBytes::zeroed(bytes)
            .ok_or_else(|| TensorError::TooLarge { element, shape: shape.to_vec() })?;
        Ok(Self { element, shape: shape.to_vec(), data })
    }

    /// A tensor of these elements, in row-major order.
    ///
    /// # Errors
    /// The shape has another number of elements.
    pub fn from_values<T: Element>(shape: &[usize], values: &[T]) -> Result<Self, TensorError> {
        let mut tensor = Self::zeros(T::TYPE, shape)?;
        if tensor.num_elements() != values.len() {
            return Err(TensorError::Count {
                shape: shape.to_vec(),
                expected: tensor.num_elements(),
                found: values.len(),
            });
        }
        let chunks = tensor.bytes_mut().chunks_exact_mut(T::TYPE.size());
        for (bytes, value) in chunks.zip(values) {
            value.put(bytes);
        }
        Ok(tensor)
    }

    /// The element type.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// The extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of elements.
    pub fn num_elements(&self) -> usize {
        self.data.len / self.element.size()
    }

    /// The data, row-major.
    pub fn bytes(&self) -> &[u8] {
        self.data.as_slice()
    }

    /// The data for a change. Elements of bool must stay 0 or 1.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.data.as_mut_slice()
    }

    /// The element at a row-major position, or `None` past the end.
    pub fn get(&self, position: usize) -> Option<Number> {
        let size = self.element.size();
        let start = position.checked_mul(size)?;
        self.bytes().get(start..start.checked_add(size)?).map(|bytes| self.element.read(bytes))
    }

    /// Stores an element at a row-major position, as [`ElementType::write`] does; past the
    /// end, does nothing.
    pub fn set(&mut self, position: usize, number: Number) {
        let element = self.element;
        let chunk = self.bytes_mut().chunks_exact_mut(element.size()).nth(position);
        if let Some(bytes) = chunk {
            element.write(number, bytes);
        }
    }

    /// The elements in row-major order.
    pub fn numbers(&self) -> impl Iterator<Item = Number> {
        self.bytes().chunks_exact(self.element.size()).map(|bytes| self.element.read(bytes))
    }

    /// The elements as a Rust type, or `None` if they are of another type.
    pub fn to_values<T: Element>(&self) -> Option<Vec<T>> {
        let chunks = self.bytes().chunks_exact(self.element.size());
        (T::TYPE == self.element).then(|| chunks.map(T::get).collect())
    }

    /// The same bytes as elements of another type of the same size; unchanged if it has another size.
    pub fn with_element(mut self, element: ElementType) -> Self {
        if element.size() == self.element.size() {
            self.element = element;
        }
        self
    }

    /// Copies the elements whose indices both tensors have. They have the same rank and element type.
    pub fn copy_box(&self, to: &mut Self) {
        let width = self.element.size();
        let common = self.shape.iter().zip(&to.shape).map(|(from, to)| *from.min(to));
        let common: Vec<_> = common.collect();
        let (row, rows) = common.split_last().map_or((1, &[][..]), |(row, rows)| (*row, rows));
        let (from_shape, to_shape) = (self.shape.clone(), to.shape.clone());
        for number in 0..rows.iter().product() {
            let start = |shape: &[usize]| {
                let (mut rest, mut start) = (number, 0);
                let mut stride = shape.last().copied().unwrap_or(1) * width;
                for (extent, size) in rows.iter().zip(shape).rev() {
                    start += rest % extent * stride;
                    rest /= extent;
                    stride *= size;
                }
                start
            };
            let (source, target) = (start(&from_shape), start(&to_shape));
            let bytes = &self.bytes()[source..source + row * width];
            to.bytes_mut()[target..target + row * width].copy_from_slice(bytes);
        }
    }

    /// The same elements with another shape of as many elements.
    ///
    /// # Errors
    /// The shape has another number of elements.
    pub fn reshaped(mut self, shape: &[usize]) -> Result<Self, TensorError> {
        let expected = shape.iter().try_fold(1usize, |all, extent| all.checked_mul(*extent));
        if expected != Some(self.num_elements()) {
            return Err(TensorError::Count {
                shape: shape.to_vec(),
                expected: expected.unwrap_or(usize::MAX),
                found: self.num_elements(),
            });
        }
        self.shape = shape.to_vec();
        Ok(self)
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        const SHOWN: usize = 16;
        let numbers: Vec<_> = self.numbers().take(SHOWN).collect();
        let more = if numbers.len() < self.num_elements() { ", .." } else { "" };
        let text = Shape(&numbers).to_string();
        let text = text.trim_end_matches(']');
        write!(formatter, "{}{} {text}{more}]", self.element, Shape(&self.shape))
    }
}

/// Bytes that start at a multiple of [`ALIGNMENT`]: a vector with room to start later.
struct AlignedBytes {
    storage: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBytes {
    fn zeroed(len: usize) -> Option<Self> {
        let room = len.checked_add(ALIGNMENT)?;
        // Asked for first, because an allocation that fails otherwise ends the process.
        // Memory from the zeroing allocator is not touched before it is used.
        Vec::<u8>::new().try_reserve_exact(room).ok()?;
        let storage = vec![0; room];
        let start = storage.as_ptr().align_offset(ALIGNMENT);
        Some(Self { storage, start, len })
    }

    fn as_slice(&self) -> &[u8] {
        &self.storage[self.start..self.start + self.len]
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.start + self.len]
    }
}

impl Clone for AlignedBytes {
    fn clone(&self) -> Self {
        let mut copy = Self::zeroed(self.len).expect("as large an allocation succeeded before");
        copy.as_mut_slice().copy_from_slice(self.as_slice());
        copy
    }
}

impl PartialEq for AlignedBytes {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    #[test]
    fn values_survive() {
        let values = [1.5f32, -0.0, f32::INFINITY, 1e-40];
        let tensor = Tensor::from_values(&[2, 2], &values).unwrap();
        assert_eq!(tensor.to_values::<f32>().unwrap(), values);
        assert_eq!(tensor.to_values::<i32>(), None);
        assert_eq!(tensor.get(0), Some(Number::Float(1.5)));
        assert_eq!(tensor.get(4), None);
        assert_eq!(tensor.bytes().as_ptr() as usize % ALIGNMENT, 0);
        assert_eq!(tensor.clone(), tensor);
        let halves = Tensor::from_values(&[1], &[f16::from_f32(0.5)]).unwrap();
        assert_eq!(halves.get(0), Some(Number::Float(0.5)));
    }

    #[test]
    fn numbers_convert_to_every_type() {
        for element in ElementType::ALL {
            let mut tensor = Tensor::zeros(element, &[2]).unwrap();
            tensor.set(1, Number::Signed(1));
            tensor.set(7, Number::Signed(1));
            let read: Vec<_> = tensor.numbers().map(Number::to_f64).collect();
            assert_eq!(read, [0.0, 1.0], "{element}");
        }
        let mut tensor = Tensor::zeros(ElementType::I8, &[1]).unwrap();
        tensor.set(0, Number::Unsigned(255));
        assert_eq!(tensor.get(0), Some(Number::Signed(-1)));
    }

    #[test]
    fn boxes_are_copied() {
        let small = Tensor::from_values(&[2, 2], &[1u8, 2, 3, 4]).unwrap();
        let mut large = Tensor::zeros(ElementType::U8, &[3, 4]).unwrap();
        small.copy_box(&mut large);
        assert_eq!(large.bytes(), [1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0]);
        let mut back = Tensor::zeros(ElementType::U8, &[2, 2]).unwrap();
        large.copy_box(&mut back);
        assert_eq!(back, small);
        let scalar = Tensor::from_values(&[], &[7u8]).unwrap();
        let mut copy = Tensor::zeros(ElementType::U8, &[]).unwrap();
        scalar.copy_box(&mut copy);
        assert_eq!(copy, scalar);
    }

    #[test]
    fn shapes_are_checked() {
        let too_large = Tensor::zeros(ElementType::F64, &[0, usize::MAX, 2]);
        assert!(matches!(too_large, Err(TensorError::TooLarge { .. })));
        let too_large = Tensor::zeros(ElementType::U8, &[isize::MAX as usize - 100]);
        assert!(matches!(too_large, Err(TensorError::TooLarge { .. })));
        assert_eq!(Tensor::zeros(ElementType::F64, &[3, 0]).unwrap().num_elements(), 0);
        assert_eq!(Tensor::zeros(ElementType::F64, &[]).unwrap().num_elements(), 1);
        let error = Tensor::from_values(&[3], &[1u8, 2]).unwrap_err();
        assert_eq!(error.to_string(), "expected 3 elements for shape [3], but found 2");
        let tensor = Tensor::from_values(&[4], &[1u8, 2, 3, 4]).unwrap();
        assert_eq!(format!("{tensor:?}"), "uint8[4] [1, 2, 3, 4]");
        assert!(tensor.clone().reshaped(&[3]).is_err());
        assert_eq!(tensor.reshaped(&[2, 2]).unwrap().shape(), [2, 2]);
    }
}
