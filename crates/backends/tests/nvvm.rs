//! Kernels as PTX, executed by the emulator and compared with references in f64, on few and on many blocks.

use melior::ir::Module;
use std::sync::{Arc, Mutex};
use tc_backends::{
    Codegen,
    nvvm::{
        Emulator, Program,
        emulator::{self, Argument, Counts, Launch, Memory},
        machines, ptx,
    },
    runtime::Tensor,
};

/// Threads of a block, unless a pass option says otherwise.
const BLOCK: u32 = 256;

/// The PTX of kernels for the oldest machine. All others must have code, too.
fn compile(kernels: &str) -> emulator::Module {
    let context = tc_dialects::new_context();
    let text = format!("gpu.module @kernels {{\n{kernels}\n}}");
    let module = Module::parse(&context, &text).expect("valid kernels");
    let mut code: Vec<_> = machines()
        .into_iter()
        .map(|machine| {
            let name = machine.cpu.clone();
            let text = ptx(&module, &Codegen::new(machine)).expect("kernels that are supported");
            emulator::Module::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"))
        })
        .collect();
    code.swap_remove(0)
}

/// Runs the kernel `k` with so many blocks. `outputs` holds the bytes of destinations before, or how many there
/// are. Returns the bytes after it, per output.
fn launch(
    code: &emulator::Module,
    blocks: u32,
    inputs: &[&[u8]],
    outputs: &[Output],
) -> (Vec<Vec<u8>>, Counts) {
    let mut memory = Memory::new();
    let mut arguments: Vec<Argument> =
        inputs.iter().map(|bytes| memory.create(bytes, 256).into()).collect();
    let outputs: Vec<_> = outputs
        .iter()
        .map(|output| match output {
            Output::Undefined(bytes) => memory.allocate(*bytes, 256),
            Output::Holding(bytes) => memory.create(bytes, 256),
        })
        .collect();
    arguments.extend(outputs.iter().map(|buffer| Argument::from(*buffer)));
    let launch = Launch::new([blocks, 1, 1], [BLOCK, 1, 1], arguments);
    let counts = emulator::run(code, "k", &launch, &mut memory)
        .unwrap_or_else(|error| panic!("{blocks} blocks: {error}"));
    for buffer in &outputs {
        assert!(memory.written(*buffer).iter().all(|it| *it), "{blocks} blocks write everything");
    }
    (outputs.into_iter().map(|buffer| memory.read(buffer).to_vec()).collect(), counts)
}

/// What a destination is before a launch.
enum Output {
    /// So many bytes that nothing wrote.
    Undefined(usize),
    Holding(Vec<u8>),
}

/// Floats that are no round numbers, between -1 and 1.
fn floats(count: usize) -> Vec<f32> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn bytes<T: Copy>(values: &[T], of: fn(T) -> Vec<u8>) -> Vec<u8> {
    values.iter().flat_map(|value| of(*value)).collect()
}

fn f32_bytes(values: &[f32]) -> Vec<u8> {
    bytes(values, |value| value.to_le_bytes().to_vec())
}

fn f32_values(bytes: &[u8]) -> Vec<f32> {
    let words = bytes.chunks_exact(4);
    words.map(|word| f32::from_le_bytes(word.try_into().expect("four bytes"))).collect()
}

#[track_caller]
fn assert_close(found: &[u8], expected: impl IntoIterator<Item = f64>, tolerance: f64) {
    let found = f32_values(found);
    let expected: Vec<_> = expected.into_iter().collect();
    assert_eq!(found.len(), expected.len());
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(*found) - expected).abs();
        assert!(
            error <= tolerance * expected.abs().max(1.0),
            "element {number}: {found}, expected {expected}"
        );
    }
}

/// An element-wise kernel on `rows` by `columns` elements.
fn elementwise(rows: usize, columns: usize) -> String {
    let ty = format!("memref<{rows}x{columns}xf32>");
    format!(
        "gpu.func @k(%x: {ty} {{llvm.noalias, llvm.align = 16 : i64}}, %b: memref<{rows}xf32>,
                     %y: {ty} {{llvm.noalias, llvm.align = 16 : i64}}) kernel {{
           imap.generic (i, j) domain: i in [0, {}], j in [0, {}]
               ins(%x[i, j], %b[i] : {ty}, memref<{rows}xf32>) outs(%y[i, j] : {ty}) {{
           ^bb0(%a: f32, %c: f32):
             %s = arith.addf %a, %c : f32
             %v = imap.builtin \"exp\"(%s) : f32
             imap.yield %v : f32
           }}
           gpu.return
         }}",
        rows - 1,
        columns - 1
    )
}

