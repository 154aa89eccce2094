//! `ldmatrix`, `stmatrix`, `movmatrix`, `mma` (PTX ISA, "Warp Level Matrix Multiply-Accumulate
//! Instructions").

use smallvec::SmallVec;

use super::super::{
    machine::{AtLane, Context, Step},
    module::*,
    races::Kind,
    syntax::Space,
    warp::{Lanes, lanes},
};
use super::{extend, float::float, integer::element, memory::Request, tensor, truncate};

/// An 8 by 8 matrix of 16-bit elements.
type Tile = [[u16; 8]; 8];

/// The fragment of a tile: lane `4 * row + column / 2` holds two elements of a row.
fn fragment(tile: &Tile, transposed: bool) -> Lanes {
    let at = |row: usize, column: usize| {
        u64::from(if transposed { tile[column][row] } else { tile[row][column] })
    };
    std::array::from_fn(|lane| {
        let (row, column) = (lane / 4, 2 * (lane % 4));
        at(row, column) | at(row, column + 1) << 16
    })
}

fn tile(fragment: &Lanes, transposed: bool) -> Tile {
    let mut tile = [[0; 8]; 8];
    for (lane, value) in fragment.iter().enumerate() {
        for half in 0..2 {
            let (row, column) = (lane / 4, 2 * (lane % 4) + half);
            let element = (value >> (16 * half)) as u16;
            if transposed {
                tile[column][row] = element;
            } else {
                tile[row][column] = element;
            }
        }
    }
    tile
}

impl Context<'_, '_> {
    pub(super) fn load_matrix(&mut self, op: &MatrixAccess) -> Step {
        let addresses = self.addresses(op.address);
        self.count_rows(op, &addresses, Request::Load);
        for (number, d) in op.registers.iter().enumerate() {
            let mut rows = [[0; 8]; 8];
            for (row, elements) in rows.iter_mut().enumerate() {
                let lane = 8 * number + row;
                let (target, start) =
                    self.locate(op.space, addresses[lane], 16, 16).at_lane(lane)?;
                self.record(target, start, 16, Kind::Read, lane).at_lane(lane)?;
                self.check_written(target, start, 16, lane).at_lane(lane)?;
                for (column, element) in elements.iter_mut().enumerate() {
                    *element = self.peek(target, start + 2 * column, 2, lane) as u16;
                }
            }
            self.warp.set(*d, self.mask, &fragment(&rows, op.transposed));
        }
        Ok(())
    }

    pub(super) fn store_matrix(&mut self, op: &MatrixAccess) -> Step {
        let addresses = self.addresses(op.address);
        self.count_rows(op, &addresses, Request::Store);
        for (number, a) in op.registers.iter().enumerate() {
            let rows = tile(self.warp.get(*a), op.transposed);
            for (row, elements) in rows.iter().enumerate() {
                let lane = 8 * number + row;
                let (target, start) =
                    self.locate(op.space, addresses[lane], 16, 16).at_lane(lane)?;
                self.record(target, start, 16, Kind::Write, lane).at_lane(lane)?;
                for (column, element) in elements.iter().enumerate() {
                    self.poke(target, start + 2 * column, 2, u64::from(*element), lane)
                        .at_lane(lane)?;
                }
            }
        }
        Ok(())
    }

    /// One matrix is one phase of 8 rows.
    fn count_rows(&mut self, op: &MatrixAccess, addresses: &Lanes, request: Request) {
        let mask = self.mask;
        let rows = 8 * op.registers.len() as u32;
        self.mask = if rows == 32 { mask } else { mask & ((1 << rows) - 1) };
        let space = if op.space == Space::Generic { Space::Shared } else { op.space };
        self.count_request(space, addresses, 16, request);
        self.mask = mask;
    }

    pub(super) fn move_matrix(&mut self, d: Reg, a: Reg) {
        let moved = fragment(&tile(self.warp.get(a), false), true);
        self.warp.set(d, self.mask, &moved);
    }

    pub(super) fn mma(&mut self, op: &Mma) {
        let Mma { m, n, k, .. } = *op;
        self.run.counts.tensor_operations += (m * n * k) as u64;
        let a = self.matrix_a(op);
        let b = self.matrix_b(op);
        let c = self.matrix_c(op);
        let d = match (op.a_type, op.b_type) {
            (Type::Float(Format::F64), _) => each_dot(op, &a, &b, &c, chain),
            (Type::Float(a_format), Type::Float(b_format)) => {
                tensor::product((m, n, k), (a_format, b_format, op.d_type), &a, &b, &c)
            }
            _ => each_dot(op, &a, &b, &c, |a, b, c| {
                integer_dot((op.a_type, op.b_type), op.satfinite, a, b, c)
            }),
        };
        self.write_matrix_d(op, &d);
    }

