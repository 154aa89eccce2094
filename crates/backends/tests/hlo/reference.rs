//! A naive evaluator of HLO on integers: what each instruction says, element by element.
//!
//! Source: OpenXLA, "Operation Semantics". Floats hold integers too, as small as the generator
//! keeps them, so that no operation rounds and results have to be equal. A complex number is one
//! integer, too, with its parts in the two halves.

use tc_dialects::{
    element::{ElementKind, ElementType},
    hlo::{
        ArrayShape, Attribute, ComputationId, Direction, Instruction, Module, Opcode, Shape,
        Value as AttributeValue, WindowDim,
    },
};

/// The complex number of two parts.
pub fn join(re: i64, im: i64) -> i128 {
    i128::from(re) << 64 | i128::from(im as u64)
}

/// The parts of a complex number.
pub fn parts(z: i128) -> [i64; 2] {
    [(z >> 64) as i64, z as i64]
}

/// An array of integers, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    pub shape: ArrayShape,
    pub elements: Vec<i128>,
}

#[derive(Clone, Debug)]
pub enum Value {
    Array(Tensor),
    Tuple(Vec<Value>),
}

impl Value {
    fn array(&self) -> &Tensor {
        match self {
            Self::Array(array) => array,
            Self::Tuple(_) => panic!("expected an array"),
        }
    }

    /// The arrays in order.
    pub fn flatten(self) -> Vec<Tensor> {
        match self {
            Self::Array(array) => vec![array],
            Self::Tuple(values) => values.into_iter().flat_map(Value::flatten).collect(),
        }
    }
}

/// All indices of an array, the last dimension fastest.
fn indices(dims: &[i64]) -> impl Iterator<Item = Vec<i64>> {
    let count = dims.iter().product::<i64>();
    (0..count).map(move |position| {
        let mut rest = position;
        let mut index: Vec<_> = dims
            .iter()
            .rev()
            .map(|extent| {
                let at = rest % extent;
                rest /= extent;
                at
            })
            .collect();
        index.reverse();
        index
    })
}

fn position(dims: &[i64], index: &[i64]) -> usize {
    assert_eq!(dims.len(), index.len());
    let mut position = 0;
    for (extent, at) in dims.iter().zip(index) {
        assert!((0..*extent).contains(at), "{index:?} in {dims:?}");
        position = position * extent + at;
    }
    position as usize
}

impl Tensor {
    fn at(&self, index: &[i64]) -> i128 {
        self.elements[position(&self.shape.dims, index)]
    }

    /// The element, where there is one.
    fn get(&self, index: &[i64]) -> Option<i128> {
        let fits = self.shape.dims.iter().zip(index).all(|(extent, at)| (0..*extent).contains(at));
        fits.then(|| self.at(index))
    }

    fn set(&mut self, index: &[i64], value: i128) {
        let position = position(&self.shape.dims, index);
        self.elements[position] = value;
    }

    fn generate(shape: &ArrayShape, element: impl FnMut(Vec<i64>) -> i128) -> Self {
        Self { shape: shape.clone(), elements: indices(&shape.dims).map(element).collect() }
    }

    fn scalar(element: ElementType, value: i128) -> Self {
        Self { shape: ArrayShape::new(element, vec![]), elements: vec![value] }
    }
}

/// What a type keeps of an integer.
fn wrap(element: ElementType, value: i128) -> i128 {
    let bits = element.bits();
    match element.kind() {
        ElementKind::Pred => i128::from(value != 0),
        ElementKind::Unsigned => value & ((1 << bits) - 1),
        ElementKind::Signed => value << (128 - bits) >> (128 - bits),
        _ => value,
    }
}

