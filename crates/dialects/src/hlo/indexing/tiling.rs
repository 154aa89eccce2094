//! Tiles of arrays, passed from the result of an instruction to its operands and back.
//!
//! A [`Tiling`] numbers the tiles of a computation. It has the dimensions of the root, whose tiles are in
//! any order, and the dimensions that instructions sum over, whose tiles come one after the other. A tile
//! of an operand is the image of a tile of the result under the map of the instruction. There, a range
//! variable of a summed dimension has the values of one tile; any other has all of its values.
//!
//! A scan passes tiles step by step: a tile of its results needs the same steps of the inputs and what
//! is carried. So that nothing else is carried between tiles, a dimension of the root that is scanned is
//! one tile.
//!
//! Where a map has exceptions, or values decide what is read, a tile has all that may be read.
//!
//! Source: XLA's experimental tiling (`xla/codegen/tiling/experimental`, `tiling_space.cc` and
//! `tile_propagation.cc`). Here the [maps](super) decide; the list of operations that sum over a
//! dimension is all that is said about opcodes.

use super::{
    Direction, Indexing, InstructionRef, Op, Reads, RuntimeSource, arrays, dimensions, num_arrays,
    runtime,
};
use crate::hlo::{Attribute, ComputationId, Opcode};
use std::collections::{HashMap, HashSet};
use tc_ir::{
    Constraint, ConstraintExpression, IndexingMap, Interval, Var, Variable,
    tile::{DimTile, Irregularity, Order, Tile, TilingSpace},
};

/// A tile of an array of a value, and the member of a group of replicas that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedTile {
    /// Which array, counting those of nested tuples in order; 0 unless the value is a tuple.
    pub array: usize,
    /// The elements.
    pub tile: Tile,
    /// Which members, by position in the group of a collective. `None` if it is the replica that needs
    /// the tile, or each of a group.
    pub replica: Option<DimTile>,
}

impl From<Tile> for PlacedTile {
    fn from(tile: Tile) -> Self {
        Self { array: 0, tile, replica: None }
    }
}

/// Why no tile is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untiled {
    /// There is no map, or more than one.
    #[error("operand {0} is not read by one map")]
    Maps(usize),
    /// The map leads to no tile.
    #[error("operand {0}: {1}")]
    Irregular(usize, Irregularity),
    /// A value that is known only when the program runs, and that the space does not have.
    #[error("operand {0} is read at a position that the tiling does not know")]
    Runtime(usize),
    /// The root is no array, nor several of equal extents.
    #[error("results of different shapes")]
    Root,
}

/// A runtime variable of the space: the instruction that has it in its maps, its source and its values.
type RuntimeKey = (InstructionRef, RuntimeSource, Interval);

/// The tiles of a computation. The dimensions of its space are those of the root, then those that
/// instructions on the way to the operands sum over.
pub struct Tiling<'i, 'm> {
    pub(super) indexing: &'i Indexing<'m>,
    /// The dimensions that tiles are numbered by.
    pub space: TilingSpace,
    /// For each dimension of the space, the instruction that it belongs to, and its position there:
    /// after the dimensions of the results come those that are summed over.
    pub positions: Vec<(InstructionRef, usize)>,
    /// By instruction and position.
    numbers: HashMap<(InstructionRef, usize), usize>,
    runtimes: Vec<RuntimeKey>,
    /// The extents of its arrays are the first dimensions of the space.
    root: InstructionRef,
    pub(super) rank: usize,
    num_roots: usize,
    /// The instructions that are reached, users first.
    order: Vec<InstructionRef>,
    /// Of the fused computations that are looked through, the fusions.
    callers: HashMap<ComputationId, InstructionRef>,
}

impl<'i, 'm> Tiling<'i, 'm> {
    /// The tiling of what an instruction needs, within its computation. That of a fusion is that of the
    /// root of the fused computation. That of a tuple is that of the operand that needs all others.
    ///
    /// # Errors
    /// [`Untiled::Root`]
    pub fn of(indexing: &'i Indexing<'m>, root: InstructionRef) -> Result<Self, Untiled> {
        let mut root = root;
        // Callees stand before their callers.
        while indexing.instruction(root).opcode == Opcode::Fusion {
            let callee = indexing.instruction(root).called_computations().next();
            root = indexing.root(callee.ok_or(Untiled::Root)?);
        }
        Self::within(indexing, root, HashMap::new())
    }

