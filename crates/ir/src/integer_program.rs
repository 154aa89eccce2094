//! Existence of integer points of linear systems.
//!
//! The method is the Omega test (W. Pugh, "The Omega test: a fast and practical integer programming
//! algorithm for dependence analysis", 1991): equations are eliminated by unimodular substitutions,
//! then one unknown after the other by Fourier's and Motzkin's method. Where that is not exact over
//! the integers,
//!
//! - the *real shadow* without a point shows that there is none (section 2.3.1);
//! - a point of the *dark shadow* extends to one of the system;
//! - any other point lies near a lower bound of the unknown, on one of finitely many *splinters*, which
//!   are equations again.
//!
//! A system may have choices, of each of which one row has to hold. They are tried in turn, those
//! that the real shadow refutes at once left out.
//!
//! The answer is exact. Coefficients are checked 128-bit integers, and the work is limited: an overflow
//! and work used up are [`Answer::Unknown`].

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::interval::{ceil_div_wide, floor_div_wide};
use crate::linear_program::gcd_wide;

/// Coefficients by the column of their unknown, in increasing order, none zero.
pub(crate) type Terms = Vec<(u32, i128)>;

/// Numbers beyond this count as an overflow, so that no sum of a few overflows.
const LIMIT: u128 = 1 << 120;
/// The most splinters of one elimination.
const MAX_SPLINTERS: i128 = 1 << 12;

/// `lower <= sum of coefficient * x[column] <= upper`; a missing end is infinite.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    pub(crate) terms: Terms,
    pub(crate) lower: Option<i128>,
    pub(crate) upper: Option<i128>,
}

/// Rows that all hold, and choices of rows of which one holds.
#[derive(Clone, Default, Debug)]
pub(crate) struct Program {
    pub(crate) rows: Vec<Row>,
    pub(crate) choices: Vec<Vec<Row>>,
}

/// Whether a program has an integer point.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// It has none.
    Empty,
    /// It has this one: values by column. Missing ones do not matter.
    Point(Vec<i128>),
    /// Neither is shown.
    Unknown,
}

/// Why a system is not solved further.
enum Stop {
    /// It has no point.
    Empty,
    /// An overflow, or no work is left.
    GivenUp,
}

type Result<T> = std::result::Result<T, Stop>;

/// `left * a + right * b`, without terms that cancel.
pub(crate) fn combination(
    left: &[(u32, i128)],
    a: i128,
    right: &[(u32, i128)],
    b: i128,
) -> Option<Terms> {
    let mut terms = Terms::with_capacity(left.len() + right.len());
    let (mut i, mut j) = (0, 0);
    while i < left.len() || j < right.len() {
        let column = match (left.get(i), right.get(j)) {
            (Some(l), Some(r)) => l.0.min(r.0),
            (Some(l), None) => l.0,
            (None, Some(r)) => r.0,
            (None, None) => break,
        };
        let mut sum = 0_i128;
        if let Some(&(_, value)) = left.get(i).filter(|it| it.0 == column) {
            sum = sum.checked_add(value.checked_mul(a)?)?;
            i += 1;
        }
        if let Some(&(_, value)) = right.get(j).filter(|it| it.0 == column) {
            sum = sum.checked_add(value.checked_mul(b)?)?;
            j += 1;
        }
        if sum != 0 {
            terms.push((column, small(Some(sum)).ok()?));
        }
    }
    Some(terms)
}

/// The number, unless it is missing or too large.
fn small(value: Option<i128>) -> Result<i128> {
    value.filter(|value| value.unsigned_abs() < LIMIT).ok_or(Stop::GivenUp)
}

/// `end * factor + offset`, where there is an end.
fn moved(end: Option<i128>, factor: i128, offset: i128) -> Result<Option<i128>> {
    end.map(|end| small(end.checked_mul(factor).and_then(|it| it.checked_add(offset)))).transpose()
}

