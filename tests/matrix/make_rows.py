#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes rows/NAME/{perf.data,jit-PID.dump,perf-PID.map,...}: one folder for
each way in which recordings and code maps are known to go wrong. ROWS.tsv says
what must come out; it is written by hand, not by this program. Run it in this
folder; its output is committed. What a kind of row needs lies beside it."""

import shutil
from pathlib import Path

import clock_rows  # noqa: F401
import map_rows  # noqa: F401
import peer_rows  # noqa: F401
import perf_rows  # noqa: F401
import producer_rows  # noqa: F401
import recording_rows  # noqa: F401
from form import ROWS


def main():
    shutil.rmtree("rows", ignore_errors=True)
    for name, function in ROWS.items():
        function(Path("rows") / name)


if __name__ == "__main__":
    main()
