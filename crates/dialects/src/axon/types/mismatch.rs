//! Differences between types.

use super::{Class, ElementType, Ty};
use std::rc::Rc;
use tc_ir::shape::solve::Origin;

/// Why two types are not equal.
#[derive(Clone, Debug)]
pub(crate) struct Mismatch {
    pub(crate) difference: Difference,
    /// The part of the types that differs.
    pub(crate) path: Option<Rc<Path>>,
    /// What says what the two parts are.
    pub(crate) core: Vec<Origin>,
}

/// How two types differ.
#[derive(Clone, Debug)]
pub(crate) enum Difference {
    /// They are of different kinds.
    Kinds(Ty, Ty),
    /// Functions of different numbers of parameters.
    Arity(usize, usize),
    /// Tuples of different sizes.
    Size(usize, usize),
    /// Different element types.
    Elements(ElementType, ElementType),
    /// An element type that is not of the class that is expected.
    NotOf(Class, ElementType),
    /// Some element type of a class, where one is expected that is not of it.
    Known(ElementType, Class),
    /// Some element type of a class, where one of another class is expected.
    Classes(Class, Class),
    /// A type that would have to contain itself.
    Endless,
}

impl Difference {
    /// Whether it is about kinds of values, not about element types.
    pub(crate) fn is_of_kinds(&self) -> bool {
        use Difference::{Classes, Elements, Known, NotOf};
        !matches!(self, Elements(..) | NotOf(..) | Known(..) | Classes(..))
    }
}

/// How two types differ, and what says so.
pub(super) type Differs = (Difference, Vec<Origin>);

/// A step from a type to a part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Of a tuple.
    Part(usize),
    /// Of a function, from 1.
    Parameter(usize),
    /// Of a function.
    Result,
}

/// The way from a type to a part of it; the last step first.
#[derive(Debug)]
pub(crate) struct Path {
    step: Step,
    before: Option<Rc<Path>>,
}

impl Path {
    pub(crate) fn then(before: Option<&Rc<Self>>, step: Step) -> Option<Rc<Self>> {
        Some(Rc::new(Self { step, before: before.cloned() }))
    }

    /// `the result of parameter 1 of `, or `part .0.1 of `, where the outer tuple comes first.
    pub(crate) fn prefix(path: Option<&Rc<Self>>) -> String {
        let mut text = String::new();
        let mut parts = String::new();
        for path in std::iter::successors(path, |path| path.before.as_ref()) {
            match path.step {
                Step::Part(number) => {
                    parts.insert_str(0, &format!(".{number}"));
                    let before = path.before.as_ref().map(|before| before.step);
                    if !matches!(before, Some(Step::Part(_))) {
                        text += &format!("part {} of ", std::mem::take(&mut parts));
                    }
                }
                Step::Parameter(number) => text += &format!("parameter {number} of "),
                Step::Result => text += "the result of ",
            }
        }
        text
    }
}
