# SPDX-License-Identifier: Apache-2.0
"""apps_peers.py - peers of apps.py that are written with arrays: NumPy and CuPy (xp), PyTorch, and SciPy's conjugate gradients.

The body of a peer is a function (module, arrays, params) -> results.  plain(), compiled() and graph() make peers of it: what allocates
and compiles once, and gives a call and whether a CUDA graph can capture this call.
"""
import importlib
import importlib.util
import inspect
import math

ROWS = 1 << 28  # elements of a table of all pairs, which is made in parts where it is larger


def plain(body):
    return lambda lib, given, p: ((lambda: body(lib.xp, given, p)), False)


def graph(body):
    """From a CUDA graph; the body must not read on the host."""
    return lambda lib, given, p: ((lambda: body(lib.xp, given, p)), True)


def compiled(body, step):
    """torch.compile for the function `step` of a body, which the body takes as its last argument; in a graph where no condition is read."""
    def prepare(lib, given, p):
        xp = lib.xp
        fast = lib.compiled(lambda *args: step(xp, *args))
        return (lambda: body(lib.xp, given, p, lambda _, *args: fast(*args))), p.get("eps", 0) <= 0
    return prepare


# ---- grids -------------------------------------------------------------------------------------------------------------------------------


def shifted(xp, u, axis, by):
    """u[by] along an axis, clamped."""
    take = (lambda a, b: u[a:b]) if axis == 0 else (lambda a, b: u[:, a:b])
    n = u.shape[axis]
    parts = (take(1, n), take(n - 1, n)) if by > 0 else (take(0, 1), take(0, n - 1))
    return xp.cat(parts, axis) if hasattr(xp, "cat") else xp.concatenate(parts, axis)


def sides(xp, u):
    return [shifted(xp, u, axis, by) - u for axis, by in ((0, -1), (0, 1), (1, -1), (1, 1))]


def narrow(x, like):
    return x.to(like.dtype) if hasattr(x, "to") else x.astype(like.dtype)


def srad_step(xp, img, rate):
    wide = {"dtype": xp.float64}
    mean, square = img.mean(**wide), (img * img).mean(**wide)
    q0 = narrow((square - mean * mean) / (mean * mean), img)
    north, south, west, east = sides(xp, img)
    g2, l = (north * north + south * south + west * west + east * east) / (img * img), (north + south + west + east) / img
    q = (0.5 * g2 - 0.0625 * (l * l)) / (1 + 0.25 * l) ** 2
    c = (1 / (1 + (q - q0) / (q0 * (1 + q0)))).clip(0, 1)
    return img + rate * (c * north + shifted(xp, c, 0, 1) * south + c * west + shifted(xp, c, 1, 1) * east)


def srad(xp, given, p, step=srad_step):
    img = given["img"]
    for _ in range(p["steps"]):
        img = step(xp, img, 0.25 * p["lambda"])
    return {"next": img}


def heat_step(xp, u):
    new = u + 0.2 * sum(sides(xp, u))
    return new, abs(new - u).max()


def hotspot_step(xp, t, power, cap, rx, ry, rz, amb):
    north, south, west, east = sides(xp, t)
    new = t + cap * (power + (south + north) / ry + (east + west) / rx + (amb - t) / rz)
    return new, abs(new - t).max()


def until(xp, u, p, step, more):
    moved, taken = 1, 0
    while taken < p["steps"] and moved >= p["eps"]:
        u, moved = step(xp, u, *more)
        moved, taken = float(moved) if p["eps"] > 0 else 1, taken + 1
    return {"next": u, "taken": taken}


def heat(xp, given, p, step=heat_step):
    return until(xp, given["u"], p, step, ())


def hotspot(xp, given, p, step=hotspot_step):
    return until(xp, given["temp"], p, step, (given["power"], *(p[name] for name in ("step_div_cap", "rx", "ry", "rz", "amb"))))


def cg_step(xp, x, r, p, rho):
    ap = 4 * p
    ap[1:] -= p[:-1]
    ap[:-1] -= p[1:]
    ap[:, 1:] -= p[:, :-1]
    ap[:, :-1] -= p[:, 1:]
    alpha = rho / (p * ap).sum()
    x, r = x + alpha * p, r - alpha * ap
    after = (r * r).sum()
    return x, r, r + after / rho * p, after


