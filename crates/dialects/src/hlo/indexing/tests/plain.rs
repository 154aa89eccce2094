//! Element-wise operations, operations that move elements, contractions and reductions.

use super::*;
use proptest::prelude::*;

/// The number of an element when the dimensions vary in this order, the last one fastest.
fn number(index: &[i64], dims: &[i64], order: &[usize]) -> i64 {
    order.iter().fold(0, |number, &dim| number * dims[dim] + index[dim])
}

/// Sizes with the same product, by moving factors.
fn regrouped(random: &mut Random, dims: &[i64]) -> Vec<i64> {
    let mut out: Vec<i64> = Vec::new();
    for &dim in dims {
        let mut rest = dim;
        for factor in [2, 3] {
            if rest % factor == 0 && random.flip() {
                out.push(factor);
                rest /= factor;
            }
        }
        out.push(rest);
    }
    let mut merged: Vec<i64> = Vec::new();
    for dim in out {
        match merged.last_mut() {
            Some(last) if random.flip() => *last *= dim,
            _ => merged.push(dim),
        }
    }
    merged
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn elementwise_and_broadcast(seed: u64) {
        let mut random = Random(seed);
        let dims = random.dims(3, 3);
        Check::new(&module(&[&dims, &dims], &dims, "add", ""), 1).against(|o, i| o == i);
        let text = module(&[&[], &dims, &[]], &dims, "clamp", "");
        Check::new(&text, 1).against(|o, i| o == i);
        Check::new(&text, 0).against(|_, _| true);

        let rank = random.between(0, 3) as usize;
        let mut places = random.permutation(3);
        places.truncate(rank);
        let operand: Vec<i64> = places.iter().map(|&place| dims[place]).collect();
        let text = module(&[&operand], &dims, "broadcast", &format!("dimensions={{{}}}", list(&places)));
        Check::new(&text, 0)
            .against(|o, i| places.iter().zip(i).all(|(&place, &i)| o[place] == i));
    }

    #[test]
    fn transpose_and_reverse(seed: u64) {
        let mut random = Random(seed);
        let dims = random.dims(3, 4);
        let places = random.permutation(3);
        let output: Vec<i64> = places.iter().map(|&place| dims[place]).collect();
        let text = module(&[&dims], &output, "transpose", &format!("dimensions={{{}}}", list(&places)));
        Check::new(&text, 0)
            .against(|o, i| places.iter().zip(o).all(|(&place, &o)| i[place] == o));

        let reversed: Vec<usize> = (0..3).filter(|_| random.flip()).collect();
        let text = module(&[&dims], &dims, "reverse", &format!("dimensions={{{}}}", list(&reversed)));
        Check::new(&text, 0).against(|o, i| {
            (0..3).all(|dim| {
                let from = if reversed.contains(&dim) { dims[dim] - 1 - o[dim] } else { o[dim] };
                i[dim] == from
            })
        });
    }

    #[test]
    fn slice_and_pad(seed: u64) {
        let mut random = Random(seed);
        let dims = random.dims(2, 7);
        let slices: Vec<[i64; 3]> = dims
            .iter()
            .map(|&dim| {
                let start = random.between(0, dim - 1);
                [start, random.between(start, dim), random.between(1, 3)]
            })
            .collect();
        let output: Vec<i64> =
            slices.iter().map(|[start, limit, stride]| (limit - start + stride - 1) / stride).collect();
        let spelled = slices.iter().map(|[start, limit, stride]| format!("[{start}:{limit}:{stride}]"));
        let text = module(&[&dims], &output, "slice", &format!("slice={{{}}}", joined(spelled, ", ")));
        Check::new(&text, 0).against(|o, i| {
            (0..2).all(|dim| i[dim] == slices[dim][0] + o[dim] * slices[dim][2])
        });

        let mut padding = Vec::new();
        let mut output = Vec::new();
        for &dim in &dims {
            let interior = random.between(0, 2);
            let inner = dim + (dim - 1) * interior;
            let low = random.between(-inner.min(3), 3);
            let high = random.between((-inner - low).max(-2), 3);
            padding.push([low, high, interior]);
            output.push((inner + low + high).max(0));
        }
        let spelled = padding.iter().map(|[low, high, interior]| format!("{low}_{high}_{interior}"));
        let text = module(&[&dims, &[]], &output, "pad", &format!("padding={}", joined(spelled, "x")));
        Check::new(&text, 0).against(|o, i| {
            (0..2).all(|dim| o[dim] == padding[dim][0] + i[dim] * (padding[dim][2] + 1))
        });
        Check::new(&text, 1).against(|o, _| {
            !indices(&dims).iter().any(|i| {
                (0..2).all(|dim| o[dim] == padding[dim][0] + i[dim] * (padding[dim][2] + 1))
            })
        });
    }

    #[test]
    fn concatenate_puts_operands_side_by_side(seed: u64) {
        let mut random = Random(seed);
        let dims = random.dims(2, 3);
        let along = random.between(0, 1) as usize;
        let extents = random.dims(3, 3);
        let sized = |extent: i64| {
            let mut dims = dims.clone();
            dims[along] = extent;
            dims
        };
        let operands: Vec<Vec<i64>> = extents.iter().map(|&extent| sized(extent)).collect();
        let operands: Vec<&[i64]> = operands.iter().map(Vec::as_slice).collect();
        let output = sized(extents.iter().sum());
        let text = module(&operands, &output, "concatenate", &format!("dimensions={{{along}}}"));
        for operand in 0..3 {
            let before: i64 = extents[..operand].iter().sum();
            Check::new(&text, operand).against(|o, i| {
                o[along] == i[along] + before && o[1 - along] == i[1 - along]
            });
        }
    }

    #[test]
    fn reshape_keeps_row_major_order(seed: u64) {
        let mut random = Random(seed);
        let choices = [1, 2, 3, 4, 6];
        let dims: Vec<i64> = (0..3).map(|_| choices[random.between(0, 4) as usize]).collect();
        let output = regrouped(&mut random, &dims);
        let row_major = |rank: usize| (0..rank).collect::<Vec<_>>();
        let text = module(&[&dims], &output, "reshape", "");
        Check::new(&text, 0).against(|o, i| {
            number(o, &output, &row_major(output.len())) == number(i, &dims, &row_major(3))
        });
    }

    #[test]
    fn bitcast_keeps_memory_order(seed: u64) {
        let mut random = Random(seed);
        let choices = [1, 2, 3, 4];
        let dims: Vec<i64> = (0..3).map(|_| choices[random.between(0, 3) as usize]).collect();
        let order = random.permutation(3);
        let physical: Vec<i64> = order.iter().map(|&dim| dims[dim]).collect();
        // The output has the same memory in other dimensions, which stand in any order.
        let memory = regrouped(&mut random, &physical);
        let out_order = random.permutation(memory.len());
        let mut output = vec![0; memory.len()];
        for (place, &dim) in out_order.iter().enumerate() {
            output[dim] = memory[place];
        }
        let reversed = |order: &[usize]| list(&order.iter().rev().copied().collect::<Vec<_>>());
        let text = format!(
            "HloModule m\nENTRY e {{\n  p0 = f32[{}]{{{}}} parameter(0)\n  \
             ROOT r = f32[{}]{{{}}} bitcast(p0)\n}}\n",
            list(&dims), reversed(&order), list(&output), reversed(&out_order),
        );
        Check::new(&text, 0).against(|o, i| {
            number(o, &output, &out_order) == number(i, &dims, &order)
        });
    }

    #[test]
    fn reduce_sort_and_scan(seed: u64) {
        let mut random = Random(seed);
        let dims = random.dims(3, 3);
        let reduced: Vec<usize> = (0..3).filter(|_| random.flip()).collect();
        let kept: Vec<usize> = (0..3).filter(|dim| !reduced.contains(dim)).collect();
        let output: Vec<i64> = kept.iter().map(|&dim| dims[dim]).collect();
        let shape = format!("(f32[{0}], f32[{0}])", list(&output));
        let attributes = format!("dimensions={{{}}}, to_apply=add", list(&reduced));
        let text = module_of(&[&dims, &dims, &[], &[]], &shape, "reduce", &attributes);
        for operand in 0..2 {
            Check { output: 1 - operand, ..Check::new(&text, operand) }
                .against(|o, i| kept.iter().zip(o).all(|(&dim, &o)| i[dim] == o));
        }
        Check::new(&text, 2).against(|_, _| true);

        let along = random.between(0, 2) as usize;
        let others = |o: &[i64], i: &[i64]| (0..3).all(|dim| dim == along || o[dim] == i[dim]);
        let shape = format!("(f32[{0}], f32[{0}])", list(&dims));
        let text = module_of(
            &[&dims, &dims], &shape, "sort", &format!("dimensions={{{along}}}, to_apply=less"),
        );
        Check { output: 1, ..Check::new(&text, 0) }.against(others);

        let mut carried = dims.clone();
        carried.remove(along);
        let shape = format!("(f32[{}], f32[{}])", list(&dims), list(&carried));
        let is_reverse = random.flip();
        let attributes = format!(
            "dimensions={{{along}}}, num_carries=1, is_reverse={is_reverse}, to_apply=add"
        );
        let text = module_of(&[&dims, &carried], &shape, "scan", &attributes);
        Check::new(&text, 0).against(|o, i| {
            let before = if is_reverse { o[along] <= i[along] } else { i[along] <= o[along] };
            others(o, i) && before
        });
        let rest = |index: &[i64]| {
            let mut index = index.to_vec();
            index.remove(along);
            index
        };
        Check::new(&text, 1).against(|o, i| rest(o) == i);
        Check { output: 1, ..Check::new(&text, 0) }.against(|o, i| o == rest(i));
        Check { output: 1, ..Check::new(&text, 1) }.against(|o, i| o == i);
    }

    #[test]
    fn dot_sums_over_contracted_dimensions(seed: u64) {
        let mut random = Random(seed);
        // Roles of the dimensions: batch, contracted, free of either side.
        let (num_batch, num_contracted) = (random.between(0, 1) as usize, random.between(0, 2) as usize);
        let shared = random.dims(num_batch + num_contracted, 3);
        let place = |random: &mut Random, free: usize| {
            let rank = shared.len() + free;
            let places = random.permutation(rank);
            let mut dims = random.dims(rank, 3);
            for (&place, &extent) in places.iter().zip(&shared) {
                dims[place] = extent;
            }
            let mut free = places[shared.len()..].to_vec();
            free.sort_unstable();
            let (batch, rest) = places.split_at(num_batch);
            (dims, batch.to_vec(), rest[..num_contracted].to_vec(), free)
        };
        let lhs_free = random.between(0, 1) as usize;
        let (lhs, lhs_batch, lhs_contracting, lhs_free) = place(&mut random, lhs_free);
        let (rhs, rhs_batch, rhs_contracting, rhs_free) = place(&mut random, 1);
        let output: Vec<i64> = [
            lhs_batch.iter().map(|&dim| lhs[dim]).collect::<Vec<_>>(),
            lhs_free.iter().map(|&dim| lhs[dim]).collect(),
            rhs_free.iter().map(|&dim| rhs[dim]).collect(),
        ]
        .concat();
        let attributes = format!(
            "lhs_batch_dims={{{}}}, lhs_contracting_dims={{{}}}, rhs_batch_dims={{{}}}, \
             rhs_contracting_dims={{{}}}",
            list(&lhs_batch), list(&lhs_contracting), list(&rhs_batch), list(&rhs_contracting),
        );
        let text = module(&[&lhs, &rhs], &output, "dot", &attributes);
        let (b, m) = (lhs_batch.len(), lhs_free.len());
        let agrees = |dims: &[usize], i: &[i64], o: &[i64]| dims.iter().zip(o).all(|(&dim, &o)| i[dim] == o);
        Check::new(&text, 0)
            .against(|o, i| agrees(&lhs_batch, i, &o[..b]) && agrees(&lhs_free, i, &o[b..]));
        Check::new(&text, 1)
            .against(|o, i| agrees(&rhs_batch, i, &o[..b]) && agrees(&rhs_free, i, &o[b + m..]));
        check_products(&text, |o, l, r| {
            let contracted = lhs_contracting.iter().zip(&rhs_contracting);
            agrees(&lhs_batch, l, &o[..b])
                && agrees(&lhs_free, l, &o[b..])
                && agrees(&rhs_batch, r, &o[..b])
                && agrees(&rhs_free, r, &o[b + m..])
                && { contracted }.all(|(&ours, &theirs)| l[ours] == r[theirs])
        });
    }
}

