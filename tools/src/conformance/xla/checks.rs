//! Checks of the kinds of `simplify.jsonl`: what XLA documents and tests of the index algebra.
//!
//! Maps and expressions are compared as text without white space. Another text passes where it
//! means the same, with no more operators and no more constraints.
//!
//! This file needs `tc-ir` and `serde_json` only: the tests of `tc-ir` include it, so that they
//! need no LLVM.

use serde_json::Value;
use tc_ir::text::{display_map, parse_expr};
use tc_ir::{
    ConstraintExpression, Context, Equality, Expr, IndexingMap, Interval, ParseError, Values, Var,
    Variable, VariableKind, compose,
};

/// How a case came out well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pass {
    /// As the case spells it.
    Exact,
    /// In other words of the same length.
    Spelling,
    /// In fewer words.
    Simpler,
    /// It does not apply, for a reason.
    Skipped(String),
}

/// How a case came out, or what is wrong.
pub type Outcome = Result<Pass, String>;

/// What a kind of cases is about.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Simplification of maps, and changes of their variables.
    Simplify,
    /// Composition of maps.
    Compose,
    /// Parsing and printing.
    Text,
    /// Expressions without bounds.
    Expressions,
    /// What a map answers.
    Queries,
    /// Arithmetic and comparison of intervals.
    Intervals,
    /// Disjunctions of conjunctions of constraints.
    Constraints,
}

/// A kind of cases.
pub struct Check {
    /// The field `kind` of its cases.
    pub kind: &'static str,
    /// What it is about.
    pub topic: Topic,
    /// Runs a case.
    pub run: fn(&Value) -> Outcome,
}

const fn check(kind: &'static str, topic: Topic, run: fn(&Value) -> Outcome) -> Check {
    Check { kind, topic, run }
}

/// Every kind.
pub const CHECKS: &[Check] = &[
    check("simplify", Topic::Simplify, check_simplify),
    check("simplify_changed", Topic::Simplify, check_simplify),
    check("simplify_disputed", Topic::Simplify, check_disputed),
    check("rescale_symbols", Topic::Simplify, check_simplify),
    check("remove_unused_symbols", Topic::Simplify, check_simplify),
    check("remove_unused_vars", Topic::Simplify, check_simplify),
    check("remove_unused_vars_bits", Topic::Simplify, check_removed_bits),
    check("parse_normalize", Topic::Simplify, check_parse_normalize),
    check("convert_symbols_to_dimensions", Topic::Simplify, check_simplify),
    check("convert_range_vars_to_dimensions", Topic::Simplify, check_simplify),
    check("compress_dims", Topic::Simplify, check_compress),
    check("compress_symbols", Topic::Simplify, check_compress),
    check("compose", Topic::Compose, check_compose),
    check("compose_plain", Topic::Compose, check_compose_plain),
    check("roundtrip", Topic::Text, check_roundtrip),
    check("print", Topic::Text, check_print),
    check("print_names", Topic::Text, check_print_names),
    check("print_expr", Topic::Text, check_print_expr),
    check("parse_map", Topic::Text, check_parse_map),
    check("parse_map_prefix", Topic::Text, check_parse_map_prefix),
    check("parse_map_error", Topic::Text, check_parse_map_error),
    check("parse_expr_error", Topic::Text, check_parse_expr_error),
    check("canonicalize", Topic::Expressions, check_canonicalize),
    check("create_fold", Topic::Expressions, check_create_fold),
    check("create_distinct", Topic::Expressions, check_create_distinct),
    check("replace_expr", Topic::Expressions, check_replace_expr),
    check("is_multiple_of", Topic::Expressions, check_is_multiple_of),
    check("evaluate_expr", Topic::Expressions, check_evaluate_expr),
    check("divmod_law", Topic::Expressions, check_divmod_law),
    check("evaluate", Topic::Queries, check_evaluate),
    check("constraints_satisfied", Topic::Queries, check_constraints_satisfied),
    check("is_identity", Topic::Queries, check_is_identity),
    check("range_evaluator", Topic::Queries, check_range_evaluator),
    check("always_positive_or_zero", Topic::Queries, check_always_positive_or_zero),
    check("used_parameters", Topic::Queries, check_used_parameters),
    check("map_equality", Topic::Queries, check_map_equality),
    check("verify", Topic::Queries, check_verify),
    check("variable_kinds", Topic::Queries, check_variable_kinds),
    check("interval_compare", Topic::Intervals, check_interval_compare),
    check("interval_arith", Topic::Intervals, check_interval_arith),
    check("constraint_expression", Topic::Constraints, check_constraint_expression),
];

