//! The kernels that were written by hand, as LLVM 22 compiled them, against references in f64; and
//! the same kernels with one mistake each, which must be found.
//!
//! `sentryward` 0.1.1, a static verifier, has the same verdicts where it has any (its options: one
//! launch, `k_param_2` and `k_param_3` given): elementwise with n = 1000, softmax with n = 300 and
//! transpose of 40 by 33 are race-free; softmax without its first, second or third barrier and
//! transpose without its barrier may race; softmax without its fourth barrier is race-free. It does
//! not support atomics (histogram) and the divergent barrier.

use tc_backends::nvvm::emulator::{
    Argument, BlockOrder, Buffer, Counts, Error, FaultKind, Launch, Memory, Module, Swizzle,
    TensorMap, run,
};

const ELEMENTWISE: &str = include_str!("ptx/c1_elementwise.ptx");
const SOFTMAX: &str = include_str!("ptx/c2_softmax.ptx");
const TRANSPOSE: &str = include_str!("ptx/c3_transpose.ptx");
const GEMM: &str = include_str!("ptx/c4_gemm_f32.ptx");
const GEMM_8X8: &str = include_str!("ptx/c4b_gemm_f32_8x8.ptx");
const GEMM_BF16: &str = include_str!("ptx/c5_gemm_bf16.ptx");
const GEMM_BF16_3: &str = include_str!("ptx/c5b_gemm_bf16_3st.ptx");
const GEMM_BF16_4: &str = include_str!("ptx/c5c_gemm_bf16_4st.ptx");
const GEMM_WGMMA: &str = include_str!("ptx/c7_wgmma_tma.ptx");
const HISTOGRAM: &str = include_str!("ptx/c6_hist_scan.ptx");

/// A sequence of numbers in (-1, 1).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    fn unit(&mut self) -> f32 {
        (self.bits() as f32 / (1u64 << 31) as f32) * 2.0 - 1.0
    }

    fn units(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.unit()).collect()
    }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn floats(memory: &Memory, buffer: Buffer) -> Vec<f32> {
    let words = memory.read(buffer).chunks_exact(4);
    words.map(|w| f32::from_le_bytes(w.try_into().expect("four bytes"))).collect()
}

fn bf16(values: &[f32]) -> (Vec<u8>, Vec<f32>) {
    let bits: Vec<u16> = values.iter().map(|x| (x.to_bits() >> 16) as u16).collect();
    let rounded = bits.iter().map(|b| f32::from_bits(u32::from(*b) << 16)).collect();
    (bits.iter().flat_map(|b| b.to_le_bytes()).collect(), rounded)
}

/// Replaces the n-th occurrence of a text.
fn edit(text: &str, from: &str, to: &str, number: usize) -> String {
    let (start, _) = text.match_indices(from).nth(number).expect("the text to replace");
    format!("{}{to}{}", &text[..start], &text[start + from.len()..])
}

fn fault(result: Result<Counts, Error>) -> FaultKind {
    match result {
        Err(Error::Fault(fault)) => fault.kind,
        Err(other) => panic!("expected a fault, found {other:?}"),
        Ok(_) => panic!("expected a fault"),
    }
}

fn close(found: f32, expected: f64, tolerance: f64, what: impl std::fmt::Display) {
    let error = (f64::from(found) - expected).abs();
    assert!(error <= tolerance * expected.abs().max(1.0), "{what}: {found}, expected {expected}");
}

fn elementwise(text: &str, n: usize, elements: usize) -> Result<Counts, Error> {
    let module = Module::parse(text)?;
    let mut memory = Memory::new();
    let input = Random(1).units(elements);
    let x = memory.create(&bytes(&input), 16);
    let y = memory.allocate(4 * elements, 16);
    let launch = Launch::new([3, 1, 1], [256, 1, 1], vec![x.into(), y.into(), (n as u32).into()]);
    let counts = run(&module, "k", &launch, &mut memory)?;
    for (index, (found, v)) in floats(&memory, y).iter().zip(&input).take(n).enumerate() {
        let v = f64::from(*v);
        let t = 1.0 / (0.3275911 * v.abs() + 1.0);
        let coefficients = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592, 0.0];
        let poly = coefficients.iter().fold(0.0, |sum, c| sum * t + c);
        let erf = (1.0 - poly * (-v * v).exp()).copysign(v);
        let g = 0.5 * v * erf + 0.5 * v;
        let expected = if v > 0.0 { g } else { g.tanh() };
        close(*found, expected, 2e-5, format!("element {index}"));
    }
    Ok(counts)
}

