//! Random programs of `imap`.

use super::{
    program::{
        Argument, Condition, Element, Extent, Guard, Index, Init, Input, Monoid, Operand,
        Operation, Output, Program, Runtime, RuntimeSource, Source, Step, Var,
    },
    random::Random,
};

/// What a program contains, and how often; all must occur in a run.
pub const FEATURES: &[&str] = &[
    "a bound that a table gives",
    "a chain of tables",
    "a combiner region",
    "a condition in a body",
    "a condition in an epilogue",
    "a constant after else",
    "a constraint",
    "a destination in place",
    "a destination that is read later",
    "a dynamic size",
    "a fold",
    "a fold from the destination",
    "a fold of a fold",
    "a fraction",
    "a guard",
    "a guard on a runtime variable",
    "a guarded table",
    "a max",
    "a min",
    "a partly written destination",
    "a quotient",
    "a read twice",
    "a remainder",
    "a scan",
    "a scatter",
    "a scatter by a region",
    "a scatter that replaces",
    "a scatter through a table",
    "a start that is a constant",
    "a strided destination",
    "a table",
    "an accumulator without a destination",
    "an epilogue",
    "an extent of 0",
    "an extent of 1",
    "an ordered fold",
    "an ordered region",
    "several results",
];

/// The features of a program.
pub fn features(program: &Program) -> Vec<&'static str> {
    let text = format!("{program:?}");
    let mut found = Vec::new();
    let mut note = |holds: bool, name: &'static str| found.extend(holds.then_some(name));
    let operations = &program.operations;
    let outputs: Vec<_> = operations.iter().flat_map(|it| &it.outputs).collect();
    let is_table = |it: &&Runtime| matches!(it.source, RuntimeSource::Table(..));
    let tables: Vec<_> =
        operations.iter().flat_map(|it| it.runtimes.iter().filter(is_table)).collect();
    let chained = tables.iter().any(|it| match &it.source {
        RuntimeSource::Table(_, position) => format!("{position:?}").contains("Runtime"),
        RuntimeSource::Size(_) => false,
    });
    let table_bound = operations.iter().any(|it| {
        let bounds = format!("{:?}", it.ranges);
        let number = it.runtimes.iter().position(|it| is_table(&it));
        number.is_some_and(|number| bounds.contains(&format!("Runtime({number})")))
    });
    let read_later = operations.iter().enumerate().any(|(number, it)| {
        let inits = it.outputs.iter().filter_map(|output| match output.init {
            Init::Value(source @ Source::Result(..)) => Some(source),
            _ => None,
        });
        inits.into_iter().any(|source| {
            operations[number + 1..]
                .iter()
                .any(|it| it.inputs.iter().any(|read| read.source == source))
                || program.results.contains(&source)
        })
    });
    let extents: Vec<_> = outputs.iter().flat_map(|it| program.extents(&it.shape)).collect();
    note(table_bound, "a bound that a table gives");
    note(chained, "a chain of tables");
    let steps = || outputs.iter().flat_map(|it| it.body.iter().map(|step| (0, step)));
    let later = || outputs.iter().flat_map(|it| it.epilogue.iter().map(|step| (1, step)));
    let tests = |place| steps().chain(later()).any(|(at, it)| at == place && it.op == "inside");
    note(tests(0), "a condition in a body");
    note(tests(1), "a condition in an epilogue");
    let guards: Vec<_> = operations.iter().flat_map(|it| &it.inputs).map(|it| &it.guard).collect();
    let has_guard = |it: &Guard| !it.conditions.is_empty();
    note(guards.iter().any(|it| has_guard(it)), "a guard");
    note(guards.iter().any(|it| it.fill.is_some()), "a constant after else");
    let of_runtime = guards.iter().any(|it| format!("{:?}", it.conditions).contains("Runtime"));
    note(of_runtime, "a guard on a runtime variable");
    note(tables.iter().any(|it| has_guard(&it.guard)), "a guarded table");
    note(operations.iter().any(|it| !it.constraints.is_empty()), "a constraint");
    let in_place = |it: &Output| matches!(it.init, Init::Value(Source::Result(..)));
    note(outputs.iter().any(|it| in_place(it)), "a destination in place");
    note(read_later, "a destination that is read later");
    note(outputs.iter().any(|it| format!("{:?}", it.shape).contains("Size")), "a dynamic size");
    note(outputs.iter().any(|it| it.combiner != "assign"), "a fold");
    note(operations.iter().any(|it| it.scan.is_some()), "a scan");
    note(operations.iter().any(|it| it.monoid.is_some()), "a combiner region");
    note(operations.iter().any(|it| it.is_ordered), "an ordered fold");
    note(operations.iter().any(|it| it.monoid == Some(Monoid::Last)), "an ordered region");
    let scatters = || operations.iter().filter(|it| it.scatter.is_some());
    note(scatters().next().is_some(), "a scatter");
    note(scatters().any(|it| it.monoid.is_some()), "a scatter by a region");
    let replaces = |it: &Operation| it.outputs.iter().any(|it| it.combiner == "assign");
    note(scatters().any(replaces), "a scatter that replaces");
    let through_table = |it: &Operation| {
        let positions =
            format!("{:?}", it.outputs.iter().map(|it| &it.position).collect::<Vec<_>>());
        let mut runtimes = it.runtimes.iter().enumerate().filter(|(_, it)| is_table(it));
        runtimes.any(|(number, _)| positions.contains(&format!("Runtime({number})")))
    };
    note(scatters().any(through_table), "a scatter through a table");
    note(
        outputs.iter().any(|it| ["add", "maxs"].contains(&it.combiner)),
        "a fold from the destination",
    );
    let folds_again = |it: &Operation| {
        let is_plain = it.outputs.iter().all(|it| it.body.is_empty());
        is_plain && it.inputs.len() == 1 && !it.ranges.is_empty()
    };
    note(operations.iter().any(folds_again), "a fold of a fold");
    let values = program.arguments.iter().flat_map(|it| &it.values);
    note(values.into_iter().any(|it| it.fract() != 0.0), "a fraction");
    note(text.contains("Max("), "a max");
    note(text.contains("Min("), "a min");
    note(outputs.iter().any(|it| is_partial(program, it)), "a partly written destination");
    note(text.contains("FloorDiv("), "a quotient");
    note(
        operations.iter().any(|it| {
            it.inputs
                .iter()
                .enumerate()
                .any(|(at, read)| it.inputs[..at].iter().any(|it| it.source == read.source))
        }),
        "a read twice",
    );
    note(text.contains("Mod("), "a remainder");
    note(
        outputs.iter().any(|it| format!("{:?}", it.position).contains("Times")),
        "a strided destination",
    );
    note(!tables.is_empty(), "a table");
    note(operations.iter().any(|it| it.has_own_sum), "an accumulator without a destination");
    note(outputs.iter().any(|it| it.combiner.ends_with(['3', '5'])), "a start that is a constant");
    note(operations.iter().any(|it| it.has_epilogue), "an epilogue");
    note(extents.contains(&0), "an extent of 0");
    note(extents.contains(&1), "an extent of 1");
    note(program.results.len() > 1, "several results");
    found
}

