//! Programs: the signature of a definition, or its rejection.

use super::super::row::{Mismatch, field, flag, optional, string, strings};
use super::super::{Options, Outcome, Status};
use super::outcomes;
use serde_json::Value;
use std::collections::HashMap;
use std::rc::Rc;
use tc_dialects::{
    axon::{
        self,
        syntax::ast::{TypeExpr, TypeKind},
    },
    text::SourceFile,
};
use tc_ir::shape::{
    Arithmetic, Dim, DimVar,
    text::{DimExpr, Part, ShapeExpr},
};

/// Runs a row.
pub(super) fn run(row: &Value, _: &Options) -> Result<Outcome, Mismatch> {
    let text = field(row, "program", string)?;
    let entry = match row.get("entry") {
        None | Some(Value::Null) => None,
        Some(entry) => Some(string(entry)?),
    };
    let globals = optional(row, "globals", strings)?.unwrap_or_default();
    let found = signature(text, entry, &globals);
    let mut expected = Vec::new();
    for outcome in outcomes(row) {
        let holds = if flag(outcome, "fail")? {
            expected.push("an error".to_string());
            found.is_err()
        } else {
            let signature = field(outcome, "signature", string)?;
            expected.push(signature.to_string());
            match &found {
                Ok(found) => same(found, signature)?,
                Err(_) => false,
            }
        };
        if holds {
            let status = if expected.len() == 1 { Status::Passed } else { Status::Documented };
            let got = found.unwrap_or_else(|error| error);
            return Ok(Outcome::new(status, expected.pop().unwrap_or_default(), got));
        }
    }
    Err(Mismatch::new(expected.join(" or "), found.unwrap_or_else(|error| error)))
}

fn signature(text: &str, entry: Option<&str>, globals: &[&str]) -> Result<String, String> {
    let source = SourceFile::new("program.axon", text);
    let (program, diagnostics) = axon::syntax::parse_program(&source);
    if !diagnostics.is_empty() {
        return Err(source.render_all(&diagnostics));
    }
    let globals = globals.iter().map(|name| (*name).to_string()).collect();
    let options = axon::Options { globals, ..axon::Options::default() };
    let mut inferred = axon::infer(&program, &options);
    if !inferred.diagnostics.is_empty() {
        return Err(source.render_all(&inferred.diagnostics));
    }
    match inferred.signature(entry) {
        Some(signature) => Ok(signature.text),
        None => Err("no such definition".to_string()),
    }
}

/// Whether two signatures are equal up to the names of their variables.
fn same(found: &str, expected: &str) -> Result<bool, Mismatch> {
    let parse = |text: &str| {
        let source = SourceFile::new("signature", text);
        axon::syntax::parse_signature(&source)
            .map_err(|errors| Mismatch::new("a signature", source.render_all(&errors)))
    };
    let (found, expected) = (parse(found)?, parse(expected)?);
    let mut renaming = Renaming::default();
    if !renaming.same_type(&found, &expected, false) {
        return Ok(false);
    }
    // Variables that stand in sums only may be any of those of the other signature.
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    summed_names(&found, &mut ours);
    summed_names(&expected, &mut theirs);
    ours.retain(|name| !renaming.forth.contains_key(&('d', name.clone())));
    theirs.retain(|name| !renaming.back.contains_key(&('d', name.clone())));
    Ok(ours.len() == theirs.len() && renaming.agrees(&ours, &theirs, &found, &expected))
}

/// More variables that stand in sums only are taken in the order in which they occur.
const MAX_PERMUTED: usize = 6;

/// The names of the dimensions that are not names themselves, each once.
fn summed_names(ty: &TypeExpr, names: &mut Vec<String>) {
    match &ty.kind {
        TypeKind::Name(_) => {}
        TypeKind::Tensor(_, shape) => {
            let mut found = Vec::new();
            for dim in items(shape).into_iter().filter_map(Result::err) {
                if !matches!(dim, DimExpr::Name(_)) {
                    dim.names(&mut found);
                }
            }
            for name in found {
                if !names.contains(&name.text) {
                    names.push(name.text.clone());
                }
            }
        }
        TypeKind::Tuple(types) => types.iter().for_each(|ty| summed_names(ty, names)),
        TypeKind::Function(params, result) => {
            params.iter().for_each(|ty| summed_names(ty, names));
            summed_names(result, names);
        }
    }
}