#[test]
fn points_agree_with_a_reference() {
    for (rows, columns) in [(7, 100), (7, 99), (1, 1), (3, 1024)] {
        let code = compile(&elementwise(rows, columns));
        let (x, b) = (floats(rows * columns), floats(rows));
        for blocks in [1, 3] {
            let inputs = [&f32_bytes(&x)[..], &f32_bytes(&b)];
            let undefined = [Output::Undefined(4 * x.len())];
            let (outputs, _) = launch(&code, blocks, &inputs, &undefined);
            let expected = (0..x.len()).map(|it| {
                let sum = x[it] + b[it / columns];
                f64::from(sum).exp()
            });
            assert_close(&outputs[0], expected, 3e-7);
        }
    }
}

#[test]
fn aligned_accesses_move_128_bits_per_thread() {
    for (element, width) in [("f32", 4), ("f16", 2), ("bf16", 2), ("i8", 1)] {
        let ty = format!("memref<8x1024x{element}>");
        let code = compile(&format!(
            "gpu.func @k(%x: {ty}, %y: {ty}) kernel {{
               imap.generic (i, j) domain: i in [0, 7], j in [0, 1023] ins(%x[i, j] : {ty}) outs(%y[i, j] : {ty}) {{
               ^bb0(%a: {element}):
                 imap.yield %a : {element}
               }}
               gpu.return
             }}"
        ));
        let bytes = 8 * 1024 * width;
        let (_, counts) = launch(&code, 4, &[&vec![0; bytes]], &[Output::Undefined(bytes)]);
        for accesses in [&counts.global_loads, &counts.global_stores] {
            assert_eq!(accesses.bytes, bytes as u64, "{element}");
            assert_eq!(accesses.sectors * 32, accesses.bytes, "{element}");
            assert_eq!(accesses.requests * 512, accesses.bytes, "{element}");
        }
    }
}

/// Folds of rows of `columns` elements: the sum of squares under a root, from the destination.
fn row_norms(columns: usize) -> String {
    let ty = format!("memref<5x{columns}xf32>");
    format!(
        "gpu.func @k(%x: {ty}, %y: memref<5xf32>) kernel {{
           imap.generic (i)[j] domain: i in [0, 4], j in [0, {}] ins(%x[i, j] : {ty}) outs(%y[i] : memref<5xf32>)
               fold [add f32 from outs 0] {{
           ^bb0(%a: f32):
             %s = arith.mulf %a, %a : f32
             imap.yield %s : f32
           }} epilogue {{
           ^bb0(%sum: f32, %a: f32):
             %r = math.sqrt %sum : f32
             imap.yield %r : f32
           }}
           gpu.return
         }}",
        columns - 1
    )
}

#[test]
fn folds_agree_with_a_reference_for_a_thread_a_warp_and_a_block_per_row() {
    for columns in [1, 5, 31, 32, 33, 500, 1023, 1024, 1025, 5000] {
        let code = compile(&row_norms(columns));
        let x = floats(5 * columns);
        let start = [0.0f32, 1.0, 2.0, 3.0, 4.0];
        for blocks in [1, 2, 7] {
            let held = [Output::Holding(f32_bytes(&start))];
            let (outputs, _) = launch(&code, blocks, &[&f32_bytes(&x)], &held);
            let expected = (0..5).map(|row| {
                let row_of_x = &x[row * columns..][..columns];
                let sum: f64 = row_of_x.iter().map(|it| f64::from(*it).powi(2)).sum();
                (f64::from(start[row]) + sum).sqrt()
            });
            assert_close(&outputs[0], expected, 1e-6);
        }
    }
}

