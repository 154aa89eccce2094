//! A compiler of its own on top of the crates, in one file.
//!
//! It builds `y = relu(x * w + b)` as two operations, without any source text: a matrix
//! product and an element-wise operation that reads it. Then a session fuses the two into one,
//! compiles that for tensors of any size, and calls it.
//!
//! Run it with `cargo run --package tc-example`.

use melior::{
    Context,
    ir::{
        Location, Module, Type, ValueLike, attribute::TypeAttribute, operation::OperationLike,
        r#type::FunctionType,
    },
};
use std::error::Error;
use tc_backends::{Request, Session, runtime::Tensor};
use tc_dialects::{
    imap::{self, Access, Accumulator, CombinerKind, Indexed, Runtime, Start, View},
    mlir::{self, Builder, Val},
};
use tc_ir::{IndexingMap, map::Variable};

/// The dialects whose operations are built here.
const DIALECTS: [&str; 4] = ["arith", "func", "imap", "tensor"];

/// What callers need to know of the arguments: names, and which extents are equal.
const ARGUMENTS: &str = r#"[
  {tc.name = "x", tc.sizes = ["M", "K"]},
  {tc.name = "w", tc.sizes = ["K", "N"]},
  {tc.name = "b", tc.sizes = ["N"]}
]"#;

/// The extents of the result, over the sizes of the arguments.
const RESULTS: &str = r#"[{tc.name = "y", tc.extents = #imap.map<(){M, N} -> (M, N)>}]"#;

fn main() -> Result<(), Box<dyn Error>> {
    let session = new_session()?;
    let module = build(session.context())?;
    println!("// Two operations:\n{}", module.as_operation());
    let program = session.open_module(module)?;
    let lowered = session.lower(&*program, &Request::of("layer"))?;
    println!("// One, with the second as its epilogue:\n{}", lowered.module.as_operation());

    let x = Tensor::from_values(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    let w = Tensor::from_values(&[3, 2], &[1.0f32, -1.0, 2.0, -2.0, 3.0, -3.0])?;
    let b = Tensor::from_values(&[2], &[0.5f32, 20.0])?;
    let results = session.load(&lowered)?.run(&[&x, &w, &b])?;
    println!("y = {:?}", results[0].to_values::<f32>().unwrap_or_default());
    Ok(())
}

/// A session that prints diagnostics, with the dialects loaded.
fn new_session() -> Result<Session, Box<dyn Error>> {
    let session = Session::new("cpu")?;
    session.print_diagnostics();
    for dialect in DIALECTS {
        session.context().get_or_load_dialect(dialect);
    }
    Ok(session)
}

/// Builds the module and verifies it.
fn build(context: &Context) -> Result<Module<'_>, Box<dyn Error>> {
    let location = Location::new(context, file!(), line!() as usize, 1);
    let module = Module::new(location);
    let at_module = Builder::at_end(context, mlir::block_ref(module.body()), location);

    // func.func @layer(x: M x K, w: K x N, b: N) -> M x N
    let f32_type = Type::float32(context);
    let matrix = mlir::tensor_type(&[None, None], f32_type);
    let vector = mlir::tensor_type(&[None], f32_type);
    let (region, body) = mlir::region_with_block(&[matrix, matrix, vector], location);
    let ty = FunctionType::new(context, &[matrix, matrix, vector], &[matrix]);
    at_module.op_with(
        "func.func",
        &[],
        &[],
        &[
            ("sym_name", mlir::string(context, "layer")),
            ("function_type", TypeAttribute::new(ty.into()).into()),
            ("arg_attrs", mlir::parse_attribute(context, ARGUMENTS)),
            ("res_attrs", mlir::parse_attribute(context, RESULTS)),
        ],
        vec![region],
    );
    let builder = Builder::at_end(context, body, location);
    let arguments = mlir::arguments(body);
    let (x, w, b) = (arguments[0], arguments[1], arguments[2]);
    let sizes = [builder.dim(x, 0), builder.dim(x, 1), builder.dim(w, 1)];
    let y = relu(&builder, product(&builder, x, w, &sizes), b, &sizes);
    builder.op("func.return", &[y], &[]);

    if module.as_operation().verify() { Ok(module) } else { Err("the module is wrong".into()) }
}

