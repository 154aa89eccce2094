//! `tc-infer-ranges`: infer the domain of every comprehension.
//!
//! This pass runs the algorithm of [`tc_dialects::tc::ranges`] on the statements of each `tc.def`, in
//! order. A tensor that an earlier statement defined has the extents and the origin inferred there.
//!
//! Before:
//!
//! ```mlir
//! %C = tc.comprehension "C"["m", "n"] reduce ["r_k"] <add from identity> { .. }
//! ```
//!
//! After, in a function with the size variables M, K and N:
//!
//! ```mlir
//! %C = tc.comprehension "C"["m", "n"] reduce ["r_k"] <add from identity>
//!     domain <(m, n)[r_k]{M, K, N} -> (m, n), domain: m in [0, M - 1], n in [0, N - 1],
//!             r_k in [0, K - 1], M in [1, 2147483647], ..> { .. }
//! ```
//!
//! The pass marks reads that are in bounds for all sizes with `in_bounds`. A read that is out of bounds
//! for all sizes is an error. Each other unproven read is a warning with the exact condition. The
//! attribute `preconditions` of the function keeps it: an array of dictionaries with `text`, `access`,
//! the flags `data` and `guarded`, and, for a condition over sizes alone, `condition`, a map with that
//! constraint.
//!
//! Options: `explain=true` prints the rounds to the standard output; `record-rounds=true` sets the
//! attribute `rounds` on each comprehension, the names that each round resolved. Remarks: the numbers of
//! variables, rounds, proven accesses and unproven accesses per function.

use crate::analysis::index_reader::{IndexReader, Leaves, element_read};
use melior::ir::{
    Attribute, Identifier, Location, ValueLike, attribute::DictionaryAttribute,
    operation::OperationLike,
};
use std::collections::{BTreeSet, HashMap};
use tc_dialects::{
    imap::{self, MAX_EXTENT, map},
    mlir::{self, Op, Val},
    pass::{Failure, Options, PassInfo, PassOption, PassRun},
    report::{RemarkKind, Report, remark},
    tc::{
        Comprehension, Def, Size,
        ranges::{
            self, Access, DeclaredRange, IndexVar, Inference, Kind, Precondition, Scope, Statement,
            Value,
        },
    },
    text::Severity,
};
use tc_ir::{
    Context,
    expr::{Expr, Var},
    interval::Interval,
    map::{IndexingMap, Variable},
    polynomial,
    prove::{Prover, Verdict},
    solve,
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "tc-infer-ranges",
    summary: "Infer the ranges of the index variables of comprehensions",
    anchor: "builtin.module",
    options: &[
        PassOption {
            name: "explain",
            description: "Print the rounds of the inference",
            default: "false",
        },
        PassOption {
            name: "record-rounds",
            description: "Record the names that each round resolved in the attribute 'rounds'",
            default: "false",
        },
    ],
    dependent_dialects: &["imap", "tc"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    let mut result = Ok(());
    for def in mlir::ops(block).into_iter().filter_map(Def::cast) {
        pass.enter(def.op());
        result = result.and(infer_def(def, &pass.options));
    }
    result
}

/// What is known of a tensor: the closed bounds of each dimension, over the sizes, and
/// where it got them.
#[derive(Clone)]
struct TensorInfo<'c> {
    name: &'c str,
    bounds: Vec<(Expr, Expr)>,
    declared_at: Location<'c>,
}

/// Counts for the remark.
#[derive(Default)]
struct Counts {
    variables: usize,
    rounds: usize,
    proven: usize,
    left: usize,
}

struct Engine<'c, 'i> {
    ir: &'i Context,
    def: Def<'c>,
    sizes: Vec<&'c str>,
    tensors: HashMap<usize, TensorInfo<'c>>,
    preconditions: Vec<Attribute<'c>>,
    counts: Counts,
    record_rounds: bool,
}

