//! Memory: allocations, and memrefs that view parts of them.
//!
//! A memref is an offset, extents and strides in an allocation, so that views share elements. Accesses are
//! checked against the extents of the memref and the lifetime of the allocation.
//!
//! `memref.view` gives bytes another type. Such an element is kept at the place of its first byte, and a store makes its
//! other bytes undefined, so a read of an older element there is an error.

use super::{
    error::Error,
    machine::{Array, Machine, Result},
    program::{At, MemReg, MemoryInst, NewShape, Reg, Slice},
    scalar::Scalar,
};
use crate::runtime::Shape;
use smallvec::SmallVec;
use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
};

/// A view of an allocation.
#[derive(Clone, Debug)]
pub(crate) struct MemRef {
    pub(crate) allocation: usize,
    pub(crate) offset: i64,
    pub(crate) shape: SmallVec<[usize; 4]>,
    strides: SmallVec<[i64; 4]>,
    elements: Elements,
}

/// How the elements of a memref lie in an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Elements {
    /// The place of the aligned pointer.
    base: i64,
    /// The places that each takes: one, or its bytes.
    width: usize,
    is_float: bool,
}

impl MemRef {
    /// All elements of an allocation, row-major.
    fn whole(allocation: usize, shape: &[usize], is_float: bool) -> Self {
        let mut strides = SmallVec::from_elem(1, shape.len());
        for dim in (1..shape.len()).rev() {
            strides[dim - 1] = i64::saturating_mul(strides[dim], shape[dim] as i64);
        }
        let elements = Elements { base: 0, width: 1, is_float };
        Self { allocation, offset: 0, shape: shape.into(), strides, elements }
    }

    fn num_elements(&self) -> usize {
        self.shape.iter().fold(1, |count, extent| count.saturating_mul(*extent))
    }

    /// The places of all elements in the allocation, in row-major order.
    fn places(&self) -> impl Iterator<Item = i64> + '_ {
        let mut index: SmallVec<[usize; 4]> = SmallVec::from_elem(0, self.shape.len());
        (0..self.num_elements()).map(move |_| {
            let terms = index.iter().zip(&self.strides);
            // What does not fit 64 bits is outside of the allocation.
            let place = terms.fold(self.offset, |sum, (at, stride)| {
                sum.saturating_add((*at as i64).saturating_mul(*stride))
            });
            for (at, extent) in index.iter_mut().zip(&self.shape).rev() {
                *at += 1;
                if *at < *extent {
                    break;
                }
                *at = 0;
            }
            place
        })
    }
}

/// Memory of one `memref.alloc`, argument or global.
#[derive(Debug)]
pub(crate) struct Allocation {
    scalars: Vec<Scalar>,
    /// Whether the elements are floats.
    is_float: bool,
    /// The places of elements for which the opposite holds, stored through a `memref.view`.
    exceptions: HashSet<usize>,
    read_only: bool,
    made: At,
    freed: Option<At>,
}

/// The allocations of a run, and what a branch that may not be taken has overwritten.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    pub(crate) allocations: Vec<Allocation>,
    /// The allocations of the globals that have been used.
    globals: Vec<Option<usize>>,
    journal: Option<Journal>,
}

/// What was overwritten: allocation, place and the element before.
#[derive(Debug)]
pub(crate) struct Journal {
    entries: Vec<(usize, usize, Scalar)>,
    /// Allocations from this one on were made since.
    first_new: usize,
}

impl Heap {
    pub(crate) fn allocate(
        &mut self,
        array: Array,
        is_float: bool,
        read_only: bool,
        made: At,
    ) -> MemRef {
        let view = MemRef::whole(self.allocations.len(), &array.shape, is_float);
        let (scalars, exceptions) = (array.scalars, HashSet::new());
        let allocation = Allocation { scalars, is_float, exceptions, read_only, made, freed: None };
        self.allocations.push(allocation);
        view
    }

