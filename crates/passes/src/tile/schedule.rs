//! `imap-schedule`: choose which operations are computed together, and the sizes of tiles.
//!
//! The pass gives operations the attributes `imap.schedule` and `imap.group`, which `imap-tile` executes. An operation
//! that has a schedule keeps it. A group has a root, which gets the schedule, and operations before it. Each index of the
//! tiled dimensions of the root needs one index of each member. A group is worth it if
//!
//! * at least `min-bytes` of traffic stay in cache: results of members, and operands that several of them read;
//! * a tile touches at most `tile-bytes`;
//! * no operand of more than `shared-bytes` is read again for each tile, except the second factor of a product.
//!
//! With a product, a tile has at least `min-rows` rows and touches at most `product-bytes`. A product that is in no group
//! is tiled by rows, so that a tile of the first factor stays in cache. A tile has four times `min-rows` rows if they fit;
//! more rows would leave less of the cache to the other factor. Long rows are cut. Rows that are a multiple of `set-bytes`
//! apart are copied, because they would evict each other from the cache.
//!
//! Of the sets of tiled dimensions from the outermost one on, the one with the least traffic wins. The
//! contiguous dimension is only tiled if it is the only dimension, or with `min-strip` if operations fold along all
//! others.
//!
//! With `product-bytes=0`, no tile has a product. With `blocks`, the steps of all groups are `forall`. With `parallel`, the
//! step is `forall` if there is enough work for threads, and folds that belong to no group have a
//! schedule as well.
//!
//! `tile=i=4,j=16` chooses nothing: each operation without a schedule gets a step with the variables of these names that it
//! has. `file=PATH` reads schedules first, one per line:
//!
//! ```text
//! // Kernel 5 of the function @main, as --print-fusion-plan numbers them, and those computed in its tiles.
//! main.5: #imap.schedule<tile [d0 = 32]> with main.3, main.4
//! // Each kernel from line 40 of this file.
//! model.hlo:40: #imap.schedule<forall [d0 = 16]>
//! ```
//!
//! A line that matches no operation is an error. `print=true` prints the schedules to the standard output in this form.

