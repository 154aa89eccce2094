//! Random straight-line programs against an evaluator of one thread that knows nothing of PTX.

use proptest::prelude::*;
use tc_backends::nvvm::emulator::{Launch, Memory, Module, run};

/// How many registers a program has.
const REGISTERS: usize = 8;
const THREADS: usize = 40;

/// An operation, as PTX and as a function of 32-bit words.
type Operation = (&'static str, fn(u32, u32, u32) -> u32);

fn float(f: impl Fn(f32) -> f32, a: u32) -> u32 {
    canonical(f(f32::from_bits(a)))
}

fn canonical(x: f32) -> u32 {
    if x.is_nan() { 0x7fff_ffff } else { x.to_bits() }
}

fn floats(f: impl Fn(f32, f32) -> f32, a: u32, b: u32) -> u32 {
    canonical(f(f32::from_bits(a), f32::from_bits(b)))
}

/// Operations of two operands; the third is ignored.
const TWO: &[Operation] = &[
    ("add.s32", |a, b, _| a.wrapping_add(b)),
    ("sub.s32", |a, b, _| a.wrapping_sub(b)),
    ("mul.lo.s32", |a, b, _| a.wrapping_mul(b)),
    ("mul.hi.u32", |a, b, _| ((u64::from(a) * u64::from(b)) >> 32) as u32),
    ("mul.hi.s32", |a, b, _| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32),
    ("min.s32", |a, b, _| (a as i32).min(b as i32) as u32),
    ("max.u32", |a, b, _| a.max(b)),
    ("and.b32", |a, b, _| a & b),
    ("or.b32", |a, b, _| a | b),
    ("xor.b32", |a, b, _| a ^ b),
    ("shl.b32", |a, b, _| if b < 32 { a << b } else { 0 }),
    ("shr.u32", |a, b, _| if b < 32 { a >> b } else { 0 }),
    ("shr.s32", |a, b, _| ((a as i32) >> b.min(31)) as u32),
    ("add.sat.s32", |a, b, _| (a as i32).saturating_add(b as i32) as u32),
    ("add.rn.f32", |a, b, _| floats(|a, b| a + b, a, b)),
    ("sub.rn.f32", |a, b, _| floats(|a, b| a - b, a, b)),
    ("mul.rn.f32", |a, b, _| floats(|a, b| a * b, a, b)),
    ("div.rn.f32", |a, b, _| floats(|a, b| a / b, a, b)),
];

const THREE: &[Operation] = &[
    ("mad.lo.s32", |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
    ("fma.rn.f32", |a, b, c| {
        canonical(f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c)))
    }),
    ("shf.l.wrap.b32", |a, b, c| ((u64::from(b) << 32 | u64::from(a)) << (c & 31) >> 32) as u32),
    ("bfe.u32", |a, b, c| {
        let (position, length) = (b & 255, (c & 255).min(32));
        let field = if position < 32 { u64::from(a) >> position } else { 0 };
        (field & ((1 << length) - 1)) as u32
    }),
    ("dp4a.s32.u32", |a, b, c| {
        (0..4).fold(c, |sum, byte| {
            let x = i32::from((a >> (8 * byte)) as u8 as i8);
            sum.wrapping_add((x * ((b >> (8 * byte)) & 255) as i32) as u32)
        })
    }),
];

const ONE: &[Operation] = &[
    ("neg.s32", |a, _, _| a.wrapping_neg()),
    ("abs.s32", |a, _, _| (a as i32).wrapping_abs() as u32),
    ("not.b32", |a, _, _| !a),
    ("popc.b32", |a, _, _| a.count_ones()),
    ("clz.b32", |a, _, _| a.leading_zeros()),
    ("brev.b32", |a, _, _| a.reverse_bits()),
    ("sqrt.rn.f32", |a, _, _| float(f32::sqrt, a)),
    ("rcp.rn.f32", |a, _, _| float(|a| 1.0 / a, a)),
    ("cvt.rn.f32.s32", |a, _, _| (a as i32 as f32).to_bits()),
    ("cvt.rzi.s32.f32", |a, _, _| f32::from_bits(a) as i32 as u32),
    ("cvt.rni.f32.f32", |a, _, _| float(f32::round_ties_even, a)),
    ("cvt.s32.s8", |a, _, _| a as i8 as i32 as u32),
];

#[derive(Debug, Clone)]
struct Line {
    operands: usize,
    operation: usize,
    d: usize,
    sources: [usize; 3],
    /// Runs where the first source is less than the second.
    guarded: bool,
}

fn line() -> impl Strategy<Value = Line> {
    let register = 0..REGISTERS;
    let sources = [register.clone(), register.clone(), register.clone()];
    (1..=3usize, any::<prop::sample::Index>(), register, sources, prop::bool::weighted(0.3))
        .prop_map(|(operands, operation, d, sources, guarded)| {
            let operation = operation.index(table(operands).len());
            Line { operands, operation, d, sources, guarded }
        })
}

fn table(operands: usize) -> &'static [Operation] {
    [ONE, TWO, THREE][operands - 1]
}

fn text(lines: &[Line]) -> String {
    let mut text = String::from(
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 x) {\n\
         .reg .pred %p;\n.reg .b32 %r<9>;\n.reg .b64 %rd<4>;\nld.param.b64 %rd1, [x];\n\
         mov.u32 %r8, %tid.x;\nmul.wide.u32 %rd2, %r8, 32;\nadd.s64 %rd1, %rd1, %rd2;\n\
         ld.global.b32 %r0, [%rd1];\n",
    );
    for r in 1..REGISTERS {
        text += &format!("ld.global.b32 %r{r}, [%rd1+{}];\n", 4 * r);
    }
    for line in lines {
        let (name, _) = table(line.operands)[line.operation];
        let sources: Vec<String> =
            line.sources[..line.operands].iter().map(|r| format!("%r{r}")).collect();
        if line.guarded {
            let [a, b, _] = line.sources;
            text += &format!("setp.lt.u32 %p, %r{a}, %r{b};\n@%p ");
        }
        text += &format!("{name} %r{}, {};\n", line.d, sources.join(", "));
    }
    for r in 0..REGISTERS {
        text += &format!("st.global.b32 [%rd1+{}], %r{r};\n", 4 * r);
    }
    text + "ret;\n}\n"
}

fn evaluate(lines: &[Line], registers: &mut [u32]) {
    for line in lines {
        let [a, b, c] = line.sources.map(|r| registers[r]);
        if !line.guarded || a < b {
            registers[line.d] = table(line.operands)[line.operation].1(a, b, c);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_agree(lines in prop::collection::vec(line(), 1..60), seed in any::<u64>()) {
        let mut state = seed | 1;
        let mut words: Vec<u32> = (0..THREADS * REGISTERS)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                // Some are small numbers, some are floats of moderate size.
                match state >> 61 {
                    0..3 => (state >> 32) as u32 & 63,
                    3..6 => (((state >> 40) as f32) / 1e5 - 60.0).to_bits(),
                    _ => (state >> 32) as u32,
                }
            })
            .collect();
        let module = Module::parse(&text(&lines)).expect("text");
        let mut memory = Memory::new();
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let x = memory.create(&bytes, 16);
        let launch = Launch::new([1, 1, 1], [THREADS as u32, 1, 1], vec![x.into()]);
        run(&module, "k", &launch, &mut memory).expect("a run");
        for thread in words.chunks_mut(REGISTERS) {
            evaluate(&lines, thread);
        }
        let expected: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        prop_assert_eq!(memory.read(x), &expected, "{}", text(&lines));
    }
}
