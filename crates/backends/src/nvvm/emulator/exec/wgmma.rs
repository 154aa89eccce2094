//! `wgmma` (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").
//!
//! Each warp of the warpgroup computes its 16 rows. The operation happens at the
//! `wgmma.wait_group` that guarantees it: shared memory is read then, and the accumulators are
//! written then. The four warps meet there, so that one thread's arrival at an mbarrier afterwards
//! covers the reads of all. Operands are K-major.

use super::super::{
    error::FaultKind,
    machine::{AtLane, Context, Step, fail},
    module::*,
    races::Kind,
    syntax::Space,
    tensor_map::Swizzle,
    warp::{Lanes, PendingWgmma, lanes},
};
use super::{matrix::integer_dot, tensor, truncate};

/// Bytes of K in one instruction: two columns of 16 bytes.
const ROW_BYTES: usize = 32;

impl Context<'_, '_> {
    pub(super) fn wgmma(&mut self, op: &Wgmma) -> Step {
        let lane = self.first_lane();
        let a_registers = match &op.a {
            WgmmaA::Registers(registers) => {
                registers.iter().map(|reg| *self.warp.get(*reg)).collect()
            }
            WgmmaA::Descriptor(_) => Vec::new(),
        };
        let a_descriptor = match &op.a {
            WgmmaA::Registers(_) => 0,
            WgmmaA::Descriptor(reg) => self.warp.get(*reg)[lane],
        };
        let b_descriptor = self.warp.get(op.b)[lane];
        let (p, negate) = op.scale_d;
        let accumulates = self.warp.holds(p, !negate) >> lane & 1 != 0;
        let pc = self.pc;
        let pending = PendingWgmma { pc, a_registers, a_descriptor, b_descriptor, accumulates };
        self.warp.wgmma_open.push(pending);
        Ok(())
    }

    pub(super) fn wgmma_commit(&mut self) {
        let open = std::mem::take(&mut self.warp.wgmma_open);
        self.warp.wgmma_groups.push_back(open);
    }

    pub(in super::super) fn wgmma_wait(&mut self, groups: u32) -> Step {
        while self.warp.wgmma_groups.len() > groups as usize {
            for pending in self.warp.wgmma_groups.pop_front().unwrap_or_default() {
                self.run_wgmma(&pending)?;
            }
        }
        Ok(())
    }

    fn run_wgmma(&mut self, pending: &PendingWgmma) -> Step {
        let kernel = self.run.kernel;
        let Op::Wgmma(op) = &kernel.instructions[pending.pc as usize].op else { return Ok(()) };
        self.run.counts.tensor_operations += (16 * op.n * op.k) as u64;
        let bits = op.a_type.bits();
        let a = match &op.a {
            WgmmaA::Descriptor(_) => {
                let first = 16 * (self.warp.number % 4);
                self.operand(pending.a_descriptor, first, 16, bits)?
            }
            WgmmaA::Registers(_) => fragment(&pending.a_registers, op.k, bits),
        };
        let b = self.operand(pending.b_descriptor, 0, op.n, op.b_type.bits())?;
        let mut c = vec![0; 16 * op.n];
        if pending.accumulates {
            self.accumulators(op, |value, at| c[at] = value);
        }
        let d = match (op.a_type, op.b_type) {
            (Type::Float(a_format), Type::Float(b_format)) => {
                let formats = (a_format, b_format, op.d_type);
                tensor::warpgroup_product((16, op.n, op.k), formats, &a, &b, &c)
            }
            (a_type, b_type) => (0..16 * op.n)
                .map(|at| {
                    let (row, column) = (at / op.n * op.k, at % op.n * op.k);
                    let (a, b) = (&a[row..row + op.k], &b[column..column + op.k]);
                    integer_dot((a_type, b_type), op.satfinite, a, b, c[at])
                })
                .collect(),
        };
        self.write_accumulators(op, &d);
        Ok(())
    }

    /// Rows of an operand in shared memory, each of so many elements.
    fn operand(&mut self, descriptor: u64, first: usize, rows: usize, bits: u32) -> Step<Vec<u64>> {
        let lane = self.first_lane();
        let field = |low: u32| (descriptor >> low & 0x3fff) << 4;
        let (start, leading, stride) = (field(0), field(16), field(32));
        let swizzle = match descriptor >> 62 {
            0 => Swizzle::None,
            1 => Swizzle::Bytes128,
            2 => Swizzle::Bytes64,
            _ => Swizzle::Bytes32,
        };
        if descriptor >> 49 & 7 != 0 {
            let message = "unsupported base offset of a matrix descriptor".to_string();
            return fail(lane, FaultKind::Invalid(message));
        }
        let mut elements = Vec::with_capacity(rows * ROW_BYTES * 8 / bits as usize);
        for row in first..first + rows {
            let (group, row) = ((row / 8) as u64, (row % 8) as u64);
            for column in 0..2u64 {
                let linear = start + group * stride + row * swizzle.span();
                let address = match swizzle {
                    Swizzle::None => linear + column * leading,
                    _ => swizzle.apply(linear + 16 * column),
                };
                let (target, at) = self.locate(Space::Shared, address, 16, 16).at_lane(lane)?;
                self.record(target, at, 16, Kind::Read, lane).at_lane(lane)?;
                self.check_written(target, at, 16, lane).at_lane(lane)?;
                let bytes = bits as usize / 8;
                elements.extend(
                    (at..at + 16).step_by(bytes).map(|at| self.peek(target, at, bytes, lane)),
                );
            }
        }
        Ok(elements)
    }

    /// The accumulators of the warp, and their place in its 16 rows.
    fn accumulators(&self, op: &Wgmma, mut f: impl FnMut(u64, usize)) {
        for lane in 0..32 {
            for index in 0..op.n / 2 {
                let at = place(op.n, lane, index);
                let value = match op.d_type.bits() {
                    16 => self.warp.get(op.d[index / 2])[lane] >> (16 * (index % 2)) & 0xffff,
                    _ => self.warp.get(op.d[index])[lane],
                };
                f(value, at);
            }
        }
    }

    fn write_accumulators(&mut self, op: &Wgmma, d: &[u64]) {
        let half = op.d_type.bits() == 16;
        for (number, reg) in op.d.iter().enumerate() {
            let mut values: Lanes = [0; 32];
            for lane in lanes(self.mask) {
                values[lane] = match half {
                    true => {
                        let at = place(op.n, lane, 2 * number);
                        d[at] | d[at + 1] << 16
                    }
                    false => d[place(op.n, lane, number)],
                };
            }
            self.warp.set(*reg, self.mask, &values);
        }
    }
}

/// Where the accumulator `index` of a lane lies in 16 rows of n.
fn place(n: usize, lane: usize, index: usize) -> usize {
    let row = lane / 4 + 8 * (index / 2 % 2);
    row * n + 8 * (index / 4) + 2 * (lane % 4) + index % 2
}

/// A from four registers, as `mma` has it: 16 rows of k.
fn fragment(registers: &[Lanes], k: usize, bits: u32) -> Vec<u64> {
    let per_register = (32 / bits) as usize;
    let mut matrix = vec![0; 16 * k];
    for (index, values) in registers.iter().enumerate() {
        for (lane, value) in values.iter().enumerate() {
            let row = lane / 4 + 8 * (index % 2);
            let column = (index / 2) * 4 * per_register + lane % 4 * per_register;
            for part in 0..per_register {
                matrix[row * k + column + part] = truncate(value >> (part as u32 * bits), bits);
            }
        }
    }
    matrix
}
