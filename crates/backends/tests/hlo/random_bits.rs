//! `rng-bit-generator` against the known answers of the authors of its functions (Random123,
//! `kat_vectors`), and its other types and shapes against those.

use super::{bits, integers, run, try_run};
use tc_dialects::element::ElementType;

/// The next state and the bits.
fn generate(algorithm: &str, state: &[u64], result: &str) -> (Vec<u64>, Vec<u64>) {
    let length = state.len() as i64;
    let pair = format!("(u64[{length}], {result})");
    let text = format!(
        "HloModule m\nENTRY main {{\n  state = u64[{length}] parameter(0)\n  \
         ROOT bits = {pair} rng-bit-generator(state), algorithm={algorithm}\n}}\n"
    );
    let results = run(&text, &[integers(ElementType::U64, &[length], state)]);
    (bits(&results[0]), bits(&results[1]))
}

#[test]
fn known_answers() {
    let words = [0x1319_8a2e, 0x0370_7344, 0x243f_6a88, 0x85a3_08d3, 0xa409_3822, 0x299f_31d0];
    let join = |low: u64, high: u64| low | high << 32;
    for (state, expected) in [
        ([0, 0], [0x6b20_0159, 0x99ba_4efe]),
        ([u64::MAX, u64::MAX], [0x1cb9_96fc, 0xbb00_2be7]),
        ([join(words[0], words[1]), join(words[2], words[3])], [0xc492_3a9c, 0x483d_f7a0]),
    ] {
        assert_eq!(generate("rng_three_fry", &state, "u32[2]").1, expected);
    }
    for (state, expected) in [
        ([0; 3], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
        ([u64::MAX; 3], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
        (
            [join(words[4], words[5]), join(words[2], words[3]), join(words[0], words[1])],
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
        ),
    ] {
        assert_eq!(generate("rng_philox", &state, "u32[4]").1, expected);
        assert_eq!(generate("rng_default", &state, "u32[2,2]").1, expected);
    }
}

/// Words of 64 bits are blocks in order; the others are arranged from them.
#[test]
fn threefry_alternates_words_along_one_dimension() {
    let state = [7, 11];
    let (next, blocks) = generate("rng_three_fry", &state, "u64[12]");
    assert_eq!(next, [7, 23]);
    let word = |block: usize, half: usize| blocks[block] >> (32 * half) & 0xffff_ffff;
    // No even dimension: the largest one is padded.
    let (next, found) = generate("rng_three_fry", &state, "u32[3,5]");
    let expected: Vec<_> = (0..15).map(|at| word(at / 5 * 3 + at % 5 / 2, at % 5 % 2)).collect();
    assert_eq!((next, found), (vec![7, 20], expected));
    // The first even dimension, and the low bits of the words.
    let expected: Vec<_> =
        (0..24).map(|at| word(at / 12 * 6 + at % 6, at / 6 % 2) & 0xff).collect();
    for result in ["u8[4,6]", "s8[4,6]"] {
        let found = generate("rng_three_fry", &state, result);
        assert_eq!(found, (vec![7, 23], expected.clone()), "{result}");
    }
    assert_eq!(generate("rng_three_fry", &state, "u32[]"), (vec![7, 12], vec![word(0, 0)]));
    assert_eq!(generate("rng_three_fry", &state, "s64[3]"), (vec![7, 14], blocks[..3].to_vec()));
    assert_eq!(generate("rng_three_fry", &state, "u32[0,3]"), (vec![7, 11], vec![]));
}

#[test]
fn philox_gives_words_in_order() {
    // The number carries into the high half.
    let state = [7, u64::MAX, 11];
    let (next, words) = generate("rng_philox", &state, "u32[8]");
    assert_eq!(next, [7, 1, 12]);
    let (next, found) = generate("rng_philox", &state, "u16[1,5]");
    assert_eq!(next, [7, 1, 12]);
    assert_eq!(found, words[..5].iter().map(|word| word & 0xffff).collect::<Vec<_>>());
    let (next, found) = generate("rng_philox", &state, "u64[3]");
    let pairs = words.chunks(2).map(|pair| pair[0] | pair[1] << 32);
    assert_eq!((next, found), (vec![7, 1, 12], pairs.take(3).collect()));
    // A state of two has the key as the high half as well, and keeps no carry.
    let (next, found) = generate("rng_philox", &[7, 3], "s32[3]");
    assert_eq!(next, [7, 4]);
    assert_eq!(found, generate("rng_philox", &[7, 3, 7], "s32[3]").1);
}

#[test]
fn other_states_are_refused() {
    for (algorithm, state, expected) in [
        ("rng_three_fry", "u64[3]", "expected a state of u64[2] for 'rng_three_fry'"),
        ("rng_philox", "u64[4]", "expected a state of u64[2] or u64[3] for 'rng_philox'"),
        ("rng_philox", "u32[4]", "found u32[4]"),
    ] {
        let text = format!(
            "HloModule m\nENTRY main {{\n  state = {state} parameter(0)\n  \
             ROOT bits = ({state}, u8[2]) rng-bit-generator(state), algorithm={algorithm}\n}}\n"
        );
        let error = try_run(&text, &[]).expect_err("such a state has no meaning");
        assert!(error.contains(expected), "{error}");
    }
}
