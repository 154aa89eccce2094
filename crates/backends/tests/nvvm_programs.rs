//! Whole programs on the GPU target, in the emulator, against the interpreter.

#[path = "support/device.rs"]
mod device;

use device::{Run, compare_program};
use melior::ir::Module;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use tc_backends::{
    Codegen, Form,
    backend::CallError,
    nvvm::{BACKEND, Device, DeviceError, Emulator, Launch, Program, emulator, machines},
    runtime::{ElementType, Tensor, random},
};
use tc_dialects::report;

/// Random tensors of `f32`.
fn inputs(shapes: &[&[usize]], seed: u64) -> Vec<Tensor> {
    let tensor = |(number, shape): (usize, &&[usize])| {
        random(ElementType::F32, shape, seed + number as u64, None).expect("a small tensor")
    };
    shapes.iter().enumerate().map(tensor).collect()
}

/// [`compare_program`] for a program as text.
///
/// # Panics
/// The results differ.
#[track_caller]
fn check(text: &str, name: &str, inputs: &[&[Tensor]]) -> Run {
    let context = tc_dialects::new_context();
    let (_, received) = report::collect(&context);
    let module = Module::parse(&context, text).expect("a valid program");
    match compare_program(&module, name, inputs, &emulator::Options::default()) {
        Ok(run) => run,
        Err(error) => {
            let messages: Vec<_> = received.borrow().iter().map(|it| it.message.clone()).collect();
            panic!("{error}\n{}", messages.join("\n"))
        }
    }
}

/// Compiles a program that is not supported. Returns the first error.
///
/// # Panics
/// It is supported.
#[track_caller]
fn fails(text: &str) -> String {
    let context = tc_dialects::new_context();
    let (_, received) = report::collect(&context);
    let module = Module::parse(&context, text).expect("a valid program");
    let program = Program::lower(&module, &Codegen::new(machines()[0].clone()));
    assert!(program.is_err(), "expected an error");
    let received = received.borrow();
    let error = received.iter().find(|it| it.is_error()).expect("an error at an operation");
    format!("{:?}: {}", error.place, error.message)
}

/// `x * 2 + y` in two operations that are not fused, and row sums of the result.
fn chain(rows: &str, columns: &str) -> String {
    format!(
        "func.func @f(%x: tensor<{rows}x{columns}xf32>, %y: tensor<{rows}x{columns}xf32>) -> (tensor<{rows}xf32>, tensor<{rows}x{columns}xf32>) {{
           %c0 = arith.constant 0 : index
           %c1 = arith.constant 1 : index
           %m = tensor.dim %x, %c0 : tensor<{rows}x{columns}xf32>
           %n = tensor.dim %x, %c1 : tensor<{rows}x{columns}xf32>
           %e = tensor.empty(%m, %n) : tensor<?x?xf32>
           %a = tensor.cast %x : tensor<{rows}x{columns}xf32> to tensor<?x?xf32>
           %b = tensor.cast %y : tensor<{rows}x{columns}xf32> to tensor<?x?xf32>
           %d = imap.generic (i, j){{M, N}} domain: i in [0, M - 1], j in [0, N - 1], M in [1, 9999], N in [1, 9999]
               runtime(%m, %n : index, index) ins(%a[i, j] : tensor<?x?xf32>) outs(%e[i, j] : tensor<?x?xf32>) {{
           ^bb0(%p: f32):
             %q = arith.addf %p, %p : f32
             imap.yield %q : f32
           }} -> tensor<?x?xf32>
           %e2 = tensor.empty(%m, %n) : tensor<?x?xf32>
           %s = imap.generic (i, j){{M, N}} domain: i in [0, M - 1], j in [0, N - 1], M in [1, 9999], N in [1, 9999]
               runtime(%m, %n : index, index) ins(%d[i, j], %b[i, j] : tensor<?x?xf32>, tensor<?x?xf32>) outs(%e2[i, j] : tensor<?x?xf32>) {{
           ^bb0(%p: f32, %r: f32):
             %q = arith.addf %p, %r : f32
             imap.yield %q : f32
           }} -> tensor<?x?xf32>
           %e3 = tensor.empty(%m) : tensor<?xf32>
           %t = imap.generic (i)[j]{{M, N}} domain: i in [0, M - 1], j in [0, N - 1], M in [1, 9999], N in [1, 9999]
               runtime(%m, %n : index, index) ins(%s[i, j] : tensor<?x?xf32>) outs(%e3[i] : tensor<?xf32>) fold [add f32] {{
           ^bb0(%p: f32):
             imap.yield %p : f32
           }} -> tensor<?xf32>
           %u = tensor.cast %t : tensor<?xf32> to tensor<{rows}xf32>
           %v = tensor.cast %s : tensor<?x?xf32> to tensor<{rows}x{columns}xf32>
           return %u, %v : tensor<{rows}xf32>, tensor<{rows}x{columns}xf32>
         }}"
    )
}

