//! Kernels and constants of a module for a device, and the steps of a function that launches them.
//!
//! A step launches a kernel or copies bytes within the device. The order of the steps is static unless control
//! flow decides:
//!
//! ```mlir
//! func.func @f(%x: memref<?xf32>, %y: memref<?xf32>, %workspace: memref<?xi8>) -> i32 {
//!   %a = memref.view %workspace[%c256][%n] : memref<?xi8> to memref<?xf32>
//!   imap.launch @kernels::@f_0 threads(%n) args(%n, %x, %n, %a, %n : ..)
//!   imap.launch @kernels::@f_1 threads(%c1) args(%a, %n, %y : ..)
//! }
//! ```
//!
//! has the steps `f_0(N, x, N, workspace + 256, N)` with `max(1, ceil(N / 256))` blocks, and then `f_1`.

use super::{
    buffers::{VIEWS, needs_loops},
    cost::{Extents, Formula},
};
use melior::ir::{Type, ValueLike, attribute::DenseI32ArrayAttribute, operation::OperationLike};
use std::collections::{HashMap, HashSet};
use tc_dialects::{
    mlir::{self, Blk, Op, Val},
    report::Report,
};
use tc_ir::Expr;

/// The operation that starts a kernel.
pub const LAUNCH: &str = "imap.launch";

/// The bytes that constants are aligned to.
const ALIGNMENT: usize = 256;

/// The constants of a program.
pub struct Constants {
    /// Their bytes, one behind the other.
    pub bytes: Vec<u8>,
    /// Where each begins, by its symbol.
    pub(crate) places: HashMap<String, i64>,
}

/// The bytes of the constants of a module, in order.
///
/// # Errors
/// The bytes of a constant are not known.
pub fn constants(module: Op<'_>) -> Result<Constants, Report<'_>> {
    let mut found = Constants { bytes: Vec::new(), places: HashMap::new() };
    let ops = mlir::body(module, 0).map(mlir::ops).unwrap_or_default();
    for op in ops.into_iter().filter(|op| mlir::is(*op, "memref.global")) {
        let ty = op.attribute("type").ok().and_then(mlir::type_of);
        let name = mlir::string_attr(op, "sym_name").unwrap_or_default();
        let bytes = ty.and_then(|ty| {
            let count: i64 =
                mlir::shape(ty).into_iter().collect::<Option<Vec<_>>>()?.iter().product();
            let count = usize::try_from(count).ok()?;
            let width = mlir::byte_width(mlir::element_type(ty)) as usize;
            let (bytes, is_splat) =
                mlir::dense_bytes(op.attribute("initial_value").ok()?, count, width)?;
            Some(if is_splat { bytes.repeat(count) } else { bytes })
        });
        let bytes = bytes.ok_or_else(|| {
            let message =
                "has no elements in the program; a device needs constants as 'dense' attributes";
            Report::op_error(op, message)
        })?;
        found.bytes.resize(found.bytes.len().next_multiple_of(ALIGNMENT), 0);
        found.places.insert(name.to_string(), found.bytes.len() as i64);
        found.bytes.extend(bytes);
    }
    Ok(found)
}

/// The kernels of a module with their symbols, in order.
pub fn kernel_functions<'c>(module: Op<'c>) -> Vec<(String, Op<'c>)> {
    let name = |op| mlir::string_attr(op, "sym_name").unwrap_or_default();
    let inside = |op| mlir::body(op, 0).map(mlir::ops).unwrap_or_default().into_iter();
    let groups = inside(module).filter(|op| mlir::is(*op, "gpu.module"));
    let kernels = groups.flat_map(|group| {
        let kernels = inside(group).filter(|op| mlir::is(*op, "gpu.func"));
        kernels.map(move |kernel| (format!("@{}::@{}", name(group), name(kernel)), kernel))
    });
    kernels.collect()
}

/// The number of a kernel, and the threads of its blocks.
pub(crate) type Kernel = (i64, i64);

/// The kernels of a module by their symbols.
pub(crate) fn kernels(module: Op) -> HashMap<String, Kernel> {
    let threads = |kernel: Op| {
        let sizes = kernel.attribute("known_block_size").ok();
        let sizes = sizes.and_then(|it| DenseI32ArrayAttribute::try_from(it).ok());
        sizes.map_or(1, |sizes| {
            (0..sizes.len()).map(|dim| i64::from(sizes.element(dim).unwrap_or(1))).product()
        })
    };
    let kernels = (0..).zip(kernel_functions(module));
    kernels.map(|(number, (symbol, kernel))| (symbol, (number, threads(kernel)))).collect()
}

