//! Kernels with random mistakes: they run or fail, and never panic or hang.

use proptest::prelude::*;
use tc_backends::nvvm::emulator::{Argument, Launch, Memory, Module, run};

const TEXTS: &[&str] = &[
    include_str!("ptx/c1_elementwise.ptx"),
    include_str!("ptx/c2_softmax.ptx"),
    include_str!("ptx/c3_transpose.ptx"),
    include_str!("ptx/c4_gemm_f32.ptx"),
    include_str!("ptx/c5_gemm_bf16.ptx"),
    include_str!("ptx/c6_hist_scan.ptx"),
    include_str!("ptx/c7_wgmma_tma.ptx"),
];

/// One mistake in the lines of a text.
fn mutate(lines: &mut Vec<String>, kind: usize, at: usize, other: usize) {
    match kind {
        0 => {
            lines.remove(at);
        }
        1 => {
            let line = lines[other].clone();
            lines.insert(at, line);
        }
        2 => lines.swap(at, other),
        3 => {
            // Another digit.
            let digits: Vec<usize> = lines[at]
                .char_indices()
                .filter(|(_, c)| c.is_ascii_digit())
                .map(|(i, _)| i)
                .collect();
            if let Some(index) = digits.get(other % digits.len().max(1)) {
                let digit = char::from(b'0' + (other % 10) as u8).to_string();
                lines[at].replace_range(*index..index + 1, &digit);
            }
        }
        4 => lines[at] = lines[at].replace("s32", "u32").replace(".lt", ".ge"),
        _ => lines[at] = lines[at].replace('+', "+-"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutants_never_panic(
        file in any::<prop::sample::Index>(),
        edits in prop::collection::vec(
            (0..6usize, any::<prop::sample::Index>(), any::<prop::sample::Index>()),
            1..4,
        ),
    ) {
        let mut lines: Vec<String> =
            TEXTS[file.index(TEXTS.len())].lines().map(str::to_string).collect();
        for (kind, at, other) in edits {
            let count = lines.len();
            mutate(&mut lines, kind, at.index(count), other.index(count));
        }
        let Ok(module) = Module::parse(&lines.join("\n")) else { return Ok(()) };
        let Some(sizes) = module.parameter_sizes("k") else { return Ok(()) };
        let mut memory = Memory::new();
        let arguments = sizes
            .iter()
            .map(|size| match size {
                8 => Argument::from(memory.create(&[7; 8192], 16)),
                size => Argument::Bytes(vec![1; *size]),
            })
            .collect();
        let mut launch = Launch::new([2, 1, 1], [96, 1, 1], arguments);
        launch.dynamic_shared = 40000;
        launch.options.max_instructions = 100_000;
        for checks in [true, false] {
            launch.options.check_races = checks;
            launch.options.check_initialised = checks;
            // `.reqntid` of the originals.
            for block in [[96, 1, 1], [256, 1, 1], [384, 1, 1]] {
                launch.block = block;
                let _ = run(&module, "k", &launch, &mut memory);
            }
        }
    }
}
