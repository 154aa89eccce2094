//! Index expressions and the arena that interns them.
//!
//! An expression is a node of a directed acyclic graph over [`Var`]s: constants, sums,
//! products, quotients rounded down or up, remainders, minima and maxima. [`Context`] owns
//! all nodes and hands out [`Expr`] handles. Structurally equal expressions built in one
//! context have one handle (hash consing, Ershov 1958), so equality is a comparison of
//! numbers, and a traversal visits a shared subexpression once.
//!
//! Meanings: `floordiv` rounds towards minus infinity, `ceildiv` towards plus infinity. `mod`
//! is the Euclidean remainder, which is never negative: that of `floordiv` for a positive
//! divisor, that of `ceildiv` for a negative one, so that `x mod -c` is `x mod c`. Expressions denote mathematical integers; evaluation reports a result that
//! leaves the 64-bit range as an overflow, intermediate values have 128 bits.
//!
//! The builders are total. They put a constant operand of `+` and `*` on the right, fold
//! constants and drop neutral elements; a fold never loses a value that the unfolded
//! expression has, and may give one where the unfolded expression overflows or divides by
//! zero (`(x floordiv 0) * 0` is `0`). Real simplification is in [`simplify`](crate::simplify).
//!
//! No function here recurses but on expressions of a few operators: a handle is always larger than
//! the handles of its operands, so ascending order of handles is a topological order. One context holds fewer than 2^32 nodes.

use std::cell::{Ref, RefCell};
use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap};
use std::num::NonZeroU32;

use smallvec::SmallVec;

use crate::hash::{FastMap, FastSet, mix};
use crate::interval::{Interval, ceil_div_wide, floor_div_wide, remainder_wide};
use crate::simplify::{Quotients, Tables};

/// A handle to an expression of one [`Context`].
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Expr(NonZeroU32);

impl Expr {
    /// The handle of a place of the arena. Where there is none, an `Option` of it needs no more room.
    #[inline]
    fn new(place: u32) -> Self {
        Expr(NonZeroU32::MIN.saturating_add(place))
    }

    /// The place in the arena.
    #[inline]
    fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// A variable of an indexing map.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Var {
    /// Ranges over one dimension of the result (`d0` in text).
    Dim(u32),
    /// Ranges over what is reduced or gathered per result element (`s0` in text).
    Range(u32),
    /// A value that is known only when the program runs (`rt0` in text): an index read from
    /// a tensor, or the size of a dynamic dimension.
    Runtime(u32),
}

/// The operation at the root of an expression.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Node {
    /// A constant.
    Const(i64),
    /// A variable.
    Var(Var),
    /// A sum.
    Add(Expr, Expr),
    /// A product.
    Mul(Expr, Expr),
    /// A quotient rounded towards minus infinity.
    FloorDiv(Expr, Expr),
    /// A quotient rounded towards plus infinity.
    CeilDiv(Expr, Expr),
    /// The Euclidean remainder: the smallest number that is not negative and differs from the
    /// dividend by a multiple of the divisor.
    Mod(Expr, Expr),
    /// The smaller operand.
    Min(Expr, Expr),
    /// The larger operand.
    Max(Expr, Expr),
}

impl Node {
    /// The operands, if the node is an operation.
    pub fn operands(self) -> Option<(Expr, Expr)> {
        match self {
            Node::Const(_) | Node::Var(_) => None,
            Node::Add(lhs, rhs)
            | Node::Mul(lhs, rhs)
            | Node::FloorDiv(lhs, rhs)
            | Node::CeilDiv(lhs, rhs)
            | Node::Mod(lhs, rhs)
            | Node::Min(lhs, rhs)
            | Node::Max(lhs, rhs) => Some((lhs, rhs)),
        }
    }

    /// The place of the node's kind in the order of [`Context::compare`].
    fn rank(self) -> u8 {
        match self {
            Node::Var(_) => 0,
            Node::Mul(..) => 1,
            Node::FloorDiv(..) => 2,
            Node::CeilDiv(..) => 3,
            Node::Mod(..) => 4,
            Node::Min(..) => 5,
            Node::Max(..) => 6,
            Node::Add(..) => 7,
            Node::Const(_) => 8,
        }
    }
}

/// Why an expression has no value at a point.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EvalError {
    /// A result left the 64-bit range, or an intermediate value the 128-bit range.
    #[error("index arithmetic overflows 64 bits")]
    Overflow,
    /// A divisor of `floordiv`, `ceildiv` or `mod` is zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A variable has no value.
    #[error("no value for {0:?}")]
    Unbound(Var),
}

/// Division rounded towards minus infinity; `None` on overflow or division by zero.
pub fn checked_floor_div(lhs: i64, rhs: i64) -> Option<i64> {
    let quotient = lhs.checked_div(rhs)?;
    let exact = lhs % rhs == 0;
    Some(if exact || (lhs < 0) == (rhs < 0) { quotient } else { quotient - 1 })
}

