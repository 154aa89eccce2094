//! Shapes as types, and back. Each distinct one is made once per module.

use crate::{
    element::{ElementKind, ElementType},
    ffi,
    hlo::{ArrayShape, Layout, Shape, syntax::parser::is_permutation},
    mlir,
};
use melior::{
    Context,
    ir::{Attribute, Type},
};
use std::collections::HashMap;

/// An element type of MLIR.
fn element(context: &Context, ty: ElementType) -> Type<'_> {
    let spelling = match ty.kind() {
        ElementKind::Pred => "i1".to_owned(),
        ElementKind::Signed => format!("i{}", ty.bits()),
        ElementKind::Unsigned => format!("ui{}", ty.bits()),
        ElementKind::Complex => format!("complex<f{}>", ty.bits() / 2),
        ElementKind::Float => return mlir::float_type(context, ty),
    };
    mlir::parse_type(context, &spelling)
}

/// The element types of MLIR, in the order of ours.
fn elements(context: &Context) -> impl Iterator<Item = (ElementType, Type<'_>)> {
    ElementType::ALL.iter().map(|&ty| (ty, element(context, ty)))
}

fn token(context: &Context) -> Type<'_> {
    mlir::parse_type(context, "!hlo.token")
}

/// Whether a layout is the one that a shape without a layout has.
fn is_default(layout: &Layout) -> bool {
    let row_major = (0..layout.minor_to_major.len() as i64).rev();
    layout.properties.is_empty() && layout.minor_to_major.iter().copied().eq(row_major)
}

/// Whether a shape has a default layout that is written out.
pub(super) fn has_explicit_layout(shape: &Shape) -> bool {
    let mut found = false;
    shape.for_each_array(&mut |array| {
        found |= !array.is_scalar() && array.layout.as_deref().is_some_and(is_default);
    });
    found
}

/// Makes types of shapes.
pub(super) struct Types<'c> {
    context: &'c Context,
    elements: HashMap<ElementType, Type<'c>>,
    token: Type<'c>,
    known: HashMap<Shape, Type<'c>>,
}

impl<'c> Types<'c> {
    pub(super) fn new(context: &'c Context) -> Self {
        let elements = elements(context).collect();
        Self { context, elements, token: token(context), known: HashMap::new() }
    }

    /// The type of a shape.
    pub(super) fn ty(&mut self, shape: &Shape) -> Type<'c> {
        if let Some(ty) = self.known.get(shape) {
            return *ty;
        }
        let ty = match shape {
            Shape::Token => self.token,
            Shape::Array(array) => {
                let layout = array.layout.as_deref().filter(|layout| !is_default(layout));
                let layout = layout.map(|layout| {
                    ffi::hlo_layout(self.context, &layout.minor_to_major, &layout.properties)
                });
                mlir::static_tensor_type(&array.dims, self.elements[&array.element_type], layout)
            }
            Shape::Tuple(elements) => {
                let elements: Vec<_> = elements.iter().map(|element| self.ty(element)).collect();
                mlir::tuple_type(self.context, &elements)
            }
        };
        self.known.insert(shape.clone(), ty);
        ty
    }
}

/// Makes shapes of types.
pub(super) struct Shapes {
    elements: HashMap<usize, ElementType>,
    token: usize,
    /// Whether shapes have default layouts.
    explicit: bool,
    known: HashMap<usize, Shape>,
}

impl Shapes {
    pub(super) fn new(context: &Context, explicit: bool) -> Self {
        let elements = elements(context).map(|(ours, ty)| (mlir::type_key(ty), ours)).collect();
        let token = mlir::type_key(token(context));
        Self { elements, token, explicit, known: HashMap::new() }
    }

    /// The shape of a type.
    ///
    /// # Errors
    /// The reason, if it is no type of the dialect.
    pub(super) fn shape(&mut self, ty: Type) -> Result<Shape, String> {
        let key = mlir::type_key(ty);
        if let Some(shape) = self.known.get(&key) {
            return Ok(shape.clone());
        }
        let shape = if key == self.token {
            Shape::Token
        } else if let Some(elements) = mlir::tuple_elements(ty) {
            Shape::Tuple(elements.into_iter().map(|ty| self.shape(ty)).collect::<Result<_, _>>()?)
        } else {
            Shape::Array(self.array(ty)?)
        };
        self.known.insert(key, shape.clone());
        Ok(shape)
    }

    fn array(&self, ty: Type) -> Result<ArrayShape, String> {
        let element = self.elements.get(&mlir::type_key(mlir::element_type(ty)));
        let (true, Some(&element_type)) = (mlir::is_tensor(ty), element) else {
            return Err(format!("expected an array, a tuple or a token of HLO, but found {ty}"));
        };
        let dims: Option<Vec<_>> = mlir::shape(ty).into_iter().collect();
        let Some(dims) = dims else {
            return Err(format!("expected static sizes, but found {ty}"));
        };
        let layout = match mlir::encoding(ty) {
            Some(encoding) => Some(layout(encoding, dims.len())?),
            None if self.explicit && !dims.is_empty() => Some(Layout::row_major(dims.len())),
            None => None,
        };
        Ok(ArrayShape { element_type, dims, layout: layout.map(Box::new) })
    }
}

/// The layout of an array of this rank.
fn layout(encoding: Attribute, rank: usize) -> Result<Layout, String> {
    let Some((minor_to_major, properties)) = ffi::hlo_layout_of(encoding) else {
        return Err(format!("expected a layout as encoding, but found {encoding}"));
    };
    match minor_to_major.len() == rank && is_permutation(minor_to_major) {
        true => Ok(Layout {
            minor_to_major: minor_to_major.to_vec(),
            properties: properties.to_string(),
        }),
        false => Err(format!("expected a layout of {rank} dimensions, but found {encoding}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every element type has a type of its own, and comes back from it.
    #[test]
    fn element_types_come_back() {
        let context = crate::new_context();
        context.get_or_load_dialect("hlo");
        let (mut types, mut shapes) = (Types::new(&context), Shapes::new(&context, false));
        for &element in ElementType::ALL {
            let shape = Shape::Tuple(vec![Shape::array(element, [2, 3]), Shape::scalar(element)]);
            assert_eq!(shapes.shape(types.ty(&shape)), Ok(shape));
        }
        let mut array = ArrayShape::new(ElementType::F32, [2, 3]);
        for (minor_to_major, properties) in [(vec![0, 1], ""), (vec![1, 0], "T(8,128)")] {
            let properties = properties.to_owned();
            array.layout = Some(Box::new(Layout { minor_to_major, properties }));
            let shape = Shape::Array(array.clone());
            assert_eq!(shapes.shape(types.ty(&shape)), Ok(shape));
        }
    }

    #[test]
    fn foreign_types_have_no_shape() {
        let context = crate::new_context();
        context.get_or_load_dialect("hlo");
        let mut shapes = Shapes::new(&context, false);
        for (text, expected) in [
            ("index", "expected an array, a tuple or a token of HLO, but found index"),
            (
                "tensor<2xi7>",
                "expected an array, a tuple or a token of HLO, but found tensor<2xi7>",
            ),
            ("tensor<?xf32>", "expected static sizes, but found tensor<?xf32>"),
            (
                "tensor<2xf32, #hlo.layout<[1]>>",
                "expected a layout of 1 dimensions, but found #hlo.layout<[1]>",
            ),
            ("tensor<2xf32, 7>", "expected a layout as encoding, but found 7 : i64"),
        ] {
            let found = shapes.shape(mlir::parse_type(&context, text));
            assert_eq!(found, Err(expected.to_owned()));
        }
    }
}
