//! Every case that was recorded on a device, replayed: results agree bitwise, or within the manual's
//! bound for approximate instructions.
//!
//! `vectors` holds for each case the PTX and a JSON file with the launch, the arguments and
//! the bytes of the buffers after it.

use std::{fs, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use tc_backends::nvvm::emulator::{
    Argument, Buffer, Counts, Error, FaultKind, Launch, Memory, Module, Swizzle, TensorMap, run,
};

/// Cases of instructions that the emulator does not have.
const MISSING: &[&str] = &["k256_s32_b1"];

/// Cases that devices take and the emulator's checks do not: threads exit before a barrier, all
/// threads store the same value, division by zero.
const RELAXED: &[&str] = &["flow_exit", "memory_spaces", "divide_undefined"];

/// Cases in which the payloads of NaNs differ, which the manual leaves open, with the bytes of a number.
const NAN_PAYLOADS: &[(&str, usize)] =
    &[("f32_compare", 4), ("cvt_f32", 4), ("mma_m8n8k4_f64", 8), ("mma_m16n8k8_f64", 8)];

/// `%warpid`, which may differ from the thread's number by 32, begins here in `special_registers`.
const WARPID_OFFSET: usize = 8640;

fn is_nan(bytes: &[u8]) -> bool {
    match bytes.len() {
        4 => f32::from_le_bytes(bytes.try_into().expect("four")).is_nan(),
        8 => f64::from_le_bytes(bytes.try_into().expect("eight")).is_nan(),
        _ => false,
    }
}

/// The first byte that differs.
fn difference(name: &str, expected: &[u8], found: &[u8]) -> Option<usize> {
    let payloads = NAN_PAYLOADS.iter().find(|(prefix, _)| *prefix == name);
    let size = payloads.map_or(1, |(_, size)| *size);
    let end = if name == "special_registers" { WARPID_OFFSET } else { expected.len() };
    let pairs = expected[..end].chunks(size).zip(found[..end].chunks(size));
    let mut pairs = pairs.enumerate();
    let (index, _) = pairs.find(|(_, (e, f))| e != f && !(is_nan(e) && is_nan(f)))?;
    Some(index * size)
}

fn extents(case: &Value, key: &str) -> [u32; 3] {
    std::array::from_fn(|axis| case[key][axis].as_u64().unwrap_or(1) as u32)
}

fn decode(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.as_str().expect("a string")).expect("base64")
}

struct Outcome {
    counts: Counts,
    /// For each result buffer: what the device has, and what the emulator has.
    results: Vec<(usize, Vec<u8>, Vec<u8>)>,
}

/// A tensor map, and its buffer.
fn tensor_map(value: &Value, memory: &mut Memory, buffers: &mut Vec<Option<Buffer>>) -> TensorMap {
    let bytes = match &value["zeros"] {
        Value::Null => decode(&value["buffer"]),
        zeros => vec![0; zeros.as_u64().expect("a size") as usize],
    };
    let buffer = memory.create(&bytes, 256);
    buffers.push(Some(buffer));
    let list = |key: &str| -> Vec<u64> {
        value[key].as_array().expect("a list").iter().filter_map(Value::as_u64).collect()
    };
    let swizzle = match value["swizzle"].as_str() {
        Some("32B") => Swizzle::Bytes32,
        Some("64B") => Swizzle::Bytes64,
        Some("128B") => Swizzle::Bytes128,
        _ => Swizzle::None,
    };
    TensorMap {
        buffer,
        element_bytes: if value["type"] == "f32" { 4 } else { 2 },
        sizes: list("sizes"),
        strides: list("strides"),
        box_sizes: list("box").iter().map(|size| *size as u32).collect(),
        swizzle,
    }
}

