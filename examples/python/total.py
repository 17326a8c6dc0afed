# SPDX-License-Identifier: Apache-2.0
"""The sum of an array."""
from arrays import array

import ptxgen

total = ptxgen.reduce({"x": "f32[n]"}, "add", outputs={"sum": "f32"})

if __name__ == "__main__":
    print(total(array([1, 2, 3, 4])))  # 10.0