    /// The same, looking through the fusions of the computation whose own is called once.
    ///
    /// # Errors
    /// [`Untiled::Root`]
    pub fn through_fusions(
        indexing: &'i Indexing<'m>,
        root: InstructionRef,
    ) -> Result<Self, Untiled> {
        let mut callers: HashMap<ComputationId, InstructionRef> = HashMap::new();
        let mut repeated = Vec::new();
        for (computation, body) in indexing.module.computations() {
            for (instruction, called) in body.instructions() {
                for callee in called.called_computations() {
                    let caller = InstructionRef { computation, instruction };
                    let is_fusion = called.opcode == Opcode::Fusion;
                    if callers.insert(callee, caller).is_some() || !is_fusion {
                        repeated.push(callee);
                    }
                }
            }
        }
        repeated.iter().for_each(|callee| {
            callers.remove(callee);
        });
        callers.retain(|_, caller| caller.computation == root.computation);
        Self::within(indexing, root, callers)
    }

    fn within(
        indexing: &'i Indexing<'m>,
        root: InstructionRef,
        callers: HashMap<ComputationId, InstructionRef>,
    ) -> Result<Self, Untiled> {
        let mut tiling = Self {
            indexing,
            space: TilingSpace::default(),
            positions: Vec::new(),
            numbers: HashMap::new(),
            runtimes: Vec::new(),
            root,
            rank: 0,
            num_roots: 0,
            order: Vec::new(),
            callers,
        };
        tiling.root = tiling.real_root(root)?;
        tiling.order = tiling.users_first(tiling.root);
        let shapes = arrays(&indexing.instruction(tiling.root).shape);
        let [first, rest @ ..] = &shapes[..] else { return Err(Untiled::Root) };
        // A scan also has what is carried to the end.
        let is_scan = indexing.instruction(tiling.root).opcode == Opcode::Scan;
        if !is_scan && rest.iter().any(|shape| shape.dims != first.dims) {
            return Err(Untiled::Root);
        }
        tiling.rank = first.rank();
        tiling.num_roots = shapes.iter().filter(|shape| shape.dims == first.dims).count();
        for (position, &extent) in first.dims.iter().enumerate() {
            tiling.add_dim((tiling.root, position), extent, Order::Parallel);
        }
        tiling.visit();
        Ok(tiling)
    }

    /// The root of what is tiled.
    pub fn root(&self) -> InstructionRef {
        self.root
    }

    /// The operand of a tuple that needs all others, or the instruction itself.
    fn real_root(&self, root: InstructionRef) -> Result<InstructionRef, Untiled> {
        let root = self.resolved(root);
        if self.indexing.instruction(root).opcode != Opcode::Tuple {
            return Ok(root);
        }
        // It comes first if it needs the others, which then have a user beside the tuple.
        let first = self.users_first(root).into_iter().nth(1).ok_or(Untiled::Root)?;
        let reached: HashSet<InstructionRef> = self.users_first(first).into_iter().collect();
        match self.sources(root).iter().all(|operand| reached.contains(operand)) {
            true => Ok(first),
            false => Err(Untiled::Root),
        }
    }

    /// The instruction that has the value of another one: of a fusion that is looked through, the root
    /// of the fused computation; of a parameter of that, the operand of the fusion.
    pub fn resolved(&self, at: InstructionRef) -> InstructionRef {
        let mut at = at;
        // Each step leads to a callee or against the data flow.
        loop {
            let instruction = self.indexing.instruction(at);
            let callee = instruction.called_computations().next();
            let callee = callee.filter(|callee| self.callers.get(callee) == Some(&at));
            let operand = || {
                let caller = *self.callers.get(&at.computation)?;
                let number = usize::try_from(instruction.parameter_number()?).ok()?;
                Op::new(self.indexing, caller).operand_ref(number)
            };
            let next = match instruction.opcode {
                Opcode::Fusion => callee.map(|callee| self.indexing.root(callee)),
                Opcode::Parameter => operand(),
                _ => None,
            };
            match next {
                Some(next) => at = next,
                None => return at,
            }
        }
    }

    /// The instructions that the operands of an instruction stand for.
    pub fn sources(&self, at: InstructionRef) -> Vec<InstructionRef> {
        let op = Op::new(self.indexing, at);
        let operands = (0..op.num_operands()).filter_map(|number| op.operand_ref(number));
        operands.map(|operand| self.resolved(operand)).collect()
    }

    /// What an instruction needs, and itself; users first.
    fn users_first(&self, root: InstructionRef) -> Vec<InstructionRef> {
        let (mut order, mut seen) = (Vec::new(), HashSet::from([root]));
        let mut open = vec![(root, self.sources(root))];
        while let Some((at, sources)) = open.last_mut() {
            match sources.pop() {
                Some(source) if seen.insert(source) => open.push((source, self.sources(source))),
                Some(_) => {}
                None => {
                    order.push(*at);
                    open.pop();
                }
            }
        }
        order.reverse();
        order
    }

