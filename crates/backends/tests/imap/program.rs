//! Programs of `imap` as data, which can be made smaller, and the module that they stand for.

use melior::{
    Context,
    ir::{Attribute, Location, Module, Type, ValueLike, r#type::FunctionType},
};
use tc_backends::runtime::Tensor;
use tc_dialects::{
    imap::{
        self, Access, Accumulator, AnyIndexed, CombinerKind, Indexed, ScatterPromises, Start, View,
    },
    mlir::{self, Builder, Val},
};
use tc_ir::{Expr, IndexingMap, Interval, Variable, map::Constraint};

/// The type of all elements but those of tables, which are `i32`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Element {
    I8,
    I32,
    F32,
    F64,
}

impl Element {
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Another type of its kind.
    fn other<'c>(self, b: &Builder<'c>) -> Type<'c> {
        match self {
            Self::I8 => b.int_type(32),
            Self::I32 => b.int_type(64),
            Self::F32 => Type::float64(b.context),
            Self::F64 => Type::float32(b.context),
        }
    }

    fn ty<'c>(self, b: &Builder<'c>) -> Type<'c> {
        match self {
            Self::I8 => b.int_type(8),
            Self::I32 => b.int_type(32),
            Self::F32 => Type::float32(b.context),
            Self::F64 => Type::float64(b.context),
        }
    }
}

/// Converts a number to another type of its kind.
fn convert<'c>(b: &Builder<'c>, value: Val<'c>, ty: Type<'c>) -> Val<'c> {
    let is_wider = mlir::byte_width(value.r#type()) < mlir::byte_width(ty);
    let name = match (mlir::is_float(ty), is_wider) {
        (true, true) => "arith.extf",
        (true, false) => "arith.truncf",
        (false, true) => "arith.extsi",
        (false, false) => "arith.trunci",
    };
    b.value(name, &[value], ty)
}

/// An extent: a number, or the size of a number.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    Fixed(i64),
    Size(usize),
}

/// A variable of an operation.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Var {
    Dim(usize),
    Range(usize),
    Runtime(usize),
}

/// An index expression.
#[derive(Clone, Debug)]
pub enum Index {
    Const(i64),
    Var(Var),
    Add(Box<Index>, Box<Index>),
    Sub(Box<Index>, Box<Index>),
    Times(Box<Index>, i64),
    FloorDiv(Box<Index>, i64),
    Mod(Box<Index>, i64),
    Min(Box<Index>, Box<Index>),
    Max(Box<Index>, Box<Index>),
}

impl Index {
    fn build(&self, ir: &tc_ir::Context) -> Expr {
        let pair = |lhs: &Self, rhs: &Self| (lhs.build(ir), rhs.build(ir));
        match self {
            Self::Const(value) => ir.constant(*value),
            Self::Var(Var::Dim(number)) => ir.dim(*number as u32),
            Self::Var(Var::Range(number)) => ir.range(*number as u32),
            Self::Var(Var::Runtime(number)) => ir.runtime(*number as u32),
            Self::Add(lhs, rhs) => {
                let (lhs, rhs) = pair(lhs, rhs);
                ir.add(lhs, rhs)
            }
            Self::Sub(lhs, rhs) => {
                let (lhs, rhs) = pair(lhs, rhs);
                ir.sub(lhs, rhs)
            }
            Self::Times(lhs, by) => ir.mul(lhs.build(ir), ir.constant(*by)),
            Self::FloorDiv(lhs, by) => ir.floor_div(lhs.build(ir), ir.constant(*by)),
            Self::Mod(lhs, by) => ir.modulo(lhs.build(ir), ir.constant(*by)),
            Self::Min(lhs, rhs) => {
                let (lhs, rhs) = pair(lhs, rhs);
                ir.min(lhs, rhs)
            }
            Self::Max(lhs, rhs) => {
                let (lhs, rhs) = pair(lhs, rhs);
                ir.max(lhs, rhs)
            }
        }
    }
}

/// A tensor: an argument of the function, or a result of an operation.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Argument(usize),
    Result(usize, usize),
}

/// An argument: extents, and elements. The elements of a table are indices.
#[derive(Clone, Debug)]
pub struct Argument {
    pub shape: Vec<Extent>,
    pub values: Vec<f64>,
    pub is_table: bool,
}

/// An expression and the closed interval that it lies in.
pub type Condition = (Index, i64, i64);

