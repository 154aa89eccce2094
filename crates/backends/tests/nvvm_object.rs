//! Host code for a GPU as an object with a C header: C programs call it, with a table of functions that notes its
//! calls, and with a driver whose kernels run in the emulator.

use melior::ir::Module;
use serde_json::Value;
use std::{
    ffi::{CStr, CString, c_char, c_int, c_uint, c_void},
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tc_backends::{
    Artifact, Codegen, Form, Request, Session, Source,
    nvvm::{BACKEND, Device, Emulator, Launch, emulator, machines},
};

/// A function with a check, a constant, a buffer in the workspace, and a loop that reads.
const DOUBLING: &str = r#"
  func.func @f(%x: tensor<?xf32> {tc.name = "x", tc.sizes = ["N"]})
      -> (tensor<?xf32> {tc.name = "y", tc.extents = #imap.map<(){N} -> (N)>}) {
    %c0 = arith.constant 0 : index
    %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %n = tensor.dim %x, %c0 : tensor<?xf32>
    %c4 = arith.constant 4 : index
    %ok = arith.cmpi sle, %n, %c4 : index
    imap.check %ok, "N <= 4"
    %limit = arith.constant 100.0 : f32
    %e0 = tensor.empty(%n) : tensor<?xf32>
    %start = imap.generic (i){N} domain: i in [0, N - 1], N in [1, 99] runtime(%n : index)
        ins(%x[i], %c[i mod 4] : tensor<?xf32>, tensor<4xf32>) outs(%e0[i] : tensor<?xf32>) {
    ^bb0(%u: f32, %v: f32):
      %w = arith.addf %u, %v : f32
      imap.yield %w : f32
    } -> tensor<?xf32>
    %r = scf.while (%t = %start) : (tensor<?xf32>) -> tensor<?xf32> {
      %v = tensor.extract %t[%c0] : tensor<?xf32>
      %small = arith.cmpf olt, %v, %limit : f32
      scf.condition(%small) %t : tensor<?xf32>
    } do {
    ^bb0(%t: tensor<?xf32>):
      %e = tensor.empty(%n) : tensor<?xf32>
      %s = imap.generic (i){N} domain: i in [0, N - 1], N in [1, 99] runtime(%n : index)
          ins(%t[i] : tensor<?xf32>) outs(%e[i] : tensor<?xf32>) {
      ^bb0(%u: f32):
        %w = arith.addf %u, %u : f32
        imap.yield %w : f32
      } -> tensor<?xf32>
      scf.yield %s : tensor<?xf32>
    }
    return %r : tensor<?xf32>
  }"#;

/// A table of functions that notes calls. Reads give 25, 50 and 100, and then fail.
const RECORDER: &str = r#"
#include "program.h"
#include <stdio.h>
#include <string.h>

static int reads;

static void launch(void *context, int32_t kernel, int32_t blocks, int32_t threads, int32_t shared_bytes,
                   const uint64_t *arguments, int32_t num_arguments) {
  (void)arguments;
  printf("%s%s %d %d %d %d\n", (const char *)context, program_kernels[kernel].name,
         blocks, threads - program_kernels[kernel].threads, shared_bytes, num_arguments > 0);
}

static void copy(void *context, tc_gpu_address target, tc_gpu_address source, int64_t bytes) {
  printf("%scopy %d %d\n", (const char *)context, target != source, (int)bytes);
}

static int32_t read_values(void *context, void *target, tc_gpu_address source, int64_t bytes) {
  static const float values[3] = {25, 50, 100};
  (void)source;
  if (reads == 3)
    return 1;
  memcpy(target, &values[reads++], (size_t)bytes);
  printf("%sread %d\n", (const char *)context, (int)bytes);
  return 0;
}

static void write_values(void *context, tc_gpu_address target, const void *source, int64_t bytes) {
  (void)target, (void)source, (void)bytes;
  printf("%swrite\n", (const char *)context);
}

int main(void) {
  char context[] = "> ";
  struct tc_gpu_device device = {context, launch, copy, read_values, write_values};
  float values[4];
  memcpy(values, program_constants, sizeof values);
  printf("%d kernels, %d bytes: %g %g %g %g\n", program_num_kernels, (int)program_constant_bytes(),
         values[0], values[1], values[2], values[3]);
  if (program_kernels[program_num_kernels].name != 0)
    return 1;
  printf("%d\n", (int)f_workspace_bytes(3) % 256);
  if (f_workspace_bytes(3) < 3 * 4)
    return 2;
  printf("%d\n", f(0x1000, 0x2000, 3, 0x3000, 0x4000, &device));
  int code = f(0x1000, 0x2000, 3, 0x3000, 0x4000, &device);
  printf("%d %s\n", code, f_error(code));
  code = f(0x1000, 0x2000, 5, 0x3000, 0x4000, &device);
  printf("%d %s\n", code, f_error(code));
  return 0;
}
"#;

/// A driver of GPUs that passes calls on.
const DRIVER: &str = r#"
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct callbacks {
  void *context;
  void (*load)(void *context, const char *ptx);
  uint64_t (*allocate)(void *context, size_t bytes);
  void (*free)(void *context, uint64_t address);
  int (*launch)(void *context, const char *name, unsigned blocks, unsigned threads, unsigned shared, void **arguments);
  int (*copy)(void *context, uint64_t target, uint64_t source, size_t bytes);
  int (*write)(void *context, uint64_t target, const void *source, size_t bytes);
  int (*read)(void *context, void *target, uint64_t source, size_t bytes);
} callbacks;

static int token;

int cuInit(unsigned flags) { return (int)flags; }
int cuGetErrorString(int error, const char **text) { return *text = "a fault", error * 0; }
int cuDeviceGet(int *device, int number) { return *device = number; }
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = &token, device; }
int cuDevicePrimaryCtxRelease_v2(int device) { return device; }
int cuCtxSetCurrent(void *context) { return context != &token; }
int cuStreamCreate(void **stream, unsigned flags) { return *stream = &token, flags != 1; }
int cuStreamDestroy_v2(void *stream) { return stream != &token; }
int cuStreamSynchronize(void *stream) { return stream != &token; }
int cuModuleLoadData(void **module, const char *ptx) {
  *module = &token;
  callbacks.load(callbacks.context, ptx);
  return 0;
}
int cuModuleUnload(void *module) { return module != &token; }
int cuModuleGetFunction(const char **function, void *module, const char *name) {
  *function = name;
  return module != &token;
}
int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  *address = callbacks.allocate(callbacks.context, bytes);
  return *address == 0;
}
int cuMemFree_v2(uint64_t address) { return callbacks.free(callbacks.context, address), 0; }
int cuMemcpyHtoDAsync_v2(uint64_t target, const void *source, size_t bytes, void *stream) {
  return stream != &token || callbacks.write(callbacks.context, target, source, bytes);
}
int cuMemcpyDtoHAsync_v2(void *target, uint64_t source, size_t bytes, void *stream) {
  return stream != &token || callbacks.read(callbacks.context, target, source, bytes);
}
int cuMemcpyDtoDAsync_v2(uint64_t target, uint64_t source, size_t bytes, void *stream) {
  return stream != &token || callbacks.copy(callbacks.context, target, source, bytes);
}
int cuLaunchKernel(const char *name, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared, void *stream, void **arguments, void **extra) {
  return stream != &token || y != 1 || z != 1 || block_y != 1 || block_z != 1 || extra != NULL ||
         callbacks.launch(callbacks.context, name, x, block_x, shared, arguments);
}
"#;

