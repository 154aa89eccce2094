//! Programs of every language on the GPU target, in the emulator, against the interpreter.
//!
//! `TC_DEVICE_HLO` is a folder of folders with `module.hlo` and `in0.npy`, .., which are run in place of the list.

#[path = "support/device.rs"]
mod device;

use device::{Run, compare_program};
use melior::{Context, ir::Module};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};
use tc_backends::{
    Codegen, Program as _, Request, Session, Source,
    backend::KernelCounts,
    languages::{hlo, tc, tml},
    nvvm::{self, emulator, machines},
    program::{Lowered, Sizes, in_memory},
    runtime::{ElementType, Tensor, npy::load, random},
};
use tc_dialects::{mlir, report, tc::import::import};
use tc_passes::run_pipeline;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Random inputs for the tensors that a function takes, whose open extents are `sizes` in order.
fn random_tensors(module: &Module, name: &str, sizes: &[usize], seed: u64) -> Vec<Tensor> {
    let functions = mlir::ops(mlir::block_ref(module.body())).into_iter();
    let function =
        functions.into_iter().find(|it| mlir::string_attr(*it, "sym_name") == Some(name));
    let function = function.expect("the function of the program");
    let attributes = mlir::array_attr(function, "arg_attrs");
    let mut sizes = sizes.iter();
    let (types, _) = mlir::function_type(function).expect("a function has a type");
    let tensors = types.into_iter().enumerate().map(|(number, ty)| {
        let attribute = |name| mlir::dictionary_entry(*attributes.get(number)?, name);
        let element = ElementType::of(ty, attribute("tc.unsigned").is_some());
        let shape = mlir::shape(ty).into_iter().map(|extent| match extent {
            Some(extent) => extent as usize,
            None => *sizes.next().expect("a size per open extent"),
        });
        let shape: Vec<_> = shape.collect();
        let element = element.expect("a type of elements in memory");
        random(element, &shape, seed + number as u64, None).expect("a small tensor")
    });
    tensors.collect()
}

/// [`compare_program`], with the errors that were reported.
fn compare_in(
    context: &Context,
    build: impl FnOnce(&Context) -> Result<Run, String>,
) -> Result<Run, String> {
    let (id, received) = report::collect(context);
    let result = build(context);
    context.detach_diagnostic_handler(id);
    result.map_err(|error| {
        let received = received.borrow();
        let errors = received.iter().filter(|it| it.is_error());
        let errors: Vec<_> = errors.map(|it| format!("{:?}: {}", it.place, it.message)).collect();
        format!("{error}\n{}", errors.join("\n"))
    })
}

/// Runs a module of HLO on tensors, or on random ones if these are not what it takes.
fn run_hlo(name: &str, text: &str, inputs: Option<Vec<Tensor>>) -> Result<Run, String> {
    compare_in(&tc_dialects::new_context(), |context| {
        let program = hlo::Program::read(context, name, text.into());
        let program = program.map_err(|error| error.to_string())?;
        let lowered = program.lower(&Request::default()).map_err(|error| error.to_string())?;
        let Lowered { module: mut lowered, function, .. } = lowered;
        // A complex array is two tensors for callers.
        run_pipeline(&mut lowered, "split-complex").map_err(|error| error.to_string())?;
        let mut drawn = random_tensors(&lowered, &function, &[], 1);
        // Files have no type for some elements, and complex numbers are two tensors each.
        let place = |tensor: &Tensor| (tensor.element(), tensor.shape().to_vec());
        let fits = |it: &Vec<Tensor>| it.iter().map(place).eq(drawn.iter().map(place));
        if let Some(inputs) = inputs.filter(fits) {
            drawn = inputs;
        }
        let inputs = drawn;
        compare_program(&lowered, &function, &[&inputs], &emulator::Options::default())
    })
}

/// The inputs of a case; `None` if a file holds no tensor.
fn case_inputs(folder: &Path) -> Option<Vec<Tensor>> {
    let paths = (0..).map(|number| folder.join(format!("in{number}.npy")));
    paths.take_while(|path| path.exists()).map(|path| load(path).ok()).collect()
}

