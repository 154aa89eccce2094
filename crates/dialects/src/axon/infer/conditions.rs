//! Conditions in the terms of the definition that asks for them, and what they are where it is used.

use super::super::display::{KnownNames, Printer, comparison};
use super::super::syntax::ast::TypeKind;
use super::super::syntax::parser;
use super::super::types::Scheme;
use super::{Inference, OriginInfo, Valued, What};
use std::collections::HashMap;
use std::rc::Rc;
use tc_ir::shape::{
    Arithmetic, Dim, DimVar, Item, Shape, ShapeVar,
    solve::{self, Origin, Relation},
    text::{DimExpr, Part, ShapeExpr},
};

/// A condition that a use of a definition has to meet.
struct Condition {
    /// In terms of the variables of the definition.
    relation: Relation,
    /// What these stand for at the use.
    dims: HashMap<DimVar, Dim>,
    shapes: HashMap<ShapeVar, ShapeVar>,
    /// What the definition calls them.
    names: HashMap<DimVar, String>,
    shape_names: HashMap<ShapeVar, String>,
    /// Those that options of the use say.
    options: HashMap<DimVar, Rc<str>>,
    function: Valued,
}

/// What a use of a definition needs.
pub(super) struct Needed {
    /// `m < n, which is 4 < 3 here`
    pub(super) text: String,
    /// Whether it has no variables at the use.
    pub(super) is_known: bool,
    /// The names of the variables of the definition.
    pub(super) printer: Printer,
    /// The definition.
    pub(super) function: Valued,
}

impl Condition {
    /// What a size is at the use.
    fn dim(&self, arithmetic: &Arithmetic, dim: &Dim) -> Dim {
        let value = &mut |var| self.dims.get(&var).cloned();
        arithmetic.substitute(dim, value).unwrap_or_else(|_| dim.clone())
    }

    /// What a shape is at the use.
    fn shape(&self, arithmetic: &Arithmetic, shape: &Shape) -> Shape {
        let items = shape.items.iter().map(|item| match item {
            Item::Dim(dim) => Item::Dim(self.dim(arithmetic, dim)),
            Item::Var(var) => Item::Var(self.shapes.get(var).copied().unwrap_or(*var)),
        });
        items.collect()
    }
}

impl Inference {
    /// What the place of a condition needs, if it is a use of a definition. Variables of the use that have no name
    /// are called as the definition calls them.
    pub(super) fn needed(
        &mut self,
        origin: Origin,
        relation: &Relation,
        printer: &mut Printer,
    ) -> Option<Needed> {
        let condition = match &self.origins[origin as usize].what {
            What::Use(_) | What::Call(_) if self.run.is_some() => {
                self.condition_of_run(relation, printer)?
            }
            What::Use(_) => self.condition_of_use(origin, relation, printer)?,
            What::Call(_) => self.condition_of_builtin(origin, relation)?,
            _ => return None,
        };
        let (shapes, dims) = self.types.solver.vars(&condition.relation);
        let items = dims.iter().map(|var| Item::Dim(Dim::Var(*var)));
        let all: Shape = shapes.iter().map(|var| Item::Var(*var)).chain(items).collect();
        // A name of the definition may stand for something else here.
        let here = condition.shape(self.types.solver.arithmetic(), &all);
        let mut reserved = self.reserved();
        reserved.extend(printer.known_in(&mut self.types, &here));
        let mut stated = Printer::written(Rc::default()).reserve(reserved);
        for var in &dims {
            match condition.options.get(var) {
                Some(option) => stated.call(*var, Rc::clone(option)),
                None => stated.explained(Item::Dim(Dim::Var(*var)), condition.names.get(var)),
            }
            let value = condition.dims.get(var).cloned().unwrap_or(Dim::Var(*var));
            if let Dim::Var(root) = printer.resolved_dim(&mut self.types, &value) {
                let name = Rc::from(stated.dim_text(&mut self.types, &Dim::Var(*var)));
                printer.call(root, name);
            }
        }
        for var in shapes {
            stated.explained(Item::Var(var), condition.shape_names.get(&var));
        }
        let relation = stated.oriented(&self.types, &condition.relation);
        let text = stated.relation(&self.types, &relation);
        let (found, is_known) = self.found(&condition, &relation, printer);
        let text = match text == found {
            true => text,
            false => format!("{text}, which is {found} here"),
        };
        Some(Needed { text, is_known, printer: stated, function: condition.function })
    }

