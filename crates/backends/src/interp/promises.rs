//! Promises of operations, which are checked at run time.
//!
//! * `imap.generic` and `imap.scan` store each element at most once.
//! * The identities of a combiner change no folded value.
//! * `imap.scatter` is `unique` or `sorted`.

use super::{
    machine::{Machine, Result},
    program::{At, LoopNest, Output, Promise, Reg, Scatter},
    scalar::Scalar,
};
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
    fn store(&mut self, destination: usize, element: Vec<i64>) -> std::result::Result<(), String> {
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
    fn note(
        &mut self,
        promises: ScatterPromises,
        destination: usize,
        element: Vec<i64>,
        windows: Option<Vec<i64>>,
    ) -> std::result::Result<(), String> {
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

impl<'p> Machine<'p> {
    /// The values of registers; `None` if one depends on rounding.
    fn certain_ints(&self, regs: &[Reg]) -> Option<Vec<i64>> {
        let known = |reg: &Reg| Some(self.regs[*reg]).filter(|it| it.is_certain());
        regs.iter().map(|reg| Some(known(reg)?.as_int())).collect()
    }

    /// Checks the promises of a scatter at the current point, except for subscripts that depend on rounding.
    pub(super) fn keep_promises(
        &self,
        nest: &LoopNest,
        scatter: &Scatter,
        updated: &mut Updated,
    ) -> Result<()> {
        let windows = self.certain_ints(&scatter.windows);
        for (number, output) in nest.outputs.iter().enumerate() {
            let Some(element) = self.certain_ints(&output.position) else { continue };
            let kept = updated.note(scatter.promises, number, element, windows.clone());
            kept.or_else(|broken| self.fail(nest.at, broken))?;
        }
        Ok(())
    }

    /// Checks that no earlier point stored the element of the current one, unless that depends on rounding.
    pub(super) fn store_once(
        &self,
        at: At,
        output: &Output,
        number: usize,
        updated: &mut Updated,
    ) -> Result<()> {
        let Some(element) = self.certain_ints(&output.position) else { return Ok(()) };
        updated.store(number, element).or_else(|broken| self.fail(at, broken))
    }

    /// Checks that the identities of a combiner change nothing in the folded values, on either side.
    pub(super) fn keep_identities(&mut self, nest: &'p LoopNest) -> Result<()> {
        let Some(combiner) = nest.combiner.as_ref().filter(|it| !it.promises.is_empty()) else {
            return Ok(());
        };
        let folded: Vec<_> = nest.accumulators.iter().map(|it| self.regs[it.folded]).collect();
        let identities: Vec<_> = combiner.promises.iter().map(|it| it.identity).collect();
        let sides = [("first", [&identities, &folded]), ("second", [&folded, &identities])];
        for (side, [old, new]) in sides {
            let results = self.combine(combiner, old, new)?.into_iter();
            for ((result, value), promise) in results.zip(&folded).zip(&combiner.promises) {
                let Promise { identity, is_float, .. } = promise;
                if result.differs(*value, *is_float) {
                    let show = |it: Scalar| match is_float {
                        true => it.as_float().to_string(),
                        false => it.as_int().to_string(),
                    };
                    let [identity, value, result] = [*identity, *value, result].map(show);
                    let message = format!(
                        "promises the identity {identity}, which as the {side} argument of the combiner turns \
                         {value} into {result}"
                    );
                    return self.fail(nest.at, message);
                }
            }
        }
        Ok(())
    }
}
