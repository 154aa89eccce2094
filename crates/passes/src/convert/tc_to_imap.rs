//! `convert-tc-to-imap`: convert comprehensions with inferred ranges to `imap.generic`.
//!
//! This pass converts a `tc.def` to a `func.func` on tensors of signless elements, with one argument per
//! parameter and one result per output. A size variable becomes the `tensor.dim` of its first
//! occurrence. A comprehension becomes one `imap.generic` with the domain that range inference found.
//!
//! A read becomes an operand with an indexing map if its indices are expressions of the variables, the
//! sizes, and elements of integer tensors. These elements become runtime variables with a map of their
//! own. A read under a condition must also be marked `in_bounds` by `tc-infer-ranges`, because
//! operands are read even if the condition is false. All other reads stay in the body as
//! `tensor.extract`.
//!
//! A statement whose left-hand indices are computed, such as `H(I(i)) += 1`, becomes an `imap.scatter`
//! over its other variables. `op=!` first fills a tensor with the identity. If such an index is not an
//! expression of these variables, another operation first stores its values in a tensor.
//!
//! Before:
//!
//! ```mlir
//! %C = tc.comprehension "C"["i"] #imap.combiner<assign>
//!     domain #imap.map<(i){N} -> (i), domain: i in [0, N - 1], N in [1, 2147483647]> {
//! ^bb0(%i: index):
//!   %a = tc.read %A[%i] : tensor<?xf32> -> f32
//!   tc.yield %a : f32
//! } : tensor<?xf32>
//! ```
//!
//! After, with `%N` the `tensor.dim` of `%A`:
//!
//! ```mlir
//! %init = tensor.empty(%N) : tensor<?xf32>
//! %C = imap.generic (i){N} domain: i in [0, N - 1], N in [1, 2147483647]
//!     runtime(%N : index) ins(%A[i] : tensor<?xf32>) outs(%init[i] : tensor<?xf32>) {
//! ^bb0(%a: f32):
//!   imap.yield %a : f32
//! } -> tensor<?xf32>
//! ```
//!
//! Requires `tc-infer-ranges`. Results do not change. The pass keeps the function attributes `tc.name`,
//! `tc.sizes` and `tc.inout`. It marks arguments and results of unsigned elements with `tc.unsigned`.
//! `tc.extents` and `tc.origins` give the shape and the first index of each result as expressions of the
//! sizes.

use super::elements::division::build_division;
use crate::analysis::index_reader::{IndexReader, Leaves, element_read};
use melior::ir::{
    Attribute, Region, Type, ValueLike, operation::OperationLike, r#type::FunctionType,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use tc_dialects::{
    imap::{self, Access, Indexed, Runtime, ScatterPromises, View},
    mlir::{self, Builder, Op, Val, ValueMap},
    pass::{Failure, PassInfo, PassRun},
    report::Report,
    tc::{Comprehension, Def},
};
use tc_ir::{
    Context,
    expr::{Expr, Var},
    interval::Interval,
    map::{IndexingMap, Variable},
    prove::Prover,
    solve,
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "convert-tc-to-imap",
    summary: "Convert comprehensions with inferred ranges to imap.generic",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["arith", "func", "imap", "scf", "tensor"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    for def in mlir::ops(block).into_iter().filter_map(Def::cast) {
        pass.enter(def.op());
        convert_def(def).map_err(|report| {
            report.emit();
            Failure
        })?;
    }
    Ok(())
}

/// What is known of a tensor of the function under conversion.
struct TensorInfo<'c> {
    value: Val<'c>,
    /// The positions at which the element of indices `d0, ..` is stored.
    position: Vec<Expr>,
}

struct Converter<'c, 'i> {
    ir: &'i Context,
    builder: Builder<'c>,
    /// The size variables: name and value.
    sizes: Vec<(&'c str, Val<'c>)>,
    tensors: HashMap<usize, TensorInfo<'c>>,
    /// Everything else that the body of the function computes.
    values: ValueMap<'c>,
}

