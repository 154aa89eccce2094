//! Random fusions: the maps of a fusion against the composition of what its instructions read.

use super::*;
use proptest::prelude::*;

/// A random computation on parameters `p0` (an array) and `p1` (a start), and a fusion of it.
fn program(random: &mut Random) -> String {
    let mut values: Vec<(String, Vec<i64>)> = Vec::new();
    let first = random.dims(2, 4);
    let mut text = format!(
        "HloModule m\nadd {{\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  \
         ROOT sum = f32[] add(x, y)\n}}\nf {{\n  p0 = f32[{}] parameter(0)\n  \
         p1 = s32[] parameter(1)\n  p2 = s32[2,1] parameter(2)\n  zero = f32[] constant(0)\n",
        list(&first)
    );
    values.push(("p0".into(), first.clone()));
    for step in 0..random.between(2, 6) {
        let recent = values.len() as i64 - 1;
        let (name, dims) = values[random.between((recent - 1).max(0), recent) as usize].clone();
        let Some(&extent) = dims.first() else { continue };
        let (mut out, op) = (dims.clone(), random.between(0, 9));
        let written = match op {
            0 => format!("reverse({name}), dimensions={{0}}"),
            1 => {
                out.reverse();
                let order: Vec<usize> = (0..dims.len()).rev().collect();
                format!("transpose({name}), dimensions={{{}}}", list(&order))
            }
            2 => {
                out = vec![dims.iter().product()];
                format!("reshape({name})")
            }
            3 => {
                let start = random.between(0, extent - 1);
                out[0] = extent - start;
                let mut slices = vec![format!("[{start}:{extent}]")];
                slices.extend(dims[1..].iter().map(|dim| format!("[0:{dim}]")));
                format!("slice({name}), slice={{{}}}", slices.join(", "))
            }
            4 => {
                let (low, interior) = (random.between(-1, 2), random.between(0, 1));
                out[0] = extent + (extent - 1) * interior + low;
                let others = dims[1..].iter().map(|_| "0_0".to_string());
                let padding =
                    joined([format!("{low}_0_{interior}")].into_iter().chain(others), "x");
                format!("pad({name}, zero), padding={padding}")
            }
            5 => {
                out[0] = random.between(1, extent);
                let starts = joined(dims.iter().map(|_| "p1".to_string()), ", ");
                format!("dynamic-slice({name}, {starts}), dynamic_slice_sizes={{{}}}", list(&out))
            }
            6 => {
                out.remove(0);
                format!("reduce({name}, zero), dimensions={{0}}, to_apply=add")
            }
            7 => {
                out[0] *= 2;
                format!("concatenate({name}, {name}), dimensions={{0}}")
            }
            8 => {
                out[0] = 2;
                let offsets: Vec<usize> = (1..dims.len()).collect();
                let sizes = [&[1], &dims[1..]].concat();
                format!(
                    "gather({name}, p2), offset_dims={{{}}}, collapsed_slice_dims={{0}}, \
                     start_index_map={{0}}, index_vector_dim=1, slice_sizes={{{}}}",
                    list(&offsets),
                    list(&sizes)
                )
            }
            _ => {
                let same =
                    values.iter().find(|(_, each)| *each == dims).map_or(&name, |(it, _)| it);
                format!("add({name}, {same})")
            }
        };
        if out.iter().product::<i64>() == 0 || 40 < out.iter().product::<i64>() {
            continue;
        }
        text += &format!("  v{step} = f32[{}] {written}\n", list(&out));
        values.push((format!("v{step}"), out));
    }
    let (name, dims) = values.last().unwrap();
    text += &format!("  ROOT root = f32[{0}] negate({name})\n}}\n", list(dims));
    text + &format!(
        "ENTRY e {{\n  p0 = f32[{}] parameter(0)\n  p1 = s32[] parameter(1)\n  \
         p2 = s32[2,1] parameter(2)\n  \
         ROOT r = f32[{}] fusion(p0, p1, p2), kind=kLoop, calls=f\n}}\n",
        list(&first),
        list(dims)
    )
}

fn data(name: &str, index: &[i64]) -> i64 {
    match name {
        "p1" => 1,
        _ => index.iter().sum::<i64>() * 2,
    }
}

/// What the root of a computation reads of parameter 0, instruction by instruction.
fn composed(indexing: &Indexing, computation: ComputationId) -> Pairs {
    let callee = &indexing.module()[computation];
    let dims = dims_of(&callee.root().shape, 0);
    let mut needed: Vec<Pairs> = vec![Pairs::new(); callee.instructions.len()];
    needed[callee.root.index()] = indices(&dims).into_iter().map(|o| (o.clone(), o)).collect();
    for (instruction, it) in callee.instructions().collect::<Vec<_>>().into_iter().rev() {
        let at = InstructionRef { computation, instruction };
        let consumers = needed[instruction.index()].clone();
        for (operand, set) in it.operands.iter().zip(indexing.output_to_input(at, 0)) {
            let step = pairs_of_set(indexing, &set, 0, &data);
            for (o, middle) in &consumers {
                let reached = step.iter().filter(|(from, _)| from == middle);
                let reached: Vec<_> = reached.map(|(_, to)| (o.clone(), to.clone())).collect();
                needed[operand.index()].extend(reached);
            }
        }
    }
    needed[callee.parameters[0].index()].clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn fusions_are_compositions(seed: u64) {
        let text = program(&mut Random(seed));
        let module = parse(&text);
        let indexing = Indexing::of(&module);
        let callee = module.find("f").unwrap();
        let expected = composed(&indexing, callee);
        let at = indexing.root(module.entry);
        let to_input = &indexing.output_to_input(at, 0)[0];
        let explain = |set| format!("{text}\n{:#?}", indexing.set_text(set));
        let found = pairs_of_set(&indexing, to_input, 0, &data);
        prop_assert_eq!(&found, &expected, "output to input of {}", explain(to_input));
        let to_output = &indexing.input_to_output(at, 0)[0];
        let found = swapped(pairs_of_set(&indexing, to_output, 0, &data));
        prop_assert_eq!(&found, &expected, "input to output of {}", explain(to_output));
    }
}