#[test]
fn elementwise_agrees() {
    for n in [4, 1000, 5000] {
        let counts = elementwise(ELEMENTWISE, n, n).expect("a run");
        assert_eq!(counts.global_loads.bytes, 4 * n as u64);
    }
    let counts = elementwise(ELEMENTWISE, 4096, 4096).expect("a run");
    // 512 bytes a request; a buffer that is aligned to 16 bytes and no more takes one sector more.
    assert_eq!(counts.global_loads.requests, 32);
    assert_eq!(counts.global_loads.sectors, 32 * 17);
}

fn softmax(text: &str, n: usize) -> Result<Counts, Error> {
    let module = Module::parse(text)?;
    let mut memory = Memory::new();
    let input = Random(2).units(n * n);
    let x = memory.create(&bytes(&input), 16);
    let y = memory.allocate(4 * n * n, 16);
    let arguments = vec![x.into(), y.into(), (n as u32).into()];
    let launch = Launch::new([n as u32, 1, 1], [256, 1, 1], arguments);
    let counts = run(&module, "k", &launch, &mut memory)?;
    for (row, (found, x)) in floats(&memory, y).chunks(n).zip(input.chunks(n)).enumerate() {
        let most = x.iter().fold(f64::NEG_INFINITY, |m, x| m.max(f64::from(*x)));
        let terms: Vec<f64> = x.iter().map(|x| (f64::from(*x) - most).exp()).collect();
        let sum: f64 = terms.iter().sum();
        for (found, term) in found.iter().zip(&terms) {
            close(*found, term / sum, 1e-6, format!("row {row}"));
        }
    }
    Ok(counts)
}

#[test]
fn softmax_agrees() {
    for n in [1, 7, 100, 257] {
        softmax(SOFTMAX, n).expect("a run");
    }
}

#[test]
fn removed_barriers_are_found() {
    // Nothing writes behind the fourth.
    for number in 0..3 {
        let text = edit(SOFTMAX, "bar.sync \t0;", "", number);
        let kind = fault(softmax(&text, 300));
        assert!(matches!(kind, FaultKind::Race { .. } | FaultKind::Uninitialised { .. }), "{kind}");
    }
    for number in 0..2 {
        let kind = fault(gemm(&edit(GEMM, "bar.sync \t0;", "", number), 64, [1, 1, 1], 256));
        assert!(matches!(kind, FaultKind::Race { .. } | FaultKind::Uninitialised { .. }), "{kind}");
    }
    let kind = fault(transpose(&edit(TRANSPOSE, "bar.sync \t0;", "", 0), 40, 33));
    assert!(matches!(kind, FaultKind::Race { .. } | FaultKind::Uninitialised { .. }), "{kind}");
    let kind = fault(gemm_bf16(&edit(GEMM_BF16, "bar.sync \t0;", "", 0), 2, 2 * 16384));
    assert!(matches!(kind, FaultKind::BeforeWait { .. } | FaultKind::Race { .. }), "{kind}");
}

#[test]
fn divergent_barriers_are_found() {
    // The second warp-leader branch jumps over the store; now the barrier is jumped over as well.
    let text = edit(SOFTMAX, "@%p3 bra \t$L__BB0_5;", "@%p3 bra \t$L__BB0_7;", 0);
    let kind = fault(softmax(&text, 64));
    assert!(matches!(kind, FaultKind::Divergent { what: "barrier", .. }), "{kind}");
}

fn transpose(text: &str, m: usize, n: usize) -> Result<Counts, Error> {
    let module = Module::parse(text)?;
    let mut memory = Memory::new();
    let input = Random(3).units(m * n);
    let x = memory.create(&bytes(&input), 16);
    let y = memory.allocate(4 * m * n, 16);
    let arguments = vec![x.into(), y.into(), (m as u32).into(), (n as u32).into()];
    let grid = [n.div_ceil(32) as u32, m.div_ceil(32) as u32, 1];
    let counts = run(&module, "k", &Launch::new(grid, [32, 8, 1], arguments), &mut memory)?;
    let found = floats(&memory, y);
    for row in 0..m {
        for column in 0..n {
            let expected = f64::from(input[row * n + column]).exp2().sqrt();
            close(found[column * m + row], expected, 1e-6, format!("({row}, {column})"));
        }
    }
    Ok(counts)
}

