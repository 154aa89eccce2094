//! The maps between an operand and an output, and sets of them.

use super::InstructionRef;
use std::collections::{BTreeSet, HashSet};
use tc_ir::{Context, IndexingMap, Interval, Var, Variable, compose};

/// The most maps that one set holds: a stencil of stencils has one for each point that it reads.
/// Where there are more, the set says that it is not known which elements are read.
pub const MAX_MAPS: usize = 128;

/// The most operators that a map may have when it is written out. Composition can double them
/// from one instruction to the next.
pub const MAX_OPERATORS: u32 = 4096;

/// The most exceptions that a map has. Where composition would give more, the rest is left out, and
/// the map says that it gives more than is read.
const MAX_EXCEPTIONS: usize = 4;

/// Where the value of a runtime variable comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RuntimeSource {
    /// It is an element of the value of this instruction.
    Element(InstructionRef),
    /// It is the number of a replica that this collective determines: the position of this
    /// replica in its group; of a `collective-permute` the replica that sends.
    Replica(InstructionRef),
}

impl RuntimeSource {
    /// The instruction.
    pub fn instruction(self) -> InstructionRef {
        match self {
            Self::Element(instruction) | Self::Replica(instruction) => instruction,
        }
    }
}

/// What a runtime variable of a map stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RuntimeVariable {
    /// Where the value comes from.
    pub source: RuntimeSource,
    /// Leads to the element that is read, if it is one: it has the variables of the map that the
    /// runtime variable belongs to.
    pub map: IndexingMap,
    /// The interval into which the value is moved if it lies outside, as `dynamic-slice` does; `None`
    /// if it is not moved, as a `scatter` leaves such an update out. Then, the map holds only if the
    /// value is within the bounds of the variable, which may be narrower.
    pub moved_into: Option<Interval>,
}

/// A map between one array of an operand and an output.
///
/// From output to input it leads from an element of the output to the elements of the operand that
/// it needs; from input to output, from an element of the operand to the elements of the output that
/// need it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OperandIndexing {
    /// Which array of the operand is meant, counting those of nested tuples in order; 0 unless it
    /// is a tuple.
    pub array: usize,
    /// Which elements.
    pub map: IndexingMap,
    /// What the runtime variables of `map` stand for.
    pub runtimes: Vec<RuntimeVariable>,
    /// Of a collective: which member of the group of replicas the element is read from, by its
    /// position in the group. Has one result and the variables of `map`.
    pub replica: Option<IndexingMap>,
    /// Where the map does not hold although its domain says so: the first operand of a
    /// `dynamic-update-slice` is not read where the update stands. Each is a domain in the variables
    /// of `map`, without results.
    pub exceptions: Vec<IndexingMap>,
    /// Whether the map gives more than is read: where values decide, as in a branch of a
    /// `conditional`, or where there are too many exceptions.
    pub is_conditional: bool,
}

impl OperandIndexing {
    /// One without runtime variables.
    pub fn new(array: usize, map: IndexingMap) -> Self {
        Self {
            array,
            map,
            runtimes: Vec::new(),
            replica: None,
            exceptions: Vec::new(),
            is_conditional: false,
        }
    }

    /// One that relates nothing.
    pub(super) fn empty(ctx: &Context, num_dims: usize, num_results: usize, array: usize) -> Self {
        let mut map = IndexingMap {
            dims: vec![Variable::default(); num_dims],
            results: vec![ctx.constant(0); num_results],
            ..IndexingMap::default()
        };
        map.set_known_empty(ctx);
        Self::new(array, map)
    }

    /// Simplifies the maps and removes range and runtime variables that nothing uses.
    pub fn simplify(&mut self, ctx: &Context) {
        self.map.simplify(ctx);
        self.simplify_exceptions(ctx);
        if self.map.is_known_empty(ctx) {
            let (dims, results) = (self.map.dims.len(), self.map.results.len());
            *self = Self::empty(ctx, dims, results, self.array);
            return;
        }
        for runtime in &mut self.runtimes {
            runtime.map.simplify(ctx);
        }
        if let Some(replica) = &mut self.replica {
            replica.simplify(ctx);
        }
        self.remove_unused(ctx);
    }

