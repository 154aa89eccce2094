//! Emits the expressions of one statement into a block and the regions below it.
//!
//! Index expressions are in [`super::index`]. Recursion is as deep as the expressions and
//! the lets that are emitted under conditions, and limited by [`MAX_DEPTH`].

use super::{
    read_order::{LetForm, ReadOrder},
    scalar::{self, Literal},
};
use crate::{
    mlir::{self, Blk, Builder, Val},
    report::{Report, location},
    tc::syntax::{
        ScalarType, Type,
        checked::{ArithOp, CompareOp, Expr, ExprKind, Function, Source, Statement},
        parser,
    },
    text::{Reason, Severity, SourceFile, Span},
};
use melior::{
    Context,
    ir::{Attribute, Location, Region, ValueLike},
};
use std::collections::HashMap;
use tc_ir::Interval;

/// The deepest nesting of expressions, through the lets that are emitted under conditions. A
/// checked expression is up to twice as high as the parsed one, because of casts.
const MAX_DEPTH: usize = 3 * parser::MAX_HEIGHT as usize;

/// The most expressions of one region that are emitted for lets under conditions. Such a
/// let is emitted where it is used, so that a chain of them could grow exponentially.
const MAX_REPEATED: usize = 1 << 18;

/// Boxed, because every level of the recursion holds some of these.
pub(super) type Emitted<'c, T> = Result<T, Box<Report<'c>>>;

/// What the statements of one function share.
pub(super) struct Scope<'a, 'c> {
    pub(super) context: &'c Context,
    pub(super) source: &'a SourceFile,
    pub(super) function: &'a Function,
    /// The block of the `tc.def`.
    pub(super) block: Blk<'c>,
    /// The inputs.
    pub(super) inputs: Vec<Val<'c>>,
    /// The results of the statements so far.
    pub(super) results: Vec<Val<'c>>,
    /// The size variables that were needed so far.
    pub(super) sizes: HashMap<usize, Val<'c>>,
    /// The extents that were needed so far, by statement and dimension.
    pub(super) extents: HashMap<(usize, usize), Val<'c>>,
}

impl<'c> Scope<'_, 'c> {
    pub(super) fn location(&self, span: Span) -> Location<'c> {
        location(self.context, self.source, span)
    }

    /// Creates at the end of the `tc.def`, which is before the statement being emitted.
    pub(super) fn builder(&self, span: Span) -> Builder<'c> {
        Builder::at_end(self.context, self.block, self.location(span))
    }

    /// The value of a size variable.
    pub(super) fn size(&mut self, number: usize, span: Span) -> Val<'c> {
        if let Some(value) = self.sizes.get(&number) {
            return *value;
        }
        let builder = self.builder(span);
        let name = mlir::string(self.context, &self.function.sizes[number].name);
        let ty = builder.index_type();
        let value = builder.value_with("tc.size", &[], ty, &[("name", name)]);
        self.sizes.insert(number, value);
        value
    }

    /// The extent of a dimension of the result of a statement.
    pub(super) fn extent(&mut self, statement: usize, dim: usize, span: Span) -> Val<'c> {
        if let Some(value) = self.extents.get(&(statement, dim)) {
            return *value;
        }
        let builder = self.builder(span);
        let dim_attribute = mlir::i64_attr(self.context, dim as i64);
        let value = builder.value_with(
            "tc.extent",
            &[self.results[statement]],
            builder.index_type(),
            &[("dim", dim_attribute)],
        );
        self.extents.insert((statement, dim), value);
        value
    }
}

/// The source text of a span on one line, without comments.
pub(super) fn source_text(source: &SourceFile, span: Span) -> String {
    let text = source.text().get(span.start as usize..span.end as usize).unwrap_or_default();
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A block that is being filled, and the lets that were emitted into it.
struct Frame<'c> {
    block: Blk<'c>,
    values: HashMap<usize, Val<'c>>,
    indices: HashMap<usize, tc_ir::Expr>,
}

impl<'c> Frame<'c> {
    fn new(block: Blk<'c>) -> Self {
        Self { block, values: HashMap::new(), indices: HashMap::new() }
    }
}

