//! Maps that are equal for a reason, written in two ways that have little in common: equality has to
//! see it where a small domain decides, and should see it on a large one.

use tc_ir::{Context, Equality, IndexingMap};

use crate::chains::Random;

/// How many pairs are drawn of each identity.
const PAIRS: u64 = 60;

/// Two texts of one value, and a constraint that they need, for some numbers. `x`, `y` and `z` are any
/// sums of variables, `a` and `b` constants from 2 on.
struct Identity {
    lhs: &'static str,
    rhs: &'static str,
    constraint: &'static str,
}

const fn always(lhs: &'static str, rhs: &'static str) -> Identity {
    Identity { lhs, rhs, constraint: "" }
}

const fn when(constraint: &'static str, lhs: &'static str, rhs: &'static str) -> Identity {
    Identity { lhs, rhs, constraint }
}

const IDENTITIES: &[Identity] = &[
    always("min(x, y) + max(x, y)", "x + y"),
    always("max(x, y)", "x + max(0, y - x)"),
    always("min(x, y)", "x - max(x - y, 0)"),
    always("min(x, min(y, z))", "min(min(z, x), y)"),
    always("-min(x, y)", "max(-x, -y)"),
    always("max(x, min(x, y))", "x"),
    always("min(max(x, y), max(x, z))", "max(x, min(y, z))"),
    always("x mod a", "x - (x / a) * a"),
    always("x ceildiv a", "-((-x) / a)"),
    always("x ceildiv a", "(x + a - 1) / a"),
    always("(x / a) / b", "x / (a * b)"),
    always("(x mod (a * b)) mod a", "x mod a"),
    always("(x * b) / (a * b)", "x / a"),
    always("(x * b) mod (a * b)", "(x mod a) * b"),
    always("(x mod a + y mod a) mod a", "(x + y) mod a"),
    always("(x mod a) / a", "0"),
    always("(x + y * a) / a", "y + x / a"),
    always("(x mod (a * b)) / a", "(x / a) mod b"),
    always("x mod a + ((x / a) mod b) * a", "x mod (a * b)"),
    always("(x + a) / a - x / a", "1"),
    always("x / a + (-x) ceildiv a", "0"),
    always("min(x, y) / a", "min(x / a, y / a)"),
    always("max(x, y) ceildiv a", "max(x ceildiv a, y ceildiv a)"),
    always("(x - x mod a) / a", "x / a"),
    when("x mod a in [0, 0]", "(x / a) * a", "x"),
    when("x - y in [0, 0]", "x * 2 + y", "y * 3"),
    when("x - y in [0, 5]", "max(x, y)", "x"),
    when("x - y in [0, 5]", "min(x - y, 5)", "x - y"),
    when("x + y in [0, 6]", "(x + y) / 7", "0"),
    when("x mod a in [1, 1]", "(x + a - 1) / a", "x / a + 1"),
    when("x / a in [2, 2]", "x mod a", "x - a * 2"),
    when("x - y * a in [0, 1]", "x / a", "y"),
];

/// Two maps of one meaning, as texts.
fn pair(random: &mut Random, identity: &Identity, extent: i64) -> [String; 2] {
    let vars = ["d0", "d1", "s0", "n"];
    let sum = |random: &mut Random| {
        let (first, second) = (vars[random.below(4)], vars[random.below(4)]);
        match random.below(4) {
            0 | 1 => first.to_string(),
            2 => format!("({first} + {second})"),
            _ => format!(
                "({first} * {} - {second} + {})",
                random.between(1, 4),
                random.between(-9, 9)
            ),
        }
    };
    let numbers = [random.between(2, 9).to_string(), random.between(2, 5).to_string()];
    let values: Vec<(char, String)> = ['x', 'y', 'z']
        .into_iter()
        .map(|name| (name, sum(random)))
        .chain(['a', 'b'].into_iter().zip(numbers))
        .collect();
    let filled = |text: &str| {
        let mut result = String::new();
        let names: Vec<char> = text.chars().collect();
        for (place, &c) in names.iter().enumerate() {
            let beside = |other: Option<&char>| other.is_some_and(|it| it.is_alphanumeric());
            let alone =
                !beside(names.get(place + 1)) && (place == 0 || !beside(names.get(place - 1)));
            match values.iter().find(|(name, _)| alone && *name == c) {
                Some((_, value)) => result += value,
                None => result.push(c),
            }
        }
        result
    };
    let around = match random.below(4) {
        0 => ("(", ") * 3 + d1"),
        1 => ("(d0 + (", ") * 2) / 5"),
        2 => ("((", ") + 40) mod 11"),
        _ => ("", ""),
    };
    let low = random.between(-3, 0);
    let constraint = match identity.constraint {
        "" => String::new(),
        constraint => format!(", {}", filled(constraint)),
    };
    [identity.lhs, identity.rhs].map(|side| {
        format!(
            "(d0, d1)[s0]{{n}} -> ({}{}{}), domain: d0 in [0, {}], d1 in [{low}, {}], s0 in [0, n], \
             n in [1, {}]{constraint}",
            around.0,
            filled(side),
            around.1,
            extent - 1,
            low + extent,
            extent
        )
    })
}

#[test]
fn identities_are_seen() {
    let (mut undecided, mut all) = (0, 0);
    for (number, identity) in (0..).zip(IDENTITIES) {
        for seed in 0..PAIRS {
            let mut random = Random::new(seed * 1000 + number);
            let is_large = random.once_in(2);
            let extent = if is_large { 1_000_000 } else { 6 };
            let [lhs, rhs] = pair(&mut random, identity, extent);
            let ctx = Context::new();
            let parse = |text: &str| IndexingMap::parse(&ctx, text).expect("a map");
            match parse(&lhs).equality(&ctx, &parse(&rhs)) {
                Equality::Equal => {}
                Equality::Unknown if is_large => {
                    println!("undecided: {lhs}\n  {rhs}");
                    undecided += 1;
                }
                verdict => panic!("{lhs}\n{rhs}\n{verdict:?}"),
            }
            all += usize::from(is_large);
        }
    }
    println!("{undecided} of {all} pairs on large domains undecided");
    assert!(undecided * 20 <= all, "{undecided} of {all} pairs on large domains undecided");
}
