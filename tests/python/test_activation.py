# SPDX-License-Identifier: MIT
"""The package: on and off, with others about, and when publishing fails."""

import os
import pathlib
import re
import shutil
import subprocess
import textwrap

import pytest

import jitdump
from pythons import HOME, clean_environment

USE = "import sys\nsys.path.insert(0, %r)\nimport tickmap\n" % str(HOME)


def program(text):
    return USE + textwrap.dedent(text)


def test_the_package_switches_on_and_off(python, run, tmp_path):
    result = run(python, program("""
        print(tickmap.is_active(), tickmap.status()["functions"])
        print(tickmap.activate(directory=%r), tickmap.is_active(), tickmap.activate())
        def inside(): pass
        inside()
        status = tickmap.status()
        tickmap.deactivate(); tickmap.deactivate()
        def outside(): pass
        outside()
        print(tickmap.is_active(), status["active"], status["functions"] > 0, status["error"], status["perfmap"])
        print(status["jitdump"])
    """) % str(tmp_path), form=None)  # fmt: skip
    (path,) = tmp_path.glob("jit-*.dump")
    assert result.out == "False 0\nTrue True True\nFalse True True None None\n%s\n" % path
    dump = jitdump.Dump(path)
    assert dump.named("inside") and not dump.named("outside")


def test_without_a_folder_the_map_lies_where_perf_looks(python, run):
    code = "import os\ndef f(): pass\nf()\nprint(os.getpid())"
    result = run(python, code, form="both", env={"TICKMAP_DIR": None})
    pid = result.out.strip()
    paths = [pathlib.Path("/tmp/perf-%s.map" % pid), pathlib.Path("/tmp/jit-%s.dump" % pid)]
    assert [b"py::f:" in path.read_bytes() for path in paths] == [True, True]
    for path in paths:
        path.unlink()
    assert result.notes == []


def test_it_can_be_toggled_ten_thousand_times(python, run, tmp_path):
    """co_extra has 255 places and none is ever given back."""
    result = run(python, program("""
        def f(n): return f(n - 1) if n else 0
        for i in range(10_000):
            assert tickmap.activate("jitdump", %r)
            f(3)
            tickmap.deactivate()
            f(3)
        for i in range(10_000):
            assert tickmap.activate()
        f(3)
        print(tickmap.status()["functions"] < 50)
    """) % str(tmp_path), form=None)  # fmt: skip
    assert result.out == "True\n"


def test_switching_off_within_a_call_and_on_again_in_another(python, run):
    result = run(python, program("""
        import threading
        def off(n): return off(n - 1) if n else tickmap.deactivate()
        def on(n): return on(n - 1) if n else tickmap.activate()
        def work():
            for i in range(500):
                off(20); on(20)
        threads = [threading.Thread(target=work) for i in range(4)]
        [t.start() for t in threads]; [t.join() for t in threads]
        tickmap.activate()
        print(tickmap.is_active())
    """))  # fmt: skip
    assert result.out == "True\n"


def test_switching_off_at_the_bottom_of_a_deep_recursion(python, run):
    if python.version < (3, 11):
        pytest.skip("no such depth")
    result = run(python, program("""
        sys.setrecursionlimit(30_000)
        def f(n, then): return f(n - 1, then) if n else then()
        f(20_000, tickmap.deactivate); print(tickmap.is_active())
        def unseen(): pass
        unseen()
        f(20_000, tickmap.activate); print(tickmap.is_active())
        def seen(): pass
        seen()
        f(20_000, lambda: (tickmap.deactivate(), tickmap.activate())); print(tickmap.is_active())
        def seen_too(): pass
        seen_too()
    """))  # fmt: skip
    assert result.out == "False\nTrue\nTrue\n"
    dump = jitdump.read_one(result)
    assert dump.named("seen") and dump.named("seen_too") and not dump.named("unseen")


def test_wrong_arguments_are_refused(python, run):
    result = run(python, program("""
        for arguments in [("nonsense",), (1,), ("jitdump", 3), ("jitdump", "/no/such/folder"), ("jitdump", "a\\0b")]:
            try: tickmap.activate(*arguments)
            except (TypeError, ValueError, OSError) as error: print(type(error).__name__)
        print(tickmap.is_active())
    """), form=None)  # fmt: skip
    assert result.out == "ValueError\nTypeError\nTypeError\nFileNotFoundError\nValueError\nFalse\n"