    /// A, row by row. A register holds neighbours of a row; register 1 is 8 rows below register 0,
    /// the next two lie to the right.
    fn matrix_a(&self, op: &Mma) -> Vec<u64> {
        let bits = op.a_type.bits();
        let (per_register, halves) = ((32 / bits).max(1) as usize, op.m / 8);
        let mut matrix = vec![0; op.m * op.k];
        for (index, reg) in op.a.iter().enumerate() {
            for (lane, value) in self.warp.get(*reg).iter().enumerate() {
                let row = lane / 4 + 8 * (index % halves);
                let column = (index / halves) * 4 * per_register + lane % 4 * per_register;
                for part in 0..per_register {
                    let value = truncate(value >> (part as u32 * bits), bits);
                    matrix[row * op.k + column + part] = value;
                }
            }
        }
        matrix
    }

    /// B, column by column. A register holds neighbours of a column.
    fn matrix_b(&self, op: &Mma) -> Vec<u64> {
        let bits = op.b_type.bits();
        let per_register = (32 / bits).max(1) as usize;
        let mut matrix = vec![0; op.n * op.k];
        for (index, reg) in op.b.iter().enumerate() {
            for (lane, value) in self.warp.get(*reg).iter().enumerate() {
                let row = index * 4 * per_register + lane % 4 * per_register;
                for part in 0..per_register {
                    let value = truncate(value >> (part as u32 * bits), bits);
                    matrix[lane / 4 * op.k + row + part] = value;
                }
            }
        }
        matrix
    }

    /// C, row by row. Two neighbours of a row, then two 8 rows below.
    fn matrix_c(&self, op: &Mma) -> Vec<u64> {
        let mut matrix = vec![0; op.m * op.n];
        for lane in 0..32 {
            for (index, at) in accumulators(op, lane).enumerate() {
                matrix[at] = match op.c_type.bits() {
                    16 => truncate(self.warp.get(op.c[index / 2])[lane] >> (16 * (index % 2)), 16),
                    _ => self.warp.get(op.c[index])[lane],
                };
            }
        }
        matrix
    }

    fn write_matrix_d(&mut self, op: &Mma, d: &[u64]) {
        let mut values: SmallVec<[Lanes; 4]> = SmallVec::from_elem([0; 32], op.d.len());
        for lane in lanes(self.mask) {
            for (index, at) in accumulators(op, lane).enumerate() {
                match op.d_type.bits() {
                    16 => values[index / 2][lane] |= d[at] << (16 * (index % 2)),
                    _ => values[index][lane] = d[at],
                }
            }
        }
        for (d, values) in op.d.iter().zip(&values) {
            self.warp.set(*d, self.mask, values);
        }
    }
}

/// Where a lane's elements of C and D lie in the matrix, row by row.
fn accumulators(op: &Mma, lane: usize) -> impl Iterator<Item = usize> {
    let n = op.n;
    (0..op.m / 4).map(move |index| (lane / 4 + 8 * (index / 2)) * n + 2 * (lane % 4) + index % 2)
}

/// D from the rows of A, the columns of B and the elements of C.
fn each_dot(
    op: &Mma,
    a: &[u64],
    b: &[u64],
    c: &[u64],
    dot: impl Fn(&[u64], &[u64], u64) -> u64,
) -> Vec<u64> {
    let element = |at: usize| {
        let (row, column) = (at / op.n, at % op.n);
        dot(&a[row * op.k..][..op.k], &b[column * op.k..][..op.k], c[at])
    };
    (0..op.m * op.n).map(element).collect()
}

/// A chain of fused multiply-adds in f64, in the order of k.
fn chain(a: &[u64], b: &[u64], c: u64) -> u64 {
    let style = Style {
        format: Format::F64,
        packed: false,
        rounding: Rounding::Nearest,
        ftz: false,
        sat: false,
        relu: false,
        nan: false,
        xorsign: false,
    };
    a.iter().zip(b).fold(c, |sum, (a, b)| float(Float::Fma, &style, *a, *b, sum))
}

/// Exact, then wrapped or clamped.
pub(super) fn integer_dot(
    (a_type, b_type): (Type, Type),
    satfinite: bool,
    a: &[u64],
    b: &[u64],
    c: u64,
) -> u64 {
    let number = |ty: Type, value: u64| match ty {
        Type::Signed(bits) => element(value, bits, 0, true),
        Type::Nibble(signed) => element(value, 4, 0, signed),
        _ => element(value, ty.bits(), 0, false),
    };
    let products = a.iter().zip(b).map(|(a, b)| number(a_type, *a) * number(b_type, *b));
    let sum: i64 = products.sum::<i64>() + extend(c, 32);
    let sum = match satfinite {
        true => sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)),
        false => sum,
    };
    truncate(sum as u64, 32)
}
