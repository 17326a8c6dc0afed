# SPDX-License-Identifier: Apache-2.0
"""ptxgen.jax with JAX itself, on a GPU (or on JAX's CPU, where it has no other): python3 -m unittest -v gpu_jax.  With
XLA_FLAGS="--xla_gpu_graph_min_graph_size=1 --xla_gpu_enable_command_buffer=FUSION,CUSTOM_CALL", XLA keeps the calls in command buffers."""
import pathlib
import sys
import time
import unittest

import numpy as np

import ptxgen

try:
    import jax
    import jax.numpy as jnp

    import ptxgen.jax
except ImportError as error:
    print(f"nothing is tested here: {error}")
    sys.exit(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANDOM = np.random.default_rng(11)
LARGE = (1 << 20) + 3 if jax.default_backend() == "gpu" else 5003


def spec(name):
    return ptxgen.load(ROOT / f"specs/{name}.yaml")


def op(name, **options):
    return ptxgen.jax.op(spec(name), **options)


def whole(n):
    """Small whole numbers, whose sums are exact."""
    return RANDOM.integers(-8, 8, n).astype("f4")


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        print(f"jax {jax.__version__} on {jax.devices()}")

    def test_results(self):
        for n in (1, 7, 1000, LARGE):
            x = whole(n)
            total, best = jax.jit(op("scan_sum")), jax.jit(op("mss"))
            sums, last = total(x)
            np.testing.assert_array_equal(sums, np.cumsum(x, dtype="f4"))
            self.assertEqual(last, x.sum())
            sums = np.append(0, np.cumsum(x.astype("i8")))
            self.assertEqual(best(x.astype("i4")), (sums - np.minimum.accumulate(sums)).max())

    def test_beside_the_host_executor(self):
        x, y, rows = whole(50), whole(50), whole((3, 40))
        keys = RANDOM.integers(0, 7, 100).astype("i4")
        for name, args, words in (("row_softmax", [rows], {}), ("half_sum", [x.astype("f2")], {}), ("segment_mean", [x, np.array([0, 3, 50], "i4")], {}),
                                  ("counts_by_key", [keys], {"k": 7}), ("saxpy", [x, y], {"a": 2.5}), ("scan_affine", [x / 8, y], {})):
            with self.subTest(name):
                wanted = spec(name)(*args, **words)
                made = jax.jit(lambda *a, name=name, words=words: op(name)(*a, **words))(*args)
                for got, want in zip(made, wanted) if isinstance(wanted, tuple) else [(made, wanted)]:
                    self.assertEqual((got.shape, got.dtype), (want.shape, want.dtype))
                    np.testing.assert_allclose(got, want, rtol=1e-3 if got.dtype == "f2" else 2e-5)

    def test_between_operations_of_jax(self):
        x = whole(LARGE)
        scan = op("scan_sum")
        made = jax.jit(lambda x: scan(x * 2)[0] + 1)(x)
        np.testing.assert_array_equal(made, np.cumsum(2 * x, dtype="f4") + 1)
        np.testing.assert_array_equal(scan(jnp.asarray(x))[0], np.cumsum(x, dtype="f4"))  # without jit

    def test_outside_of_jit(self):
        """The call reads its input until it ends; JAX may use the input's memory again at once."""
        f, saxpy = spec("scan_sum"), spec("saxpy")
        f.prepare(jnp.asarray(whole(1000)))
        for i in range(30):
            x = whole((1000, LARGE, 7)[i % 3])
            sums, last = f(jnp.asarray(x) + 0)
            again = [jnp.full(x.shape, k, "float32") for k in range(3)]  # in the memory of the input
            np.testing.assert_array_equal(sums + 1, np.cumsum(x, dtype="f4") + 1)
            self.assertEqual(last, x.sum())
            np.testing.assert_array_equal(saxpy(jnp.asarray(x), again[2], a=0.5), 0.5 * x + 2)
        with self.assertRaisesRegex(ptxgen.UsageError, "'x' has elements of type i32; the spec says f32"):
            f(jnp.ones(5, "int32"))
        x = jnp.asarray(x)
        x.delete()
        with self.assertRaises(Exception):
            f(x)
        with self.assertRaisesRegex(ptxgen.UsageError, "'y' has 2 elements in dimension 0; x asks for 5"):
            saxpy(jnp.ones(5, "float32"), jnp.ones(2, "float32"), a=1.0)

    @unittest.skipUnless(len(jax.local_devices()) > 1, "one device")
    def test_outside_of_jit_on_several_devices(self):
        f, x = spec("scan_sum"), whole(LARGE)
        for device in [*jax.local_devices(), *jax.local_devices()]:
            made = f(jax.device_put(x, device))[0]
            self.assertEqual(made.devices(), {device})
            np.testing.assert_array_equal(made, np.cumsum(x, dtype="f4"))

    def test_again_and_again(self):
        """Loops, and hundreds of calls of a program with other arrays: what a graph keeps must be right each time."""
        scan = op("scan_sum")
        program = jax.jit(lambda x: jax.lax.fori_loop(0, 20, lambda i, y: jnp.clip(scan(y)[0], -8, 8) - 1, x))
        arrays = [whole(4099) for _ in range(8)]
        wanted = []
        for x in arrays:
            for _ in range(20):
                x = np.clip(np.cumsum(x, dtype="f4"), -8, 8) - 1
            wanted.append(x)
        for i in range(200):
            np.testing.assert_array_equal(program(arrays[i % 8]), wanted[i % 8])

    def test_calls_that_may_overlap(self):
        scan = op("scan_sum")
        program = jax.jit(lambda x, y, z: (scan(x)[0], scan(y)[0], scan(z)[0]))
        arrays = [whole(LARGE) for _ in range(3)]
        for _ in range(20):
            for got, x in zip(program(*arrays), arrays):
                np.testing.assert_array_equal(got, np.cumsum(x, dtype="f4"))

    def test_gradients(self):
        x, w = RANDOM.standard_normal((64, 100)).astype("f4"), RANDOM.standard_normal((64, 100)).astype("f4")
        softmax, scan = op("softmax"), op("scan_sum")
        np.testing.assert_allclose(jax.jit(jax.grad(lambda x: (softmax(x) * w).sum()))(x), jax.grad(lambda x: (jax.nn.softmax(x) * w).sum())(x), atol=1e-5)
        y = whole(LARGE)
        np.testing.assert_array_equal(jax.grad(lambda y: scan(y)[1])(y), np.ones(LARGE, "f4"))
        with self.assertRaisesRegex(ptxgen.UnsupportedError, "operator max has no gradient"):
            jax.grad(lambda x: op("max_norm")(x).sum())(x)

    def test_vmap(self):
        scan, x = op("scan_sum"), whole((5, 300))
        np.testing.assert_array_equal(jax.vmap(lambda x: scan(x)[0])(x), np.cumsum(x, axis=1, dtype="f4"))

    def test_loops_that_the_host_ends(self):
        x = RANDOM.standard_normal((500, 4)).astype("f4")
        f = spec("apps/kmeans")
        args = {"x": x, "c": x[:5].copy()}
        wanted = f(**args, steps=30)
        made = jax.jit(lambda *a: ptxgen.jax.op(f)(*a, steps=30))(*(args[name] for name in f.inputs))
        for got, want in zip(made, wanted):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)

    def test_refusals(self):
        with self.assertRaisesRegex(ptxgen.UsageError, r"array 'x' is int32\[5\]; the spec says f32\[n\]"):
            jax.jit(op("scan_sum"))(np.ones(5, "i4"))
        with self.assertRaisesRegex(TypeError, "misses param 'a'"):
            op("saxpy")(whole(5), whole(5))

    @unittest.skipUnless(len(jax.local_devices()) > 1, "one device")
    def test_other_devices(self):
        scan, x = jax.jit(op("scan_sum")), whole(LARGE)
        for device in jax.local_devices():
            made = scan(jax.device_put(x, device))[0]
            self.assertEqual(made.devices(), {device})
            np.testing.assert_array_equal(made, np.cumsum(x, dtype="f4"))

    @unittest.skipUnless(jax.default_backend() == "gpu", "no GPU")
    def test_speed(self):
        """Printed, not judged."""
        for n in (1 << 16, 1 << 26):
            x = jnp.ones(n, "float32")
            for name, function in (("ptxgen", op("scan_sum")), ("jax", lambda x: (jnp.cumsum(x), 0))):
                program = jax.jit(lambda x, function=function: function(x)[0])
                program(x).block_until_ready()
                times = []
                for _ in range(5):
                    start = time.perf_counter()
                    for _ in range(20):
                        made = program(x)
                    made.block_until_ready()
                    times.append((time.perf_counter() - start) / 20)
                print(f"cumulative sum of {n} in a program, {name}: {min(times) * 1e6:.1f} us")


if __name__ == "__main__":
    unittest.main()