#[test]
fn scaled_dot_reads_a_scale_per_block() {
    let operands: [&[i64]; 4] = [&[2, 6], &[6, 4], &[2, 3], &[2, 2]];
    let attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    let text = module(&operands, &[2, 4], "scaled-dot", attributes);
    Check::new(&text, 2).against(|o, i| o[0] == i[0]);
    Check::new(&text, 3).against(|o, i| o[1] / 2 == i[1]);
}

#[test]
fn ragged_dot_reads_every_group() {
    let operands: [&[i64]; 3] = [&[4, 2], &[3, 2, 5], &[3]];
    let attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, \
                      rhs_group_dims={0}";
    let text = module(&operands, &[4, 5], "ragged-dot", attributes);
    Check::new(&text, 0).against(|o, i| o[0] == i[0]);
    Check::new(&text, 1).against(|o, i| o[1] == i[2]);
    Check::new(&text, 2).against(|_, _| true);

    let operands: [&[i64]; 3] = [&[4, 2], &[2, 5], &[3]];
    let attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}";
    let text = module(&operands, &[3, 4, 5], "ragged-dot", attributes);
    Check::new(&text, 0).against(|o, i| o[1] == i[0]);
    Check::new(&text, 1).against(|o, i| o[2] == i[1]);
}

#[test]
fn top_k_reads_the_last_dimension() {
    let text = module_of(&[&[2, 5]], "(f32[2,3], s32[2,3])", "topk", "k=3, largest=true");
    for output in 0..2 {
        Check { output, ..Check::new(&text, 0) }.against(|o, i| o[0] == i[0]);
    }
}