def conjugate_gradient(xp, given, p, step=cg_step):
    x, r, d, taken = given["x"], given["r"], given["p"], 0
    rho = (r * r).sum()
    while taken < p["steps"]:
        x, r, d, rho = step(xp, x, r, d, rho)
        taken += 1
        if p["eps"] > 0 and float(rho) < p["eps"]:
            break
    return {"x_next": x}


def cg_of_library(lib, given, p):
    """SciPy's, or CuPy's over cuSPARSE: a matrix in CSR form, which is made before."""
    (sparse, linalg), xp = lib.sparse(), lib.xp
    m, n = given["r"].shape
    column = xp.arange(m * n) % n
    ones = xp.full(m * n, -1, "f4")
    data = xp.stack([4 + 0 * ones, ones, ones, xp.where(column > 0, ones, 0), xp.where(column < n - 1, ones, 0)]).astype("f4")
    matrix = sparse.spdiags(data, xp.asarray((0, n, -n, 1, -1)), m * n, m * n, format="csr")
    tolerance = "rtol" if "rtol" in inspect.signature(linalg.cg).parameters else "tol"
    bounds = {tolerance: 0.0, "atol": math.sqrt(p["eps"]), "maxiter": p["steps"]}
    b, start = given["r"].reshape(-1), given["x"].reshape(-1)
    return (lambda: {"x_next": linalg.cg(matrix, b, start, **bounds)[0]}), False


# ---- points ------------------------------------------------------------------------------------------------------------------------------


def kmeans(xp, given, p):
    x, c = given["x"], given["c"]
    one_hot = xp.arange(len(c))[:, None]
    for _ in range(p["steps"]):
        member = (-2 * (x @ c.T) + (c * c).sum(1)).argmin(1)
        own = (member == one_hot).astype(x.dtype)
        many = own.sum(1)[:, None]
        c = xp.where(many > 0, own @ x / xp.maximum(many, 1), c)
    return {"next": c}


def kmeans_step(torch, x, c):
    member = torch.addmm((c * c).sum(1), x, c.T, alpha=-2).argmin(1)
    many = torch.zeros_like(c[:, 0]).index_add_(0, member, torch.ones_like(x[:, 0]))[:, None]
    return torch.where(many > 0, torch.zeros_like(c).index_add_(0, member, x) / many.clamp(min=1), c)


def kmeans_torch(torch, given, p, step=kmeans_step):
    c = given["c"]
    for _ in range(p["steps"]):
        c = step(torch, given["x"], c)
    return {"next": c}


def pull(xp, mass, x, y, z, first, end, soft):
    dx, dy, dz = (a[None, :] - a[first:end, None] for a in (x, y, z))
    near = 1 / xp.sqrt(dx * dx + dy * dy + dz * dz + soft)
    force = mass * (near * near * near)
    return [(force * d).sum(1) for d in (dx, dy, dz)]


