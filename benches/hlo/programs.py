"""Writes the programs in programs/ as HLO text, as JAX makes it before optimization.

usage: programs.py FOLDER

Needs the packages of requirements.txt. Nothing is calculated: only shapes are made.
"""

import pathlib
import sys

import jax
import jax.numpy as jnp
from jax import lax


def f32(*dims):
    return jax.ShapeDtypeStruct(dims, jnp.float32)


def s32(*dims):
    return jax.ShapeDtypeStruct(dims, jnp.int32)


def softmax(x):
    return jax.nn.softmax(x, -1)


def layer_norm(x, scale, shift):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + shift


def mlp(x, a, b, c):
    return jax.nn.relu(jax.nn.relu(x @ a) @ b) @ c


def bf16_mlp(x, a, b):
    x, a, b = (t.astype(jnp.bfloat16) for t in (x, a, b))
    return (jax.nn.gelu(x @ a) @ b).astype(jnp.float32)


def gpt_block(x, wq, wk, wv, wo, w1, w2, scale, shift):
    h = layer_norm(x, scale, shift)
    batch, length, width = x.shape
    heads = 8

    def split(t):
        return t.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

    q, k, v = split(h @ wq), split(h @ wk), split(h @ wv)
    scores = q @ k.transpose(0, 1, 3, 2) / (width // heads) ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    o = (softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(batch, length, width)
    x = x + o @ wo
    h = layer_norm(x, scale, shift)
    return x + jax.nn.gelu(h @ w1) @ w2


def attention(q, k, v):
    return softmax(q @ k.T / 8) @ v


def causal_attention(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / 8
    scores = jnp.where(jnp.tril(jnp.ones((512, 512), bool)), scores, -1e9)
    return softmax(scores) @ v


def convolution(x, w):
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout)


def batch_norm(x):
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) * lax.rsqrt(variance + 1e-5)


def resnet_block(x, w1, w2):
    y = batch_norm(convolution(x, w1))
    return jax.nn.relu(x + batch_norm(convolution(jax.nn.relu(y), w2)))


def lstm(x, wx, wh, h, c):
    def step(state, xt):
        h, c = state
        i, f, g, o = jnp.split(xt @ wx + h @ wh, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(step, (h, c), x)


def adam(p, g, m, v):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


def layer_norm_gelu(x, scale, shift):
    return jax.nn.gelu(layer_norm(x, scale, shift))


def depthwise(x, w):
    layout = ("NWC", "WIO", "NWC")
    return lax.conv_general_dilated(
        x, w, (1,), "SAME", feature_group_count=256, dimension_numbers=layout
    )


def argmax_topk(x):
    return jnp.argmax(x, -1), lax.top_k(x, 8)


def embedding_bag(table, indices):
    return table[indices].mean(1)


def cumulative(x):
    return jnp.cumsum(x, 1), lax.cummax(x, 0)


def fft_filter(x, h):
    return jnp.fft.irfft(jnp.fft.rfft(x, axis=-1) * h, n=1024, axis=-1)


def n_body(p, v, m):
    def step(state, _):
        p, v = state
        d = p[None] - p[:, None]
        w = lax.rsqrt((d * d).sum(-1) + 1e-2) ** 3
        v = v + 1e-3 * (d * (w * m)[..., None]).sum(1)
        return (p + 1e-3 * v, v), None

    return lax.scan(step, (p, v), None, length=10)[0]


def jacobi(u):
    def body(state):
        i, u, _ = state
        inside = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        w = u.at[1:-1, 1:-1].set(inside)
        return i + 1, w, jnp.abs(w - u).max()

    return lax.while_loop(lambda s: (s[0] < 50) & (s[2] > 1e-6), body, (0, u, jnp.float32(1)))


def batch_norm_loss(x, scale, shift):
    return (batch_norm(x) * scale + shift).var()


def mixture(x, gate, w):
    t, i = lax.top_k(softmax(x @ gate), 2)
    return jnp.einsum("nk,nkd->nd", t, jnp.einsum("nd,nkdf->nkf", x, w[i]))


def grad(f, *arguments):
    """The gradient of the mean of a result."""
    return jax.grad(lambda *t: f(*t).mean(), argnums=tuple(range(len(arguments))))


GPT = (
    f32(4, 128, 256),
    *[f32(256, 256)] * 4,
    f32(256, 1024),
    f32(1024, 256),
    f32(256),
    f32(256),
)
RESNET = (f32(8, 28, 28, 64), f32(3, 3, 64, 64), f32(3, 3, 64, 64))
HEADS = [f32(8, 512, 64)] * 3

PROGRAMS = {
    "adam_step": (adam, [f32(1 << 22)] * 4),
    "argmax_topk": (argmax_topk, [f32(256, 4096)]),
    "attention_4k": (attention, [f32(4096, 64)] * 3),
    "batchnorm_train": (
        jax.value_and_grad(batch_norm_loss, argnums=(0, 1, 2)),
        [f32(32, 28, 28, 64), f32(64), f32(64)],
    ),
    "bf16_mlp": (bf16_mlp, [f32(256, 1024), f32(1024, 1024), f32(1024, 1024)]),
    "causal_attn_grad": (grad(causal_attention, *HEADS), HEADS),
    "conv1d_depthwise": (depthwise, [f32(16, 512, 256), f32(7, 1, 256)]),
    "cumsum_scan": (cumulative, [f32(1024, 1024)]),
    "embedding_bag": (embedding_bag, [f32(100000, 128), s32(512, 32)]),
    "fft_filter": (fft_filter, [f32(512, 1024), f32(513)]),
    "gpt_block": (gpt_block, GPT),
    "gpt_block_grad": (grad(gpt_block, *GPT), GPT),
    "jacobi_while": (jacobi, [f32(512, 512)]),
    "layernorm_gelu": (layer_norm_gelu, [f32(4096, 1024), f32(1024), f32(1024)]),
    "lstm_scan": (lstm, [f32(100, 16, 64), f32(64, 512), f32(128, 512), f32(16, 128), f32(16, 128)]),
    "mixture_gate": (mixture, [f32(64, 64), f32(64, 8), f32(8, 64, 64)]),
    "mlp_infer": (mlp, [f32(64, 784), f32(784, 512), f32(512, 512), f32(512, 10)]),
    "nbody": (n_body, [f32(512, 3), f32(512, 3), f32(512)]),
    "resnet_block": (resnet_block, RESNET),
    "resnet_grad": (grad(resnet_block, *RESNET), RESNET),
    "softmax_xent": (jax.value_and_grad(cross_entropy), [f32(512, 8192), s32(512)]),
}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (program, arguments) in PROGRAMS.items():
        text = jax.jit(program).lower(*arguments).as_text(dialect="hlo")
        (folder / f"{name}.hlo").write_text(text)


main()
