//! Makes a failing program smaller, greedily: operations go first, then parts of them, then points.

use super::program::{Argument, Extent, Index, Init, Monoid, Program, RuntimeSource, Source};

/// The smallest program found that fails, within a number of tries.
pub fn shrink(program: &Program, tries: usize, fails: impl Fn(&Program) -> bool) -> Program {
    let mut best = program.clone();
    let mut tries = tries;
    'restart: loop {
        for candidate in candidates(&best) {
            if tries == 0 {
                return best;
            }
            tries -= 1;
            if fails(&candidate) {
                best = candidate;
                continue 'restart;
            }
        }
        return best;
    }
}

/// Programs with one thing less, large things first.
pub fn candidates(program: &Program) -> Vec<Program> {
    let mut found = Vec::new();
    for number in (0..program.operations.len()).rev() {
        found.extend(without_operation(program, number));
    }
    for number in 0..program.results.len() {
        let mut changed = program.clone();
        changed.results.remove(number);
        found.extend((!changed.results.is_empty()).then_some(changed));
    }
    for (number, operation) in program.operations.iter().enumerate() {
        let mut add = |change: &dyn Fn(&mut super::program::Operation)| {
            let mut changed = program.clone();
            change(&mut changed.operations[number]);
            found.push(changed);
        };
        for constraint in 0..operation.constraints.len() {
            add(&|it| {
                it.constraints.remove(constraint);
            });
        }
        for (input, parts) in operation.inputs.iter().enumerate() {
            if parts.guard.fill.is_some() {
                add(&|it| it.inputs[input].guard.fill = None);
            }
        }
        if operation.has_own_sum {
            add(&|it| it.has_own_sum = false);
        }
        let must_finish = operation.monoid.is_some() && operation.outputs.len() == 1;
        if operation.monoid.is_some() {
            add(&|it| it.monoid = None);
        }
        if operation.is_ordered && operation.monoid != Some(Monoid::Last) {
            add(&|it| it.is_ordered = false);
        }
        if operation.has_epilogue && !must_finish {
            add(&|it| it.has_epilogue = false);
        }
        for (output, parts) in operation.outputs.iter().enumerate() {
            for step in 0..parts.body.len() {
                add(&|it| {
                    it.outputs[output].body.remove(step);
                });
            }
            if matches!(parts.init, Init::Value(_)) {
                add(&|it| it.outputs[output].init = Init::Empty);
            }
        }
        // Fewer points: every access stays inside.
        for (dim, (lower, upper)) in operation.dims.iter().enumerate() {
            if let (Index::Const(lower), Index::Const(upper)) = (lower, upper)
                && lower < upper
            {
                add(&|it| it.dims[dim].1 = Index::Const(upper - 1));
            }
        }
        for (range, (_, upper)) in operation.ranges.iter().enumerate() {
            match upper {
                Index::Const(upper) if *upper > 0 => {
                    add(&|it| it.ranges[range].1 = Index::Const(upper - 1));
                }
                Index::Min(_, most) => add(&|it| it.ranges[range].1 = (**most).clone()),
                _ => {}
            }
        }
    }
    for size in 0..program.sizes.len() {
        found.extend(with_smaller_size(program, size));
    }
    found.iter_mut().for_each(drop_unused);
    found
}

/// A program without an operation, whose results become arguments.
fn without_operation(program: &Program, number: usize) -> Option<Program> {
    let mut changed = program.clone();
    let removed = changed.operations.remove(number);
    let first = changed.arguments.len();
    for output in &removed.outputs {
        let count: i64 = program.extents(&output.shape).iter().product();
        let values = (0..count).map(|at| (at % 5 - 2) as f64).collect();
        changed.arguments.push(Argument { shape: output.shape.clone(), values, is_table: false });
    }
    changed.results.retain(|it| !matches!(it, Source::Result(at, _) if *at == number));
    for_each_source(&mut changed, &mut |source| match *source {
        Source::Result(at, output) if at == number => *source = Source::Argument(first + output),
        Source::Result(at, output) if at > number => *source = Source::Result(at - 1, output),
        _ => {}
    });
    if changed.results.is_empty() {
        changed.results.push(Source::Result(changed.operations.len().checked_sub(1)?, 0));
    }
    Some(changed)
}

/// A program whose size is one less; the elements at its end go.
fn with_smaller_size(program: &Program, size: usize) -> Option<Program> {
    let mut changed = program.clone();
    changed.sizes[size] = changed.sizes[size].checked_sub(1).filter(|size| *size >= 0)?;
    let (old, new) = (program.sizes[size], changed.sizes[size]);
    for argument in &mut changed.arguments {
        let extents = program.extents(&argument.shape);
        let is_kept = |at: usize| {
            let mut rest = at as i64;
            let dims = argument.shape.iter().zip(&extents).rev();
            dims.into_iter().all(|(extent, count)| {
                let index = rest % count;
                rest /= count;
                *extent != Extent::Size(size) || index < new
            })
        };
        if old > 0 {
            let kept = argument.values.iter().enumerate().filter(|(at, _)| is_kept(*at));
            argument.values = kept.map(|(_, value)| *value).collect();
        }
    }
    Some(changed)
}

fn for_each_source(program: &mut Program, change: &mut dyn FnMut(&mut Source)) {
    for operation in &mut program.operations {
        operation.inputs.iter_mut().for_each(|input| change(&mut input.source));
        for output in &mut operation.outputs {
            if let Init::Value(source) = &mut output.init {
                change(source);
            }
        }
    }
    program.results.iter_mut().for_each(change);
}

/// Drops the arguments that nothing uses, except those that give sizes.
fn drop_unused(program: &mut Program) {
    for number in (program.sizes.len()..program.arguments.len()).rev() {
        let mut is_used = false;
        for_each_source(program, &mut |it| is_used |= *it == Source::Argument(number));
        let runtimes = program.operations.iter().flat_map(|it| &it.runtimes);
        is_used |= runtimes
            .into_iter()
            .any(|it| matches!(it.source, RuntimeSource::Table(table, _) if table == number));
        if is_used {
            continue;
        }
        program.arguments.remove(number);
        for_each_source(program, &mut |it| {
            if let Source::Argument(at) = it
                && *at > number
            {
                *at -= 1;
            }
        });
        for runtime in program.operations.iter_mut().flat_map(|it| &mut it.runtimes) {
            if let RuntimeSource::Table(table, _) = &mut runtime.source
                && *table > number
            {
                *table -= 1;
            }
        }
    }
}
