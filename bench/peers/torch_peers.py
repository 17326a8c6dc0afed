# SPDX-License-Identifier: Apache-2.0
"""torch_peers.py - what row_peers.py and index_peers.py share: the options, the run, the times, the cells of docs/performance.md.

A problem is a row of such a script: what makes its arrays for a number of elements, and what a user of PyTorch would write.  All
implementations of a cell are timed in one run, on the same labels, keys and offsets: batches of calls between two events, on
copies of the arrays that rotate through more than the second-level cache; or 20 calls in a graph, on warm data.  The limit is the
time of a copy that moves as many bytes as the arrays and the results have.

ptxgen is checked against its reference on few elements before it is timed, and the peers against the first of them in float64: a
peer that is off is left out, except PyTorch's own (floats that are added by atomics), of which a line says so.  --dry makes these
checks alone, in small, without a GPU: ptxgen on the host executor and, where PyTorch is installed, the peers on the CPU.
"""
import argparse
import csv
import dataclasses
import datetime
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import typing

HERE = os.path.dirname(os.path.abspath(__file__))
FIELDS = ["date", "commit", "problem", "mode", "n", "segment", "extent", "implementation", "us", "p10", "p90", "limit_us"]  # of h200-rows.csv
POOL_BYTES, BATCH_US, GRAPH_CALLS, SMALL, GRAPH = 1 << 30, 400, 31, 1 << 17, 6  # GRAPH: binary orders of magnitude below --log2
ERROR = {"bfloat16": 2**-7}  # of a result, relative to it and to the mean magnitude; of others:
ERROR_OF_FLOATS = 1e-3


@dataclasses.dataclass
class Case:
    """A problem at one size."""
    spec: str
    sizes: dict  # of the spec
    given: dict  # (type, shape) of an array of random floats, or an array of NumPy
    written: int  # bytes of the results
    peers: typing.Callable  # of torch and the arrays by name: {implementation: call of the arrays by name}
    n: int
    segment: int = 0
    extent: str = ""
    compiled: bool = True  # torch.compile has something to join
    compared: bool = True  # the peers' results are the same but for rounding


class Problem(typing.NamedTuple):
    name: str
    make: typing.Callable  # of a number of elements and the arguments: a Case
    arguments: tuple = ()
    graph: bool = False


def options(description, arguments=None):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ptxgen")
    parser.add_argument("--specs", default=os.path.join(HERE, "../.."), help="the folder that has specs/ and bench/")
    parser.add_argument("--peers", default=os.path.join(HERE, "../../lib/libpeers.so"), help="what build-peers made")
    parser.add_argument("--only", default="", metavar="TEXT", help="problems whose name contains the text")
    parser.add_argument("--rows", default="", metavar="N,N,…", help="lengths of rows, in place of those of the table")
    parser.add_argument("--log2", type=int, default=26, help="of the number of elements; from a graph, 6 less")
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=1e9, help="no problem is begun later")
    parser.add_argument("--compile", type=float, default=0, metavar="SECONDS", help="torch.compile is a peer until it has taken this long")
    parser.add_argument("--set", action="append", default=[], metavar="TUNABLE=VALUE", help="for ptxgen")
    parser.add_argument("--csv", help="the cells, as scripts/performance --add takes them")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--dry", action="store_true", help="small, on the CPU, without times")
    return parser.parse_args(arguments)


# ---- ptxgen ------------------------------------------------------------------------------------------------------------------------------


def arguments_of(o, case, folder):
    """Of `ptxgen run` and `ptxgen bench`.  Random floats are ptxgen's own; times do not depend on them."""
    import numpy
    line = [os.path.join(o.specs, case.spec)] + [f"--size={name}={value}" for name, value in case.sizes.items()] + [f"--set={s}" for s in o.set]
    for i, (name, array) in enumerate(case.given.items()):
        data = f"random:{i + 1}"
        if not isinstance(array, tuple):
            data = os.path.join(folder, name + ".npy")
            numpy.save(data, array)
        line.append(f"--input={name}={data}")
    return line


