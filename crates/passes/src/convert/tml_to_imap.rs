//! `convert-tml-to-imap`: convert tensor expressions without indices to `imap.generic`.
//!
//! This pass converts a `tml.program` to a `func.func` on tensors, with the same arguments and results.
//! An expression becomes a list of operands, each with an indexing map, and a scalar expression of their
//! elements. Products, transpositions and element-wise operations only compose maps. A contraction
//! replaces a pair of dimension variables by one range variable, so no outer product is stored.
//! Element-wise operations on one sum become its epilogue. Temporary tensors store
//!
//! - sums that other operations use,
//! - factors of a product that are not products themselves, which would be recomputed for each element
//!   of the other factor,
//! - costly expressions with several uses. An outer product with several uses is inlined into each.
//!
//! Division is controlled: if the dividend is 0, the quotient is 0 for every divisor.
//!
//! If an assigned variable occurs in its own expression, the statement is evaluated in place if the
//! dependence analysis on indexing maps allows it: each element of the variable that it reads is the
//! element that it writes, and no later operation needs the old value. Otherwise a temporary receives
//! the result.
//!
//! Temporaries keep the order of dimensions of their largest operand. Small factors of a sum are copied
//! so that they are contiguous along the last dimension of the result, because vectors run along it.
//!
//! In a padded program (`tml-pad`), only the last dimension of a computation runs over its padding, and
//! only as far as it fills a vector: 11 elements take one vector of 8 and one of 4. More would lengthen
//! the rows of temporaries, which costs more than the mask of one vector. The rest of the padding is
//! zero before and stays zero. Sums skip padding, because its terms are zero. If an operation would read
//! padding of a temporary that is not written, its last dimension stops before the padding.
//!
//! Before:
//!
//! ```mlir
//! %p = tml.product %A, %B : tensor<3x4xf64>, tensor<4x5xf64> -> tensor<3x4x4x5xf64>
//! %c = tml.contract %p [1, 2] : tensor<3x4x4x5xf64> -> tensor<3x5xf64>
//! %C = tml.assign "C" %c : tensor<3x5xf64>
//! ```
//!
//! After:
//!
//! ```mlir
//! %init = tensor.empty() : tensor<3x5xf64>
//! %C = imap.generic (d0, d1)[s0] domain: d0 in [0, 2], d1 in [0, 4], s0 in [0, 3]
//!     ins(%A[d0, s0], %B[s0, d1] : tensor<3x4xf64>, tensor<4x5xf64>) outs(%init[d0, d1] : tensor<3x5xf64>) fold [add f64] {
//! ^bb0(%a: f64, %b: f64):
//!   %p = arith.mulf %a, %b : f64
//!   imap.yield %p : f64
//! } -> tensor<3x5xf64>
//! ```
//!
//! Remarks, for each statement with its variable in its own expression: `in-place`, or `temporary` with
//! the reason.

use crate::convert::generic_builder::GenericBuilder;
use melior::ir::{Attribute, Type, ValueLike, operation::OperationLike, r#type::FunctionType};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use tc_dialects::{
    imap::{self, Combiner, CombinerKind, Indexed},
    mlir::{self, Blk, Builder, Op, Val},
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, Report, remark},
    tml::{Program, dims, extents, num_elements, syntax::checked::round_up},
};
use tc_ir::{Context, Expr};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "convert-tml-to-imap",
    summary: "Convert tensor expressions without indices to imap.generic",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["arith", "func", "imap", "tensor"],
    run,
};

/// Operations in one body; a larger expression is cut by a temporary.
const MAX_OPERATIONS: usize = 128;
/// Operations that are calculated again at each use of a value.
const MAX_RECOMPUTED: usize = 4;

/// Points of a sum for each element of a factor, above which a copy of the factor costs little.
const MIN_REUSE: i64 = 8;

const SUM: Combiner = Combiner { kind: CombinerKind::Add, from_identity: true };

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    for program in mlir::ops(block).into_iter().filter_map(Program::cast) {
        pass.enter(program.op());
        convert(program).map_err(|report| {
            report.emit();
            Failure
        })?;
    }
    Ok(())
}

/// An index variable.
#[derive(Clone, Copy, Debug)]
struct Variable {
    /// Its extent without padding.
    logical: i64,
    /// The variable that it has been found to be equal to, or itself.
    same_as: usize,
}

