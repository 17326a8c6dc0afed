# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # ptxgen from a sum to a gradient
#
# This script is a notebook: editors that know `# %%` show its cells. Lines that begin with `#>` are what a cell prints; the tests compare them. It needs NumPy and no GPU: with
# NumPy's arrays, ptxgen runs the GPU's kernels on the host. With arrays of CuPy or PyTorch the same functions run on the GPU.

# %%
import numpy as np

import ptxgen
from ptxgen import ops

# %% [markdown]
# ## A reduction
# A spec says what is read, how elements are combined, and what is written. It says nothing of threads and blocks.

# %%
total = ptxgen.reduce({"x": "f32[n]"}, "add", outputs={"sum": "f32"})
x = np.array([3, 1, 4, 1, 5, 9, 2, 6], "f4")
print(total(x))
#> 31.0

# %% [markdown]
# A function of the inputs says what an element contributes, a function of the result `r` what is written. Both are called once, with symbols; what they give becomes text.

# %%
norm = ptxgen.reduce({"x": "f32[n]"}, "add", map=lambda x: x * x, outputs={"norm": ("f32", lambda r: ops.sqrt(r))})
print(norm(np.array([3, 4], "f4")))
print(norm.yaml)
#> 5.0
#> kind: reduce
#> inputs:
#>   x: f32[n]
#> operator: add
#> map: x * x
#> outputs:
#>   norm: {type: f32, value: sqrt(r)}

# %% [markdown]
# ## An operator of one's own
# The longest run of ones in a row of bits: what must be known of two parts so that it is known of both together? Their lengths, the runs at both ends, and the longest run.

# %%
@ptxgen.operator(identity={"size": 0, "left": 0, "right": 0, "best": 0})
def runs(a: {"size": "i32", "left": "i32", "right": "i32", "best": "i32"}, b):
    return {"size": a.size + b.size, "left": ops.where(a.left == a.size, a.size + b.left, a.left),
            "right": ops.where(b.right == b.size, a.right + b.size, b.right), "best": ops.max(ops.max(a.best, b.best), a.right + b.left)}


def bit(x):
    return {"size": 1, "left": ops.i32(x != 0), "right": ops.i32(x != 0), "best": ops.i32(x != 0)}


longest = ptxgen.reduce({"x": "u8[n]"}, runs, map=bit, outputs={"longest": ("i32", lambda r: r.best)})
print(longest(np.array([1, 1, 0, 1, 1, 1, 0, 1], "u1")))
#> 3

# %% [markdown]
# The work is spread over threads, so parts meet in other groups than one after the other. That is right only if the operator is associative. `check` judges this; without a
# prover it tries. Subtraction is not associative:

# %%
@ptxgen.operator
def minus(a: "i32", b):
    return a - b


wrong = ptxgen.reduce({"x": "i32[n]"}, minus, outputs={"result": "i32"})
try:
    wrong.check("off")
except ptxgen.SpecError as error:
    print(type(error).__name__, "associative" in str(error))
#> SpecError True

# %% [markdown]
# ## Along dimensions
# Dimensions have names. `over` says which of them disappear, and arrays with fewer dimensions are repeated along those that they lack.

# %%
weighted = ptxgen.reduce({"x": "f32[m, n]", "w": "f32[n]"}, "add", over="n", map=lambda x, w: x * w, outputs={"y": "f32[m]"})
print(weighted(np.arange(6, dtype="f4").reshape(2, 3), np.array([1, 10, 100], "f4")))
#> [210. 543.]

# %% [markdown]
# ## A scan
# A scan has a result at every element. Here it is a linear recurrence, y[i] = a[i] * y[i-1] + b[i]: each element is an affine map, and maps are combined.

# %%
recurrence = ptxgen.scan({"a": "f32[n]", "b": "f32[n]"}, "affine", map=lambda a, b: {"a": a, "b": b}, outputs={"y": ("f32[n]", lambda s: s.b)})
print(recurrence(np.full(5, 0.5, "f4"), np.array([1, 0, 0, 8, 0], "f4")))
#> [1.     0.5    0.25   8.125  4.0625]

# %% [markdown]
# ## A stencil
# `u[-1]` is the element before. Steps are repeated in one call.

# %%
heat = ptxgen.stencil({"u": "f32[n]"}, params={"steps": "i32"}, boundary="wrap", iterate={"steps": "steps", "feedback": {"u": "new"}},
                      outputs={"new": ("f32[n]", lambda u: 0.25 * u[-1] + 0.5 * u + 0.25 * u[1])})
print(heat(np.array([0, 0, 16, 0, 0], "f4"), steps=2))
#> [1. 4. 6. 4. 1.]

# %% [markdown]
# ## A gradient
# `vjp` makes the spec of the gradient by the chain rule. It takes `grad_loss`, what a change of the loss is worth, and gives `grad_k`. So a line is fitted to points:

# %%
loss = ptxgen.reduce({"x": "f64[n]", "y": "f64[n]", "k": "f64[]"}, "add", map=lambda x, y, k: (k * x - y) * (k * x - y), outputs={"loss": "f64"})
slope = ptxgen.vjp(loss, ["k"])
print(slope)
points = np.array([1.0, 2, 3]), np.array([2.0, 4, 6])
k = np.array(0.0)
for _ in range(20):
    k = k - 0.03 * slope(*points, k, np.array(1.0))
print(f"{k:.6f}")
#> <ptxgen.Function reduce_vjp(x: f64[n], y: f64[n], k: f64, grad_loss: f64) -> grad_k: f64>
#> 2.000000

# %% [markdown]
# ## What happens on a GPU
# `explain` says what would run at a size, and `ptx` is the code.

# %%
print(total.explain(n=1 << 28, gpu="H200").splitlines()[1])
print(total.ptx("sm_90").count(".visible .entry") > 0)
#> case large (reduce.gather) takes n=268435456
#> True
