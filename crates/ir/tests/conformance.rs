//! Runs `tests/conformance/xla/simplify.jsonl`: behaviour of the index algebra as XLA
//! documents and tests it.
//!
//! Every case has to pass, except those of [`UNSUPPORTED`], which have to fail: one that
//! starts to pass has to leave the list. Maps and expressions are compared as text without
//! white space. Another text passes where it means the same: equal values on the same domain
//! with no more operators and no more constraints.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde_json::Value;
use tc_ir::map::Point;
use tc_ir::text::parse_expr;
use tc_ir::{Context, Expr, IndexingMap, Interval, Var, compose};

/// Kinds, or single cases by name, that are not supported yet.
const UNSUPPORTED: &[&str] = &[
    // Disjunctions of conjunctions of constraints.
    "constraint_expression",
    // Remainders by negative divisors are undefined here.
    "DivMod/-5_-2",
    "DivMod/4_-2",
    "DivMod/-4_-2",
    // Names of variables with a meaning for a GPU.
    "variable_kinds",
    // A map that is not known at all; here, the absence of a map.
    "print",
    "rescale_symbols",
    "convert_symbols_to_dimensions",
    "convert_range_vars_to_dimensions",
    "compress_dims",
    "compress_symbols",
];

/// The most points of a domain that are compared.
const MAX_POINTS: u64 = 1 << 16;

type Outcome = Result<(), String>;

fn text<'a>(row: &'a Value, key: &str) -> Result<&'a str, String> {
    row[key].as_str().ok_or_else(|| format!("no text '{key}' in the case"))
}

fn integers(row: &Value, key: &str) -> Result<Vec<i64>, String> {
    row[key]
        .as_array()
        .and_then(|values| values.iter().map(Value::as_i64).collect())
        .ok_or_else(|| format!("no integers '{key}' in the case"))
}

fn interval(row: &Value, key: &str) -> Result<Interval, String> {
    match integers(row, key)?[..] {
        [lo, hi] => Ok(Interval::new(lo, hi)),
        _ => Err(format!("no interval '{key}' in the case")),
    }
}

fn equal<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Outcome {
    if found == expected { Ok(()) } else { Err(format!("expected {expected:?}, found {found:?}")) }
}

fn parse(ctx: &Context, text: &str) -> Result<IndexingMap, String> {
    IndexingMap::parse(ctx, text).map_err(|error| format!("{}: {text}: {error}", error.offset))
}

/// The variable `v0` and the like.
fn numbered(name: &str) -> Option<Var> {
    name.strip_prefix('v')?.parse().ok().map(Var::Dim)
}

/// A variable of a map with default names.
fn of_map(name: &str) -> Option<Var> {
    let number = |prefix: &str| name.strip_prefix(prefix)?.parse().ok();
    number("rt")
        .map(Var::Runtime)
        .or_else(|| number("d").map(Var::Dim))
        .or_else(|| number("s").map(Var::Range))
}

fn expr(ctx: &Context, text: &str, resolve: &dyn Fn(&str) -> Option<Var>) -> Result<Expr, String> {
    parse_expr(ctx, text, resolve).map_err(|error| format!("{}: {text}: {error}", error.offset))
}

fn numbered_name(var: Var) -> String {
    match var {
        Var::Dim(i) | Var::Range(i) | Var::Runtime(i) => format!("v{i}"),
    }
}

fn squeeze(text: &str) -> String {
    text.split_whitespace().collect()
}

fn num_operators(ctx: &Context, map: &IndexingMap) -> u64 {
    let constraints = map.constraints.iter().map(|c| &c.expr);
    map.results.iter().chain(constraints).map(|&expr| u64::from(ctx.cost(expr))).sum()
}

