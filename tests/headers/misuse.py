#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""misuse.py HEADER... - C code that calls every public function rightly, and then wrongly; misuse.c includes it.

Reads the prototypes and the structures that callers fill.  Each call is made with the values of misuse.c; with NULL for each pointer in turn;
with wrong numbers for each count, index and enumeration; and with each field of each structure that it is given set to NULL, or to a wrong
number or size.  What must happen follows from the header: PTXGEN_OPTIONAL pointers may be NULL, others are refused by name.  A new
function needs nothing here unless it takes a type that none had before, which is an error of this script.
"""
import re
import sys

# What stands for a parameter: by function and name, by name, by type.
BY_FUNCTION = {("ptxgen_program_add_code", "code"): '"0123456789abcdef"', ("ptxgen_plan_from_string", "text"): "v.plan_text", ("ptxgen_tuning_merge", "text"): "v.tuning_text",
               ("ptxgen_problem_array", "name"): '"x"', ("ptxgen_variants", "visit"): "visit_variant",
               ("ptxgen_variants_count", "visit"): "visit_count", ("ptxgen_host_run_stages", "visit"): "visit_stage",
               ("ptxgen_fused_name", "p"): "v.staged", ("ptxgen_fused_into", "p"): "v.staged", ("ptxgen_fused_problem", "p"): "v.staged",
               ("ptxgen_stage_name", "p"): "v.staged", ("ptxgen_stage_problem", "p"): "v.staged", ("ptxgen_stage_plan", "plan"): "v.staged_plan",
               ("ptxgen_launch_stages", "visit"): "visit_stage",
               ("ptxgen_dist_launch_stages", "visit"): "visit_stage", ("ptxgen_host_watch", "watch"): "watch", ("ptxgen_comm_from_host", "size"): "1",
               ("ptxgen_dist_explain", "split"): '"n"', ("ptxgen_dist_explain", "ranks"): "(const int[]){ 2 }", ("ptxgen_dist_explain", "count"): "1"}
BY_NAME = {"arch": '"sm_90"', "path": "v.path", "text": "spec", "name": '"x"', "modes": '"seed:1"', "place": '"off"', "evidence": '"model"',
           "code": "1203", "byte": "0", "colour": "0", "ordinal": "0", "count": "NAMED", "bytes": "16", "user": "&v", "nccl_comm": "v.nccl_comm", "log": "listen",
           "bound": "v.bound", "i": "0", "rank": "0", "total": "N", "kernel": "0", "case_index": "0", "stage": "0", "end": "v.event"}
BY_TYPE = {"ptxgen_value": "(ptxgen_value){ 0 }", "ptxgen_type": "PTXGEN_F32", "ptxgen_status": "PTXGEN_OK",
           "ptxgen_log_level": "PTXGEN_LOG_DEBUG", "int64_t *": "v.size", "void *": "v.memory", "ptxgen_argument *": "v.named",
           "ptxgen_stream": "v.stream", "ptxgen_event": "v.event", "ptxgen_graph": "v.graph"}
HANDLES = "session problem plan program host laws gpu loaded comm dist".split()
STRUCTS = "laws_options plan_options explain_options variant_options compile_options jit_options comm_callbacks nccl_options dist_options arguments workspace " \
          "tuning_entry array_info gpu_info".split()
BY_TYPE |= {f"ptxgen_{h} *": f"v.{h}" for h in HANDLES} | {f"ptxgen_{s} *": f"&v.{s}" for s in STRUCTS}
DRIVER = ("ptxgen_stream", "ptxgen_event", "ptxgen_graph")  # pointers by another name
RELEASING = re.compile(r"_(destroy|close|free)$")
NUMBERS = ("-1", "1 << 20")
INDEX = ("i", "stage", "rank", "size", "kernel", "case_index", "count")  # both numbers are wrong


class Parameter:
    def __init__(self, function, text):
        m = re.fullmatch(r"(.*?)(\w+)", text) if "(*" not in text else re.match(r"(.*)\(\*(\w+)\)", text)
        self.name, self.optional = m[2], "PTXGEN_OPTIONAL" in text
        kind = re.sub(r"PTXGEN_OPTIONAL", "", m[1]).strip()
        self.declared = kind
        self.constant = kind.startswith("const ") and kind.count("*") < 2
        self.type = re.sub(r"\bconst\b", "", kind).replace("  ", " ").strip() if kind.count("*") < 2 else kind
        self.pointer = "*" in text or self.type in DRIVER
        self.out = self.name in ("out", "title") or function == "ptxgen_explain_code" and self.name == "text" or \
            (function, self.name) in (("ptxgen_gpu_count", "count"), ("ptxgen_event_seconds", "seconds"),
                                      ("ptxgen_dist_share", "first"), ("ptxgen_dist_share", "count"))
        self.handle = self.out and (self.declared.count("*") == 2 or self.pointer and self.type.removesuffix(" *") in DRIVER)
        self.value = "&out" if self.name == "out" else f"&{self.name}_" if self.out else \
            BY_FUNCTION.get((function, self.name)) or BY_NAME.get(self.name) or BY_TYPE.get(self.type)
        if self.value is None and self.name != "length":
            sys.exit(f"misuse.py: nothing stands for {text!r} of {function}: add a row")


def stripped(paths):
    return "".join(re.sub(r"/\*.*?\*/", "", open(path, encoding="utf8").read(), flags=re.DOTALL) for path in paths)


def prototypes(text):
    for m in re.finditer(r"PTXGEN_API ([^;]*?)(\w+)\(((?:[^();]|\([^()]*\))*)\);", text):
        parameters, depth = [""], 0
        for c in m[3]:
            depth += (c == "(") - (c == ")")
            if c == "," and not depth:
                parameters.append("")
            else:
                parameters[-1] += c
        parts = [] if m[3] == "void" else [Parameter(m[2], re.sub(r"\s+", " ", p).strip()) for p in parameters]
        for p in parts:
            if p.name == "length":
                p.value = f"strlen({next(q.value for q in parts if q.name == 'text')})"
        yield m[1].strip(), m[2], parts


def fields(text, name):
    """(name, has pointers, is an array) of each field of a structure."""
    body = re.search(r"typedef (?:struct|union) %s \{(.*?)\n\} %s;" % (name, name), text, re.DOTALL)[1]
    body = re.sub(r"enum \{.*?\}", "enum form", body, flags=re.DOTALL)
    for declaration in filter(str.strip, body.split(";")):
        words = re.sub(r"\s+", " ", declaration).strip()
        for part in words.split(","):
            yield re.search(r"(\w+)(?:\[\w+\])?$", part.strip())[1], "*" in words, "[" in words


def call(result, name, parameters, values, what, expected, before=""):
    """One call in a block of its own, and what must be true of it."""
    lines = [before] if before else []
    for p in parameters:
        if p.out:
            kind = p.declared[:-1].strip()
            start = " = NEVER" if p.handle else ""
            lines.append(f"{kind} {'out' if p.name == 'out' else p.name + '_'}{start};")
    handle = next((p for p in parameters if p.handle and values[p.name] != "NULL" and p.name == "out"), None)
    arguments = ", ".join(values[p.name] for p in parameters)
    lines.append(f"begin(\"{name}\", \"{what}\");")
    lines.append(f"{name}({arguments});" if result == "void" else f"{result} r = {name}({arguments});")
    if result == "ptxgen_status":
        if handle:
            lines.append("expect(r == PTXGEN_OK ? (void *)out != NEVER : !out);")
        lines.append({"good": "good(r);", "bad": "bad(r);", "any": "any(r);"}.get(expected, f"refused(r, \"{expected}\");"))
    elif "*" in result:
        lines.append({"good": "expect(r != NULL);", "any": "(void)r;"}.get(expected, "expect(!r);"))
        if not result.startswith("const"):
            lines.append("ptxgen_free(r);")
    elif result not in ("void", "ptxgen_value") and expected not in ("good", "any"):
        lines.append("expect((long long)r <= 0);")
    elif result == "ptxgen_value" or result != "void":
        lines.append("(void)r;")
    if handle:
        lines.append(release(name, parameters, handle))
    lines += [f"(void){'out' if p.name == 'out' else p.name + '_'};" for p in parameters if p.out]
    return "    {\n" + "".join(f"        {line}\n" for line in lines if line) + "    }\n"


DESTROYERS = {}


def release(name, parameters, handle):
    kind = handle.declared[:-1].strip()
    if name == "ptxgen_gpu_alloc":
        return "ptxgen_gpu_free(v.gpu, out);"
    by = DESTROYERS.get(kind)
    return f"if (r == PTXGEN_OK) {by}out);" if by else ""


def calls(text, result, name, parameters):
    right = {p.name: p.value for p in parameters}
    told = any(p.name == "s" and not p.constant for p in parameters)
    numeric = [p for p in parameters if not p.pointer and re.fullmatch(r"int|ptxgen_(type|status|log_level)", p.type) and p.name not in ("byte", "colour")]
    if not RELEASING.search(name):
        yield call(result, name, parameters, right, "as it should be", "any" if name == "ptxgen_host_case" else "good")
    for p in parameters:
        if p.pointer:
            allowed = p.optional and not RELEASING.search(name)
            yield call(result, name, parameters, right | {p.name: "NULL"}, f"{p.name} is NULL", "good" if allowed else
                       "any" if p.optional else p.name if told and p.name != "s" else "bad")
    for p in numeric:
        for number in NUMBERS:
            if p.name != "ordinal" or number != "-1":
                yield call(result, name, parameters, right | {p.name: f"({p.type})({number})"}, f"{p.name} is {number}",
                           "bad" if p.name in INDEX or p.name == "ordinal" else "any")
    for p in parameters:
        struct = re.fullmatch(r"ptxgen_(\w+) \*", p.type)
        if p.constant and struct and (struct[1] in STRUCTS or struct[1] == "argument"):
            for field, pointer, array in fields(text, f"ptxgen_{struct[1]}"):
                values = () if array else ("NULL",) if pointer else ("0", "7", "(size_t)-1", "sizeof wrong + 8") if field == "struct_size" else \
                    ("0",) if field.endswith("_bytes") else NUMBERS  # nobody but the driver knows how many bytes there are
                for value in values:
                    setting = f"memset(wrong_room, -1, sizeof wrong_room);\n        ptxgen_{struct[1]} wrong = " \
                              f"{p.value.replace('v.named', '&v.named[0]').lstrip('&')};\n        wrong.{field} = {value};\n" \
                              "        memcpy(wrong_room, &wrong, sizeof wrong);"
                    given = "wrong_named(&wrong)" if struct[1] == "argument" else "(const void *)wrong_room"
                    yield call(result, name, parameters, right | {p.name: given}, f"{p.name}->{field} is {value}",
                               "bad" if field == "struct_size" else "any", setting)


def main():
    text = stripped(sys.argv[1:])
    functions = list(prototypes(text))
    for _, name, parameters in functions:
        if RELEASING.search(name) and parameters:
            last = parameters[-1]
            DESTROYERS[last.declared] = name + ("(" if len(parameters) == 1 else "(v.gpu, ")
    print("/* Written by misuse.py. */")
    for result, name, parameters in functions:
        print(f"static void try_{name}(void)\n{{\n{''.join(calls(text, result, name, parameters))}}}\n")
    print("static void try_all(void)\n{")
    print("".join(f"    try_{name}();\n" for _, name, _ in functions) + "}")


if __name__ == "__main__":
    main()
