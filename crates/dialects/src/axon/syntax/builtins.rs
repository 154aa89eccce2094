//! The table of built-in functions, and the prelude.
//!
//! Both are texts: `builtins.axon` has a type per function, in the notation of annotations, and
//! `prelude.axon` has functions written in Axon. They are parsed once per program.

use super::ast::{Let, Pattern, Program};
use super::parser::{self, Declaration};
use crate::text::SourceFile;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::OnceLock;

/// The table of built-in functions.
pub const TABLE: &str = include_str!("../builtins.axon");

/// The prelude.
pub const PRELUDE: &str = include_str!("../prelude.axon");

/// The built-in functions by their names.
pub(crate) fn table() -> HashMap<Rc<str>, Rc<Declaration>> {
    let (declarations, diagnostics) = parser::parse_table(&SourceFile::new("builtins.axon", TABLE));
    debug_assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let entry = |it: Declaration| (Rc::clone(&it.name.text), Rc::new(it));
    declarations.into_iter().map(entry).collect()
}

/// How many parameters the built-in function of a name has.
pub(crate) fn num_params(name: &str) -> Option<usize> {
    static NUMBERS: OnceLock<HashMap<String, usize>> = OnceLock::new();
    let numbers = NUMBERS.get_or_init(|| {
        let number = |(name, it): (Rc<str>, Rc<Declaration>)| (name.to_string(), it.params.len());
        table().into_iter().map(number).collect()
    });
    numbers.get(name).copied()
}

/// Whether a name is that of a built-in function.
pub(crate) fn is_builtin(name: &str) -> bool {
    num_params(name).is_some()
}

/// Whether a name is that of a function of the prelude.
pub(crate) fn is_in_prelude(name: &str) -> bool {
    static NAMES: OnceLock<HashSet<String>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let lets = prelude().lets;
        let name = |it: Let| match it.pattern {
            Pattern::Name(name) => Some(name.text.to_string()),
            _ => None,
        };
        lets.into_iter().filter_map(name).collect()
    });
    names.contains(name)
}

/// The names of the built-in functions, sorted.
pub fn names() -> Vec<String> {
    let mut names: Vec<_> = table().keys().map(|name| name.to_string()).collect();
    names.sort();
    names
}

/// The functions of the prelude.
pub(crate) fn prelude() -> Program {
    let (program, diagnostics) = parser::parse_program(&SourceFile::new("prelude.axon", PRELUDE));
    debug_assert!(diagnostics.is_empty(), "{diagnostics:?}");
    program
}