use super::{blocks_in, group::Group, groups};
use crate::target::TileLimits;
use glob::Pattern;
use melior::{
    Context,
    ir::{Attribute, Location, operation::OperationLike},
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write as _,
    fs,
};
use tc_dialects::{
    imap::{
        AnyIndexed, Indexed,
        schedule::{GROUP, Schedule, Step, is_scheduled, variable_names},
    },
    mlir::{self, Blk, Op},
    pass::{self, Failure, PassInfo, PassOption, PassRun, PipelineInfo, VALUE},
    report::{self, Report},
    text::Severity,
};
use tc_ir::expr::Var;

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "imap-schedule",
    summary: "Choose which operations are computed together, and the sizes of tiles",
    anchor: "builtin.module",
    options: &[
        PassOption {
            name: "min-bytes",
            description: "The least bytes of results that are no longer stored whole",
            default: "131072",
        },
        PassOption {
            name: "tile-bytes",
            description: "The most bytes that a tile may touch: a part of the second-level cache",
            default: "524288",
        },
        PassOption {
            name: "shared-bytes",
            description: "The most bytes of an operand that all tiles read again: a part of the first-level cache",
            default: "16384",
        },
        PassOption {
            name: "product-bytes",
            description: "The most bytes that a tile with a product may touch: a part of the last-level cache",
            default: "2097152",
        },
        PassOption {
            name: "set-bytes",
            description: "The distance of addresses that share a set of the first-level cache",
            default: "4096",
        },
        PassOption {
            name: "min-columns",
            description: "The least results that an element of a copied factor serves",
            default: "128",
        },
        PassOption {
            name: "min-rows",
            description: "The least rows of a product in a tile",
            default: "16",
        },
        PassOption {
            name: "min-points",
            description: "The least points of the last operation in a tile, if they fit in cache",
            default: "8192",
        },
        PassOption {
            name: "min-row",
            description: "The least elements of a contiguous row that tiles cut",
            default: "64",
        },
        PassOption {
            name: "min-strip",
            description: "The least elements of a contiguous row in a tile of columns; 0 for no such tiles",
            default: "0",
        },
        PassOption {
            name: "min-tiles",
            description: "The least tiles of a dimension that has as many indices",
            default: "1",
        },
        PassOption {
            name: "parallel",
            description: "Let threads compute tiles if there is enough work for them",
            default: "false",
        },
        PassOption {
            name: "parallel-threshold",
            description: "Operations on registers below which loops stay in one thread",
            default: "4194304",
        },
        PassOption {
            name: "blocks",
            description: "Let the blocks of a GPU compute the tiles of groups",
            default: "false",
        },
        PassOption {
            name: "tile",
            description: "Sizes of tiles for operations without a schedule, by variable: i=4,j=16",
            default: "",
        },
        PassOption { name: "file", description: "A file of schedules", default: "" },
        PassOption {
            name: "print",
            description: "Print the schedules of all operations",
            default: "false",
        },
    ],
    dependent_dialects: &["imap"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let fail = |message: String| {
        Report::op_error(pass.op, message).emit();
        Failure
    };
    let number = |name| Ok(pass.number_in(name, 0.., "a number")?.unsigned_abs());
    let threshold = number("parallel-threshold")?;
    let limits = TileLimits {
        min_bytes: number("min-bytes")?,
        tile_bytes: number("tile-bytes")?,
        shared_bytes: number("shared-bytes")?,
        product_bytes: number("product-bytes")?,
        min_points: number("min-points")?,
        set_bytes: number("set-bytes")?,
        min_columns: number("min-columns")?,
        min_rows: number("min-rows")?,
        min_row: number("min-row")?.max(1),
        min_strip: number("min-strip")?,
        min_tiles: number("min-tiles")?,
        blocks: pass.options.flag("blocks"),
        parallel: pass.options.flag("parallel").then_some(threshold),
    };
    let sizes = sizes(pass.options.text("tile")).map_err(fail)?;
    let Some(module) = mlir::body(pass.op, 0) else { return Ok(()) };
    let functions: Vec<_> =
        mlir::ops(module).into_iter().filter(|op| mlir::is(*op, "func.func")).collect();
    check_converted(pass)?;
    let (mut numbers, mut names) = (0.., BTreeSet::new());
    match pass.options.text("file") {
        "" => {}
        path => read(pass, &functions, path, &mut numbers)?,
    }
    for function in &functions {
        pass.enter(*function);
        for block in blocks_in(*function) {
            match sizes.is_empty() {
                true => choose(block, &limits, &mut numbers),
                false => give(block, &sizes, &mut names),
            }
        }
    }
    if let Some((unknown, _)) = sizes.iter().find(|(name, _)| !names.contains(name)) {
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        return Err(fail(match names.is_empty() {
            true => {
                "'tile' expects operations of imap without a schedule, and there are none".into()
            }
            false => {
                format!("'tile' names '{unknown}', and the operations have {}", names.join(", "))
            }
        }));
    }
    if pass.options.flag("print") {
        report::print(text(&functions).as_bytes())
            .map_err(|error| fail(format!("cannot print the schedules: {error}")))?;
    }
    Ok(())
}

/// The sizes in a text such as `i=4,j=16`.
fn sizes(text: &str) -> Result<Vec<(String, i64)>, String> {
    let size = |part: &str| {
        let (name, size) = part.split_once('=')?;
        let size: i64 = size.trim().parse().ok().filter(|size| 0 < *size)?;
        let name = name.trim();
        (!name.is_empty()).then(|| (name.to_string(), size))
    };
    let mut found: Vec<(String, i64)> = Vec::new();
    for part in text.split(',').filter(|part| !part.trim().is_empty()) {
        let Some((name, size)) = size(part) else {
            return Err(format!("'tile' expects sizes such as i=4,j=16, found '{part}'"));
        };
        if found.iter().any(|(known, _)| *known == name) {
            return Err(format!("'tile' has two sizes of '{name}'; remove one"));
        }
        found.push((name, size));
    }
    Ok(found)
}

