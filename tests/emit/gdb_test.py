#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gdb's view of the toy JIT against the truth in its register.

gdb knows the functions through its JIT interface alone. At each stop in a C
function that the toy calls, and at each instruction on the way through a
chain of compiled functions, its backtrace must be the true stack, with the
lines that were published, down to main.

usage: gdb_test.py TOYJIT    exit code 77: skipped, the reason is printed
"""
import os
import shutil
import subprocess
import sys
import tempfile

# Run by gdb's own Python.
SCRIPT = r'''
import gdb
gdb.execute("set pagination off")
gdb.execute("set confirm off")
gdb.execute("set debuginfod enabled off")
gdb.execute("break toy_probe")
gdb.execute("run")

def stack():
    frame = gdb.newest_frame()
    names = []
    while frame:
        line = frame.find_sal().line
        names.append((frame.name(), line))
        frame = frame.older()
    return names

def truth(r15):
    names = []
    while r15:
        n, r15 = r15 & 0xff, r15 >> 8
        if n:
            names.append("toy_enter" if n == 0x5a else "toy_%02x" % n)
    return names

def verdict(true, seen, at_probe):
    """'' or what is wrong."""
    names = [name for name, line in seen]
    if at_probe:
        names, seen = names[1:], seen[1:]
    toys = [name for name in names if name and name.startswith("toy_")
            and name != "toy_run"]
    rest = names[len(toys):]
    # Outside of toy_enter's own use of the register it is somebody else's.
    if names[0] == "toy_enter" and true[-1:] != ["toy_enter"]:
        true = ["toy_enter"]
    # Entering or leaving: the function runs, but is not on the true stack.
    if toys != true and toys[1:] != true:
        return "stack %s is not %s" % (names, true)
    if "main" not in rest:
        return "%s does not reach main" % names
    for name, line in seen[:len(toys)]:
        if line not in (10, 20, 30):
            return "%s has line %s" % (name, line)
    for name, line in seen[1:len(toys)]:
        if line != 20:
            return "caller %s has line %s" % (name, line)
    return ""

def r15():
    return int(gdb.parse_and_eval("(unsigned long)$r15"))

def say(kind, problem):
    print("JUDGED", kind, problem or "good", flush=True)

for stop in range(40):
    say("probe", verdict(truth(r15()), stack(), True))
    gdb.execute("continue", to_string=True)
    if not gdb.selected_inferior().pid:
        break
frame = gdb.newest_frame()
while frame.name() != "toy_enter":
    frame = frame.older()
enter = gdb.block_for_pc(frame.pc()).start
steps = 0
while steps < 150:
    name = gdb.newest_frame().name()
    if name == "toy_probe":
        gdb.execute("finish", to_string=True)
        continue
    if not (name or "").startswith("toy_") or name == "toy_run":
        gdb.execute("tbreak *%d" % enter, to_string=True)
        gdb.execute("continue", to_string=True)
        continue
    say("step", verdict(truth(r15()), stack(), False))
    if int(gdb.parse_and_eval("(int)$ecx")) > 2:
        gdb.execute("set $ecx = 2")
    gdb.execute("stepi", to_string=True)
    steps += 1
gdb.execute("kill")
'''


def main():
    gdb = shutil.which("gdb")
    if not gdb:
        print("skipped: gdb is not installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="tickmap-gdb-") as work:
        script = os.path.join(work, "script.py")
        with open(script, "w") as file:
            file.write(SCRIPT)
        done = subprocess.run(
            [gdb, "-nx", "-batch", "-x", script, "--args",
             os.path.abspath(sys.argv[1]), "--gdb", "--dir", work, "--frames",
             "mixed", "--churn", "move", "--rounds", "100"],
            env=dict(os.environ, HOME=work, LC_ALL="C", DEBUGINFOD_URLS=""),
            capture_output=True, text=True, timeout=200)
    output = done.stdout + done.stderr
    if "Python scripting is not supported" in output or \
            "ptrace: Operation not permitted" in output:
        print("skipped: this gdb has no Python, or may not trace")
        sys.exit(77)
    judged = [line.split(None, 2)[1:] for line in output.splitlines()
              if line.startswith("JUDGED")]
    wrong = [entry for entry in judged if entry[1] != "good"]
    for kind in ("probe", "step"):
        mine = [entry for entry in judged if entry[0] == kind]
        print(f"{kind}: {sum(e[1] == 'good' for e in mine)} of {len(mine)} "
              "backtraces are the true stack")
    if wrong or len(judged) < 80:
        print(wrong[:5], output[-3000:])
        sys.exit(1)
    print("good")


main()
