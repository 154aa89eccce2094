//! Random maps against enumeration, many of them: `TC_RANDOM_MAPS` says how many (`make random-maps`
//! takes a million), `TC_FIRST_SEED` from which on.
//!
//! No operation may change a value or the domain, no range may miss a value, and what is claimed
//! (exact, empty, equal, different, inverse) has to be so. The oracle evaluates the expressions as
//! they were drawn, without the library.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tc_ir::{
    Context, Difference, Emptiness, Equality, IndexingMap, Interval, InverseError, MapEvaluator,
    Values, Var, compose, compose_simplified,
};

mod injective;
mod maps;

use injective::{Step, any_plain_step, any_step, any_symbolic_chain, chain, symbolic_chain};
use maps::{Sketch, Tree, any_sketch};

/// What constants are less than, where proofs do not leave 64 bits.
const LARGE: u64 = 1 << 31;

/// The most points of a domain that are looked at, evenly over its box.
const MAX_POINTS: usize = 200;
/// The most points of a domain that is enumerated in full.
const MAX_FULL: usize = 2000;
/// The most points that are taken of a map that another is composed with.
const MAX_OTHERS: usize = 5;

/// Points of the box around the domain of a map.
struct Points {
    /// The numbers of dimension variables and of range variables.
    kinds: [usize; 2],
    count: usize,
    /// The values of each variable.
    columns: Vec<Vec<i64>>,
}

impl Points {
    /// All points if they are at most `most`, or else at most `some`, evenly, and which of these it
    /// is.
    fn of(ctx: &Context, map: &IndexingMap, most: usize, some: usize) -> (Self, bool) {
        let all = map.intervals(ctx);
        let intervals: Vec<Interval> = map.vars().map(|(var, _)| all.of(var)).collect();
        let sizes: Vec<u64> = intervals.iter().map(|it| it.num_members().unwrap_or(0)).collect();
        let total: u64 = sizes.iter().product();
        let is_full = total <= most as u64;
        let step = if is_full { 1 } else { total.div_ceil(some as u64) };
        let step = usize::try_from(step).expect("small boxes");
        let mut columns = vec![Vec::new(); intervals.len()];
        for mut number in (0..total).step_by(step) {
            for (column, (interval, &size)) in
                columns.iter_mut().zip(intervals.iter().zip(&sizes)).rev()
            {
                column.push(interval.lo + i64::try_from(number % size).expect("small"));
                number /= size;
            }
        }
        let count = usize::try_from(total).expect("small boxes").div_ceil(step);
        (Self { kinds: [map.dims.len(), map.ranges.len()], count, columns }, is_full)
    }

    fn column(&self, var: Var) -> &[i64] {
        let place = match var {
            Var::Dim(i) => i as usize,
            Var::Range(i) => self.kinds[0] + i as usize,
            Var::Runtime(i) => self.kinds[0] + self.kinds[1] + i as usize,
        };
        &self.columns[place]
    }

    /// Goes to a point.
    fn go_to(&self, number: usize, at: &mut Values) {
        let (dims, rest) = self.columns.split_at(self.kinds[0]);
        let (ranges, runtimes) = rest.split_at(self.kinds[1]);
        for (values, columns) in
            [(&mut at.dims, dims), (&mut at.ranges, ranges), (&mut at.runtimes, runtimes)]
        {
            values.clear();
            values.extend(columns.iter().map(|column| column[number]));
        }
    }

    /// Does something at each point.
    fn each(&self, mut check: impl FnMut(usize, &Values) -> Checked) -> Checked {
        let mut at = Values::default();
        for number in 0..self.count {
            self.go_to(number, &mut at);
            check(number, &at)?;
        }
        Ok(())
    }
}

/// The results at the last point of an evaluator.
fn results(evaluator: &MapEvaluator) -> impl Iterator<Item = Option<i64>> {
    evaluator.results().map(|number| evaluator.result(number).ok())
}

/// A map with points of it: whether each is inside by the oracle, and the values of the results.
struct Drawn {
    map: IndexingMap,
    points: Points,
    /// `None`: a constraint has no value there.
    inside: Vec<Option<bool>>,
    /// By result, then by point.
    results: Vec<Vec<Option<i64>>>,
    is_full: bool,
}