/// Division rounded towards plus infinity; `None` on overflow or division by zero.
pub fn checked_ceil_div(lhs: i64, rhs: i64) -> Option<i64> {
    let quotient = lhs.checked_div(rhs)?;
    let exact = lhs % rhs == 0;
    Some(if exact || (lhs < 0) != (rhs < 0) { quotient } else { quotient + 1 })
}

/// The most operators of an expression that is walked as a tree.
const MAX_SMALL: u32 = 32;

/// The dimension variables whose handles are kept apart.
const MAX_SHORT_CUT: u32 = 32;

/// A place of the table that holds no handle.
const VACANT: u32 = u32::MAX;

#[derive(Debug, Default)]
struct Arena {
    nodes: Vec<Node>,
    /// Number of operators of each node written out as text, saturating.
    costs: Vec<u32>,
    /// The handles of the nodes by hash, each with some bits of the hash, open addressing with
    /// linear probing: the nodes themselves are the keys, and nothing is ever removed. The size
    /// is a power of two, and at most half of it is taken.
    table: Vec<(u32, u32)>,
    /// The handles of the first dimension variables, or vacant: they are asked for all the time.
    dims: Vec<u32>,
}

impl Arena {
    /// The handle of `node` if it is there, else the place of the table that it goes to.
    fn find(&self, node: Node, hash: u32) -> Result<Expr, usize> {
        let mask = self.table.len().wrapping_sub(1);
        let mut place = hash as usize & mask;
        loop {
            match self.table.get(place) {
                None | Some(&(VACANT, _)) => return Err(place),
                Some(&(number, other)) if other == hash && self.nodes[number as usize] == node => {
                    return Ok(Expr::new(number));
                }
                Some(_) => place = (place + 1) & mask,
            }
        }
    }

    /// Doubles the table.
    fn grow(&mut self) {
        let size = (2 * self.table.len()).max(256);
        let old = std::mem::replace(&mut self.table, vec![(VACANT, 0); size]);
        for (number, hash) in old.into_iter().filter(|&(number, _)| number != VACANT) {
            let mut place = hash as usize & (size - 1);
            while self.table[place].0 != VACANT {
                place = (place + 1) & (size - 1);
            }
            self.table[place] = (number, hash);
        }
    }
}

fn hash_of(node: Node) -> u32 {
    let word = match node {
        Node::Const(value) => value.cast_unsigned(),
        Node::Var(Var::Dim(number)) => u64::from(number),
        Node::Var(Var::Range(number)) => u64::from(number) | 1 << 32,
        Node::Var(Var::Runtime(number)) => u64::from(number) | 1 << 33,
        Node::Add(lhs, rhs)
        | Node::Mul(lhs, rhs)
        | Node::FloorDiv(lhs, rhs)
        | Node::CeilDiv(lhs, rhs)
        | Node::Mod(lhs, rhs)
        | Node::Min(lhs, rhs)
        | Node::Max(lhs, rhs) => u64::from(lhs.0.get()) << 32 | u64::from(rhs.0.get()),
    };
    #[expect(clippy::cast_possible_truncation, reason = "any part of a hash will do")]
    let hash = mix(u64::from(node.rank()) << 56, word) as u32;
    hash
}

/// Looks constants up. No expression can be made meanwhile.
pub(crate) struct Constants<'c>(Ref<'c, Arena>);

impl Constants<'_> {
    /// The interval between two constants, `None` being infinite; `None` where one is no constant.
    #[inline]
    pub(crate) fn interval(&self, lower: Option<Expr>, upper: Option<Expr>) -> Option<Interval> {
        let end = |bound: Option<Expr>, infinity| match bound.map(|it| self.0.nodes[it.place()]) {
            None => Some(infinity),
            Some(Node::Const(value)) => Some(value),
            Some(_) => None,
        };
        Some(Interval::new(end(lower, i64::MIN)?, end(upper, i64::MAX)?))
    }
}

/// The interner that owns expressions. It only grows, works through `&self` and can move to
/// another thread; there is no global state, so threads with a context each do not meet.
///
/// # Panics
/// Using an [`Expr`] with a context that did not make it panics or denotes another
/// expression.
#[derive(Debug, Default)]
pub struct Context {
    arena: RefCell<Arena>,
    /// Empty, but with memory.
    tables: RefCell<Tables>,
    /// Empty, but with memory.
    quotients: RefCell<Quotients>,
}

impl Context {
    /// An empty context.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tables with memory in them, where there are some.
    pub(crate) fn take_tables(&self) -> Tables {
        self.tables.take()
    }

    /// Keeps empty tables for the next that takes some.
    pub(crate) fn keep_tables(&self, tables: Tables) {
        self.tables.replace(tables);
    }

    /// An empty list of quotients, with memory in it where there is some.
    pub(crate) fn take_quotients(&self) -> Quotients {
        self.quotients.take()
    }

    /// Keeps an empty list of quotients for the next that takes one.
    pub(crate) fn keep_quotients(&self, quotients: Quotients) {
        self.quotients.replace(quotients);
    }

    /// The operation at the root of `expr`.
    #[inline]
    pub fn node(&self, expr: Expr) -> Node {
        self.arena.borrow().nodes[expr.place()]
    }

