//! Each constraint with an instruction that breaks it, and one that keeps it where that is not
//! plain from the corpus.

use super::*;
use crate::{hlo::read, text::SourceFile};

/// Computations that the instructions of the tests refer to.
const COMPUTATIONS: &str = "
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ge { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }
one { a = f32[] parameter(0) ROOT r = f32[] negate(a) }
int { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }
pair { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = (f32[], f32[]) tuple(a, b) }
body { a = f32[5] parameter(0) ROOT r = f32[5] negate(a) }
cond { a = f32[5] parameter(0) ROOT r = pred[] constant(true) }
";

/// The errors of an instruction whose operands have these shapes and the names a, b, c, ...
fn errors(operands: &str, instruction: &str) -> Vec<String> {
    let mut text = format!("HloModule test\n{COMPUTATIONS}\nENTRY main {{\n");
    for (number, shape) in operands.split(' ').filter(|shape| !shape.is_empty()).enumerate() {
        let name = char::from(b'a' + number as u8);
        text += &format!("  {name} = {shape} parameter({number})\n");
    }
    text += &format!("  ROOT r = {instruction}\n}}\n");
    let (source, module, diagnostics) = read("test.hlo", text.into_bytes());
    assert_eq!(module.is_some(), diagnostics.is_empty(), "{}", source.render_all(&diagnostics));
    diagnostics.into_iter().map(|each| each.message).collect()
}

fn check(rows: &[(&str, &str, &str)]) {
    for (operands, instruction, expected) in rows {
        let found = errors(operands, instruction);
        match expected.is_empty() {
            true => assert!(found.is_empty(), "{instruction}: {found:?}"),
            false => assert!(
                found.len() == 1 && found[0].contains(expected),
                "{instruction}\nexpected: {expected}\nfound: {found:?}"
            ),
        }
    }
}

#[test]
fn elementwise_constraints() {
    check(&[
        // E1.
        (
            "s32[2]",
            "s32[2] sine(a)",
            "'sine': expected operand 0 to hold floats or complex numbers",
        ),
        ("f32[2]", "f32[2] not(a)", "expected operand 0 to hold integers or pred, found f32[2]"),
        ("f32[2] f32[2]", "f32[2] shift-left(a, b)", "expected operand 0 to hold integers"),
        ("pred[2]", "pred[2] negate(a)", "expected operand 0 to hold numbers, found pred[2]"),
        ("c64[] c64[]", "c64[] maximum(a, b)", "anything but complex numbers"),
        ("token[]", "f32[] negate(a)", "expected operand 0 to be an array, found token[]"),
        ("pred[2] pred[2]", "pred[2] add(a, b)", ""),
        // E2.
        (
            "f32[2] f32[3]",
            "f32[2] add(a, b)",
            "operands of the same shape, found f32[2] and f32[3]",
        ),
        ("f32[2] bf16[2]", "f32[2] add(a, b)", "operands of the same shape"),
        // E3.
        ("f32[2]", "f32[3] negate(a)", "expected shape f32[2] from operands and attributes"),
        ("c64[2]", "f32[2] abs(a)", ""),
        ("f32[2] f32[2]", "c128[2] complex(a, b)", "expected shape c64[2]"),
        ("f16[2] f16[2]", "c64[2] complex(a, b)", "operands of type f32 or f64, found f16"),
        ("f32[2]", "f32[2] is-finite(a)", "expected shape pred[2]"),
        // E4.
        ("c64[2]", "f32[2] convert(a)", "expected a complex type to convert c64 to, found f32"),
        ("s32[2]", "c64[2] convert(a)", ""),
        // E5.
        ("f32[2]", "u8[2,4] bitcast-convert(a)", ""),
        ("u8[2,4]", "f32[2] bitcast-convert(a)", ""),
        ("u8[2,3]", "f32[2] bitcast-convert(a)", "the last dimension of u8[2,3] to have size 4"),
        ("c64[2]", "u64[2] bitcast-convert(a)", "expected both types or none to be complex"),
        // E6.
        ("pred[] f32[2] f32[2]", "f32[2] select(a, b, c)", ""),
        (
            "pred[3] f32[2] f32[2]",
            "f32[2] select(a, b, c)",
            "pred of the sizes of f32[2], found pred[3]",
        ),
        ("s32[] f32[2] f32[2]", "f32[2] select(a, b, c)", "expected operand 0 to be pred[]"),
        ("pred[] f32[2] f32[3]", "f32[2] select(a, b, c)", "operands 1 and 2 of the same shape"),
        // E7.
        ("f32[] f32[2] f32[2]", "f32[2] clamp(a, b, c)", ""),
        (
            "f32[1] f32[2] f32[2]",
            "f32[2] clamp(a, b, c)",
            "expected operand 0 to be a scalar or an array",
        ),
        // E8.
        (
            "s32[] s32[]",
            "pred[] compare(a, b), direction=LT, type=FLOAT",
            "type=FLOAT does not fit",
        ),
        (
            "u8[] u8[]",
            "pred[] compare(a, b), direction=LT, type=SIGNED",
            "type=SIGNED does not fit",
        ),
        ("c64[] c64[]", "pred[] compare(a, b), direction=LT", "have no order to compare with LT"),
        // E9.
        ("f32[]", "f32[] reduce-precision(a), exponent_bits=0, mantissa_bits=3", "at least 1 bit"),
        // E10.
        ("bf16[2] u16[2]", "s8[2] stochastic-convert(a, b)", ""),
        (
            "f32[2] u16[2]",
            "s8[2] stochastic-convert(a, b)",
            "random numbers of type u32, found u16",
        ),
    ]);
}