    fn add_dim(&mut self, position: (InstructionRef, usize), extent: i64, order: Order) {
        let number = self.space.add_dim(extent, order);
        self.positions.push(position);
        self.numbers.insert(position, number);
    }

    /// Adds the dimensions that instructions sum over and their runtime variables, users first.
    fn visit(&mut self) {
        let mut tiles: HashMap<InstructionRef, PlacedTile> = HashMap::new();
        tiles.extend(self.root_tiles().into_iter().next().map(|tile| (self.root, tile.into())));
        for at in self.order.clone() {
            let op = Op::new(self.indexing, at);
            for (number, extent) in contracted_extents(&op).into_iter().enumerate() {
                let rank = arrays(&op.instruction.shape).first().map_or(0, |it| it.rank());
                self.add_dim((at, rank + number), extent, Order::Sequential);
            }
            self.add_runtimes(&op);
            let Some(tile) = tiles.get(&at) else { continue };
            self.scan_whole(&op, &tile.tile);
            // Where there is no tile, there may be more dimensions, but no scan of one of the root.
            let operands = self.operand_tiles(at, tile).unwrap_or_default();
            for (source, operand) in self.sources(at).into_iter().zip(operands) {
                if let Some(tile) = operand {
                    tiles.entry(source).or_insert(tile);
                }
            }
        }
    }

    /// A tile of each instruction that is reached, the root's first.
    ///
    /// # Errors
    /// An instruction has none.
    pub fn tiles(&self) -> Result<Vec<(InstructionRef, PlacedTile)>, Untiled> {
        let mut tiles: HashMap<InstructionRef, PlacedTile> = HashMap::new();
        tiles.extend(self.root_tiles().into_iter().next().map(|tile| (self.root, tile.into())));
        for &at in &self.order {
            let Some(tile) = tiles.get(&at) else { continue };
            if self.sources(at).is_empty() {
                continue;
            }
            let operands = self.operand_tiles(at, tile)?;
            for (source, operand) in self.sources(at).into_iter().zip(operands) {
                if let Some(tile) = operand {
                    tiles.entry(source).or_insert(tile);
                }
            }
        }
        let found = self.order.iter().filter_map(|at| Some((*at, tiles.remove(at)?)));
        Ok(found.collect())
    }

    fn add_runtimes(&mut self, op: &Op) {
        if op.instruction.opcode == Opcode::RaggedDot && is_outer_ragged(op) {
            if let Some(extent) = ragged_extent(op)
                && let Some(source) = op.operand_ref(2)
            {
                let source = RuntimeSource::Element(source);
                self.add_runtime((op.at, source, Interval::new(0, extent)));
            }
            return;
        }
        for operand in 0..op.num_operands() {
            let Some(Reads::Related(relation)) = op.reads(0, &[operand]) else { continue };
            for (source, interval) in relation.runtime_sources() {
                let key = (op.at, source, interval);
                // Several operands may be read at the same position.
                if operand == 0 || !self.runtimes.contains(&key) {
                    self.add_runtime(key);
                }
            }
        }
    }

    fn add_runtime(&mut self, key: RuntimeKey) {
        self.space.runtimes.push(key.2);
        self.runtimes.push(key);
    }

    /// Makes a dimension of the root one tile if it is scanned.
    fn scan_whole(&mut self, op: &Op, tile: &Tile) {
        if op.instruction.opcode != Opcode::Scan {
            return;
        }
        let ctx = self.indexing.context();
        let Some(dims) = dimensions(op.instruction.dimensions(), tile.dims.len()) else { return };
        for dim in dims {
            let lanes = tile.dims[dim];
            let is_own = |number: &usize| self.space.tile(ctx, *number) == Some(lanes);
            let Some(number) = (0..self.space.dims.len()).find(is_own) else { continue };
            self.space.dims[number].order = Order::Sequential;
            let interval = Interval::new(self.space.dims[number].extent, i64::MAX);
            let whole = Constraint { expr: lanes.size, interval };
            let whole = ConstraintExpression::new(vec![vec![whole]]);
            self.space.constraints = self.space.constraints.and(&whole);
        }
    }

    /// The tile of each array of the root.
    pub fn root_tiles(&self) -> Vec<Tile> {
        let ctx = self.indexing.context();
        let dims = (0..self.rank).filter_map(|number| self.space.tile(ctx, number));
        vec![Tile::new(dims.collect()); self.num_roots]
    }