fn replay(text: &str, case: &Value, relaxed: bool) -> Result<Outcome, Error> {
    let module = Module::parse(text)?;
    let mut memory = Memory::new();
    let mut buffers: Vec<Option<Buffer>> = Vec::new();
    let mut arguments = Vec::new();
    for argument in case["arguments"].as_array().expect("arguments") {
        let (kind, value) =
            argument.as_object().and_then(|o| o.iter().next()).expect("an argument");
        let number = value.as_u64().unwrap_or(0);
        let mut buffer = |memory: &mut Memory, bytes: &[u8]| {
            let buffer = memory.create(bytes, 256);
            buffers.push(Some(buffer));
            Argument::from(buffer)
        };
        let bytes = match kind.as_str() {
            "buffer" => {
                arguments.push(buffer(&mut memory, &decode(value)));
                continue;
            }
            "zeros" => {
                arguments.push(buffer(&mut memory, &vec![0; number as usize]));
                continue;
            }
            "tensor_map" => {
                let map = tensor_map(value, &mut memory, &mut buffers);
                arguments.push(Argument::TensorMap(Box::new(map)));
                continue;
            }
            "u8" => vec![number as u8],
            "u16" => (number as u16).to_le_bytes().to_vec(),
            "u32" => (number as u32).to_le_bytes().to_vec(),
            "u64" => number.to_le_bytes().to_vec(),
            "f32" => {
                let text = value.as_str().and_then(|t| t.strip_prefix("0f")).expect("bits");
                u32::from_str_radix(text, 16).expect("bits").to_le_bytes().to_vec()
            }
            other => panic!("unknown argument '{other}'"),
        };
        buffers.push(None);
        arguments.push(Argument::Bytes(bytes));
    }
    let mut launch = Launch::new(extents(case, "grid"), extents(case, "block"), arguments);
    launch.dynamic_shared = case["shared"].as_u64().unwrap_or(0) as usize;
    if relaxed {
        launch.options.check_races = false;
        launch.options.check_undefined = false;
        launch.options.allow_exited = true;
    }
    let entry = case["entry"].as_str().expect("an entry");
    let counts = run(&module, entry, &launch, &mut memory)?;
    let mut results = Vec::new();
    for (index, expected) in case["results"].as_object().into_iter().flatten() {
        let index: usize = index.parse().expect("a number");
        let buffer = buffers[index].expect("a buffer");
        results.push((index, decode(expected), memory.read(buffer).to_vec()));
    }
    Ok(Outcome { counts, results })
}

/// The names, launches and texts of the cases in some folders of `tests`.
fn cases(folders: &[&str]) -> Vec<(String, Value, String)> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/emulator");
    let mut paths: Vec<_> = folders
        .iter()
        .filter_map(|folder| fs::read_dir(tests.join(folder)).ok())
        .flatten()
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    paths.sort();
    let case = |path: &std::path::PathBuf| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if MISSING.iter().any(|part| name.contains(part)) {
            return None;
        }
        let text = fs::read_to_string(path.with_extension("ptx")).ok()?;
        let json = fs::read_to_string(path).expect("the case");
        Some((name, serde_json::from_str(&json).ok()?, text))
    };
    paths.iter().filter_map(case).collect()
}

/// The folders of cases that run to their end.
const RECORDED: &[&str] = &["vectors", "vectors-sm90a"];

/// What ends with an error on a device is an error here, of the same kind.
#[test]
fn recorded_faults_are_found() {
    let cases = cases(&["faults"]);
    assert!(!cases.is_empty(), "no recorded cases in tests/faults");
    for (name, case, text) in cases {
        let Err(Error::Fault(fault)) = replay(&text, &case, false) else {
            panic!("{name}: expected a fault");
        };
        let same = match case["error"].as_str() {
            Some("CUDA_ERROR_MISALIGNED_ADDRESS") => {
                matches!(fault.kind, FaultKind::Misaligned { .. })
            }
            Some("CUDA_ERROR_ILLEGAL_ADDRESS") => {
                matches!(fault.kind, FaultKind::OutOfBounds { .. })
            }
            Some("CUDA_ERROR_LAUNCH_FAILED") => matches!(fault.kind, FaultKind::Trap),
            _ => true,
        };
        assert!(same, "{name}: {}, {}", case["error"], fault.kind);
    }
}

fn is_relaxed(name: &str) -> bool {
    RELAXED.iter().any(|prefix| name.starts_with(prefix))
}