#[test]
fn structural_constraints() {
    check(&[
        // S1.
        (
            "f32[2]",
            "f32[2,3] broadcast(a), dimensions={}",
            "entries in 'dimensions' to be 1, found 0",
        ),
        (
            "f32[2]",
            "f32[2,3] broadcast(a), dimensions={1}",
            "but dimension 1 of the result has size 3",
        ),
        (
            "f32[2,2]",
            "f32[2,2] broadcast(a), dimensions={1,1}",
            "'dimensions' has dimension 1 twice",
        ),
        ("f32[2,3]", "f32[3,2] broadcast(a), dimensions={1,0}", ""),
        // S2.
        ("f32[6]", "f32[2,4] reshape(a)", "type and number of elements as f32[6], found f32[2,4]"),
        ("f32[6]", "s32[2,3] reshape(a)", "expected the same type and number of elements"),
        // S3.
        ("f32[6]", "f16[12] bitcast(a)", ""),
        ("f32[6]", "f16[6] bitcast(a)", "expected as many bits as f32[6] has, found f16[6]"),
        // S4.
        ("f32[2,3]", "f32[2,3] transpose(a), dimensions={1,0}", "expected shape f32[3,2]"),
        ("f32[2,3]", "f32[2,2] transpose(a), dimensions={0,0}", "has dimension 0 twice"),
        // S5.
        (
            "f32[2,3]",
            "f32[2,3] reverse(a), dimensions={2}",
            "has dimension 2, expected one from 0 to 1",
        ),
        // S6.
        ("f32[7]", "f32[3] slice(a), slice={[1:7:2]}", ""),
        ("f32[7]", "f32[0] slice(a), slice={[7:7]}", ""),
        ("f32[7]", "f32[2] slice(a), slice={[5:3]}", "a range inside of [0:7] in dimension 0"),
        (
            "f32[7]",
            "f32[7] slice(a), slice={[0:7:0]}",
            "a stride of at least 1 in dimension 0, found 0",
        ),
        ("f32[7]", "f32[7] slice(a), slice={}", "expected the number of ranges to be 1, found 0"),
        // S7.
        ("f32[2,3] f32[4,3]", "f32[6,3] concatenate(a, b), dimensions={0}", ""),
        (
            "f32[2,3] f32[2,4]",
            "f32[4,3] concatenate(a, b), dimensions={0}",
            "expected operand 1 to have",
        ),
        (
            "f32[2] f32[2]",
            "f32[4] concatenate(a, b), dimensions={0,1}",
            "one entry in 'dimensions'",
        ),
        (
            "pred[9223372036854775807] pred[9223372036854775807]",
            "pred[1] concatenate(a, b), dimensions={0}",
            "does not fit in 64 bits",
        ),
        // S8.
        ("f32[3] f32[]", "f32[8] pad(a, b), padding=1_2_1", ""),
        ("f32[0] f32[]", "f32[3] pad(a, b), padding=1_2_5", ""),
        (
            "f32[3] f32[]",
            "f32[1] pad(a, b), padding=-2_-2",
            "padding takes 4 elements from dimension 0",
        ),
        (
            "f32[3] f32[]",
            "f32[3] pad(a, b), padding=0_0_-1",
            "interior padding of at least 0, found -1",
        ),
        (
            "f32[3] s32[]",
            "f32[3] pad(a, b), padding=0_0",
            "expected f32[] to pad with, found s32[]",
        ),
        (
            "f32[3] f32[]",
            "f32[3] pad(a, b), padding=9223372036854775807_9223372036854775807",
            "does not fit in 64 bits",
        ),
        // S9.
        ("", "s32[3] iota(), iota_dimension=1", "'iota_dimension' has dimension 1, expected one"),
        ("", "s32[] iota(), iota_dimension=0", "but the array has none"),
        ("", "pred[3] iota(), iota_dimension=0", "a result that holds numbers"),
        // S10.
        ("f32[3]", "s64[] get-dimension-size(a), dimensions={0}", "expected shape s32[]"),
        ("f32[3] f32[]", "f32[3] set-dimension-size(a, b), dimensions={0}", "to be one integer"),
        // C4.
        (
            "f32[2]",
            "f32[4611686018427387904] broadcast(a), dimensions={0}",
            "more bytes than 64 bits",
        ),
    ]);
}