/// Whether the domains and values agree and `found` is no larger than `expected`.
fn same_meaning(ctx: &Context, found: &IndexingMap, expected: &IndexingMap) -> Outcome {
    if num_operators(ctx, expected) < num_operators(ctx, found) {
        return Err("more operators".into());
    }
    if expected.constraints.len() < found.constraints.len() {
        return Err("more constraints".into());
    }
    let shape = |map: &IndexingMap| (map.dims.len(), map.ranges.len(), map.runtimes.len());
    equal(shape(found), shape(expected))?;
    if !expected.runtimes.is_empty() {
        return Err("another text, and runtime variables keep it from being compared".into());
    }
    let size = |map: &IndexingMap| -> Option<u64> {
        let intervals = map.intervals(ctx);
        map.vars()
            .try_fold(1_u64, |size, (var, _)| size.checked_mul(intervals.of(var).num_members()?))
    };
    let too_many =
        [found, expected].iter().any(|map| size(map).is_none_or(|size| MAX_POINTS < size));
    if too_many {
        return Err("another text, and too many points to compare".into());
    }
    let points = |map: &IndexingMap| -> Result<Vec<Point>, String> {
        map.points(ctx, &[])
            .map_err(|error| error.to_string())?
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())
    };
    let (domain, other) = (points(expected)?, points(found)?);
    if domain != other {
        return Err("another domain".into());
    }
    for point in domain {
        equal(
            found.evaluate(ctx, &point.dims, &point.ranges, &[]),
            expected.evaluate(ctx, &point.dims, &point.ranges, &[]),
        )?;
    }
    Ok(())
}

fn same_map(ctx: &Context, found: &IndexingMap, expected: &str) -> Outcome {
    let printed = found.display(ctx).to_string();
    if squeeze(&printed) == squeeze(expected) {
        return Ok(());
    }
    let meaning = parse(ctx, expected).and_then(|expected| {
        if found.is_known_empty(ctx) {
            let mut points = expected.points(ctx, &[]).map_err(|e| e.to_string())?;
            return match points.next() {
                None => Ok(()),
                Some(_) => Err("not empty".into()),
            };
        }
        same_meaning(ctx, found, &expected)
    });
    meaning.map_err(|reason| format!("expected {expected}, found {printed}: {reason}"))
}

fn same_expr(ctx: &Context, found: Expr, expected: &str) -> Outcome {
    let printed = ctx.display_with(found, numbered_name).to_string();
    if squeeze(&printed) == squeeze(expected) {
        return Ok(());
    }
    let expected_expr = expr(ctx, expected, &numbered)?;
    let mut vars = ctx.vars_of_all(&[found, expected_expr]);
    vars.insert(Var::Dim(0));
    let values = |seed: i64| -> HashMap<Var, i64> {
        let value = |i: usize| (seed * (i as i64 * 7 + 3)) % 41 - 20;
        vars.iter().enumerate().map(|(i, &var)| (var, value(i))).collect()
    };
    for seed in 0..200 {
        let values = values(seed);
        let value_of = |var| values.get(&var).copied();
        equal(ctx.eval(found, &value_of), ctx.eval(expected_expr, &value_of))
            .map_err(|error| format!("expected {expected}, found {printed}: {error}"))?;
    }
    if ctx.cost(expected_expr) < ctx.cost(found) {
        return Err(format!("expected {expected}, found {printed}: more operators"));
    }
    Ok(())
}

/// Applies the `ops` of a case and compares the flags that they return.
fn apply(ctx: &Context, map: &mut IndexingMap, row: &Value) -> Outcome {
    let empty = Vec::new();
    let ops = row["ops"].as_array().unwrap_or(&empty);
    for (i, op) in ops.iter().enumerate() {
        let changed = match op.as_str() {
            Some("simplify") => map.simplify(ctx),
            Some("remove_unused_vars") => !map.remove_unused_vars(ctx).is_empty(),
            Some("remove_unused_symbols") => !map.remove_unused_symbols(ctx).is_empty(),
            _ => return Err(format!("unknown op {op}")),
        };
        if let Some(expected) = row["changed"].get(i).and_then(Value::as_bool)
            && changed != expected
        {
            let printed = map.display(ctx);
            return Err(format!("changed is {changed}, found {printed}"));
        }
        if op == "simplify" && map.simplify(ctx) {
            return Err(format!("not a fixpoint: {}", map.display(ctx)));
        }
    }
    Ok(())
}

