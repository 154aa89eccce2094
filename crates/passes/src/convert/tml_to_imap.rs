//! `convert-tml-to-imap`: convert tensor expressions without indices to `imap.generic`.
//!
//! This pass converts a `tml.program` to a `func.func` on tensors, with the same arguments and results. An element-wise
//! operation becomes an `imap.generic`. Products and transpositions only compose indices, and contractions replace pairs of
//! dimension variables by range variables: all contractions of a product become one fold, and no outer product is
//! stored for it. A fold that is a factor or has several uses is stored.
//!
//! Later passes decide everything else. `imap-fuse` composes element-wise operations into their users or makes them the
//! epilogue of a fold, and `imap-pack` copies factors that are not contiguous. As statements are values, bufferization
//! decides which ones are evaluated in place.
//!
//! Division is controlled: if the dividend is 0, the quotient is 0 for every divisor.
//!
//! The pass makes two decisions, because no other pass changes the types of tensors:
//!
//! - A temporary has its dimensions in the order of the largest tensor that it is computed from, unless it is a result.
//!   Otherwise each contraction of a chain would move one dimension to the front, and rows would not be contiguous.
//! - In a padded program (`tml-pad`), operations run over extents without padding, except that rows have one element
//!   more if that fills a vector: 11 elements take one vector of 8 and one of 4. Sums skip padding, because its terms are
//!   zero. Results are written to the arguments of their variables, whose padding is zero.
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

