//! Signatures as text.

use super::types::{Class, Elem, Node, Ty, Types};
use crate::text::Span;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use tc_ir::{
    expr::gcd,
    polynomial::Polynomial,
    shape::{
        Arithmetic, Dim, DimVar, Item, Shape, ShapeVar,
        solve::{Known, Relation, Residual},
        text::shape_text,
    },
};

/// Most characters of a type that is printed.
const MAX_TEXT: usize = 1 << 14;

/// What a tensor is called of which nothing is known.
pub(crate) const ANY_TENSOR: &str = "a tensor";

/// How a type, element type or size is written of which nothing is known.
pub(crate) const UNKNOWN: &str = "_";

/// Most characters of a type in an error.
const MAX_SHOWN: usize = 400;

/// The type of a definition as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The type: `f32 [a]@b -> f32 [a]@b`.
    pub text: String,
    /// What element types must be, `t : float`, and what the program has to check when it runs.
    pub conditions: Vec<Condition>,
}

/// A condition on the variables of a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What must hold.
    pub text: String,
    /// The place that asks for it, of what is checked when the program runs.
    pub span: Option<Span>,
}

/// Names that a program uses for variables.
#[derive(Debug, Default)]
pub(crate) struct KnownNames {
    pub(crate) dims: HashMap<DimVar, String>,
    pub(crate) shapes: HashMap<ShapeVar, String>,
    pub(crate) elems: HashMap<Elem, String>,
    /// Of annotations, as they are written.
    pub(crate) types: HashMap<Ty, String>,
}

/// Names for the variables of one or several texts.
#[derive(Default)]
pub(crate) struct Printer {
    known: Rc<KnownNames>,
    /// Whether what is not known is written `_` and `...` instead of being named.
    anonymous: bool,
    /// Whether types are printed as they are written, whatever is known about them.
    written: bool,
    /// Whether what is asked of an element type is written where it is not known.
    classes: bool,
    /// What is known about shapes; what the solver knows if there is nothing else.
    view: Option<Known>,
    /// Names that are not given to variables.
    reserved: HashSet<Rc<str>>,
    /// What variables without a name are called, and are to be explained.
    pub(crate) invented: Vec<(Item, String)>,
    dims: HashMap<DimVar, String>,
    shapes: HashMap<ShapeVar, String>,
    /// Where variables are dimensions themselves: those of a sum are named in this order.
    places: HashMap<DimVar, usize>,
    elems: BTreeMap<u32, (String, Class)>,
    types: HashMap<Ty, String>,
    used: Used,
}

/// Names that are used, and how far each series of them has been.
#[derive(Debug, Default)]
pub(crate) struct Used {
    names: HashSet<String>,
    series: HashMap<&'static str, usize>,
}

impl FromIterator<String> for Used {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        Self { names: names.into_iter().collect(), series: HashMap::new() }
    }
}

impl Used {
    /// A wanted name, or the first of a series of letters, that is not used yet.
    pub(crate) fn fresh(&mut self, wanted: Option<&String>, letters: &'static str) -> String {
        if let Some(wanted) = wanted.filter(|wanted| !self.names.contains(*wanted)) {
            self.names.insert(wanted.clone());
            return wanted.clone();
        }
        self.fresh_where(letters, |_| true)
    }

