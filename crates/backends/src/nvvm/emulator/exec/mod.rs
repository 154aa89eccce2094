//! The instructions: what each does to the registers of a warp and to memory.

mod convert;
mod copies;
mod float;
mod integer;
mod matrix;
mod memory;
mod tensor;
mod tensor_copies;
mod warp_ops;
mod wgmma;

use super::{
    error::FaultKind,
    machine::{Context, Step, fail},
    memory::resolve_generic,
    module::{Op, Reg},
    syntax::Space,
    warp::lanes,
};

impl<'r> Context<'r, '_> {
    /// Executes an instruction that is no control flow.
    pub(super) fn execute(&mut self, op: &'r Op) -> Step {
        match op {
            Op::Nothing => {}
            Op::Move { d, a } => {
                let values = *self.warp.get(*a);
                self.warp.set(*d, self.mask, &values);
            }
            Op::Pack { d, parts, bits } => {
                let mut values = [0; 32];
                for (index, part) in parts.iter().enumerate() {
                    let part = self.warp.get(*part);
                    for lane in 0..32 {
                        values[lane] |= truncate(part[lane], *bits) << (index as u32 * bits);
                    }
                }
                self.warp.set(*d, self.mask, &values);
            }
            Op::Unpack { parts, a, bits } => {
                let whole = *self.warp.get(*a);
                for (index, part) in parts.iter().enumerate() {
                    let values = whole.map(|x| truncate(x >> (index as u32 * bits), *bits));
                    self.warp.set(*part, self.mask, &values);
                }
            }
            Op::ConvertAddress { d, a, space, to } => {
                let base = Self::window(*space);
                let shift = if *to { base.wrapping_neg() } else { base };
                self.map1(*d, *a, |a| a.wrapping_add(shift));
            }
            Op::IsSpace { d, a, space } => {
                let cluster = |space| if space == Space::Cluster { Space::Shared } else { space };
                self.map1(*d, *a, |a| u64::from(resolve_generic(a).0 == cluster(*space)));
            }
            Op::Integer { op, bits, signed, d, a, b, c } => {
                self.integer(*op, *bits, *signed, [*d, *a, *b, *c])?;
            }
            Op::Bfi { bits, d, a, b, c, e } => self.bit_field_insert(*bits, [*d, *a, *b, *c, *e]),
            Op::Carry { subtract, takes, sets, bits, flag, d, a, b } => {
                self.carry((*subtract, *takes, *sets), *bits, *flag, [*d, *a, *b]);
            }
            Op::Packed16 { op, signed, d, a, b } => self.packed16(*op, *signed, [*d, *a, *b]),
            Op::Float { op, style, d, a, b, c } => self.float(*op, *style, [*d, *a, *b, *c]),
            Op::Approximate { op, format, packed, ftz, d, a, b } => {
                self.approximate(*op, (*format, *packed), *ftz, [*d, *a, *b]);
            }
            Op::TestProperty { property, format, d, a } => {
                self.test_property(*property, *format, *d, *a);
            }
            Op::Convert(convert) => self.convert(convert),
            Op::ConvertPack { ty, d, a, b, c } => self.convert_pack(*ty, [*d, *a, *b], *c),
            Op::Compare { .. } => self.compare(op),
            Op::Select { d, a, b, p } => {
                self.map3(*d, *a, *b, *p, |a, b, p| if p & 1 != 0 { a } else { b });
            }
            Op::SelectSign { d, a, b, c, float, ftz } => {
                let (float, ftz) = (*float, *ftz);
                self.map3(*d, *a, *b, *c, |a, b, c| {
                    if float::not_negative(c as u32, float, ftz) { a } else { b }
                });
            }
            Op::Load(load) => self.load(load)?,
            Op::Store(store) => self.store(store)?,
            Op::Atomic(atomic) => self.atomic(atomic)?,
            Op::Fence { scope } => self.fence(*scope),
            Op::Prefetch { space, address } => self.prefetch(*space, *address),
            Op::WarpSync => self.warp_sync(),
            Op::MapShared { d, a, rank } => {
                let ranks = self.warp.get(*rank);
                if let Some(lane) = lanes(self.mask).find(|lane| ranks[*lane] != 0) {
                    let message = "rank of a block that the cluster does not have".to_string();
                    return fail(lane, FaultKind::Invalid(message));
                }
                self.map1(*d, *a, |a| a);
            }
            Op::Shuffle { mode, d, p, a, b, c } => {
                self.shuffle(*mode, [*d, *p, *a, *b, *c])?;
            }
            Op::Vote { mode, d, p, negate } => self.vote(*mode, *d, *p, *negate),
            Op::Match { all, d, p, a } => self.match_lanes(*all, *d, *p, *a),
            Op::Redux { op, signed, d, a } => self.redux(*op, *signed, *d, *a),
            Op::ReduxFloat { max, abs, nan, d, a } => self.redux_float(*max, *abs, *nan, *d, *a),
            Op::Elect { d, p } => self.elect(*d, *p),
            Op::ActiveMask { d } => {
                let mask = u64::from(self.mask);
                self.warp.set(*d, self.mask, &[mask; 32]);
            }
            Op::LoadMatrix(access) => self.load_matrix(access)?,
            Op::StoreMatrix(access) => self.store_matrix(access)?,
            Op::MoveMatrix { d, a } => self.move_matrix(*d, *a),
            Op::Mma(mma) => self.mma(mma),
            Op::CopyAsync(copy) => self.copy_async(copy)?,
            Op::CopyCommit => self.copy_commit(),
            Op::CopyWait { groups } => self.copy_wait(*groups),
            Op::Mbarrier { space, address, op } => self.mbarrier(*space, *address, op)?,
            Op::Bulk(bulk) => self.bulk(bulk)?,
            Op::Wgmma(op) => self.wgmma(op)?,
            Op::WgmmaCommit => self.wgmma_commit(),
            Op::Trap => return fail(self.first_lane(), FaultKind::Trap),
            Op::Assertion => return fail(self.first_lane(), FaultKind::Assertion),
            Op::Branch { .. }
            | Op::BranchIndexed { .. }
            | Op::Exit
            | Op::Barrier { .. }
            | Op::ClusterArrive
            | Op::ClusterWait
            | Op::WgmmaWait { .. } => {
                unreachable!("control flow is the machine's")
            }
        }
        Ok(())
    }

    pub(super) fn first_lane(&self) -> usize {
        self.mask.trailing_zeros() as usize
    }

    #[inline]
    pub(super) fn map1(&mut self, d: Reg, a: Reg, f: impl Fn(u64) -> u64) {
        let mut values = [0; 32];
        for (value, a) in values.iter_mut().zip(self.warp.get(a)) {
            *value = f(*a);
        }
        self.warp.set(d, self.mask, &values);
    }

    #[inline]
    pub(super) fn map2(&mut self, d: Reg, a: Reg, b: Reg, f: impl Fn(u64, u64) -> u64) {
        let mut values = [0; 32];
        for ((value, a), b) in values.iter_mut().zip(self.warp.get(a)).zip(self.warp.get(b)) {
            *value = f(*a, *b);
        }
        self.warp.set(d, self.mask, &values);
    }

    #[inline]
    pub(super) fn map3(
        &mut self,
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
        f: impl Fn(u64, u64, u64) -> u64,
    ) {
        let mut values = [0; 32];
        let sources = self.warp.get(a).iter().zip(self.warp.get(b)).zip(self.warp.get(c));
        for (value, ((a, b), c)) in values.iter_mut().zip(sources) {
            *value = f(*a, *b, *c);
        }
        self.warp.set(d, self.mask, &values);
    }

    /// The same for functions that cost much: only for the lanes that execute.
    pub(super) fn map_active(
        &mut self,
        d: Reg,
        [a, b, c]: [Reg; 3],
        f: impl Fn(u64, u64, u64) -> u64,
    ) {
        let (a, b, c) = (self.warp.get(a), self.warp.get(b), self.warp.get(c));
        let mut values = [0; 32];
        for lane in lanes(self.mask) {
            values[lane] = f(a[lane], b[lane], c[lane]);
        }
        self.warp.set(d, self.mask, &values);
    }
}

/// The low bits of a value.
#[inline]
pub(super) fn truncate(value: u64, bits: u32) -> u64 {
    if bits >= 64 { value } else { value & ((1 << bits) - 1) }
}

/// The low bits of a value as a signed number.
#[inline]
pub(super) fn extend(value: u64, bits: u32) -> i64 {
    let shift = 64 - bits;
    ((value << shift) as i64) >> shift
}
