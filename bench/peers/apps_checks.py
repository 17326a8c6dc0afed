# SPDX-License-Identifier: Apache-2.0
"""apps_checks.py - what the results of apps.py are compared with, at the sizes that are timed.

A check takes a module xp (CuPy where it is here, else NumPy), the input, the params, and ptxgen's results, and gives how far each result is
off as a share of what is allowed: 1 or less is right.  It computes in double precision, by another algorithm where there is one, and for a
sample of the outputs where these do not depend on each other.  Integers must be equal, unless they come from floats that were compared.
"""
import math

SAMPLE = 64


def off(xp, got, want, bound, scale=None):
    """The largest error, in units of bound * the largest value."""
    got, want = xp.asarray(got).reshape(-1), want.reshape(-1)
    if got.shape != want.shape:
        return math.inf
    if not bound:
        return 0.0 if bool((got == want).all()) else math.inf
    worst = float(abs(got.astype("f8") - want).max()) / (bound * (scale or float(abs(want).max())))
    return worst if worst == worst else math.inf


def doubles(xp, given, *names):
    return [xp.asarray(given[name]).astype("f8") for name in names]


# ---- grids: the steps are linear, so each pattern of cosines or sines goes its own way -----------------------------------------------------


def cosines(xp, n):
    """Rows are patterns that a clamped boundary keeps; and what the second difference does to each."""
    k = xp.arange(n, dtype="f8")
    table = xp.cos((math.pi / n) * k[:, None] * (k + 0.5)) * math.sqrt(2 / n)
    table[0] *= math.sqrt(0.5)
    return table, 2 * xp.cos(math.pi * k / n) - 2


def settled(xp, u, force, kept, p):
    """The state after the first step that moves no point by eps.  kept(a, b): what a step leaves of a pattern."""
    (rows, a), (columns, b) = cosines(xp, u.shape[0]), cosines(xp, u.shape[1])
    left = kept(a[:, None], b)
    change = (left - 1) * (rows @ u @ columns.T) + rows @ force @ columns.T
    moved = lambda t: float(abs(rows.T @ (left ** t * change) @ columns).max())
    low, high = 0, p["steps"] - 1  # changes never grow, so that bisection finds the first small one
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if moved(middle) < p["eps"] else (middle + 1, high)
    rest = xp.where(left == 1, 1.0, 1 - left)
    total = xp.where(left == 1, low + 1.0, (1 - left ** (low + 1)) / rest)
    return u + rows.T @ (total * change) @ columns, low + 1


def heat(xp, given, p, got):
    (u,) = doubles(xp, given, "u")
    want, taken = settled(xp, u, 0 * u, lambda a, b: 1 + 0.2 * (a + b), p)
    return {"next": off(xp, got["next"], want, 1e-3), "taken": taken}


def hotspot(xp, given, p, got):
    t, power = doubles(xp, given, "temp", "power")
    cap = p["step_div_cap"]
    kept = lambda a, b: 1 + cap * (a / p["ry"] + b / p["rx"] - 1 / p["rz"])
    want, taken = settled(xp, t, cap * (power + p["amb"] / p["rz"]), kept, p)
    return {"next": off(xp, got["next"], want, 1e-3), "taken": taken}


def srad(xp, given, p, got):
    """As the paper writes it, on a frame of one more point."""
    (img,) = doubles(xp, given, "img")
    for _ in range(p["steps"]):
        wide = xp.pad(img, 1, mode="edge")
        q0 = img.var() / img.mean() ** 2
        around = [wide[:-2, 1:-1], wide[2:, 1:-1], wide[1:-1, :-2], wide[1:-1, 2:]]
        gradient = sum((a - img) ** 2 for a in around) / img ** 2
        laplace = (sum(around) - 4 * img) / img
        q = (gradient / 2 - laplace ** 2 / 16) / (1 + laplace / 4) ** 2
        c = xp.pad(xp.clip(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0, 1), 1, mode="edge")
        here = c[1:-1, 1:-1]
        flow = here * (around[0] - img + around[2] - img) + c[2:, 1:-1] * (around[1] - img) + c[1:-1, 2:] * (around[3] - img)
        img = img + 0.25 * p["lambda"] * flow
    return {"next": off(xp, got["next"], img, 1e-3)}


def sines(xp, n):
    k = xp.arange(1, n + 1, dtype="f8")
    return xp.sin((math.pi / (n + 1)) * k[:, None] * k) * math.sqrt(2 / (n + 1)), 2 - 2 * xp.cos(math.pi * k / (n + 1))