#[test]
fn chains_of_static_sizes_agree() {
    for (rows, columns) in [(1, 1), (3, 7), (5, 1025)] {
        let text = chain(&rows.to_string(), &columns.to_string());
        let shape = [rows, columns];
        let run = check(&text, "f", &[&inputs(&[&shape, &shape], 1)]);
        // All are computed in tiles of rows, if there are several.
        assert_eq!(run.kernels, if rows == 1 { 3 } else { 1 });
    }
}

#[test]
fn dynamic_sizes_need_no_other_code() {
    let shapes = [[1, 1], [3, 7], [5, 300]];
    let inputs: Vec<_> = shapes.iter().map(|shape| inputs(&[shape, shape], 2)).collect();
    let inputs: Vec<_> = inputs.iter().map(|it| &it[..]).collect();
    let Run { kernels, launches, .. } = check(&chain("?", "?"), "f", &inputs);
    assert_eq!((kernels, launches), (3, 9));
}

#[test]
fn loops_carry_buffers_and_scalars() {
    // Two tensors that change places in each iteration, a sum that decides when to stop, and a branch.
    let text = "
      func.func @f(%x: tensor<5xf32>, %y: tensor<5xf32>, %n: tensor<i32>) -> (tensor<5xf32>, tensor<5xf32>, tensor<i32>) {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %zero = arith.constant 0 : i32
        %one = arith.constant 1 : i32
        %k = tensor.extract %n[] : tensor<i32>
        %to = arith.index_cast %k : i32 to index
        %a, %b = scf.for %i = %c0 to %to step %c1 iter_args(%p = %x, %q = %y) -> (tensor<5xf32>, tensor<5xf32>) {
          %e = tensor.empty() : tensor<5xf32>
          %s = imap.generic (i) domain: i in [0, 4] ins(%p[4 - i], %q[i] : tensor<5xf32>, tensor<5xf32>) outs(%e[i] : tensor<5xf32>) {
          ^bb0(%u: f32, %v: f32):
            %w = arith.addf %u, %v : f32
            imap.yield %w : f32
          } -> tensor<5xf32>
          scf.yield %q, %s : tensor<5xf32>, tensor<5xf32>
        }
        %r:2 = scf.while (%t = %a, %m = %zero) : (tensor<5xf32>, i32) -> (tensor<5xf32>, i32) {
          %first = tensor.extract %t[%c0] : tensor<5xf32>
          %limit = arith.constant 100.0 : f32
          %abs = math.absf %first : f32
          %small = arith.cmpf olt, %abs, %limit : f32
          %few = arith.cmpi slt, %m, %k : i32
          %goes = arith.andi %small, %few : i1
          scf.condition(%goes) %t, %m : tensor<5xf32>, i32
        } do {
        ^bb0(%t: tensor<5xf32>, %m: i32):
          %e = tensor.empty() : tensor<5xf32>
          %s = imap.generic (i) domain: i in [0, 4] ins(%t[i], %t[4 - i] : tensor<5xf32>, tensor<5xf32>) outs(%e[i] : tensor<5xf32>) {
          ^bb0(%u: f32, %v: f32):
            %w = arith.addf %u, %v : f32
            imap.yield %w : f32
          } -> tensor<5xf32>
          %next = arith.addi %m, %one : i32
          scf.yield %s, %next : tensor<5xf32>, i32
        }
        %odd = arith.andi %k, %one : i32
        %is = arith.cmpi eq, %odd, %one : i32
        %c = scf.if %is -> tensor<5xf32> {
          %e = tensor.empty() : tensor<5xf32>
          %s = imap.generic (i) domain: i in [0, 4] ins(%b[i] : tensor<5xf32>) outs(%e[i] : tensor<5xf32>) {
          ^bb0(%u: f32):
            %w = arith.negf %u : f32
            imap.yield %w : f32
          } -> tensor<5xf32>
          scf.yield %s : tensor<5xf32>
        } else {
          scf.yield %b : tensor<5xf32>
        }
        %count = tensor.from_elements %r#1 : tensor<i32>
        return %r#0, %c, %count : tensor<5xf32>, tensor<5xf32>, tensor<i32>
      }";
    let runs = [0, 1, 4].map(|count| {
        let mut run = inputs(&[&[5], &[5]], 3);
        run.push(Tensor::from_values(&[], &[count]).expect("a scalar"));
        run
    });
    let run = check(text, "f", &runs.each_ref().map(|it| &it[..]));
    assert!(run.launches > 10, "{run:?}");
}

