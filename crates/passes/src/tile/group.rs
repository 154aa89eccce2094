//! Tile groups: which operations are computed together, one tile of their common dimensions at a time.
//!
//! A group has a root, the last operation, and members, the producers of its operands. Operations of the group read
//! the results of members; operations after the root may read them, too. Each tiled dimension of the root is *linked*
//! to a dimension of each member: one index of a reader needs exactly one index of its producer. So nothing is
//! computed twice. Other dimensions and all ranges are not tiled.

use melior::ir::{TypeLike, ValueLike, operation::OperationLike};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use tc_dialects::{
    imap::{Access, AnyIndexed, Generic, Indexed, View, tiling},
    mlir::{self, Op},
};
use tc_ir::{
    Context, VarIntervals,
    expr::{Expr, Var},
};

/// Limits of groups, from the description of a machine.
#[derive(Copy, Clone, Debug)]
pub struct Limits {
    /// The least bytes of results that are no longer stored whole.
    pub min_bytes: u64,
    /// The most bytes that one tile may touch.
    pub tile_bytes: u64,
    /// The most bytes of an operand that all tiles read again.
    pub shared_bytes: u64,
    /// The least points of the root in a tile, if the tiled dimensions have as many.
    pub min_points: u64,
    /// The least elements of a contiguous row that tiles cut.
    pub min_row: u64,
    /// The work that is worth several threads; `None` for one thread.
    pub parallel: Option<u64>,
}

/// LLVM takes more than linear time for the loops of one nest.
const MAX_MEMBERS: usize = 32;

/// Extents beyond this are taken for unknown ones.
const LARGE: u64 = 1 << 20;

/// An operation of a group, and the dimension variable that each tiled dimension of the root is linked to.
#[derive(Clone)]
struct Member<'c> {
    generic: Generic<'c>,
    view: View<'c>,
    intervals: VarIntervals,
    links: BTreeMap<u32, u32>,
    /// Whether operations outside of the group read results.
    escapes: bool,
    /// Operands that only name the memory of a result.
    reused: Vec<(Op<'c>, usize)>,
}