    /// The number of operators in `expr` written out as text, saturating at `u32::MAX`. A
    /// difference, which is a sum with a negation, counts as one.
    #[inline]
    pub fn cost(&self, expr: Expr) -> u32 {
        self.arena.borrow().costs[expr.place()]
    }

    /// The number of distinct expressions made so far.
    pub fn num_exprs(&self) -> usize {
        self.arena.borrow().nodes.len()
    }

    /// The memory that the expressions take, in bytes, reserves included.
    pub fn allocated_bytes(&self) -> usize {
        let arena = self.arena.borrow();
        arena.nodes.capacity() * size_of::<Node>()
            + arena.costs.capacity() * size_of::<u32>()
            + arena.table.capacity() * size_of::<(u32, u32)>()
    }

    /// The handle of `node`, with no folding at all.
    fn intern(&self, node: Node) -> Expr {
        let mut arena = self.arena.borrow_mut();
        if let Node::Var(Var::Dim(dim)) = node
            && let Some(&number) = arena.dims.get(dim as usize)
            && number != VACANT
        {
            return Expr::new(number);
        }
        let hash = hash_of(node);
        let mut place = match arena.find(node, hash) {
            Ok(expr) => return expr,
            Err(place) => place,
        };
        if arena.table.len() <= 2 * arena.nodes.len() {
            arena.grow();
            place = arena.find(node, hash).expect_err("it was not there before");
        }
        let cost = node.operands().map_or(0, |(lhs, rhs)| {
            let operands = arena.costs[lhs.place()].saturating_add(arena.costs[rhs.place()]);
            match (node, arena.nodes[rhs.place()]) {
                // The negation is the operator of the difference.
                (Node::Add(..), Node::Mul(_, factor))
                    if arena.nodes[factor.place()] == Node::Const(-1) =>
                {
                    operands
                }
                _ => operands.saturating_add(1),
            }
        });
        let number = u32::try_from(arena.nodes.len()).expect("fewer than 2^32 expressions");
        let expr = Expr::new(number);
        assert!(number != VACANT, "fewer than 2^32 expressions");
        arena.nodes.push(node);
        arena.costs.push(cost);
        arena.table[place] = (number, hash);
        if let Node::Var(Var::Dim(dim)) = node
            && dim < MAX_SHORT_CUT
        {
            let dim = dim as usize;
            let size = arena.dims.len().max(dim + 1);
            arena.dims.resize(size, VACANT);
            arena.dims[dim] = number;
        }
        expr
    }

    /// A constant.
    pub fn constant(&self, value: i64) -> Expr {
        self.intern(Node::Const(value))
    }

    /// A variable.
    pub fn var(&self, var: Var) -> Expr {
        self.intern(Node::Var(var))
    }

    /// The dimension variable with the given number.
    pub fn dim(&self, number: u32) -> Expr {
        self.var(Var::Dim(number))
    }

    /// The range variable with the given number.
    pub fn range(&self, number: u32) -> Expr {
        self.var(Var::Range(number))
    }

    /// The runtime variable with the given number.
    pub fn runtime(&self, number: u32) -> Expr {
        self.var(Var::Runtime(number))
    }

    /// The value of `expr` if it is a constant.
    #[inline]
    pub fn as_constant(&self, expr: Expr) -> Option<i64> {
        match self.node(expr) {
            Node::Const(value) => Some(value),
            _ => None,
        }
    }

