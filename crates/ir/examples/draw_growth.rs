//! Draws the times of a table of growth, as SVG.
//!
//! ```text
//! draw_growth depth 7 1/1000='towers' 4/1000='shared' < docs/src/index-algebra-speed.md > picture.svg
//! ```
//!
//! The arguments are what the first column counts, the number of columns of the table, and per line
//! to draw its column, a divisor that makes its times milliseconds, and a title. What else the page
//! has is skipped, rows without a number in one of the columns as well.

use std::fmt::Write;
use std::io::Read;

/// The size of the plot, and the space around it.
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 240.0;
const MARGIN: f64 = 56.0;
/// The parts of each axis.
const TICKS: u32 = 4;

/// The colors of the lines.
const COLORS: [&str; 2] = ["#a85848", "#4878a8"];

/// A line of the picture.
struct Series {
    column: usize,
    divisor: f64,
    title: String,
}

impl Series {
    fn parse(text: &str) -> Option<Self> {
        let (column, title) = text.split_once('=')?;
        let (column, divisor) = column.split_once('/').unwrap_or((column, "1"));
        Some(Self {
            column: column.parse().ok()?,
            divisor: divisor.parse().ok()?,
            title: title.to_string(),
        })
    }
}

/// The count of a line of a page, and the time of each series in milliseconds.
fn row(line: &str, num_columns: usize, series: &[Series]) -> Option<Vec<f64>> {
    let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').collect();
    let number = |column: usize| cells.get(column)?.trim().parse::<f64>().ok();
    let mut row = vec![number(0)?];
    for series in series {
        row.push(number(series.column)? / series.divisor);
    }
    (cells.len() == num_columns).then_some(row)
}

fn draw(rows: &[Vec<f64>], counted: &str, series: &[Series]) -> String {
    let most = |column: usize| rows.iter().map(|row| row[column]).fold(0.0, f64::max);
    let (deepest, longest) = (most(0), (1..=series.len()).map(most).fold(0.0, f64::max));
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
         <text x=\"{middle}\" y=\"{bottom}\" text-anchor=\"middle\">{counted}</text>"
    );
    // The slower one is named first, above the other.
    let order = (1..=series.len()).rev();
    for (place, column) in (0_u32..).zip(order) {
        let color = COLORS[(column - 1) % COLORS.len()];
        let title = &series[column - 1].title;
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
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let series =
        arguments.iter().skip(2).map(|text| Series::parse(text)).collect::<Option<Vec<_>>>();
    let columns = arguments.get(1).and_then(|text| text.parse().ok());
    let (Some(counted), Some(columns), Some(series)) = (arguments.first(), columns, series) else {
        eprintln!(
            "error: expected what is counted, a number of columns, and lines COLUMN/DIVISOR=TITLE"
        );
        std::process::exit(1);
    };
    let rows: Vec<_> = page.lines().filter_map(|line| row(line, columns, &series)).collect();
    if rows.len() < 2 {
        eprintln!("error: expected a table of {columns} columns, with two rows or more");
        std::process::exit(1);
    }
    print!("{}", draw(&rows, counted, &series));
}