fn convert_def<'c>(def: Def<'c>) -> Result<(), Report<'c>> {
    let ir = Context::new();
    let context = mlir::context_of(def.op());
    let parameters = def.parameters();
    let outputs = def.outputs();
    let inputs: Vec<_> = parameters
        .iter()
        .map(|parameter| {
            let ty = parameter.value.r#type();
            let mut shape = mlir::shape(ty);
            // What is accumulated into has the extents of the output, constant or not.
            if let Some(number) =
                outputs.iter().position(|it| parameter.inout && *it == parameter.name)
                && let Some(extents) = def.output_extents(&ir, number)
            {
                shape = extents.results.iter().map(|it| ir.as_constant(*it)).collect();
            }
            mlir::tensor_type(&shape, mlir::signless(context, mlir::element_type(ty)))
        })
        .collect();
    let (region, block) = mlir::region_with_block(&inputs, def.op().location());
    mlir::name_arguments(context, block, parameters.iter().map(|parameter| parameter.name));
    let builder = Builder::at_end(context, block, def.op().location());
    let mut converter = Converter {
        ir: &ir,
        builder,
        sizes: Vec::new(),
        tensors: HashMap::new(),
        values: ValueMap::default(),
    };
    for (parameter, argument) in parameters.iter().zip(mlir::arguments(block)) {
        converter.add_tensor(parameter.value, argument, None);
    }
    for (name, parameter, dim) in def.sizes() {
        let size = builder.dim(converter.tensors[&mlir::value_key(parameter)].value, dim);
        converter.sizes.push((name, size));
    }
    let names: Vec<_> = converter.sizes.iter().map(|(name, _)| *name).collect();
    let mut outer = IndexReader::new(&ir, &names);
    let mut outputs = Vec::new();
    for op in mlir::ops(def.body()) {
        converter.builder = builder.located(op.location());
        if let Some(statement) = Comprehension::cast(op) {
            converter.convert_comprehension(statement, &outer)?;
        } else if mlir::is(op, "tc.return") {
            for value in mlir::operands(op) {
                outputs.push(converter.tensors[&mlir::value_key(value)].value);
            }
            converter.builder.op("func.return", &outputs, &[]);
        } else {
            outer.visit(op, &mut OuterLeaves { ir: &ir });
            converter.copy(op);
        }
    }
    build_function(def, region, &inputs, &outputs);
    mlir::erase(def.op());
    Ok(())
}