#[test]
fn constants_and_small_elements_are_in_device_memory() {
    let text = "
      func.func @f(%x: tensor<3xf32>, %i: tensor<i32>) -> (tensor<3xf32>, tensor<3xi1>, tensor<f32>) {
        %c = arith.constant dense<[1.0, -2.0, 4.0]> : tensor<3xf32>
        %m = arith.constant dense<[true, false, true]> : tensor<3xi1>
        %s = arith.constant dense<0.5> : tensor<3xf32>
        %e = tensor.empty() : tensor<3xf32>
        %g = tensor.empty() : tensor<3xi1>
        %y, %z = imap.generic (i) domain: i in [0, 2]
            ins(%x[i], %c[i], %m[i], %s[i] : tensor<3xf32>, tensor<3xf32>, tensor<3xi1>, tensor<3xf32>)
            outs(%e[i], %g[i] : tensor<3xf32>, tensor<3xi1>) {
        ^bb0(%a: f32, %b: f32, %d: i1, %h: f32):
          %p = arith.mulf %a, %b : f32
          %q = arith.select %d, %p, %h : f32
          %less = arith.cmpf olt, %q, %a : f32
          imap.yield %q, %less : f32, i1
        } -> tensor<3xf32>, tensor<3xi1>
        %k = tensor.extract %i[] : tensor<i32>
        %j = arith.index_cast %k : i32 to index
        %v = tensor.extract %c[%j] : tensor<3xf32>
        %flag = tensor.extract %m[%j] : tensor<3xi1>
        %zero = arith.constant 0.0 : f32
        %r = arith.select %flag, %v, %zero : f32
        %t = tensor.from_elements %r : tensor<f32>
        return %y, %z, %t : tensor<3xf32>, tensor<3xi1>, tensor<f32>
      }";
    let runs = [0, 1, 2].map(|place| {
        let mut run = inputs(&[&[3]], 3);
        run.push(Tensor::from_values(&[], &[place]).expect("a scalar"));
        run
    });
    check(text, "f", &runs.each_ref().map(|it| &it[..]));
}

#[test]
fn parts_of_buffers_are_copied_and_passed() {
    let text = "
      func.func @f(%x: tensor<6x8xf32>, %y: tensor<3x2xf32>, %i: tensor<i32>) -> (tensor<6x8xf32>, tensor<3x4xf32>) {
        %k = tensor.extract %i[] : tensor<i32>
        %j = arith.index_cast %k : i32 to index
        %part = tensor.extract_slice %x[1, %j] [3, 4] [2, 1] : tensor<6x8xf32> to tensor<3x4xf32>
        %e = tensor.empty() : tensor<3x4xf32>
        %s = imap.generic (i, j) domain: i in [0, 2], j in [0, 3] ins(%part[i, j] : tensor<3x4xf32>) outs(%e[i, j] : tensor<3x4xf32>) {
        ^bb0(%u: f32):
          %w = arith.addf %u, %u : f32
          imap.yield %w : f32
        } -> tensor<3x4xf32>
        %z = tensor.insert_slice %y into %x[%j, 2] [3, 2] [1, 3] : tensor<3x2xf32> into tensor<6x8xf32>
        return %z, %s : tensor<6x8xf32>, tensor<3x4xf32>
      }";
    let runs = [0, 1, 3].map(|place| {
        let mut run = inputs(&[&[6, 8], &[3, 2]], 3);
        run.push(Tensor::from_values(&[], &[place]).expect("a scalar"));
        run
    });
    check(text, "f", &runs.each_ref().map(|it| &it[..]));
}

#[test]
fn buffers_without_elements_are_arguments() {
    // Folds of no values are their starts, and operations without points do nothing.
    let text = "
      func.func @f(%x: tensor<0x4xf32>, %y: tensor<4xf32>, %i: tensor<0xi32>) -> (tensor<4xf32>, tensor<0x4xf32>, tensor<4xf32>) {
        %c = arith.constant dense<> : tensor<0x4xf32>
        %start = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
        %e = tensor.empty() : tensor<4xf32>
        %s = imap.generic (j)[i] domain: j in [0, 3], i in [0, -1]
            ins(%x[i, j], %c[i, j] : tensor<0x4xf32>, tensor<0x4xf32>) outs(%start[j] : tensor<4xf32>) fold [add f32 from outs 0] {
        ^bb0(%a: f32, %b: f32):
          %p = arith.mulf %a, %b : f32
          imap.yield %p : f32
        } -> tensor<4xf32>
        %e1 = tensor.empty() : tensor<0x4xf32>
        %z = imap.generic (i, j) domain: i in [0, -1], j in [0, 3]
            ins(%x[i, j], %s[j] : tensor<0x4xf32>, tensor<4xf32>) outs(%e1[i, j] : tensor<0x4xf32>) {
        ^bb0(%a: f32, %b: f32):
          %p = arith.addf %a, %b : f32
          imap.yield %p : f32
        } -> tensor<0x4xf32>
        %m = imap.generic (j)[i] domain: j in [0, 3], i in [0, -1]
            ins(%z[i, j] : tensor<0x4xf32>) outs(%e[j] : tensor<4xf32>) fold [maxf f32] {
        ^bb0(%a: f32):
          imap.yield %a : f32
        } -> tensor<4xf32>
        return %s, %z, %m : tensor<4xf32>, tensor<0x4xf32>, tensor<4xf32>
      }";
    let mut run = inputs(&[&[0, 4], &[4]], 3);
    run.push(Tensor::zeros(ElementType::I32, &[0]).expect("no elements"));
    let run = check(text, "f", &[&run]);
    assert_eq!(run.elements, 8, "{run:?}");
}