    /// The constants, to look several up.
    #[inline]
    pub(crate) fn constants(&self) -> Constants<'_> {
        Constants(self.arena.borrow())
    }

    /// The variable that `expr` is, if it is one.
    #[inline]
    pub fn as_var(&self, expr: Expr) -> Option<Var> {
        match self.node(expr) {
            Node::Var(var) => Some(var),
            _ => None,
        }
    }

    /// `lhs + rhs`.
    pub fn add(&self, lhs: Expr, rhs: Expr) -> Expr {
        let (lhs, rhs) = self.constant_last(lhs, rhs);
        let Some(addend) = self.as_constant(rhs) else {
            return self.intern(Node::Add(lhs, rhs));
        };
        if addend == 0 {
            return lhs;
        }
        match self.node(lhs) {
            Node::Const(value) => {
                if let Some(sum) = value.checked_add(addend) {
                    return self.constant(sum);
                }
            }
            // (x + c) + c' == x + (c + c')
            Node::Add(inner, offset) => {
                if let Some(sum) =
                    self.as_constant(offset).and_then(|offset| offset.checked_add(addend))
                {
                    return if sum == 0 {
                        inner
                    } else {
                        self.intern(Node::Add(inner, self.constant(sum)))
                    };
                }
            }
            _ => {}
        }
        self.intern(Node::Add(lhs, rhs))
    }

    /// `lhs - rhs`, which is `lhs + rhs * -1`.
    pub fn sub(&self, lhs: Expr, rhs: Expr) -> Expr {
        self.add(lhs, self.neg(rhs))
    }

    /// `-operand`, which is `operand * -1`.
    pub fn neg(&self, operand: Expr) -> Expr {
        self.mul(operand, self.constant(-1))
    }

    /// `lhs * rhs`.
    pub fn mul(&self, lhs: Expr, rhs: Expr) -> Expr {
        let (lhs, rhs) = self.constant_last(lhs, rhs);
        let Some(factor) = self.as_constant(rhs) else {
            return self.intern(Node::Mul(lhs, rhs));
        };
        match factor {
            0 => return rhs,
            1 => return lhs,
            _ => {}
        }
        match self.node(lhs) {
            Node::Const(value) => {
                if let Some(product) = value.checked_mul(factor) {
                    return self.constant(product);
                }
            }
            // (x * c) * c' == x * (c * c')
            Node::Mul(inner, scale) => {
                if let Some(product) =
                    self.as_constant(scale).and_then(|scale| scale.checked_mul(factor))
                {
                    return if product == 1 {
                        inner
                    } else {
                        self.intern(Node::Mul(inner, self.constant(product)))
                    };
                }
            }
            // -(x + c) == -x - c, so that a difference has one form
            Node::Add(inner, offset) if factor == -1 && !self.has_offset(inner) => {
                if let Some(negated) = self.as_constant(offset).and_then(i64::checked_neg) {
                    return self.add(self.neg(inner), self.constant(negated));
                }
            }
            _ => {}
        }
        self.intern(Node::Mul(lhs, rhs))
    }

    /// `lhs floordiv rhs`.
    pub fn floor_div(&self, lhs: Expr, rhs: Expr) -> Expr {
        self.divide(lhs, rhs, checked_floor_div)
            .unwrap_or_else(|| self.intern(Node::FloorDiv(lhs, rhs)))
    }

    /// `lhs ceildiv rhs`.
    pub fn ceil_div(&self, lhs: Expr, rhs: Expr) -> Expr {
        self.divide(lhs, rhs, checked_ceil_div)
            .unwrap_or_else(|| self.intern(Node::CeilDiv(lhs, rhs)))
    }

    fn divide(&self, lhs: Expr, rhs: Expr, op: fn(i64, i64) -> Option<i64>) -> Option<Expr> {
        let divisor = self.as_constant(rhs)?;
        if divisor == 1 {
            return Some(lhs);
        }
        let quotient = op(self.as_constant(lhs)?, divisor)?;
        Some(self.constant(quotient))
    }

    /// `lhs mod rhs`.
    pub fn modulo(&self, lhs: Expr, rhs: Expr) -> Expr {
        match (self.as_constant(lhs), self.as_constant(rhs)) {
            (_, Some(1)) => self.constant(0),
            // x mod -c == x mod c
            (_, Some(divisor)) if divisor < 0 && divisor != i64::MIN => {
                self.modulo(lhs, self.constant(-divisor))
            }
            (Some(value), Some(divisor)) if divisor != 0 => {
                let remainder = i128::from(value).rem_euclid(i128::from(divisor));
                self.constant(i64::try_from(remainder).expect("smaller than 2^63"))
            }
            _ => self.intern(Node::Mod(lhs, rhs)),
        }
    }

    /// The smaller of two expressions.
    pub fn min(&self, lhs: Expr, rhs: Expr) -> Expr {
        match (self.as_constant(lhs), self.as_constant(rhs)) {
            _ if lhs == rhs => lhs,
            (Some(a), Some(b)) => self.constant(a.min(b)),
            _ => self.intern(Node::Min(lhs, rhs)),
        }
    }

    /// The larger of two expressions.
    pub fn max(&self, lhs: Expr, rhs: Expr) -> Expr {
        match (self.as_constant(lhs), self.as_constant(rhs)) {
            _ if lhs == rhs => lhs,
            (Some(a), Some(b)) => self.constant(a.max(b)),
            _ => self.intern(Node::Max(lhs, rhs)),
        }
    }

    /// Builds the operation of `node` over other operands; a leaf stays as it is.
    pub fn rebuild(&self, node: Node, lhs: Expr, rhs: Expr) -> Expr {
        match node {
            Node::Const(_) | Node::Var(_) => self.intern(node),
            Node::Add(..) => self.add(lhs, rhs),
            Node::Mul(..) => self.mul(lhs, rhs),
            Node::FloorDiv(..) => self.floor_div(lhs, rhs),
            Node::CeilDiv(..) => self.ceil_div(lhs, rhs),
            Node::Mod(..) => self.modulo(lhs, rhs),
            Node::Min(..) => self.min(lhs, rhs),
            Node::Max(..) => self.max(lhs, rhs),
        }
    }

    /// Whether `expr` is a sum with a constant.
    fn has_offset(&self, expr: Expr) -> bool {
        matches!(self.node(expr), Node::Add(_, offset) if self.as_constant(offset).is_some())
    }

    fn constant_last(&self, lhs: Expr, rhs: Expr) -> (Expr, Expr) {
        if self.as_constant(lhs).is_some() && self.as_constant(rhs).is_none() {
            (rhs, lhs)
        } else {
            (lhs, rhs)
        }
    }

    /// Every subexpression of `roots` once, operands before their users.
    pub fn topological(&self, roots: &[Expr]) -> Vec<Expr> {
        self.sorted(roots).into_vec()
    }

    fn sorted(&self, roots: &[Expr]) -> SmallVec<[Expr; 32]> {
        let arena = self.arena.borrow();
        let mut seen = FastSet::default();
        let mut stack: SmallVec<[Expr; 32]> = roots.into();
        let mut order: SmallVec<[Expr; 32]> = SmallVec::new();
        while let Some(expr) = stack.pop() {
            // A few are searched faster than hashed.
            if order.len() < 32 {
                if order.contains(&expr) {
                    continue;
                }
            } else {
                if seen.is_empty() {
                    seen.extend(order.iter().copied());
                }
                if !seen.insert(expr) {
                    continue;
                }
            }
            order.push(expr);
            if let Some((lhs, rhs)) = arena.nodes[expr.place()].operands() {
                stack.push(lhs);
                stack.push(rhs);
            }
        }
        order.sort_unstable();
        order
    }

    /// The operands of an operation and of those operations in it that are like it, each once, from
    /// the last to the first.
    pub(crate) fn operands_of(&self, expr: Expr, is_like: impl Fn(Node) -> bool) -> Vec<Expr> {
        let (mut operands, mut seen) = (Vec::new(), FastSet::default());
        let mut stack: SmallVec<[Expr; 16]> = SmallVec::from_slice(&[expr]);
        while let Some(expr) = stack.pop() {
            let node = self.node(expr);
            match node.operands().filter(|_| is_like(node)) {
                Some(_) if !seen.insert(expr) => {}
                Some((lhs, rhs)) => stack.extend([lhs, rhs]),
                None => operands.push(expr),
            }
        }
        operands
    }

    /// Computes one value per subexpression from the values of its operands and returns those
    /// of `roots`.
    pub fn fold<T: Clone, E>(
        &self,
        roots: &[Expr],
        mut step: impl FnMut(Expr, Node, Option<(&T, &T)>) -> Result<T, E>,
    ) -> Result<Vec<T>, E> {
        if self.are_small(roots) {
            return roots.iter().map(|&root| self.fold_small(root, &mut step)).collect();
        }
        let order = self.sorted(roots);
        let place =
            |expr: Expr| order.binary_search(&expr).expect("the order holds every subexpression");
        let mut values: SmallVec<[T; 16]> = SmallVec::with_capacity(order.len());
        for &expr in &order {
            let node = self.node(expr);
            let operands =
                node.operands().map(|(lhs, rhs)| (&values[place(lhs)], &values[place(rhs)]));
            let value = step(expr, node, operands)?;
            values.push(value);
        }
        Ok(roots.iter().map(|&root| values[place(root)].clone()).collect())
    }

    /// Whether every expression is so small that walking it as a tree beats looking for what it
    /// shares. The number of operators limits the depth too.
    pub(crate) fn are_small(&self, exprs: &[Expr]) -> bool {
        let arena = self.arena.borrow();
        exprs.iter().all(|expr| arena.costs[expr.place()] <= MAX_SMALL)
    }

    /// [`fold`](Self::fold) for a [small](Self::are_small) expression.
    fn fold_small<T, E>(
        &self,
        expr: Expr,
        step: &mut impl FnMut(Expr, Node, Option<(&T, &T)>) -> Result<T, E>,
    ) -> Result<T, E> {
        let node = self.node(expr);
        let Some((lhs, rhs)) = node.operands() else {
            return step(expr, node, None);
        };
        let lhs = self.fold_small(lhs, step)?;
        let rhs = self.fold_small(rhs, step)?;
        step(expr, node, Some((&lhs, &rhs)))
    }

    /// The value of `expr` where `value_of` gives the variables.
    ///
    /// # Errors
    /// The first subexpression without a value, operands before their users.
    pub fn eval(
        &self,
        expr: Expr,
        value_of: &dyn Fn(Var) -> Option<i64>,
    ) -> Result<i64, EvalError> {
        self.eval_all(&[expr], value_of).map(|values| values[0])
    }

    /// The values of several expressions; a shared subexpression is computed once.
    ///
    /// # Errors
    /// As [`eval`](Self::eval).
    pub fn eval_all(
        &self,
        exprs: &[Expr],
        value_of: &dyn Fn(Var) -> Option<i64>,
    ) -> Result<Vec<i64>, EvalError> {
        self.eval_wide(exprs, value_of)?
            .into_iter()
            .map(|value| i64::try_from(value).map_err(|_| EvalError::Overflow))
            .collect()
    }

    /// The values of several expressions, which may leave the 64-bit range.
    pub(crate) fn eval_wide(
        &self,
        exprs: &[Expr],
        value_of: &dyn Fn(Var) -> Option<i64>,
    ) -> Result<Vec<i128>, EvalError> {
        self.fold(exprs, |_, node, operands| {
            let (lhs, rhs): (i128, i128) = operands.map_or((0, 0), |(&lhs, &rhs)| (lhs, rhs));
            value_of_node(node, lhs, rhs, value_of)
        })
    }

    /// `expr` with every variable that `replacement` knows replaced, all at once.
    pub fn substitute(&self, expr: Expr, replacement: &dyn Fn(Var) -> Option<Expr>) -> Expr {
        self.substitute_all(&[expr], replacement)[0]
    }

    /// [`substitute`](Self::substitute) for several expressions.
    pub fn substitute_all(
        &self,
        exprs: &[Expr],
        replacement: &dyn Fn(Var) -> Option<Expr>,
    ) -> Vec<Expr> {
        self.rewrite(exprs, |_, node| match node {
            Node::Var(var) => replacement(var),
            _ => None,
        })
    }

    /// `expr` with every subexpression equal to `from` replaced by `to`, the outermost first.
    pub fn replace(&self, expr: Expr, from: Expr, to: Expr) -> Expr {
        self.rewrite(&[expr], |old, _| (old == from).then_some(to))[0]
    }

    /// Rebuilds `exprs` with some subexpressions replaced; what `chosen` returns is not
    /// looked into.
    fn rewrite(
        &self,
        exprs: &[Expr],
        mut chosen: impl FnMut(Expr, Node) -> Option<Expr>,
    ) -> Vec<Expr> {
        if self.are_small(exprs) {
            return exprs.iter().map(|&expr| self.rewrite_small(expr, &mut chosen)).collect();
        }
        let rewritten = self.fold(exprs, |expr, node, operands| {
            let new = match (chosen(expr, node), operands) {
                (Some(new), _) => new,
                (None, Some((&lhs, &rhs))) => self.rebuild(node, lhs, rhs),
                (None, None) => expr,
            };
            Ok::<_, std::convert::Infallible>(new)
        });
        match rewritten {
            Ok(exprs) => exprs,
            Err(never) => match never {},
        }
    }

    /// [`rewrite`](Self::rewrite) for a [small](Self::are_small) expression.
    fn rewrite_small(
        &self,
        expr: Expr,
        chosen: &mut impl FnMut(Expr, Node) -> Option<Expr>,
    ) -> Expr {
        let node = self.node(expr);
        if let Some(new) = chosen(expr, node) {
            return new;
        }
        let Some((old_lhs, old_rhs)) = node.operands() else {
            return expr;
        };
        let lhs = self.rewrite_small(old_lhs, chosen);
        let rhs = self.rewrite_small(old_rhs, chosen);
        if (lhs, rhs) == (old_lhs, old_rhs) { expr } else { self.rebuild(node, lhs, rhs) }
    }

    /// The variables of `expr`.
    pub fn vars(&self, expr: Expr) -> BTreeSet<Var> {
        self.vars_of_all(&[expr])
    }

    /// The variables of several expressions.
    pub fn vars_of_all(&self, exprs: &[Expr]) -> BTreeSet<Var> {
        self.topological(exprs).into_iter().filter_map(|expr| self.as_var(expr)).collect()
    }

    /// An interval that holds every value that `expr` takes while each variable stays in its
    /// interval. Points where `expr` is undefined count as no value.
    pub fn interval_of(&self, expr: Expr, interval: &dyn Fn(Var) -> Interval) -> Interval {
        let step = &mut |_, node, operands: Option<(&Interval, &Interval)>| {
            Ok::<_, std::convert::Infallible>(interval_of_node(node, operands, interval))
        };
        let folded = match self.are_small(&[expr]) {
            true => self.fold_small(expr, step),
            false => self.fold(&[expr], step).map(|intervals| intervals[0]),
        };
        match folded {
            Ok(interval) => interval,
            Err(never) => match never {},
        }
    }

    /// [`interval_of`](Self::interval_of) for several expressions.
    pub fn intervals_of(
        &self,
        exprs: &[Expr],
        interval: &dyn Fn(Var) -> Interval,
    ) -> Vec<Interval> {
        let folded = self.fold(exprs, |_, node, operands| {
            Ok::<_, std::convert::Infallible>(interval_of_node(node, operands, interval))
        });
        match folded {
            Ok(intervals) => intervals,
            Err(never) => match never {},
        }
    }

    /// A non-negative number that divides every value of `expr`; zero when `expr` is always
    /// zero.
    pub fn divisor_of(&self, expr: Expr) -> u64 {
        let folded = self.fold(&[expr], |_, node, operands| {
            let (lhs, rhs) = operands.map_or((1, 1), |(&lhs, &rhs)| (lhs, rhs));
            let quotient = |divisor: Expr| match self.as_constant(divisor) {
                Some(divisor) if divisor != 0 && lhs % divisor.unsigned_abs() == 0 => {
                    lhs / divisor.unsigned_abs()
                }
                _ => 1,
            };
            Ok::<_, std::convert::Infallible>(match node {
                Node::Const(value) => value.unsigned_abs(),
                Node::Var(_) => 1,
                Node::Mul(..) => lhs.checked_mul(rhs).unwrap_or(lhs),
                Node::FloorDiv(_, divisor) | Node::CeilDiv(_, divisor) => quotient(divisor),
                Node::Add(..) | Node::Mod(..) | Node::Min(..) | Node::Max(..) => gcd(lhs, rhs),
            })
        });
        match folded {
            Ok(divisors) => divisors[0],
            Err(never) => match never {},
        }
    }

    /// Whether every value of `expr` is shown to be a multiple of `factor`. A `false` means
    /// that it is not shown.
    pub fn is_multiple_of(&self, expr: Expr, factor: i64) -> bool {
        self.divisor_of(expr).is_multiple_of(factor.unsigned_abs())
    }

    /// A total order that depends on the structure only, not on when an expression was made:
    /// variables first, constants last.
    ///
    /// Equal expressions have one handle, so two different ones differ in their roots or in
    /// one pair of operands: the comparison follows a single path.
    pub fn compare(&self, lhs: Expr, rhs: Expr) -> Ordering {
        let (mut lhs, mut rhs) = (lhs, rhs);
        while lhs != rhs {
            let (a, b) = (self.node(lhs), self.node(rhs));
            let (Some((a_lhs, a_rhs)), Some((b_lhs, b_rhs))) = (a.operands(), b.operands()) else {
                return a.rank().cmp(&b.rank()).then_with(|| a.cmp(&b));
            };
            if a.rank() != b.rank() {
                return a.rank().cmp(&b.rank());
            }
            (lhs, rhs) = if a_lhs == b_lhs { (a_rhs, b_rhs) } else { (a_lhs, b_lhs) };
        }
        Ordering::Equal
    }

    /// Splits `expr` into a sum of multiples and a constant,
    ///
    /// ```text
    /// expr == sum(coefficient * term) + constant
    /// ```
    ///
    /// each term once and neither a sum nor a multiple nor a constant.
    ///
    /// `None` when a coefficient leaves the 64-bit range. Shared sums are visited once.
    pub fn linear_terms(&self, expr: Expr) -> Option<LinearTerms> {
        if let Some(FewTerms { terms, constant }) = self.few_linear_terms(expr) {
            return Some(LinearTerms { terms: terms.into_vec(), constant });
        }
        let mut coefficients: FastMap<Expr, i64> = FastMap::from_iter([(expr, 1)]);
        let mut heap = BinaryHeap::from([expr]);
        let mut linear = LinearTerms::default();
        // The largest handle has no users left, so its coefficient is final.
        while let Some(expr) = heap.pop() {
            let Some(coefficient) = coefficients.remove(&expr) else {
                continue;
            };
            if coefficient == 0 {
                continue;
            }
            let mut push = |operand: Expr, scale: i64| -> Option<()> {
                let added = coefficient.checked_mul(scale)?;
                let slot = coefficients.entry(operand).or_insert(0);
                *slot = slot.checked_add(added)?;
                heap.push(operand);
                Some(())
            };
            match self.node(expr) {
                Node::Const(value) => {
                    linear.constant =
                        linear.constant.checked_add(coefficient.checked_mul(value)?)?;
                }
                Node::Add(lhs, rhs) => {
                    push(lhs, 1)?;
                    push(rhs, 1)?;
                }
                Node::Mul(operand, factor) => match self.as_constant(factor) {
                    Some(factor) => push(operand, factor)?,
                    None => linear.terms.push((expr, coefficient)),
                },
                _ => linear.terms.push((expr, coefficient)),
            }
        }
        linear.terms.sort_by(|a, b| self.compare(a.0, b.0));
        Some(linear)
    }
}