impl Drawn {
    /// With all points if they are at most `most`, or else with at most `some`.
    fn new(ctx: &Context, sketch: &Sketch, most: usize, some: usize) -> Self {
        let map = sketch.build(ctx);
        let (points, is_full) = Points::of(ctx, &map, most, some);
        let values_of = |var| points.column(var).to_vec();
        let values = |tree: &Tree| tree.values(points.count, &values_of);
        let results = sketch.results.iter().map(values).collect();
        Self { inside: inside(sketch, &points), results, map, points, is_full }
    }

    /// The numbers of the points that are inside.
    fn inside(&self) -> impl Iterator<Item = usize> {
        (0..self.points.count).filter(|&number| self.inside[number] == Some(true))
    }

    /// Whether the results of an evaluator are those at the point with this number.
    fn agrees(&self, number: usize, evaluator: &MapEvaluator) -> bool {
        let mut pairs = self.results.iter().zip(results(evaluator));
        pairs.all(|(old, new)| old[number].is_none() || old[number] == new)
    }
}

/// Which points are in the domain of a sketch; `None` where a constraint has no value.
fn inside(sketch: &Sketch, points: &Points) -> Vec<Option<bool>> {
    let mut inside = vec![Some(true); points.count];
    let dims = (0..).map(Var::Dim).zip(&sketch.dims);
    let ranges = (0..).map(Var::Range).zip(&sketch.ranges);
    for (var, &((lo, hi), symbolic)) in dims.chain(ranges) {
        for (number, inside) in inside.iter_mut().enumerate() {
            let size = points.column(Var::Runtime(0))[number];
            let hi = if symbolic { size + hi % 3 } else { hi };
            *inside = inside.map(|it| it & (lo..=hi).contains(&points.column(var)[number]));
        }
    }
    for (var, &(lo, hi)) in (0..).map(Var::Runtime).zip(&sketch.runtimes) {
        for (number, inside) in inside.iter_mut().enumerate() {
            *inside = inside.map(|it| it & (lo..=hi).contains(&points.column(var)[number]));
        }
    }
    for (tree, (lo, hi)) in &sketch.constraints {
        let values = tree.values(points.count, &|var| points.column(var).to_vec());
        for (inside, value) in inside.iter_mut().zip(values) {
            *inside = (|| Some((*inside)? & Interval::new(*lo, *hi).contains(value?)))();
        }
    }
    inside
}

type Checked = Result<(), String>;

fn ensure(holds: bool, message: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(message()) }
}

/// `found` has the domain and the values of `drawn`.
fn same(ctx: &Context, drawn: &Drawn, found: &IndexingMap, what: &str) -> Checked {
    let text = || format!("{what}: {} => {}", drawn.map.display(ctx), found.display(ctx));
    found.verify(ctx).map_err(|error| format!("{}: {error}", text()))?;
    let mut evaluator = MapEvaluator::new(ctx, found);
    drawn.points.each(|number, at| {
        let Some(inside) = drawn.inside[number] else { return Ok(()) };
        let now = evaluator.contains(at).unwrap_or(false);
        ensure(now == inside, || format!("{}: {at:?} inside {inside}", text()))?;
        ensure(!inside || drawn.agrees(number, &evaluator), || format!("{}: {at:?}", text()))
    })
}

fn check_simplify(ctx: &Context, drawn: &Drawn) -> Checked {
    let mut simplified = drawn.map.clone();
    simplified.simplify(ctx);
    same(ctx, drawn, &simplified, "simplify")?;
    let mut again = simplified.clone();
    ensure(!again.simplify(ctx), || {
        format!("no fixpoint: {} => {}", simplified.display(ctx), again.display(ctx))
    })?;
    if !simplified.is_known_empty(ctx) {
        let printed = simplified.display(ctx).to_string();
        let parsed =
            IndexingMap::parse(ctx, &printed).map_err(|error| format!("{printed}: {error}"))?;
        ensure(parsed == simplified, || format!("is not what it is printed as: {printed}"))?;
    }
    for (var, _) in drawn.map.vars() {
        let (old, new) = (drawn.map.interval(ctx, var), simplified.interval(ctx, var));
        ensure(old.covers(new), || format!("{} has new points", simplified.display(ctx)))?;
    }
    for (&old, &new) in drawn.map.results.iter().zip(&simplified.results) {
        ensure(ctx.cost(new) <= ctx.cost(old), || format!("longer: {}", simplified.display(ctx)))?;
    }
    let mut canonical = drawn.map.clone();
    for result in &mut canonical.results {
        *result = ctx.canonicalize(*result);
        let again = ctx.canonicalize(*result);
        ensure(again == *result, || {
            format!("canonicalize: {} => {}", ctx.display(*result), ctx.display(again))
        })?;
    }
    same(ctx, drawn, &canonical, "canonicalize")
}

