# SPDX-License-Identifier: Apache-2.0
"""The largest sum of neighbouring elements, with an operator of one's own: what two parts give together."""
from arrays import array

import ptxgen
from ptxgen import ops


@ptxgen.operator(identity={"best": 0, "left": 0, "right": 0, "total": 0})
def join(a: {"best": "i32", "left": "i32", "right": "i32", "total": "i32"}, b):
    return {"best": ops.max(ops.max(a.best, b.best), a.right + b.left), "left": ops.max(a.left, a.total + b.left),
            "right": ops.max(b.right, a.right + b.total), "total": a.total + b.total}


def one(x):
    return {"best": ops.max(x, 0), "left": ops.max(x, 0), "right": ops.max(x, 0), "total": x}


max_segment_sum = ptxgen.reduce({"x": "i32[n]"}, join, map=one, outputs={"best": ("i32", lambda r: r.best)})

if __name__ == "__main__":
    print(max_segment_sum(array([3, -4, 5, -1, 6, -9], "i4")))  # 10