/// The product of two matrices of sizes `[m, k, n]`.
///
/// # Shapes
/// `x`: [m, k], `w`: [k, n], the result: [m, n].
fn product<'c>(builder: &Builder<'c>, x: Val<'c>, w: Val<'c>, sizes: &[Val<'c>; 3]) -> Val<'c> {
    // (i, j)[k]{M, K, N}: i in [0, M - 1], j in [0, N - 1], k in [0, K - 1]
    let ir = tc_ir::Context::new();
    let below =
        |size: u32| Variable::between(ir.constant(0), ir.sub(ir.runtime(size), ir.constant(1)));
    let size = || Variable::between(ir.constant(1), ir.constant(i64::from(i32::MAX)));
    let domain = IndexingMap {
        dims: vec![below(0).named("i"), below(2).named("j")],
        ranges: vec![below(1).named("k")],
        runtimes: vec![size().named("M"), size().named("K"), size().named("N")],
        ..IndexingMap::default()
    };
    let (i, j, k) = (ir.dim(0), ir.dim(1), ir.range(0));
    let init = empty(builder, x, &[sizes[0], sizes[2]]);
    let ty = mlir::element_type(init.r#type());
    let sum = Accumulator { ty, kind: CombinerKind::Add, identity: None, start: Start::Identity };
    let view = View {
        domain,
        runtimes: sizes.iter().copied().map(Runtime::Index).collect(),
        inputs: vec![Access::new(x, vec![i, k]), Access::new(w, vec![k, j])],
        outputs: vec![Access::new(init, vec![i, j])],
        accumulators: vec![sum],
        ordered: false,
        combiner: None,
    };
    fill(builder, &ir, &view, |body, scalars| {
        body.value("arith.mulf", scalars, scalars[0].r#type())
    })
}

/// The positive part of a matrix with a vector added to each row, of sizes `[m, _, n]`.
///
/// # Shapes
/// `matrix`: `[m, n]`, `vector`: `[n]`, the result: `[m, n]`.
fn relu<'c>(
    builder: &Builder<'c>,
    matrix: Val<'c>,
    vector: Val<'c>,
    sizes: &[Val<'c>; 3],
) -> Val<'c> {
    // The text of a map is as good as its parts.
    let ir = tc_ir::Context::new();
    let domain = IndexingMap::parse(
        &ir,
        "(i, j){M, N} -> (), domain: i in [0, M - 1], j in [0, N - 1], \
         M in [1, 2147483647], N in [1, 2147483647]",
    )
    .expect("a map that is written correctly");
    let (i, j) = (ir.dim(0), ir.dim(1));
    let init = empty(builder, matrix, &[sizes[0], sizes[2]]);
    let view = View {
        domain,
        runtimes: vec![Runtime::Index(sizes[0]), Runtime::Index(sizes[2])],
        inputs: vec![Access::new(matrix, vec![i, j]), Access::new(vector, vec![j])],
        outputs: vec![Access::new(init, vec![i, j])],
        accumulators: Vec::new(),
        ordered: false,
        combiner: None,
    };
    fill(builder, &ir, &view, |body, scalars| {
        let ty = scalars[0].r#type();
        let sum = body.value("arith.addf", scalars, ty);
        let zero = body.float(ty, 0.0);
        body.value("arith.maximumf", &[sum, zero], ty)
    })
}

/// `tensor.empty` of the type of another tensor, with these extents.
fn empty<'c>(builder: &Builder<'c>, like: Val<'c>, extents: &[Val<'c>]) -> Val<'c> {
    builder.value("tensor.empty", extents, like.r#type())
}