/// The sum of two ends, where there are two.
fn sum(lhs: Option<i128>, rhs: Option<i128>) -> Result<Option<i128>> {
    lhs.zip(rhs).map(|(lhs, rhs)| small(lhs.checked_add(rhs))).transpose()
}

fn coefficient(terms: &[(u32, i128)], column: u32) -> i128 {
    terms.binary_search_by_key(&column, |term| term.0).map_or(0, |place| terms[place].1)
}

/// How an unknown follows from those that were eliminated later.
#[derive(Clone, Debug)]
enum Eliminated {
    /// It is `terms + constant`, which may contain it: with the value that it had later.
    Value { column: u32, terms: Terms, constant: i128 },
    /// It is any number that these rows allow.
    Between { column: u32, rows: Vec<Row> },
}

/// Whether an elimination has to be exact.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Shadow {
    /// Every point extends to one of the system.
    Exact,
    /// Only points over the rationals do, as far as divisibility says nothing.
    Real,
}

/// Both ends of each sum, whose coefficients have no common factor, the first one positive.
#[derive(Clone, Default)]
struct System {
    rows: BTreeMap<Terms, (Option<i128>, Option<i128>)>,
    eliminated: Vec<Eliminated>,
}

/// What is open in the search.
enum Task {
    /// This system, with the first so many choices.
    System(System, usize),
    /// This system with one of these rows, and the first so many choices.
    Alternatives(System, Vec<Row>, usize),
}

impl Program {
    /// An integer point, or that there is none. `work` is the number of terms that may still be
    /// touched; the question uses some of it up.
    pub(crate) fn solve(&self, work: &mut usize) -> Answer {
        let mut first = System::default();
        for row in &self.rows {
            match first.add(row.clone()) {
                Ok(()) => {}
                Err(Stop::Empty) => return Answer::Empty,
                Err(Stop::GivenUp) => return Answer::Unknown,
            }
        }
        let mut open = vec![Task::System(first, self.choices.len())];
        let mut is_complete = true;
        while let Some(task) = open.pop() {
            match self.step(task, &mut open, work) {
                Ok(ControlFlow::Break(point)) => return Answer::Point(point),
                Ok(ControlFlow::Continue(())) | Err(Stop::Empty) => {}
                Err(Stop::GivenUp) => {
                    if *work == 0 {
                        return Answer::Unknown;
                    }
                    is_complete = false;
                }
            }
        }
        if is_complete { Answer::Empty } else { Answer::Unknown }
    }