fn check_range(ctx: &Context, drawn: &Drawn) -> Checked {
    for (number, &result) in drawn.map.results.iter().enumerate() {
        let range = drawn.map.range_of(ctx, result);
        let mut hull: Option<(i64, i64)> = None;
        for point in drawn.inside() {
            if let Some(value) = drawn.results[number][point] {
                let (lo, hi) = hull.unwrap_or((value, value));
                hull = Some((lo.min(value), hi.max(value)));
                ensure(range.interval.contains(value), || {
                    format!("{} is no value of {}", value, drawn.map.display(ctx))
                })?;
            }
        }
        // Where the sketch overflows on the way, the library may know a value.
        let mut points = drawn.inside.iter().zip(&drawn.results[number]);
        let defined = points
            .all(|(&inside, result)| inside.is_some_and(|inside| !inside || result.is_some()));
        if range.is_exact && drawn.is_full && defined {
            let (lo, hi) = hull.unwrap_or((0, -1));
            let interval = Interval::new(lo, hi);
            let agrees =
                range.interval == interval || range.interval.is_empty() && interval.is_empty();
            ensure(agrees, || {
                format!("{}: {} is not {interval}", drawn.map.display(ctx), range.interval)
            })?;
        }
    }
    Ok(())
}

fn check_emptiness(ctx: &Context, drawn: &Drawn) -> Checked {
    let text = || drawn.map.display(ctx);
    match drawn.map.emptiness(ctx) {
        Emptiness::Empty => {
            ensure(drawn.inside().next().is_none(), || format!("{} is not empty", text()))
        }
        Emptiness::Inhabited(at) => {
            let inside = drawn.map.contains(ctx, &at.dims, &at.ranges, &at.runtimes);
            ensure(inside == Ok(true), || format!("{at:?} is not in {}", text()))
        }
        Emptiness::Unknown => Ok(()),
    }
}

fn check_variables(ctx: &Context, drawn: &Drawn) -> Checked {
    let mut converted = drawn.map.clone();
    converted.convert_symbols_to_dimensions(ctx);
    let mut evaluator = MapEvaluator::new(ctx, &converted);
    drawn.points.each(|number, at| {
        let Some(inside) = drawn.inside[number] else { return Ok(()) };
        let at =
            Values { dims: [&at.dims[..], &at.ranges, &at.runtimes].concat(), ..Values::default() };
        let now = evaluator.contains(&at).unwrap_or(false);
        ensure(now == inside && (!inside || drawn.agrees(number, &evaluator)), || {
            format!("convert: {}", converted.display(ctx))
        })
    })?;
    check_removal(ctx, drawn)?;
    let mut rescaled = drawn.map.clone();
    if !rescaled.rescale_symbols(ctx) || !drawn.is_full || drawn.inside.contains(&None) {
        return Ok(());
    }
    // What the map says of each element, however its range variables are counted.
    let meaning = |map: &IndexingMap, points: &Points| {
        let mut evaluator = MapEvaluator::new(ctx, map);
        let mut found = Vec::new();
        let mut at = Values::default();
        for number in 0..points.count {
            points.go_to(number, &mut at);
            if evaluator.contains(&at) == Ok(true) {
                let values: Vec<_> = results(&evaluator).collect();
                found.push((at.dims.clone(), at.runtimes.clone(), values));
            }
        }
        found.sort();
        found
    };
    let before = meaning(&drawn.map, &drawn.points);
    let after = meaning(&rescaled, &Points::of(ctx, &rescaled, usize::MAX, 0).0);
    ensure(before == after, || {
        format!("rescale: {} => {}", drawn.map.display(ctx), rescaled.display(ctx))
    })
}

