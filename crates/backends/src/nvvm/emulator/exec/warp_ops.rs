//! Operations between the lanes of a warp (PTX ISA, "shfl.sync", "vote.sync", "match.sync",
//! "elect.sync").

use super::super::{
    error::FaultKind,
    machine::{Context, Step, fail},
    module::{Reg, Shuffle, Vote},
    warp::lanes,
};

impl Context<'_, '_> {
    pub(super) fn shuffle(&mut self, mode: Shuffle, [d, p, a, b, c]: [Reg; 5]) -> Step {
        let (values, b, c) = (*self.warp.get(a), *self.warp.get(b), *self.warp.get(c));
        let (mut results, mut valid) = ([0; 32], [0; 32]);
        for lane in lanes(self.mask) {
            let (operand, clamp) = ((b[lane] & 31) as i32, (c[lane] & 31) as i32);
            let segment = (c[lane] >> 8 & 31) as i32;
            let lane_number = lane as i32;
            // The clamp is the last lane of the segment, for `up` the first.
            let bound = (lane_number & segment) | (clamp & !segment);
            let first = lane_number & segment;
            let (source, inside) = match mode {
                Shuffle::Up => (lane_number - operand, lane_number - operand >= bound),
                Shuffle::Down => (lane_number + operand, lane_number + operand <= bound),
                Shuffle::Butterfly => (lane_number ^ operand, lane_number ^ operand <= bound),
                Shuffle::Index => {
                    let source = first | (operand & !segment);
                    (source, source <= bound)
                }
            };
            let source = if inside { source as usize } else { lane };
            if self.mask >> source & 1 == 0 {
                let message = format!("shfl reads lane {source}, which does not execute it");
                return fail(lane, FaultKind::Invalid(message));
            }
            results[lane] = values[source] & 0xffff_ffff;
            valid[lane] = u64::from(inside);
        }
        self.warp.set(d, self.mask, &results);
        self.warp.set(p, self.mask, &valid);
        Ok(())
    }

    pub(super) fn vote(&mut self, mode: Vote, d: Reg, p: Reg, negate: bool) {
        let held = self.warp.holds(p, !negate) & self.mask;
        let result = match mode {
            Vote::All => u64::from(held == self.mask),
            Vote::Any => u64::from(held != 0),
            Vote::Uniform => u64::from(held == 0 || held == self.mask),
            Vote::Ballot => u64::from(held),
        };
        self.warp.set(d, self.mask, &[result; 32]);
    }

    pub(super) fn match_lanes(&mut self, all: bool, d: Reg, p: Reg, a: Reg) {
        let values = *self.warp.get(a);
        let mut results = [0; 32];
        for lane in lanes(self.mask) {
            let same = lanes(self.mask).filter(|other| values[*other] == values[lane]);
            results[lane] = same.fold(0, |mask, other| mask | 1 << other);
        }
        if all {
            let equal = results[self.first_lane()] == u64::from(self.mask);
            results = [if equal { u64::from(self.mask) } else { 0 }; 32];
            self.warp.set(p, self.mask, &[u64::from(equal); 32]);
        }
        self.warp.set(d, self.mask, &results);
    }

    /// The first lane of the mask is the leader.
    pub(super) fn elect(&mut self, d: Reg, p: Reg) {
        let leader = self.first_lane();
        let chosen = std::array::from_fn(|lane| u64::from(lane == leader));
        self.warp.set(p, self.mask, &chosen);
        self.warp.set(d, self.mask, &[leader as u64; 32]);
    }
}