#[test]
fn captured_scalars_of_every_type_are_arguments() {
    for (ty, values) in [
        ("f64", Tensor::from_values(&[2], &[0.5f64, -3.0])),
        ("f32", Tensor::from_values(&[2], &[0.5f32, -3.0])),
        ("i8", Tensor::from_values(&[2], &[5i8, -3])),
        ("i64", Tensor::from_values(&[2], &[5i64 << 40, -3])),
        ("i1", Tensor::from_values(&[2], &[true, false])),
    ] {
        let add = if ty.starts_with('f') { "arith.addf" } else { "arith.addi" };
        let text = format!(
            "func.func @f(%x: tensor<2x{ty}>) -> tensor<2x{ty}> {{
               %c1 = arith.constant 1 : index
               %v = tensor.extract %x[%c1] : tensor<2x{ty}>
               %e = tensor.empty() : tensor<2x{ty}>
               %s = imap.generic (i) domain: i in [0, 1] ins(%x[i] : tensor<2x{ty}>) outs(%e[i] : tensor<2x{ty}>) {{
               ^bb0(%u: {ty}):
                 %w = {add} %u, %v : {ty}
                 imap.yield %w : {ty}
               }} -> tensor<2x{ty}>
               return %s : tensor<2x{ty}>
             }}"
        );
        check(&text, "f", &[&[values.expect("two elements")]]);
    }
}