fn check_simplify(row: &Value) -> Outcome {
    let ctx = Context::new();
    let mut map = parse(&ctx, text(row, "input")?)?;
    let outcome = apply(&ctx, &mut map, row);
    let Some(expected) = row["expected"].as_str() else {
        return outcome;
    };
    let printed = map.display(&ctx).to_string();
    same_map(&ctx, &map, expected)?;
    // Where the result is shorter than expected, so may be the way to it.
    if squeeze(&printed) == squeeze(expected) { outcome } else { Ok(()) }
}

fn check_disputed(row: &Value) -> Outcome {
    let ctx = Context::new();
    let mut map = parse(&ctx, text(row, "input")?)?;
    apply(&ctx, &mut map, row)?;
    same_map(&ctx, &map, text(row, "sound")?)
}

fn check_compose(row: &Value) -> Outcome {
    let ctx = Context::new();
    let first = parse(&ctx, text(row, "lhs")?)?;
    let second = parse(&ctx, text(row, "rhs")?)?;
    let mut map = compose(&ctx, &first, &second).map_err(|error| error.to_string())?;
    apply(&ctx, &mut map, row)?;
    if let Some(expected) = row["num_results"].as_u64() {
        equal(map.results.len() as u64, expected)?;
    }
    same_map(&ctx, &map, text(row, "composed")?)
}

fn check_compose_plain(row: &Value) -> Outcome {
    let ctx = Context::new();
    let second = parse(&ctx, text(row, "lhs")?)?;
    let first = parse(&ctx, text(row, "rhs")?)?;
    let map = compose(&ctx, &first, &second).map_err(|error| error.to_string())?;
    equal(map.display(&ctx).to_string().as_str(), text(row, "composed")?)
}

fn check_roundtrip(row: &Value) -> Outcome {
    let ctx = Context::new();
    let map = parse(&ctx, text(row, "input")?)?;
    let printed = map.display(&ctx).to_string();
    equal(printed.as_str(), text(row, "expected")?)?;
    equal(parse(&ctx, &printed)?, map)
}

fn check_print_names(row: &Value) -> Outcome {
    let ctx = Context::new();
    let names = |key: &str| -> Vec<String> {
        let names = row[key].as_array().into_iter().flatten();
        names.filter_map(|n| n.as_str().map(String::from)).collect()
    };
    let mut map = parse(&ctx, text(row, "map")?)?;
    let (dims, ranges, runtimes) = (names("dim_names"), names("range_names"), names("rt_names"));
    // The case counts runtime variables among the symbols, after the range variables.
    map.runtimes = map.ranges.split_off(ranges.len());
    let first = u32::try_from(ranges.len()).map_err(|e| e.to_string())?;
    map.substitute(&ctx, &|var| match var {
        Var::Range(i) => Some(ctx.runtime(i.checked_sub(first)?)),
        _ => None,
    });
    let variables =
        [(&mut map.dims, dims), (&mut map.ranges, ranges), (&mut map.runtimes, runtimes)];
    for (variables, names) in variables {
        for (variable, name) in variables.iter_mut().zip(names) {
            variable.name = Some(name.into());
        }
    }
    equal(map.display(&ctx).to_string().as_str(), text(row, "expected")?)
}

fn check_parse_map(row: &Value) -> Outcome {
    let ctx = Context::new();
    let map = parse(&ctx, text(row, "input")?)?;
    let expected = &row["expected"];
    equal(Some(map.dims.len() as u64), expected["dims"].as_u64())?;
    equal(Some(map.ranges.len() as u64), expected["symbols"].as_u64())?;
    equal(Some(map.results.len() as u64), expected["results"].as_u64())
}