/// Operations that are computed together.
pub struct Group<'c> {
    /// The last operation.
    pub root: Generic<'c>,
    /// The others, readers first, and whether operations after the root read their results, too.
    pub members: Vec<(Generic<'c>, bool)>,
    /// Operands that are results of members, and of which no element is read: destinations that are written
    /// from the start. Members have no such memory any more.
    pub reused: Vec<(Op<'c>, usize)>,
    /// The sizes of tiles, per loop of the root; 0 for a loop that stays whole.
    pub sizes: Vec<i64>,
    /// Whether the tiles are worth several threads.
    pub is_parallel: bool,
}

impl<'c> Member<'c> {
    fn new(ir: &Context, generic: Generic<'c>, links: BTreeMap<u32, u32>, escapes: bool) -> Self {
        let view = View::of(ir, generic);
        let intervals = view.domain.intervals(ir);
        Self { generic, view, intervals, links, escapes, reused: Vec::new() }
    }

    /// The values that a variable has; `None` if they are unknown.
    fn extent(&self, ir: &Context, var: Var) -> Option<u64> {
        self.view.domain.variable(var)?.constant_interval(ir)?;
        self.intervals.of(var).num_members()
    }

    fn is_loop(&self, ir: &Context, var: Var) -> bool {
        !matches!(var, Var::Runtime(_)) && self.extent(ir, var) != Some(1)
    }

    /// The bytes of an access in one tile, in which tiled variables have one value.
    fn tile_bytes(&self, ir: &Context, access: &Access) -> u64 {
        let is_tiled =
            |var: &Var| matches!(var, Var::Dim(dim) if self.links.values().any(|it| it == dim));
        let vars = ir.vars_of_all(&access.subscripts);
        let extents = vars.into_iter().filter(|var| !is_tiled(var) && self.is_loop(ir, *var));
        let count = extents
            .map(|var| self.extent(ir, var).unwrap_or(LARGE))
            .fold(1, |product: u64, extent| product.saturating_mul(extent));
        count.saturating_mul(element_bytes(access))
    }

    /// Whether tiles of the innermost loop access different elements.
    fn is_tiled(&self, ir: &Context, access: &Access) -> bool {
        let innermost = self.links.values().next_back();
        innermost.is_some_and(|dim| ir.vars_of_all(&access.subscripts).contains(&Var::Dim(*dim)))
    }

    /// The bytes that a tile with so many indices of the innermost dimension accesses, and the most that each tile
    /// of the innermost loop reads again.
    fn touched(&self, ir: &Context, size: u64) -> (u64, u64) {
        let (mut touched, mut shared): (u64, u64) = (0, 0);
        for access in self.accesses() {
            let bytes = self.tile_bytes(ir, access);
            if self.is_tiled(ir, access) {
                touched = touched.saturating_add(bytes.saturating_mul(size));
            } else {
                touched = touched.saturating_add(bytes);
                shared = shared.max(bytes);
            }
        }
        (touched, shared)
    }

    /// Whether there are tiles, and one fits in cache, if other members access so many bytes.
    fn fits(&self, ir: &Context, size: u64, others: u64, limits: &Limits) -> bool {
        let mut vars = self.view.domain.vars();
        let is_empty = vars.any(|(var, _)| self.extent(ir, var) == Some(0));
        let (touched, shared) = self.touched(ir, size);
        !is_empty
            && shared <= limits.shared_bytes
            && touched.saturating_add(others) <= limits.tile_bytes
    }

    fn num_tiles(&self, ir: &Context) -> u64 {
        let extents = self.links.values().map(|dim| self.extent(ir, Var::Dim(*dim)));
        extents.fold(1, |tiles: u64, it| tiles.saturating_mul(it.unwrap_or(LARGE)))
    }

    fn accesses(&self) -> impl Iterator<Item = &Access<'c>> {
        self.view.inputs.iter().chain(&self.view.outputs)
    }

    /// The tiled dimensions that are contiguous in an access of all variables: tiles would cut its rows.
    fn contiguous(&self, ir: &Context) -> BTreeSet<u32> {
        let count = |access: &Access| {
            let vars = ir.vars_of_all(&access.subscripts);
            vars.into_iter().filter(|var| self.is_loop(ir, *var)).count()
        };
        let most = self.accesses().map(count).max().unwrap_or(0);
        let mut found = BTreeSet::new();
        for access in self.accesses().filter(|access| count(access) == most) {
            let last = access
                .subscripts
                .iter()
                .rev()
                .find(|expr| ir.vars(**expr).into_iter().any(|var| self.is_loop(ir, var)));
            let vars = last.map(|expr| ir.vars(*expr)).unwrap_or_default();
            let linked = self.links.iter().filter(|(_, dim)| vars.contains(&Var::Dim(**dim)));
            found.extend(linked.map(|(link, _)| *link));
        }
        found
    }

    /// The operations on one point, and its points.
    fn work(&self, ir: &Context) -> Option<u64> {
        let vars = self.view.domain.vars().map(|(var, _)| var);
        let mut work = mlir::ops(self.generic.body()).len() as u64;
        for var in vars.filter(|var| !matches!(var, Var::Runtime(_))) {
            work = work.saturating_mul(self.extent(ir, var)?);
        }
        Some(work)
    }
}