/// The conditions of a read, and the value if one of them fails: zero or a number.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    pub conditions: Vec<Condition>,
    pub fill: Option<i8>,
}

/// A runtime variable: a size, or an element of a table; with closed bounds.
#[derive(Clone, Debug)]
pub struct Runtime {
    pub source: RuntimeSource,
    pub bounds: (i64, i64),
    pub guard: Guard,
}

/// An input.
#[derive(Clone, Debug)]
pub struct Input {
    pub source: Source,
    pub position: Vec<Index>,
    pub guard: Guard,
}

#[derive(Clone, Debug)]
pub enum RuntimeSource {
    Size(usize),
    Table(usize, Vec<Index>),
}

/// What a destination holds before the operation.
#[derive(Clone, Debug)]
pub enum Init {
    Empty,
    Value(Source),
}

/// A destination.
#[derive(Clone, Debug)]
pub struct Output {
    pub shape: Vec<Extent>,
    pub init: Init,
    pub position: Vec<Index>,
    /// "assign", or the combiner and the start of the accumulator: "add" starts from the destination,
    /// "maxs from identity", "add from 3".
    pub combiner: &'static str,
    /// How the body makes the value: it starts from `first` and takes steps.
    pub first: Operand,
    pub body: Vec<Step>,
    /// How the epilogue makes of the folded value what is stored.
    pub epilogue: Vec<Step>,
}

/// An operation that combines the value so far with another one.
#[derive(Copy, Clone, Debug)]
pub struct Step {
    pub op: &'static str,
    pub with: Operand,
}

#[derive(Copy, Clone, Debug)]
pub enum Operand {
    Input(usize),
    Constant(i8),
    /// The value of a dimension variable.
    Dim(usize),
}

/// An operation on pairs that is associative and commutative, and exact on small integers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Monoid {
    /// The pair that is last in lexicographic order.
    ArgMax,
    /// The maximum, and how often it occurs.
    MaxCount,
    /// The product of matrices `[[a, b], [0, a]]`.
    Matrices,
    /// The last pair whose first part is not 0; not commutative.
    Last,
}

impl Monoid {
    pub const COMMUTATIVE: [Self; 3] = [Self::ArgMax, Self::MaxCount, Self::Matrices];

    /// The neutral pair.
    fn identity<'c>(self, b: &Builder<'c>, ty: Type<'c>) -> [Attribute<'c>; 2] {
        let of = |kind: CombinerKind| kind.identity(b.context, ty);
        let lowest = of(if mlir::is_float(ty) { CombinerKind::MaxF } else { CombinerKind::MaxS });
        match self {
            Self::ArgMax => [lowest; 2],
            Self::MaxCount => [lowest, of(CombinerKind::Add)],
            Self::Matrices => [of(CombinerKind::Mul), of(CombinerKind::Add)],
            Self::Last => [of(CombinerKind::Add); 2],
        }
    }

    /// A pair made of two numbers.
    fn pair<'c>(self, b: &Builder<'c>, first: Val<'c>, second: Val<'c>) -> [Val<'c>; 2] {
        let ty = first.r#type();
        let [zero, one] = [CombinerKind::Add, CombinerKind::Mul]
            .map(|kind| b.constant(ty, kind.identity(b.context, ty)));
        match self {
            Self::ArgMax | Self::Last => [first, second],
            Self::MaxCount => [first, one],
            // Products of -1, 0 and 1 stay small.
            Self::Matrices => {
                let minus_one = subtract(b, zero, one);
                let is_negative = less(b, first, zero);
                let is_positive = less(b, zero, first);
                let sign = b.select(is_positive, one, zero);
                [b.select(is_negative, minus_one, sign), second]
            }
        }
    }

    fn combine<'c>(self, b: &Builder<'c>, values: &[Val<'c>]) -> [Val<'c>; 2] {
        let [first, second, third, fourth] = [values[0], values[1], values[2], values[3]];
        let (is_less, is_greater) = (less(b, first, third), less(b, third, first));
        let add = |lhs, rhs| CombinerKind::Add.build(b, lhs, rhs);
        let mul = |lhs, rhs| CombinerKind::Mul.build(b, lhs, rhs);
        match self {
            Self::ArgMax => {
                let is_lower = less(b, second, fourth);
                let tied = b.select(is_lower, fourth, second);
                let with = b.select(is_greater, second, tied);
                [b.select(is_less, third, first), b.select(is_less, fourth, with)]
            }
            Self::MaxCount => {
                let with = b.select(is_greater, second, add(second, fourth));
                [b.select(is_less, third, first), b.select(is_less, fourth, with)]
            }
            Self::Matrices => [mul(first, third), add(mul(first, fourth), mul(second, third))],
            Self::Last => {
                let zero = b.constant(
                    third.r#type(),
                    CombinerKind::Add.identity(b.context, third.r#type()),
                );
                let (is_negative, is_positive) = (less(b, third, zero), less(b, zero, third));
                let later = |old, new| b.select(is_positive, new, b.select(is_negative, new, old));
                [later(first, third), later(second, fourth)]
            }
        }
    }
}