#[test]
fn indexed_constraints() {
    let gather = |rest: &str| format!("f32[5,3] gather(a, b), {rest}");
    let scatter = |rest: &str| format!("f32[7,3] scatter(a, b, c), to_apply=add, {rest}");
    let good = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, \
                slice_sizes={1,3}";
    let with = |from: &str, to: &str| gather(&good.replace(from, to));
    let window = "update_window_dims={1}, inserted_window_dims={0}, \
                  scatter_dims_to_operand_dims={0}, index_vector_dim=1";
    let but = |from: &str, to: &str| scatter(&window.replace(from, to));
    let (shapes, updates) = ("f32[7,3] s32[5,1]", "f32[7,3] s32[5,1] f32[5,3]");
    check(&[
        // I1.
        ("f32[7] s32[]", "f32[3] dynamic-slice(a, b), dynamic_slice_sizes={3}", ""),
        ("f32[7] s32[1]", "f32[3] dynamic-slice(a, b), dynamic_slice_sizes={3}", ""),
        ("f32[7] s32[]", "f32[8] dynamic-slice(a, b), dynamic_slice_sizes={8}", "size from 0 to 7"),
        ("f32[7]", "f32[3] dynamic-slice(a), dynamic_slice_sizes={3}", "number of indices to be 1"),
        (
            "f32[7] f32[]",
            "f32[3] dynamic-slice(a, b), dynamic_slice_sizes={3}",
            "to be one integer",
        ),
        (
            "f32[7,3] s32[] s64[]",
            "f32[1,1] dynamic-slice(a, b, c), dynamic_slice_sizes={1,1}",
            "expected indices of one type, found s32 and s64",
        ),
        // I2.
        (
            "f32[7] s32[3] s32[]",
            "f32[7] dynamic-update-slice(a, b, c)",
            "element type of the update",
        ),
        (
            "f32[7] f32[8] s32[]",
            "f32[7] dynamic-update-slice(a, b, c)",
            "expected the update to have",
        ),
        // I3 to I7.
        (shapes, &gather(good), ""),
        ("f32[7,3] f32[5,1]", &gather(good), "expected indices that are integers"),
        (shapes, &with("index_vector_dim=1", "index_vector_dim=3"), "to be from 0 to 2, found 3"),
        (shapes, &with("map={0}", "map={0,1}"), "entries in 'start_index_map' to be 1, found 2"),
        (shapes, &with("map={0}", "map={2}"), "'start_index_map' has dimension 2"),
        (
            shapes,
            &with("{1,3}", "{1,4}"),
            "'slice_sizes' to have a size from 0 to 3 in dimension 1",
        ),
        (shapes, &with("{1,3}", "{2,3}"), "a slice size of at most 1 in dimension 0"),
        (
            shapes,
            &with("offset_dims={1}", "offset_dims={}"),
            "entries in 'offset_dims' to be 1, found 0",
        ),
        (shapes, &with("offset_dims={1}", "offset_dims={0}"), "expected shape f32[3,5]"),
        (
            shapes,
            &with("index_v", "operand_batching_dims={1}, start_indices_batching_dims={}, index_v"),
            "entries in 'start_indices_batching_dims' to be 1, found 0",
        ),
        // I8.
        (updates, &scatter(window), ""),
        ("f32[7,3] s32[5,1] f32[5,4]", &scatter(window), "a size of at most 3 in dimension 1"),
        ("f32[7,3] s32[5,1] f32[6,3]", &scatter(window), "expected the sizes [5] of the indices"),
        (updates, &but("inserted_window_dims={0}", "inserted_window_dims={}"), "to be 2, found 1"),
        (updates, &but("operand_dims={0}", "operand_dims={5}"), "has dimension 5, expected one"),
        (
            "f32[7] s32[1] f32[1] f32[1]",
            "f32[7] scatter(a, b, c, d), to_apply=add, \
          update_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
            "as many updates, found 4",
        ),
        // I9.
        (updates, &scatter(window).replace("=add", "=one"), "'one' to have 2 parameters, found 1"),
        (
            updates,
            &scatter(window).replace("=add", "=int"),
            "expected parameter 0 of computation 'int'",
        ),
    ]);
}