    /// Writes an element of a memref, which is in bounds.
    fn store(&mut self, view: &MemRef, place: usize, value: Scalar) {
        let Elements { width, is_float, .. } = view.elements;
        self.write(view.allocation, place, value);
        let Allocation { made, is_float: usually, .. } = self.allocations[view.allocation];
        let exceptions = &mut self.allocations[view.allocation].exceptions;
        if is_float != usually {
            exceptions.insert(place);
        } else if !exceptions.is_empty() {
            exceptions.remove(&place);
        }
        (1..width).for_each(|byte| {
            self.write(view.allocation, place + byte, Scalar::undefined(made));
        });
    }

    fn write(&mut self, allocation: usize, place: usize, value: Scalar) {
        let scalar = &mut self.allocations[allocation].scalars[place];
        if let Some(journal) = &mut self.journal
            && allocation < journal.first_new
        {
            journal.entries.push((allocation, place, *scalar));
        }
        *scalar = value;
    }

    /// Starts to record what is overwritten; returns what was recorded for an outer branch.
    pub(crate) fn begin(&mut self) -> Option<Journal> {
        let first_new = self.allocations.len();
        self.journal.replace(Journal { entries: Vec::new(), first_new })
    }

    /// Undoes what was written since [`begin`](Self::begin); returns it.
    pub(crate) fn undo(&mut self) -> Written {
        let entries = self.journal.take().map(|it| it.entries).unwrap_or_default();
        let mut written = Written::new();
        for (allocation, place, before) in entries.into_iter().rev() {
            let scalar = &mut self.allocations[allocation].scalars[place];
            written.entry((allocation, place)).or_insert(*scalar);
            *scalar = before;
        }
        written
    }

    /// Ends recording, and lets every element that one of two branches wrote cover both. `taken` comes from
    /// [`undo`](Self::undo) after the first branch, and the second has run since. The elements are
    /// uncertain unless both branches ran to their ends.
    pub(crate) fn merge(&mut self, taken: Written, outer: Option<Journal>, both_ran: bool) {
        let other = self.undo();
        self.journal = outer;
        for at in taken.keys().chain(other.keys().filter(|at| !taken.contains_key(at))) {
            let before = self.allocations[at.0].scalars[at.1];
            let [taken, other] = [&taken, &other].map(|it| it.get(at).copied().unwrap_or(before));
            let Allocation { is_float, exceptions, .. } = &self.allocations[at.0];
            let is_float = *is_float != exceptions.contains(&at.1);
            self.write(at.0, at.1, taken.either(other, is_float).certain_if(both_ran));
        }
    }
}

/// What a branch wrote, by allocation and place.
pub(crate) type Written = HashMap<(usize, usize), Scalar>;

impl<'p> Machine<'p> {
    pub(crate) fn set_memory(&mut self, to: MemReg, view: MemRef) {
        self.memories[to] = Some(Rc::new(view));
    }

    pub(crate) fn memory(&self, memory: MemReg, at: At) -> Result<&Rc<MemRef>> {
        self.memories[memory]
            .as_ref()
            .ok_or_else(|| self.error(at, "uses a memref before it is computed"))
    }

    /// Checks that an allocation has not been freed.
    fn live(&self, allocation: usize, at: At) -> Result<()> {
        match self.heap.allocations[allocation].freed {
            None => Ok(()),
            Some(freed) => {
                let error = *self.error(at, "uses memory that has been freed");
                Err(Box::new(self.noted(error, freed, "frees it")))
            }
        }
    }

    fn noted(&self, error: Error, at: At, message: &str) -> Error {
        let place = &self.program.locations[at];
        error.note(&place.location, format!("{} {message}", place.what))
    }

    fn checked_place(&self, view: &MemRef, place: i64, at: At) -> Result<usize> {
        let length = self.heap.allocations[view.allocation].scalars.len();
        let last = view.elements.width - 1;
        let place = usize::try_from(place).ok().filter(|place| place.saturating_add(last) < length);
        place.ok_or_else(|| {
            let shape = Shape(&view.shape);
            self.error(at, format!("is out of bounds: a memref of shape {shape} ends before it"))
        })
    }