/// Memory of a device that a function uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The argument of the function of this number.
    Argument(usize),
    /// The workspace, which holds all buffers of the function.
    Workspace,
    /// The constants of the program.
    Constants,
}

/// A place in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The memory.
    pub memory: Memory,
    /// Bytes from its start.
    pub offset: Formula,
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// A buffer.
    Address(Address),
    /// An integer.
    Value(Formula),
    /// An element in memory, which the host reads before the launch.
    Element {
        /// Where it is.
        address: Address,
        /// Its bytes.
        bytes: i64,
    },
}

/// A launch or a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The launch of a kernel.
    Launch {
        /// The number of the kernel.
        kernel: usize,
        /// The blocks of the grid.
        blocks: Formula,
        /// The threads of a block.
        threads: i64,
        /// The arguments.
        arguments: Vec<Word>,
    },
    /// A copy of bytes within the device.
    Copy {
        /// Where the bytes go.
        target: Address,
        /// Where the bytes are.
        source: Address,
        /// How many.
        bytes: Formula,
    },
}

/// The steps of a function after `imap-assign-buffers`, if all its checks succeed. `extents` has its
/// arguments without the workspace. `None` if control flow decides, the host computes with an element or writes one,
/// or a number is no formula over the sizes.
pub fn steps(
    module: Op,
    function: Op,
    extents: &Extents,
    constants: &Constants,
) -> Option<Vec<Step>> {
    let body = mlir::body(function, 0)?;
    let workspace = mlir::arguments(body).last().map(|it| mlir::value_key(*it));
    let kernels = kernels(module);
    let mut reader = Reader { extents, constants, kernels, workspace, steps: Vec::new() };
    reader.block(body)?;
    Some(reader.steps)
}

/// The bytes of a workspace: the number that a function of `imap-assign-buffers` stores.
pub fn workspace_bytes(function: Op, extents: &Extents) -> Option<Formula> {
    let mut found = None;
    mlir::walk(function, &mut |op| {
        if mlir::is(op, "llvm.store") {
            found = extents.value(mlir::operand(op, 0));
        }
    });
    Formula::new(extents.ir, found?, extents.names())
}

/// A function of which the steps are read.
struct Reader<'a, 'i> {
    extents: &'a Extents<'i>,
    constants: &'a Constants,
    kernels: HashMap<String, Kernel>,
    /// The key of the argument that is the workspace.
    workspace: Option<usize>,
    steps: Vec<Step>,
}

impl Reader<'_, '_> {
    fn formula(&self, expr: Expr) -> Option<Formula> {
        Formula::new(self.extents.ir, expr, self.extents.names())
    }

    /// Reads a block. If it yields a value, this is the code that the function returns.
    fn block(&mut self, block: Blk) -> Option<()> {
        let code = mlir::operands(mlir::terminator(block)).first().copied();
        for op in mlir::ops(block) {
            match mlir::name(op) {
                LAUNCH => self.launch(op)?,
                "memref.copy" => self.copy(op)?,
                "memref.store" => return None,
                "scf.if" if is_check(op, code) => self.block(mlir::body(op, 0)?)?,
                _ if op.region_count() != 0 => return None,
                _ => {}
            }
        }
        Some(())
    }

    fn launch(&mut self, op: Op) -> Option<()> {
        let ir = self.extents.ir;
        let symbol = op.attribute("kernel").ok()?.to_string();
        let (kernel, threads) = *self.kernels.get(&symbol)?;
        let wanted = self.extents.value(mlir::operand(op, 0))?;
        let blocks = ir.ceil_div(wanted, ir.constant(threads));
        let blocks = ir.max(blocks, ir.constant(1));
        let blocks = self.formula(ir.min(blocks, ir.constant(i64::from(i32::MAX))))?;
        let arguments = mlir::operands(op).into_iter().skip(1).map(|value| self.word(value));
        let arguments = arguments.collect::<Option<_>>()?;
        let kernel = usize::try_from(kernel).ok()?;
        self.steps.push(Step::Launch { kernel, blocks, threads, arguments });
        Some(())
    }