#[test]
fn transpose_agrees() {
    for (m, n) in [(1, 1), (32, 32), (40, 33), (65, 100)] {
        transpose(TRANSPOSE, m, n).expect("a run");
    }
    let counts = transpose(TRANSPOSE, 64, 64).expect("a run");
    assert_eq!((counts.shared_loads.conflicts, counts.shared_stores.conflicts), (0, 0));
}

#[test]
fn bank_conflicts_are_counted() {
    // Rows of 32 instead of 33 elements: a column lies in one bank.
    let pairs = [(", 33", ", 32"), ("1056", "1024"), ("2112", "2048"), ("3168", "3072")];
    let text = pairs.iter().fold(TRANSPOSE.to_string(), |text, (from, to)| text.replace(from, to));
    let counts = transpose(&text, 32, 32).expect("a run");
    assert_eq!(counts.shared_loads.conflicts, 31 * 32);
}

/// C = A B in f32 with k = 1024, blocks of so many rows and columns.
fn gemm(text: &str, tile: usize, grid: [u32; 3], threads: u32) -> Result<Counts, Error> {
    let size = 1024;
    let module = Module::parse(text)?;
    let mut memory = Memory::new();
    let mut random = Random(4);
    let (a, b) = (random.units(size * size), random.units(size * size));
    let (a_buffer, b_buffer) = (memory.create(&bytes(&a), 16), memory.create(&bytes(&b), 16));
    let c_buffer = memory.allocate(4 * size * size, 16);
    let arguments = vec![a_buffer.into(), b_buffer.into(), c_buffer.into()];
    let counts = run(&module, "k", &Launch::new(grid, [threads, 1, 1], arguments), &mut memory)?;
    let c = floats(&memory, c_buffer);
    for row in 0..tile * grid[1] as usize {
        for column in 0..tile * grid[0] as usize {
            let expected: f64 = (0..size)
                .map(|k| f64::from(a[row * size + k]) * f64::from(b[k * size + column]))
                .sum();
            close(c[row * size + column], expected, 1e-4, format!("({row}, {column})"));
        }
    }
    Ok(counts)
}

#[test]
fn gemm_agrees() {
    let counts = gemm(GEMM, 64, [2, 1, 1], 256).expect("a run");
    assert_eq!(counts.kinds["fma"].thread, 2 * 64 * 64 * 1024);
    gemm(GEMM_8X8, 128, [1, 1, 1], 256).expect("a run");
}

#[test]
fn an_interleaved_run_agrees() {
    let module = Module::parse(GEMM).expect("text");
    let zeros = vec![0; 4 << 20];
    let mut results = Vec::new();
    for order in [BlockOrder::Sequential, BlockOrder::Reversed, BlockOrder::Interleaved(2)] {
        let mut memory = Memory::new();
        let a = memory.create(&bytes(&Random(4).units(1 << 20)), 16);
        let (b, c) =
            (memory.create(&bytes(&Random(5).units(1 << 20)), 16), memory.create(&zeros, 16));
        let mut launch = Launch::new([2, 1, 1], [256, 1, 1], vec![a.into(), b.into(), c.into()]);
        launch.options.order = order;
        let counts = run(&module, "k", &launch, &mut memory).expect("a run");
        results.push((counts, memory.read(c).to_vec()));
    }
    assert!(results[0] == results[1] && results[0] == results[2]);
}

/// C = A B with A and B in bf16, 128 by 128 a block, k = 1024.
fn gemm_bf16(text: &str, blocks: u32, shared: usize) -> Result<Counts, Error> {
    let size = 1024;
    let module = Module::parse(text)?;
    let mut memory = Memory::new();
    let mut random = Random(6);
    let (a_bytes, a) = bf16(&random.units(size * size));
    let (b_bytes, b) = bf16(&random.units(size * size));
    let (a_buffer, b_buffer) = (memory.create(&a_bytes, 16), memory.create(&b_bytes, 16));
    let c_buffer = memory.allocate(4 * size * size, 16);
    let arguments: Vec<Argument> = vec![a_buffer.into(), b_buffer.into(), c_buffer.into()];
    let mut launch = Launch::new([blocks, 1, 1], [256, 1, 1], arguments);
    launch.dynamic_shared = shared;
    let counts = run(&module, "k", &launch, &mut memory)?;
    let c = floats(&memory, c_buffer);
    for row in 0..128 {
        for column in 0..128 * blocks as usize {
            let expected: f64 = (0..size)
                .map(|k| f64::from(a[row * size + k]) * f64::from(b[k * size + column]))
                .sum();
            let found = c[row * size + column];
            if (f64::from(found) - expected).abs() > 1e-3 {
                let message = format!("wrong result at ({row}, {column}): {found}, {expected}");
                return Err(Error::Launch(message));
            }
        }
    }
    Ok(counts)
}

