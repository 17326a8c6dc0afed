# SPDX-License-Identifier: Apache-2.0
"""The Python package: the C library with LLVM inside, built with CMake (or taken from PTXGEN_BUILD, the folder with libptxgen.so),
and the extension over it, for CPython 3.11 and all later ones.  The wheel holds both."""
import glob
import os
import pathlib
import re
import shutil
import subprocess

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent
VERSION = re.search(r"^project\(ptxgen VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"), re.M)[1]


def library():
    """The folder with the shared library."""
    if "PTXGEN_BUILD" in os.environ:
        return pathlib.Path(os.environ["PTXGEN_BUILD"]).resolve()
    subprocess.run(["cmake", "--preset", "static"], cwd=ROOT, check=True)
    subprocess.run(["ninja", "-C", ROOT / "build" / "static", "ptxgen_onelib"], check=True)
    return ROOT / "build" / "static" / "bench" / "gpu"


class Build(build_ext):
    """With the library beside the extension."""

    def run(self):
        folder = library()
        self.library_dirs.append(str(folder))
        super().run()
        package = ROOT / "python" / "ptxgen" if self.inplace else pathlib.Path(self.build_lib) / "ptxgen"
        shutil.copyfile(folder / "libptxgen.so.0", package / "libptxgen.so.0")


setup(version=VERSION, cmdclass={"build_ext": Build}, options={"bdist_wheel": {"py_limited_api": "cp311"}}, ext_modules=[
    Extension("ptxgen._native", sorted(glob.glob("python/native/*.c", root_dir=ROOT)), include_dirs=["include"],
              depends=glob.glob("python/native/*.h", root_dir=ROOT), libraries=["ptxgen"], py_limited_api=True,
              extra_compile_args=["-std=gnu11", "-Wall", "-Wextra", "-fvisibility=hidden"], extra_link_args=["-Wl,-rpath,$ORIGIN"])])