def conjugate_gradient(xp, given, p, got):
    """Until the residual is small, the solution itself; else as many steps in patterns of sines, where the matrix is diagonal."""
    (r,) = doubles(xp, given, "r")
    (rows, a), (columns, b) = sines(xp, r.shape[0]), sines(xp, r.shape[1])
    r, matrix = rows @ r @ columns, a[:, None] + b
    if p["eps"] > 0:
        return {"x_next": off(xp, got["x_next"], rows @ (r / matrix) @ columns, 1e-3)}
    x, d, rho = 0 * r, r, (r * r).sum()
    for _ in range(p["steps"]):
        alpha = rho / (d * matrix * d).sum()
        x, r = x + alpha * d, r - alpha * matrix * d
        rho, before = (r * r).sum(), rho
        d = r + rho / before * d
    return {"x_next": off(xp, got["x_next"], rows @ x @ columns, 1e-3)}


# ---- points ------------------------------------------------------------------------------------------------------------------------------


def kmeans(xp, given, p, got):
    x, c = doubles(xp, given, "x", "c")
    for _ in range(p["steps"]):
        distance = xp.stack([((x - centre) ** 2).sum(1) for centre in c])
        member = distance.argmin(0)
        many = xp.bincount(member, minlength=len(c))
        total = xp.stack([xp.bincount(member, weights=x[:, j], minlength=len(c)) for j in range(x.shape[1])], 1)
        c = xp.where(many[:, None] > 0, total / xp.maximum(many, 1)[:, None], c)
    # Of points between two centroids f32 may take either: such a point is as near to the one as to the other.  A centroid is a mean
    # of up to 10^5 points, whose rounding moves distances by some 1e-5.
    taken = xp.asarray(got["member"]).astype("i8")
    if not bool(((taken >= 0) & (taken < len(c))).all()):
        return {"next": off(xp, got["next"], c, 1e-3), "member": math.inf}
    own = xp.take_along_axis(distance, taken[None], 0)[0]
    return {"next": off(xp, got["next"], c, 1e-3), "member": off(xp, own, distance.min(0), 3e-5)}


