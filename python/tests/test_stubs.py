# SPDX-License-Identifier: Apache-2.0
"""The stubs beside the module: the same names, members, bases and parameters."""
import ast
import importlib.util
import inspect
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import ptxgen
from ptxgen import ops

FOLDER, ROOT = pathlib.Path(ptxgen.__file__).parent, pathlib.Path(__file__).resolve().parents[2]


def parsed(name):
    return ast.parse((FOLDER / name).read_text(encoding="utf-8"))


STUB = parsed("__init__.pyi")
INHERITED = {name for kind in (object, Exception, OSError) for name in dir(kind)}
HIDDEN = {"__module__", "__slots__", "__weakref__", "__vectorcalloffset__", "__annotations__", "__dict__", "__buffer__", "__static_attributes__", "__firstlineno__", "__annotate__",
          "__annotate_func__", "__annotations_cache__", "__slotnames__", "__signature__"}


def names(body):
    return {n.name if isinstance(n, (ast.FunctionDef, ast.ClassDef)) else n.target.id: n for n in body
            if isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.AnnAssign))}


def parameters(node):
    """[(name, kind, has a default)]"""
    a, made = node.args, []
    early = a.posonlyargs + a.args
    made += [(arg.arg, "positional", i >= len(early) - len(a.defaults)) for i, arg in enumerate(early)]
    made += [(a.vararg.arg, "*", False)] if a.vararg else []
    made += [(arg.arg, "keyword", default is not None) for arg, default in zip(a.kwonlyargs, a.kw_defaults)]
    return made + ([(a.kwarg.arg, "**", False)] if a.kwarg else [])


def signature(function):
    kinds = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**", inspect.Parameter.KEYWORD_ONLY: "keyword"}
    return [(p.name, kinds.get(p.kind, "positional"), p.default is not p.empty) for p in inspect.signature(function).parameters.values()]


def options(name):
    """{an option of compile(): its type}, as the stub of this function has it."""
    a = names(STUB.body)[name].args
    return {arg.arg: ast.unparse(arg.annotation) for arg in a.kwonlyargs if arg.arg in OPTIONS}


OPTIONS = [name for name, kind, _ in signature(ptxgen.compile) if kind == "keyword"]
HAND_ON = {"load": lambda **words: ptxgen.load(ROOT / "specs/sum.yaml", **words)}  # functions whose ** goes to compile(), with arguments that are right
HAND_ON.update({name: lambda make=getattr(ptxgen, name), **words: make({"x": "f32[n]"}, outputs={"y": "f32"}, **words) for name in ("reduce", "scan", "stencil", "map")})