#[test]
fn contraction_constraints() {
    let dot = "dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    let conv = "f32[1,6,6,5] convolution(a, b), window={size=3x3}, dim_labels=b01f_01io->b01f";
    let images = "f32[1,8,8,4] f32[3,3,4,5]";
    check(&[
        // D1.
        (
            "f32[2,3] f32[4,5]",
            &format!("f32[2,5] {dot}"),
            "dimension 1 of the lhs has 3, dimension 0",
        ),
        (
            "f32[2,3] f32[3]",
            &format!("f32[2] {dot}").replace("{1}", "{2}"),
            "has dimension 2, expected",
        ),
        ("f32[2,3] f32[3,2]", &format!("f32[2,2] {dot}").replace("{0}", "{}"), "to be 1, found 0"),
        // D2.
        ("s8[2,3] s8[3,5]", &format!("s32[2,5] {dot}"), ""),
        ("bf16[2,3] bf16[3,5]", &format!("f32[2,5] {dot}"), ""),
        ("f32[2,3] s32[3,5]", &format!("f32[2,5] {dot}"), ""),
        ("pred[2,3] c64[3,5]", &format!("c64[2,5] {dot}"), ""),
        (
            "s32[2,3] f32[3,5]",
            &format!("s32[2,5] {dot}"),
            "expected a result that holds numbers as f32[3,5]",
        ),
        (
            "f32[2,3] f32[3,5]",
            &format!("s32[2,5] {dot}"),
            "expected a result that holds numbers as",
        ),
        // D3.
        ("f32[2,3] f32[3,5]", &format!("f32[5,2] {dot}"), "expected shape f32[2,5]"),
        // D4.
        (
            "f8e4m3fn[2,8] f8e4m3fn[8,5] f8e8m0fnu[2,3] f32[]",
            "f32[2,5] scaled-dot(a, b, c, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            "expected floats of sizes that divide those of f8e4m3fn[2,8]",
        ),
        // D5.
        (
            "f32[9,4] f32[3,4,5] s32[3]",
            "f32[9,5] ragged-dot(a, b, c), lhs_contracting_dims={1}, rhs_contracting_dims={1}, \
             lhs_ragged_dims={0}, rhs_group_dims={0}",
            "",
        ),
        (
            "f32[9,4] f32[4,5] s32[3]",
            "f32[3,9,5] ragged-dot(a, b, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}, \
             lhs_ragged_dims={1}",
            "",
        ),
        (
            "f32[9,4] f32[3,4,5] s32[2]",
            "f32[9,5] ragged-dot(a, b, c), lhs_contracting_dims={1}, rhs_contracting_dims={1}, \
             lhs_ragged_dims={0}, rhs_group_dims={0}",
            "expected the size of group dimension 0 of the rhs to be 2, found 3",
        ),
        // D6 to D8.
        (images, conv, ""),
        (images, &conv.replace("6,6", "8,8"), "expected shape f32[1,6,6,5]"),
        ("f32[1,8,8,4] f32[3,2,4,5]", conv, "size of the window in dimension 1 to be 2, found 3"),
        (
            "f32[1,8,8,4] f32[3,3,3,5]",
            conv,
            "number of input features of the kernel to be 4, found 3",
        ),
        ("f32[1,8,4] f32[3,3,4,5]", conv, "number of labels in 'dim_labels' to be 3, found 4"),
        (images, &format!("{conv}, feature_group_count=0"), "to be at least 1"),
        (images, &format!("{conv}, batch_group_count=2"), "do not split into 2"),
        // D9.
        ("f32[6,12]", "c64[6,7] fft(a), fft_type=RFFT, fft_length={12}", ""),
        ("f32[6,12]", "c64[6,12] fft(a), fft_type=FFT, fft_length={12}", "complex numbers for FFT"),
        ("c64[6,12]", "c64[6,12] fft(a), fft_type=FFT, fft_length={6,13}", "of sizes [6, 13]"),
        (
            "c64[12]",
            "c64[12] fft(a), fft_type=FFT, fft_length={}",
            "'fft_length' to have 1 to 3 entries",
        ),
        // D10.
        ("f32[3,4]", "f32[3,4] cholesky(a)", "expected square matrices"),
        ("f32[3,3] f32[4,2]", "f32[4,2] triangular-solve(a, b), left_side=true", "does not fit"),
        ("f32[3,3] f32[2,3]", "f32[2,3] triangular-solve(a, b)", ""),
    ]);
}