#[test]
fn gemm_bf16_agrees() {
    let counts = gemm_bf16(GEMM_BF16, 2, 2 * 16384).expect("a run");
    assert_eq!(counts.tensor_operations, 2 * 128 * 128 * 1024);
    assert_eq!(counts.shared_loads.conflicts, 0);
    gemm_bf16(GEMM_BF16_3, 1, 3 * 16384).expect("a run");
    gemm_bf16(GEMM_BF16_4, 1, 4 * 16384).expect("a run");
}

#[test]
fn a_wait_for_one_group_too_few_is_found() {
    let cases = [
        (GEMM_BF16, "cp.async.wait_group \t0;", "cp.async.wait_group \t1;", 2),
        (GEMM_BF16_3, "cp.async.wait_group \t1;", "cp.async.wait_group \t2;", 3),
        (GEMM_BF16_4, "cp.async.wait_group \t2;", "cp.async.wait_group \t3;", 4),
    ];
    for (text, from, to, stages) in cases {
        let kind = fault(gemm_bf16(&edit(text, from, to, 0), 1, stages * 16384));
        assert!(matches!(kind, FaultKind::BeforeWait { access: "read", .. }), "{kind}");
    }
}

#[test]
fn a_wrong_fragment_is_found() {
    let start = GEMM_BF16.find("mma.sync").expect("mma");
    let open = start + GEMM_BF16[start..].find("{%r8").expect("the second operand");
    let close = open + GEMM_BF16[open..].find('}').expect("its end");
    let mut registers: Vec<&str> = GEMM_BF16[open + 1..close].split(", ").collect();
    registers.swap(1, 2);
    let wrong = format!("{}{{{}{}", &GEMM_BF16[..open], registers.join(", "), &GEMM_BF16[close..]);
    let result = gemm_bf16(&wrong, 1, 2 * 16384);
    assert!(
        matches!(&result, Err(Error::Launch(m)) if m.starts_with("wrong result")),
        "{result:?}"
    );
}

#[test]
fn too_little_shared_memory_is_found() {
    let kind = fault(gemm_bf16(GEMM_BF16, 1, 16384));
    assert!(matches!(kind, FaultKind::OutOfBounds { .. }), "{kind}");
}

#[test]
fn an_off_by_one_bound_is_found() {
    let text = edit(SOFTMAX, "setp.lt.s32 \t%p2", "setp.le.s32 \t%p2", 0);
    assert_ne!(text, SOFTMAX);
    let kind = fault(softmax(&text, 256));
    assert!(
        matches!(kind, FaultKind::OutOfBounds { offset: 262144, length: 262144, .. }),
        "{kind}"
    );
}

#[test]
fn a_misaligned_vector_load_is_found() {
    let text = ELEMENTWISE.replace("ld.global.nc.v4.b32", "ld.global.nc.v4.b32 ");
    let load = text.lines().find(|line| line.contains("ld.global.nc.v4")).expect("a load");
    let wrong = text.replace(load, &load.replace("];", "+4];"));
    assert_ne!(wrong, text);
    let kind = fault(elementwise(&wrong, 1000, 1004));
    assert!(matches!(kind, FaultKind::Misaligned { bytes: 16, .. }), "{kind}");
}

#[test]
fn an_uninitialised_read_is_found() {
    let module = Module::parse(SOFTMAX).expect("text");
    let mut memory = Memory::new();
    let (x, y) = (memory.allocate(400, 16), memory.allocate(400, 16));
    memory.write(x, 0, &[0; 396]);
    let launch = Launch::new([10, 1, 1], [256, 1, 1], vec![x.into(), y.into(), 10u32.into()]);
    let kind = fault(run(&module, "k", &launch, &mut memory));
    assert!(matches!(kind, FaultKind::Uninitialised { offset: 396, .. }), "{kind}");
}

