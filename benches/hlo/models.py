"""Writes whole training steps as HLO text, as JAX makes it before optimization.

usage: models.py FOLDER

A step is the loss, its gradients and the update of the parameters. Nothing is calculated: only the
shapes of parameters and data are made. Files that exist already are left alone.
"""

import pathlib
import sys

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax


class Bottleneck(nn.Module):
    channels: int
    stride: int

    @nn.compact
    def __call__(self, x):
        def norm(**options):
            return nn.BatchNorm(use_running_average=False, momentum=0.9, **options)

        stride = (self.stride, self.stride)
        y = nn.relu(norm()(nn.Conv(self.channels, (1, 1), use_bias=False)(x)))
        y = nn.relu(norm()(nn.Conv(self.channels, (3, 3), stride, use_bias=False)(y)))
        y = norm(scale_init=nn.initializers.zeros)(
            nn.Conv(4 * self.channels, (1, 1), use_bias=False)(y)
        )
        if x.shape != y.shape:
            x = norm()(nn.Conv(4 * self.channels, (1, 1), stride, use_bias=False)(x))
        return nn.relu(x + y)


class ResNet50(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(64, (7, 7), (2, 2), use_bias=False)(x)
        x = nn.relu(nn.BatchNorm(use_running_average=False, momentum=0.9)(x))
        x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
        for stage, blocks in enumerate([3, 4, 6, 3]):
            for block in range(blocks):
                x = Bottleneck(64 << stage, 2 if 0 < stage and block == 0 else 1)(x)
        return nn.Dense(1000)(x.mean(axis=(1, 2)))


class Gpt(nn.Module):
    layers: int
    width: int = 768
    heads: int = 12
    words: int = 50257

    @nn.compact
    def __call__(self, tokens):
        length = tokens.shape[1]
        table = nn.Embed(self.words, self.width)
        x = table(tokens) + nn.Embed(length, self.width)(jnp.arange(length))
        for _ in range(self.layers):
            mask = nn.make_causal_mask(tokens)
            x = x + nn.SelfAttention(self.heads)(nn.LayerNorm()(x), mask)
            y = nn.gelu(nn.Dense(4 * self.width)(nn.LayerNorm()(x)))
            x = x + nn.Dense(self.width)(y)
        return table.attend(nn.LayerNorm()(x))


def training_step(model, optimizer, data):
    """The HLO text of a step on data and labels of these shapes."""
    inputs, labels = data

    def loss_of(parameters, others, inputs, labels):
        variables = {"params": parameters, **others}
        scores, others = model.apply(variables, inputs, mutable=list(others))
        loss = optax.softmax_cross_entropy_with_integer_labels(scores, labels)
        return loss.mean(), others

    def step(parameters, others, state, inputs, labels):
        gradients = jax.value_and_grad(loss_of, has_aux=True)
        (loss, others), gradients = gradients(parameters, others, inputs, labels)
        updates, state = optimizer.update(gradients, state, parameters)
        return loss, optax.apply_updates(parameters, updates), others, state

    variables = dict(jax.eval_shape(model.init, jax.random.key(0), inputs))
    parameters = variables.pop("params")
    state = jax.eval_shape(optimizer.init, parameters)
    lowered = jax.jit(step).lower(parameters, variables, state, inputs, labels)
    return lowered.as_text(dialect="hlo")


def shape(*dims, dtype=jnp.int32):
    return jax.ShapeDtypeStruct(dims, dtype)


IMAGES = (shape(32, 224, 224, 3, dtype=jnp.float32), shape(32))
TOKENS = (shape(8, 512), shape(8, 512))
STEPS = {
    "resnet50-momentum": lambda: (ResNet50(), optax.sgd(0.1, momentum=0.9), IMAGES),
    "gpt12-adam": lambda: (Gpt(12), optax.adam(1e-4), TOKENS),
    "gpt96-adam": lambda: (Gpt(96), optax.adam(1e-4), TOKENS),
}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in STEPS.items():
        path = folder / f"{name}.hlo"
        if not path.exists():
            text = training_step(*make())
            path.write_text(text)
            print(f"{path}: {text.count(' = ')} instructions")


main()