/// Creates the function around its body, with the attributes of the definition.
fn build_function<'c>(def: Def<'c>, region: Region<'c>, inputs: &[Type<'c>], outputs: &[Val<'c>]) {
    let context = mlir::context_of(def.op());
    let results: Vec<_> = outputs.iter().map(|value| value.r#type()).collect();
    let unsigned = |ty: Type<'c>| mlir::is_unsigned(mlir::element_type(ty));
    let mark = |attributes: Attribute<'c>, unsigned: bool| {
        let added = [("tc.unsigned", Attribute::unit(context))];
        mlir::extend_dictionary(context, attributes, if unsigned { &added } else { &[] })
    };
    let arguments: Vec<_> = mlir::array_attr(def.op(), "arg_attrs")
        .into_iter()
        .zip(def.parameters())
        .map(|(attributes, parameter)| mark(attributes, unsigned(parameter.value.r#type())))
        .collect();
    let returned = mlir::operands(def.terminator());
    let result_attributes: Vec<_> = mlir::array_attr(def.op(), "res_attrs")
        .into_iter()
        .zip(&returned)
        .map(|(attributes, value)| mark(attributes, unsigned(value.r#type())))
        .collect();
    let ty: Type = FunctionType::new(context, inputs, &results).into();
    let mut attributes = vec![
        ("sym_name", mlir::string(context, def.name())),
        ("function_type", mlir::type_attr(ty)),
        ("arg_attrs", mlir::array(context, &arguments)),
        ("res_attrs", mlir::array(context, &result_attributes)),
    ];
    if let Ok(preconditions) = def.op().attribute("preconditions") {
        attributes.push(("tc.preconditions", preconditions));
    }
    Builder::before(def.op()).op_with("func.func", &[], &[], &attributes, vec![region]);
}

/// A read that becomes an operand.
struct Operand<'c> {
    tensor: Val<'c>,
    results: Vec<Expr>,
}

/// Outside of statements only sizes, constants and what is computed from them have
/// expressions.
struct OuterLeaves<'i> {
    ir: &'i Context,
}

impl<'c> Leaves<'c> for OuterLeaves<'_> {
    fn leaf(&mut self, _: &IndexReader<'c, '_>, _: Val<'c>) -> Option<Expr> {
        None
    }

    fn extent(&mut self, tensor: Val<'c>, dim: usize) -> Option<Expr> {
        static_extent(self.ir, tensor, dim)
    }
}

fn static_extent(ir: &Context, tensor: Val, dim: usize) -> Option<Expr> {
    let extent = mlir::shape(tensor.r#type()).get(dim).copied().flatten()?;
    Some(ir.constant(extent))
}

/// An element of a tensor whose value is an index.
#[derive(PartialEq)]
struct Element<'c> {
    tensor: Val<'c>,
    /// The positions in the tensor.
    results: Vec<Expr>,
    interval: Interval,
}

/// Elements of integer tensors in index expressions become runtime variables.
struct RuntimeLeaves<'c, 'a, 'i> {
    converter: &'a Converter<'c, 'i>,
    /// The runtime variables after the sizes.
    runtimes: Vec<Element<'c>>,
    /// Reads that must not happen unless their condition holds.
    guarded: HashSet<usize>,
}

impl<'c> Leaves<'c> for RuntimeLeaves<'c, '_, '_> {
    fn leaf(&mut self, exprs: &IndexReader<'c, '_>, value: Val<'c>) -> Option<Expr> {
        let (read, unsigned) = element_read(value)?;
        let element = mlir::element_type(mlir::operand(read, 0).r#type());
        let is_too_wide = unsigned && mlir::integer_width(element) == Some(64);
        if is_too_wide || self.guarded.contains(&mlir::value_key(mlir::result(read, 0))) {
            return None;
        }
        let operand = self.converter.operand_of(exprs, read)?;
        let interval = imap::element_interval(element, unsigned);
        let entry = Element { tensor: operand.tensor, results: operand.results, interval };
        let number = self.runtimes.iter().position(|known| *known == entry).unwrap_or_else(|| {
            self.runtimes.push(entry);
            self.runtimes.len() - 1
        });
        Some(exprs.ir.runtime((self.converter.sizes.len() + number) as u32))
    }

    fn extent(&mut self, tensor: Val<'c>, dim: usize) -> Option<Expr> {
        static_extent(self.converter.ir, tensor, dim)
    }
}

impl<'c, 'i> Converter<'c, 'i> {
    fn add_tensor(&mut self, old: Val<'c>, new: Val<'c>, position: Option<Vec<Expr>>) {
        let rank = mlir::shape(new.r#type()).len() as u32;
        let position = position.unwrap_or_else(|| (0..rank).map(|dim| self.ir.dim(dim)).collect());
        self.values.insert(old, new);
        self.tensors.insert(mlir::value_key(old), TensorInfo { value: new, position });
    }

    /// The tensor and the positions that a read touches, if its indices have expressions.
    fn operand_of(&self, exprs: &IndexReader<'c, '_>, read: Op<'c>) -> Option<Operand<'c>> {
        let info = self.tensors.get(&mlir::value_key(mlir::operand(read, 0)))?;
        let indices: Vec<_> = mlir::operands(read)[1..]
            .iter()
            .map(|value| exprs.get(*value))
            .collect::<Option<_>>()?;
        let replacement = |var: Var| match var {
            Var::Dim(number) => indices.get(number as usize).copied(),
            _ => None,
        };
        let results = self.ir.substitute_all(&info.position, &replacement);
        Some(Operand { tensor: info.value, results })
    }

    /// Copies an operation that is no comprehension, and lowers what it holds of `tc`.
    fn copy(&mut self, op: Op<'c>) {
        let copy = self.builder.copy(op, &mut self.values);
        if mlir::is(op, "tc.read") {
            let value = self.build_extract(op, copy);
            mlir::replace(copy, &[value]);
            self.values.insert(mlir::result(op, 0), value);
            return;
        }
        let mut inner = Vec::new();
        mlir::walk(copy, &mut |op| inner.push(op));
        for copied in inner {
            let results: Vec<_> = if copied == copy { mlir::results(op) } else { Vec::new() };
            if let Some(value) = self.lower(copied)
                && let Some(old) = results.first()
            {
                self.values.insert(*old, value);
            }
        }
    }

    /// Lowers one operation of `tc` that computes an index or a scalar, in place. Returns
    /// what now stands for its result.
    fn lower(&self, op: Op<'c>) -> Option<Val<'c>> {
        let builder = Builder::before(op);
        let value = match mlir::name(op) {
            "tc.size" => {
                let name = mlir::string_attr(op, "name")?;
                self.sizes.iter().find(|(known, _)| *known == name)?.1
            }
            "tc.extent" => {
                builder.dim(mlir::operand(op, 0), mlir::integer_attr(op, "dim")? as usize)
            }
            "tc.div" => build_division_of(&builder, op, false),
            "tc.rem" => build_division_of(&builder, op, true),
            _ => return None,
        };
        mlir::replace(op, &[value]);
        Some(value)
    }

    fn convert_comprehension(
        &mut self,
        statement: Comprehension<'c>,
        outer: &IndexReader<'c, '_>,
    ) -> Result<(), Report<'c>> {
        let Some(mut domain) = statement.domain(self.ir) else {
            let error = Report::op_error(statement.op(), "has no domain yet");
            return Err(error.note(None, "try running 'tc-infer-ranges' first"));
        };
        for number in 0..statement.addressed().len() {
            self.store_address(statement, number, &domain, outer)?;
        }
        let position = std::mem::take(&mut domain.results);
        if let Some(outs) = statement.outs()
            && outs.is_block_argument()
            && let Some(info) = self.tensors.get_mut(&mlir::value_key(outs))
        {
            // What the caller passes is stored as the first statement that uses it says.
            info.position.clone_from(&position);
        }

        // Which reads become operands, and with which maps.
        let reads = collect_reads(statement);
        let (exprs, runtimes) = self.expressions(statement, &reads, outer);
        let mut operands: Vec<Operand> = Vec::new();
        let mut operand_of_read: HashMap<usize, usize> = HashMap::new();
        for read in &reads {
            if read.conditional {
                continue;
            }
            let Some(operand) = self.operand_of(&exprs, read.op) else { continue };
            let same = |known: &Operand<'c>| {
                known.tensor == operand.tensor && known.results == operand.results
            };
            let number = operands.iter().position(same).unwrap_or_else(|| {
                operands.push(operand);
                operands.len() - 1
            });
            operand_of_read.insert(mlir::value_key(mlir::result(read.op, 0)), number);
        }
        // Reads that only feed runtime variables and operand maps are not operands
        // themselves: unused ones are dropped below.
        let used: HashSet<usize> = used_values(statement, &operand_of_read);
        let mut kept: BTreeMap<usize, usize> = BTreeMap::new();
        for read in &reads {
            let key = mlir::value_key(mlir::result(read.op, 0));
            if let Some(number) = operand_of_read.get(&key)
                && used.contains(&key)
            {
                let next = kept.len();
                kept.entry(*number).or_insert(next);
            }
        }

        let combiner = statement.combiner();
        let is_scatter = !statement.addressed().is_empty();
        let init = match statement.outs() {
            Some(outs) => self.tensors[&mlir::value_key(outs)].value,
            None if is_scatter => self.build_identity(statement, &domain, &position)?,
            None => self.build_empty(statement, &domain)?,
        };
        let mut order: Vec<_> = kept.iter().map(|(operand, slot)| (*slot, *operand)).collect();
        order.sort_unstable();
        let inputs: Vec<&Operand> = order.iter().map(|(_, number)| &operands[*number]).collect();
        let stored = self.stored_at(statement, &exprs, &position);
        let mut view = self.build_view(domain, &inputs, (init, &stored), &runtimes, combiner);
        let variables = variables(statement);
        if is_scatter {
            let rank = position.len();
            view.substitute(self.ir, &|var| match var {
                Var::Dim(number) => Some(self.ir.var(variables[number as usize])),
                Var::Range(number) => Some(self.ir.var(variables[rank + number as usize])),
                Var::Runtime(_) => None,
            });
            for dim in statement.addressed().into_iter().rev() {
                view.domain.dims.remove(dim);
            }
            view.domain.dims.append(&mut view.domain.ranges);
        }
        view.drop_unused_runtimes(self.ir, &[]);
        let generic: imap::AnyIndexed = match is_scatter {
            true => view.build_scatter(self.ir, &self.builder, ScatterPromises::default()).into(),
            false => view.build(self.ir, &self.builder, false).into(),
        };
        let arguments = mlir::arguments(generic.body());
        let mut values = self.values.clone();
        for read in &reads {
            let result = mlir::result(read.op, 0);
            let number = operand_of_read.get(&mlir::value_key(result));
            if let Some(slot) = number.and_then(|number| kept.get(number)) {
                values.insert(result, arguments[*slot]);
            }
        }
        self.build_body(statement, (generic, &variables), values, &operand_of_read, &used);
        let result = mlir::result(generic.op(), 0);
        self.add_tensor(statement.result(), result, Some(position));
        Ok(())
    }

    /// The expressions of the indices in a statement, and the elements that are runtime variables in them.
    fn expressions<'a>(
        &self,
        statement: Comprehension<'c>,
        reads: &[Read<'c>],
        outer: &'a IndexReader<'c, 'a>,
    ) -> (IndexReader<'c, 'a>, Vec<Element<'c>>) {
        let mut exprs = IndexReader::nested(outer);
        exprs.enter(statement, statement.body());
        let guarded = reads.iter().filter(|read| read.conditional).map(|read| read.op);
        let mut leaves = RuntimeLeaves {
            converter: self,
            runtimes: Vec::new(),
            guarded: guarded.map(|op| mlir::value_key(mlir::result(op, 0))).collect(),
        };
        exprs.visit_block(statement.body(), &mut leaves);
        (exprs, leaves.runtimes)
    }

    /// The position at which a point stores: computed indices take the place of their variables.
    fn stored_at(
        &self,
        statement: Comprehension<'c>,
        exprs: &IndexReader<'c, '_>,
        position: &[Expr],
    ) -> Vec<Expr> {
        let addresses = statement.addressed().into_iter().zip(statement.addresses());
        let addresses: HashMap<_, _> = addresses
            .map(|(dim, value)| {
                let index = exprs.get(value).expect("others are read from what is stored");
                (Var::Dim(dim as u32), index)
            })
            .collect();
        self.ir.substitute_all(position, &|var| addresses.get(&var).copied())
    }

    /// Lets a computed index of the left-hand side have an expression: one that has none is computed by a
    /// statement of its own, and read from the result.
    fn store_address(
        &mut self,
        statement: Comprehension<'c>,
        number: usize,
        domain: &IndexingMap,
        outer: &IndexReader<'c, '_>,
    ) -> Result<(), Report<'c>> {
        let address = statement.addresses()[number];
        let (exprs, _) = self.expressions(statement, &collect_reads(statement), outer);
        if exprs.get(address).is_some() {
            return Ok(());
        }
        let (ops, variables) = slice(statement, address);
        let stored = self.address_statement(statement, address, (&ops, &variables), domain);
        self.convert_comprehension(stored, outer)?;

        let arguments = mlir::arguments(statement.body());
        let mut operands = vec![stored.result()];
        operands.extend(variables.iter().map(|variable| arguments[*variable]));
        let end = mlir::terminator(statement.body());
        let builder = Builder::before(end);
        let in_bounds = [("in_bounds", Attribute::unit(builder.context))];
        let read = builder.value_with("tc.read", &operands, builder.int_type(64), &in_bounds);
        let index = builder.value("arith.index_cast", &[read], builder.index_type());
        mlir::set_operand(end, 1 + number, index);
        for op in ops.into_iter().rev() {
            if mlir::results(op).into_iter().all(|result| mlir::uses(result).is_empty()) {
                mlir::erase(op);
            }
        }
        Ok(())
    }

    /// A statement that computes an index of another one, before it.
    fn address_statement(
        &self,
        statement: Comprehension<'c>,
        address: Val<'c>,
        (ops, variables): (&[Op<'c>], &[usize]),
        domain: &IndexingMap,
    ) -> Comprehension<'c> {
        let builder = Builder::before(statement.op());
        let context = builder.context;
        let types = vec![builder.index_type(); variables.len()];
        let (region, block) = mlir::region_with_block(&types, builder.location);
        let inside = Builder::at_end(context, block, builder.location);
        let mut values = ValueMap::default();
        let arguments = mlir::arguments(statement.body());
        for (variable, argument) in variables.iter().zip(mlir::arguments(block)) {
            values.insert(arguments[*variable], argument);
        }
        for op in ops {
            inside.located(op.location()).copy(*op, &mut values);
        }
        let index = values.get(address).unwrap_or(address);
        let element = builder.int_type(64);
        let value = inside.value("arith.index_cast", &[index], element);
        inside.op("tc.yield", &[value], &[]);

        let all: Vec<_> = domain.dims.iter().chain(&domain.ranges).collect();
        let dims: Vec<_> = variables.iter().map(|variable| all[*variable].clone()).collect();
        let position = (0..).zip(&dims).map(|(dim, variable)| {
            let lower = variable.lower.unwrap_or(self.ir.constant(0));
            let position = self.ir.sub(self.ir.dim(dim), lower);
            solve::simplified(&Prover::new(self.ir), position).unwrap_or(position)
        });
        let results = position.collect();
        let runtimes = domain.runtimes.clone();
        let domain = IndexingMap { dims, runtimes, results, ..IndexingMap::default() };
        let names = [statement.index_vars(), statement.reduction_vars()].concat();
        let names: Vec<_> = variables.iter().map(|variable| names[*variable]).collect();
        let target = format!("{}.address", statement.target());
        let attributes = [
            ("target", mlir::string(context, &target)),
            ("index_vars", mlir::strings(context, &names)),
            ("combiner", imap::Combiner::ASSIGN.attribute(context)),
            ("domain", imap::map::to_attribute(context, self.ir, &domain)),
            ("operandSegmentSizes", mlir::segments(context, &[0, 0])),
        ];
        let ty = mlir::tensor_type(&vec![None; names.len()], element);
        let regions = vec![region, Region::new()];
        let op = builder.op_with(Comprehension::NAME, &[], &[ty], &attributes, regions);
        Comprehension::cast(op).expect("it was built as one")
    }

    /// A tensor that holds the identity of the combiner of a statement.
    fn build_identity(
        &self,
        statement: Comprehension<'c>,
        domain: &IndexingMap,
        position: &[Expr],
    ) -> Result<Val<'c>, Report<'c>> {
        let empty = self.build_empty(statement, domain)?;
        let domain = IndexingMap { ranges: Vec::new(), ..domain.clone() };
        let assign = imap::Combiner::ASSIGN;
        let mut view = self.build_view(domain, &[], (empty, position), &[], assign);
        view.drop_unused_runtimes(self.ir, &[]);
        let fill = view.build(self.ir, &self.builder, false);
        let inside = Builder::at_end(self.builder.context, fill.body(), self.builder.location);
        let ty = statement.scalar_type();
        let identity = statement.combiner().kind.identity(inside.context, ty);
        imap::build_yield(&inside, &[inside.constant(ty, identity)]);
        Ok(mlir::result(fill.op(), 0))
    }

    /// The destination of a statement that does not accumulate into one.
    fn build_empty(
        &self,
        statement: Comprehension<'c>,
        domain: &IndexingMap,
    ) -> Result<Val<'c>, Report<'c>> {
        let mut shape = Vec::new();
        let mut extents = Vec::new();
        for (number, dim) in domain.dims.iter().enumerate() {
            let (Some(lower), Some(upper)) = (dim.lower, dim.upper) else {
                let error = format!("has no bounds for index variable {number} in its domain");
                return Err(Report::op_error(statement.op(), error));
            };
            let ir = self.ir;
            let extent = (ir.wrap(upper) - lower + 1).expr();
            let extent = solve::simplified(&Prover::new(ir), extent).unwrap_or(extent);
            shape.push(ir.as_constant(extent));
            if ir.as_constant(extent).is_none() {
                extents.push(self.build_size_expr(extent));
            }
        }
        let ty = mlir::tensor_type(&shape, statement.scalar_type());
        Ok(self.builder.value("tensor.empty", &extents, ty))
    }

    /// Emits the value of an expression over the sizes.
    fn build_size_expr(&self, expr: Expr) -> Val<'c> {
        imap::build_sizes(&self.builder, self.ir, &self.sizes, &[expr])[0]
    }

    /// The operands and maps of an operation.
    fn build_view(
        &self,
        mut domain: IndexingMap,
        inputs: &[&Operand<'c>],
        (init, position): (Val<'c>, &[Expr]),
        runtimes: &[Element<'c>],
        combiner: imap::Combiner,
    ) -> View<'c> {
        domain.runtimes.extend(runtimes.iter().map(|it| Variable::bounded(self.ir, it.interval)));
        let access =
            |(value, subscripts): (Val<'c>, &[Expr])| Access::new(value, subscripts.to_vec());
        let sizes = self.sizes.iter().map(|(_, value)| Runtime::Index(*value));
        let elements = runtimes.iter().map(|it| Runtime::Element(access((it.tensor, &it.results))));
        View {
            domain,
            runtimes: sizes.chain(elements).collect(),
            inputs: inputs.iter().map(|it| access((it.tensor, &it.results))).collect(),
            outputs: vec![access((init, position))],
            combiner: None,
            accumulators: imap::Accumulator::of_combiners(
                self.builder.context,
                &[combiner],
                &[init],
            ),
            ordered: false,
        }
    }

    /// Copies the body of a statement into that of the operation, and lowers it.
    fn build_body(
        &self,
        statement: Comprehension<'c>,
        (generic, variables): (imap::AnyIndexed<'c>, &[Var]),
        mut values: ValueMap<'c>,
        operand_of_read: &HashMap<usize, usize>,
        used: &HashSet<usize>,
    ) {
        let context = mlir::context_of(statement.op());
        let inside = Builder::at_end(context, generic.body(), statement.op().location());
        for (argument, var) in mlir::arguments(statement.body()).into_iter().zip(variables) {
            if !used.contains(&mlir::value_key(argument)) {
                continue;
            }
            let (kind, number) = match var {
                Var::Range(number) => ("range", number),
                Var::Dim(number) | Var::Runtime(number) => ("dim", number),
            };
            values.insert(argument, imap::build_index(&inside, kind, *number));
        }
        for op in mlir::ops(statement.body()) {
            let inside = inside.located(op.location());
            if mlir::is(op, "tc.yield") {
                let value = mlir::operand(op, 0);
                imap::build_yield(&inside, &[values.get(value).unwrap_or(value)]);
                continue;
            }
            if mlir::is(op, "tc.read")
                && operand_of_read.contains_key(&mlir::value_key(mlir::result(op, 0)))
            {
                continue;
            }
            // What only computed an index of an operand: the reads it starts from may be gone.
            let is_used = |value: Val| used.contains(&mlir::value_key(value));
            if op.region_count() == 0 && !mlir::results(op).into_iter().any(is_used) {
                continue;
            }
            let copy = inside.copy(op, &mut values);
            let (mut originals, mut copies) = (Vec::new(), Vec::new());
            mlir::walk(op, &mut |op| originals.push(op));
            mlir::walk(copy, &mut |op| copies.push(op));
            for (original, copied) in originals.into_iter().zip(copies) {
                self.lower_in_body(original, copied, &mut values);
            }
        }
    }

    fn lower_in_body(&self, original: Op<'c>, copied: Op<'c>, values: &mut ValueMap<'c>) {
        let value = if mlir::is(original, "tc.read") {
            let read = mlir::result(original, 0);
            let value = match values.get(read) {
                // An operand that is read under a condition.
                Some(argument) if argument.is_block_argument() => argument,
                _ => self.build_extract(original, copied),
            };
            mlir::replace(copied, &[value]);
            value
        } else {
            let Some(value) = self.lower(copied) else { return };
            value
        };
        values.insert(mlir::result(original, 0), value);
    }

    /// Reads an element in the body. `copied` has the indices of the source.
    fn build_extract(&self, original: Op<'c>, copied: Op<'c>) -> Val<'c> {
        let builder = Builder::before(copied);
        let info = &self.tensors[&mlir::value_key(mlir::operand(original, 0))];
        let indices = &mlir::operands(copied)[1..];
        let rank = indices.len();
        let identity = (0..rank as u32).all(|dim| info.position[dim as usize] == self.ir.dim(dim));
        let positions = if identity {
            indices.to_vec()
        } else {
            let map = IndexingMap {
                dims: vec![Variable::default(); rank],
                runtimes: self
                    .sizes
                    .iter()
                    .map(|(name, _)| Variable::default().named(name))
                    .collect(),
                results: info.position.clone(),
                ..IndexingMap::default()
            };
            let sizes: Vec<_> = self.sizes.iter().map(|(_, value)| *value).collect();
            imap::build_apply(&builder, self.ir, &map, &[indices, &sizes].concat())
        };
        let element = mlir::element_type(info.value.r#type());
        let operands = [&[info.value], &positions[..]].concat();
        builder.value("tensor.extract", &operands, element)
    }
}

/// A read of a statement's body.
struct Read<'c> {
    op: Op<'c>,
    /// Whether it happens under a condition and may be outside of its tensor otherwise.
    conditional: bool,
}

fn collect_reads<'c>(statement: Comprehension<'c>) -> Vec<Read<'c>> {
    let mut reads = Vec::new();
    for top in mlir::ops(statement.body()) {
        mlir::walk(top, &mut |op| {
            if mlir::is(op, "tc.read") {
                let nested = op != top;
                let conditional = nested && !op.has_attribute("in_bounds");
                reads.push(Read { op, conditional });
            }
        });
    }
    reads
}

/// The variables of the operation that stand for those of a statement. In a scatter all are
/// dimensions, and those of computed indices have none.
fn variables(statement: Comprehension) -> Vec<Var> {
    let (rank, addressed) = (statement.index_vars().len(), statement.addressed());
    let count = rank + statement.reduction_vars().len();
    let is_range = |number: usize| rank <= number && addressed.is_empty();
    let mut next = 0;
    let variable = |number: usize| match is_range(number) {
        true => Var::Range((number - rank) as u32),
        false => {
            let var = Var::Dim(next);
            next += u32::from(!addressed.contains(&number));
            var
        }
    };
    (0..count).map(variable).collect()
}

/// The operations of a statement on which a value depends, in order, and the numbers of the variables.
fn slice<'c>(statement: Comprehension<'c>, value: Val<'c>) -> (Vec<Op<'c>>, Vec<usize>) {
    let mut needed = HashSet::from([mlir::value_key(value)]);
    let mut ops = Vec::new();
    for op in mlir::ops(statement.body()).into_iter().rev() {
        if mlir::results(op).iter().any(|result| needed.contains(&mlir::value_key(*result))) {
            mlir::walk(op, &mut |inner| {
                needed.extend(mlir::operands(inner).into_iter().map(mlir::value_key));
            });
            ops.push(op);
        }
    }
    ops.reverse();
    let arguments = mlir::arguments(statement.body()).into_iter().map(mlir::value_key);
    let variables = arguments.enumerate().filter(|(_, argument)| needed.contains(argument));
    (ops, variables.map(|(number, _)| number).collect())
}

/// The reads whose element the body itself needs, not only an index of an operand.
fn used_values(statement: Comprehension, operands: &HashMap<usize, usize>) -> HashSet<usize> {
    // Backwards from the operations that have to stay: the yield, and whatever is not an
    // operand. An index computation stays only if something that stays needs it; regions
    // stay whole.
    let mut ops = Vec::new();
    for top in mlir::ops(statement.body()) {
        mlir::walk(top, &mut |op| ops.push((op, op != top)));
    }
    let mut used = HashSet::new();
    for (op, is_nested) in ops.into_iter().rev() {
        let is_operand =
            mlir::is(op, "tc.read") && operands.contains_key(&mlir::value_key(mlir::result(op, 0)));
        let needed = is_nested
            || op.result_count() == 0
            || op.region_count() > 0
            || mlir::results(op).iter().any(|value| used.contains(&mlir::value_key(*value)));
        if needed && !is_operand {
            // Computed indices are in the map of the destination.
            let count = if mlir::is(op, "tc.yield") { 1 } else { op.operand_count() };
            used.extend(mlir::operands(op).into_iter().take(count).map(mlir::value_key));
        }
    }
    used
}

fn build_division_of<'c>(builder: &Builder<'c>, op: Op<'c>, remainder: bool) -> Val<'c> {
    let operands = (mlir::operand(op, 0), mlir::operand(op, 1));
    build_division(builder, operands, op.has_attribute("unsigned_"), remainder)
}
