# SPDX-License-Identifier: Apache-2.0
"""Laplace's equation by Jacobi's iteration; the edge of the plate keeps its values."""
from arrays import array

import ptxgen

jacobi = ptxgen.stencil({"u": "f32[m, n]"}, params={"steps": "i32"}, boundary="interior", iterate={"steps": "steps", "feedback": {"u": "new"}},
                        outputs={"new": ("f32[m, n]", lambda u: 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]))})

if __name__ == "__main__":
    print(jacobi(array([[4, 4, 4], [0, 0, 0], [0, 0, 0]]), steps=10))  # [[4. 4. 4.] [0. 1. 0.] [0. 0. 0.]]