/// Without the variables that are removed, the others have the values that they had.
fn check_removal(ctx: &Context, drawn: &Drawn) -> Checked {
    if !drawn.is_full || drawn.inside.contains(&None) {
        return Ok(());
    }
    let mut map = drawn.map.clone();
    let removed = map.remove_unused_vars(ctx);
    let text = || format!("remove: {} => {}", drawn.map.display(ctx), map.display(ctx));
    let kept: Vec<Var> =
        drawn.map.vars().map(|(var, _)| var).filter(|var| !removed.contains(var)).collect();
    map.verify(ctx).map_err(|error| format!("{}: {error}", text()))?;
    let value_in = |points: &Points, number: usize, var: Var| points.column(var)[number];
    let before: BTreeSet<Vec<i64>> = drawn
        .inside()
        .map(|number| kept.iter().map(|&var| value_in(&drawn.points, number, var)).collect())
        .collect();
    let (points, _) = Points::of(ctx, &map, usize::MAX, 0);
    let mut evaluator = MapEvaluator::new(ctx, &map);
    let mut after = BTreeSet::new();
    points.each(|number, at| {
        if evaluator.contains(at) == Ok(true) {
            after.insert(map.vars().map(|(var, _)| value_in(&points, number, var)).collect());
        }
        Ok(())
    })?;
    ensure(before == after, text)
}

fn check_compose(ctx: &Context, drawn: &Drawn, other: &Drawn) -> Checked {
    let mut first = drawn.map.clone();
    let result = first.results[0];
    first.results.resize(2, result);
    let composed = compose(ctx, &first, &other.map).map_err(|error| error.to_string())?;
    let mut simplified = composed.clone();
    simplified.simplify(ctx);
    let at_once = compose_simplified(ctx, &first, &other.map).map_err(|error| error.to_string())?;
    let mut evaluators =
        [&composed, &simplified, &at_once].map(|map| (map, MapEvaluator::new(ctx, map)));
    let [mut of_first, mut of_second] = [&first, &other.map].map(|map| MapEvaluator::new(ctx, map));
    let (mut at, mut own) = (Values::default(), Values::default());
    for number in 0..drawn.points.count.min(40) {
        let Some(in_first) = drawn.inside[number] else { continue };
        drawn.points.go_to(number, &mut at);
        let _ = of_first.contains(&at);
        let middle: Option<Vec<i64>> = results(&of_first).collect();
        let Some(middle) = middle else { continue };
        for number in 0..other.points.count {
            other.points.go_to(number, &mut own);
            let fed = Values { dims: middle.clone(), ..own.clone() };
            let Ok(in_second) = of_second.contains(&fed) else { continue };
            let both = Values {
                dims: at.dims.clone(),
                ranges: [&own.ranges[..], &at.ranges].concat(),
                runtimes: [&own.runtimes[..], &at.runtimes].concat(),
            };
            for (map, evaluator) in &mut evaluators {
                let now = evaluator.contains(&both).unwrap_or(false);
                let text = || format!("compose: {both:?} {}", map.display(ctx));
                ensure(now == (in_first && in_second), text)?;
                let mut pairs = results(&of_second).zip(results(evaluator));
                let agree = pairs.all(|(old, new)| old.is_none() || old == new);
                ensure(!now || agree, text)?;
            }
        }
    }
    Ok(())
}