def test_an_evaluator_that_was_there_is_called_and_comes_back(python, run, probe, tmp_path):
    result = run(python, program("""
        sys.path.insert(0, %r)
        import probe
        def f(): pass
        probe.install()
        tickmap.activate("jitdump", %r)
        probe.start()
        for i in range(10): f()
        print(max(count for caller, count in probe.stop()), probe.is_installed())
        tickmap.deactivate()
        print(probe.is_installed())
    """) % (str(probe), str(tmp_path)), form=None)  # fmt: skip
    assert result.out == "10 False\nTrue\n"


def test_an_evaluator_put_over_ours_keeps_working(python, run, probe):
    result = run(python, program("""
        sys.path.insert(0, %r)
        import probe
        probe.install()
        def both(): pass
        both()
        tickmap.deactivate()
        def only_theirs(): pass
        only_theirs()
        print(probe.is_installed())
        tickmap.activate()
        def again(n): return again(n - 1) if n else 0
        again(100)
        probe.remove()
        def ours(): pass
        ours()
        print(probe.is_installed(), tickmap.is_active())
        tickmap.deactivate()
        tickmap.activate()
        def at_last(): pass
        at_last()
    """) % str(probe))  # fmt: skip
    assert result.out == "True\nFalse True\n"
    dump = jitdump.read_one(result)
    assert [bool(dump.named(n)) for n in ("both", "only_theirs", "again", "ours", "at_last")] == [True, False, True, True, True]


def test_a_full_disk_stops_publishing_and_nothing_else(python, run):
    """A limit on the size of files stands for the disk."""
    result = run(python, program("""
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        import os
        size = os.path.getsize(tickmap.status()["jitdump"])
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 2000, size + 2000))
        total = 0
        for i in range(1000):
            space = {}
            exec(compile("def f(x): return x + 1", "file%d" % i, "exec"), space)
            total += space["f"](i)
        error = tickmap.status()["error"]
        print(total, tickmap.is_active(), bool(error))
    """))  # fmt: skip
    assert result.out == "500500 True True\n"
    jitdump.read_one(result)


FULL = """
import os, resource, sys
def first(): pass
first()
(path,) = (os.path.join(os.environ["TICKMAP_DIR"], n) for n in os.listdir(os.environ["TICKMAP_DIR"]))
size = os.path.getsize(path)
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, size + 10))
def second(): return os.fork()
if second() == 0:
    sys.exit()
os.wait()
if sys.argv[1:]:
    os.close(2)
    os.open(sys.argv[1], os.O_WRONLY)
"""


def test_a_full_disk_is_said_once_when_the_program_ends(python, run, tmp_path):
    alone = {"TICKMAP_NOTES": None, "TICKMAP_FOLLOWED": None}
    result = run(python, FULL, env=alone)
    (line,) = result.err.splitlines()
    assert re.match(r"tickmap: %s: File too large: only [1-9]\d* functions were published$" % re.escape(str(result.maps)), line)
    # A recorder sees it and says it; and no file of the program's is written to.
    assert run(python, FULL).err == ""
    (tmp_path / "data").write_text("")
    assert run(python, FULL, str(tmp_path / "data"), env=alone).err == ""
    assert (tmp_path / "data").read_text() == ""


def test_no_executable_memory_stops_trampolines_and_nothing_else(python, run):
    result = run(python, program("""
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (int(open("/proc/self/statm").read().split()[0]) * 4096 + (1 << 23),) * 2)
        total = 0
        held = []
        for i in range(3000):
            space = {}
            exec(compile("def f(x): return x + 1", "file%d" % i, "exec"), space)
            total += space["f"](i)
        print(total)
    """), code=None)  # fmt: skip
    assert result.out == "4501500\n" or "MemoryError" in result.err
    assert result.code in (0, 1)


def test_memory_is_never_writable_and_executable(python, run):
    result = run(python, "print([l for l in open('/proc/self/maps') if 'wx' in l])")
    assert result.out == "[]\n"


