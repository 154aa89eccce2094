//! Tile groups: which operations are computed together, one tile of their common dimensions at a time.
//!
//! A group has a root, the last operation, and members, the producers of its operands. Operations of the group read
//! the results of members; operations after the root may read them, too. Each tiled dimension of the root is *linked*
//! to a dimension of each member: one index of a reader needs exactly one index of its producer. So nothing is
//! computed twice. Other dimensions and all ranges are not tiled.

use super::pack::{MAX_ELEMENTS, MIN_LINES};
use crate::{
    analysis::{
        buffers::is_movable,
        cost::{ThreadWork, WORD_BYTES},
    },
    target::{LINE_BYTES, TileLimits},
};
use melior::ir::{ValueLike, operation::OperationLike};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use tc_dialects::{
    imap::{Access, AnyIndexed, Generic, Indexed, View, open::can_open, tiling},
    mlir::{self, Op},
};
use tc_ir::{
    Context, VarIntervals,
    expr::{Expr, Var},
};

/// LLVM takes more than linear time for the loops of one nest.
const MAX_MEMBERS: usize = 32;

/// Extents beyond this are taken for unknown ones.
const LARGE: u64 = 1 << 20;

/// A block of a product alone has this many times `min_rows`, if they fit in cache. If fewer fit, long rows are cut.
const ENOUGH_ROWS: u64 = 4;

/// The bytes that are read from cache in the time of one byte from memory.
const CACHE_SPEED: u64 = 8;

/// The sizes of a tile, per tiled dimension of the root.
type Sizes = BTreeMap<u32, u64>;

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
    product: Option<Product>,
}

/// A fold that reads elements for several results.
#[derive(Clone)]
struct Product {
    /// The number of the input of which each row of the result needs all elements.
    factor: usize,
    /// The dimensions of these rows.
    rows: Vec<u32>,
}

/// Operations that are to be computed together.
pub struct Group<'c> {
    /// The last operation.
    pub root: Generic<'c>,
    /// The others, readers first.
    pub members: Vec<Generic<'c>>,
    /// A range of the root that is cut first, and how many of its values are in a tile.
    pub range: Option<(u32, u64)>,
    /// The sizes of tiles, by dimension of the root.
    pub sizes: BTreeMap<u32, u64>,
    /// The inputs of the root that are worth a copy per tile, with rows that are not a power of two apart.
    pub packed: Vec<usize>,
    /// Whether the tiles are worth several threads.
    pub is_parallel: bool,
}

