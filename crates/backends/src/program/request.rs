//! What a program is compiled for.

use super::Error;
use crate::{program::in_memory, runtime::Tensor};
use std::collections::BTreeMap;
use tc_dialects::{
    axon::{ElementType as AxonElement, Given, to_hlo::hlo_element},
    element::ElementType,
};
use tc_passes::target::MemoryBound;

/// The values of size variables, by name.
pub type Sizes = BTreeMap<String, i64>;

/// What a program checks before the loops that rely on it, the larger ones more: the option `kind`
/// of `tc-runtime-checks`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Checks {
    /// Conditions on sizes.
    #[default]
    Shape,
    /// Indices that are data, too.
    Bounds,
    /// Divisors, too.
    All,
}

/// The multiple that the dimensions of a TML program are rounded up to.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Padding {
    /// This number, or less if padding takes too much memory.
    AtMost(i64),
    /// This number.
    Length(i64),
}

/// The shape of an input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The name of the input.
    pub parameter: String,
    /// The element type; the one in the program if `None`.
    pub element: Option<ElementType>,
    /// The sizes; `None` if they follow from others, or are parameters of the compiled function.
    pub dims: Vec<Option<i64>>,
    /// The origin for errors: an argument of a command line, or a file.
    pub source: Option<String>,
}

impl Shape {
    /// The shape of a tensor.
    pub fn of(parameter: &str, tensor: &Tensor) -> Self {
        let mut known = AxonElement::ALL.into_iter().map(hlo_element);
        Self {
            parameter: parameter.to_string(),
            element: known.find(|it| in_memory(*it) == tensor.element()),
            dims: tensor.shape().iter().map(|size| i64::try_from(*size).ok()).collect(),
            source: None,
        }
    }

    /// Reads `NAME=4x3`, `NAME=f64[4,3]`, `NAME=[]` or `NAME=?x3`; `None` if the text is neither.
    pub fn parse(text: &str) -> Option<Self> {
        let Given { parameter, element, dims, source } = Given::parse(text)?;
        Some(Self { parameter, element: element.map(hlo_element), dims, source })
    }
}

/// An entry of a program, sizes, shapes and options. Options of another language are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Request {
    /// The function; the only one if `None`.
    pub entry: Option<String>,
    /// The values of size variables; shapes may determine more.
    pub sizes: Sizes,
    /// The shapes of inputs.
    pub shapes: Vec<Shape>,
    /// Whether sizes that are not given become parameters of the compiled function; otherwise they must be known.
    pub dynamic: bool,
    /// What is checked before it is relied on.
    pub checks: Checks,
    /// Whether producers stay apart from consumers.
    pub no_fuse: bool,
    /// TML: the padding of dimensions.
    pub padding: Option<Padding>,
    /// Whether sums of sums, and the products and contractions of TML, are evaluated in the written order.
    pub keep_order: bool,
    /// The costs by which operations are fused, which a [`Session`](crate::session::Session) takes from its target.
    pub costs: MemoryBound,
}

impl Request {
    /// A request for an entry.
    pub fn of(entry: &str) -> Self {
        Self { entry: Some(entry.to_string()), ..Self::default() }
    }

    /// The passes that fuse operations, if the request asks for them.
    pub fn fusion(&self) -> Option<String> {
        let reassociates = self.costs.reassociates && !self.keep_order;
        let costs = MemoryBound { reassociates, ..self.costs };
        let fuse = format!("hoist-invariants,imap-fuse{{{}}},canonicalize,cse", costs.options());
        (!self.no_fuse).then_some(fuse)
    }

    /// Adds the shapes of inputs. With [`dynamic`](Self::dynamic), only the element types and ranks count.
    ///
    /// # Errors
    /// The number of inputs is wrong.
    pub fn with_inputs(mut self, names: &[String], inputs: &[&Tensor]) -> Result<Self, Error> {
        if names.len() != inputs.len() {
            return Err(Error::Usage(format!(
                "expected {} inputs ({}), found {}",
                names.len(),
                names.join(", "),
                inputs.len()
            )));
        }
        self.shapes = names.iter().zip(inputs).map(|(name, it)| Shape::of(name, it)).collect();
        Ok(if self.dynamic { self.without_sizes() } else { self })
    }

    /// The request for all sizes: the element types and ranks of shapes stay.
    pub fn without_sizes(mut self) -> Self {
        self.sizes.clear();
        self.shapes.iter_mut().for_each(|shape| shape.dims.fill(None));
        Self { dynamic: true, ..self }
    }

    /// The value of the option `kind` of `tc-runtime-checks`.
    pub(crate) fn kind_of_checks(&self) -> &'static str {
        match self.checks {
            Checks::Shape => "shape",
            Checks::Bounds => "bounds",
            Checks::All => "all",
        }
    }

    /// The extents that are given for an input, if all are.
    pub(crate) fn extents(&self, parameter: &str) -> Option<Vec<i64>> {
        let shape = self.shapes.iter().find(|it| it.parameter == parameter)?;
        shape.dims.iter().copied().collect()
    }
}
