//! Random fusions: the maps of a fusion against the composition of what its instructions read.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A random computation on parameters `p0` (an array), `p1` (a start) and `p2` (indices), and a fusion of
/// it.
fn program(random: &mut Random) -> String {
    let mut values: Vec<(String, Vec<i64>)> = Vec::new();
    let first = random.dims(2, 4);
    let mut called = String::new();
    let mut text = format!(
        "f {{\n  p0 = f32[{}] parameter(0)\n  p1 = s32[] parameter(1)\n  \
         p2 = s32[2,1] parameter(2)\n  zero = f32[] constant(0)\n  \
         kernel = f32[1,1,2] constant({{{{{{1,2}}}}}})\n",
        list(&first)
    );
    values.push(("p0".into(), first.clone()));
    for step in 0..random.between(2, 6) {
        let recent = values.len() as i64 - 1;
        let (name, dims) = values[random.between((recent - 1).max(0), recent) as usize].clone();
        let Some(&extent) = dims.first() else { continue };
        let (mut out, op) = (dims.clone(), random.between(0, 18));
        let others: Vec<usize> = (1..dims.len()).collect();
        let mut layout = String::new();
        // Instructions before the one that gives the value.
        let mut before = String::new();
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
                let stride = random.between(1, 2);
                out[0] = (extent - start + stride - 1) / stride;
                let mut slices = vec![format!("[{start}:{extent}:{stride}]")];
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
                let (_, other) = &values[0];
                let fits = other.len() == dims.len() && other[1..] == dims[1..];
                let second = if fits { ("p0", other[0]) } else { (&*name, extent) };
                out[0] += second.1;
                format!("concatenate({name}, {}), dimensions={{0}}", second.0)
            }
            8 => {
                out[0] = 2;
                let sizes = [&[1], &dims[1..]].concat();
                format!(
                    "gather({name}, p2), offset_dims={{{}}}, collapsed_slice_dims={{0}}, \
                     start_index_map={{0}}, index_vector_dim=1, slice_sizes={{{}}}",
                    list(&others),
                    list(&sizes)
                )
            }
            9 => {
                let part: Vec<i64> = dims.iter().map(|&dim| random.between(1, dim)).collect();
                let slices = joined(part.iter().map(|dim| format!("[0:{dim}]")), ", ");
                before =
                    format!("  u{step} = f32[{}] slice({name}), slice={{{slices}}}\n", list(&part));
                let starts = joined(dims.iter().map(|_| "p1".to_string()), ", ");
                format!("dynamic-update-slice({name}, u{step}, {starts})")
            }
            10 => {
                let (size, stride) = (random.between(1, 2), random.between(1, 3));
                let (low, base) = (random.between(-1, 1), random.between(1, 2));
                let padded = (extent - 1) * base + 1 + low;
                out[0] = if padded < size { 0 } else { (padded - size) / stride + 1 };
                let each = |value: String, rest: &str| {
                    let rest = others.iter().map(|_| rest.to_string());
                    joined([value].into_iter().chain(rest), "x")
                };
                format!(
                    "reduce-window({name}, zero), window={{size={} stride={} pad={} lhs_dilate={}}}, \
                     to_apply=add",
                    each(size.to_string(), "1"),
                    each(stride.to_string(), "1"),
                    each(format!("{low}_0"), "0_0"),
                    each(base.to_string(), "1"),
                )
            }
            11 => {
                out = [&dims[1..], &dims[1..]].concat();
                format!(
                    "dot({name}, {name}), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}"
                )
            }
            12 => {
                let updates = [&[2], &dims[1..]].concat();
                before = format!(
                    "  u{step} = f32[{}] broadcast(zero), dimensions={{}}\n",
                    list(&updates)
                );
                format!(
                    "scatter({name}, p2, u{step}), update_window_dims={{{}}}, \
                     inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, \
                     index_vector_dim=1, to_apply=add",
                    list(&others)
                )
            }
            13 => {
                let updates = [&[2], &dims[1..]].concat();
                let slices = [&[1], &dims[1..]].concat();
                before = format!(
                    "  u{step} = f32[{}] gather({name}, p2), offset_dims={{{}}}, \
                     collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, \
                     slice_sizes={{{}}}\n  z{step} = f32[{}] broadcast(zero), dimensions={{}}\n",
                    list(&updates),
                    list(&others),
                    list(&slices),
                    list(&dims),
                );
                format!(
                    "scatter(z{step}, p2, u{step}), update_window_dims={{{}}}, \
                     inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, \
                     index_vector_dim=1, to_apply=add",
                    list(&others)
                )
            }
            14 => {
                out.reverse();
                layout = format!("{{{}}}", list(&(0..dims.len()).collect::<Vec<_>>()));
                format!("bitcast({name})")
            }
            15 => {
                let count: i64 = dims.iter().product();
                let (low, stride) = (random.between(0, 1), random.between(1, 3));
                let windows = if count + low < 2 { 0 } else { (count + low - 2) / stride + 1 };
                out = vec![1, 1, windows];
                before = format!("  u{step} = f32[1,1,{count}] reshape({name})\n");
                format!(
                    "convolution(u{step}, kernel), window={{size=2 stride={stride} pad={low}_0 \
                     rhs_reversal=1}}, dim_labels=bf0_io0->bf0"
                )
            }
            16 => {
                let (sizes, start) = (list(&dims), random.between(0, extent - 1));
                let kind = ["call(a), to_apply=", "fusion(a), kind=kLoop, calls="];
                let kind = kind[usize::from(random.flip())].replace("(a)", &format!("({name})"));
                out[0] = extent - start;
                let mut slices = vec![format!("[{start}:{extent}]")];
                slices.extend(dims[1..].iter().map(|dim| format!("[0:{dim}]")));
                called += &format!(
                    "g{step} {{\n  a = f32[{sizes}] parameter(0)\n  \
                     b = f32[{sizes}] reverse(a), dimensions={{0}}\n  \
                     ROOT c = f32[{}] slice(b), slice={{{}}}\n}}\n",
                    list(&out),
                    slices.join(", "),
                );
                format!("{kind}g{step}")
            }
            17 => {
                before = format!(
                    "  u{step} = (f32[{}], (f32[{}])) tuple(p0, w{step})\n  \
                     x{step} = (f32[{}]) get-tuple-element(u{step}), index=1\n",
                    list(&first),
                    list(&dims),
                    list(&dims),
                );
                before = format!("  w{step} = (f32[{}]) tuple({name})\n{before}", list(&dims));
                format!("get-tuple-element(x{step}), index=0")
            }
            _ => {
                let same =
                    values.iter().find(|(_, each)| *each == dims).map_or(&name, |(it, _)| it);
                format!("add({name}, {same})")
            }
        };
        if out.iter().any(|&dim| dim < 1) || 40 < out.iter().product::<i64>() {
            continue;
        }
        text += &format!("{before}  v{step} = f32[{}]{layout} {written}\n", list(&out));
        values.push((format!("v{step}"), out));
    }
    let (name, dims) = values.last().unwrap();
    text += &format!("  ROOT root = f32[{0}] negate({name})\n}}\n", list(dims));
    let header = "HloModule m\nadd {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  \
                  ROOT sum = f32[] add(x, y)\n}\n";
    format!(
        "{header}{called}{text}ENTRY e {{\n  p0 = f32[{}] parameter(0)\n  \
         p1 = s32[] parameter(1)\n  p2 = s32[2,1] parameter(2)\n  \
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
    // For each array of each instruction.
    let mut needed: BTreeMap<(usize, usize), Pairs> = BTreeMap::new();
    let all = indices(&dims).into_iter().map(|o| (o.clone(), o)).collect();
    needed.insert((callee.root.index(), 0), all);
    for (instruction, it) in callee.instructions().collect::<Vec<_>>().into_iter().rev() {
        let at = InstructionRef { computation, instruction };
        for output in 0..num_arrays(&it.shape) {
            let consumers = needed.get(&(instruction.index(), output)).cloned().unwrap_or_default();
            for (operand, set) in it.operands.iter().zip(indexing.output_to_input(at, output)) {
                for array in 0..num_arrays(&callee[*operand].shape) {
                    let step = pairs_of_set(indexing, &set, array, &data);
                    let slot = needed.entry((operand.index(), array)).or_default();
                    for (o, middle) in &consumers {
                        let reached = step.iter().filter(|(from, _)| from == middle);
                        slot.extend(reached.map(|(_, to)| (o.clone(), to.clone())));
                    }
                }
            }
        }
    }
    needed.remove(&(callee.parameters[0].index(), 0)).unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

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

        let touched = expected.iter().map(|(_, i)| i).collect::<BTreeSet<_>>().len() as i64;
        let operand = &module.entry()[module.entry().parameters[0]];
        let found = indexing.utilization(to_input, 0, operand.array().unwrap()).unwrap();
        let fits = if found.exact { touched == found.touched } else { touched <= found.touched };
        prop_assert!(fits, "{touched} elements, found {found:?} for {}", explain(to_input));
    }
}
