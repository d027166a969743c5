# SPDX-License-Identifier: MIT
"""Finds the interpreters that the extension can be built for.

Prints one line for each, fields separated by tabs:
	build  VERSION  CACHE-TAG  SUFFIX  INCLUDE[:INCLUDE]  EXECUTABLE
	skip   WHY      EXECUTABLE
One interpreter stands for all that share CACHE-TAG and SUFFIX: they load the
same file. Arguments, if any, are the only interpreters looked at.
"""

import glob
import os
import re
import shutil
import subprocess
import sys

# Those that python/ has a trampoline for.
MACHINES = ("x86_64", "aarch64")

# Runs in the interpreter asked about, which may be a very old one.
QUESTION = r"""
import os, platform, sys, sysconfig
name = platform.python_implementation()
version = '.'.join(map(str, sys.version_info[:3]))
tag = getattr(getattr(sys, 'implementation', None), 'cache_tag', None)
suffix = sysconfig.get_config_var('EXT_SUFFIX')
paths = sysconfig.get_paths()
include = []
for key in ('include', 'platinclude'):
    path = paths.get(key)
    if path and path not in include and os.path.exists(os.path.join(path, 'Python.h')):
        include.append(path)
print('\t'.join([name, version, str(tag), str(suffix), ':'.join(include), platform.machine(), sys.platform]))
"""


def candidates():
    """Executables in order of preference, each only once."""
    found = []
    folders = os.environ.get("PATH", "").split(os.pathsep)
    folders += ["/usr/bin", "/usr/local/bin"]
    folders += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin")))
    pattern = re.compile(r"python3(\.\d+)?[td]?$")
    for folder in folders:
        # A shim is a script that picks an interpreter by the current folder.
        if os.path.basename(folder) == "shims":
            continue
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        found += [os.path.join(folder, n) for n in names if pattern.match(n)]
    seen = set()
    for path in found:
        real = os.path.realpath(path)
        if real not in seen and os.access(path, os.X_OK):
            seen.add(real)
            yield path


def ask(python):
    # Isolated from the variables of whoever is building, and of us.
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    env.pop("TICKMAP", None)
    result = subprocess.run(
        [python, "-c", QUESTION],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env=env,
        timeout=60,
        universal_newlines=True,
    )
    if result.returncode != 0:
        raise ValueError("does not run")
    return result.stdout.strip("\n").split("\t")


def judge(python):
    """The line for one interpreter, and the key that makes it unique."""
    name, version, tag, suffix, include, machine, platform = ask(python)
    number = tuple(int(n) for n in version.split(".")[:2])
    if name != "CPython":
        raise ValueError(name + " has no evaluator to hook")
    if number < (3, 9):
        raise ValueError(version + " is too old (3.9 or newer)")
    if platform != "linux" or machine not in MACHINES:
        raise ValueError("no trampolines for %s on %s" % (machine, platform))
    if not include:
        raise ValueError(version + " has no headers")
    return (tag, suffix), ["build", version, tag, suffix, include, python]


def main(asked):
    done = set()
    for python in asked or candidates():
        try:
            key, line = judge(shutil.which(python) or python)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            print("skip", error, python, sep="\t")
            continue
        if key in done:
            print("skip", "same build as another " + key[0], python, sep="\t")
            continue
        done.add(key)
        print(*line, sep="\t")


if __name__ == "__main__":
    main(sys.argv[1:])
