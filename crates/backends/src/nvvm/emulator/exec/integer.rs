//! Integer and logic instructions (PTX ISA, "Integer Arithmetic Instructions", "Logic and Shift
//! Instructions").

use super::super::{
    error::FaultKind,
    machine::{Context, Step, fail},
    module::{Integer, Permute, Reg, SINK},
    warp::lanes,
};
use super::{extend, truncate};

impl Context<'_, '_> {
    pub(super) fn integer(
        &mut self,
        op: Integer,
        bits: u32,
        signed: bool,
        [d, a, b, c]: [Reg; 4],
    ) -> Step {
        // The frequent ones have loops of their own.
        match op {
            Integer::Add if bits == 32 => {
                self.map2(d, a, b, |a, b| u64::from((a as u32).wrapping_add(b as u32)));
            }
            Integer::Add if bits == 64 => self.map2(d, a, b, u64::wrapping_add),
            Integer::And => self.map2(d, a, b, |a, b| truncate(a & b, bits)),
            Integer::Or => self.map2(d, a, b, |a, b| truncate(a | b, bits)),
            Integer::Xor => self.map2(d, a, b, |a, b| truncate(a ^ b, bits)),
            Integer::Sub => self.map2(d, a, b, |a, b| truncate(a.wrapping_sub(b), bits)),
            Integer::MulLow => self.map2(d, a, b, |a, b| truncate(a.wrapping_mul(b), bits)),
            Integer::MulWide if bits == 32 && !signed => {
                self.map2(d, a, b, |a, b| (a & 0xffff_ffff) * (b & 0xffff_ffff));
            }
            Integer::Div | Integer::Rem => {
                let divisors = self.warp.get(b);
                if self.run.options.check_undefined
                    && let Some(lane) = lanes(self.mask).find(|l| truncate(divisors[*l], bits) == 0)
                {
                    let message = "division by zero, whose result is not defined";
                    return fail(lane, FaultKind::Invalid(message.to_string()));
                }
                self.map_active(d, [a, b, c], |a, b, c| integer(op, bits, signed, a, b, c));
            }
            _ => self.map3(d, a, b, c, |a, b, c| integer(op, bits, signed, a, b, c)),
        }
        Ok(())
    }

    pub(super) fn bit_field_insert(&mut self, bits: u32, [d, a, b, c, e]: [Reg; 5]) {
        let (a, b) = (*self.warp.get(a), *self.warp.get(b));
        let (c, e) = (*self.warp.get(c), *self.warp.get(e));
        let values = std::array::from_fn(|lane| {
            let (position, length) = field_position(bits, c[lane], e[lane]);
            if position >= bits || length == 0 {
                return truncate(b[lane], bits);
            }
            let field = truncate(u64::MAX, length.min(bits)) << position;
            truncate(b[lane] & !field | a[lane] << position & field, bits)
        });
        self.warp.set(d, self.mask, &values);
    }

    pub(super) fn carry(
        &mut self,
        (subtract, takes, sets): (bool, bool, bool),
        bits: u32,
        flag: Reg,
        [d, a, b]: [Reg; 3],
    ) {
        let (x, y, carry) = (*self.warp.get(a), *self.warp.get(b), *self.warp.get(flag));
        let (mut values, mut flags) = ([0; 32], carry);
        for lane in lanes(self.mask) {
            let carry_in = u128::from(takes && carry[lane] != 0);
            let (x, y) = (u128::from(truncate(x[lane], bits)), u128::from(truncate(y[lane], bits)));
            let wide =
                if subtract { x.wrapping_sub(y).wrapping_sub(carry_in) } else { x + y + carry_in };
            values[lane] = truncate(wide as u64, bits);
            flags[lane] = (wide >> bits & 1) as u64;
        }
        self.warp.set(d, self.mask, &values);
        if sets {
            self.warp.set(flag, self.mask, &flags);
        }
    }

    pub(super) fn packed16(&mut self, op: Integer, signed: bool, [d, a, b]: [Reg; 3]) {
        self.map2(d, a, b, |a, b| {
            let low = integer(op, 16, signed, a, b, 0);
            low | integer(op, 16, signed, a >> 16, b >> 16, 0) << 16
        });
    }