    /// What a tile of an instruction needs of each operand. `None` for an operand that is not read.
    ///
    /// # Errors
    /// The needed elements are not seen to be a tile.
    pub fn operand_tiles(
        &self,
        at: InstructionRef,
        tile: &PlacedTile,
    ) -> Result<Vec<Option<PlacedTile>>, Untiled> {
        let op = Op::new(self.indexing, at);
        let operands = 0..op.num_operands();
        let through =
            |operand| self.passed(&op, (tile.array, operand), tile, Direction::OutputToInput);
        operands.map(through).collect()
    }

    /// What a tile of an operand is needed for, of each array of the result. `None` for an array that does
    /// not need it.
    ///
    /// # Errors
    /// These elements are not seen to be a tile.
    pub fn output_tiles(
        &self,
        at: InstructionRef,
        operand: usize,
        tile: &PlacedTile,
    ) -> Result<Vec<Option<PlacedTile>>, Untiled> {
        let op = Op::new(self.indexing, at);
        let outputs = 0..num_arrays(&op.instruction.shape);
        let through = |output| self.passed(&op, (output, operand), tile, Direction::InputToOutput);
        outputs.map(through).collect()
    }

    fn passed(
        &self,
        op: &Op,
        (output, operand): (usize, usize),
        tile: &PlacedTile,
        direction: Direction,
    ) -> Result<Option<PlacedTile>, Untiled> {
        let ctx = self.indexing.context();
        let step = step_of_scan(op, output);
        let op = step.as_ref().unwrap_or(op);
        let mut relation = match op.reads(output, &[operand]) {
            Some(Reads::Nothing) => return Ok(None),
            Some(Reads::Related(relation)) => relation,
            Some(Reads::Unknown) | None => return Err(Untiled::Maps(operand)),
        };
        let array = match direction {
            Direction::OutputToInput => relation.array,
            Direction::InputToOutput if relation.array != tile.array => return Ok(None),
            Direction::InputToOutput => output,
        };
        // Lanes of a tile that is larger than an operand stay in their place.
        relation.keeps_points = true;
        let mut indexing = relation.map(ctx, direction).ok_or(Untiled::Maps(operand))?;
        runtime::replace_known(self.indexing, &mut indexing);
        // The numbers that the space has for the runtime variables.
        let bounds = indexing.map.intervals(ctx);
        let numbers: Option<Vec<u32>> = (0..)
            .zip(&indexing.runtimes)
            .map(|(number, runtime)| {
                let key = (op.at, runtime.source, bounds.of(Var::Runtime(number)));
                let number = self.runtimes.iter().position(|known| *known == key)?;
                u32::try_from(number).ok()
            })
            .collect();
        let numbers = numbers.ok_or(Untiled::Runtime(operand))?;
        let mut map = indexing.map;
        let is_shared = |expr| ctx.vars(expr).iter().any(|var| !matches!(var, Var::Range(_)));
        // A replica that only a range variable says is each of the group.
        let replica = indexing.replica.and_then(|replica| replica.results.first().copied());
        let replica = replica.filter(|&it| is_shared(it) || ctx.as_constant(it).is_some());
        map.results.extend(replica);
        let results = ctx.substitute_all(&map.results, &|var| match var {
            Var::Runtime(number) => Some(ctx.runtime(*numbers.get(number as usize)?)),
            _ => None,
        });
        let runtimes = self.space.runtimes.iter().map(|it| Variable::bounded(ctx, *it));
        let map = IndexingMap { results, runtimes: runtimes.collect(), ..map };
        let mut ranges = vec![None; map.ranges.len()];
        if direction == Direction::OutputToInput {
            self.bind_contracted(op, operand, &map, &mut ranges);
        }
        let mut found = tile
            .tile
            .through(ctx, &self.space, &map, &ranges)
            .map_err(|reason| Untiled::Irregular(operand, reason))?;
        let replica = match replica {
            Some(_) => found.dims.pop(),
            None => tile.replica,
        };
        if direction == Direction::OutputToInput {
            self.bound_group(op, operand, &mut found);
        }
        Ok(Some(PlacedTile { array, tile: found, replica }))
    }

    /// The range variables that stand for dimensions that are summed over.
    fn bind_contracted(
        &self,
        op: &Op,
        operand: usize,
        map: &IndexingMap,
        ranges: &mut [Option<DimTile>],
    ) {
        let ctx = self.indexing.context();
        let rank = map.dims.len();
        for (position, dim) in contracted(op, operand).into_iter().enumerate() {
            let number = self.numbers.get(&(op.at, rank + position));
            let (Some(dim), Some(&number)) = (dim, number) else { continue };
            let Some(&subscript) = map.results.get(dim) else { continue };
            for var in ctx.vars(subscript) {
                if let Var::Range(range) = var
                    && let Some(slot) = ranges.get_mut(range as usize)
                {
                    *slot = self.space.tile(ctx, number);
                }
            }
        }
    }

