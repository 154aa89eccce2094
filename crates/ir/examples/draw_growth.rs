//! Draws the times of the table of growth, as SVG.
//!
//! ```text
//! draw_growth < docs/src/index-algebra-speed.md > picture.svg
//! ```
//!
//! The table has seven columns: the first is the depth, the second and the fifth are the times in
//! microseconds for towers and for shared subexpressions. What else the page has is skipped.

use std::fmt::Write;
use std::io::Read;

/// The size of the plot, and the space around it.
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 240.0;
const MARGIN: f64 = 56.0;
/// The parts of each axis.
const TICKS: u32 = 4;

/// Depth, and the two times in milliseconds.
type Row = [f64; 3];

fn row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').collect();
    let [depth, tower, _, _, shared, _, _] = cells[..] else { return None };
    let number = |cell: &str| cell.trim().parse::<f64>().ok();
    Some([number(depth)?, number(tower)? / 1e3, number(shared)? / 1e3])
}

fn draw(rows: &[Row]) -> String {
    let most = |column: usize| rows.iter().map(|row| row[column]).fold(0.0, f64::max);
    let (deepest, longest) = (most(0), most(1).max(most(2)));
    let x = |depth: f64| MARGIN + depth / deepest * WIDTH;
    let y = |time: f64| MARGIN + HEIGHT - time / longest * HEIGHT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n",
        WIDTH + 2.0 * MARGIN,
        HEIGHT + 2.0 * MARGIN
    );
    for tick in 0..=TICKS {
        let share = f64::from(tick) / f64::from(TICKS);
        let (depth, time) = (share * deepest, share * longest);
        let (left, bottom) = (MARGIN - 6.0, MARGIN + HEIGHT + 18.0);
        let _ = writeln!(
            svg,
            "<line x1=\"{MARGIN}\" y1=\"{0:.1}\" x2=\"{1:.1}\" y2=\"{0:.1}\" stroke=\"#ddd\"/>\n\
             <text x=\"{left}\" y=\"{2:.1}\" text-anchor=\"end\">{time:.0}</text>\n\
             <text x=\"{3:.1}\" y=\"{bottom}\" text-anchor=\"middle\">{depth:.0}</text>",
            y(time),
            MARGIN + WIDTH,
            y(time) + 4.0,
            x(depth)
        );
    }
    let (middle, bottom) = (MARGIN + WIDTH / 2.0, 2.0 * MARGIN + HEIGHT - 20.0);
    let _ = writeln!(
        svg,
        "<text x=\"{MARGIN}\" y=\"40\" text-anchor=\"end\">ms</text>\n\
         <text x=\"{middle}\" y=\"{bottom}\" text-anchor=\"middle\">depth</text>"
    );
    let series = [
        (2, "#4878a8", "every level uses the one below twice"),
        (1, "#a85848", "towers of quotients and remainders"),
    ];
    for (place, (column, color, title)) in (0_u32..).zip(series) {
        let points: Vec<String> =
            rows.iter().map(|row| format!("{:.1},{:.1}", x(row[0]), y(row[column]))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\"/>",
            points.join(" ")
        );
        for row in rows {
            let (x, y) = (x(row[0]), y(row[column]));
            let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\"/>");
        }
        let (left, top) = (MARGIN + 12.0, MARGIN + 16.0 * f64::from(place));
        let _ = writeln!(svg, "<text x=\"{left}\" y=\"{top}\" fill=\"{color}\">{title}</text>");
    }
    svg.push_str("</svg>\n");
    svg
}

fn main() {
    let mut page = String::new();
    if let Err(error) = std::io::stdin().read_to_string(&mut page) {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
    let rows: Vec<Row> = page.lines().filter_map(row).collect();
    if rows.len() < 2 {
        eprintln!("error: expected a table of seven columns, with two rows or more");
        std::process::exit(1);
    }
    print!("{}", draw(&rows));
}
