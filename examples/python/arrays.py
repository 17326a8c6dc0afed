# SPDX-License-Identifier: Apache-2.0
"""Arrays for the examples: of NumPy, or of the library that the command line names: python3 softmax.py cupy"""
import sys

import numpy as np


def array(values, dtype="f4"):
    made, library = np.array(values, dtype), sys.argv[1] if len(sys.argv) > 1 else "numpy"
    if library == "cupy":
        import cupy  # pylint: disable=import-outside-toplevel
        return cupy.asarray(made)
    if library == "torch":
        import torch  # pylint: disable=import-outside-toplevel
        return torch.from_numpy(made).cuda()
    if library != "numpy":
        sys.exit(f"usage: {sys.argv[0]} [numpy|cupy|torch]")
    return made
