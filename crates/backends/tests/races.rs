//! The tool sentryward, which is not ours, and the emulator look for races and divergent barriers in the PTX of
//! kernels, and in kernels from which a barrier was taken.

use melior::ir::Module;
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
};
use tc_backends::{
    Codegen,
    nvvm::{
        emulator::{self, Argument, Launch, Memory},
        machines, ptx,
    },
};

/// The PTX of a kernel `k` for the oldest machine.
fn compile(kernel: &str) -> String {
    let context = tc_dialects::new_context();
    let text = format!("gpu.module @kernels {{\n{kernel}\n}}");
    let module = Module::parse(&context, &text).expect("a valid kernel");
    ptx(&module, &Codegen::new(machines().remove(0))).expect("a supported kernel")
}

/// The verdict of sentryward on two blocks, such as `race_free` or `potential_race`.
fn verdict(ptx: &str, name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python");
    let file = |ending: &str| -> PathBuf {
        env::temp_dir().join(format!("tc-races-{}-{name}.{ending}", process::id()))
    };
    let launch = "{\"schema\": \"spverify.kernel-input/v1\", \"launch\": {\"grid_dim\": [2, 1, 1], \
                  \"block_dim\": [256, 1, 1], \"dynamic_shared_bytes\": 0}, \"arguments\": []}";
    fs::write(file("ptx"), ptx).expect("a folder for temporary files");
    fs::write(file("json"), launch).expect("a folder for temporary files");
    let output = Command::new("python3")
        .args(["-m", "sentryward", "--timeout", "900"])
        .arg(file("ptx"))
        .arg("--input")
        .arg(file("json"))
        .env("PYTHONPATH", root)
        .output()
        .expect("python3 runs");
    for ending in ["ptx", "json"] {
        fs::remove_file(file(ending)).expect("the file is there");
    }
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            let message = String::from_utf8_lossy(&output.stderr);
            panic!("{error} ('./bootstrap' installs sentryward)\n{message}")
        });
    report["result"].as_str().unwrap_or_default().to_string()
}

/// Runs a kernel on two blocks in the emulator, with an input and an output of so many floats.
fn emulate(ptx: &str, inputs: usize, outputs: usize) -> Result<(), String> {
    let module = emulator::Module::parse(ptx).map_err(|error| error.to_string())?;
    let mut memory = Memory::new();
    let input = memory.create(&vec![0; 4 * inputs], 256);
    let output = memory.allocate(4 * outputs, 256);
    let arguments = vec![Argument::from(input), Argument::from(output)];
    let launch = Launch::new([2, 1, 1], [256, 1, 1], arguments);
    let run = emulator::run(&module, "k", &launch, &mut memory);
    run.map(|_| ()).map_err(|error| error.to_string())
}

/// An operation on rows of `x` as a kernel: what stands after `ins`.
fn kernel(rows: usize, columns: usize, result: &str, operation: &str) -> String {
    format!(
        "gpu.func @k(%x: memref<{rows}x{columns}xf32>, %y: {result}) kernel {{
           {operation}
           gpu.return
         }}"
    )
}

/// A sum of rows.
fn sums(rows: usize, columns: usize) -> String {
    let operation = format!(
        "imap.generic (i)[j] domain: i in [0, {}], j in [0, {}] ins(%x[i, j] : memref<{rows}x{columns}xf32>)
             outs(%y[i] : memref<{rows}xf32>) fold [add f32] {{
         ^bb0(%a: f32):
           imap.yield %a : f32
         }}",
        rows - 1,
        columns - 1
    );
    kernel(rows, columns, &format!("memref<{rows}xf32>"), &operation)
}

fn check(name: &str, kernel: &str, inputs: usize, outputs: usize) {
    let ptx = compile(kernel);
    assert_eq!(verdict(&ptx, name), "race_free", "{ptx}");
    emulate(&ptx, inputs, outputs).unwrap_or_else(|error| panic!("{name}: {error}"));
}