    /// Simplifies the exceptions and removes those that hold nowhere. One that holds everywhere
    /// leaves nothing of the map.
    pub(super) fn simplify_exceptions(&mut self, ctx: &Context) {
        let (map, domain) = (&self.map, self.map.intervals(ctx));
        self.exceptions.retain_mut(|exception| {
            exception.simplify(ctx);
            !exception.is_known_empty(ctx)
        });
        let mut seen = HashSet::new();
        self.exceptions.retain(|exception| seen.insert(exception.clone()));
        let is_everywhere = |exception: &IndexingMap| {
            let bounds = exception.intervals(ctx);
            exception.vars().all(|(var, _)| bounds.of(var).covers(domain.of(var)))
                && exception.constraints.iter().all(|it| map.constraints.contains(it))
        };
        if self.exceptions.iter().any(is_everywhere) {
            let (dims, results) = (self.map.dims.len(), self.map.results.len());
            *self = Self::empty(ctx, dims, results, self.array);
        }
    }

    /// Removes range and runtime variables that neither the map nor a runtime variable that stays
    /// uses.
    pub(super) fn remove_unused(&mut self, ctx: &Context) {
        let mut used = used_vars(ctx, &self.map);
        if let Some(replica) = &self.replica {
            used.extend(used_vars(ctx, replica));
        }
        for exception in &self.exceptions {
            used.extend(used_vars(ctx, exception));
            used.extend(narrowed_vars(ctx, exception, &self.map));
        }
        // One that restricts the domain does so whether or not an expression uses it.
        let numbers = (0..).take(self.runtimes.len());
        used.extend(numbers.filter(|&it| self.restricts(ctx, it)).map(Var::Runtime));
        let mut seen = BTreeSet::new();
        loop {
            let next = used.iter().find_map(|&var| match var {
                Var::Runtime(number) if !seen.contains(&number) => Some(number),
                _ => None,
            });
            let Some(number) = next else { break };
            seen.insert(number);
            if let Some(runtime) = self.runtimes.get(number as usize) {
                used.extend(used_vars(ctx, &runtime.map));
            }
        }
        let unused: Vec<Var> = self
            .map
            .vars()
            .map(|(var, _)| var)
            .filter(|var| !matches!(var, Var::Dim(_)) && !used.contains(var))
            .collect();
        if unused.is_empty() {
            return;
        }
        let mut number = 0;
        self.runtimes.retain(|_| {
            number += 1;
            used.contains(&Var::Runtime(number - 1))
        });
        let runtimes = self.runtimes.iter_mut().map(|runtime| &mut runtime.map);
        let others = self.replica.iter_mut().chain(&mut self.exceptions);
        for map in runtimes.chain(others).chain([&mut self.map]) {
            // A variable that is still used stays; there is none by the choice above.
            let _ = map.compress(ctx, &unused);
        }
    }

    /// Whether the map depends on a runtime variable being within its bounds.
    pub fn restricts(&self, ctx: &Context, runtime: u32) -> bool {
        let number = runtime as usize;
        let (Some(runtime), Some(variable)) =
            (self.runtimes.get(number), self.map.runtimes.get(number))
        else {
            return false;
        };
        let bounds = variable.constant_interval(ctx).unwrap_or(Interval::EMPTY);
        runtime.moved_into.is_none_or(|interval| !bounds.covers(interval))
    }

