//! The index algebra against MLIR's affine maps: composing and simplifying maps that neither
//! has seen before, in alternation, each batch in a fresh context. MLIR's maps have no
//! domain, so it does less.
//!
//! Prints tables in Markdown: speed per kind of work, scaling over threads, time by depth,
//! memory per expression, and how often equal maps get one form.

use std::{
    error::Error,
    process::ExitCode,
    time::{Duration, Instant},
};

use tc_ir::{Context, IndexingMap, compose_simplified};

#[path = "../../crates/ir/tests/chains/mod.rs"]
mod chains;
mod mlir;
mod workloads;

use chains::{Chain, Random, composed, in_order, random_order};
use mlir::Mlir;
use workloads::{WORKLOADS, Work, Workload, shared, tower};

/// Batches per kind of work; the fastest counts, since other programs only add time.
const ROUNDS: u64 = 15;
/// Pairs of maps drawn for completeness, by length of the chain.
const PAIRS: u64 = 2000;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let run = speed().and_then(|()| threads()).and_then(|()| growth());
    match run.and_then(|()| memory()).and_then(|()| completeness()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("index-algebra: error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A batch in a fresh context.
fn batch(work: &Workload, seed: u64) -> (Context, Vec<Work>) {
    let ctx = Context::new();
    let mut random = Random::new(seed);
    let batch = (0..work.batch).map(|_| (work.draw)(&ctx, &mut random)).collect();
    (ctx, batch)
}

/// Composes and simplifies step by step.
fn finish(ctx: &Context, work: &[IndexingMap]) -> Result<IndexingMap> {
    let Some((first, rest)) = work.split_first() else {
        return Err("no map".into());
    };
    let Some((second, rest)) = rest.split_first() else {
        let mut map = first.clone();
        map.simplify(ctx);
        return Ok(map);
    };
    let mut map = compose_simplified(ctx, first, second)?;
    for next in rest {
        map = compose_simplified(ctx, &map, next)?;
    }
    Ok(map)
}

fn finish_mlir(mlir: &Mlir, work: &[mlir::Map]) -> Result<mlir::Map> {
    let Some((first, rest)) = work.split_first() else {
        return Err("no map".into());
    };
    let mut map = first.clone();
    if rest.is_empty() {
        mlir.simplify(&mut map);
    }
    for next in rest {
        map = mlir.compose(&map, next);
        mlir.simplify(&mut map);
    }
    Ok(map)
}

fn ours(work: &Workload, seed: u64) -> Result<(Duration, u64)> {
    let (ctx, batch) = batch(work, seed);
    let mut results = Vec::with_capacity(batch.len());
    let start = Instant::now();
    for work in &batch {
        results.push(finish(&ctx, work)?);
    }
    let time = start.elapsed();
    let exprs = results
        .iter()
        .flat_map(|map| map.results.iter().copied().chain(map.constraints.iter().map(|c| c.expr)));
    Ok((time, exprs.map(|expr| u64::from(ctx.cost(expr))).sum()))
}

fn theirs(work: &Workload, seed: u64) -> Result<(Duration, u64)> {
    let (ctx, batch) = batch(work, seed);
    let mlir = Mlir::new();
    let import = |work: &Work| work.iter().map(|map| mlir.import(&ctx, map)).collect();
    let batch: Vec<Vec<mlir::Map>> =
        batch.iter().map(import).collect::<std::result::Result<_, _>>()?;
    let mut results = Vec::with_capacity(batch.len());
    let start = Instant::now();
    for work in &batch {
        results.push(finish_mlir(&mlir, work)?);
    }
    let time = start.elapsed();
    Ok((time, results.iter().map(|map| mlir.cost(map)).sum()))
}

#[expect(clippy::cast_precision_loss, reason = "counts of a few thousand")]
fn each(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}

fn speed() -> Result<()> {
    println!("| work | ours, µs | MLIR, µs | ratio | aim | operators left, ours | MLIR |");
    println!("|---|---|---|---|---|---|---|");
    // The first argument chooses among the kinds of work by a part of their names.
    let only = std::env::args().nth(1).filter(|name| !name.starts_with('-'));
    for work in WORKLOADS {
        if only.as_ref().is_some_and(|only| !work.name.contains(only.as_str())) {
            continue;
        }
        let mut best = [Duration::MAX; 2];
        let mut costs = [0, 0];
        for seed in 0..ROUNDS {
            let (time, cost) = ours(work, seed)?;
            best[0] = best[0].min(time);
            costs[0] += cost;
            if work.peer {
                let (time, cost) = theirs(work, seed)?;
                best[1] = best[1].min(time);
                costs[1] += cost;
            }
        }
        let [ours, theirs] = best.map(|time| each(time, work.batch));
        if !work.peer {
            println!("| {} | {ours:.2} | no end | | | {} | |", work.name, costs[0]);
            continue;
        }
        println!(
            "| {} | {ours:.2} | {theirs:.2} | {:.1} | {} | {} | {} |",
            work.name,
            theirs / ours,
            work.aim.map_or(String::new(), |aim| format!("{aim}")),
            costs[0],
            costs[1]
        );
    }
    Ok(())
}

/// The work of one thread: batches of several kinds.
fn mixture(seed: u64) -> Result<()> {
    for work in &WORKLOADS[..6] {
        ours(work, seed)?;
    }
    Ok(())
}

fn threads() -> Result<()> {
    let mut best = [Duration::MAX; 2];
    for seed in 0..ROUNDS {
        let start = Instant::now();
        mixture(seed)?;
        best[0] = best[0].min(start.elapsed());
        let start = Instant::now();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| mixture(seed).map_err(|error| error.to_string()));
            mixture(seed)?;
            other.join().map_err(|_| "a thread stopped")??;
            Ok::<_, Box<dyn Error>>(())
        })?;
        best[1] = best[1].min(start.elapsed());
    }
    let speedup = 2.0 * best[0].as_secs_f64() / best[1].as_secs_f64();
    println!("\nTwo threads, a context each, do {speedup:.2} times the work of one.");
    Ok(())
}