fn check_equality(ctx: &Context, drawn: &Drawn, other: &Drawn) -> Checked {
    let mut second = other.map.clone();
    second.results.resize(drawn.map.results.len(), second.results[0]);
    let text = || format!("{} and {}", drawn.map.display(ctx), second.display(ctx));
    let mut simplified = drawn.map.clone();
    simplified.simplify(ctx);
    ensure(drawn.map.equality(ctx, &simplified) == Equality::Equal, || {
        format!("{} differs from {}", drawn.map.display(ctx), simplified.display(ctx))
    })?;
    match drawn.map.equality(ctx, &second) {
        Equality::Unknown => Ok(()),
        Equality::Different(Difference::Shape) => Err(format!("shape of {}", text())),
        Equality::Different(Difference::At(at)) => {
            let [first, second] = [&drawn.map, &second].map(|map| {
                let mut evaluator = MapEvaluator::new(ctx, map);
                let inside = evaluator.contains(&at);
                (inside, results(&evaluator).collect::<Vec<_>>())
            });
            ensure(first != second, || format!("{} agree at {at:?}", text()))
        }
        Equality::Equal => {
            let mut evaluator = MapEvaluator::new(ctx, &second);
            drawn.points.each(|number, at| {
                let (Some(inside), Ok(now)) = (drawn.inside[number], evaluator.contains(at)) else {
                    return Ok(());
                };
                let mut pairs = drawn.results.iter().zip(results(&evaluator));
                let agree = pairs
                    .all(|(old, new)| old[number].is_none() || new.is_none() || old[number] == new);
                ensure(inside == now && (!inside || agree), || {
                    format!("{} differ at {at:?}", text())
                })
            })
        }
    }
}

/// Where there is an inverse: it leads from results back to their points, and its domain is the
/// image.
fn check_inverse(ctx: &Context, map: &IndexingMap, inverse: &IndexingMap) -> Checked {
    let text = || format!("inverse: {} => {}", map.display(ctx), inverse.display(ctx));
    let all = |map: &IndexingMap| {
        let bounds = map.intervals(ctx);
        let intervals: Vec<Interval> = map.vars().map(|(var, _)| bounds.of(var)).collect();
        let bounded = intervals.iter().all(|it| it.is_empty() || it.is_bounded());
        let size = intervals.iter().try_fold(1_u64, |size, it| size.checked_mul(it.num_members()?));
        let few = bounded && size.is_some_and(|size| size < 1 << 40);
        few.then(|| Points::of(ctx, map, MAX_FULL, MAX_FULL).0)
    };
    for (from, to, what) in [(map, inverse, "there"), (inverse, map, "back")] {
        let Some(points) = all(from) else { continue };
        let [mut from, mut to] = [from, to].map(|map| MapEvaluator::new(ctx, map));
        let mut image = Values::default();
        points.each(|_, at| {
            if from.contains(at) != Ok(true) {
                return Ok(());
            }
            image.dims.clear();
            image.dims.extend(results(&from).flatten());
            if image.dims.len() != from.results().len() {
                return Ok(());
            }
            image.runtimes.clone_from(&at.runtimes);
            let inside = to.contains(&image);
            ensure(inside == Ok(true), || format!("{} {what} {at:?}: {inside:?}", text()))?;
            // Where a result has no value, the inverse may have one.
            let mut pairs = results(&to).zip(&at.dims);
            ensure(pairs.all(|(round, at)| round.is_none_or(|it| it == *at)), || {
                format!("{} {what} {at:?}", text())
            })
        })?;
    }
    Ok(())
}

fn check_any_inverse(ctx: &Context, drawn: &Drawn) -> Checked {
    let mut map = drawn.map.clone();
    map.ranges.clear();
    map.substitute(ctx, &|var| matches!(var, Var::Range(_)).then(|| ctx.constant(1)));
    // Points where a constraint has no value may join the domain. Without a point, nothing says
    // whether there are such.
    let points = Points::of(ctx, &map, MAX_FULL, MAX_FULL).0;
    let mut evaluator = MapEvaluator::new(ctx, &map);
    let mut has_value = |at: &Values| ensure(evaluator.contains(at).is_ok(), String::new);
    let has_values = points.count != 0 && points.each(|_, at| has_value(at)).is_ok();
    match map.inverse(ctx) {
        Ok(inverse) if has_values => check_inverse(ctx, &map, &inverse),
        _ => Ok(()),
    }
}