fn infer_def(def: Def, options: &Options) -> Result<(), Failure> {
    let ir = Context::new();
    let sizes: Vec<_> = def.sizes().into_iter().map(|(name, ..)| name).collect();
    let mut engine = Engine {
        ir: &ir,
        def,
        sizes,
        tensors: HashMap::new(),
        preconditions: Vec::new(),
        counts: Counts::default(),
        record_rounds: options.flag("record-rounds"),
    };
    engine.add_inputs();
    let mut outer = IndexReader::new(&ir, &engine.sizes);
    let mut text = format!("def {}\n", def.name());
    let mut result = Ok(());
    for op in mlir::ops(def.body()) {
        if let Some(statement) = Comprehension::cast(op) {
            result = result.and(engine.infer_statement(statement, &outer, &mut text));
        } else {
            outer.visit(op, &mut OuterLeaves { engine: &engine });
        }
        if result.is_err() {
            break;
        }
    }
    if options.flag("explain") {
        print!("{text}");
    }
    result?;
    engine.check_annotations()?;
    engine.check_contents()?;
    if !engine.preconditions.is_empty() {
        let preconditions = mlir::array(mlir::context_of(def.op()), &engine.preconditions);
        mlir::set_attribute(def.op(), "preconditions", preconditions);
    }
    engine.set_result_shapes();
    let counts = &engine.counts;
    let texts = [counts.variables, counts.rounds, counts.proven, counts.left];
    let texts = texts.map(|count| count.to_string());
    remark(
        def.op().location(),
        RemarkKind::Analysis,
        PASS.argument,
        "ranges",
        def.name(),
        &[
            ("Variables", &texts[0]),
            ("Rounds", &texts[1]),
            ("ProvenAccesses", &texts[2]),
            ("Preconditions", &texts[3]),
        ],
    );
    Ok(())
}

/// What a statement defines, for a reader: `C(m, n), reduced over r_k`.
fn heading(statement: Comprehension) -> String {
    let mut text = statement.left_text();
    if !statement.reduction_vars().is_empty() {
        text += &format!(", reduced over {}", statement.reduction_vars().join(", "));
    }
    text
}

/// Outside of statements, what is not computed from sizes has no expression.
struct OuterLeaves<'a, 'c, 'i> {
    engine: &'a Engine<'c, 'i>,
}

impl<'c> Leaves<'c> for OuterLeaves<'_, 'c, '_> {
    fn leaf(&mut self, _: &IndexReader<'c, '_>, _: Val<'c>) -> Option<Expr> {
        None
    }

    fn extent(&mut self, tensor: Val<'c>, dim: usize) -> Option<Expr> {
        self.engine.extent_of(tensor, dim)
    }
}

/// Index values that the algebra does not follow become data values of the scope.
struct ScopeLeaves<'a, 'c, 'i> {
    engine: &'a Engine<'c, 'i>,
    scope: &'a mut Scope,
}

impl<'c> Leaves<'c> for ScopeLeaves<'_, 'c, '_> {
    fn leaf(&mut self, exprs: &IndexReader<'c, '_>, value: Val<'c>) -> Option<Expr> {
        let read = element_read(value);
        let (text, interval) = match read {
            Some((read, unsigned)) => {
                let text = mlir::string_attr(read, "text").unwrap_or("an element").to_string();
                let ty = mlir::element_type(mlir::operand(read, 0).r#type());
                (text, imap::element_interval(ty, unsigned || mlir::is_unsigned(ty)))
            }
            None => ("a computed index".to_string(), Interval::ALL),
        };
        let depends_on = dependences(exprs, value);
        self.scope.values.push(Value::Data { text, interval, depends_on });
        Some(exprs.ir.runtime(self.scope.values.len() as u32 - 1))
    }

    fn extent(&mut self, tensor: Val<'c>, dim: usize) -> Option<Expr> {
        self.engine.extent_of(tensor, dim)
    }
}

/// The index variables with which a value may change.
fn dependences<'c>(exprs: &IndexReader<'c, '_>, value: Val<'c>) -> BTreeSet<Var> {
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut stack = vec![value];
    while let Some(value) = stack.pop() {
        if !seen.insert(mlir::value_key(value)) {
            continue;
        }
        if let Some(expr) = exprs.get(value) {
            let vars = exprs.ir.vars(expr);
            found.extend(vars.into_iter().filter(|var| !matches!(var, Var::Runtime(_))));
        }
        let Some(op) = mlir::defining_op(value) else { continue };
        if Comprehension::cast(op).is_some() {
            continue;
        }
        mlir::walk(op, &mut |inner| stack.extend(mlir::operands(inner)));
    }
    found
}

