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
//! zero (`(x floordiv 0) * 0` and `(0 ceildiv 0) mod -1` are `0`). Real simplification is in [`simplify`](crate::simplify).
//!
//! No function here recurses but on expressions of a few operators: a handle is always larger than
//! the handles of its operands, so ascending order of handles is a topological order. One context holds fewer than 2^32 nodes.

mod linear;
mod operators;
mod traversal;

use std::any::Any;
use std::cell::{Ref, RefCell};
use std::cmp::Ordering;
use std::num::NonZeroU32;

use smallvec::SmallVec;

use crate::hash::mix;
use crate::interval::{Interval, ceil_div_wide, floor_div_wide};
pub(crate) use linear::FewTerms;
pub use linear::LinearTerms;
pub use operators::{ExprRef, IntoExpr};
pub(crate) use traversal::{interval_of_operation, value_of_node};

/// A handle to an expression of one [`Context`].
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Expr {
    /// One more than the place in the arena, so that an `Option` needs no more room.
    number: NonZeroU32,
    owner: Owner,
}

impl Expr {
    /// The handle of a place in the table of a [`FrozenMap`](crate::FrozenMap).
    pub(crate) fn frozen(place: usize) -> Self {
        let place = u32::try_from(place).expect("fewer than 2^32 expressions");
        Expr { number: NonZeroU32::MIN.saturating_add(place), owner: Owner::FROZEN }
    }

    /// The place in the table of a [`FrozenMap`](crate::FrozenMap).
    pub(crate) fn frozen_place(self) -> usize {
        debug_assert!(self.owner == Owner::FROZEN, "the expression belongs to a context");
        self.number.get() as usize - 1
    }
}

/// Identifies a context in debug builds, which find expressions that are used with another one.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct Owner(#[cfg(debug_assertions)] u32);

impl Owner {
    /// No context, but a [`FrozenMap`](crate::FrozenMap).
    const FROZEN: Self = Owner(
        #[cfg(debug_assertions)]
        u32::MAX,
    );
}

