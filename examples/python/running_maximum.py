# SPDX-License-Identifier: Apache-2.0
"""The largest element so far; a flag begins anew."""
from arrays import array

import ptxgen

running_maximum = ptxgen.scan({"x": "f32[n]", "begins": "bool[n]"}, "max", segments={"flags": "begins"}, map=lambda x: x, outputs={"largest": "f32[n]"})

if __name__ == "__main__":
    print(running_maximum(array([1, 3, 2, 0, 2, 1]), array([1, 0, 0, 1, 0, 0], "?")))  # [1. 3. 3. 0. 2. 2.]