#[test]
fn kernels_have_no_races() {
    let (matrix, turned) = ("memref<20x30xf32>", "memref<30x20xf32>");
    let of_points = |outs: &str, ty: &str, body: &str| {
        let operation = format!(
            "imap.generic (i, j) domain: i in [0, 19], j in [0, 29] ins(%x[i, j] : {matrix})
                 outs(%y[{outs}] : {ty}) {{
             ^bb0(%a: f32):
               {body}
               imap.yield %v : f32
             }}"
        );
        kernel(20, 30, ty, &operation)
    };
    let twice = "%v = arith.addf %a, %a : f32";
    check("points", &of_points("i, j", matrix, twice), 600, 600);
    check("transposition", &of_points("j, i", turned, twice), 600, 600);
    check("threads", &sums(50, 7), 350, 50);
    check("warps", &sums(5, 200), 1000, 5);
    check("blocks", &sums(2, 3000), 6000, 2);
    let scan = "imap.scan (i, t) domain: i in [0, 1], t in [0, 1999] scan t inclusive
                    ins(%x[i, t] : memref<2x2000xf32>) outs(%y[i, t] : memref<2x2000xf32>) fold [add f32] {
                ^bb0(%a: f32):
                  imap.yield %a : f32
                }";
    let square = "imap.generic (i, j)[k] domain: i in [0, 19], j in [0, 19], k in [0, 29]
                      ins(%x[i, k], %x[j, k] : memref<20x30xf32>, memref<20x30xf32>)
                      outs(%y[i, j] : memref<20x20xf32>) fold [add f32] {
                  ^bb0(%a: f32, %b: f32):
                    %v = arith.mulf %a, %b : f32
                    imap.yield %v : f32
                  }";
    check("product", &kernel(20, 30, "memref<20x20xf32>", square), 600, 400);
    let row = "memref<1x300xf32, strided<[300, 1], offset: ?>>";
    let tiles = format!(
        "%c0 = arith.constant 0 : index
         %c1 = arith.constant 1 : index
         %c5 = arith.constant 5 : index
         scf.parallel (%t) = (%c0) to (%c5) step (%c1) {{
           %r = memref.subview %x[%t, 0] [1, 300] [1, 1] : memref<5x300xf32> to {row}
           %w = memref.subview %y[%t, 0] [1, 300] [1, 1] : memref<5x300xf32> to {row}
           %s = memref.alloc() : memref<1xf32>
           imap.generic (i)[j] domain: i in [0, 0], j in [0, 299] ins(%r[i, j] : {row})
               outs(%s[i] : memref<1xf32>) fold [add f32] {{
           ^bb0(%a: f32):
             imap.yield %a : f32
           }}
           imap.generic (i, j) domain: i in [0, 0], j in [0, 299] ins(%r[i, j], %s[i] : {row}, memref<1xf32>)
               outs(%w[i, j] : {row}) {{
           ^bb0(%a: f32, %b: f32):
             %v = arith.divf %a, %b : f32
             imap.yield %v : f32
           }}
           scf.reduce
         }}"
    );
    check("tiles", &kernel(5, 300, "memref<5x300xf32>", &tiles), 1500, 1500);
    check("scan", &kernel(2, 2000, "memref<2x2000xf32>", scan), 4000, 4000);
}

#[test]
fn a_barrier_that_is_missing_is_a_race() {
    let ptx = compile(&sums(2, 3000));
    let is_kept = |line: &&str| !line.trim_start().starts_with("bar.sync");
    let without: Vec<&str> = ptx.lines().filter(is_kept).collect();
    assert!(without.len() < ptx.lines().count(), "{ptx}");
    let without = without.join("\n");
    assert_eq!(verdict(&without, "missing"), "potential_race");
    // A warp reads what another one has not written yet.
    let error = emulate(&without, 6000, 2).expect_err("a race");
    assert!(error.contains("shared memory"), "{error}");
}
