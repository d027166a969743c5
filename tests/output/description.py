# SPDX-License-Identifier: MIT
"""Profiles for tests: described in Python, built and written by make_profile."""

import os
import pathlib
import subprocess

BUILD = pathlib.Path(os.environ.get(
    "TICKMAP_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build"))
MAKE_PROFILE = BUILD / "tests/output/make_profile"

PYTHON, JIT, NATIVE, KERNEL, UNRESOLVED = range(5)
# enum tickmap_unresolved
STRIPPED, NO_CODE_MAP, NOT_IN_MAP = 1, 6, 7


class Profile:
    def __init__(self, **facts):
        self.frames = []  # dicts
        self.threads = []
        self.samples = []  # (thread, count, truncated, [frame, ...]) root first
        self.facts = list(facts.items())

    def frame(self, name, kind=NATIVE, dso="libc.so.6", file="", line=0,
              interpreter=False, reason=0):
        self.frames.append(dict(name=name, kind=kind, dso=dso, file=file, line=line,
                                interpreter=interpreter, reason=reason))
        return len(self.frames) - 1

    def python(self, name, line=0):
        return self.frame("py::" + name, PYTHON, "[jit]", line=line)

    def thread(self, pid, tid, comm):
        self.threads.append((pid, tid, comm))
        return len(self.threads) - 1

    def sample(self, thread, count, *frames, truncated=0):
        self.samples.append((thread, count, truncated, list(frames)))

    def text(self):
        lines = []
        for f in self.frames:
            lines.append("F\t%d\t%d\t%d\t%d\t%s\t%s\t%s" % (
                f["kind"], f["interpreter"], f["line"], f["reason"], f["dso"],
                f["file"], f["name"]))
        lines += ["T\t%d\t%d\t%s" % t for t in self.threads]
        for key, value in self.facts:
            for v in value if isinstance(value, list) else [value]:
                lines.append("V\t%s\t%s" % (key, v))
        for thread, count, truncated, frames in self.samples:
            lines.append("S\t%d\t%d\t%d\t%s" % (
                thread, count, truncated, ",".join(map(str, frames))))
        return "\n".join(lines) + "\n"

    def write(self, form, *options):
        """Bytes of the form."""
        return subprocess.run(
            [MAKE_PROFILE, form, *options],
            input=self.text().encode(), stdout=subprocess.PIPE, check=True).stdout


def app():
    """A Python program with everything in it: the profile of the goldens."""
    p = Profile(command="python3 app.py --input data.bin", event="cpu-clock",
                frequency=999, lost=3, code_loads=412, cpu_seconds="1.0",
                end_ns=6250000000, hint=["install libz1-dbgsym for names in libz.so.1"])
    main = p.thread(4242, 4242, "python3")
    worker = p.thread(4242, 4250, "worker;1")
    child = p.thread(4300, 4300, "gzip")
    python = "python3.12"
    start = p.frame("_start", dso=python, interpreter=True)
    libc = p.frame("__libc_start_main")
    run = p.frame("Py_RunMain", dso=python, interpreter=True)
    ev = p.frame("_PyEval_EvalFrameDefault", dso=python, interpreter=True)
    call = p.frame("PyObject_Call", dso=python, interpreter=True)
    module = p.python("<module>:/srv/service/app.py")
    work = p.python("work:/srv/service/app.py")
    fib = p.python("fib:/srv/service/app.py")
    fetch = p.python("Client.fetch:/srv/service/lib/client.py")
    lam1 = p.python("<lambda>:/srv/service/app.py", line=10)
    lam2 = p.python("<lambda>:/srv/service/app.py", line=20)
    zlib_compress = p.frame("zlib_compress", dso="zlib.cpython-312-x86_64-linux-gnu.so")
    deflate = p.frame("[libz.so.1+0x8c10]", UNRESOLVED, "libz.so.1", reason=STRIPPED)
    jit = p.frame("loop_kernel<float, 4>", JIT, "[jit]", file="/srv/service/kernels.cl", line=33)
    hole = p.frame("[jit+0x7f0012340000]", UNRESOLVED, "[anon]", reason=NOT_IN_MAP)
    read = p.frame("vfs_read", KERNEL, "[kernel]")
    entry = p.frame("entry_SYSCALL_64_after_hwframe", KERNEL, "[kernel]")
    base = [start, libc, run, ev, module]

    p.sample(main, 400, *base, ev, work, ev)
    p.sample(main, 60, *base, ev, work, ev, call)
    p.sample(main, 150, *base, ev, work, call, zlib_compress, deflate)
    for depth in range(1, 41):
        stack = list(base)
        for _ in range(depth):
            stack += [ev, fib]
        p.sample(main, 5, *stack, ev)
    p.sample(main, 30, *base, ev, lam1, ev)
    p.sample(main, 20, *base, ev, lam2, ev)
    p.sample(main, 40, *base, ev, fetch, ev, call, entry, read)
    p.sample(worker, 50, work, ev, truncated=1)
    p.sample(worker, 9, ev, work, ev, jit)
    p.sample(worker, 1, ev, work, ev, jit, hole)
    p.sample(child, 39, libc, zlib_compress, deflate)
    return p