/// The results of a computation on arguments.
pub fn evaluate(module: &Module, id: ComputationId, arguments: &[Value]) -> Value {
    let computation = &module[id];
    let mut values: Vec<Value> = Vec::new();
    for instruction in &computation.instructions {
        let operands: Vec<&Value> =
            instruction.operands.iter().map(|operand| &values[operand.index()]).collect();
        let called = |attribute| instruction.computation(attribute).expect("a computation");
        let value = match instruction.opcode {
            Opcode::Parameter => {
                arguments[instruction.parameter_number().expect("a number") as usize].clone()
            }
            Opcode::Tuple => Value::Tuple(operands.into_iter().cloned().collect()),
            Opcode::GetTupleElement => match operands[0] {
                Value::Tuple(elements) => elements
                    [instruction.integer(Attribute::Index).expect("an index") as usize]
                    .clone(),
                Value::Array(_) => panic!("expected a tuple"),
            },
            Opcode::Call | Opcode::Fusion => {
                let arguments: Vec<_> = operands.into_iter().cloned().collect();
                let callee = instruction.called_computations().next().expect("a computation");
                evaluate(module, callee, &arguments)
            }
            Opcode::While => {
                let mut state = operands[0].clone();
                let (condition, body) = (called(Attribute::Condition), called(Attribute::Body));
                let goes_on = |state: &Value| {
                    evaluate(module, condition, std::slice::from_ref(state)).array().elements[0]
                };
                while goes_on(&state) != 0 {
                    state = evaluate(module, body, &[state]);
                }
                state
            }
            Opcode::Conditional => {
                let branches = instruction.branches();
                let selector = operands[0].array();
                let last = branches.len() - 1;
                let number = match selector.shape.element_type {
                    ElementType::Pred => usize::from(selector.elements[0] == 0),
                    _ => usize::try_from(selector.elements[0]).map_or(last, |it| it.min(last)),
                };
                evaluate(module, branches[number], &[operands[1 + number].clone()])
            }
            _ => {
                let arrays: Vec<_> = operands.into_iter().map(Value::array).collect();
                let step = Step { module, instruction, arrays: &arrays };
                step.evaluate()
            }
        };
        values.push(value);
    }
    values.swap_remove(computation.root.index())
}

/// An instruction on arrays.
struct Step<'a> {
    module: &'a Module,
    instruction: &'a Instruction,
    arrays: &'a [&'a Tensor],
}

