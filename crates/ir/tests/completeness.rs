//! How often two maps that are equal on their domain, but were built differently, have one
//! simplified form.

mod chains;
mod identities;

use chains::{Chain, Random, composed, in_order, random_order};
use tc_ir::Context;

/// The pairs that are drawn.
const PAIRS: u64 = 2000;

/// The longest chain.
const MAX_LENGTH: usize = 6;

/// The most elements of a tensor, all of which are compared.
const MAX_SIZE: i64 = 200;

#[test]
fn chains_built_differently_simplify_to_one_form() {
    let mut same = 0;
    for seed in 0..PAIRS {
        let mut random = Random::new(seed);
        let ctx = Context::new();
        let length = 1 + random.below(MAX_LENGTH);
        let chain = Chain::random(&mut random, length, MAX_SIZE);
        let maps = chain.maps(&ctx);
        let detour = chain.detour(&mut random).maps(&ctx);
        let order = random_order(&mut random, detour.len());
        let first = composed(&ctx, &maps, &in_order(maps.len())).expect("ranks agree");
        let second = composed(&ctx, &detour, &order).expect("ranks agree");
        for point in first.points(&ctx, &[]).expect("bounded") {
            let dims = point.expect("a point").dims;
            let (mut reference, mut values) = (dims.clone(), Vec::new());
            for map in &maps {
                reference = map.evaluate(&ctx, &reference, &[], &[]).expect("a value");
            }
            for map in [&first, &second] {
                values.push(map.evaluate(&ctx, &dims, &[], &[]).expect("a value"));
            }
            assert_eq!(values, [reference.clone(), reference], "seed {seed}, at {dims:?}");
        }
        if first == second {
            same += 1;
        } else {
            println!("seed {seed}: {}\n  {}", first.display(&ctx), second.display(&ctx));
        }
    }
    println!("{same} of {PAIRS} pairs have one form");
    assert!(PAIRS * 99 <= same * 100, "{same} of {PAIRS} pairs have one form");
}
