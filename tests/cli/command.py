# SPDX-License-Identifier: MIT
"""Runs the command that was built."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TICKMAP_BUILD", ROOT / "build"))
TICKMAP = BUILD / "tickmap"


class Run:
    def __init__(self, arguments, cwd, env):
        done = subprocess.run([TICKMAP, *map(str, arguments)], cwd=cwd,
                              env={**os.environ, **env}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        self.code = done.returncode
        self.out = done.stdout.decode()
        self.err = done.stderr.decode()
