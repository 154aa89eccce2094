//! Draws a map from a tile of its result to what the tile needs of the operand, as SVG.
//!
//! ```text
//! draw_map MAP EXTENT,EXTENT LO:HI,LO:HI > picture.svg
//! ```
//!
//! `MAP` has two dimension variables, no runtime variables and two results. The extents are those of
//! the operand; the tile gives an interval per dimension variable, both ends included.

use std::collections::BTreeSet;
use std::fmt::Write;

use tc_ir::{Context, IndexingMap, Interval, Var};

/// The side of a cell, and the space around the grids.
const CELL: i64 = 18;
const MARGIN: i64 = 24;
/// The largest grid that is drawn, per dimension.
const MAX_EXTENT: i64 = 64;

fn pair<T>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Option<[T; 2]> {
    let (first, second) = text.split_once(',')?;
    Some([parse(first)?, parse(second)?])
}

/// A grid at `left`, with the cells of `marked` filled.
fn grid(svg: &mut String, left: i64, extents: [i64; 2], marked: &BTreeSet<[i64; 2]>, title: &str) {
    let _ = writeln!(svg, r#"<text x="{left}" y="16">{title}</text>"#);
    for row in 0..extents[0] {
        for column in 0..extents[1] {
            let (x, y) = (left + column * CELL, MARGIN + row * CELL);
            let fill = if marked.contains(&[row, column]) { "#4878a8" } else { "#f4f4f4" };
            let _ = writeln!(
                svg,
                r##"<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="{fill}" stroke="#999"/>"##
            );
        }
    }
}

fn draw(map: &str, extents: &str, tile: &str) -> Result<String, String> {
    let ctx = Context::new();
    let map = IndexingMap::parse(&ctx, map).map_err(|error| error.to_string())?;
    let extents =
        pair(extents, |text| text.parse().ok().filter(|extent| (1..=MAX_EXTENT).contains(extent)));
    let extents = extents.ok_or("expected the extents of the operand, such as 8,8")?;
    let tile = pair(tile, |text| {
        let (lo, hi) = text.split_once(':')?;
        Some(Interval::new(lo.parse().ok()?, hi.parse().ok()?))
    });
    let tile = tile.ok_or("expected a tile, such as 0:1,2:3")?;
    if (map.dims.len(), map.runtimes.len(), map.results.len()) != (2, 0, 2) {
        return Err("expected two dimension variables and two results".into());
    }
    let rows = map.interval(&ctx, Var::Dim(0)).hi.saturating_add(1);
    let columns = map.interval(&ctx, Var::Dim(1)).hi.saturating_add(1);
    if MAX_EXTENT < rows.max(columns) {
        return Err(format!("expected a result of at most {MAX_EXTENT} by {MAX_EXTENT}"));
    }
    let (mut from, mut to) = (BTreeSet::new(), BTreeSet::new());
    for point in map.points(&ctx, &[]).map_err(|error| error.to_string())? {
        let point = point.map_err(|error| error.to_string())?;
        if point.dims.iter().zip(tile).all(|(&value, tile)| tile.contains(value)) {
            from.insert([point.dims[0], point.dims[1]]);
            let results = map.evaluate(&ctx, &point.dims, &point.ranges, &[]);
            let results = results.map_err(|error| error.to_string())?;
            to.insert([results[0], results[1]]);
        }
    }
    let left = MARGIN + (columns + 3) * CELL;
    let width = left + extents[1] * CELL + MARGIN;
    let height = 2 * MARGIN + rows.max(extents[0]) * CELL;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n"
    );
    grid(&mut svg, MARGIN, [rows, columns], &from, "result");
    grid(&mut svg, left, extents, &to, "operand");
    let (x, y) = (left - 2 * CELL, MARGIN + rows.min(extents[0]) * CELL / 2);
    let _ = writeln!(svg, r#"<text x="{x}" y="{y}" font-size="20">→</text>"#);
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let drawn = match &arguments[..] {
        [map, extents, tile] => draw(map, extents, tile),
        _ => Err("expected a map, the extents of the operand and a tile".into()),
    };
    match drawn {
        Ok(svg) => print!("{svg}"),
        Err(error) => {
            eprintln!("error: {error}");
            std::process::exit(1);
        }
    }
}
