# SPDX-License-Identifier: Apache-2.0
"""Gradients: from a problem, the spec of its backward pass.  The adjoint of x is written grad_x: of an output it is given, of an input it is computed."""
import itertools
import re

from . import _values as values
from ._derive import SUMS, depends, equal, is_float, pulled, replaced, shifted
from ._errors import UnsupportedError
from ._nodes import COMPARISONS, const, make, one, printed, walk, zero
from ._problem import Problem

LINEAR = ("+", "-", "*", "neg", "const", "name", "read", "select", "if", "and", "or", "not", "index", *COMPARISONS)


def refuse(why):
    raise UnsupportedError(why)


def is_result(node):
    return node.op == "result"


def plus(into, key, node):
    into[key] = into[key] + node if key in into else node


class Backward:
    """The stages of a backward pass.  parts: of each input what its elements get, as (offsets, expression at a point); beside: the same per segment."""

    def __init__(self, text, wrt, outputs):
        stages = re.match(r"# stages of (\w+)", text)
        if stages:
            refuse(f"{stages[1]} is a program of stages, whose gradient would need what every stage leaves: take gradients of the stages' own specs")
        p = self.p = Problem(text)
        able = [x.name for x in p.inputs.values() if not x.fields and is_float(x.type) and "gives" not in x.more]
        self.wrt, self.asked, self.given = list(wrt or able), wrt, list(outputs or p.outputs)
        for name in [*self.wrt, *self.given]:
            if name not in able and name not in p.outputs:
                refuse(f"'{name}' is no output, and no input of one type of floats")
        if not self.wrt:
            refuse("no input is an array of floats, and only these have gradients")
        self.dims = {x.name: x.dims for x in [*p.inputs.values()]}
        self.kept = [d for d in p.space if d not in p.over] if p.kind != "stencil" else p.space
        self.taken = {*p.inputs, *p.params, *p.space, *p.states, *p.outputs}
        self.parts, self.beside = {v: [] for v in self.wrt}, {v: [] for v in self.wrt}
        self.types, self.stages = {x.name: x.type for x in p.inputs.values()}, {}
        self.cotangent = {name: self.array(f"grad_{name}", p.outputs[name].type, p.outputs[name].dims) for name in self.given}
        self.given_names = [x.args[0] for x in self.cotangent.values()]
        for name in set(p.inputs) & set(p.outputs):
            refuse(f"'{name}' is an input and an output: what both get would have one name")
        self.grads = {v: self.unique(f"grad_{v}") for v in self.wrt}
        self.active = set()
        self.check()

    # -- names and arrays --
    def unique(self, name):
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def array(self, name, type, dims):
        """A new array, as what an expression reads of it."""
        name = self.unique(name)
        self.dims[name], self.types[name] = dims, type
        return make("read", name, "", (0,) * len(dims), type=type)

    def leaf(self, node):
        return node.op == "read" and node.args[0] in self.wrt or node.op == "result" and (node.args[1], node.args[2]) in self.active

    def check(self):
        """Which results depend on what has a gradient, and whether they have one too."""
        p = self.p
        for state in p.states.values():
            for field, node in state.map.items():
                self.within(node)
                if is_float(state.type[field]) and depends(node, self.leaf):
                    moves = [field] if state.sums() else ["mean", "m2"] if state.operator == "welford" and field == "mean" else state.type
                    self.active.update((state.name, f) for f in moves)
            able = state.sums() or state.operator in {"reduce": ("logsumexp", "welford"), "scan": ("affine",)}.get(p.kind, ())
            used = any(x.op == "result" and x.args[1] == state.name for name in self.given for x in walk([p.values[name]]))
            if any(s == state.name for s, _ in self.active) and not able and used:
                which = "of one's own that is no sum" if state.operator == "user" else state.operator
                refuse(f"operator {which} has no gradient that follows from the spec")
        for name in self.given:
            self.within(p.values[name])
            if not is_float(p.outputs[name].type):
                refuse(f"output '{name}' is no array of floats: choose among the others with outputs=")

    def within(self, root):
        for node in walk([root]):
            if node.op == "at" and node.args[0] in self.wrt:
                refuse(f"'{node.args[0]}' is read by at(), or in a sum over an index: its gradient would be written at computed places")
            if node.op in SUMS and depends(node, self.leaf):
                refuse(f"{node.op}() has no gradient that follows from the spec")

    # -- from the outputs back --
    def seed(self, name):
        """The output's adjoint, 0 where the boundary 'interior' computes nothing."""
        g = self.cotangent[name]
        reads = [x for v in self.p.values.values() for x in walk([v]) if x.op == "read"]
        for i, d in enumerate(self.p.space):
            at = [x.args[2][self.dims[x.args[0]].index(d)] for x in reads if d in self.dims[x.args[0]]
                  and self.p.inputs[x.args[0]].edges[self.dims[x.args[0]].index(d)] == "interior"] if self.p.kind == "stencil" else []
            g = self.among(d, -min([0, *at]), max([0, *at]), g)
        return g

    def among(self, d, low, high, g):
        """g where the index along d lies in [low, size - high), otherwise 0."""
        if d.isdigit() and (low or high):
            refuse(f"dimension {d} has no name: the edges of its gradient cannot be told")
        i, size, zero_ = make("index", d, type="i64"), make("name", d, type="i64"), const(0.0, g.type)
        inside = ([make(">=", i, const(low, "i64"))] if low > 0 else []) + (
            [make("<", i, size - const(high, "i64"))] if high > 0 else [])
        return make("select", make("and", *inside) if len(inside) > 1 else inside[0], g, zero_, type=g.type) if inside else g

    def pull(self, root, seed, into):
        """Adds to parts (or beside) what is read, and gives what results get."""
        got = {}
        for node, g in pulled(root, seed, self.leaf).items():
            if node.op == "read":
                into[node.args[0]].append((node.args[2], g))
            else:
                plus(got, node, g)
        return got

    def run(self):
        p = self.p
        if p.steps:
            self.iterated()
        elif p.kind == "stencil":
            for name in self.given:
                self.pull(p.values[name], self.seed(name), self.parts)
            self.emit("map", {}, {})
        elif p.kind == "reduce":
            self.reduce()
        else:
            self.scan()
        return self.spec()

    def iterated(self):
        """Steps of a stencil that is linear in what is fed back: as many steps of the transposed one."""
        p, every_step = self.p, "its gradient needs the arrays of every step, which no launch keeps"
        if len(p.feedback) != 1 or len(p.outputs) != 1 or p.states:
            refuse(f"'iterate' of several arrays, or beside reductions: {every_step}")
        (u, out), = p.feedback.items()
        for v in self.wrt:
            if v != u and depends(p.values[out], lambda x, v=v: x.op == "read" and x.args[0] == v):
                refuse(f"'iterate' reads '{v}' in each step: {every_step}; choose wrt=['{u}']")
        self.wrt = [u]
        g, seed = self.cotangent[out], self.seed(out)
        self.pull(p.values[out], seed, self.parts)
        if seed is not g:  # where nothing is computed, the value stays
            self.parts[u].append(((0,) * len(self.dims[u]), g - seed))
        if any(depends(part, lambda x: x.op == "read" and x.args[0] == u) for _, part in self.parts[u]):
            refuse(f"'iterate' of a stencil that is not linear in '{u}': {every_step}")
        self.emit("map", {}, {})
        body, _, _, names = next(iter(self.stages.values()))
        body["iterate"] = {"steps": p.steps, "feedback": {self.given_names[0]: self.grads[u]}}
        names.add(p.steps)

    def outputs_back(self):
        """What states get: at points, and once per segment or scan."""
        at_points, once = {}, {}
        for name in self.given:
            per_segment = self.p.outputs[name].more in ("segment", "scan")
            got = self.pull(self.p.values[name], self.seed(name), self.beside if per_segment else self.parts)
            for state in self.p.states.values():
                if state.operator == "logsumexp" and (state.name, "max") in self.active and self.p.kind == "reduce":
                    self.shift_free(name, state, got)
            for node, g in got.items():
                plus(once if per_segment else at_points, (node.args[1], node.args[2]), g)
        return at_points, once

    def shift_free(self, name, state, got):
        """A value may use r.max only so that it is the same for every r.max: as in exp(x - r.max) / r.sum, or r.max + log(r.sum)."""
        at = {x.args[2]: x for x in walk([self.p.values[name]]) if x.op == "result" and x.args[1] == state.name}
        none, total = const(0.0, state.type["max"]), make("result", f"{state.name}.sum", state.name, "sum", False, type=state.type["sum"])
        by_max, by_sum = got.pop(at.get("max"), none), got.get(at.get("sum"), none)
        if not equal(by_max, by_sum * total):
            refuse(f"output '{name}' uses {state.name}.max for itself, and a maximum has no gradient that follows from the spec")

    # -- reductions --
    def reduce(self):
        p = self.p
        at_points, once = self.outputs_back()
        sums = {}  # of what each result gets at points
        for key, g in at_points.items():
            name = self.unique(f"grad_{'_'.join(filter(None, key))}")
            sums[name] = g
            plus(once, key, make("result", name, name, None, False, type=g.type))
        for (name, field), g in once.items():
            state = p.states[name]
            part = {f: make("result", f"{name}.{f}", name, f, False, type=t) for f, t in state.type.items()}
            if state.sums():
                self.pull(state.map[field], g, self.parts)
            elif state.operator == "logsumexp":
                scale = make("exp", state.map["max"] - part["max"])
                self.pull(state.map["max"], g * state.map["sum"] * scale, self.parts)
                self.pull(state.map["sum"], g * scale, self.parts)
            elif not (one(state.map["n"]) and zero(state.map["m2"])):
                refuse("operator welford with a map of its own for n or m2 has no gradient here")
            elif field != "n":
                self.pull(state.map["mean"], g / part["n"] if field == "mean" else g * const(2.0, g.type) * (state.map["mean"] - part["mean"]), self.parts)
        before = [x for x in self.mentioned(sums.values()) if x.args[0] not in sums]
        own, renamed = self.entries(before)
        self.replace({x: new for x, new in renamed.items() if x is not new}, sums)
        if not sums:
            return self.emit("reduce", {"over": p.over}, own)
        if own:
            saved = {new: self.array(self.save_name(new), new.type, self.kept) for new in dict.fromkeys(renamed.values())}
            self.stage("results", "reduce", {"over": p.over}, own, {saved[x].args[0]: (x, self.kept) for x in saved})
            self.replace(saved, sums)
        self.emit("reduce", {"over": p.over}, {name: {"map": {None: g}, "operator": "add"} for name, g in sums.items()})

    def save_name(self, node):
        return node.args[0].replace(".", "_") + ("_saved" if "." not in node.args[0] else "")

    def mentioned(self, more=()):
        """The results that what was gathered so far mentions."""
        roots = [g for lists in (self.parts, self.beside) for part in lists.values() for _, g in part]
        return [x for x in walk([*roots, *more]) if x.op == "result"]

    def replace(self, new, more):
        for lists in (self.parts, self.beside):
            for name, part in lists.items():
                lists[name] = [(o, replaced(g, new)) for o, g in part]
        more.update({name: replaced(g, new) for name, g in more.items()})

    def entries(self, results):
        """The entries of a spec that compute these results again, and the results by their names there."""
        made, renamed = {}, {}
        for x in results:
            state = self.p.states[x.args[1]]
            if state.operator == "user" and not state.sums():
                refuse("an operator of one's own that is no sum: its result is used by the gradient, and has no form here")
            if state.init and self.p.kind == "reduce":
                refuse("'init' of a reduction whose result the gradient uses")
            total = ".total" if x.args[3] is True else ""
            name, field = ("_".join(filter(None, x.args[1:3])), "") if state.sums() else (state.name, f".{x.args[2]}" if x.args[2] else "")
            made[name] = {"map": {None: state.map[x.args[2]]} if state.sums() else state.map, "operator": "add" if state.sums() else state.operator, "init": state.init}
            renamed[x] = make("result", name + total + field, name, x.args[2], x.args[3], type=x.type)
        return made, renamed

    # -- scans --
    def scan(self):
        p = self.p
        at_points, once = self.outputs_back()
        entries = {}
        for name in dict.fromkeys(key[0] for key in [*at_points, *once]):
            state = p.states[name]
            for field in state.type:
                g, last = at_points.get((name, field)), once.get((name, field))
                if g is None and last is None:
                    continue
                g = const(0.0, state.type[field]) if g is None else g
                back = self.unique("grad_" + "_".join(filter(None, (name, field))))
                if state.sums():
                    entries[back] = {"map": {None: g}, "operator": "add"}
                    mine = make("result", back, back, None, False, type=g.type)
                    self.pull(state.map[field], mine if last is None else mine + last, self.parts)
                else:
                    self.recurrence(state, field, back, g, last, entries)
        states = [x for x in self.mentioned([g for e in entries.values() for g in e["map"].values()]) if x.args[0] not in entries and x.args[1] not in entries]
        more = {(n, f): g for n, e in entries.items() for f, g in e["map"].items()}
        for mode in ("inclusive", "exclusive"):
            wanted = [x for x in states if (x.args[3] == "before" or p.exclusive) == (mode == "exclusive")]
            own, renamed = self.entries(wanted)
            if own:
                saved = {x: self.array(self.save_name(new) + ("_before" if x.args[3] == "before" else ""), new.type,
                                       self.kept if x.args[3] is True else p.space) for x, new in renamed.items()}
                self.stage(f"states_{mode}" if len(states) > len(wanted) else "states", "scan", {**self.scanned(p.reverse), "mode": mode}, own,
                           {saved[x].args[0]: (renamed[x], self.dims[saved[x].args[0]]) for x in saved})
                self.replace(saved, more)
        for (name, field), g in more.items():
            entries[name]["map"][field] = g
        self.emit("scan", {**self.scanned(not p.reverse), "mode": "exclusive" if p.exclusive else "inclusive"}, entries)

    def scanned(self, reverse):
        p = self.p
        return {"over": p.over, "direction": "reverse" if reverse else "forward", **({"segments": {"flags": p.flags}} if p.flags else {})}

    def recurrence(self, state, field, back, g, last, entries):
        """y[i] = a[i] y[i-1] + b[i] backward: its adjoint is the recurrence z[i] = a[i+1] z[i+1] + g[i]."""
        p, a = self.p, state.map["a"]
        z = make("result", f"{back}.b", back, "b", False, type=g.type)
        if p.exclusive and last is not None:  # the scan back begins with what the total gets
            z = make("result", f"{back}.a", back, "a", False, type=g.type) * last + z
        elif not p.exclusive:
            if len(p.over) > 1 or p.over[0].isdigit():
                refuse("a recurrence along several dimensions, or one without a name, has no gradient here")
            a = shifted(a, {p.over[0]: -1 if p.reverse else 1}, self.dims)
        if not p.exclusive and last is not None:
            i, size = make("index", p.over[0], type="i64"), make("name", p.over[0], type="i64")
            end = const(0, "i64") if p.reverse else size - const(1, "i64")
            g = g + make("select", make("==", i, end), last, const(0.0, g.type), type=g.type)
        entries[back] = {"map": {"a": a, "b": g}, "operator": "affine"}
        before = make("result", f"{state.name}.{field}", state.name, field, "before" if not p.exclusive else False, type=g.type)
        if depends(state.map["a"], self.leaf):
            self.pull(state.map["a"], z * before, self.parts)
        if field == "b":
            self.pull(state.map["b"], z, self.parts)

    # -- stages --
    def emit(self, kind, keys, entries):
        """The stage that makes gradients point by point, and those that sum or shift what it leaves."""
        p, direct, later = self.p, {}, []
        for v in self.wrt:
            plain = all(not any(o) for o, _ in self.parts[v])
            if plain and self.parts[v] and not self.beside[v] and sorted(self.dims[v]) == sorted(p.space):
                total = self.parts[v][0][1]
                for _, g in self.parts[v][1:]:
                    total = total + g
                direct[v] = total
            elif self.parts[v] or self.beside[v]:
                later.append(v)
            elif self.asked:
                refuse(f"nothing depends on '{v}'")
        self.wrt = [v for v in self.wrt if v in direct or v in later]
        if not self.wrt:
            refuse("no output depends on an array of floats")
        names = self.grads
        made = {names[v]: (g, self.dims[v]) for v, g in direct.items()}
        wanted = dict.fromkeys(x for v in later for _, g in self.parts[v] + self.beside[v] for x in walk([g]) if x.op == "result")
        saved = {x: self.array(x.args[0].replace(".", "_") + "_saved", x.type, p.space if kind == "scan" else self.kept) for x in wanted}
        made.update({saved[x].args[0]: (x, self.dims[saved[x].args[0]]) for x in saved})
        if made:
            uses = any(x.op == "result" for g, _ in made.values() for x in walk([g]))
            self.stage("points", kind if uses else "map", keys if uses else {}, entries if uses else {}, made, [*direct, *(later[:1] if saved else [])])
        for v in later:
            self.follow(v, names[v], saved)

    def follow(self, v, name, saved):
        """The gradient of an input that is read at a distance, or lacks dimensions."""
        p, space, total, self.wraps = self.p, self.p.space, None, set()
        parts = [(o, replaced(g, saved)) for o, g in self.parts[v]]
        beside = [replaced(g, saved) for _, g in self.beside[v]]
        if beside and not parts and self.kept and p.kind != "stencil":
            space = self.kept
        for g in beside:
            for d in p.over if space is p.space else ():
                if d.isdigit():
                    refuse(f"dimension {d} has no name: what an output per segment gives '{v}' cannot be told from the rest")
                g = make("select", make("==", make("index", d, type="i64"), const(0, "i64")), g, const(0.0, g.type), type=g.type)
            total = g if total is None else total + g
        for offsets, g in parts:
            for moved in self.transposed(v, offsets, g):
                total = moved if total is None else total + moved
        for d in self.wraps:
            for _, g in parts:
                self.all_wrap(d, g)
        missing = [d for d in space if d not in self.dims[v]]
        if missing:
            entry = {name: {"map": {None: total}, "operator": "add"}}
            node = make("result", name, name, None, False, type=total.type)
            self.stage(f"to_{v}", "reduce", {"over": missing}, entry, {name: (node, self.dims[v])}, [v], space)
        else:
            self.stage(f"to_{v}", "map", {}, {}, {name: (total, self.dims[v])}, [v], space)

    def transposed(self, v, offsets, g):
        """What the element of v gets from the points that read it at these offsets."""
        choices = []
        for d, edge, o in zip(self.dims[v], self.p.inputs[v].edges, offsets):
            if o and edge == "wrap":
                self.wraps.add(d)
            if o and edge in ("reflect", "mirror"):
                refuse(f"boundary {edge} of '{v}': its transposed stencil reads at distances that depend on the place")
            if o and edge.split()[0] not in ("clamp", "wrap", "constant", "interior"):
                refuse(f"boundary {edge} of '{v}': no rule is known for its transposed stencil")
            choices.append([(d, -o, None)] + ([(d, s, "first") for s in range(-o)] + [(d, -s, "last") for s in range(o)] if edge == "clamp" else []))
        for chosen in itertools.product(*choices):
            moved = shifted(g, {d: s for d, s, _ in chosen}, self.dims)
            simple = self.p.kind == "stencil" and all(x.op in LINEAR or x.op == "/" and x.args[1].op == "const" for x in walk([g]))
            for d, s, edge in chosen:
                if s and d not in self.wraps and not simple:
                    moved = self.among(d, max(0, -s), max(0, s), moved)
                if edge:
                    if d.isdigit():
                        refuse(f"dimension {d} has no name: the edges of its gradient cannot be told")
                    at = const(0, "i64") if edge == "first" else make("name", d, type="i64") - const(1, "i64")
                    moved = make("select", make("==", make("index", d, type="i64"), at), moved, const(0.0, g.type), type=g.type)
            yield moved

    def all_wrap(self, d, g):
        for x in walk([g]):
            i = self.dims[x.args[0]].index(d) if x.op == "read" and d in self.dims[x.args[0]] else None
            if i is not None and x.args[2][i] and x.args[0] in self.p.inputs and self.p.inputs[x.args[0]].edges[i] != "wrap":
                refuse(f"'{x.args[0]}' has the boundary {self.p.inputs[x.args[0]].edges[i].split()[0]} where another input wraps around: "
                       "the transposed stencil would need both")

    def stage(self, name, kind, keys, entries, outputs, shapes=(), space=None):
        """One stage: entries are its reductions or scans, outputs their values and dimensions, shapes the inputs that it needs at least for their shape."""
        space = space or self.p.space
        roots = [g for e in entries.values() for what in ("map", "init") for g in e.get(what, {}).values()] + [g for g, _ in outputs.values()]
        known = {}
        printing = [printed(x, known) for x in roots]
        lets, by_node = self.lets(printing, {id(v): n for n, v in known.items()}, kind)

        def text(node, alone=False):
            return values.text(known[node], by_node) if not alone or node.op != "const" else f"{node.type}({values.text(known[node])})"

        def fields(map_, alone=False):
            return text(map_[None], alone) if None in map_ else {f: text(g, alone) for f, g in map_.items()}

        made = {n: {"map": fields(e["map"], True), "operator": e["operator"]} for n, e in entries.items()}
        inits = [fields(e["init"]) for e in entries.values() if e.get("init")]
        body = {"kind": kind, "boundary": self.edges(roots), "space": space if len(space) > 1 and not any(d.isdigit() for d in space) else None,
                "let": lets, **{k: v for k, v in keys.items() if v not in ("inclusive", "forward")}, "scans" if kind == "scan" else "reductions": made,
                "init": inits and inits[0], "outputs": {n: {"type": self.typed(g.type, dims), "value": text(g)} for n, (g, dims) in outputs.items()}}
        mentions, shape = self.arrays(roots, keys, shapes, space)
        self.stages[name] = {k: v for k, v in body.items() if v}, [*mentions, *shape], shape, {x.args[0] for x in walk(roots) if x.op == "name"}

    def arrays(self, roots, keys, shapes, space):
        """The arrays that are mentioned, and those that the stage needs for their shape."""
        mentions, shape = dict.fromkeys(x.args[0] for x in walk(roots) if x.op in ("read", "at")), []
        if "segments" in keys:
            mentions[self.p.flags] = None
        covered = {d for n in mentions for d in self.dims[n]}
        while not covered >= set(space):
            n = max([*shapes, *self.given_names, *self.p.inputs], key=lambda n: len(set(self.dims[n]) & set(space) - covered))
            shape, covered = shape + [n], covered | set(self.dims[n])
        return mentions, shape

    def lets(self, printing, nodes, kind):
        """Lets for what is used more than once, and the names by which each is known."""
        lets, names = {}, {}
        for x in values.shared(printing):
            node = nodes[id(x)]
            if not depends(node, is_result) and not (kind == "reduce" and self.small(node)):
                name = next(f"t{i}" for i in itertools.count(1) if f"t{i}" not in self.taken)
                self.taken.add(name)
                lets[name] = values.text(x, names)
                names[id(x)] = name
        return lets, names

    def small(self, node):
        return len(walk([node])) < 4

    def typed(self, type, dims):
        return f"{type}[{', '.join(dims)}]" if dims else type

    def edges(self, roots):
        """The boundaries of what is read at a distance."""
        made, wraps = {}, getattr(self, "wraps", set())
        for name, offsets in [(x.args[0], x.args[2]) for x in walk(roots) if x.op == "read" and any(x.args[2])] + [
                (x.args[0], ()) for x in walk(roots) if x.op == "at"]:
            own = self.p.inputs[name].edges if name in self.p.inputs else None
            for i, d in enumerate(self.dims[name]):
                mode = own[i] if own else "wrap" if d in wraps else "constant 0.0" if name in self.given_names else "clamp"
                if own and d in wraps:
                    mode = "wrap"
                word, _, value = mode.partition(" ")
                value = re.sub(r"\w+\((.*)\)", r"\1", value)
                made.setdefault(name, {})[d] = {"constant": value} if word == "constant" else "clamp" if word == "interior" else word
        return {name: modes[next(iter(modes))] if len({str(m) for m in modes.values()}) == 1 else modes for name, modes in made.items()}

    # -- the whole --
    def spec(self):
        p, made = self.p, list(self.stages.items())
        used = {n for _, (_, mentions, _, names) in made for n in [*mentions, *names]}
        inputs = {n: f"{self.types[n]}[{', '.join(self.dims[n])}]" if not self.p.inputs.get(n) or not p.inputs[n].fields else
                  {"type": p.inputs[n].fields, "shape": p.inputs[n].dims} for n in [*p.inputs, *self.given_names] if n in used}
        params = {n: {"type": t, "value": re.sub(r"^\w+\((.*)\)$", r"\1", value)} if value else t for n, (t, value) in p.params.items() if n in used}
        head = {"name": f"{p.name}_vjp", "doc": f"What the inputs of {p.name} get from grad_ of its outputs.", "inputs": inputs, "params": params,
                "determinism": p.determinism if p.determinism != "any" else None, "contract": (p.contract and p.determinism == "any") or None}
        head = {k: v for k, v in head.items() if v}
        if len(made) == 1:
            return {"kind": made[0][1][0]["kind"], **head, **made[0][1][0]}
        stages = {name: {**body, **({"inputs": list(dict.fromkeys(mentions))} if shape else {})} for name, (body, mentions, shape, _) in made}
        return {**head, "stages": stages, "outputs": [self.grads[v] for v in self.wrt]}


def vjp(f, wrt=None, outputs=None):
    """The gradient of a function, as a function: it takes what it needs of the inputs, and grad_y for each output y, and gives grad_x for each input x.

    wrt: the inputs, usually all arrays of floats; outputs: those that matter, usually all.  What has no gradient that follows from the spec is refused."""
    from . import Function, compile  # pylint: disable=import-outside-toplevel,redefined-builtin
    if not isinstance(f, Function):
        raise TypeError(f"vjp() takes a function of ptxgen's, as ptxgen.load() gives, and not {f!r}")
    wrt, outputs = ([names] if isinstance(names, str) else names for names in (wrt, outputs))
    return compile(Backward(f._problem, wrt, outputs).run(), f"{f.name}_vjp",
                   **{key: f._choice[key] for key in ("arch", "gpu", "tuning", "cache") if key in f._choice})