/// Whether the inverse of a chain was found; where it has to be invertible in turn, that of the
/// inverse, too.
fn check_chain(ctx: &Context, map: &IndexingMap, twice: bool) -> Result<bool, String> {
    let text = || map.display(ctx);
    let inverse = match map.inverse(ctx) {
        Ok(inverse) => inverse,
        Err(InverseError::Unsolved(_)) => {
            if number("TC_PRINT_UNSOLVED", 0) != 0 {
                println!("{}", text());
            }
            return Ok(false);
        }
        Err(error) => return Err(format!("{}: {error}", text())),
    };
    check_inverse(ctx, map, &inverse)?;
    if !twice {
        return Ok(true);
    }
    let again = match inverse.inverse(ctx) {
        Ok(again) => again,
        Err(InverseError::Unsolved(_)) => return Ok(false),
        Err(error) => return Err(format!("{}: {error}", inverse.display(ctx))),
    };
    let verdict = again.equality(ctx, map);
    if verdict == Equality::Unknown {
        // Forms of many pieces are compared by their values.
        check_inverse(ctx, &inverse, &again)?;
        return Ok(true);
    }
    ensure(verdict == Equality::Equal, || format!("{} => {}", text(), again.display(ctx)))?;
    Ok(true)
}

fn has_small_constants(tree: &Tree) -> bool {
    match tree {
        Tree::Const(value) => value.unsigned_abs() < LARGE,
        Tree::Var(_) => true,
        Tree::Op(_, lhs, rhs) => has_small_constants(lhs) && has_small_constants(rhs),
    }
}

/// What else is in a context changes nothing of what is found: the map on its own, and after another one
/// and its own expressions, the last ones first. Where numbers are large, a proof under symbolic bounds may leave 64
/// bits in one order of facts only, and what it would have shown is not known then.
fn check_context(sketch: &Sketch, other: &Sketch) -> Checked {
    let mut trees = sketch.results.iter().chain(sketch.constraints.iter().map(|(tree, _)| tree));
    if !trees.all(has_small_constants) {
        return Ok(());
    }
    let texts = |ctx: &Context| {
        let mut map = sketch.build(ctx);
        let mut simplified = map.clone();
        simplified.simplify(ctx);
        map.ranges.clear();
        map.substitute(ctx, &|var| matches!(var, Var::Range(_)).then(|| ctx.constant(1)));
        let inverse = map
            .inverse(ctx)
            .map_or_else(|error| error.to_string(), |inverse| inverse.display(ctx).to_string());
        (simplified.display(ctx).to_string(), inverse)
    };
    let used = Context::new();
    other.build(&used).simplify(&used);
    for number in (0..20).rev() {
        used.constant(number);
    }
    let constraints = sketch.constraints.iter().map(|(tree, _)| tree);
    for tree in constraints.chain(sketch.results.iter().rev()) {
        used.canonicalize(tree.build(&used));
    }
    let (alone, after) = (texts(&Context::new()), texts(&used));
    ensure(alone == after, || format!("{alone:?}\n{after:?}"))
}

fn check_all(sketch: &Sketch, other_sketch: &Sketch) -> Checked {
    let ctx = &Context::new();
    let drawn = Drawn::new(ctx, sketch, MAX_FULL, MAX_POINTS);
    let other = Drawn::new(ctx, other_sketch, MAX_OTHERS, MAX_OTHERS);
    check_simplify(ctx, &drawn)?;
    check_range(ctx, &drawn)?;
    check_variables(ctx, &drawn)?;
    check_compose(ctx, &drawn, &other)?;
    // These look at all points of a larger box, which takes longer than all the rest.
    if drawn.is_full {
        check_any_inverse(ctx, &drawn)?;
        check_context(sketch, other_sketch)?;
        check_emptiness(ctx, &drawn)?;
        check_equality(ctx, &drawn, &other)?;
    }
    Ok(())
}

/// A number from the environment.
fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(default)
}

fn count() -> usize {
    number("TC_RANDOM_MAPS", 2000)
}

/// Runs a check on so many random values, on all cores, each with a seed of its own.
fn run<S: Strategy>(
    what: &str,
    count: usize,
    strategy: impl Fn() -> S + Sync,
    check: impl Fn(&S::Value) -> Checked + Sync,
) where
    S::Value: std::fmt::Debug,
{
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let first = number("TC_FIRST_SEED", 0);
    let next = AtomicUsize::new(first);
    let end = first + count;
    let failures: Vec<String> = std::thread::scope(|scope| {
        let worker = || {
            let strategy = strategy();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if end <= seed {
                    return None;
                }
                let mut bytes = [0; 32];
                bytes[..8].copy_from_slice(&seed.to_le_bytes());
                let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
                let mut runner = TestRunner::new_with_rng(Config::default(), rng);
                let mut tree = strategy.new_tree(&mut runner).expect("no value is refused");
                let Err(mut message) = check(&tree.current()) else { continue };
                let mut smallest = tree.current();
                // Make it smaller while it still fails.
                for _ in 0..2000 {
                    if let Err(smaller) = check(&tree.current()) {
                        (message, smallest) = (smaller, tree.current());
                        if !tree.simplify() {
                            break;
                        }
                    } else if !tree.complicate() {
                        break;
                    }
                }
                next.fetch_max(end, Ordering::Relaxed);
                return Some(format!("seed {seed}: {message}\n{smallest:?}"));
            }
        };
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().filter_map(|it| it.join().expect("no check panics")).collect()
    });
    assert!(failures.is_empty(), "{what}: {}", failures.join("\n\n"));
    println!("{count} random {what}");
}