#[test]
fn checks_and_faults_stop_a_run() {
    let text = "
      func.func @f(%x: tensor<?xf32> {tc.sizes = [\"N\"]}) -> tensor<?xf32> {
        %c0 = arith.constant 0 : index
        %n = tensor.dim %x, %c0 : tensor<?xf32>
        %c4 = arith.constant 4 : index
        %ok = arith.cmpi sle, %n, %c4 : index
        imap.check %ok, \"N <= 4\"
        %e = tensor.empty(%n) : tensor<?xf32>
        %y = imap.generic (i){N} domain: i in [0, N - 1], N in [1, 99] runtime(%n : index)
            ins(%x[i] : tensor<?xf32>) outs(%e[i] : tensor<?xf32>) {
        ^bb0(%a: f32):
          imap.yield %a : f32
        } -> tensor<?xf32>
        return %y : tensor<?xf32>
      }";
    let context = tc_dialects::new_context();
    let module = Module::parse(&context, text).expect("a valid program");
    let program =
        Program::lower(&module, &Codegen::new(machines()[0].clone())).expect("it is supported");
    let device = Emulator::new(program.ptx(), program.kernels()).expect("valid PTX");
    let device = Arc::new(Mutex::new(device));
    let compiled = program.load(device.clone()).expect("it fits");
    let run = |extent: usize| {
        let x = inputs(&[&[extent]], 1);
        let mut y = inputs(&[&[extent]], 2);
        let function = compiled.function("f").expect("the function of the module");
        let result = function.call(&[&x[0]], &mut y);
        result.map(|()| y[0] == x[0]).map_err(|error| error.to_string())
    };
    assert_eq!(run(4), Ok(true));
    assert_eq!(run(5), Err("check failed: N <= 4".to_string()));
    device.lock().expect("no panic").options.max_instructions = 1;
    let error = run(4).expect_err("the kernel needs more instructions");
    assert!(error.contains("more than 1 thread instructions"), "{error}");
}

#[test]
fn sizes_that_change_are_errors() {
    let error = fails(
        "func.func @f(%x: tensor<?xf32>, %n: tensor<i32>) -> tensor<f32> {
           %k = tensor.extract %n[] : tensor<i32>
           %m = arith.index_cast %k : i32 to index
           %e = tensor.empty(%m) : tensor<?xf32>
           %y = imap.generic (i){M} domain: i in [0, M - 1], M in [1, 99] runtime(%m : index)
               ins(%x[i] : tensor<?xf32>) outs(%e[i] : tensor<?xf32>) {
           ^bb0(%a: f32):
             imap.yield %a : f32
           } -> tensor<?xf32>
           %s = tensor.empty() : tensor<f32>
           %z = imap.generic ()[i]{M} domain: i in [0, M - 1], M in [1, 99] runtime(%m : index)
               ins(%y[i] : tensor<?xf32>) outs(%s[] : tensor<f32>) fold [add f32] {
           ^bb0(%a: f32):
             %b = arith.mulf %a, %a : f32
             imap.yield %b : f32
           } -> tensor<f32>
           return %z : tensor<f32>
         }",
    );
    assert!(error.contains("has a size that is not known when the function is entered"), "{error}");
}

/// A call of a [`Recorder`].
#[derive(Clone, Debug, PartialEq)]
enum Call {
    Allocate(usize),
    Free(u64),
    /// The kernel, the blocks, the threads of a block and the arguments.
    Launch(usize, u32, u32, Vec<u64>),
    Copy(u64, u64, usize),
    Write(u64, Vec<u8>),
    Read(u64, usize),
}

/// A device that notes calls and holds no bytes. Reads give what `answers` has next, then zeros.
#[derive(Default)]
struct Recorder {
    calls: Vec<Call>,
    answers: Vec<Result<Vec<u8>, DeviceError>>,
}

impl Device for Recorder {
    fn allocate(&mut self, bytes: usize) -> Result<u64, DeviceError> {
        let number = self.calls.iter().filter(|it| matches!(it, Call::Allocate(_))).count();
        self.calls.push(Call::Allocate(bytes));
        Ok(0x1_0000 * (number as u64 + 1))
    }

    fn free(&mut self, address: u64) {
        self.calls.push(Call::Free(address));
    }

    fn launch(&mut self, launch: Launch) -> Result<(), DeviceError> {
        let Launch { kernel, blocks, threads, arguments, .. } = launch;
        self.calls.push(Call::Launch(kernel, blocks, threads, arguments));
        Ok(())
    }

    fn copy(&mut self, target: u64, source: u64, bytes: usize) -> Result<(), DeviceError> {
        self.calls.push(Call::Copy(target, source, bytes));
        Ok(())
    }

    fn write(&mut self, target: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.calls.push(Call::Write(target, bytes.to_vec()));
        Ok(())
    }

    fn read(&mut self, source: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.calls.push(Call::Read(source, bytes.len()));
        if self.answers.is_empty() {
            bytes.fill(0);
            return Ok(());
        }
        bytes.copy_from_slice(&self.answers.remove(0)?);
        Ok(())
    }
}

/// Runs the function `f` of a program on a recorder with these answers. Returns its calls from the first one behind
/// the load of the program on.
fn record(
    text: &str,
    answers: Vec<Result<Vec<u8>, DeviceError>>,
    inputs: &[&Tensor],
    outputs: &mut [Tensor],
) -> (Result<(), CallError>, Vec<Call>) {
    let context = tc_dialects::new_context();
    let module = Module::parse(&context, text).expect("a valid program");
    let program = Program::lower(&module, &Codegen::new(machines()[0].clone()));
    let device = Arc::new(Mutex::new(Recorder { answers, ..Recorder::default() }));
    let compiled = program.and_then(|it| it.load(device.clone())).expect("it is supported");
    device.lock().expect("no panic").calls.clear();
    let result = compiled.function("f").expect("the function of the module").call(inputs, outputs);
    let calls = std::mem::take(&mut device.lock().expect("no panic").calls);
    (result, calls)
}

#[test]
fn host_code_launches_in_order_with_sizes_and_addresses() {
    let x = inputs(&[&[300, 8], &[300, 8]], 1);
    let mut y = inputs(&[&[300], &[300, 8]], 1);
    let (result, calls) = record(&chain("?", "?"), Vec::new(), &[&x[0], &x[1]], &mut y);
    assert_eq!(result, Ok(()));
    let bytes = 300 * 8 * 4usize;
    let workspace = bytes.next_multiple_of(256);
    // The first recorded buffer has the number 1: the constants have the number 0.
    let [x0, x1, y0, y1, space] = [1, 2, 3, 4, 5].map(|number| 0x1_0000 * number);
    let write = |tensor: &Tensor, address| Call::Write(address, tensor.bytes().to_vec());
    let (rows, columns) = (300, 8);
    let sizes = |address| [address, rows, columns, columns];
    let mut expected = vec![
        Call::Allocate(bytes),
        write(&x[0], x0),
        Call::Allocate(bytes),
        write(&x[1], x1),
        Call::Allocate(300 * 4),
        Call::Allocate(bytes),
        Call::Allocate(workspace),
    ];
    let [first, second, third] = [0, 1, 2].map(|kernel| {
        let launch = calls.iter().find_map(|call| match call {
            Call::Launch(found, blocks, 256, arguments) if *found == kernel => {
                Some((*blocks, arguments.clone()))
            }
            _ => None,
        });
        launch.expect("a launch of each kernel")
    });
    // One thread for each element, and a group of threads for each row.
    assert_eq!([first.0, second.0], [2400u32.div_ceil(256); 2]);
    assert_eq!(third.0, 300);
    assert_eq!(first.1, [&[rows, columns][..], &sizes(x0), &sizes(space)].concat());
    assert_eq!(second.1[2..], [sizes(space), sizes(x1), sizes(y1)].concat());
    expected.extend(
        [(0, first), (1, second), (2, third)]
            .map(|(kernel, (blocks, arguments))| Call::Launch(kernel, blocks, 256, arguments)),
    );
    expected.extend([Call::Read(y0, 1200), Call::Read(y1, bytes)]);
    expected.extend([x0, x1, y0, y1, space].map(Call::Free));
    assert_eq!(calls, expected);
}

/// The value of a formula of a manifest: a number or a text over sizes, in which division rounds down.
///
/// # Panics
/// It is no formula over these sizes.
fn evaluate(formula: &Value, sizes: &BTreeMap<String, i64>) -> i64 {
    let Some(text) = formula.as_str() else { return formula.as_i64().expect("a number") };
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '.';
    let mut tokens: Vec<String> = Vec::new();
    for letter in text.chars().filter(|it| *it != ' ') {
        match tokens.last_mut() {
            Some(last) if is_name(letter) && last.ends_with(is_name) => last.push(letter),
            _ => tokens.push(letter.to_string()),
        }
    }
    let mut tokens = tokens.into_iter().peekable();
    let value = sum(&mut tokens, sizes);
    assert_eq!(tokens.next(), None, "{text}");
    value
}

type Tokens = std::iter::Peekable<std::vec::IntoIter<String>>;

fn sum(tokens: &mut Tokens, sizes: &BTreeMap<String, i64>) -> i64 {
    let mut value = product(tokens, sizes);
    while let Some(sign) = tokens.next_if(|it| it == "+" || it == "-") {
        let term = product(tokens, sizes);
        value += if sign == "+" { term } else { -term };
    }
    value
}

fn product(tokens: &mut Tokens, sizes: &BTreeMap<String, i64>) -> i64 {
    let mut value = factor(tokens, sizes);
    while let Some(sign) = tokens.next_if(|it| it == "*" || it == "/") {
        let other = factor(tokens, sizes);
        value = if sign == "*" { value * other } else { value.div_euclid(other) };
    }
    value
}

fn factor(tokens: &mut Tokens, sizes: &BTreeMap<String, i64>) -> i64 {
    let token = tokens.next().expect("a factor");
    match &*token {
        "-" => -factor(tokens, sizes),
        "(" => {
            let value = sum(tokens, sizes);
            assert_eq!(tokens.next().as_deref(), Some(")"));
            value
        }
        "min" | "max" => {
            assert_eq!(tokens.next().as_deref(), Some("("));
            let mut values = vec![sum(tokens, sizes)];
            while tokens.next_if(|it| it == ",").is_some() {
                values.push(sum(tokens, sizes));
            }
            assert_eq!(tokens.next().as_deref(), Some(")"));
            let values = values.into_iter();
            if token == "min" { values.min() } else { values.max() }.expect("an argument")
        }
        name => name.parse().unwrap_or_else(|_| sizes[name]),
    }
}

/// The first function in the manifest of a program, and the names of the kernels.
fn manifest(text: &str) -> (Value, Vec<String>) {
    let context = tc_dialects::new_context();
    let module = Module::parse(&context, text).expect("a valid program");
    let program = BACKEND.compile(&module, &Codegen::new(machines()[0].clone()));
    let manifest = program.and_then(|it| it.interface(Form::Ptx, "f")).expect("it is supported");
    let manifest: Value = serde_json::from_str(&manifest.text).expect("JSON");
    let kernels = manifest["kernels"].as_array().expect("a list").iter();
    let names = kernels.map(|it| it["name"].as_str().expect("a name").to_string());
    (manifest["functions"][0].clone(), names.collect())
}

/// Compares what a manifest has of the function `f` with the calls of host code on tensors of these shapes.
///
/// # Panics
/// They differ.
fn check_manifest(
    text: &str,
    sizes: &BTreeMap<String, i64>,
    shapes: &[&[usize]],
    outputs: &[&[usize]],
) {
    let (function, kernels) = manifest(text);
    let arguments = function["arguments"].as_array().expect("a list");
    let address = |number: usize| 0x1_0000 * (number as u64 + 1);
    let place = |it: &Value| {
        let named = |name: &Value| arguments.iter().position(|it| it["name"] == *name);
        let (base, offset) = match (named(&it["argument"]), &it["workspace"], &it["constants"]) {
            (Some(number), ..) => (address(number), &it["offset"]),
            (None, Value::Null, constants) => (address(0), constants),
            (None, workspace, _) => (address(arguments.len()), workspace),
        };
        base + evaluate(offset, sizes) as u64
    };
    let (inputs, mut results) = (inputs(shapes, 1), inputs(outputs, 2));
    let mut answers = Vec::new();
    let element = |it: &Value| {
        let named =
            arguments.iter().position(|argument| argument["name"] == it["element"]["argument"]);
        let offset = evaluate(&it["element"]["offset"], sizes) as usize;
        let bytes = evaluate(&it["bytes"], sizes) as usize;
        inputs[named.expect("an argument")].bytes()[offset..offset + bytes].to_vec()
    };
    let steps = function["steps"].as_array().expect("no control flow").iter().map(|it| {
        let Some(kernel) = it["kernel"].as_str() else {
            let bytes = evaluate(&it["bytes"], sizes) as usize;
            return Call::Copy(place(&it["to"]), place(&it["from"]), bytes);
        };
        let kernel = kernels.iter().position(|it| it == kernel).expect("a kernel of the program");
        let mut word = |it: &Value| match (&it["value"], it.get("element")) {
            (_, Some(_)) => {
                let mut bytes = element(it);
                answers.push(Ok(bytes.clone()));
                bytes.resize(8, 0);
                u64::from_le_bytes(bytes.try_into().expect("a word"))
            }
            (Value::Null, None) => place(it),
            (value, None) => evaluate(value, sizes) as u64,
        };
        let words = it["arguments"].as_array().expect("a list").iter().map(&mut word).collect();
        let number = |key: &str| evaluate(&it[key], sizes) as u32;
        Call::Launch(kernel, number("blocks"), number("threads"), words)
    });
    let expected: Vec<_> = steps.collect();
    let inputs: Vec<_> = inputs.iter().collect();
    let (result, calls) = record(text, answers, &inputs, &mut results);
    assert_eq!(result, Ok(()));
    let steps = calls.iter().filter(|it| matches!(it, Call::Launch(..) | Call::Copy(..)));
    assert_eq!(steps.cloned().collect::<Vec<_>>(), expected, "{function:#}");
    let mut allocated = calls.iter().filter_map(|call| match call {
        Call::Allocate(bytes) => Some(*bytes as i64),
        _ => None,
    });
    assert_eq!(allocated.next_back(), Some(evaluate(&function["workspace_bytes"], sizes)));
}

/// The names by which manifests have the extents of inputs and outputs.
fn named(inputs: &[&[usize]], outputs: &[&[usize]]) -> BTreeMap<String, i64> {
    let extents = inputs.iter().chain(outputs).enumerate().flat_map(|(number, shape)| {
        let extents = shape.iter().enumerate();
        extents.map(move |(dim, extent)| (format!("arg{number}.{dim}"), *extent as i64))
    });
    extents.collect()
}

#[test]
fn manifests_have_the_launches_of_host_code() {
    for [rows, columns] in [[1, 1], [3, 700], [300, 8]] {
        let (text, shape) = (chain("?", "?"), [rows, columns]);
        let shapes: [&[usize]; 2] = [&shape, &shape];
        let outputs: [&[usize]; 2] = [&[rows], &shape];
        check_manifest(&text, &named(&shapes, &outputs), &shapes, &outputs);
        // Static sizes need no names.
        let text = chain(&rows.to_string(), &columns.to_string());
        check_manifest(&text, &BTreeMap::new(), &shapes, &outputs);
    }
}

#[test]
fn manifests_have_copies_constants_and_parts_of_buffers() {
    let text = "
      func.func @f(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x8xf32>) {
        %c0 = arith.constant 0 : index
        %c = arith.constant dense<[1.0, -2.0, 4.0, 8.0]> : tensor<4xf32>
        %m = tensor.dim %x, %c0 : tensor<?x8xf32>
        %c100 = arith.constant 1000 : index
        %ok = arith.cmpi sle, %m, %c100 : index
        imap.check %ok, \"the number of rows is at most 1000\"
        %part = tensor.extract_slice %x[0, 3] [%m, 4] [1, 1] : tensor<?x8xf32> to tensor<?x4xf32>
        %e = tensor.empty(%m) : tensor<?x4xf32>
        %s = imap.generic (i, j){M} domain: i in [0, M - 1], j in [0, 3], M in [1, 9999] runtime(%m : index)
            ins(%part[i, j], %c[j] : tensor<?x4xf32>, tensor<4xf32>) outs(%e[i, j] : tensor<?x4xf32>) {
        ^bb0(%u: f32, %v: f32):
          %w = arith.mulf %u, %v : f32
          imap.yield %w : f32
        } -> tensor<?x4xf32>
        %z = tensor.insert_slice %s into %x[0, 2] [%m, 4] [1, 1] : tensor<?x4xf32> into tensor<?x8xf32>
        return %z, %s, %x : tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x8xf32>
      }";
    for rows in [1, 5, 200] {
        let shapes: [&[usize]; 1] = [&[rows, 8]];
        let outputs: [&[usize]; 3] = [&[rows, 8], &[rows, 4], &[rows, 8]];
        check_manifest(text, &named(&shapes, &outputs), &shapes, &outputs);
    }
    let (function, _) = manifest(text);
    let steps = function["steps"].as_array().expect("no control flow");
    assert!(steps.iter().any(|it| it.get("bytes").is_some()), "{function:#}");
}

#[test]
fn manifests_have_elements_that_are_passed_by_value() {
    let text = "
      func.func @f(%x: tensor<?xf32>, %k: tensor<3xf32>) -> tensor<?xf32> {
        %c0 = arith.constant 0 : index
        %c2 = arith.constant 2 : index
        %n = tensor.dim %x, %c0 : tensor<?xf32>
        %v = tensor.extract %k[%c2] : tensor<3xf32>
        %e = tensor.empty(%n) : tensor<?xf32>
        %y = imap.generic (i){N} domain: i in [0, N - 1], N in [1, 9999] runtime(%n : index)
            ins(%x[i] : tensor<?xf32>) outs(%e[i] : tensor<?xf32>) {
        ^bb0(%u: f32):
          %w = arith.mulf %u, %v : f32
          imap.yield %w : f32
        } -> tensor<?xf32>
        return %y : tensor<?xf32>
      }";
    for size in [1, 5, 700] {
        let (shapes, outputs): ([&[usize]; 2], [&[usize]; 1]) = ([&[size], &[3]], [&[size]]);
        check_manifest(text, &named(&shapes, &outputs), &shapes, &outputs);
    }
    let (function, _) = manifest(text);
    let words = function["steps"][0]["arguments"].as_array().expect("a launch");
    let element = words.iter().find(|it| it.get("element").is_some()).expect("the factor");
    assert_eq!((&element["element"]["offset"], &element["bytes"]), (&8.into(), &4.into()));
    // The host computes with the element.
    let squared = text.replace("arith.mulf %u, %v", "arith.mulf %u, %q");
    let squared =
        squared.replace("%e = tensor.empty", "%q = arith.mulf %v, %v : f32\n%e = tensor.empty");
    assert_eq!(manifest(&squared).0["steps"], Value::Null);
}

#[test]
fn manifests_have_no_steps_if_control_flow_decides() {
    let (function, kernels) = manifest(DOUBLING);
    assert_eq!((&function["steps"], kernels.len()), (&Value::Null, 1));
    assert!(function["workspace_bytes"].is_number(), "{function:#}");
    // A check of an element.
    let text = "
      func.func @f(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
        %k = tensor.extract %n[] : tensor<i32>
        %c4 = arith.constant 4 : i32
        %ok = arith.cmpi sle, %k, %c4 : i32
        imap.check %ok, \"n <= 4\"
        %e = tensor.empty() : tensor<4xf32>
        %y = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xf32>) outs(%e[i] : tensor<4xf32>) {
        ^bb0(%u: f32):
          imap.yield %u : f32
        } -> tensor<4xf32>
        return %y : tensor<4xf32>
      }";
    assert_eq!(manifest(text).0["steps"], Value::Null);
    let of_sizes = text.replace("arith.cmpi sle, %k", "arith.cmpi sle, %c4");
    assert!(manifest(&of_sizes).0["steps"].is_array());
}

