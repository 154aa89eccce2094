//! Values at run time: tensors in memory, their element types, and how they come from
//! files and from random numbers.

mod element;
pub mod npy;
mod random;
mod tensor;

pub(crate) use element::to_odd;
pub use element::{Element, ElementType, Number};
pub use random::{random, random_floats};
pub use tensor::{ALIGNMENT, Shape, Tensor, TensorError};