/// An expression of elements of tensors.
#[derive(Debug)]
enum Scalar<'c> {
    /// An element, at an index of variables.
    Read(Val<'c>, Vec<usize>),
    /// The sum, in an epilogue.
    Folded,
    /// An operation of `arith` on two numbers.
    Operation(&'static str, Rc<Scalar<'c>>, Rc<Scalar<'c>>),
}

/// A tensor as an expression of its index.
#[derive(Clone, Debug)]
struct Term<'c> {
    /// The variables of its dimensions.
    dims: Vec<usize>,
    /// The variables that are summed over.
    sums: Vec<usize>,
    body: Rc<Scalar<'c>>,
    /// What is calculated from the sum.
    epilogue: Option<Rc<Scalar<'c>>>,
    /// Operations in the body and the epilogue.
    operations: usize,
    /// Whether it is an outer product of tensors, or one tensor.
    is_product: bool,
}

impl<'c> Term<'c> {
    /// A term without sums.
    fn elements(dims: Vec<usize>, body: Scalar<'c>, operations: usize, is_product: bool) -> Self {
        let body = Rc::new(body);
        Self { dims, sums: Vec::new(), body, epilogue: None, operations, is_product }
    }

    /// The elements that it reads.
    fn reads(&self) -> Vec<(Val<'c>, Vec<usize>)> {
        let mut reads = Vec::new();
        reads_of(&self.body, &mut reads);
        if let Some(epilogue) = &self.epilogue {
            reads_of(epilogue, &mut reads);
        }
        reads
    }

    /// Whether it has more elements than it reads, as an outer product has: to store them takes longer
    /// than to calculate them again.
    fn is_larger_than_reads(&self, variables: &[Variable]) -> bool {
        let elements = self.dims.iter().map(|it| variables[*it].logical);
        let reads = self.reads().into_iter().map(|(tensor, _)| num_elements(tensor));
        reads.fold(0, i64::saturating_add) < elements.fold(1, i64::saturating_mul)
    }

    /// Its value, as an expression of the sum if there is one.
    fn value(&self) -> Rc<Scalar<'c>> {
        match &self.epilogue {
            Some(epilogue) => Rc::clone(epilogue),
            None if self.sums.is_empty() => Rc::clone(&self.body),
            None => Rc::new(Scalar::Folded),
        }
    }
}

struct Converter<'c, 'i> {
    ir: &'i Context,
    program: Program<'c>,
    builder: Builder<'c>,
    variables: Vec<Variable>,
    terms: HashMap<usize, Term<'c>>,
    /// The tensor that a variable of the program is in, by its name, and the value of `tml`.
    held: HashMap<&'c str, (Val<'c>, Val<'c>)>,
    /// The places of the operations in the block.
    places: HashMap<usize, usize>,
    /// Which padding of a tensor is zero, by its value.
    padding: HashMap<usize, Padding>,
    /// Temporaries that one operation will read.
    read_once: HashSet<usize>,
    /// Temporaries that have been read for the last time.
    free: Vec<Val<'c>>,
    /// A type whose elements no memory can hold.
    too_large: Option<Type<'c>>,
}

/// Which padding of a tensor is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Padding {
    /// That of the last dimension, beside elements in bounds of the others.
    Rows,
    /// All of it.
    All,
}