impl Step<'_> {
    fn shapes(&self) -> Vec<ArrayShape> {
        let mut shapes = Vec::new();
        self.instruction.shape.for_each_array(&mut |shape| shapes.push(shape.clone()));
        shapes
    }

    /// Applies a computation of scalars.
    fn apply(&self, attribute: Attribute, arguments: &[(ElementType, i128)]) -> Vec<i128> {
        let id = self.instruction.computation(attribute).expect("a computation");
        let arguments: Vec<_> = arguments
            .iter()
            .map(|(element, value)| Value::Array(Tensor::scalar(*element, *value)))
            .collect();
        let results = evaluate(self.module, id, &arguments).flatten();
        results.into_iter().map(|result| result.elements[0]).collect()
    }

    fn evaluate(&self) -> Value {
        let results = match self.instruction.opcode {
            Opcode::Reduce => self.reduce(),
            Opcode::ReduceWindow => self.reduce_window(),
            Opcode::Scatter => self.scatter(),
            Opcode::Sort => self.sort(),
            _ => vec![self.one()],
        };
        match &self.instruction.shape {
            Shape::Tuple(_) => Value::Tuple(results.into_iter().map(Value::Array).collect()),
            _ => Value::Array(results.into_iter().next().expect("a result")),
        }
    }

    fn one(&self) -> Tensor {
        let (it, arrays) = (self.instruction, self.arrays);
        let shape = self.shapes().swap_remove(0);
        let dimensions = it.dimensions();
        match it.opcode {
            Opcode::Constant => {
                let literal = it.literal().and_then(|literal| literal.as_array());
                let literal = literal.expect("a literal of an array");
                let count = shape.num_elements().expect("a size") as usize;
                let value = |at: usize| match (literal.float(at), literal.complex(at)) {
                    (Some(value), _) => value as i128,
                    (_, Some((re, im))) => join(re as i64, im as i64),
                    _ => literal.integer(at).expect("an integer"),
                };
                let value = |at: usize| value(if literal.is_splat { 0 } else { at });
                Tensor { elements: (0..count).map(value).collect(), shape }
            }
            Opcode::Iota => {
                let dim = it.integer(Attribute::IotaDimension).expect("a dimension") as usize;
                let element = shape.element_type;
                Tensor::generate(&shape, |index| wrap(element, i128::from(index[dim])))
            }
            Opcode::Broadcast => Tensor::generate(&shape, |index| {
                let from: Vec<_> = dimensions.iter().map(|dim| index[*dim as usize]).collect();
                arrays[0].at(&from)
            }),
            Opcode::Reshape => Tensor { shape, elements: arrays[0].elements.clone() },
            Opcode::Transpose => Tensor::generate(&shape, |index| {
                let mut from = index.clone();
                for (to, dim) in dimensions.iter().enumerate() {
                    from[*dim as usize] = index[to];
                }
                arrays[0].at(&from)
            }),
            Opcode::Reverse => Tensor::generate(&shape, |mut index| {
                for dim in dimensions {
                    let dim = *dim as usize;
                    index[dim] = shape.dims[dim] - 1 - index[dim];
                }
                arrays[0].at(&index)
            }),
            Opcode::Slice => Tensor::generate(&shape, |mut index| {
                for (at, slice) in index.iter_mut().zip(it.slice_dims()) {
                    *at = slice.start + *at * slice.stride;
                }
                arrays[0].at(&index)
            }),
            Opcode::Pad => Tensor::generate(&shape, |mut index| {
                for (at, padding) in index.iter_mut().zip(it.padding()) {
                    let step = padding.interior + 1;
                    let from = *at - padding.low;
                    *at = if from.rem_euclid(step) == 0 { from.div_euclid(step) } else { -1 };
                }
                arrays[0].get(&index).unwrap_or(arrays[1].elements[0])
            }),
            Opcode::Concatenate => Tensor::generate(&shape, |mut index| {
                let dim = dimensions[0] as usize;
                for array in arrays {
                    if index[dim] < array.shape.dims[dim] {
                        return array.at(&index);
                    }
                    index[dim] -= array.shape.dims[dim];
                }
                panic!("an index behind all operands")
            }),
            Opcode::Dot => self.dot(&shape),
            Opcode::Convolution => self.convolution(&shape),
            Opcode::DynamicSlice => {
                let starts = self.starts(&arrays[1..], arrays[0], &shape.dims);
                Tensor::generate(&shape, |index| arrays[0].at(&sum(&index, &starts)))
            }
            Opcode::DynamicUpdateSlice => {
                let mut result = arrays[0].clone();
                let update = arrays[1];
                let starts = self.starts(&arrays[2..], arrays[0], &update.shape.dims);
                for index in indices(&update.shape.dims) {
                    result.set(&sum(&index, &starts), update.at(&index));
                }
                result
            }
            Opcode::Gather => self.gather(&shape),
            Opcode::SelectAndScatter => self.select_and_scatter(),
            Opcode::Map => Tensor::generate(&shape, |index| {
                let values = arrays.iter().map(|it| (it.shape.element_type, it.at(&index)));
                self.apply(Attribute::ToApply, &values.collect::<Vec<_>>())[0]
            }),
            _ => Tensor::generate(&shape, |index| {
                let values: Vec<_> = arrays
                    .iter()
                    .map(|it| if it.shape.rank() == 0 { it.elements[0] } else { it.at(&index) })
                    .collect();
                let of = arrays[0].shape.element_type;
                wrap(shape.element_type, element_wise(it, of, shape.element_type, &values))
            }),
        }
    }

    /// Where a slice starts, moved inside.
    fn starts(&self, indices: &[&Tensor], source: &Tensor, sizes: &[i64]) -> Vec<i64> {
        let extents = source.shape.dims.iter().zip(sizes);
        let starts = indices.iter().zip(extents);
        starts.map(|(at, (dim, size))| clamped(at.elements[0], dim - size)).collect()
    }

    fn dot(&self, shape: &ArrayShape) -> Tensor {
        let (lhs, rhs) = (self.arrays[0], self.arrays[1]);
        let dims = self.instruction.dot_dims();
        let extents: Vec<_> =
            dims.lhs_contracting.iter().map(|dim| lhs.shape.dims[*dim as usize]).collect();
        let num_batch = dims.lhs_batch.len();
        let lhs_free = lhs.shape.rank() - num_batch - extents.len();
        // The index of an operand, from its part of the result and the contracted position.
        let of = |array: &Tensor,
                  batch: &[i64],
                  contracted: &[i64],
                  result: &[i64],
                  at: &[i64],
                  skipped: usize| {
            let mut free = result[num_batch + skipped..].iter();
            let index = (0..array.shape.rank() as i64).map(|dim| {
                let place = |list: &[i64]| list.iter().position(|it| *it == dim);
                match (place(batch), place(contracted)) {
                    (Some(number), _) => result[number],
                    (_, Some(number)) => at[number],
                    _ => *free.next().expect("a dimension of the result"),
                }
            });
            array.at(&index.collect::<Vec<_>>())
        };
        Tensor::generate(shape, |result| {
            let is_complex = shape.element_type.is_complex();
            let term = |at: Vec<i64>| {
                let x = of(lhs, dims.lhs_batch, dims.lhs_contracting, &result, &at, 0);
                let y = of(rhs, dims.rhs_batch, dims.rhs_contracting, &result, &at, lhs_free);
                if is_complex { complex(Opcode::Multiply, &[x, y]) } else { x.wrapping_mul(y) }
            };
            let total = indices(&extents).map(term).fold(0, |total, term| match is_complex {
                true => complex(Opcode::Add, &[total, term]),
                false => i128::wrapping_add(total, term),
            });
            wrap(shape.element_type, total)
        })
    }

    fn convolution(&self, shape: &ArrayShape) -> Tensor {
        let (lhs, rhs) = (self.arrays[0], self.arrays[1]);
        let labels = self.instruction.dim_labels().expect("labels");
        let window = self.instruction.window();
        let groups = |attribute| self.instruction.integer(attribute).unwrap_or(1);
        let feature_groups = groups(Attribute::FeatureGroupCount);
        let batch_groups = groups(Attribute::BatchGroupCount);
        let extent = |array: &Tensor, dim: i64| array.shape.dims[dim as usize];
        let features = extent(rhs, labels.kernel_input_feature);
        let outputs = extent(rhs, labels.kernel_output_feature);
        let batches = extent(lhs, labels.input_batch) / batch_groups;
        let sizes: Vec<_> = labels.kernel_spatial.iter().map(|dim| extent(rhs, *dim)).collect();
        Tensor::generate(shape, |result| {
            let output = result[labels.output_feature as usize];
            let mut total = 0i128;
            for feature in 0..features {
                for tap in indices(&sizes) {
                    let mut from = vec![0; lhs.shape.rank()];
                    let mut kernel = vec![0; rhs.shape.rank()];
                    from[labels.input_batch as usize] = result[labels.output_batch as usize]
                        + output / (outputs / batch_groups) * batches;
                    from[labels.input_feature as usize] =
                        output / (outputs / feature_groups) * features + feature;
                    kernel[labels.kernel_input_feature as usize] = feature;
                    kernel[labels.kernel_output_feature as usize] = output;
                    for (number, dim) in window.iter().enumerate() {
                        let at = result[labels.output_spatial[number] as usize];
                        let place = labels.input_spatial[number] as usize;
                        from[place] = tapped(dim, at, tap[number]);
                        let last = sizes[number] - 1;
                        kernel[labels.kernel_spatial[number] as usize] =
                            if dim.reversal { last - tap[number] } else { tap[number] };
                    }
                    let product = lhs.get(&from).unwrap_or(0).wrapping_mul(rhs.at(&kernel));
                    total = product.wrapping_add(total);
                }
            }
            wrap(shape.element_type, total)
        })
    }

    fn reduce(&self) -> Vec<Tensor> {
        let (sources, inits) = self.arrays.split_at(self.arrays.len() / 2);
        let reduced = self.instruction.dimensions();
        let dims = &sources[0].shape.dims;
        let extents: Vec<_> = reduced.iter().map(|dim| dims[*dim as usize]).collect();
        self.fold(sources, inits, |result| {
            let mut all = Vec::new();
            for at in indices(&extents) {
                let mut free = result.iter();
                let index = (0..dims.len() as i64).map(|dim| {
                    let place = reduced.iter().position(|it| *it == dim);
                    place.map_or_else(|| *free.next().expect("a dimension"), |place| at[place])
                });
                all.push(index.collect());
            }
            all
        })
    }

    fn reduce_window(&self) -> Vec<Tensor> {
        let (sources, inits) = self.arrays.split_at(self.arrays.len() / 2);
        let window = self.instruction.window();
        let sizes: Vec<_> = window.iter().map(|dim| dim.size).collect();
        self.fold(sources, inits, |result| {
            let index = |taps: Vec<i64>| {
                let place = window.iter().zip(result).zip(taps);
                place.map(|((dim, at), tap)| tapped(dim, *at, tap)).collect()
            };
            indices(&sizes).map(index).collect()
        })
    }

    /// Folds the elements at the indices that belong to an element of the result, if they exist.
    fn fold(
        &self,
        sources: &[&Tensor],
        inits: &[&Tensor],
        places: impl Fn(&[i64]) -> Vec<Vec<i64>>,
    ) -> Vec<Tensor> {
        let shapes = self.shapes();
        let mut results: Vec<_> =
            shapes.iter().map(|shape| Tensor::generate(shape, |_| 0)).collect();
        for result in indices(&shapes[0].dims) {
            let mut carried: Vec<_> = inits.iter().map(|init| init.elements[0]).collect();
            for place in places(&result) {
                let new: Option<Vec<_>> = sources.iter().map(|it| it.get(&place)).collect();
                let Some(new) = new else { continue };
                let types = sources.iter().chain(sources).map(|it| it.shape.element_type);
                let arguments: Vec<_> = types.zip(carried.into_iter().chain(new)).collect();
                carried = self.apply(Attribute::ToApply, &arguments);
            }
            for (tensor, value) in results.iter_mut().zip(carried) {
                tensor.set(&result, value);
            }
        }
        results
    }

    fn gather(&self, shape: &ArrayShape) -> Tensor {
        let (source, starts) = (self.arrays[0], self.arrays[1]);
        let dims = self.instruction.gather_dims();
        Tensor::generate(shape, |result| {
            let has = |list: &[i64], dim: i64| list.contains(&dim);
            let all = 0..result.len() as i64;
            let batch: Vec<_> = all
                .filter(|dim| !has(dims.offset_dims, *dim))
                .map(|dim| result[dim as usize])
                .collect();
            let mut offsets = dims.offset_dims.iter().map(|dim| result[*dim as usize]);
            let index = (0..source.shape.rank() as i64).map(|dim| {
                let extent = source.shape.dims[dim as usize];
                let last = extent - dims.slice_sizes[dim as usize];
                let component = dims.start_index_map.iter().position(|it| *it == dim);
                let start = component.map_or(0, |component| {
                    clamped(
                        starts.at(&with(&batch, &starts.shape, dims.index_vector_dim, component)),
                        last,
                    )
                });
                let batching = dims.operand_batching_dims.iter().position(|it| *it == dim);
                if let Some(number) = batching {
                    return batched(
                        &batch,
                        dims.start_indices_batching_dims[number],
                        dims.index_vector_dim,
                    );
                }
                let dropped = has(dims.collapsed_slice_dims, dim);
                start + if dropped { 0 } else { offsets.next().expect("an offset") }
            });
            source.at(&index.collect::<Vec<_>>())
        })
    }

    fn scatter(&self) -> Vec<Tensor> {
        let count = self.arrays.len() / 2;
        let mut results: Vec<_> = self.arrays[..count].iter().map(|it| (*it).clone()).collect();
        let (starts, updates) = (self.arrays[count], &self.arrays[count + 1..]);
        let dims = self.instruction.scatter_dims();
        let target = results[0].shape.dims.clone();
        for update in indices(&updates[0].shape.dims) {
            let has = |list: &[i64], dim: i64| list.contains(&dim);
            let all = 0..update.len() as i64;
            let batch: Vec<_> = all
                .filter(|dim| !has(dims.update_window_dims, *dim))
                .map(|dim| update[dim as usize])
                .collect();
            let mut window = dims.update_window_dims.iter();
            let (mut index, mut fits) = (Vec::new(), true);
            for dim in 0..target.len() as i64 {
                let batching = dims.input_batching_dims.iter().position(|it| *it == dim);
                if let Some(number) = batching {
                    let of = dims.scatter_indices_batching_dims[number];
                    index.push(batched(&batch, of, dims.index_vector_dim));
                    continue;
                }
                let components = dims.scatter_dims_to_operand_dims;
                let start = components.iter().position(|it| *it == dim).map_or(0, |component| {
                    starts.at(&with(&batch, &starts.shape, dims.index_vector_dim, component))
                });
                let (offset, size) = match has(dims.inserted_window_dims, dim) {
                    true => (0, 1),
                    false => {
                        let dim = *window.next().expect("a dimension of the window") as usize;
                        (update[dim], updates[0].shape.dims[dim])
                    }
                };
                // The whole window has to fit.
                fits &= 0 <= start && start + i128::from(size) <= i128::from(target[dim as usize]);
                index.push(if fits { start as i64 + offset } else { 0 });
            }
            if !fits {
                continue;
            }
            let old = results.iter().map(|it| (it.shape.element_type, it.at(&index)));
            let new = updates.iter().map(|it| (it.shape.element_type, it.at(&update)));
            let arguments: Vec<_> = old.chain(new).collect();
            let values = self.apply(Attribute::ToApply, &arguments);
            results.iter_mut().zip(values).for_each(|(tensor, value)| tensor.set(&index, value));
        }
        results
    }

    fn select_and_scatter(&self) -> Tensor {
        let (operand, source) = (self.arrays[0], self.arrays[1]);
        let element = operand.shape.element_type;
        let mut result = Tensor::generate(&operand.shape, |_| self.arrays[2].elements[0]);
        let window = self.instruction.window();
        let sizes: Vec<_> = window.iter().map(|dim| dim.size).collect();
        for at in indices(&source.shape.dims) {
            let mut selected: Option<Vec<i64>> = None;
            for taps in indices(&sizes) {
                let place = window.iter().zip(&at).zip(taps);
                let place: Vec<_> = place.map(|((dim, at), tap)| tapped(dim, *at, tap)).collect();
                let Some(value) = operand.get(&place) else { continue };
                let keeps = selected.as_ref().is_some_and(|old| {
                    let arguments = [(element, operand.at(old)), (element, value)];
                    self.apply(Attribute::Select, &arguments)[0] != 0
                });
                if !keeps {
                    selected = Some(place);
                }
            }
            if let Some(place) = selected {
                let arguments = [(element, result.at(&place)), (element, source.at(&at))];
                let value = self.apply(Attribute::Scatter, &arguments)[0];
                result.set(&place, value);
            }
        }
        result
    }

    fn sort(&self) -> Vec<Tensor> {
        let mut results: Vec<_> = self.arrays.iter().map(|it| (*it).clone()).collect();
        let dims = results[0].shape.dims.clone();
        let dim = self.instruction.dimensions()[0] as usize;
        let mut others = dims.clone();
        others[dim] = 1;
        for first in indices(&others) {
            let place = |at: i64| {
                let mut place = first.clone();
                place[dim] = at;
                place
            };
            let mut rows: Vec<Vec<i128>> = (0..dims[dim])
                .map(|at| results.iter().map(|it| it.at(&place(at))).collect())
                .collect();
            // Stable, whatever the comparison does: insertion from the left.
            for end in 1..rows.len() {
                let mut at = end;
                while 0 < at {
                    let pairs = rows[at].iter().zip(&rows[at - 1]).zip(&results);
                    let arguments: Vec<_> = pairs
                        .flat_map(|((x, y), it)| {
                            [*x, *y].map(|value| (it.shape.element_type, value))
                        })
                        .collect();
                    if self.apply(Attribute::ToApply, &arguments)[0] == 0 {
                        break;
                    }
                    rows.swap(at, at - 1);
                    at -= 1;
                }
            }
            for (at, row) in rows.iter().enumerate() {
                let place = place(at as i64);
                results.iter_mut().zip(row).for_each(|(tensor, value)| tensor.set(&place, *value));
            }
        }
        results
    }
}