/// The most sums and multiples that are taken apart without looking for shared ones.
const MAX_UNSHARED: usize = 1024;

/// [`LinearTerms`] of a small expression.
#[derive(Default)]
pub(crate) struct FewTerms {
    pub(crate) terms: SmallVec<[(Expr, i64); 8]>,
    pub(crate) constant: i64,
}

impl Context {
    /// [`linear_terms`](Self::linear_terms) for a small expression; `None` otherwise, and on
    /// overflow.
    pub(crate) fn few_linear_terms(&self, expr: Expr) -> Option<FewTerms> {
        self.few_linear_terms_of(expr, &|_, _| Some(None))
    }

    /// The linear terms of `expr` with some terms replaced by others, which `replaced` says; the
    /// replacements are taken apart too. `None` where `replaced` says so.
    pub(crate) fn few_linear_terms_of(
        &self,
        expr: Expr,
        replaced: &impl Fn(Expr, Node) -> Option<Option<Expr>>,
    ) -> Option<FewTerms> {
        let mut linear = self.few_addends(expr, replaced)?;
        linear.terms.sort_unstable_by(|a, b| self.compare(a.0, b.0));
        let mut kept: usize = 0;
        for place in 0..linear.terms.len() {
            let (term, coefficient) = linear.terms[place];
            match kept.checked_sub(1).map(|last| linear.terms[last]) {
                Some((last, sum)) if last == term => {
                    linear.terms[kept - 1].1 = sum.checked_add(coefficient)?;
                }
                _ => {
                    linear.terms[kept] = (term, coefficient);
                    kept += 1;
                }
            }
        }
        linear.terms.truncate(kept);
        linear.terms.retain(|&mut (_, coefficient)| coefficient != 0);
        Some(linear)
    }