fn is_partial(program: &Program, output: &Output) -> bool {
    let constant = output.position.iter().zip(program.extents(&output.shape));
    constant.into_iter().any(|(index, extent)| matches!(index, Index::Const(_)) && extent > 1)
}

/// A variable while an operation is made.
#[derive(Clone)]
struct Known {
    var: Var,
    values: Values,
}

/// What is known of the values of a variable.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Values {
    Between(i64, i64),
    /// From 0 to before a size.
    Below(usize),
    /// A size.
    Size(usize),
}

impl Known {
    fn between(&self) -> Option<(Var, i64, i64)> {
        match self.values {
            Values::Between(lo, hi) => Some((self.var, lo, hi)),
            _ => None,
        }
    }

    fn is_runtime(&self) -> bool {
        matches!(self.var, Var::Runtime(_))
    }
}

struct Generator {
    random: Random,
    program: Program,
    /// Whether elements are not all integers, so that sums are rounded.
    has_fractions: bool,
    /// Operations that another one has the points of. Both results are returned.
    twins: Vec<usize>,
}

/// A random program.
pub fn generate(seed: u64) -> Program {
    let mut random = Random::new(seed);
    let element = *random.pick(&[
        Element::I32,
        Element::I32,
        Element::F32,
        Element::F32,
        Element::I8,
        Element::F64,
    ]);
    let program = Program {
        element,
        sizes: Vec::new(),
        arguments: Vec::new(),
        operations: Vec::new(),
        results: Vec::new(),
    };
    let has_fractions = element.is_float() && random.chance(20);
    let mut it = Generator { random, program, has_fractions, twins: Vec::new() };
    for _ in 0..it.random.weighted(&[50, 35, 15]) {
        let size = it.random.pick(&[0, 1, 2, 3, 5, 9, 17]);
        let size = *size;
        it.program.sizes.push(size);
        let shape = vec![Extent::Size(it.program.sizes.len() - 1)];
        it.argument(shape);
    }
    // A few are so long that buffers are assigned without one-shot bufferization.
    let count =
        if it.random.chance(4) { it.random.between(33, 42) } else { it.random.between(1, 5) };
    for _ in 0..count {
        let twin = if it.random.chance(20) { it.twin() } else { None };
        let fold = if twin.is_none() && it.random.chance(12) { it.fold_of_fold() } else { None };
        let operation = twin.or(fold).unwrap_or_else(|| it.operation());
        it.program.operations.push(operation);
    }
    let last = it.program.operations.len() - 1;
    for number in 0..=last {
        for output in 0..it.program.operations[number].outputs.len() {
            let has_twin = it.twins.contains(&number);
            if number == last || has_twin || it.random.chance(if count > 5 { 90 } else { 10 }) {
                it.program.results.push(Source::Result(number, output));
            }
        }
    }
    it.program
}