fn growth() -> Result<()> {
    println!(
        "\n| depth | tower, ours, µs | per level | MLIR | shared, ours, µs | per level | MLIR |"
    );
    println!("|---|---|---|---|---|---|---|");
    for depth in [4, 8, 16, 32, 64, 128, 256] {
        let mut row = format!("| {depth} ");
        for draw in [tower, shared] {
            let mut best = [Duration::MAX; 2];
            // MLIR takes minutes beyond this, even to build the expression: each level
            // doubles its time or more.
            let feasible = depth <= 8;
            for seed in 0..5 {
                let ctx = Context::new();
                let map = draw(&ctx, &mut Random::new(seed), depth);
                let mut ours = map.clone();
                let start = Instant::now();
                ours.simplify(&ctx);
                best[0] = best[0].min(start.elapsed());
                if feasible {
                    let mlir = Mlir::new();
                    let mut their = mlir.import(&ctx, &map)?;
                    let start = Instant::now();
                    mlir.simplify(&mut their);
                    best[1] = best[1].min(start.elapsed());
                }
            }
            let time = if feasible { format!("{:.1}", each(best[1], 1)) } else { "-".into() };
            row += &format!("| {:.1} | {:.2} | {time} ", each(best[0], 1), each(best[0], depth));
        }
        println!("{row}|");
    }
    Ok(())
}

fn memory() -> Result<()> {
    let ctx = Context::new();
    let mut random = Random::new(1);
    for _ in 0..20_000 {
        finish(&ctx, &(WORKLOADS[4].draw)(&ctx, &mut random))?;
    }
    println!(
        "\n{} expressions take {} bytes, {:.1} each.",
        ctx.num_exprs(),
        ctx.allocated_bytes(),
        f64::from(u32::try_from(ctx.allocated_bytes())?)
            / f64::from(u32::try_from(ctx.num_exprs())?)
    );
    Ok(())
}

/// How often two maps that are equal, but were built differently, get one form.
fn completeness() -> Result<()> {
    println!("\n| length of the chain | one form, ours | MLIR |");
    println!("|---|---|---|");
    for length in 1..=6 {
        let mut same = [0, 0];
        for seed in 0..PAIRS {
            let mut random = Random::new(seed.wrapping_mul(31).wrapping_add(1_000_000));
            let ctx = Context::new();
            let chain = Chain::random(&mut random, length, 100_000);
            let maps = chain.maps(&ctx);
            let detour = chain.detour(&mut random).maps(&ctx);
            let order = random_order(&mut random, detour.len());
            let first = composed(&ctx, &maps, &in_order(maps.len()))?;
            let second = composed(&ctx, &detour, &order)?;
            same[0] += u64::from(first == second);
            let mlir = Mlir::new();
            let import = |map| mlir.import(&ctx, map);
            let maps: Vec<_> = maps.iter().map(import).collect::<std::result::Result<_, _>>()?;
            let mut detour: Vec<_> =
                detour.iter().map(import).collect::<std::result::Result<_, _>>()?;
            let first = finish_mlir(&mlir, &maps)?;
            for (place, simplify) in order {
                let next = detour.remove(place + 1);
                detour[place] = mlir.compose(&detour[place], &next);
                if simplify {
                    mlir.simplify(&mut detour[place]);
                }
            }
            mlir.simplify(&mut detour[0]);
            same[1] += u64::from(mlir.equal(&first, &detour[0]));
        }
        let share = |same: u64| 100.0 * f64::from(u32::try_from(same).unwrap_or(0)) / PAIRS as f64;
        println!("| {length} | {:.1} % | {:.1} % |", share(same[0]), share(same[1]));
    }
    Ok(())
}
