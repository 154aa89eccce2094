//! The targets, by their names on command lines.

use crate::{backend::Backend, cpu, nvvm};
use tc_passes::target::Machine;

/// The backends of all targets.
pub fn all() -> [&'static dyn Backend; 2] {
    [cpu::BACKEND, nvvm::BACKEND]
}

/// The backend and the machine of a text such as `cpu`, `cpu:x86-64-v3` or `nvvm:sm_90a`: the name of a
/// target and, after a colon, of a machine, which may be omitted if the target has a default one.
///
/// # Errors
/// There is no such target, or it has no such machine; the text lists those that there are.
pub fn named(text: &str) -> Result<(&'static dyn Backend, Machine), String> {
    let (name, machine) = match text.split_once(':') {
        Some((name, machine)) => (name, Some(machine)),
        None => (text, None),
    };
    let backend = all().into_iter().find(|backend| backend.name() == name).ok_or_else(|| {
        let known = all().map(|backend| backend.name()).join(", ");
        format!("'{name}' is not a target; known targets: {known}")
    })?;
    Ok((backend, backend.machine(machine)?))
}
