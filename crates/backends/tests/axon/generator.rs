//! Random programs.

/// A size in a program: the number that it is, or a name or a sum of names.
#[derive(Clone, Debug)]
struct Size {
    text: String,
    /// What it is at the sizes that the program is written for.
    value: i64,
}

impl PartialEq for Size {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Size {
    fn number(value: i64) -> Self {
        Self { text: value.to_string(), value }
    }

    /// A size that is calculated from two others.
    fn of(&self, op: &str, other: &Self, value: i64) -> Self {
        let numbers = [self, other].into_iter().all(|it| it.text.parse::<i64>().is_ok());
        match numbers {
            true => Self::number(value),
            false => Self { text: format!("({} {op} {})", self.text, other.text), value },
        }
    }
}

/// The sizes as they are written in an option or a type.
fn list(dims: &[Size]) -> String {
    let list: Vec<_> = dims.iter().map(|size| size.text.as_str()).collect();
    list.join(",")
}

/// A program with random definitions, each of a type that is known while it is written.
struct Writer {
    text: String,
    /// Names and sizes of what can be used.
    tensors: Vec<(String, Vec<Size>)>,
    choices: std::vec::IntoIter<u32>,
    float: bool,
}

impl Writer {
    fn choose(&mut self, below: usize) -> usize {
        self.choices.next().unwrap_or(0) as usize % below.max(1)
    }

    fn tensor(&mut self, fits: impl Fn(&[Size]) -> bool) -> Option<(String, Vec<Size>)> {
        let usable: Vec<_> = self.tensors.iter().filter(|(_, dims)| fits(dims)).cloned().collect();
        let choice = self.choose(usable.len());
        usable.get(choice).cloned()
    }