#[test]
fn combiner_regions_fold_in_warps_and_blocks() {
    for columns in [40, 3000] {
        let kernels = format!(
            "gpu.func @k(%x: memref<4x{columns}xf32>, %v: memref<4xf32>, %n: memref<4xi64>) kernel {{
               imap.generic (i)[j] domain: i in [0, 3], j in [0, {}] ins(%x[i, j] : memref<4x{columns}xf32>)
                   outs(%v[i], %n[i] : memref<4xf32>, memref<4xi64>)
                   fold [f32 identity 0xFF800000, i64 identity 0] {{
               ^bb0(%a: f32):
                 %j = imap.index range 0
                 %k = arith.index_cast %j : index to i64
                 imap.yield %a, %k : f32, i64
               }} combine {{
               ^bb0(%v0: f32, %i0: i64, %v1: f32, %i1: i64):
                 %more = arith.cmpf ogt, %v0, %v1 : f32
                 %same = arith.cmpf oeq, %v0, %v1 : f32
                 %before = arith.cmpi slt, %i0, %i1 : i64
                 %tie = arith.andi %same, %before : i1
                 %left = arith.ori %more, %tie : i1
                 %r = arith.select %left, %v0, %v1 : f32
                 %s = arith.select %left, %i0, %i1 : i64
                 imap.yield %r, %s : f32, i64
               }}
               gpu.return
             }}",
            columns - 1
        );
        let code = compile(&kernels);
        // Each value occurs several times: the first one counts.
        let x: Vec<f32> = floats(4 * columns).iter().map(|it| (it * 9.0).round()).collect();
        let undefined = [Output::Undefined(16), Output::Undefined(32)];
        let (outputs, _) = launch(&code, 2, &[&f32_bytes(&x)], &undefined);
        let values = f32_values(&outputs[0]);
        for row in 0..4 {
            let row_of_x = &x[row * columns..][..columns];
            let best = row_of_x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let place = row_of_x.iter().position(|it| *it == best).expect("a largest element");
            assert_eq!(values[row], best);
            let found = i64::from_le_bytes(outputs[1][8 * row..][..8].try_into().expect("8 bytes"));
            assert_eq!(found, place as i64);
        }
    }
}

#[test]
fn constraints_and_guards_hold() {
    // Sums of windows of three with padding, and reads outside of the tensor that give 0.5.
    let code = compile(
        "gpu.func @k(%x: memref<9xf32>, %y: memref<9xf32>) kernel {
           imap.generic (i)[p] domain: i in [0, 8], p in [0, 2], i + p in [1, 9]
               ins(%x[i + p - 1], %x[i - 2] where i - 2 in [0, 8] else 0.5 : memref<9xf32>, memref<9xf32>)
               outs(%y[i] : memref<9xf32>) fold [add f32] {
           ^bb0(%a: f32, %b: f32):
             imap.yield %a : f32
           } epilogue {
           ^bb0(%sum: f32, %a: f32, %b: f32):
             %r = arith.addf %sum, %b : f32
             imap.yield %r : f32
           }
           gpu.return
         }",
    );
    let x = floats(9);
    let (outputs, _) = launch(&code, 1, &[&f32_bytes(&x)], &[Output::Undefined(36)]);
    let at = |place: i64| usize::try_from(place).ok().and_then(|it| x.get(it)).copied();
    let expected = (0..9).map(|i| {
        let window: f64 = (i - 1..i + 2).filter_map(at).map(f64::from).sum();
        window + at(i - 2).map_or(0.5, f64::from)
    });
    assert_close(&outputs[0], expected, 1e-6);
}

#[test]
fn small_elements_and_products_agree_with_a_reference() {
    // A product of bf16, as bf16, where neighbouring threads take neighbouring columns.
    let code = compile(
        "gpu.func @k(%a: memref<6x40xbf16>, %b: memref<40x33xbf16>, %y: memref<6x33xbf16>) kernel {
           imap.generic (m, n)[k] domain: m in [0, 5], n in [0, 32], k in [0, 39]
               ins(%a[m, k], %b[k, n] : memref<6x40xbf16>, memref<40x33xbf16>)
               outs(%y[m, n] : memref<6x33xbf16>) fold [add f32] {
           ^bb0(%x: bf16, %w: bf16):
             %c = arith.extf %x : bf16 to f32
             %d = arith.extf %w : bf16 to f32
             %v = arith.mulf %c, %d : f32
             imap.yield %v : f32
           } epilogue {
           ^bb0(%sum: f32, %x: bf16, %w: bf16):
             %r = arith.truncf %sum : f32 to bf16
             imap.yield %r : bf16
           }
           gpu.return
         }",
    );
    let upper = |values: &[f32]| bytes(values, |value| value.to_le_bytes()[2..].to_vec());
    let cut = |value: f32| f64::from(f32::from_bits(value.to_bits() & 0xffff_0000));
    let (a, b) = (floats(6 * 40), floats(40 * 33));
    let (outputs, _) =
        launch(&code, 1, &[&upper(&a), &upper(&b)], &[Output::Undefined(2 * 6 * 33)]);
    let wide: Vec<u8> = outputs[0].chunks_exact(2).flat_map(|it| [0, 0, it[0], it[1]]).collect();
    let expected = (0..6 * 33).map(|it| {
        let (m, n) = (it / 33, it % 33);
        (0..40).map(|k| cut(a[m * 40 + k]) * cut(b[k * 33 + n])).sum()
    });
    assert_close(&wide, expected, 1.0 / 256.0);
}