    /// The place in the allocation of an element: `lane` elements after the indices, along the last
    /// dimension. `None` if it is not certain which element it is.
    fn place(&self, view: &MemRef, indices: &[Reg], lane: usize, at: At) -> Result<Option<usize>> {
        let mut place = view.offset;
        for (dim, reg) in indices.iter().enumerate() {
            let index = self.regs[*reg];
            if !index.is_certain() {
                self.defined(index, "an index", at)?;
                return Ok(None);
            }
            let mut index = index.as_int();
            if dim + 1 == indices.len() {
                index = index.saturating_add(lane as i64);
            }
            if usize::try_from(index).is_ok_and(|index| index < view.shape[dim]) {
                place = place.saturating_add(index.saturating_mul(view.strides[dim]));
                continue;
            }
            let mut found: Vec<_> = indices.iter().map(|reg| self.regs[*reg].as_int()).collect();
            if let Some(last) = found.last_mut() {
                *last = last.saturating_add(lane as i64);
            }
            let (found, shape) = (Shape(&found), Shape(&view.shape));
            let message = format!("is out of bounds: index {found} of a memref of shape {shape}");
            return self.fail(at, message);
        }
        self.checked_place(view, place, at).map(Some)
    }

    pub(crate) fn load(
        &self,
        memory: MemReg,
        indices: &[Reg],
        lane: usize,
        at: At,
    ) -> Result<Scalar> {
        let view = self.memory(memory, at)?;
        self.live(view.allocation, at)?;
        let place = self.place(view, indices, lane, at)?;
        Ok(place.map_or(Scalar::UNKNOWN, |it| self.heap.allocations[view.allocation].scalars[it]))
    }

    pub(crate) fn store(
        &mut self,
        memory: MemReg,
        indices: &[Reg],
        lane: usize,
        value: Scalar,
        at: At,
    ) -> Result<()> {
        let view = Rc::clone(self.memory(memory, at)?);
        self.writable(&view, at)?;
        match self.place(&view, indices, lane, at)? {
            Some(place) => self.heap.store(&view, place, value),
            // It may be any element.
            None => {
                for place in view.places() {
                    let place = self.checked_place(&view, place, at)?;
                    let scalar = self.heap.allocations[view.allocation].scalars[place];
                    if scalar.is_certain() {
                        self.heap.write(view.allocation, place, scalar.uncertain());
                    }
                }
            }
        }
        Ok(())
    }

    fn writable(&self, view: &MemRef, at: At) -> Result<()> {
        self.live(view.allocation, at)?;
        let allocation = &self.heap.allocations[view.allocation];
        if !allocation.read_only {
            return Ok(());
        }
        let error = *self.error(at, "writes to memory that is only read");
        Err(Box::new(self.noted(error, allocation.made, "makes it")))
    }

    /// The elements of a memref, row-major.
    pub(crate) fn elements(&self, view: &MemRef, at: At) -> Result<Array> {
        self.live(view.allocation, at)?;
        let stored = &self.heap.allocations[view.allocation].scalars;
        let places = view.places().map(|place| Ok(stored[self.checked_place(view, place, at)?]));
        Ok(Array {
            shape: view.shape.to_vec(),
            origin: vec![0; view.shape.len()],
            scalars: places.collect::<Result<_>>()?,
        })
    }

    pub(crate) fn set_elements(&mut self, view: &MemRef, scalars: &[Scalar], at: At) -> Result<()> {
        self.writable(view, at)?;
        for (place, scalar) in view.places().zip(scalars) {
            let place = self.checked_place(view, place, at)?;
            self.heap.store(view, place, *scalar);
        }
        Ok(())
    }

    /// Checks that the elements of one value can be copied to another one.
    fn same_shape(&self, from: &[usize], to: &[usize], at: At) -> Result<()> {
        if from == to {
            return Ok(());
        }
        self.fail(at, format!("copies elements of shape {} to {}", Shape(from), Shape(to)))
    }

    fn free(&mut self, allocation: usize, at: At) -> Result<()> {
        self.live(allocation, at)?;
        if self.heap.journal.as_ref().is_some_and(|it| allocation < it.first_new) {
            return self.open(at, "cannot be run: whether it frees memory depends on rounding");
        }
        let allocation = &mut self.heap.allocations[allocation];
        allocation.freed = Some(at);
        allocation.scalars = Vec::new();
        Ok(())
    }