impl Default for Owner {
    #[cfg(debug_assertions)]
    fn default() -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Owner(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    #[cfg(not(debug_assertions))]
    fn default() -> Self {
        Owner()
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

    /// The same operation on other operands; a leaf stays as it is.
    fn over(self, lhs: Expr, rhs: Expr) -> Node {
        match self {
            Node::Const(_) | Node::Var(_) => self,
            Node::Add(..) => Node::Add(lhs, rhs),
            Node::Mul(..) => Node::Mul(lhs, rhs),
            Node::FloorDiv(..) => Node::FloorDiv(lhs, rhs),
            Node::CeilDiv(..) => Node::CeilDiv(lhs, rhs),
            Node::Mod(..) => Node::Mod(lhs, rhs),
            Node::Min(..) => Node::Min(lhs, rhs),
            Node::Max(..) => Node::Max(lhs, rhs),
        }
    }

    /// The same operation on other operands; a leaf stays as it is.
    pub(crate) fn map_operands(self, mut of: impl FnMut(Expr) -> Expr) -> Node {
        self.operands().map_or(self, |(lhs, rhs)| self.over(of(lhs), of(rhs)))
    }

    /// Whether it is a quotient or a remainder, which has no value where the divisor is zero.
    pub(crate) fn is_division(self) -> bool {
        matches!(self, Node::FloorDiv(..) | Node::CeilDiv(..) | Node::Mod(..))
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

/// Division by a positive number, rounded towards plus infinity.
///
/// # Panics
/// If the divisor is zero.
pub const fn ceil_div(lhs: i64, rhs: i64) -> i64 {
    lhs.div_euclid(rhs) + (lhs.rem_euclid(rhs) != 0) as i64
}

/// The most operations on constants that leave 64 bits which are looked at.
const MAX_WIDE: usize = 8;

/// The dimension variables whose handles are kept apart.
const MAX_SHORT_CUT: u32 = 32;

/// A place of the table that holds no handle.
const VACANT: u32 = u32::MAX;

#[derive(Debug, Default)]
struct Arena {
    owner: Owner,
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
    /// The handle of a place.
    #[inline]
    fn expr(&self, place: u32) -> Expr {
        Expr { number: NonZeroU32::MIN.saturating_add(place), owner: self.owner }
    }

    /// The place of an expression.
    #[inline]
    fn place(&self, expr: Expr) -> usize {
        debug_assert!(expr.owner == self.owner, "the expression belongs to another context");
        expr.number.get() as usize - 1
    }

    /// The operation at the root of an expression.
    #[inline]
    fn node(&self, expr: Expr) -> Node {
        self.nodes[self.place(expr)]
    }

    /// The handle of `node` if it is there, else the place of the table that it goes to.
    fn find(&self, node: Node, hash: u32) -> Result<Expr, usize> {
        let mask = self.table.len().wrapping_sub(1);
        let mut place = hash as usize & mask;
        loop {
            match self.table.get(place) {
                None | Some(&(VACANT, _)) => return Err(place),
                Some(&(number, other)) if other == hash && self.nodes[number as usize] == node => {
                    return Ok(self.expr(number));
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
        | Node::Max(lhs, rhs) => u64::from(lhs.number.get()) << 32 | u64::from(rhs.number.get()),
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
        constant_interval(lower, upper, |expr| self.0.node(expr))
    }
}

/// The interval between two bounds that are constants, or absent and so infinite; `None` for others.
#[inline]
pub(crate) fn constant_interval(
    lower: Option<Expr>,
    upper: Option<Expr>,
    node: impl Fn(Expr) -> Node,
) -> Option<Interval> {
    let end = |bound: Option<Expr>, infinity| match bound.map(&node) {
        None => Some(infinity),
        Some(Node::Const(value)) => Some(value),
        Some(_) => None,
    };
    Some(Interval::new(end(lower, i64::MIN)?, end(upper, i64::MAX)?))
}

/// The interner that owns expressions. It only grows, works through `&self` and can move to
/// another thread; there is no global state but a counter in debug builds, so threads with a
/// context each do not meet.
///
/// # Panics
/// Using an [`Expr`] with a context that did not make it panics in debug builds. In others it may
/// denote another expression.
#[derive(Debug, Default)]
pub struct Context {
    arena: RefCell<Arena>,
    /// Values that are kept for their memory, one of a type.
    scratch: RefCell<Vec<Box<dyn Any + Send>>>,
}

impl Context {
    /// An empty context.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of a type that was kept last, with its memory, or a new one.
    pub(crate) fn take_scratch<T: Any + Send + Default>(&self) -> T {
        let mut scratch = self.scratch.borrow_mut();
        let mut kept = scratch.iter_mut().filter_map(|value| value.downcast_mut::<T>());
        kept.next().map(std::mem::take).unwrap_or_default()
    }

    /// Keeps an empty value, with its memory, for the next that takes one of its type.
    pub(crate) fn keep_scratch<T: Any + Send>(&self, value: T) {
        let mut scratch = self.scratch.borrow_mut();
        match scratch.iter_mut().find_map(|kept| kept.downcast_mut::<T>()) {
            Some(kept) => *kept = value,
            None => scratch.push(Box::new(value)),
        }
    }

    /// The operation at the root of `expr`.
    #[inline]
    pub fn node(&self, expr: Expr) -> Node {
        self.arena.borrow().node(expr)
    }

    /// The number of operators in `expr` written out as text, saturating at `u32::MAX`. A
    /// difference, which is a sum with a negation, counts as one.
    #[inline]
    pub fn cost(&self, expr: Expr) -> u32 {
        let arena = self.arena.borrow();
        arena.costs[arena.place(expr)]
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
    pub(crate) fn intern(&self, node: Node) -> Expr {
        let mut arena = self.arena.borrow_mut();
        if let Node::Var(Var::Dim(dim)) = node
            && let Some(&number) = arena.dims.get(dim as usize)
            && number != VACANT
        {
            return arena.expr(number);
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
            let cost = |operand| arena.costs[arena.place(operand)];
            let operands = cost(lhs).saturating_add(cost(rhs));
            match (node, arena.node(rhs)) {
                // The negation is the operator of the difference.
                (Node::Add(..), Node::Mul(_, factor)) if arena.node(factor) == Node::Const(-1) => {
                    operands
                }
                _ => operands.saturating_add(1),
            }
        });
        let number = u32::try_from(arena.nodes.len()).expect("fewer than 2^32 expressions");
        let expr = arena.expr(number);
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

    /// The value of a constant, or of a sum or product of few that has more than 64 bits.
    fn as_wide_constant(&self, expr: Expr) -> Option<i128> {
        let (mut expr, mut steps) = (expr, SmallVec::<[(bool, i64); MAX_WIDE]>::new());
        let mut value = loop {
            match self.node(expr) {
                Node::Const(value) => break i128::from(value),
                node @ (Node::Add(lhs, rhs) | Node::Mul(lhs, rhs)) if steps.len() < MAX_WIDE => {
                    steps.push((matches!(node, Node::Add(..)), self.as_constant(rhs)?));
                    expr = lhs;
                }
                _ => return None,
            }
        };
        for (is_sum, operand) in steps.into_iter().rev() {
            let op = if is_sum { i128::checked_add } else { i128::checked_mul };
            value = op(value, operand.into())?;
        }
        // Its quotient by -1 has more bits.
        (value != i128::MIN).then_some(value)
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
                    // The inner constant, which may be all of it, may fit the new one.
                    return self.add(inner, self.constant(sum));
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
                    return self.mul(inner, self.constant(product));
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
        self.divide(lhs, rhs, floor_div_wide)
            .unwrap_or_else(|| self.intern(Node::FloorDiv(lhs, rhs)))
    }

    /// `lhs ceildiv rhs`.
    pub fn ceil_div(&self, lhs: Expr, rhs: Expr) -> Expr {
        self.divide(lhs, rhs, ceil_div_wide).unwrap_or_else(|| self.intern(Node::CeilDiv(lhs, rhs)))
    }

    fn divide(&self, lhs: Expr, rhs: Expr, op: fn(i128, i128) -> i128) -> Option<Expr> {
        match self.as_constant(rhs)? {
            0 => None,
            1 => Some(lhs),
            divisor => {
                let quotient = op(self.as_wide_constant(lhs)?, divisor.into());
                Some(self.constant(i64::try_from(quotient).ok()?))
            }
        }
    }

    /// `lhs mod rhs`.
    pub fn modulo(&self, lhs: Expr, rhs: Expr) -> Expr {
        match (self.as_wide_constant(lhs), self.as_constant(rhs)) {
            (_, Some(1)) => self.constant(0),
            // x mod -c == x mod c
            (_, Some(divisor)) if divisor < 0 && divisor != i64::MIN => {
                self.modulo(lhs, self.constant(-divisor))
            }
            (Some(value), Some(divisor)) if divisor != 0 => {
                let remainder = value.rem_euclid(i128::from(divisor));
                self.constant(i64::try_from(remainder).expect("smaller than 2^63"))
            }
            _ => self.intern(Node::Mod(lhs, rhs)),
        }
    }

    /// The smaller of two expressions.
    pub fn min(&self, lhs: Expr, rhs: Expr) -> Expr {
        match (self.as_wide_constant(lhs), self.as_wide_constant(rhs)) {
            _ if lhs == rhs => lhs,
            (Some(a), Some(b)) if a <= b => lhs,
            (Some(_), Some(_)) => rhs,
            _ => self.intern(Node::Min(lhs, rhs)),
        }
    }

    /// The larger of two expressions.
    pub fn max(&self, lhs: Expr, rhs: Expr) -> Expr {
        match (self.as_wide_constant(lhs), self.as_wide_constant(rhs)) {
            _ if lhs == rhs => lhs,
            (Some(a), Some(b)) if a >= b => lhs,
            (Some(_), Some(_)) => rhs,
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

#[cfg(test)]
mod tests {
    use super::{Context, EvalError, Var};

    #[test]
    fn folds_give_values_where_operands_have_none() {
        let ctx = Context::new();
        let zero = ctx.constant(0);
        for undefined in [ctx.floor_div(ctx.dim(0), zero), ctx.ceil_div(zero, zero)] {
            assert!(ctx.eval(undefined, &|_| Some(1)).is_err());
            assert_eq!(ctx.mul(undefined, zero), zero);
            assert_eq!(ctx.modulo(undefined, ctx.constant(-1)), zero);
        }
    }

    /// Printing an expression with another context, which has as many expressions.
    #[test]
    #[cfg(debug_assertions)]
    #[should_panic = "the expression belongs to another context"]
    fn rejects_expressions_of_another_context() {
        let (ctx, other) = (Context::new(), Context::new());
        let expr = ctx.add(ctx.dim(0), ctx.constant(1));
        other.add(other.dim(1), other.constant(2));
        let _ = other.display(expr).to_string();
    }

    #[test]
    #[cfg(not(debug_assertions))]
    fn handles_are_small() {
        assert_eq!(size_of::<Option<super::Expr>>(), 4);
    }

    #[test]
    fn operations_on_constants_that_do_not_fit_fold() {
        let ctx = Context::new();
        let constant = |value| ctx.constant(value);
        let large = ctx.mul(constant(i64::MAX), constant(-5));
        assert_eq!(ctx.modulo(large, constant(2)), constant(1));
        assert_eq!(ctx.floor_div(large, constant(i64::MAX)), constant(-5));
        assert_eq!(ctx.ceil_div(ctx.add(large, constant(1)), constant(i64::MAX)), constant(-4));
        assert_eq!(ctx.min(large, constant(7)), large);
        assert_eq!(ctx.max(large, constant(7)), constant(7));
        let least = ctx.mul(ctx.mul(constant(i64::MIN), constant(1 << 62)), constant(4));
        assert!(ctx.as_constant(ctx.floor_div(least, constant(-1))).is_none());
    }

    #[test]
    fn constants_that_did_not_fit_fold_later() {
        let ctx = Context::new();
        let sum = |x, constants: &[i64]| {
            constants.iter().fold(x, |sum, &constant| ctx.add(sum, ctx.constant(constant)))
        };
        let (x, five) = (ctx.dim(0), ctx.constant(5));
        assert_eq!(sum(five, &[i64::MAX, -10]), ctx.constant(i64::MAX - 5));
        assert_eq!(sum(x, &[5, i64::MAX, -10]), sum(x, &[i64::MAX - 5]));
        let product = ctx.mul(ctx.constant(1 << 62), ctx.constant(2));
        assert_eq!(ctx.neg(product), ctx.constant(i64::MIN));
    }

    #[test]
    fn intermediate_values_have_128_bits() {
        let ctx = Context::new();
        // -2^127 where d0 is the smallest number.
        let large = ctx.constant(1 << 62);
        let smallest = ctx.mul(ctx.mul(ctx.dim(0), large), ctx.constant(4));
        let value =
            |expr| ctx.eval(expr, &|var| Some(if var == Var::Dim(0) { i64::MIN } else { -1 }));
        let quotient = ctx.floor_div(ctx.floor_div(smallest, large), ctx.constant(4));
        assert_eq!(value(quotient), Ok(i64::MIN));
        assert_eq!(
            value(ctx.ceil_div(ctx.ceil_div(smallest, large), ctx.constant(4))),
            Ok(i64::MIN)
        );
        assert_eq!(value(ctx.floor_div(smallest, ctx.dim(1))), Err(EvalError::Overflow));
        assert_eq!(value(ctx.ceil_div(smallest, ctx.dim(1))), Err(EvalError::Overflow));
        assert_eq!(value(ctx.modulo(smallest, ctx.dim(1))), Ok(0));
        assert_eq!(value(ctx.modulo(smallest, large)), Ok(0));
        assert_eq!(value(ctx.modulo(ctx.constant(-1), smallest)), Err(EvalError::Overflow));
        assert_eq!(value(ctx.floor_div(ctx.constant(-1), smallest)), Ok(0));
    }
}
