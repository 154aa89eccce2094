//! Written types: annotations, and types of built-in functions.

use super::super::syntax::ast::{Name, TypeExpr, TypeKind};
use super::super::types::{Class, Elem, ElementType, Node, Ty};
use super::names::Named;
use super::{Annotations, Inference, What};
use crate::{
    imap::MAX_EXTENT,
    text::{Diagnostic, Reason, Span},
};
use std::mem::discriminant;
use std::rc::Rc;
use tc_ir::shape::{
    Dim, Item, Shape,
    solve::Origin,
    text::{self, DimExpr, Part, ShapeExpr},
};

impl Inference {
    /// The type of an annotation, with an equation between what is annotated and what is written, so
    /// that errors can point at it.
    pub(super) fn annotation(&mut self, written: &TypeExpr, what: What) -> Ty {
        let (num_dims, num_shapes) = (self.names.dims.len(), self.names.shapes.len());
        let ty = self.lower_type(written);
        let origin = self.origin(written.span, what, Some(ty));
        if self.in_prelude {
            return ty;
        }
        let solver = &mut self.types.solver;
        self.names.dims[num_dims..].iter().for_each(|(var, _)| solver.set_named_dim(*var));
        self.names.shapes[num_shapes..].iter().for_each(|(var, _)| solver.set_named_shape(*var));
        self.positive_sizes(ty, origin);
        self.types.annotated(ty, self.level, origin)
    }

    /// Asks that all sizes of a type are positive.
    fn positive_sizes(&mut self, ty: Ty, origin: Origin) {
        let mut pending = vec![ty];
        while let Some(ty) = pending.pop() {
            match self.types.node(ty) {
                Node::Tensor(_, shape) => self.types.solver.positive_sizes(&shape, origin),
                Node::Tuple(parts) => pending.extend(parts.into_iter().rev()),
                Node::Function(params, result) => {
                    pending.push(result);
                    pending.extend(params.into_iter().rev());
                }
                Node::Var(_) | Node::Link(_) | Node::Error => {}
            }
        }
    }

    pub(super) fn lower_type(&mut self, written: &TypeExpr) -> Ty {
        match &written.kind {
            TypeKind::Tuple(parts) => {
                let parts = parts.iter().map(|part| self.lower_type(part)).collect();
                self.types.add(Node::Tuple(parts))
            }
            TypeKind::Function(params, result) => {
                let params = params.iter().map(|param| self.lower_type(param)).collect();
                let result = self.lower_type(result);
                self.types.add(Node::Function(params, result))
            }
            TypeKind::Tensor(name, shape) => {
                let elem = self.lower_elem(name);
                let shape = self.lower_shape(shape);
                self.types.add(Node::Tensor(elem, shape))
            }
            TypeKind::Name(name) => {
                let is_elem = ElementType::from_name(&name.text).is_some()
                    || ElementType::meant(&name.text).is_some()
                    || self.annotations.iter().any(|it| it.elem_names.contains(&name.text));
                if is_elem {
                    let elem = self.lower_elem(name);
                    return self.types.add(Node::Tensor(elem, Shape::default()));
                }
                let known = self.annotations.iter().rev().find_map(|it| it.types.get(&name.text));
                if let Some(&ty) = known {
                    self.sign(&name.text, name.span, Named::Type(ty));
                    return ty;
                }
                let level = self.innermost().level;
                let ty = self.types.var(level);
                self.innermost().types.insert(Rc::clone(&name.text), ty);
                self.names.types.push((ty, name.text.to_string()));
                self.sign(&name.text, name.span, Named::Type(ty));
                ty
            }
        }
    }

    /// Remembers a name of a type of the innermost function.
    fn sign(&mut self, name: &str, span: Span, named: Named) {
        if !self.in_prelude {
            let key = (discriminant(&named), name.to_string());
            self.innermost().written.entry(key).or_insert((span, named));
        }
    }

    fn innermost(&mut self) -> &mut Annotations {
        self.annotations.last_mut().expect("there is always one")
    }