/// Cases with control flow, scans, sorts, scatters, gathers and linear algebra, which take little time.
const CASES: [&str; 16] = [
    "arg_reduce",
    "cholesky_solve",
    "conditionals",
    "cumulative",
    "dot_lowp",
    "dynamic_slices",
    "ew_complex",
    "gather_general",
    "kalman_f64",
    "nested_calls",
    "reduce_many",
    "scatter_general",
    "sort_multi",
    "topk",
    "while_loops",
    "zero_dims",
];

#[test]
fn cases_of_hlo_agree() {
    let folder = std::env::var_os("TC_DEVICE_HLO");
    let mut folders: Vec<_> = match &folder {
        Some(folder) => {
            fs::read_dir(folder).expect("a folder").map(|it| it.expect("an entry").path()).collect()
        }
        None => CASES.iter().map(|case| root().join("tests/conformance/hlo").join(case)).collect(),
    };
    folders.sort();
    let mut failures = Vec::new();
    for folder in folders.iter().filter(|it| it.join("module.hlo").exists()) {
        let name = folder.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        let inputs = case_inputs(folder);
        let text = fs::read_to_string(folder.join("module.hlo")).expect("the text of the case");
        let time = std::time::Instant::now();
        match run_hlo(name, &text, inputs) {
            Ok(run) => println!("{name}: {run:?} in {:?}", time.elapsed()),
            Err(error) => {
                println!("{name}: {error}");
                failures.push(format!("{name}: {error}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Runs a program of one instruction on random operands.
///
/// # Panics
/// It fails, or has other results.
#[track_caller]
fn run_instruction(operands: &[&str], result: &str, opcode: &str, attributes: &str) -> Run {
    let parameters = operands.iter().enumerate();
    let parameters = parameters.map(|(at, shape)| format!("  p{at} = {shape} parameter({at})\n"));
    let parameters: String = parameters.collect();
    let names: Vec<_> = (0..operands.len()).map(|at| format!("p{at}")).collect();
    let text = format!(
        "HloModule m\nENTRY main {{\n{parameters}  ROOT r = {result} {opcode}({}){attributes}\n}}\n",
        names.join(", ")
    );
    run_hlo("instruction.hlo", &text, None).unwrap_or_else(|error| panic!("{text}{error}"))
}

/// Powers of two, other products of the radices, and lengths that need a convolution; one transform, several, and
/// several in two dimensions.
#[test]
fn fourier_transforms_agree() {
    for length in [1, 7, 12, 16, 17] {
        for batch in ["", "3,", "2,1,3,"] {
            let half = length / 2 + 1;
            let (real, complex) =
                (format!("f32[{batch}{length}]"), format!("c64[{batch}{length}]"));
            let some = format!("c64[{batch}{half}]");
            for (kind, from, to) in [
                ("FFT", &complex, &complex),
                ("IFFT", &complex, &complex),
                ("RFFT", &real, &some),
                ("IRFFT", &some, &real),
            ] {
                let attributes = format!(", fft_type={kind}, fft_length={{{length}}}");
                run_instruction(&[from], to, "fft", &attributes);
            }
        }
    }
    let shape = "c128[2,5,6]";
    run_instruction(&[shape], shape, "fft", ", fft_type=FFT, fft_length={5,6}");
}

#[test]
fn blocks_divide_transforms_and_factorizations() {
    // All threads of a warp are busy in the steps of transforms of 256 elements.
    let shape = "c64[3,256]";
    let run = run_instruction(&[shape], shape, "fft", ", fft_type=FFT, fft_length={256}");
    assert!(0 < run.barriers);
    assert!(20 * run.stores.0 < run.stores.1, "{run:?}");
    // A factorization gets to smaller and smaller matrices.
    let shape = "f32[2,48,48]";
    let run = run_instruction(&[shape], shape, "cholesky", ", lower=true");
    assert!(0 < run.barriers);
    assert!(10 * run.stores.0 < run.stores.1, "{run:?}");
    // The steps of one transform have all threads of the grid.
    let shape = "c64[64]";
    let run = run_instruction(&[shape], shape, "fft", ", fft_type=FFT, fft_length={64}");
    assert_eq!(run.barriers, 0);
    assert!(15 * run.stores.0 < run.stores.1, "{run:?}");
}

#[test]
fn triangular_systems_agree() {
    for (size, columns) in [(1, 1), (3, 2), (37, 1), (37, 5)] {
        for (element, batch) in [("f32", ""), ("f32", "3,"), ("c64", "2,")] {
            for attributes in [
                "left_side=true, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE",
                "left_side=true, lower=false, unit_diagonal=true, transpose_a=NO_TRANSPOSE",
                "left_side=false, lower=true, unit_diagonal=true, transpose_a=ADJOINT",
            ] {
                let (rows, columns) = match attributes.contains("left_side=true") {
                    true => (size, columns),
                    false => (columns, size),
                };
                let matrix = format!("{element}[{batch}{size},{size}]");
                let right = format!("{element}[{batch}{rows},{columns}]");
                run_instruction(
                    &[&matrix, &right],
                    &right,
                    "triangular-solve",
                    &format!(", {attributes}"),
                );
            }
        }
    }
}

#[test]
fn factorizations_agree() {
    for (element, letter) in [("f32", 's'), ("c64", 'c')] {
        for batch in ["", "3,"] {
            let batches = batch.trim_end_matches(',');
            for size in [1, 4, 19] {
                let matrix = format!("{element}[{batch}{size},{size}]");
                for is_lower in [true, false] {
                    let attributes = format!(", lower={is_lower}");
                    run_instruction(&[&matrix], &matrix, "cholesky", &attributes);
                }
                let info = format!("s32[{batches}]");
                let call =
                    |name: &str| format!(", custom_call_target=\"lapack_{letter}{name}_ffi\"");
                let result = format!("({matrix}, {info})");
                run_instruction(
                    &[&matrix],
                    &result,
                    "custom-call",
                    &format!("{}, backend_config={{uplo = 76 : ui8}}", call("potrf")),
                );
                for (rows, columns) in [(size, size), (size + 2, size), (size, size + 2)] {
                    let steps = rows.min(columns);
                    let matrix = format!("{element}[{batch}{rows},{columns}]");
                    let result = format!("({matrix}, s32[{batch}{steps}], {info})");
                    run_instruction(&[&matrix], &result, "custom-call", &call("getrf"));
                }
                for columns in [1, 3] {
                    let (diagonal, right) = (
                        format!("{element}[{batch}{size}]"),
                        format!("{element}[{batch}{size},{columns}]"),
                    );
                    let operands: [&str; 4] = [&diagonal, &diagonal, &diagonal, &right];
                    let result = format!("({}, {info})", operands.join(", "));
                    run_instruction(&operands, &result, "custom-call", &call("gtsv"));
                }
            }
        }
    }
}

/// One matrix, whose factorization gives a scalar, is one kernel: the host reads nothing.
#[test]
fn scalars_of_loops_stay_on_the_device() {
    // More rows than one thread searches for a pivot.
    let result = "(f32[70,3], s32[3], s32[])";
    let target = ", custom_call_target=\"lapack_sgetrf_ffi\"";
    let run = run_instruction(&["f32[70,3]"], result, "custom-call", target);
    assert_eq!((run.kernels, run.launches), (1, 1));
}

/// A module of HLO on rows `x` of elements `T`, which are `wide` as `f32`.
fn of_rows(element: &str, rows: usize, columns: usize, text: &str) -> String {
    let text =
        text.replace("T[", &format!("{element}[")).replace("M,N", &format!("{rows},{columns}"));
    let text = text.replace("[M]", &format!("[{rows}]")).replace("[N]", &format!("[{columns}]"));
    let entry = format!(
        "x = {element}[{rows},{columns}]{{1,0}} parameter(0)
         wide = f32[{rows},{columns}]{{1,0}} convert(x)
         zero = f32[] constant(0)
         {text}"
    );
    format!(
        "HloModule rows
         add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }}
         max {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }}
         ENTRY main {{ {entry} }}"
    )
}

/// Operations on rows.
const ROW_PROGRAMS: [(&str, &str); 6] = [
    (
        "points",
        "b = T[N]{0} parameter(1)
         c = T[M,N]{1,0} broadcast(b), dimensions={1}
         s = T[M,N]{1,0} add(x, c)
         ROOT y = T[M,N]{1,0} tanh(s)",
    ),
    ("conversion", "ROOT y = f32[M,N]{1,0} exponential(wide)"),
    (
        "mask",
        "m = pred[M,N]{1,0} parameter(1)
         n = T[M,N]{1,0} negate(x)
         ROOT y = T[M,N]{1,0} select(m, n, x)",
    ),
    ("sums", "ROOT s = f32[M]{0} reduce(wide, zero), dimensions={1}, to_apply=add"),
    (
        "softmax",
        "lowest = f32[] constant(-inf)
         m = f32[M]{0} reduce(wide, lowest), dimensions={1}, to_apply=max
         ms = f32[M,N]{1,0} broadcast(m), dimensions={0}
         d = f32[M,N]{1,0} subtract(wide, ms)
         e = f32[M,N]{1,0} exponential(d)
         s = f32[M]{0} reduce(e, zero), dimensions={1}, to_apply=add
         ss = f32[M,N]{1,0} broadcast(s), dimensions={0}
         q = f32[M,N]{1,0} divide(e, ss)
         ROOT y = T[M,N]{1,0} convert(q)",
    ),
    (
        "layernorm",
        "g = f32[N]{0} parameter(1)
         h = f32[N]{0} parameter(2)
         part = f32[] constant(0.0009765625)
         parts = f32[M]{0} broadcast(part), dimensions={}
         s = f32[M]{0} reduce(wide, zero), dimensions={1}, to_apply=add
         mean = f32[M]{0} multiply(s, parts)
         means = f32[M,N]{1,0} broadcast(mean), dimensions={0}
         d = f32[M,N]{1,0} subtract(wide, means)
         d2 = f32[M,N]{1,0} multiply(d, d)
         s2 = f32[M]{0} reduce(d2, zero), dimensions={1}, to_apply=add
         v = f32[M]{0} multiply(s2, parts)
         v1 = f32[M]{0} add(v, parts)
         r = f32[M]{0} rsqrt(v1)
         rs = f32[M,N]{1,0} broadcast(r), dimensions={0}
         gs = f32[M,N]{1,0} broadcast(g), dimensions={1}
         hs = f32[M,N]{1,0} broadcast(h), dimensions={1}
         n = f32[M,N]{1,0} multiply(d, rs)
         ng = f32[M,N]{1,0} multiply(n, gs)
         nh = f32[M,N]{1,0} add(ng, hs)
         ROOT y = T[M,N]{1,0} convert(nh)",
    ),
];

/// A softmax along the dimension in the middle: columns of each matrix.
fn softmax_of_columns([batch, rows, columns]: [usize; 3]) -> String {
    let (all, some) = (
        format!("f32[{batch},{rows},{columns}]{{2,1,0}}"),
        format!("f32[{batch},{columns}]{{1,0}}"),
    );
    format!(
        "HloModule columns
         add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }}
         max {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }}
         ENTRY main {{
           x = {all} parameter(0)
           lowest = f32[] constant(-inf)
           m = {some} reduce(x, lowest), dimensions={{1}}, to_apply=max
           ms = {all} broadcast(m), dimensions={{0,2}}
           d = {all} subtract(x, ms)
           e = {all} exponential(d)
           zero = f32[] constant(0)
           s = {some} reduce(e, zero), dimensions={{1}}, to_apply=add
           ss = {all} broadcast(s), dimensions={{0,2}}
           ROOT y = {all} divide(e, ss)
         }}"
    )
}