use crate::convert::generic_builder::GenericBuilder;
use melior::ir::{Attribute, Type, ValueLike, operation::OperationLike, r#type::FunctionType};
use std::collections::HashMap;
use tc_dialects::{
    imap::{Combiner, CombinerKind},
    mlir::{self, Builder, Op, Val},
    pass::{Failure, PassInfo, PassRun},
    report::Report,
    tml::{Parameter, Program, dims, extents, num_elements},
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

/// Steps of one body. A longer product is stored.
const MAX_STEPS: usize = 128;

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

/// A step of a body. Its operands are the values of the last steps that no other step has used.
#[derive(Clone)]
enum Step<'c> {
    /// An element of a tensor, at an index of variables.
    Read(Val<'c>, Vec<usize>),
    Zero,
    /// An operation of `arith` on two numbers.
    Apply(&'static str),
}

/// A tensor as an expression of its indices.
#[derive(Clone)]
struct Term<'c> {
    element: Type<'c>,
    /// The extents of the variables, without padding.
    extents: Vec<i64>,
    /// The variables of the dimensions.
    dims: Vec<usize>,
    /// The variables that are summed over.
    sums: Vec<usize>,
    /// The body, in postfix order.
    steps: Vec<Step<'c>>,
}

impl<'c> Term<'c> {
    /// A tensor of these extents. All of its elements are `step`, which gets their indices.
    fn elements(ty: Type<'c>, extents: &[i64], step: impl FnOnce(Vec<usize>) -> Step<'c>) -> Self {
        let dims: Vec<_> = (0..extents.len()).collect();
        let (element, extents) = (mlir::element_type(ty), extents.to_vec());
        Self { element, extents, steps: vec![step(dims.clone())], dims, sums: Vec::new() }
    }

    fn read(tensor: Val<'c>, extents: &[i64]) -> Self {
        Self::elements(tensor.r#type(), extents, |index| Step::Read(tensor, index))
    }

    /// The extents of the dimensions.
    fn shape(&self) -> Vec<i64> {
        self.dims.iter().map(|it| self.extents[*it]).collect()
    }

    fn reads(&self) -> impl Iterator<Item = (Val<'c>, &[usize])> {
        self.steps.iter().filter_map(|step| match step {
            Step::Read(tensor, index) => Some((*tensor, &index[..])),
            Step::Zero | Step::Apply(_) => None,
        })
    }

    /// The tensor that it is equal to, if that is known.
    fn tensor(&self) -> Option<Val<'c>> {
        match &self.steps[..] {
            [Step::Read(tensor, index)] if *index == self.dims => Some(*tensor),
            _ => None,
        }
    }

    fn substitute(&mut self, variable: impl Fn(usize) -> usize) {
        let indices = self.steps.iter_mut().filter_map(|step| match step {
            Step::Read(_, index) => Some(index),
            Step::Zero | Step::Apply(_) => None,
        });
        let all = indices.chain([&mut self.dims, &mut self.sums]).flatten();
        all.for_each(|it| *it = variable(*it));
    }

    /// The dimensions in the order of the largest tensor that is read. The dimensions of a factor take the place of the one
    /// that a sum with it removes. Others go outside, where they separate no neighbours.
    fn layout(&self) -> Vec<usize> {
        let largest = self.reads().max_by_key(|(tensor, _)| num_elements(*tensor));
        let largest = largest.map_or(&[][..], |(_, index)| index);
        let mut order: Vec<usize> = Vec::new();
        for variable in largest {
            if self.sums.contains(variable) {
                let factors = self.reads().map(|(_, it)| it).filter(|it| it.contains(variable));
                order.extend(factors.flatten().filter(|it| !largest.contains(it)));
            }
            order.push(*variable);
        }
        let mut layout = self.dims.clone();
        layout.sort_by_key(|dim| order.iter().position(|it| it == dim));
        layout
    }
}

struct Converter<'c, 'i> {
    ir: &'i Context,
    /// The operation that is converted.
    op: Op<'c>,
    builder: Builder<'c>,
    /// The multiple that padded extents are rounded up to.
    vector_length: i64,
    /// The values of the program.
    terms: HashMap<usize, Term<'c>>,
}

fn convert<'c>(program: Program<'c>) -> Result<(), Report<'c>> {
    let op = program.op();
    let context = mlir::context_of(op);
    let (parameters, outputs) = (program.parameters(), program.outputs());
    let types = |values: &[Val<'c>]| values.iter().map(|it| it.r#type()).collect::<Vec<_>>();
    let (inputs, results) = (types(&program.arguments()), types(&program.results()));
    let (region, block) = mlir::region_with_block(&inputs, op.location());
    mlir::name_arguments(context, block, parameters.iter().map(|parameter| parameter.name));
    let builder = Builder::at_end(context, block, op.location());
    let (ir, vector_length) = (&Context::new(), program.vector_length().unwrap_or(1));
    let mut converter = Converter { ir, op, builder, vector_length, terms: HashMap::new() };
    let arguments = mlir::arguments(block);
    for ((old, new), parameter) in program.arguments().iter().zip(&arguments).zip(&parameters) {
        converter.check_size(new.r#type())?;
        let logical = parameter.extents.clone().unwrap_or_else(|| extents(*old));
        converter.terms.insert(mlir::value_key(*old), Term::read(*new, &logical));
    }
    for op in mlir::ops(program.body()) {
        (converter.op, converter.builder) = (op, builder.located(op.location()));
        if !mlir::is(op, "tml.return") {
            let term = converter.term()?;
            converter.terms.insert(mlir::value_key(mlir::result(op, 0)), term);
            continue;
        }
        let returned = outputs.iter().zip(0..).map(|(output, number)| {
            let argument = parameters.iter().position(|it| it.name == output.name);
            converter.result(number, argument.map(|argument| arguments[argument]))
        });
        let returned = returned.collect::<Result<Vec<_>, _>>()?;
        converter.builder.op("func.return", &returned, &[]);
    }
    let attributes = |parameters: &[Parameter]| {
        let attribute = |parameter: &Parameter| {
            let mut entries = vec![("tc.name", mlir::string(context, parameter.name))];
            if parameter.inout {
                entries.push(("tc.inout", Attribute::unit(context)));
            }
            mlir::dictionary(context, &entries)
        };
        mlir::array(context, &parameters.iter().map(attribute).collect::<Vec<_>>())
    };
    let ty: Type = FunctionType::new(context, &inputs, &results).into();
    let attributes = [
        ("sym_name", mlir::string(context, program.name())),
        ("function_type", mlir::type_attr(ty)),
        ("arg_attrs", attributes(&parameters)),
        ("res_attrs", attributes(&outputs)),
    ];
    Builder::before(op).op_with("func.func", &[], &[], &attributes, vec![region]);
    mlir::erase(op);
    Ok(())
}

impl<'c> Converter<'c, '_> {
    /// The result of the operation.
    fn term(&mut self) -> Result<Term<'c>, Report<'c>> {
        let op = self.op;
        let uses = mlir::uses(mlir::result(op, 0));
        match mlir::name(op) {
            "tml.undef" => {
                let result = mlir::result(op, 0);
                let logical = match mlir::integers_attr(op, "extents") {
                    found if found.is_empty() => extents(result),
                    found => found,
                };
                Ok(Term::elements(result.r#type(), &logical, |_| Step::Zero))
            }
            "tml.assign" => {
                let term = self.operand(0);
                let is_returned = |(user, _): &(Op, usize)| mlir::is(*user, "tml.return");
                match uses.iter().any(is_returned) && term.tensor().is_none() {
                    true => Ok(Term::read(self.store(&term)?, &term.shape())),
                    false => self.view(0),
                }
            }
            "tml.product" => {
                let (mut product, mut rhs) = (self.factor(0)?, self.factor(1)?);
                let first = product.extents.len();
                rhs.substitute(|it| first + it);
                product.extents.extend(rhs.extents);
                product.dims.extend(rhs.dims);
                product.steps.extend(rhs.steps);
                product.steps.push(Step::Apply("arith.mulf"));
                if product.steps.len() <= MAX_STEPS { Ok(product) } else { self.stored(&product) }
            }
            "tml.contract" => {
                let mut term = self.operand(0);
                let [first, second] = dims(op).expect("verified");
                let (replaced, kept) = (term.dims.remove(second), term.dims.remove(first));
                term.sums.push(kept);
                term.substitute(|it| if it == replaced { kept } else { it });
                if uses.len() == 1 { Ok(term) } else { self.stored(&term) }
            }
            "tml.transpose" => {
                let mut term = self.operand(0);
                let [first, second] = dims(op).expect("verified");
                term.dims.swap(first, second);
                Ok(term)
            }
            "tml.add" => self.elementwise("arith.addf"),
            "tml.sub" => self.elementwise("arith.subf"),
            "tml.mul" | "tml.smul" => self.elementwise("arith.mulf"),
            "tml.div" | "tml.sdiv" => self.elementwise("arith.divf"),
            _ => Err(Report::op_error(op, "has no form in indexing maps")),
        }
    }

    fn operand(&self, number: usize) -> Term<'c> {
        self.terms[&mlir::value_key(mlir::operand(self.op, number))].clone()
    }

    /// An operand without sums.
    fn factor(&self, number: usize) -> Result<Term<'c>, Report<'c>> {
        let term = self.operand(number);
        if term.sums.is_empty() { Ok(term) } else { self.stored(&term) }
    }

    /// An operand as elements of one tensor or as a constant. Its variables are its dimensions in order.
    fn view(&self, number: usize) -> Result<Term<'c>, Report<'c>> {
        let mut term = self.factor(number)?;
        if term.steps.len() != 1 {
            term = self.stored(&term)?;
        }
        let (dims, extents) = (term.dims.clone(), term.shape());
        term.substitute(|it| dims.iter().position(|dim| *dim == it).expect("no sums"));
        Ok(Term { extents, ..term })
    }

    /// An operation on elements with equal indices. A scalar is the same for all of them.
    fn elementwise(&self, name: &'static str) -> Result<Term<'c>, Report<'c>> {
        let (lhs, rhs) = (self.view(0)?, self.view(1)?);
        let steps = [&lhs.steps[..], &rhs.steps, &[Step::Apply(name)]].concat();
        let larger = if lhs.dims.is_empty() { rhs } else { lhs };
        self.stored(&Term { steps, ..larger })
    }

    /// The elements of a tensor that holds a term, with its dimensions in another order.
    fn stored(&self, term: &Term<'c>) -> Result<Term<'c>, Report<'c>> {
        let permuted = Term { dims: term.layout(), ..term.clone() };
        let place = |dim| permuted.dims.iter().position(|it| it == dim).expect("a permutation");
        let dims = term.dims.iter().map(place).collect();
        Ok(Term { dims, ..Term::read(self.store(&permuted)?, &permuted.shape()) })
    }

    /// A new tensor that holds a term.
    fn store(&self, term: &Term<'c>) -> Result<Val<'c>, Report<'c>> {
        let shape: Vec<_> = self.domain(term).into_iter().map(Some).collect();
        let ty = mlir::tensor_type(&shape, term.element);
        self.check_size(ty)?;
        Ok(self.write(term, self.builder.value("tensor.empty", &[], ty)))
    }

    /// Rejects a type of tensors that no memory can hold.
    fn check_size(&self, ty: Type<'c>) -> Result<(), Report<'c>> {
        let width = i64::from(mlir::byte_width(mlir::element_type(ty)));
        let mut extents = mlir::shape(ty).into_iter().flatten();
        if extents.try_fold(width, i64::checked_mul).is_some() {
            return Ok(());
        }
        let message = format!("needs a tensor of type '{ty}', which no memory can hold");
        Err(Report::op_error(self.op, message).note(None, "try smaller extents"))
    }

    /// The tensor of a result. `argument` is what its variable holds before the program.
    fn result(&self, number: usize, argument: Option<Val<'c>>) -> Result<Val<'c>, Report<'c>> {
        let (term, value) = (self.operand(number), mlir::operand(self.op, number));
        let tensor = term.tensor().map_or_else(|| self.store(&term), Ok)?;
        if tensor.r#type() == value.r#type() {
            return Ok(tensor);
        }
        let zeros = || Term::elements(value.r#type(), &extents(value), |_| Step::Zero);
        let padded = argument.map_or_else(|| self.store(&zeros()), Ok)?;
        Ok(self.write(&Term::read(tensor, &term.shape()), padded))
    }

    /// The extents of the points that are computed of a term.
    fn domain(&self, term: &Term<'c>) -> Vec<i64> {
        let mut shape = term.shape();
        let Some((extent, lane)) = shape.last_mut().zip(term.dims.last()) else { return shape };
        let has_padding = |(tensor, index): (Val<'c>, &[usize])| {
            let mut dims = index.iter().zip(extents(tensor));
            dims.all(|(variable, stored)| variable != lane || *extent < stored)
        };
        let rest = *extent % self.vector_length;
        let is_power_less_one = 1 < rest && rest & (rest + 1) == 0;
        if is_power_less_one && term.reads().all(has_padding) {
            *extent += 1;
        }
        shape
    }

    /// Writes the elements of a term to a tensor.
    fn write(&self, term: &Term<'c>, init: Val<'c>) -> Val<'c> {
        let mut nest = GenericBuilder::new(self.ir, &self.domain(term));
        let dims: Vec<_> = (0..term.dims.len() as u32).map(|dim| self.ir.dim(dim)).collect();
        let mut index: HashMap<_, Expr> = term.dims.iter().zip(dims.iter().copied()).collect();
        for variable in &term.sums {
            index.insert(variable, nest.range(term.extents[*variable]));
        }
        for (tensor, variables) in term.reads() {
            nest.read(tensor, variables.iter().map(|it| index[it]).collect());
        }
        nest.write(init, dims, if term.sums.is_empty() { Combiner::ASSIGN } else { SUM });
        let body = |builder: &Builder<'c>, elements: &[Val<'c>]| {
            let (mut elements, mut values) = (elements.iter().copied(), Vec::new());
            for step in &term.steps {
                let value = match step {
                    Step::Read(..) => elements.next(),
                    Step::Zero => Some(builder.float(term.element, 0.0)),
                    Step::Apply(name) => {
                        let rhs = values.pop();
                        let operands = values.pop().zip(rhs);
                        operands.map(|(lhs, rhs)| build_operation(builder, name, lhs, rhs))
                    }
                };
                values.extend(value);
            }
            Ok(values)
        };
        nest.build(&self.builder, body).expect("the body has no error")[0]
    }
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
