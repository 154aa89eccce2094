//! Random `imap.sort` operations. Every pass of the CPU pipeline preserves the result of the interpreter,
//! the interpreter agrees with a stable sort of Rust, and no comparator leads outside of memory.

use crate::{from_environment, passes, random::Random};
use melior::ir::Module;
use std::{cmp::Ordering, fmt::Write};
use tc_backends::{
    Codegen, cpu,
    interp::compare,
    runtime::{Number, Tensor},
};
use tc_dialects::report;

/// Lengths of rows: none, one, odd ones, and those around the lengths of runs.
const EXTENTS: [usize; 10] = [0, 1, 2, 3, 7, 16, 17, 33, 64, 150];

#[derive(Clone, Copy, PartialEq)]
enum Element {
    F32,
    I32,
    I8,
}

impl Element {
    fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::I32 => "i32",
            Self::I8 => "i8",
        }
    }
}

/// A sort of several arrays by the first `num_keys` of them.
struct Case {
    shape: Vec<usize>,
    dim: usize,
    kept: usize,
    elements: Vec<Element>,
    num_keys: usize,
    has_places: bool,
    is_dynamic: bool,
    in_place: bool,
}

impl Case {
    fn random(random: &mut Random) -> Self {
        let rank = 1 + random.below(3);
        let dim = random.below(rank);
        let mut shape: Vec<_> = (0..rank).map(|_| 1 + random.below(3)).collect();
        if random.chance(5) {
            shape[0] = 0;
        }
        shape[dim] = *random.pick(&EXTENTS);
        let kept = match random.below(3) {
            0 => random.below(shape[dim] + 1),
            1 => random.below(shape[dim].min(6) + 1),
            _ => shape[dim],
        };
        let all = [Element::F32, Element::I32, Element::I8];
        let elements: Vec<_> = (0..1 + random.below(3)).map(|_| *random.pick(&all)).collect();
        Self {
            dim,
            kept,
            num_keys: 1 + random.below(elements.len()),
            has_places: random.chance(50),
            is_dynamic: random.chance(30),
            in_place: kept == shape[dim] && random.chance(30),
            shape,
            elements,
        }
    }

    fn kept_shape(&self) -> Vec<usize> {
        let mut shape = self.shape.clone();
        shape[self.dim] = self.kept;
        shape
    }

    /// The element types of the results.
    fn results(&self) -> Vec<Element> {
        let places = self.has_places.then_some(Element::I32);
        self.elements.iter().copied().chain(places).collect()
    }

    /// A module with the function `f`. With sizes that are not known, the destinations are arguments.
    fn text(&self, comparator: &str) -> String {
        let ty = |shape: &[usize], element: Element| {
            let extent = |extent: &usize| match self.is_dynamic {
                true => "?".to_string(),
                false => extent.to_string(),
            };
            let extents: Vec<_> = shape.iter().map(extent).collect();
            format!("tensor<{}x{}>", extents.join("x"), element.name())
        };
        let inputs: Vec<_> = self.elements.iter().map(|it| ty(&self.shape, *it)).collect();
        let kept: Vec<_> = self.results().iter().map(|it| ty(&self.kept_shape(), *it)).collect();
        let named = |name: &str, types: &[String]| {
            let each = types.iter().enumerate();
            each.map(|(number, ty)| format!("%{name}{number}: {ty}")).collect::<Vec<_>>()
        };
        let list = |name: &str, count: usize| {
            (0..count).map(|number| format!("%{name}{number}")).collect::<Vec<_>>()
        };
        let mut arguments = named("x", &inputs);
        let mut body = String::new();
        let mut inits = list("e", kept.len());
        if self.is_dynamic {
            arguments.extend(named("e", &kept));
        } else {
            for (init, ty) in inits.iter().zip(&kept) {
                writeln!(body, "{init} = tensor.empty() : {ty}").unwrap();
            }
        }
        if self.in_place {
            inits[..inputs.len()].clone_from_slice(&list("x", inputs.len()));
        }
        let pairs = self.elements.iter().enumerate();
        let pairs = pairs
            .map(|(number, element)| format!("%a{number}: {0}, %b{number}: {0}", element.name()));
        let types = kept.join(", ");
        format!(
            "func.func @f({}) -> ({types}) {{\n{body}%r:{} = imap.sort dim = {} stable \
             ins({} : {}) outs({} : {types}) {{\n^bb0({}):\n{comparator}}} -> {types}\n\
             return {} : {types}\n}}\n",
            arguments.join(", "),
            kept.len(),
            self.dim,
            list("x", inputs.len()).join(", "),
            inputs.join(", "),
            inits.join(", "),
            pairs.collect::<Vec<_>>().join(", "),
            (0..kept.len()).map(|it| format!("%r#{it}")).collect::<Vec<_>>().join(", "),
        )
    }