    pub(super) fn lower_elem(&mut self, name: &Name) -> Elem {
        if let Some(known) = ElementType::from_name(&name.text) {
            return self.types.elem(known);
        }
        if let Some(meant) = ElementType::meant(&name.text) {
            let names: Vec<_> = ElementType::ALL.iter().map(|ty| ty.name()).collect();
            let message = format!(
                "'{}' is no element type, expected {}, or a variable such as 't'",
                name.text,
                names.join(", ")
            );
            let error = Diagnostic::new(Reason::AxonElement, name.span, message);
            self.report(error.note(name.span, format!("try '{}'", meant.name())));
        }
        let known = self.annotations.iter().rev().find_map(|it| it.elems.get(&name.text));
        if let Some(&elem) = known {
            self.sign(&name.text, name.span, Named::Elem(elem));
            return elem;
        }
        let innermost = self.innermost();
        let class = innermost.classes.get(&name.text).copied().unwrap_or(Class::Any);
        let level = innermost.level;
        let elem = self.types.elem_var(level, class);
        self.innermost().elems.insert(Rc::clone(&name.text), elem);
        self.names.elems.push((elem, name.text.to_string()));
        self.sign(&name.text, name.span, Named::Elem(elem));
        elem
    }

    pub(super) fn lower_shape(&mut self, written: &ShapeExpr) -> Shape {
        let mut shape = Shape::default();
        for part in &written.parts {
            match part {
                Part::Name(name) => shape.items.extend(self.shape_name(name).items),
                Part::Dims(dims) => {
                    for dim in dims {
                        let dim = self.lower_dim(dim, place_span(&written.place));
                        shape.items.push(Item::Dim(dim));
                    }
                }
            }
        }
        shape
    }

    pub(super) fn shape_name(&mut self, name: &text::Name) -> Shape {
        let known = self.annotations.iter().rev().find_map(|it| it.shapes.get(&name.text));
        if let Some(shape) = known.cloned() {
            if let Some(var) = shape.as_var() {
                self.sign(&name.text, place_span(&name.place), Named::Shape(var));
            }
            return shape;
        }
        if self.annotations.iter().any(|it| it.dims.contains_key(&name.text)) {
            let message = format!(
                "'{}' is a dimension elsewhere, and stands for a whole shape here; \
                 expected '[{}]' or another name",
                name.text, name.text
            );
            self.error(Reason::AxonKind, place_span(&name.place), message);
        }
        let level = self.innermost().level;
        let var = self.types.solver.shape_var(level);
        self.innermost().shapes.insert(name.text.clone(), Shape::var(var));
        self.sign(&name.text, place_span(&name.place), Named::Shape(var));
        self.names.shapes.push((var, name.text.clone()));
        Shape::var(var)
    }

    pub(super) fn lower_dim(&mut self, written: &DimExpr, span: Span) -> Dim {
        let mut names = Vec::new();
        written.names(&mut names);
        for name in names {
            let known = self.annotations.iter().rev().find_map(|it| it.dims.get(&name.text));
            if let Some(dim) = known.cloned() {
                if let Dim::Var(var) = dim {
                    self.sign(&name.text, place_span(&name.place), Named::Dim(var));
                }
                continue;
            }
            if self.annotations.iter().any(|it| it.shapes.contains_key(&name.text)) {
                let message = format!(
                    "'{}' is a shape elsewhere, and stands for one dimension here; \
                     expected another name",
                    name.text
                );
                self.error(Reason::AxonKind, place_span(&name.place), message);
            }
            let level = self.innermost().level;
            let var = self.types.solver.dim_var(level);
            self.innermost().dims.insert(name.text.clone(), Dim::Var(var));
            self.sign(&name.text, place_span(&name.place), Named::Dim(var));
            self.names.dims.push((var, name.text.clone()));
        }
        let annotations = &self.annotations;
        let lookup = &mut |name: &text::Name| {
            let known = annotations.iter().rev().find_map(|it| it.dims.get(&name.text));
            known.cloned().unwrap_or(Dim::Ragged)
        };
        match written.lower(self.types.solver.arithmetic(), lookup) {
            Ok(Dim::Constant(size)) if MAX_EXTENT < size => {
                let message = format!("size {size} is too large, expected at most {MAX_EXTENT}");
                self.error(Reason::AxonLimit, span, message);
                Dim::Var(self.types.solver.dim_var(self.level))
            }
            Ok(dim) => dim,
            Err(error) => {
                let reason = match error.is_limit() {
                    true => Reason::AxonLimit,
                    false => Reason::AxonShape,
                };
                self.error(reason, span, error.to_string());
                Dim::Var(self.types.solver.dim_var(self.level))
            }
        }
    }
}

fn place_span(place: &text::Place) -> Span {
    Span::new(place.start as u32, place.end as u32)
}
