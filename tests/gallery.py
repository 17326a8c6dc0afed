#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gallery.py PTXGEN - SRAD brings a photograph with speckle nearer to what it was, as docs/gallery.md shows."""
import importlib.util
import pathlib
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent
spec = importlib.util.spec_from_file_location("render", ROOT / "scripts/render.py")
render = importlib.util.module_from_spec(spec)
spec.loader.exec_module(render)


def error(a, b):
    """The mean square of the differences."""
    return sum((x - y) ** 2 for p, q in zip(a, b) for x, y in zip(p, q)) / (len(a) * len(a[0]))


def main():
    runner = render.Runner(types.SimpleNamespace(ptxgen=sys.argv[1], device="cpu", specs=ROOT / "specs"))
    clean, speckled, after = render.despeckled(runner, render.SRAD_STEPS)
    before, left = error(clean, speckled), error(clean, after)
    size = (ROOT / "docs/images/camera.png").stat().st_size
    wrong = [what for what, fine in (
        (f"the photograph has {len(clean)} rows of {len(clean[0])}, and {size} bytes", len(clean) <= 256 and len(clean[0]) <= 256 and size <= 60000),
        (f"there is hardly any speckle: {before:.5f}", before > 0.01),
        (f"the mean square error is {left:.5f} after SRAD, and was {before:.5f}", left < before / 5)) if not fine]
    print(f"mean square error {before:.5f}, after {render.SRAD_STEPS} steps {left:.5f}")
    print("\n".join(f"FAIL {w}" for w in wrong) or "1 passed, 0 failed")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main())