fn constant(value: i64) -> Index {
    Index::Const(value)
}

fn boxed(var: Var) -> Box<Index> {
    Box::new(Index::Var(var))
}

impl Generator {
    fn argument(&mut self, shape: Vec<Extent>) -> Source {
        let count: i64 = self.program.extents(&shape).iter().product();
        let divisor = if self.has_fractions { 1000 } else { 1 };
        let values = (0..count)
            .map(|_| self.random.between(-7 * divisor, 7 * divisor) as f64 / divisor as f64)
            .collect();
        self.program.arguments.push(Argument { shape, values, is_table: false });
        Source::Argument(self.program.arguments.len() - 1)
    }

    /// An argument of indices.
    fn table(&mut self, shape: Vec<Extent>, lo: i64, hi: i64) -> usize {
        let count: i64 = self.program.extents(&shape).iter().product();
        let values = (0..count).map(|_| self.random.between(lo, hi) as f64).collect();
        self.program.arguments.push(Argument { shape, values, is_table: true });
        self.program.arguments.len() - 1
    }

    /// An operation on the points of the last one, with other values, which may read what that one writes at a point.
    /// `None` if that one has folds that cannot be told apart.
    fn twin(&mut self) -> Option<Operation> {
        let number = self.program.operations.len().checked_sub(1)?;
        let mut twin = self.program.operations[number].clone();
        let is_plain = twin.scan.is_none()
            && twin.scatter.is_none()
            && twin.monoid.is_none()
            && !twin.has_own_sum
            && !twin.outputs.iter().any(|it| matches!(it.combiner, "add" | "maxs"));
        if !is_plain {
            return None;
        }
        let is_fold = twin.outputs[0].combiner != "assign";
        let position = twin.outputs[0].position.clone();
        let added = Operand::Input(twin.inputs.len());
        let output = &mut twin.outputs[0];
        output.body.insert(0, Step { op: "add", with: Operand::Constant(3) });
        if (!is_fold || twin.has_epilogue) && self.random.chance(50) {
            let source = Source::Result(number, 0);
            twin.inputs.push(Input { source, position, guard: Guard::default() });
            let steps = if is_fold { &mut output.epilogue } else { &mut output.body };
            steps.insert(0, Step { op: "sub", with: added });
        }
        if is_fold {
            output.combiner = *self.random.pick(&["add from identity", "mins from identity"]);
        }
        self.twins.extend([number, number + 1]);
        Some(twin)
    }

    /// Adds a fold over some dimensions of a tensor to the program. Returns a second fold, with the same combiner, of the
    /// results of the first. `None` if the tensor has fewer than two dimensions.
    fn fold_of_fold(&mut self) -> Option<Operation> {
        let source = self.source();
        let rank = self.program.shape(source).len();
        if rank < 2 {
            return None;
        }
        let combiners = ["add from identity", "maxs from identity", "mins from identity"];
        let combiner = *self.random.pick(&combiners);
        let inner = self.plain_fold(source, combiner);
        self.program.operations.push(inner);
        Some(self.plain_fold(Source::Result(self.program.operations.len() - 1, 0), combiner))
    }