def nbody(xp, given, p, got):
    n = len(given["x"])
    some = xp.arange(0, n, max(1, n // SAMPLE))
    mass, *state = doubles(xp, given, "mass", *"xyzuvw")
    at, speed = xp.stack(state[:3], 1), xp.stack(state[3:], 1)
    d = at[None] - at[some][:, None]
    far = xp.sqrt((d * d).sum(2) + p["soft"])
    speed = speed[some] + p["dt"] * ((mass / far ** 3)[:, :, None] * d).sum(1)
    at = at[some] + p["dt"] * speed
    both = {**{f"{name}_next": at[:, k] for k, name in enumerate("xyz")}, **{f"{name}_next": speed[:, k] for k, name in enumerate("uvw")}}
    return {name: off(xp, xp.asarray(got[name])[some], want, 1e-3) for name, want in both.items()}


def nearest4(xp, given, _, got):
    """The indices are judged by their distances: f32 may take the two in the other order where they are as far."""
    q, p = doubles(xp, given, "q", "p")
    worst = {f"n{k}": 0.0 for k in range(4)} | {"distance": 0.0}
    for i in range(0, len(q), max(1, len(q) // SAMPLE)):
        distance = xp.sqrt(((p - q[i]) ** 2).sum(1))
        want, found = xp.sort(distance)[:4], [int(got[f"n{k}"][i]) for k in range(4)]
        if len(set(found)) < 4 or not all(0 <= k < len(p) for k in found):
            return {"n0": math.inf}
        for k, index in enumerate(found):
            worst[f"n{k}"] = max(worst[f"n{k}"], abs(float(distance[index] - want[k])) / (1e-5 * float(want[k]) + 1e-7))
        worst["distance"] = max(worst["distance"], abs(float(got["distance"][i]) - float(want[3])) / (1e-5 * float(want[3]) + 1e-7))
    return worst


def kd_tree(xp, given, p, got):
    """Every node by itself where they are few and large; all of a level as rows of one table."""
    x, order = xp.asarray(given["x"]), xp.asarray(given["order"])
    medians = []
    for level in range(p["steps"] // 24):
        table = order.reshape(1 << level, -1)
        values = x[table, level % x.shape[1]]
        rank = xp.argsort(values, 1) if xp.__name__ == "cupy" else xp.argsort(values, 1, kind="stable")
        order, values = xp.take_along_axis(table, rank, 1).reshape(-1), xp.take_along_axis(values, rank, 1).astype("f8")
        half = table.shape[1] // 2
        medians.append((values[:, half - 1] + values[:, half]) / 2)
    return {"next": off(xp, got["next"], order, 0), "medians": off(xp, got["medians"], xp.concatenate(medians), 1e-6)}


def tpacf(xp, given, _, got):
    """How many cosines are below each edge; edges cut off some pairs otherwise in f32 than in doubles."""
    x, y, z, edge = doubles(xp, given, "x", "y", "z", "edge")
    points, (s, m) = xp.stack((x, y, z), 2), x.shape

    def bins(a, b):
        table = a @ b.T
        below = [(table < e).sum() for e in edge]
        return xp.stack([a - b for a, b in zip([table.size, *below], [*below, 0])])
    same = xp.zeros(32, "i8")
    same[0] = m
    pairs = [(bins(a, a) - same) // 2 for a in points]
    dd, rr, dr = pairs[0], sum(pairs[1:]), sum(bins(points[0], a) for a in points[1:])
    few = lambda name, want, all_of_them: float(abs(xp.asarray(got[name]) - want).max()) / (2e-5 * all_of_them + 2)
    (own_dd, own_rr), own_dr = xp.asarray(got["pairs"]).astype("f8").T, xp.asarray(got["mixed"]).astype("f8")
    w = xp.where(own_rr > 0, ((s - 1) * own_dd - own_dr * ((m - 1) / m)) / xp.maximum(own_rr, 1) + 1, 0)
    return {"pairs": few("pairs", xp.stack((dd, rr), 1), (s - 1) * m * m / 2), "mixed": few("mixed", dr, (s - 1) * m * m), "w": off(xp, got["w"], w, 1e-9)}


# ---- sums --------------------------------------------------------------------------------------------------------------------------------


def backpropagation(xp, given, p, got):
    x, w1, w2, target = doubles(xp, given, "x", "w1", "w2", "target")
    squash = lambda v: 0.5 + 0.5 * xp.tanh(v / 2)
    for _ in range(p["steps"]):
        y1 = squash(xp.tensordot(x, w1, 1))
        y2 = squash(xp.tensordot(y1, w2, 1))
        d2 = (target - y2) * y2 * (1 - y2)
        d1 = xp.tensordot(w2, d2, 1) * y1 * (1 - y1)
        w2, w1 = w2 + p["rate"] * xp.outer(y1, d2), w1 + p["rate"] * xp.outer(x, d1)
    return {"next1": off(xp, got["next1"], w1, 1e-4), "next2": off(xp, got["next2"], w2, 1e-4)}


def mri_q(xp, given, _, got):
    some = slice(None, None, max(1, len(given["x"]) // SAMPLE))
    re, im, kx, ky, kz, x, y, z = doubles(xp, given, "re", "im", "kx", "ky", "kz", "x", "y", "z")
    q = xp.exp(2j * math.pi * (xp.outer(x[some], kx) + xp.outer(y[some], ky) + xp.outer(z[some], kz))) @ (abs(re + 1j * im) ** 2)
    scale = float((re * re + im * im).sum())
    return {"qr": off(xp, xp.asarray(got["qr"])[some], q.real, 1e-5, scale), "qi": off(xp, xp.asarray(got["qi"])[some], q.imag, 1e-5, scale)}


def options(xp, given, p, got):
    """By powers of one move up, from the long side of the triangle to its tip."""
    some = slice(None, None, max(1, len(given["spot"]) // SAMPLE))
    spot, strike, rate, vol, years = (a[some][:, None] for a in doubles(xp, given, "spot", "strike", "rate", "vol", "years"))
    steps = p["steps"]
    dt, drift = years / steps, (rate - vol * vol / 2) * xp.sqrt(years / steps / (12 * vol * vol))
    up, less = xp.exp(vol * xp.sqrt(3 * dt)), xp.exp(-rate * dt)
    pay = lambda step: xp.maximum(strike - spot * up ** xp.arange(-step, step + 1), 0)
    value = pay(steps)
    for step in range(steps - 1, -1, -1):
        value = xp.maximum(pay(step), less * ((1 / 6 - drift) * value[:, :-2] + 2 / 3 * value[:, 1:-1] + (1 / 6 + drift) * value[:, 2:]))
    return {"price": off(xp, xp.asarray(got["price"])[some], value[:, 0], 1e-4)}


# ---- keys --------------------------------------------------------------------------------------------------------------------------------


def sort(xp, given, _, got):
    return {"sorted": off(xp, got["sorted"], xp.sort(xp.asarray(given["key"]).reshape(-1)), 0)}


def sort_rows(xp, given, _, got):
    return {"sorted": off(xp, got["sorted"], xp.sort(xp.asarray(given["key"]), 1), 0)}


def sorted_stretch(xp, given, _, got):
    """Stretches are numbered, and the elements of each number counted."""
    number = xp.cumsum(xp.pad(xp.diff(xp.asarray(given["x"]).astype("i8"), axis=1) < 0, ((0, 0), (1, 0))).astype("i8"), 1)
    return {"longest": off(xp, got["longest"], xp.stack([xp.bincount(row).max() for row in number]), 0)}


def components(xp, given, _, got):
    """The graph is made of known groups."""
    return {"next": off(xp, got["next"], xp.asarray(given["_least"]), 0)}