/// Cases in which the compiler behind PTX adds, merges or predicates accesses.
const COMPILED_DIFFERENTLY: &[&str] = &[
    "atom",
    "c2_softmax_ragged",
    "cp_async_cg_16",
    "cp_async_ca",
    "memory_spaces",
    "memory_widths",
];

/// Sectors and passes over banks agree with a profiler's counters of the same cases.
#[test]
fn recorded_counters_agree() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/emulator/counters.json");
    let Ok(text) = fs::read_to_string(path) else { return };
    let counters: Value = serde_json::from_str(&text).expect("counters");
    let mut failures = Vec::new();
    let mut compared = 0;
    for (name, case, text) in cases(RECORDED) {
        if COMPILED_DIFFERENTLY.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        let Some(device) = counters["small"][&name]["counters"].as_object() else { continue };
        let outcome = replay(&text, &case, is_relaxed(&name)).expect("a run");
        let counts = outcome.counts;
        let pairs = [
            ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld", counts.global_loads.sectors),
            ("l1tex__t_requests_pipe_lsu_mem_global_op_ld", counts.global_loads.requests),
            ("l1tex__t_sectors_pipe_lsu_mem_global_op_st", counts.global_stores.sectors),
            ("l1tex__t_requests_pipe_lsu_mem_global_op_st", counts.global_stores.requests),
            ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld", counts.shared_loads.wavefronts),
            ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st", counts.shared_stores.wavefronts),
        ];
        for (key, found) in pairs {
            let expected = device.get(key).and_then(Value::as_u64).unwrap_or(0);
            compared += 1;
            if expected != found {
                failures.push(format!("{name}: {key}: device {expected}, emulator {found}"));
            }
        }
    }
    println!("{compared} counters compared");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// The manual's bounds, for the form that begins so and ends so: relative and absolute. The emulator's
/// own rounding, half a unit in the last place, is added to them.
const BOUNDS: &[(&str, &str, f64, f64)] = &[
    ("ex2", "bf16", 0.0078125, 0.0),
    ("ex2", "f16", 0.00105, 0.0),
    ("ex2", "f32", 2.4e-7, 0.0),
    ("tanh", "bf16", 0.0, 0.00390625),
    ("tanh", "f16", 0.0, 0.000493),
    ("tanh", "f32", 0.000489, 0.0),
    ("div", "f32", 2.4e-7, 0.0),
    ("rcp", "f32", 1.2e-7, 0.0),
    ("rsqrt", "f32", 1.28e-7, 0.0),
    ("sqrt", "f32", 1.2e-7, 0.0),
    ("lg2", "f32", 2.4e-7, 2.4e-7),
    ("sin", "f32", 0.0, 6.8e-7),
    ("cos", "f32", 0.0, 6.8e-7),
    ("rcp", "f64", 9.6e-7, 0.0),
    ("rsqrt", "f64", 9.6e-7, 0.0),
];

/// Kernels of approximate functions.
const KERNEL_BOUND: (f64, f64) = (0.000489, 1e-6);

/// A number of a format by its name, with the relative size of its last place and its least number.
fn number(format: &str, bytes: &[u8]) -> (f64, f64, f64) {
    let bits = bytes.iter().rev().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
    match format {
        "f64" => (f64::from_bits(bits), 2f64.powi(-52), f64::MIN_POSITIVE),
        "bf16" => {
            let value = f32::from_bits((bits as u32) << 16);
            (value.into(), 2f64.powi(-7), f32::MIN_POSITIVE.into())
        }
        "f16" => {
            let (sign, exponent, fraction) = (bits >> 15, bits >> 10 & 31, (bits & 1023) as f64);
            let magnitude = match exponent {
                0 => fraction * 2f64.powi(-24),
                31 if fraction == 0.0 => f64::INFINITY,
                31 => f64::NAN,
                _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent as i32 - 15),
            };
            (if sign == 1 { -magnitude } else { magnitude }, 2f64.powi(-10), 2f64.powi(-24))
        }
        _ => (f32::from_bits(bits as u32).into(), 2f64.powi(-23), f32::MIN_POSITIVE.into()),
    }
}