fn compile(module: &Module) -> Box<dyn Artifact> {
    BACKEND.compile(module, &Codegen::new(machines()[0].clone())).expect("it is supported")
}

/// Writes the object, the header and the PTX of a program to a folder.
fn write(folder: &str, name: &str, program: &dyn Artifact) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(folder);
    fs::create_dir_all(&folder).unwrap();
    let file = |ending: &str| folder.join(format!("{name}.{ending}"));
    let header = program.interface(Form::Object, name).unwrap();
    assert_eq!(header.ending, "h");
    fs::write(file("h"), header.text).unwrap();
    fs::write(file("o"), program.emit(Form::Object).unwrap()).unwrap();
    fs::write(file("ptx"), program.emit(Form::Ptx).unwrap()).unwrap();
    folder
}

fn start(folder: &Path, command: &mut Command) -> Output {
    command.current_dir(folder).output().expect("the program starts")
}

/// Runs a command in a folder. Returns its output.
///
/// # Panics
/// It fails.
#[track_caller]
fn run_in(folder: &Path, command: &mut Command) -> String {
    let output = start(folder, command);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const WARNINGS: [&str; 3] = ["-Wall", "-Wextra", "-Werror"];

#[test]
fn a_table_of_functions_in_c_gets_the_calls_of_the_object() {
    let context = tc_dialects::new_context();
    let module = Module::parse(&context, DOUBLING).expect("a valid program");
    let folder = write("nvvm_object_table", "program", &*compile(&module));
    fs::write(folder.join("main.c"), RECORDER).unwrap();
    for language in [["-std=c11", "-x", "c"], ["-std=c++17", "-x", "c++"]] {
        let mut command = Command::new("cc");
        command.args(WARNINGS).args(language);
        command.args(["main.c", "-x", "none", "program.o", "-o", "main"]);
        run_in(&folder, &mut command);
        let output = run_in(&folder, &mut Command::new("./main"));
        let mut lines = output.lines().collect::<Vec<_>>();
        // The first run doubles twice; the second one cannot read; the third one has too large a size.
        assert_eq!(lines[..2], ["2 kernels, 16 bytes: 1 2 3 4", "0"], "{output}");
        assert_eq!(lines.pop(), Some("1 N <= 4"), "{output}");
        assert_eq!(lines.pop(), Some("-2 the device failed"), "{output}");
        let count = |text: &str| lines.iter().filter(|line| line.starts_with(text)).count();
        assert_eq!(count("> f_0 1 0 0 1"), 2, "{output}");
        assert_eq!(count("> f_1 1 0 0 1"), 2, "{output}");
        assert_eq!(count("> read 4"), 3, "{output}");
        assert_eq!(count("> write"), 0, "{output}");
        assert!(lines.iter().filter(|it| it.contains("copy")).all(|it| *it == "> copy 1 12"));
    }
}

/// Compiles `softmax.tc` of the examples for all sizes. Returns the folder of the files, and the manifest.
fn softmax(folder: &str) -> (PathBuf, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let text = fs::read(root.join("tc/softmax.tc")).expect("the example is there");
    let session = Session::new("cpu").expect("this machine");
    let program = session.open(Source::new("softmax.tc", text)).expect("a valid program");
    let request = Request { dynamic: true, ..Request::default() };
    let lowered = session.lower(&*program, &request).expect("a valid program");
    let program = compile(&lowered.module);
    let manifest = program.interface(Form::Ptx, "softmax").unwrap().text;
    let folder = write(folder, "softmax", &*program);
    for file in ["softmax.c", "device.h"] {
        fs::copy(root.join("gpu").join(file), folder.join(file)).unwrap();
    }
    (folder, manifest)
}

#[test]
fn the_example_in_c_runs_or_reports_that_the_driver_is_missing() {
    let (folder, _) = softmax("nvvm_object_alone");
    let mut command = Command::new("cc");
    command.args(["-std=c11", "-O1"]).args(WARNINGS);
    run_in(&folder, command.args(["softmax.c", "softmax.o", "-ldl", "-lm", "-o", "softmax"]));
    let output = start(&folder, Command::new("./softmax").arg("softmax.ptx"));
    let errors = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => assert!(String::from_utf8_lossy(&output.stdout).contains("values are right")),
        code => {
            assert_eq!(code, Some(1), "{errors}");
            assert!(errors.starts_with("error: no driver of NVIDIA's GPUs: "), "{errors}");
        }
    }
    let output = start(&folder, Command::new("./softmax").arg("missing.ptx"));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "error: cannot read missing.ptx\n");
    assert_eq!(start(&folder, &mut Command::new("./softmax")).status.code(), Some(2));
}

