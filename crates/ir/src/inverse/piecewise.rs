//! Piecewise linear functions of one variable.
//!
//! Of sums, multiples, minima and maxima over one number and constants, all linear pieces are known. A
//! minimum of two lines is cut at the last number where the first is the smaller one, so that from one
//! piece to the next there is one step of its own. Where all steps are positive, or all negative, the inverse
//! is the sum over the pieces of what each adds: that of `min(x, 10) + 3*max(x - 10, 0)` is `min(y, 10) +
//! max(y - 10, 0) floordiv 3`. The steps of each part alone do not say that they take turns to grow.

use super::Solver;
use super::monotone::Number;
use super::table::Piece;
use crate::expr::{Expr, Node};
use crate::interval::Interval;

/// The most pieces of a function.
const MAX_LINES: usize = 32;

/// `slope*x + offset`, from a number on.
#[derive(Clone, Copy)]
struct Line {
    from: i128,
    slope: i128,
    offset: i128,
}

impl Line {
    fn at(self, x: i128) -> Option<i128> {
        self.slope.checked_mul(x)?.checked_add(self.offset)
    }

    fn plus(self, other: Line, times: i128) -> Option<Line> {
        let slope = other.slope.checked_mul(times)?.checked_add(self.slope)?;
        let offset = other.offset.checked_mul(times)?.checked_add(self.offset)?;
        Some(Line { slope, offset, ..self })
    }
}

/// A function of a number, where it is piecewise linear with few pieces.
type Lines = Option<Vec<Line>>;

impl Solver<'_> {
    /// The number for which a piecewise linear sum has this value, if it grows or falls with every step of it.
    pub(super) fn solve_piecewise(
        &self,
        number: &Number,
        sum: &[(Expr, i64)],
        value: Expr,
    ) -> Option<Expr> {
        let ctx = self.ctx;
        let interval = number.interval;
        let lines = self.lines(self.total(sum), number.number, interval)?;
        // From which number to which it changes by how much with each step.
        let mut runs: Vec<(i128, i128, i128)> = Vec::new();
        for (place, line) in lines.iter().enumerate() {
            let to = last_of(&lines, place, interval);
            let mut steps = vec![(line.from, to, line.slope)];
            if let Some(next) = lines.get(place + 1) {
                steps.push((to, next.from, next.at(next.from)?.checked_sub(line.at(to)?)?));
            }
            for (from, to, step) in steps.into_iter().filter(|run| run.0 < run.1) {
                match runs.last_mut() {
                    Some(last) if last.2 == step => last.1 = to,
                    _ => runs.push((from, to, step)),
                }
            }
        }
        let &(first, first_end, step) = runs.first()?;
        let sign = step.signum();
        if MAX_LINES < runs.len() || runs.iter().any(|run| run.2.signum() != sign || sign == 0) {
            return None;
        }
        let value_at = |x: i128| {
            let line = lines.iter().rfind(|line| line.from <= x)?;
            i64::try_from(line.at(x)?.checked_mul(sign)?).ok()
        };
        let start = i128::from(interval.nearest(0)).clamp(first, first_end);
        let mut pieces = Vec::new();
        for (place, &(from, to, step)) in runs.iter().enumerate() {
            pieces.push(Piece {
                from: if place == 0 { None } else { Some(value_at(from)?) },
                to: if place + 1 == runs.len() { None } else { Some(value_at(to)?) },
                dz: i64::try_from(step.checked_abs()?).ok()?,
                dx: 1,
            });
        }
        let start = (value_at(start)?, i64::try_from(start).ok()?);
        let value = if sign == 1 { value } else { ctx.neg(value) };
        Some(self.sum_of_pieces(value, start, &pieces))
    }

    /// The pieces of a sum over an interval of a number.
    fn lines(&self, sum: Expr, number: Expr, interval: Interval) -> Lines {
        let ctx = self.ctx;
        let from = interval.lo.into();
        ctx.fold_value(sum, |expr, node, operands: Option<(&Lines, &Lines)>| {
            if expr == number {
                return Some(vec![Line { from, slope: 1, offset: 0 }]);
            }
            if let Node::Const(value) = node {
                return Some(vec![Line { from, slope: 0, offset: value.into() }]);
            }
            let (lhs, rhs) = operands?;
            let (lhs, rhs) = (lhs.as_ref()?, rhs.as_ref()?);
            let by = node.operands().and_then(|(_, by)| ctx.as_constant(by));
            let zero = Line { from, slope: 0, offset: 0 };
            match node {
                Node::Mul(..) => {
                    let multiple = |line: &Line| {
                        Some(Line { from: line.from, ..zero.plus(*line, by?.into())? })
                    };
                    lhs.iter().map(multiple).collect()
                }
                Node::Add(..) => {
                    merged(lhs, rhs, interval, |lhs, rhs, _| Some((lhs.plus(rhs, 1)?, None)))
                }
                Node::Min(..) => merged(lhs, rhs, interval, |lhs, rhs, to| lesser(lhs, rhs, to, 1)),
                Node::Max(..) => {
                    merged(lhs, rhs, interval, |lhs, rhs, to| lesser(lhs, rhs, to, -1))
                }
                _ => None,
            }
        })
    }
}