    /// Lexicographic order of the keys, where floats that are no number come last.
    fn comparator(&self) -> String {
        let mut text = "%l = arith.constant false\n%one = arith.constant true\n".to_string();
        let mut less = "%l".to_string();
        for number in (0..self.num_keys).rev() {
            let mut before = |name: &str, x: &str, y: &str| {
                let (x, y) = (format!("%{x}{number}"), format!("%{y}{number}"));
                let name = format!("{name}{number}");
                match self.elements[number] {
                    Element::F32 => writeln!(
                        text,
                        "%{name}l = arith.cmpf olt, {x}, {y} : f32\n\
                         %{name}n = arith.cmpf uno, {y}, {y} : f32\n\
                         %{name}o = arith.cmpf ord, {x}, {x} : f32\n\
                         %{name}m = arith.andi %{name}n, %{name}o : i1\n\
                         %{name} = arith.ori %{name}l, %{name}m : i1"
                    ),
                    element => {
                        writeln!(text, "%{name} = arith.cmpi slt, {x}, {y} : {}", element.name())
                    }
                }
                .unwrap();
            };
            before("p", "a", "b");
            before("q", "b", "a");
            writeln!(
                text,
                "%s{number} = arith.xori %q{number}, %one : i1\n\
                 %t{number} = arith.andi %s{number}, {less} : i1\n\
                 %u{number} = arith.ori %p{number}, %t{number} : i1"
            )
            .unwrap();
            less = format!("%u{number}");
        }
        text + &format!("imap.yield {less} : i1\n")
    }

    fn values(&self, random: &mut Random) -> Vec<Vec<f64>> {
        let count = self.shape.iter().product();
        let most = *random.pick(&[1, 4, 100]);
        let mut value = |element: Element| match element {
            Element::F32 if random.chance(10) => {
                *random.pick(&[f64::NAN, -0.0, 0.0, f64::INFINITY])
            }
            _ => random.between(-most, most) as f64,
        };
        self.elements.iter().map(|it| (0..count).map(|_| value(*it)).collect()).collect()
    }

    fn inputs(&self, values: &[Vec<f64>]) -> Vec<Tensor> {
        let mut inputs: Vec<_> = self
            .elements
            .iter()
            .zip(values)
            .map(|(element, values)| tensor(*element, &self.shape, values))
            .collect();
        if self.is_dynamic {
            let zeros = vec![0.0; self.kept_shape().iter().product()];
            inputs.extend(self.results().iter().map(|it| tensor(*it, &self.kept_shape(), &zeros)));
        }
        inputs
    }

    /// The expected results, computed with the sort of the standard library.
    fn expected(&self, values: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let (extent, step) = (self.shape[self.dim], self.shape[self.dim + 1..].iter().product());
        let num_outer: usize = self.shape[..self.dim].iter().product();
        let count = self.kept_shape().iter().product();
        let mut results = vec![vec![0.0; count]; self.results().len()];
        for (outer, inner) in (0..num_outer).flat_map(|it| (0..step).map(move |inner| (it, inner)))
        {
            let at = |number: usize, extent: usize| (outer * extent + number) * step + inner;
            let mut order: Vec<_> = (0..extent).collect();
            order.sort_by(|x, y| {
                let keys = values[..self.num_keys].iter();
                let each = keys.map(|key| in_order(key[at(*x, extent)], key[at(*y, extent)]));
                each.fold(Ordering::Equal, Ordering::then)
            });
            for (to, from) in order.into_iter().take(self.kept).enumerate() {
                for (number, result) in results.iter_mut().enumerate() {
                    let value = values.get(number).map(|values| values[at(from, extent)]);
                    result[at(to, self.kept)] = value.unwrap_or(from as f64);
                }
            }
        }
        results
    }
}

fn in_order(x: f64, y: f64) -> Ordering {
    x.partial_cmp(&y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()))
}