/// The text after `--NAME=`, which is not empty.
fn value(options: &pass::Options) -> Result<&str, String> {
    Some(options.text(""))
        .filter(|text| !text.is_empty())
        .ok_or("this option expects a value".into())
}

/// `--tile=i=4,j=16` of `tc-opt`.
pub static TILE: PipelineInfo = PipelineInfo {
    argument: "tile",
    summary: "Compute operations without a schedule in tiles",
    options: &[VALUE],
    build: |options| {
        let text = value(options)?;
        sizes(text)?;
        Ok(format!("imap-schedule{{tile={text}}},func.func(imap-tile)"))
    },
};

/// `--schedule=FILE` of `tc-opt`.
pub static SCHEDULE_FILE: PipelineInfo = PipelineInfo {
    argument: "schedule",
    summary: "Give operations the schedules of a file",
    options: &[VALUE],
    build: |options| Ok(format!("imap-schedule{{file={}}}", value(options)?)),
};

/// If the pass is told what to do, programs have to be operations of `imap`.
fn check_converted(pass: &PassRun) -> Result<(), Failure> {
    let is_told = ["tile", "file"].iter().any(|name| !pass.options.text(name).is_empty());
    let Some(module) = mlir::body(pass.op, 0).filter(|_| is_told || pass.options.flag("print"))
    else {
        return Ok(());
    };
    let passes = |op: &Op| {
        Some(match mlir::name(*op).split_once('.')?.0 {
            "tc" => "--infer-ranges --convert-tc-to-imap",
            "hlo" => "--convert-hlo-to-imap",
            "tml" => {
                "--tml-eliminate-dead-statements --cse --tml-forward-statements --tml-reassociate --convert-tml-to-imap"
            }
            "axon" => "--convert-axon-to-imap",
            _ => return None,
        })
    };
    // These passes give the same kernels as --print-fusion-plan.
    const FUSE: &str = "--canonicalize --cse --hoist-invariants --imap-fuse";
    match mlir::ops(module).into_iter().find_map(|op| Some((op, passes(&op)?))) {
        None => Ok(()),
        Some((op, passes)) => {
            Report::op_error(
                op,
                format!("has no operations of imap to schedule; try '{passes} {FUSE}' first"),
            )
            .emit();
            Err(Failure)
        }
    }
}

/// Gives the operations of a block the schedules of groups that are worth it.
fn choose(block: Blk, limits: &TileLimits, numbers: &mut impl Iterator<Item = i64>) {
    let ir = tc_ir::Context::new();
    for group in groups(block, limits) {
        let Group { root, members, range, sizes, packed, is_parallel } = group;
        let mut ops = members.iter().map(|member| member.op()).chain([root.op()]);
        if ops.any(|op| is_scheduled(op)) {
            continue;
        }
        let domain = root.domain(&ir);
        let names = variable_names(&domain);
        let size = |var, size| {
            let size = i64::try_from(size).unwrap_or(i64::MAX);
            (names[domain.position(var)].clone(), size)
        };
        let range = range.map(|(number, values)| vec![size(Var::Range(number), values)]);
        let sizes: Vec<_> = sizes.into_iter().map(|(dim, it)| size(Var::Dim(dim), it)).collect();
        let mut steps: Vec<Step> = range.into_iter().map(Step::Tile).collect();
        if !sizes.is_empty() {
            let step = if is_parallel || limits.blocks { Step::Forall } else { Step::Tile };
            steps.push(step(sizes));
        }
        steps.extend(packed.into_iter().map(Step::Pack));
        Schedule { steps }.set(root.op());
        if let (false, Some(number)) = (members.is_empty(), numbers.next()) {
            let context = mlir::context_of(root.op());
            for op in members.iter().map(|member| member.op()).chain([root.op()]) {
                mlir::set_attribute(op, GROUP, mlir::i64_attr(context, number));
            }
        }
    }
}