    /// Does one task, or puts those that it comes down to on the stack. Breaks with a point.
    fn step(
        &self,
        task: Task,
        open: &mut Vec<Task>,
        work: &mut usize,
    ) -> Result<ControlFlow<Vec<i128>>> {
        match task {
            Task::Alternatives(system, mut rows, num_choices) => {
                let Some(row) = rows.pop() else { return Ok(ControlFlow::Continue(())) };
                let mut next = system.clone();
                spend(work, next.size())?;
                if !rows.is_empty() {
                    open.push(Task::Alternatives(system, rows, num_choices));
                }
                next.add(row)?;
                open.push(Task::System(next, num_choices));
            }
            Task::System(system, num_choices) if 0 < num_choices => {
                system.is_possible(work)?;
                let rows = self.choices[num_choices - 1].clone();
                open.push(Task::Alternatives(system, rows, num_choices - 1));
            }
            Task::System(mut system, _) => {
                let Some(column) = system.reduce(Shadow::Exact, work)? else {
                    return Ok(ControlFlow::Break(system.point()?));
                };
                system.is_possible(work)?;
                open.push(Task::Alternatives(system.clone(), system.splinters(column)?, 0));
                match system.project(column, true, work) {
                    Ok(()) => open.push(Task::System(system, 0)),
                    Err(Stop::Empty) => {}
                    Err(Stop::GivenUp) => return Err(Stop::GivenUp),
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Uses up some of the work.
fn spend(work: &mut usize, num_terms: usize) -> Result<()> {
    *work = work.saturating_sub(num_terms + 1);
    if *work == 0 { Err(Stop::GivenUp) } else { Ok(()) }
}

impl System {
    /// The number of terms.
    fn size(&self) -> usize {
        self.rows.keys().map(Vec::len).sum()
    }

    /// Adds a row, with ends rounded to what the sum can be.
    fn add(&mut self, Row { mut terms, mut lower, mut upper }: Row) -> Result<()> {
        let Some(&(_, leading)) = terms.first() else {
            let holds = lower.is_none_or(|lower| lower <= 0) && upper.is_none_or(|it| 0 <= it);
            return if holds { Ok(()) } else { Err(Stop::Empty) };
        };
        if lower.is_none() && upper.is_none() {
            return Ok(());
        }
        let common = terms.iter().fold(0, |common, term| gcd_wide(common, term.1.unsigned_abs()));
        let common = small(i128::try_from(common).ok())?;
        if leading < 0 {
            for (_, value) in &mut terms {
                *value = -*value;
            }
            (lower, upper) = (moved(upper, -1, 0)?, moved(lower, -1, 0)?);
        }
        if 1 < common {
            for (_, value) in &mut terms {
                *value /= common;
            }
            lower = lower.map(|lower| ceil_div_wide(lower, common));
            upper = upper.map(|upper| floor_div_wide(upper, common));
        }
        let (least, most) = self.rows.entry(terms).or_default();
        *least = (*least).max(lower);
        *most = match (*most, upper) {
            (Some(most), Some(upper)) => Some(most.min(upper)),
            (most, upper) => most.or(upper),
        };
        match (*least, *most) {
            (Some(least), Some(most)) if most < least => Err(Stop::Empty),
            _ => Ok(()),
        }
    }

    /// Stops where the real shadow shows that there is no point. Takes a quarter of the work at most.
    fn is_possible(&self, work: &mut usize) -> Result<()> {
        let share = *work / 4;
        let mut left = share;
        let found = self.clone().reduce(Shadow::Real, &mut left);
        spend(work, share - left)?;
        match found {
            Err(Stop::Empty) => Err(Stop::Empty),
            Ok(_) | Err(Stop::GivenUp) => Ok(()),
        }
    }

    /// Eliminates unknowns as long as that is exact, or over the rationals until none is left. The
    /// unknown that is to be eliminated next, if there is one.
    fn reduce(&mut self, shadow: Shadow, work: &mut usize) -> Result<Option<u32>> {
        while !self.rows.is_empty() {
            spend(work, self.size())?;
            let equation = self
                .rows
                .iter()
                .filter(|(_, (lower, upper))| lower.is_some() && lower == upper)
                .min_by_key(|(terms, _)| {
                    let least = terms.iter().map(|term| term.1.unsigned_abs()).min();
                    (least, terms.len())
                });
            if let Some((terms, &(Some(value), _))) = equation {
                let terms = terms.clone();
                self.solve_equation(&terms, value, work)?;
                continue;
            }
            let (column, is_exact) = self.cheapest();
            if shadow == Shadow::Exact && !is_exact {
                return Ok(Some(column));
            }
            self.project(column, false, work)?;
        }
        Ok(None)
    }

    /// Eliminates an unknown of the equation `terms == value`, or makes its coefficients smaller.
    fn solve_equation(
        &mut self,
        terms: &[(u32, i128)],
        value: i128,
        work: &mut usize,
    ) -> Result<()> {
        let Some(&(column, factor)) = terms.iter().min_by_key(|term| term.1.unsigned_abs()) else {
            return Ok(());
        };
        let others = terms.iter().filter(|term| term.0 != column);
        if factor.unsigned_abs() == 1 {
            self.rows.remove(terms);
            let terms: Terms = others.map(|&(other, by)| (other, -by * factor)).collect();
            return self.substitute(column, terms, value * factor, work);
        }
        // With x + sum of q_i*x_i, for the nearest quotients q_i, as the new unknown instead of x, the
        // other coefficients are remainders: at most half as large as that of x.
        let mut new: Terms = others
            .filter_map(|&(other, by)| {
                let quotient = floor_div_wide(2 * by + factor, 2 * factor);
                (quotient != 0).then_some((other, -quotient))
            })
            .collect();
        let place = new.partition_point(|term| term.0 < column);
        new.insert(place, (column, 1));
        self.substitute(column, new, 0, work)
    }

    /// Replaces an unknown by `terms + constant`.
    fn substitute(
        &mut self,
        column: u32,
        terms: Terms,
        constant: i128,
        work: &mut usize,
    ) -> Result<()> {
        for (mut row, factor) in self.take(column) {
            row.terms.retain(|term| term.0 != column);
            spend(work, row.terms.len() + terms.len())?;
            let new = combination(&row.terms, 1, &terms, factor).ok_or(Stop::GivenUp)?;
            let offset = small(constant.checked_mul(-factor))?;
            let (lower, upper) = (moved(row.lower, 1, offset)?, moved(row.upper, 1, offset)?);
            self.add(Row { terms: new, lower, upper })?;
        }
        self.eliminated.push(Eliminated::Value { column, terms, constant });
        Ok(())
    }

    /// Removes the rows with an unknown, and returns them with its coefficients.
    fn take(&mut self, column: u32) -> Vec<(Row, i128)> {
        let taken = self.rows.extract_if(.., |terms, _| coefficient(terms, column) != 0);
        taken
            .map(|(terms, (lower, upper))| {
                let factor = coefficient(&terms, column);
                (Row { terms, lower, upper }, factor)
            })
            .collect()
    }

    /// The rows with an unknown, its coefficient positive.
    fn about(&self, column: u32) -> Result<Vec<(Row, i128)>> {
        let mut rows = Vec::new();
        for (terms, &(lower, upper)) in &self.rows {
            let factor = coefficient(terms, column);
            if 0 < factor {
                rows.push((Row { terms: terms.clone(), lower, upper }, factor));
            } else if factor < 0 {
                let terms = terms.iter().map(|&(column, value)| (column, -value)).collect();
                let (lower, upper) = (moved(upper, -1, 0)?, moved(lower, -1, 0)?);
                rows.push((Row { terms, lower, upper }, -factor));
            }
        }
        Ok(rows)
    }

    /// The unknown whose elimination leaves the fewest rows, one with an exact elimination if there
    /// is any, and whether it is.
    fn cheapest(&self) -> (u32, bool) {
        #[derive(Default)]
        struct Count {
            rows: usize,
            /// Those that bound it from below, and from above.
            lowers: usize,
            uppers: usize,
            /// Those among them in which it has a factor, and those that do both.
            multiple_lowers: usize,
            multiple_uppers: usize,
            multiple_both: usize,
            /// Those that are so narrow that they may miss all multiples of the factor.
            narrow: usize,
            largest: u128,
        }
        let mut counts: BTreeMap<u32, Count> = BTreeMap::new();
        for (terms, &(lower, upper)) in &self.rows {
            let width = lower.zip(upper).map(|(lower, upper)| (upper - lower).unsigned_abs());
            for &(column, factor) in terms {
                let count = counts.entry(column).or_default();
                let (below, above) = if 0 < factor { (lower, upper) } else { (upper, lower) };
                let factor = factor.unsigned_abs();
                let is_multiple = factor != 1;
                count.rows += 1;
                count.lowers += usize::from(below.is_some());
                count.uppers += usize::from(above.is_some());
                count.multiple_lowers += usize::from(below.is_some() && is_multiple);
                count.multiple_uppers += usize::from(above.is_some() && is_multiple);
                count.multiple_both += usize::from(width.is_some() && is_multiple);
                count.narrow += usize::from(width.is_some_and(|width| width < factor - 1));
                count.largest = count.largest.max(factor);
            }
        }
        let rank = |count: &Count| {
            // In each pair of a lower and an upper bound, one has no factor, or both are one row.
            let is_exact = count.narrow == 0
                && count.multiple_lowers * count.multiple_uppers == count.multiple_both;
            let is_one_sided = count.lowers == 0 || count.uppers == 0;
            let pairs = if is_one_sided { 0 } else { count.rows * (count.rows - 1) / 2 };
            let growth = pairs.saturating_sub(count.rows);
            (!is_exact, if is_exact { 0 } else { count.largest }, growth)
        };
        let best = counts.iter().min_by_key(|&(&column, count)| (rank(count), column));
        best.map_or((0, true), |(&column, count)| (column, !rank(count).0))
    }

    /// Eliminates an unknown: what is left is the real shadow, or the dark one.
    fn project(&mut self, column: u32, dark: bool, work: &mut usize) -> Result<()> {
        let rows = self.about(column)?;
        self.take(column);
        let is_one_sided = rows.iter().all(|(row, _)| row.lower.is_none())
            || rows.iter().all(|(row, _)| row.upper.is_none());
        for (place, (row, a)) in rows.iter().enumerate().filter(|_| !is_one_sided) {
            // A multiple of `a` between the ends.
            if dark
                && let Some((lower, upper)) = row.lower.zip(row.upper)
                && upper - lower < a - 1
            {
                return Err(Stop::Empty);
            }
            for (other, b) in &rows[place + 1..] {
                spend(work, row.terms.len() + other.terms.len())?;
                let terms = combination(&row.terms, *b, &other.terms, -a).ok_or(Stop::GivenUp)?;
                let margin = if dark { small((a - 1).checked_mul(b - 1))? } else { 0 };
                let lower = sum(moved(row.lower, *b, margin)?, moved(other.upper, -a, 0)?)?;
                let upper = sum(moved(row.upper, *b, -margin)?, moved(other.lower, -a, 0)?)?;
                self.add(Row { terms, lower, upper })?;
            }
        }
        let rows = rows.into_iter().map(|(row, _)| row).collect();
        self.eliminated.push(Eliminated::Between { column, rows });
        Ok(())
    }

    /// Equations, one of which holds at each point outside of the dark shadow: the unknown is near
    /// its lower bounds or, where that makes fewer, near its upper ones, or it has one of its values.
    fn splinters(&self, column: u32) -> Result<Vec<Row>> {
        let rows = self.about(column)?;
        let sides = [|row: &Row| (row.lower, row.upper), |row: &Row| (row.upper, row.lower)];
        let equation = |terms: &Terms, value| Row {
            terms: terms.clone(),
            lower: Some(value),
            upper: Some(value),
        };
        let mut fewest: Option<(i128, Vec<Row>)> = None;
        for (row, _) in rows.iter().filter(|(row, _)| row.terms.len() == 1) {
            let Some((lower, upper)) = row.lower.zip(row.upper) else { continue };
            if upper - lower < MAX_SPLINTERS {
                let values = (lower..=upper).map(|value| equation(&row.terms, value));
                fewest = Some((upper - lower + 1, values.collect()));
            }
        }
        for (side, sign) in sides.into_iter().zip([1, -1]) {
            // b*x >= e + i and a*x <= f leave the dark shadow only where b*x <= e + (a*b - a - b)/a.
            let opposite = rows.iter().filter(|(row, _)| side(row).1.is_some());
            let largest = opposite.map(|(_, factor)| *factor).max().unwrap_or(1);
            let (mut total, mut splinters) = (0_i128, Vec::new());
            for (row, b) in &rows {
                let (Some(near), far) = side(row) else { continue };
                let product = small(largest.checked_mul(*b))?;
                let mut last = floor_div_wide(product - largest - b, largest);
                if let Some(far) = far {
                    last = last.min((far - near).abs());
                }
                total = small(total.checked_add((last + 1).max(0)))?;
                if total <= MAX_SPLINTERS {
                    for i in 0..=last {
                        let value = Some(near + sign * i);
                        splinters.push(Row {
                            terms: row.terms.clone(),
                            lower: value,
                            upper: value,
                        });
                    }
                }
            }
            if fewest.as_ref().is_none_or(|&(least, _)| total < least) {
                fewest = Some((total, splinters));
            }
        }
        match fewest {
            Some((total, splinters)) if total <= MAX_SPLINTERS => Ok(splinters),
            _ => Err(Stop::GivenUp),
        }
    }

    /// The values of all unknowns, once all have been eliminated.
    fn point(&self) -> Result<Vec<i128>> {
        let columns = self.eliminated.iter().map(|it| match it {
            Eliminated::Value { column, .. } | Eliminated::Between { column, .. } => *column,
        });
        let mentioned = self.eliminated.iter().flat_map(|it| match it {
            Eliminated::Value { terms, .. } => terms.iter().map(|term| term.0).max(),
            Eliminated::Between { rows, .. } => {
                rows.iter().flat_map(|row| row.terms.iter().map(|term| term.0)).max()
            }
        });
        let num_columns = columns.chain(mentioned).max().map_or(0, |last| last as usize + 1);
        let mut values = vec![0_i128; num_columns];
        let value_of = |terms: &[(u32, i128)], values: &[i128]| {
            let mut products =
                terms.iter().map(|&(column, by)| by.checked_mul(values[column as usize]));
            small(products.try_fold(0_i128, |sum, product| sum.checked_add(product?)))
        };
        for eliminated in self.eliminated.iter().rev() {
            match eliminated {
                Eliminated::Value { column, terms, constant } => {
                    let value = value_of(terms, &values)?.checked_add(*constant);
                    values[*column as usize] = small(value)?;
                }
                Eliminated::Between { column, rows } => {
                    // Its own terms add nothing while it is zero.
                    values[*column as usize] = 0;
                    let (mut least, mut most) = (None::<i128>, None::<i128>);
                    for row in rows {
                        let factor = coefficient(&row.terms, *column);
                        let rest = value_of(&row.terms, &values)?;
                        if let Some(lower) = moved(row.lower, 1, -rest)? {
                            least = least.max(Some(ceil_div_wide(lower, factor)));
                        }
                        if let Some(upper) = moved(row.upper, 1, -rest)? {
                            let upper = floor_div_wide(upper, factor);
                            most = Some(most.map_or(upper, |most| most.min(upper)));
                        }
                    }
                    values[*column as usize] = least.or(most).unwrap_or(0);
                }
            }
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NUM_COLUMNS: usize = 3;
    const WORK: usize = 1 << 22;

    /// A row with a coefficient for each column.
    fn row(coefficients: &[i128], lower: Option<i128>, upper: Option<i128>) -> Row {
        let terms = (0..).zip(coefficients.iter().copied()).filter(|term| term.1 != 0).collect();
        Row { terms, lower, upper }
    }

    fn value(row: &Row, point: &[i128]) -> i128 {
        row.terms.iter().map(|&(column, by)| by * point.get(column as usize).unwrap_or(&0)).sum()
    }

    fn holds(row: &Row, point: &[i128]) -> bool {
        let value = value(row, point);
        row.lower.is_none_or(|lower| lower <= value) && row.upper.is_none_or(|it| value <= it)
    }

    fn satisfies(program: &Program, point: &[i128]) -> bool {
        program.rows.iter().all(|row| holds(row, point))
            && program.choices.iter().all(|rows| rows.iter().any(|row| holds(row, point)))
    }

    fn in_box(least: i128, most: i128) -> Vec<Row> {
        let side = |column| row(&unit(column), Some(least), Some(most));
        (0..NUM_COLUMNS).map(side).collect()
    }

    fn unit(column: usize) -> [i128; NUM_COLUMNS] {
        std::array::from_fn(|other| i128::from(other == column))
    }

    fn any_coefficients() -> impl Strategy<Value = Vec<i128>> {
        prop::collection::vec(prop_oneof![2 => Just(0_i128), 3 => -12..=12_i128], NUM_COLUMNS)
    }

    fn any_row() -> impl Strategy<Value = Row> {
        (any_coefficients(), -30..30_i128, 0..9_i128, 0..8_u32).prop_map(
            |(coefficients, lower, width, open)| {
                let lower_end = (open != 0).then_some(lower);
                row(&coefficients, lower_end, (open != 1).then_some(lower + width))
            },
        )
    }

    fn any_program() -> impl Strategy<Value = Program> {
        let rows = prop::collection::vec(any_row(), 0..5);
        let choices = prop::collection::vec(prop::collection::vec(any_row(), 1..3), 0..3);
        (rows, choices).prop_map(|(rows, choices)| Program { rows, choices })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn small_boxes_agree_with_enumeration(mut program in any_program()) {
            program.rows.extend(in_box(-6, 6));
            let side = || -6..=6_i128;
            let points = side().flat_map(|x| side().flat_map(move |y| side().map(move |z| [x, y, z])));
            let is_inhabited = points.into_iter().any(|point| satisfies(&program, &point));
            match program.solve(&mut { WORK }) {
                Answer::Empty => prop_assert!(!is_inhabited),
                Answer::Point(point) => prop_assert!(satisfies(&program, &point), "{point:?}"),
                Answer::Unknown => prop_assert!(false, "not decided"),
            }
        }

        #[test]
        fn planted_points_are_found(
            mut program in any_program(),
            planted in prop::collection::vec(-1_000_000..1_000_000_i128, NUM_COLUMNS),
        ) {
            let choices = program.choices.iter_mut().flatten();
            for row in program.rows.iter_mut().chain(choices) {
                let value = value(row, &planted);
                row.lower = row.lower.map(|lower| value - lower.rem_euclid(5));
                row.upper = row.upper.map(|upper| value + upper.rem_euclid(5));
            }
            program.rows.extend(in_box(-1_000_000, 1_000_000));
            match program.solve(&mut { WORK }) {
                Answer::Empty => prop_assert!(false, "the planted point is missed"),
                Answer::Point(point) => prop_assert!(satisfies(&program, &point), "{point:?}"),
                Answer::Unknown => prop_assert!(false, "not decided"),
            }
        }

        #[test]
        fn planted_contradictions_are_found(
            mut program in any_program(),
            [first, second] in [any_coefficients(), any_coefficients()],
            [modulus, times, value] in [2..9_i128, -5..5_i128, -1_000_000..1_000_000_i128],
            remainder in 1..9_i128,
        ) {
            prop_assume!(remainder % modulus != 0);
            // second*x == value, and modulus*first*x + times*second*x == remainder + times*value.
            let hidden: Vec<i128> =
                first.iter().zip(&second).map(|(a, b)| modulus * a + times * b).collect();
            let sum = Some(remainder + times * value);
            program.rows.push(row(&second, Some(value), Some(value)));
            program.rows.push(row(&hidden, sum, sum));
            program.rows.extend(in_box(-1_000_000, 1_000_000));
            prop_assert_eq!(program.solve(&mut { WORK }), Answer::Empty);
        }
    }

    #[test]
    fn splinters_are_looked_at() {
        // Pugh's example 2: 27 <= 11x + 13y <= 45, -10 <= 7x - 9y <= 4 has rational points only.
        let rows = vec![row(&[11, 13], Some(27), Some(45)), row(&[7, -9], Some(-10), Some(4))];
        let program = Program { rows, choices: Vec::new() };
        assert_eq!(program.solve(&mut { WORK }), Answer::Empty);
    }

    #[test]
    fn without_work_nothing_is_known() {
        let program = Program { rows: in_box(0, 3), choices: Vec::new() };
        assert_eq!(program.solve(&mut 1), Answer::Unknown);
    }

    #[test]
    fn large_numbers_are_no_contradiction() {
        let large = i128::from(i64::MAX);
        let rows = vec![
            row(&[large, 1, 0], Some(large), None),
            row(&[1, large, 3], Some(-3), Some(3)),
            row(&[large, large - 1, large - 2], Some(7), Some(7)),
        ];
        let program = Program { rows, choices: Vec::new() };
        if let Answer::Point(point) = program.solve(&mut { WORK }) {
            assert!(satisfies(&program, &point));
        }
    }
}
