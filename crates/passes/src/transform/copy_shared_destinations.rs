//! `copy-shared-destinations`: a destination that something reads later is copied first.
//!
//! An `imap.generic` that goes on with what a tensor holds (it folds into it, or writes a part of
//! it) cannot have the buffer of the tensor if the tensor is read later. One-shot bufferization
//! would copy it there; but before, `eliminate-empty-tensors` follows destinations backwards
//! without asking who else uses them, and may put the tensor into the buffer of a result, where no
//! copy is possible any more. With the copy written down, it stops there.
//!
//! Before:
//!
//! ```mlir
//! %b = imap.generic .. ins(%x : ..) outs(%a : tensor<4xf32>) ..
//! return %a, %b
//! ```
//!
//! After:
//!
//! ```mlir
//! %c = bufferization.alloc_tensor() copy(%a) : tensor<4xf32>
//! %b = imap.generic .. ins(%x : ..) outs(%c : tensor<4xf32>) ..
//! return %a, %b
//! ```

use melior::ir::ValueLike;
use std::collections::HashMap;
use tc_dialects::{
    imap::Generic,
    mlir::{self, Builder, Val},
    pass::{Failure, PassInfo, PassRun},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "copy-shared-destinations",
    summary: "Copy destinations that are read later",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["bufferization"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    // Operations by their place, and the place at which each value is used last.
    let (mut generics, mut last_uses, mut place) = (Vec::new(), HashMap::new(), 0_usize);
    mlir::walk(pass.op, &mut |op| {
        place += 1;
        generics.extend(Generic::cast(op).map(|generic| (place, generic)));
        for operand in mlir::operands(op) {
            last_uses.insert(mlir::value_key(operand), place);
        }
    });
    for (place, generic) in generics {
        pass.enter(generic.op());
        for init in generic.inits() {
            let last = last_uses.get(&mlir::value_key(init)).copied().unwrap_or(0);
            if is_computed(init) && place < last {
                copy(init, generic);
            }
        }
    }
    Ok(())
}

/// Whether a tensor comes from an `imap.generic`, so that it has a destination of its own.
fn is_computed(tensor: Val) -> bool {
    mlir::is_tensor(tensor.r#type())
        && mlir::defining_op(tensor).is_some_and(|op| Generic::cast(op).is_some())
}

fn copy<'c>(init: Val<'c>, generic: Generic<'c>) {
    let op = generic.op();
    let builder = Builder::before(op);
    let segments = mlir::segments(builder.context, &[0, 1, 0]);
    let copied = builder.value_with(
        "bufferization.alloc_tensor",
        &[init],
        init.r#type(),
        &[("operandSegmentSizes", segments)],
    );
    let first = generic.runtimes().len() + generic.inputs().len();
    for (number, other) in generic.inits().into_iter().enumerate() {
        if other == init {
            mlir::set_operand(op, first + number, copied);
        }
    }
}