fn check_parse_map_prefix(row: &Value) -> Outcome {
    let ctx = Context::new();
    let input = text(row, "input")?;
    let (map, end) = IndexingMap::parse_prefix(&ctx, input).map_err(|e| e.to_string())?;
    equal(map.display(&ctx).to_string().as_str(), text(row, "expected")?)?;
    equal(input[end..].trim(), text(row, "rest")?)
}

fn check_parse_map_error(row: &Value) -> Outcome {
    let ctx = Context::new();
    match IndexingMap::parse(&ctx, text(row, "input")?) {
        Ok(map) => Err(format!("expected an error, found {}", map.display(&ctx))),
        Err(_) => Ok(()),
    }
}

fn check_parse_expr_error(row: &Value) -> Outcome {
    let ctx = Context::new();
    match parse_expr(&ctx, text(row, "expr")?, &numbered) {
        Ok(expr) => Err(format!("expected an error, found {}", ctx.display(expr))),
        Err(_) => Ok(()),
    }
}

fn check_print_expr(row: &Value) -> Outcome {
    let ctx = Context::new();
    let num_dims = row["num_dims"].as_u64();
    let name = |var: Var| match (var, num_dims) {
        (Var::Dim(i), Some(dims)) if u64::from(i) < dims => format!("d{i}"),
        (Var::Dim(i), Some(dims)) => format!("s{}", u64::from(i) - dims),
        _ => numbered_name(var),
    };
    let parsed = expr(&ctx, text(row, "expr")?, &numbered)?;
    equal(ctx.display_with(parsed, name).to_string().as_str(), text(row, "expected")?)
}

fn check_canonicalize(row: &Value) -> Outcome {
    let ctx = Context::new();
    let canonical = ctx.canonicalize(expr(&ctx, text(row, "expr")?, &numbered)?);
    equal(ctx.canonicalize(canonical), canonical)?;
    same_expr(&ctx, canonical, text(row, "expected")?)
}

fn check_create_fold(row: &Value) -> Outcome {
    let ctx = Context::new();
    let folded = expr(&ctx, text(row, "expr")?, &numbered)?;
    equal(ctx.display_with(folded, numbered_name).to_string().as_str(), text(row, "expected")?)
}

fn check_create_distinct(row: &Value) -> Outcome {
    let ctx = Context::new();
    let lhs = expr(&ctx, text(row, "lhs")?, &numbered)?;
    let rhs = expr(&ctx, text(row, "rhs")?, &numbered)?;
    equal(Some(lhs == rhs), row["expected"].as_bool())?;
    equal(ctx.canonicalize(lhs), ctx.canonicalize(rhs))
}

fn check_replace_expr(row: &Value) -> Outcome {
    let ctx = Context::new();
    let whole = expr(&ctx, text(row, "expr")?, &numbered)?;
    let from = expr(&ctx, text(row, "from")?, &numbered)?;
    let to = expr(&ctx, text(row, "to")?, &numbered)?;
    let replaced = ctx.replace(whole, from, to);
    equal(ctx.display_with(replaced, numbered_name).to_string().as_str(), text(row, "expected")?)
}

fn check_is_multiple_of(row: &Value) -> Outcome {
    let ctx = Context::new();
    let expr = expr(&ctx, text(row, "expr")?, &numbered)?;
    let factor = row["factor"].as_i64().ok_or("no factor")?;
    equal(Some(ctx.is_multiple_of(expr, factor)), row["expected"].as_bool())
}

fn check_evaluate_expr(row: &Value) -> Outcome {
    let ctx = Context::new();
    let expr = expr(&ctx, text(row, "expr")?, &numbered)?;
    let values = integers(row, "vars")?;
    let value_of = |var| match var {
        Var::Dim(i) => values.get(i as usize).copied(),
        _ => None,
    };
    equal(ctx.eval(expr, &value_of).ok(), row["expected"].as_i64())
}

fn check_evaluate(row: &Value) -> Outcome {
    let ctx = Context::new();
    let map = parse(&ctx, text(row, "input")?)?;
    let values = map.evaluate(&ctx, &integers(row, "dims")?, &integers(row, "symbols")?, &[]);
    equal(values, Ok(integers(row, "expected")?))
}