    pub(super) fn redux(&mut self, op: Integer, signed: bool, d: Reg, a: Reg) {
        let values = *self.warp.get(a);
        let mut rest = lanes(self.mask);
        let first = rest.next().map_or(0, |lane| values[lane]);
        let result = rest.fold(first, |x, lane| integer(op, 32, signed, x, values[lane], 0));
        if d != SINK {
            self.warp.set(d, self.mask, &[truncate(result, 32); 32]);
        }
    }
}

/// One integer operation on values of so many bits.
pub(super) fn integer(op: Integer, bits: u32, signed: bool, a: u64, b: u64, c: u64) -> u64 {
    let (ua, ub) = (truncate(a, bits), truncate(b, bits));
    let (sa, sb) = (extend(a, bits), extend(b, bits));
    let least = -(1i128 << (bits - 1));
    let most = (1i128 << (bits - 1)) - 1;
    let high = |a: i128| truncate((a >> bits) as u64, bits);
    let product = || match signed {
        true => i128::from(sa) * i128::from(sb),
        false => (u128::from(ua) * u128::from(ub)) as i128,
    };
    let wide = |value: u64| truncate(value, 2 * bits);
    let result = match op {
        Integer::Add => ua.wrapping_add(ub),
        Integer::Sub => ua.wrapping_sub(ub),
        Integer::AddSaturating => (i128::from(sa) + i128::from(sb)).clamp(least, most) as u64,
        Integer::SubSaturating => (i128::from(sa) - i128::from(sb)).clamp(least, most) as u64,
        Integer::MulLow => ua.wrapping_mul(ub),
        Integer::MulHigh => high(product()),
        Integer::MulWide => return wide(product() as u64),
        Integer::MadLow => ua.wrapping_mul(ub).wrapping_add(c),
        Integer::MadHigh => high(product()).wrapping_add(c),
        Integer::MadHighSaturating => {
            let sum = i128::from(extend(high(product()), bits)) + i128::from(extend(c, bits));
            sum.clamp(least, most) as u64
        }
        Integer::MadWide => return wide((product() as u64).wrapping_add(c)),
        Integer::Sad => {
            let distance = if signed { sa.abs_diff(sb) } else { ua.abs_diff(ub) };
            c.wrapping_add(distance)
        }
        // Division by zero is not defined; devices give all ones.
        Integer::Div | Integer::Rem if ub == 0 => u64::MAX,
        Integer::Div if signed => sa.wrapping_div(sb) as u64,
        Integer::Div => ua / ub,
        Integer::Rem if signed => sa.wrapping_rem(sb) as u64,
        Integer::Rem => ua % ub,
        Integer::Abs => sa.wrapping_abs() as u64,
        Integer::Neg => sa.wrapping_neg() as u64,
        Integer::Min if signed => sa.min(sb) as u64,
        Integer::Min => ua.min(ub),
        Integer::Max if signed => sa.max(sb) as u64,
        Integer::Max => ua.max(ub),
        Integer::MinRelu => sa.min(sb).max(0) as u64,
        Integer::MaxRelu => sa.max(sb).max(0) as u64,
        Integer::And => ua & ub,
        Integer::Or => ua | ub,
        Integer::Xor => ua ^ ub,
        Integer::Not => !ua,
        Integer::Cnot => u64::from(ua == 0),
        Integer::Shl => match b & 0xffff_ffff {
            n if n >= u64::from(bits) => 0,
            n => ua << n,
        },
        Integer::Shr => match (b & 0xffff_ffff).min(u64::from(bits)) {
            n if signed => (sa >> n.min(63)) as u64,
            n if n >= u64::from(bits) => 0,
            n => ua >> n,
        },
        Integer::Funnel { left, clamp } => {
            let amount = c & 0xffff_ffff;
            let amount = if clamp { amount.min(32) } else { amount & 31 };
            let pair = ub << 32 | ua;
            if left { (u128::from(pair) << amount >> 32) as u64 } else { pair >> amount }
        }
        Integer::Bfe => bit_field(bits, signed, ua, b, c),
        Integer::Bfind(shift) => {
            let value = if signed && sa < 0 { truncate(!ua, bits) } else { ua };
            let Some(found) = value.checked_ilog2() else { return 0xffff_ffff };
            return u64::from(if shift { bits - 1 - found } else { found });
        }
        Integer::Brev => ua.reverse_bits() >> (64 - bits),
        Integer::Popc => return u64::from(ua.count_ones()),
        Integer::Clz => return u64::from(ua.leading_zeros() - (64 - bits)),
        Integer::Lop3(table) => {
            (0..8u32).filter(|row| table >> row & 1 != 0).fold(0, |all, row| {
                let pick = |x: u64, bit: u32| if row >> bit & 1 != 0 { x } else { !x };
                all | pick(a, 2) & pick(b, 1) & pick(c, 0)
            })
        }
        Integer::Mul24(high) | Integer::Mad24(high) => {
            let (x, y) = (element(ua, 24, 0, signed), element(ub, 24, 0, signed));
            let product = x.wrapping_mul(y) as u64;
            let product = if high { product >> 16 } else { product };
            match op {
                Integer::Mad24(_) => product.wrapping_add(c),
                _ => product,
            }
        }
        Integer::BitMask { clamp } => {
            let part = |x: u64| if clamp { x.min(32) } else { x & 31 };
            let ones = |count: u64| if count >= 32 { 0xffff_ffff } else { (1u64 << count) - 1 };
            ones(part(ub)) << part(ua)
        }
        Integer::Extend { clamp } => match if clamp { ub.min(32) } else { ub & 31 } {
            0 => 0,
            count if signed => extend(ua, count as u32) as u64,
            count => truncate(ua, count as u32),
        },
        Integer::Prmt(mode) => permute(mode, ua, ub, c),
        Integer::Dot4(a_signed, b_signed) => (0..4).fold(c, |sum, byte| {
            let x = element(ua, 8, byte, a_signed);
            let y = element(ub, 8, byte, b_signed);
            sum.wrapping_add((x * y) as u64)
        }),
        Integer::Dot2(a_signed, b_signed, high) => (0..2).fold(c, |sum, half| {
            let x = element(ua, 16, half, a_signed);
            let y = element(ub, 8, half + if high { 2 } else { 0 }, b_signed);
            sum.wrapping_add((x * y) as u64)
        }),
    };
    truncate(result, bits)
}