    /// [`few_linear_terms_of`](Self::few_linear_terms_of), but equal terms are not put together.
    pub(crate) fn few_addends(
        &self,
        expr: Expr,
        replaced: &impl Fn(Expr, Node) -> Option<Option<Expr>>,
    ) -> Option<FewTerms> {
        let mut linear = FewTerms::default();
        // What comes next, and what comes after it.
        let mut next = Some((expr, 1, true));
        let mut stack: SmallVec<[(Expr, i64, bool); 8]> = SmallVec::new();
        let mut visits = 0;
        while let Some((expr, coefficient, is_given)) = next.take().or_else(|| stack.pop()) {
            visits += 1;
            if MAX_UNSHARED < visits {
                return None;
            }
            let node = self.node(expr);
            match node {
                Node::Const(value) => {
                    let value = coefficient.checked_mul(value)?;
                    linear.constant = linear.constant.checked_add(value)?;
                    continue;
                }
                Node::Add(lhs, rhs) => {
                    stack.push((rhs, coefficient, is_given));
                    next = Some((lhs, coefficient, is_given));
                    continue;
                }
                Node::Mul(operand, factor) => {
                    if let Some(factor) = self.as_constant(factor) {
                        next = Some((operand, coefficient.checked_mul(factor)?, is_given));
                        continue;
                    }
                }
                _ => {}
            }
            match if is_given { replaced(expr, node)? } else { None } {
                Some(new) => next = Some((new, coefficient, false)),
                None => linear.terms.push((expr, coefficient)),
            }
        }
        Some(linear)
    }
}