    /// A mask bit, which decides whether memory is touched.
    fn is_on(&self, mask: Option<&[Reg]>, lane: usize, at: At) -> Result<bool> {
        match mask {
            Some(mask) => Ok(self.certain(mask[lane], "a mask", at)? & 1 != 0),
            None => Ok(true),
        }
    }

    pub(crate) fn memory_inst(&mut self, inst: &'p MemoryInst, at: At) -> Result<()> {
        match inst {
            MemoryInst::Allocate { to, shape, is_float } => {
                let shape = self.shape(shape, at)?;
                let array = self.new_array(shape, at)?;
                let view = self.heap.allocate(array, *is_float, false, at);
                self.set_memory(*to, view);
            }
            MemoryInst::Deallocate(memory) => {
                let view = Rc::clone(self.memory(*memory, at)?);
                if view.offset != 0 {
                    return self.fail(at, "frees a part of an allocation");
                }
                self.free(view.allocation, at)?;
            }
            MemoryInst::DeallocateOwned { owned, retained } => {
                self.deallocate_owned(owned, retained, at)?;
            }
            MemoryInst::Load { to, memory, indices, masked, lenient } => {
                let mask = masked.as_ref().map(|it| &it.mask[..]);
                for (lane, to) in to.iter().enumerate() {
                    self.regs[*to] = if self.is_on(mask, lane, at)? {
                        match self.load(*memory, indices, lane, at) {
                            Err(_) if *lenient => Scalar::UNKNOWN,
                            value => value?,
                        }
                    } else {
                        masked.as_ref().map_or(Scalar::UNKNOWN, |it| self.regs[it.others[lane]])
                    };
                }
            }
            MemoryInst::Store { values, memory, indices, mask } => {
                for (lane, value) in values.iter().enumerate() {
                    if self.is_on(mask.as_deref(), lane, at)? {
                        self.store(*memory, indices, lane, self.regs[*value], at)?;
                    }
                }
            }
            MemoryInst::Update { to, element, code, stored, memory, indices } => {
                let before = self.load(*memory, indices, 0, at)?;
                self.regs[*element] = before;
                self.code(code)?;
                self.store(*memory, indices, 0, self.regs[*stored], at)?;
                self.regs[*to] = before;
            }
            MemoryInst::Copy { from, to } => {
                let (from, to) =
                    (Rc::clone(self.memory(*from, at)?), Rc::clone(self.memory(*to, at)?));
                self.same_shape(&from.shape, &to.shape, at)?;
                let array = self.elements(&from, at)?;
                self.set_elements(&to, &array.scalars, at)?;
            }
            MemoryInst::Extent { to, memory, dim } => {
                let shape = &self.memory(*memory, at)?.shape;
                self.regs[*to] = self.extent(shape, *dim, at)?;
            }
            MemoryInst::Subview { to, from, slice } => {
                let view = self.subview(*from, slice, at)?;
                self.set_memory(*to, view);
            }
            MemoryInst::Cast { to, from, shape } => {
                let view = Rc::clone(self.memory(*from, at)?);
                self.expect_shape(&view.shape, shape, at)?;
                self.memories[*to] = Some(view);
            }
            MemoryInst::Reinterpret { to, from, offset, sizes, strides } => {
                let MemRef { allocation, elements, .. } = **self.memory(*from, at)?;
                let places = |elements_of: i64| elements_of.saturating_mul(elements.width as i64);
                let offset = places(self.certain(*offset, "an offset", at)?);
                let offset = offset.saturating_add(elements.base);
                let shape = self.shape(sizes, at)?.into();
                let strides = strides.iter().map(|it| self.certain(*it, "a stride", at));
                let strides = strides.map(|it| it.map(places)).collect::<Result<_>>()?;
                self.set_memory(*to, MemRef { allocation, offset, shape, strides, elements });
            }
            MemoryInst::View { to, from, start, shape, width, is_float } => {
                let bytes = Rc::clone(self.memory(*from, at)?);
                let start = self.certain(*start, "a start", at)?;
                let shape = self.shape(shape, at)?;
                let base = bytes.offset.saturating_add(start);
                let elements = Elements { base, width: *width, is_float: *is_float };
                let mut view = MemRef::whole(bytes.allocation, &shape, *is_float);
                view.strides.iter_mut().for_each(|it| *it = it.saturating_mul(*width as i64));
                let length = view.num_elements().saturating_mul(*width) as i64;
                if start < 0 || (bytes.num_elements() as i64) < start.saturating_add(length) {
                    return self.fail(at, "views bytes that the memref does not have");
                }
                self.set_memory(*to, MemRef { offset: base, elements, ..view });
            }
            MemoryInst::Reshape { to, from, shape } => {
                let view = Rc::clone(self.memory(*from, at)?);
                let shape = self.reshaped(&view.shape, shape, at)?;
                let strides = self.reshaped_strides(&view, &shape, at)?;
                let shape = shape.into_iter().flat_map(|(_, to)| to).collect();
                self.set_memory(*to, MemRef { shape, strides, ..MemRef::clone(&view) });
            }
            MemoryInst::Address { to, memory } => {
                let view = self.memory(*memory, at)?;
                // Allocations lie far apart from each other.
                let address = (view.allocation as i64 + 1) << 40;
                self.regs[*to] = Scalar::int(address);
            }
            MemoryInst::Metadata { base: to, offset, sizes, strides, memory } => {
                let view = Rc::clone(self.memory(*memory, at)?);
                let Elements { base, width, is_float } = view.elements;
                let in_elements = |places: i64| Scalar::int(places / width as i64);
                self.regs[*offset] = in_elements(view.offset - base);
                for (reg, extent) in sizes.iter().zip(&view.shape) {
                    self.regs[*reg] = Scalar::int(*extent as i64);
                }
                for (reg, stride) in strides.iter().zip(&view.strides) {
                    self.regs[*reg] = in_elements(*stride);
                }
                let pointer = MemRef::whole(view.allocation, &[], is_float);
                self.set_memory(*to, MemRef { offset: base, elements: view.elements, ..pointer });
            }
            MemoryInst::Global { to, global } => {
                self.heap.globals.resize(self.program.globals.len(), None);
                let global_at = *global;
                let global = &self.program.globals[global_at];
                let allocation = self.heap.globals[global_at].unwrap_or_else(|| {
                    let array = global.array.clone();
                    let (is_float, made) = (global.is_float, global.at);
                    self.heap.allocate(array, is_float, global.is_constant, made).allocation
                });
                self.heap.globals[global_at] = Some(allocation);
                self.set_memory(
                    *to,
                    MemRef::whole(allocation, &global.array.shape, global.is_float),
                );
            }
            MemoryInst::OfTensor { to, tensor, read_only, is_float } => {
                let array = Array::clone(self.tensor(*tensor, at)?);
                let view = self.heap.allocate(array, *is_float, *read_only, at);
                self.set_memory(*to, view);
            }
            MemoryInst::ToTensor { to, memory } => {
                let view = Rc::clone(self.memory(*memory, at)?);
                let array = self.elements(&view, at)?;
                self.set_tensor(*to, array);
            }
            MemoryInst::Materialize { tensor, memory } => {
                let array = Rc::clone(self.tensor(*tensor, at)?);
                let view = Rc::clone(self.memory(*memory, at)?);
                self.same_shape(&array.shape, &view.shape, at)?;
                self.set_elements(&view, &array.scalars, at)?;
            }
            MemoryInst::Clone { to, from } => {
                let view = Rc::clone(self.memory(*from, at)?);
                let is_float = view.elements.is_float;
                let array = self.elements(&view, at)?;
                let view = self.heap.allocate(array, is_float, false, at);
                self.set_memory(*to, view);
            }
        }
        Ok(())
    }