impl<'c, 'i> Engine<'c, 'i> {
    fn add_inputs(&mut self) {
        for parameter in self.def.parameters() {
            if parameter.inout {
                continue;
            }
            let bounds = parameter.sizes.iter().map(|size| {
                let size = self.size_expr(size).expect("a size of an input is in its own list");
                (self.ir.constant(0), self.ir.sub(size, self.ir.constant(1)))
            });
            let info = TensorInfo {
                name: parameter.name,
                bounds: bounds.collect(),
                declared_at: parameter.value.location(),
            };
            self.tensors.insert(mlir::value_key(parameter.value), info);
        }
    }

    fn size_expr(&self, size: &Size<'c>) -> Option<Expr> {
        match size {
            Size::Constant(extent) => Some(self.ir.constant(*extent)),
            Size::Variable(name) => {
                let number = self.sizes.iter().position(|known| known == name)?;
                Some(self.ir.runtime(number as u32))
            }
        }
    }

    /// A prover that knows the sizes.
    fn prover(&self) -> Prover<'i> {
        let mut prover = Prover::new(self.ir);
        for number in 0..self.sizes.len() {
            let (lower, upper) = (self.ir.constant(1), self.ir.constant(MAX_EXTENT));
            prover.bound(Var::Runtime(number as u32), Some(lower), Some(upper));
        }
        prover
    }

    fn extent_of(&self, tensor: Val<'c>, dim: usize) -> Option<Expr> {
        let (lower, upper) = *self.tensors.get(&mlir::value_key(tensor))?.bounds.get(dim)?;
        Some(self.extent(lower, upper))
    }

    fn extent(&self, lower: Expr, upper: Expr) -> Expr {
        let extent = self.ir.add(self.ir.sub(upper, lower), self.ir.constant(1));
        solve::simplified(&self.prover(), extent).unwrap_or(extent)
    }

    fn infer_statement(
        &mut self,
        statement: Comprehension<'c>,
        outer: &IndexReader<'c, '_>,
        text: &mut String,
    ) -> Result<(), Failure> {
        let mut scope = Scope {
            values: self.sizes.iter().map(|it| Value::Size { name: it.to_string() }).collect(),
        };
        let mut locations: Vec<Location<'c>> = vec![statement.op().location()];
        let mut reads: Vec<Op<'c>> = Vec::new();
        let mut input = self.index_vars(statement, &mut locations);
        for (variable, lower, upper) in statement.bounds() {
            let (Some(lower), Some(upper)) = (outer.get(lower), outer.get(upper)) else {
                let message = format!(
                    "cannot follow the range of '{}': expected sizes and numbers, combined by + - * \
                     min max, or divided by what is positive for all sizes [{}]",
                    input.index_vars[variable].name,
                    Kind::UnknownRange.code()
                );
                Report::at(statement.op().location(), Severity::Error, message).emit();
                return Err(Failure);
            };
            let upper = self.ir.sub(upper, self.ir.constant(1));
            input.declared.push(DeclaredRange { index_var: variable, lower, upper });
        }
        for dim in statement.addressed() {
            if input.declared.iter().any(|it| it.index_var == dim) {
                continue;
            }
            let Some((lower, upper)) = self.known_bounds(statement, dim) else {
                let message = format!(
                    "nothing gives the extent of dimension {dim} of '{}', whose index is computed [{}]",
                    statement.target(),
                    Kind::UnknownExtent.code()
                );
                Report::at(locations[input.index_vars[dim].location], Severity::Error, message)
                    .note(
                        None,
                        "try a name for the index and a range, such as 'where x = .., x in 0:N', or a \
                         type of the output",
                    )
                    .emit();
                return Err(Failure);
            };
            input.declared.push(DeclaredRange { index_var: dim, lower, upper });
        }
        let mut exprs = IndexReader::nested(outer);
        for (block, from_exists) in [(Some(statement.body()), false), (statement.exists(), true)] {
            let Some(block) = block else { continue };
            exprs.enter(statement, block);
            let mut leaves = ScopeLeaves { engine: self, scope: &mut scope };
            exprs.visit_block(block, &mut leaves);
            for top in mlir::ops(block) {
                mlir::walk(top, &mut |op| {
                    if mlir::is(op, "tc.read") {
                        input.accesses.extend(self.access(
                            op,
                            op != top,
                            from_exists,
                            &exprs,
                            &mut locations,
                        ));
                        reads.push(op);
                    }
                });
            }
        }
        let addresses: Option<Vec<_>> =
            statement.addresses().into_iter().map(|value| exprs.get(value)).collect();
        let Some(addresses) = addresses.filter(|_| input.accesses.len() == reads.len()) else {
            Report::op_error(
                statement.op(),
                "reads a tensor that is no input or earlier result, or at an index that is \
                 computed outside of it",
            )
            .emit();
            return Err(Failure);
        };
        let inference = ranges::infer(self.ir, &scope, &input);
        *text += &format!("\n{}\n", heading(statement));
        *text += &ranges::explain(self.ir, &scope, &input, &inference);
        emit_diagnostics(&inference, &locations);
        let Some(resolved) = inference.resolved() else { return Err(Failure) };
        self.counts.variables += resolved.len();
        self.counts.rounds += inference.rounds.len();
        if self.record_rounds {
            let context = mlir::context_of(statement.op());
            let rounds = inference.rounds.iter().map(|names| mlir::strings(context, names));
            let rounds = mlir::array(context, &rounds.collect::<Vec<_>>());
            mlir::set_attribute(statement.op(), "rounds", rounds);
        }
        self.mark_reads(&reads, &inference);
        for precondition in &inference.preconditions {
            let access = &input.accesses[precondition.access];
            self.add_precondition(precondition, &access.text);
        }
        self.check_update(statement, &scope, &input, (&resolved, &addresses), &locations)?;
        self.set_domain(statement, &input, &resolved);
        Ok(())
    }

    /// The bounds of a dimension that something else than the statement gives: the value that it reduces
    /// into, the type of the output, or an earlier value.
    fn known_bounds(&self, statement: Comprehension<'c>, dim: usize) -> Option<(Expr, Expr)> {
        let rank = statement.index_vars().len();
        let of_value = |value: Val<'c>| {
            let bounds = &self.tensors.get(&mlir::value_key(value))?.bounds;
            if bounds.len() == rank { Some(bounds[dim]) } else { None }
        };
        let of_type = || {
            let outputs = self.def.outputs();
            let number = outputs.iter().position(|name| *name == statement.target())?;
            let size = self.size_expr(self.def.output_sizes(number).get(dim)?)?;
            Some((self.ir.constant(0), self.ir.sub(size, self.ir.constant(1))))
        };
        let of_earlier = || {
            let statements = self.def.comprehensions().into_iter();
            let earlier = statements.take_while(|it| it.op() != statement.op());
            of_value(earlier.filter(|it| it.target() == statement.target()).last()?.result())
        };
        statement.outs().and_then(of_value).or_else(of_type).or_else(of_earlier)
    }

    fn index_vars(
        &self,
        statement: Comprehension<'c>,
        locations: &mut Vec<Location<'c>>,
    ) -> Statement {
        let names = statement.index_vars();
        let rank = names.len();
        let names = names.into_iter().chain(statement.reduction_vars());
        let index_vars = names
            .zip(mlir::arguments(statement.body()))
            .enumerate()
            .map(|(number, (name, argument))| {
                locations.push(argument.location());
                IndexVar {
                    name: name.to_string(),
                    var: match number.checked_sub(rank) {
                        None => Var::Dim(number as u32),
                        Some(number) => Var::Range(number as u32),
                    },
                    location: locations.len() - 1,
                }
            })
            .collect();
        Statement { index_vars, ..Statement::default() }
    }

    fn access(
        &self,
        read: Op<'c>,
        guarded: bool,
        from_exists: bool,
        exprs: &IndexReader<'c, '_>,
        locations: &mut Vec<Location<'c>>,
    ) -> Option<Access> {
        let info = self.tensors.get(&mlir::value_key(mlir::operand(read, 0)))?;
        let args: Option<Vec<_>> =
            mlir::operands(read)[1..].iter().map(|value| exprs.get(*value)).collect();
        let args = args?;
        locations.push(read.location());
        let location = locations.len() - 1;
        locations.push(info.declared_at);
        let written = mlir::string_attr(read, "text").map(str::to_string);
        Some(Access {
            tensor: info.name.to_string(),
            text: written.unwrap_or_else(|| format!("{}(..)", info.name)),
            location,
            declared_at: Some(locations.len() - 1),
            args,
            dims: info.bounds.clone(),
            guarded,
            from_exists,
            is_update: false,
        })
    }

    /// Marks the reads that are inside their tensor for all sizes.
    fn mark_reads(&mut self, reads: &[Op<'c>], inference: &Inference) {
        let context = mlir::context_of(self.def.op());
        let open: BTreeSet<_> = inference.preconditions.iter().map(|it| it.access).collect();
        for (number, read) in reads.iter().enumerate() {
            if !open.contains(&number) {
                self.counts.proven += 1;
                mlir::set_attribute(*read, "in_bounds", Attribute::unit(context));
            }
        }
        self.counts.left += inference.preconditions.len();
    }

    /// Records the domain of a statement, and the bounds of its tensor.
    fn set_domain(
        &mut self,
        statement: Comprehension<'c>,
        input: &Statement,
        resolved: &[ranges::Range],
    ) {
        let rank = statement.index_vars().len();
        let own: Vec<_> = resolved[..rank].iter().map(|it| (it.lower, it.upper)).collect();
        let previous =
            statement.outs().and_then(|outs| self.tensors.get(&mlir::value_key(outs))).cloned();
        let bounds = previous.map_or(own, |previous| previous.bounds);
        let variable = |number: usize| {
            let range = &resolved[number];
            Variable::between(range.lower, range.upper).named(&input.index_vars[number].name)
        };
        let results = bounds.iter().enumerate().map(|(dim, (lower, _))| {
            let position = self.ir.sub(self.ir.dim(dim as u32), *lower);
            solve::simplified(&self.prover(), position).unwrap_or(position)
        });
        let domain = IndexingMap {
            dims: (0..rank).map(variable).collect(),
            ranges: (rank..resolved.len()).map(variable).collect(),
            runtimes: self.size_variables(),
            results: results.collect(),
            constraints: Vec::new(),
        };
        let context = mlir::context_of(statement.op());
        mlir::set_attribute(statement.op(), "domain", map::to_attribute(context, self.ir, &domain));
        let info =
            TensorInfo { name: statement.target(), bounds, declared_at: statement.op().location() };
        if let Some(outs) = statement.outs() {
            // Contents that the caller passes in have the bounds of the first statement.
            self.tensors.entry(mlir::value_key(outs)).or_insert_with(|| info.clone());
        }
        self.tensors.insert(mlir::value_key(statement.result()), info);
    }

    fn size_variables(&self) -> Vec<Variable> {
        let interval = Interval::new(1, MAX_EXTENT);
        self.sizes.iter().map(|name| Variable::bounded(self.ir, interval).named(name)).collect()
    }

    /// A statement that accumulates must stay inside the tensor that is there, and computed indices must
    /// stay in their ranges: inference once more, with all ranges declared and the updates as the only
    /// accesses.
    fn check_update(
        &mut self,
        statement: Comprehension<'c>,
        scope: &Scope,
        input: &Statement,
        (resolved, addresses): (&[ranges::Range], &[Expr]),
        locations: &[Location<'c>],
    ) -> Result<(), Failure> {
        let previous =
            statement.outs().and_then(|outs| self.tensors.get(&mlir::value_key(outs))).cloned();
        let mut locations = locations.to_vec();
        let declared_at = previous.as_ref().map(|previous| {
            locations.push(previous.declared_at);
            locations.len() - 1
        });
        let own = &resolved[..statement.index_vars().len()];
        let plain: Vec<_> = (0..own.len() as u32).map(|dim| self.ir.dim(dim)).collect();
        let text = statement.left_text();
        let update = |location, args: &[Expr], dims| Access {
            tensor: statement.target().to_string(),
            text: text.clone(),
            location,
            declared_at,
            args: args.to_vec(),
            dims,
            guarded: false,
            from_exists: false,
            is_update: true,
        };
        let mut accesses: Vec<_> =
            previous.into_iter().map(|previous| update(0, &plain, previous.bounds)).collect();
        if let Some(first) = statement.addressed().first() {
            let mut args = plain.clone();
            for (dim, address) in statement.addressed().into_iter().zip(addresses) {
                args[dim] = *address;
            }
            let dims = own.iter().map(|it| (it.lower, it.upper)).collect();
            accesses.push(update(input.index_vars[*first].location, &args, dims));
        }
        let declared = resolved.iter().enumerate().map(|(index_var, range)| DeclaredRange {
            index_var,
            lower: range.lower,
            upper: range.upper,
        });
        let updates = Statement {
            index_vars: input.index_vars.clone(),
            declared: declared.collect(),
            accesses,
        };
        let inference = ranges::infer(self.ir, scope, &updates);
        emit_diagnostics(&inference, &locations);
        inference.resolved().ok_or(Failure)?;
        self.counts.left += inference.preconditions.len();
        for precondition in &inference.preconditions {
            self.add_precondition(precondition, &text);
        }
        Ok(())
    }

    fn add_precondition(&mut self, precondition: &Precondition, access: &str) {
        let conditions = precondition.conditions.as_deref();
        self.push_precondition(
            &precondition.text,
            access,
            conditions,
            precondition.data_dependent,
            precondition.guarded,
        );
    }

    fn push_precondition(
        &mut self,
        text: &str,
        access: &str,
        conditions: Option<&[Expr]>,
        data: bool,
        guarded: bool,
    ) {
        let context = mlir::context_of(self.def.op());
        let mut entries =
            vec![("text", mlir::string(context, text)), ("access", mlir::string(context, access))];
        if let Some(conditions) = conditions {
            let mut condition =
                IndexingMap { runtimes: self.size_variables(), ..IndexingMap::default() };
            for expr in conditions {
                condition.add_constraint(self.ir, *expr, Interval::new(0, i64::MAX));
            }
            entries.push(("condition", map::to_attribute(context, self.ir, &condition)));
        }
        for (name, set) in [("data", data), ("guarded", guarded)] {
            if set {
                entries.push((name, Attribute::unit(context)));
            }
        }
        let entries: Vec<_> = entries
            .into_iter()
            .map(|(name, value)| (Identifier::new(context, name), value))
            .collect();
        let entry: Attribute = DictionaryAttribute::new(context, &entries).into();
        // One statement may need the same condition through several accesses.
        if !self.preconditions.contains(&entry) {
            self.preconditions.push(entry);
        }
    }

    /// The sizes that the head asserts for outputs: equal to the inferred extents, or a
    /// precondition, which some sizes must meet. A name that no input has stands for the first
    /// extent it meets.
    fn check_annotations(&mut self) -> Result<(), Failure> {
        let mut free: HashMap<&str, Expr> = HashMap::new();
        let prover = self.prover();
        for (number, value) in mlir::operands(self.def.terminator()).into_iter().enumerate() {
            let info = self.tensors[&mlir::value_key(value)].clone();
            for (dim, size) in self.def.output_sizes(number).into_iter().enumerate() {
                let Some(&(lower, upper)) = info.bounds.get(dim) else { continue };
                let extent = self.extent(lower, upper);
                let expected = match (self.size_expr(&size), &size) {
                    (Some(expr), _) => expr,
                    (None, Size::Variable(name)) => *free.entry(name).or_insert(extent),
                    (None, Size::Constant(_)) => continue,
                };
                match prover.equal(extent, expected) {
                    Verdict::Proved => {}
                    Verdict::Unknown => {
                        self.require_equal(info.name, dim, extent, "its type", expected);
                    }
                    Verdict::Refuted => {
                        let (found, wanted) = (self.show(extent), self.show(expected));
                        let message = format!(
                            "dimension {dim} of output '{}' has extent {found}, but its type says {wanted} [{}]",
                            info.name,
                            Kind::WrongAnnotation.code()
                        );
                        Report::at(info.declared_at, Severity::Error, message)
                            .note(None, format!("no sizes meet the condition {found} == {wanted}"))
                            .emit();
                        return Err(Failure);
                    }
                }
            }
        }
        Ok(())
    }

    /// An output that starts from what the caller passes is given back in the same memory,
    /// so what last defines it must have the same elements, and as many.
    fn check_contents(&mut self) -> Result<(), Failure> {
        let outputs = self.def.outputs();
        let returned = mlir::operands(self.def.terminator());
        for parameter in self.def.parameters().into_iter().filter(|it| it.inout) {
            let Some(number) = outputs.iter().position(|name| *name == parameter.name) else {
                continue;
            };
            let (first, last) = (parameter.value, returned[number]);
            let bounds =
                |value| self.tensors.get(&mlir::value_key(value)).map(|it| it.bounds.clone());
            let (Some(before), Some(after)) = (bounds(first), bounds(last)) else { continue };
            let [before, after] = [before, after].map(|bounds| {
                bounds.iter().map(|(lower, upper)| self.extent(*lower, *upper)).collect::<Vec<_>>()
            });
            let same_elements =
                mlir::element_type(first.r#type()) == mlir::element_type(last.r#type());
            let prover = self.prover();
            let may_be_equal = |(before, after): (&Expr, &Expr)| {
                self.ir.as_constant(*before).is_some() == self.ir.as_constant(*after).is_some()
                    && prover.equal(*before, *after) != Verdict::Refuted
            };
            if !same_elements
                || before.len() != after.len()
                || !before.iter().zip(&after).all(may_be_equal)
            {
                let shown = |element, extents: &[Expr]| {
                    let extents: Vec<_> = extents.iter().map(|it| self.show(*it)).collect();
                    format!("{}({})", mlir::element_type(element), extents.join(", "))
                };
                let message = format!(
                    "'{}' accumulates into what the caller passes, {}, and is then defined as {} [{}]",
                    parameter.name,
                    shown(first.r#type(), &before),
                    shown(last.r#type(), &after),
                    Kind::ChangedContents.code(),
                );
                let at = self.tensors[&mlir::value_key(last)].declared_at;
                Report::at(at, Severity::Error, message)
                    .note(None, "try another name for one of them")
                    .emit();
                return Err(Failure);
            }
            for (dim, (before, after)) in before.into_iter().zip(after).enumerate() {
                if prover.equal(before, after) != Verdict::Proved {
                    self.require_equal(
                        parameter.name,
                        dim,
                        after,
                        "what the caller passes",
                        before,
                    );
                }
            }
        }
        Ok(())
    }

    fn show(&self, expr: Expr) -> String {
        polynomial::text(self.ir, expr, &|var| match var {
            Var::Runtime(number) => self.sizes[number as usize].to_string(),
            _ => String::new(),
        })
    }

    /// Leaves it to the caller that an extent of an output is the one that `who` says.
    fn require_equal(&mut self, output: &str, dim: usize, extent: Expr, who: &str, expected: Expr) {
        let (found, wanted) = (self.show(extent), self.show(expected));
        let text = format!("{found} == {wanted}");
        let message = format!(
            "dimension {dim} of output '{output}' has extent {found}, but {who} says {wanted} [{}]",
            Kind::UncheckedExtent.code()
        );
        Report::at(self.def.op().location(), Severity::Warning, message)
            .note(None, format!("precondition recorded: {text}"))
            .emit();
        self.counts.left += 1;
        let difference = self.ir.sub(extent, expected);
        let conditions = [difference, self.ir.neg(difference)];
        self.push_precondition(&text, output, Some(&conditions), false, false);
    }

    /// Gives each result its extents and its first index, over the sizes.
    fn set_result_shapes(&self) {
        let context = mlir::context_of(self.def.op());
        let returned = mlir::operands(self.def.terminator());
        let attributes = mlir::array_attr(self.def.op(), "res_attrs");
        let new: Vec<Attribute> = attributes
            .into_iter()
            .zip(returned)
            .map(|(attribute, value)| {
                let bounds = &self.tensors[&mlir::value_key(value)].bounds;
                let shape = |results: Vec<Expr>| {
                    let map = IndexingMap {
                        runtimes: self.size_variables(),
                        results,
                        ..IndexingMap::default()
                    };
                    map::to_attribute(context, self.ir, &map)
                };
                let extents = bounds.iter().map(|(lower, upper)| self.extent(*lower, *upper));
                let origins = bounds.iter().map(|(lower, _)| *lower);
                let added = [
                    ("tc.extents", shape(extents.collect())),
                    ("tc.origins", shape(origins.collect())),
                ];
                mlir::extend_dictionary(context, attribute, &added)
            })
            .collect();
        mlir::set_attribute(self.def.op(), "res_attrs", mlir::array(context, &new));
    }
}

fn emit_diagnostics(inference: &Inference, locations: &[Location]) {
    for diagnostic in &inference.diagnostics {
        let severity = diagnostic.kind.severity();
        let message = format!("{} [{}]", diagnostic.message, diagnostic.kind.code());
        let mut report = Report::at(locations[diagnostic.location], severity, message);
        for (location, text) in &diagnostic.notes {
            report = report.note(Some(locations[*location]), text);
        }
        report.emit();
    }
}