    /// XLA counts the rows of a group of `ragged-dot` from the first one of the group, so that their
    /// number bounds them.
    fn bound_group(&self, op: &Op, operand: usize, tile: &mut Tile) {
        if op.instruction.opcode != Opcode::RaggedDot || operand != 0 || !op.like_xla {
            return;
        }
        let ctx = self.indexing.context();
        let number = self.runtimes.iter().position(|(at, ..)| *at == op.at);
        let Some(number) = number.and_then(|it| u32::try_from(it).ok()) else { return };
        let ragged = dimensions(op.instruction.integers(Attribute::LhsRaggedDims), tile.dims.len());
        for dim in ragged.unwrap_or_default() {
            let bound = &mut tile.dims[dim].upper_bound;
            let rows = ctx.runtime(number);
            let is_less = self.space.interval(Var::Runtime(number)).hi
                <= self.space.interval_of(ctx, *bound).lo;
            *bound = if is_less { rows } else { ctx.min(*bound, rows) };
        }
    }
}

/// A scan, whose arrays with all steps are passed step by step.
fn step_of_scan<'m>(op: &Op<'m>, output: usize) -> Option<Op<'m>> {
    if op.instruction.opcode != Opcode::Scan {
        return None;
    }
    let carries = usize::try_from(op.instruction.integer(Attribute::NumCarries)?).ok()?;
    let is_step = output.checked_add(carries)? < num_arrays(&op.instruction.shape);
    Some(Op::of(op.module, op.at, is_step))
}

/// Whether the groups of a `ragged-dot` divide a dimension of the result.
fn is_outer_ragged(op: &Op) -> bool {
    let dims = op.instruction.dot_dims();
    let ragged = op.instruction.integers(Attribute::LhsRaggedDims);
    ragged.iter().all(|it| !dims.lhs_contracting.contains(it) && !dims.lhs_batch.contains(it))
}

/// The extent of the dimension that groups divide.
fn ragged_extent(op: &Op) -> Option<i64> {
    let lhs = op.operand_dims(0)?;
    let [dim] = dimensions(op.instruction.integers(Attribute::LhsRaggedDims), lhs.len())?[..]
    else {
        return None;
    };
    Some(lhs[dim])
}

/// For each dimension that an instruction sums over, the dimension of the operand that it is, if the
/// operand has it.
pub(super) fn contracted(op: &Op, operand: usize) -> Vec<Option<usize>> {
    let rank = op.operand_dims(operand).map_or(0, <[i64]>::len);
    let named = |numbers: &[i64]| -> Vec<Option<usize>> {
        numbers.iter().map(|&number| super::dimension(number, rank)).collect()
    };
    let dims = op.instruction.dot_dims();
    let of_dot = || match operand % 2 {
        0 => named(dims.lhs_contracting),
        _ => named(dims.rhs_contracting),
    };
    match op.instruction.opcode {
        Opcode::Dot | Opcode::ScaledDot => of_dot(),
        Opcode::RaggedDot => {
            let groups = match operand {
                _ if !is_outer_ragged(op) => Vec::new(),
                0 => vec![None],
                1 => named(op.instruction.integers(Attribute::RhsGroupDims)),
                _ => vec![rank.checked_sub(1)],
            };
            let products = if operand < 2 { of_dot() } else { Vec::new() };
            [groups, products].concat()
        }
        Opcode::Reduce if operand < op.num_operands() / 2 => named(op.instruction.dimensions()),
        _ => Vec::new(),
    }
}

/// The extents of the dimensions that an instruction sums over.
fn contracted_extents(op: &Op) -> Vec<i64> {
    let operands = 0..op.num_operands().min(2);
    let of_operand = |operand: usize| -> Vec<Option<i64>> {
        let extents = op.operand_dims(operand).unwrap_or_default();
        let dims = contracted(op, operand).into_iter();
        dims.map(|dim| extents.get(dim?).copied()).collect()
    };
    let all: Vec<Vec<Option<i64>>> = operands.map(of_operand).collect();
    let count = all.iter().map(Vec::len).max().unwrap_or(0);
    let extent = |position: usize| all.iter().find_map(|extents| *extents.get(position)?);
    (0..count).map_while(extent).collect()
}