#[test]
fn truth_values_take_a_byte_each() {
    let chosen = compile(
        "gpu.func @k(%m: memref<64xi1>, %x: memref<64xf32>, %y: memref<64xf32>, %p: memref<64xi1>) kernel {
           imap.generic (i) domain: i in [0, 63]
               ins(%m[i], %x[i] : memref<64xi1>, memref<64xf32>) outs(%y[i], %p[i] : memref<64xf32>, memref<64xi1>) {
           ^bb0(%c: i1, %a: f32):
             %zero = arith.constant 0.0 : f32
             %v = arith.select %c, %a, %zero : f32
             %q = arith.cmpf olt, %a, %zero : f32
             imap.yield %v, %q : f32, i1
           }
           gpu.return
         }",
    );
    let copied = compile(
        "gpu.func @k(%m: memref<64xi1>, %p: memref<64xi1>) kernel {
           imap.generic (i) domain: i in [0, 63] ins(%m[i] : memref<64xi1>) outs(%p[i] : memref<64xi1>) {
           ^bb0(%c: i1):
             imap.yield %c : i1
           }
           gpu.return
         }",
    );
    let x = floats(64);
    let mask: Vec<u8> = (0..64).map(|it| u8::from(it % 3 == 0)).collect();
    let undefined = [Output::Undefined(4 * 64), Output::Undefined(64)];
    let (outputs, _) = launch(&chosen, 1, &[&mask, &f32_bytes(&x)], &undefined);
    let expected = (0..64).map(|it| if mask[it] == 1 { f64::from(x[it]) } else { 0.0 });
    assert_close(&outputs[0], expected, 0.0);
    let negative: Vec<_> = x.iter().map(|it| u8::from(*it < 0.0)).collect();
    assert_eq!(outputs[1], negative);
    let (outputs, _) = launch(&copied, 1, &[&mask], &[Output::Undefined(64)]);
    assert_eq!(outputs[0], mask);
}

#[test]
fn elements_of_several_sizes_are_read_at_once() {
    let code = compile(
        "gpu.func @k(%x: memref<64xf64>, %n: memref<64xi8>, %y: memref<64xf32>) kernel {
           imap.generic (i) domain: i in [0, 63]
               ins(%x[i], %n[i] : memref<64xf64>, memref<64xi8>) outs(%y[i] : memref<64xf32>) {
           ^bb0(%a: f64, %b: i8):
             %c = arith.truncf %a : f64 to f32
             %d = arith.sitofp %b : i8 to f32
             %v = arith.addf %c, %d : f32
             imap.yield %v : f32
           }
           gpu.return
         }",
    );
    let x = floats(64);
    let wide = bytes(&x, |value| f64::from(value).to_le_bytes().to_vec());
    let n: Vec<u8> = (0..64).collect();
    let (outputs, _) = launch(&code, 2, &[&wide, &n], &[Output::Undefined(4 * 64)]);
    let expected = (0..64).map(|it| f64::from(x[it]) + it as f64);
    assert_close(&outputs[0], expected, 1e-6);
}

#[test]
fn indices_in_memory_have_64_bits() {
    let code = compile(
        "gpu.func @k(%x: memref<7xindex>, %y: memref<7xindex>) kernel {
           imap.generic (i) domain: i in [0, 6] ins(%x[6 - i] : memref<7xindex>) outs(%y[i] : memref<7xindex>) {
           ^bb0(%a: index):
             imap.yield %a : index
           }
           gpu.return
         }",
    );
    let words = |values: [u64; 7]| bytes(&values, |value| value.to_le_bytes().to_vec());
    let x = [1 << 40, 2, 3, 4, 5, 6, 7];
    let (outputs, _) = launch(&code, 1, &[&words(x)], &[Output::Undefined(56)]);
    assert_eq!(outputs[0], words([7, 6, 5, 4, 3, 2, 1 << 40]));
}

