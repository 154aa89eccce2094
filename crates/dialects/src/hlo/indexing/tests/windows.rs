//! Windows: reduce-window, select-and-scatter, convolution.

use super::*;
use crate::hlo::WindowDim;
use proptest::prelude::*;

fn spelled(window: &[WindowDim]) -> String {
    let part = |name: &str, value: &dyn Fn(&WindowDim) -> String| {
        format!("{name}={}", joined(window.iter().map(value), "x"))
    };
    let parts = [
        part("size", &|dim| dim.size.to_string()),
        part("stride", &|dim| dim.stride.to_string()),
        part("pad", &|dim| format!("{}_{}", dim.padding_low, dim.padding_high)),
        part("lhs_dilate", &|dim| dim.base_dilation.to_string()),
        part("rhs_dilate", &|dim| dim.window_dilation.to_string()),
        part("rhs_reversal", &|dim| i32::from(dim.reversal).to_string()),
    ];
    format!("window={{{}}}", parts.join(" "))
}

/// How many windows there are.
fn num_windows(extent: i64, dim: &WindowDim) -> i64 {
    let dilated = if extent == 0 { 0 } else { (extent - 1) * dim.base_dilation + 1 };
    let padded = dilated + dim.padding_low + dim.padding_high;
    let covered = (dim.size - 1) * dim.window_dilation + 1;
    if padded < covered { 0 } else { (padded - covered) / dim.stride + 1 }
}

fn random_dim(random: &mut Random, reversal: bool) -> WindowDim {
    WindowDim {
        size: random.between(1, 3),
        stride: random.between(1, 3),
        padding_low: random.between(-1, 2),
        padding_high: random.between(-1, 2),
        base_dilation: random.between(1, 3),
        window_dilation: random.between(1, 2),
        reversal: reversal && random.flip(),
    }
}

/// Whether place `w` in window `o` is position `i` of the operand.
fn is_at(dim: &WindowDim, o: i64, w: i64, i: i64) -> bool {
    o * dim.stride + w * dim.window_dilation - dim.padding_low == i * dim.base_dilation
}