/// The check of a case, if its kind is one of [`CHECKS`].
pub fn find(row: &Value) -> Option<&'static Check> {
    let kind = row.get("kind")?.as_str()?;
    CHECKS.iter().find(|check| check.kind == kind)
}

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
    if found == expected {
        Ok(Pass::Exact)
    } else {
        Err(format!("expected {expected:?}, found {found:?}"))
    }
}

/// Compares texts character by character.
fn equal_text(found: impl ToString, expected: &str) -> Outcome {
    equal(found.to_string().as_str(), expected)
}

fn located(text: &str, error: &ParseError) -> String {
    format!("{error}, in {text}")
}

/// Reads a map.
pub fn parse(ctx: &Context, text: &str) -> Result<IndexingMap, String> {
    IndexingMap::parse(ctx, text).map_err(|error| located(text, &error))
}

/// The variable `v0` and the like.
fn numbered(name: &str) -> Option<Var> {
    name.strip_prefix('v')?.parse().ok().map(Var::Dim)
}

/// A variable of a map with default names.
pub fn of_map(name: &str) -> Option<Var> {
    let number = |prefix: &str| name.strip_prefix(prefix)?.parse().ok();
    number("rt")
        .map(Var::Runtime)
        .or_else(|| number("d").map(Var::Dim))
        .or_else(|| number("s").map(Var::Range))
}

fn expr(ctx: &Context, text: &str, resolve: &dyn Fn(&str) -> Option<Var>) -> Result<Expr, String> {
    parse_expr(ctx, text, resolve).map_err(|error| located(text, &error))
}

fn numbered_name(var: Var) -> String {
    match var {
        Var::Dim(i) | Var::Range(i) | Var::Runtime(i) => format!("v{i}"),
    }
}

/// The text without white space.
pub fn squeeze(text: &str) -> String {
    text.split_whitespace().collect()
}

fn num_operators(ctx: &Context, map: &IndexingMap) -> u64 {
    let constraints = map.constraints.iter().map(|c| &c.expr);
    map.results.iter().chain(constraints).map(|&expr| u64::from(ctx.cost(expr))).sum()
}

/// Whether the maps mean the same and `found` is no larger than `expected`.
fn same_meaning(ctx: &Context, found: &IndexingMap, expected: &IndexingMap) -> Outcome {
    let operators = [found, expected].map(|map| num_operators(ctx, map));
    let constraints = [found, expected].map(|map| map.constraints.len());
    let empty = [found, expected].map(|map| map.is_known_empty(ctx));
    if operators[1] < operators[0] {
        return Err("more operators".into());
    }
    if constraints[1] < constraints[0] {
        return Err("more constraints".into());
    }
    match found.equality(ctx, expected) {
        // On a large domain: at its corners and at 10 000 points.
        Equality::Equal | Equality::Unknown => {}
        Equality::Different(difference) => return Err(format!("{difference:?}")),
    }
    let simpler =
        operators[0] < operators[1] || constraints[0] < constraints[1] || empty[0] && !empty[1];
    Ok(if simpler { Pass::Simpler } else { Pass::Spelling })
}

/// Compares a map with its expected text.
pub fn same_map(ctx: &Context, found: &IndexingMap, expected: &str) -> Outcome {
    let printed = found.display(ctx).to_string();
    if squeeze(&printed) == squeeze(expected) {
        return Ok(Pass::Exact);
    }
    parse(ctx, expected)
        .and_then(|expected| same_meaning(ctx, found, &expected))
        .map_err(|reason| format!("expected {expected}, found {printed}: {reason}"))
}

