//! Computed indices: dynamic-slice, dynamic-update-slice, gather, scatter.

use super::*;
use proptest::prelude::*;

/// A number for each element of each array, around the bounds of small dimensions.
fn data(name: &str, index: &[i64]) -> i64 {
    let mut random = Random(index.iter().fold(name.len() as u64, |hash, &i| {
        hash.wrapping_mul(31).wrapping_add(name.as_bytes()[name.len() - 1].into()) ^ i as u64
    }));
    random.between(-1, 5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn dynamic_slices(seed: u64) {
        let mut random = Random(seed);
        let dims = random.dims(2, 5);
        let sizes: Vec<i64> = dims.iter().map(|&dim| random.between(1, dim)).collect();
        let start = |name: &str, dim: usize| data(name, &[]).clamp(0, dims[dim] - sizes[dim]);
        let attributes = format!("dynamic_slice_sizes={{{}}}", list(&sizes));
        let text = module(&[&dims, &[], &[]], &sizes, "dynamic-slice", &attributes);
        Check { data: &data, ..Check::new(&text, 0) }
            .against(|o, i| i[0] == o[0] + start("p1", 0) && i[1] == o[1] + start("p2", 1));
        Check::new(&text, 1).against(|_, _| true);

        let text = module(&[&dims, &sizes, &[], &[]], &dims, "dynamic-update-slice", "");
        Check { data: &data, ..Check::new(&text, 1) }
            .against(|o, i| o[0] == i[0] + start("p2", 0) && o[1] == i[1] + start("p3", 1));
        let start = [start("p2", 0), start("p3", 1)];
        Check { data: &data, ..Check::new(&text, 0) }.against(|o, i| {
            o == i && !(0..2).all(|dim| (0..sizes[dim]).contains(&(o[dim] - start[dim])))
        });
        Check::new(&text, 3).against(|_, _| true);
    }

    #[test]
    fn gather_and_scatter(seed: u64) {
        let mut random = Random(seed);
        let case = Slices::random(&mut random);
        let (large, small, indices) = (&case.large[..], &case.small[..], &case.indices[..]);
        let attributes = format!(
            "offset_dims={{{}}}, collapsed_slice_dims={{{}}}, start_index_map={{{}}}, \
             operand_batching_dims={{{}}}, start_indices_batching_dims={{{}}}, \
             index_vector_dim={}, slice_sizes={{{}}}",
            list(&case.window), list(&case.dropped), list(&case.index_map), list(&case.batching),
            list(&case.indices_batching), case.vector, list(&case.sizes),
        );
        let text = module(&[large, indices], small, "gather", &attributes);
        Check { data: &data, ..Check::new(&text, 0) }
            .against(|o, i| case.position(o, "p1", true).as_deref() == Some(i));
        Check::new(&text, 1).against(|o, i| case.batch_of_indices(i) == case.batch_of_small(o));

        let attributes = format!(
            "update_window_dims={{{}}}, inserted_window_dims={{{}}}, \
             scatter_dims_to_operand_dims={{{}}}, input_batching_dims={{{}}}, \
             scatter_indices_batching_dims={{{}}}, index_vector_dim={}, to_apply=add",
            list(&case.window), list(&case.dropped), list(&case.index_map), list(&case.batching),
            list(&case.indices_batching), case.vector,
        );
        let text = module(&[large, indices, small], large, "scatter", &attributes);
        Check { data: &data, ..Check::new(&text, 2) }
            .against(|o, i| case.position(i, "p1", false).as_deref() == Some(o));
        Check::new(&text, 0).against(|o, i| o == i);
        Check::new(&text, 1).against(|_, _| true);
    }
}

/// Dimension numbers of a gather or scatter.
struct Slices {
    large: Vec<i64>,
    small: Vec<i64>,
    indices: Vec<i64>,
    vector: usize,
    window: Vec<usize>,
    dropped: Vec<usize>,
    index_map: Vec<usize>,
    batching: Vec<usize>,
    indices_batching: Vec<usize>,
    sizes: Vec<i64>,
}

impl Slices {
    fn random(random: &mut Random) -> Self {
        let large = random.dims(3, 3);
        let (mut dropped, mut batching, mut indexed) = (Vec::new(), Vec::new(), Vec::new());
        let mut sizes = Vec::new();
        for (dim, &extent) in large.iter().enumerate() {
            match random.between(0, 3) {
                0 => {
                    batching.push(dim);
                    sizes.push(1);
                }
                1 => {
                    dropped.push(dim);
                    indexed.push(dim);
                    sizes.push(1);
                }
                2 => {
                    indexed.push(dim);
                    sizes.push(random.between(1, extent));
                }
                _ => sizes.push(random.between(1, extent)),
            }
        }
        // The components of an index vector stand in any order.
        let order = random.permutation(indexed.len());
        let index_map: Vec<usize> = order.into_iter().map(|place| indexed[place]).collect();
        // The dimensions of the indices without that of index vectors: those that go with batching
        // dimensions, and others.
        let num_batch = batching.len() + random.between(0, 1) as usize;
        let mut batch = random.dims(num_batch, 2);
        let places = random.permutation(num_batch);
        let mut batch_places = Vec::new();
        for (&dim, &place) in batching.iter().zip(&places) {
            batch[place] = large[dim];
            batch_places.push(place);
        }
        let implicit = index_map.len() == 1 && random.flip();
        let vector =
            if implicit { num_batch } else { random.between(0, num_batch as i64) as usize };
        let mut indices = batch.clone();
        if !implicit {
            indices.insert(vector, index_map.len() as i64);
        }
        let shifted = |place: usize| place + usize::from(!implicit && vector <= place);
        let indices_batching: Vec<usize> = batch_places.into_iter().map(shifted).collect();
        let window_sizes: Vec<i64> = (0..3)
            .filter(|dim| !dropped.contains(dim) && !batching.contains(dim))
            .map(|dim| sizes[dim])
            .collect();
        let rank = num_batch + window_sizes.len();
        let mut window = random.permutation(rank);
        window.truncate(window_sizes.len());
        window.sort_unstable();
        let (mut windows, mut batches) = (window_sizes.iter(), batch.iter());
        let small = (0..rank)
            .map(|dim| {
                *if window.contains(&dim) { &mut windows } else { &mut batches }.next().unwrap()
            })
            .collect();
        Self {
            large,
            small,
            indices,
            vector,
            window,
            dropped,
            index_map,
            batching,
            indices_batching,
            sizes,
        }
    }

    fn batch_of_small(&self, small: &[i64]) -> Vec<i64> {
        (0..small.len()).filter(|dim| !self.window.contains(dim)).map(|dim| small[dim]).collect()
    }

    fn batch_of_indices(&self, indices: &[i64]) -> Vec<i64> {
        (0..indices.len()).filter(|&dim| dim != self.vector).map(|dim| indices[dim]).collect()
    }

    /// The position in the large array that belongs to one in the small array, as the semantics of
    /// `gather` compute it. `None` where a scatter leaves the slice out.
    fn position(&self, small: &[i64], name: &str, clamp: bool) -> Option<Vec<i64>> {
        let batch = self.batch_of_small(small);
        let mut position = vec![0; self.large.len()];
        for (component, &dim) in self.index_map.iter().enumerate() {
            let mut at = batch.clone();
            if self.vector < self.indices.len() {
                at.insert(self.vector, component as i64);
            }
            let start = data(name, &at);
            let last = self.large[dim] - self.sizes[dim];
            if !clamp && !(0..=last).contains(&start) {
                return None;
            }
            position[dim] = start.clamp(0, last);
        }
        for (&dim, &place) in self.batching.iter().zip(&self.indices_batching) {
            let mut without = place;
            if self.vector < place {
                without -= 1;
            }
            position[dim] = batch[without];
        }
        let mut window = self.window.iter();
        for (dim, place) in position.iter_mut().enumerate() {
            if !self.dropped.contains(&dim) && !self.batching.contains(&dim) {
                *place += small[*window.next().unwrap()];
            }
        }
        Some(position)
    }
}
