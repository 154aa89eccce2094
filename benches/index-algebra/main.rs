//! The index algebra against MLIR's affine maps: composing and simplifying maps that neither
//! has seen before, each batch in a fresh context, measured by criterion in one run. MLIR's maps
//! have no domain, so it does less.
//!
//! Prints tables in Markdown: speed per kind of work, scaling over threads, time by depth,
//! memory per expression, and how often equal maps get one form.

use std::{
    error::Error,
    fs,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant, SystemTime},
};

use criterion::{BatchSize, Criterion, SamplingMode, Throughput};
use serde_json::Value;

use tc_ir::{Context, IndexingMap, compose_simplified};

#[path = "../../crates/ir/tests/chains/mod.rs"]
mod chains;
mod mlir;
mod workloads;

use chains::{Chain, Random, composed, in_order, random_order};
use mlir::Mlir;
use workloads::{GROWTHS, WORKLOADS, Work, Workload, shared, tower};

/// Batches of the measurement with threads; the fastest counts.
const ROUNDS: u64 = 15;
/// Pairs of maps drawn for completeness, by length of the chain.
const PAIRS: u64 = 2000;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let run =
        speed().and_then(|()| threads()).and_then(|()| growth()).and_then(|()| growth_by_size());
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

/// The number of operators in all results and constraints.
fn cost(ctx: &Context, maps: &[IndexingMap]) -> u64 {
    let exprs = maps
        .iter()
        .flat_map(|map| map.results.iter().copied().chain(map.constraints.iter().map(|c| c.expr)));
    exprs.map(|expr| u64::from(ctx.cost(expr))).sum()
}

fn ours(work: &Workload, seed: u64) -> Result<(Context, Vec<IndexingMap>)> {
    let (ctx, batch) = batch(work, seed);
    let results = batch.iter().map(|work| finish(&ctx, work)).collect::<Result<_>>()?;
    Ok((ctx, results))
}

/// A batch in a fresh context of MLIR.
fn batch_mlir(work: &Workload, seed: u64) -> Result<(Mlir, Vec<Vec<mlir::Map>>)> {
    let (ctx, batch) = batch(work, seed);
    let mlir = Mlir::new();
    let import = |work: &Work| work.iter().map(|map| mlir.import(&ctx, map)).collect();
    let batch = batch.iter().map(import).collect::<std::result::Result<_, _>>()?;
    Ok((mlir, batch))
}

#[expect(clippy::cast_precision_loss, reason = "counts of a few thousand")]
fn each(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}

/// Measures a kind of work, ours and MLIR's. Each batch is drawn anew, so that nobody has seen it.
fn measure(criterion: &mut Criterion, work: &Workload) {
    let mut group = criterion.benchmark_group(work.name);
    group.throughput(Throughput::Elements(work.batch as u64));
    group.sampling_mode(SamplingMode::Flat);
    let mut seed = 0;
    group.bench_function("tc-ir", |bencher| {
        let draw = || {
            seed += 1;
            batch(work, seed)
        };
        let all = |(ctx, batch): (Context, Vec<Work>)| {
            let results: Result<Vec<_>> = batch.iter().map(|work| finish(&ctx, work)).collect();
            (results, ctx, batch)
        };
        bencher.iter_batched(draw, all, BatchSize::PerIteration);
    });
    if work.peer {
        let mut seed = 0;
        group.bench_function("mlir", |bencher| {
            let draw = || {
                seed += 1;
                batch_mlir(work, seed)
            };
            let all = |drawn: Result<(Mlir, Vec<Vec<mlir::Map>>)>| {
                let (mlir, batch) = drawn?;
                let results: Result<Vec<_>> =
                    batch.iter().map(|work| finish_mlir(&mlir, work)).collect();
                Ok::<_, Box<dyn Error>>((results?, mlir, batch))
            };
            bencher.iter_batched(draw, all, BatchSize::PerIteration);
        });
    }
    group.finish();
}

/// The fastest sample of a measurement since `start`, in microseconds per unit of work: other
/// programs only add time.
fn fastest(directory: &Path, work: &Workload, who: &str, start: SystemTime) -> Result<Option<f64>> {
    let file = directory.join(work.name).join(who).join("new/sample.json");
    match fs::metadata(&file).and_then(|it| it.modified()) {
        Ok(time) if start <= time => {}
        // Another kind of work was asked for.
        _ => return Ok(None),
    }
    let sample: Value = serde_json::from_str(&fs::read_to_string(file)?)?;
    let numbers = |key: &str| sample[key].as_array().into_iter().flatten().flat_map(Value::as_f64);
    let times = numbers("times").zip(numbers("iters")).map(|(time, count)| time / count);
    let best = times.fold(f64::INFINITY, f64::min);
    Ok(Some(best / 1e3 / f64::from(u32::try_from(work.batch)?)))
}

fn speed() -> Result<()> {
    let start = SystemTime::now();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let directory = target.join("criterion");
    let mut criterion = Criterion::default()
        .output_directory(&directory)
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1500))
        .configure_from_args();
    for work in WORKLOADS {
        measure(&mut criterion, work);
    }
    println!("| work | ours, µs | MLIR, µs | ratio | aim | operators left, ours | MLIR |");
    println!("|---|---|---|---|---|---|---|");
    for work in WORKLOADS {
        let Some(ours_us) = fastest(&directory, work, "tc-ir", start)? else { continue };
        let (ctx, results) = ours(work, 1)?;
        let left = cost(&ctx, &results);
        let Some(mlir_us) = fastest(&directory, work, "mlir", start)? else {
            println!("| {} | {ours_us:.2} | no end | | | {left} | |", work.name);
            continue;
        };
        let (mlir, batch) = batch_mlir(work, 1)?;
        let mut left_mlir = 0;
        for work in &batch {
            left_mlir += mlir.cost(&finish_mlir(&mlir, work)?);
        }
        println!(
            "| {} | {ours_us:.2} | {mlir_us:.2} | {:.1} | {} | {left} | {left_mlir} |",
            work.name,
            mlir_us / ours_us,
            work.aim.map_or(String::new(), |aim| format!("{aim}")),
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
    for depth in [4, 8, 16, 32, 64, 128, 256, 512, 1024] {
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

fn growth_by_size() -> Result<()> {
    const SIZES: [usize; 7] = [8, 16, 32, 64, 128, 256, 512];
    println!("\n| n | {} |\n|---{}|", SIZES.map(|it| it.to_string()).join(" | "), "|---".repeat(7));
    for growth in GROWTHS {
        let mut row = format!("| {} ", growth.name);
        for size in SIZES {
            if growth.largest < size {
                row += "| - ";
                continue;
            }
            let mut best = Duration::MAX;
            for seed in 0..3 {
                let ctx = Context::new();
                let work = (growth.draw)(&ctx, &mut Random::new(seed), size);
                let start = Instant::now();
                finish(&ctx, &work)?;
                best = best.min(start.elapsed());
            }
            row += &format!("| {:.1} ", each(best, 1));
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
    let share =
        |same: u64, pairs: u64| 100.0 * f64::from(u32::try_from(same).unwrap_or(0)) / pairs as f64;
    let mut all = [0, 0];
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
        println!("| {length} | {:.1} % | {:.1} % |", share(same[0], PAIRS), share(same[1], PAIRS));
        all = [all[0] + same[0], all[1] + same[1]];
    }
    println!("| all | {:.1} % | {:.1} % |", share(all[0], 6 * PAIRS), share(all[1], 6 * PAIRS));
    Ok(())
}