EMBED = r"""
#include <Python.h>
int main(void)
{
    for (int i = 0; i < 4; i++) {
        Py_Initialize();
        if (PyRun_SimpleString("def g(n): return g(n - 1) if n else 0\ng(50)"))
            return 1;
        Py_Finalize();
    }
    return 0;
}
"""


def test_the_interpreter_can_be_started_anew_in_one_process(python, run, tmp_path):
    """An embedding program may end Python and begin again."""
    folder = os.path.dirname(os.path.dirname(python.executable)) + "/lib"
    library = python.library
    compiler = shutil.which("cc")
    if not compiler or not os.path.exists("%s/lib%s.so" % (folder, library)):
        pytest.skip("no libpython to link with for " + python.label)
    source = tmp_path / "embed.c"
    source.write_text(EMBED)
    embedder = str(tmp_path / "embed")
    command = [compiler, str(source), "-isystem", python.include, "-L" + folder, "-l" + library]
    subprocess.run(command + ["-Wl,-rpath," + folder, "-o", embedder], check=True)
    dump = jitdump.read_one(run(embedder, None, env={"PYTHONHOME": os.path.dirname(folder)}))
    assert dump.named("g")


TOGGLE = """
import os, sys
for i in range(3):
    sys.activate_stack_trampoline("perf")
    (lambda: 0)()
    sys.deactivate_stack_trampoline()
os.unlink("/tmp/perf-%d.map" % os.getpid())
"""


def test_the_interpreters_own_trampolines_can_be_switched_on_under_ours(python, run):
    """A program that does so must not fail because it is being recorded."""
    if python.version < (3, 12):
        pytest.skip("%s has none" % python.label)
    # 3.14 and 3.15 crash at their end when theirs were on twice, ours or not.
    alone = subprocess.run([python.path, "-c", TOGGLE], env=dict(clean_environment(), PYTHON_JIT="0"))
    result = run(python, """
        import os, sys
        def before(): pass
        def under_own(): pass
        def after(): pass
        before()
        print(sys.activate_stack_trampoline, sys.activate_stack_trampoline.__self__ is sys)
        try: sys.activate_stack_trampoline("nonsense")
        except ValueError: print("ValueError")
        for i in range(3):
            sys.activate_stack_trampoline("perf")
            under_own()
            print(sys.is_stack_trampoline_active())
            sys.deactivate_stack_trampoline()
            print(sys.is_stack_trampoline_active())
        after()
        path = "/tmp/perf-%d.map" % os.getpid()
        text = open(path).read()
        os.unlink(path)
        print("py::under_own:" in text, "py::after:" in text)
    """, code=alone.returncode, env={"PYTHON_JIT": None})  # fmt: skip
    lines = ["<built-in function activate_stack_trampoline> True", "ValueError"] + ["True", "False"] * 3 + ["True False"]
    assert result.out.splitlines() == lines
    dump = jitdump.read_one(result)
    assert dump.named("before") and dump.named("after")
    assert python.version >= (3, 15) or not dump.named("under_own")


def test_it_can_be_toggled_ten_thousand_times_while_threads_run(python, run):
    result = run(python, program("""
        import threading
        sys.setswitchinterval(1e-5)
        stop = threading.Event()
        class C:
            def __init__(self, n): self.n = n
            def __getitem__(self, i): return self.n + i
        def numbers(n): yield from range(n)
        def work(n): return C(n)[1] + sum(numbers(3)) + (work(n - 1) if n else 0)
        calls = [0] * 3
        def loop(i):
            expected = work(5)
            while not stop.is_set():
                assert work(5) == expected
                calls[i] += 1
        threads = [threading.Thread(target=loop, args=(i,)) for i in range(3)]
        [t.start() for t in threads]
        while min(calls) == 0: pass
        functions = tickmap.status()["functions"]
        for i in range(10_000):
            tickmap.deactivate()
            tickmap.activate()
        grown = tickmap.status()["functions"] - functions
        stop.set()
        [t.join() for t in threads]
        print(tickmap.is_active(), grown < 20, min(calls) > 1)
    """))  # fmt: skip
    assert result.out == "True True True\n" and result.err == ""
    assert jitdump.read_one(result).named("work")