#[test]
fn window_constraints() {
    let windows = "reduce-window(a, b), to_apply=add, window=";
    check(&[
        // W1.
        (
            "f32[7,3] f32[]",
            &format!("f32[6] {windows}{{size=2}}"),
            "of the window to be 2, found 1",
        ),
        (
            "f32[7] f32[]",
            &format!("f32[6] {windows}{{size=0}}"),
            "'size' of the window to be at least 1",
        ),
        ("f32[7] f32[]", &format!("f32[6] {windows}{{size=2 stride=0}}"), "'stride' of the window"),
        // W2.
        ("f32[7] f32[]", &format!("f32[4] {windows}{{size=2 stride=2 pad=1_0}}"), ""),
        ("f32[3] f32[]", &format!("f32[0] {windows}{{size=4}}"), ""),
        ("f32[3] f32[]", &format!("f32[5] {windows}{{size=1 lhs_dilate=2}}"), ""),
        ("f32[3] f32[]", &format!("f32[1] {windows}{{size=2 rhs_dilate=2}}"), ""),
        (
            "f32[3] f32[]",
            &format!("f32[1] {windows}{{size=1 pad=9223372036854775807_1}}"),
            "does not fit in 64 bits",
        ),
        // W3.
        (
            "f32[7] f32[1]",
            "f32[] reduce(a, b), dimensions={0}, to_apply=add",
            "f32[] to start with",
        ),
        (
            "f32[7] f32[8] f32[] f32[]",
            "(f32[], f32[]) reduce(a, b, c, d), dimensions={0}, to_apply=add",
            "arrays of the same sizes, found f32[7] and f32[8]",
        ),
        // W4.
        (
            "f32[7] f32[]",
            "f32[] reduce(a, b), dimensions={0}, to_apply=one",
            "to have 2 parameters",
        ),
        ("f32[7] f32[]", "f32[] reduce(a, b), dimensions={0}, to_apply=pair", "to give 1 scalars"),
        (
            "s32[7] s32[]",
            "s32[] reduce(a, b), dimensions={0}, to_apply=add",
            "parameter 0 of computation",
        ),
        ("bf16[7] f32[]", "f32[] reduce(a, b), dimensions={0}, to_apply=add", ""),
        // W5.
        (
            "f32[7,3] f32[]",
            "f32[7] reduce(a, b), dimensions={0}, to_apply=add",
            "expected shape f32[3]",
        ),
        // W6.
        (
            "f32[7] f32[3] f32[]",
            "f32[7] select-and-scatter(a, b, c), window={size=2 stride=2}, select=ge, scatter=add",
            "",
        ),
        (
            "f32[7] f32[4] f32[]",
            "f32[7] select-and-scatter(a, b, c), window={size=2 stride=2}, select=ge, scatter=add",
            "expected f32[3] as the source, found f32[4]",
        ),
        (
            "f32[7] f32[3] f32[]",
            "f32[7] select-and-scatter(a, b, c), window={size=2 stride=2}, select=add, scatter=add",
            "expected computation 'add' to give pred[], found f32[]",
        ),
        // W7.
        ("f32[7]", "f32[7] map(a), dimensions={1}, to_apply=one", "expected all dimensions"),
        ("f32[7]", "f32[7] map(a), to_apply=add", "'add' to have 1 parameter, found 2"),
        // W8.
        ("f32[7]", "f32[7] sort(a), dimensions={1}, to_apply=ge", "'dimensions' has dimension 1"),
        ("f32[7]", "f32[7] sort(a), dimensions={0}, to_apply=add", "to give pred[], found f32[]"),
        // W9.
        (
            "f32[7]",
            "(f32[8], s32[8]) topk(a), k=8",
            "expected 'k' from 0 to the last size of f32[7]",
        ),
        // W10.
        (
            "f32[7] f32[]",
            "(f32[7], f32[]) scan(a, b), dimensions={0}, num_carries=2, to_apply=pair",
            "expected 'num_carries' from 0 to 1, found 2",
        ),
        (
            "f32[7] f32[]",
            "(f32[7], f32[]) scan(a, b), dimensions={0}, num_carries=1, to_apply=one",
            "to have 2 parameters, found 1",
        ),
        // W11.
        (
            "f32[2,3] f32[3] f32[2]",
            "(f32[2,3], f32[3], f32[3]) batch-norm-training(a, b, c), epsilon=0.1, feature_index=1",
            "expected operand 2 to have shape f32[3], found f32[2]",
        ),
    ]);
}