#[test]
fn random_maps_keep_their_meaning() {
    let strategy = || (any_sketch(), any_sketch());
    run("maps", count(), strategy, |(sketch, other)| check_all(sketch, other));
}

/// How many of so many random maps have no inverse that is found.
fn num_unsolved<S: Strategy>(
    what: &str,
    count: usize,
    strategy: impl Fn() -> S + Sync,
    chain: impl Fn(&Context, &S::Value) -> IndexingMap + Sync,
    twice: bool,
) -> usize
where
    S::Value: std::fmt::Debug,
{
    let unsolved = AtomicUsize::new(0);
    run(what, count, strategy, |steps| {
        let ctx = &Context::new();
        if !check_chain(ctx, &chain(ctx, steps), twice)? {
            unsolved.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    });
    let unsolved = unsolved.into_inner();
    println!("{unsolved} of {count} random {what} unsolved");
    unsolved
}

/// Chains of such steps over a few dimensions.
fn any_chain(step: impl Strategy<Value = Step>) -> impl Strategy<Value = (Vec<i64>, Vec<Step>)> {
    let extent = prop_oneof![4 => 1..7_i64, 1 => 7..100_i64, 1 => 100..2000_i64];
    (prop::collection::vec(extent, 1..4), prop::collection::vec(step, 0..6))
}

#[test]
fn random_chains_have_inverses() {
    let all = count() / 4;
    let strategy = || any_chain(any_plain_step());
    let build = |ctx: &Context, (extents, steps): &(Vec<_>, Vec<_>)| chain(ctx, extents, steps);
    let unsolved = num_unsolved("chains", all, strategy, build, true);
    // Where digits of digits overlap, the equations are not solved. Of few chains, more may be such by chance.
    assert!(unsolved <= all / 30 + 10, "{unsolved} of {all} chains unsolved");
}

#[test]
fn random_injective_maps_have_inverses() {
    let all = count() / 4;
    let strategy = || any_chain(any_step());
    let build = |ctx: &Context, (extents, steps): &(Vec<_>, Vec<_>)| chain(ctx, extents, steps);
    let unsolved = num_unsolved("injective maps", all, strategy, build, false);
    // Only those of steps that move elements have to be solved; others have to be right.
    assert!(unsolved <= all / 2 + 10, "{unsolved} of {all} injective maps unsolved");
}

#[test]
fn random_dynamic_maps_have_inverses() {
    let all = count() / 8;
    let unsolved = num_unsolved("dynamic maps", all, any_symbolic_chain, symbolic_chain, false);
    assert!(unsolved <= all / 2 + 10, "{unsolved} of {all} dynamic maps unsolved");
}

/// What the text of a map is made of, for texts that are nearly maps.
const TOKENS: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "->",
    ",",
    "domain:",
    "domain",
    ":",
    "in",
    "inf",
    "-inf",
    "d0",
    "d1",
    "s0",
    "rt0",
    "N",
    "+",
    "-",
    "*",
    "/",
    "floordiv",
    "ceildiv",
    "mod",
    "min",
    "max",
    "min(",
    "0",
    "1",
    "7",
    "-1",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "KNOWN EMPTY",
    "UNDEFINED",
    "&&",
    "||",
    "always satisfied",
    "unsatisfiable",
    " ",
    "é",
    "\u{0}",
];