fn sum(x: &[i64], y: &[i64]) -> Vec<i64> {
    x.iter().zip(y).map(|(x, y)| x + y).collect()
}

fn clamped(start: i128, last: i64) -> i64 {
    start.clamp(0, i128::from(last)) as i64
}

/// Where a component of an index vector stands.
fn with(batch: &[i64], shape: &ArrayShape, index_vector_dim: i64, component: usize) -> Vec<i64> {
    let mut place = batch.to_vec();
    if (index_vector_dim as usize) < shape.rank() {
        place.insert(index_vector_dim as usize, component as i64);
    }
    place
}

/// The part of a batch index for a dimension of the indices.
fn batched(batch: &[i64], dim: i64, index_vector_dim: i64) -> i64 {
    batch[(if dim < index_vector_dim { dim } else { dim - 1 }) as usize]
}

/// The index of an element of a window; -1 where there is none between dilated ones.
fn tapped(dim: &WindowDim, at: i64, tap: i64) -> i64 {
    let place = at * dim.stride + tap * dim.window_dilation - dim.padding_low;
    if place.rem_euclid(dim.base_dilation) == 0 { place.div_euclid(dim.base_dilation) } else { -1 }
}

/// The value of an element-wise opcode of complex numbers, or that makes one.
fn complex(opcode: Opcode, x: &[i128]) -> i128 {
    let part = |number: usize| parts(x[number]);
    let [a, b] = part(0);
    let other = || part(1);
    match opcode {
        Opcode::Complex => join(x[0] as i64, x[1] as i64),
        Opcode::Real => a.into(),
        Opcode::Imag => b.into(),
        Opcode::Negate => join(-a, -b),
        Opcode::Add => join(a + other()[0], b + other()[1]),
        Opcode::Subtract => join(a - other()[0], b - other()[1]),
        Opcode::Multiply => {
            let [c, d] = other();
            join(a * c - b * d, a * d + b * c)
        }
        opcode => panic!("'{opcode}' of complex numbers is not generated"),
    }
}

