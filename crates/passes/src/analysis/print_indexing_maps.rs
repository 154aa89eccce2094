//! `hlo-print-indexing-maps`: print the indexing maps of HLO instructions.
//!
//! This pass does not change the IR. For each instruction, it prints to the standard output the maps
//! from outputs to operands, the maps from operands to outputs, and the number of elements of each
//! operand that a full read of the outputs touches; see the module [`tc_dialects::hlo::indexing`]. A
//! `fusion` has its composed maps, and those to each inner instruction. It also has the maps from each
//! inner reduction or transpose through the epilogue to the output. If a layout is not row-major, the
//! map between the elements in memory order follows. `only=NAME,NAME` prints instructions and
//! computations of these names.
//!
//! If an instruction has more than 65536 result-operand pairs, a line says that they are omitted.
//!
//! ```text
//! ROOT s = f32[4] slice(x)
//!   output -> operand 0 (x): (d0) -> (d0 * 2 + 1), domain: d0 in [0, 3]
//!   operand 0 (x) -> output: (d0) -> ((d0 - 1) / 2), domain: d0 in [1, 7], (d0 - 1) mod 2 in [0, 0]
//!   reads 4 of 9 elements of operand 0 (x), 44.4%
//! ```
//!
//! Maps follow the semantics of an instruction. `except where` names a part of the domain without reads:
//! in the first operand of a `dynamic-update-slice`, the elements that the update replaces; in the pad
//! value of a `pad`, the elements of the operand. `at most` means that the number of reads depends on
//! data.
//!
//! In five cases XLA's analysis returns other maps, which `like-xla=true` prints: indices that are
//! constants and may be out of bounds count as in bounds; the update of a `dynamic-update-slice` has a
//! map everywhere in the output; no map has exceptions; a `scan` needs the inputs of the same step only;
//! with several batch groups, a convolution reads every group of the batch.

use melior::ir::Location;
use std::io::{self, BufWriter, Write};
use tc_dialects::{
    hlo::{
        dialect,
        indexing::{Indexing, Selection},
    },
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::Report,
    text::Severity,
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "hlo-print-indexing-maps",
    summary: "Print the indexing maps of HLO instructions",
    anchor: "builtin.module",
    options: &[
        PassOption {
            name: "like-xla",
            description: "Print XLA's maps if they differ from the semantics",
            default: "false",
        },
        ONLY,
    ],
    dependent_dialects: &[],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    print(pass, |indexing, out| {
        let indexing = if pass.options.flag("like-xla") { indexing.like_xla() } else { indexing };
        match selected(pass, &indexing)? {
            Some(selection) => indexing.write_selection(&selection, out),
            None => indexing.write_module(out),
        }
    })
}

/// The option that [`selected`] reads.
pub(super) const ONLY: PassOption = PassOption {
    name: "only",
    description: "Names of instructions and computations, with commas; all if empty",
    default: "",
};

/// What the option `only` names, if it is given.
pub(super) fn selected(pass: &PassRun, indexing: &Indexing) -> io::Result<Option<Selection>> {
    let names = pass.options.text(ONLY.name).split(',');
    let names = names.map(|name| name.trim().trim_start_matches('%'));
    let mut names = names.filter(|name| !name.is_empty()).peekable();
    if names.peek().is_none() {
        return Ok(None);
    }
    indexing.select(names).map(Some).map_err(|name| {
        let message = format!(
            "option 'only' expects names of instructions or computations of the module, found '{name}'"
        );
        io::Error::new(io::ErrorKind::NotFound, message)
    })
}

/// Prints something about a module of HLO to the standard output.
pub(super) fn print(
    pass: &PassRun,
    write: impl FnOnce(Indexing, &mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let fail = |report: Report| {
        report.emit();
        Failure
    };
    let (module, _) = dialect::export_located(pass.op).map_err(fail)?;
    let mut out = BufWriter::new(io::stdout().lock());
    match write(Indexing::of(&module), &mut out).and_then(|()| out.flush()) {
        // A reader that stops early, such as `head`, is no failure.
        // No place in the program is wrong.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let nowhere = Location::unknown(pass.context);
            Err(fail(Report::at(nowhere, Severity::Error, error.to_string())))
        }
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(fail(Report::op_error(pass.op, format!("cannot be printed: {error}"))))
        }
        _ => Ok(()),
    }
}