    /// Frees every allocation that some condition says is owned, and that is not retained. A retained
    /// memref is owned if some memref of its allocation is.
    fn deallocate_owned(
        &mut self,
        owned: &[(MemReg, Reg)],
        retained: &[(MemReg, Reg)],
        at: At,
    ) -> Result<()> {
        let mut allocations = Vec::new();
        for (memory, condition) in owned {
            if self.certain(*condition, "a condition", at)? & 1 != 0 {
                allocations.push(self.memory(*memory, at)?.allocation);
            }
        }
        allocations.sort_unstable();
        allocations.dedup();
        let mut kept = Vec::new();
        for (memory, to) in retained {
            let allocation = self.memory(*memory, at)?.allocation;
            kept.push(allocation);
            self.regs[*to] = Scalar::bool(allocations.contains(&allocation));
        }
        allocations.retain(|it| !kept.contains(it));
        allocations.into_iter().try_for_each(|it| self.free(it, at))
    }

    fn subview(&self, from: MemReg, slice: &Slice, at: At) -> Result<MemRef> {
        let view = self.memory(from, at)?;
        let bounds = self.slice_bounds(slice, &view.shape, at)?;
        let mut offset = view.offset;
        let (mut shape, mut strides) = (SmallVec::new(), SmallVec::new());
        for (dim, bound) in bounds.iter().enumerate() {
            let overflow = || self.error(at, "overflows 64 bits in index arithmetic");
            let start = bound.offset.checked_mul(view.strides[dim]);
            offset = start.and_then(|it| it.checked_add(offset)).ok_or_else(overflow)?;
            if slice.is_kept[dim] {
                shape.push(bound.size);
                let stride = bound.stride.checked_mul(view.strides[dim]);
                strides.push(stride.ok_or_else(overflow)?);
            }
        }
        Ok(MemRef { offset, shape, strides, ..MemRef::clone(view) })
    }