/// The device behind the driver, with what it was told.
struct Behind {
    device: Emulator,
    module: emulator::Module,
    names: Vec<String>,
    loaded: Vec<String>,
    launches: Vec<(String, u32, u32)>,
    live: Vec<u64>,
}

#[repr(C)]
struct Callbacks {
    context: *mut Behind,
    load: extern "C" fn(&mut Behind, *const c_char),
    allocate: extern "C" fn(&mut Behind, usize) -> u64,
    free: extern "C" fn(&mut Behind, u64),
    launch: extern "C" fn(
        &mut Behind,
        *const c_char,
        c_uint,
        c_uint,
        c_uint,
        *const *const u8,
    ) -> c_int,
    copy: extern "C" fn(&mut Behind, u64, u64, usize) -> c_int,
    write: extern "C" fn(&mut Behind, u64, *const u8, usize) -> c_int,
    read: extern "C" fn(&mut Behind, *mut u8, u64, usize) -> c_int,
}

fn text(pointer: *const c_char) -> String {
    // SAFETY: the driver passes texts that end in a zero.
    unsafe { CStr::from_ptr(pointer) }.to_str().expect("ASCII").to_string()
}

extern "C" fn load(behind: &mut Behind, ptx: *const c_char) {
    behind.loaded.push(text(ptx));
}

extern "C" fn allocate(behind: &mut Behind, bytes: usize) -> u64 {
    let address = behind.device.allocate(bytes).unwrap_or(0);
    behind.live.push(address);
    address
}

extern "C" fn free(behind: &mut Behind, address: u64) {
    let place = behind.live.iter().position(|it| *it == address);
    behind.live.swap_remove(place.expect("an allocated buffer"));
    behind.device.free(address);
}