    fn word(&self, value: Val) -> Option<Word> {
        let ir = self.extents.ir;
        if mlir::is_memref(value.r#type()) {
            return Some(Word::Address(self.address(value, ir.constant(0))?));
        }
        let Some(load) = mlir::defining_op(value).filter(|op| mlir::is(*op, "memref.load")) else {
            return Some(Word::Value(self.formula(self.extents.value(value)?)?));
        };
        let buffer = mlir::operand(load, 0);
        let mut place = self.extents.offset(buffer)?;
        for (dim, index) in mlir::operands(load)[1..].iter().enumerate() {
            let step = ir.mul(self.extents.value(*index)?, self.extents.stride(buffer, dim)?);
            place = ir.add(place, step);
        }
        let address = self.address(buffer, ir.mul(place, width(ir, buffer)))?;
        Some(Word::Element { address, bytes: i64::from(mlir::byte_width(value.r#type())) })
    }

    fn copy(&mut self, op: Op) -> Option<()> {
        if needs_loops(op) {
            return None;
        }
        let ir = self.extents.ir;
        let [source, target] = [0, 1].map(|number| mlir::operand(op, number));
        let place = |buffer| {
            let offset = self.extents.offset(buffer)?;
            self.address(buffer, ir.mul(offset, width(ir, buffer)))
        };
        let step = Step::Copy {
            target: place(target)?,
            source: place(source)?,
            bytes: self.formula(ir.mul(self.extents.elements(source)?, width(ir, source)))?,
        };
        self.steps.push(step);
        Some(())
    }

    /// The address that the offset of a buffer counts from, and so many bytes more.
    fn address(&self, mut buffer: Val, mut offset: Expr) -> Option<Address> {
        let memory = loop {
            let Some(op) = mlir::defining_op(buffer) else {
                let around = mlir::argument_parent(buffer)?;
                let is_workspace = self.workspace == Some(mlir::value_key(buffer));
                break match mlir::is(around, "func.func") {
                    true if is_workspace => Memory::Workspace,
                    true => Memory::Argument(mlir::number(buffer)),
                    false => return None,
                };
            };
            match mlir::name(op) {
                "memref.get_global" => {
                    let name = op.attribute("name").ok().and_then(mlir::symbol_of)?;
                    let place = *self.constants.places.get(name)?;
                    offset = self.extents.ir.add(offset, self.extents.ir.constant(place));
                    break Memory::Constants;
                }
                "memref.view" => {
                    let shift = self.extents.value(mlir::operand(op, 1))?;
                    offset = self.extents.ir.add(offset, shift);
                }
                name if !VIEWS.contains(&name) => return None,
                _ => {}
            }
            buffer = mlir::operand(op, 0);
        };
        Some(Address { memory, offset: self.formula(offset)? })
    }
}

/// Whether an `scf.if` runs its first branch if checks of sizes succeed, and otherwise lets the function return `code`.
fn is_check<'c>(op: Op<'c>, code: Option<Val<'c>>) -> bool {
    let Some(code) = code else { return false };
    let has_other = mlir::body(op, 1).is_some_and(|it| 1 < mlir::ops(it).len());
    let is_returned = mlir::results(op) == [code];
    // The form after canonicalization, if the code is known before the branch.
    let tests_code = || {
        let test = mlir::defining_op(mlir::operand(op, 0));
        op.result_count() == 0
            && test.is_some_and(|it| mlir::is(it, "arith.cmpi") && mlir::operand(it, 0) == code)
    };
    !has_other && (is_returned || tests_code()) && !is_read(mlir::operand(op, 0))
}

/// Whether a value depends on an element of a buffer.
fn is_read(value: Val) -> bool {
    let (mut seen, mut open) = (HashSet::new(), vec![value]);
    while let Some(value) = open.pop() {
        let Some(op) = mlir::defining_op(value).filter(|op| seen.insert(mlir::op_key(*op))) else {
            continue;
        };
        if mlir::is(op, "memref.load") || op.region_count() != 0 {
            return true;
        }
        open.extend(mlir::operands(op).into_iter().filter(|it| !mlir::is_memref(it.r#type())));
    }
    false
}

/// The bytes of an element.
fn width(ir: &tc_ir::Context, buffer: Val) -> Expr {
    let ty: Type = mlir::element_type(buffer.r#type());
    ir.constant(i64::from(mlir::byte_width(ty)))
}