/// Which variable of one signature is which of the other.
#[derive(Default)]
struct Renaming {
    forth: HashMap<(char, String), String>,
    back: HashMap<(char, String), String>,
    numbers: HashMap<String, DimVar>,
    arithmetic: Arithmetic,
}

impl Renaming {
    /// Whether the sums of two types are the same for some order of variables that are not known yet.
    fn agrees(
        &self,
        ours: &[String],
        theirs: &[String],
        found: &TypeExpr,
        expected: &TypeExpr,
    ) -> bool {
        let next =
            || Self { forth: self.forth.clone(), back: self.back.clone(), ..Self::default() };
        let Some((first, rest)) = ours.split_first() else {
            return next().same_type(found, expected, true);
        };
        let choices = if ours.len() <= MAX_PERMUTED { theirs.len() } else { 1 };
        (0..choices).any(|choice| {
            let mut next = next();
            let mut others = theirs.to_vec();
            let name = others.remove(choice);
            next.same_name('d', first, &name) && next.agrees(rest, &others, found, expected)
        })
    }

    fn same_name(&mut self, kind: char, a: &str, b: &str) -> bool {
        let known = |name: &str| axon::ElementType::from_name(name).is_some();
        if kind == 'e' && (known(a) || known(b)) {
            return a == b;
        }
        let forth = self.forth.entry((kind, a.to_string())).or_insert_with(|| b.to_string());
        let back = self.back.entry((kind, b.to_string())).or_insert_with(|| a.to_string());
        forth == b && back == a
    }

    fn same_types(&mut self, a: &[TypeExpr], b: &[TypeExpr], sums: bool) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same_type(a, b, sums))
    }

    fn same_type(&mut self, a: &TypeExpr, b: &TypeExpr, sums: bool) -> bool {
        match (&a.kind, &b.kind) {
            (TypeKind::Name(a), TypeKind::Name(b)) => self.same_name('t', &a.text, &b.text),
            (TypeKind::Tensor(elem_a, a), TypeKind::Tensor(elem_b, b)) => {
                self.same_name('e', &elem_a.text, &elem_b.text) && self.same_shape(a, b, sums)
            }
            (TypeKind::Tuple(a), TypeKind::Tuple(b)) => self.same_types(a, b, sums),
            (TypeKind::Function(params_a, a), TypeKind::Function(params_b, b)) => {
                self.same_types(params_a, params_b, sums) && self.same_type(a, b, sums)
            }
            _ => false,
        }
    }

    fn same_shape(&mut self, a: &ShapeExpr, b: &ShapeExpr, sums: bool) -> bool {
        let (a, b) = (items(a), items(b));
        a.len() == b.len()
            && a.iter().zip(&b).all(|items| match items {
                (Ok(a), Ok(b)) => self.same_name('s', a, b),
                (Err(DimExpr::Name(a)), Err(DimExpr::Name(b))) => {
                    self.same_name('d', &a.text, &b.text)
                }
                (Err(a), Err(b)) => !sums || self.same_dim(a, b),
                _ => false,
            })
    }

    fn same_dim(&mut self, a: &DimExpr, b: &DimExpr) -> bool {
        let mut names = Vec::new();
        b.names(&mut names);
        for name in names {
            let number = DimVar(self.numbers.len() as u32);
            self.numbers.entry(name.text.clone()).or_insert(number);
        }
        let unknown = DimVar(u32::MAX);
        let number = |name: Option<&String>| {
            Dim::Var(name.and_then(|name| self.numbers.get(name)).copied().unwrap_or(unknown))
        };
        let a = a
            .lower(&self.arithmetic, &mut |name| number(self.forth.get(&('d', name.text.clone()))));
        let b = b.lower(&self.arithmetic, &mut |name| number(Some(&name.text)));
        a.is_ok() && a == b
    }
}

/// The items of a shape: names of shapes, and dimensions.
fn items(shape: &ShapeExpr) -> Vec<Result<Rc<str>, &DimExpr>> {
    let mut items = Vec::new();
    for part in &shape.parts {
        match part {
            Part::Name(name) => items.push(Ok(Rc::from(name.text.as_str()))),
            Part::Dims(dims) => items.extend(dims.iter().map(Err)),
        }
    }
    items
}