fn check_constraints_satisfied(row: &Value) -> Outcome {
    let ctx = Context::new();
    let map = parse(&ctx, text(row, "input")?)?;
    let (dims, ranges) = (integers(row, "dims")?, integers(row, "symbols")?);
    let satisfied = map.satisfies_constraints(&ctx, &dims, &ranges, &[]);
    equal(satisfied.ok(), row["expected"].as_bool())
}

fn check_divmod_law(row: &Value) -> Outcome {
    let ctx = Context::new();
    let operand = |key: &str| row[key].as_i64().ok_or("no operand");
    let lhs = ctx.constant(operand("numerator")?);
    let rhs = ctx.constant(operand("denominator")?);
    let value = |expr| ctx.eval(expr, &|_| None).map_err(|error| error.to_string());
    let floor = value(ctx.floor_div(lhs, rhs))?;
    let ceil = value(ctx.ceil_div(lhs, rhs))?;
    let modulo = value(ctx.modulo(lhs, rhs))?;
    for law in row["expected"].as_array().into_iter().flatten() {
        let holds = match law.as_str() {
            Some("mod > 0") => 0 < modulo,
            Some("mod == 0") => modulo == 0,
            Some("floordiv + 1 == ceildiv") => floor + 1 == ceil,
            Some("floordiv == ceildiv") => floor == ceil,
            _ => return Err(format!("unknown law {law}")),
        };
        if !holds {
            return Err(format!("{law} fails: {floor} {ceil} {modulo}"));
        }
    }
    Ok(())
}

fn check_is_identity(row: &Value) -> Outcome {
    let ctx = Context::new();
    let map = parse(&ctx, text(row, "input")?)?;
    equal(Some(map.is_identity(&ctx)), row["expected"].as_bool())
}

fn range_of(row: &Value, key: &str) -> Result<Interval, String> {
    let ctx = Context::new();
    let map = parse(&ctx, text(row, "input")?)?;
    let intervals = map.intervals(&ctx);
    let expr = expr(&ctx, text(row, key)?, &of_map)?;
    Ok(ctx.interval_of(expr, &|var| intervals.of(var)))
}

fn check_range_evaluator(row: &Value) -> Outcome {
    equal(range_of(row, "expr")?, interval(row, "expected")?)
}

fn check_always_positive_or_zero(row: &Value) -> Outcome {
    let range = range_of(row, "expr")?;
    equal(Some(0 <= range.lo), row["expected"].as_bool())
}

fn check_used_parameters(row: &Value) -> Outcome {
    let ctx = Context::new();
    let mut exprs = Vec::new();
    for text in row["exprs"].as_array().into_iter().flatten() {
        exprs.push(expr(&ctx, text.as_str().unwrap_or_default(), &of_map)?);
    }
    let vars = ctx.vars_of_all(&exprs);
    let numbers = |pick: fn(&Var) -> Option<i64>| vars.iter().filter_map(pick).collect::<Vec<_>>();
    let dims = numbers(|var| match var {
        Var::Dim(i) => Some(i64::from(*i)),
        _ => None,
    });
    let symbols = numbers(|var| match var {
        Var::Range(i) => Some(i64::from(*i)),
        _ => None,
    });
    equal(dims, integers(&row["expected"], "dims")?)?;
    equal(symbols, integers(&row["expected"], "symbols")?)
}

fn check_map_equality(row: &Value) -> Outcome {
    let ctx = Context::new();
    let (lhs, rhs) = (parse(&ctx, text(row, "lhs")?)?, parse(&ctx, text(row, "rhs")?)?);
    equal(Some(lhs == rhs), row["expected"].as_bool())
}