    /// First this one, then `second`: if this one leads from a result to an intermediate array, and
    /// `second` from that to an operand, then the composition leads from the result to the operand.
    /// `None` if they do not fit together, or the result would be larger than [`MAX_OPERATORS`].
    pub fn then(&self, ctx: &Context, second: &Self) -> Option<Self> {
        let mut map = compose(ctx, &self.map, &second.map).ok()?;
        let (ranges, runtimes) =
            (u32::try_from(second.map.ranges.len()).ok()?, second.map.runtimes.len());
        let runtime_shift = u32::try_from(runtimes).ok()?;
        // Maps that belong to this one keep their meaning; the variables of `second` come before
        // their own.
        let widened = |own: &IndexingMap| {
            let mut own = own.clone();
            own.substitute(ctx, &|var| match var {
                Var::Dim(_) => None,
                Var::Range(number) => Some(ctx.range(number.checked_add(ranges)?)),
                Var::Runtime(number) => Some(ctx.runtime(number.checked_add(runtime_shift)?)),
            });
            own.ranges = [&second.map.ranges[..], &own.ranges].concat();
            own.runtimes = [&second.map.runtimes[..], &own.runtimes].concat();
            own
        };
        let mut all = Vec::with_capacity(runtimes + self.runtimes.len());
        for runtime in &second.runtimes {
            let map = compose(ctx, &self.map, &runtime.map).ok()?;
            all.push(RuntimeVariable { map, ..*runtime });
        }
        for runtime in &self.runtimes {
            all.push(RuntimeVariable { map: widened(&runtime.map), ..*runtime });
        }
        // The operand of the second is the one that is read, so its replica is.
        let replica = match (&self.replica, &second.replica) {
            (_, Some(replica)) => Some(compose(ctx, &self.map, replica).ok()?),
            (Some(replica), None) => Some(widened(replica)),
            (None, None) => None,
        };
        let mut exceptions = Vec::with_capacity(self.exceptions.len() + second.exceptions.len());
        for exception in &second.exceptions {
            exceptions.push(compose(ctx, &self.map, exception).ok()?);
        }
        exceptions.extend(self.exceptions.iter().map(widened));
        if map.is_known_empty(ctx) {
            map.set_known_empty(ctx);
        }
        let is_conditional = self.is_conditional || second.is_conditional;
        let array = second.array;
        let mut composed = Self { array, map, runtimes: all, replica, exceptions, is_conditional };
        if !composed.is_small(ctx) {
            return None;
        }
        composed.simplify(ctx);
        if MAX_EXCEPTIONS < composed.exceptions.len() {
            composed.exceptions.truncate(MAX_EXCEPTIONS);
            composed.is_conditional = true;
            composed.remove_unused(ctx);
        }
        Some(composed)
    }

    fn is_small(&self, ctx: &Context) -> bool {
        let runtimes = self.runtimes.iter().map(|runtime| &runtime.map);
        let maps = runtimes.chain(&self.replica).chain(&self.exceptions).chain([&self.map]);
        let exprs = maps.flat_map(|map| {
            map.results.iter().chain(map.constraints.iter().map(|constraint| &constraint.expr))
        });
        exprs.fold(0u32, |sum, &expr| sum.saturating_add(ctx.cost(expr))) <= MAX_OPERATORS
    }

    /// Whether it leads from every element to the same one, and adds nothing else.
    pub(super) fn is_plain_identity(&self, ctx: &Context) -> bool {
        self.runtimes.is_empty()
            && self.replica.is_none()
            && self.exceptions.is_empty()
            && !self.is_conditional
            && self.map.ranges.is_empty()
            && self.map.constraints.is_empty()
            && self.map.is_identity(ctx)
    }
}

/// The variables in results and constraints of a map, and those in their bounds.
fn used_vars(ctx: &Context, map: &IndexingMap) -> BTreeSet<Var> {
    let constraints = map.constraints.iter().map(|constraint| constraint.expr);
    let exprs: Vec<_> = map.results.iter().copied().chain(constraints).collect();
    ctx.vars_of_all(&exprs)
}

