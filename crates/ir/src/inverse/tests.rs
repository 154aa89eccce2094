//! Inverses of all kinds, and what is said where there is none.

use super::*;
use crate::compose::compose;
use crate::equality::Equality;
use crate::evaluator::MapEvaluator;
use crate::samples::BoundingBox;

/// The inverse, after which the map is where it was, and no other points are in its domain: at all
/// points of small domains, and at some of larger ones.
pub(super) fn inverse_of(text: &str) -> String {
    let ctx = Context::new();
    let map = IndexingMap::parse(&ctx, text).expect("a map");
    let inverse = match map.inverse(&ctx) {
        Ok(inverse) => inverse,
        Err(error) => panic!("{text}: {error}"),
    };
    for (first, second) in [(&map, &inverse), (&inverse, &map)] {
        let mut samples = BoundingBox::around(&ctx, &[first]).samples();
        let [mut there, mut back] = [first, second].map(|map| MapEvaluator::new(&ctx, map));
        while let Some(point) = samples.advance() {
            if there.contains(point) != Ok(true) {
                continue;
            }
            let image = there.results().map(|number| there.result(number).expect("a value"));
            let image = Values { dims: image.collect(), ..point.clone() };
            assert_eq!(back.contains(&image), Ok(true), "{text}: {image}");
            let round = back.results().map(|number| back.result(number).expect("a value"));
            assert_eq!(round.collect::<Vec<_>>(), point.dims, "{text}: {image}");
        }
        if !samples.are_all() {
            let mut both = compose(&ctx, first, second).expect("ranks agree");
            // The runtime variables of both are the same.
            let count = u32::try_from(first.runtimes.len()).expect("few");
            both.substitute(&ctx, &|var| match var {
                Var::Runtime(number) => Some(ctx.runtime(number % count)),
                _ => None,
            });
            both.runtimes.clone_from(&first.runtimes);
            let results = (0..).take(first.dims.len()).map(|dim| ctx.dim(dim)).collect();
            let identity = IndexingMap { results, ..first.clone() };
            let verdict = both.equality(&ctx, &identity);
            assert!(matches!(verdict, Equality::Equal | Equality::Unknown), "{text}: {verdict:?}");
        }
    }
    inverse.display(&ctx).to_string()
}