fn same_expr(ctx: &Context, found: Expr, expected: &str) -> Outcome {
    let printed = ctx.display_with(found, numbered_name).to_string();
    if squeeze(&printed) == squeeze(expected) {
        return Ok(Pass::Exact);
    }
    let expected_expr = expr(ctx, expected, &numbered)?;
    let vars = ctx.vars_of_all(&[found, expected_expr]);
    let count = vars.iter().map(|var| match var {
        Var::Dim(i) | Var::Range(i) | Var::Runtime(i) => *i as usize + 1,
    });
    // Without this, an expression of few variables could ask for 2^32 of them.
    let dims = count.max().unwrap_or(0);
    if 1 << 16 < dims {
        return Err("expected variables with small numbers".into());
    }
    let map = |result| IndexingMap {
        dims: vec![Variable::default(); dims],
        results: vec![result],
        ..IndexingMap::default()
    };
    same_meaning(ctx, &map(found), &map(expected_expr))
        .map_err(|reason| format!("expected {expected}, found {printed}: {reason}"))
}

/// Applies the `ops` of a case. Returns the first flag that differs from those of the case.
fn apply(ctx: &Context, map: &mut IndexingMap, row: &Value) -> Result<Option<String>, String> {
    let kind = row["kind"].as_str().filter(|kind| kind.starts_with("convert_"));
    let ops: Vec<&str> = match row["ops"].as_array() {
        Some(ops) => ops.iter().map(|op| op.as_str().unwrap_or("no text")).collect(),
        None => kind.into_iter().collect(),
    };
    let mut mismatch = None;
    for (i, op) in ops.into_iter().enumerate() {
        let before = map.clone();
        let changed = match op {
            "simplify" => map.simplify(ctx),
            "rescale_symbols" => map.rescale_symbols(ctx),
            "remove_unused_vars" => !map.remove_unused_vars(ctx).is_empty(),
            "remove_unused_symbols" => !map.remove_unused_symbols(ctx).is_empty(),
            "convert_symbols_to_dimensions" => {
                map.convert_symbols_to_dimensions(ctx);
                *map != before
            }
            "convert_range_vars_to_dimensions" => {
                let indices = integers(row, "range_var_indices")?;
                let numbers: Vec<u32> =
                    indices.into_iter().filter_map(|i| u32::try_from(i).ok()).collect();
                map.convert_ranges_to_dimensions(ctx, &numbers);
                *map != before
            }
            _ => return Err(format!("unknown op '{op}'")),
        };
        if let Some(expected) = row["changed"].get(i).and_then(Value::as_bool)
            && changed != expected
            && mismatch.is_none()
        {
            mismatch = Some(format!("changed is {changed}, found {}", map.display(ctx)));
        }
        if op == "simplify" && map.simplify(ctx) {
            return Err(format!("not a fixpoint: {}", map.display(ctx)));
        }
        if op == "rescale_symbols" {
            same_values(ctx, &before, map)?;
        }
    }
    Ok(mismatch)
}

/// Whether two maps with small domains take the same values, each as often.
fn same_values(ctx: &Context, before: &IndexingMap, after: &IndexingMap) -> Outcome {
    let mut values = Vec::new();
    for map in [before, after] {
        let Ok(points) = map.points(ctx, &[]) else { return Ok(Pass::Exact) };
        let mut found = Vec::new();
        for point in points.take(1 << 16) {
            let point = point.map_err(|error| error.to_string())?;
            found.push(map.evaluate(ctx, &point.dims, &point.ranges, &[]));
        }
        if found.len() == 1 << 16 {
            return Ok(Pass::Exact);
        }
        found.sort_by_key(|values| format!("{values:?}"));
        values.push(found);
    }
    if values[0] == values[1] { Ok(Pass::Exact) } else { Err("other values".into()) }
}