/// Values from a small set, so that several are equal.
fn small_integers(count: usize) -> Vec<i32> {
    floats(count).iter().map(|it| (it * 9.0).round() as i32).collect()
}

fn i32_bytes(values: &[i32]) -> Vec<u8> {
    bytes(values, |value| value.to_le_bytes().to_vec())
}

fn i32_values(bytes: &[u8]) -> Vec<i32> {
    let words = bytes.chunks_exact(4);
    words.map(|word| i32::from_le_bytes(word.try_into().expect("four bytes"))).collect()
}

/// Sums along rows, from 1, whose results are halved.
fn scanned_sums(rows: usize, columns: usize, along: &str, kind: &str) -> String {
    let ty = format!("memref<{rows}x{columns}xf32>");
    format!(
        "gpu.func @k(%x: {ty}, %y: {ty}) kernel {{
           imap.scan (i, j) domain: i in [0, {}], j in [0, {}] scan {along} {kind}
               ins(%x[i, j] : {ty}) outs(%y[i, j] : {ty}) fold [add f32 from 1.0] {{
           ^bb0(%a: f32):
             imap.yield %a : f32
           }} epilogue {{
           ^bb0(%sum: f32, %a: f32):
             %half = arith.constant 0.5 : f32
             %r = arith.mulf %sum, %half : f32
             imap.yield %r : f32
           }}
           gpu.return
         }}",
        rows - 1,
        columns - 1
    )
}

#[test]
fn scans_agree_with_a_reference_for_a_thread_a_warp_and_a_block_per_row() {
    let cases = [
        (3, 5, "j"),
        (3, 31, "j"),
        (9, 32, "j"),
        (5, 300, "j"),
        (2, 1025, "j"),
        (2, 2048, "j"),
        (40, 33, "i"),
        (70, 3, "i"),
        (1, 1, "j"),
    ];
    for (rows, columns, along) in cases {
        let x = floats(rows * columns);
        for kind in ["inclusive", "exclusive"] {
            let code = compile(&scanned_sums(rows, columns, along, kind));
            let (step, length) = if along == "j" { (1, columns) } else { (columns, rows) };
            let expected = (0..x.len()).map(|it| {
                let place = it / step % length;
                let first = it - place * step;
                let count = place + usize::from(kind == "inclusive");
                let sum: f64 = (0..count).map(|place| f64::from(x[first + place * step])).sum();
                (1.0 + sum) / 2.0
            });
            let expected: Vec<_> = expected.collect();
            for blocks in [1, 3] {
                let undefined = [Output::Undefined(4 * x.len())];
                let (outputs, _) = launch(&code, blocks, &[&f32_bytes(&x)], &undefined);
                assert_close(&outputs[0], expected.iter().copied(), 1e-5);
            }
        }
    }
}

#[test]
fn scans_by_regions_keep_the_order_of_values() {
    // Affine functions are composed, which is not commutative: x becomes a * x + b, modulo 2^32.
    for columns in [20, 100, 3000] {
        let ty = format!("memref<3x{columns}xi32>");
        let code = compile(&format!(
            "gpu.func @k(%a: {ty}, %b: {ty}, %p: {ty}, %q: {ty}) kernel {{
               imap.scan (i, j) domain: i in [0, 2], j in [0, {}], i + j in [1, 100000] scan j inclusive
                   ins(%a[i, j], %b[i, j] : {ty}, {ty}) outs(%p[i, j], %q[i, j] : {ty}, {ty})
                   fold [i32 identity 1, i32 identity 0] {{
               ^bb0(%x: i32, %y: i32):
                 imap.yield %x, %y : i32, i32
               }} combine {{
               ^bb0(%a0: i32, %b0: i32, %a1: i32, %b1: i32):
                 %r = arith.muli %a0, %a1 : i32
                 %m = arith.muli %a1, %b0 : i32
                 %s = arith.addi %m, %b1 : i32
                 imap.yield %r, %s : i32, i32
               }}
               gpu.return
             }}",
            columns - 1
        ));
        let (a, b) = (small_integers(3 * columns), small_integers(3 * columns + 1));
        let b = &b[1..];
        let undefined = [Output::Undefined(12 * columns), Output::Undefined(12 * columns)];
        let (outputs, _) = launch(&code, 2, &[&i32_bytes(&a), &i32_bytes(b)], &undefined);
        let (mut p, mut q) = (Vec::new(), Vec::new());
        for row in 0..3 {
            let mut held = (1i32, 0i32);
            for column in 0..columns {
                let it = row * columns + column;
                if row + column > 0 {
                    held = (
                        held.0.wrapping_mul(a[it]),
                        a[it].wrapping_mul(held.1).wrapping_add(b[it]),
                    );
                }
                p.push(held.0);
                q.push(held.1);
            }
        }
        assert_eq!(i32_values(&outputs[0]), p);
        assert_eq!(i32_values(&outputs[1]), q);
    }
}

