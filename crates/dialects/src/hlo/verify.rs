use super::Module;
use crate::tc::syntax::Diagnostic;
/// Checks.
pub fn verify(_module: &Module) -> Vec<Diagnostic> {
    Vec::new()
}
