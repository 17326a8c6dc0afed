# SPDX-License-Identifier: Apache-2.0
"""How often each byte occurs."""
from arrays import array

import ptxgen

histogram = ptxgen.reduce({"x": "u8[n]"}, "add", by="x", map=1, accumulator="u32", outputs={"counts": "u32[256]"})

if __name__ == "__main__":
    print(histogram(array([0, 3, 3, 1], "u1"))[:4])  # [1 1 0 2]