/// The variables that have narrower bounds in an exception than in the map that it belongs to.
pub(super) fn narrowed_vars<'a>(
    ctx: &Context,
    exception: &'a IndexingMap,
    map: &IndexingMap,
) -> impl Iterator<Item = Var> + 'a {
    let (bounds, domain) = (exception.intervals(ctx), map.intervals(ctx));
    let vars = exception.vars().map(|(var, _)| var);
    vars.filter(move |&var| !bounds.of(var).covers(domain.of(var)))
}

/// The maps between one operand and an output, each once.
#[derive(Clone, Debug, Default)]
pub struct IndexingSet {
    maps: Vec<OperandIndexing>,
    seen: HashSet<OperandIndexing>,
    unknown: BTreeSet<usize>,
}

impl PartialEq for IndexingSet {
    /// As sets.
    fn eq(&self, other: &Self) -> bool {
        self.seen == other.seen && self.unknown == other.unknown
    }
}

impl IndexingSet {
    /// A set of one map.
    pub fn of(indexing: OperandIndexing) -> Self {
        let mut set = Self::default();
        set.insert(indexing);
        set
    }

    /// The set for an array of which it is not known what is read.
    pub fn unknown(array: usize) -> Self {
        let mut set = Self::default();
        set.insert_unknown(array);
        set
    }

    /// The maps, in the order in which they were found.
    pub fn maps(&self) -> &[OperandIndexing] {
        &self.maps
    }

    /// The arrays of the operand of which it is not known which elements are read: any may be.
    pub fn unknown_arrays(&self) -> impl Iterator<Item = usize> {
        self.unknown.iter().copied()
    }

    /// Whether it is not known which elements of an array are read.
    pub fn is_unknown(&self, array: usize) -> bool {
        self.unknown.contains(&array)
    }

    /// Whether something is read in an unknown way.
    pub fn has_unknown(&self) -> bool {
        !self.unknown.is_empty()
    }

    /// Whether nothing is read.
    pub fn is_empty(&self) -> bool {
        self.maps.is_empty() && self.unknown.is_empty()
    }

    /// The only map, if there is nothing else.
    pub fn single(&self) -> Option<&OperandIndexing> {
        match &self.maps[..] {
            [only] if self.unknown.is_empty() => Some(only),
            _ => None,
        }
    }

    /// Adds a map, unless it is there. Past [`MAX_MAPS`] its array becomes unknown.
    pub fn insert(&mut self, indexing: OperandIndexing) {
        if self.seen.contains(&indexing) {
            return;
        }
        // What is read in any case says more than what is read in some.
        let is_conditional = !indexing.is_conditional;
        let other = OperandIndexing { is_conditional, ..indexing.clone() };
        if self.seen.contains(&other) {
            if other.is_conditional {
                self.maps
                    .iter_mut()
                    .filter(|it| **it == other)
                    .for_each(|it| *it = indexing.clone());
                self.seen.remove(&other);
                self.seen.insert(indexing);
            }
            return;
        }
        if MAX_MAPS <= self.maps.len() {
            let array = indexing.array;
            self.maps.retain(|each| each.array != array);
            self.seen.retain(|each| each.array != array);
            self.insert_unknown(array);
            return;
        }
        self.seen.insert(indexing.clone());
        self.maps.push(indexing);
    }

    /// Adds that it is not known which elements of an array are read.
    pub fn insert_unknown(&mut self, array: usize) {
        self.unknown.insert(array);
    }

    /// The same maps, which values decide about.
    pub(super) fn conditional(&self) -> Self {
        let mut set = Self { unknown: self.unknown.clone(), ..Self::default() };
        for indexing in &self.maps {
            set.insert(OperandIndexing { is_conditional: true, ..indexing.clone() });
        }
        set
    }

    /// Adds what another set holds.
    pub fn extend(&mut self, other: &Self) {
        for indexing in &other.maps {
            self.insert(indexing.clone());
        }
        self.unknown.extend(&other.unknown);
    }
}