/// Texts that are maps with a few tokens removed, replaced or added.
#[test]
fn random_text_never_panics() {
    let strategy = || {
        let edit = (any::<prop::sample::Index>(), 0..3_usize, prop::sample::select(TOKENS));
        (
            any_sketch(),
            prop::collection::vec(edit, 0..6),
            prop::collection::vec(prop::sample::select(TOKENS), 0..20),
        )
    };
    run("texts", count(), strategy, |(sketch, edits, tokens)| {
        let ctx = &Context::new();
        let mut text = sketch.build(ctx).display(ctx).to_string();
        for (place, kind, token) in edits {
            let places: Vec<usize> =
                text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let at = places[place.index(places.len())];
            let end = if *kind == 0 { at } else { (at + kind).min(text.len()) };
            let end = (end..=text.len()).find(|&end| text.is_char_boundary(end)).unwrap_or(at);
            text.replace_range(at..end, token);
        }
        for text in [text, tokens.join(" ")] {
            if let Ok(map) = IndexingMap::parse(ctx, &text) {
                let printed = map.display(ctx).to_string();
                let parsed = IndexingMap::parse(ctx, &printed);
                let parsed = parsed.map_err(|error| format!("{text}: {printed}: {error}"))?;
                let again = parsed.display(ctx).to_string();
                ensure(again == printed, || format!("{text}: {printed}: {again}"))?;
            }
            let name = |name: &str| name.strip_prefix('d')?.parse().ok().map(Var::Dim);
            let _ = tc_ir::text::parse_expr(ctx, &text, &name);
            if let Ok(constraints) = tc_ir::ConstraintExpression::parse(ctx, &text, &name) {
                let printed = constraints.display_with(ctx, tc_ir::text::default_name).to_string();
                tc_ir::ConstraintExpression::parse(ctx, &printed, &name)
                    .map_err(|error| format!("{text}: {printed}: {error}"))?;
            }
        }
        Ok(())
    });
}

/// Every public operation on trees with numbers at the ends of 64 bits: no panic, whatever comes
/// out.
#[test]
fn extremes_never_panic() {
    const ENDS: [i64; 9] =
        [i64::MIN, i64::MIN + 1, -(1 << 62), -1, 0, 1, 1 << 62, i64::MAX - 1, i64::MAX];
    let end = || prop::sample::select(&ENDS[..]);
    let strategy = || {
        let sketch = any_sketch();
        (sketch, prop::collection::vec((end(), end()), 6), prop::collection::vec(end(), 4))
    };
    run("extremes", count() / 4, strategy, |(sketch, bounds, numbers)| {
        let mut sketch = sketch.clone();
        for (variable, &bounds) in sketch.dims.iter_mut().chain(&mut sketch.ranges).zip(bounds) {
            variable.0 = bounds;
        }
        for (variable, &bounds) in sketch.runtimes.iter_mut().zip(&bounds[4..]) {
            *variable = bounds;
        }
        for (constraint, numbers) in sketch.constraints.iter_mut().zip(numbers.chunks(2)) {
            constraint.1 = (numbers[0], numbers[1]);
        }
        let number = |i: usize| Box::new(Tree::Const(numbers[i]));
        if let Some(first) = sketch.results.first_mut() {
            let scaled = Tree::Op(maps::Op::Mul, Box::new(first.clone()), number(2));
            *first = Tree::Op(maps::Op::Mod, Box::new(scaled), number(3));
        }
        let ctx = &Context::new();
        let map = sketch.build(ctx);
        let mut simplified = map.clone();
        simplified.simplify(ctx);
        let mut rescaled = map.clone();
        rescaled.rescale_symbols(ctx);
        let mut converted = map.clone();
        converted.convert_symbols_to_dimensions(ctx);
        converted.remove_unused_vars(ctx);
        map.range_of(ctx, map.results[0]);
        map.emptiness(ctx);
        let _ = converted.inverse(ctx);
        let mut twice = map.clone();
        twice.results = vec![map.results[0]; 2];
        let composed = compose(ctx, &twice, &map).map_err(|error| error.to_string())?;
        composed.equality(ctx, &composed.clone());
        map.equality(ctx, &simplified);
        let printed = composed.display(ctx).to_string();
        IndexingMap::parse(ctx, &printed).map_err(|error| format!("{printed}: {error}"))?;
        Ok(())
    });
}