/// The value of an element-wise instruction: `of` is the type of the first operand.
fn element_wise(it: &Instruction, of: ElementType, to: ElementType, x: &[i128]) -> i128 {
    let is_pred = to == ElementType::Pred;
    let truth = i128::from;
    match it.opcode {
        Opcode::Select => x[if x[0] != 0 { 1 } else { 2 }],
        opcode if of.is_complex() || to.is_complex() => complex(opcode, x),
        Opcode::Copy => x[0],
        Opcode::Abs => x[0].abs(),
        Opcode::Negate => -x[0],
        Opcode::Sign => x[0].signum(),
        Opcode::Floor | Opcode::Ceil | Opcode::RoundNearestEven => x[0],
        Opcode::Not if is_pred => truth(x[0] == 0),
        Opcode::Not => !x[0],
        Opcode::Add if is_pred => x[0] | x[1],
        Opcode::Multiply if is_pred => x[0] & x[1],
        Opcode::Add => x[0] + x[1],
        Opcode::Subtract => x[0] - x[1],
        Opcode::Multiply => x[0].wrapping_mul(x[1]),
        Opcode::Maximum => x[0].max(x[1]),
        Opcode::Minimum => x[0].min(x[1]),
        Opcode::And => x[0] & x[1],
        Opcode::Or => x[0] | x[1],
        Opcode::Xor => x[0] ^ x[1],
        Opcode::Divide => {
            if x[1] == 0 {
                -1
            } else {
                x[0] / x[1]
            }
        }
        Opcode::Remainder => {
            if x[1] == 0 {
                x[0]
            } else {
                x[0] % x[1]
            }
        }
        Opcode::Clamp => x[1].max(x[0]).min(x[2]),
        Opcode::Convert if to.is_integer() && of.is_float() => {
            let (low, high) = to.integer_range();
            x[0].clamp(low, high)
        }
        Opcode::Convert => x[0],
        Opcode::Compare => {
            let Some(AttributeValue::Direction(direction)) = it.attribute(Attribute::Direction)
            else {
                panic!("expected a direction")
            };
            truth(match direction {
                Direction::Eq => x[0] == x[1],
                Direction::Ne => x[0] != x[1],
                Direction::Ge => x[0] >= x[1],
                Direction::Gt => x[0] > x[1],
                Direction::Le => x[0] <= x[1],
                Direction::Lt => x[0] < x[1],
            })
        }
        opcode => panic!("'{opcode}' is not generated"),
    }
}
