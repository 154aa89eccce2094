//! Programs that are drawn.

use proptest::prelude::*;
use proptest::sample::select;

/// A function of three parameters and statements.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    parameters: Vec<String>,
    result: &'static str,
    statements: Vec<Statement>,
}

/// A definition of one name by others, which are numbered after the parameters.
#[derive(Clone, Debug)]
struct Statement {
    uses: [usize; 2],
    value: String,
}

const ANNOTATIONS: &[&str] = &[
    "",
    "",
    "f32 s",
    "f32 [2]",
    "f32 [3]",
    "f32 [2,3]",
    "f32 [n]",
    "f32 [n]@s",
    "f32 s@[3]",
    "f32 [3,2,2]",
];

const RESULTS: &[&str] = &["", "", "f32 [2,3]", "f32 [4]", "f32 [n]@s"];

/// Programs of few kinds of calls, with annotations here and there.
pub(super) fn drawn(most: usize) -> impl Strategy<Value = Drawn> {
    let annotations = prop::collection::vec(select(ANNOTATIONS), 3);
    drawn_of(most, 13, annotations)
}

/// Programs of more kinds of calls, many of them without annotations, so that more depends on what is decided
/// about point-wise operations.
pub(super) fn drawn_open(most: usize) -> impl Strategy<Value = Drawn> {
    let annotated = prop::collection::vec(select(ANNOTATIONS), 3);
    drawn_of(most, 18, prop_oneof![Just(vec![""; 3]), annotated])
}

fn drawn_of(
    most: usize,
    num_kinds: usize,
    annotations: impl Strategy<Value = Vec<&'static str>>,
) -> impl Strategy<Value = Drawn> {
    let lines = prop::collection::vec((0..num_kinds, 0..9_usize, 0..9_usize), 1..most);
    (annotations, lines, select(RESULTS)).prop_map(|(annotations, lines, result)| {
        let parameters = annotations.iter().enumerate().map(|(number, ty)| match *ty {
            "" => format!("v{number}"),
            _ => format!("v{number} : {ty}"),
        });
        let statement = |(number, (op, a, b)): (usize, &(usize, usize, usize))| {
            let (a, b) = (a % (number + 3), b % (number + 3));
            let value = match op {
                0..4 => format!("v{a} + v{b}"),
                4 => format!("concat(v{a}, v{b})"),
                5 => format!("slice(v{a}, size={})", 1 + b % 3),
                6 => format!("iota(size={}) * v{b}", a + 2),
                7 => format!("transpose(v{a})"),
                8 => format!("matmul(v{a}, v{b})"),
                9 => format!("g(v{a}, v{b})"),
                10 => format!("reverse(v{a})"),
                12 => format!("reduce(max, 0f, v{a})"),
                11 | 13 | 14 => format!("map(fn(r) {{ r + v{b} }}, v{a})"),
                15 => format!("map(fn(r) {{ map(fn(q) {{ v{b} * q }}, r) }}, v{a})"),
                16 => format!("map(fn(r) {{ concat(r, v{b}) }}, v{a})"),
                _ => format!("map(fn(r) {{ c = r * r; c + v{b} }}, v{a})"),
            };
            Statement { uses: [a, b], value }
        };
        let statements = lines.iter().enumerate().map(statement).collect();
        Drawn { parameters: parameters.collect(), result, statements }
    })
}

impl Drawn {
    /// The text with the statements in an order that follows from some numbers, but for those that use others.
    /// The value is that of the last one, or of all.
    pub(super) fn text(&self, keys: &[u32], all: bool) -> String {
        let num_parameters = self.parameters.len();
        let result = if self.result.is_empty() || all { "" } else { " : " };
        let mut text = format!(
            "g = fn(a, b : f32 [k]) {{ c = a * 2f; c + b }}; f = fn({}){result}{} {{ ",
            self.parameters.join(", "),
            if all { "" } else { self.result }
        );
        let mut open: Vec<usize> = (0..self.statements.len()).collect();
        let key = |number: &usize| (keys.get(*number).copied().unwrap_or_default(), *number);
        while !open.is_empty() {
            let uses = |number: usize| self.statements[number].uses;
            let ready = open.iter().copied().filter(|&number| {
                uses(number).iter().all(|name| !open.iter().any(|it| it + num_parameters == *name))
            });
            let Some(next) = ready.min_by_key(key) else { break };
            open.retain(|it| *it != next);
            text += &format!("v{} = {}; ", next + num_parameters, self.statements[next].value);
        }
        let last = num_parameters + self.statements.len() - 1;
        let first = if all { num_parameters } else { last };
        let values: Vec<String> = (first..=last).map(|number| format!("v{number}")).collect();
        text + &format!("{} }};", values.join(", "))
    }
}