    /// The first free one of a series of letters that is not used yet.
    fn fresh_where(&mut self, letters: &'static str, is_free: impl Fn(&str) -> bool) -> String {
        let next = self.series.entry(letters).or_default();
        loop {
            let (round, letter) = (*next / letters.len(), *next % letters.len());
            *next += 1;
            let letter = &letters[letter..=letter];
            let name = if round == 0 { letter.to_string() } else { format!("{letter}{round}") };
            if is_free(&name) && self.names.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// That a size is positive, as a comparison without subtractions, divided by what is common: `m < n` is what
/// `(- (* n 5) (* m 5)) > 0` says. `None` where there is nothing to compare.
pub(crate) fn comparison(
    arithmetic: &Arithmetic,
    positive: &Dim,
) -> Option<(Dim, &'static str, Dim)> {
    let sum = arithmetic.polynomial(positive)?;
    let divisor = sum.terms().fold(0, |divisor, (_, factor)| gcd(divisor, factor.unsigned_abs()));
    let divisor = i64::try_from(divisor).ok().filter(|divisor| *divisor != 0)?;
    let (mut more, mut less) = (Polynomial::default(), Polynomial::default());
    for (monomial, factor) in sum.terms() {
        match factor / divisor {
            factor @ 0.. => more.set(monomial, factor),
            factor => less.set(monomial, factor.checked_neg()?),
        }
    }
    // What the sum of the terms is at least.
    let least = sum.constant_part().checked_neg()?.div_euclid(divisor).checked_add(1)?;
    let [has_less, has_more] = [&less, &more].map(|sum| 0 < sum.terms().len());
    if !has_less && least <= 1 {
        return None;
    }
    let is_strict = has_less && has_more && least == 1;
    if least < 0 {
        more = more.plus(least.checked_neg()?).ok()?;
    } else if !is_strict {
        less = less.plus(least).ok()?;
    }
    let sign = if is_strict { "<" } else { "<=" };
    Some((arithmetic.dim(less).ok()?, sign, arithmetic.dim(more).ok()?))
}

/// Names of sizes that the program does not name.
pub(crate) const SIZES: &str = "abcdefghijklmnopqr";

impl Printer {
    /// A printer that names every variable.
    pub(crate) fn new(known: Rc<KnownNames>) -> Self {
        Self { known, ..Self::default() }
    }

    /// A printer that names only what the program names.
    pub(crate) fn anonymous(known: Rc<KnownNames>) -> Self {
        Self { known, anonymous: true, ..Self::default() }
    }

    /// A printer of types as they are written in annotations, with the names of their variables there.
    pub(crate) fn written(names: Rc<KnownNames>) -> Self {
        Self { written: true, ..Self::anonymous(names) }
    }

    /// Writes what is asked of element types that are not known.
    pub(crate) fn with_classes(self) -> Self {
        Self { classes: true, ..self }
    }

    /// Says what is known about shapes.
    pub(crate) fn view(self, view: Option<Known>) -> Self {
        Self { view, ..self }
    }

    /// Keeps names of the program from being given to variables.
    pub(crate) fn reserve(self, reserved: HashSet<Rc<str>>) -> Self {
        Self { reserved, ..self }
    }

    /// Names all variables of shapes, but for those that occur once and alone.
    pub(crate) fn name_repeated(&mut self, types: &mut Types, shapes: &[&Shape]) {
        let mut seen: Vec<Item> = Vec::new();
        for shape in shapes {
            for item in self.resolved_shape(types, shape).items {
                let vars = match &item {
                    Item::Var(_) | Item::Dim(Dim::Var(_)) => vec![item],
                    Item::Dim(dim) => {
                        let vars = types.solver.arithmetic().vars(dim);
                        let vars = vars.into_iter().map(|var| Item::Dim(Dim::Var(var)));
                        vars.inspect(|var| seen.push(var.clone())).collect()
                    }
                };
                for var in vars {
                    match seen.contains(&var) {
                        true => self.invent(var),
                        false => seen.push(var),
                    }
                }
            }
        }
    }

    /// Gives a variable a name that is to be explained, unless it has one.
    fn invent(&mut self, var: Item) {
        if self.has_name(&var) {
            return;
        }
        let known: HashSet<&str> =
            self.known.dims.values().chain(self.known.shapes.values()).map(|it| &**it).collect();
        let is_free = |name: &str| !self.reserved.contains(name) && !known.contains(name);
        let name = self.used.fresh_where(SIZES, is_free);
        self.set_name(&var, &name);
        self.invented.push((var, name));
    }

    /// Gives a variable a name that is to be explained: the one that is wanted, unless it is reserved.
    pub(crate) fn explained(&mut self, var: Item, wanted: Option<&String>) {
        let is_free = |name: &str| !self.reserved.contains(name);
        let name = match wanted {
            Some(wanted) if is_free(wanted) => self.used.fresh(Some(wanted), SIZES),
            _ => self.used.fresh_where(SIZES, is_free),
        };
        self.set_name(&var, &name);
        self.invented.push((var, name));
    }

    /// Gives variables the names that they have in another text but not in the program, which are to be explained.
    pub(crate) fn explain_all(&mut self, other: &Printer) {
        let shapes = other.shapes.iter().map(|(var, name)| (name, Item::Var(*var)));
        let dims = other.dims.iter().map(|(var, name)| (name, Item::Dim(Dim::Var(*var))));
        let mut named: Vec<(&String, Item)> = shapes.chain(dims).collect();
        named.retain(|(_, var)| match var {
            Item::Var(var) => !other.known.shapes.contains_key(var),
            Item::Dim(Dim::Var(var)) => !other.known.dims.contains_key(var),
            Item::Dim(_) => false,
        });
        named.sort_by_key(|(name, _)| (name.len(), *name));
        for (name, var) in named {
            let name = self.used.fresh(Some(name), SIZES);
            self.set_name(&var, &name);
            self.invented.push((var, name));
        }
    }

    /// The names of the program that stand in a shape.
    pub(crate) fn known_in(&mut self, types: &mut Types, shape: &Shape) -> Vec<Rc<str>> {
        let mut names: Vec<Rc<str>> = Vec::new();
        for item in self.resolved_shape(types, shape).items {
            match &item {
                Item::Var(var) => {
                    names.extend(self.known.shapes.get(var).map(|it| it.as_str().into()))
                }
                Item::Dim(dim) => {
                    let vars = types.solver.arithmetic().vars(dim).into_iter();
                    let known = vars.filter_map(|var| self.known.dims.get(&var));
                    names.extend(known.map(|name| Rc::from(name.as_str())));
                }
            }
        }
        names
    }

    /// A condition with all put in that is known.
    pub(crate) fn resolved_relation(&mut self, types: &mut Types, relation: &Relation) -> Relation {
        let mut shape = |shape| self.resolved_shape(types, shape);
        match relation {
            Relation::Shapes(a, b) => Relation::Shapes(shape(a), shape(b)),
            Relation::Elements(a, b) => Relation::Elements(shape(a), shape(b)),
            Relation::Dims(a, b) => {
                Relation::Dims(self.resolved_dim(types, a), self.resolved_dim(types, b))
            }
            Relation::Positive(a) => Relation::Positive(self.resolved_dim(types, a)),
        }
    }

    fn has_name(&self, var: &Item) -> bool {
        match var {
            Item::Var(it) => self.shapes.contains_key(it) || self.known.shapes.contains_key(it),
            Item::Dim(Dim::Var(it)) => {
                self.dims.contains_key(it) || self.known.dims.contains_key(it)
            }
            Item::Dim(_) => true,
        }
    }

    fn set_name(&mut self, var: &Item, name: &str) {
        match var {
            Item::Var(it) => _ = self.shapes.insert(*it, name.to_string()),
            Item::Dim(Dim::Var(it)) => _ = self.dims.insert(*it, name.to_string()),
            Item::Dim(_) => {}
        }
    }

    /// Names all variables of a condition.
    pub(crate) fn name_all(&mut self, types: &Types, relation: &Relation) {
        let (shapes, dims) = types.solver.vars(relation);
        for var in shapes {
            self.invent(Item::Var(var));
        }
        for var in dims {
            self.invent(Item::Dim(Dim::Var(var)));
        }
    }

    pub(crate) fn resolved_shape(&mut self, types: &mut Types, shape: &Shape) -> Shape {
        match &mut self.view {
            _ if self.written => shape.clone(),
            Some(view) => view.shape(shape),
            None => types.solver.resolved_shape(shape),
        }
    }

    /// Gives a variable a name, unless the program names it.
    pub(crate) fn call(&mut self, var: DimVar, name: Rc<str>) {
        if !self.known.dims.contains_key(&var) {
            self.dims.entry(var).or_insert_with(|| name.to_string());
        }
    }

    fn dim(&mut self, var: DimVar) {
        if !self.dims.contains_key(&var) {
            let name = match self.anonymous && !self.known.dims.contains_key(&var) {
                true => UNKNOWN.to_string(),
                false => self.used.fresh(self.known.dims.get(&var), SIZES),
            };
            self.dims.insert(var, name);
        }
    }

    fn shape_var(&mut self, var: ShapeVar) {
        if !self.shapes.contains_key(&var) {
            let name = match self.anonymous && !self.known.shapes.contains_key(&var) {
                true => "...".to_string(),
                false => self.used.fresh(self.known.shapes.get(&var), SIZES),
            };
            self.shapes.insert(var, name);
        }
    }

    /// A shape, with its variables named.
    pub(crate) fn shape(&mut self, types: &mut Types, shape: &Shape) -> String {
        let shape = self.resolved_shape(types, shape);
        for item in &shape.items {
            match item {
                Item::Var(var) => self.shape_var(*var),
                Item::Dim(dim) => {
                    let mut vars = types.solver.arithmetic().vars(dim);
                    vars.sort_by_key(|var| self.places.get(var).copied().unwrap_or(usize::MAX));
                    vars.into_iter().for_each(|var| self.dim(var));
                }
            }
        }
        let dim =
            |dim: &Dim| types.solver.arithmetic().dim_text(dim, &|var| self.dims[&var].clone());
        self.shortened(shape_text(&shape, &|var| self.shapes[&var].clone(), &dim))
    }

    /// A text, the start of it where it is long and part of an error.
    fn shortened(&self, text: String) -> String {
        if !self.anonymous || text.len() <= MAX_SHOWN {
            return text;
        }
        let start: String = text.chars().take(MAX_SHOWN).collect();
        // No part of a name.
        let whole = start.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        format!("{whole} and so on")
    }

    pub(crate) fn resolved_dim(&mut self, types: &mut Types, dim: &Dim) -> Dim {
        match &mut self.view {
            _ if self.written => dim.clone(),
            Some(view) => view.dim(dim),
            None => types.solver.resolved_dim(dim),
        }
    }

    /// A dimension, with its variables named.
    pub(crate) fn dim_text(&mut self, types: &mut Types, dim: &Dim) -> String {
        let dim = self.resolved_dim(types, dim);
        for var in types.solver.arithmetic().vars(&dim) {
            self.dim(var);
        }
        types.solver.arithmetic().dim_text(&dim, &|var| self.dims[&var].clone())
    }

    /// A type, with its variables named.
    pub(crate) fn ty(&mut self, types: &mut Types, ty: Ty) -> String {
        let mut out = String::new();
        self.write(types, ty, &mut out, 0);
        self.shortened(out)
    }

    /// A type; a function at the top without `fn`.
    pub(crate) fn signature(&mut self, types: &mut Types, ty: Ty) -> String {
        for shape in types.shapes(ty) {
            for item in self.resolved_shape(types, &shape).items {
                if let Item::Dim(Dim::Var(var)) = item {
                    let place = self.places.len();
                    self.places.entry(var).or_insert(place);
                }
            }
        }
        let Node::Function(params, result) = types.node(ty) else {
            return self.ty(types, ty);
        };
        let mut out = String::new();
        let lone_tensor = match params.as_slice() {
            [param] => !matches!(types.node(*param), Node::Tuple(_)),
            _ => false,
        };
        if lone_tensor {
            self.write(types, params[0], &mut out, 1);
        } else {
            self.list(types, &params, &mut out, 1);
        }
        out.push_str(" -> ");
        self.write(types, result, &mut out, 1);
        out
    }

    /// An element type, or the name of its variable.
    pub(crate) fn element(&mut self, types: &mut Types, elem: Elem) -> String {
        if let Some(name) = self.known.elems.get(&elem).filter(|_| self.written) {
            return name.clone();
        }
        let (root, class) = match types.element(elem) {
            Ok(known) => return known.name().to_string(),
            Err(variable) => variable,
        };
        if let Some((name, _)) = self.elems.get(&root) {
            return name.clone();
        }
        let known = self.known.elems.get(&root);
        let name = match self.anonymous && known.is_none() {
            true if self.classes && class != Class::Any => class.name().to_string(),
            true => UNKNOWN.to_string(),
            false => self.used.fresh(known, "tuvwxyz"),
        };
        self.elems.insert(root, (name.clone(), class));
        name
    }

    /// The name of a variable that stands for any type.
    pub(crate) fn type_var(&mut self, root: Ty) -> &str {
        let used = &mut self.used;
        self.types.entry(root).or_insert_with(|| used.fresh(None, "STUVWXYZ"))
    }

    fn list(&mut self, types: &mut Types, parts: &[Ty], out: &mut String, depth: u32) {
        out.push('(');
        for (place, part) in parts.iter().enumerate() {
            if 0 < place {
                out.push_str(", ");
            }
            self.write(types, *part, out, depth + 1);
        }
        out.push(')');
    }

    fn write(&mut self, types: &mut Types, ty: Ty, out: &mut String, depth: u32) {
        if MAX_TEXT < out.len() || super::types::MAX_DEPTH < depth {
            out.push_str("...");
            return;
        }
        if let Some(name) = self.known.types.get(&ty).filter(|_| self.written) {
            return out.push_str(name);
        }
        let ty = types.find(ty);
        match types.node(ty) {
            Node::Tensor(elem, shape) => {
                let is_known = types.element(elem).is_ok();
                let elem = self.element(types, elem);
                let shape = self.shape(types, &shape);
                if self.anonymous && !is_known && shape == "..." {
                    return match (elem.as_str(), Class::from_name(&elem)) {
                        (UNKNOWN, _) if self.classes && depth == 0 => {
                            out.push_str("a tensor of one type");
                        }
                        (UNKNOWN, _) => out.push_str(ANY_TENSOR),
                        (_, Some(class)) if depth == 0 => {
                            *out += &format!("a tensor of {}s", class.name());
                        }
                        _ => *out += &format!("{elem} {shape}"),
                    };
                }
                out.push_str(&elem);
                out.push(' ');
                out.push_str(&shape);
            }
            Node::Tuple(parts) => self.list(types, &parts, out, depth),
            Node::Function(params, result) => {
                out.push_str("fn");
                self.list(types, &params, out, depth);
                out.push_str(" -> ");
                self.write(types, result, out, depth + 1);
            }
            Node::Var(_) => {
                if self.anonymous {
                    return out.push_str(UNKNOWN);
                }
                out.push_str(self.type_var(ty));
            }
            Node::Link(_) | Node::Error => out.push('?'),
        }
    }

    /// The classes of element types that were printed.
    pub(crate) fn classes(&self) -> Vec<Condition> {
        let mut classes: Vec<&(String, Class)> =
            self.elems.values().filter(|(_, class)| *class != Class::Any).collect();
        classes.sort_by_key(|(name, _)| name);
        let text = |(name, class): &(String, Class)| format!("{name} : {}", class.name());
        classes.into_iter().map(|class| Condition { text: text(class), span: None }).collect()
    }

    /// Names the variables of conditions, whatever their order: as their texts are ordered where variables that
    /// have no name yet have none.
    pub(crate) fn name_conditions(&mut self, types: &Types, residuals: &[Residual]) {
        let order = |it: &&Residual| {
            let kind = match it.relation {
                Relation::Shapes(..) => 0,
                Relation::Dims(..) => 1,
                Relation::Elements(..) => 2,
                Relation::Positive(_) => 3,
            };
            (kind, self.peek(types, &self.oriented(types, &it.relation)))
        };
        let mut ordered: Vec<&Residual> = residuals.iter().collect();
        ordered.sort_by_cached_key(order);
        for residual in ordered {
            self.condition(types, &residual.relation);
        }
    }

    /// A condition that a program has to check, without subtractions.
    pub(crate) fn condition(&mut self, types: &Types, relation: &Relation) -> String {
        let relation = self.oriented(types, relation);
        self.relation(types, &relation)
    }

    /// A condition without subtractions; if none of its sides is known, the shorter one comes first.
    pub(crate) fn oriented(&self, types: &Types, relation: &Relation) -> Relation {
        let (relation, swapped) = match relation {
            Relation::Shapes(a, b) if b.as_dims().is_none() => {
                (relation.clone(), Relation::Shapes(b.clone(), a.clone()))
            }
            Relation::Dims(a, b) => {
                let sides = types.solver.arithmetic().balanced(a, b);
                let (a, b) = sides.unwrap_or_else(|_| (a.clone(), b.clone()));
                let relation = Relation::Dims(a.clone(), b.clone());
                match b {
                    Dim::Constant(_) | Dim::Ragged => return relation,
                    _ => (relation, Relation::Dims(b, a)),
                }
            }
            _ => return relation.clone(),
        };
        let [text, other] = [&relation, &swapped].map(|it| self.peek(types, it));
        let left = |text: &str| text.find(" = ").unwrap_or_default();
        match (left(&other), &other) < (left(&text), &text) {
            true => swapped,
            false => relation,
        }
    }

    /// A condition in which variables have the names that they have by now, and others none.
    fn peek(&self, types: &Types, relation: &Relation) -> String {
        let mut printer = Self {
            anonymous: true,
            known: Rc::clone(&self.known),
            dims: self.dims.clone(),
            shapes: self.shapes.clone(),
            ..Self::default()
        };
        printer.relation(types, relation)
    }

    /// A condition, with its variables named. Nothing is put in that is known by now: what a residual
    /// says is not simplified by itself.
    pub(crate) fn relation(&mut self, types: &Types, relation: &Relation) -> String {
        let dim = |printer: &mut Self, dim: &Dim| {
            for var in types.solver.arithmetic().vars(dim) {
                printer.dim(var);
            }
            types.solver.arithmetic().dim_text(dim, &|var| printer.dims[&var].clone())
        };
        let shape = |printer: &mut Self, shape: &Shape| {
            for item in &shape.items {
                match item {
                    Item::Var(var) => printer.shape_var(*var),
                    Item::Dim(it) => _ = dim(printer, it),
                }
            }
            let name = |var: ShapeVar| printer.shapes[&var].clone();
            let dim = |dim: &Dim| {
                types.solver.arithmetic().dim_text(dim, &|var| printer.dims[&var].clone())
            };
            shape_text(shape, &name, &dim)
        };
        match relation {
            Relation::Shapes(a, b) => format!("{} = {}", shape(self, a), shape(self, b)),
            Relation::Elements(a, b) => {
                format!("elements {} = {}", shape(self, a), shape(self, b))
            }
            Relation::Dims(a, b) => format!("{} = {}", dim(self, a), dim(self, b)),
            Relation::Positive(a) => match comparison(types.solver.arithmetic(), a) {
                Some((a, sign, b)) => format!("{} {sign} {}", dim(self, &a), dim(self, &b)),
                None => format!("{} > 0", dim(self, a)),
            },
        }
    }
}