def wrong(o, case, folder):
    """What `ptxgen run` says where a result is not that of the reference, or ''."""
    line = [o.ptxgen, "run", *arguments_of(o, case, folder), "--verify", f"--device={'cpu' if o.dry else 'cuda'}"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    return (done.stderr.strip() or done.stdout.strip()) if done.returncode else ""


def ours(o, problem, case, folder):
    """The name of the case and the times; or what was said, and None."""
    line = [o.ptxgen, "bench", *arguments_of(o, case, folder), "--json", "--no-verify", f"--samples={o.samples}"]
    done = subprocess.run(line + ([] if problem.graph else ["--no-graph"]), capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip(), None
    said = json.loads(done.stdout)
    result = said["results"][-1]
    return said.get("case", ""), (result["median"], result["p10"], result["p90"])


# ---- times of PyTorch's calls ------------------------------------------------------------------------------------------------------------


def replayed(torch, call, copies):
    """A call that replays one for each of the copies.  All results are kept: results at the same place would stay in the L2 cache."""
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            call(**copies[0])
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = [call(**given) for given in copies]

    def replay(**_):
        graph.replay()
        return results
    return replay


def timed(torch, call, copies, samples, graph):
    """Median, 10th and 90th percentile, in microseconds."""
    def batch(count, start):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for i in range(count):
            call(**copies[(start + i) % len(copies)])
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3 / count

    if graph:
        call = replayed(torch, call, copies)
    batch(3, 0)
    count = max(1, math.ceil(BATCH_US / max(batch(3, 3), 0.5)))
    times = [batch(count, i * count) / (len(copies) if graph else 1) for i in range(samples)]
    tenths = statistics.quantiles(times, n=10, method="inclusive")
    return statistics.median(times), tenths[0], tenths[-1]


def count_of(problem, bytes_):
    """Of the copies of a problem's arrays, which calls take by turns: more bytes than the L2 cache has."""
    return GRAPH_CALLS if problem.graph else max(2, POOL_BYTES // bytes_)


def copied(torch, o, problem, bytes_):
    """The times of the better of two copies that read and write so many bytes together."""
    half = max(1, bytes_ // 8)
    copies = [{"x": torch.zeros(half, dtype=torch.int32, device="cuda")} for _ in range(count_of(problem, bytes_))]
    calls = (lambda x: x.clone(), lambda x: torch.neg(x))  # pylint: disable=unnecessary-lambda # x by name
    return min(timed(torch, call, copies, o.samples, problem.graph) for call in calls)


# ---- peers -------------------------------------------------------------------------------------------------------------------------------


def tensors(torch, case, device):
    """The arrays by name."""
    made = {}
    for name, array in case.given.items():
        if isinstance(array, tuple):
            made[name] = torch.randn(array[1], device=device).to(getattr(torch, array[0]))
        else:
            made[name] = torch.from_numpy(array).to(device)
    return made


def expected(torch, problem, case, given):
    """The result of the first peer in float64; None where there is nothing to compare with."""
    wide = {name: a.double() if a.is_floating_point() else a for name, a in given.items()}
    try:
        return next(iter(case.peers(torch, wide).values()))(**wide) if case.compared else None
    except Exception as failure:  # pylint: disable=broad-except # as where a version of PyTorch lacks something
        told(problem, case, f"not compared: {failure}")
    return None


def told(problem, case, text):
    print(f"# {problem.name} {case.extent or case.segment}: {' '.join(text.split())[:200]}", file=sys.stderr)


def error(got, want):
    """The greatest, over what is allowed."""
    allowed = ERROR.get(str(got.dtype).rsplit(".", maxsplit=1)[-1], ERROR_OF_FLOATS)
    got, want = got.double(), want.double()
    return float(((got - want).abs() / (want.abs() + want.abs().mean())).max()) / allowed


def compiled(torch, o, call, given):
    """The call by torch.compile, while there is time for it."""
    begin = time.time()
    torch._dynamo.reset()  # pylint: disable=protected-access # after eight shapes of one function it would not compile
    made = torch.compile(call, dynamic=False)
    made(**given)
    o.compile -= time.time() - begin
    return made


def peers(o, torch, problem, case):
    """{implementation: times}"""
    given = tensors(torch, case, "cpu" if o.dry else "cuda")
    want, calls, times = expected(torch, problem, case, given), case.peers(torch, given), {}
    bytes_ = sum(a.numel() * a.element_size() for a in given.values())
    copies = [given] + [{name: a.clone() for name, a in given.items()} for _ in range(0 if o.dry else count_of(problem, bytes_) - 1)]
    if case.compiled and o.compile > 0 and not o.dry:
        calls["torch.compile"] = None
    for name, call in calls.items():
        try:
            call = call or compiled(torch, o, calls["torch"], given)
            got = call(**given)
            off = 0 if want is None else error(got, want)
            if not off <= 1:
                told(problem, case, f"{name} is {off:.1f} times as far off as is allowed")
            if off <= 1 or name == "torch":
                times[name] = (math.nan,) * 3 if o.dry else timed(torch, call, copies, o.samples, problem.graph)
        except Exception as failure:  # pylint: disable=broad-except # as where a kernel needs too many registers
            told(problem, case, f"{name}: {failure}")
    return times


def best_of_triton(times):
    """Those of one number of warps in place of all."""
    kept = {name: t for name, t in times.items() if not name.startswith("triton")}
    warps = [(t, name) for name, t in times.items() if name.startswith("triton")]
    return {**kept, **({min(warps)[1]: min(warps)[0]} if warps else {})}


# ---- the run -----------------------------------------------------------------------------------------------------------------------------


def show(problem, where, who, us, share):
    print(f"{problem.name:18} {'graph' if problem.graph else 'stream':6} {where:13} {who:34} {us:10.2f} us {100 * share:6.1f} %", flush=True)


def measure(o, torch, problem, folder):
    """The rows of one cell, and whether ptxgen's results are right."""
    full = 1 << (o.log2 - (GRAPH if problem.graph else 0))
    case = problem.make(full, *problem.arguments)
    small = problem.make(min(full, max(SMALL, 3 * case.segment)), *problem.arguments)
    where, said = case.extent or str(case.segment), wrong(o, small, folder)
    if o.dry:
        who = ["ptxgen"] * (not said) + list(peers(o, torch, problem, small) if torch else [])
        print(f"{problem.name} {where}: {', '.join(who)} agree{'; ptxgen: FAILED: ' + said if said else ''}", flush=True)
        return [], not said
    times = best_of_triton(peers(o, torch, problem, case))
    bytes_ = case.written + sum(math.prod(a[1]) * getattr(torch, a[0]).itemsize if isinstance(a, tuple) else a.nbytes for a in case.given.values())
    limit = copied(torch, o, problem, bytes_)
    torch.cuda.empty_cache()
    name, own = ours(o, problem, case, folder)
    if said or not own:
        print(f"{problem.name} {where}: FAILED: {said or name}", flush=True)
    else:
        times = {"ptxgen": own, **times}
    for who, t in {"copy": limit, **times}.items():
        show(problem, where, f"ptxgen {name}" if who == "ptxgen" else who, t[0], limit[0] / t[0])
    at = {"problem": problem.name, "mode": "graph" if problem.graph else "stream", "n": case.n, "segment": case.segment, "extent": case.extent}
    return [{**at, "implementation": "triton" if who.startswith("triton") else who, "us": f"{t[0]:.3f}", "p10": f"{t[1]:.3f}", "p90": f"{t[2]:.3f}",
             "limit_us": f"{limit[0]:.3f}"} for who, t in times.items()], "ptxgen" in times


def run(o, problems):
    """The exit status: 1 where a result of ptxgen was wrong."""
    begin, failed = time.time(), 0
    try:
        import torch
    except ImportError:
        torch = None
        if not o.dry:
            raise
    with tempfile.TemporaryDirectory() as folder, open(o.csv or os.devnull, "w", encoding="utf8", newline="") as file:
        out = csv.DictWriter(file, FIELDS, lineterminator="\n")
        out.writeheader()
        chosen = [p for p in problems if o.only in p.name]
        for i, problem in enumerate(chosen):
            if time.time() - begin > o.seconds:
                print(f"{len(chosen) - i} problems are left")
                break
            rows, right = measure(o, torch, problem, folder)
            failed += not right
            out.writerows({"date": datetime.date.today().isoformat(), "commit": o.commit, **row} for row in rows)
            file.flush()
    return failed > 0