    /// A fold of a tensor over its last dimension and some of the others.
    fn plain_fold(&mut self, source: Source, combiner: &'static str) -> Operation {
        let extents = self.program.shape(source).to_vec();
        let rank = extents.len();
        let (mut dims, mut ranges, mut position) = (Vec::new(), Vec::new(), Vec::new());
        let (mut shape, mut target) = (Vec::new(), Vec::new());
        for (number, extent) in extents.into_iter().enumerate() {
            let upper = match extent {
                Extent::Fixed(extent) => constant(extent - 1),
                Extent::Size(size) => Index::Add(boxed(Var::Runtime(size)), Box::new(constant(-1))),
            };
            let is_kept = number + 1 < rank && self.random.chance(60);
            let (list, var) = match is_kept {
                true => (&mut dims, Var::Dim(shape.len())),
                false => (&mut ranges, Var::Range(position.len() - shape.len())),
            };
            list.push((constant(0), upper));
            position.push(Index::Var(var));
            if is_kept {
                shape.push(extent);
                target.push(Index::Var(var));
            }
        }
        if dims.is_empty() {
            dims.push((constant(0), constant(0)));
            shape.push(Extent::Fixed(1));
            target.push(constant(0));
        }
        let size = |size| {
            let (source, guard) = (RuntimeSource::Size(size), Guard::default());
            Runtime { source, bounds: (0, 1 << 31), guard }
        };
        Operation {
            scan: None,
            scatter: None,
            is_ordered: false,
            monoid: None,
            dims,
            ranges,
            runtimes: (0..self.program.sizes.len()).map(size).collect(),
            constraints: Vec::new(),
            inputs: vec![Input { source, position, guard: Guard::default() }],
            tested: [Vec::new(), Vec::new()],
            outputs: vec![Output {
                shape,
                init: Init::Empty,
                position: target,
                combiner,
                first: Operand::Input(0),
                body: Vec::new(),
                epilogue: Vec::new(),
            }],
            has_epilogue: false,
            has_own_sum: false,
        }
    }

    /// Something to read: an earlier result, most of the time.
    fn source(&mut self) -> Source {
        let results: Vec<_> = self
            .program
            .operations
            .iter()
            .enumerate()
            .flat_map(|(number, it)| {
                (0..it.outputs.len()).map(move |at| Source::Result(number, at))
            })
            .collect();
        if let Some(last) = results.last()
            && self.random.chance(60)
        {
            return *last;
        }
        if !results.is_empty() && self.random.chance(50) {
            return *self.random.pick(&results);
        }
        let tensors: Vec<_> = (0..self.program.arguments.len())
            .filter(|it| !self.program.arguments[*it].is_table)
            .map(Source::Argument)
            .collect();
        if !tensors.is_empty() && self.random.chance(40) {
            return *self.random.pick(&tensors);
        }
        let rank = self.random.between(0, 3);
        let shape = (0..rank).map(|_| self.extent()).collect();
        self.argument(shape)
    }

    fn extent(&mut self) -> Extent {
        if !self.program.sizes.is_empty() && self.random.chance(30) {
            return Extent::Size(self.random.below(self.program.sizes.len()));
        }
        Extent::Fixed(*self.random.pick(&[1, 2, 3, 4, 5, 8, 11]))
    }

    /// A subscript into a dimension, inside its extent at every point; `None` if there is none.
    fn subscript(&mut self, extent: Extent, preferred: usize, known: &[Known]) -> Option<Index> {
        let extent = match extent {
            // Only the variables below a size are known to be inside.
            Extent::Size(size) => {
                let below = known.iter().filter(|it| it.values == Values::Below(size));
                let below: Vec<_> = below.collect();
                if below.is_empty() {
                    return None;
                }
                let var = self.random.pick(&below).var;
                let size = known.iter().find(|it| it.values == Values::Size(size));
                return Some(match size {
                    // From the end.
                    Some(size) if self.random.chance(30) => {
                        let last = Index::Add(boxed(size.var), Box::new(constant(-1)));
                        Index::Sub(Box::new(last), boxed(var))
                    }
                    _ => Index::Var(var),
                });
            }
            Extent::Fixed(extent) => extent,
        };
        if extent == 0 {
            return None;
        }
        let usable: Vec<_> = known.iter().filter_map(Known::between).collect();
        for attempt in 0..4 {
            let Some(it) = usable
                .get(preferred)
                .filter(|_| attempt < 2)
                .or_else(|| (!usable.is_empty()).then(|| &usable[self.random.below(usable.len())]))
            else {
                break;
            };
            let (var, lo, hi) = *it;
            let by = self.random.between(2, 3);
            let shift = self.random.between(0, 1) - lo;
            let shifted = || Box::new(Index::Add(boxed(var), Box::new(constant(shift))));
            let kind = self.random.weighted(&[8, 2, 2, 2, 1, 2, 1]);
            let (index, lo, hi) = match kind {
                0 => (*shifted(), lo + shift, hi + shift),
                1 => (Index::Sub(Box::new(constant(hi)), boxed(var)), 0, hi - lo),
                2 => (Index::FloorDiv(shifted(), by), 0, (hi + shift) / by),
                3 => (Index::Mod(shifted(), by), 0, by - 1),
                4 => (Index::Times(shifted(), by), (lo + shift) * by, (hi + shift) * by),
                5 => {
                    let (other, least, most) = usable[self.random.below(usable.len())];
                    let sum = Index::Add(shifted(), boxed(other));
                    (sum, lo + shift + least, hi + shift + most)
                }
                // Clamped into the dimension, whatever it is.
                _ => {
                    let low = Index::Max(boxed(var), Box::new(constant(0)));
                    (Index::Min(Box::new(low), Box::new(constant(extent - 1))), 0, extent - 1)
                }
            };
            if 0 <= lo && hi < extent {
                return Some(index);
            }
        }
        Some(constant(self.random.below(extent as usize) as i64))
    }