/// A sum of multiples of distinct terms and a constant; see [`Context::linear_terms`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LinearTerms {
    /// Terms with their coefficients, none zero, in the order of [`Context::compare`].
    pub terms: Vec<(Expr, i64)>,
    /// The constant part.
    pub constant: i64,
}

/// The value of one operation from those of its operands; leaves have none.
pub(crate) fn value_of_node(
    node: Node,
    lhs: i128,
    rhs: i128,
    value_of: &dyn Fn(Var) -> Option<i64>,
) -> Result<i128, EvalError> {
    if matches!(node, Node::FloorDiv(..) | Node::CeilDiv(..) | Node::Mod(..)) && rhs == 0 {
        return Err(EvalError::DivisionByZero);
    }
    let value = match node {
        Node::Const(value) => Some(i128::from(value)),
        Node::Var(var) => Some(i128::from(value_of(var).ok_or(EvalError::Unbound(var))?)),
        Node::Add(..) => lhs.checked_add(rhs),
        Node::Mul(..) => lhs.checked_mul(rhs),
        Node::FloorDiv(..) => Some(floor_div_wide(lhs, rhs)),
        Node::CeilDiv(..) => Some(ceil_div_wide(lhs, rhs)),
        Node::Mod(..) => Some(remainder_wide(lhs, rhs)),
        Node::Min(..) => Some(lhs.min(rhs)),
        Node::Max(..) => Some(lhs.max(rhs)),
    };
    // Without the smallest number, no division overflows.
    value.filter(|&value| value != i128::MIN).ok_or(EvalError::Overflow)
}