fn check_removed_bits(row: &Value) -> Outcome {
    let ctx = Context::new();
    let mut map = parse(&ctx, text(row, "input")?)?;
    let vars: Vec<Var> = map.vars().map(|(var, _)| var).collect();
    let removed = map.remove_unused_vars(&ctx);
    let bits: Vec<Value> = vars.iter().map(|var| Value::Bool(removed.contains(var))).collect();
    equal(&Value::Array(bits), &row["expected"])
}

fn check_interval_compare(row: &Value) -> Outcome {
    let compare = match text(row, "op")? {
        "gt" => Interval::gt,
        "lt" => Interval::lt,
        "ge" => Interval::ge,
        "le" => Interval::le,
        "eq" => Interval::eq_all,
        "ne" => Interval::ne_all,
        op => return Err(format!("unknown comparison {op}")),
    };
    equal(compare(interval(row, "lhs")?, interval(row, "rhs")?), row["expected"].as_bool())
}

fn check_interval_arith(row: &Value) -> Outcome {
    let op = match text(row, "op")? {
        "add" => Interval::add,
        "mul" => Interval::mul,
        op => return Err(format!("unknown operation {op}")),
    };
    equal(op(interval(row, "lhs")?, interval(row, "rhs")?), interval(row, "expected")?)
}

fn check(kind: &str, row: &Value) -> Outcome {
    match kind {
        "simplify"
        | "simplify_changed"
        | "remove_unused_symbols"
        | "remove_unused_vars"
        | "parse_normalize" => check_simplify(row),
        "simplify_disputed" => check_disputed(row),
        "compose" => check_compose(row),
        "compose_plain" => check_compose_plain(row),
        "roundtrip" => check_roundtrip(row),
        "print_names" => check_print_names(row),
        "parse_map" => check_parse_map(row),
        "parse_map_prefix" => check_parse_map_prefix(row),
        "parse_map_error" => check_parse_map_error(row),
        "parse_expr_error" => check_parse_expr_error(row),
        "print_expr" => check_print_expr(row),
        "canonicalize" => check_canonicalize(row),
        "create_fold" => check_create_fold(row),
        "create_distinct" => check_create_distinct(row),
        "replace_expr" => check_replace_expr(row),
        "is_multiple_of" => check_is_multiple_of(row),
        "evaluate_expr" => check_evaluate_expr(row),
        "evaluate" => check_evaluate(row),
        "constraints_satisfied" => check_constraints_satisfied(row),
        "divmod_law" => check_divmod_law(row),
        "is_identity" => check_is_identity(row),
        "range_evaluator" => check_range_evaluator(row),
        "always_positive_or_zero" => check_always_positive_or_zero(row),
        "used_parameters" => check_used_parameters(row),
        "map_equality" => check_map_equality(row),
        "remove_unused_vars_bits" => check_removed_bits(row),
        "interval_compare" => check_interval_compare(row),
        "interval_arith" => check_interval_arith(row),
        _ => Err("no such check".into()),
    }
}

#[test]
fn xla_simplify_cases() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/xla/simplify.jsonl");
    let lines = std::fs::read_to_string(&path).expect("the cases are in the repository");
    let mut failures = Vec::new();
    let mut passed: BTreeMap<String, usize> = BTreeMap::new();
    for line in lines.lines() {
        let row: Value = serde_json::from_str(line).expect("a line is a JSON object");
        let (kind, name) = (
            text(&row, "kind").expect("a case has a kind"),
            text(&row, "name").expect("a case has a name"),
        );
        let supported = !UNSUPPORTED.contains(&kind) && !UNSUPPORTED.contains(&name);
        match (check(kind, &row), supported) {
            (Ok(()), true) => *passed.entry(kind.to_string()).or_default() += 1,
            (Err(_), false) => {}
            (Err(error), true) => failures.push(format!("{kind} {name}: {error}")),
            (Ok(()), false) => {
                failures.push(format!("{kind} {name}: passes, remove it from UNSUPPORTED"));
            }
        }
    }
    println!("{passed:?}");
    assert!(failures.is_empty(), "{} cases:\n{}", failures.len(), failures.join("\n"));
}