    fn operation(&mut self) -> Operation {
        let mut known: Vec<Known> = Vec::new();
        let mut runtimes = Vec::new();
        // The sizes come first, as runtime variables of the same numbers.
        for size in 0..self.program.sizes.len() {
            let (source, guard) = (RuntimeSource::Size(size), Guard::default());
            runtimes.push(Runtime { source, bounds: (0, 1 << 31), guard });
            known.push(Known { var: Var::Runtime(size), values: Values::Size(size) });
        }
        // Many operations run over an earlier tensor, which they read at the current point.
        let last = self.program.operations.len().checked_sub(1).map(|it| Source::Result(it, 0));
        let followed = match last {
            Some(last) if self.random.chance(70) => Some(last),
            _ => Some(self.source()),
        };
        let followed = followed.filter(|_| self.random.chance(60));
        let followed = followed.filter(|it| !self.program.shape(*it).is_empty());
        let shape = followed.map(|it| self.program.shape(it).to_vec());
        let num_dims = shape.as_ref().map_or(self.random.between(1, 3) as usize, Vec::len);
        let mut dims = Vec::new();
        for number in 0..num_dims {
            let var = Var::Dim(number);
            let extent = shape.as_ref().map_or_else(|| self.extent(), |it| it[number]);
            if let (Extent::Fixed(extent), Some(_)) = (extent, &shape) {
                dims.push((constant(0), constant(extent - 1)));
                known.push(Known { var, values: Values::Between(0, extent - 1) });
            } else if let Extent::Size(size) = extent {
                let last = Index::Add(boxed(Var::Runtime(size)), Box::new(constant(-1)));
                dims.push((constant(0), last));
                known.push(Known { var, values: Values::Below(size) });
            } else {
                let lo = self.random.between(0, 1) * self.random.between(-1, 2);
                let hi = lo - 1 + *self.random.pick(&[0, 1, 1, 2, 3, 4, 5, 8, 9]);
                dims.push((constant(lo), constant(hi)));
                known.push(Known { var, values: Values::Between(lo, hi) });
            }
        }
        self.tables(&mut runtimes, &mut known);
        let is_fold = self.random.chance(45);
        let is_scatter = self.random.chance(15);
        let mut ranges = Vec::new();
        for number in
            0..if is_fold && !is_scatter { self.random.weighted(&[20, 62, 18]) } else { 0 }
        {
            let var = Var::Range(number);
            let hi = self.random.between(0, 4);
            let table =
                runtimes.iter().position(|it| matches!(it.source, RuntimeSource::Table(..)));
            let upper = match table {
                // As many as an element of a table says.
                Some(table) if self.random.chance(50) => {
                    Index::Min(boxed(Var::Runtime(table)), Box::new(constant(hi)))
                }
                _ => constant(hi),
            };
            ranges.push((constant(0), upper));
            known.push(Known { var, values: Values::Between(0, hi) });
        }
        let is_scan = is_fold && !is_scatter && ranges.is_empty() && self.random.chance(60);
        let scan = is_scan.then(|| (self.random.below(num_dims) as u32, self.random.chance(30)));
        let points = known.iter().filter(|it| !it.is_runtime()).filter_map(Known::between);
        let points: Vec<_> = points.collect();
        let mut constraints = Vec::new();
        if !points.is_empty() && self.random.chance(30) {
            let (twice, lo, hi) = *self.random.pick(&points);
            let (other, least, most) = *self.random.pick(&points);
            let sum = Index::Add(Box::new(Index::Times(boxed(twice), 2)), boxed(other));
            let (low, high) = (2 * lo + least, 2 * hi + most);
            let lo = low + self.random.between(0, 2);
            constraints.push((sum, lo, high.max(lo)));
        }

        let order: Vec<_> =
            known.iter().filter(|it| !matches!(it.var, Var::Runtime(_))).cloned().collect();
        let mut usable = order.clone();
        usable.extend(known.iter().filter(|it| matches!(it.var, Var::Runtime(_))).cloned());
        let here = |source| Input {
            source,
            position: (0..num_dims).map(|it| Index::Var(Var::Dim(it))).collect(),
            guard: Guard::default(),
        };
        let mut inputs: Vec<Input> = followed.map(here).into_iter().collect();
        for _ in 0..self.random.between(1, 3) {
            let source = match inputs.first() {
                Some(first) if self.random.chance(25) => first.source,
                _ => self.source(),
            };
            let shape = self.program.shape(source).to_vec();
            let is_guarded = self.random.chance(30);
            let mut guard = Guard::default();
            let position: Option<Vec<_>> = shape
                .iter()
                .enumerate()
                .map(|(dim, extent)| match is_guarded && self.random.chance(70) {
                    true => Some(self.guarded(*extent, &usable, &mut guard.conditions)),
                    false => self.subscript(*extent, dim, &usable),
                })
                .collect();
            if is_guarded && self.random.chance(20) {
                guard.conditions.extend(self.condition(&usable));
            }
            if !guard.conditions.is_empty() && self.random.chance(60) {
                guard.fill = Some(self.random.between(-5, 5) as i8);
            }
            inputs.extend(position.map(|position| Input { source, position, guard }));
        }
        let dims_alone: Vec<_> =
            order.iter().filter(|it| matches!(it.var, Var::Dim(_))).cloned().collect();
        let tested = [&usable, &dims_alone].map(|known| {
            let count = self.random.between(1, 2);
            (0..count).filter_map(|_| self.condition(known)).collect::<Vec<_>>()
        });
        let num_outputs = self.random.weighted(&[0, 75, 25]);
        let can_combine = is_fold && (!is_scatter || num_outputs == 2);
        let is_ordered = is_fold && !is_scatter && scan.is_none() && self.random.chance(15);
        let monoid =
            (can_combine && self.random.chance(if is_scatter { 50 } else { 25 })).then(|| {
                match is_ordered {
                    true => Monoid::Last,
                    false => *self.random.pick(&Monoid::COMMUTATIVE),
                }
            });
        let must_finish = monoid.is_some() && num_outputs == 1;
        let has_epilogue = is_fold && !is_scatter && (must_finish || self.random.chance(40));
        let mut scatter = is_scatter.then(Guard::default);
        let dims_known: Vec<_> =
            order.iter().filter(|it| matches!(it.var, Var::Dim(_))).cloned().collect();
        let mut outputs: Vec<Output> = Vec::new();
        for _ in 0..num_outputs {
            let is_sparse = !is_fold && !constraints.is_empty();
            let mut output = self.output(&dims_known, is_fold, is_sparse, inputs.len(), &outputs);
            if let Some(guard) = &mut scatter {
                self.address(&mut output, &usable, &mut guard.conditions, &outputs);
            }
            if !tested[0].is_empty() && self.random.chance(20) {
                let with = self.operand(&dims_known, inputs.len());
                output.body.insert(0, Step { op: "inside", with });
            }
            // Finite: 0 is not neutral for products with an infinity, which empty folds give.
            if monoid == Some(Monoid::Matrices)
                && matches!(output.init, Init::Value(Source::Result(..)))
            {
                output.init = Init::Value(self.argument(output.shape.clone()));
            }
            outputs.push(output);
        }
        // An epilogue reads inputs whose maps depend on dimensions only.
        if has_epilogue {
            let readable: Vec<_> = (0..inputs.len())
                .filter(|it| {
                    let text = format!("{:?}", inputs[*it]);
                    !text.contains("Range") && !text.contains("Runtime") && constraints.is_empty()
                })
                .collect();
            for output in &mut outputs {
                let with = match readable.first() {
                    Some(input) => Operand::Input(*input),
                    None => Operand::Constant(3),
                };
                let ops = ["add", "sub", "select", "inside"];
                let op = *self.random.pick(&ops[..if tested[1].is_empty() { 3 } else { 4 }]);
                output.epilogue =
                    vec![Step { op, with }, Step { op: "clamp", with: Operand::Constant(0) }];
            }
        }
        let has_own_sum = has_epilogue && monoid.is_none() && self.random.chance(40);
        Operation {
            scan,
            scatter,
            is_ordered,
            monoid,
            dims,
            ranges,
            runtimes,
            constraints,
            inputs,
            tested,
            outputs,
            has_epilogue,
            has_own_sum,
        }
    }