/// Adds rows of `columns` values to rows of a table of seven, addressed by `ids`, some of them outside.
fn scatter(columns: usize, element: &str, rest: &str) -> String {
    let (x, y) =
        (format!("memref<50x{columns}x{element}>"), format!("memref<7x{columns}x{element}>"));
    format!(
        "gpu.func @k(%ids: memref<50xi32>, %x: {x}, %y: {y}) kernel {{
           imap.scatter (b, d){{r}} domain: b in [0, 49], d in [0, {}]
               runtime(%ids[b] : memref<50xi32>) ins(%x[b, d] : {x})
               outs(%y[r, d] where r in [0, 6] : {y}) {rest}
           gpu.return
         }}",
        columns - 1
    )
}

/// The table after updates in order.
fn scattered<T: Copy>(
    columns: usize,
    ids: &[i32],
    x: &[T],
    y: &[T],
    update: impl Fn(T, T) -> T,
) -> Vec<T> {
    let mut y = y.to_vec();
    for (b, id) in ids.iter().enumerate() {
        let Some(row) = usize::try_from(*id).ok().filter(|it| *it < 7) else { continue };
        for d in 0..columns {
            y[row * columns + d] = update(y[row * columns + d], x[b * columns + d]);
        }
    }
    y
}

fn folded(kind: &str, element: &str) -> String {
    format!("fold [{kind} {element}] {{ ^bb0(%u: {element}): imap.yield %u : {element} }}")
}

