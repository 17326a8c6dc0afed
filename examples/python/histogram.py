# SPDX-License-Identifier: Apache-2.0
"""How often each byte occurs."""
from arrays import array

import ptxgen

histogram = ptxgen.map({"x": "u8[n]"}, outputs={"counts": {"type": "u32[256]", "at": "x", "value": 1, "combine": "add", "initial": 0}})

if __name__ == "__main__":
    print(histogram(array([0, 3, 3, 1], "u1"))[:4])  # [1 1 0 2]