    /// Makes the destination of a scatter of an output: of another shape, addressed by anything. Where a
    /// condition fails, there is no update.
    fn address(
        &mut self,
        output: &mut Output,
        known: &[Known],
        conditions: &mut Vec<Condition>,
        others: &[Output],
    ) {
        let (mut shape, mut position) = (Vec::new(), Vec::new());
        for dim in 0..self.random.between(1, 3) as usize {
            let extent = self.extent();
            let index = match self.random.chance(50) {
                true => self.guarded(extent, known, conditions),
                false => match self.subscript(extent, dim, known) {
                    Some(index) => index,
                    None => self.guarded(extent, known, conditions),
                },
            };
            shape.push(extent);
            position.push(index);
        }
        if output.combiner != "assign" {
            output.combiner = *self.random.pick(&["add", "maxs"]);
        }
        output.init = self.init(&shape, true, output.combiner, others);
        (output.shape, output.position) = (shape, position);
    }

    /// A subscript that may be outside of a dimension, and the conditions under which it is not.
    fn guarded(
        &mut self,
        extent: Extent,
        known: &[Known],
        conditions: &mut Vec<Condition>,
    ) -> Index {
        let var = self.random.pick(known).var;
        let shift = Box::new(constant(self.random.between(-3, 3)));
        let index = match self.random.weighted(&[6, 2, 1]) {
            0 => Index::Add(boxed(var), shift),
            1 => Index::Sub(shift, boxed(var)),
            _ => Index::Add(Box::new(Index::Times(boxed(var), 2)), shift),
        };
        match extent {
            Extent::Fixed(extent) => conditions.push((index.clone(), 0, extent - 1)),
            Extent::Size(size) => {
                let size = Index::Var(Var::Runtime(size));
                conditions.push((index.clone(), 0, i64::MAX));
                let left = Index::Sub(Box::new(size), Box::new(index.clone()));
                conditions.push((left, 1, i64::MAX));
            }
        }
        index
    }

