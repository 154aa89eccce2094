//! Operations of the `linalg` dialect in a program, which no pass of ours rewrites.

use melior::ir::operation::OperationLike;
use tc_dialects::{
    diagnostic::{RemarkKind, Report, Severity, remark},
    mlir::{self, Op},
};

const REASON: &str = "linalg operations are not fused with imap operations";
const ADVICE: &str = "write the operation as 'imap.generic', or fuse linalg operations with each \
                      other first, by 'tc-opt --linalg-fuse-elementwise-ops'";

/// The operations in `root` that compute tensors or buffers, in order.
fn operations<'c>(root: Op<'c>) -> Vec<Op<'c>> {
    let mut found = Vec::new();
    mlir::walk(root, &mut |op| {
        let name = mlir::name(op).strip_prefix("linalg.");
        if name.is_some_and(|name| !matches!(name, "yield" | "index")) {
            found.push(op);
        }
    });
    found
}

/// Emits a missed remark of a pass for each operation of a function.
pub fn remark_not_fused(function: Op, pass: &str) {
    let name = mlir::string_attr(function, "sym_name").unwrap_or_default();
    for op in operations(function) {
        let arguments = [("Operation", mlir::name(op)), ("Reason", REASON), ("Advice", ADVICE)];
        remark(op.location(), RemarkKind::Missed, pass, "linalg", name, &arguments);
    }
}

/// Reports as a diagnostic that a program has such operations, at the first one.
pub fn report_not_fused(program: Op) {
    let operations = operations(program);
    let Some(first) = operations.first() else { return };
    let others = match operations.len() - 1 {
        0 => String::new(),
        others => format!(" (the program has {others} more)"),
    };
    let message = format!("'{}': {REASON}{others}", mlir::name(*first));
    Report::at(first.location(), Severity::Remark, message).note(None, ADVICE).emit();
}