#[test]
fn control_constraints() {
    check(&[
        // F1.
        ("f32[]", "f32[] get-tuple-element(a), index=0", "expected a tuple, found f32[]"),
        ("(f32[],s32[])", "f32[] get-tuple-element(a), index=1", "expected shape s32[]"),
        // F2.
        ("f32[]", "f32[] call(a), to_apply=add", "'add' to have 1 parameter, found 2"),
        ("f32[2]", "f32[2] fusion(a), kind=kLoop, calls=one", "to have shape f32[2], found f32[]"),
        // F3.
        ("f32[5]", "f32[5] while(a), condition=cond, body=body", ""),
        (
            "f32[5]",
            "f32[5] while(a), condition=body, body=body",
            "'body' to give pred[], found f32[5]",
        ),
        // F4.
        (
            "pred[] f32[5] f32[5]",
            "f32[5] conditional(a, b, c), true_computation=body, false_computation=body",
            "",
        ),
        (
            "pred[] f32[5]",
            "f32[5] conditional(a, b), branch_computations={body}",
            "pred[] does not select one of 1 branches",
        ),
        (
            "s32[] f32[5]",
            "f32[5] conditional(a, b), branch_computations={body, body}",
            "expected the number of operands to be 3, found 2",
        ),
        ("s32[] f32[5]", "f32[5] conditional(a, b)", "expected 'branch_computations', or"),
        // F5.
        ("f32[]", "token[] after-all(a)", "expected operand 0 to be a token, found f32[]"),
        // F6 to F8.
        ("f32[4]", "f32[8] all-gather(a), dimensions={0}, replica_groups={{0,1}}", ""),
        ("f32[4]", "f32[9] all-gather(a), dimensions={0}", "expected shape f32[4]"),
        (
            "f32[5]",
            "f32[2] reduce-scatter(a), dimensions={0}, to_apply=add, replica_groups={{0,1}}",
            "size 5 does not split into 2 parts",
        ),
        ("f32[4]", "f32[4] all-reduce(a), to_apply=one", "'one' to have 2 parameters"),
        // F9.
        (
            "f32[4]",
            "f32[4] all-reduce(a), to_apply=add, replica_groups={{0,0}}",
            "names replica 0 twice",
        ),
        ("f32[4]", "f32[4] all-reduce(a), to_apply=add, replica_groups=[2,2]<=[4]", ""),
        (
            "f32[4]",
            "f32[4] all-reduce(a), to_apply=add, replica_groups=[2,2]<=[5]",
            "to cut an array",
        ),
        (
            "f32[4]",
            "f32[4] collective-permute(a), source_target_pairs={{0,1},{0,2}}",
            "the pair {0,2} names a replica again",
        ),
        // F10.
        ("", "s32[] replica-id()", "expected shape u32[]"),
        // F11.
        (
            "s32[2]",
            "(s32[2], u32[3]) rng-bit-generator(a), algorithm=rng_philox",
            "expected a list of u32 or u64 as the state",
        ),
        // F12.
        ("f32[2]", "(f32[2], f32[2], u32[]) copy-start(a), cross_program_prefetch_index=0", ""),
        ("f32[2]", "(f32[2], f32[2]) copy-start(a)", "expected shape (f32[2], f32[2], u32[])"),
        ("(f32[2],f32[2],u32[])", "f32[2] copy-done(a)", ""),
        ("(f32[2],f32[3],u32[])", "f32[2] copy-done(a)", "expected what 'copy-start' gives"),
    ]);
}