/// The name of a combiner, and its meaning.
type Update<T> = (&'static str, fn(T, T) -> T);

#[test]
fn integers_are_scattered_as_by_one_thread() {
    let updates: [Update<i32>; 8] = [
        ("add", i32::wrapping_add),
        ("mins", i32::min),
        ("maxs", i32::max),
        ("minu", |x, y| (x as u32).min(y as u32) as i32),
        ("maxu", |x, y| (x as u32).max(y as u32) as i32),
        ("and", |x, y| x & y),
        ("or", |x, y| x | y),
        ("mul", i32::wrapping_mul),
    ];
    for columns in [1, 33] {
        let ids = small_integers(50);
        let (x, y) = (small_integers(50 * columns), small_integers(7 * columns));
        let inputs = [i32_bytes(&ids), i32_bytes(&x)];
        for (kind, update) in updates {
            let expected = scattered(columns, &ids, &x, &y, update);
            let code = compile(&scatter(columns, "i32", &folded(kind, "i32")));
            for blocks in [1, 3] {
                let held = [Output::Holding(i32_bytes(&y))];
                let (outputs, counts) = launch(&code, blocks, &[&inputs[0], &inputs[1]], &held);
                assert_eq!(i32_values(&outputs[0]), expected, "{kind}");
                assert!(0 < counts.global_atomics.requests, "{kind} is atomic");
            }
        }
        // The last update wins.
        let code = compile(&scatter(columns, "i32", "{ ^bb0(%u: i32): imap.yield %u : i32 }"));
        let expected = scattered(columns, &ids, &x, &y, |_, new| new);
        let held = [Output::Holding(i32_bytes(&y))];
        let (outputs, _) = launch(&code, 2, &[&inputs[0], &inputs[1]], &held);
        assert_eq!(i32_values(&outputs[0]), expected);
    }
}

#[test]
fn floats_are_scattered_by_instructions_or_exchanges() {
    let columns = 33;
    let ids = small_integers(50);
    let (x, y) = (floats(50 * columns), floats(7 * columns));
    let updates: [Update<f64>; 4] =
        [("add", |x, y| x + y), ("mul", |x, y| x * y), ("maxf", f64::max), ("minimumf", f64::min)];
    for (kind, update) in updates {
        let wide = |values: &[f32]| values.iter().map(|it| f64::from(*it)).collect::<Vec<_>>();
        let expected = scattered(columns, &ids, &wide(&x), &wide(&y), update);
        let code = compile(&scatter(columns, "f32", &folded(kind, "f32")));
        let held = [Output::Holding(f32_bytes(&y))];
        let (outputs, _) = launch(&code, 2, &[&i32_bytes(&ids), &f32_bytes(&x)], &held);
        assert_close(&outputs[0], expected.iter().copied(), 1e-5);
        let code = compile(&scatter(columns, "bf16", &folded(kind, "bf16")));
        let upper = |values: &[f32]| bytes(values, |value| value.to_le_bytes()[2..].to_vec());
        let held = [Output::Holding(upper(&y))];
        let (outputs, _) = launch(&code, 2, &[&i32_bytes(&ids), &upper(&x)], &held);
        let found: Vec<u8> =
            outputs[0].chunks_exact(2).flat_map(|it| [0, 0, it[0], it[1]]).collect();
        assert_close(&found, expected.iter().copied(), 0.2);
        let code = compile(&scatter(columns, "f64", &folded(kind, "f64")));
        let doubles =
            |values: &[f32]| bytes(values, |value| f64::from(value).to_le_bytes().to_vec());
        let held = [Output::Holding(doubles(&y))];
        let (outputs, _) = launch(&code, 2, &[&i32_bytes(&ids), &doubles(&x)], &held);
        for (found, expected) in outputs[0].chunks_exact(8).zip(&expected) {
            let found = f64::from_le_bytes(found.try_into().expect("8 bytes"));
            assert!((found - expected).abs() <= 1e-12, "{kind}: {found}, expected {expected}");
        }
    }
}

#[test]
fn scatters_by_regions_exchange_or_run_in_order() {
    let columns = 5;
    let ids = small_integers(50);
    let (x, y) = (small_integers(50 * columns), small_integers(7 * columns));
    let region = |element: &str| {
        format!(
            "{{ ^bb0(%u: {element}): imap.yield %u : {element} }}
             combine {{
             ^bb0(%a: {element}, %b: {element}):
               %r = arith.xori %a, %b : {element}
               imap.yield %r : {element}
             }}"
        )
    };
    let expected = scattered(columns, &ids, &x, &y, |x, y| x ^ y);
    let code = compile(&scatter(columns, "i32", &region("i32")));
    let held = [Output::Holding(i32_bytes(&y))];
    let (outputs, counts) = launch(&code, 2, &[&i32_bytes(&ids), &i32_bytes(&x)], &held);
    assert_eq!(i32_values(&outputs[0]), expected);
    assert!(0 < counts.global_atomics.requests);
    // No GPU exchanges bytes.
    let code = compile(&scatter(columns, "i8", &region("i8")));
    let low = |values: &[i32]| bytes(values, |value| vec![value.to_le_bytes()[0]]);
    let (outputs, counts) =
        launch(&code, 2, &[&i32_bytes(&ids), &low(&x)], &[Output::Holding(low(&y))]);
    assert_eq!(outputs[0], low(&expected));
    assert_eq!(counts.global_atomics.requests, 0);
}

/// Sorts rows of `columns` items with a value each, by keys; `kept` of them.
fn sort(rows: usize, columns: usize, kept: usize, has_places: bool) -> String {
    let (x, y) = (format!("memref<{rows}x{columns}xi32>"), format!("memref<{rows}x{kept}xi32>"));
    let places = if has_places { format!(", %p: {y}") } else { String::new() };
    let (outs, types) = match has_places {
        true => ("%a, %b, %p".to_string(), format!("{y}, {y}, {y}")),
        false => ("%a, %b".to_string(), format!("{y}, {y}")),
    };
    format!(
        "gpu.func @k(%k: {x}, %v: {x}, %a: {y}, %b: {y}{places}) kernel {{
           imap.sort dim = 1 stable ins(%k, %v : {x}, {x}) outs({outs} : {types}) {{
           ^bb0(%k0: i32, %k1: i32, %v0: i32, %v1: i32):
             %before = arith.cmpi sgt, %k0, %k1 : i32
             imap.yield %before : i1
           }}
           gpu.return
         }}"
    )
}

