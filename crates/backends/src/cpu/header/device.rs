//! The part of a header for code that launches kernels: the table of functions that it calls, the kernels, the
//! constants, and functions on addresses of the device.

use super::{Names, describe, identifier, list, quoted};
use crate::{backend::Signature, cpu::interface::WORKSPACE_BYTES};
use std::{collections::BTreeSet, fmt::Write};
use tc_passes::transform::check_device_reads::DEVICE_FAILED;

/// The parameters of functions after their sizes.
pub(super) const PARAMETERS: [&str; 3] = ["workspace", "constants", "device"];

/// Types that all headers share. The structure is the table of [`crate::nvvm::Device`]'s functions.
const TYPES: &str = "\
#ifndef TC_GPU_TYPES
#define TC_GPU_TYPES
/* An address in the memory of the device, as CUdeviceptr of CUDA. */
typedef uint64_t tc_gpu_address;

/* A kernel: its name, the threads of a block, and the bytes of shared memory that it declares. */
struct tc_gpu_kernel {
  const char *name;
  int32_t threads;
  int32_t static_shared_bytes;
};

/*
 * The functions of a device, which get the context first. They work in the order of the calls, as on one
 * stream. Only read waits for the device.
 *
 * launch: starts a kernel, by its number, with a grid of so many blocks, and so many bytes of dynamic
 *   shared memory. Fewer blocks are right, too, but at least one. Each argument is in the low bytes of a word.
 * copy: copies bytes within the device.
 * read: copies bytes to the host. Returns 0, or another number if it or a call before it has failed.
 * write: copies bytes to the device. The source may change when it returns.
 */
struct tc_gpu_device {
  void *context;
  void (*launch)(void *context, int32_t kernel, int32_t blocks, int32_t threads, int32_t shared_bytes,
                 const uint64_t *arguments, int32_t num_arguments);
  void (*copy)(void *context, tc_gpu_address target, tc_gpu_address source, int64_t bytes);
  int32_t (*read)(void *context, void *target, tc_gpu_address source, int64_t bytes);
  void (*write)(void *context, tc_gpu_address target, const void *source, int64_t bytes);
};
#endif

";

/// The program that host code launches.
pub(crate) struct Device {
    /// The kernels in the order of their numbers.
    pub kernels: Vec<Kernel>,
    /// The bytes of the constants.
    pub constant_bytes: usize,
    /// The symbol of the constants in the object.
    pub constants: String,
}

/// A kernel.
pub(crate) struct Kernel {
    /// The name in the PTX.
    pub name: String,
    /// The threads of a block.
    pub threads: u32,
    /// The bytes of shared memory that it declares.
    pub static_shared_bytes: usize,
}

impl Device {
    /// Declares the types, the kernels and the constants.
    pub(super) fn write_program(
        &self,
        text: &mut String,
        stem: &str,
        taken: &mut BTreeSet<String>,
    ) {
        text.push_str(TYPES);
        let mut own = |what: &str| identifier(&format!("{stem}_{what}"), taken);
        let (count, kernels) = (own("num_kernels"), own("kernels"));
        let (bytes, constants) = (own("constant_bytes"), own("constants"));
        let _ = write!(
            text,
            "/* The kernels in the order of their numbers. The last entry has no name. */\n\
             enum {{ {count} = {} }};\nstatic const struct tc_gpu_kernel {kernels}[] = {{\n",
            self.kernels.len()
        );
        for Kernel { name, threads, static_shared_bytes } in &self.kernels {
            let _ = writeln!(text, "  {{{}, {threads}, {static_shared_bytes}}},", quoted(name));
        }
        let _ = write!(
            text,
            "  {{0, 0, 0}}\n}};\n\n\
             /* The constants of the program, and their bytes. Functions get them in memory of the device. */\n\
             static inline int64_t {bytes}(void) {{ return INT64_C({}); }}\n",
            self.constant_bytes
        );
        let label = quoted(&self.constants);
        let _ = writeln!(text, "extern const unsigned char {constants}[] __asm__({label});\n");
    }
}

/// Declares the function that computes the bytes of a workspace, and the one that launches kernels.
pub(super) fn write_declarations(text: &mut String, signature: &Signature, names: &Names) {
    let Names { function, more, .. } = names;
    let [workspace, constants, device] = &more[..] else { unreachable!("all of `PARAMETERS`") };
    let mut sizes = names.size_parameters(signature);
    sizes.extend(names.unknown_parameters());
    let _ = write!(
        text,
        "/* The bytes of the workspace of {function}. */\nint64_t {function}{WORKSPACE_BYTES}({});\n\n/*\n",
        list(&sizes)
    );
    for number in 0..signature.arguments.len() {
        let _ = writeln!(text, " * {}", describe(signature, names, number));
    }
    let _ = write!(
        text,
        " *\n * All arrays are row-major in memory of the device, aligned to 256 bytes, and must not overlap.\n \
         * {workspace} has {function}{WORKSPACE_BYTES} bytes, and {constants} holds the constants of the program.\n \
         * Returns when all calls of {device} are made: 0, the number of the check that failed, or\n \
         * {DEVICE_FAILED} if a read failed: see {function}_error.\n */\n"
    );
    let addresses = names.arguments.iter().map(|name| format!("tc_gpu_address {name}"));
    let mut parameters: Vec<_> = addresses.chain(sizes).collect();
    parameters.extend([
        format!("tc_gpu_address {workspace}"),
        format!("tc_gpu_address {constants}"),
        format!("const struct tc_gpu_device *{device}"),
    ]);
    let _ = write!(text, "int {function}({});\n\n", list(&parameters));
}