/// A part of a register as a number.
pub(super) fn element(register: u64, bits: u32, index: u32, signed: bool) -> i64 {
    let value = register >> (bits * index);
    if signed { extend(value, bits) } else { truncate(value, bits) as i64 }
}

/// The position and length of a bit field. The manual takes the low 8 bits; devices take all 32 for
/// fields of 64 bits.
fn field_position(bits: u32, position: u64, length: u64) -> (u32, u32) {
    let limit = |x: u64| match bits {
        32 => (x & 0xff) as u32,
        _ => (x & 0xffff_ffff).min(1 << 16) as u32,
    };
    (limit(position), limit(length))
}

fn bit_field(bits: u32, signed: bool, a: u64, b: u64, c: u64) -> u64 {
    let (position, length) = field_position(bits, b, c);
    let fill = if !signed || length == 0 {
        0
    } else {
        let last = (position + length - 1).min(bits - 1);
        a >> last & 1
    };
    let field = if position >= bits { 0 } else { a >> position };
    let available = bits.saturating_sub(position).min(length);
    let mask = truncate(u64::MAX, available);
    let mask = if available == 0 { 0 } else { mask };
    truncate(field & mask | if fill != 0 { !mask } else { 0 }, bits)
}

/// `prmt` (PTX ISA, "prmt").
fn permute(mode: Permute, a: u64, b: u64, c: u64) -> u64 {
    let pair = (b << 32 | a & 0xffff_ffff).to_le_bytes();
    let start = (c & 3) as usize;
    let pick: [usize; 4] = match mode {
        Permute::Bytes => {
            return (0..4).fold(0, |all, index| {
                let selector = c >> (4 * index) & 0xf;
                let byte = pair[(selector & 7) as usize];
                let byte = match selector & 8 {
                    0 => byte,
                    _ => (byte as i8 >> 7) as u8,
                };
                all | u64::from(byte) << (8 * index)
            });
        }
        Permute::F4e => std::array::from_fn(|i| start + i),
        Permute::B4e => std::array::from_fn(|i| (start + 8 - i) % 8),
        Permute::Rc8 => [start; 4],
        Permute::Ecl => std::array::from_fn(|i| i.max(start)),
        Permute::Ecr => std::array::from_fn(|i| i.min(start)),
        Permute::Rc16 => std::array::from_fn(|i| 2 * (start & 1) + i % 2),
    };
    pick.iter().rev().fold(0, |all, index| all << 8 | u64::from(pair[*index]))
}