#[test]
fn batch_norm_reads_the_feature() {
    let operands: [&[i64]; 3] = [&[2, 3, 2], &[3], &[3]];
    let attributes = "epsilon=0.1, feature_index=1";
    let shape = "(f32[2,3,2], f32[3], f32[3])";
    let text = module_of(&operands, shape, "batch-norm-training", attributes);
    Check::new(&text, 0).against(|o, i| o[1] == i[1]);
    Check::new(&text, 1).against(|o, i| o[1] == i[0]);
    Check { output: 1, ..Check::new(&text, 0) }.against(|o, i| o[0] == i[1]);
    let operands: [&[i64]; 5] = [&[2, 3, 2], &[3], &[3], &[3], &[3]];
    let text = module(&operands, &[2, 3, 2], "batch-norm-inference", attributes);
    Check::new(&text, 0).against(|o, i| o == i);
    Check::new(&text, 4).against(|o, i| o[1] == i[0]);
}

#[test]
fn bitcast_convert_adds_or_drops_a_dimension() {
    let text = "HloModule m\nENTRY e {\n  p0 = u8[2,3,4] parameter(0)\n  \
                ROOT r = f32[2,3] bitcast-convert(p0)\n}\n";
    Check::new(text, 0).against(|o, i| o == &i[..2]);
    let text = "HloModule m\nENTRY e {\n  p0 = f32[2,3] parameter(0)\n  \
                ROOT r = u8[2,3,4] bitcast-convert(p0)\n}\n";
    Check::new(text, 0).against(|o, i| &o[..2] == i);
}