extern "C" fn launch(
    behind: &mut Behind,
    name: *const c_char,
    blocks: c_uint,
    threads: c_uint,
    shared: c_uint,
    arguments: *const *const u8,
) -> c_int {
    let name = text(name);
    let sizes = behind.module.parameter_sizes(&name).expect("a kernel of the program");
    let word = |(number, size): (usize, &usize)| {
        let mut bytes = [0; 8];
        // SAFETY: there is a pointer to each argument, which has so many bytes.
        unsafe { std::ptr::copy_nonoverlapping(*arguments.add(number), bytes.as_mut_ptr(), *size) };
        u64::from_le_bytes(bytes)
    };
    let arguments = sizes.iter().enumerate().map(word).collect();
    let kernel = behind.names.iter().position(|it| *it == name).expect("a kernel of the program");
    behind.launches.push((name, blocks, threads));
    c_int::from(
        behind.device.launch(Launch { kernel, blocks, threads, shared, arguments }).is_err(),
    )
}

extern "C" fn copy(behind: &mut Behind, target: u64, source: u64, bytes: usize) -> c_int {
    c_int::from(behind.device.copy(target, source, bytes).is_err())
}

extern "C" fn write_bytes(
    behind: &mut Behind,
    target: u64,
    source: *const u8,
    bytes: usize,
) -> c_int {
    // SAFETY: the driver passes so many bytes.
    let source = unsafe { std::slice::from_raw_parts(source, bytes) };
    c_int::from(behind.device.write(target, source).is_err())
}

extern "C" fn read_bytes(behind: &mut Behind, target: *mut u8, source: u64, bytes: usize) -> c_int {
    // SAFETY: the driver passes room for so many bytes.
    let target = unsafe { std::slice::from_raw_parts_mut(target, bytes) };
    c_int::from(behind.device.read(source, target).is_err())
}

/// A library, and a symbol in it.
fn symbol(path: &Path, name: &CStr) -> *mut c_void {
    let path = CString::new(path.to_str().expect("UTF-8")).expect("no zero in a path");
    // SAFETY: the libraries were compiled for this test. They stay loaded.
    let found = unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null(), "{:?}", CStr::from_ptr(libc::dlerror()));
        libc::dlsym(library, name.as_ptr())
    };
    assert!(!found.is_null(), "{name:?}");
    found
}

#[test]
fn the_example_in_c_computes_with_a_driver_that_emulates() {
    let (folder, manifest) = softmax("nvvm_object_driver");
    fs::write(folder.join("driver.c"), DRIVER).unwrap();
    let shared = ["-std=c11", "-shared", "-fPIC"];
    let mut command = Command::new("cc");
    command.args(shared).args(["-Wl,-soname,libcuda.so.1", "driver.c", "-o", "driver.so"]);
    run_in(&folder, &mut command);
    let mut command = Command::new("cc");
    command.args(shared).args(WARNINGS).arg("-Dmain=example");
    run_in(&folder, command.args(["softmax.c", "softmax.o", "-ldl", "-lm", "-o", "example.so"]));

    let manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    let kernels = manifest["kernels"].as_array().expect("a list");
    let names: Vec<_> = kernels.iter().filter_map(|it| it["name"].as_str()).collect();
    let names: Vec<_> = names.into_iter().map(str::to_string).collect();
    let ptx = fs::read_to_string(folder.join("softmax.ptx")).unwrap();
    let mut behind = Behind {
        device: Emulator::new(&ptx, &names).expect("valid PTX"),
        module: emulator::Module::parse(&ptx).expect("valid PTX"),
        names,
        loaded: Vec::new(),
        launches: Vec::new(),
        live: Vec::new(),
    };
    let callbacks = symbol(&folder.join("driver.so"), c"callbacks").cast::<Callbacks>();
    let example = symbol(&folder.join("example.so"), c"example");
    let arguments = ["softmax", folder.join("softmax.ptx").to_str().expect("UTF-8")]
        .map(|it| CString::new(it).expect("no zero in a path"));
    let pointers = arguments.each_ref().map(|it| it.as_ptr());
    // SAFETY: the variable and the function have these types in the sources. `behind` outlives the call.
    let status = unsafe {
        callbacks.write(Callbacks {
            context: &raw mut behind,
            load,
            allocate,
            free,
            launch,
            copy,
            write: write_bytes,
            read: read_bytes,
        });
        let example = std::mem::transmute::<
            *mut c_void,
            extern "C" fn(c_int, *const *const c_char) -> c_int,
        >(example);
        example(2, pointers.as_ptr())
    };
    assert_eq!(status, 0);
    assert_eq!(behind.loaded, [ptx]);
    assert!(behind.live.is_empty(), "{:?}", behind.live);
    // The launches are those of the manifest.
    let steps = manifest["functions"][0]["steps"].as_array().expect("no control flow");
    let planned: Vec<_> = steps.iter().filter_map(|it| it["kernel"].as_str()).collect();
    let launched: Vec<_> = behind.launches.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!((launched, steps.len()), (planned, 3));
    assert!(behind.launches.iter().all(|(_, blocks, threads)| 0 < *blocks && *threads == 256));
}