def nbody(xp, given, p, step=pull):
    """One step: all pairs, a part of the rows at a time."""
    x, y, z, u, v, w = (given[name] for name in "xyzuvw")
    rows = max(1, ROWS // len(x)) if step is pull else len(x)
    parts = [step(xp, given["mass"], x, y, z, i, min(i + rows, len(x)), p["soft"]) for i in range(0, len(x), rows)]
    join = xp.cat if hasattr(xp, "cat") else xp.concatenate
    u, v, w = (speed + p["dt"] * join([part[k] for part in parts]) for k, speed in enumerate((u, v, w)))
    return {"x_next": x + p["dt"] * u, "y_next": y + p["dt"] * v, "z_next": z + p["dt"] * w, "u_next": u, "v_next": v, "w_next": w}


def nearest4_torch(torch, given, _):
    """The products of all pairs as one matrix, and topk."""
    q, p = given["q"], given["p"]
    length, found = (p * p).sum(1), []
    for part in q.split(max(1, ROWS // len(p))):
        found.append(torch.addmm(length, part, p.T, alpha=-2).topk(4, largest=False))
    index = torch.cat([f.indices for f in found])
    far = torch.cat([f.values[:, 3] for f in found]) + (q * q).sum(1)
    return {**{f"n{k}": index[:, k] for k in range(4)}, "distance": far.clamp(min=0).sqrt()}


def kd_levels(given, p, arange, order, sort):
    """A level: the sort of all nodes at once, by node and coordinate."""
    x, levels = given["x"], p["steps"] // 24
    n, d = x.shape
    place, medians = arange(n), []
    for level in range(levels):
        size, axis = n >> level, level % d
        order = order[sort(place // size * 16777216 + (x[:, axis] * 16777216)[order])]
        middle = place[: 1 << level] * size + size // 2
        medians.append(0.5 * (x[order[middle - 1], axis] + x[order[middle], axis]))
    return order, medians


def kd_tree(xp, given, p):
    """The arrays of CuPy and NumPy; integers of 64 bits are sorted by radix, and equal ones stay in order."""
    sort = (lambda key: xp.argsort(key.astype("i8"))) if xp.__name__ == "cupy" else (lambda key: xp.argsort(key.astype("i8"), kind="stable"))
    wide = {**given, "x": given["x"].astype("f8")}
    order, medians = kd_levels(wide, p, xp.arange, given["order"], sort)
    return {"next": order, "medians": xp.concatenate(medians)}


def kd_tree_torch(torch, given, p):
    place = given["order"].device
    order, medians = kd_levels({**given, "x": given["x"].double()}, p, lambda n: torch.arange(n, device=place), given["order"].long(),
                               lambda key: torch.sort(key.long(), stable=True).indices)
    return {"next": order, "medians": torch.cat(medians)}


def angles(given, counts):
    """Histograms of all pairs within each set, and of each set with the first one; counts(table) counts a table of cosines."""
    x, y, z = (given[name] for name in "xyz")
    sets = [(x[k], y[k], z[k]) for k in range(len(x))]
    cosines = lambda a, b: a[0][:, None] * b[0] + a[1][:, None] * b[1] + a[2][:, None] * b[2]
    twice = [counts(cosines(a, a)) for a in sets]
    return twice, [counts(cosines(sets[0], a)) for a in sets[1:]]


def correlate(xp, given, twice, across):
    s, m = given["x"].shape
    own = xp.zeros_like(twice[0])
    own[0] = m  # each point with itself
    dd, rr, dr = (twice[0] - own) // 2, (sum(twice[1:]) - (s - 1) * own) // 2, sum(across)
    w = ((s - 1) * dd - dr * ((m - 1) / m) + rr) / xp.where(rr > 0, rr, 1)
    return {"pairs": xp.stack((dd, rr), 1), "mixed": dr, "w": xp.where(rr > 0, w, 0.0 * w)}


def tpacf(xp, given, _):
    bins = xp.concatenate((xp.asarray([-2], "f4"), given["edge"][::-1], xp.asarray([2], "f4")))
    return correlate(xp, given, *angles(given, lambda table: xp.histogram(table, bins)[0][::-1].astype("i8")))


def tpacf_torch(torch, given, _):
    edges = given["edge"].flip(0)

    def counts(table):
        return torch.bincount(torch.bucketize(table, edges, out_int32=True, right=True).reshape(-1), minlength=32).flip(0)
    return correlate(torch, given, *angles(given, counts))


# ---- sums --------------------------------------------------------------------------------------------------------------------------------


def backprop_step(xp, x, w1, w2, target, rate):
    """PyTorch and NumPy write this alike."""
    y1 = 1 / (1 + xp.exp(-(x @ w1)))
    y2 = 1 / (1 + xp.exp(-(y1 @ w2)))
    d2 = y2 * (1 - y2) * (target - y2)
    d1 = y1 * (1 - y1) * (w2 @ d2)
    return w1 + rate * x[:, None] * d1, w2 + rate * y1[:, None] * d2


def backpropagation(xp, given, p, step=backprop_step):
    w1, w2 = given["w1"], given["w2"]
    for _ in range(p["steps"]):
        w1, w2 = step(xp, given["x"], w1, w2, given["target"], p["rate"])
    return {"next1": w1, "next2": w2}


def mri_part(xp, re, im, kx, ky, kz, x, y, z):
    phase = 6.2831853 * (kx * x[:, None] + ky * y[:, None] + kz * z[:, None])
    mag = re * re + im * im
    return (mag * xp.cos(phase)).sum(1), (mag * xp.sin(phase)).sum(1)


def mri_q(xp, given, _, step=mri_part):
    k = [given[name] for name in ("re", "im", "kx", "ky", "kz")]
    x, y, z = (given[name] for name in "xyz")
    rows = max(1, ROWS // len(k[0])) if step is mri_part else len(x)
    parts = [step(xp, *k, x[i : i + rows], y[i : i + rows], z[i : i + rows]) for i in range(0, len(x), rows)]
    join = xp.cat if hasattr(xp, "cat") else xp.concatenate
    return {"qr": join([part[0] for part in parts]), "qi": join([part[1] for part in parts])}


def options(xp, given, p):
    """The triangle alone: each step has two columns less."""
    spot, strike, rate, vol, years = (given[name][:, None] for name in ("spot", "strike", "rate", "vol", "years"))
    steps, dt, like = p["steps"], years / p["steps"], given["node"]
    drift, less = (rate - 0.5 * vol * vol) * xp.sqrt(dt / (12 * vol * vol)), xp.exp(-rate * dt)
    up, same, down = less * (1 / 6 + drift), less * (2 / 3), less * (1 / 6 - drift)
    exercise = (strike - spot * xp.exp(like * vol * xp.sqrt(3 * dt))).clip(0)
    value = exercise
    for t in range(1, steps + 1):
        value = xp.maximum(exercise[:, t : exercise.shape[1] - t], up * value[:, 2:] + same * value[:, 1:-1] + down * value[:, :-2])
    return {"price": xp.maximum(given["strike"] - given["spot"], value[:, 0])}


# ---- keys --------------------------------------------------------------------------------------------------------------------------------


def sort(xp, given, _):
    return {"sorted": xp.sort(given["key"].reshape(-1))}


def sort_torch(torch, given, _):
    return {"sorted": torch.sort(given["key"].reshape(-1)).values}


def sort_rows(xp, given, _):
    return {"sorted": xp.sort(given["key"], 1)}


def sort_rows_torch(torch, given, _):
    return {"sorted": torch.sort(given["key"], 1).values}


def scatter(xp, which):
    """min or max of what several threads bring to a place."""
    return getattr(importlib.import_module("cupyx"), f"scatter_{which}") if xp.__name__ == "cupy" else getattr(xp, f"{which}imum").at


def stretches(xp, given, _):
    """Where a stretch begins, and how far it is to the next beginning."""
    x = given["x"]
    begins = xp.ones(x.shape, bool)
    begins[:, 1:] = x[:, 1:] < x[:, :-1]
    first = xp.flatnonzero(begins)
    length = xp.diff(xp.concatenate((first, xp.asarray([x.size]))))
    longest = xp.zeros(len(x), "i4")
    scatter(xp, "max")(longest, first // x.shape[1], length.astype("i4"))
    return {"longest": longest}


def stretches_torch(torch, given, _):
    x = given["x"]
    place = torch.arange(x.shape[1], dtype=torch.int32, device=x.device)
    begins = torch.nn.functional.pad(x[:, 1:] < x[:, :-1], (1, 0))
    return {"longest": (place - torch.cummax(begins * place, 1).values).amax(1) + 1}


def components(xp, given, _):
    """The least label of the neighbours, and then the label of the label."""
    label, source, to = given["label"], given["from"], given["to"]
    while True:
        new = label.copy()
        scatter(xp, "min")(new, to, label[source])
        new = new[new]
        if bool((new == label).all()):
            return {"next": label}
        label = new


def components_torch(torch, given, _):
    label, source, to = given["label"].long(), given["from"].long(), given["to"].long()
    while True:
        new = label.scatter_reduce(0, to, label[source], "amin")
        new = new[new]
        if torch.equal(new, label):
            return {"next": label}
        label = new


def components_of_library(lib, given, _):
    """SciPy's, or CuPy's over cuGraph; it names components by their order, and a name becomes the least vertex."""
    if lib.xp.__name__ == "cupy" and not importlib.util.find_spec("pylibcugraph"):
        raise ModuleNotFoundError("pylibcugraph")
    sparse, xp = lib.sparse()[0], lib.xp
    search, v = importlib.import_module(f"{sparse.__name__}.csgraph").connected_components, len(given["label"])
    matrix = sparse.csr_matrix((xp.ones(len(given["from"]), "f4"), (given["from"], given["to"])), shape=(v, v))

    def call():
        count, name = search(matrix, directed=False)
        least = xp.full(int(count), v, "i4")
        scatter(xp, "min")(least, name, given["label"])
        return {"next": least[name]}
    return call, False
