#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The C of docs/howto-jit.md is compiled, warnings being errors, and run.

usage: howto_test.py SOURCE_ROOT
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(sys.argv[1])
emit = root / "tests" / "emit"
blocks = re.findall(r"^```c\n(.*?)^```", (root / "docs/howto-jit.md").read_text(),
                    re.M | re.S)
assert len(blocks) == 1, "one block of C is what this test knows of"
statements = [line for line in blocks[0].splitlines() if line.strip().endswith(";")]
assert len(statements) <= 20, f"{len(statements)} statements are not twenty lines"

compilers = [cc for cc in ("gcc", "clang", "cc") if shutil.which(cc)]
if not compilers:
    print("skipped: no C compiler")
    sys.exit(77)
with tempfile.TemporaryDirectory(prefix="tickmap-howto-") as work:
    work = pathlib.Path(work)
    subprocess.run([root / "tools" / "amalgamate", work], check=True)
    (work / "jit.c").write_text(blocks[0])
    subprocess.run(
        [compilers[0], "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-O1",
         "-I", work, "-I", emit, work / "jit.c", work / "tickmap_emit.c",
         emit / "howto_main.c", emit / "strict.c", "-lpthread",
         "-o", work / "howto"], check=True)
    subprocess.run([work / "howto", work], check=True)
print("good")