/// The last number of a piece.
fn last_of(lines: &[Line], place: usize, interval: Interval) -> i128 {
    lines.get(place + 1).map_or(interval.hi.into(), |next| next.from - 1)
}

/// The function that is made of two, from where both are lines to where one ends, by one line or two.
fn merged(
    lhs: &[Line],
    rhs: &[Line],
    interval: Interval,
    of_lines: impl Fn(Line, Line, i128) -> Option<(Line, Option<Line>)>,
) -> Lines {
    let mut lines: Vec<Line> = Vec::new();
    let (mut left, mut right) = (0, 0);
    while let (Some(&one), Some(&other)) = (lhs.get(left), rhs.get(right)) {
        let from = one.from.max(other.from);
        let ends = (last_of(lhs, left, interval), last_of(rhs, right, interval));
        let to = ends.0.min(ends.1);
        let (first, second) = of_lines(Line { from, ..one }, Line { from, ..other }, to)?;
        for line in [Some(first), second].into_iter().flatten() {
            let is_same = |last: &Line| (last.slope, last.offset) == (line.slope, line.offset);
            if !lines.last().is_some_and(is_same) {
                lines.push(line);
            }
        }
        left += usize::from(ends.0 == to);
        right += usize::from(ends.1 == to);
    }
    (lines.len() <= MAX_LINES).then_some(lines)
}

/// The minimum of two lines up to a number, or the maximum for a negative sign.
fn lesser(lhs: Line, rhs: Line, to: i128, sign: i128) -> Option<(Line, Option<Line>)> {
    let difference = lhs.plus(rhs, -1)?;
    let first = difference.at(lhs.from)?.checked_mul(sign)?;
    let last = difference.at(to)?.checked_mul(sign)?;
    if first <= 0 && last <= 0 {
        return Some((lhs, None));
    }
    if 0 <= first && 0 <= last {
        return Some((rhs, None));
    }
    let (before, after) = if first < 0 { (lhs, rhs) } else { (rhs, lhs) };
    let steps = first.checked_abs()? / difference.slope.checked_abs()?;
    let from = lhs.from.checked_add(steps)?.checked_add(1)?;
    Some((before, Some(Line { from, ..after })))
}

#[cfg(test)]
mod tests {
    use super::super::tests::inverse_of;

    #[test]
    fn pieces_that_take_turns() {
        assert_eq!(
            inverse_of("(d0) -> (min(d0, 10) + max(d0 - 10, 0) * 3), domain: d0 in [-3000, 3000]"),
            "(d0) -> (max(d0 - 10, 0) / 3 + min(d0, 10)), domain: d0 in [-3000, 8980], \
             d0 - min(max(d0 - 10, 0) / 3 + min(d0, 10), 10) - \
             max(max(d0 - 10, 0) / 3 + min(d0, 10) - 10, 0) * 3 in [0, 0]"
        );
        for text in [
            "(d0) -> (min(d0, 10) + max(d0 - 10, 0) * 3)",
            "(d0) -> (min(d0, 10) * -2 - max(d0 - 10, 0) + 7), domain: d0 in [-3000, 3000]",
            "(d0) -> (max(min(d0, 10), 0) * 3 + min(d0, 0) + max(d0 - 10, 0) * 7), domain: d0 in [-inf, 3000]",
            "(d0) -> (max(min(d0 * 3, d0 + 7), d0 * 5 - 99) - min(d0, 2)), domain: d0 in [3, 2000]",
            "(d0, d1) -> (min(d0 + d1 * 2000, 99) * 2 + max(d0 + d1 * 2000, 99)), \
             domain: d0 in [0, 1999], d1 in [-3, 5]",
            "(d0) -> (min(d0, 9223372036854775800) + max(d0, 9223372036854775800)), domain: d0 in [-9, 7]",
        ] {
            inverse_of(text);
        }
    }

    /// Slopes below, between and above two numbers, where lines cross at numbers and between them.
    #[test]
    fn slopes_and_crossings() {
        for [first, second, third] in [[1, 2, 3], [3, 1, 2], [2, 5, 1], [4, 3, 1], [-1, -3, -2]] {
            for offset in [-5, 0, 3, 8] {
                for domain in ["d0 in [-700, 700]", "d0 in [4, 2000]"] {
                    inverse_of(&format!(
                        "(d0) -> (min(d0, 4) * {first} + max(min(d0 - 4, {offset}), 0) * {second} \
                         + max(d0 - 4 - {}, 0) * {third}), domain: {domain}",
                        offset.max(0)
                    ));
                    let slopes = if first < 0 { [first - 2, first] } else { [first, first + 2] };
                    for function in ["min", "max"] {
                        inverse_of(&format!(
                            "(d0) -> ({function}(d0 * {}, d0 * {} + {offset}) * 2 + max(d0, 0) \
                             * {third} + min(d0, 0) * {third}), domain: {domain}",
                            slopes[0], slopes[1],
                        ));
                    }
                }
            }
        }
    }
}
