//! Texts as indexing maps: no panic, what is printed parses back as the same text, and
//! simplification of what parses ends and keeps it printable.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tc_ir::{Context, IndexingMap};

fuzz_target!(|text: &str| {
    let ctx = Context::new();
    let Ok(mut map) = IndexingMap::parse(&ctx, text) else { return };
    let check = |map: &IndexingMap| {
        let printed = map.display(&ctx).to_string();
        match IndexingMap::parse(&ctx, &printed) {
            Ok(parsed) => assert_eq!(parsed.display(&ctx).to_string(), printed, "{text}"),
            Err(error) => panic!("{text}: {printed}: {error}"),
        }
    };
    check(&map);
    map.simplify(&ctx);
    check(&map);
});
