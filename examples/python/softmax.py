# SPDX-License-Identifier: Apache-2.0
"""Softmax of every row without overflow, and its gradient."""
from arrays import array

import ptxgen
from ptxgen import ops

softmax = ptxgen.reduce({"x": "f32[m, n]"}, "logsumexp", over="n", outputs={"y": ("f32[m, n]", lambda x, r: ops.exp(x - r.max) / r.sum)})
gradient = ptxgen.vjp(softmax)

if __name__ == "__main__":
    print(softmax(array([[1000, 1000, 999]])))  # [[0.4223188  0.4223188  0.15536241]]
    print(gradient(array([[0, 0]]), array([[1, 0]])))  # [[ 0.25 -0.25]]