fn check_simplify(row: &Value) -> Outcome {
    let ctx = Context::new();
    let mut map = parse(&ctx, text(row, "input")?)?;
    let mismatch = apply(&ctx, &mut map, row)?;
    let expected: Vec<&str> = match (row["expected"].as_str(), row["expected_any"].as_array()) {
        (Some(expected), _) => vec![expected],
        (None, Some(any)) => any.iter().filter_map(Value::as_str).collect(),
        (None, None) => return mismatch.map_or(Ok(Pass::Exact), Err),
    };
    let mut outcome = Err("nothing expected".to_string());
    for expected in expected {
        let found = same_map(&ctx, &map, expected);
        if found == Ok(Pass::Exact) || outcome.is_err() {
            outcome = found;
        }
    }
    match (outcome, mismatch) {
        (Ok(Pass::Exact), Some(mismatch)) => Err(mismatch),
        // Where the result is another than expected, so may be the way to it.
        (outcome, _) => outcome,
    }
}

/// Constraints are kept as they are written; added one by one, they narrow each other.
fn check_parse_normalize(row: &Value) -> Outcome {
    let ctx = Context::new();
    let mut map = parse(&ctx, text(row, "input")?)?;
    for constraint in std::mem::take(&mut map.constraints) {
        map.add_constraint(&ctx, constraint.expr, constraint.interval);
    }
    map.sort_constraints(&ctx);
    same_map(&ctx, &map, text(row, "expected")?)
}

fn check_disputed(row: &Value) -> Outcome {
    let ctx = Context::new();
    let mut map = parse(&ctx, text(row, "input")?)?;
    let mismatch = apply(&ctx, &mut map, row)?;
    if mismatch.is_none() && same_map(&ctx, &map, text(row, "expected")?).is_ok() {
        return Ok(Pass::Exact);
    }
    same_map(&ctx, &map, text(row, "sound")?)?;
    let printed = map.display(&ctx);
    Ok(Pass::Skipped(format!("the recorded answer is disputed; found the sound one, {printed}")))
}

fn check_compress(row: &Value) -> Outcome {
    let ctx = Context::new();
    let mut map = parse(&ctx, text(row, "input")?)?;
    let dims = row["kind"] == "compress_dims";
    let vars: Vec<Var> =
        map.vars().map(|(var, _)| var).filter(|var| matches!(var, Var::Dim(_)) == dims).collect();
    let flags = row["unused"].as_array().ok_or("no list 'unused' in the case")?;
    let unused: Vec<Var> = vars
        .into_iter()
        .zip(flags)
        .filter_map(|(var, flag)| flag.as_bool().unwrap_or(false).then_some(var))
        .collect();
    map.compress(&ctx, &unused).map_err(|error| error.to_string())?;
    same_map(&ctx, &map, text(row, "expected")?)
}

fn check_print(row: &Value) -> Outcome {
    let ctx = Context::new();
    let map = row["input"].as_str().map(|input| parse(&ctx, input)).transpose()?;
    equal_text(display_map(map.as_ref(), &ctx), text(row, "expected")?)
}

/// The bounds stand beside the map: XLA keeps the number of variables twice, and checks that they
/// agree.
fn check_verify(row: &Value) -> Outcome {
    let ctx = Context::new();
    let mut map = parse(&ctx, text(row, "input")?)?;
    let mut holds = true;
    for (key, variables) in
        [("dim_upper_bounds", &mut map.dims), ("symbol_upper_bounds", &mut map.ranges)]
    {
        if row.get(key).is_some() {
            let extents = integers(row, key)?;
            holds &= variables.len() == extents.len();
            for (variable, extent) in variables.iter_mut().zip(extents) {
                variable.set_interval(&ctx, Interval::new(0, extent.saturating_sub(1)));
            }
        }
    }
    equal(Some(holds && map.verify(&ctx).is_ok()), row["expected"].as_bool())
}

fn check_variable_kinds(row: &Value) -> Outcome {
    let expected = row["expected"].as_object().ok_or("no names in the case")?;
    for (name, kind) in expected {
        equal(Some(VariableKind::of_name(name).to_string().as_str()), kind.as_str())?;
    }
    Ok(Pass::Exact)
}

