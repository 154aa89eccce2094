//! Promises of operations, checked while they run: those of `imap.scatter`, and that no two points store one
//! element.

use std::collections::{HashMap, HashSet};
use tc_dialects::imap::ScatterPromises;

/// The elements that an operation has updated so far. An element is the number of a destination and its
/// subscripts.
#[derive(Default)]
pub(super) struct Updated {
    all: HashSet<(usize, Vec<i64>)>,
    /// The last subscripts, by the number of a destination and the values of the window variables.
    last: HashMap<(usize, Vec<i64>), Vec<i64>>,
}

impl Updated {
    /// Notes the store of an element by an operation that stores each element at most once.
    ///
    /// # Errors
    /// It was stored before.
    pub(super) fn store(&mut self, destination: usize, element: Vec<i64>) -> Result<(), String> {
        if self.all.insert((destination, element.clone())) {
            return Ok(());
        }
        Err(format!(
            "stores element {element:?} of 'outs' number {destination} at two points; the subscripts of a destination \
             must differ between points ('imap.scatter' takes any)"
        ))
    }

    /// Notes an update of an element. `windows` are the values of the window variables, if they are known.
    ///
    /// # Errors
    /// The update breaks a promise.
    pub(super) fn note(
        &mut self,
        promises: ScatterPromises,
        destination: usize,
        element: Vec<i64>,
        windows: Option<Vec<i64>>,
    ) -> Result<(), String> {
        let ScatterPromises { unique, sorted } = promises;
        if unique && !self.all.insert((destination, element.clone())) {
            return Err(format!("promises 'unique', but updates element {element:?} twice"));
        }
        let Some(windows) = windows.filter(|_| sorted) else { return Ok(()) };
        let before = self.last.insert((destination, windows), element.clone());
        match before.filter(|before| element < *before) {
            Some(before) => Err(format!(
                "promises 'sorted', but updates element {element:?} after element {before:?}"
            )),
            None => Ok(()),
        }
    }
}