/// The enclosure of a node from those of its operands and of the variables.
fn interval_of_node(
    node: Node,
    operands: Option<(&Interval, &Interval)>,
    interval: &dyn Fn(Var) -> Interval,
) -> Interval {
    match (node, operands) {
        (Node::Var(var), _) => interval(var),
        (_, Some((&lhs, &rhs))) => interval_of_operation(node, lhs, rhs),
        (_, None) => interval_of_operation(node, Interval::ALL, Interval::ALL),
    }
}

/// The enclosure of one operation from those of its operands; leaves have none.
pub(crate) fn interval_of_operation(node: Node, lhs: Interval, rhs: Interval) -> Interval {
    match node {
        Node::Const(value) => Interval::point(value),
        Node::Var(_) => Interval::ALL,
        Node::Add(..) => lhs.add(rhs),
        Node::Mul(..) => lhs.mul(rhs),
        Node::FloorDiv(..) => lhs.floor_div(rhs),
        Node::CeilDiv(..) => lhs.ceil_div(rhs),
        Node::Mod(..) => lhs.modulo(rhs),
        Node::Min(..) => lhs.min(rhs),
        Node::Max(..) => lhs.max(rhs),
    }
}

/// The greatest common divisor; `gcd(0, x)` is `x`.
pub fn gcd(lhs: u64, rhs: u64) -> u64 {
    let (small, large) = (lhs.min(rhs), lhs.max(rhs));
    if small == 0 {
        return large;
    }
    // One division makes both small where one is. The rest goes without (Stein 1967).
    let (mut a, mut b) = (large % small, small);
    if a == 0 {
        return b;
    }
    let shift = (a | b).trailing_zeros();
    a >>= a.trailing_zeros();
    while b != 0 {
        b >>= b.trailing_zeros();
        (a, b) = (a.min(b), a.abs_diff(b));
    }
    a << shift
}