/// The operations that can be computed in the tiles of another one.
#[derive(Default)]
pub struct Joined<'c> {
    /// The others, readers first, and whether operations after the root read their results, too.
    pub members: Vec<(Generic<'c>, bool)>,
    /// Operands that are results of members, and of which no element is read: destinations that are written
    /// from the start.
    pub reused: Vec<(Op<'c>, usize)>,
}

/// Looks whether operations can be computed in the tiles of a root along some of its dimensions.
///
/// # Errors
/// The operation that cannot: a tile of a reader needs other elements than those of one tile of it.
pub fn join<'c>(
    ir: &Context,
    positions: &Positions,
    root: Generic<'c>,
    dims: &BTreeSet<u32>,
    marked: &[Generic<'c>],
) -> Result<Joined<'c>, Op<'c>> {
    let links = dims.iter().map(|dim| (*dim, *dim)).collect();
    let mut list = vec![Member::new(ir, root, links, false)];
    let mut marked = marked.to_vec();
    marked.sort_by_key(|it| Reverse(positions.get(&mlir::op_key(it.op())).copied()));
    for generic in marked {
        list.push(linked(ir, positions, &list, generic).ok_or(generic.op())?);
    }
    Ok(Joined {
        members: list[1..].iter().map(|member| (member.generic, member.escapes)).collect(),
        reused: list.iter().flat_map(|member| &member.reused).copied().collect(),
    })
}

impl<'c> Member<'c> {
    fn new(ir: &Context, generic: Generic<'c>, links: BTreeMap<u32, u32>, escapes: bool) -> Self {
        let view = View::of(ir, generic);
        let intervals = view.domain.intervals(ir);
        let mut member =
            Self { generic, view, intervals, links, escapes, reused: Vec::new(), product: None };
        member.product = member.find_product(ir);
        member
    }

    /// The values that a variable has; `None` if they are unknown.
    fn extent(&self, ir: &Context, var: Var) -> Option<u64> {
        self.view.domain.variable(var)?.constant_interval(ir)?;
        self.intervals.of(var).num_members()
    }

    fn is_loop(&self, ir: &Context, var: Var) -> bool {
        !matches!(var, Var::Runtime(_)) && self.extent(ir, var) != Some(1)
    }

    /// The values of a variable in one tile.
    fn extent_in_tile(&self, ir: &Context, var: Var, sizes: &Sizes) -> u64 {
        let extent = self.extent(ir, var).unwrap_or(LARGE);
        let is_linked = |it: &(&u32, &u32)| Var::Dim(*it.1) == var;
        let link = self.links.iter().find(is_linked).map(|(link, _)| link);
        link.and_then(|link| sizes.get(link)).map_or(extent, |size| extent.min(*size))
    }

    /// The bytes of an access in one tile.
    fn tile_bytes(&self, ir: &Context, access: &Access, sizes: &Sizes) -> u64 {
        self.bytes(ir, access, &|var| self.extent_in_tile(ir, var, sizes))
    }

    /// The bytes of an access, given the number of values of each variable.
    fn bytes(&self, ir: &Context, access: &Access, extent: &dyn Fn(Var) -> u64) -> u64 {
        let vars = ir.vars_of_all(&access.subscripts).into_iter();
        let extents = vars.filter(|var| self.is_loop(ir, *var)).map(extent);
        extents.fold(element_bytes(access), u64::saturating_mul)
    }

    /// Whether tiles of the innermost loop access different elements.
    fn is_tiled(&self, ir: &Context, access: &Access) -> bool {
        let innermost = self.links.values().next_back();
        innermost.is_some_and(|dim| ir.vars_of_all(&access.subscripts).contains(&Var::Dim(*dim)))
    }

    /// Whether a tile is one point for each of the root's tiled indices, and one element of the results: a value per row.
    fn is_linked(&self, ir: &Context) -> bool {
        let is_linked = |var: &Var| self.links.values().any(|dim| Var::Dim(*dim) == *var);
        let is_element = |access: &Access| {
            let mut places = access.subscripts.iter().zip(mlir::shape(access.value.r#type()));
            places.all(|(expr, extent)| {
                extent == Some(1) || ir.vars(*expr).iter().any(|var| self.is_loop(ir, *var))
            })
        };
        let mut vars = self.view.domain.vars().map(|(var, _)| var);
        vars.all(|var| !self.is_loop(ir, var) || is_linked(&var))
            && self.view.outputs.iter().all(is_element)
    }

    /// Whether the results have static shapes.
    fn is_static(&self) -> bool {
        let mut shapes = self.view.outputs.iter().map(|it| mlir::shape(it.value.r#type()));
        shapes.all(|shape| shape.iter().all(Option::is_some))
    }

    fn find_product(&self, ir: &Context) -> Option<Product> {
        if self.view.domain.ranges.is_empty() || self.view.reads_once(ir) {
            return None;
        }
        let columns = ir.vars(*self.view.outputs.first()?.subscripts.last()?);
        self.view.inputs.iter().enumerate().find_map(|(factor, access)| {
            let vars = ir.vars_of_all(&access.subscripts);
            let is_folded = vars.iter().any(|var| matches!(var, Var::Range(_)));
            let rows = (0..self.view.domain.dims.len() as u32)
                .filter(|dim| !vars.contains(&Var::Dim(*dim)) && self.is_loop(ir, Var::Dim(*dim)));
            let rows: Vec<u32> = rows.collect();
            let is_factor = is_folded && !vars.is_disjoint(&columns) && !rows.is_empty();
            is_factor.then_some(Product { factor, rows })
        })
    }

    fn is_factor(&self, input: usize) -> bool {
        self.product.as_ref().is_some_and(|product| product.factor == input)
    }

    /// The inputs of a product that are folded, except the factor that all rows need.
    fn other_factors(
        &self,
        ir: &Context,
        product: &Product,
    ) -> impl Iterator<Item = (usize, &Access<'c>)> {
        self.view.inputs.iter().enumerate().filter(|(number, access)| {
            let vars = ir.vars_of_all(&access.subscripts);
            *number != product.factor && vars.iter().any(|var| matches!(var, Var::Range(_)))
        })
    }

    /// Whether a row of a product reads what no other one reads, unlike that of a window.
    fn has_plain_row(&self, ir: &Context, product: &Product, dim: u32) -> bool {
        let mut others = self.other_factors(ir, product);
        others.all(|(_, access)| is_plain(ir, access, Var::Dim(dim)))
    }

    /// The bytes of these inputs in a tile.
    fn other_bytes(&self, ir: &Context, product: &Product, sizes: &BTreeMap<Var, u64>) -> u64 {
        let extent = |var| {
            let whole = self.extent(ir, var).unwrap_or(LARGE);
            sizes.get(&var).map_or(whole, |size| whole.min(*size))
        };
        let bytes = self.other_factors(ir, product).map(|(_, it)| self.bytes(ir, it, &extent));
        bytes.fold(0, u64::saturating_add)
    }

    /// The range that may be cut, and its extent: the outermost one, so that the order of the fold stays.
    fn cut_range(&self, ir: &Context) -> Option<(u32, u64)> {
        can_open(ir, self.generic).ok()?;
        let ranges = 0..self.view.domain.ranges.len() as u32;
        let number = ranges.into_iter().find(|number| self.is_loop(ir, Var::Range(*number)))?;
        let var = Var::Range(number);
        let constraints = &self.view.domain.constraints;
        let mut guards = self.accesses().flat_map(|it| &it.guard).chain(constraints);
        let is_free = guards.all(|it| !mentions(ir, it.expr, var))
            && self.accesses().all(|it| is_plain(ir, it, var));
        Some((number, self.extent(ir, var).filter(|_| is_free)?))
    }

    /// The factors of a product of which neighbouring rows start in one set of the first-level cache. A register block
    /// reads one element of each of its rows at a time, and as many lines do not fit in a set.
    fn aliased(&self, ir: &Context, product: &Product, limits: &TileLimits) -> Vec<usize> {
        let is_loop = |dim: &&u32| self.is_loop(ir, Var::Dim(**dim));
        let Some(row) = product.rows.iter().rfind(is_loop) else { return Vec::new() };
        let is_aliased = |access: &Access| {
            let vars = ir.vars_of_all(&access.exprs());
            let others = self.view.looping_dims(ir).into_iter().filter(|dim| !vars.contains(dim));
            let extents = others.map(|dim| self.extent(ir, dim).unwrap_or(1));
            let reuse = extents.fold(1, u64::saturating_mul);
            let distance = byte_step(ir, access, Var::Dim(*row));
            limits.min_columns <= reuse
                && distance.is_some_and(|it| it != 0 && it.is_multiple_of(limits.set_bytes.max(1)))
        };
        let rows = self.num_rows(ir, product, &Sizes::new());
        let factors = self.other_factors(ir, product).filter(|(_, access)| is_aliased(access));
        let factors = factors.map(|(number, _)| number);
        if limits.min_rows <= rows { factors.collect() } else { Vec::new() }
    }

    /// The rows of a product in one tile.
    fn num_rows(&self, ir: &Context, product: &Product, sizes: &Sizes) -> u64 {
        let rows = product.rows.iter();
        let extents = rows.map(|dim| self.extent_in_tile(ir, Var::Dim(*dim), sizes));
        extents.fold(1, |rows: u64, extent| rows.saturating_mul(extent))
    }

    /// Makes a tile larger, so that a product has enough rows in it. Returns the dimension of the root that
    /// the rows belong to; `None` if none of them is tiled.
    fn add_rows(&self, ir: &Context, sizes: &mut Sizes, least: u64) -> Option<u32> {
        let product = self.product.as_ref()?;
        let is_row = |it: &(&u32, &u32)| product.rows.contains(it.1);
        let (link, dim) = self.links.iter().rev().find(is_row)?;
        let before = sizes.insert(*link, 1).unwrap_or(1);
        let others = self.num_rows(ir, product, sizes);
        let extent = self.extent(ir, Var::Dim(*dim)).unwrap_or(LARGE);
        sizes.insert(*link, least.div_ceil(others.max(1)).min(extent).max(before));
        Some(*link)
    }

    /// Whether each tile has points, and rereads no large operand except the factor of a product.
    fn fits(&self, ir: &Context, sizes: &Sizes, limits: &TileLimits) -> bool {
        let mut vars = self.view.domain.vars();
        let is_empty = vars.any(|(var, _)| self.extent(ir, var) == Some(0));
        let accesses = self.accesses().enumerate();
        let mut shared = accesses
            .filter(|(number, access)| !self.is_factor(*number) && !self.is_tiled(ir, access))
            .map(|(_, access)| self.tile_bytes(ir, access, sizes));
        !is_empty && shared.all(|bytes| bytes <= limits.shared_bytes)
    }

    /// The bytes that tiles read from cache again, where other tiles have read them before.
    fn read_again(&self, ir: &Context, sizes: &Sizes) -> u64 {
        let Some(product) = &self.product else { return 0 };
        let access = &self.view.inputs[product.factor];
        let again = self.tile_bytes(ir, access, sizes).saturating_mul(self.num_tiles(ir, sizes));
        again.saturating_sub(self.tile_bytes(ir, access, &Sizes::new()))
    }

    fn num_tiles(&self, ir: &Context, sizes: &Sizes) -> u64 {
        let tiles = self.links.iter().map(|(link, dim)| {
            let extent = self.extent(ir, Var::Dim(*dim)).unwrap_or(LARGE);
            extent.div_ceil(sizes.get(link).copied().unwrap_or(extent).max(1))
        });
        tiles.fold(1, u64::saturating_mul)
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

    /// The work of all points for threads; `None` if it depends on sizes.
    fn work(&self, ir: &Context) -> Option<u64> {
        let view = &self.view;
        let is_product = view.inputs.iter().all(|input| view.reads_again(ir, input));
        let extent = |var| self.extent(ir, var);
        let work = ThreadWork::of(self.generic.into(), &extent, is_product);
        work.unknown.is_empty().then_some(work.known)
    }
}

/// The distance between the elements at two neighbouring values of a variable, in bytes; `None` if it is not constant.
fn byte_step(ir: &Context, access: &Access, var: Var) -> Option<u64> {
    access.step(ir, var)?.unsigned_abs().checked_mul(element_bytes(access))
}

fn element_bytes(access: &Access) -> u64 {
    u64::from(mlir::byte_width(mlir::element_type(access.value.r#type())))
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
    limits: &TileLimits,
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
        tiled.clear();
        1
    };
    // Fewer tiled dimensions may link more operations.
    let mut best: Option<(Members, u64)> = None;
    let mut consider = |tiled: &BTreeSet<u32>, least| {
        let first = Member { links: links(tiled), ..first.clone() };
        if let Some(found) = grow(ir, positions, first, (least, most), limits) {
            let saved = found.saved(ir);
            if best.as_ref().is_none_or(|best| best.1 < saved) {
                best = Some((found, saved));
            }
        }
    };
    while !tiled.is_empty() {
        consider(&tiled, least);
        tiled.pop_last();
    }
    if let Some((columns, least)) = strips(ir, &first, &contiguous, limits) {
        consider(&columns, least);
    }
    let (found, saved) = best?;
    let members = &found.list;
    let work: Option<u64> = members.iter().map(|member| member.work(ir)).sum();
    let is_enough = |least: u64| work.is_none_or(|work| least.saturating_mul(WORD_BYTES) <= work);
    let is_parallel = limits.parallel.is_some_and(is_enough);
    let is_group = 1 < members.len() && limits.min_bytes <= saved;
    if !is_group {
        refused.extend(members[1..].iter().map(|member| mlir::op_key(member.generic.op())));
    }
    // In the tile of a thread, a fold has the loops of the code for one thread.
    let view = &members[0].view;
    let folds_rows = !view.domain.ranges.is_empty() && view.reads_once(ir);
    (is_group || is_parallel && folds_rows).then(|| Group {
        root,
        members: members[1..].iter().map(|member| member.generic).collect(),
        range: None,
        sizes: found.sizes(ir, limits),
        packed: Vec::new(),
        is_parallel,
    })
}

/// The dimensions that the root has in common with all folds it reads, if rows are among them, and the least elements of a
/// row in a tile.
fn strips(
    ir: &Context,
    root: &Member,
    contiguous: &BTreeSet<u32>,
    limits: &TileLimits,
) -> Option<(BTreeSet<u32>, u64)> {
    let is_fold = |access: &&Access| {
        let op = mlir::defining_op(access.value).and_then(Generic::cast);
        op.is_some_and(|it| it.frozen_domain().counts().1 != 0)
    };
    let mut columns: BTreeSet<u32> = root.links.keys().copied().collect();
    for access in root.view.inputs.iter().filter(is_fold) {
        let vars = ir.vars_of_all(&access.subscripts);
        columns.retain(|dim| vars.contains(&Var::Dim(*dim)));
    }
    let row = *columns.last().filter(|_| columns.len() < root.links.len())?;
    let extent = root.extent(ir, Var::Dim(row)).filter(|_| contiguous.iter().eq([&row]))?;
    let mut lengths = limits.min_strip..=limits.min_strip.saturating_mul(4);
    let least = lengths.find(|length| *length != 0 && extent.is_multiple_of(*length))?;
    Some((columns, least))
}

/// A product alone, in blocks of rows. The rows of the first factor stay in cache while they are multiplied by all
/// columns of the other factor.
pub fn block<'c>(ir: &Context, root: Generic<'c>, limits: &TileLimits) -> Option<Group<'c>> {
    let is_tensor = |access: &Access| mlir::is_tensor(access.value.r#type());
    let dims = 0..root.frozen_domain().counts().0 as u32;
    let member = Member::new(ir, root, dims.map(|dim| (dim, dim)).collect(), false);
    let product = member.product.as_ref()?;
    if !is_movable(root.op()) || !member.view.accesses().all(is_tensor) || limits.product_bytes == 0
    {
        return None;
    }
    let Blocks { range, rows } = Blocks::of(ir, &member, product, limits);
    let part = rows.iter().map(|(dim, size)| (Var::Dim(*dim), *size));
    let part = part.chain(range.map(|(range, values)| (Var::Range(range), values)));
    // An element has at least one byte.
    let is_small = member.other_bytes(ir, product, &part.collect()) <= MAX_ELEMENTS as u64;
    let packed = if is_small { member.aliased(ir, product, limits) } else { Vec::new() };
    (range.is_some() || !rows.is_empty() || !packed.is_empty()).then(|| Group {
        root,
        members: Vec::new(),
        range,
        sizes: rows,
        packed,
        is_parallel: false,
    })
}

/// The blocks in which a product is computed.
struct Blocks {
    /// A range variable that is cut first, and how many of its values are in a block.
    range: Option<(u32, u64)>,
    /// The sizes of rows.
    rows: Sizes,
}

impl Blocks {
    /// Blocks of which the part of the first factor stays in cache; the whole product if all of the factor does. A range
    /// is cut if there would be few rows, because they are long, or if its values are in lines far apart, more of
    /// them than the first-level cache has.
    fn of(ir: &Context, member: &Member, product: &Product, limits: &TileLimits) -> Self {
        let rows = |cut| Self::rows(ir, member, product, (cut, limits));
        let whole = rows(None);
        let uncut = Self { range: None, rows: whole.clone().unwrap_or_default() };
        let all = member.num_rows(ir, product, &Sizes::new());
        let mut rows_are_plain =
            product.rows.iter().map(|dim| member.has_plain_row(ir, product, *dim));
        let may_cut = limits.min_rows <= all && rows_are_plain.all(|it| it);
        let Some((range, extent)) = member.cut_range(ir).filter(|_| may_cut) else {
            return uncut;
        };
        let count = member.num_rows(ir, product, &uncut.rows);
        let is_large = 2 * limits.tile_bytes < member.other_bytes(ir, product, &BTreeMap::new());
        let is_short =
            is_large && (whole.is_none() || count < all.min(ENOUGH_ROWS * limits.min_rows));
        let mut factors = member.view.inputs.iter();
        let is_far = factors.any(|access| {
            let distance = byte_step(ir, access, Var::Range(range));
            distance.is_some_and(|it| MIN_LINES as u64 * LINE_BYTES as u64 <= it)
        });
        let lines = limits.shared_bytes.saturating_mul(4) / LINE_BYTES as u64;
        let values = lines.max(limits.min_row);
        // The parts would be short otherwise.
        let is_long = values.saturating_mul(3) < extent.saturating_mul(2);
        if !is_long || !(is_short || is_far) {
            return uncut;
        }
        let values = divisor(extent, values, values);
        let rows = rows(Some((Var::Range(range), values))).unwrap_or_default();
        Self { range: Some((range, values)), rows }
    }

    /// The sizes of blocks of rows, given the values of a range; `None` if there is none, or none is needed.
    fn rows(
        ir: &Context,
        member: &Member,
        product: &Product,
        (cut, limits): (Option<(Var, u64)>, &TileLimits),
    ) -> Option<Sizes> {
        let parallel = tiling::parallel_loops(AnyIndexed::from(member.generic));
        let bytes = |sizes: &Sizes| {
            let dims = sizes.iter().map(|(dim, size)| (Var::Dim(*dim), *size));
            member.other_bytes(ir, product, &dims.chain(cut).collect())
        };
        // Products of a batch come one after the other.
        let vars = |access: &Access| ir.vars_of_all(&access.subscripts);
        let is_batch = |dim: &u32| member.accesses().all(|it| vars(it).contains(&Var::Dim(*dim)));
        let batch: Sizes =
            (0..parallel.len() as u32).filter(is_batch).map(|dim| (dim, 1)).collect();
        let mut sizes = batch.clone();
        if bytes(&sizes) <= 2 * limits.tile_bytes {
            return None;
        }
        for dim in product.rows.iter().filter(|dim| parallel[**dim as usize]) {
            // The tile of a window would read more than its part of the factor.
            let is_plain = member.has_plain_row(ir, product, *dim);
            let extent = member.extent(ir, Var::Dim(*dim)).filter(|_| is_plain)?;
            let tile = |size: u64| {
                let mut tile = sizes.clone();
                tile.insert(*dim, size);
                tile
            };
            let num_rows = |size| member.num_rows(ir, product, &tile(size));
            let fits = |size: &u64| {
                bytes(&tile(*size)) <= 2 * limits.tile_bytes && limits.min_rows <= num_rows(*size)
            };
            // More rows would leave less of the cache to the panels of the other factor.
            let powers = (0..u64::BITS).map(|bits| 1 << bits);
            let fitting = powers.take_while(|size| *size < extent).filter(fits);
            let is_enough = |size: &u64| ENOUGH_ROWS * limits.min_rows <= num_rows(*size);
            let most = fitting.clone().find(is_enough).or_else(|| fitting.last());
            let Some(most) = most else {
                sizes.insert(*dim, 1);
                continue;
            };
            sizes.insert(*dim, divisor(extent, most, extent));
            sizes.retain(|dim, _| !batch.contains_key(dim));
            return Some(sizes);
        }
        None
    }
}

/// Whether each subscript with a variable is the variable.
fn is_plain(ir: &Context, access: &Access, var: Var) -> bool {
    let mut subscripts = access.subscripts.iter();
    subscripts.all(|it| !mentions(ir, *it, var) || ir.as_var(*it) == Some(var))
}

/// The operations of a group, consumers before producers, and the least tile.
struct Members<'c> {
    list: Vec<Member<'c>>,
    sizes: Sizes,
    /// The dimension of the root that the rows of a product belong to.
    rows: Option<u32>,
}

impl<'c> Members<'c> {
    /// Adds a member, if a tile still fits in cache.
    fn add(&mut self, ir: &Context, member: Member<'c>, limits: &TileLimits) -> bool {
        let mut sizes = self.sizes.clone();
        let rows = member.add_rows(ir, &mut sizes, limits.min_rows);
        let rows = self.rows.or(rows);
        let most = if rows.is_some() { limits.product_bytes } else { limits.tile_bytes };
        self.list.push(member);
        let fits = (!limits.blocks || self.list.iter().all(Member::is_static))
            && self.list.iter().all(|it| it.fits(ir, &sizes, limits))
            && self.touched(ir, &sizes, limits) <= most;
        match fits {
            true => (self.sizes, self.rows) = (sizes, rows),
            false => {
                self.list.pop();
            }
        }
        fits
    }

    /// The bytes of all tensors in a tile, without factors that are the same for all tiles. Static tiles are in shared
    /// memory, except the results of the root.
    fn touched(&self, ir: &Context, sizes: &Sizes, limits: &TileLimits) -> u64 {
        let mut found: HashMap<usize, u64> = HashMap::new();
        for (number, member) in self.list.iter().enumerate() {
            let is_linked = |access: &Access| {
                let vars = ir.vars_of_all(&access.subscripts);
                member.links.values().any(|dim| vars.contains(&Var::Dim(*dim)))
            };
            let inputs = member.view.inputs.iter().enumerate();
            let inputs = inputs
                .filter(|(number, access)| !member.is_factor(*number) || is_linked(access))
                .map(|(_, access)| (mlir::value_key(access.value), access));
            let mut results = mlir::results(member.generic.op());
            if number == 0 && limits.blocks {
                results.clear();
            }
            let results = results.into_iter().map(mlir::value_key);
            for (key, access) in inputs.chain(results.zip(&member.view.outputs)) {
                let bytes = member.tile_bytes(ir, access, sizes);
                let most = found.entry(key).or_default();
                *most = bytes.max(*most);
            }
        }
        found.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes))
    }

    /// The bytes that are read from cache instead of memory: the results of members, and operands that several
    /// members read. What each tile reads again counts against it.
    fn saved(&self, ir: &Context) -> u64 {
        let mut read = BTreeSet::new();
        let (mut saved, mut again): (u64, u64) = (0, 0);
        for (number, member) in self.list.iter().enumerate() {
            let total = |access| member.tile_bytes(ir, access, &Sizes::new());
            if 0 < number {
                saved = member.view.outputs.iter().map(total).fold(saved, u64::saturating_add);
            }
            for access in &member.view.inputs {
                if !read.insert(mlir::value_key(access.value)) && member.is_tiled(ir, access) {
                    saved = saved.saturating_add(total(access));
                }
            }
            again = again.saturating_add(member.read_again(ir, &self.sizes));
        }
        saved.saturating_sub(again / CACHE_SPEED)
    }

    /// The sizes of tiles, per loop of the root: the least ones, or more rows of a product or indices of the
    /// innermost dimension, if the tile would have few points and more fits in cache.
    fn sizes(&self, ir: &Context, limits: &TileLimits) -> Sizes {
        let root = &self.list[0];
        let mut sizes = self.sizes.clone();
        let grown = self.rows.or(sizes.keys().next_back().copied());
        if let Some(dim) = grown {
            let (least, extent) = (sizes[&dim], root.extent(ir, Var::Dim(dim)).unwrap_or(LARGE));
            sizes.insert(dim, 1);
            let vars = root.view.domain.vars().map(|(var, _)| var);
            let vars = vars.filter(|var| !matches!(var, Var::Runtime(_)));
            let extents = vars.map(|var| root.extent_in_tile(ir, var, &sizes));
            let points = extents.fold(1, |points: u64, it| points.saturating_mul(it));
            let most = limits.tile_bytes / self.touched(ir, &sizes, limits).max(1);
            let wanted = limits.min_points.div_ceil(points.max(1)).min(most).max(least);
            let largest = extent / limits.min_tiles.max(1);
            let wanted = wanted.min(largest.max(1));
            let mut size = divisor(extent, wanted, largest);
            if limits.blocks && !extent.is_multiple_of(size) {
                size = (1..wanted).rev().find(|size| extent.is_multiple_of(*size)).unwrap_or(1);
            }
            sizes.insert(dim, size);
        }
        sizes
    }
}

/// A size that divides an extent, so that all tiles have the same static size: one of at least `wanted` that is not much
/// larger and at most `largest`, or one that is not much smaller. If there is none, `wanted`.
fn divisor(extent: u64, wanted: u64, largest: u64) -> u64 {
    let above = wanted..=(2 * wanted).min(largest);
    let below = (wanted.div_ceil(2)..wanted).rev();
    let found = above.chain(below).find(|size| extent.is_multiple_of(*size));
    found.unwrap_or(wanted).min(extent)
}

/// The group of a root; `None` if no tile of the root fits in cache.
fn grow<'c>(
    ir: &Context,
    positions: &Positions,
    root: Member<'c>,
    (least, most): (u64, usize),
    limits: &TileLimits,
) -> Option<Members<'c>> {
    let mut sizes: Sizes = root.links.keys().map(|dim| (*dim, 1)).collect();
    if let Some(innermost) = sizes.values_mut().next_back() {
        *innermost = least;
    }
    let mut members = Members { list: Vec::new(), sizes, rows: None };
    if !members.add(ir, root, limits) {
        return None;
    }
    let mut candidates = BTreeMap::new();
    loop {
        let member = members.list.last().expect("the root is a member");
        for access in &member.view.inputs {
            let producer = mlir::defining_op(access.value).and_then(Generic::cast);
            let position = producer.and_then(|it| positions.get(&mlir::op_key(it.op())));
            if let (Some(producer), Some(position)) = (producer, position) {
                candidates.insert(*position, producer);
            }
        }
        if members.list.len() == most {
            return Some(members);
        }
        // All readers of the last candidate in the block have been looked at.
        loop {
            let Some((_, candidate)) = candidates.pop_last() else { return Some(members) };
            let Some(member) = linked(ir, positions, &members.list, candidate) else { continue };
            let cuts_rows =
                least == 1 && !member.is_linked(ir) && !member.contiguous(ir).is_empty();
            if !cuts_rows && members.add(ir, member, limits) {
                break;
            }
        }
    }
}

/// An operation as a member: linked to the tiles of its readers, which need one value of each linked variable.
/// `None` if a reader needs more, if another operation before the root reads it, or if it updates a part of a tensor.
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
    // A tile would begin as a copy of elements that other operations write.
    let starts: Vec<_> = candidate.accumulators().iter().map(|it| it.destination()).collect();
    let is_updated =
        |number| candidate.reads_destination(number) && !starts.contains(&Some(number));
    if (0..mlir::results(op).len()).any(is_updated) {
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
    // What is read later has to be whole: the loops run over the indices of the root.
    let is_whole =
        |(link, dim): (&u32, &u32)| has_same_bounds(ir, &members[0].view, *link, &view, *dim);
    if escapes && !links.iter().all(is_whole) {
        return None;
    }
    let parallel = tiling::parallel_loops(AnyIndexed::from(candidate));
    let is_parallel = |dim: &u32| parallel[*dim as usize];
    let distinct: BTreeSet<u32> = links.values().copied().collect();
    let is_used = links.len() == members[0].links.len() && distinct.len() == links.len();
    (is_used && distinct.iter().all(is_parallel))
        .then(|| Member { reused, ..Member::new(ir, candidate, links, escapes) })
}

/// Whether a dimension variable of one operation has the bounds of one of another operation.
fn has_same_bounds(ir: &Context, first: &View, dim: u32, second: &View, other: u32) -> bool {
    let variables = (&first.domain.dims[dim as usize], &second.domain.dims[other as usize]);
    let values = (first.runtime_values(), second.runtime_values());
    let renamed = |var| match var {
        Var::Runtime(number) => {
            let value = values.1[number as usize];
            let place = values.0.iter().position(|known| *known == value);
            place.map(|place| ir.runtime(place as u32))
        }
        _ => None,
    };
    let is_known = |bound: Expr| ir.vars(bound).into_iter().all(|var| renamed(var).is_some());
    let is_same = |first: Option<Expr>, second: Option<Expr>| match (first, second) {
        (Some(first), Some(second)) => is_known(second) && ir.substitute(second, &renamed) == first,
        _ => false,
    };
    is_same(variables.0.lower, variables.1.lower) && is_same(variables.0.upper, variables.1.upper)
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