/// Gives the operations of a block without a schedule a step with these sizes, and notes the names of their variables.
fn give(block: Blk, sizes: &[(String, i64)], known: &mut BTreeSet<String>) {
    let ir = tc_ir::Context::new();
    for op in mlir::ops(block).into_iter().filter(|op| !is_scheduled(*op)) {
        let Some(indexed) = AnyIndexed::cast(op) else { continue };
        let names = variable_names(&indexed.domain(&ir));
        known.extend(names.iter().cloned());
        let own = sizes.iter().filter(|(name, _)| names.contains(name)).cloned();
        let sizes: Vec<_> = own.collect();
        if !sizes.is_empty() {
            Schedule { steps: vec![Step::Tile(sizes)] }.set(op);
        }
    }
}

/// The operations with maps of functions, with their names: that of the function and a number.
fn named<'c>(functions: &[Op<'c>]) -> Vec<(String, Op<'c>)> {
    let mut found = Vec::new();
    for function in functions {
        let name = mlir::string_attr(*function, "sym_name").unwrap_or_default();
        let mut number = 0;
        mlir::walk(*function, &mut |op| {
            if AnyIndexed::cast(op).is_some() {
                found.push((format!("{name}.{number}"), op));
                number += 1;
            }
        });
    }
    found
}

/// Reads schedules from a file, and takes numbers for groups.
fn read(
    pass: &PassRun,
    functions: &[Op],
    path: &str,
    numbers: &mut impl Iterator<Item = i64>,
) -> Result<(), Failure> {
    let text = fs::read_to_string(path).map_err(|error| {
        Report::op_error(pass.op, format!("cannot read '{path}': {error}")).emit();
        Failure
    })?;
    let operations = named(functions);
    // The lines that name operations.
    let mut known = HashMap::new();
    for (number, whole) in (1..).zip(text.lines()) {
        let line = whole.split("//").next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        // Errors stand at a part of the line.
        let fail = |part: &str, message: String| {
            let column = part.as_ptr() as usize - whole.as_ptr() as usize + 1;
            let location = Location::new(pass.context, path, number, column);
            Report::at(location, Severity::Error, message).emit();
            Failure
        };
        let matching = |pattern: &str| {
            let found = matching(&operations, pattern).and_then(|found| match found.is_empty() {
                true => Err(no_match(&operations, pattern)),
                false => Ok(found),
            });
            found.map_err(|message| fail(pattern, message))
        };
        let mut note = |op: Op, pattern: &str| match known.insert(mlir::op_key(op), number) {
            None => Ok(()),
            Some(first) => {
                let name = operations.iter().find(|(_, it)| *it == op).map_or("", |it| &it.0);
                let message = format!(
                    "line {first} has '{name}' already; an operation has one schedule, remove one of the two"
                );
                Err(fail(pattern, message))
            }
        };
        let (name, schedule) = line
            .split_once(": ")
            .ok_or_else(|| fail(line, "expected 'NAME: #imap.schedule<..>'".to_string()))?;
        let (name, schedule) = (name.trim(), schedule.trim());
        let (schedule, members) = schedule.split_once(" with ").unwrap_or((schedule, ""));
        let schedule = parse(pass.context, schedule)
            .map_err(|(place, message)| fail(&schedule[place..], message))?;
        let roots = matching(name)?;
        for op in &roots {
            note(*op, name)?;
            schedule.set(*op);
        }
        if members.is_empty() {
            continue;
        }
        let ([root], Some(group)) = (&roots[..], numbers.next()) else {
            let message = format!("'{name}' matches several operations, and a group has one root");
            return Err(fail(name, message));
        };
        if schedule.steps.iter().all(|step| step.tile_sizes().is_none()) {
            let message = "a group is computed in tiles; expected a step 'tile' or 'forall'";
            return Err(fail(members, message.to_string()));
        }
        let attribute = mlir::i64_attr(pass.context, group);
        mlir::set_attribute(*root, GROUP, attribute);
        for pattern in members.split(',').map(str::trim) {
            let found = matching(pattern)?;
            if found.contains(root) {
                let message = format!("'{pattern}' is the root of the group; remove it here");
                return Err(fail(pattern, message));
            }
            for op in found {
                note(op, pattern)?;
                mlir::set_attribute(op, GROUP, attribute);
            }
        }
    }
    Ok(())
}

