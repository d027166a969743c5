# SPDX-License-Identifier: MIT
"""Builds the Python package with setuptools alone (58 or newer, no Meson)."""

import glob
import os
import platform
import re
import shutil
import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

VERSION = re.search(r"^  version: '(.*)'", open("meson.build").read(), re.M).group(1)


def machine():
    """Of the interpreter: it may run on another kernel, or be cross-built."""
    name = sysconfig.get_platform().rsplit("-", 1)[-1]
    name = {"arm64": "aarch64", "amd64": "x86_64"}.get(name, name)
    if name not in ("x86_64", "aarch64"):
        raise SystemExit("tickmap has no trampolines for %s, only for x86_64 and aarch64" % name)
    return name


if platform.python_implementation() != "CPython":
    raise SystemExit("tickmap needs CPython: %s has no evaluator to hook" % platform.python_implementation())

MACHINE = machine()
SOURCES = ["python/*.c", "python/%s/*.c" % MACHINE, "src/emit/*.c"]
SOURCES = [path for pattern in SOURCES for path in sorted(glob.glob(pattern))]


class BuildExtension(build_ext):
    """Last on the command line, so that CFLAGS cannot take away what the hook
    needs: it must end in a jump, and keep the frame pointer."""

    def build_extension(self, extension):
        extension.extra_compile_args = [
            "-std=gnu11",
            "-O2",
            "-g",
            "-fPIC",
            "-pthread",
            "-fno-omit-frame-pointer",
            "-foptimize-sibling-calls",
            "-fvisibility=hidden",
            "-fno-lto",
        ]
        extension.extra_link_args = ["-pthread"]
        super().build_extension(extension)


class BuildPython(build_py):
    """A .pth file beside the package, so that TICKMAP=... works at start-up."""

    def startup(self):
        return os.path.join(self.build_lib, "tickmap-startup.pth")

    def run(self):
        super().run()
        if not getattr(self, "editable_mode", False):
            shutil.copyfile("python/tickmap/startup.pth", self.startup())

    def get_outputs(self, include_bytecode=1):
        return super().get_outputs(include_bytecode) + [self.startup()]


setup(
    name="tickmap",
    version=VERSION,
    description="Native frames for Python functions: code maps for native profilers",
    long_description=open("docs/python.md").read(),
    long_description_content_type="text/markdown",
    license="MIT",
    python_requires=">=3.9",
    packages=["tickmap"],
    py_modules=["_tickmap_startup"],
    package_dir={"": "python"},
    package_data={"tickmap": ["*.pyi", "py.typed", "startup.pth"]},
    ext_modules=[
        Extension(
            "tickmap._tickmap",
            SOURCES,
            include_dirs=["include", "python", "python/" + MACHINE],
            define_macros=[("_GNU_SOURCE", None), ("TICKMAP_EMIT_API", "")],
            depends=glob.glob("python/*.h") + glob.glob("python/*/*.h") + glob.glob("src/emit/*.h"),
        )
    ],
    cmdclass={"build_ext": BuildExtension, "build_py": BuildPython},
    zip_safe=False,
)