def test_threads_that_switch_it_on_and_off_at_once_leave_it_whole(python, run):
    """The first time, at which the interpreter's frames are looked at, too."""
    result = run(python, program("""
        import threading
        sys.setswitchinterval(1e-6)
        start = threading.Barrier(8)
        def called(): return 1
        def work(i):
            start.wait()
            for _ in range(300):
                tickmap.activate()
                called()
                with tickmap.activated(): called()
                tickmap.deactivate()
        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print(tickmap.is_active(), tickmap.activate())
        def last(): return called()
        last()
        tickmap.deactivate()
        def unseen(): pass
        unseen()
    """))  # fmt: skip
    assert result.out == "False True\n" and result.err == ""
    dump = jitdump.read_one(result)
    assert dump.named("last") and len(dump.named("called")) == 1 and not dump.named("unseen")


def test_a_finalizer_may_switch_it_while_it_is_switched(python, run):
    result = run(python, program("""
        import gc
        gc.set_threshold(1)
        class Cycle:
            def __init__(self): self.own = self
            def __del__(self):
                try: tickmap.activate() if len(seen) % 2 else tickmap.deactivate()
                except RuntimeError: pass
                seen.append(1)
        seen = []
        for i in range(200):
            Cycle()
            try: tickmap.activate()
            except RuntimeError: pass
            Cycle()
            tickmap.deactivate()
        gc.set_threshold(700)
        gc.collect()
        tickmap.activate()
        def last(): pass
        last()
        print(tickmap.is_active(), len(seen))
    """))  # fmt: skip
    assert result.out == "True 400\n" and result.err == ""
    assert jitdump.read_one(result).named("last")


def test_deep_calls_forks_and_switching_at_once_in_threads(python, run):
    result = run(python, program("""
        import threading, time, warnings
        warnings.simplefilter("ignore")
        depth = 20_000 if sys.version_info >= (3, 11) else 500
        sys.setrecursionlimit(2 * depth + 1000)
        threading.stack_size(16 << 20)
        sys.setswitchinterval(1e-4)
        tickmap.activate()
        stop, done = threading.Event(), {}
        def deep(n):
            def down(k): return 1 + down(k - 1) if k else 0
            assert down(depth) == depth
        def new_code(n):
            space = {}
            exec("def g%d(x): return x + 1\\nr = g%d(1)" % (n % 50, n % 50), space)
            assert space["r"] == 2
        def switch(n):
            tickmap.activate() if n % 2 else tickmap.deactivate()
        def regions(n):
            with tickmap.activated(): new_code(n)
        def forks(n):
            child = os.fork()
            if child == 0:
                try:
                    tickmap.activate()
                    def in_child(): pass
                    in_child()
                    os._exit(0 if tickmap.is_active() else 2)
                except BaseException:
                    os._exit(1)
            status = os.waitpid(child, 0)[1]
            assert status == 0, status
        def repeat(f):
            n = 0
            while not stop.is_set() or n < 3:
                f(n)
                n += 1
            done[f.__name__] = n
        import os
        threads = [threading.Thread(target=repeat, args=(f,)) for f in (deep, new_code, switch, regions, forks)]
        [t.start() for t in threads]
        time.sleep(1)
        stop.set()
        [t.join() for t in threads]
        print(sorted(done))
    """))  # fmt: skip
    assert result.out == "['deep', 'forks', 'new_code', 'regions', 'switch']\n" and result.err == ""
    dumps = jitdump.read_all(result).values()
    assert sum(any(f.short.endswith("in_child") for f in d.functions) for d in dumps) >= 3


def test_without_a_gil_it_stays_off(python, run):
    """A module that does not say that it can do without would bring it back."""
    if not python.is_free_threaded:
        pytest.skip("%s has a GIL" % python.label)
    result = run(python, program("""
        before = sys._is_gil_enabled()
        tickmap.activate()
        print(before, sys._is_gil_enabled())
    """), before=["-W", "error"])  # fmt: skip
    assert result.out == "False False\n" and result.err == ""
