//! The targets, by their names on command lines.

use crate::{backend::Backend, cpu, nvvm};
use std::sync::Once;
use tc_dialects::pass::{PassOption, PipelineInfo};
use tc_passes::{
    fusion::print::{FORMAT, PASS, check_format},
    target::{Codegen, Machine},
};

/// The backends of all targets.
pub fn all() -> [&'static dyn Backend; 2] {
    [cpu::BACKEND, nvvm::BACKEND]
}

/// Registers the passes and pipelines of all targets, and `print-fusion-plan`, with MLIR, once per process.
pub fn register() {
    static ONCE: Once = Once::new();
    cpu::register();
    nvvm::register();
    ONCE.call_once(|| PRINT_FUSION_PLAN.register());
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

/// The passes from every language except Axon to `imap`. Those of the other languages do nothing.
const CONVERT: &str = "tc-infer-ranges,convert-tc-to-imap,\
     tml.program(tml-eliminate-dead-statements,cse,tml-forward-statements,tml-reassociate),convert-tml-to-imap,\
     convert-hlo-to-imap";

/// Fuses and schedules programs for a target, and prints the kernels.
static PRINT_FUSION_PLAN: PipelineInfo = PipelineInfo {
    argument: "print-fusion-plan",
    summary: "Convert and fuse programs, and print the kernels, their groups and why they are not one",
    options: &[
        FORMAT,
        PassOption {
            name: "target",
            description: "The target, such as 'cpu' or 'nvvm:sm_90a'; without one, the defaults of the passes count",
            default: "",
        },
        PassOption { name: "threads", description: "Threads of the program", default: "1" },
        PassOption { name: "entry", description: "The definition of an Axon program", default: "" },
    ],
    build: |options| {
        let (mut costs, mut tiles) = (String::new(), String::new());
        let format = check_format(options.text(FORMAT.name))?;
        let threads = cpu::pipeline::threads(options)?;
        let text = options.text("target");
        if !text.is_empty() {
            let (backend, machine) = named(text)?;
            costs = backend.costs(&machine).options();
            tiles = backend.tiles(&Codegen { threads, ..Codegen::new(machine) }).options();
        }
        let entry = match options.text("entry") {
            "" => String::new(),
            entry => format!("{{entry={entry}}}"),
        };
        Ok(format!(
            "{CONVERT},convert-axon-to-imap{entry},canonicalize,cse,hoist-invariants,imap-fuse{{{costs}}},canonicalize,cse,\
             imap-schedule{{{tiles}}},{}{{{}={format} {costs}}}",
            PASS.argument, FORMAT.name
        ))
    },
};