/// Arrays without elements, as operands, as results, and as both.
/// Also if no variable is left that could be without values.
#[test]
fn loops_over_empty_arrays_access_nothing() {
    let reduce = "dimensions={0}, to_apply=add";
    let is_empty = |output: &[i64]| {
        let operand = [&[0], output].concat();
        let module = parse(&module(&[&operand, &[]], output, "reduce", reduce));
        let at = InstructionRef { computation: module.entry, instruction: module.entry().root };
        let ctx = Context::new();
        Accesses::over_output(&ctx, &module, at, 0, &[0]).expect("a relation").is_empty(&ctx)
    };
    assert!(is_empty(&[]));
    assert!(is_empty(&[3]));
}

#[test]
fn empty_arrays() {
    let check = |operands: &[&[i64]],
                 output: &[i64],
                 op: &str,
                 attributes: &str,
                 operand: usize,
                 reads: &dyn Fn(&[i64], &[i64]) -> bool| {
        Check::new(&module(operands, output, op, attributes), operand).against(reads);
    };
    check(&[&[0, 3]], &[3, 0], "transpose", "dimensions={1,0}", 0, &|_, _| true);
    check(&[&[0, 3]], &[0, 3], "reverse", "dimensions={0,1}", 0, &|_, _| true);
    check(&[&[0, 3]], &[0], "reshape", "", 0, &|_, _| true);
    check(&[&[5]], &[0], "slice", "slice={[2:2]}", 0, &|_, _| true);
    check(&[&[0], &[]], &[3], "pad", "padding=1_2", 0, &|_, _| true);
    check(&[&[0], &[]], &[3], "pad", "padding=1_2", 1, &|_, _| true);
    check(&[&[4], &[]], &[0], "pad", "padding=-4_0", 0, &|_, _| true);
    check(&[&[0], &[3]], &[3], "concatenate", "dimensions={0}", 0, &|_, _| true);
    check(&[&[0], &[3]], &[3], "concatenate", "dimensions={0}", 1, &|o, i| o == i);
    check(&[&[]], &[0, 2], "broadcast", "dimensions={}", 0, &|_, _| true);
    let reduce = "dimensions={0}, to_apply=add";
    check(&[&[0, 3], &[]], &[3], "reduce", reduce, 0, &|_, _| true);
    check(&[&[0, 3], &[]], &[3], "reduce", reduce, 1, &|_, _| true);
    let dot = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    check(&[&[2, 0], &[0, 3]], &[2, 3], "dot", dot, 0, &|_, _| true);
    let window = "window={size=2 pad=2_0}, to_apply=add";
    check(&[&[0], &[]], &[1], "reduce-window", window, 0, &|_, _| true);
    check(&[&[0], &[]], &[1], "reduce-window", window, 1, &|_, _| true);
    check(&[&[4], &[]], &[0], "dynamic-slice", "dynamic_slice_sizes={0}", 0, &|_, _| true);
    check(&[&[4], &[0], &[]], &[4], "dynamic-update-slice", "", 0, &|o, i| o == i);
    check(&[&[4], &[0], &[]], &[4], "dynamic-update-slice", "", 1, &|_, _| true);
    let gather = "offset_dims={1}, collapsed_slice_dims={}, start_index_map={0}, \
                  index_vector_dim=1, slice_sizes={2}";
    check(&[&[4], &[0, 1]], &[0, 2], "gather", gather, 0, &|_, _| true);
    let scatter = "update_window_dims={1}, inserted_window_dims={}, \
                   scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add";
    check(&[&[4], &[0, 1], &[0, 2]], &[4], "scatter", scatter, 0, &|o, i| o == i);
    check(&[&[4], &[0, 1], &[0, 2]], &[4], "scatter", scatter, 1, &|_, _| true);
    check(&[&[4], &[0, 1], &[0, 2]], &[4], "scatter", scatter, 2, &|_, _| true);
    let labels = "window={size=2 pad=1_1}, dim_labels=bf0_io0->bf0";
    check(&[&[1, 0, 3], &[0, 2, 2]], &[1, 2, 4], "convolution", labels, 0, &|_, _| true);
    check(&[&[1, 0, 3], &[0, 2, 2]], &[1, 2, 4], "convolution", labels, 1, &|_, _| true);
}