fn check_constraint_expression(row: &Value) -> Outcome {
    let ctx = Context::new();
    let constraints = |key: &str| {
        let text = text(row, key)?;
        ConstraintExpression::parse(&ctx, text, &numbered).map_err(|error| located(text, &error))
    };
    let result = match text(row, "op")? {
        "and" => constraints("lhs")?.and(&constraints("rhs")?),
        "or" => constraints("lhs")?.or(&constraints("rhs")?),
        "simplify" => {
            let mut constraints = constraints("input")?;
            constraints.simplify(&ctx);
            if constraints.clone().simplify(&ctx) {
                return Err("not a fixpoint".into());
            }
            constraints
        }
        "is_satisfied" => {
            let point = Values { dims: integers(row, "values")?, ..Values::default() };
            let satisfied = constraints("input")?.is_satisfied(&ctx, &|var| point.of(var));
            return equal(satisfied.ok(), row["expected"].as_bool());
        }
        op => return Err(format!("unknown op '{op}'")),
    };
    let printed = result.display_with(&ctx, numbered_name).to_string();
    equal(squeeze(&printed), squeeze(text(row, "expected")?))
}

fn check_compose(row: &Value) -> Outcome {
    let ctx = Context::new();
    let first = parse(&ctx, text(row, "lhs")?)?;
    let second = parse(&ctx, text(row, "rhs")?)?;
    let mut map = compose(&ctx, &first, &second).map_err(|error| error.to_string())?;
    let mismatch = apply(&ctx, &mut map, row)?;
    if let Some(expected) = row["num_results"].as_u64() {
        equal(map.results.len() as u64, expected)?;
    }
    match (same_map(&ctx, &map, text(row, "composed")?), mismatch) {
        (Ok(Pass::Exact), Some(mismatch)) => Err(mismatch),
        (outcome, _) => outcome,
    }
}

fn check_compose_plain(row: &Value) -> Outcome {
    let ctx = Context::new();
    let second = parse(&ctx, text(row, "lhs")?)?;
    let first = parse(&ctx, text(row, "rhs")?)?;
    let map = compose(&ctx, &first, &second).map_err(|error| error.to_string())?;
    equal_text(map.display(&ctx), text(row, "composed")?)
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
    map.runtimes = map.ranges.split_off(ranges.len().min(map.ranges.len()));
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
    equal_text(map.display(&ctx), text(row, "expected")?)
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
    let (map, end) =
        IndexingMap::parse_prefix(&ctx, input).map_err(|error| located(input, &error))?;
    equal_text(map.display(&ctx), text(row, "expected")?)?;
    equal(input[end..].trim(), text(row, "rest")?)
}

fn check_parse_map_error(row: &Value) -> Outcome {
    let ctx = Context::new();
    match IndexingMap::parse(&ctx, text(row, "input")?) {
        Ok(map) => Err(format!("expected an error, found {}", map.display(&ctx))),
        Err(_) => Ok(Pass::Exact),
    }
}

fn check_parse_expr_error(row: &Value) -> Outcome {
    let ctx = Context::new();
    match parse_expr(&ctx, text(row, "expr")?, &numbered) {
        Ok(expr) => Err(format!("expected an error, found {}", ctx.display(expr))),
        Err(_) => Ok(Pass::Exact),
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
    equal_text(ctx.display_with(parsed, name), text(row, "expected")?)
}

fn check_canonicalize(row: &Value) -> Outcome {
    let ctx = Context::new();
    let canonical = ctx.canonicalize(expr(&ctx, text(row, "expr")?, &numbered)?);
    equal(ctx.canonicalize(canonical), canonical)?;
    same_expr(&ctx, canonical, text(row, "expected")?)
}

fn check_create_fold(row: &Value) -> Outcome {
    let ctx = Context::new();
    same_expr(&ctx, expr(&ctx, text(row, "expr")?, &numbered)?, text(row, "expected")?)
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
    equal_text(ctx.display_with(replaced, numbered_name), text(row, "expected")?)
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
    Ok(Pass::Exact)
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
        "sub" => Interval::sub,
        "mul" => Interval::mul,
        "min" => Interval::min,
        "max" => Interval::max,
        op => return Err(format!("unknown operation {op}")),
    };
    equal(op(interval(row, "lhs")?, interval(row, "rhs")?), interval(row, "expected")?)
}