    /// What a condition is at the use, and whether it has no variables there.
    fn found(
        &mut self,
        condition: &Condition,
        relation: &Relation,
        printer: &mut Printer,
    ) -> (String, bool) {
        let types = &mut self.types;
        let arithmetic = types.solver.arithmetic();
        let (kind, left, sign, right) = match relation {
            Relation::Shapes(a, b) => ("", a.clone(), "=", b.clone()),
            Relation::Elements(a, b) => ("elements ", a.clone(), "=", b.clone()),
            Relation::Dims(a, b) => ("", Shape::dims([a.clone()]), "=", Shape::dims([b.clone()])),
            Relation::Positive(dim) => {
                let compared = comparison(arithmetic, dim);
                let (a, sign, b) = compared.unwrap_or((dim.clone(), ">", Dim::Constant(0)));
                ("", Shape::dims([a]), sign, Shape::dims([b]))
            }
        };
        let [left, right] = [left, right].map(|side| condition.shape(arithmetic, &side));
        printer.name_repeated(types, &[&left, &right]);
        let is_known = |side: &Shape| {
            let dims = side.as_dims();
            dims.is_some_and(|dims| dims.iter().all(|dim| matches!(dim, Dim::Constant(_))))
        };
        let is_shape = matches!(relation, Relation::Shapes(..) | Relation::Elements(..));
        let mut all_known = true;
        let texts = [left, right].map(|side| {
            let side = printer.resolved_shape(types, &side);
            all_known &= is_known(&side);
            match side.items.first() {
                Some(Item::Dim(dim)) if !is_shape => printer.dim_text(types, dim),
                _ => printer.shape(types, &side),
            }
        });
        let [left, right] = texts;
        (format!("{kind}{left} {sign} {right}"), all_known)
    }

    /// The condition that a use of a definition was asked for.
    fn condition_of_use(
        &mut self,
        origin: Origin,
        relation: &Relation,
        printer: &mut Printer,
    ) -> Option<Condition> {
        let OriginInfo { span, what: What::Use(name), .. } = &self.origins[origin as usize] else {
            return None;
        };
        let (scheme, renaming) = self.uses.schemes.get(&(self.in_prelude, *span))?;
        let function = (Some(Rc::clone(name)), *span, scheme.ty);
        let (scheme, renaming) = (Rc::clone(scheme), renaming.sizes.clone());
        let names = self.known_names();
        self.condition_of_scheme(&scheme, renaming, &names, function, relation, printer)
    }

    /// The condition of the definition that is run.
    fn condition_of_run(
        &mut self,
        relation: &Relation,
        printer: &mut Printer,
    ) -> Option<Condition> {
        let run = self.run.as_ref()?;
        let (scheme, names) = (Rc::clone(&run.scheme), Rc::clone(&run.names));
        let (renaming, definition) = (run.renaming.sizes.clone(), run.definition.clone());
        self.condition_of_scheme(&scheme, renaming, &names, definition, relation, printer)
    }

    /// The condition of a scheme that is `relation` where its variables are renamed.
    fn condition_of_scheme(
        &mut self,
        scheme: &Scheme,
        renaming: solve::Renaming,
        names: &KnownNames,
        function: Valued,
        relation: &Relation,
        printer: &mut Printer,
    ) -> Option<Condition> {
        let asked = printer.resolved_relation(&mut self.types, relation);
        let residual = scheme.residuals.iter().find(|residual| {
            let here = renaming.relation(self.types.solver.arithmetic(), &residual.relation);
            printer.resolved_relation(&mut self.types, &here) == asked
        })?;
        Some(Condition {
            relation: residual.relation.clone(),
            dims: renaming.dims.into_iter().map(|(var, here)| (var, Dim::Var(here))).collect(),
            shapes: renaming.shapes,
            names: names.dims.clone(),
            shape_names: names.shapes.clone(),
            options: HashMap::new(),
            function,
        })
    }

