# SPDX-License-Identifier: Apache-2.0
"""The elements above a threshold, side by side, and how many they are."""
from arrays import array

import ptxgen

selection = ptxgen.scan({"x": "i32[n]"}, params={"threshold": "i32"}, outputs={
    "kept": {"type": "i32[n]", "where": "x > threshold", "value": "x"}, "count": {"type": "i64", "count": "kept"}})

if __name__ == "__main__":
    kept, count = selection(array([5, 1, 7, 2, 9], "i4"), threshold=4)
    print(kept[:int(count)])  # [5 7 9]