#[test]
fn rows_are_sorted_like_by_a_stable_sort() {
    // A thread per row, in shared memory, in the destination, and in batches.
    let cases = [
        (3, 5, 5, false),
        (3, 16, 3, true),
        (3, 17, 17, false),
        (2, 64, 64, true),
        (3, 100, 7, false),
        (1, 1000, 1000, false),
        (1, 4100, 4100, true),
        (1, 4100, 4100, false),
        (2, 4500, 40, true),
    ];
    for (rows, columns, kept, has_places) in cases {
        let code = compile(&sort(rows, columns, kept, has_places));
        let keys = small_integers(rows * columns);
        let values: Vec<_> = (0..(rows * columns) as i32).collect();
        let mut expected = vec![Vec::new(); 3];
        for row in 0..rows {
            let mut order: Vec<usize> = (0..columns).collect();
            order.sort_by_key(|it| std::cmp::Reverse(keys[row * columns + it]));
            for it in &order[..kept] {
                expected[0].push(keys[row * columns + it]);
                expected[1].push(values[row * columns + it]);
                expected[2].push(*it as i32);
            }
        }
        let count = if has_places { 3 } else { 2 };
        let undefined: Vec<_> = (0..count).map(|_| Output::Undefined(4 * rows * kept)).collect();
        let inputs = [i32_bytes(&keys), i32_bytes(&values)];
        let (outputs, _) = launch(&code, 2, &[&inputs[0], &inputs[1]], &undefined);
        for (found, expected) in outputs.iter().zip(&expected) {
            assert_eq!(i32_values(found), *expected, "{columns} items, {kept} kept");
        }
    }
}

/// Runs the function `f` of a module, which has so many kernels, on one tensor. Returns its first result.
fn run_program(text: &str, num_kernels: usize, x: &[f32]) -> Tensor {
    let context = tc_dialects::new_context();
    let module = Module::parse(&context, text).expect("a valid function");
    let program = Program::lower(&module, &Codegen::new(machines()[0].clone())).expect("kernels");
    assert_eq!(program.kernels().len(), num_kernels);
    let device = Emulator::new(program.ptx(), program.kernels()).expect("known instructions");
    let compiled = program.load(Arc::new(Mutex::new(device))).expect("host code");
    let tensor = Tensor::from_values(&[x.len()], x).expect("as many values");
    let outputs = compiled.function("f").expect("a function").run(&[&tensor]);
    outputs.expect("a run").swap_remove(0)
}

#[test]
fn long_folds_are_split_into_two_kernels() {
    let count = 40_000;
    let text = format!(
        "func.func @f(%x: tensor<{count}xf32>) -> tensor<f32> {{
           %e = tensor.empty() : tensor<f32>
           %s = imap.generic ()[k] domain: k in [0, {}] ins(%x[k] : tensor<{count}xf32>)
               outs(%e[] : tensor<f32>) fold [add f32] {{
           ^bb0(%a: f32):
             imap.yield %a : f32
           }} -> tensor<f32>
           return %s : tensor<f32>
         }}",
        count - 1
    );
    let x = floats(count);
    let output = run_program(&text, 2, &x);
    let sum: f64 = x.iter().map(|it| f64::from(*it)).sum();
    assert_close(output.bytes(), [sum], 1e-5);
}

#[test]
fn long_scans_are_split_into_three_kernels() {
    let count = 40_960;
    let text = format!(
        "func.func @f(%x: tensor<{count}xf32>) -> tensor<{count}xf32> {{
           %e = tensor.empty() : tensor<{count}xf32>
           %s = imap.scan (t) domain: t in [0, {}] scan t inclusive ins(%x[t] : tensor<{count}xf32>)
               outs(%e[t] : tensor<{count}xf32>) fold [add f32] {{
           ^bb0(%a: f32):
             imap.yield %a : f32
           }} -> tensor<{count}xf32>
           return %s : tensor<{count}xf32>
         }}",
        count - 1
    );
    let x: Vec<f32> = floats(count).iter().map(|it| it.abs()).collect();
    let output = run_program(&text, 3, &x);
    let sums = x.iter().scan(0.0, |sum: &mut f64, it| {
        *sum += f64::from(*it);
        Some(*sum)
    });
    assert_close(output.bytes(), sums, 1e-5);
}

#[test]
fn modules_without_kernels_are_errors() {
    let context = tc_dialects::new_context();
    let (_, received) = tc_dialects::report::collect(&context);
    let module = Module::parse(&context, "module {}").expect("a module");
    ptx(&module, &Codegen::new(machines().remove(0))).expect_err("there is nothing to compile");
    assert_eq!(
        received.borrow()[0].message,
        "'builtin.module' op expected one 'gpu.module' of kernels, found 0"
    );
}