/// Emits expressions of a statement.
pub(super) struct Emitter<'s, 'a, 'c> {
    pub(super) scope: &'s mut Scope<'a, 'c>,
    statement: &'a Statement,
    read_order: &'s ReadOrder,
    /// The values of the index variables; empty where none may occur.
    variables: Vec<Val<'c>>,
    pub(super) ir: tc_ir::Context,
    /// What the dimension variables of index expressions stand for, and in which interval
    /// they are.
    pub(super) leaves: Vec<(Val<'c>, Interval)>,
    pub(super) leaf_numbers: HashMap<usize, u32>,
    /// The block to be filled and those around it, innermost last.
    frames: Vec<Frame<'c>>,
    depth: usize,
    /// How many lets under conditions are being emitted, one in the other.
    let_depth: usize,
    num_repeated: usize,
}

impl<'s, 'a, 'c> Emitter<'s, 'a, 'c> {
    /// Emits at the end of `block`, beginning with the lets that the order puts first.
    pub(super) fn new(
        scope: &'s mut Scope<'a, 'c>,
        statement: &'a Statement,
        read_order: &'s ReadOrder,
        block: Blk<'c>,
        variables: Vec<Val<'c>>,
    ) -> Emitted<'c, Self> {
        let mut emitter = Self {
            scope,
            statement,
            read_order,
            variables,
            ir: tc_ir::Context::new(),
            leaves: Vec::new(),
            leaf_numbers: HashMap::new(),
            frames: vec![Frame::new(block)],
            depth: 0,
            let_depth: 0,
            num_repeated: 0,
        };
        for form in read_order.eager(&statement.lets) {
            emitter.bind(form)?;
        }
        Ok(emitter)
    }

    pub(super) fn builder(&self, span: Span) -> Builder<'c> {
        let location = self.scope.location(span);
        Builder::at_end(self.scope.context, self.frame().block, location)
    }

    fn frame(&self) -> &Frame<'c> {
        self.frames.last().expect("the outermost frame stays")
    }

    fn frame_mut(&mut self) -> &mut Frame<'c> {
        self.frames.last_mut().expect("the outermost frame stays")
    }

    /// The value of an index variable.
    pub(super) fn variable(&self, number: usize) -> Val<'c> {
        *self.variables.get(number).expect("bounds with index variables are refused before")
    }

    fn limit<T>(&self, span: Span, message: String) -> Emitted<'c, T> {
        Err(Box::new(Report::at(
            self.scope.location(span),
            Severity::Error,
            format!("{message} [{}]", Reason::Limit.code()),
        )))
    }

    /// Goes one level down; to be followed by [`leave`](Self::leave) unless an error ends it all.
    pub(super) fn enter(&mut self, span: Span) -> Emitted<'c, ()> {
        self.depth += 1;
        if MAX_DEPTH < self.depth {
            let message =
                format!("expression is nested deeper than {MAX_DEPTH} levels, with its lets");
            return self.limit(span, message);
        }
        if 0 < self.let_depth {
            self.num_repeated += 1;
            if MAX_REPEATED < self.num_repeated {
                let message =
                    format!("lets under conditions expand to more than {MAX_REPEATED} expressions");
                return self.limit(span, message);
            }
        }
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Emits a form of a let into the current block and remembers it there.
    fn bind(&mut self, form: LetForm) -> Emitted<'c, ()> {
        let statement: &'a Statement = self.statement;
        let expr = form.expr(&statement.lets).expect("only forms that exist are referred to");
        if form.index {
            let index = self.index(expr)?;
            self.frame_mut().indices.insert(form.number, index);
        } else {
            let value = self.value(expr)?;
            self.frame_mut().values.insert(form.number, value);
        }
        Ok(())
    }

    fn bind_here(&mut self, form: LetForm) -> Emitted<'c, ()> {
        self.let_depth += 1;
        self.bind(form)?;
        self.let_depth -= 1;
        Ok(())
    }

    fn let_value(&mut self, number: usize) -> Emitted<'c, Val<'c>> {
        let known =
            |it: &Self| it.frames.iter().rev().find_map(|frame| frame.values.get(&number).copied());
        if known(self).is_none() {
            self.bind_here(LetForm { number, index: false })?;
        }
        Ok(known(self).expect("it was just bound"))
    }

    pub(super) fn let_index(&mut self, number: usize) -> Emitted<'c, tc_ir::Expr> {
        let known = |it: &Self| {
            it.frames.iter().rev().find_map(|frame| frame.indices.get(&number).copied())
        };
        if known(self).is_none() {
            self.bind_here(LetForm { number, index: true })?;
        }
        Ok(known(self).expect("it was just bound"))
    }

    /// Emits an expression of a scalar type, or an index as a value.
    pub(super) fn operand(&mut self, expr: &'a Expr) -> Emitted<'c, Val<'c>> {
        match expr.ty {
            Type::Index => self.index_value(expr),
            Type::Scalar(_) => self.value(expr),
        }
    }

    /// Emits an expression of a scalar type.
    pub(super) fn value(&mut self, expr: &'a Expr) -> Emitted<'c, Val<'c>> {
        self.enter(expr.span)?;
        let ty = expr.ty.scalar().expect("indices are emitted by `index`");
        let span = expr.span;
        // One method per kind: frames of the recursion stay small.
        let value = match &expr.kind {
            ExprKind::Int(_) | ExprKind::Float { .. } | ExprKind::Bool(_) => {
                Ok(self.literal(expr, ty))
            }
            ExprKind::Variable(_) | ExprKind::Size(_) | ExprKind::Extent { .. } => {
                self.index_as_value(expr, ty)
            }
            ExprKind::Let(number) => self.let_value(*number),
            ExprKind::Read { source, indices } => self.read(*source, indices, span, ty),
            ExprKind::Neg(value) => self.negate(value, span, ty),
            ExprKind::Not(value) => self.not(value, span),
            ExprKind::Arith { op, lhs, rhs } => self.arith(*op, lhs, rhs, span, ty),
            ExprKind::Compare { op, lhs, rhs } => self.compare(*op, lhs, rhs, span),
            ExprKind::And(lhs, rhs) => self.logical(lhs, rhs, true, span),
            ExprKind::Or(lhs, rhs) => self.logical(lhs, rhs, false, span),
            ExprKind::Select { condition, on_true, on_false } => {
                self.select(condition, on_true, on_false, span)
            }
            ExprKind::Cast { value, .. } => self.cast(value, span, ty),
            ExprKind::Call { builtin, args } => self.call(builtin.name, args, span, ty),
        };
        self.leave();
        value
    }

    fn literal(&mut self, expr: &'a Expr, ty: ScalarType) -> Val<'c> {
        let literal = Literal::of(expr).expect("called on literals");
        literal.build(&self.builder(expr.span), ty)
    }

    fn index_as_value(&mut self, expr: &'a Expr, ty: ScalarType) -> Emitted<'c, Val<'c>> {
        let index = self.index_value(expr)?;
        Ok(scalar::from_index(&self.builder(expr.span), index, ty))
    }

    fn negate(&mut self, value: &'a Expr, span: Span, ty: ScalarType) -> Emitted<'c, Val<'c>> {
        let value = self.value(value)?;
        Ok(scalar::negate(&self.builder(span), value, ty))
    }

    fn not(&mut self, value: &'a Expr, span: Span) -> Emitted<'c, Val<'c>> {
        let value = self.value(value)?;
        let builder = self.builder(span);
        let yes = builder.integer(value.r#type(), 1);
        Ok(builder.value("arith.xori", &[value, yes], value.r#type()))
    }

    fn arith(
        &mut self,
        op: ArithOp,
        lhs: &'a Expr,
        rhs: &'a Expr,
        span: Span,
        ty: ScalarType,
    ) -> Emitted<'c, Val<'c>> {
        let (lhs, rhs) = (self.value(lhs)?, self.value(rhs)?);
        Ok(scalar::arith(&self.builder(span), op, ty, lhs, rhs))
    }

    fn read(
        &mut self,
        source: Source,
        indices: &'a [Expr],
        span: Span,
        ty: ScalarType,
    ) -> Emitted<'c, Val<'c>> {
        let mut operands = vec![match source {
            Source::Input(number) => self.scope.inputs[number],
            Source::Statement(number) => self.scope.results[number],
        }];
        for index in indices {
            operands.push(self.index_value(index)?);
        }
        let context = self.scope.context;
        let text = mlir::string(context, &source_text(self.scope.source, span));
        let ty = scalar::value_type(context, ty);
        Ok(self.builder(span).value_with("tc.read", &operands, ty, &[("text", text)]))
    }

    fn compare(
        &mut self,
        op: CompareOp,
        lhs: &'a Expr,
        rhs: &'a Expr,
        span: Span,
    ) -> Emitted<'c, Val<'c>> {
        let ty = lhs.ty.scalar();
        let (lhs, rhs) = (self.operand(lhs)?, self.operand(rhs)?);
        Ok(scalar::compare(&self.builder(span), op, ty, lhs, rhs))
    }

    /// `lhs && rhs` or `lhs || rhs`.
    fn logical(
        &mut self,
        lhs: &'a Expr,
        rhs: &'a Expr,
        and: bool,
        span: Span,
    ) -> Emitted<'c, Val<'c>> {
        let lhs = self.value(lhs)?;
        let ty = lhs.r#type();
        if !self.read_order.is_reading(rhs) {
            let rhs = self.value(rhs)?;
            let name = if and { "arith.andi" } else { "arith.ori" };
            return Ok(self.builder(span).value(name, &[lhs, rhs], ty));
        }
        let evaluated = self.branch(Branch::Expr(rhs), span)?;
        let skipped = self.branch(Branch::Bool(!and), span)?;
        let branches = if and { vec![evaluated, skipped] } else { vec![skipped, evaluated] };
        Ok(self.conditional(lhs, branches, span, ty))
    }

    /// `condition ? on_true : on_false`, of values or of indices.
    pub(super) fn select(
        &mut self,
        condition: &'a Expr,
        on_true: &'a Expr,
        on_false: &'a Expr,
        span: Span,
    ) -> Emitted<'c, Val<'c>> {
        let condition = self.value(condition)?;
        if !self.read_order.is_reading(on_true) && !self.read_order.is_reading(on_false) {
            let (on_true, on_false) = (self.operand(on_true)?, self.operand(on_false)?);
            return Ok(self.builder(span).select(condition, on_true, on_false));
        }
        let ty = match on_true.ty {
            Type::Index => melior::ir::Type::index(self.scope.context),
            Type::Scalar(scalar) => scalar::value_type(self.scope.context, scalar),
        };
        let yes = self.branch(Branch::Expr(on_true), span)?;
        let no = self.branch(Branch::Expr(on_false), span)?;
        Ok(self.conditional(condition, vec![yes, no], span, ty))
    }

    fn conditional(
        &self,
        condition: Val<'c>,
        branches: Vec<Region<'c>>,
        span: Span,
        ty: melior::ir::Type<'c>,
    ) -> Val<'c> {
        let op = self.builder(span).op_with("scf.if", &[condition], &[ty], &[], branches);
        mlir::result(op, 0)
    }

    /// A region of `scf.if` that yields a value.
    fn branch(&mut self, branch: Branch<'a>, span: Span) -> Emitted<'c, Region<'c>> {
        let (region, block) = mlir::region_with_block(&[], self.scope.location(span));
        self.frames.push(Frame::new(block));
        let value = match branch {
            Branch::Expr(expr) => self.operand(expr)?,
            Branch::Bool(value) => {
                let builder = self.builder(span);
                builder.integer(builder.int_type(1), value.into())
            }
        };
        self.builder(span).op("scf.yield", &[value], &[]);
        self.frames.pop();
        Ok(region)
    }

    fn cast(&mut self, value: &'a Expr, span: Span, ty: ScalarType) -> Emitted<'c, Val<'c>> {
        if let Some(literal) = Literal::of(value) {
            return Ok(literal.build(&self.builder(span), ty));
        }
        let from = value.ty;
        let value = self.operand(value)?;
        let builder = self.builder(span);
        Ok(match from {
            Type::Index => scalar::from_index(&builder, value, ty),
            Type::Scalar(from) => scalar::convert(&builder, value, from, ty),
        })
    }

    fn call(
        &mut self,
        name: &str,
        args: &'a [Expr],
        span: Span,
        ty: ScalarType,
    ) -> Emitted<'c, Val<'c>> {
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            values.push(self.value(arg)?);
        }
        Ok(scalar::builtin(&self.builder(span), name, ty, &values))
    }

    /// Ends the block with `tc.yield`.
    pub(super) fn finish(self, values: &[Val<'c>], span: Span) {
        self.builder(span).op("tc.yield", values, &[]);
    }
}

/// What a region of `scf.if` yields.
enum Branch<'a> {
    Expr(&'a Expr),
    Bool(bool),
}

/// A dictionary of attributes.
pub(super) fn dictionary<'c>(
    context: &'c Context,
    entries: &[(&str, Attribute<'c>)],
) -> Attribute<'c> {
    use melior::ir::{Identifier, attribute::DictionaryAttribute};
    let entries: Vec<_> =
        entries.iter().map(|(name, value)| (Identifier::new(context, name), *value)).collect();
    DictionaryAttribute::new(context, &entries).into()
}