class Stubs(unittest.TestCase):
    def test_names(self):
        modules = {alias.asname for node in STUB.body if isinstance(node, ast.ImportFrom) for alias in node.names if alias.asname}
        self.assertEqual(set(names(STUB.body)) | modules, set(ptxgen.__all__) | {"__version__"})

    def test_classes(self):
        for name, node in names(STUB.body).items():
            if isinstance(node, ast.ClassDef):
                kind, said = getattr(ptxgen, name), names(node.body)
                with self.subTest(name):
                    self.assertEqual([base.id for base in node.bases], [b.__name__ for b in kind.__bases__ if b is not object])
                    public = {n for n in vars(kind) if n not in INHERITED | HIDDEN and (not n.startswith("_") or n.endswith("__"))}
                    self.assertEqual({n for n in said if n not in INHERITED | HIDDEN}, public)

    def test_parameters(self):
        for owner, body in [(ptxgen, STUB.body)] + [(getattr(ptxgen, n.name), n.body) for n in STUB.body if isinstance(n, ast.ClassDef)]:
            for name, node in names(body).items():
                function = inspect.getattr_static(owner, name, None)  # __buffer__ is there from Python 3.12 on
                if isinstance(node, ast.FunctionDef) and inspect.isfunction(function):
                    with self.subTest(f"{owner.__name__}.{name}"):
                        handed_on = OPTIONS if owner is ptxgen and name in HAND_ON else []
                        self.assertEqual([p for p in parameters(node) if p[0] not in handed_on], [p for p in signature(function) if p != ("options", "**", False)])

    def test_options(self):
        """What hands options on to compile() names each of them, as compile() does."""
        self.assertEqual(list(options("compile")), OPTIONS)
        for name, call in HAND_ON.items():
            with self.subTest(name):
                self.assertEqual(options(name), options("compile"))
                for option in OPTIONS:
                    with self.assertRaisesRegex(TypeError, f"^{option} is a "):
                        call(**{option: object()})

    def test_ops(self):
        """As many arguments as the reference says."""
        found = names(parsed("ops.pyi").body)
        self.assertEqual(set(found), set(dir(ptxgen.ops)))
        said = re.findall(r"^\| `(\w+)\(([xyz, ]+)\)` \|", (ROOT / "docs/reference.md").read_text(encoding="utf-8"), re.M)
        known = {name: f"_F{len(args.split(','))}" for name, args in said}
        for name, node in found.items():
            with self.subTest(name):
                if isinstance(node, ast.FunctionDef):
                    self.assertEqual(parameters(node), signature(getattr(ptxgen.ops, name)))
                else:
                    self.assertEqual(node.annotation.id, known.get(name, "_F1"))  # conversions

    def test_values(self):
        """What can be done with a value, and not what refuses: a checker of types finds that sooner."""
        stub, = (node for node in parsed("_values.pyi").body if isinstance(node, ast.ClassDef))
        kind = ops.Value
        refusing = {f"__{name}__" for name in "bool float int index round iter floordiv rfloordiv divmod rdivmod".split()}
        has = {n for n, x in vars(kind).items() if inspect.isfunction(x)} - {"__init__", "__repr__"} - refusing
        self.assertEqual(set(names(stub.body)), has)
        for name in refusing:
            with self.subTest(name), self.assertRaises(TypeError):
                getattr(kind("x"), name)(*[2] * name.endswith(("div__", "divmod__")))

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not here")
    def test_a_checker_of_types(self):
        """What users write passes; what is wrong is found."""
        text = ("import pathlib\nimport ptxgen\nfrom ptxgen import ops\n"
                "add = ptxgen.operator(lambda a, b: a + b, state='f32', identity=0)\n"
                "f = ptxgen.reduce({'x': 'f32[n]'}, add, map=lambda x: x ** 2, outputs={'y': ('f32', lambda r: ops.sqrt(r))})\n"
                "said: str = f.explain(n=4) + ptxgen.vjp(f, ['x']).yaml\n"
                "value: ops.Value = ops.where(True, 1, ops.max(2, 3)) % 2\n"
                "try:\n    f(b'', out=None)\nexcept ptxgen.Error as error:\n    line: int = error.diagnostics[0].line\n"
                "ptxgen.load('x.yaml', arch=None, gpu='H200', settings={'threads': 64}, sizes={'n': 4}, cache=pathlib.Path('off'))\n"
                "ptxgen.scan({'x': 'f32[n]'}, 'add', outputs={'y': 'f32[n]'}, mode='exclusive', sizes={'n': 4})\n"
                "ops.nothing(1)  # wrong\nptxgen.load(3)  # wrong\nf.explain(n='4')  # wrong\nptxgen.compile({}, arch=90)  # wrong\nnumber: int = f.ptx()  # wrong\n"
                "ptxgen.load('x.yaml', arch=90)  # wrong\nptxgen.load('x.yaml', archs='sm_90')  # wrong\nptxgen.map({}, outputs={}, sizes=['n'])  # wrong\n"
                "ptxgen.operator(max, state=3)  # wrong\n")
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "user.py").write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-incremental", "user.py"], cwd=folder, capture_output=True, text=True, check=False,
                                  env={**os.environ, "MYPYPATH": str(FOLDER.parent)} if "site-packages" not in str(FOLDER) else None)
        found = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error: " in line}
        self.assertEqual(found, {i for i, line in enumerate(text.splitlines(), 1) if line.endswith("# wrong")}, done.stdout + done.stderr)

    def test_modules_of_other_libraries(self):
        """Types stand in the source, because these modules import what may not be here."""
        for module in ("torch", "jax"):
            op, = (node for node in parsed(f"{module}.py").body if isinstance(node, ast.FunctionDef) and node.name == "op")
            self.assertIsNotNone(op.returns)
            for arg in op.args.args + op.args.kwonlyargs:
                self.assertIsNotNone(arg.annotation, f"{module}.op: {arg.arg}")


if __name__ == "__main__":
    unittest.main()