    /// The strides of a view after [`reshaped`](Self::reshaped).
    fn reshaped_strides(
        &self,
        view: &MemRef,
        groups: &[(Vec<usize>, Vec<usize>)],
        at: At,
    ) -> Result<SmallVec<[i64; 4]>> {
        let mut strides = SmallVec::new();
        for (from, to) in groups {
            // The dimensions of a group must be dense in each other; those of extent 1 do not matter.
            let long: Vec<_> = from.iter().filter(|dim| view.shape[**dim] != 1).collect();
            for pair in long.windows(2) {
                let (outer, inner) = (*pair[0], *pair[1]);
                let dense = view.strides[inner].checked_mul(view.shape[inner] as i64);
                if Some(view.strides[outer]) != dense && view.num_elements() != 0 {
                    let message = format!(
                        "collapses dimensions {outer} and {inner}, between which there are gaps"
                    );
                    return self.fail(at, message);
                }
            }
            let mut stride =
                long.last().or(from.last().as_ref()).map_or(1, |it| view.strides[**it]);
            let start = strides.len();
            for extent in to.iter().rev() {
                strides.insert(start, stride);
                stride = stride.saturating_mul((*extent).max(1) as i64);
            }
        }
        Ok(strides)
    }

    /// The groups of dimensions of a reshape: the old ones by number, and the extents of the new ones.
    pub(crate) fn reshaped(
        &self,
        old: &[usize],
        shape: &NewShape,
        at: At,
    ) -> Result<Vec<(Vec<usize>, Vec<usize>)>> {
        let (groups, extents) = match shape {
            NewShape::Collapsed(groups) => {
                let extent = |dims: &Vec<usize>| dims.iter().map(|dim| old[*dim]).product();
                return Ok(groups.iter().map(|dims| (dims.clone(), vec![extent(dims)])).collect());
            }
            NewShape::Expanded(groups, extents) => (groups, self.shape(extents, at)?),
        };
        let mut found = Vec::new();
        for (dim, group) in groups.iter().enumerate() {
            let new: Vec<_> = group.iter().map(|it| extents[*it]).collect();
            let count = new.iter().try_fold(1, |count: usize, it| count.checked_mul(*it));
            if count != Some(old[dim]) {
                let message = format!("expands an extent of {} to {}", old[dim], Shape(&new));
                return self.fail(at, message);
            }
            found.push((vec![dim], new));
        }
        // A tensor of one element expands from no dimension.
        if groups.is_empty() {
            found.push((Vec::new(), extents));
        }
        Ok(found)
    }
}