    /// A condition that holds at some points.
    fn condition(&mut self, known: &[Known]) -> Option<Condition> {
        let known: Vec<_> = known.iter().filter_map(Known::between).collect();
        if known.is_empty() {
            return None;
        }
        let (var, lo, hi) = *self.random.pick(&known);
        let (other, least, most) = *self.random.pick(&known);
        let expr = Index::Sub(boxed(var), Box::new(Index::FloorDiv(boxed(other), 2)));
        let (lo, hi) = (lo - most.div_euclid(2), hi - least.div_euclid(2));
        let first = lo + self.random.between(-1, 2);
        let last = if self.random.chance(30) { i64::MAX } else { hi - self.random.between(-1, 1) };
        Some((expr, first, last.max(first)))
    }

    /// Runtime variables from tables: by a dimension, or by another one of them.
    fn tables(&mut self, runtimes: &mut Vec<Runtime>, known: &mut Vec<Known>) {
        if !self.random.chance(35) {
            return;
        }
        let dims = known.iter().filter(|it| matches!(it.var, Var::Dim(_)));
        let mut positions: Vec<(Extent, Index)> = dims
            .filter_map(|it| match it.values {
                Values::Below(size) => Some((Extent::Size(size), Index::Var(it.var))),
                Values::Between(lo, hi) => {
                    let index = Index::Add(boxed(it.var), Box::new(constant(-lo)));
                    Some((Extent::Fixed((hi - lo + 1).max(1)), index))
                }
                Values::Size(_) => None,
            })
            .collect();
        for _ in 0..self.random.between(1, 2) {
            let (extent, mut index) = self.random.pick(&positions).clone();
            let hi = self.random.between(0, 4);
            let table = self.table(vec![extent], 0, hi);
            let var = Var::Runtime(runtimes.len());
            let mut guard = Guard::default();
            if self.random.chance(30) {
                index = self.guarded(extent, known, &mut guard.conditions);
                guard.fill = self.random.chance(60).then(|| self.random.between(0, hi) as i8);
            }
            let source = RuntimeSource::Table(table, vec![index]);
            runtimes.push(Runtime { source, bounds: (0, hi), guard });
            known.push(Known { var, values: Values::Between(0, hi) });
            // The next one is likely read at this one.
            let chained = (Extent::Fixed(hi + 1), Index::Var(var));
            positions.extend([chained.clone(), chained]);
        }
    }

