# SPDX-License-Identifier: Apache-2.0
"""apps_problems.py - the problems of apps.py: input, sizes, params, peers, check, and what a step has to read, write and compute.

Every application of specs/apps has one.  Sizes are those of the references where these name some (docs/apps.md).
"""
import dataclasses
import math
import typing

import numpy

import apps_by_hand as hand
import apps_checks as check
import apps_peers as peer

M = 1 << 20


@dataclasses.dataclass
class Problem:
    spec: str
    make: typing.Callable  # (random numbers, sizes, params) -> {input: array}; names with _ are for the check alone
    sizes: dict
    small: dict  # sizes of a dry run
    params: dict
    compared: dict  # results that are compared with those of peers, and the error relative to the largest value; 0: equal
    peers: dict  # name -> what makes a call; the first word of a name is the library
    check: typing.Callable
    work: typing.Callable = None  # (sizes) -> [(bytes, instructions of f32)] of the stages of a step; None: no limit is known
    small_params: dict = dataclasses.field(default_factory=dict)
    check_params: dict = dataclasses.field(default_factory=dict)  # where a shorter run is checked
    more: tuple = ()  # results that the check needs besides

    @property
    def slow_check(self):
        """Minutes on the host at large sizes."""
        return self.check in (check.heat, check.hotspot, check.srad, check.conjugate_gradient, check.tpacf)

    def label(self):
        return " ".join(f"{name}={n}" for name, n in self.sizes.items())


# ---- inputs ------------------------------------------------------------------------------------------------------------------------------


def floats(r, shape, low=0.0, high=1.0):
    x = r.random(shape, dtype="f4")
    x *= high - low
    x += low
    return x


def points(r, s, _):
    x = r.standard_normal((s["n"], s["f"]), dtype="f4") + 4 * r.integers(0, 2, (s["n"], s["f"])).astype("f4")
    return {"x": x, "c": x[: s["k"]].copy()}


def net(r, s, _):
    shapes = {"x": (s["n"],), "w1": (s["n"], s["h"]), "w2": (s["h"], s["o"]), "target": (s["o"],)}
    return {name: (r.random(shape, dtype="f4") - 0.5) / (1 if len(shape) == 1 else 64) for name, shape in shapes.items()}


def speckled(r, s, _):
    return {"img": floats(r, (s["m"], s["n"]), 100, 120)}


def plate(r, s, _):
    return {"u": floats(r, (s["m"], s["n"]))}


def chip(r, s, _):
    return {"temp": floats(r, (s["m"], s["n"]), 80, 90), "power": floats(r, (s["m"], s["n"]), 0, 1e-3)}


def charges(r, s, _):
    right = floats(r, (s["m"], s["n"]))
    return {"x": 0 * right, "r": right, "p": right}


def bodies(r, s, _):
    return {"mass": floats(r, s["n"], 0.5, 2), **{name: floats(r, s["n"], -1) for name in "xyzuvw"}}


def queries(r, s, _):
    return {"q": floats(r, (s["m"], s["f"])), "p": floats(r, (s["n"], s["f"]))}


def tree(r, s, _):
    """Multiples of 2^-24, which both sides have."""
    x = (r.integers(0, 1 << 24, (s["n"], s["d"])) / (1 << 24)).astype("f4")
    return {"x": x, "order": r.permutation(s["n"]).astype("i4"), "median": floats(r, s["q"])}


def sky(r, s, _):
    p = r.standard_normal((3, s["s"], s["m"]))
    p[:, 0] += 1  # the observed ones are near each other
    p /= (p * p).sum(0) ** 0.5
    edge = [math.cos(math.pi * (i + 1) / 32) for i in range(31)]
    return {**{name: axis.astype("f4") for name, axis in zip("xyz", p)}, "edge": numpy.array(edge, "f4")}


