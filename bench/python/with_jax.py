# SPDX-License-Identifier: Apache-2.0
"""The examples in JAX.  What a selection keeps has no shape that is known while JAX traces, so that function is not compiled as a whole."""
import jax
import jax.numpy as jnp

@jax.jit
def total(x):
    return x.sum()

@jax.jit
def max_segment_sum(x):
    sums = jnp.pad(jnp.cumsum(x), (1, 0))
    return (sums - jax.lax.cummin(sums)).max()

@jax.jit
def ragged_sums(x, rows):
    row = jnp.repeat(jnp.arange(len(rows) - 1), jnp.diff(rows), total_repeat_length=len(x))
    return jax.ops.segment_sum(x, row, len(rows) - 1, indices_are_sorted=True)

@jax.jit
def cumulative_sum(x):
    return jnp.cumsum(x, 0), x.sum(0)

@jax.jit
def softmax(x):
    return jax.nn.softmax(x, 1)

@jax.jit
def jacobi(u, steps):
    def step(_, u):
        return u.at[1:-1, 1:-1].set(0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]))
    return jax.lax.fori_loop(0, steps, step, u)

@jax.jit
def histogram(x):
    return jnp.bincount(x, length=256)

def selection(x, threshold):
    kept = x[x > threshold]
    return kept, len(kept)

def later(a, b):
    return a[0] | b[0], jnp.where(b[0], b[1], jnp.maximum(a[1], b[1]))

@jax.jit
def running_maximum(x, begins):
    return jax.lax.associative_scan(later, (begins, x))[1]

@jax.jit
def range_and_mean(x):
    return x.max() - x.min(), x.mean()