/// Builds an `imap.generic` whose body yields what `compute` makes of the scalars read.
fn fill<'c>(
    builder: &Builder<'c>,
    ir: &tc_ir::Context,
    view: &View<'c>,
    compute: impl FnOnce(&Builder<'c>, &[Val<'c>]) -> Val<'c>,
) -> Val<'c> {
    let generic = view.build(ir, builder, false);
    let body = Builder::at_end(builder.context, generic.body(), builder.location);
    let value = compute(&body, &mlir::arguments(generic.body()));
    imap::build_yield(&body, &[value]);
    mlir::result(generic.op(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tc_dialects::{imap::Generic, report};

    fn num_generics(module: &Module) -> usize {
        let mut count = 0;
        mlir::walk(mlir::op_ref(module.as_operation()), &mut |op| {
            count += usize::from(Generic::cast(op).is_some());
        });
        count
    }

    /// Small integers, so that sums are exact in any order.
    fn values(count: usize, seed: usize) -> Vec<f32> {
        (0..count).map(|number| ((number * 7 + seed) % 11) as f32 - 5.0).collect()
    }

    #[test]
    fn layer_agrees_with_loops() {
        let session = new_session().unwrap();
        let module = build(session.context()).unwrap();
        assert_eq!(num_generics(&module), 2);
        let program = session.open_module(module).unwrap();
        let lowered = session.lower(&*program, &Request::of("layer")).unwrap();
        assert_eq!(num_generics(&lowered.module), 1);
        let layer = session.load(&lowered).unwrap();
        // Compiled once, called with several sizes.
        for [m, k, n] in [[1, 1, 1], [3, 5, 4], [16, 17, 33]] {
            let (x, w, b) = (values(m * k, 1), values(k * n, 2), values(n, 3));
            let mut expected = Vec::new();
            for i in 0..m {
                for j in 0..n {
                    let sum: f32 = (0..k).map(|r| x[i * k + r] * w[r * n + j]).sum();
                    expected.push((sum + b[j]).max(0.0));
                }
            }
            let x = Tensor::from_values(&[m, k], &x).unwrap();
            let w = Tensor::from_values(&[k, n], &w).unwrap();
            let b = Tensor::from_values(&[n], &b).unwrap();
            let results = layer.run(&[&x, &w, &b]).unwrap();
            assert_eq!(results[0].shape(), [m, n]);
            assert_eq!(results[0].to_values::<f32>().unwrap(), expected);
        }
        // Extents that do not agree are rejected.
        let x = Tensor::from_values(&[1, 2], &[1.0f32, 2.0]).unwrap();
        let w = Tensor::from_values(&[1, 1], &[1.0f32]).unwrap();
        let b = Tensor::from_values(&[1], &[1.0f32]).unwrap();
        let error = layer.run(&[&x, &w, &b]).unwrap_err();
        assert!(error.to_string().contains("expected dimension 0 of 'w' to be 2"), "{error}");
    }

    #[test]
    fn a_wrong_program_is_reported() {
        let session = new_session().unwrap();
        let context = session.context();
        let (handler, received) = report::collect(context);
        let module = build(context).unwrap();
        let mut generics = Vec::new();
        mlir::walk(mlir::op_ref(module.as_operation()), &mut |op| {
            generics.extend(Generic::cast(op));
        });
        // Two maps for three operands.
        let maps = mlir::array_attr(generics[0].op(), "maps");
        mlir::set_attribute(generics[0].op(), "maps", mlir::array(context, &maps[..2]));
        assert!(!module.as_operation().verify());
        context.detach_diagnostic_handler(handler);
        let received = received.borrow();
        let (file, ..) = received[0].place.clone().unwrap();
        assert!(file.ends_with("main.rs"), "{file}");
        assert!(received[0].message.contains("'imap.generic' op"), "{}", received[0].message);
    }
}