def samples(r, s, _):
    return {**{name: floats(r, s["k"], -1) for name in ("re", "im", "kx", "ky", "kz")}, **{name: floats(r, s["n"], -1) for name in "xyz"}}


def puts(r, s, p):
    return {"spot": floats(r, s["o"], 80, 120), "strike": floats(r, s["o"], 80, 120), "rate": floats(r, s["o"], 0.01, 0.06),
            "vol": floats(r, s["o"], 0.2, 0.5), "years": floats(r, s["o"], 0.5, 2), "node": (numpy.arange(s["n"]) - p["steps"]).astype("f4")}


def keys(r, s, _):
    """31 bits, so that PyTorch, which sorts no unsigned numbers, has the same order."""
    shape = (s["b"], s["t"]) if "b" in s else (s["m"], s["n"]) if "m" in s else (s["n"],)
    return {"key": r.integers(0, 1 << 31, shape, dtype="u4")}


def keys_and_digits(r, s, _):
    return {**keys(r, s, _), "value": numpy.arange(s["d"], dtype="i4")}


def rows(r, s, _):
    """Mostly ascending: stretches of some hundreds."""
    steps = r.integers(0, 1000, (s["m"], s["n"])) - 300_000 * (r.random((s["m"], s["n"])) < 1 / 512)
    return {"x": (steps.cumsum(1) % (1 << 30)).astype("i4")}