fn tensor(element: Element, shape: &[usize], values: &[f64]) -> Tensor {
    let all = values.iter().copied();
    let tensor = match element {
        Element::F32 => Tensor::from_values(shape, &all.map(|it| it as f32).collect::<Vec<_>>()),
        Element::I32 => Tensor::from_values(shape, &all.map(|it| it as i32).collect::<Vec<_>>()),
        Element::I8 => Tensor::from_values(shape, &all.map(|it| it as i8).collect::<Vec<_>>()),
    };
    tensor.expect("as many values as the shape has")
}

fn number(number: Number) -> f64 {
    match number {
        Number::Signed(value) => value as f64,
        Number::Unsigned(value) => value as f64,
        Number::Float(value) => value,
    }
}

/// The results of the compiled function.
fn run(module: &Module, case: &Case, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    let compiled = cpu::BACKEND.compile(module, &Codegen::default());
    let compiled = compiled.and_then(|it| it.load()).map_err(|error| error.to_string())?;
    let zeros = vec![0.0; case.kept_shape().iter().product()];
    let mut found: Vec<_> =
        case.results().iter().map(|it| tensor(*it, &case.kept_shape(), &zeros)).collect();
    let function = compiled.function("f").expect("the function of the module");
    function
        .call(&inputs.iter().collect::<Vec<_>>(), &mut found)
        .map_err(|error| error.to_string())?;
    Ok(found)
}

fn check(seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let case = Case::random(&mut random);
    let text = case.text(&case.comparator());
    let context = tc_dialects::new_context();
    let (_, received) = report::collect(&context);
    let module = Module::parse(&context, &text);
    let module = module.ok_or_else(|| format!("{:?}\n{text}", received.borrow()))?;
    let values = case.values(&mut random);
    let inputs = case.inputs(&values);
    let threads = if seed.is_multiple_of(4) { 2 } else { 1 };
    let options = Codegen { threads, ..Codegen::default() };
    let (outcomes, _) = passes::check_passes(&module, "f", &inputs, &options)?;
    for (outcome, expected) in outcomes.iter().zip(case.expected(&values)) {
        for (place, expected) in expected.into_iter().enumerate() {
            let found = number(outcome.number(place));
            if found.to_bits() != expected.to_bits() && !(found.is_nan() && expected.is_nan()) {
                return Err(format!("expected {expected} at {place}, found {found}\n{text}"));
            }
        }
    }
    for (outcome, found) in outcomes.iter().zip(run(&module, &case, &inputs)?) {
        compare(outcome, &found).map_err(|error| format!("compiled: {error}\n{text}"))?;
    }
    Ok(())
}

#[test]
fn random_sorts_agree() {
    let first = from_environment("TC_RANDOM_SEED", 0);
    for seed in first..first + from_environment("TC_RANDOM_PROGRAMS", 300) / 4 {
        check(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// A comparator that is not a strict weak order loses no item, does not panic and writes nothing out of bounds.
#[test]
fn any_comparator_keeps_the_items() {
    let mut random = Random::new(1);
    for body in [
        "%l = arith.cmpi sle, %a0, %b0 : i32\nimap.yield %l : i1\n",
        "%l = arith.cmpi ne, %a0, %b0 : i32\nimap.yield %l : i1\n",
        "%l = arith.constant true\nimap.yield %l : i1\n",
    ] {
        for extent in EXTENTS {
            let case = Case {
                shape: vec![extent],
                dim: 0,
                kept: extent,
                elements: vec![Element::I32],
                num_keys: 1,
                has_places: true,
                is_dynamic: false,
                in_place: false,
            };
            let context = tc_dialects::new_context();
            let module = Module::parse(&context, &case.text(body)).expect("a valid module");
            let values = case.values(&mut random);
            let inputs = case.inputs(&values);
            let interpreted = passes::interpret(&module, "f", &inputs).unwrap();
            let interpreted = interpreted.iter().map(|it| it.to_tensor().unwrap()).collect();
            for found in [interpreted, run(&module, &case, &inputs).unwrap()] {
                let [items, places] = &found[..] else { panic!("two results") };
                let mut seen: Vec<_> = places.numbers().map(number).collect();
                for (item, place) in items.numbers().zip(&seen) {
                    assert_eq!(number(item), values[0][*place as usize], "{body}");
                }
                seen.sort_by(f64::total_cmp);
                assert!(seen.into_iter().eq((0..extent).map(|it| it as f64)), "{body}");
            }
        }
    }
}
