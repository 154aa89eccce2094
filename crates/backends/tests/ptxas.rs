//! NVIDIA's assembler accepts the PTX of kernels, for every supported machine.

use melior::ir::Module;
use std::{env, path::Path, sync::Once};
use tc_backends::{
    Codegen, backend,
    nvvm::{assemble, machines, ptx},
};

/// Lets the package of ptxas that `./bootstrap` installs be found.
fn use_installed_package() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python");
        let others = env::var_os("PYTHONPATH").unwrap_or_default();
        let folders = [root].into_iter().chain(env::split_paths(&others));
        let folders = env::join_paths(folders).expect("paths without colons");
        // SAFETY: every test calls this function before it reads the environment.
        unsafe { env::set_var("PYTHONPATH", folders) };
    });
}

/// Assembles a kernel for each machine.
fn check(kernel: &str) {
    use_installed_package();
    let context = tc_dialects::new_context();
    let text = format!("gpu.module @kernels {{\n{kernel}\n}}");
    let module = Module::parse(&context, &text).expect("a valid kernel");
    for machine in machines() {
        let name = machine.cpu.clone();
        let text = ptx(&module, &Codegen::new(machine.clone())).expect("a supported kernel");
        let cubin = assemble(&text, &machine).unwrap_or_else(|error| {
            panic!("{name}: {error} ('./bootstrap' installs ptxas)\n{text}")
        });
        assert!(cubin.starts_with(b"\x7fELF"), "{name}");
        let symbol = b"k\0";
        assert!(cubin.windows(symbol.len()).any(|it| it == symbol), "{name}: no kernel 'k'");
    }
}

#[test]
fn elementwise_kernels_assemble() {
    check(
        "gpu.func @k(%x: memref<37x64xf32>, %b: memref<37xbf16>, %y: memref<37x64xf16>) kernel {
           imap.generic (i, j) domain: i in [0, 36], j in [0, 63]
               ins(%x[i, j], %b[i] : memref<37x64xf32>, memref<37xbf16>)
               outs(%y[i, j] : memref<37x64xf16>) {
           ^bb0(%a: f32, %c: bf16):
             %d = arith.extf %c : bf16 to f32
             %s = arith.addf %a, %d : f32
             %v = imap.builtin \"exp\"(%s) : f32
             %w = imap.builtin \"tanh\"(%v) : f32
             %r = arith.truncf %w : f32 to f16
             imap.yield %r : f16
           }
           gpu.return
         }",
    );
}

#[test]
fn folds_of_threads_warps_and_blocks_assemble() {
    for columns in [3, 40, 3000] {
        check(&format!(
            "gpu.func @k(%x: memref<5x{columns}xf64>, %y: memref<5xf64>) kernel {{
               imap.generic (i)[j] domain: i in [0, 4], j in [0, {}] ins(%x[i, j] : memref<5x{columns}xf64>)
                   outs(%y[i] : memref<5xf64>) fold [maximumf f64] {{
               ^bb0(%a: f64):
                 imap.yield %a : f64
               }}
               gpu.return
             }}",
            columns - 1
        ));
    }
}

#[test]
fn combiner_regions_assemble() {
    check(
        "gpu.func @k(%x: memref<4x300xf32>, %n: memref<4xi64>) kernel {
           imap.generic (i)[j] domain: i in [0, 3], j in [0, 299] ins(%x[i, j] : memref<4x300xf32>)
               outs(%n[i] : memref<4xi64>) fold [f32 identity 0xFF800000, i64 identity 0] {
           ^bb0(%a: f32):
             %j = imap.index range 0
             %k = arith.index_cast %j : index to i64
             imap.yield %a, %k : f32, i64
           } combine {
           ^bb0(%v0: f32, %i0: i64, %v1: f32, %i1: i64):
             %more = arith.cmpf ogt, %v0, %v1 : f32
             %r = arith.select %more, %v0, %v1 : f32
             %s = arith.select %more, %i0, %i1 : i64
             imap.yield %r, %s : f32, i64
           } epilogue {
           ^bb0(%v: f32, %i: i64, %a: f32):
             imap.yield %i : i64
           }
           gpu.return
         }",
    );
}

#[test]
fn products_with_guards_assemble() {
    check(
        "gpu.func @k(%a: memref<6x40xbf16>, %b: memref<40x33xbf16>, %y: memref<6x33xf32>) kernel {
           imap.generic (m, n)[k] domain: m in [0, 5], n in [0, 32], k in [0, 39]
               ins(%a[m, k], %b[k - 1, n] where k - 1 in [0, 39] : memref<6x40xbf16>, memref<40x33xbf16>)
               outs(%y[m, n] : memref<6x33xf32>) fold [add f32] {
           ^bb0(%x: bf16, %w: bf16):
             %c = arith.extf %x : bf16 to f32
             %d = arith.extf %w : bf16 to f32
             %v = arith.mulf %c, %d : f32
             imap.yield %v : f32
           }
           gpu.return
         }",
    );
}

#[test]
fn products_in_shared_memory_assemble() {
    check(
        "gpu.func @k(%a: memref<900x70xf32>, %b: memref<70x800xf32>, %y: memref<900x800xf32>) kernel {
           imap.generic (m, n)[k] domain: m in [0, 899], n in [0, 799], k in [0, 69]
               ins(%a[m, k], %b[k, n] : memref<900x70xf32>, memref<70x800xf32>)
               outs(%y[m, n] : memref<900x800xf32>) fold [add f32] {
           ^bb0(%x: f32, %w: f32):
             %v = arith.mulf %x, %w : f32
             imap.yield %v : f32
           }
           gpu.return
         }",
    );
}

#[test]
fn rejected_code_is_an_error_with_the_reason() {
    use_installed_package();
    let machine = machines().remove(0);
    let text =
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n  nothing;\n}\n";
    let error = assemble(text, &machine).expect_err("it is not PTX");
    assert!(matches!(error, backend::Error::Assembler(_)), "{error}");
    assert!(error.to_string().contains("line 5"), "{error}");
}