def graph(r, s, _):
    """Groups: a vertex leads to one before it in its group, and the other edges are anywhere within a group; all of them in both directions."""
    v, half = s["v"], s["e"] // 2
    first = numpy.array([0, v // 2, v // 4 * 3, v - v // 16])
    size = numpy.diff(numpy.append(first, v))
    begin, name, place = first.repeat(size), r.permutation(v), numpy.arange(v)
    least = numpy.empty(v, "i4")
    least[name] = numpy.minimum.reduceat(name, first).repeat(size)
    other = r.integers(0, v, half - v)
    a = name[numpy.append(place, other)]
    b = name[numpy.append(begin + r.random(v) * (place - begin), begin[other] + r.random(half - v) * size.repeat(size)[other]).astype("i8")]
    mixed = r.permutation(2 * half)
    return {"label": place.astype("i4"), "from": numpy.append(a, b)[mixed].astype("i4"), "to": numpy.append(b, a)[mixed].astype("i4"), "_least": least}


# ---- work: bytes and instructions of the stages of a step ------------------------------------------------------------------------------------


def kmeans_work(s):
    n, f, k = s["n"], s["f"], s["k"]
    return [(4 * n * f + 4 * n + 4 * k * f, n * k * (2 * f + 3)), (4 * n * f + 4 * n + 8 * k * f, n * f), (16 * k * f, 3 * k * f)]


def net_work(s):
    n, h, o = s["n"], s["h"], s["o"]
    return [(4 * n * h + 4 * n + 4 * h, n * h), (4 * h * o + 4 * h + 4 * o, h * o), (12 * o, 4 * o), (4 * h * o + 4 * o + 8 * h, h * o),
            (8 * h * o + 4 * h + 4 * o, 3 * h * o), (8 * n * h + 4 * n + 4 * h, 3 * n * h)]


def per_point(*stages):
    """Bytes of the stages for each point of a grid, or each key."""
    return lambda s: [(each * math.prod(n for name, n in s.items() if name in "mnbt"), 0) for each in stages]


def pairs_work(rows, columns, each, given, out):
    """All pairs: instructions of each, and bytes of what is read and written once."""
    return lambda s: [(4 * (given(s) + out(s)), each(s) * s[rows] * s[columns])]


# ---- the problems ------------------------------------------------------------------------------------------------------------------------


def square(n):
    return {"m": n, "n": n}


def two(body):
    return {"numpy": peer.plain(body), "cupy": peer.plain(body)}


def three(body, step):
    """With arrays, and by PyTorch's compiler."""
    return {**two(body), "torch": peer.plain(body), "torch compiled": peer.compiled(body, step)}


CHIP = {"step_div_cap": 0.3413, "rx": 10.0, "ry": 10.0, "rz": 5120.0, "amb": 80.0, "steps": 100000, "eps": 0.01}
SORT = {**two(peer.sort), "torch": peer.plain(peer.sort_torch), "cub": hand.cub_sort}
KMEANS = {**two(peer.kmeans), "torch": peer.plain(peer.kmeans_torch), "torch compiled": peer.compiled(peer.kmeans_torch, peer.kmeans_step),
          "by hand": hand.kmeans}
NET = {**three(peer.backpropagation, peer.backprop_step), "by hand": hand.backpropagation}
CG = {**three(peer.conjugate_gradient, peer.cg_step), "scipy": peer.cg_of_library, "cusparse": peer.cg_of_library}
PROBLEMS = [
    *(Problem("kmeans", points, sizes, {"n": 300, "f": 4, "k": 3}, {"steps": 10, "eps": 0}, {"next": 1e-3}, KMEANS, check.kmeans, kmeans_work,
              check_params={"steps": 4}, more=("member",))
      for sizes in ({"n": 494025, "f": 34, "k": 5}, {"n": M, "f": 16, "k": 64})),
    *(Problem("backpropagation", net, {"n": n, "h": 16, "o": 1}, {"n": 70, "h": 16, "o": 1}, {"steps": 1, "rate": 0.3},
              {"next1": 1e-4, "next2": 1e-4}, NET, check.backpropagation, net_work)
      for n in (65536, M)),
    *(Problem("srad", speckled, square(n), {"m": 24, "n": 20}, {"steps": 100, "lambda": 0.5}, {"next": 1e-3},
              {**(three(peer.srad, peer.srad_step) if n < 5000 and n != 2048 else {}), "by hand": hand.srad}, check.srad, per_point(4, 8, 12),
              small_params={"steps": 12}, check_params={} if n < 5000 else {"steps": 10})
      for n in (512, 1024, 2047, 2048, 4095, 8191, 16383)),
    *(Problem("heat", plate, square(n), {"m": 20, "n": 16}, {"steps": 100000, "eps": 1e-4}, {"next": 1e-3},
              {**(three(peer.heat, peer.heat_step) if n < 5000 else {}), "by hand": hand.heat}, check.heat, per_point(8),
              small_params={"eps": 3e-3})
      for n in (1024, 4095, 8191, 16383)),
    *(Problem("hotspot", chip, square(n), {"m": 20, "n": 16}, CHIP, {"next": 1e-3},
              {**(three(peer.hotspot, peer.hotspot_step) if n < 5000 else {}), "by hand": hand.hotspot}, check.hotspot, per_point(12),
              small_params={"eps": 0.05})
      for n in (512, 1024, 4095, 16383)),
    *(Problem("radix_sort" + bits, given, sizes, small, {}, {"sorted": 0}, SORT, check.sort, per_point(*[4, 8] * steps))
      for bits, given, sizes, small, steps in (
          ("8", keys, {"b": 1 << 14, "t": 1 << 12, "d": 256}, {"b": 5, "t": 32, "d": 256}, 4),
          ("4", keys_and_digits, {"b": 1 << 14, "t": 1 << 12, "d": 16}, {"b": 5, "t": 32, "d": 16}, 8),
          ("", keys, {"n": 1 << 26}, {"n": 500}, 32))),
    Problem("radix_sort_rows", keys, {"m": 1000, "n": 10000}, {"m": 5, "n": 130}, {}, {"sorted": 0},
            {**two(peer.sort_rows), "torch": peer.plain(peer.sort_rows_torch)}, check.sort_rows, per_point(*[4, 8] * 16)),
    *(Problem("conjugate_gradient", charges, square(n), small, {"steps": steps, "eps": eps}, {"x_next": 1e-3}, CG,
              check.conjugate_gradient, per_point(8, 12, 24, 12) if eps == 0 else None, small_params=less)
      for n, small, steps, eps, less in ((1023, {"m": 20, "n": 16}, 20000, 1.0, {"eps": 1e-7}), (4095, {"m": 20, "n": 16}, 100, 0, {"steps": 5}))),
    *(Problem("nbody", bodies, {"j": n, "n": n}, {"j": 70, "n": 70}, {"steps": 1, "dt": 0.01, "soft": 1e-3},
              {"x_next": 1e-4, "u_next": 1e-3, "w_next": 1e-3}, {**three(peer.nbody, peer.pull), "by hand": hand.nbody}, check.nbody,
              pairs_work("j", "n", lambda s: 13, lambda s: 7 * s["n"], lambda s: 6 * s["n"]), more=("y_next", "z_next", "v_next"))
      for n in (16384, 65536)),
    Problem("nearest4", queries, {"m": 1024, "n": 2 * M, "f": 5}, {"m": 30, "n": 300, "f": 3}, {}, {"distance": 1e-3},
            {"torch": peer.plain(peer.nearest4_torch), "by hand": hand.nearest4}, check.nearest4,
            pairs_work("m", "n", lambda s: 2 * s["f"], lambda s: (s["m"] + s["n"]) * s["f"], lambda s: 5 * s["m"]),
            more=("n0", "n1", "n2", "n3")),
    Problem("kd_tree", tree, {"n": 2 * M, "d": 5, "q": M - 1}, {"n": 96, "d": 3, "q": 31}, {"steps": 20 * 24}, {"next": 0, "medians": 1e-6},
            {**two(peer.kd_tree), "torch": peer.plain(peer.kd_tree_torch)}, check.kd_tree, small_params={"steps": 5 * 24}),
    *(Problem("tpacf", sky, {"s": 101, "m": m, "p": m, "k": 32}, {"s": 4, "m": 40, "p": 40, "k": 32}, {}, {"pairs": 1e-4, "mixed": 1e-4},
              {**(two(peer.tpacf) if m < 1000 else {}), **({"torch": peer.plain(peer.tpacf_torch)} if m < 5000 else {}), "by hand": hand.tpacf},
              check.tpacf, lambda s: [(24 * s["s"] * s["m"], 3 * s["s"] * s["m"] ** 2 // 2), (12 * s["s"] * s["m"], 3 * s["s"] * s["m"] ** 2)],
              more=("w",))
      for m in (487, 4096, 10391)),
    *(Problem("mri_q", samples, {"k": k, "n": n ** 3}, {"k": 50, "n": 40}, {}, {"qr": 1e-3, "qi": 1e-3},
              {**three(peer.mri_q, peer.mri_part), "by hand": hand.mri_q}, check.mri_q,
              pairs_work("k", "n", lambda s: 6, lambda s: 5 * s["k"] + 3 * s["n"], lambda s: 2 * s["n"]))
      for k, n in ((3072, 32), (2048, 64))),
    Problem("options", puts, {"o": 1024, "n": 1001}, {"o": 9, "n": 41}, {"steps": 500}, {"price": 1e-3},
            {**two(peer.options), "torch": peer.plain(peer.options), "torch graph": peer.graph(peer.options), "by hand": hand.options}, check.options,
            small_params={"steps": 20}),
    Problem("sorted_stretch", rows, {"m": 100, "n": 100000}, {"m": 6, "n": 500}, {}, {"longest": 0},
            {**two(peer.stretches), "torch": peer.plain(peer.stretches_torch)}, check.sorted_stretch, per_point(4)),
    Problem("components", graph, {"v": M, "e": 8 * M}, {"v": 64, "e": 300}, {}, {"next": 0},
            {**two(peer.components), "torch": peer.plain(peer.components_torch), "scipy": peer.components_of_library, "cugraph": peer.components_of_library,
             "by hand": hand.components}, check.components),
]