/// Whether window `o` has position `i` of the operand, at any place in it.
fn covers(dim: &WindowDim, o: i64, i: i64) -> bool {
    (0..dim.size).any(|w| is_at(dim, o, w, i))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn reduce_window(seed: u64) {
        let mut random = Random(seed);
        let dims = random.dims(2, 6);
        let window: Vec<WindowDim> = (0..2).map(|_| random_dim(&mut random, false)).collect();
        let output: Vec<i64> =
            dims.iter().zip(&window).map(|(&dim, window)| num_windows(dim, window)).collect();
        let attributes = format!("{}, to_apply=add", spelled(&window));
        let text = module(&[&dims, &[]], &output, "reduce-window", &attributes);
        Check::new(&text, 0)
            .against(|o, i| (0..2).all(|dim| covers(&window[dim], o[dim], i[dim])));
        Check::new(&text, 1).against(|_, _| true);
    }

    #[test]
    fn select_and_scatter(seed: u64) {
        let mut random = Random(seed);
        let dims = random.dims(1, 7);
        let dim = WindowDim {
            base_dilation: 1,
            window_dilation: 1,
            padding_low: random.between(0, 1),
            padding_high: random.between(0, 1),
            ..random_dim(&mut random, false)
        };
        let source = num_windows(dims[0], &dim);
        let attributes = format!("{}, select=less, scatter=add", spelled(&[dim]));
        let text = module(&[&dims, &[source], &[]], &dims, "select-and-scatter", &attributes);
        Check::new(&text, 0).against(|o, i| {
            (0..source).any(|window| covers(&dim, window, o[0]) && covers(&dim, window, i[0]))
        });
        Check::new(&text, 1).against(|o, window| covers(&dim, window[0], o[0]));
        Check::new(&text, 2).against(|_, _| true);
    }

    #[test]
    fn convolution(seed: u64) {
        let mut random = Random(seed);
        let spatial = random.between(0, 2) as usize;
        let extents = random.dims(spatial, 5);
        let window: Vec<WindowDim> = (0..spatial).map(|_| random_dim(&mut random, true)).collect();
        let (feature_groups, batch_groups) = match random.between(0, 2) {
            0 => (random.between(1, 3), 1),
            _ => (1, random.between(1, 3)),
        };
        let batch = random.between(1, 2);
        let (features, outputs) = (random.between(1, 2), random.between(1, 2));
        let kernel_outputs = outputs * feature_groups * batch_groups;
        // Batch, feature, spatial dimensions, each array in its own order.
        let lhs = [&[batch * batch_groups, features * feature_groups], &extents[..]].concat();
        let sizes: Vec<i64> = window.iter().map(|dim| dim.size).collect();
        let rhs = [&[features, kernel_outputs], &sizes[..]].concat();
        let counts: Vec<i64> =
            extents.iter().zip(&window).map(|(&dim, window)| num_windows(dim, window)).collect();
        let out = [&[batch, kernel_outputs], &counts[..]].concat();
        let orders = [0; 3].map(|_| random.permutation(spatial + 2));
        let placed = |dims: &[i64], order: &[usize]| -> Vec<i64> {
            order.iter().map(|&role| dims[role]).collect()
        };
        let label = |names: [&str; 2], order: &[usize]| {
            joined(order.iter().map(|&role| match role {
                0 | 1 => names[role].to_string(),
                _ => (role - 2).to_string(),
            }), "")
        };
        let attributes = format!(
            "{}dim_labels={}_{}->{}, feature_group_count={feature_groups}, \
             batch_group_count={batch_groups}",
            if spatial == 0 { String::new() } else { spelled(&window) + ", " },
            label(["b", "f"], &orders[0]), label(["i", "o"], &orders[1]), label(["b", "f"], &orders[2]),
        );
        let text = module(
            &[&placed(&lhs, &orders[0]), &placed(&rhs, &orders[1])],
            &placed(&out, &orders[2]),
            "convolution",
            &attributes,
        );
        // The index in the order batch, feature, spatial dimensions.
        let roles = |index: &[i64], order: &[usize]| {
            let mut roles = vec![0; index.len()];
            for (&role, &value) in order.iter().zip(index) {
                roles[role] = value;
            }
            roles
        };
        Check::new(&text, 0).against(|o, i| {
            let (o, i) = (roles(o, &orders[2]), roles(i, &orders[0]));
            let feature_group = o[1] / (kernel_outputs / feature_groups);
            let batch_group = o[1] / (kernel_outputs / batch_groups);
            i[0] == batch_group * batch + o[0]
                && i[1] / features == feature_group
                && (0..spatial).all(|dim| covers(&window[dim], o[dim + 2], i[dim + 2]))
        });
        // Whether position `k` of the kernel meets an element in window `o`.
        let meets = |dim: usize, o: i64, k: i64| {
            let w = if window[dim].reversal { window[dim].size - 1 - k } else { k };
            (0..extents[dim]).any(|i| is_at(&window[dim], o, w, i))
        };
        Check::new(&text, 1).against(|o, i| {
            let (o, i) = (roles(o, &orders[2]), roles(i, &orders[1]));
            o[1] == i[1] && (0..spatial).all(|dim| meets(dim, o[dim + 2], i[dim + 2]))
        });
        check_products(&text, |o, l, r| {
            let (o, l, r) = (roles(o, &orders[2]), roles(l, &orders[0]), roles(r, &orders[1]));
            let stands = |dim: usize| {
                let (window, k) = (&window[dim], r[dim + 2]);
                let w = if window.reversal { window.size - 1 - k } else { k };
                is_at(window, o[dim + 2], w, l[dim + 2])
            };
            o[1] == r[1]
                && l[0] == o[1] / (kernel_outputs / batch_groups) * batch + o[0]
                && l[1] == o[1] / (kernel_outputs / feature_groups) * features + r[0]
                && (0..spatial).all(stands)
        });
    }
}