/// C = A B^T with A and B in bf16, 128 by 128 a block, k = 1024, by tensor maps and `wgmma`.
fn gemm_wgmma(text: &str) -> Result<Counts, Error> {
    let size = 1024;
    let module = Module::parse(text)?;
    let mut memory = Memory::new();
    let mut random = Random(8);
    let (a_bytes, a) = bf16(&random.units(128 * size));
    let (b_bytes, b) = bf16(&random.units(128 * size));
    let map = |buffer| {
        Argument::TensorMap(Box::new(TensorMap {
            buffer,
            element_bytes: 2,
            sizes: vec![size as u64, 128],
            strides: vec![2 * size as u64],
            box_sizes: vec![64, 128],
            swizzle: Swizzle::Bytes128,
        }))
    };
    let (a_map, b_map) = (map(memory.create(&a_bytes, 128)), map(memory.create(&b_bytes, 128)));
    let c_buffer = memory.allocate(4 * 128 * size, 16);
    let mut launch = Launch::new([1, 1, 1], [384, 1, 1], vec![a_map, b_map, c_buffer.into()]);
    launch.dynamic_shared = 132224;
    let counts = run(&module, "k", &launch, &mut memory)?;
    let c = floats(&memory, c_buffer);
    for row in 0..128 {
        for column in 0..128 {
            let pairs = a[row * size..][..size].iter().zip(&b[column * size..][..size]);
            let expected: f64 = pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            close(c[row * size + column], expected, 1e-3, format!("({row}, {column})"));
        }
    }
    Ok(counts)
}

#[test]
fn gemm_wgmma_agrees() {
    let counts = gemm_wgmma(GEMM_WGMMA).expect("a run");
    assert_eq!(counts.tensor_operations, 128 * 128 * 1024);
}

#[test]
fn a_wait_for_one_wgmma_group_too_few_is_found() {
    let wrong = edit(
        GEMM_WGMMA,
        "wgmma.wait_group.sync.aligned \t1;",
        "wgmma.wait_group.sync.aligned \t2;",
        1,
    );
    let kind = fault(gemm_wgmma(&wrong));
    assert!(matches!(kind, FaultKind::BeforeWait { .. } | FaultKind::Race { .. }), "{kind}");
}

#[test]
fn histogram_agrees() {
    let blocks = 3;
    let module = Module::parse(HISTOGRAM).expect("text");
    let mut memory = Memory::new();
    let mut random = Random(7);
    let input: Vec<u8> = (0..4096 * blocks).map(|_| (random.bits() >> 10) as u8).collect();
    let x = memory.create(&input, 16);
    let (o, cdf) = (memory.create(&[0; 1024], 16), memory.create(&[0; 1024], 16));
    let arguments = vec![x.into(), o.into(), cdf.into()];
    let launch = Launch::new([blocks as u32, 1, 1], [256, 1, 1], arguments);
    run(&module, "k", &launch, &mut memory).expect("a run");
    let word = |buffer, index: usize| {
        let bytes = &memory.read(buffer)[4 * index..4 * index + 4];
        u32::from_le_bytes(bytes.try_into().expect("four bytes"))
    };
    let mut sum = 0;
    for value in 0..256 {
        let count = input.iter().filter(|x| usize::from(**x) == value).count() as u32;
        sum += count;
        assert_eq!((word(o, value), word(cdf, value)), (count, sum), "value {value}");
    }
}

/// Sums of f32 and terms of 16 bits, as LLVM writes them for `sm_100a`.
#[test]
fn additions_take_terms_of_16_bits() {
    let text = ".version 8.6
        .target sm_100a
        .address_size 64
        .visible .entry k(.param .u64 y) {
            .reg .b16 %rs<3>;
            .reg .b32 %r<5>;
            .reg .b64 %rd<2>;
            ld.param.b64 %rd1, [y];
            mov.b16 %rs1, 0x3E00;
            mov.b16 %rs2, 0x4040;
            mov.b32 %r1, 0f3F000000;
            add.rn.f32.f16 %r2, %rs1, %r1;
            sub.rn.f32.bf16 %r3, %rs2, %r1;
            fma.rn.f32.bf16 %r4, %rs2, %rs2, %r1;
            st.global.b32 [%rd1], %r2;
            st.global.b32 [%rd1+4], %r3;
            st.global.b32 [%rd1+8], %r4;
            ret;
        }";
    let module = Module::parse(text).expect("known instructions");
    let mut memory = Memory::new();
    let y = memory.allocate(12, 16);
    let launch = Launch::new([1, 1, 1], [1, 1, 1], vec![y.into()]);
    run(&module, "k", &launch, &mut memory).expect("a run");
    assert_eq!(floats(&memory, y), [2.0, 2.5, 9.5]);
}