/// The schedule of a text, or the place in the text that is wrong and the reason.
fn parse(context: &Context, text: &str) -> Result<Schedule, (usize, String)> {
    let (handler, received) = report::collect(context);
    let attribute = Attribute::parse(context, text);
    context.detach_diagnostic_handler(handler);
    if let Some(schedule) = attribute.and_then(Schedule::from_attribute) {
        return Ok(schedule);
    }
    let expected = "expected a schedule, such as #imap.schedule<tile [i = 4]>";
    let received = received.borrow();
    let Some(error) = received.iter().find(|it| it.is_error()) else {
        return Err((0, expected.to_string()));
    };
    let place = error.place.as_ref().map_or(0, |(_, _, column)| column.saturating_sub(1));
    let place = if text.is_char_boundary(place) { place } else { 0 };
    Err((place, error.message.clone()))
}

/// The most names that an error lists.
const MAX_NAMES: usize = 20;

fn no_match(operations: &[(String, Op)], pattern: &str) -> String {
    let mut names: Vec<_> =
        operations.iter().take(MAX_NAMES).map(|(name, _)| name.as_str()).collect();
    if MAX_NAMES < operations.len() {
        names.push("..");
    }
    match names.is_empty() {
        true => format!("no operation matches '{pattern}', because none has a schedule"),
        false => format!(
            "no operation matches '{pattern}'; expected FILE:LINE or one of {}",
            names.join(", ")
        ),
    }
}

/// The operations of which the name, or a line that they stand for, matches a pattern.
fn matching<'c>(operations: &[(String, Op<'c>)], pattern: &str) -> Result<Vec<Op<'c>>, String> {
    let pattern = Pattern::new(pattern).map_err(|error| error.to_string())?;
    let is_wanted = |(name, op): &&(String, Op)| {
        let lines = mlir::source_lines(op.location());
        pattern.matches(name)
            || lines.iter().any(|(file, line)| {
                let name = file.rsplit('/').next().unwrap_or(file);
                [name, file.as_str()].iter().any(|it| pattern.matches(&format!("{it}:{line}")))
            })
    };
    Ok(operations.iter().filter(is_wanted).map(|(_, op)| *op).collect())
}

/// The schedules of all operations, as a file that can be read again.
fn text(functions: &[Op]) -> String {
    let operations = named(functions);
    let mut groups: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
    for (name, op) in &operations {
        if let (Some(group), None) = (mlir::integer_attr(*op, GROUP), Schedule::of(*op)) {
            groups.entry(group).or_default().push(name);
        }
    }
    let mut text = String::new();
    for (name, op) in &operations {
        let Some(schedule) = Schedule::of(*op) else { continue };
        // Writing to a string does not fail.
        let _ = write!(text, "{name}: {schedule}");
        let members = mlir::integer_attr(*op, GROUP).and_then(|group| groups.get(&group));
        if let Some(members) = members {
            let _ = write!(text, " with {}", members.join(", "));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let size = |name: &str, size| (name.to_string(), size);
        assert_eq!(sizes(""), Ok(Vec::new()));
        assert_eq!(sizes("i=4, j = 16"), Ok(vec![size("i", 4), size("j", 16)]));
        let twice = "'tile' has two sizes of 'i'; remove one".to_string();
        assert_eq!(sizes("i=4,i=5"), Err(twice));
        for wrong in ["i", "i=0", "i=-3", "=4", "i=4 5"] {
            assert!(sizes(wrong).is_err_and(|error| error.contains(wrong)), "{wrong}");
        }
    }
}