/// What breaks a module.
type Change<'c> = &'c dyn Fn(&mut Module);

/// C11.
#[test]
fn aliases_are_of_results_and_parameters() {
    let errors = |aliases: &str| {
        let text = format!(
            "HloModule test, input_output_alias={{ {aliases} }}\nENTRY main {{\n  a = f32[2] parameter(0)\n  \
             b = (f32[2], f32[]) parameter(1)\n  c = f32[] constant(1)\n  ROOT r = (f32[2], f32[]) tuple(a, c)\n}}\n"
        );
        let (_, _, diagnostics) = read("test.hlo", text.into_bytes());
        diagnostics.into_iter().map(|each| each.message).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(errors("{0}: (1, {0}), {1}: (1, {1})"), "");
    for (aliases, expected) in [
        ("{2}: (0, {})", "has the result {2}, which (f32[2], f32[]) does not have"),
        ("{0, 0}: (0, {})", "has the result {0, 0}, which (f32[2], f32[]) does not have"),
        ("{0}: (2, {})", "has parameter 2, and the entry has 2 parameters"),
        (
            "{0}: (1, {2})",
            "has the element {2} of parameter 1, which (f32[2], f32[]) does not have",
        ),
        ("{0}: (0, {}), {0}: (1, {0})", "has two parameters for the result {0}; remove one"),
        (
            "{0}: (0, {}), {1}: (0, {})",
            "has parameter 0 at {} for two results, {0} and {1}; remove one",
        ),
    ] {
        let found = errors(aliases);
        assert!(found.starts_with("'input_output_alias' ") && found.contains(expected), "{found}");
    }
}

/// C1 to C10, of modules that no text gives.
#[test]
fn structure_of_modules_made_otherwise() {
    let text = format!(
        "HloModule m\n{COMPUTATIONS}\nENTRY main {{ a = f32[] parameter(0) c = f32[] constant(1) \
         ROOT r = f32[] call(a, c), to_apply=add }}"
    );
    let (module, _) = crate::hlo::syntax::parse_module(&SourceFile::new("m.hlo", text));
    let module = module.unwrap();
    let broken = |change: Change| {
        let mut module = module.clone();
        change(&mut module);
        verify(&module).first().map(|each| each.message.clone()).unwrap_or_default()
    };
    let main = module.entry.index();
    assert_eq!(broken(&|_| {}), "");
    let cases: [(Change, &str); 11] = [
        (&|m| m.computations[main].instructions[2].operands[0].0 = 2, "does not stand before it"),
        (&|m| m.computations[main].instructions[2].operands.truncate(1), "to have 1 parameter"),
        (&|m| m.computations[main].instructions[2].attributes.clear(), "needs the attribute"),
        (
            &|m| {
                m.computations[main].instructions[0]
                    .set_attribute(Attribute::Index, Value::Integer(0))
            },
            "'parameter' does not take the attribute 'index'",
        ),
        (
            &|m| {
                m.computations[main].instructions[2]
                    .set_attribute(Attribute::ToApply, Value::Integer(0))
            },
            "'to_apply' of 'call' has a value of another kind",
        ),
        (
            &|m| {
                let entry = m.entry;
                m.computations[main].instructions[2]
                    .set_attribute(Attribute::ToApply, Value::Computation(entry))
            },
            "a computation that 'r' refers to does not stand before",
        ),
        (&|m| m.computations[main].instructions[2].name = "a b".to_owned(), "is no name of an"),
        (&|m| m.computations[main].instructions[2].name = "a".to_owned(), "'a' is defined twice"),
        (&|m| m.computations[main].parameters.clear(), "a parameter of 'main' is not listed"),
        (&|m| m.computations[main].root.0 = 9, "the root of 'main' is not one"),
        (
            &|m| {
                m.computations[main].instructions[1].shape =
                    Shape::scalar(crate::element::ElementType::S32)
            },
            "'constant': expected a value of the shape",
        ),
    ];
    for (change, expected) in cases {
        let found = broken(change);
        assert!(found.contains(expected), "expected: {expected}\nfound: {found}");
    }
    assert!(broken(&|module| module.entry.0 = 99).contains("the entry is not one"));
}