/// A loop that doubles numbers until the first one is not below a limit.
const DOUBLING: &str = "
  func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
    %c0 = arith.constant 0 : index
    %limit = arith.constant 100.0 : f32
    %r = scf.while (%t = %x) : (tensor<2xf32>) -> tensor<2xf32> {
      %v = tensor.extract %t[%c0] : tensor<2xf32>
      %small = arith.cmpf olt, %v, %limit : f32
      scf.condition(%small) %t : tensor<2xf32>
    } do {
    ^bb0(%t: tensor<2xf32>):
      %e = tensor.empty() : tensor<2xf32>
      %s = imap.generic (i) domain: i in [0, 1] ins(%t[i] : tensor<2xf32>) outs(%e[i] : tensor<2xf32>) {
      ^bb0(%u: f32):
        %w = arith.addf %u, %u : f32
        imap.yield %w : f32
      } -> tensor<2xf32>
      scf.yield %s : tensor<2xf32>
    }
    return %r : tensor<2xf32>
  }";

#[test]
fn reads_decide_how_often_a_loop_runs() {
    let values = [25.0f32, 50.0, 100.0];
    let answers = values.map(|value| Ok(value.to_le_bytes().to_vec())).to_vec();
    let x = Tensor::from_values(&[2], &[25.0f32, 3.0]).expect("two numbers");
    let mut y = [x.clone()];
    let (result, calls) = record(DOUBLING, answers, &[&x], &mut y);
    assert_eq!(result, Ok(()));
    let launches = calls.iter().filter(|it| matches!(it, Call::Launch(..))).count();
    assert_eq!(launches, 2, "{calls:?}");
    check(DOUBLING, "f", &[&[x]]);
}