    /// An expression and its sizes.
    fn expression(&mut self) -> Option<(String, Vec<Size>)> {
        let (a, dims) = self.tensor(|_| true)?;
        let number = if self.float { "half" } else { "three" };
        Some(match self.choose(19) {
            0..=3 => {
                let own = dims.clone();
                let (b, _) = self.tensor(|dims| own.ends_with(dims))?;
                let op = ["+", "-", "*"][self.choose(3)];
                let (a, b) = if self.choose(2) == 0 { (a, b) } else { (b, a) };
                (format!("{a} {op} {b}"), dims)
            }
            4 => {
                let functions: &[_] = match self.float {
                    true => &["tanh", "sigmoid", "relu", "-", "softly"],
                    false => &["relu", "-", "softly", "double"],
                };
                (format!("{}({a})", functions[self.choose(functions.len())]), dims)
            }
            5 => (format!("max({a}, {number}) - {number}"), dims),
            6 => {
                let (a, dims) = self.tensor(|dims| dims.len() == 2)?;
                (format!("transpose({a})"), vec![dims[1].clone(), dims[0].clone()])
            }
            7 => {
                let (a, left) = self.tensor(|dims| 2 <= dims.len())?;
                let (batch, k) = (left[..left.len() - 2].to_vec(), left[left.len() - 1].clone());
                let fits = |dims: &[Size]| {
                    dims.len() == left.len()
                        && dims.starts_with(&batch)
                        && dims[dims.len() - 2] == k
                };
                let (b, right) = self.tensor(fits)?;
                let mut dims = left.clone();
                *dims.last_mut()? = right.last()?.clone();
                (format!("matmul({a}, {b})"), dims)
            }
            8 => {
                let (a, mut dims) = self.tensor(|dims| !dims.is_empty())?;
                let rest = dims[1..].to_vec();
                let (b, other) = self.tensor(|dims| !dims.is_empty() && dims[1..] == rest[..])?;
                dims[0] = dims[0].of("+", &other[0], dims[0].value + other[0].value);
                (format!("concat({a}, {b})"), dims)
            }
            9 => {
                let (a, dims) = self.tensor(|dims| !dims.is_empty())?;
                (format!("reverse({a})"), dims)
            }
            10 => {
                let (a, mut dims) =
                    self.tensor(|dims| dims.first().is_some_and(|it| 1 < it.value))?;
                let start = 1 + self.choose(dims[0].value as usize - 1) as i64;
                dims[0] = dims[0].of("-", &Size::number(start), dims[0].value - start);
                (format!("slice({a}, start={start}, size={})", dims[0].text), dims)
            }
            11 | 12 => {
                let (a, dims) = self.tensor(|dims| !dims.is_empty())?;
                let (k, _) = self.tensor(<[Size]>::is_empty)?;
                let function = match self.choose(6) {
                    0 => "+".to_string(),
                    1 => "*".to_string(),
                    2 => "max".to_string(),
                    3 => "-".to_string(),
                    4 => format!("fn(p, q) {{ p * {k} - q }}"),
                    _ => "fn(p, q) { max(p, q) + 1 }".to_string(),
                };
                (format!("reduce({function}, {number}, {a})"), dims[1..].to_vec())
            }
            13 | 14 => {
                let (a, dims) = self.tensor(|dims| !dims.is_empty())?;
                let row = dims[1..].to_vec();
                let (b, _) = self.tensor(|dims| row.ends_with(dims))?;
                (format!("map(fn(r) {{ softly(r * {b}) - r }}, {a})"), dims)
            }
            15 | 16 => {
                let (a, dims) = self.tensor(|dims| !dims.is_empty())?;
                let row = dims[1..].to_vec();
                let (s, state) = self.tensor(|dims| row.ends_with(dims))?;
                let (k, _) = self.tensor(|dims| row.ends_with(dims))?;
                // The state keeps its shape.
                let next = if state == row { "s - r" } else { "softly(s)" };
                let name = format!("w{}", self.tensors.len());
                let line =
                    format!("  {name}, _ = loop({s}, fn(s, r) {{ {next}, r * s + {k} }}, {a});\n");
                self.text += &line;
                self.tensors.push((name, state));
                (format!("second(loop({s}, fn(s, r) {{ {next}, r * s + {k} }}, {a}))"), dims)
            }
            17 => {
                let product = |a: Size, b: &Size| a.of("*", b, a.value * b.value);
                let count = dims.iter().fold(Size::number(1), product);
                let shape = match (dims.as_slice(), count.value % 2) {
                    ([first, rest @ ..], 1) => {
                        vec![rest.iter().fold(Size::number(1), product), first.clone()]
                    }
                    (_, 0) if count.text == count.value.to_string() => {
                        vec![Size::number(2), Size::number(count.value / 2)]
                    }
                    _ => vec![count],
                };
                (format!("reshape({a}, shape=[{}])", list(&shape)), shape)
            }
            _ => {
                let (a, mut dims) = self.tensor(|dims| !dims.is_empty())?;
                dims[0] = Size::number(3);
                (format!("gather({a}, iota(size=3) * 2)"), dims)
            }
        })
    }
}

/// A program with an entry `f`; its sizes are numbers, or the parameters `a`, `b`, `c` and `d`.
pub fn random_program(choices: Vec<u32>, has_sizes: bool) -> String {
    let mut writer = Writer {
        text: String::new(),
        tensors: Vec::new(),
        choices: choices.into_iter(),
        float: true,
    };
    writer.float = writer.choose(3) != 0;
    let element = match (writer.float, writer.choose(2)) {
        (true, 0) => "f32",
        (true, _) => "f64",
        (false, 0) => "i32",
        (false, _) => "i8",
    };
    let shapes: [&[i64]; 6] = [&[], &[3], &[2, 3], &[3, 3], &[2, 3, 3], &[1, 4]];
    let size = |value: &i64| match has_sizes {
        true => Size { text: ["a", "b", "c", "d"][*value as usize - 1].to_string(), value: *value },
        false => Size::number(*value),
    };
    let mut params = Vec::new();
    for (number, dims) in shapes.iter().enumerate() {
        let dims: Vec<_> = dims.iter().map(size).collect();
        params.push(format!("p{number} : {element} [{}]", list(&dims)));
        writer.tensors.push((format!("p{number}"), dims));
    }
    for number in 0..6 {
        let Some((expression, dims)) = writer.expression() else { continue };
        if 2_000 < dims.iter().map(|it| it.value).product::<i64>() {
            continue;
        }
        let name = format!("v{number}");
        // Values stay near 1: what overflows shows nothing.
        let line = match writer.float {
            true => format!("  {name} = tanh({expression});\n"),
            false => format!("  {name} = {expression};\n"),
        };
        writer.text += &line;
        writer.tensors.push((name, dims));
    }
    let last: Vec<_> = writer.tensors.iter().skip(shapes.len()).map(|it| it.0.as_str()).collect();
    let results = if last.is_empty() { "p0".to_string() } else { last.join(", ") };
    format!(
        "zero = 0;\nhalf = 0.5f;\nthree = 3;\n\
         softly = fn(x) {{ max(x, zero) - x }};\ndouble = fn(x) {{ x + x }};\n\
         second = fn(pair) {{ _, b = pair; b }};\nf = fn({}) {{\n{}  {results}\n}};\n",
        params.join(", "),
        writer.text
    )
}

/// A program that uses definitions of numbers and functions at several types, and the same with what is written
/// for a name in its place.
pub fn random_definitions(choices: Vec<u32>) -> (String, String) {
    let mut choices = choices.into_iter();
    let mut choose = |n: usize| choices.next().unwrap_or(0) as usize % n;
    // Each is written with names, and without.
    let mut numbers = vec![["2"; 2].map(String::from)];
    let mut functions = vec![["relu"; 2].map(String::from)];
    let mut lines = String::new();
    for line in 0..6 {
        let [a, b] = [(); 2].map(|()| numbers[choose(numbers.len())].clone());
        let [f, g] = [(); 2].map(|()| functions[choose(functions.len())].clone());
        let (operator, is_applied) = (["+", "-", "*"][choose(3)], choose(2) == 0);
        let is_composed = choose(2) == 0;
        let [named, inlined] = [0, 1].map(|at| {
            let (a, b, f, g) = (&a[at], &b[at], &f[at], &g[at]);
            let number = match is_applied {
                true => format!("({a} {operator} ({f})({b}))"),
                false => format!("({a} {operator} {b})"),
            };
            let function = match is_composed {
                true => format!("((fn(f, g) {{ fn(x) {{ f(g(x)) }} }})({f}, {g}))"),
                false => format!("((fn(k) {{ fn(x) {{ x + k }} }})({a}))"),
            };
            (number, function)
        });
        // A name may be defined again.
        let n = ["p", "q", "r"][choose(3)].to_string();
        let h = ["u", "v", "w"][choose(3)].to_string();
        let (number, function) = named;
        lines += &match choose(2) {
            0 => format!("  {n}, {h} = {number}, {function};\n"),
            _ => format!("  {h}, (_, {n}) = {function}, ({line}, {number});\n"),
        };
        numbers.retain(|it| it[0] != n);
        functions.retain(|it| it[0] != h);
        numbers.push([n, inlined.0]);
        functions.push([h, inlined.1]);
    }
    let mut results = [Vec::new(), Vec::new()];
    for (at, results) in results.iter_mut().enumerate() {
        for function in &functions {
            results.extend(["x", "y"].map(|it| format!("({})({it})", function[at])));
        }
        for number in &numbers {
            results.extend(["x", "y"].map(|it| format!("{it} * {}", number[at])));
        }
    }
    let [named, inlined] = results.map(|it| it.join(", "));
    let inputs = "x = iota(size=2) * 1f - 0.5; y = reshape(iota(size=6) - 2, shape=[2,3]);\n";
    // In the scope of the program, or in that of a function.
    let text = match choose(2) {
        0 => format!("{inputs}{lines}{named}"),
        _ => format!("f = fn(x, y) {{\n{lines}{named} }};\n{inputs}f(x, y)"),
    };
    (text, format!("{inputs}{inlined}"))
}