fn less<'c>(b: &Builder<'c>, lhs: Val<'c>, rhs: Val<'c>) -> Val<'c> {
    match mlir::is_float(lhs.r#type()) {
        true => b.compare_float("olt", lhs, rhs),
        false => b.compare_int("slt", lhs, rhs),
    }
}

fn subtract<'c>(b: &Builder<'c>, lhs: Val<'c>, rhs: Val<'c>) -> Val<'c> {
    let name = if mlir::is_float(lhs.r#type()) { "arith.subf" } else { "arith.subi" };
    b.value(name, &[lhs, rhs], lhs.r#type())
}

/// An `imap.generic`, an `imap.scan` or an `imap.scatter`.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The scanned dimension, and whether the scan is exclusive.
    pub scan: Option<(u32, bool)>,
    /// The guard of the destinations of a scatter.
    pub scatter: Option<Guard>,
    /// Whether the fold keeps the order of the ranges.
    pub is_ordered: bool,
    /// What a region does to two accumulators. With one destination, the epilogue adds them.
    pub monoid: Option<Monoid>,
    pub dims: Vec<(Index, Index)>,
    pub ranges: Vec<(Index, Index)>,
    pub runtimes: Vec<Runtime>,
    pub constraints: Vec<Condition>,
    pub inputs: Vec<Input>,
    /// The conditions of the step "inside" in bodies and in epilogues.
    pub tested: [Vec<Condition>; 2],
    pub outputs: Vec<Output>,
    pub has_epilogue: bool,
    /// With an epilogue, one more accumulator: the sum of the first values in another type, which the
    /// epilogue adds to the first result.
    pub has_own_sum: bool,
}

/// A function, and what it is called with.
#[derive(Clone, Debug)]
pub struct Program {
    pub element: Element,
    /// The values of the sizes. Each is an extent of an argument, which comes first in the list.
    pub sizes: Vec<i64>,
    pub arguments: Vec<Argument>,
    pub operations: Vec<Operation>,
    /// What the function returns.
    pub results: Vec<Source>,
}

fn build_conditions(ir: &tc_ir::Context, conditions: &[Condition]) -> Vec<Constraint> {
    let build = |(expr, lo, hi): &Condition| Constraint {
        expr: expr.build(ir),
        interval: Interval::new(*lo, *hi),
    };
    conditions.iter().map(build).collect()
}

impl Program {
    pub fn extents(&self, shape: &[Extent]) -> Vec<i64> {
        let extent = |extent: &Extent| match extent {
            Extent::Fixed(extent) => *extent,
            Extent::Size(number) => self.sizes[*number],
        };
        shape.iter().map(extent).collect()
    }

    pub fn shape(&self, source: Source) -> &[Extent] {
        match source {
            Source::Argument(number) => &self.arguments[number].shape,
            Source::Result(number, output) => &self.operations[number].outputs[output].shape,
        }
    }

    /// The tensors that the function is called with.
    pub fn inputs(&self) -> Vec<Tensor> {
        let inputs = self.arguments.iter().map(|it| {
            let shape: Vec<_> = self.extents(&it.shape).iter().map(|it| *it as usize).collect();
            let values = &it.values;
            let integers = || values.iter().map(|it| *it as i32).collect::<Vec<_>>();
            match self.element {
                _ if it.is_table => Tensor::from_values(&shape, &integers()),
                Element::I32 => Tensor::from_values(&shape, &integers()),
                Element::I8 => {
                    let bytes: Vec<_> = values.iter().map(|it| *it as i8).collect();
                    Tensor::from_values(&shape, &bytes)
                }
                Element::F32 => {
                    let floats: Vec<_> = values.iter().map(|it| *it as f32).collect();
                    Tensor::from_values(&shape, &floats)
                }
                Element::F64 => Tensor::from_values(&shape, values),
            }
        });
        inputs.map(|it| it.expect("as many values as the shape has")).collect()
    }