fn within(format: &str, device: &[u8], emulator: &[u8], (relative, absolute): (f64, f64)) -> bool {
    let (d, place, least) = number(format, device);
    let (e, ..) = number(format, emulator);
    let allowed = (relative + place / 2.0) * d.abs().max(e.abs()) + absolute + least;
    d == e || (d.is_nan() && e.is_nan()) || (d - e).abs() <= allowed
}

/// The number of the first argument's element `index`, for functions whose bound depends on it.
fn operand(case: &Value, argument: usize, index: usize) -> f64 {
    let bytes = decode(&case["arguments"][argument]["buffer"]);
    let count = bytes.len() / 4;
    number("f32", &bytes[4 * (index % count)..][..4]).0
}

/// Compares one result of a case of approximate functions.
fn approximate_difference(
    case: &Value,
    device: &[u8],
    emulator: &[u8],
    set: usize,
) -> Option<String> {
    let Some(forms) = case["forms"][set]["forms"].as_array() else {
        let pairs = device.chunks(4).zip(emulator.chunks(4));
        let mut bad = pairs.enumerate().filter(|(_, (d, e))| !within("f32", d, e, KERNEL_BOUND));
        return bad.next().map(|(index, _)| format!("word {index}"));
    };
    let row = device.len() / forms.len();
    for (form, (device, emulator)) in forms.iter().zip(device.chunks(row).zip(emulator.chunks(row)))
    {
        let form = form.as_str()?.split(' ').next()?;
        let format = form.rsplit('.').next()?.trim_end_matches("x2");
        let bound = BOUNDS
            .iter()
            .find(|(base, end, ..)| form.split('.').next() == Some(base) && format == *end);
        let (_, _, relative, absolute) = bound.unwrap_or_else(|| panic!("no bound of {form}"));
        let size = match format {
            "f64" => 8,
            "f32" => 4,
            _ => 2,
        };
        for (index, (d, e)) in device.chunks(size).zip(emulator.chunks(size)).enumerate() {
            let mut absolute = *absolute;
            match form.split('.').next() {
                Some("sin" | "cos") => {
                    let x = operand(case, 0, index).abs();
                    if x > 314.0 {
                        continue;
                    }
                    absolute = if x > std::f64::consts::TAU { 3.8e-5 } else { absolute };
                }
                Some("div") => {
                    let divisor = operand(case, 1, index).abs();
                    if divisor < 2f64.powi(-126) && form.contains("approx") {
                        continue;
                    }
                }
                _ => {}
            }
            if !within(format, d, e, (*relative, absolute)) {
                let (device, emulator) = (number(format, d).0, number(format, e).0);
                return Some(format!("{form} [{index}]: device {device:e}, emulator {emulator:e}"));
            }
        }
    }
    None
}

#[test]
fn recorded_cases_agree() {
    let (mut replayed, mut failures) = (0, Vec::new());
    for (name, case, text) in cases(RECORDED) {
        let relaxed = is_relaxed(&name);
        let outcome = match replay(&text, &case, relaxed) {
            Ok(outcome) => outcome,
            Err(error) => {
                failures.push(format!("{name}: {error}"));
                continue;
            }
        };
        replayed += 1;
        if case["exact"] != true {
            for (set, (_, device, emulator)) in outcome.results.iter().enumerate() {
                if let Some(found) = approximate_difference(&case, device, emulator, set) {
                    failures.push(format!("{name}: {found}"));
                }
            }
            continue;
        }
        for (index, expected, found) in outcome.results {
            if let Some(at) = difference(&name, &expected, &found) {
                let differ =
                    expected.chunks(4).zip(found.chunks(4)).filter(|(e, f)| e != f).count();
                let start = at / 8 * 8;
                let end = (start + 8).min(expected.len());
                failures.push(format!(
                    "{name}: argument {index}: {differ} of {} words differ, first at byte {at}: \
                     device {:02x?}, emulator {:02x?}",
                    expected.len() / 4,
                    &expected[start..end],
                    &found[start..end]
                ));
            }
        }
    }
    println!("{replayed} cases replayed");
    assert!(replayed > 0, "no recorded cases in tests/vectors");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