#[test]
fn failed_reads_end_a_function() {
    let answers = vec![
        Ok(25.0f32.to_le_bytes().to_vec()),
        Err(DeviceError("an illegal address".to_string())),
    ];
    let x = Tensor::from_values(&[2], &[25.0f32, 3.0]).expect("two numbers");
    let mut y = [x.clone()];
    let (result, calls) = record(DOUBLING, answers, &[&x], &mut y);
    assert_eq!(result, Err(CallError::Device("an illegal address".to_string())));
    let reads = calls.iter().filter(|it| matches!(it, Call::Read(..))).count();
    assert_eq!(reads, 2, "{calls:?}");
    assert!(matches!(calls.last(), Some(Call::Free(_))), "{calls:?}");
    assert_eq!(y[0], x);
}

#[test]
fn structured_operations_of_linalg_become_kernels() {
    let text = "
      func.func @f(%a: tensor<5x7xf32>, %b: tensor<7x3xf32>) -> tensor<5x3xf32> {
        %zero = arith.constant 0.0 : f32
        %e = tensor.empty() : tensor<5x3xf32>
        %init = linalg.fill ins(%zero : f32) outs(%e : tensor<5x3xf32>) -> tensor<5x3xf32>
        %c = linalg.matmul ins(%a, %b : tensor<5x7xf32>, tensor<7x3xf32>) outs(%init : tensor<5x3xf32>) -> tensor<5x3xf32>
        %d = arith.mulf %c, %c : tensor<5x3xf32>
        return %d : tensor<5x3xf32>
      }";
    let run = check(text, "f", &[&inputs(&[&[5, 7], &[7, 3]], 1)]);
    assert!(run.kernels <= 2, "{run:?}");
    let error = fails(
        "func.func @f(%a: tensor<4xf32>) -> tensor<f32> {
           %zero = arith.constant 0.0 : f32
           %e = tensor.empty() : tensor<f32>
           %init = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
           %c = linalg.reduce ins(%a : tensor<4xf32>) outs(%init : tensor<f32>) dimensions = [0]
             (%x: f32, %sum: f32) {
               %s = arith.subf %sum, %x : f32
               linalg.yield %s : f32
             }
           return %c : tensor<f32>
         }",
    );
    assert!(error.contains("no kernel"), "{error}");
}