    /// The module, whose function is called `f`.
    pub fn build<'c>(&self, context: &'c Context) -> Module<'c> {
        for dialect in ["arith", "func", "imap", "math", "tensor"] {
            context.get_or_load_dialect(dialect);
        }
        let location = Location::unknown(context);
        let module = Module::new(location);
        let outside = Builder::at_end(context, mlir::block_ref(module.body()), location);
        let tensor = |shape: &[Extent], element: Type<'c>| {
            let shape: Vec<_> = shape
                .iter()
                .map(|extent| match extent {
                    Extent::Fixed(extent) => Some(*extent),
                    Extent::Size(_) => None,
                })
                .collect();
            mlir::tensor_type(&shape, element)
        };
        let element = self.element.ty(&outside);
        let table = outside.int_type(32);
        let types: Vec<_> = self
            .arguments
            .iter()
            .map(|it| tensor(&it.shape, if it.is_table { table } else { element }))
            .collect();
        let (region, block) = mlir::region_with_block(&types, location);
        let b = Builder::at_end(context, block, location);
        let arguments = mlir::arguments(block);
        let sizes: Vec<_> = (0..self.sizes.len())
            .map(|size| {
                let place = self.arguments.iter().enumerate().find_map(|(number, it)| {
                    let dim = it.shape.iter().position(|extent| *extent == Extent::Size(size))?;
                    Some((number, dim))
                });
                let (number, dim) = place.expect("every size is an extent of an argument");
                b.dim(arguments[number], dim)
            })
            .collect();
        let mut results: Vec<Vec<Val<'c>>> = Vec::new();
        let ir = tc_ir::Context::new();
        for operation in &self.operations {
            let value = |source: Source| match source {
                Source::Argument(number) => arguments[number],
                Source::Result(number, output) => results[number][output],
            };
            let inits = operation.outputs.iter().map(|output| match output.init {
                Init::Value(source) => value(source),
                Init::Empty => {
                    let dynamic = output.shape.iter().filter_map(|extent| match extent {
                        Extent::Size(size) => Some(sizes[*size]),
                        Extent::Fixed(_) => None,
                    });
                    let dynamic: Vec<_> = dynamic.collect();
                    b.value("tensor.empty", &dynamic, tensor(&output.shape, element))
                }
            });
            let inits: Vec<_> = inits.collect();
            let inputs: Vec<_> = operation.inputs.iter().map(|it| value(it.source)).collect();
            let runtimes = operation.runtimes.iter().map(|it| match it.source {
                RuntimeSource::Size(size) => sizes[size],
                RuntimeSource::Table(argument, _) => arguments[argument],
            });
            let runtimes = runtimes.collect();
            results.push(self.operation(operation, &ir, &b, runtimes, inputs, inits));
        }
        let returned = self.results.iter().map(|source| match *source {
            Source::Argument(number) => arguments[number],
            Source::Result(number, output) => results[number][output],
        });
        let returned: Vec<_> = returned.collect();
        b.op("func.return", &returned, &[]);
        let outputs: Vec<_> =
            self.results.iter().map(|source| tensor(self.shape(*source), element)).collect();
        let ty = FunctionType::new(context, &types, &outputs);
        outside.op_with(
            "func.func",
            &[],
            &[],
            &[
                ("sym_name", mlir::string(context, "f")),
                ("function_type", mlir::type_attr(ty.into())),
            ],
            vec![region],
        );
        module
    }

    fn operation<'c>(
        &self,
        operation: &Operation,
        ir: &tc_ir::Context,
        b: &Builder<'c>,
        runtimes: Vec<Val<'c>>,
        inputs: Vec<Val<'c>>,
        inits: Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        let between =
            |(lower, upper): &(Index, Index)| Variable::between(lower.build(ir), upper.build(ir));
        let bounded = |it: &Runtime| Variable::bounded(ir, Interval::new(it.bounds.0, it.bounds.1));
        let domain = IndexingMap {
            dims: operation.dims.iter().map(between).collect(),
            ranges: operation.ranges.iter().map(between).collect(),
            runtimes: operation.runtimes.iter().map(bounded).collect(),
            results: Vec::new(),
            constraints: build_conditions(ir, &operation.constraints),
        };
        let element = self.element.ty(b);
        let access = |value: Val<'c>, position: &[Index], guard: &Guard, ty: Type<'c>| Access {
            value,
            subscripts: position.iter().map(|it| it.build(ir)).collect(),
            guard: build_conditions(ir, &guard.conditions),
            fill: guard.fill.map(|fill| match mlir::is_float(ty) {
                true => mlir::float(b.context, ty, fill.into()),
                false => mlir::integer(b.context, ty, fill.into()),
            }),
        };
        let runtimes =
            operation.runtimes.iter().zip(runtimes).map(|(it, value)| match &it.source {
                RuntimeSource::Table(_, position) => {
                    imap::Runtime::Element(access(value, position, &it.guard, b.int_type(32)))
                }
                RuntimeSource::Size(_) => imap::Runtime::Index(value),
            });
        let num_inputs = inputs.len();
        let inputs = operation.inputs.iter().zip(inputs);
        let inputs = inputs.map(|(it, value)| access(value, &it.position, &it.guard, element));
        let written = operation.scatter.clone().unwrap_or_default();
        let destinations = operation.outputs.iter().zip(inits);
        let destinations =
            destinations.map(|(it, value)| access(value, &it.position, &written, element));
        let outputs = operation.outputs.iter().enumerate();
        let mut accumulators: Vec<_> =
            outputs.filter_map(|(number, it)| self.accumulator(b, it.combiner, number)).collect();
        if operation.scan.is_some() {
            for accumulator in accumulators.iter_mut().filter(|it| it.destination().is_some()) {
                accumulator.start = Start::Identity;
            }
        }
        if let Some(monoid) = operation.monoid {
            let starts = operation.outputs.iter().enumerate().map(|(number, it)| {
                let from_outs = operation.scan.is_none() && ["add", "maxs"].contains(&it.combiner);
                if from_outs { Start::Destination(number) } else { Start::Identity }
            });
            let starts = starts.chain([Start::Identity]);
            let identities = monoid.identity(b, element).into_iter();
            let accumulator = |(identity, start)| {
                let (ty, kind, identity) = (element, CombinerKind::Custom, Some(identity));
                Accumulator { ty, kind, identity, start }
            };
            accumulators = identities.zip(starts).map(accumulator).collect();
        }
        let own_sum = operation.has_own_sum && operation.has_epilogue && operation.monoid.is_none();
        let wide = self.element.other(b);
        if own_sum {
            let (kind, start) = (CombinerKind::Add, Start::Identity);
            accumulators.push(Accumulator { ty: wide, kind, identity: None, start });
        }
        let view = View {
            domain,
            runtimes: runtimes.collect(),
            inputs: inputs.collect(),
            outputs: destinations.collect(),
            accumulators,
            ordered: operation.is_ordered,
            combiner: None,
        };
        let generic: AnyIndexed = match (operation.scan, &operation.scatter) {
            (Some(scan), _) => view.build_scan(ir, b, operation.has_epilogue, scan).into(),
            (None, Some(_)) => view.build_scatter(ir, b, ScatterPromises::default()).into(),
            (None, None) => view.build(ir, b, operation.has_epilogue).into(),
        };
        let inside = Builder::at_end(b.context, generic.body(), b.location);
        let arguments = mlir::arguments(generic.body());
        let mut values: Vec<_> = operation
            .outputs
            .iter()
            .map(|output| {
                let start = self.operand(&inside, output.first, &arguments);
                let tested = build_conditions(ir, &operation.tested[0]);
                self.steps(&inside, ir, start, &output.body, &arguments, &tested)
            })
            .collect();
        if own_sum {
            values.push(convert(&inside, values[0], wide));
        }
        if let Some(monoid) = operation.monoid {
            // Finite: 0 is not neutral for products with an infinity, which empty folds give.
            let other = || {
                let value = self.operand(&inside, operation.outputs[0].first, &arguments);
                let clamp = [Step { op: "clamp", with: Operand::Constant(0) }];
                self.steps(&inside, ir, value, &clamp, &arguments, &[])
            };
            let second = values.get(1).copied().unwrap_or_else(other);
            values = monoid.pair(&inside, values[0], second).to_vec();
        }
        imap::build_yield(&inside, &values);
        if let (Some(monoid), Some(block)) = (operation.monoid, generic.combiner()) {
            let inside = Builder::at_end(b.context, block, b.location);
            let values = monoid.combine(&inside, &mlir::arguments(block));
            imap::build_yield(&inside, &values);
        }
        if let Some(block) = generic.epilogue() {
            let inside = Builder::at_end(b.context, block, b.location);
            let arguments = mlir::arguments(block);
            let (folded, inputs) = arguments.split_at(arguments.len() - num_inputs);
            let mut folded = folded.to_vec();
            if own_sum {
                let ty = self.element.ty(b);
                let sum = convert(&inside, folded[operation.outputs.len()], ty);
                let name = if self.element.is_float() { "arith.addf" } else { "arith.addi" };
                folded[0] = inside.value(name, &[folded[0], sum], ty);
            }
            if operation.monoid.is_some() && operation.outputs.len() == 1 {
                folded[0] = CombinerKind::Add.build(&inside, folded[0], folded[1]);
            }
            let values: Vec<_> = operation
                .outputs
                .iter()
                .zip(folded)
                .map(|(output, folded)| {
                    let tested = build_conditions(ir, &operation.tested[1]);
                    self.steps(&inside, ir, folded, &output.epilogue, inputs, &tested)
                })
                .collect();
            imap::build_yield(&inside, &values);
        }
        mlir::results(generic.op())
    }

    fn accumulator<'c>(
        &self,
        b: &Builder<'c>,
        combiner: &str,
        output: usize,
    ) -> Option<Accumulator<'c>> {
        if combiner == "assign" {
            return None;
        }
        let (kind, start) = combiner.split_once(" from ").unwrap_or((combiner, ""));
        let is_float = self.element.is_float();
        let kind = match is_float {
            true => kind.replace("mins", "minf").replace("maxs", "maxf"),
            false => kind.to_string(),
        };
        let start = match start {
            "" => format!(" from outs {output}"),
            "identity" => String::new(),
            value if is_float => format!(" from {value}.0"),
            value => format!(" from {value}"),
        };
        let text = format!("#imap.acc<{kind} {}{start}>", self.element.ty(b));
        Accumulator::from_attribute(mlir::parse_attribute(b.context, &text))
    }

    fn operand<'c>(&self, b: &Builder<'c>, operand: Operand, inputs: &[Val<'c>]) -> Val<'c> {
        let ty = self.element.ty(b);
        match operand {
            Operand::Input(number) => inputs[number],
            Operand::Constant(value) if self.element.is_float() => b.float(ty, value.into()),
            Operand::Constant(value) => b.integer(ty, value.into()),
            Operand::Dim(number) => {
                let index = imap::build_index(b, "dim", number as u32);
                let wide = b.value("arith.index_cast", &[index], b.int_type(32));
                match self.element {
                    Element::I32 => wide,
                    Element::I8 => b.value("arith.trunci", &[wide], ty),
                    Element::F32 | Element::F64 => b.value("arith.sitofp", &[wide], ty),
                }
            }
        }
    }

    /// Applies steps to a value.
    fn steps<'c>(
        &self,
        b: &Builder<'c>,
        ir: &tc_ir::Context,
        start: Val<'c>,
        steps: &[Step],
        inputs: &[Val<'c>],
        tested: &[Constraint],
    ) -> Val<'c> {
        let ty = self.element.ty(b);
        let mut value = start;
        for step in steps {
            let other = self.operand(b, step.with, inputs);
            let float = self.element.is_float();
            value = match step.op {
                // The smaller one, by a comparison.
                "select" => {
                    let less = match float {
                        true => b.compare_float("olt", value, other),
                        false => b.compare_int("slt", value, other),
                    };
                    b.select(less, value, other)
                }
                "inside" => {
                    let inside = imap::build_inside(b, ir, tested);
                    b.select(inside, value, other)
                }
                // Keeps numbers small, so that sums of floats stay exact.
                "clamp" => {
                    let [low, high] = [-8, 8].map(|it| self.operand(b, Operand::Constant(it), &[]));
                    let names = match float {
                        true => ["arith.maximumf", "arith.minimumf"],
                        false => ["arith.maxsi", "arith.minsi"],
                    };
                    let above = b.value(names[0], &[value, low], ty);
                    b.value(names[1], &[above, high], ty)
                }
                "tanh" => {
                    let name = mlir::string(b.context, "tanh");
                    b.value_with("imap.builtin", &[value], ty, &[("name", name)])
                }
                op => b.value(
                    &format!("arith.{op}{}", if float { "f" } else { "i" }),
                    &[value, other],
                    ty,
                ),
            };
        }
        value
    }
}