fn element_bytes(access: &Access) -> u64 {
    u64::from(mlir::byte_width(mlir::element_type(access.value.r#type())))
}

/// Whether an operation works on tensors alone, so that it may be computed later.
fn is_movable(op: Op) -> bool {
    let mut found = true;
    mlir::walk(op, &mut |inner| {
        let is_memory = |ty: melior::ir::Type| ty.is_mem_ref() || ty.is_unranked_mem_ref();
        found &= !mlir::operands(inner).iter().any(|it| is_memory(it.r#type()))
            && !mlir::is(inner, "func.call")
            && !mlir::is(inner, "imap.check");
    });
    found
}

/// The position in its block of each operation.
pub type Positions = HashMap<usize, usize>;

/// The group of a root, if one is worth it. With `alone`, it has no other members. The members of a group that is not
/// worth it are added to `refused`: with one of them as the root, it would be smaller.
pub fn group<'c>(
    ir: &Context,
    positions: &Positions,
    root: Generic<'c>,
    (alone, refused): (bool, &mut HashSet<usize>),
    limits: &Limits,
) -> Option<Group<'c>> {
    if !is_movable(root.op()) || mlir::results(root.op()).is_empty() {
        return None;
    }
    let most = if alone { 1 } else { MAX_MEMBERS };
    let parallel = tiling::parallel_loops(AnyIndexed::from(root));
    let mut first = Member::new(ir, root, BTreeMap::new(), false);
    let mut tiled: BTreeSet<u32> = (0..first.view.domain.dims.len() as u32)
        .filter(|dim| parallel[*dim as usize] && first.is_loop(ir, Var::Dim(*dim)))
        .collect();
    let links = |dims: &BTreeSet<u32>| dims.iter().map(|dim| (*dim, *dim)).collect();
    first.links = links(&tiled);
    let contiguous = first.contiguous(ir);
    let is_long = |dim: &u32| {
        first.extent(ir, Var::Dim(*dim)).is_none_or(|extent| 2 * limits.min_row <= extent)
    };
    let least = if tiled != contiguous {
        tiled.retain(|dim| !contiguous.contains(dim));
        1
    } else if tiled.len() == 1 && tiled.iter().all(is_long) {
        limits.min_row
    } else {
        return None;
    };
    // Fewer tiled dimensions may link more operations.
    let mut best: Option<(Vec<Member>, u64)> = None;
    while !tiled.is_empty() {
        let first = Member { links: links(&tiled), ..first.clone() };
        if first.fits(ir, least, 0, limits) {
            let found = grow(ir, positions, first, (least, most), limits);
            if best.as_ref().is_none_or(|(_, saved)| *saved < found.1) {
                best = Some(found);
            }
        }
        tiled.pop_last();
    }
    let (members, saved) = best?;
    let work: Option<u64> = members.iter().map(|member| member.work(ir)).sum();
    let is_parallel =
        limits.parallel.is_some_and(|threshold| work.is_none_or(|work| threshold <= work));
    let is_group = 1 < members.len() && limits.min_bytes <= saved;
    if !is_group {
        refused.extend(members[1..].iter().map(|member| mlir::op_key(member.generic.op())));
    }
    // In the tile of a thread, a fold has the loops of the code for one thread.
    let view = &members[0].view;
    let folds_rows = !view.domain.ranges.is_empty() && view.reads_once(ir);
    (is_group || is_parallel && folds_rows).then(|| Group {
        root,
        members: members[1..].iter().map(|member| (member.generic, member.escapes)).collect(),
        reused: members.iter().flat_map(|member| &member.reused).copied().collect(),
        sizes: sizes(ir, &members, least, limits),
        is_parallel,
    })
}

/// The operations of a group, consumers before producers, and the bytes that are read from cache instead of memory.
/// These are the results of members, and operands that several members read.
fn grow<'c>(
    ir: &Context,
    positions: &Positions,
    root: Member<'c>,
    (least, most): (u64, usize),
    limits: &Limits,
) -> (Vec<Member<'c>>, u64) {
    let mut members = vec![root];
    let mut candidates = BTreeMap::new();
    let (mut touched, mut saved): (u64, u64) = (0, 0);
    let mut read = BTreeSet::new();
    loop {
        let member = members.last().expect("the root is a member");
        touched = touched.saturating_add(member.touched(ir, least).0);
        let tiles = member.num_tiles(ir);
        let total = |access| member.tile_bytes(ir, access).saturating_mul(tiles);
        if 1 < members.len() {
            saved = member.view.outputs.iter().map(total).fold(saved, u64::saturating_add);
        }
        for access in &member.view.inputs {
            if !read.insert(mlir::value_key(access.value)) && member.is_tiled(ir, access) {
                saved = saved.saturating_add(total(access));
            }
            let producer = mlir::defining_op(access.value).and_then(Generic::cast);
            let position = producer.and_then(|it| positions.get(&mlir::op_key(it.op())));
            if let (Some(producer), Some(position)) = (producer, position) {
                candidates.insert(*position, producer);
            }
        }
        if members.len() == most {
            return (members, saved);
        }
        // All readers of the last candidate in the block have been looked at.
        let next = loop {
            let Some((_, candidate)) = candidates.pop_last() else { return (members, saved) };
            let Some(member) = linked(ir, positions, &members, candidate) else { continue };
            let cuts_rows = least == 1 && !member.contiguous(ir).is_empty();
            if !cuts_rows && member.fits(ir, least, touched, limits) {
                break member;
            }
        };
        members.push(next);
    }
}

/// An operation as a member: linked to the tiles of its readers, which need one value of each linked variable.
/// `None` if a reader needs more, or if another operation before the root reads it.
fn linked<'c>(
    ir: &Context,
    positions: &Positions,
    members: &[Member<'c>],
    candidate: Generic<'c>,
) -> Option<Member<'c>> {
    let op = candidate.op();
    if !is_movable(op) {
        return None;
    }
    let block = op.block().map(mlir::block_ref)?;
    let position = |op: Op| positions.get(&mlir::op_key(op));
    let root = position(members[0].generic.op())?;
    let view = View::of(ir, candidate);
    let (mut links, mut escapes, mut reused) = (BTreeMap::new(), false, Vec::new());
    for (number, value) in mlir::results(op).into_iter().enumerate() {
        for (user, operand) in mlir::uses(value) {
            if is_overwritten(user, operand) {
                reused.push((user, operand));
                continue;
            }
            let Some(reader) = members.iter().find(|member| member.generic.op() == user) else {
                // LLVM 22 computes the slices of several results in the wrong place.
                let is_after = position(mlir::ancestor_in(user, block)?).filter(|it| root < *it);
                is_after.filter(|_| view.outputs.len() == 1)?;
                escapes = true;
                continue;
            };
            let place = operand.checked_sub(reader.view.runtimes.len())?;
            let access = reader.view.inputs.get(place).filter(|it| it.value == value)?;
            for link in reader.links.keys() {
                let dim = linked_dim(ir, reader, access, *link, &view.outputs[number])?;
                if *links.entry(*link).or_insert(dim) != dim {
                    return None;
                }
            }
        }
    }
    let parallel = tiling::parallel_loops(AnyIndexed::from(candidate));
    let is_parallel = |dim: &u32| parallel[*dim as usize];
    let distinct: BTreeSet<u32> = links.values().copied().collect();
    let is_used = links.len() == members[0].links.len() && distinct.len() == links.len();
    (is_used && distinct.iter().all(is_parallel))
        .then(|| Member { reused, ..Member::new(ir, candidate, links, escapes) })
}

/// Whether an operand is a destination of static shape of which no element is read.
fn is_overwritten(op: Op, operand: usize) -> bool {
    let Some(generic) = Generic::cast(op) else { return false };
    let first = generic.runtimes().len() + generic.inputs().len();
    let is_static = |ty| mlir::shape(ty).iter().all(Option::is_some);
    operand.checked_sub(first).is_some_and(|destination| {
        is_static(generic.inits()[destination].r#type()) && !generic.reads_destination(destination)
    })
}

/// The dimension variable of the producer that is linked to a tiled variable of the reader. `access` is the read of
/// the result, and `output` its write.
fn linked_dim(
    ir: &Context,
    reader: &Member,
    access: &Access,
    link: u32,
    output: &Access,
) -> Option<u32> {
    let var = Var::Dim(reader.links[&link]);
    let mut places =
        (0..access.subscripts.len()).filter(|place| mentions(ir, access.subscripts[*place], var));
    let (place, None) = (places.next()?, places.next()) else { return None };
    if ir.as_var(access.subscripts[place]) != Some(var) {
        return None;
    }
    let written = output.subscripts[place];
    let Some(Var::Dim(dim)) = ir.as_var(written) else { return None };
    let is_alone =
        |other: usize| other == place || !mentions(ir, output.subscripts[other], Var::Dim(dim));
    (0..output.subscripts.len()).all(is_alone).then_some(dim)
}

fn mentions(ir: &Context, expr: Expr, var: Var) -> bool {
    ir.vars(expr).contains(&var)
}

/// One index of each tiled dimension, but at least so many of the innermost one, and more if the tile would have
/// few points and more fits in cache. They divide the extent where they can, so that all tiles have the same
/// static size.
fn sizes(ir: &Context, members: &[Member], least: u64, limits: &Limits) -> Vec<i64> {
    let root = &members[0];
    let domain = &root.view.domain;
    let mut sizes = vec![0; domain.dims.len() + domain.ranges.len()];
    let mut points: u64 = 1;
    for (var, _) in domain.vars().filter(|(var, _)| !matches!(var, Var::Runtime(_))) {
        if !matches!(var, Var::Dim(dim) if root.links.contains_key(&dim)) {
            points = points.saturating_mul(root.extent(ir, var).unwrap_or(LARGE));
        }
    }
    for dim in root.links.keys() {
        sizes[*dim as usize] = 1;
    }
    if let Some(dim) = root.links.keys().next_back() {
        let touched = members.iter().map(|member| member.touched(ir, 1).0);
        let touched = touched.fold(1, u64::saturating_add);
        let most = limits.tile_bytes / touched;
        let wanted = limits.min_points.div_ceil(points.max(1)).min(most).max(least);
        let extent = root.extent(ir, Var::Dim(*dim)).unwrap_or(LARGE);
        let divisor = (wanted..=2 * wanted).find(|size| extent.is_multiple_of(*size));
        let size = divisor.unwrap_or(wanted).min(extent);
        sizes[*dim as usize] = i64::try_from(size).unwrap_or(1);
    }
    sizes
}
