//! `tc-compile` as a library: writes programs instead of running them.

use super::{Error, Options, Session, Sizes, check_given_sizes};
use melior::ir::Module;
use tc_dialects::tc::Def;

impl<'c> Session<'c> {
    /// The program as fused `imap` operations, for the sizes that are given: the others
    /// stay parameters of the functions, and conditions on them become checks at entry.
    /// With `def` it is that function alone. Sizes belong to one function: if there are
    /// any, a file of several functions needs `def`.
    ///
    /// # Errors
    /// A size does not exist or is out of range, a condition on the sizes does not hold,
    /// or a pass failed.
    pub fn specialize(
        &self,
        def: Option<Def<'c>>,
        sizes: &Sizes,
        options: &Options,
    ) -> Result<Module<'c>, Error> {
        let Some(def) = def.map(Ok).or_else(|| (!sizes.is_empty()).then(|| self.def(None))) else {
            return self.lower(None, options);
        };
        let def = def?;
        check_given_sizes(def, sizes)?;
        if !sizes.is_empty() && def.sizes().iter().all(|(name, ..)| sizes.contains_key(*name)) {
            self.shapes(def, sizes)?;
        }
        self.lower(Some((def, sizes)), options)
    }
}