fn inverse(text: &str) -> String {
    let ctx = Context::new();
    let map = IndexingMap::parse(&ctx, text).expect("a map");
    match map.inverse(&ctx) {
        Ok(inverse) => inverse.display(&ctx).to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn documented_pairs() {
    // The output-to-input maps of XLA's documentation and their input-to-output maps.
    for (map, expected) in [
        (
            "(d0, d1, d2, d3) -> (d0, d3, d1, d2), domain: d0 in [0, 2], d1 in [0, 5], \
             d2 in [0, 127], d3 in [0, 12287]",
            "(d0, d1, d2, d3) -> (d0, d2, d3, d1), domain: d0 in [0, 2], d1 in [0, 12287], \
             d2 in [0, 5], d3 in [0, 127]",
        ),
        (
            "(d0, d1) -> (-d0 + 16, d1), domain: d0 in [0, 16], d1 in [0, 8]",
            "(d0, d1) -> (-d0 + 16, d1), domain: d0 in [0, 16], d1 in [0, 8]",
        ),
        (
            "(d0, d1, d2) -> (d0 * 2 + d1 / 2, d2 + (d1 mod 2) * 4), \
             domain: d0 in [0, 1], d1 in [0, 3], d2 in [0, 3]",
            "(d0, d1) -> (d0 / 2, d1 / 4 + (d0 mod 2) * 2, d1 mod 4), \
             domain: d0 in [0, 3], d1 in [0, 7]",
        ),
        (
            "(d0, d1, d2) -> (d0 / 8, d0 mod 8, d1 * 4 + d2), \
             domain: d0 in [0, 31], d1 in [0, 2], d2 in [0, 3]",
            "(d0, d1, d2) -> (d0 * 8 + d1, d2 / 4, d2 mod 4), \
             domain: d0 in [0, 3], d1 in [0, 7], d2 in [0, 11]",
        ),
        (
            "(d0, d1) -> ((d0 - 1) / 2, d1 - 4), domain: d0 in [1, 7], d1 in [4, 7], \
             (d0 - 1) mod 2 in [0, 0]",
            "(d0, d1) -> (d0 * 2 + 1, d1 + 4), domain: d0 in [0, 3], d1 in [0, 3]",
        ),
    ] {
        assert_eq!(inverse(map), expected);
    }
}

/// The rules of `docs/src/index-maps.md`.
#[test]
fn documented_rules() {
    for text in [
        "(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 9], d1 in [0, 7]",
        "(d0) -> (d0 / 3, d0 mod 3), domain: d0 in [-9, 20]",
        "(d0) -> (d0 / 3, d0 mod 6), domain: d0 in [-9, 20]",
        "(d0) -> ((d0 + 3) mod 8), domain: d0 in [0, 7]",
        "(d0) -> (d0 * 7 + 3), domain: d0 in [-2, 9]",
        "(d0) -> (d0 / 2), domain: d0 in [0, 9], d0 mod 2 in [1, 1]",
    ] {
        inverse_of(text);
    }
}

#[test]
fn many_dimensions_are_inverted() {
    let ctx = Context::new();
    let dims: Vec<Variable> = vec![Variable::bounded(&ctx, Interval::new(0, 9)); 2000];
    let results = (0..2000).rev().map(|i| ctx.add(ctx.dim(i), ctx.constant(i.into())));
    let map = IndexingMap { dims, results: results.collect(), ..IndexingMap::default() };
    let inverse = map.inverse(&ctx).expect("a permutation");
    assert_eq!(inverse.results[0], ctx.dim(1999));
}

#[test]
fn an_empty_domain_has_an_empty_image() {
    assert_eq!(inverse("(d0) -> (0), domain: d0 in [3, 2]"), "KNOWN EMPTY");
    let large = "(d0, d1) -> (0), domain: d0 in [0, 999999], d1 in [0, 999999], \
                 d0 + d1 in [7, 7], d0 - d1 in [0, 0]";
    assert_eq!(inverse(large), "KNOWN EMPTY");
}

#[test]
fn whether_there_is_an_inverse_is_known_without_it() {
    let ctx = Context::new();
    for (map, expected) in [
        ("(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 7]", true),
        ("(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 8]", false),
        ("(d0) -> (0), domain: d0 in [3, 2]", true),
        ("(d0)[s0] -> (d0, s0)", false),
    ] {
        let map = IndexingMap::parse(&ctx, map).expect("a map");
        assert_eq!((map.has_inverse(&ctx), map.inverse(&ctx).is_ok()), (expected, expected));
    }
}

#[test]
fn inverses_do_not_depend_on_what_else_is_in_the_context() {
    let map = "(d0) -> (((1 + d0) mod 6) * -4, (d0 / 2) mod 24), domain: d0 in [0, 34]";
    let ctx = Context::new();
    for other in ["(d0) -> ((d0 / 2) mod 24, d0 / 3)", "(d0, d1) -> (d1 * 2 + (d0 * 7) / 4 mod 2)"]
    {
        IndexingMap::parse(&ctx, other).expect("a map").simplify(&ctx);
        let used = IndexingMap::parse(&ctx, map).expect("a map").inverse(&ctx).expect("an inverse");
        assert_eq!(used.display(&ctx).to_string(), inverse_of(map));
    }
}

#[test]
fn witnesses_lie_in_the_domain() {
    // With `d0 == 0` the constraint has no value.
    let text = "(d0, d1, d2) -> (max(max(d0, d1 mod 12), -3) - d2), domain: d0 in [0, 12], \
                d1 in [0, 12], d2 in [0, 3], (d2 * 5) mod d0 in [-12, inf]";
    let ctx = Context::new();
    let map = IndexingMap::parse(&ctx, text).expect("a map");
    let Err(InverseError::NotInjective(points)) = map.inverse(&ctx) else { panic!("{text}") };
    for point in points.iter() {
        assert_eq!(map.contains(&ctx, &point.dims, &[], &[]), Ok(true), "{point}");
    }
}

#[test]
fn the_search_ends_with_the_work() {
    let ctx = Context::new();
    let text = "(d0) -> (d0 / 8, d0 mod 8), domain: d0 in [0, 31]";
    let map = IndexingMap::parse(&ctx, text).expect("a map");
    let solved = |work| super::solution(&ctx, &map, &super::Work(std::cell::Cell::new(work)));
    assert!(solved(super::MAX_SOLVING).is_ok());
    assert_eq!(solved(1), Err(vec![Var::Dim(0)]));
}

/// Hundreds of variables or levels: what takes more work than a map is worth is not solved, and ends soon.
#[test]
fn large_maps_end() {
    let join = |count: usize, item: &dyn Fn(usize) -> String| {
        (0..count).map(item).collect::<Vec<_>>().join(", ")
    };
    let map = |rank: usize, results: String, interval: &str| {
        let dims = join(rank, &|i| format!("d{i}"));
        let domain = join(rank, &|i| format!("d{i} in {interval}"));
        format!("({dims}) -> ({results}), domain: {domain}")
    };
    let next = |i: usize| (i + 1) % 400;
    let sums = join(400, &|i| format!("(d{i} * 3 + d{} * 7) / 4", next(i)));
    let divisors = join(399, &|i| format!("d{i} / d{}, d{i} mod d{}", next(i), next(i)));
    let products = join(20, &|j| {
        let terms = (0..100).map(|i| format!("d{} * d{}", i + 100, (i + j) % 100));
        terms.collect::<Vec<_>>().join(" + ")
    });
    let factors = join(100, &|i| format!("d{i}"));
    let nested =
        (0..250).fold("d0".to_string(), |expr, i| format!("(({expr} * 3 + d1) mod {})", i + 1000));
    for text in [
        map(400, sums, "[0, 9]"),
        map(400, format!("{divisors}, d399"), "[1, 9]"),
        map(200, format!("{products}, {factors}"), "[1, 9]"),
        map(2, nested, "[0, 10000]"),
    ] {
        let ctx = Context::new();
        let map = IndexingMap::parse(&ctx, &text).expect("a map");
        assert!(!map.has_inverse(&ctx), "{text}");
    }
}

#[test]
fn errors_say_why() {
    assert_eq!(
        inverse("(d0)[s0] -> (d0 + s0)"),
        "expected a map without range variables to invert, found 1 of them; convert them to \
         dimension variables first"
    );
    assert_eq!(
        inverse("(d0, d1) -> (d0 / 4, d1), domain: d0 in [4, 7], d1 in [5, 6]"),
        "expected an injective map to invert, found the same results at (d0 = 4, d1 = 5) and \
         (d0 = 5, d1 = 5); restrict the domain to one of such points, or add a result that tells \
         them apart"
    );
    let ctx = Context::new();
    let error = |text: &str| {
        IndexingMap::parse(&ctx, text).expect("a map").inverse(&ctx).expect_err("no inverse")
    };
    let at = |d0| Values { dims: vec![d0], ..Values::default() };
    assert_eq!(
        error("(d0) -> (d0 / 2), domain: d0 in [0, 9]"),
        InverseError::NotInjective(Box::new([at(0), at(1)]))
    );
    for text in [
        "(d0) -> (d0 mod 1000), domain: d0 in [0, 1000000]",
        "(d0) -> (d0 mod 1000, (d0 * 7) mod 999), domain: d0 in [0, 999000]",
        "(d0, d1) -> (d0), domain: d0 in [0, 1000000], d1 in [0, 1000000]",
        "(d0, d1) -> (d0 * 999 + d1 * 1000), domain: d0 in [0, 1000], d1 in [0, 999]",
        "(d0, d1, d2) -> (d0 + d1, d1 + d2, d0 * 2 + d1 * 3 + d2), \
         domain: d0 in [0, 1000], d1 in [0, 1000], d2 in [0, 1000]",
    ] {
        assert!(matches!(error(text), InverseError::NotInjective(..)), "{text}");
    }
    assert_eq!(
        error("(d0) -> (d0 * d0), domain: d0 in [0, 1000000]"),
        InverseError::Unsolved(Var::Dim(0))
    );
}

/// Where values may leave 64 bits, the domain of the inverse holds no point at which it has no value, and all
/// others: at combinations of numbers near the ends.
#[test]
fn images_at_the_ends_of_64_bits() {
    const ENDS: [i64; 13] = [
        i64::MIN,
        i64::MIN + 1,
        i64::MIN / 2 - 1,
        i64::MIN / 2,
        -2,
        -1,
        0,
        1,
        2,
        i64::MAX / 2,
        i64::MAX / 2 + 1,
        i64::MAX - 1,
        i64::MAX,
    ];
    let ctx = Context::new();
    for text in [
        "(d0) -> (d0 / 2, d0 mod 2)",
        "(d0) -> (d0 / -2, d0 mod 2)",
        "(d0) -> (d0 ceildiv 2, d0 mod 2), domain: d0 in [-7, 9223372036854775807]",
        "(d0) -> (d0 * 2 + 1)",
        "(d0) -> (-d0)",
        "(d0) -> (d0 + 1)",
        "(d0, d1) -> (d0 + d1, d1)",
        "(d0, d1) -> (d0 * 4 - d1), domain: d1 in [0, 3]",
        "(d0, d1) -> (d0 / 2 + d1, d0 mod 2, d1)",
        "(d0, d1) -> (d0 - d1 * 2, d1), domain: d0 in [0, inf]",
        "(d0, d1) -> (d0 + d1, d1 * 3 - 5), domain: d0 in [-inf, 3]",
    ] {
        let map = IndexingMap::parse(&ctx, text).expect("a map");
        let inverse = map.inverse(&ctx).expect("an inverse");
        for (from, to) in [(&map, &inverse), (&inverse, &map)] {
            let [mut there, mut back] = [from, to].map(|map| MapEvaluator::new(&ctx, map));
            let rank = u32::try_from(from.dims.len()).expect("few");
            for number in 0..ENDS.len().pow(rank) {
                let digit = |place| ENDS[number / ENDS.len().pow(place) % ENDS.len()];
                let point = Values { dims: (0..rank).map(digit).collect(), ..Values::default() };
                if there.contains(&point) != Ok(true) {
                    continue;
                }
                let image: Option<Vec<i64>> =
                    there.results().map(|number| there.result(number).ok()).collect();
                // The map need not have values at all points of its domain, the inverse has.
                assert!(image.is_some() || from == &map, "{text}: {point}");
                let Some(dims) = image else { continue };
                let image = Values { dims, ..Values::default() };
                assert_eq!(back.contains(&image), Ok(true), "{text}: {point} {image}");
                let round = back.results().map(|number| back.result(number).expect("a value"));
                assert_eq!(round.collect::<Vec<_>>(), point.dims, "{text}: {point}");
            }
        }
    }
}

#[test]
fn factors_and_divisors_at_the_ends_of_64_bits() {
    let error = inverse("(d0) -> (d0 mod 9223372036854775807)");
    assert!(error.contains("(d0 = -9223372036854775807) and (d0 = 0)"), "{error}");
    for map in [
        "(d0) -> (d0 mod 9223372036854775807), domain: d0 in [-1, 0]",
        "(d0) -> (d0 mod -9223372036854775807), domain: d0 in [-1, 0]",
        "(d0) -> (d0 * -9223372036854775808), domain: d0 in [0, 1]",
    ] {
        inverse_of(map);
    }
}