    /// The condition that a use of a built-in function was asked for: that a size is positive.
    fn condition_of_builtin(&mut self, origin: Origin, relation: &Relation) -> Option<Condition> {
        let OriginInfo { span, what: What::Call(name), .. } = &self.origins[origin as usize] else {
            return None;
        };
        let Relation::Positive(asked) = relation else { return None };
        let used = self.uses.builtins.get(&(self.in_prelude, *span))?;
        let declaration = Rc::clone(self.builtins.get(name)?);
        let mut sizes: Vec<&DimExpr> = Vec::new();
        for condition in &declaration.conditions {
            if let parser::Condition::Positive(shape) = condition {
                sizes.extend(dims(shape));
            }
        }
        if let TypeKind::Tensor(_, shape) = &declaration.result.kind {
            sizes.extend(dims(shape));
        }
        let mut values = used.dims.clone();
        let function = (Some(Rc::clone(name)), *span, used.function);
        let lower = |types: &super::Types, size: &DimExpr, values: &HashMap<String, Dim>| {
            let value = &mut |name: &tc_ir::shape::text::Name| {
                values.get(&name.text).cloned().unwrap_or(Dim::Ragged)
            };
            size.lower(types.solver.arithmetic(), value).ok()
        };
        let types = &mut self.types;
        let is_asked = |size: &&DimExpr| lower(types, size, &values).as_ref() == Some(asked);
        let size = sizes.into_iter().find(is_asked)?;
        let mut names: HashMap<DimVar, String> = HashMap::new();
        for (name, dim) in &values {
            if let Dim::Var(var) = dim {
                names.insert(*var, name.clone());
            }
        }
        let mut relation = relation.clone();
        let (mut here, mut options) = (HashMap::new(), HashMap::new());
        // Options that are not multiplied with sizes are shown as such.
        for option in &declaration.options {
            let own: Vec<String> = dims(&option.meaning).filter_map(name_of).collect();
            let Some(value) = own.first().and_then(|name| values.get(name)).cloned() else {
                continue;
            };
            let is_one = own.iter().all(|name| values.get(name) == Some(&value));
            if let Dim::Var(var) = value {
                options.insert(var, Rc::clone(&option.name.text));
            }
            let is_default = option.default.map(Dim::Constant).as_ref() == Some(&value);
            if !is_one || is_default || matches!(value, Dim::Var(_)) {
                continue;
            }
            let var = types.solver.dim_var(0);
            let mut others = values.clone();
            others.extend(own.into_iter().map(|name| (name, Dim::Var(var))));
            let Some(stated) = lower(types, size, &others) else { continue };
            if types.solver.arithmetic().linear_in(&stated, var).is_some() {
                (values, relation) = (others, Relation::Positive(stated));
                here.insert(var, value);
                options.insert(var, Rc::clone(&option.name.text));
            }
        }
        Some(Condition {
            relation,
            dims: here,
            shapes: HashMap::new(),
            names,
            shape_names: HashMap::new(),
            options,
            function,
        })
    }
}

/// The sizes of a shape as it is written.
fn dims(shape: &ShapeExpr) -> impl Iterator<Item = &DimExpr> {
    shape.parts.iter().flat_map(|part| match part {
        Part::Dims(dims) => dims.as_slice(),
        Part::Name(_) => &[],
    })
}

fn name_of(dim: &DimExpr) -> Option<String> {
    match dim {
        DimExpr::Name(name) => Some(name.text.clone()),
        _ => None,
    }
}