    fn output(
        &mut self,
        dims: &[Known],
        is_fold: bool,
        is_sparse: bool,
        num_inputs: usize,
        others: &[Output],
    ) -> Output {
        let mut order = dims.to_vec();
        if self.random.chance(30) {
            order.reverse();
        }
        // A dimension of one value need not be written.
        order.retain(|it| {
            let is_one = matches!(it.values, Values::Between(lo, hi) if lo == hi);
            !is_one || self.random.chance(50)
        });
        let is_partial = self.random.chance(20);
        let (mut shape, mut position) = (Vec::new(), Vec::new());
        for it in &order {
            let (lo, hi) = match it.values {
                Values::Between(lo, hi) => (lo, hi),
                Values::Below(size) | Values::Size(size) => {
                    shape.push(Extent::Size(size));
                    position.push(Index::Var(it.var));
                    continue;
                }
            };
            let more = if is_partial { self.random.between(0, 2) } else { 0 };
            let first = self.random.between(0, more) - lo;
            let stride = if self.random.chance(12) { 2 } else { 1 };
            let count = hi - lo + 1;
            shape.push(Extent::Fixed(((count - 1).max(0) * stride + count.min(1)).max(0) + more));
            let shifted = Index::Add(boxed(it.var), Box::new(constant(first)));
            position.push(match stride {
                // From its first value on, so that the extent holds all of them.
                2 => Index::Times(Box::new(Index::Add(boxed(it.var), Box::new(constant(-lo)))), 2),
                _ => shifted,
            });
        }
        if order.is_empty() || self.random.chance(20) {
            let extent = if is_partial { 2 } else { 1 };
            let at = self.random.below(shape.len() + 1);
            shape.insert(at, Extent::Fixed(extent));
            position.insert(at, constant(self.random.below(extent as usize) as i64));
        }
        let combiner = match is_fold {
            false => "assign",
            true => *self.random.pick(&[
                "add from identity",
                "add from 3",
                "maxs from identity",
                "maxs from -5",
                "mins from identity",
                "add",
                "maxs",
            ]),
        };
        let is_sparse =
            is_sparse || is_partial || position.iter().any(|it| matches!(it, Index::Times(..)));
        let init = self.init(&shape, is_sparse, combiner, others);
        let first = self.operand(dims, num_inputs);
        let mut body = Vec::new();
        for _ in 0..self.random.between(0, 3) {
            let ops = ["add", "sub", "mul", "select", "add", "tanh"];
            let op = *self.random.pick(&ops[..if self.has_fractions { 6 } else { 5 }]);
            body.push(Step { op, with: self.operand(dims, num_inputs) });
        }
        body.push(Step { op: "clamp", with: Operand::Constant(0) });
        Output { shape, init, position, combiner, first, body, epilogue: Vec::new() }
    }

    fn operand(&mut self, dims: &[Known], num_inputs: usize) -> Operand {
        match self.random.weighted(&[if num_inputs == 0 { 0 } else { 8 }, 2, 1]) {
            0 => Operand::Input(self.random.below(num_inputs)),
            1 => Operand::Constant(self.random.between(-3, 3) as i8),
            _ => Operand::Dim(self.random.below(dims.len())),
        }
    }

    /// An earlier result of the same extents, an argument, or nothing.
    fn init(
        &mut self,
        shape: &[Extent],
        is_sparse: bool,
        combiner: &str,
        others: &[Output],
    ) -> Init {
        let same: Vec<_> = self
            .program
            .operations
            .iter()
            .enumerate()
            .flat_map(|(number, it)| {
                (0..it.outputs.len()).map(move |at| Source::Result(number, at))
            })
            .filter(|source| self.program.shape(*source) == shape)
            .filter(|source| {
                let is_taken =
                    |it: &Output| matches!(it.init, Init::Value(init) if init == *source);
                !others.iter().any(is_taken)
            })
            .collect();
        if !same.is_empty() && self.random.chance(60) {
            return Init::Value(*self.random.pick(&same));
        }
        let is_read = matches!(combiner, "add" | "maxs");
        // Elements that nothing writes are undefined otherwise.
        if is_read || self.random.chance(if is_sparse { 75 } else { 35 }) {
            return Init::Value(self.argument(shape.to_vec()));
        }
        Init::Empty
    }
}
