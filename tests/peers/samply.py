# SPDX-License-Identifier: MIT
"""Runs samply on a program and reads the profile that it saves.

TICKMAP_SAMPLY names the program, TICKMAP_SAMPLY_SHIM what is preloaded into it
where there are no hardware counters; `tools/peers BUILD samply` makes both.
"""
import contextlib
import gzip
import json
import os
import pathlib
import shutil
import subprocess

import pytest

PARANOID = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")


def program():
    found = os.environ.get("TICKMAP_SAMPLY") or shutil.which("samply")
    if not found:
        pytest.skip("no samply: TICKMAP_SAMPLY names one "
                    "(tools/peers BUILD samply)")
    return found


@contextlib.contextmanager
def paranoid_at_most(level):
    """samply refuses at 2, whoever runs it. Restored afterwards."""
    before = PARANOID.read_text()
    if int(before) <= level:
        yield
        return
    try:
        PARANOID.write_text(f"{level}\n")
    except OSError as error:
        pytest.skip(f"perf_event_paranoid is {before.strip()} and samply "
                    f"wants {level}: {error.strerror}")
    try:
        yield
    finally:
        PARANOID.write_text(before)


def has_cycles():
    done = subprocess.run(["perf", "stat", "-e", "cycles", "true"],
                          capture_output=True, text=True)
    return done.returncode == 0 and "not supported" not in done.stderr


def record(command, out, rate=1000):
    """The profile of a run of `command`, native code symbolicated as samply
    does it; what it writes stays beside `out`."""
    env = dict(os.environ)
    shim = os.environ.get("TICKMAP_SAMPLY_SHIM")
    if not has_cycles():
        if not shim:
            pytest.skip("no hardware counters, and TICKMAP_SAMPLY_SHIM "
                        "is not set (tools/peers BUILD samply)")
        env["LD_PRELOAD"] = shim
    with paranoid_at_most(1):
        done = subprocess.run(
            [program(), "record", "--save-only",
             "--unstable-presymbolicate", "--rate", str(rate), "-o", out,
             "--", *command], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return Profile(out)


class Profile:
    def __init__(self, path):
        path = pathlib.Path(path)
        self.json = json.loads(gzip.decompress(path.read_bytes()))
        beside = path.with_name(path.name.removesuffix(".gz") + ".syms.json")
        self.symbols = Symbols(json.loads(beside.read_text())) \
            if beside.exists() else None

    def stacks(self):
        """(process name, thread name, names innermost first) a sample."""
        for thread in self.json["threads"]:
            names = self._names(thread)
            prefix = thread["stackTable"]["prefix"]
            frames = thread["stackTable"]["frame"]
            for at in thread["samples"]["stack"]:
                stack = []
                while at is not None:
                    stack.append(names[frames[at]])
                    at = prefix[at]
                yield thread["processName"], thread["name"], stack

    def _names(self, thread):
        """Of each frame: what is published for code out of a code map, what
        the symbol table says for native code."""
        shared = self.json.get("shared", thread)
        strings = shared.get("stringArray") or thread["stringArray"]
        funcs = thread["funcTable"]
        table = thread["frameTable"]
        names = []
        for func, address in zip(table["func"], table["address"]):
            name = strings[funcs["name"][func]]
            resource = funcs["resource"][func]
            if name.startswith("0x") and resource >= 0 and self.symbols:
                lib = self.json["libs"][
                    thread["resourceTable"]["lib"][resource]]
                name = self.symbols.name(lib, address) or name
            names.append(name)
        return names


class Symbols:
    """The file beside a profile: known addresses of each library."""

    def __init__(self, data):
        strings = data["string_table"]
        self.known = {}
        for lib in data["data"]:
            symbols = [strings[entry["symbol"]]
                       for entry in lib["symbol_table"]]
            for address, symbol in lib["known_addresses"]:
                self.known[lib["debug_id"], address] = symbols[symbol]

    def name(self, lib, address):
        ident = lib["breakpadId"]
        ident = "-".join((ident[:8], ident[8:12], ident[12:16], ident[16:20],
                          ident[20:32])).lower() + (
            "" if ident[32:] == "0" else "-" + ident[32:])
        return self.known.get((ident, address))