fn convert<'c>(program: Program<'c>) -> Result<(), Report<'c>> {
    let ir = Context::new();
    let op = program.op();
    let context = mlir::context_of(op);
    let inputs: Vec<_> = program.arguments().iter().map(|value| value.r#type()).collect();
    let (region, block) = mlir::region_with_block(&inputs, op.location());
    let mut converter = Converter {
        ir: &ir,
        program,
        builder: Builder::at_end(context, block, op.location()),
        variables: Vec::new(),
        terms: HashMap::new(),
        held: HashMap::new(),
        places: HashMap::new(),
        padding: HashMap::new(),
        read_once: HashSet::new(),
        free: Vec::new(),
        too_large: None,
    };
    inputs.iter().for_each(|ty| converter.note_size(*ty));
    let parameters = program.parameters();
    mlir::name_arguments(context, block, parameters.iter().map(|parameter| parameter.name));
    let arguments = program.arguments().into_iter().zip(mlir::arguments(block));
    for ((old, new), parameter) in arguments.zip(&parameters) {
        let logical = parameter.extents.clone().unwrap_or_else(|| extents(old));
        let term = converter.read(new, &logical);
        converter.terms.insert(mlir::value_key(old), term);
        converter.held.insert(parameter.name, (new, old));
        converter.padding.insert(mlir::value_key(new), Padding::All);
    }
    for (place, op) in mlir::ops(program.body()).into_iter().enumerate() {
        converter.places.insert(mlir::op_key(op), place);
    }
    for op in mlir::ops(program.body()) {
        converter.builder = converter.builder.located(op.location());
        converter.convert(op)?;
        if let Some(ty) = converter.too_large {
            let message = format!("needs a tensor of type '{ty}', which no memory can hold");
            return Err(Report::op_error(op, message).note(None, "try smaller extents"));
        }
    }

    let outputs: Vec<_> = program.results().iter().map(|value| value.r#type()).collect();
    let attributes = |parameters: &[tc_dialects::tml::Parameter]| {
        let attribute = |parameter: &tc_dialects::tml::Parameter| {
            let mut entries = vec![("tc.name", mlir::string(context, parameter.name))];
            if parameter.inout {
                entries.push(("tc.inout", Attribute::unit(context)));
            }
            mlir::dictionary(context, &entries)
        };
        mlir::array(context, &parameters.iter().map(attribute).collect::<Vec<_>>())
    };
    let ty: Type = FunctionType::new(context, &inputs, &outputs).into();
    Builder::before(op).op_with(
        "func.func",
        &[],
        &[],
        &[
            ("sym_name", mlir::string(context, program.name())),
            ("function_type", mlir::type_attr(ty)),
            ("arg_attrs", attributes(&parameters)),
            ("res_attrs", attributes(&program.outputs())),
        ],
        vec![region],
    );
    mlir::erase(op);
    Ok(())
}

impl<'c> Converter<'c, '_> {
    fn variable(&mut self, logical: i64) -> usize {
        self.variables.push(Variable { logical, same_as: self.variables.len() });
        self.variables.len() - 1
    }

    /// The extent of a variable with its padding.
    fn padded(&self, variable: usize) -> i64 {
        round_up(self.variables[variable].logical, self.program.vector_length().unwrap_or(1))
    }

    /// The extent of a variable, with one element of its padding if vectors as long as powers of two are
    /// full with that.
    fn in_vectors(&self, variable: usize) -> i64 {
        let Variable { logical, .. } = self.variables[variable];
        let rest = logical % self.program.vector_length().unwrap_or(1);
        let is_short_of_one = 1 < rest && ((rest + 1) as u64).is_power_of_two();
        logical + i64::from(is_short_of_one)
    }

    /// The variable that stands for all that are equal to one.
    fn find(&mut self, mut variable: usize) -> usize {
        while self.variables[variable].same_as != variable {
            // Halving keeps the paths short.
            let next = self.variables[variable].same_as;
            self.variables[variable].same_as = self.variables[next].same_as;
            variable = next;
        }
        variable
    }

    fn unify(&mut self, first: usize, second: usize) {
        let (first, second) = (self.find(first), self.find(second));
        self.variables[second].same_as = first;
    }

    /// The elements of a tensor in memory.
    fn read(&mut self, tensor: Val<'c>, logical: &[i64]) -> Term<'c> {
        let dims: Vec<_> = logical.iter().map(|extent| self.variable(*extent)).collect();
        let body = Scalar::Read(tensor, dims.clone());
        Term::elements(dims, body, 0, true)
    }

    /// The same with variables of its own.
    fn renamed(&mut self, term: &Term<'c>) -> Term<'c> {
        let mut names = HashMap::new();
        let dims = self.renamed_variables(&term.dims, &mut names);
        let sums = self.renamed_variables(&term.sums, &mut names);
        let body = self.renamed_body(&term.body, &mut names);
        let epilogue = term.epilogue.as_ref().map(|it| self.renamed_body(it, &mut names));
        Term { dims, sums, body, epilogue, ..*term }
    }

    fn renamed_variables(
        &mut self,
        variables: &[usize],
        names: &mut HashMap<usize, usize>,
    ) -> Vec<usize> {
        let mut rename = |variable: &usize| {
            let variable = self.find(*variable);
            *names
                .entry(variable)
                .or_insert_with(|| self.variable(self.variables[variable].logical))
        };
        variables.iter().map(&mut rename).collect()
    }

    fn renamed_body(
        &mut self,
        body: &Scalar<'c>,
        names: &mut HashMap<usize, usize>,
    ) -> Rc<Scalar<'c>> {
        Rc::new(match body {
            Scalar::Read(tensor, index) => {
                Scalar::Read(*tensor, self.renamed_variables(index, names))
            }
            Scalar::Folded => Scalar::Folded,
            Scalar::Operation(name, lhs, rhs) => {
                let lhs = self.renamed_body(lhs, names);
                Scalar::Operation(name, lhs, self.renamed_body(rhs, names))
            }
        })
    }

    /// The term of an operand, to be taken apart.
    fn operand(&mut self, op: Op<'c>, number: usize) -> Term<'c> {
        let value = mlir::operand(op, number);
        let term = self.terms[&mlir::value_key(value)].clone();
        match mlir::uses(value).len() {
            1 => term,
            _ => {
                for (tensor, _) in term.reads() {
                    self.read_once.remove(&mlir::value_key(tensor));
                }
                self.renamed(&term)
            }
        }
    }

    /// The term of a factor of a product: a product without sums, or a temporary.
    fn factor(&mut self, op: Op<'c>, number: usize) -> Term<'c> {
        let term = self.operand(op, number);
        let is_factor = term.sums.is_empty() && term.is_product;
        if is_factor { term } else { self.stored(term, op) }
    }

    /// The elements of a temporary tensor that holds a term. Its dimensions are in an order that keeps
    /// neighbours together.
    fn stored(&mut self, mut term: Term<'c>, op: Op<'c>) -> Term<'c> {
        let element = mlir::element_type(mlir::result(op, 0).r#type());
        let dims: Vec<_> = term.dims.iter().map(|it| self.find(*it)).collect();
        term.dims = self.layout(&term);
        let places: Vec<_> = dims
            .iter()
            .map(|dim| term.dims.iter().position(|it| it == dim).expect("a permutation"))
            .collect();
        let stored = self.stored_as_is(&term, element);
        self.read_once.extend(stored.reads().iter().map(|(tensor, _)| mlir::value_key(*tensor)));
        Term { dims: places.iter().map(|place| stored.dims[*place]).collect(), ..stored }
    }

    /// The dimensions of a term in the order of the largest tensor that it reads: what a sum takes away
    /// there makes room for the dimensions that come with it.
    fn layout(&mut self, term: &Term<'c>) -> Vec<usize> {
        let dims: Vec<_> = term.dims.iter().map(|it| self.find(*it)).collect();
        let mut reads = Vec::new();
        reads_of(&term.body, &mut reads);
        let reads: Vec<(i64, Vec<usize>)> = reads
            .into_iter()
            .map(|(tensor, index)| {
                (num_elements(tensor), index.iter().map(|it| self.find(*it)).collect())
            })
            .collect();
        let mut order: Vec<usize> = Vec::new();
        let mut add = |dim: usize| {
            if dims.contains(&dim) && !order.contains(&dim) {
                order.push(dim);
            }
        };
        let largest = reads.iter().max_by_key(|(size, _)| *size);
        let largest = largest.map(|(_, index)| index.clone()).unwrap_or_default();
        for variable in &largest {
            add(*variable);
            if !dims.contains(variable) {
                let with = reads.iter().filter(|(_, index)| index.contains(variable));
                with.flat_map(|(_, index)| index)
                    .filter(|it| !largest.contains(it))
                    .for_each(|it| add(*it));
            }
        }
        // Whatever else there is goes outside, where it breaks no neighbours up.
        let mut all: Vec<_> = dims.iter().copied().filter(|it| !order.contains(it)).collect();
        all.extend(order);
        all
    }

    /// The elements of a temporary tensor with the dimensions of a term, in their order.
    fn stored_as_is(&mut self, term: &Term<'c>, element: Type<'c>) -> Term<'c> {
        let logical: Vec<_> = term.dims.iter().map(|it| self.variables[*it].logical).collect();
        // Nothing is gained by more padding.
        let mut shape: Vec<_> = logical.iter().map(|extent| Some(*extent)).collect();
        if let (Some(extent), Some(lane)) = (shape.last_mut(), term.dims.last()) {
            *extent = Some(self.in_vectors(*lane));
        }
        let ty = mlir::tensor_type(&shape, element);
        self.note_size(ty);
        // A temporary that nothing reads any more, if there is one: memory that was used is in cache.
        let known = self.free.iter().position(|tensor| tensor.r#type() == ty);
        let init = match known {
            Some(known) => self.free.remove(known),
            None => self.builder.value("tensor.empty", &[], ty),
        };
        let tensor = self.emit(term, init);
        self.read(tensor, &logical)
    }

    /// Notes a tensor that will be stored.
    fn note_size(&mut self, ty: Type<'c>) {
        let width = i64::from(mlir::byte_width(mlir::element_type(ty)));
        let mut extents = mlir::shape(ty).into_iter().flatten();
        if extents.try_fold(width, i64::checked_mul).is_none() {
            self.too_large.get_or_insert(ty);
        }
    }

    /// A term whose factors are contiguous in the last dimension of a sum, which vectors run along: of
    /// factors that are much smaller than the sum, a transposed copy costs little.
    fn packed(&mut self, term: &Term<'c>) -> Rc<Scalar<'c>> {
        let Some(last) = term.dims.last().filter(|_| !term.sums.is_empty()) else {
            return Rc::clone(&term.body);
        };
        let lane = self.find(*last);
        let all: Vec<_> = term.dims.iter().chain(&term.sums).copied().collect();
        let points = all.into_iter().map(|it| self.variables[it].logical);
        let points = points.fold(1, i64::saturating_mul);
        self.packed_body(&Rc::clone(&term.body), lane, points / MIN_REUSE)
    }

    fn packed_body(&mut self, body: &Rc<Scalar<'c>>, lane: usize, max_size: i64) -> Rc<Scalar<'c>> {
        match &**body {
            Scalar::Operation(name, lhs, rhs) => {
                let lhs = self.packed_body(lhs, lane, max_size);
                Rc::new(Scalar::Operation(name, lhs, self.packed_body(rhs, lane, max_size)))
            }
            Scalar::Read(tensor, index) => {
                let found: Vec<_> = index.iter().map(|it| self.find(*it)).collect();
                let size = num_elements(*tensor);
                let is_once = found.iter().filter(|it| **it == lane).count() == 1;
                let place = found.iter().position(|it| *it == lane);
                match place.filter(|_| is_once && size <= max_size) {
                    Some(place) if place + 1 < found.len() => {
                        let logical: Vec<_> =
                            found.iter().map(|it| self.variables[*it].logical).collect();
                        let mut copy = self.read(*tensor, &logical);
                        let moved = copy.dims.remove(place);
                        copy.dims.push(moved);
                        let element = mlir::element_type(tensor.r#type());
                        let stored = self.stored_as_is(&copy, element);
                        let mut index = found;
                        let moved = index.remove(place);
                        index.push(moved);
                        for (stored, index) in stored.dims.iter().zip(index) {
                            self.unify(index, *stored);
                        }
                        stored.body
                    }
                    _ => Rc::clone(body),
                }
            }
            Scalar::Folded => Rc::clone(body),
        }
    }

    fn zeros(&mut self, ty: Type<'c>) -> Val<'c> {
        self.note_size(ty);
        let init = self.builder.value("tensor.empty", &[], ty);
        let shape: Vec<_> = mlir::shape(ty).into_iter().map(Option::unwrap_or_default).collect();
        let mut nest = GenericBuilder::new(self.ir, &shape);
        let index = (0..shape.len() as u32).map(|dim| self.ir.dim(dim)).collect();
        nest.write(init, index, Combiner::ASSIGN);
        let zero = |builder: &Builder<'c>, _: &[Val<'c>]| {
            Ok(vec![builder.float(mlir::element_type(ty), 0.0)])
        };
        let zeros = nest.build(&self.builder, zero).expect("the body has no error")[0];
        self.padding.insert(mlir::value_key(zeros), Padding::All);
        zeros
    }

    /// A new tensor for all elements of a value: of what is padded, the padding is zero.
    fn destination(&mut self, ty: Type<'c>) -> Val<'c> {
        self.note_size(ty);
        match self.program.vector_length() {
            Some(_) => self.zeros(ty),
            None => self.builder.value("tensor.empty", &[], ty),
        }
    }

    /// Emits the operation that calculates a term.
    fn emit(&mut self, term: &Term<'c>, init: Val<'c>) -> Val<'c> {
        let body = self.packed(term);
        let rank = term.dims.len();
        let pads = self.may_run_over_padding(term, &body);
        let bounds: Vec<_> = term
            .dims
            .iter()
            .enumerate()
            .map(|(number, variable)| {
                let is_lane = number + 1 == rank;
                if pads && is_lane {
                    self.in_vectors(*variable)
                } else {
                    self.variables[*variable].logical
                }
            })
            .collect();
        let mut nest = GenericBuilder::new(self.ir, &bounds);
        let mut index: HashMap<usize, Expr> = HashMap::new();
        for (number, variable) in term.dims.iter().enumerate() {
            let variable = self.find(*variable);
            index.insert(variable, self.ir.dim(number as u32));
        }
        for variable in &term.sums {
            let variable = self.find(*variable);
            index.insert(variable, nest.range(self.variables[variable].logical));
        }
        let mut reads: Vec<(Val<'c>, Vec<Expr>)> = Vec::new();
        let body = self.steps(&body, &index, &mut reads);
        let epilogue = term.epilogue.as_ref().map(|it| self.steps(it, &index, &mut reads));
        for (tensor, index) in reads {
            nest.read(tensor, index);
        }
        let combiner = if term.sums.is_empty() { Combiner::ASSIGN } else { SUM };
        nest.write(init, (0..rank as u32).map(|dim| self.ir.dim(dim)).collect(), combiner);
        let generic = nest.build_generic(&self.builder, epilogue.is_some());
        fill(&self.builder, generic.body(), &body, 0);
        if let (Some(block), Some(epilogue)) = (generic.epilogue(), epilogue) {
            // The sum comes before the elements.
            fill(&self.builder, block, &epilogue, 1);
        }
        let result = mlir::result(generic.op(), 0);
        if pads {
            self.padding.insert(mlir::value_key(result), Padding::Rows);
        }
        for (tensor, _) in term.reads() {
            if self.read_once.remove(&mlir::value_key(tensor)) {
                self.free.push(tensor);
            }
        }
        result
    }

    /// Whether all that is read beyond the last dimension of a term is zero.
    fn may_run_over_padding(&mut self, term: &Term<'c>, body: &Rc<Scalar<'c>>) -> bool {
        let Some(lane) = term.dims.last().map(|lane| self.find(*lane)) else { return true };
        let packed = Term { body: Rc::clone(body), ..term.clone() };
        packed.reads().into_iter().all(|(tensor, index)| {
            let index: Vec<_> = index.iter().map(|it| self.find(*it)).collect();
            let place = index.iter().position(|it| *it == lane);
            match self.padding.get(&mlir::value_key(tensor)) {
                Some(Padding::All) => true,
                Some(Padding::Rows) => place.is_none_or(|place| place + 1 == index.len()),
                None => place.is_none(),
            }
        })
    }

    /// The steps that calculate a body, the last one its value; equal reads are one.
    fn steps(
        &mut self,
        body: &Rc<Scalar<'c>>,
        index: &HashMap<usize, Expr>,
        reads: &mut Vec<(Val<'c>, Vec<Expr>)>,
    ) -> Vec<Step> {
        fn visit<'c>(
            converter: &mut Converter<'c, '_>,
            body: &Rc<Scalar<'c>>,
            index: &HashMap<usize, Expr>,
            reads: &mut Vec<(Val<'c>, Vec<Expr>)>,
            steps: &mut Vec<Step>,
        ) -> usize {
            let step = match &**body {
                Scalar::Read(tensor, variables) => {
                    let place = variables.iter().map(|it| index[&converter.find(*it)]).collect();
                    let read = (*tensor, place);
                    let known = reads.iter().position(|known| *known == read);
                    Step::Read(known.unwrap_or_else(|| {
                        reads.push(read);
                        reads.len() - 1
                    }))
                }
                Scalar::Folded => Step::Folded,
                Scalar::Operation(name, lhs, rhs) => {
                    let lhs = visit(converter, lhs, index, reads, steps);
                    Step::Operation(name, lhs, visit(converter, rhs, index, reads, steps))
                }
            };
            steps.push(step);
            steps.len() - 1
        }
        let mut steps = Vec::new();
        visit(self, body, index, reads, &mut steps);
        steps
    }

    fn convert(&mut self, op: Op<'c>) -> Result<(), Report<'c>> {
        let elementwise = |name| (name, 0, 1);
        let (name, first, second) = match mlir::name(op) {
            "tml.return" => {
                let results = mlir::operands(op);
                let results = results.into_iter().map(|value| self.tensor(value));
                let results = results.collect::<Vec<_>>();
                self.builder.op("func.return", &results, &[]);
                return Ok(());
            }
            "tml.undef" => {
                let result = mlir::result(op, 0);
                let logical = match mlir::integers_attr(op, "extents") {
                    found if found.is_empty() => extents(result),
                    found => found,
                };
                let zeros = self.zeros(result.r#type());
                let term = self.read(zeros, &logical);
                self.terms.insert(mlir::value_key(result), term);
                let name = mlir::string_attr(op, "name").unwrap_or_default();
                self.held.insert(name, (zeros, result));
                return Ok(());
            }
            "tml.assign" => {
                self.assign(op);
                return Ok(());
            }
            "tml.product" => {
                let (lhs, rhs) = (self.factor(op, 0), self.factor(op, 1));
                let dims = [lhs.dims, rhs.dims].concat();
                let operations = lhs.operations + rhs.operations + 1;
                let body = Scalar::Operation("arith.mulf", lhs.body, rhs.body);
                self.finish(op, Term::elements(dims, body, operations, true));
                return Ok(());
            }
            "tml.contract" => {
                let mut term = self.operand(op, 0);
                if term.epilogue.is_some() {
                    term = self.stored(term, op);
                }
                let [first, second] = dims(op).expect("verified");
                self.unify(term.dims[first], term.dims[second]);
                term.dims.remove(second);
                term.sums.push(term.dims.remove(first));
                self.finish(op, term);
                return Ok(());
            }
            "tml.transpose" => {
                let mut term = self.operand(op, 0);
                let [first, second] = dims(op).expect("verified");
                term.dims.swap(first, second);
                self.finish(op, term);
                return Ok(());
            }
            "tml.add" => elementwise("arith.addf"),
            "tml.sub" => elementwise("arith.subf"),
            "tml.mul" | "tml.smul" => elementwise("arith.mulf"),
            "tml.div" | "tml.sdiv" => elementwise("arith.divf"),
            _ => return Err(Report::op_error(op, "has no form in indexing maps")),
        };
        let (mut lhs, mut rhs) = (self.operand(op, first), self.operand(op, second));
        // The sum of a scalar is the same for all elements, and that of two operands are two.
        if !lhs.sums.is_empty() && lhs.dims.len() < rhs.dims.len() {
            lhs = self.stored(lhs, op);
        }
        if !rhs.sums.is_empty() && (!lhs.sums.is_empty() || rhs.dims.len() < lhs.dims.len()) {
            rhs = self.stored(rhs, op);
        }
        for (left, right) in lhs.dims.iter().zip(&rhs.dims) {
            self.unify(*left, *right);
        }
        let value = Scalar::Operation(name, lhs.value(), rhs.value());
        let operations = lhs.operations + rhs.operations + 1;
        let dims = if lhs.dims.is_empty() { rhs.dims } else { lhs.dims };
        let sum = if lhs.sums.is_empty() { (rhs.sums, rhs.body) } else { (lhs.sums, lhs.body) };
        self.finish(
            op,
            match sum {
                (sums, _) if sums.is_empty() => Term::elements(dims, value, operations, false),
                (sums, body) => {
                    let epilogue = Some(Rc::new(value));
                    Term { dims, sums, body, epilogue, operations, is_product: false }
                }
            },
        );
        Ok(())
    }

    /// Notes the term of a result; what would be calculated several times becomes a temporary.
    fn finish(&mut self, op: Op<'c>, term: Term<'c>) {
        let result = mlir::result(op, 0);
        let is_shared = 1 < mlir::uses(result).len();
        let is_costly = !term.sums.is_empty()
            || MAX_RECOMPUTED < term.operations && !term.is_larger_than_reads(&self.variables);
        let is_long = MAX_OPERATIONS < term.operations;
        let term = if is_long || is_shared && is_costly { self.stored(term, op) } else { term };
        self.terms.insert(mlir::value_key(result), term);
    }

    /// The tensor that holds a value which the program returns.
    fn tensor(&mut self, value: Val<'c>) -> Val<'c> {
        let term = self.terms[&mlir::value_key(value)].clone();
        let is_whole = |index: &[usize]| index == term.dims;
        match &*term.body {
            Scalar::Read(tensor, index)
                if term.sums.is_empty() && is_whole(index) && tensor.r#type() == value.r#type() =>
            {
                *tensor
            }
            _ => {
                let init = self.destination(value.r#type());
                self.emit(&term, init)
            }
        }
    }

    /// A statement: the tensor that receives its value, and the operation.
    fn assign(&mut self, op: Op<'c>) {
        let result = mlir::result(op, 0);
        let term = self.operand(op, 0);
        let name = mlir::string_attr(op, "name").unwrap_or_default();
        let logical: Vec<_> = term.dims.iter().map(|it| self.variables[*it].logical).collect();
        let before = self.held.get(name).copied();
        let is_padded = self.program.vector_length().is_some();
        let hazard = before.map(|(tensor, value)| self.hazard(op, &term, tensor, value));
        let function = self.program.name();
        let init = match (before, hazard) {
            (Some((tensor, _)), Some(Hazard::InPlace)) => {
                let arguments = [("Variable", name)];
                let kind = RemarkKind::Passed;
                remark(op.location(), kind, PASS.argument, "in-place", function, &arguments);
                Some(tensor)
            }
            (_, Some(Hazard::Conflict(reason))) => {
                let arguments = [("Variable", name), ("Reason", reason.as_str())];
                let kind = RemarkKind::Missed;
                remark(op.location(), kind, PASS.argument, "temporary", function, &arguments);
                None
            }
            (Some((tensor, _)), _) if is_padded => Some(tensor),
            _ => None,
        };
        let ty = result.r#type();
        let init = init.unwrap_or_else(|| self.destination(ty));
        let tensor = self.emit(&term, init);
        // What the variable held before had zeros there, or the zeros that it starts from have.
        self.padding.insert(mlir::value_key(tensor), Padding::All);
        let term = self.read(tensor, &logical);
        self.terms.insert(mlir::value_key(result), term);
        self.held.insert(name, (tensor, result));
    }

    /// Whether a statement may overwrite what its variable holds, element by element.
    fn hazard(&mut self, op: Op<'c>, term: &Term<'c>, tensor: Val<'c>, value: Val<'c>) -> Hazard {
        let mut reads = term.reads();
        reads.retain(|(read, _)| *read == tensor);
        if reads.is_empty() {
            return Hazard::None;
        }
        if let Some(later) = self.later_use(op, value) {
            return Hazard::Conflict(format!("its old value is used later, by '{later}'"));
        }
        // A variable of one value makes no difference.
        let written: Vec<_> = term.dims.iter().map(|it| self.find(*it)).collect();
        for (_, index) in reads {
            let read: Vec<_> = index.into_iter().map(|it| self.find(it)).collect();
            let is_same =
                |(read, written): (&usize, &usize)| read == written || self.padded(*read) == 1;
            if !read.iter().zip(&written).all(is_same) {
                let sums: Vec<_> = term.sums.clone();
                let sums: Vec<_> = sums.into_iter().map(|it| self.find(it)).collect();
                let show = |variable: &usize| {
                    let place = |list: &[usize], letter: &str| {
                        let place = list.iter().position(|it| it == variable)?;
                        Some(format!("{letter}{place}"))
                    };
                    place(&written, "d").or_else(|| place(&sums, "s")).unwrap_or_default()
                };
                let [read, written] = [&read, &written]
                    .map(|list| list.iter().map(show).collect::<Vec<_>>().join(", "));
                return Hazard::Conflict(format!(
                    "element ({read}) is read where ({written}) is written"
                ));
            }
        }
        if !term.sums.is_empty() {
            return Hazard::Conflict("a sum is stored before all its terms are read".to_string());
        }
        Hazard::InPlace
    }

    /// The name of a statement after this one that uses a value, through expressions.
    fn later_use(&self, op: Op<'c>, value: Val<'c>) -> Option<String> {
        let here = self.places[&mlir::op_key(op)];
        let mut seen = HashSet::new();
        let mut pending = vec![value];
        while let Some(value) = pending.pop() {
            for (user, _) in mlir::uses(value) {
                if mlir::is(user, "tml.return") {
                    return Some("the result".to_string());
                }
                if !mlir::is(user, "tml.assign") {
                    if seen.insert(mlir::op_key(user)) {
                        pending.push(mlir::result(user, 0));
                    }
                } else if here < self.places[&mlir::op_key(user)] {
                    return mlir::string_attr(user, "name").map(str::to_string);
                }
            }
        }
        None
    }
}

/// What stands against overwriting a variable while its statement is evaluated.
enum Hazard {
    /// The statement does not read the variable.
    None,
    /// It reads each element where it writes it.
    InPlace,
    /// It needs a temporary, for this reason.
    Conflict(String),
}

/// A step of a body, on the results of earlier steps.
enum Step {
    Read(usize),
    Folded,
    Operation(&'static str, usize, usize),
}

/// The elements that an expression reads.
fn reads_of<'c>(body: &Scalar<'c>, reads: &mut Vec<(Val<'c>, Vec<usize>)>) {
    match body {
        Scalar::Read(tensor, index) => reads.push((*tensor, index.clone())),
        Scalar::Folded => {}
        Scalar::Operation(_, lhs, rhs) => {
            reads_of(lhs, reads);
            reads_of(rhs, reads);
        }
    }
}

/// Fills the block of an operation: its arguments from `first_read` on are the elements read.
fn fill<'c>(builder: &Builder<'c>, block: Blk<'c>, steps: &[Step], first_read: usize) {
    let inside = Builder::at_end(builder.context, block, builder.location);
    let arguments = mlir::arguments(block);
    let mut values: Vec<Val<'c>> = Vec::new();
    for step in steps {
        values.push(match *step {
            Step::Read(number) => arguments[first_read + number],
            Step::Folded => arguments[0],
            Step::Operation(name, lhs, rhs) => {
                build_operation(&inside, name, values[lhs], values[rhs])
            }
        });
    }
    imap::build_yield(&inside, &values[values.len() - 1..]);
}

fn build_operation<'c>(
    builder: &Builder<'c>,
    name: &'static str,
    lhs: Val<'c>,
    rhs: Val<'c>,
) -> Val<'c> {
    let ty = lhs.r#type();
    let value = builder.value(name, &[lhs, rhs], ty);
    if name != "arith.divf" {
        return value;
    }
    // 0 / 0 is 0 (definition 8); of other dividends, a division by 0 is undefined.
    let is_zero = builder.compare_float("oeq", lhs, builder.float(ty, 0.0));
    builder.select(is_zero, lhs, value)
}