#[test]
fn columns_are_read_once_from_the_memory_of_the_device() {
    for shape in [[1, 256, 128], [3, 96, 64], [2, 100, 40]] {
        let text = softmax_of_columns(shape);
        let [kernel] = &counts(&text)[..] else { panic!("several kernels\n{text}") };
        let bytes = 4 * shape.iter().product::<usize>() as u64;
        for access in ["load", "store"] {
            assert_eq!(events(kernel, &format!("global_{access}_bytes")), bytes, "{kernel:?}");
            let sectors = events(kernel, &format!("global_{access}_sectors"));
            assert!(32 * sectors <= bytes * 3 / 2, "{kernel:?}");
        }
        run_hlo("columns", &text, None).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}

#[test]
fn long_rows_are_read_once_for_their_maximum_and_their_sum() {
    let (rows, values) = (3, 15000);
    let text = softmax_of_columns([rows, values, 1]);
    let kernels = counts(&text);
    let total = |event: &str| kernels.iter().map(|it| events(it, event)).sum::<u64>();
    let bytes = (4 * rows * values) as u64;
    // The last kernel reads rows again, with a maximum and a sum per element.
    assert!(total("global_load_bytes") <= bytes * 41 / 10, "{kernels:?}");
    assert!(total("global_store_bytes") <= bytes * 11 / 10, "{kernels:?}");
    run_hlo("rows", &text, None).unwrap_or_else(|error| panic!("{error}\n{text}"));
}

#[test]
fn transposed_operands_are_read_in_whole_sectors() {
    for (shape, dimensions, result) in [
        ("64,96", "1,0", "96,64"),
        ("3,40,72", "0,2,1", "3,72,40"),
        ("5,37,67", "2,0,1", "67,5,37"),
    ] {
        for element in ["f32", "bf16", "s8", "f64"] {
            let text = format!(
                "HloModule transpose
                 ENTRY main {{
                   x = {element}[{shape}] parameter(0)
                   y = {element}[{result}] parameter(1)
                   t = {element}[{result}] transpose(x), dimensions={{{dimensions}}}
                   ROOT z = {element}[{result}] add(t, y)
                 }}"
            );
            let [kernel] = &counts(&text)[..] else { panic!("several kernels\n{text}") };
            let bytes = events(kernel, "global_load_bytes");
            let sectors = events(kernel, "global_load_sectors");
            // Rows of squares are not aligned to sectors, and a row of 8-bit numbers has the length of one sector.
            let most = if element == "s8" { 3 } else { 2 };
            assert!(32 * sectors <= most * bytes, "{kernel:?}\n{text}");
            run_hlo("transpose", &text, None).unwrap_or_else(|error| panic!("{error}\n{text}"));
        }
    }
}

#[test]
fn convolutions_read_each_operand_once_per_tile() {
    for labels in ["b01f_01io->b01f", "bf01_oi01->bf01"] {
        let [image, result, weights] = match labels {
            "bf01_oi01->bf01" => ["2,17,12,12", "2,40,12,12", "40,17,3,3"],
            _ => ["2,12,12,17", "2,12,12,40", "3,3,17,40"],
        };
        let text = format!(
            "HloModule convolution
             ENTRY main {{
               x = f32[{image}]{{3,2,1,0}} parameter(0)
               w = f32[{weights}]{{3,2,1,0}} parameter(1)
               ROOT y = f32[{result}]{{3,2,1,0}} convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels={labels}
             }}"
        );
        let [kernel] = &counts(&text)[..] else { panic!("several kernels\n{text}") };
        // The product of 288 rows and 40 columns over 153 terms, in tiles of at least 32 rows and columns.
        let (rows, columns, terms) = (288_u64, 40_u64, 153_u64);
        let most = 4 * terms * (rows * columns.div_ceil(32) + columns * rows.div_ceil(32));
        assert!(events(kernel, "global_load_bytes") <= most, "{most} bytes: {kernel:?}");
        run_hlo("convolution", &text, None).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}

/// Runs a module of HLO on zeros in the emulator.
fn counts(text: &str) -> Vec<KernelCounts> {
    let emulator = nvvm::BACKEND.on_device("emulator").expect("a device");
    let codegen = Codegen::new(machines().remove(0));
    let session = Session::with_backend(emulator, codegen);
    let program = session.open(Source::new("rows.hlo", text));
    let program = program.unwrap_or_else(|error| panic!("{error}"));
    let request = Request::default();
    let executable = session.compile(&*program, &request).expect("a supported program");
    let entry = program.entry(&request).expect("an entry");
    let zeros = entry.inputs.iter().map(|it| Tensor::zeros(in_memory(it.element), &it.dims()));
    let zeros = zeros.collect::<Result<Vec<_>, _>>().expect("small arrays");
    let results = executable.run(&zeros.iter().collect::<Vec<_>>());
    results.unwrap_or_else(|error| panic!("{error}\n{text}"));
    executable.counts()
}

#[test]
fn rows_are_read_and_written_in_four_sectors_per_128_bytes() {
    for (name, text) in ROW_PROGRAMS {
        for (rows, columns) in [(8, 1024), (32, 64), (128, 16)] {
            for element in ["f32", "f16", "bf16"] {
                let name = format!("{name} of {rows}x{columns}x{element}");
                for kernel in counts(&of_rows(element, rows, columns, text)) {
                    for access in ["load", "store"] {
                        let sectors = events(&kernel, &format!("global_{access}_sectors"));
                        let bytes = events(&kernel, &format!("global_{access}_bytes"));
                        // A value of a row, and a constant for it, are requests of their own.
                        assert!(sectors <= bytes / 32 + 2 * rows as u64, "{name}: {kernel:?}");
                    }
                }
            }
        }
    }
}

/// The number of events of a kind.
fn events(kernel: &KernelCounts, name: &str) -> u64 {
    let event = kernel.events.iter().find(|(it, _)| *it == name);
    event.expect("a known event").1
}

#[test]
fn rows_are_read_once_from_the_memory_of_the_device() {
    for (name, text) in
        ROW_PROGRAMS.iter().filter(|(name, _)| ["softmax", "layernorm"].contains(name))
    {
        for (rows, columns) in [(8, 1024), (7, 999), (64, 128), (50, 33)] {
            let text = of_rows("f32", rows, columns, text);
            let [kernel] = &counts(&text)[..] else { panic!("several kernels for {name}\n{text}") };
            let bytes = (4 * rows * columns) as u64;
            // The scale and the shift of layernorm are rows that each tile reads, and its folds read a constant.
            let read = if *name == "softmax" { bytes } else { 3 * bytes + 8 * rows as u64 };
            assert!(events(kernel, "global_load_bytes") <= read, "{name}: {kernel:?}");
            assert_eq!(events(kernel, "global_store_bytes"), bytes, "{name}: {kernel:?}");
        }
    }
}

#[test]
fn products_read_each_operand_once_per_tile() {
    for [m, n, k] in [[128_usize, 128, 64], [100, 70, 33]] {
        let text = format!(
            "HloModule product
             ENTRY main {{
               x = f32[{m},{k}]{{1,0}} parameter(0)
               y = f32[{k},{n}]{{1,0}} parameter(1)
               ROOT z = f32[{m},{n}]{{1,0}} dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
             }}"
        );
        let [kernel] = &counts(&text)[..] else { panic!("several kernels\n{text}") };
        // Tiles of 32 rows and columns: the matrices are too small for larger ones to keep the GPU busy.
        let least = 4 * (m * k * n.div_ceil(32) + k * n * m.div_ceil(32)) as u64;
        let loaded = events(kernel, "global_load_bytes");
        assert!(loaded * 10 <= least * 12, "{least} bytes: {kernel:?}");
        assert!(loaded * 4 < 4 * (2 * m * n * k) as u64, "{kernel:?}");
    }
}

#[test]
fn examples_of_tc_agree_at_several_sizes_without_recompilation() {
    // Per example, sizes that are odd, small and larger than a block.
    let examples: [(&str, [&str; 3]); 9] = [
        ("attention.tc", ["M=1,D=1,N=1,E=1", "M=5,D=7,N=3,E=2", "M=2,D=3,N=40,E=33"]),
        ("avgpool.tc", ["B=1,C=1,H=2,W=2", "B=2,C=3,H=7,W=9", "B=1,C=2,H=5,W=70"]),
        (
            "conv2d.tc",
            [
                "N=1,C=1,F=1,H=1,W=1,KH=1,KW=1",
                "N=2,C=3,F=2,H=7,W=5,KH=3,KW=2",
                "N=1,C=2,F=3,H=5,W=37,KH=2,KW=5",
            ],
        ),
        ("correlation.tc", ["K=1,I=1,J=1", "K=40,I=33,J=7", "K=300,I=259,J=41"]),
        ("group_norm.tc", ["N=1,G=1,D=1,H=1,W=1", "N=2,G=3,D=2,H=3,W=5", "N=1,G=2,D=3,H=7,W=9"]),
        ("softmax.tc", ["N=1,D=1", "N=3,D=37", "N=2,D=1030"]),
        ("matmul.tc", ["N=1,K=1,M=1", "N=5,K=33,M=7", "N=17,K=3,M=40"]),
        ("mlp3.tc", ["B=1,N=3,O=2,P=1,Q=4", "B=3,N=7,O=4,P=2,Q=5", "B=2,N=9,O=33,P=5,Q=1"]),
        ("lut.tc", ["E=2,D=1,B=1,L=1", "E=5,D=7,B=3,L=2", "E=9,D=4,B=2,L=40"]),
    ];
    for (name, sizes) in examples {
        let text = fs::read(root().join("examples/tc").join(name)).expect("the example is there");
        let sizes = sizes.map(|sizes| {
            let pairs = sizes.split(',').filter_map(|pair| pair.split_once('='));
            pairs.map(|(key, value)| (key.to_string(), value.parse().expect("a number"))).collect()
        });
        let run = run_tc(name, &text, None, &sizes).unwrap_or_else(|it| panic!("{name}: {it}"));
        assert_eq!(run.launches % 3, 0, "{name}: {run:?}");
    }
}

/// Compiles a function of TC for all sizes, and runs it at some, which may include sizes of other functions.
fn run_tc(name: &str, text: &[u8], def: Option<&str>, sizes: &[Sizes]) -> Result<Run, String> {
    compare_in(&tc_dialects::new_context(), |context| {
        let source = import(context, name, text, false).ok_or("a valid program")?;
        let program = tc::Program::new(context, source, false).map_err(|it| it.to_string())?;
        let request = Request { entry: def.map(Into::into), dynamic: true, ..Request::default() };
        let lowered = program.lower(&request).map_err(|it| it.to_string())?;
        let own = program.sizes(def).map_err(|it| it.to_string())?;
        let mut inputs = Vec::new();
        for (seed, sizes) in sizes.iter().enumerate() {
            let sizes = sizes.iter().filter(|(name, _)| own.contains(name));
            let sizes = sizes.map(|(name, size)| (name.clone(), *size)).collect();
            let entry = program.entry(&Request { sizes, ..request.clone() });
            let entry = entry.map_err(|it| it.to_string())?;
            let drawn = entry.complete(BTreeMap::new(), seed as u64);
            inputs.push(drawn.map_err(|it| it.to_string())?);
        }
        let inputs: Vec<_> = inputs.iter().map(|it| &it[..]).collect();
        let Lowered { module, function, .. } = lowered;
        compare_program(&module, &function, &inputs, &emulator::Options::default())
    })
}

#[test]
fn published_kernels_agree_at_several_sizes_without_recompilation() {
    let path = root().join("tests/conformance/tc/kernels.jsonl");
    let rows = fs::read_to_string(path).expect("the kernels are there");
    let rows = rows.lines().map(|line| serde_json::from_str(line).expect("a row"));
    let mut count = 0;
    for row in rows.filter(|row: &serde_json::Value| row["sizes"].is_array()) {
        let name = row["name"].as_str().expect("a name");
        let published = row["sizes"][0].as_object().expect("sizes");
        // The product of all sizes stays small, and windows are smaller than what they move over.
        let most = 40_000f64.powf(1.0 / published.len() as f64) as i64;
        let sizes = [0, 1, 2].map(|run| {
            let size = |(place, (name, size)): (i64, (&String, &serde_json::Value))| {
                let size = size.as_i64().expect("a size");
                let is_window = size < 5;
                let most = if run == 2 || is_window { 2 } else { most - (place + run) % 2 };
                (name.clone(), size.min(most))
            };
            (0..).zip(published).map(size).collect()
        });
        let text = row["tc"].as_str().expect("a program");
        let run = run_tc(name, text.as_bytes(), row["def"].as_str(), &sizes);
        let run = run.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(0 < run.elements && run.launches.is_multiple_of(3), "{name}: {run:?}");
        count += 1;
    }
    assert!(15 <= count, "{count}");
}

#[test]
fn programs_of_tml_agree() {
    let text = "
      in var A : [5 7]
      in var B : [7 5]
      in var u : [5]
      out var s : []
      out var v : [5]

      s = A # B . [2 3, 1 4]
      v = A # B # u . [2 3, 4 5]";
    let result = compare_in(&tc_dialects::new_context(), |context| {
        let program = tml::Program::read(context, "test.tml", text.into());
        let lowered = program.and_then(|program| program.lower(&Request::default()));
        let Lowered { module, function, .. } = lowered.map_err(|it| it.to_string())?;
        let inputs = random_tensors(&module, &function, &[], 1);
        compare_program(&module, &function, &[&inputs], &emulator::Options::default())
    });
    let run = result.unwrap_or_else(|error| panic!("{error}"));
    assert!(0 < run.elements && 0 < run.kernels, "{run:?}");
}
