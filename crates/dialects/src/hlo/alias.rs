//! Results that take the memory of parameters: `input_output_alias` of a module.

use super::{Module, Shape};

/// The name of the attribute of a module.
pub const INPUT_OUTPUT_ALIAS: &str = "input_output_alias";

/// A result that may be written to the memory of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Alias {
    /// The index in the tuple of results; empty if the result is an array.
    output: Vec<usize>,
    parameter: usize,
    /// The index in the parameter; empty if the parameter is an array.
    index: Vec<usize>,
}

/// The aliases of a module.
fn aliases(module: &Module) -> Vec<Alias> {
    let text = module.header.others.iter().find(|(name, _)| name == INPUT_OUTPUT_ALIAS);
    text.and_then(|(_, text)| parse(text)).unwrap_or_default()
}

/// Checks that aliases are of results and parameters that the entry has, and that no two have a value in common.
///
/// # Errors
/// The text says which one is wrong.
pub(super) fn check(module: &Module) -> Result<(), String> {
    let entry = module.entry();
    let parameters: Vec<_> = entry.parameter_shapes().collect();
    let braced = |index: &[usize]| {
        let places: Vec<_> = index.iter().map(usize::to_string).collect();
        format!("{{{}}}", places.join(", "))
    };
    let fail = |message: String| Err(format!("'{INPUT_OUTPUT_ALIAS}' {message}"));
    let mut known: Vec<Alias> = Vec::new();
    for alias in aliases(module) {
        let Alias { output, parameter, index } = &alias;
        if array(&entry.root().shape, output).is_none() {
            let (output, shape) = (braced(output), entry.root().shape.without_layout());
            return fail(format!("has the result {output}, which {shape} does not have"));
        }
        let Some(shape) = parameters.get(*parameter) else {
            let count = parameters.len();
            return fail(format!(
                "has parameter {parameter}, and the entry has {count} parameters"
            ));
        };
        if array(shape, index).is_none() {
            let (index, shape) = (braced(index), shape.without_layout());
            return fail(format!(
                "has the element {index} of parameter {parameter}, which {shape} does not have"
            ));
        }
        let output = braced(output);
        if known.iter().any(|it| it.output == alias.output) {
            return fail(format!("has two parameters for the result {output}; remove one"));
        }
        let is_same = |it: &&Alias| it.parameter == *parameter && it.index == *index;
        if let Some(first) = known.iter().find(is_same) {
            let (first, index) = (braced(&first.output), braced(index));
            return fail(format!(
                "has parameter {parameter} at {index} for two results, {first} and {output}; remove one"
            ));
        }
        known.push(alias);
    }
    Ok(())
}

/// The arrays of results, by number, that take the memory of arrays of parameters. Arrays have numbers in the order in
/// which they are passed. Where the types differ, or where another result has the memory already, there is none.
pub fn aliased_arrays(module: &Module) -> Vec<(usize, usize)> {
    let entry = module.entry();
    let parameters: Vec<_> = entry.parameter_shapes().collect();
    let mut found: Vec<(usize, usize)> = Vec::new();
    for Alias { output, parameter, index } in aliases(module) {
        let Some(shape) = parameters.get(parameter) else { continue };
        let before: usize = parameters[..parameter].iter().map(|it| num_arrays(it)).sum();
        let (from, to) = (array(shape, &index), array(&entry.root().shape, &output));
        if let (Some((from, have)), Some((to, want))) = (from, to)
            && matches!((have, want), (Shape::Array(have), Shape::Array(want))
                if have.element_type == want.element_type && have.dims == want.dims)
            && found.iter().all(|it| it.0 != to && it.1 != before + from)
        {
            found.push((to, before + from));
        }
    }
    found
}

/// Whether a text is a list of aliases.
pub(super) fn is_valid(text: &str) -> bool {
    parse(text).is_some()
}

/// The aliases in `{ {0}: (2, {}, may-alias), {1}: (0, {1}) }`.
fn parse(text: &str) -> Option<Vec<Alias>> {
    let text: String = text.chars().filter(|it| !it.is_whitespace()).collect();
    let mut rest = text.strip_prefix('{')?.strip_suffix('}')?;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (output, after) = rest.strip_prefix('{')?.split_once("}:(")?;
        let (parameter, after) = after.split_once(",{")?;
        let (index, after) = after.split_once('}')?;
        let (kind, after) = after.split_once(')')?;
        if !["", ",may-alias", ",must-alias"].contains(&kind) {
            return None;
        }
        let (output, index) = (numbers(output)?, numbers(index)?);
        found.push(Alias { output, parameter: parameter.parse().ok()?, index });
        rest = match after.strip_prefix(',') {
            Some(after) if !after.is_empty() => after,
            Some(_) => return None,
            None if after.is_empty() => after,
            None => return None,
        };
    }
    Some(found)
}

fn numbers(text: &str) -> Option<Vec<usize>> {
    match text {
        "" => Some(Vec::new()),
        _ => text.split(',').map(|it| it.parse().ok()).collect(),
    }
}

fn num_arrays(shape: &Shape) -> usize {
    let mut count = 0;
    shape.for_each_array(&mut |_| count += 1);
    count
}

/// The number of an array in a shape, and its shape.
fn array<'s>(mut shape: &'s Shape, index: &[usize]) -> Option<(usize, &'s Shape)> {
    let mut before = 0;
    for place in index {
        let Shape::Tuple(elements) = shape else { return None };
        before += elements.get(..*place)?.iter().map(num_arrays).sum::<usize>();
        shape = elements.get(*place)?;
    }
    Some((before, shape))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_read() {
        let alias = |output: &[usize], parameter, index: &[usize]| Alias {
            output: output.to_vec(),
            parameter,
            index: index.to_vec(),
        };
        assert_eq!(parse("{}"), Some(Vec::new()));
        assert_eq!(parse("{ {}: (0, {}, may-alias) }"), Some(vec![alias(&[], 0, &[])]));
        let text = "{ {0}: (2, {1, 3}, must-alias), {1}: (0, {}) }";
        assert_eq!(parse(text), Some(vec![alias(&[0], 2, &[1, 3]), alias(&[1], 0, &[])]));
        for text in
            ["", "{", "{ {0}: 1 }", "{ {0}: (1, {}, no) }", "{ {0}: (1, {}), }", "{ {x}: (1, {}) }"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
